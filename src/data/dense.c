/* builtin:dense, examples of a planted softmax model with dense features, as a source.
 *
 * Every value of x is about normal with deviation 1, and the label is drawn from the model: class c has probability
 *
 *     p(c | x) = e^(z_c / noise) / sum over k of e^(z_k / noise)        z = W x + b
 *
 * with W about normal, of such a deviation that z has one of 5, and b of 1. So the model W / noise, b / noise, which a softmax
 * model can learn, has the best possible mean loss, -ln p(label | x), and it is known. With 64 features and 10 classes it is
 * about 0.55, with an accuracy of 80 %; with two classes (labels 0 and 1, so that logistic regression works on them) 0.18 and
 * 92 %. With noise=0 the label is the class of the largest z.
 *
 * Called through source.h. An example is a pure function of (seed, stream, index), with the same bits on every machine: nothing
 * but +, -, *, /, sqrt, math/logistic.h and natural.h is used. */
#include "data/natural.h"
#include "data/source_priv.h"

#include "base/checked.h"
#include "base/random.h"

#include <stdlib.h>
#include <string.h>

#define NAME         "builtin:dense"
#define SPREAD       5.0                 /* the deviation of z */
#define STEP         0x9e3779b97f4a7c15u /* between the states of a stream of random numbers: SplitMix64 */
#define MAX_FEATURES 100000

enum { DRAW_VALUE = 1, DRAW_LABEL = 2, DRAW_WEIGHT = 3, DRAW_BIAS = 4 };

struct dense {
    struct shmt_source source;
    uint64_t seed, stream, n_examples;
    uint32_t n_features, n_classes;
    double noise;
    float *weight; /* (n_features, n_classes): W by columns */
    float *bias;   /* (n_classes) */
};

static const struct dense *dense_of(const struct shmt_source *source) { return (const struct dense *)source; }

/* Number i of a stream, about normal with mean 0 and deviation 1, and never 0: eight uniform numbers of 16 bits, whose sum
 * (doubled and shifted, so that it is odd) has the deviation 2^17 sqrt(2/3). */
static float about_normal(uint64_t state, uint64_t i) {
    const uint64_t low = 0x0000ffff0000ffff, a = shmt_mix64(state + 2 * i * STEP), b = shmt_mix64(state + (2 * i + 1) * STEP);
    const uint64_t pairs = (a & low) + (a >> 16 & low) + (b & low) + (b >> 16 & low);
    const int32_t sum = (int32_t)((uint32_t)pairs + (uint32_t)(pairs >> 32));
    return (float)(2 * sum - 8 * 65535 + 1) * 0x1.3988e2p-17f;
}

/* One example, and what it takes to draw it. */
struct scratch {
    float *value;      /* (n_features) */
    uint64_t *id;      /* (n_features) 0, 1, ... */
    uint32_t *column;  /* (n_features) those that are columns */
    float *kept;       /* (n_features) and their values */
    double *z, *share; /* (n_classes) */
};

static void scratch_free(struct scratch *x) {
    free(x->value);
    free(x->id);
    free(x->column);
    free(x->kept);
    free(x->z);
    free(x->share);
}

static int scratch_make(const struct dense *d, struct scratch *x, struct shmt_error *e) {
    x->value = malloc(d->n_features * sizeof *x->value);
    x->id = malloc(d->n_features * sizeof *x->id);
    x->kept = malloc(d->n_features * sizeof *x->kept);
    x->column = malloc(d->n_features * sizeof *x->column);
    x->z = malloc(d->n_classes * sizeof *x->z);
    x->share = malloc(d->n_classes * sizeof *x->share);
    if (!x->value || !x->id || !x->kept || !x->column || !x->z || !x->share) {
        scratch_free(x);
        return shmt_no_memory(e, "for an example of %s", NAME);
    }
    for (uint32_t j = 0; j < d->n_features; j++) x->id[j] = j;
    return 0;
}

static void draw_values(const struct dense *d, uint64_t index, struct scratch *x) {
    const uint64_t state = shmt_hash64(d->seed, DRAW_VALUE, d->stream, index);
    for (uint32_t j = 0; j < d->n_features; j++) x->value[j] = about_normal(state, j);
}

/* z = W x + b; returns the class of the largest. */
static uint32_t score(const struct dense *d, struct scratch *x) {
    uint32_t top = 0;
    for (uint32_t c = 0; c < d->n_classes; c++) x->z[c] = (double)d->bias[c];
    for (uint32_t j = 0; j < d->n_features; j++) {
        const float *w = d->weight + (uint64_t)j * d->n_classes;
        for (uint32_t c = 0; c < d->n_classes; c++) x->z[c] += (double)w[c] * (double)x->value[j];
    }
    for (uint32_t c = 1; c < d->n_classes; c++) top = x->z[c] > x->z[top] ? c : top;
    return top;
}

/* The label of the example whose values are drawn, and the planted model's loss on it. */
static float draw_label(const struct dense *d, uint64_t index, struct scratch *x, double *loss_out) {
    const uint32_t top = score(d, x);
    double sum = 0;
    *loss_out = 0;
    if (d->noise == 0) return (float)top;
    for (uint32_t c = 0; c < d->n_classes; c++) {
        x->share[c] = (double)shmt_exp_minus((float)((x->z[top] - x->z[c]) / d->noise));
        sum += x->share[c];
    }
    double left = shmt_unit(shmt_hash64(d->seed, DRAW_LABEL, d->stream, index)) * sum;
    uint32_t label = 0;
    while (label + 1 < d->n_classes && left >= x->share[label]) left -= x->share[label++];
    if (x->share[label] == 0) label = top; /* the last one, by rounding */
    *loss_out = (x->z[top] - x->z[label]) / d->noise + (double)shmt_natural_log(sum);
    return (float)label;
}

/* Those of the features that are columns, into x->column and x->kept; returns their number. */
static uint64_t keep_columns(const struct dense *d, const struct shmt_columns *columns, struct scratch *x) {
    memcpy(x->kept, x->value, d->n_features * sizeof *x->kept);
    return shmt_columns_place(columns, x->id, d->n_features, x->column, x->kept);
}

/* All classes count as found, also those that nobody drew: they are the model's. */
static int dense_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                       struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* counting draws nothing */
    const struct dense *d = dense_of(source);
    const uint64_t first = shmt_part_begin(d->n_examples, part, n_parts),
                   end = shmt_part_begin(d->n_examples, part + 1, n_parts);
    struct scratch x;
    out->has_best_loss = 1;
    if (first == end) return 0;
    const int status = scratch_make(d, &x, &out->error);
    if (status != 0) return status;
    for (uint64_t i = first; i < end; i++) {
        double square = 0;
        draw_values(d, i, &x);
        const uint64_t n = keep_columns(d, columns, &x);
        for (uint64_t j = 0; j < n; j++) square += (double)x.kept[j] * (double)x.kept[j];
        shmt_sum_add(&out->square, square);
        out->n_nonzeros += n;
    }
    scratch_free(&x);
    for (uint32_t c = 0; c < d->n_classes; c++) shmt_labels_add(&out->labels, (float)c, first);
    out->n_examples = end - first;
    out->min_id = 0;
    out->max_id = d->n_features - 1;
    out->label_low = 0;
    out->label_high = (float)(d->n_classes - 1);
    out->all_ones = out->n_nonzeros == 0;
    return 0;
}

static int dense_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                      uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    const struct dense *d = dense_of(source);
    uint64_t nonzero = first_nonzero;
    struct scratch x;
    const int status = scratch_make(d, &x, e);
    if (status != 0) return status;
    counted->best_loss = (struct shmt_sum){0, 0};
    for (uint64_t i = 0; i < counted->n_examples; i++) {
        double loss;
        draw_values(d, first + i, &x);
        into->label[first + i] = draw_label(d, first + i, &x, &loss);
        const uint64_t n = keep_columns(d, &into->columns, &x);
        shmt_arrays_put(into, first + i, nonzero, x.column, x.kept, n);
        nonzero += n;
        shmt_sum_add(&counted->best_loss, loss);
    }
    scratch_free(&x);
    return 0;
}

static uint64_t dense_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct dense *d = dense_of(source);
    const uint64_t row_bytes = d->n_features * (sizeof(uint32_t) + sizeof(float)) + sizeof(uint64_t) + sizeof(float);
    return dense ? shmt_dense_bytes((double)d->n_examples, d->n_features) : d->n_examples * row_bytes;
}

static void dense_close(struct shmt_source *source) {
    struct dense *d = (struct dense *)source;
    free(d->weight);
    free(d->bias);
    free(d);
}

static const struct shmt_source_ops OPS = {
    .is_generator = true,
    .count = dense_count,
    .fill = dense_fill,
    .guess_bytes = dense_guess_bytes,
    .close = dense_close,
};

/* W and b are those of the seed, whatever stream the examples are of. */
static int plant(struct dense *d, struct shmt_error *e) {
    const uint64_t n = (uint64_t)d->n_features * d->n_classes;
    d->weight = malloc(n * sizeof *d->weight);
    d->bias = malloc(d->n_classes * sizeof *d->bias);
    if (!d->weight || !d->bias) {
        return shmt_no_memory(e, "for the model of %s, %u features and %u classes", NAME, d->n_features, d->n_classes);
    }
    const float size = (float)(SPREAD / sqrt(d->n_features));
    const uint64_t weights = shmt_hash64(d->seed, DRAW_WEIGHT, 0, 0), biases = shmt_hash64(d->seed, DRAW_BIAS, 0, 0);
    for (uint64_t i = 0; i < n; i++) d->weight[i] = size * about_normal(weights, i);
    for (uint32_t c = 0; c < d->n_classes; c++) d->bias[c] = about_normal(biases, c);
    return 0;
}

int shmt_dense_open(const char *keys, uint64_t seed, bool held_out, struct shmt_source **out, struct shmt_error *e) {
    uint64_t examples = 20000, valid = UINT64_MAX, features = 64, classes = 10;
    double noise = 1;
    const struct shmt_key key[] = {
        {"examples", 1, UINT32_MAX, &examples, NULL},
        {"valid", 1, UINT32_MAX, &valid, NULL},
        {"features", 1, MAX_FEATURES, &features, NULL},
        {"classes", 2, SHMTRAIN_MAX_CLASSES, &classes, NULL},
        {"noise", 0, 0, NULL, &noise},
        {"seed", 0, SHMT_SEED_MAX, &seed, NULL},
    };
    int status = shmt_keys_read(NAME, keys, key, sizeof key / sizeof *key, e);
    if (status != 0) return status;
    struct dense *d = calloc(1, sizeof *d);
    if (!d) return shmt_no_memory(e, "for %s", NAME);
    d->source = (struct shmt_source){&OPS, NAME};
    d->seed = seed;
    d->stream = held_out;
    d->n_examples = !held_out ? examples : valid != UINT64_MAX ? valid : shmt_ceil_div(examples, 10);
    d->n_features = (uint32_t)features;
    d->n_classes = (uint32_t)classes;
    d->noise = noise;
    status = plant(d, e);
    if (status != 0) {
        dense_close(&d->source);
        return status;
    }
    *out = &d->source;
    return 0;
}
