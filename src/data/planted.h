/* Examples of a planted logistic model over sparse features, shaped like RCV1 (Lewis et al. 2004): the default data.
 *
 * Features. Each example has `nonzeros` features on average (74 unless asked otherwise; between one and 3.4 times as many),
 * drawn without repetition. The feature of rank r is drawn with weight
 *
 *     1 / ((r + 20) * (1 + r / (F / 10)))          r = 0 .. F - 1
 *
 * a Zipf law (with Mandelbrot's shift: the first feature is in about 40 % of the examples, as in news) that becomes steeper in
 * its tail, as words do. Ids are a random permutation of the ranks: in real data, too, frequent features are scattered.
 * Up to SHMT_PLANTED_TABLED features have tables of their own; of more, ranks are drawn by steps (ranks.h), all ranks of which
 * have the weight of the middle one, and ids are computed: nothing of it grows with the features but a bit for each.
 *
 * Values. x = tf * idf, with tf one of 1 + ln 1 .. 1 + ln 4 and idf_r = ln(1 + 1 / (nonzeros * p_r)); rows have unit L2 norm.
 *
 * Labels. P(y = 1 | x) = 1 / (1 + e^-m) with m = w . x. The planted w is nonzero for the F / 50 + 100 most frequent features,
 * all of one size, with opposite signs within each pair of neighbouring ranks (a coin per pair), so the classes are balanced.
 * The size is such that m has a standard deviation of 4.5, measured on a sample: then the best possible accuracy is about 87 %,
 * and the best possible mean loss about 0.27. With other keys it stays near 0.3, unless `nonzeros` comes close to its limit.
 *
 * An example is a pure function of (seed, stream, index): any part can be drawn anywhere, and the same bytes come out on every
 * machine, since nothing but +, -, *, /, sqrt and math/logistic.h is used. Called by the source builtin:sparse. */
#pragma once

#include <stdint.h>

#include "data/alias.h"
#include "data/ranks.h"
#include "base/error.h"

#define SHMT_PLANTED_MAX_FEATURES (1u << 27)
#define SHMT_PLANTED_TABLED       10000000u

enum shmt_planted_stream { SHMT_PLANTED_TRAIN = 1, SHMT_PLANTED_HELD_OUT = 2, SHMT_PLANTED_CALIBRATION = 3 };

struct shmt_planted_feature {
    float idf, weight; /* weight: planted */
};

/* Read-only once made. */
struct shmt_planted {
    uint64_t seed;
    uint32_t n_features, nonzeros;        /* nonzeros: the mean per example, at most a quarter of n_features */
    uint32_t n_slots;                     /* n_features; or, of more than are tabled, steps of ranks */
    struct shmt_alias_slot *slot;         /* (n_slots) gives ids, or steps */
    struct shmt_planted_feature *feature; /* (n_slots) by id, or by step without its weight */
    struct shmt_scatter scatter;          /* ids of ranks, where they are not tabled */
    float size;                           /* of the planted weights */
};

/* What a feature is, by its id. */
struct shmt_planted_feature shmt_planted_feature_of(const struct shmt_planted *planted, uint32_t id);

/* One example, and the scratch memory to draw it: one per drawing process or thread. */
struct shmt_planted_example {
    uint64_t *bits, *words, *tops; /* a bit per feature; per word of `bits` that is not 0; per word of `words`. All clear
                                      between draws */
    uint32_t n_tops;
    uint32_t n;
    uint32_t *id;      /* (n) ascending */
    float *value;      /* (n) */
    uint64_t *wide_id; /* the same room, for who wants to work in it */
    float label;       /* -1 or 1 */
    float loss;        /* the planted model's logistic loss on this example */
};

/* Fills *out, whose three parameters are set: seed, n_features, nonzeros. SHMTRAIN_E_MEMORY. */
int shmt_planted_init(struct shmt_planted *out, struct shmt_error *e);
void shmt_planted_fini(struct shmt_planted *planted);

int shmt_planted_example_init(const struct shmt_planted *planted, struct shmt_planted_example *out, struct shmt_error *e);
void shmt_planted_example_fini(struct shmt_planted_example *example);

/* The number of nonzeros of an example, without drawing it. */
uint32_t shmt_planted_size(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index);

/* Draws example `index`. */
void shmt_planted_draw(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index,
                       struct shmt_planted_example *out);
