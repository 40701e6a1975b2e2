/* Channels between hosts (src/link), on a network that loses, repeats and reorders frames, whose cables are cut and whose hosts crash
 * and start anew (src/carriers/loop.h). Hosts are fibers in virtual time, so each seed is a run that repeats itself.
 *
 *   TEST_SEEDS=N   that many seeds; 1,000 unless said otherwise, or 100 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "carriers/loop.h"
#include "fibers/scheduler.h"
#include "link/head.h"
#include "link/lanes.h"

#define MOST       5
#define MESSAGES   40    /* from each life to each life of each peer */
#define MOST_BYTES 70000 /* of a message, behind its head */
#define MS         UINT64_C(1000000)
#define MOST_NS    (UINT64_C(120000) * MS)

/* One host, in all its lives. */
struct host {
    uint32_t rank, lives;
    uint64_t life;        /* 0: it has crashed, and not begun anew */
    uint64_t crash_at_ns; /* 0: never */
    struct shmt_lanes *lanes;
    struct shmt_lanes_counts counts; /* of its last life, in the end */
    /* of its life with its peers' lives */
    struct {
        uint64_t life;
        uint32_t sent[SHMT_CHANNELS], n_sent, received[SHMT_CHANNELS], n_received;
    } with[MOST];
};

/* What a message begins with; behind it stand bytes that follow from it. */
struct note {
    uint64_t from_life, to_life;
    uint32_t number, n; /* in its channel; bytes in all */
};

static struct {
    uint64_t seed, draws;
    uint32_t n;
    struct shmt_loop *loop;
    struct shmt_lanes_spec spec;
    struct host host[MOST];
    bool long_cut, ended;
    uint32_t cut_from, cut_to; /* of the long one, which nobody heals */
    uint64_t now_ns;
} g;

static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "FAILED: %s; again: TEST_SEED=%llu\n", why, (unsigned long long)g.seed);
    _exit(1);
}

static void must(bool holds, const char *what) {
    if (!holds) give_up(what);
}

static uint64_t draw(uint64_t below) { return shmt_below(shmt_hash64(g.seed, ++g.draws, 7, 7), below); }

/* ---- messages ---- */

static uint64_t first_of(const struct note *note) { return shmt_mix64(note->from_life ^ note->number); }

/* From `at` on, a multiple of 8: each byte is one of first's, changed by its place. */
static void write_bytes(uint64_t first, uint32_t at, uint32_t end, unsigned char *bytes) {
    const uint64_t each = UINT64_C(0x0101010101010101), places = UINT64_C(0x0706050403020100);
    for (; at < end; at += 8) {
        const uint64_t eight = first ^ (((at & 0xff) * each) | places);
        memcpy(bytes + at, &eight, end - at < 8 ? end - at : 8);
    }
}

static struct shmt_payload *write_message(uint64_t from_life, uint64_t to_life, uint32_t number) {
    static const uint32_t SIZES[] = {0, 1, 100, 2000, MOST_BYTES};
    const uint32_t extra = (uint32_t)draw(SIZES[draw(5)] + 1);
    const struct note note = {from_life, to_life, number, (uint32_t)sizeof note + extra};
    unsigned char *bytes;
    struct shmt_payload *payload = shmt_payload_make(note.n, &bytes);
    must(payload != NULL, "no memory");
    memcpy(bytes, &note, sizeof note);
    write_bytes(first_of(&note), sizeof note, note.n, bytes);
    return payload;
}

static void read_message(struct host *h, const struct shmt_message *m) {
    static unsigned char expected[sizeof(struct note) + MOST_BYTES];
    struct note note;
    must(m->n >= sizeof note, "a message is too short");
    memcpy(&note, m->bytes, sizeof note);
    must(note.n == m->n && note.n <= sizeof expected, "a message has another length");
    write_bytes(first_of(&note), sizeof note, note.n, expected);
    must(memcmp(m->bytes + sizeof note, expected + sizeof note, note.n - sizeof note) == 0, "a message was damaged");
    must(note.from_life == m->life && note.to_life == h->life, "a message comes from another life, or was meant for one");
    if (h->with[m->from].life != m->life) memset(&h->with[m->from], 0, sizeof h->with[m->from]);
    h->with[m->from].life = m->life;
    must(note.number == h->with[m->from].received[m->channel]++, "a message is missing, was doubled or overtaken");
    h->with[m->from].n_received++;
}

/* The next message to a peer that is there, if the window has room. */
static void send_to(struct host *h, uint32_t to) {
    struct shmt_error e = {0};
    uint64_t life;
    if (shmt_lanes_peer(h->lanes, to, &life) != SHMT_PEER_THERE) return;
    if (h->with[to].life != life) memset(&h->with[to], 0, sizeof h->with[to]);
    h->with[to].life = life;
    if (h->with[to].n_sent == MESSAGES) return;
    const uint32_t channel = (uint32_t)draw(SHMT_CHANNELS);
    struct shmt_payload *payload = write_message(h->life, life, h->with[to].sent[channel]);
    const int rc = shmt_lanes_send(h->lanes, to, channel, payload, &e);
    shmt_payload_drop(payload);
    must(rc >= 0, e.text);
    if (rc == 0) return;
    h->with[to].sent[channel]++;
    h->with[to].n_sent++;
}

/* ---- a host ---- */

static bool is_cut_off(uint32_t a, uint32_t b) {
    return g.long_cut && ((a == g.cut_from && b == g.cut_to) || (b == g.cut_from && a == g.cut_to));
}

/* It is lost, or was never there. */
static bool is_gone(const struct host *h, uint32_t with) {
    const enum shmt_peer_state state = shmt_lanes_peer(h->lanes, with, NULL);
    return state == SHMT_PEER_LOST || state == SHMT_PEER_UNKNOWN;
}

/* Both ends have lost one another, or all messages between these lives have come. */
static bool is_done(const struct host *h, uint32_t with) {
    const struct host *other = &g.host[with];
    uint64_t life;
    if (!other->lanes || !h->lanes) return false;
    if (is_cut_off(h->rank, with)) return is_gone(h, with) && is_gone(other, h->rank);
    if (shmt_lanes_peer(h->lanes, with, &life) != SHMT_PEER_THERE || life != other->life) return false;
    return h->with[with].life == life && h->with[with].n_received == MESSAGES;
}

static bool all_is_done(void) {
    for (uint32_t i = 0; i < g.n; i++) {
        if (g.host[i].crash_at_ns > 0 || !g.host[i].lanes || !shmt_lanes_are_empty(g.host[i].lanes)) return false;
        for (uint32_t j = 0; j < g.n; j++)
            if (j != i && !is_done(&g.host[i], j)) return false;
    }
    return true;
}

/* Until all is done, or the host crashes: true. */
static bool live(struct host *h) {
    struct shmt_lanes_spec spec = g.spec;
    struct shmt_error e = {0};
    memset(h->with, 0, sizeof h->with);
    spec.carrier = shmt_loop_open(g.loop, h->rank);
    spec.self = h->rank;
    spec.life = h->life = (uint64_t)(h->rank + 1) << 32 | ++h->lives;
    if (shmt_lanes_make(&spec, &h->lanes, &e) < 0) give_up(e.text);
    while (!g.ended) {
        struct shmt_message m;
        const uint64_t now_ns = shmt_now_ns();
        if (h->crash_at_ns > 0 && now_ns >= h->crash_at_ns) return true;
        if (now_ns > MOST_NS) give_up("messages do not arrive");
        for (uint32_t to = 0; to < g.n; to++)
            if (to != h->rank && draw(3)) send_to(h, to);
        const int rc = shmt_lanes_receive(h->lanes, now_ns + 1 + draw(2 * MS), &m, NULL, &e);
        if (rc < 0) give_up(e.text);
        if (all_is_done()) g.ended = true;
        if (rc == 0) continue;
        read_message(h, &m);
        shmt_lanes_release(h->lanes, &m);
    }
    return false;
}

static void run_host(void *arg, uint32_t i) {
    struct host *h = &g.host[i];
    (void)arg;
    shmt_host()->sleep_until(draw(300 * MS)); /* they start in any order */
    while (live(h)) {
        shmt_lanes_free(h->lanes);
        h->lanes = NULL;
        h->crash_at_ns = 0;
        shmt_host()->sleep_until(shmt_now_ns() +
                                 draw(draw(4) ? 3000 * MS : 20000 * MS)); /* it may have been given up by then */
    }
    shmt_lanes_count(h->lanes, &h->counts);
}

/* Cables are pulled and put back, never for so long that somebody is given up; but one, in some runs, for good. */
static void run_cables(void) {
    for (uint32_t times = (uint32_t)draw(4); times > 0 && !g.ended; times--) {
        const uint32_t from = (uint32_t)draw(g.n), to = (uint32_t)draw(g.n);
        const bool both = draw(2);
        shmt_host()->sleep_until(shmt_now_ns() + 2000 * MS + draw(500 * MS)); /* several beats */
        shmt_loop_cut(g.loop, from, to, true);
        if (both) shmt_loop_cut(g.loop, to, from, true);
        shmt_host()->sleep_until(shmt_now_ns() + draw(6000 * MS));
        shmt_loop_cut(g.loop, from, to, false);
        shmt_loop_cut(g.loop, to, from, false);
    }
    if (!g.long_cut) return;
    shmt_loop_cut(g.loop, g.cut_from, g.cut_to, true);
    if (draw(2)) shmt_loop_cut(g.loop, g.cut_to, g.cut_from, true);
}

static void run_fiber(void *arg, uint32_t i) {
    if (i < g.n)
        run_host(arg, i);
    else
        run_cables();
}

static void run(const struct shmt_loop_spec *loop) {
    struct shmt_error e = {0};
    struct shmt_fibers *fibers;
    const struct shmt_fibers_spec spec = {
        .n = g.n + 1, .seed = g.seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 20}, .body = run_fiber};
    if (shmt_loop_make(loop, &g.loop, &e) < 0 || shmt_fibers_make(&spec, &fibers, &e) < 0) give_up(e.text);
    while (!shmt_fibers_run(fibers, 1000)) continue;
    g.now_ns = shmt_fibers_now_ns(fibers);
    shmt_fibers_free(fibers);
    for (uint32_t i = 0; i < g.n; i++) shmt_lanes_free(g.host[i].lanes);
    shmt_loop_free(g.loop);
}

/* ---- runs ---- */

static void begin(uint64_t seed, uint32_t n) {
    memset(&g, 0, sizeof g);
    g.seed = seed;
    g.n = n;
    g.spec = (struct shmt_lanes_spec){.n_hosts = n,
                                      .run = seed,
                                      .window_bytes = SHMT_HEAD_BYTES + SHMT_MOST_BODY,
                                      .beat_ns = SHMT_LANES_BEAT,
                                      .suspect_ns = SHMT_LANES_SUSPECT,
                                      .lost_ns = SHMT_LANES_LOST};
    for (uint32_t i = 0; i < n; i++) g.host[i].rank = i;
}

static void run_seed(uint64_t seed) {
    begin(seed, 2 + (uint32_t)(seed % (MOST - 1)));
    const struct shmt_loop_spec loop = {.n_hosts = g.n,
                                        .seed = seed,
                                        .delay_ns = 1000 + draw(5 * MS),
                                        .jitter_ns = draw(2) ? 0 : draw(10 * MS),
                                        .loss = draw(2) ? 0 : (double)draw(20) / 100,
                                        .duplication = draw(2) ? 0 : (double)draw(20) / 100,
                                        .bytes_per_second = draw(2) ? 0 : 2000000 + draw(100000000),
                                        .port_bytes = 100000 + draw(8000000)};
    g.long_cut = draw(8) == 0;
    g.cut_from = (uint32_t)draw(g.n);
    g.cut_to = (g.cut_from + 1 + (uint32_t)draw(g.n - 1)) % g.n;
    for (uint32_t i = 0; i < g.n && !g.long_cut; i++)
        if (draw(4) == 0) g.host[i].crash_at_ns = 1 + draw(2000 * MS);
    run(&loop);
}

static void messages_come_once_and_in_order_whatever_the_network_does(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 100 : 1000), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
}

static void without_a_fault_nothing_is_sent_twice(void **state) {
    (void)state;
    begin(1, 3);
    const struct shmt_loop_spec loop = {
        .n_hosts = 3, .delay_ns = MS, .bytes_per_second = 12500000, .port_bytes = UINT64_C(1) << 30};
    run(&loop);
    for (uint32_t i = 0; i < g.n; i++) {
        assert_int_equal(g.host[i].counts.sent, 2 * MESSAGES);
        assert_int_equal(g.host[i].counts.repeated, 0);
        assert_int_equal(g.host[i].counts.dropped, 0);
        assert_int_equal(g.host[i].counts.strange, 0);
    }
}

/* ---- two hosts by hand ---- */

struct pair {
    struct shmt_loop *loop;
    struct shmt_lanes *lanes[2];
    uint64_t stop_ns; /* host 1 stands still for so long, when both know one another */
    uint32_t n_sent;  /* by host 0, before its window was full */
    void (*play)(struct pair *p, uint32_t self);
    bool over[2];
};

/* Until the time, or until the peer's state is this. What comes is released. */
static void receive(struct pair *p, uint32_t self, uint64_t for_ns, enum shmt_peer_state until) {
    const uint64_t until_ns = shmt_now_ns() + for_ns;
    struct shmt_error e = {0};
    struct shmt_message m;
    while (shmt_now_ns() < until_ns && shmt_lanes_peer(p->lanes[self], 1 - self, NULL) != until) {
        const int rc = shmt_lanes_receive(p->lanes[self], until_ns, &m, NULL, &e);
        if (rc < 0) give_up(e.text);
        if (rc > 0) shmt_lanes_release(p->lanes[self], &m);
    }
}

static void run_one_of_two(void *arg, uint32_t i) {
    struct pair *p = arg;
    struct shmt_lanes_spec spec = g.spec;
    struct shmt_error e = {0};
    spec.carrier = shmt_loop_open(p->loop, i);
    spec.self = i;
    spec.life = 100 + i;
    if (shmt_lanes_make(&spec, &p->lanes[i], &e) < 0) give_up(e.text);
    receive(p, i, 1000 * MS, SHMT_PEER_THERE);
    p->play(p, i);
    p->over[i] = true;
    while (!p->over[1 - i]) receive(p, i, 10 * MS, SHMT_PEER_UNKNOWN);
}

static void play(struct pair *p, void (*part)(struct pair *p, uint32_t self), uint64_t port_bytes) {
    const struct shmt_loop_spec loop = {.n_hosts = 2, .delay_ns = MS, .port_bytes = port_bytes};
    const struct shmt_fibers_spec spec = {
        .n = 2, .seed = 1, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 20}, .body = run_one_of_two, .arg = p};
    struct shmt_error e = {0};
    struct shmt_fibers *fibers;
    begin(1, 2);
    p->play = part;
    assert_int_equal(shmt_loop_make(&loop, &p->loop, &e), 0);
    assert_int_equal(shmt_fibers_make(&spec, &fibers, &e), 0);
    while (!shmt_fibers_run(fibers, 1000)) assert_true(shmt_fibers_now_ns(fibers) < MOST_NS);
    shmt_fibers_free(fibers);
}

static void end_pair(struct pair *p) {
    for (int i = 0; i < 2; i++) shmt_lanes_free(p->lanes[i]);
    shmt_loop_free(p->loop);
}

static void stop_and_look(struct pair *p, uint32_t self) {
    if (self == 1) shmt_host()->sleep_until(shmt_now_ns() + p->stop_ns);
    receive(p, self, self == 1 ? 2000 * MS : p->stop_ns + 1000 * MS, SHMT_PEER_LOST);
}

static void a_host_that_was_stopped_for_a_while_loses_nobody(void **state) {
    struct pair p = {.stop_ns = SHMT_LANES_LOST - 1000 * MS};
    (void)state;
    play(&p, stop_and_look, UINT64_C(1) << 30);
    assert_int_equal(shmt_lanes_peer(p.lanes[0], 1, NULL), SHMT_PEER_THERE);
    assert_int_equal(shmt_lanes_peer(p.lanes[1], 0, NULL), SHMT_PEER_THERE);
    end_pair(&p);
}

static void a_host_that_was_given_up_while_it_was_stopped_is_told(void **state) {
    struct pair p = {.stop_ns = SHMT_LANES_LOST + 1000 * MS};
    struct shmt_error e = {0};
    (void)state;
    play(&p, stop_and_look, UINT64_C(1) << 30);
    assert_int_equal(shmt_lanes_peer(p.lanes[0], 1, NULL), SHMT_PEER_LOST);
    assert_int_equal(shmt_lanes_peer(p.lanes[1], 0, NULL), SHMT_PEER_LOST);
    assert_int_equal(shmt_lanes_send(p.lanes[0], 1, 0, NULL, &e), SHMTRAIN_E_DIED);
    assert_string_equal(e.text, "host 1 is lost");
    end_pair(&p);
}

/* Of a peer that takes nothing no more is kept than the window holds, and all of it comes when it does. */
static void fill_the_window(struct pair *p, uint32_t self) {
    struct shmt_error e = {0};
    int rc = 1;
    if (self == 1) shmt_host()->sleep_until(shmt_now_ns() + 900 * MS);
    while (self == 0 && rc == 1) {
        unsigned char *bytes;
        struct shmt_payload *payload = shmt_payload_make(1000, &bytes);
        memset(bytes, 0, 1000);
        rc = shmt_lanes_send(p->lanes[0], 1, 3, payload, &e);
        shmt_payload_drop(payload);
        p->n_sent += rc == 1;
    }
    receive(p, self, 5000 * MS, SHMT_PEER_UNKNOWN);
}

static void what_is_kept_for_a_slow_peer_is_bounded(void **state) {
    for (uint64_t port_bytes = 3000; port_bytes < UINT64_C(1) << 24; port_bytes *= 40) {
        struct pair p = {0};
        struct shmt_lanes_counts counts;
        (void)state;
        play(&p, fill_the_window, port_bytes);
        assert_int_equal(p.n_sent, (SHMT_HEAD_BYTES + SHMT_MOST_BODY) / (SHMT_HEAD_BYTES + 1000));
        shmt_lanes_count(p.lanes[1], &counts);
        assert_int_equal(counts.received, p.n_sent);
        assert_true(shmt_lanes_are_empty(p.lanes[0]));
        end_pair(&p);
    }
}

/* ---- heads ---- */

static const struct shmt_head HEAD = {.kind = SHMT_FRAME_DATA,
                                      .channel = 7,
                                      .from = 63,
                                      .to = 2,
                                      .run = 0x0102030405060708,
                                      .life = UINT64_MAX,
                                      .to_life = 5,
                                      .sequence = UINT64_C(1) << 40,
                                      .taken = 77};

static void a_head_comes_back_as_it_was_written(void **state) {
    unsigned char wire[SHMT_HEAD_BYTES];
    struct shmt_head head;
    const char *why;
    (void)state;
    memset(&head, 0, sizeof head);
    shmt_head_write(&HEAD, 1000, wire);
    assert_true(shmt_head_read(wire, 1000, &head, &why));
    assert_memory_equal(&head, &HEAD, sizeof head);
    assert_int_equal(wire[16], 8); /* the lowest byte first */
}

static void a_head_with_any_bit_changed_is_refused(void **state) {
    unsigned char wire[SHMT_HEAD_BYTES];
    struct shmt_head head;
    const char *why;
    (void)state;
    shmt_head_write(&HEAD, 1000, wire);
    for (int bit = 0; bit < 8 * SHMT_HEAD_BYTES; bit++) {
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_false(shmt_head_read(wire, 1000, &head, &why));
        assert_non_null(why);
        wire[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    assert_false(shmt_head_read(wire, 999, &head, &why));
    assert_string_equal(why, "a body of another length");
}

static void a_head_with_a_field_out_of_range_is_refused(void **state) {
    const struct {
        struct shmt_head head;
        uint64_t bytes;
        const char *why;
    } wrong[] = {{{.kind = 9, .to = 1, .life = 1}, 0, "no such kind of frame"},
                 {{.kind = 1, .to = 1, .life = 1, .channel = SHMT_CHANNELS}, 0, "no such channel"},
                 {{.kind = 1, .to = SHMT_MOST_HOSTS, .life = 1}, 0, "no such pair of hosts"},
                 {{.kind = 1, .from = 1, .to = 1, .life = 1}, 0, "no such pair of hosts"},
                 {{.kind = 1, .to = 1}, 0, "no life"},
                 {{.kind = 2, .to = 1, .life = 1, .sequence = 1}, 0, "a message to nobody"},
                 {{.kind = 2, .to = 1, .life = 1, .to_life = 1}, 0, "a number where none belongs, or none"},
                 {{.kind = 1, .to = 1, .life = 1, .sequence = 1}, 0, "a number where none belongs, or none"},
                 {{.kind = 1, .to = 1, .life = 1}, 1, "a body where none belongs"},
                 {{.kind = 2, .to = 1, .life = 1, .to_life = 1, .sequence = 1}, SHMT_MOST_BODY + 1, "too long a body"}};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        unsigned char wire[SHMT_HEAD_BYTES];
        struct shmt_head head;
        const char *why;
        shmt_head_write(&wrong[i].head, wrong[i].bytes, wire);
        assert_false(shmt_head_read(wire, wrong[i].bytes, &head, &why));
        assert_string_equal(why, wrong[i].why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_comes_back_as_it_was_written),
        cmocka_unit_test(a_head_with_any_bit_changed_is_refused),
        cmocka_unit_test(a_head_with_a_field_out_of_range_is_refused),
        cmocka_unit_test_setup(without_a_fault_nothing_is_sent_twice, deadline),
        cmocka_unit_test_setup(a_host_that_was_stopped_for_a_while_loses_nobody, deadline),
        cmocka_unit_test_setup(a_host_that_was_given_up_while_it_was_stopped_is_told, deadline),
        cmocka_unit_test_setup(what_is_kept_for_a_slow_peer_is_bounded, deadline),
        cmocka_unit_test_setup(messages_come_once_and_in_order_whatever_the_network_does, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
