/* Dual coordinate ascent: see ascent.h. */
#include "solve/ascent.h"

#include <math.h>
#include <string.h>

#include "base/atomic.h"
#include "base/own.h"
#include "base/random.h"
#include "solve/columns_priv.h"
#include "solve/heaps.h"
#include "solve/loss_priv.h"
#include "solve/rows_priv.h"

#define LOOK_EVERY 256  /* coordinates */
#define AHEAD      8    /* ... whose rows are asked for before they are visited, and ... */
#define BEGINNING  16   /* ... what they are found by, so many before */
#define LINES      4    /* ... at most: a processor follows a longer row by itself */
#define LINE       64   /* bytes */
#define MOST_ROOTS 200  /* steps to a zero; a few are enough but for numbers far from 1 */
#define ROOT_LEFT  1e-2 /* what they leave of the way to it, and of the unit of t */

/* How far the bias moves for a sum of u / N: as if it were a weight whose feature is 1. */
static double rho(const struct shmt_problem *p) { return p->bias ? 1 / p->l2 : 0; }

static double *point(const struct shmt_pass *pass) { return pass->memory->w[pass->state->at]; }

/* ---- at rest ---- */

double shmt_ascent_square(const struct shmt_problem *p, uint64_t i) {
    const uint64_t e = shmt_problem_example(p, i);
    double sum = 0;
    for (uint64_t at = p->data->start[e]; at < p->data->start[e + 1]; at++)
        sum += shmt_problem_value(p, at) * shmt_problem_value(p, at);
    return sum;
}

/* Where an example begins. No phase changes what this reads while it is read. */
static double first_dual(const struct shmt_pass *pass, uint64_t i) {
    const double c = shmt_problem_weight(pass->problem, i);
    if (!pass->state->resumes) return 0;
    const double a = pass->memory->inner[pass->state->at][i].dual;
    return shmt_example_label(pass->problem, i) * (a > 0 ? a < c ? a : c : 0); /* no number: 0 */
}

static void rest_rows(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    double up = 0, down = 0, weight = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        const double u = first_dual(pass, i);
        pass->memory->square[i] = shmt_ascent_square(pass->problem, i);
        pass->memory->slope[i] = (struct shmt_solve_slope){u, 0};
        up += u > 0 ? u : 0;
        down += u > 0 ? 0 : -u;
        weight += shmt_problem_weight(pass->problem, i);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, up);
    shmt_pass_put_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_pass_put_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_pass_put_sum(pass, SHMT_SUM_CURVE, number, 0);
}

static double first_image(const struct shmt_pass *pass, uint32_t j, const void *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0;
    (void)unused;
    if (shmt_is_bias(pass, j)) return 0; /* it stays */
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++)
        sum += (m->value ? (double)m->value[at] : 1) * first_dual(pass, m->row[at]);
    point(pass)[j] = sum / (pass->problem->l2 * (double)pass->problem->n);
    return 0;
}

void shmt_ascent_start(const struct shmt_pass *pass) {
    const uint64_t all = (uint64_t)pass->plan->of.n_columns + pass->plan->of.bias;
    uint64_t from, to;
    shmt_each_block(pass, NULL, rest_rows);
    if (pass->state->resumes) {
        shmt_each_column(pass, SHMT_SUM_NOTHING, NULL, first_image);
        return;
    }
    shmt_solve_share(all, pass->part, pass->n_parts, &from, &to);
    memset(point(pass) + from, 0, (to - from) * sizeof(double));
}

/* ---- the ascent ---- */

static uint32_t sweeps(const struct shmt_pass *pass) { return shmt_ascent_sweeps(pass->problem); }

/* Where a sweep begins: the point, or what the sweep before it has left; and where it leaves what it has. No sweep changes what it begins
 * with, so it may be done again. */
static const double *image_before(const struct shmt_pass *pass) {
    return pass->state->inner == 0 ? point(pass) : pass->memory->direction[pass->state->inner % 2];
}

/* The last sweep of a step leaves u in `scaled`, the one before in `score`. */
static double *dual_of(const struct shmt_pass *pass, uint32_t sweep) {
    return (sweeps(pass) - sweep) % 2 ? pass->memory->scaled : pass->memory->score;
}

static double dual_before(const struct shmt_pass *pass, uint64_t i) {
    return pass->state->inner == 0 ? pass->memory->slope[i].pull : dual_of(pass, pass->state->inner - 1)[i];
}

static double *image_behind(const struct shmt_pass *pass) { return pass->memory->direction[1 - pass->state->inner % 2]; }

/* Coordinates that are still worth a look, of a sweep after the other. */
struct ascent {
    const struct shmt_problem *p;
    const double *square;
    double *w, *u;    /* w: with the bias behind it, to which the sum of u adds */
    uint32_t *order;  /* the coordinates */
    uint64_t active;  /* the first ones of these */
    uint64_t visits;  /* of coordinates, so far */
    double high, low; /* the largest and the least slope of the dual that was left in the sweep before */
};

static void shuffle(const struct shmt_pass *pass, struct ascent *a) {
    const uint64_t seed = shmt_hash64(pass->state->epoch, pass->state->inner, a->visits, a->active);
    for (uint64_t i = a->active; i > 1; i--) {
        if (i % LOOK_EVERY == 0 && !shmt_pass_goes_on(pass)) return;
        const uint64_t k = shmt_below(shmt_mix64(seed + i), i);
        const uint32_t other = a->order[k];
        a->order[k] = a->order[i - 1];
        a->order[i - 1] = other;
    }
}

/* Shared words of w: relaxed, all. Whatever order others see of them, and whatever is lost, the image is taken anew from u. */
#define INLINE static inline __attribute__((always_inline))

INLINE double load_word(double *word, enum shmt_solve_live live) {
    return live == SHMT_LIVE_NO ? *word : load_relaxed((_Atomic double *)(void *)word);
}

INLINE void add_to_word(double *word, double by, enum shmt_solve_live live) {
    _Atomic double *shared = (_Atomic double *)(void *)word;
    if (live == SHMT_LIVE_NO) {
        *word += by;
    } else if (live == SHMT_LIVE_RACY) {
        store_relaxed(shared, load_relaxed(shared) + by);
    } else {
        double before = load_relaxed(shared);
        while (!swap_relaxed(shared, &before, before + by)) continue;
    }
}

INLINE double dot_shared(const struct shmtrain_data *data, uint64_t example, double *w, enum shmt_solve_live live) {
    const uint64_t to = data->start[example + 1];
    uint64_t at = data->start[example];
    double sum[SHMT_LANES] = {0};
    if (live == SHMT_LIVE_NO) return shmt_row_dot(data, example, w);
    for (; at + SHMT_LANES <= to; at += SHMT_LANES)
        for (uint64_t k = 0; k < SHMT_LANES; k++)
            sum[k] += (data->value ? (double)data->value[at + k] : 1) * load_word(&w[data->id[at + k]], live);
    for (; at < to; at++) sum[0] += (data->value ? (double)data->value[at] : 1) * load_word(&w[data->id[at]], live);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* w += factor x_i. */
INLINE void add_row(const struct shmt_problem *p, uint64_t i, double factor, double *w, enum shmt_solve_live live) {
    const struct shmtrain_data *data = p->data;
    const uint64_t e = shmt_problem_example(p, i), to = data->start[e + 1];
    for (uint64_t at = data->start[e]; at < to; at++)
        add_to_word(&w[data->id[at]], data->value ? factor * (double)data->value[at] : factor, live);
}

/* Where the dual of the hinge is largest for one coordinate: s u, from s u `before`. slope: its derivative there. */
INLINE double best_of_hinge(double before, double slope, double c, double bend) {
    const double wanted = bend > 0 ? before + slope / bend : c;
    return wanted < 0 ? 0 : wanted > c ? c : wanted;
}

/* Newton's steps from t = -m, which lies on one side of the zero and by as much as f is there too far; bisections where they lead out of
 * what is known of it, or do not halve f: so f or what is known is halved at least in every other step. */
double shmt_ascent_best_of_logistic(double before, double m, double c, double bend) {
    double t = -m, best = c / (1 + exp(m)), last = INFINITY;
    const double first = bend * (best - before);
    double low = fmin(t, t - first), high = fmax(t, t - first);
    if (!isfinite(first)) return before; /* what is no number leads nowhere */
    for (int k = 0; k < MOST_ROOTS; k++) {
        const double off = t + m + bend * (best - before), curve = best * (1 - best / c), slope = 1 + bend * curve;
        const double left = fabs(off) / slope; /* of t; of u it leaves `curve` as much */
        if (left <= ROOT_LEFT && left * curve <= ROOT_LEFT * fabs(best - before)) break;
        if (off < 0)
            low = t;
        else
            high = t;
        const double newton = t - off / slope, middle = low + 0.5 * (high - low);
        const double next = newton > low && newton < high && fabs(off) <= 0.5 * last ? newton : middle;
        if (next == t) break;
        last = fabs(off);
        t = next;
        best = c / (1 + exp(-t));
    }
    return best;
}

/* One coordinate, to where the dual is largest for it. Returns the slope that it had, as far as it may follow it; NaN: it is at an end of
 * its range, and so steep there that it will hardly leave it (shrinking: Hsieh et al. 2008). */
INLINE double ascend(struct ascent *a, uint64_t i, enum shmt_solve_loss loss, enum shmt_solve_live live) {
    const struct shmt_problem *p = a->p;
    const double c = shmt_problem_weight(p, i), label = shmt_example_label(p, i), n = (double)p->n, u = a->u[i];
    const double b = p->bias ? load_word(&a->w[p->n_columns], live) : 0;
    const double z = dot_shared(p->data, shmt_problem_example(p, i), a->w, live) + b;
    const double bend = a->square[i] / (p->l2 * n) + rho(p) / n;
    double next, slope = 0;
    if (loss == SHMT_SOLVE_HINGE) {
        const double before = label * u;
        slope = 1 - label * z;
        if (slope <= 0 && before <= 0) return slope < a->low ? NAN : 0;
        if (slope >= 0 && before >= c) return slope > a->high ? NAN : 0;
        next = label * best_of_hinge(before, slope, c, bend);
    } else if (c == 0) {
        return 0;
    } else if (loss == SHMT_SOLVE_LOGISTIC) {
        next = label * shmt_ascent_best_of_logistic(label * u, label * z, c, bend);
    } else {
        next = u + (label - z - u / c) / (1 / c + bend);
    }
    a->u[i] = next;
    if (p->bias) add_to_word(&a->w[p->n_columns], rho(p) * (next - u) / n, live);
    add_row(p, i, (next - u) / (p->l2 * n), a->w, live);
    return slope;
}

/* Coordinates come in no order that a processor could foresee. What is asked for may be one that is shrunk by then. */
INLINE void ask_for(const struct shmtrain_data *data, const struct ascent *a, uint64_t k) {
    if (k + BEGINNING < a->active) {
        const uint64_t i = a->order[k + BEGINNING];
        __builtin_prefetch(&data->start[shmt_problem_example(a->p, i)]);
        __builtin_prefetch(&a->u[i], 1);
        __builtin_prefetch(&a->square[i]);
    }
    if (k + AHEAD >= a->active) return;
    const uint64_t e = shmt_problem_example(a->p, a->order[k + AHEAD]), from = data->start[e], n = data->start[e + 1] - from;
    __builtin_prefetch(&data->label[e]);
    for (uint64_t at = 0; at < LINES && at * LINE < n * sizeof *data->id; at++) {
        __builtin_prefetch((const char *)(data->id + from) + at * LINE);
        if (data->value) __builtin_prefetch((const char *)(data->value + from) + at * LINE);
    }
}

/* Over those that are active. False: the phase is to be left. */
INLINE bool sweep(const struct shmt_pass *pass, struct ascent *a, enum shmt_solve_loss loss, enum shmt_solve_live live) {
    double high = 0, low = 0;
    a->visits += a->active;
    for (uint64_t k = 0, visits = 0; k < a->active; visits++) {
        if (visits % LOOK_EVERY == 0 && !shmt_pass_goes_on(pass)) return false;
        ask_for(a->p->data, a, k);
        const double slope = ascend(a, a->order[k], loss, live);
        if (isnan(slope)) {
            const uint32_t gone = a->order[k];
            a->order[k] = a->order[--a->active];
            a->order[a->active] = gone;
            continue;
        }
        high = slope > high ? slope : high;
        low = slope < low ? slope : low;
        k++;
    }
    a->high = high > 0 ? high : INFINITY;
    a->low = low < 0 ? low : -INFINITY;
    return true;
}

#define PASS const struct shmt_pass *pass, struct ascent *a
static bool sweep_alone(PASS) { return sweep(pass, a, SHMT_SOLVE_HINGE, SHMT_LIVE_NO); }
static bool sweep_racy(PASS) { return sweep(pass, a, a->p->loss, SHMT_LIVE_RACY); }
static bool sweep_atomic(PASS) { return sweep(pass, a, a->p->loss, SHMT_LIVE_ATOMIC); }

void shmt_ascent_share_image(const struct shmt_pass *pass) {
    const struct shmt_problem *p = pass->problem;
    uint64_t from, to;
    shmt_solve_share((uint64_t)p->n_columns + p->bias, pass->part, pass->n_parts, &from, &to);
    for (uint64_t j = from; j < to; j++)
        image_behind(pass)[j] = image_before(pass)[j] + (j == p->n_columns ? rho(p) * pass->state->pull / (double)p->n : 0);
}

/* Which coordinates are mine: alone, all or none. */
static void my_coordinates(const struct shmt_pass *pass, uint64_t *from, uint64_t *to) {
    const bool live = pass->problem->live != SHMT_LIVE_NO;
    const uint32_t halved = pass->n_parts >> pass->state->halvings, ascending = live && halved > 0 ? halved : 1;
    *from = *to = 0;
    if (pass->part < ascending) shmt_solve_share(pass->problem->n, pass->part, ascending, from, to);
}

static void copy_image(const struct shmt_pass *pass, double *w, double sum) {
    const struct shmt_problem *p = pass->problem;
    memcpy(w, image_before(pass), p->n_columns * sizeof *w);
    if (p->bias) w[p->n_columns] = point(pass)[p->n_columns] + rho(p) * sum / (double)p->n;
}

int shmt_ascent_sweep(const struct shmt_pass *pass) {
    static bool (*const SWEEP[])(PASS) = {sweep_alone, sweep_racy, sweep_atomic};
    struct ascent a = {.p = pass->problem,
                       .square = pass->memory->square,
                       .w = image_behind(pass),
                       .u = dual_of(pass, pass->state->inner),
                       .high = INFINITY,
                       .low = -INFINITY};
    uint64_t from, to;
    double sum = 0;
    my_coordinates(pass, &from, &to);
    a.active = to - from;
    if (a.active == 0) return 0;
    a.order = shmt_own_malloc(a.active, sizeof *a.order);
    if (!a.order) return -1;
    for (uint64_t i = from; i < to; i++) a.order[i - from] = (uint32_t)i;
    for (uint64_t i = from; i < to; i++) sum += a.u[i] = dual_before(pass, i);
    if (pass->problem->live == SHMT_LIVE_NO) copy_image(pass, a.w, sum);
    while (a.visits < shmt_ascent_visits(pass->state) * (to - from) && a.active > 0) {
        SHMT_POINT("fit:ascend");
        shuffle(pass, &a);
        if (!SWEEP[pass->problem->live](pass, &a)) break;
    }
    shmt_own_free(a.order);
    return 0;
}

/* ---- the direction ---- */

static double conjugate(const struct shmt_pass *pass, uint64_t i, double u) {
    const struct shmt_problem *p = pass->problem;
    const double label = shmt_example_label(p, i), c = shmt_problem_weight(p, i);
    double out;
    shmt_conjugates(p->loss, 1, &u, &label, &c, &out);
    return out;
}

static void gain(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    double sum = 0, change = 0;
    (void)unused;
    for (uint64_t i = from; i < to; i++) {
        sum += conjugate(pass, i, m->slope[i].pull) - conjugate(pass, i, m->scaled[i]);
        change += m->scaled[i] - m->slope[i].pull;
    }
    shmt_heap_add_images(pass, number, from, to);
    shmt_pass_put_sum(pass, SHMT_SUM_GAIN, number, sum);
    shmt_pass_put_sum(pass, SHMT_SUM_CHANGE, number, change);
}

void shmt_ascent_gain(const struct shmt_pass *pass) { shmt_each_heaped_block(pass, SHMT_HEAP_IMAGES, NULL, gain); }

/* x_j . u and x_j . its change. */
static void sum_images(const struct shmt_pass *pass, uint64_t j, double *before, double *change) {
    const struct shmt_solve_memory *m = pass->memory;
    for (uint64_t at = m->start[j]; at < m->start[j + 1]; at++) {
        const uint32_t i = m->row[at];
        const double x = m->value ? (double)m->value[at] : 1;
        *before += x * m->slope[i].pull;
        *change += x * (m->scaled[i] - m->slope[i].pull);
    }
}

/* Images of u and of the direction along column j. */
static void image_of_column(const struct shmt_pass *pass, uint64_t j) {
    const struct shmt_solve_memory *m = pass->memory;
    const double scale = 1 / (pass->problem->l2 * (double)pass->problem->n);
    double before = 0, change = 0;
    if (shmt_has_heaps(pass)) {
        before = shmt_heap_sum(pass, j, SHMT_HEAP_IMAGES, SHMT_HEAP_BEFORE);
        change = shmt_heap_sum(pass, j, SHMT_HEAP_IMAGES, SHMT_HEAP_CHANGE);
    } else {
        sum_images(pass, j, &before, &change);
    }
    m->product[j] = scale * before;
    m->direction[0][j] = scale * change;
}

void shmt_ascent_image(const struct shmt_pass *pass) {
    const struct shmt_solve_memory *m = pass->memory;
    uint64_t first, behind;
    shmt_solve_share_columns(pass->plan, m, pass->part, pass->n_parts, &first, &behind);
    for (uint64_t b = first; b < behind; b++) {
        const uint64_t to = shmt_min_u64((b + 1) * pass->plan->col_block, pass->plan->of.n_columns);
        double cross = 0, length = 0;
        if (!shmt_pass_goes_on(pass)) return;
        for (uint64_t j = b * pass->plan->col_block; j < to; j++) {
            image_of_column(pass, j);
            cross += pass->problem->l2 * m->product[j] * m->direction[0][j];
            length += pass->problem->l2 * m->direction[0][j] * m->direction[0][j];
        }
        shmt_pass_put_sum(pass, SHMT_SUM_CROSS, b, cross);
        shmt_pass_put_sum(pass, SHMT_SUM_LENGTHS, b, length);
    }
}

double shmt_ascent_step(const struct shmt_pass *pass, double gains, double change, double cross, double length, double sum) {
    const struct shmt_problem *p = pass->problem;
    const double n = (double)p->n, b = p->bias ? point(pass)[p->n_columns] + rho(p) * sum / n : 0;
    const double slope = gains / n - cross - b * change / n;
    const double bend = length + rho(p) * change * change / (n * n);
    return bend > 0 ? fmin(1, fmax(0, slope / bend)) : 1;
}

/* ---- the step ---- */

static void advance_rows(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *unused) {
    const struct shmt_solve_memory *m = pass->memory;
    (void)unused;
    for (uint64_t i = from; i < to; i++)
        m->slope[i].curve = m->slope[i].pull + pass->state->step * (m->scaled[i] - m->slope[i].pull);
    shmt_pass_put_sum(pass, SHMT_SUM_NOTHING, number, 0);
}

void shmt_ascent_advance(const struct shmt_pass *pass) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_state *s = pass->state;
    const struct shmt_solve_memory *m = pass->memory;
    double *next = m->w[1 - s->at];
    uint64_t from, to;
    shmt_each_block(pass, NULL, advance_rows);
    shmt_solve_share((uint64_t)p->n_columns + p->bias, pass->part, pass->n_parts, &from, &to);
    for (uint64_t j = from; j < to; j++) {
        const double w = j == p->n_columns ? point(pass)[j] + rho(p) * (s->pull + s->step * s->change) / (double)p->n
                                           : m->product[j] + s->step * m->direction[0][j];
        next[j] = s->rough ? shmt_pass_rounded(w) : w;
    }
}

static void weigh(const struct shmt_pass *pass, uint64_t number, uint64_t from, uint64_t to, const double *w) {
    const struct shmt_problem *p = pass->problem;
    const struct shmt_solve_memory *m = pass->memory;
    double loss = 0, up = 0, down = 0, weight = 0;
    for (uint64_t i = from; i < to; i++) {
        const double u = m->slope[i].curve;
        m->slope[i].pull = u;
        up += u > 0 ? u : 0;
        down += u > 0 ? 0 : -u;
        weight += shmt_problem_weight(p, i);
    }
    for (uint64_t i = from; i < to; i += SHMT_TOGETHER) {
        struct shmt_loss_at at[SHMT_TOGETHER];
        double z[SHMT_TOGETHER];
        const uint32_t n = shmt_together(i, to);
        for (uint32_t k = 0; k < n; k++) z[k] = shmt_example_dot(p, i + k, w);
        shmt_losses(p, i, n, z, at);
        for (uint32_t k = 0; k < n; k++) loss += at[k].loss;
        shmt_heap_add_slopes(pass, number, i, i + n);
    }
    shmt_pass_put_sum(pass, SHMT_SUM_LOSS, number, loss);
    shmt_pass_put_sum(pass, SHMT_SUM_UP, number, up);
    shmt_pass_put_sum(pass, SHMT_SUM_DOWN, number, down);
    shmt_pass_put_sum(pass, SHMT_SUM_WEIGHT, number, weight);
    shmt_pass_put_sum(pass, SHMT_SUM_CURVE, number, 0);
}

void shmt_ascent_weigh(const struct shmt_pass *pass) {
    shmt_each_heaped_block(pass, shmt_heap_slopes(pass), pass->memory->w[1 - pass->state->at], weigh);
}
