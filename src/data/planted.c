/* The planted logistic model: see planted.h for what it is. */
#include "data/planted.h"

#include "data/natural.h"

#include "base/random.h"
#include "math/logistic.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RANK_SHIFT           20                  /* how flat the most frequent ranks are */
#define MARGIN_DEVIATION     4.5                 /* of the planted margins */
#define CALIBRATION_EXAMPLES 1024                /* the deviation is known to about 2 % */
#define STEP                 0x9e3779b97f4a7c15u /* between the states of a stream of random numbers: SplitMix64 */

enum { DRAW_SIZE = 1, DRAW_FEATURES = 2, DRAW_FREQUENCY = 3, DRAW_LABEL = 4, DRAW_SIGN = 5, DRAW_ID = 6, DRAW_RANK = 7 };

static uint64_t random_bits(const struct shmt_planted *planted, uint64_t what, uint64_t stream, uint64_t index) {
    return shmt_hash64(planted->seed, what, stream, index);
}

/* ids[] becomes a permutation of 0 .. n - 1. */
static void permute(const struct shmt_planted *planted, uint32_t *id) {
    for (uint32_t i = 0; i < planted->n_features; i++) {
        const uint32_t j = (uint32_t)shmt_below(random_bits(planted, DRAW_ID, 0, i), i + (uint64_t)1);
        id[i] = id[j];
        id[j] = i;
    }
}

/* How often the feature of a rank is drawn, in proportion. */
static double weight_of_rank(const struct shmt_planted *planted, double rank) {
    return 1 / ((rank + RANK_SHIFT) * (1 + rank / (0.1 * planted->n_features)));
}

static float idf_of(const struct shmt_planted *planted, double weight, double sum) {
    return shmt_natural_log(1 + sum / (planted->nonzeros * weight));
}

/* The planted weight, but for its size. */
static float sign_of_rank(const struct shmt_planted *planted, uint32_t rank) {
    if (rank >= planted->n_features / 50 + 100) return 0;
    return ((random_bits(planted, DRAW_SIGN, 0, rank / 2) >> 63) ^ rank) & 1 ? 1 : -1;
}

/* A table of all features. id, weight: scratch (n_features). */
static int make_tables(struct shmt_planted *planted, uint32_t *id, double *weight, struct shmt_error *e) {
    const uint32_t n = planted->n_features;
    double sum = 0;
    permute(planted, id);
    for (uint32_t r = 0; r < n; r++) {
        weight[r] = weight_of_rank(planted, r);
        sum += weight[r];
    }
    for (uint32_t r = 0; r < n; r++)
        planted->feature[id[r]] = (struct shmt_planted_feature){idf_of(planted, weight[r], sum), sign_of_rank(planted, r)};
    const int status = shmt_alias_make(weight, n, planted->slot, e);
    if (status != 0) return status;
    for (uint32_t r = 0; r < n; r++) { /* from here on the table gives ids, not ranks */
        planted->slot[r].self = id[planted->slot[r].self];
        planted->slot[r].other = id[planted->slot[r].other];
    }
    return 0;
}

/* ---- features that are too many for tables ---- */

static bool is_tabled(const struct shmt_planted *planted) { return planted->n_features <= SHMT_PLANTED_TABLED; }

static uint32_t ranks_of_step(const struct shmt_planted *planted, uint32_t step) {
    const uint32_t first = shmt_rank_of_step(step), end = shmt_rank_of_step(step + 1);
    return (end < planted->n_features ? end : planted->n_features) - first;
}

/* A table of the steps. weight: scratch (n_slots). */
static int make_steps(struct shmt_planted *planted, double *weight, struct shmt_error *e) {
    double sum = 0;
    for (uint32_t i = 0; i < planted->n_slots; i++) {
        const double n = ranks_of_step(planted, i);
        weight[i] = n * weight_of_rank(planted, shmt_rank_of_step(i) + (n - 1) / 2);
        sum += weight[i];
    }
    for (uint32_t i = 0; i < planted->n_slots; i++)
        planted->feature[i].idf = idf_of(planted, weight[i] / ranks_of_step(planted, i), sum);
    shmt_scatter_make(planted->n_features, random_bits(planted, DRAW_ID, 0, 0), &planted->scatter);
    return shmt_alias_make(weight, planted->n_slots, planted->slot, e);
}

static uint32_t draw_id(const struct shmt_planted *planted, uint64_t state) {
    const uint32_t drawn = shmt_alias_draw(planted->slot, planted->n_slots, shmt_mix64(state));
    if (is_tabled(planted)) return drawn;
    const uint64_t bits = shmt_mix64(state ^ DRAW_RANK);
    const uint32_t within = (uint32_t)shmt_below(bits, ranks_of_step(planted, drawn));
    return shmt_scatter_at(&planted->scatter, shmt_rank_of_step(drawn) + within);
}

struct shmt_planted_feature shmt_planted_feature_of(const struct shmt_planted *planted, uint32_t id) {
    if (is_tabled(planted))
        return (struct shmt_planted_feature){planted->feature[id].idf, planted->feature[id].weight * planted->size};
    const uint32_t rank = shmt_scatter_back(&planted->scatter, id);
    return (struct shmt_planted_feature){planted->feature[shmt_step_of_rank(rank)].idf,
                                         sign_of_rank(planted, rank) * planted->size};
}

/* ---- */

static double margin_of(const struct shmt_planted *planted, const struct shmt_planted_example *example) {
    double margin = 0;
    for (uint32_t i = 0; i < example->n; i++)
        margin += (double)shmt_planted_feature_of(planted, example->id[i]).weight * example->value[i];
    return margin;
}

/* Gives the planted weights the size that makes margins deviate as they should. */
static int calibrate(struct shmt_planted *planted, struct shmt_error *e) {
    struct shmt_planted_example example;
    const int status = shmt_planted_example_init(planted, &example, e);
    if (status != 0) return status;
    double square = 0;
    for (uint32_t i = 0; i < CALIBRATION_EXAMPLES; i++) {
        shmt_planted_draw(planted, SHMT_PLANTED_CALIBRATION, i, &example);
        const double margin = margin_of(planted, &example);
        square += margin * margin;
    }
    shmt_planted_example_fini(&example);
    if (square > 0) planted->size = (float)(MARGIN_DEVIATION / sqrt(square / CALIBRATION_EXAMPLES));
    return 0;
}

int shmt_planted_init(struct shmt_planted *out, struct shmt_error *e) {
    const bool tabled = is_tabled(out);
    const uint32_t n = tabled ? out->n_features : shmt_step_of_rank(out->n_features - 1) + 1;
    uint32_t *id = tabled ? malloc(n * sizeof *id) : NULL;
    double *weight = malloc(n * sizeof *weight);
    out->n_slots = n;
    out->size = 1;
    out->slot = malloc(n * sizeof *out->slot);
    out->feature = calloc(n, sizeof *out->feature);
    int status = 0;
    if ((tabled && !id) || !weight || !out->slot || !out->feature)
        status = shmt_no_memory(e, "for the tables of %u generated features", out->n_features);
    if (status == 0) status = tabled ? make_tables(out, id, weight, e) : make_steps(out, weight, e);
    free(weight);
    free(id);
    if (status == 0) status = calibrate(out, e);
    if (status != 0) shmt_planted_fini(out);
    return status;
}

void shmt_planted_fini(struct shmt_planted *planted) {
    free(planted->slot);
    free(planted->feature);
    planted->slot = NULL;
    planted->feature = NULL;
}

/* Twice a mean of two uniform numbers, squared, is 7/6 on average, skewed, and below 4. */
#define SIZE_MAX_FACTOR 4

int shmt_planted_example_init(const struct shmt_planted *planted, struct shmt_planted_example *out, struct shmt_error *e) {
    const uint64_t n_bits = planted->n_features / 64 + 1, n_words = n_bits / 64 + 1;
    const uint64_t max = SIZE_MAX_FACTOR * (uint64_t)planted->nonzeros + 1;
    memset(out, 0, sizeof *out);
    out->n_tops = (uint32_t)(n_words / 64 + 1);
    out->bits = calloc(n_bits, sizeof *out->bits);
    out->words = calloc(n_words, sizeof *out->words);
    out->tops = calloc(out->n_tops, sizeof *out->tops);
    out->id = malloc(max * sizeof *out->id);
    out->value = malloc(max * sizeof *out->value);
    out->wide_id = malloc(max * sizeof *out->wide_id);
    if (out->bits && out->words && out->tops && out->id && out->value && out->wide_id) return 0;
    shmt_planted_example_fini(out);
    return shmt_no_memory(e, "to generate examples of %u features", planted->n_features);
}

void shmt_planted_example_fini(struct shmt_planted_example *example) {
    free(example->bits);
    free(example->words);
    free(example->tops);
    free(example->id);
    free(example->value);
    free(example->wide_id);
    memset(example, 0, sizeof *example);
}

uint32_t shmt_planted_size(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index) {
    const uint64_t bits = random_bits(planted, DRAW_SIZE, stream, index);
    const double two = (double)(bits >> 32) * 0x1p-32 + (double)(uint32_t)bits * 0x1p-32;
    const uint32_t n = (uint32_t)(two * two * (6.0 / 7) * planted->nonzeros + 0.5);
    return n > 0 ? n : 1;
}

/* The place of the lowest bit that is set, which it clears. */
static uint32_t take_bit(uint64_t *word) {
    const uint32_t bit = (uint32_t)__builtin_ctzll(*word);
    *word &= *word - 1;
    return bit;
}

/* Draws distinct ids, and leaves them ascending in out->id. Marking them in a bitmap refuses repetitions and sorts, too. */
static void draw_ids(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index,
                     struct shmt_planted_example *out) {
    const uint32_t size = shmt_planted_size(planted, stream, index);
    uint64_t state = random_bits(planted, DRAW_FEATURES, stream, index);
    for (uint32_t n = 0; n < size; state += STEP) {
        const uint32_t id = draw_id(planted, state);
        const uint64_t bit = (uint64_t)1 << id % 64;
        n += (out->bits[id / 64] & bit) == 0;
        out->bits[id / 64] |= bit;
        out->words[id / 4096] |= (uint64_t)1 << id / 64 % 64;
        out->tops[id / 262144] |= (uint64_t)1 << id / 4096 % 64;
    }
    out->n = 0;
    for (uint32_t i = 0; i < out->n_tops; i++) {
        while (out->tops[i] != 0) {
            const uint32_t top = i * 64 + take_bit(&out->tops[i]);
            while (out->words[top] != 0) {
                const uint32_t word = top * 64 + take_bit(&out->words[top]);
                while (out->bits[word] != 0) out->id[out->n++] = word * 64 + take_bit(&out->bits[word]);
            }
        }
    }
}

/* 1 + ln of how often a word occurs in a text: mostly once. */
static float term_frequency(uint64_t bits) {
    static const float value[4] = {1, 0x1.b17218p0f, 0x1.0c9f54p1f, 0x1.317218p1f};
    const double u = shmt_unit(bits);
    return value[(u >= 0.62) + (u >= 0.82) + (u >= 0.92)];
}

void shmt_planted_draw(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index,
                       struct shmt_planted_example *out) {
    draw_ids(planted, stream, index, out);
    const uint64_t state = random_bits(planted, DRAW_FREQUENCY, stream, index);
    double square = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        out->value[i] = shmt_planted_feature_of(planted, out->id[i]).idf * term_frequency(shmt_mix64(state + i * STEP));
        square += (double)out->value[i] * out->value[i];
    }
    const double to_unit = 1 / sqrt(square);
    for (uint32_t i = 0; i < out->n; i++) out->value[i] = (float)(out->value[i] * to_unit);
    const float margin = (float)margin_of(planted, out);
    out->label = shmt_unit(random_bits(planted, DRAW_LABEL, stream, index)) < shmt_sigmoid(margin) ? 1 : -1;
    out->loss = shmt_logistic_loss(out->label * margin);
}
