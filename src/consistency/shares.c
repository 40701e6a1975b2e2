/* Shares of hosts: see shares.h. */
#include "consistency/shares.h"

#include <stdbool.h>

#include "base/checked.h"

#define STEADY      20 /* a difference below this part of the time is chance */
#define LEAST_ITEMS 8  /* of a host, to tell how fast it is */

void shmt_shares_equal(uint32_t n_hosts, struct shmt_shares *out) {
    *out = (struct shmt_shares){.n_hosts = n_hosts, .n_slots = SHMT_SHARE_SLOTS / n_hosts * n_hosts};
    for (uint32_t slot = 0; slot < out->n_slots; slot++) out->owner[slot] = (uint8_t)(slot % n_hosts);
}

static void count_slots(const struct shmt_shares *shares, uint64_t out[SHMT_SHARE_SLOTS]) {
    for (uint32_t host = 0; host < shares->n_hosts; host++) out[host] = 0;
    for (uint32_t slot = 0; slot < shares->n_slots; slot++) out[shares->owner[slot]]++;
}

/* Of n numbers, the first of the largest. */
static uint32_t largest(const uint64_t *number, uint32_t n) {
    uint32_t most = 0;
    for (uint32_t i = 1; i < n; i++)
        if (number[i] > number[most]) most = i;
    return most;
}

/* Slots in proportion to `weight` (largest remainders), but one each at least, which the largest share gives. */
static void apportion(uint32_t n_hosts, uint32_t n_slots, const uint64_t *weight, uint64_t out[SHMT_SHARE_SLOTS]) {
    uint64_t all = 0, given = 0, left[SHMT_SHARE_SLOTS] = {0};
    for (uint32_t host = 0; host < n_hosts; host++) all += weight[host];
    all = shmt_max_u64(1, all); /* each is 1 at least */
    for (uint32_t host = 0; host < n_hosts; host++) {
        const unsigned __int128 exact = (unsigned __int128)weight[host] * n_slots;
        out[host] = shmt_max_u64(1, (uint64_t)(exact / all));
        left[host] = exact < all ? 0 : (uint64_t)(exact % all);
        given += out[host];
    }
    for (; given > n_slots; given--) out[largest(out, n_hosts)]--;
    for (; given < n_slots; given++) {
        const uint32_t most = largest(left, n_hosts);
        out[most]++;
        left[most] = 0;
    }
}

/* Smooth weighted round robin: each host's slots are spread evenly over the turn. */
static void spread(const uint64_t *n_own, struct shmt_shares *out) {
    int64_t credit[SHMT_SHARE_SLOTS] = {0};
    for (uint32_t slot = 0; slot < out->n_slots; slot++) {
        uint32_t next = 0;
        for (uint32_t host = 0; host < out->n_hosts; host++) {
            credit[host] += (int64_t)n_own[host];
            if (credit[host] > credit[next]) next = host;
        }
        credit[next] -= out->n_slots;
        out->owner[slot] = (uint8_t)next;
    }
}

static uint64_t time_of(uint64_t busy_ns) { return shmt_min_u64(busy_ns, UINT64_C(1) << 50); } /* thirteen days */

/* Items in a time that is the same for all; at least 1, and far from overflow. false: somebody cannot tell, whose share was too small. Who
 * has passed nearly all of its share on can. */
static bool find_speeds(const struct shmt_shares *last, const uint64_t *n_own, const uint64_t *done, const uint64_t *busy_ns,
                        uint64_t *speed_out) {
    const uint32_t n_hosts = last->n_hosts;
    unsigned __int128 all = 0;
    uint64_t least = UINT64_MAX;
    for (uint32_t host = 0; host < n_hosts; host++) all += done[host];
    for (uint32_t host = 0; host < n_hosts; host++) {
        if (all * n_own[host] / last->n_slots < LEAST_ITEMS) return false;
        least = shmt_min_u64(least, time_of(busy_ns[host]));
    }
    if (least == 0) return false;
    for (uint32_t host = 0; host < n_hosts; host++)
        speed_out[host] = 1 + (uint64_t)((((unsigned __int128)shmt_max_u64(1, shmt_min_u64(done[host], UINT32_MAX)) << 32) *
                                          least / time_of(busy_ns[host])) >>
                                         16);
    return true;
}

/* Whether all would take about the same time for their shares. */
static bool are_fair(uint32_t n_hosts, const uint64_t *n_own, const uint64_t *speed) {
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t host = 0; host < n_hosts; host++) {
        const uint64_t takes = (uint64_t)(((unsigned __int128)n_own[host] << 56) / speed[host]);
        least = shmt_min_u64(least, takes);
        most = shmt_max_u64(most, takes);
    }
    return most - least < most / STEADY;
}

void shmt_shares_by_speed(const struct shmt_shares *last, const uint64_t *done, const uint64_t *busy_ns,
                          struct shmt_shares *out) {
    uint64_t speed[SHMT_SHARE_SLOTS] = {0}, n_own[SHMT_SHARE_SLOTS] = {0}, fair[SHMT_SHARE_SLOTS] = {0};
    *out = *last;
    count_slots(last, n_own);
    if (!find_speeds(last, n_own, done, busy_ns, speed) || are_fair(last->n_hosts, n_own, speed)) return;
    apportion(last->n_hosts, last->n_slots, speed, fair);
    for (uint32_t host = 0; host < last->n_hosts; host++) speed[host] = n_own[host] + fair[host];
    apportion(last->n_hosts, last->n_slots, speed, n_own);
    spread(n_own, out);
}

void shmt_share_of(const struct shmt_shares *shares, uint32_t host, struct shmt_share *out) {
    *out = (struct shmt_share){.n_slots = shares->n_slots};
    for (uint32_t slot = 0; slot < shares->n_slots; slot++)
        if (shares->owner[slot] == host) out->own[out->n_own++] = (uint8_t)slot;
}

uint64_t shmt_share_items(const struct shmt_share *share, uint64_t items) {
    uint64_t n = items / share->n_slots * share->n_own;
    for (uint32_t k = 0; k < share->n_own && share->own[k] < items % share->n_slots; k++) n++;
    return n;
}
