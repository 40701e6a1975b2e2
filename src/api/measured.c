/* Measuring what work takes, for virtual time: see measured.h.
 *
 * Short runs of one worker: one that keeps the events of its seat, which say how items differ and what adding up gradients and applying the
 * rule take; one that keeps none, and so takes as long as others do; and in the live modes one with smaller items, which says what an item
 * takes besides its examples. Pulls and pushes are a part of what examples take. And the machine: a cache line's way, and its bandwidth. */
#include "api/measured.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "api/store_priv.h"
#include "running/plan.h"
#include "running/running.h"
#include "segment/budget.h"
#include "topo/traffic.h"
#include "watching/report.h"
#include "watching/stage_times.h"

#define TRACED_S    0.5 /* of training, in each run */
#define PLAIN_S     1.0
#define LONGER      8 /* times as long where that is a few steps only */
#define FEW_STEPS   8
#define SMALLER     8    /* items, by that factor */
#define LEAST_SHARE 0.05 /* of the time of examples, that is theirs whatever the rest was measured to be */

/* What a run of one worker has come to. */
struct alone {
    double example_ns; /* all of its time, over its examples */
    double updates;    /* of an example, in modes that aggregate */
    uint32_t chunks;   /* of a batch; 0: there are none */
    uint64_t steps;    /* items, or batches */
    struct shmt_stage_times stages;
};

/* What a run is not measured with, because it says nothing of work, is for many workers, or leaves files. */
static const char *const NEVER[] = {
    "sim",        "fiber-stack",  "slow",     "race-window", "count-lost", "name",        "guests",           "metrics",
    "trace",      "record",       "replay",   "checkpoint",  "resume",     "keep",        "checkpoint-every", "valid",
    "log-every",  "target-loss",  "patience", "steps",       "tolerance",  "cache-pulls", "on-stall",         "on-death",
    "time-limit", "max-respawns", "in-flight"};
static const char *const AXES[] = {"mode", "write", "staleness", "quorum", "late", "replicas", "merge-every", "merge"};

static int reset(struct shmt_config *config, const char *const *name, size_t n, struct shmt_error *e) {
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) rc = shmt_config_reset(config, name[i], e);
    return rc;
}

static int set(struct shmt_config *config, const char *name, const char *value, struct shmt_error *e) {
    return shmt_config_set(config, name, name, value, e);
}

/* What the run that is asked for would be, and how one worker's is to be like it. */
struct wish {
    bool rounds, live;
    uint64_t item; /* examples of an item, or of a worker's part of a round */
    bool keeps_events;
    double seconds;
};

static int set_count(struct shmt_config *config, const char *name, uint64_t count, struct shmt_error *e) {
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)count);
    return set(config, name, text, e);
}

/* One worker has no quorum, and its updates no gradients of others. With a bound for staleness they go the same way as with several. */
static int configure_rounds(struct shmt_config *config, uint64_t part, struct shmt_error *e) {
    int rc = reset(config, AXES, sizeof AXES / sizeof *AXES, e);
    if (rc == 0) rc = set(config, "write", "aggregate", e);
    if (rc == 0) rc = set(config, "staleness", "1", e);
    return rc == 0 ? set_count(config, "batch", part, e) : rc;
}

/* A quorum of all is none, but one worker cannot have it by that name. */
static int configure_batches(struct shmt_config *config, struct shmt_error *e) {
    const int rc = reset(config, AXES, sizeof AXES / sizeof *AXES, e);
    return rc == 0 ? set(config, "mode", "sync", e) : rc;
}

/* One worker, a process as by default, until its time is over. */
static int configure(struct shmt_config *config, const struct wish *wish, struct shmt_error *e) {
    int rc = reset(config, NEVER, sizeof NEVER / sizeof *NEVER, e);
    if (rc == 0 && wish->rounds) rc = configure_rounds(config, wish->item, e);
    if (rc == 0 && !wish->rounds && !wish->live) rc = configure_batches(config, e);
    if (rc == 0 && wish->live) rc = set_count(config, "item", wish->item, e);
    if (rc == 0) rc = set(config, "workers", "1", e);
    if (rc == 0) rc = set(config, "spawn", "processes", e);
    return rc == 0 ? set(config, "epochs", "10000", e) : rc;
}

static int read_results(const struct shmt_run *run, struct alone *out) {
    const struct shmtrain_report *r = &run->report;
    int rc = 0;
    *out = (struct alone){0};
    if (r->examples == 0 || !(r->train_seconds > 0))
        return shmt_refuse(&run->call->error,
                           "--sim measured: not one work item was done in %.3g s: name costs, as compute=10s",
                           run->train_limit);
    out->example_ns = r->train_seconds * 1e9 / (double)r->examples;
    if (!shmt_policy_is_live(&run->spec.policy)) out->updates = (double)r->updates / (double)r->examples;
    if (shmt_policy_is_batched(&run->spec.policy)) out->chunks = run->spec.n_chunks;
    out->steps = out->updates > 0 ? r->updates : r->examples / shmt_max_u64(1, run->spec.item);
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
    if (shmt_config_copy(&store->config, &own->config, &e) == 0) {
        own->loading.config = own->scoring.config = own->run.config = &own->config;
        return own;
    }
    shmt_handle_free_copy(own);
    return NULL;
}

static int train_alone(const struct shmtrain_store *store, const char *data, const struct wish *wish, struct alone *out,
                       struct shmt_error *e) {
    struct shmtrain_store *own = make_beside(store);
    if (!own) return shmt_no_memory(e, "to measure a run");
    own->call.plans_only = false;
    own->run.keeps_events = wish->keeps_events;
    own->run.train_limit = wish->seconds;
    int rc = configure(&own->config, wish, &own->call.error);
    if (rc == 0) rc = shmt_run_training(&own->run, data);
    const bool stopped = rc == 0 && strcmp(own->run.report.stopped_by, "request") == 0;
    if (rc == 0 && !stopped) rc = read_results(&own->run, out);
    *e = own->call.error;
    shmt_handle_free_copy(own);
    return stopped ? shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped before training began") : rc;
}

/* What the run that is asked for would be: planned only, without a word. */
static int find_wish(const struct shmtrain_store *store, const char *data, struct wish *out, struct shmt_error *e) {
    struct shmtrain_store *own = make_beside(store);
    struct shmt_plan_kept *plan = NULL;
    if (!own) return shmt_no_memory(e, "to measure a run");
    const int rc = shmt_plan_make(&own->run, data, &plan);
    const struct shmt_spec *spec = &own->run.spec;
    *out = (struct wish){
        .rounds = shmt_policy_has_rounds(&spec->policy), .live = shmt_policy_is_live(&spec->policy), .item = spec->item};
    *e = own->call.error;
    shmt_plan_free(plan);
    shmt_handle_free_copy(own);
    return rc;
}

/* With its events, without, and with smaller items. Where half a second is a few steps, all get more time. */
struct runs {
    struct alone traced, plain, smaller; /* smaller.steps is 0: there are no smaller items */
    uint64_t item, smaller_item;
};

static int train_all(const struct shmtrain_store *store, const char *data, struct runs *out, struct shmt_error *e) {
    struct wish wish = {0};
    double longer = 1;
    *out = (struct runs){0};
    int rc = find_wish(store, data, &wish, e);
    wish.keeps_events = true;
    wish.seconds = TRACED_S;
    if (rc == 0) rc = train_alone(store, data, &wish, &out->traced, e);
    if (rc == SHMTRAIN_E_USAGE || (rc == 0 && out->traced.steps < FEW_STEPS)) {
        longer = LONGER;
        wish.seconds = TRACED_S * longer;
        rc = train_alone(store, data, &wish, &out->traced, e);
    }
    wish.keeps_events = false;
    wish.seconds = PLAIN_S * longer;
    out->item = wish.item;
    if (rc == 0) rc = train_alone(store, data, &wish, &out->plain, e);
    wish.item = out->smaller_item = shmt_max_u64(1, wish.item / SMALLER);
    if (rc == 0 && wish.live && out->smaller_item < out->item) rc = train_alone(store, data, &wish, &out->smaller, e);
    return rc;
}

/* What an item takes besides its examples is spread over more of them in larger items. */
static double item_of(const struct runs *runs) {
    if (runs->smaller.steps == 0) return 0;
    const double apart = 1 / (double)runs->smaller_item - 1 / (double)runs->item;
    const double most = runs->plain.example_ns * (double)runs->item * (1 - LEAST_SHARE);
    return fmin(fmax(0, (runs->smaller.example_ns - runs->plain.example_ns) / apart), most);
}

/* What of the time of one worker is whose. A batch of n chunks adds n - 1 gradients to another one; one worker's rounds add none. */
static void share_out(const struct runs *runs, struct shmt_sim_found *out) {
    const struct shmt_stage_times *stages = &runs->traced.stages;
    const double all_ns = runs->plain.example_ns, added_ns = runs->plain.chunks > 1 ? stages->aggregate_ns : 0;
    const double apart_ns = runs->plain.updates * (added_ns + stages->update_ns);
    out->aggregate_ns = runs->plain.chunks > 1 ? added_ns / (runs->plain.chunks - 1) : 0;
    out->update_ns = stages->update_ns;
    out->item_ns = item_of(runs);
    /* A step of n chunks varies as the sum of n draws. */
    out->sigma = stages->sigma * sqrt((double)shmt_max_u64(1, runs->plain.chunks));
    out->hiccup_every_ns = stages->hiccup_every_ns;
    out->hiccup_ns = stages->hiccup_ns;
    const double hiccups = stages->hiccup_every_ns > 0 ? stages->hiccup_ns / stages->hiccup_every_ns : 0;
    const double rest_ns = (all_ns - apart_ns) / (1 + hiccups) - out->item_ns / (double)shmt_max_u64(1, runs->item);
    out->example_ns =
        fmax(rest_ns, LEAST_SHARE * all_ns) * exp(-out->sigma * out->sigma / 2); /* of a lognormal cost with that mean */
}

static int find_traffic(const struct shmtrain_store *store, struct shmt_sim_found *out, struct shmt_error *e) {
    struct shmt_topo *topo = NULL;
    struct shmt_traffic traffic = {0};
    int rc = shmt_budget_need(SHMT_TRAFFIC_BYTES, "measuring memory", "blocks that are read", "free some, or name costs", e);
    if (rc == 0) rc = shmt_topo_open(&topo, e);
    if (rc < 0) return rc;
    rc = shmt_traffic_measure(topo, &traffic, e);
    if (rc == 0 && traffic.line_ns <= 0)
        shmt_log(
            &store->call.log,
            "what a cache line takes to another core cannot be measured with one core, or busy ones: name it, as line=80ns");
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
    struct runs runs;
    struct shmt_sim_found found = {0};
    char text[SHMT_SIM_TEXT];
    run->report = SHMT_NO_REPORT; /* of the run before */
    int rc = train_all(store, data, &runs, e);
    if (rc == 0) rc = find_traffic(store, &found, e);
    if (rc < 0) return rc;
    share_out(&runs, &found);
    if (!shmt_sim_complete(store->config.sim, &found, text, sizeof text))
        return shmt_refuse(e, "--sim: with what is measured it is too long: name fewer costs");
    rc = shmt_sim_parse("--sim", text, &store->config.parsed.sim, e);
    store->config.parsed.sim.measured = true; /* the next run measures anew */
    if (rc < 0) return rc;
    memcpy(run->sim, text, sizeof text);
    shmt_log(&store->call.log, "measured: --sim %s", text);
    return 0;
}

/* Data is read for each of the runs. */
static int check_data(const char *data, struct shmt_error *e) {
    struct stat file;
    const bool is_pipe =
        strcmp(data, "-") == 0 || (stat(data, &file) == 0 && (S_ISFIFO(file.st_mode) || S_ISSOCK(file.st_mode)));
    if (!is_pipe) return 0;
    return shmt_refuse(
        e, "--sim measured: the data is read for several runs, and %s can be read once only: save it to a file first",
        strcmp(data, "-") == 0 ? "standard input" : data);
}

int shmt_measured_train(struct shmtrain_store *store, const char *data) {
    const struct shmt_config *c = &store->config;
    const bool measures = c->parsed.sim.measured && c->parsed.spawn.kind == &SHMT_TEAM_FIBERS && data && data[0] != '\0';
    int rc = measures ? check_data(data, &store->call.error) : 0;
    if (rc == 0 && measures && !isnan(c->tolerance))
        rc = shmt_refuse(&store->call.error,
                         "--sim measured: a fit with --tolerance takes no steps that could be measured: leave one of them out");
    if (rc == 0 && measures) rc = measure(store, data);
    if (rc < 0) return rc;
    if (!measures) snprintf(store->run.sim, sizeof store->run.sim, "%s", c->sim);
    return shmt_run_training(&store->run, data);
}
