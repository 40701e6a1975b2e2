/* Runs that follow one another on one store: parameters and the optimizer's state go on, whatever backend comes next. Called as
 * an application would. */
#include "api_help.h"

#include <stdio.h>

enum { ROWS = 40, EXAMPLES = 160 };

/* One worker or many, the same gradients: a pull towards 1 + row / 8 that depends on the parameters, of some rows only. */
static int pull_towards(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc = 0;
    (void)arg;
    while (rc >= 0 && (rc = shmtrain_next(s, &w)) == 1) {
        float value[ROWS], grad[ROWS] = {0};
        if ((rc = shmtrain_pull(s, 0, 0, ROWS, value)) < 0) break;
        for (uint64_t i = w.first; i < w.first + w.n; i++) {
            const uint64_t row = (i * 7 + i / 3) % ROWS;
            grad[row] += value[row] - (1 + (float)row / 8);
        }
        if ((rc = shmtrain_push(s, 0, 0, ROWS, grad)) == 0) rc = shmtrain_clock(s, NULL);
    }
    return rc;
}

struct way {
    const char *optimizer, *mode, *backend, *workers;
};

static void set(struct shmtrain_store *store, const char *name, const char *value) {
    WELL(store, shmtrain_store_set(store, name, value));
}

static struct shmtrain_store *make_way(const struct way *way) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    set(store, "optimizer", way->optimizer);
    set(store, "mode", way->mode);
    set(store, "backend", way->backend);
    set(store, "workers", way->workers);
    set(store, "spawn", "threads");
    set(store, "batch", "16");
    set(store, "item", "16");
    set(store, "rate", "0.05");
    set(store, "schedule", "constant");
    set(store, "l2", "0.001");
    set(store, "l1", "0.0001");
    assert_int_equal(shmtrain_store_table(store, "value", ROWS, 1), 0);
    WELL(store, shmtrain_store_examples(store, EXAMPLES));
    return store;
}

static void run(struct shmtrain_store *store, const char *epochs) {
    set(store, "epochs", epochs);
    WELL(store, shmtrain_store_run(store, pull_towards, NULL));
}

static void read_all(struct shmtrain_store *store, float out[ROWS]) {
    WELL(store, shmtrain_store_read(store, 0, 0, ROWS, out));
}

static const char *const OPTIMIZERS[] = {"sgd",      "momentum", "adagrad",  "adam",  "ftrl",
                                         "nesterov", "rmsprop",  "adadelta", "adamw", "lamb"};
static const struct way WAYS[] = {{"", "sync", "shm", "3"}, {"", "sync", "plain", "1"}, {"", "async", "shm", "1"}};
enum { N_OPTIMIZERS = 10, N_WAYS = 3 };

static void two_runs_are_one_long_run(void **state) {
    (void)state;
    for (int o = 0; o < N_OPTIMIZERS; o++)
        for (int k = 0; k < N_WAYS; k++) {
            struct way way = WAYS[k];
            if (strcmp(way.mode, "sync") != 0 && strcmp(OPTIMIZERS[o], "lamb") == 0) continue; /* which it refuses */
            float once[ROWS], twice[ROWS];
            way.optimizer = OPTIMIZERS[o];
            struct shmtrain_store *a = make_way(&way), *b = make_way(&way);
            run(a, "5");
            run(b, "2");
            set(b, "workers", way.workers); /* which changes nothing */
            run(b, "3");
            read_all(a, once);
            read_all(b, twice);
            if (memcmp(once, twice, sizeof once) != 0) fail_msg("%s, %s, %s", way.optimizer, way.mode, way.backend);
            assert_true(once[1] != 0);
            shmtrain_store_destroy(a);
            shmtrain_store_destroy(b);
        }
}

static void the_second_run_may_have_another_backend_and_other_workers(void **state) {
    (void)state;
    for (int o = 0; o < N_OPTIMIZERS; o++) {
        const struct way way = {OPTIMIZERS[o], "sync", "shm", "3"};
        float once[ROWS], thrice[ROWS];
        struct shmtrain_store *a = make_way(&way), *b = make_way(&way);
        run(a, "6");
        run(b, "1");
        set(b, "workers", "1");
        set(b, "backend", "plain");
        run(b, "3");
        set(b, "workers", "8");
        set(b, "backend", "shm");
        set(b, "spawn", "processes");
        run(b, "2");
        read_all(a, once);
        read_all(b, thrice);
        assert_memory_equal(once, thrice, sizeof once);
        shmtrain_store_destroy(a);
        shmtrain_store_destroy(b);
    }
}

/* As if the parameters had been written into a new store. */
static void assert_begins_anew(struct shmtrain_store *store, struct shmtrain_store *fresh) {
    float value[ROWS], expected[ROWS];
    read_all(store, value);
    WELL(fresh, shmtrain_store_write(fresh, 0, 0, ROWS, value));
    run(store, "2");
    run(fresh, "2");
    read_all(store, value);
    read_all(fresh, expected);
    assert_memory_equal(value, expected, sizeof value);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(fresh);
}

static void another_optimizer_begins_with_a_state_of_its_own(void **state) {
    (void)state;
    for (int o = 1; o < N_OPTIMIZERS; o++) {
        const struct way first = {OPTIMIZERS[o], "sync", "shm", "2"};
        const struct way second = {OPTIMIZERS[o == 1 ? 4 : o - 1], "sync", "shm", "2"};
        struct shmtrain_store *store = make_way(&first);
        run(store, "2");
        set(store, "optimizer", second.optimizer);
        assert_begins_anew(store, make_way(&second));
    }
}

static void adams_state_is_one_familys_of_modes(void **state) {
    const struct way live = {"adam", "async", "shm", "1"}, sync = {"adam", "sync", "shm", "1"};
    (void)state;
    struct shmtrain_store *store = make_way(&live);
    run(store, "2");
    set(store, "mode", "sync");
    assert_begins_anew(store, make_way(&sync));
}

static void ftrls_state_is_one_rates(void **state) {
    const struct way way = {"ftrl", "sync", "shm", "2"};
    (void)state;
    struct shmtrain_store *store = make_way(&way), *fresh = make_way(&way);
    run(store, "2");
    set(store, "rate", "0.1");
    set(fresh, "rate", "0.1");
    assert_begins_anew(store, fresh);
}

static void a_run_that_fails_before_it_begins_loses_nothing(void **state) {
    (void)state;
    for (int o = 0; o < N_OPTIMIZERS; o++) {
        const struct way way = {OPTIMIZERS[o], "sync", "shm", "2"};
        float once[ROWS], twice[ROWS];
        struct shmtrain_store *a = make_way(&way), *b = make_way(&way);
        run(a, "4");
        run(b, "2");
        read_all(b, once);
        set(b, "backend", "plain"); /* which has one worker */
        refused(b, shmtrain_store_run(b, pull_towards, NULL), SHMTRAIN_E_USAGE, "-w 1");
        read_all(b, twice);
        assert_memory_equal(once, twice, sizeof once);
        set(b, "backend", "shm");
        run(b, "2");
        read_all(a, once);
        read_all(b, twice);
        assert_memory_equal(once, twice, sizeof once);
        shmtrain_store_destroy(a);
        shmtrain_store_destroy(b);
    }
}

/* ftrl's weights are a function of its state: one that was written must not come back. */
static void what_is_written_between_runs_is_what_the_next_one_begins_with(void **state) {
    (void)state;
    for (int o = 0; o < N_OPTIMIZERS; o++)
        for (int failed = 0; failed < 2; failed++) {
            const struct way way = {OPTIMIZERS[o], "sync", "shm", "2"};
            const float written = 100;
            float value[ROWS];
            struct shmtrain_store *store = make_way(&way);
            run(store, "2");
            if (failed) {
                set(store, "backend", "plain");
                refused(store, shmtrain_store_run(store, pull_towards, NULL), SHMTRAIN_E_USAGE, "-w 1");
                set(store, "backend", "shm");
            }
            WELL(store, shmtrain_store_write(store, 0, 3, 1, &written));
            set(store, "steps", "1");
            run(store, "1");
            read_all(store, value);
            if (!(value[3] > 80 && value[3] < 101)) fail_msg("%s: %g", way.optimizer, (double)value[3]);
            shmtrain_store_destroy(store);
        }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(two_runs_are_one_long_run),
        TEST(the_second_run_may_have_another_backend_and_other_workers),
        TEST(another_optimizer_begins_with_a_state_of_its_own),
        TEST(adams_state_is_one_familys_of_modes),
        TEST(ftrls_state_is_one_rates),
        TEST(a_run_that_fails_before_it_begins_loses_nothing),
        TEST(what_is_written_between_runs_is_what_the_next_one_begins_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
