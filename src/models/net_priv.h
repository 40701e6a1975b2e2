/* What the files of networks share: net.c plans, net_input.c brings examples in, net_pass.c computes and pushes. */
#pragma once

#include <stdbool.h>

#include "layers/augment.h"
#include "layers/chain.h"
#include "models/net.h"

/* What is known when the data and the options are. Behind the tables of the chain there are up to two more, which are frozen, and go with
 * the model wherever that goes: see shmt_net_input_table and shmt_net_output_table. */
struct net {
    struct shmt_chain chain;
    uint32_t part; /* at most so many examples go through the chain at a time */
    char *text;    /* of its layers */
    bool squared;  /* the loss: one output, a number */
    struct shmt_augment augment;
    bool images; /* the shape of examples is known */
    bool normalises;
    char name[SHMT_CHAIN_TABLES][32];
};

/* "input", where examples are normalised: (channels, 2) of images, see images.h, else (features, 2), see features.h. */
static inline uint32_t shmt_net_input_table(const struct net *net) { return net->chain.n_tables; }
static inline uint64_t shmt_net_input_rows(const struct net *net) {
    return net->images ? net->chain.in.channels : shmtrain_extent_numbers(&net->chain.in);
}

/* "output", where numbers are learned: (1, 2), the mean of the labels and their standard deviation. The network learns
 * (label - mean) / deviation, so that rates that suit it follow from neither. */
static inline uint32_t shmt_net_output_table(const struct net *net) { return net->chain.n_tables + net->normalises; }
static inline uint32_t shmt_net_n_tables(const struct net *net) { return net->chain.n_tables + net->normalises + net->squared; }

/* Examples of a batch on their way in. */
struct shmt_net_examples {
    const struct net *net;
    const struct shmtrain_data *data;
    uint64_t first; /* where `listed` is false: they stand one behind the other from there on */
    bool listed, training;
    const float *normal;  /* table "input", or NULL */
    float *rows, *turned; /* memory for them; `turned`: for channels last, NULL where nothing has to be turned */
};

/* Rows (n, features) as the chain takes them: where they are, or in `rows` or `turned`. Of `batch` its n, threads, seed, epoch and
 * examples count. */
const float *shmt_net_gather(const struct shmt_net_examples *examples, const struct shmt_chain_batch *batch);
