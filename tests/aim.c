/* Aimed deaths: see aim.h. */
#include "aim.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/point.h"

struct plan *g_plan;
bool g_is_guest;
static _Thread_local uint32_t g_rank = WORKERS; /* asked once */

static void forget_rank(void) { g_rank = WORKERS; } /* behind a fork */

uint32_t my_rank(void) {
    char name[16] = "", *end;
    if (g_rank < WORKERS || g_is_guest) return g_rank;
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "shmtrain-w", 10) != 0 && strncmp(name, "shmtrain-t", 10) != 0) return WORKERS;
    const unsigned long n = strtoul(name + 10, &end, 10);
    if (*end == '\0' && n < WORKERS) g_rank = (uint32_t)n;
    return g_rank;
}

/* Only who holds the lock adds a name, and nobody dies with it. */
static uint32_t place_of(const char *name) {
    const uint32_t known = load_acquire(&g_plan->n_points);
    uint32_t free_lock = 0, at;
    for (at = 0; at < known; at++)
        if (strcmp(g_plan->point[at].name, name) == 0) return at;
    while (!lock_acquire(&g_plan->lock, &free_lock, 1)) free_lock = 0;
    const uint32_t n = load_relaxed(&g_plan->n_points);
    for (at = 0; at < n; at++)
        if (strcmp(g_plan->point[at].name, name) == 0) break;
    if (at == n) {
        snprintf(g_plan->point[at].name, sizeof g_plan->point[at].name, "%s", name);
        store_release(&g_plan->n_points, n + 1);
    }
    store_release(&g_plan->lock, 0);
    return at;
}

/* Names are constants, of which one may have several addresses: looked for once by each process and address. */
static uint32_t known_place_of(const char *name) {
    static _Thread_local struct {
        const char *name;
        uint32_t at;
    } known[512];
    const size_t slot = ((uintptr_t)name * UINT32_C(2654435761) >> 16) % 512;
    if (known[slot].name != name) {
        known[slot].at = place_of(name);
        known[slot].name = name;
    }
    return known[slot].at;
}

static bool is_behind(const struct target *target) {
    return load_relaxed(&g_plan->point[place_of(target->behind)].passes[0]) == 1 && load_relaxed(&g_plan->hit) == 0;
}

static bool is_at(const struct target *target, const char *name, uint32_t rank, uint64_t pass) {
    if (target->signal == 0 || rank != target->rank || strcmp(name, target->name) != 0) return false;
    return target->behind[0] ? is_behind(target) : pass == target->pass;
}

void shmt_point(const char *name) {
    const uint32_t rank = g_plan ? my_rank() : WORKERS;
    if (rank == WORKERS) return;
    const uint32_t at = known_place_of(name);
    const uint64_t pass = load_relaxed(&g_plan->point[at].passes[rank]) + 1; /* its own, of all its lives */
    store_relaxed(&g_plan->point[at].passes[rank], pass);
    if (is_at(&g_plan->then, name, rank, pass)) raise(g_plan->then.signal);
    if (!is_at(&g_plan->aim, name, rank, pass)) return;
    store_release(&g_plan->hit, 1);
    if (g_plan->aim.signal == SIGSTOP) store_release(&g_plan->stopped, (int32_t)getpid());
    raise(g_plan->aim.signal);
    store_release(&g_plan->stopped, 0); /* behind a stop */
}

/* The first one is told; two at one time may be mixed up. */
void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after >= before || !g_plan || load_acquire(&g_plan->fell)) return;
    snprintf(g_plan->what, sizeof g_plan->what, "%s", what);
    g_plan->whose = my_rank();
    g_plan->before = before;
    g_plan->after = after;
    store_release(&g_plan->fell, 1);
}

void aim_at(struct target *target, const char *name, uint32_t rank, uint64_t pass, int signal) {
    *target = (struct target){.rank = rank, .pass = pass, .signal = signal};
    memmove(target->name, name, strnlen(name, sizeof target->name - 1)); /* both are in the plan, mostly */
}

/* A run that hangs ends the program, and says where. */
static void give_up(int signal) {
    char text[160];
    (void)signal;
    const int n =
        snprintf(text, sizeof text, "it hangs: worker %u was to die at pass %llu of %s, worker %u at %s\n", g_plan->aim.rank,
                 (unsigned long long)g_plan->aim.pass, g_plan->aim.name, g_plan->then.rank, g_plan->then.name);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0) _exit(3);
    _exit(2);
}

void forget_passes(void) {
    for (uint32_t i = 0; i < MOST_POINTS; i++)
        for (uint32_t rank = 0; rank < WORKERS; rank++) store_relaxed(&g_plan->point[i].passes[rank], 0);
}

/* A process that lets those go on that were stopped, a moment later. It says so until it is heard: who has been told to stop may not
 * have got as far yet, for as long as the machine has others to run. */
static bool start_waker(void) {
    const struct timespec moment = {.tv_nsec = 2000000};
    const pid_t waker = fork();
    if (waker != 0) return waker > 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const int32_t stopped = load_acquire(&g_plan->stopped);
        (void)nanosleep(&moment, NULL);
        if (stopped != 0) (void)kill((pid_t)stopped, SIGCONT);
    }
}

bool begin_aiming(void) {
    g_plan = mmap(NULL, sizeof *g_plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g_plan == MAP_FAILED || pthread_atfork(NULL, NULL, forget_rank) != 0) return false;
    signal(SIGALRM, give_up);
    return start_waker();
}
