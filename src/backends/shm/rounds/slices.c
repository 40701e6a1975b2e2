/* Slices of the parameters, in rounds: updates are applied by whoever needs them, each slice by one at a time and in order.
 * Called by the engine (rounds.c); rounds_priv.h says why the gradients rest meanwhile.
 *
 * A slice's lock word is (updates that it has had) << 16, plus rank + 1 of who is at the next one. It is taken by
 * compare-and-swap with acquire, and given back with the next number by a release store: so the weights and the rule's state
 * pass from one to the next, and whoever sees that all slices have had an update (acquire) sees the weights, and knows that
 * nobody reads the update's gradients any more. */
#include <string.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "base/checked.h"
#include "base/point.h"
#include "ps/norm.h"
#include "sync/host.h"
#include "update/table.h"

static uint64_t updates_of(uint64_t word) { return word >> SHMT_RANK_BITS; }
static uint32_t holder_of(uint64_t word) { return (uint32_t)(word & ((1u << SHMT_RANK_BITS) - 1)); } /* rank + 1; 0: nobody */

uint64_t shmt_shm_updates(const struct shmt_store *store) {
    return updates_of(load_relaxed(&store->slice[0].word)); /* relaxed: a number for a measurement */
}

uint64_t shmt_shm_updates_of_all(const struct shmt_store *store) {
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < store->layout.n_slices;
         i++) /* relaxed: the number says by how much a gradient is divided, no more */
        least = shmt_min_u64(least, updates_of(load_relaxed(&store->slice[i].word)));
    return least;
}

const float *shmt_shm_sum_of_members(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    const struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    const float *sum = NULL;
    for (uint32_t k = 0; k < recipe->n; k++) {
        const uint32_t seat = recipe->seat[k];
        if (!shmt_shm_is_touched(shmt_shm_map(p->store, seat, recipe->slot), at, n)) continue;
        const float *grad = shmt_shm_buffer(p->store, seat, recipe->slot) + at, share = recipe->share[k];
        shmt_touch(grad, n * sizeof *grad, false);
        if (!sum && share == 1) {
            sum = grad;
            continue;
        }
        if (sum) /* into scratch[0], where it may stand already */
            for (uint64_t i = 0; i < n; i++) scratch[0][i] = sum[i] + share * grad[i];
        else
            for (uint64_t i = 0; i < n; i++) scratch[0][i] = share * grad[i];
        sum = scratch[0];
    }
    return sum;
}

/* The sum of the recipe's gradients, in the order of ranks; over many hosts the link has added up those of all. */
static const float *sum_of_recipe(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]) {
    return shmt_shm_has_link(p->store) ? shmt_shm_far_total(p->store, at, n) : shmt_shm_sum_of_members(p, at, n, scratch);
}

static uint32_t adds_of_recipe(const struct shmt_shm_seat *p) { return p->rounds->recipe.n > 0 ? p->rounds->recipe.n - 1 : 0; }

static const struct shmt_shm_sum SUM = {.of = sum_of_recipe, .adds = adds_of_recipe};

/* One walk over slices. */
struct walk {
    struct shmt_shm_seat *p;
    uint64_t most;    /* so many updates each is to have had */
    uint64_t to;      /* at the moment I bring them to this */
    uint32_t first;   /* the slice at which I begin */
    uint32_t n;       /* how many I look at */
    uint32_t left;    /* so many updates of slices I make yet, then I leave the rest */
    uint32_t missing; /* how many have not had them */
    bool applied;     /* I have changed some */
};

static struct walk walk_of(struct shmt_shm_seat *p, uint64_t most) {
    const uint64_t n = p->store->layout.n_slices, first = n * p->seat.index / p->seat.n_present;
    return (struct walk){.p = p, .most = most, .first = (uint32_t)first, .n = (uint32_t)n, .left = UINT32_MAX};
}

/* Tries to take slice i; the word that I have seen is there still, then. What I say of my progress is first that I have made
 * none in it, should I die as soon as I have it. */
static bool take(struct walk *walk, uint32_t i, uint64_t word) {
    struct shmt_shm_seat *p = walk->p;
    const struct shmt_store *store = p->store;
    uint64_t from, to;
    shmt_slice(store->layout.flat.n, i, store->layout.n_slices, &from, &to);
    shmt_shm_apply_stands_at(p, from);
    shmt_touch_alone((const void *)(uintptr_t)&store->slice[i].word, sizeof(uint64_t), true);
    SHMT_POINT("slice:before");
    /* acquire: the weights, and that who was at them has read the gradients; pairs with the release in `apply_one` */
    return lock_acquire(&store->slice[i].word, &word, word | (p->seat.rank + 1));
}

/* The squares of table t of the recipe's gradient. */
static double squares_of_table(const struct shmt_shm_seat *p, uint32_t t) {
    const struct shmt_store *store = p->store;
    const uint64_t from = store->layout.flat.start[t], floats = shmt_table_floats(&store->spec.table[t]);
    const uint64_t to = from + shmt_ceil_div(floats, SHMT_NORM_FLOATS) * SHMT_NORM_FLOATS;
    float scratch[SHMT_MAX_STACK][SHMT_SHM_BLOCK];
    double part[SHMT_SHM_BLOCK / SHMT_NORM_FLOATS], sum = 0;
    for (uint64_t at = from, end; at < to; at = end) {
        end = shmt_min_u64(at + SHMT_SHM_BLOCK, to);
        shmt_norm_squares(sum_of_recipe(p, at, end - at, scratch), end - at, part);
        for (uint64_t k = 0; k < (end - at) / SHMT_NORM_FLOATS; k++) sum += part[k];
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return sum;
}

/* Clips by the norm of the whole gradient, which each seat computes for itself: gradients rest while somebody has a slice that lacks
 * the update, as I have one now. */
static void clip(struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    struct shmt_shm_recipe *recipe = &p->rounds->recipe;
    double sum = 0;
    if (recipe->clipped || !(spec->rule.clip_norm > 0)) return;
    for (uint32_t t = 0; t < spec->n_tables; t++)
        if (spec->tuning[t].role == SHMTRAIN_TRAINED) sum += squares_of_table(p, t);
    recipe->how.clip_factor = shmt_norm_clip_factor(spec, sum, recipe->how.scale);
    recipe->clipped = true;
}

/* Update u of slice i, which I have taken; who died at it may have done a part. */
static void apply_one(struct walk *walk, uint32_t i, uint64_t u) {
    struct shmt_shm_seat *p = walk->p;
    const struct shmt_store *store = p->store;
    struct shmt_shm_slice *slice = &store->slice[i];
    uint64_t from, to;
    if (!walk->applied) shmt_shm_apply_begins(p, p->rounds->recipe.step);
    walk->applied = true;
    SHMT_POINT("slice:taken");
    shmt_slice(store->layout.flat.n, i, store->layout.n_slices, &from, &to);
    from = shmt_max_u64(from, shmt_min_u64(to, load_relaxed(&slice->from))); /* mine while I have the slice, here and below */
    clip(p);
    shmt_shm_apply_range(p, &SUM, &p->rounds->recipe.how, from, to);
    shmt_shm_apply_stands_at(p, to);
    SHMT_POINT("slice:applied");
    if (load_relaxed(&slice->from) != 0) store_relaxed(&slice->from, 0);
    SHMT_POINT("slice:from");
    if (i == 0) bump_relaxed(&p->slot->counters.updates, 1);
    SHMT_POINT("slice:release-before");
    store_release(&slice->word, (u + 1) << SHMT_RANK_BITS); /* pairs with the acquire in `take` and wherever it is looked at */
    SHMT_POINT("slice:release-after");
}

/* What update u is made of cannot be told any more: by who has seen that all slices have had it. Else somebody has written
 * into the store who should not. acquire: as below, behind that of the round, whose closer has seen them. */
static int check_had(struct shmt_shm_seat *p, uint32_t i, uint64_t u) {
    const uint64_t closed = shmt_shm_rounds_closed(p->store);
    if (updates_of(load_acquire(&p->store->slice[i].word)) > u) return 0;
    return shmt_fail(&p->seat.error, SHMTRAIN_E_USAGE,
                     "the store is damaged: %llu updates were decided, but part %u of the parameters got only %llu",
                     (unsigned long long)closed, i, (unsigned long long)u);
}

/* Applies to slice i what it has not had. 1; 0: it is somebody else's at the moment, who may leave it behind, or I leave it; _USAGE:
 * the store is damaged. */
static int bring(struct walk *walk, uint32_t i) {
    _Atomic uint64_t *lock = &walk->p->store->slice[i].word;
    /* acquire: as in `take` */
    for (uint64_t word = load_acquire(lock); updates_of(word) < walk->to; word = load_acquire(lock)) {
        const uint64_t u = updates_of(word);
        if (holder_of(word) != 0 || walk->left == 0) return 0;
        const bool found = shmt_shm_find_recipe(walk->p, u);
        const int rc = found ? 0 : check_had(walk->p, i, u);
        if (rc < 0) return rc;
        if (!found || !take(walk, i, word)) continue;
        apply_one(walk, i, u);
        walk->left--;
    }
    return 1;
}

/* All slices of the walk to one update. A trace tells updates apart. */
static int go_over_for_one(struct walk *walk) {
    int rc = 1;
    /* relaxed: a flag that carries nothing but itself. Looked at here, because in a damaged store there may be no end. */
    if (load_relaxed(&walk->p->store->control->abort)) return SHMTRAIN_E_STOPPED;
    walk->missing = 0;
    walk->applied = false;
    for (uint32_t k = 0; k < walk->n && rc >= 0; k++) {
        rc = bring(walk, (walk->first + k) % walk->p->store->layout.n_slices);
        walk->missing += rc == 0;
    }
    if (!walk->applied) return rc < 0 ? rc : 0;
    shmt_shm_apply_ends(walk->p);
    shmt_gates_notify(&walk->p->clocks); /* those who waited for what I was at */
    return rc < 0 ? rc : 0;
}

/* So many updates the slices of the walk have had at least. */
static uint64_t least_of(const struct walk *walk) {
    const struct shmt_store *store = walk->p->store;
    uint64_t least = walk->most;
    for (uint32_t k = 0; k < walk->n; k++) { /* acquire: as in `bring`, which is not called when nothing is missing */
        const uint32_t i = (walk->first + k) % store->layout.n_slices;
        const uint64_t word = load_acquire(&store->slice[i].word);
        least = shmt_min_u64(least, updates_of(word));
        shmt_touch(&store->slice[i].word, sizeof word, false);
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
    return least;
}

/* Update by update, so that each is looked up once. 0; _STOPPED; _USAGE. */
static int go_over(struct walk *walk) {
    int rc = 0;
    walk->missing = 0;
    for (walk->to = least_of(walk) + 1; walk->to <= walk->most && rc == 0; walk->to++) rc = go_over_for_one(walk);
    return rc;
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
    int rc;
    while ((rc = go_over(&walk)) == 0 && walk.missing > 0) {
        p->wait_ns = &p->slot->counters.wait_clock_ns;
        if (shmt_gates_wait_until(&p->clocks, is_worth_a_walk, &walk)) return SHMTRAIN_E_STOPPED;
    }
    if (rc == 0) p->rounds->applied = need;
    return rc;
}

int shmt_shm_apply_free(struct shmt_shm_seat *p, uint64_t need) {
    const struct shmt_shm_layout *layout = &p->store->layout;
    struct walk walk = walk_of(p, need);
    if (need <= p->rounds->applied) return 1;
    walk.left = (uint32_t)shmt_max_u64(1, layout->n_slices * SHMT_SHM_FREE_FLOATS / layout->flat.n); /* n_slices is small */
    const int rc = go_over(&walk);
    if (rc < 0 || walk.missing > 0) return rc;
    p->rounds->applied = need;
    return 1;
}

int shmt_shm_apply_share(struct shmt_shm_seat *p, uint64_t most) {
    struct walk walk = walk_of(p, most);
    const uint64_t next = (uint64_t)walk.n * (p->seat.index + 1) / p->seat.n_present;
    walk.n = (uint32_t)next - walk.first;
    return most > p->rounds->applied ? go_over(&walk) : 0;
}

/* ---- copies ---- */

/* A slice that somebody else is at. */
struct busy {
    const struct shmt_store *store;
    uint32_t slice;
};

/* For shmt_gates_wait_until: nobody is at it any more. relaxed: who finds it free takes it with acquire. */
static int is_free(void *arg, uint32_t *for_whom_out) {
    const struct busy *busy = arg;
    const uint32_t holder = holder_of(load_relaxed(&busy->store->slice[busy->slice].word));
    if (holder != 0) *for_whom_out = holder - 1;
    return holder == 0;
}

/* Takes slice i as it is: 1; 0: it has had more updates; _STOPPED. */
static int take_as_it_is(struct walk *walk, uint32_t i, uint64_t had) {
    struct shmt_shm_seat *p = walk->p;
    struct busy busy = {p->store, i};
    for (;;) {
        const uint64_t word = load_acquire(&p->store->slice[i].word); /* acquire: as in `bring` */
        if (updates_of(word) > had) return 0;
        if (holder_of(word) == 0 && take(walk, i, word)) return 1;
        if (holder_of(word) == 0) continue;
        shmt_gates_notify(&p->clocks); /* those who wait for what I have copied */
        p->wait_ns = &p->slot->counters.wait_clock_ns;
        if (shmt_gates_wait_until(&p->clocks, is_free, &busy)) return SHMTRAIN_E_STOPPED;
    }
}

int shmt_shm_copy_weights(struct shmt_shm_seat *p, uint64_t had) {
    const struct shmt_store *store = p->store;
    float *to = shmt_shm_pulled(store, p->seat.rank);
    struct walk walk = walk_of(p, had);
    int rc = 1;
    for (uint32_t k = 0; k < walk.n && rc == 1; k++) {
        const uint32_t i = (walk.first + k) % walk.n;
        uint64_t from, end;
        rc = take_as_it_is(&walk, i, had);
        if (rc != 1) break;
        shmt_slice(store->layout.flat.n, i, walk.n, &from, &end);
        memcpy(to + from, store->weight + from, (end - from) * sizeof *to);
        store_release(&store->slice[i].word, had << SHMT_RANK_BITS); /* pairs with the acquire in `take` */
    }
    shmt_gates_notify(&p->clocks);
    return rc;
}
