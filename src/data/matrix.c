/* Examples in memory as arrays of numbers: see matrix.h. */
#include "data/matrix.h"

#include "base/checked.h"
#include "base/show.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

static const struct shmt_matrix *matrix_of(const struct shmt_source *source) { return (const struct shmt_matrix *)source; }

static float label_of(const struct shmt_matrix *m, uint64_t example) {
    float label = 0;
    if (m->label.bytes > 0) shmt_elements_read(&m->label, m->memory, example, false, &label);
    return label;
}

static void draw(const struct shmt_matrix *m, uint64_t example, float *value) {
    shmt_elements_read(&m->value, m->memory, example, true, value);
}

/* ---- counting and filling ---- */

/* Of the values of an example, those that are columns: [columns->base, end). */
static uint64_t end_of_columns(const struct shmt_matrix *m, const struct shmt_columns *columns) {
    return shmt_min_u64(m->value.n_each, columns->base + (uint64_t)columns->n_features);
}

static int refuse_number(const struct shmt_matrix *m, bool is_label, uint64_t example, uint64_t j, struct shmt_error *e) {
    char where[SHMT_NAME_SHOWN + 120];
    m->where(m, is_label, example, j, where, sizeof where);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: expected a number between -3.4e38 and 3.4e38", where);
}

static int count_example(const struct shmt_matrix *m, const struct shmt_columns *columns, uint64_t example, const float *value,
                         struct shmt_part *out) {
    const uint64_t end = end_of_columns(m, columns);
    double square = 0;
    uint64_t nonzeros = 0;
    uint32_t all_ones = out->all_ones;
    for (uint64_t j = 0; j < m->value.n_each; j++)
        if (!isfinite(value[j])) return refuse_number(m, false, example, j, &out->error);
    for (uint64_t j = columns->base; j < end; j++) {
        square += (double)value[j] * (double)value[j];
        nonzeros += value[j] != 0;
        all_ones &= value[j] == 0 || value[j] == 1;
    }
    const float label = label_of(m, example);
    if (!isfinite(label)) return refuse_number(m, true, example, 0, &out->error);
    out->all_ones = all_ones;
    out->n_nonzeros += nonzeros;
    out->min_id = 0;
    out->max_id = m->value.n_each - 1;
    shmt_sum_add(&out->square, square);
    shmt_part_add_label(out, label, example);
    return 0;
}

static int no_memory(const struct shmt_matrix *m, struct shmt_error *e) {
    return shmt_no_memory(e, "for an example of %s", m->source.name);
}

int shmt_matrix_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out) {
    (void)buffer; /* examples are in memory by then */
    const struct shmt_matrix *m = matrix_of(source);
    const uint64_t first = shmt_part_begin(m->n, part, n_parts), end = shmt_part_begin(m->n, part + 1, n_parts);
    float *value = malloc(m->value.n_each * sizeof *value);
    int status = value ? 0 : no_memory(m, &out->error);
    for (uint64_t i = first; i < end && status == 0; i++) {
        draw(m, i, value);
        status = count_example(m, columns, i, value, out);
    }
    free(value);
    return status;
}

/* Moves the nonzeros among value[base .. end) to its beginning, their columns beside them; returns their number. */
static uint64_t compact(float *value, uint32_t *id, uint32_t base, uint64_t end) {
    uint64_t n = 0;
    for (uint64_t j = base; j < end; j++) {
        if (value[j] == 0) continue;
        id[n] = (uint32_t)(j - base);
        value[n++] = value[j];
    }
    return n;
}

int shmt_matrix_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                     uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    (void)part;
    (void)n_parts;
    const struct shmt_matrix *m = matrix_of(source);
    const uint64_t n_each = m->value.n_each, end = end_of_columns(m, &into->columns);
    float *value = malloc(n_each * sizeof *value);
    uint32_t *id = malloc(n_each * sizeof *id);
    const int status = value && id ? 0 : no_memory(m, e);
    for (uint64_t i = first, nonzero = first_nonzero; i < first + counted->n_examples && status == 0; i++) {
        draw(m, i, value);
        const uint64_t n = compact(value, id, into->columns.base, end);
        shmt_arrays_put(into, i, nonzero, id, value, n);
        into->label[i] = label_of(m, i);
        nonzero += n;
    }
    free(value);
    free(id);
    return status;
}

/* How many values are nonzeros is not known before they are unpacked; of drawings on a background, a quarter. */
uint64_t shmt_matrix_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct shmt_matrix *m = matrix_of(source);
    const double n = (double)m->n, n_each = (double)m->value.n_each;
    const double sparse = n * (n_each / 4 * (sizeof(uint32_t) + sizeof(float)) + sizeof(uint64_t) + sizeof(float));
    const double own = (double)m->memory_bytes, arrays = dense ? (double)shmt_dense_bytes(n, m->value.n_each) : sparse;
    return own + arrays < 0x1p64 ? (uint64_t)(own + arrays) : UINT64_MAX;
}

struct shmt_example_shape shmt_matrix_shape(const struct shmt_source *source) {
    return matrix_of(source)->value.shape;
}

/* ---- memory ---- */

/* Shared, so that what one process unpacks is seen by those that count and fill. Pages are taken as they are written. */
int shmt_matrix_make_room(struct shmt_matrix *m, struct shmt_error *e) {
    void *memory = MAP_FAILED;
    if (m->memory_bytes < (uint64_t)1 << 62)
        memory = mmap(NULL, m->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory: %llu MiB are needed to unpack %s",
                         (unsigned long long)(m->memory_bytes >> 20), m->source.name);
    m->memory = memory;
    return 0;
}

void shmt_matrix_free_room(struct shmt_matrix *m) {
    if (m->memory) munmap(m->memory, m->memory_bytes);
    m->memory = NULL;
}
