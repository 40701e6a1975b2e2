/* The engine of live modes with replicas: a push is an update of one's own replica at once; replicas are merged with the
 * master, which is what the application reads and what is evaluated, every H clocks.
 *
 * With staleness 0 all meet to merge: everybody comes after so many clocks, or when it has no work, and then to every merge
 * until nobody has. Two meetings each time: "all are here" and "all slices are merged"; whether anybody still works is read
 * between them, where nobody changes it, so all decide alike.
 *
 * With staleness above 0 a seat merges its replica by itself, and gate.clock counts stretches of H clocks. Seats that
 * share a replica take turns at the ends of theirs, and merge all of it: so nothing of it waits for one that is slow, or has
 * no work left. The bound is on stretches, which are as much work for every seat, however many share its replica: before a
 * seat ends its k-th one, and merges if it is its turn, it waits until all who have work have ended k - s. The master has
 * k - s stretches then of a seat with a replica to itself, and of one of n that share theirs, which merges at every n-th end,
 * k - s - n + 1 at least.
 *
 * When an epoch is over, all meet for a last merge, so that the master has everything, and replicas equal it (elastic: keep
 * what is theirs).
 *
 * Over many hosts (far_merges.c) all of their workers meet: the link comes last to the first of the two meetings, and has brought what
 * the copies of all hosts come to to the master; between the two each seat brings a slice of this host's copies to it.
 *
 * Replicas may hold a part of the parameters only (windows.c). Pushes to all others are updates of the master itself.
 *
 * Replicas are made of the master before the first piece is dealt; a guest's when it is let in, by the chief, while the master
 * rests. A guest that dies ends the run, as in `aggregate`: its slices of the next merge would stay undone. */
#include "backends/shm/replicas/replicas_priv.h"

#include <string.h>

#include "base/checked.h"
#include "base/own.h"
#include "base/point.h"
#include "ps/meter.h"
#include "ps/replicas.h"
#include "update/kernels.h"

/* ---- who takes part ---- */

/* Updates that others have made of my replica, or (`foreign`) of the other ones. relaxed: numbers for a measurement */
static uint64_t updates_of(const struct shmt_shm_seat *p, bool foreign) {
    const struct shmt_shm_merging *m = p->merging;
    uint64_t sum = 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++)
        if ((m->of_seat[seat] != m->mine) == foreign && seat != p->seat.rank)
            sum += load_relaxed(&p->store->slot[seat].counters.updates);
    return sum;
}

/* My replica has what the others have brought to the master until now. */
static void note_merge(struct shmt_shm_seat *p) {
    if (!p->store->spec.unmeasured) store_relaxed(&p->slot->merged, updates_of(p, true)); /* a number for a measurement */
}

/* In one pass over the seats: all workers do this, in every epoch. */
static void find_sharers(struct shmt_shm_seat *p) {
    struct shmt_shm_merging *m = p->merging;
    const uint32_t n_replicas = p->store->layout.n_replicas;
    m->n_present = m->index = 0;
    memset(m->n_seats, 0, n_replicas * sizeof *m->n_seats);
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++) {
        if (!shmt_shm_takes_part(p, seat)) continue;
        m->n_seats[m->of_seat[seat]]++;
        if (m->of_seat[seat] == m->mine && seat < p->seat.rank) m->index++;
    }
    for (uint32_t replica = 0; replica < n_replicas; replica++)
        if (m->n_seats[replica] > 0) m->present[m->n_present++] = replica;
    m->n_sharers = m->n_seats[m->mine];
}

/* Behind the meeting that begins an epoch. */
static void share(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    const struct shmt_spec *spec = &store->spec;
    struct shmt_shm_merging *m = p->merging;
    find_sharers(p);
    const struct shmt_cover *cover = &store->layout.cover;
    m->words.n = 1 + store->layout.planes;
    for (uint32_t word = 0; word < m->words.n; word++) {
        m->how_trained[word] = shmt_merging_of(spec->policy.merge, spec->rule.kind, word, m->n_present);
        m->how_statistic[word] = word ? m->how_trained[word] : shmt_merging_statistic(spec->policy.merge, m->n_present);
        m->words.how[word] = m->how_trained[word];
        m->words.master[word] = shmt_shm_master(store, word);
        m->words.replica[word] = shmt_shm_replica(store, m->mine, word);
        m->words.base[word] = shmt_shm_base(store, m->mine, word);
    }
    m->tail_words = m->words;
    for (uint32_t t = 0; t < spec->n_tables; t++) m->has_statistics |= spec->tuning[t].role == SHMTRAIN_STATISTIC;
    for (uint32_t word = 0; word < m->words.n; word++) m->tail_words.master[word] += cover->tail - cover->hot;
    p->first = p->done;
    if (!m->begun) note_merge(p);
}

/* Before the first piece is dealt: the run's own seats copy the master, each a part of its replica. */
static void make_my_part(struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    const struct shmt_shm_merging *m = p->merging;
    uint32_t index = 0, n = 0;
    uint64_t from, to;
    for (uint32_t seat = 0; seat < spec->n_seats - spec->n_guests; seat++) {
        if (m->of_seat[seat] != m->mine) continue;
        if (seat < p->seat.rank) index++;
        n++;
    }
    shmt_slice(p->store->layout.cover.n, index, n, &from, &to);
    shmt_shm_replica_begin(p->store, m->mine, from, to);
}

/* An earlier life was at work in this epoch. What it had done by then is counted again; merges that it had missed or not
 * noted are made up for by the next one. */
static void go_on(struct shmt_shm_seat *p) {
    const struct shmt_policy *policy = &p->store->spec.policy;
    struct shmt_shm_merging *m = p->merging;
    m->unsure = true;
    m->begun = p->now.stage > SHMT_STAGE_MAKE;
    m->training = p->now.stage >= SHMT_STAGE_WORK && p->now.stage < SHMT_STAGE_END;
    p->first = p->done = m->completed = shmt_shm_count_done(p);
    if (!m->training) return;
    p->first = p->now.first;
    const uint64_t clocks = p->done - p->first;
    m->examples = clocks * p->store->spec.item;
    if (shmt_policy_merges_together(policy)) return;
    const uint64_t stretch = shmt_replicas_stretch(policy);
    p->clock += clocks / stretch - (p->now.done - p->now.first) / stretch;
    SHMT_POINT("replica:before");
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
}

static void close_window(void *merging) { shmt_segment_close_window(&((struct shmt_shm_merging *)merging)->window); }

static int enter(struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    const uint32_t n_replicas = p->store->layout.n_replicas;
    struct shmt_shm_merging *m = p->merging = shmt_own_closed_by(sizeof *m, close_window);
    if (m) {
        m->of_seat = shmt_own_calloc(spec->n_seats, sizeof *m->of_seat);
        m->present = shmt_own_calloc(n_replicas, sizeof *m->present);
        m->n_seats = shmt_own_calloc(n_replicas, sizeof *m->n_seats);
        m->copy = shmt_own_calloc(n_replicas, sizeof *m->copy);
    }
    if (!m || !m->of_seat || !m->present || !m->n_seats || !m->copy)
        return shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY, "not enough memory for a list of %u replicas", n_replicas);
    shmt_replicas_of_all(spec, m->of_seat);
    m->mine = m->of_seat[p->seat.rank];
    m->redo = shmt_shm_redo(p->store, p->seat.rank);
    int rc = shmt_shm_window_make(p);
    if (rc == 0 && shmt_policy_is_damped(&spec->policy)) rc = shmt_shm_tiers_make(p);
    if (rc < 0) return rc;
    shmt_shm_deal_begin(p);
    if (p->guest) return 0; /* what it shares in is found when it is let in */
    if (!p->revived || p->now.stage < SHMT_STAGE_MAKE || (p->now.stage == SHMT_STAGE_MAKE && !p->met)) make_my_part(p);
    share(p);
    if (p->revived) go_on(p);
    return 0;
}

static void leave(struct shmt_shm_seat *p) {
    if (!p->merging) return;
    shmt_own_free(p->merging->of_seat);
    shmt_own_free(p->merging->present);
    shmt_own_free(p->merging->n_seats);
    shmt_own_free((void *)p->merging->copy);
    shmt_shm_tiers_free(p->merging);
    close_window(p->merging);
    shmt_own_free(p->merging);
}

/* By the chief, while the master rests: a replica that nobody has takes up what it is. */
static void welcome(struct shmt_shm_seat *chief, uint32_t rank) {
    const struct shmt_store *store = chief->store;
    const struct shmt_shm_merging *m = chief->merging;
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        if (m->of_seat[seat] == m->of_seat[rank] && shmt_shm_is_present(store, seat)) return;
    shmt_shm_replica_begin(store, m->of_seat[rank], 0, store->layout.cover.n);
}

/* ---- merging ---- */

/* Over many hosts the link's word says whether others' workers have work (far_merges.c); it, too, waits for a last merge. */
static bool others_work(const struct shmt_store *store) {
    return shmt_spec_merges_over_hosts(&store->spec) && load_relaxed(&store->front[store->spec.n_seats].working) != 0;
}

/* Behind the meeting before a merge: nobody changes these words until the next one. */
static bool anybody_works(const struct shmt_shm_seat *p) {
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++) {
        /* relaxed: published by the meeting */
        if (shmt_shm_takes_part(p, seat) && load_relaxed(&p->store->front[seat].working) != 0) return true;
    }
    return others_work(p->store);
}

/* Around every merge, whoever makes it with whom. */
static void merge(struct shmt_shm_seat *p, void (*how)(struct shmt_shm_seat *p, bool whole), bool whole) {
    _Atomic uint64_t *const before = p->seat.meter;
    shmt_meter_turn(&p->seat, &p->slot->counters.merge_ns);
    how(p, whole);
    p->merging->unsure = false;
    bump_relaxed(&p->slot->counters.merges, 1);
    shmt_meter_turn(&p->seat, before);
}

/* Between the two meetings. What was found of those who work is noted with it: they may have gone on by the time at which another
 * life of mine asks. */
static void record_merge(struct shmt_shm_seat *p) { p->now.flag = anybody_works(p); }

static void merge_my_slice(struct shmt_shm_seat *p) {
    merge(p, shmt_shm_merge_together, p->now.flag == 0);
    note_merge(p);
}

/* Those who merge alone meet at the end of an epoch only. */
static _Atomic uint64_t *wait_of(const struct shmt_shm_seat *p) {
    return shmt_policy_merges_together(&p->store->spec.policy) ? shmt_shm_wait_clock(p) : shmt_shm_wait_epoch(p);
}

/* All are here, and then all slices are merged. 1: there will be another merge in this epoch, 0: it was the last one. */
static int meet_to_merge(struct shmt_shm_seat *p) {
    int rc = shmt_shm_pass_stage(p, SHMT_STAGE_COME);
    if (rc == 0) rc = shmt_shm_pass_stage(p, SHMT_STAGE_MERGE);
    return rc < 0 ? rc : p->now.flag;
}

static void merge_mine(struct shmt_shm_seat *p, bool all) {
    if (shmt_policy_is_damped(&p->store->spec.policy))
        shmt_shm_merge_tiers(p, all);
    else
        shmt_shm_merge_alone(p);
}

/* All of my replica, or of a damped one those tiers that are due, but behind a death all, too. Others' updates are seen when it
 * is merged whole. */
static void merge_by_myself(struct shmt_shm_seat *p, bool all) {
    struct shmt_shm_merging *m = p->merging;
    const bool damped = shmt_policy_is_damped(&p->store->spec.policy);
    all |= m->unsure;
    if (damped) m->turns++;
    if (!damped || all || shmt_shm_tier_is_due(p, SHMT_SHM_TIERS - 1)) note_merge(p);
    merge(p, merge_mine, all);
}

/* I have completed another H clocks. All who have work are close enough behind first, so that what I find in the
 * master is as fresh as the policy asks for. */
static int end_stretch(struct shmt_shm_seat *p) {
    const struct shmt_shm_merging *m = p->merging;
    const int rc = shmt_shm_wait_for_slowest(p, shmt_policy_wait_for(&p->store->spec.policy, p->clock + 1));
    if (rc < 0) return rc;
    if (shmt_replicas_turn(&p->store->spec.policy, p->done - p->first, m->index, m->n_sharers)) merge_by_myself(p, false);
    p->clock++;
    shmt_gate_reach(&p->clocks, SHMT_GATE_CLOCK, p->clock);
    return 0;
}

/* I have no more work in this epoch: nobody waits for my clock from now on, so what I have pushed must be in the master. */
static int finish_epoch(struct shmt_shm_seat *p) {
    int more = 1;
    if (!p->revived) { /* else an earlier life was on its way to a merge already */
        if (!shmt_policy_merges_together(&p->store->spec.policy)) merge_by_myself(p, true);
        shmt_shm_stop_counting(p);
    }
    /* Alone: once, because nobody comes who has work. A damaged store may say for ever that somebody has, and is here.
     * relaxed: a flag that carries nothing but itself */
    while (more == 1) more = load_relaxed(&p->store->control->abort) ? SHMTRAIN_E_STOPPED : meet_to_merge(p);
    p->merging->training = false;
    return more;
}

/* An earlier life had come to a merge: I go on with it, and then with my work, if I had any. */
static int resume_merge(struct shmt_shm_seat *p) {
    if (load_relaxed(&p->front->working) == 0) return finish_epoch(p); /* relaxed: my own word */
    const int rc = meet_to_merge(p);
    return rc < 0 ? rc : 1;
}

/* ---- pieces ---- */

static int begin(struct shmt_shm_seat *p) {
    struct shmt_shm_merging *m = p->merging;
    /* what is to be done of it was when I entered; all replicas are made */
    const int rc = m->begun || p->guest ? 0 : shmt_shm_pass_stage(p, SHMT_STAGE_MAKE);
    m->begun = true;
    m->training = rc == 0;
    return rc < 0 ? rc : 1;
}

/* Others see it now, and not only when more has come, or nothing will. */
static void idle(struct shmt_shm_seat *p) {
    struct shmt_shm_merging *m = p->merging;
    if (m->idle_at != m->completed) merge_by_myself(p, true);
    m->idle_at = m->completed;
}

static int claim(struct shmt_shm_seat *p) {
    const int rc = shmt_shm_deal(p);
    return rc == 0 ? finish_epoch(p) : rc;
}

static int publish(struct shmt_shm_seat *p, struct shmtrain_fate *out) {
    const struct shmt_policy *policy = &p->store->spec.policy;
    struct shmt_shm_merging *m = p->merging;
    shmt_ledger_done(&p->store->ledger[p->piece], p->epoch, p->work.n);
    m->completed++;
    m->examples += p->work.n;
    *out = (struct shmtrain_fate){.clock = m->completed, .applied = (uint32_t)p->work.n};
    p->done++;
    if (!shmt_policy_merge_due(policy, p->done - p->first)) return 0;
    const bool together = shmt_policy_merges_together(policy);
    const int rc = together ? meet_to_merge(p) : end_stretch(p);
    if (rc >= 0 && together) (void)shmt_shm_begin_stage(p, SHMT_STAGE_WORK);
    return rc < 0 ? rc : 0;
}

/* Who only looks, between two epochs or before the first, looks at the master. A replica that holds a part is looked at through
 * the window. */
static void memory(const struct shmt_shm_seat *p, struct shmt_shm_memory *out) {
    const struct shmt_store *store = p->store;
    const struct shmt_shm_merging *m = p->merging;
    float *const view = m->window.base ? (float *)(void *)m->window.base : shmt_shm_replica(store, m->mine, 0);
    float *const weight = m->training ? view : store->weight;
    float *const state = m->training ? view + store->layout.flat.n : store->state;
    *out = (struct shmt_shm_memory){.weight = weight, .sink = weight, .state = store->layout.planes ? state : NULL};
}

/* ---- delay ---- */

static uint64_t updates(const struct shmt_shm_seat *p) { return updates_of(p, false); }

/* Of those who share my replica: since I pulled. Of the others: since the last merge of my replica, whoever made it. (What they
 * had done by then, but not merged, is not counted.) */
static uint64_t missed(const struct shmt_shm_seat *p) {
    const struct shmt_shm_merging *m = p->merging;
    const uint64_t now = updates_of(p, true);
    uint64_t merged = 0;
    for (uint32_t seat = 0; seat < p->store->spec.n_seats; seat++)
        if (m->of_seat[seat] == m->mine)
            merged = shmt_max_u64(merged, load_relaxed(&p->store->slot[seat].merged)); /* relaxed: as above */
    return updates(p) - p->others + (now > merged ? now - merged : 0);
}

const struct shmt_shm_engine SHMT_SHM_REPLICAS = {
    .stage = {[SHMT_STAGE_MAKE] = {.wait = shmt_shm_wait_epoch},
              [SHMT_STAGE_COME] = {.wait = wait_of, .resume = resume_merge},
              [SHMT_STAGE_MERGE] = {.record = record_merge, .work = merge_my_slice, .wait = wait_of, .resume = resume_merge}},
    .enter = enter,
    .leave = leave,
    .share = share,
    .begin = begin,
    .claim = claim,
    .idle = idle,
    .memory = memory,
    .publish = publish,
    .align = shmt_shm_align_clocks,
    .updates = updates,
    .missed = missed,
    .welcome = welcome};
