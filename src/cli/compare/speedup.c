/* How much faster a mode is with more workers. Pure; see compare.h.
 *
 * The time of an epoch is the median epoch's, so that a disturbance of the machine does not count. A speed-up is the ratio of two
 * runs of one round, that is of one seed: the fewest workers' time over that of more. All are over the same number of workers: a
 * mode that did not run with the fewest has none. */
#include <math.h>
#include <stdlib.h>

#include "cli/compare/compare.h"

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Epochs that were not stopped. NaN: there is none. */
static double median_epoch(const struct shmtrain_report *r) {
    double *seconds = r->n_epochs > 0 ? calloc(r->n_epochs, sizeof *seconds) : NULL, median = NAN;
    size_t n = 0;
    for (uint32_t i = 0; seconds && i < r->n_epochs; i++)
        if (!r->epoch[i].partial) seconds[n++] = r->epoch[i].seconds;
    if (n > 0) {
        qsort(seconds, n, sizeof *seconds, by_size);
        median = (seconds[(n - 1) / 2] + seconds[n / 2]) / 2;
    }
    free(seconds);
    return median;
}

const struct compare_run *compare_fewest(const struct comparison *c, const struct compare_run *run) {
    for (unsigned i = 0; i < c->n; i++)
        if (c->run[i].which == run->which && c->run[i].workers == c->workers[0] && c->run[i].kept) return &c->run[i];
    return NULL;
}

static const struct compare_seed *of_seed(const struct compare_run *run, uint64_t seed) {
    for (unsigned i = 0; i < run->n_seeds; i++)
        if (run->seed[i].seed == seed) return &run->seed[i];
    return NULL;
}

static void find_speed_up(const struct comparison *c, struct compare_run *run) {
    const struct compare_run *fewest = compare_fewest(c, run);
    for (unsigned i = 0; i < run->n_seeds; i++) {
        struct compare_seed *seed = &run->seed[i];
        const struct compare_seed *base = fewest ? of_seed(fewest, seed->seed) : NULL;
        seed->speed_up = c->n_workers > 0 && base ? base->epoch_s / seed->epoch_s : NAN;
    }
    run->epoch_s = compare_spread_of(run, COMPARE_EPOCH).median;
    run->speed_up = compare_spread_of(run, COMPARE_SPEED_UP).median;
}

void compare_work_out_speed(struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; k < c->run[i].n_seeds; k++) {
            struct compare_seed *seed = &c->run[i].seed[k];
            seed->epoch_s = seed->kept ? median_epoch(&seed->kept->report) : NAN;
            seed->speed = seed->kept ? seed->kept->report.examples_per_second : NAN;
        }
    for (unsigned i = 0; i < c->n; i++) find_speed_up(c, &c->run[i]);
}

uint32_t compare_cores(const struct comparison *c) {
    const struct shmtrain_report *r = compare_any_report(c);
    return r ? r->cores : 0;
}
