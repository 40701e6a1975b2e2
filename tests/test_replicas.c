/* Runs with replicas in the shm backend: nothing is lost where nobody shares, all copies are one at an epoch's end, bounds
 * hold, and what all replicas do alike comes to what one worker does. What every mode must do is in test_conformance.c, the
 * arithmetic in test_merge.c, guests in test_seats.c. */
#include "conformance.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/shm/replicas_priv.h"
#include "backends/shm/shm.h"
#include "ps/replicas.h"

enum { ITEM = 16, ITEMS = 60, ROWS = 1500, EPOCHS = 3 }; /* more rows than a block of the master */

#define INF                      SHMT_STALENESS_INF
#define WORKER(write, s, h, how) ((struct shmt_policy){write, s, 0, SHMT_LATE_DROP, SHMT_REPLICAS_WORKER, h, how})
#define NODE(write, s, h, how)   ((struct shmt_policy){write, s, 0, SHMT_LATE_DROP, SHMT_REPLICAS_NODE, h, how})

static struct kase case_of(struct shmt_policy policy, uint32_t n_seats, enum shmt_team_kind kind) {
    return (struct kase){&SHMT_BACKEND_SHM, policy, n_seats, kind};
}

/* Whole items of a power of two of examples, each of which moves a row by exactly 1. Seats are on two nodes by turns, in
 * name. */
static struct shmt_spec spec_for(const struct kase *k, uint64_t items) {
    struct shmt_spec spec = spec_of(k, items * ITEM, ROWS, 1);
    spec.item = ITEM;
    spec.rate.base = 1;
    if (k->policy.replicas != SHMT_REPLICAS_NODE) return spec;
    spec.placement.n_nodes = 2;
    for (uint32_t seat = 0; seat < k->n_seats; seat++) spec.placement.seat_node[seat] = seat % 2;
    return spec;
}

/* ---- whose replica ---- */

static void threads_of_a_worker_share_its_replica_and_seats_of_a_node(void **state) {
    struct shmt_spec spec = {.n_seats = 12, .n_guests = 3, .n_workers = 3, .policy = WORKER(SHMT_WRITE_RACY, 0, 4, 0)};
    (void)state;
    assert_int_equal(shmt_replicas_count(&spec), 4); /* three workers of three threads, and a guest */
    for (uint32_t seat = 0; seat < 12; seat++) assert_int_equal(shmt_replicas_of(&spec, seat), seat / 3);
    assert_int_equal(shmt_replicas_averaged(&spec), 3);
    spec.policy.replicas = SHMT_REPLICAS_NODE;
    assert_int_equal(shmt_replicas_count(&spec), 1);
    assert_int_equal(shmt_replicas_of(&spec, 11), 0);
    spec.placement.n_nodes = 4; /* of which the second has no seats */
    for (uint32_t seat = 0; seat < 12; seat++) spec.placement.seat_node[seat] = seat < 5 ? 3 : seat < 9 ? 0 : 2;
    assert_int_equal(shmt_replicas_count(&spec), 3);
    for (uint32_t seat = 0; seat < 12; seat++) assert_int_equal(shmt_replicas_of(&spec, seat), seat < 5 ? 2 : seat < 9 ? 0 : 1);
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
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 4, SHMT_MERGE_MEAN), 4, SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_need need, one;
    struct shmt_shm_layout l;
    (void)state;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .epsilon = 1};
    assert_int_equal(k.ops->plan(&spec, &need, NULL), 0);
    spec.policy.replicas = SHMT_REPLICAS_ONE;
    assert_int_equal(k.ops->plan(&spec, &one, NULL), 0);
    assert_true(need.parameter_bytes == 5 * one.parameter_bytes && need.state_bytes == 5 * one.state_bytes);
    spec.policy = WORKER(SHMT_WRITE_LOCKED, INF, 4, SHMT_MERGE_SUM); /* each has a base, too */
    assert_int_equal(k.ops->plan(&spec, &need, NULL), 0);
    assert_true(need.parameter_bytes == 9 * one.parameter_bytes && need.state_bytes == 9 * one.state_bytes);
    assert_true(need.total_bytes > need.parameter_bytes + need.state_bytes);
    assert_int_equal(shmt_shm_layout_plan(&spec, &l, NULL), 0);
    assert_true(l.replica_off % 4096 == 0 && l.replica_bytes % 4096 == 0 && l.board_off >= l.replica_off + 4 * l.replica_bytes);
    assert_true(l.replica_bytes >= 4 * l.flat.n * sizeof(float));
    /* rows of different replicas have locks of their own */
    assert_true(shmt_shm_lock_first(&spec, 1, 0) == ROWS && l.lock_mask + 1 >= 4 * ROWS);
    spec.policy.merge = SHMT_MERGE_ELASTIC;
    assert_int_equal(k.ops->plan(&spec, &need, NULL), 0);
    assert_true(need.parameter_bytes == 5 * one.parameter_bytes);
}

/* ---- counting ---- */

/* An item adds 1 to row 0, to its seat's row, and to the last row, which is in another block. */
static int add_item(shmtrain_session *s, const struct shmtrain_work *w) {
    const uint32_t row[3] = {0, 1 + s->seat->rank, ROWS - 1};
    const float grad[3] = {-(float)w->n, -(float)w->n, -(float)w->n};
    const int rc = shmtrain_push_rows(s, 0, row, 3, grad);
    return rc < 0 ? rc : shmtrain_clock(s, NULL);
}

static int add_ones(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = add_item(s, &w)) < 0) return rc;
    return rc;
}

/* All do as much work, at the same pace: nobody ends an item before all have one. There is an item for everybody each time. */
static int add_ones_in_step(struct run *run, shmtrain_session *s) {
    const struct timespec pause = {.tv_nsec = 50000};
    _Atomic uint64_t *const begun = run->board; /* (n_seats) */
    struct shmtrain_work w;
    int rc;
    for (uint64_t mine = 1; (rc = shmtrain_next(s, &w)) == 1; mine++) {
        store_relaxed(&begun[s->seat->rank], mine);
        for (uint32_t seat = 0; seat < s->spec->n_seats; seat++)
            while (load_relaxed(&begun[seat]) < mine) (void)nanosleep(&pause, NULL);
        if ((rc = add_item(s, &w)) < 0) return rc;
    }
    return rc;
}

/* All copies are the same, bases too: to be called at an epoch's end, when everybody rests. */
static int check_copies(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    const struct shmt_store *store = run->store;
    (void)epoch;
    for (uint32_t replica = 0; replica < store->layout.n_replicas; replica++)
        for (uint32_t word = 0; word <= store->layout.planes; word++) {
            const size_t bytes = store->layout.flat.n * sizeof(float);
            const float *master = shmt_shm_master(store, word), *base = shmt_shm_base(store, replica, word);
            if (memcmp(shmt_shm_replica(store, replica, word), master, bytes) != 0 ||
                (base && memcmp(base, master, bytes) != 0))
                return shmt_fail(&s->error, SHMTRAIN_E_DATA, "replica %u, word %u is not the master's", replica, word);
        }
    return 0;
}

static void counts(struct shmt_policy policy, uint32_t n_seats, enum shmt_team_kind kind) {
    const struct kase k = case_of(policy, n_seats, kind);
    const float all = EPOCHS * ITEMS;
    float value[ROWS], own = 0;
    struct run run;
    uint64_t merges = 0;
    begin(&run, &k, spec_for(&k, ITEMS));
    run.epoch_end = check_copies;
    go_well(&run, add_ones);
    assert_int_equal(k.ops->read(run.store, 0, 0, ROWS, value), 0);
    for (uint32_t seat = 0; seat < n_seats; seat++) {
        own += value[1 + seat];
        merges += load_relaxed(&k.ops->counters(run.store, seat)->merges);
    }
    if (value[0] != all || own != all || value[ROWS - 1] != all)
        fail_msg("%s, %u seats, every %u, staleness %llu: %g, %g and %g of %g", shmt_write_name(policy.write), n_seats,
                 policy.merge_every, (unsigned long long)policy.staleness, (double)value[0], (double)own,
                 (double)value[ROWS - 1], (double)all);
    assert_true(merges >= EPOCHS * n_seats); /* one at the end of each epoch, at least */
    end(&run);
}

static void sums_lose_nothing_where_every_seat_has_its_own_replica(void **state) {
    static const enum shmt_write WRITES[] = {SHMT_WRITE_RACY, SHMT_WRITE_ATOMIC, SHMT_WRITE_LOCKED};
    static const uint64_t STALENESS[] = {0, 1, 3, INF};
    static const uint32_t EVERY[] = {1, 3, 1000}, SEATS[] = {1, 2, 3, 8}; /* 1000: more than an epoch has */
    (void)state;
    for (size_t w = 0; w < 3; w++)
        for (size_t s = 0; s < 4; s++)
            for (size_t h = 0; h < 3; h++)
                for (size_t n = 0; n < 4; n++)
                    counts(WORKER(WRITES[w], STALENESS[s], EVERY[h], SHMT_MERGE_SUM), SEATS[n],
                           (w + s + h + n) % 2 ? SHMT_TEAM_PROCESSES : SHMT_TEAM_THREADS);
}

static void sums_lose_nothing_where_seats_share_and_pushes_lose_nothing(void **state) {
    static const uint64_t STALENESS[] = {0, 2, INF};
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (int kind = 0; kind < 2; kind++) {
            const enum shmt_team_kind team = kind ? SHMT_TEAM_PROCESSES : SHMT_TEAM_THREADS;
            counts(NODE(SHMT_WRITE_ATOMIC, STALENESS[s], 1, SHMT_MERGE_SUM), 5, team);
            counts(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 1, SHMT_MERGE_SUM), 5, team);
            counts(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 4, SHMT_MERGE_SUM), 2, team);
        }
}

/* Without curvature a share is 1: a damped merge is a sum then, and whatever is merged when, nothing may be lost. */
static void damped_merges_lose_nothing_of_what_has_no_curvature(void **state) {
    static const uint64_t STALENESS[] = {1, 3, INF};
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    (void)state;
    for (size_t s = 0; s < 3; s++)
        for (size_t n = 0; n < 4; n++) {
            const enum shmt_team_kind team = (s + n) % 2 ? SHMT_TEAM_PROCESSES : SHMT_TEAM_THREADS;
            counts(WORKER(SHMT_WRITE_RACY, STALENESS[s], 1, SHMT_MERGE_DAMPED), SEATS[n], team);
            counts(NODE(SHMT_WRITE_ATOMIC, STALENESS[s], 1, SHMT_MERGE_DAMPED), SEATS[n], team);
            counts(NODE(SHMT_WRITE_LOCKED, STALENESS[s], 2, SHMT_MERGE_DAMPED), SEATS[n], team);
        }
}

/* ---- tiers ---- */

enum { TIER_ROWS = 20000 };

/* A run of so many epochs' parts that the last tier waits for 16 turns; row i is the hotter the smaller i * 7919 mod the rows
 * is, and the last row is a bias. */
static void begin_tiers(struct run *run, const struct kase *k) {
    struct shmt_spec spec = spec_of(k, 64 * 4 * 2 * ITEM, TIER_ROWS, 1);
    spec.item = ITEM;
    spec.l2_rows[0] = TIER_ROWS - 1;
    begin(run, k, spec);
    float *const h = k->ops->curvature(run->store);
    for (uint64_t i = 0; i < TIER_ROWS - 1; i++) h[i] = 1 / (1 + (float)(i * 7919 % (TIER_ROWS - 1)));
    h[TIER_ROWS - 1] = 1e-6f;
}

static float hottest_of(const float *h) {
    float most = 0;
    for (uint32_t i = 0; i < 16; i++) most = fmaxf(most, h[i]);
    return most;
}

static void every_line_is_in_one_tier_and_the_hottest_in_the_first(void **state) {
    static uint8_t tier_of[TIER_ROWS / 16 + 64];
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, SHMT_TEAM_THREADS);
    static const uint64_t LINES[] = {65, 512};
    struct shmt_seat *seat;
    struct shmt_error e;
    struct run run;
    float least[3] = {INFINITY, INFINITY, INFINITY}, most[3] = {0, 0, 0};
    (void)state;
    begin_tiers(&run, &k);
    assert_int_equal(k.ops->enter(run.store, 0, 0, &seat, &e), 0);
    const struct shmt_shm_merging *m = shmt_shm_seat_of(seat)->merging;
    const uint64_t lines = run.store->layout.flat.n / 16, bias = (TIER_ROWS - 1) / 16;
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
    k.ops->leave(seat);
    end(&run);
}

static void tiers_are_due_when_they_should_and_seats_at_different_turns(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 2, SHMT_TEAM_THREADS);
    struct shmt_error e;
    struct run run;
    uint64_t turns[2][SHMT_SHM_TIERS][64], n[2][SHMT_SHM_TIERS] = {{0}};
    (void)state;
    begin_tiers(&run, &k);
    assert_int_equal(shmt_replicas_merge_all_every(&run.spec), 16);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct shmt_seat *seat;
        assert_int_equal(k.ops->enter(run.store, rank, 0, &seat, &e), 0);
        struct shmt_shm_seat *p = shmt_shm_seat_of(seat);
        for (p->merging->turns = 0; p->merging->turns < 64; p->merging->turns++)
            for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
                if (shmt_shm_tier_is_due(p, t)) turns[rank][t][n[rank][t]++] = p->merging->turns;
        k.ops->leave(seat);
        assert_true(n[rank][0] == 64 && n[rank][1] == 16 && n[rank][2] == 4);
    }
    for (uint64_t i = 0; i < 16; i++) assert_true(turns[0][1][i] != turns[1][1][i]);
    for (uint64_t i = 0; i < 4; i++) assert_true(turns[0][2][i] != turns[1][2][i]);
    end(&run);
}

/* Four seats with one replica take turns, and count its turns, not their own. */
static void tiers_of_a_shared_replica_are_due_as_often(void **state) {
    const struct kase k = case_of(NODE(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED), 4, SHMT_TEAM_THREADS);
    struct shmt_error e;
    struct run run;
    uint64_t n[SHMT_SHM_TIERS] = {0};
    (void)state;
    begin_tiers(&run, &k);
    assert_int_equal(shmt_replicas_merge_all_every(&run.spec), 16);
    for (uint32_t rank = 0; rank < 4; rank++) {
        struct shmt_seat *seat;
        assert_int_equal(k.ops->enter(run.store, rank, 0, &seat, &e), 0);
        struct shmt_shm_merging *m = shmt_shm_seat_of(seat)->merging;
        assert_int_equal(m->n_sharers, 4);
        for (m->clocks = 1; m->clocks <= 64; m->clocks++)
            for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
                if (shmt_replicas_turn(&run.spec.policy, m->clocks, m->index, m->n_sharers))
                    n[t] += shmt_shm_tier_is_due(shmt_shm_seat_of(seat), t);
        k.ops->leave(seat);
    }
    assert_true(n[0] == 64 && n[1] == 16 && n[2] == 4);
    end(&run);
}

/* The rest waits for no more than a fourth of an epoch's work, and with a finite bound for nothing. */
static void how_long_the_rest_waits_follows_from_how_much_all_do(void **state) {
    struct shmt_spec spec = {.n_seats = 2, .n_workers = 2, .item = 1024, .n_examples = 1 << 20};
    (void)state;
    spec.policy = WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_DAMPED);
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 16);
    spec.n_seats = spec.n_workers = 64;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 4);
    spec.n_examples = 1 << 10;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 1);
    spec.n_examples = 1 << 30;
    spec.policy.merge_every = 3;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 48);
    spec.policy.staleness = 5;
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 3);
    spec = (struct shmt_spec){.n_seats = 1, .n_workers = 1, .item = 1u << 31, .n_examples = 1, .policy = spec.policy};
    spec.policy.staleness = INF;
    spec.policy.merge_every = 1u << 31; /* as somebody else's store might say: their product is 2^64 with its four parts */
    assert_int_equal(shmt_replicas_merge_all_every(&spec), 1u << 31);
    assert_int_equal(shmt_replicas_averaged(&spec), 1); /* steps as many and as noisy as one worker's */
    assert_int_equal(shmt_replicas_summed(&spec), 1);
}

/* ---- what all do alike ---- */

enum { ALIKE = 4, OF_ALIKE = 12 }; /* seats; items of each in an epoch */

/* Merging after each item, all go in step, so each has the items of its own region; and all push the same. */
static int push_alike(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    for (uint32_t i = 0; (rc = shmtrain_next(s, &w)) == 1; i++) {
        const float g = (float)w.n * (0.25f + 0.125f * (float)((i + w.epoch) % 5));
        const uint32_t row[2] = {3, 1400};
        const float grad[2] = {g, -0.5f * g};
        if ((rc = shmtrain_push_rows(s, 0, row, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static struct shmt_rule rule_of(enum shmt_rule_kind kind) {
    return (struct shmt_rule){.kind = kind, .l2 = 0.01f, .momentum = 0.9f, .beta2 = 0.99f, .epsilon = 1e-3f, .beta = 1};
}

/* Weights and state of the master in the end. */
static void train_alike(struct shmt_policy policy, uint32_t n_seats, enum shmt_rule_kind kind, float *out) {
    const struct kase k = case_of(policy, n_seats, SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, OF_ALIKE * n_seats);
    struct run run;
    spec.rule = rule_of(kind);
    spec.rate.base = 0.125f;
    begin(&run, &k, spec);
    for (uint32_t row = 0; spec.curvatures && row < ROWS; row++) k.ops->curvature(run.store)[row] = 0.01f;
    if (policy.merge != SHMT_MERGE_ELASTIC && policy.replicas != SHMT_REPLICAS_ONE) run.epoch_end = check_copies;
    go_well(&run, push_alike);
    memset(out, 0, (1 + SHMT_MAX_PLANES) * ROWS * sizeof *out);
    assert_int_equal(k.ops->read(run.store, 0, 0, ROWS, out), 0);
    for (uint32_t p = 0; p < run.store->layout.planes; p++)
        memcpy(out + (1 + p) * ROWS, k.ops->state(run.store, 0, p), ROWS * sizeof *out);
    end(&run);
}

static void the_mean_of_replicas_that_do_alike_is_what_one_worker_does(void **state) {
    static float one[(1 + SHMT_MAX_PLANES) * ROWS], mean[(1 + SHMT_MAX_PLANES) * ROWS];
    static const struct shmt_policy LIVE = {.write = SHMT_WRITE_RACY, .staleness = 0};
    (void)state;
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++) {
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
    for (enum shmt_rule_kind rule = SHMT_RULE_MOMENTUM; rule <= SHMT_RULE_ADAM; rule += 2) {
        train_alike(LIVE, 1, rule, one);
        train_alike(adds, ALIKE, rule, sum);
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
        for (int m = 0; m < 4; m++)
            for (int i = 0; i < 4; i++) {
                const uint64_t s = i < 2 ? INF : i == 2 ? 2 : 0;
                if (rule == SHMT_RULE_FTRL && MERGES[m] == SHMT_MERGE_ELASTIC) continue;
                if (MERGES[m] == SHMT_MERGE_DAMPED && s == 0) continue;
                train_alike(i % 2 ? NODE(i == 1 ? SHMT_WRITE_RACY : SHMT_WRITE_LOCKED, s, 2, MERGES[m])
                                  : WORKER(SHMT_WRITE_RACY, s, 2, MERGES[m]),
                            ALIKE, rule, out);
                for (uint32_t at = 0; at < (1 + SHMT_MAX_PLANES) * ROWS; at++) {
                    const struct shmt_merging how = shmt_merging_of(MERGES[m], rule, at / ROWS, 1);
                    if (!isfinite(out[at]) || (how.positive && out[at] < 0))
                        fail_msg("%s, %s, case %d: %g in place %u", shmt_rule_name(rule), shmt_merge_name(MERGES[m]), i,
                                 (double)out[at], at);
                }
                assert_true(out[3] < 0 && out[1400] > 0);
            }
}

/* ---- elastic ---- */

/* Between two epochs everybody sees the master, which is what is evaluated. */
static int see_the_master(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    float seen[ROWS], master[ROWS];
    (void)epoch;
    if (shmtrain_pull(s, 0, 0, ROWS, seen) != 0 || run->k->ops->read(run->store, 0, 0, ROWS, master) != 0)
        return SHMTRAIN_E_USAGE;
    for (uint32_t i = 0; i < ROWS; i++)
        if (seen[i] != master[i]) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "row %u is not the master's", i);
    return 0;
}

static void elastic_replicas_stay_apart_and_the_master_is_between(void **state) {
    (void)state;
    for (int s = 0; s < 2; s++) {
        const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, s ? INF : 0, 2, SHMT_MERGE_ELASTIC), 3, SHMT_TEAM_PROCESSES);
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
        const uint64_t mine = load_relaxed(&store->slot[s->seat->rank].gate.clock);
        for (uint32_t seat = 0; seat < s->spec->n_seats; seat++) {
            float seen;
            const uint64_t theirs = load_acquire(&store->slot[seat].gate.clock); /* may have grown since */
            if (load_acquire(&store->slot[seat].working) == 0) continue;
            if (theirs + BOUND < mine) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%u is too far behind", seat);
            if ((rc = shmtrain_pull(s, 0, 1 + seat, 1, &seen)) < 0) return rc;
            if (w.epoch == 0 && (double)seen < (double)EVERY * ((double)mine - BOUND))
                return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%g of %u is too old for %llu merges", (double)seen, seat,
                                 (unsigned long long)mine);
        }
        if (s->seat->rank == 0) (void)nanosleep(&pause, NULL);
        const uint32_t row = 1 + s->seat->rank;
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push_rows(s, 0, &row, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void a_finite_bound_holds(void **state) {
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, BOUND, EVERY, SHMT_MERGE_SUM), 3, SHMT_TEAM_PROCESSES);
    struct run run;
    (void)state;
    begin(&run, &k, spec_for(&k, 4 * ITEMS));
    go_well(&run, keep_the_bound);
    assert_true(load_relaxed(&run.store->slot[1].counters.wait_clock_ns) > 0); /* who is fast has waited */
    end(&run);
}

/* Three share a replica, one has its own. If merges were what is bounded, that one, which merges at the end of each stretch,
 * would wait for those who merge at every third. */
static void who_has_a_replica_to_itself_is_not_held_up_by_those_who_share_one(void **state) {
    (void)state;
    for (int processes = 0; processes < 2; processes++)
        for (uint32_t every = 1; every <= 4; every += 3) {
            const struct kase k = case_of(NODE(SHMT_WRITE_ATOMIC, 1, every, SHMT_MERGE_SUM), 4,
                                          processes ? SHMT_TEAM_PROCESSES : SHMT_TEAM_THREADS);
            struct shmt_spec spec = spec_for(&k, 4 * 24);
            struct run run;
            for (uint32_t seat = 0; seat < 4; seat++) spec.placement.seat_node[seat] = seat == 3;
            begin(&run, &k, spec);
            go_well(&run, add_ones_in_step);
            for (uint32_t seat = 0; seat < 4; seat++) {
                const uint64_t ends = EPOCHS * 24 / every; /* of which one of three is a turn where three share */
                const uint64_t merges = load_relaxed(&run.store->slot[seat].counters.merges);
                assert_int_equal(load_relaxed(&run.store->slot[seat].gate.clock), ends);
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
        const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 2, SHMT_MERGE_MEAN), 4, SHMT_TEAM_THREADS);
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
            const struct kase k = case_of(policy, 4, SHMT_TEAM_PROCESSES);
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
    const struct kase k = case_of(WORKER(SHMT_WRITE_RACY, 0, 3, SHMT_MERGE_SUM), 4, SHMT_TEAM_THREADS);
    struct run run;
    (void)state;
    begin(&run, &k, spec_for(&k, ITEMS));
    go_well(&run, add_ones);
    for (uint32_t seat = 0; seat < 4; seat++) {
        const struct shmt_counters *c = k.ops->counters(run.store, seat);
        assert_true(load_relaxed(&c->delays.samples) > 0 || load_relaxed(&c->updates) == 0);
        assert_true(load_relaxed(&c->delays.max) <= 3 * 3 * 3); /* three others, three clocks, three rows each */
    }
    end(&run);
    const struct kase bounded = case_of(WORKER(SHMT_WRITE_RACY, INF, 1, SHMT_MERGE_SUM), 1, SHMT_TEAM_THREADS);
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
        cmocka_unit_test(damped_merges_lose_nothing_of_what_has_no_curvature),
        cmocka_unit_test(every_line_is_in_one_tier_and_the_hottest_in_the_first),
        cmocka_unit_test(tiers_are_due_when_they_should_and_seats_at_different_turns),
        cmocka_unit_test(tiers_of_a_shared_replica_are_due_as_often),
        cmocka_unit_test(how_long_the_rest_waits_follows_from_how_much_all_do),
        cmocka_unit_test(the_mean_of_replicas_that_do_alike_is_what_one_worker_does),
        cmocka_unit_test(sums_add_up_squares_and_keep_averages),
        cmocka_unit_test(state_stays_possible_however_replicas_merge),
        cmocka_unit_test(elastic_replicas_stay_apart_and_the_master_is_between),
        cmocka_unit_test(a_finite_bound_holds),
        cmocka_unit_test(who_has_a_replica_to_itself_is_not_held_up_by_those_who_share_one),
        cmocka_unit_test(who_has_no_work_takes_part_in_merges_until_nobody_has),
        cmocka_unit_test(a_failure_ends_all_who_wait_for_a_merge),
        cmocka_unit_test(delays_are_of_what_was_not_merged_yet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
