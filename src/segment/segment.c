/* Making, attaching and leaving segments: see segment.h. What lies inside is range.c's matter.
 *
 * Both create and attach work on a handle of their own, which undo() takes back in any state; the caller's is set on success
 * only. */
#include "segment/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "segment/budget.h"

#ifndef MFD_NOEXEC_SEAL
#    define MFD_NOEXEC_SEAL 0x0008u
#endif

#define LAYOUT_MAGIC   0x6765736e72746873u /* "shtrnseg" as bytes in memory */
#define LAYOUT_VERSION 1u
#define SEALS          (F_SEAL_SHRINK | F_SEAL_GROW)
#define MORE_SEALS     (SEALS | F_SEAL_SEAL) /* nobody adds a seal against writing either */
#define STEP_BYTES     ((uint64_t)64 << 20)
#define MIN_STEP_BYTES ((uint64_t)64 << 10)
#define REMEDY         "free some memory, raise the limit, or train on less data"

/* The start of the segment; written once, before anybody else can see it. */
struct header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t bytes;       /* of the whole segment */
    uint64_t fingerprint; /* of the layout inside */
};

_Static_assert(sizeof(struct header) == 32 && offsetof(struct header, fingerprint) == 24, "other processes read this header");
_Static_assert(sizeof(struct header) <= SHMT_SEGMENT_HEADER_BYTES, "the header has its own page");

static const struct shmt_segment DETACHED = {.base = NULL, .bytes = 0, .fd = -1};

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
    struct shmt_budget budget;
    shmt_budget_read("", &budget);
    return shmt_budget_check(&budget, bytes, what, NULL, REMEDY, e);
}

/* An empty file of memory. Systems that forbid executable ones want that said; kernels before 6.3 do not know the word. */
static int make_file(const char *name, struct shmt_segment *segment, struct shmt_error *e) {
    char full[128];
    snprintf(full, sizeof full, "shmtrain-%s", name);
    segment->fd = memfd_create(full, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (segment->fd < 0 && errno == EINVAL) segment->fd = memfd_create(full, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (segment->fd < 0) return shmt_fail_errno(e, "the system makes no memory file for shared memory (memfd_create)");
    return 0;
}

static int map(struct shmt_segment *segment, struct shmt_error *e) {
    void *base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, segment->fd, 0);
    if (base != MAP_FAILED) {
        segment->base = base;
        return 0;
    }
    const int code = errno;
    struct rlimit limit;
    char need[32], most[32];
    shmt_bytes_text(segment->bytes, need, sizeof need);
    if (code == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        shmt_bytes_text(limit.rlim_cur, most, sizeof most);
        return shmt_fail(
            e, SHMTRAIN_E_MEMORY,
            "mapping %s of shared memory is refused: this process's address space is limited to %s in all: raise it "
            "(ulimit -v)",
            need, most);
    }
    errno = code;
    return shmt_fail_errno(e, "mapping %s of shared memory is refused", need);
}

/* The system gave pages up to `placed` and no more. */
static int fail_placing(uint64_t placed, uint64_t bytes, int code, struct shmt_error *e) {
    char need[32], got[32], left[32] = "an unknown amount";
    struct shmt_budget budget;
    shmt_budget_read("", &budget);
    if (budget.available_bytes != UINT64_MAX) shmt_bytes_text(budget.available_bytes, left, sizeof left);
    shmt_bytes_text(bytes, need, sizeof need);
    shmt_bytes_text(placed, got, sizeof got);
    const int memory = code == ENOSPC || code == ENOMEM;
    return shmt_fail(e, memory ? SHMTRAIN_E_MEMORY : SHMTRAIN_E_SYSTEM,
                     "a shared memory segment needs %s but the system gave only %s of it (%s; available: %s): %s", need, got,
                     strerror(code), left, REMEDY);
}

/* Places every page. In steps, so that the budget can be looked at again before each: another program may have taken the memory
 * in the meantime, and beyond a control group's limit the kernel kills instead of returning an error. A signal undoes the step
 * in which it comes; the step is halved then, so that a profiler's timer cannot keep us here for ever. */
static int place(const struct shmt_segment *segment, struct shmt_error *e) {
    uint64_t step = STEP_BYTES;
    for (uint64_t off = 0; off < segment->bytes;) {
        const uint64_t n = shmt_min_u64(step, segment->bytes - off);
        int rc = off == 0 ? 0 : check_need(segment->bytes - off, "the rest of a shared memory segment", e);
        if (rc != 0) return rc;
        const int code = posix_fallocate(segment->fd, (off_t)off, (off_t)n);
        if (code == 0) {
            off += n;
            step = shmt_min_u64(step * 2, STEP_BYTES);
        } else if (code == EINTR) {
            step = shmt_max_u64(step / 2, MIN_STEP_BYTES);
        } else {
            return fail_placing(off, segment->bytes, code, e);
        }
    }
    return 0;
}

static int resize_and_seal(const struct shmt_segment *segment, struct shmt_error *e) {
    int rc;
    do {
        rc = ftruncate(segment->fd, (off_t)segment->bytes);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0) return shmt_fail_errno(e, "a memory file cannot be made %" PRIu64 " bytes long (ftruncate)", segment->bytes);
    if (fcntl(segment->fd, F_ADD_SEALS, MORE_SEALS) != 0) {
        return shmt_fail_errno(e, "a memory file cannot be sealed against changes of its size (F_ADD_SEALS)");
    }
    return 0;
}

static int make(const char *name, struct shmt_segment *segment, struct shmt_error *e) {
    int rc = check_file_limit(segment->bytes, e);
    if (rc == 0) rc = check_need(segment->bytes, "a shared memory segment", e);
    if (rc == 0) rc = make_file(name, segment, e);
    if (rc == 0) rc = resize_and_seal(segment, e);
    if (rc == 0) rc = map(segment, e);
    if (rc == 0) rc = place(segment, e);
    return rc;
}

/* Takes back whatever there is of a segment, half-made ones included. */
static void undo(struct shmt_segment *segment) {
    if (segment->base) munmap(segment->base, segment->bytes);
    if (segment->fd >= 0) close(segment->fd);
    *segment = DETACHED;
}

int shmt_segment_create(const char *name, uint64_t bytes, uint64_t fingerprint, struct shmt_segment *out,
                        struct shmt_error *e) {
    struct shmt_segment segment = DETACHED;
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t total;
    if (!shmt_add_u64(bytes, SHMT_SEGMENT_HEADER_BYTES, &total) || !shmt_round_up_u64(total, page_bytes, &segment.bytes) ||
        segment.bytes > INT64_MAX) {
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "a shared memory segment cannot have %" PRIu64 " bytes: %s", bytes, REMEDY);
    }
    int rc = make(name, &segment, e);
    if (rc != 0) {
        undo(&segment);
        return rc;
    }
    const struct header header = {.magic = LAYOUT_MAGIC,
                                  .version = LAYOUT_VERSION,
                                  .header_bytes = SHMT_SEGMENT_HEADER_BYTES,
                                  .bytes = segment.bytes,
                                  .fingerprint = fingerprint};
    memcpy(segment.base, &header, sizeof header);
    *out = segment;
    return 0;
}

/* Reads the header into private memory: nothing that another process changes later can pass the check and then be used. */
static int read_header(int fd, struct header *out, struct shmt_error *e) {
    ssize_t n;
    do {
        n = pread(fd, out, sizeof *out, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return shmt_fail_errno(e, "the header of a shared memory segment cannot be read from descriptor %d", fd);
    if ((size_t)n < sizeof *out) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "descriptor %d is no shared memory segment of shmtrain: it is only %zd bytes long", fd, n);
    }
    return 0;
}

/* Is it a segment of ours, whole, of this version, and laid out as expected? Looks at the copy only. */
static int check_header(int fd, const struct header *header, uint64_t fingerprint, struct shmt_error *e) {
    if (header->magic != LAYOUT_MAGIC) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "descriptor %d is no shared memory segment of shmtrain: it does not begin like one", fd);
    }
    if (header->version != LAYOUT_VERSION || header->header_bytes != SHMT_SEGMENT_HEADER_BYTES) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the shared memory segment has version %" PRIu32 " with a header of %" PRIu32
                         " bytes, not %u with %u: use the same shmtrain in all programs",
                         header->version, header->header_bytes, LAYOUT_VERSION, SHMT_SEGMENT_HEADER_BYTES);
    }
    if (header->fingerprint != fingerprint) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the shared memory segment is laid out for something else (fingerprint %016" PRIx64
                         ", expected %016" PRIx64 "): use the same shmtrain and the same configuration in all programs",
                         header->fingerprint, fingerprint);
    }
    /* Seals before size: after this check the size stays what it is. */
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS) {
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the shared memory segment could still be resized by somebody: it is not sealed");
    }
    struct stat file;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "the size of a shared memory segment cannot be read");
    if (file.st_size < SHMT_SEGMENT_HEADER_BYTES || header->bytes != (uint64_t)file.st_size) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "the shared memory segment is damaged: its header says %" PRIu64 " bytes but it is %jd bytes long",
                         header->bytes, (intmax_t)file.st_size);
    }
    return 0;
}

int shmt_segment_attach(int fd, uint64_t fingerprint, struct shmt_segment *out, struct shmt_error *e) {
    struct shmt_segment segment = DETACHED;
    struct header header;
    int rc = read_header(fd, &header, e);
    if (rc == 0) rc = check_header(fd, &header, fingerprint, e);
    if (rc != 0) return rc;
    segment.bytes = header.bytes;
    segment.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (segment.fd < 0) return shmt_fail_errno(e, "the descriptor of a shared memory segment cannot be duplicated");
    rc = map(&segment, e);
    if (rc != 0) {
        undo(&segment);
        return rc;
    }
    *out = segment;
    return 0;
}

void shmt_segment_detach(struct shmt_segment *segment) {
    if (segment->base) undo(segment);
}
