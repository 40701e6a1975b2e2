/* Summing lists of terms: see terms.h. Called by backends, by way of path.h; compiled for each CPU path. */
#include "update/path_names_priv.h"

#include "update/terms.h"

#include <string.h>

#define AT_A_TIME 64

static inline void add(const uint32_t *id, const float *value, uint32_t k, float *sum, uint8_t *touched) {
    sum[id[k]] += value[k];
    touched[id[k] / SHMT_TERMS_BLOCK] = 1;
}

/* Which of 64 terms are in the range, a bit for each. A branch for each would be guessed wrong for every other one. */
static inline uint64_t find(const uint32_t *id, uint32_t from, uint32_t to) {
    uint64_t found = 0;
#ifdef __AVX2__
    typedef uint32_t eight __attribute__((vector_size(32)));
    for (uint32_t k = 0; k < AT_A_TIME; k += 8) {
        eight ids;
        memcpy(&ids, id + k, sizeof ids);
        const eight inside = (eight)(ids - from < to - from);
        found |= (uint64_t)(uint32_t)__builtin_ia32_movmskps256((float __attribute__((vector_size(32))))inside) << k;
    }
#else
    for (uint32_t k = 0; k < AT_A_TIME; k++) found |= (uint64_t)(id[k] - from < to - from) << k;
#endif
    return found;
}

void shmt_terms_sum(const uint32_t *id, const float *value, uint32_t n, uint32_t from, uint32_t to, float *sum,
                    uint8_t *touched) {
    uint32_t k = 0;
    for (; k + AT_A_TIME <= n; k += AT_A_TIME) {
        uint64_t found = find(id + k, from, to);
        for (; found != 0; found &= found - 1) add(id + k, value + k, (uint32_t)__builtin_ctzll(found), sum, touched);
    }
    for (; k < n; k++)
        if (id[k] - from < to - from) add(id, value, k, sum, touched);
}
