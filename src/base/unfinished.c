/* Files that are not complete yet: see unfinished.h. */
#include "base/unfinished.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

#define MOST_UNFINISHED 16

static struct unfinished {
    _Atomic uint64_t pid; /* of whose it is; 0: free. Released when the name is written, for handlers */
    char name[PATH_MAX];
} table[MOST_UNFINISHED];

static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER; /* handlers read without it */

void shmt_unfinished_note(const char *name) {
    if (strlen(name) >= PATH_MAX) return;
    pthread_mutex_lock(&writers);
    for (int i = 0; i < MOST_UNFINISHED; i++) {
        if (load_relaxed(&table[i].pid)) continue; /* written under the lock */
        snprintf(table[i].name, sizeof table[i].name, "%s", name);
        store_release(&table[i].pid, (uint64_t)getpid()); /* pairs with the acquire in shmt_unfinished_remove */
        break;
    }
    pthread_mutex_unlock(&writers);
}

void shmt_unfinished_forget(const char *name) {
    pthread_mutex_lock(&writers);
    for (int i = 0; i < MOST_UNFINISHED; i++)
        if (load_relaxed(&table[i].pid) == (uint64_t)getpid() && strcmp(table[i].name, name) == 0)
            store_relaxed(&table[i].pid, 0); /* who sees it late removes what is not there any more */
    pthread_mutex_unlock(&writers);
}

void shmt_unfinished_remove(void) {
    for (int i = 0; i < MOST_UNFINISHED; i++) /* acquire: pairs with the release in shmt_unfinished_note */
        if (load_acquire(&table[i].pid) == (uint64_t)getpid()) (void)unlink(table[i].name);
}
