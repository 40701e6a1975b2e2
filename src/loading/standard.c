/* Features on one scale: see standard.h. */
#include "loading/standard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loading/load.h"
#include "base/checked.h"
#include "keeping/places.h"
#include "models/models.h"

#define WIDEST     (1u << 22) /* features: of more, what is counted of them would take more memory than they are worth */
#define TABLE      0.5        /* of all values are there: it is a table */
#define LARGE      5          /* times the median: a feature of sparse data that is larger comes down to it */
#define FAR        10         /* a median beyond this, or as far below 1 ... */
#define FAR_BELOW  0.01       /* ... as this is taken for the unit */
#define MONSTROUS  1e6        /* times as large as any other value of its feature: a mistake */
#define ENOUGH     20         /* values of a feature that say so */
#define LOOKED     (1u << 16) /* features ... */
#define LOOKED_AT  20000000   /* ... and values that are looked at only to find those */
#define FLOAT_STEP 1.2e-7     /* of a number: what floats tell apart */

/* ---- what features are like ---- */

/* Of one column, in the examples that are trained on. */
struct moments {
    double limit;        /* values beyond it are a mistake, and count as missing; INFINITY: none are */
    double most, second; /* the largest two */
    uint64_t here;       /* values that are not 0 */
    double sum, squares;
    double mean, off; /* of all rows, zeros with them; squares of the distances from it, of what is here: of tables */
};

static void add_size(struct moments *of, double x) {
    const double size = fabs(x);
    of->here++;
    of->second = fmax(of->second, fmin(size, of->most));
    of->most = fmax(of->most, size);
}

static void add_value(struct moments *of, double x) {
    if (fabs(x) > of->limit) return;
    of->here++;
    of->sum += x;
    of->squares += x * x;
}

static void add_distance(struct moments *of, double x) {
    if (fabs(x) > of->limit) return;
    of->off += (x - of->mean) * (x - of->mean);
}

/* Calls `add` for each value of example i. */
static void each_value(const struct shmtrain_data *data, uint64_t i, struct moments *of,
                       void (*add)(struct moments *of, double x)) {
    if (data->dense) {
        const float *row = data->dense + i * data->n_features;
        for (uint32_t j = 0; j < data->n_features; j++)
            if (row[j] != 0) add(&of[j], (double)row[j]);
        return;
    }
    for (uint64_t at = data->start[i]; at < data->start[i + 1]; at++)
        add(&of[data->id[at]], data->value ? (double)data->value[at] : 1);
}

static void each_example(const struct shmt_standard_wish *wish, struct moments *of, void (*add)(struct moments *of, double x)) {
    for (uint64_t k = 0; k < wish->n; k++) each_value(&wish->train->data, wish->example ? wish->example[k] : k, of, add);
}

static double value_of(const struct shmtrain_data *data, uint64_t i, uint32_t column) {
    if (data->dense) return (double)data->dense[i * data->n_features + column];
    for (uint64_t at = data->start[i]; at < data->start[i + 1]; at++)
        if (data->id[at] == column) return data->value ? (double)data->value[at] : 1;
    return 0;
}

/* Where the largest one stands, and its sign. */
static void find_place(const struct shmt_standard_wish *wish, struct shmt_standard *out) {
    const double size = out->mistake;
    for (uint64_t k = 0; k < wish->n; k++) {
        const uint64_t i = wish->example ? wish->example[k] : k;
        const double x = value_of(&wish->train->data, i, out->mistake_column);
        if (fabs(x) < size) continue;
        out->mistake = x;
        out->mistake_example = i;
        return;
    }
}

/* One value that is that much larger than all others would have its feature scaled down to nothing. */
static int find_mistakes(const struct shmt_standard_wish *wish, struct moments *of, struct shmt_standard *out,
                         struct shmt_error *e) {
    each_example(wish, of, add_size);
    for (uint32_t j = 0; j < out->n_features; j++) {
        const bool is_mistake = of[j].here > ENOUGH && of[j].most > MONSTROUS * of[j].second && of[j].second > 0;
        of[j].limit = is_mistake ? sqrt(of[j].most * of[j].second) : INFINITY; /* between the two */
        of[j].here = 0;
        if (!is_mistake) continue;
        if (out->n_mistakes == 0 || of[j].most > out->mistake) {
            out->mistake = of[j].most;
            out->usual = of[j].second;
            out->mistake_column = j;
        }
        out->n_mistakes++;
    }
    if (out->n_mistakes == 0) return 0;
    find_place(wish, out);
    out->limit = calloc(out->n_features + UINT64_C(1), sizeof *out->limit);
    if (!out->limit) return shmt_no_memory(e, "for the sizes of %u features", out->n_features);
    for (uint32_t j = 0; j < out->n_features; j++) out->limit[j] = of[j].limit;
    return 0;
}

static uint64_t count_values(const struct moments *of, uint32_t n_features, uint64_t *used) {
    uint64_t all = 0;
    *used = 0;
    for (uint32_t j = 0; j < n_features; j++) {
        all += of[j].here;
        *used += of[j].here > 0;
    }
    return all;
}

/* ---- of tables ---- */

/* A spread below what floats can tell apart is none. */
static double root_of(double square, double mean) {
    return square > FLOAT_STEP * FLOAT_STEP * mean * mean ? sqrt(square) : mean != 0 ? fabs(mean) : 1;
}

static void standardise(const struct shmt_standard_wish *wish, struct moments *of, struct shmt_standard *out) {
    const double n = (double)wish->n;
    for (uint32_t j = 0; j < out->n_features; j++) of[j].mean = wish->bias ? of[j].sum / n : 0;
    each_example(wish, of, add_distance);
    for (uint32_t j = 0; j < out->n_features; j++) {
        const double mean = of[j].mean, absent = n - (double)of[j].here;
        out->mean[j] = mean;
        out->scale[j] = root_of((of[j].off + absent * mean * mean) / n, mean);
    }
}

/* ---- of sparse data ---- */

struct size {
    double of;
    uint64_t n;
};

static int by_size(const void *a, const void *b) {
    const struct size *x = a, *y = b;
    return (x->of > y->of) - (x->of < y->of);
}

/* The root mean square that half of all entries are below; NaN: no memory. */
static double median_size(const struct moments *of, uint32_t n_features, uint64_t all) {
    struct size *size = malloc(n_features * sizeof *size);
    uint64_t below = 0;
    double median = 0;
    if (!size) return NAN;
    for (uint32_t j = 0; j < n_features; j++)
        size[j] = (struct size){of[j].here > 0 ? sqrt(of[j].squares / (double)of[j].here) : 0, of[j].here};
    qsort(size, n_features, sizeof *size, by_size);
    for (uint32_t j = 0; j < n_features && 2 * below < all; j++) {
        below += size[j].n;
        median = size[j].of;
    }
    free(size);
    return median;
}

static int scale_down(const struct moments *of, uint64_t all, struct shmt_standard *out, struct shmt_error *e) {
    const double median = median_size(of, out->n_features, all);
    if (isnan(median)) return shmt_no_memory(e, "for the sizes of %u features", out->n_features);
    if (median == 0) { /* values whose squares are 0 */
        shmt_standard_free(out);
        return 0;
    }
    const double unit = median > FAR || median < FAR_BELOW ? median : 1;
    bool changes = unit != 1 || out->limit != NULL;
    for (uint32_t j = 0; j < out->n_features; j++) {
        const double size = of[j].here > 0 ? sqrt(of[j].squares / (double)of[j].here) : 0;
        out->mean[j] = 0;
        out->scale[j] = unit * fmax(1, size / (LARGE * median));
        changes = changes || out->scale[j] != 1;
    }
    if (!changes) shmt_standard_free(out);
    return 0;
}

/* ---- the data ---- */

/* What is a mistake becomes the mean. */
static float scaled(const struct shmt_standard *s, uint32_t j, double x) {
    return s->limit && fabs(x) > s->limit[j] ? 0 : (float)((x - s->mean[j]) / s->scale[j]);
}

static int out_of_memory(struct shmt_error *e) { return shmt_no_memory(e, "for data with its features on one scale"); }

/* A set's own arrays may be written, as nobody has read them yet; in place of others, and of ones that are not there, a copy. NULL:
 * no memory. */
static float *own_values(struct shmt_load *load, const float *of, uint64_t n, float **copy) {
    if (of && !load->in_place) return (float *)(uintptr_t)of;
    float *own = *copy = calloc(shmt_max_u64(1, n), sizeof *own);
    for (uint64_t at = 0; own && at < n; at++) own[at] = of ? of[at] : 1;
    return own;
}

static int scale_dense(const struct shmt_standard *s, struct shmt_load *load, struct shmt_standard_copy *copy,
                       struct shmt_error *e) {
    const uint64_t n = load->data.n_examples, width = load->data.n_features;
    float *row = own_values(load, load->data.dense, n * width, &copy->dense);
    if (!row) return out_of_memory(e);
    load->data.dense = row;
    for (uint64_t i = 0; i < n; i++, row += width)
        for (uint32_t j = 0; j < width; j++) row[j] = scaled(s, j, (double)row[j]);
    return 0;
}

static int scale_sparse(const struct shmt_standard *s, struct shmt_load *load, struct shmt_standard_copy *copy,
                        struct shmt_error *e) {
    const struct shmtrain_data *data = &load->data;
    const uint64_t n = data->start[data->n_examples];
    float *value = own_values(load, data->value, n, &copy->value);
    if (!value) return out_of_memory(e);
    for (uint64_t at = 0; at < n; at++) value[at] = scaled(s, data->id[at], (double)value[at]);
    load->data.value = value;
    return 0;
}

/* A row of a table with all features that training has: what is 0 before is -mean / scale behind. */
static void grow_row(const struct shmt_standard *s, const struct shmtrain_data *data, uint64_t i, const uint32_t *column,
                     uint64_t n, float *wide, float *out) {
    for (uint64_t k = 0; k < n; k++) wide[column[k]] = 0;
    for (uint64_t at = data->start[i]; at < data->start[i + 1]; at++) wide[data->id[at]] = data->value ? data->value[at] : 1;
    for (uint64_t k = 0; k < n; k++) out[k] = scaled(s, column[k], (double)wide[column[k]]);
}

static int grow(const struct shmt_standard *s, struct shmt_load *load, const uint32_t *column, uint64_t n,
                struct shmt_standard_copy *copy, struct shmt_error *e) {
    struct shmtrain_data *data = &load->data;
    const uint64_t rows = data->n_examples;
    float *wide = calloc(data->n_features, sizeof *wide);
    copy->start = malloc((rows + 1) * sizeof *copy->start);
    copy->id = malloc(rows * n * sizeof *copy->id);
    copy->value = malloc(rows * n * sizeof *copy->value);
    if (!wide || !copy->start || !copy->id || !copy->value) {
        free(wide);
        return out_of_memory(e);
    }
    for (uint64_t i = 0; i <= rows; i++) copy->start[i] = i * n;
    for (uint64_t i = 0; i < rows; i++) {
        memcpy(copy->id + i * n, column, n * sizeof *column);
        grow_row(s, data, i, column, n, wide, copy->value + i * n);
    }
    free(wide);
    data->start = copy->start;
    data->id = copy->id;
    data->value = copy->value;
    data->n_nonzeros = rows * n;
    return 0;
}

static double mean_square(const struct shmtrain_data *data) {
    const uint64_t n = data->dense ? data->n_examples * data->n_features : data->start[data->n_examples];
    const float *value = data->dense ? data->dense : data->value;
    double sum = 0;
    for (uint64_t at = 0; at < n; at++) sum += (double)value[at] * (double)value[at];
    return data->n_examples > 0 ? sum / (double)data->n_examples : 0;
}

/* The columns that training has, ascending: (n), to be freed. */
static uint32_t *list_used(const struct moments *of, uint32_t n_features, uint64_t n) {
    uint32_t *out = calloc(n + 1, sizeof *out);
    uint64_t k = 0;
    for (uint32_t j = 0; out && j < n_features; j++)
        if (of[j].here > 0) out[k++] = j;
    return out;
}

static int grow_both(const struct shmt_standard_wish *wish, const struct moments *of, uint64_t used, struct shmt_standard *out,
                     struct shmt_error *e) {
    uint32_t *column = list_used(of, out->n_features, used);
    int rc = column ? grow(out, wish->train, column, used, &out->train, e) : out_of_memory(e);
    if (rc == 0 && wish->valid) rc = grow(out, wish->valid, column, used, &out->valid, e);
    free(column);
    return rc;
}

static int scale_both(const struct shmt_standard_wish *wish, struct shmt_standard *out, struct shmt_error *e) {
    const bool dense = wish->train->data.dense != NULL;
    int rc = dense ? scale_dense(out, wish->train, &out->train, e) : scale_sparse(out, wish->train, &out->train, e);
    if (rc < 0 || !wish->valid) return rc;
    return dense ? scale_dense(out, wish->valid, &out->valid, e) : scale_sparse(out, wish->valid, &out->valid, e);
}

/* Every row has all columns, and nothing else. */
static bool is_complete(const struct shmt_load *load, uint64_t used) {
    const struct shmtrain_data *data = &load->data;
    return data->dense || (data->n_features == used && data->start[data->n_examples] == data->n_examples * used);
}

static int change(const struct shmt_standard_wish *wish, struct moments *of, struct shmt_standard *out, struct shmt_error *e) {
    struct shmtrain_data *data = &wish->train->data;
    uint64_t used;
    const uint64_t all = count_values(of, out->n_features, &used);
    const bool is_table = (double)all > TABLE * (double)wish->n * (double)used;
    const bool complete = is_complete(wish->train, used) && (!wish->valid || is_complete(wish->valid, used));
    const bool grows = is_table && !complete && wish->may_grow;
    int rc = 0;
    if (all == 0 || (!grows && !data->dense && !data->value)) {
        shmt_standard_free(out);
        return 0;
    }
    if (grows || (is_table && complete))
        standardise(wish, of, out);
    else
        rc = scale_down(of, all, out, e);
    if (rc < 0 || !out->scale) return rc;
    rc = grows ? grow_both(wish, of, used, out, e) : scale_both(wish, out, e);
    if (rc == 0) data->mean_square = mean_square(data);
    return rc;
}

uint64_t shmt_standard_work_bytes(const struct shmt_load *load) {
    const double cells = (double)load->totals.n_examples * load->data.n_features, n = (double)load->totals.n_nonzeros;
    const uint64_t counts = load->data.n_features * (sizeof(struct moments) + 2 * sizeof(double));
    if (load->data.n_features > WIDEST) return 0;
    if (!load->dense && n > TABLE * cells) return counts + (uint64_t)cells * 8 + load->totals.n_examples * sizeof(uint64_t);
    return counts + (load->in_place ? (load->dense ? (uint64_t)cells : load->totals.n_nonzeros) * sizeof(float) : 0);
}

int shmt_standard_make(const struct shmt_standard_wish *wish, struct shmt_standard *out, struct shmt_error *e) {
    const struct shmtrain_data *data = &wish->train->data;
    const uint32_t n = data->n_features;
    *out = (struct shmt_standard){.n_features = n, .by_place = wish->by_place};
    if (n == 0 || n > WIDEST || wish->n == 0) return 0;
    struct moments *of = calloc(n, sizeof *of);
    out->mean = calloc(n, sizeof *out->mean);
    out->scale = calloc(n, sizeof *out->scale);
    int rc = of && out->mean && out->scale ? 0 : out_of_memory(e);
    if (rc == 0) rc = find_mistakes(wish, of, out, e);
    if (rc == 0) each_example(wish, of, add_value);
    if (rc == 0) rc = change(wish, of, out, e);
    free(of);
    return rc;
}

int shmt_standard_look(const struct shmt_standard_wish *wish, struct shmt_standard *out, struct shmt_error *e) {
    const struct shmtrain_data *data = &wish->train->data;
    const uint32_t n = data->n_features;
    *out = (struct shmt_standard){.n_features = n, .by_place = wish->by_place};
    if (n == 0 || n > LOOKED || wish->n == 0 || wish->train->totals.n_nonzeros > LOOKED_AT) return 0;
    if (!data->dense && !data->value) return 0;
    struct moments *of = calloc(n, sizeof *of);
    const int rc = of ? find_mistakes(wish, of, out, e) : out_of_memory(e);
    free(of);
    return rc;
}

/* ---- the parameters ---- */

/* Of one score: weights of all features, (n_features) by column, and its bias; in place. */
static void unscale(const struct shmt_standard *s, float *weight, uint64_t stride, float *bias) {
    double off = 0;
    for (uint32_t j = 0; j < s->n_features; j++) {
        const double w = (double)weight[j * stride] / s->scale[j];
        off += w * s->mean[j];
        weight[j * stride] = (float)w;
    }
    if (bias) *bias = (float)((double)*bias - off);
}

static int undo_sparse(const struct shmt_standard *s, const struct shmt_held *held, struct shmt_error *e) {
    const uint64_t rows = held->spec->table[0].rows;
    float *weight = malloc(rows * sizeof *weight);
    if (!weight) return out_of_memory(e);
    int rc = s->by_place ? held->backend->store->read(held->store, 0, 0, rows, weight)
                         : shmt_places_read(held, 0, 0, rows, weight, e);
    if (rc == 0) unscale(s, weight, 1, rows > s->n_features ? &weight[s->n_features] : NULL);
    if (rc == 0)
        rc = s->by_place ? held->backend->store->write(held->store, 0, 0, rows, weight)
                         : shmt_places_write(held, 0, 0, rows, weight, e);
    free(weight);
    return rc;
}

static int undo_softmax(const struct shmt_standard *s, const struct shmt_held *held) {
    const struct shmt_table_spec *table = &held->spec->table[0];
    float *weight = shmt_array_at(held->backend, held->store, SHMT_ARRAY_WEIGHT);
    float *bias = held->spec->n_tables > 1 ? held->backend->store->array(held->store, SHMT_ARRAY_WEIGHT, 1, 0).at : NULL;
    for (uint64_t k = 0; k < table->rows; k++) unscale(s, weight + k * table->width, 1, bias ? &bias[k] : NULL);
    return 0;
}

int shmt_standard_undo(const struct shmt_standard *s, const struct shmtrain_model *model, const struct shmt_held *held,
                       struct shmt_error *e) {
    if (!s->scale) return 0;
    return model == &SHMT_MODEL_SOFTMAX ? undo_softmax(s, held) : undo_sparse(s, held, e);
}

static void free_copy(struct shmt_standard_copy *copy) {
    free(copy->start);
    free(copy->id);
    free(copy->value);
    free(copy->dense);
}

void shmt_standard_free(struct shmt_standard *s) {
    struct shmt_standard was = *s;
    *s = (struct shmt_standard){0};
    free(was.mean);
    free(was.scale);
    free(was.limit);
    free_copy(&was.train);
    free_copy(&was.valid);
}
