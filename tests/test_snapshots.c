/* Snapshots of runs in the background: of one moment, of exactly the steps that they say, for predictions while workers train
 * on. */
#include "arrays_help.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "sanitized.h"

static int begin(void **state) {
    make_rows();
    return make_folder(state);
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
            if (m == 1 && i == 0) WELL(store, shmtrain_store_set(store, "item", "1"));
            WELL(store, shmtrain_store_start(store, add_to_both, NULL));
            for (int k = 0; k < 5; k++) {
                uint64_t step;
                float row[2];
                const char *name;
                WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step)); /* the first one waits for the run */
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
            WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
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
        do WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
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
            WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
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

/* ---- of own models ---- */

static uint32_t one_table(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          struct shmtrain_shape *out) {
    (void)state;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = data->n_features, .width = 1, .l2_rows = data->n_features};
    return 1;
}

static int still(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss) {
    (void)s, (void)batch, (void)pass;
    *loss = 0;
    return 0;
}

static int score_zero(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                      double *loss) {
    (void)s, (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) out[k] = 0;
    *loss = 0;
    return 0;
}

static int score_one(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *out,
                     double *loss) {
    const int rc = score_zero(s, pass, batch, out, loss);
    for (uint32_t k = 0; k < batch->n; k++) out[k] = 1;
    return rc;
}

static struct shmtrain_model model_named(const char *name) {
    return (struct shmtrain_model){.size = sizeof(struct shmtrain_model),
                                   .task = SHMTRAIN_REGRESSION,
                                   .name = name,
                                   .about = "a test's",
                                   .loss = "loss",
                                   .tables = one_table,
                                   .step = still,
                                   .score = score_zero};
}

static bool offers(const struct shmtrain_store *store, const char *name) {
    const struct shmtrain_model *model;
    for (size_t i = 0; (model = shmtrain_store_model_at(store, i)) && strcmp(model->name, name) != 0; i++) continue;
    return model != NULL;
}

/* What the other store offers stays; the run's model is added, and no other of its store. */
static void the_other_store_keeps_its_models(void **state) {
    const struct shmtrain_model ours = model_named("ours"), unused = model_named("unused"), theirs = model_named("theirs");
    struct shmtrain_model other = model_named("ours");
    struct shmtrain_store *store = open_sparse("threads", "all"), *into = empty(), *with_other = empty();
    const struct shmtrain_evaluation *e;
    (void)state;
    other.score = score_one;
    WELL(store, shmtrain_store_offer(store, &unused));
    WELL(store, shmtrain_store_offer(store, &ours));
    WELL(into, shmtrain_store_offer(into, &theirs));
    WELL(with_other, shmtrain_store_offer(with_other, &other));
    WELL(store, shmtrain_store_set(store, "model", "ours"));
    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    WELL(store, shmtrain_store_start_training(store, "builtin:sparse:examples=500,features=20,nonzeros=3"));
    for (int k = 0; k < 2; k++) {
        WELL(store, shmtrain_store_snapshot(store, into, INFINITY, NULL));
        assert_true(offers(into, "theirs") && offers(into, "ours") && !offers(into, "unused"));
        WELL(into, shmtrain_store_evaluate(into, "builtin:sparse:examples=500,features=20,nonzeros=3", &e));
        assert_string_equal(e->model, "ours");
    }
    refused(store, shmtrain_store_snapshot(store, with_other, INFINITY, NULL), SHMTRAIN_E_USAGE,
            "offers a different model named \"ours\"");
    assert_int_equal(shmtrain_store_table_at(with_other, 0, NULL, NULL, NULL), SHMTRAIN_E_USAGE);
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(into);
    shmtrain_store_destroy(with_other);
}

/* ---- that are not there yet ---- */

static pid_t *g_worker; /* shared with workers that are processes */

static int say_who_then_add(shmtrain_session *s, void *arg) {
    *(volatile pid_t *)g_worker = getpid();
    return add_to_both(s, arg);
}

/* As an event loop does: what was asked for is fetched when the descriptor says that there is something. */
static void fetch(struct shmtrain_store *store, struct shmtrain_store *into, uint64_t *step_out) {
    int rc;
    while ((rc = shmtrain_store_snapshot(store, into, 0, step_out)) == SHMTRAIN_E_AGAIN) {
        struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        assert_int_equal(poll(&readable, 1, -1), 1);
        assert_int_equal(shmtrain_store_step(store), 1);
    }
    WELL(store, rc);
}

static void a_stopped_worker_keeps_nobody_waiting(void **state) {
    struct shmtrain_store *store = open_adding("sync", "processes", "1"), *into = empty();
    uint64_t step, before = 0;
    float row[2];
    (void)state;
    g_worker = mmap(NULL, sizeof *g_worker, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(g_worker != MAP_FAILED);
    WELL(store, shmtrain_store_start(store, say_who_then_add, NULL));
    fetch(store, into, &step);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(kill(*g_worker, SIGSTOP), 0);
        before = step;
        while (shmtrain_store_snapshot(store, into, 0.01, &step) == 0) continue; /* those that were under way */
        refused(store, shmtrain_store_snapshot(store, into, 0, &step), SHMTRAIN_E_AGAIN, "between two steps");
        assert_int_equal(shmtrain_store_step(store), 1);
        refused(store, shmtrain_store_snapshot(store, into, 0.01, &step), SHMTRAIN_E_AGAIN, "between two steps");
        assert_int_equal(kill(*g_worker, SIGCONT), 0);
        fetch(store, into, &step);
        assert_true(step >= before);
        WELL(into, shmtrain_store_read(into, 0, 0, 2, row));
        assert_true(row[0] == row[1] && (uint64_t)row[0] == step);
    }
    assert_int_equal(kill(*g_worker, SIGSTOP), 0);
    while (shmtrain_store_snapshot(store, into, 0, &step) == 0) continue;
    assert_int_equal(kill(*g_worker, SIGCONT), 0);
    shmtrain_store_stop(store); /* what was asked for is not fetched */
    assert_int_equal(wait_for_end(store), 0);
    WELL(store, shmtrain_store_snapshot(store, into, 0, &step));
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(into);
    munmap(g_worker, sizeof *g_worker);
}

/* Data that is still being read. */
static void a_run_that_loads_keeps_nobody_waiting(void **state) {
    struct shmtrain_store *store = open_sparse("threads", "all"), *into = empty();
    uint64_t step;
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    const int fd = open("pipe", O_RDWR);
    assert_true(fd >= 0);
    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    WELL(store, shmtrain_store_start_training(store, "pipe"));
    refused(store, shmtrain_store_snapshot(store, into, 0.01, &step), SHMTRAIN_E_AGAIN, "no snapshot yet");
    assert_int_equal(write(fd, "1 1:1\n-1 2:1\n", 13), 13);
    for (int left = 1; left > 0;) assert_int_equal(ioctl(fd, FIONREAD, &left), 0); /* until it has been read, */
    close(fd);                                                                     /* by who has it open, so */
    fetch(store, into, &step);
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(into);
    assert_int_equal(unlink("pipe"), 0);
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
        WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
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

/* One that the application asks for is no checkpoint, which would drive older ones out of the folder; but the first one behind
 * the step at which one is due may be that one. */
static void a_snapshot_is_a_checkpoint_only_when_one_is_due(void **state) {
    static const char *const EVERY[] = {"1000000 steps", "1000000 epochs", "1000h"}, *const MODES[] = {"sync", "async"};
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct shmtrain_store *store = open_adding(MODES[i / 3], "processes", "2"), *into = empty();
        WELL(store, shmtrain_store_set(store, "checkpoint", "points"));
        WELL(store, shmtrain_store_set(store, "checkpoint-every", EVERY[i % 3]));
        WELL(store, shmtrain_store_start(store, add_to_both, NULL));
        for (int k = 0; k < 4; k++) WELL(store, shmtrain_store_snapshot(store, into, INFINITY, NULL));
        shmtrain_store_stop(store);
        assert_int_equal(wait_for_end(store), 0);
        assert_int_equal(shmtrain_store_report(store)->checkpoints, 1); /* of the end */
        shmtrain_store_destroy(store);
        shmtrain_store_destroy(into);
        assert_int_equal(system("rm -r points"), 0);
    }
}

enum { ROWS = 1 << 20, PARTS = 4 }; /* rows: copying them takes a while. As many workers copy as there are parts */

static uint64_t row_of_part(int part) { return (uint64_t)part * (ROWS / PARTS) + 100; }

/* Each item adds 1 to a row of each part. */
static int add_to_parts(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        for (int part = 0; part < PARTS; part++)
            if ((rc = shmtrain_push(s, 0, row_of_part(part), 1, &grad)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Checkpoints are written all the time, so that the room for a snapshot is given back, and filled again, at any moment. */
static void a_snapshot_is_whole_while_checkpoints_are_written(void **state) {
    const char *const options[][2] = {{"spawn", "threads"},     {"workers", "4"}, {"epochs", "1000000"},    {"mode", "hogwild"},
                                      {"write", "atomic"},      {"item", "64"},   {"schedule", "constant"}, {"rate", "1"},
                                      {"checkpoint", "points"}, {"keep", "1"},    {"checkpoint-every", "1"}};
    struct shmtrain_store *store, *into = empty();
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    assert_int_equal(shmtrain_store_table(store, "count", ROWS, 1), 0);
    WELL(store, shmtrain_store_examples(store, 6400));
    WELL(store, shmtrain_store_will_snapshot(store, 1));
    WELL(store, shmtrain_store_start(store, add_to_parts, NULL));
    for (int k = 0; k < (SANITIZED ? 40 : 100); k++) {
        uint64_t step;
        WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
        for (int part = 0; part < PARTS; part++) {
            float row;
            WELL(into, shmtrain_store_read(into, 0, row_of_part(part), 1, &row));
            if (row != (float)step) fail_msg("part %d of step %llu is %g", part, (unsigned long long)step, (double)row);
        }
        assert_int_equal(shmtrain_store_step(store), 1);
    }
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);
    shmtrain_store_destroy(store);
    shmtrain_store_destroy(into);
    assert_int_equal(system("rm -r points"), 0);
}

/* ---- refusals ---- */

static struct shmtrain_store *g_into;

static void snap_in_listener(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    refused(arg, shmtrain_store_snapshot(arg, g_into, INFINITY, NULL), SHMTRAIN_E_USAGE, "shmtrain_store_start");
}

static void snap_in_step(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)so_far;
    (void)epoch;
    WELL(arg, shmtrain_store_snapshot(arg, g_into, INFINITY, NULL));
    shmtrain_store_stop(arg);
}

static int go_wrong(shmtrain_session *s, void *arg) {
    (void)s;
    (void)arg;
    return SHMTRAIN_E_DATA;
}

/* They have no step, and what has none at all leaves the other store as it is. */
static void parameters_that_were_loaded_are_of_no_step(void **state) {
    struct shmtrain_store *store = open_sparse("threads", "20"), *into = empty(), *nothing = empty();
    uint64_t step, rows;
    (void)state;
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=4000,features=20000"));
    WELL(store, shmtrain_store_save(store, "loaded.model"));
    WELL(store, shmtrain_store_snapshot(store, into, 0, &step));
    assert_int_equal(step, 20);
    refused(store, shmtrain_store_train(store, "there-is-none.svm"), SHMTRAIN_E_SYSTEM, "cannot open");
    refused(store, shmtrain_store_snapshot(store, into, 0, &step), SHMTRAIN_E_SYSTEM, "the run has failed");
    WELL(store, shmtrain_store_load(store, "loaded.model"));
    WELL(store, shmtrain_store_snapshot(store, into, 0, &step));
    assert_int_equal(step, 0);
    refused(nothing, shmtrain_store_snapshot(nothing, into, 0, &step), SHMTRAIN_E_USAGE, "nothing to take a snapshot of");
    float *value = parameters(into, &rows), *same = parameters(store, &rows);
    assert_memory_equal(value, same, rows * sizeof *value);
    free(value);
    free(same);
    shmtrain_store_destroy(nothing);
    shmtrain_store_destroy(into);
    shmtrain_store_destroy(store);
}

/* Its steps are its epochs, at whose ends it has parameters. */
static void those_of_an_exact_fit_are_of_its_epochs(void **state) {
    static const char DATA[] = "builtin:sparse:examples=3000,features=20000";
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = empty(), *into = empty();
        char steps[24];
        uint64_t step, rows[2];
        for (int again = 0; again < 2; again++) {
            WELL(store, shmtrain_store_set(store, "workers", again ? "1" : "2"));
            WELL(store, shmtrain_store_set(store, "spawn", SPAWNS[i]));
            WELL(store, shmtrain_store_set(store, "model", "svm"));
            WELL(store, shmtrain_store_set(store, "C", "1"));
            WELL(store, shmtrain_store_set(store, "tolerance", "1e-9"));
            if (again) break;
            WELL(store, shmtrain_store_will_snapshot(store, 1));
            WELL(store, shmtrain_store_start_training(store, DATA));
            do WELL(store, shmtrain_store_snapshot(store, into, INFINITY, &step));
            while (step < 3);
            shmtrain_store_stop(store);
            assert_int_equal(wait_for_end(store), 0);
            shmtrain_store_destroy(store);
            store = empty();
        }
        snprintf(steps, sizeof steps, "%llu", (unsigned long long)step);
        WELL(store, shmtrain_store_set(store, "steps", steps));
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

static void what_cannot_be_is_refused(void **state) {
    struct shmtrain_store *store = open_adding("sync", "threads", "1");
    int status;
    (void)state;
    g_into = empty();
    refused(store, shmtrain_store_snapshot(store, store, INFINITY, NULL), SHMTRAIN_E_USAGE, "another store");
    refused(store, shmtrain_store_snapshot(store, NULL, INFINITY, NULL), SHMTRAIN_E_USAGE, "another store");
    refused(store, shmtrain_store_snapshot(store, g_into, -1, NULL), SHMTRAIN_E_USAGE, "0 seconds or longer, not -1");
    refused(store, shmtrain_store_snapshot(store, g_into, NAN, NULL), SHMTRAIN_E_USAGE, "0 seconds or longer");
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                     .size = sizeof(struct shmtrain_listener), .arg = store, .epoch = snap_in_listener});
    WELL(store, shmtrain_store_run(store, add_to_both, NULL));

    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                     .size = sizeof(struct shmtrain_listener), .arg = store, .epoch = snap_in_step});
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    const pid_t child = fork();
    if (child == 0) _exit(shmtrain_store_snapshot(store, g_into, INFINITY, NULL) == SHMTRAIN_E_USAGE ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    refused(g_into, shmtrain_store_snapshot(g_into, store, INFINITY, NULL), SHMTRAIN_E_USAGE, "is in progress");
    assert_int_equal(wait_for_end(store), 0);

    shmtrain_store_listen(store, NULL);
    WELL(store, shmtrain_store_start(store, go_wrong, NULL)); /* before, or after, it has failed */
    refused(store, shmtrain_store_snapshot(store, g_into, INFINITY, NULL), SHMTRAIN_E_DATA, "the run has failed");
    assert_int_equal(wait_for_end(store), SHMTRAIN_E_DATA);
    refused(store, shmtrain_store_snapshot(store, g_into, 0, NULL), SHMTRAIN_E_DATA, "the run has failed");
    refused(store, shmtrain_store_run(store, go_wrong, NULL), SHMTRAIN_E_DATA, "");
    refused(store, shmtrain_store_snapshot(store, g_into, 0, NULL), SHMTRAIN_E_DATA, "the run has failed");

    WELL(store, shmtrain_store_will_snapshot(store, 0));
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    refused(store, shmtrain_store_snapshot(store, g_into, INFINITY, NULL), SHMTRAIN_E_USAGE, "will_snapshot");
    shmtrain_store_stop(store);
    assert_int_equal(wait_for_end(store), 0);

    WELL(store, shmtrain_store_will_snapshot(store, 1));
    WELL(store, shmtrain_store_set(store, "backend", "plain"));
    WELL(store, shmtrain_store_start(store, add_to_both, NULL));
    refused(store, shmtrain_store_snapshot(store, g_into, INFINITY, NULL), SHMTRAIN_E_USAGE, "backend plain");
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
        cmocka_unit_test_setup(the_other_store_keeps_its_models, deadline),
        cmocka_unit_test_setup(a_stopped_worker_keeps_nobody_waiting, deadline),
        cmocka_unit_test_setup(a_run_that_loads_keeps_nobody_waiting, deadline),
        cmocka_unit_test_setup(a_snapshot_is_a_checkpoint_only_when_one_is_due, deadline),
        cmocka_unit_test_setup(a_snapshot_is_whole_while_checkpoints_are_written, deadline),
        cmocka_unit_test_setup(checkpoints_and_snapshots_do_not_disturb_one_another, deadline),
        cmocka_unit_test_setup(parameters_that_were_loaded_are_of_no_step, deadline),
        cmocka_unit_test_setup(those_of_an_exact_fit_are_of_its_epochs, deadline),
        cmocka_unit_test_setup(what_cannot_be_is_refused, deadline),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
