/* Figures as JSON: null where nothing could be measured; a sentence; and one object as a line. */
#pragma once

#include <jansson.h>
#include <math.h>
#include <stdio.h>

static inline json_t *json_figure(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* Bytes that are no UTF-8, as a path may have them, become question marks. */
static inline json_t *json_sentence(const char *sentence) {
    char text[512];
    json_t *string = json_string(sentence);
    if (string) return string;
    snprintf(text, sizeof text, "%s", sentence);
    for (char *at = text; *at; at++)
        if (*at & 0x80) *at = '?';
    return json_string(text);
}

/* Takes the object. 12 significant digits: more than any of these numbers has, and short to read. */
static inline void json_print(json_t *object, FILE *out) {
    (void)json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(12));
    fputc('\n', out);
    json_decref(object);
}
