/* What all benches share: see bench.h. */
#include "bench.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/relax.h"
#include "topo/topo.h"

#define DEADLINE_S    600
#define NOISE         0.04
#define MOST_WASTE_NS 20000000000u /* of throwing rounds away, over the whole bench */

static uint64_t wasted_ns;
static uint32_t n_noisy, n_kept_noisy;

void bench_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    fputs("bench: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    fflush(stdout);
    _exit(1);
}

struct bench_options bench_options_read(int argc, char **argv, uint32_t rounds) {
    struct bench_options o = {.rounds = rounds};
    for (int i = 1; i < argc; i++) {
        char *end = NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            o.quick = true;
            o.rounds = 2;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            const unsigned long n = strtoul(argv[++i], &end, 10);
            if (*end != '\0' || n < 1 || n > BENCH_MAX_ROUNDS) bench_fail("--rounds: 1 to %d", BENCH_MAX_ROUNDS);
            o.rounds = (uint32_t)n;
        } else {
            bench_fail("%s: the options are --quick and --rounds N", argv[i]);
        }
    }
    return o;
}

/* ---- memory ---- */

void *bench_shared(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED) bench_fail("no memory for %llu bytes", (unsigned long long)bytes);
    return at;
}

void bench_unshare(void *at, uint64_t bytes) { munmap(at, bytes); }

static struct shmt_topo *open_topo(void) {
    struct shmt_topo *topo;
    struct shmt_error e = {0};
    if (shmt_topo_open(&topo, &e) < 0) bench_fail("%s", e.text);
    return topo;
}

uint64_t bench_far_bytes(const struct bench_options *o) {
    struct shmt_topo *topo = open_topo();
    uint64_t cache = shmt_topo_cache_bytes(topo, 3);
    if (cache == 0) cache = shmt_topo_cache_bytes(topo, 2);
    shmt_topo_close(topo);
    return o->quick ? 1 << 20 : 4 * (cache ? cache : 32 << 20);
}

/* ---- figures ---- */

void bench_add(struct bench_figure *f, double x) {
    if (f->n < BENCH_MAX_ROUNDS) f->x[f->n++] = x;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantile `q` in quarters, between neighbours by distance. */
static double quantile(const struct bench_figure *f, uint32_t q) {
    double sorted[BENCH_MAX_ROUNDS];
    if (f->n == 0) bench_fail("%s: nothing was measured", f->name);
    memcpy(sorted, f->x, f->n * sizeof *sorted);
    qsort(sorted, f->n, sizeof *sorted, compare);
    const uint32_t at = (f->n - 1) * q / 4, rest = (f->n - 1) * q % 4;
    return rest == 0 ? sorted[at] : sorted[at] + (sorted[at + 1] - sorted[at]) * rest / 4;
}

double bench_median(const struct bench_figure *f) { return quantile(f, 2); }

void bench_show(const struct bench_figure *f) {
    printf("  %-46s %9.3f %-11s [%.3f .. %.3f] of %u\n", f->name, quantile(f, 2), f->unit, quantile(f, 1), quantile(f, 3),
           f->n);
    fflush(stdout);
}

void bench_head(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

/* ---- rounds ---- */

/* Ticks that all processors spent on work, as of boot, or stolen from them; 0 when nobody says. */
static uint64_t busy_ticks(void) {
    unsigned long long user, nice, system, idle, wait, irq, softirq, steal = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file) return 0;
    const int n = fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle, &wait, &irq,
                         &softirq, &steal);
    fclose(file);
    return n >= 7 ? user + nice + system + irq + softirq + steal : 0;
}

static uint64_t own_ns(void) {
    uint64_t us = 0;
    static const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (int i = 0; i < 2; i++) {
        struct rusage usage;
        getrusage(whose[i], &usage);
        us += (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 +
              (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    }
    return us * 1000;
}

void bench_round_begin(struct bench_round *r) {
    *r = (struct bench_round){.began_ns = shmt_now_ns(), .total_ticks = busy_ticks(), .own_ns = own_ns()};
}

bool bench_round_end(const struct bench_round *r, const struct bench_options *o) {
    const double wall = (double)(shmt_now_ns() - r->began_ns), tick = 1e9 / (double)sysconf(_SC_CLK_TCK);
    const double busy = (double)(busy_ticks() - r->total_ticks) * tick, own = (double)(own_ns() - r->own_ns);
    if (o->quick || r->total_ticks == 0) return true;
    /* Ticks are coarse: two of them, one per processor, are no news. */
    const bool quiet = busy - own < NOISE * 2 * wall + 2 * tick;
    if (quiet) return true;
    if (wasted_ns > MOST_WASTE_NS) {
        n_kept_noisy++;
        return true;
    }
    wasted_ns += (uint64_t)wall;
    n_noisy++;
    usleep(200000); /* others may be done by then */
    return false;
}

void bench_show_noise(void) {
    if (n_noisy + n_kept_noisy > 0)
        printf("  others used the processors: %u rounds measured again, %u kept all the same\n", n_noisy, n_kept_noisy);
}

/* ---- helpers ---- */

bool bench_two_cores(void) {
    struct shmt_topo *topo = open_topo();
    const uint32_t n = shmt_topo_cores(topo);
    shmt_topo_close(topo);
    return n >= 2;
}

/* Cores first .. first + n - 1 of the two. The plan is made once, before anybody is bound: a bound process sees one core. */
static void pin(uint32_t first, uint32_t n) {
    static struct shmt_place place[2];
    static bool planned;
    cpu_set_t set;
    if (!planned) {
        struct shmt_topo *topo = open_topo();
        shmt_topo_plan(topo, 2, place);
        shmt_topo_close(topo);
        planned = true;
    }
    CPU_ZERO(&set);
    for (uint32_t core = first; core < first + n; core++) CPU_SET(place[core].cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set); /* refused: it runs all the same */
}

void bench_pin(uint32_t core) { pin(core % 2, 1); }
void bench_pin_to_both(void) { pin(0, 2); }

void bench_run(uint32_t n, void (*body)(void *arg, uint32_t rank), void *arg) {
    fflush(stdout);
    for (uint32_t rank = 0; rank < n; rank++) {
        const pid_t pid = fork();
        if (pid < 0) bench_fail("fork failed");
        if (pid > 0) continue;
        alarm(DEADLINE_S);
        bench_pin(rank);
        body(arg, rank);
        _exit(0);
    }
    for (uint32_t i = 0; i < n; i++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) bench_fail("a helper failed");
    }
}

void bench_meet(struct bench_meeting *m, uint32_t rank) {
    _Atomic uint32_t *mine = rank == 0 ? &m->come_0 : &m->come_1, *theirs = rank == 0 ? &m->come_1 : &m->come_0;
    const uint32_t now = load_relaxed(mine) + 1; /* relaxed: I am its only writer */
    /* release and acquire, with one another: what each did before the meeting is seen by the other after it. */
    store_release(mine, now);
    while ((int32_t)(load_acquire(theirs) - now) < 0) sched_yield();
}

void bench_hit(_Atomic uint32_t *ball, uint32_t rank, uint32_t trip) {
    const uint32_t mine = 2 * trip + rank;
    while (load_acquire(ball) != mine) shmt_relax_processor(); /* acquire, release: the ball is all there is to see */
    store_release(ball, mine + 1);
}
