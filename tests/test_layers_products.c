/* Products of small matrices and sums of outer products, by the processor's loop and by the BLAS, against the plain loop. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layers/outer_products.h"
#include "layers/small_product.h"
#include "layers_help.h"

enum { M = 40, N = 48, K = 37, A_ROW = 41, A_STEP = 43, C_ROW = 53 };
static float g_a[M * A_ROW + K * A_STEP], g_b[N * (K + 2)], g_c[M * C_ROW], g_old[M * C_ROW];

typedef void multiply(const struct shmt_small_product *p);

static void check(multiply *by, struct shmt_small_product p) {
    net_fill(g_old, M * C_ROW, 3);
    net_fill(g_c, M * C_ROW, 3);
    by(&p);
    for (uint32_t i = 0; i < M; i++)
        for (uint32_t j = 0; j < C_ROW; j++) {
            const float got = g_c[i * C_ROW + j], old = g_old[i * C_ROW + j];
            double want = p.add ? (double)old : 0;
            if (i >= p.m || j >= p.n) {
                assert_true(got == old); /* beyond the matrix nothing is written */
                continue;
            }
            for (uint32_t l = 0; l < p.k; l++)
                want += (double)p.a[i * p.a_row + l * p.a_step] *
                        (double)p.b[j / SHMT_PANEL * p.b_panel + l * p.b_row + j % SHMT_PANEL];
            /* k products below 1 are added, each sum rounded by 2^-24 of at most k + 1 */
            if (!(fabs(want - (double)got) <= (p.k + 1) * (p.k + 1) * 0x1p-24))
                fail_msg("(%u, %u, %u): %.8f, not %.8f", p.m, p.n, p.k, (double)got, want);
        }
}

static void check_sizes(multiply *by) {
    static const uint32_t ROWS[] = {1, 2, 3, 4, 5, 6, 7, 12, 40}, COLS[] = {8, 16, 24, 48}, DEPTHS[] = {1, 2, 37};
    net_fill(g_a, sizeof g_a / sizeof *g_a, 1);
    net_fill(g_b, sizeof g_b / sizeof *g_b, 2);
    for (uint32_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        for (uint32_t j = 0; j < sizeof COLS / sizeof *COLS; j++)
            for (uint32_t l = 0; l < sizeof DEPTHS / sizeof *DEPTHS; l++)
                for (uint32_t form = 0; form < 8; form++) {
                    const bool turned = form & 1, panels = form & 2, add = form & 4;
                    check(by, (struct shmt_small_product){.a = g_a,
                                                          .b = g_b,
                                                          .c = g_c,
                                                          .a_row = turned ? 1 : A_ROW,
                                                          .a_step = turned ? A_STEP : 1,
                                                          .b_panel = panels ? K * SHMT_PANEL + 8 : SHMT_PANEL,
                                                          .b_row = panels ? SHMT_PANEL : N,
                                                          .c_row = C_ROW,
                                                          .m = ROWS[i],
                                                          .n = COLS[j],
                                                          .k = DEPTHS[l],
                                                          .add = add});
                }
}

static void products_are_those_of_the_plain_loop(void **state) {
    (void)state;
    net_need_blas();
    check_sizes(shmt_small_multiply);
}

static void so_are_those_of_other_processors(void **state) {
    (void)state;
    net_need_blas();
    check_sizes(shmt_small_multiply_by_blas);
}

/* ---- sums of outer products ---- */

enum { MOST_K = 520, MOST_M = 37, MOST_N = 150 };
static float g_g[MOST_K * MOST_M], g_x[MOST_K * MOST_N], g_sums[MOST_M * MOST_N], g_before[MOST_M * MOST_N];

typedef void multiply_outer(const struct shmt_outer_products *p);

static void check_outer(multiply_outer *by, struct shmt_outer_products p) {
    const uint32_t floats = p.m * p.n;
    _Alignas(64) static float scratch[MOST_K * (MOST_M + 8)];
    assert_true(shmt_outer_scratch(p.k, p.m) <= sizeof scratch / sizeof *scratch);
    net_fill(g_before, MOST_M * MOST_N, 3);
    memcpy(g_sums, g_before, sizeof g_sums);
    p.scratch = scratch;
    by(&p);
    for (uint32_t i = 0; i < floats; i++) {
        double want = p.add ? (double)g_before[i] : 0;
        for (uint32_t l = 0; l < p.k; l++) want += (double)p.g[l * p.m + i / p.n] * (double)p.x[l * p.n + i % p.n];
        if (!(fabs(want - (double)g_sums[i]) <= (p.k + 1) * sqrt(p.k + 1) * 0x1p-23))
            fail_msg("(%u, %u, %u) at %u: %.8f, not %.8f", p.k, p.m, p.n, i, (double)g_sums[i], want);
    }
    assert_memory_equal(g_sums + floats, g_before + floats, (MOST_M * MOST_N - floats) * sizeof(float));
}

/* More examples than are packed at a time, rows and columns that fill no tile, and more columns than one thread's block. */
static void check_outer_sizes(multiply_outer *by) {
    static const uint32_t K_OF[] = {1, 2, 37, 256, 257, 520}, M_OF[] = {1, 5, 6, 13, 37}, N_OF[] = {1, 8, 15, 16, 17, 150};
    net_fill(g_g, MOST_K * MOST_M, 1);
    net_fill(g_x, MOST_K * MOST_N, 2);
    for (uint32_t k = 0; k < sizeof K_OF / sizeof *K_OF; k++)
        for (uint32_t m = 0; m < sizeof M_OF / sizeof *M_OF; m++)
            for (uint32_t n = 0; n < sizeof N_OF / sizeof *N_OF; n++)
                for (uint32_t form = 0; form < 4; form++)
                    check_outer(by, (struct shmt_outer_products){.g = g_g,
                                                                 .x = g_x,
                                                                 .c = g_sums,
                                                                 .k = K_OF[k],
                                                                 .m = M_OF[m],
                                                                 .n = N_OF[n],
                                                                 .threads = form & 1 ? 2 : 1,
                                                                 .add = form & 2});
}

static void sums_of_outer_products_are_those_of_the_plain_loop(void **state) {
    (void)state;
    net_need_blas();
    check_outer_sizes(shmt_outer_multiply);
}

/* Large enough that threads are woken. */
static void threads_change_no_bit_of_outer_products(void **state) {
    enum { ALL_K = 257, ALL_M = 37, ALL_N = 1050 };
    static float one[ALL_M * ALL_N], several[ALL_M * ALL_N];
    _Alignas(64) static float scratch[256 * (ALL_M + 8)];
    float *g = malloc(ALL_K * ALL_M * sizeof *g), *x = malloc(ALL_K * ALL_N * sizeof *x);
    (void)state;
    net_need_blas();
    assert_true(g && x && shmt_outer_scratch(ALL_K, ALL_M) <= sizeof scratch / sizeof *scratch);
    net_fill(g, ALL_K * ALL_M, 1);
    net_fill(x, ALL_K * ALL_N, 2);
    struct shmt_outer_products p = {
        .g = g, .x = x, .c = one, .k = ALL_K, .m = ALL_M, .n = ALL_N, .threads = 1, .scratch = scratch};
    shmt_outer_multiply(&p);
    p.c = several;
    for (p.threads = 2; p.threads <= 3; p.threads++) {
        memset(several, 0xff, sizeof several);
        shmt_outer_multiply(&p);
        assert_memory_equal(one, several, sizeof one);
    }
    free(g);
    free(x);
}

static void so_are_those_of_outer_products_on_other_processors(void **state) {
    (void)state;
    net_need_blas();
    check_outer_sizes(shmt_outer_multiply_by_blas);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_the_plain_loop),
        cmocka_unit_test(so_are_those_of_other_processors),
        cmocka_unit_test(sums_of_outer_products_are_those_of_the_plain_loop),
        cmocka_unit_test(threads_change_no_bit_of_outer_products),
        cmocka_unit_test(so_are_those_of_outer_products_on_other_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
