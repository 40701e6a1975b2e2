/* OpenBLAS: products against the plain loop, the same bits from wherever they are computed, and no thread that nobody asked
 * for. What is found when the library is loaded is found once per process, so each way of loading has a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "math/blas.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

static void need_blas(void) {
    struct shmt_error e = {0};
    if (shmt_blas_open(&e) == 0) return;
    print_message("skipped: %s\n", e.text);
    skip();
}

/* ---- products ---- */

enum { MOST = 90, STRIDE = 97 };
static float g_a[MOST * STRIDE], g_b[MOST * STRIDE], g_c[MOST * STRIDE];

static void fill(float *x, uint64_t seed) {
    for (uint64_t i = 0; i < MOST * STRIDE; i++) x[i] = (float)shmt_unit(shmt_hash64(seed, i, 0, 0)) * 2 - 1;
}

static double element(const struct shmt_factor *f, uint64_t i, uint64_t j) {
    return (double)(f->transposed ? f->at[j * f->stride + i] : f->at[i * f->stride + j]);
}

/* Against the plain triple loop, in doubles. */
static void check_product(struct shmt_factor a, struct shmt_factor b, uint32_t m, uint32_t n, uint32_t k, float beta) {
    static float old[MOST * STRIDE];
    fill(g_c, 3);
    memcpy(old, g_c, sizeof old);
    shmt_sgemm(a, b, k, beta, (struct shmt_matrix){g_c, m, n, STRIDE});
    for (uint64_t i = 0; i < MOST; i++)
        for (uint64_t j = 0; j < STRIDE; j++) {
            const float got = g_c[i * STRIDE + j], before = old[i * STRIDE + j];
            double want = (double)(beta * before);
            if (i >= m || j >= n) {
                assert_true(got == before); /* beyond the matrix nothing is written */
                continue;
            }
            for (uint64_t l = 0; l < k; l++) want += element(&a, i, l) * element(&b, l, j);
            /* k products below 1 are added, each sum rounded by 2^-24 of at most k */
            if (fabs(want - (double)got) > k * (k + 1) * 0x1p-24)
                fail_msg("(%u, %u, %u): %.8f, not %.8f", m, n, k, (double)got, want);
        }
}

static void products_are_those_of_the_plain_loop(void **state) {
    static const uint32_t SIZES[] = {1, 2, 7, 8, 16, 33, 64, 90};
    enum { N_SIZES = sizeof SIZES / sizeof *SIZES };
    (void)state;
    need_blas();
    fill(g_a, 1);
    fill(g_b, 2);
    for (int m = 0; m < N_SIZES; m++)
        for (int n = 0; n < N_SIZES; n++)
            for (int k = 0; k < N_SIZES; k++)
                for (int how = 0; how < 4; how++)
                    check_product((struct shmt_factor){g_a, STRIDE, how & 1}, (struct shmt_factor){g_b, STRIDE, how & 2},
                                  SIZES[m], SIZES[n], SIZES[k], how == 3 ? 1.0f : (float)how / 2);
}

static void without_beta_the_old_matrix_does_not_count(void **state) {
    const struct shmt_factor a = {g_a, STRIDE, false}, b = {g_b, STRIDE, true};
    (void)state;
    need_blas();
    fill(g_a, 1);
    fill(g_b, 2);
    for (uint32_t size = 1; size <= 64; size++) {
        for (int i = 0; i < MOST * STRIDE; i++) g_c[i] = i % 2 ? NAN : INFINITY;
        shmt_sgemm(a, b, size, 0, (struct shmt_matrix){g_c, size, size, STRIDE});
        for (uint32_t i = 0; i < size; i++)
            for (uint32_t j = 0; j < size; j++) assert_true(isfinite(g_c[i * STRIDE + j]));
    }
}

/* ---- bits ---- */

enum { ROWS = 16, CLASSES = 10, FEATURES = 77 };
static float g_expected[ROWS * CLASSES];

static void product(const float *a, const float *b, float *c) {
    shmt_sgemm((struct shmt_factor){a, STRIDE, false}, (struct shmt_factor){b, STRIDE, true}, FEATURES, 0,
               (struct shmt_matrix){c, ROWS, CLASSES, CLASSES});
}

static void the_same_tile_has_the_same_bits_wherever_it_stands(void **state) {
    static float a[ROWS * STRIDE + 16], b[CLASSES * STRIDE + 16], c[ROWS * CLASSES + 16];
    (void)state;
    need_blas();
    fill(g_a, 1);
    fill(g_b, 2);
    product(g_a, g_b, g_expected);
    for (int at = 0; at < 16; at++) {
        memcpy(a + at, g_a, ROWS * STRIDE * sizeof *a);
        memcpy(b + 15 - at, g_b, CLASSES * STRIDE * sizeof *b);
        product(a + at, b + 15 - at, c + at);
        assert_memory_equal(c + at, g_expected, sizeof g_expected);
    }
}

static void *multiply_often(void *wrong_out) {
    float c[ROWS * CLASSES];
    uint64_t *wrong = wrong_out;
    for (int i = 0; i < 20000; i++) {
        product(g_a, g_b, c);
        *wrong += memcmp(c, g_expected, sizeof c) != 0;
    }
    return NULL;
}

/* Serial variants must be built with locks for this (USE_LOCKING), as Debian's is. */
static void threads_may_multiply_at_the_same_time(void **state) {
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    uint64_t wrong[THREADS] = {0};
    (void)state;
    need_blas();
    fill(g_a, 1);
    fill(g_b, 2);
    product(g_a, g_b, g_expected);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, multiply_often, &wrong[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
}

/* ---- loading ---- */

static int threads_of_process(void) {
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks) return -1;
    for (const struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* What a process finds that loads what SHMTRAIN_BLAS says. */
struct finding {
    int status, threads;
    char text[SHMT_ERROR_TEXT], name[96], environment[16];
};

static void look(const char *library, int fd) {
    struct finding found = {0};
    struct shmt_error e = {0}, again = {0};
    if (library)
        setenv("SHMTRAIN_BLAS", library, 1);
    else
        unsetenv("SHMTRAIN_BLAS");
    setenv("OPENBLAS_NUM_THREADS", "7", 1);
    found.status = shmt_blas_open(&e);
    if (found.status == 0) product(g_a, g_b, g_c);
    found.threads = threads_of_process();
    if (shmt_blas_open(&again) != found.status || strcmp(again.text, e.text) != 0) _exit(1);
    snprintf(found.text, sizeof found.text, "%s", e.text);
    snprintf(found.name, sizeof found.name, "%s", shmt_blas_name());
    snprintf(found.environment, sizeof found.environment, "%s", getenv("OPENBLAS_NUM_THREADS"));
    _exit(write(fd, &found, sizeof found) == sizeof found ? 0 : 1);
}

/* In a process of its own, forked before this one has loaded anything. */
static struct finding look_elsewhere(const char *library) {
    struct finding found = {0};
    int fd[2], status;
    assert_int_equal(pipe(fd), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) look(library, fd[1]);
    close(fd[1]);
    assert_int_equal(read(fd[0], &found, sizeof found), sizeof found);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    return found;
}

static void a_library_that_is_none_is_refused_in_a_sentence(void **state) {
    (void)state;
    struct finding found = look_elsewhere("/nowhere/libblas.so");
    assert_int_equal(found.status, SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(found.text, "SHMTRAIN_BLAS names no BLAS library that can be used: /nowhere/libblas.so"));
    assert_string_equal(found.name, "");
    found = look_elsewhere("libm.so.6");
    assert_int_equal(found.status, SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(found.text, "cblas_sgemm"));
}

/* The default variant, too, which would start a thread for each core. */
static void loading_starts_no_thread_and_leaves_the_environment_as_it_was(void **state) {
    static const char *const LIBRARIES[] = {NULL, "", "libopenblas.so.0"};
    (void)state;
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        const struct finding found = look_elsewhere(LIBRARIES[i]);
        if (found.status != 0) {
            print_message("skipped: %s\n", found.text);
            skip();
        }
        print_message("%s\n", found.name);
        assert_int_equal(found.threads, 1);
        assert_int_equal(strncmp(found.name, "OpenBLAS ", 9), 0);
        assert_string_equal(found.environment, "7");
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(a_library_that_is_none_is_refused_in_a_sentence),
        TEST(loading_starts_no_thread_and_leaves_the_environment_as_it_was),
        TEST(products_are_those_of_the_plain_loop),
        TEST(without_beta_the_old_matrix_does_not_count),
        TEST(the_same_tile_has_the_same_bits_wherever_it_stands),
        TEST(threads_may_multiply_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
