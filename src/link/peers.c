/* Who is there: lives, suspicion, and what is due for each peer. See lanes.h. */
#include <stdio.h>

#include "base/checked.h"
#include "link/lanes_priv.h"
#include "sync/host.h"

static void become(struct shmt_lanes *l, struct shmt_peer *peer, enum shmt_peer_state state) {
    l->changed |= peer->state != state;
    l->judge_ns = 0; /* other things are due */
    peer->state = state;
}

/* The life that was known is over: nothing of what was meant for it goes to the next one. What waits for a peer that was not heard of
 * yet was meant for its first. */
static void begin_life(struct shmt_lanes *l, struct shmt_peer *peer, uint64_t life, uint64_t now_ns) {
    if (peer->life != 0) {
        shmt_lanes_forget(peer);
        l->changed = true;
    }
    become(l, peer, SHMT_PEER_UNKNOWN);
    peer->life = life;
    peer->parted = false;
    peer->heard_ns = now_ns;
    peer->smoothed_ns = 0;
    peer->rto_ns = SHMT_RTO_FIRST;
}

/* It hears us, too. */
static void meet(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    peer->heard_ns = now_ns;
    if (peer->state == SHMT_PEER_THERE) return;
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) {
        shmt_lanes_repeat(l, rank, channel);
        peer->lane[channel].progress_ns = now_ns;
    }
    become(l, peer, SHMT_PEER_THERE);
    shmt_lanes_pump(l, rank, now_ns);
}

bool shmt_lanes_hear(struct shmt_lanes *l, uint32_t rank, const struct shmt_head *head, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    const bool knows_me = head->to_life == l->spec.life;
    if (head->life < peer->life) { /* a late frame; or of a host whose clock went back: it has to start once more */
        shmt_lanes_say_to(l, rank, head->life, SHMT_FRAME_LOST, 0, now_ns);
        return false;
    }
    if (head->life > peer->life) begin_life(l, peer, head->life, now_ns);
    if (peer->state == SHMT_PEER_LOST) {
        shmt_lanes_say(l, rank, SHMT_FRAME_LOST, 0, now_ns);
        return false;
    }
    /* Where we do not know of one another yet: once it has this answer, it does, and so do we when it answers. */
    if (peer->state == SHMT_PEER_UNKNOWN) shmt_lanes_say(l, rank, SHMT_FRAME_BEAT, 0, now_ns);
    if (knows_me) meet(l, rank, now_ns);
    return knows_me;
}

void shmt_lanes_lose(struct shmt_lanes *l, uint32_t rank) {
    if (!l->has_lost) l->first_lost = rank;
    l->has_lost = true;
    struct shmt_peer *peer = &l->peer[rank];
    shmt_lanes_forget(peer);
    become(l, peer, SHMT_PEER_LOST);
}

void shmt_lanes_part(struct shmt_lanes *l) {
    for (uint32_t rank = 0; rank < l->spec.n_hosts; rank++) {
        if (rank == l->spec.self || l->peer[rank].state == SHMT_PEER_LOST || l->peer[rank].life == 0) continue;
        shmt_lanes_say(l, rank, SHMT_FRAME_LOST, 0, shmt_now_ns());
        shmt_lanes_lose(l, rank);
    }
}

/* Whom to name when this one has left: one that is silent, or else the one that was lost first. */
static uint32_t cause_of(const struct shmt_lanes *l, uint32_t rank) {
    for (uint32_t other = 0; other < l->spec.n_hosts; other++)
        if (other != l->spec.self && l->peer[other].state == SHMT_PEER_SUSPECT) return other;
    return l->has_lost ? l->first_lost : rank;
}

int shmt_lanes_check(const struct shmt_lanes *l, uint32_t rank, struct shmt_error *e) {
    if (l->peer[rank].state != SHMT_PEER_LOST) return 0;
    const uint32_t cause = l->peer[rank].parted ? cause_of(l, rank) : rank;
    return shmt_fail(e, SHMTRAIN_E_DIED, "%s %s", l->name[cause], l->peer[cause].parted ? "has left the run" : "is lost");
}

bool shmt_lanes_is_silent(const struct shmt_lanes *l, uint32_t rank) {
    return l->peer[rank].state == SHMT_PEER_LOST && !l->peer[rank].parted;
}

void shmt_lanes_why(const struct shmt_lanes *l, uint32_t rank, char out[SHMT_WHY]) {
    const uint32_t version = l->peer[rank].version;
    out[0] = '\0';
    if (shmt_lanes_is_silent(l, rank)) snprintf(out, SHMT_WHY, "it is lost");
    if (l->peer[rank].state != SHMT_PEER_UNKNOWN) return;
    if (version > 0 && version != SHMT_WIRE_VERSION)
        snprintf(out, SHMT_WHY,
                 "it has another version of shmtrain (of the wire format: %u, here %u): use the same on all hosts", version,
                 SHMT_WIRE_VERSION);
    else if (version == 0)
        shmt_carrier_why(l->spec.carrier, rank, out, SHMT_WHY);
}

int shmt_lanes_fail_absent(const struct shmt_lanes *l, uint32_t rank, struct shmt_error *e) {
    char why[SHMT_WHY];
    shmt_lanes_why(l, rank, why);
    return shmt_fail(e, SHMTRAIN_E_DIED, "%s has not come%s%s", l->name[rank], why[0] ? ": " : "", why);
}

enum shmt_peer_state shmt_lanes_peer(const struct shmt_lanes *l, uint32_t rank, uint64_t *life_out) {
    if (life_out) *life_out = l->peer[rank].life;
    return l->peer[rank].state;
}

/* ---- what is due ---- */

/* Of a peer that is there. The time of the next that will be. */
static uint64_t tell(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    uint64_t next_ns = UINT64_MAX;
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) {
        struct shmt_lane *lane = &peer->lane[channel];
        if (lane->tell_ns <= now_ns) {
            const bool gap = lane->gap;
            shmt_lanes_say(l, rank, gap ? SHMT_FRAME_GAP : SHMT_FRAME_BEAT, channel, now_ns);
            if (lane->tell_ns == UINT64_MAX)
                lane->gap = false; /* it was sent */
            else
                lane->tell_ns = now_ns + SHMT_RETRY_DELAY;
        }
        next_ns = shmt_min_u64(next_ns, lane->tell_ns);
    }
    return next_ns;
}

/* Nothing of a channel was acknowledged for as long as an answer may take: all of it that was sent goes again, and the next time may be
 * longer. */
static uint64_t repeat(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    uint64_t next_ns = UINT64_MAX;
    bool late = false;
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) {
        struct shmt_lane *lane = &peer->lane[channel];
        if (!lane->first) continue;
        if (now_ns >= lane->progress_ns + peer->rto_ns) {
            late = true;
            lane->progress_ns = now_ns;
            shmt_lanes_repeat(l, rank, channel);
        }
        next_ns = shmt_min_u64(next_ns, lane->progress_ns + peer->rto_ns);
    }
    if (late) peer->rto_ns = shmt_min_u64(2 * peer->rto_ns, SHMT_RTO_MOST);
    peer->full |= late; /* to be pumped */
    return next_ns;
}

/* A carrier that is full stays so for a while. */
static uint64_t pump(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    if (peer->full) shmt_lanes_pump(l, rank, now_ns);
    return peer->full ? now_ns + SHMT_RETRY_DELAY : UINT64_MAX;
}

static uint64_t suspect(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns, bool idle) {
    struct shmt_peer *peer = &l->peer[rank];
    const uint64_t silent_ns = now_ns > peer->heard_ns ? now_ns - peer->heard_ns : 0;
    if (peer->life == 0) return UINT64_MAX;     /* it has not started yet */
    if (!idle) return now_ns + l->spec.beat_ns; /* it may have been heard by then */
    if (silent_ns >= l->spec.lost_ns) {
        shmt_lanes_say(l, rank, SHMT_FRAME_LOST, 0, now_ns); /* perhaps it hears us */
        shmt_lanes_lose(l, rank);
        return UINT64_MAX;
    }
    if (silent_ns < l->spec.suspect_ns) return peer->heard_ns + l->spec.suspect_ns;
    if (peer->state == SHMT_PEER_THERE) become(l, peer, SHMT_PEER_SUSPECT);
    return peer->heard_ns + l->spec.lost_ns;
}

static uint64_t beat(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    /* A peer that is just starting is greeted more often. */
    const uint64_t every_ns = peer->state == SHMT_PEER_UNKNOWN ? l->spec.beat_ns / 10 : l->spec.beat_ns;
    if (now_ns < peer->sent_ns + every_ns) return peer->sent_ns + every_ns;
    shmt_lanes_say(l, rank, SHMT_FRAME_BEAT, 0, now_ns);
    peer->sent_ns = now_ns; /* also where the carrier has not taken it: it is full, or there is no connection */
    return now_ns + every_ns;
}

/* While this host was stopped, or did not ask, nobody can have been heard. */
static void discount_absence(struct shmt_lanes *l, uint64_t now_ns) {
    const uint64_t usual_ns = 2 * l->spec.beat_ns, since_ns = now_ns - l->judged_ns;
    for (uint32_t rank = 0; rank < l->spec.n_hosts && l->judged_ns > 0 && since_ns > usual_ns; rank++)
        l->peer[rank].heard_ns += since_ns - usual_ns;
    l->judged_ns = now_ns;
}

void shmt_lanes_judge(struct shmt_lanes *l, uint64_t now_ns, bool idle) {
    l->judge_ns = UINT64_MAX;
    discount_absence(l, now_ns);
    for (uint32_t rank = 0; rank < l->spec.n_hosts; rank++) {
        struct shmt_peer *peer = &l->peer[rank];
        if (rank == l->spec.self || peer->state == SHMT_PEER_LOST) continue;
        l->judge_ns = shmt_min_u64(l->judge_ns, suspect(l, rank, now_ns, idle));
        if (peer->state == SHMT_PEER_LOST) continue;
        if (peer->state == SHMT_PEER_THERE) {
            l->judge_ns = shmt_min_u64(l->judge_ns, repeat(l, rank, now_ns));
            l->judge_ns = shmt_min_u64(l->judge_ns, pump(l, rank, now_ns));
            l->judge_ns = shmt_min_u64(l->judge_ns, tell(l, rank, now_ns));
        }
        l->judge_ns = shmt_min_u64(l->judge_ns, beat(l, rank, now_ns));
    }
}
