/* Checks of a run: see spec.h. */
#include "ps/spec.h"

#include "ps/replicas.h"
#include "update/merge.h"
#include "update/parts.h"

static int check_tables(const struct shmt_spec *spec, struct shmt_error *e) {
    uint64_t floats = 0;
    if (spec->n_tables == 0) return shmt_refuse(e, "a store needs a table: call shmtrain_store_table before the run");
    if (spec->n_tables > SHMT_MAX_TABLES)
        return shmt_refuse(e, "%u tables, at most %d are possible", spec->n_tables, SHMT_MAX_TABLES);
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        int rc = shmt_table_check(&spec->table[t], e);
        if (rc == 0) rc = shmt_tuning_check(&spec->tuning[t], spec->table[t].name, e);
        if (rc < 0) return rc;
        if (!shmt_add_u64(floats, shmt_table_floats(&spec->table[t]), &floats) || floats > UINT64_MAX / 64)
            return shmt_refuse(e, "the tables are larger than any memory");
    }
    if (spec->row_places && spec->table[0].rows > UINT32_MAX)
        return shmt_refuse(e, "table \"%s\" has too many rows to give each a place", spec->table[0].name);
    return 0;
}

static int check_work(const struct shmt_spec *spec, struct shmt_error *e) {
    if (spec->n_seats == 0 || spec->n_workers == 0) return shmt_refuse(e, "a run needs at least one worker");
    if (spec->n_seats > SHMT_MAX_SEATS) return shmt_refuse(e, "at most %d threads of workers in all", SHMT_MAX_SEATS);
    if (spec->n_examples == 0) return shmt_refuse(e, "a run needs examples: call shmtrain_store_examples before it");
    if (spec->n_examples > UINT32_MAX) return shmt_refuse(e, "at most 4294967295 examples are possible");
    if (spec->epochs == 0) return shmt_refuse(e, "a run needs at least one epoch");
    if (spec->batch == 0 || spec->item == 0) return shmt_refuse(e, "a batch needs at least one example");
    if (spec->n_guests >= spec->n_seats)
        return shmt_refuse(e, "a run with %u guests also needs a worker of its own", spec->n_guests);
    if (spec->n_seats - spec->n_guests < spec->n_workers)
        return shmt_refuse(e, "%u workers need a seat each, and there are %u", spec->n_workers, spec->n_seats - spec->n_guests);
    if (spec->placement.n_nodes > SHMT_MAX_NODES)
        return shmt_refuse(e, "memory can be spread over at most %d NUMA nodes", SHMT_MAX_NODES);
    if (spec->race_ns > 0 && (spec->policy.write != SHMT_WRITE_RACY || shmt_policy_merges_replicas(&spec->policy)))
        return shmt_refuse(e, "race-window widens the race of plain stores to one copy of the parameters: use --mode hogwild");
    if (spec->count_lost && spec->policy.write != SHMT_WRITE_RACY)
        return shmt_refuse(e, "write %s loses no updates: count-lost is for racy", shmt_write_name(spec->policy.write));
    if (spec->count_lost && shmt_policy_merges_replicas(&spec->policy))
        return shmt_refuse(e, "count-lost counts the updates of one copy of the parameters: use --replicas one");
    if (shmt_policy_is_damped(&spec->policy) && !spec->curvatures)
        return shmt_refuse(e,
                           "merge damped needs the curvature of the loss along each parameter, which only models of sparse "
                           "rows know: use --merge mean or sum");
    return 0;
}

/* Gradients whose delay could divide anything. */
static int check_delays(const struct shmt_spec *spec, struct shmt_error *e) {
    const struct shmt_policy *p = &spec->policy;
    if (!spec->staleness_aware) return 0;
    if (shmt_policy_is_batched(p))
        return shmt_refuse(
            e,
            "staleness-aware divides the rate of a gradient by its delay, which is 0 where all wait for all: leave "
            "it out, or use --mode hogwild or ssp, --staleness N, or --mode backup with --late fold");
    if (p->quorum != SHMT_QUORUM_ALL && p->late == SHMT_LATE_DROP)
        return shmt_refuse(
            e,
            "staleness-aware divides gradients by their delay, and late ones are the only ones that have one here: "
            "use --late fold, or leave it out");
    if (shmt_policy_merges_replicas(p))
        return shmt_refuse(e,
                           "staleness-aware divides the rate of a gradient by its delay, but with copies of the parameters it "
                           "changes the copy that it was computed on: use --replicas one, or leave it out");
    if (shmt_policy_is_live(p) && spec->rule.kind == SHMT_RULE_FTRL)
        return shmt_refuse(e,
                           "ftrl computes each parameter's rate from its gradients, and staleness-aware cannot divide it: use "
                           "another optimizer");
    return 0;
}

/* A copy to read from is for who would read what others are changing; and a bound on its age is one where they are bound by no less. */
static int check_cache(const struct shmt_spec *spec, struct shmt_error *e) {
    const struct shmt_policy *p = &spec->policy;
    if (spec->cache_pulls == 0) return 0;
    if (spec->fits || !shmt_policy_is_live(p))
        return shmt_refuse(e,
                           "cache-pulls is for workers that read while others update, which none does here: use --mode async, "
                           "hogwild or ssp, or leave it out");
    if (shmt_policy_merges_replicas(p))
        return shmt_refuse(
            e, "cache-pulls gives each worker a copy to read from, and here it has one already: use --replicas one");
    if (spec->head_bytes > 0 || spec->n_guests > 0)
        return shmt_refuse(
            e, "cache-pulls is for a run's own workers, and a named store is for guests, too: leave out --name or cache-pulls");
    if (p->write == SHMT_WRITE_LOCKED && shmt_rule_check(&spec->rule, SHMT_WRITE_ATOMIC, NULL) < 0)
        return shmt_refuse(
            e,
            "cache-pulls copies a parameter's numbers one after the other, and in --write locked those of %s have "
            "to be of one moment: use --write racy",
            shmt_rule_name(spec->rule.kind));
    if (spec->cache_pulls > SHMT_MAX_CACHE_PULLS)
        return shmt_refuse(e, "cache-pulls is at most %d clocks", SHMT_MAX_CACHE_PULLS);
    if (p->staleness != SHMT_STALENESS_INF && p->staleness > spec->cache_pulls)
        return shmt_refuse(e,
                           "cache-pulls %u says that reads lack the last %u clocks at most, but workers may be %llu apart: use "
                           "--cache-pulls %llu or more, or a smaller --staleness",
                           spec->cache_pulls, spec->cache_pulls, (unsigned long long)p->staleness,
                           (unsigned long long)p->staleness);
    return 0;
}

int shmt_spec_check_exchange(const struct shmt_spec *spec, struct shmt_error *e) {
    const bool live = shmt_policy_is_live(&spec->policy), meets = shmt_policy_meets_to_merge(&spec->policy);
    const bool quorum = shmt_policy_has_rounds(&spec->policy) && spec->policy.quorum != SHMT_QUORUM_ALL;
    if ((!shmt_policy_is_batched(&spec->policy) && !live && !quorum) || spec->fits)
        return shmt_refuse(
            e,
            "over several hosts only --mode sync, allreduce, async, hogwild, ssp, local, node and backup are possible so far");
    if (spec->hosts.wire > SHMT_WIRE_BF16 || !(spec->hosts.top_k >= 0 && spec->hosts.top_k <= 1))
        return shmt_refuse(e, "hosts send floats as f32 or bf16, and a share from 0 to 1 of what has changed");
    if (meets && (spec->hosts.wire != SHMT_WIRE_F32 || (spec->hosts.top_k > 0 && spec->hosts.top_k < 1)))
        return shmt_refuse(
            e,
            "over several hosts copies that meet to merge are sent whole, as they are: leave out wire and top-k, "
            "or use --mode sync, allreduce, async, hogwild, ssp or node");
    if (!live && spec->hosts.top_k > 0 && spec->hosts.top_k < 1)
        return shmt_refuse(
            e,
            "top-k leaves changes for later rounds, and --mode sync and allreduce have none: every batch is one of all hosts' "
            "gradients. Use --mode async, hogwild, node or ssp, or --wire bf16 alone");
    return 0;
}

/* Of many hosts, one that applies what all have computed. */
static int check_hosts(const struct shmt_spec *spec, struct shmt_error *e) {
    const bool live = shmt_policy_is_live(&spec->policy), meets = shmt_policy_meets_to_merge(&spec->policy);
    const bool has_quorum = shmt_policy_has_rounds(&spec->policy) && spec->policy.quorum != SHMT_QUORUM_ALL;
    if (!shmt_spec_is_linked(spec)) return 0;
    if (spec->hosts.n > SHMT_MAX_HOSTS || spec->hosts.self >= spec->hosts.n)
        return shmt_refuse(e, "at most %d hosts, whose ranks begin with 0", SHMT_MAX_HOSTS);
    const int rc = shmt_spec_check_exchange(spec, e);
    if (rc < 0) return rc;
    if (has_quorum && spec->policy.quorum > SHMT_MAX_SEATS)
        return shmt_refuse(e, "over several hosts an update waits for at most %d workers", SHMT_MAX_SEATS);
    if (has_quorum && (spec->hosts.wire != SHMT_WIRE_F32 || (spec->hosts.top_k > 0 && spec->hosts.top_k < 1)))
        return shmt_refuse(
            e,
            "over several hosts the gradients of a quorum are sent whole, as they are: leave out wire and top-k, or "
            "use --mode sync, allreduce, async, hogwild, ssp or node");
    if (shmt_spec_most_passed(spec) + shmt_spec_pieces(spec) > UINT32_MAX) /* what a host tells of, one by one */
        return shmt_refuse(e, "over several hosts an epoch has at most 1431655765 items: use larger ones (--item)");
    if (meets && shmt_replicas_count(spec) > SHMT_MOST_COPIES)
        return shmt_refuse(e, "over several hosts copies of at most %d workers of each host are merged: use fewer (-w)",
                           SHMT_MOST_COPIES);
    if (live && shmt_policy_merges_replicas(&spec->policy) && spec->policy.merge == SHMT_MERGE_ELASTIC)
        return shmt_refuse(e,
                           "over several hosts copies are not merged elastically, as what each keeps for itself would be lost: "
                           "use --merge mean or sum");
    if (live && spec->staleness_aware)
        return shmt_refuse(e, "staleness-aware knows the delay of this host's updates alone: leave it out over several hosts");
    if (spec->count_lost)
        return shmt_refuse(e, "over several hosts lost updates are not counted: leave out --count-lost and --race-window");
    if (live && !meets && spec->rule.kind == SHMT_RULE_FTRL)
        return shmt_refuse(e,
                           "over several hosts ftrl is for --mode sync and local: its weights follow from state, which stays "
                           "each host's in others");
    if (spec->pauses.steps > 0) return shmt_refuse(e, "over several hosts snapshots are taken behind epochs, not within them");
    if (spec->n_guests > 0 || spec->head_bytes > 0 || spec->may_lack)
        return shmt_refuse(e, "over several hosts there are no guests, names, or workers that are missing so far");
    return 0;
}

/* Where it begins, and when it rests. */
static int check_place(const struct shmt_spec *spec, struct shmt_error *e) {
    if (spec->first_epoch >= spec->epochs || (spec->first_step > 0 && spec->first_step >= shmt_spec_steps(spec)))
        return shmt_refuse(e, "a run of %u epochs cannot start after epoch %u, step %llu", spec->epochs, spec->first_epoch,
                           (unsigned long long)spec->first_step);
    if (!spec->pauses.allowed && (spec->pauses.steps > 0 || spec->pauses.epochs > 0))
        return shmt_refuse(e, "a run that never pauses cannot take snapshots");
    return 0;
}

/* Rows that replicas do not hold are shared by those who hold different ones, so row locks would have to be, too. */
static int check_hot(const struct shmt_spec *spec, struct shmt_error *e) {
    const uint64_t unit = shmt_spec_hot_unit(spec);
    if (spec->hot_floats == 0) return 0;
    if (!shmt_policy_is_damped(&spec->policy) || spec->policy.write == SHMT_WRITE_LOCKED)
        return shmt_refuse(e, "replicas can hold a part of the parameters only with merge damped and write racy or atomic");
    if (spec->n_tables != 1 || spec->table[0].width != 1)
        return shmt_refuse(e, "replicas can hold a part of the parameters only if these are one table of width 1");
    if (spec->hot_floats % unit != 0 || spec->hot_floats >= (spec->table[0].rows - 1) / unit * unit)
        return shmt_refuse(e,
                           "replicas cannot hold %u of %llu parameters: the number must be a multiple of %llu, and at least "
                           "that many must remain shared",
                           spec->hot_floats, (unsigned long long)spec->table[0].rows, (unsigned long long)unit);
    return 0;
}

int shmt_spec_check(const struct shmt_spec *spec, struct shmt_error *e) {
    int rc = shmt_policy_check(&spec->policy, shmt_spec_all_workers(spec), e);
    if (rc == 0) rc = check_work(spec, e);
    if (rc == 0) rc = check_place(spec, e);
    if (rc == 0) rc = check_hosts(spec, e);
    if (rc == 0) rc = shmt_rule_check_policy(&spec->rule, &spec->policy, e);
    if (rc == 0) rc = shmt_merge_check(&spec->rule, &spec->policy, e);
    if (rc == 0) rc = check_delays(spec, e);
    if (rc == 0) rc = check_cache(spec, e);
    if (rc == 0) rc = check_tables(spec, e);
    if (rc == 0) rc = check_hot(spec, e);
    return rc;
}
