/* The engine of rounds: `aggregate` with staleness, or with a quorum. Items are dealt as in the live modes; a gradient is added
 * up in a buffer of its own, and an update is of those gradients that it has. The protocol is told in rounds_priv.h.
 *
 * With staleness s a worker begins clock c when nobody who has work is behind clock c - s, and sees all updates up to
 * c - s - 1. It brings its share of the slices further, to what is complete, so that others see more than they must; who is
 * at its bound helps wherever something is to be done. With a quorum a worker waits until its round is closed, then until that
 * update is applied everywhere. A late one goes on with the round that is open; its gradient is dropped, or offered for that
 * round first, without counting towards its quorum. */

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/own.h"
#include "base/point.h"
#include "sync/host.h"
#include "update/kernels.h"

static uint64_t ring(const struct shmt_store *store) { return store->spec.policy.staleness + 1; }

/* The buffer of the clock that I am at. */
static uint32_t slot_of(const struct shmt_shm_seat *p) { return (uint32_t)(p->clock % ring(p->store)); }

/* ---- who takes part ---- */

static void share(struct shmt_shm_seat *p) {
    struct shmt_shm_rounds *r = p->rounds;
    p->first = r->applied = p->clock;                  /* nobody has begun yet, and all slices have had the same updates */
    r->items = load_relaxed(&p->store->control->step); /* relaxed: published by the meeting, or before workers exist */
    r->recipe.update = UINT64_MAX;
    if (!shmt_shm_has_quorum(p->store) || shmt_shm_is_link(p)) return;
    r->turned = shmt_shm_turned(p);                               /* I have no offer that could turn it */
    p->done = load_relaxed(&p->store->offer[p->seat.rank].items); /* relaxed: my own word, or as above */
}

/* An earlier life was at work in this epoch, or is to be done with it. */
static void go_on(struct shmt_shm_seat *p) {
    struct shmt_shm_rounds *r = p->rounds;
    if (p->now.stage < SHMT_STAGE_WORK) return; /* it had not begun: what share() found is right */
    p->first = r->applied = p->now.first;
    p->done = p->now.done;
    if (p->now.stage == SHMT_STAGE_OFFER) r->turned = p->now.turned;
}

static int enter(struct shmt_shm_seat *p) {
    const uint32_t n_seats = p->store->spec.n_seats;
    p->rounds = shmt_own_calloc(1, sizeof *p->rounds);
    if (p->rounds) p->rounds->recipe.seat = shmt_own_calloc(n_seats, sizeof *p->rounds->recipe.seat);
    if (p->rounds) p->rounds->recipe.share = shmt_own_calloc(n_seats, sizeof *p->rounds->recipe.share);
    if (!p->rounds || !p->rounds->recipe.seat || !p->rounds->recipe.share)
        return shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY, "not enough memory for the gradients of %u workers", n_seats);
    shmt_shm_deal_begin(p);
    if (!p->guest) share(p); /* a guest's clock is known when it is let in */
    if (p->revived) go_on(p);
    return 0;
}

static void leave(struct shmt_shm_seat *p) {
    if (!p->rounds) return;
    shmt_own_free(p->rounds->recipe.seat);
    shmt_own_free(p->rounds->recipe.share);
    shmt_own_free(p->rounds);
}

/* ---- updates ---- */

/* relaxed: published by the clock, or (a late one) by an earlier one; it rests while a slice lacks the update. */
float shmt_shm_share_of(const struct shmt_store *store, uint32_t seat, uint32_t slot, uint64_t u) {
    if (!store->spec.staleness_aware) return 1;
    const uint64_t pulled = load_relaxed(&store->offer[seat].pulled[slot]);
    return u > pulled + 1 ? 1 / (float)(u - pulled) : 1;
}

/* What update u consists of is said by the clocks: acquire, as in look_around (quorum.c). */
static bool read_clocks(struct shmt_shm_seat *p, uint64_t u) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    const uint32_t slot = (uint32_t)(u % ring(store));
    uint64_t examples = 0;
    recipe->n = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        if (!shmt_shm_takes_part(p, seat) || load_acquire(&store->front[seat].gate.clock) <= u) continue;
        recipe->share[recipe->n] = shmt_shm_share_of(store, seat, slot, u);
        recipe->seat[recipe->n++] = seat;
        examples += load_relaxed(&store->offer[seat].examples[slot]); /* published by the clock */
    }
    recipe->step =
        p->rounds->items + (u - p->first) * p->seat.n_present; /* about: at an epoch's end some have run out of work */
    shmt_spec_update_of(&store->spec, p->epoch, recipe->step, u, &recipe->how);
    recipe->how.scale = 1.0f / (float)examples;
    recipe->slot = slot;
    recipe->clipped = false;
    recipe->update = u;
    return true;
}

bool shmt_shm_find_recipe(struct shmt_shm_seat *p, uint64_t u) {
    if (p->rounds->recipe.update == u) return true;
    return shmt_shm_has_quorum(p->store) ? shmt_shm_read_list(p, u) : read_clocks(p, u);
}

/* ---- out of work ---- */

/* Everybody's last clock of the epoch, when all have none left. */
static uint64_t last_clock(const struct shmt_shm_seat *p) {
    uint64_t last = p->clock;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++)
        if (shmt_shm_takes_part(p, seat)) /* relaxed: all have met */
            last = shmt_max_u64(last, load_relaxed(&p->store->front[seat].gate.clock));
    return last;
}

/* With a quorum: of seats that have died and do not come again. A round may have been closed and not applied; then one may have been
 * offered a gradient, and not been closed. */
static int finish_quorum(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_apply_until(p, shmt_shm_rounds_closed(p->store));
    if (rc < 0) return rc;
    SHMT_POINT("finish:applied");
    shmt_shm_close_for_the_dead(p);
    return shmt_shm_apply_until(p, shmt_shm_rounds_closed(p->store));
}

/* I have run out of work: when all have, what is left to be applied is. */
int shmt_shm_finish_rounds(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_pass_stage(p, SHMT_STAGE_FINISH);
    if (rc < 0) return rc;
    return shmt_shm_has_quorum(p->store) ? finish_quorum(p) : shmt_shm_apply_until(p, last_clock(p));
}

/* ---- with staleness ---- */

static int publish_clock(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    const struct shmt_store *store = p->store;
    SHMT_POINT("publish:before");
    store_relaxed(&store->offer[p->seat.rank].examples[slot_of(p)], p->work.n); /* published by the clock */
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, ++p->clock);
    *out = (struct shmtrain_fate){.clock = p->clock, .applied = (uint32_t)p->work.n};
    p->rounds->taped.applied = p->clock - 1;
    if (shmt_shm_replays(p)) { /* it waits when it begins the next one */
        shmt_gates_notify(&p->clocks);
        return 0;
    }
    const uint64_t target = shmt_policy_wait_for(&store->spec.policy, p->clock);
    p->slowest = shmt_gates_min(&p->clocks, SHMT_GATE_CLOCK);
    int rc = shmt_shm_apply_share(p, p->slowest);
    if (rc == 0) rc = shmt_shm_wait_for_slowest(p, target);
    return rc < 0 ? rc : shmt_shm_apply_until(p, target);
}

/* ---- with a quorum ---- */

/* I go on with the round that is open when all before it are applied everywhere. */
int shmt_shm_catch_up(struct shmt_shm_seat *p) {
    do {
        p->clock = shmt_shm_rounds_closed(p->store);
        const int rc = shmt_shm_apply_until(p, p->clock);
        if (rc < 0) return rc;
    } while (shmt_shm_rounds_closed(p->store) != p->clock); /* it was closed while I was at the slices: I would be late */
    return 0;
}

/* Offers my gradient for the open round, and waits until that is closed. 1: it got in, 0: it came too late. */
static int offer(struct shmt_shm_seat *p) {
    struct shmt_shm_offer *mine = &p->store->offer[p->seat.rank];
    struct shmt_shm_rounds *r = p->rounds;
    const uint64_t round = p->clock, before = r->turned;
    SHMT_POINT("offer:before");
    store_relaxed(&mine->late, r->late); /* published by the clock */
    SHMT_POINT("offer:late");
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, round + 1);
    if (shmt_shm_replays(p)) shmt_gates_notify(&p->clocks);
    const int rc = shmt_shm_wait_for_round(p, round);
    if (rc < 0) return rc;
    SHMT_POINT("offer:decided");
    r->turned = shmt_shm_turned(p);
    if (r->turned != before) r->taped.applied = round;
    return r->turned != before;
}

/* Late, to be folded: for the round that is open, until it gets in. */
static int offer_late(struct shmt_shm_seat *p) {
    int in = 0;
    p->rounds->late = true;
    while (in == 0) {
        (void)shmt_shm_begin_stage(p, SHMT_STAGE_OFFER);
        in = offer(p);
        const int rc = in < 0 ? in : shmt_shm_catch_up(p);
        if (rc < 0) return rc;
    }
    return 0;
}

/* What became of the gradient in hand becomes of it again. */
static int publish_taped(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    const struct shmt_taped *taped = &p->rounds->taped;
    const uint32_t examples = (uint32_t)p->work.n;
    const bool dropped = taped->applied == SHMT_TAPED_NONE, late = !dropped && taped->applied != p->clock;
    struct shmtrain_fate fate = {.dropped = dropped ? examples : 0, .folded = late ? examples : 0};
    int rc = 0;
    if (late) rc = shmt_shm_tape_wait(p, taped->applied);
    if (rc < 0) return rc;
    if (!dropped) {
        p->clock = taped->applied;
        p->rounds->late = late;
        rc = shmt_shm_tape_check_in(p, offer(p));
        if (rc == 1) rc = shmt_shm_apply_until(p, ++p->clock);
    }
    if (!dropped && !late) fate.applied = examples;
    fate.clock = p->clock;
    *out = fate;
    return rc;
}

static int publish_offer(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    struct shmt_shm_offer *mine = &p->store->offer[p->seat.rank];
    const uint32_t examples = (uint32_t)p->work.n;
    struct shmtrain_fate fate = {0};
    store_relaxed(&mine->examples[0], p->work.n); /* published by the clock, both */
    store_relaxed(&mine->items, p->done + 1);
    if (shmt_shm_replays(p)) return publish_taped(p, out);
    const int in = offer(p);
    int rc = in < 0 ? in : shmt_shm_catch_up(p);
    if (rc < 0) return rc;
    if (in == 1) {
        fate.applied = examples;
    } else if (p->store->spec.policy.late == SHMT_LATE_DROP) {
        fate.dropped = examples;
    } else {
        fate.folded = examples;
        rc = offer_late(p);
    }
    fate.clock = p->clock;
    *out = fate;
    return rc;
}

/* Whatever it was has become of it. Counted behind the record, so that no other life counts it again. */
static void settle(struct shmt_shm_seat *p, const struct shmtrain_fate *fate) {
    struct shmt_counters *c = &p->slot->counters;
    p->done++;
    if (shmt_shm_records(p)) shmt_shm_tape_keep(p);
    (void)shmt_shm_begin_stage(p, SHMT_STAGE_WORK);
    bump_relaxed(&c->dropped, fate->dropped); /* relaxed, both: my own words */
    bump_relaxed(&c->folded, fate->folded);
    SHMT_POINT("settle:after");
}

/* A late one of an earlier life, which was offering it once more. */
static int publish_late(struct shmt_shm_seat *p) {
    const int rc = offer_late(p);
    if (rc < 0) return rc;
    SHMT_POINT("late:after");
    settle(p, &(const struct shmtrain_fate){.folded = (uint32_t)p->work.n});
    return 0;
}

/* ---- the engine ---- */

/* With a quorum all updates before my clock are applied everywhere; with staleness, those that all slices have had. What a slice gets while
 * I compute is not counted. It stays behind a death, whose next life offers the same gradient. */
static void note_pulled(struct shmt_shm_seat *p, uint32_t slot) {
    const bool waits = shmt_shm_has_quorum(p->store); /* until they are applied */
    uint64_t seen = waits ? p->clock : shmt_min_u64(shmt_shm_updates_of_all(p->store), p->clock);
    if (p->store->spec.tape.use) seen = p->rounds->taped.pulled;      /* the copy's */
    store_relaxed(&p->store->offer[p->seat.rank].pulled[slot], seen); /* published by the clock */
}

/* Whatever stands in my buffer was applied, or dropped. */
static void begin_gradient(struct shmt_shm_seat *p) {
    const uint32_t slot = slot_of(p);
    if (p->store->spec.staleness_aware) note_pulled(p, slot);
    shmt_clear(shmt_shm_buffer(p->store, p->seat.rank, slot), shmt_shm_map(p->store, p->seat.rank, slot),
               p->store->layout.flat.n);
}

/* Where memory takes virtual time: others have read what lies where the gradient was written, and the words of my last offer. */
static void pay_for_gradient(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint32_t rank = p->seat.rank, slot = slot_of(p);
    const uint64_t n = store->layout.flat.n;
    if (!shmt_host_touches()) return;
    for (uint64_t at = 0, end; at < n; at = end) {
        end = shmt_min_u64(at + SHMT_SHM_BLOCK, n);
        if (shmt_shm_is_touched(shmt_shm_map(store, rank, slot), at, end - at))
            shmt_touch(shmt_shm_buffer(store, rank, slot) + at, (end - at) * sizeof(float), true);
    }
    shmt_touch(&store->offer[rank].items, sizeof(uint64_t), true);
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

/* The gradient of the piece in hand is complete. */
static int publish(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    p->rounds->late = p->rounds->on_copy = false;
    pay_for_gradient(p);
    (void)shmt_shm_begin_stage(p, SHMT_STAGE_OFFER);
    shmt_ledger_done(&p->store->ledger[p->piece], p->epoch, p->work.n);
    const int rc = shmt_shm_has_quorum(p->store) ? publish_offer(p, out) : publish_clock(p, out);
    if (rc < 0) return rc;
    settle(p, out);
    return 0;
}

/* For my next life, before it is marked as done: my gradient of the piece in hand is complete. */
static void record_offer(struct shmt_shm_seat *p) {
    p->now.piece = p->piece;
    p->now.flag = p->rounds->late;
    p->now.turned = (uint8_t)p->rounds->turned;
}

/* An earlier life had a gradient complete, and has offered it or not: I do what it would have done. */
static int resume_offer(struct shmt_shm_seat *p) {
    struct shmtrain_fate fate;
    p->piece = p->now.piece;
    p->work.n = shmt_spec_examples_of_step(&p->store->spec, p->piece);
    const int rc = p->now.flag ? publish_late(p) : publish(p, &fate);
    return rc < 0 ? rc : 1;
}

/* What it was at otherwise is done anew, in a buffer in which anything may stand. */
static int resume_work(struct shmt_shm_seat *p) {
    shmt_shm_clear_whole(p->store, p->seat.rank, slot_of(p));
    return 1;
}

static int claim(struct shmt_shm_seat *p) {
    int rc = shmt_shm_deal(p);
    if (rc == 0) return shmt_shm_finish_rounds(p);
    if (rc < 0) return rc;
    if (p->store->spec.tape.use)
        rc = shmt_shm_tape_pull(p);
    else if (shmt_shm_has_quorum(p->store))
        rc = shmt_shm_catch_up(p); /* rounds may have been closed since my last one, or before my first */
    if (rc < 0) return rc;
    p->rounds->on_copy = p->store->spec.tape.use != SHMT_TAPE_OFF;
    SHMT_POINT("gradient:before");
    begin_gradient(p);
    return 1;
}

/* Between gradients all see the parameters themselves, also where these are computed on copies. */
static void memory(const struct shmt_shm_seat *p, struct shmt_shm_memory *out) {
    const uint32_t slot = slot_of(p);
    const bool on_copy = p->rounds->on_copy;
    *out = (struct shmt_shm_memory){.weight = on_copy ? shmt_shm_pulled(p->store, p->seat.rank) : p->store->weight,
                                    .sink = shmt_shm_buffer(p->store, p->seat.rank, slot),
                                    .touched = shmt_shm_map(p->store, p->seat.rank, slot)};
}

/* Of the epoch that is over: mine, and, if I am the chief, those of who has left or is gone on without. relaxed: published by
 * the meeting that follows. */
static void forget_items(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    store_relaxed(&store->offer[p->seat.rank].items, 0);
    for (uint32_t seat = 1; p->seat.rank == 0 && seat < store->spec.n_seats; seat++)
        if (!shmt_shm_is_present(store, seat)) store_relaxed(&store->offer[seat].items, 0);
}

/* Over many hosts the link applies what nobody else is there for, and its counters are nobody's: so the chief's make up for them. All hosts
 * have made as many updates. relaxed, all: all have met. */
static void count_for_link(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    uint64_t counted = 0;
    if (p->seat.rank != 0 || !shmt_shm_has_link(store)) return;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) counted += load_relaxed(&store->slot[seat].counters.updates);
    bump_relaxed(&p->slot->counters.updates, shmt_shm_rounds_closed(store) - counted);
}

/* All have met. With staleness all slices have had as many updates as the largest clock says; with a quorum clocks become the
 * number of closed rounds, which none is beyond: see `finish_quorum`. */
static void align(struct shmt_shm_seat *p) {
    if (shmt_shm_has_quorum(p->store)) p->clock = shmt_shm_rounds_closed(p->store);
    count_for_link(p);
    if (!p->pausing) forget_items(p);
    shmt_shm_align_clocks(p);
}

/* What a gradient has not seen of the updates before its own: with staleness that is known when it is begun, though most of
 * these updates are made later; with a quorum it is what others have closed meanwhile. */
static uint64_t updates(const struct shmt_shm_seat *p) { return shmt_shm_updates(p->store); }
static uint64_t missed(const struct shmt_shm_seat *p) {
    return (shmt_shm_has_quorum(p->store) ? updates(p) : p->clock) - p->others;
}

const struct shmt_shm_engine SHMT_SHM_ROUNDS = {
    .stage = {[SHMT_STAGE_WORK] = {.resume = resume_work},
              [SHMT_STAGE_OFFER] = {.record = record_offer, .names_piece = true, .resume = resume_offer},
              [SHMT_STAGE_FINISH] = {.work = shmt_shm_stop_counting,
                                     .wait = shmt_shm_wait_epoch,
                                     .resume = shmt_shm_finish_rounds}},
    .enter = enter,
    .leave = leave,
    .share = share,
    .claim = claim,
    .memory = memory,
    .publish = publish,
    .align = align,
    .updates = updates,
    .missed = missed};
