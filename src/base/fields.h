/* The fields of a struct as a table: a row says what a field is called, of which kind it is and where it lies, so that the list of
 * them is written down once, for whoever writes, reads or compares them. Here is what rows of all such tables share;
 * report/fields.h makes JSON of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TEXT is a pointer to characters, CHARS an array of them. A type alone does not tell FLAG32, 0 or 1; OPEN64, whose largest value
 * stands for "no bound"; HEX64, a hash; WORD32, one of several words, by its number; and what is more than one
 * value: GROUP, fields of a table of their own that stand among the others; OBJECT; LIST and ARRAY of structs, which lie elsewhere
 * or right here; PLACE, of a struct in its list, from 0; MADE, what a function makes of it. */
enum shmt_field_kind {
    SHMT_NO_FIELD, /* behind the last row */
    SHMT_U32,
    SHMT_I32,
    SHMT_U64,
    SHMT_F32,
    SHMT_F64,
    SHMT_BOOL,
    SHMT_TEXT,
    SHMT_CHARS,
    SHMT_FLAG32,
    SHMT_OPEN64,
    SHMT_HEX64,
    SHMT_WORD32,
    SHMT_GROUP,
    SHMT_OBJECT,
    SHMT_LIST,
    SHMT_ARRAY,
    SHMT_PLACE,
    SHMT_MADE
};

/* clang-format off */
#define SHMT_KIND_OF(type, member) \
    _Generic(((type *)NULL)->member, \
        uint32_t: SHMT_U32, int32_t: SHMT_I32, uint64_t: SHMT_U64, float: SHMT_F32, double: SHMT_F64, \
        bool: SHMT_BOOL, const char *: SHMT_TEXT, char *: SHMT_CHARS)
/* clang-format on */

/* Of a row: where the member lies, and of which kind its type says it is. */
#define SHMT_FIELD(type, member) .kind = SHMT_KIND_OF(type, member), .offset = offsetof(type, member)
