/* What outlives the data of a run: see trained.h. */
#include "api/trained.h"

#include <math.h>
#include <string.h>

void shmt_trained_make(const struct shmtrain_model *model, const struct shmtrain_data *data, uint32_t first_feature,
                       uint32_t bias, struct shmt_trained *out) {
    *out = (struct shmt_trained){.model = model->name,
                                 .label_low = data->label_low,
                                 .label_high = data->label_high,
                                 .n_features = data->n_features,
                                 .first_feature = first_feature,
                                 .bias = bias};
    if (model->task == SHMTRAIN_REGRESSION || !data->classes) return;
    out->n_classes = data->n_labels;
    memcpy(out->classes, data->classes, data->n_labels * sizeof *data->classes);
}

const char *shmt_task_name(enum shmtrain_task task) {
    switch (task) {
        case SHMTRAIN_BINARY:
            return "binary";
        case SHMTRAIN_REGRESSION:
            return "regression";
        case SHMTRAIN_CLASSES:
            return "classes";
    }
    return "";
}

void shmt_trained_settings(const struct shmt_trained *trained, struct shmtrain_data *data_out,
                           struct shmtrain_settings *settings_out) {
    const float *classes = trained->n_classes > 0 ? trained->classes : NULL;
    *data_out = (struct shmtrain_data){.n_features = (uint32_t)trained->n_features,
                                       .n_labels = trained->n_classes,
                                       .classes = classes,
                                       .label_low = trained->label_low,
                                       .label_high = trained->label_high,
                                       .best_loss = NAN};
    *settings_out = (struct shmtrain_settings){.bias = trained->bias,
                                               .group = SHMTRAIN_MODEL_GROUP,
                                               .threads = 1,
                                               .n_classes = trained->n_classes,
                                               .classes = classes};
}

const struct shmtrain_model *shmt_store_model_named(const struct shmtrain_store *store, const char *name) {
    const struct shmtrain_model *model;
    for (size_t i = 0; (model = shmtrain_store_model_at(store, i)) && strcmp(model->name, name) != 0; i++) continue;
    return model;
}
