/* The live kernels of adam, for kernels.c: a push changes its two averages, their corrections, and its weight. Not
 * atomically (shmt_rule_check). */
#define SHMT_ONE_RULE SHMT_RULE_ADAM
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_adam, SHMT_WRITE_RACY, false)
SHMT_LIVE_KERNELS(racy_adam_regularised, SHMT_WRITE_RACY, true)
SHMT_LIVE_KERNELS(locked_adam, SHMT_WRITE_LOCKED, false)
SHMT_LIVE_KERNELS(locked_adam_regularised, SHMT_WRITE_LOCKED, true)

const struct shmt_live_set SHMT_ADAM_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_adam), SHMT_LIVE_TABLE(racy_adam_regularised)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_adam), SHMT_LIVE_TABLE(locked_adam_regularised)}},
};
