/* Reading sources as runs do: see sources.h. */
#include "sources.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/flow.h"
#include "data/ids_join.h"
#include "data/row_buffer.h"
#include "fuzz.h"

#define MOST_ELEMENTS 100000 /* of the dense layout */

/* What one way of counting has found. */
struct counted {
    struct shmt_part *part; /* (n_parts) to be freed */
    uint32_t n_parts;
    struct shmt_totals totals;
    struct shmt_error error;
    int status;
};

static const _Atomic uint32_t NO_STOP = 0;

static void count_parts(const struct shmt_source *source, const struct shmt_columns *columns, struct shmt_row_buffer *buffer,
                        struct counted *out) {
    out->part = calloc(out->n_parts, sizeof *out->part);
    FUZZ_CHECK(out->part);
    for (uint32_t i = 0; i < out->n_parts; i++) {
        const int status = shmt_source_count(source, columns, i, out->n_parts, buffer, &out->part[i]);
        FUZZ_CHECK(status == out->part[i].error.status);
    }
}

static void count_flow(const struct shmt_source *source, const struct shmt_columns *columns, struct shmt_row_buffer *buffer,
                       struct counted *out) {
    struct shmt_flow *flow;
    FUZZ_CHECK(shmt_flow_open(source, &NO_STOP, &flow, NULL) == 0);
    int more;
    while ((more = shmt_flow_count(flow, columns, buffer, NULL)) > 0) continue;
    FUZZ_CHECK(more == 0 && shmt_flow_take_parts(flow, &out->part, &out->n_parts, NULL) == 0);
    shmt_flow_close(flow);
}

static struct counted count(const struct shmt_source *source, uint32_t n_parts, const struct shmt_columns *columns,
                            struct shmt_row_buffer *buffer) {
    struct counted out = {.n_parts = n_parts};
    if (shmt_source_flows(source))
        count_flow(source, columns, buffer, &out);
    else
        count_parts(source, columns, buffer, &out);
    for (uint32_t i = 0; i < out.n_parts; i++)
        if (out.part[i].error.status != 0) fuzz_check_error(out.part[i].error.status, &out.part[i].error);
    out.status = shmt_parts_total(source, out.part, out.n_parts, &out.totals, &out.error);
    if (out.status != 0) fuzz_check_error(out.status, &out.error);
    return out;
}

/* However the work was cut, and whether rows were kept or not. Of text, the same line is the first bad one. */
static void check_same(const struct counted *a, const struct counted *b, bool is_text) {
    FUZZ_CHECK(a->status == b->status);
    if (a->status == 0) FUZZ_CHECK(fuzz_same(&a->totals, &b->totals, sizeof a->totals));
    if (a->status != 0 && is_text) FUZZ_CHECK(strcmp(a->error.text, b->error.text) == 0);
}

/* ---- memory ---- */

static void *get(uint64_t n, uint64_t each) {
    void *memory = n < SIZE_MAX / 16 ? malloc(n > 0 ? n * each : 1) : NULL;
    FUZZ_CHECK(memory);
    memset(memory, 0xa5, n * each);
    return memory;
}

static struct shmt_arrays make_sparse(const struct shmt_totals *t, const struct shmt_columns *columns) {
    return (struct shmt_arrays){.start = get(t->n_examples + 1, sizeof(uint64_t)),
                                .id = get(t->n_nonzeros, sizeof(uint32_t)),
                                .value = t->all_ones ? NULL : get(t->n_nonzeros, sizeof(float)),
                                .label = get(t->n_examples, sizeof(float)),
                                .columns = *columns};
}

static struct shmt_arrays make_dense(const struct shmt_totals *t, const struct shmt_columns *columns) {
    return (struct shmt_arrays){.dense = get(t->n_examples * columns->n_features, sizeof(float)),
                                .label = get(t->n_examples, sizeof(float)),
                                .columns = *columns};
}

static void drop(struct shmt_arrays *a) {
    free(a->start);
    free(a->id);
    free(a->value);
    free(a->dense);
    free(a->label);
}

/* ---- filling ---- */

/* Nobody has changed it since it was counted. */
static void fill(const struct shmt_source *source, struct counted *counted, const struct shmt_arrays *into) {
    struct shmt_flow *flow;
    int more;
    if (!shmt_source_flows(source)) {
        for (uint32_t i = 0; i < counted->n_parts; i++)
            FUZZ_CHECK(shmt_source_fill(source, i, counted->n_parts, counted->part, into, NULL) == 0);
        return;
    }
    FUZZ_CHECK(shmt_flow_open(source, &NO_STOP, &flow, NULL) == 0);
    while ((more = shmt_flow_fill(flow, counted->part, counted->n_parts, into, NULL)) > 0) continue;
    FUZZ_CHECK(more == 0 && shmt_flow_check(flow, counted->n_parts, NULL) == 0);
    shmt_flow_close(flow);
}

static void check_rows(const struct shmt_arrays *a, const struct shmt_totals *t, bool any_order) {
    FUZZ_CHECK(t->n_examples >= 1);
    FUZZ_CHECK(a->start[0] == 0 && a->start[t->n_examples] == t->n_nonzeros);
    for (uint64_t i = 0; i < t->n_examples; i++) {
        FUZZ_CHECK(isfinite(a->label[i]) && a->start[i] <= a->start[i + 1] && a->start[i + 1] <= t->n_nonzeros);
        for (uint64_t j = a->start[i]; j < a->start[i + 1]; j++) {
            FUZZ_CHECK(a->id[j] < a->columns.n_features);
            FUZZ_CHECK(any_order || j == a->start[i] || a->id[j - 1] < a->id[j]);
            FUZZ_CHECK(!a->value || isfinite(a->value[j]));
        }
    }
}

static void check_arrays_same(const struct shmt_arrays *a, const struct shmt_arrays *b, const struct shmt_totals *t) {
    FUZZ_CHECK(fuzz_same(a->label, b->label, t->n_examples * sizeof *a->label));
    FUZZ_CHECK(fuzz_same(a->start, b->start, (t->n_examples + 1) * sizeof *a->start));
    FUZZ_CHECK(fuzz_same(a->id, b->id, t->n_nonzeros * sizeof *a->id));
    FUZZ_CHECK(!a->value || fuzz_same(a->value, b->value, t->n_nonzeros * sizeof *a->value));
}

static void check_dense(const struct shmt_arrays *dense, const struct shmt_arrays *sparse, const struct shmt_totals *t) {
    const uint64_t n = sparse->columns.n_features;
    uint64_t nonzeros = 0, expected = 0;
    FUZZ_CHECK(fuzz_same(dense->label, sparse->label, t->n_examples * sizeof *sparse->label));
    for (uint64_t i = 0; i < t->n_examples * n; i++) nonzeros += dense->dense[i] != 0;
    for (uint64_t i = 0; i < t->n_examples; i++)
        for (uint64_t j = sparse->start[i]; j < sparse->start[i + 1]; j++) {
            const float value = sparse->value ? sparse->value[j] : 1, found = dense->dense[i * n + sparse->id[j]];
            FUZZ_CHECK(found == value);
            expected += value != 0;
        }
    FUZZ_CHECK(nonzeros == expected);
}

/* The buffer's rows under `columns`. */
static void check_buffer(const struct shmt_row_buffer *buffer, const struct counted *buffered, const struct counted *counted,
                         const struct shmt_arrays *filled) {
    const uint32_t n = buffered->n_parts;
    struct shmt_arrays from_buffer = make_sparse(&counted->totals, &filled->columns);
    struct shmt_part *part = get(n, sizeof *part);
    FUZZ_CHECK(n == counted->n_parts);
    memcpy(part, buffered->part, n * sizeof *part);
    for (uint32_t i = 0; i < n; i++) {
        FUZZ_CHECK(shmt_row_buffer_recount(buffer, &filled->columns, &part[i], NULL) == 0);
        FUZZ_CHECK(part[i].n_nonzeros == counted->part[i].n_nonzeros && part[i].all_ones == counted->part[i].all_ones);
    }
    for (uint32_t i = 0; i < n; i++) FUZZ_CHECK(shmt_row_buffer_fill(buffer, part, i, n, &from_buffer, NULL) == 0);
    check_arrays_same(filled, &from_buffer, &counted->totals);
    free(part);
    drop(&from_buffer);
}

/* ---- columns ---- */

static bool is_far(const struct shmt_totals *t) { return t->min_id <= t->max_id && t->max_id >= UINT32_MAX - 1; }

static struct shmt_columns choose(const struct shmt_source *source, const struct shmt_totals *t, enum fuzz_columns how,
                                  uint32_t number, struct shmt_row_buffer *buffer, struct shmt_ids *ids) {
    const bool can_list = shmt_source_fills_buffers(source) && !buffer->ids.failed;
    if (how == FUZZ_COLUMNS_HASHED) return (struct shmt_columns){.hash_bits = number, .n_features = (uint32_t)1 << number};
    if (how == FUZZ_COLUMNS_RANGE) return (struct shmt_columns){.base = 1, .n_features = number};
    if (can_list && (how == FUZZ_COLUMNS_LIST || is_far(t))) {
        FUZZ_CHECK(shmt_ids_join(&buffer->ids, 1, "it", ids, NULL) == 0);
        return (struct shmt_columns){.ids = ids, .n_features = ids->n};
    }
    if (t->min_id > t->max_id || is_far(t)) return (struct shmt_columns){.base = 0};
    const uint32_t base = t->min_id > 0;
    return (struct shmt_columns){.base = base, .n_features = (uint32_t)(t->max_id - base + 1)};
}

/* Nothing is left out that was written. */
static void check_complete(const struct counted *all, const struct counted *wanted, const struct shmt_columns *columns) {
    FUZZ_CHECK(wanted->status == 0 && wanted->totals.n_examples == all->totals.n_examples);
    if (columns->ids) FUZZ_CHECK(wanted->totals.n_nonzeros >= all->totals.n_nonzeros);
    if (shmt_columns_are_range(columns) && !is_far(&all->totals) && columns->n_features > all->totals.max_id &&
        columns->base <= all->totals.min_id)
        FUZZ_CHECK(wanted->totals.n_nonzeros == all->totals.n_nonzeros);
}

/* ---- all ---- */

static void fill_all(const struct shmt_source *source, struct counted *counted, const struct shmt_row_buffer *buffer,
                     const struct counted *buffered, const struct shmt_columns *columns, bool any_order) {
    const struct shmt_totals *t = &counted->totals;
    struct shmt_arrays sparse = make_sparse(t, columns);
    fill(source, counted, &sparse);
    check_rows(&sparse, t, any_order);
    if (!buffer->given_up && shmt_source_fills_buffers(source)) check_buffer(buffer, buffered, counted, &sparse);
    if (t->n_examples * columns->n_features <= MOST_ELEMENTS) {
        struct shmt_arrays dense = make_dense(t, columns);
        fill(source, counted, &dense);
        if (!any_order) check_dense(&dense, &sparse, t);
        drop(&dense);
    }
    drop(&sparse);
}

static struct fuzz_summary read_counted(const struct shmt_source *source, uint32_t n_parts, enum fuzz_columns how,
                                        uint32_t number, bool any_order) {
    static const struct shmt_columns ALL = SHMT_ALL_COLUMNS;
    struct shmt_row_buffer buffer = {.most_bytes = (uint64_t)1 << 30, .gathers = how <= FUZZ_COLUMNS_LIST};
    struct shmt_ids ids = {0};
    struct counted one = count(source, 1, &ALL, NULL), several = count(source, n_parts, &ALL, &buffer), wanted = {0};
    struct fuzz_summary found = {.status = one.status};
    check_same(&one, &several, shmt_source_has_any_ids(source));
    if (one.status == 0) {
        const struct shmt_columns columns = choose(source, &one.totals, how, number, &buffer, &ids);
        const struct shmt_totals *t = &one.totals;
        found = (struct fuzz_summary){t->n_examples, t->n_nonzeros, t->min_id, t->max_id, t->mean_square, 0, 0};
        wanted = count(source, n_parts, &columns, NULL);
        check_complete(&one, &wanted, &columns);
        fill_all(source, &wanted, &buffer, &several, &columns, any_order);
    }
    free(one.part);
    free(several.part);
    free(wanted.part);
    shmt_ids_free(&ids);
    shmt_ids_free(&buffer.ids);
    shmt_row_buffer_free(&buffer);
    return found;
}

void fuzz_read_source(struct shmt_source *source, uint32_t n_parts, enum fuzz_columns how, uint32_t number, bool any_order) {
    struct shmt_error e = {0};
    const int status = shmt_source_unpack(source, &e);
    if (status == 0)
        (void)read_counted(source, n_parts, how, number, any_order);
    else
        fuzz_check_error(status, &e);
    shmt_source_close(source);
}

void fuzz_read_file(const char *name, struct fuzz_summary *out) {
    struct shmt_source *source;
    struct shmt_error e = {0};
    memset(out, 0, sizeof *out);
    out->status = shmt_source_open(name, 1, 0, &source, &e);
    if (out->status != 0) {
        fuzz_check_error(out->status, &e);
        return;
    }
    *out = read_counted(source, 1, FUZZ_COLUMNS_FOUND, 0, false);
    shmt_source_close(source);
}
