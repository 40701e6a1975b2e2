/* One example as it is written: what each format of text makes of a line. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Made by a parser in memory of its caller. Columns are not its affair (columns.h). */
struct shmt_row {
    uint64_t *id;            /* (n) of the nonzeros, ascending; room for SHMT_ROW_MAX */
    float *value;            /* (n) the same room; finite, none is 0 */
    uint64_t n;              /* below 2^32 - 1 */
    uint64_t min_id, max_id; /* as written, those of zeros among them; min_id > max_id: none */
    float label;
    bool blank; /* nothing, or only a comment: no row */
};

/* The most nonzeros that a line of so many bytes can hold: "1,2" has one for every two. */
#define SHMT_ROW_MAX(line_bytes) ((line_bytes) / 2 + 1)

/* Parsers may read so many bytes behind a line's break, and do not look at what is there: who hands them lines has memory
 * there, and has written it once. */
#define SHMT_LINE_PAD 8

/* What is wrong with a line. */
struct shmt_line_fault {
    uint64_t column; /* 1-based, in bytes */
    char text[256];  /* "expected ..., found ..." */
};
