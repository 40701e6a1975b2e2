/* Channels between hosts: messages arrive once, whole, and in the order in which they were sent, or their peer is lost. Written once,
 * above every carrier (carriers/carrier.h), which may lose, repeat and reorder frames.
 *
 * Each pair of hosts has SHMT_CHANNELS channels in each direction, which do not wait for one another, but share the window; those
 * with the smaller numbers are sent first. A message is one frame, with a number. The receiver takes messages in order, drops the
 * others, and acknowledges what it has taken with the next frame that it sends, or by a frame of its own a little later (cumulative
 * acknowledgements, go-back-N: carriers below that matter keep the order, so that nothing is sent twice but after a loss). The sender
 * keeps what was not acknowledged, by reference, and sends it again when an answer takes too long (RFC 6298) or the receiver reports
 * a gap. At most `window_bytes` are kept for each peer, however slow it is.
 *
 * A peer that has not been heard for `suspect_ns` is suspected, and nothing but beats is sent to it; after `lost_ns` it is lost, for
 * this life of it: what was kept for it is dropped, and what it sends is answered by a notice that it is lost, to which it answers by
 * declaring us lost. So a host that was only stopped does not come back unnoticed. A peer that starts anew has a new life, and begins
 * with its channels' first numbers. Silence is judged only when there is nothing more to receive, and time
 * in which this host did not look does not count: if it was stopped itself, its peers were not silent.
 *
 * One thread owns the lanes, and makes progress inside these calls alone: it calls shmt_lanes_receive at least every `beat_ns`. Times
 * are of the host's clock (sync/host.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "carriers/carrier.h"

#define SHMT_CHANNELS 8

struct shmt_lanes;

struct shmt_lanes_spec {
    struct shmt_carrier *carrier; /* stays the caller's */
    uint32_t self, n_hosts;
    uint64_t run, life;    /* life: greater with each start of this host: the time, in nanoseconds since 1970 */
    uint64_t window_bytes; /* that are kept for one peer; at least SHMT_HEAD_BYTES + SHMT_MOST_BODY */
    uint64_t beat_ns, suspect_ns, lost_ns;
    const char *const *address; /* (n_hosts) for sentences; NULL: none. Copied */
};

#define SHMT_HOST_NAME 288 /* room for what shmt_lanes_name returns */

/* What option defaults say. */
#define SHMT_LANES_WINDOW  (UINT64_C(32) << 20)
#define SHMT_LANES_BEAT    UINT64_C(250000000)
#define SHMT_LANES_SUSPECT UINT64_C(1000000000)
#define SHMT_LANES_LOST    UINT64_C(10000000000)

enum shmt_peer_state {
    SHMT_PEER_UNKNOWN, /* of this life of it we have not heard that it hears us */
    SHMT_PEER_THERE,
    SHMT_PEER_SUSPECT,
    SHMT_PEER_LOST, /* until it starts anew */
};

/* What shmt_lanes_receive brings. */
struct shmt_message {
    uint32_t from, channel;
    uint64_t life; /* of the sender */
    const unsigned char *bytes;
    uint64_t n;
    struct shmt_frame frame; /* the lanes' own */
};

struct shmt_lanes_counts {
    uint64_t sent, repeated, received, dropped; /* frames with a message; dropped: repeated ones, and those behind a gap */
    uint64_t strange;                           /* frames that no host of this run can have sent, or damaged ones */
    uint64_t sent_bytes, received_bytes;        /* heads included */
};

/* Errors: _MEMORY. */
int shmt_lanes_make(const struct shmt_lanes_spec *spec, struct shmt_lanes **out, struct shmt_error *e);
void shmt_lanes_free(struct shmt_lanes *lanes); /* NULL: nothing is done */

/* Sends a message, at most SHMT_MOST_BODY bytes; NULL: an empty one. The lanes take a reference of their own. 1: it will arrive, unless
 * the peer is lost. 0: the window is full: call shmt_lanes_receive, then try again. _DIED: the peer is lost. Does not wait. A peer that
 * was not heard of yet gets what was sent to it as soon as it is there. */
int shmt_lanes_send(struct shmt_lanes *lanes, uint32_t to, uint32_t channel, struct shmt_payload *body, struct shmt_error *e);

/* The next message of any peer and channel: 1 and *out, to be released. 0: there was none before `until_ns`, or the state of a peer has
 * changed: `*changed_out` (may be NULL) says whether it has. A status: the carrier's. */
int shmt_lanes_receive(struct shmt_lanes *lanes, uint64_t until_ns, struct shmt_message *out, bool *changed_out,
                       struct shmt_error *e);
void shmt_lanes_release(struct shmt_lanes *lanes, struct shmt_message *message);

/* Tells all peers that this host gives up: they find it lost at once, if the notice reaches them, and after `lost_ns` if not. Nothing is
 * sent or received afterwards. */
void shmt_lanes_part(struct shmt_lanes *lanes);

/* "host 1 (b:5000)", or "host 1" where there are no addresses. As long as the lanes. */
const char *shmt_lanes_name(const struct shmt_lanes *lanes, uint32_t rank);

/* Why a peer that is not there may be missing, in a few words; "": nothing is known. */
#define SHMT_WHY 200
void shmt_lanes_why(const struct shmt_lanes *lanes, uint32_t rank, char out[SHMT_WHY]);

/* _DIED: the peer has not come, with the reason where it is known. */
int shmt_lanes_fail_absent(const struct shmt_lanes *lanes, uint32_t rank, struct shmt_error *e);

/* It was there, is lost, and has not said that it leaves. */
bool shmt_lanes_is_silent(const struct shmt_lanes *lanes, uint32_t rank);

/* _DIED, with a sentence, when the peer is lost: it has been silent; or it has left the run, by its own notice. Who leaves has a reason,
 * which may be a third one that is silent for us, too, but not yet lost: then that one is named. */
int shmt_lanes_check(const struct shmt_lanes *lanes, uint32_t rank, struct shmt_error *e);

enum shmt_peer_state shmt_lanes_peer(const struct shmt_lanes *lanes, uint32_t rank, uint64_t *life_out);

/* All that was sent to peers that are not lost has been acknowledged. */
bool shmt_lanes_are_empty(const struct shmt_lanes *lanes);

void shmt_lanes_count(const struct shmt_lanes *lanes, struct shmt_lanes_counts *out);
