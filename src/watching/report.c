/* The report of a run: begun from its configuration, grown from the board while it goes on, completed at its end. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "watching/report.h"
#include "watching/diverged.h"
#include "watching/metrics.h"
#include "base/cpu.h"
#include "consistency/mode.h"
#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "keeping/parameters.h"
#include "keeping/places.h"
#include "loading/standard.h"
#include "math/finite.h"
#include "ps/replicas.h"
#include "ps/spec_fields.h"
#include "sync/host.h"
#include "workers/costs.h"
#include "workers/deaths.h"

const struct shmtrain_report SHMT_NO_REPORT = {.size = sizeof(struct shmtrain_report),
                                               .tolerance = NAN,
                                               .choice_loss = NAN,
                                               .mode = "",
                                               .write = "",
                                               .backend = "",
                                               .spawn = "",
                                               .sim = "",
                                               .model = "",
                                               .columns = "",
                                               .optimizer = "",
                                               .schedule = "",
                                               .replicas = "",
                                               .mode_reason = "",
                                               .copies_reason = "",
                                               .merge = "",
                                               .late = "",
                                               .slow = "",
                                               .stopped_by = "",
                                               .delay = {.mean = NAN, .p50 = NAN, .p99 = NAN, .max = NAN, .clocks = NAN},
                                               .dataset = {.name = ""},
                                               .valid = {.name = ""},
                                               .best_loss = NAN,
                                               .waits_mostly_for = UINT32_MAX,
                                               .first_step_seconds = NAN,
                                               .lost_updates = NAN,
                                               .lost_lowest = NAN,
                                               .lost_highest = NAN,
                                               .hosts = 1,
                                               .numa = "",
                                               .cpu = "",
                                               .unwritten = "",
                                               .blas = ""};

static double seconds_since(uint64_t from_ns) { return (double)(shmt_now_ns() - from_ns) * 1e-9; }

/* The workers of all hosts: only a quorum has them counted, or, where hosts are only planned, guessed. */
static bool are_counted(const struct shmt_spec *spec) {
    return !shmt_spec_is_linked(spec) || spec->hosts.n_workers > 0 || shmt_spec_has_quorum_of_hosts(spec);
}

void shmt_report_describe(struct shmt_run *run, uint32_t n_threads) {
    const struct shmt_spec *spec = &run->spec;
    struct shmtrain_report *r = &run->report;
    const struct shmt_policy *policy = &spec->policy;
    shmt_spec_report(spec, r);
    shmt_mode_name(policy, run->mode_taken, run->mode, sizeof run->mode);
    r->mode = run->mode;
    r->mode_reason = run->mode_reason ? run->mode_reason : "";
    r->copies_reason = run->copies_reason;
    r->late = policy->quorum != SHMT_QUORUM_ALL ? shmt_late_name(policy->late) : "";
    r->merge = shmt_policy_merges_replicas(policy) ? shmt_merge_name(policy->merge) : "";
    r->merge_all_every = shmt_replicas_merge_all_every(spec);
    r->n_replicas = shmt_policy_has_equal_copies(policy) ? spec->n_seats - spec->n_guests
                                                         : (uint32_t)shmt_max_u64(1, shmt_replicas_count(spec));
    r->race_seconds = 1e-9 * (double)spec->race_ns;
    r->race_share = spec->race_ns > 0 ? spec->race_share : 0;
    r->slow = run->job.slow ? run->slow_text : "";
    r->backend = run->backend->name;
    r->model = run->job.model ? run->job.model->name : "";
    r->item_updates = run->job.model && run->job.model->traits.pushes_tables;
    r->with_accuracy = run->job.model ? run->job.model->task != SHMTRAIN_REGRESSION : run->job.classifies;
    r->with_auc = run->job.model && run->job.model->task == SHMTRAIN_BINARY;
    r->columns = spec->row_places ? "by frequency" : "given";
    r->all_workers = are_counted(spec) ? shmt_spec_all_workers(spec) : 0;
    r->quorum = shmt_policy_needed(policy->quorum, are_counted(spec) ? shmt_spec_all_workers(spec) : spec->n_workers);
    r->threads = n_threads;
    r->tolerance = r->choice_loss = NAN;
    r->scaled = run->standard->scale != NULL;
    if (run->fits) shmt_fit_describe(run, r);
    shmt_penalty_describe(run, r);
    r->hosts = spec->hosts.n > 0 ? spec->hosts.n : 1;
    r->host = spec->hosts.self;
    r->guests = spec->n_guests / shmt_seats_of_worker(spec);
    r->numa_nodes = spec->placement.policy == SHMT_PLACE_OFF ? 1 : spec->placement.n_nodes;
    r->numa = shmt_machine_numa_name(&spec->placement);
    if (r->page_bytes == 0) r->page_bytes = shmt_pages_bytes(SHMT_PAGES_ORDINARY); /* a backend without pages of its own */
    r->cpu = shmt_cpu_name((enum shmt_cpu)spec->cpu);
    r->blas = run->job.train && run->job.train->dense ? run->blas : ""; /* sparse rows go by nonzeros */
    r->lost_updates = r->lost_lowest = r->lost_highest = NAN;
    r->first_step_seconds = NAN;
}

void shmt_report_begin(struct shmt_run *run, const struct shmt_crew *crew) {
    struct shmtrain_report *r = &run->report;
    shmt_report_describe(run, crew->n_threads);
    r->cores = shmt_topo_cores(crew->topo);
    r->spawn = crew->kind->name;
    r->sim = run->sim;
    r->load_seconds = seconds_since(run->began_ns);
    shmt_metrics_begin(run);
    if (run->listener.begin) run->listener.begin(run->listener.arg, r);
}

bool shmt_report_take_epoch(struct shmt_run *run) {
    struct shmtrain_report *r = &run->report;
    struct shmt_board *board = shmt_job_board(&run->job);
    /* acquire: pairs with the chief's release; the records are whole. A named store may have been damaged: no more than there
     * is room for. */
    const uint64_t done = shmt_min_u64(load_acquire(&board->epochs_done), run->spec.epochs);
    if (r->n_epochs >= done) return false;
    struct shmtrain_epoch *epoch = &run->epochs[r->n_epochs];
    *epoch = shmt_board_epochs(board, &run->job.board)[r->n_epochs++];
    r->examples += epoch->examples;
    r->train_seconds += epoch->seconds;
    shmt_fit_report(run, r);
    return true;
}

void shmt_report_progress(struct shmt_run *run) {
    const struct shmtrain_report *r = &run->report;
    shmt_fit_report(run, &run->report);
    while (shmt_report_take_epoch(run)) {
        const struct shmtrain_epoch *epoch = &r->epoch[r->n_epochs - 1];
        shmt_metrics_epoch(run, epoch);
        if (run->listener.epoch) run->listener.epoch(run->listener.arg, r, epoch);
    }
}

/* What the workers' counters say; they have ended. */
static void add_counters(struct shmt_run *run) {
    struct shmtrain_report *r = &run->report;
    shmt_costs_take(run, shmt_now_ns());
    /* relaxed: the workers have been waited for */
    for (uint32_t seat = 0; seat < run->spec.n_seats; seat++) {
        const struct shmt_counters *c = run->backend->store->counters(run->job.store, seat);
        r->redone += load_relaxed(&c->redone);
    }
    r->respawns = run->deaths->respawns;
    for (uint32_t i = 0; i < r->n_epochs; i++)
        if (!r->epoch[i].partial) r->skipped += run->spec.n_examples - shmt_min_u64(run->spec.n_examples, r->epoch[i].examples);
}

void shmt_report_lost(struct shmt_run *run) {
    struct shmtrain_report *r = &run->report;
    const struct shmt_board *board = shmt_job_board(&run->job);
    uint64_t touched = 0, counted;
    if (!run->backend->store->lost(run->job.store, true, &counted)) return;
    /* relaxed: the workers have been waited for */
    for (uint32_t seat = 0; seat < run->spec.n_seats; seat++)
        touched += load_relaxed(&run->backend->store->counters(run->job.store, seat)->touched);
    if (touched > 0) r->lost_updates = shmt_board_lost_share(counted, touched);
    if (board->lost_epochs < 2) return;
    r->lost_lowest = board->lost_lowest;
    r->lost_highest = board->lost_highest;
}

/* What looks at all parameters, for what is not a finite number. */
struct look {
    struct shmt_run *run;
    struct shmt_error *bad; /* stays clear where all are */
};

static void see(void *arg, const struct shmt_table_spec *table, uint64_t row, uint64_t n, const float *rows) {
    const struct look *look = arg;
    const struct shmt_run *run = look->run;
    const struct shmt_bad_rows at = {.table = table,
                                     .row = rows,
                                     .first = row,
                                     .when = "at the end of the run",
                                     .rate = run->fits ? 0 : run->spec.rate.base,
                                     .pushed = !run->job.model || run->job.is_offered};
    if (look->bad->status == 0 && !shmt_all_finite(rows, n * table->width)) shmt_numbers_refuse(&at, look->bad);
}

static int hash_parameters(struct shmt_run *run, struct shmt_error *bad) {
    struct look look = {run, bad};
    run->report.parameter_bytes = 0;
    for (uint32_t t = 0; t < run->params->n_tables; t++)
        run->report.parameter_bytes += shmt_table_floats(&run->params->table[t].table) * sizeof(float);
    return shmt_parameters_hash(run->params, see, &look, &run->report.parameters_xxh64, &run->call->error);
}

void shmt_report_unwritten(struct shmt_run *run, const char *format, ...) {
    struct shmt_error e = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    shmt_log(&run->call->log, "%s", e.text);
    if (run->report.unwritten[0] != '\0') return; /* whoever has the report may be reading it */
    memcpy(run->unwritten, e.text, sizeof run->unwritten);
    run->report.unwritten = run->unwritten;
}

/* Of a run that was stopped. What the chief has decided comes first: it is the same for every run of the same figures. */
static uint32_t what_ended(struct shmt_run *run) {
    const uint32_t goal = load_relaxed(&shmt_job_board(&run->job)->ended_by); /* the workers have been waited for */
    if (goal != SHMT_END_NOT) return goal;
    if (shmt_stop_asked(run->call)) return SHMT_END_REQUEST;
    if (run->timed_out) return SHMT_END_TIME_LIMIT;
    return run->ended_by_host ? SHMT_END_HOST : SHMT_END_STEPS;
}

int shmt_report_finish(struct shmt_run *run) {
    struct shmtrain_report *r = &run->report;
    shmt_report_progress(run);
    add_counters(run);
    const uint64_t first_ns = load_relaxed(&shmt_job_board(&run->job)->first_step_ns);
    if (first_ns) r->first_step_seconds = (double)(first_ns - run->began_ns) * 1e-9;
    r->examples_per_second = r->train_seconds > 0 ? (double)r->examples / r->train_seconds : 0;
    r->stopped = r->n_epochs < run->spec.epochs || r->epoch[r->n_epochs - 1].partial;
    const uint32_t end = what_ended(run);
    r->stopped_by = shmt_end_name(r->stopped || end == SHMT_END_TOLERANCE ? end : SHMT_END_NOT);
    if (end == SHMT_END_TOLERANCE) r->stopped = 0; /* it has come to its end */
    struct shmt_error bad = {0};
    const int rc = hash_parameters(run, &bad);
    r->seconds = seconds_since(run->began_ns);
    if (bad.status == 0) (void)shmt_diverged_check(run, &bad);
    /* The losses may all have been finite: an infinite weight is on the right side of its examples, with a loss of 0. */
    return rc < 0 || bad.status == 0 ? rc : shmt_fail(&run->call->error, bad.status, "%s", bad.text);
}
