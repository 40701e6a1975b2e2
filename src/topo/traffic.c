/* What it takes to move memory: see traffic.h. */
#include "topo/traffic.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/line.h"
#include "base/random.h"
#include "base/thread.h"
#include "topo/topo.h"

#define TRIPS     1000 /* of the ball, from one to the other and back */
#define MATCHES   21
#define WANTED    8   /* lines that two cores read and change again and again, as the frequent features of examples */
#define LINES     512 /* that two share */
#define SET       64  /* that are fetched at a time */
#define THEIRS    32  /* of a set: that the other one has written last, on average */
#define SETS      500
#define MOST_NS   200000000            /* of each measurement, however busy the processors are */
#define MOST_READ (UINT64_C(48) << 20) /* bytes that each thread reads: more than most caches */
#define PASSES    3

struct line {
    _Alignas(SHMT_LINE) _Atomic uint32_t x;
};

/* What a thread works with. */
struct mover {
    struct traffic *all;
    struct shmt_place place;
    uint32_t rank;
    pthread_t thread;
    struct line *line; /* (LINES) its own, or those that all share */
    float *block;      /* (read_bytes / 4) */
    double ns;         /* of a trip, or of a set of lines: the median of matches */
    double bytes_ns;   /* bytes a nanosecond, at best */
    float sum;         /* so that nothing is left out */
};

struct traffic {
    _Alignas(SHMT_LINE) _Atomic uint32_t ball; /* hits so far */
    _Alignas(SHMT_LINE) _Atomic uint32_t here; /* so many have begun */
    _Atomic uint32_t off;                      /* 1: one of them could not be started */
    uint32_t n;
    uint64_t read_bytes, end_ns; /* of each block; of the measurement, at the latest */
    void (*change)(const struct mover *, uint32_t set);
    const struct shmt_topo *topo;
};

static void bind_to(const struct mover *m) {
    struct shmt_error e = {0};
    (void)shmt_topo_bind_group(m->all->topo, &m->place, 1, &e); /* unbound it measures something, too */
}

/* Until all are there. relaxed, all: that is all there is to know. */
static bool meet(struct traffic *t) {
    (void)take_relaxed(&t->here, 1);
    while (load_relaxed(&t->here) < t->n && !load_relaxed(&t->off)) sched_yield();
    return load_relaxed(&t->off) == 0;
}

static bool is_late(const struct traffic *t) { return shmt_machine_ns() > t->end_ns; }

static int by_size(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* At the beginning and at the end one of them may be alone. */
static double median(double *ns, uint32_t n) {
    qsort(ns, n, sizeof *ns, by_size);
    return n > 0 ? ns[n / 2] : 0;
}

/* Two threads hit a ball in turns. relaxed: the ball is all there is to see. Where both have one processor, who looks gives it up. */
static void *play(void *arg) {
    struct mover *m = arg;
    struct traffic *t = m->all;
    bind_to(m);
    if (!meet(t)) return NULL;
    double ns[MATCHES];
    for (uint32_t match = 0, hit = 0; match < MATCHES; match++) {
        const uint64_t from = shmt_machine_ns();
        for (uint32_t i = 0; i < TRIPS; i++, hit += 2) {
            for (uint32_t looks = 1; load_relaxed(&t->ball) != hit + m->rank; looks++)
                if (looks % 4096 == 0) {
                    if (is_late(t)) return NULL;
                    sched_yield();
                }
            store_relaxed(&t->ball, hit + m->rank + 1);
        }
        ns[match] = (double)(shmt_machine_ns() - from) / TRIPS;
        m->ns = median(ns, match + 1);
    }
    return NULL;
}

static void change_set(const struct mover *m, uint32_t set) {
    struct line *line[SET];
    uint32_t sum = 0;
    for (uint32_t k = 0; k < SET; k++) {
        line[k] = &m->line[shmt_mix64((uint64_t)m->rank << 32 | (set * SET + k)) % LINES];
        sum += load_relaxed(&line[k]->x);
    }
    for (uint32_t k = 0; k < SET; k++) store_relaxed(&line[k]->x, sum);
}

/* Changes wait for one another, as those of atomic pushes. */
static void change_wanted(const struct mover *m, uint32_t set) {
    uint32_t sum = set;
    for (uint32_t k = 0; k < WANTED; k++) sum += load_relaxed(&m->line[k].x);
    for (uint32_t k = 0; k < WANTED; k++) (void)take_relaxed(&m->line[k].x, sum);
}

/* Reads the lines of a set, then changes them, at once with others. relaxed: nobody needs what is there. */
static void *change_sets(void *arg) {
    struct mover *m = arg;
    bind_to(m);
    if (!meet(m->all)) return NULL;
    double ns[MATCHES];
    uint32_t n = 0;
    for (; n < MATCHES && !is_late(m->all); n++) {
        const uint64_t from = shmt_machine_ns();
        for (uint32_t set = 0; set < SETS; set++) m->all->change(m, set);
        ns[n] = (double)(shmt_machine_ns() - from) / SETS;
    }
    m->ns = median(ns, n);
    return NULL;
}

static float sum_of(const float *x, uint64_t n) {
    float part[16] = {0}, sum = 0;
    for (uint64_t i = 0; i + 16 <= n; i += 16)
        for (uint64_t k = 0; k < 16; k++) part[k] += x[i + k];
    for (uint64_t k = 0; k < 16; k++) sum += part[k];
    return sum;
}

/* All read at once, each its own. */
static void *read_block(void *arg) {
    struct mover *m = arg;
    struct traffic *t = m->all;
    bind_to(m);
    const uint64_t bytes = t->read_bytes;
    memset(m->block, 0, bytes); /* by the thread that reads it: then it is near */
    if (!meet(t)) return NULL;
    for (int pass = 0; pass < PASSES && (pass == 0 || !is_late(t)); pass++) {
        const uint64_t from = shmt_machine_ns();
        m->sum += sum_of(m->block, bytes / sizeof *m->block);
        m->bytes_ns = fmax(m->bytes_ns, (double)bytes / (double)(shmt_machine_ns() - from + 1));
    }
    return NULL;
}

static int run(struct mover *mover, uint32_t n, void *(*body)(void *), struct shmt_error *e) {
    uint32_t begun = 0;
    int rc = 0;
    mover->all->n = n;
    mover->all->end_ns = shmt_machine_ns() + MOST_NS;
    store_relaxed(&mover->all->here, 0); /* relaxed, here and below: nobody has begun */
    store_relaxed(&mover->all->ball, 0);
    for (; begun < n && rc == 0; begun += rc == 0) rc = shmt_thread_start(&mover[begun].thread, body, &mover[begun]);
    if (rc != 0) store_relaxed(&mover->all->off, 1); /* relaxed: as in `meet` */
    for (uint32_t i = 0; i < begun; i++) pthread_join(mover[i].thread, NULL);
    errno = rc;
    return rc == 0 ? 0 : shmt_fail_errno(e, "cannot start a thread to measure memory");
}

/* Nanoseconds that a set takes two at a time, besides what it takes where each has lines of its own; below 0: none ended in time. */
static int time_sets(struct mover *mover, struct line *shared, struct line *own, double *out, struct shmt_error *e) {
    mover[0].line = shared;
    mover[1].line = own;
    int rc = run(mover, 2, change_sets, e);
    const double apart = (mover[0].ns + mover[1].ns) / 2;
    mover[1].line = shared;
    if (rc == 0) rc = run(mover, 2, change_sets, e);
    const double together = (mover[0].ns + mover[1].ns) / 2;
    *out = apart > 0 && together > 0 ? fmax(0, together - apart) : -1;
    return rc;
}

/* A trip is there and back: on each way the line is fetched, and then taken for writing. */
static int time_way(struct mover *mover, double *out, struct shmt_error *e) {
    const int rc = run(mover, 2, play, e);
    *out = rc == 0 ? mover[0].ns / 4 : 0;
    return rc;
}

/* Where two want lines all the time, a line takes longer than on a way of its own: both ask for it again before they are done with it. The
 * lines of a set are fetched together, as one, and taken one after the other. */
static int measure_line(struct mover *mover, struct line *shared, struct line *own, double way_ns, struct shmt_traffic *out,
                        struct shmt_error *e) {
    double set_ns;
    mover->all->change = change_wanted;
    const int rc = time_sets(mover, shared, own, &set_ns, e);
    if (rc == 0) out->line_ns = fmax(way_ns, set_ns / (1 + WANTED)); /* either may have had no time; 0: both */
    return rc;
}

/* What is left of a set besides the first line that is fetched, and the first that is taken: of half of the lines, which the other one has
 * written last. */
static int measure_next(struct mover *mover, struct line *shared, struct line *own, double way_ns, struct shmt_traffic *out,
                        struct shmt_error *e) {
    double set_ns;
    mover->all->change = change_set;
    const int rc = time_sets(mover, shared, own, &set_ns, e);
    out->next_ns = out->line_ns; /* as the first, where no set ended in time */
    if (rc == 0 && set_ns >= 0) out->next_ns = fmin(fmax(0, (set_ns - 2 * way_ns) / (2.0 * (THEIRS - 1))), out->line_ns);
    return rc;
}

static int measure_reading(struct mover *mover, uint32_t n, struct shmt_traffic *out, struct shmt_error *e) {
    int rc = 0;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        mover[i].block = malloc(mover->all->read_bytes);
        if (!mover[i].block) rc = shmt_no_memory(e, "to measure memory");
    }
    if (rc == 0) rc = run(mover, n, read_block, e);
    for (uint32_t i = 0; i < n; i++) {
        if (rc == 0) out->bandwidth += mover[i].bytes_ns;
        free(mover[i].block);
    }
    return rc;
}

int shmt_traffic_measure(const struct shmt_topo *topo, struct shmt_traffic *out, struct shmt_error *e) {
    const uint32_t cores = shmt_topo_cores(topo), n = cores < SHMT_TRAFFIC_CORES ? cores : SHMT_TRAFFIC_CORES;
    struct traffic all = {.topo = topo, .read_bytes = MOST_READ < SHMT_TRAFFIC_BYTES / n ? MOST_READ : SHMT_TRAFFIC_BYTES / n};
    struct shmt_place place[SHMT_TRAFFIC_CORES];
    struct mover *mover = calloc(n, sizeof *mover);
    struct line *line = aligned_alloc(SHMT_LINE, 2 * LINES * sizeof *line);
    double way_ns = 0;
    int rc = 0;
    *out = (struct shmt_traffic){0};
    if (!mover || !line) rc = shmt_no_memory(e, "to measure memory");
    if (rc == 0) {
        memset(line, 0, 2 * LINES * sizeof *line);
        shmt_topo_plan(topo, n, place);
        for (uint32_t i = 0; i < n; i++) mover[i] = (struct mover){.all = &all, .place = place[i], .rank = i};
    }
    if (rc == 0 && n > 1) rc = time_way(mover, &way_ns, e);
    if (rc == 0 && n > 1) rc = measure_line(mover, line, line + LINES, way_ns, out, e);
    if (rc == 0 && n > 1) rc = measure_next(mover, line, line + LINES, way_ns, out, e);
    if (rc == 0) rc = measure_reading(mover, n, out, e);
    free(line);
    free(mover);
    return rc;
}
