/* Hosts in a plan: see plan_hosts.h. The same functions deal chunks and items when the run trains. */
#include "running/plan_hosts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "configuration/role.h"
#include "consistency/chunks.h"
#include "consistency/shares.h"
#include "ps/far.h"
#include "ps/flat.h"
#include "update/parts.h"
#include "workers/run.h"

/* Of a whole batch. */
static void plan_batches(const struct shmt_spec *spec, uint32_t host, uint64_t all_bytes, struct shmtrain_plan_host *out) {
    struct shmt_subtree node[SHMT_MAX_HOSTS * SHMT_MAX_STACK];
    uint32_t whose[SHMT_MAX_HOSTS * SHMT_MAX_STACK], from, to;
    const uint32_t n = shmt_far_nodes(spec->n_chunks, spec->hosts.n, spec->hosts.n, node, whose);
    shmt_chunk_share(spec->n_chunks, host, spec->hosts.n, &from, &to);
    for (uint32_t chunk = from; chunk < to; chunk++) {
        uint64_t first, end;
        shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, spec->batch, &first, &end);
        out->examples += end - first;
    }
    for (uint32_t k = 0; k < n; k++) out->most_bytes += whose[k] == host ? all_bytes : 0;
}

/* Of the first epoch: later ones are dealt by how fast hosts are. */
static void plan_items(const struct shmt_spec *spec, uint32_t host, uint64_t all_bytes, struct shmtrain_plan_host *out) {
    struct shmt_shares shares;
    struct shmt_share share;
    shmt_shares_equal(spec->hosts.n, &shares);
    shmt_share_of(&shares, host, &share);
    const uint64_t items = shmt_share_items(&share, shmt_spec_pieces(spec));
    for (uint64_t i = 0; i < items; i++) out->examples += shmt_spec_examples_of_step(spec, shmt_share_item(&share, i));
    out->most_bytes = all_bytes;
}

/* Live modes: all parameters in a round; in a merge the parts of all of them, and of the rule's state. */
static uint64_t bytes_of_turn(const struct shmt_spec *spec, uint64_t n_floats) {
    if (!shmt_policy_meets_to_merge(&spec->policy)) return n_floats * sizeof(float);
    return shmt_ceil_div(n_floats, SHMT_FAR_BLOCK) * (1 + shmt_flat_planes(spec)) *
           (sizeof(struct shmt_merge_part) + sizeof(uint64_t));
}

static void name_host(const struct shmt_run *run, uint32_t host, struct shmtrain_plan_host *out) {
    const struct shmt_cluster *hosts = &run->config->parsed.hosts;
    char name[SHMT_MOST_HOST_TEXT] = "";
    if (!hosts->mpi) shmt_cluster_name(hosts, shmt_role_text(run->config), host, "", name);
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, name);
}

int shmt_plan_hosts(struct shmt_run *run, struct shmtrain_plan *plan, struct shmtrain_plan_host **out) {
    const struct shmt_spec *spec = &run->spec;
    struct shmt_flat flat;
    if (!shmt_spec_is_linked(spec)) return 0;
    *out = calloc(spec->hosts.n, sizeof **out);
    if (!*out) return shmt_no_memory(&run->call->error, "for a plan of hosts");
    shmt_flat_plan(spec, &flat);
    plan->n_hosts = spec->hosts.n;
    plan->host = spec->hosts.self;
    plan->exchange = shmt_policy_is_batched(&spec->policy)       ? "batch"
                     : shmt_policy_meets_to_merge(&spec->policy) ? "merge"
                                                                 : "round";
    for (uint32_t host = 0; host < spec->hosts.n; host++) {
        name_host(run, host, &(*out)[host]);
        if (shmt_policy_is_batched(&spec->policy))
            plan_batches(spec, host, flat.n * (shmt_spec_rounds_sums(spec) ? sizeof(uint16_t) : sizeof(float)), &(*out)[host]);
        else
            plan_items(spec, host, bytes_of_turn(spec, flat.n), &(*out)[host]);
    }
    return 0;
}
