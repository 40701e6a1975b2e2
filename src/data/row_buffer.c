/* Rows between reading and their place: see row_buffer.h. */
#include "data/row_buffer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "data/source_priv.h"
#include "base/checked.h"
#include "base/sanitizer.h"

#define LEAST_BYTES ((uint64_t)128 << 10)
#define HUGE_BYTES  ((uint64_t)4 << 20) /* huge pages from here on: each is cleared whole, which little data would wait for */

/* ---- memory ---- */

static uint64_t bytes_of(const struct shmt_row_buffer *s) {
    return s->id.bytes + s->value.bytes + s->label.bytes + s->size.bytes;
}

static void *map(uint64_t bytes, int protection) { return mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

/* ThreadSanitizer does not see mremap, and takes the place moved to for that of whoever had it before: there mmap takes it. */
static void *enlarge(const struct shmt_growing *g, uint64_t bytes) {
    if (!SHMT_UNDER_TSAN) return mremap(g->base, g->bytes, bytes, MREMAP_MAYMOVE);
    void *place = map(bytes, PROT_NONE);
    return place == MAP_FAILED ? place : mremap(g->base, g->bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, place);
}

/* Whether there is room for `need` bytes. */
static bool grow(struct shmt_row_buffer *buffer, struct shmt_growing *g, uint64_t need) {
    if (need <= g->bytes) return true;
    uint64_t bytes = shmt_max_u64(LEAST_BYTES, g->bytes);
    while (bytes < need) bytes *= 2;
    if (bytes_of(buffer) + (bytes - g->bytes) > buffer->most_bytes) return false;
    void *base = g->base ? enlarge(g, bytes) : map(bytes, PROT_READ | PROT_WRITE);
    if (base == MAP_FAILED) return false;
    if (bytes >= HUGE_BYTES) (void)madvise(base, bytes, MADV_HUGEPAGE); /* where there are none, ordinary ones do */
    *g = (struct shmt_growing){base, bytes};
    return true;
}

static void give_back(struct shmt_growing *g) {
    if (g->base) munmap(g->base, g->bytes);
    *g = (struct shmt_growing){0};
}

void shmt_row_buffer_free(struct shmt_row_buffer *buffer) {
    give_back(&buffer->id);
    give_back(&buffer->value);
    give_back(&buffer->label);
    give_back(&buffer->size);
    buffer->n_examples = buffer->n_nonzeros = 0;
    buffer->has_values = buffer->wide = false;
}

static uint32_t *ids(const struct shmt_row_buffer *buffer) { return (uint32_t *)(void *)buffer->id.base; }
static uint64_t *wide_ids(const struct shmt_row_buffer *buffer) { return (uint64_t *)(void *)buffer->id.base; }
static float *values(const struct shmt_row_buffer *buffer) { return (float *)(void *)buffer->value.base; }
static float *labels(const struct shmt_row_buffer *buffer) { return (float *)(void *)buffer->label.base; }
static uint32_t *sizes(const struct shmt_row_buffer *buffer) { return (uint32_t *)(void *)buffer->size.base; }

/* ---- adding ---- */

static bool are_ones(const float *value, uint64_t n) {
    uint32_t others = 0;
    for (uint64_t i = 0; i < n; i++) others |= value[i] != 1;
    return others == 0;
}

/* The first value other than 1: those before it are written down now. */
static void begin_values(struct shmt_row_buffer *buffer) {
    float *value = values(buffer);
    for (uint64_t i = 0; i < buffer->n_nonzeros; i++) value[i] = 1;
    buffer->has_values = true;
}

/* The first id that takes more than 32 bits: those before it get as many, from the last one on. */
static void begin_wide(struct shmt_row_buffer *buffer) {
    const uint32_t *narrow = ids(buffer);
    uint64_t *wide = wide_ids(buffer);
    for (uint64_t i = buffer->n_nonzeros; i-- > 0;) wide[i] = narrow[i];
    buffer->wide = true;
}

/* What the buffer is to have room for. */
struct want {
    uint64_t n; /* more nonzeros */
    bool with_values, wide;
};

static bool make_room(struct shmt_row_buffer *buffer, const struct want *want) {
    const uint64_t nonzeros = buffer->n_nonzeros + want->n, examples = (buffer->n_examples + 1) * sizeof(float);
    return want->n <= UINT32_MAX && grow(buffer, &buffer->id, nonzeros * (want->wide ? sizeof(uint64_t) : sizeof(uint32_t))) &&
           (!want->with_values || grow(buffer, &buffer->value, nonzeros * sizeof(float))) &&
           grow(buffer, &buffer->label, examples) && grow(buffer, &buffer->size, examples);
}

static void put_ids(struct shmt_row_buffer *buffer, const uint64_t *id, uint64_t n) {
    if (buffer->wide) {
        memcpy(wide_ids(buffer) + buffer->n_nonzeros, id, n * sizeof *id);
        return;
    }
    uint32_t *to = ids(buffer) + buffer->n_nonzeros;
    for (uint64_t i = 0; i < n; i++) to[i] = (uint32_t)id[i];
}

void shmt_row_buffer_add(struct shmt_row_buffer *buffer, float label, const uint64_t *id, const float *value, uint64_t n) {
    for (uint64_t i = 0; buffer->gathers && i < n; i++) shmt_ids_add(&buffer->ids, id[i]);
    if (buffer->given_up) return;
    const struct want want = {.n = n,
                              .with_values = buffer->has_values || !are_ones(value, n),
                              .wide = buffer->wide || (n > 0 && id[n - 1] > UINT32_MAX)}; /* ids ascend */
    if (!make_room(buffer, &want)) {
        shmt_row_buffer_free(buffer);
        buffer->given_up = true;
        return;
    }
    if (want.with_values && !buffer->has_values) begin_values(buffer);
    if (want.wide && !buffer->wide) begin_wide(buffer);
    if (n > 0) put_ids(buffer, id, n);
    if (n > 0 && want.with_values) memcpy(values(buffer) + buffer->n_nonzeros, value, n * sizeof *value);
    labels(buffer)[buffer->n_examples] = label;
    sizes(buffer)[buffer->n_examples++] = (uint32_t)n;
    buffer->n_nonzeros += n;
}

/* ---- the rows of a part ---- */

void shmt_row_buffer_gather(const struct shmt_row_buffer *buffer, const struct shmt_part *part, struct shmt_ids *into) {
    const uint64_t end = part->buffered_nonzero + part->buffered_nonzeros;
    for (uint64_t i = part->buffered_nonzero; i < end; i++)
        shmt_ids_add(into, buffer->wide ? wide_ids(buffer)[i] : ids(buffer)[i]);
}

/* The rows of a part, one after the other, with their columns. */
struct walk {
    const struct shmt_row_buffer *buffer;
    const struct shmt_columns *columns;
    uint64_t at;      /* the next row's first nonzero */
    uint64_t example; /* and its example, in the buffer */
    uint64_t *id;     /* (room of the longest row) */
    uint32_t *column; /* the same: the row's, n of them */
    float *value;     /* the same */
    uint64_t n;
};

static void walk_end(struct walk *walk) {
    free(walk->id);
    free(walk->column);
    free(walk->value);
}

static int walk_begin(struct walk *walk, const struct shmt_row_buffer *buffer, const struct shmt_columns *columns,
                      const struct shmt_part *part, struct shmt_error *e) {
    uint64_t longest = 1;
    for (uint64_t i = 0; i < part->n_examples; i++) longest = shmt_max_u64(longest, sizes(buffer)[part->buffered_example + i]);
    *walk =
        (struct walk){.buffer = buffer, .columns = columns, .at = part->buffered_nonzero, .example = part->buffered_example};
    walk->id = malloc(longest * sizeof *walk->id);
    walk->column = malloc(longest * sizeof *walk->column);
    walk->value = malloc(longest * sizeof *walk->value);
    if (walk->id && walk->column && walk->value) return 0;
    walk_end(walk);
    return shmt_no_memory(e, "for a row of %llu nonzeros", (unsigned long long)longest);
}

static void walk_on(struct walk *walk) {
    const struct shmt_row_buffer *buffer = walk->buffer;
    const uint64_t n = sizes(buffer)[walk->example++];
    for (uint64_t i = 0; i < n; i++) {
        walk->id[i] = buffer->wide ? wide_ids(buffer)[walk->at + i] : ids(buffer)[walk->at + i];
        walk->value[i] = buffer->has_values ? values(buffer)[walk->at + i] : 1;
    }
    walk->at += n;
    walk->n = shmt_columns_place(walk->columns, walk->id, n, walk->column, walk->value);
}

int shmt_row_buffer_recount(const struct shmt_row_buffer *buffer, const struct shmt_columns *columns, struct shmt_part *part,
                            struct shmt_error *e) {
    struct walk walk;
    if (part->n_examples == 0) return 0;
    const int rc = walk_begin(&walk, buffer, columns, part, e);
    if (rc < 0) return rc;
    part->n_nonzeros = 0;
    part->all_ones = 1;
    part->square = (struct shmt_sum){0, 0};
    for (uint64_t i = 0; i < part->n_examples; i++) {
        walk_on(&walk);
        double square = 0;
        for (uint64_t j = 0; j < walk.n; j++) square += (double)walk.value[j] * walk.value[j];
        shmt_sum_add(&part->square, square);
        part->all_ones &= are_ones(walk.value, walk.n);
        part->n_nonzeros += walk.n;
    }
    walk_end(&walk);
    return 0;
}

/* Row by row: some elements may be no columns, or columns are none of a range, or the layout is dense. */
static int fill_rows(const struct shmt_row_buffer *buffer, const struct shmt_part *part, uint64_t first, uint64_t nonzero,
                     const struct shmt_arrays *into, struct shmt_error *e) {
    struct walk walk;
    const int rc = walk_begin(&walk, buffer, &into->columns, part, e);
    if (rc < 0) return rc;
    for (uint64_t i = 0; i < part->n_examples; i++) {
        walk_on(&walk);
        shmt_arrays_put(into, first + i, nonzero, walk.column, walk.value, walk.n);
        nonzero += walk.n;
    }
    walk_end(&walk);
    return 0;
}

static void fill_values(const struct shmt_row_buffer *buffer, const struct shmt_part *part, uint64_t nonzero,
                        float *value_out) {
    if (buffer->has_values)
        memcpy(value_out + nonzero, values(buffer) + part->buffered_nonzero, part->n_nonzeros * sizeof *value_out);
    else
        for (uint64_t j = 0; j < part->n_nonzeros; j++) value_out[nonzero + j] = 1;
}

/* Whole arrays at a time: all elements are columns. */
static void fill_all(const struct shmt_row_buffer *buffer, const struct shmt_part *part, uint64_t first, uint64_t nonzero,
                     const struct shmt_arrays *into) {
    const uint32_t *id = part->n_nonzeros > 0 ? ids(buffer) + part->buffered_nonzero : NULL; /* without any there is no array */
    const uint32_t *size = sizes(buffer) + part->buffered_example;
    const uint32_t base = into->columns.base;
    for (uint64_t j = 0; j < part->n_nonzeros; j++) into->id[nonzero + j] = id[j] - base;
    if (into->value && part->n_nonzeros > 0) fill_values(buffer, part, nonzero, into->value);
    for (uint64_t i = 0; i < part->n_examples; i++) {
        into->start[first + i] = nonzero;
        nonzero += size[i];
    }
}

int shmt_row_buffer_fill(const struct shmt_row_buffer *buffers, const struct shmt_part *parts, uint32_t part, uint32_t n_parts,
                         const struct shmt_arrays *into, struct shmt_error *e) {
    const struct shmt_part *p = &parts[part];
    const struct shmt_row_buffer *buffer = &buffers[p->buffer];
    const bool all =
        shmt_columns_are_range(&into->columns) && !buffer->wide && !into->dense && p->n_nonzeros == p->buffered_nonzeros;
    uint64_t first, first_nonzero;
    int rc = 0;
    shmt_parts_before(parts, part, &first, &first_nonzero);
    if (p->n_examples > 0) {
        if (all)
            fill_all(buffer, p, first, first_nonzero, into);
        else
            rc = fill_rows(buffer, p, first, first_nonzero, into, e);
        memcpy(into->label + first, labels(buffer) + p->buffered_example, p->n_examples * sizeof *into->label);
    }
    if (part + 1 == n_parts && into->start) into->start[first + p->n_examples] = first_nonzero + p->n_nonzeros;
    return rc;
}
