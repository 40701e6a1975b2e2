/* Who is there: lives, suspicion, and what is due for each peer. See lanes.h. */
#include "base/checked.h"
#include "link/lanes_priv.h"

static bool is_over(const struct shmt_peer *peer, uint64_t life) {
    for (uint32_t i = 0; i < peer->n_old && i < SHMT_OLD_LIVES; i++)
        if (peer->old_life[i] == life) return true;
    return false;
}

static void become(struct shmt_lanes *l, struct shmt_peer *peer, enum shmt_peer_state state) {
    l->changed |= peer->state != state;
    peer->state = state;
}

/* The life that was known is over: nothing of what was meant for it goes to the next one. What waits for a peer that was not heard of
 * yet was meant for its first. */
static void begin_life(struct shmt_lanes *l, struct shmt_peer *peer, uint64_t life) {
    if (peer->life != 0) {
        peer->old_life[peer->n_old++ % SHMT_OLD_LIVES] = peer->life;
        shmt_lanes_forget(peer);
        l->changed = true;
    }
    become(l, peer, SHMT_PEER_UNKNOWN);
    peer->life = life;
    peer->smoothed_ns = 0;
    peer->rto_ns = SHMT_RTO_FIRST;
}

/* It hears us, too. */
static void is_there(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    peer->heard_ns = now_ns;
    if (peer->state == SHMT_PEER_THERE) return;
    for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) shmt_lanes_repeat(l, rank, channel);
    become(l, peer, SHMT_PEER_THERE);
    peer->progress_ns = now_ns;
    shmt_lanes_pump(l, rank, now_ns);
}

bool shmt_lanes_heard(struct shmt_lanes *l, uint32_t rank, const struct shmt_head *head, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    const bool is_new = head->life != peer->life, knows_me = head->to_life == l->spec.life;
    if (is_new && is_over(peer, head->life)) return false;
    if (is_new) begin_life(l, peer, head->life);
    if (peer->state == SHMT_PEER_LOST) {
        shmt_lanes_say(l, rank, SHMT_FRAME_LOST, 0, now_ns);
        return false;
    }
    /* Where we do not know of one another yet: once it has this answer, it does, and so do we when it answers. */
    if (peer->state == SHMT_PEER_UNKNOWN) shmt_lanes_say(l, rank, SHMT_FRAME_BEAT, 0, now_ns);
    if (knows_me) is_there(l, rank, now_ns);
    return knows_me;
}

void shmt_lanes_lose(struct shmt_lanes *l, uint32_t rank) {
    struct shmt_peer *peer = &l->peer[rank];
    shmt_lanes_forget(peer);
    become(l, peer, SHMT_PEER_LOST);
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

/* Nothing was acknowledged for as long as an answer may take: all that was sent goes again, and the next time may be longer. */
static uint64_t repeat(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    if (peer->kept_bytes == 0) return UINT64_MAX;
    if (now_ns >= peer->progress_ns + peer->rto_ns) {
        peer->rto_ns = shmt_min_u64(2 * peer->rto_ns, SHMT_RTO_MOST);
        peer->progress_ns = now_ns;
        for (uint32_t channel = 0; channel < SHMT_CHANNELS; channel++) shmt_lanes_repeat(l, rank, channel);
        peer->full = true; /* to be pumped */
    }
    return peer->progress_ns + peer->rto_ns;
}

/* A carrier that is full stays so for a while. */
static uint64_t pump(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    if (peer->full) shmt_lanes_pump(l, rank, now_ns);
    return peer->full ? now_ns + SHMT_RETRY_DELAY : UINT64_MAX;
}

static uint64_t suspect(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns, bool idle) {
    struct shmt_peer *peer = &l->peer[rank];
    const uint64_t silent_ns = now_ns - peer->heard_ns;
    if (peer->state == SHMT_PEER_UNKNOWN) return UINT64_MAX;
    if (!idle) return now_ns + l->spec.beat_ns; /* it may have been heard by then */
    if (silent_ns >= l->spec.lost_ns) {
        shmt_lanes_say(l, rank, SHMT_FRAME_LOST, 0, now_ns); /* perhaps it hears us */
        shmt_lanes_lose(l, rank);
        return UINT64_MAX;
    }
    if (silent_ns < l->spec.suspect_ns) return peer->heard_ns + l->spec.suspect_ns;
    become(l, peer, SHMT_PEER_SUSPECT);
    return peer->heard_ns + l->spec.lost_ns;
}

static uint64_t beat(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns) {
    struct shmt_peer *peer = &l->peer[rank];
    if (now_ns < peer->sent_ns + l->spec.beat_ns) return peer->sent_ns + l->spec.beat_ns;
    shmt_lanes_say(l, rank, SHMT_FRAME_BEAT, 0, now_ns);
    peer->sent_ns = now_ns; /* even where the carrier was full: then there is something on its way */
    return now_ns + l->spec.beat_ns;
}

void shmt_lanes_judge(struct shmt_lanes *l, uint64_t now_ns, bool idle) {
    l->judge_ns = UINT64_MAX;
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
