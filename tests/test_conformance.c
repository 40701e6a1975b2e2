/* What every backend must do, in every mode, with every number of seats and kind of worker that it can have. The suite knows no
 * backend by name: it takes them from the list, and the first one is as good as the last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/crew.h"
#include "base/random.h"
#include "consistency/chunks.h"
#include "math/logistic.h"
#include "ps/session.h"

/* ---- cases ---- */

struct kase {
    const struct shmt_backend_ops *ops;
    struct shmt_policy policy;
    uint32_t n_seats;
    enum shmt_team_kind kind;
};

static const struct shmt_policy POLICIES[] = {
    {SHMT_WRITE_RACY, SHMT_STALENESS_INF}, {SHMT_WRITE_RACY, 0}, {SHMT_WRITE_AGGREGATE, 0}};

static void each_case(void (*test)(const struct kase *)) {
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    const struct shmt_backend_ops *ops;
    for (size_t b = 0; (ops = shmt_backend_at(b)); b++)
        for (size_t p = 0; p < 3; p++)
            for (size_t s = 0; s < (ops->caps & SHMT_CAP_MANY ? 4u : 1u); s++)
                for (int processes = 0; processes <= !!(ops->caps & SHMT_CAP_PROCESSES); processes++) {
                    const struct kase k = {ops, POLICIES[p], SEATS[s], processes ? SHMT_TEAM_PROCESSES : SHMT_TEAM_THREADS};
                    print_message("  %s, %s, %u %s\n", ops->name, shmt_policy_name(&k.policy), k.n_seats,
                                  processes ? "processes" : "threads");
                    test(&k);
                }
}

static struct shmt_spec spec_of(const struct kase *k, uint64_t n_examples, uint64_t rows, uint32_t width) {
    struct shmt_spec spec = {.n_seats = k->n_seats,
                             .n_workers = k->n_seats,
                             .n_examples = n_examples,
                             .epochs = 3,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = k->policy,
                             .batch = 64,
                             .n_chunks = shmt_chunks_of_batch(64),
                             .item = 24,
                             .order = {.seed = 7, .n_examples = n_examples, .shuffle = true},
                             .rate = {.base = 0.5f, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 1,
                             .board_bytes = 1 << 16};
    strcpy(spec.table[0].name, "t");
    spec.table[0].rows = rows;
    spec.table[0].width = width;
    spec.l2_rows[0] = rows;
    return spec;
}

/* ---- running a function at every seat ---- */

struct run {
    const struct kase *k;
    struct shmt_spec spec;
    struct shmt_store *store;
    int (*work)(struct run *, shmtrain_session *);
    shmt_epoch_end *epoch_end;
    void *board;
};

static int seat_body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    struct run *run = arg;
    shmtrain_session s;
    (void)team;
    int rc = shmt_session_enter(&s, run->k->ops, run->store, &run->spec, rank, 0, e);
    if (rc < 0) return rc;
    s.epoch_end = run->epoch_end;
    s.epoch_end_arg = run;
    rc = run->work(run, &s);
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    return rc;
}

static void begin(struct run *run, const struct kase *k, struct shmt_spec spec) {
    struct shmt_error e = {0};
    *run = (struct run){.k = k, .spec = spec};
    if (k->ops->create(&run->spec, &run->store, &e) != 0) fail_msg("create: %s", e.text);
    run->board = k->ops->board(run->store);
}

static void wake(void *arg) {
    struct run *run = arg;
    run->k->ops->rouse(run->store);
}

static int go(struct run *run, int (*work)(struct run *, shmtrain_session *), struct shmt_error *e) {
    const struct shmt_team_spec team = {.kind = run->k->kind,
                                        .n = run->k->n_seats,
                                        .body = seat_body,
                                        .arg = run,
                                        .abort = run->k->ops->abort_word(run->store),
                                        .roused = wake,
                                        .grace_ms = 5000,
                                        .what = "testing"};
    alarm(120);
    run->work = work;
    return shmt_team_run(&team, e);
}

static void go_well(struct run *run, int (*work)(struct run *, shmtrain_session *)) {
    struct shmt_error e = {0};
    const int rc = go(run, work, &e);
    if (rc != 0) fail_msg("%s: %s", shmtrain_status_name(rc), e.text);
}

static void end(struct run *run) { run->k->ops->destroy(run->store); }

static float first_float(struct run *run) {
    float x;
    assert_int_equal(run->k->ops->read(run->store, 0, 0, 1, &x), 0);
    return x;
}

/* ---- every example exactly once ---- */

/* Marks every example that it is handed: board[epoch * n + example]++, each byte by whoever got the example. */
static int mark_examples(struct run *run, shmtrain_session *s) {
    uint8_t *seen = run->board;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.n == 0 || w.n > 64) return SHMTRAIN_E_USAGE;
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) seen[w.epoch * run->spec.n_examples + order[i]]++;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void hands_out_every_example_once(const struct kase *k) {
    static const uint64_t SIZES[] = {1, 2, 63, 64, 65, 1000, 4999};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        struct run run;
        begin(&run, k, spec_of(k, SIZES[i], 4, 1));
        go_well(&run, mark_examples);
        for (uint64_t at = 0; at < 3 * SIZES[i]; at++) assert_int_equal(((uint8_t *)run.board)[at], 1);
        end(&run);
    }
}

static void every_example_is_handed_out_exactly_once_per_epoch(void **state) {
    (void)state;
    each_case(hands_out_every_example_once);
}

/* ---- updates ---- */

/* Every example adds 1 to row 0 and its number modulo 3 to row 1, negated: with a rate of 1, and sums, exact in f32. */
static int count_examples(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float grad[2] = {0, 0};
        for (uint64_t i = w.first; i < w.first + w.n; i++) {
            grad[0] -= 1;
            grad[1] -= (float)(i % 3);
        }
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* The update is the mean over the batch: with batches of 64 of 64 * 5 examples, each adds exactly 1 to row 0. */
static void loses_nothing(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 5, 2, 1);
    float value[2];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, count_examples);
    assert_int_equal(k->ops->read(run.store, 0, 0, 2, value), 0);
    if (shmt_policy_is_live(&k->policy)) { /* racy: each item adds 1; some may be lost, none is doubled */
        assert_true(value[0] >= 1 && value[0] <= 3 * 14);
        if (k->n_seats == 1) assert_true(value[0] == 3 * 14);
    } else {
        assert_true(value[0] == 3 * 5);
        assert_true(value[1] == 3 * (float)(319.0 / 320 * 320 / 64)); /* sum of i % 3 over 0..319 is 319, each over 64 */
    }
    end(&run);
}

static void gradients_are_applied_once_each(void **state) {
    (void)state;
    each_case(loses_nothing);
}

/* A small logistic problem, the same for all. */
enum { N = 700, FEATURES = 300, NNZ = 6 };
static uint64_t row_start[N + 1];
static uint32_t column[N * NNZ];
static float value_of[N * NNZ], label[N];

static void make_problem(void) {
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j < NNZ; j++) {
            const uint64_t h = shmt_hash64(3, i, j, 0);
            column[i * NNZ + j] = (uint32_t)(j * (FEATURES / NNZ) + shmt_below(h, FEATURES / NNZ));
            value_of[i * NNZ + j] = (float)shmt_unit(shmt_mix64(h)) - 0.4f;
        }
        row_start[i + 1] = (i + 1) * NNZ;
        label[i] = shmt_hash64(4, column[i * NNZ], 0, 0) & 1 ? 1.0f : -1.0f;
    }
}

struct problem_slopes {
    const uint32_t *order;
    double loss;
};

static void problem_slope(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct problem_slopes *p = arg;
    for (uint32_t k = 0; k < n; k++) {
        const float y = label[p->order[first + k]];
        float loss;
        slope_out[k] = y * shmt_logistic(y * dot[k], &loss);
        p->loss += (double)loss;
    }
}

static int learn(struct run *run, shmtrain_session *s) {
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        struct problem_slopes slopes = {.order = order};
        const struct shmtrain_csr x = {
            .n = (uint32_t)w.n, .bias = 1, .start = row_start, .id = column, .value = value_of, .order = order};
        if ((rc = shmtrain_each(s, 0, &x, run->k->policy.write == SHMT_WRITE_RACY ? 1 : 64, problem_slope, &slopes)) < 0)
            return rc;
        if ((rc = shmtrain_report(s, slopes.loss)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void learn_problem(const struct kase *k, float l2, float *weight_out) {
    struct run run;
    struct shmt_spec spec = spec_of(k, N, FEATURES + 1, 1);
    spec.l2 = l2;
    spec.l2_rows[0] = FEATURES;
    begin(&run, k, spec);
    go_well(&run, learn);
    assert_int_equal(k->ops->read(run.store, 0, 0, FEATURES + 1, weight_out), 0);
    end(&run);
}

/* What the first backend of the list gives with one seat, in a thread. */
static void oracle(const struct shmt_policy *policy, float l2, float *weight_out) {
    const struct shmt_backend_ops *ops = shmt_backend_at(0);
    const struct kase k = {ops, *policy, 1, SHMT_TEAM_THREADS};
    learn_problem(&k, l2, weight_out);
}

static void sums_the_same_bits(const struct kase *k) {
    float expected[FEATURES + 1], weight[FEATURES + 1];
    if (shmt_policy_is_live(&k->policy) && k->n_seats > 1) return; /* racy on purpose */
    for (int l2 = 0; l2 <= !shmt_policy_is_live(&k->policy); l2++) {
        oracle(&k->policy, (float)l2 * 0.01f, expected);
        learn_problem(k, (float)l2 * 0.01f, weight);
        assert_memory_equal(weight, expected, sizeof weight);
        assert_true(weight[0] != 0);
    }
}

static void backends_and_numbers_of_workers_give_the_same_bits(void **state) {
    (void)state;
    each_case(sums_the_same_bits);
}

/* Plain stochastic gradient descent, as one would write it down; lanes as store/kernels.h defines them. */
static float plain_dot(const float *w, const uint32_t *id, const float *x, uint32_t n) {
    float lane[8] = {0};
    for (uint32_t k = 0; k < n; k++) lane[k % 8] += x[k] * w[id[k]];
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static void plain_sgd(float *w) {
    const struct shmt_order order = {.seed = 7, .n_examples = N, .shuffle = true};
    for (uint32_t epoch = 0; epoch < 3; epoch++)
        for (uint32_t place = 0; place < N; place++) {
            uint32_t i;
            float loss;
            shmt_order_fill(&order, epoch, place, 1, &i);
            const uint32_t *id = column + i * NNZ;
            const float *x = value_of + i * NNZ, y = label[i];
            const float slope = y * shmt_logistic(y * (plain_dot(w, id, x, NNZ) + w[FEATURES]), &loss), step = 0.5f * slope;
            for (uint32_t k = 0; k < NNZ; k++) w[id[k]] -= step * x[k];
            w[FEATURES] -= step;
        }
}

static void is_plain_sgd(const struct kase *k) {
    float expected[FEATURES + 1] = {0}, weight[FEATURES + 1];
    if (k->n_seats > 1 || !shmt_policy_is_live(&k->policy)) return;
    plain_sgd(expected);
    learn_problem(k, 0, weight);
    assert_memory_equal(weight, expected, sizeof weight);
}

static void one_live_worker_with_one_example_in_flight_is_plain_sgd(void **state) {
    (void)state;
    each_case(is_plain_sgd);
}

/* ---- views ---- */

static int look(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    const float *at;
    uint64_t stride;
    float before[3], after[3], minus_one[3] = {-1, -1, -1};
    int rc, live;
    const bool is_live = shmt_policy_is_live(&run->k->policy);
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (shmtrain_pull(s, 0, 1, 1, before) != 0 || shmtrain_view(s, 0, 1, 1, &at, &stride, &live) != 0)
            return SHMTRAIN_E_USAGE;
        if (stride != 3 || live != is_live || shmtrain_push(s, 0, 1, 1, minus_one) != 0) return SHMTRAIN_E_USAGE;
        if (shmtrain_pull(s, 0, 1, 1, after) != 0) return SHMTRAIN_E_USAGE;
        /* one's own push shows at once in live modes (with one seat: exactly), and not before the clock in aggregate */
        if (!is_live && (memcmp(before, after, sizeof after) != 0 || memcmp(at, before, sizeof before) != 0))
            return SHMTRAIN_E_DATA;
        if (is_live && run->k->n_seats == 1 && !(after[0] > before[0] && at[0] == after[0])) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (shmtrain_pull(s, 0, 1, 1, after) != 0) return SHMTRAIN_E_USAGE;
        if (run->k->n_seats == 1 && is_live && !(after[0] > before[0])) return SHMTRAIN_E_DATA;
    }
    return rc;
}

static void shows_what_the_contract_says(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 500, 5, 3));
    go_well(&run, look);
    end(&run);
}

static void views_are_live_or_steady_as_they_say(void **state) {
    (void)state;
    each_case(shows_what_the_contract_says);
}

static int push_lent(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    float *grad;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_lend(s, 0, &grad)) < 0) return rc;
        for (int i = 0; i < 6; i++) grad[i] = -(float)w.n * (float)i;
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void takes_lent_gradients(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 4, 2, 3);
    float value[6];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, push_lent);
    assert_int_equal(k->ops->read(run.store, 0, 0, 2, value), 0);
    const float updates = value[1]; /* each adds i to element i */
    for (int i = 0; i < 6; i++)
        if (!shmt_policy_is_live(&k->policy) || k->n_seats == 1) assert_true(value[i] == (float)i * updates);
    if (!shmt_policy_is_live(&k->policy)) assert_true(updates == 3 * 4);
    end(&run);
}

static void a_lent_buffer_is_taken_as_the_gradient(void **state) {
    (void)state;
    each_case(takes_lent_gradients);
}

/* ---- rows ---- */

static int push_some_rows(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    const uint32_t id[3] = {4, 1, 4};
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float n = -(float)w.n, grad[6] = {n, n, 2 * n, 2 * n, 3 * n, 3 * n};
        float row[4];
        if ((rc = shmtrain_push_rows(s, 0, id, 3, grad)) < 0 || (rc = shmtrain_rows(s, 0, id, 2, row)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void pushes_rows(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 4, 6, 2);
    float value[12];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, push_some_rows);
    assert_int_equal(k->ops->read(run.store, 0, 0, 6, value), 0);
    for (int row = 0; row < 6; row++)
        if (row != 1 && row != 4) assert_true(value[2 * row] == 0 && value[2 * row + 1] == 0);
    if (!shmt_policy_is_live(&k->policy))
        assert_true(value[2] == 2 * 12 && value[3] == 2 * 12 && value[8] == 4 * 12 && value[9] == 4 * 12);
    assert_true(value[2] > 0 && value[8] > 0);
    end(&run);
}

static void pushed_rows_may_repeat(void **state) {
    (void)state;
    each_case(pushes_rows);
}

/* ---- epochs ---- */

/* Everybody adds up the same tally; the chief pins it up: board[epoch]. */
static int pin_tally(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    struct shmt_tally tally;
    if (s->ops->tally(s->seat, &tally) != 0) return SHMTRAIN_E_MEMORY;
    if (s->seat->rank == 0) ((struct shmt_tally *)run->board)[epoch] = tally;
    return shmt_session_meet(s);
}

static int report_ones(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch < 2 && (rc = shmtrain_report(s, (double)w.n * 0.5)) < 0) return rc; /* nothing in the last epoch */
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void tallies(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 777, 1, 1));
    run.epoch_end = pin_tally;
    go_well(&run, report_ones);
    for (int epoch = 0; epoch < 3; epoch++) {
        const struct shmt_tally *t = (struct shmt_tally *)run.board + epoch;
        assert_int_equal(t->examples, 777);
        /* What nobody reports is 0, and not the loss of the epoch before. */
        assert_true(t->loss == (epoch < 2 ? 777 * 0.5 : 0));
    }
    end(&run);
}

static void the_tally_of_an_epoch_counts_every_example(void **state) {
    (void)state;
    each_case(tallies);
}

/* Nobody may still train while one looks: the parameters at an epoch's end do not move. */
static int parameters_are_quiet(shmtrain_session *s, void *arg, uint32_t epoch) {
    float before[2], after[2];
    (void)arg;
    (void)epoch;
    for (int i = 0; i < 20; i++) {
        if (shmtrain_pull(s, 0, 0, 2, before) != 0) return SHMTRAIN_E_USAGE;
        usleep(100);
        if (shmtrain_pull(s, 0, 0, 2, after) != 0) return SHMTRAIN_E_USAGE;
        if (memcmp(before, after, sizeof after) != 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "the parameters moved");
    }
    return 0;
}

static void keeps_quiet(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 3000, 2, 1));
    run.epoch_end = parameters_are_quiet;
    go_well(&run, count_examples);
    end(&run);
}

static void parameters_do_not_move_at_the_end_of_an_epoch(void **state) {
    (void)state;
    each_case(keeps_quiet);
}

/* ---- ending early ---- */

static void does_so_many_steps(const struct kase *k) {
    static const uint64_t LIMITS[] = {1, 5, 17, 40};
    for (int i = 0; i < 4; i++) {
        struct run run;
        struct shmt_spec spec = spec_of(k, 64 * 10, 2, 1);
        struct shmt_tally *t;
        uint64_t done = 0;
        spec.max_steps = LIMITS[i];
        begin(&run, k, spec);
        run.epoch_end = pin_tally;
        go_well(&run, report_ones);
        t = run.board;
        for (int epoch = 0; epoch < 3; epoch++) done += t[epoch].examples;
        const uint64_t all = 3 * 640, step = shmt_spec_step_examples(&spec);
        const uint64_t steps_per_epoch = shmt_spec_steps(&spec), whole = LIMITS[i] / steps_per_epoch,
                       rest = LIMITS[i] % steps_per_epoch;
        const uint64_t expected = whole >= 3 ? all : whole * 640 + rest * step;
        assert_int_equal(done, expected);
        end(&run);
    }
}

static void a_run_does_exactly_as_many_steps_as_it_may(void **state) {
    (void)state;
    each_case(does_so_many_steps);
}

/* The first one to have had 4 items asks for a stop; all must leave, and no batch may be left half-applied. */
static int stop_after_four(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc, items = 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (++items == 4) run->k->ops->stop(run->store);
    }
    return rc;
}

static void stops(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 200, 1, 1);
    spec.rate.base = 1;
    begin(&run, k, spec);
    run.epoch_end = pin_tally;
    go_well(&run, stop_after_four);
    const struct shmt_tally *t = run.board;
    assert_true(t[0].examples > 0 && t[0].examples < 64 * 200);
    assert_int_equal(t[1].examples, 0);
    if (!shmt_policy_is_live(&k->policy)) {
        assert_int_equal(t[0].examples % 64, 0);
        assert_true(first_float(&run) == (float)(t[0].examples / 64));
    }
    end(&run);
}

static void a_stop_ends_the_run_between_updates(void **state) {
    (void)state;
    each_case(stops);
}

/* The last one fails as soon as it has been at the store once; it may have got no item, when others were quicker. */
static int fail_at_once(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1) break;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    if (s->seat->rank == s->spec->n_seats - 1) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "on purpose");
    return rc;
}

static void ends_all_when_one_fails(const struct kase *k) {
    struct run run;
    struct shmt_error e = {0};
    struct shmt_spec spec = spec_of(k, 64 * 1000, 1, 1);
    spec.epochs = 100;
    begin(&run, k, spec);
    assert_int_equal(go(&run, fail_at_once, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "on purpose");
    end(&run);
}

static void one_workers_failure_ends_the_others_and_is_told(void **state) {
    (void)state;
    each_case(ends_all_when_one_fails);
}

/* ---- misuse ---- */

#define REFUSED(call)                                                                                                          \
    do {                                                                                                                       \
        if ((call) != SHMTRAIN_E_USAGE || s->error.text[0] == '\0') return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%s", #call); \
        shmt_error_clear(&s->error);                                                                                           \
    } while (0)

static int misuse(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    float x[8] = {0}, *lent;
    const uint32_t beyond = 6;
    const uint64_t start[2] = {0, 1};
    const uint32_t id[1] = {0};
    const struct shmtrain_csr csr = {.n = 1, .start = start, .id = id};
    int rc;
    (void)run;
    REFUSED(shmtrain_clock(s, NULL));
    REFUSED(shmtrain_push(s, 0, 0, 1, x));
    REFUSED(shmtrain_report(s, 1));
    if ((rc = shmtrain_next(s, &w)) == 1) { /* another may have taken all the work */
        REFUSED(shmtrain_next(s, &w));
        REFUSED(shmtrain_pull(s, 1, 0, 1, x));
        REFUSED(shmtrain_pull(s, -1, 0, 1, x));
        REFUSED(shmtrain_pull(s, 0, 6, 1, x));
        REFUSED(shmtrain_pull(s, 0, UINT64_MAX, 2, x));
        REFUSED(shmtrain_push_rows(s, 0, &beyond, 1, x));
        REFUSED(shmtrain_dot(s, 0, &csr, x)); /* width 2 */
        if ((rc = shmtrain_lend(s, 0, &lent)) < 0) return rc;
        REFUSED(shmtrain_push(s, 0, 0, 1, x));
        REFUSED(shmtrain_clock(s, NULL));
        memset(lent, 0, 12 * sizeof *lent);
        if ((rc = shmtrain_push(s, 0, 0, 6, lent)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    while (rc >= 0 && (rc = shmtrain_next(s, &w)) == 1) rc = shmtrain_clock(s, NULL);
    return rc;
}

static void refuses_misuse(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 1000, 6, 2));
    go_well(&run, misuse);
    end(&run);
}

static void calls_out_of_order_are_refused_with_a_sentence(void **state) {
    (void)state;
    each_case(refuses_misuse);
}

static void refuses_impossible_specs(const struct kase *k) {
    struct shmt_need need;
    struct shmt_error e = {0};
    struct shmt_spec spec = spec_of(k, 10, 1, 1);
    spec.n_examples = 0;
    assert_int_equal(k->ops->plan(&spec, &need, &e), SHMTRAIN_E_USAGE);
    spec = spec_of(k, 10, UINT64_MAX / 4, 1000);
    assert_true(k->ops->plan(&spec, &need, NULL) < 0);
    spec = spec_of(k, 10, 1, 1);
    spec.n_tables = 0;
    assert_int_equal(k->ops->plan(&spec, &need, NULL), SHMTRAIN_E_USAGE);
    spec = spec_of(k, 10, 1, 1);
    spec.policy.staleness = 3;
    assert_int_equal(k->ops->plan(&spec, &need, NULL), SHMTRAIN_E_USAGE);
}

static void impossible_specs_are_refused_before_memory_is_made(void **state) {
    (void)state;
    each_case(refuses_impossible_specs);
}

static int setup(void **state) {
    (void)state;
    make_problem();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_is_handed_out_exactly_once_per_epoch),
        cmocka_unit_test(gradients_are_applied_once_each),
        cmocka_unit_test(backends_and_numbers_of_workers_give_the_same_bits),
        cmocka_unit_test(one_live_worker_with_one_example_in_flight_is_plain_sgd),
        cmocka_unit_test(views_are_live_or_steady_as_they_say),
        cmocka_unit_test(a_lent_buffer_is_taken_as_the_gradient),
        cmocka_unit_test(pushed_rows_may_repeat),
        cmocka_unit_test(the_tally_of_an_epoch_counts_every_example),
        cmocka_unit_test(parameters_do_not_move_at_the_end_of_an_epoch),
        cmocka_unit_test(a_run_does_exactly_as_many_steps_as_it_may),
        cmocka_unit_test(a_stop_ends_the_run_between_updates),
        cmocka_unit_test(one_workers_failure_ends_the_others_and_is_told),
        cmocka_unit_test(calls_out_of_order_are_refused_with_a_sentence),
        cmocka_unit_test(impossible_specs_are_refused_before_memory_is_made),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
