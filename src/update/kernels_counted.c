/* The racy kernels that count their updates (option count-lost): see counted_priv.h. Compiled once, for the portable path, whose
 * bits are those of all paths: runs that count are slower anyway. */
#define SHMT_COUNTS
#include "update/kernels_priv.h"

SHMT_COUNTING_KERNELS(counted_sgd, SHMT_RULE_SGD, false)
SHMT_COUNTING_KERNELS(counted_sgd_regularised, SHMT_RULE_SGD, true)
SHMT_COUNTING_KERNELS(counted_momentum, SHMT_RULE_MOMENTUM, false)
SHMT_COUNTING_KERNELS(counted_momentum_regularised, SHMT_RULE_MOMENTUM, true)
SHMT_COUNTING_KERNELS(counted_adagrad, SHMT_RULE_ADAGRAD, false)
SHMT_COUNTING_KERNELS(counted_adagrad_regularised, SHMT_RULE_ADAGRAD, true)
SHMT_COUNTING_KERNELS(counted_adam, SHMT_RULE_ADAM, false)
SHMT_COUNTING_KERNELS(counted_adam_regularised, SHMT_RULE_ADAM, true)
SHMT_COUNTING_KERNELS(counted_ftrl, SHMT_RULE_FTRL, true)
SHMT_COUNTING_KERNELS(counted_nesterov, SHMT_RULE_NESTEROV, false)
SHMT_COUNTING_KERNELS(counted_nesterov_regularised, SHMT_RULE_NESTEROV, true)
SHMT_COUNTING_KERNELS(counted_rmsprop, SHMT_RULE_RMSPROP, false)
SHMT_COUNTING_KERNELS(counted_rmsprop_regularised, SHMT_RULE_RMSPROP, true)
SHMT_COUNTING_KERNELS(counted_adadelta, SHMT_RULE_ADADELTA, false)
SHMT_COUNTING_KERNELS(counted_adadelta_regularised, SHMT_RULE_ADADELTA, true)
SHMT_COUNTING_KERNELS(counted_adamw, SHMT_RULE_ADAMW, false)
SHMT_COUNTING_KERNELS(counted_adamw_regularised, SHMT_RULE_ADAMW, true)

static const struct shmt_live_set COUNTED[SHMT_N_RULES] = {
    [SHMT_RULE_SGD] = {{SHMT_LIVE_TABLE(counted_sgd), SHMT_LIVE_TABLE(counted_sgd_regularised)}},
    [SHMT_RULE_MOMENTUM] = {{SHMT_LIVE_TABLE(counted_momentum), SHMT_LIVE_TABLE(counted_momentum_regularised)}},
    [SHMT_RULE_ADAGRAD] = {{SHMT_LIVE_TABLE(counted_adagrad), SHMT_LIVE_TABLE(counted_adagrad_regularised)}},
    [SHMT_RULE_ADAM] = {{SHMT_LIVE_TABLE(counted_adam), SHMT_LIVE_TABLE(counted_adam_regularised)}},
    [SHMT_RULE_FTRL] = {{SHMT_LIVE_TABLE(counted_ftrl), SHMT_LIVE_TABLE(counted_ftrl)}},
    [SHMT_RULE_NESTEROV] = {{SHMT_LIVE_TABLE(counted_nesterov), SHMT_LIVE_TABLE(counted_nesterov_regularised)}},
    [SHMT_RULE_RMSPROP] = {{SHMT_LIVE_TABLE(counted_rmsprop), SHMT_LIVE_TABLE(counted_rmsprop_regularised)}},
    [SHMT_RULE_ADADELTA] = {{SHMT_LIVE_TABLE(counted_adadelta), SHMT_LIVE_TABLE(counted_adadelta_regularised)}},
    [SHMT_RULE_ADAMW] = {{SHMT_LIVE_TABLE(counted_adamw), SHMT_LIVE_TABLE(counted_adamw_regularised)}},
};

const struct shmt_kernels *shmt_kernels_that_count(enum shmt_rule_kind rule, bool values, bool regularised) {
    const struct shmt_kernels *found = &COUNTED[rule].of[regularised][values];
    return found->name ? found : NULL;
}
