/* The live kernels of nesterov, for kernels.c: a push changes its velocity, then its weight. */
#define SHMT_ONE_RULE SHMT_RULE_NESTEROV
#include "update/kernels_priv.h"

SHMT_RULE_KERNELS(nesterov)

const struct shmt_live_set SHMT_NESTEROV_KERNELS[SHMT_LIVE_WRITES] = SHMT_RULE_TABLE(nesterov);
