/* A checkpoint that comes from elsewhere, in pieces, into a folder that is claimed (checkpoint.h): it has its name only when all of it
 * is there. Its bytes are not believed: whoever opens it checks all of them. */
#pragma once

#include "base/replace.h"
#include "keeping/checkpoint.h"

struct shmt_checkpoint_copy {
    char path[PATH_MAX]; /* that it will have */
    struct shmt_replacement file;
};

/* Of the step `step` of its run, and so many bytes, for which there has to be room. Must stay where it is until it is closed.
 * Errors: _SYSTEM. */
int shmt_checkpoint_copy_open(const char *folder, uint64_t step, uint64_t bytes, struct shmt_checkpoint_copy *copy,
                              struct shmt_error *e);

/* The next n bytes. Errors: _SYSTEM. */
int shmt_checkpoint_copy_add(struct shmt_checkpoint_copy *copy, const void *bytes, uint64_t n, struct shmt_error *e);

/* All have come: synced, renamed, and opened. Errors: _SYSTEM; _DATA: it is no checkpoint (of that step), and is removed; _MEMORY. */
int shmt_checkpoint_copy_end(struct shmt_checkpoint_copy *copy, uint64_t step, struct shmt_checkpoint_in **out,
                             struct shmt_error *e);

/* Nothing is left of it. */
void shmt_checkpoint_copy_discard(struct shmt_checkpoint_copy *copy);
