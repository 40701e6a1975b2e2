/* Guests: seats that processes of the same user take by name while the run goes on. Called through the backend's entries by
 * whoever joins (reserve, unreserve, admit, request_leave), by the application that made the store (reclaim), and by the chief at the
 * end of an epoch (admit_all).
 *
 * A guest reserves a free seat by a compare-and-swap of its `guest` word from 0 to its process id and a mark that it is on
 * its way; the mark goes when its thread has entered. `life` says whose it is: first its program's, then its worker's
 * process; it is cleared before the seat is given up, so nobody is taken for the one before.
 *
 * Between two epochs the chief counts in those who have entered, and counts out those who asked to leave: before it reaches the
 * meeting that begins the epoch, so that whoever has passed that meeting sees the same members. A guest that was counted in has
 * already reached that meeting: its gate is written by the chief, as its owner is not let in yet. Nobody waits for one that is
 * on its way: it may still have to be forked, or find that it cannot come at all. */
#include <unistd.h>

#include "backends/shm/shm_priv.h"
#include "base/point.h"
#include "base/process.h"
#include "update/lock.h"
#include "sync/host.h"

/* What `parting` says beside 0. */
#define ASKS_TO_GO  1 /* the guest: let me go when the epoch is over */
#define COUNTED_OUT 2 /* the chief: so I have; it gives the seat back itself, or that is reclaimed */

#define ON_ITS_WAY UINT32_C(0x80000000) /* in a `guest` word, beside the process id: reserved, but nobody has entered */

static uint32_t first_guest(const struct shmt_store *store) { return store->spec.n_seats - store->spec.n_guests; }

/* relaxed: a flag that carries nothing but itself */
static bool is_over(const struct shmt_store *store) {
    return load_relaxed(&store->control->over) != 0 || load_relaxed(&store->control->abort) != 0;
}

/* Who has the seat: by its owner, or before the seat is given up. release, both: who has read one of these words and finds the
 * other, or `guest`, of somebody else at its second look (occupant), does not take them for one. */
static void sign(struct shmt_shm_front *front, const struct shmt_life *life) {
    store_release(&front->life[0], life->process);
    store_release(&front->life[1], life->space);
}

static void sign_mine(struct shmt_shm_front *front) {
    struct shmt_life mine;
    shmt_life_mine(&mine);
    sign(front, &mine);
}

/* By whoever gives a seat up: its owner, the chief, or who reclaims it. `guest`: the word as it was when that was decided; another one
 * may have done the same meanwhile, and a third have the seat by now. Then it is that one's, who at worst is not recognised by
 * its life, but by its mark alone. */
static void let_go(struct shmt_shm_front *front, uint32_t guest) {
    if (guest == 0 || load_relaxed(&front->guest) != guest) return; /* relaxed: a hint, the compare-and-swap decides */
    sign(front, &(const struct shmt_life){0});
    /* pairs with the acquire of its owner, and of whoever reserves the seat next */
    (void)lock_release(&front->guest, &guest, 0);
}

static int reserve(struct shmt_store *store, uint32_t rank, struct shmt_error *e) {
    uint32_t nobody = 0;
    if (is_over(store)) return shmt_fail(e, SHMTRAIN_E_USAGE, "the run has ended: no worker can join it any more");
    if (rank < first_guest(store) || rank >= store->spec.n_seats) return 0;
    struct shmt_shm_front *front = &store->front[rank];
    /* acquire: pairs with the release of whoever had the seat before: its words are at rest */
    const uint32_t mine = (uint32_t)getpid() | ON_ITS_WAY;
    if (load_relaxed(&front->alive) || !lock_acquire(&front->guest, &nobody, mine)) return 0;
    store_relaxed(&store->reserved_as, mine); /* for the workers that are forked, or started, next */
    store_relaxed(&front->parting, 0);        /* the chief looks at it when the guest has entered, which publishes it */
    sign_mine(front);                         /* this program may die on its way */
    return 1;
}

static void unreserve(struct shmt_store *store, uint32_t rank) {
    /* its release: `parting` is mine until then */
    let_go(&store->front[rank], (uint32_t)getpid() | ON_ITS_WAY);
}

/* My program may have died, its seat been reclaimed, and another one have reserved the seat since: then it is not mine. */
void shmt_shm_come(struct shmt_shm_seat *p) {
    uint32_t guest = load_relaxed(&p->store->reserved_as); /* my program's, from before I was started */
    p->not_mine = load_relaxed(&p->front->guest) != guest; /* relaxed: a hint, the compare-and-swap decides */
    if (p->not_mine) return;
    sign_mine(p->front); /* this worker's process: the one that has reserved the seat is its program's */
    /* release: `parting` is mine, and so are the words of the seat, now; pairs with the acquire in shmt_shm_admit_all and in
     * occupant */
    p->not_mine = !lock_release(&p->front->guest, &guest, guest & ~ON_ITS_WAY);
}

/* A nap between two looks: epochs are far apart, and joining is no hot path. */
static void nap(void) { shmt_sleep_ns(1000000); }

/* Waits to be counted in. 1; 0: the run is over, the chief has let a guest go that asked for it, or the seat is not mine. */
static int wait_for_chief(struct shmt_shm_seat *p) {
    const struct shmt_store *store = p->store;
    if (p->not_mine) return 0;
    while (!shmt_shm_is_present(store, p->seat.rank)) { /* acquire: pairs with the chief's release in count_in */
        if (load_relaxed(&store->control->abort)) return SHMTRAIN_E_STOPPED;
        p->not_mine = load_acquire(&p->front->guest) == 0; /* pairs with the release in let_go */
        if (p->not_mine || is_over(store)) return 0;
        nap();
    }
    return 1;
}

static int admit(struct shmt_seat *seat) {
    struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
    int rc = wait_for_chief(p);
    if (rc != 1) {
        p->over = true;
        return rc;
    }
    /* relaxed, all: published by `alive` */
    p->phase = load_relaxed(&p->front->gate.phase);
    p->clock = load_relaxed(&p->front->gate.clock);
    p->epoch = p->seat.first_epoch = load_relaxed(&p->store->control->epoch);
    rc = shmt_shm_wait_for_all(p, &p->slot->counters.wait_epoch_ns); /* the meeting that I have reached by being counted in */
    return rc < 0 ? rc : shmt_shm_begin_epoch(p);
}

static void request_leave(struct shmt_store *store, uint32_t rank) {
    uint32_t stays = 0;
    (void)lock_acquire(&store->front[rank].parting, &stays, ASKS_TO_GO); /* a flag: the order is of no importance */
}

void shmt_shm_give_back(struct shmt_shm_seat *p) {
    /* The chief may have counted me out before I said, in `turn`, that I work in the next epoch: nobody waits for my clock.
     * release: as when I find no more work; pairs with the acquire of the gates' member words */
    store_release(&p->front->working, 0);
    store_relaxed(&p->front->alive, 0); /* nobody reads anything of mine on the strength of it */
    shmt_gates_wake(&p->clocks);
    let_go(p->front, load_relaxed(&p->front->guest)); /* relaxed: my own process's word */
}

/* acquire: pairs with the release in let_go. Who gives a seat back is not `alive` any more before: so nobody's that is `alive` is
 * that of a dead one, whom the chief has counted in while its seat was reclaimed. */
static uint32_t occupied(struct shmt_store *store, uint32_t rank) {
    if (rank < first_guest(store) || rank >= store->spec.n_seats) return 0;
    const struct shmt_shm_front *front = &store->front[rank];
    const uint32_t pid = load_acquire(&front->guest) & ~ON_ITS_WAY; /* for display, and for a look at its lock */
    return pid ? pid : load_relaxed(&front->alive) ? SHMT_OCCUPIED_BY_NOBODY : 0;
}

static enum shmt_occupant occupant(struct shmt_store *store, uint32_t rank, struct shmt_life *out) {
    if (rank < first_guest(store) || rank >= store->spec.n_seats) return SHMT_OCCUPANT_NONE;
    const struct shmt_shm_front *front = &store->front[rank];
    const uint32_t guest = load_acquire(&front->guest); /* pairs with the release in shmt_shm_come, and with that in let_go */
    if (guest == 0) return SHMT_OCCUPANT_NONE;
    /* acquire, both: pairs with the release in `sign`. Who signs has the seat, or had it: if a word here is a later owner's, the
     * second look sees what that one had done before, and so that it is another one. */
    const struct shmt_life life = {load_acquire(&front->life[0]), load_acquire(&front->life[1])};
    if (load_relaxed(&front->guest) != guest || load_relaxed(&front->life[0]) != life.process) return SHMT_OCCUPANT_NONE;
    /* A worker whose seat was reclaimed on its way may have signed behind that, when the seat was its program's no more: then
     * somebody else has reserved it, who has not signed yet. */
    const bool comes = (guest & ON_ITS_WAY) != 0;
    if (comes && (uint32_t)shmt_life_number(&life) != (guest & ~ON_ITS_WAY)) return SHMT_OCCUPANT_NONE;
    *out = life;
    return comes ? SHMT_OCCUPANT_COMES : SHMT_OCCUPANT_WORKS;
}

/* Whether whoever has entered, by this word, has ended, as far as its life says. */
static bool is_over_with(struct shmt_store *store, uint32_t rank, uint32_t guest) {
    struct shmt_life life;
    return occupant(store, rank, &life) != SHMT_OCCUPANT_NONE && shmt_life_look(&life) == SHMT_LIFE_IS_OVER &&
           load_relaxed(&store->front[rank].guest) == guest; /* relaxed: the look before has acquired it */
}

static int reclaim(struct shmt_store *store, uint32_t rank, bool marked) {
    struct shmt_shm_front *front = &store->front[rank];
    const uint32_t mine = (uint32_t)getpid() | ON_ITS_WAY;
    uint32_t guest = load_acquire(&front->guest); /* pairs with the release in shmt_shm_come: its words are at rest */
    if (!marked && guest != 0 && !is_over_with(store, rank, guest)) return -1;
    /* Nobody's, or of one who has not entered: I reserve it, so that nobody takes it, or enters, meanwhile. */
    if (guest == 0 || guest & ON_ITS_WAY) {
        if (guest != mine && !lock_acquire(&front->guest, &guest, mine)) return -1;
        guest = mine;
    }
    if (!shmt_shm_is_live(store) || shmt_policy_merges_replicas(&store->spec.policy)) {
        if (load_relaxed(&front->alive)) return 0;
        /* One that was counted out may have said since, in `turn`, that it works in the next epoch (see shmt_shm_give_back):
         * nobody waits for its clock. release: pairs with the acquire of the gates' member words.
         * `alive` stays as it is: should the chief be counting the dead one in at this very moment, all must see the same
         * members, and the next look finds that a gradient, or a slice of a merge, will be missing. */
        store_release(&front->working, 0);
        let_go(front, guest);
        return 1;
    }
    shmt_shm_take_back(store, rank);
    if (store->spec.policy.write == SHMT_WRITE_LOCKED)
        shmt_locks_free(&(const struct shmt_locks){.word = store->locks, .mask = store->layout.lock_mask}, rank);
    /* release, both: what was taken back; pairs with the acquire of the gates' member words */
    store_release(&front->working, 0);
    store_release(&front->alive, 0);
    let_go(front, guest);
    return 1;
}

/* ---- the chief, between two epochs ---- */

static void count_in(struct shmt_shm_seat *chief, uint32_t rank) {
    struct shmt_shm_front *front = &chief->store->front[rank];
    if (chief->engine->welcome) chief->engine->welcome(chief, rank);
    SHMT_POINT("count-in:before");
    SHMT_GROWS("phase of a guest", &front->gate.phase, chief->phase + 1);
    SHMT_GROWS("clock of a guest", &front->gate.clock, chief->clock);
    /* relaxed, all: `alive` publishes them */
    store_relaxed(&front->gate.phase, chief->phase + 1);
    store_relaxed(&front->gate.clock, chief->clock);
    store_relaxed(&front->gate.asleep, 0);
    store_relaxed(&front->working, 1);
    SHMT_POINT("count-in:working");
    store_release(&front->alive, 1); /* pairs with the acquire in shmt_shm_is_present and in the gates' look at members */
    SHMT_POINT("count-in:after");
}

static void count_out(struct shmt_shm_front *front) {
    SHMT_POINT("count-out:before");
    store_relaxed(&front->parting, COUNTED_OUT); /* for my own next look */
    SHMT_POINT("count-out:parting");
    store_relaxed(&front->working, 0);
    store_release(&front->alive, 0); /* its owner sees it behind the meeting, and gives the seat back when it leaves */
    SHMT_POINT("count-out:after");
}

void shmt_shm_admit_all(struct shmt_shm_seat *chief) {
    struct shmt_store *store = chief->store;
    store_relaxed(&store->control->epoch, chief->epoch); /* published by count_in and by the meeting */
    for (uint32_t rank = first_guest(store); rank < store->spec.n_seats; rank++) {
        struct shmt_shm_front *front = &store->front[rank];
        const bool here = load_relaxed(&front->alive) != 0; /* my own word, or that of who reclaims the seat */
        if (here && load_relaxed(&front->parting) != 0) count_out(front);
        if (here) continue;
        /* acquire: pairs with the release in shmt_shm_come, and so with that of whoever had the seat before */
        const uint32_t guest = load_acquire(&front->guest);
        if (guest == 0 || guest & ON_ITS_WAY) continue;
        const uint32_t parting = load_relaxed(&front->parting);
        if (parting == 0)
            count_in(chief, rank);
        else if (parting != COUNTED_OUT) /* such a one may still be on its way out, and has not given the seat back */
            let_go(front, guest);
    }
}

const struct shmt_guest_ops SHMT_SHM_GUESTS = {
    .reserve = reserve,
    .unreserve = unreserve,
    .admit = admit,
    .request_leave = request_leave,
    .occupied = occupied,
    .occupant = occupant,
    .reclaim = reclaim,
};
