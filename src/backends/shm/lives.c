/* Lives: how a seat goes on from where an earlier life of it has died.
 *
 * A seat's way through a run is a row of stages, each with a record (stages.c). Each but the last ones of a piece may be begun again
 * by another life and gives the same: docs/reliability.md has the list. Whether the dead one had come to the meeting at the end of its
 * stage says its gate: if so, the next life only waits there. What its counters of examples and losses have to be then stands in
 * a second pair of places.
 *
 * Called by the engines and by the backend's entries, in the worker. Before that shmt_shm_reclaim (deaths.c) has undone what was
 * half done. */
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "base/point.h"

/* ---- examples and losses ---- */

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
    shmt_shm_note_count(p, &next);
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

/* ---- pieces of the ledger ---- */

static bool is_mine(const struct shmt_shm_seat *p, uint64_t piece) {
    return shmt_ledger_is_of(&p->store->ledger[piece], p->epoch, p->seat.rank);
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
