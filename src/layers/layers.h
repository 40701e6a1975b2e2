/* The built-in layers. Each file holds one kind or one family; layers.c lists them. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>

#include "base/error.h"

extern const struct shmtrain_layer_kind SHMT_LAYER_FC, SHMT_LAYER_CONV, SHMT_LAYER_POOL, SHMT_LAYER_FLATTEN, SHMT_LAYER_DROPOUT,
    SHMT_LAYER_RELU, SHMT_LAYER_TANH, SHMT_LAYER_SIGMOID, SHMT_LAYER_GELU, SHMT_LAYER_BATCHNORM, SHMT_LAYER_LAYERNORM,
    SHMT_LAYER_SAVE, SHMT_LAYER_ADD;

/* Kinds that an application has beside the built-in ones, (n). */
struct shmt_layer_kinds {
    const struct shmtrain_layer_kind *const *own;
    uint32_t n;
};

/* Kind i of all: built-in ones first; NULL behind the last. `own` may be NULL. */
const struct shmtrain_layer_kind *shmt_layer_kind_at(const struct shmt_layer_kinds *own, uint32_t i);

/* The kind whose name are the `length` letters at `name`; NULL: there is none. */
const struct shmtrain_layer_kind *shmt_layer_kind_find(const struct shmt_layer_kinds *own, const char *name, uint64_t length);

/* The kind whose name is nearest to it, for refusals: at most 2 letters apart; else NULL. */
const struct shmtrain_layer_kind *shmt_layer_kind_near(const struct shmt_layer_kinds *own, const char *name, uint64_t length);

/* Whether an application's kind may stand beside these: name, arguments, traits, functions, reserved members. Errors: _USAGE. */
int shmt_layer_kind_check(const struct shmtrain_layer_kind *kind, const struct shmt_layer_kinds *own, struct shmt_error *e);

/* Numbers of one example, like shmtrain_extent_numbers, of an extent that nobody has looked at; false: they do not fit in 64 bits. */
bool shmt_extent_count(const struct shmtrain_extent *of, uint64_t *out);

/* What is wrong with what a kind has planned, which is then the kind's mistake and not the user's; NULL: nothing. */
const char *shmt_layer_wrong_plan(const struct shmtrain_layer *layer);

/* How a kind is written, "conv:FILTERS:KERNEL[:stride=1][:pad=0][:groups=1]", into out (bytes); cut where it does not fit. */
void shmt_layer_syntax(const struct shmtrain_layer_kind *kind, char *out, uint64_t bytes);
