/* Passes for softmax: see wide.h. */
#include "solve/wide.h"

#include <math.h>
#include <string.h>

#include "base/wide_vectors.h"
#include "solve/columns_priv.h"
#include "solve/loss_priv.h"
#include "solve/rows_priv.h"

enum { FEW = 16 }; /* classes whose sums are kept in registers */

static uint32_t n_classes(const struct shmt_pass *pass) { return pass->problem->n_classes; }

/* Entries at .. to - 1 of a sparse row or column, each with the numbers of its column or row: `of` (columns, n). */
struct entries {
    const uint32_t *id;
    const float *value; /* NULL: all 1 */
    uint64_t at, to;
    const double *of;
    uint32_t n;
};

/* out[first ..] += of `width` classes: kept in registers, as the width is known. */
static inline __attribute__((always_inline)) void add_block(const struct entries *e, uint32_t first, uint32_t width,
                                                            double *restrict out) {
    double sum[8] = {0};
    for (uint64_t at = e->at; at < e->to; at++) {
        const double x = e->value ? (double)e->value[at] : 1;
        const double *restrict from = e->of + (uint64_t)e->id[at] * e->n + first;
        for (uint32_t k = 0; k < width; k++) sum[k] += x * from[k];
    }
    for (uint32_t k = 0; k < width; k++) out[first + k] += sum[k];
}

SHMT_FOR_WIDE_VECTORS static void add_few(const struct entries *e, double *restrict out) {
    uint32_t k = 0;
    for (; e->n - k >= 8; k += 8) add_block(e, k, 8, out);
    for (; e->n - k >= 4; k += 4) add_block(e, k, 4, out);
    for (; e->n - k >= 2; k += 2) add_block(e, k, 2, out);
    if (e->n > k) add_block(e, k, 1, out);
}

/* As many classes as make several vectors. */
SHMT_FOR_WIDE_VECTORS static void add_many(const struct entries *e, double *restrict out) {
    for (uint64_t at = e->at; at < e->to; at++) {
        const double x = e->value ? (double)e->value[at] : 1;
        const double *restrict from = e->of + (uint64_t)e->id[at] * e->n;
        for (uint32_t k = 0; k < e->n; k++) out[k] += x * from[k];
    }
}

/* out (n) += the entries' sum of x times their numbers. */
static void add_entries(const struct entries *e, double *restrict out) {
    if (e->n <= FEW)
        add_few(e, out);
    else
        add_many(e, out);
}

/* ---- sums by classes ---- */

static double *by_classes(const struct shmt_pass *pass, uint64_t round, enum shmt_solve_class_sums which, uint64_t block) {
    const uint64_t slot = (round % 2 * SHMT_SOLVE_CLASS_SUMS + which) * pass->plan->n_row_blocks + block;
    return pass->memory->by_classes + slot * n_classes(pass);
}

/* Of all blocks, as phase `round` has left them. */
static void add_blocks(const struct shmt_pass *pass, uint64_t round, enum shmt_solve_class_sums which, double *out) {
    memset(out, 0, n_classes(pass) * sizeof *out);
    for (uint32_t b = 0; b < pass->plan->n_row_blocks; b++) {
        const double *of = by_classes(pass, round, which, b);
        for (uint32_t k = 0; k < n_classes(pass); k++) out[k] += of[k];
    }
}

/* Sum of the weights of the examples that are trained on. */
static double sum_of(const double *count, uint32_t n) {
    double sum = 0;
    for (uint32_t k = 0; k < n; k++) sum += count[k];
    return sum;
}

static double mixture(const struct shmt_pass *pass, uint64_t round, double *share, double *count) {
    double t = 0;
    add_blocks(pass, round, SHMT_CLASS_SHARE, share);
    add_blocks(pass, round, SHMT_CLASS_COUNT, count);
    if (!pass->problem->bias) return 0;
    for (uint32_t k = 0; k < n_classes(pass); k++)
        if (share[k] > 0 && count[k] > 0) t = fmax(t, 1 - count[k] / share[k]);
    return t;
}

double shmt_wide_mixture(const struct shmt_pass *pass) {
    double share[SHMTRAIN_MAX_CLASSES], count[SHMTRAIN_MAX_CLASSES];
    return mixture(pass, pass->round, share, count);
}

/* What makes up for sums of u that are not 0. */
struct made_up {
    double more[SHMTRAIN_MAX_CLASSES]; /* r t: what each example gets of each class; 0: nothing is to be made up for */
    bool absent[SHMTRAIN_MAX_CLASSES]; /* a class without examples, */
    bool any_absent;                   /* ... of which there is one: then `more` is r itself */
};

/* With biases, q is 0 for classes that no example has: what p has of them goes to r, too. */
static void make_up(const struct shmt_pass *pass, struct made_up *out) {
    double share[SHMTRAIN_MAX_CLASSES], count[SHMTRAIN_MAX_CLASSES], lost = 0;
    const double t = mixture(pass, pass->round - 1, share, count), all = sum_of(count, n_classes(pass));
    const bool makes = pass->problem->bias && all > 0;
    for (uint32_t k = 0; k < n_classes(pass); k++) {
        out->absent[k] = makes && count[k] == 0;
        lost += out->absent[k] ? share[k] : 0;
    }
    out->any_absent = lost > 0;
    const double of = out->any_absent ? t * all + (1 - t) * lost : all;
    for (uint32_t k = 0; k < n_classes(pass); k++)
        out->more[k] = makes && !out->absent[k] ? (count[k] - (1 - t) * share[k]) / of : 0;
}

/* What a weighted sum of distributions, of which `part` are the sums by classes and `heavy` is the sum of the weights, gets of `more`. */
static double sum_of_more(const struct shmt_pass *pass, const struct made_up *made, const double *part, double heavy) {
    const double t = pass->state->shift;
    double lost = 0;
    if (!made->any_absent) return heavy;
    for (uint32_t k = 0; k < n_classes(pass); k++) lost += made->absent[k] ? part[k] : 0;
    return t * heavy + (1 - t) * lost;
}

/* ---- by rows ---- */

static uint32_t class_at(const struct shmt_problem *p, uint64_t i) {
    const float label = p->data->label[shmt_problem_example(p, i)];
    uint32_t low = 0, high = p->n_classes;
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (p->classes[middle] <= label)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void find_classes(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    (void)number, (void)unused;
    for (uint64_t i = from; i < to; i++) pass->memory->class_of[i] = class_at(pass->problem, i);
}

void shmt_wide_classes(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, find_classes); }

/* z = W x_i + b. */
static void scores_of(const struct shmt_pass *pass, uint64_t i, const double *w, double *z) {
    const struct shmt_problem *p = pass->problem;
    const struct shmtrain_data *data = p->data;
    const uint64_t e = shmt_problem_example(p, i);
    const uint32_t n = p->n_classes;
    if (p->bias)
        memcpy(z, w + (uint64_t)p->n_columns * n, n * sizeof *z);
    else
        memset(z, 0, n * sizeof *z);
    add_entries(&(struct entries){data->id, data->value, data->start[e], data->start[e + 1], w, n}, z);
}

/* Scores become probabilities; -log of that of class y. */
static double softmax(uint32_t n, double *z, uint32_t y) {
    double most = z[0], sum = 0, score = z[y];
    for (uint32_t k = 1; k < n; k++) most = fmax(most, z[k]);
    for (uint32_t k = 0; k < n; k++) sum += z[k] = exp(z[k] - most);
    for (uint32_t k = 0; k < n; k++) z[k] /= sum;
    return log(sum) + (most - score);
}

static void score(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    double *count = by_classes(pass, pass->round, SHMT_CLASS_COUNT, number), loss = 0, held = 0, heavy = 0, size = 0;
    double *share = by_classes(pass, pass->round, SHMT_CLASS_SHARE, number);
    double *curve = by_classes(pass, pass->round, SHMT_CLASS_CURVE, number);
    memset(count, 0, n * sizeof *count);
    memset(share, 0, n * sizeof *share);
    memset(curve, 0, n * sizeof *curve);
    for (uint64_t i = from; i < to; i++) {
        double *p = m->score + i * n, c = shmt_problem_weight(pass->problem, i);
        scores_of(pass, i, w, p);
        const double of = c * softmax(n, p, m->class_of[i]);
        m->heft[i] = shmt_pass_is_held(pass, i) ? 0 : c;
        if (m->heft[i] != c) {
            held += of;
            heavy += c;
            continue;
        }
        loss += of;
        size += 2 * c * (1 - p[m->class_of[i]]);
        count[m->class_of[i]] += c;
        for (uint32_t k = 0; k < n; k++) {
            share[k] += c * p[k];
            curve[k] += c * p[k] * (1 - p[k]);
        }
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss);
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, size);
    shmt_pass_put_sum(pass, SHMT_SUM_HELD, number, held);
    shmt_pass_put_sum(pass, SHMT_SUM_HEAVY, number, heavy);
}

void shmt_wide_score(const struct shmt_pass *pass, const double *w) { shmt_each_block(pass, w, score); }

static double loss_published(const struct shmt_pass *pass, uint64_t i) {
    const struct shmt_problem *p = pass->problem;
    const uint64_t e = shmt_problem_example(p, i);
    double z[SHMTRAIN_MAX_CLASSES];
    z[0] = 0;
    for (uint32_t k = 0; k < p->n_classes; k++) {
        const float *w = p->weight + (uint64_t)k * p->stride;
        z[k] = p->bias ? (double)p->bias_weight[k] : 0;
        for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++)
            z[k] += shmt_problem_value(p, at) * (double)w[p->data->id[at]];
    }
    return shmt_problem_weight(p, i) *
           softmax(p->n_classes, z, class_at(p, i)) /* a run that was stopped may not have noted it */;
}

static void verify(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    double loss = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++) loss += loss_published(pass, i);
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss);
}

void shmt_wide_verify(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, verify); }

/* q log q of an example whose p these are. */
static double entropy_of(const struct shmt_pass *pass, const struct made_up *made, const double *p) {
    const uint32_t n = n_classes(pass);
    const double part = 1 - pass->state->shift, share = sum_of_more(pass, made, p, 1);
    double of = 0;
    if (!made->any_absent)
        for (uint32_t k = 0; k < n; k++) of += shmt_x_log_x(part * p[k] + made->more[k]);
    else
        for (uint32_t k = 0; k < n; k++) of += made->absent[k] ? 0 : shmt_x_log_x(part * p[k] + share * made->more[k]);
    return of;
}

static void dual(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    struct made_up made;
    double sum = 0, terms = 0;
    (void)unused;
    make_up(pass, &made);
    for (uint64_t i = from; i < to; i++) {
        const double c = m->heft[i], of = entropy_of(pass, &made, m->score + i * n);
        sum += c * of;
        terms += c * (1 - of);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_DUAL, number, sum);
    shmt_pass_put_sum(pass, SHMT_SUM_TERMS, number, terms);
}

void shmt_wide_dual(const struct shmt_pass *pass) { shmt_each_block(pass, NULL, dual); }

static void scale(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *search) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    double *all = by_classes(pass, pass->round, SHMT_CLASS_SCALED, number);
    memset(all, 0, n * sizeof *all);
    for (uint64_t i = from; i < to; i++) {
        double *t = m->scaled + i * n, mean = 0;
        const double *p = m->score + i * n, c = m->heft[i];
        if (c == 0) {
            memset(t, 0, n * sizeof *t);
            continue;
        }
        scores_of(pass, i, search, t);
        for (uint32_t k = 0; k < n; k++) mean += p[k] * t[k];
        for (uint32_t k = 0; k < n; k++) all[k] += t[k] = c * p[k] * (t[k] - mean);
    }
}

void shmt_wide_scaled(const struct shmt_pass *pass, const double *search) { shmt_each_block(pass, search, scale); }

/* ---- by columns ---- */

/* A number for each class of each column, and one for each class. */
struct of_columns {
    const double *vector, *more;
};

static void slope_of_bias(const struct shmt_pass *pass, uint32_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    const uint64_t at = (uint64_t)j * n;
    double share[SHMTRAIN_MAX_CLASSES], count[SHMTRAIN_MAX_CLASSES], curve[SHMTRAIN_MAX_CLASSES];
    add_blocks(pass, pass->round - 1, SHMT_CLASS_SHARE, share);
    add_blocks(pass, pass->round - 1, SHMT_CLASS_COUNT, count);
    add_blocks(pass, pass->round - 1, SHMT_CLASS_CURVE, curve);
    for (uint32_t k = 0; k < n; k++) {
        m->gradient[at + k] = (share[k] - count[k]) / (double)pass->problem->n;
        m->diagonal[at + k] = curve[k] / (double)pass->problem->n;
    }
}

/* Sums over the entries of a column: of x c p_k - x c [k = y] to `slope`, of the second derivatives to `curve`, of x c p_k to `part`.
 * Returns that of x c. */
static double sum_column(const struct shmt_pass *pass, uint32_t j, double *slope, double *curve, double *part) {
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    double heavy = 0;
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++) {
        const uint64_t i = m->row[at];
        const double x = m->value ? (double)m->value[at] : 1, c = x * m->heft[i], *p = m->score + i * n;
        heavy += c;
        for (uint32_t k = 0; k < n; k++) {
            part[k] += c * p[k];
            curve[k] += x * c * p[k] * (1 - p[k]);
        }
        slope[m->class_of[i]] -= c;
    }
    for (uint32_t k = 0; k < n; k++) slope[k] += part[k];
    return heavy;
}

/* The point, and what the dual point has more of each class. */
struct of_slope {
    const double *point;
    struct made_up made;
};

static double slope_of_column(const struct shmt_pass *pass, uint32_t j, const void *about) {
    const struct made_up *made = &((const struct of_slope *)about)->made;
    const double *w = ((const struct of_slope *)about)->point;
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    const uint64_t first = (uint64_t)j * n;
    const double all = (double)pass->problem->n, l2 = shmt_is_bias(pass, j) ? 0 : shmt_pass_l2(pass, j);
    double *slope = m->gradient + first, *curve = m->diagonal + first, part[SHMTRAIN_MAX_CLASSES], image = 0;
    if (shmt_is_bias(pass, j)) {
        slope_of_bias(pass, j);
        return 0;
    }
    memset(slope, 0, n * sizeof *slope);
    memset(curve, 0, n * sizeof *curve);
    memset(part, 0, n * sizeof *part);
    const double heavy = sum_column(pass, j, slope, curve, part), share = sum_of_more(pass, made, part, heavy);
    for (uint32_t k = 0; k < n; k++) {
        const double dual = made->absent[k] ? 0 : (slope[k] - pass->state->shift * part[k] + share * made->more[k]) / all;
        image += dual * dual / l2;
        slope[k] = slope[k] / all + l2 * w[first + k];
        curve[k] = curve[k] / all + l2;
    }
    return image;
}

void shmt_wide_slope(const struct shmt_pass *pass, const double *w) {
    struct of_slope about = {.point = w};
    make_up(pass, &about.made);
    shmt_each_column(pass, SHMT_SUM_IMAGE, &about, slope_of_column);
}

/* about: what is multiplied, and what the bias's column gives. */
static double product_of_column(const struct shmt_pass *pass, uint32_t j, const void *about) {
    const double *search = ((const struct of_columns *)about)->vector, *of_bias = ((const struct of_columns *)about)->more;
    const struct shmt_solve_memory *m = pass->memory;
    const uint32_t n = n_classes(pass);
    const uint64_t first = (uint64_t)j * n;
    const double l2 = shmt_is_bias(pass, j) ? 0 : shmt_pass_l2(pass, j);
    double *out = m->product + first, sum = 0;
    if (shmt_is_bias(pass, j))
        memcpy(out, of_bias, n * sizeof *out);
    else
        memset(out, 0, n * sizeof *out);
    if (!shmt_is_bias(pass, j))
        add_entries(&(struct entries){m->row, m->value, m->start[j], m->start[j + 1], m->scaled, n}, out);
    for (uint32_t k = 0; k < n; k++) {
        out[k] = out[k] / (double)pass->problem->n + l2 * search[first + k];
        sum += out[k] * search[first + k];
    }
    return sum;
}

void shmt_wide_product(const struct shmt_pass *pass, const double *search) {
    double of_bias[SHMTRAIN_MAX_CLASSES];
    add_blocks(pass, pass->round - 1, SHMT_CLASS_SCALED, of_bias);
    shmt_each_column(pass, SHMT_SUM_PQ, &(struct of_columns){search, of_bias}, product_of_column);
}
