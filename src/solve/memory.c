/* The shared memory of a fit: see memory.h. */
#include "solve/memory.h"

#include <math.h>
#include <stddef.h>

#include "base/checked.h"

#define LEAST_ROWS    64
#define COLUMNS       64    /* blocks of columns, where there are that many; more where columns are very many */
#define HEAPS_FROM    16384 /* examples */
#define WORTH         6 /* additions for each number of each heap (hessian.h: matrix), which is cleared and read once a pass, ... */
#define LEAST_HEAPS   4          /* ... and how many there are to be, at least, for so many workers to share the pass, ... */
#define MOST_HEAPS    32         /* ... and at most */
#define MATRIX_BYTES  (32 << 20) /* of matrices, at most, and ... */
#define MOST_MATRICES 16         /* ... how many */

/* Slabs count each column, which for few rows of very many columns would take more memory than the entries themselves. */
static uint32_t slabs_of(const struct shmt_solve_sizes *of, uint32_t n_row_blocks) {
    const uint64_t worth = of->n_nonzeros / (2 * shmt_max_u64(1, of->n_columns));
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(shmt_min_u64(worth, SHMT_SOLVE_SLABS), n_row_blocks));
}

/* What a pass by columns looks up of few examples is in a core's own cache, and of few columns rows would wait for one another's sums. */
static uint32_t groups_of(const struct shmt_solve_sizes *of, uint32_t n_row_blocks, bool direct) {
    const uint64_t worth = shmt_min_u64(of->n_nonzeros / (WORTH * shmt_max_u64(1, of->n_columns)), MOST_HEAPS);
    if (of->heaped) return (uint32_t)shmt_min_u64(LEAST_HEAPS, n_row_blocks);
    if (of->n < HEAPS_FROM || direct || of->n_classes > 1 || worth < LEAST_HEAPS) return 0;
    return (uint32_t)shmt_min_u64(worth, n_row_blocks);
}

/* Products of entries, were all rows of one length, for each number of all matrices. */
static uint32_t matrices_of(const struct shmt_solve_plan *plan) {
    const struct shmt_solve_sizes *of = &plan->of;
    const double m = (double)of->n_columns + of->bias, nonzeros = (double)of->n_nonzeros;
    const double worth = nonzeros * nonzeros / (2 * WORTH * (double)of->n * m * m),
                 room = MATRIX_BYTES / (m * m * sizeof(double));
    const double most = fmin(fmin(worth, room), fmin(MOST_MATRICES, plan->n_row_blocks));
    return plan->direct && (most >= LEAST_HEAPS || of->heaped) ? (uint32_t)fmax(1, most) : 0;
}

uint64_t shmt_solve_add(uint64_t *bytes, uint64_t n, uint64_t size) {
    const uint64_t at = *bytes;
    *bytes += shmt_ceil_div(n * size, SHMT_SOLVE_ALIGNMENT) * SHMT_SOLVE_ALIGNMENT;
    return at;
}

enum { OF_COLUMNS = 13 }; /* arrays of doubles in struct shmt_solve_memory */

static uint32_t arrays_of(const struct shmt_solve_sizes *of) {
    return OF_COLUMNS + of->has_scales + (of->n_held > 0 ? 1 + of->n_held : 0);
}

/* Room for one array: they begin on lines of their own. */
static uint64_t stride(uint64_t n) {
    return shmt_ceil_div(n, SHMT_SOLVE_ALIGNMENT / sizeof(double)) * (SHMT_SOLVE_ALIGNMENT / sizeof(double));
}

bool shmt_solve_has_inner(const struct shmt_solve_plan *plan) { return plan->of.is_hinge && !plan->of.is_live && plan->direct; }

bool shmt_solve_has_dual(const struct shmt_solve_sizes *of) { return of->is_hinge || of->is_live; }

void shmt_solve_plan(const struct shmt_solve_sizes *sizes, struct shmt_solve_plan *out) {
    const uint64_t n = sizes->n, m = (uint64_t)sizes->n_columns + sizes->bias, wide = sizes->n_classes;
    const bool is_wide = wide > 1;
    struct shmt_solve_plan p = {.of = *sizes};
    p.row_block = shmt_max_u64(LEAST_ROWS, shmt_ceil_div(n, SHMT_SOLVE_BLOCKS));
    p.n_row_blocks = (uint32_t)shmt_ceil_div(n, p.row_block);
    const uint64_t most = m > 64 * COLUMNS ? SHMT_SOLVE_BLOCKS : COLUMNS;
    p.col_block = (uint32_t)shmt_max_u64(1, shmt_ceil_div(m, most));
    p.n_col_blocks = (uint32_t)shmt_ceil_div(m, p.col_block);
    p.n_slabs = slabs_of(sizes, p.n_row_blocks);
    p.direct = m <= SHMT_SOLVE_DIRECT && !is_wide;
    p.n_groups = groups_of(sizes, p.n_row_blocks, p.direct);
    p.heap_width = 2 + sizes->bias;
    p.turns = p.n_groups == 0 || p.direct || sizes->has_l1 || sizes->has_scales;
    const uint64_t turned = p.turns ? 1 : 0, slabs = turned * p.n_slabs * sizes->n_columns;
    p.start_off = shmt_solve_add(&p.bytes, turned * (sizes->n_columns + UINT64_C(1)), sizeof(uint64_t));
    p.count_off = shmt_solve_add(&p.bytes, slabs, sizeof(uint32_t));
    p.cursor_off = shmt_solve_add(&p.bytes, slabs, sizeof(uint64_t));
    p.row_off = shmt_solve_add(&p.bytes, turned * sizes->n_nonzeros, sizeof(uint32_t));
    p.value_off = shmt_solve_add(&p.bytes, sizes->has_values ? turned * sizes->n_nonzeros : 0, sizeof(float));
    p.heap_off = shmt_solve_add(&p.bytes, (uint64_t)p.n_groups * sizes->n_columns * p.heap_width, sizeof(double));
    p.slope_off = shmt_solve_add(&p.bytes, is_wide ? 0 : n, sizeof(struct shmt_solve_slope));
    p.score_off = shmt_solve_add(&p.bytes, n * wide, sizeof(double));
    p.scaled_off = shmt_solve_add(&p.bytes, n * wide, sizeof(double));
    p.square_off = shmt_solve_add(&p.bytes, shmt_solve_has_dual(sizes) ? n : 0, sizeof(double));
    p.inner_off =
        shmt_solve_add(&p.bytes, shmt_solve_has_inner(&p) ? n : 0, 2 * sizeof(struct shmt_interior) + 3 * sizeof(double));
    p.class_off = shmt_solve_add(&p.bytes, is_wide ? n : 0, sizeof(uint32_t));
    p.heft_off = shmt_solve_add(&p.bytes, is_wide ? n : 0, sizeof(double));
    p.by_classes_off =
        shmt_solve_add(&p.bytes, is_wide ? 2 * SHMT_SOLVE_CLASS_SUMS * p.n_row_blocks * wide : 0, sizeof(double));
    p.row_bytes = p.bytes;
    p.saved_off = shmt_solve_add(&p.bytes, 2, sizeof(struct shmt_solve_state));
    p.note_off = shmt_solve_add(&p.bytes, 1, sizeof(struct shmt_solve_note));
    p.sums_off = shmt_solve_add(&p.bytes, 2 * SHMT_SOLVE_SUMS * SHMT_SOLVE_BLOCKS, sizeof(double));
    p.columns_off = shmt_solve_add(&p.bytes, arrays_of(sizes) * stride(m * wide), sizeof(double));
    p.hessian_off = shmt_solve_add(&p.bytes, p.direct ? 2 * m * m : 0, sizeof(double));
    p.n_matrices = matrices_of(&p);
    p.matrices_off = shmt_solve_add(&p.bytes, p.n_matrices * m * m, sizeof(double));
    *out = p;
}

void shmt_solve_plan_sample(const struct shmt_solve_plan *of, uint64_t n, uint64_t n_nonzeros, struct shmt_solve_plan *out) {
    struct shmt_solve_sizes sizes = of->of;
    sizes.n = n;
    sizes.n_nonzeros = n_nonzeros;
    shmt_solve_plan(&sizes, out);
    if (out->n_matrices > of->n_matrices)
        out->n_matrices = of->n_matrices; /* there is room for no more, though rows be longer */
}

static void set_hinge(const struct shmt_solve_plan *plan, unsigned char *at, struct shmt_solve_memory *out) {
    const uint64_t n = plan->of.n;
    out->square = (double *)(void *)(at + plan->square_off);
    if (!shmt_solve_has_inner(plan)) return;
    for (uint32_t k = 0; k < 2; k++) out->inner[k] = (struct shmt_interior *)(void *)(at + plan->inner_off) + k * n;
    out->wish = (double *)(void *)(out->inner[1] + n);
    for (uint32_t k = 0; k < 2; k++) out->along[k] = out->wish + (1 + k) * n;
}

static void set_rows(const struct shmt_solve_plan *plan, unsigned char *at, struct shmt_solve_memory *out) {
    out->start = (uint64_t *)(void *)(at + plan->start_off);
    out->count = (uint32_t *)(void *)(at + plan->count_off);
    out->cursor = (uint64_t *)(void *)(at + plan->cursor_off);
    out->row = (uint32_t *)(void *)(at + plan->row_off);
    out->value = plan->of.has_values ? (float *)(void *)(at + plan->value_off) : NULL;
    out->heap = (double *)(void *)(at + plan->heap_off);
    out->slope = (struct shmt_solve_slope *)(void *)(at + plan->slope_off);
    out->score = (double *)(void *)(at + plan->score_off);
    out->scaled = (double *)(void *)(at + plan->scaled_off);
    set_hinge(plan, at, out);
    if (plan->of.n_classes == 1) return;
    out->class_of = (uint32_t *)(void *)(at + plan->class_off);
    out->heft = (double *)(void *)(at + plan->heft_off);
    out->by_classes = (double *)(void *)(at + plan->by_classes_off);
}

static void set_columns(const struct shmt_solve_plan *plan, unsigned char *at, struct shmt_solve_memory *out) {
    const uint64_t m = ((uint64_t)plan->of.n_columns + plan->of.bias) * plan->of.n_classes;
    double *column = (double *)(void *)(at + plan->columns_off);
    double **of_columns[OF_COLUMNS] = {&out->w[0],         &out->w[1],         &out->gradient,          &out->diagonal,
                                       &out->direction[0], &out->direction[1], &out->residual[0],       &out->residual[1],
                                       &out->search[0],    &out->search[1],    &out->preconditioned[0], &out->preconditioned[1],
                                       &out->product};
    for (uint32_t i = 0; i < OF_COLUMNS; i++) *of_columns[i] = column + i * stride(m);
    column += OF_COLUMNS * stride(m);
    if (plan->of.has_scales) out->scale = column;
    if (plan->of.has_scales) column += stride(m);
    if (plan->of.n_held > 0) out->best = column;
    for (uint32_t part = 0; part < plan->of.n_held; part++) out->kept[part] = column + (1 + part) * stride(m);
}

void shmt_solve_memory_at(const struct shmt_solve_plan *plan, void *base, struct shmt_solve_memory *out) {
    unsigned char *at = base;
    const uint64_t m = (uint64_t)plan->of.n_columns + plan->of.bias;
    *out = (struct shmt_solve_memory){.saved = (struct shmt_solve_state *)(void *)(at + plan->saved_off),
                                      .note = (struct shmt_solve_note *)(void *)(at + plan->note_off),
                                      .sums = (double *)(void *)(at + plan->sums_off)};
    set_rows(plan, at, out);
    set_columns(plan, at, out);
    out->hessian = plan->direct ? (double *)(void *)(at + plan->hessian_off) : NULL;
    out->matrices = (double *)(void *)(at + plan->matrices_off);
    out->factor = plan->direct ? out->hessian + m * m : NULL;
}

void shmt_solve_memory_of_sample(const struct shmt_solve_plan *plan, void *base, const struct shmt_solve_memory *of,
                                 struct shmt_solve_memory *out) {
    *out = *of;
    set_rows(plan, base, out);
}

/* Each column counts as some entries more, for what is done to it anyway. */
enum { OVERHEAD = 8 };

/* The first block whose entries are not before `entry`. */
static uint64_t block_at(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint64_t entry) {
    uint64_t low = 0, high = plan->n_col_blocks;
    while (low < high) {
        const uint64_t middle = (low + high) / 2, column = shmt_min_u64(middle * plan->col_block, plan->of.n_columns);
        if (m->start[column] + column * OVERHEAD < entry)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where the columns are cut between the first `part` parts and the others; share: of their entries, the first parts' one. */
static uint64_t cut(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint32_t part, uint32_t n_parts,
                    double share) {
    const double all = (double)(m->start[plan->of.n_columns] + (uint64_t)plan->of.n_columns * OVERHEAD);
    return part == n_parts ? plan->n_col_blocks : block_at(plan, m, (uint64_t)(share * all));
}

void shmt_solve_share_columns(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint32_t part,
                              uint32_t n_parts, uint64_t *from, uint64_t *to) {
    if (plan->n_groups > 0) { /* a number of each heap, whatever is in a column */
        shmt_solve_share(plan->n_col_blocks, part, n_parts, from, to);
        return;
    }
    *from = cut(plan, m, part, n_parts, (double)part / n_parts);
    *to = cut(plan, m, part + 1, n_parts, (part + 1.0) / n_parts);
}

/* A share e of the entries is in 1 - (1 - e)^2 of the pairs. */
void shmt_solve_share_pairs(const struct shmt_solve_plan *plan, const struct shmt_solve_memory *m, uint32_t part,
                            uint32_t n_parts, uint64_t *from, uint64_t *to) {
    *from = cut(plan, m, part, n_parts, 1 - sqrt(1 - (double)part / n_parts));
    *to = cut(plan, m, part + 1, n_parts, 1 - sqrt(1 - (part + 1.0) / n_parts));
}
