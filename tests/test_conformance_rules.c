/* What every backend must do with update rules, in each write mode that a rule bears, over several epochs, with L1 and L2,
 * from weights that were set from outside: one live worker has the bits of the store's plain loops, example by example, in
 * weights and state; in `aggregate` any number of workers has the bits of the first backend of the list, and these follow
 * the formulas. */
#include "conformance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "math/logistic.h"
#include "ps/strata.h"
#include "sanitized.h"
#include "kernels_reference.h"

/* ---- a small logistic problem, the same for all ---- */

enum { N = 700, FEATURES = 6000, NNZ = 6 }; /* more parameters than backends add up without a map of what was touched */
enum { ROWS = FEATURES + 1 };               /* and a bias */
static uint64_t row_start[N + 1];
static uint32_t column[N * NNZ];
static float value_of[N * NNZ], label[N], first_weight[ROWS], share_of[FEATURES];

static int make_problem(void **state) {
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j < NNZ; j++) {
            const uint64_t h = shmt_hash64(3, i, j, 0);
            column[i * NNZ + j] = (uint32_t)(j * (FEATURES / NNZ) + shmt_below(h, FEATURES / NNZ));
            value_of[i * NNZ + j] = (float)shmt_unit(shmt_mix64(h)) - 0.4f;
        }
        row_start[i + 1] = (i + 1) * NNZ;
        label[i] = shmt_hash64(4, column[i * NNZ], 0, 0) & 1 ? 1.0f : -1.0f;
    }
    for (uint32_t i = 0; i < ROWS; i++) first_weight[i] = i % 3 ? 0 : 0.1f * (float)(i % 7) - 0.3f;
    for (uint32_t i = 0; i < N * NNZ; i++) share_of[column[i]]++;
    for (uint32_t i = 0; i < FEATURES; i++) share_of[i] = share_of[i] > 0 ? (float)N / share_of[i] : 1;
    return 0;
}

static float slope_at(uint32_t example, float dot, float *loss_out) {
    const float y = label[example];
    return y * shmt_logistic(y * dot, loss_out);
}

struct slopes {
    const uint32_t *order;
    double loss;
};

static void slope_of(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    struct slopes *s = arg;
    for (uint32_t k = 0; k < n; k++) {
        float loss;
        slope_out[k] = slope_at(s->order[first + k], dot[k], &loss);
        s->loss += (double)loss;
    }
}

static int learn(struct run *run, shmtrain_session *s) {
    const uint32_t group = shmt_policy_is_live(&run->spec.policy) ? 1 : 64;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        struct slopes slopes = {.order = order};
        const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr),
                                       .n = (uint32_t)w.n,
                                       .bias = 1,
                                       .start = row_start,
                                       .id = column,
                                       .value = value_of,
                                       .order = order};
        if ((rc = shmtrain_each(s, 0, &x, group, slope_of, &slopes)) < 0) return rc;
        if ((rc = shmtrain_report(s, slopes.loss)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- runs ---- */

#define N_RECIPES (3 * SHMT_N_RULES)

static struct shmt_rule recipe(uint32_t i) {
    static const float L1S[] = {0, 0, 0.002f}, L2S[] = {0, 0.01f, 0.01f};
    return (struct shmt_rule){.kind = i / 3,
                              .l1 = L1S[i % 3],
                              .l2 = L2S[i % 3],
                              .momentum = 0.5f,
                              .beta2 = 0.9f,
                              .epsilon = 1e-3f,
                              .beta = 1,
                              .rho = 0.9f,
                              .weight_decay = i / 3 == SHMT_RULE_ADAMW || i / 3 == SHMT_RULE_LAMB ? L2S[i % 3] : 0,
                              .clip = i % 3 == 2 ? 0.3f : 0};
}

static struct shmt_spec spec_for(const struct kase *k, const struct shmt_rule *rule) {
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    spec.rule = *rule;
    spec.rate.base = 0.1f;
    const bool clips = !shmt_policy_is_live(&k->policy) && rule->l1 == 0 && rule->l2 > 0;
    if (clips && !shmt_rule_needs_norms(rule->kind)) spec.rule.clip_norm = 0.05f;
    if (rule->kind != SHMT_RULE_FTRL) spec.rate.kind = SHMT_RATE_INVERSE, spec.rate.power = 0.5f, spec.rate.every = 1;
    spec.l2_rows[0] = FEATURES;
    spec.l2_shares = shmt_policy_is_live(&k->policy) && shmt_rule_regularises(rule);
    return spec;
}

/* Weights, then the planes of state. */
typedef float outcome[1 + SHMT_MAX_PLANES][ROWS];

static void train(const struct kase *k, const struct shmt_rule *rule, outcome out) {
    struct run run;
    begin(&run, k, spec_for(k, rule));
    if (run.spec.l2_shares) memcpy(shmt_array_at(k->backend, run.store, SHMT_ARRAY_L2_SHARE), share_of, sizeof share_of);
    assert_int_equal(k->backend->store->write(run.store, 0, 0, ROWS, first_weight), 0);
    go_well(&run, learn);
    memset(out, 0, sizeof(outcome));
    assert_int_equal(k->backend->store->read(run.store, 0, 0, ROWS, out[0]), 0);
    for (uint32_t p = 0; p < SHMT_MAX_PLANES; p++) {
        const float *plane = k->backend->store->array(run.store, SHMT_ARRAY_STATE, 0, p).at;
        assert_int_equal(plane != NULL, p < shmt_rule_planes(rule, shmt_policy_is_live(&k->policy)));
        if (plane) memcpy(out[1 + p], plane, sizeof out[1 + p]);
    }
    end(&run);
}

static bool is_legal(const struct kase *k, const struct shmt_rule *rule) {
    return shmt_rule_check_policy(rule, &k->policy, NULL) == 0;
}

/* ---- batches: the same bits ---- */

static void gives_the_same_bits(const struct kase *k) {
    static outcome expected, got;
    const struct kase first = {shmt_backend_at(0), k->policy, 1, &SHMT_TEAM_THREADS};
    if (!shmt_policy_is_batched(&k->policy) || (WATCHES_RACES && k->n_seats == 1)) return;
    for (uint32_t i = 0; i < N_RECIPES; i++) {
        const struct shmt_rule rule = recipe(i);
        if (!is_legal(k, &rule)) continue;
        train(&first, &rule, expected);
        train(k, &rule, got);
        assert_memory_equal(got, expected, sizeof got);
        assert_true(got[0][FEATURES] != first_weight[FEATURES]); /* the bias has moved */
    }
}

static void backends_and_numbers_of_workers_give_the_same_bits(void **state) {
    (void)state;
    each_case(gives_the_same_bits);
}

/* ---- live: the rule, example by example ---- */

/* What one worker with one example in flight computes, by the plain loops of the store on arrays of this test. */
static void train_by_hand(const struct shmt_spec *spec, outcome out) {
    const struct shmt_kernels *kernels = shmt_kernels_reference(SHMT_WRITE_RACY, spec->rule.kind);
    const struct shmt_span span = {.weight = out[0],
                                   .sink = out[0],
                                   .l2_share = spec->l2_shares ? share_of : NULL,
                                   .state = out[1],
                                   .plane = ROWS,
                                   .rows = ROWS,
                                   .width = 1};
    struct shmt_update u;
    memset(out, 0, sizeof(outcome));
    memcpy(out[0], first_weight, sizeof first_weight);
    shmt_spec_update(spec, 0, 0, &u);
    shmt_rule_begin(spec->rule.kind, &u, out[0], out[1], ROWS, FEATURES);
    u.l1 = u.l2 = 0; /* the bias */
    shmt_rule_begin(spec->rule.kind, &u, out[0] + FEATURES, out[1] + FEATURES, ROWS, 1);
    for (uint32_t epoch = 0; epoch < spec->epochs; epoch++)
        for (uint64_t place = 0; place < N; place++) {
            uint32_t example;
            float dot, slope, loss;
            shmt_order_fill(&spec->order, epoch, place, 1, &example);
            const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr),
                                           .n = 1,
                                           .bias = 1,
                                           .start = row_start,
                                           .id = column,
                                           .value = value_of,
                                           .order = &example};
            shmt_spec_update(spec, epoch, place / spec->item, &u);
            kernels->dot(&span, &x, &dot);
            slope = slope_at(example, dot, &loss);
            kernels->push_sparse(&span, &x, &slope, &u);
        }
}

static void follows_the_rule(const struct kase *k) {
    static outcome expected, got;
    if (k->n_seats > 1 || !shmt_policy_is_live(&k->policy) || WATCHES_RACES) return;
    for (uint32_t i = 0; i < N_RECIPES; i++) {
        const struct shmt_rule rule = recipe(i);
        const struct shmt_spec spec = spec_for(k, &rule);
        if (!is_legal(k, &rule)) continue;
        train_by_hand(&spec, expected);
        train(k, &rule, got);
        assert_memory_equal(got, expected, sizeof got);
    }
}

static void one_live_worker_with_one_example_in_flight_follows_the_rule(void **state) {
    (void)state;
    each_case(follows_the_rule);
}

static double loss_of(const float *w) {
    double sum = 0;
    for (uint32_t i = 0; i < N; i++) {
        float dot = w[FEATURES], loss;
        for (uint32_t j = 0; j < NNZ; j++) dot += value_of[i * NNZ + j] * w[column[i * NNZ + j]];
        (void)slope_at(i, dot, &loss);
        sum += (double)loss;
    }
    return sum / N;
}

static void learns(const struct kase *k) {
    static outcome alone, got;
    const struct kase one = {k->backend, k->policy, 1, &SHMT_TEAM_THREADS};
    if (k->n_seats == 1 || (k->policy.write != SHMT_WRITE_ATOMIC && k->policy.write != SHMT_WRITE_LOCKED)) return;
    for (uint32_t i = 0; i < N_RECIPES; i += 3) {
        const struct shmt_rule rule = recipe(i);
        /* With the others the last few examples move the bias far, so that their order shows in the loss. */
        if ((rule.kind != SHMT_RULE_ADAGRAD && rule.kind != SHMT_RULE_FTRL) || !is_legal(k, &rule)) continue;
        train(&one, &rule, alone);
        train(k, &rule, got);
        /* The loss falls by 0.03 (ftrl) and 0.1; another order of the examples shows in the third or fourth digit. */
        if (!(fabs(loss_of(got[0]) - loss_of(alone[0])) < 0.01))
            fail_msg("%s: loss %.4f, and %.4f alone", shmt_rule_name(rule.kind), loss_of(got[0]), loss_of(alone[0]));
    }
}

static void several_workers_that_lose_nothing_learn_as_one_does(void **state) {
    (void)state;
    each_case(learns);
}

/* ---- batches: the formulas ---- */

/* The mean gradient of a batch at w, in double. */
static void mean_gradient(const struct shmt_spec *spec, uint32_t epoch, uint64_t step, const float *w, double *grad) {
    const uint64_t n = shmt_spec_examples_of_step(spec, step);
    uint32_t example[64];
    shmt_strata_order(spec, epoch, step * spec->batch, n, example);
    memset(grad, 0, ROWS * sizeof *grad);
    for (uint64_t k = 0; k < n; k++) {
        const uint64_t at = (uint64_t)example[k] * NNZ;
        float dot = w[FEATURES], loss;
        for (uint32_t j = 0; j < NNZ; j++) dot += value_of[at + j] * w[column[at + j]];
        const double slope = (double)slope_at(example[k], dot, &loss) / (double)n;
        for (uint32_t j = 0; j < NNZ; j++) grad[column[at + j]] += slope * (double)value_of[at + j];
        grad[FEATURES] += slope;
    }
}

/* By norm, as torch does. */
static float clipped(const struct shmt_spec *spec, const double *grad) {
    const double most = (double)spec->rule.clip_norm;
    double sum = 0;
    for (uint32_t i = 0; i < ROWS; i++) sum += grad[i] * grad[i];
    return most > 0 ? (float)fmin(1, most / (sqrt(sum) + 1e-6)) : 1;
}

/* lamb's |w| / |u|, of all rows but the bias. */
static float trust_of(const outcome of, const float *mean, const struct shmt_update *u) {
    enum { LINE_FLOATS = SHMT_LINE / sizeof(float), N_LINES = (FEATURES + LINE_FLOATS - 1) / LINE_FLOATS };
    double weight[N_LINES], step[N_LINES], weights = 0, steps = 0;
    shmt_rule_squares(of[0], of[1], ROWS, mean, FEATURES, u, weight, step);
    for (uint32_t i = 0; i < N_LINES; i++) {
        weights += weight[i];
        steps += step[i];
    }
    return weights > 0 && steps > 0 ? (float)fmin(sqrt(weights / steps), SHMT_MOST_TRUST) : 1;
}

static void batches_by_hand(const struct shmt_spec *spec, outcome out) {
    static double grad[ROWS];
    static float mean[ROWS];
    struct shmt_update u, unruled;
    memset(out, 0, sizeof(outcome));
    memcpy(out[0], first_weight, sizeof first_weight);
    shmt_spec_update(spec, 0, 0, &u);
    shmt_rule_begin(spec->rule.kind, &u, out[0], out[1], ROWS, FEATURES);
    shmt_update_unrule(&u);
    shmt_rule_begin(spec->rule.kind, &u, out[0] + FEATURES, out[1] + FEATURES, ROWS, 1);
    for (uint32_t epoch = 0; epoch < spec->epochs; epoch++)
        for (uint64_t step = 0; step < shmt_spec_steps(spec); step++) {
            mean_gradient(spec, epoch, step, out[0], grad);
            for (uint32_t i = 0; i < ROWS; i++) mean[i] = (float)grad[i];
            shmt_spec_update(spec, epoch, step, &u);
            u.scale = clipped(spec, grad);
            unruled = u;
            shmt_update_unrule(&unruled);
            if (shmt_rule_needs_norms(spec->rule.kind)) u.rate *= trust_of(out, mean, &u);
            shmt_rule_apply(spec->rule.kind, out[0], out[1], ROWS, mean, FEATURES, &u);
            shmt_rule_apply(spec->rule.kind, out[0] + FEATURES, out[1] + FEATURES, ROWS, mean + FEATURES, 1, &unruled);
        }
}

static void follows_the_formulas(const struct kase *k) {
    static outcome expected, got;
    if (!shmt_policy_is_batched(&k->policy)) return;
    for (uint32_t i = 0; i < N_RECIPES; i++) {
        const struct shmt_rule rule = recipe(i);
        const struct shmt_spec spec = spec_for(k, &rule);
        batches_by_hand(&spec, expected);
        train(k, &rule, got);
        /* Gradients are sums of up to 64 floats here and of doubles there: they differ by less than 64 * 2^-24 of numbers
         * below 1, in 33 updates. adagrad and adam divide by the gradient's own size, which is 1e-3 (epsilon) or more. */
        for (uint32_t row = 0; row < ROWS; row++)
            if (!(fabsf(got[0][row] - expected[0][row]) < 2e-3f))
                fail_msg("%s, row %u: %.9g, and not %.9g", shmt_rule_name(rule.kind), row, (double)got[0][row],
                         (double)expected[0][row]);
    }
}

static void batches_follow_the_formulas_over_all_epochs(void **state) {
    (void)state;
    each_case(follows_the_formulas);
}

/* ---- what is lost ---- */

static void counts_what_it_loses(const struct kase *k) {
    const struct shmt_rule rule = recipe(0);
    struct shmt_spec spec = spec_for(k, &rule);
    struct shmt_need need;
    struct shmt_error e = {0};
    struct run run;
    uint64_t counted = 1, touched = 0;
    spec.count_lost = true;
    if (k->policy.write != SHMT_WRITE_RACY || shmt_policy_merges_replicas(&k->policy)) {
        const char *why = k->policy.write != SHMT_WRITE_RACY ? "count-lost is for racy" : "use --replicas one";
        assert_int_equal(k->backend->plan(&spec, &need, &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, why));
        spec.count_lost = false;
    }
    begin(&run, k, spec);
    go_well(&run, learn);
    for (uint32_t rank = 0; rank < k->n_seats; rank++)
        touched += load_relaxed(&k->backend->store->counters(run.store, rank)->touched);
    assert_int_equal(k->backend->store->lost(run.store, true, &counted), spec.count_lost);
    assert_int_equal(touched, spec.count_lost ? 3 * N * (NNZ + 1) : 0);
    /* One alone loses nothing; several may lose some of their updates, and never all. */
    assert_true(k->n_seats == 1 || !spec.count_lost ? counted == touched : counted > 0 && counted <= touched);
    end(&run);
}

static void lost_updates_are_estimated_where_they_can_be(void **state) {
    (void)state;
    each_case(counts_what_it_loses);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backends_and_numbers_of_workers_give_the_same_bits),
        cmocka_unit_test(one_live_worker_with_one_example_in_flight_follows_the_rule),
        cmocka_unit_test(several_workers_that_lose_nothing_learn_as_one_does),
        cmocka_unit_test(batches_follow_the_formulas_over_all_epochs),
        cmocka_unit_test(lost_updates_are_estimated_where_they_can_be),
    };
    return cmocka_run_group_tests(tests, make_problem, NULL);
}
