/* The flat array of parameters: see flat.h. */
#include "ps/flat.h"

#include <stddef.h>
#include <string.h>

#include "base/line.h"
#include "update/merge.h"
#include "update/path.h"

/* Tables begin on lines; where shards are bound to nodes, or parts of the parameters are mapped from here or there, on pages,
 * which are what can be bound, or mapped. */
static uint64_t alignment(const struct shmt_spec *spec) {
    const struct shmt_placement *p = &spec->placement;
    const bool is_bound = p->policy == SHMT_PLACE_BIND && p->n_nodes >= 2;
    if (!is_bound && spec->hot_floats == 0) return SHMT_LINE / sizeof(float);
    return (p->page_bytes ? p->page_bytes : 4096) / sizeof(float);
}

void shmt_flat_plan(const struct shmt_spec *spec, struct shmt_flat *out) {
    const uint64_t each = alignment(spec);
    uint64_t at = 0;
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        out->start[t] = at;
        at += shmt_ceil_div(shmt_table_floats(&spec->table[t]), each) * each;
    }
    out->n = at;
}

#define TERMS_FROM_FLOATS 4096 /* below, whole buffers are in the first-level cache */
#define TERMS_TO_EXAMPLES 64   /* of a chunk: beyond, two workers still gain, but each term is looked at by all, however many */
#define MOST_TERMS        (1u << 19) /* of all chunks, 4 MiB; more for chunks beyond any that are sensible */
#define LEAST_TERMS       1024
#define MOST_OF_A_CHUNK   (1u << 16)

/* In tables of width 1, which take sparse pushes, or in all others. */
static uint64_t floats_of(const struct shmt_spec *spec, bool sparse) {
    uint64_t floats = 0;
    for (uint32_t t = 0; t < spec->n_tables; t++)
        if ((spec->table[t].width == 1) == sparse) floats += shmt_table_floats(&spec->table[t]);
    return floats;
}

bool shmt_flat_is_dense(const struct shmt_spec *spec) { return floats_of(spec, false) > floats_of(spec, true); }

uint32_t shmt_flat_terms(const struct shmt_spec *spec) {
    const uint64_t floats = floats_of(spec, true), all = floats + floats_of(spec, false); /* terms name floats of all tables */
    if (!shmt_policy_is_batched(&spec->policy) || floats < TERMS_FROM_FLOATS || all > INT32_MAX) return 0;
    if (shmt_ceil_div(spec->batch, spec->n_chunks) > TERMS_TO_EXAMPLES) return 0;
    return (uint32_t)shmt_max_u64(LEAST_TERMS, shmt_min_u64(MOST_OF_A_CHUNK, MOST_TERMS / spec->n_chunks));
}

/* A part of a table that is all regularised, or (a bias at its end) not at all. */
struct part {
    uint64_t from, to; /* floats of the flat array */
    uint32_t table;
    bool ruled;
};

/* The part of table t and kind `ruled` that lies within from .. to. */
static struct part part_of(const struct shmt_spec *spec, const struct shmt_flat *flat, uint32_t t, bool ruled, uint64_t from,
                           uint64_t to) {
    const uint64_t start = flat->start[t], width = spec->table[t].width;
    const uint64_t cut = start + spec->l2_rows[t] * width, end = start + spec->table[t].rows * width;
    return (struct part){
        .from = shmt_max_u64(from, ruled ? start : cut), .to = shmt_min_u64(to, ruled ? cut : end), .table = t, .ruled = ruled};
}

uint32_t shmt_flat_table(const struct shmt_spec *spec, const struct shmt_flat *flat, uint64_t at) {
    uint32_t t = 0;
    while (t + 1 < spec->n_tables && flat->start[t + 1] <= at) t++;
    return t;
}

/* The parts that lie within from .. to, one after the other; the first is number 2 * shmt_flat_table(from). False: there is no
 * further one. */
static bool next_part(const struct shmt_spec *spec, const struct shmt_flat *flat, uint64_t from, uint64_t to, uint32_t *number,
                      struct part *out) {
    for (; *number < 2 * spec->n_tables && flat->start[*number / 2] < to; ++*number) {
        *out = part_of(spec, flat, *number / 2, *number % 2 == 0, from, to);
        if (out->from >= out->to) continue;
        ++*number;
        return true;
    }
    return false;
}

void shmt_flat_apply(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, float *state, const float *grad,
                     uint64_t from, uint64_t to, const struct shmt_update *u) {
    const struct shmt_path *path = shmt_path_of(spec->cpu);
    uint32_t number = 2 * shmt_flat_table(spec, flat, from);
    struct part part;
    while (next_part(spec, flat, from, to, &number, &part)) {
        const uint32_t role = spec->tuning[part.table].role;
        if (role == SHMTRAIN_FROZEN || (role == SHMTRAIN_STATISTIC && !grad)) continue;
        const struct shmt_update update = shmt_spec_tune(spec, part.table, part.ruled, u);
        const bool trained = role == SHMTRAIN_TRAINED;
        path->apply(trained ? spec->rule.kind : SHMT_RULE_SGD, weight + part.from, trained && state ? state + part.from : NULL,
                    flat->n, grad ? grad + (part.from - from) : NULL, part.to - part.from, &update);
    }
}

void shmt_flat_squares(const struct shmt_spec *spec, const struct shmt_flat *flat, const float *weight, const float *state,
                       const float *grad, uint64_t from, uint64_t to, const struct shmt_update *u, double *weights_out,
                       double *steps_out) {
    const uint64_t each = SHMT_LINE / sizeof(float);
    const struct shmt_path *path = shmt_path_of(spec->cpu);
    uint32_t number = 2 * shmt_flat_table(spec, flat, from);
    struct part part;
    memset(weights_out, 0, (to - from) / each * sizeof *weights_out);
    memset(steps_out, 0, (to - from) / each * sizeof *steps_out);
    while (next_part(spec, flat, from, to, &number, &part)) {
        const struct shmt_update update = shmt_spec_tune(spec, part.table, part.ruled, u);
        const uint64_t at = part.from - from; /* at a line: such parts begin where their table does */
        if (spec->tuning[part.table].role != SHMTRAIN_TRAINED || !part.ruled) continue;
        path->squares(weight + part.from, state + part.from, flat->n, grad ? grad + at : NULL, part.to - part.from, &update,
                      weights_out + at / each, steps_out + at / each);
    }
}

void shmt_flat_follow(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, const float *state,
                      uint64_t plane, uint64_t from, uint64_t to, const struct shmt_update *u) {
    uint32_t number = 2 * shmt_flat_table(spec, flat, from);
    struct part part;
    while (next_part(spec, flat, from, to, &number, &part)) {
        const struct shmt_update update = shmt_spec_tune(spec, part.table, part.ruled, u);
        const uint64_t at = part.from - from;
        if (spec->tuning[part.table].role != SHMTRAIN_TRAINED) continue;
        shmt_merge_follow(spec->rule.kind, weight + at, state + at, plane, part.to - part.from, &update);
    }
}

void shmt_flat_begin(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, float *state, int t,
                     uint64_t row, uint64_t n) {
    const uint64_t width = spec->table[t].width, from = flat->start[t] + row * width;
    struct shmt_update u;
    if (!state || spec->tuning[t].role != SHMTRAIN_TRAINED) return;
    shmt_spec_update(spec, 0, 0, &u);
    for (int ruled = 0; ruled < 2; ruled++) {
        const struct part part = part_of(spec, flat, (uint32_t)t, ruled, from, from + n * width);
        if (part.from >= part.to) continue;
        const struct shmt_update update = shmt_spec_tune(spec, (uint32_t)t, ruled, &u);
        shmt_rule_begin(spec->rule.kind, &update, weight + part.from, state + part.from, flat->n, part.to - part.from);
    }
}
