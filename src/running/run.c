/* Runs: from a configured store to ended workers. train.c prepares the runs of models on data. */
#include "running/running.h"
#include "running/run_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "running/effects_priv.h"
#include "running/spec_priv.h"
#include "checkpoints/best.h"
#include "checkpoints/checkpoints.h"
#include "fitting/defaults.h"
#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "hosts/hosts.h"
#include "hosts/newest.h"
#include "keeping/init_from.h"
#include "loading/rows.h"
#include "loading/standard.h"
#include "naming/lease.h"
#include "naming/visit.h"
#include "recording/recording.h"
#include "ps/collective.h"
#include "segment/budget.h"
#include "sync/host.h"
#include "watching/metrics.h"
#include "watching/progress.h"
#include "watching/report.h"
#include "watching/snapshots.h"
#include "watching/log_every.h"
#include "watching/trace.h"
#include "watching/validation.h"
#include "workers/costs.h"
#include "workers/deaths.h"
#include "workers/stalls.h"
#include "workers/workers.h"

int shmt_check_memory(struct shmt_call *call, const struct shmt_backend *backend, const struct shmt_spec *spec,
                      uint64_t data_bytes) {
    struct shmt_need need;
    char parts[160], text[3][32];
    const int rc = backend->plan(spec, &need, &call->error);
    if (rc < 0) return rc;
    shmt_bytes_text(need.parameter_bytes, text[0], sizeof text[0]);
    shmt_bytes_text(need.state_bytes + need.gradient_bytes + need.other_bytes, text[1], sizeof text[1]);
    shmt_bytes_text(data_bytes, text[2], sizeof text[2]);
    snprintf(parts, sizeof parts, "parameters %s, state, gradients and work %s, data %s", text[0], text[1], text[2]);
    /* Reserved huge pages are not among the free memory. */
    const bool reserved = spec->placement.page_bytes == SHMT_HUGE_BYTES && !spec->placement.transparent;
    uint64_t bytes = reserved ? 0 : need.total_bytes;
    if (!shmt_add_u64(bytes, data_bytes, &bytes)) bytes = UINT64_MAX;
    return shmt_budget_need(bytes, "training", parts, "free some, or use fewer features, workers or examples", &call->error);
}

/* Work that cannot be shared out among all is done all the same; it deserves a word. */
static void note_idle_workers(const struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    const uint32_t n_seats = spec->n_seats - spec->n_guests, n_hosts = shmt_spec_hosts(spec);
    if (run->fits || !shmt_policy_is_batched(&spec->policy)) return;
    if (n_hosts > spec->n_chunks && spec->hosts.self == 0)
        shmt_log(&run->call->log, "a batch of %u has work for only %u of %u hosts: use more --chunks or a larger --batch",
                 spec->batch, spec->n_chunks, n_hosts);
    if (n_hosts > 1 || n_seats <= spec->n_chunks) return;
    shmt_log(&run->call->log, "a batch of %u has work for only %u of %u workers: use more --chunks or a larger --batch",
             spec->batch, spec->n_chunks, n_seats);
}

/* Whoever asked for another quorum or batch should know. */
static void note_rounds(const struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    const uint32_t n_workers = shmt_spec_all_workers(spec);
    if (run->quorum_of_all)
        shmt_log(&run->call->log, "a quorum of all %u worker%s has no effect: an update waits for all gradients, as in sync",
                 n_workers, n_workers == 1 ? "" : "s");
    const bool rounded = shmt_policy_has_rounds(&spec->policy) && run->config->batch > 0 && spec->batch != run->config->batch;
    if (rounded && run->from)
        shmt_log(&run->call->log, "a worker's part of a batch stays %u examples: a batch of %u workers is of %u", spec->item,
                 n_workers, spec->batch);
    else if (rounded)
        shmt_log(&run->call->log, "a batch of %llu for %u workers is rounded up to %u", (unsigned long long)run->config->batch,
                 n_workers, spec->batch);
}

/* ---- a run ---- */

static void fill_rows(const struct shmt_run *run, struct shmt_store *made, const struct shmt_rows *rows) {
    const uint64_t n = run->params->n_tables > 0 ? run->params->table[0].table.rows : 0;
    if (rows->place && run->spec.row_places)
        memcpy(shmt_array_at(run->backend, made, SHMT_ARRAY_ROW_PLACE), rows->place, n * sizeof *rows->place);
    if (rows->l2_share && run->spec.l2_shares)
        memcpy(shmt_array_at(run->backend, made, SHMT_ARRAY_L2_SHARE), rows->l2_share, n * sizeof *rows->l2_share);
    if (rows->curvature && run->spec.curvatures)
        memcpy(shmt_array_at(run->backend, made, SHMT_ARRAY_CURVATURE), rows->curvature,
               rows->n_curvatures * sizeof *rows->curvature);
}

static int make_backend(struct shmt_run *run, const struct shmt_crew *crew, struct shmt_rows *rows) {
    struct shmt_home home = {.topo = crew->topo, .log = &run->call->log, .page_bytes_out = &run->report.page_bytes};
    struct shmt_store *made = NULL;
    if (shmt_parameters_have_state(run->params, &run->spec)) run->spec.steps_before = run->params->kept.steps;
    int rc = shmt_lease_home(run, &home);
    if (rc == 0) rc = run->backend->create(&run->spec, &home, &made, &run->call->error);
    if (rc < 0 && home.has_fd) close(home.fd);
    if (rc == 0 && rows) fill_rows(run, made, rows); /* before parameters, which go by the places */
    if (rows) shmt_rows_free(rows);
    if (rc == 0)
        rc = shmt_parameters_give(run->params,
                                  &(const struct shmt_held){.backend = run->backend, .spec = &run->spec, .store = made},
                                  &run->call->error);
    if (rc < 0) return rc;
    run->job.backend = run->backend;
    run->job.store = made;
    run->job.spec = &run->spec;
    run->job.slow = run->slow.n > 0 ? &run->slow : NULL;
    run->job.goal.target_loss = run->config->target_loss;
    run->job.goal.patience = (uint32_t)run->config->patience;
    shmt_fit_begin(run);
    rc = shmt_checkpoints_begin_board(run, made);
    run->params->has_run = run->params->is_of_run = true;
    shmt_trained_clear(&run->params->trained);
    return rc;
}

static void wake(const struct shmt_workers *workers) { workers->run->backend->store->wake(workers->run->job.store); }

static void stop(void *arg) {
    const struct shmt_run *run = arg;
    set_bits_relaxed(run->backend->store->stop_word(run->job.store), SHMT_STOP_ASKED);
}

static void end_if_late(struct shmt_run *run) {
    const uint64_t now_ns = shmt_now_ns();
    const bool is_late = (double)(now_ns - run->began_ns) * 1e-9 >= run->config->time_limit; /* NaN: there is none */
    const bool has_trained = run->train_limit > 0 && (double)(now_ns - run->trained_ns) * 1e-9 >= run->train_limit;
    if (run->timed_out || (!is_late && !has_trained)) return;
    run->timed_out = true;
    run->timed_out_ns = shmt_now_ns();
    stop(run);
}

/* What the workers have copied goes to the application, if it has asked, and into a checkpoint, if one is due. While a thread
 * writes one of it, nobody else looks: that thread gives the room back to the workers when it is done, at any moment. */
static void share_snapshot(struct shmt_run *run) {
    struct shmt_snapshot snapshot;
    if (!run->spec.pauses.allowed || run->checkpoints->writing) return;
    if (!run->backend->store->snapshot(run->job.store, &snapshot)) return;
    const bool asked = run->snapshots->asked;
    shmt_snapshots_serve(run->snapshots, run->params, &snapshot, run->checkpoints->as);
    if (!shmt_checkpoints_take(run, &snapshot, asked)) run->backend->store->release_snapshot(run->job.store);
}

/* Deaths first: whoever listens to the epochs may take a long time. */
static void look(void *arg, const struct shmt_team *team) { shmt_deaths_note(arg, team); }

static int due_ms(void *arg, int most) {
    const struct shmt_run *run = arg;
    return shmt_snapshots_due_ms(run->snapshots, shmt_progress_due_ms(run, most));
}

static int tick(void *arg, const struct shmt_team *team) {
    struct shmt_run *run = arg;
    int rc = shmt_lease_tick(run);
    if (rc == 0) rc = shmt_hosts_tick(run);
    if (rc == 0) rc = shmt_stalls_tick(run, team);
    end_if_late(run);
    shmt_report_progress(run);
    shmt_steps_tick(run);
    shmt_snapshots_tick(run->snapshots, &run->params->held);
    shmt_checkpoints_tick(run);
    share_snapshot(run);
    shmt_progress_tick(run);
    return rc;
}

/* However the workers have ended. */
static int undo_scaling(struct shmt_run *run, int rc) {
    struct shmt_error e = {0};
    if (shmt_standard_undo(run->standard, run->job.model, &run->params->held, &e) == 0 || rc < 0) return rc;
    return shmt_fail(&run->call->error, e.status, "%s", e.text);
}

int shmt_run_job(struct shmt_run *run, const struct shmt_crew *crew, struct shmt_rows *rows) {
    int rc = make_backend(run, crew, rows);
    if (rc == 0 && !run->checkpoints->done) rc = shmt_hosts_join(run);
    if (rc == 0) rc = shmt_recording_start(run);
    if (rc < 0) return rc;
    note_idle_workers(run);
    note_rounds(run);
    shmt_note_effects(run);
    shmt_report_begin(run, crew);
    shmt_lease_publish(run, crew->n_threads);
    shmt_trace_starts(run);
    shmt_stalls_begin(run, crew);
    shmt_steps_begin(run);
    if (shmt_stop_asked(run->call))
        set_bits_relaxed(run->backend->store->stop_word(run->job.store), SHMT_STOP_ASKED); /* then nobody begins at all */
    const struct shmt_workers workers = {.run = run,
                                         .crew = crew,
                                         .abort = run->backend->store->abort_word(run->job.store),
                                         .ring_every = shmt_steps_ring_every(&run->spec, run->config->log_every),
                                         .on_abort = wake};
    const struct shmt_driver driver = {
        .arg = run, .fd = run->snapshots->wake_fd, .look = look, .tick = tick, .due_ms = due_ms, .stop = stop};
    if (!run->checkpoints->done) rc = shmt_workers_run(&workers, &driver);
    rc = shmt_hosts_end(run, rc);
    rc = shmt_stalls_end(run, rc);
    shmt_trace_write(run);              /* however they have ended */
    if (rc == 0) shmt_report_lost(run); /* before others write parameters */
    if (rc == 0) shmt_best_restore(run);
    rc = undo_scaling(run, rc);
    if (rc == 0) {
        shmt_report_progress(run);
        shmt_steps_tick(run); /* what has come since the last tick */
        rc = shmt_report_finish(run);
        rc = shmt_recording_end(run, rc);
    }
    shmt_checkpoints_end(run, rc);
    return rc;
}

int shmt_run_begin(struct shmt_run *run) {
    run->began_ns = shmt_now_ns();
    run->timed_out = run->ended_by_host = false;
    run->loading->passes.kept = run->config->trace[0] != '\0';
    const int rc = shmt_parameters_take(run->params, &run->call->error);
    if (rc < 0) return rc;
    shmt_visit_end(run);
    run->backend = shmt_backend_at(run->config->backend);
    shmt_costs_forget(run);
    shmt_penalty_forget(run);
    run->report = SHMT_NO_REPORT;
    run->blas[0] = '\0';
    return 0;
}

int shmt_run_make_epochs(struct shmt_run *run, const struct shmtrain_model *model) {
    const uint64_t n = shmt_defaults_epochs(run, model, SHMT_PENALTY_FEW - 1); /* few examples want the most */
    free(run->epochs);
    run->report.epoch = run->epochs = calloc(n, sizeof *run->epochs);
    if (run->epochs) return 0;
    return shmt_no_memory(&run->call->error, "for the figures of %llu epochs", (unsigned long long)n);
}

int shmt_run_function(struct shmt_run *run, shmtrain_worker *worker, void *arg) {
    struct shmt_crew crew = {0};
    if (!worker) return shmt_refuse(&run->call->error, "a run needs a worker function");
    if (run->config->parsed.sim.measured)
        return shmt_refuse(&run->call->error,
                           "--sim measured: what an own worker function takes is not measured: name costs, as compute=10ms");
    snprintf(run->sim, sizeof run->sim, "%s", run->config->sim);
    int rc = shmt_run_begin(run);
    if (rc == 0) rc = shmt_trace_check(run->call, run->config, NULL);
    if (rc == 0) rc = shmt_recording_begin(run, NULL);
    if (rc == 0) rc = shmt_metrics_open(run, NULL);
    if (rc == 0) rc = shmt_checkpoints_begin(run);
    if (rc == 0) rc = shmt_fit_refuse(run);
    if (rc == 0) rc = shmt_run_make_epochs(run, NULL);
    if (rc == 0) rc = shmt_hosts_begin(run);
    if (rc == 0) rc = shmt_hosts_settle_newest(run, run->checkpoints->from_path);
    if (rc == 0) rc = shmt_lease_begin(run);
    if (rc == 0) rc = shmt_crew_make(run->call, run->config, run->backend, SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) rc = shmt_spec_of_config(run, &crew, NULL, run->n_examples, &run->spec);
    if (rc == 0) rc = shmt_recording_plan(run, crew.n_threads);
    if (rc == 0) {
        shmt_rate_settle(run->config, false, &run->spec.rate); /* how noisy its gradients are, the application knows */
        shmt_validation_begin(run, worker, arg);
        rc = shmt_checkpoints_settle(run, NULL);
    }
    if (rc == 0 && !run->from) rc = shmt_init_from(run->call, run->config->init_from, run->offered, run->params, NULL);
    if (rc == 0) rc = shmt_checkpoints_restore(run);
    if (rc == 0) {
        shmt_board_plan_of_function(run->spec.epochs, run->validation.n_examples, &run->job.board);
        run->spec.board_bytes = run->job.board.bytes;
        shmt_collective_plan(&run->spec, run->config->name[0] != '\0', run->lend_bytes);
        rc = shmt_machine_settle(&crew.machine, run->backend, &run->spec, &run->call->error);
        if (rc == 0) rc = shmt_check_memory(run->call, run->backend, &run->spec, 0);
    }
    if (rc == 0) rc = shmt_hosts_agree(run, &(const struct shmt_agreed){0});
    if (rc == 0) rc = shmt_run_job(run, &crew, NULL);
    shmt_hosts_close(run);
    shmt_crew_free(&crew);
    shmt_checkpoints_close(run);
    shmt_recording_close(run);
    shmt_readings_forget(&run->loading->passes);
    return shmt_metrics_end(run, shmt_lease_end(run, rc));
}
