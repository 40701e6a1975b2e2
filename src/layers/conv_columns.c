/* Convolutions as products ("im2col"): what a filter sees at one place becomes a row of `columns`, (places, kernel height * kernel
 * width * channels of a group), so that
 *
 *     Y = columns W^T + b        dW = G^T columns        d columns = G W, whose rows are added to where they came from
 *
 * Rows are made a tile at a time, small enough to stay in the second-level cache; a tile may hold the end of one example and the
 * beginning of the next. A kernel of one place with stride 1 needs no rows: they are the inputs. */
#include <string.h>

#include "layers/conv_priv.h"
#include "math/blas.h"

enum { TILE_BYTES = 192 * 1024, LEAST_ROWS = 48, MOST_ROWS = 1024 };
#define PRODUCT_NS 0.02

/* What parts work on. */
struct work {
    const struct shmtrain_layer *layer;
    const struct shmtrain_layer_pass *pass;
    struct shmt_conv conv;
    uint32_t channels, filters; /* of one group */
    uint32_t width;             /* of rows */
    uint32_t tile;              /* rows of one */
    bool plain;                 /* rows are the inputs */
    uint64_t places;            /* of one example's outputs */
    uint64_t part_floats;       /* of scratch, for each part: columns, slopes, gradients */
};

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = {.layer = layer, .pass = pass, .conv = shmt_conv_of(layer)};
    w.channels = layer->in.channels / w.conv.groups;
    w.filters = layer->out.channels / w.conv.groups;
    w.width = (uint32_t)layer->table[SHMT_CONV_WEIGHT].width;
    const uint32_t fitting = TILE_BYTES / (uint32_t)sizeof(float) / w.width & ~15u;
    w.tile = fitting < LEAST_ROWS ? LEAST_ROWS : shmt_conv_lesser(fitting, MOST_ROWS);
    w.places = (uint64_t)layer->out.height * layer->out.width;
    w.plain = w.conv.groups == 1 && w.width == w.channels && w.conv.stride_height == 1 && w.conv.stride_width == 1 &&
              !w.conv.top && !w.conv.left && layer->out.height == layer->in.height && layer->out.width == layer->in.width;
    const uint64_t filters = layer->out.channels;
    w.part_floats = (w.tile * ((uint64_t)w.width + filters) + filters * w.width + filters + 15) & ~UINT64_C(15);
    return w;
}

static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    const struct work w = work_of(layer, NULL);
    (void)training;
    out->scratch = w.part_floats * sizeof(float) * shmt_conv_parts(n);
}

static void run(struct work *w, shmt_tile *part) {
    const double ns = (double)w->pass->n * (double)w->layer->multiplications * PRODUCT_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), shmt_conv_parts(w->pass->n), part, w);
}

static float *scratch_of(const struct work *w, uint64_t part) { return (float *)w->pass->scratch + part * w->part_floats; }

/* ---- rows ---- */

/* One output place: where its first input would be (it may lie outside). */
struct place {
    uint64_t example;
    int64_t y, x;
};

static struct place place_at(const struct work *w, uint64_t row) {
    const uint64_t inside = row % w->places, width = w->layer->out.width;
    return (struct place){row / w->places, (int64_t)(inside / width * w->conv.stride_height) - w->conv.top,
                          (int64_t)(inside % width * w->conv.stride_width) - w->conv.left};
}

static bool is_inside(const struct work *w, int64_t y, int64_t x) {
    return y >= 0 && x >= 0 && y < w->layer->in.height && x < w->layer->in.width;
}

static uint64_t input_at(const struct work *w, uint64_t example, int64_t y, int64_t x) {
    const struct shmtrain_extent *in = &w->layer->in;
    return ((example * in->height + (uint64_t)y) * in->width + (uint64_t)x) * in->channels;
}

/* `rows` rows from output place `row` on, of one group, into columns. */
static void make_rows(const struct work *w, uint64_t row, uint32_t rows, uint32_t group, float *columns) {
    const uint32_t m = w->channels, kernel_width = w->conv.kernel_width;
    for (uint32_t r = 0; r < rows; r++) {
        const struct place p = place_at(w, row + r);
        for (uint32_t ky = 0; ky < w->conv.kernel_height; ky++, columns += (uint64_t)kernel_width * m) {
            const int64_t y = p.y + ky;
            if (w->conv.groups == 1 && is_inside(w, y, p.x) && is_inside(w, y, p.x + kernel_width - 1)) {
                memcpy(columns, w->pass->in + input_at(w, p.example, y, p.x), (uint64_t)kernel_width * m * sizeof(float));
                continue;
            }
            for (uint32_t kx = 0; kx < kernel_width; kx++) {
                float *to = columns + (uint64_t)kx * m;
                if (is_inside(w, y, p.x + kx))
                    memcpy(to, w->pass->in + input_at(w, p.example, y, p.x + kx) + (uint64_t)group * m, m * sizeof(float));
                else
                    memset(to, 0, m * sizeof(float));
            }
        }
    }
}

/* The other way: derivatives by rows are added to those by inputs. */
static void add_rows(const struct work *w, uint64_t row, uint32_t rows, uint32_t group, const float *columns) {
    const uint32_t m = w->channels;
    for (uint32_t r = 0; r < rows; r++) {
        const struct place p = place_at(w, row + r);
        for (uint32_t ky = 0; ky < w->conv.kernel_height; ky++)
            for (uint32_t kx = 0; kx < w->conv.kernel_width; kx++, columns += m) {
                if (!is_inside(w, p.y + ky, p.x + kx)) continue;
                float *to = w->pass->d_in + input_at(w, p.example, p.y + ky, p.x + kx) + (uint64_t)group * m;
                for (uint32_t c = 0; c < m; c++) to[c] += columns[c];
            }
    }
}

/* The rows as a factor: in `columns`, unless they are the inputs. */
static struct shmt_factor rows_of(const struct work *w, uint64_t row, uint32_t rows, uint32_t group, float *columns) {
    if (w->plain) return (struct shmt_factor){w->pass->in + row * w->channels, w->channels, false};
    make_rows(w, row, rows, group, columns);
    return (struct shmt_factor){columns, w->width, false};
}

/* ---- parts ---- */

static void forward_part(void *arg, uint64_t part) {
    const struct work *w = arg;
    const struct shmt_conv_part examples = shmt_conv_part_of(w->pass->n, part);
    const uint64_t from = examples.first * w->places, to = from + examples.n * w->places, filters = w->layer->out.channels;
    const float *bias = w->layer->n_tables > SHMT_CONV_BIAS ? w->pass->table[SHMT_CONV_BIAS] : NULL;
    for (uint64_t row = from; row < to; row += w->tile) {
        const uint32_t rows = to - row < w->tile ? (uint32_t)(to - row) : w->tile;
        float *y = w->pass->out + row * filters;
        for (uint32_t group = 0; group < w->conv.groups; group++) {
            const uint64_t first = (uint64_t)group * w->filters;
            const struct shmt_factor x = rows_of(w, row, rows, group, scratch_of(w, part)),
                                     weight = {w->pass->table[SHMT_CONV_WEIGHT] + first * w->width, w->width, true};
            shmt_sgemm(x, weight, w->width, 0, (struct shmt_matrix){y + first, rows, w->filters, filters});
        }
        shmt_conv_finish(y, rows, (uint32_t)filters, bias, w->layer->relu);
    }
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    run(&w, forward_part);
}

/* One tile of one group: dW, then the rows' derivatives in the place of the rows, or d_in itself. */
static void backward_group(const struct work *w, uint64_t row, uint32_t rows, uint32_t group, float *columns, const float *g,
                           float *dw, bool is_first) {
    const uint64_t filters = w->layer->out.channels, first = (uint64_t)group * w->filters;
    const struct shmt_factor x = rows_of(w, row, rows, group, columns), slopes = {g + first, filters, false},
                             turned = {g + first, filters, true},
                             weight = {w->pass->table[SHMT_CONV_WEIGHT] + first * w->width, w->width, false};
    shmt_sgemm(turned, x, rows, is_first ? 0 : 1, (struct shmt_matrix){dw + first * w->width, w->filters, w->width, w->width});
    if (!w->pass->d_in) return;
    float *to = w->plain ? w->pass->d_in + row * w->channels : columns;
    shmt_sgemm(slopes, weight, w->filters, 0, (struct shmt_matrix){to, rows, w->width, w->width});
    if (!w->plain) add_rows(w, row, rows, group, columns);
}

static void backward_part(void *arg, uint64_t part) {
    const struct work *w = arg;
    const struct shmt_conv_part examples = shmt_conv_part_of(w->pass->n, part);
    const uint64_t from = examples.first * w->places, to = from + examples.n * w->places, filters = w->layer->out.channels,
                   numbers = shmtrain_extent_numbers(&w->layer->in);
    float *columns = scratch_of(w, part), *g = columns + (uint64_t)w->tile * w->width, *dw = g + w->tile * filters,
          *db = dw + filters * w->width;
    memset(db, 0, filters * sizeof *db);
    if (w->pass->d_in && !w->plain) memset(w->pass->d_in + examples.first * numbers, 0, examples.n * numbers * sizeof(float));
    for (uint64_t row = from; row < to; row += w->tile) {
        const uint32_t rows = to - row < w->tile ? (uint32_t)(to - row) : w->tile;
        shmt_conv_slopes(w->pass->out + row * filters, w->pass->d_out + row * filters, rows, (uint32_t)filters, w->layer->relu,
                         g, db);
        for (uint32_t group = 0; group < w->conv.groups; group++)
            backward_group(w, row, rows, group, columns, g, dw, row == from);
    }
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    const uint64_t filters = layer->out.channels, weights = filters * w.width;
    const float *dw = scratch_of(&w, 0) + w.tile * (w.width + filters);
    run(&w, backward_part);
    shmt_conv_add_parts(dw, shmt_conv_parts(pass->n), w.part_floats, weights, pass->add, pass->gradient[SHMT_CONV_WEIGHT]);
    if (layer->n_tables > SHMT_CONV_BIAS)
        shmt_conv_add_parts(dw + weights, shmt_conv_parts(pass->n), w.part_floats, filters, pass->add,
                            pass->gradient[SHMT_CONV_BIAS]);
}

const struct shmt_conv_ops SHMT_CONV_BY_COLUMNS = {memory, forward, backward};
