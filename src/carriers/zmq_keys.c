/* Keys, and the ZAP handler: see zmq_keys.h. */
#include "carriers/zmq_keys.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "sync/host.h"

#define DOMAIN   "shmtrain"
#define KEY      32 /* bytes */
#define MOST     256
#define PARTS    7 /* of a question with a key: version, number, domain, address, identity, mechanism, key */
#define USER_KEY "User-Id"

enum part { ZAP_VERSION, ZAP_NUMBER, ZAP_REALM, ZAP_ADDRESS, ZAP_IDENTITY, ZAP_MECHANISM, ZAP_KEY };

struct shmt_zmq_zap {
    const struct shmt_zmq_calls *zmq;
    const struct shmt_zmq_keys *keys;
    uint32_t n_hosts;
    void *socket;
    uint64_t refused_ns;            /* when somebody was last; 0: nobody yet */
    char refused[INET6_ADDRSTRLEN]; /* where from */
};

/* ---- keys ---- */

static int set_text(const struct shmt_zmq_calls *zmq, void *socket, int option, const char *text) {
    return zmq->setsockopt(socket, option, text, strlen(text));
}

static int set_own(const struct shmt_zmq_calls *zmq, void *socket, const struct shmt_zmq_keys *keys) {
    const int rc = set_text(zmq, socket, ZMQ_CURVE_PUBLICKEY, keys->own_public);
    return rc < 0 ? rc : set_text(zmq, socket, ZMQ_CURVE_SECRETKEY, keys->own_secret);
}

int shmt_zmq_keys_listen(const struct shmt_zmq_calls *zmq, void *socket, const struct shmt_zmq_keys *keys) {
    const int yes = 1;
    int rc = zmq->setsockopt(socket, ZMQ_CURVE_SERVER, &yes, sizeof yes);
    if (rc == 0) rc = set_own(zmq, socket, keys);
    return rc < 0 ? rc : set_text(zmq, socket, ZMQ_ZAP_DOMAIN, DOMAIN);
}

int shmt_zmq_keys_connect(const struct shmt_zmq_calls *zmq, void *socket, const struct shmt_zmq_keys *keys, uint32_t to) {
    const int rc = set_own(zmq, socket, keys);
    return rc < 0 ? rc : set_text(zmq, socket, ZMQ_CURVE_SERVERKEY, keys->peer[to]);
}

/* The handler has said whose key it was, and libzmq notes it on all that comes. */
bool shmt_zmq_keys_prove(const struct shmt_zmq_calls *zmq, const struct shmt_zmq_keys *keys, zmq_msg_t *part, uint32_t from) {
    const char *user = zmq->msg_gets(part, USER_KEY);
    return user && strcmp(user, keys->peer[from]) == 0;
}

uint32_t shmt_zmq_keys_owner(const struct shmt_zmq_calls *zmq, const struct shmt_zmq_keys *keys, zmq_msg_t *part,
                             uint32_t n_hosts) {
    uint32_t host = 0;
    while (host < n_hosts && !shmt_zmq_keys_prove(zmq, keys, part, host)) host++;
    return host;
}

/* ---- the ZAP handler ---- */

int shmt_zmq_zap_open(const struct shmt_zmq_calls *zmq, void *context, const struct shmt_zmq_keys *keys, uint32_t n_hosts,
                      struct shmt_zmq_zap **out, struct shmt_error *e) {
    struct shmt_zmq_zap *zap = calloc(1, sizeof *zap);
    if (!zap) return shmt_no_memory(e, "for the keys of %u hosts", n_hosts);
    *zap = (struct shmt_zmq_zap){.zmq = zmq, .keys = keys, .n_hosts = n_hosts, .socket = zmq->socket(context, ZMQ_ROUTER)};
    if (!zap->socket || zmq->bind(zap->socket, "inproc://zeromq.zap.01") < 0) {
        const int rc = shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot check keys: %s", zmq->strerror(errno));
        shmt_zmq_zap_close(zap);
        return rc;
    }
    *out = zap;
    return 0;
}

void shmt_zmq_zap_close(struct shmt_zmq_zap *zap) {
    if (!zap) return;
    if (zap->socket) zap->zmq->close(zap->socket);
    free(zap);
}

void *shmt_zmq_zap_socket(const struct shmt_zmq_zap *zap) { return zap->socket; }

/* A question: the address to answer to (what stands before the empty part), and its parts. */
struct question {
    unsigned char address[MOST], part[PARTS][MOST];
    size_t address_bytes, bytes[PARTS], n;
};

/* The next part; false: there is none, or it is too long to be one of a question. */
static bool receive_part(const struct shmt_zmq_zap *zap, unsigned char *out, size_t *bytes_out, bool *more_out) {
    zmq_msg_t part;
    bool ok = false;
    zap->zmq->msg_init(&part);
    *more_out = false;
    if (zap->zmq->msg_recv(&part, zap->socket, ZMQ_DONTWAIT) >= 0) {
        *bytes_out = zap->zmq->msg_size(&part);
        *more_out = zap->zmq->msg_more(&part);
        ok = *bytes_out <= MOST;
        if (ok) memcpy(out, zap->zmq->msg_data(&part), *bytes_out);
    }
    zap->zmq->msg_close(&part);
    return ok;
}

/* false: nobody asks, or it is no question. */
static bool receive_question(const struct shmt_zmq_zap *zap, struct question *q) {
    unsigned char rest[MOST];
    size_t bytes = 0;
    bool more;
    q->n = 0;
    bool ok = receive_part(zap, q->address, &q->address_bytes, &more);
    if (ok && more) ok = receive_part(zap, rest, &bytes, &more) && bytes == 0;
    while (more) {
        const bool fits = q->n < PARTS;
        const bool came = receive_part(zap, fits ? q->part[q->n] : rest, fits ? &q->bytes[q->n] : &bytes, &more);
        ok = ok && came;
        q->n += fits;
    }
    return ok && q->n > ZAP_MECHANISM;
}

/* Whose key it is, in Z85; NULL: nobody's. */
static const char *owner_of(const struct shmt_zmq_zap *zap, const struct question *q) {
    char key[SHMT_ZMQ_KEY];
    if (q->n != PARTS || q->bytes[ZAP_KEY] != KEY || q->bytes[ZAP_MECHANISM] != 5 ||
        memcmp(q->part[ZAP_MECHANISM], "CURVE", 5) != 0)
        return NULL;
    zap->zmq->z85_encode(key, q->part[ZAP_KEY], KEY);
    for (uint32_t i = 0; i < zap->n_hosts; i++)
        if (strcmp(key, zap->keys->peer[i]) == 0) return zap->keys->peer[i];
    return NULL;
}

static void send_text(const struct shmt_zmq_zap *zap, const char *text, int flags) {
    (void)zap->zmq->send(zap->socket, text, strlen(text), flags | ZMQ_DONTWAIT);
}

static void answer(const struct shmt_zmq_zap *zap, const struct question *q, const char *owner) {
    const struct shmt_zmq_calls *zmq = zap->zmq;
    (void)zmq->send(zap->socket, q->address, q->address_bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    send_text(zap, "", ZMQ_SNDMORE);
    send_text(zap, "1.0", ZMQ_SNDMORE);
    (void)zmq->send(zap->socket, q->part[ZAP_NUMBER], q->bytes[ZAP_NUMBER], ZMQ_SNDMORE | ZMQ_DONTWAIT);
    send_text(zap, owner ? "200" : "400", ZMQ_SNDMORE);
    send_text(zap, owner ? "OK" : "unknown key", ZMQ_SNDMORE);
    send_text(zap, owner ? owner : "", ZMQ_SNDMORE);
    send_text(zap, "", 0);
}

/* Addresses of IPv4 without what makes them ones of IPv6; of what is none, what looks like one. */
static void note_refused(struct shmt_zmq_zap *zap, const struct question *q) {
    static const char MAPPED[] = "::ffff:";
    const char *from = (const char *)q->part[ZAP_ADDRESS];
    size_t n = q->bytes[ZAP_ADDRESS], used = 0;
    if (n > strlen(MAPPED) && memcmp(from, MAPPED, strlen(MAPPED)) == 0 && memchr(from, '.', n)) {
        from += strlen(MAPPED);
        n -= strlen(MAPPED);
    }
    while (used < n && used < sizeof zap->refused - 1 &&
           (isxdigit((unsigned char)from[used]) || from[used] == ':' || from[used] == '.')) {
        zap->refused[used] = from[used];
        used++;
    }
    zap->refused[used] = '\0';
    zap->refused_ns = shmt_now_ns();
}

bool shmt_zmq_zap_refused(const struct shmt_zmq_zap *zap, const char **address_out, uint64_t *at_ns_out) {
    *address_out = zap->refused;
    *at_ns_out = zap->refused_ns;
    return zap->refused_ns > 0;
}

void shmt_zmq_zap_answer(struct shmt_zmq_zap *zap) {
    struct question q;
    while (receive_question(zap, &q)) {
        const char *owner = owner_of(zap, &q);
        if (!owner) note_refused(zap, &q);
        answer(zap, &q, owner);
    }
}
