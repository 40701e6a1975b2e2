/* A network as a chain of layers: planned from the text of --net, run on memory of the caller.
 *
 * Called by the model `net`, which gives parameters and takes gradients, and by `inspect`. A chain is plain memory that holds no
 * pointers but to kinds: it is planned once and read by all threads of the process. Work is one thread's: the places of activations
 * and gradients in memory that the caller has. A chain has some 100 KB: not for the stack. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>

#include "base/error.h"
#include "layers/layers.h"

enum { SHMT_CHAIN_LAYERS = 96, SHMT_CHAIN_TABLES = 64 };

struct shmt_chain {
    struct shmtrain_extent in, out;
    uint32_t n_layers, n_tables;
    bool needs_blas;       /* shmt_blas_open has to succeed in a process before it runs the chain */
    bool mixes;            /* in training, examples of one pass depend on one another */
    uint32_t first_pushed; /* the first layer with a table that is not frozen; n_layers: there is none */
    struct shmtrain_layer layer[SHMT_CHAIN_LAYERS];
    uint32_t first_table[SHMT_CHAIN_LAYERS]; /* tables of layer i: from here on, layer[i].n_tables of them */
    uint32_t saver[SHMT_CHAIN_LAYERS];       /* of a layer that adds: who has saved; of one that saves: who adds */
    bool clipped[SHMT_CHAIN_LAYERS];         /* a relu whose work the layer before it does */
    uint32_t from[SHMT_CHAIN_LAYERS];        /* where the word stands in the text, and its letters */
    uint32_t letters[SHMT_CHAIN_LAYERS];
    uint64_t parameters, multiplications; /* of all layers; of forward, for one example */
};

/* Plans the layers of `text` (words with blanks between them) for examples of shape `in`. `given_as`: the option, for refusals.
 * Errors: _USAGE, one sentence with the column of what is wrong; *out is then of no use. */
int shmt_chain_plan(const char *given_as, const char *text, struct shmtrain_extent in, const struct shmt_layer_kinds *own,
                    struct shmt_chain *out, struct shmt_error *e);

/* Table t of all: its layer's number in *layer_out (may be NULL). */
const struct shmtrain_layer_table *shmt_chain_table(const struct shmt_chain *chain, uint32_t t, uint32_t *layer_out);

/* What the table begins with, (rows, width) into value: numbers made of seed, t and place, with the same bits everywhere. */
void shmt_chain_begin(const struct shmt_chain *chain, uint64_t seed, uint32_t t, float *value);

/* ---- work ---- */

/* Where things lie in the caller's memory, in bytes from its start; for batches of at most n examples. */
struct shmt_chain_work {
    const struct shmt_chain *chain;
    uint32_t n;
    bool training;
    uint64_t bytes; /* of all */
    uint64_t turned, scratch;
    bool is_turned;                  /* the data, before the first layer */
    uint64_t out[SHMT_CHAIN_LAYERS]; /* outputs of layer i; its inputs where it works in place */
    uint64_t kept[SHMT_CHAIN_LAYERS];
    uint64_t d[2]; /* derivatives by outputs, in turns */
    uint64_t d_saved[SHMT_CHAIN_LAYERS];
    unsigned char *memory;
};

/* Lays out work for n >= 1 examples; work->bytes says what it takes. Then the caller sets work->memory, aligned to 64, as large.
 * Errors: _USAGE (more than 2^62 bytes). */
int shmt_chain_lay_out(const struct shmt_chain *chain, uint32_t n, bool training, struct shmt_chain_work *out,
                       struct shmt_error *e);

/* One batch. */
struct shmt_chain_batch {
    uint32_t n, threads;       /* n within 1 .. work->n */
    const float *in;           /* (n, channels, height, width) of the data */
    const float *const *table; /* (n_tables) */
    float *const *gradient;    /* (n_tables), for backward; NULL for frozen ones */
    bool add;                  /* gradients are added to what is there */
    uint64_t seed, epoch;
    const uint64_t *example; /* (n) numbers in the data */

    /* After each layer's gradients, from the last layer to the first one with tables that are not frozen: NULL, or told of it. */
    void (*ready)(void *arg, uint32_t layer);
    void *arg;
};

/* Where data of more than one channel lie with their channels last: a caller that puts them there, (n, height, width, channels), gives
 * this as batch->in and saves a copy. NULL: they go in as they are. */
float *shmt_chain_turned(const struct shmt_chain_work *work);

/* Outputs of the last layer, (n, out), in work's memory. */
const float *shmt_chain_forward(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch);

/* Where backward expects the loss's derivatives by the outputs, (n, out). With work->training. */
float *shmt_chain_slopes(const struct shmt_chain_work *work);

/* After forward of the same batch, with work->training: all gradients. Slopes are used up. */
void shmt_chain_backward(const struct shmt_chain_work *work, const struct shmt_chain_batch *batch);

/* ---- descriptions ---- */

/* Layer i for a table of layers. */
struct shmt_chain_row {
    char text[64]; /* as it was written, cut to fit */
    struct shmtrain_extent out;
    uint64_t parameters, multiplications;
    uint64_t bytes; /* of activations and what is kept for backward, for one example */
};

void shmt_chain_row(const struct shmt_chain *chain, const char *text, uint32_t i, struct shmt_chain_row *out);
