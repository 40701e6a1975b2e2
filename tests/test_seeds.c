/* The protocols of shm under schedulers that mean harm. Workers are fibers, and at each labelled point (base/point.h) a strategy says
 * how long the others may go on before this one does: by chance, or the longer the rarer the point is, or one of them always last, or
 * all at one point. By that what happens in one run in a million among processes happens in every few hundred here, and a seed that
 * shows a fault shows it again.
 *
 * What must hold whatever happens: each example is trained on once in each epoch; nobody is further ahead of the slowest than the
 * staleness bound allows; gradients are applied as often as updates are counted, none lost or doubled; words that only grow do; and the
 * run ends.
 *
 *   TEST_SEEDS=N   so many seeds for each mode and number of workers; 240 unless said otherwise, or 12 under a sanitizer
 *   TEST_SEED=K    this one alone, in all modes */
#include "conformance.h"
#include "sanitized.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/point.h"
#include "base/random.h"
#include "consistency/mode.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

#define BATCH    64
#define EXAMPLES (BATCH * 5)
#define EPOCHS   3
#define SEATS    8
#define MOST_NS  UINT64_C(95000000) /* of a run. None takes a third of it; who is not woken naps for 100 ms (sync/gate.c) */
#define POINTS   256

enum strategy { BY_CHANCE, RARE_LAST, ONE_STARVES, ALL_AT_ONE_POINT, STRATEGIES };

/* One run, as its workers have seen it. One thread: no word needs an order. */
static struct {
    uint64_t seed, drawn, began_ns;
    enum strategy strategy;
    char what[96];
    uint32_t seen[EPOCHS][EXAMPLES];
    uint64_t items, clock[SEATS]; /* of the epoch */
    uint32_t epoch[SEATS];
    struct {
        const char *name;
        uint64_t passed;
    } point[POINTS];
} g;

/* Not by cmocka: whoever finds it stands on a fiber's stack. */
static _Noreturn void give_up(const char *why) {
    fprintf(stderr, "FAILED: %s: %s; again: TEST_SEED=%llu\n", g.what, why, (unsigned long long)g.seed);
    _exit(1);
}

static uint64_t draw(uint64_t below) { return shmt_below(shmt_hash64(g.seed, 0x706f696e, g.drawn++, 0), below); }

static uint64_t times_passed(const char *name) {
    const size_t first = ((uintptr_t)name >> 2) % POINTS;
    for (size_t k = 0; k < POINTS; k++) {
        const size_t at = (first + k) % POINTS;
        if (!g.point[at].name) g.point[at].name = name;
        if (g.point[at].name == name) return ++g.point[at].passed;
    }
    return 1;
}

/* How long the others go on first. */
static uint64_t delay_at(const char *name, uint32_t who) {
    const uint64_t passed = times_passed(name);
    switch (g.strategy) {
        case RARE_LAST:
            return draw(20000) / passed + draw(50);
        case ONE_STARVES:
            return who == g.seed / STRATEGIES % SEATS ? draw(5000) : draw(20);
        case ALL_AT_ONE_POINT:
            return shmt_mix64((uintptr_t)strlen(name) ^ (uint64_t)name[0] << 8 ^ g.seed) % 16 == 0 ? draw(20000) : 0;
        default:
            return draw(4) == 0 ? draw(3000) : 0;
    }
}

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who)) return;
    const uint64_t ns = delay_at(name, who), now_ns = shmt_now_ns();
    if (now_ns - g.began_ns > MOST_NS) give_up("somebody was not woken, or it does not end");
    if (ns > 0) shmt_host()->sleep_until(now_ns + ns);
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) give_up(what);
}

/* ---- a worker ---- */

static void note_item(const struct run *run, uint32_t me, const struct shmtrain_work *w) {
    const struct shmt_policy *policy = &run->spec.policy;
    if (g.epoch[me] != w->epoch) g.clock[me] = 0;
    g.epoch[me] = w->epoch;
    g.items++;
    for (uint64_t i = w->first; i < w->first + w->n; i++) g.seen[w->epoch][i]++;
    if (!shmt_policy_is_live(policy) || shmt_policy_has_replicas(policy) || policy->staleness == SHMT_STALENESS_INF) return;
    for (uint32_t other = 0; other < run->spec.n_seats; other++) {
        const uint64_t clock =
            g.epoch[other] == w->epoch ? g.clock[other] : 0; /* who has no item yet will have one, or there is none left */
        if (g.clock[me] > clock + policy->staleness) give_up("a worker is further ahead than the staleness bound allows");
    }
}

static int work(struct run *run, shmtrain_session *s) {
    const uint32_t me = s->seat->rank;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float weights[2], grad[2] = {-(float)w.n, 0};
        note_item(run, me, &w);
        if ((rc = shmtrain_pull(s, 0, 0, 2, weights)) < 0 || (rc = shmtrain_push(s, 0, 0, 2, grad)) < 0) return rc;
        g.clock[me]++;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- a run ---- */

static void check(struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    char why[96];
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t i = 0; i < EXAMPLES; i++)
            if (g.seen[epoch][i] != 1) give_up("an example was not trained on once");
    /* Each update adds 1, whoever's gradients it consists of; not so where they are averaged, or folded into later ones. */
    const bool adds_up = !shmt_policy_is_damped(policy) && policy->late != SHMT_LATE_FOLD &&
                         (!shmt_policy_has_replicas(policy) || policy->merge == SHMT_MERGE_SUM);
    const double updates = (double)updates_made(run), applied = (double)first_float(run);
    snprintf(why, sizeof why, "%.9g updates, of which %.9g are in the parameters", updates, applied);
    if (adds_up && applied != updates) give_up(why);
    if (shmt_policy_is_live(policy) && updates != (double)g.items) give_up("items and updates differ");
    if (shmt_policy_is_batched(policy) && updates != EPOCHS * EXAMPLES / BATCH) give_up("batches and updates differ");
}

static void run_seed(const struct kase *k, uint64_t seed) {
    char mode[64];
    struct run run;
    memset(&g, 0, sizeof g);
    g.seed = seed;
    g.strategy = (enum strategy)(seed % STRATEGIES);
    g.began_ns = shmt_now_ns();
    shmt_mode_name(&k->policy, NULL, mode, sizeof mode);
    snprintf(g.what, sizeof g.what, "%.60s, %u workers", mode, k->n_seats);
    struct shmt_spec spec = spec_of(k, EXAMPLES, 2, 1);
    spec.rate.base = 1;
    spec.item = 1 + (uint32_t)(seed / 7 % 16);
    if (shmt_policy_has_rounds(&k->policy)) spec.batch = spec.item * k->n_seats;
    const struct shmt_virtual virtual = {.seed = seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 10}};
    begin(&run, k, spec);
    run.virtual = &virtual;
    go_well(&run, work);
    check(&run);
    end(&run);
}

static uint64_t number_of(const char *variable, uint64_t standard) {
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : standard;
}

static uint64_t g_runs;

static void try_seeds(const struct kase *k) {
    const uint64_t n = number_of("TEST_SEEDS", SANITIZED ? 12 : 240), only = number_of("TEST_SEED", UINT64_MAX);
    if (k->kind != &SHMT_TEAM_FIBERS || k->n_seats < 2) return;
    for (uint64_t i = 0; i < (only == UINT64_MAX ? n : 1); i++, g_runs++) run_seed(k, only == UINT64_MAX ? i + 1 : only);
}

static void whatever_the_schedule_the_protocols_keep_their_promises(void **state) {
    (void)state;
    each_case(try_seeds);
    print_message("%llu runs\n", (unsigned long long)g_runs);
    assert_true(g_runs > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_the_schedule_the_protocols_keep_their_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
