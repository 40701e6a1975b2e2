/* Losses of a network's outputs, with their derivatives.
 *
 * Called by models behind the last layer. Each example's loss and derivatives are times its weight. Losses are summed in doubles, in
 * the order of examples. Any thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of n examples, as the caller has them. */
struct shmt_loss_batch {
    uint32_t n, outputs;
    const float *out;    /* (n, outputs) */
    const float *weight; /* (n), or NULL: all are 1 */
    float *slope;        /* (n, outputs), written: derivatives by `out`; may be the memory of `out` */
};

/* Log loss over classes: -log p_y, p the softmax of the outputs (math/softmax.h), y = target[k] < outputs; target (n). Derivative:
 * p_c - [c = y]. With `scoring`, `slope` gets p instead. */
double shmt_loss_classes(const struct shmt_loss_batch *batch, const uint32_t *target, bool scoring);

/* Half the squared error: the sum over outputs of (out - target)^2 / 2; target (n, outputs). Derivative: out - target. */
double shmt_loss_squared(const struct shmt_loss_batch *batch, const float *target);
