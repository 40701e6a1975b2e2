/* From curves to axes, for the terminal and the page. */
#pragma once

#include <math.h>

#include "cli/compare/plot.h"
#include "cli/compare/scale.h"

#define PLOT_LOG_Y 8.0  /* the largest value over the smallest, from which on an axis is logarithmic */
#define PLOT_LOG_X 10.0 /* of the last point of the slowest curve over that of the fastest one */

static inline bool plot_has(const struct plot_point *p) { return isfinite(p->x) && isfinite(p->y); }

/* Whether the target has a place on an axis. */
static inline bool plot_shows_target(const struct plot *plot, const struct scale *y) {
    return isfinite(plot->target) && plot->target >= y->from && plot->target <= y->to;
}

static inline bool plot_shows_at(const struct plot *plot, const struct scale *x) {
    return plot->at_name && isfinite(plot->at) && plot->at >= x->from && plot->at <= x->to;
}

/* The axes that show all points. false: there are none. */
bool plot_range(const struct plot *plot, unsigned x_ticks, unsigned y_ticks, struct scale *x, struct scale *y);
