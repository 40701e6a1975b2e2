/* A context: a stack of its own, and what a function needs of the processor to go on where it stood. One thread runs one context at a
 * time, and says itself when it goes from one to the other; nothing else switches.
 *
 * Called by scheduler.c. x86-64 and arm64 save the registers that a called function has to keep (System V ABI; AAPCS64), in some
 * nanoseconds and without a system call; other processors take ucontext. AddressSanitizer and ThreadSanitizer are told. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Private to context.c. The thread's own context has no stack here. */
struct shmt_context {
    void *at;           /* where it stands: its stack pointer, or its ucontext */
    void *stack;        /* the mapping, with a page below it that nobody may touch */
    size_t bytes;       /* of all that */
    const void *bottom; /* of the stack itself, for sanitizers; the thread's is known when it was left once */
    size_t size;        /* likewise */
    void *fake;         /* AddressSanitizer's stack of what has returned */
    void *tsan;         /* ThreadSanitizer's */
};

/* The thread's own one, from which others are entered. */
void shmt_context_of_thread(struct shmt_context *c);

/* One that will run `entry`, which never returns, on a stack of stack_bytes or a little more. Errors: _MEMORY. */
int shmt_context_make(struct shmt_context *c, size_t stack_bytes, void (*entry)(void), struct shmt_error *e);

/* Its stack anew: as it was made, whatever was going on in it. Of one that has not begun, or that nobody comes back to. */
void shmt_context_restart(struct shmt_context *c, void (*entry)(void));

/* Goes on in `to`, and returns when somebody comes back to `from`. from_ends: nobody will. */
void shmt_context_switch(struct shmt_context *from, struct shmt_context *to, int from_ends);

/* The first thing that an `entry` does; `from`: who has entered it. */
void shmt_context_entered(struct shmt_context *from);

/* Of one that has not begun, or that nobody comes back to. */
void shmt_context_free(struct shmt_context *c);
