/* The workers' lines of the live display: what they do, all together and each. A grid with a bar for each worker where that
 * fits; else the least, the middle and the most of them, and each worker as one character. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/draw_priv.h"

#define RATE         6  /* columns of a rate, see pen_short */
#define COMFORTABLE  16 /* cells of a bar, when there is room */
#define LEAST_CELLS  5
#define GAP          3    /* columns between cells of the grid */
#define STRIP_GROUP  8    /* characters of a strip that stand together */
#define WORDY        72   /* columns from which on there is room for words */
#define STALLED      "!"  /* stands for a worker that stands still */
#define MOST_WORKERS 8192 /* and as many guests; of more, the first ones count */

/* What stands for each kind of time: high for work, low for waiting, so that it is understood without colours, too. */
struct glyphs {
    const char *compute, *merge, *wait, *other;
};

static const struct glyphs *glyphs(const struct draw_screen *screen) {
    static const struct glyphs BLOCKS = {"▆", "▄", "▁", "·"}, ASCII = {"#", "+", "_", "."};
    return screen->blocks ? &BLOCKS : &ASCII;
}

/* ---- all together ---- */

static void draw_share(struct pen *pen, enum pen_colour colour, const char *glyph, const char *word, int percent) {
    char text[64];
    snprintf(text, sizeof text, "%s%3d %%", word, percent);
    if (pen_left(pen) < pen_width(text) + 5) return;
    pen_repeat(pen, PEN_PLAIN, " ", *word ? 3 : 2);
    pen_text(pen, colour, glyph);
    pen_format(pen, PEN_PLAIN, " %s", text);
}

/* What asynchrony costs, where there is anything to say and room to say it. Losses of work come first. */
static void draw_costs(const struct draw_state *s, struct pen *pen) {
    char text[64], delay[16];
    const struct {
        const char *word;
        double share;
    } late[] = {{"dropped", s->dropped}, {"folded", s->folded}};
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        if (!(late[i].share > 0)) continue;
        snprintf(text, sizeof text, "   %s %.*f %%", late[i].word, late[i].share < 0.0995 ? 1 : 0,
                 100 * draw_clamped(late[i].share));
        if (pen_left(pen) >= pen_width(text)) pen_text(pen, PEN_PLAIN, text);
    }
    if (!(s->delay > 0)) return;
    const char *number = pen_short(s->delay, delay);
    snprintf(text, sizeof text, "   delay %s", number + strspn(number, " "));
    if (pen_left(pen) >= pen_width(text)) pen_text(pen, PEN_PLAIN, text);
}

static void draw_heading(const struct draw_state *s, const struct draw_screen *screen, struct pen *pen) {
    double compute = 0, wait = 0, merge = 0;
    unsigned joined = 0, stalled = 0;
    for (uint32_t i = 0; i < s->n_workers; i++) {
        compute += draw_clamped(s->worker[i].compute);
        wait += draw_clamped(s->worker[i].wait);
        merge += draw_clamped(s->worker[i].merge);
        joined += s->worker[i].joined;
        stalled += s->worker[i].stalled;
    }
    const int computing = (int)lround(100 * compute / s->n_workers), waiting = (int)lround(100 * wait / s->n_workers);
    const int merging = (int)lround(100 * merge / s->n_workers), known = computing + waiting + merging;
    const int other = known < 100 ? 100 - known : 0;
    const bool words = screen->columns >= WORDY;
    pen_format(pen, PEN_BOLD, "%u", s->n_workers);
    pen_text(pen, PEN_DIM, s->n_workers == 1 ? " worker" : " workers");
    if (joined > 0) pen_format(pen, PEN_DIM, words ? " (%u joined)" : " (%u)", joined);
    if (stalled > 0) pen_format(pen, PEN_RED, words ? "   " STALLED " %u standing still" : " " STALLED "%u", stalled);
    draw_share(pen, PEN_GREEN, glyphs(screen)->compute, words ? "computing" : "", computing);
    draw_share(pen, PEN_YELLOW, glyphs(screen)->wait, words ? "waiting" : "", waiting);
    if (s->merges) draw_share(pen, PEN_CYAN, glyphs(screen)->merge, words ? "merging" : "", merging);
    if (s->evaluates) draw_share(pen, PEN_DIM, glyphs(screen)->other, words ? "evaluating" : "", other);
    if (words) draw_costs(s, pen);
}

/* ---- a bar for each ---- */

struct grid {
    unsigned across, down;  /* cells of the grid */
    unsigned digits, cells; /* of a rank; of a bar */
};

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* As few columns of the grid as it takes to stay within `lines` lines, but no fewer than fit comfortably side by side. False:
 * there are too many workers for it. */
static bool lay_out(const struct draw_state *s, unsigned columns, unsigned lines, struct grid *out) {
    if (s->n_workers == 0) return false;
    const unsigned digits = draw_digits(s->worker[s->n_workers - 1].rank), fixed = digits + 1 + 1 + RATE + GAP;
    const unsigned most_across = (columns + GAP) / (fixed + LEAST_CELLS), nice_across = (columns + GAP) / (fixed + COMFORTABLE);
    if (lines == 0 || most_across == 0) return false;
    const unsigned nice_down = (s->n_workers - 1) / (nice_across > 0 ? nice_across : 1) + 1;
    const unsigned down = least(nice_down, lines), across = (s->n_workers - 1) / down + 1;
    if (across > most_across) return false;
    *out = (struct grid){.across = across, .down = down, .digits = digits, .cells = (columns + GAP) / across - fixed};
    return true;
}

static void draw_worker(const struct draw_worker *w, const struct grid *grid, const struct draw_screen *screen,
                        struct pen *pen) {
    char rate[16];
    const struct {
        double share;
        enum pen_colour colour;
        const char *glyph;
    } part[] = {{w->compute, PEN_GREEN, glyphs(screen)->compute},
                {w->merge, PEN_CYAN, glyphs(screen)->merge},
                {w->wait, PEN_YELLOW, glyphs(screen)->wait},
                {1, PEN_DIM, glyphs(screen)->other}};
    double sum = 0;
    unsigned drawn = 0; /* where the sums end, so that rounding never moves what comes later */
    pen_format(pen, PEN_DIM, "%*u ", (int)grid->digits, w->rank);
    if (w->stalled) pen_repeat(pen, PEN_RED, STALLED, grid->cells);
    for (size_t i = 0; !w->stalled && i < sizeof part / sizeof *part; i++) {
        sum += draw_clamped(part[i].share);
        const unsigned end = (unsigned)lround(draw_clamped(sum) * grid->cells);
        pen_repeat(pen, part[i].colour, part[i].glyph, end - drawn);
        drawn = end;
    }
    pen_format(pen, PEN_PLAIN, " %s", pen_short(w->examples_per_second, rate));
}

static unsigned pitch_of(const struct grid *grid) { return grid->digits + 1 + grid->cells + 1 + RATE + GAP; }

/* The unit of the rates, above the last column of them. */
static void draw_unit(const struct draw_screen *screen, const struct grid *grid, struct pen *pen) {
    static const char UNIT[] = "examples/s";
    const unsigned end = least(grid->across * pitch_of(grid) - GAP, screen->columns);
    if (pen->column + GAP + pen_width(UNIT) <= end) {
        pen_move(pen, end - pen_width(UNIT));
        pen_text(pen, PEN_DIM, UNIT);
    }
    pen_end_line(pen);
}

static void draw_grid(const struct draw_state *s, const struct draw_screen *screen, const struct grid *grid, struct pen *pen) {
    const unsigned pitch = pitch_of(grid);
    for (unsigned row = 0; row < grid->down; row++) {
        for (unsigned i = row * grid->across; i < s->n_workers && i < (row + 1) * grid->across; i++) {
            pen_move(pen, (i - row * grid->across) * pitch);
            draw_worker(&s->worker[i], grid, screen, pen);
        }
        if (pen->column > 0) pen_end_line(pen);
    }
}

/* ---- too many for that ---- */

/* The least, the middle and the most of one number of the workers. */
struct spread {
    double least, median, most;
    uint32_t least_rank, most_rank;
};

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rate_of(const struct draw_worker *w) { return w->examples_per_second > 0 ? w->examples_per_second : 0; }
static double waiting_of(const struct draw_worker *w) { return draw_clamped(w->wait); }

static struct spread spread_of(const struct draw_state *s, double (*number)(const struct draw_worker *)) {
    double sorted[MOST_WORKERS];
    const uint32_t n = s->n_workers < MOST_WORKERS ? s->n_workers : MOST_WORKERS;
    struct spread spread = {.least = INFINITY, .most = -INFINITY};
    for (uint32_t i = 0; i < n; i++) {
        const double x = sorted[i] = number(&s->worker[i]);
        if (x < spread.least) spread.least_rank = s->worker[i].rank;
        if (x > spread.most) spread.most_rank = s->worker[i].rank;
        spread.least = fmin(spread.least, x);
        spread.most = fmax(spread.most, x);
    }
    qsort(sorted, n, sizeof *sorted, by_size);
    spread.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    return spread;
}

static void percent_words(double share, char out[16]) { snprintf(out, 16, "%4.0f %%", 100 * share); }
static void rate_words(double rate, char out[16]) { (void)pen_short(rate, out); }

/* Who is the least and the most is said where there is room for it. */
static void draw_spread(const char *what, const struct spread *spread, void (*words)(double, char[16]), struct pen *pen) {
    const double value[3] = {spread->least, spread->median, spread->most};
    const uint32_t rank[3] = {spread->least_rank, 0, spread->most_rank};
    static const char *const NAMES[] = {"least", "median", "most"};
    const bool wide = pen->columns >= WORDY;
    pen_format(pen, PEN_DIM, "%-10s", what);
    for (int i = 0; i < 3; i++) {
        char text[16];
        words(value[i], text);
        if (wide) pen_format(pen, PEN_DIM, "  %s", NAMES[i]);
        pen_format(pen, PEN_PLAIN, " %s", text);
        if (wide && i != 1) pen_format(pen, PEN_DIM, " (worker %u)", rank[i]);
    }
    pen_end_line(pen);
}

/* Each worker's share of computing as one character, in groups. Each line begins with the rank of its first one. */
static void draw_strips(const struct draw_state *s, const struct draw_screen *screen, unsigned lines, struct pen *pen) {
    const unsigned digits = draw_digits(s->worker[s->n_workers - 1].rank);
    const unsigned groups = screen->columns > digits ? (screen->columns - digits) / (STRIP_GROUP + 1) : 0;
    const unsigned across = groups * STRIP_GROUP;
    for (uint32_t i = 0; across > 0 && i < s->n_workers && lines > 0; lines--) {
        const uint32_t end = s->n_workers - i > across ? i + across : s->n_workers;
        pen_format(pen, PEN_DIM, "%*u", (int)digits, s->worker[i].rank);
        for (unsigned at = 0; i < end; i++, at++) {
            const double share = draw_clamped(s->worker[i].compute);
            const char tenths[2] = {(char)('0' + (int)(9 * share + 0.5)), '\0'};
            if (at % STRIP_GROUP == 0) pen_text(pen, PEN_PLAIN, " ");
            if (s->worker[i].stalled)
                pen_text(pen, PEN_RED, STALLED);
            else
                pen_text(pen, share < 0.5 ? PEN_YELLOW : PEN_GREEN, screen->blocks ? draw_level(share) : tenths);
        }
        pen_end_line(pen);
    }
}

static void draw_many(const struct draw_state *s, const struct draw_screen *screen, unsigned lines, struct pen *pen) {
    const struct spread rate = spread_of(s, rate_of), waiting = spread_of(s, waiting_of);
    if (lines < 2) return;
    draw_spread("examples/s", &rate, rate_words, pen);
    draw_spread("waiting", &waiting, percent_words, pen);
    if (lines < 4) return;
    if (screen->columns >= WORDY) pen_text(pen, PEN_DIM, "each worker, from ");
    pen_text(pen, PEN_DIM, screen->blocks ? "▁ waiting to █ computing" : "0 waiting to 9 computing");
    pen_end_line(pen);
    draw_strips(s, screen, lines - 3, pen);
}

void draw_workers(const struct draw_state *state, const struct draw_screen *screen, unsigned most_lines, struct pen *pen) {
    struct grid grid;
    if (most_lines == 0) return;
    draw_heading(state, screen, pen);
    if (lay_out(state, screen->columns, most_lines - 1, &grid)) {
        draw_unit(screen, &grid, pen);
        draw_grid(state, screen, &grid, pen);
    } else {
        pen_end_line(pen);
        draw_many(state, screen, most_lines - 1, pen);
    }
}
