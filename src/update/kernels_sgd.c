/* The live kernels of sgd, for kernels.c: a push of one parameter is one new weight. */
#define SHMT_ONE_RULE SHMT_RULE_SGD
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(sgd)

const struct shmt_live_set SHMT_SGD_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(sgd);
