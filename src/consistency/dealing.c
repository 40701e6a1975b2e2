/* Dealing: see dealing.h. */
#include "consistency/dealing.h"

static uint64_t region_start(const struct shmt_claims *claims, uint32_t seat) {
    return (uint64_t)((unsigned __int128)claims->n * seat / claims->n_seats);
}

void shmt_claims_begin(struct shmt_claims *claims, uint64_t n, const struct shmt_share *share, uint32_t self, uint32_t region,
                       uint32_t n_seats) {
    *claims = (struct shmt_claims){
        .n = share ? shmt_share_items(share, n) : n, .n_seats = n_seats, .self = self, .region = region, .share = share};
    claims->forward = region_start(claims, region);
    claims->end = region_start(claims, region + 1);
}

static uint64_t piece_at(const struct shmt_claims *claims, uint64_t i) {
    return claims->share ? shmt_share_item(claims->share, i) : i;
}

bool shmt_claims_next(struct shmt_claims *claims, uint64_t *piece_out) {
    if (claims->forward < claims->end) {
        *piece_out = piece_at(claims, claims->forward++);
        return true;
    }
    for (; claims->victim < claims->n_seats; claims->victim++) {
        const uint32_t next = (claims->region + claims->victim + 1) % claims->n_seats;
        if (claims->victim > 0 && claims->back > claims->start) {
            *piece_out = piece_at(claims, --claims->back);
            return true;
        }
        claims->start = region_start(claims, next);
        claims->back = region_start(claims, next + 1);
    }
    return false;
}

void shmt_cut_evenly(const uint32_t *terms, uint64_t n, uint64_t each, uint64_t per_term, uint32_t n_shares, uint64_t *out) {
    uint64_t all = 0, before = 0;
    uint32_t next = 0;
    for (uint64_t i = 0; i < n; i++) all += each + per_term * terms[i];
    for (uint64_t i = 0; i < n; i++) {
        for (; next < n_shares && before >= all * next / n_shares; next++) out[next] = i;
        before += each + per_term * terms[i];
    }
    for (; next < n_shares; next++) out[next] = n;
}
