/* Batches over many hosts (src/link/exchange.h): each host has a store and workers of its own, and a link; all of them are fibers of one
 * thread, on a network that loses, repeats and reorders frames (src/carriers/loop.h). The parameters and losses must be those of one
 * host, bit by bit, on every host.
 *
 *   TEST_SEEDS=N   that many seeds; 300 unless said otherwise, or 20 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "hosts_help.h"

#include "ps/far.h"
#include "ps/snapshot.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/random.h"
#include "workers/crew.h"

#define SHARED_ROWS 11 /* of terms: so few that each gets some from all hosts */

/* ---- a worker ---- */

/* By terms, which wide tables keep in lists; every sixth example as a row, which goes into a buffer, so that a chunk has both. */
static int push_terms(shmtrain_session *s, uint64_t i, uint64_t row, uint64_t rows, float slope) {
    const uint64_t start[] = {0, 2};
    const uint32_t id[] = {(uint32_t)row, (uint32_t)((row + 1 + i % (rows - 1)) % rows)};
    const float value[] = {1, 0.37f};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 1, .start = start, .id = id, .value = value};
    return i % 6 == 0 ? shmtrain_push(s, 0, row, 1, &slope) : shmtrain_push_sparse(s, 0, &x, &slope);
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
        if (rc == 0 && width == 1 && g.seed % 2) {
            rc = push_terms(s, i, row % SHARED_ROWS, rows, grad[0]);
            continue;
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

/* ---- a run ---- */

static struct shmt_spec spec_for(uint64_t seed) {
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_ADAGRAD, SHMT_RULE_ADAM, SHMT_RULE_FTRL};
    const struct kase k = {.policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0, .quorum = SHMT_QUORUM_ALL}, .n_seats = 1};
    const uint64_t rows[] = {3, 40, 3000, 40000};
    const uint32_t batches[] = {1, 7, 32, 64}, chunks[] = {1, 2, 4, 8, 16};
    struct shmt_spec spec = spec_of(&k, 100 + draw(150), rows[draw(4)], 1 + (uint32_t)draw(3));
    spec.epochs = 1 + (uint32_t)draw(MOST_EPOCHS);
    spec.batch = batches[draw(4)];
    do spec.n_chunks = chunks[draw(5)];
    while (spec.n_chunks > spec.batch);
    spec.rule = (struct shmt_rule){.kind = RULES[draw(4)], .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-6f, .beta = 1};
    if (spec.rule.kind == SHMT_RULE_SGD || spec.rule.kind == SHMT_RULE_ADAGRAD || spec.rule.kind == SHMT_RULE_FTRL)
        spec.rule.momentum = spec.rule.beta2 = 0;
    if (draw(3) == 0) spec.rule.clip_norm = 0.5f;
    if (draw(3) == 0) spec.rule.l2 = 0.01f;
    spec.trace_events = seed % 3 == 0 ? TRACED : 0;
    if (seed % 2) spec.pauses = (struct shmt_pauses){.epochs = 1, .allowed = 1};
    spec.cpu = SHMT_CPU_PORTABLE;
    return spec;
}

/* ---- what must hold ---- */

/* What was copied behind the first epoch: by each host, while others may still be at the epoch; nobody has released it since. */
static void compare_copies(const struct host *h, const struct shmt_snapshot *expected, const float *values) {
    struct shmt_snapshot copy;
    const bool is = shmt_backend_at(0)->store->snapshot(h->store, &copy) == 1;
    must(is == (values != NULL), "a host has taken a copy behind an epoch, and another one has not");
    if (!is) return;
    must(copy.at.epoch == 1 && copy.at.step == 0 && copy.n_floats == expected->n_floats && copy.planes == expected->planes,
         "a copy was not taken behind the first epoch");
    must(memcmp(copy.weight, values, copy.n_floats * sizeof *values) == 0, "copies behind an epoch differ");
    must(copy.planes == 0 || memcmp(copy.state, values + copy.n_floats, copy.planes * copy.n_floats * sizeof *values) == 0,
         "copies of state behind an epoch differ");
}

/* NULL: there is none. */
static float *copy_of(const struct host *h, struct shmt_snapshot *out) {
    if (shmt_backend_at(0)->store->snapshot(h->store, out) != 1) return NULL;
    float *values = malloc((1 + out->planes) * out->n_floats * sizeof *values);
    memcpy(values, out->weight, out->n_floats * sizeof *values);
    if (out->planes) memcpy(values + out->n_floats, out->state, out->planes * out->n_floats * sizeof *values);
    return values;
}

/* What a display sees when the run is over: each batch was one turn, and something was said about it. */
static void check_traffic(const struct host *h) {
    const struct shmt_far_traffic *t = shmt_backend_at(0)->far->traffic(h->store);
    must(t != NULL, "a store with a link has no traffic");
    /* relaxed, all: one thread */
    const uint64_t turns = load_relaxed(&t->turns), sent = load_relaxed(&t->sent_bytes);
    must(turns == h->spec.epochs * shmt_spec_steps(&h->spec), "turns are not the batches of the run");
    must(sent >= turns * (g.n - 1) * 2 * SHMT_HEAD_BYTES, "less was sent than the heads of what there is to say");
    must(load_relaxed(&t->received_bytes) >= turns * (g.n - 1) * 2 * SHMT_HEAD_BYTES, "less has come than heads");
}

static void run_seed(uint64_t seed) {
    begin_seed(seed);
    const struct shmt_spec spec = spec_for(seed);
    const struct shmt_loop_spec quiet = {.n_hosts = 1, .port_bytes = 1};
    make_hosts(&spec, 1);
    run(&quiet);
    const struct host one = g.host[0];
    struct shmt_snapshot behind;
    float *expected = parameters_of(&one), *copied = copy_of(&one, &behind);
    must((copied != NULL) == (spec.pauses.allowed && spec.epochs > 1),
         "a copy is taken behind an epoch that another one follows");
    destroy_hosts();
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    const struct shmt_loop_spec network = hostile_network();
    if (draw(8) == 0) g.slow = (uint32_t)draw(g.n);
    run(&network);
    for (uint32_t i = 0; i < g.n; i++) {
        compare(&g.host[i], &one, expected);
        compare_copies(&g.host[i], &behind, copied);
        check_traffic(&g.host[i]);
        check_trace(&g.host[i]);
    }
    destroy_hosts();
    free(copied);
    free(expected);
}

static void parameters_and_losses_are_those_of_one_host(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 20 : 300), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
    printf("%llu runs, all as expected\n", (unsigned long long)g.n_runs);
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
        must(link_says(1, SHMTRAIN_E_DIED, "host 0 is lost") || link_says(1, SHMTRAIN_E_DIED, "host 2 is lost"),
             "a host that is cut off does not notice it");
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
    for (uint32_t i = 0; i < 2; i++)
        must(link_says(i, SHMTRAIN_E_DIED, "host 2 has left the run"), "a host does not say who has left");
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
    static const char ONLY_SYNC[] = "only --mode sync, async, hogwild, ssp, local and node are possible so far",
                      NOT_YET[] = "over several hosts there are no guests";
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
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY,
                                       .quorum = SHMT_QUORUM_ALL,
                                       .replicas = SHMT_REPLICAS_WORKER,
                                       .merge_every = 8}; /* local: all meet to merge */
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.rule.kind = SHMT_RULE_FTRL;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.rule.kind = SHMT_RULE_SGD;
    spec.policy.merge = SHMT_MERGE_ELASTIC;
    refuses(&spec, "copies are not merged elastically");
    spec.policy.merge = SHMT_MERGE_SUM;
    spec.n_seats = spec.n_workers = SHMT_MOST_COPIES;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.n_seats = spec.n_workers = SHMT_MOST_COPIES + 1;
    refuses(&spec, "at most 255 workers of each host");
    spec = good;
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .quorum = SHMT_QUORUM_ALL};
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.rule.kind = SHMT_RULE_FTRL;
    refuses(&spec, "ftrl is for --mode sync and local");
    spec.rule.kind = SHMT_RULE_SGD;
    spec.count_lost = true;
    refuses(&spec, "lost updates are not counted");
    spec = good;
    spec.fits = true;
    refuses(&spec, ONLY_SYNC);
    spec = good;
    spec.pauses = (struct shmt_pauses){.steps = 10, .allowed = 1};
    refuses(&spec, "snapshots are taken behind epochs");
    spec = good;
    spec.head_bytes = 1;
    refuses(&spec, NOT_YET);
    for (size_t i = 1; shmt_backend_at(i); i++) {
        assert_null(shmt_backend_at(i)->far);
        assert_int_equal(shmt_backend_at(i)->plan(&good, &need, &e), SHMTRAIN_E_USAGE);
    }
}

/* It has said in this round what it had to say: nobody who agrees needs it before the next one. */
static void a_host_that_is_lost_while_another_one_has_not_come_ends_the_wait(void **state) {
    const struct shmt_loop_spec network = {.n_hosts = 3, .delay_ns = MS, .port_bytes = UINT64_C(8) << 20};
    (void)state;
    begin_seed(1);
    const struct shmt_spec spec = spec_for(1);
    make_hosts(&spec, 3);
    g.rounds = 1;
    g.absent = 2;
    g.cut = 1;
    g.cut_ns = 100 * MS;
    run(&network);
    must(link_says(0, SHMTRAIN_E_DIED, "host 1 is lost") && link_says(1, SHMTRAIN_E_DIED, "host 0 is lost"),
         "a host waits on, although one that had come is lost");
    must(g.took_ns < 30000 * MS, "it has waited as long as for one that does not come");
    destroy_hosts();
}

int main(void) {
    g.work = work;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hosts_cannot_do_yet_is_refused),
        cmocka_unit_test_setup(parameters_and_losses_are_those_of_one_host, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_all_behind_the_same_batch, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_ends_the_run_of_the_others_and_is_named, deadline),
        cmocka_unit_test_setup(a_host_that_restarts_ends_the_run_of_the_others, deadline),
        cmocka_unit_test_setup(a_worker_that_fails_ends_all_hosts_at_once, deadline),
        cmocka_unit_test_setup(a_host_that_does_not_come_is_named, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_while_another_one_has_not_come_ends_the_wait, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
