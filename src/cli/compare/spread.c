/* The figures of a run over its seeds: middle, ends, and whether two runs are apart. Pure; see compare.h.
 *
 * A run is below another one if all of its N figures are less than all of the other's: the ranges do not touch. This is the
 * rank test of Mann and Whitney (1947) at its extreme: where there is no difference, one of two runs is below the other in 2 of
 * C(2N, N) cases: 1 of 10 for 3 seeds, 1 of 35 for 4, 1 of 126 for 5. */
#include <math.h>
#include <stdlib.h>

#include "cli/compare/compare.h"

static double figure_of(const struct compare_seed *seed, enum compare_figure figure) {
    switch (figure) {
        case COMPARE_TIME:
            return seed->to_target_s;
        case COMPARE_EPOCHS:
            return seed->to_target_epochs;
        case COMPARE_LOSS:
            return seed->final_loss;
        case COMPARE_LOWEST:
            return seed->lowest_loss;
        case COMPARE_SPEED:
            return seed->speed;
        case COMPARE_EPOCH:
            return seed->epoch_s;
        case COMPARE_SPEED_UP:
            return seed->speed_up;
        default:
            return NAN;
    }
}

/* Of these a seed that has none is as bad as can be; of the others it says nothing. */
static bool is_worst_without(enum compare_figure figure) { return figure <= COMPARE_LOWEST; }

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* All figures that there are, ascending. */
static unsigned sort(const struct compare_run *run, enum compare_figure figure, double out[COMPARE_SEEDS]) {
    unsigned n = 0;
    for (unsigned i = 0; i < run->n_seeds; i++) {
        const double x = figure_of(&run->seed[i], figure);
        if (!isnan(x) || is_worst_without(figure)) out[n++] = isnan(x) ? INFINITY : x;
    }
    qsort(out, n, sizeof *out, by_size);
    return n;
}

struct compare_spread compare_spread_of(const struct compare_run *run, enum compare_figure figure) {
    double x[COMPARE_SEEDS];
    const unsigned n = sort(run, figure, x);
    if (n == 0) return (struct compare_spread){NAN, NAN, NAN, 0};
    return (struct compare_spread){(x[(n - 1) / 2] + x[n / 2]) / 2, x[0], x[n - 1], n};
}

bool compare_is_below(const struct compare_run *a, const struct compare_run *b, enum compare_figure figure) {
    const struct compare_spread of_a = compare_spread_of(a, figure), of_b = compare_spread_of(b, figure);
    return of_a.n >= COMPARE_ENOUGH && of_b.n >= COMPARE_ENOUGH && of_a.most < of_b.least;
}

bool compare_is_rival(const struct compare_run *a, const struct compare_run *b) { return b->kept && a->which != b->which; }

unsigned compare_seeds_done(const struct comparison *c) {
    unsigned least = c->seeds;
    for (unsigned i = 0; i < c->n; i++)
        if (c->run[i].kept && c->run[i].n_seeds < least) least = c->run[i].n_seeds;
    return least;
}

/* Where several seeds have the same figure, the first of them. */
const struct compare_seed *compare_middle(const struct compare_run *run) {
    double x[COMPARE_SEEDS];
    const unsigned n = sort(run, COMPARE_LOSS, x);
    const struct compare_seed *any = NULL;
    for (unsigned i = 0; i < run->n_seeds; i++) {
        if (!run->seed[i].kept) continue;
        if (run->seed[i].final_loss == x[(n - 1) / 2]) return &run->seed[i];
        any = any ? any : &run->seed[i];
    }
    return any;
}
