/* How strongly the mean loss bends where features move together; what damped merging is told beside each row's own curvature.
 * Called by rows.c.
 *
 * Replicas whose changes are added up overshoot where each of them comes to the optimum by itself. How far one comes along a
 * single weight says that weight's curvature. But where all examples have much in common (categories, positive measurements
 * that share a scale, a factor behind all columns), many weights move as one, and together they come far faster: on a9a, with 14
 * features in each example, 6.6 times as far as the most frequent one alone. Shares that do not see that add up eight such
 * moves, and the loss rises.
 *
 * The direction in which weights come fastest together is the leading eigenvector u of the second moments M = mean of
 * weight x x', and its curvature the model's times the eigenvalue L. Each row is given the part of it that it takes in that
 * direction,
 *
 *     h_j = curvature * (M_jj + TOGETHER * L * u_j^2 / max_k u_k^2)
 *
 * so that those who carry it are damped as the whole of it needs, and rare features, which hardly take part, by themselves. The
 * bias follows from the features: it is in every example, and alone it would hide what they have in common. */
#pragma once

#include "loading/rows.h"
#include "ps/replicas.h"

/* Bytes that working it out takes, of n rows that replicas hold. */
uint64_t shmt_coupling_work_bytes(uint64_t n);

/* Adds TOGETHER * L * u_j^2 / max u^2 to each of the rows that `cover` holds, h (cover->n), from a sample of the examples: some
 * milliseconds. bias: the number of its row there; UINT64_MAX: none. The same bits wherever the data is the same. Errors:
 * _MEMORY. */
int shmt_coupling_add(const struct shmt_rows_of *of, const struct shmt_cover *cover, uint64_t bias, float *h,
                      struct shmt_error *e);
