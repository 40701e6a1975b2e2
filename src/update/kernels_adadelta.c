/* The live kernels of adadelta, for kernels.c: a push changes the mean squares of its gradients and of its steps, then its weight. */
#define SHMT_ONE_RULE SHMT_RULE_ADADELTA
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(adadelta)

const struct shmt_live_set SHMT_ADADELTA_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(adadelta);
