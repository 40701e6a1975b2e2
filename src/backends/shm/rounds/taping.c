/* Rounds that are recorded, or replayed (ps/tape.h). Called by the engine (rounds.c) and by who closes rounds (quorum.c), where the
 * spec says so.
 *
 * Recorded: a gradient is computed on a copy of weights that all have had the same updates, and when it is settled what became of it
 * goes to the tape.
 *
 * Replayed: the tape says what the seat does next, and the protocol is that of rounds.c with other things to wait for. A gradient
 * is begun when all weights have had the updates that its tape names, and no further one: an update is neither closed nor applied
 * while a gradient that had not seen it is still to be begun, which is what a tape's `next` says. A seat comes to a round with a
 * gradient that got in there, and to no other, so that a round is complete when as many have come as its tape says; who closed it
 * then closes it now. Gradients that were dropped are never offered.
 *
 * Who waits here is woken by notices alone: each seat gives one when it has begun a gradient, and when its clock has gone on. */
#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"

static struct shmt_tape *tape_of(const struct shmt_store *store, uint32_t seat) {
    return (struct shmt_tape *)(void *)(store->tape + seat * store->layout.tape.each);
}

static const struct shmt_taped *next_of(const struct shmt_shm_seat *p) {
    struct shmt_tape *tape = tape_of(p->store, p->seat.rank);
    const uint64_t n = shmt_min_u64(load_relaxed(&tape->n), p->store->spec.tape.room); /* relaxed: constant while workers are */
    return p->rounds->begun < n ? &shmt_tape_gradients(tape)[p->rounds->begun] : NULL;
}

/* ---- recording ---- */

void shmt_shm_tape_keep(struct shmt_shm_seat *p) {
    struct shmt_tape *tape = tape_of(p->store, p->seat.rank);
    const uint64_t n = load_relaxed(&tape->n); /* relaxed: my own word */
    if (n < p->store->spec.tape.room) shmt_tape_gradients(tape)[n] = p->rounds->taped;
    store_relaxed(&tape->n, n + 1); /* relaxed: read when my team has been waited for */
}

/* So many updates some slice has had: with staleness they are all decided. */
static uint64_t most_updates(const struct shmt_store *store) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < store->layout.n_slices; i++) /* acquire: pairs with the release in `apply_one` (slices.c) */
        most = shmt_max_u64(most, load_acquire(&store->slice[i].word) >> SHMT_RANK_BITS);
    return most;
}

/* Until nobody has brought a slice further meanwhile. With staleness that is at most once for each clock; with a quorum others go on
 * without me, as long as they have work. */
static int pull_to_record(struct shmt_shm_seat *p) {
    const bool quorum = shmt_shm_has_quorum(p->store);
    int copied = 0, rc = 0;
    uint64_t had = 0;
    while (copied == 0 && rc == 0) {
        if (quorum) rc = shmt_shm_catch_up(p);
        had = quorum ? p->clock : most_updates(p->store);
        if (rc == 0) rc = shmt_shm_apply_until(p, had);
        if (rc == 0) copied = shmt_shm_copy_weights(p, had);
    }
    p->rounds->taped =
        (struct shmt_taped){.step = p->work.step, .pulled = had, .applied = SHMT_TAPED_NONE, .closing = SHMT_TAPED_NONE};
    return rc < 0 ? rc : copied < 0 ? copied : 0;
}

/* ---- replaying ---- */

/* Waits depend on what all others do, so nobody can leave between two epochs. */
int shmt_shm_tape_stop(struct shmt_shm_seat *p) {
    return shmt_fail(&p->seat.error, SHMTRAIN_E_STOPPED, "the replay was stopped before its end");
}

static int departed(struct shmt_shm_seat *p, const char *how) {
    return shmt_fail(&p->seat.error, SHMTRAIN_E_DATA, "the replay departs from the record: worker %u %s", p->seat.rank, how);
}

bool shmt_shm_tape_is_stopped(const struct shmt_shm_seat *p) {
    return shmt_shm_replays(p) && load_relaxed(&p->store->control->stop) != 0; /* relaxed: a flag */
}

bool shmt_shm_tape_allows(const struct shmt_store *store, uint64_t update) {
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) /* acquire: pairs with the release in `pull_to_replay` */
        if (load_acquire(&tape_of(store, seat)->next) <= update) return false;
    return true;
}

bool shmt_shm_tape_closes(const struct shmt_shm_seat *p, uint64_t round, uint32_t n_arrived) {
    const struct shmt_taped *mine = &p->rounds->taped;
    return mine->closing != SHMT_TAPED_NONE && mine->applied == round && mine->members == n_arrived &&
           shmt_shm_tape_allows(p->store, round);
}

struct need {
    const struct shmt_shm_seat *p;
    uint64_t updates;
};

/* For shmt_gates_wait_until: so many updates are decided; with staleness they may be applied, too. */
static int is_there(void *arg, uint32_t *for_whom_out) {
    const struct need *need = arg;
    const struct shmt_shm_seat *p = need->p;
    *for_whom_out = UINT32_MAX;
    if (need->updates == 0 || shmt_shm_tape_is_stopped(p)) return 1;
    if (shmt_shm_has_quorum(p->store)) return shmt_shm_rounds_closed(p->store) >= need->updates;
    return shmt_gates_min(&p->clocks, SHMT_GATE_CLOCK) >= need->updates && shmt_shm_tape_allows(p->store, need->updates - 1);
}

int shmt_shm_tape_wait(struct shmt_shm_seat *p, uint64_t updates) {
    struct need need = {p, updates};
    p->wait_ns = &p->slot->counters.wait_clock_ns;
    if (shmt_gates_wait_until(&p->clocks, is_there, &need)) return SHMTRAIN_E_STOPPED;
    return shmt_shm_tape_is_stopped(p) ? shmt_shm_tape_stop(p) : shmt_shm_apply_until(p, updates);
}

int shmt_shm_tape_claim(struct shmt_shm_seat *p, uint64_t *piece_out) {
    const uint64_t steps = shmt_spec_steps(&p->store->spec);
    const struct shmt_taped *next = next_of(p);
    if (shmt_shm_tape_is_stopped(p)) return shmt_shm_tape_stop(p);
    if (p->epoch >= p->store->spec.tape.epochs) return departed(p, "comes to an epoch that was not recorded");
    if (!next || next->step / steps != p->epoch) return 0;
    *piece_out = next->step % steps;
    if (!shmt_ledger_take(&p->store->ledger[*piece_out], p->epoch, p->seat.life, p->seat.rank))
        return departed(p, "comes to an item that is another one's");
    return 1;
}

static int pull_to_replay(struct shmt_shm_seat *p) {
    struct shmt_shm_rounds *r = p->rounds;
    const struct shmt_taped *next = next_of(p);
    r->taped = *next; /* there is one: the piece in hand is from it */
    int rc = shmt_shm_tape_wait(p, r->taped.pulled);
    if (rc < 0) return rc;
    if (shmt_shm_has_quorum(p->store)) p->clock = r->taped.pulled;
    rc = shmt_shm_copy_weights(p, r->taped.pulled);
    if (rc < 1) return rc < 0 ? rc : departed(p, "finds more updates than it had seen");
    r->begun++;
    next = next_of(p);
    /* release: I have read the weights; pairs with the acquire in shmt_shm_tape_allows */
    store_release(&tape_of(p->store, p->seat.rank)->next, next ? next->pulled : SHMT_TAPED_NONE);
    shmt_gates_notify(&p->clocks);
    return 0;
}

int shmt_shm_tape_check_in(struct shmt_shm_seat *p, int in) {
    return in == 0 && shmt_shm_replays(p) ? departed(p, "offers a gradient that comes too late") : in;
}

int shmt_shm_tape_pull(struct shmt_shm_seat *p) { return shmt_shm_replays(p) ? pull_to_replay(p) : pull_to_record(p); }
