/* An axis: a range of values, linear or logarithmic, with round numbers on it. Pure; used by the plots of the terminal
 * (plot.c) and of the page (page_json.c). */
#pragma once

#include <stdbool.h>

#define SCALE_TICKS 12 /* the most */

struct scale {
    double from, to; /* from < to, both finite; log: both above 0 */
    bool log;
    unsigned n_ticks;
    double tick[SCALE_TICKS]; /* ascending, all within the range */
    int digits;               /* decimals that tell the ticks apart; below 0: as %g writes them */
};

/* The axis from `least` to `most` (finite), with about `ticks` ticks. A range without extent gets one. */
void scale_linear(struct scale *s, double least, double most, unsigned ticks);

/* Likewise, logarithmic (0 < least): ticks are 1, 2, 5 times powers of ten. */
void scale_log(struct scale *s, double least, double most, unsigned ticks);

/* Where a value is on the axis: 0 at `from`, 1 at `to`. */
double scale_place(const struct scale *s, double value);

/* Tick i in words: at most 15 characters. Returns `out`. */
const char *scale_words(const struct scale *s, unsigned i, char out[16]);
