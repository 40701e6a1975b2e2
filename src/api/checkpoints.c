/* Checkpoints of a run, as they are written: see checkpoints.h. Going on from one is in resume.c. */
#include "api/checkpoints.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fit_keep.h"
#include "api/store_priv.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/show.h"
#include "consistency/mode.h"
#include "math/finite.h"
#include "ps/flat.h"
#include "train/board.h"

static bool is_asked_for(const struct shmtrain_store *store) { return store->config.checkpoint[0] != '\0'; }

/* ---- before anything is loaded ---- */

static void say_skipped(void *arg, const char *why) {
    const struct shmtrain_store *store = arg;
    shmt_log(&store->log, "checkpoint skipped: %s", why);
}

static int find_newest(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    const char *folder = store->config.checkpoint;
    char shown[SHMT_NAME_SHOWN];
    const int found = shmt_checkpoint_newest(folder, say_skipped, store, &c->from, c->from_path, &store->error);
    if (found != 0) return found < 0 ? found : 0;
    shmt_show_name(folder, shown);
    shmt_log(&store->log, "there is no checkpoint in %s yet: the run starts from the beginning", shown);
    return 0;
}

/* A run that begins anew would take the older ones for its own, and remove its first ones for theirs. */
static int refuse_others(struct shmtrain_store *store) {
    char path[PATH_MAX], shown[SHMT_NAME_SHOWN];
    const int there = shmt_checkpoint_last(store->config.checkpoint, path, &store->error);
    if (there <= 0) return there;
    shmt_show_name(store->config.checkpoint, shown);
    return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                     "--checkpoint %s: this folder has checkpoints of an earlier run: continue it with --resume, remove them, "
                     "or name another folder",
                     shown);
}

int shmt_checkpoints_begin(struct shmtrain_store *store) {
    const struct shmt_config *config = &store->config;
    struct shmt_checkpoints *c = &store->checkpoints;
    *c = (struct shmt_checkpoints){.written_step = UINT64_MAX};
    if (!is_asked_for(store) && config->resume)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--resume needs the folder of the checkpoints: add --checkpoint DIR");
    if (!is_asked_for(store)) return 0;
    if (!(store->ops->caps & SHMT_CAP_PAUSE))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "--backend %s cannot write checkpoints: use --backend shm",
                         store->ops->name);
    int rc = shmt_every_parse("--checkpoint-every", config->checkpoint_every, &c->every, &store->error); /* checked when set */
    if (rc == 0) rc = shmt_checkpoint_claim(config->checkpoint, &c->claim, &store->error);
    if (rc == 0) rc = config->resume ? find_newest(store) : refuse_others(store);
    if (rc < 0) return rc;
    c->notes = malloc(sizeof *c->notes);
    return c->notes ? 0 : shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for checkpoints");
}

void shmt_checkpoints_close(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    shmt_checkpoint_close(c->from);
    shmt_checkpoint_unclaim(&c->claim);
    free(c->notes);
    c->from = NULL;
    c->notes = NULL;
    c->as = NULL;
}

/* ---- what is written ---- */

/* As the report has them: those that were done when the snapshot was taken. */
static uint32_t records_of(struct shmtrain_store *store, uint32_t epoch) {
    shmt_report_progress(store);
    return (uint32_t)shmt_min_u64(store->report.n_epochs, epoch);
}

static void fill_moment(struct shmtrain_store *store, const struct shmt_snapshot *snapshot, struct shmt_moment *out) {
    const struct shmt_moment *before = store->checkpoints.from ? &shmt_checkpoint_of(store->checkpoints.from)->at : NULL;
    struct shmt_board *board = store->ops->board(store->job.store);
    const uint64_t now_ns = shmt_now_ns();
    uint64_t began_ns = load_relaxed(&board->epoch_ns); /* relaxed, both: for display */
    if (!began_ns) began_ns = load_relaxed(&board->first_step_ns) - store->job.before_ns;
    const bool whole = snapshot->at.step == 0;
    *out = (struct shmt_moment){.epoch = snapshot->at.epoch,
                                .step = snapshot->at.step,
                                .steps_before = snapshot->at.steps_before,
                                .n_pieces = whole ? 0 : snapshot->n_pieces,
                                .done = whole ? NULL : snapshot->done,
                                .loss = whole ? NULL : snapshot->loss,
                                .n_clocks = snapshot->n_clocks,
                                .clock = snapshot->clock,
                                .n_records = records_of(store, snapshot->at.epoch),
                                .record = store->epochs,
                                .epoch_seconds = whole || now_ns < began_ns ? 0 : (double)(now_ns - began_ns) * 1e-9,
                                .seconds = (before ? before->seconds : 0) + (double)(now_ns - store->began_ns) * 1e-9};
}

static void fill_tables(struct shmtrain_store *store, const struct shmt_snapshot *snapshot, struct shmt_checkpoint *out) {
    const uint32_t *place = store->spec.row_places ? store->ops->row_place(store->job.store) : NULL;
    out->n_tables = store->n_tables;
    out->n_planes = snapshot->planes;
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct shmt_checkpoint_table *table = &out->table[t];
        table->table = store->table[t].table;
        table->value = snapshot->weight + snapshot->start[t];
        table->place = t == 0 ? place : NULL;
        for (uint32_t p = 0; p < snapshot->planes; p++)
            table->state[p] = snapshot->state + p * snapshot->n_floats + snapshot->start[t];
    }
}

static void fill_run(struct shmtrain_store *store, struct shmt_checkpoint *out) {
    const struct shmt_checkpoints *c = &store->checkpoints;
    const struct shmtrain_model *model = store->job.model;
    out->spec = store->spec;
    if (store->fits) shmt_fit_fill(store, &out->fit);
    out->l2_chosen = store->penalty.examples > 0 || (c->from && shmt_checkpoint_of(c->from)->l2_chosen);
    if (c->from && shmt_policy_has_rounds(&store->spec.policy)) /* that of the run that began, see resume.c */
        out->spec.batch = shmt_checkpoint_of(c->from)->spec.batch;
    out->data = c->data;
    out->group = store->job.settings.group;
    out->bias = store->job.settings.bias;
    shmt_mode_name(&store->spec.policy, store->mode_taken, out->mode, sizeof out->mode);
    snprintf(out->model, sizeof out->model, "%s", model ? model->name : "");
    if (!model || !c->as) return;
    shmt_notes_make(c->as, model, c->notes);
    out->note = c->notes->note;
    out->n_notes = c->notes->n;
    if (c->as->features.kind != SHMT_IDS_LISTED) return;
    out->id = c->as->ids.id;
    out->n_ids = c->as->ids.n;
}

static uint64_t step_of(const struct shmt_checkpoint *c) { return c->at.epoch * shmt_spec_steps(&c->spec) + c->at.step; }

static void fill(struct shmtrain_store *store, const struct shmt_snapshot *snapshot) {
    struct shmt_checkpoints *c = &store->checkpoints;
    c->now = (struct shmt_checkpoint){.n_tables = 0};
    c->error = (struct shmt_error){0};
    fill_run(store, &c->now);
    fill_moment(store, snapshot, &c->now.at);
    fill_tables(store, snapshot, &c->now);
    (void)shmt_checkpoint_name(store->config.checkpoint, &c->now, c->path, NULL); /* short enough when the run began */
}

/* Before and after it is written. */
static void tell(struct shmtrain_store *store, bool written) {
    struct shmt_checkpoints *c = &store->checkpoints;
    const struct shmtrain_checkpoint what = {.size = sizeof(struct shmtrain_checkpoint),
                                             .path = c->path,
                                             .step = step_of(&c->now),
                                             .written = written && c->error.status == 0,
                                             .failure = c->error.text};
    if (store->listener.checkpoint) store->listener.checkpoint(store->listener.arg, &store->report, &what);
}

/* From parameters that are no numbers nobody wants to go on: the older checkpoints are worth more. */
static bool is_finite(const struct shmt_checkpoint *c) {
    for (uint32_t t = 0; t < c->n_tables && c->model[0]; t++)
        if (!shmt_all_finite(c->table[t].value, shmt_table_floats(&c->table[t].table))) return false;
    return true;
}

static void write_file(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (is_finite(&c->now))
        (void)shmt_checkpoint_write(store->config.checkpoint, &c->now, (uint32_t)store->config.keep, c->path, &c->error);
    else
        shmt_fail(&c->error, SHMTRAIN_E_NUMBERS, "not all parameters are finite numbers");
}

/* ---- by a thread of its own ---- */

/* Its place is free as soon as the file is there, and not when somebody looks: meanwhile the next one could be due. In this
 * order: whoever is told of the next snapshot finds this one written. */
static void *write_apart(void *arg) {
    struct shmtrain_store *store = arg;
    write_file(store);
    /* release: path and error; pairs with the acquire in shmt_checkpoints_tick */
    store_release(&store->checkpoints.written, 1);
    store->ops->release(store->job.store);
    return NULL;
}

/* Signals are for the application's own threads. False: there can be no thread. */
static bool begin_apart(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    sigset_t all, before;
    sigfillset(&all);
    store_relaxed(&c->written, 0); /* nobody else is there yet */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    c->writing = shmt_thread_start(&c->thread, write_apart, store) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->writing;
}

/* The file is there, or cannot be; the place for a snapshot is free again. */
static void take_back(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (c->error.status < 0) {
        tell(store, true);
        if (c->n_failed++ == 0)
            shmt_log(&store->log, "%s; the run continues, older checkpoints are kept, and later ones will be tried",
                     c->error.text);
        return;
    }
    if (c->n_failed > 0) shmt_log(&store->log, "checkpoints can be written again: %u failed", c->n_failed);
    c->n_failed = 0;
    c->written_step = step_of(&c->now);
    store->report.checkpoints++;
    tell(store, true);
}

static void end_apart(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (!c->writing) return;
    (void)pthread_join(c->thread, NULL);
    c->writing = false;
    take_back(store);
}

static void ask_if_due(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    const uint64_t now_ns = shmt_now_ns();
    if (c->every.seconds <= 0) return;
    if (c->asked_ns == 0) c->asked_ns = now_ns; /* the run begins */
    if ((double)(now_ns - c->asked_ns) * 1e-9 < c->every.seconds) return;
    c->asked_ns = now_ns;
    c->asked = true;
    store->ops->ask(store->job.store);
}

/* Of steps or epochs, as checkpoint-every counts them: how many periods of the run are over. */
static uint64_t periods_of(const struct shmtrain_store *store, uint64_t epoch, uint64_t step) {
    const struct shmt_every *every = &store->checkpoints.every;
    if (every->steps > 0) return (epoch * shmt_spec_steps(&store->spec) + step) / every->steps;
    return epoch / every->epochs;
}

/* Those that the workers take of their own accord always are; of those that the application has asked for, and of those of a fit, which
 * takes one behind each epoch, the first one of a period, which then is as good as the one that would follow. */
static bool is_due(struct shmtrain_store *store, const struct shmt_snapshot *snapshot, bool for_application) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (!is_asked_for(store)) return false;
    if (c->every.seconds > 0) return c->asked;
    const uint64_t begun = periods_of(store, store->spec.first_epoch, store->spec.first_step);
    const uint64_t periods = periods_of(store, snapshot->at.epoch, snapshot->at.step);
    const bool due = (!for_application && !store->fits) || periods > shmt_max_u64(begun, c->periods);
    if (due) c->periods = periods;
    return due;
}

void shmt_checkpoints_tick(struct shmtrain_store *store) {
    struct shmt_checkpoints *c = &store->checkpoints;
    if (!is_asked_for(store) || !store->spec.pauses.allowed) return;
    /* acquire: pairs with the release in write_apart */
    if (c->writing && load_acquire(&c->written)) end_apart(store);
    ask_if_due(store);
}

bool shmt_checkpoints_take(struct shmtrain_store *store, const struct shmt_snapshot *snapshot, bool for_application) {
    if (!is_due(store, snapshot, for_application)) return false;
    store->checkpoints.asked = false;
    fill(store, snapshot);
    tell(store, false);
    if (begin_apart(store)) return true;
    write_file(store); /* without one, here */
    take_back(store);
    return false;
}

/* Where the workers have ended, or, of a fit that was cut short in an epoch, behind the one before. */
static bool find_stand(struct shmtrain_store *store, struct shmt_snapshot *out) {
    bool found = store->ops->stand(store->job.store, out) != 0;
    if (found && store->fits && !shmt_fit_stand(store, out)) {
        store->ops->release(store->job.store);
        found = false;
    }
    if (!found && store->fits && !store->checkpoints.from)
        shmt_log(&store->log, "no epoch of the fit has ended: there is no checkpoint of it yet, and --resume begins anew");
    return found;
}

void shmt_checkpoints_end(struct shmtrain_store *store, int rc) {
    struct shmt_checkpoints *c = &store->checkpoints;
    struct shmt_snapshot snapshot;
    if (!is_asked_for(store) || !store->spec.pauses.allowed) return;
    end_apart(store);
    if (rc < 0 || c->done || !find_stand(store, &snapshot)) return;
    fill(store, &snapshot);
    c->now.ended_by = shmt_end_of(store->report.stopped_by);
    if (step_of(&c->now) != c->written_step || c->now.ended_by != SHMT_END_NOT) {
        tell(store, false);
        write_file(store);
        if (c->error.status < 0) shmt_report_unwritten(store, "%s", c->error.text);
        if (c->error.status == 0) store->report.checkpoints++;
        tell(store, true);
    }
    store->ops->release(store->job.store);
}
