/* What a life owns: see own.h. A line with its entry stands in front of all memory. */
#include "base/own.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/line.h"

struct shmt_own_entry {
    void *block; /* as the C library knows it */
    void (*close)(void *memory);
    struct shmt_own *own; /* NULL: nobody's; else its neighbours there: */
    struct shmt_own_entry *older, *newer;
};

_Static_assert(sizeof(struct shmt_own_entry) <= SHMT_LINE, "an entry fits into its line");

static _Thread_local struct shmt_own *owner;

void shmt_own_use(struct shmt_own *own) { owner = own; }

static struct shmt_own_entry *entry_of(void *memory) { return (struct shmt_own_entry *)memory - 1; }

static void enter(struct shmt_own_entry *entry) {
    entry->own = owner;
    if (!owner) return;
    entry->older = owner->newest;
    entry->newer = NULL;
    if (entry->older) entry->older->newer = entry;
    owner->newest = entry;
}

static void leave(struct shmt_own_entry *entry) {
    if (!entry->own) return;
    if (entry->older) entry->older->newer = entry->newer;
    if (entry->newer)
        entry->newer->older = entry->older;
    else
        entry->own->newest = entry->older;
}

/* The end is that of the block, so that a sanitizer sees who writes beyond it. Zeros are written here: by whoever will use them, near whom
 * their pages lie then. */
static void *make(size_t n, size_t each, bool zeros, void (*close)(void *memory)) {
    void *block;
    uint64_t bytes;
    if (!shmt_mul_u64(n, each, &bytes) || bytes > PTRDIFF_MAX - SHMT_LINE) return NULL;
    if (posix_memalign(&block, SHMT_LINE, SHMT_LINE + (size_t)bytes) != 0) return NULL;
    void *memory = (char *)block + SHMT_LINE;
    *entry_of(memory) = (struct shmt_own_entry){.block = block, .close = close};
    enter(entry_of(memory));
    if (zeros) memset(memory, 0, (size_t)bytes);
    return memory;
}

void *shmt_own_calloc(size_t n, size_t each) { return make(n, each, true, NULL); }

void *shmt_own_malloc(size_t n, size_t each) { return make(n, each, false, NULL); }

void *shmt_own_closed_by(size_t bytes, void (*close)(void *memory)) { return make(1, bytes, true, close); }

void shmt_own_free(void *memory) {
    if (!memory) return;
    leave(entry_of(memory));
    free(entry_of(memory)->block);
}

void shmt_own_drop(struct shmt_own *own) {
    for (struct shmt_own_entry *last; (last = own->newest);) {
        void *block = last->block;
        if (last->close) last->close(last + 1);
        own->newest = last->older;
        if (last->older) last->older->newer = NULL;
        free(block);
    }
}
