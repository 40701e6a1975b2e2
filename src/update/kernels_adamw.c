/* The live kernels of adamw, for kernels.c: a push changes its two averages, their corrections, and its weight, which
 * weight decay shrinks first. Not atomically (shmt_rule_check). */
#define SHMT_ONE_RULE SHMT_RULE_ADAMW
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_adamw, SHMT_WRITE_RACY, false)
SHMT_LIVE_KERNELS(racy_adamw_regularised, SHMT_WRITE_RACY, true)
SHMT_LIVE_KERNELS(locked_adamw, SHMT_WRITE_LOCKED, false)
SHMT_LIVE_KERNELS(locked_adamw_regularised, SHMT_WRITE_LOCKED, true)

const struct shmt_live_set SHMT_ADAMW_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_adamw), SHMT_LIVE_TABLE(racy_adamw_regularised)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_adamw), SHMT_LIVE_TABLE(locked_adamw_regularised)}},
};
