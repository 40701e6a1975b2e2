/* Making segments: see segment.h. Attaching and leaving is attach.c's matter, NUMA nodes placing.c's, what lies inside
 * range.c's.
 *
 * create works on a handle of its own, which undo takes back in any state; the caller's is set on success only. */
#include "segment/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/checked.h"
#include "base/mapped.h"
#include "segment/budget.h"
#include "segment/segment_priv.h"

#ifndef MFD_NOEXEC_SEAL
#    define MFD_NOEXEC_SEAL 0x0008u
#endif
#ifndef MFD_HUGETLB
#    define MFD_HUGETLB 0x0004u
#endif
#define HUGE_2M (21u << 26) /* MFD_HUGE_2MB */

#define MORE_SEALS     (SHMT_SEGMENT_SEALS | F_SEAL_SEAL) /* nobody adds a seal against writing either */
#define STEP_BYTES     ((uint64_t)64 << 20)
#define STOP_BYTES     ((uint64_t)16 << 20)
#define MIN_STEP_BYTES ((uint64_t)64 << 10)

/* Beyond the process's limit for file sizes, ftruncate would not fail but end the process by SIGXFSZ, also for files of
 * memory. */
static int check_file_limit(uint64_t bytes, struct shmt_error *e) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return 0;
    char need[32], most[32];
    shmt_bytes_text(bytes, need, sizeof need);
    shmt_bytes_text(limit.rlim_cur, most, sizeof most);
    return shmt_fail(
        e, SHMTRAIN_E_MEMORY,
        "a shared memory segment needs %s but files of this process are limited to %s: raise the limit (ulimit -f)", need,
        most);
}

static int check_need(uint64_t bytes, const char *what, struct shmt_error *e) {
    return shmt_budget_need(bytes, what, NULL, SHMT_SEGMENT_REMEDY, e);
}

/* Room of the file system that a given file lies in, which is small in containers; what the file has of it is there. Refuses what
 * does not fit, or, when the system has refused it already (`refused`), says so. */
static int check_room(int fd, uint64_t bytes, int refused, struct shmt_error *e) {
    struct statfs system;
    struct stat file;
    char all[32], left[32], need[32];
    if (fstatfs(fd, &system) != 0 || system.f_blocks == 0) return 0; /* 0: a tmpfs without a limit */
    const uint64_t block = (uint64_t)system.f_bsize, placed = fstat(fd, &file) == 0 ? (uint64_t)file.st_blocks * 512 : 0;
    const uint64_t room = system.f_bavail * block + placed;
    if (bytes <= room && !refused) return 0;
    shmt_bytes_text(system.f_blocks * block, all, sizeof all);
    shmt_bytes_text(room, left, sizeof left);
    shmt_bytes_text(bytes, need, sizeof need);
    return shmt_fail(e, SHMTRAIN_E_MEMORY,
                     "/dev/shm has %s, %s free, and a named store needs %s: enlarge it (mount -o remount,size=... /dev/shm, "
                     "docker --shm-size), or train without --name",
                     all, left, need);
}

/* An empty file of memory. Systems that forbid executable ones want that said; kernels before 6.3 do not know the word. */
static int make_file(const char *name, unsigned flags, struct shmt_segment *segment, struct shmt_error *e) {
    char full[128];
    snprintf(full, sizeof full, "shmtrain-%s", name);
    flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
    segment->fd = memfd_create(full, flags | MFD_NOEXEC_SEAL);
    if (segment->fd < 0 && errno == EINVAL) segment->fd = memfd_create(full, flags);
    if (segment->fd < 0) return shmt_fail_errno(e, "cannot create a memory file for shared memory (memfd_create)");
    return 0;
}

static int resize(const struct shmt_segment *segment, struct shmt_error *e) {
    int rc;
    do {
        rc = ftruncate(segment->fd, (off_t)segment->bytes);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return shmt_fail_errno(e, "cannot make a memory file %" PRIu64 " bytes long (ftruncate)", segment->bytes);
    return 0;
}

static int seal(const struct shmt_segment *segment, struct shmt_error *e) {
    if (fcntl(segment->fd, F_ADD_SEALS, MORE_SEALS) == 0) return 0;
    return shmt_fail_errno(e, "cannot seal a memory file against changes of its size (F_ADD_SEALS)");
}

/* ---- placing ordinary pages ---- */

/* The system gave pages up to `placed` and no more. */
static int fail_placing(const struct shmt_segment_wish *wish, const struct shmt_segment *segment, uint64_t placed, int code,
                        struct shmt_error *e) {
    char need[32], got[32], left[32] = "an unknown amount";
    struct shmt_budget budget;
    if (wish->fd >= 0 && code == ENOSPC && check_room(segment->fd, segment->bytes, 1, e) != 0) return SHMTRAIN_E_MEMORY;
    shmt_budget_read("", &budget);
    if (budget.available_bytes != UINT64_MAX) shmt_bytes_text(budget.available_bytes, left, sizeof left);
    shmt_bytes_text(segment->bytes, need, sizeof need);
    shmt_bytes_text(placed, got, sizeof got);
    const int memory = code == ENOSPC || code == ENOMEM;
    return shmt_fail(e, memory ? SHMTRAIN_E_MEMORY : SHMTRAIN_E_SYSTEM,
                     "a shared memory segment needs %s but the system gave only %s of it (%s; available: %s): %s", need, got,
                     strerror(code), left, SHMT_SEGMENT_REMEDY);
}

/* Places every page. In steps, so that the budget can be looked at again before each: another program may have taken the memory
 * in the meantime, and beyond a control group's limit the kernel kills instead of returning an error. A signal undoes the step
 * in which it comes; the step is halved then, so that a profiler's timer cannot keep us here for ever. */
static int place(const struct shmt_segment_wish *wish, const struct shmt_segment *segment, struct shmt_error *e) {
    const uint64_t largest = wish->stopped ? STOP_BYTES : STEP_BYTES;
    uint64_t step = largest;
    for (uint64_t off = 0; off < segment->bytes;) {
        const uint64_t n = shmt_min_u64(step, segment->bytes - off);
        if (wish->stopped && wish->stopped(wish->arg))
            return shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while allocating memory for the %s", wish->name);
        int rc = off == 0 ? 0 : check_need(segment->bytes - off, "the rest of a shared memory segment", e);
        if (rc != 0) return rc;
        /* Transparent huge pages come by touching only; what this leaves out gets ordinary ones. */
        if (segment->transparent) (void)madvise(segment->base + off, n, MADV_POPULATE_WRITE);
        const int code = segment->fd < 0 ? 0 : posix_fallocate(segment->fd, (off_t)off, (off_t)n);
        if (code == 0) {
            off += n;
            step = shmt_min_u64(step * 2, largest);
        } else if (code == EINTR) {
            step = shmt_max_u64(step / 2, MIN_STEP_BYTES);
        } else {
            return fail_placing(wish, segment, off, code, e);
        }
    }
    return 0;
}

/* Without a file, and so without a limit for files, seals, or pages that could be missing later: those that the system does not
 * place here it finds when they are written. */
static int make_private(const struct shmt_segment_wish *wish, struct shmt_segment *segment, int *bound_out,
                        struct shmt_error *e) {
    int rc = check_need(segment->bytes, "the data", e);
    if (rc == 0) rc = shmt_segment_map_private(segment, e);
    if (rc != 0) return rc;
    *bound_out = shmt_placing_bind(wish, segment);
    segment->transparent = madvise(segment->base, segment->bytes, MADV_HUGEPAGE) == 0;
    return place(wish, segment, e);
}

static int make(const struct shmt_segment_wish *wish, struct shmt_segment *segment, int *bound_out, struct shmt_error *e) {
    if (wish->is_private) return make_private(wish, segment, bound_out, e);
    int rc = check_file_limit(segment->bytes, e);
    if (rc == 0) rc = check_need(segment->bytes, "a shared memory segment", e);
    if (rc == 0) rc = wish->fd >= 0 ? check_room(wish->fd, segment->bytes, 0, e) : make_file(wish->name, 0, segment, e);
    if (rc == 0) rc = resize(segment, e);
    if (rc == 0 && wish->fd < 0) rc = seal(segment, e);
    if (rc == 0) rc = shmt_segment_map(segment, PROT_READ | PROT_WRITE, e);
    if (rc != 0) return rc;
    if (wish->fd >= 0) shmt_mapped_note(segment->base, segment->bytes, SHMT_NAMED_MEMORY);
    *bound_out = shmt_placing_bind(wish, segment);
    segment->transparent = wish->transparent && madvise(segment->base, segment->bytes, MADV_HUGEPAGE) == 0;
    return place(wish, segment, e);
}

/* ---- reserved huge pages ---- */

/* Mapping has reserved as many as the segment needs, and policies are preferences, so touching them meets no lack; a kernel
 * that knows how places them itself and would say if it did. */
static int place_huge(const struct shmt_segment *segment, struct shmt_error *e) {
    for (uint64_t off = 0; off < segment->bytes; off += SHMT_HUGE_BYTES) {
        if (madvise(segment->base + off, SHMT_HUGE_BYTES, MADV_POPULATE_WRITE) == 0) continue;
        if (errno != EINVAL) return shmt_fail_errno(e, "cannot allocate a huge page");
        (void)load_relaxed((_Atomic unsigned char *)(segment->base + off)); /* a kernel before 5.14; nobody else is there yet */
    }
    return 0;
}

/* 0; or a status, with a line in the log and nothing left behind: then it goes without them. */
static int make_huge(const struct shmt_segment_wish *wish, struct shmt_segment *segment, int *bound_out) {
    struct shmt_error e = {0};
    if (wish->fd >= 0) {
        shmt_log(wish->log, "files in /dev/shm cannot use reserved huge pages: the %s gets ordinary pages", wish->name);
        return SHMTRAIN_E_MEMORY;
    }
    if (!shmt_placing_has_huge(wish, segment->bytes)) return SHMTRAIN_E_MEMORY;
    int rc = check_file_limit(segment->bytes, &e);
    if (rc == 0) rc = make_file(wish->name, MFD_HUGETLB | HUGE_2M, segment, &e);
    if (rc == 0) rc = resize(segment, &e);
    if (rc == 0) rc = seal(segment, &e);
    if (rc == 0) rc = shmt_segment_map(segment, PROT_READ | PROT_WRITE, &e);
    if (rc == 0) {
        *bound_out = shmt_placing_bind(wish, segment);
        rc = place_huge(segment, &e);
    }
    if (rc == 0) return 0;
    shmt_segment_undo(segment);
    shmt_log(wish->log, "no huge pages for the %s: it gets ordinary pages: %s", wish->name, e.text);
    return rc;
}

/* ---- creating ---- */

/* A handle of the size that `bytes` of contents need in pages of `page_bytes`. */
static int begin(const struct shmt_segment_wish *wish, uint64_t page_bytes, struct shmt_segment *out, struct shmt_error *e) {
    uint64_t total;
    *out = (struct shmt_segment){.page_bytes = page_bytes, .fd = wish->fd};
    if (!shmt_add_u64(wish->bytes, SHMT_SEGMENT_HEADER_BYTES, &total) || !shmt_round_up_u64(total, page_bytes, &out->bytes) ||
        out->bytes > INT64_MAX) {
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "a shared memory segment cannot have %" PRIu64 " bytes: %s", wish->bytes,
                         SHMT_SEGMENT_REMEDY);
    }
    return 0;
}

int shmt_segment_create(const struct shmt_segment_wish *wish, struct shmt_segment *out, struct shmt_error *e) {
    struct shmt_segment segment;
    int bound = 0;
    const int huge = wish->page_bytes == SHMT_HUGE_BYTES && begin(wish, SHMT_HUGE_BYTES, &segment, NULL) == 0 &&
                     make_huge(wish, &segment, &bound) == 0;
    if (!huge) {
        int rc = begin(wish, (uint64_t)sysconf(_SC_PAGESIZE), &segment, e);
        if (rc == 0) rc = make(wish, &segment, &bound, e);
        if (rc != 0) {
            if (segment.fd == wish->fd) segment.fd = -1;
            shmt_segment_undo(&segment);
            return rc;
        }
    }
    if (bound) shmt_placing_look(wish, &segment);
    const struct shmt_segment_header header = {.magic = SHMT_SEGMENT_MAGIC,
                                               .version = SHMT_SEGMENT_VERSION,
                                               .header_bytes = SHMT_SEGMENT_HEADER_BYTES,
                                               .bytes = segment.bytes,
                                               .fingerprint = wish->fingerprint};
    memcpy(segment.base, &header, sizeof header);
    *out = segment;
    return 0;
}
