/* The rules' names, what they refuse, and what a step is made with: see rule.h. The arithmetic of a push is in rule_priv.h,
 * that of the apply phase in apply.c. */
#include "update/rule.h"

#include <math.h>
#include <string.h>

static const char *const NAMES[SHMT_N_RULES] = {
    [SHMT_RULE_SGD] = "sgd",         [SHMT_RULE_MOMENTUM] = "momentum", [SHMT_RULE_ADAGRAD] = "adagrad",
    [SHMT_RULE_ADAM] = "adam",       [SHMT_RULE_FTRL] = "ftrl",         [SHMT_RULE_NESTEROV] = "nesterov",
    [SHMT_RULE_RMSPROP] = "rmsprop", [SHMT_RULE_ADADELTA] = "adadelta", [SHMT_RULE_ADAMW] = "adamw",
    [SHMT_RULE_LAMB] = "lamb"};

const char *shmt_rule_name(enum shmt_rule_kind kind) { return NAMES[kind]; }

int shmt_rule_parse(const char *name, enum shmt_rule_kind *out, struct shmt_error *e) {
    for (uint32_t kind = 0; kind < SHMT_N_RULES; kind++) {
        if (strcmp(NAMES[kind], name) != 0) continue;
        *out = (enum shmt_rule_kind)kind;
        return 0;
    }
    return shmt_refuse(
        e, "unknown optimizer \"%s\": use sgd, momentum, nesterov, adagrad, rmsprop, adadelta, adam, adamw, lamb or ftrl",
        name);
}

/* A mean of squares that forgets by rho. */
static bool has_rho(enum shmt_rule_kind kind) { return kind == SHMT_RULE_RMSPROP || kind == SHMT_RULE_ADADELTA; }

/* What needs norms of all tables before anything is changed. */
static int check_lamb(const struct shmt_rule *rule, enum shmt_write write, struct shmt_error *e) {
    const bool lamb = shmt_rule_needs_norms((enum shmt_rule_kind)rule->kind);
    if (lamb && write != SHMT_WRITE_AGGREGATE)
        return shmt_refuse(e,
                           "lamb needs the norms of a table's weights and of its step before any is changed, which write %s "
                           "never has: use --mode sync, or --optimizer adamw",
                           shmt_write_name(write));
    if (lamb && rule->clip_norm > 0) return shmt_refuse(e, "lamb divides its steps by their own norm: leave out clip-norm");
    return 0;
}

static int check_atomic(const struct shmt_rule *rule, struct shmt_error *e) {
    if (rule->kind == SHMT_RULE_FTRL)
        return shmt_refuse(e,
                           "ftrl cannot be written atomically: its step needs a weight that matches its z and n, but single "
                           "words change one by one; use --write racy or locked");
    if (shmt_rule_corrects((enum shmt_rule_kind)rule->kind))
        return shmt_refuse(e,
                           "%s cannot be written atomically: its step has no bound if its two averages are not of the same "
                           "moment; use --write racy or locked",
                           NAMES[rule->kind]);
    return 0;
}

int shmt_rule_check(const struct shmt_rule *rule, enum shmt_write write, struct shmt_error *e) {
    if (rule->kind >= SHMT_N_RULES) return shmt_refuse(e, "unknown optimizer number %u", rule->kind);
    if (!(rule->l1 >= 0 && rule->l2 >= 0 && isfinite(rule->l1) && isfinite(rule->l2)))
        return shmt_refuse(e, "l1 %g and l2 %g: use finite numbers of at least 0", (double)rule->l1, (double)rule->l2);
    if (!(rule->clip >= 0 && isfinite(rule->clip)))
        return shmt_refuse(e, "clip-value %g: use a number above 0, or 0 for none", (double)rule->clip);
    if (!(rule->clip_norm >= 0 && isfinite(rule->clip_norm)))
        return shmt_refuse(e, "clip-norm %g: use a number above 0, or 0 for none", (double)rule->clip_norm);
    const int refused = check_lamb(rule, write, e);
    if (refused < 0) return refused;
    if (rule->clip_norm > 0 && rule->clip > 0)
        return shmt_refuse(e, "clip-value and clip-norm both limit the gradient: leave out one of them");
    if (rule->kind == SHMT_RULE_SGD) return 0;
    if (!(rule->rho >= 0 && rule->rho < 1 && rule->weight_decay >= 0 && isfinite(rule->weight_decay)))
        return shmt_refuse(e, "rho %g and weight decay %g: use a rho from 0 to below 1 and a weight decay of at least 0",
                           (double)rule->rho, (double)rule->weight_decay);
    if (!(rule->momentum >= 0 && rule->momentum < 1 && rule->beta2 >= 0 && rule->beta2 < 1))
        return shmt_refuse(e, "momentum %g and beta2 %g: use numbers of at least 0 and below 1", (double)rule->momentum,
                           (double)rule->beta2);
    const enum shmt_rule_kind kind = (enum shmt_rule_kind)rule->kind;
    const bool divides = kind == SHMT_RULE_ADAGRAD || shmt_rule_corrects(kind) || has_rho(kind);
    if (!((!divides || rule->epsilon > 0) && isfinite(rule->epsilon) && rule->beta >= 0 && isfinite(rule->beta)))
        return shmt_refuse(e, "epsilon %g and beta %g: use an epsilon above 0 and a beta of at least 0", (double)rule->epsilon,
                           (double)rule->beta);
    return write == SHMT_WRITE_ATOMIC ? check_atomic(rule, e) : 0;
}

int shmt_rule_check_policy(const struct shmt_rule *rule, const struct shmt_policy *policy, struct shmt_error *e) {
    const int rc = shmt_rule_check(rule, (enum shmt_write)policy->write, e);
    if (rc < 0 || !shmt_rule_needs_norms((enum shmt_rule_kind)rule->kind) || !shmt_policy_has_rounds(policy)) return rc;
    return shmt_refuse(e,
                       "lamb needs the norms of a table's weights and of its step before any is changed, but with a quorum or "
                       "staleness parts are changed one by one: use --mode sync, or --optimizer adamw");
}

uint32_t shmt_rule_planes(const struct shmt_rule *rule, bool live) {
    switch (rule->kind) {
        case SHMT_RULE_MOMENTUM:
        case SHMT_RULE_NESTEROV:
        case SHMT_RULE_ADAGRAD:
        case SHMT_RULE_RMSPROP:
            return 1;
        case SHMT_RULE_LAMB:
        case SHMT_RULE_ADAM:
        case SHMT_RULE_ADAMW:
            return live ? 4 : 2;
        case SHMT_RULE_ADADELTA:
        case SHMT_RULE_FTRL:
            return 2;
        default:
            return 0;
    }
}

bool shmt_rule_moves_all(const struct shmt_rule *rule) {
    if (rule->kind == SHMT_RULE_FTRL) return false; /* with no gradient, z and n rest, and w is what they say */
    const bool sums =
        rule->kind == SHMT_RULE_SGD || rule->kind == SHMT_RULE_ADAGRAD; /* the others keep averages, which forget */
    return !sums || shmt_rule_regularises(rule);
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
                                .clip_factor = 1,
                                .l1 = rule->l1,
                                .l2 = rule->l2,
                                .momentum = rule->momentum,
                                .beta2 = rule->beta2,
                                .epsilon = rule->epsilon,
                                .beta = rule->beta,
                                .rho = rule->rho,
                                .weight_decay = rule->weight_decay,
                                .clip = rule->clip};
    if (!shmt_rule_corrects((enum shmt_rule_kind)rule->kind)) return;
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
