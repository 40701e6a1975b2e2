/* The ledger of live work: every piece of an epoch is claimed by exactly one worker.
 *
 * A piece's owner word is a lock word: it is taken by compare-and-swap from a value of an earlier epoch to (epoch, life, rank),
 * so it also says, after a death, what the dead one had in hand. Nobody draws from a shared counter. Each worker goes forward
 * through a region of its own, so claims rarely meet; when its region is used up it takes pieces from the ends of the
 * others'. Pieces that were taken before a pause lie anywhere, and are passed over. */
#ifndef SHMT_BACKENDS_SHM_LEDGER_H
#define SHMT_BACKENDS_SHM_LEDGER_H

#include "backends/shm/layout.h"

/* Where a worker looks next; private to it. */
struct shmt_claims {
    uint64_t n;               /* pieces */
    uint32_t n_seats, region; /* the region that is mine: seats of a NUMA node have neighbouring ones */
    uint32_t self;            /* my rank */
    uint64_t forward;         /* the next piece of my own region */
    uint32_t victim;          /* how many regions after mine I am taking from the end of */
    uint64_t back;            /* taking from the victim: pieces from `back` on are known to be taken */
};

void shmt_claims_begin(struct shmt_claims *claims, uint64_t n, uint32_t self, uint32_t region, uint32_t n_seats);

/* Claims a piece for (epoch, life, self): true and *piece_out, or false when all are taken. */
bool shmt_ledger_claim(struct shmt_shm_piece *ledger, struct shmt_claims *claims, uint32_t epoch, uint32_t life,
                       uint64_t *piece_out);

/* By the owner: the piece is done. */
void shmt_ledger_done(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples);

/* By the owner, of a piece that it has done in this epoch: it is done again. */
void shmt_ledger_undo(struct shmt_shm_piece *piece, uint32_t epoch);

/* Whether it was done in this epoch, or in a later one. */
bool shmt_ledger_is_done(const struct shmt_shm_piece *piece, uint32_t epoch);

/* Before workers exist: a piece that was done before the run began (or went on). */
void shmt_ledger_resume(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples, double loss);

/* Whether somebody has claimed it in this epoch; behind a meeting. */
bool shmt_ledger_is_claimed(const struct shmt_shm_piece *piece, uint32_t epoch);

/* The first piece that seat `self` has claimed in this epoch and not done, by anybody, at any time; for messages. */
bool shmt_ledger_in_hand(const struct shmt_shm_piece *ledger, uint64_t n, uint32_t epoch, uint32_t self, uint64_t *piece_out);

/* The examples of a piece that was done in this epoch, else 0. */
uint64_t shmt_ledger_examples(const struct shmt_shm_piece *piece, uint32_t epoch);

#endif
