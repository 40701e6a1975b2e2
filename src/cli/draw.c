/* Frames of the live display: how far the run is, how fast, how well. See draw.h; the workers' lines are in draw_workers.c. */
#include "cli/draw_priv.h"

#include <math.h>
#include <string.h>

#define MOST_LOSSES  20 /* of a line of them: older ones would flatten what happens now */
#define FEW_LOSSES   6
#define LEAST_CHANGE 0.000005 /* of a loss, in five decimals */
#define LEAST_BAR    8
#define MOST_WORDS   96  /* of draw_words */
#define WIDE         60  /* columns from which on there are words and long times */
#define SPEED        64  /* columns of speed and losses when they stand beside the bar ... */
#define ONE_LINE     140 /* ... on screens of so many */
#define CELLS_A_PART 4   /* a bar has a segment for each epoch when each gets so many cells */

const char *draw_level(double share) {
    static const char *const LEVELS[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    return LEVELS[(int)(7 * draw_clamped(share) + 0.5)];
}

/* ---- times ---- */

static void fine_time(double s, char out[32]) {
    const unsigned long long n = (unsigned long long)ceil(s);
    if (n < 100)
        snprintf(out, 32, "%llu s left", n);
    else if (n < 3600)
        snprintf(out, 32, "%llu min %02llu s left", n / 60, n % 60);
    else if (n < 24 * 3600)
        snprintf(out, 32, "%llu h %02llu min left", n / 3600, n / 60 % 60);
    else
        snprintf(out, 32, "%llu d %02llu h left", n / 86400, n / 3600 % 24);
}

static void coarse_time(double s, char out[32]) {
    const unsigned long long n = (unsigned long long)ceil(s);
    if (n < 100)
        snprintf(out, 32, "%llu s left", n);
    else if (n < 100 * 60)
        snprintf(out, 32, "%llu min left", n / 60);
    else if (n < 100 * 3600)
        snprintf(out, 32, "%llu h left", n / 3600);
    else
        snprintf(out, 32, "%llu d left", n / 86400);
}

/* At most 16 columns ("59 min 59 s left"), coarse: 11. */
static void time_left(double s, bool fine, char out[32]) {
    out[0] = '\0';
    if (!(s >= 0 && s < 999 * 86400.0)) return; /* unknown, or nothing that one can wait for */
    if (fine)
        fine_time(s, out);
    else
        coarse_time(s, out);
}

/* ---- how far ---- */

/* Whole per cents: 100 when all is done, not earlier; 29 of 100 are 29, though 0.29 is less than that in a double. */
static int percent_done(const struct draw_state *s) { return (int)(100 * draw_clamped(s->share) + 1e-9); }

/* `cells` cells, of which this share is done, to half a cell. */
static void draw_bar(double share, unsigned cells, bool blocks, struct pen *pen) {
    const unsigned halves = (unsigned)(draw_clamped(share) * 2 * cells), full = halves / 2, half = halves % 2;
    pen_repeat(pen, PEN_CYAN, blocks ? "━" : "=", full);
    pen_repeat(pen, PEN_CYAN, blocks ? "╸" : "-", half);
    pen_repeat(pen, PEN_DIM, blocks ? "─" : ".", cells - full - half);
}

/* The whole run in `cells` cells. */
static void draw_run(const struct draw_state *s, unsigned cells, bool blocks, struct pen *pen) {
    const double done = s->epoch > 0 ? s->epoch - 1 + draw_clamped(s->share) : 0; /* epochs */
    const unsigned epochs = s->epochs > 0 ? s->epochs : 1;
    if ((uint64_t)epochs * (CELLS_A_PART + 1) > cells + 1u) {
        draw_bar(done / epochs, cells, blocks, pen);
        return;
    }
    for (unsigned e = 0; e < epochs; e++) {
        const unsigned from = e * (cells + 1) / epochs, to = (e + 1) * (cells + 1) / epochs;
        draw_bar(done - e, to - from - 1, blocks, pen);
        if (e + 1 < epochs) pen_repeat(pen, PEN_PLAIN, " ", 1);
    }
}

/* Nobody knows how many steps a fit will take; of a choice it is known how many fits it is at most. */
static void draw_fit(const struct draw_state *s, const struct draw_screen *screen, unsigned end, struct pen *pen) {
    if (s->fits_most == 0) {
        pen_text(pen, PEN_DIM, "step ");
        pen_format(pen, PEN_BOLD, "%u", s->epoch);
        return;
    }
    pen_text(pen, PEN_DIM, screen->columns >= WIDE ? "choosing L2 " : "L2 ");
    pen_format(pen, PEN_BOLD, "%*u/%u", draw_digits(s->fits_most), s->fit, s->fits_most);
    pen_text(pen, PEN_PLAIN, screen->columns >= WIDE ? " fits at most  " : " ");
    draw_bar((double)s->fit / s->fits_most, end > pen->column ? end - pen->column : 0, screen->blocks, pen);
}

/* In this line up to a column. */
static void draw_course(const struct draw_state *s, const struct draw_screen *screen, unsigned end, struct pen *pen) {
    const bool wide = screen->columns >= WIDE;
    const unsigned time_columns = wide ? 16 : 11;
    char left[32];
    if (s->fits) {
        draw_fit(s, screen, end, pen);
        return;
    }
    time_left(s->seconds_left, wide, left);
    pen_text(pen, PEN_DIM, "epoch ");
    pen_format(pen, PEN_BOLD, "%*u/%u", draw_digits(s->epochs), s->epoch, s->epochs);
    pen_format(pen, PEN_PLAIN, " %3d %%", percent_done(s));
    pen_repeat(pen, PEN_PLAIN, " ", wide ? 2 : 1);
    unsigned cells = end > pen->column ? end - pen->column : 0;
    const bool with_time = cells >= LEAST_BAR + 1 + time_columns;
    if (with_time) cells -= 1 + time_columns;
    draw_run(s, cells, screen->blocks, pen);
    if (with_time) pen_format(pen, PEN_PLAIN, " %*s", (int)time_columns, left);
}

/* ---- how fast, how well ---- */

static void loss_words(double loss, char out[32]) {
    if (isnan(loss))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, fabs(loss) < 1000 ? "%.5f" : "%.3e", loss);
}

/* The losses by epoch, the oldest first, into value (MOST_LOSSES); returns how many. The epoch that goes on counts only where
 * there would be one loss otherwise: later, a mean over some examples differs from that over all by more than epochs do. */
static unsigned losses_by_epoch(const struct draw_state *s, unsigned most, double *value) {
    const size_t all = s->n_before == 1 ? 2 : s->n_before;
    unsigned n = 0;
    for (size_t i = all > most ? all - most : 0; i < all; i++) {
        const double x = i < s->n_before ? s->losses_before[i] : s->loss;
        if (isfinite(x)) value[n++] = x;
    }
    return n;
}

/* Lowest to highest over the eight levels. */
static void draw_losses(const double *value, unsigned n, struct pen *pen) {
    double least = INFINITY, most = -INFINITY;
    for (unsigned i = 0; i < n; i++) {
        least = fmin(least, value[i]);
        most = fmax(most, value[i]);
    }
    for (unsigned i = 0; i < n; i++)
        pen_text(pen, PEN_CYAN, draw_level(most > least ? (value[i] - least) / (most - least) : 0.5));
}

static void draw_change(double change, bool blocks, struct pen *pen) {
    static const char *const SIGNS[2][3] = {{" -", " =", " +"}, {" ↓ ", " → ", " ↑ "}};
    static const enum pen_colour COLOURS[] = {PEN_GREEN, PEN_DIM, PEN_RED};
    const int way = fabs(change) < LEAST_CHANGE ? 1 : change < 0 ? 0 : 2;
    char words[32];
    loss_words(fabs(change), words);
    if (pen_left(pen) < 3 + pen_width(words)) return;
    pen_text(pen, COLOURS[way], SIGNS[blocks][way]);
    pen_text(pen, PEN_PLAIN, words);
}

static void draw_trend(const struct draw_state *s, const struct draw_screen *screen, struct pen *pen) {
    double value[MOST_LOSSES];
    const bool wide = screen->columns >= WIDE;
    const unsigned n = losses_by_epoch(s, wide ? MOST_LOSSES : FEW_LOSSES, value);
    if (n < 2 || pen_left(pen) < n + 12) return;
    pen_text(pen, PEN_DIM, wide ? "   by epoch " : " ");
    if (screen->blocks) draw_losses(value, n, pen);
    draw_change(value[n - 1] - value[n - 2], screen->blocks, pen);
}

static void draw_speed(const struct draw_state *s, const struct draw_screen *screen, struct pen *pen) {
    char rate[16], loss[32];
    if (!s->fits) pen_text(pen, PEN_BOLD, pen_short(s->examples_per_second, rate));
    pen_text(pen, PEN_DIM, s->fits ? "loss " : screen->columns >= WIDE ? " examples/s   loss " : "/s  loss ");
    loss_words(s->loss, loss);
    pen_format(pen, PEN_BOLD, "%-7s", loss);
    draw_trend(s, screen, pen);
}

/* ---- the network ---- */

/* As wide as any other: " 12.3 MB/s", "   987 B/s". */
static void flow_words(double bytes, char out[32]) {
    char number[16], flow[32];
    (void)pen_short(bytes, number);
    snprintf(flow, sizeof flow, "%s%s", number, number[strlen(number) - 1] >= 'A' ? "B/s" : " B/s");
    snprintf(out, 32, "%10s", flow);
}

static void draw_flow(double bytes, const char *word, struct pen *pen) {
    char flow[32];
    flow_words(bytes, flow);
    pen_text(pen, PEN_BOLD, flow);
    pen_text(pen, PEN_DIM, word);
}

static void draw_network(const struct draw_state *s, const struct draw_screen *screen, struct pen *pen) {
    const bool wide = screen->columns >= WIDE;
    char number[16];
    pen_text(pen, PEN_DIM, wide ? "network  " : "net");
    draw_flow(s->sent, wide ? " sent  " : " sent", pen);
    draw_flow(s->received, wide ? " received   " : " received", pen);
    if (wide) {
        pen_text(pen, PEN_BOLD, pen_short((double)s->exchanges, number));
        pen_text(pen, PEN_DIM, " exchanges");
    }
    pen_end_line(pen);
}

/* ---- all of it ---- */

unsigned draw_frame(const struct draw_state *state, const struct draw_screen *screen, FILE *out) {
    struct pen pen = {.out = out, .columns = screen->columns, .colours = screen->colours};
    const bool one_line = screen->columns >= ONE_LINE;
    draw_course(state, screen, one_line ? screen->columns - SPEED : screen->columns, &pen);
    if (one_line)
        pen_repeat(&pen, PEN_PLAIN, " ", 3);
    else
        pen_end_line(&pen);
    if (one_line || screen->rows >= 4) {
        draw_speed(state, screen, &pen);
        pen_end_line(&pen);
    }
    if (screen->rows >= 6 && state->has_network) draw_network(state, screen, &pen);
    if (screen->rows >= 6 && state->n_workers > 0) draw_workers(state, screen, screen->rows / 3, &pen);
    return pen.lines;
}

static const char *without_blanks(const char *text) { return text + strspn(text, " "); }

/* What is sent, behind the other words where there is room. */
static void add_network(const struct draw_state *s, char *out, size_t bytes) {
    char flow[32];
    const size_t n = strlen(out);
    if (!s->has_network) return;
    flow_words(s->sent, flow);
    if (n + strlen(", ") + strlen(without_blanks(flow)) + strlen(" sent") <= MOST_WORDS)
        snprintf(out + n, bytes - n, ", %s sent", without_blanks(flow));
}

void draw_words(const struct draw_state *s, char *out, size_t bytes) {
    char rate[16], loss[32], left[32];
    if (s->fits && s->fits_most > 0) {
        snprintf(out, bytes, "choosing L2: %u of at most %u fits", s->fit, s->fits_most);
        return;
    }
    if (s->fits) {
        loss_words(s->loss, loss);
        snprintf(out, bytes, "step %u, loss %s", s->epoch, loss);
        return;
    }
    const char *short_rate = without_blanks(pen_short(s->examples_per_second, rate));
    loss_words(s->loss, loss);
    time_left(s->seconds_left, true, left);
    snprintf(out, bytes, "epoch %u of %u: %d %%, %s examples/s, loss %s%s%s", s->epoch, s->epochs, percent_done(s), short_rate,
             loss, left[0] ? ", " : "", left);
    add_network(s, out, bytes);
}
