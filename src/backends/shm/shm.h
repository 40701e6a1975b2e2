/* The shm backend: parameters in a shared memory segment that every worker maps, as processes or as threads. */
#pragma once

#include "ps/backend_ops.h"

extern const struct shmt_backend SHMT_BACKEND_SHM;

/* The store of a segment that another process (or this one) has created with the same spec, mapped wherever there is room.
 * `flags`: of shmt_segment_attach; what is mapped for reading only may be read (read, board, counters), and nothing else.
 * Destroyed like any other; the memory goes with the last one that maps it. Errors: _USAGE or _SYSTEM when the segment is not
 * what it should be, _MEMORY. */
int shmt_shm_attach(const struct shmt_spec *spec, int fd, int flags, struct shmt_store **out, struct shmt_error *e);

/* Whether the file of a segment is one that attach would take for a checked spec, without mapping it. Errors: of
 * shmt_segment_check. */
int shmt_shm_check(int fd, int flags, struct shmt_error *e);

/* The segment's descriptor; it belongs to the store. */
int shmt_shm_fd(const struct shmt_store *store);
