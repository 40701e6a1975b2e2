/* Options that somebody gave and that do nothing in this run: each in one line of the log, and the run goes on. Called by run.c
 * when the spec is complete. The one place that says what an option needs to have an effect. */
#include "api/effects.h"

#include <stdio.h>
#include <string.h>

#define BIT(x) (UINT32_C(1) << (x))
#define LIVE   (BIT(SHMT_WRITE_RACY) | BIT(SHMT_WRITE_ATOMIC) | BIT(SHMT_WRITE_LOCKED))
#define SYNC   BIT(SHMT_WRITE_AGGREGATE)

/* With which optimizers, schedules and write modes an option has an effect; 0: with any. */
static const struct effect {
    const char *option;
    uint32_t rules, schedules, writes;
    bool of_rows;  /* not for dense models */
    bool of_names; /* only for a store with a name */
} EFFECTS[] = {
    {.option = "momentum", .rules = BIT(SHMT_RULE_MOMENTUM) | BIT(SHMT_RULE_ADAM)},
    {.option = "beta2", .rules = BIT(SHMT_RULE_ADAM)},
    {.option = "epsilon", .rules = BIT(SHMT_RULE_ADAGRAD) | BIT(SHMT_RULE_ADAM)},
    {.option = "beta", .rules = BIT(SHMT_RULE_FTRL)},
    {.option = "power", .schedules = BIT(SHMT_RATE_INVERSE)},
    {.option = "decay-every", .schedules = BIT(SHMT_RATE_INVERSE) | BIT(SHMT_RATE_STEP)},
    {.option = "decay-by", .schedules = BIT(SHMT_RATE_STEP)},
    {.option = "batch", .writes = SYNC},
    {.option = "chunks", .writes = SYNC},
    {.option = "item", .writes = LIVE},
    {.option = "group", .writes = LIVE, .of_rows = true},
    {.option = "guests", .of_names = true},
};

static bool suits(uint32_t set, uint32_t value) { return set == 0 || (set & BIT(value)) != 0; }

/* Why it has no effect, as an end to "--option has no effect"; false: it has one. */
static bool find_reason(const struct effect *effect, const struct shmtrain_store *store, char *out, size_t bytes) {
    const struct shmt_config *c = &store->config;
    const struct shmt_spec *spec = &store->spec;
    const struct shmtrain_model *model = store->job.model;
    if (!suits(effect->rules, spec->rule.kind))
        snprintf(out, bytes, "with --optimizer %s", shmt_rule_name((enum shmt_rule_kind)spec->rule.kind));
    else if (!suits(effect->schedules, (uint32_t)spec->rate.kind))
        snprintf(out, bytes, "with --schedule %s", shmt_rate_name(&spec->rate));
    else if (!suits(effect->writes, spec->policy.write))
        snprintf(out, bytes, "with --%s %s", c->write[0] ? "write" : "mode", c->write[0] ? c->write : c->mode);
    else if (effect->of_rows && model && model->dense)
        snprintf(out, bytes, "with --model %.60s", model->name);
    else if (effect->of_names && c->name[0] == '\0')
        snprintf(out, bytes, "without --name");
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
