/* Shared memory with a name: files in /dev/shm that other processes of the same user find. Called by api (stores with a name);
 * a segment is made in such a file, or attached from it, by its descriptor (segment.h).
 *
 *     /dev/shm/shmtrain-UID-NAME            the store
 *     /dev/shm/shmtrain-UID-NAME.data       its run's training data, .valid its validation data; gone when the run is over
 *
 * Two kinds of locks tell who is there; the kernel drops them when their holder ends, however it ends. A process that has a store
 * open holds a shared flock on it: a process that gets the exclusive one knows that no other has it open. *Marks* are single bytes
 * beyond the end of any file, locked by one holder each (OFD locks): "the run goes on", "this guest lives". Process numbers in a
 * store are for messages only.
 *
 * Both belong to the open file, which forked children share: they last until the last of them has ended. So the maker of a
 * store also signs it, with a number that is its process's alone (base/process.h): when the maker has ended, the run is over and
 * the store not in use, whoever still holds the locks. In another PID namespace the locks alone tell. Nothing in here is trusted:
 * /dev/shm is everybody's, so a file counts only when it is a regular one of this user, closed to others, under one name. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SHMT_NAME_BYTES 64 /* with the 0 at its end */

enum shmt_named_part { SHMT_NAMED_STORE, SHMT_NAMED_DATA, SHMT_NAMED_VALID, SHMT_NAMED_PARTS };

/* A mark's number; any below 2^32. */
#define SHMT_MARK_RUN         ((uint64_t)0)                    /* held by who makes the store, until its run is over */
#define SHMT_MARK_GUEST(rank) ((uint64_t)1 + (uint64_t)(rank)) /* held by the guest that has this seat */
#define SHMT_MARK_REMOVAL     ((uint64_t)UINT32_MAX)           /* held by who takes the names away, for a moment */

/* Letters, digits, '.', '_' and '-', 1 to 63, beginning with none of '.' and '-' (to commands, "-x" is an option), not ending
 * like a part. Errors: _USAGE. */
int shmt_named_check(const char *name, struct shmt_error *e);

/* Makes an empty file, for this user alone, and holds it open; a store is signed, and has the mark of a run. All of this before
 * others see it, where /dev/shm makes files without a name (O_TMPFILE), else a moment later. 1: made, *out is its descriptor;
 * 0: there is one already (or something else of that name). Errors: _USAGE (the name), _SYSTEM. */
int shmt_named_create(const char *name, enum shmt_named_part part, int *out, struct shmt_error *e);

enum shmt_named_how {
    SHMT_NAMED_LOOK,  /* for a look: read only, without holding it open for others to see */
    SHMT_NAMED_READ,  /* read only */
    SHMT_NAMED_WRITE, /* read and write */
};

#define SHMT_NAMED_SIGNATURE_OFF 64 /* in the file, behind what segments begin with; 16 bytes */

/* Writes into a store's file that it is this process's, as making it does. If that fails, the locks alone tell. */
void shmt_named_sign(int fd);

/* Whether a file is empty but for a signature: its maker has not made the store yet. */
bool shmt_named_is_empty(uint64_t file_bytes);

/* Opens a file that is there. Waits up to a second for somebody who is just removing it. Errors: _USAGE (the name; there is
 * none; it is not ours, or not as we make them), _SYSTEM. */
int shmt_named_open(const char *name, enum shmt_named_part part, enum shmt_named_how how, int *out, struct shmt_error *e);

/* Whether `name` still stands for the file that is open as `fd`. */
bool shmt_named_is(const char *name, enum shmt_named_part part, int fd);

/* Removes the name; processes that have the file open keep the memory. Harmless where there is none. Errors: _SYSTEM. */
int shmt_named_unlink(const char *name, enum shmt_named_part part, struct shmt_error *e);

/* Takes the names of all parts away, of data whose store is gone, too. A store that somebody has open, unless its maker has
 * ended: _USAGE, unless `force`. Errors: _USAGE (the name; there is none; not ours), _SYSTEM. */
int shmt_named_remove(const char *name, bool force, struct shmt_error *e);

/* Removes a file that is too short to be a store, if no process has it open. True: it is gone, perhaps removed by another process. */
bool shmt_named_remove_remnant(const char *name);

/* Whether there is something of that name; for what cannot be opened, too. */
bool shmt_named_exists(const char *name, enum shmt_named_part part);

/* Whether somebody has data of the store open, whether the store is there or not. */
bool shmt_named_data_in_use(const char *name);

/* Whether somebody has the file open, and its maker has not ended; `fd` from LOOK. */
bool shmt_named_in_use(int fd);

/* This user's names, ascending: (n) into *out, to be freed. Returns n, or _SYSTEM, _MEMORY. */
int shmt_named_list(char (**out)[SHMT_NAME_BYTES], struct shmt_error *e);

/* Holds a mark; `fd` from create or WRITE. 1: it is mine; 0: somebody else's. Errors: _SYSTEM. */
int shmt_mark_hold(int fd, uint64_t mark, struct shmt_error *e);
void shmt_mark_drop(int fd, uint64_t mark);

/* Whether somebody else (through another open file) holds it. False where the system does not say. */
bool shmt_mark_is_held(int fd, uint64_t mark);

/* Whether the store's run goes on: its mark is held, and its maker has not ended. */
bool shmt_named_runs(int fd);

/* Releases the lock on the open file, for all processes that have inherited it. Called by the one that opened it. */
void shmt_named_unlock(int fd);

/* The bytes that the file system of all these files has left, and its size; UINT64_MAX, twice, where it does not say. */
void shmt_named_room(uint64_t *free_out, uint64_t *size_out);
