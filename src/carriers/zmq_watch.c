/* Events of sockets: see zmq_watch.h. What a connecting socket goes through (libzmq 4.3.4, as observed):
 *
 *     RETRIED                                              there is no address
 *     DELAYED, CLOSED, RETRIED                             nothing listens, or nobody answers in time
 *     DELAYED, CONNECTED, SUCCEEDED
 *     DELAYED, CONNECTED, FAILED_NO_DETAIL, RETRIED        the other one has hung up
 *     DELAYED, CONNECTED, FAILED_AUTH or FAILED_PROTOCOL   and nothing more */
#include "carriers/zmq_watch.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "sync/host.h"

#define EVENTS                                                                                                    \
    (ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_DELAYED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_CLOSED |             \
     ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | \
     ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
#define MOST_NAME 100                   /* characters of a name that are shown */
#define FRESH_NS  UINT64_C(30000000000) /* what is known of somebody counts more than what is guessed of the next */
#define SILENT_NS UINT64_C(2000000000)  /* no answer for as long: something between here and there swallows what is sent */

int shmt_zmq_watch_open(struct shmt_zmq_watch *w, const struct shmt_zmq_calls *zmq, void *context, void *socket,
                        uint32_t number, bool listens) {
    const int no_limit = 0; /* libzmq waits for room, in the thread that moves all bytes */
    char name[64];
    snprintf(name, sizeof name, "inproc://shmtrain-watch-%u", number);
    w->zmq = zmq;
    w->listens = listens;
    w->tried = w->is_dead = false;
    w->tried_ns = 0;
    w->events = NULL;
    if (zmq->socket_monitor(socket, name, EVENTS) < 0) return -1;
    w->events = zmq->socket(context, ZMQ_PAIR);
    if (w->events && zmq->setsockopt(w->events, ZMQ_RCVHWM, &no_limit, sizeof no_limit) == 0 &&
        zmq->connect(w->events, name) == 0)
        return 0;
    if (w->events) w->zmq->close(w->events);
    w->events = NULL;
    (void)zmq->socket_monitor(socket, NULL, 0);
    return -1;
}

void shmt_zmq_watch_close(struct shmt_zmq_watch *w, void *socket) {
    if (!w->events) return;
    (void)w->zmq->socket_monitor(socket, NULL, 0); /* nothing is told from now on */
    w->zmq->close(w->events);
    w->events = NULL;
}

/* ---- events ---- */

static void note(struct shmt_zmq_watch *w, enum shmt_zmq_trouble trouble) {
    w->trouble = trouble;
    w->trouble_ns = shmt_now_ns();
    w->tried_ns = 0;
}

/* Who finds that the other one is unlike hangs up, perhaps before that one has found the same. */
static bool knows_better(const struct shmt_zmq_watch *w) {
    return (w->trouble == SHMT_ZMQ_UNLIKE || w->trouble == SHMT_ZMQ_OTHER_KEY) && shmt_now_ns() < w->trouble_ns + FRESH_NS;
}

static enum shmt_zmq_trouble trouble_of_protocol(uint32_t error) {
    if (error == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH) return SHMT_ZMQ_UNLIKE;
    return error == ZMQ_PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC ? SHMT_ZMQ_OTHER_KEY : SHMT_ZMQ_STRANGE;
}

static void take(struct shmt_zmq_watch *w, uint16_t event, uint32_t value) {
    switch (event) {
        case ZMQ_EVENT_CONNECT_DELAYED:
            w->tried = true;
            w->tried_ns = shmt_now_ns();
            break;
        case ZMQ_EVENT_CLOSED:
            note(w, shmt_now_ns() >= w->tried_ns + SILENT_NS ? SHMT_ZMQ_SILENT : SHMT_ZMQ_NOBODY);
            break;
        case ZMQ_EVENT_CONNECT_RETRIED:
            if (!w->tried) note(w, SHMT_ZMQ_NO_WAY);
            w->tried = false;
            break;
        case ZMQ_EVENT_CONNECTED:
            w->tried = true;
            w->tried_ns = 0;
            break;
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
            note(w, SHMT_ZMQ_FINE);
            break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
            if (!w->listens || !knows_better(w)) note(w, SHMT_ZMQ_HUNG_UP);
            break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
            note(w, trouble_of_protocol(value));
            w->is_dead = true;
            break;
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
            note(w, SHMT_ZMQ_REFUSED);
            w->is_dead = true;
            break;
        default:
            break;
    }
}

/* A message of two parts: a number of 16 bits and one of 32, as they are in this machine; and an address. */
static bool receive(const struct shmt_zmq_watch *w, uint16_t *event_out, uint32_t *value_out) {
    zmq_msg_t part;
    bool ok = false, more = false;
    w->zmq->msg_init(&part);
    if (w->zmq->msg_recv(&part, w->events, ZMQ_DONTWAIT) >= 0 &&
        w->zmq->msg_size(&part) == sizeof *event_out + sizeof *value_out) {
        const unsigned char *bytes = w->zmq->msg_data(&part);
        memcpy(event_out, bytes, sizeof *event_out);
        memcpy(value_out, bytes + sizeof *event_out, sizeof *value_out);
        ok = true;
        more = w->zmq->msg_more(&part);
    }
    while (more) {
        w->zmq->msg_close(&part);
        w->zmq->msg_init(&part);
        more = w->zmq->msg_recv(&part, w->events, ZMQ_DONTWAIT) >= 0 && w->zmq->msg_more(&part);
    }
    w->zmq->msg_close(&part);
    return ok;
}

void shmt_zmq_watch_look(struct shmt_zmq_watch *w) {
    uint16_t event;
    uint32_t value;
    while (w->events && receive(w, &event, &value)) take(w, event, value);
}

enum shmt_zmq_trouble shmt_zmq_watch_trouble(const struct shmt_zmq_watch *w, uint64_t now_ns) {
    const bool waits = w->trouble == SHMT_ZMQ_FINE && w->tried_ns != 0;
    return waits && now_ns >= w->tried_ns + SILENT_NS ? SHMT_ZMQ_SILENT : w->trouble;
}

/* ---- words ---- */

static void no_way(const char *endpoint, char *out, size_t bytes) {
    static const char TCP[] = "tcp://";
    const char *name = strncmp(endpoint, TCP, strlen(TCP)) == 0 ? endpoint + strlen(TCP) : endpoint;
    const char *end = strrchr(name, ':');
    const int n = (int)shmt_min_u64(end ? (uint64_t)(end - name) : strlen(name), MOST_NAME);
    snprintf(out, bytes, "no name server knows \"%.*s\", or no network leads there", n, name);
}

static const char *words_of_peer(enum shmt_zmq_trouble trouble, bool has_keys) {
    switch (trouble) {
        case SHMT_ZMQ_NOBODY:
            return "nothing listens there yet";
        case SHMT_ZMQ_SILENT:
            return "nobody answers there";
        case SHMT_ZMQ_HUNG_UP:
            return has_keys ? "its key is not the one in --peers, or another program listens there"
                            : "another program listens there, and hangs up";
        case SHMT_ZMQ_REFUSED:
            return "it refuses this host's key, which is not in its --peers";
        case SHMT_ZMQ_UNLIKE:
            return has_keys ? "it has no keys, and this host has (--key, --peers)"
                            : "it has keys, and this host has none (--key, --peers)";
        case SHMT_ZMQ_STRANGE:
        case SHMT_ZMQ_OTHER_KEY:
            return "another program listens there";
        case SHMT_ZMQ_NO_WAY:
        case SHMT_ZMQ_FINE:
            break;
    }
    return "";
}

/* Who listens hears of all connections alike, also of those of port scanners. */
static const char *words_of_somebody(enum shmt_zmq_trouble trouble, bool has_keys) {
    if (trouble == SHMT_ZMQ_OTHER_KEY) return "somebody was refused who has another key of this host in --peers";
    if (trouble == SHMT_ZMQ_HUNG_UP)
        return has_keys ? "somebody has hung up: a host without keys (--key, --peers), or no host at all"
                        : "somebody has hung up: a host with keys, while this one has none (--key, --peers), or no host at all";
    if (trouble != SHMT_ZMQ_UNLIKE) return "";
    return has_keys ? "somebody without keys was refused (--key, --peers)"
                    : "somebody with keys was refused, and this host has none (--key, --peers)";
}

void shmt_zmq_trouble_words(enum shmt_zmq_trouble trouble, const char *endpoint, bool has_keys, char *out, size_t bytes) {
    if (endpoint && trouble == SHMT_ZMQ_NO_WAY)
        no_way(endpoint, out, bytes);
    else
        snprintf(out, bytes, "%s", endpoint ? words_of_peer(trouble, has_keys) : words_of_somebody(trouble, has_keys));
}
