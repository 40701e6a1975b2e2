/* Option `race-window`: see race.h. Called when the option is set (options.c).
 *
 *     window = [SHARE ":"] TIME         TIME = number ("ns" | "us" | "ms" | "s") */
#include "configuration/race.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "update/race.h"

/* A decimal number; what follows it, or NULL where there is none. */
static const char *parse_number(const char *text, double *out) {
    char *rest;
    if (strspn(text, "0123456789.") == 0) return NULL; /* strtod takes signs, blanks and words */
    *out = strtod(text, &rest);
    return rest == text ? NULL : rest;
}

static bool parse_time(const char *text, uint64_t *ns_out) {
    static const struct {
        const char *unit;
        double ns;
    } UNITS[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
    double x;
    const char *unit = parse_number(text, &x);
    for (size_t i = 0; unit && i < sizeof UNITS / sizeof *UNITS; i++) {
        if (strcmp(unit, UNITS[i].unit) != 0) continue;
        if (x * UNITS[i].ns < 1 || x * UNITS[i].ns > (double)SHMT_RACE_MOST_NS) return false;
        *ns_out = (uint64_t)(x * UNITS[i].ns + 0.5);
        return true;
    }
    return false;
}

int shmt_race_parse(const char *given_as, const char *text, uint64_t *ns_out, double *share_out, struct shmt_error *e) {
    SHMT_PLAIN_NUMBERS;
    const char *colon = strchr(text, ':'), *rest = NULL;
    double share = 1;
    uint64_t ns = 0;
    if (text[0] == '\0') {
        *ns_out = 0;
        *share_out = 1;
        return 0;
    }
    if (colon) rest = parse_number(text, &share);
    if ((colon && (rest != colon || share > 1)) || !parse_time(colon ? colon + 1 : text, &ns))
        return shmt_refuse(e,
                           "%s %.60s: expected a time from 1ns to 1s (ns, us, ms or s), as in 2us, or the share of the pushes "
                           "that wait before it, as in 0.01:200us",
                           given_as, text);
    *ns_out = ns;
    *share_out = share;
    return 0;
}
