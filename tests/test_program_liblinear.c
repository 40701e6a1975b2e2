/* The real program beside LIBLINEAR's own (Debian: liblinear-tools): each takes the other's models, and says the same. */
#include "run_program.h"
#include "skip.h"

#include <math.h>

static const int TWO[] = {3, 7}, TWO_TURNED[] = {7, 3}, FIVE[] = {10, 2, -4, 5, 30};
#define N_EXAMPLES 300

/* Examples whose label shows in some of their features, with noise; one in 50 has no feature, so that scores without a bias are
 * equal. The labels first occur in the order in which they are given. */
static void write_data(const char *path, const int *label, int n_labels) {
    FILE *f = fopen(path, "w");
    uint32_t random = 12345;
    assert_non_null(f);
    for (int i = 0; i < N_EXAMPLES; i++) {
        const int k = i < n_labels ? i : (int)((random = random * 1664525 + 1013904223) >> 16) % n_labels;
        fprintf(f, "%d", label[k]);
        for (int j = 1 + i % 7; j < 40 && i % 50 != 20; j += 9) {
            random = random * 1664525 + 1013904223;
            fprintf(f, " %d:%.3f", j, (double)(random >> 16) / 65536 + (j % n_labels == k));
        }
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static void write_targets(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < N_EXAMPLES; i++)
        fprintf(f, "%g 1:%g 3:%g\n", 5 + 0.3 * (i % 10) - 0.1 * (i % 7), 0.1 * (i % 10), 0.1 * (i % 7));
    assert_int_equal(fclose(f), 0);
}

static bool has_tools(void) {
    return system("command -v liblinear-predict >/dev/null && command -v liblinear-train >/dev/null") == 0;
}

static void run(const char *const *argv) {
    program_assert_status(program_run(NULL, argv), 0);
    assert_int_equal(program_end_all(NULL), 0); /* they are many */
}
#define DO(...) run((const char *const[]){__VA_ARGS__, NULL})

/* The numbers of a file of predictions, (lines, n) or fewer columns; a head line of words and labels is left out. */
static int read_lines(const char *path, double out[N_EXAMPLES][6]) {
    char line[400];
    int n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (n < N_EXAMPLES && fgets(line, sizeof line, f)) {
        char *at = line;
        if (strncmp(line, "labels", 6) == 0) continue;
        for (int i = 0; i < 6; i++) out[n][i] = strtod(at, &at);
        n++;
    }
    fclose(f);
    return n;
}

static double theirs[N_EXAMPLES][6], ours[N_EXAMPLES][6];

/* Both programs' predictions for these examples with this model: labels, or values up to the floats that ours are. */
static void assert_same_predictions(const char *data, const char *model, double tolerance) {
    DO("liblinear-predict", data, model, "theirs");
    DO("shmtrain", "predict", model, data, "-o", "ours");
    assert_int_equal(read_lines("theirs", theirs), N_EXAMPLES);
    assert_int_equal(read_lines("ours", ours), N_EXAMPLES);
    for (int i = 0; i < N_EXAMPLES; i++)
        if (!(fabs(theirs[i][0] - ours[i][0]) <= tolerance))
            fail_msg("%s, line %d: LIBLINEAR says %g, we say %g", model, i + 1, theirs[i][0], ours[i][0]);
}

/* Theirs are in the order of `label`; ours are of the larger label, or of all in ascending order. */
static void assert_same_probabilities(const char *data, const char *model, const int *label, int n_labels) {
    DO("liblinear-predict", "-b", "1", data, model, "theirs");
    DO("shmtrain", "predict", "--probabilities", model, data, "-o", "ours");
    assert_int_equal(read_lines("theirs", theirs), N_EXAMPLES);
    assert_int_equal(read_lines("ours", ours), N_EXAMPLES);
    for (int k = 0; k < n_labels; k++) {
        int at = 1;
        for (int m = 0; m < n_labels; m++) at += label[m] < label[k];
        if (n_labels == 2) at--; /* ours has the larger one's alone */
        for (int i = 0; i < N_EXAMPLES && at > 0; i++)
            if (!(fabs(theirs[i][1 + k] - ours[i][at]) < 1e-5))
                fail_msg("%s, line %d, label %d: %g and %g", model, i + 1, label[k], theirs[i][1 + k], ours[i][at]);
    }
}

static void liblinear_takes_our_models_and_says_the_same(void **state) {
    static const int UPWARDS[] = {7, 3};
    (void)state;
    if (!has_tools()) SKIP("no liblinear-predict (Debian: liblinear-tools)");
    write_data("two", TWO, 2);
    write_data("five", FIVE, 5);
    write_targets("targets");
    DO("shmtrain", "-q", "-e", "5", "--format", "liblinear", "-o", "model", "two");
    assert_same_predictions("two", "model", 0);
    assert_same_probabilities("two", "model", UPWARDS, 2);
    DO("shmtrain", "-q", "-e", "5", "--bias", "0", "--format", "liblinear", "-o", "model", "two");
    assert_same_predictions("two", "model", 0);
    DO("shmtrain", "-q", "-e", "5", "-M", "svm", "--format", "liblinear", "-o", "model", "two");
    assert_same_predictions("two", "model", 0);
    DO("shmtrain", "-q", "-e", "5", "-M", "linear", "--format", "liblinear", "-o", "model", "targets");
    assert_same_predictions("targets", "model", 1e-4);
    DO("shmtrain", "-q", "-e", "5", "-M", "softmax", "--format", "liblinear", "-o", "model", "five");
    assert_same_predictions("five", "model", 0);
    DO("shmtrain", "-q", "-e", "5", "-M", "softmax", "--format", "liblinear", "-o", "model", "two");
    assert_same_predictions("two", "model", 0);
    assert_same_probabilities("two", "model", UPWARDS, 2);
}

/* What we read back is what we would have without the detour. */
static void a_model_in_their_format_is_the_one_that_we_trained(void **state) {
    (void)state;
    write_data("two", TWO, 2);
    DO("shmtrain", "-q", "-e", "2", "-w", "1", "--format", "liblinear", "-o", "text", "two");
    DO("shmtrain", "-q", "-e", "2", "-w", "1", "-o", "tensors", "two");
    DO("shmtrain", "predict", "--probabilities", "text", "two", "-o", "theirs");
    DO("shmtrain", "predict", "--probabilities", "tensors", "two", "-o", "ours");
    DO("cmp", "theirs", "ours");
}

static void we_take_their_models_and_say_the_same(void **state) {
    static const struct {
        const char *path;
        const int *label;
        int n_labels;
    } SETS[] = {{"two", TWO, 2}, {"two", TWO_TURNED, 2}, {"five", FIVE, 5}};
    static const char *const SOLVERS[] = {"0", "1", "2", "3", "4", "5", "6", "7"}, *const BIASES[] = {"-1", "1", "2.5"};
    (void)state;
    if (!has_tools()) SKIP("no liblinear-predict (Debian: liblinear-tools)");
    for (size_t d = 0; d < sizeof SETS / sizeof *SETS; d++) {
        write_data(SETS[d].path, SETS[d].label, SETS[d].n_labels);
        for (size_t s = 0; s < 8; s++) {
            DO("liblinear-train", "-q", "-s", SOLVERS[s], "-B", BIASES[s % 3], SETS[d].path, "model");
            assert_same_predictions(SETS[d].path, "model", 0);
            if (s == 0 || s >= 6) assert_same_probabilities(SETS[d].path, "model", SETS[d].label, SETS[d].n_labels);
        }
    }
    write_targets("targets");
    DO("liblinear-train", "-q", "-s", "11", "-B", "1", "targets", "model");
    assert_same_predictions("targets", "model", 1e-4);
}

static void their_models_are_evaluated(void **state) {
    (void)state;
    program_write_file("model", "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel -1 1\nnr_feature 2\nbias -1\nw\n-1\n2\n");
    program_write_file("examples", "1 1:1\n-1 2:1\n1 2:3\n");
    struct program *p = RUN("eval", "--json", "model", "examples");
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    assert_string_equal(json_string_value(json_object_get(o, "model")), "svm");
    assert_true(fabs(json_real_value(json_object_get(o, "accuracy")) - 2. / 3) < 1e-9);
    json_decref(o);
    program_write_file("model", "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel -1 1\nnr_feature 2\nbias -1\nw\n-1\nx\n");
    program_assert_refused(RUN("eval", "model", "examples"), 1, "model:8: expected a weight, found \"x\"");
}

static void formats_that_cannot_be_are_refused_before_training(void **state) {
    (void)state;
    static const struct refusal LIST[] = {
        {2, "--format csv needs --output FILE", {"--format", "csv"}},
        {2, "--format xml: expected safetensors, liblinear or csv", {"--format", "xml", "-o", "model"}},
        {2, "eval does not use --format", {"eval", "--format", "csv", "model", "examples"}},
    };
    ASSERT_ALL_REFUSED(LIST);
}

/* The labels and ids are known after loading only; nothing is printed of a run that does not begin. */
static void what_the_format_cannot_hold_is_refused_before_training(void **state) {
    (void)state;
    program_write_file("examples", "0.5 1:1\n2 2:1\n0.5 1:2\n2 2:3\n");
    program_write_file("from0", "1 0:1\n-1 2:1\n1 0:2\n-1 2:3\n");
    program_write_file("model", "old");
    static const struct refusal LIST[] = {
        {2,
         "format liblinear: label 0.5 is not a whole number, but LIBLINEAR's models allow only those: use csv or safetensors",
         {"-e1", "--format=liblinear", "-omodel", "examples"}},
        {2,
         "format liblinear: the data has a feature 0, but LIBLINEAR counts from 1: use csv or safetensors, or renumber the "
         "features",
         {"-e1", "--format=liblinear", "-omodel", "from0"}},
        {2,
         "format csv: the features are hashed, and a table of hashes has no meaning: use safetensors",
         {"-e1", "--hash-bits=4", "--format=csv", "-omodel", "from0"}},
    };
    ASSERT_ALL_REFUSED(LIST);
    DO("grep", "-qx", "old", "model");
    DO("shmtrain", "-q", "-e", "1", "--format", "csv", "-o", "model", "examples");
    DO("grep", "-qx", "feature,weight", "model");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(liblinear_takes_our_models_and_says_the_same),
        PROGRAM_TEST(a_model_in_their_format_is_the_one_that_we_trained),
        PROGRAM_TEST(we_take_their_models_and_say_the_same),
        PROGRAM_TEST(their_models_are_evaluated),
        PROGRAM_TEST(formats_that_cannot_be_are_refused_before_training),
        PROGRAM_TEST(what_the_format_cannot_hold_is_refused_before_training),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
