/* Shared memory segments: memory files without a name (memfd), inherited by forked workers, or files that have one
 * (/dev/shm). What is written once, before anybody is forked, may also be private memory.
 *
 * Made in this order, because each step protects the next: the need is held against what there is (budget.h, the free room
 * of /dev/shm, each node's free huge pages), memfd_create, ftruncate, seals against resizing, mmap, the NUMA policy of each
 * range, because placed pages do not move, posix_fallocate in steps, which places the pages -- so that a machine without
 * memory is told by an error here and not by a signal later -- and a look at where the pages are. What the machine refuses
 * and can be done without (a policy, huge pages, room on a node) is said in one line of the log. A header with magic,
 * version, size and fingerprint opens the segment; a process that attaches copies it first, checks the copy, and uses only the
 * copy. Inside, everything is an offset: different processes may have the segment at different addresses. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "topo/topo.h"

#define SHMT_SEGMENT_HEADER_BYTES 4096
#define SHMT_HUGE_BYTES           ((uint64_t)2 << 20)
#define SHMT_RANGE_NODES          64

/* One process's handle. A forked child inherits it and may detach for itself. Zero-filled: a detached one. */
struct shmt_segment {
    unsigned char *base;  /* where this process has it; NULL: it is detached */
    uint64_t bytes;       /* all of it, header included; a multiple of page_bytes */
    uint64_t page_bytes;  /* what it really has: the system's pages, or SHMT_HUGE_BYTES */
    uint32_t transparent; /* 1: its pages may be transparent huge ones; page_bytes does not count these */
    int fd;               /* close-on-exec; -1: private memory */
};

/* Where a range of the contents shall lie. A page that two ranges share goes with the later one. */
struct shmt_memory_range {
    uint64_t off, bytes;
    uint32_t policy; /* enum shmt_memory_policy */
    uint32_t n_nodes;
    uint32_t node[SHMT_RANGE_NODES]; /* (n_nodes) the system's numbers */
};

/* What a segment shall be. */
struct shmt_segment_wish {
    const char *name;            /* "store": in /proc/PID/maps ("memfd:shmtrain-store") and in lines of the log */
    int fd;                      /* -1: a memory file is made. Else one with a name, without seals, and with a signature at most
                                    (named.h), which stays */
    uint64_t bytes, fingerprint; /* of the contents; of the layout that will lie inside */
    uint64_t page_bytes;         /* SHMT_HUGE_BYTES: reserved huge pages, where there are enough. 0: ordinary ones */
    uint32_t transparent;        /* 1: transparent huge pages are welcome */
    uint32_t is_private;         /* 1: memory of this process without a file, in transparent huge pages where the system makes
                                    them. Processes forked later see it as it is then, and may read only */
    uint32_t n_ranges;
    const struct shmt_memory_range *range; /* (n_ranges) */
    const struct shmt_topo *topo;          /* NULL: nothing is known of nodes, ranges do not count */
    const struct shmt_log *log;            /* may be NULL */
    bool (*stopped)(void *arg);            /* asked for each 16 MiB or so: whether to give up. NULL: it never is */
    void *arg;
};

/* `bytes` of contents (offset 0 of the contents is base + SHMT_SEGMENT_HEADER_BYTES), zero-filled. May take 0.3 s per GiB,
 * since it places every page. A given descriptor belongs to the segment from then on; after an error it is the caller's.
 * Errors: _MEMORY with needed and available figures, _SYSTEM, _STOPPED; then nothing is left behind. */
int shmt_segment_create(const struct shmt_segment_wish *wish, struct shmt_segment *out, struct shmt_error *e);

enum shmt_attach_flags {
    SHMT_ATTACH_NAMED = 1, /* a file with a name: it has no seals, so its owner could still cut it short */
    SHMT_ATTACH_READ = 2   /* map it for reading only */
};

/* Maps an existing segment (by descriptor, which is duplicated and stays the caller's) somewhere else, after checking its
 * header against `fingerprint`, its size against the file's, and (unless NAMED) that nobody can resize it. Errors: _USAGE
 * where it is not the segment that it should be, _MEMORY, _SYSTEM. */
int shmt_segment_attach(int fd, uint64_t fingerprint, int flags, struct shmt_segment *out, struct shmt_error *e);

/* Whether attach would find the segment that it should be: all its checks, by reading, without mapping anything. Errors: _USAGE
 * where it is not, _SYSTEM. */
int shmt_segment_check(int fd, uint64_t fingerprint, int flags, struct shmt_error *e);

/* Unmaps and closes; harmless for a detached handle. The memory goes when the last process has done so. */
void shmt_segment_detach(struct shmt_segment *segment);

/* The address of `bytes` bytes at offset `off` of the contents; NULL when they do not lie inside. */
void *shmt_segment_at(const struct shmt_segment *segment, uint64_t off, uint64_t bytes);

/* Enters the pages of a range into this process's page table, so that the first pass meets no page faults. Changes no content,
 * so others may be using it. write: 1 where this process will be the first to fill the pages (0.4 s per GiB, clearing them
 * included); 0 where it will read, or where somebody has filled them already (0.08 s per GiB; on x86 they are entered writable
 * all the same). The wrong value only costs time: it takes 2 to 3 times as long. Does nothing when the system refuses, or when
 * the range is not inside. */
void shmt_segment_populate(const struct shmt_segment *segment, uint64_t off, uint64_t bytes, int write);

/* A window: ranges of the contents, one behind the other in the order given, at addresses that follow one another. It is the
 * same memory, on the same pages, which keep the node that they were placed on; what is written in the one place is there in
 * the other. Only this process has it, as long as it wishes; the segment must stay. */
struct shmt_window_part {
    uint64_t off, bytes; /* whole pages of the segment; two parts may be of one range */
};
struct shmt_window {
    unsigned char *base; /* NULL: none. Where pages may be huge, as aligned as these */
    uint64_t bytes;
};

/* Maps n >= 1 parts and enters their pages into the page table, as those that somebody has filled. Errors: _MEMORY when there
 * are no addresses left, _SYSTEM; then nothing is left behind. */
int shmt_segment_open_window(const struct shmt_segment *segment, const struct shmt_window_part *part, uint32_t n,
                             struct shmt_window *out, struct shmt_error *e);
void shmt_segment_close_window(struct shmt_window *window);

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
