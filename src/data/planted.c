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

enum { DRAW_SIZE = 1, DRAW_FEATURES = 2, DRAW_FREQUENCY = 3, DRAW_LABEL = 4, DRAW_SIGN = 5, DRAW_ID = 6 };

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

/* The tables but for the size of the planted weights, which is 1. id, weight: scratch (n_features). */
static int make_tables(struct shmt_planted *planted, uint32_t *id, double *weight, struct shmt_error *e) {
    const uint32_t n = planted->n_features, n_signal = n / 50 + 100;
    double sum = 0;
    permute(planted, id);
    for (uint32_t r = 0; r < n; r++) {
        weight[r] = 1 / (((double)r + RANK_SHIFT) * (1 + (double)r / (0.1 * n)));
        sum += weight[r];
    }
    for (uint32_t r = 0; r < n; r++) {
        const bool up = ((random_bits(planted, DRAW_SIGN, 0, r / 2) >> 63) ^ r) & 1;
        planted->feature[id[r]].idf = shmt_natural_log(1 + sum / (planted->nonzeros * weight[r]));
        planted->feature[id[r]].weight = r >= n_signal ? 0 : up ? 1 : -1;
    }
    const int status = shmt_alias_make(weight, n, planted->slot, e);
    if (status != 0) return status;
    for (uint32_t r = 0; r < n; r++) { /* from here on the table gives ids, not ranks */
        planted->slot[r].self = id[planted->slot[r].self];
        planted->slot[r].other = id[planted->slot[r].other];
    }
    return 0;
}

static double margin_of(const struct shmt_planted *planted, const struct shmt_planted_example *example) {
    double margin = 0;
    for (uint32_t i = 0; i < example->n; i++) margin += (double)planted->feature[example->id[i]].weight * example->value[i];
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
    const float size = square > 0 ? (float)(MARGIN_DEVIATION / sqrt(square / CALIBRATION_EXAMPLES)) : 1;
    for (uint32_t i = 0; i < planted->n_features; i++) planted->feature[i].weight *= size;
    return 0;
}

int shmt_planted_init(struct shmt_planted *out, struct shmt_error *e) {
    const uint32_t n = out->n_features;
    uint32_t *id = malloc(n * sizeof *id);
    double *weight = malloc(n * sizeof *weight);
    out->slot = malloc(n * sizeof *out->slot);
    out->feature = calloc(n, sizeof *out->feature);
    int status = 0;
    if (!id || !weight || !out->slot || !out->feature) {
        status = shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for the tables of %u generated features", n);
    }
    if (status == 0) status = make_tables(out, id, weight, e);
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
    const uint64_t n_bits = planted->n_features / 64 + 1, max = SIZE_MAX_FACTOR * (uint64_t)planted->nonzeros + 1;
    memset(out, 0, sizeof *out);
    out->n_words = (uint32_t)(n_bits / 64 + 1);
    out->bits = calloc(n_bits, sizeof *out->bits);
    out->words = calloc(out->n_words, sizeof *out->words);
    out->id = malloc(max * sizeof *out->id);
    out->value = malloc(max * sizeof *out->value);
    if (out->bits && out->words && out->id && out->value) return 0;
    shmt_planted_example_fini(out);
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to generate examples of %u features", planted->n_features);
}

void shmt_planted_example_fini(struct shmt_planted_example *example) {
    free(example->bits);
    free(example->words);
    free(example->id);
    free(example->value);
    memset(example, 0, sizeof *example);
}

uint32_t shmt_planted_size(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index) {
    const uint64_t bits = random_bits(planted, DRAW_SIZE, stream, index);
    const double two = (double)(bits >> 32) * 0x1p-32 + (double)(uint32_t)bits * 0x1p-32;
    const uint32_t n = (uint32_t)(two * two * (6.0 / 7) * planted->nonzeros + 0.5);
    return n > 0 ? n : 1;
}

/* Draws distinct ids, and leaves them ascending in out->id. Marking them in a bitmap refuses repetitions and sorts, too. */
static void draw_ids(const struct shmt_planted *planted, enum shmt_planted_stream stream, uint64_t index,
                     struct shmt_planted_example *out) {
    const uint32_t size = shmt_planted_size(planted, stream, index);
    uint64_t state = random_bits(planted, DRAW_FEATURES, stream, index);
    for (uint32_t n = 0; n < size; state += STEP) {
        const uint32_t id = shmt_alias_draw(planted->slot, planted->n_features, shmt_mix64(state));
        const uint64_t bit = (uint64_t)1 << id % 64;
        n += (out->bits[id / 64] & bit) == 0;
        out->bits[id / 64] |= bit;
        out->words[id / 4096] |= (uint64_t)1 << id / 64 % 64;
    }
    out->n = 0;
    for (uint32_t i = 0; i < out->n_words; i++) {
        for (; out->words[i] != 0; out->words[i] &= out->words[i] - 1) {
            const uint32_t word = i * 64 + (uint32_t)__builtin_ctzll(out->words[i]);
            for (; out->bits[word] != 0; out->bits[word] &= out->bits[word] - 1) {
                out->id[out->n++] = word * 64 + (uint32_t)__builtin_ctzll(out->bits[word]);
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
        out->value[i] = planted->feature[out->id[i]].idf * term_frequency(shmt_mix64(state + i * STEP));
        square += (double)out->value[i] * out->value[i];
    }
    const double to_unit = 1 / sqrt(square);
    for (uint32_t i = 0; i < out->n; i++) out->value[i] = (float)(out->value[i] * to_unit);
    const float margin = (float)margin_of(planted, out);
    out->label = shmt_unit(random_bits(planted, DRAW_LABEL, stream, index)) < shmt_sigmoid(margin) ? 1 : -1;
    out->loss = shmt_logistic_loss(out->label * margin);
}
