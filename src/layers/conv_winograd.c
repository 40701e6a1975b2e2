/* Convolutions of 3x3 with stride 1 by Winograd's F(4x4, 3x3): a fourth of the multiplications (conv_winograd_priv.h).
 *
 * Each output is cut into tiles of 4x4, each of which sees 6x6 inputs. Tiles are taken a group at a time, small enough for the
 * second-level cache: their inputs are transformed, (36, tiles, channels); for each of the 36 points there is one product with the
 * transformed filters, (36, channels, filters); and the sums are transformed back. So is the other direction, by the transposes of all
 * that: gradients of filters are added up as (36, channels, filters), and transformed once.
 *
 * Rounding: about ten times that of the plain sum, up to 5e-6 of the largest output (tests/test_layers_errors.c). */
#include <string.h>

#include "base/wide_vectors.h"
#include "layers/conv_priv.h"
#include "layers/conv_winograd_priv.h"
#include "layers/small_product.h"

enum {
    GROUP_BYTES = 320 * 1024,
    LEAST_TILES = 24,
    MANY_TILES = 96,
    MANY_WEIGHTS = 128 * 128,
    MOST_GRADIENTS = 1 << 24,
    PAD = 16
};
#define POINT_NS 0.02
#define INLINED  __attribute__((always_inline)) static inline /* into functions that are compiled for wide vectors, too */

/* What parts work on. Scratch: filters, filters the other way, then of each part inputs, outputs, gradients of filters and of biases. */
struct work {
    const struct shmtrain_layer *layer;
    const struct shmtrain_layer_pass *pass;
    uint32_t channels, filters, tiles, down, across; /* tiles of a group; of an example, down and across */
    int32_t top, left;
    uint32_t parts;
    uint64_t filter_point, back_point; /* floats of one point of the transformed filters */
    uint64_t in_point, out_point, out_row;
    uint64_t shared, part_floats;
};

static uint32_t rounded(uint32_t n) { return (n + SHMT_PANEL - 1) / SHMT_PANEL * SHMT_PANEL; }

/* The parts' gradients of filters are limited, too: n and the layer decide. */
static uint32_t parts_of(const struct work *w, uint32_t n) {
    const uint64_t most = MOST_GRADIENTS / ((uint64_t)SHMT_POINTS * w->channels * w->filters) + 1;
    return most < shmt_conv_parts(n) ? (uint32_t)most : shmt_conv_parts(n);
}

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass, uint32_t n) {
    const struct shmt_conv conv = shmt_conv_of(layer);
    struct work w = {.layer = layer, .pass = pass, .channels = layer->in.channels, .filters = layer->out.channels};
    w.top = (int32_t)conv.top;
    w.left = (int32_t)conv.left;
    w.down = (layer->out.height + SHMT_TILE - 1) / SHMT_TILE;
    w.across = (layer->out.width + SHMT_TILE - 1) / SHMT_TILE;
    const uint32_t fitting = GROUP_BYTES / (SHMT_POINTS * (uint32_t)sizeof(float) * (w.channels + w.filters)) / 6 * 6;
    w.tiles = (uint64_t)w.channels * w.filters > MANY_WEIGHTS ? MANY_TILES : fitting < LEAST_TILES ? LEAST_TILES : fitting;
    w.tiles = shmt_conv_lesser(w.tiles, MANY_TILES);
    w.parts = parts_of(&w, n);
    w.filter_point = (uint64_t)w.channels * rounded(w.filters);
    w.back_point = (uint64_t)w.filters * rounded(w.channels);
    w.in_point = (uint64_t)w.tiles * w.channels + PAD; /* points apart by no power of two: the cache has few places for those */
    w.out_row = w.filters + PAD;
    w.out_point = w.tiles * w.out_row + PAD;
    w.shared = SHMT_POINTS * (w.filter_point + w.back_point);
    w.part_floats = SHMT_POINTS * (w.in_point + w.out_point + (uint64_t)w.channels * w.filters) + rounded(w.filters);
    return w;
}

static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    const struct work w = work_of(layer, NULL, n);
    (void)training;
    out->scratch = (w.shared + w.part_floats * w.parts) * sizeof(float);
}

/* The memory of a part. */
struct part {
    float *in, *out, *dw, *db; /* (36, tiles, channels), (36, tiles, filters), (36, channels, filters), (filters) */
    uint32_t first, n;         /* examples */
};

static struct part part_at(const struct work *w, uint64_t i) {
    struct part p = {.in = (float *)w->pass->scratch + w->shared + i * w->part_floats};
    p.out = p.in + SHMT_POINTS * w->in_point;
    p.dw = p.out + SHMT_POINTS * w->out_point;
    p.db = p.dw + SHMT_POINTS * (uint64_t)w->channels * w->filters;
    p.first = (uint32_t)((uint64_t)w->pass->n * i / w->parts);
    p.n = (uint32_t)((uint64_t)w->pass->n * (i + 1) / w->parts) - p.first;
    return p;
}

/* ---- tiles ---- */

/* Where a tile is: its outputs, and the first of its inputs; how many of its outputs there are, down and across. */
struct tile {
    uint64_t outputs, example;
    int32_t y, x;
    uint32_t height, width;
};

static struct tile tile_at(const struct work *w, uint32_t first, uint64_t i) {
    const uint64_t each = (uint64_t)w->down * w->across, example = first + i / each;
    const uint32_t down = (uint32_t)(i % each / w->across) * SHMT_TILE, across = (uint32_t)(i % each % w->across) * SHMT_TILE;
    const struct shmtrain_extent *out = &w->layer->out;
    return (struct tile){.outputs = (example * out->height + down) * out->width + across,
                         .example = example,
                         .y = (int32_t)down - w->top,
                         .x = (int32_t)across - w->left,
                         .height = shmt_conv_lesser(SHMT_TILE, out->height - down),
                         .width = shmt_conv_lesser(SHMT_TILE, out->width - across)};
}

/* Whether all that a tile sees is there. */
static bool is_whole(const struct work *w, const struct tile *t) {
    return t->y >= 0 && t->x >= 0 && (uint32_t)t->y + SHMT_SEEN <= w->layer->in.height &&
           (uint32_t)t->x + SHMT_SEEN <= w->layer->in.width;
}

/* Input (i, j) of a tile, of channel 0; -1: outside. */
static int64_t seen_at(const struct work *w, const struct tile *t, uint32_t i, uint32_t j) {
    const struct shmtrain_extent *in = &w->layer->in;
    const int64_t y = t->y + (int64_t)i, x = t->x + (int64_t)j;
    if (y < 0 || x < 0 || y >= in->height || x >= in->width) return -1;
    return (((int64_t)t->example * in->height + y) * in->width + x) * in->channels;
}

/* Places of what a tile sees, for its channels one after the other. */
static void see(const struct work *w, const struct tile *t, int64_t *at) {
    if (!is_whole(w, t)) {
        for (uint32_t i = 0; i < SHMT_POINTS; i++) at[i] = seen_at(w, t, i / SHMT_SEEN, i % SHMT_SEEN);
        return;
    }
    const int64_t first = seen_at(w, t, 0, 0), row = (int64_t)w->layer->in.width * w->channels;
    for (uint32_t i = 0; i < SHMT_POINTS; i++) at[i] = first + i / SHMT_SEEN * row + i % SHMT_SEEN * (int64_t)w->channels;
}

/* ---- transforms of one tile, all its channels ---- */

INLINED void inputs_of(const struct work *w, const int64_t *at, float *to, bool whole) {
    for (uint32_t c = 0; c < w->channels; c += SHMT_LANES) {
        shmt_lanes y[SHMT_POINTS];
        SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++) {
            shmt_lanes line[SHMT_SEEN];
            SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++) {
                line[i] = (shmt_lanes){0};
                if (whole || at[i * SHMT_SEEN + j] >= 0) shmt_lanes_load(w->pass->in + at[i * SHMT_SEEN + j] + c, &line[i]);
            }
            shmt_inputs_line(line, 1, y + j, SHMT_SEEN);
        }
        SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++) {
            shmt_lanes line[SHMT_SEEN];
            shmt_inputs_line(y + i * SHMT_SEEN, 1, line, 1);
            SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++)
                shmt_lanes_store(&line[j], to + (i * SHMT_SEEN + j) * w->in_point + c);
        }
    }
}

SHMT_FOR_WIDE_VECTORS static void transform_inputs(const struct work *w, const struct tile *t, float *to) {
    int64_t at[SHMT_POINTS];
    see(w, t, at);
    if (is_whole(w, t))
        inputs_of(w, at, to, true);
    else
        inputs_of(w, at, to, false);
}

/* The other way: adds to derivatives by inputs. */
INLINED void add_inputs_of(const struct work *w, const int64_t *at, const float *from, bool whole) {
    for (uint32_t c = 0; c < w->channels; c += SHMT_LANES) {
        shmt_lanes y[SHMT_POINTS];
        SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++) {
            shmt_lanes line[SHMT_SEEN];
            SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++)
                shmt_lanes_load(from + (i * SHMT_SEEN + j) * w->in_point + c, &line[i]);
            shmt_inputs_back_line(line, 1, y + j, SHMT_SEEN);
        }
        SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++) {
            shmt_lanes line[SHMT_SEEN], sum;
            shmt_inputs_back_line(y + i * SHMT_SEEN, 1, line, 1);
            SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++) {
                float *d_in = w->pass->d_in + at[i * SHMT_SEEN + j] + c;
                if (!whole && at[i * SHMT_SEEN + j] < 0) continue;
                shmt_lanes_load(d_in, &sum);
                sum += line[j];
                shmt_lanes_store(&sum, d_in);
            }
        }
    }
}

SHMT_FOR_WIDE_VECTORS static void add_inputs(const struct work *w, const struct tile *t, const float *from) {
    int64_t at[SHMT_POINTS];
    see(w, t, at);
    if (is_whole(w, t))
        add_inputs_of(w, at, from, true);
    else
        add_inputs_of(w, at, from, false);
}

/* With bias and relu; NaN stays. */
INLINED void outputs_of(const struct work *w, const struct tile *t, const float *from, const float *bias, uint32_t height,
                        uint32_t width, bool relu) {
    float *out = w->pass->out + t->outputs * w->filters;
    const uint64_t row = (uint64_t)w->layer->out.width * w->filters;
    for (uint32_t f = 0; f < w->filters; f += SHMT_LANES) {
        shmt_lanes y[SHMT_TILE * SHMT_SEEN], b = {0};
        if (bias) shmt_lanes_load(bias + f, &b);
        SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++) {
            shmt_lanes line[SHMT_SEEN];
            SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++)
                shmt_lanes_load(from + (i * SHMT_SEEN + j) * w->out_point + f, &line[i]);
            shmt_outputs_line(line, 1, y + j, SHMT_SEEN);
        }
        SHMT_UNROLLED for (uint32_t i = 0; i < height; i++) {
            shmt_lanes line[SHMT_TILE];
            shmt_outputs_line(y + i * SHMT_SEEN, 1, line, 1);
            SHMT_UNROLLED for (uint32_t j = 0; j < width; j++) {
                shmt_lanes sum = line[j] + b;
                if (relu) sum = (shmt_lanes)((shmt_masks)sum & ~(sum <= 0));
                shmt_lanes_store(&sum, out + i * row + (uint64_t)j * w->filters + f);
            }
        }
    }
}

SHMT_FOR_WIDE_VECTORS static void transform_outputs(const struct work *w, const struct tile *t, const float *from,
                                                    const float *bias) {
    const bool relu = w->layer->relu;
    if (t->height < SHMT_TILE || t->width < SHMT_TILE)
        outputs_of(w, t, from, bias, t->height, t->width, relu);
    else if (relu)
        outputs_of(w, t, from, bias, SHMT_TILE, SHMT_TILE, true);
    else
        outputs_of(w, t, from, bias, SHMT_TILE, SHMT_TILE, false);
}

/* Derivatives by the sums before relu, transformed; and their sums, for biases. */
INLINED void slopes_of(const struct work *w, const struct tile *t, float *to, float *db, uint32_t height, uint32_t width,
                       bool relu) {
    const float *d = w->pass->d_out + t->outputs * w->filters, *out = w->pass->out + t->outputs * w->filters;
    const uint64_t row = (uint64_t)w->layer->out.width * w->filters;
    for (uint32_t f = 0; f < w->filters; f += SHMT_LANES) {
        shmt_lanes y[SHMT_SEEN * SHMT_TILE], sum;
        shmt_lanes_load(db + f, &sum);
        SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_TILE; j++) {
            shmt_lanes line[SHMT_TILE], seen;
            SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_TILE; i++) {
                line[i] = (shmt_lanes){0};
                if (i >= height || j >= width) continue;
                const uint64_t at = i * row + (uint64_t)j * w->filters + f;
                shmt_lanes_load(d + at, &line[i]);
                if (relu) {
                    shmt_lanes_load(out + at, &seen);
                    line[i] = (shmt_lanes)((shmt_masks)line[i] & ~(seen == 0));
                }
                sum += line[i];
            }
            shmt_outputs_back_line(line, 1, y + j, SHMT_TILE);
        }
        shmt_lanes_store(&sum, db + f);
        SHMT_UNROLLED for (uint32_t i = 0; i < SHMT_SEEN; i++) {
            shmt_lanes line[SHMT_SEEN];
            shmt_outputs_back_line(y + i * SHMT_TILE, 1, line, 1);
            SHMT_UNROLLED for (uint32_t j = 0; j < SHMT_SEEN; j++)
                shmt_lanes_store(&line[j], to + (i * SHMT_SEEN + j) * w->out_point + f);
        }
    }
}

/* Whole tiles, which are most, are compiled by themselves. */
SHMT_FOR_WIDE_VECTORS static void transform_slopes(const struct work *w, const struct tile *t, float *to, float *db) {
    const bool relu = w->layer->relu;
    if (t->height < SHMT_TILE || t->width < SHMT_TILE)
        slopes_of(w, t, to, db, t->height, t->width, relu);
    else if (relu)
        slopes_of(w, t, to, db, SHMT_TILE, SHMT_TILE, true);
    else
        slopes_of(w, t, to, db, SHMT_TILE, SHMT_TILE, false);
}

/* ---- filters ---- */

/* Of filter f for both directions: panels of filters, and panels of channels. */
static void transform_filter(void *arg, uint64_t f) {
    const struct work *w = arg;
    const float *from = w->pass->table[SHMT_CONV_WEIGHT] + f * 9 * w->channels;
    float *filters = w->pass->scratch, *back = filters + SHMT_POINTS * w->filter_point;
    for (uint32_t c = 0; c < w->channels; c += SHMT_LANES) {
        shmt_lanes x[9], y[18], z[SHMT_POINTS];
        for (uint32_t i = 0; i < 9; i++) shmt_lanes_load(from + (uint64_t)i * w->channels + c, &x[i]);
        for (uint32_t i = 0; i < 3; i++) shmt_filter_line(x + i, 3, y + i, 3);
        for (uint32_t i = 0; i < SHMT_SEEN; i++) shmt_filter_line(y + i * 3, 1, z + i * SHMT_SEEN, 1);
        for (uint32_t i = 0; i < SHMT_POINTS; i++) {
            float *to = filters + i * w->filter_point + (f / SHMT_PANEL * w->channels + c) * SHMT_PANEL + f % SHMT_PANEL;
            for (uint32_t l = 0; l < SHMT_LANES; l++) to[l * SHMT_PANEL] = z[i][l];
            shmt_lanes_store(
                &z[i], back + i * w->back_point + (c / SHMT_PANEL * (uint64_t)w->filters + f) * SHMT_PANEL + c % SHMT_PANEL);
        }
    }
}

/* Gradients of filters f .. f + 7: those of parts are added in order, and transformed back. */
static void filters_gradient(void *arg, uint64_t lanes) {
    const struct work *w = arg;
    const uint64_t f = lanes * SHMT_LANES, each = (uint64_t)w->channels * w->filters;
    for (uint32_t c = 0; c < w->channels; c++) {
        shmt_lanes x[SHMT_POINTS], y[18], z[9], more;
        for (uint32_t i = 0; i < SHMT_POINTS; i++) {
            shmt_lanes_load(part_at(w, 0).dw + i * each + c * (uint64_t)w->filters + f, &x[i]);
            for (uint32_t part = 1; part < w->parts; part++) {
                shmt_lanes_load(part_at(w, part).dw + i * each + c * (uint64_t)w->filters + f, &more);
                x[i] += more;
            }
        }
        for (uint32_t i = 0; i < SHMT_SEEN; i++) shmt_filter_back_line(x + i, SHMT_SEEN, y + i, SHMT_SEEN);
        for (uint32_t i = 0; i < 3; i++) shmt_filter_back_line(y + i * SHMT_SEEN, 1, z + i * 3, 1);
        for (uint32_t l = 0; l < SHMT_LANES; l++)
            for (uint32_t i = 0; i < 9; i++) {
                float *to = w->pass->gradient[SHMT_CONV_WEIGHT] + ((f + l) * 9 + i) * w->channels + c;
                *to = w->pass->add ? *to + z[i][l] : z[i][l];
            }
    }
}

/* ---- parts ---- */

static void multiply_forward(const struct work *w, const struct part *p, uint32_t tiles) {
    for (uint32_t i = 0; i < SHMT_POINTS; i++) {
        const struct shmt_small_product product = {.a = p->in + i * w->in_point,
                                                   .b = (const float *)w->pass->scratch + i * w->filter_point,
                                                   .c = p->out + i * w->out_point,
                                                   .a_row = w->channels,
                                                   .a_step = 1,
                                                   .b_panel = (uint64_t)w->channels * SHMT_PANEL,
                                                   .b_row = SHMT_PANEL,
                                                   .c_row = w->out_row,
                                                   .m = tiles,
                                                   .n = w->filters,
                                                   .k = w->channels};
        shmt_small_multiply(&product);
    }
}

/* Gradients of filters; then derivatives by inputs, in the place of the inputs. */
static void multiply_backward(const struct work *w, const struct part *p, uint32_t tiles, bool is_first) {
    const float *back = (const float *)w->pass->scratch + SHMT_POINTS * w->filter_point;
    for (uint32_t i = 0; i < SHMT_POINTS; i++) {
        const struct shmt_small_product gradient = {.a = p->in + i * w->in_point,
                                                    .b = p->out + i * w->out_point,
                                                    .c = p->dw + (uint64_t)i * w->channels * w->filters,
                                                    .a_row = 1,
                                                    .a_step = w->channels,
                                                    .b_panel = SHMT_PANEL,
                                                    .b_row = w->out_row,
                                                    .c_row = w->filters,
                                                    .m = w->channels,
                                                    .n = w->filters,
                                                    .k = tiles,
                                                    .add = !is_first};
        const struct shmt_small_product inputs = {.a = p->out + i * w->out_point,
                                                  .b = back + i * w->back_point,
                                                  .c = p->in + i * w->in_point,
                                                  .a_row = w->out_row,
                                                  .a_step = 1,
                                                  .b_panel = (uint64_t)w->filters * SHMT_PANEL,
                                                  .b_row = SHMT_PANEL,
                                                  .c_row = w->channels,
                                                  .m = tiles,
                                                  .n = w->channels,
                                                  .k = w->filters};
        shmt_small_multiply(&gradient);
        if (w->pass->d_in) shmt_small_multiply(&inputs);
    }
}

static void forward_part(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct part p = part_at(w, i);
    const float *bias = w->layer->n_tables > SHMT_CONV_BIAS ? w->pass->table[SHMT_CONV_BIAS] : NULL;
    const uint64_t all = (uint64_t)p.n * w->down * w->across;
    for (uint64_t from = 0; from < all; from += w->tiles) {
        const uint32_t tiles = all - from < w->tiles ? (uint32_t)(all - from) : w->tiles;
        for (uint32_t k = 0; k < tiles; k++) {
            const struct tile t = tile_at(w, p.first, from + k);
            transform_inputs(w, &t, p.in + (uint64_t)k * w->channels);
        }
        multiply_forward(w, &p, tiles);
        for (uint32_t k = 0; k < tiles; k++) {
            const struct tile t = tile_at(w, p.first, from + k);
            transform_outputs(w, &t, p.out + k * w->out_row, bias);
        }
    }
}

static void backward_part(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct part p = part_at(w, i);
    const uint64_t all = (uint64_t)p.n * w->down * w->across, numbers = shmtrain_extent_numbers(&w->layer->in);
    memset(p.db, 0, w->filters * sizeof *p.db);
    if (w->pass->d_in) memset(w->pass->d_in + p.first * numbers, 0, p.n * numbers * sizeof(float));
    for (uint64_t from = 0; from < all; from += w->tiles) {
        const uint32_t tiles = all - from < w->tiles ? (uint32_t)(all - from) : w->tiles;
        for (uint32_t k = 0; k < tiles; k++) {
            const struct tile t = tile_at(w, p.first, from + k);
            transform_inputs(w, &t, p.in + (uint64_t)k * w->channels);
            transform_slopes(w, &t, p.out + k * w->out_row, p.db);
        }
        multiply_backward(w, &p, tiles, from == 0);
        for (uint32_t k = 0; k < tiles && w->pass->d_in; k++) {
            const struct tile t = tile_at(w, p.first, from + k);
            add_inputs(w, &t, p.in + (uint64_t)k * w->channels);
        }
    }
}

static void run(struct work *w, uint64_t n, shmt_tile *tile) {
    const double ns = (double)w->pass->n * (double)w->layer->multiplications / 4 * POINT_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), n, tile, w);
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass, pass->n);
    run(&w, w.filters, transform_filter);
    run(&w, w.parts, forward_part);
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass, pass->n);
    run(&w, w.filters, transform_filter);
    run(&w, w.parts, backward_part);
    run(&w, w.filters / SHMT_LANES, filters_gradient);
    if (layer->n_tables > SHMT_CONV_BIAS)
        shmt_conv_add_parts(part_at(&w, 0).db, w.parts, w.part_floats, w.filters, pass->add, pass->gradient[SHMT_CONV_BIAS]);
}

const struct shmt_conv_ops SHMT_CONV_BY_WINOGRAD = {memory, forward, backward};

bool shmt_conv_winograd_suits(const struct shmtrain_layer *layer, const struct shmt_conv *conv) {
    const struct shmtrain_extent *in = &layer->in, *out = &layer->out;
    const uint64_t covered = (uint64_t)((out->height + SHMT_TILE - 1) / SHMT_TILE) *
                             ((out->width + SHMT_TILE - 1) / SHMT_TILE) * (SHMT_TILE * SHMT_TILE);
    return conv->kernel_height == 3 && conv->kernel_width == 3 && conv->stride_height == 1 && conv->stride_width == 1 &&
           conv->groups == 1 && in->channels % SHMT_LANES == 0 && out->channels % SHMT_LANES == 0 &&
           2 * (uint64_t)out->height * out->width >= covered;
}
