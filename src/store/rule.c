/* The rules' names, what they refuse, and what a step is made with: see rule.h. The arithmetic of a push is in rule_priv.h,
 * that of the apply phase in apply.c. */
#include "store/rule.h"

#include <math.h>
#include <string.h>

static const char *const NAMES[SHMT_N_RULES] = {[SHMT_RULE_SGD] = "sgd",
                                                [SHMT_RULE_MOMENTUM] = "momentum",
                                                [SHMT_RULE_ADAGRAD] = "adagrad",
                                                [SHMT_RULE_ADAM] = "adam",
                                                [SHMT_RULE_FTRL] = "ftrl"};

const char *shmt_rule_name(enum shmt_rule_kind kind) { return NAMES[kind]; }

int shmt_rule_parse(const char *name, enum shmt_rule_kind *out, struct shmt_error *e) {
    for (uint32_t kind = 0; kind < SHMT_N_RULES; kind++) {
        if (strcmp(NAMES[kind], name) != 0) continue;
        *out = (enum shmt_rule_kind)kind;
        return 0;
    }
    return shmt_fail(e, SHMTRAIN_E_USAGE, "unknown optimizer \"%s\": use sgd, momentum, adagrad, adam or ftrl", name);
}

static int check_atomic(const struct shmt_rule *rule, struct shmt_error *e) {
    if (rule->kind == SHMT_RULE_FTRL)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "ftrl cannot be written atomically: its step needs a weight that matches its z and n, but single "
                         "words change one by one; use --write racy or locked");
    if (rule->kind == SHMT_RULE_ADAM)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "adam cannot be written atomically: its step has no bound if its two averages are not of the same "
                         "moment; use --write racy or locked");
    return 0;
}

int shmt_rule_check(const struct shmt_rule *rule, enum shmt_write write, struct shmt_error *e) {
    if (rule->kind >= SHMT_N_RULES) return shmt_fail(e, SHMTRAIN_E_USAGE, "unknown optimizer number %u", rule->kind);
    if (!(rule->l1 >= 0 && rule->l2 >= 0 && isfinite(rule->l1) && isfinite(rule->l2)))
        return shmt_fail(e, SHMTRAIN_E_USAGE, "l1 %g and l2 %g: use finite numbers of at least 0", (double)rule->l1,
                         (double)rule->l2);
    if (rule->kind == SHMT_RULE_SGD) return 0;
    if (!(rule->momentum >= 0 && rule->momentum < 1 && rule->beta2 >= 0 && rule->beta2 < 1))
        return shmt_fail(e, SHMTRAIN_E_USAGE, "momentum %g and beta2 %g: use numbers of at least 0 and below 1",
                         (double)rule->momentum, (double)rule->beta2);
    const bool divides = rule->kind == SHMT_RULE_ADAGRAD || rule->kind == SHMT_RULE_ADAM;
    if (!((!divides || rule->epsilon > 0) && isfinite(rule->epsilon) && rule->beta >= 0 && isfinite(rule->beta)))
        return shmt_fail(e, SHMTRAIN_E_USAGE, "epsilon %g and beta %g: use an epsilon above 0 and a beta of at least 0",
                         (double)rule->epsilon, (double)rule->beta);
    return write == SHMT_WRITE_ATOMIC ? check_atomic(rule, e) : 0;
}

uint32_t shmt_rule_planes(const struct shmt_rule *rule, bool live) {
    switch (rule->kind) {
        case SHMT_RULE_MOMENTUM:
        case SHMT_RULE_ADAGRAD:
            return 1;
        case SHMT_RULE_ADAM:
            return live ? 4 : 2;
        case SHMT_RULE_FTRL:
            return 2;
        default:
            return 0;
    }
}

bool shmt_rule_moves_all(const struct shmt_rule *rule) {
    if (rule->kind == SHMT_RULE_FTRL) return false; /* with no gradient, z and n rest, and w is what they say */
    return rule->kind == SHMT_RULE_MOMENTUM || rule->kind == SHMT_RULE_ADAM || shmt_rule_regularises(rule);
}

/* 1 - base^n by multiplications alone, which are rounded alike everywhere. */
static float correction(double base, uint64_t n) {
    double power = 1;
    for (double factor = base; n > 0; n /= 2, factor *= factor)
        if (n % 2 == 1) power *= factor;
    return (float)(1 - power);
}

void shmt_update_make(const struct shmt_rule *rule, float rate, uint64_t step, struct shmt_update *out) {
    *out = (struct shmt_update){.rate = rate,
                                .scale = 1,
                                .l1 = rule->l1,
                                .l2 = rule->l2,
                                .momentum = rule->momentum,
                                .beta2 = rule->beta2,
                                .epsilon = rule->epsilon,
                                .beta = rule->beta};
    if (rule->kind != SHMT_RULE_ADAM) return;
    out->correct1 = correction((double)rule->momentum, step + 1);
    out->correct2 = correction((double)rule->beta2, step + 1);
}

/* ftrl with n = 0: w = -(z - sign(z) l1) / (beta / r + l2), solved for z. */
void shmt_rule_begin(enum shmt_rule_kind kind, const struct shmt_update *u, float *w, float *state, uint64_t plane,
                     uint64_t n) {
    const float zero = 0;
    if (kind != SHMT_RULE_FTRL) return;
    for (uint64_t i = 0; i < n; i++) {
        state[i] = w[i] == 0 ? 0 : -w[i] * (u->beta / u->rate + u->l2) - copysignf(u->l1, w[i]);
        state[plane + i] = 0;
        shmt_rule_apply(kind, w + i, state + i, plane, &zero, 1, u); /* the weight that z says */
    }
}
