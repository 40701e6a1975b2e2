/* The library as an application uses it: tables, runs with own worker functions, listening, several stores at once. Only what
 * <shmtrain/shmtrain.h> says is used. Stopping is in test_stop.c, runs that follow one another in test_state.c, runs of models
 * on data in test_api_train.c, event loops in test_background.c, applications with threads and children in test_embed.c. */
#include "api_help.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

/* ---- parameters ---- */

static void parameters_are_zero_then_as_written_then_as_trained(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const float written[2] = {100, 7};
        struct shmtrain_store *store = make(SPAWNS[i], "2", "3", 640);
        assert_true(read_one(store, 0) == 0);
        WELL(store, shmtrain_store_write(store, 0, 0, 2, written));
        assert_true(read_one(store, 0) == 100);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(read_one(store, 0) == 130 && read_one(store, 1) == 7); /* 10 batches, 3 epochs */
        WELL(store, shmtrain_store_write(store, 0, 1, 1, written));
        WELL(store, shmtrain_store_run(store, count, NULL)); /* goes on with what is there, also in other circumstances */
        assert_true(read_one(store, 0) == 160 && read_one(store, 1) == 100);
        WELL(store, shmtrain_store_set(store, "workers", "1"));
        WELL(store, shmtrain_store_set(store, "backend", "plain"));
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(read_one(store, 0) == 190);
        shmtrain_store_destroy(store);
    }
}

static void tables_and_rows_that_cannot_be_are_refused(void **state) {
    float x[4] = {0};
    struct shmtrain_store *store = make("threads", "1", "1", 64);
    (void)state;
    refused(store, shmtrain_store_table(store, "", 1, 1), SHMTRAIN_E_USAGE, "name");
    refused(store, shmtrain_store_table(store, "a b", 1, 1), SHMTRAIN_E_USAGE, "character");
    refused(store, shmtrain_store_table(store, "a-name-that-is-longer-than-31-characters", 1, 1), SHMTRAIN_E_USAGE, "31");
    refused(store, shmtrain_store_table(store, "t", 0, 1), SHMTRAIN_E_USAGE, "no rows");
    refused(store, shmtrain_store_table(store, "t", 1, 0), SHMTRAIN_E_USAGE, "no width");
    refused(store, shmtrain_store_table(store, "t", 1, (uint64_t)1 << 32), SHMTRAIN_E_USAGE, "too large");
    refused(store, shmtrain_store_table(store, "t", (uint64_t)1 << 62, 1), SHMTRAIN_E_USAGE, "too large");
    refused(store, shmtrain_store_table(store, "count", 1, 1), SHMTRAIN_E_USAGE, "already");
    refused(store, shmtrain_store_table(store, "__metadata__", 1, 1), SHMTRAIN_E_USAGE, "model files");
    refused(store, shmtrain_store_read(store, 1, 0, 1, x), SHMTRAIN_E_USAGE, "no table 1");
    refused(store, shmtrain_store_read(store, -1, 0, 1, x), SHMTRAIN_E_USAGE, "no table -1");
    refused(store, shmtrain_store_read(store, 0, 1, 2, x), SHMTRAIN_E_USAGE, "has 2 rows");
    refused(store, shmtrain_store_write(store, 0, UINT64_MAX, 2, x), SHMTRAIN_E_USAGE, "has 2 rows");
    refused(store, shmtrain_store_examples(store, 0), SHMTRAIN_E_USAGE, "1 to 4294967295");
    for (int t = 1; t < 64; t++) {
        char name[8];
        snprintf(name, sizeof name, "t%d", t);
        assert_int_equal(shmtrain_store_table(store, name, 1, 1), t);
    }
    refused(store, shmtrain_store_table(store, "t64", 1, 1), SHMTRAIN_E_USAGE, "at most 64");
    refused(store, shmtrain_store_save(store, "/dev/null"), SHMTRAIN_E_USAGE, "no run has trained yet");
    WELL(store, shmtrain_store_run(store, count, NULL));
    refused(store, shmtrain_store_table(store, "late", 1, 1), SHMTRAIN_E_USAGE, "before the first run");
    WELL(store, shmtrain_store_save(store, "/dev/null"));
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(NULL);
}

static void a_run_without_tables_examples_or_memory_is_refused(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE, "shmtrain_store_examples");
    WELL(store, shmtrain_store_examples(store, 10));
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE, "shmtrain_store_table");
    assert_int_equal(shmtrain_store_table(store, "t", (uint64_t)1 << 44, 1), 0);
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_MEMORY, "TiB");
    shmtrain_store_destroy(store);
}

static void backends_with_one_worker_refuse_two(void **state) {
    struct shmtrain_store *store = make("threads", "2", "1", 64);
    (void)state;
    WELL(store, shmtrain_store_set(store, "backend", "plain"));
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE, "-w 1");
    shmtrain_store_destroy(store);
}

/* ---- worker functions that fail ---- */

static int fail_in_rank_1(shmtrain_session *s, void *arg) {
    float x;
    if (shmtrain_rank(s) != 1) return count(s, arg);
    return shmtrain_pull(s, 9, 0, 1, &x);
}
static int leave_in_rank_1(shmtrain_session *s, void *arg) { return shmtrain_rank(s) == 1 ? 0 : count(s, arg); }
static int own_status_in_rank_1(shmtrain_session *s, void *arg) {
    return shmtrain_rank(s) == 1 ? SHMTRAIN_E_NUMBERS : count(s, arg);
}
static int die_in_rank_1(shmtrain_session *s, void *arg) {
    if (shmtrain_rank(s) == 1) raise(SIGKILL);
    return count(s, arg);
}

static void a_worker_that_fails_ends_the_run_with_its_own_sentence(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "3", "1000", 6400);
        refused(store, shmtrain_store_run(store, fail_in_rank_1, NULL), SHMTRAIN_E_USAGE, "shmtrain_pull: there is no table ");
        refused(store, shmtrain_store_run(store, leave_in_rank_1, NULL), SHMTRAIN_E_USAGE,
                "before shmtrain_next had returned 0");
        refused(store, shmtrain_store_run(store, own_status_in_rank_1, NULL), SHMTRAIN_E_NUMBERS, "SHMTRAIN_E_NUMBERS");
        if (i == 1) {
            refused(store, shmtrain_store_run(store, die_in_rank_1, NULL), SHMTRAIN_E_DIED, "killed by signal 9");
            assert_non_null(strstr(shmtrain_store_message(store), "worker 1"));
        }
        WELL(store, shmtrain_store_set(store, "epochs", "1"));
        WELL(store, shmtrain_store_run(store, count, NULL)); /* the store is none the worse */
        assert_int_equal(shmtrain_store_report(store)->examples, 6400);
        shmtrain_store_destroy(store);
    }
}

static int stopped_by_itself_in_rank_1(shmtrain_session *s, void *arg) {
    return shmtrain_rank(s) == 1 ? SHMTRAIN_E_STOPPED : count(s, arg);
}
static int stopped_within_work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    const int rc = shmtrain_next(s, &w);
    (void)arg;
    return rc == 1 ? SHMTRAIN_E_STOPPED : rc;
}

/* Nobody was told to end, so the others would wait for it for ever. */
static void a_worker_that_stops_by_itself_ends_the_run_with_a_sentence(void **state) {
    static const char *const MODES[] = {"sync", "async"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct shmtrain_store *store = make(SPAWNS[i / 2], "3", "1000", 6400);
        WELL(store, shmtrain_store_set(store, "mode", MODES[i % 2]));
        refused(store, shmtrain_store_run(store, stopped_by_itself_in_rank_1, NULL), SHMTRAIN_E_USAGE,
                "returned SHMTRAIN_E_STOPPED, but no session call had");
        refused(store, shmtrain_store_run(store, stopped_within_work, NULL), SHMTRAIN_E_USAGE,
                "returned SHMTRAIN_E_STOPPED, but no session call had");
        shmtrain_store_destroy(store);
    }
}

/* ---- listening ---- */

struct heard {
    struct shmtrain_store *store;
    int begins, epochs;
    float last;
};

static void hear_begin(void *arg, const struct shmtrain_report *r) {
    struct heard *h = arg;
    assert_int_equal(h->epochs, 0);
    assert_int_equal(r->n_epochs, 0);
    assert_string_equal(r->mode, "sync");
    assert_string_equal(r->model, "");
    assert_int_equal(r->workers, 3);
    h->begins++;
}

static void hear_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    struct heard *h = arg;
    assert_int_equal(h->begins, 1);
    assert_int_equal(epoch->epoch, ++h->epochs);
    assert_int_equal(r->n_epochs, h->epochs);
    assert_ptr_equal(epoch, &r->epoch[h->epochs - 1]);
    assert_true(epoch->examples == 640 && !epoch->partial && epoch->train_loss == 1);
    const float now = read_one(h->store, 0); /* as it is at the moment: at least as far as this epoch */
    assert_true(now >= (float)(10 * h->epochs) && now >= h->last && now <= 50);
    h->last = now;
}

static void a_listener_hears_the_beginning_then_each_epoch_in_order(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "3", "5", 640);
        struct heard h = {.store = store};
        const struct shmtrain_listener listener = {
            .size = sizeof(struct shmtrain_listener), .arg = &h, .begin = hear_begin, .epoch = hear_epoch};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(h.begins == 1 && h.epochs == 5);
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_int_equal(r->stopped, 0);
        assert_int_equal(r->examples, 3200);
        assert_int_equal(r->updates, 50);
        assert_int_equal(r->parameter_bytes, 8);
        assert_true(r->wait_fraction >= 0 && r->wait_fraction <= 1 && r->seconds >= r->train_seconds);
        shmtrain_store_listen(store, NULL);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(h.begins == 1 && h.epochs == 5);
        shmtrain_store_destroy(store);
    }
}

static void read_what_is_not_there(void *arg) {
    float x;
    refused(arg, shmtrain_store_read(arg, 9, 0, 1, &x), SHMTRAIN_E_USAGE, "no table 9");
    refused(arg, shmtrain_store_set(arg, "epochs", "1"), SHMTRAIN_E_USAGE, "a run is in progress");
}
static void fail_at_begin(void *arg, const struct shmtrain_report *r) {
    (void)r;
    read_what_is_not_there(arg);
}
static void fail_at_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    (void)r;
    (void)epoch;
    read_what_is_not_there(arg);
}

static void a_call_that_fails_in_a_listener_is_not_the_runs_failure(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct shmtrain_store *store = make(SPAWNS[i / 2], "2", "3", 640);
        const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener),
                                                   .arg = store,
                                                   .begin = i % 2 ? fail_at_begin : NULL,
                                                   .epoch = i % 2 ? NULL : fail_at_epoch};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_string_equal(shmtrain_store_message(store), "");
        shmtrain_store_destroy(store);
    }
}

/* ---- beside other things ---- */

struct neighbour {
    const char *spawn;
    uint64_t examples;
    int rc;
    float counted;
    uint64_t hash;
};

/* Asserts nothing: it runs on a thread of its own. */
static void *run_a_store(void *arg) {
    struct neighbour *n = arg;
    struct shmtrain_store *store;
    n->rc = shmtrain_store_create(&store);
    if (n->rc < 0) return NULL;
    shmtrain_store_set(store, "spawn", n->spawn);
    shmtrain_store_set(store, "workers", "3");
    shmtrain_store_set(store, "epochs", "20");
    shmtrain_store_set(store, "mode", "sync");
    shmtrain_store_set(store, "schedule", "constant");
    shmtrain_store_set(store, "batch", "64");
    shmtrain_store_table(store, "count", 2, 1);
    shmtrain_store_examples(store, n->examples);
    n->rc = shmtrain_store_run(store, count, NULL);
    shmtrain_store_read(store, 0, 0, 1, &n->counted);
    n->hash = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return NULL;
}

static void stores_run_side_by_side_and_do_not_meet(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct neighbour n[3] = {{SPAWNS[i], 640, 0, 0, 0}, {SPAWNS[i], 1280, 0, 0, 0}, {SPAWNS[i], 640, 0, 0, 0}};
        pthread_t thread[3];
        for (int k = 0; k < 3; k++) assert_int_equal(pthread_create(&thread[k], NULL, run_a_store, &n[k]), 0);
        for (int k = 0; k < 3; k++) pthread_join(thread[k], NULL);
        assert_true(n[0].rc == 0 && n[1].rc == 0 && n[2].rc == 0);
        assert_true(n[0].counted == 200 && n[1].counted == 400);
        assert_true(n[0].hash == n[2].hash && n[0].hash != n[1].hash);
    }
}

static atomic_int g_over;

static void *allocate_all_the_time(void *arg) {
    void **kept = arg;
    while (!atomic_load(&g_over)) {
        free(*kept);
        *kept = malloc(1 + (size_t)rand() % 100000);
    }
    return NULL;
}

/* The workers are forked while the application's threads hold locks of the allocator. */
static void an_application_with_threads_may_run_workers(void **state) {
    (void)state;
    void *kept[2] = {NULL, NULL};
    pthread_t thread[2];
    atomic_store(&g_over, 0);
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(&thread[k], NULL, allocate_all_the_time, &kept[k]), 0);
    for (int i = 0; i < 10; i++) {
        struct shmtrain_store *store = make(SPAWNS[i & 1], "3", "2", 640);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(read_one(store, 0) == 20);
        shmtrain_store_destroy(store);
    }
    atomic_store(&g_over, 1);
    for (int k = 0; k < 2; k++) {
        pthread_join(thread[k], NULL);
        free(kept[k]);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(parameters_are_zero_then_as_written_then_as_trained),
        TEST(tables_and_rows_that_cannot_be_are_refused),
        TEST(a_run_without_tables_examples_or_memory_is_refused),
        TEST(backends_with_one_worker_refuse_two),
        TEST(a_worker_that_fails_ends_the_run_with_its_own_sentence),
        TEST(a_worker_that_stops_by_itself_ends_the_run_with_a_sentence),
        TEST(a_listener_hears_the_beginning_then_each_epoch_in_order),
        TEST(a_call_that_fails_in_a_listener_is_not_the_runs_failure),
        TEST(stores_run_side_by_side_and_do_not_meet),
        TEST(an_application_with_threads_may_run_workers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
