/* Examples on their way into a network: on which scales, as found in the training examples, and row by row. See net_priv.h. */
#include <string.h>

#include "layers/features.h"
#include "layers/images.h"
#include "layers/spread.h"
#include "math/parallel.h"
#include "models/examples_priv.h"
#include "models/net_priv.h"

/* ---- scales ---- */

/* One channel after the other: there may be more than memory of ours for sums, and their pixels lie apart. */
static void begin_images(const struct shmtrain_batch *train, float *normal) {
    const struct shmtrain_data *data = train->data;
    const uint64_t places = (uint64_t)data->height * data->width;
    for (uint32_t c = 0; c < data->channels; c++) {
        struct shmt_spread spread = {0};
        for (uint32_t k = 0; k < train->n; k++)
            shmt_images_add(&spread, data->dense + shmt_example_at(train, k) * data->n_features + c * places, places);
        shmt_images_normal(&spread, normal + 2 * (uint64_t)c);
    }
}

#define FEATURES 256 /* at a time, of all examples */

static void begin_features(const struct shmtrain_batch *train, float *normal) {
    const struct shmtrain_data *data = train->data;
    for (uint64_t first = 0; first < data->n_features; first += FEATURES) {
        struct shmt_feature_sums sums[FEATURES] = {0};
        const uint64_t left = data->n_features - first, n = left < FEATURES ? left : FEATURES;
        for (uint32_t k = 0; k < train->n; k++)
            shmt_features_add(sums, data->dense + shmt_example_at(train, k) * data->n_features + first, n);
        shmt_features_normal(sums, n, normal + 2 * first);
    }
}

/* Weighted, added up in the order of the examples. Labels that are all alike are not divided. */
static void begin_labels(const struct shmtrain_batch *train, float *mean_and_deviation) {
    const struct shmtrain_data *data = train->data;
    struct shmt_spread spread = {0};
    for (uint32_t k = 0; k < train->n; k++) {
        const uint64_t i = shmt_example_at(train, k);
        shmt_spread_add(&spread, (double)data->label[i], data->weight ? (double)data->weight[i] : 1);
    }
    mean_and_deviation[0] = (float)shmt_spread_mean(&spread);
    mean_and_deviation[1] = shmt_spread_divisor(shmt_spread_deviation(&spread));
}

void shmt_net_begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                    float *value) {
    const struct net *net = state;
    (void)with;
    if (t < net->chain.n_tables) return;
    if (net->squared && t == shmt_net_output_table(net))
        begin_labels(train, value);
    else if (net->images)
        begin_images(train, value);
    else
        begin_features(train, value);
}

/* ---- rows ---- */

/* Rows into the workspace. */
struct gathering {
    const struct shmt_net_examples *from;
    const struct shmt_chain_batch *batch;
    struct shmt_images how;
    const struct shmt_augment *augment; /* NULL: nothing is changed */
    float *rows;
};

static void gather_one(void *arg, uint64_t k) {
    const struct gathering *g = arg;
    const struct shmtrain_data *data = g->from->data;
    const struct shmt_chain_batch *batch = g->batch;
    const uint64_t width = data->n_features;
    const float *row = data->dense + batch->example[k] * width;
    float *to = g->rows + k * width;
    struct shmt_move move = {0};
    if (k + 1 < batch->n) shmt_images_ask(data->dense + batch->example[k + 1] * width, width);
    if (g->augment) move = shmt_augment_draw(g->augment, batch->seed, batch->epoch, batch->example[k]);
    if (g->from->net->images)
        shmt_images_put(&g->how, move, row, to);
    else if (g->from->normal)
        shmt_features_put(g->from->normal, width, row, to);
    else
        memcpy(to, row, width * sizeof *to);
}

#define GATHER_NS 1.0 /* for a number, most of it for memory */

/* Rows that stand one behind the other, and go in as they are, are taken where they are. */
const float *shmt_net_gather(const struct shmt_net_examples *from, const struct shmt_chain_batch *batch) {
    const struct net *net = from->net;
    const bool augments = from->training && shmt_augment_is_wanted(&net->augment);
    if (!from->listed && !augments && !net->normalises) return from->data->dense + from->first * from->data->n_features;
    struct gathering g = {.from = from,
                          .batch = batch,
                          .how = {.of = net->chain.in, .normal = from->normal, .last = from->turned != NULL},
                          .augment = augments ? &net->augment : NULL,
                          .rows = from->turned ? from->turned : from->rows};
    const double ns = (double)batch->n * from->data->n_features * GATHER_NS;
    shmt_parallel(shmt_parallel_worth(batch->threads, ns), batch->n, gather_one, &g);
    return g.rows;
}
