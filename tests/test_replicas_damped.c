/* Runs whose replicas are merged damped: nothing is lost, lines are merged as often as they are hot, and each parameter by its
 * own curvature. The arithmetic is in test_merge_damped.c, other ways to merge in test_replicas.c, and what replicas hold that
 * hold a part in test_hot_rows.c. */
#include "replicas_help.h"

#include <math.h>
#include <sched.h>
#include <string.h>

enum { ROWS = 20000 };

/* Without curvature a share is 1: a damped merge is a sum then, and whatever is merged when, nothing may be lost. */
static void damped_merges_lose_nothing_of_what_has_no_curvature(void **state) {
    static const uint64_t STALENESS[] = {1, 3, INF};
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t n = 0; n < 4; n++) {
            const struct shmt_team_kind *team = (s + n) % 2 ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS;
            count_ones(WORKER(SHMT_WRITE_RACY, STALENESS[s], 1, SHMT_MERGE_DAMPED), SEATS[n], team);
            count_ones(NODE(SHMT_WRITE_ATOMIC, STALENESS[s], 1, SHMT_MERGE_DAMPED), SEATS[n], team);
            count_ones(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 2, SHMT_MERGE_DAMPED), SEATS[n], team);
        }
}

/* ---- tiers ---- */

/* Row i is the hotter the smaller i * 7919 mod the rows is. */
static float scattered(uint64_t i) { return 1 / (1 + (float)(i * 7919 % (ROWS - 1))); }

/* Each line is colder than the one before, but for the first behind those that are chosen: it belongs between the last two. */
static float late_by_one(uint64_t i) {
    const uint64_t line = i / 16;
    return line == 64 + 512 ? 10000.5f - (64 + 512 - 1) : 10000 - (float)line;
}

/* A run of so many epochs' parts that the last tier waits for 16 turns; the last row is a bias. */
static void begin_tiers(struct run *run, const struct kase *k, float (*heat_of)(uint64_t row)) {
    struct shmt_spec spec = spec_of(k, 64 * 4 * 2 * ITEM, ROWS, 1);
    spec.item = ITEM;
    spec.l2_rows[0] = ROWS - 1;
    begin(run, k, spec);
    float *const h = shmt_array_at(k->backend, run->store, SHMT_ARRAY_CURVATURE);
    for (uint64_t i = 0; i < ROWS - 1; i++) h[i] = heat_of(i);
    h[ROWS - 1] = 1e-6f;
}

static float hottest_of(const float *h) {
    float most = 0;
    for (uint32_t i = 0; i < 16; i++) most = fmaxf(most, h[i]);
    return most;
}

static void check_tiers(float (*heat_of)(uint64_t row)) {
    static uint8_t tier_of[ROWS / 16 + 64];
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, &SHMT_TEAM_THREADS);
    static const uint64_t LINES[] = {65, 512};
    struct shmt_seat *seat;
    struct shmt_error e;
    struct run run;
    float least[3] = {INFINITY, INFINITY, INFINITY}, most[3] = {0, 0, 0};
    begin_tiers(&run, &k, heat_of);
    assert_int_equal(k.backend->seat->enter(run.store, 0, 0, &seat, &e), 0);
    const struct shmt_shm_merging *m = shmt_shm_seat_of(seat)->merging;
    const uint64_t lines = run.store->layout.flat.n / 16, bias = (ROWS - 1) / 16;
    memset(tier_of, 0, sizeof tier_of);
    for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++) {
        uint64_t n = 0;
        for (uint64_t i = 0; i < m->tier[t].n; i++) {
            const struct shmt_shm_run *r = &m->tier[t].run[i];
            assert_true(r->from < r->to && r->from / SHMT_MERGE_FLOATS == (r->to - 1) / SHMT_MERGE_FLOATS);
            for (uint64_t line = r->from / 16; line < r->to / 16; line++, n++) {
                const float heat = hottest_of(run.store->curvature + line * 16);
                assert_int_equal(tier_of[line]++, 0);
                if (line == bias) assert_int_equal(t, 0);
                if (line == bias) continue;
                least[t] = fminf(least[t], heat);
                most[t] = fmaxf(most[t], heat);
            }
        }
        assert_true(t == 2 || n == LINES[t]);
    }
    for (uint64_t line = 0; line < lines; line++) assert_int_equal(tier_of[line], 1);
    assert_true(least[0] >= most[1] && least[1] >= most[2]);
    k.backend->seat->leave(seat);
    end(&run);
}

static void every_line_is_in_one_tier_and_the_hottest_in_the_first(void **state) {
    (void)state;
    check_tiers(scattered);
    check_tiers(late_by_one);
}

static void tiers_are_due_when_they_should_and_seats_at_different_turns(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, &SHMT_TEAM_THREADS);
    struct shmt_error e;
    struct run run;
    uint64_t turns[2][SHMT_SHM_TIERS][64], n[2][SHMT_SHM_TIERS] = {{0}};
    (void)state;
    begin_tiers(&run, &k, scattered);
    assert_int_equal(shmt_replicas_merge_all_every(&run.spec), 16);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct shmt_seat *seat;
        assert_int_equal(k.backend->seat->enter(run.store, rank, 0, &seat, &e), 0);
        struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
        for (p->merging->turns = 0; p->merging->turns < 64; p->merging->turns++)
            for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
                if (shmt_shm_tier_is_due(p, t)) turns[rank][t][n[rank][t]++] = p->merging->turns;
        k.backend->seat->leave(seat);
        assert_true(n[rank][0] == 64 && n[rank][1] == 16 && n[rank][2] == 4);
    }
    for (uint64_t i = 0; i < 16; i++) assert_true(turns[0][1][i] != turns[1][1][i]);
    for (uint64_t i = 0; i < 4; i++) assert_true(turns[0][2][i] != turns[1][2][i]);
    end(&run);
}

/* Seats with one replica take turns, and count its turns, not their own. */
static void check_shared_tiers(uint32_t sharers) {
    const struct kase k = case_of(NODE(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), sharers, &SHMT_TEAM_THREADS);
    struct shmt_error e;
    struct run run;
    uint64_t n[SHMT_SHM_TIERS] = {0};
    begin_tiers(&run, &k, scattered);
    const uint64_t every = shmt_replicas_merge_all_every(&run.spec);
    for (uint32_t rank = 0; rank < sharers; rank++) {
        struct shmt_seat *seat;
        assert_int_equal(k.backend->seat->enter(run.store, rank, 0, &seat, &e), 0);
        struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
        const struct shmt_shm_merging *m = p->merging;
        assert_int_equal(m->n_sharers, sharers);
        for (p->done = 1; p->done <= 64; p->done++)
            for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
                if (shmt_replicas_turn(&run.spec.policy, p->done, m->index, m->n_sharers)) n[t] += shmt_shm_tier_is_due(p, t);
        k.backend->seat->leave(seat);
    }
    assert_int_equal(n[0], 64);
    assert_int_equal(n[1], 64 / (every / 4));
    assert_int_equal(n[2], 64 / every);
    end(&run);
}

static void tiers_of_a_shared_replica_are_due_as_often(void **state) {
    (void)state;
    check_shared_tiers(2);
    check_shared_tiers(4);
}

/* Worker 0, for which it looks as if worker 1 had done one update more each time. */
static int note_whole_merges(struct run *run, shmtrain_session *s) {
    const struct shmt_shm_seat *p = shmt_shm_seat_of(s->seat);
    struct shmtrain_work w;
    uint64_t noted = 0, n_noted = 0;
    for (uint64_t mine = 1; mine <= 64; mine++) {
        if (shmtrain_next(s, &w) != 1)
            return shmt_fail(&s->error, SHMTRAIN_E_DATA, "there is no item %lu", (unsigned long)mine);
        store_relaxed(&run->store->slot[1].counters.updates, 1000 + mine);
        const int rc = shmtrain_clock(s, NULL);
        if (rc < 0) return rc;
        if (shmt_shm_tier_is_due(p, SHMT_SHM_TIERS - 1)) noted = 1000 + mine, n_noted++;
        const uint64_t merged = load_relaxed(&run->store->slot[0].merged);
        if (merged != noted)
            return shmt_fail(&s->error, SHMTRAIN_E_DATA, "turn %lu: %lu and not %lu", (unsigned long)mine,
                             (unsigned long)merged, (unsigned long)noted);
    }
    return n_noted == 4 ? 0 : shmt_fail(&s->error, SHMTRAIN_E_DATA, "%lu whole merges", (unsigned long)n_noted);
}

/* Worker 1 rests meanwhile, in its first item. */
static int note_and_add_ones(struct run *run, shmtrain_session *s) {
    _Atomic uint32_t *const looked = run->board;
    struct shmtrain_work w;
    int rc;
    if (s->seat->rank == 0) {
        rc = note_whole_merges(run, s);
        store_release(looked, 1);
    } else {
        rc = shmtrain_next(s, &w);
        while (load_acquire(looked) == 0) sched_yield(); /* pairs with the store above */
        if (rc == 1) rc = shmtrain_clock(s, NULL);
    }
    return rc < 0 ? rc : add_ones(run, s);
}

/* By that number it is told how old the parameters are that a worker sees. */
static void others_are_seen_when_the_last_tier_is_merged(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, &SHMT_TEAM_THREADS);
    struct run run;
    (void)state;
    begin_tiers(&run, &k, scattered);
    go_well(&run, note_and_add_ones);
    end(&run);
}

/* The rest waits for no more than an epoch's work, and with a finite bound for nothing. */
static void how_long_the_rest_waits_follows_from_how_much_all_do(void **state) {
    struct shmt_spec spec = {.n_seats = 2, .n_workers = 2, .item = 1024, .n_examples = 1 << 20};
    (void)state;
    spec.policy = WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED);
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 16);
    spec.n_seats = spec.n_workers = 256;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 4);
    spec.n_examples = 1 << 10;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 1);
    spec.n_examples = 1 << 30;
    spec.policy.merge_every = 3;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 48);
    spec.policy.staleness = 5;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 3);
    spec = (struct shmt_spec){.n_seats = 4, .n_workers = 4, .item = 1u << 31, .n_examples = 1, .policy = spec.policy};
    spec.policy.staleness = INF;
    spec.policy.merge_every = 1u << 31; /* as somebody else's store might say: their product is 2^64 with the seats */
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 1u << 31);
    assert_int_equal(shmt_replicas_averaged(&spec), 1); /* steps as many and as noisy as one worker's */
    assert_int_equal(shmt_replicas_summed(&spec), 1);
}

/* ---- each by its own curvature ---- */

/* Replicas may hold the first HOT rows and the page of the last, of which TAIL is the first. */
enum { HOT = 2048, TAIL = 19456, PUSHED = 6 };
static const uint32_t ROW[PUSHED] = {0, 3, HOT - 1, TAIL, TAIL + 1, ROWS - 1};

/* Which rows the loss is bent along, and very much; the others are flat. */
enum { IN_THE_TAIL, IN_THE_HOT_ROWS, IN_ODD_ROWS, WHERE };
static bool is_bent(int where, uint32_t row) {
    return where == IN_THE_TAIL ? row >= TAIL : where == IN_THE_HOT_ROWS ? row < HOT : row % 2 == 1;
}

static void begin_bent(struct run *run, const struct kase *k, uint32_t hot, int where) {
    struct shmt_spec spec = spec_of_items(k, ITEMS, ROWS);
    spec.hot_floats = hot;
    begin(run, k, spec);
    float *const h = shmt_array_at(k->backend, run->store, SHMT_ARRAY_CURVATURE); /* of what replicas hold, without the gap */
    for (uint32_t row = 0; row < ROWS; row++) {
        if (hot == 0 || row < hot)
            h[row] = is_bent(where, row) ? 1e6f : 0;
        else if (row >= TAIL)
            h[row - TAIL + hot] = is_bent(where, row) ? 1e6f : 0;
    }
}

/* Each of two adds to all rows in its first item: 2 or 6. Nothing is merged before the epoch is over. */
static int push_once(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    for (uint64_t mine = 1; (rc = shmtrain_next(s, &w)) == 1; mine++) {
        float grad[PUSHED];
        for (uint32_t i = 0; i < PUSHED; i++) grad[i] = -(2 + 4 * (float)s->seat->rank);
        if (mine == 1) keep_step(run, s, mine);
        if (mine == 1 && (rc = shmtrain_push_rows(s, 0, ROW, PUSHED, grad)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void what_is_bent_is_merged_as_a_mean_and_the_rest_as_a_sum_behind_the_gap_too(void **state) {
    static const uint32_t HOTS[] = {0, HOT};
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC};
    (void)state;
    for (int i = 0; i < 2 * 2 * WHERE; i++) {
        const struct kase k =
            case_of(WORKER(WRITES[i % 2], INF, 1000, SHMT_MERGE_DAMPED), 2, i % 2 ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS);
        struct run run;
        begin_bent(&run, &k, HOTS[i / 2 % 2], i / 4);
        run.epoch_end = check_copies;
        go_well(&run, push_once);
        for (uint32_t r = 0; r < PUSHED; r++) {
            const double expected = is_bent(i / 4, ROW[r]) ? 4 : 8;
            float got;
            assert_int_equal(k.backend->store->read(run.store, 0, ROW[r], 1, &got), 0);
            /* the share of a mean is one half to seven digits */
            if (!(fabs((double)got - expected) < 1e-5))
                fail_msg("case %d: row %u is %g, not %g", i, ROW[r], (double)got, expected);
        }
        end(&run);
    }
}

static void the_first_tier_is_of_the_bent_lines_behind_the_gap(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, &SHMT_TEAM_THREADS);
    struct shmt_seat *seat;
    struct shmt_error e;
    struct run run;
    uint64_t floats = 0;
    (void)state;
    begin_bent(&run, &k, HOT, IN_THE_TAIL);
    const uint64_t tail = ROWS - TAIL;
    assert_true(tail % 16 == 0 && tail / 16 < 64); /* whole lines, and the first tier has room for them */
    assert_int_equal(k.backend->seat->enter(run.store, 0, 0, &seat, &e), 0);
    const struct shmt_shm_tier *tier = shmt_shm_seat_of(seat)->merging->tier;
    assert_true(tier->n > 0 && tier->run[0].from == HOT && tier->run[tier->n - 1].to == HOT + tail);
    for (uint64_t i = 0; i < tier->n; i++) floats += tier->run[i].to - tier->run[i].from;
    assert_int_equal(floats, tail);
    k.backend->seat->leave(seat);
    end(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damped_merges_lose_nothing_of_what_has_no_curvature),
        cmocka_unit_test(every_line_is_in_one_tier_and_the_hottest_in_the_first),
        cmocka_unit_test(tiers_are_due_when_they_should_and_seats_at_different_turns),
        cmocka_unit_test(tiers_of_a_shared_replica_are_due_as_often),
        cmocka_unit_test(others_are_seen_when_the_last_tier_is_merged),
        cmocka_unit_test(how_long_the_rest_waits_follows_from_how_much_all_do),
        cmocka_unit_test(what_is_bent_is_merged_as_a_mean_and_the_rest_as_a_sum_behind_the_gap_too),
        cmocka_unit_test(the_first_tier_is_of_the_bent_lines_behind_the_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
