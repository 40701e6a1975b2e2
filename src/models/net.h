/* What the models of networks share: each is a text of layers, and these functions. See net.c. */
#pragma once

#include <shmtrain/model.h>
#include <stdbool.h>

/* Options that all of them have, before their own, which are numbered from SHMT_NET_N_OPTIONS on. */
enum { SHMT_NET_AUGMENT, SHMT_NET_NORMALISE, SHMT_NET_N_OPTIONS };
#define SHMT_NET_OPTIONS                                                       \
    {"augment",                                                                \
     0,                                                                        \
     "TEXT",                                                                   \
     "auto",                                                                   \
     "SHMTRAIN_AUGMENT",                                                       \
     "Model and data",                                                         \
     "networks: change images: \"shift:2 flip crop:4\", none; auto: shift:1"}, \
    {                                                                          \
        "normalise", 0, "HOW", "auto", "SHMTRAIN_NORMALISE", "Model and data", \
            "networks: auto: features, channels on one scale; none"            \
    }

/* As a model's check_option; its own options are all well. */
int shmt_net_check_option(uint32_t i, const char *text, char *why_out, uint64_t bytes);

/* A network to be opened. */
struct shmt_net_wish {
    const char *option, *text; /* the layers, and what they came by, for refusals */
    bool squared;              /* one output, and half its squared error; else classes, and log loss */
};

/* Plans the layers for such data: the bodies of `open` and `close`. */
int shmt_net_open(const struct shmt_net_wish *wish, const struct shmtrain_data *data, const struct shmtrain_settings *with,
                  void **state_out, char *why_out, uint64_t bytes);
void shmt_net_close(void *state);

/* The rest of a model of networks, as it is. */
int shmt_net_describe(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state, uint32_t i,
                      struct shmtrain_model_layer *out);
const char *shmt_net_check(const struct shmtrain_data *data);
const char *shmt_net_check_numbers(const struct shmtrain_data *data); /* of a squared loss */
uint32_t shmt_net_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                         struct shmtrain_shape *out);
void shmt_net_begin(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                    float *value);
uint64_t shmt_net_workspace(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                            uint32_t n);
int shmt_net_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out);
int shmt_net_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                   double *loss_out);
void shmt_net_probabilities(uint32_t n, uint32_t outputs, float *score);
