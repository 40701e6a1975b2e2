/* What outlives the data of a run: see trained.h. */
#include "keeping/trained.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/models.h"

void shmt_trained_clear(struct shmt_trained *trained) {
    shmt_ids_free(&trained->ids);
    free(trained->table);
    shmt_csv_plan_fini(&trained->plan);
    *trained = (struct shmt_trained){0};
}

void shmt_trained_make(const struct shmtrain_model *model, const char *options, const struct shmtrain_data *data, uint32_t bias,
                       const struct shmt_feature_ids *features, struct shmt_trained *out) {
    shmt_trained_clear(out);
    *out = (struct shmt_trained){.model = model->name,
                                 .label_low = data->label_low,
                                 .label_high = data->label_high,
                                 .n_features = data->n_features,
                                 .channels = data->channels,
                                 .height = data->height,
                                 .width = data->width,
                                 .features = *features,
                                 .bias = bias};
    snprintf(out->options, sizeof out->options, "%s", options);
    if (model->task == SHMTRAIN_REGRESSION || !data->classes) return;
    out->n_classes = data->n_labels;
    memcpy(out->classes, data->classes, data->n_labels * sizeof *data->classes);
}

int shmt_trained_take_table(struct shmt_trained *trained, char *table, struct shmt_error *e) {
    const int rc = table ? shmt_csv_plan_parse(table, &trained->plan, e) : 0;
    if (rc == 0)
        trained->table = table;
    else
        free(table);
    return rc;
}

int shmt_trained_copy(const struct shmt_trained *from, struct shmt_trained *out, struct shmt_error *e) {
    char *table = from->table ? strdup(from->table) : NULL;
    *out = *from;
    out->ids = (struct shmt_ids){0};
    out->plan = (struct shmt_csv_plan){0};
    out->table = NULL;
    if (from->table && !table) return shmt_no_memory(e, "for a copy of the model");
    const int rc = shmt_trained_take_table(out, table, e);
    return rc < 0 || from->ids.n == 0 ? rc : shmt_ids_take(from->ids.id, from->ids.n, &out->ids, e);
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

int shmt_trained_check_ids(const struct shmt_trained *t, struct shmt_error *e) {
    if (!t->model || t->features.kind != SHMT_IDS_LISTED || t->ids.n == t->n_features) return 0;
    return shmt_refuse(e,
                       "only the program that loaded the model's data knows the ids of its features: evaluate, predict and "
                       "save there, or use the file that it saved");
}

int shmt_trained_id(const struct shmt_trained *t, uint64_t feature, uint64_t *out, struct shmt_error *e) {
    if (!t->model) return shmt_refuse(e, "there is no model: train one, or load one");
    if (feature >= t->n_features)
        return shmt_refuse(e, "the model has %llu features, numbered from 0: number %llu does not exist",
                           (unsigned long long)t->n_features, (unsigned long long)feature);
    if (t->features.kind == SHMT_IDS_HASHED)
        return shmt_refuse(e, "the features are hashes of ids: a hash can stand for several ids");
    const int rc = shmt_trained_check_ids(t, e);
    if (rc == 0) *out = t->features.kind == SHMT_IDS_LISTED ? t->ids.id[feature] : t->features.first + feature;
    return rc;
}

const char *shmt_ids_kind_name(uint32_t kind) {
    static const char *const NAMES[] = {"range", "none", "listed", "hashed"};
    return NAMES[kind];
}

void shmt_trained_settings(const struct shmt_trained *trained, struct shmtrain_data *data_out,
                           struct shmtrain_settings *settings_out) {
    const float *classes = trained->n_classes > 0 ? trained->classes : NULL;
    *data_out = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                       .n_features = (uint32_t)trained->n_features,
                                       .n_labels = trained->n_classes,
                                       .classes = classes,
                                       .label_low = trained->label_low,
                                       .label_high = trained->label_high,
                                       .best_loss = NAN,
                                       .channels = trained->channels,
                                       .height = trained->height,
                                       .width = trained->width};
    *settings_out = (struct shmtrain_settings){.size = sizeof(struct shmtrain_settings),
                                               .bias = trained->bias,
                                               .group = SHMTRAIN_MODEL_GROUP,
                                               .threads = 1,
                                               .n_classes = trained->n_classes,
                                               .classes = classes};
}

struct shmt_columns shmt_trained_columns(const struct shmt_trained *trained) {
    const struct shmt_feature_ids *f = &trained->features;
    return (struct shmt_columns){.base = f->first,
                                 .n_features = (uint32_t)trained->n_features,
                                 .hash_bits = f->hash_bits,
                                 .ids = f->kind == SHMT_IDS_LISTED ? &trained->ids : NULL};
}

const char *shmt_trained_label_name(const struct shmt_trained *trained, float label) {
    const struct shmt_csv_plan *plan = &trained->plan;
    if (!(label >= 0 && label < (float)plan->n_words) || (float)(uint32_t)label != label) return NULL;
    return plan->word[(uint32_t)label];
}
