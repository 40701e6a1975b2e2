/* Checkpoints of a run, as they are written: see checkpoints.h. Going on from one is in resume.c. */
#include "checkpoints/checkpoints.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/show.h"
#include "base/thread.h"
#include "consistency/mode.h"
#include "fitting/fit_keep.h"
#include "fitting/penalty.h"
#include "keeping/parameters.h"
#include "math/finite.h"
#include "ps/flat.h"
#include "sync/host.h"
#include "train/board.h"
#include "watching/report.h"
#include "workers/run.h"

static bool is_asked_for(const struct shmt_config *config) { return config->checkpoint[0] != '\0'; }

/* ---- before anything is loaded ---- */

static void say_skipped(void *arg, const char *why) {
    const struct shmt_run *run = arg;
    shmt_log(&run->call->log, "checkpoint skipped: %s", why);
}

static int find_newest(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    const char *folder = run->config->checkpoint;
    char shown[SHMT_NAME_SHOWN];
    const int found = shmt_checkpoint_newest(folder, say_skipped, run, &run->from, c->from_path, &run->call->error);
    if (run->config->parsed.hosts.n > 1 && (found == 0 || found == SHMTRAIN_E_DATA)) { /* another host may have a good one */
        shmt_error_clear(&run->call->error);
        return 0;
    }
    if (found != 0) return found < 0 ? found : 0;
    shmt_show_name(folder, shown);
    shmt_log(&run->call->log, "there is no checkpoint in %s yet: the run starts from the beginning", shown);
    return 0;
}

/* A run that begins anew would take the older ones for its own, and remove its first ones for theirs. */
static int refuse_others(struct shmt_call *call, const struct shmt_config *config) {
    char path[PATH_MAX], shown[SHMT_NAME_SHOWN];
    const int there = shmt_checkpoint_last(config->checkpoint, path, &call->error);
    if (there <= 0) return there;
    shmt_show_name(config->checkpoint, shown);
    return shmt_refuse(&call->error,
                       "--checkpoint %s: this folder has checkpoints of an earlier run: continue it with --resume, remove "
                       "them, or name another folder",
                       shown);
}

int shmt_checkpoints_begin(struct shmt_run *run) {
    const struct shmt_config *config = run->config;
    struct shmt_checkpoints *c = run->checkpoints;
    *c = (struct shmt_checkpoints){.written_step = UINT64_MAX};
    if (!is_asked_for(run->config) && config->resume)
        return shmt_refuse(&run->call->error, "--resume needs the folder of the checkpoints: add --checkpoint DIR");
    if (!is_asked_for(run->config)) return 0;
    if (!(run->backend->caps & SHMT_CAP_PAUSE))
        return shmt_refuse(&run->call->error, "--backend %s cannot write checkpoints: use --backend shm", run->backend->name);
    int rc = shmt_checkpoint_claim(config->checkpoint, &c->claim, &run->call->error);
    if (rc == SHMTRAIN_E_USAGE && config->parsed.hosts.n > 1)
        shmt_log(
            &run->call->log,
            "each host keeps its checkpoints in a folder of its own: under launch or mpirun, %%r in a name is the host's rank");
    if (rc == 0) rc = config->resume ? find_newest(run) : refuse_others(run->call, run->config);
    if (rc < 0) return rc;
    c->notes = malloc(sizeof *c->notes);
    return c->notes ? 0 : shmt_no_memory(&run->call->error, "for checkpoints");
}

void shmt_checkpoints_close(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    shmt_checkpoint_close(run->from);
    shmt_checkpoint_unclaim(&c->claim);
    free(c->notes);
    run->from = NULL;
    c->notes = NULL;
    c->as = NULL;
}

/* ---- what is written ---- */

/* As the report has them: those that were done when the snapshot was taken. */
static uint32_t records_of(struct shmt_run *run, uint32_t epoch) {
    shmt_report_progress(run);
    return (uint32_t)shmt_min_u64(run->report.n_epochs, epoch);
}

static void fill_moment(struct shmt_run *run, const struct shmt_snapshot *snapshot, struct shmt_moment *out) {
    const struct shmt_moment *before = run->from ? &shmt_checkpoint_of(run->from)->at : NULL;
    struct shmt_board *board = shmt_job_board(&run->job);
    const uint64_t now_ns = shmt_now_ns();
    uint64_t began_ns = load_relaxed(&board->epoch_ns); /* relaxed, both: for display */
    if (!began_ns) began_ns = load_relaxed(&board->first_step_ns) - run->job.before_ns;
    const bool whole = snapshot->at.step == 0;
    *out = (struct shmt_moment){.epoch = snapshot->at.epoch,
                                .step = snapshot->at.step,
                                .steps_before = snapshot->at.steps_before,
                                .n_pieces = whole ? 0 : snapshot->n_pieces,
                                .done = whole ? NULL : snapshot->done,
                                .loss = whole ? NULL : snapshot->loss,
                                .n_clocks = snapshot->n_clocks,
                                .clock = snapshot->clock,
                                .n_records = records_of(run, snapshot->at.epoch),
                                .record = run->epochs,
                                .epoch_seconds = whole || now_ns < began_ns ? 0 : (double)(now_ns - began_ns) * 1e-9,
                                .seconds = (before ? before->seconds : 0) + (double)(now_ns - run->began_ns) * 1e-9};
}

static void fill_tables(struct shmt_run *run, const struct shmt_snapshot *snapshot, struct shmt_checkpoint *out) {
    const uint32_t *place = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_ROW_PLACE);
    out->n_tables = run->params->n_tables;
    out->n_planes = snapshot->planes;
    for (uint32_t t = 0; t < out->n_tables; t++) {
        struct shmt_checkpoint_table *table = &out->table[t];
        table->table = run->params->table[t].table;
        table->value = snapshot->weight + snapshot->start[t];
        table->place = t == 0 ? place : NULL;
        for (uint32_t p = 0; p < snapshot->planes; p++)
            table->state[p] = snapshot->state + p * snapshot->n_floats + snapshot->start[t];
    }
}

static void fill_run(struct shmt_run *run, struct shmt_checkpoint *out) {
    const struct shmt_checkpoints *c = run->checkpoints;
    const struct shmtrain_model *model = run->job.model;
    out->spec = run->spec;
    if (run->fits) shmt_fit_fill(run, &out->fit);
    out->l2_chosen = run->penalty->examples > 0 || (run->from && shmt_checkpoint_of(run->from)->l2_chosen);
    if (run->from && shmt_policy_has_rounds(&run->spec.policy)) /* that of the run that began, see resume.c */
        out->spec.batch = shmt_checkpoint_of(run->from)->spec.batch;
    out->data = c->data;
    out->group = run->job.settings.group;
    out->bias = run->job.settings.bias;
    shmt_mode_name(&run->spec.policy, run->mode_taken, out->mode, sizeof out->mode);
    snprintf(out->model, sizeof out->model, "%s", model ? model->name : "");
    snprintf(out->model_options, sizeof out->model_options, "%s", model ? run->texts.joined : "");
    if (!model || !c->as) return;
    shmt_notes_make(c->as, model, c->notes);
    out->note = c->notes->note;
    out->n_notes = c->notes->n;
    if (c->as->features.kind != SHMT_IDS_LISTED) return;
    out->id = c->as->ids.id;
    out->n_ids = c->as->ids.n;
}

static void fill(struct shmt_run *run, const struct shmt_snapshot *snapshot) {
    struct shmt_checkpoints *c = run->checkpoints;
    c->now = (struct shmt_checkpoint){.n_tables = 0};
    c->error = (struct shmt_error){0};
    fill_run(run, &c->now);
    fill_moment(run, snapshot, &c->now.at);
    fill_tables(run, snapshot, &c->now);
    (void)shmt_checkpoint_name(run->config->checkpoint, &c->now, c->path, NULL); /* short enough when the run began */
}

/* Before and after it is written. */
static void tell(struct shmt_run *run, bool written) {
    struct shmt_checkpoints *c = run->checkpoints;
    const struct shmtrain_checkpoint what = {.size = sizeof(struct shmtrain_checkpoint),
                                             .path = c->path,
                                             .step = shmt_checkpoint_step(&c->now),
                                             .written = written && c->error.status == 0,
                                             .failure = c->error.text};
    if (run->listener.checkpoint) run->listener.checkpoint(run->listener.arg, &run->report, &what);
}

/* From parameters that are no numbers nobody wants to go on: the older checkpoints are worth more. */
static bool is_finite(const struct shmt_checkpoint *c) {
    for (uint32_t t = 0; t < c->n_tables && c->model[0]; t++)
        if (!shmt_all_finite(c->table[t].value, shmt_table_floats(&c->table[t].table))) return false;
    return true;
}

static void write_file(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (is_finite(&c->now))
        (void)shmt_checkpoint_write(run->config->checkpoint, &c->now, (uint32_t)run->config->keep, c->path, &c->error);
    else
        shmt_fail(&c->error, SHMTRAIN_E_NUMBERS, "not all parameters are finite numbers");
}

/* ---- by a thread of its own ---- */

/* Its place is free as soon as the file is there, and not when somebody looks: meanwhile the next one could be due. In this
 * order: whoever is told of the next snapshot finds this one written. */
static void *write_apart(void *arg) {
    struct shmt_run *run = arg;
    write_file(run);
    /* release: path and error; pairs with the acquire in shmt_checkpoints_tick */
    store_release(&run->checkpoints->written, 1);
    run->backend->store->release_snapshot(run->job.store);
    return NULL;
}

/* Signals are for the application's own threads. False: there can be no thread. */
static bool begin_apart(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    sigset_t all, before;
    sigfillset(&all);
    store_relaxed(&c->written, 0); /* nobody else is there yet */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    c->writing = shmt_thread_start(&c->thread, write_apart, run) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->writing;
}

/* The file is there, or cannot be; the place for a snapshot is free again. */
static void take_back(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (c->error.status < 0) {
        tell(run, true);
        if (c->n_failed++ == 0)
            shmt_log(&run->call->log, "%s; the run continues, older checkpoints are kept, and later ones will be tried",
                     c->error.text);
        return;
    }
    if (c->n_failed > 0) shmt_log(&run->call->log, "checkpoints can be written again: %u failed", c->n_failed);
    c->n_failed = 0;
    c->written_step = shmt_checkpoint_step(&c->now);
    run->report.checkpoints++;
    tell(run, true);
}

static void end_apart(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (!c->writing) return;
    (void)pthread_join(c->thread, NULL);
    c->writing = false;
    take_back(run);
}

static void ask_if_due(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    const uint64_t now_ns = shmt_now_ns();
    if (run->config->parsed.checkpoint_every.seconds <= 0) return;
    if (c->asked_ns == 0) c->asked_ns = now_ns; /* the run begins */
    if ((double)(now_ns - c->asked_ns) * 1e-9 < run->config->parsed.checkpoint_every.seconds) return;
    c->asked_ns = now_ns;
    c->asked = true;
    run->backend->store->request_snapshot(run->job.store);
}

/* Of steps or epochs, as checkpoint-every counts them: how many periods of the run are over. */
static uint64_t periods_of(const struct shmt_run *run, uint64_t epoch, uint64_t step) {
    const struct shmt_every *every = &run->config->parsed.checkpoint_every;
    if (every->steps > 0) return (epoch * shmt_spec_steps(&run->spec) + step) / every->steps;
    return epoch / every->epochs;
}

/* Those that the workers take of their own accord always are; of those that the application has asked for, and of those of a fit, which
 * takes one behind each epoch, the first one of a period, which then is as good as the one that would follow. */
static bool is_due(struct shmt_run *run, const struct shmt_snapshot *snapshot, bool for_application) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (!is_asked_for(run->config)) return false;
    if (run->config->parsed.checkpoint_every.seconds > 0) return c->asked;
    const uint64_t begun = periods_of(run, run->spec.first_epoch, run->spec.first_step);
    const uint64_t periods = periods_of(run, snapshot->at.epoch, snapshot->at.step);
    const bool due = (!for_application && !run->fits) || periods > shmt_max_u64(begun, c->periods);
    if (due) c->periods = periods;
    return due;
}

void shmt_checkpoints_tick(struct shmt_run *run) {
    struct shmt_checkpoints *c = run->checkpoints;
    if (!is_asked_for(run->config) || !run->spec.pauses.allowed) return;
    /* acquire: pairs with the release in write_apart */
    if (c->writing && load_acquire(&c->written)) end_apart(run);
    ask_if_due(run);
}

bool shmt_checkpoints_take(struct shmt_run *run, const struct shmt_snapshot *snapshot, bool for_application) {
    if (!is_due(run, snapshot, for_application)) return false;
    run->checkpoints->asked = false;
    fill(run, snapshot);
    tell(run, false);
    if (begin_apart(run)) return true;
    write_file(run); /* without one, here */
    take_back(run);
    return false;
}

/* Where the workers have ended, or, of a fit that was cut short in an epoch, behind the one before. */
static bool find_stand(struct shmt_run *run, struct shmt_snapshot *out) {
    bool found = run->backend->store->final_snapshot(run->job.store, out) != 0;
    if (found && run->fits && !shmt_fit_can_resume(run, out)) {
        run->backend->store->release_snapshot(run->job.store);
        found = false;
    }
    if (!found && run->fits && !run->from)
        shmt_log(&run->call->log, "no epoch of the fit has ended: there is no checkpoint of it yet, and --resume begins anew");
    return found;
}

void shmt_checkpoints_end(struct shmt_run *run, int rc) {
    struct shmt_checkpoints *c = run->checkpoints;
    struct shmt_snapshot snapshot;
    if (!is_asked_for(run->config) || !run->spec.pauses.allowed) return;
    end_apart(run);
    if (rc < 0 || c->done || !find_stand(run, &snapshot)) return;
    fill(run, &snapshot);
    c->now.ended_by = shmt_end_of(run->report.stopped_by);
    if (shmt_checkpoint_step(&c->now) != c->written_step || c->now.ended_by != SHMT_END_NOT) {
        tell(run, false);
        write_file(run);
        if (c->error.status < 0) shmt_report_unwritten(run, "%s", c->error.text);
        if (c->error.status == 0) run->report.checkpoints++;
        tell(run, true);
    }
    run->backend->store->release_snapshot(run->job.store);
}
