/* Where the activations of a chain lie, and what is said of its layers: see chain.h. */
#include <stdio.h>

#include "base/checked.h"
#include "layers/chain.h"
#include "layers/chain_priv.h"

enum { LINE = 64 };

/* Takes a piece of memory: its place, in whole lines. */
static bool take(uint64_t *bytes, uint64_t more, uint64_t *at_out) {
    uint64_t end;
    *at_out = *bytes;
    return shmt_add_u64(*bytes, more, &end) && shmt_round_up_u64(end, LINE, bytes);
}

static bool take_floats(uint64_t *bytes, uint64_t n, uint64_t each, uint64_t *at_out) {
    uint64_t floats, more;
    return shmt_mul_u64(n, each, &floats) && shmt_mul_u64(floats, sizeof(float), &more) && take(bytes, more, at_out);
}

/* Whether layer i may overwrite its inputs: it does not read them later, and nobody else does: neither the layer that made them (its
 * outputs; layers between that only change shapes pass them on), nor a sum, whose other part are inputs of who saves. What comes from
 * outside is not ours. */
static bool works_in_place(const struct shmt_chain_work *work, uint32_t i) {
    const struct shmt_chain *chain = work->chain;
    const struct shmtrain_layer *layer = &chain->layer[i];
    if (!(layer->kind->traits & SHMTRAIN_LAYER_IN_PLACE) || (layer->kind->traits & SHMTRAIN_LAYER_SAVES)) return false;
    if (work->training && (layer->reads & SHMTRAIN_LAYER_READS_IN)) return false;
    for (uint32_t j = i; j-- > 0;) {
        const struct shmtrain_layer *before = &chain->layer[j];
        if (before->kind->traits & SHMTRAIN_LAYER_SAVES) return false;
        if (work->training && (before->reads & SHMTRAIN_LAYER_READS_OUT)) return false;
        if (!shmt_chain_only_shapes(chain, j)) return true;
    }
    return work->is_turned;
}

static bool lay_activations(struct shmt_chain_work *work, uint64_t *scratch) {
    const struct shmt_chain *chain = work->chain;
    uint64_t last = work->turned;
    for (uint32_t i = 0; i < chain->n_layers; i++) {
        const struct shmtrain_layer *layer = &chain->layer[i];
        struct shmtrain_layer_memory memory = {0, 0};
        if (shmt_chain_only_shapes(chain, i) || works_in_place(work, i))
            work->out[i] = last;
        else if (!take_floats(&work->bytes, work->n, shmtrain_extent_numbers(&layer->out), &work->out[i]))
            return false;
        last = work->out[i];
        if (layer->kind->memory) layer->kind->memory(layer, work->n, work->training, &memory);
        if (!take(&work->bytes, memory.kept, &work->kept[i])) return false;
        *scratch = shmt_max_u64(*scratch, memory.scratch);
    }
    return true;
}

/* Derivatives go through two buffers in turns, as backward does (chain.c). */
static bool lay_derivatives(struct shmt_chain_work *work) {
    const struct shmt_chain *chain = work->chain;
    uint64_t most[2] = {shmtrain_extent_numbers(&chain->out), 0};
    uint32_t turn = 0;
    for (uint32_t i = chain->n_layers; i-- > chain->first_pushed;) {
        const struct shmtrain_layer *layer = &chain->layer[i];
        if (layer->kind->traits & SHMTRAIN_LAYER_ADDS)
            if (!take_floats(&work->bytes, work->n, shmtrain_extent_numbers(&layer->in), &work->d_saved[i])) return false;
        if (!shmt_chain_flips(chain, i)) continue;
        turn = !turn;
        most[turn] = shmt_max_u64(most[turn], shmtrain_extent_numbers(&layer->in));
    }
    return take_floats(&work->bytes, work->n, most[0], &work->d[0]) && take_floats(&work->bytes, work->n, most[1], &work->d[1]);
}

/* Of one channel, and of one place, channels are last as they are. */
static bool is_turned(const struct shmt_chain *chain) {
    return chain->in.channels > 1 && chain->in.channels < shmtrain_extent_numbers(&chain->in);
}

int shmt_chain_lay_out(const struct shmt_chain *chain, uint32_t n, bool training, struct shmt_chain_work *out,
                       struct shmt_error *e) {
    const uint64_t numbers = shmtrain_extent_numbers(&chain->in);
    uint64_t scratch = 0;
    *out = (struct shmt_chain_work){.chain = chain, .n = n, .training = training};
    out->is_turned = is_turned(chain);
    if ((!out->is_turned || take_floats(&out->bytes, n, numbers, &out->turned)) && lay_activations(out, &scratch) &&
        (!training || lay_derivatives(out)) && take(&out->bytes, scratch, &out->scratch) && out->bytes < UINT64_C(1) << 62)
        return 0;
    return shmt_refuse(e, "the network needs more than 2^62 bytes for %u examples: take fewer at a time", n);
}

const struct shmtrain_layer_table *shmt_chain_table(const struct shmt_chain *chain, uint32_t t, uint32_t *layer_out) {
    uint32_t i = 0;
    while (t >= chain->first_table[i] + chain->layer[i].n_tables) i++;
    if (layer_out) *layer_out = i;
    return &chain->layer[i].table[t - chain->first_table[i]];
}

void shmt_chain_row(const struct shmt_chain *chain, const char *text, uint32_t i, struct shmt_chain_row *out) {
    enum { N = 64 }; /* what is for each example shows in the difference between two numbers of them */
    const struct shmtrain_layer *layer = &chain->layer[i];
    struct shmtrain_layer_memory few = {0, 0}, more = {0, 0};
    struct shmt_chain_work work = {.chain = chain, .training = true};
    *out = (struct shmt_chain_row){.out = layer->out, .multiplications = layer->multiplications};
    work.is_turned = is_turned(chain);
    snprintf(out->text, sizeof out->text, "%.*s", (int)chain->letters[i], text + chain->from[i]);
    for (uint32_t t = 0; t < layer->n_tables; t++) out->parameters += layer->table[t].rows * layer->table[t].width;
    if (layer->kind->memory) {
        layer->kind->memory(layer, N, 1, &few);
        layer->kind->memory(layer, 2 * N, 1, &more);
    }
    out->bytes = (more.kept - few.kept) / N;
    if (!shmt_chain_only_shapes(chain, i) && !works_in_place(&work, i))
        out->bytes += shmtrain_extent_numbers(&layer->out) * sizeof(float);
}
