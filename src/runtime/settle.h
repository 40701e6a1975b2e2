/* What a forked child sheds of the application: its signals, and its name. For the supervisor, its workers, and the link. */
#pragma once

#include <signal.h>
#include <stdint.h>

/* Resets what it has inherited: no handler of the application runs in it, and what people send to a whole process group is left to the
 * application. All signals are blocked before, and `masked` is what was blocked in the application; none is, behind it. */
void shmt_settle_signals(const sigset_t *masked);

/* "shmtrain-KIND", or with a number from 0 on behind it. */
void shmt_settle_name(const char *kind, int64_t number);
