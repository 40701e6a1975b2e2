/* Ranges inside a segment: where they are, how their pages come, and how offsets are planned. See segment.h. */
#include "segment/segment.h"

#include <errno.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/line.h"
#include "segment/segment_priv.h"

#define LAYOUT_PAGE_BYTES 4096

void *shmt_segment_at(const struct shmt_segment *segment, uint64_t off, uint64_t bytes) {
    if (!segment->base) return NULL;
    const uint64_t contents = segment->bytes - SHMT_SEGMENT_HEADER_BYTES;
    if (off > contents || bytes > contents - off) return NULL;
    return segment->base + SHMT_SEGMENT_HEADER_BYTES + off;
}

void shmt_segment_enter(unsigned char *first, uint64_t bytes, uint64_t page_bytes, int write) {
    if (madvise(first, bytes, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0 || errno != EINVAL) return;
    /* A kernel before 5.14. Reading is all that may be done to memory that others are writing; atomically, because they are. */
    for (uint64_t page = 0; page < bytes; page += page_bytes) (void)load_relaxed((_Atomic unsigned char *)(first + page));
}

void shmt_segment_populate(const struct shmt_segment *segment, uint64_t off, uint64_t bytes, int write) {
    const unsigned char *start = shmt_segment_at(segment, off, bytes);
    if (!start || bytes == 0) return;
    const uint64_t page_bytes = segment->page_bytes;
    const uint64_t first = (uint64_t)(start - segment->base) & ~(page_bytes - 1);
    const uint64_t end = (uint64_t)(start - segment->base) + bytes;
    shmt_segment_enter(segment->base + first, end - first, page_bytes, write);
}

static uint64_t add_aligned(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes, uint64_t alignment) {
    uint64_t off, bytes, end;
    if (layout->failed || !shmt_mul_u64(count, each_bytes, &bytes) || !shmt_round_up_u64(layout->bytes, alignment, &off) ||
        !shmt_add_u64(off, bytes, &end)) {
        layout->failed = 1;
        return 0;
    }
    layout->bytes = end;
    return off;
}

uint64_t shmt_layout_add(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes) {
    return add_aligned(layout, count, each_bytes, SHMT_LINE);
}

uint64_t shmt_layout_add_pages(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes) {
    return add_aligned(layout, count, each_bytes, LAYOUT_PAGE_BYTES);
}

uint64_t shmt_layout_add_at(struct shmt_layout *layout, uint64_t count, uint64_t each_bytes, uint64_t alignment) {
    uint64_t in_mapping;
    /* offsets count from behind the header, alignment from the start of the mapping */
    if (!shmt_add_u64(layout->bytes, SHMT_SEGMENT_HEADER_BYTES, &in_mapping) ||
        !shmt_round_up_u64(in_mapping, alignment, &in_mapping)) {
        layout->failed = 1;
        return 0;
    }
    layout->bytes = in_mapping - SHMT_SEGMENT_HEADER_BYTES;
    return add_aligned(layout, count, each_bytes, 1);
}
