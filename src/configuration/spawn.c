/* What workers are: see spawn.h. */
#include "configuration/spawn.h"

#include <string.h>

#include "base/plain.h"

int shmt_spawn_parse(const char *given_as, const char *text, struct shmt_spawn *out, struct shmt_error *e) {
    char name[16] = "";
    const char *number = strchr(text, ':');
    const size_t length = number ? (size_t)(number - text) : strlen(text);
    if (length < sizeof name) memcpy(name, text, length); /* 0 behind it; what is longer is no kind */
    *out = (struct shmt_spawn){.kind = shmt_team_kind_find(name), .has_seed = number != NULL};
    const bool takes_seed = out->kind == &SHMT_TEAM_FIBERS;
    if (out->kind && !number) return 0;
    if (takes_seed && shmt_plain_count(number + 1, &out->seed)) return 0;
    return shmt_refuse(e, "%s %.60s: expected processes, threads or fibers, or fibers and a seed, as fibers:7", given_as,
                       text[0] ? text : "\"\"");
}
