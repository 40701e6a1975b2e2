/* The axes of a plot: see plot_range.h. */
#include "cli/compare/plot_range.h"

struct bounds {
    double least_x, most_x, least_y, most_y;
    double first_end, last_end; /* x of the curves' last points: the smallest, the largest */
};

static void take_curve(struct bounds *b, const struct plot_curve *curve) {
    double end = -INFINITY;
    for (size_t i = 0; i < curve->n; i++) {
        const struct plot_point *p = &curve->point[i];
        if (!plot_has(p)) continue;
        b->least_x = fmin(b->least_x, p->x);
        b->most_x = fmax(b->most_x, p->x);
        b->least_y = fmin(b->least_y, p->y);
        b->most_y = fmax(b->most_y, p->y);
        if (curve->span && isfinite(curve->span[i].least)) b->least_y = fmin(b->least_y, curve->span[i].least);
        if (curve->span && isfinite(curve->span[i].most)) b->most_y = fmax(b->most_y, curve->span[i].most);
        end = fmax(end, p->x);
    }
    if (end == -INFINITY) return;
    b->first_end = fmin(b->first_end, end);
    b->last_end = fmax(b->last_end, end);
}

/* A little room at both ends, so that no mark lies on an edge; the target belongs to what is seen when it is near. */
static void fit_y(const struct plot *plot, struct bounds *b, unsigned ticks, struct scale *y) {
    if (isfinite(plot->target) && plot->target < b->least_y && plot->target > b->least_y - (b->most_y - b->least_y))
        b->least_y = plot->target;
    if (isfinite(plot->target) && plot->target > b->most_y && plot->target < b->most_y + (b->most_y - b->least_y))
        b->most_y = plot->target;
    const double pad = 0.03 * (b->most_y - b->least_y);
    if (!plot->linear && b->least_y > 0 && b->most_y > PLOT_LOG_Y * b->least_y)
        scale_log(y, b->least_y / 1.05, b->most_y * 1.05, ticks);
    else
        scale_linear(y, b->least_y - pad, b->most_y + pad, ticks);
}

/* Whole numbers come in steps of 1 at least. */
static void fit_x(const struct plot *plot, struct bounds *b, unsigned ticks, struct scale *x) {
    if (plot->x_whole) {
        const double middle = (b->least_x + b->most_x) / 2, half = fmax(0.5, (b->most_x - b->least_x) / 2);
        const unsigned steps = (unsigned)fmin(ticks, 2 * half);
        scale_linear(x, middle - half, middle + half, steps);
    } else if (b->least_x > 0 && b->last_end > PLOT_LOG_X * b->first_end) {
        scale_log(x, b->least_x, b->most_x, ticks);
    } else {
        scale_linear(x, fmin(0, b->least_x), b->most_x, ticks);
    }
}

bool plot_range(const struct plot *plot, unsigned x_ticks, unsigned y_ticks, struct scale *x, struct scale *y) {
    struct bounds b = {INFINITY, -INFINITY, INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (unsigned i = 0; i < plot->n_curves; i++) take_curve(&b, &plot->curve[i]);
    if (b.least_x > b.most_x) return false;
    fit_y(plot, &b, y_ticks, y);
    fit_x(plot, &b, x_ticks, x);
    return true;
}
