/* The built-in models. Adding one is a file here and a line in models.c. */
#ifndef SHMT_MODELS_MODELS_H
#define SHMT_MODELS_MODELS_H

#include <shmtrain/model.h>
#include <stdbool.h>

extern const struct shmtrain_model SHMT_MODEL_LOGISTIC, SHMT_MODEL_SVM, SHMT_MODEL_LINEAR, SHMT_MODEL_SOFTMAX;

/* Whether it is a built-in model that calls OpenBLAS. */
bool shmt_model_uses_blas(const struct shmtrain_model *model);

/* Built-in model number i, from 0; NULL behind the last. */
const struct shmtrain_model *shmt_model_at(size_t i);

#endif
