/* One line of LIBSVM text to one row.
 *
 *     line    = [ label [ "qid:" digits ] { index ":" value } ] [ "#" anything ]
 *
 * with spaces or tabs between the words; "\r" before the line break is accepted. Called by the file reader (libsvm.c) for each
 * line, in both of its passes. It is a pure function of the line, works in memory of its caller, and never looks behind the
 * line break with which the line must end. */
#ifndef SHMT_DATA_LIBSVM_LINE_H
#define SHMT_DATA_LIBSVM_LINE_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/source.h"

/* The most nonzeros that a line of so many bytes can hold: "1:1 2:1" has one for every four. */
#define SHMT_LIBSVM_MAX_NONZEROS(line_bytes) ((line_bytes) / 4 + 1)

struct shmt_libsvm_row {
    uint32_t *id;        /* the caller's, room for SHMT_LIBSVM_MAX_NONZEROS; columns, ascending */
    float *value;        /* the same */
    uint64_t n_nonzeros; /* of id and value; below 2^32 - 1, since ids are distinct */
    uint64_t min_id, max_id;
    float label;
    bool blank; /* nothing, or only a comment: no row */
};

/* What is wrong with a line. */
struct shmt_libsvm_fault {
    uint64_t column; /* 1-based, in bytes */
    char text[256];  /* "expected ..., found ..." */
};

/* Returns 0 or SHMTRAIN_E_DATA with *fault_out. `line` ends with a line break. `columns` as in source.h; values that are 0 are
 * left out. `c_locale`: the "C" locale. */
int shmt_libsvm_parse(const char *line, const struct shmt_columns *columns, locale_t c_locale, struct shmt_libsvm_row *row_out,
                      struct shmt_libsvm_fault *fault_out);

#endif
