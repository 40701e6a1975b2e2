/* What the kernel says a process does. */
#ifndef SHMT_RUNTIME_STATE_H
#define SHMT_RUNTIME_STATE_H

#include <stdbool.h>
#include <sys/types.h>

/* Its state in /proc: 'R' runs, 'S' sleeps, 'D' waits for a device, 'T' was stopped by a signal, 't' by a debugger, 'Z' has
 * ended; '\0': there is no such process, or nobody says. */
char shmt_process_state(pid_t pid);

static inline bool shmt_state_is_stopped(char state) { return state == 'T' || state == 't'; }

#endif
