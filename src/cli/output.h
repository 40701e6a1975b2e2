/* -o: whether a file can be written, and writing it so that it is whole or as it was before. (The library does the same for
 * models: shmtrain_store_save.) */
#ifndef SHMTRAIN_CLI_OUTPUT_H
#define SHMTRAIN_CLI_OUTPUT_H

#include <limits.h>
#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stdio.h>

/* Finds it out before hours of work, not after; changes nothing: `path` can be written, and is neither `model` (NULL: none is
 * read) nor a file that is read with `data`. `option` is whose value it is, for messages: "--output". 0, or the exit status
 * after one line on stderr. path NULL is fine. */
int output_check(struct shmtrain_store *store, const char *option, const char *path, const char *model, const char *data);

/* Whether what is written to `path` goes where stdout goes, so that lines for people have no place there. NULL is fine. */
bool output_is_stdout(const char *path);

/* A file on its way. One at a time. */
struct output {
    const char *path;     /* as it was given; NULL: stdout */
    FILE *file;           /* what is to be written to; NULL: none is open */
    char place[PATH_MAX]; /* behind symbolic links: where the file goes when it is complete; "": it is written there at once */
};

/* Opens a new file beside `path`, with the permissions of the one that it will replace; a device or a pipe is opened as it is,
 * and of a descriptor that is named (/dev/stdout, /dev/fd/N) a copy is taken. 0, or -1 with errno. */
int output_open(struct output *out, const char *path);

/* Moves the file to its place if `complete`, and removes it if not. When it returns, what is complete survives a crash of the
 * machine, where the file system can promise it. 0, or -1 with errno: what was there before is untouched, unless it is a device
 * or a pipe. stdout is left to talk_close_output. */
int output_close(struct output *out, bool complete);

/* In a signal handler that ends the program: removes the file that is not complete, if there is one. */
void output_discard_in_handler(void);

#endif
