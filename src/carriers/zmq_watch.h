/* What becomes of the connections of a socket of ZeroMQ, from the events that libzmq tells of it (zmq_socket_monitor): why a peer is not
 * there. libzmq gives a connection up for good whose handshake has failed by its protocol or its key, so who watches makes it anew.
 *
 * Events wait in memory until they are looked at, however many: whoever watches looks now and then. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "carriers/zmq_library.h"

enum shmt_zmq_trouble {
    SHMT_ZMQ_FINE,
    SHMT_ZMQ_NO_WAY, /* there is no address to connect to, or no network leads to it */
    SHMT_ZMQ_NOBODY, /* nothing listens there */
    SHMT_ZMQ_SILENT, /* it does not answer */
    SHMT_ZMQ_HUNG_UP, /* it has ended the connection in the middle of the handshake: it cannot read what was meant for another key */
    SHMT_ZMQ_REFUSED,   /* it does not know this host's key */
    SHMT_ZMQ_UNLIKE,    /* one of the two has keys, and the other one has none */
    SHMT_ZMQ_OTHER_KEY, /* the one that listens: somebody has used another key than this host's */
    SHMT_ZMQ_STRANGE    /* it does not speak as ZeroMQ does */
};

struct shmt_zmq_watch {
    const struct shmt_zmq_calls *zmq;
    void *events; /* a socket; NULL: nothing is watched */
    enum shmt_zmq_trouble trouble;
    uint64_t trouble_ns; /* when it was seen last */
    uint64_t tried_ns;   /* since when an answer is waited for; 0: it is not */
    bool listens;        /* for others, who connect; else it connects */
    bool tried;          /* there was an address to connect to */
    bool is_dead;        /* libzmq has given the connection up */
};

/* Of a socket that is not connected or bound yet; `number` is no other watch's of the context. What was known of an older socket in its
 * place stays. 0, or -1 with libzmq's errno. */
int shmt_zmq_watch_open(struct shmt_zmq_watch *watch, const struct shmt_zmq_calls *zmq, void *context, void *socket,
                        uint32_t number, bool listens);

/* Before the socket is closed. */
void shmt_zmq_watch_close(struct shmt_zmq_watch *watch, void *socket);

/* Takes what has happened; does not wait. */
void shmt_zmq_watch_look(struct shmt_zmq_watch *watch);

/* What is wrong with the peer to which a socket connects; of a connection that waits for an answer: that it does not get one. */
enum shmt_zmq_trouble shmt_zmq_watch_trouble(const struct shmt_zmq_watch *watch, uint64_t now_ns);

/* A few words about it: of a socket that connects to `endpoint` ("tcp://NAME:PORT"); of one that listens (NULL), about whoever has
 * connected. `has_keys`: this host has. "": there is nothing to say. */
void shmt_zmq_trouble_words(enum shmt_zmq_trouble trouble, const char *endpoint, bool has_keys, char *out, size_t bytes);
