/* For tests of compare: comparisons made up from figures, with everything that a report may have. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"

#define NEAR(a, b) assert_true(fabs((a) - (b)) < 1e-9)

#define MADE_EPOCHS  4
#define MADE_WORKERS 4

/* A run whose validation losses are given, each epoch of so many seconds. */
struct made {
    const char *name;
    double loss[MADE_EPOCHS], seconds;
    double wait; /* share of the time, all of it for worker 3 */
    uint64_t dropped;
    double delay; /* in clocks; NaN: not measured */
};

static inline struct shmtrain_report made_report(const struct made *m, struct shmtrain_epoch *epoch,
                                                 struct shmtrain_worker_report *worker, struct shmtrain_delays *bucket) {
    static char mode[48]; /* the report has it without its number */
    snprintf(mode, sizeof mode, "%.*s", (int)strcspn(m->name, ":"), m->name);
    const unsigned long number = strchr(m->name, ':') ? strtoul(strchr(m->name, ':') + 1, NULL, 10) : MADE_WORKERS;
    struct shmtrain_report r = {.size = sizeof(struct shmtrain_report),
                                .mode = mode,
                                .write = "racy",
                                .backend = "shm",
                                .model = "logistic",
                                .optimizer = "sgd",
                                .schedule = "inverse",
                                .mode_reason = "",
                                .stopped_by = "",
                                .replicas = "one",
                                .merge = "mean",
                                .late = "drop",
                                .slow = "3:5x",
                                .race_seconds = 2e-4,
                                .race_share = 0.01,
                                .numa = "off",
                                .blas = "",
                                .staleness = strcmp(mode, "ssp") == 0 ? number : UINT64_MAX,
                                .quorum = strcmp(mode, "backup") == 0 ? (uint32_t)number : MADE_WORKERS,
                                .n_replicas = 1,
                                .workers = MADE_WORKERS,
                                .threads = 1,
                                .n_workers = MADE_WORKERS,
                                .n_epochs = MADE_EPOCHS,
                                .seed = 1,
                                .rate = 0.5,
                                .dataset = {.name = "a9a", .examples = 1000, .features = 123, .nonzeros = 9000},
                                .valid = {.name = "a9a.t", .examples = 100, .features = 123, .nonzeros = 900},
                                .best_loss = NAN,
                                .first_step_seconds = NAN,
                                .lost_updates = NAN,
                                .lost_lowest = NAN,
                                .lost_highest = NAN,
                                .examples = MADE_EPOCHS * 1000,
                                .updates = 4000,
                                .train_seconds = MADE_EPOCHS * m->seconds,
                                .examples_per_second = 1000 / m->seconds,
                                .wait_fraction = m->wait,
                                .waits_mostly_for = m->wait > 0.05 ? 3 : UINT32_MAX,
                                .dropped = m->dropped,
                                .page_bytes = 4096,
                                .numa_nodes = 1};
    for (uint32_t i = 0; i < MADE_EPOCHS; i++)
        epoch[i] = (struct shmtrain_epoch){.epoch = i + 1,
                                           .examples = 1000,
                                           .seconds = m->seconds,
                                           .train_loss = m->loss[i] + 0.01,
                                           .valid_loss = m->loss[i],
                                           .valid_accuracy = NAN,
                                           .valid_auc = NAN};
    for (uint32_t i = 0; i < MADE_WORKERS; i++)
        worker[i] = (struct shmtrain_worker_report){.examples = 1000,
                                                    .compute_seconds = (1 - m->wait) * r.train_seconds,
                                                    .wait_seconds = m->wait * r.train_seconds,
                                                    .delay = NAN,
                                                    .n_waited_for = m->wait > 0 && i != 3,
                                                    .waited_for = {{.worker = 3, .seconds = m->wait}}};
    bucket[0] = (struct shmtrain_delays){.from = 0, .to = 0, .samples = 60};
    bucket[1] = (struct shmtrain_delays){.from = 1024, .to = 1151, .samples = 40};
    const bool measured = isfinite(m->delay);
    r.epoch = epoch;
    r.worker = worker;
    r.delay = (struct shmtrain_delay){.samples = measured ? 100 : 0,
                                      .mean = measured ? m->delay * 1024 : NAN,
                                      .p50 = 0,
                                      .p99 = 1151,
                                      .max = 1100,
                                      .clocks = m->delay,
                                      .bucket = bucket,
                                      .n_buckets = measured ? 2 : 0};
    return r;
}

static inline void add_made_seed(struct compare_run *run, const struct shmtrain_report *r, uint64_t seed) {
    struct compare_seed *to = &run->seed[run->n_seeds++];
    *to = (struct compare_seed){.seed = seed, .kept = kept_create(r)}; /* a copy: the arrays go */
    assert_non_null(to->kept);
    if (!run->kept) run->kept = to->kept;
}

static inline void add_made(struct comparison *c, const struct made *m) {
    struct shmtrain_epoch epoch[MADE_EPOCHS];
    struct shmtrain_worker_report worker[MADE_WORKERS];
    struct shmtrain_delays bucket[2];
    const struct shmtrain_report r = made_report(m, epoch, worker, bucket);
    struct compare_run *run = &c->run[c->n++];
    snprintf(run->mode, sizeof run->mode, "%s", m->name);
    run->which = c->n_modes++;
    compare_name(c);
    run->tried = true;
    add_made_seed(run, &r, 1);
}

/* The same mode with one more seed, whose losses are all higher, and whose epochs all take longer, by these factors. */
static inline void add_seed(struct compare_run *run, const struct made *m, double loss, double seconds) {
    struct shmtrain_epoch epoch[MADE_EPOCHS];
    struct shmtrain_worker_report worker[MADE_WORKERS];
    struct shmtrain_delays bucket[2];
    struct made of = *m;
    for (size_t i = 0; i < MADE_EPOCHS; i++) of.loss[i] *= loss;
    of.seconds *= seconds;
    const struct shmtrain_report r = made_report(&of, epoch, worker, bucket);
    add_made_seed(run, &r, run->n_seeds + 1);
}

/* A mode with so many workers, each epoch of so many seconds. */
static inline struct compare_run *add_workers(struct comparison *c, const struct made *m, uint32_t workers, double seconds) {
    struct made of = *m;
    of.seconds = seconds;
    const bool again = c->n > 0 && strcmp(c->run[c->n - 1].mode, m->name) == 0;
    add_made(c, &of);
    struct compare_run *run = &c->run[c->n - 1];
    if (again) run->which = --c->n_modes - 1;
    run->workers = workers;
    run->kept->report.cores = 2;
    compare_name(c);
    return run;
}

static inline void add_refused(struct comparison *c, const char *name, int status, const char *why) {
    struct compare_run *run = &c->run[c->n++];
    snprintf(run->mode, sizeof run->mode, "%s", name);
    run->which = c->n_modes++;
    compare_name(c);
    snprintf(run->why, sizeof run->why, "%s", why);
    run->status = status;
    run->tried = why[0] != '\0';
}

static char *const MADE_ARGV[] = {"./shmtrain", "compare", "--slow", "3:5x", "a <b> & 'c'", NULL};
static const struct arguments MADE_ARGUMENTS = {.argv = (char **)MADE_ARGV, .argc = 5};

/* async falls fast in time, sync in epochs; backup drops, ssp is refused. */
static inline struct comparison *make_comparison(void) {
    static const struct made MADE[] = {
        {"async", {0.40, 0.36, 0.34, 0.33}, 0.5, 0, 0, 3},
        {"sync", {0.38, 0.33, 0.32, 0.32}, 2, 0.58, 0, 0},
        {"backup:3", {0.39, 0.35, 0.33, 0.325}, 1, 0.05, 400, NAN},
    };
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->data = "/data/a9a";
    snprintf(c->title, sizeof c->title, "%s", c->data);
    c->target = NAN;
    c->seeds = 1;
    for (size_t i = 0; i < sizeof MADE / sizeof *MADE; i++) add_made(c, &MADE[i]);
    add_refused(c, "ssp:4", SHMTRAIN_E_USAGE,
                "adam cannot be written atomically: its step has no bound if its two averages are not of the same moment; use "
                "--write racy or locked");
    compare_letter(c);
    compare_work_out(c);
    return c;
}

/* Two modes whose losses are alike; each epoch of the second takes four times as long. */
static const struct made MADE_QUICK = {"async", {0.40, 0.36, 0.34, 0.33}, 0.5, 0, 0, 3};
static const struct made MADE_SLOW = {"sync", {0.40, 0.36, 0.34, 0.33}, 2, 0, 0, 0};

/* Two modes with `n` seeds each: the losses of both are 0.1 % apart from seed to seed, those of the second `above` higher. */
static inline struct comparison *make_seeds(unsigned n, double above) {
    struct comparison *c = calloc(1, sizeof *c);
    struct made higher = MADE_SLOW;
    assert_non_null(c);
    for (size_t i = 0; i < MADE_EPOCHS; i++) higher.loss[i] *= 1 + above;
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = n;
    c->first_seed = 1;
    add_made(c, &MADE_QUICK);
    add_made(c, &higher);
    for (unsigned k = 1; k < n; k++) {
        add_seed(&c->run[0], &MADE_QUICK, 1 + 0.001 * k, 1);
        add_seed(&c->run[1], &higher, 1 + 0.001 * k, 1 + 0.1 * k);
    }
    compare_letter(c);
    compare_work_out(c);
    return c;
}

static inline void destroy_comparison(struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; k < c->run[i].n_seeds; k++) kept_destroy(c->run[i].seed[k].kept);
    free(c);
}

/* What a function writes. */
static inline char *text_of(void (*put)(const struct comparison *c, FILE *out), const struct comparison *c) {
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    put(c, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static inline void assert_says(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in:\n%s", words, text);
}

/* A sentence, wherever its lines break. */
static inline void assert_tells(const char *text, const char *words) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *at = copy; (at = strchr(at, '\n')); at++) *at = ' ';
    if (!strstr(copy, words)) fail_msg("\"%s\" is not in:\n%s", words, copy);
    free(copy);
}
