/* Pipes whose reader has left: see pipe.h. A signal of a failed write is the thread's own, so taking it from what is pending takes
 * nobody else's. */
#include "base/pipe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static void only_pipes(sigset_t *out) {
    sigemptyset(out);
    sigaddset(out, SIGPIPE);
}

void shmt_quiet_pipe_begin(struct shmt_quiet_pipe *quiet) {
    sigset_t pipes, pending;
    only_pipes(&pipes);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    quiet->was_pending = sigismember(&pending, SIGPIPE) == 1;
    (void)pthread_sigmask(SIG_BLOCK, &pipes, &quiet->before);
}

void shmt_quiet_pipe_end(const struct shmt_quiet_pipe *quiet) {
    const struct timespec at_once = {0};
    const int saved = errno;
    sigset_t pipes;
    only_pipes(&pipes);
    if (!quiet->was_pending) (void)sigtimedwait(&pipes, NULL, &at_once);
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
    errno = saved;
}
