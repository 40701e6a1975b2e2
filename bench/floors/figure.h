/* Figures with medians and quartiles, and rounds in which nobody else used the machine.
 *
 * Machines drift, and they may have other work. So whatever is compared is measured in turns, within one round; a figure is the
 * median over the rounds, a ratio the median of the ratios within the rounds, both with their quartiles. A round in which
 * others used the processors is measured once more, as long as there is time for that. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "topo/others.h"

enum { SHMT_MOST_ROUNDS = 99 };

struct shmt_figure {
    const char *name, *unit;
    uint32_t n;
    double x[SHMT_MOST_ROUNDS];
};
void shmt_figure_add(struct shmt_figure *f, double x); /* of more than the most, the first */

/* Quartile 1, 2 or 3, between neighbours by distance; NaN of a figure without rounds. */
double shmt_figure_quartile(const struct shmt_figure *f, uint32_t q);
double shmt_figure_median(const struct shmt_figure *f);

/* ---- rounds ---- */

struct shmt_rounds {
    uint64_t most_waste_ns; /* of throwing rounds away; 0: every round counts */
    /* zeros at first */
    uint64_t wasted_ns;
    uint32_t n_again, n_noisy; /* thrown away; kept though others used the processors */
    struct shmt_others others;
};
void shmt_round_begin(struct shmt_rounds *r);

/* Was this machine ours meanwhile? True when others used less than 4 % of what two processors give, when that cannot be told,
 * and when enough time was wasted: then the round counts. Own helpers must have been waited for. */
bool shmt_round_end(struct shmt_rounds *r);
