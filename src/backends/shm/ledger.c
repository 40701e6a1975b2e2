/* Claims and completions: see ledger.h. */
#include "backends/shm/ledger.h"

#include "base/point.h"

static uint64_t tag(uint32_t epoch) { return ((uint64_t)epoch + 1) << 32; }

bool shmt_ledger_take(struct shmt_shm_piece *piece, uint32_t epoch, uint32_t life, uint32_t self) {
    /* relaxed: only a hint, the compare-and-swap decides */
    uint64_t found = load_relaxed(&piece->owner);
    if (found >= tag(epoch)) return false;
    const uint64_t mine = tag(epoch) | (uint64_t)(life & 0xffff) << 16 | (self + 1);
    /* acquire: what I do with the piece does not move before the claim. There is no release to pair with: the owner before me
     * had it in an earlier epoch, and a meeting lies between; or it was the link, which gave it away, did nothing with it, and has freed it
     * again (live/passing.c). */
    SHMT_POINT("claim:before");
    return lock_acquire(&piece->owner, &found, mine);
}

bool shmt_ledger_claim(struct shmt_shm_piece *ledger, struct shmt_claims *claims, uint32_t epoch, uint32_t life,
                       uint64_t *piece_out) {
    while (shmt_claims_next(claims, piece_out))
        if (shmt_ledger_take(&ledger[*piece_out], epoch, life, claims->self))
            return true; /* else: before a pause, or by others */
    return false;
}

void shmt_ledger_done(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples) {
    /* release: the loss is written; pairs with the acquire in shmt_ledger_examples */
    SHMT_POINT("done:before");
    store_release(&piece->done, tag(epoch) | examples);
    SHMT_POINT("done:after");
}

/* Not 0: whoever did the piece in an earlier epoch still finds that it was done then. */
void shmt_ledger_undo(struct shmt_shm_piece *piece, uint32_t epoch) {
    store_relaxed(&piece->done, epoch == 0 ? 0 : tag(epoch - 1)); /* read behind a meeting that waits for its owner */
}

bool shmt_ledger_is_done(const struct shmt_shm_piece *piece, uint32_t epoch) {
    return load_relaxed(&piece->done) >= tag(epoch); /* relaxed: its owner, of an earlier life's word, or a later epoch's */
}

void shmt_ledger_resume(struct shmt_shm_piece *piece, uint32_t epoch, uint64_t examples, double loss) {
    store_relaxed(&piece->owner, tag(epoch)); /* relaxed, both: no worker exists yet; the fork publishes them */
    store_relaxed(&piece->done, tag(epoch) | examples);
    piece->loss = loss;
}

bool shmt_ledger_is_claimed(const struct shmt_shm_piece *piece, uint32_t epoch) {
    return load_relaxed(&piece->owner) >= tag(epoch); /* relaxed: the meeting has published it */
}

uint64_t shmt_ledger_examples(const struct shmt_shm_piece *piece, uint32_t epoch) {
    const uint64_t done = load_acquire(&piece->done);
    return done >> 32 == (uint64_t)epoch + 1 ? done & UINT32_MAX : 0;
}

bool shmt_ledger_in_hand(const struct shmt_shm_piece *ledger, uint64_t n, uint32_t epoch, uint32_t self, uint64_t *piece_out) {
    for (uint64_t i = 0; i < n; i++) {
        if (!shmt_ledger_is_of(&ledger[i], epoch, self)) continue;
        if (load_relaxed(&ledger[i].done) >> 32 == (uint64_t)epoch + 1) continue; /* relaxed: for messages */
        *piece_out = i;
        return true;
    }
    return false;
}
