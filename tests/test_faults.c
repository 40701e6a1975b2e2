/* Tests of what a worker's process says of mapped files: those that became shorter, where several of its threads find out at one
 * time, and those that may have been changed while it was stopped. */
#include "runtime/team.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/guard.h"
#include "base/mapped.h"
#include "skip.h"

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
    shmt_mapped_note(base, BYTES, name);
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

static int run_one(shmt_team_body *body, void *arg, const struct shmt_guarded *guarded, struct shmt_error *e) {
    struct shmt_team_spec spec = {.kind = &SHMT_TEAM_PROCESSES,
                                  .n = 1,
                                  .body = body,
                                  .arg = arg,
                                  .abort = &abort_word,
                                  .grace_ms = 60000,
                                  .what = "testing"};
    if (guarded) spec.guarded[1] = *guarded;
    *e = (struct shmt_error){0};
    store_relaxed(&abort_word, 0);
    alarm(60); /* kills the test if nobody ends */
    const int rc = shmt_team_run(&spec, e);
    alarm(0);
    return rc;
}

static void the_first_thread_that_finds_a_file_shorter_has_the_word(void **state) {
    (void)state;
    struct shmt_error e;
    assert_int_equal(run_one(lose_two_files, NULL, NULL, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "first.cache" SHMT_MAPPED_SHORTER));
    assert_null(strstr(e.text, "second"));
}

struct file {
    char path[32];
    int fd;
};

/* False: there are no guards here. */
static bool make_guarded(struct file *file) {
    snprintf(file->path, sizeof file->path, "/tmp/shmtrain-faults.XXXXXX");
    close(mkstemp(file->path));
    file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
    return file->fd >= 0 && shmt_guard_take(file->fd);
}

/* As a writer does who would not wait. */
static void ask_to_write(const struct file *file) {
    if (open(file->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) >= 0 || errno != EWOULDBLOCK) abort();
}

static void remove_file(struct file *file) {
    close(file->fd);
    unlink(file->path);
}

static int go_on_behind_a_stop(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    (void)rank;
    (void)team;
    (void)e;
    ask_to_write(arg);
    if (raise(SIGCONT) != 0) abort();
    return 0;
}

static void who_was_stopped_goes_on_unless_a_file_of_its_own_may_have_changed(void **state) {
    (void)state;
    struct file own, other;
    struct shmt_error e;
    const bool own_guarded = make_guarded(&own), guarded = make_guarded(&other) && own_guarded;
    const struct shmt_guarded owns = {own.path, own.fd};
    const int behind_other = guarded ? run_one(go_on_behind_a_stop, &other, &owns, &e) : 0;
    const int behind_own = guarded ? run_one(go_on_behind_a_stop, &own, &owns, &e) : 0;
    remove_file(&own);
    remove_file(&other);
    if (!guarded) SKIP("this file system has no leases: /tmp");
    assert_int_equal(behind_other, 0);
    assert_int_equal(behind_own, SHMTRAIN_E_DATA);
    assert_true(strncmp(e.text, own.path, strlen(own.path)) == 0 && strstr(e.text, SHMT_GUARD_BROKEN));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_thread_that_finds_a_file_shorter_has_the_word),
                                       cmocka_unit_test(who_was_stopped_goes_on_unless_a_file_of_its_own_may_have_changed)};
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
