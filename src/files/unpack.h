/* The bytes of a file from its beginning on, unpacked where it is packed (gzip, bzip2, xz, zstd, lz4, compress).
 *
 * Called by readers, in one thread at a time for each stream. By libarchive, with those of its filters that run inside
 * the library: a file must not be able to start a program. libarchive does not look at the checksum at the end of gzip data;
 * shmt_unpack_finish does. */
#pragma once

#include <stdint.h>

#include "files/file.h"
#include "base/error.h"

struct shmt_unpack;

/* Where packed bytes come from. `more` gives the next ones, at most `bytes` of them; 0: there are no more; below 0: a status,
 * with its sentence, which reading passes on. */
struct shmt_unpack_from {
    int64_t (*more)(void *arg, void *into, uint64_t bytes, struct shmt_error *e);
    void *arg;
    const char *name; /* for sentences; lives as long as the stream */
};

/* Refuse what begins as nothing that libarchive unpacks (_DATA), and all where it is not installed (_SYSTEM). */
int shmt_unpack_open_from(const struct shmt_unpack_from *from, struct shmt_unpack **out, struct shmt_error *e);

/* `file` must stay open; its position is not used, so streams of one file do not disturb one another. */
int shmt_unpack_open(const struct shmt_file *file, struct shmt_unpack **out, struct shmt_error *e);

/* The bytes of one member of a zip archive, by its whole name. *out is NULL, and 0 is returned, where there is none of it. */
int shmt_unpack_open_member(const struct shmt_file *file, const char *member, struct shmt_unpack **out, struct shmt_error *e);

/* The next `bytes` bytes; fewer only at the end. Returns their number, SHMTRAIN_E_DATA (damaged), _MEMORY, or
 * what `more` has failed with (a file: _SYSTEM). */
int64_t shmt_unpack_read(struct shmt_unpack *stream, void *into, uint64_t bytes, struct shmt_error *e);

/* To be called at the end of the bytes: are they what was packed? SHMTRAIN_E_DATA. */
int shmt_unpack_finish(struct shmt_unpack *stream, struct shmt_error *e);

void shmt_unpack_close(struct shmt_unpack *stream); /* NULL is fine */
