/* Lives: what a seat notes of where it stands, and how its next life goes on from there.
 *
 * A seat's way through a run is a row of stages. Each ends in at most one meeting, and each but the last ones of a piece may be
 * begun again by another life and gives the same: docs/reliability.md has the list. Before it begins a stage the seat writes a
 * record of it, beside the last one; a death leaves one of them whole. Whether the dead one had come to the meeting at the end
 * of its stage says its gate: if so, the next life only waits there.
 *
 * Called by the engines and by the backend's entries, in the worker. The burial before it (deaths.c) has taken back what was
 * half done. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/point.h"

/* Whether the record of that stage names a piece that I am at, which the ledger does not say. */
static bool names_piece(const struct shmt_shm_seat *p, enum shmt_run_stage stage) {
    if (!shmt_policy_is_batched(&p->store->spec.policy)) return stage == SHMT_STAGE_OFFER;
    return stage == SHMT_STAGE_WORK || stage == SHMT_STAGE_APPLY;
}

void shmt_shm_note(struct shmt_shm_seat *p, enum shmt_run_stage stage) {
    struct shmt_shm_slot *slot = p->slot;
    /* relaxed: a number to show; examples, and so pieces and batches, have 32 bits */
    store_relaxed(&slot->at, names_piece(p, stage) ? ((uint64_t)p->epoch + 1) << 32 | p->now.piece : 0);
    const uint64_t number = load_relaxed(&slot->records) + 1; /* relaxed, here and below: read by my next life only */
    if (!p->store->spec.may_die) return;
    p->now.phase = p->phase;
    p->now.clock = p->clock;
    p->now.epoch = p->epoch;
    p->now.stage = (uint8_t)stage;
    slot->record[number % 2] = p->now;
    fence_compiler();
    SHMT_POINT("note:before");
    store_relaxed(&slot->records, number);
    SHMT_POINT("note:after");
    fence_compiler();
}

enum shmt_task shmt_shm_stage(struct shmt_shm_seat *p, enum shmt_run_stage stage) {
    if (p->revived && stage < p->now.stage) return SHMT_TASK_NONE;
    if (shmt_shm_goes_on_with(p, stage)) return p->met ? SHMT_TASK_MEET : SHMT_TASK_ALL;
    shmt_shm_note(p, stage);
    return SHMT_TASK_ALL;
}

bool shmt_shm_is_at(const struct shmt_store *store, uint32_t rank, uint32_t epoch, uint64_t *piece_out) {
    const uint64_t at = load_relaxed(&store->slot[rank].at); /* relaxed: a number to show */
    if (at >> 32 != (uint64_t)epoch + 1) return false;
    *piece_out = at & UINT32_MAX;
    return true;
}

void shmt_shm_revive(struct shmt_shm_seat *p) {
    const uint64_t number = load_relaxed(&p->slot->records);
    if (number > 0) p->now = p->slot->record[number % 2]; /* else it has not begun */
    p->revived = true;
    p->phase = p->now.phase;
    p->clock = p->now.clock;
    p->met = load_relaxed(&p->slot->gate.phase) > p->phase;
    if (number > 0) p->epoch = p->now.epoch;
    p->seat.behind = p->met && p->now.stage == SHMT_STAGE_TURN;
}

bool shmt_shm_goes_on_with(struct shmt_shm_seat *p, enum shmt_run_stage stage) {
    if (!p->revived || p->now.stage != stage) return false;
    p->revived = false;
    return true;
}

/* ---- pieces of the ledger ---- */

static bool is_mine(const struct shmt_shm_seat *p, uint64_t piece) {
    const uint64_t owner = load_relaxed(&p->store->ledger[piece].owner); /* relaxed: what is mine nobody else writes */
    return owner >> 32 == (uint64_t)p->epoch + 1 && (owner & 0xffff) == p->seat.rank + 1;
}

uint64_t shmt_shm_count_done(const struct shmt_shm_seat *p) {
    const uint64_t pieces = shmt_spec_pieces(&p->store->spec);
    uint64_t n = 0;
    for (uint64_t i = 0; i < pieces; i++) n += is_mine(p, i) && shmt_ledger_examples(&p->store->ledger[i], p->epoch) > 0;
    return n;
}

void shmt_shm_uncount(struct shmt_shm_seat *p, uint64_t piece) {
    struct shmt_counters *c = &p->slot->counters;
    struct shmt_shm_piece *of = &p->store->ledger[piece];
    const uint64_t examples = shmt_ledger_examples(of, p->epoch), bits = load_relaxed(&c->loss_bits);
    double loss;
    if (examples == 0) return;
    memcpy(&loss, &bits, sizeof loss);
    loss -= of->loss;
    uint64_t left;
    SHMT_POINT("uncount:before");
    memcpy(&left, &loss, sizeof left);
    store_relaxed(&c->loss_bits, left); /* relaxed, all: my own words */
    store_relaxed(&c->examples, load_relaxed(&c->examples) - examples);
    SHMT_POINT("uncount:counted");
    store_relaxed(&of->done, 0);
    SHMT_POINT("uncount:after");
}

bool shmt_shm_take_up(struct shmt_shm_seat *p, uint64_t *piece_out) {
    const struct shmt_store *store = p->store;
    const uint64_t pieces = shmt_spec_pieces(&store->spec);
    for (; p->left_behind < pieces; p->left_behind++) {
        const uint64_t piece = p->left_behind;
        if (!is_mine(p, piece) || shmt_ledger_examples(&store->ledger[piece], p->epoch) > 0) continue;
        if (!shmt_spec_has_step(&store->spec, p->epoch, piece)) continue; /* claimed and left undone: beyond max_steps */
        p->left_behind++;
        *piece_out = piece;
        return true;
    }
    return false;
}
