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
    uint32_t rounds; /* that they agree in before they begin */
    struct shmt_loop *loop;
    struct host host[MOST_HOSTS];
    uint32_t stops; /* the host that asks for an end in the middle of the run; MOST_HOSTS: none */
    uint32_t cut;   /* the host whose cables are cut at cut_ns, for good; MOST_HOSTS: none */
    uint64_t cut_ns;
    uint32_t absent;   /* the host that does not come; MOST_HOSTS: none */
    uint32_t fails;    /* the host one of whose workers fails in the middle of the run; MOST_HOSTS: none */
    uint32_t slow;     /* the host one of whose batches takes longer than silence may; MOST_HOSTS: none */
    uint32_t restarts; /* the host whose link starts anew at cut_ns, while the others count on it; MOST_HOSTS: none */
    uint64_t began_ns, took_ns;
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
        if (rc == 0 && h->spec.hosts.self == g.stops && w.step == 5)
            store_relaxed(shmt_backend_at(0)->store->stop_word(h->store), 1); /* relaxed: one thread */
        if (rc == 0 && h->spec.hosts.self == g.slow && w.step == 3)
            shmt_host()->sleep_until(shmt_now_ns() + SHMT_LANES_LOST + 1000 * MS);
        if (rc == 0 && h->spec.hosts.self == g.fails && w.step == 5) rc = shmtrain_fail(s, SHMTRAIN_E_DATA, "no");
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

/* As a supervisor does. */
static void give_up_host(const struct host *h) {
    store_relaxed(shmt_backend_at(0)->store->abort_word(h->store), 1); /* relaxed: one thread */
    shmt_backend_at(0)->store->wake(h->store);
}

static void run_worker(struct host *h, uint32_t rank) {
    shmtrain_session s;
    int rc = shmt_session_enter(&s, shmt_backend_at(0), h->store, &h->spec, rank, 0, &h->error[rank]);
    if (rc < 0) give_up(h->error[rank].text);
    s.epoch_end = note_epoch;
    s.epoch_end_arg = h;
    rc = work(h, &s);
    if (rc < 0) h->error[rank] = s.error;
    must(rc == 0 || rc == SHMTRAIN_E_STOPPED || h->spec.hosts.self == g.fails, s.error.text);
    if (rc == SHMTRAIN_E_DATA) give_up_host(h);
    h->status[rank] = rc;
    shmt_session_leave(&s);
}

/* ---- a link ---- */

static struct shmt_lanes *make_lanes(uint32_t host, uint64_t life) {
    struct shmt_error e = {0};
    struct shmt_lanes *lanes;
    const struct shmt_lanes_spec spec = {.carrier = shmt_loop_open(g.loop, host),
                                         .self = host,
                                         .n_hosts = g.n,
                                         .run = 1,
                                         .life = life,
                                         .window_bytes = SHMT_HEAD_BYTES + SHMT_MOST_BODY,
                                         .beat_ns = SHMT_LANES_BEAT,
                                         .suspect_ns = SHMT_LANES_SUSPECT,
                                         .lost_ns = SHMT_LANES_LOST};
    must(shmt_lanes_make(&spec, &lanes, &e) == 0, e.text);
    return lanes;
}

/* In each round a host says its rank so many times, and a round more often. */
static uint32_t text_of(uint32_t host, uint32_t round, unsigned char out[SHMT_MOST_AGREED]) {
    const uint32_t n = (host * 20000 + round * 7) % SHMT_MOST_AGREED;
    memset(out, (int)(host + round), n);
    return n;
}

static int agree(struct host *h, struct shmt_agreement *agreement, struct shmt_error *e) {
    unsigned char text[SHMT_MOST_AGREED];
    int rc = 0;
    for (uint32_t round = 1; round <= g.rounds && rc == 0; round++) {
        rc = shmt_agreement_gather(agreement, text, text_of(h->spec.hosts.self, round, text), 60000 * MS, e);
        for (uint32_t host = 0; host < g.n && rc == 0; host++) {
            uint32_t n;
            const unsigned char *said = shmt_agreement_text(agreement, host, &n);
            must(n == text_of(host, round, text) && memcmp(said, text, n) == 0, "a host has heard what was not said");
        }
    }
    if (rc < 0) shmt_lanes_part(h->lanes);
    return rc;
}

static void run_link(struct host *h) {
    struct shmt_error *e = &h->error[MOST_WORKERS];
    struct shmt_agreement *agreement;
    h->lanes = make_lanes(h->spec.hosts.self, 100 + h->spec.hosts.self);
    must(shmt_agreement_make(h->lanes, h->spec.hosts.self, g.n, NULL, NULL, &agreement, e) == 0, e->text);
    const struct shmt_exchange_place place = {.backend = shmt_backend_at(0),
                                              .store = h->store,
                                              .spec = &h->spec,
                                              .lanes = h->lanes,
                                              .agreement = agreement,
                                              .start_ns = 60000 * MS};
    int rc = agree(h, agreement, e);
    if (rc == 0)
        rc = shmt_exchange_run(&place, e);
    else
        give_up_host(h);
    h->status[MOST_WORKERS] = rc;
    shmt_agreement_free(agreement);
    shmt_lanes_free(h->lanes);
    h->lanes = NULL;
}

/* A later life of a host is heard of. */
static void start_anew(void) {
    struct shmt_error e = {0};
    struct shmt_message m;
    if (g.restarts == MOST_HOSTS) return;
    shmt_host()->sleep_until(shmt_now_ns() + g.cut_ns);
    struct shmt_lanes *lanes = make_lanes(g.restarts, 1000);
    const uint64_t until_ns = shmt_now_ns() + 100 * MS;
    while (shmt_now_ns() < until_ns)
        if (shmt_lanes_receive(lanes, until_ns, &m, NULL, &e) == 1) shmt_lanes_release(lanes, &m);
    shmt_lanes_free(lanes);
}

static void cut_cables(void) {
    if (g.cut == MOST_HOSTS) return;
    shmt_host()->sleep_until(shmt_now_ns() + g.cut_ns);
    for (uint32_t other = 0; other < g.n; other++) {
        shmt_loop_cut(g.loop, g.cut, other, true);
        shmt_loop_cut(g.loop, other, g.cut, true);
    }
}

static void run_fiber(void *arg, uint32_t i) {
    const uint32_t host = i / (MOST_WORKERS + 1), rank = i % (MOST_WORKERS + 1);
    struct host *h = &g.host[host];
    (void)arg;
    if (host == g.n) {
        cut_cables();
        start_anew();
    } else if (host == g.absent) {
        return;
    } else if (rank == MOST_WORKERS) {
        if (h->spec.hosts.n > 1) run_link(h);
    } else if (rank < h->spec.n_seats) {
        run_worker(h, rank);
    }
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
    g.rounds = n > 1 ? (uint32_t)draw(4) : 0;
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
    struct shmt_fibers *fibers = NULL;
    const struct shmt_fibers_spec spec = {.n = g.n * (MOST_WORKERS + 1) + 1,
                                          .seed = g.seed,
                                          .stack_bytes = SHMT_FIBER_STACK,
                                          .sim = {.look_ns = 20},
                                          .body = run_fiber};
    must(shmt_loop_make(network, &g.loop, &e) == 0 && shmt_fibers_make(&spec, &fibers, &e) == 0, e.text);
    g.began_ns = shmt_fibers_now_ns(fibers);
    while (!shmt_fibers_run(fibers, 1000)) must(shmt_fibers_now_ns(fibers) < MOST_NS, "the run does not end");
    g.took_ns = shmt_fibers_now_ns(fibers) - g.began_ns;
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

static void begin_seed(uint64_t seed) {
    g.seed = seed;
    g.draws = 0;
    g.stops = g.cut = g.absent = g.fails = g.slow = g.restarts = MOST_HOSTS;
}

static void run_seed(uint64_t seed) {
    begin_seed(seed);
    const struct shmt_spec spec = spec_for(seed);
    const struct shmt_loop_spec quiet = {.n_hosts = 1, .port_bytes = 1};
    make_hosts(&spec, 1);
    run(&quiet);
    const struct host one = g.host[0];
    float *expected = parameters_of(&one);
    destroy_hosts();
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    const struct shmt_loop_spec network = hostile_network();
    if (draw(8) == 0) g.slow = (uint32_t)draw(g.n);
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

/* Whenever one asks, and whatever the others are at. */
static void a_stop_that_one_host_asks_for_ends_all_behind_the_same_batch(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        begin_seed(seed);
        struct shmt_spec spec = spec_for(seed);
        spec.epochs = MOST_EPOCHS;
        spec.batch = spec.n_chunks = 8; /* 12 batches an epoch, at least */
        make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
        g.stops = (uint32_t)draw(g.n);
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *expected = parameters_of(&g.host[0]);
        must(g.host[0].n_epochs == 1, "the run goes on behind the stop");
        must(g.host[0].examples[0] >= 6 * 8 && g.host[0].examples[0] <= 8 * 8, "it ends at another batch");
        for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], expected);
        destroy_hosts();
        free(expected);
    }
}

static bool link_says(uint32_t host, int status, const char *text) {
    const struct host *h = &g.host[host];
    return h->status[MOST_WORKERS] == status && strcmp(h->error[MOST_WORKERS].text, text) == 0;
}

/* With many batches, so that what happens does so in the middle of the run. */
static void make_three(uint64_t seed) {
    begin_seed(seed);
    struct shmt_spec spec = spec_for(seed);
    spec.epochs = 3;
    spec.batch = spec.n_chunks = 2;
    make_hosts(&spec, 3);
}

/* Nobody waits for ever: 10 s for who was there, and as long as was said for who has not come. */
static void a_host_that_is_lost_ends_the_run_of_the_others_and_is_named(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_three(seed);
        g.cut = 1;
        g.cut_ns = 100 * MS;
        const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
        run(&network);
        must(link_says(0, SHMTRAIN_E_DIED, "host 1 is lost") && link_says(2, SHMTRAIN_E_DIED, "host 1 is lost"),
             "a host does not say who is lost");
        must(link_says(1, SHMTRAIN_E_DIED, "host 0 is lost"), "a host that is cut off does not notice it");
        for (uint32_t i = 0; i < 3; i++) must(g.host[i].status[0] == SHMTRAIN_E_STOPPED, "a worker is not ended");
        destroy_hosts();
    }
}

/* What it had is gone: nobody mistakes the new life for the old one. */
static void a_host_that_restarts_ends_the_run_of_the_others(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        make_three(seed);
        g.restarts = 1;
        g.cut_ns = 50 * MS + draw(100 * MS);
        run(&network);
        must(link_says(0, SHMTRAIN_E_DIED, "host 1 has restarted") || link_says(2, SHMTRAIN_E_DIED, "host 1 has restarted"),
             "a new life is taken for the old one");
        for (uint32_t i = 0; i < 3; i++) must(g.host[i].status[0] == SHMTRAIN_E_STOPPED, "a worker is not ended");
        destroy_hosts();
    }
}

static void a_worker_that_fails_ends_all_hosts_at_once(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    begin_seed(1);
    struct shmt_spec spec = spec_for(1);
    spec.batch = spec.n_chunks = 8;
    make_hosts(&spec, 3);
    g.fails = 2;
    run(&network);
    for (uint32_t i = 0; i < 2; i++) must(link_says(i, SHMTRAIN_E_DIED, "host 2 is lost"), "a host does not say who is lost");
    must(g.host[2].status[MOST_WORKERS] == SHMTRAIN_E_STOPPED, "the link goes on without its host");
    must(g.took_ns < SHMT_LANES_SUSPECT, "the others were not told");
    destroy_hosts();
}

static void a_host_that_does_not_come_is_named(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    begin_seed(1);
    const struct shmt_spec spec = spec_for(1);
    make_hosts(&spec, 3);
    g.absent = 2;
    run(&network);
    for (uint32_t i = 0; i < 2; i++) {
        must(link_says(i, SHMTRAIN_E_DIED, "host 2 has not come"), "a host does not say who has not come");
        must(g.host[i].status[0] == SHMTRAIN_E_STOPPED, "a worker is not ended");
    }
    destroy_hosts();
}

static void refuses(const struct shmt_spec *spec, const char *why) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_spec_check(spec, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, why));
}

static void what_hosts_cannot_do_yet_is_refused(void **state) {
    static const char ONLY_SYNC[] = "only --mode sync is possible so far", NOT_YET[] = "over several hosts there are no guests";
    struct shmt_error e = {0};
    struct shmt_need need;
    (void)state;
    begin_seed(1);
    struct shmt_spec good = spec_for(1);
    good.hosts = (struct shmt_hosts_plan){2, 1};
    assert_int_equal(shmt_spec_check(&good, &e), 0);
    struct shmt_spec spec = good;
    spec.hosts.self = 2;
    refuses(&spec, "at most 64 hosts");
    spec.hosts = (struct shmt_hosts_plan){SHMT_MAX_HOSTS + 1, 0};
    refuses(&spec, "at most 64 hosts");
    spec = good;
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .quorum = SHMT_QUORUM_ALL};
    refuses(&spec, ONLY_SYNC);
    spec = good;
    spec.fits = true;
    refuses(&spec, ONLY_SYNC);
    spec = good;
    spec.pauses.allowed = 1;
    refuses(&spec, NOT_YET);
    spec = good;
    spec.head_bytes = 1;
    refuses(&spec, NOT_YET);
    for (size_t i = 1; shmt_backend_at(i); i++) {
        assert_null(shmt_backend_at(i)->far);
        assert_int_equal(shmt_backend_at(i)->plan(&good, &need, &e), SHMTRAIN_E_USAGE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hosts_cannot_do_yet_is_refused),
        cmocka_unit_test_setup(parameters_and_losses_are_those_of_one_host, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_all_behind_the_same_batch, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_ends_the_run_of_the_others_and_is_named, deadline),
        cmocka_unit_test_setup(a_host_that_restarts_ends_the_run_of_the_others, deadline),
        cmocka_unit_test_setup(a_worker_that_fails_ends_all_hosts_at_once, deadline),
        cmocka_unit_test_setup(a_host_that_does_not_come_is_named, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
