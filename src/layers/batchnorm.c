/* Batch normalisation (Ioffe, Szegedy 2015), for each channel c over all places of all examples of a pass:
 *
 *     x' = (x - m_c) / sqrt(v_c + e)        y = scale_c x' + shift_c
 *     d scale = sum dy x'    d shift = sum dy    dx = scale / sqrt(v + e) (dy - mean of dy - x' mean of dy x')
 *
 * In training m and v are mean and variance of the pass itself, of N numbers each; in scoring they are the tables "mean" and
 * "variance", running means of what passes have seen. Those are statistics (<shmtrain/layer.h>): their gradient is n (value - what
 * this pass shows), n its examples, so that gradients of several passes add up to the mean over them. The variance that is shown is
 * the unbiased one, times N / (N - 1), as in torch.
 *
 * One number has no variance (torch refuses to train with it). A pass with N = 1, such as the last one of an epoch may be, computes with
 * the running statistics like scoring, so that dx = scale / sqrt(v + e) dy, and moves them nowhere.
 *
 * Sums go over blocks of ROWS places, and over the sums of blocks in doubles, in order: threads change no bit. */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/wide_vectors.h"
#include "layers/layers.h"
#include "math/parallel.h"

enum { SCALE, SHIFT, MEAN, VARIANCE, N_TABLES };
enum { MOMENTUM, EPSILON }; /* arguments */
enum { ROWS = 256 };
#define NUMBER_NS 0.5

static int plan(struct shmtrain_layer *layer) {
    const uint32_t channels = layer->in.channels;
    layer->out = layer->in;
    layer->n_tables = N_TABLES;
    for (uint32_t t = 0; t < N_TABLES; t++) layer->table[t] = (struct shmtrain_layer_table){.rows = 1, .width = channels};
    layer->table[SCALE].name = "scale";
    layer->table[SHIFT].name = "shift";
    layer->table[MEAN].name = "mean";
    layer->table[VARIANCE].name = "variance";
    layer->table[SCALE].start = layer->table[VARIANCE].start = SHMTRAIN_ONES;
    layer->table[MEAN].role = layer->table[VARIANCE].role = SHMTRAIN_STATISTIC;
    layer->table[MEAN].rate = layer->table[VARIANCE].rate = (float)layer->argument[MOMENTUM].number;
    layer->own.real[EPSILON] = (float)layer->argument[EPSILON].number;
    layer->multiplications = 2 * shmtrain_extent_numbers(&layer->in);
    layer->reads = SHMTRAIN_LAYER_READS_IN;
    return 0;
}

static uint64_t blocks_of(uint64_t rows) { return (rows + ROWS - 1) / ROWS; }
static uint64_t rows_of(const struct shmtrain_layer *layer, uint32_t n) {
    return (uint64_t)n * layer->in.height * layer->in.width;
}

/* Kept are means and 1 / sqrt(v + e). Scratch: two sums of each block, two means, scale and shift. */
static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    const uint64_t channels = layer->in.channels, blocks = blocks_of(rows_of(layer, n));
    (void)training;
    out->kept = 2 * channels * sizeof(float);
    out->scratch = (blocks + 1) * 2 * channels * sizeof(float);
}

struct work {
    const struct shmtrain_layer_pass *pass;
    uint64_t rows;
    uint32_t channels;
    float *mean, *inverse; /* kept */
    float *sums;           /* (blocks, 2, channels) */
    float *a, *b;          /* (channels), means over all rows of two sums */
};

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = {.pass = pass, .rows = rows_of(layer, pass->n), .channels = layer->in.channels};
    w.mean = pass->kept;
    w.inverse = w.mean + w.channels;
    w.sums = pass->scratch;
    w.a = w.sums + blocks_of(w.rows) * 2 * w.channels;
    w.b = w.a + w.channels;
    return w;
}

/* The rows of a block. */
struct block {
    uint64_t from, rows;
    float *sums; /* (2, channels), zeros */
};

static struct block block_at(const struct work *w, uint64_t i) {
    const struct block b = {i * ROWS, w->rows - i * ROWS < ROWS ? w->rows - i * ROWS : ROWS, w->sums + i * 2 * w->channels};
    for (uint32_t c = 0; c < 2 * w->channels; c++) b.sums[c] = 0;
    return b;
}

SHMT_FOR_WIDE_VECTORS static void sum_rows(uint64_t rows, uint32_t channels, const float *restrict x, float *restrict sum) {
    for (uint64_t r = 0; r < rows; r++, x += channels)
        for (uint32_t c = 0; c < channels; c++) sum[c] += x[c];
}

SHMT_FOR_WIDE_VECTORS static void sum_squares(uint64_t rows, uint32_t channels, const float *restrict x,
                                              const float *restrict mean, float *restrict sum) {
    for (uint64_t r = 0; r < rows; r++, x += channels)
        for (uint32_t c = 0; c < channels; c++) sum[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
}

/* Sums of dy and of dy x'. */
SHMT_FOR_WIDE_VECTORS static void sum_slopes(uint64_t rows, uint32_t channels, const float *restrict x,
                                             const float *restrict dy, const float *restrict mean,
                                             const float *restrict inverse, float *restrict sum, float *restrict product) {
    for (uint64_t r = 0; r < rows; r++, x += channels, dy += channels)
        for (uint32_t c = 0; c < channels; c++) {
            sum[c] += dy[c];
            product[c] += dy[c] * ((x[c] - mean[c]) * inverse[c]);
        }
}

SHMT_FOR_WIDE_VECTORS static void normalise(uint64_t rows, uint32_t channels, const float *restrict x,
                                            const float *restrict mean, const float *restrict inverse,
                                            const float *restrict scale, const float *restrict shift, float *restrict y) {
    for (uint64_t r = 0; r < rows; r++, x += channels, y += channels)
        for (uint32_t c = 0; c < channels; c++) y[c] = (x[c] - mean[c]) * inverse[c] * scale[c] + shift[c];
}

SHMT_FOR_WIDE_VECTORS static void slopes_of_inputs(const struct work *w, const struct block *b, const float *restrict x,
                                                   const float *restrict dy, float *restrict dx) {
    const float *restrict scale = w->pass->table[SCALE], *restrict mean = w->mean, *restrict inverse = w->inverse,
                          *restrict a = w->a, *restrict product = w->b;
    for (uint64_t r = 0; r < b->rows; r++, x += w->channels, dy += w->channels, dx += w->channels)
        for (uint32_t c = 0; c < w->channels; c++)
            dx[c] = scale[c] * inverse[c] * ((dy[c] - a[c]) - (x[c] - mean[c]) * inverse[c] * product[c]);
}

static void mean_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct block b = block_at(w, i);
    sum_rows(b.rows, w->channels, w->pass->in + b.from * w->channels, b.sums);
}

static void variance_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct block b = block_at(w, i);
    sum_squares(b.rows, w->channels, w->pass->in + b.from * w->channels, w->mean, b.sums);
}

static void normalise_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const uint64_t from = i * ROWS, at = from * w->channels;
    normalise(w->rows - from < ROWS ? w->rows - from : ROWS, w->channels, w->pass->in + at, w->mean, w->inverse,
              w->pass->table[SCALE], w->pass->table[SHIFT], w->pass->out + at);
}

static void slopes_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct block b = block_at(w, i);
    const uint64_t at = b.from * w->channels;
    sum_slopes(b.rows, w->channels, w->pass->in + at, w->pass->d_out + at, w->mean, w->inverse, b.sums, b.sums + w->channels);
}

static void inputs_block(void *arg, uint64_t i) {
    const struct work *w = arg;
    const struct block b = {.from = i * ROWS, .rows = w->rows - i * ROWS < ROWS ? w->rows - i * ROWS : ROWS, .sums = NULL};
    const uint64_t at = b.from * w->channels;
    slopes_of_inputs(w, &b, w->pass->in + at, w->pass->d_out + at, w->pass->d_in + at);
}

static void run(struct work *w, shmt_tile *block) {
    const double ns = (double)w->rows * w->channels * NUMBER_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), blocks_of(w->rows), block, w);
}

/* Sum number `which` of all blocks, for channel c. */
static double sum_of(const struct work *w, uint32_t which, uint32_t c) {
    double sum = 0;
    for (uint64_t i = 0; i < blocks_of(w->rows); i++) sum += (double)w->sums[(2 * i + which) * w->channels + c];
    return sum;
}

static void find_statistics(struct work *w, float epsilon) {
    run(w, mean_block);
    for (uint32_t c = 0; c < w->channels; c++) w->mean[c] = (float)(sum_of(w, 0, c) / (double)w->rows);
    run(w, variance_block);
    for (uint32_t c = 0; c < w->channels; c++)
        w->inverse[c] = (float)(1 / sqrt(sum_of(w, 0, c) / (double)w->rows + (double)epsilon));
}

/* Whether a pass has statistics of its own. */
static bool has_variance(const struct work *w) { return w->rows > 1; }

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    const float epsilon = layer->own.real[EPSILON];
    if (pass->training && has_variance(&w))
        find_statistics(&w, epsilon);
    else
        for (uint32_t c = 0; c < w.channels; c++) {
            w.mean[c] = pass->table[MEAN][c];
            const double shown = (double)pass->table[VARIANCE][c],
                         variance = shown < 0 ? 0 : shown; /* races may take it below; NaN stays */
            w.inverse[c] = (float)(1 / sqrt(variance + (double)epsilon));
        }
    run(&w, normalise_block);
}

static void put(const struct shmtrain_layer_pass *pass, uint32_t t, uint32_t c, double value) {
    float *to = &pass->gradient[t][c];
    *to = pass->add ? *to + (float)value : (float)value;
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    const bool own = has_variance(&w);
    const double n = pass->n, rows = (double)w.rows, unbiased = own ? rows / (rows - 1) : 1;
    run(&w, slopes_block);
    for (uint32_t c = 0; c < w.channels; c++) {
        const double sum = sum_of(&w, 0, c), product = sum_of(&w, 1, c), inverse = (double)w.inverse[c],
                     variance = 1 / (inverse * inverse) - (double)layer->own.real[EPSILON];
        w.a[c] = own ? (float)(sum / rows) : 0;
        w.b[c] = own ? (float)(product / rows) : 0;
        put(pass, SCALE, c, product);
        put(pass, SHIFT, c, sum);
        put(pass, MEAN, c, own ? n * ((double)pass->table[MEAN][c] - (double)w.mean[c]) : 0);
        put(pass, VARIANCE, c, own ? n * ((double)pass->table[VARIANCE][c] - unbiased * variance) : 0);
    }
    if (pass->d_in) run(&w, inputs_block);
}

const struct shmtrain_layer_kind SHMT_LAYER_BATCHNORM = {
    .size = sizeof(struct shmtrain_layer_kind),
    .traits = SHMTRAIN_LAYER_MIXES,
    .name = "batchnorm",
    .about = "each channel with mean 0 and variance 1 over the batch (of one number: by running ones), scaled and shifted",
    .argument = {{.name = "momentum", .type = SHMTRAIN_LAYER_ABOVE, .low = 0, .high = 1, .assumed = "0.1"},
                 {.name = "epsilon", .type = SHMTRAIN_LAYER_ABOVE, .low = 0, .high = 1, .assumed = "0.00001"}},
    .plan = plan,
    .memory = memory,
    .forward = forward,
    .backward = backward,
};
