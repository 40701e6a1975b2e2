/* The live kernels of rmsprop, for kernels.c: a push changes its mean square, then its weight. */
#define SHMT_ONE_RULE SHMT_RULE_RMSPROP
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(rmsprop)

const struct shmt_live_set SHMT_RMSPROP_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(rmsprop);
