/* Tests of windows: ranges of a segment side by side at addresses of their own. */
#include "segment_help.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

/* What the test makes the system refuse: the call of mmap with this number, counted down; 0: none. */
static int refuse_mmap, refuse_with;

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off) {
    if (refuse_mmap > 0 && --refuse_mmap == 0) {
        errno = refuse_with;
        return MAP_FAILED;
    }
    return __real_mmap(at, bytes, protection, flags, fd, off);
}

static struct shmt_window open_window(const struct shmt_segment *segment, const struct shmt_window_part *part, uint32_t n) {
    struct shmt_window window = {0};
    struct shmt_error e = {0};
    if (shmt_segment_open_window(segment, part, n, &window, &e) != 0) fail_msg("%s", e.text);
    return window;
}

/* Mappings of the segment that this process has. */
static uint32_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t n = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) n += strstr(line, "shmtrain-test") != NULL;
    fclose(maps);
    return n;
}

/* Contents begin behind the header, so whole pages do where offset + header is one. */
static uint64_t off_of_page(uint64_t page) { return page * PAGE - SHMT_SEGMENT_HEADER_BYTES; }

static void ranges_lie_side_by_side_in_the_order_given_and_are_the_same_memory(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const struct shmt_window_part part[] = {
        {off_of_page(40), 2 * PAGE}, {off_of_page(7), PAGE}, {off_of_page(100), 3 * PAGE}, {off_of_page(7), PAGE}};
    struct shmt_window w = open_window(&segment, part, 4);
    assert_int_equal(w.bytes, 7 * PAGE);
    for (uint64_t i = 0, at = 0; i < 4; at += part[i].bytes, i++) {
        unsigned char *const there = shmt_segment_at(&segment, part[i].off, part[i].bytes);
        for (uint64_t byte = 0; byte < part[i].bytes; byte += PAGE / 2) {
            there[byte] = (unsigned char)(1 + i + byte / 512);
            assert_int_equal(w.base[at + byte], (unsigned char)(1 + i + byte / 512));
            w.base[at + byte] = (unsigned char)(77 + i);
            assert_int_equal(there[byte], (unsigned char)(77 + i));
        }
    }
    assert_int_equal(w.base[2 * PAGE], 80); /* the third page is the seventh, too */
    shmt_segment_close_window(&w);
    assert_null(w.base);
    shmt_segment_close_window(&w); /* harmless */
    assert_int_equal(mappings(), 1);
    shmt_segment_detach(&segment);
}

static int write_in_window(void *arg) {
    const struct shmt_segment *segment = arg;
    const struct shmt_window_part part[] = {{off_of_page(9), PAGE}, {off_of_page(2), PAGE}};
    struct shmt_window w = open_window(segment, part, 2);
    w.base[0] = 9;
    w.base[PAGE] = 2;
    shmt_segment_close_window(&w);
    return 0;
}

static void forked_processes_and_those_who_map_the_segment_elsewhere_have_windows_of_it(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB), other = {0};
    struct shmt_error e = {0};
    assert_int_equal(in_child(write_in_window, &segment), 0);
    assert_int_equal(*(unsigned char *)shmt_segment_at(&segment, off_of_page(9), 1), 9);
    assert_int_equal(*(unsigned char *)shmt_segment_at(&segment, off_of_page(2), 1), 2);
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, 0, &other, &e), 0);
    const struct shmt_window_part part = {off_of_page(9), PAGE};
    struct shmt_window w = open_window(&other, &part, 1);
    assert_int_equal(w.base[0], 9);
    w.base[1] = 10;
    assert_int_equal(((unsigned char *)shmt_segment_at(&segment, off_of_page(9), 2))[1], 10);
    shmt_segment_close_window(&w);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

static void what_is_no_whole_page_of_the_segment_is_refused(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const struct {
        struct shmt_window_part part[2];
        uint32_t n;
    } CASES[] = {{{{0}}, 0},
                 {{{off_of_page(1), PAGE}, {off_of_page(2), 0}}, 2},
                 {{{off_of_page(1), PAGE}, {off_of_page(2) + 64, PAGE}}, 2},
                 {{{off_of_page(1), PAGE}, {off_of_page(2), PAGE - 64}}, 2},
                 {{{off_of_page(1), PAGE}, {off_of_page(256), 2 * PAGE}}, 2},
                 {{{off_of_page(1), UINT64_MAX - PAGE + 1}}, 1},
                 {{{UINT64_MAX - PAGE + 1, PAGE}}, 1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_window w = {.bytes = 123};
        struct shmt_error e = {0};
        assert_int_equal(shmt_segment_open_window(&segment, CASES[i].part, CASES[i].n, &w, &e), SHMTRAIN_E_SYSTEM);
        assert_non_null(strstr(e.text, "not whole pages"));
        assert_true(w.bytes == 123 && mappings() == 1);
    }
    shmt_segment_detach(&segment);
}

static void nothing_is_left_behind_where_the_system_refuses(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const struct shmt_window_part part[] = {{off_of_page(1), PAGE}, {off_of_page(5), PAGE}};
    for (int call = 1; call <= 3; call++) {
        struct shmt_window w = {0};
        struct shmt_error e = {0};
        refuse_mmap = call;
        refuse_with = call == 1 ? ENOMEM : EPERM;
        const int rc = shmt_segment_open_window(&segment, part, 2, &w, &e);
        assert_int_equal(rc, call == 1 ? SHMTRAIN_E_MEMORY : SHMTRAIN_E_SYSTEM);
        assert_non_null(strstr(e.text, call == 1 ? "ulimit -v" : "a range of shared memory a second time"));
        assert_null(w.base);
        assert_int_equal(mappings(), 1);
    }
    shmt_segment_detach(&segment);
}

static void a_window_lies_as_huge_pages_ask_for(void **state) {
    (void)state;
    struct shmt_segment segment = make(8 * MIB);
    segment.transparent = 1;
    const struct shmt_window_part part[] = {{off_of_page(3), PAGE},
                                            {2 * MIB - SHMT_SEGMENT_HEADER_BYTES + PAGE, 4 * MIB - PAGE}};
    struct shmt_window w = open_window(&segment, part, 2);
    assert_int_equal((uint64_t)(uintptr_t)w.base % SHMT_HUGE_BYTES, 0);
    w.base[w.bytes - 1] = 5;
    assert_int_equal(*(unsigned char *)shmt_segment_at(&segment, 6 * MIB - SHMT_SEGMENT_HEADER_BYTES - 1, 1), 5);
    shmt_segment_close_window(&w);
    shmt_segment_detach(&segment);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_lie_side_by_side_in_the_order_given_and_are_the_same_memory),
        cmocka_unit_test(forked_processes_and_those_who_map_the_segment_elsewhere_have_windows_of_it),
        cmocka_unit_test(what_is_no_whole_page_of_the_segment_is_refused),
        cmocka_unit_test(nothing_is_left_behind_where_the_system_refuses),
        cmocka_unit_test(a_window_lies_as_huge_pages_ask_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
