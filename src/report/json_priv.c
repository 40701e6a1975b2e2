/* What JSON texts share: see json_priv.h. */
#include "report/json_priv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *shmt_json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *shmt_json_whole(uint64_t n) { return json_integer((json_int_t)n); }

json_t *shmt_json_id(uint64_t id) {
    char text[24];
    if (id <= INT64_MAX) return json_integer((json_int_t)id);
    snprintf(text, sizeof text, "%llu", (unsigned long long)id);
    return json_string(text);
}

json_t *shmt_json_text(const char *name) {
    json_t *text = json_string(name);
    if (text) return text;
    char *copy = strdup(name);
    if (!copy) return json_null();
    for (char *at = copy; *at; at++)
        if (*at & 0x80) *at = '?';
    text = json_string(copy);
    free(copy);
    return text;
}

char *shmt_json_line(json_t *object) {
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(object);
    if (!text) return NULL;
    const size_t n = strlen(text);
    char *line = realloc(text, n + 2);
    if (!line) {
        free(text);
        return NULL;
    }
    memcpy(line + n, "\n", 2);
    return line;
}
