/* Files that are written as a whole, as the library writes models: what an application writes beside them (predictions, a
 * report) need not be less safe.
 *
 * A new file is written beside the old one and takes its place when it is complete, so that there is the old one or the new one
 * at any time. Symbolic links stay, and what they lead to is replaced; owner, group and permissions stay, too, as far as the
 * writer may give them. Where the file system has files without a name, an unfinished one is gone with its writer. A pipe or a
 * device is written to as it is, and so is an open descriptor that is named (/dev/stdout, /dev/fd/N), whatever is behind it.
 *
 * In all functions `what` is what the file is called in sentences, as in "the predictions", and `message` (`bytes` large, NULL
 * allowed) gets the sentence of an error. Several files may be on their way at a time. */
#ifndef SHMTRAIN_OUTPUT_H
#define SHMTRAIN_OUTPUT_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A file on its way; used by one thread at a time. */
struct shmtrain_output;

/* Whether shmtrain_output_open would succeed now, as far as that can be known without writing anything: before hours of work,
 * not after. Whether a run reads the file, shmtrain_store_check_output says. Any thread. Errors: _SYSTEM (a folder, no
 * permission, a descriptor that is not open for writing), _MEMORY. */
SHMTRAIN_API int shmtrain_output_check(const char *path, const char *what, char *message, uint64_t bytes);

/* Opens it, into *out, to be ended by shmtrain_output_close or _discard. A pipe that nobody reads blocks, as writing to it does.
 * A relative path is one of the folder that is the current one when the output is closed. Any thread. Errors: as
 * shmtrain_output_check. */
SHMTRAIN_API int shmtrain_output_open(const char *path, const char *what, struct shmtrain_output **out, char *message,
                                      uint64_t bytes);

/* What is to be written to, from its beginning. Owned by the output: a stream is made of a dup of it, and closed before. */
SHMTRAIN_API int shmtrain_output_fd(const struct shmtrain_output *output);

/* Ends it, and frees it in any case. `failed` 0: what was written is complete: it takes its place, and survives a crash of the
 * machine where the file system can promise that. Else the errno of the write that failed, which the sentence is to tell, and
 * what was there before is untouched (but for a pipe or a device). Blocks until the disk has it. Errors: _SYSTEM (also whenever
 * `failed` is not 0). */
SHMTRAIN_API int shmtrain_output_close(struct shmtrain_output *output, int failed, char *message, uint64_t bytes);

/* Gives it up, and frees it: what was there before is untouched. NULL does nothing. */
SHMTRAIN_API void shmtrain_output_discard(struct shmtrain_output *output);

/* For a handler of signals that ends the program at once: removes unfinished files of this process that have a name, those of
 * the library (models, caches, traces), too; up to 16 are known at a time, and one that another thread is making at this very
 * moment may stay. Async-signal-safe. */
SHMTRAIN_API void shmtrain_output_discard_all(void);

/* The descriptor that `path` names by /dev/stdout, /dev/fd/N or /proc/self/fd/N, also through links, open or not; -1: none. Any
 * thread. */
SHMTRAIN_API int shmtrain_output_descriptor(const char *path);

#ifdef __cplusplus
}
#endif
#endif
