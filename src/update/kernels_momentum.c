/* The live kernels of momentum, for kernels.c: a push changes its velocity, then its weight. */
#define SHMT_ONE_RULE SHMT_RULE_MOMENTUM
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(momentum)

const struct shmt_live_set SHMT_MOMENTUM_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(momentum);
