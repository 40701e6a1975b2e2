/* Seats for guests in the shm backend, all in threads: who comes and goes between two epochs, who dies, and what that does to
 * the sums. (tests/test_guests.c has them as processes.)
 *
 * The chief directs: at the end of each epoch it starts guests and waits until they have reserved
 * their seats, or asks some to leave; so it is certain who takes part in which epoch. */
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

static const struct shmt_backend_ops *const OPS = &SHMT_BACKEND_SHM;

static struct shmt_spec spec_of(enum shmt_write write) {
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

static void nap(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)nanosleep(&pause, NULL);
}

/* On a busy machine a guest might find all items taken, and not die: so the others keep their first item until it has. */
static void let_it_die(const struct actor *a, const struct shmtrain_work *w) {
    const struct play *play = a->play;
    if (play->die_rank < 0 || a->rank >= OWN || w->epoch != 1 || shmt_policy_is_batched(&play->spec.policy)) return;
    while (load_acquire(&play->dead) == 0) nap(); /* pairs with the release in `act` */
}

/* Their replica begins with the master: delay is counted from there. relaxed: my own word, and a count */
static void look_at_copy(struct actor *a, const shmtrain_session *s) {
    if (a->rank < OWN || a->play->spec.policy.replicas != SHMT_REPLICAS_WORKER) return;
    if (load_relaxed(&shmt_shm_seat_of(s->seat)->slot->merged) == 0) atomic_fetch_add(&a->play->unaware, 1);
}

/* Sums whose last bits depend on the order of adding up. */
static int work(struct actor *a, shmtrain_session *s) {
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

static void start(struct play *play, uint32_t rank);

static int direct(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct actor *a = arg;
    struct play *play = a->play;
    const struct scene *scene = &play->scene[epoch];
    while ((int)a->rank == play->slow_rank && scene->go >> a->rank & 1 && shmt_shm_is_present(play->store, a->rank)) nap();
    if (a->rank != 0) return 0;
    if (play->stranger && epoch == 0 && OPS->reserve(play->store, play->stranger, &a->error) != 1) return SHMTRAIN_E_SYSTEM;
    if (OPS->tally(s->seat, &play->tally[epoch]) < 0) return SHMTRAIN_E_MEMORY;
    for (uint32_t rank = OWN; rank < SEATS; rank++) {
        if (scene->come >> rank & 1) start(play, rank);
        while (scene->come >> rank & 1 && load_acquire(&play->actor[rank].entered) == 0) nap(); /* pairs with its release */
        if (scene->go >> rank & 1) OPS->part(play->store, rank);
    }
    return 0;
}

static void *act(void *arg) {
    struct actor *a = arg;
    struct play *play = a->play;
    const bool guest = a->rank >= OWN;
    shmtrain_session s;
    a->rc = guest ? OPS->reserve(play->store, a->rank, &a->error) : 1;
    const bool comes = a->rc == 1;
    if (comes) a->rc = shmt_session_enter(&s, OPS, play->store, &play->spec, a->rank, 0, &a->error);
    store_release(&a->entered, 1); /* pairs with the acquire in `direct` */
    if (!comes || a->rc < 0) return NULL;
    s.epoch_end = direct;
    s.epoch_end_arg = a;
    a->rc = guest ? shmt_session_admit(&s) : shmt_session_meet(&s);
    if (a->rc == 0 && !s.over) a->rc = work(a, &s);
    if (a->rc < 0) a->error = s.error;
    shmt_session_leave(&s);
    if (a->rc == SHMTRAIN_E_DIED) store_release(&play->dead, 1); /* pairs with the acquire in `mourned` */
    return NULL;
}

static void start(struct play *play, uint32_t rank) {
    struct actor *a = &play->actor[rank];
    if (a->started) pthread_join(a->thread, NULL); /* of an earlier appearance */
    *a = (struct actor){.play = play, .rank = rank, .started = true};
    assert_int_equal(pthread_create(&a->thread, NULL, act, a), 0);
}

static struct play *prepare(enum shmt_write write, const struct scene *scene) {
    struct play *play = calloc(1, sizeof *play);
    assert_non_null(play);
    play->spec = spec_of(write);
    play->scene = scene;
    play->die_rank = -1;
    return play;
}

static void set_out(struct play *play) {
    struct shmt_error e = {0};
    alarm(120);
    if (OPS->create(&play->spec, NULL, &play->store, &e) < 0) fail_msg("%s", e.text);
    for (uint32_t rank = 0; rank < OWN; rank++) start(play, rank);
}

static struct play *begin_with(const struct shmt_policy *policy, const struct scene *scene, int die_rank) {
    struct play *play = prepare(policy->write, scene);
    play->spec.policy = *policy;
    play->die_rank = die_rank;
    set_out(play);
    return play;
}

static struct play *begin(enum shmt_write write, const struct scene *scene, int die_rank) {
    struct play *play = prepare(write, scene);
    play->die_rank = die_rank;
    set_out(play);
    return play;
}

static void join_all(struct play *play) {
    for (uint32_t rank = 0; rank < SEATS; rank++) {
        struct actor *a = &play->actor[rank];
        if (!a->started) continue;
        pthread_join(a->thread, NULL);
        if (a->rc < 0 && (int)rank != play->die_rank) fail_msg("seat %u: %s", rank, a->error.text);
    }
}

static void end(struct play *play, float *out) {
    assert_int_equal(OPS->read(play->store, 0, 0, FLOATS, out), 0);
    OPS->destroy(play->store);
    free(play);
}

#define R(rank) (1u << (rank))

static const struct scene NOBODY[EPOCHS] = {{0, 0}};

/* From epoch 1 on: 2 | 2 and 3 | 3 and 4 (one comes for another) | 4 | 4 | all | all but 2 | all */
static const struct scene COMING_AND_GOING[EPOCHS] = {{R(2), 0}, {R(3), 0},        {R(4), R(2)}, {0, R(3)},
                                                      {0, 0},    {R(2) | R(3), 0}, {0, R(2)},    {R(2), 0}};
static const uint32_t PRESENT[EPOCHS] = {
    0, R(2), R(2) | R(3), R(3) | R(4), R(4), R(4), R(2) | R(3) | R(4), R(3) | R(4), R(2) | R(3) | R(4)};

static void check_seen_once(const struct play *play) {
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (int i = 0; i < EXAMPLES; i++) assert_int_equal(play->seen[epoch][i], 1);
}

static void sums_have_the_same_bits_whoever_comes_and_goes(void **state) {
    float alone[FLOATS], together[FLOATS];
    (void)state;
    struct play *play = begin(SHMT_WRITE_AGGREGATE, NOBODY, -1);
    join_all(play);
    check_seen_once(play);
    end(play, alone);
    play = begin(SHMT_WRITE_AGGREGATE, COMING_AND_GOING, -1);
    join_all(play);
    check_seen_once(play);
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t rank = 0; rank < SEATS; rank++)
            assert_int_equal(play->worked[epoch][rank] > 0, rank < OWN || (PRESENT[epoch] >> rank & 1));
    end(play, together);
    assert_memory_equal(alone, together, sizeof alone);
}

static void live_work_is_dealt_once_whoever_comes_and_goes(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++) {
        struct play *play = begin(WRITES[i], COMING_AND_GOING, -1);
        join_all(play);
        check_seen_once(play);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            assert_true(play->tally[epoch].examples == EXAMPLES && play->tally[epoch].lost == 0);
            for (uint32_t rank = OWN; rank < SEATS; rank++)
                if (!(PRESENT[epoch] >> rank & 1)) assert_int_equal(play->worked[epoch][rank], 0);
        }
        end(play, out);
    }
}

/* With staleness and with a quorum: clocks, rings of buffers and lists fit whoever comes and goes. */
static void rounds_are_closed_whoever_comes_and_goes(void **state) {
    static const struct shmt_policy POLICIES[] = {{.write = SHMT_WRITE_AGGREGATE, .staleness = 1},
                                                  {.write = SHMT_WRITE_AGGREGATE, .staleness = 3},
                                                  {.write = SHMT_WRITE_AGGREGATE, .quorum = 1},
                                                  {.write = SHMT_WRITE_AGGREGATE, .quorum = 2, .late = SHMT_LATE_FOLD}};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++) {
        struct play *play = prepare(SHMT_WRITE_AGGREGATE, COMING_AND_GOING);
        uint64_t examples = 0, late = 0;
        play->spec.policy = POLICIES[i];
        set_out(play);
        join_all(play);
        check_seen_once(play);
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            assert_true(play->tally[epoch].examples == EXAMPLES && play->tally[epoch].lost == 0);
            for (uint32_t rank = OWN; rank < SEATS; rank++)
                if (!(PRESENT[epoch] >> rank & 1)) assert_int_equal(play->worked[epoch][rank], 0);
        }
        for (uint32_t rank = 0; rank < SEATS; rank++) {
            examples += load_relaxed(&OPS->counters(play->store, rank)->examples);
            late += load_relaxed(&OPS->counters(play->store, rank)->dropped);
            late += load_relaxed(&OPS->counters(play->store, rank)->folded);
        }
        assert_int_equal(examples, EPOCHS * EXAMPLES);
        if (POLICIES[i].quorum == SHMT_QUORUM_ALL) assert_int_equal(late, 0);
        assert_true(late < examples);
        end(play, out);
    }
}

/* What each example has moved parameter k by, in all epochs: an update takes the mean of an item's. */
static double sum_of_updates(int k, uint32_t item) {
    double sum = 0;
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
        for (uint32_t i = 0; i < EXAMPLES; i++) sum += (double)sinf((float)(i * (uint32_t)(k + 1) + epoch));
    return -(double)RATE * sum / item;
}

/* With sums and a replica for each, nothing is lost: one that begins with anything but the master would show. */
static void replicas_of_those_who_come_begin_with_the_master(void **state) {
    static const struct shmt_policy POLICIES[] = {
        {.write = SHMT_WRITE_RACY, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 2, .merge = SHMT_MERGE_SUM},
        {SHMT_WRITE_RACY, 2, 0, SHMT_LATE_DROP, SHMT_REPLICAS_WORKER, 1, SHMT_MERGE_SUM},
        {SHMT_WRITE_ATOMIC, SHMT_STALENESS_INF, 0, SHMT_LATE_DROP, SHMT_REPLICAS_WORKER, 3, SHMT_MERGE_SUM},
        {SHMT_WRITE_LOCKED, SHMT_STALENESS_INF, 0, SHMT_LATE_DROP, SHMT_REPLICAS_NODE, 3, SHMT_MERGE_SUM}};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++) {
        struct play *play = begin_with(&POLICIES[i], COMING_AND_GOING, -1);
        join_all(play);
        check_seen_once(play);
        for (int epoch = 0; epoch < EPOCHS; epoch++) assert_true(play->tally[epoch].examples == EXAMPLES);
        assert_int_equal(load_relaxed(&play->unaware), 0);
        const uint32_t item = play->spec.item;
        end(play, out);
        for (int k = 0; k < FLOATS; k++)
            if (!(fabs((double)out[k] - sum_of_updates(k, item)) < 1e-3))
                fail_msg("case %zu: %g instead of %g", i, (double)out[k], sum_of_updates(k, item));
    }
}

static void who_asks_to_leave_before_it_is_let_in_does_not_come(void **state) {
    static const struct scene SCENE[EPOCHS] = {{R(3), R(3)}, {0, 0}, {R(3), 0}};
    float out[FLOATS];
    (void)state;
    struct play *play = begin(SHMT_WRITE_AGGREGATE, SCENE, -1);
    join_all(play);
    check_seen_once(play);
    for (int epoch = 0; epoch < EPOCHS; epoch++) assert_int_equal(play->worked[epoch][3] > 0, epoch > 2);
    end(play, out);
}

/* The guest says that it works in the next epoch after the chief has counted it out, and stays behind by a clock for ever. */
static void nobody_waits_for_the_clock_of_a_guest_that_has_left(void **state) {
    static const struct scene SCENE[EPOCHS] = {{R(3), 0}, {0, R(3)}};
    float out[FLOATS];
    (void)state;
    struct play *play = prepare(SHMT_WRITE_RACY, SCENE);
    play->spec.policy.staleness = 0;
    play->slow_rank = 3;
    set_out(play);
    join_all(play);
    check_seen_once(play);
    end(play, out);
}

static void nobody_waits_for_who_has_reserved_a_seat_and_is_not_there(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_AGGREGATE};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++) {
        struct play *play = prepare(WRITES[i], NOBODY);
        play->stranger = 3;
        set_out(play);
        join_all(play);
        check_seen_once(play);
        assert_int_equal(OPS->occupied(play->store, 3), (uint32_t)getpid());
        assert_int_equal(OPS->mourn(play->store, 3, true), 1);
        assert_int_equal(OPS->occupied(play->store, 3), 0);
        end(play, out);
    }
}

static void a_seat_is_reserved_once_and_not_when_the_run_is_over(void **state) {
    struct shmt_error e = {0};
    float out[FLOATS];
    (void)state;
    struct play *play = begin(SHMT_WRITE_RACY, NOBODY, -1);
    join_all(play);
    assert_int_equal(OPS->reserve(play->store, 2, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "has ended"));
    end(play, out);
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_store *store;
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->reserve(store, 1, &e), 0); /* not a guest's */
    assert_int_equal(OPS->reserve(store, SEATS, &e), 0);
    assert_int_equal(OPS->occupied(store, 2), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    assert_int_equal(OPS->reserve(store, 2, &e), 0);
    assert_int_equal(OPS->occupied(store, 2), (uint32_t)getpid());
    assert_int_equal(OPS->mourn(store, 2, true), 1); /* it had not been let in yet */
    assert_int_equal(OPS->occupied(store, 2), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    OPS->destroy(store);
}

static void a_seat_that_nobody_has_entered_is_given_back(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    OPS->unreserve(store, 2);
    assert_int_equal(OPS->occupied(store, 2), 0);
    OPS->unreserve(store, 2); /* nobody's */
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    assert_int_equal(OPS->enter(store, 2, 0, &seat, &e), 0);
    OPS->unreserve(store, 2); /* not any more */
    assert_int_equal(OPS->occupied(store, 2), (uint32_t)getpid());
    OPS->leave(seat);
    OPS->destroy(store);
}

/* Its program has died and been mourned, and another one has reserved the seat, before the worker comes. */
static void who_comes_late_takes_nobodys_seat(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    struct shmt_life life;
    int status = -1;
    (void)state;
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    assert_int_equal(OPS->mourn(store, 2, true), 1);
    const pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) _exit(OPS->reserve(store, 2, &e) == 1 ? 0 : 1);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    assert_int_equal(OPS->enter(store, 2, 0, &seat, &e), 0);
    alarm(60); /* kills the test if it waits to be let in */
    assert_int_equal(OPS->admit(seat), 0);
    alarm(0);
    OPS->leave(seat);
    assert_int_equal(OPS->occupied(store, 2), (uint32_t)other);
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_COMES);
    assert_int_equal(shmt_life_number(&life), other);
    OPS->destroy(store);
}

/* Its program until it has entered, then its worker, and nobody of before. */
static void a_seat_says_whose_it_is(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    struct shmt_life life, mine;
    (void)state;
    shmt_life_mine(&mine);
    assert_int_not_equal(mine.process, 0);
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    life = (struct shmt_life){0};
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_COMES);
    assert_memory_equal(&life, &mine, sizeof mine);
    const pid_t pid = fork(); /* a worker */
    if (pid == 0) _exit(OPS->enter(store, 2, 0, &seat, &e) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_WORKS);
    assert_int_equal(shmt_life_number(&life), pid);
    assert_int_equal(shmt_life_look(&life), SHMT_LIFE_IS_OVER);
    assert_int_equal(OPS->occupied(store, 2), (uint32_t)getpid());
    assert_int_equal(OPS->mourn(store, 2, false), 1);
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    assert_int_equal(load_relaxed(&store->front[2].life[0]), 0); /* or who comes next would be taken for it */
    OPS->destroy(store);
}

/* The chief counts it in at the same moment, or its worker comes. */
static void whoever_comes_when_it_was_mourned_is_mourned_again(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_life life;
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    assert_int_equal(OPS->mourn(store, 2, false), -1); /* it lives, so it has just come */
    assert_int_equal(OPS->mourn(store, 2, true), 1);
    store_relaxed(&store->front[2].alive, 1);
    assert_int_equal(OPS->occupied(store, 2), SHMT_OCCUPIED_BY_NOBODY);
    assert_int_equal(OPS->reserve(store, 2, &e), 0);
    assert_int_equal(OPS->mourn(store, 2, false), 1);
    assert_int_equal(OPS->occupied(store, 2), 0);
    assert_int_equal(OPS->reserve(store, 2, &e), 1);
    assert_int_equal(OPS->mourn(store, 2, true), 1);
    assert_int_equal(OPS->enter(store, 2, 0, &seat, &e), 0);
    assert_int_equal(OPS->occupied(store, 2), 0);
    assert_int_equal(OPS->admit(seat), 0); /* it is sent away */
    shmt_life_mine(&life);
    store_relaxed(&store->front[2].life[0], life.process + 1); /* as if one had signed behind that, with another number */
    store_relaxed(&store->front[2].guest, (uint32_t)getpid() | 0x80000000u);
    assert_int_equal(OPS->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    OPS->unreserve(store, 2);
    OPS->leave(seat);
    assert_int_equal(OPS->occupied(store, 2), 0);
    OPS->destroy(store);
}

static void a_guest_does_not_believe_a_store_whose_own_workers_are_not_there(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_AGGREGATE);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(OPS->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(OPS->reserve(store, 3, &e), 1);
    assert_int_equal(OPS->enter(store, 3, 0, &seat, &e), 0);
    store_relaxed(&store->front[0].alive, 0); /* nobody else is there: all this is ours */
    store_relaxed(&store->front[1].alive, 0);
    store_relaxed(&store->front[3].alive, 1);
    assert_int_equal(OPS->admit(seat), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(seat->error.text, "damaged: its run has no worker 0"));
    OPS->leave(seat);
    OPS->destroy(store);
}

/* What the application does. */
static int mourned(struct play *play) {
    while (load_acquire(&play->dead) == 0) nap(); /* pairs with the release in `act` */
    const int goes_on = OPS->mourn(play->store, (uint32_t)play->die_rank, true);
    OPS->rouse(play->store);
    return goes_on;
}

static void the_living_go_on_without_a_dead_guest_and_its_piece_is_lost(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    static const struct scene SCENE[EPOCHS] = {{R(4), 0}};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++) {
        struct play *play = begin(WRITES[i], SCENE, 4);
        if (mourned(play) != 1) fail_msg("%s cannot go on", shmt_write_name(WRITES[i]));
        assert_int_equal(OPS->occupied(play->store, 4), 0);
        join_all(play);
        uint64_t lost = 0;
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
            assert_true(play->tally[epoch].examples + play->tally[epoch].lost == EXAMPLES);
            lost += play->tally[epoch].lost;
        }
        assert_int_equal(lost, play->spec.item);
        end(play, out);
    }
}

/* The others wait for what it would have done, until they are told that the run is given up. */
static void check_cannot_go_on(struct play *play) {
    float out[FLOATS];
    assert_int_equal(mourned(play), 0);
    store_release(OPS->abort_word(play->store), 5);
    OPS->rouse(play->store);
    for (uint32_t rank = 0; rank < OWN; rank++) {
        pthread_join(play->actor[rank].thread, NULL);
        assert_int_equal(play->actor[rank].rc, SHMTRAIN_E_STOPPED);
    }
    pthread_join(play->actor[4].thread, NULL);
    end(play, out);
}

static void a_gradient_of_a_dead_guest_is_missing_in_aggregate(void **state) {
    static const struct scene SCENE[EPOCHS] = {{R(4), 0}};
    (void)state;
    for (uint32_t staleness = 0; staleness < 2; staleness++) {
        const struct shmt_policy policy = {.write = SHMT_WRITE_AGGREGATE, .staleness = staleness};
        check_cannot_go_on(begin_with(&policy, SCENE, 4));
    }
}

static void a_dead_guests_slice_of_a_merge_is_missing(void **state) {
    static const struct scene SCENE[EPOCHS] = {{R(4), 0}};
    static const uint64_t STALENESS[] = {0, 1, SHMT_STALENESS_INF};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct shmt_policy policy = {SHMT_WRITE_RACY, STALENESS[i], 0, SHMT_LATE_DROP, SHMT_REPLICAS_WORKER, 2,
                                           SHMT_MERGE_MEAN};
        check_cannot_go_on(begin_with(&policy, SCENE, 4));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_same_bits_whoever_comes_and_goes),
        cmocka_unit_test(live_work_is_dealt_once_whoever_comes_and_goes),
        cmocka_unit_test(replicas_of_those_who_come_begin_with_the_master),
        cmocka_unit_test(rounds_are_closed_whoever_comes_and_goes),
        cmocka_unit_test(who_asks_to_leave_before_it_is_let_in_does_not_come),
        cmocka_unit_test(nobody_waits_for_the_clock_of_a_guest_that_has_left),
        cmocka_unit_test(nobody_waits_for_who_has_reserved_a_seat_and_is_not_there),
        cmocka_unit_test(a_seat_is_reserved_once_and_not_when_the_run_is_over),
        cmocka_unit_test(a_seat_that_nobody_has_entered_is_given_back),
        cmocka_unit_test(who_comes_late_takes_nobodys_seat),
        cmocka_unit_test(a_seat_says_whose_it_is),
        cmocka_unit_test(whoever_comes_when_it_was_mourned_is_mourned_again),
        cmocka_unit_test(a_guest_does_not_believe_a_store_whose_own_workers_are_not_there),
        cmocka_unit_test(the_living_go_on_without_a_dead_guest_and_its_piece_is_lost),
        cmocka_unit_test(a_gradient_of_a_dead_guest_is_missing_in_aggregate),
        cmocka_unit_test(a_dead_guests_slice_of_a_merge_is_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
