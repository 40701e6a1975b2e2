/* What a life owns: memory, and other things that are only its own, which have to go when it is ended from outside. A process that is
 * killed takes its memory with it; a fiber (room fibers) dies in a process that goes on. So worker code allocates what it keeps across
 * questions to the host (sync/host.h) here, and frees it as ever. Whoever runs several lives on one thread names the list of the one
 * that goes on, and drops the list of one that has ended.
 *
 * Where no list is named (processes, threads, the application) this is the C library's allocation. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct shmt_own_entry;

/* All zeros at first. Kept by whoever runs the life, in one place. */
struct shmt_own {
    struct shmt_own_entry *newest;
};

/* From now on, on this thread, what is allocated belongs to `own`. NULL: to nobody. */
void shmt_own_use(struct shmt_own *own);

/* n times `each` bytes, at the beginning of a line; NULL: there is not so much memory. Freed by shmt_own_free alone. */
void *shmt_own_calloc(size_t n, size_t each); /* zeros */
void *shmt_own_malloc(size_t n, size_t each);
void shmt_own_free(void *memory); /* NULL: nothing is done */

/* As shmt_own_calloc, for what `close(memory)` has to be called for before it is freed with its life. shmt_own_free does not call it. */
void *shmt_own_closed_by(size_t bytes, void (*close)(void *memory));

/* Frees all that is left, the newest first. */
void shmt_own_drop(struct shmt_own *own);
