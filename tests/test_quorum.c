/* A quorum in the shm backend: how many gradients an update waits for, who is late, and what becomes of it. That nothing is
 * lost or doubled whoever is late is in test_rounds.c. */
#include "rounds_help.h"

/* So many gradients are enough, whoever has none left: each seat gets its share of the items one by one, so that in the end
 * n_items % n_seats seats have one and the others have none. */
static int take_turns(struct game *game, shmtrain_session *s) {
    const uint32_t n_seats = game->spec.n_seats, per_epoch = (uint32_t)shmt_spec_pieces(&game->spec);
    uint32_t order[64], mine = 0, epoch = 0;
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch != epoch) mine = 0;
        epoch = w.epoch;
        const uint32_t all = n_seats * ++mine;
        atomic_fetch_add(&game->told->claimed, 1);
        while (load_acquire(&game->told->claimed) < epoch * per_epoch + (all < per_epoch ? all : per_epoch)) nap_us(100);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
    }
    return rc;
}

static void sixty_of_64_are_enough_when_27_have_no_work_left(void **state) {
    static const enum shmt_late LATES[] = {SHMT_LATE_DROP, SHMT_LATE_FOLD};
    (void)state;
    for (size_t kind = 0; kind < N_KINDS; kind++)
        for (size_t late = 0; late < 2; late++) /* who is late and folded waits, and takes no third turn with the others */
            for (uint32_t items = 37; items <= (LATES[late] == SHMT_LATE_FOLD ? 64u : 128u) + 37; items += 64) {
                struct game game = {.spec = spec_of(quorum(60, LATES[late]), 64, (uint64_t)items * 8, 8),
                                    .kind = KINDS[kind],
                                    .work = take_turns};
                play_well(&game);
                check_counts(&game);
                end(&game);
            }
}

enum { SLOW = 2, LATE_BY = 5, PUSHED = 2 };

/* The slow one pushes its first gradient when some rounds have been closed without it. */
static int be_late(struct game *game, shmtrain_session *s) {
    uint32_t order[64], pieces = 0;
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t round = shmt_shm_seat_of(s->seat)->clock;
        /* the others hold their first until the slow one has one, or else there might be none left for it */
        if (s->seat->rank == SLOW && pieces == 0) store_release(&game->told->claimed, 1);
        while (w.epoch == 0 && load_acquire(&game->told->claimed) == 0) nap_us(100);
        const bool sleeps = s->seat->rank == SLOW && pieces++ == 0;
        while (sleeps && shmt_shm_rounds_closed(game->store) < round + LATE_BY) nap_us(100);
        /* and do not use up all work before its first gradient is there, however busy the machine is */
        while (w.epoch == 0 && !sleeps && load_acquire(&game->told->claimed) != PUSHED &&
               shmt_shm_rounds_closed(game->store) > LATE_BY + 2)
            nap_us(100);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if (sleeps) store_release(&game->told->claimed, PUSHED);
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
        if (sleeps) store_relaxed(&game->told->first_late, order[0] + 1);
        if (sleeps && fate.applied > 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "a late gradient got in");
        if (sleeps && fate.clock < round + LATE_BY) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "the clock did not jump");
    }
    return rc;
}

static void the_others_go_on_without_a_late_one_whose_gradients_are_dropped(void **state) {
    (void)state;
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        struct game game = {.spec = spec_of(quorum(3, SHMT_LATE_DROP), 4, 3000, 16), .kind = KINDS[kind], .work = be_late};
        play_well(&game);
        assert_true(load_relaxed(&BACKEND->store->counters(game.store, SLOW)->dropped) >= 16);
        assert_int_equal(SUM(&game, folded), 0);
        check_counts(&game);
        end(&game);
    }
}

/* Even one who is late with every gradient. */
static void late_gradients_that_are_folded_all_get_in(void **state) {
    (void)state;
    for (size_t kind = 0; kind < N_KINDS; kind++)
        for (int lends = 0; lends < 2; lends++) {
            struct game game = {
                .spec = spec_of(quorum(3, SHMT_LATE_FOLD), 4, 3000, 16), .kind = KINDS[kind], .lends = lends, .work = be_late};
            play_well(&game);
            assert_true(game.told->folded >= 16);
            assert_int_equal(game.told->dropped, 0);
            /* It came on top of what the update has waited for: three others, of whom one may have had the short last item. */
            float row;
            assert_int_equal(BACKEND->store->read(game.store, 0, load_relaxed(&game.told->first_late) - 1, 1, &row), 0);
            assert_true(1 / row > 3 * 16);
            check_counts(&game);
            end(&game);
            game.work = add_ones;
            game.slow_rank = SLOW;
            game.slow_us = 3000;
            play_well(&game);
            assert_true(load_relaxed(&BACKEND->store->counters(game.store, SLOW)->folded) >= 16);
            assert_int_equal(SUM(&game, dropped), 0);
            check_counts(&game);
            end(&game);
        }
}

/* Two threads of each worker have a seat each: a quorum of 3 of 4 workers is one of 6 of 8 seats. */
static void a_quorum_is_of_workers_not_of_their_threads(void **state) {
    (void)state;
    struct game game = {.spec = spec_of(quorum(3, SHMT_LATE_DROP), 8, 3000, 16),
                        .kind = &SHMT_TEAM_PROCESSES,
                        .work = add_ones,
                        .slow_us = 500};
    game.spec.n_workers = 4;
    play_well(&game);
    check_counts(&game);
    /* An update of fewer than 6 items is one of an epoch's last. */
    assert_true(SUM(&game, updates) <= EPOCHS * (shmt_spec_pieces(&game.spec) / 6 + 8));
    end(&game);
}

/* ---- a store that somebody has written into ---- */

/* What the round's word may say of updates that a slice has not had, while no list says what they are made of. */
static void updates_that_nobody_can_have_decided_on_are_told_as_damage(void **state) {
    static const uint64_t WORDS[] = {5 << 16 | 1, UINT64_C(1) << 40 | 2, 1 << 16};
    (void)state;
    alarm(120);
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        struct game game = {.spec = spec_of(quorum(1, SHMT_LATE_DROP), 2, 3000, 16)};
        struct shmt_error e = {0};
        struct shmtrain_work w;
        shmtrain_session s;
        begin(&game);
        assert_int_equal(shmt_session_enter(&s, BACKEND, game.store, &game.spec, 0, 0, &e), 0);
        store_relaxed(&game.store->control->round, WORDS[i]);
        assert_int_equal(shmtrain_next(&s, &w), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(shmtrain_session_message(&s), "the store is damaged"));
        shmt_session_leave(&s);
        end(&game);
    }
}

static void an_abort_ends_a_walk_over_updates_that_have_no_end(void **state) {
    struct game game = {.spec = spec_of(stale(2), 2, 3000, 16)};
    struct shmt_error e = {0};
    shmtrain_session s;
    (void)state;
    alarm(120);
    begin(&game);
    assert_int_equal(shmt_session_enter(&s, BACKEND, game.store, &game.spec, 0, 0, &e), 0);
    for (uint32_t i = 0; i < game.store->layout.n_slices; i++) /* seat 1 is at all of them, and does not go on */
        store_relaxed(&game.store->slice[i].word, 2);
    store_relaxed(BACKEND->store->abort_word(game.store), 1);
    assert_int_equal(shmt_shm_apply_share(shmt_shm_seat_of(s.seat), UINT64_C(1) << 47), SHMTRAIN_E_STOPPED);
    shmt_session_leave(&s);
    end(&game);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sixty_of_64_are_enough_when_27_have_no_work_left),
        cmocka_unit_test(the_others_go_on_without_a_late_one_whose_gradients_are_dropped),
        cmocka_unit_test(late_gradients_that_are_folded_all_get_in),
        cmocka_unit_test(a_quorum_is_of_workers_not_of_their_threads),
        cmocka_unit_test(updates_that_nobody_can_have_decided_on_are_told_as_damage),
        cmocka_unit_test(an_abort_ends_a_walk_over_updates_that_have_no_end),
    };
    return cmocka_run_group_tests(tests, sleep_until_woken, NULL);
}
