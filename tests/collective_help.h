/* For tests of collectives: members as threads or processes over memory of their own, and what reductions come to by the order that
 * <shmtrain/collective.h> states, computed one after the other. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/random.h"
#include "coll/member.h"

enum { MOST = 9 };

struct hall;
typedef void scene(struct hall *hall, struct shmt_coll *c);

struct hall {
    uint32_t n;
    uint64_t seed;
    scene *play;
    struct shmt_coll_room room;
    unsigned char *words, *exchange;
    uint64_t stride;
    _Atomic uint32_t abort, wrong;
    char why[256]; /* of the first that finds something wrong */
};

struct actor {
    struct hall *hall;
    uint32_t rank;
};

static inline void complain(struct hall *hall, const char *format, ...) {
    va_list args;
    if (atomic_exchange(&hall->wrong, 1) == 0) {
        va_start(args, format);
        vsnprintf(hall->why, sizeof hall->why, format, args);
        va_end(args);
    }
    store_relaxed(&hall->abort, 1);
}

static inline void *enter(void *arg) {
    const struct actor *a = arg;
    struct hall *hall = a->hall;
    struct shmt_error e = {0};
    struct shmt_coll *c;
    const struct shmt_coll_place place = {.room = hall->room,
                                          .words = hall->words,
                                          .exchange = hall->exchange,
                                          .exchange_stride = hall->stride,
                                          .n = hall->n,
                                          .self = a->rank,
                                          .abort = &hall->abort,
                                          .spin_ns = hall->n <= 2 ? 20000 : 0};
    if (shmt_coll_open(&place, &e, &c) < 0) {
        complain(hall, "%s", e.text);
        return NULL;
    }
    hall->play(hall, c);
    if (e.status < 0 && e.status != SHMTRAIN_E_STOPPED) complain(hall, "worker %u: %s", a->rank, e.text);
    shmt_coll_close(c);
    return NULL;
}

static inline struct hall *build(uint32_t n, uint64_t seed, uint32_t half, uint64_t lend, scene *play) {
    struct hall *hall = mmap(NULL, sizeof *hall, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(hall != MAP_FAILED);
    hall->n = n;
    hall->seed = seed;
    hall->play = play;
    hall->room = (struct shmt_coll_room){.half_bytes = half, .lend_bytes = lend};
    hall->stride = shmt_coll_exchange_bytes(&hall->room);
    hall->words = mmap(NULL, shmt_coll_words_bytes(&hall->room, n), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    hall->exchange = mmap(NULL, n * hall->stride, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(hall->words != MAP_FAILED && hall->exchange != MAP_FAILED);
    shmt_coll_begin(hall->words, n);
    return hall;
}

static inline void tear_down(struct hall *hall) {
    munmap(hall->exchange, hall->n * hall->stride);
    munmap(hall->words, shmt_coll_words_bytes(&hall->room, hall->n));
    munmap(hall, sizeof *hall);
}

/* All members play as threads, or as processes; the test fails with the first complaint. */
static inline void perform(struct hall *hall, bool processes) {
    struct actor actor[MOST];
    pthread_t thread[MOST];
    pid_t pid[MOST];
    for (uint32_t i = 0; i < hall->n; i++) {
        actor[i] = (struct actor){hall, i};
        if (!processes) assert_int_equal(pthread_create(&thread[i], NULL, enter, &actor[i]), 0);
        if (processes && (pid[i] = fork()) == 0) {
            enter(&actor[i]);
            _exit(0);
        }
    }
    for (uint32_t i = 0; i < hall->n; i++) {
        if (!processes)
            pthread_join(thread[i], NULL);
        else
            assert_int_equal(waitpid(pid[i], NULL, 0), pid[i]);
    }
    if (hall->wrong) fail_msg("seed %llu, %u members: %s", (unsigned long long)hall->seed, hall->n, hall->why);
}

/* ---- numbers ---- */

union number {
    float f;
    double d;
    int32_t i;
    int64_t l;
};

/* Element i of what member `who` gives to operation `op`: such that the order of a sum shows. */
static inline union number input(uint32_t type, uint64_t seed, uint64_t op, uint32_t who, uint64_t i) {
    const uint64_t bits = shmt_hash64(seed, op, who, i);
    const double x = (shmt_unit(bits) - 0.5) * (bits % 7 ? 3 : 1e6);
    union number out = {.l = 0};
    if (type == SHMTRAIN_FLOAT) out.f = (float)x;
    if (type == SHMTRAIN_DOUBLE) out.d = x;
    if (type == SHMTRAIN_INT32) out.i = (int32_t)bits;
    if (type == SHMTRAIN_INT64) out.l = (int64_t)bits;
    return out;
}

/* Neither commutative nor associative, so that every other order shows. `arg`: the type. */
static inline void own(void *arg, void *into, const void *from, uint64_t n) {
    const uint32_t type = *(const uint32_t *)arg;
    for (uint64_t k = 0; k < n; k++) {
        if (type == SHMTRAIN_FLOAT) ((float *)into)[k] = 0.5f * ((float *)into)[k] - ((const float *)from)[k];
        if (type == SHMTRAIN_DOUBLE) ((double *)into)[k] = 0.5 * ((double *)into)[k] - ((const double *)from)[k];
        if (type == SHMTRAIN_INT32) ((uint32_t *)into)[k] = 31 * ((uint32_t *)into)[k] - ((const uint32_t *)from)[k];
        if (type == SHMTRAIN_INT64) ((uint64_t *)into)[k] = 31 * ((uint64_t *)into)[k] - ((const uint64_t *)from)[k];
    }
}

#define BY(m, U)                                  \
    case SHMTRAIN_SUM:                            \
        a.m = (__typeof__(a.m))((U)a.m + (U)b.m); \
        break;                                    \
    case SHMTRAIN_PRODUCT:                        \
        a.m = (__typeof__(a.m))((U)a.m * (U)b.m); \
        break;                                    \
    case SHMTRAIN_MIN:                            \
        a.m = b.m < a.m ? b.m : a.m;              \
        break;                                    \
    default:                                      \
        a.m = b.m > a.m ? b.m : a.m

static inline union number combine(uint32_t type, uint32_t op, union number a, union number b) {
    if (op == SHMTRAIN_OWN) {
        own(&type, &a, &b, 1);
        return a;
    }
    if (type == SHMTRAIN_FLOAT) switch (op) {
            BY(f, float);
        }
    if (type == SHMTRAIN_DOUBLE) switch (op) {
            BY(d, double);
        }
    if (type == SHMTRAIN_INT32) switch (op) {
            BY(i, uint32_t);
        }
    if (type == SHMTRAIN_INT64) switch (op) {
            BY(l, uint64_t);
        }
    return a;
}

/* x[0 .. m) in the order of the algorithm; `from`: the member that the circle, or the tree, begins with. */
static inline union number reduced(uint32_t type, uint32_t op, uint32_t algorithm, uint32_t m, uint32_t from,
                                   const union number *x) {
    union number v[MOST];
    for (uint32_t i = 0; i < m; i++) v[i] = x[(from + i) % m];
    if (algorithm == SHMTRAIN_HALVING) {
        for (uint32_t d = m / 2; d > 0; d /= 2)
            for (uint32_t i = 0; i < d; i++) v[i] = combine(type, op, v[i], v[i + d]);
    } else if (algorithm == SHMTRAIN_BINOMIAL || algorithm == SHMTRAIN_DOUBLING) {
        for (uint32_t d = 1; d < m; d *= 2)
            for (uint32_t i = 0; i + d < m; i += 2 * d) v[i] = combine(type, op, v[i], v[i + d]);
    } else if (algorithm == SHMTRAIN_PAIRWISE) {
        for (uint32_t i = 1; i < m; i++) v[0] = combine(type, op, v[0], x[(from + m - i) % m]);
    } else {
        for (uint32_t i = 1; i < m; i++) v[0] = combine(type, op, v[0], v[i]);
    }
    return v[0];
}
