/* For tests of layers: a network on memory of the test's own, with parameters, examples and slopes that are made of a seed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "layers/chain.h"

struct net {
    struct shmt_chain chain;
    struct shmt_chain_work work;
    uint32_t n, threads;
    bool training, add;
    uint64_t seed, epoch;
    float *in;                       /* (n, channels, height, width) */
    float *table[SHMT_CHAIN_TABLES]; /* parameters */
    float *gradient[SHMT_CHAIN_TABLES];
    uint64_t size[SHMT_CHAIN_TABLES]; /* numbers of each table */
    uint64_t *example;                /* (n) */
    void *memory;
};

/* Plans and allocates; the test fails where the text is refused. Parameters begin as the chain says, biases and what begins alike
 * everywhere are moved off it, inputs are within -1 .. 1, example numbers are 100, 101, ... */
void net_make(struct net *net, const char *text, struct shmtrain_extent in, uint32_t n, bool training);
void net_make_with(struct net *net, const char *text, struct shmtrain_extent in, uint32_t n, bool training,
                   const struct shmt_layer_kinds *own);

/* The test fails where something was written behind the network's memory. */
void net_free(struct net *net);

/* Numbers within -1 .. 1 from a seed. */
void net_fill(float *x, uint64_t n, uint64_t seed);

const float *net_forward(struct net *net);

/* With these slopes (n, out). */
void net_backward(struct net *net, const float *slope);

/* Skips the test where there is no BLAS. */
void net_need_blas(void);
