/* Curves as SVG: see chart.h. The names stand at the right, in the order in which the curves end, each with a thin line to its
 * end. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/chart_priv.h"
#include "cli/compare/markup.h"
#include "cli/compare/plot_range.h"

#define WIDTH     440.0
#define HEIGHT    300.0
#define LEFT      50.0
#define RIGHT     84.0
#define TOP       14.0
#define BOTTOM    40.0
#define LINE      15.0 /* from one name to the next, at least */
#define MARKERS   24   /* of a curve, about; more would hide it */
#define ASIDE     2.5  /* from one mode's bar to the next, of the same x */
#define MOST_NAME 12   /* characters */

/* Axes, and where they are. */
struct area {
    struct scale x, y;
    double left, right, top, bottom;
};

static double at_x(const struct area *a, double x) { return a->left + scale_place(&a->x, x) * (a->right - a->left); }
static double at_y(const struct area *a, double y) { return a->bottom - scale_place(&a->y, y) * (a->bottom - a->top); }

/* ---- axes ---- */

static void put_axes(struct chart *chart, const struct plot *plot, const struct area *a) {
    char words[16];
    for (unsigned i = 0; i < a->y.n_ticks; i++) {
        const double y = at_y(a, a->y.tick[i]);
        chart_line(chart, "grid", a->left, y, a->right, y);
        chart_words(chart, "number", "end", a->left - 6, y + 4, scale_words(&a->y, i, words));
    }
    for (unsigned i = 0; i < a->x.n_ticks; i++) {
        const double x = at_x(a, a->x.tick[i]);
        chart_line(chart, "grid", x, a->top, x, a->bottom);
        chart_words(chart, "number", "middle", x, a->bottom + 15, scale_words(&a->x, i, words));
    }
    chart_line(chart, "axis", a->left, a->top, a->left, a->bottom);
    chart_line(chart, "axis", a->left, a->bottom, a->right, a->bottom);
    fprintf(chart->out, "<text class=\"name\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">", (a->left + a->right) / 2,
            a->bottom + 32);
    markup_format(chart->out, "%s%s", plot->x_title, a->x.log ? " (log scale)" : "");
    fprintf(chart->out, "</text>\n");
}

static void put_target(struct chart *chart, const struct plot *plot, const struct area *a) {
    if (!plot_shows_target(plot, &a->y)) return;
    const double y = at_y(a, plot->target);
    chart_line(chart, "target", a->left, y, a->right, y);
    chart_words(chart, "number", "end", a->right - 3, y - 4, "target");
}

static void put_upright(struct chart *chart, const struct plot *plot, const struct area *a) {
    if (!plot_shows_at(plot, &a->x)) return;
    const double x = at_x(a, plot->at);
    chart_line(chart, "target", x, a->top, x, a->bottom);
    chart_words(chart, "number", "middle", x, a->top - 3, plot->at_name);
}

/* ---- spans ---- */

/* From the least to the most, behind the curves: a band, or a bar at each point where there are few. */
static void put_band(struct chart *chart, const struct plot_curve *curve, unsigned look, const struct area *a) {
    fprintf(chart->out, "<polygon class=\"band c%u\" points=\"", look % CHART_COLOURS);
    for (size_t i = 0; i < 2 * curve->n; i++) { /* there above, and back below */
        const size_t at = i < curve->n ? i : 2 * curve->n - 1 - i;
        const double y = i < curve->n ? curve->span[at].most : curve->span[at].least;
        fprintf(chart->out, "%s%.1f,%.1f", i > 0 ? " " : "", at_x(a, curve->point[at].x), at_y(a, y));
    }
    fprintf(chart->out, "\"/>\n");
}

static void put_bars(struct chart *chart, const struct plot_curve *curve, unsigned look, const struct area *a) {
    char kind[24];
    snprintf(kind, sizeof kind, "whisker c%u", look % CHART_COLOURS);
    for (size_t i = 0; i < curve->n; i++) {
        const double x = at_x(a, curve->point[i].x) + ASIDE * ((int)(look % 5) - 2);
        if (curve->span[i].most > curve->span[i].least)
            chart_line(chart, kind, x, at_y(a, curve->span[i].least), x, at_y(a, curve->span[i].most));
    }
}

/* ---- curves ---- */

/* A shape around a place; which one goes with the curve's colour. */
static void put_marker(struct chart *chart, unsigned look, double x, double y) {
    static const char *const SHAPES[] = {
        "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",         /* circle */
        "m-3.1-3.1h6.2v6.2h-6.2z",                                  /* square */
        "m0-4.2l4 7h-8z",                                           /* triangle */
        "m0-4.5l4.2 4.5l-4.2 4.5l-4.2-4.5z",                        /* diamond */
        "m0 4.2l4-7h-8z",                                           /* triangle that points down */
        "m-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z" /* cross */
    };
    fprintf(chart->out, "<path class=\"mark c%u\" d=\"M%.1f %.1f%s\"/>\n", look % CHART_COLOURS, x, y,
            SHAPES[look % (sizeof SHAPES / sizeof *SHAPES)]);
}

static const char *dash_of(unsigned look) {
    static const char *const DASHES[] = {"none", "7 3", "2 2.5", "9 3 2 3", "5 2"};
    return DASHES[look % (sizeof DASHES / sizeof *DASHES)];
}

/* Where a curve ends on the page. */
struct end {
    double x, y, label; /* the last point; where its name goes */
    unsigned curve;
};

/* A line that was not measured has no markers. */
static struct end put_guide(struct chart *chart, const struct plot_curve *curve, const struct area *a) {
    struct end end = {NAN, NAN, NAN, 0};
    fprintf(chart->out, "<polyline class=\"guide\" points=\"");
    for (size_t i = 0; i < curve->n; i++) {
        end.x = at_x(a, curve->point[i].x);
        end.y = end.label = at_y(a, curve->point[i].y);
        fprintf(chart->out, "%s%.1f,%.1f", i > 0 ? " " : "", end.x, end.y);
    }
    fprintf(chart->out, "\"/>\n");
    return end;
}

static struct end put_curve(struct chart *chart, const struct plot_curve *curve, unsigned look, const struct area *a) {
    struct end end = {NAN, NAN, NAN, 0};
    const size_t each = 1 + curve->n / MARKERS;
    fprintf(chart->out, "<polyline class=\"curve c%u\" stroke-dasharray=\"%s\" points=\"", look % CHART_COLOURS, dash_of(look));
    for (size_t i = 0; i < curve->n; i++) {
        const struct plot_point *p = &curve->point[i];
        if (!plot_has(p)) continue;
        end.x = at_x(a, p->x);
        end.y = end.label = at_y(a, p->y);
        fprintf(chart->out, "%s%.1f,%.1f", i > 0 ? " " : "", end.x, end.y);
    }
    fprintf(chart->out, "\"/>\n");
    for (size_t i = 0; i < curve->n; i++)
        if (plot_has(&curve->point[i]) && (i % each == 0 || i + 1 == curve->n))
            put_marker(chart, look, at_x(a, curve->point[i].x), at_y(a, curve->point[i].y));
    return end;
}

/* ---- names at the ends ---- */

static int by_height(const void *a, const void *b) {
    const struct end *x = a, *y = b;
    return x->y < y->y ? -1 : x->y > y->y ? 1 : (int)x->curve - (int)y->curve;
}

/* From the top down, each as near to its end as the one before leaves room; what would fall below the bottom moves all up. */
static void spread(struct end *end, unsigned n, const struct area *a) {
    qsort(end, n, sizeof *end, by_height);
    for (unsigned i = 0; i < n; i++) {
        end[i].label = fmax(end[i].y, a->top);
        if (i > 0) end[i].label = fmax(end[i].label, end[i - 1].label + LINE);
    }
    for (unsigned i = n; i-- > 0;) end[i].label = fmin(end[i].label, i + 1 < n ? end[i + 1].label - LINE : a->bottom);
}

static void put_names(struct chart *chart, const struct plot *plot, const unsigned *look, struct end *end, unsigned n,
                      const struct area *a) {
    spread(end, n, a);
    for (unsigned i = 0; i < n; i++) {
        const double x = a->right + 14;
        const char *name = plot->curve[end[i].curve].name;
        char words[MOST_NAME + 4];
        snprintf(words, sizeof words, "%.*s%s", MOST_NAME, name, strlen(name) > MOST_NAME ? "\xe2\x80\xa6" : "");
        fprintf(chart->out, "<polyline class=\"lead c%u\" points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f\"/>\n",
                look[end[i].curve] % CHART_COLOURS, end[i].x, end[i].y, fmax(end[i].x, a->right - 2), end[i].y, x - 3,
                end[i].label);
        chart_words(chart, "label", "start", x, end[i].label + 4, words);
    }
}

/* ---- all of it ---- */

static void describe(struct chart *chart, const struct plot *plot) {
    for (unsigned i = 0; i < plot->n_curves; i++) {
        const struct plot_curve *c = &plot->curve[i];
        markup_format(chart->out, "%s: from %.5g at %.4g to %.5g at %.4g %s. ", c->name, c->point[0].y, c->point[0].x,
                      c->point[c->n - 1].y, c->point[c->n - 1].x, plot->x_title);
    }
    chart_described(chart);
}

void chart_lines(struct chart *chart, const struct plot *plot, const unsigned *look) {
    struct area a = {.left = LEFT, .right = WIDTH - RIGHT, .top = TOP, .bottom = HEIGHT - BOTTOM};
    struct end end[PLOT_CURVES];
    unsigned n = 0;
    if (plot->n_curves > PLOT_CURVES || !plot_range(plot, 5, 6, &a.x, &a.y)) return;
    chart_begin(chart, WIDTH, HEIGHT, plot->title);
    describe(chart, plot);
    put_axes(chart, plot, &a);
    put_target(chart, plot, &a);
    put_upright(chart, plot, &a);
    for (unsigned i = 0; i < plot->n_curves; i++)
        if (plot->curve[i].span) (plot->linear ? put_bars : put_band)(chart, &plot->curve[i], look[i], &a);
    for (unsigned i = 0; i < plot->n_curves; i++) {
        const struct plot_curve *curve = &plot->curve[i];
        end[n] = curve->is_guide ? put_guide(chart, curve, &a) : put_curve(chart, curve, look[i], &a);
        end[n].curve = i;
        n += isfinite(end[n].x);
    }
    put_names(chart, plot, look, end, n, &a);
    chart_end(chart);
}

void chart_key(struct chart *chart, unsigned look) {
    fprintf(chart->out,
            "<svg class=\"key\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 34 12\" aria-hidden=\"true\">"
            "<polyline class=\"curve c%u\" stroke-dasharray=\"%s\" points=\"1,6 33,6\"/>",
            look % CHART_COLOURS, dash_of(look));
    put_marker(chart, look, 17, 6);
    fprintf(chart->out, "</svg>");
}
