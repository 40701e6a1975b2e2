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

void shmt_feedback_round(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *share, const float *was) {
    struct shmt_feedback *f = x->feedback;
    const uint64_t at = block * SHMT_FAR_BLOCK;
    const bool halves = f->halves && !f->whole, is_new = f->since[block] == SENT;
    float *change = x->change + at, *gone = f->gone + at;
    const float *seen = x->seen + at, *base = x->base + at;
    float size = 0;
    for (uint64_t i = 0; i < n; i++) {
        const float exact = halves && is_new && seen[i] == was[i] ? 0 : change[i],
                    all = exact == change[i] ? seen[i] - base[i] : 0;
        const float sent = halves ? shmt_of_bfloat16(shmt_bfloat16(exact)) : exact;
        change[i] = sent;
        gone[i] = sent == exact ? all : share ? sent / share[i] : sent;
        size += exact * exact;
    }
    f->size[block] = size == size ? size : INFINITY;
    if (!shmt_feedback_chooses(x))
        f->since[block] = SENT;
    else if (is_new)
        f->since[block] = x->examples - shmt_min_u64(x->examples, x->since);
}

void shmt_feedback_bring(struct shmt_exchange *x, uint64_t block, uint64_t n, const float *base, float *change_out) {
    const uint64_t at = block * SHMT_FAR_BLOCK;
    const float *gone = x->feedback->gone + at, *was = x->base + at;
    float *seen = x->seen + at;
    for (uint64_t i = 0; i < n; i++) {
        const bool stays = !x->changed[block];
        change_out[i] = x->feedback->whole ? base[i] - seen[i] : base[i] - was[i] - (stays ? 0 : gone[i]);
        if (change_out[i] != 0) seen[i] += change_out[i]; /* as the seat adds it */
    }
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
    const uint64_t most = shmt_max_u64(1, (uint64_t)ceil((double)f->share * (double)n));
    const uint32_t least = find_least(x, most, &equal);
    for (uint64_t block = 0; block < x->n_blocks; block++) {
        if (!x->changed[block]) continue;
        const uint32_t size = bits_of(f->size[block]);
        x->changed[block] = size > least || (size == least && equal > 0);
        if (size == least && equal > 0) equal--;
        if (x->changed[block]) f->since[block] = SENT;
    }
}
