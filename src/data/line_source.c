/* builtin:line, a source of points on a line: label y = 0.1 x + 0.3, plus noise of the standard deviation that the key `noise`
 * asks for; the one feature x is spread over (0, 1).
 *
 * Called through source.h; the smallest regression that there is. Points are a pure function of (seed, index), with the same
 * bits on every machine. */
#include "data/source_priv.h"

#include "base/checked.h"
#include "base/random.h"

#include <stdlib.h>

#define NAME      "builtin:line"
#define SLOPE     0.1
#define INTERCEPT 0.3

enum { DRAW_X = 1, DRAW_NOISE = 2 };

struct line {
    struct shmt_source source;
    uint64_t seed, stream, n_examples;
    double noise;
};

static const struct line *line_of(const struct shmt_source *source) { return (const struct line *)source; }

/* About normal, standard deviation 1: the sum of twelve uniform numbers has variance 1 and mean 6. */
static double about_normal(uint64_t state) {
    double sum = -6;
    for (uint64_t i = 0; i < 12; i++) sum += shmt_unit(shmt_mix64(state + i));
    return sum;
}

static void draw(const struct line *line, uint64_t index, float *x_out, float *label_out) {
    /* An odd multiple of 2^-24: exact in a float, and never 0, which would be no nonzero. */
    const uint64_t bits = shmt_hash64(line->seed, DRAW_X, line->stream, index);
    *x_out = (float)(2 * (bits >> 41) + 1) * 0x1p-24f;
    const double noise = about_normal(shmt_hash64(line->seed, DRAW_NOISE, line->stream, index));
    *label_out = (float)(SLOPE * *x_out + INTERCEPT + line->noise * noise);
}

/* Of the one feature, whose id is 0. */
static bool has_column(const struct shmt_columns *columns) { return shmt_column_of_id(columns, 0) != UINT32_MAX; }

static int line_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* counting draws nothing */
    const struct line *line = line_of(source);
    const uint64_t end = shmt_part_begin(line->n_examples, part + 1, n_parts);
    for (uint64_t i = shmt_part_begin(line->n_examples, part, n_parts); i < end; i++) {
        float x, label;
        draw(line, i, &x, &label);
        shmt_part_add_label(out, label, i);
        out->min_id = out->max_id = 0;
        if (!has_column(columns)) continue;
        out->n_nonzeros++;
        out->all_ones = 0;
        shmt_sum_add(&out->square, (double)x * x);
    }
    return 0;
}

static int line_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                     uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    (void)e;
    const uint32_t column = shmt_column_of_id(&into->columns, 0), n = column != UINT32_MAX;
    for (uint64_t i = 0; i < counted->n_examples; i++) {
        float x;
        draw(line_of(source), first + i, &x, &into->label[first + i]);
        shmt_arrays_put(into, first + i, first_nonzero, &column, &x, n);
        first_nonzero += n;
    }
    return 0;
}

static uint64_t line_guess_bytes(const struct shmt_source *source, bool dense) {
    if (dense) return shmt_dense_bytes((double)line_of(source)->n_examples, 1);
    return line_of(source)->n_examples * (sizeof(uint64_t) + sizeof(uint32_t) + 2 * sizeof(float));
}

static void line_close(struct shmt_source *source) { free(source); }

static const struct shmt_source_ops OPS = {
    .is_generator = true,
    .count = line_count,
    .fill = line_fill,
    .guess_bytes = line_guess_bytes,
    .close = line_close,
};

int shmt_line_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e) {
    uint64_t examples = 1000, valid = UINT64_MAX;
    double noise = 0;
    const struct shmt_key key[] = {
        {"examples", 1, UINT32_MAX, &examples, NULL},
        {"valid", 1, UINT32_MAX, &valid, NULL},
        {"noise", 0, 0, NULL, &noise},
        {"seed", 0, SHMT_SEED_MAX, &seed, NULL},
    };
    const int status = shmt_keys_read(NAME, keys, key, sizeof key / sizeof *key, e);
    if (status != 0) return status;
    struct line *line = calloc(1, sizeof *line);
    if (!line) return shmt_no_memory(e, "for %s", NAME);
    line->source = (struct shmt_source){&OPS, NAME};
    line->seed = seed;
    line->stream = held_out;
    line->n_examples = !held_out ? examples : valid != UINT64_MAX ? valid : shmt_ceil_div(examples, 10);
    line->noise = noise;
    *out = &line->source;
    return 0;
}
