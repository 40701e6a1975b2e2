/* Updates that come in rounds (aggregate with staleness, or with a quorum) in the shm backend: which gradients are in, that
 * none is lost or doubled, how far one may be ahead, and that every ending is an end. Whom a quorum waits for, and who is late,
 * is in test_quorum.c. */
#include "rounds_help.h"

#include "backends/plain.h"

static void no_gradient_is_lost_or_doubled_with_staleness(void **state) {
    static const uint64_t STALENESS[] = {1, 2, 7, SHMT_MAX_AGGREGATE_STALENESS};
    (void)state;
    for (size_t i = 0; i < sizeof STALENESS / sizeof *STALENESS; i++)
        for (uint32_t n_seats = 1; n_seats <= 8; n_seats = n_seats < 3 ? n_seats + 1 : n_seats + 5)
            count_all(stale(STALENESS[i]), n_seats);
}

static void no_gradient_is_lost_or_doubled_when_late_ones_are_dropped(void **state) {
    (void)state;
    count_all(quorum(1, SHMT_LATE_DROP), 2);
    count_all(quorum(2, SHMT_LATE_DROP), 3);
    count_all(quorum(1, SHMT_LATE_DROP), 8);
    count_all(quorum(6, SHMT_LATE_DROP), 8);
    count_all(quorum(7, SHMT_LATE_DROP), 8);
}

static void no_gradient_is_lost_or_doubled_when_late_ones_are_folded(void **state) {
    (void)state;
    count_all(quorum(1, SHMT_LATE_FOLD), 2);
    count_all(quorum(2, SHMT_LATE_FOLD), 3);
    count_all(quorum(1, SHMT_LATE_FOLD), 8);
    count_all(quorum(6, SHMT_LATE_FOLD), 8);
    count_all(quorum(7, SHMT_LATE_FOLD), 8);
}

static void more_workers_than_items_are_no_obstacle(void **state) {
    (void)state;
    for (size_t kind = 0; kind < N_KINDS; kind++) {
        count((struct game){.spec = spec_of(stale(2), 12, 40, 16), .kind = KINDS[kind]});
        count((struct game){.spec = spec_of(quorum(11, SHMT_LATE_DROP), 12, 40, 16), .kind = KINDS[kind]});
        count((struct game){.spec = spec_of(quorum(3, SHMT_LATE_FOLD), 12, 1, 16), .kind = KINDS[kind]});
    }
}

/* ---- staleness ---- */

/* Nobody who has work may be more than s clocks behind who begins one, and all updates up to c - s - 1 are there. */
static int keep_the_bound(struct game *game, shmtrain_session *s) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(s->seat);
    const uint32_t rank = s->seat->rank;
    struct told *told = game->told;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t clock = p->clock, bound = shmt_policy_wait_for(&game->spec.policy, clock);
        for (uint32_t i = 0; i < game->spec.n_seats; i++) {
            /* who works now has worked when I was let begin */
            const bool works = load_acquire(&game->store->front[i].working) != 0;
            const uint64_t completed = load_acquire(&told->completed[i]);
            if (works && completed < bound && w.epoch == 0) atomic_fetch_add(&told->early, 1);
            if (works && clock > completed && clock - completed > load_relaxed(&told->spread))
                store_relaxed(&told->spread, (uint32_t)(clock - completed));
        }
        for (uint32_t i = 0; i < game->store->layout.n_slices; i++)
            if (load_acquire(&game->store->slice[i].word) >> 16 < bound) atomic_fetch_add(&told->blind, 1);
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if (rank == game->slow_rank) nap_us(game->slow_us);
        store_release(&told->completed[rank], clock + 1);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void nobody_is_further_ahead_than_the_bound_says_nor_sees_less(void **state) {
    (void)state;
    for (uint64_t s = 1; s <= 4; s *= 2)
        for (size_t kind = 0; kind < N_KINDS; kind++) {
            struct game game = {.spec = spec_of(stale(s), 4, 3000, 16),
                                .kind = KINDS[kind],
                                .slow_rank = 2,
                                .slow_us = 1000,
                                .work = keep_the_bound};
            game.spec.epochs = 1;
            play_well(&game);
            assert_int_equal(game.told->early, 0);
            assert_int_equal(game.told->blind, 0);
            assert_true(game.told->spread > 0 && game.told->spread <= s); /* the slow one was waited for */
            assert_int_equal(SUM(&game, dropped), 0);
            check_rows(&game);
            end(&game);
        }
}

/* ---- traces ---- */

static void next_and_push(struct game *game, shmtrain_session *s) {
    uint32_t order[64];
    struct shmtrain_work w;
    assert_int_equal(shmtrain_next(s, &w), 1);
    assert_int_equal(shmtrain_order(s, &w, order), 0);
    assert_int_equal(push_ones(game, s, &w, order), 0);
    assert_int_equal(shmtrain_clock(s, NULL), 0);
}

/* Seat 0 is two clocks ahead when seat 1 makes two updates complete; then it applies its share of both at once. */
static void a_trace_books_each_update_under_its_own_step(void **state) {
    enum { EVENTS = 256 };
    static struct shmt_event event[EVENTS + 1];
    struct game game = {.spec = spec_of(stale(2), 2, 3000, 16)};
    struct shmt_error e = {0};
    shmtrain_session s[2];
    uint64_t lost;
    uint32_t under[3] = {0}; /* by the update's number */
    bool open;
    (void)state;
    alarm(120);
    game.spec.trace_events = EVENTS;
    begin(&game);
    for (uint32_t rank = 0; rank < 2; rank++)
        assert_int_equal(shmt_session_enter(&s[rank], BACKEND, game.store, &game.spec, rank, 0, &e), 0);
    for (int i = 0; i < 2; i++) next_and_push(&game, &s[0]);
    for (int i = 0; i < 2; i++) next_and_push(&game, &s[1]);
    next_and_push(&game, &s[0]);
    const uint32_t n = shmt_ring_read(BACKEND->store->ring(game.store, 0), EVENTS, 0, event, &lost, &open);
    for (uint32_t i = 0; i < n; i++)
        if (event[i].kind == SHMT_EVENT_UPDATE && event[i].step % 2 == 0 && event[i].step < 6) under[event[i].step / 2]++;
    assert_true(under[0] == 1 && under[1] == 1 && under[2] == 0); /* an update is of two steps */
    for (uint32_t rank = 0; rank < 2; rank++) shmt_session_leave(&s[rank]);
    end(&game);
}

/* ---- rates ---- */

/* The rate is 1 for half an epoch, then 0: half of the examples of that epoch move their rows. */
static void the_rate_follows_how_much_of_the_epoch_is_done(void **state) {
    static const struct shmt_policy POLICIES[] = {{.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
                                                  {.write = SHMT_WRITE_AGGREGATE, .quorum = 3, .late = SHMT_LATE_FOLD}};
    enum { N = 3200, ITEM = 16, SEATS = 4 };
    (void)state;
    for (size_t i = 0; i < sizeof POLICIES / sizeof *POLICIES; i++) {
        struct game game = {
            .spec = spec_of(POLICIES[i], SEATS, N, ITEM), .kind = &SHMT_TEAM_PROCESSES, .work = add_ones, .jitter_us = 50};
        float row[EPOCHS * N];
        uint32_t moved = 0;
        game.spec.rate = (struct shmt_rate){.base = 1, .kind = SHMT_RATE_STEP, .every = 0.5, .factor = 0};
        play_well(&game);
        assert_int_equal(BACKEND->store->read(game.store, 0, 0, EPOCHS * N, row), 0);
        for (uint32_t k = 0; k < EPOCHS * N; k++) {
            if (k >= N) assert_true(row[k] == 0);
            moved += row[k] != 0;
        }
        /* The items that are in hand are not done yet, and may come late: a few of each seat. */
        if (abs((int)moved - N / 2) > 4 * SEATS * ITEM) fail_msg("%u of %u rows have moved", moved, (unsigned)N);
        end(&game);
    }
}

/* ---- endings ---- */

static int stop_after_four(struct game *game, shmtrain_session *s) {
    uint32_t order[64];
    struct shmtrain_fate fate;
    struct shmtrain_work w;
    int rc, items = 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0 || (rc = push_ones(game, s, &w, order)) < 0) return rc;
        if ((rc = shmtrain_clock(s, &fate)) < 0 || (rc = note_fate(game, &w, order, &fate)) < 0) return rc;
        if (++items == 4) store_relaxed(BACKEND->store->stop_word(game->store), 1);
    }
    return rc;
}

static const struct shmt_policy SOME[] = {{.write = SHMT_WRITE_AGGREGATE, .staleness = 2},
                                          {.write = SHMT_WRITE_AGGREGATE, .quorum = 3},
                                          {.write = SHMT_WRITE_AGGREGATE, .quorum = 2, .late = SHMT_LATE_FOLD}};
enum { N_SOME = sizeof SOME / sizeof *SOME };

static void a_stop_leaves_every_gradient_applied_or_counted(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++)
        for (size_t kind = 0; kind < N_KINDS; kind++) {
            struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = KINDS[kind], .work = stop_after_four};
            play_well(&game);
            const uint64_t done = SUM(&game, examples), moved = check_rows(&game);
            assert_true(done >= 64 && done < 3000);
            assert_int_equal(moved + SUM(&game, dropped), done);
            end(&game);
        }
}

/* The last one fails in the middle of its item, while the others wait for it. */
static int fail_late(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1 && w.epoch > 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "on purpose");
        if (w.epoch > 0) nap_us(100);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_failing_worker_ends_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++)
        for (size_t kind = 0; kind < N_KINDS; kind++) {
            struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = KINDS[kind], .work = fail_late};
            struct shmt_error e = {0};
            game.spec.epochs = 1000;
            begin(&game);
            assert_int_equal(play(&game, &e), SHMTRAIN_E_DATA);
            assert_string_equal(e.text, "on purpose");
            end(&game);
        }
}

static int die(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1 && w.epoch > 0) _exit(9);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_worker_that_dies_ends_all(void **state) {
    (void)state;
    for (size_t i = 0; i < N_SOME; i++) {
        struct game game = {.spec = spec_of(SOME[i], 4, 3000, 16), .kind = &SHMT_TEAM_PROCESSES, .work = die};
        struct shmt_error e = {0};
        game.spec.epochs = 1000;
        begin(&game);
        assert_int_equal(play(&game, &e), SHMTRAIN_E_DIED);
        end(&game);
    }
}

/* ---- one seat ---- */

enum { ONE_N = 330, ONE_ROWS = 5000 };

static int follow_a_formula(struct game *game, shmtrain_session *s) {
    struct shmtrain_work w;
    uint32_t order[64], id[64 * 3];
    uint64_t start[65] = {0};
    float slope[64], dot[64];
    int rc;
    (void)game;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint32_t k = 0; k < w.n; k++) {
            start[k + 1] = 3 * (k + 1);
            for (uint32_t j = 0; j < 3; j++)
                id[3 * k + j] = j * 1600 + (uint32_t)shmt_below(shmt_hash64(order[k], j, 0, 0), j ? 1600 : 10);
        }
        const struct shmtrain_csr x = {
            .size = sizeof(struct shmtrain_csr), .n = (uint32_t)w.n, .bias = 1, .start = start, .id = id};
        if ((rc = shmtrain_dot(s, 0, &x, dot)) < 0) return rc;
        for (uint32_t k = 0; k < w.n; k++) slope[k] = dot[k] - (float)(order[k] % 3) + 1;
        if ((rc = shmtrain_push_sparse(s, 0, &x, slope)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

typedef float outcome[3][ONE_ROWS]; /* weights, and planes of state */

/* By one seat of a backend. */
static void train_alone(const struct shmt_backend *backend, struct shmt_spec spec, outcome out) {
    struct game game = {.spec = spec};
    struct shmt_error e = {0};
    shmtrain_session s;
    memset(out, 0, sizeof(outcome));
    assert_int_equal(backend->create(&spec, NULL, &game.store, &e), 0);
    for (uint32_t row = 0; row < ONE_ROWS; row++) out[0][row] = 0.01f * (float)(row % 5);
    assert_int_equal(backend->store->write(game.store, 0, 0, ONE_ROWS, out[0]), 0);
    assert_int_equal(shmt_session_enter(&s, backend, game.store, &spec, 0, 0, &e), 0);
    assert_int_equal(follow_a_formula(&game, &s), 0);
    shmt_session_leave(&s);
    assert_int_equal(backend->store->read(game.store, 0, 0, ONE_ROWS, out[0]), 0);
    for (uint32_t plane = 0; plane < shmt_rule_planes(&spec.rule, false); plane++)
        memcpy(out[1 + plane], backend->store->array(game.store, SHMT_ARRAY_STATE, 0, plane).at, sizeof out[0]);
    backend->store->destroy(game.store);
}

/* Its updates are those of batches as large as its items: the plain backend makes them one after the other. */
static void one_worker_with_staleness_makes_the_updates_of_a_plain_loop(void **state) {
    static outcome expected, got;
    (void)state;
    for (uint32_t kind = 0; kind < SHMT_N_RULES; kind++)
        for (int regularised = 0; regularised < 2 && !shmt_rule_needs_norms(kind); regularised++) {
            struct shmt_spec spec = spec_of(stale(0), 1, ONE_N, 32);
            spec.order.shuffle = false;
            spec.steps_before = 3;
            spec.table[0].rows = ONE_ROWS;
            spec.l2_rows[0] = ONE_ROWS - 1;
            spec.rule = (struct shmt_rule){.kind = kind,
                                           .l1 = regularised ? 0.002f : 0,
                                           .l2 = regularised ? 0.01f : 0,
                                           .momentum = 0.5f,
                                           .beta2 = 0.9f,
                                           .epsilon = 1e-3f,
                                           .beta = 1};
            spec.rate = (struct shmt_rate){.base = 0.1f, .kind = SHMT_RATE_CONSTANT};
            if (kind != SHMT_RULE_FTRL) spec.rate.kind = SHMT_RATE_INVERSE, spec.rate.power = 0.5f, spec.rate.every = 1;
            train_alone(&SHMT_BACKEND_PLAIN, spec, expected);
            spec.policy = stale(2);
            train_alone(&SHMT_BACKEND_SHM, spec, got);
            assert_memory_equal(got, expected, sizeof got);
            assert_true(got[0][ONE_ROWS - 1] != 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_gradient_is_lost_or_doubled_with_staleness),
        cmocka_unit_test(no_gradient_is_lost_or_doubled_when_late_ones_are_dropped),
        cmocka_unit_test(no_gradient_is_lost_or_doubled_when_late_ones_are_folded),
        cmocka_unit_test(more_workers_than_items_are_no_obstacle),
        cmocka_unit_test(nobody_is_further_ahead_than_the_bound_says_nor_sees_less),
        cmocka_unit_test(a_trace_books_each_update_under_its_own_step),
        cmocka_unit_test(the_rate_follows_how_much_of_the_epoch_is_done),
        cmocka_unit_test(a_stop_leaves_every_gradient_applied_or_counted),
        cmocka_unit_test(a_failing_worker_ends_all),
        cmocka_unit_test(a_worker_that_dies_ends_all),
        cmocka_unit_test(one_worker_with_staleness_makes_the_updates_of_a_plain_loop),
    };
    return cmocka_run_group_tests(tests, sleep_until_woken, NULL);
}
