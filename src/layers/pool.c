/* Pooling: the largest number, or the mean, of each window of places, channel by channel. Windows lie wholly inside: places that are
 * left over at the right and below are not seen. Of equal numbers the first one is the largest, as rows and columns go; a window with
 * NaN gives NaN.
 *
 * Forward keeps the place of the largest number within its window, and backward needs nothing else. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/wide_vectors.h"
#include "layers/lanes_priv.h"
#include "layers/layers.h"
#include "math/parallel.h"

enum { WINDOW, TAKEN, STRIDE }; /* arguments */
enum { MAX = 1 };               /* word */
enum { LARGEST_WINDOW = 255 };  /* along one side: its places fit into 16 bits */
#define PLACE_NS 0.5

static int plan(struct shmtrain_layer *layer) {
    const struct shmtrain_layer_value *a = layer->argument;
    const uint32_t height = a[WINDOW].height, width = a[WINDOW].width;
    const uint32_t down = a[STRIDE].given ? a[STRIDE].height : height, right = a[STRIDE].given ? a[STRIDE].width : width;
    const uint32_t own[] = {height, width, down, right, a[TAKEN].word == MAX};
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++) layer->own.whole[i] = own[i];
    if (height > layer->in.height || width > layer->in.width) {
        snprintf(layer->why, sizeof layer->why, "a window of %ux%u does not fit into %ux%u places: take a smaller one", height,
                 width, layer->in.height, layer->in.width);
        layer->wrong = WINDOW;
        return -1;
    }
    layer->out = (struct shmtrain_extent){layer->in.channels, (layer->in.height - height) / down + 1,
                                          (layer->in.width - width) / right + 1};
    return 0;
}

/* What examples are pooled with. */
struct work {
    const struct shmtrain_layer_pass *pass;
    uint32_t height, width, down, right;
    bool largest;
    struct shmtrain_extent in, out;
    uint64_t n_in, n_out;
};

static struct work work_of(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    const uint32_t *own = layer->own.whole;
    return (struct work){pass,
                         own[0],
                         own[1],
                         own[2],
                         own[3],
                         own[4],
                         layer->in,
                         layer->out,
                         shmtrain_extent_numbers(&layer->in),
                         shmtrain_extent_numbers(&layer->out)};
}

static void memory(const struct shmtrain_layer *layer, uint32_t n, uint32_t training, struct shmtrain_layer_memory *out) {
    const struct work w = work_of(layer, NULL);
    if (training && w.largest) out->kept = n * w.n_out * sizeof(uint16_t);
}

static void run(struct work *w, shmt_tile *example) {
    const double ns = (double)w->pass->n * (double)w->n_in * PLACE_NS;
    shmt_parallel(shmt_parallel_worth(w->pass->threads, ns), w->pass->n, example, w);
}

/* The window of output place i: where its first number is, of channel 0. */
static uint64_t window_at(const struct work *w, uint64_t i) {
    return (i / w->out.width * w->down * w->in.width + i % w->out.width * w->right) * w->in.channels;
}

/* From the first number of a window, its place p. */
static uint64_t within(const struct work *w, uint32_t p) {
    return ((uint64_t)(p / w->width) * w->in.width + p % w->width) * w->in.channels;
}

/* A channel of one window. x takes y's place where it is larger, or NaN; y, once NaN, stays. */
static void pool_channel(const struct work *w, const float *in, float *y, uint16_t *kept) {
    uint32_t place = 0;
    *y = in[0];
    for (uint32_t p = 1; p < w->height * w->width; p++) {
        const float x = in[within(w, p)];
        if (x <= *y || *y != *y) continue;
        *y = x;
        place = p;
    }
    if (kept) *kept = (uint16_t)place;
}

/* The largest numbers of a row of windows; kept NULL: nobody wants to know where they are, as in scoring. */
SHMT_FOR_WIDE_VECTORS static void pool_row(const struct work *w, const float *in, float *y, uint16_t *kept) {
    const uint32_t channels = w->in.channels, whole = channels / SHMT_LANES * SHMT_LANES;
    const uint64_t row = (uint64_t)w->in.width * channels;
    for (uint32_t i = 0; i < w->out.width; i++, in += (uint64_t)w->right * channels, y += channels) {
        for (uint32_t c = 0; c < whole; c += SHMT_LANES) {
            shmt_lanes best, x;
            shmt_masks place = {0};
            shmt_lanes_load(in + c, &best);
            for (uint32_t down = 0; down < w->height; down++)
                for (uint32_t across = 0; across < w->width; across++) {
                    shmt_lanes_load(in + down * row + (uint64_t)across * channels + c, &x);
                    const shmt_masks larger = ~(x <= best) & (best == best);
                    best = (shmt_lanes)((larger & (shmt_masks)x) | (~larger & (shmt_masks)best));
                    place = (larger & (int32_t)(down * w->width + across)) | (~larger & place);
                }
            shmt_lanes_store(&best, y + c);
            const shmt_shorts few = __builtin_convertvector(place, shmt_shorts);
            if (kept) memcpy(kept + c, &few, sizeof few);
        }
        for (uint32_t c = whole; c < channels; c++) pool_channel(w, in + c, y + c, kept ? kept + c : NULL);
        if (kept) kept += channels;
    }
}

SHMT_FOR_WIDE_VECTORS static void add_to(uint32_t channels, const float *restrict x, float *restrict y) {
    for (uint32_t c = 0; c < channels; c++) y[c] += x[c];
}

static void pool_mean(const struct work *w, const float *in, float *y) {
    const uint32_t channels = w->in.channels;
    const float share = 1 / (float)(w->height * w->width);
    memcpy(y, in, channels * sizeof *y);
    for (uint32_t p = 1; p < w->height * w->width; p++) add_to(channels, in + within(w, p), y);
    for (uint32_t c = 0; c < channels; c++) y[c] *= share;
}

static void forward_example(void *arg, uint64_t k) {
    const struct work *w = arg;
    uint16_t *kept = w->pass->kept;
    const uint64_t channels = w->in.channels, places = (uint64_t)w->out.height * w->out.width;
    const float *in = w->pass->in + k * w->n_in;
    for (uint64_t i = 0; i < places && !w->largest; i++)
        pool_mean(w, in + window_at(w, i), w->pass->out + k * w->n_out + i * channels);
    for (uint64_t i = 0; i < places && w->largest; i += w->out.width) {
        const uint64_t at = k * w->n_out + i * channels;
        pool_row(w, in + window_at(w, i), w->pass->out + at, w->pass->training ? kept + at : NULL);
    }
}

static void forward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    run(&w, forward_example);
}

/* To a row of windows. With `alone` no window shares a place with another one: each place is written, else added to. */
SHMT_FOR_WIDE_VECTORS static void give_row(const struct work *w, const float *d, const uint16_t *kept, float *d_in,
                                           bool alone) {
    const uint32_t channels = w->in.channels, whole = channels / SHMT_LANES * SHMT_LANES;
    const uint64_t row = (uint64_t)w->in.width * channels;
    for (uint32_t i = 0; i < w->out.width; i++, d += channels, kept += channels, d_in += (uint64_t)w->right * channels) {
        for (uint32_t c = 0; c < whole && alone; c += SHMT_LANES) {
            shmt_lanes slope;
            shmt_shorts few;
            shmt_lanes_load(d + c, &slope);
            memcpy(&few, kept + c, sizeof few);
            const shmt_masks place = __builtin_convertvector(few, shmt_masks);
            for (uint32_t down = 0; down < w->height; down++)
                for (uint32_t across = 0; across < w->width; across++) {
                    const shmt_masks here = place == (int32_t)(down * w->width + across);
                    const shmt_lanes given = (shmt_lanes)(here & (shmt_masks)slope);
                    shmt_lanes_store(&given, d_in + down * row + (uint64_t)across * channels + c);
                }
        }
        for (uint32_t c = alone ? whole : 0; c < channels; c++) d_in[within(w, kept[c]) + c] += d[c];
    }
}

/* Whether windows cover all places, each once, eight channels at a time: then all derivatives are written. */
static bool covers(const struct work *w) {
    return w->largest && w->down == w->height && w->right == w->width && w->out.height * w->height == w->in.height &&
           w->out.width * w->width == w->in.width && w->in.channels % SHMT_LANES == 0;
}

static void give_to_all(const struct work *w, const float *d, float *d_in) {
    const float share = 1 / (float)(w->height * w->width);
    for (uint32_t p = 0; p < w->height * w->width; p++) {
        float *to = d_in + within(w, p);
        for (uint32_t c = 0; c < w->in.channels; c++) to[c] += share * d[c];
    }
}

static void backward_example(void *arg, uint64_t k) {
    const struct work *w = arg;
    const uint16_t *kept = w->pass->kept;
    const uint64_t channels = w->in.channels, places = (uint64_t)w->out.height * w->out.width;
    const bool alone = covers(w);
    float *d_in = w->pass->d_in + k * w->n_in;
    if (!alone) memset(d_in, 0, w->n_in * sizeof(float));
    for (uint64_t i = 0; i < places && !w->largest; i++)
        give_to_all(w, w->pass->d_out + k * w->n_out + i * channels, d_in + window_at(w, i));
    for (uint64_t i = 0; i < places && w->largest; i += w->out.width) {
        const uint64_t at = k * w->n_out + i * channels;
        give_row(w, w->pass->d_out + at, kept + at, d_in + window_at(w, i), alone);
    }
}

static void backward(const struct shmtrain_layer *layer, const struct shmtrain_layer_pass *pass) {
    struct work w = work_of(layer, pass);
    if (pass->d_in) run(&w, backward_example);
}

const struct shmtrain_layer_kind SHMT_LAYER_POOL = {
    .size = sizeof(struct shmtrain_layer_kind),
    .name = "pool",
    .about = "the largest number, or the mean, of each window of places",
    .argument = {{.name = "window", .type = SHMTRAIN_LAYER_PAIR, .low = 1, .high = LARGEST_WINDOW},
                 {.name = "of", .type = SHMTRAIN_LAYER_WORD, .words = "max|mean", .assumed = "max"},
                 {.name = "stride", .type = SHMTRAIN_LAYER_PAIR, .low = 1, .high = LARGEST_WINDOW, .assumed = ""}},
    .plan = plan,
    .memory = memory,
    .forward = forward,
    .backward = backward,
};
