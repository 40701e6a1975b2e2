/* A run whose numbers are all finite, and that has learned nothing but how large they may become. */
#ifndef SHMT_API_DIVERGED_H
#define SHMT_API_DIVERGED_H

#include "api/store_priv.h"

/* Of a built-in model that took steps of SGD: refuses (_NUMBERS) a loss in the last epoch that is far above that of a model which
 * knows no features. The data is still there. */
int shmt_diverged_check(const struct shmtrain_store *store, struct shmt_error *e);

#endif
