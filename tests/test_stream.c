/* Predicting lines as they come: through the library, from pipes whose other end the tests have in hand. */
#include "api_help.h"
#include "folder_help.h"
#include "sanitized.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/atomic.h"
#include "segment/budget.h"

/* A sanitizer's allocator says no, as the C library's does, in place of ending the program. */
#define EXPORTED __attribute__((visibility("default")))
const char *__asan_default_options(void);
EXPORTED const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__tsan_default_options(void);
EXPORTED const char *__tsan_default_options(void) { return "allocator_may_return_null=1"; }

enum { MOST = SANITIZED ? 5000 : 20000 }; /* examples */

/* ---- predictions that are kept ---- */

struct answers {
    struct shmtrain_store *store;
    uint64_t n;
    float label[MOST], output[MOST][3];
    int fail_at; /* `each` returns 7 for this example; -1: never */

    /* the other end of the pipe: at each pause the next `piece` bytes of the text are sent, and at its end it is closed */
    const char *text;
    size_t sent, piece;
    int to;
    uint64_t pauses;
    bool by_lines, stops; /* by_lines: instead of pieces, and every line before was answered */
};

static int keep(void *arg, uint64_t example, float label, const float *output, uint32_t n) {
    struct answers *a = arg;
    if (a->fail_at == (int)example) return 7;
    assert_int_equal(example, a->n);
    assert_in_range(n, 1, 3);
    a->label[a->n] = label;
    memcpy(a->output[a->n++], output, n * sizeof *output);
    return 0;
}

static int send_more(void *arg) {
    struct answers *a = arg;
    const size_t left = strlen(a->text) - a->sent;
    size_t n = a->piece < left ? a->piece : left;
    a->pauses++;
    if (a->by_lines) {
        assert_int_equal(a->n, a->pauses - 1);
        n = strcspn(a->text + a->sent, "\n") + 1;
        if (n > left) n = left;
    }
    if (a->stops) shmtrain_store_stop(a->store);
    if (n == 0) {
        assert_int_equal(close(a->to), 0);
        a->to = -1;
        return 0;
    }
    assert_int_equal(write(a->to, a->text + a->sent, n), n);
    a->sent += n;
    return 0;
}

static struct answers *make_answers(struct shmtrain_store *store, const char *text) {
    struct answers *a = calloc(1, sizeof *a);
    assert_non_null(a);
    a->store = store;
    a->text = text;
    a->piece = 50000; /* less than a pipe takes */
    a->fail_at = -1;
    a->to = -1;
    return a;
}

/* The call's result; the text goes through a pipe. */
static int stream(struct answers *a, int probabilities) {
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    const struct shmtrain_stream from = {
        .size = sizeof(struct shmtrain_stream), .fd = pipes[0], .name = "the pipe", .pause = send_more};
    a->to = pipes[1];
    a->n = a->sent = a->pauses = 0;
    const int rc = shmtrain_store_predict_stream(a->store, &from, probabilities, keep, a);
    close(pipes[0]);
    if (a->to >= 0) close(a->to);
    return rc;
}

/* ---- models and data ---- */

static struct shmtrain_store *make_trained(const char *model) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_set(store, "model", model));
    WELL(store, shmtrain_store_train(store, "data"));
    return store;
}

static char *make_text(int n, int n_labels) {
    char *text = malloc((size_t)n * 40 + 1), *at = text;
    assert_non_null(text);
    for (int i = 0; i < n; i++) at += sprintf(at, "%d %d:0.5 %d:%d\n", i % n_labels, 1 + i % 7, 10 + i % n_labels, 1 + i % 3);
    return text;
}

static void assert_same(const struct answers *a, const struct answers *b) {
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->label, b->label, a->n * sizeof *a->label);
    assert_memory_equal(a->output, b->output, a->n * sizeof *a->output);
}

/* ---- tests ---- */

static void a_line_is_answered_before_the_next_one_comes(void **state) {
    (void)state;
    char *text = make_text(200, 2);
    write_text("data", text);
    struct shmtrain_store *store = make_trained("logistic");
    struct answers *a = make_answers(store, text);
    a->by_lines = true;
    WELL(store, stream(a, 0));
    assert_int_equal(a->n, 200);
    assert_int_equal(a->pauses, 201);
    free(a);
    free(text);
    shmtrain_store_destroy(store);
}

static void a_stream_says_what_the_file_says_however_it_is_cut(void **state) {
    static const char *const MODELS[] = {"logistic", "linear", "softmax"};
    static const size_t PIECES[] = {1, 7, 4096, 50000};
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        char *text = make_text(1000, m == 2 ? 3 : 2);
        write_text("data", text);
        struct shmtrain_store *store = make_trained(MODELS[m]);
        struct answers *whole = make_answers(store, ""), *a = make_answers(store, text);
        const int probabilities = m != 1;
        WELL(store, shmtrain_store_predict(store, "data", probabilities, keep, whole));
        for (size_t i = 0; i < sizeof PIECES / sizeof *PIECES; i++) {
            a->piece = PIECES[i];
            WELL(store, stream(a, probabilities));
            assert_same(a, whole);
        }
        free(whole);
        free(a);
        free(text);
        shmtrain_store_destroy(store);
    }
}

static void blanks_are_no_examples_and_the_last_line_needs_no_end(void **state) {
    (void)state;
    write_text("data", "0 1:1\n1 2:1\n");
    struct shmtrain_store *store = make_trained("logistic");
    struct answers *a = make_answers(store, "\n# words\n5 1:1\r\n\n0 2:1 900:3 # more\n1 2:1");
    WELL(store, stream(a, 0));
    assert_int_equal(a->n, 3);
    assert_true(a->label[0] == 0 && a->label[1] == 1 && a->label[2] == 1);
    a->text = "";
    WELL(store, stream(a, 0)); /* nothing at all */
    assert_int_equal(a->n, 0);
    free(a);
    shmtrain_store_destroy(store);
}

static void a_line_may_be_longer_than_any_buffer(void **state) {
    (void)state;
    write_text("data", "0 1:1\n1 2:1\n");
    struct shmtrain_store *store = make_trained("logistic");
    char *text = malloc(3000000), *at = text;
    assert_non_null(text);
    at += sprintf(at, "0 1:1\n1");
    for (int j = 2; j < 100000; j++) at += sprintf(at, " %d:1.250", j);
    at += sprintf(at, "\n0 1:1\n");
    struct answers *a = make_answers(store, text);
    WELL(store, stream(a, 0));
    assert_int_equal(a->n, 3);
    assert_true(a->label[0] == 0 && a->label[1] == 1 && a->label[2] == 0);
    free(a);
    free(text);
    shmtrain_store_destroy(store);
}

static void what_stands_before_a_bad_line_is_answered(void **state) {
    (void)state;
    write_text("data", "0 1:1\n1 2:1\n");
    struct shmtrain_store *store = make_trained("logistic");
    struct answers *a = make_answers(store, "0 1:1\n\n1 2:1\n1 2:x\n0 1:1\n");
    refused(store, stream(a, 0), SHMTRAIN_E_DATA, "the pipe:4:5: expected a number after \"2:\", found \"x\"");
    assert_int_equal(a->n, 2);
    assert_true(a->label[0] == 0 && a->label[1] == 1);
    free(a);
    shmtrain_store_destroy(store);
}

static void who_is_answered_can_end_it(void **state) {
    (void)state;
    write_text("data", "0 1:1\n1 2:1\n");
    struct shmtrain_store *store = make_trained("logistic");
    struct answers *a = make_answers(store, "0 1:1\n1 2:1\n0 1:1\n");
    a->fail_at = 1;
    assert_int_equal(stream(a, 0), 7);
    assert_int_equal(a->n, 1);
    a->fail_at = -1;
    a->stops = true;
    refused(store, stream(a, 0), SHMTRAIN_E_STOPPED, "stopped while reading the pipe");
    a->stops = false;
    WELL(store, stream(a, 0));
    assert_int_equal(a->n, 3);
    free(a);
    shmtrain_store_destroy(store);
}

static void models_that_cannot_answer_are_refused(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    struct answers *a = make_answers(store, "0 1:1\n");
    refused(store, stream(a, 0), SHMTRAIN_E_USAGE, "there is no model");
    shmtrain_store_destroy(store);
    write_text("data", "0 1:1\n1 2:1\n");
    store = a->store = make_trained("svm");
    refused(store, stream(a, 1), SHMTRAIN_E_USAGE, "model svm has no probabilities");
    WELL(store, stream(a, 0));
    free(a);
    shmtrain_store_destroy(store);
}

/* ---- files ---- */

static uint64_t g_available; /* 0: what there is */
void __real_shmt_budget_read(const char *root, struct shmt_budget *out);
void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out);
void __wrap_shmt_budget_read(const char *root, struct shmt_budget *out) {
    __real_shmt_budget_read(root, out);
    if (g_available) out->available_bytes = g_available;
}

/* MOST lines of 120 features each. */
static char *make_wide_text(void) {
    char *text = malloc((size_t)MOST * 120 * 8 + 1), *at = text;
    assert_non_null(text);
    for (int i = 0; i < MOST; i++) {
        at += sprintf(at, "%d %d:0.5", i % 2, 1 + i % 7);
        for (int k = 0; k < 119; k++) at += sprintf(at, " %d:%d", 10 + k, 1 + (i + k) % 3);
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

static void a_file_that_memory_has_no_room_for_is_read_line_by_line(void **state) {
    (void)state;
    char *text = make_wide_text();
    write_text("data", text);
    struct shmtrain_store *store = make_trained("logistic");
    struct answers *whole = make_answers(store, ""), *a = make_answers(store, "");
    WELL(store, shmtrain_store_predict(store, "data", 1, keep, whole));
    g_available = MOST * 200; /* the examples take more than twice as much, and more than what is not asked about */
    WELL(store, shmtrain_store_predict(store, "data", 1, keep, a));
    assert_same(a, whole);
    memcpy(strstr(text + strlen(text) / 2, ":0.5"), ":0,5", 4);
    write_text("data", text);
    a->n = 0;
    refused(store, shmtrain_store_predict(store, "data", 1, keep, a), SHMTRAIN_E_DATA, "expected a number after");
    assert_in_range(a->n, MOST / 4, MOST - 1);
    assert_memory_equal(a->label, whole->label, a->n * sizeof *a->label);
    refused(store, shmtrain_store_predict(store, "builtin:sparse:examples=400000", 0, keep, a), SHMTRAIN_E_MEMORY,
            "but the "); /* that is no file */
    g_available = 0;
    free(whole);
    free(a);
    free(text);
    shmtrain_store_destroy(store);
}

/* ---- workspaces ---- */

static uint64_t g_workspace;
static _Atomic uint32_t g_asked; /* how often */

static uint32_t one_table(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          struct shmtrain_shape *out) {
    (void)data;
    (void)with;
    (void)state;
    out[0] = (struct shmtrain_shape){.name = "w", .rows = 1, .width = 1};
    return 1;
}

static int step_nowhere(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                        double *loss_out) {
    const float grad = 0;
    (void)pass;
    (void)batch;
    *loss_out = 0;
    return shmtrain_push(s, 0, 0, 1, &grad);
}

static int score_nothing(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                         float *score_out, double *loss_out) {
    (void)s;
    (void)pass;
    for (uint32_t k = 0; k < batch->n; k++) score_out[k] = 0;
    *loss_out = 0;
    return 0;
}

static uint64_t workspace(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          uint32_t n) {
    (void)data;
    (void)with;
    (void)state;
    (void)n;
    (void)take_relaxed(&g_asked, 1); /* a count, read when all are done */
    return g_workspace;
}

static struct shmtrain_store *make_roomy(const char *workers) {
    const struct shmtrain_model roomy = {.size = sizeof roomy,
                                         .name = "roomy",
                                         .tables = one_table,
                                         .step = step_nowhere,
                                         .score = score_nothing,
                                         .workspace = workspace,
                                         .traits.rate = 0.1f,
                                         .task = SHMTRAIN_REGRESSION};
    struct shmtrain_store *store;
    g_workspace = 64;
    write_text("data", "0 1:1\n1 2:1\n2 1:1\n");
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_offer(store, &roomy));
    WELL(store, shmtrain_store_set(store, "model", "roomy"));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_train(store, "data"));
    return store;
}

/* What does not fit is refused before it is tried. */
static void workspaces_count_as_memory_that_scoring_needs(void **state) {
    const struct shmtrain_evaluation *e;
    (void)state;
    struct shmtrain_store *store = make_roomy("2");
    struct answers *a = make_answers(store, "0 1:1\n");
    for (int i = 0; i < 2; i++) {
        g_workspace = i == 0 ? UINT64_C(1) << 50 : UINT64_MAX;
        refused(store, shmtrain_store_evaluate(store, "data", &e), SHMTRAIN_E_MEMORY, "scoring the data");
        refused(store, shmtrain_store_predict(store, "data", 0, keep, a), SHMTRAIN_E_MEMORY, "scoring the data");
        refused(store, stream(a, 0), SHMTRAIN_E_MEMORY, "scoring the data");
    }
    g_workspace = 64;
    WELL(store, stream(a, 0));
    free(a);
    shmtrain_store_destroy(store);
}

/* Where the limit of a process is lower than what there is. */
static void a_workspace_that_the_system_refuses_is_named(void **state) {
    (void)state;
    struct shmtrain_store *store = make_roomy("1");
    struct answers *a = make_answers(store, "0 1:1\n");
    g_workspace = UINT64_C(1) << 60;
    g_available = UINT64_MAX;
    refused(store, stream(a, 0), SHMTRAIN_E_MEMORY, "not enough memory for the workspace of model roomy");
    g_available = 0;
    free(a);
    shmtrain_store_destroy(store);
}

/* Three examples are one group, for one worker: the other seven are not started. */
static void there_are_no_more_workers_than_groups_of_examples(void **state) {
    const struct shmtrain_evaluation *e;
    (void)state;
    struct shmtrain_store *store = make_roomy("8");
    store_relaxed(&g_asked, 0);
    WELL(store, shmtrain_store_evaluate(store, "data", &e));
    assert_int_equal(load_relaxed(&g_asked), 2); /* the budget, and a seat */
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_line_is_answered_before_the_next_one_comes, deadline),
        cmocka_unit_test_setup(a_stream_says_what_the_file_says_however_it_is_cut, deadline),
        cmocka_unit_test_setup(blanks_are_no_examples_and_the_last_line_needs_no_end, deadline),
        cmocka_unit_test_setup(a_line_may_be_longer_than_any_buffer, deadline),
        cmocka_unit_test_setup(what_stands_before_a_bad_line_is_answered, deadline),
        cmocka_unit_test_setup(who_is_answered_can_end_it, deadline),
        cmocka_unit_test_setup(models_that_cannot_answer_are_refused, deadline),
        cmocka_unit_test_setup(workspaces_count_as_memory_that_scoring_needs, deadline),
        cmocka_unit_test_setup(a_workspace_that_the_system_refuses_is_named, deadline),
        cmocka_unit_test_setup(there_are_no_more_workers_than_groups_of_examples, deadline),
        cmocka_unit_test_setup(a_file_that_memory_has_no_room_for_is_read_line_by_line, deadline),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
