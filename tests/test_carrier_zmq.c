/* The carrier on ZeroMQ (src/carriers/zmq_carrier.c) with channels above it: hosts are threads of this process, over loopback. Cables
 * are relays of bytes that break now and then. */
#include "deadline.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/random.h"
#include "carriers/zmq_carrier.h"
#include "carriers/zmq_library.h"
#include "link/head.h"
#include "link/lanes.h"
#include "sync/host.h"

#define MOST     4
#define MESSAGES 300 /* from each host to each other one */
#define MS       UINT64_C(1000000)

/* Not by cmocka, which would jump out of another thread's test. */
static void must(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "FAILED: %s\n", what);
    _exit(1);
}

struct host {
    uint32_t rank, n;
    uint64_t life;
    char endpoint[MOST][64];
    const struct shmt_zmq_keys *keys;
    struct shmt_lanes_counts counts;
    _Atomic uint32_t done; /* it has all messages, and all of its own are acknowledged */
    struct host *all;
    bool awaits_visit; /* it is not done before somebody was there who is no host */
    uint32_t talking;  /* of the n hosts the first of them exchange messages; the others are not there */
    pthread_t thread;
    struct shmt_lanes *lanes; /* its thread's, as the rest */
    uint32_t sent[MOST], next[MOST][2], missing;
};

/* ---- ports and keys ---- */

/* One that is free, and stays so for long enough: the system gives out others first. */
static int free_port(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof at) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    close(fd);
    return ntohs(at.sin_port);
}

static const struct shmt_zmq_calls *zmq(void) {
    struct shmt_error e = {0};
    const struct shmt_zmq_calls *calls = shmt_zmq_load(&e);
    if (!calls) fail_msg("%s", e.text);
    return calls;
}

static void make_keys(struct shmt_zmq_keys *keys, uint32_t n) {
    char public[MOST][SHMT_ZMQ_KEY], secret[MOST][SHMT_ZMQ_KEY];
    memset(keys, 0, n * sizeof *keys);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(zmq()->curve_keypair(public[i], secret[i]), 0);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(keys[i].own_public, public[i], SHMT_ZMQ_KEY);
        memcpy(keys[i].own_secret, secret[i], SHMT_ZMQ_KEY);
        for (uint32_t j = 0; j < n; j++) memcpy(keys[i].peer[j], public[j], SHMT_ZMQ_KEY);
    }
}

/* ---- a host ---- */

static int open_carrier(const struct host *h, struct shmt_carrier **out, struct shmt_error *e) {
    const char *endpoint[MOST];
    for (uint32_t i = 0; i < h->n; i++) endpoint[i] = h->endpoint[i];
    const struct shmt_zmq_spec spec = {
        .self = h->rank, .n_hosts = h->n, .listen = h->endpoint[h->rank], .endpoint = endpoint, .keys = h->keys};
    return shmt_zmq_open(&spec, out, e);
}

static struct shmt_lanes *make_lanes(const struct host *h, struct shmt_carrier *carrier) {
    struct shmt_error e = {0};
    struct shmt_lanes *lanes;
    const struct shmt_lanes_spec spec = {.carrier = carrier,
                                         .self = h->rank,
                                         .n_hosts = h->n,
                                         .run = 1,
                                         .life = h->life,
                                         .window_bytes = 4 * SHMT_MOST_BODY,
                                         .beat_ns = SHMT_LANES_BEAT / 5,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = 60000 * MS};
    must(shmt_lanes_make(&spec, &lanes, &e) == 0, e.text);
    return lanes;
}

/* Of message `number`, which goes on channel number % 2: mostly few; some as many as may be. */
static uint64_t bytes_of(uint32_t from, uint32_t number) {
    const uint64_t bits = shmt_hash64(1, from, number, 0);
    return bits % 50 == 0 ? SHMT_MOST_BODY : shmt_mix64(bits) % (bits % 4 == 0 ? 20000 : 200);
}

static void send_to(struct host *h, uint32_t to) {
    const uint32_t number = h->sent[to];
    const uint64_t n = bytes_of(h->rank, number);
    struct shmt_error e = {0};
    unsigned char *bytes;
    struct shmt_payload *payload = shmt_payload_make(n, &bytes);
    memset(bytes, (int)(number + h->rank), n);
    const int rc = shmt_lanes_send(h->lanes, to, number % 2, payload, &e);
    shmt_payload_drop(payload);
    must(rc >= 0, e.text);
    h->sent[to] += rc == 1;
}

static void take(struct host *h, const struct shmt_message *m) {
    must(m->channel < 2, "a message came on a channel that nobody uses");
    const uint32_t number = h->next[m->from][m->channel];
    must(m->n == bytes_of(m->from, number), "a message has another length");
    for (uint64_t at = 0; at < m->n; at++) must(m->bytes[at] == (unsigned char)(number + m->from), "a message was damaged");
    h->next[m->from][m->channel] += 2;
    h->missing--;
}

static void begin(struct host *h) {
    h->missing = (h->talking - 1) * MESSAGES;
    for (uint32_t i = 0; i < h->n; i++) h->next[i][1] = 1;
}

static bool all_are_done(const struct host *all, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (!load_acquire(&all[i].done)) return false; /* pairs with the release in run_host */
    return true;
}

static void *run_host(void *arg) {
    struct host *h = arg;
    struct shmt_error e = {0};
    struct shmt_carrier *carrier;
    struct shmt_message m;
    usleep(50000 * (h->talking - 1 - h->rank)); /* those who connect are there first */
    must(open_carrier(h, &carrier, &e) == 0, e.text);
    h->lanes = make_lanes(h, carrier);
    begin(h);
    while (!all_are_done(h->all, h->talking)) {
        for (uint32_t to = 0; to < h->talking; to++)
            if (to != h->rank && h->sent[to] < MESSAGES) send_to(h, to);
        const int rc = shmt_lanes_receive(h->lanes, shmt_now_ns() + MS, &m, NULL, &e);
        must(rc >= 0, e.text);
        if (rc == 1) {
            take(h, &m);
            shmt_lanes_release(h->lanes, &m);
        }
        shmt_lanes_count(h->lanes, &h->counts);
        const bool is_visited = h->counts.strange > 0 || !h->awaits_visit;
        if (h->missing == 0 && is_visited && shmt_lanes_are_empty(h->lanes))
            store_release(&h->done, 1); /* pairs with all_are_done */
    }
    shmt_lanes_free(h->lanes);
    shmt_carrier_close(carrier);
    return NULL;
}

static void make_hosts(struct host *host, uint32_t n, const struct shmt_zmq_keys *keys) {
    int port[MOST];
    for (uint32_t i = 0; i < n; i++) port[i] = free_port();
    memset(host, 0, n * sizeof *host);
    for (uint32_t i = 0; i < n; i++) {
        host[i].rank = i;
        host[i].n = host[i].talking = n;
        host[i].life = 100 + i;
        host[i].keys = keys ? &keys[i] : NULL;
        host[i].all = host;
        for (uint32_t j = 0; j < n; j++)
            snprintf(host[i].endpoint[j], sizeof host[i].endpoint[j], "tcp://127.0.0.1:%d", port[j]);
    }
}

static void start(struct host *host, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_create(&host[i].thread, NULL, run_host, &host[i]), 0);
}

static void join(struct host *host, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) assert_int_equal(pthread_join(host[i].thread, NULL), 0);
}

/* ---- a cable that breaks ---- */

struct relay {
    int listener, to_port;
    uint64_t breaks_after; /* bytes */
    uint32_t broken;
    _Atomic uint32_t over;
    pthread_t thread;
};

/* false: a side has closed, or the cable breaks. */
static bool carry(int from, int to, uint64_t *bytes_left) {
    char buffer[65536];
    const ssize_t n = recv(from, buffer, sizeof buffer, 0);
    for (ssize_t at = 0; at < n;) {
        const ssize_t sent = send(to, buffer + at, (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        at += sent;
    }
    if (n <= 0 || (uint64_t)n >= *bytes_left) return false;
    *bytes_left -= (uint64_t)n;
    return true;
}

static int connect_to(int port) {
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)&at, sizeof at) == 0) return fd;
    close(fd);
    return -1;
}

static void carry_until_it_breaks(struct relay *r, int in) {
    const int out = connect_to(r->to_port);
    struct pollfd end[] = {{.fd = in, .events = POLLIN}, {.fd = out, .events = POLLIN}};
    uint64_t left = r->breaks_after;
    bool goes_on = out >= 0;
    while (goes_on && !load_relaxed(&r->over)) { /* relaxed: a flag that carries nothing but itself */
        if (poll(end, 2, 100) <= 0) continue;
        for (int i = 0; i < 2 && goes_on; i++)
            if (end[i].revents) goes_on = carry(end[i].fd, end[1 - i].fd, &left);
    }
    r->broken += out >= 0 && !load_relaxed(&r->over);
    close(in);
    if (out >= 0) close(out);
}

static void *run_relay(void *arg) {
    struct relay *r = arg;
    struct pollfd p = {.fd = r->listener, .events = POLLIN};
    while (!load_relaxed(&r->over))
        if (poll(&p, 1, 100) > 0) carry_until_it_breaks(r, accept(r->listener, NULL, NULL));
    close(r->listener);
    return NULL;
}

static int start_relay(struct relay *r) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(r->listener, 8), 0);
    assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &bytes), 0);
    assert_int_equal(pthread_create(&r->thread, NULL, run_relay, r), 0);
    return ntohs(at.sin_port);
}

/* ---- tests ---- */

static void hosts_exchange_messages_in_whatever_order_they_start(void **state) {
    struct host host[3];
    (void)state;
    make_hosts(host, 3, NULL);
    start(host, 3);
    join(host, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(host[i].counts.strange, 0);
}

static void with_keys_as_well(void **state) {
    struct shmt_zmq_keys keys[3];
    struct host host[3];
    (void)state;
    make_keys(keys, 3);
    make_hosts(host, 3, keys);
    start(host, 3);
    join(host, 3);
}

/* What was on its way is lost with the connection. */
static void a_connection_that_breaks_loses_no_message(void **state) {
    struct host host[2];
    struct relay relay = {.breaks_after = 3000000};
    (void)state;
    make_hosts(host, 2, NULL);
    sscanf(host[0].endpoint[0], "tcp://127.0.0.1:%d", &relay.to_port);
    snprintf(host[1].endpoint[0], sizeof host[1].endpoint[0], "tcp://127.0.0.1:%d", start_relay(&relay));
    start(host, 2);
    join(host, 2);
    store_relaxed(&relay.over, 1);
    pthread_join(relay.thread, NULL);
    assert_true(relay.broken > 1);
    assert_true(host[0].counts.repeated + host[1].counts.repeated > 0);
}

/* A client that calls itself `id`, and sends these bytes to host 0 again and again while the hosts work; and how many parts it has
 * received meanwhile. */
static void visit(const struct host *host, const struct shmt_zmq_keys *keys, const char *id, const void *bytes, size_t n,
                  uint32_t *received_out) {
    const int zero = 0;
    void *context = zmq()->ctx_new(), *socket = zmq()->socket(context, ZMQ_DEALER);
    assert_int_equal(zmq()->setsockopt(socket, ZMQ_LINGER, &zero, sizeof zero), 0);
    assert_int_equal(zmq()->setsockopt(socket, ZMQ_ROUTING_ID, id, 3), 0);
    if (keys) {
        assert_int_equal(zmq()->setsockopt(socket, ZMQ_CURVE_SERVERKEY, keys->peer[0], 40), 0);
        assert_int_equal(zmq()->setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys->own_public, 40), 0);
        assert_int_equal(zmq()->setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys->own_secret, 40), 0);
    }
    assert_int_equal(zmq()->connect(socket, host[0].endpoint[0]), 0);
    for (*received_out = 0; !all_are_done(host, host[0].talking);) {
        (void)zmq()->send(socket, bytes, n, ZMQ_DONTWAIT);
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
        if (zmq()->poll(&item, 1, 1) <= 0) continue;
        zmq_msg_t part;
        zmq()->msg_init(&part);
        *received_out += zmq()->msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0;
        zmq()->msg_close(&part);
    }
    zmq()->close(socket);
    zmq()->ctx_term(context);
}

static void what_is_no_frame_is_ignored(void **state) {
    struct host host[2];
    char bytes[200];
    uint32_t received;
    (void)state;
    memset(bytes, 'x', sizeof bytes);
    make_hosts(host, 2, NULL);
    start(host, 2);
    visit(host, NULL, "h\1\1", bytes, sizeof bytes, &received); /* a rank that there is not */
    join(host, 2);
    assert_int_equal(received, 0);
    assert_int_equal(host[0].counts.strange, 0);
}

static void who_has_no_key_of_a_peer_is_not_let_in(void **state) {
    struct shmt_zmq_keys keys[3], strangers;
    struct host host[2];
    char bytes[200] = {0};
    uint32_t received;
    (void)state;
    make_keys(keys, 2);
    make_keys(&strangers, 1);
    memcpy(strangers.peer[0], keys[0].own_public, SHMT_ZMQ_KEY); /* the listener's public key is known to all */
    make_hosts(host, 2, keys);
    start(host, 2);
    visit(host, &strangers, "xyz", bytes, sizeof bytes, &received);
    join(host, 2);
    assert_int_equal(received, 0);
    assert_int_equal(host[0].counts.strange, 0);
}

/* The frame is a host's, but for the key with which it comes. Host 2 is nobody but the visitor. */
static void a_key_of_one_peer_does_not_speak_for_another(void **state) {
    static const char *const NAMES[] = {"h\1\0", "h\2\0"}; /* it calls itself host 1, or says that it speaks for it */
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct shmt_head lost = {.kind = SHMT_FRAME_LOST, .from = 1, .to = 0, .run = 1, .life = 101, .to_life = 100};
        struct shmt_zmq_keys keys[3];
        struct host host[3];
        unsigned char head[SHMT_HEAD_BYTES];
        uint32_t received;
        make_keys(keys, 3);
        make_hosts(host, 3, keys);
        host[0].talking = host[1].talking = 2;
        host[0].awaits_visit = i == 1;
        shmt_head_write(&lost, 0, head);
        start(host, 2);
        visit(host, &keys[2], NAMES[i], head, sizeof head, &received);
        join(host, 2);
        if (i == 1) assert_true(host[0].counts.strange > 0); /* it was let in, and what it said was looked at */
        if (i == 0) assert_int_equal(host[0].counts.strange, 0);
    }
}

/* ---- why a peer is not there ---- */

/* Hosts that this thread keeps alive in turn: a host without lanes is not there. */
struct waiting {
    struct host host[MOST];
    struct shmt_zmq_keys keys[MOST];
    struct shmt_carrier *carrier[MOST];
};

static void make_waiting(struct waiting *w, uint32_t n, bool with_keys) {
    make_keys(w->keys, n);
    make_hosts(w->host, n, with_keys ? w->keys : NULL);
}

static void come(struct waiting *w, uint32_t rank) {
    struct shmt_error e = {0};
    if (open_carrier(&w->host[rank], &w->carrier[rank], &e) < 0) fail_msg("%s", e.text);
    w->host[rank].lanes = make_lanes(&w->host[rank], w->carrier[rank]);
}

static void go(struct waiting *w, uint32_t rank) {
    shmt_lanes_free(w->host[rank].lanes);
    shmt_carrier_close(w->carrier[rank]);
    w->host[rank].lanes = NULL;
}

static void end_waiting(struct waiting *w) {
    for (uint32_t i = 0; i < w->host[0].n; i++)
        if (w->host[i].lanes) go(w, i);
}

static void keep_alive(struct waiting *w) {
    struct shmt_error e = {0};
    struct shmt_message m;
    for (uint32_t i = 0; i < w->host[0].n; i++)
        if (w->host[i].lanes) assert_int_equal(shmt_lanes_receive(w->host[i].lanes, shmt_now_ns() + MS, &m, NULL, &e), 0);
}

/* Host `at` says these words about host `about`. The deadline is the test's. */
static void wait_for_words(struct waiting *w, uint32_t at, uint32_t about, const char *words) {
    char why[SHMT_WHY] = "";
    while (!strstr(why, words)) {
        keep_alive(w);
        shmt_lanes_why(w->host[at].lanes, about, why);
    }
}

static void wait_for_one_another(struct waiting *w) {
    char why[SHMT_WHY];
    while (shmt_lanes_peer(w->host[0].lanes, 1, NULL) != SHMT_PEER_THERE ||
           shmt_lanes_peer(w->host[1].lanes, 0, NULL) != SHMT_PEER_THERE)
        keep_alive(w);
    for (uint32_t i = 0; i < 2; i++) {
        shmt_lanes_why(w->host[i].lanes, 1 - i, why);
        assert_string_equal(why, "");
    }
}

static void a_host_that_has_not_come_or_cannot_be_found_is_told_apart(void **state) {
    struct waiting w;
    char why[SHMT_WHY];
    (void)state;
    make_waiting(&w, 2, false);
    come(&w, 1);
    wait_for_words(&w, 1, 0, "nothing listens there yet");
    come(&w, 0);
    shmt_lanes_why(w.host[0].lanes, 1, why);
    assert_string_equal(why, ""); /* who listens cannot know */
    wait_for_one_another(&w);
    end_waiting(&w);
    strcpy(w.host[1].endpoint[0], "tcp://a..b:5000"); /* no name */
    come(&w, 1);
    wait_for_words(&w, 1, 0, "no name server knows \"a..b\"");
    end_waiting(&w);
}

static void wrong_keys_are_named_on_both_sides(void **state) {
    struct waiting w;
    struct shmt_zmq_keys strangers;
    (void)state;
    make_keys(&strangers, 1);
    make_waiting(&w, 2, true);
    memcpy(w.keys[0].peer[1], strangers.own_public, SHMT_ZMQ_KEY);
    come(&w, 0);
    come(&w, 1);
    wait_for_words(&w, 0, 1, "somebody (127.0.0.1) with a key that is not in --peers was refused");
    wait_for_words(&w, 1, 0, "it refuses this host's key");
    end_waiting(&w);
    make_waiting(&w, 2, true);
    memcpy(w.keys[1].peer[0], strangers.own_public, SHMT_ZMQ_KEY);
    come(&w, 0);
    come(&w, 1);
    wait_for_words(&w, 0, 1, "another key of this host");
    wait_for_words(&w, 1, 0, "its key is not the one in --peers");
    end_waiting(&w);
}

static void the_key_of_another_host_is_named_until_that_host_comes_itself(void **state) {
    struct waiting w;
    char why[SHMT_WHY];
    (void)state;
    make_waiting(&w, 3, true);
    w.host[1].keys = &w.keys[2];
    come(&w, 0);
    come(&w, 1);
    wait_for_words(&w, 0, 1, "the key of host 2 calls itself host 1");
    go(&w, 1);
    w.host[1].keys = &w.keys[1];
    come(&w, 1);
    while (shmt_lanes_peer(w.host[0].lanes, 1, NULL) != SHMT_PEER_THERE) keep_alive(&w);
    shmt_carrier_why(w.carrier[0], 1, why, sizeof why);
    assert_null(strstr(why, "calls itself")); /* it has come itself since */
    end_waiting(&w);
}

/* libzmq gives such a connection up for good. */
static void who_finds_a_host_without_keys_connects_again_and_meets_it_with_keys(void **state) {
    struct waiting w;
    (void)state;
    make_waiting(&w, 2, true);
    w.host[0].keys = NULL;
    come(&w, 0);
    come(&w, 1);
    wait_for_words(&w, 1, 0, "it has no keys");
    wait_for_words(&w, 0, 1, "with keys");
    go(&w, 0);
    w.host[0].keys = &w.keys[0];
    come(&w, 0);
    wait_for_one_another(&w);
    end_waiting(&w);
}

static void a_host_without_keys_is_told_that_others_have_some(void **state) {
    struct waiting w;
    (void)state;
    make_waiting(&w, 2, true);
    w.host[1].keys = NULL;
    come(&w, 0);
    come(&w, 1);
    wait_for_words(&w, 1, 0, "it has keys, and this host has none");
    wait_for_words(&w, 0, 1, "without keys");
    end_waiting(&w);
}

/* The version stands at the same place in the heads of all versions. */
static void another_version_of_the_wire_is_named(void **state) {
    const struct shmt_head head = {.kind = SHMT_FRAME_BEAT, .from = 1, .to = 0, .run = 1, .life = 101};
    struct waiting w;
    struct shmt_error e = {0};
    unsigned char bytes[SHMT_HEAD_BYTES];
    char why[SHMT_WHY] = "";
    (void)state;
    make_waiting(&w, 2, false);
    come(&w, 0);
    assert_int_equal(open_carrier(&w.host[1], &w.carrier[1], &e), 0);
    shmt_head_write(&head, 0, bytes);
    bytes[4] = 9;
    while (!strstr(why, "of the wire format: 9, here 2")) {
        assert_true(shmt_carrier_send(w.carrier[1], 0, bytes, NULL, &e) >= 0);
        keep_alive(&w);
        shmt_lanes_why(w.host[0].lanes, 1, why);
    }
    assert_int_equal(shmt_lanes_fail_absent(w.host[0].lanes, 1, &e), SHMTRAIN_E_DIED);
    assert_non_null(strstr(e.text, "host 1 has not come: it has another version of shmtrain"));
    shmt_carrier_close(w.carrier[1]);
    end_waiting(&w);
}

static void a_port_that_is_taken_is_named(void **state) {
    struct host host[2];
    struct shmt_error e = {0};
    struct shmt_carrier *first, *second;
    char at[256];
    (void)state;
    make_hosts(host, 1, NULL);
    strcpy(host[0].endpoint[0], "tcp://127.0.0.1:*");
    assert_int_equal(open_carrier(&host[0], &first, &e), 0);
    shmt_zmq_listens_at(first, at);
    snprintf(host[0].endpoint[0], sizeof host[0].endpoint[0], "%.63s", at);
    assert_int_equal(open_carrier(&host[0], &second, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, at));
    assert_non_null(strstr(e.text, "Address already in use"));
    shmt_carrier_close(first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(hosts_exchange_messages_in_whatever_order_they_start, deadline),
        cmocka_unit_test_setup(with_keys_as_well, deadline),
        cmocka_unit_test_setup(a_connection_that_breaks_loses_no_message, deadline),
        cmocka_unit_test_setup(what_is_no_frame_is_ignored, deadline),
        cmocka_unit_test_setup(who_has_no_key_of_a_peer_is_not_let_in, deadline),
        cmocka_unit_test_setup(a_key_of_one_peer_does_not_speak_for_another, deadline),
        cmocka_unit_test_setup(a_host_that_has_not_come_or_cannot_be_found_is_told_apart, deadline),
        cmocka_unit_test_setup(wrong_keys_are_named_on_both_sides, deadline),
        cmocka_unit_test_setup(the_key_of_another_host_is_named_until_that_host_comes_itself, deadline),
        cmocka_unit_test_setup(who_finds_a_host_without_keys_connects_again_and_meets_it_with_keys, deadline),
        cmocka_unit_test_setup(a_host_without_keys_is_told_that_others_have_some, deadline),
        cmocka_unit_test_setup(another_version_of_the_wire_is_named, deadline),
        cmocka_unit_test_setup(a_port_that_is_taken_is_named, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
