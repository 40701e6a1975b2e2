/* Tests of attaching to segments: sharing, and refusing what is none, is another one or may change under us. */
#include "segment_help.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

/* What the test makes the system do. */
static struct {
    int mmap;                    /* an errno; 0: the real call */
    void (*at_seal_check)(void); /* what another process does while attach is at work */
} sys;

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...) {
    va_list args;
    va_start(args, command);
    const int argument = command == F_ADD_SEALS || command == F_DUPFD_CLOEXEC ? va_arg(args, int) : 0;
    va_end(args);
    if (command == F_GET_SEALS && sys.at_seal_check) sys.at_seal_check();
    return __real_fcntl(fd, command, argument);
}

void *__real_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t off) {
    if (!sys.mmap) return __real_mmap(at, bytes, protection, flags, fd, off);
    errno = sys.mmap;
    return MAP_FAILED;
}

static int reset(void **state) {
    (void)state;
    memset(&sys, 0, sizeof sys);
    return 0;
}

static void two_mappings_see_each_others_writes(void **state) {
    (void)state;
    struct shmt_segment one = make(MIB), two;
    struct shmt_error e = {0};
    assert_int_equal(shmt_segment_attach(one.fd, FINGERPRINT, 0, &two, &e), 0);
    assert_ptr_not_equal(one.base, two.base);
    assert_int_not_equal(one.fd, two.fd);
    assert_int_equal(one.bytes, two.bytes);
    assert_int_equal(fcntl(two.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    uint64_t *in_one = shmt_segment_at(&one, 4096, 16), *in_two = shmt_segment_at(&two, 4096, 16);
    in_one[0] = 42;
    assert_int_equal(in_two[0], 42);
    in_two[1] = 43;
    assert_int_equal(in_one[1], 43);
    shmt_segment_detach(&one);
    assert_int_equal(in_two[0], 42); /* the memory goes with the last one */
    shmt_segment_detach(&two);
}

static int writes_to_a_segment_of_its_own_mapping(void *arg) {
    struct shmt_segment *inherited = arg, mine;
    struct shmt_error e = {0};
    if (shmt_segment_attach(inherited->fd, FINGERPRINT, 0, &mine, &e) != 0) return 1;
    shmt_segment_detach(inherited);
    uint64_t *word = shmt_segment_at(&mine, 128, 8);
    if (*word != 7) return 2;
    *word = 8;
    return 0;
}

static void a_process_that_maps_it_elsewhere_shares_it(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    uint64_t *word = shmt_segment_at(&segment, 128, 8);
    *word = 7;
    assert_int_equal(in_child(writes_to_a_segment_of_its_own_mapping, &segment), 0);
    assert_int_equal(*word, 8);
    shmt_segment_detach(&segment);
}

static void expect_refusal(int fd, uint64_t fingerprint, int status, const char *words) {
    struct shmt_segment segment = {.base = NULL, .bytes = 77, .fd = 77};
    struct shmt_error e = {0};
    const uint32_t before = descriptors();
    assert_int_equal(shmt_segment_attach(fd, fingerprint, 0, &segment, &e), status);
    if (!strstr(e.text, words)) fail_msg("\"%s\" is not in \"%s\"", words, e.text);
    assert_int_equal(segment.fd, 77);
    assert_int_equal(descriptors(), before);
}

static void a_segment_for_something_else_is_refused(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    expect_refusal(segment.fd, FINGERPRINT + 1, SHMTRAIN_E_USAGE,
                   "laid out for something else (fingerprint 1234567890abcdef, expected 1234567890abcdf0)");
    shmt_segment_detach(&segment);
}

static void each_wrong_word_of_the_header_is_refused(void **state) {
    (void)state;
    const struct {
        uint32_t off, bytes;
        uint64_t xor ;
        const char *words;
    } cases[] = {
        {0, 8, 1, "it does not start like one"},
        {0, 8, (uint64_t)1 << 63, "it does not start like one"},
        {8, 4, 3, "has version 2 with a header of 4096 bytes"},
        {12, 4, 4096 ^ 8192, "has version 1 with a header of 8192 bytes"},
        {16, 8, 4096, "the shared memory segment is damaged: its header says"},
        {16, 8, (uint64_t)1 << 40, "the shared memory segment is damaged: its header says"},
        {24, 8, 1, "laid out for something else"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shmt_segment segment = make(MIB), other;
        uint64_t word = 0;
        memcpy(&word, segment.base + cases[i].off, cases[i].bytes);
        word ^= cases[i].xor ;
        memcpy(segment.base + cases[i].off, &word, cases[i].bytes);
        expect_refusal(segment.fd, FINGERPRINT, SHMTRAIN_E_USAGE, cases[i].words);
        word ^= cases[i].xor ;
        memcpy(segment.base + cases[i].off, &word, cases[i].bytes);
        assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, 0, &other, NULL), 0);
        shmt_segment_detach(&other);
        shmt_segment_detach(&segment);
    }
}

static void files_that_are_no_segments_are_refused(void **state) {
    (void)state;
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    expect_refusal(pipes[0], FINGERPRINT, SHMTRAIN_E_SYSTEM, "from descriptor");
    close(pipes[0]);
    close(pipes[1]);
    expect_refusal(-1, FINGERPRINT, SHMTRAIN_E_SYSTEM, "descriptor -1: Bad file descriptor");
    int fd = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    expect_refusal(fd, FINGERPRINT, SHMTRAIN_E_USAGE, "it is only 0 bytes long");
    assert_int_equal(write(fd, "shtrnseg", 8), 8);
    expect_refusal(fd, FINGERPRINT, SHMTRAIN_E_USAGE, "it is only 8 bytes long");
    close(fd);
}

/* A copy of a good segment's header in a file whose size is `bytes` and that nobody sealed. */
static int unsealed_copy(const struct shmt_segment *segment, uint64_t bytes) {
    int fd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(pwrite(fd, segment->base, SHMT_SEGMENT_HEADER_BYTES, 0), SHMT_SEGMENT_HEADER_BYTES);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    return fd;
}

static void a_file_that_could_shrink_under_us_is_refused(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    int fd = unsealed_copy(&segment, segment.bytes);
    expect_refusal(fd, FINGERPRINT, SHMTRAIN_E_USAGE, "not sealed");
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW), 0);
    expect_refusal(fd, FINGERPRINT, SHMTRAIN_E_USAGE, "not sealed");
    close(fd);
    shmt_segment_detach(&segment);
}

static void a_file_of_another_size_than_its_header_says_is_refused(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    const uint64_t sizes[] = {100, SHMT_SEGMENT_HEADER_BYTES, segment.bytes - PAGE, segment.bytes + PAGE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int fd = unsealed_copy(&segment, sizes[i]);
        assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
        expect_refusal(fd, FINGERPRINT, SHMTRAIN_E_USAGE, "is damaged: its header says");
        close(fd);
    }
    shmt_segment_detach(&segment);
}

static struct shmt_segment *victim;

static void scribble_over_the_header(void) { memset(victim->base, 0xff, SHMT_SEGMENT_HEADER_BYTES); }

static void what_is_written_into_the_header_after_the_check_is_not_used(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB), other;
    struct shmt_error e = {0};
    victim = &segment;
    sys.at_seal_check = scribble_over_the_header;
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, 0, &other, &e), 0);
    assert_int_equal(segment.base[0], 0xff);
    assert_int_equal(other.bytes, segment.bytes);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

static void an_attach_that_cannot_map_leaves_no_descriptor(void **state) {
    (void)state;
    struct shmt_segment segment = make(MIB);
    sys.mmap = ENOMEM;
    expect_refusal(segment.fd, FINGERPRINT, SHMTRAIN_E_MEMORY, "of shared memory");
    shmt_segment_detach(&segment);
}

#define FRESH(test) cmocka_unit_test_setup(test, reset)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(two_mappings_see_each_others_writes),
        FRESH(a_process_that_maps_it_elsewhere_shares_it),
        FRESH(a_segment_for_something_else_is_refused),
        FRESH(each_wrong_word_of_the_header_is_refused),
        FRESH(files_that_are_no_segments_are_refused),
        FRESH(a_file_that_could_shrink_under_us_is_refused),
        FRESH(a_file_of_another_size_than_its_header_says_is_refused),
        FRESH(what_is_written_into_the_header_after_the_check_is_not_used),
        FRESH(an_attach_that_cannot_map_leaves_no_descriptor),
    };
    alarm(120);
    return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
