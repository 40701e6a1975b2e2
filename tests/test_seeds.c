/* The protocols of shm under schedulers that mean harm (hostile.h). Workers are fibers, so what happens in one run in a million among
 * processes happens in every few hundred here, and a seed that shows a fault shows it again. test_seeds_deaths.c is the same with
 * workers that die, pauses and stops.
 *
 * What must hold whatever happens: each example is trained on once in each epoch; nobody is further ahead of the slowest than the
 * staleness bound allows; gradients are applied as often as updates are counted, none lost or doubled; words that only grow do; and the
 * run ends. seeds_watch.c looks at what comes of pieces.
 *
 * A seed that fails is made smaller, and printed with the command that shows it again (seeds_shrink.c). tests/check_plants plants
 * faults, which must be found.
 *
 *   TEST_SEEDS=N   so many seeds for each mode and number of workers; 240 unless said otherwise, or 12 under a sanitizer
 *   TEST_SEED=K    this one alone, in all modes
 *   TEST_MODE=M    in this one alone, by the name that a failing run is printed with
 *   TEST_WORKERS, TEST_EPOCHS, TEST_EXAMPLES, TEST_ITEM, TEST_UNTIL, TEST_DELAYS, TEST_TRIES: see seeds_shrink.h */
#include "conformance.h"
#include "hostile.h"
#include "sanitized.h"
#include "seeds_shrink.h"
#include "seeds_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cpu.h"
#include "base/point.h"
#include "fibers/scheduler.h"
#include "sync/host.h"

#define MOST_NS \
    UINT64_C(95000000) /* of a run, whose delays are a third at most; who is not woken naps for 100 ms (sync/gate.c) */

/* One run, as its workers have seen it. One thread: no word needs an order. */
static struct {
    uint64_t began_ns, delayed_ns;
    uint32_t seen[SEEDS_MOST_EPOCHS][SEEDS_MOST_EXAMPLES];
    uint64_t items;
} g;

void shmt_point(const char *name) {
    uint32_t who;
    if (!shmt_fiber_asks(&who)) return;
    const uint64_t ns = hostile_delay(name, who, NULL), now_ns = shmt_now_ns();
    seeds_watch_point();
    if (g.began_ns == 0) g.began_ns = now_ns; /* of fibers: before them time is the machine's */
    if (now_ns - g.began_ns > MOST_NS) seeds_fail("somebody was not woken, or it does not end");
    if (ns == 0 || g.delayed_ns > MOST_NS / 3 || !seeds_delays()) return;
    g.delayed_ns += ns;
    shmt_host()->sleep_until(now_ns + ns);
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) {
    if (after < before) seeds_fail("a word that only grows goes back: %s", what);
}

/* ---- a worker ---- */

static int work(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        g.items++;
        for (uint64_t i = w.first; i < w.first + w.n; i++)
            if (g.seen[w.epoch][i]++ > 0) seeds_fail("an example is dealt twice in an epoch");
        if ((rc = seeds_watch_piece(s, &w)) < 0) return rc;
    }
    return rc;
}

/* ---- a run ---- */

static void check(struct run *run) {
    const struct shmt_policy *policy = &run->spec.policy;
    const uint64_t updates = updates_made(run), batches = shmt_ceil_div(run->spec.n_examples, SEEDS_BATCH);
    for (uint32_t epoch = 0; epoch < run->spec.epochs; epoch++)
        for (uint32_t i = 0; i < run->spec.n_examples; i++)
            if (g.seen[epoch][i] != 1) seeds_fail("an example was not trained on once");
    if (shmt_policy_is_live(policy) && updates != g.items) seeds_fail("items and updates differ");
    if (shmt_policy_is_batched(policy) && updates != run->spec.epochs * batches) seeds_fail("batches and updates differ");
    seeds_watch_end();
}

static void run_seed(const struct seeds_case *c) {
    const struct kase *k = &c->kase;
    struct run run;
    struct shmt_error e = {0};
    memset(&g, 0, sizeof g);
    hostile_begin(c->seed, SEEDS_MOST_SEATS);
    seeds_begin(c);
    struct shmt_spec spec = spec_of(k, c->knob[SEEDS_EXAMPLES], 2, 1);
    spec.epochs = (uint32_t)c->knob[SEEDS_EPOCHS];
    spec.rate.base = 1;
    spec.cpu = SHMT_CPU_PORTABLE; /* whose kernels have the points */
    spec.item = (uint32_t)c->knob[SEEDS_ITEM];
    if (shmt_policy_has_rounds(&k->policy)) spec.batch = spec.item * k->n_seats;
    seeds_watch_tables(&spec);
    const struct shmt_virtual virtual = {.seed = c->seed, .stack_bytes = SHMT_FIBER_STACK, .sim = {.look_ns = 10}};
    begin(&run, k, spec);
    run.virtual = &virtual;
    run.epoch_end = seeds_watch_epoch_end;
    seeds_watch_begin(&run);
    if (go(&run, work, &e) != 0) seeds_fail("%s", e.text);
    check(&run);
    end(&run);
}

static void try_seed(const struct kase *k, uint64_t seed) {
    struct seeds_case c = {.kase = *k, .seed = seed};
    c.knob[SEEDS_WORKERS] = k->n_seats;
    c.knob[SEEDS_EPOCHS] = shmt_min_u64(seeds_asked(SEEDS_EPOCHS, UINT64_MAX), SEEDS_MOST_EPOCHS);
    c.knob[SEEDS_EXAMPLES] = shmt_min_u64(seeds_asked(SEEDS_EXAMPLES, UINT64_MAX), SEEDS_MOST_EXAMPLES);
    c.knob[SEEDS_ITEM] = seeds_asked(SEEDS_ITEM, 1 + seed / 7 % 16);
    c.knob[SEEDS_UNTIL] = seeds_asked(SEEDS_UNTIL, UINT64_MAX);
    c.knob[SEEDS_DELAYS] = seeds_asked(SEEDS_DELAYS, UINT64_MAX);
    run_seed(&c);
}

/* Where a number of workers is asked for, it takes the place of the largest. */
static void try_seeds(const struct kase *listed) {
    const uint64_t n = hostile_asked("TEST_SEEDS", SANITIZED ? 12 : 240), only = hostile_asked("TEST_SEED", UINT64_MAX);
    const uint64_t asked = seeds_asked(SEEDS_WORKERS, 0);
    struct kase k = *listed;
    if (asked > 0) k.n_seats = (uint32_t)asked;
    if (k.kind != &SHMT_TEAM_FIBERS || k.n_seats < 2 || !seeds_asks_for(&k.policy)) return;
    if (asked > 0 && (listed->n_seats != SEEDS_MOST_SEATS || asked > SEEDS_MOST_SEATS || !seeds_may_have(&k, asked))) return;
    for (uint64_t i = 0; i < (only == UINT64_MAX ? n : 1); i++) try_seed(&k, only == UINT64_MAX ? i + 1 : only);
}

static void try_all(void) { each_case(try_seeds); }

static void whatever_the_schedule_the_protocols_keep_their_promises(void **state) {
    (void)state;
    assert_int_equal(seeds_search(try_all, run_seed), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_the_schedule_the_protocols_keep_their_promises)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
