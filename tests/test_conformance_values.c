/* What every backend must do with values: apply each gradient once, give the same bits, show what the contract says. Work is in
 * test_conformance.c. */
#include "conformance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "math/logistic.h"

/* ---- updates ---- */

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
enum { N = 700, FEATURES = 6000, NNZ = 6 }; /* more parameters than backends add up without a map of what was touched */
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
    spec.rule.l2 = l2;
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
        assert_true(weight[column[0]] != 0);
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

static int setup(void **state) {
    (void)state;
    make_problem();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_applied_once_each),
        cmocka_unit_test(backends_and_numbers_of_workers_give_the_same_bits),
        cmocka_unit_test(one_live_worker_with_one_example_in_flight_is_plain_sgd),
        cmocka_unit_test(views_are_live_or_steady_as_they_say),
        cmocka_unit_test(a_lent_buffer_is_taken_as_the_gradient),
        cmocka_unit_test(pushed_rows_may_repeat),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
