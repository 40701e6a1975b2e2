/* Shared memory segments: anonymous ones (memfd), inherited by forked workers.
 *
 * Made in this order, because each step protects the next: the need is held against what there is (budget.h), memfd_create,
 * ftruncate, seals against resizing, mmap, (a NUMA policy belongs here, because placed pages do not move), posix_fallocate in
 * steps, which places the pages -- so that a machine without memory is told by an error here and not by a signal later. A
 * header with magic, version, size and fingerprint opens the segment; whoever attaches copies it first, checks the copy, and
 * uses only the copy. Inside, everything is an offset: different processes may have the segment at different addresses. */
#ifndef SHMT_SEGMENT_SEGMENT_H
#define SHMT_SEGMENT_SEGMENT_H

#include <stdint.h>

#include "base/error.h"

#define SHMT_SEGMENT_HEADER_BYTES 4096

/* One process's handle. A forked child inherits it and may detach for itself. Zero-filled: a detached one. */
struct shmt_segment {
    unsigned char *base; /* where this process has it; NULL: it is detached */
    uint64_t bytes;      /* all of it, header included; a multiple of the page size */
    int fd;              /* close-on-exec */
};

/* `bytes` of contents (offset 0 of the contents is base + SHMT_SEGMENT_HEADER_BYTES), zero-filled. `fingerprint`: of the layout
 * that will lie inside. `name` is shown in /proc/PID/maps ("memfd:shmtrain-NAME"). May take 0.3 s per GiB, since it places
 * every page. Errors: _MEMORY with needed and available figures, _SYSTEM; then nothing is left behind. */
int shmt_segment_create(const char *name, uint64_t bytes, uint64_t fingerprint, struct shmt_segment *out, struct shmt_error *e);

/* Maps an existing segment (by descriptor, which is duplicated and stays the caller's) somewhere else, after checking its
 * header against `fingerprint`, its size against the file's, and that nobody can resize it. Errors: _USAGE where it is not the
 * segment that it should be, _MEMORY, _SYSTEM. */
int shmt_segment_attach(int fd, uint64_t fingerprint, struct shmt_segment *out, struct shmt_error *e);

/* Unmaps and closes; harmless for a detached handle. The memory goes when the last process has done so. */
void shmt_segment_detach(struct shmt_segment *segment);

/* The address of `bytes` bytes at offset `off` of the contents; NULL when they do not lie inside. */
void *shmt_segment_at(const struct shmt_segment *segment, uint64_t off, uint64_t bytes);

/* Enters the pages of a range into this process's page table, so that the first pass meets no page faults. Changes no content,
 * so others may be using it. write: 1 where this process will be the first to fill the pages (0.4 s per GiB, clearing them
 * included); 0 where it will read, or where somebody has filled them already (0.08 s per GiB; on x86 they are entered writable
 * all the same). The other way round it is right too, but takes 2 to 3 times as long. Harmless when refused or when the range
 * is not inside. */
void shmt_segment_populate(const struct shmt_segment *segment, uint64_t off, uint64_t bytes, int write);

/* Gives the pages of a range back to the system (contents become zero): for estimates that were too large. The pages are not
 * placed any more: whoever touches them again takes the risk that create takes away. */
void shmt_segment_punch(const struct shmt_segment *segment, uint64_t off, uint64_t bytes);

/* Plans offsets: aligned pieces one behind the other, with overflow checked. Start with {0}; `bytes` is what is needed in
 * all. */
struct shmt_layout {
    uint64_t bytes;
    int failed; /* an overflow happened: all later offsets are meaningless (0) */
};
uint64_t shmt_layout_add(struct shmt_layout *layout, uint64_t count,
                         uint64_t each_bytes); /* aligned to SHMT_LINE; the offset */
uint64_t shmt_layout_add_pages(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes); /* aligned to 4096 */

/* Aligned to `alignment` (a power of two, 4096 at least) in the mapping, where ranges of memory are bound. */
uint64_t shmt_layout_add_at(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes, uint64_t alignment);

#endif
