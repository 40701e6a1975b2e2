/* Figures and rounds: see figure.h. */
#include "bench/floors/figure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sync/host.h"

#define NOISE 0.08 /* processors */

void shmt_figure_add(struct shmt_figure *f, double x) {
    if (f->n < SHMT_MOST_ROUNDS) f->x[f->n++] = x;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double shmt_figure_quartile(const struct shmt_figure *f, uint32_t q) {
    double sorted[SHMT_MOST_ROUNDS];
    if (f->n == 0) return NAN;
    memcpy(sorted, f->x, f->n * sizeof *sorted);
    qsort(sorted, f->n, sizeof *sorted, compare);
    const uint32_t at = (f->n - 1) * q / 4, rest = (f->n - 1) * q % 4;
    return rest == 0 ? sorted[at] : sorted[at] + (sorted[at + 1] - sorted[at]) * rest / 4;
}

double shmt_figure_median(const struct shmt_figure *f) { return shmt_figure_quartile(f, 2); }

void shmt_round_begin(struct shmt_rounds *r) { shmt_others_begin(&r->others); }

bool shmt_round_end(struct shmt_rounds *r) {
    const double wall = (double)(shmt_now_ns() - r->others.began_ns), tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    /* Ticks are coarse: two of them, one per processor, are no news. */
    if (shmt_others_end(&r->others) * wall < NOISE * wall + 2 * tick) return true;
    if (r->wasted_ns >= r->most_waste_ns) {
        r->n_noisy++;
        return true;
    }
    r->wasted_ns += (uint64_t)wall;
    r->n_again++;
    usleep(200000); /* others may be done by then */
    return false;
}
