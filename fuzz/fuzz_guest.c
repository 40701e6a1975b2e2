/* Guests that work in a run whose segment somebody has damaged, before they come and while they work: as threads, so that
 * sanitizers see them. The target plays the run's chief: it lets the guest in, and gives the run up a moment later. Whatever stands
 * in the words that workers live by, the guest must end then, and have touched nothing but its mappings.
 *
 * An input: which run, how it ends, how many bytes of patches come before the guest, those, and those for while it works. */
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <shmtrain/store.h>

#include "naming/manifest.h"
#include "api/store_priv.h"
#include "backends/shm/shm.h"
#include "backends/shm/shm_priv.h"
#include "fuzz.h"
#include "runtime/team.h"
#include "stores.h"

#define ON_ITS_WAY UINT32_C(0x80000000) /* as in backends/shm/guests.c */
#define LOOKS      400                  /* for a guest, of 50 microseconds */
#define WORKS_US   1500

struct chief {
    struct shmt_store *store;
    struct fuzz_input later;
    bool dies;
    _Atomic uint32_t left; /* the guest's call has returned */
};

static void nap(uint32_t us) {
    const struct timespec pause = {.tv_nsec = 1000 * us};
    (void)nanosleep(&pause, NULL);
}

/* As shmt_shm_admit_all counts guests in, with the chief's own words. relaxed and release as there. */
static bool let_in(struct shmt_store *store) {
    bool any = false;
    for (uint32_t rank = store->spec.n_seats - store->spec.n_guests; rank < store->spec.n_seats; rank++) {
        struct shmt_shm_front *front = &store->front[rank];
        const uint32_t guest = load_acquire(&store->front[rank].guest); /* pairs with the release in shmt_shm_come */
        if (guest != (uint32_t)getpid()) continue;
        store_relaxed(&front->gate.phase, load_relaxed(&store->front[0].gate.phase));
        store_relaxed(&front->gate.clock, load_relaxed(&store->front[0].gate.clock));
        store_relaxed(&front->working, 1);
        store_release(&front->alive, 1); /* pairs with the acquire in shmt_shm_is_present */
        any = true;
    }
    return any;
}

static void *play_chief(void *arg) {
    struct chief *c = arg;
    bool in = false;
    for (int look = 0; look < LOOKS && !in && !load_acquire(&c->left); look++) { /* pairs with the release in join */
        in = let_in(c->store);
        if (!in) nap(50);
    }
    if (in) nap(WORKS_US / 3);
    fuzz_store_damage(&c->later, true);
    if (in) nap(WORKS_US);
    if (c->dies) fuzz_store_die(); /* the guest sees that within a tenth of a second */
    if (!c->dies) store_release(&c->store->control->abort, SHMT_TEAM_KILLED); /* as in the supervisor */
    SHMT_BACKEND_SHM.store->wake(c->store);
    if (!c->dies) fuzz_store_die(); /* so that nobody waits for a verdict */
    return NULL;
}

static void join(struct chief *c) {
    struct shmtrain_store *store;
    pthread_t thread;
    FUZZ_CHECK(shmtrain_store_create(&store) == 0);
    FUZZ_CHECK(shmtrain_store_set(store, "workers", "1") == 0 && shmtrain_store_set(store, "spawn", "threads") == 0);
    FUZZ_CHECK(shmtrain_store_set(store, "bind", "none") == 0);
    FUZZ_CHECK(pthread_create(&thread, NULL, play_chief, c) == 0);
    const int status = shmtrain_store_join(store, fuzz_store_name, NULL, NULL);
    if (status < 0) fuzz_check_sentence(shmtrain_store_message(store));
    FUZZ_CHECK(status <= 0);
    store_release(&c->left, 1); /* pairs with the acquire in play_chief */
    FUZZ_CHECK(pthread_join(thread, NULL) == 0);
    shmtrain_store_destroy(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct fuzz_input in = {bytes, n};
    struct shmt_manifest manifest;
    struct shmt_spec spec;
    struct chief c = {0};
    const uint8_t how = fuzz_u8(&in);
    const size_t split = fuzz_u8(&in), before = split < in.left ? split : in.left;
    struct fuzz_input first = {in.at, before};
    c.later = (struct fuzz_input){in.at + before, in.left - before};
    c.dies = (how & 0x78) == 0x78; /* slow: seldom */
    fuzz_store_put(how & 7, true, true, &first);
    if (shmt_manifest_read(fuzz_store_fd(), "copy", &manifest, &spec, NULL) < 0) return -1;
    if (shmt_shm_attach(&spec, fuzz_store_fd(), SHMT_ATTACH_NAMED, &c.store, NULL) < 0) return -1;
    join(&c);
    SHMT_BACKEND_SHM.store->destroy(c.store);
    return 0;
}
