/* Receiving, and the calls that other rooms see: see lanes.h. */
#include "link/lanes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "link/lanes_priv.h"
#include "sync/host.h"

int shmt_lanes_make(const struct shmt_lanes_spec *spec, struct shmt_lanes **out, struct shmt_error *e) {
    struct shmt_lanes *l = calloc(1, sizeof *l);
    if (!l) return shmt_no_memory(e, "for %u hosts", spec->n_hosts);
    l->spec = *spec;
    for (uint32_t rank = 0; rank < spec->n_hosts; rank++) {
        l->peer[rank].rto_ns = SHMT_RTO_FIRST;
        shmt_lanes_forget(&l->peer[rank]);
        if (spec->address)
            snprintf(l->name[rank], SHMT_HOST_NAME, "host %u (%.256s)", rank, spec->address[rank]);
        else
            snprintf(l->name[rank], SHMT_HOST_NAME, "host %u", rank);
    }
    l->spec.address = NULL;
    *out = l;
    return 0;
}

void shmt_lanes_free(struct shmt_lanes *l) {
    if (!l) return;
    for (uint32_t rank = 0; rank < l->spec.n_hosts; rank++) shmt_lanes_forget(&l->peer[rank]);
    free(l);
}

const char *shmt_lanes_name(const struct shmt_lanes *l, uint32_t rank) { return l->name[rank]; }

void shmt_lanes_count(const struct shmt_lanes *l, struct shmt_lanes_counts *out) { *out = l->counts; }

/* ---- a frame ---- */

/* An acknowledgement is due: at once, or with the next message. */
static void tell_by(struct shmt_lanes *l, struct shmt_lane *lane, uint64_t at_ns) {
    if (at_ns < lane->tell_ns) lane->tell_ns = at_ns;
    shmt_lanes_due_by(l, lane->tell_ns);
}

/* Whether the message is the channel's next. */
static bool take(struct shmt_lanes *l, uint32_t rank, const struct shmt_head *head, uint64_t bytes, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    struct shmt_lane *lane = &peer->lane[head->channel];
    if (head->sequence != lane->taken + 1) {
        l->counts.dropped++;
        if (head->sequence > lane->taken && now_ns >= lane->gap_ns) {
            lane->gap = true;
            lane->gap_ns = now_ns + (peer->smoothed_ns > 0 ? 2 * peer->smoothed_ns : SHMT_RTO_LEAST / 8);
        }
        tell_by(l, lane, lane->gap || head->sequence <= lane->taken ? now_ns : now_ns + SHMT_ACK_DELAY);
        return false;
    }
    lane->taken++;
    lane->gap = false;
    lane->untold_bytes += SHMT_HEAD_BYTES + bytes;
    tell_by(l, lane, lane->untold_bytes >= l->spec.window_bytes / 8 ? now_ns : now_ns + SHMT_ACK_DELAY);
    l->counts.received++;
    return true;
}

static bool is_for_me(const struct shmt_lanes *l, const struct shmt_head *head, uint32_t from) {
    return head->run == l->spec.run && head->to == l->spec.self && head->from == from && from < l->spec.n_hosts;
}

/* Of whatever a peer has sent: shmtrains of different versions do not understand one another. */
static void note_version(struct shmt_lanes *l, const struct shmt_frame *frame) {
    const uint32_t version = shmt_head_version(frame->head);
    if (frame->from < l->spec.n_hosts && version > 0) l->peer[frame->from].version = version;
}

/* Whether it brings a message. */
static bool look_at(struct shmt_lanes *l, const struct shmt_frame *frame, struct shmt_message *out) {
    const uint64_t now_ns = shmt_now_ns();
    struct shmt_head head;
    const char *why;
    note_version(l, frame);
    if (!shmt_head_read(frame->head, frame->body_bytes, &head, &why) || !is_for_me(l, &head, frame->from)) {
        l->counts.strange++;
        return false;
    }
    const uint32_t rank = head.from;
    l->counts.received_bytes += SHMT_HEAD_BYTES + frame->body_bytes;
    if (head.kind == SHMT_FRAME_LOST) {
        struct shmt_peer *peer = &l->peer[rank];
        if (head.to_life != l->spec.life || (peer->life != 0 && peer->life != head.life)) return false;
        peer->life = head.life;
        peer->parted = true;
        shmt_lanes_lose(l, rank);
        return false;
    }
    if (!shmt_lanes_hear(l, rank, &head, now_ns)) return false;
    if (!shmt_lanes_acknowledge(l, rank, head.channel, head.taken, now_ns)) {
        l->counts.strange++;
        return false;
    }
    if (head.kind == SHMT_FRAME_GAP) {
        shmt_lanes_repeat(l, rank, head.channel);
        shmt_lanes_pump(l, rank, now_ns);
    }
    if (head.kind != SHMT_FRAME_DATA || !take(l, rank, &head, frame->body_bytes, now_ns)) return false;
    *out = (struct shmt_message){.from = rank,
                                 .channel = head.channel,
                                 .life = head.life,
                                 .bytes = frame->body,
                                 .n = frame->body_bytes,
                                 .frame = *frame};
    return true;
}

/* ---- calls ---- */

static void judge(struct shmt_lanes *l, bool idle) {
    const uint64_t now_ns = shmt_now_ns();
    if (now_ns >= l->judge_ns) shmt_lanes_judge(l, now_ns, idle);
}

/* The next message that has come by then, or 0, or a status. */
static int receive_until(struct shmt_lanes *l, uint64_t until_ns, struct shmt_message *out) {
    struct shmt_frame frame;
    for (;;) {
        const int rc = shmt_carrier_receive(l->spec.carrier, until_ns, &frame, &l->error);
        if (rc <= 0) return rc;
        if (look_at(l, &frame, out)) return 1;
        shmt_carrier_release(l->spec.carrier, &frame);
        judge(l, false);
    }
}

int shmt_lanes_receive(struct shmt_lanes *l, uint64_t until_ns, struct shmt_message *out, bool *changed_out,
                       struct shmt_error *e) {
    int rc = l->failed;
    bool changed = false;
    if (rc == 0) judge(l, false);
    while (rc == 0 && !l->failed && !changed) {
        rc = receive_until(l, shmt_min_u64(until_ns, l->judge_ns), out);
        if (rc != 0) break;
        judge(l, true); /* nothing is left to receive */
        changed = l->changed;
        l->changed = false;
        if (shmt_now_ns() >= until_ns) break;
    }
    if (changed_out) *changed_out = changed;
    if (rc < 0) l->failed = rc;
    return l->failed < 0 ? shmt_fail(e, l->failed, "%s", l->error.text) : rc;
}

void shmt_lanes_release(struct shmt_lanes *l, struct shmt_message *message) {
    shmt_carrier_release(l->spec.carrier, &message->frame);
}
