/* Damped merging: the shares of update/merge.h against their formula in double, and what the master takes by them. What it does
 * in a run is in test_replicas_damped.c. */
#include "merge_help.h"

/* The rate at which a parameter moves, in double. */
static double rate_of(enum shmt_rule_kind rule, const struct shmt_update *u, const float *const *state, uint32_t i) {
    const double rate = (double)u->rate, epsilon = (double)u->epsilon;
    switch (rule) {
        case SHMT_RULE_MOMENTUM:
        case SHMT_RULE_NESTEROV:
            return rate / (1 - (double)u->momentum);
        case SHMT_RULE_ADAGRAD:
        case SHMT_RULE_RMSPROP:
            return rate / (sqrt((double)state[0][i]) + epsilon);
        case SHMT_RULE_ADADELTA:
            return rate * sqrt(((double)state[1][i] + epsilon) / ((double)state[0][i] + epsilon));
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
            return rate / (sqrt((double)state[1][i] / (double)state[3][i]) + epsilon);
        case SHMT_RULE_FTRL:
            return 1 / (((double)u->beta + sqrt((double)state[1][i])) / rate + (double)u->l2);
        default:
            return rate;
    }
}

static struct shmt_update update_of(enum shmt_rule_kind kind) {
    const struct shmt_rule rule = {
        .kind = kind, .l2 = 0.01f, .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .beta = 1, .rho = 0.9f};
    struct shmt_update u;
    shmt_update_make(&rule, 0.125f, 0, &u);
    return u;
}

static double share_of(double a, double replicas) {
    const double all = replicas * a, q_all = 1 - 1 / (1 + all + all * all / 2), q = 1 - 1 / (1 + a + a * a / 2);
    return a < 1e-9 ? 1 : q_all / (replicas * q);
}

static void shares_are_those_of_the_formula_for_every_rule(void **state) {
    static float h[SHMT_MERGE_STEP], words[SHMT_MAX_PLANES][SHMT_MERGE_STEP], share[SHMT_MERGE_STEP];
    const float *const planes[] = {words[0], words[1], words[2], words[3]};
    static const uint32_t REPLICAS[] = {1, 2, 8, 64};
    (void)state;
    for (uint32_t i = 0; i < SHMT_MERGE_STEP; i++) {
        h[i] = ldexpf(1, 4 - (int)i / 2); /* from common to all but never */
        for (uint32_t p = 0; p < SHMT_MAX_PLANES; p++) words[p][i] = 0.1f + fabsf(number(i, p, 8));
    }
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++)
        for (size_t k = 0; k < 4 && !shmt_rule_needs_norms(rule); k++) {
            const struct shmt_damping d = {update_of(rule), 1024, REPLICAS[k], h};
            shmt_merge_shares(rule, &d, planes, SHMT_MERGE_STEP, share);
            for (uint32_t i = 0; i < SHMT_MERGE_STEP; i++) {
                const double a = rate_of(rule, &d.u, planes, i) * (double)h[i] * 1024;
                assert_near(share[i], share_of(a, REPLICAS[k]));
                if (k == 0) assert_true(share[i] == 1);
            }
        }
}

static void shares_lie_between_a_mean_and_a_sum_whatever_the_curvature(void **state) {
    static const float H[] = {0, 1e-30f, 1e30f, INFINITY, NAN};
    struct shmt_damping d = {update_of(SHMT_RULE_SGD), 1e9, 8, H};
    float share[5];
    (void)state;
    shmt_merge_shares(SHMT_RULE_SGD, &d, NULL, 5, share);
    assert_true(share[0] == 1 && share[1] == 1);
    for (int i = 2; i < 5; i++) assert_near(share[i], 1 / 8.0);
}

/* All words of replica k, with these curvatures. */
static struct shmt_merge_words words_of(enum shmt_rule_kind rule, struct copies *c, uint32_t planes) {
    struct shmt_merge_words words = {.n = 1 + planes};
    for (uint32_t word = 0; word <= planes; word++) {
        words.how[word] = shmt_merging_of(SHMT_MERGE_DAMPED, rule, word, MOST);
        words.master[word] = word == 0 ? c->master : c->replica[4 + word - 1]; /* the last replicas stand for its state */
        words.replica[word] = c->replica[word];
        words.base[word] = c->base[word];
    }
    return words;
}

static void the_master_takes_its_share_of_every_word(void **state) {
    static float h[N];
    static const enum shmt_rule_kind RULES[] = {SHMT_RULE_SGD, SHMT_RULE_MOMENTUM, SHMT_RULE_ADAGRAD, SHMT_RULE_FTRL};
    static const uint32_t PLANES[] = {0, 1, 1, 2};
    (void)state;
    for (uint32_t i = 0; i < N; i++) h[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 0.01f : 1e6f;
    for (size_t r = 0; r < 4; r++)
        for (int beside = SHMT_MERGE_NOBODY; beside <= SHMT_MERGE_ATOMIC; beside++) {
            const struct shmt_damping d = {update_of(RULES[r]), 100, 4, h};
            fill(6, true, true);
            for (uint32_t k = 1; k < 3; k++) /* squares only grow */
                for (uint32_t i = 0; i < N; i++) {
                    if (before->replica[k][i] < before->base[k][i]) before->replica[k][i] += before->base[k][i];
                    after->replica[k][i] = before->replica[k][i];
                }
            const struct shmt_merge_words old = words_of(RULES[r], before, PLANES[r]),
                                          now = words_of(RULES[r], after, PLANES[r]);
            const float *const planes[SHMT_MAX_PLANES] = {old.replica[1], old.replica[2], NULL, NULL};
            assert_true(shmt_merge_damped(RULES[r], &d, (enum shmt_merge_beside)beside, &now, 0, N));
            for (uint32_t i = 0; i < N; i++) {
                const double a = rate_of(RULES[r], &d.u, planes, i) * (double)h[i] * 100, share = share_of(a, 4);
                for (uint32_t word = 0; word < now.n; word++) {
                    const struct shmt_merging how = now.how[word];
                    const double m = old.master[word][i], x = old.replica[word][i], b = old.base[word][i];
                    const double d_of = how.kind == SHMT_MERGING_AVERAGE ? (x - m) / MOST : share * (x - b);
                    if (how.kind == SHMT_MERGING_FOLLOWS) continue;
                    assert_near(now.master[word][i], same_bits(old.replica[word][i], old.base[word][i]) ? m : m + d_of);
                    assert_true(same_bits(now.replica[word][i], now.master[word][i]));
                    assert_true(same_bits(now.base[word][i], now.master[word][i]));
                }
            }
            assert_false(shmt_merge_damped(RULES[r], &d, (enum shmt_merge_beside)beside, &now, 0, N)); /* nothing is left */
        }
}

static void a_single_replica_that_merges_damped_is_taken_bit_by_bit(void **state) {
    static float h[N];
    (void)state;
    for (uint32_t i = 0; i < N; i++) h[i] = (float)i;
    for (int beside = SHMT_MERGE_NOBODY; beside <= SHMT_MERGE_ATOMIC; beside++) {
        const struct shmt_damping d = {update_of(SHMT_RULE_SGD), 1000, 1, h};
        fill(5, false, false);
        const struct shmt_merge_words words = words_of(SHMT_RULE_SGD, after, 0);
        shmt_merge_damped(SHMT_RULE_SGD, &d, (enum shmt_merge_beside)beside, &words, 0, N);
        assert_memory_equal(after->master, before->replica[0], sizeof after->master);
        assert_memory_equal(after->replica[0], before->replica[0], sizeof after->master);
    }
}

/* R replicas that go 1 - e^-a of the way to where the loss is least, one merge each: the master comes to about where one worker
 * would be that did all of it, for common features and rare ones. A sum would be R times as far, or beyond it. */
static void damped_replicas_come_as_far_as_one_worker(void **state) {
    static const float A[] = {1e-4f, 0.01f, 0.1f, 1, 5, 100};
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        const float h = 1;
        struct shmt_update u = update_of(SHMT_RULE_SGD);
        u.rate = A[k];
        const struct shmt_damping d = {u, 1, MOST, &h};
        double way = 0; /* of the master, to 1; in turns, each from what it found there at its last merge */
        float share;
        shmt_merge_shares(SHMT_RULE_SGD, &d, NULL, 1, &share);
        for (uint32_t i = 0; i < MOST; i++) way += (double)share * (1 - exp(-(double)A[k]));
        const double one = 1 - exp(-(double)A[k] * MOST);
        assert_true(fabs(way - one) < 0.06 * one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_those_of_the_formula_for_every_rule),
        cmocka_unit_test(shares_lie_between_a_mean_and_a_sum_whatever_the_curvature),
        cmocka_unit_test(the_master_takes_its_share_of_every_word),
        cmocka_unit_test(a_single_replica_that_merges_damped_is_taken_bit_by_bit),
        cmocka_unit_test(damped_replicas_come_as_far_as_one_worker),
    };
    return cmocka_run_group_tests(tests, make_copies, free_copies);
}
