/* What --l2 means, by the real program: runs come to the minimum of mean loss + l2/2 |w|^2, in which every weight counts, also those
 * of features that most examples lack. The minimum is known by the objective's gradient, which is 0 there and nowhere else, and by
 * LIBLINEAR (Debian: liblinear-tools), whose 1/2 |w|^2 + C (sum of losses) is the same with l2 = 1 / (C n) and without a bias. */
#include "run_program.h"

#include <math.h>

enum { MOST_WEIGHTS = 200 };

/* LIBSVM text of two labels. */
static struct data {
    int n, n_elements, label[33000], start[33001], id[460000];
    float value[460000];
} data;

static double weight[MOST_WEIGHTS];

static void read_data(const char *path) {
    static char line[20000];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    data.n = data.n_elements = 0;
    while (fgets(line, sizeof line, f)) {
        char *at = line;
        data.label[data.n++] = strtol(at, &at, 10) > 0 ? 1 : -1;
        for (char *end; (data.id[data.n_elements] = (int)strtol(at, &end, 10)) > 0 && *end == ':'; data.n_elements++)
            data.value[data.n_elements] = strtof(end + 1, &at);
        data.start[data.n] = data.n_elements;
    }
    assert_int_equal(fclose(f), 0);
}

/* Of a model in LIBLINEAR's format: weights that are positive for label 1. */
static void read_weights(const char *path) {
    char line[200];
    int first = 0, n = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) && strcmp(line, "w\n") != 0) {
        if (strncmp(line, "bias ", 5) == 0) assert_true(strtod(line + 5, NULL) < 0);
        if (strncmp(line, "label ", 6) == 0) first = (int)strtol(line + 6, NULL, 10);
    }
    memset(weight, 0, sizeof weight);
    while (n < MOST_WEIGHTS - 1 && fgets(line, sizeof line, f)) weight[++n] = first * strtod(line, NULL);
    assert_int_equal(fclose(f), 0);
    assert_true((first == 1 || first == -1) && n > 0);
}

/* Mean log loss + l2/2 |w|^2; the gradient's length may be asked for, too. */
static double objective(const char *model, double l2, double *slope_out) {
    double sum = 0, square = 0, gradient[MOST_WEIGHTS] = {0}, length = 0;
    read_weights(model);
    for (int i = 0; i < data.n; i++) {
        double margin = 0;
        for (int j = data.start[i]; j < data.start[i + 1]; j++) margin += weight[data.id[j]] * (double)data.value[j];
        margin *= data.label[i];
        sum += margin > 0 ? log1p(exp(-margin)) : log1p(exp(margin)) - margin;
        const double slope = -data.label[i] / (1 + exp(margin)) / data.n;
        for (int j = data.start[i]; j < data.start[i + 1]; j++) gradient[data.id[j]] += slope * (double)data.value[j];
    }
    for (int j = 0; j < MOST_WEIGHTS; j++) {
        square += weight[j] * weight[j];
        length += pow(gradient[j] + l2 * weight[j], 2);
    }
    if (slope_out) *slope_out = sqrt(length);
    return sum / data.n + l2 / 2 * square;
}

static void run(const char *const *argv) {
    program_assert_status(program_run(NULL, argv), 0);
    assert_int_equal(program_end_all(NULL), 0); /* they are many */
}
#define DO(...) run((const char *const[]){__VA_ARGS__, NULL})

static const char *text_of(double x) {
    static char text[40];
    snprintf(text, sizeof text, "%.17g", x);
    return text;
}

/* Feature f occurs in about one example in f; the rarest in a handful, and features 33 to 39 in none. */
static void write_examples(void) {
    uint32_t random = 2026;
    FILE *f = fopen("examples", "w");
    assert_non_null(f);
    for (int i = 0; i < 600; i++) {
        fprintf(f, "%d", (random = random * 1664525 + 1013904223) >> 16 & 1 ? 1 : -1);
        const int label = random >> 16 & 1 ? 1 : -1;
        for (int j = 1; j <= 40; j++) {
            random = random * 1664525 + 1013904223;
            if ((random >> 8) % (uint32_t)j != 0 || (j > 32 && j < 40)) continue;
            random = random * 1664525 + 1013904223;
            fprintf(f, " %d:%.3f", j, (double)(random >> 16) / 65536 - 0.5 + 0.3 * label * (j % 3 - 1));
        }
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
    read_data("examples");
}

/* How far above its minimum the objective is at most: |gradient|^2 / (2 l2), for it is curved by l2 at least. */
static double most_above_minimum(double l2) {
    double slope;
    objective("model", l2, &slope);
    return slope * slope / (2 * l2);
}

#define TRAIN(...) DO("shmtrain", "-q", "--bias", "0", "--format", "liblinear", "-o", "model", __VA_ARGS__, "examples")

static void every_mode_comes_to_the_minimum_of_mean_loss_and_l2(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "ssp:2", "sync", "local:2"};
    (void)state;
    write_examples();
    for (size_t m = 0; m < sizeof MODES / sizeof *MODES; m++) {
        const bool sync = strcmp(MODES[m], "sync") == 0;
        TRAIN("-w", "2", "--mode", MODES[m], "-e", sync ? "2000" : "300", "-b", "100", "--l2", "0.01");
        const double above = most_above_minimum(0.01);
        print_message("%s: at most %.2g above the minimum\n", MODES[m], above);
        assert_true(above < 1e-4 /* racy pushes lose some */);
    }
}

static void every_rule_comes_to_the_minimum_of_mean_loss_and_l2(void **state) {
    static const char *const RULES[] = {"sgd", "momentum", "adagrad", "adam"};
    (void)state;
    write_examples();
    for (size_t r = 0; r < sizeof RULES / sizeof *RULES; r++) {
        TRAIN("-w", "1", "--optimizer", RULES[r], "--schedule", "cosine", "-e", "300", "--l2", "0.01");
        const double above = most_above_minimum(0.01);
        print_message("%s: at most %.2g above the minimum\n", RULES[r], above);
        assert_true(above < 1e-5);
    }
}

/* ---- LIBLINEAR ---- */

static void skip_without_liblinear(void) {
    if (system("command -v liblinear-train >/dev/null") == 0) return;
    print_message("skipped: no liblinear-train (Debian: liblinear-tools)\n");
    skip();
}

/* Theirs at l2 = 1 / (C n), as near as it comes. */
static double liblinear_minimum(const char *path, const char *C, double l2) {
    DO("liblinear-train", "-q", "-s", "0", "-e", "1e-7", "-c", C, path, "theirs");
    return objective("theirs", l2, NULL);
}

static void l2_of_1_by_C_n_is_liblinears_objective(void **state) {
    static const char *const C[] = {"0.05", "1", "20"};
    (void)state;
    skip_without_liblinear();
    write_examples();
    for (size_t c = 0; c < sizeof C / sizeof *C; c++) {
        const double l2 = 1 / (strtod(C[c], NULL) * data.n), theirs = liblinear_minimum("examples", C[c], l2);
        TRAIN("-w", "2", "-e", "400", "--l2", text_of(l2));
        const double ours = objective("model", l2, NULL);
        print_message("C = %s: %.8f, LIBLINEAR %.8f\n", C[c], ours, theirs);
        assert_true(ours > theirs * (1 - 1e-6) && ours < theirs * (1 + 1e-4));
    }
}

static void on_a9a_we_come_to_liblinears_minimum(void **state) {
    const char *folder = getenv("SHMTRAIN_DATA_DIR");
    char train[4200];
    (void)state;
    skip_without_liblinear();
    snprintf(train, sizeof train, "%s/a9a", folder ? folder : "");
    if (!folder || access(train, R_OK) != 0) {
        print_message("skipped: SHMTRAIN_DATA_DIR names no folder with a9a\n");
        skip();
    }
    read_data(train);
    const double l2 = 1.0 / data.n, theirs = liblinear_minimum(train, "1", l2);
    DO("shmtrain", "-q", "--bias", "0", "--format", "liblinear", "-o", "model", "-w", "2", "-e", "60", "--l2", text_of(l2),
       train);
    const double ours = objective("model", l2, NULL);
    print_message("a9a: %.8f, LIBLINEAR %.8f\n", ours, theirs);
    assert_true(ours > theirs * (1 - 1e-6) && ours < theirs * (1 + 1e-4));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(every_mode_comes_to_the_minimum_of_mean_loss_and_l2),
        PROGRAM_TEST(every_rule_comes_to_the_minimum_of_mean_loss_and_l2),
        PROGRAM_TEST(l2_of_1_by_C_n_is_liblinears_objective),
        PROGRAM_TEST(on_a9a_we_come_to_liblinears_minimum),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
