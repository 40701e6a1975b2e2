/* What is fitted exactly: a linear model with L2, L1 or both, of whose minimum there is a proof.
 *
 *     P(w, b) = 1/N sum_i c_i loss(x_i . w + b, y_i)  +  l2/2 |w|^2  +  l1 |w|
 *
 * N is the number of examples, c_i an example's weight (1 where there are none), b a bias without either, or none. See
 * `shmtrain help objective`. */
#pragma once

#include <shmtrain/data.h>

enum shmt_solve_loss {
    SHMT_SOLVE_LOGISTIC, /* log(1 + exp(-s z)), s = 1 for the label `high`, else -1 */
    SHMT_SOLVE_SQUARED,  /* (z - y)^2 / 2 */
    SHMT_SOLVE_HINGE,    /* max(0, 1 - s z) */
    SHMT_SOLVE_SOFTMAX   /* -log of the label's probability (wide.h) */
};

enum { SHMT_CHOICE_PARTS = 10 }; /* of the examples, at most, that are held out one after the other */

/* Whether L2 is of columns that are divided by their scales (choose.h). */
enum shmt_solve_scale { SHMT_SCALE_NO, SHMT_SCALE_YES, SHMT_SCALE_CHOSEN };

/* Dual ascent by all workers at once: what becomes of changes that two of them make to a weight at the same time. */
enum shmt_solve_live { SHMT_LIVE_NO, SHMT_LIVE_RACY, SHMT_LIVE_ATOMIC };

/* Constant, and the same in all who work on it. */
struct shmt_problem {
    const struct shmtrain_data *data; /* in sparse rows */
    const uint32_t *example;          /* (n) which of its examples; NULL: the first n */
    uint64_t n;
    uint64_t n_all;           /* of all that are fitted; n, unless this is a sample of them */
    uint32_t n_columns, bias; /* features; 1: and a bias behind them */
    enum shmt_solve_loss loss;
    float high;    /* logistic, hinge: the larger label */
    double l2, l1; /* not both 0; hinge: l1 is 0. Where L2 is to be chosen (choose.h) l2 is 0 */
    enum shmt_solve_scale scale;
    enum shmt_solve_live live; /* one score of an example, with L2 alone, which is not chosen */
    uint32_t n_parts;          /* choice: that examples are dealt to; 0: nothing is chosen */
    uint32_t n_held;           /* ... of which so many are held out, one after the other */
    uint64_t seed;             /* ... by what they are dealt */
    double tolerance;          /* how near the optimum the objective is to be proved, as a part of it */
    float *weight; /* (n_columns + bias) where parameters come from, and go to; softmax: (n_classes, stride) without biases */
    uint32_t n_classes, stride; /* softmax: numbers of each column; others: 1. The stride is at least n_columns */
    const float *classes;       /* softmax: (n_classes) labels, ascending */
    float *bias_weight;         /* softmax with bias: (n_classes) */
};

static inline uint64_t shmt_problem_example(const struct shmt_problem *p, uint64_t i) { return p->example ? p->example[i] : i; }

static inline double shmt_problem_weight(const struct shmt_problem *p, uint64_t i) {
    return p->data->weight ? (double)p->data->weight[shmt_problem_example(p, i)] : 1;
}

static inline double shmt_problem_value(const struct shmt_problem *p, uint64_t at) {
    return p->data->value ? (double)p->data->value[at] : 1;
}
