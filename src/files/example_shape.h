/* The shape of an example: so many channels, each of rows and columns of values. All 0: nobody knows. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/checked.h"

struct shmt_example_shape {
    uint32_t channels, height, width;
};

static inline bool shmt_example_shape_is_known(const struct shmt_example_shape *s) {
    return s->channels > 0 && s->height > 0 && s->width > 0;
}

/* Whether it is known, and an example of it has n values. */
static inline bool shmt_example_shape_has(const struct shmt_example_shape *s, uint64_t n) {
    uint64_t values;
    return shmt_example_shape_is_known(s) && shmt_mul_u64((uint64_t)s->channels * s->height, s->width, &values) && values == n;
}

/* Whether both are known, and are not the same. */
static inline bool shmt_example_shapes_differ(const struct shmt_example_shape *a, const struct shmt_example_shape *b) {
    return shmt_example_shape_is_known(a) && shmt_example_shape_is_known(b) &&
           (a->channels != b->channels || a->height != b->height || a->width != b->width);
}

#define SHMT_MOST_CHANNELS 4 /* that tell the dimension of channels from rows and columns */

/* Of the dimensions of an array of examples, the first of which counts these. Three: one channel of rows and columns. Four: channels,
 * rows and columns; but where the last alone of these three has SHMT_MOST_CHANNELS or fewer, rows, columns and channels, and
 * *channels_last_out is true: then the channels of a pixel lie together. Others: nobody knows. */
static inline struct shmt_example_shape shmt_example_shape_of(const uint64_t *dim, uint32_t n_dims, bool *channels_last_out) {
    *channels_last_out = n_dims == 4 && dim[3] <= SHMT_MOST_CHANNELS && dim[1] > SHMT_MOST_CHANNELS;
    for (uint32_t d = 1; d < n_dims; d++)
        if (dim[d] > UINT32_MAX) return (struct shmt_example_shape){0};
    if (n_dims == 3) return (struct shmt_example_shape){1, (uint32_t)dim[1], (uint32_t)dim[2]};
    if (n_dims != 4) return (struct shmt_example_shape){0};
    if (*channels_last_out) return (struct shmt_example_shape){(uint32_t)dim[3], (uint32_t)dim[1], (uint32_t)dim[2]};
    return (struct shmt_example_shape){(uint32_t)dim[1], (uint32_t)dim[2], (uint32_t)dim[3]};
}
