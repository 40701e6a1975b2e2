/* Tests of rules and schedules against torch's numbers, and of lamb against NumPy's, which tests/rules_torch.py has written down. */
#include "store_help.h"

#include <math.h>

#include "ps/norm.h"
#include "rules_torch.h"

/* A step rounds about ten times, each time by 2^-24 of numbers of at most 4, and constants that no float holds (0.99, 1 - 0.999)
 * are off by as much: 1e-6 of a step, which moves a weight by at most 1. */
static const double TOLERANCE = TORCH_STEPS * (10 * 4 * 0x1p-24 + 1e-6);

static void compare(const struct torch_course *course, int step, const float *w, const char *how) {
    for (int i = 0; i < TORCH_FLOATS; i++)
        if (!(fabs((double)w[i] - course->weight[step][i]) <= TOLERANCE))
            fail_msg("%s, %s, step %d: %.9g, and not %.9g", shmt_rule_name((enum shmt_rule_kind)course->rule.kind), how, step,
                     (double)w[i], course->weight[step][i]);
}

/* Gradients are sums over 4 examples. */
static void take_step(const struct torch_course *course, enum shmt_write write, int step, float *w, float *words) {
    const enum shmt_rule_kind kind = (enum shmt_rule_kind)course->rule.kind;
    const struct shmt_span span = {
        .weight = w, .sink = w, .state = words, .plane = TORCH_FLOATS, .rows = TORCH_FLOATS, .width = 1};
    struct shmt_update u;
    float grad[TORCH_FLOATS];
    for (int i = 0; i < TORCH_FLOATS; i++) grad[i] = 4 * (float)TORCH_GRAD[step][i];
    shmt_update_make(&course->rule, course->rate, (uint64_t)step, &u);
    u.scale = 0.25f;
    if (write == SHMT_WRITE_AGGREGATE)
        shmt_rule_apply(kind, w, words, TORCH_FLOATS, grad, TORCH_FLOATS, &u);
    else
        shmt_kernels_find(write, kind, true, shmt_rule_restrains(&course->rule))->push_dense(&span, 0, TORCH_FLOATS, grad, &u);
}

static void rules_give_torchs_numbers_in_every_write_mode(void **state) {
    (void)state;
    uint32_t seen = 0;
    for (size_t i = 0; i < sizeof TORCH_COURSES / sizeof *TORCH_COURSES; i++) {
        const struct torch_course *course = &TORCH_COURSES[i];
        for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++) {
            float w[TORCH_FLOATS], words[SHMT_MAX_PLANES * TORCH_FLOATS] = {0};
            if (!is_legal(write, (enum shmt_rule_kind)course->rule.kind)) continue;
            memcpy(w, TORCH_BEGIN, sizeof w);
            for (int step = 0; step < TORCH_STEPS; step++) {
                take_step(course, write, step, w, words);
                compare(course, step, w, shmt_write_name(write));
            }
        }
        seen |= UINT32_C(1) << course->rule.kind;
    }
    /* torch has no ftrl, and torch 1.13 no lamb, which is below */
    const uint32_t others = UINT32_C(1) << SHMT_RULE_FTRL | UINT32_C(1) << SHMT_RULE_LAMB;
    assert_int_equal(seen, ((UINT32_C(1) << SHMT_N_RULES) - 1) & ~others);
}

/* The tables begin on lines of their own; the third, of biases, is not regularised. */
static void lamb_gives_numpys_numbers(void **state) {
    (void)state;
    enum { LINE = SHMT_NORM_FLOATS, N = 3 * LINE, EACH = LAMB_FLOATS / 3 };
    for (size_t i = 0; i < sizeof LAMB_COURSES / sizeof *LAMB_COURSES; i++) {
        const struct lamb_course *course = &LAMB_COURSES[i];
        const struct shmt_spec spec = {
            .rule = course->rule,
            .n_tables = 3,
            .table = {{.rows = EACH, .width = 1}, {.rows = 1, .width = EACH}, {.rows = EACH, .width = 1}},
            .l2_rows = {EACH, 1, 0}};
        const struct shmt_flat flat = {.start = {0, LINE, 2 * LINE}, .n = N};
        float w[N] = {0}, words[2 * N] = {0};
        double part[2 * N / SHMT_NORM_FLOATS];
        assert_int_equal(shmt_norm_parts(&spec, &flat), sizeof part / sizeof *part);
        for (int k = 0; k < LAMB_FLOATS; k++) w[k / EACH * LINE + k % EACH] = LAMB_BEGIN[k];
        for (int step = 0; step < TORCH_STEPS; step++) {
            float grad[N] = {0};
            struct shmt_norms norms;
            struct shmt_update u;
            for (int k = 0; k < LAMB_FLOATS; k++) grad[k / EACH * LINE + k % EACH] = 4 * (float)LAMB_GRAD[step][k];
            shmt_update_make(&spec.rule, course->rate, (uint64_t)step, &u);
            u.scale = 0.25f;
            for (uint64_t at = 0; at < N; at += LINE) /* whoever measures which part */
                shmt_norm_measure(&spec, &flat, w, words, grad + at, at, at + LINE, &u, part);
            shmt_norm_take(&spec, &flat, part, &norms, &u);
            shmt_flat_apply(&spec, &flat, w, words, grad, 0, N, &u);
            for (int k = 0; k < LAMB_FLOATS; k++) {
                const double got = (double)w[k / EACH * LINE + k % EACH], want = course->weight[step][k];
                if (!(fabs(got - want) <= TOLERANCE))
                    fail_msg("lamb %zu, step %d, %d: %.9g, and not %.9g", i, step, k, got, want);
            }
        }
    }
}

/* Ratios: a table of zeros, and one that shall not move, keep the rate; tables that are not trained have no part in it. */
static void lambs_ratio_is_of_each_table_alone(void **state) {
    (void)state;
    enum { LINE = SHMT_NORM_FLOATS, TABLES = 4, N = TABLES * LINE };
    const struct shmt_table_spec table = {.rows = LINE, .width = 1};
    const struct shmt_spec spec = {.rule = {.kind = SHMT_RULE_LAMB, .momentum = 0.5f, .beta2 = 0.5f, .epsilon = 1e-30f},
                                   .n_tables = TABLES,
                                   .table = {table, table, table, table},
                                   .tuning = {{0}, {0}, {0}, {.role = SHMTRAIN_FROZEN}},
                                   .l2_rows = {LINE, LINE, LINE, LINE}};
    const struct shmt_flat flat = {.start = {0, LINE, 2 * LINE, 3 * LINE}, .n = N};
    float w[N], words[2 * N] = {0}, grad[N];
    double part[2 * TABLES];
    struct shmt_norms norms;
    struct shmt_update u;
    for (uint64_t i = 0; i < N; i++) w[i] = i < LINE ? 3 : i < 2 * LINE ? 0 : 7;
    for (uint64_t i = 0; i < N; i++) grad[i] = i < 2 * LINE || i >= 3 * LINE ? -8 : 0;
    shmt_update_make(&spec.rule, 0.25f, 0, &u);
    shmt_norm_measure(&spec, &flat, w, words, grad, 0, N, &u, part);
    shmt_norm_take(&spec, &flat, part, &norms, &u);
    assert_true(u.trust == norms.trust && norms.trust[0] == 3); /* each step of the first gradient is -1 */
    assert_true(norms.trust[1] == 1 && norms.trust[2] == 1 && norms.trust[3] == 1);
    shmt_flat_apply(&spec, &flat, w, words, grad, 0, N, &u);
    assert_true(w[0] == 3.75f && w[LINE] == 0.25f && w[2 * LINE] == 7 && w[3 * LINE] == 7);
}

/* Behind some gradients there are none. u falls to 0, or with weight decay to that share of w: the largest ratio is 10. */
static void a_table_that_lambs_gradients_leave_stays_where_it_is(void **state) {
    (void)state;
    enum { N = 1024, WITH = 20, STEPS = 3000 };
    static float w[N], words[2 * N], grad[N];
    static double part[2 * N / SHMT_NORM_FLOATS];
    for (int decays = 0; decays < 2; decays++) {
        const struct shmt_spec spec = {.rule = {.kind = SHMT_RULE_LAMB,
                                                .momentum = 0.9f,
                                                .beta2 = 0.999f,
                                                .epsilon = 1e-8f,
                                                .weight_decay = decays ? 0.01f : 0},
                                       .n_tables = 1,
                                       .table = {{.rows = N, .width = 1}},
                                       .l2_rows = {N}};
        const struct shmt_flat flat = {.n = N};
        const double kept = decays ? pow(1 - 0.02 * 10 * 0.01, STEPS) : 1;
        double first = 0, last = 0, most = 0;
        memset(words, 0, sizeof words);
        for (int i = 0; i < N; i++) w[i] = (float)(i % 7 - 3) / 8;
        for (int i = 0; i < N; i++) first += (double)w[i] * (double)w[i];
        for (int step = 0; step < STEPS; step++) {
            struct shmt_norms norms;
            struct shmt_update u;
            for (int i = 0; i < N; i++) grad[i] = (float)((i * 5 + step * 3) % 11 - 5) / 16;
            const float *given = step < WITH ? grad : NULL;
            shmt_update_make(&spec.rule, 0.02f, (uint64_t)step, &u);
            shmt_norm_measure(&spec, &flat, w, words, given, 0, N, &u, part);
            shmt_norm_take(&spec, &flat, part, &norms, &u);
            shmt_flat_apply(&spec, &flat, w, words, given, 0, N, &u);
            assert_true(norms.trust[0] > 0 && norms.trust[0] <= SHMT_MOST_TRUST);
            most = fmax(most, (double)norms.trust[0]);
        }
        for (int i = 0; i < N; i++) last += (double)w[i] * (double)w[i];
        assert_true(most == SHMT_MOST_TRUST); /* it came to that, so without the bound to more */
        /* Before, steps that are no longer than a fiftieth of w each; the last ones, by what momentum is left, add up to less. */
        if (!(sqrt(last / first) > 0.5 * kept && sqrt(last / first) < 2 * kept))
            fail_msg("decay %d: |w| was %g, and is %g", decays, sqrt(first), sqrt(last));
    }
}

/* The gradient stands in the first of three lines, or in the last; the one between is of a table that is frozen. */
static void clipping_by_norm_gives_torchs_numbers(void **state) {
    (void)state;
    enum { LINES_HERE = 3, N = LINES_HERE * SHMT_NORM_FLOATS };
    const struct shmt_spec spec = {
        .rule = {.kind = SHMT_RULE_SGD, .clip_norm = 0.5f},
        .n_tables = 3,
        .table = {{.rows = 4, .width = 1}, {.rows = 5, .width = 1}, {.rows = SHMT_NORM_FLOATS, .width = 1}},
        .tuning = {{0}, {.role = SHMTRAIN_FROZEN}, {0}}};
    const struct shmt_flat flat = {.start = {0, SHMT_NORM_FLOATS, 2 * SHMT_NORM_FLOATS}, .n = N};
    assert_int_equal(shmt_norm_parts(&spec, &flat), LINES_HERE);
    for (uint32_t at = 0; at < N; at += N - TORCH_FLOATS) {
        float w[TORCH_FLOATS];
        memcpy(w, TORCH_BEGIN, sizeof w);
        for (int step = 0; step < TORCH_STEPS; step++) {
            float grad[N] = {0};
            double part[LINES_HERE];
            struct shmt_update u;
            grad[SHMT_NORM_FLOATS] = 1000; /* of a table that is not trained: it does not count */
            for (int i = 0; i < TORCH_FLOATS; i++) grad[at + i] = 4 * (float)TORCH_GRAD[step][i];
            shmt_norm_squares(grad, N, part);
            shmt_update_make(&spec.rule, 0.1f, (uint64_t)step, &u);
            u.scale = 0.25f;
            u.clip_factor = shmt_norm_clip_factor(&spec, shmt_norm_sum(&spec, &flat, part), 0.25f);
            u = shmt_spec_tune(&spec, 0, true, &u);
            shmt_rule_apply(SHMT_RULE_SGD, w, NULL, 0, grad + at, TORCH_FLOATS, &u);
            for (int i = 0; i < TORCH_FLOATS; i++) assert_true(fabs((double)w[i] - TORCH_BY_NORM[step][i]) <= TOLERANCE);
        }
    }
}

static void a_norm_that_is_small_or_none_limits_nothing(void **state) {
    (void)state;
    const struct shmt_spec spec = {.rule = {.clip_norm = 1}}, off = {.n_tables = 1};
    const struct shmt_flat flat = {.n = SHMT_NORM_FLOATS};
    float grad[SHMT_NORM_FLOATS] = {0.5f};
    double part[1] = {7};
    assert_int_equal(shmt_norm_parts(&off, &flat), 0);
    shmt_norm_squares(NULL, SHMT_NORM_FLOATS, part);
    assert_true(part[0] == 0 && shmt_norm_clip_factor(&spec, part[0], 0.25f) == 1);
    shmt_norm_squares(grad, SHMT_NORM_FLOATS, part);
    assert_true(part[0] == 0.25 && shmt_norm_clip_factor(&spec, part[0], 0.25f) == 1);
    grad[3] = NAN;
    shmt_norm_squares(grad, SHMT_NORM_FLOATS, part);
    assert_true(isnan(part[0]) && shmt_norm_clip_factor(&spec, part[0], 0.25f) == 1);
}

/* A norm as the squares of a million gradients of 1e17 make it, and one that is infinite; a statistic is no gradient. */
static void a_norm_without_bound_leaves_no_gradient(void **state) {
    (void)state;
    enum { N = SHMT_NORM_FLOATS };
    const struct shmt_spec spec = {.rule = {.kind = SHMT_RULE_SGD, .clip_norm = 1e-30f},
                                   .n_tables = 2,
                                   .table = {{.rows = N, .width = 1}, {.rows = N, .width = 1}},
                                   .tuning = {{0}, {.role = SHMTRAIN_STATISTIC, .rate = 0.5f}},
                                   .l2_rows = {N, N}};
    const struct shmt_flat flat = {.start = {0, N}, .n = 2 * N};
    const float large[] = {1e17f, INFINITY};
    for (int i = 0; i < 2; i++) {
        float w[2 * N] = {1, 2, 3}, grad[2 * N] = {large[i], 4};
        double part[2];
        struct shmt_norms norms;
        struct shmt_update u;
        grad[N] = 8;
        shmt_update_make(&spec.rule, 1, 0, &u);
        assert_true(u.clip_factor == 1);
        shmt_norm_measure(&spec, &flat, w, NULL, grad, 0, 2 * N, &u, part);
        shmt_norm_take(&spec, &flat, part, &norms, &u);
        assert_true(u.clip_factor == 0);
        shmt_flat_apply(&spec, &flat, w, NULL, grad, 0, 2 * N, &u);
        assert_true(i == 0 ? w[0] == 1 : isnan(w[0]));
        assert_true(w[1] == 2 && w[2] == 3 && w[N] == -4);
    }
}

static void near(double got, double want, const char *what, int step) {
    if (!(fabs(got - want) <= 1e-7 * 0.5 + 1e-6 * want)) fail_msg("%s, step %d: %.9g, and not %.9g", what, step, got, want);
}

static void schedules_give_torchs_rates(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof TORCH_SCHEDULES / sizeof *TORCH_SCHEDULES; i++)
        for (int step = 0; step < TORCH_RATES; step++)
            near((double)shmt_rate_at(&TORCH_SCHEDULES[i].rate, step / 10.0), TORCH_SCHEDULES[i].at[step],
                 shmt_rate_name(&TORCH_SCHEDULES[i].rate), step);
}

/* torch puts the top at step 0.3 * 60 - 1 and the end at step 59: there are our 0.3 and 1 of the run. */
static void one_cycle_has_torchs_shape(void **state) {
    (void)state;
    const struct shmt_rate rate = {.base = 0.5f, .kind = SHMT_RATE_ONE_CYCLE, .epochs = 8};
    for (int step = 0; step < TORCH_CYCLE; step++) {
        const double rises = 0.3 * step / 17, falls = 0.3 + 0.7 * (step - 17) / 42.0;
        near((double)shmt_rate_at(&rate, 8 * (step < 17 ? rises : falls)), TORCH_ONE_CYCLE[step], "one-cycle", step);
    }
    assert_true(shmt_rate_at(&rate, 0) == 0.02f && shmt_rate_at(&rate, 2.4) == 0.5f && shmt_rate_at(&rate, 9) == 2e-6f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_give_torchs_numbers_in_every_write_mode),
        cmocka_unit_test(lamb_gives_numpys_numbers),
        cmocka_unit_test(lambs_ratio_is_of_each_table_alone),
        cmocka_unit_test(a_table_that_lambs_gradients_leave_stays_where_it_is),
        cmocka_unit_test(clipping_by_norm_gives_torchs_numbers),
        cmocka_unit_test(a_norm_that_is_small_or_none_limits_nothing),
        cmocka_unit_test(a_norm_without_bound_leaves_no_gradient),
        cmocka_unit_test(schedules_give_torchs_rates),
        cmocka_unit_test(one_cycle_has_torchs_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
