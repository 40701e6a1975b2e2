/* Arrays of the application as a source: see given.h, and <shmtrain/arrays.h> for what they must be.
 *
 * Rows are checked whenever they are read: counting refuses them with their place. Filling reads them again, and nothing
 * that has changed meanwhile makes it write outside of its arrays. */
#include "data/given.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "data/source_priv.h"
#include "data/row_buffer.h"
#include "base/checked.h"

struct source {
    struct shmt_source source;
    struct shmt_source_ops ops; /* its own: which ids it has is the application's word */
    const struct shmt_given *given;
    bool labelled;
};

static const struct source *source_of(const struct shmt_source *source) { return (const struct source *)source; }

static bool is_dense(const struct shmtrain_arrays *a) { return a->dense != NULL; }

/* ---- what has been given ---- */

static bool is_aligned(const void *array, uint64_t to) { return (uintptr_t)array % to == 0; }

static const char *misaligned(const struct shmtrain_arrays *a) {
    const struct {
        const void *array;
        uint64_t to;
        const char *name;
    } arrays[] = {{a->start, _Alignof(uint64_t), "start"},     {a->id, _Alignof(uint32_t), "id"},
                  {a->wide_id, _Alignof(uint64_t), "wide_id"}, {a->value, _Alignof(float), "value"},
                  {a->dense, _Alignof(float), "dense"},        {a->label, _Alignof(float), "label"},
                  {a->weight, _Alignof(float), "weight"}};
    for (uint32_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (!is_aligned(arrays[i].array, arrays[i].to)) return arrays[i].name;
    return NULL;
}

static const char *wrong_with_dense(const struct shmtrain_arrays *a) {
    uint64_t floats, bytes;
    if (a->start || a->id || a->wide_id || a->value || a->n_entries > 0)
        return "dense rows have no start, id, wide_id, value or n_entries";
    if (a->n_features == 0) return "dense rows need n_features, the number of values in each";
    if (a->stride < a->n_features) return "stride is below n_features: rows would overlap";
    if (!shmt_mul_u64(a->n_examples, a->stride, &floats) || !shmt_mul_u64(floats, sizeof(float), &bytes) || bytes > INT64_MAX)
        return "n_examples rows of that stride are more than memory can hold";
    return NULL;
}

static const char *wrong_with_sparse(const struct shmtrain_arrays *a) {
    if (!a->start) return "either start (sparse rows) or dense must be set";
    if (a->stride > 0) return "stride is for dense rows";
    if (a->id && a->wide_id) return "only one of id and wide_id can be set";
    if (a->n_entries > 0 && !a->id && !a->wide_id) return "n_entries entries need id or wide_id";
    if (a->n_entries > INT64_MAX / sizeof(uint64_t)) return "n_entries is more than memory can hold";
    return NULL;
}

static struct shmt_example_shape shape_of(const struct shmtrain_arrays *a) {
    return (struct shmt_example_shape){a->channels, a->height, a->width};
}

static const char *wrong_with_shape(const struct shmtrain_arrays *a) {
    const struct shmt_example_shape shape = shape_of(a);
    if ((a->channels | a->height | a->width) == 0 || shmt_example_shape_has(&shape, a->n_features)) return NULL;
    return "channels * height * width is not n_features";
}

int shmt_given_check(struct shmt_given *given, struct shmt_error *e) {
    struct shmtrain_arrays *a = &given->of;
    const char *wrong = NULL, *array = misaligned(a);
    if (is_dense(a) && a->stride == 0) a->stride = a->n_features;
    given->stride = a->stride;
    if (array) return shmt_refuse(e, "%s: %s is not aligned to its elements", given->name, array);
    if (a->n_examples == 0) return shmt_refuse(e, "%s: there are no examples (n_examples is 0)", given->name);
    if (a->n_examples > UINT32_MAX)
        return shmt_refuse(e, "%s: n_examples is %" PRIu64 "; at most 4294967295 are possible", given->name, a->n_examples);
    if (a->n_features >= UINT32_MAX)
        return shmt_refuse(e, "%s: n_features is %" PRIu64 "; at most 4294967294 are possible", given->name, a->n_features);
    if (a->borrowed > 1) wrong = "borrowed is neither 0 nor 1";
    if (!wrong) wrong = is_dense(a) ? wrong_with_dense(a) : wrong_with_sparse(a);
    if (!wrong) wrong = wrong_with_shape(a);
    return wrong ? shmt_refuse(e, "%s: %s", given->name, wrong) : 0;
}

/* ---- rows ---- */

/* One row after the other, checked, in memory of its own. */
struct rows {
    const struct source *source;
    struct shmt_row row;
    uint32_t *column; /* (room) of the row when it has been placed */
    uint64_t room, n_columns;
};

static void rows_close(struct rows *rows) {
    free(rows->row.id);
    free(rows->row.value);
    free(rows->column);
}

static int make_room(struct rows *rows, uint64_t n, struct shmt_error *e) {
    if (n <= rows->room) return 0;
    rows_close(rows);
    rows->room = shmt_max_u64(2 * n, 64);
    rows->row.id = malloc(rows->room * sizeof *rows->row.id);
    rows->row.value = malloc(rows->room * sizeof *rows->row.value);
    rows->column = malloc(rows->room * sizeof *rows->column);
    if (rows->row.id && rows->row.value && rows->column) return 0;
    return shmt_no_memory(e, "for an example of %s", rows->source->source.name);
}

static int refuse_start(const struct rows *rows, uint64_t i, struct shmt_error *e) {
    const struct shmt_given *given = rows->source->given;
    const uint64_t n_entries = given->first + given->of.n_entries; /* all as the caller counts */
    const uint64_t from = given->first + given->of.start[i], to = given->first + given->of.start[i + 1];
    if (to < from)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s: example %" PRIu64 ": start[%" PRIu64 "] is %" PRIu64 ", below start[%" PRIu64
                         "], which is %" PRIu64,
                         rows->source->source.name, i, i + 1, to, i, from);
    if (to > n_entries)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s: example %" PRIu64 ": start[%" PRIu64 "] is %" PRIu64 ", beyond the %" PRIu64 " entries",
                         rows->source->source.name, i, i + 1, to, n_entries);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: example %" PRIu64 " has %" PRIu64 " entries; at most 4294967294 fit",
                     rows->source->source.name, i, to - from);
}

static int refuse_number(const struct rows *rows, uint64_t i, uint64_t entry, const char *array, uint64_t at,
                         struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: example %" PRIu64 ", entry %" PRIu64 ": %s[%" PRIu64 "] is not a finite number",
                     rows->source->source.name, i, entry, array, at);
}

static int refuse_id(const struct rows *rows, uint64_t i, uint64_t entry, uint64_t id, uint64_t before, struct shmt_error *e) {
    const struct shmtrain_arrays *a = &rows->source->given->of;
    if (a->n_features > 0 && id >= a->n_features)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s: example %" PRIu64 ", entry %" PRIu64 ": id %" PRIu64
                         " is not below n_features, which is %" PRIu64,
                         rows->source->source.name, i, entry, id, a->n_features);
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "%s: example %" PRIu64 ", entry %" PRIu64 ": id %" PRIu64 " follows id %" PRIu64
                     ": ids must ascend within an example, and none may occur twice",
                     rows->source->source.name, i, entry, id, before);
}

static int read_sparse(struct rows *rows, uint64_t i, struct shmt_error *e) {
    const struct shmtrain_arrays *a = &rows->source->given->of;
    const uint64_t from = a->start[i], to = a->start[i + 1];
    struct shmt_row *row = &rows->row;
    uint64_t n = 0, last = 0;
    if (to < from || to > a->n_entries || to - from >= UINT32_MAX) return refuse_start(rows, i, e);
    const int rc = make_room(rows, to - from, e);
    if (rc < 0) return rc;
    row->min_id = UINT64_MAX;
    row->max_id = 0;
    for (uint64_t j = from; j < to; j++) {
        const uint64_t id = a->id ? a->id[j] : a->wide_id[j];
        const float value = a->value ? a->value[j] : 1;
        if ((j > from && id <= last) || (a->n_features > 0 && id >= a->n_features))
            return refuse_id(rows, i, j - from, id, last, e);
        if (!isfinite(value)) return refuse_number(rows, i, j - from, "value", rows->source->given->first + j, e);
        if (j == from) row->min_id = id;
        row->max_id = last = id;
        row->id[n] = id;
        row->value[n] = value;
        n += value != 0;
    }
    row->n = n;
    return 0;
}

static int read_dense(struct rows *rows, uint64_t i, struct shmt_error *e) {
    const struct shmtrain_arrays *a = &rows->source->given->of;
    struct shmt_row *row = &rows->row;
    uint64_t n = 0;
    const int rc = make_room(rows, a->n_features, e);
    if (rc < 0) return rc;
    for (uint64_t j = 0; j < a->n_features; j++) {
        const float value = a->dense[i * a->stride + j];
        if (!isfinite(value)) return refuse_number(rows, i, j, "dense", i * rows->source->given->stride + j, e);
        row->id[n] = j;
        row->value[n] = value;
        n += value != 0;
    }
    row->n = n;
    return 0;
}

static int read_label(struct rows *rows, uint64_t i, struct shmt_error *e) {
    const struct shmtrain_arrays *a = &rows->source->given->of;
    rows->row.label = 0;
    if (rows->source->labelled) {
        rows->row.label = a->label[i];
        if (!isfinite(rows->row.label))
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s: example %" PRIu64 ": its label is not a finite number",
                             rows->source->source.name, i);
    }
    if (!a->weight || (a->weight[i] >= 0 && isfinite(a->weight[i]))) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: example %" PRIu64 ": its weight is not a finite number, or is negative",
                     rows->source->source.name, i);
}

/* Example i with its columns. */
static int read_row(struct rows *rows, const struct shmt_columns *columns, uint64_t i, struct shmt_row_buffer *buffer,
                    struct shmt_error *e) {
    int rc = is_dense(&rows->source->given->of) ? read_dense(rows, i, e) : read_sparse(rows, i, e);
    if (rc == 0) rc = read_label(rows, i, e);
    if (rc < 0) return rc;
    struct shmt_row *row = &rows->row;
    if (buffer) shmt_row_buffer_add(buffer, row->label, row->id, row->value, row->n);
    rows->n_columns = shmt_columns_place(columns, row->id, row->n, rows->column, row->value);
    return 0;
}

/* ---- the passes ---- */

/* With declared features the ids are these, whichever occur. */
static void count_ids(const struct rows *rows, struct shmt_part *out) {
    const struct shmtrain_arrays *a = &rows->source->given->of;
    const uint64_t low = a->n_features > 0 ? 0 : rows->row.min_id,
                   high = a->n_features > 0 ? a->n_features - 1 : rows->row.max_id;
    if (low > high) return;
    out->min_id = shmt_min_u64(out->min_id, low);
    out->max_id = shmt_max_u64(out->max_id, high);
}

static void count_row(const struct rows *rows, uint64_t i, struct shmt_part *out) {
    const float *value = rows->row.value;
    uint32_t all_ones = out->all_ones;
    double square = 0;
    for (uint64_t j = 0; j < rows->n_columns; j++) {
        square += (double)value[j] * (double)value[j];
        all_ones &= value[j] == 1;
    }
    out->all_ones = all_ones;
    out->n_nonzeros += rows->n_columns;
    shmt_sum_add(&out->square, square);
    count_ids(rows, out);
    shmt_part_add_label(out, rows->row.label, i);
}

static int given_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                       struct shmt_row_buffer *buffer, struct shmt_part *out) {
    const struct source *s = source_of(source);
    const uint64_t n = s->given->of.n_examples, end = shmt_part_begin(n, part + 1, n_parts);
    struct rows rows = {.source = s};
    int rc = make_room(&rows, 1, &out->error);
    if (buffer) buffer->given_up = true; /* rows are in memory as they are: a buffer only gathers their ids */
    for (uint64_t i = shmt_part_begin(n, part, n_parts); i < end && rc == 0; i++) {
        rc = read_row(&rows, columns, i, buffer, &out->error);
        if (rc == 0) count_row(&rows, i, out);
    }
    rows_close(&rows);
    return rc;
}

/* What cannot go where it was counted for. */
static bool fits(const struct rows *rows, const struct shmt_part *counted, const struct shmt_arrays *into, uint64_t room) {
    if (rows->n_columns > room) return false;
    for (uint64_t j = 0; !into->value && !into->dense && j < rows->n_columns; j++)
        if (rows->row.value[j] != 1) return false;
    return counted->labels.n == SHMT_LABELS_KEPT || shmt_labels_have(&counted->labels, rows->row.label);
}

static int given_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                      uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    struct rows rows = {.source = source_of(source)};
    const uint64_t end = first + counted->n_examples, end_nonzero = first_nonzero + counted->n_nonzeros;
    uint64_t at = first_nonzero;
    struct shmt_error why = {0};
    int rc = make_room(&rows, 1, &why);
    (void)part;
    (void)n_parts;
    for (uint64_t i = first; i < end && rc == 0; i++) {
        rc = read_row(&rows, &into->columns, i, NULL, &why);
        if (rc == 0 && !fits(&rows, counted, into, end_nonzero - at)) rc = SHMTRAIN_E_DATA;
        if (rc < 0) break;
        shmt_arrays_put(into, i, at, rows.column, rows.row.value, rows.n_columns);
        into->label[i] = rows.row.label;
        at += rows.n_columns;
    }
    rows_close(&rows);
    if (rc == SHMTRAIN_E_MEMORY) return shmt_fail(e, rc, "%s", why.text);
    if (rc == 0 && at == end_nonzero) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: the arrays changed while they were being read", source->name);
}

static uint64_t given_read_bytes(const struct shmt_source *source) { return shmt_given_copy_bytes(source_of(source)->given); }

/* A run may take them as they are: what a copy takes is known when they have been counted. */
static uint64_t given_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct shmtrain_arrays *a = &source_of(source)->given->of;
    if (!dense || is_dense(a)) return 0;
    return shmt_dense_bytes((double)a->n_examples, a->n_features);
}

static void given_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    snprintf(out, bytes, "%s: example %" PRIu64, source->name, at);
}

static void given_close(struct shmt_source *source) { free(source); }

static const float *given_weights(const struct shmt_source *source) { return source_of(source)->given->of.weight; }

static struct shmt_example_shape given_shape(const struct shmt_source *source) {
    return shape_of(&source_of(source)->given->of);
}

static bool given_has_labels(const struct shmt_source *source) { return source_of(source)->labelled; }

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .fills_buffers = true,
    .has_labels = given_has_labels,
    .count = given_count,
    .fill = given_fill,
    .guess_bytes = given_guess_bytes,
    .read_bytes = given_read_bytes,
    .weights = given_weights,
    .shape = given_shape,
    .place = given_place,
    .close = given_close,
};

const struct shmt_given *shmt_given_of(const struct shmt_source *source) {
    return source->ops->count == given_count ? source_of(source)->given : NULL;
}

int shmt_given_open(const struct shmt_given *given, bool labelled, struct shmt_source **out, struct shmt_error *e) {
    if (labelled && !given->of.label) return shmt_refuse(e, "%s: there are no labels (label is NULL)", given->name);
    struct source *s = calloc(1, sizeof *s);
    if (!s) return shmt_no_memory(e, "to read %s", given->name);
    s->source = (struct shmt_source){&s->ops, given->name};
    s->ops = OPS;
    s->ops.lacks_ids = is_dense(&given->of);
    s->ops.has_any_ids = !is_dense(&given->of) && given->of.n_features == 0;
    s->given = given;
    s->labelled = labelled;
    *out = &s->source;
    return 0;
}
