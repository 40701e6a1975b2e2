/* Layers that change each number by itself: relu, tanh, sigmoid, gelu.
 *
 *     relu(x) = max(x, 0)        tanh(x) = (1 - t) / (1 + t) for x >= 0, t = e^-2x        sigmoid(x) = 1 / (1 + e^-x)
 *     gelu(x) = x F(x), F the normal distribution's function, with F(x) = (1 + erf(x / sqrt 2)) / 2 (Hendrycks, Gimpel 2016)
 *
 * All of them are made of additions, multiplications, divisions and moves of bits, as math/logistic.h is, so that loops become
 * vector code with the same bits everywhere. Errors are below 3e-7 (tests/test_layers_errors.c); erf is Abramowitz and Stegun's
 * 7.1.26. The first three know their derivative from their output, and work in place. NaN stays NaN. */
#include "base/wide_vectors.h"
#include "layers/layers.h"
#include "math/logistic.h"
#include "math/parallel.h"

enum { BLOCK = 16384 }; /* numbers */

/* Loops over n numbers; y may be x, and dx may be dy. */
typedef void forward_loop(uint64_t n, const float *x, float *y);
typedef void backward_loop(uint64_t n, const float *seen, const float *dy, float *dx); /* seen: y; of gelu: x */

/* All ones where the number is -inf .. -0, but not NaN: an integer comparison, which cannot trap. */
static inline uint32_t below_zero(uint32_t bits) { return (int32_t)bits <= (int32_t)0xff800000u ? UINT32_MAX : 0; }

static inline float size_of(float x) { return shmt_float_of_bits(shmt_bits_of_float(x) & 0x7fffffff); }
static inline float with_sign_of(float size, float x) {
    return shmt_float_of_bits(shmt_bits_of_float(size) | (shmt_bits_of_float(x) & 0x80000000u));
}

static inline float relu_of(float x) {
    const uint32_t bits = shmt_bits_of_float(x);
    return shmt_float_of_bits(bits & ~below_zero(bits));
}

/* Near 0, where 1 - t loses digits, the series of tanh. */
static inline float tanh_of(float x) {
    const float a = size_of(x), t = shmt_exp_minus(2 * a), a2 = a * a;
    const float far = (1 - t) / (1 + t);
    const float near =
        a + a * a2 * ((-0x1.555556p-2f + 0x1.111112p-3f * a2) + a2 * a2 * (-0x1.ba1ba2p-5f + 0x1.664f48p-6f * a2));
    const uint32_t is_near = shmt_sign_mask(shmt_bits_of_float(a) - 0x3e800000u); /* below 1/4; NaN is not */
    return with_sign_of(shmt_float_of_bits((shmt_bits_of_float(near) & is_near) | (shmt_bits_of_float(far) & ~is_near)), x);
}

/* The normal distribution's function, and its density into *density_out. */
static inline float normal_of(float x, float *density_out) {
    const float a = size_of(x) * 0x1.6a09e6p-1f, e = shmt_exp_minus(a * a), t = 1 / (1 + 0.3275911f * a);
    const float tail =
        0.5f * e * t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    const uint32_t negative = shmt_sign_mask(shmt_bits_of_float(x));
    *density_out = 0x1.988454p-2f * e;
    return shmt_float_of_bits((shmt_bits_of_float(tail) & negative) | (shmt_bits_of_float(1 - tail) & ~negative));
}

SHMT_FOR_WIDE_VECTORS static void relu_forward(uint64_t n, const float *x, float *y) {
    for (uint64_t i = 0; i < n; i++) y[i] = relu_of(x[i]);
}

SHMT_FOR_WIDE_VECTORS static void relu_backward(uint64_t n, const float *y, const float *dy, float *dx) {
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t some = shmt_bits_of_float(y[i]) == 0 ? 0 : UINT32_MAX;
        dx[i] = shmt_float_of_bits(shmt_bits_of_float(dy[i]) & some);
    }
}

SHMT_FOR_WIDE_VECTORS static void tanh_forward(uint64_t n, const float *x, float *y) {
    for (uint64_t i = 0; i < n; i++) y[i] = tanh_of(x[i]);
}

SHMT_FOR_WIDE_VECTORS static void tanh_backward(uint64_t n, const float *y, const float *dy, float *dx) {
    for (uint64_t i = 0; i < n; i++) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

SHMT_FOR_WIDE_VECTORS static void sigmoid_forward(uint64_t n, const float *x, float *y) {
    for (uint64_t i = 0; i < n; i++) y[i] = shmt_sigmoid(x[i]);
}

SHMT_FOR_WIDE_VECTORS static void sigmoid_backward(uint64_t n, const float *y, const float *dy, float *dx) {
    for (uint64_t i = 0; i < n; i++) dx[i] = dy[i] * (y[i] * (1 - y[i]));
}

SHMT_FOR_WIDE_VECTORS static void gelu_forward(uint64_t n, const float *x, float *y) {
    for (uint64_t i = 0; i < n; i++) {
        float density;
        y[i] = x[i] * normal_of(x[i], &density);
    }
}

SHMT_FOR_WIDE_VECTORS static void gelu_backward(uint64_t n, const float *x, const float *dy, float *dx) {
    for (uint64_t i = 0; i < n; i++) {
        float density;
        const float below = normal_of(x[i], &density);
        dx[i] = dy[i] * (below + x[i] * density);
    }
}

/* ---- as layers ---- */

struct work {
    uint64_t n;
    forward_loop *forward;
    backward_loop *backward;
    const float *from, *slope;
    float *to;
};

static uint64_t size_at(const struct work *w, uint64_t at) { return w->n - at < BLOCK ? w->n - at : BLOCK; }

static void forward_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint64_t at = i * BLOCK;
    w->forward(size_at(w, at), w->from + at, w->to + at);
}

static void backward_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint64_t at = i * BLOCK;
    w->backward(size_at(w, at), w->from + at, w->slope + at, w->to + at);
}

static void run(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, struct work w, shmt_tile *block) {
    w.n = pass->n * shmtrain_extent_numbers(&layer->in);
    shmt_parallel(shmt_parallel_worth(pass->threads, (double)w.n), (w.n + BLOCK - 1) / BLOCK, block, &w);
}

static void run_forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, forward_loop *loop) {
    run(layer, pass, (struct work){.forward = loop, .from = pass->in, .to = pass->out}, forward_block);
}

static void run_backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, backward_loop *loop) {
    if (!pass->d_in) return;
    const float *seen = layer->reads & SHMTRAIN_LAYER_READS_OUT ? pass->out : pass->in;
    run(layer, pass, (struct work){.backward = loop, .from = seen, .slope = pass->d_out, .to = pass->d_in}, backward_block);
}

static int plan_by_output(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->reads = SHMTRAIN_LAYER_READS_OUT;
    return 0;
}

static int plan_by_input(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

#define ACTIVATION(kind, word, say, plans)                                                                      \
    static void word##_layer(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {      \
        run_forward(layer, pass, word##_forward);                                                               \
    }                                                                                                           \
    static void word##_layer_back(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) { \
        run_backward(layer, pass, word##_backward);                                                             \
    }                                                                                                           \
    const struct shmtrain_layer_kind kind = {                                                                   \
        .size = sizeof(struct shmtrain_layer_kind),                                                             \
        .traits = SHMTRAIN_LAYER_IN_PLACE,                                                                      \
        .name = #word,                                                                                          \
        .about = (say),                                                                                         \
        .plan = (plans),                                                                                        \
        .forward = word##_layer,                                                                                \
        .backward = word##_layer_back,                                                                          \
    }

ACTIVATION(SHMT_LAYER_RELU, relu, "max(x, 0)", plan_by_output);
ACTIVATION(SHMT_LAYER_TANH, tanh, "hyperbolic tangent", plan_by_output);
ACTIVATION(SHMT_LAYER_SIGMOID, sigmoid, "1 / (1 + e^-x)", plan_by_output);
ACTIVATION(SHMT_LAYER_GELU, gelu, "x times the share of the normal distribution below x", plan_by_input);
