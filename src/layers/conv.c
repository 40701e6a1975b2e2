/* Convolutions: their arguments and shapes, and what all ways of computing them share. */
#include <stdio.h>

#include "base/wide_vectors.h"
#include "layers/conv_priv.h"
#include "layers/layers.h"

enum { FILTERS, KERNEL, STRIDE, PAD, GROUPS, BIAS }; /* arguments */
enum { SAME = 1, YES = 1 };                          /* words */
enum { MOST_PADDING = 1024 };
enum { WAY = 7 }; /* place in struct shmt_conv */

/* Places of outputs along one side of `in` places, and zeros before the first one; 0: the kernel is larger than that. */
static uint32_t places(uint32_t in, uint32_t kernel, uint32_t stride, const struct shmtrain_layer_value *pad, uint32_t given,
                       uint32_t *before_out) {
    if (pad->word == SAME) {
        const uint32_t out = (in + stride - 1) / stride;
        const uint64_t needed = (uint64_t)(out - 1) * stride + kernel;
        *before_out = needed > in ? (uint32_t)(needed - in) / 2 : 0;
        return out;
    }
    *before_out = given;
    const uint64_t whole = (uint64_t)in + 2 * (uint64_t)given;
    return whole < kernel ? 0 : (uint32_t)((whole - kernel) / stride) + 1;
}

static int refuse(struct shmtrain_layer *layer, int32_t wrong) {
    layer->wrong = wrong;
    return -1;
}

static int plan_shape(struct shmtrain_layer *layer) {
    const struct shmtrain_layer_value *a = layer->argument, *kernel = &a[KERNEL], *stride = &a[STRIDE], *pad = &a[PAD];
    const struct shmtrain_extent *in = &layer->in;
    uint32_t top, left;
    layer->out.channels = (uint32_t)a[FILTERS].number;
    layer->out.height = places(in->height, kernel->height, stride->height, pad, pad->height, &top);
    layer->out.width = places(in->width, kernel->width, stride->width, pad, pad->width, &left);
    if (layer->out.height == 0 || layer->out.width == 0) {
        snprintf(layer->why, sizeof layer->why, "a kernel of %ux%u does not fit into %ux%u places: take a smaller one, or pad",
                 kernel->height, kernel->width, in->height, in->width);
        return refuse(layer, KERNEL);
    }
    const uint32_t groups = (uint32_t)a[GROUPS].number;
    if (in->channels % groups != 0 || layer->out.channels % groups != 0) {
        snprintf(layer->why, sizeof layer->why, "%u does not divide both %u channels and %u filters", groups, in->channels,
                 layer->out.channels);
        return refuse(layer, GROUPS);
    }
    const uint32_t own[] = {kernel->height, kernel->width, stride->height, stride->width, top, left, groups, SHMT_CONV_COLUMNS};
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++) layer->own.whole[i] = own[i];
    return 0;
}

static int plan(struct shmtrain_layer *layer) {
    if (plan_shape(layer) < 0) return -1;
    const struct shmt_conv conv = shmt_conv_of(layer);
    if (shmt_conv_winograd_suits(layer, &conv)) layer->own.whole[WAY] = SHMT_CONV_WINOGRAD;
    const uint64_t filters = layer->out.channels, area = (uint64_t)conv.kernel_height * conv.kernel_width,
                   width = area * (layer->in.channels / conv.groups);
    if (width > INT32_MAX || width * filters > INT32_MAX) {
        snprintf(layer->why, sizeof layer->why, "%llu weights are too many: at most 2^31 - 1 are possible",
                 (unsigned long long)(width * filters));
        return refuse(layer, FILTERS);
    }
    layer->n_tables = layer->argument[BIAS].word == YES ? 2 : 1;
    layer->table[SHMT_CONV_WEIGHT] = (struct shmtrain_layer_table){.name = "weight",
                                                                   .rows = filters,
                                                                   .width = width,
                                                                   .start = SHMTRAIN_HE,
                                                                   .decays = 1,
                                                                   .fan_in = width,
                                                                   .fan_out = area * (filters / conv.groups)};
    layer->table[SHMT_CONV_BIAS] = (struct shmtrain_layer_table){.name = "bias", .rows = 1, .width = filters};
    layer->multiplications = width * shmtrain_extent_numbers(&layer->out);
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

static const struct shmt_conv_ops *way_of(const struct shmtrain_layer *layer) {
    return shmt_conv_of(layer).way == SHMT_CONV_WINOGRAD ? &SHMT_CONV_BY_WINOGRAD : &SHMT_CONV_BY_COLUMNS;
}

static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    way_of(layer)->memory(layer, n, training, out);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    way_of(layer)->forward(layer, pass);
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    way_of(layer)->backward(layer, pass);
}

/* ---- shared loops ---- */

/* -inf .. -0 become 0, NaN stays. */
static inline float clip(float x) { return x <= 0 ? 0 : x; }

SHMT_FOR_WIDE_VECTORS static void finish_row(float *restrict y, uint32_t filters, const float *restrict bias, bool relu) {
    if (bias)
        for (uint32_t f = 0; f < filters; f++) y[f] += bias[f];
    if (relu)
        for (uint32_t f = 0; f < filters; f++) y[f] = clip(y[f]);
}

void shmt_conv_finish(float *y, uint64_t rows, uint32_t filters, const float *bias, bool relu) {
    if (!bias && !relu) return;
    for (uint64_t r = 0; r < rows; r++) finish_row(y + r * filters, filters, bias, relu);
}

SHMT_FOR_WIDE_VECTORS static void slopes_of_row(const float *restrict y, const float *restrict d, uint32_t filters, bool relu,
                                                float *restrict g, float *restrict db) {
    for (uint32_t f = 0; f < filters; f++) g[f] = relu && y[f] == 0 ? 0 : d[f];
    for (uint32_t f = 0; db && f < filters; f++) db[f] += g[f];
}

void shmt_conv_slopes(const float *y, const float *d, uint64_t rows, uint32_t filters, bool relu, float *g, float *db) {
    for (uint64_t r = 0; r < rows; r++) slopes_of_row(y + r * filters, d + r * filters, filters, relu, g + r * filters, db);
}

void shmt_conv_add_parts(const float *parts_at, uint32_t parts, uint64_t stride, uint64_t n, uint32_t add, float *gradient) {
    for (uint64_t i = 0; i < n; i++) {
        float sum = parts_at[i];
        for (uint32_t p = 1; p < parts; p++) sum += parts_at[p * stride + i];
        gradient[i] = add ? gradient[i] + sum : sum;
    }
}

const struct shmtrain_layer_kind SHMT_LAYER_CONV = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_CLIPS | SHMTRAIN_LAYER_BLAS,
    .name = "conv",
    .about = "convolution: each filter is moved over the places of its input",
    .argument = {{.name = "filters", .type = SHMTRAIN_LAYER_WHOLE, .low = 1, .high = 1 << 20},
                 {.name = "kernel", .type = SHMTRAIN_LAYER_PAIR, .low = 1, .high = MOST_PADDING},
                 {.name = "stride", .type = SHMTRAIN_LAYER_PAIR, .low = 1, .high = MOST_PADDING, .assumed = "1"},
                 {.name = "pad", .type = SHMTRAIN_LAYER_PAIR, .low = 0, .high = MOST_PADDING, .words = "same", .assumed = "0"},
                 {.name = "groups", .type = SHMTRAIN_LAYER_WHOLE, .low = 1, .high = 1 << 20, .assumed = "1"},
                 {.name = "bias", .type = SHMTRAIN_LAYER_WORD, .words = "yes|no", .assumed = "yes"}},
    .plan = plan,
    .memory = memory,
    .forward = forward,
    .backward = backward,
};
