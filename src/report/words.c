/* Numbers as words of a line: see words_priv.h. */
#include "report/words_priv.h"

#include <stddef.h>
#include <stdio.h>

const char *shmt_short_number(double x, char out[16]) {
    static const char *const UNITS[] = {"", " k", " M", " G", " T"};
    size_t unit = 0;
    if (!(x >= 0 && x < 1e16)) { /* nothing that a run does, but it must not break the line */
        snprintf(out, 16, "%.3g", x);
        return out;
    }
    while (x >= 10000 && unit + 1 < sizeof UNITS / sizeof *UNITS) {
        x /= 1000;
        unit++;
    }
    if (unit == 0)
        snprintf(out, 16, "%.0f", x);
    else
        snprintf(out, 16, "%.*f%s", x < 10 ? 2 : x < 100 ? 1 : 0, x, UNITS[unit]);
    return out;
}
