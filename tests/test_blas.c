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
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "math/blas.h"
#include "sanitized.h"
#include "skip.h"

#ifndef SHMT_BLAS_FOLDER
#    define SHMT_BLAS_FOLDER ""
#endif
#define SERIAL SHMT_BLAS_FOLDER "/openblas-serial/libopenblas.so.0"

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

static int threads_of_process(void) {
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    if (!tasks) return -1;
    for (const struct dirent *d; (d = readdir(tasks));) n += d->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* ---- threads ---- */

/* Products of two sizes: OpenBLAS has ways of its own for small ones, without memory to pack into. */
enum { THREADS = 4, LARGE = 160 };
static float g_left[LARGE * LARGE], g_right[LARGE * LARGE];
static const uint32_t SIZES[] = {10, LARGE};

static void square(uint32_t n, float *c) {
    shmt_sgemm((struct shmt_factor){g_left, LARGE, true}, (struct shmt_factor){g_right, LARGE, false}, LARGE, 0,
               (struct shmt_matrix){c, n, n, n});
}

struct thread {
    pthread_t id;
    uint64_t sums[2][400]; /* of each product's bits */
};

static uint64_t sum_of(const float *c, uint32_t n) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n * n; i++) {
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        sum = sum * 0x9e3779b97f4a7c15u + bits;
    }
    return sum;
}

static void *multiply_often(void *arg) {
    static _Thread_local float c[LARGE * LARGE];
    struct thread *mine = arg;
    for (int i = 0; i < 400; i++)
        for (int size = 0; size < 2; size++) {
            square(SIZES[size], c);
            mine->sums[size][i] = sum_of(c, SIZES[size]);
        }
    return NULL;
}

/* How many products of threads that multiply at the same time, the very first ones included, are not what one thread gets. */
static uint32_t count_wrong(void) {
    static struct thread thread[THREADS];
    static float c[LARGE * LARGE];
    uint32_t wrong = 0;
    for (uint64_t i = 0; i < LARGE * LARGE; i++) {
        g_left[i] = (float)shmt_unit(shmt_hash64(4, i, 0, 0)) - 0.5f;
        g_right[i] = (float)shmt_unit(shmt_hash64(5, i, 0, 0)) - 0.5f;
    }
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&thread[t].id, NULL, multiply_often, &thread[t]) != 0) return UINT32_MAX;
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t].id, NULL);
    for (int size = 0; size < 2; size++) {
        square(SIZES[size], c);
        for (int t = 0; t < THREADS; t++)
            for (int i = 0; i < 400; i++) wrong += thread[t].sums[size][i] != sum_of(c, SIZES[size]);
    }
    return wrong;
}

/* ---- loading ---- */

/* What a process finds that loads what SHMTRAIN_BLAS says. */
struct finding {
    int status, threads;
    uint32_t wrong;
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
    found.threads = threads_of_process();
    if (found.status == 0) found.wrong = count_wrong();
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
    assert_non_null(strstr(found.text, "SHMTRAIN_BLAS does not name a usable BLAS library: /nowhere/libblas.so"));
    assert_string_equal(found.name, "");
    found = look_elsewhere("libm.so.6");
    assert_int_equal(found.status, SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(found.text, "cblas_sgemm"));
}

/* With too little address space for it. */
static void look_without_memory(int fd) {
    struct shmt_error e = {0};
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (!f || fscanf(f, "%lu", &pages) != 1) _exit(1);
    fclose(f);
    const rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    unsetenv("SHMTRAIN_BLAS");
    if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0 || shmt_blas_open(&e) == 0) _exit(1);
    _exit(write(fd, e.text, sizeof e.text) == sizeof e.text ? 0 : 1);
}

static void a_library_that_cannot_be_loaded_is_not_called_missing(void **state) {
    char text[SHMT_ERROR_TEXT] = "";
    int fd[2], status;
    (void)state;
    if (SANITIZED) SKIP("sanitizers need address space without limit");
    assert_int_equal(pipe(fd), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) look_without_memory(fd[1]);
    close(fd[1]);
    assert_int_equal(read(fd[0], text, sizeof text), sizeof text);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    if (strstr(text, "which is not installed: install")) SKIP("%s", text);
    assert_non_null(strstr(text, "which is installed but cannot be loaded: "));
    assert_non_null(strstr(text, ".so"));
}

/* The system's own choice of a variant, the one that is chosen without SHMTRAIN_BLAS, and the serial one, which has no locks.
 * Most would start a thread for each core when they are loaded. */
static void no_variant_starts_a_thread_or_mixes_up_those_that_multiply_at_once(void **state) {
    static const char *const LIBRARIES[] = {NULL, "", "libopenblas.so.0", SERIAL};
    (void)state;
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++) {
        const struct finding found = look_elsewhere(LIBRARIES[i]);
        if (found.status != 0) {
            print_message("not there: %s\n", found.text);
            if (i == 0) SKIP("%s", found.text);
            continue;
        }
        print_message("%s: %s\n", LIBRARIES[i] ? LIBRARIES[i] : "by default", found.name);
        assert_int_equal(found.wrong, 0);
        assert_int_equal(found.threads, 1);
        assert_int_equal(strncmp(found.name, "OpenBLAS ", 9), 0);
        assert_string_equal(found.environment, "7");
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(a_library_that_is_none_is_refused_in_a_sentence),
        TEST(a_library_that_cannot_be_loaded_is_not_called_missing),
        TEST(no_variant_starts_a_thread_or_mixes_up_those_that_multiply_at_once),
        TEST(products_are_those_of_the_plain_loop),
        TEST(without_beta_the_old_matrix_does_not_count),
        TEST(the_same_tile_has_the_same_bits_wherever_it_stands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
