/* Tables of a report's fields that its lines share with those about a run that goes on. */
#pragma once

#include "report/fields.h"

extern const struct shmt_field SHMT_LAYER[];   /* of struct shmtrain_model_layer */
extern const struct shmt_field SHMT_EPOCH[];   /* of struct shmtrain_epoch */
extern const struct shmt_field SHMT_CHOICES[]; /* of struct shmtrain_report: what is about to run, and on which data */
extern const struct shmt_field SHMT_RESULTS[]; /* likewise: what has come of it */
