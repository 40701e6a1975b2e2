/* The text of something that cannot be read in parts at one time: a packed file, or what comes through a pipe (standard input, a
 * FIFO, a process substitution, a terminal), packed or not. Read from its beginning to its end.
 *
 * Called by flow.c, by one thread at a time for each input. Waiting for a pipe ends when a stop is asked for, or when
 * what comes of it will not be needed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"
#include "base/error.h"

struct shmt_input;

/* A file with text, by name, without its text being read. */
struct shmt_text_file {
    enum { SHMT_TEXT_PLAIN, SHMT_TEXT_PACKED, SHMT_TEXT_PIPE, SHMT_TEXT_EMPTY } kind;
    struct shmt_file file; /* open, but for a pipe, which has 0 bytes (whoever opens one takes what it has), and an empty one */
    char *path;            /* "-": standard input */
    dev_t dev;             /* these two: which one it is */
    ino_t ino;
};

/* Looks what `path` is. A regular file is open then, unless it is empty; of what comes through a pipe nothing is taken.
 * `alone`: an empty file is refused. Errors: as shmt_file_open. To be closed in any case. */
int shmt_text_file_open(const char *path, bool alone, struct shmt_text_file *out, struct shmt_error *e);
void shmt_text_file_close(struct shmt_text_file *file); /* {0} is not fine, what open has left is */

/* What ends waiting for a pipe: *stop is not 0, or *end <= number. */
struct shmt_input_until {
    const _Atomic uint32_t *stop, *end;
    uint32_t number; /* the input's own */
};

/* Begins to read a packed file or a pipe, which may turn out to be empty; `file`, and what `until` points to, must stay. Errors:
 * _SYSTEM, _MEMORY, and those of read. */
int shmt_input_open(const struct shmt_text_file *file, const struct shmt_input_until *until, struct shmt_input **out,
                    struct shmt_error *e);

/* The next `bytes` bytes of text; fewer only at the end, behind which nobody waits for more. Their number, or SHMTRAIN_E_DATA
 * (damaged), _SYSTEM, _MEMORY, _STOPPED. */
int64_t shmt_input_read(struct shmt_input *input, void *into, uint64_t bytes, struct shmt_error *e);

void shmt_input_close(struct shmt_input *input); /* NULL is fine */
