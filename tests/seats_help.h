/* For tests of seats for guests: a play of threads, which a chief directs, scene by scene. At the end of each epoch it starts guests
 * and waits until they have reserved their seats, or asks some to leave; so it is certain who takes part in which epoch. */
#pragma once

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/shm/shm.h"
#include "backends/shm/shm_priv.h"
#include "base/process.h"
#include "ps/session.h"

#define RATE 0.25f

enum { OWN = 2, GUESTS = 3, SEATS = OWN + GUESTS, EPOCHS = 9, EXAMPLES = 700, FLOATS = 5 };

struct play;

struct actor {
    struct play *play;
    pthread_t thread;
    uint32_t rank;
    bool started;
    _Atomic uint32_t entered; /* or it could not */
    int rc;
    struct shmt_error error;
};

struct play {
    struct shmt_spec spec;
    struct shmt_store *store;
    struct actor actor[SEATS];
    const struct scene *scene;              /* (EPOCHS) */
    _Atomic uint32_t worked[EPOCHS][SEATS]; /* examples */
    _Atomic uint32_t seen[EPOCHS][EXAMPLES];
    struct shmt_tally tally[EPOCHS];
    int die_rank;      /* leaves in the middle of its first item */
    int slow_rank;     /* ends the epoch behind which it is let go only when that has happened; 0: nobody */
    uint32_t stranger; /* the chief reserves this seat, for somebody who never comes; 0: none */
    _Atomic uint32_t dead;
    _Atomic uint32_t unaware; /* guests whose copy, at their first item, was said to have nothing of what others have done */
};

/* What the chief does at the end of an epoch: ranks as bits. */
struct scene {
    uint32_t come, go;
};

static const struct shmt_backend *const BACKEND = &SHMT_BACKEND_SHM;

static inline struct shmt_spec spec_of(enum shmt_write write) {
    struct shmt_spec spec = {.n_seats = SEATS,
                             .n_guests = GUESTS,
                             .n_workers = OWN,
                             .n_examples = EXAMPLES,
                             .epochs = EPOCHS,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {.write = write, .staleness = write == SHMT_WRITE_AGGREGATE ? 0 : SHMT_STALENESS_INF},
                             .batch = 64,
                             .n_chunks = 8,
                             .item = 10,
                             .order = {.seed = 3, .n_examples = EXAMPLES, .shuffle = true},
                             .rate = {.base = RATE, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 1,
                             .board_bytes = 64};
    strcpy(spec.table[0].name, "t");
    spec.table[0].rows = FLOATS;
    spec.table[0].width = 1;
    spec.l2_rows[0] = FLOATS;
    return spec;
}

static inline void nap(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)nanosleep(&pause, NULL);
}

/* On a busy machine a guest might find all items taken, and not die: so the others keep their first item until it has. */
static inline void let_it_die(const struct actor *a, const struct shmtrain_work *w) {
    const struct play *play = a->play;
    if (play->die_rank < 0 || a->rank >= OWN || w->epoch != 1 || shmt_policy_is_batched(&play->spec.policy)) return;
    while (load_acquire(&play->dead) == 0) nap(); /* pairs with the release in `act` */
}

/* Their replica begins with the master: delay is counted from there. relaxed: my own word, and a count */
static inline void look_at_copy(struct actor *a, const shmtrain_session *s) {
    if (a->rank < OWN || a->play->spec.policy.replicas != SHMT_REPLICAS_WORKER) return;
    if (load_relaxed(&shmt_shm_seat_of(s->seat)->slot->merged) == 0) atomic_fetch_add(&a->play->unaware, 1);
}

/* Sums whose last bits depend on the order of adding up. */
static inline int work(struct actor *a, shmtrain_session *s) {
    struct play *play = a->play;
    struct shmtrain_work w;
    uint32_t order[EXAMPLES];
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float grad[FLOATS] = {0};
        if ((int)a->rank == play->die_rank) return SHMTRAIN_E_DIED;
        look_at_copy(a, s);
        let_it_die(a, &w);
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) {
            for (int k = 0; k < FLOATS; k++) grad[k] += sinf((float)(order[i] * (uint32_t)(k + 1) + w.epoch));
            atomic_fetch_add(&play->seen[w.epoch][order[i]], 1);
        }
        atomic_fetch_add(&play->worked[w.epoch][a->rank], (uint32_t)w.n);
        if ((rc = shmtrain_push(s, 0, 0, FLOATS, grad)) < 0 || (rc = shmtrain_report(s, (double)w.n)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static inline void start(struct play *play, uint32_t rank);

static inline int direct(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct actor *a = arg;
    struct play *play = a->play;
    const struct scene *scene = &play->scene[epoch];
    while ((int)a->rank == play->slow_rank && scene->go >> a->rank & 1 && shmt_shm_is_present(play->store, a->rank)) nap();
    if (a->rank != 0) return 0;
    if (play->stranger && epoch == 0 && BACKEND->guests->reserve(play->store, play->stranger, &a->error) != 1)
        return SHMTRAIN_E_SYSTEM;
    if (BACKEND->seat->tally(s->seat, &play->tally[epoch]) < 0) return SHMTRAIN_E_MEMORY;
    for (uint32_t rank = OWN; rank < SEATS; rank++) {
        if (scene->come >> rank & 1) start(play, rank);
        while (scene->come >> rank & 1 && load_acquire(&play->actor[rank].entered) == 0) nap(); /* pairs with its release */
        if (scene->go >> rank & 1) BACKEND->guests->request_leave(play->store, rank);
    }
    return 0;
}

static inline void *act(void *arg) {
    struct actor *a = arg;
    struct play *play = a->play;
    const bool guest = a->rank >= OWN;
    shmtrain_session s;
    a->rc = guest ? BACKEND->guests->reserve(play->store, a->rank, &a->error) : 1;
    const bool comes = a->rc == 1;
    if (comes) a->rc = shmt_session_enter(&s, BACKEND, play->store, &play->spec, a->rank, 0, &a->error);
    store_release(&a->entered, 1); /* pairs with the acquire in `direct` */
    if (!comes || a->rc < 0) return NULL;
    s.epoch_end = direct;
    s.epoch_end_arg = a;
    a->rc = guest ? shmt_session_admit(&s) : shmt_session_meet(&s);
    if (a->rc == 0 && !s.over) a->rc = work(a, &s);
    if (a->rc < 0) a->error = s.error;
    shmt_session_leave(&s);
    if (a->rc == SHMTRAIN_E_DIED) store_release(&play->dead, 1); /* pairs with the acquire in `reclaim_after_death` */
    return NULL;
}

static inline void start(struct play *play, uint32_t rank) {
    struct actor *a = &play->actor[rank];
    if (a->started) pthread_join(a->thread, NULL); /* of an earlier appearance */
    *a = (struct actor){.play = play, .rank = rank, .started = true};
    assert_int_equal(pthread_create(&a->thread, NULL, act, a), 0);
}

static inline struct play *prepare(enum shmt_write write, const struct scene *scene) {
    struct play *play = calloc(1, sizeof *play);
    assert_non_null(play);
    play->spec = spec_of(write);
    play->scene = scene;
    play->die_rank = -1;
    return play;
}

static inline void set_out(struct play *play) {
    struct shmt_error e = {0};
    alarm(120);
    if (BACKEND->create(&play->spec, NULL, &play->store, &e) < 0) fail_msg("%s", e.text);
    for (uint32_t rank = 0; rank < OWN; rank++) start(play, rank);
}

static inline struct play *begin_with(const struct shmt_policy *policy, const struct scene *scene, int die_rank) {
    struct play *play = prepare(policy->write, scene);
    play->spec.policy = *policy;
    play->die_rank = die_rank;
    set_out(play);
    return play;
}

static inline struct play *begin(enum shmt_write write, const struct scene *scene, int die_rank) {
    struct play *play = prepare(write, scene);
    play->die_rank = die_rank;
    set_out(play);
    return play;
}

static inline void join_all(struct play *play) {
    for (uint32_t rank = 0; rank < SEATS; rank++) {
        struct actor *a = &play->actor[rank];
        if (!a->started) continue;
        pthread_join(a->thread, NULL);
        if (a->rc < 0 && (int)rank != play->die_rank) fail_msg("seat %u: %s", rank, a->error.text);
    }
}

static inline void end(struct play *play, float *out) {
    assert_int_equal(BACKEND->store->read(play->store, 0, 0, FLOATS, out), 0);
    BACKEND->store->destroy(play->store);
    free(play);
}

#define R(rank) (1u << (rank))

static const struct scene NOBODY[EPOCHS] = {{0, 0}};

/* From epoch 1 on: 2 | 2 and 3 | 3 and 4 (one comes for another) | 4 | 4 | all | all but 2 | all */
static const struct scene COMING_AND_GOING[EPOCHS] = {{R(2), 0}, {R(3), 0},        {R(4), R(2)}, {0, R(3)},
                                                      {0, 0},    {R(2) | R(3), 0}, {0, R(2)},    {R(2), 0}};
static const uint32_t PRESENT[EPOCHS] = {
    0, R(2), R(2) | R(3), R(3) | R(4), R(4), R(4), R(2) | R(3) | R(4), R(3) | R(4), R(2) | R(3) | R(4)};

static inline void check_seen_once(const struct play *play) {
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (int i = 0; i < EXAMPLES; i++) assert_int_equal(play->seen[epoch][i], 1);
}
