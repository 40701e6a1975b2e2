/* What the files of `segment` share. */
#pragma once

#include <fcntl.h>
#include <sys/mman.h>

#include "segment/segment.h"

#ifndef MADV_POPULATE_READ
#    define MADV_POPULATE_READ  22
#    define MADV_POPULATE_WRITE 23
#endif

#define SHMT_SEGMENT_MAGIC   0x6765736e72746873u /* "shtrnseg" as bytes in memory */
#define SHMT_SEGMENT_VERSION 1u
#define SHMT_SEGMENT_SEALS   (F_SEAL_SHRINK | F_SEAL_GROW)
#define SHMT_SEGMENT_REMEDY  "free some memory, raise the limit, or train on less data"

/* The start of the segment; written once, before anybody else can see it. */
struct shmt_segment_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t bytes;       /* of the whole segment */
    uint64_t fingerprint; /* of the layout inside */
};

/* What files of named stores, which are not sealed, are called when somebody makes them shorter (base/mapped.h). */
#define SHMT_NAMED_MEMORY "shared memory of a named store"

/* Maps `bytes` of `fd` into *segment, with protection PROT_*. Errors: _MEMORY, _SYSTEM. */
int shmt_segment_map(struct shmt_segment *segment, int protection, struct shmt_error *e);

/* Maps `bytes` of zeros into *segment that only this process and those that it forks have, aligned for huge pages. Errors: the
 * same. */
int shmt_segment_map_private(struct shmt_segment *segment, struct shmt_error *e);

/* Takes back whatever there is of a segment, half-made ones included. */
void shmt_segment_undo(struct shmt_segment *segment);

/* Enters `bytes` of mapped shared memory, from the beginning of a page, into the page table: see shmt_segment_populate. */
void shmt_segment_enter(unsigned char *first, uint64_t bytes, uint64_t page_bytes, int write);

/* ---- placing.c ---- */

/* Whether the nodes have the reserved huge pages that a segment of `bytes` would take of them; 0: a line of the log says which
 * one has not. */
int shmt_placing_has_huge(const struct shmt_segment_wish *wish, uint64_t bytes);

/* Before pages are placed: gives each range its policy. 0: the kernel refuses, as one line says. */
int shmt_placing_bind(const struct shmt_segment_wish *wish, const struct shmt_segment *segment);

/* After pages are placed: says in one line what lies on other nodes than wished. */
void shmt_placing_look(const struct shmt_segment_wish *wish, const struct shmt_segment *segment);
