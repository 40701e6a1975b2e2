/* What a worker touches where memory takes virtual time (sync/host.h): parameters, and the rule's state beside them, line by line.
 * Called at once before or after they are read or written; time passes when the host is told to spend it. On a host without `touch` all
 * return at once. */
#pragma once

#include <shmtrain/session.h>
#include <stdbool.h>
#include <stdint.h>

#include "update/span.h"

/* n (> 0) floats at `weight`, and as many of each plane of state, which begin `plane` floats from one another. state is NULL where
 * planes is 0. */
void shmt_touch_planes(const float *weight, const float *state, uint64_t plane, uint32_t planes, uint64_t n, bool writes);

/* Floats at .. at + n - 1 of a span: its weights where they are read, what is pushed to where they are written. n may be 0. */
void shmt_touch_floats(const struct shmt_span *span, uint64_t at, uint64_t n, uint32_t planes, bool writes);

/* The rows of a csr's examples, and its bias. Here time passes: once for all that is read, parameter by parameter for what is
 * written (where a push is atomic or has locks). */
void shmt_pay_for_examples(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t planes, bool writes);
