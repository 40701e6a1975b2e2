/* The Hessian by rows: see hessian.h. */
#include "solve/hessian.h"

#include "solve/columns_priv.h"
#include "solve/heaps.h"

#define LOOK_EVERY (UINT64_C(1) << 22) /* products of entries */

/* Numbers of a row or column. */
static uint64_t width_of(const struct shmt_pass *pass) { return (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias; }

static double *matrix_of(const struct shmt_pass *pass, uint64_t group) {
    return pass->memory->matrices + group * width_of(pass) * width_of(pass);
}

/* An example's entries. */
struct entries {
    const uint32_t *id;
    const float *value; /* NULL: all 1 */
    uint64_t n;
};

static inline double value_of(const struct entries *row, uint64_t k) { return row->value ? (double)row->value[k] : 1; }

/* to[id] += factor x for entries from `k` on. */
static inline void add_entries(const struct entries *row, uint64_t k, double factor, double *to) {
    if (row->value)
        for (; k < row->n; k++) to[row->id[k]] += factor * (double)row->value[k];
    else
        for (; k < row->n; k++) to[row->id[k]] += factor;
}

/* The same where columns follow one another, as they do in tables: without looking them up. They ascend, and none is there twice. */
static inline void add_run(const struct entries *row, uint64_t k, double factor, double *to) {
    double *restrict at = to + row->id[0];
    const float *restrict value = row->value;
    if (value)
        for (; k < row->n; k++) at[k] += factor * (double)value[k];
    else
        for (; k < row->n; k++) at[k] += factor;
}

/* Where columns do not ascend, the smaller one is the row. */
static void add_pairs(const struct entries *row, double curve, uint64_t width, double *to) {
    for (uint64_t a = 0; a < row->n; a++)
        for (uint64_t b = a; b < row->n; b++) {
            const uint64_t x = row->id[a], y = row->id[b];
            const double product = curve * value_of(row, a) * value_of(row, b);
            to[(x < y ? x : y) * width + (x < y ? y : x)] +=
                x == y && a != b ? 2 * product : product; /* a column that is there twice */
        }
}

static void add_example(const struct shmt_pass *pass, const struct entries *row, double curve, double *to) {
    const uint64_t width = width_of(pass);
    const bool ascends = pass->state->ascending, runs = ascends && row->n > 0 && row->id[row->n - 1] - row->id[0] + 1 == row->n;
    if (!ascends) add_pairs(row, curve, width, to);
    for (uint64_t k = 0; k < row->n; k++) {
        const double factor = curve * value_of(row, k);
        double *line = to + row->id[k] * width;
        if (runs)
            add_run(row, k, factor, line);
        else if (ascends)
            add_entries(row, k, factor, line);
        if (pass->plan->of.bias) line[width - 1] += factor;
    }
}

/* Interior points: what most examples' small curvatures give. */
static void add_squares(const struct shmt_pass *pass, const struct entries *row, double curve, double *to) {
    const uint64_t width = width_of(pass);
    for (uint64_t k = 0; k < row->n; k++) {
        const double x = value_of(row, k);
        to[row->id[k] * (width + 1)] += x * x * curve;
    }
}

static void add_block(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_problem *p = pass->problem;
    const double small = shmt_small_curve(pass->state);
    double *matrix = matrix_of(pass, shmt_group_of(pass->plan, pass->plan->n_matrices, number));
    uint64_t products = 0; /* since I have looked up */
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        if (products > LOOK_EVERY) {
            if (!shmt_pass_goes_on(pass)) return;
            products = 0;
        }
        const uint64_t e = shmt_problem_example(p, i), first = p->data->start[e];
        const double curve = pass->memory->slope[i].curve;
        const struct entries row = {p->data->id + first, p->data->value ? p->data->value + first : NULL,
                                    p->data->start[e + 1] - first};
        products += row.n * row.n;
        if (curve > small)
            add_example(pass, &row, curve, matrix);
        else if (curve > 0)
            add_squares(pass, &row, curve, matrix);
    }
}

void shmt_hessian_add(const struct shmt_pass *pass) {
    const uint64_t bytes = width_of(pass) * width_of(pass) * sizeof(double);
    shmt_each_group(pass, pass->plan->n_matrices, pass->memory->matrices, bytes, bytes, NULL, add_block);
}

static void sum_row(const struct shmt_pass *pass, uint64_t j) {
    const uint64_t width = width_of(pass);
    double *row = pass->memory->hessian + j * width;
    memset(row, 0, width * sizeof *row);
    for (uint32_t g = 0; g < pass->plan->n_matrices; g++) {
        const double *of = matrix_of(pass, g) + j * width;
        for (uint64_t k = j; k < width; k++) row[k] += of[k];
    }
    if (shmt_is_bias(pass, j)) row[j] = pass->state->curve;
    for (uint64_t k = j; k < width; k++) row[k] /= (double)pass->problem->n;
    if (!shmt_is_bias(pass, j)) row[j] += shmt_pass_l2(pass, j);
}

/* Rows by turns, for the first ones are the longest. */
void shmt_hessian_sum(const struct shmt_pass *pass) {
    for (uint64_t j = pass->part; j < width_of(pass); j += pass->n_parts) {
        if (!shmt_pass_goes_on(pass)) return;
        sum_row(pass, j);
    }
}
