/* The bytes of a file from its beginning on, unpacked where it is packed (gzip, bzip2, xz, zstd, lz4, compress).
 *
 * Called by the IDX reader, in one process at a time for each stream. By libarchive, with those of its filters that run inside
 * the library: a file must not be able to start a program. libarchive does not look at the checksum at the end of gzip data;
 * shmt_unpack_finish does. */
#ifndef SHMT_DATA_UNPACK_H
#define SHMT_DATA_UNPACK_H

#include <stdint.h>

#include "base/error.h"
#include "data/file.h"

struct shmt_unpack;

/* `file` must stay open; its position is not used, so streams of one file do not disturb one another. */
int shmt_unpack_open(const struct shmt_file *file, struct shmt_unpack **out, struct shmt_error *e);

/* The next `bytes` bytes; fewer only at the end. Returns their number, or SHMTRAIN_E_DATA (damaged), _SYSTEM (cannot be
 * read). */
int64_t shmt_unpack_read(struct shmt_unpack *stream, void *into, uint64_t bytes, struct shmt_error *e);

/* To be called at the end of the bytes: are they what was packed? SHMTRAIN_E_DATA. */
int shmt_unpack_finish(struct shmt_unpack *stream, struct shmt_error *e);

void shmt_unpack_close(struct shmt_unpack *stream); /* NULL is fine */

#endif
