/* Tests of ranges inside a segment: addresses, populating, and layouts. */
#include "segment_help.h"

#include "base/line.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* What the test makes the system refuse (an errno; 0: nothing), and how often it was asked. */
static struct {
    int madvise;
    int madvise_calls;
} sys;

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

/* How many pages of the range are in this process's page table. */
static uint64_t entered(const struct shmt_segment *segment, uint64_t off, uint64_t bytes) {
    const uint64_t first = (uint64_t)(uintptr_t)shmt_segment_at(segment, off, bytes) / PAGE, n = bytes / PAGE;
    const int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t word;
        assert_int_equal(pread(fd, &word, sizeof word, (off_t)((first + i) * sizeof word)), sizeof word);
        count += word >> 63; /* "present" */
    }
    close(fd);
    return count;
}

/* A second mapping of a segment whose contents are there; only the page table of the second one is looked at. */
static void expect_populated(int filled, int write) {
    struct shmt_segment segment = make(4 * MIB), other;
    if (filled) memset(shmt_segment_at(&segment, 0, 4 * MIB), 5, 4 * MIB);
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, 0, &other, NULL), 0);
    assert_int_equal(entered(&other, 0, 4 * MIB), 0);
    shmt_segment_populate(&other, MIB, 2 * MIB, write);
    /* A system that reclaims memory all the time may have taken some back already. */
    assert_in_range(entered(&other, MIB, 2 * MIB), 15 * (2 * MIB / PAGE) / 16, 2 * MIB / PAGE);
    assert_true(entered(&other, 0, 4 * MIB) < 3 * MIB / PAGE); /* only the range, and a few neighbours */
    const unsigned char *contents = shmt_segment_at(&segment, 0, 4 * MIB);
    for (uint64_t i = 0; i < 4 * MIB; i++) assert_int_equal(contents[i], filled ? 5 : 0);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

static void populating_enters_the_range_and_changes_no_content(void **state) {
    (void)state;
    for (int filled = 0; filled <= 1; filled++)
        for (int write = 0; write <= 1; write++) expect_populated(filled, write);
    assert_int_equal(sys.madvise_calls, 4);
}

static void without_the_kernels_help_pages_are_populated_by_touching(void **state) {
    (void)state;
    sys.madvise = EINVAL;
    expect_populated(0, 1);
    expect_populated(1, 0);
    assert_int_equal(sys.madvise_calls, 2);
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

static void pieces_that_are_bound_begin_at_pages_of_the_mapping(void **state) {
    (void)state;
    const uint64_t alignments[] = {4096, SHMT_HUGE_BYTES};
    for (size_t i = 0; i < 2; i++) {
        struct shmt_layout layout = {0};
        assert_int_equal(shmt_layout_add(&layout, 1, 100), 0);
        const uint64_t off = shmt_layout_add_at(&layout, 3, 1000, alignments[i]);
        assert_int_equal((off + SHMT_SEGMENT_HEADER_BYTES) % alignments[i], 0);
        assert_true(off >= 100 && off < 100 + alignments[i] + SHMT_SEGMENT_HEADER_BYTES);
        assert_int_equal(layout.bytes, off + 3000);
        assert_false(layout.failed);
        (void)shmt_layout_add_at(&layout, 1, UINT64_MAX - 10, alignments[i]);
        assert_true(layout.failed);
    }
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
        FRESH(populating_enters_the_range_and_changes_no_content),
        FRESH(without_the_kernels_help_pages_are_populated_by_touching),
        FRESH(populating_what_is_not_inside_or_refused_is_harmless),
        FRESH(pieces_that_are_bound_begin_at_pages_of_the_mapping),
        FRESH(pieces_of_a_layout_are_aligned_and_do_not_overlap),
        FRESH(a_layout_that_overflows_says_so_for_good),
    };
    alarm(120);
    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
