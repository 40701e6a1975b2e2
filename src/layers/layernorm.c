/* Layer normalisation (Ba, Kiros, Hinton 2016), for each example by itself, over all its N numbers:
 *
 *     x' = (x - m) / sqrt(v + e)        y = scale x' + shift, with N scales and shifts
 *     d scale = sum over examples of dy x'    d shift = sum of dy
 *     dx = (g - mean of g - x' mean of g x') / sqrt(v + e)    with g = scale dy
 *
 * Sums over an example are taken in LANES sums of doubles, in one order; sums over examples by blocks of numbers. */
#include <math.h>

#include "base/wide_vectors.h"
#include "layers/layers.h"
#include "math/parallel.h"

enum { SCALE, SHIFT, N_TABLES };
enum { EPSILON }; /* argument */
enum { LANES = 8, BLOCK = 512 };
#define NUMBER_NS 1.0

static int plan(struct shmtrain_layer *layer) {
    const uint64_t numbers = shmtrain_extent_numbers(&layer->in);
    layer->out = layer->in;
    layer->n_tables = N_TABLES;
    layer->table[SCALE] = (struct shmtrain_layer_table){.name = "scale", .rows = 1, .width = numbers, .start = SHMTRAIN_ONES};
    layer->table[SHIFT] = (struct shmtrain_layer_table){.name = "shift", .rows = 1, .width = numbers};
    layer->own.real[EPSILON] = (float)layer->argument[EPSILON].number;
    layer->multiplications = 2 * numbers;
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

/* Of each example its mean and 1 / sqrt(v + e). */
static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    (void)layer;
    (void)training;
    out->kept = (uint64_t)n * 2 * sizeof(float);
}

struct work {
    const struct shmtrain_layer_pass *pass;
    uint64_t n; /* numbers of an example */
    float epsilon;
    float *kept; /* (n, 2) */
};

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    return (struct work){pass, shmtrain_extent_numbers(&layer->in), layer->own.real[EPSILON], pass->kept};
}

static double sum_lanes(const double *lane) {
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

SHMT_FOR_WIDE_VECTORS static double sum_of(uint64_t n, const float *x) {
    double lane[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t j = 0; j < LANES; j++) lane[j] += (double)x[i + j];
    for (uint32_t j = 0; i < n; i++, j++) lane[j] += (double)x[i];
    return sum_lanes(lane);
}

SHMT_FOR_WIDE_VECTORS static double squares_of(uint64_t n, const float *x, double mean) {
    double lane[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t j = 0; j < LANES; j++) lane[j] += ((double)x[i + j] - mean) * ((double)x[i + j] - mean);
    for (uint32_t j = 0; i < n; i++, j++) lane[j] += ((double)x[i] - mean) * ((double)x[i] - mean);
    return sum_lanes(lane);
}

/* The sums of g and of g x', g = scale dy. */
SHMT_FOR_WIDE_VECTORS static void sum_slopes(uint64_t n, const float *x, const float *dy, const float *scale, const float *kept,
                                             double *sum_out, double *product_out) {
    double sum[LANES] = {0}, product[LANES] = {0};
    const float mean = kept[0], inverse = kept[1];
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (uint32_t j = 0; j < LANES; j++) {
            const float g = scale[i + j] * dy[i + j];
            sum[j] += (double)g;
            product[j] += (double)(g * ((x[i + j] - mean) * inverse));
        }
    for (uint32_t j = 0; i < n; i++, j++) {
        const float g = scale[i] * dy[i];
        sum[j] += (double)g;
        product[j] += (double)(g * ((x[i] - mean) * inverse));
    }
    *sum_out = sum_lanes(sum);
    *product_out = sum_lanes(product);
}

static void forward_example(void *arg, uint64_t k) {
    const struct work *w = arg;
    const float *x = w->pass->in + k * w->n, *scale = w->pass->table[SCALE], *shift = w->pass->table[SHIFT];
    const double mean = sum_of(w->n, x) / (double)w->n, variance = squares_of(w->n, x, mean) / (double)w->n;
    float *y = w->pass->out + k * w->n, *kept = w->kept + 2 * k;
    kept[0] = (float)mean;
    kept[1] = (float)(1 / sqrt(variance + (double)w->epsilon));
    for (uint64_t i = 0; i < w->n; i++) y[i] = (x[i] - kept[0]) * kept[1] * scale[i] + shift[i];
}

static void backward_example(void *arg, uint64_t k) {
    const struct work *w = arg;
    const float *x = w->pass->in + k * w->n, *dy = w->pass->d_out + k * w->n, *scale = w->pass->table[SCALE],
                *kept = w->kept + 2 * k;
    float *dx = w->pass->d_in + k * w->n;
    double sum, product;
    sum_slopes(w->n, x, dy, scale, kept, &sum, &product);
    const float a = (float)(sum / (double)w->n), b = (float)(product / (double)w->n);
    for (uint64_t i = 0; i < w->n; i++) dx[i] = kept[1] * ((scale[i] * dy[i] - a) - (x[i] - kept[0]) * kept[1] * b);
}

/* Gradients of some scales and shifts, over all examples in their order. */
static void tables_block(void *arg, uint64_t block) {
    const struct work *w = arg;
    const uint64_t from = block * BLOCK, to = w->n - from < BLOCK ? w->n : from + BLOCK;
    float *scale = w->pass->gradient[SCALE], *shift = w->pass->gradient[SHIFT];
    for (uint64_t i = from; i < to && !w->pass->add; i++) scale[i] = shift[i] = 0;
    for (uint64_t k = 0; k < w->pass->n; k++) {
        const float *x = w->pass->in + k * w->n, *dy = w->pass->d_out + k * w->n, *kept = w->kept + 2 * k;
        for (uint64_t i = from; i < to; i++) {
            scale[i] += dy[i] * ((x[i] - kept[0]) * kept[1]);
            shift[i] += dy[i];
        }
    }
}

static void run(struct work *w, uint64_t tiles, shmt_tile *tile) {
    const double ns = (double)w->pass->n * (double)w->n * NUMBER_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), tiles, tile, w);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    run(&w, pass->n, forward_example);
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    run(&w, (w.n + BLOCK - 1) / BLOCK, tables_block);
    if (pass->d_in) run(&w, pass->n, backward_example);
}

const struct shmtrain_layer_kind SHMT_LAYER_LAYERNORM = {
    .size = sizeof(struct shmtrain_layer_kind),
    .name = "layernorm",
    .about = "each example with mean 0 and variance 1 over all its numbers, scaled and shifted",
    .argument = {{.name = "epsilon", .type = SHMTRAIN_LAYER_ABOVE, .low = 0, .high = 1, .assumed = "0.00001"}},
    .plan = plan,
    .memory = memory,
    .forward = forward,
    .backward = backward,
};
