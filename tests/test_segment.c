/* Tests of making segments, also while the system fails at each step. Their memory comes from the real kernel; failures come
 * from the wrapped system calls below. */
#include "segment_help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Calls that the test makes fail (an errno; 0: the real call), and what was called. */
static struct {
    int memfd_create, ftruncate, seal, mmap;
    int old_kernel;          /* memfd_create refuses flags that it does not know */
    int fallocate;           /* what posix_fallocate returns ... */
    int fallocate_at;        /* ... in its call of this number, the first being 0 */
    uint64_t fallocate_most; /* a longer range is interrupted; 0: any goes */
    int fallocate_calls;
    unsigned memfd_flags;
    char order[256];
} sys;

static int fails(int code, const char *name) {
    if (strlen(sys.order) + strlen(name) + 2 < sizeof sys.order) strcat(strcat(sys.order, name), " ");
    if (code) errno = code;
    return code != 0;
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags) {
    if (sys.old_kernel && (flags & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING))) {
        errno = EINVAL;
        return -1;
    }
    sys.memfd_flags = flags;
    return fails(sys.memfd_create, "memfd_create") ? -1 : __real_memfd_create(name, flags);
}

int __real_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes);
int __wrap_ftruncate(int fd, off_t bytes) {
    if (sys.ftruncate == EINTR) {
        sys.ftruncate = 0;
        errno = EINTR;
        return -1;
    }
    return fails(sys.ftruncate, "ftruncate") ? -1 : __real_ftruncate(fd, bytes);
}

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    const int argument = command == F_ADD_SEALS ? va_arg(args, int) : 0;
    va_end(args);
    return command == F_ADD_SEALS && fails(sys.seal, "seal") ? -1 : __real_fcntl(fd, command, argument);
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off) {
    return fails(sys.mmap, "mmap") ? MAP_FAILED : __real_mmap(at, bytes, protection, flags, fd, off);
}

int __real_posix_fallocate(int fd, off_t off, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t off, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t off, off_t bytes) {
    const int call = sys.fallocate_calls++;
    if (call == 0) fails(0, "posix_fallocate");
    if (sys.fallocate && call == sys.fallocate_at) return sys.fallocate;
    if (sys.fallocate_most && (uint64_t)bytes > sys.fallocate_most) return EINTR;
    return __real_posix_fallocate(fd, off, bytes);
}

/* ---- helpers ---- */

static uint32_t mappings_named(const char *name) {
    FILE *f = fopen("/proc/self/maps", "re");
    assert_non_null(f);
    char line[1024];
    uint32_t n = 0;
    while (fgets(line, sizeof line, f)) n += strstr(line, name) != NULL;
    fclose(f);
    return n;
}

static int reset(void **state) {
    (void)state;
    memset(&sys, 0, sizeof sys);
    return 0;
}

/* create fails with this status and a sentence that holds `words`, and leaves nothing behind. */
static void expect_no_segment(uint64_t bytes, int status, const char *words) {
    struct shmt_segment segment = {.base = NULL, .bytes = 77, .fd = 77};
    struct shmt_error e = {0};
    const uint32_t before = descriptors();
    assert_int_equal(create("test", bytes, &segment, &e), status);
    assert_int_equal(e.status, status);
    if (!strstr(e.text, words)) fail_msg("\"%s\" is not in \"%s\"", words, e.text);
    assert_null(strchr(e.text, '\n'));
    assert_int_equal(segment.fd, 77); /* the out-parameter is set on success only */
    assert_int_equal(descriptors(), before);
    assert_int_equal(mappings_named("shmtrain-test"), 0);
    sys.fallocate_calls = 0;
    /* Without somebody who wants the sentence it ends the same way. */
    assert_int_equal(create("test", bytes, &segment, NULL), status);
    assert_int_equal(descriptors(), before);
}

/* ---- making ---- */

static void a_new_segment_is_zero_whole_pages_and_named(void **state) {
    (void)state;
    struct shmt_segment segment = make(5000);
    assert_int_equal(segment.bytes % PAGE, 0);
    assert_true(segment.bytes >= 5000 + SHMT_SEGMENT_HEADER_BYTES);
    const unsigned char *contents = shmt_segment_at(&segment, 0, 5000);
    for (uint32_t i = 0; i < 5000; i++) assert_int_equal(contents[i], 0);
    assert_int_equal(mappings_named("memfd:shmtrain-test"), 1);
    assert_int_equal(fcntl(segment.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    shmt_segment_detach(&segment);
    assert_int_equal(mappings_named("memfd:shmtrain-test"), 0);
}

static void every_page_is_placed_when_create_returns(void **state) {
    (void)state;
    struct shmt_segment segment = make(150 * MIB); /* more than two steps */
    assert_true(placed_bytes(&segment) >= segment.bytes);
    assert_int_equal(sys.fallocate_calls, 3);
    shmt_segment_detach(&segment);
}

static void each_step_of_making_protects_the_next(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    assert_string_equal(sys.order, "memfd_create ftruncate seal mmap posix_fallocate ");
    shmt_segment_detach(&segment);
}

static void nobody_can_resize_a_segment(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    assert_int_equal(ftruncate(segment.fd, (off_t)PAGE), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(ftruncate(segment.fd, (off_t)(segment.bytes + PAGE)), -1);
    assert_int_equal(fcntl(segment.fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
    assert_int_equal(errno, EPERM); /* not EBUSY: the set of seals is closed */
    shmt_segment_detach(&segment);
}

static void an_older_kernel_is_asked_for_less(void **state) {
    (void)state;
    sys.old_kernel = 1;
    struct shmt_segment segment = make(MIB);
    assert_int_equal(sys.memfd_flags, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    shmt_segment_detach(&segment);
}

static void a_failing_memfd_create_is_told(void **state) {
    (void)state;
    sys.memfd_create = EMFILE;
    expect_no_segment(MIB, SHMTRAIN_E_SYSTEM, "memfd_create): Too many open files");
}

static void a_failing_ftruncate_is_told(void **state) {
    (void)state;
    sys.ftruncate = EFBIG;
    expect_no_segment(MIB, SHMTRAIN_E_SYSTEM, "ftruncate): File too large");
}

static void an_interrupted_ftruncate_is_repeated(void **state) {
    (void)state;
    sys.ftruncate = EINTR;
    struct shmt_segment segment = make(MIB);
    shmt_segment_detach(&segment);
}

static void failing_seals_are_told(void **state) {
    (void)state;
    sys.seal = EPERM;
    expect_no_segment(MIB, SHMTRAIN_E_SYSTEM, "F_ADD_SEALS): Operation not permitted");
}

static void a_failing_mmap_is_told(void **state) {
    (void)state;
    sys.mmap = ENOMEM;
    expect_no_segment(MIB, SHMTRAIN_E_MEMORY, "cannot map 1.0 MiB of shared memory: Cannot allocate memory");
    sys.mmap = EAGAIN;
    expect_no_segment(MIB, SHMTRAIN_E_SYSTEM, ": Resource temporarily unavailable");
}

static void memory_that_ends_midway_is_told_with_figures(void **state) {
    (void)state;
    sys.fallocate = ENOSPC;
    sys.fallocate_at = 1;
    expect_no_segment(150 * MIB, SHMTRAIN_E_MEMORY,
                      "needs 150 MiB but the system gave only 64.0 MiB of it (No space left on device");
}

static void memory_that_ends_at_once_is_told_with_figures(void **state) {
    (void)state;
    sys.fallocate = ENOMEM;
    expect_no_segment(MIB, SHMTRAIN_E_MEMORY, "gave only 0 B of it (Cannot allocate memory; available: ");
}

static void a_failure_of_placing_that_is_not_memory_is_a_system_error(void **state) {
    (void)state;
    sys.fallocate = EIO;
    expect_no_segment(MIB, SHMTRAIN_E_SYSTEM, "(Input/output error");
}

static void interruptions_make_the_steps_shorter_and_do_not_hinder(void **state) {
    (void)state;
    sys.fallocate_most = MIB; /* as if a signal came during each longer step */
    struct shmt_segment segment = make(20 * MIB);
    assert_true(placed_bytes(&segment) >= segment.bytes);
    shmt_segment_detach(&segment);
}

static void a_need_beyond_the_machine_is_refused_before_anything_is_made(void **state) {
    (void)state;
    const uint64_t pib = (uint64_t)1 << 50;
    expect_no_segment(pib, SHMTRAIN_E_MEMORY, "a shared memory segment needs 1.0 PiB but the mem");
    assert_string_equal(sys.order, "");
}

static void a_size_that_no_file_can_have_is_refused(void **state) {
    (void)state;
    expect_no_segment(UINT64_MAX, SHMTRAIN_E_MEMORY, "cannot have 18446744073709551615 bytes");
    expect_no_segment(UINT64_MAX - SHMT_SEGMENT_HEADER_BYTES, SHMTRAIN_E_MEMORY, "cannot have");
    expect_no_segment(INT64_MAX, SHMTRAIN_E_MEMORY, "cannot have");
}

static int meets_address_limit(void *arg) {
    (void)arg;
    struct shmt_segment segment;
    struct shmt_error e = {0};
    unsigned long pages;
    FILE *f = fopen("/proc/self/statm", "re"); /* the limit is relative to what we have: a sanitizer has terabytes */
    if (!f || fscanf(f, "%lu", &pages) != 1) return 1;
    fclose(f);
    const struct rlimit limit = {pages * PAGE + 64 * MIB, pages * PAGE + 64 * MIB};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 2;
    const uint32_t before = descriptors();
    if (create("test", 128 * MIB, &segment, &e) != SHMTRAIN_E_MEMORY) return 3;
    if (!strstr(e.text, "cannot map 128 MiB of shared memory") || !strstr(e.text, "(ulimit -v)")) return 4;
    return descriptors() == before ? 0 : 5;
}

static void a_limited_address_space_is_told(void **state) {
    (void)state;
    assert_int_equal(in_child(meets_address_limit, NULL), 0);
}

static int meets_file_limit(void *arg) {
    (void)arg;
    struct shmt_segment segment;
    struct shmt_error e = {0};
    const struct rlimit limit = {MIB, MIB};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
    if (create("test", 8 * MIB, &segment, &e) != SHMTRAIN_E_MEMORY) return 2;
    if (!strstr(e.text, "files of this process are limited to 1.0 MiB: raise the limit (ulimit -f)")) return 3;
    return create("test", 512 * KIB, &segment, &e) == 0 ? 0 : 4;
}

static void a_limit_for_file_sizes_is_told_and_not_met_by_a_signal(void **state) {
    (void)state;
    assert_int_equal(in_child(meets_file_limit, NULL), 0);
}

static void detaching_twice_or_nothing_is_harmless(void **state) {
    (void)state;
    struct shmt_segment nothing = {0};
    shmt_segment_detach(&nothing);
    assert_true(fcntl(0, F_GETFD) >= 0 || errno == EBADF);
    struct shmt_segment segment = make(MIB);
    const int fd = segment.fd;
    shmt_segment_detach(&segment);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    const int other = open("/dev/null", O_RDONLY | O_CLOEXEC); /* gets the same number */
    shmt_segment_detach(&segment);
    assert_true(fcntl(other, F_GETFD) >= 0);
    close(other);
}

static void detaching_a_zero_filled_handle_leaves_descriptor_zero(void **state) {
    (void)state;
    int saved = dup(0), zero = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(dup2(zero, 0) == 0);
    struct shmt_segment nothing = {0};
    shmt_segment_detach(&nothing);
    assert_true(fcntl(0, F_GETFD) >= 0);
    if (saved >= 0) {
        dup2(saved, 0);
        close(saved);
    }
    close(zero);
}

#define FRESH(test) cmocka_unit_test_setup(test, reset)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(a_new_segment_is_zero_whole_pages_and_named),
        FRESH(every_page_is_placed_when_create_returns),
        FRESH(each_step_of_making_protects_the_next),
        FRESH(nobody_can_resize_a_segment),
        FRESH(an_older_kernel_is_asked_for_less),
        FRESH(a_failing_memfd_create_is_told),
        FRESH(a_failing_ftruncate_is_told),
        FRESH(an_interrupted_ftruncate_is_repeated),
        FRESH(failing_seals_are_told),
        FRESH(a_failing_mmap_is_told),
        FRESH(memory_that_ends_midway_is_told_with_figures),
        FRESH(memory_that_ends_at_once_is_told_with_figures),
        FRESH(a_failure_of_placing_that_is_not_memory_is_a_system_error),
        FRESH(interruptions_make_the_steps_shorter_and_do_not_hinder),
        FRESH(a_need_beyond_the_machine_is_refused_before_anything_is_made),
        FRESH(a_size_that_no_file_can_have_is_refused),
        FRESH(a_limited_address_space_is_told),
        FRESH(a_limit_for_file_sizes_is_told_and_not_met_by_a_signal),
        FRESH(detaching_twice_or_nothing_is_harmless),
        FRESH(detaching_a_zero_filled_handle_leaves_descriptor_zero),
    };
    alarm(240);
    return cmocka_run_group_tests_name("segment", tests, NULL, NULL);
}
