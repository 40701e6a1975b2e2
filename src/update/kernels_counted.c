/* The racy kernels that count their updates (option count-lost): see counted_priv.h. Compiled once, for the portable path, whose
 * bits are those of all paths, and with L1 and L2, which change no bit where they are 0: runs that count are slower anyway. */
#define SHMT_COUNTS
#include "update/kernels_priv.h"

SHMT_COUNTING_KERNELS(counted_sgd, SHMT_RULE_SGD)
SHMT_COUNTING_KERNELS(counted_momentum, SHMT_RULE_MOMENTUM)
SHMT_COUNTING_KERNELS(counted_adagrad, SHMT_RULE_ADAGRAD)
SHMT_COUNTING_KERNELS(counted_adam, SHMT_RULE_ADAM)
SHMT_COUNTING_KERNELS(counted_ftrl, SHMT_RULE_FTRL)
SHMT_COUNTING_KERNELS(counted_nesterov, SHMT_RULE_NESTEROV)
SHMT_COUNTING_KERNELS(counted_rmsprop, SHMT_RULE_RMSPROP)
SHMT_COUNTING_KERNELS(counted_adadelta, SHMT_RULE_ADADELTA)
SHMT_COUNTING_KERNELS(counted_adamw, SHMT_RULE_ADAMW)

static const struct shmt_kernels COUNTED[SHMT_N_RULES][2] = {
    /* [values] */
    [SHMT_RULE_SGD] = SHMT_LIVE_TABLE(counted_sgd),         [SHMT_RULE_MOMENTUM] = SHMT_LIVE_TABLE(counted_momentum),
    [SHMT_RULE_ADAGRAD] = SHMT_LIVE_TABLE(counted_adagrad), [SHMT_RULE_ADAM] = SHMT_LIVE_TABLE(counted_adam),
    [SHMT_RULE_FTRL] = SHMT_LIVE_TABLE(counted_ftrl),       [SHMT_RULE_NESTEROV] = SHMT_LIVE_TABLE(counted_nesterov),
    [SHMT_RULE_RMSPROP] = SHMT_LIVE_TABLE(counted_rmsprop), [SHMT_RULE_ADADELTA] = SHMT_LIVE_TABLE(counted_adadelta),
    [SHMT_RULE_ADAMW] = SHMT_LIVE_TABLE(counted_adamw),
};

const struct shmt_kernels *shmt_kernels_that_count(enum shmt_rule_kind rule, bool values) {
    const struct shmt_kernels *found = &COUNTED[rule][values];
    return found->name ? found : NULL;
}
