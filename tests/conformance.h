/* The conformance suite's frame: every backend, in every mode, with every number of seats and kind of worker that it can have.
 * It knows no backend by name: it takes them from the list, and the first one is as good as the last. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "workers/crew.h"
#include "ps/session.h"

struct kase {
    const struct shmt_backend *backend;
    struct shmt_policy policy;
    uint32_t n_seats;
    const struct shmt_team_kind *kind;
};

/* Runs the test for every case, and says which. */
void each_case(void (*test)(const struct kase *));

/* A small run of 3 epochs, with one table. */
struct shmt_spec spec_of(const struct kase *k, uint64_t n_examples, uint64_t rows, uint32_t width);

/* A store, and a function to run at every seat. */
struct run {
    const struct kase *k;
    struct shmt_spec spec;
    struct shmt_store *store;
    int (*work)(struct run *, shmtrain_session *);
    int (*visit)(struct run *, uint32_t rank, struct shmt_error *); /* at the seats for guests, where there are some */
    shmt_epoch_end *epoch_end;
    void *board;
    const struct shmt_virtual *virtual; /* of fibers; NULL: the usual */
};
void begin(struct run *run, const struct kase *k, struct shmt_spec spec);
int go(struct run *run, int (*work)(struct run *, shmtrain_session *), struct shmt_error *e);
void go_well(struct run *run, int (*work)(struct run *, shmtrain_session *)); /* fails the test when it does not */
void end(struct run *run);

float first_float(struct run *run);

/* By all seats. */
uint64_t updates_made(struct run *run);

/* Work: every example adds 1 to row 0 and its number modulo 3 to row 1, negated: with a rate of 1, exact in f32. */
int count_examples(struct run *run, shmtrain_session *s);
