/* What the tests of pauses share: snapshots that are kept beyond the run, and runs that begin with one. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "conformance.h"

enum { MOST_KEPT = 512 };

/* A snapshot, copied. */
struct kept {
    struct shmt_position at;
    uint64_t n_floats, n_pieces;
    float *floats; /* (1 + planes, n_floats) */
    uint32_t *done;
    double *loss;
};

struct kept_list {
    struct kept kept[MOST_KEPT];
    uint32_t n;
};

static inline void keep(struct kept_list *list, const struct shmt_snapshot *snap) {
    struct kept *to = &list->kept[list->n];
    const uint64_t state = snap->n_floats * snap->planes;
    if (list->n == MOST_KEPT) return;
    *to = (struct kept){.at = snap->at, .n_floats = snap->n_floats, .n_pieces = snap->n_pieces};
    to->floats = malloc((snap->n_floats + state) * sizeof(float));
    to->done = malloc(snap->n_pieces * sizeof *to->done);
    to->loss = malloc(snap->n_pieces * sizeof *to->loss);
    assert_true(to->floats && to->done && to->loss);
    memcpy(to->floats, snap->weight, snap->n_floats * sizeof(float));
    if (state) memcpy(to->floats + snap->n_floats, snap->state, state * sizeof(float));
    memcpy(to->done, snap->done, snap->n_pieces * sizeof *to->done);
    memcpy(to->loss, snap->loss, snap->n_pieces * sizeof *to->loss);
    list->n++;
}

static inline void free_kept(struct kept_list *list) {
    for (uint32_t i = 0; i < list->n; i++) {
        free(list->kept[i].floats);
        free(list->kept[i].done);
        free(list->kept[i].loss);
    }
    list->n = 0;
}

/* A run of one table that begins there, with the seats of `k`. */
static inline void begin_from(struct run *run, const struct kase *k, struct shmt_spec spec, const struct kept *from) {
    struct shmt_error e = {0};
    const uint64_t bytes = spec.table[0].rows * spec.table[0].width * sizeof(float);
    spec.n_seats = spec.n_workers = k->n_seats;
    spec.first_epoch = from->at.epoch;
    spec.first_step = from->at.step;
    spec.steps_before = from->at.steps_before;
    begin(run, k, spec);
    if (k->backend->store->resume(run->store, from->done, from->loss, &e) != 0) fail_msg("%s", e.text);
    memcpy(shmt_array_at(k->backend, run->store, SHMT_ARRAY_WEIGHT), from->floats, bytes);
    for (uint32_t i = 0; k->backend->store->array(run->store, SHMT_ARRAY_STATE, 0, i).at; i++)
        memcpy(k->backend->store->array(run->store, SHMT_ARRAY_STATE, 0, i).at, from->floats + (1 + i) * from->n_floats, bytes);
}
