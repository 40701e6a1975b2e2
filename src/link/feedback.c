/* Rounds that send less than has changed: see feedback.h. */
#include "link/feedback.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "link/bfloat16.h"

#define SENT UINT64_MAX
#define BINS 65536 /* of sizes, by the upper half of their bits, and of one of those by the lower half */

struct shmt_feedback {
    bool halves;
    float share;     /* of the blocks that have changed; 1: all */
    bool whole;      /* this round */
    float *gone;     /* (blocks) of x->seen less x->base, what the others have got, where x->changed */
    uint64_t *since; /* (n_blocks) what this host had trained on when what was not sent of a block began; or SENT */
    float *size;     /* (n_blocks) of the changes, where x->changed: the sum of squares */
    uint64_t n_of[BINS];
};

int shmt_feedback_plan(struct shmt_exchange *x) {
    const struct shmt_hosts_plan *hosts = &x->at.spec->hosts;
    const bool halves = hosts->wire == SHMT_WIRE_BF16, chooses = hosts->top_k > 0 && hosts->top_k < 1;
    if (!halves && !chooses) return 0;
    struct shmt_feedback *f = x->feedback = calloc(1, sizeof *f);
    if (!f) return shmt_no_memory(&x->error, "for what is not sent to other hosts");
    f->halves = halves;
    f->share = chooses ? hosts->top_k : 1;
    f->gone = calloc(x->n_blocks * SHMT_FAR_BLOCK + 1, sizeof *f->gone);
    f->since = malloc((x->n_blocks + 1) * sizeof *f->since);
    f->size = calloc(x->n_blocks + 1, sizeof *f->size);
    return f->gone && f->since && f->size ? 0 : shmt_no_memory(&x->error, "for what is not sent to other hosts");
}

void shmt_feedback_free(struct shmt_exchange *x) {
    if (!x->feedback) return;
    free(x->feedback->gone);
    free(x->feedback->since);
    free(x->feedback->size);
    free(x->feedback);
}

void shmt_feedback_start(struct shmt_exchange *x) {
    memcpy(x->seen, x->base, x->n_floats * sizeof *x->seen);
    for (uint64_t block = 0; block < x->n_blocks; block++) x->feedback->since[block] = SENT;
}

void shmt_feedback_begin(struct shmt_exchange *x, bool whole) { x->feedback->whole = whole; }

bool shmt_feedback_sends_halves(const struct shmt_exchange *x) {
    return x->feedback && x->feedback->halves && !x->feedback->whole;
}

bool shmt_feedback_chooses(const struct shmt_exchange *x) {
    return x->feedback && x->feedback->share < 1 && !x->feedback->whole;
}

bool shmt_feedback_counts_all(const struct shmt_exchange *x) { return x->feedback && x->feedback->share < 1; }

/* ---- a block ---- */

/* x->seen is what was left there in the last round: what reads otherwise, workers have changed. */
bool shmt_feedback_is_due(struct shmt_exchange *x, uint64_t block, bool differs, const float *now) {
    const uint64_t at = block * SHMT_FAR_BLOCK, n = shmt_min_u64(SHMT_FAR_BLOCK, x->n_floats - at);
    uint64_t *since = &x->feedback->since[block];
    if (!differs) *since = SENT;
    return differs && (x->feedback->whole || *since != SENT || memcmp(now, x->seen + at, n * sizeof *now) != 0);
}

uint64_t shmt_feedback_examples(const struct shmt_exchange *x, uint64_t block) {
    const uint64_t since = x->feedback->since[block];
    return since == SENT || since > x->examples ? x->since : shmt_max_u64(x->since, x->examples - since);
}

/* Loops over floats have no branches: where rounds are many, this is what they take. */

/* `yes` or `no`; as in update/merge.c. */
static inline float pick(bool first, float yes, float no) {
    uint32_t y, z;
    float x;
    memcpy(&y, &yes, sizeof y);
    memcpy(&z, &no, sizeof z);
    const uint32_t mask = -(uint32_t)first, word = (y & mask) | (z & ~mask);
    memcpy(&x, &word, sizeof x);
    return x;
}

/* change: what would be sent, and becomes what is; all: the change that it is the share of, and becomes the part of it that is sent. */
static void round_floats(float *restrict change, float *restrict all, const float *restrict share, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        const float sent = shmt_of_bfloat16(shmt_bfloat16(change[i])), part = share ? sent / share[i] : sent;
        all[i] = pick(sent == change[i], all[i], part);
        change[i] = sent;
    }
}

/* What was left, and nobody has changed since, waits. */
static void leave_rests(float *restrict change, float *restrict all, const float *restrict seen, const float *restrict was,
                        uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        change[i] = pick(seen[i] == was[i], 0, change[i]);
        all[i] = pick(seen[i] == was[i], 0, all[i]);
    }
}

/* Behind the last float there are zeros. */
static float size_of(const float change[SHMT_FAR_BLOCK]) {
    float size[8] = {0}, sum = 0;
    for (uint32_t i = 0; i < SHMT_FAR_BLOCK; i += 8)
        for (uint32_t k = 0; k < 8; k++) size[k] += change[i + k] * change[i + k];
    for (uint32_t k = 0; k < 8; k++) sum += size[k];
    return sum == sum ? sum : INFINITY;
}

void shmt_feedback_round(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *share, const float *was) {
    struct shmt_feedback *f = x->feedback;
    const uint64_t at = block * SHMT_FAR_BLOCK;
    const bool halves = f->halves && !f->whole, is_new = f->since[block] == SENT;
    float *change = x->change + at, *gone = f->gone + at;
    const float *seen = x->seen + at, *base = x->base + at;
    for (uint64_t i = 0; i < n; i++) gone[i] = seen[i] - base[i];
    if (halves && is_new) leave_rests(change, gone, seen, was, n);
    if (shmt_feedback_chooses(x)) f->size[block] = size_of(change);
    if (halves) round_floats(change, gone, share, n);
    if (!shmt_feedback_chooses(x))
        f->since[block] = SENT;
    else if (is_new)
        f->since[block] = x->examples - shmt_min_u64(x->examples, x->since);
}

void shmt_feedback_bring(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *base, float *change_out) {
    const uint64_t at = block * SHMT_FAR_BLOCK;
    const float *gone = x->feedback->gone + at, *was = x->base + at;
    float *seen = x->seen + at;
    const bool whole = x->feedback->whole, stays = !x->changed[block];
    for (uint64_t i = 0; i < n; i++) change_out[i] = base[i] - (whole ? seen[i] : was[i]);
    for (uint64_t i = 0; !whole && !stays && i < n; i++) change_out[i] -= gone[i];
    for (uint64_t i = 0; i < n; i++)
        seen[i] = pick(change_out[i] != 0, seen[i] + change_out[i], seen[i]); /* as the seat adds it */
}

/* ---- which blocks ---- */

/* Sizes are not negative, so their bits are in their order. */
static uint32_t bits_of(float size) {
    uint32_t bits;
    memcpy(&bits, &size, sizeof bits);
    return bits;
}

/* The largest bin that has, with all above it, `most` blocks, and how many those above it have. */
static uint32_t find_bin(const uint64_t *n_of, uint64_t most, uint64_t *above_out) {
    uint32_t bin = BINS - 1;
    for (*above_out = 0; bin > 0 && *above_out + n_of[bin] < most; bin--) *above_out += n_of[bin];
    return bin;
}

/* The size of number `most` of the blocks that have changed, in descending order; *equal_out: how many of that size are to be taken. */
static uint32_t find_least(struct shmt_exchange *x, uint64_t most, uint64_t *equal_out) {
    struct shmt_feedback *f = x->feedback;
    uint64_t above, above_in_bin;
    memset(f->n_of, 0, sizeof f->n_of);
    for (uint64_t block = 0; block < x->n_blocks; block++) f->n_of[bits_of(f->size[block]) >> 16] += x->changed[block];
    const uint32_t upper = find_bin(f->n_of, most, &above);
    memset(f->n_of, 0, sizeof f->n_of);
    for (uint64_t block = 0; block < x->n_blocks; block++)
        if (bits_of(f->size[block]) >> 16 == upper) f->n_of[bits_of(f->size[block]) & 0xffff] += x->changed[block];
    const uint32_t lower = find_bin(f->n_of, most - above, &above_in_bin);
    *equal_out = most - above - above_in_bin;
    return upper << 16 | lower;
}

void shmt_feedback_choose(struct shmt_exchange *x) {
    struct shmt_feedback *f = x->feedback;
    uint64_t n = 0, equal;
    for (uint64_t block = 0; block < x->n_blocks; block++) n += x->changed[block];
    if (n == 0) return;
    const uint64_t most =
        shmt_max_u64(1, (uint64_t)ceil((double)f->share * (double)n * (1 - 1e-6))); /* 0.1f is more than a tenth */
    const uint32_t least = find_least(x, most, &equal);
    for (uint64_t block = 0; block < x->n_blocks; block++) {
        if (!x->changed[block]) continue;
        const uint32_t size = bits_of(f->size[block]);
        x->changed[block] = size > least || (size == least && equal > 0);
        if (size == least && equal > 0) equal--;
        if (x->changed[block]) f->since[block] = SENT;
    }
}
