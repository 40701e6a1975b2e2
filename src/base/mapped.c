/* Files that are mapped: see mapped.h. */
#include "base/mapped.h"

#include <pthread.h>
#include <shmtrain/status.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/show.h"

#define MOST_MAPPED 32

static struct mapped {
    _Atomic uint64_t begin; /* 0: free. Released when the rest is written, for handlers */
    uint64_t bytes;
    char name[SHMT_NAME_SHOWN];
} table[MOST_MAPPED];

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER; /* handlers read without it */

void shmt_mapped_note(const void *base, uint64_t bytes, const char *name) {
    pthread_mutex_lock(&writers);
    for (int i = 0; i < MOST_MAPPED; i++) {
        if (load_relaxed(&table[i].begin)) continue; /* written under the lock */
        table[i].bytes = bytes;
        shmt_show_name(name, table[i].name);
        store_release(&table[i].begin, (uint64_t)(uintptr_t)base); /* pairs with the acquire in shmt_mapped_at */
        break;
    }
    pthread_mutex_unlock(&writers);
}

void shmt_mapped_forget(const void *base) {
    pthread_mutex_lock(&writers);
    for (int i = 0; i < MOST_MAPPED; i++)
        if (load_relaxed(&table[i].begin) == (uint64_t)(uintptr_t)base)
            store_relaxed(&table[i].begin, 0); /* who reads there now reads what is not mapped any more: nobody does */
    pthread_mutex_unlock(&writers);
}

const char *shmt_mapped_at(const void *address) {
    const uint64_t at = (uint64_t)(uintptr_t)address;
    for (int i = 0; i < MOST_MAPPED; i++) {
        const uint64_t begin = load_acquire(&table[i].begin); /* pairs with the release in shmt_mapped_note */
        if (begin && at >= begin && at - begin < table[i].bytes) return table[i].name;
    }
    return NULL;
}

const char *shmtrain_fault_file(const void *address) { return shmt_mapped_at(address); }
