/* What the figures of a comparison say, in a few sentences, for the text (compare.c) and the page (html.c). The verdict is
 * verdict.c's. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "cli/compare/compare.h"

#define MUCH_WAIT  0.05
#define MUCH_DROPS 0.001
#define TOO_SHORT  0.1 /* seconds */

/* The run with the least of what `of` says, or NULL. */
static const struct compare_run *least(const struct comparison *c, double (*of)(const struct compare_run *run)) {
    const struct compare_run *found = NULL;
    for (unsigned i = 0; i < c->n; i++)
        if (isfinite(of(&c->run[i])) && (!found || of(&c->run[i]) < of(found))) found = &c->run[i];
    return found;
}

static double train_seconds_of(const struct compare_run *run) { return run->kept ? run->kept->report.train_seconds : NAN; }
static double lack_of_waits(const struct compare_run *run) { return run->kept ? -run->kept->report.wait_fraction : NAN; }
static double lack_of_drops(const struct compare_run *run) { return run->kept ? -compare_dropped(&run->kept->report) : NAN; }

const char *compare_loss_name(const struct comparison *c) { return c->validates ? "validation loss" : "train loss"; }

void compare_add(char *out, size_t bytes, const char *format, ...) {
    const size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, bytes - used, format, args);
    va_end(args);
}

static void say_target(const struct comparison *c, char *out, size_t bytes) {
    char loss[32];
    compare_words(COLUMN_LOSS, c->target, loss);
    if (c->target_is_given)
        compare_add(out, bytes, "Target: %s %s, as asked for", compare_loss_name(c), loss);
    else
        compare_add(out, bytes, "Target: %s %s, 1 %% above the lowest of any epoch (%s)", compare_loss_name(c), loss,
                    c->run[c->best].name);
    compare_add(out, bytes,
                "; linear between two epochs, not before the first. Seconds are of training, without loading and evaluation. ");
    if (c->n_workers == 0) compare_add(out, bytes, "Delay: mean, in clocks (updates of one work item). ");
    compare_add(out, bytes, "Waiting: within epochs; at their ends all meet in every mode.");
}

static bool any_failed(const struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; c->run[i].kept && k < c->run[i].n_seeds; k++)
            if (!c->run[i].seed[k].kept) return true;
    return false;
}

static void say_seeds(const struct comparison *c, char *out, size_t bytes) {
    const unsigned done = compare_seeds_done(c);
    if (c->seeds < 2) return;
    compare_add(out, bytes,
                "Medians of %u seeds, from %" PRIu64
                " on; below them the least and the most. %s and curves are of the run whose "
                "final loss is the median.",
                c->seeds, c->first_seed, c->n_workers > 0 ? "Waiting" : "Delay, waiting, dropped");
    if (done < c->seeds)
        compare_add(out, bytes, c->broken ? " An error ended it: some modes have %u." : " A signal came: some modes have %u.",
                    done);
    if (any_failed(c)) compare_add(out, bytes, " A seed with which a mode failed counts as an infinite loss.");
    if (c->splits)
        compare_add(out, bytes, " Each seed sets other examples aside, which adds to the spread; --valid FILE does not.");
}

/* "-w 1, 2, 4" */
static void add_workers(const struct comparison *c, char *out, size_t bytes) {
    for (unsigned i = 0; i < c->n_workers; i++) compare_add(out, bytes, "%s%u", i == 0 ? "-w " : ", ", c->workers[i]);
}

static void say_rate(const struct comparison *c, const struct compare_run *run, char *out, size_t bytes) {
    const struct shmtrain_report *r = compare_report(run);
    compare_add(out, bytes, r ? "%.3g" : "-", r ? r->rate : 0);
    if (r && c->rates > 1 && c->n_workers == 0) compare_add(out, bytes, " (%.3g x auto)", run->times);
}

/* Rates, and how they fall. Of several numbers of workers a mode has one for each, "-" where it did not run. */
static void say_rates(const struct comparison *c, char *out, size_t bytes) {
    const struct shmtrain_report *any = compare_any_report(c);
    const struct compare_run *before = NULL;
    if (!any) return;
    compare_add(out, bytes, c->rates > 1 ? "Rates, %s, the best of %u for each mode" : "Rates, %s", any->schedule, c->rates);
    if (c->n_workers > 0) compare_add(out, bytes, ", with ");
    add_workers(c, out, bytes);
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        if (c->n_workers == 0 && !run->kept) continue;
        compare_add(out, bytes, "%s", !before ? ": " : before->which == run->which ? ", " : c->n_workers > 0 ? "; " : ", ");
        if (!before || before->which != run->which) compare_add(out, bytes, "%s ", run->label);
        say_rate(c, run, out, bytes);
        before = run;
    }
    compare_add(out, bytes, "%s", ".");
}

/* A row has the name that was asked for, whatever an option made of it. */
static void say_what_ran(const struct comparison *c, char *out, size_t bytes) {
    char instead[96];
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        if (compare_instead(&c->run[i], instead)[0] == '\0') continue;
        compare_add(out, bytes, n++ > 0 ? "; \"%s\" is %s" : "Here \"%s\" is %s", c->run[i].name, instead);
    }
    if (n > 0 && c->replacing[0] != '\0')
        compare_add(out, bytes, ": an option counts more than what a mode says (%s)", c->replacing);
    if (n > 0) compare_add(out, bytes, "%s", ".");
}

/* Times so short are mostly those of starting and of whatever else the machine did; not so in virtual time. */
static void say_noise(const struct comparison *c, char *out, size_t bytes) {
    const struct compare_run *run = least(c, train_seconds_of);
    char seconds[32];
    if (!run || run->kept->report.train_seconds >= TOO_SHORT) return;
    if (run->kept->report.spawn && strcmp(run->kept->report.spawn, "fibers") == 0) return;
    compare_words(COLUMN_TIME, run->kept->report.train_seconds, seconds);
    compare_add(out, bytes, "%s trained for %s s in all: times so short are mostly noise; more epochs (-e) make longer ones.",
                run->name, seconds);
}

static void say_who_got_worse(const struct comparison *c, char *out, size_t bytes) {
    char loss[32], epochs[32];
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) {
        const struct compare_run *run = &c->run[i];
        if (!compare_got_worse(run)) continue;
        const struct compare_seed *middle = compare_middle(run);
        compare_words(COLUMN_LOSS, middle->lowest_loss, loss);
        snprintf(epochs, sizeof epochs, middle->lowest_at == floor(middle->lowest_at) ? "%.0f" : "%.2f", middle->lowest_at);
        compare_add(
            out, bytes,
            n++ > 0 ? ", %s (%s, epoch %s)" : "The final loss is over 1 %% above the best of the same run: %s (%s, epoch %s)",
            run->name, loss, epochs);
    }
    if (n > 0) compare_add(out, bytes, "%s", ".");
}

static bool waited_much(const struct compare_run *run) { return run && run->kept->report.wait_fraction >= MUCH_WAIT; }
static bool dropped_much(const struct compare_run *run) { return run && compare_dropped(&run->kept->report) >= MUCH_DROPS; }

/* What one run waited, and dropped if it did, in one sentence. */
static void say_cost(const struct compare_run *run, char *out, size_t bytes) {
    const struct shmtrain_report *r = &run->kept->report;
    compare_add(out, bytes, "%s waited %.0f %% of the time", run->name, 100 * r->wait_fraction);
    if (r->waits_mostly_for != UINT32_MAX) compare_add(out, bytes, ", mostly for worker %" PRIu32, r->waits_mostly_for);
    if (dropped_much(run)) compare_add(out, bytes, ", and dropped %.1f %% of the gradients", 100 * compare_dropped(r));
    compare_add(out, bytes, "%s", ".");
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
    static void (*const SAY[])(const struct comparison *c, char *out, size_t bytes) = {
        say_target,           say_seeds, say_rates,         say_what_ran, compare_say_verdict,
        compare_say_speed_up, say_noise, say_who_got_worse, say_waits,    say_drops};
    unsigned n = 0;
    if (!isfinite(c->target)) return 0;
    for (size_t i = 0; i < sizeof SAY / sizeof *SAY; i++) {
        out[n][0] = '\0';
        SAY[i](c, out[n], COMPARE_WORDS);
        if (out[n][0] != '\0') n++;
    }
    return n;
}
