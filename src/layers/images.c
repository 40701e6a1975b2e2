/* Images into networks: see images.h. */
#include "layers/images.h"

#include <math.h>
#include <stddef.h>

#include "base/wide_vectors.h"

/* ---- one image ---- */

/* How numbers of one channel change, and how far apart they come. */
struct channel {
    float mean, scale; /* (x - mean) * scale */
    float edge;        /* what comes in from beyond the edges */
    uint32_t apart;
};

SHMT_FOR_WIDE_VECTORS static void put_straight(uint64_t n, float mean, float scale, const float *in, float *out) {
    for (uint64_t i = 0; i < n; i++) out[i] = (in[i] - mean) * scale;
}

static void put(const struct channel *c, uint64_t n, const float *in, float *out) {
    if (c->apart == 1) {
        put_straight(n, c->mean, c->scale, in, out);
        return;
    }
    for (uint64_t i = 0; i < n; i++) out[i * c->apart] = (in[i] - c->mean) * c->scale;
}

/* in[0], in[-1], ... */
static void put_backwards(const struct channel *c, uint64_t n, const float *in, float *out) {
    const float mean = c->mean, scale = c->scale;
    if (c->apart == 1)
        for (uint64_t i = 0; i < n; i++) out[i] = (in[-(ptrdiff_t)i] - mean) * scale;
    else
        for (uint64_t i = 0; i < n; i++) out[i * c->apart] = (in[-(ptrdiff_t)i] - mean) * scale;
}

static void put_nothing(const struct channel *c, uint64_t n, float *out) {
    for (uint64_t i = 0; i < n; i++) out[i * c->apart] = c->edge;
}

/* The part of a line that is still in sight, [from, to): what is beyond comes from outside of the image. */
static void cut(int32_t by, uint32_t size, uint32_t *from, uint32_t *to) {
    const int64_t first = by > 0 ? by : 0, end = by < 0 ? (int64_t)size + by : size;
    *from = (uint32_t)(first < (int64_t)size ? first : size);
    *to = (uint32_t)(end > (int64_t)*from ? end : *from);
}

/* What comes in from beyond the edges. */
static void put_edges(const struct channel *c, const struct shmtrain_extent *of, struct shmt_move move, float *out) {
    const uint64_t line = (uint64_t)of->width * c->apart;
    uint32_t left, right, top, bottom;
    cut(move.right, of->width, &left, &right);
    cut(move.down, of->height, &top, &bottom);
    put_nothing(c, (uint64_t)top * of->width, out);
    put_nothing(c, (uint64_t)(of->height - bottom) * of->width, out + bottom * line);
    for (uint32_t y = top; y < bottom; y++) {
        put_nothing(c, left, out + y * line);
        put_nothing(c, of->width - right, out + y * line + (uint64_t)right * c->apart);
    }
}

/* All lines in one go: what leaves one of them on one side comes into the next one on the other, where edges are written over it. */
static void put_shifted(const struct channel *c, const struct shmtrain_extent *of, struct shmt_move move, const float *in,
                        float *out) {
    const int64_t places = (int64_t)of->height * of->width, by = (int64_t)move.down * of->width + move.right;
    const int64_t first = by > 0 ? by : 0, end = by < 0 ? places + by : places;
    if (first < end) put(c, (uint64_t)(end - first), in + (first - by), out + (uint64_t)first * c->apart);
    put_edges(c, of, move, out);
}

static void put_flipped(const struct channel *c, const struct shmtrain_extent *of, struct shmt_move move, const float *in,
                        float *out) {
    uint32_t left, right, top, bottom;
    cut(move.right, of->width, &left, &right);
    cut(move.down, of->height, &top, &bottom);
    for (uint32_t y = top; y < bottom && left < right; y++) {
        const float *line = in + ((int64_t)y - move.down) * of->width;
        put_backwards(c, right - left, line + (of->width - 1 - ((int64_t)left - move.right)),
                      out + ((uint64_t)y * of->width + left) * c->apart);
    }
    put_edges(c, of, move, out);
}

#define LIKE_A_PIXEL 3

void shmt_images_put(const struct shmt_images *how, struct shmt_move move, const float *image, float *out) {
    const struct shmtrain_extent *of = &how->of;
    const uint64_t places = (uint64_t)of->height * of->width;
    const bool shifts = move.down != 0 || move.right != 0;
    for (uint32_t k = 0; k < of->channels; k++, image += places) {
        struct channel c = {.scale = 1, .apart = how->last ? of->channels : 1};
        if (how->normal) {
            c.mean = how->normal[2 * k];
            c.scale = 1 / how->normal[2 * k + 1];
            c.edge = fabsf(c.mean * c.scale) <= LIKE_A_PIXEL ? -c.mean * c.scale : 0;
        }
        float *to = how->last ? out + k : out + k * places;
        if (move.flipped)
            put_flipped(&c, of, move, image, to);
        else if (shifts)
            put_shifted(&c, of, move, image, to);
        else
            put(&c, places, image, to);
    }
}

/* ---- all of them ---- */

enum { LANES = 8 };

SHMT_FOR_WIDE_VECTORS static void add_lanes(const float *x, uint64_t n, double first, double *sum, double *square) {
    for (uint64_t i = 0; i < n; i += LANES)
        for (uint32_t j = 0; j < LANES; j++) {
            const double off = (double)x[i + j] - first;
            sum[j] += off;
            square[j] += off * off;
        }
}

void shmt_images_add(struct shmt_spread *spread, const float *plane, uint64_t n) {
    double sum[LANES] = {0}, square[LANES] = {0};
    const uint64_t whole = n / LANES * LANES;
    if (n == 0) return;
    add_lanes(plane, whole, shmt_spread_from(spread, (double)plane[0]), sum, square);
    for (uint32_t j = 0; j < LANES; j++) {
        spread->sum += sum[j];
        spread->square += square[j];
    }
    spread->weights += (double)whole;
    for (uint64_t i = whole; i < n; i++) shmt_spread_add(spread, (double)plane[i], 1);
}

#define NEAR_ENOUGH 0.1 /* 0.1 to 1: of bytes as 0 to 1 it is around 0.3 */

void shmt_images_normal(const struct shmt_spread *spread, float *normal_out) {
    const double deviation = shmt_spread_deviation(spread);
    normal_out[0] = (float)shmt_spread_mean(spread);
    normal_out[1] = deviation >= NEAR_ENOUGH && deviation <= 1 ? 1 : shmt_spread_divisor(deviation);
}
