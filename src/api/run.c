/* Runs: from a configured store to ended workers. train.c prepares the runs of models on data. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/effects.h"
#include "api/manifest.h"
#include "api/store_priv.h"
#include "api/workers.h"
#include "base/clock.h"
#include "consistency/chunks.h"
#include "segment/budget.h"

#define SPIN_NS 200000 /* with a processor for each worker: a futex wake costs a quarter of this */

/* ---- the spec ---- */

static int policy_of_config(struct shmtrain_store *store, struct shmt_policy *out) {
    const struct shmt_config *c = &store->config;
    int rc = shmt_policy_preset(c->mode, out, &store->error);
    if (rc == 0 && c->write[0]) rc = shmt_write_parse(c->write, &out->write, &store->error);
    if (rc == 0 && c->staleness[0]) out->staleness = strcmp(c->staleness, "inf") == 0 ? SHMT_STALENESS_INF : 0;
    return rc == 0 ? shmt_policy_check(out, &store->error) : rc;
}

#define ITEM 1024 /* examples of a work item, unless the options say so */

/* Small data is dealt in smaller items, so that every worker gets some of it. */
static uint32_t item_of_config(const struct shmt_config *c, uint64_t n_examples, uint32_t n_seats) {
    const uint64_t fair = shmt_ceil_div(n_examples, 4 * (uint64_t)n_seats);
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(c->item ? c->item : ITEM, fair));
}

/* The tree over the chunks is complete: their number is the next power of two, but never above the batch. */
static uint32_t chunks_of_config(const struct shmt_config *c) {
    uint32_t chunks = 1;
    if (c->chunks == 0) return shmt_chunks_of_batch((uint32_t)c->batch);
    while (chunks < c->chunks && 2 * (uint64_t)chunks <= c->batch) chunks *= 2;
    return chunks;
}

static const struct {
    const char *name;
    int kind;
} SCHEDULES[] = {
    {"constant", SHMT_RATE_CONSTANT}, {"inverse", SHMT_RATE_INVERSE}, {"step", SHMT_RATE_STEP}, {"cosine", SHMT_RATE_COSINE}};

/* Rules that scale each parameter's rate by themselves want a constant one; ftrl knows no other. */
static int schedule_of_config(const struct shmt_config *c, enum shmt_rule_kind rule) {
    for (size_t i = 0; i < sizeof SCHEDULES / sizeof *SCHEDULES; i++)
        if (strcmp(SCHEDULES[i].name, c->schedule) == 0) return SCHEDULES[i].kind;
    return rule == SHMT_RULE_SGD || rule == SHMT_RULE_MOMENTUM ? SHMT_RATE_INVERSE : SHMT_RATE_CONSTANT;
}

bool shmt_rate_is_named(const struct shmt_config *c) {
    return strcmp(c->schedule, "auto") != 0 || !isnan(c->power) || !isnan(c->decay_every);
}

void shmt_rate_settle(const struct shmt_config *c, bool noisy, struct shmt_rate *rate) {
    const double tenth = fmax(1, (double)c->epochs / 10);
    rate->power = !isnan(c->power) ? (float)c->power : noisy ? 2 : 0.5f;
    rate->every = rate->kind != SHMT_RATE_INVERSE ? 3 : rate->power > 1 ? tenth : 1;
    if (!isnan(c->decay_every)) rate->every = c->decay_every;
}

/* An automatic rate is 1 here; models that know their data set a better one. */
static struct shmt_rate rate_of_config(const struct shmt_config *c, enum shmt_rule_kind rule, bool live) {
    struct shmt_rate rate = {.base = isnan(c->rate) ? 1 : (float)c->rate,
                             .kind = schedule_of_config(c, rule),
                             .factor = c->decay_by,
                             .warmup = c->warmup,
                             .epochs = (double)c->epochs};
    shmt_rate_settle(c, live, &rate);
    return rate;
}

static int rule_of_config(struct shmtrain_store *store, struct shmt_spec *spec) {
    const struct shmt_config *c = &store->config;
    enum shmt_rule_kind kind;
    const int rc = shmt_rule_parse(c->optimizer, &kind, &store->error);
    if (rc < 0) return rc;
    spec->rule = (struct shmt_rule){.kind = kind,
                                    .l1 = (float)c->l1,
                                    .l2 = (float)c->l2,
                                    .momentum = (float)c->momentum,
                                    .beta2 = (float)c->beta2,
                                    .epsilon = (float)c->epsilon,
                                    .beta = (float)c->beta};
    spec->rate = rate_of_config(c, kind, shmt_policy_is_live(&spec->policy));
    if (kind == SHMT_RULE_FTRL && (spec->rate.kind != SHMT_RATE_CONSTANT || c->warmup > 0))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "ftrl works out each parameter's rate from its gradients: take --schedule constant without warm-up");
    return shmt_rule_check(&spec->rule, spec->policy.write, &store->error);
}

int shmt_spec_of_config(struct shmtrain_store *store, const struct shmt_crew *crew, uint64_t n_examples,
                        struct shmt_spec *out) {
    const struct shmt_config *c = &store->config;
    *out = (struct shmt_spec){.n_seats = crew->n_seats + crew->n_guests,
                              .n_guests = crew->n_guests,
                              .n_workers = crew->n_workers,
                              .n_examples = n_examples,
                              .epochs = (uint32_t)c->epochs,
                              .max_steps = c->steps ? c->steps : SHMT_NO_LIMIT,
                              .batch = (uint32_t)c->batch,
                              .n_chunks = chunks_of_config(c),
                              .item = item_of_config(c, n_examples, crew->n_seats),
                              .order = {.seed = c->seed, .n_examples = n_examples, .shuffle = c->shuffle != 0},
                              .count_lost = c->count_lost != 0,
                              .head_bytes = c->name[0] ? sizeof(struct shmt_head) : 0};
    out->spin_ns = SPIN_NS;
    out->spin_seats = (uint32_t)((uint64_t)shmt_topo_cpus(crew->topo) * crew->n_seats / (crew->n_workers * crew->n_threads));
    for (uint32_t t = 0; t < store->n_tables; t++) {
        out->table[t] = store->table[t].table;
        out->l2_rows[t] = store->table[t].l2_rows;
    }
    out->n_tables = store->n_tables;
    const int rc = policy_of_config(store, &out->policy);
    return rc < 0 ? rc : rule_of_config(store, out);
}

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
    return shmt_budget_check(&budget, bytes, "training", parts, "free some, or take fewer features, workers or examples",
                             &store->error);
}

/* Work that cannot be shared out among all is done all the same; it deserves a word. */
static void note_idle_workers(const struct shmtrain_store *store) {
    const struct shmt_spec *spec = &store->spec;
    const uint32_t n_seats = spec->n_seats - spec->n_guests;
    if (shmt_policy_is_live(&spec->policy) || n_seats <= spec->n_chunks) return;
    shmt_log(&store->log, "a batch of %u has work for %u of %u workers: for the others take more --chunks or a larger --batch",
             spec->batch, spec->n_chunks, n_seats);
}

/* ---- a run ---- */

static int make_backend(struct shmtrain_store *store, const struct shmt_crew *crew, const float *l2_shares) {
    struct shmt_home home = {.topo = crew->topo, .log = &store->log, .page_bytes_out = &store->report.page_bytes};
    struct shmt_store *made = NULL;
    if (shmt_store_has_state_for(store, &store->spec)) store->spec.steps_before = store->kept.steps;
    int rc = shmt_lease_home(store, &home);
    if (rc == 0) rc = store->ops->create(&store->spec, &home, &made, &store->error);
    if (rc < 0 && home.has_fd) close(home.fd);
    if (rc == 0) rc = shmt_store_give_parameters(store, made);
    if (rc < 0) return rc;
    if (l2_shares && store->spec.l2_shares)
        memcpy(store->ops->l2_share(made, 0), l2_shares, store->table[0].table.rows * sizeof *l2_shares);
    store->job.ops = store->ops;
    store->job.store = made;
    store->job.spec = &store->spec;
    store->has_run = true;
    store->trained = (struct shmt_trained){0};
    return rc;
}

static void rouse(const struct shmt_workers *workers) { workers->store->ops->rouse(workers->store->job.store); }

/* Deaths first: whoever listens to the epochs may take a long time. */
static int tick(struct shmtrain_store *store) {
    const int rc = shmt_lease_tick(store);
    shmt_report_progress(store);
    shmt_progress_tick(store);
    return rc;
}

static void stop(struct shmtrain_store *store) { store->ops->stop(store->job.store); }

int shmt_run_job(struct shmtrain_store *store, const struct shmt_crew *crew, const float *l2_shares) {
    int rc = make_backend(store, crew, l2_shares);
    if (rc < 0) return rc;
    note_idle_workers(store);
    shmt_note_effects(store);
    shmt_report_begin(store, crew);
    shmt_lease_publish(store, crew->n_threads);
    if (shmt_stop_asked(store)) store->ops->stop(store->job.store); /* then nobody begins at all */
    const struct shmt_workers workers = {
        .store = store, .crew = crew, .abort = store->ops->abort_word(store->job.store), .rouse = rouse};
    rc = shmt_workers_run(&workers, &(struct shmt_driver){.tick = tick, .stop = stop});
    if (rc < 0) return rc;
    return shmt_report_finish(store);
}

int shmt_run_begin(struct shmtrain_store *store) {
    store->began_ns = shmt_now_ns();
    const int rc = shmt_store_take_parameters(store);
    if (rc < 0) return rc;
    store->ops = shmt_backend_find(store->config.backend);
    free(store->epochs);
    store->epochs = calloc(store->config.epochs, sizeof *store->epochs);
    if (!store->epochs)
        return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "no memory for the figures of %llu epochs",
                         (unsigned long long)store->config.epochs);
    store->report = SHMT_NO_REPORT;
    store->blas[0] = '\0';
    store->report.epoch = store->epochs;
    return 0;
}

int shmt_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    struct shmt_crew crew = {0};
    if (!worker) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "a run needs a worker function");
    int rc = shmt_run_begin(store);
    if (rc == 0) rc = shmt_lease_begin(store);
    if (rc == 0) rc = shmt_crew_make(store, store->ops, SHMT_SEAT_OF_FUNCTION, &crew);
    if (rc == 0) rc = shmt_spec_of_config(store, &crew, store->n_examples, &store->spec);
    if (rc == 0) {
        shmt_rate_settle(&store->config, false, &store->spec.rate); /* how noisy its gradients are, the application knows */
        store->job = (struct shmt_job){.worker = worker, .worker_arg = arg};
        shmt_board_plan(store->spec.epochs, 0, 1, &store->job.board);
        store->spec.board_bytes = store->job.board.bytes;
        rc = shmt_machine_settle(&crew.machine, store->ops, &store->spec, &store->error);
        if (rc == 0) rc = shmt_check_memory(store, store->ops, &store->spec, 0);
    }
    if (rc == 0) rc = shmt_run_job(store, &crew, NULL);
    shmt_crew_free(&crew);
    return shmt_lease_end(store, rc);
}

int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_store_run(store, worker, arg);
    shmt_call_leave(store);
    return rc;
}
