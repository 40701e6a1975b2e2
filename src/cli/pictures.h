/* Images as text, several side by side, each above a line that says what it was taken for. For predict --show.
 *
 *        @@@@@@@@@@               .@@@@.
 *              .@@.             .@@.  @@
 *             .@@.                @@@@@
 *     ✗ 17: 1 (61.2 %), is 7      18: 8 (99.9 %), is 8
 *
 * Nothing is known here of terminals: what can be written is the caller's to find out. */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stdio.h>

/* What pixels are made of. */
enum pictures_ink {
    PICTURES_ASCII,  /* shades of ASCII, two pixels one above the other in each character */
    PICTURES_BLOCKS, /* halves of a character, light or dark */
    PICTURES_GREYS   /* halves of a character, in the greys of terminals with 256 colours */
};

struct pictures_wish {
    FILE *out;
    unsigned columns; /* no line is longer */
    enum pictures_ink ink;
    bool colours; /* what is wrong is red */
};

struct pictures;

/* NULL: no memory. */
struct pictures *pictures_open(const struct pictures_wish *wish);

/* One more: all of a file have one shape. `predicted` and `label` in words; label NULL: nobody knows it. Written when its row is full.
 * 0, or -1: no memory. */
int pictures_add(struct pictures *pictures, const struct shmtrain_image *image, const char *predicted, const char *label);

/* Writes the last row, and how many were right, or how far numbers were off. NULL is fine. */
void pictures_close(struct pictures *pictures);

/* The same, and writes nothing more. */
void pictures_discard(struct pictures *pictures);
