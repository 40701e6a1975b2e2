/* The real program from outside: packed data, standard input, pipes, several files, bad lines. */
#include "run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#ifndef SHMT_ARCHIVE_LIBRARY
#    define SHMT_ARCHIVE_LIBRARY "libarchive.so.13"
#endif
#define RUN_OPTIONS "-w", "8", "-e", "2", "--mode", "sync"

static char g_hash[17]; /* of a run on t.svm */

static void write_rows(const char *name, int first, int n) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    for (int i = first; i < first + n; i++)
        fprintf(f, "%d %d:%g %d:1\n", i * 7 % 3 == 0 ? 1 : -1, 1 + i % 90, 0.1 * (1 + i % 11), 100 + i % 60);
    assert_int_equal(fclose(f), 0);
}

static bool shell(const char *command) {
    struct program *p = program_run(NULL, (const char *const[]){"sh", "-c", command, NULL});
    return p->status == 0;
}

static int make_all(void **state) {
    if (program_make_folder(state) < 0) return -1;
    write_rows("t.svm", 0, 30000);
    write_rows("a.svm", 0, 10000);
    write_rows("b.svm", 10000, 15000);
    write_rows("c.svm", 25000, 5000);
    HASH(g_hash, RUN_OPTIONS, "t.svm");
    return program_end_all(state);
}

/* ---- what standard input is ---- */

static const char *g_given; /* the file that comes through a pipe */

/* A process of its own writes what is in the file into the pipe. */
static int from_a_pipe(void) {
    int fd[2];
    char block[4096];
    ssize_t n;
    if (pipe(fd) != 0) return -1;
    const pid_t pid = fork();
    if (pid < 0) return -1;
    if (pid > 0) return dup2(fd[0], STDIN_FILENO) < 0 || close(fd[0]) || close(fd[1]) ? -1 : 0;
    const int file = open(g_given, O_RDONLY);
    close(fd[0]);
    while (file >= 0 && (n = read(file, block, sizeof block)) > 0)
        if (write(fd[1], block, (size_t)n) != n) break;
    _exit(0);
}

static int from_the_file(void) {
    const int fd = open(g_given, O_RDONLY);
    return fd < 0 || dup2(fd, STDIN_FILENO) < 0 || close(fd) ? -1 : 0;
}

/* A line of it was read by somebody else. */
static int from_the_middle_of_the_file(void) { return from_the_file() || lseek(STDIN_FILENO, 9, SEEK_SET) < 0 ? -1 : 0; }

static int from_a_silent_pipe(void) {
    int fd[2];
    return pipe(fd) != 0 || dup2(fd[0], STDIN_FILENO) < 0 ? -1 : 0; /* fd[1] stays open: there may be more */
}

static void assert_same_hash(program_prepare *prepare, const char *data) {
    const char *const argv[] = {"shmtrain", "--json", "--quiet", RUN_OPTIONS, data, NULL};
    struct program *p = program_run(prepare, argv);
    program_assert_status(p, 0);
    json_t *json = program_json(p);
    assert_string_equal(json_string_value(json_object_get(json, "parameters_xxh64")), g_hash);
    json_decref(json);
}

/* ---- tests ---- */

static void packed_files_give_the_same_bits(void **state) {
    (void)state;
    static const char *const TOOLS[] = {"gzip", "bzip2", "xz", "zstd -q", "lz4 -q"};
    char command[80], hash[17];
    int n = 0;
    for (size_t i = 0; i < sizeof TOOLS / sizeof *TOOLS; i++) {
        snprintf(command, sizeof command, "%s -c < t.svm > t.packed 2>/dev/null", TOOLS[i]);
        if (!shell(command)) continue;
        n++;
        HASH(hash, RUN_OPTIONS, "t.packed");
        assert_string_equal(hash, g_hash);
        HASH(hash, "-w", "1", "-e", "2", "--mode", "sync", "t.packed");
        assert_string_equal(hash, g_hash);
    }
    assert_true(n > 0); /* gzip is everywhere */
}

static void standard_input_gives_the_same_bits(void **state) {
    (void)state;
    assert_true(shell("gzip -c < t.svm > t.packed"));
    g_given = "t.svm";
    assert_same_hash(from_a_pipe, "-");
    assert_same_hash(from_a_pipe, "/dev/stdin");
    assert_same_hash(from_the_file, "-");
    g_given = "t.packed";
    assert_same_hash(from_a_pipe, "-");
    assert_same_hash(from_the_file, "-");
}

static void what_was_read_of_standard_input_is_not_read_again(void **state) {
    (void)state;
    program_write_file("lines", "a header\n1 1:1\n-1 2:1\n");
    g_given = "lines";
    struct program *p = RUN_IN(from_the_middle_of_the_file, "data", "info", "--json", "-");
    program_assert_status(p, 0);
    json_t *json = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(json, "examples")), 2);
    assert_string_equal(json_string_value(json_object_get(json, "data")), "standard input");
    json_decref(json);
}

static void a_fifo_gives_the_same_bits(void **state) {
    (void)state;
    char hash[17];
    assert_int_equal(mkfifo("fifo", 0600), 0);
    program_start(NULL, (const char *const[]){"sh", "-c", "cat t.svm > fifo", NULL});
    HASH(hash, RUN_OPTIONS, "-o", "model", "fifo");
    assert_string_equal(hash, g_hash);
    unlink("fifo");
}

static void several_files_give_the_same_bits(void **state) {
    (void)state;
    char hash[17];
    assert_true(shell("gzip -c < b.svm > b.svm.gz"));
    HASH(hash, RUN_OPTIONS, "a.svm", "b.svm.gz", "c.svm");
    assert_string_equal(hash, g_hash);
    HASH(hash, "train", "a.svm", RUN_OPTIONS, "b.svm", "c.svm");
    assert_string_equal(hash, g_hash);
    g_given = "b.svm";
    struct program *p = RUN_IN(from_a_pipe, RUN_OPTIONS, "a.svm", "-", "c.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "data        3 files (a.svm, standard input, ...)"));
    assert_non_null(strstr(p->text[OUT], g_hash));
}

/* A file that is no library lies where the system looks first. */
static int hide_libarchive(void) { return setenv("LD_LIBRARY_PATH", "no-library", 1); }

static void plain_files_need_no_libarchive(void **state) {
    (void)state;
    assert_true(shell("mkdir -p no-library && : > no-library/" SHMT_ARCHIVE_LIBRARY " && gzip -c < a.svm > a.svm.gz"));
    struct program *p = RUN_IN(hide_libarchive, RUN_OPTIONS, "t.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], g_hash));
    program_assert_refused(RUN_IN(hide_libarchive, RUN_OPTIONS, "a.svm.gz"), 1,
                           "packed files need libarchive, which cannot be loaded");
    assert_true(shell("rm -r no-library a.svm.gz"));
}

static void several_files_are_looked_at_and_converted(void **state) {
    (void)state;
    char hash[17];
    struct program *p = RUN("data", "info", "--json", "a.svm", "b.svm", "c.svm");
    program_assert_status(p, 0);
    json_t *json = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(json, "examples")), 30000);
    assert_string_equal(json_string_value(json_object_get(json, "data")), "3 files (a.svm, b.svm, ...)");
    json_decref(json);
    program_assert_status(RUN("data", "convert", "a.svm", "b.svm", "c.svm", "-o", "all.shmcache"), 0);
    HASH(hash, RUN_OPTIONS, "all.shmcache");
    assert_string_equal(hash, g_hash);
    assert_true(unlink("all.shmcache") == 0);
}

/* Of files to validate on all count, of other values the last. */
static void validation_takes_several_files(void **state) {
    (void)state;
    static const struct {
        const char *one, *two;
        int examples;
    } VALID[] = {{"a.svm", "c.svm", 15000}, {"a.svm", "none", 0}, {"0.5", "c.svm", 5000}};
    for (size_t i = 0; i < sizeof VALID / sizeof *VALID; i++) {
        struct program *p = RUN("-q", "--json", "-e", "1", "b.svm", "--valid", VALID[i].one, "--valid", VALID[i].two);
        program_assert_status(p, 0);
        json_t *json = program_json(p);
        const json_t *valid = json_object_get(json, "valid");
        assert_int_equal(json_integer_value(json_object_get(valid, "examples")), VALID[i].examples);
        json_decref(json);
    }
}

static void what_cannot_be_read_is_refused_in_one_line(void **state) {
    (void)state;
    assert_true(shell("gzip -c < t.svm | head -c 20000 > cut.gz"));
    const struct refusal list[] = {
        {1, "cut.gz is damaged: unpacking failed after byte", {"cut.gz"}},
        {1, "cannot open missing: No such file or directory", {"a.svm", "missing"}},
        {2, "folder is a folder", {"a.svm", "folder"}},
        {2, "builtin:line is generated, but only text files can be combined: use this file alone", {"a.svm", "builtin:line"}},
        {2, "one of 2 files has no name", {"a.svm", ""}},
        {2, "compare reads its data once for each mode, and standard input can be read once only", {"compare", "-"}},
    };
    assert_int_equal(mkdir("folder", 0777), 0);
    ASSERT_ALL_REFUSED(list);
    assert_int_equal(rmdir("folder"), 0);
    g_given = "/dev/null";
    program_assert_refused(RUN_IN(from_a_pipe, "-"), 1, "standard input is empty");
    g_given = "t.svm";
    program_assert_refused(RUN_IN(from_a_pipe, "-", "--valid", "-"), 2,
                           "standard input is both the data and --valid, but can be read only once");
}

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The limit says that somebody looks; how soon depends on the machine. */
static void an_interrupt_ends_waiting_for_input(void **state) {
    (void)state;
    struct program *p = START_IN(from_a_silent_pipe, "-w", "2", "-");
    program_wait_for_readers(p);
    const double begun = now_s();
    assert_int_equal(kill(p->pid, SIGINT), 0);
    program_finish(p);
    print_message("stopped after %.3f s\n", now_s() - begun);
    assert_int_equal(p->status, 130);
    assert_non_null(strstr(p->text[ERR], "stopped while reading data"));
}

static void bad_lines_are_skipped_when_that_is_asked_for(void **state) {
    (void)state;
    char hash[17];
    assert_true(shell("(head -n 100 t.svm; echo '1 5:x'; tail -n +101 t.svm; echo bad) > bad.svm"));
    program_assert_refused(RUN("bad.svm"), 1, "bad.svm:101:5: expected a number after \"5:\", found \"x\"");
    struct program *p = RUN("--json", "--skip-bad-lines", RUN_OPTIONS, "bad.svm", "--valid", "bad.svm");
    program_assert_status(p, 0);
    const char *said =
        "skipped 2 bad lines of bad.svm; the first: bad.svm:101:5: expected a number after \"5:\", found \"x\"\n";
    const char *first = strstr(p->text[ERR], said);
    assert_non_null(first);
    assert_non_null(strstr(first + 1, said)); /* of validation */
    assert_null(strstr(strstr(first + 1, said) + 1, said));
    json_t *json = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "dataset"), "skipped_lines")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(json, "valid"), "skipped_lines")), 2);
    json_decref(json);
    HASH(hash, "--skip-bad-lines", RUN_OPTIONS, "bad.svm", "-o", "model");
    assert_string_equal(hash, g_hash);
    p = RUN("eval", "--skip-bad-lines", "--json", "model", "bad.svm");
    program_assert_status(p, 0);
    json = program_json(p);
    assert_int_equal(json_integer_value(json_object_get(json, "skipped_lines")), 2);
    json_decref(json);
    p = RUN("data", "info", "--skip-bad-lines", "bad.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "left out    2 bad lines\n"));
    program_write_file("worse.svm", "x\ny\n");
    program_assert_refused(RUN("--skip-bad-lines", "worse.svm"), 1,
                           "all lines of worse.svm are bad; the first: worse.svm:1:1: ");
}

static void a_cache_is_kept_only_of_one_whole_file(void **state) {
    (void)state;
    struct program *p = RUN("-e", "1", "--cache", "a.svm", "b.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR],
                           "--cache has no effect on 2 files (a.svm, b.svm): a cache is kept beside a single file; use "
                           "shmtrain data convert to make one\n"));
    p = RUN("-e", "1", "--cache", "--skip-bad-lines", "a.svm");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "--cache has no effect with --skip-bad-lines"));
    assert_int_not_equal(access("a.svm.shmcache", F_OK), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(packed_files_give_the_same_bits),
        PROGRAM_TEST(plain_files_need_no_libarchive),
        PROGRAM_TEST(standard_input_gives_the_same_bits),
        PROGRAM_TEST(what_was_read_of_standard_input_is_not_read_again),
        PROGRAM_TEST(a_fifo_gives_the_same_bits),
        PROGRAM_TEST(several_files_give_the_same_bits),
        PROGRAM_TEST(several_files_are_looked_at_and_converted),
        PROGRAM_TEST(validation_takes_several_files),
        PROGRAM_TEST(what_cannot_be_read_is_refused_in_one_line),
        PROGRAM_TEST(an_interrupt_ends_waiting_for_input),
        PROGRAM_TEST(bad_lines_are_skipped_when_that_is_asked_for),
        PROGRAM_TEST(a_cache_is_kept_only_of_one_whole_file),
    };
    return cmocka_run_group_tests_name("program input", tests, make_all, program_remove_folder);
}
