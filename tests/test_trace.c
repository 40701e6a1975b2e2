/* What seats note for a trace: rings on memory of the test's own, with made-up times; then every backend in every mode,
 * where events must follow one another, add up to the counters, and change no bit of what is learned. */
#include "conformance.h"
#include "sanitized.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "math/logistic.h"
#include "ps/meter.h"

/* ---- rings ---- */

enum { ROOM = 8 };

static struct {
    struct shmt_ring ring;
    struct shmt_event event[ROOM];
} memory;

static struct shmt_trace begin_ring(void) {
    struct shmt_trace trace;
    memset(&memory, 0, sizeof memory);
    assert_int_equal(sizeof memory, shmt_ring_bytes(ROOM));
    shmt_trace_begin(&trace, &memory.ring, ROOM);
    return trace;
}

/* What a reader sees at now_ns, in out (ROOM + 1). */
static uint32_t read_ring(uint64_t now_ns, struct shmt_event *out, uint64_t *lost_out, bool *open_out) {
    return shmt_ring_read(&memory.ring, ROOM, now_ns, out, lost_out, open_out);
}

static uint32_t read_closed(struct shmt_event *out) {
    uint64_t lost;
    bool open;
    const uint32_t n = read_ring(UINT64_MAX, out, &lost, &open);
    assert_int_equal(lost, 0);
    assert_false(open);
    return n;
}

static void assert_event(const struct shmt_event *e, enum shmt_event_kind kind, uint64_t begin_ns, uint64_t ns) {
    assert_int_equal(e->kind, kind);
    assert_int_equal(e->begin_ns, begin_ns);
    assert_int_equal(e->ns, ns);
}

static void what_goes_on_becomes_an_event_when_something_else_begins(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    (void)state;
    shmt_trace_step(&t, 2, 7);
    shmt_trace_turn_at(&t, SHMT_EVENT_AGGREGATE, 100);
    shmt_trace_turn_at(&t, SHMT_EVENT_UPDATE, 130);
    shmt_trace_turn_at(&t, SHMT_EVENT_NONE, 135);
    t.for_whom = 3;
    shmt_trace_turn_at(&t, SHMT_EVENT_WAIT, 140);
    shmt_trace_turn_at(&t, SHMT_EVENT_EVALUATE, 140); /* of no length: none */
    shmt_trace_turn_at(&t, SHMT_EVENT_NONE, 200);
    assert_int_equal(read_closed(e), 3);
    assert_event(&e[0], SHMT_EVENT_AGGREGATE, 100, 30);
    assert_event(&e[1], SHMT_EVENT_UPDATE, 130, 5);
    assert_event(&e[2], SHMT_EVENT_EVALUATE, 140, 60);
    for (int i = 0; i < 3; i++) assert_true(e[i].epoch == 2 && e[i].step == 7 && e[i].parts == 1);
}

static void a_full_ring_keeps_the_last_events_and_counts_the_others(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    uint64_t lost;
    bool open;
    (void)state;
    for (uint64_t i = 0; i < 3 * ROOM + 1; i++) shmt_trace_turn_at(&t, i % 2 ? SHMT_EVENT_WAIT : SHMT_EVENT_MERGE, 10 * i);
    shmt_trace_turn_at(&t, SHMT_EVENT_NONE, 10 * (3 * ROOM + 1)); /* ends the last one */
    assert_int_equal(read_ring(0, e, &lost, &open), ROOM);
    assert_int_equal(lost, 2 * ROOM + 1);
    for (uint64_t i = 0; i < ROOM; i++) {
        const uint64_t number = 2 * ROOM + 1 + i;
        assert_event(&e[i], number % 2 ? SHMT_EVENT_WAIT : SHMT_EVENT_MERGE, 10 * number, 10);
    }
}

static struct shmtrain_work item(uint32_t epoch, uint64_t n) { return (struct shmtrain_work){.epoch = epoch, .n = n}; }

/* An item with so many turns of pulling and pushing, each of which takes as long as its number; ends at a time that is
 * returned. The item begins at a time of the real clock, so that made-up ones count from there. */
static uint64_t do_item(struct shmt_trace *t, uint32_t turns, uint64_t *began_ns_out) {
    const struct shmtrain_work work = item(1, 50);
    shmt_trace_item(t, &work, 4);
    uint64_t at = *began_ns_out = t->since_ns;
    for (uint32_t i = 0; i < turns; i++) {
        shmt_trace_turn_at(t, SHMT_EVENT_PULL, at += 1000);
        shmt_trace_turn_at(t, SHMT_EVENT_COMPUTE, at += i);
        shmt_trace_turn_at(t, SHMT_EVENT_PUSH, at += 10);
        shmt_trace_turn_at(t, SHMT_EVENT_COMPUTE, at += 100);
    }
    shmt_trace_turn_at(t, SHMT_EVENT_NONE, at);
    shmt_trace_item_ends(t);
    return at;
}

static void few_turns_of_an_item_are_told_one_by_one(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    uint64_t at;
    (void)state;
    do_item(&t, 2, &at);
    assert_int_equal(read_closed(e), 7); /* the first pull took no time */
    assert_event(&e[0], SHMT_EVENT_COMPUTE, at, 1000);
    assert_event(&e[1], SHMT_EVENT_COMPUTE, at + 1000, 10);
    assert_event(&e[2], SHMT_EVENT_PUSH, at + 1010, 100);
    assert_event(&e[3], SHMT_EVENT_COMPUTE, at + 1110, 1000);
    assert_event(&e[4], SHMT_EVENT_PULL, at + 2110, 1);
    assert_event(&e[5], SHMT_EVENT_COMPUTE, at + 2111, 10);
    assert_event(&e[6], SHMT_EVENT_PUSH, at + 2121, 100);
    for (int i = 0; i < 7; i++) assert_true(e[i].epoch == 1 && e[i].step == 4 && e[i].count == 50 && e[i].parts == 1);
}

static void many_turns_of_an_item_are_added_up_and_fill_its_time(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    uint64_t at;
    (void)state;
    const uint64_t end = do_item(&t, 100, &at);
    assert_int_equal(read_closed(e), 3);
    assert_event(&e[0], SHMT_EVENT_PULL, at, 99 * 100 / 2);
    assert_event(&e[1], SHMT_EVENT_COMPUTE, at + e[0].ns, 100 * 1010);
    assert_event(&e[2], SHMT_EVENT_PUSH, e[1].begin_ns + e[1].ns, 100 * 100);
    assert_int_equal(e[2].begin_ns + e[2].ns, end);
    assert_int_equal(e[0].parts, 100);
    assert_int_equal(e[1].parts, 201); /* between the turns, before the first and behind the last */
    assert_int_equal(e[2].parts, 100);
}

static void a_wait_in_the_middle_of_an_item_stands_where_it_was(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    const struct shmtrain_work work = item(0, 5);
    (void)state;
    shmt_trace_item(&t, &work, 0);
    const uint64_t at = t.since_ns;
    shmt_trace_turn_at(&t, SHMT_EVENT_PULL, at + 10);
    t.for_whom = 2;
    shmt_trace_turn_at(&t, SHMT_EVENT_WAIT, at + 30);
    shmt_trace_turn_at(&t, SHMT_EVENT_COMPUTE, at + 70);
    shmt_trace_turn_at(&t, SHMT_EVENT_NONE, at + 75);
    assert_int_equal(read_closed(e), 4);
    assert_event(&e[0], SHMT_EVENT_COMPUTE, at, 10);
    assert_event(&e[1], SHMT_EVENT_PULL, at + 10, 20);
    assert_event(&e[2], SHMT_EVENT_WAIT, at + 30, 40);
    assert_int_equal(e[2].count, 2);
    assert_event(&e[3], SHMT_EVENT_COMPUTE, at + 70, 5);
}

static void shares_divide_the_time_in_proportion_to_what_was_measured(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    (void)state;
    shmt_trace_turn(&t, SHMT_EVENT_AGGREGATE);
    const uint64_t at = t.since_ns;
    while (shmt_now_ns() < at + 1000) continue;
    shmt_trace_shares(&t, 30, 10, 70000);
    assert_int_equal(read_closed(e), 2);
    const uint64_t ns = e[0].ns + e[1].ns;
    assert_event(&e[0], SHMT_EVENT_AGGREGATE, at, (uint64_t)((double)ns * 0.75));
    assert_event(&e[1], SHMT_EVENT_UPDATE, at + e[0].ns, ns - e[0].ns);
    assert_int_equal(e[0].parts, UINT16_MAX);
    assert_true(ns >= 1000 && at + ns == t.since_ns);
}

static void what_a_seat_had_in_hand_when_it_died_is_read_as_unfinished(void **state) {
    struct shmt_trace t = begin_ring();
    struct shmt_event e[ROOM + 1];
    const struct shmtrain_work work = item(0, 5);
    uint64_t lost;
    bool open;
    (void)state;
    shmt_trace_turn_at(&t, SHMT_EVENT_WAIT, 100);
    assert_int_equal(read_ring(150, e, &lost, &open), 1);
    assert_true(open);
    assert_event(&e[0], SHMT_EVENT_WAIT, 100, 50);
    assert_int_equal(read_ring(0, e, &lost, &open), 0); /* nobody asks */
    shmt_trace_item(&t, &work, 0);
    shmt_trace_turn(&t, SHMT_EVENT_PULL);
    const uint32_t n = read_ring(t.since_ns + 5, e, &lost, &open);
    assert_true(open && n == 2);
    assert_int_equal(e[1].kind, SHMT_EVENT_ITEM);
    assert_true(e[1].begin_ns <= t.since_ns && e[1].begin_ns + e[1].ns == t.since_ns + 5);
}

static void whatever_stands_in_a_ring_is_read_without_harm(void **state) {
    struct shmt_event e[ROOM + 1];
    uint64_t lost;
    bool open;
    (void)state;
    for (uint64_t round = 0; round < 20000; round++) {
        unsigned char *bytes = (unsigned char *)&memory;
        for (size_t i = 0; i < sizeof memory; i++) bytes[i] = (unsigned char)shmt_hash64(round, i, 1, 0);
        if (round % 3 == 0) store_relaxed(&memory.ring.written, round % 30);
        if (round % 2 == 0) store_relaxed(&memory.ring.doing, (uint32_t)round % 20);
        const uint32_t n = read_ring(round % 5 ? shmt_hash64(round, 0, 2, 0) : 0, e, &lost, &open);
        assert_true(n <= ROOM + (uint32_t)open);
        for (uint32_t i = 0; i < n; i++) {
            assert_in_range(e[i].kind, SHMT_EVENT_PULL, i == n - 1 && open ? SHMT_EVENT_ITEM : SHMT_EVENT_HOSTS);
            assert_true(e[i].begin_ns + e[i].ns >= e[i].begin_ns);
        }
    }
}

/* ---- backends ---- */

enum { N = 700, FEATURES = 6000, NNZ = 6, ROWS = FEATURES + 1, EVENTS = 8192 };
static uint64_t row_start[N + 1];
static uint32_t column[N * NNZ];
static float value_of[N * NNZ], label[N];

static int make_problem(void **state) {
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        for (uint32_t j = 0; j < NNZ; j++) {
            const uint64_t h = shmt_hash64(3, i, j, 0);
            column[i * NNZ + j] = (uint32_t)(j * (FEATURES / NNZ) + shmt_below(h, FEATURES / NNZ));
            value_of[i * NNZ + j] = (float)shmt_unit(shmt_mix64(h)) - 0.4f;
        }
        row_start[i + 1] = (i + 1) * NNZ;
        label[i] = shmt_hash64(4, column[i * NNZ], 0, 0) & 1 ? 1.0f : -1.0f;
    }
    return 0;
}

/* How the examples are handed over. */
static struct {
    uint32_t group;
    bool values, in_order;
} how;

struct slopes {
    const uint32_t *order; /* NULL: examples first .. */
    uint64_t first;
};

static void slope_of(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    const struct slopes *s = arg;
    for (uint32_t k = 0; k < n; k++) {
        const float y = label[s->order ? s->order[first + k] : s->first + first + k];
        float loss;
        slope_out[k] = y * shmt_logistic(y * dot[k], &loss);
    }
}

static int learn(struct run *run, shmtrain_session *s) {
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        struct slopes slopes = {.order = how.in_order ? NULL : order, .first = w.first};
        const struct shmtrain_csr x = {.size = sizeof(struct shmtrain_csr),
                                       .n = (uint32_t)w.n,
                                       .bias = 1,
                                       .start = row_start + (how.in_order ? w.first : 0),
                                       .id = column,
                                       .value = how.values ? value_of : NULL,
                                       .order = slopes.order};
        if ((rc = shmtrain_each(s, 0, &x, how.group, slope_of, &slopes)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- the same bits ---- */

static float weights[2][ROWS];

static void train(const struct kase *k, const struct shmt_rule *rule, uint32_t trace_events, float out[ROWS]) {
    struct run run;
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    spec.rule = *rule;
    spec.rate.base = 0.1f;
    spec.l2_rows[0] = FEATURES;
    spec.trace_events = trace_events;
    begin(&run, k, spec);
    go_well(&run, learn);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, ROWS, out), 0);
    end(&run);
}

static void traced_runs_have_the_bits_of_others(const struct kase *k) {
    static const uint32_t GROUPS[] = {1, 4, 64};
    if (shmt_policy_is_live(&k->policy) && k->n_seats > 1) return; /* these never have the same bits twice */
    if (shmt_policy_has_rounds(&k->policy) && k->n_seats > 1) return;
    if (WATCHES_RACES && k->n_seats == 1) return;
    for (uint32_t i = 0; i < 2 * SHMT_N_RULES; i += SANITIZED ? 5 : 1) { /* whatever the rule, the same events are written */
        const struct shmt_rule rule = {
            .kind = i / 2, .l2 = i % 2 ? 0.01f : 0, .momentum = 0.5f, .beta2 = 0.9f, .epsilon = 1e-3f, .beta = 1};
        if (shmt_rule_check_policy(&rule, &k->policy, NULL) != 0) continue;
        how.group = GROUPS[i % 3];
        how.values = i % 2 == 0;
        how.in_order = i % 4 == 3;
        train(k, &rule, 0, weights[0]);
        train(k, &rule, EVENTS, weights[1]);
        assert_memory_equal(weights[1], weights[0], sizeof weights[0]);
        assert_true(weights[0][FEATURES] != 0); /* the bias has moved */
    }
}

static void tracing_changes_no_bit(void **state) {
    (void)state;
    each_case(traced_runs_have_the_bits_of_others);
}

/* ---- what events say ---- */

struct sums {
    uint64_t ns[SHMT_EVENT_KINDS];
    uint32_t n[SHMT_EVENT_KINDS];
};

/* Of one seat; its events follow one another. */
static struct sums sums_of(const struct run *run, uint32_t seat) {
    static struct shmt_event e[EVENTS + 1];
    struct sums sums = {0};
    uint64_t lost, last = 0;
    bool open;
    const struct shmt_ring *ring = run->k->backend->store->ring(run->store, seat);
    assert_non_null(ring);
    const uint32_t n = shmt_ring_read(ring, EVENTS, shmt_now_ns(), e, &lost, &open);
    assert_int_equal(lost, 0);
    assert_false(open);
    for (uint32_t i = 0; i < n; i++) {
        assert_true(e[i].begin_ns >= last && e[i].ns > 0);
        last = e[i].begin_ns + e[i].ns;
        sums.ns[e[i].kind] += e[i].ns;
        sums.n[e[i].kind]++;
        const bool counts_itself = shmt_policy_has_rounds(&run->spec.policy) && e[i].kind > SHMT_EVENT_PUSH; /* about a step */
        if (e[i].kind <= SHMT_EVENT_UPDATE)
            assert_true(e[i].epoch < 3 && (counts_itself || e[i].step < shmt_spec_steps(&run->spec)));
        if (e[i].kind == SHMT_EVENT_WAIT)
            assert_true((e[i].count < run->k->n_seats && e[i].count != seat) || e[i].count == UINT32_MAX);
    }
    return sums;
}

static int look_around(shmtrain_session *s, void *arg, uint32_t epoch) {
    float x;
    (void)arg;
    (void)epoch;
    const struct timespec nap = {.tv_nsec = 100000};
    nanosleep(&nap, NULL);
    return shmtrain_pull(s, 0, 0, 1, &x); /* between two epochs this is part of evaluation */
}

static void events_add_up_to_the_counters(const struct kase *k) {
    struct run run;
    struct sums all = {0};
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    how.group = 4;
    how.values = true;
    spec.trace_events = EVENTS;
    const bool pauses = k->backend->caps & SHMT_CAP_PAUSE;
    if (pauses)
        spec.pauses = (struct shmt_pauses){.steps = 3, .allowed = 1}; /* nobody reads the first snapshot: it is the last */
    begin(&run, k, spec);
    run.epoch_end = look_around;
    go_well(&run, learn);
    for (uint32_t seat = 0; seat < k->n_seats; seat++) {
        const struct shmt_counters *c = k->backend->store->counters(run.store, seat);
        const struct sums sums = sums_of(&run, seat);
        assert_int_equal(sums.ns[SHMT_EVENT_WAIT], load_relaxed(&c->wait_clock_ns) + load_relaxed(&c->wait_epoch_ns));
        assert_int_equal(sums.ns[SHMT_EVENT_EVALUATE], load_relaxed(&c->evaluate_ns));
        assert_int_equal(sums.ns[SHMT_EVENT_MERGE], load_relaxed(&c->merge_ns));
        assert_int_equal(sums.ns[SHMT_EVENT_SNAPSHOT], load_relaxed(&c->pause_ns));
        assert_int_equal(sums.n[SHMT_EVENT_SNAPSHOT], pauses);
        assert_in_range(sums.n[SHMT_EVENT_EVALUATE], 3, pauses ? 4 : 3); /* at the end of an epoch it comes in between */
        uint64_t busy_ns = 0;
        for (int kind = SHMT_EVENT_PULL; kind <= SHMT_EVENT_UPDATE; kind++) busy_ns += sums.ns[kind];
        assert_true(busy_ns <= load_relaxed(&c->busy_ns));
        for (int kind = 0; kind < SHMT_EVENT_KINDS; kind++) all.n[kind] += sums.n[kind];
    }
    assert_true(all.n[SHMT_EVENT_PULL] > 0 && all.n[SHMT_EVENT_COMPUTE] > 0 && all.n[SHMT_EVENT_PUSH] > 0);
    const bool live = shmt_policy_is_live(&k->policy);
    assert_int_equal(all.n[SHMT_EVENT_AGGREGATE] > 0, !live);
    assert_int_equal(all.n[SHMT_EVENT_UPDATE] > 0, !live);
    assert_int_equal(all.n[SHMT_EVENT_MERGE] > 0, shmt_policy_merges_replicas(&k->policy));
    end(&run);
}

static void events_follow_one_another_and_add_up(void **state) {
    (void)state;
    each_case(events_add_up_to_the_counters);
}

/* Calls that copy rows are told as what they are, too. */
static int copy_and_push(struct run *run, shmtrain_session *s) {
    static _Thread_local float x[ROWS];
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = shmtrain_pull(s, 0, 0, ROWS, x)) < 0 || (rc = shmtrain_push(s, 0, 0, ROWS, x)) < 0 ||
            (rc = shmtrain_clock(s, NULL)) < 0)
            return rc;
    return rc;
}

static void copies_of_rows_are_events(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, N, ROWS, 1);
    spec.trace_events = EVENTS;
    begin(&run, k, spec);
    go_well(&run, copy_and_push);
    uint32_t pulls = 0, pushes = 0;
    for (uint32_t seat = 0; seat < k->n_seats; seat++) {
        pulls += sums_of(&run, seat).n[SHMT_EVENT_PULL];
        pushes += sums_of(&run, seat).n[SHMT_EVENT_PUSH];
    }
    assert_true(pulls > 0 && pushes > 0);
    end(&run);
}

static void what_copies_rows_pulls(void **state) {
    (void)state;
    each_case(copies_of_rows_are_events);
}

static void without_a_trace_there_are_no_rings(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, N, ROWS, 1));
    assert_null(k->backend->store->ring(run.store, 0));
    end(&run);
}

static void nothing_is_kept_where_nobody_asks(void **state) {
    (void)state;
    each_case(without_a_trace_there_are_no_rings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_on_becomes_an_event_when_something_else_begins),
        cmocka_unit_test(a_full_ring_keeps_the_last_events_and_counts_the_others),
        cmocka_unit_test(few_turns_of_an_item_are_told_one_by_one),
        cmocka_unit_test(many_turns_of_an_item_are_added_up_and_fill_its_time),
        cmocka_unit_test(a_wait_in_the_middle_of_an_item_stands_where_it_was),
        cmocka_unit_test(shares_divide_the_time_in_proportion_to_what_was_measured),
        cmocka_unit_test(what_a_seat_had_in_hand_when_it_died_is_read_as_unfinished),
        cmocka_unit_test(whatever_stands_in_a_ring_is_read_without_harm),
        cmocka_unit_test(tracing_changes_no_bit),
        cmocka_unit_test(events_follow_one_another_and_add_up),
        cmocka_unit_test(what_copies_rows_pulls),
        cmocka_unit_test(nothing_is_kept_where_nobody_asks),
    };
    return cmocka_run_group_tests(tests, make_problem, NULL);
}
