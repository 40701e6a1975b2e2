/* A pen writes lines that are never longer than the screen is wide, whatever they are made of. Used by the draw files. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum pen_colour { PEN_PLAIN, PEN_BOLD, PEN_DIM, PEN_RED, PEN_GREEN, PEN_YELLOW, PEN_CYAN };

struct pen {
    FILE *out;
    unsigned columns, column; /* of the screen; where it stands */
    unsigned lines;           /* that are complete */
    bool colours;
};

/* Columns that are left in this line; columns that a text takes: one for each character of UTF-8. */
unsigned pen_left(const struct pen *pen);
unsigned pen_width(const char *text);

/* Writes a text; what does not fit is left out. */
void pen_text(struct pen *pen, enum pen_colour colour, const char *text);
void pen_format(struct pen *pen, enum pen_colour colour, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Writes one glyph `n` times, as far as it fits. */
void pen_repeat(struct pen *pen, enum pen_colour colour, const char *glyph, unsigned n);

/* Blanks up to a column, from 0; nothing when it is behind that already. */
void pen_move(struct pen *pen, unsigned column);

void pen_end_line(struct pen *pen);

/* "   987", "1.23 k", " 154 k", "12.3 M": always 6 columns. */
const char *pen_short(double x, char out[16]);
