/* Observing a store with a name: see <shmtrain/store.h>. Looking at its progress is in progress.c, as for runs of one's own. */
#include "api/store_priv.h"

int shmtrain_store_observe(struct shmtrain_store *store, const char *name) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_visit_begin(store, name ? name : "", false);
}
