/* What the ways of computing a convolution share.
 *
 * For examples x (height, width, channels), filters w (filters, kernel height, kernel width, channels / groups), and strides s:
 *
 *     y[oy, ox, f] = b[f] + sum over ky, kx, c of x[oy s + ky - top, ox s + kx - left, first(f) + c] w[f, ky, kx, c]
 *
 * where what lies outside of x counts as 0, and first(f) is the first channel of the group that filter f belongs to. Batches are cut
 * into parts, whose number follows from n alone; a thread takes whole parts, and gradients of parts are added in their order. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>
#include <stddef.h>

#include "math/parallel.h"

enum { SHMT_CONV_WEIGHT, SHMT_CONV_BIAS }; /* tables */

enum shmt_conv_way { SHMT_CONV_COLUMNS, SHMT_CONV_WINOGRAD };

/* A convolution, as planned; it lies in the layer's own numbers. */
struct shmt_conv {
    uint32_t kernel_height, kernel_width, stride_height, stride_width, top, left, groups;
    uint32_t way; /* enum shmt_conv_way */
};

static inline uint32_t shmt_conv_lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Parts of n examples: each has 16 at least, unless there are fewer. */
enum { SHMT_CONV_PARTS = 8, SHMT_CONV_PART = 16 };
static inline uint32_t shmt_conv_parts(uint32_t n) {
    return n < 2 * SHMT_CONV_PART ? 1 : shmt_conv_lesser(SHMT_CONV_PARTS, n / SHMT_CONV_PART);
}

/* Examples of a part: first .. first + n - 1. */
struct shmt_conv_part {
    uint32_t first, n;
};
static inline struct shmt_conv_part shmt_conv_part_of(uint32_t n, uint64_t part) {
    const uint64_t parts = shmt_conv_parts(n), from = n * part / parts;
    return (struct shmt_conv_part){(uint32_t)from, (uint32_t)(n * (part + 1) / parts - from)};
}

/* A way of computing it: as the entries of a kind. */
struct shmt_conv_ops {
    void (*memory)(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out);
    void (*forward)(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass);
    void (*backward)(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass);
};

extern const struct shmt_conv_ops SHMT_CONV_BY_COLUMNS, SHMT_CONV_BY_WINOGRAD;

/* Whether Winograd's way can be taken, and saves multiplications. */
bool shmt_conv_winograd_suits(const struct shmtrain_layer *layer, const struct shmt_conv *conv);

static inline struct shmt_conv shmt_conv_of(const struct shmtrain_layer *layer) {
    const uint32_t *own = layer->own.whole;
    return (struct shmt_conv){own[0], own[1], own[2], own[3], own[4], own[5], own[6], own[7]};
}

/* b is added to, and relu applied to, `rows` rows of outputs; b may be NULL. */
void shmt_conv_finish(float *y, uint64_t rows, uint32_t filters, const float *bias, bool relu);

/* Derivatives by the sums before relu, (rows, filters), into g: d where y > 0 (all of d without relu); and their column sums, added to
 * db (filters) where it is not NULL. */
void shmt_conv_slopes(const float *y, const float *d, uint64_t rows, uint32_t filters, bool relu, float *g, float *db);

/* The gradients of parts, (parts, stride) from `parts_at`, each with `n` numbers, become the gradient: their sum in order. */
void shmt_conv_add_parts(const float *parts_at, uint32_t parts, uint64_t stride, uint64_t n, uint32_t add, float *gradient);
