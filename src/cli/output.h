/* Files that commands write: whether they can be written, whether two would go to stdout, and writing one, as a stream, so that
 * it is whole or as it was before (<shmtrain/output.h>). */
#pragma once

#include <shmtrain/shmtrain.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What an option names. */
struct output_wish {
    const char *option, *path; /* "--output", its value; NULL: not given */
    const char *what;          /* in sentences: "the model" */
};

/* Finds it out before hours of work, not after; changes nothing: the file can be written, and is neither `model` (NULL: none is
 * read) nor a file that is read with `data`. 0, or the exit status after one line on stderr. */
int output_check(struct shmtrain_store *store, const struct output_wish *wish, const char *model, const char *data);

/* A part of that, for files that the library checks itself: a descriptor that is named is one that the program was started
 * with. 0, or the exit status after one line on stderr. */
int output_check_descriptor(const struct output_wish *wish);

/* Whether what is written to `path` goes where stdout goes, so that lines for people have no place there. NULL is fine. */
bool output_is_stdout(const char *path);

/* Whether one of n files goes there. Two, or one beside `json`, are refused: 0, or the exit status after one line on stderr. */
int output_share_stdout(const struct output_wish *wish, size_t n, bool json, bool *taken_out);

/* A file on its way. */
struct output {
    FILE *file; /* what is to be written to; NULL: none is open */
    struct shmtrain_output *to;
};

/* 0, or the exit status after one line on stderr. */
int output_open(struct output *out, const struct output_wish *wish);

/* Ends it: it takes its place, or is given up, when `failed` is the errno of a write that failed. 0, or the exit status after
 * one line on stderr: then what was there before is untouched, unless it is a device or a pipe. */
int output_close(struct output *out, int failed);

/* Gives it up; one that is not open is fine. */
void output_discard(struct output *out);
