/* A comparison as a table, at most 80 columns wide, and what its figures say in a few sentences. Words are made here once, for
 * the text (compare.c) and the page (html.c). */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/compare/compare.h"

#define WIDTH      80
#define MOST_NAME  13 /* columns of a mode's name */
#define MUCH_WAIT  0.05
#define MUCH_DROPS 0.001
#define TOO_SHORT  0.1 /* seconds */

const struct compare_column COMPARE_TABLE[COMPARE_COLUMNS] = {
    {"mode", false, 0},  {"seconds", true, 9},  {"epochs", true, 8},   {"examples/s", false, 11},
    {"delay", false, 8}, {"waiting", false, 9}, {"dropped", false, 9}, {"final loss", false, 11},
};
enum { NAME, SECONDS, EPOCHS, SPEED, DELAY, WAITING, DROPPED, LOSS };

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

const char *compare_cell(const struct comparison *c, const struct compare_run *run, unsigned column, char out[32]) {
    const struct shmtrain_report *r = compare_report(run);
    (void)c;
    snprintf(out, 32, "-");
    if (column == NAME) snprintf(out, 32, "%.31s", run->name);
    if (!r || column == NAME) return out;
    switch (column) {
        case SECONDS:
            put_number(run->to_target_s, 3, out);
            break;
        case EPOCHS:
            put_number(run->to_target_epochs, 2, out);
            break;
        case SPEED:
            put_short(r->examples_per_second, out);
            break;
        case DELAY:
            put_delay(r->delay.samples > 0 ? r->delay.clocks : NAN, out);
            break;
        case WAITING:
            put_percent(r->wait_fraction, out);
            break;
        case DROPPED:
            put_percent(compare_dropped(r), out);
            break;
        default:
            put_loss(run->final_loss, out);
    }
    return out;
}

const char *compare_why(const struct compare_run *run, char *out, size_t bytes) {
    const char *kind = run->status == SHMTRAIN_E_USAGE ? "refused: " : run->status == SHMTRAIN_E_STOPPED ? "" : "failed: ";
    snprintf(out, bytes, "%s%s", run->tried ? kind : "not run", run->tried ? run->why : "");
    return out;
}

/* ---- which run is best ---- */

/* The run with the least of what `of` says, or NULL. */
static const struct compare_run *least(const struct comparison *c, double (*of)(const struct compare_run *run)) {
    const struct compare_run *found = NULL;
    for (unsigned i = 0; i < c->n; i++)
        if (isfinite(of(&c->run[i])) && (!found || of(&c->run[i]) < of(found))) found = &c->run[i];
    return found;
}

static double seconds_of(const struct compare_run *run) { return run->to_target_s; }
static double epochs_of(const struct compare_run *run) { return run->to_target_epochs; }
static double loss_of(const struct compare_run *run) { return run->final_loss; }
static double train_seconds_of(const struct compare_run *run) { return run->kept ? run->kept->report.train_seconds : NAN; }
static double lack_of_waits(const struct compare_run *run) { return run->kept ? -run->kept->report.wait_fraction : NAN; }
static double lack_of_drops(const struct compare_run *run) { return run->kept ? -compare_dropped(&run->kept->report) : NAN; }

bool compare_is_best(const struct comparison *c, const struct compare_run *run, unsigned column) {
    static double (*const OF[COMPARE_COLUMNS])(const struct compare_run *run) = {
        [SECONDS] = seconds_of, [EPOCHS] = epochs_of, [LOSS] = loss_of};
    const struct compare_run *best = OF[column] ? least(c, OF[column]) : NULL;
    return best && OF[column](run) == OF[column](best);
}

/* ---- sentences ---- */

const char *compare_loss_name(const struct comparison *c) { return c->validates ? "validation loss" : "train loss"; }

static void add(char *out, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add(char *out, size_t bytes, const char *format, ...) {
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

static void say_target(const struct comparison *c, char *out, size_t bytes) {
    char loss[32];
    put_loss(c->target, loss);
    if (c->target_is_given)
        add(out, bytes, "Target: %s %s, as asked for", compare_loss_name(c), loss);
    else
        add(out, bytes, "Target: %s %s, 1 %% above the lowest of any epoch (%s)", compare_loss_name(c), loss,
            c->run[c->best].name);
    add(out, bytes,
        "; linear between two epochs, not before the first. Seconds are of training, without loading and evaluation. Delay: "
        "mean, in clocks (updates of one work item). Waiting: within epochs; at their ends all meet in every mode.");
}

/* Rates, and how they fall. */
static void say_rates(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        const struct shmtrain_report *r = compare_report(&c->run[i]);
        if (!r) continue;
        if (n++ == 0)
            add(out, bytes, c->rates > 1 ? "Rates, %s, the best of %u for each mode: " : "Rates, %s: ", r->schedule, c->rates);
        add(out, bytes, n > 1 ? ", %s %.3g" : "%s %.3g", c->run[i].name, r->rate);
        if (c->rates > 1) add(out, bytes, " (%.3g x auto)", c->run[i].times);
    }
    if (n > 0) add(out, bytes, ".");
}

/* A row has the name that was asked for, whatever an option made of it. */
static void say_what_ran(const struct comparison *c, char *out, size_t bytes) {
    char instead[96];
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (compare_instead(&c->run[i], instead)[0] == '\0') continue;
        add(out, bytes, n++ > 0 ? "; \"%s\" is %s" : "Here \"%s\" is %s", c->run[i].name, instead);
    }
    if (n > 0 && c->replacing[0] != '\0') add(out, bytes, ": an option counts more than what a mode says (%s)", c->replacing);
    if (n > 0) add(out, bytes, "%s", ".");
}

static void say_who_missed(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (!c->run[i].kept || isfinite(c->run[i].to_target_s)) continue;
        add(out, bytes, "%s%s", n++ > 0 ? ", " : " Not reached by: ", c->run[i].name);
    }
    if (n > 0) add(out, bytes, ".");
}

static void say_fastest(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *time = least(c, seconds_of), *epochs = least(c, epochs_of);
    char loss[32], seconds[32], of_time[32], passes[32];
    if (c->untuned) {
        add(out, bytes,
            "No verdict: rates are the automatic ones, which suit one mode more than another (--tune finds each its own).");
        return;
    }
    if (!time || !epochs) {
        add(out, bytes, "No mode came to the target.");
        return;
    }
    if (time->to_target_epochs <= epochs->to_target_epochs) epochs = time; /* of several that need as many */
    put_loss(c->target, loss);
    put_number(time->to_target_s, 3, seconds);
    put_number(time->to_target_epochs, 2, of_time);
    put_number(epochs->to_target_epochs, 2, passes);
    if (time == epochs)
        add(out, bytes, "Fastest to %s: %s, in %s s, and with the fewest epochs (%s).", loss, time->name, seconds, passes);
    else
        add(out, bytes, "Fastest to %s: %s, in %s s and %s epochs; %s needs the fewest epochs (%s).", loss, time->name, seconds,
            of_time, epochs->name, passes);
    say_who_missed(c, out, bytes);
}

/* Times so short are mostly those of starting and of whatever else the machine did. */
static void say_noise(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *run = least(c, train_seconds_of);
    char seconds[32];
    if (!run || run->kept->report.train_seconds >= TOO_SHORT) return;
    put_number(run->kept->report.train_seconds, 3, seconds);
    add(out, bytes, "%s trained for %s s in all: times so short are mostly noise; more epochs (-e) make longer ones.",
        run->name, seconds);
}

static void say_who_got_worse(const struct comparison *c, char *out, size_t bytes) {
    char loss[32], epochs[32];
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        if (!compare_got_worse(run)) continue;
        put_loss(run->lowest_loss, loss);
        put_number(run->lowest_at, run->lowest_at == floor(run->lowest_at) ? 0 : 2, epochs);
        add(out, bytes,
            n++ > 0 ? ", %s (%s, epoch %s)" : "The final loss is over 1 %% above the best of the same run: %s (%s, epoch %s)",
            run->name, loss, epochs);
    }
    if (n > 0) add(out, bytes, "%s", ".");
}

static bool waited_much(const struct compare_run *run) { return run && run->kept->report.wait_fraction >= MUCH_WAIT; }
static bool dropped_much(const struct compare_run *run) { return run && compare_dropped(&run->kept->report) >= MUCH_DROPS; }

/* What one run waited, and dropped if it did, in one sentence. */
static void say_cost(const struct compare_run *run, char *out, size_t bytes) {
    const struct shmtrain_report *r = &run->kept->report;
    add(out, bytes, "%s waited %.0f %% of the time", run->name, 100 * r->wait_fraction);
    if (r->waits_mostly_for != UINT32_MAX) add(out, bytes, ", mostly for worker %" PRIu32, r->waits_mostly_for);
    if (dropped_much(run)) add(out, bytes, ", and dropped %.1f %% of the gradients", 100 * compare_dropped(r));
    add(out, bytes, "%s", ".");
}

static void say_waits(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *run = least(c, lack_of_waits);
    if (waited_much(run)) say_cost(run, out, bytes);
}

static void say_drops(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *run = least(c, lack_of_drops), *waiter = least(c, lack_of_waits);
    if (dropped_much(run) && !(run == waiter && waited_much(run))) say_cost(run, out, bytes);
}

unsigned compare_sentences(const struct comparison *c, char out[COMPARE_SENTENCES][COMPARE_WORDS]) {
    static void (*const SAY[COMPARE_SENTENCES])(const struct comparison *c, char *out, size_t bytes) = {
        say_target, say_rates, say_what_ran, say_fastest, say_noise, say_who_got_worse, say_waits, say_drops};
    unsigned n = 0;
    if (!isfinite(c->target)) return 0;
    for (size_t i = 0; i < COMPARE_SENTENCES; i++) {
        out[n][0] = '\0';
        SAY[i](c, out[n], sizeof out[n]);
        if (out[n][0] != '\0') n++;
    }
    return n;
}

/* ---- the table ---- */

/* Words, in lines of at most WIDTH columns; those behind the first begin at `indent`. `column`: where the cursor is. */
static void put_words(FILE *out, const char *words, size_t column, size_t indent) {
    size_t n;
    for (bool first = true; *words; words += n + strspn(words + n, " "), first = false) {
        n = strcspn(words, " ");
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
    int width = (int)strlen(COMPARE_TABLE[NAME].title);
    for (unsigned i = 0; i < c->n; i++) width = (int)strlen(c->run[i].name) > width ? (int)strlen(c->run[i].name) : width;
    return width < MOST_NAME ? width : MOST_NAME;
}

static void put_heading(const struct comparison *c, int names, FILE *out) {
    char loss[32];
    if (isfinite(c->target)) {
        char over[64];
        put_loss(c->target, loss);
        snprintf(over, sizeof over, "to %s", loss);
        fprintf(out, "%*s\n", 2 + names + COMPARE_TABLE[SECONDS].width + COMPARE_TABLE[EPOCHS].width, over);
    }
    fprintf(out, "  %-*s", names, COMPARE_TABLE[NAME].title);
    for (unsigned i = SECONDS; i < COMPARE_COLUMNS; i++) fprintf(out, "%*s", COMPARE_TABLE[i].width, COMPARE_TABLE[i].title);
    fprintf(out, "\n");
}

/* A mode that did nothing has a sentence in place of figures. */
static void put_run(const struct comparison *c, const struct compare_run *run, int names, FILE *out) {
    char cell[32], words[600];
    fprintf(out, "%c %-*.*s", run->mark, names, names, run->name);
    if (!run->kept) {
        compare_why(run, words, sizeof words);
        fprintf(out, "  ");
        put_words(out, words, (size_t)names + 4, (size_t)names + 4);
        return;
    }
    for (unsigned i = SECONDS; i < COMPARE_COLUMNS; i++)
        fprintf(out, "%*s", COMPARE_TABLE[i].width, compare_cell(c, run, i, cell));
    fprintf(out, "%s\n", run->kept->report.stopped ? " *" : "");
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
