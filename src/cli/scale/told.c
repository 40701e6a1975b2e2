/* What `shmtrain scale` shows. See scale.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/plot.h"
#include "cli/display.h"
#include "cli/scale/scale.h"

#define WIDTH 78
#define ROWS  16
#define CELL  18 /* columns, between two blanks */

/* "12.3", "0.97": three digits. */
static void put_times(double x, char out[16]) { snprintf(out, 16, x < 9.995 ? "%.2f" : x < 99.95 ? "%.1f" : "%.0f", x); }

static void put_cell(const struct scaling *s, const struct scale_mode *mode, unsigned node, unsigned workers, FILE *out) {
    const struct scale_spread spread = scale_speed_up(s, mode, node, workers);
    char median[16], least[16], most[16], range[40] = "";
    if (isnan(spread.median)) {
        fprintf(out, "  %-*s", CELL, mode->cell[node][workers].why[0] != '\0' ? "refused" : "-");
        return;
    }
    put_times(spread.median, median);
    put_times(spread.least, least);
    put_times(spread.most, most);
    if (strcmp(least, most) != 0) snprintf(range, sizeof range, " %s-%s", least, most);
    fprintf(out, "  %5s%-*s", median, CELL - 5, range);
}

static void put_table(const struct scaling *s, const struct scale_mode *mode, FILE *out) {
    fprintf(out, "\n%s\n workers", mode->name);
    for (unsigned node = 0; node < s->n_nodes; node++) {
        char title[24];
        snprintf(title, sizeof title, "%u node%s", s->nodes[node], s->nodes[node] == 1 ? "" : "s");
        fprintf(out, "  %-*s", node + 1 < s->n_nodes ? CELL : 0, title);
    }
    fprintf(out, "\n");
    for (unsigned w = 0; w < s->n_workers; w++) {
        fprintf(out, "%8u", s->workers[w]);
        for (unsigned node = 0; node < s->n_nodes; node++) put_cell(s, mode, node, w, out);
        fprintf(out, "\n");
    }
}

/* Blanks at ends of lines are for nobody. */
static void put_tables(const struct scaling *s, FILE *out) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *all = open_memstream(&text, &bytes);
    if (!all) return;
    for (unsigned m = 0; m < s->n_modes; m++) put_table(s, &s->mode[m], all);
    fclose(all);
    for (const char *line = text; line && *line; line += strcspn(line, "\n") + 1) {
        int n = (int)strcspn(line, "\n");
        while (n > 0 && line[n - 1] == ' ') n--;
        fprintf(out, "%.*s\n", n, line);
    }
    free(text);
}

static const char *first_refusal(const struct scaling *s, const struct scale_mode *mode) {
    for (unsigned node = 0; node < s->n_nodes; node++)
        for (unsigned w = 0; w < s->n_workers; w++)
            if (mode->cell[node][w].why[0] != '\0') return mode->cell[node][w].why;
    return NULL;
}

static void put_words(const struct scaling *s, FILE *out) {
    for (unsigned m = 0; m < s->n_modes; m++) {
        const struct scale_mode *mode = &s->mode[m];
        const unsigned base = scale_base(s, mode), last = s->n_workers - 1;
        if (first_refusal(s, mode)) fprintf(out, "%s is refused: %s\n", mode->name, first_refusal(s, mode));
        if (base >= last) continue;
        const double least = scale_loss(s, &mode->cell[0][base]), most = scale_loss(s, &mode->cell[0][last]);
        if (isfinite(least) && isfinite(most))
            fprintf(out, "%s: train loss %.5f with %u worker%s, %.5f with %u\n", mode->name, least, s->workers[base],
                    s->workers[base] == 1 ? "" : "s", most, s->workers[last]);
    }
}

static void put_published(FILE *out) {
    const struct scale_published *p;
    fprintf(out, "\npublished, of other machines, data and programs:\n");
    for (unsigned i = 0; (p = scale_published_at(i)); i++) {
        if (isnan(p->speed_up))
            fprintf(out, "  %s (%s):\n      %s\n", p->what, p->where, p->words);
        else
            fprintf(out, "  %s (%s):\n      %.1f with %u threads\n", p->what, p->where, p->speed_up, p->workers);
    }
}

/* ---- the plot: modes on the fewest nodes ---- */

struct drawing {
    struct plot_curve curve[SCALE_MODES + 1];
    struct plot_point point[SCALE_MODES + 1][SCALE_WORKERS];
    char mark[SCALE_MODES];
    unsigned n;
};

static char mark_of(const struct drawing *d, const char *name) {
    for (const char *at = name; *at; at++)
        if (*at >= 'a' && *at <= 'z' && !memchr(d->mark, *at, d->n)) return *at;
    return (char)('0' + d->n);
}

static void add_mode(const struct scaling *s, unsigned m, struct drawing *d) {
    struct plot_curve *curve = &d->curve[d->n];
    const char mark = mark_of(d, s->mode[m].name);
    *curve = (struct plot_curve){.name = s->mode[m].name, .mark = mark, .point = d->point[d->n]};
    for (unsigned w = 0; w < s->n_workers; w++) {
        const double times = scale_speed_up(s, &s->mode[m], 0, w).median;
        if (isfinite(times)) d->point[d->n][curve->n++] = (struct plot_point){s->workers[w], times};
    }
    if (curve->n == 0) return;
    d->mark[d->n++] = mark;
}

static void add_perfect(const struct scaling *s, struct drawing *d) {
    const double least = s->workers[0], most = s->workers[s->n_workers - 1];
    struct plot_point *point = d->point[d->n];
    point[0] = (struct plot_point){least, 1};
    point[1] = (struct plot_point){most, most / least};
    d->curve[d->n++] = (struct plot_curve){.name = "perfect", .mark = '+', .point = point, .n = 2, .is_guide = true};
}

static void put_plot(const struct scaling *s, FILE *out) {
    struct drawing d = {.n = 0};
    char title[64];
    if (s->n_workers < 2) return;
    for (unsigned m = 0; m < s->n_modes; m++) add_mode(s, m, &d);
    if (d.n == 0) return;
    add_perfect(s, &d);
    snprintf(title, sizeof title, "speed-up, %u node%s", s->nodes[0], s->nodes[0] == 1 ? "" : "s");
    const struct plot plot = {
        .title = title, .x_title = "workers", .curve = d.curve, .n_curves = d.n, .target = NAN, .at = NAN, .x_whole = true};
    const struct plot_screen screen = {.columns = WIDTH,
                                       .rows = ROWS,
                                       .blocks = display_has_blocks(),
                                       .colours = display_obeys_escapes(fileno(out)) && display_wants_colours()};
    fprintf(out, "\n");
    plot_draw(&plot, &screen, out);
}

void scale_put_text(const struct scaling *s, FILE *out) {
    fprintf(out, "speed-up over the fewest workers, predicted on fibers: the median of %u seed%s,\nleast-most\n", s->seeds,
            s->seeds == 1 ? "" : "s");
    if (s->n_done < s->n_runs) fprintf(out, "stopped: %u of %u runs were begun\n", s->n_done, s->n_runs);
    put_tables(s, out);
    fprintf(out, "\n");
    put_words(s, out);
    put_plot(s, out);
    put_published(out);
    fprintf(out, "What such a prediction is worth, and what it leaves out: docs/simulator.md\n");
}
