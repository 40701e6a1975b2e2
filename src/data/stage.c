/* Rows between reading and their place: see stage.h. */
#include "data/stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "data/source_priv.h"

#define LEAST_BYTES ((uint64_t)2 << 20) /* a huge page: growing moves whole ones */

/* ---- memory ---- */

static uint64_t bytes_of(const struct shmt_stage *s) { return s->id.bytes + s->value.bytes + s->label.bytes + s->size.bytes; }

/* Whether there is room for `need` bytes. */
static bool grow(struct shmt_stage *stage, struct shmt_growing *g, uint64_t need) {
    if (need <= g->bytes) return true;
    uint64_t bytes = shmt_max_u64(LEAST_BYTES, g->bytes);
    while (bytes < need) bytes *= 2;
    if (bytes_of(stage) + (bytes - g->bytes) > stage->most_bytes) return false;
    void *base = g->base ? mremap(g->base, g->bytes, bytes, MREMAP_MAYMOVE)
                         : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return false;
    (void)madvise(base, bytes, MADV_HUGEPAGE); /* where there are none, ordinary ones do */
    *g = (struct shmt_growing){base, bytes};
    return true;
}

static void give_back(struct shmt_growing *g) {
    if (g->base) munmap(g->base, g->bytes);
    *g = (struct shmt_growing){0};
}

void shmt_stage_free(struct shmt_stage *stage) {
    give_back(&stage->id);
    give_back(&stage->value);
    give_back(&stage->label);
    give_back(&stage->size);
    stage->n_examples = stage->n_nonzeros = 0;
    stage->has_values = stage->wide = false;
}

static uint32_t *ids(const struct shmt_stage *stage) { return (uint32_t *)(void *)stage->id.base; }
static uint64_t *wide_ids(const struct shmt_stage *stage) { return (uint64_t *)(void *)stage->id.base; }
static float *values(const struct shmt_stage *stage) { return (float *)(void *)stage->value.base; }
static float *labels(const struct shmt_stage *stage) { return (float *)(void *)stage->label.base; }
static uint32_t *sizes(const struct shmt_stage *stage) { return (uint32_t *)(void *)stage->size.base; }

/* ---- adding ---- */

static bool are_ones(const float *value, uint64_t n) {
    uint32_t others = 0;
    for (uint64_t i = 0; i < n; i++) others |= value[i] != 1;
    return others == 0;
}

/* The first value other than 1: those before it are written down now. */
static void begin_values(struct shmt_stage *stage) {
    float *value = values(stage);
    for (uint64_t i = 0; i < stage->n_nonzeros; i++) value[i] = 1;
    stage->has_values = true;
}

/* The first id that takes more than 32 bits: those before it get as many, from the last one on. */
static void begin_wide(struct shmt_stage *stage) {
    const uint32_t *narrow = ids(stage);
    uint64_t *wide = wide_ids(stage);
    for (uint64_t i = stage->n_nonzeros; i-- > 0;) wide[i] = narrow[i];
    stage->wide = true;
}

/* What the stage is to have room for. */
struct want {
    uint64_t n; /* more nonzeros */
    bool with_values, wide;
};

static bool make_room(struct shmt_stage *stage, const struct want *want) {
    const uint64_t nonzeros = stage->n_nonzeros + want->n, examples = (stage->n_examples + 1) * sizeof(float);
    return want->n <= UINT32_MAX && grow(stage, &stage->id, nonzeros * (want->wide ? sizeof(uint64_t) : sizeof(uint32_t))) &&
           (!want->with_values || grow(stage, &stage->value, nonzeros * sizeof(float))) &&
           grow(stage, &stage->label, examples) && grow(stage, &stage->size, examples);
}

static void put_ids(struct shmt_stage *stage, const uint64_t *id, uint64_t n) {
    if (stage->wide) {
        memcpy(wide_ids(stage) + stage->n_nonzeros, id, n * sizeof *id);
        return;
    }
    uint32_t *to = ids(stage) + stage->n_nonzeros;
    for (uint64_t i = 0; i < n; i++) to[i] = (uint32_t)id[i];
}

void shmt_stage_add(struct shmt_stage *stage, float label, const uint64_t *id, const float *value, uint64_t n) {
    for (uint64_t i = 0; stage->gathers && i < n; i++) shmt_ids_add(&stage->ids, id[i]);
    if (stage->given_up) return;
    const struct want want = {.n = n,
                              .with_values = stage->has_values || !are_ones(value, n),
                              .wide = stage->wide || (n > 0 && id[n - 1] > UINT32_MAX)}; /* ids ascend */
    if (!make_room(stage, &want)) {
        shmt_stage_free(stage);
        stage->given_up = true;
        return;
    }
    if (want.with_values && !stage->has_values) begin_values(stage);
    if (want.wide && !stage->wide) begin_wide(stage);
    if (n > 0) put_ids(stage, id, n);
    if (n > 0 && want.with_values) memcpy(values(stage) + stage->n_nonzeros, value, n * sizeof *value);
    labels(stage)[stage->n_examples] = label;
    sizes(stage)[stage->n_examples++] = (uint32_t)n;
    stage->n_nonzeros += n;
}

/* ---- the rows of a part ---- */

void shmt_stage_gather(const struct shmt_stage *stage, const struct shmt_part *part, struct shmt_ids *into) {
    const uint64_t end = part->staged_nonzero + part->staged_nonzeros;
    for (uint64_t i = part->staged_nonzero; i < end; i++) shmt_ids_add(into, stage->wide ? wide_ids(stage)[i] : ids(stage)[i]);
}

/* The rows of a part, one after the other, with their columns. */
struct walk {
    const struct shmt_stage *stage;
    const struct shmt_columns *columns;
    uint64_t at;      /* the next row's first nonzero */
    uint64_t example; /* and its example, in the stage */
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

static int walk_begin(struct walk *walk, const struct shmt_stage *stage, const struct shmt_columns *columns,
                      const struct shmt_part *part, struct shmt_error *e) {
    uint64_t longest = 1;
    for (uint64_t i = 0; i < part->n_examples; i++) longest = shmt_max_u64(longest, sizes(stage)[part->staged_example + i]);
    *walk = (struct walk){.stage = stage, .columns = columns, .at = part->staged_nonzero, .example = part->staged_example};
    walk->id = malloc(longest * sizeof *walk->id);
    walk->column = malloc(longest * sizeof *walk->column);
    walk->value = malloc(longest * sizeof *walk->value);
    if (walk->id && walk->column && walk->value) return 0;
    walk_end(walk);
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a row of %llu nonzeros", (unsigned long long)longest);
}

static void walk_on(struct walk *walk) {
    const struct shmt_stage *stage = walk->stage;
    const uint64_t n = sizes(stage)[walk->example++];
    for (uint64_t i = 0; i < n; i++) {
        walk->id[i] = stage->wide ? wide_ids(stage)[walk->at + i] : ids(stage)[walk->at + i];
        walk->value[i] = stage->has_values ? values(stage)[walk->at + i] : 1;
    }
    walk->at += n;
    walk->n = shmt_columns_place(walk->columns, walk->id, n, walk->column, walk->value);
}

int shmt_stage_recount(const struct shmt_stage *stage, const struct shmt_columns *columns, struct shmt_part *part,
                       struct shmt_error *e) {
    struct walk walk;
    if (part->n_examples == 0) return 0;
    const int rc = walk_begin(&walk, stage, columns, part, e);
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
static int fill_rows(const struct shmt_stage *stage, const struct shmt_part *part, uint64_t first, uint64_t nonzero,
                     const struct shmt_arrays *into, struct shmt_error *e) {
    struct walk walk;
    const int rc = walk_begin(&walk, stage, &into->columns, part, e);
    if (rc < 0) return rc;
    for (uint64_t i = 0; i < part->n_examples; i++) {
        walk_on(&walk);
        shmt_arrays_put(into, first + i, nonzero, walk.column, walk.value, walk.n);
        nonzero += walk.n;
    }
    walk_end(&walk);
    return 0;
}

static void fill_values(const struct shmt_stage *stage, const struct shmt_part *part, uint64_t nonzero, float *value_out) {
    if (stage->has_values)
        memcpy(value_out + nonzero, values(stage) + part->staged_nonzero, part->n_nonzeros * sizeof *value_out);
    else
        for (uint64_t j = 0; j < part->n_nonzeros; j++) value_out[nonzero + j] = 1;
}

/* Whole arrays at a time: all elements are columns. */
static void fill_all(const struct shmt_stage *stage, const struct shmt_part *part, uint64_t first, uint64_t nonzero,
                     const struct shmt_arrays *into) {
    const uint32_t *id = part->n_nonzeros > 0 ? ids(stage) + part->staged_nonzero : NULL; /* without any there is no array */
    const uint32_t *size = sizes(stage) + part->staged_example;
    const uint32_t base = into->columns.base;
    for (uint64_t j = 0; j < part->n_nonzeros; j++) into->id[nonzero + j] = id[j] - base;
    if (into->value && part->n_nonzeros > 0) fill_values(stage, part, nonzero, into->value);
    for (uint64_t i = 0; i < part->n_examples; i++) {
        into->start[first + i] = nonzero;
        nonzero += size[i];
    }
}

int shmt_stage_fill(const struct shmt_stage *stages, const struct shmt_part *parts, uint32_t part, uint32_t n_parts,
                    const struct shmt_arrays *into, struct shmt_error *e) {
    const struct shmt_part *p = &parts[part];
    const struct shmt_stage *stage = &stages[p->stage];
    const bool all =
        shmt_columns_are_range(&into->columns) && !stage->wide && !into->dense && p->n_nonzeros == p->staged_nonzeros;
    uint64_t first, first_nonzero;
    int rc = 0;
    shmt_parts_before(parts, part, &first, &first_nonzero);
    if (p->n_examples > 0) {
        if (all)
            fill_all(stage, p, first, first_nonzero, into);
        else
            rc = fill_rows(stage, p, first, first_nonzero, into, e);
        memcpy(into->label + first, labels(stage) + p->staged_example, p->n_examples * sizeof *into->label);
    }
    if (part + 1 == n_parts && into->start) into->start[first + p->n_examples] = first_nonzero + p->n_nonzeros;
    return rc;
}
