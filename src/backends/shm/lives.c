/* Lives: what a seat notes of where it stands, and how its next life goes on from there.
 *
 * A seat's way through a run is a row of stages. Each ends in at most one meeting, and each but the last ones of a piece may be
 * begun again by another life and gives the same: docs/reliability.md has the list. Before it begins a stage the seat writes a
 * record of it, beside the last one; a death leaves one of them whole. Whether the dead one had come to the meeting at the end
 * of its stage says its gate: if so, the next life only waits there. What its counters of examples and losses have to be then
 * stands in a second pair of places.
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
    if (stage == SHMT_STAGE_FIT) p->now.piece = p->seat.round;
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

/* ---- examples and losses ---- */

/* The session counts a piece before it is done, and a death may come between the two. So it is noted what the counters are in
 * either case, in one of two places as records are; its next life asks the ledger. relaxed, all: read by my next life only. */
static void note_count(struct shmt_shm_seat *p, const struct shmt_shm_count *count) {
    const uint64_t number = load_relaxed(&p->slot->counts) + 1;
    p->slot->count[number % 2] = *count;
    fence_compiler();
    SHMT_POINT("note-count:before");
    store_relaxed(&p->slot->counts, number);
    SHMT_POINT("note-count:after");
    fence_compiler();
}

/* Behind the session's count of the piece in hand. */
void shmt_shm_count(struct shmt_shm_seat *p) {
    const struct shmt_counters *c = &p->slot->counters;
    const struct shmt_shm_count next = {.piece = p->piece,
                                        .epoch = (uint64_t)p->epoch + 1,
                                        .examples = {p->examples, load_relaxed(&c->examples)},
                                        .loss_bits = {p->loss_bits, load_relaxed(&c->loss_bits)}};
    if (!p->store->spec.may_die) return;
    note_count(p, &next);
    p->examples = next.examples[1];
    p->loss_bits = next.loss_bits[1];
}

static uint64_t without(uint64_t sum_bits, double loss) {
    double sum;
    memcpy(&sum, &sum_bits, sizeof sum);
    sum -= loss;
    memcpy(&sum_bits, &sum, sizeof sum_bits);
    return sum_bits;
}

static void set_counters(struct shmt_shm_seat *p, uint64_t examples, uint64_t loss_bits) {
    store_relaxed(&p->slot->counters.examples, p->examples = examples); /* relaxed, both: my own words */
    store_relaxed(&p->slot->counters.loss_bits, p->loss_bits = loss_bits);
}

void shmt_shm_uncount(struct shmt_shm_seat *p, uint64_t piece) {
    struct shmt_shm_piece *of = &p->store->ledger[piece];
    const uint64_t examples = shmt_ledger_examples(of, p->epoch);
    const struct shmt_shm_count next = {.piece = piece,
                                        .epoch = (uint64_t)p->epoch + 1,
                                        .examples = {p->examples - examples, p->examples},
                                        .loss_bits = {without(p->loss_bits, of->loss), p->loss_bits}};
    if (examples == 0) return;
    SHMT_POINT("uncount:before");
    note_count(p, &next);
    shmt_ledger_undo(of, p->epoch);
    SHMT_POINT("uncount:undone");
    set_counters(p, next.examples[0], next.loss_bits[0]);
    SHMT_POINT("uncount:after");
}

/* A gradient that is complete is offered by this life, and done then, without being counted once more. */
static void count_again(struct shmt_shm_seat *p) {
    const struct shmt_shm_count *last = &p->slot->count[load_relaxed(&p->slot->counts) % 2];
    if (last->epoch == 0 || last->piece >= shmt_spec_pieces(&p->store->spec)) {
        set_counters(p, 0, 0);
        return;
    }
    const bool offered =
        p->now.stage == SHMT_STAGE_OFFER && p->now.piece == last->piece && p->epoch + UINT64_C(1) == last->epoch;
    const bool done = offered || shmt_ledger_is_done(&p->store->ledger[last->piece], (uint32_t)(last->epoch - 1));
    set_counters(p, last->examples[done], last->loss_bits[done]);
}

/* ---- a next life ---- */

void shmt_shm_revive(struct shmt_shm_seat *p) {
    const uint64_t number = load_relaxed(&p->slot->records);
    if (number > 0) p->now = p->slot->record[number % 2]; /* else it has not begun */
    p->revived = true;
    p->phase = p->now.phase;
    p->clock = p->now.clock;
    p->met = load_relaxed(&p->front->gate.phase) > p->phase;
    if (number > 0) p->epoch = p->now.epoch;
    p->seat.round = p->now.piece; /* in a fit */
    p->seat.behind = p->met && p->now.stage == SHMT_STAGE_TURN;
    count_again(p);
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

bool shmt_shm_will_be_taken_up(const struct shmt_store *store, uint64_t piece) {
    const struct shmt_spec *spec = &store->spec;
    const uint64_t owner = load_relaxed(&store->ledger[piece].owner) & 0xffff; /* rank + 1; relaxed: all have met */
    if (!spec->may_die || spec->skips || owner == 0 || owner > spec->n_seats - spec->n_guests) return false;
    return shmt_shm_is_present(store, (uint32_t)owner - 1);
}
