/* The runs of a comparison: each in a store of its own, configured as all of them, but for its mode, and for what is tried or
 * measured: rate, number of workers, seed. See compare.h. */
#include <inttypes.h>
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
    enum progress_kind kind;
    const char *name;
};

/* ---- what is seen while it runs ---- */

/* A signal that came before the run began, when there was nothing to stop yet, stops it now. In a log what is wrong with the data
 * is the only line. */
static void on_begin(void *arg, const struct shmtrain_report *r) {
    const struct view *view = arg;
    (void)r;
    if (view->kind == PROGRESS_PLAIN && view->comparison->n_done == 1) compare_say_plan(view->comparison);
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

/* ---- what it is to be ---- */

struct attempt {
    struct comparison *comparison;
    struct compare_run *run;
    uint64_t seed;
    double times; /* its rate, as a multiple of run->auto_rate; 0: what the options say, or else the library chooses */
    bool counts;  /* it is measured; else it tries a rate */
};

/* Names, and files that are one run's, are not for several (commands.c refuses them). */
static int configure(const struct attempt *a, struct shmtrain_store *store) {
    const struct comparison *c = a->comparison;
    int rc = arguments_configure_one(c->arguments, store);
    if (rc == 0 && a->run->workers > 0) rc = arguments_set_number(store, "workers", a->run->workers);
    if (rc == 0 && c->seeds > 1) rc = arguments_set_number(store, "seed", a->seed);
    return rc == 0 ? shmtrain_store_set(store, "mode", a->run->mode) : rc;
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

/* As the first trial, but at another rate; a rate that is typed would leave features as they are, and choose no L2. */
static int set_rate(const struct attempt *a, struct shmtrain_store *store) {
    char rate[32], l2[32];
    snprintf(rate, sizeof rate, "%.9g", a->times * a->run->auto_rate);
    snprintf(l2, sizeof l2, "%.9g", a->run->l2);
    int rc = shmtrain_store_set(store, "rate", rate);
    if (rc == 0 && a->run->l2 > 0) rc = shmtrain_store_set(store, "l2", l2);
    return rc == 0 && a->run->scaled ? shmtrain_store_set(store, "scale", "yes") : rc;
}

/* ---- what comes out ---- */

/* What failed for a reason that has to do with the mode, or may have, is a row of the table. */
static bool concerns_all(int rc) { return rc == SHMTRAIN_E_DATA || rc == SHMTRAIN_E_SYSTEM; }

static void keep_failure(const struct shmtrain_store *store, struct compare_run *run, int rc) {
    run->status = rc;
    snprintf(run->why, sizeof run->why, "%s", shmtrain_store_message(store));
}

static void lack_memory(struct compare_run *run, const char *why) {
    run->status = SHMTRAIN_E_MEMORY;
    snprintf(run->why, sizeof run->why, "%s", why);
}

static double final_loss(const struct shmtrain_report *r) {
    const struct shmtrain_epoch *last = r->n_epochs > 0 ? &r->epoch[r->n_epochs - 1] : NULL;
    const double loss = !last ? INFINITY : r->valid.name[0] != '\0' ? last->valid_loss : last->train_loss;
    return isnan(loss) ? INFINITY : loss;
}

/* If it is the best one so far. The first one says what the automatic rate is. */
static void keep_trial(const struct attempt *a, const struct shmtrain_store *store) {
    struct compare_run *run = a->run;
    const struct shmtrain_report *r = shmtrain_store_report(store);
    if (a->times == 0) {
        run->auto_rate = r->rate;
        run->scaled = r->scaled;
        run->l2 = r->choice_examples > 0 ? r->l2 : 0;
    }
    if (run->kept && !(final_loss(r) < final_loss(&run->kept->report))) return;
    struct kept *kept = kept_create(r);
    if (!kept && run->kept) return;
    kept_destroy(run->kept);
    run->kept = kept;
    run->seed[0] = (struct compare_seed){.kept = kept, .seed = a->seed};
    run->n_seeds = kept != NULL;
    run->times = a->times == 0 ? 1 : a->times;
    if (!kept) lack_memory(run, "not enough memory for its report");
}

/* What comes first takes the place of the trial, which was chosen as the best one of several. */
static void keep_measured(const struct attempt *a, const struct shmtrain_store *store, int rc) {
    struct compare_run *run = a->run;
    const struct shmtrain_report *r = rc == 0 ? shmtrain_store_report(store) : NULL;
    if (run->n_seeds > 0 && talk_caught() && (!r || r->stopped)) return;
    if (rc < 0 && concerns_all(rc)) { /* it says nothing of the mode */
        keep_failure(store, run, rc);
        return;
    }
    struct compare_seed seed = {.seed = a->seed, .status = rc, .kept = r ? kept_create(r) : NULL};
    if (rc < 0) keep_failure(store, run, rc);
    if (r && !seed.kept) lack_memory(run, "not enough memory for its report");
    if (!run->measured) {
        kept_destroy(run->kept);
        run->kept = NULL;
        run->n_seeds = 0;
    }
    run->measured = true;
    if (!run->kept) run->kept = seed.kept;
    if (seed.kept || rc < 0) run->seed[run->n_seeds++] = seed;
}

/* ---- a run of the library ---- */

/* What begins, above the lines that live. */
static void say_begin(const struct attempt *a, struct view *view) {
    const struct comparison *c = a->comparison;
    char line[128], rate[32] = "";
    if (c->rates > 1) snprintf(rate, sizeof rate, ", rate x %.3g", a->times == 0 ? 1 : a->times);
    if (a->counts)
        snprintf(line, sizeof line, "%2u/%-2u seed %" PRIu64 ", %s", (unsigned)(a->seed - c->first_seed) + 1, c->seeds, a->seed,
                 a->run->name);
    else
        snprintf(line, sizeof line, "%2u/%-2u %s%s", (unsigned)(a->run - c->run) + 1, c->n, a->run->name, rate);
    if (view->kind != PROGRESS_BAR) return;
    if (c->n_done == 1) compare_say_plan(c);
    display_line(view->display, line);
}

static int train(const struct attempt *a, struct view *view) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = view, .begin = on_begin, .note = on_note, .progress = on_progress};
    int rc = configure(a, view->store);
    if (rc == 0) rc = set_schedule(a->comparison, view->store);
    if (rc == 0 && a->times > 0) rc = set_rate(a, view->store);
    shmtrain_store_listen(view->store, &listener);
    say_begin(a, view);
    talk_catch_signals(view->store);
    if (rc == 0) rc = shmtrain_store_train(view->store, a->comparison->data);
    talk_catch_signals(NULL); /* the store goes */
    display_close(view->display);
    if (a->counts)
        keep_measured(a, view->store, rc);
    else if (rc == 0)
        keep_trial(a, view->store);
    else if (!a->run->kept || concerns_all(rc)) /* a rate that is too large is no failure of the mode */
        keep_failure(view->store, a->run, rc);
    return rc < 0 && concerns_all(rc) ? rc : 0;
}

static int attempt(const struct attempt *a) {
    struct comparison *c = a->comparison;
    const enum progress_kind kind = display_choose(c->arguments->progress, c->arguments->quiet, STDERR_FILENO);
    struct view view = {.comparison = c, .name = a->run->name, .kind = kind, .display = display_open(kind, stderr)};
    a->run->tried = true;
    c->n_done++;
    if (!view.display || shmtrain_store_create(&view.store) < 0) {
        display_close(view.display);
        lack_memory(a->run, "not enough memory to begin");
        return SHMTRAIN_E_MEMORY;
    }
    const int rc = train(a, &view);
    shmtrain_store_destroy(view.store);
    return rc;
}

int compare_tune(struct comparison *c, struct compare_run *run) {
    struct attempt a = {.comparison = c, .run = run, .seed = c->first_seed};
    const unsigned done = c->n_done, most = c->rates > 1 ? c->rates : 1;
    int rc = attempt(&a);
    for (unsigned k = 1; k < most && rc == 0 && run->kept && !talk_caught(); k++) {
        a.times = times_of(k);
        rc = attempt(&a);
    }
    c->n_done = done + most;
    return rc;
}

int compare_measure(struct comparison *c, struct compare_run *run, unsigned k) {
    const struct attempt a = {
        .comparison = c, .run = run, .seed = c->first_seed + k, .times = c->rates > 1 ? run->times : 0, .counts = true};
    const bool is_refused = run->tried && !run->kept && (!run->measured || run->status == SHMTRAIN_E_USAGE);
    if (is_refused) {
        c->n_done++;
        return 0;
    }
    return attempt(&a);
}
