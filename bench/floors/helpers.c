/* What all measuring shares: see helpers.h. */
#include "bench/floors/helpers.h"

#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/relax.h"
#include "topo/topo.h"

#define DEADLINE_S 600

static void tell(const char *sentence) {
    fprintf(stderr, "bench: %s\n", sentence);
    fflush(stdout);
}

static void (*g_tell)(const char *sentence) = tell; /* written before any helper is forked */

void shmt_measure_on_failure(void (*say)(const char *sentence)) { g_tell = say; }

void shmt_measure_fail(const char *format, ...) {
    char sentence[512];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    g_tell(sentence);
    _exit(1);
}

/* ---- memory ---- */

static void *map(uint64_t bytes, int flags) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | flags, -1, 0);
    if (at == MAP_FAILED) shmt_measure_fail("not enough memory for %llu bytes", (unsigned long long)bytes);
    return at;
}

void *shmt_measure_shared(uint64_t bytes) { return map(bytes, MAP_POPULATE); }
void *shmt_measure_shared_later(uint64_t bytes) { return map(bytes, 0); }
void shmt_measure_unshare(void *at, uint64_t bytes) { munmap(at, bytes); }

/* ---- the machine ---- */

/* Asked once, before anybody is bound. */
static struct {
    bool known;
    uint32_t n;
    uint64_t cache_bytes;
    struct shmt_place place[SHMT_MOST_HELPERS];
} g_machine;

static void look_at_machine(void) {
    struct shmt_topo *topo;
    struct shmt_error e = {0};
    if (g_machine.known) return;
    if (shmt_topo_open(&topo, &e) < 0) shmt_measure_fail("%s", e.text);
    const uint32_t cores = shmt_topo_cores(topo);
    uint64_t cache = shmt_topo_cache_bytes(topo, 3);
    if (cache == 0) cache = shmt_topo_cache_bytes(topo, 2);
    g_machine.n = cores < SHMT_MOST_HELPERS ? cores : SHMT_MOST_HELPERS;
    g_machine.cache_bytes = cache ? cache : (uint64_t)32 << 20;
    shmt_topo_plan(topo, g_machine.n, g_machine.place);
    shmt_topo_close(topo);
    g_machine.known = true;
}

uint64_t shmt_measure_cache_bytes(void) {
    look_at_machine();
    return g_machine.cache_bytes;
}

uint32_t shmt_measure_cores(void) {
    look_at_machine();
    return g_machine.n;
}

static void pin(uint32_t first, uint32_t n) {
    cpu_set_t set;
    look_at_machine();
    CPU_ZERO(&set);
    for (uint32_t core = first; core < first + n; core++) CPU_SET(g_machine.place[core % g_machine.n].cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
}

void shmt_measure_pin(uint32_t core) { pin(core, 1); }
void shmt_measure_pin_to_two(void) { pin(0, 2); }

/* ---- helpers ---- */

void shmt_helpers_run(uint32_t n, void (*body)(void *arg, uint32_t rank), void *arg) {
    look_at_machine();
    fflush(stdout);
    for (uint32_t rank = 0; rank < n; rank++) {
        const pid_t parent = getpid(), pid = fork();
        if (pid < 0) shmt_measure_fail("cannot start a helper process");
        if (pid > 0) continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(1);
        alarm(DEADLINE_S);
        shmt_measure_pin(rank);
        body(arg, rank);
        _exit(0);
    }
    for (uint32_t i = 0; i < n; i++) {
        int status;
        if (wait(&status) < 0 || !WIFEXITED(status)) shmt_measure_fail("a helper failed");
        if (WEXITSTATUS(status) != 0) _exit(1); /* it has said why */
    }
}

void shmt_meet_all(struct shmt_meeting *m, uint32_t rank, uint32_t n) {
    const uint32_t now = load_relaxed(&m->of[rank].come) + 1; /* relaxed: I am its only writer */
    /* release and acquire, with one another: what each did before the meeting is seen by the others after it. */
    store_release(&m->of[rank].come, now);
    for (uint32_t other = 0; other < n; other++)
        while ((int32_t)(load_acquire(&m->of[other].come) - now) < 0) sched_yield();
}

void shmt_meet(struct shmt_meeting *m, uint32_t rank) { shmt_meet_all(m, rank, 2); }

void shmt_hit(_Atomic uint32_t *ball, uint32_t rank, uint32_t trip) {
    const uint32_t mine = 2 * trip + rank;
    while (load_acquire(ball) != mine) shmt_relax_processor(); /* acquire, release: the ball is all there is to see */
    store_release(ball, mine + 1);
}
