/* builtin:sparse, the default data: examples of the planted model (planted.h) as a source.
 *
 * Called through source.h. The size of an example is known without drawing it, and its labels, norm and ids are what the model
 * says they are; so counting takes no time, and each example is drawn once, by fill. */
#include "data/planted.h"
#include "data/source_priv.h"

#include "base/checked.h"

#include <stdlib.h>

#define NAME "builtin:sparse"

struct sparse {
    struct shmt_source source;
    struct shmt_planted planted;
    enum shmt_planted_stream stream;
    uint64_t n_examples;
};

static const struct sparse *sparse_of(const struct shmt_source *source) { return (const struct sparse *)source; }

static bool has_all_columns(const struct sparse *s, const struct shmt_columns *columns) {
    return shmt_columns_are_range(columns) && columns->base == 0 && columns->n_features >= s->planted.n_features;
}

static void keep_columns(struct shmt_planted_example *example, const struct shmt_columns *columns) {
    for (uint32_t i = 0; i < example->n; i++) example->wide_id[i] = example->id[i];
    example->n = (uint32_t)shmt_columns_place(columns, example->wide_id, example->n, example->id, example->value);
}

/* The nonzeros and their squares in a part, for columns that are not all: by drawing. */
static int count_some(const struct sparse *s, const struct shmt_columns *columns, uint64_t first, uint64_t end,
                      struct shmt_part *out) {
    struct shmt_planted_example example;
    const int status = shmt_planted_example_init(&s->planted, &example, &out->error);
    if (status != 0) return status;
    for (uint64_t i = first; i < end; i++) {
        shmt_planted_draw(&s->planted, s->stream, i, &example);
        keep_columns(&example, columns);
        double square = 0;
        for (uint32_t j = 0; j < example.n; j++) square += (double)example.value[j] * example.value[j];
        shmt_sum_add(&out->square, square);
        out->n_nonzeros += example.n;
    }
    shmt_planted_example_fini(&example);
    return 0;
}

static int sparse_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                        struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* counting draws nothing */
    const struct sparse *s = sparse_of(source);
    const uint64_t first = shmt_part_begin(s->n_examples, part, n_parts),
                   end = shmt_part_begin(s->n_examples, part + 1, n_parts);
    out->has_best_loss = 1;
    if (first == end) return 0;
    out->n_examples = end - first;
    out->min_id = 0;
    out->max_id = s->planted.n_features - 1;
    out->label_low = -1;
    out->label_high = 1;
    shmt_labels_add(&out->labels, -1, first);
    shmt_labels_add(&out->labels, 1, first);
    out->all_ones = 0;
    if (!has_all_columns(s, columns)) return count_some(s, columns, first, end, out);
    for (uint64_t i = first; i < end; i++) out->n_nonzeros += shmt_planted_size(&s->planted, s->stream, i);
    out->square.whole = end - first; /* unit norm */
    return 0;
}

static int sparse_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                       uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    const struct sparse *s = sparse_of(source);
    struct shmt_planted_example example;
    const int status = shmt_planted_example_init(&s->planted, &example, e);
    if (status != 0) return status;
    const bool all_columns = has_all_columns(s, &into->columns);
    counted->best_loss = (struct shmt_sum){0, 0};
    for (uint64_t i = first, nonzero = first_nonzero; i < first + counted->n_examples; i++) {
        shmt_planted_draw(&s->planted, s->stream, i, &example);
        if (!all_columns) keep_columns(&example, &into->columns);
        shmt_arrays_put(into, i, nonzero, example.id, example.value, example.n);
        into->label[i] = example.label;
        shmt_sum_add(&counted->best_loss, example.loss);
        nonzero += example.n;
    }
    shmt_planted_example_fini(&example);
    return 0;
}

static uint64_t sparse_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct sparse *s = sparse_of(source);
    if (dense) return shmt_dense_bytes((double)s->n_examples, s->planted.n_features);
    const uint64_t nonzero_bytes = sizeof(uint32_t) + sizeof(float), example_bytes = sizeof(uint64_t) + sizeof(float);
    return s->n_examples * (s->planted.nonzeros * nonzero_bytes + example_bytes);
}

static void sparse_close(struct shmt_source *source) {
    struct sparse *s = (struct sparse *)source;
    shmt_planted_fini(&s->planted);
    free(s);
}

static const struct shmt_source_ops OPS = {
    .is_generator = true,
    .count = sparse_count,
    .fill = sparse_fill,
    .guess_bytes = sparse_guess_bytes,
    .close = sparse_close,
};

int shmt_sparse_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e) {
    uint64_t examples = 200000, valid = UINT64_MAX, features = 47236, nonzeros = 74;
    const struct shmt_key key[] = {
        {"examples", 1, UINT32_MAX, &examples, NULL},
        {"valid", 1, UINT32_MAX, &valid, NULL},
        {"features", 4, SHMT_PLANTED_MAX_FEATURES, &features, NULL},
        {"nonzeros", 1, SHMT_PLANTED_MAX_FEATURES / 4, &nonzeros, NULL},
        {"seed", 0, SHMT_SEED_MAX, &seed, NULL},
    };
    int status = shmt_keys_read(NAME, keys, key, sizeof key / sizeof *key, e);
    if (status != 0) return status;
    if (nonzeros > features / 4) {
        return shmt_refuse(e, "%s: nonzeros must be at most a quarter of features, which is %llu", NAME,
                           (unsigned long long)features / 4);
    }
    struct sparse *s = calloc(1, sizeof *s);
    if (!s) return shmt_no_memory(e, "for %s", NAME);
    s->source = (struct shmt_source){&OPS, NAME};
    s->planted = (struct shmt_planted){.seed = seed, .n_features = (uint32_t)features, .nonzeros = (uint32_t)nonzeros};
    s->stream = held_out ? SHMT_PLANTED_HELD_OUT : SHMT_PLANTED_TRAIN;
    s->n_examples = !held_out ? examples : valid != UINT64_MAX ? valid : shmt_ceil_div(examples, 10);
    status = shmt_planted_init(&s->planted, e);
    if (status != 0) {
        free(s);
        return status;
    }
    *out = &s->source;
    return 0;
}
