/* The real program from outside: exact fits that write checkpoints, end at any moment, and go on. The files: test_checkpoint_fit.c; deaths
 * at each point: test_points.c. */
#include "checkpoint_folder_help.h"
#include "run_program.h"

#include <dirent.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "seal_help.h"

#define FEW  "builtin:sparse:examples=3000,features=200,nonzeros=10"    /* columns: by the Hessian */
#define MANY "builtin:sparse:examples=3000,features=6000,nonzeros=20"   /* by conjugate gradients */
#define LONG "builtin:sparse:examples=30000,features=20000,nonzeros=30" /* longer than a process takes to be killed */
#define WIDE "builtin:dense:examples=1500,features=30,classes=5"

enum { MOST = 100 };

/* All of a run with --json that counts. */
struct outcome {
    char hash[17], stopped_by[16];
    unsigned n;
    double objective[MOST], bound[MOST], l2, updates;
};

static double number_or_nan(const json_t *o, const char *key) {
    const json_t *value = json_object_get(o, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static struct outcome outcome_of(const char *const *argv) {
    struct outcome out = {.n = 0};
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    json_t *o = program_json(p), *epochs = json_object_get(o, "epochs");
    const char *by = json_string_value(json_object_get(o, "stopped_by"));
    snprintf(out.hash, sizeof out.hash, "%s", json_string_value(json_object_get(o, "parameters_xxh64")));
    snprintf(out.stopped_by, sizeof out.stopped_by, "%s", by ? by : "");
    out.l2 = number_or_nan(o, "l2");
    for (size_t i = 0; i < json_array_size(epochs) && i < MOST; i++) {
        const json_t *epoch = json_array_get(epochs, i);
        out.objective[out.n] = number_or_nan(epoch, "objective");
        out.bound[out.n++] = number_or_nan(epoch, "bound");
    }
    json_decref(o);
    return out;
}
#define OUTCOME(...) outcome_of((const char *const[]){"shmtrain", "--json", "-q", __VA_ARGS__, NULL})

static void assert_same(const struct outcome *a, const struct outcome *b) {
    assert_string_equal(a->hash, b->hash);
    assert_string_equal(a->stopped_by, b->stopped_by);
    assert_true(a->l2 == b->l2);
    assert_int_equal(a->n, b->n);
    for (unsigned i = 0; i < a->n; i++) {
        assert_true(a->objective[i] == b->objective[i]);
        assert_true(a->bound[i] == b->bound[i] || (isnan(a->bound[i]) && isnan(b->bound[i])));
    }
}

static unsigned count_files(void) {
    DIR *dir = opendir("ck");
    const struct dirent *entry;
    unsigned n = 0;
    if (!dir) return 0;
    while ((entry = readdir(dir))) n += strncmp(entry->d_name, "checkpoint-", 11) == 0;
    closedir(dir);
    return n;
}

/* ---- the same bits ---- */

static const struct fit {
    const char *data, *model, *option, *tolerance;
} FITS[] = {
    {FEW, "logistic", "--C=10", "--tolerance=1e-9"},
    {MANY, "logistic", "--C=10", "--tolerance=1e-9"},
    {FEW, "linear", "--C=10", "--tolerance=1e-9"},
    {MANY, "linear", "--C=1", "--tolerance=1e-9"},
    {FEW, "svm", "--C=1000", "--tolerance=1e-7"}, /* interior points, behind some ascents */
    {MANY, "svm", "--C=1", "--tolerance=1e-6"},
    {FEW, "logistic", "--l1=1e-3", "--tolerance=1e-9"},
    {MANY, "linear", "--l1=1e-3", "--tolerance=1e-9"},
    {WIDE, "softmax", "--C=1", "--tolerance=1e-8"},
    {FEW, "logistic", "--scale=yes", "--tolerance=1e-9"}, /* L2 is chosen */
    {WIDE, "softmax", "--scale=auto", "--tolerance=1e-9"},
};
enum { N_FITS = sizeof FITS / sizeof *FITS };

/* Behind the first epoch, in the middle, and before the last one. */
static void fits_go_on_with_the_same_bits_and_any_number_of_workers(void **state) {
    static const char *const WORKERS[][2] = {{"2", "7"}, {"1", "2"}, {"7", "1"}};
    (void)state;
    for (size_t k = 0; k < N_FITS; k++) {
#define RUN_OF(...) FITS[k].data, "-M", FITS[k].model, FITS[k].option, FITS[k].tolerance, __VA_ARGS__
        const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
        assert_string_equal(whole.stopped_by, "tolerance");
        const unsigned steps[] = {1, whole.n / 2, whole.n - 1};
        assert_true(whole.n > 1 && whole.n < MOST);
        for (size_t i = 0; i < 3; i++) {
            char n[12];
            if (steps[i] == 0 || (i > 0 && steps[i] == steps[i - 1])) continue;
            snprintf(n, sizeof n, "%u", steps[i]);
            (void)OUTCOME(RUN_OF("-w", WORKERS[i][0], "--checkpoint", "ck", "--steps", n));
            const struct outcome rest = OUTCOME(RUN_OF("-w", WORKERS[i][1], "--checkpoint", "ck", "--resume"));
            assert_same(&rest, &whole);
            const struct outcome nothing = OUTCOME(RUN_OF("-w", "1", "--checkpoint", "ck", "--resume"));
            assert_same(&nothing, &whole);
            end_test(state);
        }
#undef RUN_OF
    }
}

/* Kills all of it at any moment. */
static void fits_killed_at_any_moment_end_with_the_same_bits(void **state) {
    static const struct fit RUNS[] = {{LONG, "logistic", "--C=100", "--tolerance=1e-10"},
                                      {LONG, "svm", "--C=0.1", "--tolerance=1e-6"},
                                      {LONG, "logistic", "--l1=1e-4", "--tolerance=1e-6"}};
    static const char *const WORKERS[] = {"2", "1", "3"};
    unsigned seed = 1, kills = 0;
    (void)state;
    for (size_t k = 0; k < sizeof RUNS / sizeof *RUNS; k++) {
#define RUN_OF(...) RUNS[k].data, "-M", RUNS[k].model, RUNS[k].option, RUNS[k].tolerance, __VA_ARGS__
        const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
        for (unsigned i = 0; i < 8; i++) {
            struct program *p =
                START(RUN_OF("-w", WORKERS[i % 3], "--checkpoint", "ck", "--checkpoint-every", "1 epoch", "--resume", "-q"));
            seed = seed * 1664525 + 1013904223;
            const struct timespec some = {.tv_nsec = 100000000 + (seed >> 8) % 500000000};
            nanosleep(&some, NULL);
            kills += program_state(p->pid) != 'Z';
            kill(-p->pid, SIGKILL);
            program_assert_gone_within(p, 10);
            program_end_all(NULL);
        }
        const struct outcome rest = OUTCOME(RUN_OF("-w", "2", "--checkpoint", "ck", "--resume"));
        assert_same(&rest, &whole);
        end_test(state);
#undef RUN_OF
    }
    print_message("%u of 24 were killed before their end\n", kills);
}

/* In the middle of an epoch: where the one before had ended. Workers die meanwhile, too. */
static void fits_that_are_stopped_go_on_behind_their_last_whole_epoch(void **state) {
    (void)state;
#define RUN_OF(...) LONG, "-M", "svm", "--C=1", "--tolerance=1e-4", __VA_ARGS__
    const struct outcome whole = OUTCOME(RUN_OF("-w", "2"));
    for (unsigned i = 0; i < 2; i++) {
        struct program *p = START(
            RUN_OF("-w", i ? "2" : "3", "--progress", "plain", "--checkpoint", "ck", "--resume", "--max-respawns", "1000"));
        program_wait_for(p, OUT, "epoch ");
        for (unsigned k = 0; k < 6; k++) {
            const pid_t pid = program_worker_if_any(p, k % 2);
            if (pid > 0) (void)kill(pid, SIGKILL);
            usleep(60000);
        }
        kill(p->pid, SIGINT);
        program_finish(p);
        assert_true(p->status == 130 || p->status == 0);
    }
    const struct outcome rest = OUTCOME(RUN_OF("-w", "1", "--checkpoint", "ck", "--resume"));
    assert_same(&rest, &whole);
#undef RUN_OF
}

static void fits_by_all_at_once_go_on_too(void **state) {
    static const char *const MODELS[] = {"logistic", "svm", "linear"}, *const MODES[] = {"hogwild", "async"};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
#define RUN_OF(...) \
    FEW, "--mode", MODES[k % 2], "-M", MODELS[k / 2], "--C=1", "--tolerance=1e-6", "--checkpoint", "ck", __VA_ARGS__
        (void)OUTCOME(RUN_OF("-w", "3", "--steps", "2"));
        const struct outcome rest = OUTCOME(RUN_OF("-w", "2", "--resume"));
        assert_string_equal(rest.stopped_by, "tolerance");
        program_assert_refused(
            RUN("-q", FEW, "--mode=sync", "-M", MODELS[k / 2], "--C=1", "--tolerance=1e-6", "--checkpoint", "ck", "--resume"),
            2, "--mode is sync here, but ");
        program_drop_folder("ck");
#undef RUN_OF
    }
}

/* ---- what goes on ---- */

static const char TABLE[] = "1 1:1 2:3\n-1 2:1\n1 1:2\n-1 3:1\n1 1:1 3:0.5\n-1 2:2 3:1\n";

static const char OTHER[] = "1 1:1 2:2\n-1 2:0.1\n1 1:0.2\n-1 3:1\n1 1:1 3:0.25\n-1 2:2 3:0.1\n";

static void write_table(const char *rows) {
    char text[40 * sizeof OTHER] = "";
    for (int i = 0; i < 30; i++) strcat(text, rows);
    program_write_file("train.svm", text);
}

static void a_run_without_options_stays_a_fit_with_checkpoints(void **state) {
    (void)state;
    write_table(TABLE);
    const struct outcome whole = OUTCOME("train.svm");
    assert_string_equal(whole.stopped_by, "tolerance");
    const struct outcome part = OUTCOME("train.svm", "--checkpoint", "ck", "--keep", "2", "--checkpoint-every", "1 epoch");
    assert_same(&part, &whole);
    struct program *p = RUN("train.svm", "-q", "--checkpoint", "ck", "--resume");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], " of the fit, for which --C "));
    assert_non_null(strstr(p->text[ERR], "--tolerance has already ended that run: nothing is left to do\n"));
    const struct outcome more = OUTCOME("train.svm", "--checkpoint", "ck", "--resume", "--tolerance", "1e-9");
    const struct outcome all = OUTCOME("train.svm", "--tolerance", "1e-9");
    assert_same(&more, &all);
}

/* As runs without options were before. */
static void steps_of_sgd_go_on_as_such_without_options(void **state) {
    (void)state;
    write_table(TABLE);
    program_assert_status(RUN("train.svm", "-q", "--optimizer=sgd", "--checkpoint", "ck", "--steps", "3", "-w", "1"), 0);
    struct program *p = RUN("train.svm", "-q", "--checkpoint", "ck", "--resume", "-w", "1");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], ": epoch 1 of 40, 3 of "));
    program_assert_refused(RUN("train.svm", "-q", "--checkpoint", "ck", "--resume", "--tolerance=1e-3"), 2,
                           " is of steps of SGD, and this run is an exact fit: leave out --tolerance, or start a new run in ");
}

/* The line that says what was chosen says what to type; and it may be typed, though it is of four digits. */
static void what_was_printed_as_chosen_may_be_typed(void **state) {
    char words[80], l2[40];
    float exact;
    (void)state;
    write_table(TABLE);
    for (int sgd = 0; sgd < 2; sgd++) {
#define RUN_OF(...) "train.svm", sgd ? "--optimizer=sgd" : "--tolerance=1e-9", "-w", "1", "--checkpoint", "ck", __VA_ARGS__
        struct program *p = RUN(RUN_OF("--steps", "2"));
        program_assert_status(p, 0);
        const char *at = strstr(p->text[OUT], sgd ? "--l2 " : "(l2 ");
        assert_non_null(at);
        assert_int_equal(sscanf(at + (sgd ? 5 : 4), "%g", &exact), 1);
        snprintf(l2, sizeof l2, "--l2=%.4g", (double)exact);
        snprintf(words, sizeof words, "(%.4g): leave out --C and --l2, or ", (double)exact);
        program_assert_refused(RUN(RUN_OF("--resume", "-q", "--l2=0.5")), 2, words);
        p = RUN(RUN_OF("--resume", "-q", "--steps=1", l2));
        program_assert_status(p, 0);
        p = RUN(RUN_OF("--resume", "-q"));
        program_assert_status(p, 0);
        end_test(state);
#undef RUN_OF
    }
}

/* It is another problem than the one whose L2 would be chosen. */
static void typed_l2_of_sgd_is_to_be_typed_again(void **state) {
    (void)state;
    write_table(TABLE);
    program_assert_status(RUN("train.svm", "-q", "--optimizer=sgd", "--l2=0.01", "--checkpoint", "ck", "--steps", "3"), 0);
    program_assert_refused(RUN("train.svm", "-q", "--optimizer=sgd", "--checkpoint", "ck", "--resume"), 2,
                           "--l2 is 0 here, but 0.01 in the run of ");
    program_assert_status(RUN("train.svm", "-q", "--optimizer=sgd", "--l2=0.01", "--checkpoint", "ck", "--resume"), 0);
}

static void what_has_no_epoch_yet_begins_anew(void **state) {
    (void)state;
    struct program *p = RUN(LONG, "-q", "--tolerance=1e-6", "--checkpoint", "ck", "--time-limit", "0.01");
    program_assert_status(p, 0);
    assert_non_null(
        strstr(p->text[ERR], "no epoch of the fit has ended: there is no checkpoint of it yet, and --resume begins anew\n"));
    assert_int_equal(count_files(), 0);
}

/* The best of some candidates is nothing to type. */
static void a_choice_that_was_stopped_has_chosen_nothing(void **state) {
    (void)state;
    struct program *p = RUN(LONG, "--tolerance=1e-6", "--time-limit", "0.01");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "chosen      nothing: stopped while L2 was being chosen\n"));
    assert_null(strstr(p->text[OUT], "--C "));
    p = RUN(LONG, "--tolerance=1e-6", "--time-limit", "0.01", "--json", "-q");
    json_t *o = program_json(p);
    assert_true(json_is_null(json_object_get(o, "choice")) && json_is_null(json_object_get(o, "l2")));
    json_decref(o);
}

static void inspect_says_what_was_proved(void **state) {
    char path[300];
    (void)state;
    (void)OUTCOME(FEW, "-M", "svm", "--C=1", "--tolerance=1e-4", "--checkpoint", "ck", "--steps", "3");
    newest(path);
    struct program *p = RUN("inspect", path);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "position    epoch 3 of an exact fit is done, proved within "));
    assert_non_null(strstr(p->text[OUT], "optimizer   exact, until it is within 0.0001; objective "));
    assert_non_null(strstr(p->text[OUT], "\nfit/dual "));
    p = RUN("inspect", "--json", path);
    json_t *o = program_json(p), *run = json_object_get(o, "checkpoint");
    assert_true(number_or_nan(run, "epoch") == 3 && number_or_nan(run, "gap") > 0 && number_or_nan(run, "tolerance") == 1e-4);
    json_decref(o);
    program_drop_folder("ck");
    (void)OUTCOME(WIDE, "-M", "softmax", "--C=1", "--tolerance=1e-8", "--checkpoint", "ck", "--steps", "1");
    newest(path);
    p = RUN("inspect", path);
    assert_non_null(strstr(p->text[OUT], "position    epoch 1 of an exact fit is done, nothing is proved yet; after "));
    p = RUN("inspect", "--json", path);
    o = program_json(p);
    assert_true(json_is_null(json_object_get(json_object_get(o, "checkpoint"), "gap")));
    json_decref(o);
}

/* ---- what does not ---- */

static void other_problems_are_refused_with_both_values(void **state) {
    static const struct {
        const char *words, *option[3];
    } OTHERS[] = {
        {"--resume: L2 (0: to be chosen) is 0.000166667 here, but 0.000333333 in the run of ck/",
         {"--C=2", "--tolerance=1e-9"}},
        {"--resume: L2 (0: to be chosen) is 0 here, but 0.000333333 in the run of ck/", {"--tolerance=1e-9"}},
        {"--l1 is 0.1 here, but 0 in the run", {"--C=1", "--tolerance=1e-9", "--l1=0.1"}},
        {"--scale is yes here, but no in the run", {"--C=1", "--tolerance=1e-9", "--scale=yes"}},
        {"--mode is async here, but sync in the run", {"--C=1", "--tolerance=1e-9", "--mode=async"}},
        {"--model is linear here, but logistic in the run", {"--C=1", "--tolerance=1e-9", "-Mlinear"}},
        {"--bias is 0 here, but 1 in the run", {"--C=1", "--tolerance=1e-9", "--bias=0"}},
        {" is of an exact fit, and this run takes steps of SGD: use the options of its run, or", {"--mode=sync"}},
    };
    (void)state;
    (void)OUTCOME(FEW, "--C=1", "--tolerance=1e-9", "--checkpoint", "ck", "--steps", "2");
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        const char *const *o = OTHERS[i].option;
        program_assert_refused(RUN(FEW, "-q", "--checkpoint", "ck", "--resume", o[0], o[1] ? o[1] : "-q", o[2] ? o[2] : "-q"),
                               2, OTHERS[i].words);
    }
}

/* Labels and lengths of rows are the same, but at the point that was kept the objective is another one: a bound of it would be none. */
static void other_values_of_the_same_shape_are_refused(void **state) {
    static const char *const MODELS[] = {"-Mlogistic", "-Msvm"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        write_table(TABLE);
        (void)OUTCOME("train.svm", MODELS[k], "--C=1", "--tolerance=1e-9", "--checkpoint", "ck", "--steps", "1");
        write_table(OTHER);
        struct program *p = RUN("-q", "train.svm", MODELS[k], "--C=1", "--tolerance=1e-9", "--checkpoint", "ck", "--resume");
        assert_int_equal(p->status, 1);
        assert_non_null(strstr(p->text[ERR], "the objective of this data is not what it was"));
        program_drop_folder("ck");
    }
}

/* Nothing is left to do, but what was proved is of other data. */
static void other_values_are_refused_where_the_fit_had_ended(void **state) {
    static const char *const MODELS[] = {"-Mlogistic", "-Msvm", "-Mlinear"};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
#define RUN_OF(...) "train.svm", "-q", MODELS[k], "--C=1", "--tolerance=1e-5", "--checkpoint", "ck", __VA_ARGS__
        write_table(TABLE);
        program_assert_status(RUN(RUN_OF("-w", "2")), 0);
        struct program *p = RUN(RUN_OF("--resume"));
        program_assert_status(p, 0);
        assert_non_null(strstr(p->text[ERR], "--tolerance has already ended that run: nothing is left to do\n"));
        write_table(OTHER);
        p = RUN(RUN_OF("--resume"));
        assert_int_equal(p->status, 1);
        assert_non_null(strstr(p->text[ERR], "the objective of this data is not what it was"));
        end_test(state);
#undef RUN_OF
    }
}

/* ---- damage ---- */

static uint8_t *read_file(const char *path, size_t *n_out) {
    FILE *f = fopen(path, "rb");
    struct stat is;
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &is), 0);
    uint8_t *bytes = malloc((size_t)is.st_size);
    assert_non_null(bytes);
    *n_out = fread(bytes, 1, (size_t)is.st_size, f);
    assert_int_equal(*n_out, is.st_size);
    assert_int_equal(fclose(f), 0);
    return bytes;
}

static void write_file(const char *path, const uint8_t *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Numbers of a tensor times `by`, with a seal that is right. */
static void forge(const char *path, const char *tensor, double by) {
    char key[40];
    size_t n;
    unsigned long from, to;
    uint64_t header;
    uint8_t *bytes = read_file(path, &n);
    memcpy(&header, bytes, sizeof header);
    snprintf(key, sizeof key, "\"%s\":", tensor);
    const char *at = memmem(bytes + 8, header, key, strlen(key));
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":[");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "\"data_offsets\":[%lu,%lu]", &from, &to), 2);
    for (uint64_t i = 8 + header + from; i < 8 + header + to; i += sizeof(double)) {
        double x;
        memcpy(&x, bytes + i, sizeof x);
        x *= by;
        memcpy(bytes + i, &x, sizeof x);
    }
    make_seal(bytes, n);
    write_file(path, bytes, n);
    free(bytes);
}

/* Below 0, or far above what an example's weight allows: no bound may be made of them. */
static void impossible_dual_variables_are_refused(void **state) {
    static const struct { const char *steps, *tensor; } KINDS[] = {{"1", "fit/dual"}, {"9", "fit/interior"}};
    static const double BY[] = {-1, 1e6};
    char path[300];
    (void)state;
    for (size_t k = 0; k < 4; k++) {
#define RUN_OF(...) FEW, "-q", "-w", "2", "-M", "svm", "--C=1000", "--tolerance=1e-7", "--checkpoint", "ck", __VA_ARGS__
        program_assert_status(RUN(RUN_OF("--steps", KINDS[k / 2].steps)), 0);
        newest(path);
        forge(path, KINDS[k / 2].tensor, 1);
        program_assert_status(RUN(RUN_OF("--resume", "--steps", "1")), 0);
        program_drop_folder("ck");
        program_assert_status(RUN(RUN_OF("--steps", KINDS[k / 2].steps)), 0);
        newest(path);
        forge(path, KINDS[k / 2].tensor, BY[k % 2]);
        struct program *p = RUN(RUN_OF("--resume"));
        assert_int_equal(p->status, 1);
        assert_non_null(strstr(p->text[ERR], ", or a dual variable is impossible: use the data of its run"));
        end_test(state);
#undef RUN_OF
    }
}

/* As it was written it goes on; with another byte it is refused in a line, or, when its seal was made right, it is, or the run comes to an
 * end that it does not call proved without having measured the objective. */
static void a_damaged_checkpoint_is_refused_or_does_no_harm(void **state) {
    char path[300];
    size_t n;
    unsigned seed = 7;
    (void)state;
#define RUN_OF(...)                                                                                                   \
    "builtin:sparse:examples=200,features=30,nonzeros=5", "-q", "-w", "1", "-M", "svm", "--C=10", "--tolerance=1e-4", \
        __VA_ARGS__
    program_assert_status(RUN(RUN_OF("--checkpoint", "ck", "--steps", "2")), 0);
    newest(path);
    uint8_t *bytes = read_file(path, &n), *turned = malloc(n);
    assert_non_null(turned);
    for (unsigned i = 0; i < 60; i++) {
        seed = seed * 1664525 + 1013904223;
        memcpy(turned, bytes, n);
        turned[8 + (seed >> 8) % (n - 8)] ^= (uint8_t)(1 << i % 8);
        if (i % 3 > 0) make_seal(turned, n);
        write_file(path, turned, i % 10 == 9 ? n - 1 - seed % (n / 2) : n);
        struct program *p = RUN(RUN_OF("--checkpoint", "ck", "--resume", "--time-limit", "20"));
        if (p->status != 0) {
            assert_true(p->status == 1 || p->status == 2);
            assert_true(strncmp(p->text[ERR], "shmtrain: ", 10) == 0 && p->bytes[OUT] == 0);
        } else {
            assert_true(i % 3 > 0);
        }
        program_end_all(NULL);
        program_drop_folder("ck");
        assert_int_equal(mkdir("ck", 0700), 0);
    }
    free(turned);
    free(bytes);
#undef RUN_OF
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(fits_go_on_with_the_same_bits_and_any_number_of_workers, end_test),
        cmocka_unit_test_teardown(fits_killed_at_any_moment_end_with_the_same_bits, end_test),
        cmocka_unit_test_teardown(fits_that_are_stopped_go_on_behind_their_last_whole_epoch, end_test),
        cmocka_unit_test_teardown(fits_by_all_at_once_go_on_too, end_test),
        cmocka_unit_test_teardown(a_run_without_options_stays_a_fit_with_checkpoints, end_test),
        cmocka_unit_test_teardown(steps_of_sgd_go_on_as_such_without_options, end_test),
        cmocka_unit_test_teardown(what_was_printed_as_chosen_may_be_typed, end_test),
        cmocka_unit_test_teardown(typed_l2_of_sgd_is_to_be_typed_again, end_test),
        cmocka_unit_test_teardown(what_has_no_epoch_yet_begins_anew, end_test),
        cmocka_unit_test_teardown(a_choice_that_was_stopped_has_chosen_nothing, end_test),
        cmocka_unit_test_teardown(inspect_says_what_was_proved, end_test),
        cmocka_unit_test_teardown(other_problems_are_refused_with_both_values, end_test),
        cmocka_unit_test_teardown(other_values_of_the_same_shape_are_refused, end_test),
        cmocka_unit_test_teardown(other_values_are_refused_where_the_fit_had_ended, end_test),
        cmocka_unit_test_teardown(impossible_dual_variables_are_refused, end_test),
        cmocka_unit_test_teardown(a_damaged_checkpoint_is_refused_or_does_no_harm, end_test),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
