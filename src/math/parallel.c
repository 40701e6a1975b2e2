/* The one place with OpenMP: see parallel.h. */
#include "math/parallel.h"

#ifdef _OPENMP
static void share_out(int threads, uint64_t n, shmt_tile *tile, void *arg) {
#    pragma omp parallel for num_threads(threads) schedule(static)
    for (uint64_t i = 0; i < n; i++) tile(arg, i);
}
bool shmt_parallel_works(void) { return true; }
#else
static void share_out(int threads, uint64_t n, shmt_tile *tile, void *arg) {
    (void)threads;
    for (uint64_t i = 0; i < n; i++) tile(arg, i);
}
bool shmt_parallel_works(void) { return false; }
#endif

void shmt_parallel(uint32_t threads, uint64_t n, shmt_tile *tile, void *arg) {
    const uint64_t most = n < threads ? n : threads;
    if (most > 1) {
        share_out((int)most, n, tile, arg);
        return;
    }
    for (uint64_t i = 0; i < n; i++) tile(arg, i);
}
