/* What a run has cost, as lines for people: delays, waiting, merging, late gradients; and a table of the workers. Whoever waits
 * little and computes for long is the slow one. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "report/words_priv.h"

#define MOST_ROWS  16
#define MOST_NAMES 3

/* ---- all together ---- */

static void add_delay(char *out, size_t bytes, const struct shmtrain_report *r) {
    const struct shmtrain_delay *d = &r->delay;
    char mean[16], clocks[16], text[16];
    if (d->samples == 0) return;
    if (d->max <= 0) {
        shmt_add(out, bytes, "delay       none\n");
        return;
    }
    shmt_add(out, bytes, "delay       ");
    shmt_add_item(out, bytes, 1, "mean %s updates (%s clocks)", shmt_grouped_number(d->mean, mean),
                  shmt_grouped_number(d->clocks, clocks));
    shmt_add_item(out, bytes, 0, "p50 %s", shmt_grouped_number(d->p50, text));
    shmt_add_item(out, bytes, 0, "p99 %s", shmt_grouped_number(d->p99, text));
    shmt_add_item(out, bytes, 0, "max %s", shmt_grouped_number(d->max, text));
    shmt_add(out, bytes, "\n");
}

static void add_share(char *out, size_t bytes, const char *what, double share) {
    shmt_add(out, bytes, "%-*s", SHMT_HEAD_COLUMNS, what);
    shmt_add_number(out, bytes, 6, 1, 100 * share);
    shmt_add(out, bytes, " %% of ");
}

static void add_waiting(char *out, size_t bytes, const struct shmtrain_report *r) {
    const bool named = r->waits_mostly_for != UINT32_MAX;
    add_share(out, bytes, "waiting", r->wait_fraction);
    shmt_add(out, bytes, "the workers' time");
    if (named) shmt_add(out, bytes, ", mostly for worker %" PRIu32, r->waits_mostly_for);
    if (r->wait_epoch_fraction >= 0.0005) /* else it would be 0.0 % */
        shmt_add(out, bytes, "%s and %.1f %% at the ends of epochs", named ? ",\n           " : ",",
                 100 * r->wait_epoch_fraction);
    shmt_add(out, bytes, "\n");
}

/* Late ones are counted on each host: over many, r->examples is of all of them. */
static double examples_of_host(const struct shmtrain_report *r) {
    double sum = 0;
    if (r->hosts <= 1) return (double)r->examples;
    for (uint32_t i = 0; i < r->n_workers; i++) sum += (double)r->worker[i].examples;
    return sum;
}

static void add_late(char *out, size_t bytes, const struct shmtrain_report *r, const char *what, uint64_t late,
                     const char *then) {
    if (late == 0) return;
    add_share(out, bytes, what, (double)late / fmax(examples_of_host(r), (double)late));
    if (r->hosts > 1)
        shmt_add(out, bytes, "this host's examples came too late%s%s\n", then[0] ? ",\n           " : "", then);
    else
        shmt_add(out, bytes, "the examples came too late%s\n", then);
}

static void add_merging(char *out, size_t bytes, const struct shmtrain_report *r) {
    char merges[16];
    if (r->merges == 0) return;
    add_share(out, bytes, "merging", r->merge_fraction);
    shmt_add(out, bytes, "the workers' time, %s merge%s\n", shmt_short_number((double)r->merges, merges),
             shmt_plural(r->merges));
}

void shmt_add_costs(char *out, size_t bytes, const struct shmtrain_report *r) {
    add_delay(out, bytes, r);
    add_waiting(out, bytes, r);
    add_merging(out, bytes, r);
    add_late(out, bytes, r, "dropped", r->dropped, "");
    add_late(out, bytes, r, "folded", r->folded, " and went into a later update");
}

/* ---- the workers ---- */

/* Which columns have anything in them. */
struct columns {
    int ends, merging, delay, late, waits;
};

/* A place of a guest that nobody has taken, between others. */
static int is_empty(const struct shmtrain_worker_report *w) { return w->joined && w->examples == 0; }

static struct columns columns_of(const struct shmtrain_report *r) {
    struct columns c = {0};
    for (uint32_t i = 0; i < r->n_workers; i++) {
        const struct shmtrain_worker_report *w = &r->worker[i];
        c.ends |= w->wait_epoch_seconds > 0;
        c.merging |= w->merge_seconds > 0;
        c.delay |= !isnan(w->delay) && w->delay > 0;
        c.late |= w->dropped + w->folded > 0;
        c.waits |= w->n_waited_for > 0;
    }
    if (c.merging && c.late) c.ends = 0; /* no mode has both; the line would be too long */
    return c;
}

static void add_heading(char *out, size_t bytes, const struct columns *c) {
    shmt_add(out, bytes, "worker   examples  computing  waiting");
    if (c->ends) shmt_add(out, bytes, "  epoch end");
    if (c->merging) shmt_add(out, bytes, "  merging");
    if (c->delay) shmt_add(out, bytes, "      delay");
    if (c->late) shmt_add(out, bytes, "     late");
    if (c->waits) shmt_add(out, bytes, "  waits for");
    shmt_add(out, bytes, "\n");
}

static double waited(const struct shmtrain_worker_report *w) { return w->wait_seconds + w->wait_epoch_seconds; }

/* Of the time that a worker trained, waits at the ends of epochs included. */
static void add_part(char *out, size_t bytes, int width, double seconds, const struct shmtrain_worker_report *w) {
    const double all = w->compute_seconds + w->merge_seconds + waited(w), part = all > 0 ? 100 * seconds / all : 0;
    shmt_add(out, bytes, "  %*.1f %%", width - 2, part > 0 ? fmin(part, 100) : 0);
}

/* As many as there is room for. */
static void add_waits(char *out, size_t bytes, const struct shmtrain_worker_report *w) {
    for (uint32_t k = 0; k < w->n_waited_for && k < MOST_NAMES; k++) {
        const char *between = k > 0 ? " " : "  ";
        const int more = snprintf(NULL, 0, "%s%" PRIu32, between, w->waited_for[k].worker);
        if (shmt_column_of(out) + (size_t)more > SHMT_LINE_COLUMNS) return;
        shmt_add(out, bytes, "%s%" PRIu32, between, w->waited_for[k].worker);
    }
}

static void add_row(char *out, size_t bytes, const struct shmtrain_report *r, uint32_t i, const struct columns *c) {
    const struct shmtrain_worker_report *w = &r->worker[i];
    const double late = (double)w->dropped + (double)w->folded;
    char examples[16], delay[16] = "-";
    if (!isnan(w->delay)) shmt_grouped_number(w->delay, delay);
    shmt_add(out, bytes, "%6" PRIu32 "%c %9s", i, w->joined ? '+' : ' ', shmt_short_number((double)w->examples, examples));
    add_part(out, bytes, 9, w->compute_seconds, w);
    add_part(out, bytes, 7, w->wait_seconds, w);
    if (c->ends) add_part(out, bytes, 9, w->wait_epoch_seconds, w);
    if (c->merging) add_part(out, bytes, 7, w->merge_seconds, w);
    if (c->delay) shmt_add(out, bytes, "  %9.9s", delay);
    if (c->late) shmt_add(out, bytes, "  %5.1f %%", late > 0 ? 100 * late / fmax(late, (double)w->examples) : 0);
    if (c->waits) add_waits(out, bytes, w);
    shmt_add(out, bytes, "\n");
}

/* The one with the most computing for each example, from worker `from` on. */
static uint32_t slowest(const struct shmtrain_report *r, uint32_t from) {
    uint32_t found = from;
    double most = -1;
    for (uint32_t i = from; i < r->n_workers; i++) {
        const struct shmtrain_worker_report *w = &r->worker[i];
        const double each = w->examples > 0 ? w->compute_seconds / (double)w->examples : -1;
        if (each <= most) continue;
        most = each;
        found = i;
    }
    return found;
}

void shmt_add_workers(char *out, size_t bytes, const struct shmtrain_report *r) {
    const struct columns c = columns_of(r);
    uint32_t i, n_rows = 0, joined = 0;
    if (r->n_workers < 2) return;
    add_heading(out, bytes, &c);
    for (i = 0; i < r->n_workers; i++) {
        const struct shmtrain_worker_report *w = &r->worker[i];
        if (is_empty(w)) continue;
        if (++n_rows == MOST_ROWS && i + 1 < r->n_workers) break; /* its row is the slowest's */
        add_row(out, bytes, r, i, &c);
        joined += w->joined;
    }
    if (i < r->n_workers) {
        const uint32_t found = slowest(r, i);
        shmt_add(out, bytes, "   ...\n");
        add_row(out, bytes, r, found, &c);
        shmt_add(out, bytes, "%8s of workers %" PRIu32 " to %" PRIu32 ", %" PRIu32 " is the slowest\n", "", i, r->n_workers - 1,
                 found);
        joined += r->worker[found].joined;
    }
    if (joined > 0) shmt_add(out, bytes, "      + joined by name\n");
    shmt_add(out, bytes, "\n");
}
