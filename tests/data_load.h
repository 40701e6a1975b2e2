/* For tests of the room data: a whole source in memory, by way of any number of parts; and files with given contents. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/flow.h"
#include "data/source.h"

#define MAX_PARTS         32
#define COLUMNS(first, n) ((struct shmt_columns){.base = (first), .n_features = (n)})

struct loaded {
    struct shmt_part part[MAX_PARTS];
    struct shmt_totals totals;
    struct shmt_arrays arrays;
    struct shmt_error error;
};

static inline int load_count(struct loaded *l, const struct shmt_source *source, uint32_t n_parts,
                             struct shmt_columns columns) {
    memset(l, 0, sizeof *l);
    for (uint32_t i = n_parts; i-- > 0;)
        shmt_source_count(source, &columns, i, n_parts, NULL, &l->part[i]); /* the order is free */
    return shmt_parts_total(source, l->part, n_parts, &l->totals, &l->error);
}

/* Arrays of the exact sizes, so that AddressSanitizer sees one element too much. */
static inline void load_allocate(struct loaded *l, struct shmt_columns columns) {
    const uint64_t n = l->totals.n_examples, m = l->totals.n_nonzeros;
    l->arrays = (struct shmt_arrays){.start = malloc((n + 1) * sizeof(uint64_t)),
                                     .id = malloc(m * sizeof(uint32_t)),
                                     .value = l->totals.all_ones ? NULL : malloc(m * sizeof(float)),
                                     .label = malloc(n * sizeof(float)),
                                     .columns = columns};
}

/* The same for the dense layout; not cleared, for fill must write all of it. */
static inline void load_allocate_dense(struct loaded *l, struct shmt_columns columns) {
    const uint64_t n = l->totals.n_examples, bytes = n * columns.n_features * sizeof(float);
    l->arrays = (struct shmt_arrays){.dense = malloc(bytes), .label = malloc(n * sizeof(float)), .columns = columns};
    memset(l->arrays.dense, 0xff, bytes);
}

static inline int load_fill(struct loaded *l, const struct shmt_source *source, uint32_t n_parts) {
    for (uint32_t i = 0; i < n_parts; i++) {
        const int status = shmt_source_fill(source, i, n_parts, l->part, &l->arrays, &l->error);
        if (status != 0) return status;
    }
    return 0;
}

/* Counts and fills, by one reader, a source whose parts come one after the other. */
static inline int load_flow(struct loaded *l, const struct shmt_source *source, struct shmt_columns columns) {
    static const _Atomic uint32_t NO_STOP = 0;
    struct shmt_flow *flow;
    struct shmt_part *part = NULL;
    uint32_t n_parts = 0;
    memset(l, 0, sizeof *l);
    assert_int_equal(shmt_flow_open(source, &NO_STOP, &flow, &l->error), 0);
    int status;
    while ((status = shmt_flow_count(flow, &columns, NULL, &l->error)) > 0) {}
    if (status == 0) status = shmt_flow_take_parts(flow, &part, &n_parts, &l->error);
    shmt_flow_close(flow);
    if (status == 0) status = shmt_parts_total(source, part, n_parts, &l->totals, &l->error);
    if (status == 0 && !shmt_source_is_once(source)) {
        load_allocate(l, columns);
        assert_int_equal(shmt_flow_open(source, &NO_STOP, &flow, &l->error), 0);
        while ((status = shmt_flow_fill(flow, part, n_parts, &l->arrays, &l->error)) > 0) {}
        if (status == 0) status = shmt_flow_check(flow, n_parts, &l->error);
        shmt_flow_close(flow);
    }
    free(part);
    return status;
}

/* Counts and fills; a failure of either is the status, its sentence in l->error. Release with load_free in any case. */
static inline int load_source(struct loaded *l, const struct shmt_source *source, uint32_t n_parts,
                              struct shmt_columns columns) {
    if (shmt_source_flows(source)) return load_flow(l, source, columns);
    const int status = load_count(l, source, n_parts, columns);
    if (status != 0) return status;
    load_allocate(l, columns);
    return load_fill(l, source, n_parts);
}

static inline int load_name(struct loaded *l, const char *name, uint64_t seed, bool held_out, uint32_t n_parts) {
    struct shmt_source *source;
    memset(l, 0, sizeof *l);
    int status = shmt_source_open(name, seed, held_out, &source, &l->error);
    if (status != 0) return status;
    status = shmt_source_unpack(source, &l->error);
    if (status == 0) status = load_source(l, source, n_parts, SHMT_ALL_COLUMNS);
    shmt_source_close(source);
    return status;
}

static inline void load_free(struct loaded *l) {
    free(l->arrays.start);
    free(l->arrays.id);
    free(l->arrays.value);
    free(l->arrays.dense);
    free(l->arrays.label);
}

static inline void assert_same_data(const struct loaded *a, const struct loaded *b) {
    const uint64_t n = a->totals.n_examples, m = a->totals.n_nonzeros;
    assert_int_equal(b->totals.n_examples, n);
    assert_int_equal(b->totals.n_nonzeros, m);
    assert_memory_equal(&a->totals, &b->totals, sizeof a->totals);
    assert_memory_equal(a->arrays.start, b->arrays.start, (n + 1) * sizeof(uint64_t));
    assert_memory_equal(a->arrays.label, b->arrays.label, n * sizeof(float));
    assert_int_equal(a->arrays.value == NULL, b->arrays.value == NULL);
    if (m == 0) return;
    assert_memory_equal(a->arrays.id, b->arrays.id, m * sizeof(uint32_t));
    if (a->arrays.value) assert_memory_equal(a->arrays.value, b->arrays.value, m * sizeof(float));
}

/* 64-bit FNV-1a: plain enough to be the same everywhere by inspection. The arrays are hashed as this machine stores them. */
static inline uint64_t hash_bytes(uint64_t hash, const void *data, uint64_t bytes) {
    const unsigned char *p = data;
    for (uint64_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

static inline uint64_t hash_data(const struct loaded *l) {
    const uint64_t n = l->totals.n_examples, m = l->totals.n_nonzeros;
    uint64_t hash = 0xcbf29ce484222325u;
    hash = hash_bytes(hash, l->arrays.start, (n + 1) * sizeof(uint64_t));
    hash = hash_bytes(hash, l->arrays.id, m * sizeof(uint32_t));
    if (l->arrays.value) hash = hash_bytes(hash, l->arrays.value, m * sizeof(float));
    return hash_bytes(hash, l->arrays.label, n * sizeof(float));
}
