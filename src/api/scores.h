/* The outputs of a trained model for every example of some data, computed by all workers. For shmtrain_store_evaluate and
 * _predict (evaluate.c). */
#ifndef SHMT_API_SCORES_H
#define SHMT_API_SCORES_H

#include "api/load.h"
#include "api/store_priv.h"

struct shmt_scores {
    struct shmtrain_store *store;
    const struct shmtrain_model *model;
    struct shmtrain_data like; /* the training data, without its examples */
    struct shmt_crew crew;
    struct shmt_load load;
    struct shmt_spec spec;
    struct shmt_job job;
    struct shmt_store *made; /* what the workers read the parameters from, a copy */
    float *label;            /* (n) of the examples, as in the data; in the data itself they may have been replaced */
    float *stand_in;         /* (n) what takes their place, where they are not ours; NULL: nothing */
    uint64_t n;              /* examples */
    uint32_t n_outputs;
};

/* `must_fit`: labels that are none of the model's are refused, with their place; else they may be anything, and losses mean
 * nothing. More than `most` examples are refused before they are scored. To be freed, also after a failure. Errors: as
 * shmtrain_store_evaluate; _USAGE. */
int shmt_scores_make(struct shmtrain_store *store, const char *data, bool must_fit, uint64_t most, struct shmt_scores *out);
void shmt_scores_free(struct shmt_scores *scores);

/* The same without data, for who scores alone, on this thread and a backend of one seat: what to score with, its parameters in
 * `made`, for batches of SHMTRAIN_MODEL_GROUP. To be freed. Errors: as above. */
int shmt_scores_alone(struct shmtrain_store *store, struct shmt_scores *out);

/* A word about features that the model has no parameters for, of ids min_id .. max_id (min_id > max_id: none). */
void shmt_scores_note_columns(const struct shmt_scores *scores, const char *name, uint64_t min_id, uint64_t max_id);

const float *shmt_scores_at(const struct shmt_scores *scores); /* (n, n_outputs) */
double shmt_scores_loss(const struct shmt_scores *scores);     /* summed, along the same tree for every number of workers */

/* Whether the model tells classes apart: else a prediction is a number. */
bool shmt_scores_are_of_classes(const struct shmt_scores *scores);

/* The number of the class that these outputs (n_outputs) say. */
uint32_t shmt_scores_class(const struct shmt_scores *scores, const float *output);

/* evaluate.c. What these outputs (n_outputs) predict: a label, or a number. */
float shmt_scores_prediction(const struct shmt_scores *scores, const float *output);

/* Refuses models without probabilities. */
int shmt_scores_check_probabilities(struct shmtrain_store *store);

#endif
