/* `allreduce` over many hosts, and `sync`, or each on some of them, with gradients of several layers (src/link/batches.c): what a host's
 * link has sent of a layer before the others are complete must come to the parameters and losses of one host, bit by bit, on every host,
 * also while workers die; and it must be sent before. Hosts are fibers of one thread, on a network that loses, repeats and reorders frames.
 *
 *   TEST_SEEDS=N   that many seeds; 300 unless said otherwise, or 20 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "hosts_help.h"

#include "ps/far.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/random.h"
#include "workers/crew.h"

#define MOST_LAYERS 5
#define MOST_FLOATS 1200 /* of a layer: some blocks */

/* What workers do of a seed. */
static struct {
    bool forwards;     /* the first layer is pushed first */
    bool unsteady;     /* gradients are others in each life of a worker */
    bool leaves_out;   /* some pieces push nothing to some layers */
    bool by_rows;      /* layer 0 is pushed row by row, and so never said to be complete before all is */
    uint64_t layer_ns; /* that each layer takes */
} how;

/* ---- a worker ---- */

/* Gradients follow from the parameters, so that another sum in one batch is seen in all that come. */
static double gradient(const struct shmtrain_work *w, uint32_t t, const float *seen, uint64_t n, uint32_t life, float *out) {
    double loss = 0;
    for (uint64_t i = 0; i < n; i++) {
        out[i] = (float)shmt_unit(shmt_hash64(w->first + 1, t, i, 0)) - 0.5f + 0.3f * seen[i];
        if (how.unsteady) out[i] += 0.01f * (float)life;
        loss += (double)out[i] * (double)out[i];
    }
    return loss;
}

static int push_layer(struct host *h, shmtrain_session *s, const struct shmtrain_work *w, uint32_t t, double *loss) {
    float seen[MOST_FLOATS], made[MOST_FLOATS];
    const struct shmt_table_spec *table = &h->spec.table[t];
    const uint64_t floats = shmt_table_floats(table);
    float *lent;
    if (how.leaves_out && (w->first + t) % 3 == 0) return 0;
    if (how.unsteady && s->seat->life % 2 == 1 && t % 2 == 0) return 0;
    int rc = shmtrain_pull(s, (int)t, 0, table->rows, seen);
    if (rc == 0 && t == 0 && how.by_rows) {
        *loss += gradient(w, t, seen, floats, s->seat->life, made);
        for (uint64_t row = 0; row < table->rows && rc == 0; row++)
            rc = shmtrain_push(s, (int)t, row, 1, made + row * table->width);
        return rc;
    }
    if (rc == 0) rc = shmtrain_lend(s, (int)t, &lent);
    if (rc < 0) return rc;
    *loss += gradient(w, t, seen, floats, s->seat->life, lent);
    return shmtrain_push(s, (int)t, 0, table->rows, lent);
}

static int train_piece(struct host *h, shmtrain_session *s, const struct shmtrain_work *w) {
    const uint32_t n = h->spec.n_tables;
    double loss = 0;
    int rc = 0;
    for (uint32_t k = 0; k < n && rc == 0; k++) {
        if (how.layer_ns > 0) shmt_host()->sleep_until(shmt_now_ns() + how.layer_ns);
        rc = push_layer(h, s, w, how.forwards ? k : n - 1 - k, &loss);
    }
    shmtrain_report(s, loss);
    return rc;
}

static int work(struct host *h, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        rc = train_piece(h, s, &w);
        if (rc == 0 && h->spec.hosts.self == g.stops && w.step == 2)
            store_relaxed(shmt_backend_at(0)->store->stop_word(h->store), 1); /* relaxed: one thread */
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

/* ---- a link ---- */

/* Time passes while it reads what is complete, so that workers die meanwhile. */
static bool read_slowly(struct shmt_seat *seat, struct shmt_subtree of, uint64_t block, float *out) {
    if (g.kills > 0 && draw(4) == 0) shmt_host()->sleep_until(shmt_now_ns() + draw(1000 + how.layer_ns));
    const bool found = shmt_backend_at(0)->far->sum(seat, of, block, out);
    if (g.kills > 0 && draw(4) == 0) shmt_host()->sleep_until(shmt_now_ns() + draw(1000 + how.layer_ns));
    return found;
}

static const struct shmt_backend *slow_link(void) {
    static struct shmt_backend backend;
    static struct shmt_far_ops far;
    far = *shmt_backend_at(0)->far;
    far.sum = read_slowly;
    backend = *shmt_backend_at(0);
    backend.far = &far;
    return &backend;
}

/* ---- a run ---- */

static void add_layer(struct shmt_spec *spec, uint64_t rows, uint32_t width) {
    const uint32_t t = spec->n_tables++;
    snprintf(spec->table[t].name, sizeof spec->table[t].name, "layer%u", t);
    spec->table[t].rows = spec->l2_rows[t] = rows;
    spec->table[t].width = width;
}

static struct shmt_spec spec_for(void) {
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_MOMENTUM, SHMT_RULE_ADAM, SHMT_RULE_LAMB};
    const struct kase k = {.policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = 0, .quorum = SHMT_QUORUM_ALL}, .n_seats = 1};
    const uint32_t batches[] = {7, 32, 64}, chunks[] = {1, 2, 4, 8, 16};
    struct shmt_spec spec = spec_of(&k, 100 + draw(100), 1, 2);
    spec.epochs = 1 + (uint32_t)draw(2);
    spec.batch = batches[draw(3)];
    do spec.n_chunks = chunks[draw(5)];
    while (spec.n_chunks > spec.batch);
    spec.n_tables = 0;
    const bool large = draw(3) == 0; /* 4096 floats and more: what nobody has touched is not read */
    for (uint64_t n = large ? MOST_LAYERS : 1 + draw(MOST_LAYERS); n > 0; n--) {
        const uint32_t width = 2 + (uint32_t)draw(20);
        add_layer(&spec, large ? MOST_FLOATS / width : 1 + draw(draw(2) ? MOST_FLOATS / width : 4), width);
    }
    spec.rule = (struct shmt_rule){.kind = RULES[draw(4)], .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-6f};
    if (spec.rule.kind == SHMT_RULE_SGD) spec.rule.momentum = spec.rule.beta2 = 0;
    if (spec.rule.kind != SHMT_RULE_LAMB && draw(4) == 0) spec.rule.clip_norm = 0.5f;
    if (draw(4) == 0) spec.rule.l2 = 0.01f;
    spec.may_die = true;
    spec.cpu = SHMT_CPU_PORTABLE;
    return spec;
}

static void choose(uint64_t seed) {
    begin_seed(seed);
    memset(&how, 0, sizeof how);
    how.forwards = draw(5) == 0;
    how.leaves_out = draw(5) == 0;
    how.by_rows = draw(5) == 0;
    how.layer_ns = draw(2) ? 0 : draw(3 * MS);
    g.bucket = draw(2) ? 1 : 1 + (uint32_t)draw(8);
}

/* Over some hosts, most of which have several workers. */
static void run_over_hosts(struct shmt_spec *spec, uint32_t n) {
    if (draw(2)) spec->policy.replicas = SHMT_REPLICAS_EQUAL; /* allreduce; else sync; or each of them on some */
    g.mixes = draw(2);
    spec->trace_events = draw(3) == 0 ? TRACED : 0;
    make_hosts(spec, n);
    const struct shmt_loop_spec network = hostile_network();
    g.kills = draw(3) == 0 ? 0 : 1 + (uint32_t)draw(40);
    run(&network);
}

static void compare_all(const struct host *one, const float *expected) {
    for (uint32_t i = 0; i < g.n; i++) {
        compare(&g.host[i], one, expected);
        check_trace(&g.host[i]);
    }
}

static void compare_with_first(void) {
    float *first = parameters_of(&g.host[0]);
    compare_all(&g.host[0], first);
    free(first);
}

static uint64_t n_seeds(uint64_t usual) { return hostile_asked("TEST_SEEDS", SANITIZED ? usual / 15 : usual); }

static void for_seeds(uint64_t usual, void (*run_seed)(uint64_t seed)) {
    const uint64_t n = n_seeds(usual), only = hostile_asked("TEST_SEED", 0);
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
}

static void compare_with_one_host(uint64_t seed) {
    const struct shmt_loop_spec quiet = {.n_hosts = 1, .port_bytes = 1};
    choose(seed);
    struct shmt_spec spec = spec_for();
    make_hosts(&spec, 1);
    run(&quiet);
    const struct host one = g.host[0];
    float *expected = parameters_of(&one);
    destroy_hosts();
    run_over_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    compare_all(&one, expected);
    destroy_hosts();
    free(expected);
}

static void layers_that_are_sent_early_come_to_the_bits_of_one_host(void **state) {
    (void)state;
    for_seeds(300, compare_with_one_host);
    printf("%llu runs, all as expected\n", (unsigned long long)g.n_runs);
}

/* With --wire bf16: all add up what was sent, whatever a next life has computed since. Where it computes the same, that is what comes out
 * if nobody dies. */
static void round_sums(uint64_t seed) {
    const struct shmt_loop_spec quiet = {.n_hosts = MOST_HOSTS, .port_bytes = UINT64_C(8) << 20};
    choose(seed);
    struct shmt_spec spec = spec_for();
    const uint32_t n = 2 + (uint32_t)draw(MOST_HOSTS - 1);
    spec.hosts.wire = SHMT_WIRE_BF16;
    make_hosts(&spec, n);
    run(&quiet);
    const struct host one = g.host[0];
    float *expected = parameters_of(&one);
    destroy_hosts();
    how.unsteady = draw(2);
    run_over_hosts(&spec, n);
    if (how.unsteady)
        compare_with_first();
    else
        compare_all(&one, expected);
    destroy_hosts();
    free(expected);
}

static void rounded_layers_are_the_same_on_all_hosts(void **state) {
    (void)state;
    for_seeds(90, round_sums);
}

/* As of a worker function that draws numbers: what a dead worker's layer was when it was sent is no part of the sum any more. */
static void die_unsteadily(uint64_t seed) {
    choose(seed);
    struct shmt_spec spec = spec_for();
    how.unsteady = true;
    how.layer_ns = 1 + draw(3 * MS);
    run_over_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    compare_with_first();
    destroy_hosts();
}

static void a_layer_that_a_death_has_changed_is_sent_once_more(void **state) {
    (void)state;
    for_seeds(90, die_unsteadily);
}

static void stop_somewhere(uint64_t seed) {
    choose(seed);
    struct shmt_spec spec = spec_for();
    spec.epochs = MOST_EPOCHS;
    spec.batch = spec.n_chunks = 8; /* 12 batches an epoch, at least */
    spec.policy.replicas = SHMT_REPLICAS_EQUAL;
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    g.stops = (uint32_t)draw(g.n);
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    must(g.host[0].n_epochs == 1, "the run goes on behind the stop");
    must(g.host[0].examples[0] >= 3 * 8 && g.host[0].examples[0] <= 5 * 8, "it ends at another batch");
    compare_with_first();
    destroy_hosts();
}

static void a_stop_ends_all_behind_the_same_batch(void **state) {
    (void)state;
    for_seeds(30, stop_somewhere);
}

/* The last layer, which is nearly all there is to send, takes as long on the network as a layer takes to compute. In virtual time. */
static uint64_t time_of(enum shmt_replicas replicas, uint32_t bucket) {
    const struct shmt_loop_spec network = {
        .n_hosts = 2, .delay_ns = MS / 10, .bytes_per_second = 1000000, .port_bytes = 1 << 20};
    begin_seed(1);
    memset(&how, 0, sizeof how);
    how.layer_ns = 4 * MS;
    struct shmt_spec spec = spec_for();
    spec.epochs = 1;
    spec.batch = spec.n_chunks = 8;
    spec.n_examples = spec.order.n_examples = 80;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_SGD};
    spec.n_tables = 0;
    add_layer(&spec, 2, 2);
    add_layer(&spec, 2, 2);
    add_layer(&spec, 100, 10);
    spec.policy.replicas = replicas;
    g.bucket = bucket;
    make_hosts(&spec, 2);
    run(&network);
    compare_with_first();
    destroy_hosts();
    return g.took_ns;
}

static void layers_are_sent_while_earlier_ones_are_computed(void **state) {
    static const enum shmt_replicas COPIES[] = {SHMT_REPLICAS_EQUAL, SHMT_REPLICAS_ONE};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const uint64_t early_ns = time_of(COPIES[i], 2), late_ns = time_of(COPIES[i], 0); /* all of it is less than a bucket */
        printf("%llu us, and %llu us where all is sent when all is computed\n", (unsigned long long)early_ns / 1000,
               (unsigned long long)late_ns / 1000);
        must(early_ns + 10 * 3 * MS < late_ns, "layers are sent no earlier than all are computed");
    }
}

int main(void) {
    g.work = work;
    g.backend_of_link = slow_link();
    g.kill_steps = 200;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(layers_that_are_sent_early_come_to_the_bits_of_one_host, deadline),
        cmocka_unit_test_setup(rounded_layers_are_the_same_on_all_hosts, deadline),
        cmocka_unit_test_setup(a_layer_that_a_death_has_changed_is_sent_once_more, deadline),
        cmocka_unit_test_setup(a_stop_ends_all_behind_the_same_batch, deadline),
        cmocka_unit_test(layers_are_sent_while_earlier_ones_are_computed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
