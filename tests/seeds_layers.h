/* For tests under schedules that mean harm (test_seeds_deaths.c, test_seeds_guests.c): where copies are equal, a run pushes as a network
 * does, table by table, the last one first, in buffers that are lent, so that sums are made early; and in the end all copies are what the
 * parameters are. Each update adds 1 to float 0 of table 0; all other gradients depend on the weights, so that whoever reads others shows
 * it to all. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "backends/shm/shm_priv.h"
#include "conformance.h"

enum { LAYERS = 3, LAYER_ROWS = 64, LAYER_WIDTH = 2, LAYER_FLOATS = LAYER_ROWS * LAYER_WIDTH };

static inline bool has_layers(const struct shmt_policy *policy) { return shmt_policy_has_equal_copies(policy); }

/* So few chunks that of many workers most have none. */
static inline void add_layers(struct shmt_spec *spec, uint32_t n_chunks) {
    spec->n_tables = LAYERS;
    spec->n_chunks = n_chunks;
    for (uint32_t t = 0; t < LAYERS; t++) {
        snprintf(spec->table[t].name, sizeof spec->table[t].name, "layer%u", t);
        spec->table[t].rows = spec->l2_rows[t] = LAYER_ROWS;
        spec->table[t].width = LAYER_WIDTH;
    }
}

/* *first_out: what float 0 was. */
static inline int push_layers(shmtrain_session *s, const struct shmtrain_work *w, float *first_out) {
    float weights[LAYERS][LAYER_FLOATS], *grad[LAYERS];
    int rc = 0;
    for (int t = 0; t < LAYERS && rc == 0; t++) rc = shmtrain_pull(s, t, 0, LAYER_ROWS, weights[t]);
    for (int t = 0; t < LAYERS && rc == 0; t++) rc = shmtrain_lend(s, t, &grad[t]);
    *first_out = rc == 0 ? weights[0][0] : 0;
    for (int t = LAYERS; t-- > 0 && rc == 0;) {
        for (uint32_t i = 0; i < LAYER_FLOATS; i++)
            grad[t][i] = (float)w->n * (weights[t][i] / 4 + 1 / (float)(w->first + i + 3));
        if (t == 0) grad[t][0] = -(float)w->n;
        rc = shmtrain_push(s, t, 0, LAYER_ROWS, grad[t]);
    }
    return rc;
}

/* Bits, not values: of floats, too. */
static inline bool same_bits(const void *a, const void *b, uint64_t bytes) { return memcmp(a, b, bytes) == 0; }

/* Of the run's own workers, behind its end: NULL, or what is wrong. */
static inline const char *compare_copies(const struct run *run) {
    const struct shmt_store *store = run->store;
    const uint64_t bytes = store->layout.flat.n * sizeof(float);
    for (uint32_t rank = 1; store->layout.equal && rank < run->spec.n_seats - run->spec.n_guests; rank++) {
        if (!same_bits(shmt_shm_weight_of(store, rank), store->weight, bytes)) return "copies of parameters differ";
        if (!same_bits(shmt_shm_state_of(store, rank), store->state, bytes * store->layout.planes))
            return "copies of the rule's state differ";
    }
    return NULL;
}
