/* What outlives the data of a run: which model the parameters belong to, and what it takes to predict with them. It goes into
 * model files (save.c) and comes from them (model_load.c), and is what data is evaluated with (evaluate.c). */
#ifndef SHMT_API_TRAINED_H
#define SHMT_API_TRAINED_H

#include <shmtrain/model.h>
#include <shmtrain/store.h>

struct shmt_trained {
    const char *model; /* NULL: own worker functions, or a file that names none */
    char foreign[200]; /* NULL model: that file's name, or its beginning; "": none */
    float label_low, label_high;
    uint64_t n_features;
    uint32_t first_feature; /* the id in the data that is column 0 */
    uint32_t lacks_ids;     /* 1: that data had no ids: its elements were counted */
    uint32_t bias;
    uint32_t n_classes;                  /* 0: a regression, or labels that nobody counted */
    float classes[SHMTRAIN_MAX_CLASSES]; /* (n_classes) ascending */
};

/* Of a model that has been trained on this data; first_feature: the id of its column 0. */
void shmt_trained_make(const struct shmtrain_model *model, const struct shmtrain_data *data, uint32_t first_feature,
                       uint32_t bias, struct shmt_trained *out);

/* "binary", "regression", "classes": as model files say it. */
const char *shmt_task_name(enum shmtrain_task task);

/* What the training data was like, without an example of it, and the settings that belong to it. Both point into `trained`. */
void shmt_trained_settings(const struct shmt_trained *trained, struct shmtrain_data *data_out,
                           struct shmtrain_settings *settings_out);

/* A model, built in or offered; NULL: there is none of this name. */
const struct shmtrain_model *shmt_store_model_named(const struct shmtrain_store *store, const char *name);

#endif
