/* Damped merging by tiers (update/merge.h has the shares): the lines that count most are merged most often. Called by replicas.c
 * where the policy merges damped.
 *
 * A line of the parameters is as hot as the highest curvature in it: the product of how often its features occur and how large
 * they are. What all workers change all the time must not drift apart, and there is little of it; the rest travels seldom:
 *
 *     tier     lines                              merged at every ...
 *     hot      the HOT_LINES first, and the bias  turn of the seat
 *     middle   the MIDDLE_LINES behind them       fourth part of what follows
 *     rest     all others                         16th, or more often (shmt_replicas_merge_all_every)
 *
 * A tier is a list of runs: neighbouring lines within a block of the master, so that one lock is taken for each. Seats begin at
 * different turns and at different runs, so that those who merge at one time seldom meet. With a finite staleness every turn
 * merges all tiers: what the bound promises is of the whole model.
 *
 * Where replicas hold a part of the parameters only, so do the tiers; lines are counted as replicas hold them. The tiers follow
 * from the curvatures alone, which rest while workers live, so all seats find the same. */
#include <stdlib.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "base/checked.h"
#include "base/own.h"
#include "ps/replicas.h"
#include "update/kernels.h"

#define LINE_FLOATS  16
#define BLOCK_LINES  (SHMT_MERGE_FLOATS / LINE_FLOATS)
#define HOT_LINES    64
#define MIDDLE_LINES 512
#define MOST_CHOSEN  (HOT_LINES + MIDDLE_LINES)

/* ---- which lines are hot ---- */

struct line {
    uint64_t at;
    float heat;
};

/* The hottest lines so far, the least of them first: a heap. */
struct hottest {
    struct line line[MOST_CHOSEN];
    uint32_t n;
};

static void sink(struct hottest *h) {
    for (uint32_t i = 0, child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->line[child + 1].heat < h->line[child].heat) child++;
        if (h->line[i].heat <= h->line[child].heat) return;
        const struct line line = h->line[i];
        h->line[i] = h->line[child];
        h->line[child] = line;
    }
}

static void rise(struct hottest *h) {
    for (uint32_t i = h->n - 1; i > 0 && h->line[i].heat < h->line[(i - 1) / 2].heat; i = (i - 1) / 2) {
        const struct line line = h->line[i];
        h->line[i] = h->line[(i - 1) / 2];
        h->line[(i - 1) / 2] = line;
    }
}

static void offer(struct hottest *h, struct line line) {
    if (h->n < MOST_CHOSEN) {
        h->line[h->n++] = line;
        rise(h);
    } else if (line.heat > h->line[0].heat) {
        h->line[0] = line;
        sink(h);
    }
}

static float heat_of(const float *curvature) {
    float most = 0;
    for (uint32_t i = 0; i < LINE_FLOATS; i++) most = curvature[i] > most ? curvature[i] : most;
    return most;
}

static int hotter_first(const void *a, const void *b) {
    const struct line *x = a, *y = b;
    if (x->heat != y->heat) return x->heat > y->heat ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int in_order(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The row that every example has stands last, and is not regularised; UINT64_MAX: there is none. */
static uint64_t bias_line(const struct shmt_shm_seat *p) {
    const struct shmt_spec *spec = &p->store->spec;
    if (spec->l2_rows[0] >= spec->table[0].rows) return UINT64_MAX;
    const uint64_t held = shmt_cover_of(&p->store->layout.cover, p->store->layout.flat.start[0] + spec->l2_rows[0]);
    return held == UINT64_MAX ? held : held / LINE_FLOATS;
}

/* Lines of the hot and the middle tier, each in order: chosen[0 .. hot) and chosen[hot .. n). */
struct chosen {
    uint64_t line[MOST_CHOSEN + 1];
    uint32_t hot, n;
};

static void choose(const struct shmt_shm_seat *p, struct hottest *h, struct chosen *out) {
    const struct shmt_store *store = p->store;
    const uint64_t bias = bias_line(p);
    h->n = 0;
    for (uint64_t line = 0; line < store->layout.cover.n / LINE_FLOATS; line++) {
        const float heat = heat_of(store->curvature + line * LINE_FLOATS);
        if (heat > 0 && line != bias) offer(h, (struct line){line, heat});
    }
    qsort(h->line, h->n, sizeof *h->line, hotter_first);
    out->n = out->hot = 0;
    if (bias != UINT64_MAX) out->line[out->n++] = bias;
    for (uint32_t i = 0; i < h->n; i++) {
        if (i == HOT_LINES) out->hot = out->n;
        out->line[out->n++] = h->line[i].at;
    }
    if (h->n <= HOT_LINES) out->hot = out->n;
    qsort(out->line, out->hot, sizeof *out->line, in_order);
    qsort(out->line + out->hot, out->n - out->hot, sizeof *out->line, in_order);
}

/* ---- runs ---- */

/* Lines from .. to - 1, cut where blocks end; those that continue the last run of a block lengthen it. */
static void add_lines(struct shmt_shm_tier *tier, uint64_t from, uint64_t to) {
    for (uint64_t at = from, end; at < to; at = end) {
        struct shmt_shm_run *last = tier->n > 0 ? &tier->run[tier->n - 1] : NULL;
        end = shmt_min_u64(to, (at / BLOCK_LINES + 1) * BLOCK_LINES);
        if (last && last->to == at * LINE_FLOATS && at % BLOCK_LINES != 0)
            last->to = end * LINE_FLOATS;
        else
            tier->run[tier->n++] = (struct shmt_shm_run){at * LINE_FLOATS, end * LINE_FLOATS, 0};
    }
}

static void fill_tiers(struct shmt_shm_seat *p, struct chosen *chosen) {
    struct shmt_shm_tier *tier = p->merging->tier;
    const uint64_t lines = p->store->layout.cover.n / LINE_FLOATS;
    uint64_t at = 0;
    for (uint32_t i = 0; i < chosen->n; i++) add_lines(&tier[i < chosen->hot ? 0 : 1], chosen->line[i], chosen->line[i] + 1);
    qsort(chosen->line, chosen->n, sizeof *chosen->line, in_order);
    for (uint32_t i = 0; i < chosen->n; i++) {
        add_lines(&tier[2], at, chosen->line[i]);
        at = chosen->line[i] + 1;
    }
    add_lines(&tier[2], at, lines);
}

int shmt_shm_tiers_make(struct shmt_shm_seat *p) {
    const uint64_t lines = p->store->layout.cover.n / LINE_FLOATS;
    struct shmt_shm_merging *m = p->merging;
    struct hottest *hottest = malloc(sizeof *hottest);
    struct chosen *chosen = malloc(sizeof *chosen);
    bool made = hottest && chosen;
    for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++) {
        const uint64_t most = t == 0   ? HOT_LINES + 1
                              : t == 1 ? MIDDLE_LINES
                                       : shmt_ceil_div(lines, BLOCK_LINES) + MOST_CHOSEN + 1;
        m->tier[t].run = shmt_own_calloc(most, sizeof *m->tier[t].run);
        made &= m->tier[t].run != NULL;
    }
    if (made) {
        choose(p, hottest, chosen);
        fill_tiers(p, chosen);
    }
    free(hottest);
    free(chosen);
    return made ? 0
                : shmt_fail(&p->seat.error, SHMTRAIN_E_MEMORY,
                            "not enough memory for a list of how often parameters are merged");
}

void shmt_shm_tiers_free(struct shmt_shm_merging *m) {
    for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++) shmt_own_free(m->tier[t].run);
}

/* ---- merging ---- */

/* Turns of the replica from one merge of a tier to the next. */
static uint64_t turns_between(const struct shmt_shm_seat *p, uint32_t tier) {
    const struct shmt_spec *spec = &p->store->spec;
    const uint64_t rest = shmt_replicas_merge_all_every(spec) / shmt_replicas_stretch(&spec->policy);
    return tier == 0 ? 1 : tier == 1 ? shmt_ceil_div(rest, 4) : rest;
}

/* Turns of the replica since a tier was due; 0: it is due now. Those who share a replica go at about one pace, and each turn is
 * one of them's (shmt_replicas_turn), so whose stretch it is does not matter: all count them alike. */
static uint64_t turns_since(const struct shmt_shm_seat *p, uint32_t tier) {
    const struct shmt_shm_merging *m = p->merging;
    const uint64_t every = turns_between(p, tier),
                   turn = m->n_sharers > 1 ? (p->done - p->first) / shmt_replicas_stretch(&p->store->spec.policy) : m->turns;
    return (turn + every * m->mine / p->store->layout.n_replicas) % every;
}

bool shmt_shm_tier_is_due(const struct shmt_shm_seat *p, uint32_t tier) { return turns_since(p, tier) == 0; }

/* Examples that my replica has trained on since a run was merged. Who has it to itself knows; sharers go by the plan. */
static uint64_t trained_since(const struct shmt_shm_seat *p, uint32_t tier, const struct shmt_shm_run *run) {
    const struct shmt_shm_merging *m = p->merging;
    const struct shmt_spec *spec = &p->store->spec;
    if (m->n_sharers == 1) return m->examples - run->merged;
    const uint64_t since = turns_since(p, tier), turns = since > 0 ? since : turns_between(p, tier);
    return turns * m->n_sharers * shmt_replicas_stretch(&spec->policy) * spec->item;
}

/* What comes next is on its way while this is merged. */
static void expect(const struct shmt_shm_seat *p, const struct shmt_shm_run *run) {
    const struct shmt_shm_merging *m = p->merging;
    const struct shmt_merge_words *const words = run->from < p->store->layout.cover.hot ? &m->words : &m->tail_words;
    for (uint32_t word = 0; word < words->n; word++) shmt_merge_prefetch(words->master[word] + run->from, run->to - run->from);
}

/* A run of lines that another is merging is left for my next turn, but not for ever: what is merged often is asked for by many,
 * and waiting for it would keep me from my work. */
#define MOST_SKIPPED 3 /* turns, one after the other */

static void merge_tier(struct shmt_shm_seat *p, uint32_t t, bool all) {
    struct shmt_shm_merging *m = p->merging;
    struct shmt_shm_tier *const tier = &m->tier[t];
    const uint64_t n = tier->n, first = n * m->mine / p->store->layout.n_replicas, each = m->examples - tier->examples;
    const bool may_skip = !all && t + 1 < SHMT_SHM_TIERS && m->n_sharers == 1;
    tier->examples = m->examples;
    for (uint64_t i = 0; i < n; i++) {
        struct shmt_shm_run *run = &tier->run[(first + i) % n];
        const uint64_t since = trained_since(p, t, run);
        if (i + 1 < n) expect(p, &tier->run[(first + i + 1) % n]);
        m->damping.examples = (double)since;
        if (shmt_shm_merge_range(p, run->from, run->to, may_skip && since <= MOST_SKIPPED * each)) run->merged = m->examples;
    }
}

void shmt_shm_merge_tiers(struct shmt_shm_seat *p, bool all) {
    const struct shmt_store *store = p->store;
    struct shmt_shm_merging *m = p->merging;
    shmt_spec_update(&store->spec, p->epoch, p->piece, &m->damping.u);
    m->damping.n_replicas = m->n_present;
    m->damping.curvature = store->curvature;
    for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
        if (all || shmt_shm_tier_is_due(p, t)) merge_tier(p, t, all);
}
