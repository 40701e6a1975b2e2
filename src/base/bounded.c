/* Reading and setting fields by their rows: see bounded.h. */
#include "base/bounded.h"

#include <float.h>
#include <string.h>

bool shmt_bounded_is_real(const struct shmt_bounded *field) { return field->kind == SHMT_F32 || field->kind == SHMT_F64; }

size_t shmt_bounded_size(const struct shmt_bounded *field) {
    const enum shmt_field_kind k = field->kind;
    const bool is_long = k == SHMT_U64 || k == SHMT_OPEN64 || k == SHMT_HEX64 || k == SHMT_F64;
    return k == SHMT_BOOL ? sizeof(bool) : is_long ? 8 : 4;
}

uint64_t shmt_bounded_count(const struct shmt_bounded *field, const void *whole) {
    const unsigned char *at = (const unsigned char *)whole + field->offset;
    uint64_t n64;
    uint32_t n32;
    if (shmt_bounded_size(field) == sizeof(bool)) return *at;
    if (shmt_bounded_size(field) == sizeof n64) return memcpy(&n64, at, sizeof n64), n64;
    return memcpy(&n32, at, sizeof n32), n32;
}

double shmt_bounded_real(const struct shmt_bounded *field, const void *whole) {
    const unsigned char *at = (const unsigned char *)whole + field->offset;
    double d;
    float f;
    if (field->kind == SHMT_F32) return memcpy(&f, at, sizeof f), (double)f;
    return memcpy(&d, at, sizeof d), d;
}

bool shmt_bounded_set_count(const struct shmt_bounded *field, void *whole, uint64_t n) {
    unsigned char *at = (unsigned char *)whole + field->offset;
    const uint32_t n32 = (uint32_t)n;
    const bool is = n != 0, open = field->kind == SHMT_OPEN64 && n == UINT64_MAX;
    if (!open && ((double)n < field->least || (double)n > field->most)) return false;
    if (shmt_bounded_size(field) == sizeof n32 && n > UINT32_MAX) return false;
    if (shmt_bounded_size(field) == sizeof is)
        memcpy(at, &is, sizeof is);
    else if (shmt_bounded_size(field) == sizeof n32)
        memcpy(at, &n32, sizeof n32);
    else
        memcpy(at, &n, sizeof n);
    return true;
}

bool shmt_bounded_set_real(const struct shmt_bounded *field, void *whole, double x) {
    unsigned char *at = (unsigned char *)whole + field->offset;
    if (!(x >= field->least && x <= field->most) || (field->kind == SHMT_F32 && x > (double)FLT_MAX)) return false;
    if (field->kind == SHMT_F64) return memcpy(at, &x, sizeof x);
    const float f = (float)x;
    return memcpy(at, &f, sizeof f);
}

bool shmt_bounded_copy(const struct shmt_bounded *from, const void *in, const struct shmt_bounded *to, void *out) {
    return shmt_bounded_is_real(from) ? shmt_bounded_set_real(to, out, shmt_bounded_real(from, in))
                                      : shmt_bounded_set_count(to, out, shmt_bounded_count(from, in));
}
