/* Guards of files: see guard.h. */
#include "base/guard.h"

#include <fcntl.h>
#include <signal.h>

/* The system would send its owner a signal, SIGIO as a rule, which ends programs that do not expect it: so there is no owner, and
 * until that is said the signal is one that does nothing. */
bool shmt_guard_take(int fd) {
    if (fcntl(fd, F_SETSIG, SIGURG) < 0 || fcntl(fd, F_SETLEASE, F_RDLCK) < 0) return false;
    if (fcntl(fd, F_SETOWN, 0) == 0) return true;
    shmt_guard_release(fd);
    return false;
}

bool shmt_guard_holds(int fd) { return fcntl(fd, F_GETLEASE) == F_RDLCK; }

void shmt_guard_release(int fd) { (void)fcntl(fd, F_SETLEASE, F_UNLCK); }
