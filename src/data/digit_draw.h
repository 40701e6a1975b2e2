/* Drawing handwritten digits: builtin:digits' examples (digits.c), each a pure function of (seed, stream, index).
 *
 * A digit is one of the styles of digit_styles.h, whose strokes are moved a little each, bent by a smooth field, slanted, turned, scaled
 * and shifted, and drawn with a pen of some width: a pixel is as dark as it is covered. Ink varies; noise adds grain to what is inked, and
 * specks of dust. Nothing but +, -, *, / and sqrt of doubles is used, so that all machines draw the same bits. */
#pragma once

#include <stdint.h>

#define SHMT_DIGIT_SIDE   28
#define SHMT_DIGIT_PIXELS (SHMT_DIGIT_SIDE * SHMT_DIGIT_SIDE)

/* Into pixel (SHMT_DIGIT_PIXELS), row by row, 0: paper, 255: ink. `noise`: 0: none, 1: the usual. Returns the digit, 0 to 9. */
uint32_t shmt_digit_draw(uint64_t seed, uint64_t stream, uint64_t index, double noise, uint8_t *pixel);
