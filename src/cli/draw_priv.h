/* The parts of a frame, shared between the draw files only. */
#pragma once

#include "cli/draw.h"
#include "cli/pen.h"

static inline double draw_clamped(double share) { return share > 0 ? share < 1 ? share : 1 : 0; } /* NaN: 0 */

static inline unsigned draw_digits(uint32_t n) {
    unsigned digits = 1;
    for (; n >= 10; n /= 10) digits++;
    return digits;
}

/* A block as high as a share, from an eighth of a character to all of it. */
const char *draw_level(double share);

/* The workers, in at most `most_lines` lines (0: none). */
void draw_workers(const struct draw_state *state, const struct draw_screen *screen, unsigned most_lines, struct pen *pen);
