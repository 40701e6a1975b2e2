/* Options that somebody gave and that do nothing in this run: each in one line of the log, and the run goes on. Called by run.c
 * when the spec is complete. The one place that says what an option needs to have an effect. */
#include "running/effects_priv.h"

#include <stdio.h>
#include <string.h>

#include "workers/deaths.h"

#define BIT(x) (UINT32_C(1) << (x))
#define DECAYS (BIT(SHMT_RULE_ADAMW) | BIT(SHMT_RULE_LAMB))
#define ADAMS  (BIT(SHMT_RULE_ADAM) | DECAYS)
#define MEANS  (BIT(SHMT_RULE_RMSPROP) | BIT(SHMT_RULE_ADADELTA))

/* Which part of the consistency space an option is for. */
enum part { ALL, LIVE, AGGREGATE, BATCHED, WITH_QUORUM, WITH_REPLICAS };

/* With which optimizers, schedules and policies an option has an effect; 0: with any. */
static const struct effect {
    const char *option;
    uint32_t rules, schedules;
    enum part part;
    bool of_rows;        /* not for dense models */
    bool of_names;       /* only for a store with a name */
    bool of_stalls;      /* only where somebody looks for workers that stand still */
    bool of_checkpoints; /* only for a run that writes some */
    bool of_deaths;      /* only for a run that does not end with a worker */
} EFFECTS[] = {
    {.option = "momentum", .rules = BIT(SHMT_RULE_MOMENTUM) | BIT(SHMT_RULE_NESTEROV) | ADAMS},
    {.option = "beta2", .rules = ADAMS},
    {.option = "epsilon", .rules = BIT(SHMT_RULE_ADAGRAD) | ADAMS | MEANS},
    {.option = "rho", .rules = MEANS},
    {.option = "weight-decay", .rules = DECAYS},
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
    {.option = "max-respawns", .of_deaths = true},
    {.option = "in-flight", .part = LIVE, .of_deaths = true},
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
            return shmt_policy_merges_replicas(policy);
        default:
            return true;
    }
}

/* The option that put the run outside of that part: of its axis, or the mode that was named or chosen. */
static void name_cause(const struct shmt_run *run, enum part part, char *out, size_t bytes) {
    const struct shmt_config *c = run->config;
    const bool has_rounds = part == BATCHED && shmt_policy_has_rounds(&run->spec.policy);
    if (part == WITH_QUORUM)
        snprintf(out, bytes, "without a quorum");
    else if (part == WITH_REPLICAS)
        snprintf(out, bytes, "with %s",
                 shmt_policy_has_equal_copies(&run->spec.policy) ? "copies that stay equal" : "one copy of the parameters");
    else if (has_rounds && c->staleness[0])
        snprintf(out, bytes, "with --staleness %.40s", c->staleness);
    else if (has_rounds && c->axes.quorum)
        snprintf(out, bytes, "with --quorum %llu", (unsigned long long)c->axes.quorum);
    else if (c->axes.write != SHMT_UNSAID && !has_rounds)
        snprintf(out, bytes, "with --write %s", shmt_write_name((enum shmt_write)c->axes.write));
    else
        snprintf(out, bytes, "with --mode %.60s", run->mode_taken);
}

/* Why it has no effect, as an end to "--option has no effect"; false: it has one. */
static bool find_reason(const struct effect *effect, const struct shmt_run *run, char *out, size_t bytes) {
    const struct shmt_spec *spec = &run->spec;
    const struct shmtrain_model *model = run->job.model;
    if (!suits(effect->rules, spec->rule.kind))
        snprintf(out, bytes, "with --optimizer %s", shmt_rule_name((enum shmt_rule_kind)spec->rule.kind));
    else if (!suits(effect->schedules, (uint32_t)spec->rate.kind))
        snprintf(out, bytes, "with --schedule %s", shmt_rate_name(&spec->rate));
    else if (!is_in(&spec->policy, effect->part))
        name_cause(run, effect->part, out, bytes);
    else if (effect->of_rows && model && model->traits.pushes_tables)
        snprintf(out, bytes, "with --model %.60s", model->name);
    else if (effect->of_names && run->config->name[0] == '\0')
        snprintf(out, bytes, "without --name");
    else if (effect->of_stalls && run->config->parsed.stall_timeout_ns == 0)
        snprintf(out, bytes, "with --stall-timeout %s", run->config->stall_timeout);
    else if (effect->of_checkpoints && run->config->checkpoint[0] == '\0' &&
             !(run->config->keep == SHMT_KEEP_BEST && strcmp(effect->option, "keep") == 0))
        snprintf(out, bytes, "without --checkpoint");
    else if (effect->of_deaths && run->config->on_death == SHMT_DEATH_ABORTS)
        snprintf(out, bytes, "with --on-death abort");
    else
        return false;
    return true;
}

void shmt_note_effects(const struct shmt_run *run) {
    char why[96];
    for (size_t i = 0; i < sizeof EFFECTS / sizeof *EFFECTS; i++) {
        if (shmt_config_is_given(run->config, EFFECTS[i].option) && find_reason(&EFFECTS[i], run, why, sizeof why))
            shmt_log(&run->call->log, "--%s has no effect %s", EFFECTS[i].option, why);
    }
}
