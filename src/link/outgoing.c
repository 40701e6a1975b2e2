/* What a host sends: messages that are kept until they are acknowledged, and frames without a body. See lanes.h. */
#include <stdlib.h>

#include "link/lanes_priv.h"
#include "sync/host.h"

/* Whether the carrier has taken it. */
static bool hand_over(struct shmt_lanes *l, uint32_t rank, uint64_t to_life, struct shmt_head *head, struct shmt_payload *body,
                      uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    const uint64_t bytes = body ? body->n : 0;
    unsigned char wire[SHMT_HEAD_BYTES];
    head->from = l->spec.self;
    head->to = rank;
    head->run = l->spec.run;
    head->life = l->spec.life;
    head->to_life = to_life;
    head->taken = peer->lane[head->channel].taken;
    shmt_head_write(head, bytes, wire);
    const int rc = shmt_carrier_send(l->spec.carrier, rank, wire, body, &l->error);
    if (rc < 0) l->failed = rc;
    if (rc <= 0) return false;
    peer->sent_ns = now_ns;
    l->counts.sent_bytes += SHMT_HEAD_BYTES + bytes;
    struct shmt_lane *lane = &peer->lane[head->channel];
    if (to_life == peer->life && head->kind != SHMT_FRAME_LOST) { /* it has `taken` with it */
        lane->tell_ns = UINT64_MAX;
        lane->untold_bytes = 0;
    }
    return true;
}

/* A carrier that is full stays so for a while. */
static void note_full(struct shmt_lanes *l, struct shmt_peer *peer, uint64_t now_ns) {
    peer->full = true;
    shmt_lanes_due_by(l, now_ns + SHMT_RETRY_DELAY);
}

void shmt_lanes_say_to(struct shmt_lanes *l, uint32_t rank, uint64_t life, enum shmt_frame_kind kind, uint32_t channel,
                       uint64_t now_ns) {
    struct shmt_head head = {.kind = kind, .channel = channel};
    if (!hand_over(l, rank, life, &head, NULL, now_ns)) note_full(l, &l->peer[rank], now_ns);
}

void shmt_lanes_say(struct shmt_lanes *l, uint32_t rank, enum shmt_frame_kind kind, uint32_t channel, uint64_t now_ns) {
    shmt_lanes_say_to(l, rank, l->peer[rank].life, kind, channel, now_ns);
}

static bool send_kept(struct shmt_lanes *l, uint32_t rank, uint32_t channel, uint64_t now_ns) {
    struct shmt_lane *lane = &l->peer[rank].lane[channel];
    struct shmt_kept *kept = lane->cursor;
    struct shmt_head head = {.kind = SHMT_FRAME_DATA, .channel = channel, .sequence = kept->sequence};
    if (!hand_over(l, rank, l->peer[rank].life, &head, kept->body, now_ns)) return false;
    l->counts.sent += kept->times == 0;
    l->counts.repeated += kept->times > 0;
    kept->times++;
    kept->sent_ns = now_ns;
    lane->cursor = kept->next;
    return true;
}

/* The channels with the smaller numbers first. */
void shmt_lanes_pump(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    peer->full = false;
    if (peer->state != SHMT_PEER_THERE) return;
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++)
        while (peer->lane[channel].cursor && !peer->full)
            if (!send_kept(l, rank, channel, now_ns)) note_full(l, peer, now_ns);
}

int shmt_lanes_send(struct shmt_lanes *l, uint32_t to, uint32_t channel, struct shmt_payload *body, struct shmt_error *e) {
    struct shmt_peer *peer = &l->peer[to];
    struct shmt_lane *lane = &peer->lane[channel];
    const uint64_t bytes = SHMT_HEAD_BYTES + (body ? body->n : 0), now_ns = shmt_now_ns();
    if (bytes > SHMT_HEAD_BYTES + SHMT_MOST_BODY)
        return shmt_refuse(e, "a message to %s is longer than %llu bytes", shmt_lanes_name(l, to),
                           (unsigned long long)SHMT_MOST_BODY);
    if (peer->state == SHMT_PEER_LOST) return shmt_lanes_check(l, to, e);
    if (peer->kept_bytes + bytes > l->spec.window_bytes) return 0;
    struct shmt_kept *kept = malloc(sizeof *kept);
    if (!kept) return shmt_no_memory(e, "for a message to %s", shmt_lanes_name(l, to));
    *kept = (struct shmt_kept){.body = shmt_payload_hold(body), .sequence = ++lane->sequence, .bytes = bytes};
    if (!lane->first) lane->progress_ns = now_ns;
    if (lane->last)
        lane->last->next = kept;
    else
        lane->first = kept;
    lane->last = kept;
    if (!lane->cursor) lane->cursor = kept;
    peer->kept_bytes += bytes;
    shmt_lanes_due_by(l, now_ns + peer->rto_ns);
    if (!peer->full) shmt_lanes_pump(l, to, now_ns);
    return 1;
}

/* ---- what is kept ---- */

static struct shmt_kept *drop_first(struct shmt_peer *peer, struct shmt_lane *lane) {
    struct shmt_kept *kept = lane->first, *next = kept->next;
    if (lane->cursor == kept) lane->cursor = next; /* it was taken, and waited to be repeated */
    lane->first = next;
    if (!next) lane->last = NULL;
    peer->kept_bytes -= kept->bytes;
    shmt_payload_drop(kept->body);
    free(kept);
    return next;
}

/* RFC 6298, 2.2 and 2.3. */
static void measure_round(struct shmt_peer *peer, uint64_t round_ns) {
    if (peer->smoothed_ns == 0) {
        peer->smoothed_ns = round_ns;
        peer->variation_ns = round_ns / 2;
    } else {
        const uint64_t off = peer->smoothed_ns > round_ns ? peer->smoothed_ns - round_ns : round_ns - peer->smoothed_ns;
        peer->variation_ns = peer->variation_ns - peer->variation_ns / 4 + off / 4;
        peer->smoothed_ns = peer->smoothed_ns - peer->smoothed_ns / 8 + round_ns / 8;
    }
    const uint64_t rto_ns = peer->smoothed_ns + 4 * peer->variation_ns + SHMT_ACK_DELAY;
    peer->rto_ns = rto_ns < SHMT_RTO_LEAST ? SHMT_RTO_LEAST : rto_ns < SHMT_RTO_MOST ? rto_ns : SHMT_RTO_MOST;
}

bool shmt_lanes_acknowledge(struct shmt_lanes *l, uint32_t rank, uint32_t channel, uint64_t taken, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    struct shmt_lane *lane = &peer->lane[channel];
    if (taken > lane->sequence) return false;
    for (struct shmt_kept *kept = lane->first; kept && kept->sequence <= taken; kept = drop_first(peer, lane)) {
        if (kept->times == 0) return false; /* it has never left */
        if (kept->times == 1)
            measure_round(peer, now_ns - kept->sent_ns); /* which of several it is an answer to nobody knows (Karn) */
        lane->progress_ns = now_ns;
    }
    return true;
}

void shmt_lanes_repeat(struct shmt_lanes *l, uint32_t rank, uint32_t channel) {
    struct shmt_lane *lane = &l->peer[rank].lane[channel];
    lane->cursor = lane->first;
}

void shmt_lanes_forget(struct shmt_peer *peer) {
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) {
        struct shmt_lane *lane = &peer->lane[channel];
        while (lane->first) (void)drop_first(peer, lane);
        *lane = (struct shmt_lane){.tell_ns = UINT64_MAX};
    }
}

bool shmt_lanes_are_empty(const struct shmt_lanes *l) {
    for (uint32_t rank = 0; rank < l->spec.n_hosts; rank++)
        if (l->peer[rank].kept_bytes > 0) return false;
    return true;
}
