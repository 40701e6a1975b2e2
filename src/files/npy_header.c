/* Headers of NumPy files: see array_file.h, and numpy/lib/format.py, which defines them. The header is the text of a Python dict:
 *
 *     {'descr': '|u1', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * with these three keys in any order, blanks between all tokens, and blanks and a line break behind it. */
#include "files/array_file_priv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 4096 /* of a header: one of 8 dimensions has less than 300 bytes */ };

/* A place in the header. */
struct at {
    const struct shmt_array_file *file;
    const char *text, *p; /* text ends with a 0 */
    uint64_t first;       /* the byte of the file at which text begins, from 1 */
    struct shmt_error *e;
};

static int refuse(const struct at *at, const char *place, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int refuse(const struct at *at, const char *place, const char *format, ...) {
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return shmt_fail(at->e, SHMTRAIN_E_DATA, "%s%s, byte %llu: %s", at->file->file.name, at->file->state,
                     (unsigned long long)(at->first + (uint64_t)(place - at->text)), what);
}

/* ---- tokens ---- */

static void skip_blanks(struct at *at) {
    while (*at->p == ' ' || *at->p == '\t' || *at->p == '\n' || *at->p == '\r') at->p++;
}

static bool take(struct at *at, char c) {
    skip_blanks(at);
    if (*at->p != c) return false;
    at->p++;
    return true;
}

static int expect(struct at *at, char c) {
    return take(at, c) ? 0 : refuse(at, at->p, "expected '%c' in the header of a NumPy file", c);
}

/* A string in quotes, without escapes, into out. */
static int read_string(struct at *at, char *out, size_t size) {
    skip_blanks(at);
    const char quote = *at->p;
    if (quote != '\'' && quote != '"') return refuse(at, at->p, "expected a string in the header of a NumPy file");
    const char *const from = ++at->p;
    const size_t n = strcspn(from, quote == '"' ? "\"\\" : "'\\");
    if (from[n] != quote || n >= size) return refuse(at, from, "expected a short string in the header of a NumPy file");
    memcpy(out, from, n);
    out[n] = '\0';
    at->p = from + n + 1;
    return 0;
}

/* ---- values ---- */

static int read_type(struct at *at, struct shmt_elements *out) {
    char type[16] = "";
    skip_blanks(at);
    const char *const from = at->p;
    if (*from == '[') return refuse(at, from, "its elements have fields: save one array of numbers for each");
    const int rc = read_string(at, type, sizeof type);
    if (rc < 0) return rc;
    const bool ordered = strchr("<>|=", type[0]) && type[0];
    const char kind = type[ordered], *const bytes = kind ? type + ordered + 1 : "";
    static const struct {
        char kind;
        const char *bytes;
        struct shmt_elements elements;
    } TYPES[] = {{'u', "1", {.kind = SHMT_ELEMENT_UNSIGNED, .bytes = 1}}, {'i', "1", {.kind = SHMT_ELEMENT_SIGNED, .bytes = 1}},
                 {'u', "2", {.kind = SHMT_ELEMENT_UNSIGNED, .bytes = 2}}, {'i', "2", {.kind = SHMT_ELEMENT_SIGNED, .bytes = 2}},
                 {'u', "4", {.kind = SHMT_ELEMENT_UNSIGNED, .bytes = 4}}, {'i', "4", {.kind = SHMT_ELEMENT_SIGNED, .bytes = 4}},
                 {'u', "8", {.kind = SHMT_ELEMENT_UNSIGNED, .bytes = 8}}, {'i', "8", {.kind = SHMT_ELEMENT_SIGNED, .bytes = 8}},
                 {'f', "4", {.kind = SHMT_ELEMENT_FLOAT, .bytes = 4}},    {'f', "8", {.kind = SHMT_ELEMENT_FLOAT, .bytes = 8}}};
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        if (TYPES[i].kind != kind || strcmp(TYPES[i].bytes, bytes) != 0) continue;
        *out = TYPES[i].elements;
        out->big_endian = type[0] == '>';
        return 0;
    }
    return refuse(
        at, from, "elements of type \"%s\" cannot be read: save them as uint8, another whole number, float32 or float64",
        strspn(type, "<>|=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == strlen(type) ? type : "?");
}

static int read_order(struct at *at, bool *fortran_out) {
    skip_blanks(at);
    const size_t n = strspn(at->p, "TrueFals");
    *fortran_out = n == 4 && memcmp(at->p, "True", 4) == 0;
    if (!*fortran_out && (n != 5 || memcmp(at->p, "False", 5) != 0)) return refuse(at, at->p, "expected True or False");
    if (*fortran_out)
        return refuse(at, at->p, "the array has Fortran's order, columns first: save numpy.ascontiguousarray of it");
    at->p += n;
    return 0;
}

static int read_dim(struct at *at, uint64_t *out) {
    skip_blanks(at);
    const char *const from = at->p;
    uint64_t x = 0;
    for (; *at->p >= '0' && *at->p <= '9'; at->p++)
        if (x > INT64_MAX / 10)
            return refuse(at, from, "a dimension is too large");
        else
            x = 10 * x + (uint64_t)(*at->p - '0');
    if (at->p == from) return refuse(at, from, "expected a dimension, a whole number");
    if (*at->p == 'L') at->p++; /* as Python 2 wrote it */
    *out = x;
    return 0;
}

static int read_shape(struct at *at, struct shmt_array_file *file) {
    int rc = expect(at, '(');
    const char *const from = at->p;
    for (file->n_dims = 0; rc == 0 && !take(at, ')');) {
        if (file->n_dims == SHMT_ARRAY_MAX_DIMS)
            return refuse(at, at->p, "at most %d dimensions are read", SHMT_ARRAY_MAX_DIMS);
        rc = read_dim(at, &file->dim[file->n_dims++]);
        if (rc == 0 && !take(at, ',') && (skip_blanks(at), *at->p != ')')) rc = expect(at, ')');
    }
    if (rc < 0) return rc;
    if (file->n_dims == 0) return refuse(at, from, "the array is one number: its first dimension must count examples");
    if (file->dim[0] > UINT32_MAX) return refuse(at, from, "at most 4294967295 examples are possible");
    return 0;
}

/* ---- the dict ---- */

enum { TYPE = 1, ORDER = 2, SHAPE = 4 };

static int read_key(struct at *at, struct shmt_array_file *file, unsigned *seen) {
    static const char *const KEYS[] = {"descr", "fortran_order", "shape"};
    char key[16];
    bool fortran;
    skip_blanks(at);
    const char *const from = at->p;
    int rc = read_string(at, key, sizeof key);
    if (rc == 0) rc = expect(at, ':');
    if (rc < 0) return rc;
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(key, KEYS[i]) != 0 || *seen & 1u << i) continue;
        *seen |= 1u << i;
        return i == 0 ? read_type(at, &file->elements) : i == 1 ? read_order(at, &fortran) : read_shape(at, file);
    }
    return refuse(at, from, "expected descr, fortran_order and shape in the header of a NumPy file, once each");
}

static int read_dict(struct at *at, struct shmt_array_file *file) {
    unsigned seen = 0;
    int rc = expect(at, '{');
    while (rc == 0 && !take(at, '}')) {
        rc = read_key(at, file, &seen);
        if (rc == 0 && !take(at, ',') && (skip_blanks(at), *at->p != '}')) rc = expect(at, '}');
    }
    if (rc < 0) return rc;
    skip_blanks(at);
    if (*at->p != '\0') return refuse(at, at->p, "expected the end of the header of a NumPy file");
    if (seen != (TYPE | ORDER | SHAPE))
        return refuse(at, at->p, "the header of this NumPy file has no descr, fortran_order or shape");
    return 0;
}

/* Versions differ in the length's length (and 3, in names that may be any text). */
static int read_length(struct shmt_array_file *file, struct shmt_unpack *stream, uint64_t *out, struct shmt_error *e) {
    unsigned char rest[4], length[4] = {0};
    int64_t n = shmt_unpack_read(stream, rest, sizeof rest, e); /* "PY", and the version */
    if (n < 0) return (int)n;
    if (n < 4) return shmt_array_refuse_end(file, SHMT_ARRAY_MAGIC + (uint64_t)n, 10, e);
    const struct at at = {.file = file, .text = "", .first = SHMT_ARRAY_MAGIC + 1, .e = e};
    if (rest[0] != 'P' || rest[1] != 'Y')
        return refuse(&at, at.text, "a NumPy array begins with \\x93NUMPY, and this does not");
    if (rest[2] < 1 || rest[2] > 3 || rest[3] != 0) {
        const struct at version = {.file = file, .text = "", .first = 7, .e = e};
        return refuse(&version, version.text, "NumPy files of version 1.0, 2.0 and 3.0 are read, and this has %u.%u", rest[2],
                      rest[3]);
    }
    const uint64_t bytes = rest[2] == 1 ? 2 : 4;
    n = shmt_unpack_read(stream, length, bytes, e);
    if (n < 0) return (int)n;
    if ((uint64_t)n < bytes) return shmt_array_refuse_end(file, 8 + (uint64_t)n, 8 + bytes, e);
    *out = (uint64_t)length[0] | (uint64_t)length[1] << 8 | (uint64_t)length[2] << 16 | (uint64_t)length[3] << 24;
    file->header_bytes = 8 + bytes + *out;
    return 0;
}

int shmt_npy_header_read(struct shmt_array_file *file, struct shmt_unpack *stream, struct shmt_error *e) {
    char text[LONGEST + 1];
    uint64_t length = 0;
    file->format = SHMT_ARRAY_NPY;
    const int rc = read_length(file, stream, &length, e);
    if (rc < 0) return rc;
    struct at at = {.file = file, .text = text, .p = text, .first = file->header_bytes - length + 1, .e = e};
    if (length > LONGEST)
        return refuse(&at, text, "its header has %llu bytes, and at most %d are read", (unsigned long long)length, LONGEST);
    const int64_t n = shmt_unpack_read(stream, text, length, e);
    if (n < 0) return (int)n;
    if ((uint64_t)n < length)
        return shmt_array_refuse_end(file, file->header_bytes - length + (uint64_t)n, file->header_bytes, e);
    text[length] = '\0';
    if (strlen(text) < length) return refuse(&at, text + strlen(text), "the header of a NumPy file is text, and here is a 0");
    return read_dict(&at, file);
}
