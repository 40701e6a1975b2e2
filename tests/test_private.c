/* Tests of segments that are private memory of this process, which those that it forks inherit. */
#include "sanitized.h"
#include "segment_help.h"
#include "skip.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

static struct shmt_segment make_private(uint64_t bytes) {
    const struct shmt_segment_wish wish = {.name = "test", .fd = -1, .bytes = bytes, .is_private = 1};
    struct shmt_segment segment = {0};
    struct shmt_error e = {0};
    if (shmt_segment_create(&wish, &segment, &e) != 0) fail_msg("%s", e.text);
    return segment;
}

static void it_has_no_file_and_leaves_no_mapping(void **state) {
    (void)state;
    const uint32_t before = descriptors();
    struct shmt_segment segment = make_private(5 * MIB);
    assert_int_equal(descriptors(), before);
    assert_int_equal(segment.fd, -1);
    assert_int_equal((uintptr_t)segment.base % SHMT_HUGE_BYTES, 0);
    unsigned char *const base = segment.base;
    shmt_segment_detach(&segment);
    assert_null(segment.base);
    unsigned char here;
    assert_int_equal(mincore(base, PAGE, &here), -1); /* nothing is mapped there */
}

static void contents_are_zero_and_lie_inside(void **state) {
    (void)state;
    const uint64_t bytes = 3 * MIB + 5;
    struct shmt_segment segment = make_private(bytes);
    const unsigned char *contents = shmt_segment_at(&segment, 0, bytes);
    assert_non_null(contents);
    for (uint64_t i = 0; i < bytes; i++)
        if (contents[i] != 0) fail_msg("byte %llu is not 0", (unsigned long long)i);
    assert_null(shmt_segment_at(&segment, bytes, PAGE + 1));
    shmt_segment_detach(&segment);
}

static int reads_what_was_written(void *arg) {
    const struct shmt_segment *segment = arg;
    const unsigned char *contents = shmt_segment_at(segment, 2 * MIB, 3);
    return contents && memcmp(contents, "abc", 3) == 0 ? 0 : 1;
}

static void a_forked_process_reads_what_was_written_before(void **state) {
    (void)state;
    struct shmt_segment segment = make_private(4 * MIB);
    memcpy(shmt_segment_at(&segment, 2 * MIB, 3), "abc", 3);
    assert_int_equal(in_child(reads_what_was_written, &segment), 0);
    shmt_segment_detach(&segment);
}

/* Exit status 0: refused in the right words. */
static int is_refused_for_lack_of_addresses(void *arg) {
    const struct shmt_segment_wish wish = {.name = "test", .fd = -1, .bytes = 512 * MIB, .is_private = 1};
    const struct rlimit limit = {256 * MIB, 256 * MIB};
    struct shmt_segment segment = {.fd = 77};
    struct shmt_error e = {0};
    (void)arg;
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    if (shmt_segment_create(&wish, &segment, &e) != SHMTRAIN_E_MEMORY) return 2;
    return strstr(e.text, "(ulimit -v)") && segment.fd == 77 ? 0 : 3;
}

static void too_little_address_space_is_refused_with_the_remedy(void **state) {
    (void)state;
    if (SANITIZED) SKIP("sanitizers need address space without limit");
    assert_int_equal(in_child(is_refused_for_lack_of_addresses, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_has_no_file_and_leaves_no_mapping),
        cmocka_unit_test(contents_are_zero_and_lie_inside),
        cmocka_unit_test(a_forked_process_reads_what_was_written_before),
        cmocka_unit_test(too_little_address_space_is_refused_with_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
