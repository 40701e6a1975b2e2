/* The built-in models. Adding one is a file here and a line in models.c. */
#pragma once

#include <shmtrain/model.h>
#include <stdbool.h>

extern const struct shmtrain_model SHMT_MODEL_LOGISTIC, SHMT_MODEL_SVM, SHMT_MODEL_LINEAR, SHMT_MODEL_SOFTMAX, SHMT_MODEL_MLP,
    SHMT_MODEL_CNN, SHMT_MODEL_NET;

/* Models that are not learned here, but read from LIBLINEAR's files and scored: "one-vs-rest", "svm-classes". NULL: there is none
 * of this name. */
const struct shmtrain_model *shmt_model_scoring(const char *name);

/* Built-in model number i, from 0; NULL behind the last. */
const struct shmtrain_model *shmt_model_at(size_t i);
