/* Merges over many hosts: the turns of an exchange (exchange_priv.h) where workers train copies of their own and all of them meet to merge
 * these (local SGD). At each merge every host sends what its copies come to (its parts, update/parts.h), of the blocks that one of them
 * has changed since all copies were equal, to all others. When it has the parts of all, it brings what they make of a block to its
 * master, in the order of ranks; its workers go on from that. So after each merge all hosts have the same parameters and state, bit by
 * bit.
 *
 * All hosts do the same merges: a host whose workers have no work left in this epoch comes to each one, with nothing that has changed,
 * until nobody has. That one is the epoch's last.
 *
 * Blocks are numbered word by word: those of the weights first, then those of each plane of the rule's state. */
#include <stdlib.h>

#include "base/checked.h"
#include "link/exchange_priv.h"

static const struct shmt_far_merge_ops *ops(const struct shmt_exchange *x) { return x->at.backend->far->merges; }

static uint64_t all_blocks(const struct shmt_exchange *x) { return x->n_words * x->n_blocks; }

/* ---- what comes ---- */

static bool take(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel, struct shmt_message *message) {
    if (parcel->kind == SHMT_PARCEL_PARTS && x->heard[from].begun)
        return shmt_exchange_keep_blocks(x, from, parcel, message, all_blocks(x));
    shmt_exchange_take_items(x, from, parcel);
    return false;
}

static uint64_t most_bytes(const struct shmt_exchange *x, uint32_t from) {
    (void)from;
    return all_blocks(x) * (sizeof(struct shmt_merge_part) + sizeof(uint64_t));
}

/* ---- what goes ---- */

/* The next blocks that my copies have changed, from *block on. NULL: there are none, or no memory for them. */
static struct shmt_payload *next_parts(struct shmt_exchange *x, uint64_t *block) {
    const struct shmt_parcel parcel = {.kind = SHMT_PARCEL_PARTS,
                                       .n = (uint32_t)shmt_min_u64(SHMT_MOST_PARCEL_PARTS, all_blocks(x) - *block),
                                       .number = x->number};
    unsigned char *entries;
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    uint32_t n = 0;
    if (!payload) shmt_no_memory(&x->error, "for a message to other hosts");
    for (; payload && *block < all_blocks(x) && n < parcel.n; ++*block) {
        struct shmt_merge_part part;
        if (ops(x)->part(x->seat, (uint32_t)(*block / x->n_blocks), *block % x->n_blocks, &part))
            shmt_parcel_put_part(entries, n++, *block, &part);
        shmt_exchange_breathe(x, *block);
    }
    if (payload && n > 0) {
        shmt_parcel_end(payload, n);
        return payload;
    }
    shmt_payload_drop(payload);
    return NULL;
}

/* They are kept, too: what all make of a block is worked out from what all have been sent. */
static void send_parts(struct shmt_exchange *x) {
    for (uint64_t block = 0; block < all_blocks(x) && x->error.status == 0;) {
        struct shmt_payload *payload = next_parts(x, &block);
        if (!payload) continue;
        shmt_sent_keep(x, payload);
        shmt_exchange_send(x, payload);
    }
}

/* ---- merging ---- */

/* Blocks that somebody has changed, each by the parts of those who have. */
static void merge(struct shmt_exchange *x) {
    const uint32_t n_hosts = x->at.spec->hosts.n;
    struct shmt_cursor cursor[SHMT_MAX_HOSTS];
    shmt_cursors_open(x, cursor);
    for (uint64_t block; (block = shmt_cursors_next(x, cursor)) != SHMT_NO_BLOCK;) {
        uint32_t n = 0;
        for (uint32_t host = 0; host < n_hosts; host++) {
            if (cursor[host].block != block) continue;
            (void)shmt_parcel_part(&cursor[host].parcel, cursor[host].i, &x->parts[n++]);
            shmt_cursor_step(x, cursor, host);
        }
        ops(x)->merge(x->seat, (uint32_t)(block / x->n_blocks), block % x->n_blocks, x->parts, n);
        shmt_exchange_breathe(x, block);
    }
    shmt_blocks_forget(x);
}

/* ---- a merge ---- */

/* 1: there is another one in this epoch; 0: it was the last one; or a status. *told: this host has said what it has done. */
static int do_merge(struct shmt_exchange *x, bool *told) {
    static const uint64_t number[SHMT_ROUND_NUMBERS] = {[SHMT_ROUND_CLOCK] = SHMT_NO_CLOCK};
    const int works = ops(x)->gather(x->seat);
    if (works < 0) return works;
    shmt_exchange_does(x, SHMT_EVENT_EXCHANGE);
    shmt_exchange_open(x, shmt_exchange_is_asked_to_stop(x));
    if (x->error.status == 0) shmt_exchange_say_begin(x, works == 0 ? SHMT_ROUND_RESTS : SHMT_ROUND_WORKS, number);
    if (x->error.status == 0) send_parts(x);
    if (x->error.status == 0 && works == 0 && !*told) {
        shmt_exchange_tell_items(x);
        *told = true;
    }
    shmt_exchange_close(x);
    if (x->error.status != 0) return x->error.status;
    merge(x);
    shmt_exchange_does(x, SHMT_EVENT_WAIT); /* until workers have copied what was merged, and come to the next merge */
    if (x->stop) x->at.backend->far->live->stop(x->seat);
    const bool others_work = !shmt_exchange_all_others_rest(x);
    const int rc = ops(x)->publish(x->seat, others_work, x->stop);
    return rc < 0 ? rc : works == 1 || others_work;
}

static int epoch(struct shmt_exchange *x) {
    bool told = false;
    int rc = x->at.backend->far->live->begin(x->seat);
    if (rc != 1) return rc;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) x->heard[host].rests = false;
    while (rc == 1) rc = do_merge(x, &told);
    return rc;
}

/* ---- the run ---- */

static int plan(struct shmt_exchange *x) {
    x->n_words = 1 + shmt_flat_planes(x->at.spec);
    x->parts = calloc(x->at.spec->hosts.n, sizeof *x->parts);
    if (!x->parts) return shmt_no_memory(&x->error, "for the copies of all hosts");
    return shmt_sent_plan(x, all_blocks(x), SHMT_MOST_PARCEL_PARTS);
}

static void release(struct shmt_exchange *x) {
    shmt_sent_free(x);
    free(x->parts);
}

const struct shmt_turns SHMT_TURNS_MERGES = {
    .plan = plan, .free = release, .take = take, .most_bytes = most_bytes, .behind = SHMT_EVENT_MERGE, .epoch = epoch};
