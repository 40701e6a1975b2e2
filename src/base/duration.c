/* Times in words: see duration.h. */
#include "base/duration.h"

#include <stdio.h>
#include <string.h>

#include "base/plain.h"

#define MOST_SECONDS (366.0 * 24 * 3600)

bool shmt_duration_parse(const char *text, uint64_t *ns_out) {
    static const struct {
        const char *unit;
        double seconds;
    } UNITS[] = {{"", 1}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
    double x;
    const char *unit = shmt_plain_decimal(text, &x);
    for (size_t i = 0; unit && i < sizeof UNITS / sizeof *UNITS; i++) {
        if (strcmp(unit, UNITS[i].unit) != 0) continue;
        const double seconds = x * UNITS[i].seconds;
        if (!(seconds <= MOST_SECONDS)) return false;
        *ns_out = (uint64_t)(seconds * 1e9 + 0.5);
        return true;
    }
    return false;
}

const char *shmt_duration_text(uint64_t ns, char out[24]) {
    static const struct {
        uint64_t ns;
        const char *unit;
    } UNITS[] = {{UINT64_C(3600000000000), "h"}, {UINT64_C(60000000000), "min"}, {UINT64_C(1000000000), "s"}};
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++) {
        if (ns < 2 * UNITS[i].ns) continue;
        snprintf(out, 24, "%llu %s", (unsigned long long)(ns / UNITS[i].ns), UNITS[i].unit);
        return out;
    }
    snprintf(out, 24, "%llu ms", (unsigned long long)(ns / 1000000));
    return out;
}
