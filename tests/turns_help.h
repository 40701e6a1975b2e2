/* A host for tests (sync/host.h): threads take turns, one at a time. Whenever the one that runs asks the host for anything, a number
 * drawn from a seed says who runs next; time is a number, which moves when somebody looks at it, or by itself to the next sleeper's
 * hour when all sleep. So a seed says all that happens, and an hour takes no time. While members run, whatever asks the machine past
 * the host is counted.
 *
 * For one .c file per program, to be linked with $(TURNS_WRAPS). */
#pragma once

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "base/random.h"
#include "sync/host.h"

#define LOOK_NS 100 /* what a look at the clock takes */

enum { MOST_MEMBERS = 16, NO_MEMBER = UINT32_MAX };

static struct {
    pthread_mutex_t lock; /* for all below */
    struct member {
        pthread_cond_t turn;
        enum { ABSENT, READY, ASLEEP } state;
        const _Atomic uint32_t *word; /* that it sleeps on; NULL: for a time */
        uint64_t until_ns;
    } member[MOST_MEMBERS];
    uint32_t n_absent; /* still to come */
    uint32_t running;
    uint64_t now_ns, seed, n_turns;
    uint64_t history;           /* of turns and times, in one number */
    uint64_t n_overslept;       /* waits on a word that nobody woke */
    _Atomic uint64_t n_past_it; /* calls of the machine while members ran */
    _Atomic uint32_t guarded;
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER, .running = NO_MEMBER};

static _Thread_local uint32_t this_member = NO_MEMBER;

/* ---- whose turn it is; all with the lock ---- */

/* When nobody can run, it becomes as late as the first sleeper wants it. */
static void wake_the_first(void) {
    uint64_t first_ns = UINT64_MAX;
    for (uint32_t i = 0; i < MOST_MEMBERS; i++)
        if (turns.member[i].state == ASLEEP && turns.member[i].until_ns < first_ns) first_ns = turns.member[i].until_ns;
    if (turns.now_ns < first_ns && first_ns != UINT64_MAX) turns.now_ns = first_ns;
}

static uint32_t count_ready(void) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < MOST_MEMBERS; i++) {
        struct member *m = &turns.member[i];
        if (m->state == ASLEEP && m->until_ns <= turns.now_ns) {
            turns.n_overslept += m->word != NULL;
            m->state = READY;
        }
        n += m->state == READY;
    }
    return n;
}

static void choose(void) {
    uint32_t n = count_ready();
    if (n == 0) {
        wake_the_first();
        n = count_ready();
    }
    turns.running = NO_MEMBER;
    if (n > 0) {
        uint64_t which = shmt_below(shmt_hash64(turns.seed, turns.n_turns++, 0, 0), n);
        for (uint32_t i = 0; turns.running == NO_MEMBER; i++)
            if (turns.member[i].state == READY && which-- == 0) turns.running = i;
    }
    turns.history = shmt_hash64(turns.history, turns.running, turns.now_ns, 0);
    if (turns.running != NO_MEMBER) pthread_cond_signal(&turns.member[turns.running].turn);
}

static void take_turns(void) {
    if (this_member == NO_MEMBER) return; /* the test's own thread, while nobody runs */
    choose();
    while (turns.running != this_member) pthread_cond_wait(&turns.member[this_member].turn, &turns.lock);
}

static void fall_asleep(const _Atomic uint32_t *word, uint64_t until_ns) {
    struct member *me = &turns.member[this_member];
    me->state = ASLEEP;
    me->word = word;
    me->until_ns = until_ns;
    take_turns();
}

/* ---- the host ---- */

static uint64_t turns_now_ns(void) {
    pthread_mutex_lock(&turns.lock);
    turns.now_ns += LOOK_NS;
    take_turns();
    const uint64_t now_ns = turns.now_ns;
    pthread_mutex_unlock(&turns.lock);
    return now_ns;
}

static void turns_sleep_until(uint64_t at_ns) {
    pthread_mutex_lock(&turns.lock);
    fall_asleep(NULL, at_ns);
    pthread_mutex_unlock(&turns.lock);
}

static void turns_yield(void) {
    pthread_mutex_lock(&turns.lock);
    take_turns();
    pthread_mutex_unlock(&turns.lock);
}

static void turns_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t at_most_ns) {
    pthread_mutex_lock(&turns.lock);
    if (load_relaxed(word) == expected) fall_asleep(word, turns.now_ns + at_most_ns);
    pthread_mutex_unlock(&turns.lock);
}

static void turns_wake(_Atomic uint32_t *word) {
    pthread_mutex_lock(&turns.lock);
    for (uint32_t i = 0; i < MOST_MEMBERS; i++)
        if (turns.member[i].state == ASLEEP && turns.member[i].word == word) turns.member[i].state = READY;
    take_turns();
    pthread_mutex_unlock(&turns.lock);
}

static const struct shmt_host_ops TURNS = {
    .now_ns = turns_now_ns, .sleep_until = turns_sleep_until, .yield = turns_yield, .wait = turns_wait, .wake = turns_wake};

/* ---- members ---- */

/* For n members, before any of them begins. */
static inline void turns_use(uint32_t n, uint64_t seed) {
    assert_true(n <= MOST_MEMBERS);
    turns.n_absent = n;
    turns.now_ns = 1000000000;
    turns.seed = seed;
    turns.n_turns = turns.history = turns.n_overslept = 0;
    atomic_store(&turns.n_past_it, 0);
    shmt_host_use(&TURNS);
}

/* Calls back when all are there, and it is this one's turn. */
static inline void turns_begin(uint32_t i) {
    pthread_mutex_lock(&turns.lock);
    this_member = i;
    pthread_cond_init(&turns.member[i].turn, NULL);
    turns.member[i].state = READY;
    if (--turns.n_absent == 0) {
        atomic_store(&turns.guarded, 1);
        choose();
    }
    while (turns.running != i) pthread_cond_wait(&turns.member[i].turn, &turns.lock);
    pthread_mutex_unlock(&turns.lock);
}

static inline void turns_end(void) {
    pthread_mutex_lock(&turns.lock);
    turns.member[this_member].state = ABSENT;
    pthread_cond_destroy(&turns.member[this_member].turn);
    this_member = NO_MEMBER;
    choose();
    if (turns.running == NO_MEMBER) atomic_store(&turns.guarded, 0);
    pthread_mutex_unlock(&turns.lock);
}

/* After the last one's end: the machine answers again. */
static inline void turns_over(void) {
    shmt_host_use(&SHMT_HOST_MACHINE);
    assert_int_equal(turns.running, NO_MEMBER);
    assert_int_equal(atomic_load(&turns.n_past_it), 0);
}

/* ---- who asks the machine past the host ---- */

static void notice(void) {
    if (this_member != NO_MEMBER && atomic_load(&turns.guarded)) atomic_fetch_add(&turns.n_past_it, 1);
}

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out) {
    notice();
    return __real_clock_gettime(clock, out);
}

int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wish, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wish, struct timespec *left);
int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *wish, struct timespec *left) {
    notice();
    return __real_clock_nanosleep(clock, flags, wish, left);
}

int __real_nanosleep(const struct timespec *wish, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wish, struct timespec *left);
int __wrap_nanosleep(const struct timespec *wish, struct timespec *left) {
    notice();
    return __real_nanosleep(wish, left);
}

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void) {
    notice();
    return __real_sched_yield();
}

/* Takes six, however many were passed, as the C library does. */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
__attribute__((no_sanitize("address"))) long __wrap_syscall(long number, ...) {
    va_list args;
    long arg[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++) arg[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_futex) notice();
    return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}
