/* See passing.h. */
#include "consistency/passing.h"

#include "base/checked.h"

#define MOST_HOSTS 255
#define WORTH \
    8 /* while all have items: an eighth of the time that is left anyway is not worth it, as there will be another round */
#define WAYS 2 /* what is passed on should be there before who gives it would be done */

typedef unsigned __int128 wide;

/* Items in 2^44 ns; at least 1. */
static uint64_t speed_of(uint64_t each_ns) { return shmt_max_u64(1, (UINT64_C(1) << 44) / shmt_max_u64(1, each_ns)); }

struct sum {
    uint64_t left, speed, way_ns;
    bool somebody_waits;
};

/* The speed of all hosts; false: nobody can tell, or somebody who has items cannot. */
static bool find_speeds(const struct shmt_headway *of, uint32_t n_hosts, uint64_t *speed_out, struct sum *sum_out) {
    uint64_t known = 0;
    struct sum sum = {0};
    for (uint32_t host = 0; host < n_hosts; host++) {
        sum.somebody_waits |= of[host].waits;
        if (of[host].each_ns == 0 && of[host].left > 0) return false;
        if (of[host].each_ns == 0) continue;
        sum.speed += speed_of(of[host].each_ns);
        known++;
    }
    if (known == 0) return false;
    const uint64_t mean = shmt_max_u64(1, sum.speed / known);
    sum.speed = 0;
    for (uint32_t host = 0; host < n_hosts; host++) {
        speed_out[host] = of[host].each_ns ? speed_of(of[host].each_ns) : mean;
        sum.speed += speed_out[host];
        sum.left += shmt_min_u64(of[host].left, UINT32_MAX);
        sum.way_ns = shmt_max_u64(sum.way_ns, shmt_min_u64(of[host].way_ns, UINT32_MAX));
    }
    *sum_out = sum;
    return true;
}

/* What each host should have of what is left, so that all are done together: parts by speed, rounded down, and what that leaves one by one
 * to whoever would be done with it first. Who works has one in hand besides, half of which is done on average. */
static void find_fair(const struct shmt_headway *of, uint32_t n_hosts, const uint64_t *speed, const struct sum *sum,
                      uint64_t *out) {
    uint64_t given = 0;
    for (uint32_t host = 0; host < n_hosts; host++) given += out[host] = (uint64_t)((wide)sum->left * speed[host] / sum->speed);
    for (; given < sum->left; given++) {
        uint32_t first = 0;
        for (uint32_t host = 1; host < n_hosts; host++) {
            const wide mine = 2 * (wide)out[host] + 2 + !of[host].waits, best = 2 * (wide)out[first] + 2 + !of[first].waits;
            if (mine * speed[first] < best * speed[host]) first = host;
        }
        out[first]++;
    }
}

/* More than it should have, if it would be done too late with all of it. */
static uint64_t excess_of(uint64_t left, uint64_t fair, uint64_t speed, const struct sum *sum) {
    const wide alone_ns = ((wide)left << 44) / speed, together_ns = ((wide)sum->left << 44) / sum->speed;
    const bool is_worth_it =
        alone_ns > together_ns + WAYS * sum->way_ns && (sum->somebody_waits || alone_ns > together_ns + together_ns / WORTH);
    return left > fair && is_worth_it ? left - fair : 0;
}

/* In the order of ranks: the first who has too much fills up the first who has room. */
void shmt_passing_plan(const struct shmt_headway *of, uint32_t n_hosts, uint32_t self, uint64_t *n_out) {
    uint64_t speed[MOST_HOSTS] = {0}, fair[MOST_HOSTS] = {0}, room[MOST_HOSTS] = {0};
    struct sum sum;
    for (uint32_t host = 0; host < n_hosts; host++) n_out[host] = 0;
    if (n_hosts > MOST_HOSTS || !find_speeds(of, n_hosts, speed, &sum)) return;
    find_fair(of, n_hosts, speed, &sum, fair);
    for (uint32_t host = 0; host < n_hosts; host++) room[host] = fair[host] - shmt_min_u64(fair[host], of[host].left);
    for (uint32_t giver = 0, taker = 0; giver <= self && giver < n_hosts; giver++) {
        uint64_t excess = excess_of(shmt_min_u64(of[giver].left, UINT32_MAX), fair[giver], speed[giver], &sum);
        for (; excess > 0 && taker < n_hosts; taker += room[taker] == 0) {
            const uint64_t n = shmt_min_u64(excess, room[taker]);
            if (giver == self) n_out[taker] += n;
            excess -= n;
            room[taker] -= n;
        }
    }
}
