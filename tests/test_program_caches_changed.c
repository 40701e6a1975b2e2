/* The real program from outside: caches that other programs change while runs use them. */
#include "caches_help.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum change { CUT_OFF, REWRITE, REPLACE_CONTENTS, N_CHANGES };

/* By a process of its own: it waits until nobody uses the file any more. Ids beyond all columns, and rows beyond all ids. */
static pid_t change_cache(const char *path, enum change change) {
    static const unsigned char GARBAGE[4096] = {[0 ... 4095] = 0xfe};
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    struct stat s;
    const int fd = change == CUT_OFF ? -1 : open(path, O_WRONLY | O_CLOEXEC | (change == REPLACE_CONTENTS ? O_TRUNC : 0));
    if (change == CUT_OFF) _exit(truncate(path, 4096) == 0 ? 0 : 1);
    if (fd < 0 || fstat(fd, &s) < 0) _exit(1);
    const off_t end = change == REPLACE_CONTENTS ? 1 << 20 : s.st_size;
    for (off_t at = 4096; at < end; at += 4096)
        if (pwrite(fd, GARBAGE, 4096, at) != 4096) _exit(2);
    _exit(0);
}

static void assert_changed(pid_t writer) {
    int status = -1;
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
}

/* The run has ended while the file was as it had been checked, and has saved nothing; then the writer was let in. */
static void assert_ended_by(pid_t writer, struct program *p, const char *file) {
    char said[200];
    snprintf(
        said, sizeof said,
        "shmtrain: %s was opened for writing while in use, and changing data cannot be used: try again when the writer has "
        "finished\n",
        file);
    assert_changed(writer);
    program_assert_status(p, 1);
    assert_string_equal(p->text[ERR], said);
    assert_int_equal(access("u.model", F_OK), -1);
}

/* Leases, by which a run notices: not every file system has them, and there caches are read into memory. */
static bool can_guard(void) {
    convert("t.svm", "u.cache");
    const int fd = open("u.cache", O_RDONLY | O_CLOEXEC);
    const bool can = fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_RDLCK) == 0;
    close(fd);
    return can;
}

/* It is mapped: workers who train would read whatever their owner writes. */
static void a_cache_that_changes_while_it_is_used_ends_the_run_with_a_sentence(void **state) {
    static const char *const SPAWN[] = {"processes", "threads"};
    (void)state;
    if (!can_guard()) SKIP("this file system has no leases, so caches are copied");
    for (int i = 0; i < 2 * N_CHANGES; i++) {
        convert("t.svm", "u.cache");
        struct program *p = START("-w", "2", "-e", "1000000", "--spawn", SPAWN[i % 2], "-o", "u.model", "u.cache");
        program_wait_for_epoch(p);
        const pid_t writer = change_cache("u.cache", (enum change)(i / 2));
        program_finish(p);
        assert_ended_by(writer, p, "u.cache");
        program_end_all(state);
    }
}

/* The same for validation data, which is read when an epoch has ended. Of so few columns that they stand as they are given. */
static void validation_data_that_changes_does_likewise(void **state) {
#define FEW "builtin:sparse:features=500,nonzeros=20,examples="
    (void)state;
    if (!can_guard()) SKIP("this file system has no leases, so caches are copied");
    convert(FEW "3000", "w.cache");
    for (int change = 0; change < N_CHANGES; change++) {
        convert(FEW "2000", "v.cache");
        struct program *p = START("-w", "2", "-e", "1000000", "-o", "u.model", "--valid", "v.cache", "w.cache");
        program_wait_for_epoch(p);
        const pid_t writer = change_cache("v.cache", (enum change)change);
        program_finish(p);
        assert_ended_by(writer, p, "v.cache");
        program_end_all(state);
    }
}

/* What somebody has open for writing already, or was made with permissions that let others write, is copied: it may change then. */
static void a_cache_that_may_change_is_copied(void **state) {
    char good[17], hash[17];
    (void)state;
    for (int i = 0; i < 2; i++) {
        convert("t.svm", "u.cache");
        HASH(good, "-w", "1", "-e", "40", "u.cache");
        if (i == 1) assert_int_equal(chmod("u.cache", 0666), 0);
        const int fd = open("u.cache", O_RDWR | O_CLOEXEC);
        struct stat s;
        assert_true(fd >= 0 && fstat(fd, &s) == 0);
        struct program *p = START("--json", "-w", "1", "-e", "40", "--slow", "0:+1ms", "--progress", "plain", "u.cache");
        const struct timespec some = {.tv_nsec = 300000000};
        nanosleep(&some, NULL);
        static const unsigned char GARBAGE[4096] = {[0 ... 4095] = 0xfe};
        const bool runs = program_state(p->pid) != 'Z';
        for (off_t at = 4096; at < s.st_size; at += 4096) assert_int_equal(pwrite(fd, GARBAGE, 4096, at), 4096);
        close(fd);
        program_finish(p);
        if (p->status == 1) /* it was read when it was changed */
            assert_non_null(strstr(p->text[ERR], "u.cache"));
        else
            program_assert_status(p, 0);
        json_t *o = p->status == 0 ? program_json(p) : NULL;
        snprintf(hash, sizeof hash, "%s", o ? json_string_value(json_object_get(o, "parameters_xxh64")) : good);
        json_decref(o);
        assert_string_equal(hash, good);
        print_message("changed while it ran: %s; ended with %d\n", runs ? "yes" : "no", p->status);
        program_end_all(state);
    }
}

/* One that is replaced, as our own commands do, is no change: who has the old file keeps it. */
static void a_cache_that_is_replaced_is_not_disturbed(void **state) {
    char good[17], hash[17];
    (void)state;
    convert("t.svm", "u.cache");
    HASH(good, "-w", "1", "-e", "40", "u.cache");
    struct program *p = START("--json", "-w", "1", "-e", "40", "--slow", "0:+1ms", "u.cache");
    const struct timespec some = {.tv_nsec = 200000000};
    nanosleep(&some, NULL);
    struct program *other = RUN("data", "convert", "t.svm", "-o", "u.cache");
    program_assert_status(other, 0);
    program_finish(p);
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    snprintf(hash, sizeof hash, "%s", json_string_value(json_object_get(o, "parameters_xxh64")));
    json_decref(o);
    assert_string_equal(hash, good);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_cache_that_changes_while_it_is_used_ends_the_run_with_a_sentence),
        PROGRAM_TEST(validation_data_that_changes_does_likewise),
        PROGRAM_TEST(a_cache_that_may_change_is_copied),
        PROGRAM_TEST(a_cache_that_is_replaced_is_not_disturbed),
    };
    program_forget_options();
    return cmocka_run_group_tests_name("caches that change", tests, make_all, program_remove_folder);
}
