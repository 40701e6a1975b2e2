/* Points of the consistency space: see policy.h. */
#include "consistency/policy.h"

#include <string.h>

static const struct {
    const char *name;
    struct shmt_policy policy;
} PRESETS[] = {
    {"async", {SHMT_WRITE_RACY, SHMT_STALENESS_INF}},
    {"sync", {SHMT_WRITE_AGGREGATE, 0}},
};

static const char *const WRITE_NAMES[] = {[SHMT_WRITE_RACY] = "racy",
                                          [SHMT_WRITE_ATOMIC] = "atomic",
                                          [SHMT_WRITE_LOCKED] = "locked",
                                          [SHMT_WRITE_AGGREGATE] = "aggregate"};

/* Points without a name of their own: [write][staleness is 0]. */
static const char *const OTHER_NAMES[][2] = {
    [SHMT_WRITE_RACY] = {"async", "racy, staleness 0"},
    [SHMT_WRITE_ATOMIC] = {"atomic, staleness inf", "atomic, staleness 0"},
    [SHMT_WRITE_LOCKED] = {"locked, staleness inf", "locked, staleness 0"},
    [SHMT_WRITE_AGGREGATE] = {"aggregate, staleness inf", "sync"},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

int shmt_policy_preset(const char *mode, struct shmt_policy *out, struct shmt_error *e) {
    for (size_t i = 0; i < COUNT(PRESETS); i++) {
        if (strcmp(PRESETS[i].name, mode) != 0) continue;
        *out = PRESETS[i].policy;
        return 0;
    }
    return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no mode \"%s\": take async or sync", mode);
}

const char *shmt_policy_name(const struct shmt_policy *policy) {
    for (size_t i = 0; i < COUNT(PRESETS); i++) {
        const struct shmt_policy *p = &PRESETS[i].policy;
        if (p->write == policy->write && p->staleness == policy->staleness) return PRESETS[i].name;
    }
    return OTHER_NAMES[policy->write][policy->staleness == 0];
}

int shmt_policy_check(const struct shmt_policy *policy, struct shmt_error *e) {
    if (policy->staleness != 0 && policy->staleness != SHMT_STALENESS_INF)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "staleness %llu: take 0 (wait for all at each clock) or inf (never wait)",
                         (unsigned long long)policy->staleness);
    if (policy->write == SHMT_WRITE_AGGREGATE && policy->staleness != 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "write aggregate needs a finite staleness: an update waits for all gradients; take --staleness 0");
    return 0;
}

const char *shmt_write_name(enum shmt_write write) { return WRITE_NAMES[write]; }

int shmt_write_parse(const char *name, enum shmt_write *out, struct shmt_error *e) {
    for (size_t i = 0; i < COUNT(WRITE_NAMES); i++) {
        if (strcmp(WRITE_NAMES[i], name) != 0) continue;
        *out = (enum shmt_write)i;
        return 0;
    }
    return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no write mode \"%s\": take racy, atomic, locked or aggregate", name);
}

uint64_t shmt_policy_wait_for(const struct shmt_policy *policy, uint64_t mine) {
    return mine > policy->staleness ? mine - policy->staleness : 0;
}
