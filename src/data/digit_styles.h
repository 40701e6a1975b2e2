/* How the digits 0 to 9 are written: each in several styles, as strokes of lines and of arcs of ellipses in a box of 1 x 1, with x to
 * the right and y down. digit_draw.c bends and draws them. */
#pragma once

#include <stdint.h>

/* Of a stroke: the next point of a line, or an arc that begins where the stroke is or is joined to it by a line. Angles count steps of
 * 15 degrees, 0 to the right, 6 down, 12 left, 18 up; from > to: against the clock. */
struct shmt_stroke_piece {
    uint8_t kind; /* SHMT_PIECE_... */
    int16_t from, to;
    float x, y, rx, ry;
};
enum { SHMT_PIECE_END, SHMT_PIECE_BEGIN, SHMT_PIECE_LINE, SHMT_PIECE_ARC };

#define SHMT_MOST_PIECES 12
#define SHMT_MOST_STYLES 3

struct shmt_digit_style {
    struct shmt_stroke_piece piece[SHMT_MOST_PIECES]; /* up to the first SHMT_PIECE_END */
};

#define AT(x, y) \
    { SHMT_PIECE_BEGIN, 0, 0, x, y, 0, 0 } /* a stroke begins */
#define TO(x, y) \
    { SHMT_PIECE_LINE, 0, 0, x, y, 0, 0 }
#define ARC(x, y, rx, ry, from, to) \
    { SHMT_PIECE_ARC, from, to, x, y, rx, ry }
#define NEW \
    { SHMT_PIECE_BEGIN, 1, 0, 0, 0, 0, 0 } /* a stroke begins with the arc that follows */

/* clang-format off */
static const struct shmt_digit_style SHMT_DIGIT_STYLES[10][SHMT_MOST_STYLES] = {
    {{{NEW, ARC(.50f, .50f, .29f, .44f, 18, 42)}},
     {{NEW, ARC(.50f, .50f, .23f, .44f, 17, 40)}},
     {{NEW, ARC(.50f, .52f, .31f, .38f, 20, -6)}}},
    {{{AT(.50f, .06f), TO(.50f, .94f)}},
     {{AT(.36f, .23f), TO(.52f, .06f), TO(.52f, .94f)}},
     {{AT(.36f, .22f), TO(.50f, .07f), TO(.50f, .93f), AT(.30f, .93f), TO(.72f, .93f)}}},
    {{{NEW, ARC(.49f, .30f, .27f, .24f, 13, 26), TO(.20f, .93f), TO(.82f, .93f)}},
     {{NEW, ARC(.49f, .29f, .26f, .23f, 12, 27), TO(.30f, .86f), TO(.21f, .84f), TO(.26f, .76f),
       TO(.42f, .84f), TO(.62f, .93f), TO(.84f, .86f)}},
     {{AT(.22f, .12f), TO(.74f, .10f), TO(.24f, .92f), TO(.80f, .92f)}}},
    {{{NEW, ARC(.47f, .28f, .25f, .22f, 13, 30), ARC(.47f, .72f, .29f, .22f, 18, 35)}},
     {{AT(.22f, .08f), TO(.74f, .08f), TO(.44f, .42f), ARC(.45f, .68f, .29f, .26f, 18, 35)}},
     {{NEW, ARC(.45f, .29f, .28f, .22f, 14, 29), TO(.36f, .50f), ARC(.45f, .71f, .30f, .22f, 19, 34)}}},
    {{{AT(.36f, .06f), TO(.18f, .58f), TO(.82f, .58f), AT(.66f, .28f), TO(.64f, .94f)}},
     {{AT(.62f, .94f), TO(.62f, .06f), TO(.16f, .66f), TO(.84f, .66f)}},
     {{AT(.24f, .08f), TO(.24f, .40f), TO(.32f, .53f), TO(.50f, .56f), TO(.72f, .48f), AT(.74f, .06f), TO(.71f, .94f)}}},
    {{{AT(.76f, .08f), TO(.33f, .08f), TO(.29f, .45f), ARC(.47f, .68f, .29f, .25f, 16, 34)}},
     {{AT(.31f, .12f), TO(.28f, .44f), ARC(.46f, .68f, .28f, .25f, 17, 33), AT(.30f, .12f), TO(.80f, .07f)}},
     {{NEW, ARC(.52f, .28f, .25f, .21f, 21, 8), ARC(.48f, .71f, .27f, .22f, 19, 34)}}},
    {{{AT(.66f, .06f), TO(.46f, .22f), TO(.31f, .45f), TO(.25f, .68f), ARC(.50f, .70f, .25f, .23f, 12, -11)}},
     {{AT(.34f, .06f), TO(.27f, .40f), TO(.25f, .70f), ARC(.48f, .73f, .23f, .20f, 12, -11)}},
     {{AT(.74f, .16f), TO(.60f, .08f), TO(.42f, .16f), TO(.28f, .40f), TO(.25f, .62f), ARC(.50f, .68f, .25f, .25f, 13, -8)}}},
    {{{AT(.20f, .10f), TO(.80f, .10f), TO(.42f, .94f)}},
     {{AT(.20f, .11f), TO(.79f, .09f), TO(.44f, .94f), AT(.34f, .52f), TO(.74f, .49f)}},
     {{AT(.21f, .24f), TO(.20f, .11f), TO(.80f, .10f), TO(.58f, .50f), TO(.50f, .94f)}}},
    {{{NEW, ARC(.50f, .28f, .21f, .21f, 18, 42), NEW, ARC(.50f, .72f, .26f, .23f, 18, 42)}},
     {{NEW, ARC(.50f, .27f, .22f, .20f, 22, 7), ARC(.50f, .72f, .26f, .22f, 19, 36), TO(.36f, .56f), TO(.70f, .20f)}},
     {{NEW, ARC(.48f, .30f, .24f, .23f, 21, -2), TO(.36f, .58f), ARC(.52f, .74f, .23f, .19f, 15, -10)}}},
    {{{NEW, ARC(.49f, .30f, .24f, .23f, 0, -24), TO(.70f, .94f)}},
     {{NEW, ARC(.49f, .30f, .24f, .23f, 0, -24), TO(.74f, .60f), TO(.62f, .86f), TO(.34f, .93f)}},
     {{NEW, ARC(.49f, .30f, .25f, .22f, 22, -1), TO(.56f, .94f)}}}};
/* clang-format on */
#undef AT
#undef TO
#undef ARC
#undef NEW
