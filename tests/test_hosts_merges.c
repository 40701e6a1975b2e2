/* Local SGD over many hosts (src/link/merges.c), on fibers and a network that loses, repeats and reorders frames: at each merge the
 * parameters become what a plain merge of all workers' copies makes of them, on all hosts the same, bit by bit, and state with them; each
 * example counts once, on every host; workers die and go on.
 *
 *   TEST_SEEDS=N   that many seeds; 4,000 unless said otherwise, or 30 under a sanitizer
 *   TEST_SEED=K    this one alone */
#include "deadline.h"
#include "hostile.h"
#include "hosts_help.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "workers/crew.h"

#define SHARED    8 /* rows behind those of examples, which all push to */
#define MOST_ROWS 700
#define STATS     5 /* floats of a table of running statistics, where there is one */

/* What the test sees of the run: all hosts are fibers of this thread. */
static struct {
    bool merges_plainly;                             /* weights are what a plain merge makes of them */
    bool counts_exactly;                             /* an example's row says how often it was trained on */
    uint32_t trained[MOST_ROWS];                     /* how often each example was, by anybody */
    float copy[MOST_HOSTS][MOST_WORKERS][MOST_ROWS]; /* what each copy was behind the last item of one of its workers */
    float master[MOST_ROWS];                         /* what all had behind the last merge */
    uint64_t done[MOST_HOSTS][MOST_WORKERS];         /* items of this epoch */
    uint64_t merges;                                 /* of this epoch, behind which somebody has gone on */
    uint32_t ended;                                  /* epochs, at the first host */
    uint64_t step_ns;                                /* that an item takes, at most */
} seen;

static uint32_t seen_lives; /* further ones, in all runs */

static uint32_t copies_of(const struct host *h) { return h->spec.policy.replicas == SHMT_REPLICAS_NODE ? 1 : h->spec.n_seats; }

/* ---- the plain merge ---- */

/* Of one row: over all copies, in the order of hosts, which is the library's where each host has one. */
static double plain_merge(uint64_t row, bool sums, double *rounding_out) {
    const float m = seen.master[row];
    double sum = 0;
    float added = 0, last = m;
    uint32_t n = 0, most = 0;
    for (uint32_t host = 0; host < g.n; host++) {
        for (uint32_t k = 0; k < copies_of(&g.host[host]); k++) {
            const float r = seen.copy[host][k][row];
            if (bits_of((double)r) == bits_of((double)m)) continue;
            sum += (double)(sums ? r - m : r);
            added += sums ? r - m : r;
            last = r;
            n++;
        }
        if (copies_of(&g.host[host]) > most) most = copies_of(&g.host[host]);
    }
    *rounding_out = n < 2 || most == 1 ? 0 : 1e-6 * (double)n * (fabs(sum) + fabs((double)m));
    if (n < 2) return (double)last;
    if (most == 1) return (double)(sums ? m + added : added / (float)n);
    return sums ? (double)m + sum : sum / (double)n;
}

/* What host h has, if it is what all have: `first` says that nobody has seen it yet. */
static void check_merge(const struct host *h, bool first) {
    float found[MOST_ROWS];
    const uint64_t rows = h->spec.table[0].rows;
    must(shmt_backend_at(0)->store->read(h->store, 0, 0, rows, found) == 0, "the parameters cannot be read");
    for (uint64_t row = 0; row < rows && first && seen.merges_plainly; row++) {
        double rounding;
        const double expected = plain_merge(row, h->spec.policy.merge == SHMT_MERGE_SUM, &rounding);
        must(fabs(expected - (double)found[row]) <= rounding, "a merge is not that of all copies");
    }
    must(first || memcmp(found, seen.master, rows * sizeof *found) == 0, "a merge leaves hosts with other parameters");
    if (!first) return;
    memcpy(seen.master, found, rows * sizeof *found);
    for (uint32_t host = 0; host < MOST_HOSTS; host++)
        for (uint32_t k = 0; k < MOST_WORKERS; k++) memcpy(seen.copy[host][k], found, rows * sizeof *found);
}

/* ---- a worker ---- */

/* Example i brings its own row one up: with plain steps of rate 1, and a gradient of which an item takes the mean. */
static int train_piece(shmtrain_session *s, const struct shmtrain_work *w, uint64_t n_examples) {
    const float up = -(float)w->n, towards[STATS] = {1, -2, 3, -4, 5};
    int rc = s->spec->n_tables > 1 ? shmtrain_push(s, 1, 0, 1, towards) : 0;
    for (uint64_t i = w->first; i < w->first + w->n && rc == 0; i++) {
        float at = 0, pull_back;
        const uint64_t shared = n_examples + i % SHARED;
        seen.trained[i]++;
        rc = shmtrain_push(s, 0, i, 1, &up);
        if (rc == 0) rc = shmtrain_pull(s, 0, shared, 1, &at);
        pull_back = 0.1f * (float)w->n * (at - 3);
        if (rc == 0) rc = shmtrain_push(s, 0, shared, 1, &pull_back);
        if (g.kills > 0) shmt_host()->sleep_until(shmt_now_ns() + draw(1000)); /* somebody dies in the middle of an item */
    }
    shmtrain_report(s, (double)w->n);
    return rc;
}

/* Behind a merge a copy is what the master is, until somebody trains it. */
static int check_copy(const struct host *h, shmtrain_session *s, uint64_t *checked) {
    float found[MOST_ROWS];
    const uint64_t rows = h->spec.table[0].rows,
                   merges = seen.done[h->spec.hosts.self][s->seat->rank] / h->spec.policy.merge_every;
    if (*checked == merges || h->spec.policy.replicas == SHMT_REPLICAS_NODE || h->life[s->seat->rank] > 0) return 0;
    *checked = merges;
    const int rc = shmtrain_pull(s, 0, 0, rows, found);
    must(merges == 0 || memcmp(found, seen.master, rows * sizeof *found) == 0, "a copy is not what the merge has made of it");
    return rc;
}

static int finish_piece(const struct host *h, shmtrain_session *s) {
    const uint32_t host = h->spec.hosts.self, copy = s->seat->rank % copies_of(h);
    int rc = shmtrain_pull(s, 0, 0, h->spec.table[0].rows, seen.copy[host][copy]);
    const uint64_t done = ++seen.done[host][s->seat->rank], every = h->spec.policy.merge_every;
    if (rc == 0) rc = shmtrain_clock(s, NULL);
    if (rc < 0 || done % every != 0 || h->life[s->seat->rank] > 0) return rc;
    check_merge(h, done / every > seen.merges);
    if (done / every > seen.merges) seen.merges = done / every;
    return rc;
}

static int work(struct host *h, shmtrain_session *s) {
    struct shmtrain_work w;
    uint64_t checked = 0;
    uint32_t epoch = 0;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch != epoch) checked = 0;
        epoch = w.epoch;
        if (seen.step_ns > 0) shmt_host()->sleep_until(shmt_now_ns() + draw(seen.step_ns));
        rc = check_copy(h, s, &checked);
        if (rc == 0) rc = train_piece(s, &w, h->spec.n_examples);
        if (rc == 0 && h->spec.hosts.self == g.stops && w.step >= 5)
            set_bits_relaxed(shmt_backend_at(0)->store->stop_word(h->store), SHMT_STOP_ASKED);
        if (rc == 0 && h->spec.hosts.self == g.fails && w.step >= 5) rc = shmtrain_fail(s, SHMTRAIN_E_DATA, "no");
        if (rc == 0) rc = finish_piece(h, s);
        if (rc < 0) break;
    }
    return rc;
}

/* All hosts have made the epoch's last merge. A chief that has died behind it comes here once more, also when the others have gone
 * on to the next epoch. */
static int note_and_check(struct shmtrain_session *s, void *arg, uint32_t epoch) {
    struct host *h = arg;
    if (s->seat->rank != 0 || s->seat->behind) return 0;
    const int rc = note_epoch(s, arg, epoch);
    check_merge(h, epoch == seen.ended);
    if (epoch == seen.ended) seen.merges = 0;
    seen.ended = epoch + 1;
    memset(seen.done[h->spec.hosts.self], 0, sizeof *seen.done);
    return rc;
}

/* ---- a run ---- */

static struct shmt_rule rule_of(uint32_t number) {
    static const enum shmt_rule_kind KINDS[] = {SHMT_RULE_SGD,  SHMT_RULE_SGD,     SHMT_RULE_SGD, SHMT_RULE_MOMENTUM,
                                                SHMT_RULE_ADAM, SHMT_RULE_ADAGRAD, SHMT_RULE_FTRL};
    const enum shmt_rule_kind kind = KINDS[number % (sizeof KINDS / sizeof *KINDS)];
    const bool has_momentum = kind == SHMT_RULE_MOMENTUM || kind == SHMT_RULE_ADAM;
    return (struct shmt_rule){.kind = kind, .momentum = has_momentum ? 0.5f : 0, .beta2 = 0.9f, .epsilon = 1e-6f, .beta = 1};
}

static void add_statistics(struct shmt_spec *spec) {
    spec->n_tables = 2;
    spec->table[1] = (struct shmt_table_spec){.name = "statistics", .rows = 1, .width = STATS};
    spec->l2_rows[1] = 1;
    spec->tuning[1] = (struct shmt_tuning){.role = SHMTRAIN_STATISTIC, .rate = 0.5f};
}

static struct shmt_spec spec_for(uint32_t rule) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    const uint64_t item = UINT64_C(1) << draw(4), examples = item * (1 + draw(80)); /* whole items: means are exact */
    const bool by_node = draw(4) == 0;
    const enum shmt_write write = WRITES[draw(3)];
    const struct kase k = {.policy = {.write = by_node || rule > 3 ? SHMT_WRITE_RACY : write,
                                      .quorum = SHMT_QUORUM_ALL,
                                      .replicas = by_node ? SHMT_REPLICAS_NODE : SHMT_REPLICAS_WORKER,
                                      .merge = draw(2) ? SHMT_MERGE_MEAN : SHMT_MERGE_SUM,
                                      .merge_every = 1 + (uint32_t)draw(5)},
                           .n_seats = 1};
    const uint64_t rows = examples < MOST_ROWS - SHARED ? examples : MOST_ROWS - SHARED;
    struct shmt_spec spec = spec_of(&k, rows / item * item, rows / item * item + SHARED, 1);
    spec.epochs = 1 + (uint32_t)draw(MOST_EPOCHS);
    spec.item = (uint32_t)item;
    spec.rule = rule_of(rule);
    spec.rate.base = spec.rule.kind == SHMT_RULE_SGD ? 1 : 0.1f;
    spec.rate.kind = SHMT_RATE_CONSTANT;
    spec.cpu = SHMT_CPU_PORTABLE;
    spec.order.shuffle = false; /* place i is example i */
    if (draw(2)) add_statistics(&spec);
    seen.merges_plainly = spec.rule.kind != SHMT_RULE_FTRL; /* whose weights follow from merged state */
    seen.counts_exactly = spec.rule.kind == SHMT_RULE_SGD && !by_node;
    return spec;
}

static void begin_merges(uint64_t seed) {
    begin_seed(seed);
    memset(&seen, 0, sizeof seen);
    seen.step_ns = draw(2) ? 0 : 1 + draw(3 * MS);
}

/* Weights and state of all tables. */
static void compare_all(const struct host *h, const struct host *other) {
    for (int t = 0; t < (int)h->spec.n_tables; t++) {
        for (uint32_t word = 0; word <= shmt_flat_planes(&h->spec); word++) {
            const enum shmt_array_name name = word ? SHMT_ARRAY_STATE : SHMT_ARRAY_WEIGHT;
            const struct shmt_array mine = shmt_backend_at(0)->store->array(h->store, name, t, word ? word - 1 : 0),
                                    theirs = shmt_backend_at(0)->store->array(other->store, name, t, word ? word - 1 : 0);
            must(mine.at && mine.n > 0 && memcmp(mine.at, theirs.at, mine.n * mine.each) == 0,
                 word ? "hosts end with other state" : "hosts end with other parameters");
        }
    }
}

/* What every host has: each example in each epoch, and the same bits. */
static void check(const struct host *h, const float *first) {
    float *found = parameters_of(h);
    compare(h, &g.host[0], first);
    compare_all(h, &g.host[0]);
    for (uint32_t epoch = 0; epoch < h->n_epochs; epoch++)
        must(h->loss[epoch] == (double)h->examples[epoch], "an epoch has not all losses, or more");
    for (uint64_t i = 0; i < h->spec.n_examples && seen.counts_exactly; i++)
        must(found[i] == (float)seen.trained[i], "what was learned of an example was lost, or counted twice");
    free(found);
}

static void check_all(bool whole) {
    float *first = parameters_of(&g.host[0]);
    const struct shmt_spec *spec = &g.host[0].spec;
    for (uint32_t i = 0; i < g.n; i++) check(&g.host[i], first);
    for (uint32_t epoch = 0; epoch < g.host[0].n_epochs && whole; epoch++)
        must(g.host[0].examples[epoch] == spec->n_examples, "an epoch has not all examples, or more");
    must(!whole || g.host[0].n_epochs == spec->epochs, "an epoch is missing");
    free(first);
    destroy_hosts();
}

/* In every third run workers die, wherever they stand: in an item, in a meeting, on the way to a merge. What they had in hand is done
 * again. What their copies are when they are merged the test does not see then. */
static void run_seed(uint64_t seed) {
    begin_merges(seed);
    struct shmt_spec spec = spec_for((uint32_t)draw(7));
    spec.may_die = draw(3) == 0;
    /* A traced push reads the clock first: who dies there has counted an example that it has not pushed. */
    spec.trace_events = seed % 3 == 0 && !spec.may_die ? TRACED : 0;
    seen.merges_plainly = seen.merges_plainly && !spec.may_die;
    make_hosts(&spec, 2 + (uint32_t)draw(MOST_HOSTS - 1));
    if (spec.may_die) g.kills = 1 + (uint32_t)draw(6);
    const struct shmt_loop_spec network = hostile_network();
    run(&network);
    for (uint32_t i = 0; i < g.n * MOST_WORKERS; i++) seen_lives += g.host[i / MOST_WORKERS].life[i % MOST_WORKERS];
    for (uint64_t i = 0; i < spec.n_examples; i++)
        must(spec.may_die ? seen.trained[i] >= spec.epochs : seen.trained[i] == spec.epochs,
             "an example was trained on twice, or not at all");
    for (uint32_t i = 0; i < g.n; i++) check_trace(&g.host[i]);
    check_all(true);
}

static void each_merge_is_that_of_all_workers_of_all_hosts_whoever_dies(void **state) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 30 : 4000), only = hostile_asked("TEST_SEED", 0);
    (void)state;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) run_seed(seed);
    printf("%llu runs, all as expected; %u workers died\n", (unsigned long long)g.n_runs, seen_lives);
    assert_true(only > 0 || n < 30 || seen_lives > n / 10);
}

/* What was trained by then is the same everywhere. */
static void a_stop_that_one_host_asks_for_ends_the_epoch_of_all(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        begin_merges(seed);
        struct shmt_spec spec = spec_for((uint32_t)draw(7));
        run_to_a_stop(&spec, SHARED);
        check_all(false);
    }
}

static void a_host_that_is_lost_or_fails_ends_the_run_of_the_others(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        begin_merges(seed);
        struct shmt_spec spec = spec_for(0);
        seen.step_ns = 3 * MS;
        spec.n_examples = spec.order.n_examples = 600; /* of 1.5 ms, for at most 9 workers */
        spec.table[0].rows = spec.l2_rows[0] = spec.n_examples + SHARED;
        spec.item = 1;
        spec.epochs = 3;
        check_that_a_host_which_goes_ends_the_run(&spec, seed % 2 == 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_merge_is_that_of_all_workers_of_all_hosts_whoever_dies, deadline),
        cmocka_unit_test_setup(a_stop_that_one_host_asks_for_ends_the_epoch_of_all, deadline),
        cmocka_unit_test_setup(a_host_that_is_lost_or_fails_ends_the_run_of_the_others, deadline)};
    g.work = work;
    g.begins = true;
    g.epoch_end = note_and_check;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
