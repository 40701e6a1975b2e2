/* bench_fibers: how many events the scheduler of fibers does in a second, with few and with many of them.
 *
 * usage: bench_fibers [--quick] [--rounds N]
 *
 * An event is a fiber that goes on: the one before has asked for something that takes time, whoever is the furthest behind is found, and
 * the stacks are switched. In one run all sleep for times of their own, in the other pairs of them wake one another, as workers do at
 * their meetings. */
#include <stdlib.h>
#include <ucontext.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

enum { QUICK_EVENTS = 20000, EVENTS = 1000000 };

static uint64_t g_each;          /* what each fiber does so often */
static _Atomic uint32_t *g_ball; /* (n / 2) whose turn it is of a pair */

static void sleep_often(void *arg, uint32_t i) {
    (void)arg;
    for (uint64_t k = 0; k < g_each; k++) shmt_sleep_ns(1000 + shmt_mix64(i * g_each + k) % 1000);
}

static void play(void *arg, uint32_t i) {
    _Atomic uint32_t *ball = &g_ball[i / 2];
    (void)arg;
    for (uint64_t k = 0; k < g_each; k++) {
        uint32_t seen;
        while ((seen = load_relaxed(ball)) % 2 != i % 2)
            shmt_host()->wait(ball, seen, UINT64_C(1000000000)); /* relaxed: one thread */
        store_relaxed(ball, seen + 1);
        shmt_host()->wake(ball);
    }
}

static double events_per_second(uint32_t n, uint64_t events, void (*body)(void *arg, uint32_t i)) {
    struct shmt_fibers *f = NULL;
    struct shmt_error e = {0};
    const struct shmt_fibers_spec spec = {.n = n, .seed = 1, .stack_bytes = 64 << 10, .sim = {.look_ns = 50}, .body = body};
    g_each = events / n + 1;
    g_ball = calloc(n / 2, sizeof *g_ball);
    if (!g_ball || shmt_fibers_make(&spec, &f, &e) < 0) bench_fail("no memory for %u fibers", n);
    const uint64_t from = shmt_machine_ns();
    while (!shmt_fibers_run(f, 1000)) continue;
    const double seconds = (double)(shmt_machine_ns() - from) * 1e-9, done = (double)shmt_fibers_events(f);
    shmt_fibers_free(f);
    free((void *)g_ball);
    return done / seconds;
}

/* The floor: libc's switch there and back, which asks the kernel for the signal mask each time. */
static ucontext_t g_here, g_there;

static void go_back(void) {
    for (;;) swapcontext(&g_there, &g_here);
}

static double switches_per_second(uint64_t n) {
    static _Alignas(64) char stack[64 << 10];
    getcontext(&g_there);
    g_there.uc_stack.ss_sp = stack;
    g_there.uc_stack.ss_size = sizeof stack;
    makecontext(&g_there, go_back, 0);
    const uint64_t from = shmt_machine_ns();
    for (uint64_t i = 0; i < n / 2; i++) swapcontext(&g_here, &g_there);
    return (double)n / ((double)(shmt_machine_ns() - from) * 1e-9);
}

static void round_of(void *arg, double *x) {
    const uint64_t events = *(const uint64_t *)arg;
    const double floor = switches_per_second(events / 10);
    x[0] = events_per_second(8, events, sleep_often) / 1e6;
    x[1] = events_per_second(8, events, play) / 1e6;
    x[2] = events_per_second(1000, events, sleep_often) / 1e6;
    x[3] = events_per_second(1000, events, play) / 1e6;
    x[4] = floor / 1e6;
    x[5] = x[1] * 1e6 / floor;
    x[6] = x[3] * 1e6 / floor;
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 15);
    uint64_t events = o.quick ? QUICK_EVENTS : EVENTS;
    struct shmt_figure figure[] = {{.name = "8 fibers that sleep", .unit = "M events/s"},
                                   {.name = "8 fibers that wake one another", .unit = "M events/s"},
                                   {.name = "1,000 fibers that sleep", .unit = "M events/s"},
                                   {.name = "1,000 fibers that wake one another", .unit = "M events/s"},
                                   {.name = "swapcontext, for comparison", .unit = "M switches/s"},
                                   {.name = "8 fibers that wake one another / swapcontext", .unit = "x"},
                                   {.name = "1,000 fibers that wake one another / swapcontext", .unit = "x"}};
    enum { N = sizeof figure / sizeof *figure };
    bench_head("fibers: events of the scheduler");
    bench_rounds(&o, figure, N, round_of, &events);
    bench_show(figure, N);
    bench_show_noise();
    return 0;
}
