/* Windows: ranges of a segment side by side at addresses of their own. See segment.h.
 *
 * The addresses of the whole window are taken first, by a mapping without any rights; then each range is mapped over its part
 * of them. So nothing else can come to lie there in between, and whatever fails, one munmap takes all back. */
#include <stddef.h>
#include <sys/mman.h>

#include "base/checked.h"
#include "segment/budget.h"
#include "segment/segment_priv.h"

/* Transparent huge pages need addresses and offsets in the file that are alike within such a page: the window begins with one,
 * and whoever wants them lays out what a range stands in for at multiples of it, too. */
static uint64_t alignment_of(const struct shmt_segment *segment) {
    return segment->transparent ? SHMT_HUGE_BYTES : segment->page_bytes;
}

static int check_parts(const struct shmt_segment *segment, const struct shmt_window_part *part, uint32_t n, uint64_t *bytes_out,
                       struct shmt_error *e) {
    const uint64_t page = segment->page_bytes;
    uint64_t bytes = 0;
    bool fits = n > 0;
    for (uint32_t i = 0; i < n && fits; i++)
        fits = shmt_segment_at(segment, part[i].off, part[i].bytes) && part[i].bytes > 0 &&
               (SHMT_SEGMENT_HEADER_BYTES + part[i].off) % page == 0 && part[i].bytes % page == 0 &&
               shmt_add_u64(bytes, part[i].bytes, &bytes);
    if (!fits)
        return shmt_fail(e, SHMTRAIN_E_SYSTEM,
                         "cannot map ranges of a shared memory segment side by side: they are not whole pages");
    *bytes_out = bytes;
    return 0;
}

/* Addresses for `bytes`, aligned; what alignment leaves over goes back. */
static unsigned char *reserve(uint64_t bytes, uint64_t alignment, struct shmt_error *e) {
    const uint64_t all = bytes + alignment; /* far below the limit: the segment has as many */
    unsigned char *const base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        char need[32];
        shmt_bytes_text(bytes, need, sizeof need);
        (void)shmt_fail(e, SHMTRAIN_E_MEMORY,
                        "this process has no address space left for a worker's view of %s of parameters: raise the limit "
                        "(ulimit -v), or use --replicas one",
                        need);
        return NULL;
    }
    const uint64_t before = (alignment - (uint64_t)(uintptr_t)base % alignment) % alignment;
    if (before > 0) (void)munmap(base, before);
    (void)munmap(base + before + bytes, alignment - before);
    return base + before;
}

static int map_part(const struct shmt_segment *segment, unsigned char *at, const struct shmt_window_part *part,
                    struct shmt_error *e) {
    const off_t off = (off_t)(SHMT_SEGMENT_HEADER_BYTES + part->off);
    if (mmap(at, part->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, segment->fd, off) == MAP_FAILED)
        return shmt_fail_errno(e, "cannot map a range of shared memory a second time (mmap)");
    if (segment->transparent) (void)madvise(at, part->bytes, MADV_HUGEPAGE);
    shmt_segment_enter(at, part->bytes, segment->page_bytes, 0);
    return 0;
}

int shmt_segment_open_window(const struct shmt_segment *segment, const struct shmt_window_part *part, uint32_t n,
                             struct shmt_window *out, struct shmt_error *e) {
    struct shmt_window window = {0};
    int rc = check_parts(segment, part, n, &window.bytes, e);
    if (rc < 0) return rc;
    window.base = reserve(window.bytes, alignment_of(segment), e);
    if (!window.base) return SHMTRAIN_E_MEMORY;
    for (uint64_t i = 0, at = 0; i < n && rc == 0; at += part[i].bytes, i++)
        rc = map_part(segment, window.base + at, &part[i], e);
    if (rc < 0)
        shmt_segment_close_window(&window);
    else
        *out = window;
    return rc;
}

void shmt_segment_close_window(struct shmt_window *window) {
    if (window->base) (void)munmap(window->base, window->bytes);
    *window = (struct shmt_window){0};
}
