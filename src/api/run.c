/* Runs: from a configured store to ended workers. train.c prepares the runs of models on data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/effects.h"
#include "api/best.h"
#include "api/defaults.h"
#include "api/fit.h"
#include "api/init_from.h"
#include "api/manifest.h"
#include "api/penalty.h"
#include "api/rows.h"
#include "api/store_priv.h"
#include "api/validation.h"
#include "api/workers.h"
#include "base/clock.h"
#include "segment/budget.h"

int shmt_check_memory(struct shmtrain_store *store, const struct shmt_backend_ops *ops, const struct shmt_spec *spec,
                      uint64_t data_bytes) {
    struct shmt_need need;
    struct shmt_budget budget;
    char parts[160], text[3][32];
    const int rc = ops->plan(spec, &need, &store->error);
    if (rc < 0) return rc;
    shmt_bytes_text(need.parameter_bytes, text[0], sizeof text[0]);
    shmt_bytes_text(need.state_bytes + need.gradient_bytes + need.other_bytes, text[1], sizeof text[1]);
    shmt_bytes_text(data_bytes, text[2], sizeof text[2]);
    snprintf(parts, sizeof parts, "parameters %s, state, gradients and work %s, data %s", text[0], text[1], text[2]);
    shmt_budget_read("", &budget);
    /* Reserved huge pages are not among the free memory. */
    const bool reserved = spec->placement.page_bytes == SHMT_HUGE_BYTES && !spec->placement.transparent;
    uint64_t bytes = reserved ? 0 : need.total_bytes;
    if (!shmt_add_u64(bytes, data_bytes, &bytes)) bytes = UINT64_MAX;
    return shmt_budget_check(&budget, bytes, "training", parts, "free some, or use fewer features, workers or examples",
                             &store->error);
}

/* Work that cannot be shared out among all is done all the same; it deserves a word. */
static void note_idle_workers(const struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    const uint32_t n_seats = spec->n_seats - spec->n_guests;
    if (store->fits || !shmt_policy_is_batched(&spec->policy) || n_seats <= spec->n_chunks) return;
    shmt_log(&store->log, "a batch of %u has work for only %u of %u workers: use more --chunks or a larger --batch",
             spec->batch, spec->n_chunks, n_seats);
}

/* Whoever asked for another quorum or batch should know. */
static void note_rounds(const struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    if (store->quorum_of_all)
        shmt_log(&store->log, "a quorum of all %u worker%s has no effect: an update waits for all gradients, as in sync",
                 spec->n_workers, spec->n_workers == 1 ? "" : "s");
    const bool rounded = shmt_policy_has_rounds(&spec->policy) && store->config.batch > 0 && spec->batch != store->config.batch;
    if (rounded && store->checkpoints.from)
        shmt_log(&store->log, "a worker's part of a batch stays %u examples: a batch of %u workers is of %u", spec->item,
                 spec->n_workers, spec->batch);
    else if (rounded)
        shmt_log(&store->log, "a batch of %llu for %u workers is rounded up to %u", (unsigned long long)store->config.batch,
                 spec->n_workers, spec->batch);
}

/* ---- a run ---- */

static void fill_rows(const struct shmtrain_store *store, struct shmt_store *made, const struct shmt_rows *rows) {
    const uint64_t n = store->n_tables > 0 ? store->table[0].table.rows : 0;
    if (rows->place && store->spec.row_places) memcpy(store->ops->row_place(made), rows->place, n * sizeof *rows->place);
    if (rows->l2_share && store->spec.l2_shares)
        memcpy(store->ops->l2_share(made, 0), rows->l2_share, n * sizeof *rows->l2_share);
    if (rows->curvature && store->spec.curvatures)
        memcpy(store->ops->curvature(made), rows->curvature, rows->n_curvatures * sizeof *rows->curvature);
}

static int make_backend(struct shmtrain_store *store, const struct shmt_crew *crew, struct shmt_rows *rows) {
    struct shmt_home home = {.topo = crew->topo, .log = &store->log, .page_bytes_out = &store->report.page_bytes};
    struct shmt_store *made = NULL;
    if (shmt_store_has_state_for(store, &store->spec)) store->spec.steps_before = store->kept.steps;
    int rc = shmt_lease_home(store, &home);
    if (rc == 0) rc = store->ops->create(&store->spec, &home, &made, &store->error);
    if (rc < 0 && home.has_fd) close(home.fd);
    if (rc == 0 && rows) fill_rows(store, made, rows); /* before parameters, which go by the places */
    if (rows) shmt_rows_free(rows);
    if (rc == 0) rc = shmt_store_give_parameters(store, made);
    if (rc < 0) return rc;
    store->job.ops = store->ops;
    store->job.store = made;
    store->job.spec = &store->spec;
    store->job.slow = store->slow.n > 0 ? &store->slow : NULL;
    store->job.goal.target_loss = store->config.target_loss;
    store->job.goal.patience = (uint32_t)store->config.patience;
    shmt_fit_begin(store);
    rc = shmt_checkpoints_begin_board(store, made);
    store->has_run = store->is_of_run = true;
    shmt_trained_clear(&store->trained);
    return rc;
}

static void rouse(const struct shmt_workers *workers) { workers->store->ops->rouse(workers->store->job.store); }

static void stop(struct shmtrain_store *store) { store->ops->stop(store->job.store); }

static void end_if_late(struct shmtrain_store *store) {
    const double limit = store->config.time_limit;
    if (store->timed_out || !((double)(shmt_now_ns() - store->began_ns) * 1e-9 >= limit)) return; /* NaN: there is none */
    store->timed_out = true;
    store->timed_out_ns = shmt_now_ns();
    stop(store);
}

/* What the workers have copied goes to the application, if it has asked, and into a checkpoint, if one is due. While a thread
 * writes one of it, nobody else looks: that thread gives the room back to the workers when it is done, at any moment. */
static void share_snapshot(struct shmtrain_store *store) {
    struct shmt_snapshot snapshot;
    if (!store->spec.pauses.allowed || store->checkpoints.writing) return;
    if (!store->ops->snapshot(store->job.store, &snapshot)) return;
    const bool asked = store->snapshots.asked;
    shmt_snapshots_serve(store, &snapshot);
    if (!shmt_checkpoints_take(store, &snapshot, asked)) store->ops->release(store->job.store);
}

/* Deaths first: whoever listens to the epochs may take a long time. */
static int tick(struct shmtrain_store *store, const struct shmt_team *team) {
    int rc = shmt_lease_tick(store);
    if (rc == 0) rc = shmt_stalls_tick(store, team);
    end_if_late(store);
    shmt_report_progress(store);
    shmt_steps_tick(store);
    shmt_snapshots_tick(store);
    shmt_checkpoints_tick(store);
    share_snapshot(store);
    shmt_progress_tick(store);
    return rc;
}

/* However the workers have ended. */
static int turn_back(struct shmtrain_store *store, int rc) {
    struct shmt_error e = {0};
    if (shmt_standard_undo(&store->standard, store, store->job.store, &e) == 0 || rc < 0) return rc;
    return shmt_fail(&store->error, e.status, "%s", e.text);
}

int shmt_run_job(struct shmtrain_store *store, const struct shmt_crew *crew, struct shmt_rows *rows) {
    int rc = make_backend(store, crew, rows);
    if (rc < 0) return rc;
    note_idle_workers(store);
    note_rounds(store);
    shmt_note_effects(store);
    shmt_report_begin(store, crew);
    shmt_lease_publish(store, crew->n_threads);
    shmt_trace_starts(store);
    shmt_stalls_begin(store, crew);
    shmt_steps_begin(store);
    if (shmt_stop_asked(store)) store->ops->stop(store->job.store); /* then nobody begins at all */
    const struct shmt_workers workers = {
        .store = store, .crew = crew, .abort = store->ops->abort_word(store->job.store), .rouse = rouse};
    if (!store->checkpoints.done) rc = shmt_workers_run(&workers, &(struct shmt_driver){.tick = tick, .stop = stop});
    rc = shmt_stalls_end(store, rc);
    shmt_trace_write(store);              /* however they have ended */
    if (rc == 0) shmt_report_lost(store); /* before others write parameters */
    if (rc == 0) shmt_best_restore(store);
    rc = turn_back(store, rc);
    if (rc == 0) {
        shmt_report_progress(store);
        shmt_steps_tick(store); /* what has come since the last tick */
        rc = shmt_report_finish(store);
    }
    shmt_checkpoints_end(store, rc);
    return rc;
}

int shmt_run_begin(struct shmtrain_store *store) {
    store->began_ns = shmt_now_ns();
    store->timed_out = false;
    shmt_trace_forget(store);
    const int rc = shmt_store_take_parameters(store);
    if (rc < 0) return rc;
    store->ops = shmt_backend_find(store->config.backend);
    shmt_costs_forget(store);
    store->report = SHMT_NO_REPORT;
    store->blas[0] = '\0';
    return 0;
}

int shmt_run_make_epochs(struct shmtrain_store *store, const struct shmtrain_model *model) {
    const uint64_t n = shmt_defaults_epochs(store, model, SHMT_PENALTY_FEW - 1); /* few examples want the most */
    free(store->epochs);
    store->report.epoch = store->epochs = calloc(n, sizeof *store->epochs);
    if (store->epochs) return 0;
    return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for the figures of %llu epochs",
                     (unsigned long long)n);
}

int shmt_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    struct shmt_crew crew = {0};
    if (!worker) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "a run needs a worker function");
    int rc = shmt_run_begin(store);
    if (rc == 0) rc = shmt_trace_check(store, NULL);
    if (rc == 0) rc = shmt_metrics_open(store, NULL);
    if (rc == 0) rc = shmt_checkpoints_begin(store);
    if (rc == 0) rc = shmt_fit_refuse(store);
    if (rc == 0) rc = shmt_run_make_epochs(store, NULL);
    if (rc == 0) rc = shmt_lease_begin(store);
    if (rc == 0) rc = shmt_crew_make(store, store->ops, SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) rc = shmt_spec_of_config(store, &crew, NULL, store->n_examples, &store->spec);
    if (rc == 0) {
        shmt_rate_settle(&store->config, false, &store->spec.rate); /* how noisy its gradients are, the application knows */
        shmt_validation_begin(store, worker, arg);
        rc = shmt_checkpoints_settle(store, NULL);
    }
    if (rc == 0 && !store->checkpoints.from) rc = shmt_init_from(store, NULL);
    if (rc == 0) rc = shmt_checkpoints_restore(store);
    if (rc == 0) {
        shmt_board_plan_of_function(store->spec.epochs, store->validation.n_examples, &store->job.board);
        store->spec.board_bytes = store->job.board.bytes;
        rc = shmt_machine_settle(&crew.machine, store->ops, &store->spec, &store->error);
        if (rc == 0) rc = shmt_check_memory(store, store->ops, &store->spec, 0);
    }
    if (rc == 0) rc = shmt_run_job(store, &crew, NULL);
    shmt_crew_free(&crew);
    shmt_checkpoints_close(store);
    return shmt_metrics_end(store, shmt_lease_end(store, rc));
}

int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_store_run(store, worker, arg);
    shmt_snapshots_close(store, rc);
    shmt_call_leave(store);
    return rc;
}
