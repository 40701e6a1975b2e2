/* Strata: the parts of the data that are shuffled within themselves, so that the examples which a worker reads are always of
 * one part, which can lie on its NUMA node. Pure; every worker computes the same.
 *
 * Where items are dealt (all but sync): one stratum for each node that has workers, as large as its share of the seats;
 * places and examples of a stratum have the same numbers. With one node there is one stratum, all of the data. `sync`: one
 * for each chunk of the batch, from the configuration alone, so that the bits do not depend on the machine: chunk c of every
 * batch takes its examples from stratum c. (It also takes every batch from all over the data, which helps where the data is
 * sorted.) Without shuffling, place i is example i in all modes, and strata say nothing. */
#pragma once

#include "ps/spec.h"

/* The examples first .. first + n - 1, read first by seats of node index `node` (sync: by the seat that computes the
 * chunk, as long as nobody has joined). */
struct shmt_stratum {
    uint64_t first, n;
    uint32_t node;
};

uint32_t shmt_strata_count(const struct shmt_spec *spec);
void shmt_strata_at(const struct shmt_spec *spec, uint32_t i, struct shmt_stratum *out);

/* Whether other seats would cut them elsewhere, so that other examples stood at the places of an epoch. */
bool shmt_strata_follow_seats(const struct shmt_spec *spec);

/* All but sync: the part of the ledger that a seat begins with, counted in n_seats parts: seats of a node are neighbours. */
uint32_t shmt_strata_region(const struct shmt_spec *spec, uint32_t seat);

/* The examples at the places first .. first + n - 1 of epoch `epoch`, into example_out (n); as shmt_order_fill. */
void shmt_strata_order(const struct shmt_spec *spec, uint32_t epoch, uint64_t first, uint64_t n, uint32_t *example_out);
