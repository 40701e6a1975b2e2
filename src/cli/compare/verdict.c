/* The verdict of a comparison: who was first to the target, with the fewest epochs, with the lowest loss, and whether that is more
 * than the spread of the seeds; what more workers bring. Rules are spread.c's. See compare.h. */
#include <inttypes.h>
#include <math.h>

#include "cli/compare/compare.h"

#define MORE_LOSS 0.01 /* of the loss with the fewest workers: it is told from here on */

/* ---- who missed the target ---- */

static void say_who_missed(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (!c->run[i].kept || isfinite(c->run[i].to_target_s)) continue;
        compare_add(out, bytes, "%s%s",
                    n++ > 0          ? ", "
                    : out[0] == '\0' ? "Not reached by: "
                                     : " Not reached by: ",
                    c->run[i].name);
    }
    if (n > 0) compare_add(out, bytes, ".");
}

/* ---- one seed ---- */

/* Modes that have done something. */
static unsigned count_modes(const struct comparison *c) {
    unsigned n = 0;
    for (unsigned which = 0; which < c->n_modes; which++) {
        bool any = false;
        for (unsigned i = 0; i < c->n; i++) any |= c->run[i].which == which && c->run[i].kept;
        n += any;
    }
    return n;
}

static void say_fastest(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *time = compare_least(c, COMPARE_TIME), *epochs = compare_least(c, COMPARE_EPOCHS);
    char loss[32], seconds[32], of_time[32], passes[32];
    if (time->to_target_epochs <= epochs->to_target_epochs) epochs = time; /* of several that need as many */
    compare_words(COLUMN_LOSS, c->target, loss);
    compare_words(COLUMN_TIME, time->to_target_s, seconds);
    compare_words(COLUMN_EPOCHS, time->to_target_epochs, of_time);
    compare_words(COLUMN_EPOCHS, epochs->to_target_epochs, passes);
    if (time == epochs)
        compare_add(out, bytes, "Fastest to %s: %s, in %s s, and with the fewest epochs (%s).", loss, time->name, seconds,
                    passes);
    else
        compare_add(out, bytes, "Fastest to %s: %s, in %s s and %s epochs; %s needs the fewest epochs (%s).", loss, time->name,
                    seconds, of_time, epochs->name, passes);
    say_who_missed(c, out, bytes);
    if (count_modes(c) > 1) compare_add(out, bytes, " One seed shows no spread: --seeds 5 tells a win from chance.");
}

/* ---- several seeds ---- */

static void add_figure(const struct compare_run *run, unsigned column, const char *unit, char *out, size_t bytes) {
    const double median = compare_spread_of(run, COMPARE_TABLE[column].figure).median;
    char words[32];
    if (isfinite(median))
        compare_add(out, bytes, "%s (%s%s)", run->name, compare_words(column, median, words), unit);
    else
        compare_add(out, bytes, "%s (not reached with half of the seeds or more)", run->name);
}

static bool overlaps(const struct compare_run *least, const struct compare_run *run, enum compare_figure figure) {
    return compare_is_rival(least, run) && !compare_is_below(least, run, figure);
}

/* Of several runs of a mode that overlap with the least one the best is told. */
static bool is_told(const struct comparison *c, const struct compare_run *least, const struct compare_run *run,
                    enum compare_figure figure) {
    const double own = compare_spread_of(run, figure).median;
    if (!overlaps(least, run, figure)) return false;
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *other = &c->run[i];
        const double its = compare_spread_of(other, figure).median;
        const bool is_better = its < own || (its == own && other < run);
        if (other->which == run->which && is_better && overlaps(least, other, figure)) return false;
    }
    return true;
}

static unsigned add_overlapping(const struct comparison *c, const struct compare_run *least, unsigned column, const char *unit,
                                char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (!is_told(c, least, &c->run[i], COMPARE_TABLE[column].figure)) continue;
        compare_add(out, bytes, ", ");
        add_figure(&c->run[i], column, unit, out, bytes);
        n++;
    }
    return n;
}

/* A win is one over all others; else nobody wins. */
static void say_who_wins(const struct comparison *c, unsigned column, const char *what, const char *unit, char *out,
                         size_t bytes) {
    const struct compare_run *least = compare_least(c, COMPARE_TABLE[column].figure);
    char others[COMPARE_WORDS] = "";
    if (!least) return;
    const unsigned n = add_overlapping(c, least, column, unit, others, sizeof others);
    compare_add(out, bytes, n > 0 ? "%s: no winner; within the spread are " : "%s: ", what);
    if (n == 0 && c->n_workers > 0) compare_add(out, bytes, "%s wins, at best ", least->label);
    add_figure(least, column, unit, out, bytes);
    compare_add(out, bytes, "%s. ", n > 0 ? others : c->n_workers > 0 ? "" : " wins");
}

/* Of two modes that are alike, one is below the other with every seed in 2 of C(2n, n) cases. */
static void say_chance(unsigned n, char *out, size_t bytes) {
    double cases = 1;
    for (unsigned i = 1; i <= n; i++) cases *= (double)(n + i) / i;
    compare_add(out, bytes, "A winner is below all other modes with every seed");
    if (cases / 2 < 1000)
        compare_add(out, bytes, " (of two that are alike, one is in 1 of %.0f cases, for each of these figures).", cases / 2);
    else
        compare_add(out, bytes, ".");
}

static void say_spread(const struct comparison *c, char *out, size_t bytes) {
    const unsigned seeds = compare_seeds_done(c);
    char loss[32], what[64];
    compare_words(COLUMN_LOSS, c->target, loss);
    if (!compare_least(c, COMPARE_TIME)) compare_add(out, bytes, "No mode came to the target. ");
    if (count_modes(c) > 1 && seeds < COMPARE_ENOUGH) {
        compare_add(out, bytes, "No verdict: %u seed%s too few to tell a win from chance; take %d or more.", seeds,
                    seeds == 1 ? " is" : "s are", COMPARE_ENOUGH);
    } else if (count_modes(c) > 1) {
        snprintf(what, sizeof what, "Time to %s", loss);
        say_who_wins(c, COLUMN_TIME, what, " s", out, bytes);
        snprintf(what, sizeof what, "Epochs to %s", loss);
        say_who_wins(c, COLUMN_EPOCHS, what, "", out, bytes);
        say_who_wins(c, COLUMN_LOSS, "Final loss", "", out, bytes);
        say_chance(seeds, out, bytes);
    }
    if (compare_least(c, COMPARE_TIME)) say_who_missed(c, out, bytes);
}

void compare_say_verdict(const struct comparison *c, char *out, size_t bytes) {
    if (c->untuned)
        compare_add(out, bytes,
                    "No verdict: rates are the automatic ones, which suit one mode more than another (--tune finds each its "
                    "own).");
    else if (!compare_least(c, COMPARE_TIME) && c->seeds < 2)
        compare_add(out, bytes, "No mode came to the target.");
    else if (c->seeds < 2)
        say_fastest(c, out, bytes);
    else
        say_spread(c, out, bytes);
}

/* ---- several numbers of workers ---- */

/* It is faster than that with the fewest workers; of several seeds, with each of them. Only what has a base has a speed-up. */
static bool gains(const struct comparison *c, const struct compare_run *run) {
    return run != compare_fewest(c, run) && compare_spread_of(run, COMPARE_SPEED_UP).least > 1;
}

/* The number of workers with which a mode is fastest, of those that gain; NULL: none does. */
static const struct compare_run *most_speed_up(const struct comparison *c, unsigned which) {
    const struct compare_run *most = NULL;
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        if (run->which == which && gains(c, run) && run->speed_up > (most ? most->speed_up : 0)) most = run;
    }
    return most;
}

/* Nothing but chance: one of several seeds ended lower than one with fewer workers. */
static bool pays_with_loss(const struct comparison *c, const struct compare_run *run) {
    const struct compare_run *base = compare_fewest(c, run);
    const double loss = compare_spread_of(run, COMPARE_LOSS).median; /* of seeds that failed: infinite */
    if (!(loss > base->final_loss + MORE_LOSS * fabs(base->final_loss))) return false;
    return c->seeds < COMPARE_ENOUGH || isinf(loss) || compare_is_below(base, run, COMPARE_LOSS);
}

static void say_gain(const struct comparison *c, const struct compare_run *run, unsigned n, char *out, size_t bytes) {
    char times[32], loss[32], before[32];
    compare_add(out, bytes, n > 0 ? "; %s, %s times" : "At most: %s, %s times", run->name,
                compare_words(COLUMN_SPEED_UP, run->speed_up, times));
    if (!pays_with_loss(c, run)) return;
    compare_add(out, bytes, ", but at a loss of %s in place of %s", compare_words(COLUMN_LOSS, run->final_loss, loss),
                compare_words(COLUMN_LOSS, compare_fewest(c, run)->final_loss, before));
}

static const struct compare_run *any_kept(const struct comparison *c, unsigned which) {
    for (unsigned i = 0; i < c->n; i++)
        if (c->run[i].which == which && c->run[i].kept) return &c->run[i];
    return NULL;
}

/* Something was measured beside what it is over: a run may have failed, or have been stopped in its first epoch. */
static bool has_speed_up(const struct comparison *c, unsigned which) {
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        if (run->which == which && run != compare_fewest(c, run) && compare_spread_of(run, COMPARE_SPEED_UP).n > 0) return true;
    }
    return false;
}

static void say_no_gain(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned which = 0; which < c->n_modes; which++) {
        const struct compare_run *run = any_kept(c, which);
        if (!run || !has_speed_up(c, which) || most_speed_up(c, which)) continue;
        if (n++ == 0)
            compare_add(out, bytes, " No gain%s with more than -w %u: %s", c->seeds > 1 ? " outside of the spread" : "",
                        c->workers[0], run->label);
        else
            compare_add(out, bytes, ", %s", run->label);
    }
    if (n > 0) compare_add(out, bytes, ".");
}

static void say_no_base(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    for (unsigned which = 0; which < c->n_modes; which++) {
        const struct compare_run *run = any_kept(c, which);
        if (!run || compare_fewest(c, run)) continue;
        compare_add(out, bytes, n++ == 0 ? " No speed-up of what did not run with -w %u: " : ", ", c->workers[0]);
        compare_add(out, bytes, "%s", run->label);
    }
    if (n > 0) compare_add(out, bytes, ".");
}

/* More than there are cores take turns at them. */
static void say_cores(const struct comparison *c, char *out, size_t bytes) {
    const uint32_t cores = compare_cores(c);
    unsigned n = 0;
    for (unsigned i = 0; i < c->n_workers; i++) {
        if (cores == 0 || c->workers[i] <= cores) continue;
        compare_add(out, bytes, "%s%u", n++ > 0 ? ", " : " -w ", c->workers[i]);
    }
    if (n > 0)
        compare_add(out, bytes, " share%s the %" PRIu32 " core%s that the runs may use.", n > 1 ? "" : "s", cores,
                    cores == 1 ? "" : "s");
}

void compare_say_speed_up(const struct comparison *c, char *out, size_t bytes) {
    unsigned n = 0;
    if (c->n_workers == 0) return;
    compare_add(out, bytes, "Speed-up: the median epoch's seconds with -w %u over those with more, in the same mode. ",
                c->workers[0]);
    for (unsigned which = 0; which < c->n_modes; which++) {
        const struct compare_run *run = most_speed_up(c, which);
        if (run) say_gain(c, run, n++, out, bytes);
    }
    if (n > 0) compare_add(out, bytes, ".");
    say_no_gain(c, out, bytes);
    say_no_base(c, out, bytes);
    say_cores(c, out, bytes);
}
