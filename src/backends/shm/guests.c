/* Guests: seats that processes of the same user take by name while the run goes on. Called through the backend's entries by
 * whoever joins (reserve, admit, part), by the application that made the store (mourn), and by the chief at the end of an
 * epoch (admit_all).
 *
 * A guest reserves a free seat by a compare-and-swap of its `guest` word from 0 to its process id, and waits. Between two epochs
 * the chief counts in those who wait and counts out those who asked to leave: before it reaches the meeting that begins the
 * epoch, so that whoever has passed that meeting sees the same members. A guest that was counted in has already reached that
 * meeting: its gate is written by the chief, as its owner is not let in yet. */
#include <time.h>
#include <unistd.h>

#include "backends/shm/shm_priv.h"
#include "store/lock.h"

static uint32_t first_guest(const struct shmt_store *store) { return store->spec.n_seats - store->spec.n_guests; }

/* relaxed: a flag that carries nothing but itself */
static bool is_over(const struct shmt_store *store) {
    return load_relaxed(&store->control->over) != 0 || load_relaxed(&store->control->abort) != 0;
}

int shmt_shm_reserve(struct shmt_store *store, uint32_t rank, struct shmt_error *e) {
    uint32_t nobody = 0;
    if (is_over(store)) return shmt_fail(e, SHMTRAIN_E_USAGE, "the run is over: nobody can join it as a worker any more");
    if (rank < first_guest(store) || rank >= store->spec.n_seats) return 0;
    struct shmt_shm_slot *slot = &store->slot[rank];
    /* acquire: pairs with the release of whoever had the seat before: its words are at rest */
    if (load_relaxed(&slot->alive) || !lock_acquire(&slot->guest, &nobody, (uint32_t)getpid())) return 0;
    store_relaxed(&slot->parting, 0); /* a flag that carries nothing but itself */
    return 1;
}

/* A nap between two looks: epochs are far apart, and joining is no hot path. */
static void nap(void) {
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)nanosleep(&pause, NULL);
}

/* Waits to be counted in. 1; 0: the run is over, or the chief has let a guest go that asked for it. */
static int wait_for_chief(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    while (!shmt_shm_is_present(store, p->seat.rank)) { /* acquire: pairs with the chief's release in count_in */
        if (load_relaxed(&store->control->abort)) return SHMTRAIN_E_STOPPED;
        p->given_back = load_acquire(&p->slot->guest) == 0; /* pairs with the release in let_go */
        if (p->given_back || is_over(store)) return 0;
        nap();
    }
    return 1;
}

int shmt_shm_admit(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    int rc = wait_for_chief(p);
    if (rc != 1) {
        p->over = true;
        return rc;
    }
    /* relaxed, all: published by `alive` */
    p->phase = load_relaxed(&p->slot->gate.phase);
    p->clock = load_relaxed(&p->slot->gate.clock);
    p->epoch = p->seat.first_epoch = load_relaxed(&p->store->control->epoch);
    rc = shmt_shm_wait_for_all(p, &p->slot->counters.wait_epoch_ns); /* the meeting that I have reached by being counted in */
    return rc < 0 ? rc : shmt_shm_begin_epoch(p);
}

void shmt_shm_part(struct shmt_store *store, uint32_t rank) {
    store_relaxed(&store->slot[rank].parting, 1); /* a flag that carries nothing but itself */
}

static void let_go(struct shmt_shm_slot *slot) {
    store_release(&slot->guest, 0); /* pairs with the acquire of its owner, and of whoever reserves the seat next */
}

void shmt_shm_give_back(struct shmt_shm_seat *p) {
    if (!p->given_back) let_go(p->slot);
}

uint32_t shmt_shm_occupied(struct shmt_store *store, uint32_t rank) {
    if (rank < first_guest(store) || rank >= store->spec.n_seats) return 0;
    const struct shmt_shm_slot *slot = &store->slot[rank];
    const uint32_t pid = load_relaxed(&slot->guest); /* for display, and for a look at its lock */
    return pid ? pid : load_relaxed(&slot->alive) ? UINT32_MAX : 0;
}

int shmt_shm_mourn(struct shmt_store *store, uint32_t rank) {
    struct shmt_shm_slot *slot = &store->slot[rank];
    if (load_relaxed(&slot->alive) && !shmt_shm_is_live(store)) return 0;
    if (store->spec.policy.write == SHMT_WRITE_LOCKED)
        shmt_locks_free(&(const struct shmt_locks){.word = store->locks, .mask = store->layout.lock_mask}, rank);
    store_relaxed(&slot->working, 0); /* relaxed, both: the dead one's pushes are as complete as they will ever be */
    store_relaxed(&slot->alive, 0);
    let_go(slot);
    return 1;
}

/* ---- the chief, between two epochs ---- */

static void count_in(struct shmt_shm_seat *chief, struct shmt_shm_slot *slot) {
    /* relaxed, all: `alive` publishes them */
    store_relaxed(&slot->gate.phase, chief->phase + 1);
    store_relaxed(&slot->gate.clock, chief->clock);
    store_relaxed(&slot->gate.asleep, 0);
    store_relaxed(&slot->working, 1);
    store_release(&slot->alive, 1); /* pairs with the acquire in shmt_shm_is_present and in the gates' look at members */
}

static void count_out(struct shmt_shm_slot *slot) {
    store_relaxed(&slot->working, 0);
    store_release(&slot->alive, 0); /* its owner sees it behind the meeting, and gives the seat back when it leaves */
}

void shmt_shm_admit_all(struct shmt_shm_seat *chief) {
    struct shmt_store *store = chief->store;
    store_relaxed(&store->control->epoch, chief->epoch); /* published by count_in and by the meeting */
    for (uint32_t rank = first_guest(store); rank < store->spec.n_seats; rank++) {
        struct shmt_shm_slot *slot = &store->slot[rank];
        const bool here = load_relaxed(&slot->alive) != 0; /* my own word, or that of who mourns */
        if (here && load_relaxed(&slot->parting))
            count_out(slot);
        else if (!here && load_relaxed(&slot->guest) != 0) { /* relaxed: it has written nothing that is read here */
            if (load_relaxed(&slot->parting))
                let_go(slot);
            else
                count_in(chief, slot);
        }
    }
}
