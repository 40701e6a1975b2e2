/* A team of threads. Called by team.c, by the row at the end. Keeps the contract of processes: the first failure sets the abort
 * word, and the descriptor is hung up when all bodies have returned. What threads cannot have: they are not killed, and a crash
 * is the process's. */
#include "runtime/team_priv.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread.h"

enum gate { CLOSED, OPEN, CANCELLED };

struct worker {
    struct shmt_team *team;
    uint32_t rank;
    pthread_t thread;
};

struct shmt_team_threads {
    pthread_mutex_t lock; /* for all below, and for the first failure */
    pthread_cond_t opened;
    enum gate gate; /* no body is entered before all threads exist */
    uint32_t n_running;
    struct worker worker[]; /* (n) */
};

static void abort_team(struct shmt_team *team, uint32_t value) {
    /* Under the lock, so only strangers can set it between the two; their value says the same. Release: as in supervisor.c. */
    if (team->spec.abort && load_relaxed(team->spec.abort) == 0) store_release(team->spec.abort, value);
}

static void note_end(struct shmt_team *team, uint32_t rank, int status) {
    struct shmt_team_threads *threads = team->threads;
    pthread_mutex_lock(&threads->lock);
    const bool first = !shmt_team_is_clean_end(status) && load_relaxed(&team->ledger->first) == 0; /* under the lock */
    if (first) {
        store_release(&team->ledger->first, rank + 1); /* pairs with the acquire in ends.c */
        abort_team(team, rank + 1);
    }
    pthread_mutex_unlock(&threads->lock);
    if (first && team->spec.on_abort) team->spec.on_abort(team->spec.arg);

    pthread_mutex_lock(&threads->lock);
    const bool last = --threads->n_running == 0;
    pthread_mutex_unlock(&threads->lock);
    if (!last) return;
    store_release(&team->ledger->over, 1); /* pairs with step's acquire */
    close(team->report_write);             /* hangs up; nobody is left to notify */
    team->report_write = -1;               /* `collect` joins us before the handle goes */
}

static void *run(void *p) {
    struct worker *me = p;
    struct shmt_team *team = me->team;
    struct shmt_team_threads *threads = team->threads;
    struct shmt_team_end *end = &team->ledger->end[me->rank];
    pthread_mutex_lock(&threads->lock);
    while (threads->gate == CLOSED) pthread_cond_wait(&threads->opened, &threads->lock);
    const bool cancelled = threads->gate == CANCELLED;
    pthread_mutex_unlock(&threads->lock);
    if (cancelled) return NULL;
    shmt_settle_name("t", me->rank);
    end->status = team->spec.body(team->spec.arg, me->rank, team, &end->error);
    store_release(&end->returned, 1); /* pairs with the acquire in ends.c */
    note_end(team, me->rank, end->status);
    return NULL;
}

static void open_gate(struct shmt_team_threads *threads, enum gate gate) {
    pthread_mutex_lock(&threads->lock);
    threads->gate = gate;
    pthread_cond_broadcast(&threads->opened);
    pthread_mutex_unlock(&threads->lock);
}

/* Signals are for the application's own threads; but those of faults cannot be deferred, and profilers want to see workers. */
static void mask_for_workers(sigset_t *before_out) {
    static const int KEPT[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
    sigset_t mask;
    sigfillset(&mask);
    for (size_t i = 0; i < sizeof KEPT / sizeof *KEPT; i++) sigdelset(&mask, KEPT[i]);
    pthread_sigmask(SIG_SETMASK, &mask, before_out);
}

/* Creates the threads, which wait at the gate. Returns how many there are; *code_out says why there are not more. */
static uint32_t create_threads(struct shmt_team *team, int *code_out) {
    pthread_attr_t attributes;
    sigset_t before;
    uint32_t n = 0;
    int code = pthread_attr_init(&attributes);
    if (code == 0) {
        code = pthread_attr_setstacksize(&attributes, SHMT_STACK_BYTES);
        mask_for_workers(&before); /* threads inherit it */
        for (; n < team->spec.n && code == 0; n += code == 0) {
            struct worker *worker = &team->threads->worker[n];
            *worker = (struct worker){.team = team, .rank = n};
            code = pthread_create(&worker->thread, &attributes, run, worker);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    *code_out = code;
    return n;
}

static void join(struct shmt_team *team, uint32_t n) {
    for (uint32_t rank = 0; rank < n; rank++) pthread_join(team->threads->worker[rank].thread, NULL);
    pthread_cond_destroy(&team->threads->opened);
    pthread_mutex_destroy(&team->threads->lock);
    free(team->threads);
    team->threads = NULL;
}

static int start(struct shmt_team *team, struct shmt_error *e) {
    const uint32_t n = team->spec.n;
    team->threads = calloc(1, sizeof *team->threads + n * sizeof team->threads->worker[0]);
    if (!team->threads) return shmt_no_memory(e, "to start %u threads for %s", n, team->what);
    pthread_mutex_init(&team->threads->lock, NULL);
    pthread_cond_init(&team->threads->opened, NULL);
    team->threads->n_running = n;
    int code = 0;
    const uint32_t made = create_threads(team, &code);
    open_gate(team->threads, made == n ? OPEN : CANCELLED);
    if (made == n) return 0;
    join(team, made);
    return shmt_fail(
        e, SHMTRAIN_E_SYSTEM,
        "cannot start thread %u of %u for %s: %s; ask for fewer, or raise the limit (ulimit -u, ulimit -v, or pids.max of the "
        "container)",
        made, n, team->what, strerror(code));
}

static void kill_all(struct shmt_team *team) {
    pthread_mutex_lock(&team->threads->lock);
    const bool running = team->threads->n_running > 0;
    if (running) abort_team(team, SHMT_TEAM_KILLED);
    pthread_mutex_unlock(&team->threads->lock);
    if (running && team->spec.on_abort) team->spec.on_abort(team->spec.arg);
}

static int collect(struct shmt_team *team) {
    join(team, team->spec.n);
    return 0;
}

const struct shmt_team_kind SHMT_TEAM_THREADS = {
    .name = "threads", .shares_process = true, .start = start, .kill = kill_all, .collect = collect};
