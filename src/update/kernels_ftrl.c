/* The live kernels of ftrl, for kernels.c: a push changes its z and n, and makes its weight of them. L1 and L2 are part of
 * that, so there is one set for both. Not atomically (shmt_rule_check). */
#define SHMT_ONE_RULE SHMT_RULE_FTRL
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_ftrl, SHMT_WRITE_RACY, true)
SHMT_LIVE_KERNELS(locked_ftrl, SHMT_WRITE_LOCKED, true)

const struct shmt_live_set SHMT_FTRL_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_ftrl), SHMT_LIVE_TABLE(racy_ftrl)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_ftrl), SHMT_LIVE_TABLE(locked_ftrl)}},
};
