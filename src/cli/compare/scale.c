/* Axes: see scale.h. */
#include "cli/compare/scale.h"

#include <math.h>
#include <stdio.h>

#define MOST_DIGITS 6

/* 1, 2 or 5 times a power of ten, at least `x`. */
static double round_step(double x) {
    const double power = pow(10, floor(log10(x)));
    static const double STEPS[] = {1, 2, 5};
    for (unsigned i = 0; i < 3; i++)
        if (STEPS[i] * power >= x * (1 - 1e-9)) return STEPS[i] * power;
    return 10 * power;
}

static void add_tick(struct scale *s, double value) {
    const double slack = 1e-9 * (s->to - s->from);
    if (s->n_ticks < SCALE_TICKS && value >= s->from - slack && value <= s->to + slack) s->tick[s->n_ticks++] = value;
}

void scale_linear(struct scale *s, double least, double most, unsigned ticks) {
    if (!(most > least)) {
        const double pad = least != 0 ? 0.05 * fabs(least) : 1;
        least -= pad;
        most += pad;
    }
    *s = (struct scale){.from = least, .to = most};
    const double step = round_step((most - least) / (ticks > 0 ? ticks : 1)), first = ceil(least / step - 1e-9);
    for (unsigned i = 0; i < SCALE_TICKS; i++) {
        const double value = (first + i) * step;
        add_tick(s, fabs(value) < 1e-9 * step ? 0 : value);
    }
    const int digits = (int)-floor(log10(step) + 1e-9);
    s->digits = digits > MOST_DIGITS || fmax(fabs(least), fabs(most)) >= 1e7 ? -1 : digits > 0 ? digits : 0;
}

/* Multiples `factor` (n of them) of every `each`-th power of ten. */
static void log_ticks(struct scale *s, const double *factor, unsigned n, int each) {
    const int first = (int)floor(log10(s->from)), last = (int)ceil(log10(s->to));
    s->n_ticks = 0;
    for (int power = first; power <= last; power++)
        for (unsigned i = 0; i < n && power % each == 0; i++) add_tick(s, factor[i] * pow(10, power));
}

void scale_log(struct scale *s, double least, double most, unsigned ticks) {
    static const double FACTORS[] = {1, 2, 5};
    if (!(most > least)) {
        most = least * 1.1;
        least /= 1.1;
    }
    *s = (struct scale){.from = least, .to = most, .log = true, .digits = -1};
    const double decades = log10(most / least);
    if (decades < 0.6) { /* no room for powers of ten: round numbers, as on a linear axis */
        scale_linear(s, least, most, ticks);
        s->log = true;
        return;
    }
    log_ticks(s, FACTORS, 3, 1);
    if (s->n_ticks > ticks + 1 || 3 * decades > SCALE_TICKS) log_ticks(s, FACTORS, 1, 1 + (int)(decades / (ticks + 1)));
}

double scale_place(const struct scale *s, double value) {
    if (!s->log) return (value - s->from) / (s->to - s->from);
    return value > 0 ? log(value / s->from) / log(s->to / s->from) : -INFINITY;
}

const char *scale_words(const struct scale *s, unsigned i, char out[16]) {
    if (s->digits < 0)
        snprintf(out, 16, "%.6g", s->tick[i]);
    else
        snprintf(out, 16, "%.*f", s->digits, s->tick[i]);
    return out;
}
