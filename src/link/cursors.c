/* What all hosts have sent about blocks in a turn, block by block: those that have come, and those that this host has sent itself. So all
 * hosts work out the same from the same bytes. For merges and quorums. */
#include <stdlib.h>

#include "base/checked.h"
#include "link/exchange_priv.h"

static bool is_own(const struct shmt_exchange *x, uint32_t host) { return !shmt_exchange_is_other(x, host); }

static void open_message(const struct shmt_exchange *x, struct shmt_cursor *c, bool own) {
    const char *why;
    c->i = 0;
    c->block = SHMT_NO_BLOCK;
    if (own ? c->at == x->n_sent : !c->kept) return;
    const unsigned char *bytes = own ? x->sent[c->at]->bytes : c->kept->message.bytes;
    const uint64_t n = own ? x->sent[c->at]->n : c->kept->message.n;
    (void)shmt_parcel_read(bytes, n, &c->parcel, &why); /* as when it came */
    c->block = shmt_parcel_number(&c->parcel, 0);
}

void shmt_cursors_open(const struct shmt_exchange *x, struct shmt_cursor cursor[SHMT_MAX_HOSTS]) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) {
        cursor[host] = (struct shmt_cursor){.kept = x->heard[host].blocks.first};
        open_message(x, &cursor[host], is_own(x, host));
    }
}

uint64_t shmt_cursors_next(const struct shmt_exchange *x, const struct shmt_cursor cursor[SHMT_MAX_HOSTS]) {
    uint64_t least = SHMT_NO_BLOCK;
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) least = shmt_min_u64(least, cursor[host].block);
    return least;
}

void shmt_cursor_step(const struct shmt_exchange *x, struct shmt_cursor cursor[SHMT_MAX_HOSTS], uint32_t host) {
    struct shmt_cursor *c = &cursor[host];
    if (++c->i < c->parcel.n) {
        c->block = shmt_parcel_number(&c->parcel, c->i);
        return;
    }
    if (is_own(x, host))
        c->at++;
    else
        c->kept = c->kept->next;
    open_message(x, c, is_own(x, host));
}

int shmt_sent_plan(struct shmt_exchange *x, uint64_t n_blocks, uint64_t of_parcel) {
    x->sent = calloc(shmt_ceil_div(n_blocks, of_parcel) + 1, sizeof *x->sent);
    return x->sent ? 0 : shmt_no_memory(&x->error, "for what is sent to other hosts");
}

void shmt_sent_keep(struct shmt_exchange *x, struct shmt_payload *payload) {
    x->sent[x->n_sent++] = shmt_payload_hold(payload);
}

void shmt_blocks_forget(struct shmt_exchange *x) {
    for (uint32_t host = 0; host < x->at.spec->hosts.n; host++) shmt_kept_release(&x->heard[host].blocks, x->at.lanes);
    while (x->n_sent > 0) shmt_payload_drop(x->sent[--x->n_sent]);
}

void shmt_sent_free(struct shmt_exchange *x) {
    if (x->sent) shmt_blocks_forget(x);
    free((void *)x->sent);
}
