/* From options to the spec of a run: the policy, items and batches, the rate and the rule. Called by run.c and train.c,
 * which know the crew and the data. */
#include "running/spec_priv.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "configuration/copies.h"
#include "configuration/every.h"
#include "configuration/offered.h"
#include "configuration/slow.h"
#include "consistency/chunks.h"
#include "consistency/mode.h"
#include "fitting/defaults.h"
#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "hosts/hosts.h"
#include "keeping/checkpoint.h"
#include "keeping/parameters.h"
#include "naming/manifest.h"
#include "ps/replicas.h"
#include "train/auto_rate.h"
#include "update/merge.h"
#include "workers/deaths.h"

#define SPIN_NS      200000 /* with a processor for each worker: a futex wake costs a quarter of this */
#define LINK_THREADS 2      /* the link's, and its carrier's, want a processor each while workers wait for other hosts */
#define TRACE_EVENTS 65536  /* of each thread that trains, the last ones: 2 MiB */

/* That of the checkpoint that the run goes on from, which may have had other hosts. NULL: there is none, or it is none that has a name. */
static const char *mode_of_checkpoint(const struct shmt_run *run) {
    struct shmt_policy policy;
    struct shmt_error why = {0};
    if (!run->from) return NULL;
    const char *mode = shmt_checkpoint_of(run->from)->mode;
    return shmt_mode_parse("mode", mode, &policy, &why) == 0 ? mode : NULL;
}

/* Where nobody names anything, the cost of an example decides. A sparse example costs about as much as fetching a line from
 * another core: whoever waits for others at each batch waits longer than it works. A dense one costs hundreds of times as much
 * and its gradient is as large as the parameters: then one update of everybody's gradients is the cheapest. */
static const char *mode_of_config(struct shmt_run *run, const struct shmtrain_model *model) {
    const struct shmt_config *c = run->config;
    run->mode_reason = "";
    if (run->fits) { /* whatever its ascents are (fit.c): all workers meet behind them */
        if (strcmp(c->mode, "auto") == 0) run->mode_reason = "a fit is a row of steps that all workers take together";
        return "sync";
    }
    if (strcmp(c->mode, "auto") != 0) return c->mode;
    const char *mode = shmt_config_mode_of_axes(c);
    if (mode) return mode;
    run->mode_reason = "as in the run that is resumed";
    if ((mode = mode_of_checkpoint(run))) return mode;
    run->mode_reason = "over several hosts, with the bits of one";
    if (c->parsed.hosts.n > 1) return "sync";
    run->mode_reason = !model                        ? "the default for worker functions"
                       : model->traits.pushes_tables ? "gradients are dense and cost more than waiting for others"
                                                     : "gradients are sparse and cost less than waiting for others";
    return model && model->traits.pushes_tables ? "sync" : "async";
}

/* Where all workers are on one node, its copy would be the only one: there is nothing to merge, and nobody to wait for. Unless other
 * hosts have copies that all meet to merge. */
static void settle_one_node(struct shmt_run *run, uint32_t n_nodes, struct shmt_policy *p) {
    const bool merges_with_hosts = run->config->parsed.hosts.n > 1 && shmt_policy_merges_together(p);
    if (p->replicas != SHMT_REPLICAS_NODE || n_nodes > 1 || merges_with_hosts) return;
    shmt_log(&run->call->log,
             "all workers are on one NUMA node: there is only one copy of the parameters, and nothing is merged (hogwild)");
    shmt_policy_take_one_copy(p);
    p->staleness = SHMT_STALENESS_INF; /* it was of merges */
}

/* Somebody has said what becomes of updates, or of copies: then `async` is what it says. */
static bool names_copies(const struct shmt_config *c) {
    return c->axes.replicas != SHMT_UNSAID || c->axes.merge != SHMT_UNSAID || c->axes.write != SHMT_UNSAID || c->count_lost ||
           c->parsed.race_ns > 0 || c->cache_pulls > 0;
}

/* Unlike --count-lost and --race-window, costs are for every mode, and are no wish for one that loses updates. */
static bool races_in_virtual_time(const struct shmt_crew *crew, const struct shmt_policy *policy) {
    return shmt_crew_opens_race(crew) && policy->write == SHMT_WRITE_RACY && !shmt_policy_merges_replicas(policy);
}

/* Its one table has a float for each feature, and perhaps a bias. */
static bool is_linear(const struct shmt_parameters *params, const struct shmtrain_model *model) {
    return model && model->traits.columns_alike && !model->traits.pushes_tables && model->traits.curvature > 0 &&
           params->n_tables == 1 && params->table[0].table.width == 1;
}

/* Floats of a page of which hot rows may be made; 0: pages are too large for that, here or as the options have it. */
static uint64_t hot_unit(const struct shmt_config *c) {
    const struct shmt_spec ordinary = {0};
    if (sysconf(_SC_PAGESIZE) != 4096 || strcmp(c->hugepages, "2M") == 0) return 0;
    return shmt_spec_hot_unit(&ordinary);
}

/* A mode that leaves it open (`async`), and nobody says more: one copy of the parameters, or one per worker, of all or of the
 * hot ones. */
static void choose_copies(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_crew *crew,
                          struct shmt_policy *p, uint32_t *hot_out) {
    const struct shmt_config *c = run->config;
    const struct shmt_rule rule = {.kind = shmt_offered_rule(c, model)};
    const struct shmt_mode *mode = shmt_mode_find(run->mode_taken);
    run->copies_reason[0] = '\0';
    if (c->cache_pulls > 0)
        snprintf(run->copies_reason, sizeof run->copies_reason,
                 "each worker reads a copy of its own, from which updates of the last %llu clocks may be missing",
                 (unsigned long long)c->cache_pulls);
    if (!mode || !mode->may_copy || names_copies(c) || !shmt_policy_equal(p, &mode->policy)) return;
    struct shmt_cache_share cache;
    shmt_machine_share_cache(&crew->machine, 2, &cache);
    const struct shmt_copies_wish wish = {.is_linear = is_linear(run->params, model),
                                          .by_frequency = run->rows_by_frequency,
                                          .has_guests = crew->n_guests > 0,
                                          .may_lose = c->on_death == SHMT_DEATH_CONTINUES,
                                          .n_workers = crew->n_workers,
                                          .n_threads = crew->n_threads,
                                          .planes = shmt_rule_planes(&rule, true),
                                          .floats = run->params->n_tables ? shmt_table_floats(&run->params->table[0].table) : 0,
                                          .cache_bytes = cache.bytes,
                                          .n_sharers = cache.n_workers,
                                          .unit = hot_unit(c)};
    if (!(run->backend->caps & SHMT_CAP_MANY)) return;
    if (!shmt_copies_choose(&wish, hot_out, run->copies_reason, sizeof run->copies_reason)) return;
    p->merge = SHMT_MERGE_DAMPED;
    shmt_axes_take(&c->axes, p);
}

/* Of all hosts; where these are only planned, each has as many as this one. */
static uint32_t all_workers(const struct shmt_run *run, const struct shmt_crew *crew) {
    const uint32_t n_hosts = run->config->parsed.hosts.n;
    if (n_hosts <= 1) return crew->n_workers;
    return run->hosts->n_workers > 0 ? run->hosts->n_workers : n_hosts * crew->n_workers;
}

static uint32_t all_seats(const struct shmt_run *run, const struct shmt_crew *crew) {
    const uint32_t n_hosts = run->config->parsed.hosts.n;
    if (n_hosts <= 1) return crew->n_seats;
    return run->hosts->n_seats > 0 ? run->hosts->n_seats : n_hosts * crew->n_seats;
}

/* A checkpoint goes on with any number of workers. So where fewer of them go on than an update waited for, it waits for all. */
static void fit_quorum(const struct shmt_run *run, uint32_t n_workers, struct shmt_policy *p) {
    const struct shmt_checkpoint *from = run->from ? shmt_checkpoint_of(run->from) : NULL;
    const bool has_number = p->quorum != SHMT_QUORUM_ALL && p->quorum != SHMT_QUORUM_MOST;
    if (!from || from->spec.policy.quorum == SHMT_QUORUM_ALL || !has_number || p->quorum <= n_workers) return;
    shmt_log(&run->call->log, "an update waited for %u workers, and waits for %u, as there are no more", p->quorum, n_workers);
    p->quorum = n_workers;
}

/* A quorum of all is none, and its batches are dealt as in `sync`. But the checkpoints of that are none to go on from with more
 * workers: so it stays a quorum where there are some, and is dealt in rounds. */
static void keep_quorum(struct shmt_run *run, uint32_t n_workers, bool asked_for, struct shmt_policy *p) {
    const bool is_all = asked_for && p->quorum == SHMT_QUORUM_ALL, keeps = is_all && run->config->checkpoint[0] != '\0';
    if (keeps) p->quorum = n_workers;
    run->quorum_of_all = is_all && !keeps;
}

static int policy_of_config(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_crew *crew,
                            struct shmt_policy *out, uint32_t *hot_out) {
    run->mode_taken = mode_of_config(run, model);
    *out = run->mode_taken == run->config->mode ? run->config->parsed.mode : shmt_mode_find(run->mode_taken)->policy;
    if (run->config->staleness[0]) out->staleness = run->config->parsed.staleness;
    shmt_axes_take(&run->config->axes, out);
    choose_copies(run, model, crew, out, hot_out);
    const bool quorum = out->quorum != SHMT_QUORUM_ALL;
    int rc = quorum ? shmt_hosts_count(run, crew->n_workers, crew->n_seats) : 0;
    const uint32_t n_workers = all_workers(run, crew);
    if (rc < 0) return rc;
    fit_quorum(run, n_workers, out);
    rc = shmt_policy_settle(out, n_workers, &run->call->error);
    if (rc == 0) settle_one_node(run, crew->machine.placement.n_nodes, out);
    if (rc == 0) rc = shmt_deaths_settle(run, crew, out, run->deaths);
    keep_quorum(run, n_workers, rc == 0 && quorum, out);
    return rc;
}

#define ITEM       1024 /* examples of a work item, unless the options say so */
#define HOST_ITEMS 128  /* of an epoch, on each of many hosts, at least */
#define OWN        64   /* of own worker functions, whose dense pushes are one update for each item */
#define SUMMED     128 /* examples between two merges that add up: each copy goes the same way alone, and the sum all of them */

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
static uint64_t item_worth_merging(const struct shmt_run *run, const struct shmtrain_model *model, uint32_t hot) {
    if (!model || model->traits.pushes_tables || run->params->n_tables == 0 || run->example_nonzeros <= 0) return 0;
    const uint64_t lines = (hot ? hot : shmt_table_floats(&run->params->table[0].table)) / LINE_FLOATS;
    const double merged = (double)shmt_min_u64(lines, LINES_OFTEN + lines / TURNS_OF_REST);
    return (uint64_t)ceil(fmin(merged * LINE_NONZEROS / (MERGING_SHARE * run->example_nonzeros), ITEM));
}

static uint64_t damped_item(const struct shmt_run *run, const struct shmt_policy *policy, const struct shmtrain_model *model,
                            uint32_t hot, uint64_t n_examples, const struct shmt_crew *crew) {
    const uint32_t nodes = crew->machine.placement.n_nodes;
    const uint64_t copies = shmt_max_u64(1, policy->replicas == SHMT_REPLICAS_NODE ? nodes : crew->n_workers);
    const uint64_t each = n_examples / crew->n_seats;
    const uint64_t worth = shmt_min_u64(each / DAMPED_PARTS_LEAST, item_worth_merging(run, model, hot));
    return shmt_min_u64(shmt_min_u64(ITEM, DAMPED / copies), shmt_max_u64(each / DAMPED_PARTS, worth));
}

static uint64_t usual_item(const struct shmt_run *run, const struct shmt_policy *policy, const struct shmtrain_model *model,
                           uint32_t hot, uint64_t n_examples, const struct shmt_crew *crew) {
    const bool sums = shmt_policy_merges_replicas(policy) && policy->merge == SHMT_MERGE_SUM;
    if (shmt_policy_is_damped(policy)) return damped_item(run, policy, model, hot, n_examples, crew);
    if (model && model->traits.item > 0) return model->traits.item;
    return !model ? OWN : sums && !model->traits.pushes_tables ? SUMMED / shmt_replicas_stretch(policy) : ITEM;
}

#define BATCH       64
#define LEAST_BATCH 8
#define UPDATES     128 /* of an epoch, at least, as far as batches may be so small */

static uint32_t batch_size(const struct shmt_run *run, const struct shmtrain_model *model, uint64_t n_examples) {
    if (run->config->batch > 0) return (uint32_t)run->config->batch;
    if (model && model->traits.batch > 0) return model->traits.batch;
    if (!model || run->is_generated) return BATCH;
    return (uint32_t)shmt_min_u64(BATCH, shmt_max_u64(LEAST_BATCH, n_examples / UPDATES));
}

/* Over many hosts items are dealt to hosts, whatever workers each of them has: so they do not depend on those. */
static uint32_t item_of_hosts(const struct shmt_run *run, const struct shmt_policy *policy, const struct shmtrain_model *model,
                              uint64_t n_examples) {
    const struct shmt_config *c = run->config;
    const bool sums = shmt_policy_merges_replicas(policy) && policy->merge == SHMT_MERGE_SUM;
    const uint64_t fair = n_examples / (HOST_ITEMS * c->parsed.hosts.n), usual = !model ? OWN
                                                                                 : sums ? SUMMED / shmt_replicas_stretch(policy)
                                                                                        : ITEM;
    const uint64_t item = c->item ? c->item : model && model->traits.item ? model->traits.item : usual;
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(item, fair));
}

/* In rounds everybody's item is an equal part of the batch. Else small data is dealt in smaller items, so that every worker
 * gets some of it. */
static uint32_t item_of_config(const struct shmt_run *run, const struct shmt_policy *policy, const struct shmtrain_model *model,
                               uint32_t hot, uint64_t n_examples, const struct shmt_crew *crew) {
    const struct shmt_config *c = run->config;
    if (shmt_policy_has_rounds(policy)) return (uint32_t)shmt_ceil_div(run->batch, all_seats(run, crew));
    if (c->parsed.hosts.n > 1) return item_of_hosts(run, policy, model, n_examples);
    const uint64_t fair = shmt_ceil_div(n_examples, 4 * (uint64_t)crew->n_seats);
    const uint64_t item = c->item ? c->item : usual_item(run, policy, model, hot, n_examples, crew);
    return (uint32_t)shmt_max_u64(1, shmt_min_u64(item, fair));
}

/* So in rounds a batch is a whole number of items. */
static uint32_t batch_of_config(const struct shmt_policy *policy, uint32_t n_seats, uint32_t batch) {
    const uint64_t parts = shmt_policy_has_rounds(policy) ? n_seats : 1;
    return (uint32_t)(shmt_ceil_div(batch, parts) * parts);
}

#define USUAL_BATCH 128 /* whose chunks a model names */

/* Larger batches have more chunks, for more workers, of up to twice as many examples: each costs a pass over all weights.
 * The tree over the chunks is complete: their number is the next power of two, but never above the batch. */
static uint32_t chunks_of_config(const struct shmt_config *c, const struct shmtrain_model *model, uint32_t batch) {
    const uint64_t of_model = model ? model->traits.chunks : 0, large = shmt_ceil_div(batch * of_model, 2 * USUAL_BATCH);
    const uint64_t wanted = c->chunks ? c->chunks : shmt_max_u64(of_model, large);
    uint32_t chunks = 1;
    if (wanted == 0) return shmt_chunks_of_batch(batch);
    while (chunks < wanted && 2 * (uint64_t)chunks <= batch) chunks *= 2;
    return chunks;
}

bool shmt_rate_is_named(const struct shmt_config *c) {
    return c->schedule != SHMT_SCHEDULE_AUTO || !isnan(c->power) || !isnan(c->decay_every);
}

/* L1 and L2 say by themselves how much is learned of the noise in the data, and where all ends; dense models take few updates; and on
 * files a cosine does best, too, because it keeps the rate up and then comes to 0: its last updates are so small that it does not
 * matter where their noise, and in the live modes what overtakes what, happens to leave the parameters. Generated data has so much
 * noise that an inverse, which ends before it is learned, does better. */
static bool suits_cosine(const struct shmt_run *run, const struct shmtrain_model *model) {
    const struct shmt_config *c = run->config;
    const bool regularised = c->l1 > 0 || c->l2 > 0 || !isnan(c->c);
    return regularised || (model && (!run->is_generated || model->traits.pushes_tables));
}

/* ftrl knows no other rate than a constant one. The others scale each parameter's by what they have met; of data that comes again and
 * again it is to come to 0 all the same. */
static int schedule_of_config(const struct shmt_run *run, const struct shmtrain_model *model, enum shmt_rule_kind rule) {
    const struct shmt_config *c = run->config;
    if (c->schedule != SHMT_SCHEDULE_AUTO) return (int)c->schedule - SHMT_SCHEDULE_FIRST;
    if (rule == SHMT_RULE_FTRL) return SHMT_RATE_CONSTANT;
    if (rule == SHMT_RULE_ADAGRAD) return model && !run->is_generated ? SHMT_RATE_COSINE : SHMT_RATE_CONSTANT;
    if (shmt_rule_scales(rule)) return model ? SHMT_RATE_COSINE : SHMT_RATE_CONSTANT;
    return suits_cosine(run, model) && !shmt_rate_is_named(c) ? SHMT_RATE_COSINE : SHMT_RATE_INVERSE;
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
static struct shmt_rate rate_of_config(const struct shmt_run *run, const struct shmtrain_model *model,
                                       const struct shmt_spec *spec) {
    const struct shmt_config *c = run->config;
    struct shmt_rate rate = {.base = isnan(c->rate) ? 1 : (float)c->rate,
                             .kind = schedule_of_config(run, model, spec->rule.kind),
                             .factor = c->decay_by,
                             .warmup = isnan(c->warmup) ? 0 : c->warmup,
                             .epochs = (double)spec->epochs};
    shmt_rate_settle(c, is_noisy(spec), &rate);
    return rate;
}

/* As in PyTorch. */
static float rho_of(const struct shmt_config *c, enum shmt_rule_kind kind) {
    if (kind != SHMT_RULE_RMSPROP && kind != SHMT_RULE_ADADELTA) return 0;
    return !isnan(c->rho) ? (float)c->rho : kind == SHMT_RULE_RMSPROP ? 0.99f : 0.9f;
}

/* Less where networks are trained live: train/auto_rate.h. */
static float momentum_of(const struct shmt_config *c, enum shmt_rule_kind kind) {
    switch (kind) {
        case SHMT_RULE_MOMENTUM:
        case SHMT_RULE_NESTEROV:
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
        case SHMT_RULE_LAMB:
            return isnan(c->momentum) ? 0.9f : (float)c->momentum;
        default:
            return 0;
    }
}

static float epsilon_of(const struct shmt_config *c, enum shmt_rule_kind kind) {
    return !isnan(c->epsilon) ? (float)c->epsilon : kind == SHMT_RULE_ADADELTA ? 1e-6f : 1e-8f;
}

/* An update of a batch is PyTorch's; the gradients of single examples are mostly noise, by which their steps are divided, and so weaker
 * against the same decay. */
static float weight_decay_of(const struct shmt_config *c, const struct shmtrain_model *model, const struct shmt_spec *spec) {
    const bool single = shmt_policy_is_live(&spec->policy) && model && !model->traits.pushes_tables;
    return !isnan(c->weight_decay) ? (float)c->weight_decay : single ? 1e-4f : 0.01f;
}

/* 0 is none, as is what was not given. What no float can tell from 0 is a limit all the same, and as good as the least one. */
static float limit_of(double x) { return x > 0 ? fmaxf((float)x, FLT_MIN) : 0; }

/* Such a model has no delay but in rounds. ps/spec.c says what else has none, and names modes that are not for it. */
static int check_delays(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_spec *spec) {
    if (!spec->staleness_aware || !model || model->traits.pushes_tables || shmt_policy_has_rounds(&spec->policy)) return 0;
    if (spec->cache_pulls > 0) return 0; /* what it reads is old then */
    return shmt_refuse(&run->call->error,
                       "staleness-aware divides gradients by their delay, and those of %.60s, which pushes no tables, have one "
                       "only where updates come in rounds: use --write aggregate with --staleness N (1 or more), or --mode "
                       "backup with --late fold, or leave it out",
                       model->name);
}

/* The gradient of a single example is nowhere whole. */
static int check_clipping(struct shmt_run *run, const struct shmtrain_model *model, const struct shmt_spec *spec) {
    if (!(spec->rule.clip_norm > 0) || !shmt_policy_is_live(&spec->policy) || !model || model->traits.pushes_tables) return 0;
    return shmt_refuse(&run->call->error,
                       "clip-norm limits gradients of whole tables, and %.60s has one for each example in the modes without "
                       "rounds: use --mode sync or backup, or --clip-value",
                       model->name);
}

static int rule_of_config(struct shmt_run *run, const struct shmtrain_model *model, struct shmt_spec *spec) {
    const struct shmt_config *c = run->config;
    const enum shmt_rule_kind kind = shmt_offered_rule(c, model);
    const bool decays = kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB;
    spec->rule = (struct shmt_rule){.kind = kind,
                                    .l1 = (float)c->l1,
                                    .l2 = (float)shmt_l2_of_config(c, model, spec->n_examples),
                                    .momentum = momentum_of(c, kind),
                                    .beta2 = (float)c->beta2,
                                    .epsilon = epsilon_of(c, kind),
                                    .beta = (float)c->beta,
                                    .rho = rho_of(c, kind),
                                    .weight_decay = decays ? weight_decay_of(c, model, spec) : 0,
                                    .clip = limit_of(c->clip_value),
                                    .clip_norm = limit_of(c->clip_norm)};
    /* What it takes in memory is known by that; how long gradients are, when weights of examples are there. */
    if (isnan(c->clip_norm) && model)
        spec->rule.clip_norm = shmt_auto_clip_norm(&(struct shmt_rate_wish){
            .model = model, .rule = &spec->rule, .mean_weight = 1, .live = shmt_policy_is_live(&spec->policy)});
    if (shmt_penalty_is_chosen(run, model, spec->n_examples)) spec->rule.l2 = SHMT_PENALTY_TO_COME;
    spec->rate = rate_of_config(run, model, spec);
    if (kind == SHMT_RULE_FTRL && (spec->rate.kind != SHMT_RATE_CONSTANT || c->warmup > 0))
        return shmt_refuse(&run->call->error,
                           "ftrl computes each parameter's rate from its gradients: use --schedule constant without warm-up");
    if (spec->rate.kind == SHMT_RATE_ONE_CYCLE && c->warmup > 0)
        return shmt_refuse(&run->call->error, "one-cycle begins low and rises by itself: leave out --warmup");
    int unfit = check_delays(run, model, spec);
    if (unfit == 0) unfit = check_clipping(run, model, spec);
    if (unfit) return unfit;
    const int refused = shmt_rule_check_policy(&spec->rule, &spec->policy, &run->call->error);
    return refused ? refused : shmt_merge_check(&spec->rule, &spec->policy, &run->call->error);
}

static int slow_of_config(struct shmt_run *run, uint32_t n_workers) {
    free(run->slow_text);
    run->slow_text = strdup(run->config->slow);
    if (!run->slow_text) return shmt_no_memory(&run->call->error, "for option slow");
    run->slow = run->config->parsed.slow;
    run->slow.seed = run->config->seed;
    return shmt_slow_check(&run->slow, run->slow_text, n_workers, &run->call->error);
}

/* For checkpoints, where the options ask for them, and for the application's snapshots. */
static struct shmt_pauses pauses_of_config(const struct shmt_run *run) {
    const struct shmt_every *every = &run->config->parsed.checkpoint_every;
    const bool writes = run->config->checkpoint[0] != '\0', may_pause = (run->backend->caps & SHMT_CAP_PAUSE) != 0;
    if (!writes || !may_pause) return (struct shmt_pauses){.allowed = may_pause && run->wants_snapshots};
    return (struct shmt_pauses){.steps = every->steps, .epochs = every->epochs, .allowed = 1};
}

int shmt_spec_of_config(struct shmt_run *run, const struct shmt_crew *crew, const struct shmtrain_model *model,
                        uint64_t n_examples, struct shmt_spec *out) {
    const struct shmt_config *c = run->config;
    struct shmt_policy policy;
    uint32_t hot = 0;
    int rc = slow_of_config(run, crew->n_workers);
    if (rc == 0) rc = policy_of_config(run, model, crew, &policy, &hot);
    if (rc != 0) return rc;
    run->batch = batch_size(run, model, n_examples);
    *out = (struct shmt_spec){.n_seats = crew->n_seats + crew->n_guests,
                              .n_guests = crew->n_guests,
                              .n_workers = crew->n_workers,
                              .n_examples = n_examples,
                              .epochs = (uint32_t)shmt_defaults_epochs(run, model, n_examples),
                              .max_steps = c->steps ? c->steps : SHMT_NO_LIMIT,
                              .batch = batch_of_config(&policy, all_seats(run, crew), run->batch),
                              .n_chunks = chunks_of_config(c, model, run->batch),
                              .policy = policy,
                              .hot_floats = hot,
                              .cpu = c->parsed.cpu,
                              .item = item_of_config(run, &policy, model, hot, n_examples, crew),
                              .order = {.seed = c->seed, .n_examples = n_examples, .shuffle = c->shuffle != 0},
                              .race_ns = c->parsed.race_ns,
                              .race_share = c->parsed.race_share,
                              .cache_pulls = (uint32_t)c->cache_pulls,
                              .staleness_aware = c->staleness_aware != 0,
                              .race_virtual = races_in_virtual_time(crew, &policy),
                              .count_lost = c->count_lost != 0 || c->parsed.race_ns > 0 || races_in_virtual_time(crew, &policy),
                              .may_die = run->deaths->on_death != SHMT_DEATH_ABORTS,
                              .may_lack = run->deaths->on_death == SHMT_DEATH_CONTINUES,
                              .skips = run->deaths->skips,
                              .unmeasured = c->measure == 0,
                              .trace_events = c->trace[0] || run->keeps_events ? TRACE_EVENTS : 0,
                              .head_bytes = c->name[0] ? sizeof(struct shmt_head) : 0};
    if (c->parsed.hosts.n > 1)
        out->hosts = (struct shmt_hosts_plan){.n = c->parsed.hosts.n,
                                              .self = shmt_config_host(c),
                                              .wire = (uint32_t)c->wire,
                                              .top_k = (float)c->top_k,
                                              .n_workers = run->hosts->n_workers,
                                              .n_seats = run->hosts->n_seats};
    out->pauses = pauses_of_config(run);
    out->spin_ns = crew->kind == &SHMT_TEAM_FIBERS ? 0 : SPIN_NS; /* where time passes only for who sleeps */
    const uint64_t cpus = shmt_topo_cpus(crew->topo), others = out->hosts.n > 1 ? LINK_THREADS : 0;
    out->spin_seats = (uint32_t)((cpus > others ? cpus - others : 0) * crew->n_seats / (crew->n_workers * crew->n_threads));
    for (uint32_t t = 0; t < run->params->n_tables; t++) {
        out->table[t] = run->params->table[t].table;
        out->l2_rows[t] = run->params->table[t].l2_rows;
        out->tuning[t] = run->params->table[t].tuning;
    }
    out->n_tables = run->params->n_tables;
    return rule_of_config(run, model, out);
}
