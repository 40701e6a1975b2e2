/* What hosts must have alike: see agreement.h. Data comes first, because rates and much else follow from it. */
#include "hosts/agreement.h"

#include <shmtrain/data.h>
#include <shmtrain/model.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "base/plain.h"
#include "configuration/role.h"
#include "hosts/hosts.h"
#include "keeping/parameters.h"
#include "ps/spec_fields.h"
#include "workers/run.h"

static uint64_t hash_more(uint64_t seed, const void *bytes, uint64_t n) {
    return bytes ? XXH3_64bits_withSeed(bytes, n, seed) : seed + 1;
}

static uint64_t hash_of_data(const struct shmtrain_data *d) {
    uint64_t hash = 0;
    if (d->start) hash = hash_more(hash, d->start, (d->n_examples + 1) * sizeof *d->start);
    hash = hash_more(hash, d->id, d->id ? d->n_nonzeros * sizeof *d->id : 0);
    hash = hash_more(hash, d->value, d->value ? d->n_nonzeros * sizeof *d->value : 0);
    hash = hash_more(hash, d->dense, d->dense ? d->n_examples * d->n_features * sizeof *d->dense : 0);
    hash = hash_more(hash, d->label, d->n_examples * sizeof *d->label);
    return hash_more(hash, d->weight, d->weight ? d->n_examples * sizeof *d->weight : 0);
}

static void state_data(struct shmt_facts *out, const char *name, const struct shmtrain_data *d) {
    if (!d) return;
    shmt_facts_add(out, name, "%llu examples of %u features and %llu nonzeros, content %016llx",
                   (unsigned long long)d->n_examples, d->n_features, (unsigned long long)d->n_nonzeros,
                   (unsigned long long)hash_of_data(d));
}

/* How many workers a host has, and how many copies of the parameters these have, is its own affair, unless clocks are compared: those of
 * copies are stretches of items. */
static bool is_own(const struct shmt_spec_field *field, const struct shmt_spec *spec) {
    const bool compares = shmt_policy_is_live(&spec->policy) && spec->policy.staleness != SHMT_STALENESS_INF;
    static const char *const OWN[] = {"replicas", "merge", "merge_every"};
    for (size_t i = 0; i < sizeof OWN / sizeof *OWN; i++)
        if (!compares && strcmp(field->is.key, OWN[i]) == 0) return true;
    return field->part == SHMT_PART_SEATS;
}

/* As the note of a checkpoint has it. Batches do not go by items, and items not by batches. */
static void state_field(struct shmt_facts *out, const struct shmt_spec_field *field, const struct shmt_spec *spec) {
    const struct shmt_bounded *is = &field->is;
    const uint32_t not_here = shmt_policy_is_live(&spec->policy) ? SHMT_SAME_BATCHED : SHMT_SAME_LIVE;
    if (!(field->uses & SHMT_IN_NOTE) || is_own(field, spec) || (field->uses & not_here)) return;
    if (shmt_bounded_is_real(is))
        shmt_facts_add(out, is->key, "%.9g", shmt_bounded_real(is, spec));
    else if (is->word)
        shmt_facts_add(out, is->key, "%s", is->word((uint32_t)shmt_bounded_count(is, spec)));
    else
        shmt_facts_add(out, is->key, "%llu", (unsigned long long)shmt_bounded_count(is, spec));
}

static void state_spec(struct shmt_facts *out, const struct shmt_run *run) {
    const struct shmt_spec *spec = &run->spec;
    const struct shmt_spec_field *field;
    for (size_t i = 0; (field = shmt_spec_field_at(i)); i++) state_field(out, field, spec);
    shmt_facts_add(out, "order of columns", "%s", spec->row_places ? "by frequency" : "as given");
    shmt_facts_add(out, "curvatures", "%s", spec->curvatures ? "known" : "not known");
    if (spec->max_steps != SHMT_NO_LIMIT) shmt_facts_add(out, "steps", "%llu", (unsigned long long)spec->max_steps);
    shmt_facts_add(out, "wire", "%s", spec->hosts.wire == SHMT_WIRE_BF16 ? "bf16" : "f32");
    shmt_facts_add(out, "top-k", "%.9g", (double)spec->hosts.top_k);
    shmt_facts_add(out, "target-loss", "%.9g", run->config->target_loss);
    shmt_facts_add(out, "keep", "%s", run->config->keep == SHMT_KEEP_BEST ? "best" : "the last epoch's");
    shmt_facts_add(out, "bias", "%llu", (unsigned long long)run->config->bias);
    shmt_facts_add(out, "validation examples", "%llu", (unsigned long long)run->job.board.n_valid);
    shmt_facts_add(out, "patience", "%llu", (unsigned long long)run->config->patience);
    shmt_facts_add(out, "first batch", "%llu of epoch %u, behind %llu", (unsigned long long)spec->first_step, spec->first_epoch,
                   (unsigned long long)spec->steps_before);
}

/* What a table begins with, where that is not all zeros. In rounds a rule's state is each host's own. */
static void state_tables(struct shmt_facts *out, const struct shmt_run *run) {
    const bool own_state = shmt_spec_has_rounds_of_hosts(&run->spec);
    for (uint32_t t = 0; t < run->params->n_tables; t++) {
        const struct shmt_declared *d = &run->params->table[t];
        const uint64_t floats = shmt_table_floats(&d->table);
        const uint64_t state = run->params->kept.planes * floats;
        char name[SHMT_FACT_TEXT];
        snprintf(name, sizeof name, "table %s", d->table.name);
        shmt_facts_add(out, name, "%llu x %u, values %016llx, state %016llx", (unsigned long long)d->table.rows, d->table.width,
                       (unsigned long long)(d->value ? hash_more(0, d->value, floats * sizeof *d->value) : 0),
                       (unsigned long long)(d->state && !own_state ? hash_more(0, d->state, state * sizeof *d->state) : 0));
    }
}

void shmt_agreement_state(struct shmt_run *run, const struct shmt_agreed *what, struct shmt_facts *out) {
    SHMT_PLAIN_NUMBERS;
    const char *hosts = shmt_role_text(run->config);
    *out = (struct shmt_facts){0};
    shmt_facts_add(out, "resume", "%s", run->config->resume ? "yes" : "no");               /* first: see newest.c */
    shmt_facts_add(out, SHMT_FACT_QUORUM, "%s", run->hosts->n_workers > 0 ? "yes" : "no"); /* next: see shmt_hosts_count */
    shmt_facts_add(out, "version", "%s", PACKAGE_VERSION);
    shmt_facts_add(out, "list of hosts", "%.1800s (%016llx)", hosts, (unsigned long long)hash_more(0, hosts, strlen(hosts)));
    shmt_facts_add(out, "model", "%s%s%s", what->model ? what->model->name : "a worker function", what->model ? " " : "",
                   what->model ? run->texts.joined : "");
    state_data(out, "training data", what->train);
    state_data(out, "validation data", what->valid);
    if (what->valid_share > 0) shmt_facts_add(out, "share of validation data", "%.9g", what->valid_share);
    state_spec(out, run);
    state_tables(out, run);
    shmt_facts_add(out, "library for products", "%s", run->blas);
}
