/* The live kernels of adagrad, for kernels.c: a push changes its sum of squares, then its weight. */
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_adagrad, SHMT_WRITE_RACY, SHMT_RULE_ADAGRAD, false)
SHMT_LIVE_KERNELS(racy_adagrad_regularised, SHMT_WRITE_RACY, SHMT_RULE_ADAGRAD, true)
SHMT_LIVE_KERNELS(atomic_adagrad, SHMT_WRITE_ATOMIC, SHMT_RULE_ADAGRAD, false)
SHMT_LIVE_KERNELS(atomic_adagrad_regularised, SHMT_WRITE_ATOMIC, SHMT_RULE_ADAGRAD, true)
SHMT_LIVE_KERNELS(locked_adagrad, SHMT_WRITE_LOCKED, SHMT_RULE_ADAGRAD, false)
SHMT_LIVE_KERNELS(locked_adagrad_regularised, SHMT_WRITE_LOCKED, SHMT_RULE_ADAGRAD, true)

const struct shmt_live_set SHMT_ADAGRAD_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_adagrad), SHMT_LIVE_TABLE(racy_adagrad_regularised)}},
    [SHMT_WRITE_ATOMIC] = {{SHMT_LIVE_TABLE(atomic_adagrad), SHMT_LIVE_TABLE(atomic_adagrad_regularised)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_adagrad), SHMT_LIVE_TABLE(locked_adagrad_regularised)}},
};
