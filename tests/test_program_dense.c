/* The real program from outside: dense models. The same bits whoever computes, no more threads than asked for, and what is said
 * of the libraries that do the work. */
#include "run_program.h"
#include "sanitized.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>

#define DATA "builtin:dense:examples=3000,valid=500,features=40,classes=5"
/* Loops of this one are long enough for several threads: 256 examples, 200,000 weights. */
#define WIDE "builtin:dense:examples=1024,valid=64,features=2000,classes=100"

/* ---- libraries ---- */

static int no_blas(void) { return setenv("SHMTRAIN_BLAS", "/nowhere/libopenblas.so", 1); }
static int threaded_blas(void) { return setenv("SHMTRAIN_BLAS", "libopenblas.so.0", 1); }
static int one_openmp_thread(void) { return setenv("OMP_NUM_THREADS", "1,3", 1); }

static void skip_without_blas(void) {
    struct program *p = RUN("-M", "softmax", "-e", "1", "-w", "1", "-q", DATA);
    if (p->status == 0 || !strstr(p->text[ERR], "need OpenBLAS")) return;
    print_message("skipped: %s", p->text[ERR]);
    skip();
}

static bool have_openmp(void) { return dlopen("libgomp.so.1", RTLD_LAZY) != NULL; }

/* ---- results ---- */

static void sync_gives_the_same_bits_for_every_number_of_workers_and_threads(void **state) {
    static const char *const WORKERS[] = {"1", "2", "8"}, *const THREADS[] = {"1", "2"};
    char reference[17], hash[17];
    (void)state;
    skip_without_blas();
    HASH(reference, "-M", "softmax", "--mode", "sync", "-e", "3", "--backend", "plain", DATA);
    for (int w = 0; w < 3; w++)
        for (int t = 0; t < 2; t++) {
            HASH(hash, "-M", "softmax", "--mode", "sync", "-e", "3", "-w", WORKERS[w], "-t", THREADS[t], DATA);
            assert_string_equal(hash, reference);
        }
    HASH(hash, "-M", "softmax", "--mode", "sync", "-e", "3", "--spawn", "threads", "-w", "2", "-t", "2", DATA);
    assert_string_equal(hash, reference);
    /* Chunks of 256 examples, whose loops are shared out to threads. */
    HASH(reference, "-M", "softmax", "--mode", "sync", "-e", "2", "-b", "512", "--chunks", "2", "-w", "1", WIDE);
    HASH(hash, "-M", "softmax", "--mode", "sync", "-e", "2", "-b", "512", "--chunks", "2", "-w", "2", "-t", "2", WIDE);
    assert_string_equal(hash, reference);
    HASH(hash, "-M", "softmax", "--mode", "sync", "-e", "2", "-b", "512", "--chunks", "2", "-w", "1", "-t", "3", WIDE);
    assert_string_equal(hash, reference);
}

/* Two tables, one update: 20 items of 64 examples and one of 20 in each epoch. */
static void an_item_of_a_model_with_two_tables_is_one_update(void **state) {
    (void)state;
    skip_without_blas();
    struct program *p = RUN("--json", "-q", "-M", "softmax", "-w", "2", "-e", "3", "builtin:dense:examples=1300,valid=100");
    json_t *object = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(object, "updates")), 3 * 21);
    json_decref(object);
}

/* Without learning anything the loss would be the logarithm of their number. */
static void the_rate_fits_many_classes(void **state) {
    static const struct {
        const char *data;
        double most; /* loss after 3 epochs, a tenth above what it was */
    } RUNS[] = {{"builtin:dense:valid=500,classes=2", 0.21},
                {"builtin:dense:valid=500,classes=50", 1.15},
                {"builtin:dense:valid=500,classes=200", 1.85},
                {"builtin:dense:valid=500,classes=1024", 3.5}};
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    skip_without_blas();
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        struct program *p = RUN("--json", "-q", "-M", "softmax", "-w", "2", "-e", "3", RUNS[i].data);
        json_t *object = program_json(p);
        const json_t *last = json_array_get(json_object_get(object, "epochs"), 2);
        const double loss = json_number_value(json_object_get(last, "valid_loss"));
        print_message("%s: %.4f\n", RUNS[i].data, loss);
        assert_true(loss > 0 && loss < RUNS[i].most);
        json_decref(object);
    }
}

/* The loss of the model that made the data is known. Examples: 20,000, 2,000 of them to validate on. */
static void softmax_comes_near_the_model_that_made_the_data(void **state) {
    static const char *const OPTIMIZERS[] = {"sgd",      "momentum", "adagrad",  "adam", "ftrl",
                                             "nesterov", "rmsprop",  "adadelta", "adamw"},
                             *const MODES[] = {"async", "sync"};
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    skip_without_blas();
    for (size_t o = 0; o < sizeof OPTIMIZERS / sizeof *OPTIMIZERS; o++)
        for (int m = 0; m < 2; m++) {
            struct program *p = RUN("--json", "-q", "-M", "softmax", "-w", "2", "--optimizer", OPTIMIZERS[o], "--mode",
                                    MODES[m], "builtin:dense");
            json_t *object = program_json(p), *epochs = json_object_get(object, "epochs");
            const json_t *last = json_array_get(epochs, json_array_size(epochs) - 1);
            const double loss = json_number_value(json_object_get(last, "valid_loss"));
            const double best = json_number_value(json_object_get(object, "best_loss"));
            print_message("%s %s: %.4f, best %.4f\n", OPTIMIZERS[o], MODES[m], loss, best);
            assert_true(best > 0.5 && loss < best + 0.05); /* log 10 = 2.3 is where it begins */
            json_decref(object);
        }
}

static void models_for_two_classes_and_for_numbers_run_by_name(void **state) {
    (void)state;
    struct program *p = RUN("-M", "svm", "-w", "2", "-e", "3", "builtin:sparse:examples=5000,valid=1000");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "model       svm, sgd"));
    assert_non_null(strstr(p->text[OUT], ", AUC 0."));
    assert_null(strstr(p->text[OUT], "the model that made the data")); /* its loss is another one */
    p = RUN("-M", "linear", "-w", "2", "-e", "3", "builtin:sparse:examples=5000,valid=1000");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "model       linear, sgd"));
    assert_null(strstr(p->text[OUT], "accuracy 0")); /* a number is neither right nor wrong */
    assert_null(strstr(p->text[OUT], ", AUC"));
    assert_null(strstr(p->text[OUT], "the model that made the data"));
    p = RUN("-M", "logistic", "builtin:dense");
    program_assert_refused(p, 1, "more than two labels");
}

/* ---- what is said ---- */

static void the_report_names_the_library_and_its_kernel(void **state) {
    (void)state;
    skip_without_blas();
    struct program *p = RUN("--json", "-q", "-M", "softmax", "-e", "1", DATA);
    json_t *object = program_json(p);
    const char *blas = json_string_value(json_object_get(object, "blas"));
    assert_non_null(blas);
    assert_int_equal(strncmp(blas, "OpenBLAS ", 9), 0);
    char line[160];
    snprintf(line, sizeof line, "model       softmax, sgd with rate 0.2479 cosine, l2 0\n            on %s\n", blas);
    p = RUN("-M", "softmax", "-e", "1", "-r", "0.2479", DATA);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], line));
    json_decref(object);
    p = RUN("--json", "-q", "-e", "1", "builtin:sparse:examples=1000,features=500,nonzeros=5");
    object = program_json(p);
    assert_true(json_is_null(json_object_get(object, "blas")));
    json_decref(object);
}

static void a_missing_library_is_one_sentence_before_any_data_is_read(void **state) {
    (void)state;
    struct program *p = RUN_IN(no_blas, "-M", "softmax", "nowhere.svm");
    program_assert_refused(p, 1, "SHMTRAIN_BLAS does not name a usable BLAS library: /nowhere/libopenblas.so");
    p = RUN_IN(no_blas, "-e", "1", "-q", "builtin:sparse:examples=1000,features=500,nonzeros=5");
    program_assert_status(p, 0); /* who does not need it does not miss it */
}

static void openmps_variable_lowers_the_number_of_threads(void **state) {
    (void)state;
    struct program *p = RUN_IN(one_openmp_thread, "--json", "-t", "2", "-w", "1", "-e", "1",
                               "builtin:sparse:examples=1000,features=500,nonzeros=5");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "each worker has 1 of 2 threads, because OMP_NUM_THREADS is 1,3"));
    json_t *object = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(object, "threads")), 1);
    json_decref(object);
}

/* ---- threads ---- */

static int threads_of(pid_t pid) {
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (!tasks) return -1;
    for (const struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static void check_threads(program_prepare *prepare, const char *threads, int expected) {
    struct program *p = START_IN(prepare, "-M", "softmax", "-w", "8", "-t", threads, "-e", "100000", "--mode", "async",
                                 "--item", "256", "--progress", "plain", WIDE);
    program_wait_for_epoch(p);
    assert_int_equal(threads_of(program_supervisor(p)), 1);
    for (unsigned rank = 0; rank < 8; rank++) assert_int_equal(threads_of(program_worker(p, rank)), expected);
    kill(p->pid, SIGINT);
    program_finish(p);
    assert_int_equal(p->status, 130);
}

/* Whichever variant of OpenBLAS it is: eight workers are eight threads. */
static void eight_workers_of_one_thread_are_eight_threads(void **state) {
    (void)state;
    skip_without_blas();
    check_threads(NULL, "1", 1);
    check_threads(threaded_blas, "1", 1);
}

static void workers_of_two_threads_share_their_loops(void **state) {
    (void)state;
    skip_without_blas();
    if (strstr(RUN("-M", "softmax", "-e", "1", "-w", "1", "-t", "2", "-q", DATA)->text[ERR], "one thread of a process")) {
        print_message("skipped: OpenBLAS is there without threads only\n");
        skip();
    }
    if (!have_openmp()) {
        print_message("skipped: there is no libgomp.so.1\n");
        skip();
    }
    check_threads(NULL, "2", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(sync_gives_the_same_bits_for_every_number_of_workers_and_threads),
        PROGRAM_TEST(softmax_comes_near_the_model_that_made_the_data),
        PROGRAM_TEST(an_item_of_a_model_with_two_tables_is_one_update),
        PROGRAM_TEST(the_rate_fits_many_classes),
        PROGRAM_TEST(models_for_two_classes_and_for_numbers_run_by_name),
        PROGRAM_TEST(the_report_names_the_library_and_its_kernel),
        PROGRAM_TEST(a_missing_library_is_one_sentence_before_any_data_is_read),
        PROGRAM_TEST(openmps_variable_lowers_the_number_of_threads),
        PROGRAM_TEST(eight_workers_of_one_thread_are_eight_threads),
        PROGRAM_TEST(workers_of_two_threads_share_their_loops),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
