/* Pauses: all rest in the middle of an epoch, so that what was learned can be copied, and go on. Called by whoever deals work
 * (look_for_pause, pause_is_due), through the backend's entries by all seats, and by the application that made the store (ask,
 * snapshot, release, stand, resume).
 *
 * The chief alone decides. It announces a pause by control->pause_step: in `sync` before the meeting of the batch that is the
 * last before it, elsewhere at any moment. Everybody ends what it is at as at the end of an epoch, and all meet. Whether that
 * was a pause, or the epoch is over, or the run, the chief says before a second meeting: the stop word may change at any time,
 * so nobody else may go by it. It also says whether a snapshot is taken, which may be at the end of an epoch, too. Then all
 * copy, and `turn` ends the pause like an epoch: clocks are aligned, guests are let in, claims begin anew.
 *
 * A snapshot belongs to the chief while it is free or being filled, and to the application while it is full. As long as the
 * application is at the last one there is no pause: nobody ever waits for it. */
#include <string.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "consistency/chunks.h"
#include "ps/meter.h"

static bool is_batched(const struct shmt_store *store) { return shmt_policy_is_batched(&store->spec.policy); }

/* ---- when: the chief ---- */

/* One that an earlier life of the chief was about to fill is the chief's as well. */
static bool is_free(const struct shmt_store *store) {
    /* acquire: the application has read all of the last one; pairs with the release in shmt_shm_release_snapshot */
    return load_acquire(&store->control->snapshot) != SHMT_SNAPSHOT_FULL;
}

static bool is_asked(const struct shmt_shm_control *control) {
    return load_relaxed(&control->asked) != load_relaxed(&control->answered); /* relaxed: numbers that carry nothing else */
}

bool shmt_shm_pause_is_due(const struct shmt_shm_seat *chief, uint64_t steps) {
    const struct shmt_store *store = chief->store;
    const uint64_t every = store->spec.pauses.steps;
    /* In `sync` the configuration alone says at which steps; relaxed: my own word */
    const bool due = is_batched(store) ? every > 0 && steps % every == 0 : steps >= load_relaxed(&store->control->due);
    return (due || is_asked(store->control)) && is_free(store);
}

/* Of the whole run, where pieces are dealt; those of short items are counted as parts. relaxed: numbers that only grow, and
 * about so many steps are what was asked for */
static uint64_t steps_done(const struct shmt_store *store) {
    const struct shmt_spec *spec = &store->spec;
    uint64_t examples = 0;
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) examples += load_relaxed(&store->slot[seat].counters.examples);
    return spec->first_epoch * shmt_spec_steps(spec) + spec->first_step + examples / spec->item;
}

/* Counting means a look at lines of all seats: not before about half of what is missing can have been done. */
void shmt_shm_look_for_pause(struct shmt_shm_seat *chief) {
    const struct shmt_store *store = chief->store;
    struct shmt_shm_control *control = store->control;
    uint64_t steps = 0;
    if (store->spec.pauses.steps > 0 && chief->look_in-- == 0) {
        const uint64_t due = load_relaxed(&control->due); /* relaxed: my own word */
        steps = steps_done(store);
        chief->look_in = due > steps ? (due - steps) / (2 * (uint64_t)chief->seat.n_present) : 0;
    }
    if (!shmt_shm_pause_is_due(chief, steps)) return;
    SHMT_POINT("pause-step:before");
    store_relaxed(&control->pause_step, 0); /* relaxed: a flag */
    SHMT_POINT("pause-step:after");
}

/* ---- where the run stands: the chief, while all rest ---- */

struct stand {
    uint64_t steps; /* of the epoch, that are done */
    bool left;      /* there is more to be dealt in this run */
    bool complete;  /* all of the epoch is done, or lost with a guest */
};

static struct stand stand_of_batches(const struct shmt_spec *spec, uint32_t epoch, uint64_t step) {
    const bool complete = step >= shmt_spec_steps(spec);
    return (struct stand){.steps = step, .left = shmt_spec_has_step(spec, epoch, step), .complete = complete};
}

/* Pieces beyond max_steps may be claimed, and are neither done nor lost. */
static struct stand stand_of_pieces(const struct shmt_store *store, uint32_t epoch) {
    const struct shmt_spec *spec = &store->spec;
    struct stand at = {.complete = true};
    for (uint64_t i = 0; i < shmt_spec_steps(spec); i++) {
        const bool in_run = shmt_spec_has_step(spec, epoch, i), claimed = shmt_ledger_is_claimed(&store->ledger[i], epoch);
        const bool done = shmt_ledger_examples(&store->ledger[i], epoch) > 0;
        const bool lost = in_run && claimed && !done && !shmt_shm_will_be_taken_up(store, i);
        at.steps += done;
        at.left |= in_run && !done && !lost;
        at.complete &= done || lost;
    }
    return at;
}

/* Of a fit. One that was cut short stands in the middle of its epoch: there nobody goes on. */
static struct stand stand_of_fit(const struct shmt_shm_seat *p) {
    return (struct stand){.steps = p->seat.cut, .complete = !p->seat.cut};
}

static struct stand stand_of(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    if (store->spec.fits) return stand_of_fit(p);
    return is_batched(store) ? stand_of_batches(&store->spec, p->epoch, p->step) : stand_of_pieces(store, p->epoch);
}

/* In `sync` nobody waits for clocks, and they are not published: all have as many. relaxed: all have met, or have ended. */
static void note_clocks(const struct shmt_store *store) {
    const struct shmt_spec *spec = &store->spec;
    const uint64_t epoch = load_relaxed(&store->control->epoch), step = load_relaxed(&store->control->step);
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) {
        const bool is_own = seat < spec->n_seats - spec->n_guests;
        const uint64_t clock = load_relaxed(&store->front[seat].gate.clock);
        store->snapshot_clock[seat] = !is_batched(store) ? clock : is_own ? epoch * shmt_spec_steps(spec) + step : 0;
    }
}

/* Of updates in rounds only those of this run are numbered; elsewhere epoch and step say it. relaxed, all: the chief's own
 * words, which the meeting that follows publishes. */
static void note_snapshot(const struct shmt_store *store) {
    struct shmt_shm_control *control = store->control;
    const bool rounds = shmt_policy_has_rounds(&store->spec.policy);
    store_relaxed(&control->snapshot, SHMT_SNAPSHOT_FILLING);
    SHMT_POINT("snapshot:filling");
    store_relaxed(&control->snapshot_epoch, load_relaxed(&control->epoch));
    store_relaxed(&control->snapshot_step, load_relaxed(&control->step));
    note_clocks(store);
    store_relaxed(&control->snapshot_before, store->spec.steps_before + (rounds ? shmt_shm_updates(store) : 0));
}

static uint64_t steps_of_run(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    return is_batched(store) ? p->epoch * shmt_spec_steps(&store->spec) + p->step : steps_done(store);
}

/* Whether one is due at the end of an epoch that another one follows. */
static bool is_due_behind(const struct shmt_shm_seat *p, uint64_t steps) {
    const struct shmt_spec *spec = &p->store->spec;
    if (spec->fits) return !p->seat.cut && is_free(p->store);
    const uint32_t next = p->epoch + 1, every = spec->pauses.epochs;
    if (next >= spec->epochs || !shmt_spec_has_step(spec, next, 0)) return false;
    return shmt_shm_pause_is_due(p, steps) || (every > 0 && next % every == 0 && is_free(p->store));
}

/* A life of mine that dies here does it again: so what is asked for stays asked for until the turn that follows. relaxed, all:
 * nobody but me acts on the stop word, here and in `turn`; the rest as in note_snapshot. */
void shmt_shm_decide_on_pause(struct shmt_shm_seat *p) {
    if (p->seat.rank != 0) return;
    const struct shmt_store *store = p->store;
    struct shmt_shm_control *control = store->control;
    const struct stand at = stand_of(p);
    const bool stops = load_relaxed(&control->stop) != 0;
    const bool pausing = at.left && !stops && load_relaxed(&control->pause_step) != SHMT_NO_LIMIT;
    const bool copying = pausing || ((!stops || p->store->spec.fits) && is_due_behind(p, steps_of_run(p)));
    SHMT_POINT("pause:deciding");
    store_relaxed(&control->epoch, at.complete ? p->epoch + 1 : p->epoch);
    SHMT_POINT("pause:epoch");
    store_relaxed(&control->step, at.complete ? 0 : at.steps);
    SHMT_POINT("pause:step");
    store_relaxed(&control->pausing, pausing);
    SHMT_POINT("pause:pausing");
    store_relaxed(&control->copying, copying);
    if (copying) note_snapshot(store);
    SHMT_POINT("pause:decided");
}

int shmt_shm_pause(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const int rc = shmt_shm_pass_stage(p, SHMT_STAGE_PAUSE);
    if (rc < 0) return rc;
    SHMT_POINT("pause:met");
    /* relaxed, both: published by the meeting, and written again behind another one */
    p->pausing = load_relaxed(&p->store->control->pausing) != 0;
    p->copying = load_relaxed(&p->store->control->copying) != 0;
    return p->pausing;
}

/* ---- the copy ---- */

/* Part `index` of n: floats and pieces. All rest. */
static void copy_part(const struct shmt_store *store, uint64_t index, uint64_t n) {
    const uint64_t floats = store->layout.flat.n, pieces = shmt_spec_pieces(&store->spec);
    const uint64_t from = floats * index / n, some = floats * (index + 1) / n - from;
    const uint32_t epoch = load_relaxed(&store->control->snapshot_epoch); /* relaxed: published by the meeting */
    memcpy(store->snapshot + from, store->weight + from, some * sizeof(float));
    for (uint32_t plane = 0; plane < store->layout.planes; plane++)
        memcpy(store->snapshot + (1 + plane) * floats + from, store->state + plane * floats + from, some * sizeof(float));
    SHMT_POINT("copy:half");
    for (uint64_t i = pieces * index / n; i < pieces * (index + 1) / n; i++) {
        const uint64_t examples = shmt_ledger_examples(&store->ledger[i], epoch);
        store->snapshot_done[i] = (uint32_t)examples;
        store->snapshot_loss[i] = examples ? store->ledger[i].loss : 0;
    }
}

/* Those share the work whom nobody goes on without: all own seats, or the chief alone. Who has died in the middle of it does it
 * again. */
int shmt_shm_copy(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    const struct shmt_spec *spec = &p->store->spec;
    const uint32_t copiers = spec->may_lack ? 1 : spec->n_seats - spec->n_guests;
    _Atomic uint64_t *const before = seat->meter;
    if (!p->copying || p->revived) return 0; /* an earlier life that was on its way to the next leg had copied its part */
    shmt_meter_turn(seat, &p->slot->counters.pause_ns);
    SHMT_POINT("copy:before");
    if (seat->rank < copiers) copy_part(p->store, seat->rank, copiers);
    SHMT_POINT("copy:after");
    shmt_meter_turn(seat, before);
    return 1;
}

/* The next one is not due before it is asked for again. relaxed, but for the last: my own words. */
static void end_snapshot(struct shmt_shm_seat *chief) {
    struct shmt_shm_control *control = chief->store->control;
    if (load_relaxed(&control->snapshot) != SHMT_SNAPSHOT_FILLING) return; /* an earlier life has */
    const uint64_t every = chief->store->spec.pauses.steps;
    SHMT_POINT("snapshot:end");
    store_relaxed(&control->answered, load_relaxed(&control->asked));
    SHMT_POINT("snapshot:answered");
    if (every > 0) store_relaxed(&control->due, (steps_of_run(chief) / every + 1) * every);
    chief->look_in = 0;
    SHMT_POINT("snapshot:due");
    /* release: the parts of all, which the meeting has brought to me; pairs with the acquire in shmt_shm_snapshot */
    store_release(&control->snapshot, SHMT_SNAPSHOT_FULL);
    SHMT_POINT("snapshot:full");
}

void shmt_shm_copied(struct shmt_shm_seat *p) {
    if (p->copying && p->seat.rank == 0) end_snapshot(p);
    p->pausing = p->copying = false;
}

/* ---- the application ---- */

void shmt_shm_request_snapshot(struct shmt_store *store) {
    bump_relaxed(&store->control->asked, 1); /* a number that carries nothing else */
}

/* relaxed, all: behind the acquire of `snapshot`, or my own */
static void show(const struct shmt_store *store, struct shmt_snapshot *out) {
    const struct shmt_shm_control *control = store->control;
    const uint64_t floats = store->layout.flat.n;
    *out = (struct shmt_snapshot){.at = {.epoch = load_relaxed(&control->snapshot_epoch),
                                         .step = load_relaxed(&control->snapshot_step),
                                         .steps_before = load_relaxed(&control->snapshot_before)},
                                  .weight = store->snapshot,
                                  .state = store->layout.planes ? store->snapshot + floats : NULL,
                                  .n_floats = floats,
                                  .start = store->layout.flat.start,
                                  .planes = store->layout.planes,
                                  .n_clocks = store->spec.n_seats,
                                  .clock = store->snapshot_clock,
                                  .n_pieces = shmt_spec_pieces(&store->spec),
                                  .done = store->snapshot_done,
                                  .loss = store->snapshot_loss};
}

int shmt_shm_snapshot(struct shmt_store *store, struct shmt_snapshot *out) {
    if (!store->spec.pauses.allowed) return 0;
    /* acquire: all that it consists of; pairs with the release in shmt_shm_copied */
    if (load_acquire(&store->control->snapshot) != SHMT_SNAPSHOT_FULL) return 0;
    show(store, out);
    return 1;
}

void shmt_shm_release_snapshot(struct shmt_store *store) {
    /* release: I have read all of it; pairs with the acquire in is_free */
    store_release(&store->control->snapshot, SHMT_SNAPSHOT_FREE);
}

/* Of a fit that was cut short there is only the last snapshot. relaxed: the workers have been waited for: their words are mine */
static int stand_before(struct shmt_store *store, struct shmt_snapshot *out) {
    if (load_relaxed(&store->control->snapshot_epoch) == 0) return 0;
    store_relaxed(&store->control->snapshot, SHMT_SNAPSHOT_FULL);
    show(store, out);
    return 1;
}

int shmt_shm_final_snapshot(struct shmt_store *store, struct shmt_snapshot *out) {
    if (!store->spec.pauses.allowed) return 0;
    if (store->spec.fits && load_relaxed(&store->control->step) > 0) return stand_before(store, out);
    note_snapshot(store); /* the workers have been waited for: their words are mine */
    copy_part(store, 0, 1);
    store_relaxed(&store->control->snapshot, SHMT_SNAPSHOT_FULL);
    show(store, out);
    return 1;
}

/* ---- going on from a snapshot ---- */

/* Examples of a piece; 0: a chunk of a short last batch may have none. */
static uint64_t examples_of_piece(const struct shmt_store *store, uint64_t piece) {
    const struct shmt_spec *spec = &store->spec;
    uint64_t from, to;
    if (!is_batched(store)) return shmt_spec_examples_of_step(spec, piece);
    const uint64_t n = shmt_spec_examples_of_step(spec, piece / spec->n_chunks);
    shmt_chunk_examples(spec->batch, spec->n_chunks, (uint32_t)(piece % spec->n_chunks), n, &from, &to);
    return to - from;
}

/* In `sync` the first steps, and whole ones. */
static bool may_be_done(const struct shmt_store *store, uint64_t piece, uint64_t examples) {
    const struct shmt_spec *spec = &store->spec;
    const uint64_t all = examples_of_piece(store, piece);
    if (!is_batched(store)) return examples == 0 || examples == all;
    return examples == (piece / spec->n_chunks < spec->first_step ? all : 0);
}

int shmt_shm_resume(struct shmt_store *store, const uint32_t *done, const double *loss, struct shmt_error *e) {
    const struct shmt_spec *spec = &store->spec;
    uint64_t steps = 0;
    bool fits = done || spec->first_step == 0;
    for (uint64_t i = 0; done && fits && i < shmt_spec_pieces(spec); i++) {
        fits = may_be_done(store, i, done[i]);
        steps += done[i] > 0;
    }
    if (done && !is_batched(store)) fits &= steps == spec->first_step;
    if (!fits)
        return shmt_fail(e, SHMTRAIN_E_DATA, "the list of finished work of epoch %u does not match its %llu finished steps",
                         spec->first_epoch + 1, (unsigned long long)spec->first_step);
    for (uint64_t i = 0; done && i < shmt_spec_pieces(spec); i++)
        if (done[i] > 0) shmt_ledger_resume(&store->ledger[i], spec->first_epoch, done[i], loss[i]);
    return 0;
}
