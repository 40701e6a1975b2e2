/* What collectives keep in shared memory, and how much of it; whoever owns the memory (a backend) plans and hands over two parts,
 * zero-filled but for `present`:
 *
 *     words      a line for each worker (struct shmt_coll_presence), then its gate in each of SHMT_COLL_SLOTS groups
 *     exchange   for each worker two halves of staging memory, then what it may lend
 *
 * Groups are made of slots: slot 0 is the group of all, and two groups without a common member may have the same slot, because each
 * worker writes its own gate alone. In a gate `clock` counts what a member has laid out to be read, in ticks that all members of the
 * group count alike, `read` up to which tick it has read the others, and `phase` that its slice of a lent reduction is in all buffers. */
#pragma once

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sync/gate.h"

#define SHMT_COLL_SLOTS  16
#define SHMT_COLL_INLINE 16 /* bytes that travel in the line of the words */

struct shmt_coll_presence {
    alignas(SHMT_LINE) _Atomic uint32_t
        present; /* 1: takes part; 0: has left, or has died. Set before workers exist; cleared by the
                                                    owner, or by whoever has collected it after its death */
};

/* What a member says of the operation that it begins; before its clock. Two, by turns: a slow member may still read the last one. */
struct shmt_coll_note {
    uint64_t sign; /* of kind, type, sizes: all must have the same */
    union {
        struct {
            uint64_t in_at, out_at; /* 0: nothing is lent; else 1 + where the buffer lies in what the member may lend */
        } lent;
        unsigned char data[SHMT_COLL_INLINE]; /* of small operations */
    } is;
};
_Static_assert(2 * sizeof(struct shmt_coll_note) <= sizeof(((struct shmt_gate *)NULL)->beside), "two notes in a gate's line");

/* The room of one worker, from all workers' number; 0 bytes: none is wanted. */
struct shmt_coll_room {
    uint32_t half_bytes; /* of staging memory: two for each worker; 0: there are no collectives */
    uint64_t lend_bytes; /* of each worker */
};

/* Staging that suits n workers: half_bytes, or 0 beyond SHMTRAIN_COLLECTIVE_WORKERS. Pure. */
uint32_t shmt_coll_half_bytes(uint32_t n);

/* Bytes of the two parts: words in all, exchange for each worker. Pure. */
uint64_t shmt_coll_words_bytes(const struct shmt_coll_room *room, uint32_t n);
uint64_t shmt_coll_exchange_bytes(const struct shmt_coll_room *room);

/* Where they lie in this process, and what a member waits with. */
struct shmt_coll_place {
    struct shmt_coll_room room;
    unsigned char *words, *exchange;
    uint64_t exchange_stride; /* bytes from one worker's exchange to the next one's */
    uint32_t n, self;
    const _Atomic uint32_t *abort;
    uint32_t spin_ns;
    void (*tell)(void *arg, int waits, uint32_t for_whom); /* as in struct shmt_gates */
    void *tell_arg;
};

/* Before workers exist: all n are present. */
void shmt_coll_begin(unsigned char *words, uint32_t n);

/* The worker takes part no more: it has left, or whoever has collected it says that it is dead. One that comes back stays if it has not
 * taken part in anything: its next life can. */
void shmt_coll_leave(unsigned char *words, uint32_t n, uint32_t rank, bool comes_back);

static inline struct shmt_coll_presence *shmt_coll_presence(unsigned char *words, uint32_t rank) {
    return (struct shmt_coll_presence *)(void *)(words + (uint64_t)rank * sizeof(struct shmt_coll_presence));
}

/* The gate of worker 0 in a slot; those of the others stand behind it. */
static inline struct shmt_gate *shmt_coll_gates(unsigned char *words, uint32_t n, uint32_t slot) {
    return (struct shmt_gate *)(void *)(words + n * sizeof(struct shmt_coll_presence) +
                                        (uint64_t)slot * n * sizeof(struct shmt_gate));
}
