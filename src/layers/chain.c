/* Running a chain forward and backward: see chain.h. */
#include "layers/chain.h"

#include <stddef.h>

#include "layers/chain_priv.h"
#include "math/parallel.h"
#include "math/starts.h"

static float *floats(const struct shmt_chain_work *work, uint64_t at) { return (float *)(void *)(work->memory + at); }

/* ---- the data: from (channels, places) to (places, channels) ---- */

struct turning {
    const float *in;
    float *out;
    uint64_t channels, places;
};

static void turn_example(void *arg, uint64_t k) {
    const struct turning *t = arg;
    const float *in = t->in + k * t->channels * t->places;
    float *out = t->out + k * t->channels * t->places;
    for (uint64_t c = 0; c < t->channels; c++)
        for (uint64_t place = 0; place < t->places; place++) out[place * t->channels + c] = in[c * t->places + place];
}

float *shmt_chain_turned(const struct shmt_chain_work *work) { return work->is_turned ? floats(work, work->turned) : NULL; }

static const float *turn(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch) {
    const struct shmtrain_extent *in = &work->chain->in;
    if (!work->is_turned || batch->in == shmt_chain_turned(work)) return batch->in;
    struct turning t = {batch->in, floats(work, work->turned), in->channels, (uint64_t)in->height * in->width};
    shmt_parallel(batch->threads, batch->n, turn_example, &t);
    return t.out;
}

/* ---- forward ---- */

static const float *const NO_TABLE[SHMTRAIN_LAYER_TABLES];
static float *const NO_GRADIENT[SHMTRAIN_LAYER_TABLES];

static struct shmtrain_layer_pass pass_of(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch,
                                          uint32_t i) {
    const uint32_t first = work->chain->first_table[i];
    return (struct shmtrain_layer_pass){.size = sizeof(struct shmtrain_layer_pass),
                                        .n = batch->n,
                                        .threads = batch->threads,
                                        .training = work->training,
                                        .table = batch->table ? batch->table + first : NO_TABLE,
                                        .gradient = batch->gradient ? batch->gradient + first : NO_GRADIENT,
                                        .add = batch->add,
                                        .kept = work->memory + work->kept[i],
                                        .scratch = work->memory + work->scratch,
                                        .seed = batch->seed,
                                        .epoch = batch->epoch,
                                        .example = batch->example};
}

/* Inputs of layer i: outputs of the latest layer that has written any, or the data. */
static const float *inputs_of(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch, uint32_t i) {
    while (i > 0 && shmt_chain_only_shapes(work->chain, i - 1)) i--;
    if (i > 0) return floats(work, work->out[i - 1]);
    return work->is_turned ? floats(work, work->turned) : batch->in;
}

const float *shmt_chain_forward(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch) {
    const struct shmt_chain *chain = work->chain;
    const float *at = turn(work, batch);
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        const struct shmtrain_layer *layer = &chain->layer[i];
        if (shmt_chain_only_shapes(chain, i)) continue;
        struct shmtrain_layer_pass pass = pass_of(work, batch, i);
        pass.in = at;
        pass.out = floats(work, work->out[i]);
        if (layer->kind->traits & SHMTRAIN_LAYER_ADDS) pass.saved = inputs_of(work, batch, chain->saver[i]);
        layer->kind->forward(layer, &pass);
        at = pass.out;
    }
    return at;
}

/* ---- backward ---- */

static bool has_gradients(const struct shmtrain_layer *layer) {
    for (uint32_t t = 0; t < layer->n_tables; t++)
        if (layer->table[t].role != SHMTRAIN_FROZEN) return true;
    return false;
}

float *shmt_chain_slopes(const struct shmt_chain_work *work) { return floats(work, work->d[0]); }

void shmt_chain_backward(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch) {
    const struct shmt_chain *chain = work->chain;
    uint32_t turn = 0;
    for (uint32_t i = chain->n_layers; i-- > chain->first_pushed;) {
        const struct shmtrain_layer *layer = &chain->layer[i];
        const uint32_t traits = layer->kind->traits;
        struct shmtrain_layer_pass pass = pass_of(work, batch, i);
        if (!shmt_chain_goes_back(chain, i)) continue;
        pass.in = inputs_of(work, batch, i);
        pass.out = floats(work, work->out[i]);
        pass.d_out = floats(work, work->d[turn]);
        if (shmt_chain_flips(chain, i)) turn = !turn;
        if (i > chain->first_pushed) pass.d_in = floats(work, work->d[turn]);
        if (traits & SHMTRAIN_LAYER_ADDS) pass.d_saved = floats(work, work->d_saved[i]);
        if (traits & SHMTRAIN_LAYER_SAVES) pass.d_saved = floats(work, work->d_saved[chain->saver[i]]);
        layer->kind->backward(layer, &pass);
        if (batch->ready && has_gradients(layer)) batch->ready(batch->arg, i);
    }
}

/* ---- how tables begin ---- */

void shmt_chain_begin(const struct shmt_chain *chain, uint64_t seed, uint32_t t, float *value) {
    const struct shmtrain_layer_table *table = shmt_chain_table(chain, t, NULL);
    shmt_start_fill(table->start, table->fan_in, table->fan_out, seed, t, value, table->rows * table->width);
}
