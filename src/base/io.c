/* Whole pieces of files: see io.h. */
#include "base/io.h"

#include <errno.h>
#include <unistd.h>

int64_t shmt_io_read(int fd, void *out, uint64_t bytes, uint64_t at) {
    uint64_t done = 0;
    while (done < bytes) {
        const ssize_t n = pread(fd, (unsigned char *)out + done, bytes - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        done += (uint64_t)n;
    }
    return (int64_t)done;
}

int shmt_io_write(int fd, const void *from, uint64_t bytes) {
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = write(fd, (const unsigned char *)from + done, bytes - done);
        if (n == 0) errno = ENOSPC; /* some devices say so */
        if (n <= 0 && errno != EINTR) return -1;
        if (n > 0) done += (uint64_t)n;
    }
    return 0;
}

int shmt_io_write_at(int fd, const void *from, uint64_t bytes, uint64_t at) {
    for (uint64_t done = 0; done < bytes;) {
        const ssize_t n = pwrite(fd, (const unsigned char *)from + done, bytes - done, (off_t)(at + done));
        if (n == 0) errno = ENOSPC; /* some devices say so */
        if (n <= 0 && errno != EINTR) return -1;
        if (n > 0) done += (uint64_t)n;
    }
    return 0;
}
