/* From options to the spec of a run: the policy, items and batches, the rate and the rule. Called by run.c and train.c,
 * which know the crew and the data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/copies.h"
#include "api/defaults.h"
#include "api/fit.h"
#include "api/manifest.h"
#include "api/penalty.h"
#include "api/race.h"
#include "api/slow.h"
#include "api/store_priv.h"
#include "base/cpu.h"
#include "consistency/chunks.h"
#include "consistency/mode.h"
#include "ps/replicas.h"
#include "store/merge.h"

#define SPIN_NS      200000 /* with a processor for each worker: a futex wake costs a quarter of this */
#define TRACE_EVENTS 65536  /* of each thread that trains, the last ones: 2 MiB */

/* Where nobody names a mode, but an axis that only some modes have: the mode that is known for it. NULL: none is called for. */
static const char *mode_of_axes(const struct shmt_config *c) {
    uint64_t staleness = 0;
    if (strcmp(c->merge, "damped") == 0) return "async";
    if (strcmp(c->replicas, "worker") == 0) return "local";
    if (strcmp(c->replicas, "node") == 0) return "node";
    if (c->quorum || strcmp(c->write, "aggregate") == 0) return "sync";
    if (c->staleness[0]) (void)shmt_config_staleness(c->staleness, &staleness); /* checked when it was set */
    return c->write[0] || staleness > 0 ? "async" : NULL;
}

/* Where nobody names anything, the cost of an example decides. A sparse example costs about as much as fetching a line from
 * another core: whoever waits for others at each batch waits longer than it works. A dense one costs hundreds of times as much
 * and its gradient is as large as the parameters: then one update of everybody's gradients is the cheapest. */
static const char *mode_of_config(struct shmtrain_store *store, const struct shmtrain_model *model) {
    const struct shmt_config *c = &store->config;
    store->mode_reason = "";
    if (store->fits) { /* whatever its ascents are (fit.c): all workers meet behind them */
        if (strcmp(c->mode, "auto") == 0) store->mode_reason = "a fit is a row of steps that all workers take together";
        return "sync";
    }
    if (strcmp(c->mode, "auto") != 0) return c->mode;
    const char *mode = mode_of_axes(c);
    if (mode) return mode;
    store->mode_reason = !model         ? "the default for worker functions"
                         : model->dense ? "gradients are dense and cost more than waiting for others"
                                        : "gradients are sparse and cost less than waiting for others";
    return model && model->dense ? "sync" : "async";
}

/* Replicas that no mode has brought are merged as in the mode that has such ones. */
static int replicas_of_config(const struct shmt_config *c, struct shmt_policy *p, struct shmt_error *e) {
    const bool had = shmt_policy_has_replicas(p);
    struct shmt_policy usual;
    int rc = shmt_replicas_parse(c->replicas, &p->replicas, e);
    if (rc < 0 || had) return rc;
    rc = shmt_mode_parse("mode", p->replicas == SHMT_REPLICAS_NODE ? "node" : "local", &usual, e);
    p->merge = usual.merge;
    p->merge_every = usual.merge_every;
    return rc;
}

/* Damped merges are small and often; whoever names them means copies. */
static void settle_damped(const struct shmt_config *c, struct shmt_policy *p) {
    if (p->merge != SHMT_MERGE_DAMPED) return;
    if (!c->replicas[0] && !shmt_policy_has_replicas(p)) p->replicas = SHMT_REPLICAS_WORKER;
    p->merge_every = 1;
}

/* The axes that somebody has named, in the place of the mode's. */
static int axes_of_config(struct shmtrain_store *store, struct shmt_policy *p) {
    const struct shmt_config *c = &store->config;
    struct shmt_error *e = &store->error;
    int rc = 0;
    if (c->write[0]) rc = shmt_write_parse(c->write, &p->write, e);
    if (c->staleness[0]) (void)shmt_config_staleness(c->staleness, &p->staleness); /* checked when it was set */
    if (c->quorum) p->quorum = (uint32_t)c->quorum;
    if (rc == 0 && c->late[0]) rc = shmt_late_parse(c->late, &p->late, e);
    if (rc == 0 && c->replicas[0]) rc = replicas_of_config(c, p, e);
    if (rc == 0 && c->merge[0]) rc = shmt_merge_parse(c->merge, &p->merge, e);
    settle_damped(c, p);
    if (c->merge_every) p->merge_every = (uint32_t)c->merge_every;
    return rc;
}

/* Where all workers are on one node, its copy would be the only one: there is nothing to merge, and nobody to wait for. */
static void settle_one_node(struct shmtrain_store *store, uint32_t n_nodes, struct shmt_policy *p) {
    if (p->replicas != SHMT_REPLICAS_NODE || n_nodes > 1) return;
    shmt_log(&store->log,
             "all workers are on one NUMA node: there is only one copy of the parameters, and nothing is merged (hogwild)");
    p->replicas = SHMT_REPLICAS_ONE;
    p->merge_every = 0;
    p->staleness = SHMT_STALENESS_INF; /* it was of merges */
}

/* Somebody has said what becomes of updates, or of copies: then `async` is what it says. */
static bool names_copies(const struct shmt_config *c) {
    return c->replicas[0] || c->merge[0] || c->write[0] || c->count_lost || c->race_window[0];
}

/* Its one table has a float for each feature, and perhaps a bias. */
static bool is_linear(const struct shmtrain_store *store, const struct shmtrain_model *model) {
    return model && model->columns_alike && !model->dense && store->n_tables == 1 && store->table[0].table.width == 1;
}

/* Floats of a page of which hot rows may be made; 0: pages are too large for that, here or as the options have it. */
static uint64_t hot_unit(const struct shmt_config *c) {
    const struct shmt_spec ordinary = {0};
    if (sysconf(_SC_PAGESIZE) != 4096 || strcmp(c->hugepages, "2M") == 0) return 0;
    return shmt_spec_hot_unit(&ordinary);
}

/* A mode that leaves it open (`async`), and nobody says more: one copy of the parameters, or one per worker, of all or of the
 * hot ones. */
static int choose_copies(struct shmtrain_store *store, const struct shmtrain_model *model, const struct shmt_crew *crew,
                         struct shmt_policy *p, uint32_t *hot_out) {
    const struct shmt_config *c = &store->config;
    struct shmt_rule rule = {0};
    enum shmt_rule_kind kind;
    const struct shmt_mode *mode = shmt_mode_find(store->mode_taken);
    store->copies_reason[0] = '\0';
    struct shmt_policy point = *p;
    point.merge_every = 0; /* if anything is merged, that is how often */
    if (!mode || !mode->may_copy || names_copies(c) || !shmt_policy_equal(&point, &mode->policy)) return 0;
    struct shmt_cache_share cache;
    const int rc = shmt_rule_parse(c->optimizer, &kind, &store->error);
    if (rc < 0) return rc;
    rule.kind = kind;
    shmt_machine_share_cache(&crew->machine, 2, &cache);
    const struct shmt_copies_wish wish = {.is_linear = is_linear(store, model),
                                          .by_frequency = store->rows_by_frequency,
                                          .has_guests = crew->n_guests > 0,
                                          .may_lose = strcmp(c->on_death, "continue") == 0,
                                          .n_workers = crew->n_workers,
                                          .n_threads = crew->n_threads,
                                          .planes = shmt_rule_planes(&rule, true),
                                          .floats = store->n_tables ? shmt_table_floats(&store->table[0].table) : 0,
                                          .cache_bytes = cache.bytes,
                                          .n_sharers = cache.n_workers,
                                          .unit = hot_unit(c)};
    if (!(store->ops->caps & SHMT_CAP_MANY)) return 0;
    if (!shmt_copies_choose(&wish, hot_out, store->copies_reason, sizeof store->copies_reason)) return 0;
    p->replicas = SHMT_REPLICAS_WORKER;
    p->merge = SHMT_MERGE_DAMPED;
    p->merge_every = c->merge_every ? (uint32_t)c->merge_every : 1;
    return 0;
}

/* A checkpoint goes on with any number of workers. So where fewer of them go on than an update waited for, it waits for all. */
static void fit_quorum(const struct shmtrain_store *store, uint32_t n_workers, struct shmt_policy *p) {
    const struct shmt_checkpoint *from = store->checkpoints.from ? shmt_checkpoint_of(store->checkpoints.from) : NULL;
    const bool has_number = p->quorum != SHMT_QUORUM_ALL && p->quorum != SHMT_QUORUM_MOST;
    if (!from || from->spec.policy.quorum == SHMT_QUORUM_ALL || !has_number || p->quorum <= n_workers) return;
    shmt_log(&store->log, "an update waited for %u workers, and waits for %u, as there are no more", p->quorum, n_workers);
    p->quorum = n_workers;
}

/* A quorum of all is none, and its batches are dealt as in `sync`. But the checkpoints of that are none to go on from with more
 * workers: so it stays a quorum where there are some, and is dealt in rounds. */
static void keep_quorum(struct shmtrain_store *store, uint32_t n_workers, bool asked_for, struct shmt_policy *p) {
    const bool is_all = asked_for && p->quorum == SHMT_QUORUM_ALL, keeps = is_all && store->config.checkpoint[0] != '\0';
    if (keeps) p->quorum = n_workers;
    store->quorum_of_all = is_all && !keeps;
}

static int policy_of_config(struct shmtrain_store *store, const struct shmtrain_model *model, const struct shmt_crew *crew,
                            struct shmt_policy *out, uint32_t *hot_out) {
    store->mode_taken = mode_of_config(store, model);
    int rc = shmt_mode_parse("mode", store->mode_taken, out, &store->error);
    if (rc == 0) rc = axes_of_config(store, out);
    if (rc == 0) rc = choose_copies(store, model, crew, out, hot_out);
    const bool quorum = out->quorum != SHMT_QUORUM_ALL;
    fit_quorum(store, crew->n_workers, out);
    if (rc == 0) rc = shmt_policy_settle(out, crew->n_workers, &store->error);
    if (rc == 0) settle_one_node(store, crew->machine.placement.n_nodes, out);
    if (rc == 0) rc = shmt_deaths_settle(store, crew, out, &store->deaths);
    keep_quorum(store, crew->n_workers, rc == 0 && quorum, out);
    return rc;
}

#define ITEM   1024 /* examples of a work item, unless the options say so */
#define OWN    64   /* of own worker functions, whose dense pushes are one update for each item */
#define SUMMED 128  /* examples between two merges that add up: each copy goes the same way alone, and the sum all of them */

/* Between two damped merges of the hottest lines: examples of all workers, and parts of an epoch. Of small data it is as large
 * a part as merging needs to be cheap, but there are always some in an epoch. */
#define DAMPED             8192
#define DAMPED_PARTS       64
#define DAMPED_PARTS_LEAST 8

#define LINE_FLOATS   16
#define LINE_NONZEROS 10.0 /* merging a line takes as long as training on so many nonzeros: 15 ns and 1.5 ns */
#define MERGING_SHARE 0.15 /* of the time of training, at most */
#define LINES_OFTEN   193  /* merged at a turn, on average, of those that are merged more often than the rest */
#define TURNS_OF_REST 16

/* Examples of an item that are worth the merge behind it; 0: not known. */
static uint64_t item_worth_merging(const struct shmtrain_store *store, const struct shmtrain_model *model, uint32_t hot) {
    if (!model || model->dense || store->n_tables == 0 || store->example_nonzeros <= 0) return 0;
    const uint64_t lines = (hot ? hot : shmt_table_floats(&store->table[0].table)) / LINE_FLOATS;
    const double merged = (double)shmt_min_u64(lines, LINES_OFTEN + lines / TURNS_OF_REST);
    return (uint64_t)ceil(fmin(merged * LINE_NONZEROS / (MERGING_SHARE * store->example_nonzeros), ITEM));
}

static uint64_t damped_item(const struct shmtrain_store *store, const struct shmt_policy *policy,
                            const struct shmtrain_model *model, uint32_t hot, uint64_t n_examples,
                            const struct shmt_crew *crew) {
    const uint32_t nodes = crew->machine.placement.n_nodes;
    const uint64_t copies = shmt_max_u64(1, policy->replicas == SHMT_REPLICAS_NODE ? nodes : crew->n_workers);
    const uint64_t each = n_examples / crew->n_seats;
    const uint64_t worth = shmt_min_u64(each / DAMPED_PARTS_LEAST, item_worth_merging(store, model, hot));
    return shmt_min_u64(shmt_min_u64(ITEM, DAMPED / copies), shmt_max_u64(each / DAMPED_PARTS, worth));
}

static uint64_t usual_item(const struct shmtrain_store *store, const struct shmt_policy *policy,
                           const struct shmtrain_model *model, uint32_t hot, uint64_t n_examples,
                           const struct shmt_crew *crew) {
    const bool sums = shmt_policy_has_replicas(policy) && policy->merge == SHMT_MERGE_SUM;
    if (shmt_policy_is_damped(policy)) return damped_item(store, policy, model, hot, n_examples, crew);
    return !model ? OWN : sums && !model->dense ? SUMMED / policy->merge_every : ITEM;
}

#define BATCH       64
#define LEAST_BATCH 8
#define UPDATES     128 /* of an epoch, at least, as far as batches may be so small */

static uint32_t batch_size(const struct shmtrain_store *store, const struct shmtrain_model *model, uint64_t n_examples) {
    if (store->config.batch > 0) return (uint32_t)store->config.batch;
    if (!model || store->is_generated) return BATCH;
    return (uint32_t)shmt_min_u64(BATCH, shmt_max_u64(LEAST_BATCH, n_examples / UPDATES));
}

/* In rounds everybody's item is an equal part of the batch. Else small data is dealt in smaller items, so that every worker
 * gets some of it. */
static uint32_t item_of_config(const struct shmtrain_store *store, const struct shmt_policy *policy,
                               const struct shmtrain_model *model, uint32_t hot, uint64_t n_examples,
                               const struct shmt_crew *crew) {
    const struct shmt_config *c = &store->config;
    if (shmt_policy_has_rounds(policy)) return (uint32_t)shmt_ceil_div(store->batch, crew->n_seats);
    const uint64_t fair = shmt_ceil_div(n_examples, 4 * (uint64_t)crew->n_seats);
    const uint64_t item = c->item ? c->item : usual_item(store, policy, model, hot, n_examples, crew);
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(item, fair));
}

/* So in rounds a batch is a whole number of items. */
static uint32_t batch_of_config(const struct shmt_policy *policy, uint32_t n_seats, uint32_t batch) {
    const uint64_t parts = shmt_policy_has_rounds(policy) ? n_seats : 1;
    return (uint32_t)(shmt_ceil_div(batch, parts) * parts);
}

/* The tree over the chunks is complete: their number is the next power of two, but never above the batch. */
static uint32_t chunks_of_config(const struct shmt_config *c, uint32_t batch) {
    uint32_t chunks = 1;
    if (c->chunks == 0) return shmt_chunks_of_batch(batch);
    while (chunks < c->chunks && 2 * (uint64_t)chunks <= batch) chunks *= 2;
    return chunks;
}

static const struct {
    const char *name;
    int kind;
} SCHEDULES[] = {
    {"constant", SHMT_RATE_CONSTANT}, {"inverse", SHMT_RATE_INVERSE}, {"step", SHMT_RATE_STEP}, {"cosine", SHMT_RATE_COSINE}};

bool shmt_rate_is_named(const struct shmt_config *c) {
    return strcmp(c->schedule, "auto") != 0 || !isnan(c->power) || !isnan(c->decay_every);
}

/* L1 and L2 say by themselves how much is learned of the noise in the data, and where all ends; dense models take few updates; and on
 * files a cosine does best, too, because it keeps the rate up and then comes to 0: its last updates are so small that it does not
 * matter where their noise, and in the live modes what overtakes what, happens to leave the parameters. Generated data has so much
 * noise that an inverse, which ends before it is learned, does better. */
static bool suits_cosine(const struct shmtrain_store *store, const struct shmtrain_model *model) {
    const struct shmt_config *c = &store->config;
    const bool regularised = c->l1 > 0 || c->l2 > 0 || !isnan(c->c);
    return regularised || (model && (!store->is_generated || model->dense));
}

/* ftrl knows no other rate than a constant one. The others scale each parameter's by what they have met; of data that comes again and
 * again it is to come to 0 all the same. */
static int schedule_of_config(const struct shmtrain_store *store, const struct shmtrain_model *model,
                              enum shmt_rule_kind rule) {
    const struct shmt_config *c = &store->config;
    for (size_t i = 0; i < sizeof SCHEDULES / sizeof *SCHEDULES; i++)
        if (strcmp(SCHEDULES[i].name, c->schedule) == 0) return SCHEDULES[i].kind;
    if (rule == SHMT_RULE_FTRL) return SHMT_RATE_CONSTANT;
    if (rule == SHMT_RULE_ADAGRAD) return model && !store->is_generated ? SHMT_RATE_COSINE : SHMT_RATE_CONSTANT;
    if (rule == SHMT_RULE_ADAM) return model ? SHMT_RATE_COSINE : SHMT_RATE_CONSTANT;
    return suits_cosine(store, model) && !shmt_rate_is_named(c) ? SHMT_RATE_COSINE : SHMT_RATE_INVERSE;
}

void shmt_rate_settle(const struct shmt_config *c, bool noisy, struct shmt_rate *rate) {
    const double tenth = fmax(1, rate->epochs / 10);
    rate->power = !isnan(c->power) ? (float)c->power : noisy ? 2 : 0.5f;
    rate->every = rate->kind != SHMT_RATE_INVERSE ? 3 : rate->power > 1 ? tenth : 1;
    if (!isnan(c->decay_every)) rate->every = c->decay_every;
}

/* Single examples are. The mean of several copies is as quiet as a batch, and comes no further than each of them: it needs
 * rates that last. */
static bool is_noisy(const struct shmt_spec *spec) {
    return shmt_policy_is_live(&spec->policy) && shmt_replicas_averaged(spec) == 1;
}

/* An automatic rate is 1 here; models that know their data set a better one. */
static struct shmt_rate rate_of_config(const struct shmtrain_store *store, const struct shmtrain_model *model,
                                       const struct shmt_spec *spec) {
    const struct shmt_config *c = &store->config;
    struct shmt_rate rate = {.base = isnan(c->rate) ? 1 : (float)c->rate,
                             .kind = schedule_of_config(store, model, spec->rule.kind),
                             .factor = c->decay_by,
                             .warmup = c->warmup,
                             .epochs = (double)spec->epochs};
    shmt_rate_settle(c, is_noisy(spec), &rate);
    return rate;
}

static int rule_of_config(struct shmtrain_store *store, const struct shmtrain_model *model, struct shmt_spec *spec) {
    const struct shmt_config *c = &store->config;
    enum shmt_rule_kind kind;
    const int rc = shmt_rule_parse(c->optimizer, &kind, &store->error);
    if (rc < 0) return rc;
    spec->rule = (struct shmt_rule){.kind = kind,
                                    .l1 = (float)c->l1,
                                    .l2 = (float)shmt_l2_of_config(c, model, spec->n_examples),
                                    .momentum = (float)c->momentum,
                                    .beta2 = (float)c->beta2,
                                    .epsilon = (float)c->epsilon,
                                    .beta = (float)c->beta};
    if (shmt_penalty_is_chosen(store, model, spec->n_examples)) spec->rule.l2 = SHMT_PENALTY_TO_COME;
    spec->rate = rate_of_config(store, model, spec);
    if (kind == SHMT_RULE_FTRL && (spec->rate.kind != SHMT_RATE_CONSTANT || c->warmup > 0))
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "ftrl computes each parameter's rate from its gradients: use --schedule constant without warm-up");
    const int refused = shmt_rule_check(&spec->rule, spec->policy.write, &store->error);
    return refused ? refused : shmt_merge_check(&spec->rule, &spec->policy, &store->error);
}

static int slow_of_config(struct shmtrain_store *store, uint32_t n_workers) {
    free(store->slow_text);
    store->slow_text = strdup(store->config.slow);
    if (!store->slow_text) return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for option slow");
    int rc = shmt_slow_parse("--slow", store->slow_text, &store->slow, &store->error); /* checked when it was set */
    if (rc == 0) rc = shmt_slow_check(&store->slow, store->slow_text, n_workers, &store->error);
    store->slow.seed = store->config.seed;
    return rc;
}

/* For checkpoints, where the options ask for them, and for the application's snapshots. */
static struct shmt_pauses pauses_of_config(const struct shmtrain_store *store) {
    struct shmt_every every = {.steps = 0};
    const bool writes = store->config.checkpoint[0] != '\0', may_pause = (store->ops->caps & SHMT_CAP_PAUSE) != 0;
    if (!writes || !may_pause) return (struct shmt_pauses){.allowed = may_pause && store->snapshots.wanted};
    (void)shmt_every_parse("--checkpoint-every", store->config.checkpoint_every, &every, NULL); /* checked when it was set */
    return (struct shmt_pauses){.steps = every.steps, .epochs = every.epochs, .allowed = 1};
}

int shmt_spec_of_config(struct shmtrain_store *store, const struct shmt_crew *crew, const struct shmtrain_model *model,
                        uint64_t n_examples, struct shmt_spec *out) {
    const struct shmt_config *c = &store->config;
    struct shmt_policy policy;
    enum shmt_cpu cpu = SHMT_CPU_PORTABLE;
    uint32_t hot = 0;
    uint64_t race_ns = 0;
    double race_share = 1;
    int rc = slow_of_config(store, crew->n_workers);
    if (rc == 0) rc = shmt_race_parse("--race-window", c->race_window, &race_ns, &race_share, &store->error);
    if (rc == 0) rc = shmt_cpu_parse("--cpu", c->cpu, &cpu, &store->error); /* checked when it was set */
    if (rc == 0) rc = policy_of_config(store, model, crew, &policy, &hot);
    if (rc != 0) return rc;
    store->batch = batch_size(store, model, n_examples);
    *out = (struct shmt_spec){.n_seats = crew->n_seats + crew->n_guests,
                              .n_guests = crew->n_guests,
                              .n_workers = crew->n_workers,
                              .n_examples = n_examples,
                              .epochs = (uint32_t)shmt_defaults_epochs(store, model, n_examples),
                              .max_steps = c->steps ? c->steps : SHMT_NO_LIMIT,
                              .batch = batch_of_config(&policy, crew->n_seats, store->batch),
                              .n_chunks = chunks_of_config(c, store->batch),
                              .policy = policy,
                              .hot_floats = hot,
                              .cpu = cpu,
                              .item = item_of_config(store, &policy, model, hot, n_examples, crew),
                              .order = {.seed = c->seed, .n_examples = n_examples, .shuffle = c->shuffle != 0},
                              .race_ns = race_ns,
                              .race_share = race_share,
                              .count_lost = c->count_lost != 0 || race_ns > 0,
                              .may_die = store->deaths.on_death != SHMT_DEATH_ABORTS,
                              .may_lack = store->deaths.on_death == SHMT_DEATH_CONTINUES,
                              .skips = store->deaths.skips,
                              .unmeasured = c->measure == 0,
                              .trace_events = c->trace[0] ? TRACE_EVENTS : 0,
                              .head_bytes = c->name[0] ? sizeof(struct shmt_head) : 0};
    out->pauses = pauses_of_config(store);
    out->spin_ns = SPIN_NS;
    out->spin_seats = (uint32_t)((uint64_t)shmt_topo_cpus(crew->topo) * crew->n_seats / (crew->n_workers * crew->n_threads));
    for (uint32_t t = 0; t < store->n_tables; t++) {
        out->table[t] = store->table[t].table;
        out->l2_rows[t] = store->table[t].l2_rows;
    }
    out->n_tables = store->n_tables;
    return rule_of_config(store, model, out);
}
