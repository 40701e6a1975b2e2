/* Dropout (Srivastava et al. 2014): in training each number is dropped with the given chance, and what stays is divided by the chance
 * to stay; in scoring nothing happens.
 *
 * Whether a number is dropped follows from (seed, epoch, example, layer, its place in the example) alone: four numbers share the 64
 * bits of one hash, 16 for each. So a mask has the same bits whatever worker, batch or chunk the example is in, and backward makes it
 * again instead of keeping it. Chances are therefore multiples of 2^-16. */
#include <string.h>

#include "base/random.h"
#include "base/wide_vectors.h"
#include "layers/layers.h"
#include "math/logistic.h"
#include "math/parallel.h"

enum { CHANCE };               /* argument */
enum { BELOW, SCALE };         /* own numbers: dropped where 16 bits are below; what stays is times this */
enum { PURPOSE = 0x64726f70 }; /* of these random numbers */
#define NUMBER_NS 1.0

static int plan(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    layer->own.whole[BELOW] = (uint32_t)(layer->argument[CHANCE].number * 0x1p16 + 0.5);
    layer->own.real[SCALE] = 1 / (1 - (float)layer->own.whole[BELOW] * 0x1p-16f);
    if (layer->own.whole[BELOW] < 1 << 16) return 0;
    memcpy(layer->why, "everything would be dropped", sizeof "everything would be dropped");
    layer->wrong = CHANCE;
    return -1;
}

/* Forward and backward alike: from x to y, which may be the same. */
struct work {
    const struct shmtrain_layer *layer;
    const struct shmtrain_layer_pass *pass;
    const float *x;
    float *y;
    uint64_t n; /* numbers of an example */
};

SHMT_FOR_WIDE_VECTORS static void drop(uint64_t key, uint64_t n, uint32_t below, float scale, const float *x, float *y) {
    const uint64_t whole = n & ~UINT64_C(3);
    for (uint64_t i = 0; i < whole; i += 4) {
        const uint64_t bits = shmt_mix64(key + i);
        for (uint32_t j = 0; j < 4; j++) {
            const uint32_t stays = (uint32_t)(bits >> (16 * j) & 0xffff) < below ? 0 : UINT32_MAX;
            y[i + j] = shmt_float_of_bits(shmt_bits_of_float(x[i + j] * scale) & stays);
        }
    }
    const uint64_t bits = shmt_mix64(key + whole);
    for (uint64_t i = whole; i < n; i++) y[i] = (bits >> (16 * (i & 3)) & 0xffff) < below ? 0 : x[i] * scale;
}

static void drop_example(void *arg, uint64_t k) {
    const struct work *w = arg;
    const uint64_t key = shmt_hash64(w->pass->seed ^ PURPOSE, w->pass->epoch, w->pass->example[k], w->layer->number);
    drop(key, w->n, w->layer->own.whole[BELOW], w->layer->own.real[SCALE], w->x + k * w->n, w->y + k * w->n);
}

static void run(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, const float *x, float *y) {
    struct work w = {layer, pass, x, y, shmtrain_extent_numbers(&layer->in)};
    shmt_parallel(shmt_parallel_worth(pass->threads, (double)w.n * pass->n * NUMBER_NS), pass->n, drop_example, &w);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    if (pass->training)
        run(layer, pass, pass->in, pass->out);
    else if (pass->out != pass->in)
        memcpy(pass->out, pass->in, pass->n * shmtrain_extent_numbers(&layer->in) * sizeof(float));
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    if (pass->d_in) run(layer, pass, pass->d_out, pass->d_in);
}

const struct shmtrain_layer_kind SHMT_LAYER_DROPOUT = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_IN_PLACE,
    .name = "dropout",
    .about = "in training, drops each number with this chance",
    .argument = {{.name = "chance", .type = SHMTRAIN_LAYER_REAL, .low = 0, .high = 1, .assumed = "0.5"}},
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
