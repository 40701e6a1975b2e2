/* The ledger of live work: every piece of an epoch is claimed by exactly one worker. Over many hosts the link may have claimed
 * it before, to give it away, and have freed it again.
 *
 * A piece's owner word is a lock word: it is taken by compare-and-swap from a value of an earlier epoch to (epoch, life, rank),
 * so it also says, after a death, what the dead one had in hand. Nobody draws from a shared counter. Each worker goes forward
 * through a region of its own, so claims rarely meet; when its region is used up it takes pieces from the ends of the
 * others'. Pieces that were taken before a pause lie anywhere, and are passed over. */
#pragma once

#include "backends/shm/layout.h"
#include "consistency/dealing.h"

/* Claims a piece for (epoch, life, self): true and *piece_out, or false when all are taken. */
bool shmt_ledger_claim(struct shmt_shm_piece *ledger, struct shmt_claims *claims, uint32_t epoch, uint32_t life,
                       uint64_t *piece_out);

/* Claims this piece; false: somebody has it. */
bool shmt_ledger_take(struct shmt_shm_piece *piece, uint32_t epoch, uint32_t life, uint32_t self);

/* By the owner: the piece is done. */
void shmt_ledger_done(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples);

/* By the owner, of a piece that it has done in this epoch: it is done again. */
void shmt_ledger_undo(struct shmt_shm_piece *piece, uint32_t epoch);

/* Whether it was done in this epoch, or in a later one. */
bool shmt_ledger_is_done(const struct shmt_shm_piece *piece, uint32_t epoch);

/* Before workers exist: a piece that was done before the run began (or went on). */
void shmt_ledger_resume(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples, double loss);

/* Whether seat `self` has claimed it in this epoch. relaxed: what is mine nobody else writes; of others' only for messages */
static inline bool shmt_ledger_is_of(const struct shmt_shm_piece *piece, uint32_t epoch, uint32_t self) {
    const uint64_t owner = load_relaxed(&piece->owner);
    return owner >> 32 == (uint64_t)epoch + 1 && (owner & 0xffff) == self + 1;
}

/* Whether somebody has claimed it in this epoch; behind a meeting. */
bool shmt_ledger_is_claimed(const struct shmt_shm_piece *piece, uint32_t epoch);

/* The first piece that seat `self` has claimed in this epoch and not done, by anybody, at any time; for messages. */
bool shmt_ledger_in_hand(const struct shmt_shm_piece *ledger, uint64_t n, uint32_t epoch, uint32_t self, uint64_t *piece_out);

/* The examples of a piece that was done in this epoch, else 0. */
uint64_t shmt_ledger_examples(const struct shmt_shm_piece *piece, uint32_t epoch);
