/* ps: what follows from a spec by arithmetic, the flat array of parameters, and what a session asks of its backend, in which
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/line.h"
#include "base/random.h"
#include "ps/flat.h"
#include "ps/meter.h"
#include "ps/session.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

/* ---- the spec ---- */

static struct shmt_spec a_spec(enum shmt_write write) {
    struct shmt_spec spec = {.n_seats = 2,
                             .n_workers = 2,
                             .n_examples = 10,
                             .epochs = 3,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {.write = write, .staleness = write == SHMT_WRITE_RACY ? SHMT_STALENESS_INF : 0},
                             .batch = 4,
                             .n_chunks = 2,
                             .item = 3,
                             .order = {.seed = 1, .n_examples = 10},
                             .rate = {.base = 0.5f, .kind = SHMT_RATE_CONSTANT},
                             .n_tables = 1};
    strcpy(spec.table[0].name, "weight");
    spec.table[0].rows = 4;
    spec.table[0].width = 1;
    spec.l2_rows[0] = 4;
    return spec;
}

static void an_epoch_is_cut_into_batches_or_items(void **state) {
    const struct shmt_spec sync = a_spec(SHMT_WRITE_AGGREGATE), live = a_spec(SHMT_WRITE_RACY);
    (void)state;
    assert_int_equal(shmt_spec_steps(&sync), 3); /* 4, 4, 2 */
    assert_int_equal(shmt_spec_examples_of_step(&sync, 0), 4);
    assert_int_equal(shmt_spec_examples_of_step(&sync, 2), 2);
    assert_int_equal(shmt_spec_pieces(&sync), 6);
    assert_int_equal(shmt_spec_steps(&live), 4); /* 3, 3, 3, 1 */
    assert_int_equal(shmt_spec_examples_of_step(&live, 3), 1);
    assert_int_equal(shmt_spec_pieces(&live), 4);
}

static void the_examples_of_all_steps_are_all_examples(void **state) {
    (void)state;
    for (uint64_t n = 1; n < 40; n++)
        for (uint32_t each = 1; each < 12; each++) {
            struct shmt_spec spec = a_spec(SHMT_WRITE_AGGREGATE);
            uint64_t sum = 0;
            spec.n_examples = n;
            spec.batch = each;
            for (uint64_t step = 0; step < shmt_spec_steps(&spec); step++) {
                assert_true(shmt_spec_examples_of_step(&spec, step) > 0);
                sum += shmt_spec_examples_of_step(&spec, step);
            }
            assert_int_equal(sum, n);
        }
}

static void a_rate_follows_from_how_much_of_the_run_lies_before_the_step(void **state) {
    struct shmt_spec spec = a_spec(SHMT_WRITE_AGGREGATE);
    (void)state;
    assert_true(shmt_spec_rate(&spec, 2, 2) == 0.5f);
    spec.rate = (struct shmt_rate){.base = 2, .kind = SHMT_RATE_INVERSE, .power = 1, .every = 1};
    assert_true(shmt_spec_rate(&spec, 0, 0) == 2);
    assert_true(shmt_spec_rate(&spec, 1, 0) == 1);                  /* 2 / (1 + 1) */
    assert_true(shmt_spec_rate(&spec, 1, 2) == (float)(2.0 / 2.8)); /* 8 of 10 examples of the second epoch lie before */
    spec.batch = 2;                                                 /* the same place of the run, whatever the steps are */
    assert_true(shmt_spec_rate(&spec, 1, 4) == (float)(2.0 / 2.8));
    spec.rate.power = 0.5f;
    assert_true(shmt_spec_rate(&spec, 3, 0) == 1); /* 2 / sqrt(4) */
}

static void the_limit_of_steps_counts_over_epochs(void **state) {
    struct shmt_spec spec = a_spec(SHMT_WRITE_AGGREGATE);
    (void)state;
    assert_true(shmt_spec_has_step(&spec, 2, 2));
    assert_false(shmt_spec_has_step(&spec, 0, 3)); /* an epoch has three */
    spec.max_steps = 5;
    assert_true(shmt_spec_has_step(&spec, 1, 1));
    assert_false(shmt_spec_has_step(&spec, 1, 2));
    assert_false(shmt_spec_has_step(&spec, 2, 0));
}

static void refused(struct shmt_spec spec, const char *words) {
    struct shmt_error e = {0};
    assert_int_equal(shmt_spec_check(&spec, &e), SHMTRAIN_E_USAGE);
    if (!strstr(e.text, words)) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
}

static void what_no_backend_could_serve_is_refused_with_what_to_do(void **state) {
    const struct shmt_spec good = a_spec(SHMT_WRITE_AGGREGATE);
    (void)state;
    assert_int_equal(shmt_spec_check(&good, NULL), 0);
#define WITHOUT(field, value, words)  \
    do {                              \
        struct shmt_spec spec = good; \
        spec.field = value;           \
        refused(spec, words);         \
    } while (0)
    WITHOUT(n_seats, 0, "at least one worker");
    WITHOUT(n_workers, 0, "at least one worker");
    WITHOUT(n_workers, good.n_seats + 1, "a seat each");
    WITHOUT(pauses.steps, 1, "never pauses");
    WITHOUT(pauses.epochs, 1, "never pauses");
    WITHOUT(n_examples, 0, "shmtrain_store_examples");
    WITHOUT(n_examples, (uint64_t)1 << 32, "4294967295");
    WITHOUT(epochs, 0, "at least one epoch");
    WITHOUT(batch, 0, "at least one example");
    WITHOUT(item, 0, "at least one example");
    WITHOUT(n_tables, 0, "shmtrain_store_table");
    WITHOUT(n_tables, SHMT_MAX_TABLES + 1, "65 tables");
    WITHOUT(table[0].rows, 0, "no rows");
    WITHOUT(tuning[0].role, 3, "has the role 3, which is none");
    WITHOUT(tuning[0].role, SHMTRAIN_STATISTIC, "has a rate of 0");
    WITHOUT(tuning[0].rate, -1, "has a rate of -1");
    WITHOUT(tuning[0].decay, INFINITY, "has a decay of inf");
    WITHOUT(table[0].rows, (uint64_t)1 << 61, "too large");
    WITHOUT(policy.staleness, SHMT_STALENESS_INF, "aggregate");
}

static void tables_that_fit_alone_but_not_together_are_refused(void **state) {
    struct shmt_spec spec = a_spec(SHMT_WRITE_RACY);
    (void)state;
    spec.n_tables = SHMT_MAX_TABLES;
    for (uint32_t t = 0; t < spec.n_tables; t++) {
        spec.table[t] = spec.table[0];
        spec.table[t].rows = (uint64_t)1 << 57;
    }
    refused(spec, "larger than any memory");
}

/* ---- the flat array ---- */

static struct shmt_spec three_tables(void) {
    struct shmt_spec spec = a_spec(SHMT_WRITE_AGGREGATE);
    static const uint64_t ROWS[] = {77, 5, 130}, RULED[] = {76, 5, 0};
    static const uint32_t WIDTH[] = {1, 7, 3};
    spec.n_tables = 3;
    for (uint32_t t = 0; t < 3; t++) {
        spec.table[t] = (struct shmt_table_spec){.rows = ROWS[t], .width = WIDTH[t], .name = "t"};
        spec.l2_rows[t] = RULED[t];
    }
    spec.rule.l2 = 0.25f;
    return spec;
}

static void tables_start_on_lines_of_their_own_and_do_not_overlap(void **state) {
    const struct shmt_spec spec = three_tables();
    const uint64_t line = SHMT_LINE / sizeof(float);
    struct shmt_flat flat;
    uint64_t end = 0;
    (void)state;
    shmt_flat_plan(&spec, &flat);
    for (uint32_t t = 0; t < 3; t++) {
        assert_int_equal(flat.start[t] % line, 0);
        assert_true(flat.start[t] >= end && flat.start[t] < end + line); /* no line is wasted */
        end = flat.start[t] + shmt_table_floats(&spec.table[t]);
    }
    assert_int_equal(flat.n, (end + line - 1) / line * line);
}

static float some(uint64_t i, uint64_t of) { return (float)shmt_unit(shmt_hash64(5, of, i, 0)) - 0.5f; }

/* The update as its formula stands in kernels.h, one element after the other. */
static void apply_plainly(const struct shmt_spec *spec, const struct shmt_flat *flat, float *w, const float *grad, float scale,
                          float rate) {
    for (uint32_t t = 0; t < spec->n_tables; t++)
        for (uint64_t row = 0; row < spec->table[t].rows; row++)
            for (uint32_t column = 0; column < spec->table[t].width; column++) {
                const uint64_t i = flat->start[t] + row * spec->table[t].width + column;
                const float a = rate * (grad[i] * scale), d = row < spec->l2_rows[t] ? rate * spec->rule.l2 : 0;
                w[i] = d == 0 ? w[i] - a : w[i] - (a + d * w[i]) / (1 + d);
            }
}

static void an_update_has_the_same_bits_for_any_cut(void **state) {
    enum { MOST = 1024 };
    const struct shmt_spec spec = three_tables();
    struct shmt_flat flat;
    float before[MOST], grad[MOST], expected[MOST], w[MOST];
    (void)state;
    shmt_flat_plan(&spec, &flat);
    assert_true(flat.n <= MOST);
    for (uint64_t i = 0; i < flat.n; i++) before[i] = expected[i] = some(i, 0);
    for (uint64_t i = 0; i < flat.n; i++) grad[i] = some(i, 1);
    apply_plainly(&spec, &flat, expected, grad, 1 / 64.0f, 0.5f);
    assert_memory_not_equal(expected, before, flat.n * sizeof *w);
    for (uint64_t seed = 0; seed < 300; seed++) {
        memcpy(w, before, sizeof w);
        for (uint64_t from = 0, to; from < flat.n; from = to) { /* also cuts inside lines, rows and the parts of L2 */
            to = shmt_min_u64(flat.n, from + 1 + shmt_below(shmt_hash64(seed, from, 0, 0), seed == 0 ? 1 : 200));
            shmt_flat_apply(&spec, &flat, w, NULL, grad + from, from, to,
                            &(struct shmt_update){.rate = 0.5f, .clip_factor = 1, .scale = 1 / 64.0f, .l2 = spec.rule.l2});
        }
        assert_memory_equal(w, expected, flat.n * sizeof *w); /* the gaps between tables included: nobody writes there */
    }
}

static void no_gradient_is_a_gradient_of_zero(void **state) {
    enum { MOST = 1024 };
    const struct shmt_spec spec = three_tables();
    struct shmt_flat flat;
    float w[MOST], expected[MOST], zero[MOST] = {0};
    (void)state;
    shmt_flat_plan(&spec, &flat);
    for (uint64_t i = 0; i < flat.n; i++) w[i] = expected[i] = some(i, 0);
    shmt_flat_apply(&spec, &flat, expected, NULL, zero, 0, flat.n,
                    &(struct shmt_update){.rate = 0.5f, .clip_factor = 1, .scale = 0.1f, .l2 = spec.rule.l2});
    shmt_flat_apply(&spec, &flat, w, NULL, NULL, 0, flat.n,
                    &(struct shmt_update){.rate = 0.5f, .clip_factor = 1, .scale = 0.1f, .l2 = spec.rule.l2});
    assert_memory_equal(w, expected, flat.n * sizeof *w);
    assert_true(w[0] != some(0, 0) && w[flat.start[0] + 76] == some(76, 0)); /* L2 draws all rows but the bias */
}

/* ---- sessions, on a backend that writes down what it is asked ---- */

struct shmt_store {
    struct shmt_seat seat;
    struct shmt_counters counters;
    float weight[64], buffer[64];
    struct shmt_spec spec;
    uint32_t pieces_left, epochs_left;
    int waits; /* that count as training's */
    int fails; /* what the next publish returns */
    char log[512];
};

static void note(struct shmt_store *store, const char *what) { strcat(strcat(store->log, store->log[0] ? " " : ""), what); }
static struct shmt_store *of(struct shmt_seat *seat) { return (struct shmt_store *)(void *)seat; }

static int fake_enter(struct shmt_store *store, uint32_t rank, uint32_t life, struct shmt_seat **out, struct shmt_error *e) {
    (void)e;
    store->seat = (struct shmt_seat){.rank = rank, .life = life, .counters = &store->counters};
    *out = &store->seat;
    note(store, "enter");
    return 0;
}
static void fake_leave(struct shmt_seat *seat) { note(of(seat), "leave"); }
static int fake_claim(struct shmt_seat *seat, struct shmtrain_work *out) {
    note(of(seat), "claim");
    if (of(seat)->pieces_left == 0) return 0;
    of(seat)->pieces_left--;
    *out = (struct shmtrain_work){.first = 0, .n = 4};
    return 1;
}
static int fake_bind(struct shmt_seat *seat, int t, struct shmt_span *out, int *live_out) {
    struct shmt_store *store = of(seat);
    note(store, "bind");
    *out = (struct shmt_span){
        .weight = store->weight, .sink = store->weight, .rows = store->spec.table[t].rows, .width = store->spec.table[t].width};
    *live_out = 1;
    return 0;
}
static int fake_lend(struct shmt_seat *seat, int t, float **out) {
    (void)t;
    note(of(seat), "lend");
    *out = of(seat)->buffer;
    return 0;
}
static void fake_report(struct shmt_seat *seat, double loss) { note(of(seat), loss == 7 ? "report" : "?"); }
static int fake_publish(struct shmt_seat *seat, struct shmtrain_fate *out) {
    note(of(seat), "publish");
    if (of(seat)->fails) return shmt_fail(&seat->error, of(seat)->fails, "the store is on fire");
    *out = (struct shmtrain_fate){.clock = 1, .applied = 4};
    return 0;
}
/* As a backend counts a wait: that of one who is at work. */
static void fake_wait(struct shmt_seat *seat) {
    if (seat->meter == &seat->counters->busy_ns) of(seat)->waits++;
}
static int fake_meet(struct shmt_seat *seat) {
    note(of(seat), "meet");
    fake_wait(seat);
    return 0;
}
static int fake_turn(struct shmt_seat *seat) {
    note(of(seat), "turn");
    fake_wait(seat);
    of(seat)->pieces_left = 1;
    return --of(seat)->epochs_left > 0;
}
static const struct shmt_seat_ops FAKE_SEAT = {.enter = fake_enter,
                                               .leave = fake_leave,
                                               .claim = fake_claim,
                                               .bind = fake_bind,
                                               .lend = fake_lend,
                                               .report = fake_report,
                                               .publish = fake_publish,
                                               .meet = fake_meet,
                                               .turn = fake_turn};
static const struct shmt_backend FAKE = {.name = "fake", .seat = &FAKE_SEAT};

static void enter(shmtrain_session *s, struct shmt_store *store, uint32_t pieces, uint32_t epochs) {
    struct shmt_error e = {0};
    *store = (struct shmt_store){.spec = a_spec(SHMT_WRITE_RACY), .pieces_left = pieces, .epochs_left = epochs};
    assert_int_equal(shmt_session_enter(s, &FAKE, store, &store->spec, 1, 0, &e), 0);
}

static int note_epoch_end(shmtrain_session *s, void *arg, uint32_t epoch) {
    (void)arg;
    note(s->store, epoch == 0 ? "end-of-0" : "end-of-1");
    return 0;
}

static void a_session_asks_in_the_order_of_the_contract(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    struct shmtrain_fate fate;
    const float grad[4] = {0};
    (void)state;
    enter(&s, &store, 1, 2);
    s.epoch_end = note_epoch_end;
    assert_int_equal(shmtrain_rank(&s), 1);
    assert_int_equal(shmtrain_workers(&s), 2);
    assert_int_equal(shmtrain_next(&s, &w), 1);
    assert_int_equal(shmtrain_push(&s, 0, 0, 4, grad), 0);
    assert_int_equal(shmtrain_push(&s, 0, 0, 4, grad), 0); /* bound once for an item */
    assert_int_equal(shmtrain_report(&s, 7), 0);
    assert_int_equal(shmtrain_clock(&s, &fate), 0);
    assert_int_equal(fate.applied, 4);
    assert_int_equal(shmtrain_next(&s, &w), 1); /* through the end of the epoch */
    assert_int_equal(shmtrain_clock(&s, NULL), 0);
    assert_int_equal(shmtrain_next(&s, &w), 0);
    assert_int_equal(shmtrain_next(&s, &w), 0); /* over stays over, and nobody is asked again */
    shmt_session_leave(&s);
    assert_string_equal(store.log,
                        "enter claim bind report publish claim meet end-of-0 turn claim publish "
                        "claim meet end-of-1 turn leave");
    assert_int_equal(load_relaxed(&store.counters.examples), 8);
    assert_int_equal(load_relaxed(&store.counters.updates), 2); /* pushes of live modes */
}

static int meet_once_more(shmtrain_session *s, void *arg, uint32_t epoch) {
    (void)arg;
    (void)epoch;
    return shmt_session_meet(s);
}

static void waits_for_evaluation_are_no_waits_of_training(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    (void)state;
    enter(&s, &store, 1, 2);
    s.epoch_end = meet_once_more;
    assert_int_equal(shmt_session_meet(&s), 0); /* at the start */
    for (int epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(shmtrain_next(&s, &w), 1);
        assert_int_equal(shmtrain_clock(&s, NULL), 0);
    }
    assert_int_equal(shmtrain_next(&s, &w), 0);
    assert_int_equal(store.waits, 2); /* each epoch's end, and nothing behind it */
    shmt_session_leave(&s);
}

static void a_seats_time_goes_to_one_thing_at_a_time(void **state) {
    struct shmt_counters c = {0};
    struct shmt_seat seat = {.counters = &c};
    (void)state;
    const uint64_t from_ns = shmt_now_ns();
    shmt_meter_begin(&seat);
    shmt_meter_turn(&seat, &c.busy_ns);
    const uint64_t begun_ns = shmt_now_ns();
    assert_int_equal(shmt_meter_read(&c.busy_ns, from_ns - 1), 0);                 /* by the clock of who looked before */
    assert_true(shmt_meter_read(&c.busy_ns, begun_ns + 1000000000) >= 1000000000); /* it goes on */
    assert_int_equal(shmt_meter_read(&c.wait_clock_ns, begun_ns + 1000000000), 0);
    shmt_meter_turn(&seat, &c.wait_clock_ns);
    const uint64_t busy_ns = shmt_meter_read(&c.busy_ns, begun_ns);
    assert_true(busy_ns <= shmt_now_ns() - from_ns);
    assert_int_equal(shmt_meter_read(&c.busy_ns, begun_ns + 1000000000), busy_ns); /* it is over */
    shmt_meter_turn(&seat, &c.busy_ns);
    shmt_meter_turn(&seat, NULL);
    assert_true(shmt_meter_read(&c.busy_ns, 0) >= busy_ns);
    assert_true(shmt_meter_read(&c.busy_ns, 0) + shmt_meter_read(&c.wait_clock_ns, 0) <= shmt_now_ns() - from_ns);
    shmt_meter_turn(&seat, &c.evaluate_ns); /* its owner dies */
    const uint64_t kept_ns = shmt_meter_read(&c.busy_ns, 0);
    shmt_meter_begin(&seat);
    assert_int_equal(shmt_meter_read(&c.evaluate_ns, shmt_now_ns()), 0);
    assert_int_equal(shmt_meter_read(&c.busy_ns, 0), kept_ns);
}

static void calls_out_of_order_change_nothing(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    const float grad[4] = {1, 1, 1, 1};
    (void)state;
    enter(&s, &store, 1, 1);
    assert_int_equal(shmtrain_push(&s, 0, 0, 4, grad), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(s.error.text, "shmtrain_next"));
    assert_int_equal(shmtrain_next(&s, &w), SHMTRAIN_E_USAGE); /* a session that failed goes nowhere */
    assert_string_equal(store.log, "enter");
    for (int i = 0; i < 4; i++) assert_true(store.weight[i] == 0);
    shmt_session_leave(&s);
}

static void a_backends_failure_is_passed_on_with_its_sentence(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    (void)state;
    enter(&s, &store, 1, 1);
    store.fails = SHMTRAIN_E_MEMORY;
    assert_int_equal(shmtrain_next(&s, &w), 1);
    assert_int_equal(shmtrain_clock(&s, NULL), SHMTRAIN_E_MEMORY);
    assert_string_equal(s.error.text, "the store is on fire");
    assert_int_equal(shmtrain_next(&s, &w), SHMTRAIN_E_MEMORY);
    shmt_session_leave(&s);
}

/* By hand: 4 examples, rate 0.5, l2 0.1, gradient sum 2. a = 0.5 / 4 * 2 = 0.25, d = 0.05: 1 - (0.25 + 0.05) / 1.05 = 5/7. The
 * rows from l2_rows on: 1 - 0.25. */
static void a_dense_push_takes_the_mean_and_regularises_the_rows_that_l2_means(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    struct shmt_error e = {0};
    const float grad[4] = {2, 2, 2, 2};
    (void)state;
    enter(&s, &store, 1, 1);
    shmt_session_leave(&s);
    store.spec.rule.l2 = 0.1f;
    store.spec.l2_rows[0] = 2;
    assert_int_equal(shmt_session_enter(&s, &FAKE, &store, &store.spec, 0, 0, &e), 0); /* kernels are chosen when entering */
    for (int i = 0; i < 4; i++) store.weight[i] = 1;
    assert_int_equal(shmtrain_next(&s, &w), 1);
    assert_int_equal(shmtrain_push(&s, 0, 1, 3, grad), 0);
    assert_true(store.weight[0] == 1);
    assert_true(fabsf(store.weight[1] - 5 / 7.0f) < 1e-7f); /* two roundings */
    assert_true(store.weight[2] == 0.75f && store.weight[3] == 0.75f);
    shmt_session_leave(&s);
}

/* 4 examples, rate 0.5: the mean gradient (3, 4) / 4 has the norm 1.25 and becomes 0.25 of it; what is shorter stays. */
static void with_clip_norm_a_live_push_is_as_long_as_that_at_most(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    struct shmtrain_work w;
    const float grad[4] = {0, 0, 3, 4};
    (void)state;
    enter(&s, &store, 1, 1);
    store.spec.rule.clip_norm = 0.25f;
    assert_int_equal(shmtrain_next(&s, &w), 1);
    assert_int_equal(shmtrain_push(&s, 0, 0, 4, grad), 0);
    assert_true(store.weight[0] == 0 && store.weight[1] == 0);
    assert_true(fabsf(store.weight[2] + 0.5f * 0.15f) < 1e-6f && fabsf(store.weight[3] + 0.5f * 0.2f) < 1e-6f);
    store.spec.rule.clip_norm = 100;
    assert_int_equal(shmtrain_push(&s, 0, 2, 2, grad + 2), 0);
    assert_true(fabsf(store.weight[3] + 0.5f * 1.2f) < 1e-6f);
    shmt_session_leave(&s);
}

static void places_beyond_the_last_example_have_no_order(void **state) {
    struct shmt_store store;
    shmtrain_session s;
    uint32_t order[16];
    struct shmtrain_work w = {.first = 8, .n = 2};
    (void)state;
    enter(&s, &store, 1, 1);
    assert_int_equal(shmtrain_order(&s, &w, order), 0);
    assert_int_equal(order[1], 9); /* not shuffled */
    w.n = 3;
    assert_int_equal(shmtrain_order(&s, &w, order), SHMTRAIN_E_USAGE);
    shmt_session_leave(&s);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(an_epoch_is_cut_into_batches_or_items),
        TEST(the_examples_of_all_steps_are_all_examples),
        TEST(a_rate_follows_from_how_much_of_the_run_lies_before_the_step),
        TEST(the_limit_of_steps_counts_over_epochs),
        TEST(what_no_backend_could_serve_is_refused_with_what_to_do),
        TEST(tables_that_fit_alone_but_not_together_are_refused),
        TEST(tables_start_on_lines_of_their_own_and_do_not_overlap),
        TEST(an_update_has_the_same_bits_for_any_cut),
        TEST(no_gradient_is_a_gradient_of_zero),
        TEST(a_session_asks_in_the_order_of_the_contract),
        TEST(waits_for_evaluation_are_no_waits_of_training),
        TEST(a_seats_time_goes_to_one_thing_at_a_time),
        TEST(calls_out_of_order_change_nothing),
        TEST(a_backends_failure_is_passed_on_with_its_sentence),
        TEST(a_dense_push_takes_the_mean_and_regularises_the_rows_that_l2_means),
        TEST(with_clip_norm_a_live_push_is_as_long_as_that_at_most),
        TEST(places_beyond_the_last_example_have_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
