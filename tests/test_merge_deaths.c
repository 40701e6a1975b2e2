/* Deaths in the middle of a merge: a worker is killed at labelled points of it (base/point.h; merge.c, merging.c and stages.c are
 * compiled into this program once more), and what the rule adds up must be there exactly once behind the run, as if nobody had died.
 * Which piece is whose does not matter to these numbers, and they are exact in f32. */
#include "replicas_help.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/point.h"
#include "consistency/mode.h"
#include "update/redo.h"

enum { SEATS = 3, ROWS = 6000 }; /* some blocks, most of which rest in most merges */

/* What the workers of a run and the test both see. */
static struct plan {
    char name[32]; /* where; "": nobody dies */
    uint32_t rank; /* who */
    uint64_t pass; /* when it comes by for the so-many-eth time, from 1, in all its lives */
    _Atomic uint64_t passes;
    _Atomic uint32_t hit;
} * g_plan;
static uint32_t g_rank = UINT32_MAX;
static uint64_t g_clock; /* of worker 0, behind the last run */

void shmt_point(const char *name) {
    if (g_rank != g_plan->rank || strcmp(name, g_plan->name) != 0) return;
    const uint64_t pass = load_relaxed(&g_plan->passes) + 1;
    store_relaxed(&g_plan->passes, pass);
    if (pass != g_plan->pass) return;
    store_relaxed(&g_plan->hit, 1);
    raise(SIGKILL);
}

void shmt_point_grows(const char *what, uint64_t before, uint64_t after) { (void)what, (void)before, (void)after; }

/* The word that adds up whole numbers, whatever the order: weights, or sums of squares. */
static uint32_t sums_in(enum shmt_rule_kind rule) { return rule == SHMT_RULE_ADAGRAD ? 1 : rule == SHMT_RULE_FTRL ? 2 : 0; }

/* ftrl, right behind a merge: the weights of my copy are what its state says. */
static int check_weights(const struct run *run, shmtrain_session *s) {
    const struct shmt_store *store = run->store;
    const float *const weight = shmt_shm_replica(store, g_rank, 0), *const state = shmt_shm_replica(store, g_rank, 1);
    float follows[ROWS];
    struct shmt_update u;
    memcpy(follows, weight, sizeof follows);
    shmt_spec_update(&store->spec, 0, 0, &u);
    shmt_flat_follow(&store->spec, &store->layout.flat, follows, state, store->layout.cover.n, 0, ROWS, &u);
    for (uint32_t row = 0; row < ROWS; row++)
        if (follows[row] != weight[row])
            return shmt_fail(&s->error, SHMTRAIN_E_DATA, "the weight of row %u is %g instead of %g", row, (double)weight[row],
                             (double)follows[row]);
    return 0;
}

/* Each item moves row 0, and a row of three items in a row, which different seats have at about one time. */
static int move_rows(struct run *run, shmtrain_session *s) {
    const bool follows = run->spec.rule.kind == SHMT_RULE_FTRL && run->spec.policy.replicas == SHMT_REPLICAS_WORKER;
    struct shmtrain_work w;
    int rc;
    g_rank = s->seat->rank;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint32_t row[2] = {0, 1 + (uint32_t)(w.first / ITEM / 3 * 1031 % (ROWS - 1))};
        const float grad[2] = {-(float)w.n, -(float)w.n};
        if ((rc = shmtrain_push_rows(s, 0, row, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (follows && (rc = check_weights(run, s)) < 0) return rc;
    }
    return rc;
}

static void train(const struct kase *k, enum shmt_rule_kind rule, float *out) {
    struct run run;
    struct shmt_spec spec = spec_of_items(k, ITEMS, ROWS);
    spec.rule = rule_of(rule);
    spec.rule.l2 = 0;
    spec.cpu = SHMT_CPU_PORTABLE; /* which has the points */
    spec.order.shuffle = false;
    spec.may_die = true;
    store_relaxed(&g_plan->passes, 0);
    store_relaxed(&g_plan->hit, 0);
    begin(&run, k, spec);
    run.epoch_end = check_copies;
    go_well(&run, move_rows);
    read_with_state(&run, out);
    g_clock = load_relaxed(&run.store->front[0].gate.clock); /* the workers have been waited for */
    assert_state_is_possible(rule, k->policy.merge, ROWS, out);
    end(&run);
}

static void compare(const struct kase *k, enum shmt_rule_kind rule, const float *right, const float *out) {
    char name[64];
    shmt_mode_name(&k->policy, NULL, name, sizeof name);
    for (uint32_t row = 0, word = sums_in(rule); row < ROWS; row++)
        if (out[word * ROWS + row] != right[word * ROWS + row])
            fail_msg("%s, %s, worker %u died at pass %llu of %s: %g instead of %g in row %u", name, shmt_rule_name(rule),
                     g_plan->rank, (unsigned long long)g_plan->pass, g_plan->name, (double)out[word * ROWS + row],
                     (double)right[word * ROWS + row], row);
}

static uint32_t die_in_merges(struct shmt_policy policy, enum shmt_rule_kind rule) {
    static const char *const POINTS[] = {"merge:logged", "merge:master", "merge:written",     "merge:shifted",
                                         "merge:before", "merge:after",  "merge-alone:taken", "merge-alone:held"};
    static const uint64_t PASSES[] = {1, 2, 7, 12, 40};
    static float right[(1 + SHMT_MAX_PLANES) * ROWS], out[(1 + SHMT_MAX_PLANES) * ROWS];
    const struct kase k = case_of(policy, SEATS, &SHMT_TEAM_PROCESSES);
    uint32_t hits = 0;
    g_plan->name[0] = '\0';
    train(&k, rule, right);
    for (size_t i = 0; i < sizeof POINTS / sizeof *POINTS; i++)
        for (g_plan->rank = 0; g_plan->rank < SEATS; g_plan->rank += 2)
            for (size_t at = 0; at < sizeof PASSES / sizeof *PASSES; at++) {
                snprintf(g_plan->name, sizeof g_plan->name, "%s", POINTS[i]);
                g_plan->pass = PASSES[at];
                train(&k, rule, out);
                compare(&k, rule, right, out);
                if (load_relaxed(&g_plan->hit) == 0) break; /* it does not come by so often */
                hits++;
            }
    return hits;
}

/* By sgd, adagrad, and so on to `last`. */
static void die_by_rules(struct shmt_policy policy, enum shmt_rule_kind last) {
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_ADAGRAD, SHMT_RULE_FTRL};
    for (size_t r = 0; r == 0 || RULES[r - 1] != last; r++) assert_true(die_in_merges(policy, RULES[r]) >= 12);
}

static void together_a_change_is_merged_once(void **state) {
    (void)state;
    die_by_rules(WORKER(SHMT_WRITE_RACY, 0, 1, SHMT_MERGE_SUM), SHMT_RULE_FTRL);
}

static void alone_a_change_is_merged_once(void **state) {
    (void)state;
    die_by_rules(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_SUM), SHMT_RULE_FTRL);
    die_by_rules(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), SHMT_RULE_FTRL); /* without curvature: all of a change */
}

static void beside_pushes_a_change_is_merged_once(void **state) {
    (void)state;
    die_by_rules(NODE(SHMT_WRITE_ATOMIC, INF, 1, SHMT_MERGE_SUM), SHMT_RULE_ADAGRAD);
    die_by_rules(NODE(SHMT_WRITE_LOCKED, INF, 1, SHMT_MERGE_DAMPED), SHMT_RULE_FTRL);
}

/* Who merges alone has one stretch for each item here, and comes to the last merge of an epoch with a clock that counts them. A life that
 * goes on from any of its records finds that clock, and not one that has its stretches twice. */
static void alone_a_clock_counts_each_stretch_once(void **state) {
    enum { RECORDS = 24 };
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_SUM), 1, &SHMT_TEAM_PROCESSES);
    float out[(1 + SHMT_MAX_PLANES) * ROWS];
    (void)state;
    g_plan->name[0] = '\0';
    train(&k, SHMT_RULE_SGD, out);
    const uint64_t clock = g_clock;
    assert_true(clock >= ITEMS);
    snprintf(g_plan->name, sizeof g_plan->name, "note:after");
    g_plan->rank = 0;
    for (g_plan->pass = 1; g_plan->pass <= RECORDS; g_plan->pass++) {
        train(&k, SHMT_RULE_SGD, out);
        if (load_relaxed(&g_plan->hit) == 0) break;
        if (g_clock != clock)
            fail_msg("worker 0 died behind record %llu: its clock is %llu instead of %llu", (unsigned long long)g_plan->pass,
                     (unsigned long long)g_clock, (unsigned long long)clock);
    }
    assert_true(g_plan->pass > 5 * EPOCHS); /* all stages of an epoch, in each */
}

/* ---- a log that is not to be believed ---- */

static void what_a_damaged_log_says_is_not_written(void **state) {
    (void)state;
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_SUM), SEATS, &SHMT_TEAM_PROCESSES);
    struct shmt_spec spec = spec_of_items(&k, ITEMS, ROWS);
    struct run run;
    spec.may_die = true;
    begin(&run, &k, spec);
    const uint64_t floats = run.store->layout.cover.n;
    const struct shmt_redo_log LOGS[] = {{.at = floats, .n = 1},
                                         {.at = floats - 1, .n = 2},
                                         {.at = UINT64_MAX, .n = 2},
                                         {.at = 0, .n = 0},
                                         {.at = 0, .n = SHMT_REDO_FLOATS + 1},
                                         {.at = 0, .n = UINT32_MAX},
                                         {.n = 1, .word = 1},
                                         {.n = 1, .word = UINT32_MAX},
                                         {.n = 1, .replica = SEATS},
                                         {.n = 1, .replica = UINT32_MAX - 1}};
    struct shmt_redo redo = shmt_shm_redo(run.store, 1);
    assert_non_null(redo.open);
    const size_t n = run.store->layout.bytes - run.store->layout.weight.off;
    unsigned char *const before = malloc(n);
    assert_non_null(before);
    for (size_t i = 0; i < sizeof LOGS / sizeof *LOGS; i++) {
        *redo.log = LOGS[i];
        redo.log->out[0] = redo.log->from[0] = 7;
        store_relaxed(redo.open, 1);
        memcpy(before, run.store->weight, n);
        k.backend->store->reclaim(run.store, 1, 1);
        assert_memory_equal(run.store->weight, before, n);
    }
    *redo.log = (struct shmt_redo_log){.at = ROWS - 1, .n = 1, .replica = 2, .out = {7}};
    shmt_shm_replica(run.store, 2, 0)[ROWS - 1] = 5;
    k.backend->store->reclaim(run.store, 1, 1);
    assert_true(run.store->weight[ROWS - 1] == 7.0f);
    assert_true(shmt_shm_base(run.store, 2, 0)[ROWS - 1] == 5.0f);
    assert_int_equal(load_relaxed(redo.open), 0);
    free(before);
    end(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(together_a_change_is_merged_once),       cmocka_unit_test(alone_a_change_is_merged_once),
        cmocka_unit_test(beside_pushes_a_change_is_merged_once),  cmocka_unit_test(alone_a_clock_counts_each_stretch_once),
        cmocka_unit_test(what_a_damaged_log_says_is_not_written),
    };
    g_plan = mmap(NULL, sizeof *g_plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g_plan == MAP_FAILED) return 1;
    return cmocka_run_group_tests_name("merge_deaths", tests, NULL, NULL);
}
