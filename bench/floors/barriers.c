/* Barriers against one another: see barriers.h. */
#include "bench/floors/barriers.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/floors/figure.h"
#include "bench/floors/helpers.h"
#include "base/atomic.h"
#include "sync/host.h"
#include "sync/gate.h"

/* Of the library (running/spec.c): with a processor for each worker they spin for so long. */
#define SPIN_NS 200000

struct plain_barrier {
    _Alignas(128) _Atomic uint32_t come;
    _Alignas(128) _Atomic uint32_t turn;
};

/* In shared memory; zeros at first. */
struct hall {
    struct shmt_gate gate[SHMT_MOST_IN_HALL];
    _Alignas(128) _Atomic uint32_t member[SHMT_MOST_IN_HALL];
    _Atomic uint32_t abort;
    struct plain_barrier plain;
    _Alignas(128) _Atomic uint32_t ball;
    _Alignas(128) pthread_barrier_t barrier;
    _Alignas(128) uint32_t n, n_barriers, matches;
    double ns[SHMT_BARRIERS];          /* by the first worker: of one barrier */
    double late_ns[SHMT_MOST_IN_HALL]; /* each worker's processor time while it waits for the one that is late */
};

/* One worker in the hall. */
struct guest {
    struct hall *hall;
    struct shmt_gates gates;
    uint32_t rank;
    uint64_t phase, clock;
};

/* ---- the contestants ---- */

static void futex(_Atomic uint32_t *word, int op, uint32_t value) { syscall(SYS_futex, word, op, value, NULL, NULL, 0); }

/* Who waits sleeps, or yields. */
static void meet_plainly(struct plain_barrier *b, uint32_t n, bool sleeps) {
    const uint32_t turn = load_acquire(&b->turn); /* acquire, here and below: with the release of who comes last */
    if (atomic_fetch_add(&b->come, 1) + 1 == n) { /* seq_cst, as one writes it first: it is measured as it is */
        store_relaxed(&b->come, 0);               /* published by `turn` */
        store_release(&b->turn, turn + 1);
        if (sleeps) futex(&b->turn, FUTEX_WAKE, INT32_MAX);
        return;
    }
    while (load_acquire(&b->turn) == turn)
        if (sleeps)
            futex(&b->turn, FUTEX_WAIT, turn);
        else
            (void)sched_yield();
}

static void barrier(struct guest *g, enum shmt_barrier kind, uint32_t i) {
    switch (kind) {
        case SHMT_BARRIER_LINE:
            shmt_hit(&g->hall->ball, g->rank, i);
            return;
        case SHMT_BARRIER_MEETING:
            (void)shmt_gates_meet(&g->gates, SHMT_GATE_PHASE, ++g->phase);
            return;
        case SHMT_BARRIER_CLOCK:
            shmt_gate_reach(&g->gates, SHMT_GATE_CLOCK, ++g->clock);
            (void)shmt_gates_wait(&g->gates, SHMT_GATE_CLOCK, g->clock, NULL);
            return;
        case SHMT_BARRIER_PTHREAD:
            (void)pthread_barrier_wait(&g->hall->barrier);
            return;
        default:
            meet_plainly(&g->hall->plain, g->hall->n, kind == SHMT_BARRIER_PLAIN);
            return;
    }
}

/* ---- a match ---- */

/* A barrier's mean time; the ball begins with the first worker. */
static double match(struct guest *g, enum shmt_barrier kind) {
    if (kind == SHMT_BARRIER_LINE && g->rank == 0) store_relaxed(&g->hall->ball, 0); /* relaxed: a meeting follows */
    (void)pthread_barrier_wait(&g->hall->barrier);
    const uint64_t from = shmt_now_ns();
    for (uint32_t i = 0; i < g->hall->n_barriers; i++) barrier(g, kind, i);
    return (double)(shmt_now_ns() - from) / g->hall->n_barriers;
}

static double processor_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void wait_for_the_late(struct guest *g) {
    const struct timespec late = {.tv_nsec = SHMT_LATE_MS * 1000000};
    (void)pthread_barrier_wait(&g->hall->barrier);
    const double from = processor_ns();
    if (g->rank == 0) nanosleep(&late, NULL);
    barrier(g, SHMT_BARRIER_MEETING, 0);
    g->hall->late_ns[g->rank] = processor_ns() - from;
}

static void body(void *arg, uint32_t rank) {
    struct hall *hall = arg;
    struct guest g = {.hall = hall,
                      .rank = rank,
                      .gates = {.gate = hall->gate,
                                .stride_bytes = sizeof *hall->gate,
                                .n = hall->n,
                                .self = rank,
                                .watch = {&hall->abort, hall->member, 1, hall->n > 2 ? 0 : SPIN_NS}}};
    struct shmt_figure of[SHMT_BARRIERS] = {0};
    if (hall->n > 2) shmt_measure_pin_to_two();
    for (uint32_t m = 0; m < hall->matches; m++)
        for (enum shmt_barrier kind = hall->n > 2 ? SHMT_BARRIER_MEETING : SHMT_BARRIER_LINE; kind < SHMT_BARRIERS; kind++)
            shmt_figure_add(&of[kind], match(&g, kind));
    wait_for_the_late(&g);
    if (rank > 0) return;
    for (enum shmt_barrier kind = hall->n > 2 ? SHMT_BARRIER_MEETING : SHMT_BARRIER_LINE; kind < SHMT_BARRIERS; kind++)
        hall->ns[kind] = shmt_figure_median(&of[kind]);
}

/* ---- a run ---- */

void shmt_barriers_run(uint32_t n, uint32_t n_barriers, uint32_t matches, struct shmt_barriers *out) {
    struct hall *hall = shmt_measure_shared(sizeof *hall);
    pthread_barrierattr_t shared;
    hall->n = n;
    hall->n_barriers = n_barriers;
    hall->matches = matches;
    for (uint32_t i = 0; i < n; i++) store_relaxed(&hall->member[i], 1); /* relaxed: before the fork */
    if (pthread_barrierattr_init(&shared) != 0 || pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&hall->barrier, &shared, n) != 0)
        shmt_measure_fail("no barrier for %u workers", n);
    shmt_helpers_run(n, body, hall);
    *out = (struct shmt_barriers){0};
    for (int kind = 0; kind < SHMT_BARRIERS; kind++) out->ns[kind] = hall->ns[kind];
    for (uint32_t i = 1; i < n; i++) out->late_ns += hall->late_ns[i];
    shmt_measure_unshare(hall, sizeof *hall);
}
