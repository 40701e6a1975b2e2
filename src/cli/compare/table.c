/* A comparison as a table, at most 80 columns wide. Words are made here once, for the text (compare.c) and the page (html.c). */
#include <math.h>
#include <string.h>

#include "cli/compare/compare.h"

#define WIDTH     80
#define MOST_NAME 13 /* columns of a mode's name */

const struct compare_column COMPARE_TABLE[COMPARE_COLUMNS] = {
    [COLUMN_NAME] = {"mode", false, 0, COMPARE_NONE},
    [COLUMN_TIME] = {"seconds", true, 9, COMPARE_TIME},
    [COLUMN_EPOCHS] = {"epochs", true, 8, COMPARE_EPOCHS},
    [COLUMN_SPEED] = {"examples/s", false, 11, COMPARE_SPEED},
    [COLUMN_DELAY] = {"delay", false, 8, COMPARE_NONE},
    [COLUMN_WAITING] = {"waiting", false, 9, COMPARE_NONE},
    [COLUMN_DROPPED] = {"dropped", false, 9, COMPARE_NONE},
    [COLUMN_LOSS] = {"final loss", false, 11, COMPARE_LOSS},
    [COLUMN_WORKERS] = {"-w", false, 5, COMPARE_NONE},
    [COLUMN_EPOCH] = {"s/epoch", false, 9, COMPARE_EPOCH},
    [COLUMN_SPEED_UP] = {"speed-up", false, 9, COMPARE_SPEED_UP},
};

int compare_column_at(const struct comparison *c, unsigned i) {
    static const int ONE[] = {COLUMN_NAME,  COLUMN_TIME,    COLUMN_EPOCHS,  COLUMN_SPEED,
                              COLUMN_DELAY, COLUMN_WAITING, COLUMN_DROPPED, COLUMN_LOSS};
    static const int SEVERAL[] = {COLUMN_NAME,  COLUMN_WORKERS,  COLUMN_TIME,    COLUMN_EPOCHS,
                                  COLUMN_EPOCH, COLUMN_SPEED_UP, COLUMN_WAITING, COLUMN_LOSS};
    const size_t n = c->n_workers > 0 ? sizeof SEVERAL / sizeof *SEVERAL : sizeof ONE / sizeof *ONE;
    return i >= n ? -1 : c->n_workers > 0 ? SEVERAL[i] : ONE[i];
}

/* ---- cells ---- */

/* With as many decimals as leave about four digits; "-" where there is no number. */
static void put_number(double x, int digits, char out[32]) {
    if (!isfinite(x)) {
        snprintf(out, 32, "-");
        return;
    }
    if (x != 0 && fabs(x) < 0.5 * pow(10, -digits)) { /* more than nothing */
        snprintf(out, 32, fabs(x) < 1e-4 ? "%.0e" : "%.1g", x);
        return;
    }
    double limit = 100;
    while (digits > 0 && fabs(x) >= limit) {
        limit *= 10;
        digits--;
    }
    snprintf(out, 32, fabs(x) < 1e7 ? "%.*f" : "%.*e", fabs(x) < 1e7 ? digits : 2, x);
}

const char *compare_short(double x, char out[16]) {
    const char *at = pen_short(x, out);
    return at + strspn(at, " ");
}

static void put_short(double x, char out[32]) {
    char text[16];
    snprintf(out, 32, "%s", compare_short(x, text));
}

/* One decimal. What is more than nothing is seen to be, but not how much. */
static void put_delay(double clocks, char out[32]) {
    if (!isfinite(clocks))
        snprintf(out, 32, "-");
    else if (clocks > 0 && clocks < 0.1)
        snprintf(out, 32, "<0.1");
    else if (clocks < 99999)
        snprintf(out, 32, "%.1f", clocks);
    else
        put_short(clocks, out);
}

static void put_percent(double share, char out[32]) {
    if (isfinite(share))
        snprintf(out, 32, "%.1f %%", 100 * share);
    else
        snprintf(out, 32, "-");
}

static void put_loss(double x, char out[32]) {
    if (!isfinite(x))
        snprintf(out, 32, "-");
    else
        snprintf(out, 32, (fabs(x) < 1000 && fabs(x) >= 1e-3) || x == 0 ? "%.5f" : "%.3e", x);
}

const char *compare_words(unsigned column, double x, char out[32]) {
    if (column == COLUMN_TIME || column == COLUMN_EPOCH)
        put_number(x, column == COLUMN_EPOCH ? 4 : 3, out);
    else if (column == COLUMN_EPOCHS || column == COLUMN_SPEED_UP)
        put_number(x, 2, out);
    else if (column == COLUMN_SPEED)
        put_short(x, out);
    else
        put_loss(x, out);
    return out;
}

/* What the seed in the middle waited, dropped, and the like. */
static void put_cost(const struct shmtrain_report *r, unsigned column, char out[32]) {
    if (column == COLUMN_DELAY)
        put_delay(r->delay.samples > 0 ? r->delay.clocks : NAN, out);
    else
        put_percent(column == COLUMN_WAITING ? r->wait_fraction : compare_dropped(r), out);
}

const char *compare_cell(const struct comparison *c, const struct compare_run *run, unsigned column, char out[32]) {
    const struct shmtrain_report *r = compare_report(run);
    (void)c;
    snprintf(out, 32, "-");
    if (column == COLUMN_NAME) snprintf(out, 32, "%.31s", run->label);
    if (column == COLUMN_WORKERS) snprintf(out, 32, "%u", run->workers);
    if (!r || column == COLUMN_NAME || column == COLUMN_WORKERS) return out;
    if (COMPARE_TABLE[column].figure != COMPARE_NONE)
        compare_words(column, compare_spread_of(run, COMPARE_TABLE[column].figure).median, out);
    else
        put_cost(r, column, out);
    return out;
}

const char *compare_why(const struct compare_run *run, char *out, size_t bytes) {
    const char *kind = run->status == SHMTRAIN_E_USAGE ? "refused: " : run->status == SHMTRAIN_E_STOPPED ? "" : "failed: ";
    snprintf(out, bytes, "%s%s", run->tried ? kind : "not run", run->tried ? run->why : "");
    return out;
}

/* ---- which run is best ---- */

const struct compare_run *compare_least(const struct comparison *c, enum compare_figure figure) {
    const struct compare_run *found = NULL;
    double least = INFINITY;
    for (unsigned i = 0; i < c->n; i++) {
        const double median = compare_spread_of(&c->run[i], figure).median;
        if (!(median < least)) continue;
        least = median;
        found = &c->run[i];
    }
    return found;
}

static bool is_apart(const struct comparison *c, const struct compare_run *run, enum compare_figure figure) {
    for (unsigned i = 0; i < c->n; i++)
        if (compare_is_rival(run, &c->run[i]) && !compare_is_below(run, &c->run[i], figure)) return false;
    return true;
}

bool compare_is_best(const struct comparison *c, const struct compare_run *run, unsigned column) {
    const enum compare_figure figure = COMPARE_TABLE[column].figure;
    if (figure != COMPARE_TIME && figure != COMPARE_EPOCHS && figure != COMPARE_LOSS) return false;
    const struct compare_run *best = compare_least(c, figure);
    if (!best || compare_spread_of(run, figure).median != compare_spread_of(best, figure).median) return false;
    return c->seeds < 2 || is_apart(c, run, figure);
}

/* ---- the table ---- */

/* Of a word, or of the name of a run: "sync -w 2" stays in one line. */
static size_t length_of_word(const char *words) {
    const size_t n = strcspn(words, " ");
    return strncmp(words + n, " -w ", 4) == 0 ? n + 4 + strcspn(words + n + 4, " ") : n;
}

/* Words, in lines of at most WIDTH columns; those behind the first begin at `indent`. `column`: where the cursor is. */
static void put_words(FILE *out, const char *words, size_t column, size_t indent) {
    size_t n;
    for (bool first = true; *words; words += n + strspn(words + n, " "), first = false) {
        n = length_of_word(words);
        if (!first && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
            first = true;
        }
        fprintf(out, "%s%.*s", first ? "" : " ", (int)n, words);
        column += n + (first ? 0 : 1);
    }
    fprintf(out, "\n");
}

static int width_of_names(const struct comparison *c) {
    int width = (int)strlen(c->seeds > 1 ? "least" : COMPARE_TABLE[COLUMN_NAME].title);
    for (unsigned i = 0; i < c->n; i++) {
        const int n = (int)strlen(c->run[i].label);
        width = n > width ? n : width;
    }
    return width < MOST_NAME ? width : MOST_NAME;
}

/* What is to the target stands side by side. */
static void put_heading(const struct comparison *c, int names, FILE *out) {
    char loss[32], over[64];
    int width = 2 + names, column;
    if (isfinite(c->target)) {
        for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++) {
            width += COMPARE_TABLE[column].width;
            if (column == COLUMN_EPOCHS) break;
        }
        snprintf(over, sizeof over, "to %s", compare_words(COLUMN_LOSS, c->target, loss));
        fprintf(out, "%*s\n", width, over);
    }
    fprintf(out, "  %-*s", names, COMPARE_TABLE[COLUMN_NAME].title);
    for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++)
        fprintf(out, "%*s", COMPARE_TABLE[column].width, COMPARE_TABLE[column].title);
    fprintf(out, "\n");
}

/* The least, or the most, of all seeds, below the medians; nothing behind the last figure. */
static void put_ends(const struct comparison *c, const struct compare_run *run, bool most, int names, FILE *out) {
    int column, blanks = 0;
    fprintf(out, "  %*s", names, most ? "most" : "least");
    for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++) {
        const struct compare_column *k = &COMPARE_TABLE[column];
        char cell[32];
        blanks += k->width;
        if (k->figure == COMPARE_NONE) continue;
        const struct compare_spread s = compare_spread_of(run, k->figure);
        fprintf(out, "%*s", blanks, compare_words((unsigned)column, most ? s.most : s.least, cell));
        blanks = 0;
    }
    fprintf(out, "\n");
}

/* A mode that did nothing has a sentence in place of figures. */
static void put_run(const struct comparison *c, const struct compare_run *run, int names, FILE *out) {
    char cell[32], words[600];
    int column;
    fprintf(out, "%c %-*.*s", run->mark, names, names, run->label);
    if (!run->kept) {
        compare_why(run, words, sizeof words);
        const int workers = run->workers > 0 ? fprintf(out, "%*u", COMPARE_TABLE[COLUMN_WORKERS].width, run->workers) : 0;
        fprintf(out, "  ");
        put_words(out, words, (size_t)(names + 4 + workers), (size_t)(names + 4 + workers));
        return;
    }
    for (unsigned i = 1; (column = compare_column_at(c, i)) >= 0; i++)
        fprintf(out, "%*s", COMPARE_TABLE[column].width, compare_cell(c, run, (unsigned)column, cell));
    fprintf(out, "%s\n", run->kept->report.stopped ? " *" : "");
    for (int most = 0; run->n_seeds > 1 && most < 2; most++) put_ends(c, run, most != 0, names, out);
}

static bool any_stopped(const struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        if (c->run[i].kept && c->run[i].kept->report.stopped) return true;
    return false;
}

void compare_put_table(const struct comparison *c, FILE *out) {
    char sentence[COMPARE_SENTENCES][COMPARE_WORDS];
    const unsigned n = compare_sentences(c, sentence);
    const int names = width_of_names(c);
    put_heading(c, names, out);
    for (unsigned i = 0; i < c->n; i++) put_run(c, &c->run[i], names, out);
    if (any_stopped(c)) fprintf(out, "* stopped before its end\n");
    fprintf(out, "\n");
    for (unsigned i = 0; i < n; i++) put_words(out, sentence[i], 0, 0);
}
