/* See seeds_watch.h. */
#include "seeds_watch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/shm/rounds/rounds_priv.h"
#include "backends/shm/shm.h"
#include "seeds_shrink.h"

#define ROUNDING 1e-5 /* of sums of three f32 that are at most 1 */

/* One worker's numbers. */
struct seen {
    uint64_t pieces, examples, dropped, folded; /* of the run */
    uint64_t pushed, clock;                     /* pieces of the epoch; the last clock that it was told, in it */
    uint64_t got_in, listed;                    /* gradients that it was told are in an update; that lists of rounds have */
    uint32_t epoch;
};

static struct {
    struct run *run;
    const struct shmt_policy *policy;
    struct seen seat[SEEDS_MOST_SEATS];
    uint64_t pushes;                                   /* that are over */
    uint64_t closed;                                   /* rounds */
    uint64_t dropped[SEEDS_MOST_EPOCHS];               /* examples */
    uint32_t ended;                                    /* epochs */
    double at_end[SEEDS_MOST_EPOCHS];                  /* table 0 */
    float row[SEEDS_MOST_EPOCHS][SEEDS_MOST_EXAMPLES]; /* table 1, at the ends of epochs */
    double share[SEEDS_MOST_EXAMPLES];                 /* what an epoch adds to each, where the piece says it */
} g;

/* Rounds bring updates to slices of so many floats at least, and there are to be some. */
#define SLICES_ROWS 3000

void seeds_watch_tables(struct shmt_spec *spec) {
    if (shmt_policy_has_rounds(&spec->policy)) spec->table[0].rows = spec->l2_rows[0] = SLICES_ROWS;
    spec->placement.n_nodes = 2; /* with `replicas node` a copy each, some of several seats */
    for (uint32_t seat = 0; seat < spec->n_seats; seat++) spec->placement.seat_node[seat] = seat % 2;
    spec->n_tables = 2;
    strcpy(spec->table[1].name, "own");
    spec->table[1].rows = spec->n_examples;
    spec->table[1].width = 1;
    spec->l2_rows[1] = spec->n_examples;
}

void seeds_watch_begin(struct run *run) {
    memset(&g, 0, sizeof g);
    g.run = run;
    g.policy = &run->spec.policy;
}

/* Each update adds 1, whoever's gradients it consists of; not so where replicas that all have changed are averaged. */
static bool adds_up(void) { return !shmt_policy_merges_replicas(g.policy) || g.policy->merge != SHMT_MERGE_MEAN; }

/* ---- what a worker pulls ---- */

static double before_epoch(uint32_t epoch) { return epoch > 0 ? g.at_end[epoch - 1] : 0; }

/* Pieces of the others that a replica of my own must have: it was merged at the end of my last stretch, when all who have work had ended
 * `staleness` stretches fewer at least. */
static double merged_of_others(uint32_t me) {
    const uint64_t every = g.policy->merge_every, stretches = g.seat[me].pushed / every;
    double sum = 0;
    if (g.policy->replicas != SHMT_REPLICAS_WORKER || shmt_policy_is_damped(g.policy) || stretches <= g.policy->staleness)
        return 0;
    for (uint32_t other = 0; other < g.run->spec.n_seats; other++) {
        const struct seen *seen = &g.seat[other];
        if (other == me || seen->epoch != g.seat[me].epoch) continue;
        sum += (double)shmt_min_u64(seen->pushed, (stretches - g.policy->staleness) * every);
    }
    return sum;
}

/* So many updates it must see. */
static double least_seen(uint32_t me, const struct shmtrain_work *work) {
    const struct seen *seen = &g.seat[me];
    const double before = before_epoch(work->epoch);
    if (shmt_policy_is_batched(g.policy)) return (double)work->step;
    if (shmt_policy_has_rounds(g.policy)) return fmax(before, (double)seen->clock - (double)g.policy->staleness);
    if (!shmt_policy_merges_replicas(g.policy)) return (double)g.pushes;
    if (g.policy->merge == SHMT_MERGE_MEAN) return before;
    return before + (double)seen->pushed + merged_of_others(me);
}

static void check_pulled(uint32_t me, const struct shmtrain_work *work, double found) {
    const double least = least_seen(me, work), rounding = ROUNDING * (1 + least);
    if (found < least - rounding || (shmt_policy_is_batched(g.policy) && found > least + rounding))
        seeds_fail("a worker sees %.9g updates where it must see %.9g", found, least);
}

/* Its own rows are as the last epoch has left them. */
static int check_own(shmtrain_session *s, const struct shmtrain_work *work) {
    float own[SEEDS_MOST_EXAMPLES];
    const int rc = shmtrain_pull(s, 1, work->first, work->n, own);
    for (uint64_t i = 0; i < work->n && rc == 0; i++)
        if (own[i] != (work->epoch > 0 ? g.row[work->epoch - 1][work->first + i] : 0))
            seeds_fail("a row is not as the last epoch has left it, and nobody had it since");
    return rc;
}

/* ---- a piece ---- */

/* Nobody is further ahead of the slowest than the bound allows; of replicas that merge it is on stretches. */
static void check_bound(uint32_t me, uint32_t epoch) {
    const uint64_t each = shmt_policy_merges_replicas(g.policy) ? g.policy->merge_every : 1;
    if (!shmt_policy_is_live(g.policy) || g.policy->staleness == SHMT_STALENESS_INF) return;
    for (uint32_t other = 0; other < g.run->spec.n_seats; other++) {
        const struct seen *seen = &g.seat[other];
        const uint64_t pushed =
            seen->epoch == epoch ? seen->pushed : 0; /* who has no item yet will have one, or there is none left */
        if (g.seat[me].pushed / each > pushed / each + g.policy->staleness)
            seeds_fail("a worker is further ahead than the staleness bound allows");
    }
}

static void begin_piece(uint32_t me, const struct shmtrain_work *work) {
    struct seen *seen = &g.seat[me];
    if (seen->epoch != work->epoch) seen->pushed = seen->clock = 0;
    seen->epoch = work->epoch;
    seen->pieces++;
    seen->examples += work->n;
    check_bound(me, work->epoch);
    const uint64_t batch = SEEDS_BATCH, first = work->first / batch * batch; /* whole, but the last one of an epoch */
    const uint64_t n = shmt_policy_is_batched(g.policy) ? shmt_min_u64(batch, g.run->spec.n_examples - first) : work->n;
    for (uint64_t i = work->first; i < work->first + work->n; i++) g.share[i] = 1 / (double)n;
}

static void end_piece(uint32_t me, const struct shmtrain_work *work, const struct shmtrain_fate *fate) {
    struct seen *seen = &g.seat[me];
    const bool late = fate->dropped + fate->folded > 0;
    if (fate->applied + fate->dropped + fate->folded != work->n)
        seeds_fail("of some examples a worker is told nothing, or twice");
    if (fate->dropped > 0 && g.policy->late != SHMT_LATE_DROP) seeds_fail("a late gradient is dropped that was to be folded");
    if (late && g.policy->quorum == SHMT_QUORUM_ALL) seeds_fail("a gradient is late where all are waited for");
    if (fate->clock < seen->clock) seeds_fail("a worker's clock goes back");
    seen->clock = fate->clock;
    seen->dropped += fate->dropped;
    seen->folded += fate->folded;
    seen->got_in += fate->dropped == 0;
    g.dropped[work->epoch] += fate->dropped;
    if (g.policy->quorum != SHMT_QUORUM_ALL && seen->listed != seen->got_in)
        seeds_fail("a gradient is in more or fewer updates than its worker is told");
}

int seeds_watch_piece(shmtrain_session *s, const struct shmtrain_work *work) {
    const uint32_t me = s->seat->rank;
    float weights[2], all[2] = {-(float)work->n, 0}, own[SEEDS_MOST_EXAMPLES];
    struct shmtrain_fate fate = {0};
    int rc;
    begin_piece(me, work);
    for (uint64_t i = 0; i < work->n; i++) own[i] = -1;
    if ((rc = shmtrain_pull(s, 0, 0, 2, weights)) < 0 || (rc = check_own(s, work)) < 0) return rc;
    check_pulled(me, work, (double)weights[0]);
    if ((rc = shmtrain_push(s, 0, 0, 2, all)) < 0 || (rc = shmtrain_push(s, 1, work->first, work->n, own)) < 0) return rc;
    g.pushes++;
    g.seat[me].pushed++;
    if ((rc = shmtrain_clock(s, &fate)) < 0) return rc;
    end_piece(me, work, &fate);
    return 0;
}

/* ---- rounds ---- */

/* The list of the round that has just been closed: who closed it has not gone on yet. */
static void check_list(const struct shmt_store *store, uint64_t word) {
    const struct shmt_shm_list *list = &store->offer[(word & 0xffff) - 1].list[(g.closed - 1) % 2];
    uint32_t in_time = 0, late = 0, others = 0;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++) {
        const bool in = load_relaxed(&list->in[seat / 64]) >> seat % 64 & 1,
                   is_late = load_relaxed(&store->offer[seat].late) != 0;
        in_time += in && !is_late;
        late += in && is_late;
        others += !in && load_relaxed(&store->front[seat].working) != 0;
        g.seat[seat].listed += in;
    }
    if (in_time + late == 0) seeds_fail("an update is of no gradient");
    if (in_time < g.policy->quorum && others > 0) seeds_fail("an update is of fewer gradients than its quorum");
}

void seeds_watch_point(void) {
    if (!g.run || g.policy->quorum == SHMT_QUORUM_ALL) return;
    const uint64_t word = load_relaxed(&g.run->store->control->round), closed = word >> SHMT_RANK_BITS;
    if (closed == g.closed) return;
    if (closed != g.closed + 1) seeds_fail("a round is closed twice, or left out");
    g.closed = closed;
    check_list(g.run->store, word);
}

/* ---- the end of an epoch ---- */

/* Rounds: an update of N examples adds 1 / N to as many rows. What was in two updates, or in a part of one, is not counted so. */
static void check_updates(const double *added) {
    for (uint64_t i = 0; i < g.run->spec.n_examples; i++) {
        uint64_t as_many = 0;
        for (uint64_t j = 0; j < g.run->spec.n_examples; j++) as_many += fabs(added[i] - added[j]) < ROUNDING / 4;
        const double updates = (double)as_many * added[i];
        if (added[i] != 0 && fabs(updates - round(updates)) > 0.01)
            seeds_fail("an update is not of whole gradients that are in no other");
    }
}

static void check_rows(uint32_t epoch) {
    uint64_t none = 0;
    double each[SEEDS_MOST_EXAMPLES];
    for (uint64_t i = 0; i < g.run->spec.n_examples; i++) {
        const double added = each[i] = (double)g.row[epoch][i] - (epoch > 0 ? (double)g.row[epoch - 1][i] : 0);
        none += added == 0;
        if (added < 0 || added > 1 + ROUNDING) seeds_fail("an example's gradient is in the parameters more than once");
        if (shmt_policy_has_rounds(g.policy)) continue; /* which update it is in says no worker */
        if (fabs(added / g.share[i] - 1) > 1000 * ROUNDING)
            seeds_fail("of example %llu's gradient %.6g is in the parameters behind its epoch", (unsigned long long)i,
                       added / g.share[i]);
    }
    if (none != g.dropped[epoch])
        seeds_fail("%llu examples are in no update, and %llu were dropped", (unsigned long long)none,
                   (unsigned long long)g.dropped[epoch]);
    if (shmt_policy_has_rounds(g.policy)) check_updates(each);
}

static void check_sum(double updates) {
    const double applied = g.at_end[g.ended];
    if (adds_up() ? fabs(applied - updates) > ROUNDING * updates : applied > updates)
        seeds_fail("%.9g updates, of which %.9g are in the parameters", updates, applied);
}

int seeds_watch_epoch_end(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    uint64_t done = 0;
    (void)s;
    if (epoch < g.ended) return 0; /* looked at by who came here first; nobody goes on before all have been here */
    for (uint32_t seat = 0; seat < run->spec.n_seats; seat++) done += g.seat[seat].examples;
    if (done != run->spec.n_examples * (epoch + 1))
        seeds_fail("an epoch ends, and %llu of %llu examples are dealt", (unsigned long long)done,
                   (unsigned long long)run->spec.n_examples * (epoch + 1));
    g.at_end[epoch] = (double)first_float(run);
    assert_int_equal(run->k->backend->store->read(run->store, 1, 0, run->spec.n_examples, g.row[epoch]), 0);
    check_sum((double)updates_made(run));
    check_rows(epoch);
    g.ended = epoch + 1;
    return 0;
}

/* ---- the end ---- */

void seeds_watch_end(void) {
    uint64_t merges = 0;
    for (uint32_t seat = 0; seat < g.run->spec.n_seats; seat++) {
        const struct shmt_counters *c = g.run->k->backend->store->counters(g.run->store, seat);
        const struct seen *seen = &g.seat[seat];
        if (load_relaxed(&c->examples) != seen->examples)
            seeds_fail("a worker's counter has not the examples that it was dealt");
        if (load_relaxed(&c->dropped) != seen->dropped || load_relaxed(&c->folded) != seen->folded)
            seeds_fail("a worker's counters of late examples are not what it was told");
        if (shmt_policy_is_live(g.policy) && load_relaxed(&c->updates) != seen->pieces)
            seeds_fail("a worker's counter has not the updates that it has pushed");
        if (seat > 0 && shmt_policy_merges_together(g.policy) && load_relaxed(&c->merges) != merges)
            seeds_fail("all meet to merge, and have not merged as often");
        merges = load_relaxed(&c->merges);
    }
    if (g.ended != g.run->spec.epochs) seeds_fail("the run ends before its last epoch");
}
