/* Sharing out tiles by OpenMP: see parallel.h. */
#include "math/parallel.h"

#include <pthread.h>

#include "base/library.h"
#include "base/sanitizer.h"

#define RUNTIME "libgomp.so.1"
#define PAYS_NS 50000.0 /* work of each thread that a region pays for */

/* What gcc turns `#pragma omp parallel num_threads(n)` into, since gcc 4.9. */
typedef void region(void (*body)(void *), void *arg, unsigned threads, unsigned flags);
typedef int number(void);

/* Written once, under g_once. */
static pthread_once_t g_once = PTHREAD_ONCE_INIT;
static region *g_region;
static number *g_mine, *g_all;

static void load(void) {
    static const struct shmt_library_setting SLEEP = {"OMP_WAIT_POLICY", "passive", false};
    void *library = SHMT_UNDER_TSAN ? NULL : shmt_library_load(RUNTIME, &SLEEP);
    if (!library) return;
    shmt_library_find(library, "omp_get_thread_num", &g_mine);
    shmt_library_find(library, "omp_get_num_threads", &g_all);
    if (g_mine && g_all) shmt_library_find(library, "GOMP_parallel", &g_region);
}

bool shmt_parallel_open(void) {
    pthread_once(&g_once, load);
    return g_region != NULL;
}

bool shmt_parallel_is_inherited(void) { return shmt_library_is_loaded(RUNTIME); }

uint32_t shmt_parallel_worth(uint32_t threads, double ns) {
    const double most = ns / PAYS_NS;
    return most < 2 ? 1 : most < threads ? (uint32_t)most : threads;
}

struct loop {
    uint64_t n;
    shmt_tile *tile;
    void *arg;
};

/* My share, by the number of threads that came: the runtime may give fewer than asked for. */
static void share(void *arg) {
    const struct loop *loop = arg;
    const uint64_t mine = (uint64_t)g_mine(), all = (uint64_t)g_all();
    for (uint64_t i = loop->n * mine / all; i < loop->n * (mine + 1) / all; i++) loop->tile(loop->arg, i);
}

void shmt_parallel(uint32_t threads, uint64_t n, shmt_tile *tile, void *arg) {
    const uint64_t most = n < threads ? n : threads;
    if (most > 1 && shmt_parallel_open()) {
        struct loop loop = {n, tile, arg};
        g_region(share, &loop, (unsigned)most, 0);
        return;
    }
    for (uint64_t i = 0; i < n; i++) tile(arg, i);
}
