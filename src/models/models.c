/* The list of built-in models. */
#include "models/models.h"

static const struct shmtrain_model *const MODELS[] = {&SHMT_MODEL_LOGISTIC, &SHMT_MODEL_SVM, &SHMT_MODEL_LINEAR,
                                                      &SHMT_MODEL_SOFTMAX};

const struct shmtrain_model *shmt_model_at(size_t i) { return i < sizeof MODELS / sizeof *MODELS ? MODELS[i] : NULL; }

bool shmt_model_uses_blas(const struct shmtrain_model *model) { return model == &SHMT_MODEL_SOFTMAX; }

bool shmt_model_takes_either(const struct shmtrain_model *model) { return model == &SHMT_MODEL_SOFTMAX; }
