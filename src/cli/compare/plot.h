/* Curves as text: a canvas of characters with axes, a letter for each curve, and a legend. Pure: the same curves and screen
 * give the same lines. Called by compare.c.
 *
 *     validation loss by epoch   a async   s sync   ---- target
 *     0.400 |a
 *           | s..a
 *     0.350 + - -.s-.-a- - - - -
 *           |       ..s....a..a
 *     0.300 |               s..s
 *           +--+------+------+--
 *              2      4      6     epochs
 *
 * Where letters of several curves meet, they take turns from column to column, so that none of them disappears. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cli/pen.h"

#define PLOT_CURVES 32 /* the most */

struct plot_point {
    double x, y; /* points that are not finite are left out */
};

struct plot_span {
    double least, most; /* of several runs */
};

struct plot_curve {
    const char *name;
    char mark;
    const struct plot_point *point; /* (n), x ascending */
    const struct plot_span *span;   /* (n) around each point; NULL: none. Text does not show them */
    size_t n;
    bool is_guide; /* no measurement: a line to hold the others against */
};

struct plot {
    const char *title, *x_title;
    const struct plot_curve *curve; /* (n_curves) */
    unsigned n_curves;
    double target;       /* a line at this height; NaN: none */
    double at;           /* an upright line at this x */
    const char *at_name; /* its name; NULL: there is none */
    bool linear;         /* no axis is logarithmic */
    bool x_whole;        /* x counts something: its axis has whole numbers only, and begins at the first one; else at 0 */
};

struct plot_screen {
    unsigned columns, rows; /* of the whole plot: at least 32 and 8 */
    bool blocks, colours;   /* UTF-8; colours */
};

/* Writes the lines, and returns how many: at most screen->rows, or 0 when there is no point to show. */
unsigned plot_draw(const struct plot *plot, const struct plot_screen *screen, FILE *out);
