/* The real program from outside: shmtrain inspect, and examples/read_checkpoint.py, which knows the format and nothing else. */
#include "run_program.h"

#include <limits.h>
#include <sys/stat.h>

#include "checkpoint_help.h"

#define CHECKPOINT "./checkpoint-000000000015.safetensors"

static int make_files(void **state) {
    const struct shmt_checkpoint c = sample();
    char path[PATH_MAX];
    if (program_make_folder(state) < 0) return -1;
    program_write_file("two.svm", "7 1:1 3:1\n4 1:1\n");
    return shmt_checkpoint_write(".", &c, 3, path, NULL) == 0 && strcmp(path, CHECKPOINT) == 0 ? 0 : -1;
}

static void assert_lines_fit(const char *text) {
    for (const char *at = text; *at; at += strcspn(at, "\n") + 1) {
        const size_t n = strcspn(at, "\n");
        if (n > 80) fail_msg("%zu columns: %.*s", n, (int)n, at);
        for (size_t i = 0; i < n; i++) assert_in_range((unsigned char)at[i], ' ', '~');
    }
}

static void assert_says(const struct program *p, const char *words) {
    if (!strstr(p->text[OUT], words)) fail_msg("expected \"%s\" in:\n%s", words, p->text[OUT]);
}

static void a_checkpoint_says_where_its_run_stood(void **state) {
    (void)state;
    struct program *p = RUN("inspect", CHECKPOINT);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    assert_lines_fit(p->text[OUT]);
    assert_says(p, "kind        checkpoint, ");
    assert_says(p, "model       logistic\n");
    assert_says(p, "features    4, ids 0 to 3; no bias\n");
    assert_says(p, "position    epoch 3 of 4, 3 of 6 items done; after 2.5 s\n");
    assert_says(p, "ended by    steps\n");
    assert_says(p, "losses      of epoch 2: training 0.25000, validation 0.37500\n");
    assert_says(p, "mode        async; 2 workers; items of 16\n");
    assert_says(p, "optimizer   ftrl, rate 0.1, cosine; l1 1e-09, l2 0.7\n");
    assert_says(p, "seed        9000000000000000001\n");
    assert_says(p, "clocks      2 of seats, from 13 to 17\n");
    assert_says(p, "data        90 examples, 4 features, 321 nonzeros\n");
    assert_says(p, "\nweight           F32              5      20        -1         4       1.1  100%\n");
    assert_says(p, "\nmore/state.0     F32          2 x 3      24         0         7      1.17   17%\n");
    assert_says(p, "\nledger/done      U32              6      24 ");
}

static void the_same_as_json(void **state) {
    (void)state;
    struct program *p = RUN("inspect", "--json", CHECKPOINT);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *run = json_object_get(o, "checkpoint"), *tensors = json_object_get(o, "tensors");
    assert_string_equal(json_string_value(json_object_get(o, "kind")), "checkpoint");
    assert_int_equal(json_integer_value(json_object_get(run, "epoch")), 2);
    assert_int_equal(json_integer_value(json_object_get(run, "step")), 3);
    assert_int_equal(json_integer_value(json_object_get(run, "seed")), 9000000000000000001);
    assert_int_equal(json_integer_value(json_object_get(run, "clock_max")), 17);
    assert_string_equal(json_string_value(json_object_get(run, "optimizer")), "ftrl");
    assert_true(json_real_value(json_object_get(run, "valid_loss")) == 0.375);
    assert_int_equal(json_array_size(tensors), 11);
    const json_t *weight = json_array_get(tensors, 0), *wide = json_array_get(tensors, 1);
    assert_string_equal(json_string_value(json_object_get(weight, "name")), "weight");
    assert_true(json_is_true(json_object_get(weight, "table")));
    assert_int_equal(json_array_size(json_object_get(weight, "shape")), 1);
    assert_int_equal(json_array_size(json_object_get(wide, "shape")), 2);
    assert_true(json_real_value(json_object_get(weight, "min")) == -1);
    assert_true(json_real_value(json_object_get(weight, "max")) == 4);
    assert_true(json_is_false(json_object_get(json_array_get(tensors, 2), "table")));
    json_decref(o);
}

static void models_of_both_kinds_are_shown(void **state) {
    (void)state;
    program_assert_status(RUN("-q", "-w", "1", "-o", "two.model", "two.svm"), 0);
    program_assert_status(RUN("model", "convert", "two.model", "-o", "two.text", "--format", "liblinear"), 0);
    struct program *p = RUN("inspect", "two.model");
    program_assert_status(p, 0);
    assert_lines_fit(p->text[OUT]);
    assert_says(p, "kind        model, ");
    assert_says(p, "model       logistic (binary)\n");
    assert_says(p, "features    3, ids 1 to 3; a bias\n");
    assert_says(p, "classes     2: 4, 7\n");
    assert_null(strstr(p->text[OUT], "position"));
    p = RUN("inspect", "two.text");
    program_assert_status(p, 0);
    assert_says(p, "kind        liblinear model, ");
    assert_says(p, "classes     2: 4, 7\n");
    assert_says(p, "\nweight           F32              4      16 ");
    p = RUN("inspect", "--json", "two.model");
    json_t *o = program_json(p);
    assert_true(json_is_null(json_object_get(o, "checkpoint")));
    assert_int_equal(json_array_size(json_object_get(o, "classes")), 2);
    json_decref(o);
}

static void names_and_numbers_of_others_reach_the_terminal_as_text(void **state) {
    (void)state;
    static const char HEADER[] =
        "{\"a\\u001b[31m-very-long-name-of-a-tensor-0123456789-0123456789-0123456789-0123456789\":"
        "{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[12,12]},"
        "\"__metadata__\":{\"shmtrain.model\":\"\\u001b[2J\",\"shmtrain.features\":\"-1\"}}";
    const uint64_t n = sizeof HEADER - 1;
    const float data[3] = {NAN, INFINITY, 2};
    FILE *f = fopen("odd", "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(&n, 8, 1, f) + fwrite(HEADER, n, 1, f) + fwrite(data, sizeof data, 1, f), 3);
    assert_int_equal(fclose(f), 0);
    struct program *p = RUN("inspect", "odd");
    program_assert_status(p, 0);
    assert_lines_fit(p->text[OUT]);
    assert_says(p, "2 of them are infinite or not numbers");
    assert_says(p, "empty            F32              0       0         -         -         -     -\n");
    p = RUN("inspect", "--json", "odd");
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    json_decref(o);
}

static void pipes_are_refused_and_not_waited_for(void **state) {
    (void)state;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    program_assert_refused(RUN("inspect", "pipe"), 1, "pipe is not a regular file: name a model file");
    struct program *p = RUN("help", "inspect");
    assert_non_null(strstr(p->text[OUT], "It is read more than once, so it"));
}

static void what_is_damaged_is_one_line(void **state) {
    (void)state;
    char bytes[8192];
    FILE *f = fopen(CHECKPOINT, "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    assert_true(n > 2000 && n < sizeof bytes);
    bytes[n - 1] ^= 1;
    f = fopen("turned", "wb");
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    fclose(f);
    f = fopen("short", "wb");
    assert_int_equal(fwrite(bytes, 1, n - 1, f), n - 1);
    fclose(f);
    const struct refusal list[] = {
        {1, "turned is damaged: its checksum does not match its contents", {"inspect", "turned"}},
        {1, "short: key \"", {"inspect", "short"}},
        {1, "not a model file", {"inspect", "two.svm"}},
        {1, "cannot open the model none: No such file or directory", {"inspect", "none"}},
        {1, "is a folder", {"inspect", "."}},
        {2, "inspect", {"inspect"}},
        {2, "inspect", {"inspect", CHECKPOINT, "two.svm"}},
    };
    ASSERT_ALL_REFUSED(list);
}

/* With the first interpreter that has NumPy. */
static struct program *run_example(const char *file) {
    static const char *const PYTHONS[] = {"python3", "/usr/bin/python3"};
    const char *source = getenv("TEST_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/examples/read_checkpoint.py", source ? source : ".");
    for (size_t i = 0; i < sizeof PYTHONS / sizeof *PYTHONS; i++)
        if (program_run(NULL, (const char *const[]){PYTHONS[i], "-c", "import numpy", NULL})->status == 0)
            return program_run(NULL, (const char *const[]){PYTHONS[i], path, file, NULL});
    print_message("skipped: there is no python3 with numpy\n");
    skip();
    return NULL;
}

static void numpy_alone_reads_it(void **state) {
    (void)state;
    struct program *p = run_example(CHECKPOINT);
    program_assert_status(p, 0);
    assert_says(p, "model: logistic\n");
    assert_says(p, "position: 2 of 4 epochs, and 3 steps of the next one\n");
    assert_says(p, "run: mode async, ftrl, rate 0.1, seed 9000000000000000001\n");
    assert_says(p, "epoch 2: 90 examples in 0.5 s, loss 0.25000\n");
    assert_says(p, "in progress: 42 examples are done, loss 0.08929\n");
    assert_says(p, "weight: parameters, float32, (5,), mean 1.1\n");
    assert_says(p, "more/state.0: more, float32, (2, 3), mean 1.16667\n");
    assert_says(p, "feature_id: more, uint64, (4,)");
}

static void a_checkpoint_is_read_as_a_model(void **state) {
    (void)state;
    /* The sample's notes name the features only: what is missing is said as of any model, and not that it is a checkpoint. */
    const struct refusal list[] = {{1, "key \"shmtrain.first_feature\": is missing", {"predict", CHECKPOINT, "two.svm"}}};
    ASSERT_ALL_REFUSED(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_checkpoint_says_where_its_run_stood),
        PROGRAM_TEST(the_same_as_json),
        PROGRAM_TEST(models_of_both_kinds_are_shown),
        PROGRAM_TEST(names_and_numbers_of_others_reach_the_terminal_as_text),
        PROGRAM_TEST(pipes_are_refused_and_not_waited_for),
        PROGRAM_TEST(what_is_damaged_is_one_line),
        PROGRAM_TEST(numpy_alone_reads_it),
        PROGRAM_TEST(a_checkpoint_is_read_as_a_model),
    };
    return cmocka_run_group_tests(tests, make_files, program_remove_folder);
}
