/* Files that are replaced whole: a new one is written beside the old one and takes its place when it is complete, so that
 * there is the old one or the new one at any time. Symbolic links stay, and what they lead to is replaced; owner, group and
 * permissions stay, too, as far as the writer may give them. Links are followed by the rule of target.h: others cannot lead us to
 * files of ours by a link in a folder like /tmp, and what is no file there must be ours, or the folder's owner's. A pipe or a
 * device is written to as it is, and so is an open descriptor that is named (/dev/stdout, /dev/fd/N), whatever is behind it.
 * Names that nobody has given, but we have made, are written by shmt_replace_open_own: there the new file takes the place of
 * whatever has got that name, but of a folder.
 *
 * Used for models, caches and traces, and by applications (api/output_file.c); `what` is the file's name in sentences: "the
 * model". While a file has a name and is not complete, handlers of signals know it (unfinished.h). */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/target.h"

struct shmt_replacement {
    int fd;                    /* to be written to */
    bool special, nameless;    /* nameless: what is written has no name yet, and is gone when its writer is */
    const char *path, *what;   /* the caller's; must live until it is closed */
    struct shmt_target target; /* so a replacement stays where it was opened */
    char temporary[PATH_MAX];
};

/* Errors: _SYSTEM (no folder, no permission, disk full). A pipe that nobody reads blocks, as writing to it does. */
int shmt_replace_open(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e);

/* The same for a name of our own: a pipe, a device or a link of that name is replaced as a file is, so this never blocks, and
 * nothing elsewhere is written to. Errors: _SYSTEM (also where a folder is in the way). */
int shmt_replace_open_own(struct shmt_replacement *r, const char *path, const char *what, struct shmt_error *e);

/* Whether shmt_replace_open would succeed now, as far as that can be known without writing anything that stays. */
int shmt_replace_check(const char *path, const char *what, struct shmt_error *e);

/* The descriptor that `path` names by /dev/stdout, /dev/fd/N or /proc/self/fd/N, also through links; -1: none. */
int shmt_replace_descriptor(const char *path);

/* A copy of it, to be closed. -1, with errno: one that is not open, or to be read only, is none to write to. */
int shmt_replace_copy(int fd);

/* Whether it is written from its beginning to its end only: a pipe, or an open descriptor that is named. */
bool shmt_replace_is_stream(const char *path);

/* To be called once after an open that succeeded. With written 0, what was written is synced, takes its place, and the
 * folder is synced; with -1 writing has failed for the reason in errno, and `path` is as it was. Errors: _SYSTEM; then, too. */
int shmt_replace_close(struct shmt_replacement *r, int written, struct shmt_error *e);

/* The other end: what was written is given up, and `path` is as it was, unless it is written to as it is. */
void shmt_replace_discard(struct shmt_replacement *r);
