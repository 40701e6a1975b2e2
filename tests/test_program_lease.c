/* The real program where a cache is rewritten in place while a worker has been stopped for longer than its lease holds a writer:
 * nothing is computed with what nobody has checked. Shorter stops, and everything else about caches: test_program_data.c. */
#include "run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/guard.h"
#include "skip.h"

#define BREAK_TIME "/proc/sys/fs/lease-break-time"

static unsigned lease_seconds(void) {
    unsigned seconds = 0;
    FILE *f = fopen(BREAK_TIME, "r");
    if (!f) return 0;
    if (fscanf(f, "%u", &seconds) != 1) seconds = 0;
    fclose(f);
    return seconds;
}

static bool let_leases_hold_for(unsigned seconds) {
    FILE *f = fopen(BREAK_TIME, "w");
    if (!f) return false;
    fprintf(f, "%u\n", seconds);
    return fclose(f) == 0 && lease_seconds() == seconds;
}

static bool has_leases(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool has = fd >= 0 && shmt_guard_take(fd);
    close(fd);
    return has;
}

/* From this moment on, the lease of this file holds writers for one second; those of others for as long as before. */
static bool begin_to_break(const char *path) {
    const unsigned usual = lease_seconds();
    if (!let_leases_hold_for(1)) return false;
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC), code = errno;
    assert_true(let_leases_hold_for(usual));
    assert_int_equal(fd, -1);
    assert_int_equal(code, EWOULDBLOCK);
    return true;
}

/* Ids beyond all columns, in the middle of the file. Opening it waits for the lease. */
static void fill_with_garbage(const char *path) {
    static const unsigned char GARBAGE[4096] = {[0 ... 4095] = 0xff};
    struct stat s;
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &s) == 0);
    for (off_t at = s.st_size / 4; at < s.st_size * 3 / 4; at += 4096) assert_int_equal(pwrite(fd, GARBAGE, 4096, at), 4096);
    close(fd);
}

/* A long item, so that it is stopped within one. */
static void a_worker_that_goes_on_behind_a_change_ends_at_once(void **state) {
    static const char *const MODES[] = {"hogwild", "sync"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        program_assert_status(RUN("data", "convert", "builtin:sparse:examples=60000", "-o", "c.shmcache"), 0);
        if (!has_leases("c.shmcache")) SKIP("this file system has no leases, so caches are copied");
        struct program *p = START("-w", "1", "--mode", MODES[i], i ? "--batch" : "--item", "60000", "-e", "1000000", "-o",
                                  "u.model", "c.shmcache");
        program_wait_for_epoch(p);
        const pid_t worker = program_worker(p, 0);
        assert_int_equal(kill(worker, SIGSTOP), 0);
        if (!begin_to_break("c.shmcache")) SKIP("only root may say how long leases hold");
        fill_with_garbage("c.shmcache");
        assert_int_equal(kill(worker, SIGCONT), 0);
        program_finish(p);
        program_assert_status(p, 1);
        assert_string_equal(p->text[ERR], "shmtrain: c.shmcache" SHMT_GUARD_BROKEN "\n");
        assert_int_equal(access("u.model", F_OK), -1);
        program_end_all(state);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_worker_that_goes_on_behind_a_change_ends_at_once),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
