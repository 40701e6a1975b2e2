/* Staleness-aware steps (Zhang et al. 2016): the delay of a gradient, made by the order in which sessions of one thread are called,
 * divides what it moves, and nothing else does. In the backend shm, where delays are; who refuses them is in the last test. */
#include "rounds_help.h"

#include <pthread.h>

#include "backends/plain.h"
#include "base/line.h"

enum { ITEM = 4, N_EXAMPLES = 400 };

static const struct shmt_policy HOGWILD = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF};

struct pair {
    struct game game;
    shmtrain_session s[2];
};

static void enter(struct pair *pair, struct shmt_policy policy, bool aware) {
    struct shmt_error e = {0};
    *pair = (struct pair){.game = {.spec = spec_of(policy, 2, N_EXAMPLES, ITEM)}};
    pair->game.spec.staleness_aware = aware;
    pair->game.spec.table[0].rows = 8192; /* for several slices, where updates come in rounds; most have no example */
    begin(&pair->game);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(shmt_session_enter(&pair->s[rank], BACKEND, pair->game.store, &pair->game.spec, rank, 0, &e), 0);
}

static void leave(struct pair *pair) {
    for (int rank = 0; rank < 2; rank++) shmt_session_leave(&pair->s[rank]);
    end(&pair->game);
}

/* A piece from its pull to its push, but for the clock; the examples that it has in `order`. */
static void begin_item(struct pair *pair, int rank, struct shmtrain_work *w) {
    assert_int_equal(shmtrain_next(&pair->s[rank], w), 1);
    assert_int_equal(w->n, ITEM);
}

static void push_item(struct pair *pair, int rank, const struct shmtrain_work *w, uint32_t order[64]) {
    assert_int_equal(shmtrain_order(&pair->s[rank], w, order), 0);
    assert_int_equal(push_ones(&pair->game, &pair->s[rank], w, order), 0);
}

static void do_items(struct pair *pair, int rank, uint32_t n) {
    struct shmtrain_work w;
    uint32_t order[64];
    for (uint32_t i = 0; i < n; i++) {
        begin_item(pair, rank, &w);
        push_item(pair, rank, &w, order);
        assert_int_equal(shmtrain_clock(&pair->s[rank], NULL), 0);
    }
}

static float weight_at(const struct pair *pair, uint64_t row) {
    float w;
    assert_int_equal(BACKEND->store->read(pair->game.store, 0, row, 1, &w), 0);
    return w;
}

/* ---- live modes ---- */

/* A gradient of -1 at a rate of 1. */
static void live_rates_are_divided_by_the_clocks_of_others_between_pull_and_push(void **state) {
    static const uint32_t DELAYS[] = {0, 1, 2, 5, 13};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof DELAYS / sizeof *DELAYS; i++) {
        const uint32_t delay = DELAYS[i / 2];
        const bool aware = i % 2;
        const float want = aware && delay > 1 ? 1 / (float)delay : 1, minus_one = -1, mean = -ITEM;
        struct pair pair;
        struct shmtrain_work w;
        uint32_t order[64];
        enter(&pair, HOGWILD, aware);
        do_items(&pair, 1, 3); /* before the pull: these have no part in it */
        begin_item(&pair, 0, &w);
        do_items(&pair, 1, delay);
        push_item(&pair, 0, &w, order); /* sparse */
        for (int k = 0; k < ITEM; k++) assert_true(weight_at(&pair, order[k]) == want);
        do_items(&pair, 1, 2);
        const uint64_t free_row = N_EXAMPLES; /* of an epoch that has not begun: dense, of the same gradient */
        assert_int_equal(shmtrain_push(&pair.s[0], 0, free_row, 1, &mean), 0);
        assert_true(weight_at(&pair, free_row) == want);
        assert_int_equal(shmtrain_push_rows(&pair.s[0], 0, &(uint32_t){N_EXAMPLES + 1}, 1, &minus_one), 0);
        assert_true(weight_at(&pair, free_row + 1) == want);
        assert_int_equal(shmtrain_clock(&pair.s[0], NULL), 0);
        begin_item(&pair, 0, &w); /* the next one is fresh again */
        push_item(&pair, 0, &w, order);
        for (int k = 0; k < ITEM; k++) assert_true(weight_at(&pair, order[k]) == 1);
        leave(&pair);
    }
}

static void minus_ones(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg;
    (void)first;
    (void)dot;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = -1;
}

/* How far these calls move a weight with a gradient of -1. */
static float moved_by_each(struct pair *pair) {
    const uint32_t id = 7;
    const uint64_t start[] = {0, 1};
    const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr), .n = 1, .start = start, .id = &id};
    const float before = weight_at(pair, id);
    assert_int_equal(shmtrain_each(&pair->s[0], 0, &x, 1, minus_ones, NULL), 0);
    return weight_at(pair, id) - before;
}

static float moved_by_push(struct pair *pair) {
    const float mean = -ITEM, before = weight_at(pair, N_EXAMPLES);
    assert_int_equal(shmtrain_push(&pair->s[0], 0, N_EXAMPLES, 1, &mean), 0);
    return weight_at(pair, N_EXAMPLES) - before;
}

/* shmtrain_each reads the weights of a group and changes them at once, whatever else the item pushes. */
static void what_is_pulled_and_pushed_in_one_call_is_fresh(void **state) {
    enum { DELAY = 4 };
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct pair pair;
        struct shmtrain_work w;
        enter(&pair, HOGWILD, true);
        begin_item(&pair, 0, &w);
        do_items(&pair, 1, DELAY);
        if (first) assert_true(moved_by_push(&pair) == 1.0f / DELAY);
        assert_true(moved_by_each(&pair) == 1);
        assert_true(moved_by_push(&pair) == 1.0f / DELAY);
        assert_true(moved_by_each(&pair) == 1);
        leave(&pair);
    }
}

static void a_worker_alone_has_no_delay(void **state) {
    struct shmt_spec spec = spec_of(HOGWILD, 1, N_EXAMPLES, ITEM);
    const struct shmt_backend *const backend = &SHMT_BACKEND_PLAIN;
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmtrain_work w;
    shmtrain_session s;
    float weight;
    (void)state;
    spec.staleness_aware = true;
    assert_int_equal(backend->create(&spec, NULL, &store, &e), 0);
    assert_int_equal(shmt_session_enter(&s, backend, store, &spec, 0, 0, &e), 0);
    for (int item = 1; item < 6; item++) {
        assert_int_equal(shmtrain_next(&s, &w), 1);
        assert_int_equal(shmtrain_push(&s, 0, 3, 1, &(float){-ITEM}), 0);
        assert_int_equal(shmtrain_clock(&s, NULL), 0);
        assert_int_equal(backend->store->read(store, 0, 3, 1, &weight), 0);
        assert_true(weight == (float)item);
    }
    shmt_session_leave(&s);
    backend->store->destroy(store);
}

/* ---- rounds ---- */

/* The first worker is up to three clocks ahead: nothing is applied meanwhile, so its third gradient lacks two updates. */
static void with_staleness_a_gradient_counts_for_its_share_of_the_sum(void **state) {
    enum { AHEAD = 3 };
    (void)state;
    for (int aware = 0; aware < 2; aware++) {
        struct pair pair;
        uint32_t order[AHEAD][64];
        enter(&pair, stale(AHEAD), aware);
        for (int clock = 0; clock < AHEAD; clock++) {
            struct shmtrain_work w;
            begin_item(&pair, 0, &w);
            push_item(&pair, 0, &w, order[clock]);
            assert_int_equal(shmtrain_clock(&pair.s[0], NULL), 0);
        }
        do_items(&pair, 1, AHEAD);
        do_items(&pair, 0, 1); /* brings its share of the slices on */
        for (int clock = 0; clock < AHEAD; clock++)
            for (int k = 0; k < ITEM; k++)
                assert_true(weight_at(&pair, order[clock][k]) == (aware && clock == 2 ? 0.5f : 1.0f) / (2 * ITEM));
        leave(&pair);
    }
}

/* The second worker is ahead. The first one brings its share of the slices on with each of its clocks, and nobody brings the others: its
 * third gradient lacks two updates in these. */
static void what_one_slice_lacks_is_a_delay_of_the_whole_gradient(void **state) {
    enum { AHEAD = 3 };
    (void)state;
    for (int aware = 0; aware < 2; aware++) {
        struct pair pair;
        uint32_t order[AHEAD][64];
        enter(&pair, stale(AHEAD), aware);
        assert_true(pair.game.store->layout.n_slices > 1);
        do_items(&pair, 1, AHEAD);
        for (int clock = 0; clock < AHEAD; clock++) {
            struct shmtrain_work w;
            begin_item(&pair, 0, &w);
            push_item(&pair, 0, &w, order[clock]);
            assert_int_equal(shmtrain_clock(&pair.s[0], NULL), 0);
        }
        do_items(&pair, 1, 1); /* brings the others on */
        for (int clock = 0; clock < AHEAD; clock++)
            for (int k = 0; k < ITEM; k++)
                assert_true(weight_at(&pair, order[clock][k]) == (aware && clock == 2 ? 0.5f : 1.0f) / (2 * ITEM));
        leave(&pair);
    }
}

static void *offer_late(void *arg) {
    struct pair *pair = arg;
    struct shmtrain_fate fate;
    if (shmtrain_clock(&pair->s[0], &fate) < 0 || fate.folded != ITEM) return arg;
    return NULL;
}

/* Its gradient is of weights that had no update, and is offered when four are made: it gets into the fifth, number 4. */
static void a_late_gradient_that_is_folded_counts_for_its_share(void **state) {
    enum { LATE = 4 };
    (void)state;
    for (int aware = 0; aware < 2; aware++) {
        struct pair pair;
        struct shmtrain_work w;
        uint32_t order[64];
        pthread_t thread;
        void *failed;
        enter(&pair, quorum(1, SHMT_LATE_FOLD), aware);
        begin_item(&pair, 0, &w);
        push_item(&pair, 0, &w, order);
        do_items(&pair, 1, LATE);
        assert_int_equal(pthread_create(&thread, NULL, offer_late, &pair), 0);
        const struct shmt_store *store = pair.game.store;
        alarm(60);
        while (load_acquire(&store->front[0].gate.clock) != LATE + 1 || load_acquire(&store->offer[0].late) == 0) nap_us(100);
        do_items(&pair, 1, 1);
        assert_int_equal(pthread_join(thread, &failed), 0);
        assert_null(failed);
        for (int k = 0; k < ITEM; k++) assert_true(weight_at(&pair, order[k]) == (aware ? 1.0f / LATE : 1.0f) / (2 * ITEM));
        leave(&pair);
    }
}

/* ---- where there is nothing to divide ---- */

static void refused(struct shmt_policy policy, enum shmt_rule_kind rule, const char *words) {
    struct shmt_spec spec = spec_of(policy, 4, N_EXAMPLES, ITEM);
    struct shmt_error e = {0};
    spec.rule = (struct shmt_rule){.kind = rule, .epsilon = 1};
    spec.curvatures = true;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.staleness_aware = true;
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    if (!strstr(e.text, words) || strchr(e.text, '\n')) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void modes_without_delays_refuse_in_one_line(void **state) {
    (void)state;
    refused((struct shmt_policy){.write = SHMT_WRITE_AGGREGATE}, SHMT_RULE_SGD, "which is 0 where all wait for all");
    refused(quorum(3, SHMT_LATE_DROP), SHMT_RULE_SGD, "use --late fold, or leave it out");
    refused((struct shmt_policy){.write = SHMT_WRITE_RACY,
                                 .staleness = SHMT_STALENESS_INF,
                                 .replicas = SHMT_REPLICAS_WORKER,
                                 .merge_every = 2,
                                 .merge = SHMT_MERGE_MEAN},
            SHMT_RULE_SGD, "changes the copy that it was computed on: use --replicas one");
    refused(HOGWILD, SHMT_RULE_FTRL, "ftrl computes each parameter's rate from its gradients");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_rates_are_divided_by_the_clocks_of_others_between_pull_and_push),
        cmocka_unit_test(what_is_pulled_and_pushed_in_one_call_is_fresh),
        cmocka_unit_test(a_worker_alone_has_no_delay),
        cmocka_unit_test(with_staleness_a_gradient_counts_for_its_share_of_the_sum),
        cmocka_unit_test(what_one_slice_lacks_is_a_delay_of_the_whole_gradient),
        cmocka_unit_test(a_late_gradient_that_is_folded_counts_for_its_share),
        cmocka_unit_test(modes_without_delays_refuse_in_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
