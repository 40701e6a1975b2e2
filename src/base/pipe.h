/* Writing to what may be a pipe whose reader has left, on a thread of an application that answers SIGPIPE as it likes: between
 * begin and end the write fails with EPIPE, and there is no signal. Used by whoever writes to files that users name, which may
 * be pipes. */
#pragma once

#include <signal.h>
#include <stdbool.h>

struct shmt_quiet_pipe {
    sigset_t before;
    bool was_pending; /* somebody else's signal, which stays */
};

/* On one thread, in pairs. Both leave errno as it is. */
void shmt_quiet_pipe_begin(struct shmt_quiet_pipe *quiet);
void shmt_quiet_pipe_end(const struct shmt_quiet_pipe *quiet);
