/* The live kernels of sgd, for kernels.c: a push of one parameter is one new weight. */
#include "update/kernels_priv.h"

SHMT_LIVE_KERNELS(racy_sgd, SHMT_WRITE_RACY, SHMT_RULE_SGD, false)
SHMT_LIVE_KERNELS(racy_sgd_regularised, SHMT_WRITE_RACY, SHMT_RULE_SGD, true)
SHMT_LIVE_KERNELS(atomic_sgd, SHMT_WRITE_ATOMIC, SHMT_RULE_SGD, false)
SHMT_LIVE_KERNELS(atomic_sgd_regularised, SHMT_WRITE_ATOMIC, SHMT_RULE_SGD, true)
SHMT_LIVE_KERNELS(locked_sgd, SHMT_WRITE_LOCKED, SHMT_RULE_SGD, false)
SHMT_LIVE_KERNELS(locked_sgd_regularised, SHMT_WRITE_LOCKED, SHMT_RULE_SGD, true)

const struct shmt_live_set SHMT_SGD_KERNELS[SHMT_LIVE_WRITES] = {
    [SHMT_WRITE_RACY] = {{SHMT_LIVE_TABLE(racy_sgd), SHMT_LIVE_TABLE(racy_sgd_regularised)}},
    [SHMT_WRITE_ATOMIC] = {{SHMT_LIVE_TABLE(atomic_sgd), SHMT_LIVE_TABLE(atomic_sgd_regularised)}},
    [SHMT_WRITE_LOCKED] = {{SHMT_LIVE_TABLE(locked_sgd), SHMT_LIVE_TABLE(locked_sgd_regularised)}},
};
