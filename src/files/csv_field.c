/* The fields of a line: see csv_field.h. */
#include "files/csv_field.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

#include "files/csv_plan.h"
#include "files/number.h"

/* A tab is no blank where it is the delimiter. */
static const char *skip_blanks(const char *p, char delimiter) {
    while (*p == ' ' || (*p == '\t' && delimiter != '\t')) p++;
    return p;
}

static enum shmt_csv_trouble take_quoted(const char *quote, char delimiter, struct shmt_csv_field *out) {
    const char *p = quote + 1;
    out->text = p;
    for (;; p++) {
        if (*p == '\n') {
            out->text = quote;
            return SHMT_CSV_UNCLOSED;
        }
        if (*p != '"') continue;
        if (p[1] != '"') break;
        out->doubled = true;
        p++;
    }
    out->n = (uint64_t)(p - out->text);
    out->end = skip_blanks(p + 1, delimiter);
    if (*out->end == delimiter || shmt_csv_at_end(out->end)) return SHMT_CSV_FINE;
    out->text = out->end;
    return SHMT_CSV_BEHIND_QUOTE;
}

enum shmt_csv_trouble shmt_csv_field_take(const char *p, char delimiter, struct shmt_csv_field *out) {
    out->doubled = false;
    p = skip_blanks(p, delimiter);
    if (*p == '"') return take_quoted(p, delimiter, out);
    out->text = p;
    while (*p != delimiter && !shmt_csv_at_end(p)) p++;
    out->end = p;
    while (p > out->text && (p[-1] == ' ' || p[-1] == '\t')) p--;
    out->n = (uint64_t)(p - out->text);
    return SHMT_CSV_FINE;
}

bool shmt_csv_is_missing(const struct shmt_csv_field *field) {
    static const char *const WORDS[] = {"?",    "na",  "nan",  "n/a",    "null",    "none",    "#na",      "#n/a",
                                        "<na>", "\\n", "-nan", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan", "#n/a n/a"};
    if (field->n == 0) return true;
    if (field->n > 8 || !strchr("?nN#<\\-1", field->text[0])) return false;
    for (uint32_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++)
        if (strlen(WORDS[i]) == field->n && strncasecmp(field->text, WORDS[i], field->n) == 0) return true;
    return false;
}

bool shmt_csv_is_number(const struct shmt_csv_field *field, locale_t c_locale, float *out) {
    return field->n > 0 && shmt_number_read(field->text, c_locale, out) == field->text + field->n;
}

double shmt_csv_number(const struct shmt_csv_field *field, locale_t c_locale) {
    return shmt_number_exact(field->text, field->text + field->n, c_locale);
}

uint64_t shmt_csv_field_copy(const struct shmt_csv_field *field, char *out, uint64_t room) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < field->n; i++, n++) {
        if (n < room) out[n] = field->text[i];
        if (field->doubled && field->text[i] == '"') i++;
    }
    return n;
}

/* What stands before each quote is hashed with the hash of all that stands before it, so that no copy is needed. */
uint64_t shmt_csv_field_hash(const struct shmt_csv_field *field, uint64_t seed) {
    const char *p = field->text, *const end = p + field->n;
    for (;;) {
        const char *quote = p < end ? memchr(p, '"', (uint64_t)(end - p)) : NULL;
        if (!quote) return XXH3_64bits_withSeed(p, (uint64_t)(end - p), seed);
        seed = XXH3_64bits_withSeed(p, (uint64_t)(quote + 1 - p), seed);
        p = quote + 1 + field->doubled;
    }
}

int shmt_csv_field_compare(const struct shmt_csv_field *field, const char *word) {
    for (uint64_t i = 0; i < field->n; i++, word++) {
        const int difference = (unsigned char)field->text[i] - (unsigned char)*word;
        if (difference != 0 || *word == '\0') return difference != 0 ? difference : 1;
        if (field->doubled && field->text[i] == '"') i++;
    }
    return *word != '\0' ? -1 : 0;
}

/* ---- names ---- */

static char *from_latin1(const char *text) {
    char *out = malloc(2 * strlen(text) + 1), *at = out;
    for (; out && *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x80) {
            *at++ = (char)c;
        } else {
            *at++ = (char)(0xc0 | c >> 6);
            *at++ = (char)(0x80 | (c & 0x3f));
        }
    }
    if (out) *at = '\0';
    return out;
}

char *shmt_csv_field_name(const struct shmt_csv_field *field) {
    char *name = malloc(field->n + 1);
    if (!name) return NULL;
    name[shmt_csv_field_copy(field, name, field->n)] = '\0';
    if (shmt_csv_is_utf8(name)) return name;
    char *converted = from_latin1(name);
    free(name);
    return converted;
}
