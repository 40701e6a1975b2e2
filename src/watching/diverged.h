/* A run whose numbers are all finite, and that has learned nothing but how large they may become. */
#pragma once

#include "workers/run.h"

/* Of a built-in model that took steps of SGD: refuses (_NUMBERS) a loss in the last epoch that is far above that of a model which
 * knows no features. The data is still there. */
int shmt_diverged_check(const struct shmt_run *run, struct shmt_error *e);
