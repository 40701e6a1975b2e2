/* The inner loops of one CPU path (base/cpu.h): the kernels of kernels.h, the update of `aggregate`, and the merging of
 * replicas that is the default.
 *
 * The same sources are compiled once for each path: kernels.c, kernels_RULE.c, kernels_aggregate.c, apply.c, terms.c and merge.c, with
 * their names changed by path_names_priv.h; the functions that kernels.h, rule.h, terms.h and merge.h declare are those of the portable
 * path. A session asks for its path once, by the spec. All paths give the same bits; tests compare each with plain loops. */
#pragma once

#include "base/cpu.h"
#include "update/kernels.h"
#include "update/merge.h"

struct shmt_path {
    /* As shmt_kernels_find, shmt_kernels_of_rounds, shmt_rule_apply, shmt_rule_squares, shmt_terms_sum and shmt_merge_damped say. */
    const struct shmt_kernels *(*find)(enum shmt_write write, enum shmt_rule_kind rule, bool values, bool regularised);
    const struct shmt_kernels *(*of_rounds)(bool values);
    void (*apply)(enum shmt_rule_kind kind, float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                  const struct shmt_update *u);
    void (*squares)(const float *w, const float *state, uint64_t plane, const float *grad, uint64_t n,
                    const struct shmt_update *u, double *weights_out, double *steps_out);
    void (*terms_sum)(const uint32_t *id, const float *value, uint32_t n, uint32_t from, uint32_t to, float *sum,
                      uint8_t *touched);
    bool (*merge_damped)(enum shmt_rule_kind rule, const struct shmt_damping *d, enum shmt_merge_beside beside,
                         const struct shmt_merge_words *words, uint64_t at, uint64_t n);
};

/* The path `cpu`; where the machine or this program has none such, the portable one. */
const struct shmt_path *shmt_path_of(uint32_t cpu);
