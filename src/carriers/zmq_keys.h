/* Keys of the carrier on ZeroMQ (CurveZMQ), and its ZAP handler, which answers libzmq's question whether a key may come in (RFC 27 of
 * ZeroMQ). Without a handler, libzmq lets in every client that knows the listener's public key. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "carriers/zmq_carrier.h"
#include "carriers/zmq_library.h"

struct shmt_zmq_zap;

/* Before the listener is bound. Those with the key of a peer are let in, nobody else. Errors: _SYSTEM, _MEMORY. */
int shmt_zmq_zap_open(const struct shmt_zmq_calls *zmq, void *context, const struct shmt_zmq_keys *keys, uint32_t n_hosts,
                      struct shmt_zmq_zap **out, struct shmt_error *e);
void shmt_zmq_zap_close(struct shmt_zmq_zap *zap); /* NULL: nothing is done */

void *shmt_zmq_zap_socket(const struct shmt_zmq_zap *zap); /* to be polled */
void shmt_zmq_zap_answer(struct shmt_zmq_zap *zap);        /* all questions that have come; does not wait */

/* The socket listens, or connects to the peer with that key. 0, or -1 with libzmq's errno. */
int shmt_zmq_keys_listen(const struct shmt_zmq_calls *zmq, void *socket, const struct shmt_zmq_keys *keys);
int shmt_zmq_keys_connect(const struct shmt_zmq_calls *zmq, void *socket, const struct shmt_zmq_keys *keys, uint32_t to);

/* Whose key was refused last, and when: an address of the network. false: nobody's so far. */
bool shmt_zmq_zap_refused(const struct shmt_zmq_zap *zap, const char **address_out, uint64_t *at_ns_out);

/* Whether what the listener has received, from a connection that calls itself `from`, has come with that host's key. */
bool shmt_zmq_keys_prove(const struct shmt_zmq_calls *zmq, const struct shmt_zmq_keys *keys, zmq_msg_t *part, uint32_t from);

/* With whose key it has come: a rank; n_hosts: with nobody's. */
uint32_t shmt_zmq_keys_owner(const struct shmt_zmq_calls *zmq, const struct shmt_zmq_keys *keys, zmq_msg_t *part,
                             uint32_t n_hosts);
