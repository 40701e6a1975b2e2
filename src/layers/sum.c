/* Residual sums (He et al. 2015, "Deep residual learning"): `save` keeps what comes in, and the next `add` adds it to what comes in
 * there. Pairs may lie within one another: an `add` belongs to the latest `save` that has none yet.
 *
 *     save conv:32:3:pad=same relu conv:32:3:pad=same add relu */
#include <stddef.h>

#include "base/wide_vectors.h"
#include "layers/layers.h"
#include "math/parallel.h"

enum { BLOCK = 16384 }; /* numbers */

static int plan(struct shmtrain_layer *layer) {
    layer->out = layer->in;
    return 0;
}

/* to = a + b; `to` may be either. */
struct work {
    uint64_t n;
    const float *a, *b;
    float *to;
};

SHMT_FOR_WIDE_VECTORS static void add_block(uint64_t n, const float *a, const float *b, float *to) {
    for (uint64_t i = 0; i < n; i++) to[i] = a[i] + b[i];
}

SHMT_FOR_WIDE_VECTORS static void copy_block(uint64_t n, const float *a, float *to) {
    for (uint64_t i = 0; i < n; i++) to[i] = a[i];
}

static void run_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint64_t at = i * BLOCK, n = w->n - at < BLOCK ? w->n - at : BLOCK;
    if (w->b)
        add_block(n, w->a + at, w->b + at, w->to + at);
    else if (w->to != w->a)
        copy_block(n, w->a + at, w->to + at);
}

/* b NULL: a copy. */
static void run(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, const float *a, const float *b,
                float *to) {
    struct work w = {pass->n * shmtrain_extent_numbers(&layer->in), a, b, to};
    shmt_parallel(shmt_parallel_worth(pass->threads, (double)w.n), (w.n + BLOCK - 1) / BLOCK, run_block, &w);
}

static void forward_add(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    run(layer, pass, pass->in, pass->saved, pass->out);
}

/* Both parts of a sum get the sum's derivatives. */
static void backward_add(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    if (pass->d_saved) run(layer, pass, pass->d_out, NULL, pass->d_saved);
    if (pass->d_in) run(layer, pass, pass->d_out, NULL, pass->d_in);
}

static void backward_save(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    if (pass->d_in) run(layer, pass, pass->d_out, pass->d_saved, pass->d_in);
}

const struct shmtrain_layer_kind SHMT_LAYER_SAVE = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_SAVES | SHMTRAIN_LAYER_NOTHING | SHMTRAIN_LAYER_IN_PLACE,
    .name = "save",
    .about = "keeps what comes in for the next add",
    .plan = plan,
    .backward = backward_save,
};

const struct shmtrain_layer_kind SHMT_LAYER_ADD = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_ADDS | SHMTRAIN_LAYER_IN_PLACE,
    .name = "add",
    .about = "adds what was saved: a residual sum",
    .plan = plan,
    .forward = forward_add,
    .backward = backward_add,
};
