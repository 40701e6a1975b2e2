/* The calls of libzmq, loaded when a run has other hosts: loading it takes 15 ms, most of them for libraries of carriers that are not
 * used here. */
#pragma once

#include <zmq.h>

#include "base/error.h"

/* clang-format off */
#define SHMT_ZMQ_CALLS(X)                                                              \
    X(ctx_new) X(ctx_set) X(ctx_term)                                                  \
    X(socket) X(close) X(setsockopt) X(getsockopt) X(bind) X(connect) X(poll)          \
    X(socket_monitor)                                                                  \
    X(msg_init) X(msg_init_size) X(msg_init_data) X(msg_send) X(msg_recv) X(msg_close) \
    X(msg_data) X(msg_size) X(msg_more) X(msg_gets) X(send)                            \
    X(strerror) X(curve_keypair) X(curve_public) X(z85_encode) X(has)
/* clang-format on */

struct shmt_zmq_calls {
#define SHMT_ZMQ_CALL(name) __typeof__(zmq_##name) *name;
    SHMT_ZMQ_CALLS(SHMT_ZMQ_CALL)
#undef SHMT_ZMQ_CALL
};

/* What fails leaves its reason in errno, as the C library does. NULL: a sentence says what to install. Any thread. */
const struct shmt_zmq_calls *shmt_zmq_load(struct shmt_error *e);
