/* What a run is: all that a backend needs to know to make a store, and what follows from it by pure arithmetic.
 *
 * Made by `api` from the options and the data, constant from then on, and the same in every process. */
#ifndef SHMT_PS_SPEC_H
#define SHMT_PS_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"
#include "consistency/policy.h"
#include "data/order.h"
#include "store/rate.h"
#include "store/table.h"

#define SHMT_MAX_TABLES 8
#define SHMT_MAX_SEATS  4096 /* far beyond any machine; the ledger's owner words have 16 bits for a seat */
#define SHMT_NO_LIMIT   UINT64_MAX

struct shmt_spec {
    uint32_t n_seats; /* places at the store: one for each thread that trains */
    uint32_t
        n_workers; /* what a user calls workers: n_seats / threads of each, where a model's threads have seats of their own */
    uint64_t n_examples;
    uint32_t epochs;
    uint64_t max_steps; /* SHMT_NO_LIMIT: as many as the epochs have */
    struct shmt_policy policy;
    uint32_t batch, n_chunks; /* aggregate: examples per update, and the parts in which they are dealt */
    uint32_t item;            /* live modes: examples per work item, which is a clock */
    struct shmt_order order;  /* seed, shuffling */
    struct shmt_rate rate;
    float l2;
    uint32_t n_tables;
    struct shmt_table_spec table[SHMT_MAX_TABLES];
    uint64_t l2_rows[SHMT_MAX_TABLES]; /* rows below this are regularised: all, or all but a bias row at the end */
    bool l2_shares;                    /* room for one l2 share per row (live modes; see span.h) */
    uint32_t spin_ns;                  /* how long waiters spin before they sleep */
    uint64_t board_bytes;              /* shared memory for whoever drives the run (evaluation) */
};

/* An epoch is cut into steps: batches in `aggregate`, items in the live modes. */
static inline uint64_t shmt_spec_step_examples(const struct shmt_spec *spec) {
    return shmt_policy_is_live(&spec->policy) ? spec->item : spec->batch;
}

static inline uint64_t shmt_spec_steps(const struct shmt_spec *spec) {
    return shmt_ceil_div(spec->n_examples, shmt_spec_step_examples(spec));
}

/* What `next` deals: items, or chunks of batches. All chunks are counted, also those of a short last batch that have no
 * examples. */
static inline uint64_t shmt_spec_pieces(const struct shmt_spec *spec) {
    return shmt_spec_steps(spec) * (shmt_policy_is_live(&spec->policy) ? 1 : spec->n_chunks);
}

/* Examples in step `step` of an epoch. */
static inline uint64_t shmt_spec_examples_of_step(const struct shmt_spec *spec, uint64_t step) {
    const uint64_t each = shmt_spec_step_examples(spec);
    return shmt_min_u64(each, spec->n_examples - step * each);
}

/* The most examples that one work item can have. */
static inline uint64_t shmt_spec_largest_piece(const struct shmt_spec *spec) {
    const uint64_t piece = shmt_policy_is_live(&spec->policy) ? spec->item : shmt_ceil_div(spec->batch, spec->n_chunks);
    return shmt_min_u64(piece, spec->n_examples);
}

/* The rate of a step: a pure function of how much of the run lies before it, the same for all workers and backends. */
static inline float shmt_spec_rate(const struct shmt_spec *spec, uint32_t epoch, uint64_t step) {
    const double done = (double)(step * shmt_spec_step_examples(spec)) / (double)spec->n_examples;
    return shmt_rate_at(&spec->rate, (double)epoch + done);
}

/* Whether step `step` of epoch `epoch` lies within max_steps. */
static inline bool shmt_spec_has_step(const struct shmt_spec *spec, uint32_t epoch, uint64_t step) {
    const uint64_t steps = shmt_spec_steps(spec);
    return step < steps && epoch * steps + step < spec->max_steps;
}

/* Checks everything that a caller could have got wrong; one sentence. */
int shmt_spec_check(const struct shmt_spec *spec, struct shmt_error *e);

#endif
