/* What every call needs: see call.h.
 *
 * A stop is an eventfd, because a write to it is allowed everywhere: on other threads, in signal handlers and in workers. It
 * lives as long as the store, so whoever stops a run never meets memory of one that has just ended. */
#include "configuration/call.h"

#include <stdint.h>
#include <unistd.h>

bool shmt_stop_asked(struct shmt_call *call) {
    uint64_t asked;
    if (read(call->stop_fd, &asked, sizeof asked) > 0) call->stop_asked = true;
    return call->stop_asked;
}

void shmt_stop_forget(struct shmt_call *call) {
    (void)shmt_stop_asked(call);
    call->stop_asked = false;
}

bool shmt_call_is_stopped(void *call) { return shmt_stop_asked(call); }

int shmt_call_check_given(struct shmt_call *call, const void *given, const char *what) {
    return given ? 0 : shmt_refuse(&call->error, "this call needs %s, and was given NULL", what);
}
