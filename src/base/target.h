/* Where a name leads: the folder and the name in it that are behind symbolic links, for files that are to be written.
 *
 * Links are followed here, one component after the other, and not by the system, so that Linux's rule for them
 * (fs.protected_symlinks) holds on every machine, whatever is set there: in a folder that everybody may write to and whose files only
 * their owners may remove (sticky, as /tmp is), a link is followed if it belongs to us or to the folder's owner. Others plant
 * links there that lead to files of ours. The folder stays open, and what is done in it goes by the name in it, so nothing that is
 * put in place of a folder or a link afterwards leads elsewhere.
 *
 * Only ENOENT says that nothing is there; whatever else fails is an error. Used by base/replace.c, and by those that write
 * without it. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/error.h"

struct shmt_target {
    int folder;       /* opened with O_PATH; -1: none */
    const char *name; /* in it, within `path`; ".": the folder itself was named */
    bool exists;      /* else nothing has that name */
    bool is_magic;    /* a link of /proc, which the system alone can follow, to what is no file; `there` is what it leads to */
    const char *refused; /* after a failure: why, where that is the rule; else NULL */
    bool shared;         /* the folder is one to which the rule applies */
    struct stat there;   /* what has that name: never a link, but for shmt_target_find_own */
    struct stat in;      /* the folder */
    uint32_t n_links;    /* followed so far */
    char path[PATH_MAX]; /* the same as text, for sentences */
};

/* -1: errno, and `path` is as far as it was followed. EACCES and `refused`: a link of another user's. To be left in any case. */
int shmt_target_find(const char *path, struct shmt_target *out);

/* The same for a name of our own: a link of this name is not followed. */
int shmt_target_find_own(const char *path, struct shmt_target *out);

void shmt_target_close(struct shmt_target *target); /* leaves errno as it is; twice is fine */

/* What was found belongs to another user, who may have put it there for us: in a folder like /tmp, and not its owner's. */
bool shmt_target_is_planted(const struct shmt_target *target);

#define SHMT_TARGET_PLANTED \
    "it is another user's in a folder where everybody may create files: remove it, or use a folder of your own"

/* Opens what was found, and nothing that has got its name since, to be written to as it is; what is not there is made, with `mode`.
 * In a folder like /tmp another user's file is refused, and one that has further names (hard links), for these may be of a file
 * elsewhere. -1: errno (EBUSY: something else has that name now), and perhaps `refused`. */
int shmt_target_may_open(struct shmt_target *target); /* as far as that is known before */
int shmt_target_open(struct shmt_target *target, int flags, mode_t mode);

/* After a failure, for a sentence: why; with a remedy, where that is the rule. */
const char *shmt_target_why(const struct shmt_target *target, int code);

/* One link further, for those that look at each on the way: begin, then step until it says something else than 1. 1: followed;
 * 0: found; -1: errno. */
void shmt_target_begin(const char *path, struct shmt_target *out);
int shmt_target_step(struct shmt_target *target);
