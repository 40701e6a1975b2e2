/* What a life owns: see own.h. In front of each block stands its entry, in the line before it at the latest. */
#include "base/own.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/line.h"

struct shmt_own_entry {
    void *block; /* as the C library knows it */
    void (*close)(void *memory);
    struct shmt_own *own; /* NULL: nobody's; else its neighbours there: */
    struct shmt_own_entry *older, *newer;
};

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

/* The C library has zeros for nothing where it takes fresh pages, so they are left to it. */
static void *make(size_t n, size_t each, void *(*allocate)(size_t), void (*close)(void *memory)) {
    const size_t more = sizeof(struct shmt_own_entry) + SHMT_LINE - 1;
    uint64_t bytes;
    if (!shmt_mul_u64(n, each, &bytes) || bytes > PTRDIFF_MAX - more) return NULL;
    void *block = allocate((size_t)bytes + more);
    if (!block) return NULL;
    const uintptr_t at = ((uintptr_t)block + more) / SHMT_LINE * SHMT_LINE;
    void *memory = (char *)block + (at - (uintptr_t)block);
    *entry_of(memory) = (struct shmt_own_entry){.block = block, .close = close};
    enter(entry_of(memory));
    return memory;
}

static void *zeros(size_t bytes) { return calloc(1, bytes); }

void *shmt_own_calloc(size_t n, size_t each) { return make(n, each, zeros, NULL); }

void *shmt_own_malloc(size_t n, size_t each) { return make(n, each, malloc, NULL); }

void *shmt_own_closed_by(size_t bytes, void (*close)(void *memory)) { return make(1, bytes, zeros, close); }

void shmt_own_free(void *memory) {
    if (!memory) return;
    leave(entry_of(memory));
    free(entry_of(memory)->block);
}

void shmt_own_drop(struct shmt_own *own) {
    while (own->newest) {
        void *memory = own->newest + 1;
        if (own->newest->close) own->newest->close(memory);
        shmt_own_free(memory);
    }
}
