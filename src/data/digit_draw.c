/* Drawing handwritten digits: see digit_draw.h. */
#include "data/digit_draw.h"

#include <math.h>
#include <stdbool.h>

#include "base/random.h"
#include "data/digit_styles.h"

#define STEP  0x9e3779b97f4a7c15u /* between the states of a stream of random numbers: SplitMix64 */
#define SIDE  SHMT_DIGIT_SIDE
#define BOX   19.5 /* pixels: the box of a style, before it is scaled */
#define PIECE 0.13 /* lines are cut into pieces of this length, so that they bend */
#define FAR   1e9

enum { DRAW_SHAPE = 1, DRAW_PIXELS = 2, MOST_POINTS = 256, GRID = 4 };

struct point {
    double x, y;
    bool begins; /* no line comes here from the point before */
};

struct drawing {
    uint64_t state; /* of its random numbers */
    uint32_t n;
    struct point point[MOST_POINTS];
    double square[SHMT_DIGIT_PIXELS]; /* of the distance to the nearest stroke */
};

/* ---- random numbers ---- */

/* From -1 to 1. */
static double spread(struct drawing *d) { return 2 * shmt_unit(shmt_mix64(d->state += STEP)) - 1; }

/* From -1 to 1, most near 0. */
static double near_zero(struct drawing *d) {
    const double one = spread(d), other = spread(d), third = spread(d);
    return (one + other + third) / 3;
}

/* ---- strokes become points ---- */

/* cos(15 degrees * k). */
static double cosine(int k) {
    static const double TURN[] = {1, 0.96592582628906831, 0.86602540378443865, 0.70710678118654752, 0.5, 0.25881904510252076,
                                  0};
    const int at = (k % 24 + 24) % 24, half = at <= 12 ? at : 24 - at;
    return half <= 6 ? TURN[half] : -TURN[12 - half];
}

static void add_point(struct drawing *d, double x, double y, bool begins) {
    if (d->n < MOST_POINTS) d->point[d->n++] = (struct point){x, y, begins};
}

static void add_line(struct drawing *d, double x, double y) {
    if (d->n == 0) return;
    const struct point from = d->point[d->n - 1];
    const double dx = x - from.x, dy = y - from.y, length = sqrt(dx * dx + dy * dy);
    const int pieces = 1 + (int)(length / PIECE);
    for (int i = 1; i <= pieces; i++) add_point(d, from.x + dx * i / pieces, from.y + dy * i / pieces, false);
}

/* Where a stroke stands, and how it is written. */
struct hand {
    double x, y;     /* shift of the stroke */
    double rx, ry;   /* of arcs: times their radii */
    double wavering; /* of the ends of lines */
};

static struct hand new_hand(struct drawing *d) {
    return (struct hand){0.05 * spread(d), 0.05 * spread(d), 1 + 0.34 * near_zero(d), 1 + 0.24 * near_zero(d), 0.045};
}

static void add_arc(struct drawing *d, const struct hand *hand, const struct shmt_stroke_piece *p, bool begins) {
    const int turn = p->to > p->from ? 1 : -1;
    const int longer = (int)(2.8 * near_zero(d)); /* steps: who writes does not end where the other did */
    const double x = (double)p->x + hand->x, y = (double)p->y + hand->y;
    for (int k = p->from; k != p->to + turn * (longer + 1); k += turn) {
        const double px = x + (double)p->rx * hand->rx * cosine(k), py = y + (double)p->ry * hand->ry * cosine(k - 6);
        if (k == p->from && !begins)
            add_line(d, px, py);
        else
            add_point(d, px, py, k == p->from);
    }
}

static void add_strokes(struct drawing *d, const struct shmt_digit_style *style) {
    struct hand hand = {0};
    bool begins = false;
    for (const struct shmt_stroke_piece *p = style->piece; p < style->piece + SHMT_MOST_PIECES && p->kind != SHMT_PIECE_END;
         p++) {
        if (p->kind == SHMT_PIECE_BEGIN) hand = new_hand(d);
        if (p->kind == SHMT_PIECE_ARC) {
            add_arc(d, &hand, p, begins);
            begins = false;
            continue;
        }
        begins = p->kind == SHMT_PIECE_BEGIN && p->from == 1;
        if (begins) continue; /* with an arc */
        const double x = (double)p->x + hand.x + hand.wavering * spread(d),
                     y = (double)p->y + hand.y + hand.wavering * spread(d);
        if (p->kind == SHMT_PIECE_BEGIN)
            add_point(d, x, y, true);
        else
            add_line(d, x, y);
    }
}

/* ---- points are moved ---- */

/* A smooth field: random shifts at the corners of a grid over the box, and between them a blend without corners. */
static void bend(struct drawing *d) {
    double shift[2][GRID][GRID];
    const double most = 0.02 + 0.06 * (1 + spread(d)) / 2;
    for (int axis = 0; axis < 2; axis++)
        for (int i = 0; i < GRID * GRID; i++) shift[axis][i / GRID][i % GRID] = most * spread(d);
    for (uint32_t i = 0; i < d->n; i++) {
        double at[2] = {d->point[i].y * (GRID - 1), d->point[i].x * (GRID - 1)}, share[2], moved[2];
        int cell[2];
        for (int k = 0; k < 2; k++) {
            at[k] = at[k] < 0 ? 0 : at[k] > GRID - 1.001 ? GRID - 1.001 : at[k];
            cell[k] = (int)at[k];
            const double t = at[k] - cell[k];
            share[k] = t * t * (3 - 2 * t);
        }
        for (int axis = 0; axis < 2; axis++) {
            const double *upper = shift[axis][cell[0]] + cell[1], *lower = shift[axis][cell[0] + 1] + cell[1];
            const double above = upper[0] + (upper[1] - upper[0]) * share[1],
                         below = lower[0] + (lower[1] - lower[0]) * share[1];
            moved[axis] = above + (below - above) * share[0];
        }
        d->point[i].x += moved[0];
        d->point[i].y += moved[1];
    }
}

/* Turned, slanted, scaled, then the middle of what is drawn comes near the middle of the picture: coordinates are pixels behind it. */
static void place(struct drawing *d) {
    const double t = 0.21 * near_zero(d), turn_c = (1 - t * t) / (1 + t * t), turn_s = 2 * t / (1 + t * t);
    const double slant = 0.12 + 0.55 * near_zero(d), size = 0.98 + 0.24 * near_zero(d);
    const double wide = BOX * size * (0.96 + 0.38 * near_zero(d)), high = BOX * size * (1 + 0.18 * near_zero(d));
    double low[2] = {FAR, FAR}, most[2] = {-FAR, -FAR};
    for (uint32_t i = 0; i < d->n; i++) {
        struct point *p = &d->point[i];
        const double x = (p->x - 0.5 - slant * (p->y - 0.5)) * wide, y = (p->y - 0.5) * high;
        p->x = turn_c * x - turn_s * y;
        p->y = turn_s * x + turn_c * y;
        low[0] = p->x < low[0] ? p->x : low[0];
        low[1] = p->y < low[1] ? p->y : low[1];
        most[0] = p->x > most[0] ? p->x : most[0];
        most[1] = p->y > most[1] ? p->y : most[1];
    }
    const double x = SIDE / 2.0 - (low[0] + most[0]) / 2 + 3.2 * near_zero(d),
                 y = SIDE / 2.0 - (low[1] + most[1]) / 2 + 2.8 * near_zero(d);
    for (uint32_t i = 0; i < d->n; i++) {
        d->point[i].x += x;
        d->point[i].y += y;
    }
}

/* ---- points become pixels ---- */

static int first_pixel(double a, double b, double reach) {
    const double low = (a < b ? a : b) - reach - 0.5;
    return low <= 0 ? 0 : low >= SIDE ? SIDE : (int)low;
}

static int end_pixel(double a, double b, double reach) {
    const double high = (a > b ? a : b) + reach + 1.5;
    return high <= 0 ? 0 : high >= SIDE ? SIDE : (int)high;
}

/* Distances to one piece of a stroke, of the pixels that it may reach. */
static void near_piece(struct drawing *d, const struct point *a, const struct point *b, double reach) {
    const double dx = b->x - a->x, dy = b->y - a->y, square = dx * dx + dy * dy, share = square > 0 ? 1 / square : 0;
    const int x_end = end_pixel(a->x, b->x, reach), y_end = end_pixel(a->y, b->y, reach),
              x_first = first_pixel(a->x, b->x, reach);
    for (int row = first_pixel(a->y, b->y, reach); row < y_end; row++)
        for (int column = x_first; column < x_end; column++) {
            const double px = column + 0.5 - a->x, py = row + 0.5 - a->y, along = (px * dx + py * dy) * share;
            const double t = along < 0 ? 0 : along > 1 ? 1 : along, qx = px - t * dx, qy = py - t * dy, is = qx * qx + qy * qy;
            double *of = &d->square[row * SIDE + column];
            *of = is < *of ? is : *of;
        }
}

/* How much of a pixel is inked: all inside the pen's half, none a pixel and a half beyond. */
static double cover(double square, double half) {
    const double by = (half + 0.85 - sqrt(square)) / 1.5;
    return by <= 0 ? 0 : by >= 1 ? 1 : by * by * (3 - 2 * by);
}

static void ink(struct drawing *d, double half, double noise, uint8_t *pixel) {
    const double dark = 255 * (0.86 + 0.14 * spread(d)), beyond = (half + 0.85) * (half + 0.85);
    const double grain = 0.11 * noise;
    for (uint32_t i = 0; i < SHMT_DIGIT_PIXELS; i++) {
        pixel[i] = 0;
        if (d->square[i] >= beyond) continue;
        const double inked = cover(d->square[i], half) * dark * (1 + grain * spread(d));
        pixel[i] = inked >= 255 ? 255 : (uint8_t)inked;
    }
}

/* A few specks, of some darkness. */
static void dust(struct drawing *d, double noise, uint8_t *pixel) {
    const double many = 6 * noise * (1 + spread(d)) / 2;
    for (int i = 0; i < 60 && i + 0.5 < many; i++) {
        const uint32_t at = (uint32_t)shmt_below(shmt_mix64(d->state += STEP), SHMT_DIGIT_PIXELS);
        const uint8_t speck = (uint8_t)(40 + 150 * (1 + spread(d)) / 2);
        if (pixel[at] < speck) pixel[at] = speck;
    }
}

/* ---- */

uint32_t shmt_digit_draw(uint64_t seed, uint64_t stream, uint64_t index, double noise, uint8_t *pixel) {
    struct drawing d;
    const uint64_t drawn = shmt_hash64(seed, DRAW_SHAPE, stream, index);
    const uint32_t digit = (uint32_t)shmt_below(drawn, 10);
    d.state = shmt_mix64(drawn);
    d.n = 0;
    const uint64_t style = shmt_below(shmt_mix64(d.state += STEP), SHMT_MOST_STYLES);
    add_strokes(&d, &SHMT_DIGIT_STYLES[digit][style]);
    bend(&d);
    place(&d);
    const double half = 1.10 + 0.85 * near_zero(&d), reach = half + 0.85;
    for (uint32_t i = 0; i < SHMT_DIGIT_PIXELS; i++) d.square[i] = FAR;
    for (uint32_t i = 1; i < d.n; i++)
        if (!d.point[i].begins) near_piece(&d, &d.point[i - 1], &d.point[i], reach);
    ink(&d, half, noise, pixel);
    dust(&d, noise, pixel);
    return digit;
}
