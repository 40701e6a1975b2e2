/* Merging copies of the parameters: see merge.h.
 *
 * Most words of a large table are the same in all copies, so everything goes in steps: a step without a change is seen by
 * comparing memory, and left alone. */
#include "update/path_names_priv.h"

#include "update/merge.h"

#include <math.h>
#include <string.h>

#include "base/point.h"
#include "update/live.h"
#include "update/rule_priv.h"

#define STEP         SHMT_MERGE_STEP /* floats that are compared, and merged, at a time */
#define ELASTIC_BETA 0.9f            /* R a, as in the paper */

_Static_assert(STEP <= SHMT_REDO_FLOATS, "a step fits into the log");

/* ---- which word is merged how ---- */

static enum shmt_merging_kind kind_of_state(enum shmt_merge merge, enum shmt_rule_kind rule) {
    if (merge == SHMT_MERGE_ELASTIC) return SHMT_MERGING_OWN;
    if (rule != SHMT_RULE_ADAGRAD && rule != SHMT_RULE_FTRL && rule != SHMT_RULE_SGD) return SHMT_MERGING_AVERAGE;
    return merge == SHMT_MERGE_MEAN ? SHMT_MERGING_MEAN : SHMT_MERGING_SUM;
}

static enum shmt_merging_kind kind_of_weight(enum shmt_merge merge, enum shmt_rule_kind rule) {
    if (rule == SHMT_RULE_FTRL) return SHMT_MERGING_FOLLOWS;
    if (merge == SHMT_MERGE_ELASTIC) return SHMT_MERGING_ELASTIC;
    return merge == SHMT_MERGE_MEAN ? SHMT_MERGING_MEAN : SHMT_MERGING_SUM;
}

/* Squares, and corrections that are between 0 and 1. */
static bool is_positive(enum shmt_rule_kind rule, uint32_t word) {
    switch (rule) {
        case SHMT_RULE_ADAGRAD:
        case SHMT_RULE_RMSPROP:
        case SHMT_RULE_ADADELTA:
            return word >= 1;
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
        case SHMT_RULE_FTRL:
            return word >= 2;
        default:
            return false;
    }
}

struct shmt_merging shmt_merging_of(enum shmt_merge merge, enum shmt_rule_kind rule, uint32_t word, uint32_t n_replicas) {
    struct shmt_merging how = {.kind = word == 0 ? kind_of_weight(merge, rule) : kind_of_state(merge, rule),
                               .share = 1,
                               .positive = is_positive(rule, word)};
    if (how.kind == SHMT_MERGING_MEAN || how.kind == SHMT_MERGING_AVERAGE) how.share = 1.0f / (float)n_replicas;
    if (how.kind == SHMT_MERGING_ELASTIC) how.share = ELASTIC_BETA / (float)n_replicas;
    return how;
}

struct shmt_merging shmt_merging_statistic(enum shmt_merge merge, uint32_t n_replicas) {
    if (merge == SHMT_MERGE_ELASTIC) return shmt_merging_of(merge, SHMT_RULE_SGD, 0, n_replicas);
    return (struct shmt_merging){.kind = SHMT_MERGING_AVERAGE, .share = 1.0f / (float)n_replicas};
}

int shmt_merge_check(const struct shmt_rule *rule, const struct shmt_policy *policy, struct shmt_error *e) {
    if (!shmt_policy_merges_replicas(policy) || policy->merge != SHMT_MERGE_ELASTIC || rule->kind != SHMT_RULE_FTRL) return 0;
    return shmt_refuse(e,
                       "ftrl cannot be merged elastically: its weights are computed from its z and n, so merging cannot move "
                       "them alone; use --merge mean, sum or damped");
}

/* ---- words ---- */

SHMT_INLINE uint32_t bits(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

/* `yes` or `no` without a branch: which it is changes from word to word. */
SHMT_INLINE float pick(bool first, float yes, float no) {
    const uint32_t mask = -(uint32_t)first, word = (bits(yes) & mask) | (bits(no) & ~mask);
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static uint64_t step_at(uint64_t at, uint64_t n) { return n - at < STEP ? n - at : STEP; }

static bool same(const float *a, const float *b, uint64_t n) { return memcmp(a, b, n * sizeof *a) == 0; }

/* RACE(look): the application may read the master meanwhile (shmtrain_store_read in a listener), as in apply.c. */
static void put_master(float *to, const float *from, uint64_t n) {
#if SHMT_UNDER_TSAN
    for (uint64_t i = 0; i < n; i++) shmt_live_store(to + i, from[i]);
#else
    memcpy(to, from, n * sizeof *to);
#endif
}

/* ---- together ---- */

/* Of those that have changed a word: how many, and the sum of their values or of their changes; `last` is one of them. */
struct sums {
    float sum[STEP], last[STEP];
    float count[STEP];
};

SHMT_INLINE void add_up(struct sums *restrict s, const float *m, const float *r, uint64_t n, bool changes) {
    for (uint64_t i = 0; i < n; i++) {
        const bool moved = bits(r[i]) != bits(m[i]);
        s->sum[i] += pick(moved, changes ? r[i] - m[i] : r[i], 0);
        s->last[i] = pick(moved, r[i], s->last[i]);
        s->count[i] += pick(moved, 1, 0);
    }
}

/* The words at .. at + n - 1 of all; m is the master's word `at`. */
static void all_equal(float *m, float *const *replica, uint32_t n_replicas, uint64_t at, uint64_t n, bool changes,
                      const struct shmt_redo *redo) {
    struct sums s;
    float own[STEP], *const out = shmt_redo_room(redo, own);
    memset(s.sum, 0, sizeof s.sum);
    memset(s.count, 0, sizeof s.count);
    memcpy(s.last, m, n * sizeof *m);
    for (uint32_t i = 0; i < n_replicas; i++) {
        const float *r = replica[i] + at;
        if (same(m, r, n)) continue;
        if (changes)
            add_up(&s, m, r, n, true);
        else
            add_up(&s, m, r, n, false);
    }
    for (uint64_t i = 0; i < n; i++) {
        const float merged = changes ? m[i] + s.sum[i] : s.sum[i] / s.count[i];
        out[i] = s.count[i] < 2 ? s.last[i] : merged;
    }
    shmt_redo_open(redo, at, n, false);
    put_master(m, out, n);
    SHMT_POINT("merge:master");
    for (uint32_t i = 0; i < n_replicas; i++) memcpy(replica[i] + at, out, n * sizeof *out);
    shmt_redo_close(redo);
}

/* d = a (r - m) goes from r to `out`, which was m. */
SHMT_INLINE void pull(float share, const float *m, float *restrict out, float *restrict r, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const float d = share * (r[i] - m[i]);
        out[i] += d;
        r[i] -= d;
    }
}

static void all_pulled(float share, float *m, float *const *replica, uint32_t n_replicas, uint64_t at, uint64_t n) {
    float out[STEP];
    memcpy(out, m, n * sizeof *m);
    for (uint32_t k = 0; k < n_replicas; k++) pull(share, m, out, replica[k] + at, n);
    put_master(m, out, n);
}

bool shmt_merge_all(struct shmt_merging how, float *master, float *const *replica, uint32_t n_replicas, uint64_t n,
                    const struct shmt_redo *redo) {
    bool changed = false;
    if (how.kind == SHMT_MERGING_OWN || how.kind == SHMT_MERGING_FOLLOWS) return false;
    for (uint64_t at = 0; at < n; at += STEP) {
        const uint64_t some = step_at(at, n);
        uint32_t i = 0;
        while (i < n_replicas && same(master + at, replica[i] + at, some)) i++;
        if (i == n_replicas) continue;
        if (how.kind == SHMT_MERGING_ELASTIC)
            all_pulled(how.share, master + at, replica, n_replicas, at, some);
        else
            all_equal(master + at, replica, n_replicas, at, some, how.kind == SHMT_MERGING_SUM, redo);
        changed = true;
    }
    return changed;
}

void shmt_merge_collect(float *master, float *const *replica, uint32_t n_replicas, uint64_t n) {
    float out[STEP];
    for (uint64_t at = 0; at < n; at += STEP) {
        const uint64_t some = step_at(at, n);
        memset(out, 0, sizeof out);
        for (uint32_t k = 0; k < n_replicas; k++)
            for (uint64_t i = 0; i < some; i++) out[i] += replica[k][at + i];
        for (uint64_t i = 0; i < some; i++) out[i] /= (float)n_replicas;
        put_master(master + at, out, some);
    }
}

/* ---- alone ---- */

/* The master's new word. `whole`: the share is 1. */
SHMT_INLINE float merged(float m, float r, float b, float share, bool whole, bool average) {
    const float added = m + share * (r - (average ? m : b));
    const float changed = whole ? pick(average || bits(m) == bits(b), r, added) : added;
    return pick(bits(r) != bits(b), changed, m);
}

SHMT_INLINE void merge_words(float *out, const float *m, const float *r, const float *b, uint64_t n, float share, bool whole,
                             bool average) {
    for (uint64_t i = 0; i < n; i++) out[i] = merged(m[i], r[i], b[i], share, whole, average);
}

/* The master's new word, of a share of its own. */
SHMT_INLINE float shared_out(float m, float r, float b, float share) {
    const float taken = pick(share == 1 && bits(m) == bits(b), r, m + share * (r - b));
    return pick(bits(r) != bits(b), taken, m);
}

static void merge_shared_out(float *restrict out, const float *m, const float *r, const float *b, const float *share,
                             uint64_t n) {
    for (uint64_t i = 0; i < n; i++) out[i] = shared_out(m[i], r[i], b[i], share[i]);
}

/* The master's new words, into out. share (n): instead of that of `how`; NULL: not. */
static void merge_step(struct shmt_merging how, const float *share, float *restrict out, const float *m, const float *r,
                       const float *b, uint64_t n) {
    const bool whole = how.share == 1, average = how.kind == SHMT_MERGING_AVERAGE;
    if (share && !average)
        merge_shared_out(out, m, r, b, share, n);
    else if (whole && average)
        merge_words(out, m, r, b, n, 1, true, true);
    else if (average)
        merge_words(out, m, r, b, n, how.share, false, true);
    else if (whole)
        merge_words(out, m, r, b, n, 1, true, false);
    else
        merge_words(out, m, r, b, n, how.share, false, false);
}

/* `at`: the number of these floats in the call, for its redo. */
static void one_equal(struct shmt_merging how, const float *share, float *m, float *r, float *b, uint64_t at, uint64_t n,
                      const struct shmt_redo *redo) {
    float own[STEP], *const out = shmt_redo_room(redo, own);
    merge_step(how, share, out, m, r, b, n);
    shmt_redo_open(redo, at, n, false);
    put_master(m, out, n);
    SHMT_POINT("merge:master");
    memcpy(r, out, n * sizeof *r);
    memcpy(b, out, n * sizeof *b);
    shmt_redo_close(redo);
}

/* The same of shares; in one pass where nothing is kept. */
static void one_shared(struct shmt_merging how, const float *share, float *restrict m, float *restrict r, float *restrict b,
                       uint64_t at, uint64_t n, const struct shmt_redo *redo) {
#if !SHMT_UNDER_TSAN
    if (!redo && how.kind != SHMT_MERGING_AVERAGE) {
        for (uint64_t i = 0; i < n; i++) m[i] = r[i] = b[i] = shared_out(m[i], r[i], b[i], share[i]);
        return;
    }
#endif
    one_equal(how, share, m, r, b, at, n, redo);
}

bool shmt_merge_one(struct shmt_merging how, float *master, float *replica, float *base, uint64_t n,
                    const struct shmt_redo *redo) {
    bool changed = false;
    if (how.kind == SHMT_MERGING_OWN || how.kind == SHMT_MERGING_FOLLOWS) return false;
    for (uint64_t at = 0; at < n; at += STEP) {
        const uint64_t some = step_at(at, n);
        float *const m = master + at, *const r = replica + at;
        if (same(m, r, some) && (how.kind == SHMT_MERGING_ELASTIC || same(r, base + at, some))) continue;
        if (how.kind == SHMT_MERGING_ELASTIC)
            all_pulled(how.share, m, (float *const[]){r}, 1, 0, some);
        else
            one_equal(how, NULL, m, r, base + at, at, some, redo);
        changed = true;
    }
    return changed;
}

/* ---- alone, while others push to the replica ---- */

/* Whether a look finds the replica other than `than`: a hint, because it may change at any time. What changes behind the look
 * is found by the next merge, so the bytes need not even be of one moment. */
static bool looks_other(const float *replica, const float *than, uint64_t n) {
#if SHMT_UNDER_TSAN
    for (uint64_t i = 0; i < n; i++)
        if (bits(shmt_live_load(replica + i)) != bits(than[i])) return true;
    return false;
#else
    return !same(replica, than, n);
#endif
}

/* What the replica's word becomes: `to`, and what others have added since it was `from`. */
SHMT_INLINE float shifted(float now, float from, float to, bool positive) {
    const float x = bits(now) == bits(from) ? to : now + (to - from);
    return positive && x < 0 ? 0 : x;
}

/* RACE(merge): racy kernels push to the replica's words between this load and this store. Either that push is lost, as it
 * would be against another push; or the push's store takes the merge back, and with it what the others have brought to this
 * word since the replica's last merge: their changes are then missing in the master, too, as if they had been overwritten
 * there. One word at a time, and rare, because a word is merged once in thousands of pushes: the same kind of loss as
 * Hogwild!'s own. atomic loses nothing. */
SHMT_INLINE void shift(float *at, float from, float to, bool atomic, bool positive) {
    if (!atomic) {
        shmt_live_store(at, shifted(shmt_live_load(at), from, to, positive));
        return;
    }
    /* relaxed: the new value is made of the word's own and of numbers of this merge */
    float found = from;
    while (!swap_relaxed((_Atomic float *)at, &found, shifted(found, from, to, positive))) continue;
}

/* A step of the replica as a look has found it, and what it shall become. b NULL: elastic.
 *
 * Behind the log the base says that the look is in the master, and each float of it what the replica's has become when it has:
 * a death leaves one float at most of which the base does not know. */
static bool shared_step(struct shmt_merging how, const float *share, bool atomic, float *m, float *r, float *b, uint64_t at,
                        uint64_t n, const struct shmt_redo *redo) {
    float to[STEP], own[2][STEP], *const after = shmt_redo_room(redo, own[0]), *const from = shmt_redo_look(redo, own[1]);
    shmt_live_read(from, r, n);
    if (!b) {
        memcpy(after, m, n * sizeof *m);
        memcpy(to, from, n * sizeof *to);
        pull(how.share, m, after, to, n);
    } else {
        merge_step(how, share, after, m, from, b, n);
        memcpy(to, after, n * sizeof *to);
    }
    const bool changed = !same(after, m, n) || !same(to, from, n);
    shmt_redo_open(redo, at, n, true);
    put_master(m, after, n);
    SHMT_POINT("merge:master");
    if (b) memcpy(b, from, n * sizeof *b);
    shmt_redo_close(redo);
    for (uint64_t i = 0; i < n; i++) {
        if (bits(to[i]) != bits(from[i])) shift(r + i, from[i], to[i], atomic, how.positive);
        fence_compiler(); /* the base's float behind the replica's */
        if (b) b[i] = to[i];
        SHMT_POINT("merge:shifted");
    }
    return changed;
}

bool shmt_merge_looks_due(struct shmt_merging how, const float *master, const float *replica, const float *base, uint64_t n) {
    if (how.kind == SHMT_MERGING_OWN || how.kind == SHMT_MERGING_FOLLOWS) return false;
    if (looks_other(replica, master, n)) return true;
    return base && !same(master, base, n);
}

bool shmt_merge_shared(struct shmt_merging how, bool atomic, float *master, float *replica, float *base, uint64_t n,
                       const struct shmt_redo *redo) {
    bool changed = false;
    for (uint64_t at = 0; at < n; at += STEP) {
        const uint64_t some = step_at(at, n);
        float *const b = base ? base + at : NULL;
        if (!shmt_merge_looks_due(how, master + at, replica + at, b, some)) continue;
        changed |= shared_step(how, NULL, atomic, master + at, replica + at, b, at, some, b ? redo : NULL);
    }
    return changed;
}

/* ---- alone, damped ---- */

#define SATURATED   1e6f /* an `a` of which the share is 1 / R to seven digits */
#define AHEAD_LINES 16   /* of the master, asked for in advance: as many as one core can wait for, and a few */
#define LINE_FLOATS 16

/* q(R a) / (R q(a)); exactly 1 for R = 1, whatever a is. What is no number is as much as can be. */
SHMT_INLINE float damped(float a, float n_replicas) {
    const float less = pick(a < SATURATED, a, SATURATED);
    const float all = n_replicas * less;
    return (1 + all / 2) * (1 + less * (1 + less / 2)) / ((1 + less / 2) * (1 + all * (1 + all / 2)));
}

void shmt_merge_shares(enum shmt_rule_kind rule, const struct shmt_damping *d, const float *const *state, uint64_t n,
                       float *restrict share_out) {
    const float weight = (float)d->examples, replicas = (float)d->n_replicas, *const h = d->curvature;
    const struct shmt_update *u = &d->u;
    const bool gathers = rule == SHMT_RULE_MOMENTUM || rule == SHMT_RULE_NESTEROV;
    const float rate = weight * u->rate, summed = gathers ? rate / (1 - u->momentum) : rate;
    switch (rule) {
        case SHMT_RULE_ADAGRAD:
        case SHMT_RULE_RMSPROP:
            for (uint64_t i = 0; i < n; i++) share_out[i] = damped(h[i] * rate / (sqrtf(state[0][i]) + u->epsilon), replicas);
            return;
        case SHMT_RULE_ADADELTA:
            for (uint64_t i = 0; i < n; i++)
                share_out[i] = damped(h[i] * rate * sqrtf((state[1][i] + u->epsilon) / (state[0][i] + u->epsilon)), replicas);
            return;
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
            for (uint64_t i = 0; i < n; i++)
                share_out[i] = damped(h[i] * rate / (sqrtf(state[1][i] / state[3][i]) + u->epsilon), replicas);
            return;
        case SHMT_RULE_FTRL:
            for (uint64_t i = 0; i < n; i++)
                share_out[i] = damped(h[i] * rate / (u->beta + sqrtf(state[1][i]) + u->rate * u->l2), replicas);
            return;
        default:
            for (uint64_t i = 0; i < n; i++) share_out[i] = damped(h[i] * summed, replicas);
    }
}

/* Nothing is lost where a processor does not know how to ask. */
SHMT_INLINE void ask_for(const float *line) {
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*line)); /* the builtin is a plain prefetch without -mprfchw */
#else
    __builtin_prefetch(line, 1);
#endif
}

void shmt_merge_prefetch(const float *master, uint64_t n) {
    for (uint64_t i = 0; i < n && i < AHEAD_LINES * LINE_FLOATS; i += LINE_FLOATS) ask_for(master + i);
}

/* The step AHEAD_LINES lines on, as far as it belongs to this merge. */
static void ask_ahead(const struct shmt_merge_words *words, uint64_t at, uint64_t end) {
    for (uint64_t i = at + AHEAD_LINES * LINE_FLOATS; i < end && i < at + AHEAD_LINES * LINE_FLOATS + STEP; i += LINE_FLOATS)
        for (uint32_t word = 0; word < words->n; word++) ask_for(words->master[word] + i);
}

static bool step_is_due(const struct shmt_merge_words *words, enum shmt_merge_beside beside, uint64_t at, uint64_t n) {
    for (uint32_t word = 0; word < words->n; word++) {
        const float *const m = words->master[word] + at, *const r = words->replica[word] + at,
                           *const b = words->base[word] + at;
        if (words->how[word].kind == SHMT_MERGING_FOLLOWS) continue;
        if (beside == SHMT_MERGE_NOBODY ? !same(r, b, n) || !same(m, b, n) : looks_other(r, m, n) || !same(m, b, n))
            return true;
    }
    return false;
}

/* The shares of a step. Others may push to the replica: what is read of its state is a look. */
static void shares_of_step(enum shmt_rule_kind rule, const struct shmt_damping *d, enum shmt_merge_beside beside,
                           const struct shmt_merge_words *words, uint64_t at, uint64_t n, float *share) {
    float look[SHMT_MAX_PLANES][STEP];
    static const float none[STEP]; /* of words that the rule does not keep */
    const float *state[SHMT_MAX_PLANES] = {none, none, none, none};
    struct shmt_damping here = *d;
    here.curvature += at;
    for (uint32_t word = 1; word < words->n; word++) {
        state[word - 1] = words->replica[word] + at;
        if (beside == SHMT_MERGE_NOBODY) continue;
        shmt_live_read(look[word - 1], words->replica[word] + at, n);
        state[word - 1] = look[word - 1];
    }
    shmt_merge_shares(rule, &here, state, n, share);
}

/* The same of another word, into out. */
static const struct shmt_redo *redo_of_word(const struct shmt_redo *redo, uint32_t word, struct shmt_redo *out) {
    if (!redo) return NULL;
    *out = *redo;
    out->word = word;
    return out;
}

bool shmt_merge_damped(enum shmt_rule_kind rule, const struct shmt_damping *d, enum shmt_merge_beside beside,
                       const struct shmt_merge_words *words, uint64_t at, uint64_t n) {
    const uint64_t end = at + n;
    float share[STEP];
    struct shmt_redo here;
    bool changed = false;
    for (uint64_t some; at < end; at += some) {
        some = step_at(at, end);
        ask_ahead(words, at, end);
        if (!step_is_due(words, beside, at, some)) continue;
        shares_of_step(rule, d, beside, words, at, some, share);
        for (uint32_t word = 0; word < words->n; word++) {
            const struct shmt_redo *const redo = redo_of_word(words->redo, word, &here);
            const struct shmt_merging how = words->how[word];
            float *const m = words->master[word] + at, *const r = words->replica[word] + at, *const b = words->base[word] + at;
            if (how.kind == SHMT_MERGING_FOLLOWS) continue;
            if (beside == SHMT_MERGE_NOBODY)
                one_shared(how, share, m, r, b, at, some, redo);
            else
                (void)shared_step(how, share, beside == SHMT_MERGE_ATOMIC, m, r, b, at, some, redo);
        }
        changed = true;
    }
    return changed;
}

/* ---- weights that follow from state ---- */

void shmt_merge_follow(enum shmt_rule_kind rule, float *weight, const float *state, uint64_t plane, uint64_t n,
                       const struct shmt_update *u) {
    const struct shmt_step step = {.u = *u};
    if (rule != SHMT_RULE_FTRL) return;
    for (uint64_t i = 0; i < n; i++) {
        const struct shmt_cells c = {.w = {shmt_live_load(weight + i)},
                                     .word0 = {shmt_live_load(state + i)},
                                     .word1 = {shmt_live_load(state + plane + i)}};
        const float w = shmt_ftrl(c, shmt_all(0), &step).w[0];
        if (bits(w) != bits(c.w[0])) shmt_live_store(weight + i, w);
    }
}
