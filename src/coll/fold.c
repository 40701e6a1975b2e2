/* Reductions of arrays: see fold.h. Each element is computed by itself, so the bits depend neither on the width of vectors nor on how
 * an array is cut. */
#include "coll/fold.h"

#include <string.h>

#include "base/checked.h"
#include "base/wide_vectors.h"

#define LANES       32   /* elements of a loop of constant length, which the compiler turns into vectors */
#define BLOCK_BYTES 4096 /* a sum of many arrays stays in the first cache */

#define PLUS(a, b)  ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define LEAST(a, b) ((b) < (a) ? (b) : (a))
#define MOST(a, b)  ((b) > (a) ? (b) : (a))

/* Loads stand before stores, so `into` may be one of the others. W: what T is computed in (integers wrap around). */
#define LOOP(name, T, W, OP)                                                                              \
    SHMT_FOR_WIDE_VECTORS static void name(void *into, const void *left, const void *right, uint64_t n) { \
        T *const out = into;                                                                              \
        const T *const a = left, *const b = right;                                                        \
        uint64_t i = 0;                                                                                   \
        for (; i + LANES <= n; i += LANES) {                                                              \
            T t[LANES];                                                                                   \
            for (int k = 0; k < LANES; k++) t[k] = (T)OP((W)a[i + (uint64_t)k], (W)b[i + (uint64_t)k]);   \
            memcpy(out + i, t, sizeof t);                                                                 \
        }                                                                                                 \
        for (; i < n; i++) out[i] = (T)OP((W)a[i], (W)b[i]);                                              \
    }

#define LOOPS(T, U, suffix)             \
    LOOP(sum_##suffix, T, U, PLUS)      \
    LOOP(product_##suffix, T, U, TIMES) \
    LOOP(min_##suffix, T, T, LEAST)     \
    LOOP(max_##suffix, T, T, MOST)

LOOPS(float, float, float)
LOOPS(double, double, double)
LOOPS(int32_t, uint32_t, int32)
LOOPS(int64_t, uint64_t, int64)

typedef void loop(void *into, const void *left, const void *right, uint64_t n);

#define ROW(suffix) \
    { sum_##suffix, min_##suffix, max_##suffix, product_##suffix }
static loop *const TABLE[4][4] = {ROW(float), ROW(double), ROW(int32), ROW(int64)};

uint32_t shmt_coll_type_bytes(uint32_t type) {
    static const uint32_t BYTES[] = {sizeof(float), sizeof(double), sizeof(int32_t), sizeof(int64_t)};
    return type < sizeof BYTES / sizeof *BYTES ? BYTES[type] : 0;
}

void shmt_coll_fold(const struct shmt_coll_fold *how, void *into, const void *a, const void *b, uint64_t n) {
    if (how->op != SHMTRAIN_OWN) {
        TABLE[how->type][how->op](into, a, b, n);
        return;
    }
    if (into != a) memcpy(into, a, n * shmt_coll_type_bytes(how->type));
    how->combine(how->arg, into, b, n);
}

/* `into` may be any of them: so it is written when all of a block have been read. */
void shmt_coll_fold_all(const struct shmt_coll_fold *how, void *into, const void *const *x, uint32_t m, uint64_t n) {
    const uint64_t each = shmt_coll_type_bytes(how->type), block = BLOCK_BYTES / (each > 0 ? each : 1);
    double room[BLOCK_BYTES / sizeof(double)];
    if (m == 1) memmove(into, x[0], n * each);
    if (m == 2 && (how->op != SHMTRAIN_OWN || into == x[0])) shmt_coll_fold(how, into, x[0], x[1], n);
    if (m == 1 || (m == 2 && (how->op != SHMTRAIN_OWN || into == x[0]))) return;
    for (uint64_t at = 0; at < n; at += block) {
        const uint64_t here = shmt_min_u64(block, n - at);
        shmt_coll_fold(how, room, (const char *)x[0] + at * each, (const char *)x[1] + at * each, here);
        for (uint32_t j = 2; j < m; j++) shmt_coll_fold(how, room, room, (const char *)x[j] + at * each, here);
        memcpy((char *)into + at * each, room, here * each);
    }
}
