/* Runs with replicas in the shm backend: nothing is lost where nobody shares, all copies are one at an epoch's end, bounds
 * hold, and what all replicas do alike comes to what one worker does. Damped merging is in test_replicas_damped.c, what every
 * mode must do in test_conformance.c, the arithmetic in test_merge.c, guests in test_seats.c. */
#include "replicas_help.h"

#include <math.h>
#include <string.h>
#include <time.h>

enum { ROWS = 1500 }; /* more than a block of the master */

static struct shmt_spec spec_for(const struct kase *k, uint64_t items) { return spec_of_items(k, items, ROWS); }

/* ---- whose replica ---- */

static void check_of_all(const struct shmt_spec *spec) {
    uint32_t of_seat[12];
    shmt_replicas_of_all(spec, of_seat);
    for (uint32_t seat = 0; seat < 12; seat++) assert_int_equal(of_seat[seat], shmt_replicas_of(spec, seat));
}

static void threads_of_a_worker_share_its_replica_and_seats_of_a_node(void **state) {
    struct shmt_spec spec = {.n_seats = 12, .n_guests = 3, .n_workers = 3, .policy = WORKER(SHMT_WRITE_RACY, 0, 4, 0)};
    (void)state;
    assert_int_equal(shmt_replicas_count(&spec), 4); /* three workers of three threads, and a guest */
    for (uint32_t seat = 0; seat < 12; seat++) assert_int_equal(shmt_replicas_of(&spec, seat), seat / 3);
    check_of_all(&spec);
    assert_int_equal(shmt_replicas_averaged(&spec), 3);
    spec.policy.replicas = SHMT_REPLICAS_NODE;
    assert_int_equal(shmt_replicas_count(&spec), 1);
    assert_int_equal(shmt_replicas_of(&spec, 11), 0);
    spec.placement.n_nodes = 4; /* of which the second has no seats */
    for (uint32_t seat = 0; seat < 12; seat++) spec.placement.seat_node[seat] = seat < 5 ? 3 : seat < 9 ? 0 : 2;
    assert_int_equal(shmt_replicas_count(&spec), 3);
    for (uint32_t seat = 0; seat < 12; seat++) assert_int_equal(shmt_replicas_of(&spec, seat), seat < 5 ? 2 : seat < 9 ? 0 : 1);
    check_of_all(&spec);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(shmt_replicas_node(&spec, i), i == 0 ? 0 : i == 1 ? 2 : 3);
    spec.policy.replicas = SHMT_REPLICAS_ONE;
    assert_int_equal(shmt_replicas_count(&spec), 0);
    assert_int_equal(shmt_replicas_of(&spec, 11), 0);
}

static void those_who_share_a_replica_take_turns_to_merge_it(void **state) {
    const struct shmt_policy policy = WORKER(SHMT_WRITE_RACY, INF, 5, SHMT_MERGE_SUM);
    (void)state;
    for (uint32_t n = 1; n < 5; n++)
        for (uint64_t clocks = 0; clocks < 100; clocks++) {
            uint32_t due = 0;
            for (uint32_t index = 0; index < n; index++) due += shmt_replicas_turn(&policy, clocks, index, n);
            assert_int_equal(due, clocks > 0 && clocks % 5 == 0); /* one of them, when all are as far */
        }
}

static void the_need_counts_all_copies(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 4, SHMT_MERGE_MEAN), 4, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_need need, one;
    struct shmt_shm_layout l;
    (void)state;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .epsilon = 1};
    assert_int_equal(k.backend->plan(&spec, &need, NULL), 0);
    spec.policy.replicas = SHMT_REPLICAS_ONE;
    assert_int_equal(k.backend->plan(&spec, &one, NULL), 0);
    assert_true(need.parameter_bytes == 5 * one.parameter_bytes && need.state_bytes == 5 * one.state_bytes);
    spec.policy = WORKER(SHMT_WRITE_LOCKED, INF, 4, SHMT_MERGE_SUM); /* each has a base, too */
    assert_int_equal(k.backend->plan(&spec, &need, NULL), 0);
    assert_true(need.parameter_bytes == 9 * one.parameter_bytes && need.state_bytes == 9 * one.state_bytes);
    assert_true(need.total_bytes > need.parameter_bytes + need.state_bytes);
    assert_int_equal(shmt_shm_layout_plan(&spec, &l, NULL), 0);
    assert_true(l.replica.off % 4096 == 0 && l.replica.each % 4096 == 0 && l.board.off >= l.replica.off + 4 * l.replica.each);
    assert_true(l.replica.each >= 4 * l.flat.n * sizeof(float));
    /* rows of different replicas have locks of their own */
    assert_true(shmt_shm_lock_first(&spec, 1, 0) == ROWS && l.lock_mask + 1 >= 4 * ROWS);
    spec.policy.merge = SHMT_MERGE_ELASTIC;
    assert_int_equal(k.backend->plan(&spec, &need, NULL), 0);
    assert_true(need.parameter_bytes == 5 * one.parameter_bytes);
}

/* ---- counting ---- */

static void sums_lose_nothing_where_every_seat_has_its_own_replica(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    static const uint64_t STALENESS[] = {0, 1, 3, INF};
    static const uint32_t EVERY[] = {1, 3, 1000}, SEATS[] = {1, 2, 3, 8}; /* 1000: more than an epoch has */
    (void)state;
    for (size_t w = 0; w < 3; w++)
        for (size_t s = 0; s < 4; s++)
            for (size_t h = 0; h < 3; h++)
                for (size_t n = 0; n < 4; n++)
                    count_ones(WORKER(WRITES[w], STALENESS[s], EVERY[h], SHMT_MERGE_SUM), SEATS[n],
                               (w + s + h + n) % 2 ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS);
}

static void sums_lose_nothing_where_seats_share_and_pushes_lose_nothing(void **state) {
    static const uint64_t STALENESS[] = {0, 2, INF};
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int kind = 0; kind < 2; kind++) {
            const struct shmt_team_kind *team = kind ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS;
            count_ones(NODE(SHMT_WRITE_ATOMIC, STALENESS[s], 1, SHMT_MERGE_SUM), 5, team);
            count_ones(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 1, SHMT_MERGE_SUM), 5, team);
            count_ones(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 4, SHMT_MERGE_SUM), 2, team);
        }
}

/* ---- what all do alike ---- */

enum { ALIKE = 4, OF_ALIKE = 12 }; /* seats; items of each in an epoch */

/* Merging after each item, all go in step, so each has the items of its own region; and all push the same. */
static int push_alike(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    for (uint32_t i = 0; (rc = shmtrain_next(s, &w)) == 1; i++) {
        const float g = 0.25f + 0.125f * (float)((i + w.epoch) % 5);
        const uint32_t row[2] = {3, 1400};
        const float grad[2] = {g, -0.5f * g};
        if ((rc = shmtrain_push_rows(s, 0, row, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Weights and state of the master in the end. */
static void train_alike(struct shmt_policy policy, uint32_t n_seats, enum shmt_rule_kind kind, float *out) {
    const struct kase k = case_of(policy, n_seats, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, OF_ALIKE * n_seats);
    struct run run;
    spec.rule = rule_of(kind);
    spec.rate.base = 0.125f;
    begin(&run, &k, spec);
    for (uint32_t row = 0; spec.curvatures && row < ROWS; row++)
        ((float *)shmt_array_at(k.backend, run.store, SHMT_ARRAY_CURVATURE))[row] = 0.01f;
    if (policy.merge != SHMT_MERGE_ELASTIC && policy.replicas != SHMT_REPLICAS_ONE) run.epoch_end = check_copies;
    go_well(&run, push_alike);
    read_with_state(&run, out);
    end(&run);
}

static void the_mean_of_replicas_that_do_alike_is_what_one_worker_does(void **state) {
    static float one[(1 + SHMT_MAX_PLANES) * ROWS], mean[(1 + SHMT_MAX_PLANES) * ROWS];
    static const struct shmt_policy LIVE = {.write = SHMT_WRITE_RACY, .staleness = 0};
    (void)state;
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++) {
        if (shmt_rule_needs_norms(rule)) continue; /* no live mode has them */
        train_alike(LIVE, 1, rule, one);
        train_alike(WORKER(SHMT_WRITE_RACY, 0, 1, SHMT_MERGE_MEAN), ALIKE, rule,
                    mean); /* four equal floats have an exact mean */
        assert_memory_equal(one, mean, sizeof one);
        assert_true(one[3] != 0 && one[1400] != 0);
    }
}

/* All squares count, averages stay averages, and ftrl's weights are those of the sums. */
static void sums_add_up_squares_and_keep_averages(void **state) {
    static float one[(1 + SHMT_MAX_PLANES) * ROWS], sum[(1 + SHMT_MAX_PLANES) * ROWS];
    static const struct shmt_policy LIVE = {.write = SHMT_WRITE_RACY, .staleness = 0};
    const struct shmt_policy adds = WORKER(SHMT_WRITE_RACY, 0, 1, SHMT_MERGE_SUM);
    (void)state;
    train_alike(LIVE, 1, SHMT_RULE_ADAGRAD, one);
    train_alike(adds, ALIKE, SHMT_RULE_ADAGRAD, sum);
    assert_true(sum[ROWS + 3] == ALIKE * one[ROWS + 3]); /* whole multiples of a power of two */
    static const enum shmt_rule_kind OF_AVERAGES[] = {SHMT_RULE_MOMENTUM, SHMT_RULE_ADAM,     SHMT_RULE_NESTEROV,
                                                      SHMT_RULE_RMSPROP,  SHMT_RULE_ADADELTA, SHMT_RULE_ADAMW};
    for (size_t i = 0; i < sizeof OF_AVERAGES / sizeof *OF_AVERAGES; i++) {
        train_alike(LIVE, 1, OF_AVERAGES[i], one);
        train_alike(adds, ALIKE, OF_AVERAGES[i], sum);
        assert_memory_equal(sum + ROWS, one + ROWS, (sizeof one - ROWS * sizeof *one)); /* the gradients were the same */
        assert_true(sum[3] != one[3]);
    }
    train_alike(adds, ALIKE, SHMT_RULE_FTRL, sum);
    const double z = sum[ROWS + 3], n = sum[2 * ROWS + 3];
    assert_true(fabs((double)sum[3] + z / ((1 + sqrt(n)) / 0.125 + (double)0.01f)) < 1e-5);
}

/* Whatever the order of merges: no state that a rule could not have. */
static void state_stays_possible_however_replicas_merge(void **state) {
    static float out[(1 + SHMT_MAX_PLANES) * ROWS];
    static const enum shmt_merge MERGES[] = {SHMT_MERGE_MEAN, SHMT_MERGE_SUM, SHMT_MERGE_ELASTIC, SHMT_MERGE_DAMPED};
    (void)state;
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++)
        for (int m = 0; m < 4 && !shmt_rule_needs_norms(rule); m++)
            for (int i = 0; i < 4; i++) {
                const uint64_t s = i < 2 ? INF : i == 2 ? 2 : 0;
                if (rule == SHMT_RULE_FTRL && MERGES[m] == SHMT_MERGE_ELASTIC) continue;
                if (MERGES[m] == SHMT_MERGE_DAMPED && s == 0) continue;
                train_alike(i % 2 ? NODE(i == 1 ? SHMT_WRITE_RACY : SHMT_WRITE_LOCKED, s, 2, MERGES[m])
                                  : WORKER(SHMT_WRITE_RACY, s, 2, MERGES[m]),
                            ALIKE, rule, out);
                assert_state_is_possible(rule, MERGES[m], ROWS, out);
                assert_true(out[3] < 0 && out[1400] > 0);
            }
}

/* ---- elastic ---- */

/* Between two epochs everybody sees the master, which is what is evaluated. */
static int see_the_master(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    float seen[ROWS], master[ROWS];
    (void)epoch;
    if (shmtrain_pull(s, 0, 0, ROWS, seen) != 0 || run->k->backend->store->read(run->store, 0, 0, ROWS, master) != 0)
        return SHMTRAIN_E_USAGE;
    for (uint32_t i = 0; i < ROWS; i++)
        if (seen[i] != master[i]) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "row %u is not the master's", i);
    return 0;
}

static void elastic_replicas_stay_apart_and_the_master_is_between(void **state) {
    (void)state;
    for (int s = 0; s < 2; s++) {
        const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, s ? INF : 0, 2, SHMT_MERGE_ELASTIC), 3, &SHMT_TEAM_PROCESSES);
        struct shmt_spec spec = spec_for(&k, ITEMS);
        struct run run;
        float state_sum = 0;
        spec.rule = rule_of(SHMT_RULE_ADAGRAD);
        begin(&run, &k, spec);
        run.epoch_end = see_the_master;
        go_well(&run, add_ones_in_step);
        for (uint32_t replica = 0; replica < 3; replica++) state_sum += shmt_shm_replica(run.store, replica, 1)[0];
        /* Row 1 is pushed by rank 0 alone. Who merges alone may have met a master that others have drawn back since. */
        const float first = shmt_shm_replica(run.store, 0, 0)[1], second = shmt_shm_replica(run.store, 1, 0)[1],
                    third = shmt_shm_replica(run.store, 2, 0)[1], master = run.store->weight[1];
        assert_true(fminf(first, fminf(second, third)) > 0 && fminf(first, fminf(second, third)) < master);
        assert_true(fmaxf(first, fmaxf(second, third)) > master);
        assert_true(s == 1 || (second < master && third < master));
        assert_true(state_sum == EPOCHS * ITEMS);                                 /* each has counted its own squares, ... */
        assert_true(fabsf(run.store->state[0] - EPOCHS * ITEMS / 3.0f) < 0.001f); /* ... of which the master has the mean */
        end(&run);
    }
}

/* ---- bounds ---- */

enum { BOUND = 2, EVERY = 2 };

/* Rank 0 is slow. Nobody is more merges ahead than the bound, and what is that old has been seen. */
static int keep_the_bound(struct run *run, shmtrain_session *s) {
    const struct timespec pause = {.tv_nsec = 300000};
    struct shmt_store *store = run->store;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const uint64_t mine = load_relaxed(&store->front[s->seat->rank].gate.clock);
        for (uint32_t seat = 0; seat < s->spec->n_seats; seat++) {
            float seen;
            const uint64_t theirs = load_acquire(&store->front[seat].gate.clock); /* may have grown since */
            if (load_acquire(&store->front[seat].working) == 0) continue;
            if (theirs + BOUND < mine) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%u is too far behind", seat);
            if ((rc = shmtrain_pull(s, 0, 1 + seat, 1, &seen)) < 0) return rc;
            if (w.epoch == 0 && (double)seen < (double)EVERY * ((double)mine - BOUND))
                return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%g of %u is too old for %llu merges", (double)seen, seat,
                                 (unsigned long long)mine);
        }
        if (s->seat->rank == 0) (void)nanosleep(&pause, NULL);
        const uint32_t row = 1 + s->seat->rank;
        static const float grad = -1;
        if ((rc = shmtrain_push_rows(s, 0, &row, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_finite_bound_holds(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, BOUND, EVERY, SHMT_MERGE_SUM), 3, &SHMT_TEAM_PROCESSES);
    struct run run;
    (void)state;
    begin(&run, &k, spec_for(&k, 4 * ITEMS));
    go_well(&run, keep_the_bound);
    assert_true(load_relaxed(&run.store->slot[1].counters.wait_clock_ns) > 0); /* who is fast has waited */
    end(&run);
}

/* All go in step. In the first epoch's eighth item each replica has been merged by each of those who share it. */
static int see_everybody(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    for (uint64_t mine = 1; (rc = shmtrain_next(s, &w)) == 1; mine++) {
        const uint32_t row = 1 + s->seat->rank;
        const float grad = -(float)w.n;
        keep_step(run, s, mine);
        for (uint32_t seat = 0; mine == 8 && seat < s->spec->n_seats; seat++) {
            float seen;
            if ((rc = shmtrain_pull(s, 0, 1 + seat, 1, &seen)) < 0) return rc;
            if (seen == 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "nothing of worker %u is seen", seat);
        }
        if ((rc = shmtrain_push_rows(s, 0, &row, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void replicas_that_are_shared_merge_within_an_epoch(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct kase k = case_of(NODE(WRITES[i], INF, 1, SHMT_MERGE_SUM), 4, &SHMT_TEAM_PROCESSES);
        struct run run;
        begin(&run, &k, spec_for(&k, ITEMS));
        go_well(&run, see_everybody);
        end(&run);
    }
}

/* Three share a replica, one has its own. If merges were what is bounded, that one, which merges at the end of each stretch,
 * would wait for those who merge at every third. */
static void who_has_a_replica_to_itself_is_not_held_up_by_those_who_share_one(void **state) {
    (void)state;
    for (int processes = 0; processes < 2; processes++)
        for (uint32_t every = 1; every <= 4; every += 3) {
            const struct kase k = case_of(NODE(SHMT_WRITE_ATOMIC, 1, every, SHMT_MERGE_SUM), 4,
                                          processes ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS);
            struct shmt_spec spec = spec_for(&k, 4 * 24);
            struct run run;
            for (uint32_t seat = 0; seat < 4; seat++) spec.placement.seat_node[seat] = seat == 3;
            begin(&run, &k, spec);
            go_well(&run, add_ones_in_step);
            for (uint32_t seat = 0; seat < 4; seat++) {
                const uint64_t ends = EPOCHS * 24 / every; /* of which one of three is a turn where three share */
                const uint64_t merges = load_relaxed(&run.store->slot[seat].counters.merges);
                assert_int_equal(load_relaxed(&run.store->front[seat].gate.clock), ends);
                assert_int_equal(merges, 2 * EPOCHS + (seat == 3 ? ends : ends / 3));
            }
            end(&run);
        }
}

/* With staleness 0 everybody takes part in every merge, also who has no work any more. */
static int be_slow(struct run *run, shmtrain_session *s) {
    const struct timespec pause = {.tv_nsec = 1000000};
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == 1) (void)nanosleep(&pause, NULL);
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void who_has_no_work_takes_part_in_merges_until_nobody_has(void **state) {
    static const uint64_t SIZES[] = {1, 2, 7, 50};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 2, SHMT_MERGE_MEAN), 4, &SHMT_TEAM_THREADS);
        struct run run;
        begin(&run, &k, spec_for(&k, SIZES[i]));
        go_well(&run, be_slow);
        const uint64_t merges = load_relaxed(&run.store->slot[0].counters.merges);
        for (uint32_t seat = 0; seat < 4; seat++)
            assert_int_equal(load_relaxed(&run.store->slot[seat].counters.merges), merges);
        assert_true(merges >= EPOCHS);
        end(&run);
    }
}

static int fail_in_the_second_epoch(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch == 1) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "on purpose"); /* whoever is first */
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_failure_ends_all_who_wait_for_a_merge(void **state) {
    static const uint64_t STALENESS[] = {0, 1, INF};
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int node = 0; node < 2; node++) {
            const struct shmt_policy policy = node ? NODE(SHMT_WRITE_LOCKED, STALENESS[s], 1, SHMT_MERGE_SUM)
                                                   : WORKER(SHMT_WRITE_RACY, STALENESS[s], 1, SHMT_MERGE_MEAN);
            const struct kase k = case_of(policy, 4, &SHMT_TEAM_PROCESSES);
            struct shmt_error e = {0};
            struct run run;
            begin(&run, &k, spec_for(&k, ITEMS));
            assert_int_equal(go(&run, fail_in_the_second_epoch, &e), SHMTRAIN_E_DATA);
            assert_string_equal(e.text, "on purpose");
            end(&run);
        }
}

/* ---- measuring ---- */

static void delays_are_of_what_was_not_merged_yet(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 3, SHMT_MERGE_SUM), 4, &SHMT_TEAM_THREADS);
    struct run run;
    (void)state;
    begin(&run, &k, spec_for(&k, ITEMS));
    go_well(&run, add_ones);
    for (uint32_t seat = 0; seat < 4; seat++) {
        const struct shmt_counters *c = k.backend->store->counters(run.store, seat);
        assert_true(load_relaxed(&c->delays.samples) > 0 || load_relaxed(&c->updates) == 0);
        assert_true(load_relaxed(&c->delays.max) <= 3 * 3 * 3); /* three others, three clocks, three rows each */
    }
    end(&run);
    const struct kase bounded = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_SUM), 1, &SHMT_TEAM_THREADS);
    begin(&run, &bounded, spec_for(&bounded, ITEMS));
    go_well(&run, add_ones);
    assert_int_equal(load_relaxed(&run.store->slot[0].counters.delays.max), 0);
    assert_int_equal(load_relaxed(&run.store->slot[0].counters.delays.samples), EPOCHS * ITEMS);
    end(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_of_a_worker_share_its_replica_and_seats_of_a_node),
        cmocka_unit_test(those_who_share_a_replica_take_turns_to_merge_it),
        cmocka_unit_test(the_need_counts_all_copies),
        cmocka_unit_test(sums_lose_nothing_where_every_seat_has_its_own_replica),
        cmocka_unit_test(sums_lose_nothing_where_seats_share_and_pushes_lose_nothing),
        cmocka_unit_test(the_mean_of_replicas_that_do_alike_is_what_one_worker_does),
        cmocka_unit_test(sums_add_up_squares_and_keep_averages),
        cmocka_unit_test(state_stays_possible_however_replicas_merge),
        cmocka_unit_test(elastic_replicas_stay_apart_and_the_master_is_between),
        cmocka_unit_test(a_finite_bound_holds),
        cmocka_unit_test(replicas_that_are_shared_merge_within_an_epoch),
        cmocka_unit_test(who_has_a_replica_to_itself_is_not_held_up_by_those_who_share_one),
        cmocka_unit_test(who_has_no_work_takes_part_in_merges_until_nobody_has),
        cmocka_unit_test(a_failure_ends_all_who_wait_for_a_merge),
        cmocka_unit_test(delays_are_of_what_was_not_merged_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
