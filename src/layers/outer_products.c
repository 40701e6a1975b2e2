/* Sums of outer products: see outer_products.h. */
#include "layers/outer_products.h"

#include <string.h>

#include "layers/small_product.h"
#include "math/blas.h"
#include "math/parallel.h"

enum { TILE = 6 };    /* rows of c that are computed at a time: columns of G that stand together when it is packed */
enum { DEPTH = 256 }; /* examples whose rows are packed at a time, so that a panel of X stays in the first cache */
enum { NEAR = 192, MOST_PANELS = 12 }; /* rows of all panels that are packed at a time; panels */
enum { ROWS = 128, COLS = 1024 };      /* of a block for the BLAS */
#define PRODUCT_NS 0.02                /* of one multiplication; it decides how many threads are worth it */

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t blocks_of(uint32_t n, uint32_t size) { return (n + size - 1) / size; }

uint64_t shmt_outer_scratch(uint32_t k, uint32_t m) { return (uint64_t)lesser(k, DEPTH) * blocks_of(m, TILE) * TILE; }

/* A run of `tile` over all blocks, for k examples. */
static void run(const struct shmt_outer_products *p, uint32_t k, uint64_t blocks, shmt_tile *tile, void *arg) {
    const double ns = (double)k * p->m * p->n * PRODUCT_NS;
    shmt_parallel(shmt_parallel_worth(p->threads, ns), blocks, tile, arg);
}

/* ---- by the BLAS ---- */

static void blas_block(void *arg, uint64_t i) {
    const struct shmt_outer_products *p = arg;
    const uint32_t across = blocks_of(p->n, COLS), row = (uint32_t)(i / across) * ROWS, col = (uint32_t)(i % across) * COLS;
    const struct shmt_matrix c = {p->c + (uint64_t)row * p->n + col, lesser(ROWS, p->m - row), lesser(COLS, p->n - col), p->n};
    shmt_sgemm((struct shmt_factor){p->g + row, p->m, true}, (struct shmt_factor){p->x + col, p->n, false}, p->k,
               p->add ? 1 : 0, c);
}

void shmt_outer_multiply_by_blas(const struct shmt_outer_products *p) {
    struct shmt_outer_products all = *p;
    run(p, p->k, (uint64_t)blocks_of(p->m, ROWS) * blocks_of(p->n, COLS), blas_block, &all);
}

/* ---- by the processor's loop ---- */

/* Some examples, `k` from `first` on, with their rows of G packed: tile by tile, (k, TILE) each. */
struct part {
    const struct shmt_outer_products *of;
    uint32_t first, k, panels;
    bool add;
};

static void pack_g(const struct shmt_outer_products *p, uint32_t first, uint32_t k) {
    float *to = p->scratch;
    for (uint32_t row = 0; row < p->m; row += TILE) {
        const uint32_t rows = lesser(TILE, p->m - row);
        const float *from = p->g + (uint64_t)first * p->m + row;
        for (uint32_t l = 0; l < k; l++, from += p->m, to += TILE)
            for (uint32_t r = 0; r < TILE; r++) to[r] = r < rows ? from[r] : 0;
    }
}

/* Columns from .. to - 1 of X's rows as panels, (k, 16) each: 0 beyond the last column. While they are copied, those behind them are
 * asked for. */
static void pack_x(const struct part *part, uint32_t from, uint32_t to, float *x) {
    const uint64_t n = part->of->n, each = (uint64_t)part->k * SHMT_PANEL;
    const float *row = part->of->x + part->first * n;
    for (uint32_t l = 0; l < part->k; l++, row += n) {
        float *at = x + (uint64_t)l * SHMT_PANEL;
        for (uint32_t col = from; col < to; col += SHMT_PANEL, at += each) {
            const uint32_t cols = lesser(SHMT_PANEL, to - col);
            /* The next block; past the end of the last row that does no harm. */
            __builtin_prefetch((const void *)((uintptr_t)(row + col) + (to - from) * sizeof *row));
            if (cols < SHMT_PANEL) memset(at, 0, SHMT_PANEL * sizeof *at);
            if (cols < SHMT_PANEL)
                memcpy(at, row + col, cols * sizeof *at);
            else
                memcpy(at, row + col, SHMT_PANEL * sizeof *at);
        }
    }
}

/* `cols` < 16 columns of a tile, by way of one that has all. */
static void multiply_last(const struct shmt_small_product *whole, uint32_t cols) {
    float c[TILE][SHMT_PANEL];
    struct shmt_small_product p = *whole;
    p.c = c[0];
    p.c_row = SHMT_PANEL;
    p.add = false;
    shmt_small_multiply(&p);
    for (uint32_t r = 0; r < p.m; r++)
        for (uint32_t j = 0; j < cols; j++) {
            float *to = whole->c + r * whole->c_row + j;
            *to = whole->add ? *to + c[r][j] : c[r][j];
        }
}

/* Rows row .. row + TILE - 1 of c, columns col .. col + 15, of a packed panel of X. */
static void tile(const struct part *part, uint32_t row, uint32_t col, const float *x) {
    const struct shmt_outer_products *p = part->of;
    const uint32_t cols = lesser(SHMT_PANEL, p->n - col);
    const struct shmt_small_product whole = {.a = p->scratch + (uint64_t)row * part->k,
                                             .b = x,
                                             .c = p->c + (uint64_t)row * p->n + col,
                                             .a_row = 1,
                                             .a_step = TILE,
                                             .b_panel = SHMT_PANEL,
                                             .b_row = SHMT_PANEL,
                                             .c_row = p->n,
                                             .m = lesser(TILE, p->m - row),
                                             .n = SHMT_PANEL,
                                             .k = part->k,
                                             .add = part->add};
    if (cols == SHMT_PANEL)
        shmt_small_multiply(&whole);
    else
        multiply_last(&whole, cols);
}

/* The panels of X that are packed at a time. The fewer examples, the more of them: rows of c, which are pages apart, are then written
 * some lines at a time. */
static void panels(void *arg, uint64_t i) {
    const struct part *part = arg;
    const uint32_t width = part->panels * SHMT_PANEL, from = (uint32_t)i * width, to = lesser(part->of->n, from + width);
    _Alignas(64) float x[DEPTH * SHMT_PANEL];
    const uint32_t each = part->k * SHMT_PANEL;
    pack_x(part, from, to, x);
    for (uint32_t row = 0; row < part->of->m; row += TILE)
        for (uint32_t col = from, at = 0; col < to; col += SHMT_PANEL, at += each) tile(part, row, col, x + at);
}

/* So that they stay in the first cache, beside a tile of G. Two at a time are slower than one, and than three. */
static uint32_t panels_of(uint32_t k) {
    const uint32_t fit = NEAR / k;
    return fit < 3 ? 1 : lesser(fit, MOST_PANELS);
}

static void multiply_by_loop(const struct shmt_outer_products *p) {
    for (uint32_t first = 0; first < p->k; first += DEPTH) {
        const uint32_t k = lesser(DEPTH, p->k - first);
        struct part part = {p, first, k, panels_of(k), p->add || first > 0};
        pack_g(p, first, k);
        run(p, k, blocks_of(p->n, part.panels * SHMT_PANEL), panels, &part);
    }
}

void shmt_outer_multiply(const struct shmt_outer_products *p) {
    if (shmt_small_has_loop())
        multiply_by_loop(p);
    else
        shmt_outer_multiply_by_blas(p);
}
