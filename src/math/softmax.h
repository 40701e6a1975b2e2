/* The softmax function and its loss, with the same bits on every machine.
 *
 * Called by the softmax model for every example. For scores z_0 .. z_(n-1) and the class y of the example
 *
 *     p_c = e^(z_c - m) / S      loss = -log p_y = log S + (m - z_y)      m = max z, S = 1 + R = sum over c of e^(z_c - m)
 *
 * so nothing overflows, 1 <= S <= n, and the slope of the loss with respect to z_c is p_c - [c = y]. R, the sum over all but
 * the largest, is taken in doubles in the order of classes, so that small losses keep their digits: log S = log1p(R) there. The
 * exponential function is that of logistic.h. A score that is NaN or +inf gives a loss that is no finite number. */
#pragma once

#include <stdint.h>

/* Scores z (n), n >= 1, become probabilities in place; returns the loss for class y. Beside 4 units in the last place, errors
 * are those of differences of scores in f32. */
float shmt_softmax(uint32_t n, float *z, uint32_t y);

/* log x for x >= 1, +inf excluded; NaN stays. Error at most 3 units in the last place. */
float shmt_log_above_one(float x);
