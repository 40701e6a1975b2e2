/* Text with an example in each line as a source, whatever the format: reading lines, counting rows and filling them in.
 *
 * Only for this room: a format (libsvm.c) is a parser of one line, with what it guesses from the file's beginning. */
#pragma once

#include <locale.h>

#include "data/source_priv.h"
#include "files/file.h"
#include "files/row.h"

/* What the beginning of a file says about the whole. */
struct shmt_text_guess {
    double bytes_per_byte; /* of sparse arrays per byte of text */
    double lines_per_byte; /* whole lines */
    double nonzeros_per_byte;
    uint64_t columns_found; /* the least number of columns that the ids need */
};

enum { SHMT_TEXT_ROW, SHMT_TEXT_NOTHING, SHMT_TEXT_HEADER };

struct shmt_text_format {
    /* One line, which ends with a line break, to a row; never looks behind the line break. Pure. 0, or with *fault_out
     * SHMTRAIN_E_DATA, or SHMTRAIN_E_USAGE for a line that must not be left out. `arg` as given to shmt_text_open;
     * `c_locale`: the "C" locale. */
    int (*parse)(const void *arg, const char *line, locale_t c_locale, struct shmt_row *row_out,
                 struct shmt_line_fault *fault_out);
    /* NULL, or: how to read it, of the n bytes with which the (first) file begins; `all`: there are no more, and the last is
     * a line break. Once, before anything else is called. 1: it needs more of them. */
    int (*plan)(void *arg, const char *name, const char *sample, uint64_t n, bool all, struct shmt_error *e);
    /* NULL, or: what a line at the beginning of the file `name` is: SHMT_TEXT_ROW, to be parsed; SHMT_TEXT_NOTHING, behind
     * which the file still begins; or the one SHMT_TEXT_HEADER. Below 0: why the file cannot be read with the others. */
    int (*skips)(const void *arg, const char *name, const char *line, uint64_t bytes, struct shmt_error *e);
    const char *(*note)(const void *arg);                      /* NULL, or: for shmt_source_note */
    const char *(*remark)(const void *arg);                    /* NULL, or: for shmt_source_remark */
    uint64_t (*row_max)(const void *arg, uint64_t line_bytes); /* NULL: SHMT_ROW_MAX; or as that, planned before */
    void (*guess)(const void *arg, const char *sample, uint64_t n, struct shmt_text_guess *out);
    void (*free_arg)(void *arg); /* when the source is closed, or was not opened; NULL: nothing to do */
};

int shmt_text_open(const struct shmt_source_wish *wish, const struct shmt_text_format *format, void *arg,
                   struct shmt_source **out, struct shmt_error *e);
