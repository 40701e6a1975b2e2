/* Products of small matrices: see small_product.h. */
#include "layers/small_product.h"

#include "math/blas.h"

/* By the BLAS, panel by panel. */
void shmt_small_multiply_by_blas(const struct shmt_small_product *p) {
    const bool turned = p->a_step != 1;
    const struct shmt_factor a = {p->a, turned ? p->a_step : p->a_row, turned};
    if (p->b_panel == SHMT_PANEL) {
        shmt_sgemm(a, (struct shmt_factor){p->b, p->b_row, false}, p->k, p->add ? 1 : 0,
                   (struct shmt_matrix){p->c, p->m, p->n, p->c_row});
        return;
    }
    for (uint32_t j = 0; j < p->n; j += SHMT_PANEL) {
        const uint32_t n = p->n - j < SHMT_PANEL ? p->n - j : SHMT_PANEL;
        shmt_sgemm(a, (struct shmt_factor){p->b + j / SHMT_PANEL * p->b_panel, p->b_row, false}, p->k, p->add ? 1 : 0,
                   (struct shmt_matrix){p->c + j, p->m, n, p->c_row});
    }
}

#ifdef __x86_64__
#    include <immintrin.h>

#    define WITH_FMA    __attribute__((target("avx2,fma")))
#    define ALWAYS_HERE __attribute__((always_inline, target("avx2,fma"))) static inline

enum { ROWS = 6, LANES = 8 }; /* 6 rows of 2 vectors are sums in 12 of the 16 registers */

/* One block of c: `rows` <= ROWS rows, 8 or 16 columns, which are constants where this is inlined. */
ALWAYS_HERE void block(const struct shmt_small_product *p, const float *a, const float *b, float *c, uint32_t rows,
                       uint32_t vectors) {
    __m256 sum[ROWS][2];
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < vectors; v++)
            sum[r][v] = p->add ? _mm256_loadu_ps(c + r * p->c_row + v * LANES) : _mm256_setzero_ps();
    for (uint32_t l = 0; l < p->k; l++, a += p->a_step, b += p->b_row) {
        const __m256 first = _mm256_loadu_ps(b), second = vectors > 1 ? _mm256_loadu_ps(b + LANES) : first;
        for (uint32_t r = 0; r < rows; r++) {
            const __m256 x = _mm256_broadcast_ss(a + r * p->a_row);
            sum[r][0] = _mm256_fmadd_ps(x, first, sum[r][0]);
            if (vectors > 1) sum[r][1] = _mm256_fmadd_ps(x, second, sum[r][1]);
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t v = 0; v < vectors; v++) _mm256_storeu_ps(c + r * p->c_row + v * LANES, sum[r][v]);
}

/* The rows below the last whole block. */
ALWAYS_HERE void last_rows(const struct shmt_small_product *p, const float *a, const float *b, float *c, uint32_t rows,
                           uint32_t vectors) {
    switch (rows) {
        case 1:
            block(p, a, b, c, 1, vectors);
            break;
        case 2:
            block(p, a, b, c, 2, vectors);
            break;
        case 3:
            block(p, a, b, c, 3, vectors);
            break;
        case 4:
            block(p, a, b, c, 4, vectors);
            break;
        case 5:
            block(p, a, b, c, 5, vectors);
            break;
        default:
            break;
    }
}

ALWAYS_HERE void panel(const struct shmt_small_product *p, const float *b, float *c, uint32_t vectors) {
    uint32_t i = 0;
    for (; i + ROWS <= p->m; i += ROWS) block(p, p->a + i * p->a_row, b, c + i * p->c_row, ROWS, vectors);
    last_rows(p, p->a + i * p->a_row, b, c + i * p->c_row, p->m - i, vectors);
}

WITH_FMA static void multiply_by_fma(const struct shmt_small_product *p) {
    for (uint32_t j = 0; j < p->n; j += SHMT_PANEL) {
        const float *b = p->b + j / SHMT_PANEL * p->b_panel;
        if (p->n - j >= SHMT_PANEL)
            panel(p, b, p->c + j, 2);
        else
            panel(p, b, p->c + j, 1);
    }
}

bool shmt_small_has_loop(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
bool shmt_small_has_loop(void) { return false; }
static void multiply_by_fma(const struct shmt_small_product *p) { shmt_small_multiply_by_blas(p); }
#endif

void shmt_small_multiply(const struct shmt_small_product *p) {
    if (shmt_small_has_loop())
        multiply_by_fma(p);
    else
        shmt_small_multiply_by_blas(p);
}
