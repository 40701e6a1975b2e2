/* JSON of a struct by the table of its fields (base/fields.h): keys in the order of the rows, behind which stands a row of zeros.
 * Null are numbers that are not finite, and texts that are NULL. Texts may be any bytes, JSON is UTF-8: what is not becomes question
 * marks, so that a name is never missing. */
#pragma once

#include <jansson.h>

#include "base/fields.h"

struct shmt_field {
    const char *key;
    enum shmt_field_kind kind;
    uint32_t offset;
    bool unless_none;                 /* null where it is 0, below, or empty */
    bool (*when)(const void *whole);  /* null (a GROUP: left out) where the struct says no; NULL: never */
    json_t *(*made)(const void *at);  /* MADE, from where the field lies on */
    const char *(*word)(uint32_t n);  /* WORD32 */
    const struct shmt_field *of;      /* GROUP, OBJECT, LIST and ARRAY */
    uint32_t n_offset, bytes;         /* LIST and ARRAY: where their length lies, of 32 bits; of one element */
    bool (*listed)(const void *each); /* likewise: which elements are; NULL: all */
};

/* clang-format off */
/* Rows of a table of struct shmtrain_<tag>: a FIELD has its member's name for a key, one that is KEYED another one; SOME is null
 * where there is none, WHEN where the struct says no; AS says of which kind it is where its type does not. `is` may be NULL. */
#define SHMT_ROW(tag, name, member, what)   .key = name, .kind = what, .offset = offsetof(struct shmtrain_##tag, member)
#define KEYED(tag, name, member)            {.key = name, SHMT_FIELD(struct shmtrain_##tag, member)}
#define FIELD(tag, member)                  KEYED(tag, #member, member)
#define SOME(tag, member)                   {.key = #member, SHMT_FIELD(struct shmtrain_##tag, member), .unless_none = true}
#define WHEN(is, tag, member)               {.key = #member, SHMT_FIELD(struct shmtrain_##tag, member), .when = is}
#define KEYED_AS(what, tag, name, member)   {SHMT_ROW(tag, name, member, what)}
#define AS(what, tag, member)               KEYED_AS(what, tag, #member, member)
#define FLAG(tag, member)                   AS(SHMT_FLAG32, tag, member)
#define WORD(tag, member, by)               {SHMT_ROW(tag, #member, member, SHMT_WORD32), .word = by}
#define MADE(is, name, by)                  {.key = name, .kind = SHMT_MADE, .when = is, .made = by}
#define MADE_OF(tag, member, by)            {SHMT_ROW(tag, #member, member, SHMT_MADE), .made = by}
#define GROUP(is, table)                    {.kind = SHMT_GROUP, .when = is, .of = table}
#define PLACE(name)                         {.key = name, .kind = SHMT_PLACE}
#define OBJECT(is, name, where, table)      {.key = name, .kind = SHMT_OBJECT, .offset = where, .when = is, .of = table}
#define LIST(tag, name, member, n, table)   LIST_IF(NULL, tag, name, member, n, table)
#define LIST_IF(is, tag, name, member, n, table) \
    {SHMT_ROW(tag, name, member, SHMT_LIST), .listed = is, SHMT_ELEMENTS(tag, member, n, table)}
#define ARRAY(tag, name, member, n, table) \
    {SHMT_ROW(tag, name, member, SHMT_ARRAY), SHMT_ELEMENTS(tag, member, n, table)}
#define SHMT_ELEMENTS(tag, member, n, table) \
    .of = table, .n_offset = offsetof(struct shmtrain_##tag, n), .bytes = sizeof *((struct shmtrain_##tag *)NULL)->member
/* clang-format on */

json_t *shmt_json_number(double x); /* null when it is not finite */
json_t *shmt_json_whole(uint64_t n);
json_t *shmt_json_id(uint64_t id); /* a feature's: a number, or above 2^63 - 1, for which jansson has none, its digits */
json_t *shmt_json_text(const char *text);

/* Adds the fields of this struct to an object. */
void shmt_fields_add(json_t *o, const struct shmt_field *table, const void *whole);

/* An object with the fields of this struct, as shmt_json_line. */
char *shmt_fields_line(const struct shmt_field *table, const void *whole);

/* The same of a struct of these bytes at most (base/sized.h), behind a name under this key. */
char *shmt_named_line(const char *key, const char *name, const struct shmt_field *table, const void *sized, size_t bytes);

/* The object as one line with its end, to be freed; it takes the object. NULL: no memory. 12 significant digits: more than any
 * of these numbers has, and short to read. */
char *shmt_json_line(json_t *object);
