/* Cached pulls: what a worker reads from its own copy of the parameters, and how old that may be.
 *
 * First in sessions of one thread, which are called in a known order. Then as fibers, under schedulers that mean harm (hostile.h): each
 * worker has a row of its own, in which stands the clock that it has completed last, and reads those of all the others in each item.
 * So from what is read follows how old it is.
 *
 *   TEST_SEEDS=N, TEST_SEED=K   as in test_seeds.c; 60 unless said otherwise, or 6 under a sanitizer */
#include "conformance.h"
#include "hostile.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/point.h"
#include "base/random.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

enum { WIDTH = 3, SPREAD = 7, MOST_SEATS = 8, MOST_CLOCKS = 4096 };

static const struct shmt_policy ASYNC = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF};

static const struct shmt_backend *backend_called(const char *name) {
    const struct shmt_backend *b;
    for (size_t i = 0; (b = shmt_backend_at(i)); i++)
        if (strcmp(b->name, name) == 0) return b;
    fail_msg("no backend %s", name);
    return NULL;
}

/* ---- two sessions of one thread ---- */

struct pair {
    struct kase k;
    struct run run;
    shmtrain_session s[2];
};

static void enter(struct pair *p, struct shmt_policy policy, uint32_t cache_pulls) {
    struct shmt_error e = {0};
    *p = (struct pair){.k = {backend_called("shm"), policy, 2, &SHMT_TEAM_THREADS}};
    struct shmt_spec spec = spec_of(&p->k, 1000, 40, 1);
    spec.rate.base = 1;
    spec.item = 1;
    spec.cache_pulls = cache_pulls;
    begin(&p->run, &p->k, spec);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(shmt_session_enter(&p->s[rank], p->k.backend, p->run.store, &p->run.spec, rank, 0, &e), 0);
}

static void leave(struct pair *p) {
    for (int rank = 0; rank < 2; rank++) shmt_session_leave(&p->s[rank]);
    end(&p->run);
}

static float pulled(shmtrain_session *s, uint64_t row) {
    float w = NAN;
    assert_int_equal(shmtrain_pull(s, 0, row, 1, &w), 0);
    return w;
}

/* n items, each of which reads row 0, and adds 1 to it. Returns what the last of them has read. */
static float do_items(shmtrain_session *s, uint32_t n) {
    struct shmtrain_work w;
    float read = NAN;
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(shmtrain_next(s, &w), 1);
        read = pulled(s, 0);
        assert_int_equal(shmtrain_push(s, 0, 0, 1, &(float){-1}), 0);
        assert_int_equal(shmtrain_clock(s, NULL), 0);
    }
    return read;
}

/* Worker 0 has copied when the other one had completed 0 clocks. */
static void a_copy_is_read_until_it_is_too_old_and_has_the_workers_own_writes(void **state) {
    (void)state;
    for (uint32_t n = 1; n < 6; n++) {
        struct pair p;
        enter(&p, ASYNC, n);
        assert_true(do_items(&p.s[0], 1) == 0);
        do_items(&p.s[1], 50);
        for (uint32_t clock = 1; clock <= n; clock++) assert_true(do_items(&p.s[0], 1) == (float)clock);
        assert_true(do_items(&p.s[0], 1) == (float)(n + 1 + 50)); /* at clock n + 1 what was copied at 0 is too old */
        do_items(&p.s[1], 7);
        for (uint32_t clock = n + 2; clock <= 2 * n + 1; clock++) assert_true(do_items(&p.s[0], 1) == (float)(clock + 50));
        assert_true(do_items(&p.s[0], 1) == (float)(2 * n + 2 + 57));
        leave(&p);
    }
}

/* Worker 1 stands at clock 0 and pushes, so the other one gets too far ahead. Then its copy is renewed in each item, and once there. */
static void where_the_slowest_is_too_far_behind_each_item_renews_once(void **state) {
    struct pair p;
    struct shmtrain_work w;
    (void)state;
    enter(&p, ASYNC, 2);
    assert_int_equal(shmtrain_next(&p.s[1], &w), 1);
    assert_true(do_items(&p.s[0], 5) == 4);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(shmtrain_next(&p.s[0], &w), 1);
        assert_true(pulled(&p.s[0], 0) == (float)(5 + i));
        assert_int_equal(shmtrain_push(&p.s[1], 0, 0, 1, &(float){-1}), 0);
        assert_true(pulled(&p.s[0], 0) == (float)(5 + i));
        assert_int_equal(shmtrain_clock(&p.s[0], NULL), 0);
    }
    leave(&p);
}

static void without_it_the_newest_is_read(void **state) {
    struct pair p;
    (void)state;
    enter(&p, ASYNC, 0);
    do_items(&p.s[1], 5);
    assert_true(do_items(&p.s[0], 1) == 5);
    do_items(&p.s[1], 3);
    assert_true(do_items(&p.s[0], 1) == 9);
    leave(&p);
}

/* Delay counts from when what was read was copied. */
static void delay_is_the_age_of_what_was_read(void **state) {
    (void)state;
    for (uint32_t n = 0; n < 5; n += 4) {
        struct pair p;
        enter(&p, ASYNC, n);
        do_items(&p.s[0], 1);
        do_items(&p.s[1], 10);
        do_items(&p.s[0], 3);
        const struct shmt_delays *d = &p.k.backend->store->counters(p.run.store, 0)->delays;
        assert_int_equal(load_relaxed(&d->samples), 4);
        assert_int_equal(load_relaxed(&d->max), n ? 10 : 0);
        assert_int_equal(load_relaxed(&d->sum), n ? 30 : 0);
        leave(&p);
    }
}

static void slopes(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    float *seen = arg;
    for (uint32_t i = 0; i < n; i++) {
        seen[first + i] = dot[i];
        slope_out[i] = -1;
    }
}

/* All that reads and all that pushes, of one worker while another one has changed everything. */
static void all_calls_read_the_copy_and_push_to_both(void **state) {
    static const uint32_t ID[] = {3, 17, 3};
    static const uint64_t START[] = {0, 1, 2, 3};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 3, .bias = 1, .start = START, .id = ID};
    struct pair p;
    struct shmtrain_work w;
    float dot[3], rows[2], seen[3], shared;
    const float *at;
    uint64_t stride;
    (void)state;
    enter(&p, ASYNC, 3);
    shmtrain_session *s = &p.s[0];
    assert_int_equal(shmtrain_next(s, &w), 1);
    (void)pulled(s, 3);
    (void)pulled(s, 17);
    assert_int_equal(shmtrain_dot(s, 0, &x, dot), 0); /* with the bias' line */
    assert_int_equal(shmtrain_next(&p.s[1], &w), 1);
    for (uint64_t row = 0; row < 40; row++) assert_int_equal(shmtrain_push(&p.s[1], 0, row, 1, &(float){-100}), 0);
    assert_int_equal(shmtrain_clock(&p.s[1], NULL), 0);
    assert_int_equal(shmtrain_push_sparse(s, 0, &x, (float[]){-1, -1, -1}), 0); /* row 3: 2, row 17: 1, bias: 3 */
    assert_int_equal(shmtrain_dot(s, 0, &x, dot), 0);
    assert_true(dot[0] == 5 && dot[1] == 4 && dot[2] == 5);
    assert_int_equal(shmtrain_each(s, 0, &x, 1, slopes, seen), 0); /* one after the other, each sees the ones before */
    assert_true(seen[0] == 5 && seen[1] == 5 && seen[2] == 3 + 5);
    assert_int_equal(shmtrain_push_rows(s, 0, (uint32_t[]){17}, 1, &(float){-10}), 0);
    assert_int_equal(shmtrain_rows(s, 0, (uint32_t[]){3, 17}, 2, rows), 0);
    assert_true(rows[0] == 4 && rows[1] == 12);
    assert_int_equal(shmtrain_view(s, 0, 16, 2, &at, &stride, NULL), 0);
    assert_true(at[0] == 0 && at[stride] == 12);
    assert_int_equal(p.k.backend->store->read(p.run.store, 0, 17, 1, &shared), 0);
    assert_true(shared == 112);
    assert_int_equal(shmtrain_clock(s, NULL), 0);
    assert_true(pulled(s, 17) == 112); /* who looks outside of items looks at the parameters */
    leave(&p);
}

/* ---- one worker: the same bits ---- */

static float some(uint64_t i, uint64_t k) { return (float)shmt_below(shmt_hash64(3, i, k, 0), 2000) / 1000 - 1; }

static int learn(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        uint32_t id[6];
        float value[6], grad[5], seen[2], row[5];
        const uint64_t start[] = {0, 3, 6};
        for (uint32_t k = 0; k < 6; k++) {
            id[k] = (uint32_t)((w.step * 7 + k * 11) % 39);
            value[k] = some(w.step, k);
        }
        const struct shmtrain_csr x = {.size = sizeof x, .n = 2, .bias = 1, .start = start, .id = id, .value = value};
        if ((rc = shmtrain_each(s, 0, &x, 1 + w.step % 2, slopes, seen)) < 0) return rc;
        if ((rc = shmtrain_pull(s, 0, w.step % 35, 5, row)) < 0) return rc;
        for (uint32_t k = 0; k < 5; k++) grad[k] = row[k] * 0.1f + some(w.step, 10 + k);
        if ((rc = shmtrain_push(s, 0, w.step % 35, 5, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void learn_alone(const char *backend, enum shmt_write write, enum shmt_rule_kind rule, uint32_t cache_pulls,
                        float out[40]) {
    const struct kase k = {backend_called(backend), {.write = write, .staleness = SHMT_STALENESS_INF}, 1, &SHMT_TEAM_THREADS};
    struct run run;
    struct shmt_spec spec = spec_of(&k, 300, 40, 1);
    spec.item = 4;
    spec.l2_rows[0] = 39;
    spec.cache_pulls = cache_pulls;
    spec.rule = (struct shmt_rule){
        .kind = rule, .l2 = 0.01f, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f, .beta = 1, .rho = 0.9f};
    begin(&run, &k, spec);
    go_well(&run, learn);
    assert_int_equal(k.backend->store->read(run.store, 0, 0, 40, out), 0);
    end(&run);
}

static void a_worker_alone_gets_the_same_bits_whatever_the_rule_is(void **state) {
    static const char *const BACKENDS[] = {"shm", "plain", "copy"};
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD,  SHMT_RULE_MOMENTUM, SHMT_RULE_ADAGRAD, SHMT_RULE_RMSPROP,
                                                SHMT_RULE_ADAM, SHMT_RULE_ADADELTA, SHMT_RULE_FTRL};
    (void)state;
    for (size_t r = 0; r < sizeof RULES / sizeof *RULES; r++)
        for (size_t b = 0; b < 3; b++)
            for (int write = SHMT_WRITE_RACY; write <= SHMT_WRITE_LOCKED; write++) {
                const bool plain = RULES[r] == SHMT_RULE_SGD || RULES[r] == SHMT_RULE_ADAGRAD;
                const bool bears =
                    write == SHMT_WRITE_ATOMIC ? plain : write == SHMT_WRITE_RACY || plain || RULES[r] == SHMT_RULE_MOMENTUM;
                float without[40], with[40];
                if (!bears) continue;
                learn_alone(BACKENDS[b], (enum shmt_write)write, RULES[r], 0, without);
                for (uint32_t n = 1; n < 12; n += 5) {
                    learn_alone(BACKENDS[b], (enum shmt_write)write, RULES[r], n, with);
                    assert_memory_equal(without, with, sizeof with);
                }
            }
}

/* ---- whatever the schedule ---- */

/* One thread. */
static struct {
    uint64_t seed, delayed_ns;
    uint64_t n_made[MOST_SEATS];
    uint64_t made[MOST_SEATS][MOST_CLOCKS]; /* what each has put into its row, in order; it only grows */
    uint64_t begun[MOST_SEATS];             /* the last that it was about to put there */
    uint64_t reads, old;
} g;

static uint64_t g_lives; /* of all runs: those that were not the first of their worker */

static void wrong(const char *what, uint32_t who, uint64_t clock, double found, uint64_t wanted) {
    fail_msg("seed %d: %s: worker %u, at its clock %d, reads %g, and %d is wanted; again: TEST_SEED=%d", (int)g.seed, what, who,
             (int)clock, found, (int)wanted, (int)g.seed);
}

#define DELAYS_NS UINT64_C(20000000)

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who)) return;
    const uint64_t ns = hostile_delay(name, who, NULL);
    if (ns == 0 || g.delayed_ns > DELAYS_NS) return;
    g.delayed_ns += ns;
    shmt_host()->sleep_until(shmt_now_ns() + ns);
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) fail_msg("seed %d: %s goes back", (int)g.seed, what);
}

/* The last that worker j has put into its row of what may not be missing. */
static uint64_t least_of(uint32_t j, uint64_t bound) {
    uint64_t least = 0;
    for (uint64_t i = 0; i < g.n_made[j] && g.made[j][i] <= bound; i++) least = g.made[j][i];
    return least;
}

static uint32_t row_of(uint32_t seat) { return 1 + seat * SPREAD; }

/* The row of one worker, by one call or another. */
static int read_row(shmtrain_session *s, uint32_t row, float *out) {
    const uint64_t start[] = {0, 1};
    const struct shmtrain_csr x = {.size = sizeof x, .n = 1, .start = start, .id = &row};
    float three[WIDTH];
    const float *at;
    uint64_t stride;
    const bool wide = s->spec->table[0].width > 1;
    int rc;
    switch (hostile_draw(4)) {
        case 0:
            rc = shmtrain_rows(s, 0, &row, 1, three);
            *out = three[0];
            return rc;
        case 1:
            rc = shmtrain_view(s, 0, row, 1, &at, &stride, NULL);
            if (rc == 0) *out = *at;
            return rc;
        case 2:
            if (!wide) return shmtrain_dot(s, 0, &x, out);
            /* fallthrough */
        default:
            rc = shmtrain_pull(s, 0, row, 1, three);
            *out = three[0];
            return rc;
    }
}

static void linger(void) {
    if (hostile_draw(3) == 0) shmt_host()->sleep_until(shmt_now_ns() + hostile_draw(4000));
}

/* What is read of the others, and of my own row, is what the condition demands. */
static int read_all(struct run *run, shmtrain_session *s, uint64_t clock, uint64_t slowest) {
    const uint32_t me = s->seat->rank, first = (uint32_t)hostile_draw(run->k->n_seats);
    const uint64_t n = run->spec.cache_pulls, bound = shmt_min_u64(clock > n ? clock - n : 0, slowest);
    for (uint32_t i = 0; i < run->k->n_seats; i++) {
        const uint32_t j = (first + i) % run->k->n_seats;
        const uint64_t newest = g.n_made[j] ? g.made[j][g.n_made[j] - 1] : 0;
        float found = NAN;
        const int rc = read_row(s, row_of(j), &found);
        if (rc < 0) return rc;
        if (j == me && !(found >= (float)newest && found <= (float)g.begun[j]))
            wrong("its own writes", me, clock, (double)found, newest);
        if (!(found >= (float)least_of(j, bound))) wrong("a read is too old", me, clock, (double)found, least_of(j, bound));
        g.reads++;
        g.old += found < (float)newest;
        linger();
    }
    return 0;
}

/* Row 0 counts examples; mine becomes the clock that I am about to complete. */
static int push_all(shmtrain_session *s, const struct shmtrain_work *w, uint64_t clock) {
    const uint32_t me = s->seat->rank, id[] = {0, row_of(me)};
    float grad[2 * WIDTH] = {0}, mine = NAN;
    const int rc = read_row(s, id[1], &mine);
    grad[0] = -(float)w->n;
    grad[s->spec->table[0].width] = -((float)(clock + 1) - mine);
    g.begun[me] = clock + 1;
    return rc < 0 ? rc : shmtrain_push_rows(s, 0, id, 2, grad);
}

static int work(struct run *run, shmtrain_session *s) {
    const uint32_t me = s->seat->rank;
    struct shmtrain_work w;
    struct shmt_look look;
    int rc;
    g_lives += s->seat->life > 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t clock = run->k->backend->seat->clock(s->seat);
        run->k->backend->seat->look(s->seat, &look);
        linger();
        if ((rc = read_all(run, s, clock, look.slowest)) < 0 || (rc = push_all(s, &w, clock)) < 0) return rc;
        linger();
        if ((rc = read_all(run, s, clock, look.slowest)) < 0) return rc; /* with the push that I have just made */
        if (g.n_made[me] == 0 || g.made[me][g.n_made[me] - 1] < clock + 1) g.made[me][g.n_made[me]++] = clock + 1;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void run_seed(const struct shmt_policy *policy, uint64_t seed, bool deaths) {
    static const uint32_t SEATS[] = {2, 3, 8};
    const struct kase k = {backend_called("shm"), *policy, SEATS[seed % 3], &SHMT_TEAM_FIBERS};
    const bool bounded = policy->staleness != SHMT_STALENESS_INF;
    struct run run;
    struct shmt_error e = {0};
    char sim[64];
    memset(&g, 0, sizeof g);
    g.seed = seed;
    hostile_begin(seed, k.n_seats);
    struct shmt_spec spec = spec_of(&k, 300, row_of(k.n_seats), seed % 2 ? 1 : WIDTH);
    spec.rate.base = 1;
    spec.cpu = SHMT_CPU_PORTABLE;
    spec.item = 1 + (uint32_t)hostile_draw(3);
    spec.cache_pulls = (uint32_t)shmt_max_u64(1, (bounded ? policy->staleness : 0) + hostile_draw(4));
    spec.may_die = deaths;
    struct shmt_virtual virtual = {.seed = seed, .stack_bytes = SHMT_FIBER_STACK};
    snprintf(sim, sizeof sim, deaths ? "look=10ns,death=%d@%dus,death=0@%dus" : "look=10ns", (int)(seed % k.n_seats),
             20 + (int)(seed % 37), 300 + (int)(seed % 91));
    if (shmt_sim_parse("--sim", sim, &virtual.sim, &e) < 0) fail_msg("%s", e.text);
    begin(&run, &k, spec);
    run.virtual = &virtual;
    if (go(&run, work, &e) != 0) fail_msg("seed %d: %s", (int)seed, e.text);
    float row[WIDTH]; /* or of one float */
    assert_int_equal(run.k->backend->store->read(run.store, 0, 0, 1, row), 0);
    const float all = (float)(run.spec.epochs * run.spec.n_examples), found = row[0];
    if (!deaths && found != all)
        fail_msg("seed %d: %g of %g examples are in the parameters", (int)seed, (double)found, (double)all);
    if (found < all) fail_msg("seed %d: of %g examples only %g are in the parameters", (int)seed, (double)all, (double)found);
    end(&run);
}

static const struct shmt_policy POLICIES[] = {{.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
                                              {.write = SHMT_WRITE_ATOMIC, .staleness = SHMT_STALENESS_INF},
                                              {.write = SHMT_WRITE_RACY, .staleness = 3},
                                              {.write = SHMT_WRITE_ATOMIC, .staleness = 1},
                                              {.write = SHMT_WRITE_LOCKED, .staleness = 2},
                                              {.write = SHMT_WRITE_RACY, .staleness = 0}};

static void search(bool deaths) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 6 : 60), only = hostile_asked("TEST_SEED", 0);
    uint64_t reads = 0, old = 0;
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++)
        for (uint64_t seed = only ? only : 1; seed <= (only ? only : n); seed++) {
            run_seed(&POLICIES[i], seed, deaths);
            reads += g.reads;
            old += g.old;
        }
    print_message("  %.1f %% of %d reads were older than the parameters\n", 100 * (double)old / (double)reads, (int)reads);
    assert_true(old * 10 > reads); /* else nothing was shown */
}

static void no_read_is_older_than_the_condition_allows(void **state) {
    (void)state;
    search(false);
}

static void a_next_life_begins_with_a_fresh_copy(void **state) {
    (void)state;
    g_lives = 0;
    search(true);
    assert_true(g_lives > 0);
}

/* ---- what is refused, and what is counted ---- */

static void refused(struct shmt_spec spec, const char *words) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void where_it_has_no_meaning_it_is_refused(void **state) {
    const struct kase k = {backend_called("shm"), ASYNC, 2, &SHMT_TEAM_THREADS};
    struct shmt_spec spec = spec_of(&k, 100, 40, 1), other;
    (void)state;
    spec.cache_pulls = 4;
    assert_int_equal(shmt_spec_check(&spec, NULL), 0);
    other = spec;
    other.policy.staleness = 4;
    assert_int_equal(shmt_spec_check(&other, NULL), 0);
    other.policy.staleness = 5;
    refused(other, "use --cache-pulls 5 or more");
    other = spec;
    other.policy = (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE};
    refused(other, "read while others update");
    other.policy.staleness = 2;
    refused(other, "read while others update");
    other = spec;
    other.policy = (struct shmt_policy){
        .write = SHMT_WRITE_RACY, .replicas = SHMT_REPLICAS_WORKER, .merge = SHMT_MERGE_MEAN, .merge_every = 1};
    refused(other, "use --replicas one");
    other = spec;
    other.n_seats++;
    other.n_guests = 1;
    refused(other, "leave out --name");
    other = spec;
    other.cache_pulls = SHMT_MAX_CACHE_PULLS + 1;
    refused(other, "at most 65535 clocks");
}

static void the_copies_are_in_the_plan(void **state) {
    static const char *const BACKENDS[] = {"shm", "plain"};
    (void)state;
    for (size_t b = 0; b < 2; b++)
        for (uint32_t planes = 0; planes < 2; planes++) {
            const struct kase k = {backend_called(BACKENDS[b]), ASYNC, b ? 1 : 3, &SHMT_TEAM_THREADS};
            struct shmt_spec spec = spec_of(&k, 100, 100000, 1);
            struct shmt_need without, with;
            if (planes) spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .epsilon = 1e-6f};
            assert_int_equal(k.backend->plan(&spec, &without, NULL), 0);
            assert_int_equal(shmt_pull_caches_bytes(&spec), 0);
            spec.cache_pulls = 10;
            assert_int_equal(k.backend->plan(&spec, &with, NULL), 0);
            const uint64_t more = with.total_bytes - without.total_bytes;
            assert_int_equal(more, shmt_pull_caches_bytes(&spec));
            assert_int_equal(with.other_bytes - without.other_bytes, more);
            assert_in_range(more, k.n_seats * (1 + planes) * 400000, k.n_seats * ((1 + planes) * 400000 + 70000));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_read_until_it_is_too_old_and_has_the_workers_own_writes),
        cmocka_unit_test(where_the_slowest_is_too_far_behind_each_item_renews_once),
        cmocka_unit_test(without_it_the_newest_is_read),
        cmocka_unit_test(delay_is_the_age_of_what_was_read),
        cmocka_unit_test(all_calls_read_the_copy_and_push_to_both),
        cmocka_unit_test(a_worker_alone_gets_the_same_bits_whatever_the_rule_is),
        cmocka_unit_test(no_read_is_older_than_the_condition_allows),
        cmocka_unit_test(a_next_life_begins_with_a_fresh_copy),
        cmocka_unit_test(where_it_has_no_meaning_it_is_refused),
        cmocka_unit_test(the_copies_are_in_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
