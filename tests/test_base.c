/* Tests of base: sentences of errors, checked arithmetic, random numbers, the log callback, time. */
#include "base/atomic.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/error.h"
#include "base/log.h"
#include "base/pipe.h"
#include "base/random.h"
#include "sanitized.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void every_status_has_its_name(void **state) {
    (void)state;
    assert_string_equal(shmtrain_status_name(SHMTRAIN_OK), "SHMTRAIN_OK");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_USAGE), "SHMTRAIN_E_USAGE");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_MEMORY), "SHMTRAIN_E_MEMORY");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_DATA), "SHMTRAIN_E_DATA");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_SYSTEM), "SHMTRAIN_E_SYSTEM");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_DIED), "SHMTRAIN_E_DIED");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_STOPPED), "SHMTRAIN_E_STOPPED");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_NUMBERS), "SHMTRAIN_E_NUMBERS");
    assert_string_equal(shmtrain_status_name(SHMTRAIN_E_AGAIN), "SHMTRAIN_E_AGAIN");
}

static void numbers_that_are_no_status_get_a_name_too(void **state) {
    (void)state;
    const int strangers[] = {1, 1000, INT32_MAX, SHMTRAIN_E_AGAIN - 1, -1000, INT32_MIN};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        assert_string_equal(shmtrain_status_name(strangers[i]), "not a shmtrain status");
}

static void a_failure_returns_its_status_and_keeps_its_sentence(void **state) {
    (void)state;
    struct shmt_error e = {0};
    assert_int_equal(shmt_fail(&e, SHMTRAIN_E_DATA, "%s:%d: expected a label", "train.svm", 7), SHMTRAIN_E_DATA);
    assert_int_equal(e.status, SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "train.svm:7: expected a label");
}

static void the_first_sentence_is_not_overwritten(void **state) {
    (void)state;
    struct shmt_error e = {0};
    shmt_fail(&e, SHMTRAIN_E_DATA, "the cause");
    assert_int_equal(shmt_fail(&e, SHMTRAIN_E_USAGE, "a consequence"), SHMTRAIN_E_USAGE);
    errno = EIO;
    assert_int_equal(shmt_fail_errno(&e, "another one"), SHMTRAIN_E_SYSTEM);
    assert_int_equal(e.status, SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "the cause");
}

static void a_cleared_error_takes_the_next_sentence(void **state) {
    (void)state;
    struct shmt_error e = {0};
    shmt_fail(&e, SHMTRAIN_E_DATA, "a long first sentence");
    shmt_error_clear(&e);
    assert_int_equal(e.status, SHMTRAIN_OK);
    assert_string_equal(e.text, "");
    shmt_fail(&e, SHMTRAIN_E_DIED, "next");
    assert_int_equal(e.status, SHMTRAIN_E_DIED);
    assert_string_equal(e.text, "next");
}

static void without_an_error_struct_only_the_status_is_returned(void **state) {
    (void)state;
    assert_int_equal(shmt_fail(NULL, SHMTRAIN_E_USAGE, "nobody %s", "listens"), SHMTRAIN_E_USAGE);
    errno = ENOENT;
    assert_int_equal(shmt_fail_errno(NULL, "nobody listens"), SHMTRAIN_E_SYSTEM);
}

static void errno_becomes_words_and_a_status(void **state) {
    (void)state;
    struct shmt_error e = {0};
    errno = ENOENT;
    assert_int_equal(shmt_fail_errno(&e, "cannot open %s", "x"), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot open x: No such file or directory");
    shmt_error_clear(&e);
    errno = ENOMEM;
    assert_int_equal(shmt_fail_errno(&e, "no table"), SHMTRAIN_E_MEMORY);
    assert_string_equal(e.text, "no table: Cannot allocate memory");
}

/* Sentences carry paths, and a path may be longer than the text: the struct ends with it, so nothing may be written behind. */
static void a_sentence_that_is_too_long_is_cut(void **state) {
    (void)state;
    struct {
        struct shmt_error e;
        char guard[64];
    } box = {{0}, "guarded"};
    char path[2 * SHMT_ERROR_TEXT];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = 0;
    shmt_fail(&box.e, SHMTRAIN_E_DATA, "%s", path);
    assert_int_equal(strlen(box.e.text), SHMT_ERROR_TEXT - 1);
    assert_string_equal(box.guard, "guarded");

    for (size_t n = SHMT_ERROR_TEXT - 4; n <= SHMT_ERROR_TEXT + 4; n++) {
        shmt_error_clear(&box.e);
        errno = ENOENT;
        shmt_fail_errno(&box.e, "%.*s", (int)n, path);
        assert_int_equal(strlen(box.e.text), SHMT_ERROR_TEXT - 1);
        assert_string_equal(box.guard, "guarded");
    }
}

static void sums_and_products_say_when_they_do_not_fit(void **state) {
    (void)state;
    uint64_t out = 77;
    assert_true(shmt_add_u64(UINT64_MAX - 1, 1, &out));
    assert_true(out == UINT64_MAX);
    assert_false(shmt_add_u64(UINT64_MAX, 1, &out));
    assert_true(shmt_mul_u64(UINT32_MAX, UINT64_C(0x100000001), &out));
    assert_true(out == UINT64_MAX);
    assert_false(shmt_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    assert_true(shmt_mul_u64(UINT64_MAX, 0, &out));
    assert_true(out == 0);
}

static void rounding_up_reaches_the_last_multiple_and_no_further(void **state) {
    (void)state;
    uint64_t out = 77;
    assert_true(shmt_round_up_u64(0, 128, &out));
    assert_true(out == 0);
    assert_true(shmt_round_up_u64(1, 128, &out));
    assert_true(out == 128);
    assert_true(shmt_round_up_u64(128, 128, &out));
    assert_true(out == 128);
    assert_true(shmt_round_up_u64(5, 1, &out));
    assert_true(out == 5);
    assert_true(shmt_round_up_u64(UINT64_MAX - 127, 128, &out));
    assert_true(out == UINT64_MAX - 127);
    out = 77;
    assert_false(shmt_round_up_u64(UINT64_MAX - 126, 128, &out));
    assert_false(shmt_round_up_u64(UINT64_MAX, 128, &out));
    assert_true(out == 77);
}

static void division_rounds_up_without_overflow(void **state) {
    (void)state;
    assert_true(shmt_ceil_div(0, 3) == 0);
    assert_true(shmt_ceil_div(6, 3) == 2);
    assert_true(shmt_ceil_div(7, 3) == 3);
    assert_true(shmt_ceil_div(UINT64_MAX, 2) == UINT64_C(1) << 63);
    assert_true(shmt_ceil_div(UINT64_MAX, UINT64_MAX) == 1);
    assert_true(shmt_min_u64(3, UINT64_MAX) == 3 && shmt_min_u64(UINT64_MAX, 3) == 3);
    assert_true(shmt_max_u64(3, UINT64_MAX) == UINT64_MAX && shmt_max_u64(UINT64_MAX, 3) == UINT64_MAX);
}

/* The first three are the published sequence of SplitMix64 from seed 0, such as Vigna's splitmix64.c prints it. */
static void mixing_is_splitmix64(void **state) {
    (void)state;
    const uint64_t step = 0x9e3779b97f4a7c15u;
    assert_true(shmt_mix64(0) == 0xe220a8397b1dcdafu);
    assert_true(shmt_mix64(step) == 0x6e789e6aa1b965f4u);
    assert_true(shmt_mix64(2 * step) == 0x06c45d188009454fu);
    assert_true(shmt_mix64(UINT64_MAX) == 0xe4d971771b652c20u);
}

/* Frozen: a change here changes every run of every user who keeps a seed. */
static void hashes_are_frozen_and_know_their_places(void **state) {
    (void)state;
    assert_true(shmt_hash64(0, 0, 0, 0) == 0x2130748aaac80268u);
    assert_true(shmt_hash64(1, 2, 3, 4) == 0xd55ccd4aeb3ccafbu);
    assert_true(shmt_hash64(4, 3, 2, 1) == 0x47ec8a92768f8589u);
    assert_true(shmt_hash64(1, 2, 4, 3) == 0xd8f5e458589a7c89u);
    assert_true(shmt_hash64(2, 1, 3, 4) == 0x89f838c6080f2b76u);
}

static void units_lie_in_zero_to_below_one(void **state) {
    (void)state;
    assert_true(shmt_unit(0) == 0.0);
    assert_true(shmt_unit(UINT64_C(1) << 63) == 0.5);
    assert_true(shmt_unit(0x123456789abcdef0u) == 0x1.23456789abcd8p-4);
    assert_true(shmt_unit(UINT64_MAX) == 0x1.fffffffffffffp-1);
    assert_true(shmt_unit(UINT64_MAX) < 1.0);
}

static void numbers_below_n_are_below_n_and_reach_every_value(void **state) {
    (void)state;
    assert_true(shmt_below(UINT64_MAX, 1) == 0);
    assert_true(shmt_below(0, UINT64_MAX) == 0);
    assert_true(shmt_below(UINT64_MAX, UINT64_MAX) == UINT64_MAX - 1);
    assert_true(shmt_below(UINT64_C(1) << 63, 10) == 5);
    /* 7,000 draws for 7 values: each comes 1,000 times, give or take 5 standard deviations of 29. */
    unsigned seen[7] = {0};
    for (uint64_t i = 0; i < 7000; i++) seen[shmt_below(shmt_hash64(1, 0, 0, i), 7)]++;
    for (int v = 0; v < 7; v++) assert_in_range(seen[v], 1000 - 146, 1000 + 146);
}

static void keep_line(void *arg, const char *text) { snprintf(arg, 600, "%s", text); }

static void the_log_callback_gets_whole_lines_and_silence_is_allowed(void **state) {
    (void)state;
    char line[600] = "";
    const struct shmt_log log = {keep_line, line};
    shmt_log(&log, "no huge pages: %d free of %d", 0, 12);
    assert_string_equal(line, "no huge pages: 0 free of 12");
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    shmt_log(&log, "%s", text);
    assert_int_equal(strlen(line), 511);
    const struct shmt_log silent = {NULL, line};
    shmt_log(&silent, "unheard");
    shmt_log(NULL, "unheard");
    assert_int_equal(strlen(line), 511);
}

static void time_never_goes_back(void **state) {
    (void)state;
    uint64_t before = shmt_machine_ns();
    assert_true(before > 0);
    for (int i = 0; i < 1000; i++) {
        const uint64_t now = shmt_machine_ns();
        assert_true(now >= before);
        before = now;
    }
}

static void a_lock_word_is_taken_once(void **state) {
    (void)state;
    _Atomic uint32_t word = 0;
    uint32_t found = 0;
    assert_true(lock_acquire(&word, &found, 5));
    found = 0;
    assert_false(lock_acquire(&word, &found, 6));
    assert_int_equal(found, 5);
    store_release(&word, 0);
    bump_relaxed(&word, 3);
    assert_int_equal(load_acquire(&word), 3);
}

static void limits_are_named_with_their_remedy(void **state) {
    struct shmt_error e = {0};
    (void)state;
    errno = EMFILE;
    assert_int_equal(shmt_fail_errno(&e, "cannot open it"), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot open it: Too many open files; raise the limit (ulimit -n)");
}

/* This program answers SIGPIPE by ending, as most do. */
static void a_pipe_whose_reader_has_left_fails_without_a_signal(void **state) {
    int status = -1;
    (void)state;
    const pid_t writer = fork();
    if (writer == 0) {
        struct shmt_quiet_pipe quiet;
        int ends[2];
        signal(SIGPIPE, SIG_DFL);
        if (pipe(ends) < 0 || close(ends[0]) < 0) _exit(1);
        shmt_quiet_pipe_begin(&quiet);
        if (write(ends[1], "x", 1) != -1) _exit(2);
        shmt_quiet_pipe_end(&quiet);
        if (errno != EPIPE) _exit(3);
        (void)write(ends[1], "x", 1); /* and that one is the application's own */
        _exit(4);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
}

static void times_are_read_as_people_type_them(void **state) {
    static const struct {
        const char *text;
        uint64_t ns;
    } GOOD[] = {{"30s", 30000000000},
                {"30", 30000000000},
                {"500ms", 500000000},
                {"2m", 120000000000},
                {"2min", 120000000000},
                {"1.5h", 5400000000000},
                {"0", 0},
                {".5s", 500000000},
                {"0.25ms", 250000}};
    static const char *const BAD[] = {
        "",     "s",  "-1s",  "+1s", " 1s", "1 s",   "1.2.3s", ".",
        "1e3s", "5d", "1mss", "nan", "inf", "9000h", "0x10",   "99999999999999999999999999999999999999"};
    (void)state;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        uint64_t ns = 1;
        assert_true(shmt_duration_parse(GOOD[i].text, &ns));
        assert_int_equal(ns, GOOD[i].ns);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        uint64_t ns = 7;
        if (shmt_duration_parse(BAD[i], &ns)) fail_msg("\"%s\" is taken", BAD[i]);
        assert_int_equal(ns, 7);
    }
}

static void times_are_told_in_the_largest_unit_of_which_there_are_two(void **state) {
    static const struct {
        uint64_t ns;
        const char *text;
    } TEXTS[] = {{0, "0 ms"},
                 {1999999999, "1999 ms"},
                 {2000000000, "2 s"},
                 {119999999999, "119 s"},
                 {120000000000, "2 min"},
                 {7199000000000, "119 min"},
                 {7200000000000, "2 h"},
                 {UINT64_MAX, "5124095 h"}};
    char text[24];
    (void)state;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++)
        assert_string_equal(shmt_duration_text(TEXTS[i].ns, text), TEXTS[i].text);
}

/* ---- forks ---- */

enum { BLOCKS = 1 << 14 };

/* Allocates blocks of many sizes, more than an allocator keeps for each thread apart, until *ends, if there is such a word, and
 * frees them then. False: it could not. */
static bool allocate_many(const _Atomic int *ends) {
    void **block = calloc(BLOCKS, sizeof *block);
    size_t many = 0;
    bool can = block != NULL;
    for (; can && many < BLOCKS && (!ends || !load_relaxed(ends)); many++) {
        block[many] = malloc((size_t)16 << many % 9);
        can = block[many] != NULL;
    }
    while (can && ends && !load_relaxed(ends)) sched_yield();
    while (many-- > 0) free(block[many]);
    free(block);
    return can;
}

struct allocating {
    _Atomic int begun, ends;
};

static void *allocate_meanwhile(void *arg) {
    struct allocating *by = arg;
    (void)take_relaxed(&by->begun, 1);
    (void)allocate_many(&by->ends);
    return NULL;
}

static int status_of_a_child_that_allocates(void) {
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        alarm(60);
        _exit(allocate_many(NULL) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* As workers do, which a thread of the library forks while the application goes on. Sanitizers bring allocators of their own, not
 * all of which know of forks (base/asan_fork.c); nothing is freed meanwhile, for which that one has a lock that nobody reaches. */
static void a_child_that_is_forked_while_threads_allocate_may_allocate(void **state) {
    enum { THREADS = 2, FORKS = SANITIZED ? 10 : 60 }; /* sanitizers hold a million locks at each */
    (void)state;
    for (int i = 0; i < FORKS; i++) {
        struct allocating by = {0, 0};
        pthread_t thread[THREADS];
        for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, allocate_meanwhile, &by), 0);
        while (load_relaxed(&by.begun) < THREADS) sched_yield();
        const int status = status_of_a_child_that_allocates();
        store_relaxed(&by.ends, 1);
        for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_join(thread[k], NULL), 0);
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_name),
        cmocka_unit_test(numbers_that_are_no_status_get_a_name_too),
        cmocka_unit_test(a_failure_returns_its_status_and_keeps_its_sentence),
        cmocka_unit_test(the_first_sentence_is_not_overwritten),
        cmocka_unit_test(a_cleared_error_takes_the_next_sentence),
        cmocka_unit_test(without_an_error_struct_only_the_status_is_returned),
        cmocka_unit_test(errno_becomes_words_and_a_status),
        cmocka_unit_test(a_sentence_that_is_too_long_is_cut),
        cmocka_unit_test(sums_and_products_say_when_they_do_not_fit),
        cmocka_unit_test(rounding_up_reaches_the_last_multiple_and_no_further),
        cmocka_unit_test(division_rounds_up_without_overflow),
        cmocka_unit_test(mixing_is_splitmix64),
        cmocka_unit_test(hashes_are_frozen_and_know_their_places),
        cmocka_unit_test(units_lie_in_zero_to_below_one),
        cmocka_unit_test(numbers_below_n_are_below_n_and_reach_every_value),
        cmocka_unit_test(the_log_callback_gets_whole_lines_and_silence_is_allowed),
        cmocka_unit_test(time_never_goes_back),
        cmocka_unit_test(a_lock_word_is_taken_once),
        cmocka_unit_test(a_pipe_whose_reader_has_left_fails_without_a_signal),
        cmocka_unit_test(limits_are_named_with_their_remedy),
        cmocka_unit_test(times_are_read_as_people_type_them),
        cmocka_unit_test(times_are_told_in_the_largest_unit_of_which_there_are_two),
        cmocka_unit_test(a_child_that_is_forked_while_threads_allocate_may_allocate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
