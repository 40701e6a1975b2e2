/* JSON of a struct by the table of its fields: see fields.h. */
#include "report/fields.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/sized.h"

/* ---- single values ---- */

json_t *shmt_json_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *shmt_json_whole(uint64_t n) { return json_integer((json_int_t)n); }

json_t *shmt_json_id(uint64_t id) {
    return id <= INT64_MAX ? shmt_json_whole(id) : json_sprintf("%llu", (unsigned long long)id);
}

json_t *shmt_json_text(const char *text) {
    json_t *value = json_string(text);
    char *copy = text && !value ? strdup(text) : NULL;
    if (value || !copy) return value ? value : json_null();
    for (char *at = copy; *at; at++)
        if (*at & 0x80) *at = '?';
    value = json_string(copy);
    free(copy);
    return value;
}

/* ---- fields ---- */

static void add(json_t *o, const struct shmt_field *table, const void *whole, uint32_t place);

static json_t *object_of(const struct shmt_field *table, const void *whole, uint32_t place) {
    json_t *o = json_object();
    add(o, table, whole, place);
    return o;
}

/* Of elements from `one` on. */
static json_t *list_of(const struct shmt_field *f, const void *whole, const char *one) {
    const uint32_t n = *(const uint32_t *)((const char *)whole + f->n_offset);
    json_t *list = json_array();
    for (uint32_t i = 0; i < n; i++, one += f->bytes)
        if (!f->listed || f->listed(one)) json_array_append_new(list, object_of(f->of, one, i));
    return list;
}

static json_t *value_of(const struct shmt_field *f, const void *whole, const void *at, uint32_t place) {
    switch (f->kind) {
        case SHMT_U32:
            return json_integer(*(const uint32_t *)at);
        case SHMT_I32:
            return json_integer(*(const int32_t *)at);
        case SHMT_U64:
            return shmt_json_whole(*(const uint64_t *)at);
        case SHMT_F32:
            return shmt_json_number((double)*(const float *)at);
        case SHMT_F64:
            return shmt_json_number(*(const double *)at);
        case SHMT_BOOL:
            return json_boolean(*(const bool *)at);
        case SHMT_TEXT:
            return shmt_json_text(*(const char *const *)at);
        case SHMT_CHARS:
            return shmt_json_text(at);
        case SHMT_FLAG32:
            return json_boolean(*(const uint32_t *)at);
        case SHMT_OPEN64:
            return *(const uint64_t *)at == UINT64_MAX ? json_string("inf") : shmt_json_whole(*(const uint64_t *)at);
        case SHMT_HEX64:
            return json_sprintf("%016llx", (unsigned long long)*(const uint64_t *)at);
        case SHMT_WORD32:
            return json_string(f->word(*(const uint32_t *)at));
        case SHMT_OBJECT:
            return object_of(f->of, at, place);
        case SHMT_LIST:
            return list_of(f, whole, *(const void *const *)at);
        case SHMT_ARRAY:
            return list_of(f, whole, at);
        case SHMT_PLACE:
            return json_integer(place);
        case SHMT_MADE:
            return f->made(at);
        case SHMT_GROUP: /* has no key, and so no value */
        case SHMT_NO_FIELD:
            break;
    }
    return NULL;
}

/* It is 0, below, or empty. */
static bool is_none(const json_t *value) {
    return json_is_string(value) ? json_string_length(value) == 0 : !(json_number_value(value) > 0);
}

static void add(json_t *o, const struct shmt_field *table, const void *whole, uint32_t place) {
    for (const struct shmt_field *f = table; f->kind != SHMT_NO_FIELD; f++) {
        const bool there = !f->when || f->when(whole);
        const void *at = (const char *)whole + f->offset;
        if (f->kind == SHMT_GROUP && there) add(o, f->of, at, place);
        if (f->kind == SHMT_GROUP) continue;
        json_object_set_new(o, f->key, there ? value_of(f, whole, at, place) : json_null());
        if (f->unless_none && is_none(json_object_get(o, f->key))) json_object_set_new(o, f->key, json_null());
    }
}

void shmt_fields_add(json_t *o, const struct shmt_field *table, const void *whole) { add(o, table, whole, 0); }

char *shmt_fields_line(const struct shmt_field *table, const void *whole) { return shmt_json_line(object_of(table, whole, 0)); }

char *shmt_named_line(const char *key, const char *name, const struct shmt_field *table, const void *sized, size_t bytes) {
    void *room = malloc(bytes);
    if (!room) return NULL;
    json_t *o = json_object();
    json_object_set_new(o, key, shmt_json_text(name));
    shmt_fields_add(o, table, shmt_sized_whole(sized, room, bytes));
    free(room);
    return shmt_json_line(o);
}

char *shmt_json_line(json_t *object) {
    SHMT_PLAIN_NUMBERS;
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(12));
    json_decref(object);
    const size_t n = text ? strlen(text) : 0;
    char *line = text ? realloc(text, n + 2) : NULL;
    if (line)
        memcpy(line + n, "\n", 2);
    else
        free(text);
    return line;
}
