/* How images are changed in training, from one epoch to the next: --augment "shift:2 flip crop:4".
 *
 * An image is moved by whole pixels, and what comes in at its edges is 0, as black paper is; or it is turned left for right. What happens
 * to an example follows from (seed, epoch, example) alone, so it is the same in whatever worker, chunk or batch the example is.
 * Called by models of networks; images.h does what was drawn here. All functions are pure. */
#pragma once

#include <shmtrain/layer.h>
#include <stdbool.h>
#include <stdint.h>

enum { SHMT_AUGMENT_MOST = 1024 }; /* pixels */

/* What is wanted. {0}: nothing. */
struct shmt_augment {
    uint32_t shift; /* by -shift .. shift pixels, down and to the right, each as likely as any other */
    uint32_t crop;  /* the edges get so many pixels, and a window of the image's own size is cut out of that */
    bool flips;     /* every second one, by chance */
};

/* What was drawn for one example: the pixel (row, column) of the result is the pixel (row - down, column - right) of the image, which
 * was turned left for right before, if it was. */
struct shmt_move {
    int32_t down, right;
    bool flipped;
};

/* Reads "shift:2 flip crop:4", words with blanks between them, each at most once, in any order; "none" or "": nothing. Returns 0; or -1,
 * with what is wrong in why_out (bytes), which names the column and what would be right. */
int shmt_augment_read(const char *text, struct shmt_augment *out, char *why_out, uint64_t bytes);

/* Whether images of this shape can be changed so: 0; or -1, with what is wrong in why_out (bytes). */
int shmt_augment_check(const struct shmt_augment *wanted, const struct shmtrain_extent *of, char *why_out, uint64_t bytes);

/* As it is read, "" where nothing is wanted. */
void shmt_augment_write(const struct shmt_augment *wanted, char *out, uint64_t bytes);

bool shmt_augment_is_wanted(const struct shmt_augment *wanted);

struct shmt_move shmt_augment_draw(const struct shmt_augment *wanted, uint64_t seed, uint64_t epoch, uint64_t example);
