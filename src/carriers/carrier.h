/* THE CONTRACT of carriers: how frames get from host to host. A new carrier can be written from this header.
 *
 * A frame is a head of SHMT_HEAD_BYTES and a body of any length, which may be empty. A carrier delivers it whole, at most once or
 * more than once, in any order, or not at all: it knows neither channels nor acknowledgements, and does not watch its peers. Room
 * link does all that once, above every carrier.
 *
 * Hosts are numbered by rank, from 0. One thread owns a carrier and calls all its entries; it is opened behind the last fork of
 * this thread's process, because the libraries below it do not survive one. No entry but `receive` waits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "carriers/payload.h"

#define SHMT_HEAD_BYTES 64
#define SHMT_MOST_HOSTS 64                  /* ranks on the wire */
#define SHMT_MOST_BODY  (UINT64_C(1) << 20) /* bytes of a body: a longer one is refused on both sides */

struct shmt_carrier {
    const struct shmt_carrier_ops *ops;
};

/* A frame that has arrived. */
struct shmt_frame {
    uint32_t from; /* as far as the carrier can tell: the peer that it has proved to be, or that its connection belongs to */
    const unsigned char *head; /* SHMT_HEAD_BYTES, at any address */
    const unsigned char *body;
    uint64_t body_bytes;
    void *held; /* the carrier's, until `release` */
};

struct shmt_carrier_ops {
    const char *name;

    /* Hands over a frame for host `to`, which is not this one. The carrier takes a reference of its own to the body (NULL: empty)
     * and drops it at any time after that, on any thread; the head is copied. 1: it is on its way, or will be lost. 0: full, or
     * not connected: to be tried again later. A status otherwise: the carrier is of no use any more. */
    int (*send)(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                struct shmt_error *e);

    /* Waits for a frame until the host's clock (sync/host.h) says `until_ns`. 1 and *out, whose memory is valid until `release`;
     * 0: none has come; a status as above. */
    int (*receive)(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e);
    void (*release)(struct shmt_carrier *carrier, struct shmt_frame *frame);

    /* Why the peer may not be there, as far as this carrier knows: a few words into `out` ("nothing listens there yet"), or "". May be
     * NULL: it never knows. */
    void (*why)(struct shmt_carrier *carrier, uint32_t peer, char *out, size_t bytes);

    /* What was not delivered yet may be lost. */
    void (*close)(struct shmt_carrier *carrier);
};

static inline int shmt_carrier_send(struct shmt_carrier *c, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                                    struct shmt_error *e) {
    return c->ops->send(c, to, head, body, e);
}
static inline int shmt_carrier_receive(struct shmt_carrier *c, uint64_t until_ns, struct shmt_frame *out,
                                       struct shmt_error *e) {
    return c->ops->receive(c, until_ns, out, e);
}
static inline void shmt_carrier_release(struct shmt_carrier *c, struct shmt_frame *frame) { c->ops->release(c, frame); }
static inline void shmt_carrier_why(struct shmt_carrier *c, uint32_t peer, char *out, size_t bytes) {
    out[0] = '\0';
    if (c->ops->why) c->ops->why(c, peer, out, bytes);
}
static inline void shmt_carrier_close(struct shmt_carrier *c) { c->ops->close(c); }
