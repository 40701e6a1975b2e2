/* Who takes part in an epoch of the shm backend, at the edges: a guest that dies when it has been let go already, and a store
 * whose words change when they should not. What becomes of sums when guests come and go is in test_seats.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/shm/replicas/replicas_priv.h"
#include "backends/shm/shm.h"
#include "ps/session.h"

enum { OWN = 2, GUEST = OWN, SEATS, EPOCHS = 4, ITEM = 4, ITEMS = 51, CHUNKS = 4 };

static const struct shmt_backend *const BACKEND = &SHMT_BACKEND_SHM;

struct play {
    struct shmt_spec spec;
    struct shmt_store *store;
    _Atomic uint32_t entered, died;
};

struct actor {
    struct play *play;
    uint32_t rank;
    int rc;
    struct shmt_error error;
};

static struct shmt_spec spec_of(struct shmt_policy policy) {
    struct shmt_spec spec = {.n_seats = SEATS,
                             .n_guests = SEATS - OWN,
                             .n_workers = OWN,
                             .n_examples = ITEM * ITEMS,
                             .epochs = EPOCHS,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = policy,
                             .batch = 8,
                             .n_chunks = CHUNKS,
                             .item = ITEM,
                             .order = {.seed = 5, .n_examples = ITEM * ITEMS, .shuffle = true},
                             .rate = {.base = 1, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 1,
                             .board_bytes = 64};
    strcpy(spec.table[0].name, "t");
    spec.table[0].rows = 100;
    spec.table[0].width = 1;
    spec.l2_rows[0] = 100;
    return spec;
}

static void nap(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)nanosleep(&pause, NULL);
}

/* ---- a death ---- */

/* The chief lets the guest in behind epoch 0. The guest, who asks to leave at once, is counted out while it is about to go on
 * to epoch 2, says that it works there, and comes no further. */
static int at_an_epochs_end(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct actor *a = arg;
    struct play *play = a->play;
    struct shmt_shm_seat *p = shmt_shm_seat_of(s->seat);
    while (a->rank == 0 && epoch == 0 && load_acquire(&play->entered) == 0) nap(); /* pairs with the release in `act` */
    if (a->rank != GUEST) return 0;
    while (shmt_shm_is_present(play->store, GUEST)) nap();
    p->engine->align(p); /* the beginning of `turn` */
    return SHMTRAIN_E_DIED;
}

static int work(shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint32_t row = s->seat->rank;
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push_rows(s, 0, &row, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void *act(void *arg) {
    struct actor *a = arg;
    struct play *play = a->play;
    shmtrain_session s;
    a->rc = a->rank == GUEST ? BACKEND->guests->reserve(play->store, GUEST, &a->error) - 1 : 0;
    if (a->rc == 0) a->rc = shmt_session_enter(&s, BACKEND, play->store, &play->spec, a->rank, 0, &a->error);
    if (a->rank == GUEST) store_release(&play->entered, 1); /* pairs with the acquire in at_an_epochs_end */
    if (a->rc < 0) return NULL;
    s.epoch_end = at_an_epochs_end;
    s.epoch_end_arg = a;
    a->rc = a->rank == GUEST ? shmt_session_admit(&s) : shmt_session_meet(&s);
    if (a->rank == GUEST) BACKEND->guests->request_leave(play->store, GUEST);
    if (a->rc == 0) a->rc = work(&s);
    if (a->rc < 0) a->error = s.error;
    shmt_session_leave(&s);                              /* frees it; a seat that is not over is not given back */
    if (a->rank == GUEST) store_release(&play->died, 1); /* pairs with the acquire in continues_without */
    return NULL;
}

static void continues_without(struct shmt_policy policy) {
    struct play play = {.spec = spec_of(policy)};
    struct actor actor[SEATS];
    pthread_t thread[SEATS];
    struct shmt_error e = {0};
    if (BACKEND->create(&play.spec, NULL, &play.store, &e) != 0) fail_msg("create: %s", e.text);
    for (uint32_t rank = 0; rank < SEATS; rank++) {
        actor[rank] = (struct actor){.play = &play, .rank = rank};
        assert_int_equal(pthread_create(&thread[rank], NULL, act, &actor[rank]), 0);
    }
    while (load_acquire(&play.died) == 0) nap();
    pthread_join(thread[GUEST], NULL);
    assert_int_equal(actor[GUEST].rc, SHMTRAIN_E_DIED);
    assert_int_not_equal(BACKEND->guests->occupied(play.store, GUEST), 0);
    assert_int_equal(BACKEND->guests->reclaim(play.store, GUEST, true), 1);
    BACKEND->store->wake(play.store);
    assert_int_equal(BACKEND->guests->occupied(play.store, GUEST), 0);
    assert_int_equal(load_acquire(&play.store->front[GUEST].working), 0); /* else the others would wait for it for ever */
    for (uint32_t rank = 0; rank < OWN; rank++) {
        pthread_join(thread[rank], NULL);
        if (actor[rank].rc < 0) fail_msg("seat %u: %s", rank, actor[rank].error.text);
    }
    BACKEND->store->destroy(play.store);
}

static void nobody_waits_for_a_guest_that_dies_when_it_was_let_go(void **state) {
    static const struct shmt_policy POLICIES[] = {
        {.write = SHMT_WRITE_AGGREGATE, .staleness = 1},
        {.write = SHMT_WRITE_AGGREGATE, .quorum = 2},
        {.write = SHMT_WRITE_RACY, .staleness = 1},
        {.write = SHMT_WRITE_RACY, .staleness = 1, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 2},
        {.write = SHMT_WRITE_RACY, .staleness = 0, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 2}};
    (void)state;
    alarm(120); /* a wait that does not end must fail, not hang */
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++) continues_without(POLICIES[i]);
}

/* ---- one look ---- */

/* A guest that was let in, alone with the store. */
static struct shmt_shm_seat *come(struct play *play, struct shmt_policy policy) {
    struct shmt_error e = {0};
    struct shmt_seat *seat;
    play->spec = spec_of(policy);
    assert_int_equal(BACKEND->create(&play->spec, NULL, &play->store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(play->store, GUEST, &e), 1);
    assert_int_equal(BACKEND->seat->enter(play->store, GUEST, 0, &seat, &e), 0);
    store_relaxed(&play->store->front[GUEST].alive, 1); /* nobody else is there: all this is ours */
    assert_int_equal(BACKEND->guests->admit(seat), 1);
    return shmt_shm_seat_of(seat);
}

static void part(struct play *play, struct shmt_shm_seat *p) {
    BACKEND->seat->leave(&p->seat);
    BACKEND->store->destroy(play->store);
}

static void who_takes_part_is_of_one_look_whatever_becomes_of_the_words(void **state) {
    const struct shmt_policy replicas = {
        .write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 1};
    const struct shmt_policy batches = {.write = SHMT_WRITE_AGGREGATE};
    struct play play = {0};
    struct shmtrain_work w;
    struct shmtrain_fate fate;
    (void)state;
    struct shmt_shm_seat *p = come(&play, replicas);
    for (uint32_t seat = 0; seat < SEATS; seat++) store_relaxed(&play.store->front[seat].alive, 0);
    p->engine->share(p);
    assert_int_equal(p->merging->n_sharers, 1); /* a divisor */
    assert_int_equal(p->merging->n_present, SEATS);
    assert_int_equal(BACKEND->seat->claim(&p->seat, &w), 1);
    assert_int_equal(BACKEND->seat->publish(&p->seat, &fate), 0);
    part(&play, p);
    p = come(&play, batches);
    struct shmt_shm_node nodes[2 * CHUNKS];
    memcpy(nodes, p->nodes, sizeof nodes);
    store_relaxed(&play.store->front[1].alive, 0);
    p->engine->share(p);
    assert_memory_equal(p->nodes, nodes, sizeof nodes); /* whose chunks are whose fits how many take part */
    assert_int_equal(p->seat.n_present, SEATS);
    part(&play, p);
}

static void who_was_counted_out_takes_no_part_in_what_it_would_divide(void **state) {
    const struct shmt_policy policies[] = {{.write = SHMT_WRITE_AGGREGATE},
                                           {.write = SHMT_WRITE_AGGREGATE, .staleness = 1},
                                           {.write = SHMT_WRITE_RACY, .replicas = SHMT_REPLICAS_WORKER, .merge_every = 1}};
    (void)state;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct play play = {0};
        struct shmt_shm_seat *p = come(&play, policies[i]);
        for (uint32_t seat = 0; seat < SEATS; seat++) store_relaxed(&play.store->front[seat].alive, 0);
        assert_int_equal(shmt_shm_begin_epoch(p), 0);
        assert_true(p->over);
        part(&play, p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_a_guest_that_dies_when_it_was_let_go),
        cmocka_unit_test(who_takes_part_is_of_one_look_whatever_becomes_of_the_words),
        cmocka_unit_test(who_was_counted_out_takes_no_part_in_what_it_would_divide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
