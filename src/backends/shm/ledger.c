/* Claims and completions: see ledger.h. */
#include "backends/shm/ledger.h"

#include "base/point.h"

static uint64_t tag(uint32_t epoch) { return ((uint64_t)epoch + 1) << 32; }

static uint64_t region_start(const struct shmt_claims *claims, uint32_t seat) {
    return (uint64_t)((unsigned __int128)claims->n * seat / claims->n_seats);
}

void shmt_claims_begin(struct shmt_claims *claims, uint64_t n, uint32_t self, uint32_t region, uint32_t n_seats) {
    *claims = (struct shmt_claims){.n = n, .n_seats = n_seats, .self = self, .region = region};
    claims->forward = region_start(claims, region);
}

static bool take(struct shmt_shm_piece *piece, uint32_t epoch, uint32_t life, uint32_t self) {
    /* relaxed: only a hint, the compare-and-swap decides */
    uint64_t found = load_relaxed(&piece->owner);
    if (found >= tag(epoch)) return false;
    const uint64_t mine = tag(epoch) | (uint64_t)(life & 0xffff) << 16 | (self + 1);
    /* acquire: what I do with the piece does not move before the claim. There is no release to pair with: the owner before me
     * had it in an earlier epoch, and a meeting lies between. */
    SHMT_POINT("claim:before");
    return lock_acquire(&piece->owner, &found, mine);
}

/* Takes pieces from the end of the victim's region; the owner comes from its start, and where they meet the region is used
 * up. */
static bool steal(struct shmt_shm_piece *ledger, struct shmt_claims *claims, uint32_t epoch, uint32_t life,
                  uint64_t *piece_out) {
    const uint32_t victim = (claims->region + claims->victim) % claims->n_seats;
    const uint64_t start = region_start(claims, victim);
    while (claims->back > start) {
        claims->back--;
        if (!take(&ledger[claims->back], epoch, life, claims->self)) continue;
        *piece_out = claims->back;
        return true;
    }
    return false;
}

bool shmt_ledger_claim(struct shmt_shm_piece *ledger, struct shmt_claims *claims, uint32_t epoch, uint32_t life,
                       uint64_t *piece_out) {
    const uint64_t end = region_start(claims, claims->region + 1);
    while (claims->forward < end) {
        const uint64_t piece = claims->forward++;
        if (!take(&ledger[piece], epoch, life, claims->self)) continue; /* before a pause, or by others from the end */
        *piece_out = piece;
        return true;
    }
    while (claims->victim < claims->n_seats) {
        if (claims->victim > 0 && steal(ledger, claims, epoch, life, piece_out)) return true;
        claims->victim++;
        claims->back = region_start(claims, (claims->region + claims->victim) % claims->n_seats + 1);
    }
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
        const uint64_t owner = load_relaxed(&ledger[i].owner); /* relaxed, both: for messages */
        if (owner >> 32 != (uint64_t)epoch + 1 || (owner & 0xffff) != self + 1) continue;
        if (load_relaxed(&ledger[i].done) >> 32 == (uint64_t)epoch + 1) continue;
        *piece_out = i;
        return true;
    }
    return false;
}
