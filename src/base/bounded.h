/* Fields with bounds: rows of a table (fields.h) that also say what may stand in a field, so that numbers which somebody else has
 * written, in a file or in shared memory, are held against the same table that names them. Real numbers, and whole ones from
 * 0 on: all kinds of up to 64 bits that are no text. */
#pragma once

#include "base/fields.h"

struct shmt_bounded {
    const char *key;
    enum shmt_field_kind kind;
    uint32_t offset;
    double least, most;              /* of numbers; WORD32: of the words' numbers; CHARS: characters, with the 0 */
    const char *(*word)(uint32_t n); /* WORD32: at most `most` */
    double null;                     /* F64: infinity that null stands for where numbers are text; 0: null is no value */
    bool later;                      /* may be missing, as in what was written before there was one; it is 0 then */
};

bool shmt_bounded_is_real(const struct shmt_bounded *field);
size_t shmt_bounded_size(const struct shmt_bounded *field); /* in the struct, of what is no text */

/* The field of this struct. */
uint64_t shmt_bounded_count(const struct shmt_bounded *field, const void *whole);
double shmt_bounded_real(const struct shmt_bounded *field, const void *whole);

/* Sets it; false: it cannot have this value, and stays as it was. OPEN64 may be UINT64_MAX, whatever the bounds are. */
bool shmt_bounded_set_count(const struct shmt_bounded *field, void *whole, uint64_t n);
bool shmt_bounded_set_real(const struct shmt_bounded *field, void *whole, double x);

/* Sets `to` of `out` to what `from` is in `in`: both real, or both whole. False: as above. */
bool shmt_bounded_copy(const struct shmt_bounded *from, const void *in, const struct shmt_bounded *to, void *out);
