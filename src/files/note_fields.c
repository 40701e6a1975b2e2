/* Structs as JSON, and back: see note_fields.h. */
#include "files/note_fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing ---- */

static json_t *value_of(const struct shmt_bounded *field, const void *whole) {
    if (field->kind == SHMT_CHARS) return json_string((const char *)whole + field->offset);
    if (shmt_bounded_is_real(field)) {
        const double x = shmt_bounded_real(field, whole);
        return isinf(x) && x == field->null ? json_null() : json_real(x); /* else NULL: JSON has no such number */
    }
    const uint64_t n = shmt_bounded_count(field, whole);
    switch (field->kind) {
        case SHMT_BOOL:
            return json_boolean(n);
        case SHMT_HEX64:
            return json_sprintf("%016llx", (unsigned long long)n);
        case SHMT_WORD32:
            return json_string((double)n <= field->most ? field->word((uint32_t)n) : "");
        default:
            return field->kind == SHMT_OPEN64 && n == UINT64_MAX ? json_null() : json_integer((json_int_t)n);
    }
}

int shmt_note_put(json_t *note, const struct shmt_bounded *field, const void *whole) {
    return json_object_set_new(note, field->key, value_of(field, whole));
}

char *shmt_note_text(json_t *note, int rc) {
    char *text = rc == 0 ? json_dumps(note, JSON_COMPACT) : NULL;
    json_decref(note);
    return text;
}

/* ---- reading ---- */

int shmt_note_refuse(const struct shmt_note_in *in, const char *field, const char *why, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"%s\": \"%s\": %s", in->file, in->key, field, why);
}

int shmt_note_open(struct shmt_note_in *in, const char *text, struct shmt_error *e) {
    json_error_t why;
    in->note = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    if (json_is_object(in->note)) return 0;
    json_decref(in->note);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"%s\": expected a JSON object", in->file, in->key);
}

static bool take_hex(const char *text, uint64_t *out) {
    if (!text || strlen(text) != 16 || text[strspn(text, "0123456789abcdef")] != '\0') return false;
    *out = strtoull(text, NULL, 16);
    return true;
}

static bool take_word(const struct shmt_bounded *field, const char *text, uint64_t *out) {
    for (*out = 0; text && (double)*out <= field->most; ++*out)
        if (strcmp(field->word((uint32_t)*out), text) == 0) return true;
    return false;
}

static bool take_text(const struct shmt_bounded *field, const char *text, void *whole) {
    const size_t n = text ? strlen(text) : 0;
    if (!text || (double)n >= field->most) return false;
    memcpy((char *)whole + field->offset, text, n + 1);
    return true;
}

static bool take_count(const struct shmt_bounded *field, const json_t *value, uint64_t *out) {
    switch (field->kind) {
        case SHMT_BOOL:
            *out = json_is_true(value);
            return json_is_boolean(value);
        case SHMT_HEX64:
            return take_hex(json_string_value(value), out);
        case SHMT_WORD32:
            return take_word(field, json_string_value(value), out);
        default:
            *out = json_is_null(value) ? UINT64_MAX : (uint64_t)json_integer_value(value);
            return (field->kind == SHMT_OPEN64 && json_is_null(value)) ||
                   (json_is_integer(value) && json_integer_value(value) >= 0);
    }
}

static bool take(const struct shmt_bounded *field, const json_t *value, void *whole) {
    uint64_t n;
    if (field->kind == SHMT_CHARS) return take_text(field, json_string_value(value), whole);
    if (!shmt_bounded_is_real(field)) return take_count(field, value, &n) && shmt_bounded_set_count(field, whole, n);
    if (!json_is_null(value)) return json_is_number(value) && shmt_bounded_set_real(field, whole, json_number_value(value));
    if (field->null == 0 || field->kind != SHMT_F64) return false;
    memcpy((unsigned char *)whole + field->offset, &field->null, sizeof field->null);
    return true;
}

int shmt_note_take(const struct shmt_note_in *in, const struct shmt_bounded *field, void *whole, struct shmt_error *e) {
    const json_t *value = json_object_get(in->note, field->key);
    if (!value && field->later) return 0;
    if (!value) return shmt_note_refuse(in, field->key, "is missing", e);
    return take(field, value, whole) ? 0 : shmt_note_refuse(in, field->key, "this value is not possible", e);
}
