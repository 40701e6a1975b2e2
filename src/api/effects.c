/* Options that somebody gave and that do nothing in this run: each in one line of the log, and the run goes on. Called by run.c
 * when the spec is complete. The one place that says what an option needs to have an effect. */
#include "api/effects.h"

#include <stdio.h>
#include <string.h>

#define BIT(x) (UINT32_C(1) << (x))

/* Which part of the consistency space an option is for. */
enum part { ALL, LIVE, AGGREGATE, BATCHED, WITH_QUORUM, WITH_REPLICAS };

/* With which optimizers, schedules and policies an option has an effect; 0: with any. */
static const struct effect {
    const char *option;
    uint32_t rules, schedules;
    enum part part;
    bool of_rows;          /* not for dense models */
    bool of_names;         /* only for a store with a name */
    bool of_stalls;        /* only where somebody looks for workers that stand still */
    bool of_checkpoints;   /* only for a run that writes some */
    const char *of_deaths; /* only with one of these values of --on-death; NULL: with any */
} EFFECTS[] = {
    {.option = "momentum", .rules = BIT(SHMT_RULE_MOMENTUM) | BIT(SHMT_RULE_ADAM)},
    {.option = "beta2", .rules = BIT(SHMT_RULE_ADAM)},
    {.option = "epsilon", .rules = BIT(SHMT_RULE_ADAGRAD) | BIT(SHMT_RULE_ADAM)},
    {.option = "beta", .rules = BIT(SHMT_RULE_FTRL)},
    {.option = "power", .schedules = BIT(SHMT_RATE_INVERSE)},
    {.option = "decay-every", .schedules = BIT(SHMT_RATE_INVERSE) | BIT(SHMT_RATE_STEP)},
    {.option = "decay-by", .schedules = BIT(SHMT_RATE_STEP)},
    {.option = "late", .part = WITH_QUORUM},
    {.option = "merge-every", .part = WITH_REPLICAS},
    {.option = "merge", .part = WITH_REPLICAS},
    {.option = "batch", .part = AGGREGATE},
    {.option = "chunks", .part = BATCHED},
    {.option = "item", .part = LIVE},
    {.option = "group", .part = LIVE, .of_rows = true},
    {.option = "columns", .of_rows = true},
    {.option = "guests", .of_names = true},
    {.option = "on-stall", .of_stalls = true},
    {.option = "checkpoint-every", .of_checkpoints = true},
    {.option = "keep", .of_checkpoints = true},
    {.option = "max-respawns", .of_deaths = "respawn|continue"},
    {.option = "in-flight", .part = LIVE, .of_deaths = "respawn|continue"},
};

static bool suits(uint32_t set, uint32_t value) { return set == 0 || (set & BIT(value)) != 0; }

static bool is_in(const struct shmt_policy *policy, enum part part) {
    switch (part) {
        case LIVE:
            return shmt_policy_is_live(policy);
        case AGGREGATE:
            return !shmt_policy_is_live(policy);
        case BATCHED:
            return shmt_policy_is_batched(policy);
        case WITH_QUORUM:
            return policy->quorum != SHMT_QUORUM_ALL;
        case WITH_REPLICAS:
            return shmt_policy_has_replicas(policy);
        default:
            return true;
    }
}

/* The option that put the run outside of that part: of its axis, or the mode that was named or chosen. */
static void blame(const struct shmtrain_store *store, enum part part, char *out, size_t bytes) {
    const struct shmt_config *c = &store->config;
    const bool has_rounds = part == BATCHED && shmt_policy_has_rounds(&store->spec.policy);
    if (part == WITH_QUORUM)
        snprintf(out, bytes, "without a quorum");
    else if (part == WITH_REPLICAS)
        snprintf(out, bytes, "with one copy of the parameters");
    else if (has_rounds && c->staleness[0])
        snprintf(out, bytes, "with --staleness %.40s", c->staleness);
    else if (has_rounds && c->quorum)
        snprintf(out, bytes, "with --quorum %llu", (unsigned long long)c->quorum);
    else if (c->write[0] && !has_rounds)
        snprintf(out, bytes, "with --write %s", c->write);
    else
        snprintf(out, bytes, "with --mode %.60s", store->mode_taken);
}

/* Why it has no effect, as an end to "--option has no effect"; false: it has one. */
static bool find_reason(const struct effect *effect, const struct shmtrain_store *store, char *out, size_t bytes) {
    const struct shmt_spec *spec = &store->spec;
    const struct shmtrain_model *model = store->job.model;
    if (!suits(effect->rules, spec->rule.kind))
        snprintf(out, bytes, "with --optimizer %s", shmt_rule_name((enum shmt_rule_kind)spec->rule.kind));
    else if (!suits(effect->schedules, (uint32_t)spec->rate.kind))
        snprintf(out, bytes, "with --schedule %s", shmt_rate_name(&spec->rate));
    else if (!is_in(&spec->policy, effect->part))
        blame(store, effect->part, out, bytes);
    else if (effect->of_rows && model && model->dense)
        snprintf(out, bytes, "with --model %.60s", model->name);
    else if (effect->of_names && store->config.name[0] == '\0')
        snprintf(out, bytes, "without --name");
    else if (effect->of_stalls && shmt_stall_timeout_ns(&store->config) == 0)
        snprintf(out, bytes, "with --stall-timeout %s", store->config.stall_timeout);
    else if (effect->of_checkpoints && store->config.checkpoint[0] == '\0' &&
             !(store->config.keep == SHMT_KEEP_BEST && strcmp(effect->option, "keep") == 0))
        snprintf(out, bytes, "without --checkpoint");
    else if (effect->of_deaths && !strstr(effect->of_deaths, store->config.on_death))
        snprintf(out, bytes, "with --on-death %s", store->config.on_death);
    else
        return false;
    return true;
}

void shmt_note_effects(const struct shmtrain_store *store) {
    char why[96];
    for (size_t i = 0; i < sizeof EFFECTS / sizeof *EFFECTS; i++) {
        if (shmt_config_is_given(&store->config, EFFECTS[i].option) && find_reason(&EFFECTS[i], store, why, sizeof why))
            shmt_log(&store->log, "--%s has no effect %s", EFFECTS[i].option, why);
    }
}
