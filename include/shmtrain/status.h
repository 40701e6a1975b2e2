/* The status codes of libshmtrain.
 *
 * Every function that can fail returns an int: zero or a positive result, or one of the negative codes below. The sentence that
 * says what happened, where, and what to do about it is kept by the handle (shmtrain_store_message). Out-parameters are set on
 * success only. */
#ifndef SHMTRAIN_STATUS_H
#define SHMTRAIN_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_API __attribute__((visibility("default")))

/* ---- structs, and later versions of the library ----
 *
 * A program that was compiled with these headers runs with every later library of the same soname. Structs only grow, at their
 * ends, and each side knows how much of a struct the other one has:
 *
 * - What the application fills begins with `size`, which it sets: {.size = sizeof(struct shmtrain_listener), .note = ...}.
 *   Members that it does not name, or does not know, are zero, and zero is always the default. A size that was forgotten is
 *   SHMTRAIN_E_USAGE, and so is a member that is set and that this library does not know.
 * - Of what the library fills in the application's memory (struct shmtrain_work), the call passes the size. Such calls are
 *   inline functions around one named _sized, which is there for languages that do not read C headers. `size` says how much was
 *   filled.
 * - What the library makes and lends (struct shmtrain_report) begins with `size`, too, and may be longer than the application
 *   knows. SHMTRAIN_HAS tells whether an older library has a member. Calls that take such a struct want the pointer that the
 *   library gave, not a copy. (Struct shmtrain_option and _mode, constants of the library, have no size: they only get longer.)
 * - Structs that stand in arrays or in other structs never change their sizes. Their reserved members are 0 until a later
 *   version gives them a meaning: SHMTRAIN_E_USAGE where one is set. */

/* Whether the struct at `at`, which the library has made or filled, has this member. */
#define SHMTRAIN_HAS(at, member) ((uint64_t)((const char *)(&(at)->member + 1) - (const char *)(at)) <= (at)->size)

enum {
    SHMTRAIN_OK = 0,
    SHMTRAIN_E_USAGE = -1,   /* an argument, option or order of calls that cannot be */
    SHMTRAIN_E_MEMORY = -2,  /* more memory is needed than there is, or is allowed */
    SHMTRAIN_E_DATA = -3,    /* training data that cannot be read as what it should be */
    SHMTRAIN_E_SYSTEM = -4,  /* a system call failed: files, processes, memory mappings */
    SHMTRAIN_E_DIED = -5,    /* a worker died and cannot be done without (options on-death, max-respawns), or one that stands
                                still ends the run (on-stall, time-limit), or the run of a named store is over: which and why */
    SHMTRAIN_E_STOPPED = -6, /* the run was told to end: leave the worker function, returning this */
    SHMTRAIN_E_NUMBERS = -7, /* the parameters are no finite numbers any more */
    SHMTRAIN_E_AGAIN =
        -8 /* not yet: the run of a named store is still being prepared, or a snapshot is on its way; ask again */
};

/* The name of a status code, such as "SHMTRAIN_E_DATA"; never NULL. Any thread, any time. */
SHMTRAIN_API const char *shmtrain_status_name(int status);

/* For an application's handler of SIGBUS, which comes when a file becomes shorter while it is mapped: the name of the file (a
 * cache) that shmtrain has mapped at `address`, the signal's si_addr; NULL: none of ours lies there. Any thread, and in signal
 * handlers. Workers that are processes need no handler: their run fails with a sentence. */
SHMTRAIN_API const char *shmtrain_fault_file(const void *address);

#ifdef __cplusplus
}
#endif
#endif
