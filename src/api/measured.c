/* Measuring what work takes, for virtual time: see measured.h.
 *
 * Two runs of one worker, of half a second or a second each: one that keeps the events of its seat, which say how items differ and what
 * adding up gradients and applying the rule take, and one that keeps none, and so takes as long as others do. Pulls and pushes are a part
 * of what examples take. And the machine: a cache line's way, and its bandwidth. */
#include "api/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/store_priv.h"
#include "running/running.h"
#include "topo/traffic.h"
#include "watching/stage_times.h"

#define LEAST_SHARE 0.05 /* of the time of examples, that is theirs whatever the rest was measured to be */

/* What a run of one worker has come to. */
struct alone {
    double example_ns; /* all of its time, over its examples */
    double updates;    /* of an example */
    double chunks;     /* of an update; 0: it has none */
    struct shmt_stage_times stages;
};

/* What a run is not measured with, because it says nothing of work, is for many workers, or leaves files. */
static const char *const NEVER[] = {
    "sim",          "fiber-stack", "slow",     "race-window", "count-lost", "name",        "guests",           "metrics",
    "trace",        "record",      "replay",   "checkpoint",  "resume",     "keep",        "checkpoint-every", "valid",
    "log-every",    "target-loss", "patience", "steps",       "tolerance",  "cache-pulls", "on-stall",         "on-death",
    "max-respawns", "in-flight"};
static const char *const AXES[] = {"mode", "write", "staleness", "quorum", "late", "replicas", "merge-every", "merge"};

static int reset(struct shmt_config *config, const char *const *name, size_t n, struct shmt_error *e) {
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) rc = shmt_config_reset(config, name[i], e);
    return rc;
}

static int set(struct shmt_config *config, const char *name, const char *value, struct shmt_error *e) {
    return shmt_config_set(config, name, name, value, e);
}

/* How the run is measured. */
struct wish {
    uint64_t part; /* in modes with rounds: examples of a worker's gradient; else 0 */
    bool keeps_events;
};

/* One worker has no quorum, and its updates no gradients of others. With a bound for staleness they go the same way as with several. */
static int configure_rounds(struct shmt_config *config, uint64_t part, struct shmt_error *e) {
    char batch[24];
    snprintf(batch, sizeof batch, "%llu", (unsigned long long)part);
    int rc = reset(config, AXES, sizeof AXES / sizeof *AXES, e);
    if (rc == 0) rc = set(config, "write", "aggregate", e);
    if (rc == 0) rc = set(config, "staleness", "1", e);
    return rc == 0 ? set(config, "batch", batch, e) : rc;
}

/* One worker, a process as by default, until its time is over. */
static int configure(struct shmt_config *config, const struct wish *wish, struct shmt_error *e) {
    int rc = reset(config, NEVER, sizeof NEVER / sizeof *NEVER, e);
    if (rc == 0 && wish->part > 0) rc = configure_rounds(config, wish->part, e);
    if (rc == 0) rc = set(config, "workers", "1", e);
    if (rc == 0) rc = set(config, "spawn", "processes", e);
    if (rc == 0) rc = set(config, "epochs", "10000", e);
    return rc == 0 ? set(config, "time-limit", wish->keeps_events ? "0.5" : "1", e) : rc;
}

static int read_results(const struct shmt_run *run, struct alone *out) {
    const struct shmtrain_report *r = &run->report;
    const bool aggregates = !shmt_policy_is_live(&run->spec.policy);
    int rc = 0;
    *out = (struct alone){0};
    if (r->examples == 0)
        return shmt_refuse(&run->call->error, "--sim measured: not one work item was done in time: name costs");
    out->example_ns = r->train_seconds * 1e9 / (double)r->examples;
    if (aggregates) out->updates = (double)r->updates / (double)r->examples;
    if (aggregates) out->chunks = run->spec.n_chunks;
    if (run->keeps_events) rc = shmt_stage_times_take(run, 0, &out->stages);
    return rc;
}

/* A handle for such a run: of the same models and arrays, and silent. Its stop is the store's. */
static struct shmtrain_store *make_beside(const struct shmtrain_store *store) {
    struct shmtrain_store *own = shmt_handle_copy(store);
    struct shmt_error e = {0};
    if (!own) return NULL;
    own->call.log = (struct shmt_log){0};
    own->run.hooks = (struct shmt_hooks){0};
    own->run.wants_snapshots = false;
    if (shmt_config_copy(&store->config, &own->config, &e) == 0) return own;
    shmt_handle_free_copy(own);
    return NULL;
}

static int train_alone(const struct shmtrain_store *store, const char *data, const struct wish *wish, struct alone *out,
                       struct shmt_error *e) {
    struct shmtrain_store *own = make_beside(store);
    if (!own) return shmt_no_memory(e, "to measure a run");
    own->loading.config = own->scoring.config = own->run.config = &own->config;
    own->call.plans_only = false;
    own->run.keeps_events = wish->keeps_events;
    int rc = configure(&own->config, wish, &own->call.error);
    if (rc == 0) rc = shmt_run_training(&own->run, data);
    const bool stopped = rc == 0 && strcmp(own->run.report.stopped_by, "request") == 0;
    if (rc == 0 && !stopped) rc = read_results(&own->run, out);
    *e = own->call.error;
    shmt_handle_free_copy(own);
    return stopped ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped before training began") : rc;
}

/* What the run that is asked for would be. */
static int find_part(const struct shmtrain_store *store, const char *data, uint64_t *part_out, struct shmt_error *e) {
    struct shmtrain_store *own = make_beside(store);
    struct shmt_plan_kept *plan = NULL;
    if (!own) return shmt_no_memory(e, "to measure a run");
    const int rc = shmt_plan_make(&own->run, data, &plan);
    *part_out = rc == 0 && shmt_policy_has_rounds(&own->run.spec.policy) ? own->run.spec.item : 0;
    *e = own->call.error;
    shmt_plan_free(plan);
    shmt_handle_free_copy(own);
    return rc;
}

static int train_both(const struct shmtrain_store *store, const char *data, struct alone *traced, struct alone *plain,
                      struct shmt_error *e) {
    struct wish wish = {.keeps_events = true};
    int rc = find_part(store, data, &wish.part, e);
    if (rc == 0) rc = train_alone(store, data, &wish, traced, e);
    wish.keeps_events = false;
    return rc == 0 ? train_alone(store, data, &wish, plain, e) : rc;
}

/* What of the time of one worker is whose. A batch of n chunks adds n - 1 gradients to another one. */
static void share_out(const struct alone *traced, const struct alone *plain, struct shmt_sim_found *out) {
    const double steps_of_item = fmax(1, traced->chunks), adds = fmax(1, traced->chunks - 1);
    out->aggregate_ns = traced->stages.aggregate_ns / adds;
    out->update_ns = traced->stages.update_ns;
    out->sigma = traced->stages.sigma * sqrt(steps_of_item); /* a step is the sum of its chunks */
    const double apart_ns = plain->updates * (traced->stages.aggregate_ns + traced->stages.update_ns);
    const double mean_ns = fmax(plain->example_ns - apart_ns, LEAST_SHARE * plain->example_ns);
    out->example_ns = mean_ns * exp(-out->sigma * out->sigma / 2); /* of a lognormal distribution with that mean */
}

static int find_traffic(struct shmt_sim_found *out, struct shmt_error *e) {
    struct shmt_topo *topo;
    struct shmt_traffic traffic;
    int rc = shmt_topo_open(&topo, e);
    if (rc < 0) return rc;
    rc = shmt_traffic_measure(topo, &traffic, e);
    shmt_topo_close(topo);
    out->line_ns = traffic.line_ns;
    out->next_ns = traffic.next_ns;
    out->bandwidth = traffic.bandwidth;
    return rc;
}

/* Into the run's text and the costs that its workers get. */
static int measure(struct shmtrain_store *store, const char *data) {
    struct shmt_run *run = &store->run;
    struct shmt_error *e = &store->call.error;
    struct alone traced, plain;
    struct shmt_sim_found found = {0};
    int rc = train_both(store, data, &traced, &plain, e);
    if (rc == 0) rc = find_traffic(&found, e);
    if (rc < 0) return rc;
    share_out(&traced, &plain, &found);
    if (!shmt_sim_complete(store->config.sim, &found, run->sim, sizeof run->sim))
        return shmt_refuse(e, "--sim: with what is measured it is too long: name fewer costs");
    rc = shmt_sim_parse("--sim", run->sim, &store->config.parsed.sim, e);
    store->config.parsed.sim.measured = true; /* the next run measures anew */
    if (rc == 0) shmt_log(&store->call.log, "measured: --sim %s", run->sim);
    return rc;
}

int shmt_measured_train(struct shmtrain_store *store, const char *data) {
    const struct shmt_config *c = &store->config;
    const bool measures = c->parsed.sim.measured && c->parsed.spawn.kind == &SHMT_TEAM_FIBERS && data && data[0] != '\0';
    snprintf(store->run.sim, sizeof store->run.sim, "%s", c->sim);
    const int rc = measures ? measure(store, data) : 0;
    return rc < 0 ? rc : shmt_run_training(&store->run, data);
}
