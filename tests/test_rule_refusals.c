/* Names of update rules, and what they refuse: write modes and policies that they cannot bear, constants that cannot be. What they
 * compute is tested in test_store_rules.c. */
#include "store_help.h"

#include <math.h>

static void refused(struct shmt_rule rule, enum shmt_write write, const char *words) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_rule_check(&rule, write, &e), SHMTRAIN_E_USAGE);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void rules_refuse_what_they_cannot_bear_and_say_why(void **state) {
    (void)state;
    refused(rule_of(SHMT_RULE_FTRL, 0, 0), SHMT_WRITE_ATOMIC, "a weight that matches its z and n");
    refused(rule_of(SHMT_RULE_ADAM, 0, 0), SHMT_WRITE_ATOMIC, "adam cannot be written atomically: its step has no bound");
    refused(rule_of(SHMT_RULE_ADAMW, 0, 0), SHMT_WRITE_ATOMIC, "adamw cannot be written atomically: its step has no bound");
    refused(rule_of(SHMT_RULE_ADAM, 0, 0), SHMT_WRITE_ATOMIC, "use --write racy or locked");
    refused(rule_of(SHMT_RULE_LAMB, 0, 0), SHMT_WRITE_RACY,
            "lamb needs the norms of a table's weights and of its step before any is changed, which write racy never has: use "
            "--mode sync, or --optimizer adamw");
    for (uint32_t i = 0; i < SHMT_N_RULES * 4; i++) {
        const struct shmt_rule rule = rule_of(i / 4, 0.1f, 0.1f);
        const bool alone = rule.kind == SHMT_RULE_FTRL || rule.kind == SHMT_RULE_ADAM || rule.kind == SHMT_RULE_ADAMW;
        const bool never_live = rule.kind == SHMT_RULE_LAMB && i % 4 != SHMT_WRITE_AGGREGATE;
        assert_int_equal(is_legal(i % 4, rule.kind), !(alone && i % 4 == SHMT_WRITE_ATOMIC) && !never_live);
    }
}

static void what_needs_norms_is_refused_where_parts_have_their_updates_apart(void **state) {
    (void)state;
    static const struct {
        struct shmt_policy policy;
        bool legal;
    } CASES[] = {{{.write = SHMT_WRITE_AGGREGATE}, true},
                 {{.write = SHMT_WRITE_AGGREGATE, .staleness = 2}, false},
                 {{.write = SHMT_WRITE_AGGREGATE, .quorum = 3}, false},
                 {{.write = SHMT_WRITE_LOCKED}, false}};
    struct shmt_rule lamb = rule_of(SHMT_RULE_LAMB, 0, 0), adamw = rule_of(SHMT_RULE_ADAMW, 0, 0);
    struct shmt_error e = {0};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        assert_int_equal(shmt_rule_check_policy(&adamw, &CASES[i].policy, NULL), 0);
        assert_int_equal(shmt_rule_check_policy(&lamb, &CASES[i].policy, &e), CASES[i].legal ? 0 : SHMTRAIN_E_USAGE);
    }
    e = (struct shmt_error){0};
    assert_int_equal(shmt_rule_check_policy(&lamb, &CASES[1].policy, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "with a quorum or staleness parts are changed one by one: use --mode sync"));
    lamb.clip_norm = 1;
    refused(lamb, SHMT_WRITE_AGGREGATE, "lamb divides its steps by their own norm: leave out clip-norm");
}

static void constants_that_cannot_be_are_refused(void **state) {
    (void)state;
#define WITH(kind_, field, value, words)              \
    do {                                              \
        struct shmt_rule rule = rule_of(kind_, 0, 0); \
        rule.field = value;                           \
        refused(rule, SHMT_WRITE_RACY, words);        \
    } while (0)
    WITH(SHMT_RULE_SGD, kind, 99, "unknown optimizer number 99");
    WITH(SHMT_RULE_SGD, l1, -1, "l1 -1");
    WITH(SHMT_RULE_SGD, l2, INFINITY, "l2 inf");
    WITH(SHMT_RULE_SGD, l2, NAN, "finite numbers");
    WITH(SHMT_RULE_MOMENTUM, momentum, 1, "of at least 0 and below 1");
    WITH(SHMT_RULE_ADAM, beta2, 1, "of at least 0 and below 1");
    WITH(SHMT_RULE_ADAM, beta2, NAN, "of at least 0 and below 1");
    WITH(SHMT_RULE_ADAM, epsilon, 0, "an epsilon above 0");
    WITH(SHMT_RULE_ADAGRAD, epsilon, -1, "an epsilon above 0");
    WITH(SHMT_RULE_NESTEROV, momentum, 1, "of at least 0 and below 1");
    WITH(SHMT_RULE_RMSPROP, rho, 1, "a rho from 0 to below 1");
    WITH(SHMT_RULE_ADADELTA, rho, NAN, "a rho from 0 to below 1");
    WITH(SHMT_RULE_ADADELTA, epsilon, 0, "an epsilon above 0");
    WITH(SHMT_RULE_RMSPROP, epsilon, 0, "an epsilon above 0");
    WITH(SHMT_RULE_ADAMW, epsilon, 0, "an epsilon above 0");
    WITH(SHMT_RULE_ADAMW, weight_decay, -1, "a weight decay of at least 0");
    WITH(SHMT_RULE_ADAMW, weight_decay, INFINITY, "a weight decay of at least 0");
    WITH(SHMT_RULE_SGD, clip_norm, -1, "clip-norm -1: use a number above 0");
    struct shmt_rule both = {.kind = SHMT_RULE_SGD, .clip = 1, .clip_norm = 1};
    refused(both, SHMT_WRITE_AGGREGATE, "clip-value and clip-norm both limit the gradient: leave out one of them");
    WITH(SHMT_RULE_SGD, clip, -1, "clip-value -1: use a number above 0");
    WITH(SHMT_RULE_ADAM, clip, INFINITY, "clip-value inf");
    WITH(SHMT_RULE_FTRL, beta, -1, "a beta of at least 0");
    WITH(SHMT_RULE_FTRL, beta, INFINITY, "a beta of at least 0");
    /* Constants of other rules do not matter to sgd. */
    assert_int_equal(shmt_rule_check(&(struct shmt_rule){.kind = SHMT_RULE_SGD, .momentum = 5}, SHMT_WRITE_RACY, NULL), 0);
    assert_int_equal(shmt_rule_check(&(struct shmt_rule){.kind = SHMT_RULE_FTRL}, SHMT_WRITE_RACY, NULL), 0);
}

static void rules_have_names(void **state) {
    (void)state;
    struct shmt_error e = {0};
    enum shmt_rule_kind kind;
    for (uint32_t i = 0; i < SHMT_N_RULES; i++) {
        assert_int_equal(shmt_rule_parse(shmt_rule_name(i), &kind, NULL), 0);
        assert_int_equal(kind, i);
    }
    assert_int_equal(shmt_rule_parse("adamax", &kind, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "use sgd, momentum, nesterov, adagrad, rmsprop, adadelta, adam, adamw, lamb or ftrl"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_refuse_what_they_cannot_bear_and_say_why),
        cmocka_unit_test(what_needs_norms_is_refused_where_parts_have_their_updates_apart),
        cmocka_unit_test(constants_that_cannot_be_are_refused),
        cmocka_unit_test(rules_have_names),
    };
    return cmocka_run_group_tests_name("rule_refusals", tests, NULL, NULL);
}
