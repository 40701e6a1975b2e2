/* builtin:digits, pictures of handwritten digits, 28 x 28 in 256 levels of grey, as a source; labels 0 to 9.
 *
 * Called through source.h; the pictures are drawn by digit_draw.c, and of the shape of MNIST's. They are neither trivial nor hopeless: of
 * 20,000 a linear model learns nine in ten, a small convolutional network 98 or 99 in 100. An example is a pure function of
 * (seed, stream, index), with the same bits on every machine. Values are 0 .. 1, as those of IDX files. */
#include "data/digit_draw.h"
#include "data/source_priv.h"

#include "base/checked.h"

#include <stdlib.h>

#define NAME "builtin:digits"

enum { CLASSES = 10, PIXELS = SHMT_DIGIT_PIXELS };

struct digits {
    struct shmt_source source;
    uint64_t seed, stream, n_examples;
    double noise;
};

static const struct digits *digits_of(const struct shmt_source *source) { return (const struct digits *)source; }

/* One example: its nonzeros, and those of them that are columns. */
struct drawn {
    float label;
    uint64_t n, id[PIXELS];
    uint32_t column[PIXELS]; /* (n) */
    float value[PIXELS];
};

static void draw(const struct digits *d, uint64_t index, const struct shmt_columns *columns, struct drawn *out) {
    uint8_t pixel[PIXELS];
    out->label = (float)shmt_digit_draw(d->seed, d->stream, index, d->noise, pixel);
    out->n = 0;
    for (uint32_t j = 0; j < PIXELS; j++) {
        if (pixel[j] == 0) continue;
        out->id[out->n] = j;
        out->value[out->n++] = (float)pixel[j] / 255;
    }
    out->n = shmt_columns_place(columns, out->id, out->n, out->column, out->value);
}

/* All classes count as found, also those that nobody drew. */
static int digits_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                        struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* what a buffer would keep is as large as the data */
    const struct digits *d = digits_of(source);
    const uint64_t first = shmt_part_begin(d->n_examples, part, n_parts),
                   end = shmt_part_begin(d->n_examples, part + 1, n_parts);
    struct drawn x;
    if (first == end) return 0;
    for (uint64_t i = first; i < end; i++) {
        double square = 0;
        draw(d, i, columns, &x);
        for (uint64_t j = 0; j < x.n; j++) square += (double)x.value[j] * (double)x.value[j];
        for (uint64_t j = 0; j < x.n; j++) out->all_ones &= x.value[j] == 1;
        shmt_sum_add(&out->square, square);
        out->n_nonzeros += x.n;
    }
    for (uint32_t c = 0; c < CLASSES; c++) shmt_labels_add(&out->labels, (float)c, first);
    out->n_examples = end - first;
    out->min_id = 0;
    out->max_id = PIXELS - 1;
    out->label_low = 0;
    out->label_high = CLASSES - 1;
    return 0;
}

static int digits_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                       uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    (void)e;
    struct drawn x;
    for (uint64_t i = 0; i < counted->n_examples; i++) {
        draw(digits_of(source), first + i, &into->columns, &x);
        into->label[first + i] = x.label;
        shmt_arrays_put(into, first + i, first_nonzero, x.column, x.value, x.n);
        first_nonzero += x.n;
    }
    return 0;
}

/* A fifth of the pixels are inked. */
static uint64_t digits_guess_bytes(const struct shmt_source *source, bool dense) {
    const uint64_t n = digits_of(source)->n_examples;
    const uint64_t sparse = n * (PIXELS / 5 * (sizeof(uint32_t) + sizeof(float)) + sizeof(uint64_t) + sizeof(float));
    return dense ? shmt_dense_bytes((double)n, PIXELS) : sparse;
}

static struct shmt_example_shape digits_shape(const struct shmt_source *source) {
    (void)source;
    return (struct shmt_example_shape){1, SHMT_DIGIT_SIDE, SHMT_DIGIT_SIDE};
}

static void digits_close(struct shmt_source *source) { free(source); }

static const struct shmt_source_ops OPS = {
    .is_generator = true,
    .count = digits_count,
    .fill = digits_fill,
    .guess_bytes = digits_guess_bytes,
    .shape = digits_shape,
    .close = digits_close,
};

int shmt_digits_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e) {
    uint64_t examples = 20000, valid = UINT64_MAX;
    double noise = 1;
    const struct shmt_key key[] = {
        {"examples", 1, UINT32_MAX, &examples, NULL},
        {"valid", 1, UINT32_MAX, &valid, NULL},
        {"noise", 0, 0, NULL, &noise},
        {"seed", 0, SHMT_SEED_MAX, &seed, NULL},
    };
    const int status = shmt_keys_read(NAME, keys, key, sizeof key / sizeof *key, e);
    if (status != 0) return status;
    struct digits *d = calloc(1, sizeof *d);
    if (!d) return shmt_no_memory(e, "for %s", NAME);
    d->source = (struct shmt_source){&OPS, NAME};
    d->seed = seed;
    d->stream = held_out;
    d->n_examples = !held_out ? examples : valid != UINT64_MAX ? valid : shmt_ceil_div(examples, 10);
    d->noise = noise;
    *out = &d->source;
    return 0;
}
