/* Figures of `shmtrain scale`, and those that others have published. Pure. See scale.h. */
#include <math.h>
#include <stdlib.h>

#include "cli/scale/scale.h"

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static struct scale_spread spread_of(double *x, unsigned n) {
    if (n == 0) return (struct scale_spread){NAN, NAN, NAN};
    qsort(x, n, sizeof *x, by_size);
    return (struct scale_spread){(x[(n - 1) / 2] + x[n / 2]) / 2, x[0], x[n - 1]};
}

static bool has_runs(const struct scaling *s, const struct scale_cell *cell) {
    for (unsigned seed = 0; seed < s->seeds; seed++)
        if (cell->speed[seed] > 0) return true;
    return false;
}

unsigned scale_base(const struct scaling *s, const struct scale_mode *mode) {
    unsigned workers = 0;
    while (workers < s->n_workers && !has_runs(s, &mode->cell[0][workers])) workers++;
    return workers;
}

struct scale_spread scale_speed_up(const struct scaling *s, const struct scale_mode *mode, unsigned node, unsigned workers) {
    const unsigned base = scale_base(s, mode);
    double x[SCALE_SEEDS];
    unsigned n = 0;
    for (unsigned seed = 0; seed < s->seeds && base < s->n_workers; seed++) {
        const double from = mode->cell[0][base].speed[seed], to = mode->cell[node][workers].speed[seed];
        if (from > 0 && to > 0) x[n++] = to / from;
    }
    return spread_of(x, n);
}

double scale_loss(const struct scaling *s, const struct scale_cell *cell) {
    double x[SCALE_SEEDS];
    unsigned n = 0;
    for (unsigned seed = 0; seed < s->seeds; seed++)
        if (cell->speed[seed] > 0) x[n++] = cell->loss[seed];
    return spread_of(x, n).median;
}

const struct scale_published *scale_published_at(unsigned i) {
    static const struct scale_published ALL[] = {
        {"Hogwild!, SVM on RCV1", "Niu et al. 2011", 10, 4.5, ""},
        {"LIBLINEAR, logistic regression on rcv1_test", "Lee, Chiang and Lin 2015", 8, 6.9, ""},
        {"HogWild++, linear SVMs, 4 nodes of 10 cores", "Zhang, Hsieh and Akella 2016", 0, NAN,
         "\"almost linear\", where Hogwild!'s is \"severely limited\""},
    };
    return i < sizeof ALL / sizeof *ALL ? &ALL[i] : NULL;
}
