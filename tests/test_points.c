/* Aimed deaths: at each labelled point of the protocols (base/point.h) that a run passes, in each mode, a worker is killed, or
 * stopped for a moment, and the run has to end as one that nobody has disturbed. The files that have points are compiled into
 * this program once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <shmtrain/shmtrain.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/point.h"

enum { WORKERS = 3, MOST_POINTS = 96, PATIENCE_SECONDS = 120 };

/* What the workers of a run and the test both see. */
struct plan {
    char aim[32];            /* at which point; "": nobody is killed */
    uint32_t rank;           /* whom */
    uint64_t pass;           /* when it passes it for the so-many-eth time, from 1 */
    int signal;              /* SIGKILL, or SIGSTOP: then it is continued from outside */
    _Atomic uint32_t hit;    /* it was */
    _Atomic int32_t stopped; /* the process that was stopped */
    struct {
        char
            name[32]; /* who passes it first writes it; whoever finds it half-written takes another place, which does no harm */
        _Atomic uint64_t passes[WORKERS];
    } point[MOST_POINTS];
    _Atomic uint32_t n_points;
    _Atomic uint32_t lock;
};
static struct plan *g_plan;

/* The rank of this process as a worker; WORKERS: it is none. Asked once for each process. */
static uint32_t my_rank(void) {
    static pid_t whose;
    static uint32_t rank;
    if (whose == getpid()) return rank;
    char name[16] = "", *end;
    prctl(PR_GET_NAME, name);
    rank = WORKERS;
    if (strncmp(name, "shmtrain-w", 10) != 0) return WORKERS; /* perhaps not yet */
    const unsigned long n = strtoul(name + 10, &end, 10);
    if (*end == '\0' && n < WORKERS) rank = (uint32_t)n;
    whose = getpid();
    return rank;
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

void shmt_point(const char *name) {
    const uint32_t rank = g_plan ? my_rank() : WORKERS;
    if (rank == WORKERS) return;
    const uint32_t at = place_of(name);
    const uint64_t pass = load_relaxed(&g_plan->point[at].passes[rank]) + 1; /* its own, of all its lives */
    store_relaxed(&g_plan->point[at].passes[rank], pass);
    if (rank != g_plan->rank || pass != g_plan->pass || strcmp(name, g_plan->aim) != 0) return;
    store_release(&g_plan->hit, 1);
    if (g_plan->signal == SIGSTOP) store_release(&g_plan->stopped, (int32_t)getpid());
    raise(g_plan->signal);
}

/* ---- runs ---- */

struct mode {
    const char *name, *options[6][2];
    bool same_bits;
    const char *data;
};
#define SPARSE "builtin:sparse:examples=3000,features=300,nonzeros=10,valid=600"
static const struct mode MODES[] = {
    {"sync", {{"mode", "sync"}, {"batch", "1024"}}, true, SPARSE},
    {"sync, adam", {{"mode", "sync"}, {"batch", "1024"}, {"optimizer", "adam"}}, true, SPARSE},
    {"async", {{"mode", "async"}, {"replicas", "one"}}, false, SPARSE},
    {"async, locked, adagrad",
     {{"mode", "async"}, {"replicas", "one"}, {"write", "locked"}, {"optimizer", "adagrad"}, {"cpu", "portable"}},
     false,
     SPARSE},
    {"async, locked, softmax",
     {{"mode", "async"}, {"replicas", "one"}, {"write", "locked"}, {"model", "softmax"}, {"cpu", "portable"}},
     false,
     "builtin:dense:examples=1500"},
    {"ssp:1", {{"mode", "ssp:1"}}, false, SPARSE},
    {"aggregate, staleness 2", {{"write", "aggregate"}, {"staleness", "2"}}, false, SPARSE},
    {"backup:2", {{"mode", "backup:2"}}, false, SPARSE},
    {"backup:2, fold", {{"mode", "backup:2"}, {"late", "fold"}}, false, SPARSE},
    {"local:2", {{"mode", "local:2"}}, false, SPARSE},
    {"local:2, alone", {{"mode", "local:2"}, {"staleness", "inf"}}, false, SPARSE},
    {"local:2, elastic", {{"mode", "local:2"}, {"merge", "elastic"}}, false, SPARSE},
};

struct ending {
    uint64_t xxh64, examples;
    double loss;
};

static void set(struct shmtrain_store *store, const char *name, const char *value) {
    if (shmtrain_store_set(store, name, value) < 0) fail_msg("%s", shmtrain_store_message(store));
}

static struct ending run(const struct mode *mode) {
    struct shmtrain_store *store;
    struct ending ending = {0};
    assert_int_equal(shmtrain_store_create(&store), 0);
    set(store, "workers", "3");
    set(store, "epochs", "2");
    set(store, "bind", "none");
    set(store, "max-respawns", "100");
    for (int i = 0; i < 6 && mode->options[i][0]; i++) set(store, mode->options[i][0], mode->options[i][1]);
    alarm(PATIENCE_SECONDS);
    const int rc = shmtrain_store_train(store, mode->data);
    alarm(0);
    if (rc < 0)
        fail_msg("%s, worker %u at pass %llu of %s: %s", mode->name, g_plan->rank, (unsigned long long)g_plan->pass,
                 g_plan->aim, shmtrain_store_message(store));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    ending.xxh64 = r->parameters_xxh64;
    for (uint32_t i = 0; i < r->n_epochs; i++) ending.examples += r->epoch[i].examples;
    ending.loss = r->epoch[r->n_epochs - 1].valid_loss;
    shmtrain_store_destroy(store);
    return ending;
}

/* A run that hangs ends the program, and says where. */
static void give_up(int signal) {
    char text[160];
    (void)signal;
    const int n = snprintf(text, sizeof text, "it hangs: worker %u was to die at pass %llu of %s\n", g_plan->rank,
                           (unsigned long long)g_plan->pass, g_plan->aim);
    if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0) _exit(3);
    _exit(2);
}

static void forget_passes(void) {
    for (uint32_t i = 0; i < MOST_POINTS; i++)
        for (uint32_t rank = 0; rank < WORKERS; rank++) store_relaxed(&g_plan->point[i].passes[rank], 0);
}

/* A process that lets those go on that were stopped, a moment later. */
static void start_waker(void) {
    const struct timespec moment = {.tv_nsec = 2000000};
    const pid_t waker = fork();
    assert_true(waker >= 0);
    if (waker > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        const int32_t stopped = load_acquire(&g_plan->stopped);
        (void)nanosleep(&moment, NULL);
        if (stopped == 0) continue;
        store_release(&g_plan->stopped, 0);
        (void)kill((pid_t)stopped, SIGCONT); /* twice: it may have been just about to stop */
        (void)nanosleep(&moment, NULL);
        (void)kill((pid_t)stopped, SIGCONT);
    }
}

/* Worker `rank` gets the signal in a run at pass `pass`, if it comes to that one. True: it has. */
static bool hit_there(const struct mode *mode, const struct ending *right, int signal, const char *name, uint32_t rank,
                      uint64_t pass) {
    forget_passes();
    snprintf(g_plan->aim, sizeof g_plan->aim, "%s", name);
    g_plan->rank = rank;
    g_plan->pass = pass;
    g_plan->signal = signal;
    store_relaxed(&g_plan->hit, 0);
    const struct ending ending = run(mode);
    if (ending.examples != right->examples || (mode->same_bits && ending.xxh64 != right->xxh64) || !isfinite(ending.loss))
        fail_msg("%s, worker %u at pass %llu of %s: %llu examples instead of %llu, parameters %016llx instead of %016llx",
                 mode->name, rank, (unsigned long long)pass, name, (unsigned long long)ending.examples,
                 (unsigned long long)right->examples, (unsigned long long)ending.xxh64, (unsigned long long)right->xxh64);
    return load_relaxed(&g_plan->hit) != 0;
}

/* First a run without deaths, which tells the points that it passes, and how often. */
static uint32_t disturb_at_each_point_of(const struct mode *mode) {
    uint64_t passes[MOST_POINTS][WORKERS];
    uint32_t hits = 0;
    forget_passes();
    g_plan->aim[0] = '\0';
    const struct ending right = run(mode);
    const uint32_t n = load_acquire(&g_plan->n_points);
    assert_true(n < MOST_POINTS);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t rank = 0; rank < WORKERS; rank++) passes[i][rank] = load_relaxed(&g_plan->point[i].passes[rank]);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = i % WORKERS, next = (i + 1) % WORKERS;
        const uint64_t most = passes[i][rank];
        if (most > 0) hits += hit_there(mode, &right, SIGKILL, g_plan->point[i].name, rank, 1);
        if (passes[i][next] > 0) (void)hit_there(mode, &right, SIGSTOP, g_plan->point[i].name, next, 1);
        if (most > 2) hits += hit_there(mode, &right, SIGKILL, g_plan->point[i].name, rank, most / 2 + 1);
        if (passes[i][0] > 0 && rank != 0)
            hits += hit_there(mode, &right, SIGKILL, g_plan->point[i].name, 0, passes[i][0]); /* the last */
    }
    return hits;
}

static void runs_end_as_if_undisturbed_wherever_a_worker_dies_or_stops(void **state) {
    (void)state;
    uint32_t hits = 0;
    for (size_t m = 0; m < sizeof MODES / sizeof *MODES; m++) {
        const uint32_t n = disturb_at_each_point_of(&MODES[m]);
        if (n == 0) fail_msg("%s: no point was passed", MODES[m].name);
        hits += n;
    }
    print_message("%u points of the protocols, %u deaths at them\n", load_relaxed(&g_plan->n_points), hits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_end_as_if_undisturbed_wherever_a_worker_dies_or_stops),
    };
    g_plan = mmap(NULL, sizeof *g_plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g_plan == MAP_FAILED) return 1;
    signal(SIGALRM, give_up);
    start_waker();
    return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
