/* One run of a comparison: a store of its own, configured as all of them, in one mode. See compare.h. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare/compare.h"
#include "cli/display.h"
#include "cli/talk.h"

/* What the listener needs. */
struct view {
    struct comparison *comparison;
    struct shmtrain_store *store;
    struct display *display;
    const char *name;
};

/* ---- what is seen while it runs ---- */

/* A signal that came before the run began, when there was nothing to stop yet, stops it now. */
static void on_begin(void *arg, const struct shmtrain_report *r) {
    const struct view *view = arg;
    (void)r;
    if (talk_caught()) shmtrain_store_stop(view->store);
}

/* What one mode has said already is not said again by the next. */
static bool is_new(struct comparison *c, const char *line) {
    char *to = c->note[c->n_notes % COMPARE_NOTES];
    for (unsigned i = 0; i < c->n_notes && i < COMPARE_NOTES; i++)
        if (strncmp(c->note[i], line, sizeof *c->note - 1) == 0) return false;
    snprintf(to, sizeof *c->note, "%s", line);
    c->n_notes++;
    return true;
}

static void on_note(void *arg, const char *line) {
    const struct view *view = arg;
    if (!is_new(view->comparison, line)) return;
    display_clear(view->display);
    fprintf(stderr, "shmtrain: %s: %s\n", view->name, line);
}

static void on_progress(void *arg, const struct shmtrain_report *r, const struct shmtrain_progress *now) {
    const struct view *view = arg;
    display_progress(view->display, r, now);
}

/* A line that stays when the run is over: as the program's lines in a log, or below the one that said that it begins. */
static void say_end(const struct comparison *c, const struct compare_run *run, enum progress_kind kind) {
    const struct shmtrain_report *r = compare_report(run);
    const unsigned number = (unsigned)(run - c->run) + 1;
    if (kind == PROGRESS_NONE) return;
    if (kind == PROGRESS_PLAIN)
        fprintf(stderr, "shmtrain: %u of %u, %s: ", number, c->n, run->name);
    else
        fprintf(stderr, "      ");
    if (!r || r->n_epochs == 0) {
        fprintf(stderr, "%s\n", r ? "stopped" : run->why);
        return;
    }
    const struct shmtrain_epoch *last = &r->epoch[r->n_epochs - 1];
    const bool validated = r->valid.name[0] != '\0';
    fprintf(stderr, "%u epoch%s in %.3f s, %s loss %.5f%s\n", r->n_epochs, r->n_epochs == 1 ? "" : "s", r->seconds,
            validated ? "validation" : "train", validated ? last->valid_loss : last->train_loss, r->stopped ? ", stopped" : "");
}

/* ---- the run ---- */

/* All options of the run; names, and files that are one run's, are not for several (commands.c refuses them). */
static int configure(const struct comparison *c, const struct compare_run *run, struct shmtrain_store *store) {
    static const char *const OFF[][2] = {{"name", ""},       {"metrics", ""}, {"trace", ""},
                                         {"checkpoint", ""}, {"resume", "0"}, {"keep", "all"}};
    int rc = arguments_configure(c->arguments, store);
    for (size_t i = 0; i < sizeof OFF / sizeof *OFF && rc == 0; i++) rc = shmtrain_store_set(store, OFF[i][0], OFF[i][1]);
    return rc == 0 ? shmtrain_store_set(store, "mode", run->mode) : rc;
}

/* All modes have a schedule of the same shape, unless one is typed: an optimizer that wants another one has it in all modes. */
static int set_schedule(const struct comparison *c, struct shmtrain_store *store) {
    static const char *const NAMED[] = {"schedule", "power", "decay-every"};
    const char *rule = arguments_value(c->arguments, "optimizer");
    for (size_t i = 0; i < sizeof NAMED / sizeof *NAMED; i++)
        if (arguments_value(c->arguments, NAMED[i])) return 0;
    if (rule && (strcmp(rule, "ftrl") == 0 || strcmp(rule, "adagrad") == 0)) return 0;
    return shmtrain_store_set(store, "schedule", "cosine");
}

#define GRID 3.0 /* from one rate to the next */

/* The rate of trial k: 1, 1/3, 3, 1/9, ... times the automatic one. */
static double times_of(unsigned k) {
    const unsigned steps = (k + 1) / 2;
    return pow(GRID, k % 2 ? -(double)steps : (double)steps);
}

/* As the first trial, but at another rate; a rate that is typed would leave features as they are. */
static int set_rate(const struct shmtrain_report *first, double times, struct shmtrain_store *store) {
    char rate[32];
    snprintf(rate, sizeof rate, "%.9g", times * first->rate);
    const int rc = shmtrain_store_set(store, "rate", rate);
    return rc == 0 && first->scaled ? shmtrain_store_set(store, "scale", "yes") : rc;
}

/* What failed for a reason that has to do with the mode, or may have, is a row of the table. */
static bool concerns_all(int rc) { return rc == SHMTRAIN_E_DATA || rc == SHMTRAIN_E_SYSTEM; }

static void keep_failure(const struct shmtrain_store *store, struct compare_run *run, int rc) {
    run->status = rc;
    snprintf(run->why, sizeof run->why, "%s", shmtrain_store_message(store));
}

static double final_loss(const struct shmtrain_report *r) {
    const struct shmtrain_epoch *last = r->n_epochs > 0 ? &r->epoch[r->n_epochs - 1] : NULL;
    const double loss = !last ? INFINITY : r->valid.name[0] != '\0' ? last->valid_loss : last->train_loss;
    return isnan(loss) ? INFINITY : loss;
}

/* If it is the best one so far. */
static void keep_report(const struct shmtrain_store *store, struct compare_run *run, double times) {
    const struct shmtrain_report *r = shmtrain_store_report(store);
    if (run->kept && !(final_loss(r) < final_loss(&run->kept->report))) return;
    struct kept *kept = kept_create(r);
    if (!kept && run->kept) return;
    kept_destroy(run->kept);
    run->kept = kept;
    run->times = times;
    if (run->kept) return;
    run->status = SHMTRAIN_E_MEMORY;
    snprintf(run->why, sizeof run->why, "not enough memory for its report");
}

static void say_trial(const struct comparison *c, const struct compare_run *run, struct view *view, double times,
                      enum progress_kind kind) {
    char line[96], rate[32] = "";
    if (c->rates > 1) snprintf(rate, sizeof rate, ", rate x %.3g", times);
    snprintf(line, sizeof line, "%2u/%-2u %s%s", (unsigned)(run - c->run) + 1, c->n, run->name, rate);
    if (kind == PROGRESS_BAR) display_line(view->display, line);
}

/* `first`: what the first trial has reported; NULL: this is it. */
static int train(const struct comparison *c, struct compare_run *run, struct view *view, enum progress_kind kind, double times,
                 const struct shmtrain_report *first) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = view, .begin = on_begin, .note = on_note, .progress = on_progress};
    int rc = configure(c, run, view->store);
    if (rc == 0) rc = set_schedule(c, view->store);
    if (rc == 0 && first) rc = set_rate(first, times, view->store);
    shmtrain_store_listen(view->store, &listener);
    say_trial(c, run, view, times, kind);
    talk_catch_signals(view->store);
    if (rc == 0) rc = shmtrain_store_train(view->store, c->data);
    talk_catch_signals(NULL); /* the store goes */
    display_close(view->display);
    if (rc == 0)
        keep_report(view->store, run, times);
    else if (!run->kept) /* a rate that is too large is no failure of the mode */
        keep_failure(view->store, run, rc);
    return rc < 0 && concerns_all(rc) ? rc : 0;
}

static int try_rate(struct comparison *c, struct compare_run *run, double times, const struct shmtrain_report *first) {
    const struct arguments *a = c->arguments;
    const enum progress_kind kind = display_choose(a->progress, a->quiet, STDERR_FILENO);
    struct view view = {.comparison = c, .name = run->name, .display = display_open(kind, stderr)};
    if (!view.display || shmtrain_store_create(&view.store) < 0) {
        display_close(view.display);
        run->status = SHMTRAIN_E_MEMORY;
        snprintf(run->why, sizeof run->why, "not enough memory to begin");
        return SHMTRAIN_E_MEMORY;
    }
    const int rc = train(c, run, &view, kind, times, first);
    shmtrain_store_destroy(view.store);
    return rc;
}

int compare_train(struct comparison *c, struct compare_run *run) {
    struct shmtrain_report first = {0};
    run->tried = true;
    int rc = try_rate(c, run, times_of(0), NULL);
    if (run->kept) first = run->kept->report; /* its numbers */
    for (unsigned k = 1; k < c->rates && rc == 0 && run->kept && !talk_caught(); k++)
        rc = try_rate(c, run, times_of(k), &first);
    if (rc == 0) say_end(c, run, display_choose(c->arguments->progress, c->arguments->quiet, STDERR_FILENO));
    return rc;
}
