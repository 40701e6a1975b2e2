/* The curves of a comparison: losses over epochs and time, speed-ups over workers. Pure; see compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"

/* ---- losses ---- */

/* The loss of a curve at x, on the line between two points; NaN before the first one and behind the last. */
static double loss_at(const struct plot_point *p, size_t n, double x) {
    size_t i = 0;
    while (i < n && p[i].x < x) i++;
    if (i == n || (i == 0 && p[0].x > x)) return NAN;
    if (i == 0 || p[i].x == x) return p[i].y;
    return p[i - 1].y + (p[i].y - p[i - 1].y) * (x - p[i - 1].x) / (p[i].x - p[i - 1].x);
}

/* The lowest and the highest loss of any seed where the curve has points. */
static void widen(const struct plot_curve *curve, const struct plot_point *p, size_t n) {
    struct plot_span *span = (struct plot_span *)(uintptr_t)curve->span;
    for (size_t i = 0; i < curve->n; i++) {
        const double y = loss_at(p, n, curve->point[i].x);
        span[i].least = fmin(span[i].least, y); /* NaN says nothing */
        span[i].most = fmax(span[i].most, y);
    }
}

static void add_span(const struct comparison *c, const struct compare_run *run, bool by_time, struct plot_curve *curve) {
    if (run->n_seeds < 2) return;
    struct plot_span *span = calloc(curve->n, sizeof *span);
    if (!span) return;
    for (size_t i = 0; i < curve->n; i++) span[i] = (struct plot_span){curve->point[i].y, curve->point[i].y};
    curve->span = span;
    for (unsigned k = 0; k < run->n_seeds; k++) {
        size_t n = 0;
        struct plot_point *p = run->seed[k].kept ? compare_points(c, &run->seed[k].kept->report, by_time, &n) : NULL;
        widen(curve, p, n);
        free(p);
    }
}

static void title_losses(const struct comparison *c, bool by_time, char *out, size_t bytes) {
    snprintf(out, bytes, "%s over %s", compare_loss_name(c), by_time ? "time" : "epochs");
    if (c->n_workers == 0) return;
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, ", -w %u", c->workers[c->n_workers - 1]);
}

void compare_make_plot(const struct comparison *c, bool by_time, struct compare_plot *out) {
    unsigned n = 0;
    for (unsigned i = 0; i < c->n && n < COMPARE_MODES; i++) {
        const struct compare_run *run = &c->run[i];
        struct plot_curve curve = {.name = run->label, .mark = run->mark};
        if (!run->kept || !compare_is_shown(c, run)) continue;
        curve.point = compare_points(c, &run->kept->report, by_time, &curve.n);
        if (!curve.point) continue;
        add_span(c, run, by_time, &curve);
        out->look[n] = run->which;
        out->curve[n++] = curve;
    }
    title_losses(c, by_time, out->title, sizeof out->title);
    out->plot = (struct plot){.title = out->title,
                              .x_title = by_time ? "seconds" : "epochs",
                              .curve = out->curve,
                              .n_curves = n,
                              .target = c->target,
                              .at = NAN,
                              .x_whole = !by_time};
}

/* ---- speed-ups ---- */

/* A mode's, each with its ends. */
static bool make_mode(const struct comparison *c, unsigned which, struct plot_curve *out) {
    struct plot_point *point = calloc(c->n_workers, sizeof *point);
    struct plot_span *span = calloc(c->n_workers, sizeof *span);
    *out = (struct plot_curve){.point = point, .span = span};
    for (unsigned i = 0; point && span && i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        const struct compare_spread s = compare_spread_of(run, COMPARE_SPEED_UP);
        if (run->which != which || !isfinite(s.median)) continue;
        out->name = run->label;
        out->mark = run->mark;
        span[out->n] = (struct plot_span){s.least, s.most};
        point[out->n++] = (struct plot_point){run->workers, s.median};
    }
    if (out->n > 0) return true;
    free(point);
    free(span);
    return false;
}

/* As many times as fast as there are workers, until there are as many as cores. */
static bool make_perfect(const struct comparison *c, struct plot_curve *out) {
    const double cores = compare_cores(c), least = c->workers[0], most = c->workers[c->n_workers - 1];
    struct plot_point *point = calloc(3, sizeof *point);
    *out = (struct plot_curve){.name = "perfect", .mark = '+', .point = point, .is_guide = true};
    if (!point) return false;
    point[out->n++] = (struct plot_point){least, 1};
    if (cores > least && cores < most) point[out->n++] = (struct plot_point){cores, cores / least};
    const double end = cores > 0 ? fmax(least, fmin(cores, most)) : most;
    point[out->n++] = (struct plot_point){most, end / least};
    return true;
}

void compare_make_speed_up(const struct comparison *c, struct compare_plot *out) {
    const uint32_t cores = compare_cores(c);
    unsigned n = 0;
    for (unsigned which = 0; c->n_workers > 0 && which < c->n_modes; which++)
        if (make_mode(c, which, &out->curve[n])) out->look[n++] = which;
    if (n > 0 && make_perfect(c, &out->curve[n])) out->look[n++] = COMPARE_MODES;
    snprintf(out->title, sizeof out->title, "speed-up over -w %u", c->workers[0]);
    snprintf(out->at_name, sizeof out->at_name, "%u core%s", cores, cores == 1 ? "" : "s");
    out->plot = (struct plot){.title = out->title,
                              .x_title = "workers",
                              .curve = out->curve,
                              .n_curves = n,
                              .target = NAN,
                              .at = cores > 0 ? (double)cores : (double)NAN,
                              .at_name = out->at_name,
                              .x_whole = true,
                              .linear = true};
}

void compare_release_plot(struct compare_plot *made) {
    for (unsigned i = 0; i < made->plot.n_curves; i++) {
        free((void *)(uintptr_t)made->curve[i].point);
        free((void *)(uintptr_t)made->curve[i].span);
    }
}
