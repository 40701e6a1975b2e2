/* What the files of text.c share: the source, and a piece of its text to go through. Only for this room. */
#pragma once

#include "data/text.h"
#include "files/input.h"

struct text {
    struct shmt_source source;
    uint32_t n_files;
    struct shmt_text_file *file;     /* (n_files) in the order of their rows */
    char shown[3 * SHMT_NAME_SHOWN]; /* the source's name, of several files */
    const struct shmt_text_format *format;
    void *arg;        /* the format's */
    bool plans_later; /* from the first bytes that come through a pipe (flow.c) */
    struct shmt_text_guess guess;
    bool skips_bad_lines;
    uint64_t rows_at; /* of one plain file: the format skips all lines that start before it; of others 0 */
    locale_t c_locale;
};

static inline const struct text *shmt_text_of(const struct shmt_source *source) { return (const struct text *)source; }

/* Of a file's beginning, to guess from; to plan from, four times as much until it is enough. */
#define SHMT_TEXT_SAMPLE (1 << 16)

/* Asks the format for its plan: see `plan` in text.h. The sample has room for one byte more. */
int shmt_text_plan(const struct text *text, const char *name, char *sample, uint64_t n, bool all, struct shmt_error *e);

/* Some lines of one file: those that start in [begin, end), or text in memory. */
struct shmt_text_piece {
    uint32_t file;
    uint64_t begin, end;
    char *memory; /* NULL: a range */
    uint64_t bytes;
    uint64_t line; /* the number of the first line in memory, from 1 on */
};

/* Counts a piece: see shmt_source_count. */
int shmt_text_count(const struct text *text, const struct shmt_text_piece *piece, const struct shmt_columns *columns,
                    struct shmt_row_buffer *buffer, struct shmt_part *out);

/* Writes a piece: see source_priv.h. */
int shmt_text_fill(const struct text *text, const struct shmt_text_piece *piece, const struct shmt_part *counted,
                   uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e);

/* Positions: of which file, and where in it: an offset in a plain file, the number of a line in any other. */
#define SHMT_TEXT_PLACE_BITS 44
