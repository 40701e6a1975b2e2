/* Batches over many hosts (src/link/exchange.h): each host has a store and workers of its own, and a link; all of them are fibers of one
 * thread, on a network that loses, repeats and reorders frames (src/carriers/loop.h). The parameters and losses must be those of one
 * host, bit by bit, on every host.
 *
 *   TEST_SEEDS=N   that many seeds; 300 unless said otherwise, or 20 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "conformance.h"
#include "deadline.h"
#include "hostile.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/random.h"
#include "carriers/loop.h"
#include "fibers/scheduler.h"
#include "link/exchange.h"
#include "workers/crew.h"

#define MOST_HOSTS   4
#define MOST_WORKERS 3
#define MOST_EPOCHS  3
#define MS           UINT64_C(1000000)
#define MOST_NS      (UINT64_C(10000000) * MS) /* with losses each of a thousand batches may take some seconds */

struct host {
    struct shmt_spec spec;
    struct shmt_store *store;
    struct shmt_lanes *lanes;
    struct shmt_error error[MOST_WORKERS + 1]; /* of workers, and of the link */
    int status[MOST_WORKERS + 1];
    double loss[MOST_EPOCHS]; /* as the chief has seen them */
    uint64_t examples[MOST_EPOCHS];
    uint32_t n_epochs;
};

static struct {
    uint64_t seed, draws;
    uint32_t n;
    struct shmt_loop *loop;
    struct host host[MOST_HOSTS];
    uint32_t stops; /* the host that asks for an end in the middle of the run; MOST_HOSTS: none */
    uint32_t dies;  /* the host whose link dies then; MOST_HOSTS: none */
} g;

static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "FAILED: %s; again: TEST_SEED=%llu\n", why, (unsigned long long)g.seed);
    _exit(1);
}

static void must(bool holds, const char *what) {
    if (!holds) give_up(what);
}

static uint64_t draw(uint64_t below) { return shmt_below(shmt_hash64(g.seed, ++g.draws, 8, 8), below); }

/* ---- a worker ---- */

static int note_epoch(struct shmtrain_session *s, void *arg, uint32_t epoch) {
    struct host *h = arg;
    struct shmt_tally tally;
    if (s->seat->rank != 0) return 0;
    const int rc = s->backend->seat->tally(s->seat, &tally);
    h->loss[epoch] = tally.loss;
    h->examples[epoch] = tally.examples;
    h->n_epochs = epoch + 1;
    return rc;
}

/* Gradients follow from the parameters, so that an order of additions that is another one changes what comes later. An example touches
 * two rows; in dense models all of them. */
static int train_piece(shmtrain_session *s, const struct shmtrain_work *w, uint64_t rows, uint32_t width) {
    double loss = 0;
    int rc = 0;
    for (uint64_t i = w->first; i < w->first + w->n && rc == 0; i++) {
        const uint64_t row = shmt_below(shmt_hash64(5, i, 0, 0), rows);
        float seen[8], grad[8];
        rc = shmtrain_pull(s, 0, row, 1, seen);
        for (uint32_t k = 0; k < width; k++) {
            grad[k] = (float)shmt_unit(shmt_hash64(6, i, k, 0)) - 0.5f + 0.3f * seen[k];
            loss += (double)grad[k] * (double)grad[k];
        }
        if (rc == 0) rc = shmtrain_push(s, 0, row, 1, grad);
        if (rc == 0) rc = shmtrain_push(s, 0, (row * 7 + 1) % rows, 1, grad);
    }
    shmtrain_report(s, loss);
    return rc;
}

static int work(struct host *h, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        rc = train_piece(s, &w, h->spec.table[0].rows, h->spec.table[0].width);
        if (rc == 0 && s->seat->rank == 0 && &g.host[g.stops] == h && w.step == 5)
            store_relaxed(shmt_backend_at(0)->store->stop_word(h->store), 1); /* relaxed: one thread */
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

static void run_worker(struct host *h, uint32_t rank) {
    shmtrain_session s;
    int rc = shmt_session_enter(&s, shmt_backend_at(0), h->store, &h->spec, rank, 0, &h->error[rank]);
    if (rc < 0) give_up(h->error[rank].text);
    s.epoch_end = note_epoch;
    s.epoch_end_arg = h;
    rc = work(h, &s);
    if (rc < 0) h->error[rank] = s.error;
    h->status[rank] = rc;
    shmt_session_leave(&s);
}

/* ---- a link ---- */

static void run_link(struct host *h) {
    struct shmt_error e = {0};
    const struct shmt_lanes_spec spec = {.carrier = shmt_loop_open(g.loop, h->spec.hosts.self),
                                         .self = h->spec.hosts.self,
                                         .n_hosts = g.n,
                                         .run = 1,
                                         .life = 100 + h->spec.hosts.self,
                                         .window_bytes = SHMT_HEAD_BYTES + SHMT_MOST_BODY,
                                         .beat_ns = SHMT_LANES_BEAT,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = SHMT_LANES_LOST};
    must(shmt_lanes_make(&spec, &h->lanes, &e) == 0, e.text);
    const struct shmt_exchange_place place = {
        .backend = shmt_backend_at(0), .store = h->store, .spec = &h->spec, .lanes = h->lanes, .start_ns = 60000 * MS};
    h->status[MOST_WORKERS] = shmt_exchange_run(&place, &h->error[MOST_WORKERS]);
    shmt_lanes_free(h->lanes);
    h->lanes = NULL;
}

static void run_fiber(void *arg, uint32_t i) {
    const uint32_t host = i / (MOST_WORKERS + 1), rank = i % (MOST_WORKERS + 1);
    struct host *h = &g.host[host];
    (void)arg;
    if (rank == MOST_WORKERS) {
        if (h->spec.hosts.n > 1) run_link(h);
        return;
    }
    if (rank < h->spec.n_seats) run_worker(h, rank);
}

/* ---- a run ---- */

static struct shmt_spec spec_for(uint64_t seed) {
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_ADAGRAD, SHMT_RULE_ADAM, SHMT_RULE_FTRL};
    const struct kase k = {.policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0, .quorum = SHMT_QUORUM_ALL}, .n_seats = 1};
    const uint64_t rows[] = {3, 40, 3000, 40000};
    const uint32_t batches[] = {1, 7, 32, 64}, chunks[] = {1, 2, 4, 8, 16};
    struct shmt_spec spec = spec_of(&k, 100 + draw(150), rows[draw(4)], 1 + (uint32_t)draw(3));
    (void)seed;
    spec.epochs = 1 + (uint32_t)draw(MOST_EPOCHS);
    spec.batch = batches[draw(4)];
    do spec.n_chunks = chunks[draw(5)];
    while (spec.n_chunks > spec.batch);
    spec.rule = (struct shmt_rule){.kind = RULES[draw(4)], .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-6f, .beta = 1};
    if (spec.rule.kind == SHMT_RULE_SGD || spec.rule.kind == SHMT_RULE_ADAGRAD || spec.rule.kind == SHMT_RULE_FTRL)
        spec.rule.momentum = spec.rule.beta2 = 0;
    if (draw(3) == 0) spec.rule.clip_norm = 0.5f;
    if (draw(3) == 0) spec.rule.l2 = 0.01f;
    spec.cpu = SHMT_CPU_PORTABLE;
    return spec;
}

static void make_hosts(const struct shmt_spec *spec, uint32_t n) {
    struct shmt_error e = {0};
    g.n = n;
    memset(g.host, 0, sizeof g.host);
    for (uint32_t i = 0; i < n; i++) {
        struct host *h = &g.host[i];
        h->spec = *spec;
        h->spec.n_seats = h->spec.n_workers = n == 1 ? 1 : 1 + (uint32_t)draw(MOST_WORKERS);
        h->spec.hosts = (struct shmt_hosts_plan){n, i};
        must(shmt_backend_at(0)->create(&h->spec, NULL, &h->store, &e) == 0, e.text);
    }
}

static void run(const struct shmt_loop_spec *network) {
    struct shmt_error e = {0};
    struct shmt_fibers *fibers;
    const struct shmt_fibers_spec spec = {.n = g.n * (MOST_WORKERS + 1),
                                          .seed = g.seed,
                                          .stack_bytes = SHMT_FIBER_STACK,
                                          .sim = {.look_ns = 20},
                                          .body = run_fiber};
    must(shmt_loop_make(network, &g.loop, &e) == 0 && shmt_fibers_make(&spec, &fibers, &e) == 0, e.text);
    while (!shmt_fibers_run(fibers, 1000)) must(shmt_fibers_now_ns(fibers) < MOST_NS, "the run does not end");
    shmt_fibers_free(fibers);
    shmt_loop_free(g.loop);
}

static void destroy_hosts(void) {
    for (uint32_t i = 0; i < g.n; i++) shmt_backend_at(0)->store->destroy(g.host[i].store);
}

static float *parameters_of(const struct host *h) {
    const uint64_t rows = h->spec.table[0].rows, width = h->spec.table[0].width;
    float *out = malloc(rows * width * sizeof *out);
    must(out && shmt_backend_at(0)->store->read(h->store, 0, 0, rows, out) == 0, "the parameters cannot be read");
    return out;
}

/* ---- what must hold ---- */

static struct shmt_loop_spec hostile_network(void) {
    return (struct shmt_loop_spec){.n_hosts = g.n,
                                   .seed = g.seed,
                                   .delay_ns = 1000 + draw(MS),
                                   .jitter_ns = draw(2) ? 0 : draw(2 * MS),
                                   .loss = draw(2) ? 0 : (double)draw(10) / 100,
                                   .duplication = draw(2) ? 0 : (double)draw(10) / 100,
                                   .bytes_per_second = draw(2) ? 0 : 10000000 + draw(1000000000),
                                   .port_bytes = UINT64_C(8) << 20};
}

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void compare(const struct host *h, const struct host *one, const float *expected) {
    float *found = parameters_of(h);
    for (uint32_t k = 0; k <= MOST_WORKERS; k++)
        if (h->status[k] < 0) give_up(h->error[k].text);
    must(h->n_epochs == one->n_epochs, "a host has another number of epochs");
    for (uint32_t epoch = 0; epoch < h->n_epochs; epoch++) {
        must(h->examples[epoch] == one->examples[epoch], "a host counts other examples");
        must(bits_of(h->loss[epoch]) == bits_of(one->loss[epoch]), "a host has another loss");
    }
    must(memcmp(found, expected, h->spec.table[0].rows * h->spec.table[0].width * sizeof *found) == 0,
         "a host has other parameters than one host alone");
    free(found);
}

static void run_seed(uint64_t seed) {
    g.seed = seed;
    g.draws = 0;
    g.stops = g.dies = MOST_HOSTS;
    const struct shmt_spec spec = spec_for(seed);
    const struct shmt_loop_spec quiet = {.n_hosts = 1, .port_bytes = 1};
    make_hosts(&spec, 1);
    run(&quiet);
    const struct host one = g.host[0];
    float *expected = parameters_of(&one);
    destroy_hosts();
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &one, expected);
    destroy_hosts();
    free(expected);
}

static void parameters_and_losses_are_those_of_one_host(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 20 : 300), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(parameters_and_losses_are_those_of_one_host, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
