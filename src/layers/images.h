/* Images on their way from the data into a network: normalised, moved and turned, in one pass over their numbers.
 *
 * Called by models of networks for each example of a batch, and once for the means and deviations of all of them. An image comes as
 * (channels, height, width), as the data has it. All functions are pure. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>
#include <stdint.h>

#include "layers/augment.h"
#include "layers/spread.h"

/* How images go in. `normal` (channels, 2): the mean of each channel and its standard deviation, (x - mean) / deviation is what the
 * network sees; NULL: x itself. `last`: channels come last, (height, width, channels), as layers want them. */
struct shmt_images {
    struct shmtrain_extent of;
    const float *normal;
    bool last;
};

/* Asks memory for an example of n numbers, or their first 8,192, while the one before goes in: examples come in an order by chance, and
 * each would wait for main memory. */
static inline void shmt_images_ask(const float *example, uint64_t n) {
    enum { LINE = 16, MOST = 8192 };
    for (uint64_t i = 0; i < n && i < MOST; i += LINE) __builtin_prefetch(example + i, 0, 2);
}

/* One image: `image` (channels, height, width) into `out`, with as many numbers. They do not overlap. What a move brings in from
 * beyond the edges is a pixel of 0 before it is normalised; where that is like no pixel (more than 3 of what the network sees as 1 from the
 * mean, as of temperatures), a pixel of the mean. */
void shmt_images_put(const struct shmt_images *how, struct shmt_move move, const float *image, float *out);

/* Pixels of one channel of one image more. */
void shmt_images_add(struct shmt_spread *spread, const float *plane, uint64_t n);

/* The mean and the standard deviation, into normal_out (2). Where all pixels are alike the deviation counts as 1, and so does one
 * that is near enough: numbers from 0 to 1 are as large as networks want them, and learn worse as three times that (MNIST). */
void shmt_images_normal(const struct shmt_spread *spread, float *normal_out);
