/* How often a checkpoint is written: see every.h. */
#include "configuration/every.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "ps/spec.h"

#define MOST_STEPS UINT64_C(1000000000000000000)

/* Steps or epochs by their word; false: it is none of these. */
static bool find_unit(const char *word, bool *epochs_out) {
    *epochs_out = strcmp(word, "epoch") == 0 || strcmp(word, "epochs") == 0;
    return *epochs_out || word[0] == '\0' || strcmp(word, "step") == 0 || strcmp(word, "steps") == 0;
}

int shmt_every_parse(const char *given_as, const char *value, struct shmt_every *out, struct shmt_error *e) {
    const size_t digits = strspn(value, "0123456789");
    bool epochs;
    uint64_t ns;
    char *end = NULL;
    errno = 0;
    const uint64_t n = digits > 0 ? strtoull(value, &end, 10) : 0;
    if (digits > 0 && find_unit(end + strspn(end, " "), &epochs)) {
        const uint64_t most = epochs ? SHMT_MAX_EPOCHS : MOST_STEPS;
        if (n == 0 || n > most || errno != 0)
            return shmt_refuse(e, "%s %.60s: expected a whole number of %s from 1 to %llu", given_as, value,
                               epochs ? "epochs" : "steps", (unsigned long long)most);
        *out = (struct shmt_every){.steps = epochs ? 0 : n, .epochs = epochs ? (uint32_t)n : 0};
        return 0;
    }
    if (value[0] != '\0' && value[strspn(value, "0123456789.")] == '\0')
        return shmt_refuse(e,
                           "%s %.60s: a number alone is a whole number of steps; a time has a unit, as in 60s, 1.5m or 500ms",
                           given_as, value);
    if (!shmt_duration_parse(value, &ns) || ns == 0)
        return shmt_refuse(e, "%s %.60s: expected a time (60s, 5m), steps (1000 or 1000 steps) or epochs (1 epoch)", given_as,
                           value[0] ? value : "\"\"");
    *out = (struct shmt_every){.seconds = (double)ns * 1e-9};
    return 0;
}
