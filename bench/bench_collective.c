/* bench_collective: collectives against loops that one writes by hand over shared buffers.
 *
 * usage: bench_collective [--quick] [--rounds N]
 *
 * Worker processes of a run go through barriers and all-reduces of floats, right behind one another: by hand, where they reduce slices of
 * shared arrays between two barriers of one flag for each worker; of buffers that are lent; of private ones. All take turns within a round,
 * in short matches; a round's figure is the median of its matches. With eight workers on two cores the barrier by hand yields the
 * processor. bench/peer_collectives.py holds the same sizes against Open MPI, MPICH and gloo. */
#include <shmtrain/shmtrain.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/line.h"
#include "base/wide_vectors.h"
#include "bench.h"

enum { MATCHES = 11, MOST_WORKERS = 8, BARRIER = 0, BY_HAND, LENT, PRIVATE, WAYS };

static const uint64_t SIZES[] = {8, 1024, 16384, 65536, 1 << 20, 16 << 20, 64 << 20};
enum { N_SIZES = sizeof SIZES / sizeof *SIZES };

struct flag {
    _Alignas(SHMT_LINE) _Atomic uint64_t come;
};

/* What one run measures; in shared memory. */
struct course {
    struct flag flag[MOST_WORKERS];
    uint64_t bytes, repeats;
    float *array[MOST_WORKERS]; /* shared, for the loops by hand */
    uint32_t n;
    double ns[WAYS + 1]; /* the barrier by hand stands behind the others */
};

/* ---- by hand ---- */

static void meet_by_hand(struct course *c, uint32_t me, uint64_t *come) {
    store_release(&c->flag[me].come, ++*come); /* pairs with the acquire below: what I have written is seen by who goes on */
    for (uint32_t i = 0; i < c->n; i++)
        while (load_acquire(&c->flag[i].come) < *come)
            if (c->n > 2) sched_yield();
}

/* Compiled for the same vectors as the library's loops. */
SHMT_FOR_WIDE_VECTORS static void add(float *restrict sum, const float *restrict x, uint64_t n) {
    uint64_t i = 0;
    for (; i + 32 <= n; i += 32)
        for (uint64_t k = 0; k < 32; k++) sum[i + k] += x[i + k];
    for (; i < n; i++) sum[i] += x[i];
}

static void reduce_by_hand(struct course *c, uint32_t me, uint64_t *come) {
    const uint64_t n = c->bytes / sizeof(float), from = n * me / c->n, to = n * (me + 1) / c->n;
    meet_by_hand(c, me, come);
    for (uint64_t at = from; at < to; at += 1024) {
        const uint64_t end = at + 1024 < to ? at + 1024 : to;
        float *const mine = c->array[me];
        float sum[1024];
        memcpy(sum, c->array[0] + at, (end - at) * sizeof *sum);
        for (uint32_t j = 1; j < c->n; j++) add(sum, c->array[j] + at, end - at);
        memcpy(mine + at, sum, (end - at) * sizeof *sum);
        for (uint32_t j = 0; j < c->n; j++)
            if (j != me) memcpy(c->array[j] + at, sum, (end - at) * sizeof *sum);
    }
    meet_by_hand(c, me, come);
}

/* ---- a run ---- */

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct runner {
    struct course *course;
    shmtrain_session *s;
    uint64_t come;
    float *buffer[WAYS]; /* of LENT and PRIVATE */
};

static int go(struct runner *r, int way) {
    struct course *c = r->course;
    if (way == WAYS) meet_by_hand(c, shmtrain_rank(r->s), &r->come);
    if (way == BY_HAND) reduce_by_hand(c, shmtrain_rank(r->s), &r->come);
    if (way == BARRIER) return shmtrain_barrier(r->s, NULL);
    if (way == LENT || way == PRIVATE)
        return shmtrain_all_reduce(r->s, NULL, r->buffer[way], r->buffer[way], c->bytes / sizeof(float));
    return 0;
}

static int race(struct runner *r) {
    struct course *c = r->course;
    double ns[WAYS + 1][MATCHES];
    int rc = 0;
    for (int match = 0; match < MATCHES; match++)
        for (int way = 0; way <= WAYS && rc == 0; way++) {
            rc = shmtrain_barrier(r->s, NULL);
            const uint64_t from = shmt_machine_ns();
            for (uint64_t i = 0; i < c->repeats && rc == 0; i++) rc = go(r, way);
            ns[way][match] = (double)(shmt_machine_ns() - from) / (double)c->repeats;
        }
    for (int way = 0; way <= WAYS && shmtrain_rank(r->s) == 0; way++) {
        qsort(ns[way], MATCHES, sizeof **ns, ascending);
        c->ns[way] = ns[way][MATCHES / 2];
    }
    return rc;
}

static int work(shmtrain_session *s, void *arg) {
    struct runner r = {.course = arg, .s = s};
    struct shmtrain_work w;
    void *lent;
    int rc = shmtrain_collective_lend(s, r.course->bytes, &lent);
    r.buffer[LENT] = lent;
    r.buffer[PRIVATE] = calloc(1, r.course->bytes);
    if (rc == 0 && !r.buffer[PRIVATE]) rc = SHMTRAIN_E_MEMORY;
    if (rc == 0) memset(r.buffer[PRIVATE], 0, r.course->bytes);
    if (rc == 0) rc = race(&r);
    free(r.buffer[PRIVATE]);
    while (rc >= 0 && (rc = shmtrain_next(s, &w)) == 1) rc = shmtrain_clock(s, NULL);
    return rc;
}

static void *map_shared(uint64_t bytes) {
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) bench_fail("no memory for %llu bytes", (unsigned long long)bytes);
    return at;
}

static void run(struct course *c) {
    struct shmtrain_store *store;
    const char workers[] = {(char)('0' + c->n), '\0'};
    if (shmtrain_store_create(&store) != 0 || shmtrain_store_set(store, "workers", workers) != 0 ||
        shmtrain_store_set(store, "mode", "hogwild") != 0 || shmtrain_store_set(store, "epochs", "1") != 0 ||
        shmtrain_store_examples(store, 64) != 0 || shmtrain_store_table(store, "t", 4, 1) != 0 ||
        shmtrain_store_lend(store, c->bytes) != 0 || shmtrain_store_run(store, work, c) != 0)
        bench_fail("%s", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
}

static uint64_t repeats_of(const struct course *c, bool quick) {
    const uint64_t most = c->n > 2 ? 200 : 2000, bytes = c->bytes * c->n;
    const uint64_t n = (64u << 20) / (bytes + 1) + 1;
    return quick ? 1 : n < most ? n : most;
}

static void round_of(void *arg, double *x) {
    struct course *c = arg;
    run(c);
    for (int way = BY_HAND; way < WAYS; way++) *x++ = c->ns[way] / 1e3;
    *x++ = c->ns[LENT] / c->ns[BY_HAND];
    *x++ = c->ns[BARRIER];
    *x++ = c->ns[WAYS];
    *x = c->ns[BARRIER] / c->ns[WAYS];
}

static void measure(uint32_t n, const struct bench_options *o) {
    for (int i = 0; i < N_SIZES; i++) {
        struct shmt_figure figure[] = {{.name = "all-reduce by hand, shared", .unit = "us"},
                                       {.name = "all-reduce, lent", .unit = "us"},
                                       {.name = "all-reduce, private", .unit = "us"},
                                       {.name = "all-reduce, lent / by hand", .unit = "x"},
                                       {.name = "barrier", .unit = "ns"},
                                       {.name = "barrier by hand", .unit = "ns"},
                                       {.name = "barrier / by hand", .unit = "x"}};
        struct course *c = map_shared(sizeof *c);
        if (o->quick && SIZES[i] > 65536) break;
        c->n = n;
        c->bytes = SIZES[i];
        c->repeats = repeats_of(c, o->quick);
        for (uint32_t k = 0; k < n; k++) {
            c->array[k] = map_shared(c->bytes);
            memset(c->array[k], 0, c->bytes);
        }
        bench_head("collectives: %u workers, %llu bytes", n, (unsigned long long)SIZES[i]);
        bench_rounds(o, figure, sizeof figure / sizeof *figure, round_of, c);
        bench_show(figure, i == 0 ? sizeof figure / sizeof *figure : 4);
        for (uint32_t k = 0; k < n; k++) munmap(c->array[k], c->bytes);
        munmap(c, sizeof *c);
    }
}

int main(int argc, char **argv) {
    const struct bench_options o = bench_options_read(argc, argv, 5);
    if (shmt_measure_cores() >= 2) measure(2, &o);
    measure(MOST_WORKERS, &o);
    bench_show_noise();
    return 0;
}
