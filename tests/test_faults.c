/* Tests of what a worker's process says of mapped files that became shorter, where several of its threads find out at one time. */
#include "runtime/team.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/mapped.h"

#define BYTES 4096

static _Atomic uint32_t abort_word;
static _Atomic uint32_t leaving; /* 1: the thread that was first has written its sentence, and ends the process soon */
static bool in_worker;

_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);

_Noreturn void __wrap__exit(int status) {
    if (in_worker && take_relaxed(&leaving, 1) == 0) usleep(200000); /* the other one is in its handler meanwhile */
    __real__exit(status);
}

/* A mapping without a byte of its file behind it. */
static const volatile char *map_lost(const char *name) {
    const int fd = memfd_create(name, MFD_CLOEXEC);
    const char *base = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || base == MAP_FAILED) abort();
    shmt_mapped_note(base, BYTES, name, -1);
    return base;
}

static void *read_second(void *arg) {
    const volatile char *second = arg;
    while (load_relaxed(&leaving) == 0) usleep(1000);
    return second[0] ? arg : NULL;
}

static int lose_two_files(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    (void)arg;
    (void)rank;
    (void)team;
    (void)e;
    pthread_t thread;
    const volatile char *first = map_lost("first.cache"), *second = map_lost("second.cache and more");
    in_worker = true;
    if (pthread_create(&thread, NULL, read_second, (void *)(uintptr_t)second) != 0) abort();
    return first[0];
}

static void the_first_thread_that_finds_a_file_shorter_has_the_word(void **state) {
    (void)state;
    const struct shmt_team_spec spec = {.kind = SHMT_TEAM_PROCESSES,
                                        .n = 1,
                                        .body = lose_two_files,
                                        .abort = &abort_word,
                                        .grace_ms = 60000,
                                        .what = "testing"};
    struct shmt_team *team;
    struct shmt_error e = {0};
    alarm(60); /* kills the test if nobody ends */
    assert_int_equal(shmt_team_start(&spec, &team, &e), 0);
    assert_int_equal(shmt_team_finish(team, &e), SHMTRAIN_E_DATA);
    alarm(0);
    assert_non_null(strstr(e.text, "first.cache" SHMT_MAPPED_SHORTER));
    assert_null(strstr(e.text, "second"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_thread_that_finds_a_file_shorter_has_the_word)};
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
