/* Processes of others: what the kernel says that one does, and how to recognise it later. A number may be given to another
 * process, a number with the time at which the process began may not. Both are those of a PID namespace: who lives in another
 * one (a container) sees other numbers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* One process, as itself says; fixed-width, so that it may stand in shared memory. */
struct shmt_life {
    uint64_t process; /* when it began, in the kernel's ticks, and its number: see process.c. 0: it does not know */
    uint64_t space;   /* of the namespaces in which these mean something */
};

/* Whether it lives. UNKNOWN: it has said nothing, lives in another namespace, or there is no /proc of
 * ours here. */
enum shmt_living { SHMT_LIFE_UNKNOWN, SHMT_LIFE_GOES_ON, SHMT_LIFE_IS_OVER };

/* Of this process. */
void shmt_life_mine(struct shmt_life *out);

enum shmt_living shmt_life_look(const struct shmt_life *life);

/* Its number, as itself has it, whether it lives or not; 0: it does not know. */
pid_t shmt_life_number(const struct shmt_life *life);

/* The process's number here; 0: UNKNOWN, as above, or it has ended. */
pid_t shmt_life_pid(const struct shmt_life *life);

/* SIGKILL, by a pidfd where there are some, so that nobody else gets it. 0, or -1 with errno: ESRCH: it has ended, or is not of
 * this namespace; EPERM: it is another user's. */
int shmt_life_kill(const struct shmt_life *life);

/* The time, in nanoseconds since 1970: later lives of a machine's processes have greater numbers, as far as its clock is right. */
uint64_t shmt_life_begins_ns(void);

/* The state of a process in /proc: 'R' runs, 'S' sleeps, 'D' waits for a device, 'T' was stopped by a signal, 't' by a debugger,
 * 'Z' has ended; '\0': there is no such process, or nobody says. */
char shmt_process_state(pid_t pid);

static inline bool shmt_state_is_stopped(char state) { return state == 'T' || state == 't'; }
