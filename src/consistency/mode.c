/* The list of modes, and names of points: see mode.h. */
#include "consistency/mode.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "consistency/mode_priv.h"

static const struct shmt_mode *const MODES[] = {
    &SHMT_MODE_ASYNC, &SHMT_MODE_HOGWILD, &SHMT_MODE_SYNC, &SHMT_MODE_SSP, &SHMT_MODE_BACKUP, &SHMT_MODE_LOCAL, &SHMT_MODE_NODE,
};

#define N_MODES (sizeof MODES / sizeof *MODES)

const struct shmt_mode *shmt_mode_at(size_t i) { return i < N_MODES ? MODES[i] : NULL; }

static const struct shmt_mode *find(const char *text, size_t length) {
    for (size_t i = 0; i < N_MODES; i++)
        if (strlen(MODES[i]->name) == length && memcmp(MODES[i]->name, text, length) == 0) return MODES[i];
    return NULL;
}

const struct shmt_mode *shmt_mode_find(const char *text) { return find(text, strcspn(text, ":")); }

static int refuse_name(const char *given_as, const char *text, struct shmt_error *e) {
    char names[160] = "";
    for (size_t i = 0; i < N_MODES; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i == 0 ? "" : i + 1 < N_MODES ? ", " : " and ", MODES[i]->name);
    }
    return shmt_fail(e, SHMTRAIN_E_USAGE, "%s \"%.60s\" is not one of %s", given_as, text, names);
}

/* ---- the number behind the colon ---- */

static bool parse_number(const char *text, uint64_t *out) {
    char *end;
    if (text[0] < '0' || text[0] > '9') return false; /* strtoull takes signs and blanks */
    errno = 0;
    *out = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static int set_staleness(const char *given_as, struct shmt_policy *policy, const char *text, struct shmt_error *e) {
    if (strcmp(text, "inf") == 0) {
        policy->staleness = SHMT_STALENESS_INF;
        return 0;
    }
    if (parse_number(text, &policy->staleness) && policy->staleness < SHMT_STALENESS_INF) return 0;
    return shmt_fail(e, SHMTRAIN_E_USAGE, "%s ssp:%.40s: the number is a staleness bound, in clocks, as in ssp:4", given_as,
                     text);
}

static int set_count(const char *given_as, uint32_t *out, const char *name, const char *text, const char *what,
                     struct shmt_error *e) {
    uint64_t n;
    if (!parse_number(text, &n) || n == 0 || n > INT32_MAX)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "%s %s:%.40s: %s must be at least 1, as in %s:6", given_as, name, text, what,
                         name);
    *out = (uint32_t)n;
    return 0;
}

static int set_number(const char *given_as, const struct shmt_mode *mode, struct shmt_policy *policy, const char *text,
                      struct shmt_error *e) {
    switch (mode->number) {
        case SHMT_NUMBER_STALENESS:
            return set_staleness(given_as, policy, text, e);
        case SHMT_NUMBER_QUORUM:
            return set_count(given_as, &policy->quorum, mode->name, text, "the number of gradients an update waits for", e);
        case SHMT_NUMBER_MERGE_EVERY:
            return set_count(given_as, &policy->merge_every, mode->name, text, "the number of clocks between two merges", e);
        default:
            return shmt_fail(e, SHMTRAIN_E_USAGE, "%s %s takes no number: \"%.60s\"", given_as, mode->name, text);
    }
}

int shmt_mode_parse(const char *given_as, const char *text, struct shmt_policy *out, struct shmt_error *e) {
    const size_t length = strcspn(text, ":");
    const struct shmt_mode *mode = shmt_mode_find(text);
    if (!mode) return refuse_name(given_as, text, e);
    struct shmt_policy policy = mode->policy;
    const int rc = text[length] == ':' ? set_number(given_as, mode, &policy, text + length + 1, e) : 0;
    if (rc == 0) *out = policy;
    return rc;
}

/* ---- names of points ---- */

/* Whether a policy is a mode's point, whatever the number is that the mode takes. */
static bool is_of(const struct shmt_policy *policy, const struct shmt_mode *mode) {
    struct shmt_policy p = mode->policy;
    if (mode->may_copy && policy->replicas == SHMT_REPLICAS_WORKER && policy->merge == SHMT_MERGE_DAMPED) {
        p.replicas = policy->replicas;
        p.merge = policy->merge;
        p.merge_every = policy->merge_every;
    }
    const bool numbered = mode->number != SHMT_NUMBER_NONE;
    if (mode->number == SHMT_NUMBER_STALENESS && policy->staleness > 0 && policy->staleness < SHMT_STALENESS_INF)
        p.staleness = policy->staleness;
    if (mode->number == SHMT_NUMBER_QUORUM && policy->quorum != SHMT_QUORUM_ALL) p.quorum = policy->quorum;
    if (mode->number == SHMT_NUMBER_MERGE_EVERY) p.merge_every = policy->merge_every;
    p.late = numbered && mode->number == SHMT_NUMBER_QUORUM ? policy->late : p.late;
    return shmt_policy_equal(&p, policy);
}

static void add(char *out, size_t bytes, const char *text) {
    const size_t used = strlen(out);
    snprintf(out + used, bytes - used, "%s", text);
}

static void name_axes(const struct shmt_policy *policy, char *out, size_t bytes) {
    char wait[40] = ", staleness inf";
    if (policy->staleness != SHMT_STALENESS_INF)
        snprintf(wait, sizeof wait, ", staleness %llu", (unsigned long long)policy->staleness);
    add(out, bytes, shmt_write_name(policy->write));
    add(out, bytes, wait);
    if (!shmt_policy_has_replicas(policy)) return;
    add(out, bytes, ", replicas ");
    add(out, bytes, shmt_replicas_name(policy->replicas));
}

void shmt_mode_name(const struct shmt_policy *policy, const char *asked_for, char *out, size_t bytes) {
    const struct shmt_mode *mode = asked_for ? shmt_mode_find(asked_for) : NULL;
    /* With one copy in the end, a mode of which copies are no choice (`node` on one node) has not become the one that chooses. */
    const bool chooses = !mode || mode->may_copy || shmt_policy_has_replicas(policy);
    if (mode && !is_of(policy, mode)) mode = NULL;
    for (size_t i = 0; i < N_MODES && !mode; i++)
        if (is_of(policy, MODES[i]) && (chooses || !MODES[i]->may_copy)) mode = MODES[i];
    out[0] = '\0';
    if (mode)
        add(out, bytes, mode->name);
    else
        name_axes(policy, out, bytes);
}
