/* Seats for guests in the shm backend, all in threads: who comes and goes between two epochs, and what that does to the sums.
 * (tests/test_guests.c has them as processes.) */
#include "seats_help.h"

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
            examples += load_relaxed(&BACKEND->store->counters(play->store, rank)->examples);
            late += load_relaxed(&BACKEND->store->counters(play->store, rank)->dropped);
            late += load_relaxed(&BACKEND->store->counters(play->store, rank)->folded);
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
        assert_int_equal(BACKEND->guests->occupied(play->store, 3), (uint32_t)getpid());
        assert_int_equal(BACKEND->guests->reclaim(play->store, 3, true), 1);
        assert_int_equal(BACKEND->guests->occupied(play->store, 3), 0);
        end(play, out);
    }
}

static void a_seat_is_reserved_once_and_not_when_the_run_is_over(void **state) {
    struct shmt_error e = {0};
    float out[FLOATS];
    (void)state;
    struct play *play = begin(SHMT_WRITE_RACY, NOBODY, -1);
    join_all(play);
    assert_int_equal(BACKEND->guests->reserve(play->store, 2, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "has ended"));
    end(play, out);
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_store *store;
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 1, &e), 0); /* not a guest's */
    assert_int_equal(BACKEND->guests->reserve(store, SEATS, &e), 0);
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 0);
    assert_int_equal(BACKEND->guests->occupied(store, 2), (uint32_t)getpid());
    assert_int_equal(BACKEND->guests->reclaim(store, 2, true), 1); /* it had not been let in yet */
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    BACKEND->store->destroy(store);
}

static void a_seat_that_nobody_has_entered_is_given_back(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    (void)state;
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    BACKEND->guests->unreserve(store, 2);
    assert_int_equal(BACKEND->guests->occupied(store, 2), 0);
    BACKEND->guests->unreserve(store, 2); /* nobody's */
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    assert_int_equal(BACKEND->seat->enter(store, 2, 0, &seat, &e), 0);
    BACKEND->guests->unreserve(store, 2); /* not any more */
    assert_int_equal(BACKEND->guests->occupied(store, 2), (uint32_t)getpid());
    BACKEND->seat->leave(seat);
    BACKEND->store->destroy(store);
}

/* Its program has died, the seat was reclaimed and is reserved by another one, before the worker comes. */
static void who_comes_late_takes_nobodys_seat(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_WRITE_RACY);
    struct shmt_error e = {0};
    struct shmt_store *store;
    struct shmt_seat *seat;
    struct shmt_life life;
    int status = -1;
    (void)state;
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    assert_int_equal(BACKEND->guests->reclaim(store, 2, true), 1);
    const pid_t other = fork();
    assert_true(other >= 0);
    if (other == 0) _exit(BACKEND->guests->reserve(store, 2, &e) == 1 ? 0 : 1);
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    assert_int_equal(BACKEND->seat->enter(store, 2, 0, &seat, &e), 0);
    alarm(60); /* kills the test if it waits to be let in */
    assert_int_equal(BACKEND->guests->admit(seat), 0);
    alarm(0);
    BACKEND->seat->leave(seat);
    assert_int_equal(BACKEND->guests->occupied(store, 2), (uint32_t)other);
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_COMES);
    assert_int_equal(shmt_life_number(&life), other);
    BACKEND->store->destroy(store);
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
    assert_int_equal(BACKEND->create(&spec, NULL, &store, NULL), 0);
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    assert_int_equal(BACKEND->guests->reserve(store, 2, &e), 1);
    life = (struct shmt_life){0};
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_COMES);
    assert_memory_equal(&life, &mine, sizeof mine);
    const pid_t pid = fork(); /* a worker */
    if (pid == 0) _exit(BACKEND->seat->enter(store, 2, 0, &seat, &e) == 0 ? 0 : 1);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_WORKS);
    assert_int_equal(shmt_life_number(&life), pid);
    assert_int_equal(shmt_life_look(&life), SHMT_LIFE_IS_OVER);
    assert_int_equal(BACKEND->guests->occupied(store, 2), (uint32_t)getpid());
    assert_int_equal(BACKEND->guests->reclaim(store, 2, false), 1);
    assert_int_equal(BACKEND->guests->occupant(store, 2, &life), SHMT_OCCUPANT_NONE);
    assert_int_equal(load_relaxed(&store->front[2].life[0]), 0); /* or who comes next would be taken for it */
    BACKEND->store->destroy(store);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
