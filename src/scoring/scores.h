/* The outputs of a trained model for every example of some data, computed by all workers. For shmtrain_store_evaluate and
 * _predict (evaluate.c). */
#pragma once

#include "configuration/model_options.h"
#include "configuration/offered.h"
#include "keeping/parameters.h"
#include "loading/load.h"
#include "train/job.h"

/* What scoring needs, and its last evaluation. */
struct shmt_scoring {
    struct shmt_call *call;
    const struct shmt_config *config;
    struct shmt_parameters *params;
    struct shmt_loading *loading;
    const struct shmt_offered *offered;
    struct shmtrain_evaluation evaluation;
    uint64_t *confusion; /* what it points to */
};

struct shmt_scores {
    struct shmt_scoring *scoring;
    const struct shmtrain_model *model;
    struct shmtrain_data like; /* the training data, without its examples */
    struct shmt_crew crew;
    struct shmt_load load;
    struct shmt_spec spec;
    struct shmt_job job;
    struct shmt_model_texts texts; /* of the model */
    struct shmt_store *made;       /* what the workers read the parameters from, a copy */
    float *label;                  /* (n) of the examples, as in the data; in the data itself they may have been replaced */
    float *stand_in;               /* (n) what takes their place, where they are not ours; NULL: nothing */
    uint64_t n;                    /* examples */
    uint32_t n_outputs;
};

/* What becomes of labels. */
enum shmt_scores_labels {
    SHMT_LABELS_LEFT, /* nobody needs them: they may be anything or not be there, and losses mean nothing */
    SHMT_LABELS_ANY,  /* likewise, but they are known where they are there */
    SHMT_LABELS_FIT   /* those that are none of the model's are refused, with their place */
};

/* `images`: examples without a shape are refused before they are scored, and so are more than `most` of them. To be freed, also
 * after a failure. Errors: as shmtrain_store_evaluate; _USAGE. */
struct shmt_scores_wish {
    const char *data;
    enum shmt_scores_labels labels;
    bool images;
    uint64_t most;
};
int shmt_scores_make(struct shmt_scoring *scoring, const struct shmt_scores_wish *wish, struct shmt_scores *out);
void shmt_scores_free(struct shmt_scores *scores);

/* The same without data, for who scores alone, on this thread and a backend of one seat: what to score with, its parameters in
 * `made`, for batches of SHMTRAIN_MODEL_GROUP. To be freed. Errors: as above. */
int shmt_scores_alone(struct shmt_scoring *scoring, struct shmt_scores *out);

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
int shmt_scores_check_probabilities(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered);

/* evaluate.c. What the calls of these names do. */
int shmt_evaluate(struct shmt_scoring *scoring, const char *data);
int shmt_predict(struct shmt_scoring *scoring, const char *data, int probabilities, shmtrain_predicted *each, void *arg);
int shmt_predict_images(struct shmt_scoring *scoring, const char *data, shmtrain_shown *each, void *arg); /* images.c */
int shmt_predict_into(struct shmt_scoring *scoring, const char *data, const struct shmtrain_predictions *into);
int shmt_outputs(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered);
