/* The real program from outside: everything that it refuses, in one line that says what, where and what to do. Exit status 2
 * for wrong usage, 1 for failure, and nothing on stdout. */
#include "run_program.h"
#include "sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DATA "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

/* ---- usage ---- */

static void wrong_usage_is_refused_with_what_is_right(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "there is no option --bogus", {"--bogus"}},
        {2, "there is no option -X", {"-X"}},
        {2, "there is no option -X", {"--quiet", "-Xq"}},
        {2, "there is no option -X", {"-qX"}},
        {2, "--quiet=3: this option takes no value", {"--quiet=3"}},
        {2, "--rate needs a value: shmtrain help train, or help COMMAND, says which", {"--rate"}},
        {2, "mode \"a?b?[31m\" is not one of", {"--mode", "a\nb\033[31m", "builtin:line"}},
        {2, "there is no option --a?b", {"--a\nb"}},
        {2, "shmtrain data info|convert DATA...: what is \"train.csv\"?", {"data", "train.csv", "--label", "bought"}},
        {2, "shmtrain data info|convert DATA...: what is \"inf\"?", {"data", "inf"}},
        {2, "-w needs a value", {"-w"}},
        {1, "cannot open first: No such file or directory", {"first", "second"}},
        {1, "cannot open first: No such file or directory", {"train", "first", "-w", "2", "second"}},
        {2, "--output \"\": expected FILE, or leave the option out", {"-o", ""}},
        {2, "there is no option -\xc3\xa9;", {"-\xc3\xa9"}},
        {2, "there is no option -\xc3\xa9;", {"-q\xc3\xa9", "-w", "1"}},
        {2, "there is no option -\xe2\x82\xac;", {"-\xe2\x82\xacw", "1"}},
        {2, "there is no option -\\xe9;", {"-\xe9"}},
        {2, "there is no option -\\xa9;", {"-\xa9q"}},
        {2, "--mo is the beginning of several options: --mode, --model, --momentum", {"--mo", "async"}},
        {2, "--m is the beginning of several options: --max-respawns, --mode, --merge-every, --merge", {"--m", "async"}},
        {2, "--st is the beginning of several options: --steps, --stall-timeout, --staleness", {"--st=3"}},
        {2, "--valid \"\": expected PATH|X, or leave the option out", {"--valid", ""}},
        {2, "--weights \"\": expected FILE, or", {"--weights="}},
        {2, "--class-weight \"\": expected L:W,..., or", {"--class-weight", ""}},
        {2, "--name \"\": expected NAME, or", {"--name", ""}},
        {2, "--model \"\": expected NAME, or", {"-M", ""}},
        {2, "--staleness \"\": expected S, or", {"--staleness", ""}},
        {2, "--progress \"\": expected HOW, or", {"--progress", ""}},
        {2,
         "merge damped is for replicas that each merge on their own: use --staleness inf",
         {"--replicas", "worker", "--merge", "damped", "--staleness", "0"}},
        {2,
         "merge damped needs the curvature of the loss along each parameter",
         {"-M", "softmax", "--merge", "damped", "builtin:dense"}},
        {2, "the store's name \"-x\" starts with '-'", {"-w", "1", "--name", "-x"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void values_out_of_range_are_refused_with_the_range(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "--workers 0: expected a whole number from 1 to ", {"-w", "0"}},
        {2, "64 workers of 256 threads: at most 4096 threads in all", {"-w", "64", "-t", "256"}},
        {2, "--workers 100000: expected a whole number from 1 to ", {"-w", "100000"}},
        {2, "--workers -1: expected a whole number", {"-w", "-1"}},
        {2, "--workers 2x: expected a whole number", {"--workers=2x"}},
        {2, "--workers 1.5: expected a whole number", {"-w", "1.5"}},
        {2, "--workers \"\": expected a whole number", {"-w", ""}},
        {2, "--workers 99999999999999999999: expected a whole number", {"-w", "99999999999999999999"}},
        {2, "--threads 0: expected", {"-t", "0"}},
        {2, "--epochs 0: expected", {"-e", "0"}},
        {2, "--batch 0: expected", {"-b", "0"}},
        {2, "--steps 0: expected", {"--steps", "0"}},
        {2, "--seed -1: expected", {"--seed", "-1"}},
        {2, "--rate nan: expected a number from ", {"--rate", "nan"}},
        {2, "--rate inf: expected a number from ", {"--rate", "inf"}},
        {2, "--rate 0: expected a number from ", {"--rate", "0"}},
        {2, "--rate -1: expected a number from ", {"-r", "-1"}},
        {2, "--rate 0,1: expected a number from ", {"-r", "0,1"}},
        {2, "--l2 -0.1: expected a number from 0 to ", {"--l2", "-0.1"}},
        {2, "--bias 2: expected 1 or 0", {"--bias", "2"}},
        {2, "1.5: a share must be between 0 and 1", {"--valid", "1.5"}},
        {2, "0: a share must be between 0 and 1", {"--valid", "0"}},
        {2, "nan: a share must be between 0 and 1", {"--valid", "nan"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void unknown_choices_are_refused_with_the_choices(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "shmtrain: --mode \"bsp\" is not one of async, hogwild, sync, allreduce, ssp", {"--mode", "bsp"}},
        {2, "shmtrain: --mode \"asy\" is not one of async, hogwild, sync, allreduce, ssp", {"--mode", "asy"}},
        {2, "shmtrain: --mode \"\" is not one of async, hogwild, sync, allreduce, ssp", {"--mode", ""}},
        {2, "--write x: expected one of racy|", {"--write", "x"}},
        {2, "--staleness x: expected a whole number of clocks, or inf", {"--staleness", "x"}},
        {2, "--backend mpi: expected one of shm|plain", {"--backend", "mpi"}},
        {2, "--spawn fork: expected processes, threads or fibers, or fibers and a seed, as fibers:7", {"--spawn", "fork"}},
        {2, "--schedule linear: expected one of auto|constant|inverse|", {"--schedule", "linear"}},
        {2, "unknown model \"transformer\": use one of logistic", {"-M", "transformer"}},
        {2, "builtin:sparse, builtin:dense, builtin:digits or builtin:line", {"builtin:wide"}},
        {2, "its keys are examples, valid, features, nonzeros", {"builtin:sparse:rows=3"}},
        {2, "examples must be a whole number", {"builtin:sparse:examples=x"}},
        {2, "the plain backend has one worker", {"--backend", "plain", "-w", "2"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static int set_bad_variable(void) { return setenv("SHMTRAIN_RATE", "fast", 1); }

static int set_empty_variables(void) {
    return setenv("SHMTRAIN_VALID", "", 1) || setenv("SHMTRAIN_NAME", "", 1) || setenv("SHMTRAIN_PROGRESS", "", 1);
}

static void an_empty_variable_is_none(void **state) {
    (void)state;
    program_assert_status(RUN_IN(set_empty_variables, "-w", "1", "-e", "1", DATA), 0);
}

static void a_bad_variable_is_refused_by_its_name(void **state) {
    (void)state;
    program_assert_refused(RUN_IN(set_bad_variable, "-w", "1"), 2, "SHMTRAIN_RATE fast: expected a number");
}

/* ---- data ---- */

static void write_lines(const char *name, int bad_line, const char *bad) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (int line = 1; line <= 1000; line++)
        if (line == bad_line)
            fprintf(f, "%s\n", bad);
        else
            fprintf(f, "%d %d:1 %d:0.5\n", line % 2 ? 1 : -1, 1 + line % 7, 10 + line % 5);
    assert_int_equal(fclose(f), 0);
}

static void write_noise(void) {
    FILE *f = fopen("noise", "w");
    uint32_t x = 1;
    assert_non_null(f);
    for (int i = 0; i < 100000; i++) putc((int)((x = x * 1664525u + 1013904223u) >> 24), f);
    assert_int_equal(fclose(f), 0);
}

static void what_is_no_data_is_refused(void **state) {
    (void)state;
    program_write_file("empty", "");
    program_write_file("comments", "# nothing\n\n# here\n");
    write_noise();
    assert_int_equal(mkdir("folder", 0777), 0);
    const struct refusal list[] = {
        {1, "cannot open missing: No such file or directory", {"missing"}},
        {1, "empty is empty", {"empty"}},
        {1, "comments has no example", {"comments"}},
        {1, "noise:1:1: expected a label (a number), found \"", {"noise"}},
        {2, "folder is a folder", {"folder"}},
        {1, "/dev/null is empty", {"/dev/null"}},
        {1, "cannot open missing: No such file or directory", {DATA, "--valid", "missing"}},
        {1, "empty is empty", {DATA, "--valid", "empty"}},
        {2, "folder is a folder", {DATA, "--valid", "folder"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void a_bad_line_is_named_with_its_column(void **state) {
    (void)state;
    write_lines("good", 0, "");
    write_lines("no-value", 501, "1 3:1 5");
    write_lines("descends", 700, "1 3:1 2:1");
    write_lines("no-number", 1000, "-1 3:one");
    write_lines("no-label", 2, "3:1 4:1");
    const struct refusal list[] = {
        {1, "no-value:501:7: expected ", {"-w", "1", "no-value"}},
        {1, "no-value:501:7: expected ", {"-w", "8", "no-value"}},
        {1, "descends:700:7: expected ", {"-w", "3", "descends"}},
        {1, "no-number:1000:6: expected ", {"-w", "3", "no-number"}},
        {1, "no-label:2:1: expected a label", {"-w", "3", "no-label"}},
        {1, "no-value:501:7: expected ", {"-w", "2", "good", "--valid", "no-value"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void what_a_terminal_would_obey_is_not_repeated(void **state) {
    (void)state;
    write_lines("bytes", 17, "1 3:1 \xff\x1b[31m");
    struct program *p = RUN("-w", "2", "bytes");
    program_assert_refused(p, 1, "bytes:17:7: expected ");
    for (const char *c = p->text[ERR]; *c; c++) assert_true(*c == '\n' || (*c >= ' ' && *c <= '~'));
}

static void labels_that_do_not_fit_are_named_with_their_line(void **state) {
    (void)state;
    write_lines("good", 0, "");
    write_lines("three", 800, "3 1:1");
    write_lines("foreign", 600, "7 1:1");
    program_write_file("one", "1 1:1\n1 2:1\n");
    const struct refusal list[] = {
        {1, "three:800: the data has more than two labels", {"-w", "2", "three"}},
        {1, "one:1: the data has only one label", {"-w", "2", "one"}},
        {1,
         "foreign:600: label 7 does not occur in the training data, which has labels -1 and 1",
         {"good", "--valid", "foreign"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void data_without_features_needs_a_bias(void **state) {
    (void)state;
    program_write_file("bare", "1\n-1\n1\n");
    const struct refusal list[] = {{1, "bare has no features at all: learn a bias (--bias 1)", {"--bias", "0", "bare"}}};
    ASSERT_ALL_REFUSED(list);
    program_assert_status(RUN("-w", "2", "-q", "bare"), 0);
}

/* What is read, under whatever name, is not written over: the file that was meant stays as it is. */
static void output_onto_what_is_read_is_refused(void **state) {
    char text[16] = "";
    (void)state;
    write_lines("good", 0, "");
    write_lines("valid", 0, "");
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "-o", "model", "good"), 0);
    assert_int_equal(symlink("good", "link-to-good"), 0);
    const struct refusal list[] = {
        {2, "--output good is read as the data (good) and would be replaced", {"-o", "good", "good"}},
        {2, "--output good is read as the data (one of 2 files) and would be replaced", {"-o", "good", "valid", "good"}},
        {2, "--output ./good is read as the data (link-to-good)", {"-o", "./good", "link-to-good"}},
        {2, "--output valid is read as validation data (valid)", {"good", "--valid", "valid", "-o", "valid"}},
        {2, "--output good is read as the data (good)", {"predict", "-o", "good", "model", "good"}},
        {2, "--output ./model is read as the model (model), and", {"predict", "-o", "./model", "model", "good"}},
    };
    ASSERT_ALL_REFUSED(list);
    FILE *f = fopen("good", "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "1 2:1 11:0.5\n");
}

static void outputs_do_not_replace_what_cache_keeps(void **state) {
    static const char *const NAMES[] = {"kept.shmcache", "./kept.shmcache", "valid.shmcache"};
    static const char *const OPTIONS[] = {"-o", "--trace", "--metrics"};
    (void)state;
    write_lines("kept", 0, "");
    write_lines("valid", 0, "");
    for (int there = 0; there < 2; there++) {
        for (size_t i = 0; i < 9; i++)
            program_assert_refused(RUN("--cache", "--valid", "valid", OPTIONS[i % 3], NAMES[i / 3], "kept"), 2,
                                   "is where --cache keeps the data and would be replaced");
        program_assert_status(RUN("data", "convert", "-o", "kept.shmcache", "kept"), 0);
        program_assert_status(RUN("data", "convert", "-o", "valid.shmcache", "valid"), 0);
    }
    program_assert_status(RUN("--cache", "-q", "-w", "1", "-e", "1", "kept"), 0);
}

static void a_cache_is_not_written_to_a_stream(void **state) {
    (void)state;
    write_lines("kept", 0, "");
    assert_int_equal(mkfifo("stream", 0600), 0);
    program_assert_refused(RUN("data", "convert", "kept", "-o", "stream"), 2, "cannot write the cache to stream: ");
    program_assert_refused(RUN("data", "convert", "kept", "-o", "/dev/stdout"), 2, "cannot write the cache to /dev/stdout: ");
}

/* ---- memory ---- */

static void more_than_the_machine_has_is_refused_with_the_figures(void **state) {
    (void)state;
    /* 4e9 examples of 1,000 nonzeros, 8 bytes each: 32 TB */
    struct program *p = RUN("-w", "2", "builtin:sparse:examples=4000000000,features=100000,nonzeros=1000");
    program_assert_refused(p, 1, " needs ");
    assert_non_null(strstr(p->text[ERR], " TiB but the "));
    assert_non_null(strstr(p->text[ERR], " leaves "));
}

static int take_little_address_space(void) {
    const struct rlimit limit = {128 << 20, 128 << 20};
    return setrlimit(RLIMIT_AS, &limit) != 0 ? errno : 0;
}

static void a_limited_address_space_is_refused_with_the_figures(void **state) {
    (void)state;
    if (SANITIZED) {
        print_message("skipped: sanitizers need address space without limit\n");
        skip();
    }
    struct program *p = RUN_IN(take_little_address_space, "-w", "2", "builtin:sparse:examples=400000");
    program_assert_refused(p, 1, "128 MiB");
    assert_non_null(strstr(p->text[ERR], "ulimit -v"));
}

static int take_half_a_gibibyte(void) {
    const struct rlimit limit = {512 << 20, 512 << 20};
    return setrlimit(RLIMIT_AS, &limit) != 0 ? errno : 0;
}

static void a_batch_far_larger_than_the_data_takes_no_memory_of_its_size(void **state) {
    (void)state;
    if (SANITIZED) {
        print_message("skipped: sanitizers need address space without limit\n");
        skip();
    }
    write_lines("good", 0, "");
    const char *const modes[] = {"sync", "async"};
    for (int m = 0; m < 2; m++)
        program_assert_status(RUN_IN(take_half_a_gibibyte, "-w", "2", "-q", "--mode", modes[m], "-b", "1073741824", "good"), 0);
}

/* A control group of version 1 or 2 with 32 MiB. */
static char group[128]; /* "": there is none */

static int write_number(const char *folder, const char *name, long number) {
    char path[200], text[32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const int n = snprintf(text, sizeof text, "%ld", number), fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    const ssize_t written = write(fd, text, (size_t)n);
    close(fd);
    return written == n ? 0 : -1;
}

static bool make_group(void) {
    const char *const parents[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};
    for (int i = 0; i < 2; i++) {
        snprintf(group, sizeof group, "%s/shmtrain-test-%d", parents[i], getpid());
        if (mkdir(group, 0755) != 0) continue;
        if (write_number(group, limits[i], 32 << 20) == 0) return true;
        rmdir(group);
    }
    group[0] = '\0';
    return false;
}

static int enter_group(void) { return write_number(group, "cgroup.procs", getpid()); }

static int remove_group(void **state) {
    program_end_all(state);
    if (group[0] != '\0') rmdir(group);
    return 0;
}

static void a_control_groups_limit_is_refused_with_the_figures_and_nobody_is_killed(void **state) {
    (void)state;
    if (SANITIZED || !make_group()) {
        print_message("skipped: %s\n", SANITIZED ? "sanitizers need more memory" : "no right to limit a control group");
        skip();
    }
    struct program *p = RUN_IN(enter_group, "-w", "2", "builtin:sparse"); /* 115 MiB of data */
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to enter a control group\n");
        skip();
    }
    program_assert_refused(p, 1, " of 32.0 MiB: ");
    assert_non_null(strstr(p->text[ERR], "shmtrain-test-")); /* which group */
    p = RUN_IN(enter_group, "-w", "2", "-e", "1", "-q", DATA);
    program_assert_status(p, 0); /* what fits does run there */
}

/* ---- stdout ---- */

static int lead_stdout_to_full(void) {
    const int fd = open("/dev/full", O_WRONLY);
    return fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || close(fd) < 0;
}

static int close_stdout(void) { return close(STDOUT_FILENO); }
static int close_all_three(void) { return close(STDIN_FILENO) || close(STDOUT_FILENO) || close(STDERR_FILENO); }

static void a_full_or_closed_stdout_is_a_failure(void **state) {
    (void)state;
    const char *const what[][8] = {
        {"--help"}, {"--version"}, {"-w", "2", "-e", "3", DATA}, {"-w", "2", "-e", "3", "--quiet", "--json", DATA}};
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        const char *argv[10] = {"shmtrain"};
        memcpy(argv + 1, what[i], sizeof what[i]);
        program_assert_refused(program_run(lead_stdout_to_full, argv), 1, "standard output: No space left on device");
        program_assert_refused(program_run(close_stdout, argv), 1, "standard output: Bad file descriptor");
    }
}

/* What is opened first would get the numbers of closed streams, and the lines of the epochs would go into shared memory: 500 of
 * them are more than the header of a segment, behind which the data begins. */
static void without_its_streams_it_trains_the_same(void **state) {
    (void)state;
#define LONG_RUN "--mode", "sync", "-w", "2", "-e", "500", DATA, "-o"
    program_assert_status(RUN("--quiet", LONG_RUN, "open.model"), 0);
    program_assert_refused(RUN_IN(close_stdout, LONG_RUN, "one.model"), 1, "standard output: Bad file descriptor");
    program_assert_status(RUN_IN(close_all_three, LONG_RUN, "none.model"), 1); /* it could not print */
    const char *const closed[] = {"one.model", "none.model"};
    for (int i = 0; i < 2; i++)
        program_assert_status(program_run(NULL, (const char *const[]){"cmp", "open.model", closed[i], NULL}), 0);
}

/* As any program before `head`. */
static void a_reader_that_leaves_ends_it(void **state) {
    (void)state;
    struct program *p = START("-w", "2", "-e", "100000", DATA);
    program_wait_for_epoch(p);
    close(p->fd[OUT]);
    p->fd[OUT] = -1;
    program_finish(p);
    assert_int_equal(p->status, -SIGPIPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(wrong_usage_is_refused_with_what_is_right),
        PROGRAM_TEST(values_out_of_range_are_refused_with_the_range),
        PROGRAM_TEST(unknown_choices_are_refused_with_the_choices),
        PROGRAM_TEST(a_bad_variable_is_refused_by_its_name),
        PROGRAM_TEST(an_empty_variable_is_none),
        PROGRAM_TEST(what_is_no_data_is_refused),
        PROGRAM_TEST(a_bad_line_is_named_with_its_column),
        PROGRAM_TEST(what_a_terminal_would_obey_is_not_repeated),
        PROGRAM_TEST(labels_that_do_not_fit_are_named_with_their_line),
        PROGRAM_TEST(data_without_features_needs_a_bias),
        PROGRAM_TEST(output_onto_what_is_read_is_refused),
        PROGRAM_TEST(outputs_do_not_replace_what_cache_keeps),
        PROGRAM_TEST(a_cache_is_not_written_to_a_stream),
        PROGRAM_TEST(more_than_the_machine_has_is_refused_with_the_figures),
        PROGRAM_TEST(a_limited_address_space_is_refused_with_the_figures),
        PROGRAM_TEST(a_batch_far_larger_than_the_data_takes_no_memory_of_its_size),
        cmocka_unit_test_teardown(a_control_groups_limit_is_refused_with_the_figures_and_nobody_is_killed, remove_group),
        PROGRAM_TEST(a_full_or_closed_stdout_is_a_failure),
        PROGRAM_TEST(without_its_streams_it_trains_the_same),
        PROGRAM_TEST(a_reader_that_leaves_ends_it),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
