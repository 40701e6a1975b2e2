/* Arrays of the application in runs: workers read borrowed ones where they are, or a note says why not; guests get theirs from
 * the segment; checkpoints know them again; and what changes meanwhile does no harm. */
#include "arrays_help.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "data_load.h"
#include "data/given.h"

static int begin(void **state) {
    make_rows();
    return make_folder(state);
}

/* ---- in place ---- */

static struct shmtrain_data g_seen; /* by a worker that is a thread */

static uint32_t tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out) {
    (void)state;
    (void)with;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = (uint64_t)data->n_features + 1, .width = 1};
    return 1;
}

static int step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out) {
    (void)s;
    (void)pass;
    g_seen = *batch->data;
    *loss_out = 0;
    return 0;
}

static int score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out) {
    (void)s;
    (void)pass;
    g_seen = *batch->data;
    for (uint32_t i = 0; i < batch->n; i++) score_out[i] = 0;
    *loss_out = 0;
    return 0;
}

static struct shmtrain_model g_looks = {.size = sizeof(struct shmtrain_model),
                                        .name = "looks",
                                        .loss = "loss",
                                        .tables = tables,
                                        .step = step,
                                        .score = score},
                             g_looks_dense = {
                                 .size = sizeof(struct shmtrain_model),
                                 .name = "looks-dense",
                                 .loss = "loss",
                                 .traits = {.rows = SHMTRAIN_ROWS_DENSE, .pushes_tables = 1, .loops = 1, .curvature = 0.25f},
                                 .tables = tables,
                                 .step = step,
                                 .score = score};

static char g_note[512];

static void keep_note(void *arg, const char *line) {
    (void)arg;
    if (strstr(line, "is copied")) snprintf(g_note, sizeof g_note, "%s", line);
}

static struct shmtrain_store *open_looking(const struct shmtrain_model *model, const struct shmtrain_arrays *arrays) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, model));
    WELL(store, shmtrain_store_set(store, "model", model->name));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    WELL(store, shmtrain_store_arrays(store, "train", arrays));
    shmtrain_store_listen(store,
                          &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .note = keep_note});
    memset(&g_seen, 0, sizeof g_seen);
    g_note[0] = '\0';
    return store;
}

/* What workers saw in training, and when they scored. */
static void look(const struct shmtrain_model *model, const struct shmtrain_arrays *arrays, struct shmtrain_data *trained,
                 struct shmtrain_data *scored) {
    struct shmtrain_store *store = open_looking(model, arrays);
    const struct shmtrain_evaluation *e;
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    *trained = g_seen;
    memset(&g_seen, 0, sizeof g_seen);
    WELL(store, shmtrain_store_evaluate(store, "arrays:train", &e));
    *scored = g_seen;
    shmtrain_store_destroy(store);
}

static void borrowed_arrays_are_read_where_they_are(void **state) {
    struct shmtrain_arrays sparse = sparse_arrays(1), dense = dense_arrays(1, 0);
    struct shmtrain_data seen[2];
    (void)state;
    look(&g_looks, &sparse, &seen[0], &seen[1]);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(seen[i].start, g_start);
        assert_ptr_equal(seen[i].id, g_id);
        assert_ptr_equal(seen[i].value, g_value);
        assert_ptr_equal(seen[i].label, g_label);
    }
    look(&g_looks_dense, &dense, &seen[0], &seen[1]);
    for (int i = 0; i < 2; i++) {
        assert_ptr_equal(seen[i].dense, g_dense);
        assert_ptr_equal(seen[i].label, g_label);
    }
    assert_string_equal(g_note, "");
    sparse.value = NULL;
    look(&g_looks, &sparse, &seen[0], &seen[1]);
    assert_ptr_equal(seen[0].id, g_id);
    assert_null(seen[0].value);
}

/* Copied ones are taken from the copy that there is; what workers see is the same. */
static void copied_arrays_are_elsewhere(void **state) {
    const struct shmtrain_arrays sparse = sparse_arrays(0), gaps = dense_arrays(0, FEATURES + 3);
    struct shmtrain_data seen[2];
    (void)state;
    look(&g_looks, &sparse, &seen[0], &seen[1]);
    assert_ptr_not_equal(seen[0].id, g_id);
    assert_string_equal(g_note, "");
    look(&g_looks_dense, &gaps, &seen[0], &seen[1]);
    assert_ptr_not_equal(seen[0].dense, g_spaced);
    assert_string_equal(g_note, "");
}

static void assert_copied(const struct shmtrain_model *model, const struct shmtrain_arrays *arrays, const char *option,
                          const char *value, const char *why) {
    struct shmtrain_store *store = open_looking(model, arrays);
    if (option) WELL(store, shmtrain_store_set(store, option, value));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    assert_non_null(g_seen.label);
    assert_true(g_seen.label != g_label && g_seen.id != g_id && g_seen.dense != g_dense);
    if (!strstr(g_note, "arrays:train is copied: ") || !strstr(g_note, why)) fail_msg("\"%s\" lacks \"%s\"", g_note, why);
    shmtrain_store_destroy(store);
}

static void a_note_says_why_borrowed_arrays_are_copied(void **state) {
    static float zeros[ENTRIES];
    struct shmtrain_arrays a = sparse_arrays(1);
    const struct shmtrain_arrays sparse = a, dense = dense_arrays(1, 0), gaps = dense_arrays(1, FEATURES + 3),
                                 wide = wide_arrays(1);
    char name[64];
    (void)state;
    assert_copied(&g_looks_dense, &sparse, NULL, NULL, "the model needs dense rows");
    assert_copied(&g_looks, &dense, NULL, NULL, "the model needs sparse rows");
    assert_copied(&g_looks_dense, &gaps, NULL, NULL, "gaps between its rows");
    assert_copied(&g_looks, &wide, NULL, NULL, "64 bits");
    assert_copied(&g_looks, &sparse, "hash-bits", "5", "hashed");
    snprintf(name, sizeof name, "test_arrays-%d", (int)getpid());
    assert_copied(&g_looks, &sparse, "name", name, "has a name");
    (void)shmtrain_named_remove(name, 1, g_note, sizeof g_note);
    memcpy(zeros, g_value, sizeof zeros);
    zeros[5] = 0;
    a.value = zeros;
    assert_copied(&g_looks, &a, NULL, NULL, "values that are 0");
}

/* ---- what changes ---- */

/* Counted, then changed: filling writes what it was counted for, or says so, and nothing beyond it (AddressSanitizer). */
static void arrays_that_change_do_no_harm(void **state) {
    struct shmt_given given = {.name = "arrays:x", .of = sparse_arrays(1)};
    struct shmt_source *source;
    struct shmt_error e = {0};
    struct loaded l;
    (void)state;
    assert_int_equal(shmt_given_check(&given, &e), 0);
    assert_int_equal(shmt_given_open(&given, true, &source, &e), 0);
    for (int what = 0; what < 6; what++) {
        make_rows();
        assert_int_equal(load_count(&l, source, 3, COLUMNS(0, FEATURES)), 0);
        load_allocate(&l, COLUMNS(0, FEATURES));
        if (what == 0) g_start[5] = UINT64_MAX;
        if (what == 1) g_start[EXAMPLES] -= 2;
        if (what == 2) g_id[9] = UINT32_MAX;
        if (what == 3) g_value[9] = 0;
        if (what == 4) g_label[9] = 17;
        if (what == 5) g_start[100]--; /* still rows, or not: never beyond the arrays */
        const int rc = load_fill(&l, source, 3);
        if (what < 5) assert_int_equal(rc, SHMTRAIN_E_DATA);
        if (rc < 0) assert_non_null(strstr(l.error.text, "arrays:x: the arrays changed while they were being read"));
        load_free(&l);
    }
    shmt_source_close(source);
    make_rows();
}

/* ---- guests ---- */

static struct shared {
    _Atomic uint32_t joined;
    uint64_t updates, xxh64;
    char said[512];
} * g_shared;

static struct shmtrain_store *g_maker;

/* The run ends when a guest has done some of it. */
static void stop_when_joined(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    (void)arg;
    (void)so_far;
    if (now->n_workers == 2 && now->worker[1].examples > EXAMPLES) shmtrain_store_stop(g_maker);
}

static void nap(void) { nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL); }

static void run_maker(const char *name, const struct shmtrain_arrays *arrays) {
    struct shmtrain_store *store = g_maker = open_store("logistic", "processes", "1");
    WELL(store, shmtrain_store_set(store, "name", name));
    WELL(store, shmtrain_store_set(store, "guests", "1"));
    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    WELL(store, shmtrain_store_arrays(store, "train", arrays));
    shmtrain_store_listen(
        store, &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .progress = stop_when_joined});
    const int rc = shmtrain_store_train(store, "arrays:train");
    snprintf(g_shared->said, sizeof g_shared->said, "%d %s", rc, shmtrain_store_message(store));
    g_shared->updates = shmtrain_store_report(store)->updates;
    g_shared->xxh64 = shmtrain_store_report(store)->parameters_xxh64;
    _exit(rc == 0 ? 0 : 1);
}

/* Of the same store in another process: it gets the data from the segment, and the sums stay exact. */
static void guests_join_a_run_on_arrays(void **state) {
    char name[64], steps[24], message[256];
    static float weight[EXAMPLES];
    (void)state;
    g_shared = mmap(NULL, sizeof *g_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(g_shared != MAP_FAILED);
    snprintf(name, sizeof name, "test_arrays-%d", (int)getpid());
    struct shmtrain_arrays a = sparse_arrays(1);
    for (uint32_t i = 0; i < EXAMPLES; i++) weight[i] = (float)(1 + i % 3);
    a.weight = weight;
    const pid_t maker = fork();
    if (maker == 0) run_maker(name, &a);
    struct shmtrain_store *guest;
    int rc, status;
    do { /* it is loading, or not there yet */
        nap();
        assert_int_equal(shmtrain_store_create(&guest), 0);
        WELL(guest, shmtrain_store_set(guest, "workers", "1"));
        rc = shmtrain_store_join(guest, name, NULL, NULL);
        if (rc == 0) break;
        if (waitpid(maker, &status, WNOHANG) != 0) fail_msg("%s; %s", g_shared->said, shmtrain_store_message(guest));
        shmtrain_store_destroy(guest);
    } while (rc < 0);
    assert_int_equal(waitpid(maker, &status, 0), maker);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s", g_shared->said);

    /* its parameters can be looked at with arrays of one's own */
    const struct shmtrain_evaluation *e;
    WELL(guest, shmtrain_store_arrays(guest, "mine", &a));
    WELL(guest, shmtrain_store_evaluate(guest, "arrays:mine", &e));
    assert_true(e->accuracy > 0.8);
    shmtrain_store_destroy(guest);
    (void)shmtrain_named_remove(name, 1, message, sizeof message);

    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    snprintf(steps, sizeof steps, "%llu", (unsigned long long)g_shared->updates);
    WELL(store, shmtrain_store_set(store, "steps", steps));
    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == g_shared->xxh64);
    shmtrain_store_destroy(store);
    munmap(g_shared, sizeof *g_shared);
}

/* ---- checkpoints ---- */

static struct shmtrain_store *open_resuming(const char *folder, const char *steps, const struct shmtrain_arrays *arrays) {
    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    WELL(store, shmtrain_store_set(store, "epochs", "4"));
    WELL(store, shmtrain_store_set(store, "checkpoint", folder));
    WELL(store, shmtrain_store_set(store, "steps", steps));
    WELL(store, shmtrain_store_arrays(store, "train", arrays));
    return store;
}

static void a_checkpoint_knows_its_arrays_again(void **state) {
    struct shmtrain_arrays a = sparse_arrays(1);
    char command[64];
    (void)state;
    struct shmtrain_store *store = open_store("logistic", "threads", "2");
    WELL(store, shmtrain_store_set(store, "epochs", "4"));
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    const uint64_t xxh64 = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);

    store = open_resuming("points", "7", &a);
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    shmtrain_store_destroy(store);

    store = open_resuming("points", "all", &a);
    WELL(store, shmtrain_store_set(store, "resume", "1"));
    g_label[3] = -g_label[3];
    refused(store, shmtrain_store_train(store, "arrays:train"), SHMTRAIN_E_USAGE, "data");
    g_label[3] = -g_label[3];
    a.borrowed = 0;
    WELL(store, shmtrain_store_arrays(store, "train", &a));
    WELL(store, shmtrain_store_train(store, "arrays:train"));
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == xxh64);
    shmtrain_store_destroy(store);
    snprintf(command, sizeof command, "rm -r points");
    assert_int_equal(system(command), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(borrowed_arrays_are_read_where_they_are, deadline),
        cmocka_unit_test_setup(copied_arrays_are_elsewhere, deadline),
        cmocka_unit_test_setup(a_note_says_why_borrowed_arrays_are_copied, deadline),
        cmocka_unit_test_setup(arrays_that_change_do_no_harm, deadline),
        cmocka_unit_test_setup(guests_join_a_run_on_arrays, deadline),
        cmocka_unit_test_setup(a_checkpoint_knows_its_arrays_again, deadline),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
