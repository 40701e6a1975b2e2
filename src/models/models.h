/* The built-in models. Adding one is a file here and a line in models.c. */
#ifndef SHMT_MODELS_MODELS_H
#define SHMT_MODELS_MODELS_H

#include <shmtrain/model.h>
#include <stdbool.h>

extern const struct shmtrain_model SHMT_MODEL_LOGISTIC, SHMT_MODEL_SVM, SHMT_MODEL_LINEAR, SHMT_MODEL_SOFTMAX;

/* Whether it is a built-in model that calls OpenBLAS. */
bool shmt_model_uses_blas(const struct shmtrain_model *model);

/* Whether it is a built-in model that takes rows in either layout, and wants the one of less work. */
bool shmt_model_takes_either(const struct shmtrain_model *model);

/* Models that are not learned here, but read from LIBLINEAR's files and scored: "one-vs-rest", "svm-classes". NULL: there is none
 * of this name. */
const struct shmtrain_model *shmt_model_scoring(const char *name);

/* Built-in model number i, from 0; NULL behind the last. */
const struct shmtrain_model *shmt_model_at(size_t i);

#endif
