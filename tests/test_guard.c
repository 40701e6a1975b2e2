/* Tests of guards of files (base/guard.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/guard.h"

/* Asking only once in a tick finds out all the same, long before the writer is let in. */
static void who_asks_often_hears_of_a_writer_within_some_ticks(void **state) {
    const char *folder = getenv("TMPDIR");
    char path[400];
    uint64_t asked_ns = 0;
    bool held = true;
    (void)state;
    snprintf(path, sizeof path, "%s/shmtrain-guard-XXXXXX", folder ? folder : "/tmp");
    const int made = mkstemp(path);
    assert_true(made >= 0);
    close(made);
    const int fd = open(path, O_RDONLY);
    if (!shmt_guard_take(fd)) {
        print_message("skipped: this file system has no leases\n");
        close(fd);
        unlink(path);
        skip();
    }
    for (int i = 0; i < 1000; i++) assert_true(shmt_guard_held_lately(fd, &asked_ns));
    assert_true(asked_ns > 0);
    assert_int_equal(open(path, O_WRONLY | O_NONBLOCK), -1); /* it does not wait, but the lease is broken */
    assert_int_equal(errno, EWOULDBLOCK);
    for (int i = 0; i < 1000 && held; i++) {
        (void)nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
        held = shmt_guard_held_lately(fd, &asked_ns);
    }
    assert_false(held);
    assert_false(shmt_guard_held_lately(fd, &asked_ns)); /* and goes on to */
    shmt_guard_release(fd);
    close(fd);
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_asks_often_hears_of_a_writer_within_some_ticks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
