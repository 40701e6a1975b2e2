/* Finding and calling OpenBLAS: see blas.h. */
#include "math/blas.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/library.h"

#ifndef SHMT_BLAS_FOLDER
#    define SHMT_BLAS_FOLDER "" /* where configure knows that a system like Debian has folders for variants */
#endif

/* Debian, Fedora, others; the last is Debian's again. */
static const char *const LIBRARIES[] = {SHMT_BLAS_FOLDER "/openblas-pthread/libopenblas.so.0", "libopenblasp.so.0",
                                        "libopenblas.so.0", SHMT_BLAS_FOLDER "/openblas-serial/libopenblas.so.0"};

/* The C interface of BLAS; its numbers for "row-major", "as it is", "transposed". */
enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 };
typedef void sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                   const float *b, int ldb, float beta, float *c, int ldc);
typedef char *text(void);
typedef void set_threads(int n);
typedef int kind_of_threads(void); /* 0: the serial variant */

/* Written once, under g_once. */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static sgemm *g_sgemm;
static char g_name[96];
static bool g_serial;
static struct shmt_error g_error;

static pthread_mutex_t g_turn = PTHREAD_MUTEX_INITIALIZER; /* of threads, where the variant is serial */

/* "OpenBLAS 0.3.21 NO_LAPACKE ... Zen MAX_THREADS=64": of the configuration the first two words, then the kernel's name. */
static void name_library(void *library, const char *path) {
    text *config, *core;
    shmt_library_find(library, "openblas_get_config", &config);
    shmt_library_find(library, "openblas_get_corename", &core);
    if (!config || !core) {
        const char *slash = strrchr(path, '/');
        snprintf(g_name, sizeof g_name, "%s", slash ? slash + 1 : path);
        return;
    }
    const char *words = config();
    const size_t first = strcspn(words, " "), both = words[first] ? first + 1 + strcspn(words + first + 1, " ") : first;
    snprintf(g_name, sizeof g_name, "%.*s %s", (int)both, words, core());
}

/* Whether the system's sentence says that there is no such file; about a library that it needs, it begins otherwise. */
static bool is_missing(const char *path, const char *why) {
    return strncmp(why, path, strlen(path)) == 0 && strstr(why, strerror(ENOENT));
}

/* A variant with threads starts them while it is loaded, unless its environment says that one is enough. Where loading fails,
 * why stands in g_error, unless it is only that `may_miss` is not there. */
static bool try_library(const char *path, bool may_miss) {
    static const struct shmt_library_setting ONE_THREAD = {"OPENBLAS_NUM_THREADS", "1", true};
    void *library = shmt_library_load(path, &ONE_THREAD);
    set_threads *threads = NULL;
    kind_of_threads *kind = NULL;
    if (library) shmt_library_find(library, "cblas_sgemm", &g_sgemm);
    if (!g_sgemm) {
        const char *why = dlerror();
        if (!why) why = path;
        if (!may_miss)
            shmt_fail(&g_error, SHMTRAIN_E_SYSTEM, "SHMTRAIN_BLAS does not name a usable BLAS library: %s", why);
        else if (g_error.status == 0 && !is_missing(path, why))
            shmt_fail(&g_error, SHMTRAIN_E_SYSTEM,
                      "softmax and networks need OpenBLAS, which is installed but cannot be loaded: %s", why);
        if (library) dlclose(library);
        return false;
    }
    shmt_library_find(library, "openblas_set_num_threads", &threads);
    shmt_library_find(library, "openblas_get_parallel", &kind);
    if (threads) threads(1);
    g_serial = kind && kind() == 0;
    name_library(library, path);
    return true;
}

static void load(void) {
    const char *named = getenv("SHMTRAIN_BLAS");
    if (named && named[0] != '\0') {
        (void)try_library(named, false);
        return;
    }
    for (size_t i = 0; i < sizeof LIBRARIES / sizeof *LIBRARIES; i++)
        if (try_library(LIBRARIES[i], true)) return;
    if (g_error.status != 0) return;
    shmt_fail(&g_error, SHMTRAIN_E_SYSTEM,
              "softmax and networks need OpenBLAS, which is not installed: install libopenblas0 (Fedora: openblas-threads, "
              "Arch: openblas)");
}

int shmt_blas_open(struct shmt_error *e) {
    pthread_once(&g_once, load);
    if (g_sgemm) return 0;
    return shmt_fail(e, g_error.status, "%s", g_error.text);
}

const char *shmt_blas_name(void) { return g_name; }
bool shmt_blas_is_shared(void) { return !g_serial; }

void shmt_sgemm(struct shmt_factor a, struct shmt_factor b, uint32_t k, float beta, struct shmt_matrix c) {
    if (g_serial) pthread_mutex_lock(&g_turn);
    g_sgemm(ROW_MAJOR, a.transposed ? TRANSPOSED : AS_IT_IS, b.transposed ? TRANSPOSED : AS_IT_IS, (int)c.rows, (int)c.cols,
            (int)k, 1, a.at, (int)a.stride, b.at, (int)b.stride, beta, c.at, (int)c.stride);
    if (g_serial) pthread_mutex_unlock(&g_turn);
}
