/* Names of what is compiled once for each CPU path. The sources that are (path.h lists them) include this first. SHMT_PATH is
 * the path they are being compiled for, and undefined for the portable one, which has the plain names. */
#pragma once

#define SHMT_JOINED(name, path)  name##_##path
#define SHMT_IN_PATH(name, path) SHMT_JOINED(name, path)

#ifdef SHMT_PATH
#    define SHMT_THIS_PATH         SHMT_IN_PATH(SHMT_LOOPS, SHMT_PATH)
#    define shmt_kernels_find      SHMT_IN_PATH(shmt_kernels_find, SHMT_PATH)
#    define shmt_kernels_of_rounds SHMT_IN_PATH(shmt_kernels_of_rounds, SHMT_PATH)
#    define shmt_need_values       SHMT_IN_PATH(shmt_need_values, SHMT_PATH)
#    define shmt_need_ones         SHMT_IN_PATH(shmt_need_ones, SHMT_PATH)
#    define shmt_live_dot_values   SHMT_IN_PATH(shmt_live_dot_values, SHMT_PATH)
#    define shmt_live_dot_ones     SHMT_IN_PATH(shmt_live_dot_ones, SHMT_PATH)
#    define shmt_rule_apply        SHMT_IN_PATH(shmt_rule_apply, SHMT_PATH)
#    define shmt_rule_squares      SHMT_IN_PATH(shmt_rule_squares, SHMT_PATH)
#    define shmt_terms_sum         SHMT_IN_PATH(shmt_terms_sum, SHMT_PATH)
#    define shmt_merging_of        SHMT_IN_PATH(shmt_merging_of, SHMT_PATH)
#    define shmt_merging_statistic SHMT_IN_PATH(shmt_merging_statistic, SHMT_PATH)
#    define shmt_merge_check       SHMT_IN_PATH(shmt_merge_check, SHMT_PATH)
#    define shmt_merge_all         SHMT_IN_PATH(shmt_merge_all, SHMT_PATH)
#    define shmt_merge_one         SHMT_IN_PATH(shmt_merge_one, SHMT_PATH)
#    define shmt_merge_shared      SHMT_IN_PATH(shmt_merge_shared, SHMT_PATH)
#    define shmt_merge_looks_due   SHMT_IN_PATH(shmt_merge_looks_due, SHMT_PATH)
#    define shmt_merge_shares      SHMT_IN_PATH(shmt_merge_shares, SHMT_PATH)
#    define shmt_merge_damped      SHMT_IN_PATH(shmt_merge_damped, SHMT_PATH)
#    define shmt_merge_prefetch    SHMT_IN_PATH(shmt_merge_prefetch, SHMT_PATH)
#    define shmt_merge_collect     SHMT_IN_PATH(shmt_merge_collect, SHMT_PATH)
#    define shmt_merge_follow      SHMT_IN_PATH(shmt_merge_follow, SHMT_PATH)
#    define SHMT_SGD_KERNELS       SHMT_IN_PATH(SHMT_SGD_KERNELS, SHMT_PATH)
#    define SHMT_MOMENTUM_KERNELS  SHMT_IN_PATH(SHMT_MOMENTUM_KERNELS, SHMT_PATH)
#    define SHMT_ADAGRAD_KERNELS   SHMT_IN_PATH(SHMT_ADAGRAD_KERNELS, SHMT_PATH)
#    define SHMT_ADAM_KERNELS      SHMT_IN_PATH(SHMT_ADAM_KERNELS, SHMT_PATH)
#    define SHMT_FTRL_KERNELS      SHMT_IN_PATH(SHMT_FTRL_KERNELS, SHMT_PATH)
#    define SHMT_NESTEROV_KERNELS  SHMT_IN_PATH(SHMT_NESTEROV_KERNELS, SHMT_PATH)
#    define SHMT_RMSPROP_KERNELS   SHMT_IN_PATH(SHMT_RMSPROP_KERNELS, SHMT_PATH)
#    define SHMT_ADADELTA_KERNELS  SHMT_IN_PATH(SHMT_ADADELTA_KERNELS, SHMT_PATH)
#    define SHMT_ADAMW_KERNELS     SHMT_IN_PATH(SHMT_ADAMW_KERNELS, SHMT_PATH)
#    define SHMT_AGGREGATE_KERNELS SHMT_IN_PATH(SHMT_AGGREGATE_KERNELS, SHMT_PATH)
#    define SHMT_ROUNDS_KERNELS    SHMT_IN_PATH(SHMT_ROUNDS_KERNELS, SHMT_PATH)
#else
#    define SHMT_THIS_PATH SHMT_LOOPS_portable
#endif
