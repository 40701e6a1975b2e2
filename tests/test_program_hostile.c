/* The real program from outside, with everything that can be wrong around it: each kind of bad file with each command, a machine
 * that gives too little, streams that take nothing. What it says is one line, what was there stays, and nothing is left behind. */
#include "run_program.h"
#include "sanitized.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define DATA "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

/* Names that begin as files do which are not complete. */
static void assert_no_temporary(const char *folder) {
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, ".shmtrain-", 10) == 0) fail_msg("%s/%s is left", folder, entry->d_name);
    closedir(dir);
}

static void write_bytes(const char *name, const void *bytes, size_t n) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* The first `bytes` of a file as another one. */
static void cut(const char *from, const char *to, size_t bytes) {
    char *text = malloc(bytes + 1);
    FILE *f = fopen(from, "r");
    assert_non_null(f);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, f), bytes);
    fclose(f);
    write_bytes(to, text, bytes);
    free(text);
}

static size_t bytes_of(const char *name) {
    struct stat s;
    assert_int_equal(stat(name, &s), 0);
    return (size_t)s.st_size;
}

static int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    program_write_file("good", "1 1:1 3:0.5\n-1 2:1\n1 1:0.5\n-1 2:2 3:1\n");
    struct program *p = RUN("-q", "-w", "1", "-e", "2", "-o", "model", "good");
    const int status = p->status;
    program_end_all(state);
    return status;
}

/* ---- bad data, whatever is to be done with it ---- */

struct bad {
    const char *name;
    int status;
    const char *words;
};

static void refuse_everywhere(const struct bad *bad, void **state) {
    const char *const commands[][8] = {
        {"train", "-q", "-w", "2", bad->name},
        {"train", "-q", "good", "--valid", bad->name},
        {"eval", "model", bad->name},
        {"predict", "-o", "made", "model", bad->name},
        {"data", "info", bad->name},
        {"data", "convert", bad->name, "-o", "made"},
        {"compare", "-q", "--modes", "async", bad->name},
        {"topo", bad->name},
    };
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        const char *argv[10] = {"shmtrain"};
        memcpy(argv + 1, commands[c], sizeof commands[c]);
        program_assert_refused(program_run(NULL, argv), bad->status, bad->words);
        program_end_all(state);
    }
    assert_int_equal(access("made", F_OK), -1);
    assert_no_temporary(".");
}

static void bad_data_is_refused_by_every_command_in_one_line(void **state) {
    static const struct bad BAD[] = {
        {"missing", 1, "cannot open missing: No such file or directory"},
        {"empty", 1, "empty is empty"},
        {"folder", 2, "folder is a folder; name a file in it"},
        {"no-number", 1, "no-number:2:6: expected a number after \"2:\", found \"nan\""},
        {"infinite", 1, "infinite:1:5: expected a number after \"1:\", found \"inf\""},
        {"label", 1, "label:1:1: expected a label (a number), found \"nan\""},
        {"large", 1, "large:1:5: expected a value between -3.4e38 and 3.4e38, found \"1e99\""},
        {"twice", 1, "twice:1:7: expected an index above 1"},
        {"unsorted", 1, "unsorted:1:7: expected an index above 3"},
        {"zero-byte", 1, "zero-byte:1:5: expected a number"},
        {"loop", 1, "cannot open loop: Too many levels of symbolic links"},
        {"dangling", 1, "cannot open dangling: No such file or directory"},
        {"good/x", 1, "cannot open good/x: Not a directory"},
    };
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    program_write_file("empty", "");
    program_write_file("no-number", "1 1:1\n-1 2:nan\n");
    program_write_file("infinite", "1 1:inf\n-1 2:1\n");
    program_write_file("label", "nan 1:1\n-1 2:1\n");
    program_write_file("large", "1 1:1e99\n-1 2:1\n");
    program_write_file("twice", "1 1:1 1:2\n-1 2:1\n");
    program_write_file("unsorted", "1 3:1 2:2\n-1 2:1\n");
    write_bytes("zero-byte", "1 1:\0001\n-1 2:1\n", 15);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) refuse_everywhere(&BAD[i], state);
}

/* What has more than its model can tell apart is only bad where labels count. */
static void labels_that_do_not_fit_are_refused_where_they_count(void **state) {
    (void)state;
    program_write_file("constant", "1 1:1\n1 2:1\n");
    program_write_file("three", "1 1:1\n-1 2:1\n7 1:1\n");
    const struct refusal list[] = {
        {1, "constant:1: the data has only one label, but logistic regression needs two (all are 1)", {"constant"}},
        {1, "three:3: the data has more than two labels, but logistic", {"three"}},
        {1, "three:3: label 7 is not one of the model's labels, which are -1 and 1", {"eval", "model", "three"}},
        {1, "three:3: label 7 does not occur in the training data", {"good", "--valid", "three"}},
    };
    ASSERT_ALL_REFUSED(list);
    program_assert_status(RUN("predict", "model", "three"), 0);
    program_assert_status(RUN("data", "info", "constant"), 0);
}

/* ---- workers ---- */

static void more_workers_than_examples_is_no_error(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "sync", "ssp:4", "backup:3", "local:4"};
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        program_assert_status(RUN("-q", "-e", "3", "-w", "40", "--mode", MODES[i], "good"), 0);
        program_end_all(state);
    }
    program_assert_status(RUN("eval", "-w", "40", "model", "good"), 0);
    program_assert_status(RUN("predict", "-w", "40", "model", "good"), 0);
    program_assert_status(RUN("data", "convert", "-w", "40", "good", "-o", "forty"), 0);
}

/* ---- models and caches ---- */

static void what_is_no_whole_model_is_refused(void **state) {
    char name[32];
    const size_t bytes = bytes_of("model");
    for (size_t n = 0; n < bytes; n += n < 24 ? 3 : 31) {
        snprintf(name, sizeof name, "model-%zu", n);
        cut("model", name, n);
        program_assert_refused(RUN("eval", name, "good"), 1, name);
        program_end_all(state);
    }
    char *zeros = calloc(1, 100000);
    assert_non_null(zeros);
    write_bytes("zeros", zeros, 100000);
    free(zeros);
    write_bytes("huge", "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    const struct refusal list[] = {
        {1, "zeros: byte 0: not a model file, or one cut short", {"predict", "zeros", "good"}},
        {1, "huge: byte 0: not a model file, or one cut short", {"predict", "huge", "good"}},
        {1, "name a file that shmtrain or LIBLINEAR has saved", {"predict", "huge", "good"}},
        {1, "fifo is not a regular file: name a model file", {"predict", "fifo", "good"}},
        {1, "/dev/zero is not a regular file: name a model file", {"eval", "/dev/zero", "good"}},
        {1, "cannot open the model none: No such file or directory", {"eval", "none", "good"}},
    };
    ASSERT_ALL_REFUSED(list);
}

static void a_cache_that_is_cut_anywhere_is_refused(void **state) {
    char name[32];
    program_assert_status(RUN("data", "convert", "good", "-o", "cache"), 0);
    const size_t bytes = bytes_of("cache");
    const char *const commands[][4] = {{"train", "-q"}, {"eval", "model"}, {"predict", "model"}, {"data", "info"}};
    int k = 0;
    for (size_t n = 0; n < bytes; n += n < 64 ? 8 : n < 8192 ? 1021 : 4096) {
        snprintf(name, sizeof name, "cache-%zu", n);
        cut("cache", name, n);
        const char *const *c = commands[k++ % 4];
        program_assert_refused(RUN(c[0], c[1], name), 1, name);
        program_end_all(state);
    }
}

/* ---- a machine that gives too little ---- */

static int own_mounts(void) {
    return unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ? errno : 0;
}

static int make_shm_small(void) {
    const int code = own_mounts();
    if (code != 0) return code;
    return mount("none", "/dev/shm", "tmpfs", 0, "size=16k") != 0 ? errno : 0;
}

static int make_shm_read_only(void) {
    const int code = own_mounts();
    if (code != 0) return code;
    return mount("none", "/dev/shm", "tmpfs", MS_RDONLY, "size=16k") != 0 ? errno : 0;
}

static bool may_not(const struct program *p) {
    if (p->status != PREPARE_FAILED) return false;
    print_message("skipped: no right to mount or to become another user\n");
    return true;
}

static void a_small_dev_shm_stops_named_runs_alone(void **state) {
    (void)state;
    struct program *p = RUN_IN(make_shm_small, "-q", "-w", "2", "-e", "1", DATA);
    if (may_not(p)) skip();
    program_assert_status(p, 0);
    p = RUN_IN(make_shm_small, "-q", "-w", "2", "-e", "1", "--name", "hostile-small", DATA);
    program_assert_refused(p, 1, "/dev/shm has 16.0 KiB, 16.0 KiB free, and a named store needs ");
    assert_non_null(
        strstr(p->text[ERR], "enlarge it (mount -o remount,size=... /dev/shm, docker --shm-size), or train without"));
    p = RUN_IN(make_shm_read_only, "-q", "-w", "2", "-e", "1", "--name", "hostile-small", DATA);
    program_assert_refused(p, 1, "store hostile-small cannot be made (/dev/shm/shmtrain-");
    assert_non_null(strstr(p->text[ERR], "or train without --name"));
}

static int limit_to(int what, rlim_t most) {
    const struct rlimit limit = {most, most};
    return setrlimit(what, &limit) != 0 ? errno : 0;
}

static int take_few_files(void) { return limit_to(RLIMIT_NOFILE, 5); }
static int take_small_files(void) { return limit_to(RLIMIT_FSIZE, 8192); }
static int take_little_memory(void) { return limit_to(RLIMIT_AS, 64 << 20); }

static void too_few_descriptors_are_named_with_the_limit(void **state) {
    (void)state;
    program_assert_refused(RUN_IN(take_few_files, "-q", "-w", "2", DATA), 1,
                           "Too many open files; raise the limit (ulimit -n)");
    program_assert_refused(RUN_IN(take_few_files, "eval", "model", "good"), 1, "raise the limit (ulimit -n)");
}

/* The system would kill who writes beyond the limit (SIGXFSZ), and the file that is not complete would stay. */
static int take_many_lines_and_small_files(void) {
    const int in = open("many", O_RDONLY | O_CLOEXEC);
    return in < 0 || dup2(in, STDIN_FILENO) < 0 ? errno : take_small_files();
}

static void a_file_that_may_not_grow_is_a_failed_write(void **state) {
    (void)state;
    FILE *f = fopen("many", "w");
    assert_non_null(f);
    for (int i = 0; i < 40000; i++) fprintf(f, "1 %d:1\n", 1 + i % 3);
    assert_int_equal(fclose(f), 0);
    program_write_file("out", "before");
    struct program *p = RUN_IN(take_many_lines_and_small_files, "predict", "-o", "out", "model", "-");
    program_assert_refused(p, 1, "cannot write the predictions to out (the previous file is unchanged): File too large");
    assert_int_equal(bytes_of("out"), 6);
    assert_no_temporary(".");
}

static void too_little_memory_is_said_in_one_line(void **state) {
    (void)state;
    if (SANITIZED) {
        print_message("skipped: sanitizers need address space without limit\n");
        skip();
    }
    const char *const commands[][6] = {{"-q", "-w", "8", DATA},
                                       {"eval", "-w", "8", "model", DATA},
                                       {"data", "info", "-w", "8", DATA},
                                       {"topo", "-w", "2", DATA}};
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        const char *argv[8] = {"shmtrain"};
        memcpy(argv + 1, commands[c], sizeof commands[c]);
        struct program *p = program_run(take_little_memory, argv);
        if (p->status == 0 || p->status == 127) continue; /* it was enough; or the system could not even load it */
        program_assert_refused(p, 1, "");
    }
}

/* ---- somebody else ---- */

/* Fails where nobody may not run the program, either: a build below a folder that is its owner's alone. */
static int become_nobody(void) {
    char program[4200];
    snprintf(program, sizeof program, "%s/shmtrain", getenv("TEST_BUILDDIR"));
    if (geteuid() != 0) return EPERM;
    return setgid(65534) != 0 || setuid(65534) != 0 || access(program, R_OK | X_OK) != 0 ? errno : 0;
}

static void who_may_not_is_told_so(void **state) {
    (void)state;
    program_write_file("secret", "1 1:1\n-1 2:1\n");
    assert_int_equal(chmod("secret", 0600), 0);
    assert_int_equal(chmod(".", 0755), 0);
    struct program *p = RUN_IN(become_nobody, "-q", "-w", "1", "-e", "1", "good");
    if (may_not(p)) skip();
    program_assert_status(p, 0);
    program_assert_refused(RUN_IN(become_nobody, "secret"), 1, "cannot open secret: Permission denied");
    program_assert_refused(RUN_IN(become_nobody, "eval", "secret", "good"), 1,
                           "cannot open the model secret: Permission denied");
    program_assert_refused(RUN_IN(become_nobody, "good", "-o", "new"), 1,
                           "cannot write the model to new: Permission denied; name a file in a folder that you may write to");
    program_assert_refused(RUN_IN(become_nobody, "good", "-o", "model"), 1,
                           "cannot write the model to model: Permission denied; name");
    program_assert_refused(RUN_IN(become_nobody, "data", "convert", "good", "-o", "new"), 1,
                           "cannot write the cache to new: Permission denied; name a file");
    p = RUN_IN(become_nobody, "-q", "-e", "1", "--cache", "good");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "Permission denied: the run continues without a cache"));
}

static void stores_of_others_are_not_seen(void **state) {
    (void)state;
    assert_int_equal(chmod(".", 0755), 0);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "--name", "hostile-mine", "good"), 0);
    struct program *p = RUN_IN(become_nobody, "watch", "hostile-mine");
    const bool skipped = may_not(p);
    if (!skipped) {
        program_assert_refused(p, 2, "there is no store hostile-mine: shmtrain ls lists the existing ones");
        program_assert_refused(RUN_IN(become_nobody, "rm", "hostile-mine"), 2, "there is no store hostile-mine");
    }
    program_assert_status(RUN("rm", "hostile-mine"), 0);
    if (skipped) skip();
}

/* ---- a full disk ---- */

static int mount_small_folder(void) {
    const int code = own_mounts();
    if (code != 0) return code;
    if (mount("none", "small", "tmpfs", 0, "size=16k") != 0) return errno;
    program_write_file("small/m", "before");
    return 0;
}

/* The mount ends with the program, so a shell looks into it. */
static void a_model_that_the_disk_has_no_room_for_is_saved_elsewhere(void **state) {
    (void)state;
    assert_int_equal(mkdir("small", 0777), 0);
    assert_int_equal(mkdir("elsewhere", 0777), 0);
    const char *const script[] = {
        "sh", "-c",
        "TMPDIR=$PWD/elsewhere; export TMPDIR\n"
        "\"$TEST_BUILDDIR\"/shmtrain -w 1 -q -e 1 -o small/m builtin:sparse:examples=100,valid=10,features=20000,nonzeros=5;"
        " echo $? $(ls -A small) $(cat small/m); cp elsewhere/*/m saved; rm -r elsewhere",
        NULL};
    struct program *p = program_run(mount_small_folder, script);
    if (may_not(p)) skip();
    assert_string_equal(p->text[OUT], "1 m before\n");
    assert_non_null(strstr(p->text[ERR], "cannot write the model to small/m (the previous file is unchanged): No space left"));
    assert_non_null(strstr(p->text[ERR], "; the model is saved as "));
    assert_ptr_equal(strchr(p->text[ERR], '\n'), p->text[ERR] + strlen(p->text[ERR]) - 1);
    program_assert_status(RUN("eval", "saved", "good"), 0);
}

static void predictions_that_the_disk_has_no_room_for_leave_the_old_ones(void **state) {
    (void)state;
    (void)mkdir("small", 0777);
    const char *const script[] = {"sh", "-c",
                                  "\"$TEST_BUILDDIR\"/shmtrain predict --scores -o small/m model " DATA
                                  ";"
                                  " echo $? $(ls -A small) $(cat small/m)",
                                  NULL};
    struct program *p = program_run(mount_small_folder, script);
    if (may_not(p)) skip();
    assert_string_equal(p->text[OUT], "1 m before\n");
    assert_non_null(
        strstr(p->text[ERR], "cannot write the predictions to small/m (the previous file is unchanged): No space left"));
}

/* ---- streams ---- */

static int lead_stdout_to_full(void) {
    const int full = open("/dev/full", O_WRONLY);
    return full < 0 || dup2(full, STDOUT_FILENO) < 0;
}

static int close_stdout(void) { return close(STDOUT_FILENO); }

static int lead_stdout_to_nobody(void) {
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    return pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0 || close(ends[0]) != 0;
}

static void every_command_says_that_nobody_takes_what_it_prints(void **state) {
    const char *const commands[][6] = {
        {"predict", "model", "good"},
        {"eval", "model", "good"},
        {"eval", "--json", "model", "good"},
        {"data", "info", "good"},
        {"data", "info", "--json", "good"},
        {"topo"},
        {"topo", "--json"},
        {"doctor"},
        {"doctor", "--json"},
        {"help"},
        {"help", "modes"},
        {"help", "eval"},
        {"ls", "--json"},
        {"--version"},
        {"compare", "-q", "--json", "-e", "1", "good"},
    };
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        const char *argv[8] = {"shmtrain"};
        memcpy(argv + 1, commands[c], sizeof commands[c]);
        program_assert_refused(program_run(lead_stdout_to_full, argv), 1, "standard output: No space left on device");
        program_assert_refused(program_run(close_stdout, argv), 1, "standard output: Bad file descriptor");
        struct program *p = program_run(lead_stdout_to_nobody, argv); /* has what it wanted */
        program_assert_status(p, 128 + SIGPIPE);
        assert_string_equal(p->text[ERR], "");
        program_end_all(state);
    }
}

static int close_stdin(void) { return close(STDIN_FILENO); }

static void a_closed_stdin_matters_to_who_reads_it(void **state) {
    (void)state;
    program_assert_status(RUN_IN(close_stdin, "-q", "-w", "2", "-e", "1", "good"), 0);
    program_assert_status(RUN_IN(close_stdin, "eval", "model", "good"), 0);
    program_assert_refused(RUN_IN(close_stdin, "predict", "model", "-"), 1, "cannot read standard input: Bad file descriptor");
}

/* ---- a small stack ---- */

static int with_stack(rlim_t soft, rlim_t hard) { return setrlimit(RLIMIT_STACK, &(const struct rlimit){soft, hard}); }
static int with_64_kib(void) { return with_stack(64 << 10, 64 << 10); }
static int with_256_kib(void) { return with_stack(256 << 10, 256 << 10); }
static int with_512_kib(void) { return with_stack(512 << 10, 512 << 10); }
static int with_64_kib_for_now(void) { return with_stack(64 << 10, (rlim_t)8 << 20); }

#define LITTLE "builtin:sparse:examples=2000,valid=100"

static void a_stack_that_is_too_small_is_said_by_each_command(void **state) {
    (void)state;
    if (SANITIZED) SKIP("sanitizers need the stack before the program begins");
    program_prepare *const small[] = {with_64_kib, with_256_kib};
    for (size_t i = 0; i < 2; i++) {
        const char *const words = i == 0
                                      ? "the stack is limited to 64 KiB, and 512 are needed: raise the limit (ulimit -s 8192)"
                                      : "the stack is limited to 256 KiB, and 512 are needed";
        program_assert_refused(RUN_IN(small[i], "-w", "2", "-e", "1", LITTLE), 1, words);
        program_assert_refused(RUN_IN(small[i], "topo"), 1, words);
        program_assert_refused(RUN_IN(small[i], "ls"), 1, words);
        program_assert_refused(RUN_IN(small[i], "doctor"), 1, words);
        program_assert_refused(RUN_IN(small[i], "data", "info", LITTLE), 1, words);
        program_assert_refused(RUN_IN(small[i], "--help"), 1, words);
    }
}

static void a_stack_that_can_be_made_larger_is(void **state) {
    (void)state;
    if (SANITIZED) SKIP("sanitizers need the stack before the program begins");
    program_prepare *const enough[] = {with_64_kib_for_now, with_512_kib};
    for (size_t i = 0; i < 2; i++) {
        program_assert_status(RUN_IN(enough[i], "-w", "2", "-e", "1", "-o", "little.model", "--checkpoint", "little",
                                     "--checkpoint-every", "1", LITTLE),
                              0);
        program_assert_status(RUN_IN(enough[i], "-w", "2", "-t", "2", "--spawn", "threads", "-e", "1", LITTLE), 0);
        program_assert_status(RUN_IN(enough[i], "eval", "little.model", LITTLE), 0);
        program_assert_status(RUN_IN(enough[i], "compare", "-w", "2", "-e", "1", LITTLE), 0);
        program_assert_status(RUN_IN(enough[i], "data", "info", LITTLE), 0);
        program_assert_status(RUN_IN(enough[i], "topo", LITTLE), 0);
        program_drop_folder("little");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_stack_that_is_too_small_is_said_by_each_command),
        PROGRAM_TEST(a_stack_that_can_be_made_larger_is),
        PROGRAM_TEST(bad_data_is_refused_by_every_command_in_one_line),
        PROGRAM_TEST(labels_that_do_not_fit_are_refused_where_they_count),
        PROGRAM_TEST(more_workers_than_examples_is_no_error),
        PROGRAM_TEST(what_is_no_whole_model_is_refused),
        PROGRAM_TEST(a_cache_that_is_cut_anywhere_is_refused),
        PROGRAM_TEST(a_small_dev_shm_stops_named_runs_alone),
        PROGRAM_TEST(too_few_descriptors_are_named_with_the_limit),
        PROGRAM_TEST(a_file_that_may_not_grow_is_a_failed_write),
        PROGRAM_TEST(too_little_memory_is_said_in_one_line),
        PROGRAM_TEST(who_may_not_is_told_so),
        PROGRAM_TEST(stores_of_others_are_not_seen),
        PROGRAM_TEST(a_model_that_the_disk_has_no_room_for_is_saved_elsewhere),
        PROGRAM_TEST(predictions_that_the_disk_has_no_room_for_leave_the_old_ones),
        PROGRAM_TEST(every_command_says_that_nobody_takes_what_it_prints),
        PROGRAM_TEST(a_closed_stdin_matters_to_who_reads_it),
    };
    return cmocka_run_group_tests(tests, make_all, program_remove_folder);
}
