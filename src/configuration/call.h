/* What every call of the library needs: where its sentences go, and whether it has been asked to stop. */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/log.h"

struct shmt_call {
    struct shmt_error error;
    struct shmt_log log;
    int stop_fd;     /* an eventfd, constant: shmtrain_store_stop writes to it, from anywhere */
    bool stop_asked; /* the thread that drives the call has read it: see shmt_stop_asked */
    bool plans_only; /* a plan's: nothing runs, on whatever machine */
};

/* Whether the call that goes on has been asked to stop; by the thread that drives it, which passes it on to the workers. What
 * was asked before shmt_stop_forget does not count. */
bool shmt_stop_asked(struct shmt_call *call);
void shmt_stop_forget(struct shmt_call *call);

/* The same for those who ask by a pointer to anything. */
bool shmt_call_is_stopped(void *call);

/* Refuses a call to which NULL was given for what it needs. */
int shmt_call_check_given(struct shmt_call *call, const void *given, const char *what);
