/* Networks: a chain of layers (layers/chain.h) whose last outputs are the scores of classes, with log loss, or one number, with half
 * its squared error:
 *
 *     minimise  mean over i of -a_i log p(y_i | x_i)  +  l2 / 2 * |weights|^2        p(c | x) = e^(z_c) / sum over d of e^(z_d)
 *     minimise  mean over i of a_i (z - t_i)^2 / 2    +  l2 / 2 * |weights|^2        t = (y - mean label) / deviation of the labels
 *
 * with z the outputs of the chain and a_i the example's weight. Of numbers, scores and losses are those of labels: z * deviation + mean,
 * and deviation^2 times that loss. Each table of each layer is a table of the store; L2 leaves out what its layer says (biases, scales of
 * normalisations).
 *
 * This file plans a network from its text and options; net_input.c brings examples in, net_pass.c computes. */
#include "models/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"
#include "models/net_priv.h"

/* ---- the network ---- */

/* Data whose shape nobody knows are so many numbers. */
static struct shmtrain_extent extent_of(const struct shmtrain_data *data) {
    if (data->channels > 0) return (struct shmtrain_extent){data->channels, data->height, data->width};
    return (struct shmtrain_extent){data->n_features, 1, 1};
}

static int check_outputs(const struct net *net, const struct shmtrain_settings *with, char *why_out, uint64_t bytes) {
    const uint64_t outputs = shmtrain_extent_numbers(&net->chain.out);
    if (outputs == (net->squared ? 1 : with->n_classes)) return 0;
    if (net->squared)
        snprintf(why_out, bytes, "its last layer has %llu outputs, but --loss squared needs one", (unsigned long long)outputs);
    else
        snprintf(why_out, bytes, "its last layer has %llu outputs, but the data has %u labels", (unsigned long long)outputs,
                 with->n_classes);
    return SHMTRAIN_E_USAGE;
}

static void name_tables(struct net *net) {
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        uint32_t layer;
        const struct shmtrain_layer_table *table = shmt_chain_table(&net->chain, t, &layer);
        snprintf(net->name[t], sizeof net->name[t], "%u.%s.%s", layer, net->chain.layer[layer].kind->name, table->name);
    }
}

/* ---- how many examples at a time ---- */

#define LEAST_WORK 120 /* multiplications with a weight, on an average */
enum { LEAST_PART = 16, MOST_PART = 4096 };

/* Memory grows with the examples that go through the chain at a time, and a cache holds the activations of few. But each part of an item
 * takes a pass over all weights, and one over their gradients: where a weight has little to do in between, that shows. Powers of two, so
 * that parts of usual items are alike. */
static uint32_t largest_part(const struct shmt_chain *chain) {
    uint32_t part = LEAST_PART;
    if (chain->mixes) return UINT32_MAX;
    while (part < MOST_PART && (double)chain->multiplications * part < (double)chain->parameters * LEAST_WORK) part *= 2;
    return part;
}

/* ---- its options ---- */

int shmt_net_check_option(uint32_t i, const char *text, char *why_out, uint64_t bytes) {
    struct shmt_augment ignored;
    if (i == SHMT_NET_AUGMENT && strcmp(text, "auto") == 0) return 0;
    if (i == SHMT_NET_AUGMENT) return shmt_augment_read(text, &ignored, why_out, bytes);
    if (i != SHMT_NET_NORMALISE || strcmp(text, "auto") == 0 || strcmp(text, "none") == 0) return 0;
    snprintf(why_out, bytes, "expected auto or none");
    return -1;
}

static int refuse_option(char *why_out, uint64_t bytes, const char *option, const char *why) {
    snprintf(why_out, bytes, "--%s: %s", option, why);
    return SHMTRAIN_E_USAGE;
}

#define LEAST_SIDE 8 /* pixels, of which one more or less says little */

/* A pixel to and fro is the same thing to whoever sees the image: with it networks learn less by heart (docs/networks.md). */
static void suit_augment(struct net *net) {
    const struct shmtrain_extent *in = &net->chain.in;
    net->augment = (struct shmt_augment){.shift = net->images && in->height >= LEAST_SIDE && in->width >= LEAST_SIDE};
}

static int take_options(struct net *net, const struct shmtrain_settings *with, char *why_out, uint64_t bytes) {
    const char *augment = with->option[SHMT_NET_AUGMENT];
    char why[160];
    net->normalises = strcmp(with->option[SHMT_NET_NORMALISE], "none") != 0;
    if (shmt_net_n_tables(net) > SHMTRAIN_MODEL_TABLES)
        return net->normalises
                   ? refuse_option(why_out, bytes, "normalise",
                                   "the network's layers leave no room for a table: use none, or fewer layers")
                   : refuse_option(why_out, bytes, "loss", "the network's layers leave no room for a table: use fewer layers");
    if (strcmp(augment, "auto") == 0) {
        suit_augment(net);
        return 0;
    }
    if (shmt_augment_read(augment, &net->augment, why, sizeof why) < 0) return refuse_option(why_out, bytes, "augment", why);
    if (!shmt_augment_is_wanted(&net->augment)) return 0;
    if (!net->images)
        return refuse_option(why_out, bytes, "augment",
                             "the data are no images whose shape is known: use images, or leave it out");
    if (shmt_augment_check(&net->augment, &net->chain.in, why, sizeof why) < 0)
        return refuse_option(why_out, bytes, "augment", why);
    return 0;
}

int shmt_net_open(const struct shmt_net_wish *wish, const struct shmtrain_data *data, const struct shmtrain_settings *with,
                  void **state_out, char *why_out, uint64_t bytes) {
    if (!with->bias)
        return refuse_option(why_out, bytes, "bias 0", "each layer of a network has its own: write fc:10:bias=no in --net");
    const struct shmt_layer_kinds own = {with->layers, with->n_layers};
    struct shmt_error e = {0};
    struct net *net = calloc(1, sizeof *net);
    if (net) net->text = strdup(wish->text);
    if (!net || !net->text) {
        free(net);
        snprintf(why_out, bytes, "not enough memory for the network");
        return SHMTRAIN_E_MEMORY;
    }
    net->images = data->channels > 0;
    net->squared = wish->squared;
    int rc = shmt_chain_plan(wish->option, wish->text, extent_of(data), &own, &net->chain, &e);
    if (rc < 0)
        snprintf(why_out, bytes, "%s", e.text);
    else
        rc = check_outputs(net, with, why_out, bytes);
    if (rc == 0) rc = take_options(net, with, why_out, bytes);
    if (rc < 0) {
        shmt_net_close(net);
        return rc;
    }
    net->part = largest_part(&net->chain);
    name_tables(net);
    *state_out = net;
    return 0;
}

void shmt_net_close(void *state) {
    struct net *net = state;
    free(net->text);
    free(net);
}

/* ---- for people ---- */

/* What comes in, and what is done to it before the first layer: "input, shift:1, normalised". */
static void describe_input(const struct net *net, struct shmtrain_model_layer *out) {
    const struct shmtrain_extent *in = &net->chain.in;
    char augment[sizeof out->text - sizeof "input, , normalised"];
    shmt_augment_write(&net->augment, augment, sizeof augment);
    snprintf(out->text, sizeof out->text, "input%s%s%s", augment[0] ? ", " : "", augment,
             net->normalises ? ", normalised" : "");
    out->channels = in->channels;
    out->height = in->height;
    out->width = in->width;
}

static void describe_layer(const struct net *net, uint32_t i, struct shmtrain_model_layer *out) {
    struct shmt_chain_row row;
    shmt_chain_row(&net->chain, net->text, i, &row);
    snprintf(out->text, sizeof out->text, "%.*s", (int)sizeof out->text - 1, row.text);
    out->channels = row.out.channels;
    out->height = row.out.height;
    out->width = row.out.width;
    out->parameters = row.parameters;
    out->multiplications = row.multiplications;
    out->bytes = row.bytes;
}

int shmt_net_describe(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state, uint32_t i,
                      struct shmtrain_model_layer *out) {
    const struct net *net = state;
    (void)data;
    (void)with;
    const uint32_t first = net->chain.n_layers < SHMTRAIN_MODEL_LAYERS; /* else there is no room for the input's line */
    if (i >= first + net->chain.n_layers) return 0;
    if (i < first)
        describe_input(net, out);
    else
        describe_layer(net, i - first, out);
    return 1;
}

const char *shmt_net_check(const struct shmtrain_data *data) {
    if (data->n_features == 0) return "no features, but a network needs some";
    if (data->n_labels < 2) return "only one label, but a network needs two or more";
    return data->n_labels > SHMTRAIN_MAX_CLASSES
               ? "more than 1024 labels, which is a network's limit: for numbers use --loss squared of mlp or net"
               : NULL;
}

const char *shmt_net_check_numbers(const struct shmtrain_data *data) {
    return data->n_features == 0 ? "no features, but a network needs some" : NULL;
}

uint32_t shmt_net_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                         struct shmtrain_shape *out) {
    const struct net *net = state;
    (void)data;
    (void)with;
    for (uint32_t t = 0; t < net->chain.n_tables; t++) {
        const struct shmtrain_layer_table *table = shmt_chain_table(&net->chain, t, NULL);
        out[t] = (struct shmtrain_shape){.name = net->name[t],
                                         .rows = table->rows,
                                         .width = table->width,
                                         .l2_rows = table->decays ? table->rows : 0,
                                         .role = table->role,
                                         .start = table->start,
                                         .rate = table->rate,
                                         .decay = table->decay,
                                         .fan_in = table->fan_in,
                                         .fan_out = table->fan_out};
    }
    if (net->normalises)
        out[shmt_net_input_table(net)] =
            (struct shmtrain_shape){.name = "input", .rows = shmt_net_input_rows(net), .width = 2, .role = SHMTRAIN_FROZEN};
    if (net->squared)
        out[shmt_net_output_table(net)] =
            (struct shmtrain_shape){.name = "output", .rows = 1, .width = 2, .role = SHMTRAIN_FROZEN};
    return shmt_net_n_tables(net);
}
