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
#include "link/bfloat16.h"
#include "link/feedback.h"
#include "link/parcel.h"
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
    struct shmt_spec spec = spec_for(seed);
    const struct shmt_loop_spec quiet = {.n_hosts = 1, .port_bytes = 1};
    make_hosts(&spec, 1);
    run(&quiet);
    const struct host one = g.host[0];
    struct shmt_snapshot behind;
    float *expected = parameters_of(&one), *copied = copy_of(&one, &behind);
    must((copied != NULL) == (spec.pauses.allowed && spec.epochs > 1),
         "a copy is taken behind an epoch that another one follows");
    destroy_hosts();
    if (draw(2)) spec.policy.replicas = SHMT_REPLICAS_EQUAL; /* allreduce */
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

/* With rounded sums bits are not those of one host, but the same on all. */
static void rounded_sums_are_the_same_on_all_hosts(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 10 : 80), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) {
        begin_seed(seed);
        struct shmt_spec spec = spec_for(seed);
        spec.hosts.wire = SHMT_WIRE_BF16;
        make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *first = parameters_of(&g.host[0]);
        for (uint32_t i = 0; i < g.n; i++) compare(&g.host[i], &g.host[0], first);
        free(first);
        destroy_hosts();
    }
}

#define ODD 1.003f /* bfloat16s are 1/128 apart there, and 1/64 from 2 on */

static int push_odd(struct host *h, shmtrain_session *s) {
    const float odd = ODD;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        for (uint64_t i = w.first; i < w.first + w.n && rc >= 0; i++)
            rc = g.seed % 2 ? push_terms(s, 1, 5, h->spec.table[0].rows, odd) : shmtrain_push(s, 0, 5, 1, &odd);
        if (rc >= 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

/* Each sum loses 1 in 700 by rounding: 40 batches would lose a seventh of one. */
static void what_rounding_leaves_of_a_sum_is_added_to_the_next_one(void **state) {
    (void)state;
    g.work = push_odd;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        begin_seed(seed);
        struct shmt_spec spec = spec_for(2);
        spec.n_examples = spec.order.n_examples = 160;
        spec.table[0].width = 1;
        spec.table[0].rows = spec.l2_rows[0] = seed % 4 < 2 ? 3000 : 40000;
        spec.batch = spec.n_chunks = 4;
        spec.epochs = 1;
        spec.rule = (struct shmt_rule){.kind = SHMT_RULE_SGD};
        spec.rate = (struct shmt_rate){.kind = SHMT_RATE_CONSTANT, .base = 1};
        spec.hosts.wire = SHMT_WIRE_BF16;
        make_hosts(&spec, 2);
        const struct shmt_loop_spec network = hostile_network();
        run(&network);
        float *first = parameters_of(&g.host[0]);
        compare(&g.host[1], &g.host[0], first);
        const float moved = -first[5], error = moved > 40 * ODD ? moved - 40 * ODD : 40 * ODD - moved;
        must(error < 0.006f, "what rounding leaves is lost"); /* half of 1/64 from each host, of a mean over four examples */
        must(moved != 40 * ODD, "nothing was rounded");
        free(first);
        destroy_hosts();
    }
    g.work = work;
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
    static const char ONLY_THESE[] =
        "only --mode sync, allreduce, async, hogwild, ssp, local, node and backup are possible so far",
                      NOT_YET[] = "over several hosts there are no guests";
    struct shmt_error e = {0};
    struct shmt_need need;
    (void)state;
    begin_seed(1);
    struct shmt_spec good = spec_for(1);
    good.hosts = (struct shmt_hosts_plan){.n = 2, .self = 1};
    assert_int_equal(shmt_spec_check(&good, &e), 0);
    struct shmt_spec spec = good;
    spec.hosts.self = 2;
    refuses(&spec, "at most 64 hosts");
    spec.hosts = (struct shmt_hosts_plan){.n = SHMT_MAX_HOSTS + 1};
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
    spec.count_lost = false;
    spec.hosts.top_k = 0.1f;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.hosts.top_k = 1.5f;
    refuses(&spec, "a share from 0 to 1");
    spec = good;
    spec.hosts.wire = SHMT_WIRE_BF16;
    assert_int_equal(shmt_spec_check(&spec, &e), 0);
    spec.hosts.top_k = 0.1f;
    refuses(&spec, "top-k leaves changes for later rounds");
    spec = good;
    spec.fits = true;
    refuses(&spec, ONLY_THESE);
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

/* ---- floats on the wire ---- */

static float of_bits(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static void floats_are_rounded_to_the_nearest_bfloat16(void **state) {
    static const struct {
        uint32_t from, to; /* bits */
    } CASES[] = {{0, 0},
                 {0x80000000, 0x8000},
                 {0x3f800000, 0x3f80},
                 {0x3f807fff, 0x3f80},
                 {0x3f808000, 0x3f80}, /* a tie, to even */
                 {0x3f808001, 0x3f81},
                 {0x3f818000, 0x3f82}, /* likewise */
                 {0xbf818001, 0xbf82},
                 {0x3fffffff, 0x4000}, /* into the exponent */
                 {0x00000001, 0},
                 {0x00018000, 2}, /* of numbers that are not normal, too */
                 {0x7f7f7fff, 0x7f7f},
                 {0x7f7fffff, 0x7f80}, /* larger than all: infinite, and no other number */
                 {0xff7f8000, 0xff80},
                 {0x7f800000, 0x7f80},
                 {0xff800000, 0xff80},
                 {0x7f800001, 0x7fc0}, /* no number stays none */
                 {0xffc12345, 0xffc1}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        assert_int_equal(shmt_bfloat16(of_bits(CASES[i].from)), CASES[i].to);
    for (uint32_t half = 0; half <= 0xffff; half++) assert_int_equal(shmt_bfloat16(shmt_of_bfloat16((uint16_t)half)), half);
}

/* Of a mean: whose change is but what rounding has left of an earlier one would halve that of somebody else. */
static void what_rounding_has_left_is_no_part_of_a_mean(void **state) {
    static const struct {
        float size[3];
        uint32_t parts;
    } CASES[] = {{{1, 1, 1}, 3},      {{1, 0, 0.5f}, 2},   {{0, 0, 0}, 0},           {{1e-30f, 0, 0}, 1},
                 {{1, 0.001f, 0}, 1}, {{0.001f, 1, 0}, 1}, {{0.001f, 0.001f, 1}, 1}, {{0.01f, 1, 0.01f}, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        float most = 0, parts = 0;
        for (uint32_t host = 0; host < 3; host++) shmt_feedback_count(CASES[i].size[host], &most, &parts);
        assert_int_equal((uint32_t)parts, CASES[i].parts);
    }
}

static void halves_of_blocks_and_terms_arrive_and_their_lengths_are_checked(void **state) {
    const struct shmt_parcel blocks = {.kind = SHMT_PARCEL_BLOCKS, .n = 3, .number = 9, .halves = true},
                             lists = {.kind = SHMT_PARCEL_TERMS, .of = 1, .n = 5, .number = 9, .flag = true, .halves = true};
    static const uint32_t ID[] = {7, 1, 7, 400, 3};
    float values[SHMT_FAR_BLOCK], found[SHMT_FAR_BLOCK], many[3 * SHMT_FAR_BLOCK];
    unsigned char *entries;
    struct shmt_parcel out;
    struct shmt_far_terms terms;
    const char *why;
    (void)state;
    for (uint32_t i = 0; i < SHMT_FAR_BLOCK; i++) values[i] = (float)i - 100.25f;
    struct shmt_payload *payload = shmt_parcel_make(&blocks, &entries);
    for (uint32_t i = 0; i < 2; i++) shmt_parcel_put_half_block(entries, i, 10 + i, values);
    shmt_parcel_end(payload, 2);
    assert_int_equal(payload->n, 24 + 2 * (8 + 2 * SHMT_FAR_BLOCK));
    assert_true(shmt_parcel_read(payload->bytes, payload->n, &out, &why) && out.n == 2 && out.halves);
    assert_int_equal(shmt_parcel_block(&out, 1, found), 11);
    for (uint32_t i = 0; i < SHMT_FAR_BLOCK; i++) assert_true(found[i] == shmt_of_bfloat16(shmt_bfloat16(values[i])));
    for (uint64_t n = 0; n < payload->n; n++) assert_false(shmt_parcel_read(payload->bytes, n, &out, &why));
    shmt_payload_drop(payload);

    payload = shmt_parcel_make(&lists, &entries);
    shmt_parcel_put_half_terms(entries, &(struct shmt_far_terms){.n = 5, .id = ID, .value = values});
    assert_int_equal(payload->n, 24 + 5 * 6);
    assert_true(shmt_parcel_read(payload->bytes, payload->n, &out, &why) && out.flag && out.halves);
    shmt_parcel_terms(&out, many, &terms);
    assert_true(terms.n == 5 && terms.summed && memcmp(terms.id, ID, sizeof ID) == 0);
    for (uint32_t i = 0; i < 5; i++) assert_true(((const float *)terms.value)[i] == shmt_of_bfloat16(shmt_bfloat16(values[i])));
    assert_false(shmt_parcel_read(payload->bytes, payload->n - 2, &out, &why));
    ((unsigned char *)(payload + 1))[2] = 0; /* as if they were floats */
    assert_false(shmt_parcel_read(payload->bytes, payload->n, &out, &why));
    ((unsigned char *)(payload + 1))[2] = 2;
    assert_false(shmt_parcel_read(payload->bytes, payload->n, &out, &why));
    ((unsigned char *)(payload + 1))[2] = 1;
    ((unsigned char *)(payload + 1))[0] = SHMT_PARCEL_END; /* which has no floats */
    assert_false(shmt_parcel_read(payload->bytes, 24, &out, &why));
    shmt_payload_drop(payload);
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
        cmocka_unit_test(floats_are_rounded_to_the_nearest_bfloat16),
        cmocka_unit_test(what_rounding_has_left_is_no_part_of_a_mean),
        cmocka_unit_test(halves_of_blocks_and_terms_arrive_and_their_lengths_are_checked),
        cmocka_unit_test(what_hosts_cannot_do_yet_is_refused),
        cmocka_unit_test_setup(parameters_and_losses_are_those_of_one_host, deadline),
        cmocka_unit_test_setup(rounded_sums_are_the_same_on_all_hosts, deadline),
        cmocka_unit_test_setup(what_rounding_leaves_of_a_sum_is_added_to_the_next_one, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_all_behind_the_same_batch, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_ends_the_run_of_the_others_and_is_named, deadline),
        cmocka_unit_test_setup(a_host_that_restarts_ends_the_run_of_the_others, deadline),
        cmocka_unit_test_setup(a_worker_that_fails_ends_all_hosts_at_once, deadline),
        cmocka_unit_test_setup(a_host_that_does_not_come_is_named, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_while_another_one_has_not_come_ends_the_wait, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
