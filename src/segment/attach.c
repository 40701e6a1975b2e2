/* Attaching segments that others have made, and leaving them: see segment.h.
 *
 * Whatever stands in the file is taken from a copy of the header: nothing that another process changes later can pass a check
 * and then be used. */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/io.h"
#include "base/mapped.h"
#include "segment/budget.h"
#include "segment/segment_priv.h"

#define HUGETLBFS 0x958458f6

_Static_assert(sizeof(struct shmt_segment_header) == 32 && offsetof(struct shmt_segment_header, fingerprint) == 24,
               "other processes read this header");
_Static_assert(sizeof(struct shmt_segment_header) <= SHMT_SEGMENT_HEADER_BYTES, "the header has its own page");

static int fail_map(const struct shmt_segment *segment, const char *what, struct shmt_error *e) {
    const int code = errno;
    struct rlimit limit;
    char need[32], most[32];
    shmt_bytes_text(segment->bytes, need, sizeof need);
    if (code == ENOMEM && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        shmt_bytes_text(limit.rlim_cur, most, sizeof most);
        return shmt_fail(e, SHMTRAIN_E_MEMORY,
                         "cannot map %s of %s: this process's address space is limited to %s: raise the limit (ulimit -v)",
                         need, what, most);
    }
    errno = code;
    return shmt_fail_errno(e, "cannot map %s of %s", need, what);
}

int shmt_segment_map(struct shmt_segment *segment, int protection, struct shmt_error *e) {
    void *base = mmap(NULL, segment->bytes, protection, MAP_SHARED, segment->fd, 0);
    if (base == MAP_FAILED) return fail_map(segment, "shared memory", e);
    segment->base = base;
    return 0;
}

/* What is too much for the alignment goes back at once. */
int shmt_segment_map_private(struct shmt_segment *segment, struct shmt_error *e) {
    uint64_t room;
    unsigned char *at = MAP_FAILED;
    errno = ENOMEM;
    if (shmt_add_u64(segment->bytes, SHMT_HUGE_BYTES, &room))
        at = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return fail_map(segment, "memory", e);
    const uint64_t before = -(uint64_t)(uintptr_t)at & (SHMT_HUGE_BYTES - 1);
    if (before > 0) (void)munmap(at, before);
    if (before < SHMT_HUGE_BYTES) (void)munmap(at + before + segment->bytes, SHMT_HUGE_BYTES - before);
    segment->base = at + before;
    return 0;
}

void shmt_segment_undo(struct shmt_segment *segment) {
    if (segment->base) {
        shmt_mapped_forget(segment->base);
        munmap(segment->base, segment->bytes);
    }
    if (segment->fd >= 0) close(segment->fd);
    *segment = (struct shmt_segment){.fd = -1};
}

static int read_header(int fd, struct shmt_segment_header *out, struct shmt_error *e) {
    const int64_t n = shmt_io_read(fd, out, sizeof *out, 0);
    if (n < 0) return shmt_fail_errno(e, "cannot read the header of a shared memory segment from descriptor %d", fd);
    if ((size_t)n < sizeof *out) {
        return shmt_refuse(e, "descriptor %d is not a shared memory segment of shmtrain: it is only %d bytes long", fd, (int)n);
    }
    return 0;
}

/* Is it a segment of ours, of this version, and laid out as expected? Looks at the copy only. */
static int check_header(int fd, const struct shmt_segment_header *header, uint64_t fingerprint, struct shmt_error *e) {
    if (header->magic != SHMT_SEGMENT_MAGIC) {
        return shmt_refuse(e, "descriptor %d is not a shared memory segment of shmtrain: it does not start like one", fd);
    }
    if (header->version != SHMT_SEGMENT_VERSION || header->header_bytes != SHMT_SEGMENT_HEADER_BYTES) {
        return shmt_refuse(e,
                           "the shared memory segment has version %" PRIu32 " with a header of %" PRIu32
                           " bytes, not %u with %u: use the same shmtrain in all programs",
                           header->version, header->header_bytes, SHMT_SEGMENT_VERSION, SHMT_SEGMENT_HEADER_BYTES);
    }
    if (header->fingerprint != fingerprint) {
        return shmt_refuse(e,
                           "the shared memory segment is laid out for something else (fingerprint %016" PRIx64
                           ", expected %016" PRIx64 "): use the same shmtrain and the same configuration in all programs",
                           header->fingerprint, fingerprint);
    }
    return 0;
}

/* Is it whole, and will it stay so? Seals before size: after this check the size stays what it is. */
static int check_file(int fd, const struct shmt_segment_header *header, int flags, struct shmt_error *e) {
    const int seals = flags & SHMT_ATTACH_NAMED ? SHMT_SEGMENT_SEALS : fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SHMT_SEGMENT_SEALS) != SHMT_SEGMENT_SEALS) {
        return shmt_refuse(e, "the shared memory segment is not sealed: another process could still resize it");
    }
    struct stat file;
    if (fstat(fd, &file) != 0) return shmt_fail_errno(e, "cannot read the size of a shared memory segment");
    if (file.st_size < SHMT_SEGMENT_HEADER_BYTES || header->bytes != (uint64_t)file.st_size) {
        return shmt_refuse(e,
                           "the shared memory segment is damaged: its header says %" PRIu64 " bytes but it is %jd bytes long",
                           header->bytes, (intmax_t)file.st_size);
    }
    return 0;
}

static uint64_t page_bytes_of(int fd) {
    struct statfs system;
    if (fstatfs(fd, &system) == 0 && (uint32_t)system.f_type == HUGETLBFS) return (uint64_t)system.f_bsize;
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

static int read_checked(int fd, uint64_t fingerprint, int flags, struct shmt_segment_header *out, struct shmt_error *e) {
    int rc = read_header(fd, out, e);
    if (rc == 0) rc = check_header(fd, out, fingerprint, e);
    return rc == 0 ? check_file(fd, out, flags, e) : rc;
}

int shmt_segment_check(int fd, uint64_t fingerprint, int flags, struct shmt_error *e) {
    struct shmt_segment_header header;
    return read_checked(fd, fingerprint, flags, &header, e);
}

int shmt_segment_attach(int fd, uint64_t fingerprint, int flags, struct shmt_segment *out, struct shmt_error *e) {
    struct shmt_segment_header header;
    int rc = read_checked(fd, fingerprint, flags, &header, e);
    if (rc != 0) return rc;
    struct shmt_segment segment = {.bytes = header.bytes, .page_bytes = page_bytes_of(fd)};
    segment.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (segment.fd < 0) return shmt_fail_errno(e, "cannot duplicate the descriptor of a shared memory segment");
    rc = shmt_segment_map(&segment, flags & SHMT_ATTACH_READ ? PROT_READ : PROT_READ | PROT_WRITE, e);
    if (rc != 0) {
        shmt_segment_undo(&segment);
        return rc;
    }
    if (flags & SHMT_ATTACH_NAMED) shmt_mapped_note(segment.base, segment.bytes, SHMT_NAMED_MEMORY);
    *out = segment;
    return 0;
}

void shmt_segment_detach(struct shmt_segment *segment) {
    if (segment->base) shmt_segment_undo(segment);
}
