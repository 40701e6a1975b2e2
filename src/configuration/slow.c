/* Option `slow`: see slow.h. Called when the option is set (options.c); checked against the workers when a run begins (running/spec.c).
 *
 *     plan  = entry {"," entry}
 *     entry = who ":" how         who = WORKER | "random:" SHARE         how = FACTOR "x" | "+" TIME ("us" | "ms" | "s") */
#include "configuration/slow.h"

#include <string.h>

#include "base/plain.h"

#define MOST_FACTOR  1e6
#define MOST_SECONDS 3600.0
#define MOST_WORKER  4095

/* "5x", "+2ms" between `how` and `end`. */
static bool parse_how(const char *how, const char *end, struct shmt_slow_entry *out) {
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double x;
    out->factor = 1;
    out->more_ns = 0;
    if (how < end && end[-1] == 'x') {
        if (shmt_plain_decimal(how, &x) != end - 1 || x < 1 || x > MOST_FACTOR) return false;
        out->factor = x;
        return true;
    }
    for (size_t i = 0; how < end && *how == '+' && i < sizeof UNITS / sizeof *UNITS; i++) {
        const char *unit = end - strlen(UNITS[i].unit);
        if (unit <= how + 1 || memcmp(unit, UNITS[i].unit, strlen(UNITS[i].unit)) != 0) continue;
        if (shmt_plain_decimal(how + 1, &x) != unit || x * UNITS[i].ns > MOST_SECONDS * 1e9) continue; /* "s" ends "ms", too */
        out->more_ns = (uint64_t)(x * UNITS[i].ns + 0.5);
        return true;
    }
    return false;
}

static const char CHANCE[] = "random:";
static bool is_by_chance(const char *entry) { return strncmp(entry, CHANCE, sizeof CHANCE - 1) == 0; }

/* The worker, or the share that chance has; returns how it is slowed down, behind the colon. NULL: neither. */
static const char *parse_who(const char *entry, const char *end, struct shmt_slow_entry *out) {
    const bool by_chance = is_by_chance(entry);
    const char *who = by_chance ? entry + sizeof CHANCE - 1 : entry, *colon = strchr(who, ':');
    double x;
    if (!colon || colon >= end || shmt_plain_decimal(who, &x) != colon) return NULL;
    if (by_chance ? x > 1 : x > MOST_WORKER || memchr(who, '.', (size_t)(colon - who)) != NULL) return NULL;
    out->worker = by_chance ? SHMT_SLOW_CHANCE : (uint32_t)x;
    out->share = by_chance ? x : 1;
    return colon + 1;
}

static int refuse(const char *given_as, const char *entry, const char *end, const char *expected, struct shmt_error *e) {
    const int n = end - entry < 60 ? (int)(end - entry) : 60;
    return shmt_refuse(e, "%s %.*s: expected %s", given_as, n > 0 ? n : 2, n > 0 ? entry : "\"\"", expected);
}

static int parse_entry(const char *given_as, const char *entry, const char *end, struct shmt_slow_entry *out,
                       struct shmt_error *e) {
    const char *how = parse_who(entry, end, out);
    if (!how && is_by_chance(entry))
        return refuse(given_as, entry, end, "random:SHARE:HOW with a share from 0 to 1, as in random:0.1:10x", e);
    if (!how) return refuse(given_as, entry, end, "WORKER:HOW or random:SHARE:HOW, as in 3:5x, 3:+2ms or random:0.1:10x", e);
    if (!parse_how(how, end, out))
        return refuse(given_as, entry, end,
                      "a factor from 1x to 1000000x, or a time up to an hour for each work item, as in +2ms (us, ms or s)", e);
    return 0;
}

int shmt_slow_parse(const char *given_as, const char *text, struct shmt_slow_plan *out, struct shmt_error *e) {
    struct shmt_slow_plan plan = {0};
    for (const char *entry = text; text[0] != '\0'; entry++) {
        const char *end = entry + strcspn(entry, ",");
        if (plan.n == SHMT_SLOW_MOST) return refuse(given_as, text, end, "at most 64 entries", e);
        const int rc = parse_entry(given_as, entry, end, &plan.entry[plan.n], e);
        if (rc < 0) return rc;
        plan.n++;
        entry = end;
        if (*end == '\0') break;
    }
    *out = plan;
    return 0;
}

int shmt_slow_check(const struct shmt_slow_plan *plan, const char *text, uint32_t n_workers, struct shmt_error *e) {
    const char *entry = text;
    for (uint32_t i = 0; i < plan->n; i++) {
        const int n = (int)strcspn(entry, ",");
        if (plan->entry[i].worker != SHMT_SLOW_CHANCE && plan->entry[i].worker >= n_workers)
            return n_workers == 1
                       ? shmt_refuse(e, "--slow %.*s: there is only worker 0", n, entry)
                       : shmt_refuse(e, "--slow %.*s: there are %u workers, 0 to %u", n, entry, n_workers, n_workers - 1);
        entry += n + 1;
    }
    return 0;
}
