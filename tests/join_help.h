/* For tests of stores with a name: makers and guests in processes of their own. What all of them count together stands in the
 * tally, in memory that they share with the test. */
#pragma once

#include "api_help.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#define EXAMPLES 640
#define BATCH    64
#define FOREVER  "1000000"
#define NOTES    512 /* the first so many are kept */

static char NAME[64];

/* Shared by all processes of a test. */
struct tally {
    _Atomic uint64_t examples[64];     /* done, by rank */
    _Atomic pid_t pid[64];             /* by rank */
    _Atomic uint32_t times[EXAMPLES];  /* how often each example was dealt */
    _Atomic uint32_t fail_rank, holds; /* rank + 1 that fails next; how long an item takes, in microseconds */
    _Atomic uint32_t stuck_rank;       /* rank + 1 whose item takes until this is another */
    _Atomic uint32_t first_epoch;      /* that a guest has worked in, counted from 1 */
    _Atomic pid_t child;               /* that maker or guest has forked, without exec: it has what its parent has open */
    char said[512];                    /* by the maker, or by a guest that was refused or failed; at its end */
    uint64_t xxh64;
    uint32_t n_epochs;
    _Atomic uint32_t n_notes; /* of the maker; each is counted when it is whole */
    char note[NOTES][320];
};
static struct tally *tally;
static bool kills_stalled;       /* what stands still, soon: makers that are started from now on */
static const char *validates_on; /* of the maker; NULL: what comes with the data */

/* Around all tests of a program. */
static inline int share_tally(void **state) {
    (void)state;
    snprintf(NAME, sizeof NAME, "test_join-%d", (int)getpid());
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return tally != MAP_FAILED ? 0 : -1;
}

/* Around each test. */
static inline int begin(void **state) {
    (void)state;
    alarm(120);
    memset(tally, 0, sizeof *tally);
    kills_stalled = false;
    validates_on = NULL;
    return 0;
}

static inline int end(void **state) {
    char message[512];
    (void)state;
    (void)shmtrain_named_remove(NAME, 1, message, sizeof message);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    return 0;
}

static inline void nap(long us) {
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
}

/* Each batch (sync) adds 1 to row 0, exactly; each item counts its examples. */
static inline int work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    uint32_t order[EXAMPLES];
    int rc;
    (void)arg;
    tally->pid[shmtrain_rank(s)] = getpid();
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        nap((long)tally->holds);
        while (tally->stuck_rank == shmtrain_rank(s) + 1) nap(1000);
        if (tally->fail_rank == shmtrain_rank(s) + 1) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) atomic_fetch_add(&tally->times[order[i]], 1);
        atomic_fetch_add(&tally->examples[shmtrain_rank(s)], w.n);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_report(s, (double)w.n)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- the maker, in a process of its own ---- */

static struct shmtrain_store *the_store; /* the one of this process, for those who stop it */

static inline void stop(int signal) {
    (void)signal;
    shmtrain_store_stop(the_store);
}

/* On SIGUSR1, as an application may at any time. */
static inline void leave_a_child(int signal) {
    (void)signal;
    const pid_t pid = fork();
    if (pid != 0) {
        atomic_store(&tally->child, pid);
        return;
    }
    alarm(120);
    for (;;) pause();
}

static inline void keep_note(void *arg, const char *line) {
    (void)arg;
    const uint32_t n = tally->n_notes;
    if (n == NOTES) return;
    snprintf(tally->note[n], sizeof tally->note[n], "%s", line);
    tally->n_notes = n + 1;
}

/* Whether a line has both. On a slow machine others stand behind it, of workers that only seem to stand still. */
static inline bool is_noted(const char *who, const char *what) {
    for (uint32_t i = 0; i < tally->n_notes; i++)
        if (strstr(tally->note[i], who) && strstr(tally->note[i], what)) return true;
    return false;
}

static inline void wait_for_note(const char *who, const char *what) {
    for (int ms = 0; !is_noted(who, what); ms++) {
        const uint32_t n = tally->n_notes;
        if (ms > 60000)
            fail_msg("no note has \"%s\" and \"%s\"; the last of %u: %s", who, what, n, n > 0 ? tally->note[n - 1] : "");
        nap(1000);
    }
}

struct how {
    const char *mode, *spawn, *workers, *guests, *epochs, *data; /* data NULL: own worker function */
    uint32_t holds;
};

static inline struct shmtrain_store *make_store(const struct how *how) {
    struct shmtrain_store *store = make(how->spawn, how->workers, how->epochs, EXAMPLES);
    WELL(store, shmtrain_store_set(store, "mode", how->mode));
    WELL(store, shmtrain_store_set(store, "item", "16"));
    WELL(store, shmtrain_store_set(store, "guests", how->guests));
    WELL(store, shmtrain_store_set(store, "name", NAME));
    if (validates_on) WELL(store, shmtrain_store_set(store, "valid", validates_on));
    if (kills_stalled) WELL(store, shmtrain_store_set(store, "stall-timeout", "1s"));
    if (kills_stalled) WELL(store, shmtrain_store_set(store, "on-stall", "kill"));
    if (how->data && strstr(how->data, "dense")) WELL(store, shmtrain_store_set(store, "model", "softmax"));
    return store;
}

static inline void run_as_maker(const struct how *how) {
    the_store = make_store(how);
    shmtrain_store_listen(the_store,
                          &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .note = keep_note});
    signal(SIGTERM, stop);
    signal(SIGUSR1, leave_a_child);
    const int rc = how->data ? shmtrain_store_train(the_store, how->data) : shmtrain_store_run(the_store, work, NULL);
    const struct shmtrain_report *r = shmtrain_store_report(the_store);
    snprintf(tally->said, sizeof tally->said, "%s", shmtrain_store_message(the_store));
    tally->xxh64 = r->parameters_xxh64;
    tally->n_epochs = r->n_epochs;
    shmtrain_store_destroy(the_store);
    _exit(-rc);
}

/* Returns when its run goes on. */
static inline pid_t start_maker(const struct how *how) {
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    const pid_t pid = fork();
    tally->holds = how->holds;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no run behind */
        run_as_maker(how);
    }
    assert_int_equal(shmtrain_store_create(&store), 0);
    while (shmtrain_store_observe(store, NAME) < 0 || shmtrain_store_look(store, &now) == 1) {
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (r->mode[0] && r->n_epochs > 0) break;
        nap(2000);
    }
    shmtrain_store_destroy(store);
    return pid;
}

static inline int wait_for(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -1000 - WTERMSIG(status);
}

static inline int stop_maker(pid_t pid) {
    assert_int_equal(kill(pid, SIGTERM), 0);
    return wait_for(pid);
}

/* ---- guests ---- */

static inline struct shmtrain_store *make_guest(const char *spawn, const char *workers) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    return store;
}

static inline pid_t start_guest(const char *spawn, const char *workers) {
    const pid_t pid = fork();
    if (pid > 0) return pid;
    signal(SIGUSR1, leave_a_child);
    struct shmtrain_store *store = make_guest(spawn, workers);
    const int rc = shmtrain_store_join(store, NAME, work, NULL);
    if (rc < 0) snprintf(tally->said, sizeof tally->said, "%s", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    _exit(-rc);
}
