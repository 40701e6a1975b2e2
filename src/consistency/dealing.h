/* In which order a worker looks for pieces of an epoch, so that claims rarely meet: forward through a region of its own, and when
 * that is used up, from the ends of the others' regions, which their owners reach last. And how parameters are cut for workers
 * when parts of them cost more than others. Pure: whether a piece is still to be had says the ledger (backends/shm/ledger.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "consistency/shares.h"

/* Where a worker looks next; private to it. */
struct shmt_claims {
    uint64_t n;                     /* pieces */
    uint32_t n_seats, region;       /* the region that is mine: seats of a NUMA node have neighbouring ones */
    uint32_t self;                  /* my rank */
    uint64_t forward, end;          /* the next piece of my own region, and where that ends */
    uint32_t victim;                /* how many regions after mine I am taking from the end of */
    const struct shmt_share *share; /* where only some of all pieces are dealt here: which; NULL: all are */
    uint64_t start, back; /* taking from the victim: where its region begins; pieces from `back` on are known to be taken */
};

/* `share` (NULL: all pieces are dealt here) has to last as long as the claims. */
void shmt_claims_begin(struct shmt_claims *claims, uint64_t n, const struct shmt_share *share, uint32_t self, uint32_t region,
                       uint32_t n_seats);

/* The next piece to ask for; false: I have asked for all. */
bool shmt_claims_next(struct shmt_claims *claims, uint64_t *piece_out);

/* Cuts n bins into n_shares runs of about equal cost, each in whole bins: share i begins at bin out[i], and ends where the next one
 * begins, the last one behind the last bin. A bin costs `each`, and `per_term` for each of its terms. */
void shmt_cut_evenly(const uint32_t *terms, uint64_t n, uint64_t each, uint64_t per_term, uint32_t n_shares, uint64_t *out);
