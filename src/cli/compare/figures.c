/* The figures of a comparison: losses as points, the target, when each run comes to it. Pure; see compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/compare.h"

#define ABOVE_BEST 0.01 /* the target is so much above the lowest loss */

/* ---- names and letters ---- */

/* A mode that was asked for before has its number behind it. */
static void name_run(struct comparison *c, unsigned i) {
    struct compare_run *run = &c->run[i];
    unsigned n = 1;
    for (unsigned j = 0; j < i; j++) n += strcmp(c->run[j].mode, run->mode) == 0 && c->run[j].workers == run->workers;
    snprintf(run->label, sizeof run->label, n > 1 ? "%s (%u)" : "%s", run->mode, n);
    snprintf(run->name, sizeof run->name, run->workers > 0 ? "%s -w %u" : "%s", run->label, run->workers);
}

void compare_name(struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++) name_run(c, i);
}

static bool is_free(const struct comparison *c, unsigned n, char letter) {
    for (unsigned i = 0; i < n; i++)
        if (c->run[i].mark == letter) return false;
    return true;
}

/* Of its name: "async" a, "sync" s, "ssp:4" p, ... ; else the first one of the alphabet that nobody has. */
static char letter_for(const struct comparison *c, unsigned i) {
    for (unsigned j = 0; j < i; j++)
        if (c->run[j].which == c->run[i].which) return c->run[j].mark;
    for (const char *at = c->run[i].label; *at && *at != ':'; at++)
        if (*at >= 'a' && *at <= 'z' && is_free(c, i, *at)) return *at;
    char letter = 'a';
    while (!is_free(c, i, letter)) letter++;
    return letter;
}

void compare_letter(struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++) c->run[i].mark = letter_for(c, i);
}

/* ---- losses ---- */

static double loss_of(const struct comparison *c, const struct shmtrain_epoch *e) {
    return c->validates ? e->valid_loss : e->train_loss;
}

/* How many epochs were done when this one ended. One that was stopped counts as far as it came. */
static double epochs_at(const struct shmtrain_report *r, const struct shmtrain_epoch *e) {
    const double all = (double)r->dataset.examples;
    if (!e->partial || !(all > 0)) return e->epoch;
    return e->epoch - 1 + fmin(1, (double)e->examples / all);
}

struct plot_point *compare_points(const struct comparison *c, const struct shmtrain_report *r, bool by_time, size_t *n_out) {
    struct plot_point *point = r && r->n_epochs > 0 ? calloc(r->n_epochs, sizeof *point) : NULL;
    double seconds = 0;
    *n_out = 0;
    for (uint32_t i = 0; point && i < r->n_epochs; i++) {
        const struct shmtrain_epoch *e = &r->epoch[i];
        seconds += e->seconds;
        const struct plot_point at = {by_time ? seconds : epochs_at(r, e), loss_of(c, e)};
        if (isfinite(at.y)) point[(*n_out)++] = at;
    }
    if (*n_out > 0) return point;
    free(point);
    return NULL;
}

/* ---- the target ---- */

static const struct shmtrain_report *report_of(const struct compare_seed *seed) {
    return seed->kept ? &seed->kept->report : NULL;
}

static void find_losses(const struct comparison *c, struct compare_seed *seed) {
    size_t n;
    struct plot_point *point = compare_points(c, report_of(seed), false, &n);
    seed->final_loss = n > 0 ? point[n - 1].y : NAN;
    seed->lowest_loss = seed->lowest_at = NAN;
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && !(point[i].y < seed->lowest_loss)) continue;
        seed->lowest_loss = point[i].y;
        seed->lowest_at = point[i].x;
    }
    free(point);
}

/* NaN where there is none, or half of the seeds do not come to it. */
static double median_of(const struct compare_run *run, enum compare_figure figure) {
    const double median = compare_spread_of(run, figure).median;
    return isfinite(median) ? median : NAN;
}

/* What is shown of a run beside medians is of the seed in the middle. */
static void find_run_losses(const struct comparison *c, struct compare_run *run) {
    for (unsigned k = 0; k < run->n_seeds; k++) find_losses(c, &run->seed[k]);
    const struct compare_seed *middle = compare_middle(run);
    run->kept = middle ? middle->kept : NULL;
    run->final_loss = median_of(run, COMPARE_LOSS);
    run->lowest_loss = median_of(run, COMPARE_LOWEST);
}

static double a_bit_above(double loss) { return loss + ABOVE_BEST * fabs(loss); }

static void choose_target(struct comparison *c) {
    double lowest = INFINITY;
    for (unsigned i = 0; i < c->n; i++) {
        if (!(c->run[i].lowest_loss < lowest)) continue;
        lowest = c->run[i].lowest_loss;
        c->best = i;
    }
    if (!c->target_is_given) c->target = isfinite(lowest) ? a_bit_above(lowest) : NAN;
}

/* Where the curve first comes to the target: on the straight line between two points, at the first point if that is below it
 * already (what was before is unknown). */
static double reach(const struct comparison *c, const struct compare_seed *seed, bool by_time) {
    size_t n, i = 0;
    double at = NAN;
    struct plot_point *p = compare_points(c, report_of(seed), by_time, &n);
    while (i < n && !(p[i].y <= c->target)) i++;
    if (i < n && i == 0) at = p[0].x;
    if (i < n && i > 0) at = p[i - 1].x + (p[i].x - p[i - 1].x) * (p[i - 1].y - c->target) / (p[i - 1].y - p[i].y);
    free(p);
    return at;
}

static void find_target(const struct comparison *c, struct compare_run *run) {
    for (unsigned k = 0; k < run->n_seeds; k++) {
        run->seed[k].to_target_s = reach(c, &run->seed[k], true);
        run->seed[k].to_target_epochs = reach(c, &run->seed[k], false);
    }
    run->to_target_s = median_of(run, COMPARE_TIME);
    run->to_target_epochs = median_of(run, COMPARE_EPOCHS);
}

static bool any_validates(const struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        for (unsigned k = 0; k < c->run[i].n_seeds; k++) {
            const struct shmtrain_report *r = report_of(&c->run[i].seed[k]);
            if (r && r->valid.name[0] != '\0') return true;
        }
    return false;
}

void compare_work_out(struct comparison *c) {
    c->validates = any_validates(c);
    for (unsigned i = 0; i < c->n; i++) find_run_losses(c, &c->run[i]);
    choose_target(c);
    for (unsigned i = 0; i < c->n; i++) find_target(c, &c->run[i]);
    compare_work_out_speed(c);
}

const struct shmtrain_report *compare_any_report(const struct comparison *c) {
    for (unsigned i = 0; i < c->n; i++)
        if (c->run[i].kept) return &c->run[i].kept->report;
    return NULL;
}

bool compare_got_worse(const struct compare_run *run) {
    const struct compare_seed *middle = compare_middle(run);
    return middle && middle->final_loss > a_bit_above(middle->lowest_loss);
}

/* ---- what ran ---- */

static const struct shmtrain_mode *mode_called(const char *name, size_t bytes) {
    const struct shmtrain_mode *m;
    for (size_t i = 0; (m = shmtrain_mode_at(i)); i++)
        if (strlen(m->name) == bytes && memcmp(m->name, name, bytes) == 0) return m;
    return NULL;
}

/* What a run had as the number that its mode takes. */
static uint64_t number_of(const struct shmtrain_report *r, const struct shmtrain_mode *mode) {
    if (strcmp(mode->number, "staleness") == 0) return r->staleness;
    return strcmp(mode->number, "quorum") == 0 ? r->quorum : r->merge_every;
}

const char *compare_instead(const struct compare_run *run, char out[96]) {
    const struct shmtrain_report *r = compare_report(run);
    const size_t bytes = strcspn(run->mode, ":");
    out[0] = '\0';
    if (!r) return out;
    if (strlen(r->mode) != bytes || memcmp(r->mode, run->mode, bytes) != 0) {
        snprintf(out, 96, "%.90s", r->mode);
        return out;
    }
    const struct shmtrain_mode *mode = mode_called(run->mode, bytes);
    if (!mode || mode->number[0] == '\0' || run->mode[bytes] != ':') return out;
    const uint64_t is = number_of(r, mode);
    if (strtoull(run->mode + bytes + 1, NULL, 10) != is) snprintf(out, 96, "%s:%llu", mode->name, (unsigned long long)is);
    return out;
}

/* ---- what a mode cost ---- */

double compare_dropped(const struct shmtrain_report *r) {
    uint64_t computed = 0;
    for (uint32_t i = 0; i < r->n_workers; i++) computed += r->worker[i].examples;
    if (computed < r->examples) computed = r->examples;
    if (computed < r->dropped) computed = r->dropped;
    return computed > 0 ? (double)r->dropped / (double)computed : 0;
}
