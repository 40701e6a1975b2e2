/* bench_link: channels between hosts (src/link) against libzmq as one writes it by hand, between two processes over loopback TCP.
 *
 * usage: bench_link [--quick] [--rounds N]
 *
 * Round trips of 8 bytes, and streams of messages of 64 KiB and 1 MiB, which the receiver acknowledges in the end. By hand these are a
 * DEALER and a ROUTER whose messages point to the sender's memory. Both take turns within a round, in short matches; a round's figure
 * is the median of its matches. Without keys and with them (CURVE). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "bench.h"
#include "carriers/zmq_carrier.h"
#include "carriers/zmq_library.h"
#include "link/lanes.h"

enum { MATCHES = 11, BY_HAND = 0, LANES, WAYS };

static const struct {
    const char *what;
    uint64_t bytes, n; /* n: messages of a match */
} TASKS[] = {{"round trip of 8 bytes", 8, 300}, {"64 KiB", 65536, 512}, {"1 MiB", 1 << 20, 64}};
enum { N_TASKS = sizeof TASKS / sizeof *TASKS };

/* In shared memory: where the listeners are. */
struct meeting {
    _Atomic uint32_t bound;
    char by_hand[256], lanes[256];
    struct shmt_zmq_keys keys[2];
    bool has_keys, quick;
};

struct end {
    uint32_t self; /* 0 measures, and listens; 1 answers */
    struct meeting *meeting;
    const struct shmt_zmq_calls *zmq;
    void *context, *socket;
    struct shmt_carrier *carrier;
    struct shmt_lanes *lanes;
    unsigned char *memory;
};

static void must(bool holds, const char *what) {
    if (!holds) bench_fail("%s: %s", what, strerror(errno));
}

/* ---- by hand ---- */

static void set_int(const struct end *end, int option, int value) {
    must(end->zmq->setsockopt(end->socket, option, &value, sizeof value) == 0, "zmq_setsockopt");
}

static void set_key(const struct end *end, int option, const char *key) {
    must(end->zmq->setsockopt(end->socket, option, key, SHMT_ZMQ_KEY - 1) == 0, "zmq_setsockopt");
}

static void open_by_hand(struct end *end) {
    struct meeting *m = end->meeting;
    size_t bytes = sizeof m->by_hand;
    end->context = end->zmq->ctx_new();
    end->socket = end->zmq->socket(end->context, end->self == 0 ? ZMQ_ROUTER : ZMQ_DEALER);
    set_int(end, ZMQ_LINGER, 0);
    if (m->has_keys) {
        set_key(end, ZMQ_CURVE_PUBLICKEY, m->keys[end->self].own_public);
        set_key(end, ZMQ_CURVE_SECRETKEY, m->keys[end->self].own_secret);
        if (end->self == 0) set_int(end, ZMQ_CURVE_SERVER, 1);
        if (end->self == 1) set_key(end, ZMQ_CURVE_SERVERKEY, m->keys[0].own_public);
    }
    if (end->self == 1) must(end->zmq->setsockopt(end->socket, ZMQ_ROUTING_ID, "peer", 4) == 0, "zmq_setsockopt");
    if (end->self == 1) must(end->zmq->connect(end->socket, m->by_hand) == 0, "zmq_connect");
    if (end->self == 0) must(end->zmq->bind(end->socket, "tcp://127.0.0.1:*") == 0, "zmq_bind");
    if (end->self == 0) must(end->zmq->getsockopt(end->socket, ZMQ_LAST_ENDPOINT, m->by_hand, &bytes) == 0, "zmq_getsockopt");
}

static void keep(void *bytes, void *arg) {
    (void)bytes;
    (void)arg;
}

static void send_by_hand(struct end *end, uint64_t bytes) {
    zmq_msg_t message;
    if (end->self == 0) must(end->zmq->send(end->socket, "peer", 4, ZMQ_SNDMORE) == 4, "zmq_send");
    if (bytes > 4096) {
        end->zmq->msg_init_data(&message, end->memory, bytes, keep, NULL);
    } else {
        end->zmq->msg_init_size(&message, bytes);
        memcpy(end->zmq->msg_data(&message), end->memory, bytes);
    }
    must(end->zmq->msg_send(&message, end->socket, 0) >= 0, "zmq_msg_send");
}

static void receive_by_hand(struct end *end) {
    zmq_msg_t message;
    bool more = true;
    while (more) {
        end->zmq->msg_init(&message);
        must(end->zmq->msg_recv(&message, end->socket, 0) >= 0, "zmq_msg_recv");
        more = end->zmq->msg_more(&message);
        end->zmq->msg_close(&message);
    }
}

/* ---- lanes ---- */

static void open_lanes(struct end *end) {
    struct meeting *m = end->meeting;
    struct shmt_error e = {0};
    const char *endpoint[] = {m->lanes};
    const struct shmt_zmq_spec zmq = {.self = end->self,
                                      .n_hosts = 2,
                                      .listen = "tcp://127.0.0.1:*",
                                      .endpoint = endpoint,
                                      .keys = m->has_keys ? &m->keys[end->self] : NULL};
    if (shmt_zmq_open(&zmq, &end->carrier, &e) < 0) bench_fail("%s", e.text);
    if (end->self == 0) shmt_zmq_listens_at(end->carrier, m->lanes);
    const struct shmt_lanes_spec lanes = {.carrier = end->carrier,
                                          .self = end->self,
                                          .n_hosts = 2,
                                          .run = 1,
                                          .life = 1,
                                          .window_bytes = SHMT_LANES_WINDOW,
                                          .beat_ns = SHMT_LANES_BEAT,
                                          .suspect_ns = SHMT_LANES_SUSPECT,
                                          .lost_ns = SHMT_LANES_LOST};
    if (shmt_lanes_make(&lanes, &end->lanes, &e) < 0) bench_fail("%s", e.text);
}

/* Something is received, or 0. */
static int receive_lanes(struct end *end, uint64_t for_ns) {
    struct shmt_error e = {0};
    struct shmt_message message;
    const int rc = shmt_lanes_receive(end->lanes, shmt_machine_ns() + for_ns, &message, NULL, &e);
    if (rc < 0) bench_fail("%s", e.text);
    if (rc == 1) shmt_lanes_release(end->lanes, &message);
    return rc;
}

static void free_struct(struct shmt_payload *payload, void *arg) {
    (void)arg;
    free(payload);
}

static void send_lanes(struct end *end, uint64_t bytes) {
    struct shmt_error e = {0};
    struct shmt_payload *payload = malloc(sizeof *payload);
    int rc;
    must(payload != NULL, "malloc");
    shmt_payload_borrow(payload, end->memory, bytes, free_struct, NULL);
    while ((rc = shmt_lanes_send(end->lanes, 1 - end->self, 0, payload, &e)) == 0) (void)receive_lanes(end, 1000000);
    if (rc < 0) bench_fail("%s", e.text);
    shmt_payload_drop(payload);
}

/* ---- matches ---- */

static void pass(struct end *end, int way, uint64_t bytes) {
    if (way == BY_HAND)
        send_by_hand(end, bytes);
    else
        send_lanes(end, bytes);
}

static void take(struct end *end, int way) {
    if (way == BY_HAND)
        receive_by_hand(end);
    else
        while (receive_lanes(end, 1000000000) == 0) continue;
}

/* Nanoseconds for each message. */
static double play(struct end *end, int way, int task) {
    const uint64_t n = end->meeting->quick ? 3 : TASKS[task].n;
    const uint64_t from_ns = shmt_machine_ns();
    const bool stream = task > 0;
    for (uint64_t i = 0; i < n; i++) {
        if (end->self == 0) pass(end, way, TASKS[task].bytes);
        if (end->self == 1) take(end, way);
        if (stream) continue;
        if (end->self == 1) pass(end, way, TASKS[task].bytes);
        if (end->self == 0) take(end, way);
    }
    if (stream && end->self == 1) pass(end, way, 1);
    if (stream && end->self == 0) take(end, way);
    return (double)(shmt_machine_ns() - from_ns) / (double)n;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void play_all(struct end *end, double *x) {
    for (int task = 0; task < N_TASKS; task++) {
        double ns[WAYS][MATCHES];
        for (int match = 0; match < MATCHES; match++)
            for (int way = 0; way < WAYS; way++) ns[way][match] = play(end, way, task);
        for (int way = 0; way < WAYS; way++) qsort(ns[way], MATCHES, sizeof **ns, ascending);
        const double by_hand = ns[BY_HAND][MATCHES / 2], lanes = ns[LANES][MATCHES / 2];
        *x++ = task == 0 ? by_hand / 1e3 : (double)TASKS[task].bytes / by_hand;
        *x++ = task == 0 ? lanes / 1e3 : (double)TASKS[task].bytes / lanes;
        *x++ = task == 0 ? lanes / by_hand : by_hand / lanes;
    }
}

/* ---- a round ---- */

static void begin(struct end *end, uint32_t self, struct meeting *m) {
    struct shmt_error e = {0};
    *end = (struct end){.self = self, .meeting = m, .zmq = shmt_zmq_load(&e), .memory = calloc(1, 1 << 20)};
    if (!end->zmq) bench_fail("%s", e.text);
    must(end->memory != NULL, "calloc");
    open_by_hand(end);
    open_lanes(end);
}

static void finish(struct end *end) {
    shmt_lanes_free(end->lanes);
    shmt_carrier_close(end->carrier);
    end->zmq->close(end->socket);
    end->zmq->ctx_term(end->context);
    free(end->memory);
}

static void flush(struct end *end) {
    while (!shmt_lanes_are_empty(end->lanes)) (void)receive_lanes(end, 1000000);
}

/* The last message. */
static void acknowledge(struct end *end) {
    for (int i = 0; i < 5; i++) (void)receive_lanes(end, 2000000);
}

static void answer(struct meeting *m) {
    struct end end;
    double x[3 * N_TASKS];
    while (!load_acquire(&m->bound)) usleep(1000); /* pairs with the release in round_of */
    begin(&end, 1, m);
    send_by_hand(&end, 1); /* a ROUTER knows a peer that has sent something */
    send_lanes(&end, 1);
    flush(&end); /* progress is made inside calls alone */
    play_all(&end, x);
    flush(&end);
    finish(&end);
}

static void make_keys(struct meeting *m) {
    struct shmt_error e = {0};
    const struct shmt_zmq_calls *zmq = shmt_zmq_load(&e);
    if (!zmq) bench_fail("%s", e.text);
    for (int i = 0; i < 2; i++)
        must(zmq->curve_keypair(m->keys[i].own_public, m->keys[i].own_secret) == 0, "zmq_curve_keypair");
    for (int i = 0; i < 4; i++) memcpy(m->keys[i / 2].peer[i % 2], m->keys[i % 2].own_public, SHMT_ZMQ_KEY);
}

/* libzmq starts threads, so everything is opened behind the fork; and in the measuring process, in a child as well, so that the next
 * round's fork is free of them. */
static void measure_here(struct meeting *m, double *x) {
    struct end end;
    begin(&end, 0, m);
    store_release(&m->bound, 1); /* the listeners; pairs with the acquire in `answer` */
    take(&end, BY_HAND);
    take(&end, LANES);
    acknowledge(&end);
    play_all(&end, x);
    acknowledge(&end);
    finish(&end);
}

static pid_t start(void (*part)(struct meeting *m, double *x), struct meeting *m, double *x) {
    const pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid > 0) return pid;
    part(m, x);
    _exit(0);
}

static void answer_here(struct meeting *m, double *x) {
    (void)x;
    answer(m);
}

static void round_of(void *arg, double *x) {
    struct meeting *m = arg;
    double *shared = mmap(NULL, 3 * N_TASKS * sizeof *x, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status[2];
    must(shared != MAP_FAILED, "mmap");
    store_relaxed(&m->bound, 0); /* relaxed: the fork publishes it */
    const pid_t pid[] = {start(measure_here, m, shared), start(answer_here, m, NULL)};
    for (int i = 0; i < 2; i++) must(waitpid(pid[i], &status[i], 0) == pid[i], "waitpid");
    if (status[0] || status[1]) bench_fail("a side has failed");
    memcpy(x, shared, 3 * N_TASKS * sizeof *x);
    munmap(shared, 3 * N_TASKS * sizeof *x);
}

static void make_some_keys(struct meeting *m, double *x) {
    (void)x;
    make_keys(m);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 5);
    struct meeting *m = mmap(NULL, sizeof *m, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(m != MAP_FAILED, "mmap");
    m->quick = o.quick;
    for (int keys = 0; keys < 2; keys++) {
        struct shmt_figure figure[] = {
            {.name = "round trip of 8 bytes, by hand", .unit = "us"}, {.name = "round trip of 8 bytes, channel", .unit = "us"},
            {.name = "round trip, channel / by hand", .unit = "x"},   {.name = "messages of 64 KiB, by hand", .unit = "GB/s"},
            {.name = "messages of 64 KiB, channel", .unit = "GB/s"},  {.name = "64 KiB, channel / by hand", .unit = "x"},
            {.name = "messages of 1 MiB, by hand", .unit = "GB/s"},   {.name = "messages of 1 MiB, channel", .unit = "GB/s"},
            {.name = "1 MiB, channel / by hand", .unit = "x"}};
        int status;
        m->has_keys = keys;
        must(waitpid(start(make_some_keys, m, NULL), &status, 0) > 0 && status == 0, "keys");
        bench_head(keys ? "two hosts over loopback, with keys" : "two hosts over loopback");
        bench_rounds(&o, figure, 3 * N_TASKS, round_of, m);
        bench_show(figure, 3 * N_TASKS);
    }
    bench_show_noise();
    munmap(m, sizeof *m);
    return 0;
}
