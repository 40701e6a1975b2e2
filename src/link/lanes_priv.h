/* The inside of lanes: a peer, and what is kept for it. lanes.c receives and keeps time; outgoing.c sends; peers.c knows who is there. */
#pragma once

#include "link/head.h"
#include "link/lanes.h"

#define SHMT_ACK_DELAY   UINT64_C(1000000)    /* an acknowledgement waits so long for a message that can carry it */
#define SHMT_RTO_FIRST   UINT64_C(1000000000) /* RFC 6298, 2.1 */
#define SHMT_RTO_LEAST   UINT64_C(200000000)  /* carriers below that matter lose nothing but at a reconnection */
#define SHMT_RTO_MOST    UINT64_C(2000000000)
#define SHMT_RETRY_DELAY UINT64_C(200000) /* behind a carrier that was full */

/* A message that was not acknowledged yet. */
struct shmt_kept {
    struct shmt_kept *next;
    struct shmt_payload *body;
    uint64_t sequence, bytes, sent_ns;
    uint32_t times; /* that it was handed to the carrier */
};

struct shmt_lane {
    /* outgoing */
    struct shmt_kept *first, *last;
    struct shmt_kept *cursor; /* the first that waits to be handed to the carrier; NULL: none does */
    uint64_t sequence;        /* of the last message */
    uint64_t progress_ns;     /* when the peer has last acknowledged something of it, or its queue was empty */
    /* incoming */
    uint64_t taken;
    uint64_t untold_bytes; /* taken, and not acknowledged yet */
    uint64_t tell_ns;      /* when it is to be; UINT64_MAX: it has been */
    uint64_t gap_ns;       /* when a gap may be reported again */
    bool gap;              /* to be reported with the next acknowledgement */
};

struct shmt_peer {
    enum shmt_peer_state state;
    uint64_t life; /* 0: not heard of */
    uint64_t heard_ns, sent_ns;
    uint64_t kept_bytes;
    uint64_t smoothed_ns, variation_ns, rto_ns; /* RFC 6298; smoothed_ns 0: no round trip was measured yet */
    bool parted;                                /* it was lost by a notice of its own */
    uint32_t version;                           /* of the wire, in its last frame; 0: none has come */
    bool full;                                  /* the carrier was, at the last attempt */
    struct shmt_lane lane[SHMT_CHANNELS];
};

struct shmt_lanes {
    struct shmt_lanes_spec spec;
    struct shmt_lanes_counts counts;
    uint64_t judge_ns; /* nothing is due before */
    uint64_t judged_ns;
    bool has_lost;
    uint32_t first_lost; /* has_lost: who was lost before all others */
    bool changed;        /* a peer's state, since shmt_lanes_receive has said so */
    struct shmt_error error;
    int failed; /* a status of the carrier */
    struct shmt_peer peer[SHMT_MOST_HOSTS];
    char name[SHMT_MOST_HOSTS][SHMT_HOST_NAME];
};

/* ---- outgoing.c ---- */

/* Sends all that waits, as far as the carrier takes it. */
void shmt_lanes_pump(struct shmt_lanes *l, uint32_t rank, uint64_t now_ns);

/* A frame without a body, at once, to the life that is known, or to another one. */
void shmt_lanes_say(struct shmt_lanes *l, uint32_t rank, enum shmt_frame_kind kind, uint32_t channel, uint64_t now_ns);
void shmt_lanes_say_to(struct shmt_lanes *l, uint32_t rank, uint64_t life, enum shmt_frame_kind kind, uint32_t channel,
                       uint64_t now_ns);

/* The peer has taken all of the channel up to `taken`. false: it cannot have. */
bool shmt_lanes_acknowledge(struct shmt_lanes *l, uint32_t rank, uint32_t channel, uint64_t taken, uint64_t now_ns);

/* Sends again what was sent and not acknowledged. */
void shmt_lanes_repeat(struct shmt_lanes *l, uint32_t rank, uint32_t channel);

/* Drops all that is kept for it. */
void shmt_lanes_forget(struct shmt_peer *peer);

/* ---- peers.c ---- */

/* A frame has come: whether it was meant for this life of this host, by a life that is not over. */
bool shmt_lanes_hear(struct shmt_lanes *l, uint32_t rank, const struct shmt_head *head, uint64_t now_ns);

void shmt_lanes_lose(struct shmt_lanes *l, uint32_t rank);

/* What is due by now: acknowledgements, beats, repetitions and, where nothing more waits to be received (`idle`), suspicion. The time
 * of the next one goes to l->judge_ns. */
void shmt_lanes_judge(struct shmt_lanes *l, uint64_t now_ns, bool idle);

/* Something is due by then. */
static inline void shmt_lanes_due_by(struct shmt_lanes *l, uint64_t at_ns) {
    if (at_ns < l->judge_ns) l->judge_ns = at_ns;
}
