/* Snapshots of runs in the background: of one moment, of exactly the steps that they say, for predictions while workers train
 * on. */
#include "arrays_help.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static int begin(void **state) {
    make_rows();
    return make_folder(state);
}

static int wait_for_end(struct shmtrain_store *store) {
    int rc;
    do {
        struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&readable, 1, -1);
    } while ((rc = shmtrain_store_step(store)) == 1);
    return rc;
}

static struct shmtrain_store *empty(void) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    return store;
}

/* ---- of one moment ---- */

/* Each item adds 1 to rows 0 and 1, one after the other. */
static int add_to_both(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_push(s, 0, 1, 1, &grad)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static struct shmtrain_store *open_adding(const char *mode, const char *spawn, const char *workers) {
    struct shmtrain_store *store = make(spawn, workers, "1000000", 6400);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    if (strcmp(mode, "sync") != 0) {
        WELL(store, shmtrain_store_set(store, "write", "atomic"));
        WELL(store, shmtrain_store_set(store, "item", "64"));
    }
    WELL(store, shmtrain_store_will_snapshot(store, 1));
    return store;
}

static void snapshots_have_exactly_the_steps_that_they_say(void **state) {
    static const char *const MODES[] = {"sync", "hogwild", "ssp:2"};
    (void)state;
    for (int m = 0; m < 3; m++) {
        for (int i = 0; i < 2; i++) {
            struct shmtrain_store *store = open_adding(MODES[m], SPAWNS[i], i ? "3" : "1"), *into = empty();
            uint64_t before = 0;
            WELL(store, shmtrain_store_start(store, add_to_both, NULL));
            for (int k = 0; k < 5; k++) {
                uint64_t step;
                float row[2];
                const char *name;
                WELL(store, shmtrain_store_snapshot(store, into, &step)); /* the first one waits for the run */
                WELL(into, shmtrain_store_read(into, 0, 0, 2, row));
                assert_true(row[0] == row[1] && (uint64_t)row[0] == step && step >= before);
                WELL(into, shmtrain_store_table_at(into, 0, &name, NULL, NULL));
                assert_string_equal(name, "count");
                before = step;
                assert_int_equal(shmtrain_store_step(store), 1);
            }
            shmtrain_store_stop(store);
            assert_int_equal(wait_for_end(store), 0);
            uint64_t step;
            float last[2], row[2];
            WELL(store, shmtrain_store_snapshot(store, into, &step));
            WELL(store, shmtrain_store_read(store, 0, 0, 2, last));
            WELL(into, shmtrain_store_read(into, 0, 0, 2, row));
            assert_true(row[0] == last[0] && row[1] == last[1] && (uint64_t)row[0] == step && step >= before);
            shmtrain_store_destroy(store);
            shmtrain_store_destroy(into);
        }
    }
}

/* ---- of models ---- */

static struct shmtrain_store *open_sparse(const char *spawn, const char *steps) {
    struct shmtrain_store *store = open_store("logistic", spawn, "2");
    WELL(store, shmtrain_store_set(store, "epochs", "1000"));
    WELL(store, shmtrain_store_set(store, "steps", steps));
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_set(store, "rate", "0.1"));
    WELL(store, shmtrain_store_will_snapshot(store, 1));
    return store;
}

static float *parameters(struct shmtrain_store *store, uint64_t *rows_out) {
    WELL(store, shmtrain_store_table_at(store, 0, NULL, rows_out, NULL));
    float *value = malloc(*rows_out * sizeof *value);
    WELL(store, shmtrain_store_read(store, 0, 0, *rows_out, value));
    return value;
}

/* Rows that stand by frequency while the run goes on are features in the snapshot. */
static void a_model_is_that_of_a_run_that_ended_there(void **state) {
    static const char DATA[] = "builtin:sparse:examples=4000,features=20000";
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = open_sparse(SPAWNS[i], "all"), *into = empty();
        char steps[24];
        uint64_t step, rows[2];
        WELL(store, shmtrain_store_start_training(store, DATA));
        do WELL(store, shmtrain_store_snapshot(store, into, &step));
        while (step < 3);
        assert_string_equal(shmtrain_store_report(into)->model, ""); /* no run of its own */
        shmtrain_store_stop(store);
        assert_int_equal(wait_for_end(store), 0);
        assert_string_equal(shmtrain_store_report(store)->columns, "by frequency");
        shmtrain_store_destroy(store);

        snprintf(steps, sizeof steps, "%llu", (unsigned long long)step);
        store = open_sparse("threads", steps);
        WELL(store, shmtrain_store_train(store, DATA));
        float *ended = parameters(store, &rows[0]), *snapped = parameters(into, &rows[1]);
        assert_true(rows[0] == rows[1]);
        assert_memory_equal(ended, snapped, rows[0] * sizeof *ended);
        free(ended);
        free(snapped);
        shmtrain_store_destroy(store);
        shmtrain_store_destroy(into);
    }
}

static int count_predictions(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    (void)example;
    (void)output;
    (void)n;
    *(uint32_t *)arg += label == 1 || label == -1;
    return 0;
}

/* With ids that only a list knows, and weights, while workers train on. */
static void predictions_are_made_while_the_run_goes_on(void **state) {
    static const char *const MODES[] = {"sync", "async"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = open_sparse(SPAWNS[i], "all"), *into = empty();
        struct shmtrain_arrays a = wide_arrays(0);
        static uint64_t far[ENTRIES];
        static float label[EXAMPLES], probability[EXAMPLES];
        const struct shmtrain_predictions out = {sizeof out, 1, EXAMPLES, label, probability};
        const struct shmtrain_evaluation *e;
        uint64_t step, last = 0;
        uint32_t n = 0;
        for (uint64_t j = 0; j < a.n_entries; j++) far[j] = g_wide[j] * UINT64_C(300000000000000001);
        a.wide_id = far;
        WELL(store, shmtrain_store_set(store, "mode", MODES[i]));
        WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
        WELL(store, shmtrain_store_arrays(store, "train", &a));
        WELL(into, shmtrain_store_arrays(into, "ask", &a));
        WELL(store, shmtrain_store_start_training(store, "arrays:train"));
        for (int k = 0; k < 3; k++) {
            WELL(store, shmtrain_store_snapshot(store, into, &step));
            assert_true(step >= last);
            last = step;
            WELL(into, shmtrain_store_predict_into(into, "arrays:ask", &out));
            WELL(into, shmtrain_store_predict(into, "arrays:ask", 0, count_predictions, &n));
            WELL(into, shmtrain_store_evaluate(into, "arrays:ask", &e));
            assert_int_equal(e->examples, EXAMPLES);
            assert_int_equal(shmtrain_store_step(store), 1);
        }
        assert_int_equal(n, 3 * EXAMPLES);
        shmtrain_store_stop(store);
        assert_int_equal(wait_for_end(store), 0);
        shmtrain_store_destroy(store);
        WELL(into, shmtrain_store_save(into, "snapshot"));
        WELL(into, shmtrain_store_load(into, "snapshot"));
        WELL(into, shmtrain_store_evaluate(into, "arrays:ask", &e));
        shmtrain_store_destroy(into);
    }
}

/* ---- beside checkpoints ---- */

static void checkpoints_and_snapshots_do_not_disturb_one_another(void **state) {
    struct shmtrain_store *store = open_adding("sync", "processes", "2"), *into = empty();
    (void)state;
    WELL(store, shmtrain_store_set(store, "checkpoint", "points"));
    WELL(store, shmtrain_store_set(store, "checkpoint-every", "70steps"));
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    for (int k = 0; k < 4; k++) {
        uint64_t step;
        float row[2];
        WELL(store, shmtrain_store_snapshot(store, into, &step));
        WELL(into, shmtrain_store_read(into, 0, 0, 2, row));
        assert_true(row[0] == row[1] && (uint64_t)row[0] == step);
    }
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);
    assert_true(shmtrain_store_report(store)->checkpoints >= 1);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(into);
    assert_int_equal(system("rm -r points"), 0);
}

/* ---- refusals ---- */

static struct shmtrain_store *g_into;

static void snap_in_listener(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    refused(arg, shmtrain_store_snapshot(arg, g_into, NULL), SHMTRAIN_E_USAGE, "shmtrain_store_start");
}

static void snap_in_step(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    WELL(arg, shmtrain_store_snapshot(arg, g_into, NULL));
    shmtrain_store_stop(arg);
}

static int go_wrong(shmtrain_session *s, void *arg) {
    (void)s;
    (void)arg;
    return SHMTRAIN_E_DATA;
}

static void what_cannot_be_is_refused(void **state) {
    struct shmtrain_store *store = open_adding("sync", "threads", "1");
    int status;
    (void)state;
    g_into = empty();
    refused(store, shmtrain_store_snapshot(store, store, NULL), SHMTRAIN_E_USAGE, "another store");
    refused(store, shmtrain_store_snapshot(store, NULL, NULL), SHMTRAIN_E_USAGE, "another store");
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                     .size = sizeof(struct shmtrain_listener), .arg = store, .epoch = snap_in_listener});
    WELL(store, shmtrain_store_run(store, add_to_both, NULL));

    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                     .size = sizeof(struct shmtrain_listener), .arg = store, .epoch = snap_in_step});
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    const pid_t child = fork();
    if (child == 0) _exit(shmtrain_store_snapshot(store, g_into, NULL) == SHMTRAIN_E_USAGE ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    refused(g_into, shmtrain_store_snapshot(g_into, store, NULL), SHMTRAIN_E_USAGE, "is in progress");
    assert_int_equal(wait_for_end(store), 0);

    shmtrain_store_listen(store, NULL);
    WELL(store, shmtrain_store_start(store, go_wrong, NULL)); /* before, or after, it has failed */
    refused(store, shmtrain_store_snapshot(store, g_into, NULL), SHMTRAIN_E_DATA, "the run has failed");
    assert_int_equal(wait_for_end(store), SHMTRAIN_E_DATA);

    WELL(store, shmtrain_store_will_snapshot(store, 0));
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    refused(store, shmtrain_store_snapshot(store, g_into, NULL), SHMTRAIN_E_USAGE, "will_snapshot");
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);

    WELL(store, shmtrain_store_will_snapshot(store, 1));
    WELL(store, shmtrain_store_set(store, "backend", "plain"));
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    refused(store, shmtrain_store_snapshot(store, g_into, NULL), SHMTRAIN_E_USAGE, "backend plain");
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(g_into);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(snapshots_have_exactly_the_steps_that_they_say, deadline),
        cmocka_unit_test_setup(a_model_is_that_of_a_run_that_ended_there, deadline),
        cmocka_unit_test_setup(predictions_are_made_while_the_run_goes_on, deadline),
        cmocka_unit_test_setup(checkpoints_and_snapshots_do_not_disturb_one_another, deadline),
        cmocka_unit_test_setup(what_cannot_be_is_refused, deadline),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
