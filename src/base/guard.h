/* Files that are mapped and must not change meanwhile: while we hold a guard, nobody opens the file for writing or cuts it short,
 * its owner included. It is a lease of Linux (F_RDLCK): whoever wants to write waits until we let go, or for as long as
 * /proc/sys/fs/lease-break-time says (45 s), and we see at once that somebody waits. So what is read until then is what was
 * checked.
 *
 * A guard belongs to the open file, and so to all processes that are forked with it. The system tells nobody by signals: who
 * reads asks. Used by data/cache.c, and asked by workers before and behind each item, but at most once in a tick of the clock
 * (train/job.c), and each chunk of validation (train/evaluate.c). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is read of a file only as long as its guard holds. */
struct shmt_guarded {
    const char *name; /* the file's, for sentences; NULL: nothing is */
    int fd;
};

/* Behind the file's name, in sentences. */
#define SHMT_GUARD_BROKEN \
    " was opened for writing while in use, and changing data cannot be used: try again when the writer has finished"

/* True: it is ours. False: it cannot be had: the file is another user's, somebody has it open for writing, or the file system
 * has none. */
bool shmt_guard_take(int fd);

/* Whether nobody waits to change the file, and nobody has: asks the system, in less than a microsecond. */
bool shmt_guard_holds(int fd);

/* Likewise, but what was asked within the same tick of the system's clock, some milliseconds, is not asked again: whoever wants to
 * write is kept waiting for seconds at least. For those who ask every few microseconds. *asked_ns_inout: when it was asked, of
 * one thread; 0 at first. */
bool shmt_guard_held_lately(int fd, uint64_t *asked_ns_inout);

void shmt_guard_release(int fd); /* one that was not taken is fine */
