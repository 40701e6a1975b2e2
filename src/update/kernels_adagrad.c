/* The live kernels of adagrad, for kernels.c: a push changes its sum of squares, then its weight. */
#define SHMT_ONE_RULE SHMT_RULE_ADAGRAD
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(adagrad)

const struct shmt_live_set SHMT_ADAGRAD_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(adagrad);
