/* What outlives the data of a run: which model the parameters belong to, and what it takes to predict with them. It goes into
 * model files (save.c) and comes from them (model_load.c), and is what data is evaluated with (scoring). */
#pragma once

#include <shmtrain/model.h>
#include <shmtrain/store.h>

#include "configuration/model_options.h"
#include "data/columns.h"
#include "data/ids.h"
#include "files/csv_plan.h"

/* What the features of a model are called in data. */
enum shmt_ids_kind {
    SHMT_IDS_RANGE,  /* by ids, the first of which is `first` */
    SHMT_IDS_NONE,   /* by nothing: that data's elements were counted, from `first` on */
    SHMT_IDS_LISTED, /* by the ids of a list */
    SHMT_IDS_HASHED  /* by the hashes of their ids */
};

struct shmt_feature_ids {
    uint32_t first, kind, hash_bits;
};

struct shmt_trained {
    const char *model; /* NULL: own worker functions, or a file that names none */
    char foreign[200]; /* NULL model: that file's name, or its beginning; "": none */
    float label_low, label_high;
    uint64_t n_features;
    uint32_t channels, height, width; /* of an example; all 0: nobody knows */
    struct shmt_feature_ids features;
    struct shmt_ids ids;       /* LISTED: (n_features); empty: nobody here knows them, for another process has read the data */
    char *table;               /* the plan of the table that it was trained on, as text; NULL: it was none */
    struct shmt_csv_plan plan; /* the same; 0: none */
    uint32_t bias;
    char options[SHMT_MODEL_TEXTS];      /* of the model's own, joined */
    uint32_t n_classes;                  /* 0: a regression, or labels that nobody counted */
    float classes[SHMTRAIN_MAX_CLASSES]; /* (n_classes) ascending */
    uint32_t has_ties;                   /* 0: of classes with equal outputs the first one is taken */
    uint16_t tie[SHMTRAIN_MAX_CLASSES];  /* (n_classes) 1: of each class; the least one of them is taken */
};

/* Of a model that has been trained on this data with these options, joined, in place of what `out` was. */
void shmt_trained_make(const struct shmtrain_model *model, const char *options, const struct shmtrain_data *data, uint32_t bias,
                       const struct shmt_feature_ids *features, struct shmt_trained *out);

void shmt_trained_clear(struct shmt_trained *trained); /* {0} is fine, and is what it is then */

/* Takes how the table was read that it was trained on, in memory that is its own from here on (NULL: it was none). Errors: _DATA
 * (it is no plan), _MEMORY; then it was none. */
int shmt_trained_take_table(struct shmt_trained *trained, char *table, struct shmt_error *e);

/* What a label was in the table that it was trained on; NULL: no word. */
const char *shmt_trained_label_name(const struct shmt_trained *trained, float label);

/* A copy with lists of its own, in place of nothing ({0}). Errors: _MEMORY; then it is to be cleared. */
int shmt_trained_copy(const struct shmt_trained *from, struct shmt_trained *out, struct shmt_error *e);

/* "binary", "regression", "classes": as model files say it. */
const char *shmt_task_name(enum shmtrain_task task);

/* Whether the ids of its features are known here. Errors: _USAGE: only who has loaded the data knows them. */
int shmt_trained_check_ids(const struct shmt_trained *trained, struct shmt_error *e);

/* The id of one of its features. Errors: _USAGE. */
int shmt_trained_id(const struct shmt_trained *trained, uint64_t feature, uint64_t *out, struct shmt_error *e);

/* "range", "none", "listed", "hashed": as model files say it. */
const char *shmt_ids_kind_name(uint32_t kind);

/* What the training data was like, without an example of it, and the settings that belong to it, but for the model's own options.
 * Both point into `trained`. */
void shmt_trained_settings(const struct shmt_trained *trained, struct shmtrain_data *data_out,
                           struct shmtrain_settings *settings_out);

/* Which ids of data its features are; valid as long as `trained`. */
struct shmt_columns shmt_trained_columns(const struct shmt_trained *trained);
