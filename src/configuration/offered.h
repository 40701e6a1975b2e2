/* Models and layers: those of the library, and those that the application has offered to its store. */
#pragma once

#include <shmtrain/layer.h>
#include <shmtrain/model.h>
#include <stdbool.h>

#include "base/error.h"
#include "configuration/options.h"
#include "update/rule.h"

#define SHMT_MAX_OFFERED        16
#define SHMT_MAX_OFFERED_LAYERS 16

struct shmt_offered {
    struct shmtrain_model model[SHMT_MAX_OFFERED];
    uint32_t n;
    const struct shmtrain_layer_kind *layer[SHMT_MAX_OFFERED_LAYERS]; /* ours */
    uint32_t n_layers;
};

/* Model i, from 0: built in, then offered; NULL behind the last. */
const struct shmtrain_model *shmt_offered_at(const struct shmt_offered *offered, size_t i);

/* A model, built in (also one that only scores) or offered; NULL: there is none of this name. */
const struct shmtrain_model *shmt_model_named(const struct shmt_offered *offered, const char *name);

/* Whether the model is one of the application's. */
bool shmt_offered_has(const struct shmt_offered *offered, const struct shmtrain_model *model);

/* The update rule that the options name, or else the one that suits the model; sgd where there is none. */
enum shmt_rule_kind shmt_offered_rule(const struct shmt_config *config, const struct shmtrain_model *model);

/* What shmtrain_store_offer does. */
int shmt_offered_add(struct shmt_offered *offered, const struct shmtrain_model *model, struct shmt_error *e);

/* What shmtrain_store_offer_layer does. */
int shmt_offered_add_layer(struct shmt_offered *offered, const struct shmtrain_layer_kind *kind, struct shmt_error *e);

/* That of this name; NULL: it is not offered. */
const struct shmtrain_layer_kind *shmt_offered_layer(const struct shmt_offered *offered, const char *name);

/* Models are told of the layers. They are `offered`'s, and stay where they are until it is freed. */
void shmt_offered_tell(const struct shmt_offered *offered, struct shmtrain_settings *settings);

void shmt_offered_free(struct shmt_offered *offered); /* {0} is fine */
