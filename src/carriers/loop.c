/* A network in memory: see loop.h. Everything happens on one thread, and between two questions to the host (sync/host.h) at once, so
 * there is nothing to lock. */
#include "carriers/loop.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "sync/host.h"

/* On its way to a port, or delivered and not released. */
struct transit {
    struct transit *next;
    uint64_t due_ns, number; /* number: of the cable's frames, as they were sent */
    uint32_t from;
    struct shmt_payload *body;
    unsigned char head[SHMT_HEAD_BYTES];
};

struct port {
    struct shmt_carrier carrier; /* first: what callers have */
    struct shmt_loop *loop;
    uint32_t rank;
    _Atomic uint32_t arrivals;     /* for its fiber to sleep on */
    struct transit *coming, *held; /* the first in the order of due_ns */
    uint64_t coming_bytes;
    uint64_t free_ns; /* its cable is busy with what it has sent until then */
};

struct cable {
    bool cut;
    uint64_t sent, latest_ns; /* frames; when the last of them is due */
};

struct shmt_loop {
    struct shmt_loop_spec spec;
    struct shmt_loop_counts counts;
    struct cable *cable; /* [from][to] */
    struct port port[];
};

static struct cable *cable_of(const struct shmt_loop *loop, uint32_t from, uint32_t to) {
    return &loop->cable[(uint64_t)from * loop->spec.n_hosts + to];
}

/* ---- frames on their way ---- */

static void free_transit(struct transit *transit) {
    shmt_payload_drop(transit->body);
    free(transit);
}

static void free_list(struct transit **first) {
    for (struct transit *next; *first; *first = next) {
        next = (*first)->next;
        free_transit(*first);
    }
}

static void insert(struct port *port, struct transit *transit) {
    struct transit **at = &port->coming;
    while (*at && (*at)->due_ns <= transit->due_ns) at = &(*at)->next;
    transit->next = *at;
    *at = transit;
}

static uint64_t bytes_of(const struct transit *transit) { return SHMT_HEAD_BYTES + (transit->body ? transit->body->n : 0); }

static uint64_t draw(const struct shmt_loop *loop, const struct transit *transit, uint32_t to, uint32_t what) {
    const uint64_t cable = (uint64_t)transit->from << 32 | to;
    return shmt_hash64(loop->spec.seed, cable, transit->number, what);
}

/* One copy. false: not enough memory. */
static bool post(struct shmt_loop *loop, const struct transit *sent, uint32_t to, uint64_t leaves_ns, uint32_t copy) {
    struct cable *cable = cable_of(loop, sent->from, to);
    struct port *port = &loop->port[to];
    struct transit *transit = malloc(sizeof *transit);
    if (!transit) return false;
    *transit = *sent;
    (void)shmt_payload_hold(transit->body);
    const uint64_t jitter_ns = shmt_below(draw(loop, sent, to, 4 + copy), loop->spec.jitter_ns + 1);
    transit->due_ns = leaves_ns + loop->spec.delay_ns + jitter_ns;
    loop->counts.overtaking += transit->due_ns < cable->latest_ns;
    if (cable->latest_ns < transit->due_ns) cable->latest_ns = transit->due_ns;
    insert(port, transit);
    port->coming_bytes += bytes_of(transit);
    bump_relaxed(&port->arrivals, 1); /* relaxed: one thread */
    shmt_host()->wake(&port->arrivals);
    return true;
}

/* ---- the contract ---- */

/* When the cable has taken it. */
static uint64_t leaves_at(struct port *self, uint64_t bytes) {
    const uint64_t rate = self->loop->spec.bytes_per_second, now_ns = shmt_now_ns();
    if (self->free_ns < now_ns) self->free_ns = now_ns;
    if (rate > 0) self->free_ns += (uint64_t)((double)bytes * 1e9 / (double)rate);
    return self->free_ns;
}

static int send(struct shmt_carrier *carrier, uint32_t to, const unsigned char *head, struct shmt_payload *body,
                struct shmt_error *e) {
    struct port *self = (struct port *)carrier;
    struct shmt_loop *loop = self->loop;
    struct cable *cable = cable_of(loop, self->rank, to);
    struct transit sent = {.from = self->rank, .number = cable->sent, .body = body};
    memcpy(sent.head, head, sizeof sent.head);
    if (loop->port[to].coming_bytes + bytes_of(&sent) > loop->spec.port_bytes) return 0;
    const uint64_t leaves_ns = leaves_at(self, bytes_of(&sent));
    cable->sent++;
    loop->counts.sent++;
    if (cable->cut || shmt_unit(draw(loop, &sent, to, 0)) < loop->spec.loss) {
        loop->counts.lost++;
        return 1;
    }
    const bool twice = shmt_unit(draw(loop, &sent, to, 1)) < loop->spec.duplication;
    loop->counts.doubled += twice;
    for (uint32_t copy = 0; copy < 1u + twice; copy++)
        if (!post(loop, &sent, to, leaves_ns, copy))
            return shmt_no_memory(e, "for a frame of %llu bytes", (unsigned long long)bytes_of(&sent));
    return 1;
}

static int receive(struct shmt_carrier *carrier, uint64_t until_ns, struct shmt_frame *out, struct shmt_error *e) {
    struct port *self = (struct port *)carrier;
    (void)e;
    for (;;) {
        const uint32_t seen = load_relaxed(&self->arrivals); /* relaxed: one thread */
        const uint64_t now_ns = shmt_now_ns();
        struct transit *first = self->coming;
        if (first && first->due_ns <= now_ns) {
            self->coming = first->next;
            self->coming_bytes -= bytes_of(first);
            first->next = self->held;
            self->held = first;
            *out = (struct shmt_frame){.from = first->from,
                                       .head = first->head,
                                       .body = first->body ? first->body->bytes : NULL,
                                       .body_bytes = first->body ? first->body->n : 0,
                                       .held = first};
            return 1;
        }
        if (now_ns >= until_ns) return 0;
        const uint64_t wake_ns = first && first->due_ns < until_ns ? first->due_ns : until_ns;
        shmt_host()->wait(&self->arrivals, seen, wake_ns - now_ns);
    }
}

static void release(struct shmt_carrier *carrier, struct shmt_frame *frame) {
    struct port *self = (struct port *)carrier;
    struct transit **at = &self->held, *mine = frame->held;
    while (*at != mine) at = &(*at)->next;
    *at = mine->next;
    free_transit(mine);
}

static void empty(struct port *port) {
    free_list(&port->coming);
    free_list(&port->held);
    port->coming_bytes = 0;
}

static void close_port(struct shmt_carrier *carrier) { empty((struct port *)carrier); }

static const struct shmt_carrier_ops LOOP = {
    .name = "loop", .send = send, .receive = receive, .release = release, .close = close_port};

/* ---- the network ---- */

int shmt_loop_make(const struct shmt_loop_spec *spec, struct shmt_loop **out, struct shmt_error *e) {
    const uint64_t n = spec->n_hosts;
    struct shmt_loop *loop = calloc(1, sizeof *loop + n * sizeof *loop->port);
    if (loop) loop->cable = calloc(n * n, sizeof *loop->cable);
    if (!loop || !loop->cable) {
        free(loop);
        return shmt_no_memory(e, "for a network of %u hosts", spec->n_hosts);
    }
    loop->spec = *spec;
    for (uint32_t i = 0; i < n; i++) loop->port[i] = (struct port){.carrier = {&LOOP}, .loop = loop, .rank = i};
    *out = loop;
    return 0;
}

struct shmt_carrier *shmt_loop_open(struct shmt_loop *loop, uint32_t rank) {
    empty(&loop->port[rank]);
    return &loop->port[rank].carrier;
}

void shmt_loop_cut(struct shmt_loop *loop, uint32_t from, uint32_t to, bool cut) { cable_of(loop, from, to)->cut = cut; }

void shmt_loop_count(const struct shmt_loop *loop, struct shmt_loop_counts *out) { *out = loop->counts; }

void shmt_loop_free(struct shmt_loop *loop) {
    for (uint32_t i = 0; i < loop->spec.n_hosts; i++) empty(&loop->port[i]);
    free(loop->cable);
    free(loop);
}
