/* Replicas that hold the hot rows only, and the page of the last: what is private until it is merged, what everybody sees at
 * once, and that nothing is lost of either. What holds of whole replicas is in test_replicas.c, windows of segments in
 * test_window.c. */
#include "replicas_help.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROWS = 20000, HOT = 2048, TAIL = 19456, COLD = 9000, PAGE_FLOATS = 1024 };

/* A part is held only by replicas that are merged damped. */
#define HOT_WORKER(write, s, h) WORKER(write, s, h, SHMT_MERGE_DAMPED)
#define HOT_NODE(write, s, h)   NODE(write, s, h, SHMT_MERGE_DAMPED)

static struct shmt_spec spec_for(const struct kase *k, uint64_t items) {
    struct shmt_spec spec = spec_of_items(k, items, ROWS);
    spec.hot_floats = HOT;
    return spec;
}

/* ---- what they hold ---- */

static void replicas_hold_the_first_rows_and_the_page_of_the_last(void **state) {
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 2, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_flat flat;
    struct shmt_cover c;
    (void)state;
    shmt_flat_plan(&spec, &flat);
    shmt_replicas_cover(&spec, &flat, &c);
    assert_int_equal(flat.n % PAGE_FLOATS, 0);
    assert_true(c.hot == HOT && c.tail == TAIL && c.n == HOT + PAGE_FLOATS);
    for (uint64_t place = 0, held = 0; place < flat.n; place++) {
        const bool is_held = place < HOT || place >= TAIL;
        assert_true(shmt_cover_of(&c, place) == (is_held ? held : UINT64_MAX));
        if (is_held) assert_int_equal(shmt_cover_place(&c, held++), place);
    }
    assert_true(shmt_cover_run(&c, 0, c.n) == HOT && shmt_cover_run(&c, HOT, c.n) == PAGE_FLOATS);
    assert_true(shmt_cover_run(&c, 5, 7) == 2 && shmt_cover_run(&c, HOT - 1, c.n) == 1);
    spec.placement.page_bytes = 2 << 20; /* what is behind the last row's page is the master's again */
    spec.placement.transparent = 1;
    shmt_flat_plan(&spec, &flat);
    shmt_replicas_cover(&spec, &flat, &c);
    assert_true(flat.n == (2 << 20) / 4 && c.n == HOT + PAGE_FLOATS && shmt_cover_of(&c, TAIL + PAGE_FLOATS) == UINT64_MAX);
    spec.hot_floats = 0;
    shmt_replicas_cover(&spec, &flat, &c);
    assert_true(c.n == flat.n && shmt_cover_place(&c, COLD) == COLD && shmt_cover_of(&c, flat.n) == UINT64_MAX);
}

static void refused(const struct shmt_spec *spec, const char *why) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_spec_check(spec, &e), SHMTRAIN_E_USAGE);
    if (!strstr(e.text, why)) fail_msg("%s", e.text);
}

static void parts_that_cannot_be_held_are_refused(void **state) {
    static const uint32_t HOTS[] = {1, PAGE_FLOATS - 1, HOT + 16, TAIL, TAIL + PAGE_FLOATS, UINT32_MAX, UINT32_MAX - 1023};
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 2, &SHMT_TEAM_THREADS);
    const struct shmt_spec good = spec_for(&k, ITEMS);
    struct shmt_spec spec = good;
    (void)state;
    for (size_t i = 0; i < sizeof HOTS / sizeof *HOTS; i++) {
        spec.hot_floats = HOTS[i];
        refused(&spec, "replicas cannot hold");
    }
    spec.hot_floats = TAIL - PAGE_FLOATS;
    assert_int_equal(shmt_spec_check(&spec, NULL), 0);
    spec.table[0].rows = 1;
    refused(&spec, "replicas cannot hold");
    spec = good;
    spec.policy.merge = SHMT_MERGE_SUM;
    refused(&spec, "only with merge damped");
    spec = good;
    spec.policy.write = SHMT_WRITE_LOCKED;
    refused(&spec, "only with merge damped and write racy or atomic");
    spec = good;
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = INF};
    refused(&spec, "only with merge damped");
    spec = good;
    spec.table[0].width = 2;
    refused(&spec, "one table of width 1");
    spec = good;
    spec.n_tables = 2;
    spec.table[1] = spec.table[0];
    refused(&spec, "one table of width 1");
    spec = good;
    spec.placement.page_bytes = 2 << 20; /* reserved huge pages: nothing smaller is mapped */
    refused(&spec, "replicas cannot hold");
    spec.placement.transparent = 1;
    assert_int_equal(shmt_spec_check(&spec, NULL), 0);
}

static void the_need_counts_what_replicas_hold(void **state) {
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 4, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_need need;
    struct shmt_shm_layout l;
    const uint64_t held = (HOT + PAGE_FLOATS) * sizeof(float), all = 20480 * sizeof(float);
    (void)state;
    spec.rule = (struct shmt_rule){.kind = SHMT_RULE_ADAGRAD, .epsilon = 1};
    assert_int_equal(k.backend->plan(&spec, &need, NULL), 0);
    assert_int_equal(need.parameter_bytes, all + held /* curvatures */ + 4 * 2 * held);
    assert_int_equal(need.state_bytes, all + 4 * 2 * held);
    assert_true(need.total_bytes > need.parameter_bytes + need.state_bytes);
    assert_int_equal(shmt_shm_layout_plan(&spec, &l, NULL), 0);
    assert_true(l.replica.each == 4 * held && l.row_place.off >= l.replica.off + 4 * l.replica.each);
    assert_true((l.weight.off + 4096) % 4096 == 0 && (l.state.off + 4096) % 4096 == 0 && l.flat.n * 4 == all);
}

/* ---- counting ---- */

/* An item adds 1 to a hot row, to a row of the last page and, where nothing is lost, to a cold one, which all share; and to the
 * seat's own ones of each kind, at the very borders. */
enum { MINE = 4, SHARED = 3 };
static const uint32_t SHARES[SHARED] = {0, ROWS - 1, COLD};
static void rows_of(uint32_t rank, uint32_t *row) {
    row[0] = HOT - 1 - rank;
    row[1] = HOT + rank;
    row[2] = TAIL - 1 - rank;
    row[3] = TAIL + rank;
}

static int push_ones(struct run *run, shmtrain_session *s) {
    const uint32_t shared = run->spec.policy.write == SHMT_WRITE_ATOMIC ? SHARED : SHARED - 1;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        uint32_t row[SHARED + MINE];
        float grad[SHARED + MINE];
        memcpy(row, SHARES, shared * sizeof *row);
        rows_of(s->seat->rank, row + shared);
        for (uint32_t i = 0; i < shared + MINE; i++) grad[i] = -1;
        if ((rc = shmtrain_push_rows(s, 0, row, shared + MINE, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void counts_of(struct run *run, uint32_t n_seats) {
    const float all = EPOCHS * ITEMS;
    static float value[ROWS];
    float own[MINE] = {0}, sum = 0;
    run->epoch_end = check_copies;
    go_well(run, push_ones);
    assert_int_equal(run->k->backend->store->read(run->store, 0, 0, ROWS, value), 0);
    for (uint32_t seat = 0; seat < n_seats; seat++) {
        uint32_t row[MINE];
        rows_of(seat, row);
        for (int i = 0; i < MINE; i++) own[i] += value[row[i]];
    }
    for (uint32_t row = 0; row < ROWS; row++) sum += value[row];
    const bool atomic = run->spec.policy.write == SHMT_WRITE_ATOMIC;
    const float cold = atomic ? all : 0;
    if (value[0] != all || value[ROWS - 1] != all || value[COLD] != cold)
        fail_msg("%u seats: %g, %g, %g of %g", n_seats, (double)value[0], (double)value[ROWS - 1], (double)value[COLD],
                 (double)all);
    for (int i = 0; i < MINE; i++) assert_true(own[i] == all);
    assert_true(sum == all * (float)(MINE + 2 + atomic)); /* and nothing anywhere else */
}

static void counts(struct shmt_policy policy, uint32_t n_seats, const struct shmt_team_kind *kind, bool huge) {
    const struct kase k = case_of(policy, n_seats, kind);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct run run;
    if (huge) spec.placement.page_bytes = 2 << 20;
    spec.placement.transparent = huge;
    begin(&run, &k, spec);
    counts_of(&run, n_seats);
    end(&run);
}

static void nothing_is_lost_of_rows_that_are_held_and_of_those_that_are_shared(void **state) {
    static const uint32_t SEATS[] = {1, 2, 3, 8};
    static const uint64_t STALENESS[] = {1, INF};
    (void)state;
    for (size_t n = 0; n < 4; n++)
        for (int kind = 0; kind < 2; kind++)
            for (int s = 0; s < 2; s++) {
                const struct shmt_team_kind *team = kind ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS;
                counts(HOT_WORKER(SHMT_WRITE_RACY, STALENESS[s], 1), SEATS[n], team, s == 0);
                counts(HOT_WORKER(SHMT_WRITE_ATOMIC, STALENESS[s], 3), SEATS[n], team, s == 1);
                counts(HOT_NODE(SHMT_WRITE_ATOMIC, STALENESS[s], 1), SEATS[n], team, false); /* seats share replicas */
            }
}

/* ---- what is seen when ---- */

enum { SEEN_BY_OTHER = 8 };

static void wait_for(_Atomic uint64_t *word) {
    const struct timespec pause = {.tv_nsec = 50000};
    while (load_acquire(word) == 0) (void)nanosleep(&pause, NULL);
}

/* Nobody merges before the epoch's end. Rank 0 pushes in its first item, and goes on when rank 1 has looked in its own. */
static int push_and_look(struct run *run, shmtrain_session *s) {
    _Atomic uint64_t *const pushed = run->board, *const looked = pushed + 1;
    static const uint32_t ROW[] = {0, HOT - 1, HOT, COLD, TAIL - 1, TAIL, ROWS - 1};
    float grad[7], *const seen = (float *)(void *)(pushed + SEEN_BY_OTHER);
    struct shmtrain_work w;
    int rc;
    for (uint32_t i = 0; (rc = shmtrain_next(s, &w)) == 1; i++) {
        for (uint32_t r = 0; r < 7; r++) grad[r] = -1;
        if (i == 0 && w.epoch == 0 && s->seat->rank == 0) {
            if ((rc = shmtrain_push_rows(s, 0, ROW, 7, grad)) < 0) return rc;
            for (uint32_t r = 0; r < 7 && rc == 0; r++) rc = shmtrain_pull(s, 0, ROW[r], 1, &seen[16 + r]);
            store_release(pushed, 1);
            wait_for(looked);
        } else if (i == 0 && w.epoch == 0) {
            wait_for(pushed);
            for (uint32_t r = 0; r < 7 && rc >= 0; r++) rc = shmtrain_pull(s, 0, ROW[r], 1, &seen[r]);
            for (uint32_t r = 0; r < 7 && rc >= 0; r++)
                rc = run->k->backend->store->read(run->store, 0, ROW[r], 1, &seen[8 + r]);
            store_release(looked, 1);
        }
        if (rc < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void hot_rows_are_private_until_they_are_merged_and_cold_ones_are_seen_at_once(void **state) {
    static const float FOR_OTHERS[] = {0, 0, 1, 1, 1, 0, 0};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const struct kase k =
            case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1000), 2, kind ? &SHMT_TEAM_PROCESSES : &SHMT_TEAM_THREADS);
        struct run run;
        float last;
        begin(&run, &k, spec_for(&k, ITEMS));
        go_well(&run, push_and_look);
        const float *seen = (float *)(void *)((_Atomic uint64_t *)run.board + SEEN_BY_OTHER);
        for (uint32_t r = 0; r < 7; r++) {
            assert_true(seen[16 + r] == 1);            /* who has pushed sees all of it, */
            assert_true(seen[r] == FOR_OTHERS[r]);     /* others what is shared, */
            assert_true(seen[8 + r] == FOR_OTHERS[r]); /* as does the master; */
        }
        assert_int_equal(k.backend->store->read(run.store, 0, ROWS - 1, 1, &last), 0);
        assert_true(first_float(&run) == 1 && last == 1); /* and in the end it has everything */
        end(&run);
    }
}

/* ---- rules and their state ---- */

static int push_all_kinds(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    for (uint32_t i = 0; (rc = shmtrain_next(s, &w)) == 1; i++) {
        const float g = 0.25f + 0.125f * (float)((i + w.epoch) % 5);
        const uint32_t row[] = {3, HOT - 1, HOT, COLD, TAIL - 1, TAIL, ROWS - 1};
        const float grad[] = {g, -g, 0.5f * g, -0.5f * g, g, 2 * g, -0.25f * g};
        if ((rc = shmtrain_push_rows(s, 0, row, 7, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void train(struct shmt_policy policy, uint32_t n_seats, enum shmt_rule_kind kind, float *out) {
    const struct kase k = case_of(policy, n_seats, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct run run;
    if (policy.replicas == SHMT_REPLICAS_ONE) spec.hot_floats = 0;
    spec.l2_rows[0] = ROWS - 1;
    spec.rule = rule_of(kind);
    spec.rate.base = 0.125f;
    begin(&run, &k, spec);
    for (uint32_t i = 0; spec.curvatures && i < HOT + PAGE_FLOATS; i++)
        ((float *)shmt_array_at(k.backend, run.store, SHMT_ARRAY_CURVATURE))[i] = 0.01f;
    if (spec.hot_floats) run.epoch_end = check_copies;
    go_well(&run, push_all_kinds);
    read_with_state(&run, out);
    end(&run);
}

static void one_worker_has_the_bits_that_it_has_without(void **state) {
    static float with[(1 + SHMT_MAX_PLANES) * ROWS], without[(1 + SHMT_MAX_PLANES) * ROWS];
    static const struct shmt_policy LIVE = {.write = SHMT_WRITE_RACY, .staleness = INF};
    (void)state;
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++) {
        if (shmt_rule_needs_norms(rule)) continue; /* no live mode has them */
        train(LIVE, 1, rule, without);
        train(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 1, rule, with);
        assert_memory_equal(with, without, sizeof with);
        assert_true(with[3] != 0 && with[COLD] != 0 && with[ROWS - 1] != 0);
    }
}

static void state_of_several_stays_possible_and_is_where_it_belongs(void **state) {
    static float out[(1 + SHMT_MAX_PLANES) * ROWS];
    (void)state;
    for (enum shmt_rule_kind rule = 0; rule < SHMT_N_RULES; rule++)
        for (int node = 0; node < 2 && !shmt_rule_needs_norms(rule); node++) {
            train(node ? HOT_NODE(SHMT_WRITE_RACY, INF, 1) : HOT_WORKER(SHMT_WRITE_RACY, 2, 2), 4, rule, out);
            assert_state_is_possible(rule, SHMT_MERGE_DAMPED, ROWS, out);
            for (uint32_t row = 0; row < ROWS; row++) {
                const bool pushed = row == 3 || row == HOT - 1 || row == HOT || row == COLD || row == TAIL - 1 || row == TAIL ||
                                    row == ROWS - 1;
                assert_true(pushed || out[row] == 0);
            }
            assert_true(out[3] < 0 && out[HOT - 1] > 0 && out[HOT] < 0 && out[COLD] > 0 && out[TAIL - 1] < 0 && out[TAIL] < 0 &&
                        out[ROWS - 1] > 0);
        }
}

/* ---- tiers ---- */

static void every_line_that_is_held_is_in_one_tier_and_the_bias_in_the_first(void **state) {
    static uint8_t tier_of[(HOT + PAGE_FLOATS) / 16];
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 2, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_seat *seat;
    struct shmt_error e;
    struct run run;
    (void)state;
    spec.l2_rows[0] = ROWS - 1;
    begin(&run, &k, spec);
    for (uint32_t i = 0; i < HOT + PAGE_FLOATS; i++)
        ((float *)shmt_array_at(k.backend, run.store, SHMT_ARRAY_CURVATURE))[i] = 1 / (1 + (float)i);
    assert_int_equal(k.backend->seat->enter(run.store, 0, 0, &seat, &e), 0);
    const struct shmt_shm_merging *m = shmt_shm_seat_of(seat)->merging;
    memset(tier_of, 0, sizeof tier_of);
    for (uint32_t t = 0; t < SHMT_SHM_TIERS; t++)
        for (uint64_t i = 0; i < m->tier[t].n; i++) {
            const struct shmt_shm_run *r = &m->tier[t].run[i];
            assert_true(r->from < r->to && r->from / SHMT_MERGE_FLOATS == (r->to - 1) / SHMT_MERGE_FLOATS);
            for (uint64_t line = r->from / 16; line < r->to / 16; line++) {
                assert_int_equal(tier_of[line], 0);
                tier_of[line] = (uint8_t)(1 + t);
            }
        }
    for (uint64_t line = 0; line < sizeof tier_of; line++) {
        const bool is_bias = line == (HOT + ROWS - 1 - TAIL) / 16;
        assert_true(tier_of[line] > 0 && (!is_bias || tier_of[line] == 1));
    }
    assert_int_equal(tier_of[0], 1);
    k.backend->seat->leave(seat);
    end(&run);
}

/* ---- windows ---- */

static uint32_t mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t n = 0;
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) n += strstr(line, "shmtrain-store") != NULL;
    fclose(maps);
    return n;
}

static void a_window_goes_with_its_seat(void **state) {
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_RACY, INF, 1), 2, &SHMT_TEAM_THREADS);
    struct shmt_spec spec = spec_for(&k, ITEMS);
    struct shmt_seat *seat;
    struct shmt_error e;
    struct run run;
    (void)state;
    spec.rule = rule_of(SHMT_RULE_ADAGRAD);
    begin(&run, &k, spec);
    const uint32_t before = mappings();
    assert_int_equal(k.backend->seat->enter(run.store, 1, 0, &seat, &e), 0);
    assert_true(mappings() > before);
    k.backend->seat->leave(seat);
    assert_int_equal(mappings(), before);
    end(&run);
}

/* One of two works on a mapping of its own, as a program does that takes part by name. */
struct half {
    struct run *run;
    struct shmt_store *store;
    uint32_t rank;
    int rc;
    struct shmt_error error;
};

static void *work_half(void *arg) {
    struct half *h = arg;
    shmtrain_session s;
    h->rc = shmt_session_enter(&s, &SHMT_BACKEND_SHM, h->store, &h->run->spec, h->rank, 0, &h->error);
    if (h->rc < 0) return NULL;
    h->rc = push_ones(h->run, &s);
    h->error = s.error;
    shmt_session_leave(&s);
    return NULL;
}

static void who_maps_the_segment_elsewhere_takes_part(void **state) {
    const struct kase k = case_of(HOT_WORKER(SHMT_WRITE_ATOMIC, INF, 1), 2, &SHMT_TEAM_THREADS);
    const float all = EPOCHS * ITEMS;
    struct shmt_store *other;
    struct shmt_error e;
    struct run run;
    float last, cold;
    pthread_t thread[2];
    (void)state;
    begin(&run, &k, spec_for(&k, ITEMS));
    assert_int_equal(shmt_shm_attach(&run.spec, shmt_shm_fd(run.store), 0, &other, &e), 0);
    assert_ptr_not_equal(other->weight, run.store->weight);
    struct half half[2] = {{.run = &run, .store = run.store, .rank = 0}, {.run = &run, .store = other, .rank = 1}};
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, work_half, &half[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 2; i++)
        if (half[i].rc != 0) fail_msg("%s", half[i].error.text);
    assert_int_equal(k.backend->store->read(run.store, 0, ROWS - 1, 1, &last), 0);
    assert_int_equal(k.backend->store->read(run.store, 0, COLD, 1, &cold), 0);
    assert_true(first_float(&run) == all && last == all && cold == all);
    k.backend->store->destroy(other);
    end(&run);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replicas_hold_the_first_rows_and_the_page_of_the_last),
        cmocka_unit_test(parts_that_cannot_be_held_are_refused),
        cmocka_unit_test(the_need_counts_what_replicas_hold),
        cmocka_unit_test(nothing_is_lost_of_rows_that_are_held_and_of_those_that_are_shared),
        cmocka_unit_test(hot_rows_are_private_until_they_are_merged_and_cold_ones_are_seen_at_once),
        cmocka_unit_test(one_worker_has_the_bits_that_it_has_without),
        cmocka_unit_test(state_of_several_stays_possible_and_is_where_it_belongs),
        cmocka_unit_test(every_line_that_is_held_is_in_one_tier_and_the_bias_in_the_first),
        cmocka_unit_test(a_window_goes_with_its_seat),
        cmocka_unit_test(who_maps_the_segment_elsewhere_takes_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
