/* The carrier on ZeroMQ (libzmq 4.3, TCP): one socket that listens, to which the hosts of higher rank connect, and one for each host of
 * lower rank, to which this one connects. So each pair of hosts has one connection, which libzmq makes again when it breaks; hosts may
 * start in any order.
 *
 * Frames are lost when a connection breaks, and refused where there is none. libzmq keeps a few dozen on their way to a
 * peer, and all that have come. With keys
 * (CurveZMQ: Curve25519, authenticated and encrypted) a peer is who its key says, and connections with keys that no peer has are
 * refused before they can send anything. Without keys a peer is who it says that it is. */
#pragma once

#include "carriers/carrier.h"

#define SHMT_ZMQ_KEY 41 /* characters of a key in Z85, its end included */

struct shmt_zmq_keys {
    char own_public[SHMT_ZMQ_KEY], own_secret[SHMT_ZMQ_KEY];
    char peer[SHMT_MOST_HOSTS][SHMT_ZMQ_KEY]; /* the public key of each host */
};

struct shmt_zmq_spec {
    uint32_t self, n_hosts;
    const char *listen;               /* "tcp://ADDRESS:PORT" to bind; port * takes a free one */
    const char *const *endpoint;      /* of each host of lower rank: "tcp://HOST:PORT" */
    const struct shmt_zmq_keys *keys; /* NULL: none. Copied, and wiped when it is closed. */
};

/* Behind the last fork of this process: libzmq starts threads. Errors: _SYSTEM (no library; the port is taken; a name is no endpoint),
 * _MEMORY. */
int shmt_zmq_open(const struct shmt_zmq_spec *spec, struct shmt_carrier **out, struct shmt_error *e);

/* What was bound. */
void shmt_zmq_listens_at(const struct shmt_carrier *carrier, char out[256]);
