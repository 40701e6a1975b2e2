/* Tests of ranges inside a segment: addresses, populating, punching, and layouts. */
#include "segment_help.h"

#include "base/line.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* What the test makes the system refuse (an errno; 0: nothing), and how often it was asked. */
static struct {
    int madvise, punch;
    int madvise_calls, punch_calls;
} sys;

int __real_fallocate(int fd, int mode, off_t off, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t off, off_t bytes);
int __wrap_fallocate(int fd, int mode, off_t off, off_t bytes) {
    sys.punch_calls++;
    if (sys.punch) {
        errno = sys.punch;
        if (sys.punch == EINTR) sys.punch = 0;
        return -1;
    }
    return __real_fallocate(fd, mode, off, bytes);
}

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice) {
    sys.madvise_calls++;
    if (sys.madvise) {
        errno = sys.madvise;
        return -1;
    }
    return __real_madvise(at, bytes, advice);
}

static int reset(void **state) {
    (void)state;
    memset(&sys, 0, sizeof sys);
    return 0;
}

static uint64_t faults(void) {
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (uint64_t)use.ru_minflt;
}

/* ---- pages ---- */

static void only_ranges_inside_have_an_address(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const uint64_t contents = segment.bytes - SHMT_SEGMENT_HEADER_BYTES;
    assert_ptr_equal(shmt_segment_at(&segment, 0, contents), segment.base + SHMT_SEGMENT_HEADER_BYTES);
    assert_ptr_equal(shmt_segment_at(&segment, contents - 1, 1), segment.base + segment.bytes - 1);
    assert_non_null(shmt_segment_at(&segment, contents, 0));
    assert_null(shmt_segment_at(&segment, contents, 1));
    assert_null(shmt_segment_at(&segment, 0, contents + 1));
    assert_null(shmt_segment_at(&segment, contents + 1, 0));
    assert_null(shmt_segment_at(&segment, UINT64_MAX, 2));
    assert_null(shmt_segment_at(&segment, 2, UINT64_MAX));
    shmt_segment_detach(&segment);
    assert_null(shmt_segment_at(&segment, 0, 0));
}

/* Page faults of writing one byte into each page of the contents. */
static uint64_t faults_of_a_pass(struct shmt_segment *segment, uint64_t bytes) {
    volatile unsigned char *contents = shmt_segment_at(segment, 0, bytes);
    const uint64_t before = faults();
    for (uint64_t i = 0; i < bytes; i += PAGE) contents[i]++;
    return faults() - before;
}

static void expect_populated(int write) {
    const uint64_t bytes = 4 * MIB, n_pages = bytes / PAGE;
    struct shmt_segment segment = make(bytes), other;
    unsigned char *contents = shmt_segment_at(&segment, 0, bytes);
    memset(contents, 5, bytes);
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, &other, NULL), 0);
    shmt_segment_populate(&other, 0, bytes, write);
    assert_true(faults_of_a_pass(&other, bytes) < n_pages / 4); /* a sanitizer's own memory may fault */
    for (uint64_t i = 0; i < bytes; i++) assert_int_equal(contents[i], i % PAGE == 0 ? 6 : 5);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

static void a_pass_over_pages_that_are_not_populated_meets_faults(void **state) {
    (void)state;
    struct shmt_segment segment = make(4 * MIB);
    assert_true(faults_of_a_pass(&segment, 4 * MIB) >= 4 * MIB / PAGE / 2); /* or the next test could not fail */
    shmt_segment_detach(&segment);
}

static void a_pass_over_populated_pages_meets_no_faults(void **state) {
    (void)state;
    expect_populated(1);
}

static void without_the_kernels_help_pages_are_populated_by_touching(void **state) {
    (void)state;
    sys.madvise = EINVAL;
    expect_populated(1);
    assert_int_equal(sys.madvise_calls, 1);
}

static void populating_what_is_not_inside_or_refused_is_harmless(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    shmt_segment_populate(&segment, 0, 0, 1);
    shmt_segment_populate(&segment, 0, UINT64_MAX, 1);
    shmt_segment_populate(&segment, 2 * MIB, 1, 1);
    sys.madvise = EPERM;
    shmt_segment_populate(&segment, 5, 1000, 0);
    shmt_segment_detach(&segment);
    shmt_segment_populate(&segment, 0, 1, 1);
}

static void punching_gives_pages_back_and_zeroes_exactly_the_range(void **state) {
    (void)state;
    for (int refused = 0; refused <= 1; refused++) {
        struct shmt_segment segment = make(MIB);
        unsigned char *contents = shmt_segment_at(&segment, 0, MIB);
        memset(contents, 9, MIB);
        const uint64_t before = placed_bytes(&segment);
        sys.punch = refused ? EOPNOTSUPP : 0;
        shmt_segment_punch(&segment, 1000, 512 * KIB);
        const uint64_t freed = before - placed_bytes(&segment);
        if (refused) {
            assert_int_equal(freed, 0);
        } else {
            assert_true(freed >= 512 * KIB - 2 * PAGE);
        }
        for (uint64_t i = 0; i < MIB; i++) assert_int_equal(contents[i], i >= 1000 && i < 1000 + 512 * KIB ? 0 : 9);
        shmt_segment_punch(&segment, MIB, UINT64_MAX);
        shmt_segment_punch(&segment, 0, 0);
        assert_int_equal(contents[0], 9);
        shmt_segment_detach(&segment);
    }
}

static void an_interrupted_punch_is_repeated(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const uint64_t before = placed_bytes(&segment);
    sys.punch = EINTR;
    shmt_segment_punch(&segment, 0, MIB);
    assert_int_equal(sys.punch_calls, 2);
    assert_true(before - placed_bytes(&segment) >= MIB - PAGE);
    shmt_segment_detach(&segment);
}

static void a_punched_segment_can_still_be_attached(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB), other;
    shmt_segment_punch(&segment, 0, MIB);
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, &other, NULL), 0);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

/* ---- layouts ---- */

static void pieces_of_a_layout_are_aligned_and_do_not_overlap(void **state) {
    (void)state;
    struct shmt_layout layout = {0};
    assert_int_equal(shmt_layout_add(&layout, 3, 5), 0);
    assert_int_equal(layout.bytes, 15);
    assert_int_equal(shmt_layout_add(&layout, 1, 1), SHMT_LINE);
    assert_int_equal(shmt_layout_add_pages(&layout, 2, 4096), 4096);
    assert_int_equal(shmt_layout_add(&layout, 0, 8), 3 * 4096);
    assert_int_equal(shmt_layout_add(&layout, 1, SHMT_LINE), 3 * 4096);
    assert_int_equal(shmt_layout_add(&layout, 1, 1), 3 * 4096 + SHMT_LINE);
    assert_int_equal(layout.bytes, 3 * 4096 + SHMT_LINE + 1);
    assert_false(layout.failed);
}

static void a_layout_that_overflows_says_so_for_good(void **state) {
    (void)state;
    const struct {
        uint64_t start, count, each_bytes;
    } cases[] = {{0, (uint64_t)1 << 32, (uint64_t)1 << 32}, {UINT64_MAX - 5, 1, 1}, {UINT64_MAX - 4096, 1, 4096}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shmt_layout layout = {.bytes = cases[i].start};
        assert_int_equal(shmt_layout_add_pages(&layout, cases[i].count, cases[i].each_bytes), 0);
        assert_true(layout.failed);
        assert_int_equal(shmt_layout_add(&layout, 1, 1), 0);
        assert_true(layout.failed);
        assert_int_equal(layout.bytes, cases[i].start);
    }
}

#define FRESH(test) cmocka_unit_test_setup(test, reset)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(only_ranges_inside_have_an_address),
        FRESH(a_pass_over_pages_that_are_not_populated_meets_faults),
        FRESH(a_pass_over_populated_pages_meets_no_faults),
        FRESH(without_the_kernels_help_pages_are_populated_by_touching),
        FRESH(populating_what_is_not_inside_or_refused_is_harmless),
        FRESH(punching_gives_pages_back_and_zeroes_exactly_the_range),
        FRESH(an_interrupted_punch_is_repeated),
        FRESH(a_punched_segment_can_still_be_attached),
        FRESH(pieces_of_a_layout_are_aligned_and_do_not_overlap),
        FRESH(a_layout_that_overflows_says_so_for_good),
    };
    alarm(120);
    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
