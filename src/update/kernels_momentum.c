/* The live kernels of momentum, for kernels.c: a push changes its velocity, then its weight. */
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_momentum, SHMT_WRITE_RACY, SHMT_RULE_MOMENTUM, false)
SHMT_LIVE_KERNELS(racy_momentum_regularised, SHMT_WRITE_RACY, SHMT_RULE_MOMENTUM, true)
SHMT_LIVE_KERNELS(atomic_momentum, SHMT_WRITE_ATOMIC, SHMT_RULE_MOMENTUM, false)
SHMT_LIVE_KERNELS(atomic_momentum_regularised, SHMT_WRITE_ATOMIC, SHMT_RULE_MOMENTUM, true)
SHMT_LIVE_KERNELS(locked_momentum, SHMT_WRITE_LOCKED, SHMT_RULE_MOMENTUM, false)
SHMT_LIVE_KERNELS(locked_momentum_regularised, SHMT_WRITE_LOCKED, SHMT_RULE_MOMENTUM, true)

const struct shmt_live_set SHMT_MOMENTUM_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_momentum), SHMT_LIVE_TABLE(racy_momentum_regularised)}},
    [SHMT_WRITE_ATOMIC] = {{SHMT_LIVE_TABLE(atomic_momentum), SHMT_LIVE_TABLE(atomic_momentum_regularised)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_momentum), SHMT_LIVE_TABLE(locked_momentum_regularised)}},
};
