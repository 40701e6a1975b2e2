/* What the turns of all modes but batches share, rounds, merges and quorums: how each begins, and what hosts tell one another of the items
 * that they have done. A turn begins with ROUND (of quorums, the last one of an epoch); once in an epoch, when its workers rest, a host
 * tells of all of its items. */
#include "link/exchange_priv.h"

#include "base/checked.h"
#include "link/passing.h"
#include "sync/host.h"

#define BREATH_BLOCKS 8192 /* 8 MB, a few milliseconds */

static const struct shmt_far_live_ops *ops(const struct shmt_exchange *x) { return x->at.backend->far->live; }

void shmt_exchange_breathe(struct shmt_exchange *x, uint64_t block) {
    if (block % BREATH_BLOCKS == BREATH_BLOCKS - 1 && x->error.status == 0) shmt_exchange_receive(x, 0);
}

bool shmt_exchange_is_asked_to_stop(const struct shmt_exchange *x) {
    return load_relaxed(x->at.backend->store->stop_word(x->at.store)) != 0; /* relaxed: a flag */
}

/* ---- what comes ---- */

static void begin_of(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    struct shmt_heard *heard = &x->heard[from];
    if (heard->begun || parcel->of > (x->passing ? SHMT_ROUND_OUT : SHMT_ROUND_RESTS)) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, heard->begun ? "begins a round twice" : "begins a round that there is not",
                           from);
        return;
    }
    const uint64_t clock = shmt_parcel_number(parcel, SHMT_ROUND_CLOCK);
    heard->begun = true;
    heard->rests = parcel->of == SHMT_ROUND_RESTS;
    heard->out = parcel->of == SHMT_ROUND_OUT;
    heard->stop = parcel->flag;
    heard->clock = heard->rests ? SHMT_NO_CLOCK : clock;
    heard->busy_ns = heard->rests ? clock : 0;
    heard->headway = (struct shmt_headway){.waits = heard->out,
                                           .left = shmt_parcel_number(parcel, SHMT_ROUND_LEFT),
                                           .each_ns = shmt_parcel_number(parcel, SHMT_ROUND_EACH),
                                           .way_ns = shmt_parcel_number(parcel, SHMT_ROUND_WAY)};
    heard->next_block = 0;
    x->begun_ns = shmt_now_ns();
}

void shmt_exchange_items_of(const struct shmt_exchange *x, uint32_t host, struct shmt_host_items *out) {
    uint64_t n_passed;
    shmt_share_of(ops(x)->dealt(x->seat), host, &out->share);
    out->own = shmt_share_items(&out->share, shmt_spec_pieces(x->at.spec));
    out->passed = shmt_passing_received(x, host, &n_passed);
    out->n = out->own + n_passed;
}

static uint64_t item_at(const struct shmt_host_items *items, uint64_t i) {
    return i < items->own ? shmt_share_item(&items->share, i) : items->passed[i - items->own];
}

static void put_pieces(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    struct shmt_host_items items;
    shmt_exchange_items_of(x, from, &items);
    if (!x->heard[from].rests || parcel->of > items.n || parcel->n > items.n - parcel->of) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "says that it has done other items than its own", from);
        return;
    }
    for (uint32_t i = 0; i < parcel->n; i++) {
        struct shmt_far_piece piece;
        const uint64_t number = item_at(&items, parcel->of + i);
        shmt_parcel_piece(parcel, i, &piece);
        if (piece.examples != 0 && piece.examples != shmt_spec_examples_of_step(x->at.spec, number)) {
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has done another number of examples than an item has", from);
            return;
        }
        ops(x)->put_piece(x->seat, number, &piece);
    }
}

void shmt_exchange_take_items(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel) {
    if (parcel->kind == SHMT_PARCEL_ROUND) {
        begin_of(x, from, parcel);
    } else if (!x->heard[from].begun) {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "begins a round in the middle", from);
    } else if (parcel->kind == SHMT_PARCEL_PIECES) {
        put_pieces(x, from, parcel);
    } else if (parcel->kind == SHMT_PARCEL_END) {
        x->heard[from].end = true;
    } else {
        shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent a message of another kind of run", from);
    }
}

bool shmt_exchange_keep_blocks(struct shmt_exchange *x, uint32_t from, const struct shmt_parcel *parcel,
                               const struct shmt_message *message, uint64_t n_blocks) {
    struct shmt_heard *heard = &x->heard[from];
    for (uint32_t i = 0; i < parcel->n; i++) {
        const uint64_t block = shmt_parcel_number(parcel, i);
        if (block < heard->next_block || block >= n_blocks || parcel->of != 0) {
            shmt_exchange_fail(x, SHMTRAIN_E_USAGE, "has sent changes of parameters that there are not, or not in order", from);
            return false;
        }
        heard->next_block = block + 1;
    }
    if (parcel->n > 0 && !shmt_keep(&heard->blocks, message)) {
        shmt_no_memory(&x->error, "for changes of %s", shmt_lanes_name(x->at.lanes, from));
        return false;
    }
    return parcel->n > 0;
}

bool shmt_exchange_all_others_rest(const struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++)
        if (shmt_exchange_is_other(x, host) && !x->heard[host].rests) return false;
    return true;
}

/* ---- what goes ---- */

void shmt_exchange_say_begin(struct shmt_exchange *x, enum shmt_round_state state, const uint64_t number[SHMT_ROUND_NUMBERS]) {
    unsigned char *entries;
    const struct shmt_parcel parcel = {
        .kind = SHMT_PARCEL_ROUND, .of = state, .n = SHMT_ROUND_NUMBERS, .number = x->number, .flag = x->stop};
    struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
    for (uint32_t i = 0; payload && i < SHMT_ROUND_NUMBERS; i++) shmt_parcel_put_number(entries, i, number[i]);
    shmt_exchange_send(x, payload);
}

void shmt_exchange_tell_items(struct shmt_exchange *x) {
    struct shmt_host_items items;
    shmt_exchange_items_of(x, x->at.spec->hosts.self, &items);
    for (uint64_t at = 0, n; at < items.n && x->error.status == 0; at += n) {
        n = shmt_min_u64(SHMT_MOST_PARCEL_PIECES, items.n - at);
        unsigned char *entries;
        const struct shmt_parcel parcel = {
            .kind = SHMT_PARCEL_PIECES, .of = (uint32_t)at, .n = (uint32_t)n, .number = x->number};
        struct shmt_payload *payload = shmt_parcel_make(&parcel, &entries);
        for (uint32_t i = 0; payload && i < n; i++) {
            struct shmt_far_piece piece;
            ops(x)->piece(x->seat, item_at(&items, at + i), &piece);
            shmt_parcel_put_piece(entries, i, &piece);
        }
        shmt_exchange_send(x, payload);
    }
}

void shmt_exchange_deal_by_speed(struct shmt_exchange *x) {
    struct shmt_shares next;
    uint64_t busy_ns[SHMT_MAX_HOSTS], done[SHMT_MAX_HOSTS];
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        busy_ns[host] = shmt_exchange_is_other(x, host) ? x->heard[host].busy_ns : x->busy_ns;
        done[host] = shmt_passing_dealt(x, host);
    }
    shmt_shares_by_speed(ops(x)->dealt(x->seat), done, busy_ns, &next);
    ops(x)->deal(x->seat, &next);
}
