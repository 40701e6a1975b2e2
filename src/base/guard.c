/* Guards of files: see guard.h. */
#include "base/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>

/* The system would send its owner a signal, SIGIO as a rule, which ends programs that do not expect it: so there is no owner, and
 * until that is said the signal is one that does nothing. */
bool shmt_guard_take(int fd) {
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0) return false;
    if (fcntl(fd, F_SETOWN, 0) == 0) return true;
    shmt_guard_release(fd);
    return false;
}

bool shmt_guard_holds(int fd) { return fcntl(fd, F_GETLEASE) == F_RDLCK; }

bool shmt_guard_held_lately(int fd, uint64_t *asked_ns_inout) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const uint64_t now_ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (now_ns == *asked_ns_inout) return true;
    if (!shmt_guard_holds(fd)) return false;
    *asked_ns_inout = now_ns; /* from before it was asked */
    return true;
}

void shmt_guard_release(int fd) { (void)fcntl(fd, F_SETLEASE, F_UNLCK); }
