/* Names of several files: see names.h. */
#include "files/names.h"

#include <string.h>
#include <unistd.h>

static int is_one(const char *names) { return !strchr(names, '\n') || access(names, F_OK) == 0; }

uint32_t shmt_names_count(const char *names) {
    uint32_t n = 1;
    if (is_one(names)) return 1;
    for (const char *p = names; (p = strchr(p, '\n')); p++) n++;
    return n;
}

char *shmt_names_at(const char *names, uint32_t i) {
    if (is_one(names)) return strdup(names);
    for (; i > 0; i--) names = strchr(names, '\n') + 1;
    return strndup(names, strcspn(names, "\n"));
}
