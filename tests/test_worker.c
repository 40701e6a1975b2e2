/* What own worker functions may rely on: what divides their gradients, how large items are, what becomes of numbers that are
 * none and of sentences of their own. With processes and threads. */
#include "api_help.h"

#include <math.h>
#include <stdio.h>

static struct shmtrain_store *make_live(const char *spawn, const char *workers, const char *epochs, uint64_t examples) {
    struct shmtrain_store *store = make(spawn, workers, epochs, examples);
    WELL(store, shmtrain_store_set(store, "mode", "auto"));
    WELL(store, shmtrain_store_set(store, "write", "atomic"));
    WELL(store, shmtrain_store_set(store, "replicas", "one"));
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    return store;
}

/* ---- what divides ---- */

static int push_ones(shmtrain_session *s, void *arg) {
    static const float ONE = -1;
    static const uint32_t row = 0;
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        for (uint64_t i = 0; i < w.n; i++)
            if ((rc = shmtrain_push_rows(s, 0, &row, 1, &ONE)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* 640,000 pushes of -1 at rate 1, whatever the items are. */
static void each_pushed_row_is_an_update_of_its_own(void **state) {
    static const char *const ITEMS[] = {"auto", "1", "1000"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct shmtrain_store *store = make_live(SPAWNS[i % 2], "2", "64", 10000);
        WELL(store, shmtrain_store_set(store, "item", ITEMS[i]));
        WELL(store, shmtrain_store_run(store, push_ones, NULL));
        assert_true(read_one(store, 0) == 640000);
        assert_int_equal(shmtrain_store_report(store)->updates, 640000);
        shmtrain_store_destroy(store);
    }
}

static void in_sync_the_batch_divides(void **state) {
    (void)state;
    struct shmtrain_store *store = make("processes", "2", "2", 640);
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    WELL(store, shmtrain_store_run(store, push_ones, NULL));
    assert_true(read_one(store, 0) == 2 * 640 / 64);
    shmtrain_store_destroy(store);
}

/* ---- a matrix factorization ---- */

enum { USERS = 60, ITEMS = 40, RANK = 3, RATINGS = 4000 };

static struct rating {
    uint32_t user, item;
    float value;
} g_rating[RATINGS];

/* Numbers in -0.5 .. 0.5, the same everywhere. */
static float draw(uint64_t *state) {
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) / (float)(1 << 24) - 0.5f;
}

static float product(const float *u, const float *v) {
    float sum = 0;
    for (int k = 0; k < RANK; k++) sum += u[k] * v[k];
    return sum;
}

static void plant(void) {
    static float user[USERS][RANK], item[ITEMS][RANK];
    uint64_t at = 1;
    for (int i = 0; i < USERS * RANK; i++) user[i / RANK][i % RANK] = 3 * draw(&at);
    for (int i = 0; i < ITEMS * RANK; i++) item[i / RANK][i % RANK] = 3 * draw(&at);
    for (int r = 0; r < RATINGS; r++) {
        const uint32_t u = (uint32_t)((draw(&at) + 0.5f) * USERS) % USERS, v = (uint32_t)((draw(&at) + 0.5f) * ITEMS) % ITEMS;
        g_rating[r] = (struct rating){u, v, product(user[u], item[v])};
    }
}

static int learn_one(shmtrain_session *s, const struct rating *r) {
    float u[RANK], v[RANK], grad_u[RANK], grad_v[RANK];
    int rc;
    if ((rc = shmtrain_rows(s, 0, &r->user, 1, u)) < 0 || (rc = shmtrain_rows(s, 1, &r->item, 1, v)) < 0) return rc;
    const float error = product(u, v) - r->value;
    for (int k = 0; k < RANK; k++) {
        grad_u[k] = error * v[k];
        grad_v[k] = error * u[k];
    }
    if ((rc = shmtrain_push_rows(s, 0, &r->user, 1, grad_u)) < 0) return rc;
    return shmtrain_push_rows(s, 1, &r->item, 1, grad_v);
}

/* The same function for every mode. */
static int factorize(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    uint32_t *example = malloc(shmtrain_item_max(s) * sizeof *example);
    int rc = example ? 0 : SHMTRAIN_E_MEMORY;
    (void)arg;
    while (rc == 0 && (rc = shmtrain_next(s, &w)) == 1) {
        rc = shmtrain_order(s, &w, example);
        for (uint64_t k = 0; k < w.n && rc == 0; k++) rc = learn_one(s, &g_rating[example[k]]);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
    }
    free(example);
    return rc;
}

struct factors {
    float user[USERS][RANK], item[ITEMS][RANK];
};

static double mean_error(const struct factors *f) {
    double sum = 0;
    for (int r = 0; r < RATINGS; r++) {
        const double e = (double)(product(f->user[g_rating[r].user], f->item[g_rating[r].item]) - g_rating[r].value);
        sum += e * e;
    }
    return sum / RATINGS;
}

static void run_factorization(const char *mode, const char *workers, const char *rate, struct factors *out) {
    struct shmtrain_store *store;
    struct factors begin;
    uint64_t at = 7;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const char *const options[][2] = {{"mode", mode},   {"workers", workers}, {"rate", rate},
                                      {"epochs", "60"}, {"batch", "16"},      {"schedule", "constant"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    assert_int_equal(shmtrain_store_table(store, "user", USERS, RANK), 0);
    assert_int_equal(shmtrain_store_table(store, "item", ITEMS, RANK), 1);
    for (int i = 0; i < USERS * RANK; i++) begin.user[i / RANK][i % RANK] = draw(&at);
    for (int i = 0; i < ITEMS * RANK; i++) begin.item[i / RANK][i % RANK] = draw(&at);
    assert_true(mean_error(&begin) > 1);
    WELL(store, shmtrain_store_write(store, 0, 0, USERS, begin.user[0]));
    WELL(store, shmtrain_store_write(store, 1, 0, ITEMS, begin.item[0]));
    WELL(store, shmtrain_store_examples(store, RATINGS));
    WELL(store, shmtrain_store_run(store, factorize, NULL));
    WELL(store, shmtrain_store_read(store, 0, 0, USERS, out->user[0]));
    WELL(store, shmtrain_store_read(store, 1, 0, ITEMS, out->item[0]));
    shmtrain_store_destroy(store);
}

/* Ratings without noise: what learns ends with next to no error. A sixteenth of the rate is an example's part of a batch. */
static void a_matrix_factorization_learns_in_every_mode(void **state) {
    static struct factors one, two;
    (void)state;
    plant();
    run_factorization("sync", "1", "0.8", &one);
    run_factorization("sync", "2", "0.8", &two);
    assert_memory_equal(&one, &two, sizeof one);
    assert_true(mean_error(&one) < 0.01);
    static const char *const MODES[] = {"hogwild", "ssp:2"};
    for (int i = 0; i < 2; i++) {
        run_factorization(MODES[i], "2", "0.05", &one);
        if (!(mean_error(&one) < 0.01)) fail_msg("%s ended with an error of %g", MODES[i], mean_error(&one));
    }
}

/* ---- items ---- */

/* 1: all as it should be. */
static int item_is_64(shmtrain_session *s, void *arg) {
    const uint64_t most = shmtrain_item_max(s);
    const uint64_t *expected = arg;
    struct shmtrain_work w;
    uint64_t seen = 0;
    int rc;
    if (most != *expected) return shmtrain_fail(s, SHMTRAIN_E_DATA, "the largest item has %llu", (unsigned long long)most);
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.n > seen) seen = w.n;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    if (rc == 0 && shmtrain_workers(s) == 1 && seen != most)
        return shmtrain_fail(s, SHMTRAIN_E_DATA, "the largest item had %llu", (unsigned long long)seen);
    return rc;
}

static void items_of_own_functions_have_64_examples(void **state) {
    uint64_t expected = 64;
    (void)state;
    struct shmtrain_store *store = make_live("threads", "1", "1", 10000);
    WELL(store, shmtrain_store_run(store, item_is_64, &expected));
    assert_int_equal(shmtrain_store_report(store)->item, 64);
    WELL(store, shmtrain_store_set(store, "item", "300"));
    expected = 300;
    WELL(store, shmtrain_store_run(store, item_is_64, &expected));
    WELL(store, shmtrain_store_examples(store, 50)); /* of few examples each worker gets some */
    expected = 13;
    WELL(store, shmtrain_store_run(store, item_is_64, &expected));
    shmtrain_store_destroy(store);

    store = make("threads", "1", "1", 640); /* sync: a part of the batch */
    WELL(store, shmtrain_store_set(store, "chunks", "4"));
    expected = 16;
    WELL(store, shmtrain_store_run(store, item_is_64, &expected));
    shmtrain_store_destroy(store);
}

/* ---- numbers ---- */

struct poison {
    uint32_t epoch;
    float number;
};

static int push_poison(shmtrain_session *s, void *arg) {
    const struct poison *p = arg;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = w.epoch == p->epoch ? p->number : 0;
        const uint32_t row = 1;
        if ((rc = shmtrain_push_rows(s, 0, &row, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void parameters_that_are_no_numbers_end_the_run(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct poison poison = {.epoch = 1, .number = i < 2 ? NAN : INFINITY};
        struct shmtrain_store *store = i % 2 ? make_live("processes", "2", "50", 500) : make("threads", "2", "50", 500);
        const char *words = i < 2    ? "after epoch 2 row 1 of table \"count\" is not a number"
                            : i == 2 ? "after epoch 2 row 1 of table \"count\" is infinite"
                                     : "row 1 of table \"count\" is ";
        refused(store, shmtrain_store_run(store, push_poison, &poison), SHMTRAIN_E_NUMBERS, words);
        shmtrain_store_destroy(store);
    }
}

/* ---- sentences ---- */

static int complain(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (shmtrain_rank(s) == 1) return shmtrain_fail(s, SHMTRAIN_E_DATA, "example %u:\nhas %.1f legs", 12u, 2.5);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_worker_leaves_a_sentence(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1", 6400);
        refused(store, shmtrain_store_run(store, complain, NULL), SHMTRAIN_E_DATA, "example 12: has 2.5 legs");
        shmtrain_store_destroy(store);
    }
}

static int complain_twice(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    float x;
    (void)arg;
    int rc = shmtrain_next(s, &w);
    if (rc != 1) return rc;
    if (shmtrain_pull(s, 0, 1, 7, &x) != SHMTRAIN_E_USAGE) return SHMTRAIN_E_DATA;
    return shmtrain_fail(s, SHMTRAIN_E_MEMORY, "and so on");
}

static int complain_and_return_0(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    (void)shmtrain_fail(s, SHMTRAIN_E_MEMORY, "no room for what was learned");
    return rc;
}

static int complain_of_nothing(shmtrain_session *s, void *arg) { return shmtrain_fail(s, *(const int *)arg, "nothing"); }

static void the_first_failure_is_told_and_only_failures(void **state) {
    (void)state;
    struct shmtrain_store *store = make("processes", "1", "1", 640);
    refused(store, shmtrain_store_run(store, complain_twice, NULL), SHMTRAIN_E_USAGE,
            "shmtrain_pull: row 2 is beyond the end of table \"count\", which has 2 rows");
    refused(store, shmtrain_store_run(store, complain_and_return_0, NULL), SHMTRAIN_E_MEMORY, "no room for what was learned");
    for (int i = 0; i < 4; i++) {
        int status = (const int[]){0, 1, SHMTRAIN_E_STOPPED, SHMTRAIN_E_AGAIN}[i];
        refused(store, shmtrain_store_run(store, complain_of_nothing, &status), SHMTRAIN_E_USAGE, "shmtrain_fail with status ");
    }
    shmtrain_store_destroy(store);
}

/* The application would join, or begin, once more. */
static int leave_with_again(shmtrain_session *s, void *arg) {
    (void)s;
    (void)arg;
    return SHMTRAIN_E_AGAIN;
}

static int hint_wrongly(shmtrain_session *s, void *arg) {
    static const uint64_t start[2] = {0, 1};
    static const uint32_t id[1] = {0};
    struct shmtrain_csr x = {.size = sizeof x, .n = 1, .start = start, .id = id};
    struct shmtrain_work w;
    const int rc = shmtrain_next(s, &w);
    if (rc != 1) return rc;
    if (*(const int *)arg) return shmtrain_need(s, 7, &x);
    x.reserved = 7;
    return shmtrain_need(s, 0, &x);
}

static void what_a_worker_must_not_say_ends_its_run(void **state) {
    int no_table = 1;
    (void)state;
    struct shmtrain_store *store = make("threads", "2", "1", 640);
    refused(store, shmtrain_store_run(store, leave_with_again, NULL), SHMTRAIN_E_USAGE, "a worker returned SHMTRAIN_E_AGAIN");
    refused(store, shmtrain_store_run(store, hint_wrongly, &no_table), SHMTRAIN_E_USAGE, "there is no table 7");
    no_table = 0;
    refused(store, shmtrain_store_run(store, hint_wrongly, &no_table), SHMTRAIN_E_USAGE, "reserved member");
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_pushed_row_is_an_update_of_its_own, deadline),
        cmocka_unit_test_setup(in_sync_the_batch_divides, deadline),
        cmocka_unit_test_setup(a_matrix_factorization_learns_in_every_mode, deadline),
        cmocka_unit_test_setup(items_of_own_functions_have_64_examples, deadline),
        cmocka_unit_test_setup(parameters_that_are_no_numbers_end_the_run, deadline),
        cmocka_unit_test_setup(a_worker_leaves_a_sentence, deadline),
        cmocka_unit_test_setup(the_first_failure_is_told_and_only_failures, deadline),
        cmocka_unit_test_setup(what_a_worker_must_not_say_ends_its_run, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
