/* bench_barrier: what it costs to wait for one another.
 *
 * usage: bench_barrier [--quick] [--rounds N]
 *
 * Forked processes go through many barriers, one right behind the other, in a shared mapping: the meetings and clocks of the
 * library (sync/gate.h, as its workers use them), a process-shared pthread_barrier, and the plain barrier that one writes
 * first: a counter, and FUTEX_WAKE of all by the last one. With two workers on two cores the floor is a cache line's way to the
 * other core and back; with eight on two cores it is the plain barrier.
 *
 * All take turns within a round, in short matches; a round's figure is the median of its matches. Then what waiters burn: the
 * processor time of all who wait for one that comes 50 milliseconds late, as a share of that time. */
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "bench.h"
#include "sync/gate.h"

enum { MOST = 8, MATCHES = 21, LATE_MS = 50 };
enum kind { LINE, MEETING, CLOCK, PTHREAD, PLAIN, N_KINDS };

/* Of the library (api/spec.c): with a processor for each worker they spin for so long. */
#define SPIN_NS 200000

struct plain_barrier {
    _Alignas(128) _Atomic uint32_t come;
    _Alignas(128) _Atomic uint32_t turn;
};

/* In shared memory; zeros at first. */
struct hall {
    struct shmt_gate gate[MOST];
    _Alignas(128) _Atomic uint32_t member[MOST];
    _Atomic uint32_t abort;
    struct plain_barrier plain;
    _Alignas(128) _Atomic uint32_t ball;
    _Alignas(128) pthread_barrier_t barrier;
    _Alignas(128) uint32_t n, n_barriers;
    const struct bench_options *o;
    double ns[N_KINDS];   /* by the first worker: of one barrier */
    double late_ns[MOST]; /* each worker's processor time while it waits for the one that is late */
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

static void meet_plainly(struct plain_barrier *b, uint32_t n) {
    const uint32_t turn = load_acquire(&b->turn); /* acquire, here and below: with the release of who comes last */
    if (atomic_fetch_add(&b->come, 1) + 1 == n) {
        store_relaxed(&b->come, 0); /* published by `turn` */
        store_release(&b->turn, turn + 1);
        futex(&b->turn, FUTEX_WAKE, INT32_MAX);
        return;
    }
    while (load_acquire(&b->turn) == turn) futex(&b->turn, FUTEX_WAIT, turn);
}

static void barrier(struct guest *g, enum kind kind, uint32_t i) {
    switch (kind) {
        case LINE:
            bench_hit(&g->hall->ball, g->rank, i);
            return;
        case MEETING:
            shmt_gate_reach(&g->gates, SHMT_GATE_PHASE, ++g->phase);
            (void)shmt_gates_wait(&g->gates, SHMT_GATE_PHASE, g->phase, NULL);
            return;
        case CLOCK:
            shmt_gate_reach(&g->gates, SHMT_GATE_CLOCK, ++g->clock);
            (void)shmt_gates_wait(&g->gates, SHMT_GATE_CLOCK, g->clock, NULL);
            return;
        case PTHREAD:
            (void)pthread_barrier_wait(&g->hall->barrier);
            return;
        default:
            meet_plainly(&g->hall->plain, g->hall->n);
            return;
    }
}

/* ---- a match ---- */

/* A barrier's mean time; the ball begins with the first worker. */
static double match(struct guest *g, enum kind kind) {
    if (kind == LINE && g->rank == 0) store_relaxed(&g->hall->ball, 0); /* relaxed: a meeting follows */
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
    const struct timespec late = {.tv_nsec = LATE_MS * 1000000};
    (void)pthread_barrier_wait(&g->hall->barrier);
    const double from = processor_ns();
    if (g->rank == 0) nanosleep(&late, NULL);
    barrier(g, MEETING, 0);
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
    struct bench_figure of[N_KINDS] = {0};
    if (hall->n > 2) bench_pin_to_both();
    for (int m = 0; m < MATCHES; m++)
        for (enum kind kind = hall->n > 2 ? MEETING : LINE; kind < N_KINDS; kind++) bench_add(&of[kind], match(&g, kind));
    wait_for_the_late(&g);
    if (rank > 0) return;
    for (enum kind kind = hall->n > 2 ? MEETING : LINE; kind < N_KINDS; kind++) hall->ns[kind] = bench_median(&of[kind]);
}

/* ---- rounds ---- */

/* Of n workers, once. */
static void run_all(struct hall *hall, uint32_t n, const struct bench_options *o) {
    pthread_barrierattr_t shared;
    *hall = (struct hall){.n = n, .o = o, .n_barriers = o->quick ? 20 : n > 2 ? 500 : 5000};
    for (uint32_t i = 0; i < n; i++) store_relaxed(&hall->member[i], 1); /* relaxed: before the fork */
    if (pthread_barrierattr_init(&shared) != 0 || pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&hall->barrier, &shared, n) != 0)
        bench_fail("no barrier");
    bench_run(n, body, hall);
}

static double burnt(const struct hall *hall) {
    double ns = 0;
    for (uint32_t i = 1; i < hall->n; i++) ns += hall->late_ns[i];
    return 100 * ns / (LATE_MS * 1e6);
}

static void measure(struct hall *hall, uint32_t n, const struct bench_options *o) {
    static const char *const name[N_KINDS] = {"cache line to the other core and back", "meeting", "clock",
                                              "pthread_barrier, process-shared", "plain counter and FUTEX_WAKE"};
    const enum kind first = n > 2 ? MEETING : LINE, floor = n > 2 ? PLAIN : LINE;
    struct bench_figure ns[N_KINDS],
        ratio[4] = {{.name = n > 2 ? "meeting / plain barrier" : "meeting / cache line", .unit = "x"},
                    {.name = n > 2 ? "clock / plain barrier" : "clock / cache line", .unit = "x"},
                    {.name = "meeting / pthread_barrier", .unit = "x"},
                    {.name = "clock / pthread_barrier", .unit = "x"}},
        burn = {.name = "processor time of all who wait 50 ms", .unit = "percent"};
    for (int kind = 0; kind < N_KINDS; kind++) ns[kind] = (struct bench_figure){.name = name[kind], .unit = "ns"};
    while (burn.n < o->rounds) {
        struct bench_round round;
        bench_round_begin(&round);
        run_all(hall, n, o);
        if (!bench_round_end(&round, o)) continue;
        for (enum kind kind = first; kind < N_KINDS; kind++) bench_add(&ns[kind], hall->ns[kind]);
        for (int i = 0; i < 4; i++)
            bench_add(&ratio[i], hall->ns[i % 2 == 0 ? MEETING : CLOCK] / hall->ns[i < 2 ? floor : PTHREAD]);
        bench_add(&burn, burnt(hall));
    }
    for (enum kind kind = first; kind < N_KINDS; kind++) bench_show(&ns[kind]);
    for (int i = 0; i < 4; i++) bench_show(&ratio[i]);
    bench_show(&burn);
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 31);
    struct hall *hall = bench_shared(sizeof *hall);
    if (bench_two_cores()) {
        bench_head("barrier: 2 workers on 2 cores");
        measure(hall, 2, &o);
    }
    bench_head("barrier: 8 workers on %s", bench_two_cores() ? "2 cores" : "one core");
    measure(hall, MOST, &o);
    bench_show_noise();
    return 0;
}
