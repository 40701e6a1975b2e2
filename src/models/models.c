/* The list of built-in models. */
#include "models/models.h"

static const struct shmtrain_model *const MODELS[] = {&SHMT_MODEL_LOGISTIC, &SHMT_MODEL_SVM, &SHMT_MODEL_LINEAR,
                                                      &SHMT_MODEL_SOFTMAX,  &SHMT_MODEL_MLP, &SHMT_MODEL_CNN,
                                                      &SHMT_MODEL_NET};

const struct shmtrain_model *shmt_model_at(size_t i) { return i < sizeof MODELS / sizeof *MODELS ? MODELS[i] : NULL; }
