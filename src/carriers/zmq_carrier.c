/* The carrier on ZeroMQ: see zmq_carrier.h. */
#include "carriers/zmq_carrier.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "carriers/zmq_library.h"
#include "carriers/zmq_keys.h"
#include "carriers/zmq_watch.h"
#include "sync/host.h"

#define ID_BYTES     3    /* "h" and the rank: how a peer is called by the socket that listens */
#define COPIED_BYTES 4096 /* a body up to this length goes with its head, which is cheaper than a part of its own */
#define LOOK_EVERY   16   /* calls */
#define LINGER_MS    100  /* at the end: for the last acknowledgement, or the notice that this host gives up */
/* libzmq 4.3 aborts the process where a connection breaks, or is made anew, while its inbox is full (zeromq/libzmq #4841, #3937): it must
 * never be. What comes is bounded by the windows of those who send. */
#define NO_LIMIT    0
#define KEPT_FRAMES 64                    /* by libzmq, on their way to one peer */
#define AGAIN_NS    UINT64_C(2000000000)  /* until a connection that libzmq has given up is made anew */
#define FRESH_NS    UINT64_C(30000000000) /* what happened to somebody at the listener is told for as long */

struct carrier {
    struct shmt_carrier base; /* first: what callers have */
    const struct shmt_zmq_calls *zmq;
    uint32_t self, n_hosts;
    void *context;
    void *listener;                               /* ROUTER: peers of higher rank */
    void *lower[SHMT_MOST_HOSTS];                 /* DEALER: one for each peer of lower rank */
    struct shmt_zmq_keys *keys;                   /* NULL: none */
    struct shmt_zmq_zap *zap;                     /* lets in those with a peer's key; NULL: without keys */
    zmq_pollitem_t item[SHMT_MOST_HOSTS + 2];     /* the listener, those of lower rank, the ZAP handler's */
    uint32_t n_items, next;                       /* next: the socket to ask first, so that each gets its turn */
    uint32_t n_calls;                             /* of receive_frame */
    uint32_t n_watches;                           /* that were ever opened */
    struct shmt_zmq_watch heard;                  /* what becomes of connections to the listener, */
    struct shmt_zmq_watch watch[SHMT_MOST_HOSTS]; /* ... and of those to peers of lower rank */
    struct {
        uint32_t
            by; /* somebody with the key of host by - 1 has said that it is this one; 0: nobody has, since it came itself */
        uint64_t at_ns; /* when it was last said */
    } posed[SHMT_MOST_HOSTS];
    char *endpoint[SHMT_MOST_HOSTS]; /* of peers of lower rank */
    char listens_at[256];
};

/* A frame that was received. */
struct held {
    zmq_msg_t head, body;
};

static void *socket_of(const struct carrier *c, uint32_t rank) { return rank < c->self ? c->lower[rank] : c->listener; }

static int failed(const struct carrier *c, struct shmt_error *e, const char *what) {
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "%s: %s", what, c->zmq->strerror(errno));
}

/* ---- sending ---- */

static void dropped(void *bytes, void *payload) {
    (void)bytes;
    shmt_payload_drop(payload);
}

/* One part: the head, and a short body with it. */
static int make_head(const struct carrier *c, zmq_msg_t *out, const unsigned char *head, const struct shmt_payload *body) {
    const uint64_t copied = body && body->n <= COPIED_BYTES ? body->n : 0;
    if (c->zmq->msg_init_size(out, SHMT_HEAD_BYTES + copied) < 0) return -1;
    unsigned char *at = c->zmq->msg_data(out);
    memcpy(at, head, SHMT_HEAD_BYTES);
    if (copied > 0) memcpy(at + SHMT_HEAD_BYTES, body->bytes, copied);
    return 0;
}

/* The bytes as they are, until libzmq has sent them. */
static int make_body(const struct carrier *c, zmq_msg_t *out, struct shmt_payload *body) {
    void *const bytes = (void *)(uintptr_t)body->bytes; /* libzmq only reads them */
    if (c->zmq->msg_init_data(out, bytes, body->n, dropped, shmt_payload_hold(body)) == 0) return 0;
    shmt_payload_drop(body);
    return -1;
}

/* The first part of what goes by the listener names the peer. 1; 0: not connected, or full; -1. */
static int address(const struct carrier *c, uint32_t to) {
    const unsigned char id[ID_BYTES] = {'h', (unsigned char)to, (unsigned char)(to >> 8)};
    if (to < c->self) return 1;
    if (c->zmq->send(c->listener, id, sizeof id, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0) return 1;
    return errno == EAGAIN || errno == EHOSTUNREACH ? 0 : -1;
}

/* A part; takes it over. */
static int send_part(const struct carrier *c, void *socket, zmq_msg_t *part, bool more) {
    if (c->zmq->msg_send(part, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0) return 1;
    const int error = errno;
    c->zmq->msg_close(part);
    return error == EAGAIN || error == EHOSTUNREACH ? 0 : -1;
}

static int send_frame(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                      struct shmt_error *e) {
    struct carrier *c = (struct carrier *)carrier;
    const bool in_two = body && body->n > COPIED_BYTES;
    zmq_msg_t first, second;
    if (make_head(c, &first, head, body) < 0) return shmt_no_memory(e, "for a frame");
    if (in_two && make_body(c, &second, body) < 0) {
        c->zmq->msg_close(&first);
        return shmt_no_memory(e, "for a frame");
    }
    int rc = address(c, to);
    if (rc == 1)
        rc = send_part(c, socket_of(c, to), &first, in_two);
    else
        c->zmq->msg_close(&first);
    if (in_two && rc == 1)
        rc = send_part(c, socket_of(c, to), &second, false);
    else if (in_two)
        c->zmq->msg_close(&second);
    return rc < 0 ? failed(c, e, "sending to another host") : rc;
}

/* ---- receiving ---- */

/* Who sends by the listener: a rank, or n_hosts. */
static uint32_t sender_of(const struct carrier *c, zmq_msg_t *id) {
    const unsigned char *bytes = c->zmq->msg_data(id);
    if (c->zmq->msg_size(id) != ID_BYTES || bytes[0] != 'h') return c->n_hosts;
    return (uint32_t)shmt_min_u64(bytes[1] | (uint32_t)bytes[2] << 8, c->n_hosts);
}

static int receive_part(const struct carrier *c, void *socket, zmq_msg_t *out) {
    c->zmq->msg_init(out);
    if (c->zmq->msg_recv(out, socket, ZMQ_DONTWAIT) >= 0) return 1;
    const int error = errno;
    c->zmq->msg_close(out);
    return error == EAGAIN || error == EINTR ? 0 : -1;
}

/* A message of more parts than a frame has: to its end. 0: it is none. */
static int skip(const struct carrier *c, void *socket, zmq_msg_t *part) {
    while (c->zmq->msg_more(part)) {
        c->zmq->msg_close(part);
        if (receive_part(c, socket, part) <= 0) {
            c->zmq->msg_init(part);
            break;
        }
    }
    return 0;
}

/* Those of higher rank connect to the listener, and nobody else. */
static bool is_peer(const struct carrier *c, const void *socket, uint32_t rank) {
    return socket == c->listener ? rank > c->self && rank < c->n_hosts : rank < c->self;
}

/* It has the key of the host that it says it is; else it is known whose it has. */
static bool proves(struct carrier *c, zmq_msg_t *part, uint32_t from) {
    if (shmt_zmq_keys_prove(c->zmq, c->keys, part, from)) {
        c->posed[from].by = 0;
        return true;
    }
    const uint32_t owner = shmt_zmq_keys_owner(c->zmq, c->keys, part, c->n_hosts);
    if (owner >= c->n_hosts) return false;
    c->posed[from].by = owner + 1;
    c->posed[from].at_ns = shmt_now_ns();
    return false;
}

/* Parts come all or none. 1: a frame; 0: nothing, or nothing that a host sends. */
static int receive_from(struct carrier *c, void *socket, uint32_t *from, struct held *out) {
    zmq_msg_t id;
    int rc = 1;
    if (socket == c->listener) {
        rc = receive_part(c, socket, &id);
        if (rc <= 0) return rc;
        *from = sender_of(c, &id);
        const bool more = c->zmq->msg_more(&id);
        c->zmq->msg_close(&id);
        if (!more) return 0;
    }
    rc = receive_part(c, socket, &out->head);
    if (rc <= 0) return rc;
    c->zmq->msg_init(&out->body);
    if (c->zmq->msg_more(&out->head)) {
        c->zmq->msg_close(&out->body);
        rc = receive_part(c, socket, &out->body);
        if (rc <= 0) c->zmq->msg_init(&out->body);
        if (c->zmq->msg_more(&out->body)) rc = skip(c, socket, &out->body);
    }
    const bool is_frame = rc > 0 && c->zmq->msg_size(&out->head) >= SHMT_HEAD_BYTES && is_peer(c, socket, *from) &&
                          (socket != c->listener || !c->keys || proves(c, &out->head, *from));
    if (is_frame) return 1;
    c->zmq->msg_close(&out->head);
    c->zmq->msg_close(&out->body);
    return rc < 0 ? rc : 0;
}

/* A short body stands behind its head; a longer one in its own part. */
static void show(const struct carrier *c, struct held *held, uint32_t from, struct shmt_frame *out) {
    const uint64_t behind = c->zmq->msg_size(&held->head) - SHMT_HEAD_BYTES, apart = c->zmq->msg_size(&held->body);
    const unsigned char *head = c->zmq->msg_data(&held->head);
    *out = (struct shmt_frame){.from = from,
                               .head = head,
                               .body = apart > 0 ? c->zmq->msg_data(&held->body) : head + SHMT_HEAD_BYTES,
                               .body_bytes = apart > 0 ? apart : behind,
                               .held = held};
}

/* What has come already, of any socket in turn. */
static int receive_now(struct carrier *c, struct held *held, struct shmt_frame *out) {
    const uint32_t sockets = 1 + c->self;
    for (uint32_t i = 0; i < sockets; i++) {
        const uint32_t which = (c->next + i) % sockets;
        uint32_t from = which - 1; /* the listener says who it is */
        const int rc = receive_from(c, c->item[which].socket, &from, held);
        if (rc < 0) return rc;
        if (rc == 0) continue;
        c->next = which + 1;
        show(c, held, from, out);
        return 1;
    }
    return 0;
}

/* ---- connections ---- */

static int connect_to(struct carrier *c, uint32_t rank);

static void close_watched(const struct carrier *c, struct shmt_zmq_watch *watch, void *socket) {
    if (!socket) return;
    shmt_zmq_watch_close(watch, socket);
    c->zmq->close(socket);
}

/* A socket that has its connection no more is replaced, if there can be another one; what was known of it stays known. */
static void connect_again(struct carrier *c, uint32_t rank) {
    void *const old = c->lower[rank];
    struct shmt_zmq_watch before = c->watch[rank];
    before.trouble_ns = shmt_now_ns(); /* when it was tried */
    c->watch[rank].events = NULL;      /* they are before's: a new socket that is not watched yet has none to close */
    if (connect_to(c, rank) == 0) {
        close_watched(c, &before, old);
    } else {
        close_watched(c, &c->watch[rank], c->lower[rank]);
        c->lower[rank] = old;
        c->watch[rank] = before;
    }
    c->item[1 + rank].socket = c->lower[rank];
}

static void look_around(struct carrier *c) {
    const uint64_t now_ns = shmt_now_ns();
    if (c->zap) shmt_zmq_zap_answer(c->zap);
    shmt_zmq_watch_look(&c->heard);
    for (uint32_t rank = 0; rank < c->self; rank++) {
        shmt_zmq_watch_look(&c->watch[rank]);
        if (c->watch[rank].is_dead && now_ns >= c->watch[rank].trouble_ns + AGAIN_NS) connect_again(c, rank);
    }
}

/* Who of the higher ranks it was is not known. */
static void why_of_somebody(const struct carrier *c, char *out, size_t bytes) {
    const uint64_t now_ns = shmt_now_ns();
    const char *address;
    uint64_t at_ns;
    if (c->zap && shmt_zmq_zap_refused(c->zap, &address, &at_ns) && now_ns < at_ns + FRESH_NS)
        snprintf(out, bytes, "somebody (%s) with a key that is not in --peers was refused", address);
    else if (now_ns < c->heard.trouble_ns + FRESH_NS)
        shmt_zmq_trouble_words(c->heard.trouble, NULL, c->keys != NULL, out, bytes);
}

static void why(struct shmt_carrier *carrier, uint32_t peer, char *out, size_t bytes) {
    const struct carrier *c = (const struct carrier *)carrier;
    out[0] = '\0';
    if (peer < c->self)
        shmt_zmq_trouble_words(shmt_zmq_watch_trouble(&c->watch[peer], shmt_now_ns()), c->endpoint[peer], c->keys != NULL, out,
                               bytes);
    else if (c->posed[peer].by > 0 && shmt_now_ns() < c->posed[peer].at_ns + FRESH_NS)
        snprintf(out, bytes,
                 "somebody with the key of host %u calls itself host %u: --peers has to be the same file on all hosts",
                 c->posed[peer].by - 1, peer);
    else
        why_of_somebody(c, out, bytes);
}

/* Until something may have come. */
static int wait_until(struct carrier *c, uint64_t until_ns) {
    const uint64_t now_ns = shmt_now_ns();
    if (now_ns >= until_ns) return 0;
    const long ms = (long)shmt_min_u64(shmt_ceil_div(until_ns - now_ns, 1000000), 1000);
    const int rc = c->zmq->poll(c->item, (int)c->n_items, ms);
    if (rc < 0) return errno == EINTR ? 1 : -1;
    look_around(c);
    return 1;
}

/* Now and then, also where there is never time to wait: a handshake may take 5 s. */
static void look_sometimes(struct carrier *c) {
    if (c->n_calls++ % LOOK_EVERY == 0) look_around(c);
}

static int receive_frame(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e) {
    struct carrier *c = (struct carrier *)carrier;
    struct held *held = malloc(sizeof *held);
    int rc;
    if (!held) return shmt_no_memory(e, "for a frame");
    out->held = NULL;
    look_sometimes(c);
    for (;;) {
        rc = receive_now(c, held, out);
        if (rc == 0) rc = wait_until(c, until_ns);
        if (rc != 1 || out->held == held) break;
    }
    if (rc <= 0) free(held);
    return rc < 0 ? failed(c, e, "receiving from other hosts") : rc;
}

static void release(struct shmt_carrier *carrier, struct shmt_frame *frame) {
    struct carrier *c = (struct carrier *)carrier;
    struct held *held = frame->held;
    c->zmq->msg_close(&held->head);
    c->zmq->msg_close(&held->body);
    free(held);
}

/* ---- opening ---- */

static void wipe(struct shmt_zmq_keys *keys) {
    if (keys) explicit_bzero(keys, sizeof *keys);
    free(keys);
}

static void close_all(struct shmt_carrier *carrier) {
    struct carrier *c = (struct carrier *)carrier;
    for (uint32_t rank = 0; rank < c->self; rank++) close_watched(c, &c->watch[rank], c->lower[rank]);
    close_watched(c, &c->heard, c->listener);
    shmt_zmq_zap_close(c->zap);
    if (c->context) c->zmq->ctx_term(c->context);
    wipe(c->keys);
    for (uint32_t rank = 0; rank < c->self; rank++) free(c->endpoint[rank]);
    free(c);
}

static const struct shmt_carrier_ops ZMQ = {
    .name = "zmq", .send = send_frame, .receive = receive_frame, .release = release, .why = why, .close = close_all};

/* What both kinds of sockets have. */
static int set_common(const struct carrier *c, void *socket) {
    const struct {
        int option, value;
    } all[] = {{ZMQ_LINGER, LINGER_MS},
               {ZMQ_SNDHWM, KEPT_FRAMES},
               {ZMQ_RCVHWM, NO_LIMIT},
               {ZMQ_HANDSHAKE_IVL, 5000},
               {ZMQ_HEARTBEAT_IVL, 1000},
               {ZMQ_HEARTBEAT_TIMEOUT, 5000},
               {ZMQ_HEARTBEAT_TTL, 5000},
               {ZMQ_RECONNECT_IVL, 100},
               {ZMQ_RECONNECT_IVL_MAX, 2000},
               {ZMQ_CONNECT_TIMEOUT, 3000},
               {ZMQ_IPV6, 1}};
    const int64_t most = SHMT_HEAD_BYTES + SHMT_MOST_BODY;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (c->zmq->setsockopt(socket, all[i].option, &all[i].value, sizeof all[i].value) < 0) return -1;
    return c->zmq->setsockopt(socket, ZMQ_MAXMSGSIZE, &most, sizeof most);
}

static int set_int(const struct carrier *c, void *socket, int option, int value) {
    return c->zmq->setsockopt(socket, option, &value, sizeof value);
}

/* A peer that connects anew takes the place of its old connection. */
static int listen_at(struct carrier *c, const char *endpoint) {
    size_t bytes = sizeof c->listens_at;
    c->listener = c->zmq->socket(c->context, ZMQ_ROUTER);
    if (!c->listener || set_common(c, c->listener) < 0) return -1;
    if (set_int(c, c->listener, ZMQ_ROUTER_MANDATORY, 1) < 0 || set_int(c, c->listener, ZMQ_ROUTER_HANDOVER, 1) < 0) return -1;
    if (c->keys && shmt_zmq_keys_listen(c->zmq, c->listener, c->keys) < 0) return -1;
    if (shmt_zmq_watch_open(&c->heard, c->zmq, c->context, c->listener, c->n_watches++, true) < 0) return -1;
    if (c->zmq->bind(c->listener, endpoint) < 0) return -1;
    return c->zmq->getsockopt(c->listener, ZMQ_LAST_ENDPOINT, c->listens_at, &bytes);
}

/* Nothing is kept for a peer that is not connected. */
static int connect_to(struct carrier *c, uint32_t rank) {
    const unsigned char id[ID_BYTES] = {'h', (unsigned char)c->self, (unsigned char)(c->self >> 8)};
    void *socket = c->lower[rank] = c->zmq->socket(c->context, ZMQ_DEALER);
    if (!socket || set_common(c, socket) < 0) return -1;
    if (c->zmq->setsockopt(socket, ZMQ_ROUTING_ID, id, sizeof id) < 0 || set_int(c, socket, ZMQ_IMMEDIATE, 1) < 0) return -1;
    if (c->keys && shmt_zmq_keys_connect(c->zmq, socket, c->keys, rank) < 0) return -1;
    if (shmt_zmq_watch_open(&c->watch[rank], c->zmq, c->context, socket, c->n_watches++, false) < 0) return -1;
    return c->zmq->connect(socket, c->endpoint[rank]);
}

/* The listener first: receive_now counts on it. */
static void list_items(struct carrier *c) {
    c->item[c->n_items++] = (zmq_pollitem_t){.socket = c->listener, .events = ZMQ_POLLIN};
    for (uint32_t rank = 0; rank < c->self; rank++)
        c->item[c->n_items++] = (zmq_pollitem_t){.socket = c->lower[rank], .events = ZMQ_POLLIN};
    if (c->zap) c->item[c->n_items++] = (zmq_pollitem_t){.socket = shmt_zmq_zap_socket(c->zap), .events = ZMQ_POLLIN};
}

static int cannot_listen(const struct carrier *c, const char *endpoint, struct shmt_error *e) {
    const char *remedy = errno == EADDRINUSE ? ": another program has this port, or a run that has just ended: use another one"
                         : errno == EADDRNOTAVAIL ? ": this machine does not have that address: is --rank another host's?"
                         : errno == EACCES        ? ": ports below 1024 are the system's: use a higher one"
                                                  : "";
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot listen at %s: %s%s", endpoint, c->zmq->strerror(errno), remedy);
}

static int open_all(struct carrier *c, const struct shmt_zmq_spec *spec, struct shmt_error *e) {
    c->context = c->zmq->ctx_new();
    if (!c->context) return failed(c, e, "ZeroMQ cannot start");
    if (spec->keys) {
        c->keys = malloc(sizeof *c->keys);
        if (!c->keys) return shmt_no_memory(e, "for keys");
        *c->keys = *spec->keys;
        const int rc = shmt_zmq_zap_open(c->zmq, c->context, c->keys, c->n_hosts, &c->zap, e);
        if (rc < 0) return rc;
    }
    if (listen_at(c, spec->listen) < 0) return cannot_listen(c, spec->listen, e);
    for (uint32_t rank = 0; rank < c->self; rank++) {
        c->endpoint[rank] = strdup(spec->endpoint[rank]);
        if (!c->endpoint[rank]) return shmt_no_memory(e, "for the names of hosts");
        if (connect_to(c, rank) < 0) return failed(c, e, spec->endpoint[rank]);
    }
    list_items(c);
    return 0;
}

int shmt_zmq_open(const struct shmt_zmq_spec *spec, struct shmt_carrier **out, struct shmt_error *e) {
    const struct shmt_zmq_calls *zmq = shmt_zmq_load(e);
    struct carrier *c = zmq ? calloc(1, sizeof *c) : NULL;
    if (!zmq) return SHMTRAIN_E_SYSTEM;
    if (!c) return shmt_no_memory(e, "for a carrier");
    c->base.ops = &ZMQ;
    c->zmq = zmq;
    c->self = spec->self;
    c->n_hosts = spec->n_hosts;
    const int rc = open_all(c, spec, e);
    if (rc < 0)
        close_all(&c->base);
    else
        *out = &c->base;
    return rc;
}

void shmt_zmq_listens_at(const struct shmt_carrier *carrier, char out[256]) {
    memcpy(out, ((const struct carrier *)carrier)->listens_at, 256);
}
