/* The report of a run: begun from its configuration, grown from the board while it goes on, completed at its end. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "api/diverged.h"
#include "api/fit.h"
#include "api/penalty.h"
#include "api/places.h"
#include "api/store_priv.h"
#include "base/clock.h"
#include "base/cpu.h"
#include "consistency/mode.h"
#include "math/finite.h"
#include "ps/replicas.h"

const struct shmtrain_report SHMT_NO_REPORT = {.size = sizeof(struct shmtrain_report),
                                               .tolerance = NAN,
                                               .choice_loss = NAN,
                                               .mode = "",
                                               .write = "",
                                               .backend = "",
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
                                               .numa = "",
                                               .cpu = "",
                                               .unwritten = "",
                                               .blas = ""};

static double seconds_since(uint64_t from_ns) { return (double)(shmt_now_ns() - from_ns) * 1e-9; }

void shmt_report_describe(struct shmtrain_store *store, uint32_t n_threads) {
    const struct shmt_spec *spec = &store->spec;
    struct shmtrain_report *r = &store->report;
    const struct shmt_policy *policy = &spec->policy;
    shmt_mode_name(policy, store->mode_taken, store->mode, sizeof store->mode);
    r->mode = store->mode;
    r->mode_reason = store->mode_reason ? store->mode_reason : "";
    r->copies_reason = store->copies_reason;
    r->write = shmt_write_name(policy->write);
    r->late = policy->quorum != SHMT_QUORUM_ALL ? shmt_late_name(policy->late) : "";
    r->replicas = shmt_replicas_name(policy->replicas);
    r->merge = shmt_policy_has_replicas(policy) ? shmt_merge_name(policy->merge) : "";
    r->merge_every = policy->merge_every;
    r->merge_all_every = shmt_replicas_merge_all_every(spec);
    r->n_replicas = (uint32_t)shmt_max_u64(1, shmt_replicas_count(spec));
    r->hot_rows = spec->hot_floats; /* of a table of width 1 */
    r->race_seconds = 1e-9 * (double)spec->race_ns;
    r->race_share = spec->race_ns > 0 ? spec->race_share : 0;
    r->slow = store->job.slow ? store->slow_text : "";
    r->backend = store->ops->name;
    r->model = store->job.model ? store->job.model->name : "";
    r->item_updates = store->job.model && store->job.model->dense;
    r->with_accuracy = store->job.model ? store->job.model->task != SHMTRAIN_REGRESSION : store->job.classifies;
    r->with_auc = store->job.model && store->job.model->task == SHMTRAIN_BINARY;
    r->columns = spec->row_places ? "by frequency" : "given";
    r->optimizer = shmt_rule_name(spec->rule.kind);
    r->schedule = shmt_rate_name(&spec->rate);
    r->staleness = policy->staleness;
    r->workers = spec->n_workers;
    r->quorum = shmt_policy_needed(policy->quorum, spec->n_workers);
    r->threads = n_threads;
    r->batch = spec->batch;
    r->item = spec->item;
    r->seed = spec->order.seed;
    r->rate = (double)spec->rate.base;
    r->l1 = (double)spec->rule.l1;
    r->l2 = (double)spec->rule.l2;
    r->tolerance = r->choice_loss = NAN;
    r->scaled = store->standard.scale != NULL;
    if (store->fits) shmt_fit_describe(store, r);
    shmt_penalty_describe(store, r);
    r->guests = spec->n_guests / shmt_seats_of_worker(spec);
    r->numa_nodes = spec->placement.policy == SHMT_PLACE_OFF ? 1 : spec->placement.n_nodes;
    r->numa = shmt_machine_numa_name(&spec->placement);
    if (r->page_bytes == 0) r->page_bytes = shmt_pages_bytes(SHMT_PAGES_ORDINARY); /* a backend without pages of its own */
    r->cpu = shmt_cpu_name((enum shmt_cpu)spec->cpu);
    r->blas = store->job.train && store->job.train->dense ? store->blas : ""; /* sparse rows go by nonzeros */
    r->lost_updates = r->lost_lowest = r->lost_highest = NAN;
    r->first_step_seconds = NAN;
}

void shmt_report_begin(struct shmtrain_store *store, const struct shmt_crew *crew) {
    struct shmtrain_report *r = &store->report;
    shmt_report_describe(store, crew->n_threads);
    r->cores = shmt_topo_cores(crew->topo);
    r->load_seconds = seconds_since(store->began_ns);
    shmt_metrics_begin(store);
    if (store->listener.begin) store->listener.begin(store->listener.arg, r);
}

static struct shmt_board *board_of(struct shmtrain_store *store) { return store->ops->board(store->job.store); }

bool shmt_report_take_epoch(struct shmtrain_store *store) {
    struct shmtrain_report *r = &store->report;
    struct shmt_board *board = board_of(store);
    /* acquire: pairs with the chief's release; the records are whole. A named store may have been damaged: no more than there
     * is room for. */
    const uint64_t done = shmt_min_u64(load_acquire(&board->epochs_done), store->spec.epochs);
    if (r->n_epochs >= done) return false;
    struct shmtrain_epoch *epoch = &store->epochs[r->n_epochs];
    *epoch = shmt_board_epochs(board, &store->job.board)[r->n_epochs++];
    r->examples += epoch->examples;
    r->train_seconds += epoch->seconds;
    shmt_fit_tell(store, r);
    return true;
}

void shmt_report_progress(struct shmtrain_store *store) {
    const struct shmtrain_report *r = &store->report;
    shmt_fit_tell(store, &store->report);
    while (shmt_report_take_epoch(store)) {
        const struct shmtrain_epoch *epoch = &r->epoch[r->n_epochs - 1];
        shmt_metrics_epoch(store, epoch);
        if (store->listener.epoch) store->listener.epoch(store->listener.arg, r, epoch);
    }
}

/* What the workers' counters say; they have ended. */
static void add_counters(struct shmtrain_store *store) {
    struct shmtrain_report *r = &store->report;
    shmt_costs_take(store, shmt_now_ns());
    /* relaxed: the workers have been waited for */
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        const struct shmt_counters *c = store->ops->counters(store->job.store, seat);
        r->redone += load_relaxed(&c->redone);
    }
    r->respawns = store->deaths.respawns;
    for (uint32_t i = 0; i < r->n_epochs; i++)
        if (!r->epoch[i].partial)
            r->skipped += store->spec.n_examples - shmt_min_u64(store->spec.n_examples, r->epoch[i].examples);
}

void shmt_report_lost(struct shmtrain_store *store) {
    struct shmtrain_report *r = &store->report;
    const struct shmt_board *board = board_of(store);
    uint64_t touched = 0, counted;
    if (!store->ops->lost(store->job.store, true, &counted)) return;
    /* relaxed: the workers have been waited for */
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        touched += load_relaxed(&store->ops->counters(store->job.store, seat)->touched);
    if (touched > 0) r->lost_updates = shmt_board_lost_share(counted, touched);
    if (board->lost_epochs < 2) return;
    r->lost_lowest = board->lost_lowest;
    r->lost_highest = board->lost_highest;
}

/* The hash of all parameters: tables in order, rows in order, as little-endian f32; and on the way, what is not a finite number,
 * in *bad, which stays clear where all are. */
static int hash_parameters(struct shmtrain_store *store, struct shmt_error *bad) {
    enum { AT_ONCE = 1 << 16 };
    XXH64_state_t *state = XXH64_createState();
    float *rows = malloc(AT_ONCE * sizeof *rows);
    if (!state || !rows) {
        XXH64_freeState(state);
        free(rows);
        return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory to hash the parameters");
    }
    XXH64_reset(state, 0);
    store->report.parameter_bytes = 0;
    for (uint32_t t = 0; t < store->n_tables; t++) {
        const struct shmt_table_spec *table = &store->table[t].table;
        const uint64_t step = shmt_max_u64(1, AT_ONCE / table->width);
        float *wide = table->width > AT_ONCE ? realloc(rows, table->width * sizeof *rows) : rows;
        if (wide) rows = wide;
        for (uint64_t row = 0; wide && row < table->rows; row += step) {
            const uint64_t n = shmt_min_u64(step, table->rows - row);
            (void)shmt_places_read(store, store->job.store, (int)t, row, n, rows, &store->error);
            XXH64_update(state, rows, n * table->width * sizeof *rows);
            const struct shmt_bad_rows at = {.table = table,
                                             .row = rows,
                                             .first = row,
                                             .when = "at the end of the run",
                                             .rate = store->fits ? 0 : store->spec.rate.base,
                                             .pushed = !store->job.model || store->job.is_offered};
            if (bad->status == 0 && !shmt_all_finite(rows, n * table->width)) shmt_numbers_refuse(&at, bad);
        }
        store->report.parameter_bytes += shmt_table_floats(table) * sizeof(float);
    }
    store->report.parameters_xxh64 = XXH64_digest(state);
    XXH64_freeState(state);
    free(rows);
    return 0;
}

void shmt_report_unwritten(struct shmtrain_store *store, const char *format, ...) {
    struct shmt_error e = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(e.text, sizeof e.text, format, args);
    va_end(args);
    shmt_log(&store->log, "%s", e.text);
    if (store->report.unwritten[0] != '\0') return; /* whoever has the report may be reading it */
    memcpy(store->unwritten, e.text, sizeof store->unwritten);
    store->report.unwritten = store->unwritten;
}

/* Of a run that was stopped. What the chief has decided comes first: it is the same for every run of the same figures. */
static uint32_t what_ended(struct shmtrain_store *store) {
    const uint32_t goal = load_relaxed(&board_of(store)->ended_by); /* the workers have been waited for */
    if (goal != SHMT_END_NOT) return goal;
    if (shmt_stop_asked(store)) return SHMT_END_REQUEST;
    return store->timed_out ? SHMT_END_TIME_LIMIT : SHMT_END_STEPS;
}

int shmt_report_finish(struct shmtrain_store *store) {
    struct shmtrain_report *r = &store->report;
    shmt_report_progress(store);
    add_counters(store);
    const uint64_t first_ns = load_relaxed(&board_of(store)->first_step_ns);
    if (first_ns) r->first_step_seconds = (double)(first_ns - store->began_ns) * 1e-9;
    r->examples_per_second = r->train_seconds > 0 ? (double)r->examples / r->train_seconds : 0;
    r->stopped = r->n_epochs < store->spec.epochs || r->epoch[r->n_epochs - 1].partial;
    const uint32_t end = what_ended(store);
    r->stopped_by = shmt_end_name(r->stopped || end == SHMT_END_TOLERANCE ? end : SHMT_END_NOT);
    if (end == SHMT_END_TOLERANCE) r->stopped = 0; /* it has come to its end */
    struct shmt_error bad = {0};
    const int rc = hash_parameters(store, &bad);
    r->seconds = seconds_since(store->began_ns);
    if (bad.status == 0) (void)shmt_diverged_check(store, &bad);
    /* The losses may all have been finite: an infinite weight is on the right side of its examples, with a loss of 0. */
    return rc < 0 || bad.status == 0 ? rc : shmt_fail(&store->error, bad.status, "%s", bad.text);
}
