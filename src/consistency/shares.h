/* How the items of an epoch are dealt to hosts: in turns of n_slots items, of which each is somebody's, the same in each turn. At first
 * hosts have equal shares; then by how fast each of them was in the epoch before. Pure: all hosts compute the same, from the same
 * numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHMT_SHARE_SLOTS 256

/* Of all hosts; plain numbers, so that it may lie in shared memory. */
struct shmt_shares {
    uint32_t n_hosts, n_slots;
    uint8_t owner[SHMT_SHARE_SLOTS]; /* (n_slots) */
};

/* Every n_hosts-th item each; n_hosts from 1 to 255. */
void shmt_shares_equal(uint32_t n_hosts, struct shmt_shares *out);

/* For the next epoch, when the hosts did `done` items of the last one (n_hosts), for which they worked busy_ns (n_hosts): half of the way
 * to shares for which all would take the same time. What differs by less than a twentieth stays, as does all where a time is 0, or
 * somebody's share was too small to tell how fast it is. Each host has a slot at least. */
void shmt_shares_by_speed(const struct shmt_shares *last, const uint64_t *done, const uint64_t *busy_ns,
                          struct shmt_shares *out);

/* The items of one host. */
struct shmt_share {
    uint32_t n_slots, n_own;
    uint8_t own[SHMT_SHARE_SLOTS]; /* (n_own) which of a turn's slots, ascending */
};

void shmt_share_of(const struct shmt_shares *shares, uint32_t host, struct shmt_share *out);

/* How many of `items` are its; and the number of the i-th one. */
uint64_t shmt_share_items(const struct shmt_share *share, uint64_t items);
static inline uint64_t shmt_share_item(const struct shmt_share *share, uint64_t i) {
    return i / share->n_own * share->n_slots + share->own[i % share->n_own];
}
