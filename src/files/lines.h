/* The lines of one part of a file, read through a private buffer; or those of text that is in memory. Only for readers of text.
 *
 * Reading rather than mapping the file: a file that somebody cuts short while we read is then an error with a sentence, where a
 * mapping would give SIGBUS; and every line can be made to end in a line break, the last one of the file included, so that
 * parsing needs no bounds. It costs one copy at the speed of the cache. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* A longer line than this is no text. */
#define SHMT_LINE_BYTES_MAX ((uint64_t)1 << 28)

struct shmt_lines {
    int fd;
    const char *name;    /* of the file, for sentences */
    uint64_t file_bytes; /* what lies behind is not read */
    uint64_t end;        /* lines that start at or behind it belong to the next part */
    char *buffer;        /* [next, filled) is read and not yet handed out */
    bool borrowed;       /* the buffer is the caller's, and holds all text that there is */
    uint64_t room, next, filled;
    uint64_t at; /* the file's offset of buffer[0] */
};

/* The lines that start in [begin, end) of the file. */
int shmt_lines_open_range(struct shmt_lines *lines, int fd, const char *name, uint64_t file_bytes, uint64_t begin, uint64_t end,
                          struct shmt_error *e);

/* The lines of text in memory of the caller, which has room for 1 + SHMT_LINE_PAD bytes more. Their offsets are those in the text. */
void shmt_lines_open_text(struct shmt_lines *lines, char *text, uint64_t bytes);

/* The lines that start in part `part` of `n_parts` equal ranges of bytes: each line of the file belongs to exactly one. */
int shmt_lines_open(struct shmt_lines *lines, int fd, const char *name, uint64_t file_bytes, uint32_t part, uint32_t n_parts,
                    struct shmt_error *e);
void shmt_lines_close(struct shmt_lines *lines);

/* 1: the next line, with its line break at line[bytes - 1], its offset in *at_out; valid until the next call. 0: there are no
 * more. Below 0: SHMTRAIN_E_SYSTEM, _MEMORY, _DATA (the file has become shorter, a line is too long). */
int shmt_lines_next(struct shmt_lines *lines, char **line_out, uint64_t *bytes_out, uint64_t *at_out, struct shmt_error *e);

/* The number, from 1 on, of the line at offset `at`; 0 when the file cannot be read any more. */
uint64_t shmt_lines_number(int fd, uint64_t at);
