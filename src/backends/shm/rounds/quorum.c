/* Closing rounds: which gradients an update consists of where it waits for k of n. See rounds_priv.h for the protocol. */
#include <string.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "consistency/quorum.h"
#include "sync/host.h"

#define WORDS (SHMT_MAX_SEATS / 64)

static uint64_t closed_of(uint64_t word) { return word >> SHMT_RANK_BITS; }

/* The list of the update that was closed last; NULL: none was. A rank that cannot be (of a damaged store) is taken for
 * another. */
static struct shmt_shm_list *list_of(const struct shmt_store *store, uint64_t word) {
    const uint64_t rank = word & ((1u << SHMT_RANK_BITS) - 1);
    if (rank == 0) return NULL;
    return &store->offer[shmt_min_u64(rank, store->layout.offer.n) - 1].list[(closed_of(word) - 1) % 2];
}

static uint32_t n_words(const struct shmt_store *store) { return (uint32_t)shmt_ceil_div(store->spec.n_seats, 64); }

uint64_t shmt_shm_rounds_closed(const struct shmt_store *store) {
    shmt_touch_alone((const void *)(uintptr_t)&store->control->round, sizeof(uint64_t), false);
    return closed_of(load_acquire(&store->control->round)); /* pairs with the release in `close_round` */
}

/* ---- closing ---- */

/* Who has arrived at a round, at one look. */
struct look {
    struct shmt_shm_seat *p;
    uint64_t round;
    struct shmt_attendance all;
    uint64_t in[WORDS];
};

/* How many gradients an update waits for on one host: the quorum is of workers, which have as many seats each. */
static uint32_t asked(const struct shmt_spec *spec) {
    return (uint32_t)shmt_min_u64((uint64_t)spec->policy.quorum * shmt_seats_of_worker(spec), UINT32_MAX);
}

/* How far a seat is before mine, around the circle. Of several that are missing each waiter names another one, as in the gates:
 * else the one with the highest rank would be blamed for all. */
static uint32_t before_me(const struct shmt_shm_seat *p, uint32_t seat) {
    return (p->seat.rank + p->store->spec.n_seats - 1 - seat) % p->store->spec.n_seats;
}

/* Where memory takes virtual time: a seat's clock, and what it offers. */
static void pay_for_offer(const struct shmt_store *store, uint32_t seat) {
    shmt_touch(&store->front[seat].gate.clock, sizeof(uint64_t), false);
    shmt_touch(&store->offer[seat].items, sizeof(uint64_t), false);
}

/* True when enough are there. *missing_out: somebody who has work and is not, if there is one. */
static bool look_around(struct look *look, uint32_t *missing_out) {
    const struct shmt_store *store = look->p->store;
    memset(look->in, 0, n_words(store) * sizeof *look->in);
    look->all = (struct shmt_attendance){0};
    uint32_t nearest = UINT32_MAX;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        pay_for_offer(store, seat);
        /* acquire: who has no work any more has its last clock; pairs with the release in shmt_shm_stop_counting */
        const bool works = load_acquire(&store->front[seat].working) != 0;
        /* acquire: its gradient and its offer; pairs with the release in shmt_gate_reach */
        const bool arrived = load_acquire(&store->front[seat].gate.clock) == look->round + 1;
        const bool late = arrived && load_relaxed(&store->offer[seat].late) != 0; /* relaxed: published by the clock */
        shmt_attendance_count(&look->all, works, arrived, late);
        if (arrived) look->in[seat / 64] |= UINT64_C(1) << seat % 64;
        if (!works || arrived || before_me(look->p, seat) >= nearest) continue;
        nearest = before_me(look->p, seat);
        *missing_out = seat;
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return shmt_attendance_is_enough(&look->all, asked(&store->spec));
}

/* A list, into my own offer; `before`: the word that I have seen. The words are stored with release: see rounds_priv.h. */
static void write_words(const struct shmt_shm_seat *p, uint64_t before, const struct shmt_far_round *of) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_list *last = list_of(store, before);
    struct shmt_shm_list *mine = &store->offer[p->seat.rank].list[of->round % 2];
    SHMT_POINT("list:before");
    for (uint32_t i = 0; i < n_words(store); i++) {
        store_release(&mine->in[i], of->in[i]);
        store_release(&mine->turned[i], (last ? load_acquire(&last->turned[i]) : 0) ^ of->in[i]);
    }
    SHMT_POINT("list:half");
    store_release(&mine->examples, of->examples);
    store_release(&mine->step, of->step);
}

/* The list of the round that I would close. */
static void write_list(const struct look *look, uint64_t before) {
    const struct shmt_store *store = look->p->store;
    uint64_t examples = 0, items = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        const bool in = look->in[seat / 64] >> seat % 64 & 1;
        /* relaxed, both: published by the clocks that I have seen; of the others any number of items is good enough for a
         * rate */
        items += load_relaxed(&store->offer[seat].items);
        if (in) examples += load_relaxed(&store->offer[seat].examples[0]);
    }
    const uint64_t step = items - look->all.arrived - look->all.late;
    const struct shmt_far_round of = {.round = look->round,
                                      .step = shmt_shm_replays(look->p) ? look->p->rounds->taped.closing : step,
                                      .examples = examples,
                                      .in = look->in};
    write_words(look->p, before, &of);
}

/* For my tape: relaxed, the words are mine. */
static void note_closing(const struct look *look) {
    struct shmt_shm_seat *p = look->p;
    struct shmt_taped *taped = &p->rounds->taped;
    taped->closing = load_relaxed(&p->store->offer[p->seat.rank].list[look->round % 2].step);
    taped->members = look->all.arrived + look->all.late;
}

/* Tries to close the round that `look` has found complete. False: somebody else has. */
static bool close_round(const struct look *look) {
    struct shmt_shm_seat *p = look->p;
    _Atomic uint64_t *round = &p->store->control->round;
    uint64_t word = load_acquire(round); /* pairs with the release below: the list before mine */
    if (closed_of(word) != look->round) return false;
    write_list(look, word);
    shmt_touch_alone(&p->store->offer[p->seat.rank].list[look->round % 2], sizeof(struct shmt_shm_list), true);
    shmt_touch_alone((const void *)(uintptr_t)round, sizeof *round, true);
    SHMT_POINT("close:before");
    /* release: my list, and the gradients whose arrival I have seen; pairs with the acquire of whoever looks at the word */
    if (!lock_release(round, &word, (look->round + 1) << SHMT_RANK_BITS | (p->seat.rank + 1))) return false;
    SHMT_POINT("close:after");
    if (shmt_shm_records(p)) note_closing(look);
    return true;
}

/* Whether I can close the round. Over many hosts the link does, which alone knows who has come to the others. */
static bool is_complete(struct look *look, uint32_t *missing_out) {
    if (shmt_shm_has_link(look->p->store)) *missing_out = look->p->store->spec.n_seats; /* unless it is one of ours */
    const bool enough = look_around(look, missing_out);
    if (shmt_shm_has_link(look->p->store)) return false;
    if (!shmt_shm_replays(look->p)) return enough;
    *missing_out = UINT32_MAX;
    return shmt_shm_tape_closes(look->p, look->round, look->all.arrived + look->all.late);
}

/* For shmt_gates_wait_until: the round is closed, or I can close it; or who replays is stopped. */
static int is_decided(void *arg, uint32_t *for_whom_out) {
    struct look *look = arg;
    return shmt_shm_rounds_closed(look->p->store) > look->round || is_complete(look, for_whom_out) ||
           shmt_shm_tape_is_stopped(look->p);
}

int shmt_shm_wait_for_round(struct shmt_shm_seat *p, uint64_t round) {
    struct look look = {.p = p, .round = round};
    uint32_t missing;
    p->wait_ns = &p->slot->counters.wait_clock_ns;
    while (shmt_shm_rounds_closed(p->store) <= round) {
        if (shmt_gates_wait_until(&p->clocks, is_decided, &look)) return SHMTRAIN_E_STOPPED;
        if (shmt_shm_tape_is_stopped(p)) return shmt_shm_tape_stop(p);
        /* once more: who found the round closed has not looked around */
        if (!is_complete(&look, &missing) || !close_round(&look)) continue;
        shmt_gates_notify(&p->clocks);
    }
    return 0;
}

/* Nobody has work any more, so whoever has arrived is dead and gone: that is enough for a round. */
void shmt_shm_close_for_the_dead(struct shmt_shm_seat *p) {
    struct look look = {.p = p, .round = shmt_shm_rounds_closed(p->store)};
    uint32_t missing;
    if (shmt_shm_has_link(p->store)) return; /* all come again there */
    if (look_around(&look, &missing)) (void)close_round(&look);
}

void shmt_shm_close_as_decided(struct shmt_shm_seat *p, const struct shmt_far_round *of) {
    _Atomic uint64_t *round = &p->store->control->round;
    write_words(p, load_relaxed(round), of); /* relaxed: nobody else writes it */
    SHMT_POINT("far-round:listed");
    /* release: the list, and the sum of all hosts' gradients; pairs with the acquire of whoever looks at the word */
    store_release(round, (of->round + 1) << SHMT_RANK_BITS | (p->seat.rank + 1));
    SHMT_POINT("far-round:closed");
    shmt_gates_notify(&p->clocks);
}

/* ---- reading lists ---- */

uint64_t shmt_shm_turned(const struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const uint32_t rank = p->seat.rank;
    uint64_t word, bits;
    do {
        word = load_acquire(&store->control->round);
        const struct shmt_shm_list *list = list_of(store, word);
        bits = list ? load_acquire(&list->turned[rank / 64]) : 0;
        /* relaxed: behind the acquire of a word of the list; if that was of a later one, this is, too */
    } while (load_relaxed(&store->control->round) != word);
    return bits >> rank % 64 & 1;
}

bool shmt_shm_read_list(struct shmt_shm_seat *p, uint64_t u) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    const uint64_t word = load_acquire(&store->control->round); /* pairs with the release in `close_round` */
    const struct shmt_shm_list *list = list_of(store, word);
    if (list) shmt_touch_alone(list, sizeof *list, false);
    if (!list || closed_of(word) != u + 1) return false; /* a later round was closed: by who has seen this update everywhere */
    recipe->update = UINT64_MAX;
    recipe->n = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        if (load_acquire(&list->in[seat / 64]) >> seat % 64 & 1) {
            recipe->share[recipe->n] = shmt_shm_share_of(store, seat, 0, u);
            recipe->seat[recipe->n++] = seat;
        }
    const uint64_t examples = load_acquire(&list->examples);
    recipe->step = load_acquire(&list->step);
    if (load_relaxed(&store->control->round) != word) return false; /* as in shmt_shm_turned */
    shmt_spec_update_of(&store->spec, p->epoch, recipe->step, u, &recipe->how);
    recipe->how.scale = 1.0f / (float)examples;
    recipe->slot = 0;
    recipe->clipped = false;
    recipe->update = u;
    return true;
}
