/* Tests of the update rules: live kernels and the apply phase against the formulas of update/rule.h in double precision, ftrl
 * against the objective that it minimises, adam against numbers of another program; state. That fast kernels have
 * the bits of plain loops is tested in test_store.c. */
#include "store_help.h"

#include <math.h>

#include "kernels_reference.h"
#include "base/line.h"
#include "update/path.h"

/* ---- the formulas, word for word, in double ---- */

struct exact {
    double w, v, n, m, z;
};

static double soft(double x, double t) { return x > t ? x - t : x < -t ? x + t : 0; }

static double exact_step(double w, double a, double r1, const struct shmt_rule *rule, double share) {
    return soft(w - a, r1 * (double)rule->l1 * share) / (1 + r1 * (double)rule->l2 * share);
}

/* Update number k (from 1) of this parameter. */
static void exact_push(struct exact *x, double g, double r, double share, uint64_t k, const struct shmt_rule *rule) {
    const double m = (double)rule->momentum, b2 = (double)rule->beta2, epsilon = (double)rule->epsilon, before = x->n;
    const double rho = (double)rule->rho;
    double r1, q;
    switch (rule->kind) {
        case SHMT_RULE_SGD:
            x->w = exact_step(x->w, r * g, r, rule, share);
            return;
        case SHMT_RULE_MOMENTUM:
            x->v = m * x->v + g;
            x->w = exact_step(x->w, r * x->v, r / (1 - m), rule, share);
            return;
        case SHMT_RULE_ADAGRAD:
            x->n += g * g;
            r1 = r / (sqrt(x->n) + epsilon);
            x->w = exact_step(x->w, r1 * g, r1, rule, share);
            return;
        case SHMT_RULE_NESTEROV:
            x->v = m * x->v + g;
            x->w = exact_step(x->w, r * (g + m * x->v), r / (1 - m), rule, share);
            return;
        case SHMT_RULE_RMSPROP:
            x->v = rho * x->v + (1 - rho) * g * g;
            r1 = r / (sqrt(x->v) + epsilon);
            x->w = exact_step(x->w, r1 * g, r1, rule, share);
            return;
        case SHMT_RULE_ADADELTA:
            x->v = rho * x->v + (1 - rho) * g * g;
            q = sqrt(x->n + epsilon) / sqrt(x->v + epsilon);
            x->n = rho * x->n + (1 - rho) * q * g * q * g;
            x->w = x->v > 0 ? exact_step(x->w, r * q * g, r * q, rule, share) : x->w;
            return;
        case SHMT_RULE_LAMB: /* its ratio is in the rate already */
        case SHMT_RULE_ADAMW:
            x->w *= 1 - fmin(1, r * (double)rule->weight_decay * share);
            /* fall through */
        case SHMT_RULE_ADAM:
            x->m = m * x->m + (1 - m) * g;
            x->v = b2 * x->v + (1 - b2) * g * g;
            r1 = r / (sqrt(x->v / (1 - pow(b2, (double)k))) + epsilon);
            x->w = exact_step(x->w, r1 * x->m / (1 - pow(m, (double)k)), r1, rule, share);
            return;
        default:
            x->n += g * g;
            x->z += g - (sqrt(x->n) - sqrt(before)) / r * x->w;
            x->w = -soft(x->z, (double)rule->l1) / (((double)rule->beta + sqrt(x->n)) / r + (double)rule->l2);
    }
}

enum { FLOATS = 7, PUSHES = 300 };

/* A push rounds about ten times, each time by 2^-24 of numbers of at most 4; in ftrl, of z, which is divided by 5 or more
 * afterwards. Errors of earlier pushes do not grow: every rule here is a contraction or a sum. */
static const double TOLERANCE = PUSHES * 10 * 4 * 0x1p-24;

struct course {
    float w[FLOATS], state[SHMT_MAX_PLANES * FLOATS];
    struct exact exact[FLOATS];
};

static void begin_course(struct course *c, const struct shmt_rule *rule, struct dice *d) {
    memset(c, 0, sizeof *c);
    if (rule->kind == SHMT_RULE_FTRL) return; /* begins at 0; see shmt_rule_begin */
    for (int i = 0; i < FLOATS; i++) c->exact[i].w = (double)(c->w[i] = draw(d));
}

static void compare_course(const struct course *c, const struct shmt_rule *rule, const char *how) {
    for (int i = 0; i < FLOATS; i++)
        if (!(fabs((double)c->w[i] - c->exact[i].w) <= TOLERANCE))
            fail_msg("%s, %s, l1 %g, l2 %g: %.9g, and not %.9g", shmt_rule_name(rule->kind), how, (double)rule->l1,
                     (double)rule->l2, (double)c->w[i], c->exact[i].w);
}

static const float L1S[] = {0, 0, 0.05f, 0.05f}, L2S[] = {0, 0.1f, 0, 0.1f};

/* The rate of push k: changing, but for ftrl. */
static float rate_at(const struct shmt_rule *rule, int k) {
    return rule->kind == SHMT_RULE_FTRL ? 0.2f : 0.2f / (1 + 0.01f * (float)k);
}

static void live_course(const struct shmt_rule *rule, enum shmt_write write, bool sparse, struct dice *d) {
    static const uint32_t id[FLOATS - 1] = {0, 1, 2, 3, 4, 5};
    static const uint64_t start[2] = {0, FLOATS - 1};
    const struct shmt_kernels *kernels = shmt_kernels_find(write, rule->kind, true, shmt_rule_regularises(rule));
    struct course c;
    float value[FLOATS], shares[FLOATS] = {1, 2, 3, 4, 1, 2, 9};
    begin_course(&c, rule, d);
    const struct shmt_span span = {
        .weight = c.w, .sink = c.w, .state = c.state, .plane = FLOATS, .l2_share = shares, .rows = FLOATS, .width = 1};
    for (int k = 0; k < PUSHES; k++) {
        struct shmt_update u;
        const float slope = draw(d);
        const struct shmtrain_csr x = {
            .size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = id, .value = value};
        shmt_update_make(rule, rate_at(rule, k), 0, &u);
        u.scale = sparse ? 1 : 0.25f;
        for (int i = 0; i < FLOATS; i++) value[i] = draw(d);
        value[FLOATS - 1] = sparse ? 1 : value[FLOATS - 1]; /* the bias */
        for (int i = 0; i < FLOATS; i++) {
            const bool bias = sparse && i == FLOATS - 1, ftrl = rule->kind == SHMT_RULE_FTRL;
            struct shmt_rule mine = *rule;
            if (bias) mine.l1 = mine.l2 = mine.weight_decay = 0;
            exact_push(&c.exact[i], sparse ? (double)slope * (double)value[i] : (double)value[i] / 4, (double)u.rate,
                       sparse && !bias && !ftrl ? (double)shares[i] : 1, (uint64_t)k + 1, &mine);
        }
        if (sparse)
            kernels->push_sparse(&span, &x, &slope, &u);
        else
            kernels->push_dense(&span, 0, FLOATS, value, &u);
    }
    compare_course(&c, rule, shmt_write_name(write));
}

static void live_pushes_follow_the_formulas(void **state) {
    (void)state;
    struct dice d = {.seed = 21};
    for (uint32_t i = 0; i < 3 * SHMT_N_RULES * 8; i++) {
        const struct shmt_rule rule = rule_of(i / 24, L1S[i % 4], L2S[i % 4]);
        const enum shmt_write write = i / 8 % 3;
        if (is_legal(write, rule.kind)) live_course(&rule, write, i / 4 % 2, &d);
    }
}

static void updates_of_batches_follow_the_formulas(void **state) {
    (void)state;
    struct dice d = {.seed = 22};
    for (uint32_t i = 0; i < SHMT_N_RULES * 4; i++) {
        const struct shmt_rule rule = rule_of(i / 4, L1S[i % 4], L2S[i % 4]);
        struct course c;
        begin_course(&c, &rule, &d);
        for (int k = 0; k < PUSHES; k++) {
            const bool nothing = k % 5 == 4; /* a block without gradient */
            struct shmt_update u;
            float grad[FLOATS];
            shmt_update_make(&rule, rate_at(&rule, k), (uint64_t)k, &u);
            u.scale = 0.125f;
            for (int f = 0; f < FLOATS; f++) {
                grad[f] = 8 * draw(&d);
                exact_push(&c.exact[f], nothing ? 0 : (double)grad[f] / 8, (double)u.rate, 1, (uint64_t)k + 1, &rule);
            }
            shmt_rule_apply(rule.kind, c.w, c.state, FLOATS, nothing ? NULL : grad, FLOATS, &u);
        }
        compare_course(&c, &rule, "aggregate");
    }
}

/* ---- single rules ---- */

/* What ftrl is meant to compute (McMahan et al. 2013, section 3): the w that makes
 *     (g_1 + ... + g_t) w + sum over s of (q_s / 2) (w - w_s)^2 + l1 |w| + (l2 / 2) w^2
 * smallest, with q_1 + ... + q_s = (beta + sqrt(g_1^2 + ... + g_s^2)) / r. It is convex, so thirds find it. */
struct history {
    int n;
    double g[64], w[64], q[64], l1, l2;
};

static double objective(const struct history *h, double w) {
    double sum = h->l1 * fabs(w) + h->l2 / 2 * w * w;
    for (int s = 0; s < h->n; s++) sum += h->g[s] * w + h->q[s] / 2 * (w - h->w[s]) * (w - h->w[s]);
    return sum;
}

static double smallest(const struct history *h) {
    double low = -100, high = 100;
    for (int i = 0; i < 200; i++) {
        const double a = low + (high - low) / 3, b = high - (high - low) / 3;
        if (objective(h, a) < objective(h, b))
            high = b;
        else
            low = a;
    }
    return (low + high) / 2;
}

static void ftrl_minimises_its_objective(void **state) {
    (void)state;
    struct dice d = {.seed = 23};
    int zeros = 0;
    for (int run = 0; run < 8; run++) {
        const struct shmt_rule rule = rule_of(SHMT_RULE_FTRL, run % 2 ? 0.8f : 0, run % 4 > 1 ? 0.3f : 0);
        struct history h = {.l1 = (double)rule.l1, .l2 = (double)rule.l2};
        double squares = 0, before = 0;
        float w = 0, words[2] = {0};
        for (h.n = 0; h.n < 64;) {
            const float g = draw(&d) + 0.2f;
            struct shmt_update u;
            shmt_update_make(&rule, 0.3f, 0, &u);
            squares += (double)g * (double)g;
            const double q = ((double)rule.beta + sqrt(squares)) / (double)u.rate;
            h.g[h.n] = (double)g, h.w[h.n] = (double)w, h.q[h.n] = q - before;
            h.n++;
            before = q;
            shmt_rule_apply(SHMT_RULE_FTRL, &w, words, 1, &g, 1, &u);
            /* The objective is flat at its minimum: thirds see it to about the root of what a double resolves. */
            assert_true(fabs((double)w - smallest(&h)) < 1e-5);
            zeros += w == 0;
        }
    }
    assert_true(zeros > 10); /* L1 holds weights at 0 exactly */
}

/* As this prints them (Python 3):
 *     from math import sqrt
 *     w, m, v, r, b1, b2, e = 0.5, 0, 0, 0.1, 0.9, 0.999, 1e-8
 *     for k, g in enumerate([1, -2, 0.5, 0.25, 3], 1):
 *         m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g * g
 *         w -= r * (m / (1 - b1**k)) / (sqrt(v / (1 - b2**k)) + e); print("%.9f" % w) */
static void adam_gives_the_numbers_of_another_program(void **state) {
    (void)state;
    static const float grad[] = {1, -2, 0.5f, 0.25f, 3};
    static const double want[] = {0.400000001, 0.436610353, 0.450279420, 0.455100185, 0.414298852};
    const struct shmt_rule rule = {.kind = SHMT_RULE_ADAM, .momentum = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f};
    float batch = 0.5f, batch_state[2] = {0}, live = 0.5f, live_state[4] = {0};
    const struct shmt_span span = {.weight = &live, .sink = &live, .state = live_state, .plane = 1, .rows = 1, .width = 1};
    for (uint64_t k = 0; k < 5; k++) {
        struct shmt_update u;
        shmt_update_make(&rule, 0.1f, k, &u);
        shmt_rule_apply(SHMT_RULE_ADAM, &batch, batch_state, 1, &grad[k], 1, &u);
        shmt_kernels_find(SHMT_WRITE_RACY, SHMT_RULE_ADAM, true, false)->push_dense(&span, 0, 1, &grad[k], &u);
        /* 0.999 as a float is 0.999 to 2^-25, which 1 - 0.999 shows as 3e-5; v and its correction share most of it. */
        assert_true(fabs((double)batch - want[k]) < 2e-6);
        assert_true(fabs((double)live - want[k]) < 2e-6);
    }
}

static void adams_corrections_are_one_minus_a_power(void **state) {
    (void)state;
    const struct shmt_rule rule = rule_of(SHMT_RULE_ADAM, 0, 0);
    for (uint64_t step = 0; step < 5000; step = step * 2 + 1) {
        struct shmt_update u;
        shmt_update_make(&rule, 1, step, &u);
        assert_true(u.correct1 == (float)(1 - pow((double)rule.momentum, (double)step + 1)));
        assert_true(u.correct2 == (float)(1 - pow((double)rule.beta2, (double)step + 1)));
    }
}

/* What is left out where it would change nothing (a division by 1, a step of L2 of 0) is left out on every path, and in the last few
 * floats, which are updated one by one. */
static void corrected_updates_have_the_bits_of_a_plain_loop(void **state) {
    enum { N = 37 };
    static const enum shmt_rule_kind KINDS[] = {SHMT_RULE_ADAM, SHMT_RULE_ADAMW, SHMT_RULE_LAMB};
    struct dice d = {.seed = 25};
    (void)state;
    for (uint32_t i = 0; i < 3 * 2 * 2 * 2; i++) {
        struct shmt_rule rule = rule_of(KINDS[i / 8], 0, 0);
        float grad[N], w[N], words[2 * N], want[3][N];
        struct shmt_update u;
        rule.weight_decay = i / 4 % 2 && i >= 8 ? 0.25f : 0;
        shmt_update_make(&rule, 0.1f, i / 2 % 2 ? 1000 : 5, &u);
        assert_int_equal(u.correct1 == 1, i / 2 % 2);
        u.scale = 0.5f;
        for (int k = 0; k < N; k++) grad[k] = draw(&d), w[k] = draw(&d), words[k] = draw(&d), words[N + k] = draw(&d) + 2;
        for (int k = 0; k < N; k++) {
            const float g = i % 2 ? 0 : grad[k] * u.scale;
            const float m = want[1][k] = words[k] + (1 - u.momentum) * (g - words[k]);
            const float v = want[2][k] = words[N + k] + (1 - u.beta2) * (g * g - words[N + k]);
            const float rate = u.rate / (sqrtf(v / u.correct2) + u.epsilon);
            want[0][k] = w[k] - u.rate * u.weight_decay * w[k];
            want[0][k] -= rate * (m / u.correct1);
        }
        for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
            float got[3 * N];
            if (!shmt_cpu_has(cpu)) continue;
            memcpy(got, w, sizeof w);
            memcpy(got + N, words, sizeof words);
            shmt_path_of(cpu)->apply(rule.kind, got, got + N, N, i % 2 ? NULL : grad, N, &u);
            assert_memory_equal(got, want, sizeof got);
        }
    }
}

/* Whole lines, and a last one that is not; without a gradient, too. */
static void squares_of_steps_are_alike_on_every_path(void **state) {
    enum { LINE = SHMT_LINE / sizeof(float), N = 2 * LINE + 5, PARTS = 3 };
    struct dice d = {.seed = 26};
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        const struct shmt_rule rule = rule_of(SHMT_RULE_LAMB, 0, i / 4 ? 0.25f : 0);
        float grad[N], w[N], words[2 * N], moved[N], state_of_it[2 * N];
        double want[2][PARTS] = {{0}}, got[2][PARTS];
        struct shmt_update u;
        shmt_update_make(&rule, 1, i / 2 % 2 ? 1000 : 5, &u);
        u.l2 = 0;
        for (int k = 0; k < N; k++) grad[k] = draw(&d), w[k] = draw(&d), words[k] = draw(&d), words[N + k] = draw(&d) + 2;
        memcpy(moved, w, sizeof w);
        memcpy(state_of_it, words, sizeof words);
        shmt_rule_apply(rule.kind, moved, state_of_it, N, i % 2 ? NULL : grad, N, &u); /* at a rate of 1 */
        for (int k = 0; k < N; k++) {
            want[0][k / LINE] += (double)w[k] * (double)w[k];
            want[1][k / LINE] += ((double)w[k] - (double)moved[k]) * ((double)w[k] - (double)moved[k]);
        }
        for (uint32_t cpu = 0; cpu < SHMT_N_CPUS; cpu++) {
            double first[2][PARTS];
            if (!shmt_cpu_has(cpu)) continue;
            shmt_path_of(cpu)->squares(w, words, N, i % 2 ? NULL : grad, N, &u, got[0], got[1]);
            shmt_rule_squares(w, words, N, i % 2 ? NULL : grad, N, &u, first[0], first[1]); /* the portable one */
            assert_memory_equal(got, first, sizeof got);
            for (int part = 0; part < PARTS; part++) {
                assert_true(fabs(got[0][part] - want[0][part]) <= 1e-12 * want[0][part]);
                assert_true(fabs(got[1][part] - want[1][part]) <= 1e-5 * want[1][part]); /* differences of floats */
            }
        }
    }
}

static void apply_sgd(float *w, const float *grad, uint64_t n, float rate, float l2) {
    const struct shmt_update u = {.rate = rate, .scale = 1, .l2 = l2};
    shmt_rule_apply(SHMT_RULE_SGD, w, NULL, 0, grad, n, &u);
}

static void small_l2_is_not_lost_in_rounding(void **state) {
    (void)state;
    /* rate * l2 = 3e-8 is below half a unit of 1 + d, yet 10,000 steps along random gradients must show 0.03 % of it. */
    struct dice d = {.seed = 16};
    double with = 0, without = 0;
    for (int run = 0; run < 200; run++) {
        float w = 1, v = 1;
        for (int step = 0; step < 10000; step++) {
            const float grad = draw(&d);
            apply_sgd(&w, &grad, 1, 1e-4f, 3e-4f);
            apply_sgd(&v, &grad, 1, 1e-4f, 0);
        }
        with += (double)w, without += (double)v;
    }
    const double shrunk = 1 - with / without;
    assert_true(fabs(shrunk - 3e-4) < 1e-4);
}

static void l2_is_stable_for_every_rate(void **state) {
    (void)state;
    float w[3] = {1, -2, 3};
    const float grad[3] = {1, 1, 1};
    for (int step = 0; step < 100; step++) apply_sgd(w, grad, 3, 1e6f, 10);
    for (int i = 0; i < 3; i++) assert_true(fabsf(w[i] + 0.1f) < 1e-3f); /* the minimum of w + 10 w^2 / 2 */
}

/* (w - 1)^2 / 2 + l1 |w| + l2 / 2 w^2 is smallest at soft(1, l1) / (1 + l2), whatever the rule makes of a gradient. ftrl's l1
 * and l2 stand against sums of gradients, and count for less and less. */
static void rules_find_the_minimum_of_one_objective(void **state) {
    (void)state;
    static const enum shmt_rule_kind KINDS[] = {SHMT_RULE_SGD,      SHMT_RULE_MOMENTUM, SHMT_RULE_ADAGRAD,  SHMT_RULE_ADAM,
                                                SHMT_RULE_NESTEROV, SHMT_RULE_RMSPROP,  SHMT_RULE_ADADELTA, SHMT_RULE_ADAMW};
    for (uint32_t i = 0; i < sizeof KINDS / sizeof *KINDS * 4; i++) {
        struct shmt_rule rule = rule_of(KINDS[i / 4], L1S[i % 4] * 8, L2S[i % 4] * 10);
        rule.weight_decay = 0; /* it is no part of the objective */
        const double want = soft(1, (double)rule.l1) / (1 + (double)rule.l2);
        float w = 0.1f, words[2] = {0};
        for (uint64_t step = 0; step < 20000; step++) {
            const float grad = w - 1;
            struct shmt_update u;
            shmt_update_make(&rule, 0.3f / (1 + 1e-3f * (float)step), step, &u);
            shmt_rule_apply(rule.kind, &w, words, 1, &grad, 1, &u);
        }
        /* rmsprop's steps are of the rate's size, whatever the gradient is: it goes to and fro by the last one */
        const double near = rule.kind == SHMT_RULE_RMSPROP ? 0.3 / 20 : 1e-3;
        if (!(fabs((double)w - want) < near))
            fail_msg("%s, l1 %g, l2 %g: %g, and not %g", shmt_rule_name(rule.kind), (double)rule.l1, (double)rule.l2, (double)w,
                     want);
    }
}

/* ---- what every rule keeps to ---- */

/* One parameter by the apply phase (write aggregate) or a live push. */
static void push_one(const struct shmt_rule *rule, enum shmt_write write, float *w, float *words, const float *grad) {
    struct shmt_update u;
    shmt_update_make(rule, 0.3f, 4, &u);
    if (write == SHMT_WRITE_AGGREGATE) {
        shmt_rule_apply(rule->kind, w, words, 1, grad, 1, &u);
        return;
    }
    const struct shmt_span span = {.weight = w, .sink = w, .state = words, .plane = 1, .rows = 1, .width = 1};
    shmt_kernels_find(write, rule->kind, true, shmt_rule_regularises(rule))->push_dense(&span, 0, 1, grad, &u);
}

/* Backends skip blocks without gradient where this holds; `plain` never does. */
static void a_zero_gradient_moves_nothing_where_the_rule_says_so(void **state) {
    (void)state;
    struct dice d = {.seed = 24};
    for (uint32_t i = 0; i < SHMT_N_RULES * 4; i++) {
        const struct shmt_rule rule = rule_of(i / 4, L1S[i % 4], L2S[i % 4]);
        struct shmt_update u;
        shmt_update_make(&rule, 0.3f, 0, &u);
        for (int round = 0; round < 500 && !shmt_rule_moves_all(&rule); round++) {
            float w = round % 10 == 0 ? 0 : 3 * draw(&d), words[4] = {0}, before[5];
            const float zero = round % 2 ? 0.0f : -0.0f, grad = draw(&d);
            shmt_rule_begin(rule.kind, &u, &w, words, 1, 1); /* a weight that was set from outside */
            for (int k = round % 3; k > 0; k--) push_one(&rule, SHMT_WRITE_AGGREGATE, &w, words, &grad);
            memcpy(before, &w, sizeof w);
            memcpy(before + 1, words, sizeof words);
            push_one(&rule, SHMT_WRITE_AGGREGATE, &w, words, &zero);
            push_one(&rule, SHMT_WRITE_AGGREGATE, &w, words, NULL);
            assert_memory_equal(&w, before, sizeof w);
            assert_memory_equal(words, before + 1, sizeof words);
        }
    }
    assert_false(shmt_rule_moves_all(&(struct shmt_rule){.kind = SHMT_RULE_ADAGRAD}));
    assert_false(shmt_rule_moves_all(&(struct shmt_rule){.kind = SHMT_RULE_FTRL, .l1 = 1, .l2 = 1}));
    assert_true(shmt_rule_moves_all(&(struct shmt_rule){.kind = SHMT_RULE_MOMENTUM}));
    assert_true(shmt_rule_moves_all(&(struct shmt_rule){.kind = SHMT_RULE_SGD, .l1 = 1}));
}

static void weights_that_were_set_from_outside_stay_until_their_first_gradient(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct shmt_rule rule = rule_of(SHMT_RULE_FTRL, L1S[i], L2S[i]);
        struct shmt_update u;
        float w[4] = {1.5f, -0.25f, 0, 1e-3f}, words[8];
        shmt_update_make(&rule, 0.3f, 0, &u);
        shmt_rule_begin(SHMT_RULE_FTRL, &u, w, words, 4, 4);
        /* z is rounded to 2^-24 of about l1 + w beta / r, which comes back divided by beta / r. */
        assert_true(fabsf(w[0] - 1.5f) < 1e-6f && fabsf(w[1] + 0.25f) < 1e-6f && w[2] == 0 && fabsf(w[3] - 1e-3f) < 1e-6f);
        rule = rule_of(SHMT_RULE_ADAGRAD, L1S[i], L2S[i]); /* L1 and L2 wait for a rate of its own */
        const float zero = 0;
        for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++) {
            float one = 1.5f, squares = 0;
            push_one(&rule, write, &one, &squares, &zero);
            assert_true(one == 1.5f && squares == 0);
        }
    }
}

/* beta 0 in a row without L2: before its first gradient nothing says what a weight is but the weight itself. */
static void ftrl_that_nothing_holds_rests_until_its_first_gradient(void **state) {
    (void)state;
    static const float GRAD[] = {0, 1e-30f /* whose square is 0 */, -2, 0};
    static const float WANT[] = {1.5f, 1.5f, 1.8f, 1.8f}; /* the first moves it by the rate, against the gradient's sign */
    for (uint32_t i = 0; i < 2; i++) {
        struct shmt_rule rule = rule_of(SHMT_RULE_FTRL, i ? 0.05f : 0, 0);
        struct shmt_update u;
        rule.beta = 0;
        shmt_update_make(&rule, 0.3f, 0, &u);
        for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++) {
            float w = 1.5f, words[2], v, same[2];
            if (!is_legal(write, SHMT_RULE_FTRL)) continue;
            shmt_rule_begin(SHMT_RULE_FTRL, &u, &w, words, 1, 1);
            v = w, memcpy(same, words, sizeof same);
            const struct shmt_span span = {.weight = &v, .sink = &v, .state = same, .plane = 1, .rows = 1, .width = 1};
            for (int k = 0; k < 4; k++) {
                push_one(&rule, write, &w, words, &GRAD[k]);
                shmt_kernels_reference(SHMT_WRITE_RACY, SHMT_RULE_FTRL)->push_dense(&span, 0, 1, &GRAD[k], &u);
                assert_true(fabsf(w - WANT[k]) < 1e-6f && v == w);
            }
        }
    }
}

/* Arithmetic with numbers below FLT_MIN takes many times longer, and rounding would keep them there for ever. */
static void averages_of_gradients_that_ended_become_zero(void **state) {
    (void)state;
    static const enum shmt_rule_kind KINDS[] = {SHMT_RULE_MOMENTUM, SHMT_RULE_NESTEROV, SHMT_RULE_RMSPROP, SHMT_RULE_ADADELTA,
                                                SHMT_RULE_ADAM,     SHMT_RULE_ADAMW,    SHMT_RULE_LAMB};
    for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++)
        for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
            const struct shmt_rule rule = rule_of(KINDS[i], 0, 0);
            float w = 1, words[4] = {0};
            if (!is_legal(write, rule.kind)) continue;
            push_one(&rule, write, &w, words, &(float){-1});
            for (int k = 0; k < 10000; k++) push_one(&rule, write, &w, words, &(float){0});
            for (uint32_t p = 0; p < shmt_rule_planes(&rule, false); p++) assert_true(words[p] == 0);
        }
}

/* Of each element, also of a bias, in every write mode; what is no number is not made one. */
static void gradients_are_limited_element_by_element(void **state) {
    (void)state;
    static const float GRAD[] = {8, -8, 0.25f, 0, 1e30f, -INFINITY, NAN};
    static const float WANT[] = {-0.5f, 0.5f, -0.25f, 0, -0.5f, 0.5f, NAN}; /* rate 1 */
    const struct shmt_rule rule = {.kind = SHMT_RULE_SGD, .clip = 0.5f};
    for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++)
        for (size_t i = 0; i < sizeof GRAD / sizeof *GRAD; i++) {
            float w[2] = {0};
            const uint64_t start[] = {0, 1};
            const uint32_t id = 0;
            const struct shmt_span span = {.weight = w, .sink = w, .rows = 2, .width = 1};
            const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr), .n = 1, .bias = 1, .start = start, .id = &id};
            struct shmt_update u;
            shmt_update_make(&rule, 1, 0, &u);
            if (write == SHMT_WRITE_AGGREGATE)
                shmt_rule_apply(SHMT_RULE_SGD, w, NULL, 0, (float[]){GRAD[i], GRAD[i]}, 2, &u);
            else
                shmt_kernels_find(write, SHMT_RULE_SGD, false, true)->push_sparse(&span, &x, &GRAD[i], &u);
            for (int k = 0; k < 2; k++) assert_true(isnan(WANT[i]) ? isnan(w[k]) : w[k] == WANT[i]);
        }
}

/* By itself, however large its gradients are, and never beyond 0. */
static void weight_decay_takes_its_share_apart_from_gradients(void **state) {
    (void)state;
    for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++) {
        struct shmt_rule rule = rule_of(SHMT_RULE_ADAMW, 0, 0), plain = rule_of(SHMT_RULE_ADAM, 0, 0);
        float w = 2, v = 2, words[4] = {0}, same[4] = {0};
        if (!is_legal(write, SHMT_RULE_ADAMW)) continue;
        rule.weight_decay = 0.5f; /* times a rate of 0.3 */
        push_one(&rule, write, &w, words, &(float){1000});
        push_one(&plain, write, &v, same, &(float){1000});
        assert_true(fabsf((v - w) - 0.3f) < 1e-6f && memcmp(words, same, sizeof words) == 0);
        rule.weight_decay = 100;
        w = 2, memset(words, 0, sizeof words);
        push_one(&rule, write, &w, words, &(float){0});
        assert_true(w == 0);
    }
}

/* Guards look for numbers that are none: no rule may turn them into zeros. */
static void what_is_no_number_stays_none(void **state) {
    (void)state;
    for (uint32_t i = 0; i < SHMT_N_RULES * 4; i++)
        for (enum shmt_write write = SHMT_WRITE_RACY; write <= SHMT_WRITE_AGGREGATE; write++) {
            const struct shmt_rule rule = rule_of(i / 4, L1S[i % 4], L2S[i % 4]);
            float w = 1, words[4] = {0};
            if (!is_legal(write, rule.kind)) continue;
            push_one(&rule, write, &w, words, &(float){NAN});
            assert_true(isnan(w));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_pushes_follow_the_formulas),
        cmocka_unit_test(updates_of_batches_follow_the_formulas),
        cmocka_unit_test(ftrl_minimises_its_objective),
        cmocka_unit_test(adam_gives_the_numbers_of_another_program),
        cmocka_unit_test(adams_corrections_are_one_minus_a_power),
        cmocka_unit_test(corrected_updates_have_the_bits_of_a_plain_loop),
        cmocka_unit_test(squares_of_steps_are_alike_on_every_path),
        cmocka_unit_test(small_l2_is_not_lost_in_rounding),
        cmocka_unit_test(l2_is_stable_for_every_rate),
        cmocka_unit_test(rules_find_the_minimum_of_one_objective),
        cmocka_unit_test(a_zero_gradient_moves_nothing_where_the_rule_says_so),
        cmocka_unit_test(weights_that_were_set_from_outside_stay_until_their_first_gradient),
        cmocka_unit_test(ftrl_that_nothing_holds_rests_until_its_first_gradient),
        cmocka_unit_test(averages_of_gradients_that_ended_become_zero),
        cmocka_unit_test(gradients_are_limited_element_by_element),
        cmocka_unit_test(weight_decay_takes_its_share_apart_from_gradients),
        cmocka_unit_test(what_is_no_number_stays_none),
    };
    return cmocka_run_group_tests_name("store_rules", tests, NULL, NULL);
}
