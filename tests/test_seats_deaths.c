/* Seats for guests in the shm backend, all in threads: guests that die, and what is missing then. */
#include "seats_help.h"

/* The chief counts it in at the same moment, or its worker comes. */
static void a_guest_that_enters_a_reclaimed_seat_has_it_reclaimed_again(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_life life;
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    assert_int_equal(BACKEND->guests->reclaim(store, 2, false), -1); /* it lives, so it has just come */
    assert_int_equal(BACKEND->guests->reclaim(store, 2, true), 1);
    store_relaxed(&store->front[2].alive, 1);
    assert_int_equal(BACKEND->guests->occupied(store, 2), SHMT_OCCUPIED_BY_NOBODY);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 0);
    assert_int_equal(BACKEND->guests->reclaim(store, 2, false), 1);
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    assert_int_equal(BACKEND->guests->reclaim(store, 2, true), 1);
    assert_int_equal(BACKEND->seat->enter(store, 2, 0, &seat, &e), 0);
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    assert_int_equal(BACKEND->guests->admit(seat), 0); /* it is sent away */
    shmt_life_mine(&life);
    store_relaxed(&store->front[2].life[0], life.process + 1); /* as if one had signed behind that, with another number */
    store_relaxed(&store->front[2].guest, (uint32_t)getpid() | 0x80000000u);
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    BACKEND->guests->unreserve(store, 2);
    BACKEND->seat->leave(seat);
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    BACKEND->store->destroy(store);
}

static void a_guest_does_not_believe_a_store_whose_own_workers_are_not_there(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_AGGREGATE);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 3, &e), 1);
    assert_int_equal(BACKEND->seat->enter(store, 3, 0, &seat, &e), 0);
    store_relaxed(&store->front[0].alive, 0); /* nobody else is there: all this is ours */
    store_relaxed(&store->front[1].alive, 0);
    store_relaxed(&store->front[3].alive, 1);
    assert_int_equal(BACKEND->guests->admit(seat), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(seat->error.text, "damaged: its run has no worker 0"));
    BACKEND->seat->leave(seat);
    BACKEND->store->destroy(store);
}

/* What the application does. */
static int reclaim_after_death(struct play *play) {
    while (load_acquire(&play->dead) == 0) nap(); /* pairs with the release in `act` */
    const int goes_on = BACKEND->guests->reclaim(play->store, (uint32_t)play->die_rank, true);
    BACKEND->store->wake(play->store);
    return goes_on;
}

static void the_living_go_on_without_a_dead_guest_and_its_piece_is_lost(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    static const struct scene SCENE[EPOCHS] = {{R(4), 0}};
    float out[FLOATS];
    (void)state;
    for (size_t i = 0; i < sizeof WRITES / sizeof *WRITES; i++) {
        struct play *play = begin(WRITES[i], SCENE, 4);
        if (reclaim_after_death(play) != 1) fail_msg("%s cannot go on", shmt_write_name(WRITES[i]));
        assert_int_equal(BACKEND->guests->occupied(play->store, 4), 0);
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
    assert_int_equal(reclaim_after_death(play), 0);
    store_release(BACKEND->store->abort_word(play->store), 5);
    BACKEND->store->wake(play->store);
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
        cmocka_unit_test(a_guest_that_enters_a_reclaimed_seat_has_it_reclaimed_again),
        cmocka_unit_test(a_guest_does_not_believe_a_store_whose_own_workers_are_not_there),
        cmocka_unit_test(the_living_go_on_without_a_dead_guest_and_its_piece_is_lost),
        cmocka_unit_test(a_gradient_of_a_dead_guest_is_missing_in_aggregate),
        cmocka_unit_test(a_dead_guests_slice_of_a_merge_is_missing),
    };
    return cmocka_run_group_tests_name("seats of the dead", tests, NULL, NULL);
}
