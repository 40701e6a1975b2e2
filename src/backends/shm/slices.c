/* Slices of the parameters, in rounds: updates are applied by whoever needs them, each slice by one at a time and in order.
 * Called by the engine (rounds.c); rounds_priv.h says why the gradients rest meanwhile.
 *
 * A slice's lock word is (updates that it has had) << 16, plus rank + 1 of who is at the next one. It is taken by
 * compare-and-swap with acquire, and given back with the next number by a release store: so the weights and the rule's state
 * pass from one to the next, and whoever sees that all slices have had an update (acquire) sees the weights, and knows that
 * nobody reads the update's gradients any more. */
#include "backends/shm/rounds_priv.h"
#include "base/checked.h"
#include "store/table.h"

#define RANK_BITS 16

static uint64_t updates_of(uint64_t word) { return word >> RANK_BITS; }
static uint32_t holder_of(uint64_t word) { return (uint32_t)(word & ((1u << RANK_BITS) - 1)); } /* rank + 1; 0: nobody */

uint64_t shmt_shm_updates(const struct shmt_store *store) {
    return updates_of(load_relaxed(&store->slice[0].word)); /* relaxed: a number for a measurement */
}

/* The sum of the recipe's gradients, in the order of ranks. */
static const float *sum_of_recipe(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    const struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    const float *sum = NULL;
    for (uint32_t k = 0; k < recipe->n; k++) {
        const uint32_t seat = recipe->seat[k];
        if (!shmt_shm_is_touched(shmt_shm_map(p->store, seat, recipe->slot), at, n)) continue;
        const float *grad = shmt_shm_buffer(p->store, seat, recipe->slot) + at;
        if (sum) /* into scratch[0], where it may stand already */
            for (uint64_t i = 0; i < n; i++) scratch[0][i] = sum[i] + grad[i];
        sum = sum ? scratch[0] : grad;
    }
    return sum;
}

/* One walk over slices. */
struct walk {
    struct shmt_shm_seat *p;
    uint64_t most;    /* so many updates each is to have had */
    uint32_t first;   /* the slice at which I begin */
    uint32_t n;       /* how many I look at */
    uint32_t missing; /* how many have not had them */
    bool applied;     /* I have changed some */
    struct shmt_shm_times times;
};

static struct walk walk_of(struct shmt_shm_seat *p, uint64_t most) {
    const uint64_t n = p->store->layout.n_slices, first = n * p->seat.index / p->seat.n_present;
    return (struct walk){.p = p, .most = most, .first = (uint32_t)first, .n = (uint32_t)n};
}

/* Update `updates_of(word)` of slice i, which I have taken. */
static void apply_one(struct walk *walk, uint32_t i) {
    struct shmt_shm_seat *p = walk->p;
    const struct shmt_store *store = p->store;
    uint64_t from, to;
    if (!walk->applied) shmt_shm_apply_begins(p, p->rounds->recipe.step);
    walk->applied = true;
    shmt_slice(store->layout.flat.n, i, store->layout.n_slices, &from, &to);
    shmt_shm_apply_range(p, sum_of_recipe, &p->rounds->recipe.how, from, to, p->seat.trace ? &walk->times : NULL);
    if (i == 0) bump_relaxed(&p->slot->counters.updates, 1);
}

/* Applies to slice i what it has not had. False: it is somebody else's at the moment, who may leave it behind `most`. */
static bool bring(struct walk *walk, uint32_t i) {
    _Atomic uint64_t *lock = &walk->p->store->slice[i].word;
    /* acquire: the weights, and that who was at them has read the gradients; pairs with the release below */
    for (uint64_t word = load_acquire(lock); updates_of(word) < walk->most; word = load_acquire(lock)) {
        const uint64_t u = updates_of(word);
        if (holder_of(word) != 0) return false;
        if (!shmt_shm_find_recipe(walk->p, u)) continue;
        if (!lock_acquire(lock, &word, word | (walk->p->seat.rank + 1))) continue;
        apply_one(walk, i);
        store_release(lock, (u + 1) << RANK_BITS);
    }
    return true;
}

static void go_over(struct walk *walk) {
    walk->missing = 0;
    for (uint32_t k = 0; k < walk->n; k++)
        if (!bring(walk, (walk->first + k) % walk->p->store->layout.n_slices)) walk->missing++;
    if (!walk->applied) return;
    shmt_shm_apply_ends(walk->p, &walk->times);
    walk->applied = false;
    walk->times = (struct shmt_shm_times){0};
    shmt_gates_nudge(&walk->p->clocks); /* those who waited for what I was at */
}

/* For shmt_gates_wait_until: there is a slice that I can take, or none is missing. acquire: as in `bring`. */
static int is_worth_a_walk(void *arg, uint32_t *for_whom_out) {
    const struct walk *walk = arg;
    const struct shmt_store *store = walk->p->store;
    bool missing = false;
    for (uint32_t i = 0; i < store->layout.n_slices; i++) {
        const uint64_t word = load_acquire(&store->slice[i].word);
        if (updates_of(word) >= walk->most) continue;
        if (holder_of(word) == 0) return 1;
        *for_whom_out = holder_of(word) - 1;
        missing = true;
    }
    return !missing;
}

int shmt_shm_apply_until(struct shmt_shm_seat *p, uint64_t need) {
    struct walk walk = walk_of(p, need);
    if (need <= p->rounds->applied) return 0;
    for (go_over(&walk); walk.missing > 0; go_over(&walk)) {
        p->wait_ns = &p->slot->counters.wait_clock_ns;
        if (shmt_gates_wait_until(&p->clocks, is_worth_a_walk, &walk)) return SHMTRAIN_E_STOPPED;
    }
    p->rounds->applied = need;
    return 0;
}

void shmt_shm_apply_share(struct shmt_shm_seat *p, uint64_t most) {
    struct walk walk = walk_of(p, most);
    const uint64_t next = (uint64_t)walk.n * (p->seat.index + 1) / p->seat.n_present;
    walk.n = (uint32_t)next - walk.first;
    if (most > p->rounds->applied) go_over(&walk);
}
