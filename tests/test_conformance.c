/* What every backend must do with work: hand it out, count it, end it, and refuse what cannot be. Values are in
 * test_conformance_values.c. */
#include "conformance.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- every example exactly once ---- */

/* Marks every example that it is handed: board[epoch * n + example]++, each byte by whoever got the example. */
static int mark_examples(struct run *run, shmtrain_session *s) {
    uint8_t *seen = run->board;
    uint32_t order[64];
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.n == 0 || w.n > 64) return SHMTRAIN_E_USAGE;
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) seen[w.epoch * run->spec.n_examples + order[i]]++;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void hands_out_every_example_once(const struct kase *k) {
    static const uint64_t SIZES[] = {1, 2, 63, 64, 65, 1000, 4999};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
        struct run run;
        begin(&run, k, spec_of(k, SIZES[i], 4, 1));
        go_well(&run, mark_examples);
        for (uint64_t at = 0; at < 3 * SIZES[i]; at++) assert_int_equal(((uint8_t *)run.board)[at], 1);
        end(&run);
    }
}

static void every_example_is_handed_out_exactly_once_per_epoch(void **state) {
    (void)state;
    each_case(hands_out_every_example_once);
}

/* ---- epochs ---- */

/* Everybody adds up the same tally; the chief pins it up: board[epoch]. */
static int pin_tally(shmtrain_session *s, void *arg, uint32_t epoch) {
    struct run *run = arg;
    struct shmt_tally tally;
    if (s->backend->seat->tally(s->seat, &tally) != 0) return SHMTRAIN_E_MEMORY;
    if (s->seat->rank == 0) ((struct shmt_tally *)run->board)[epoch] = tally;
    return shmt_session_meet(s);
}

static int report_ones(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch < 2 && (rc = shmtrain_report(s, (double)w.n * 0.5)) < 0) return rc; /* nothing in the last epoch */
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void tallies(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 777, 1, 1));
    run.epoch_end = pin_tally;
    go_well(&run, report_ones);
    for (int epoch = 0; epoch < 3; epoch++) {
        const struct shmt_tally *t = (struct shmt_tally *)run.board + epoch;
        assert_int_equal(t->examples, 777);
        /* What nobody reports is 0, and not the loss of the epoch before. */
        assert_true(t->loss == (epoch < 2 ? 777 * 0.5 : 0));
    }
    end(&run);
}

static void the_tally_of_an_epoch_counts_every_example(void **state) {
    (void)state;
    each_case(tallies);
}

/* Nobody may still train while one looks: the parameters at an epoch's end do not move. */
static int parameters_are_quiet(shmtrain_session *s, void *arg, uint32_t epoch) {
    float before[2], after[2];
    (void)arg;
    (void)epoch;
    for (int i = 0; i < 20; i++) {
        if (shmtrain_pull(s, 0, 0, 2, before) != 0) return SHMTRAIN_E_USAGE;
        usleep(100);
        if (shmtrain_pull(s, 0, 0, 2, after) != 0) return SHMTRAIN_E_USAGE;
        if (memcmp(before, after, sizeof after) != 0) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "the parameters moved");
    }
    return 0;
}

static void keeps_quiet(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 3000, 2, 1));
    run.epoch_end = parameters_are_quiet;
    go_well(&run, count_examples);
    end(&run);
}

static void parameters_do_not_move_at_the_end_of_an_epoch(void **state) {
    (void)state;
    each_case(keeps_quiet);
}

/* ---- ending early ---- */

static void does_so_many_steps(const struct kase *k) {
    static const uint64_t LIMITS[] = {1, 5, 17, 40};
    for (int i = 0; i < 4; i++) {
        struct run run;
        struct shmt_spec spec = spec_of(k, 64 * 10, 2, 1);
        struct shmt_tally *t;
        uint64_t done = 0;
        spec.max_steps = LIMITS[i];
        begin(&run, k, spec);
        run.epoch_end = pin_tally;
        go_well(&run, report_ones);
        t = run.board;
        for (int epoch = 0; epoch < 3; epoch++) done += t[epoch].examples;
        const uint64_t all = 3 * 640, step = shmt_spec_step_examples(&spec);
        const uint64_t steps_per_epoch = shmt_spec_steps(&spec), whole = LIMITS[i] / steps_per_epoch,
                       rest = LIMITS[i] % steps_per_epoch;
        const uint64_t expected = whole >= 3 ? all : whole * 640 + rest * step;
        assert_int_equal(done, expected);
        end(&run);
    }
}

static void a_run_does_exactly_as_many_steps_as_it_may(void **state) {
    (void)state;
    each_case(does_so_many_steps);
}

/* The first one to have had 4 items asks for a stop; all must leave, and no batch may be left half-applied. */
static int stop_after_four(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc, items = 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (++items == 4) store_relaxed(run->k->backend->store->stop_word(run->store), 1);
    }
    return rc;
}

static void stops(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 200, 1, 1);
    spec.rate.base = 1;
    begin(&run, k, spec);
    run.epoch_end = pin_tally;
    go_well(&run, stop_after_four);
    const struct shmt_tally *t = run.board;
    assert_true(t[0].examples > 0 && t[0].examples < 64 * 200);
    assert_int_equal(t[1].examples, 0);
    if (shmt_policy_is_batched(&k->policy)) {
        assert_int_equal(t[0].examples % 64, 0);
        assert_true(first_float(&run) == (float)(t[0].examples / 64));
    }
    if (shmt_policy_has_rounds(&k->policy)) /* each update adds 1, but for rounding */
        assert_true(fabsf(first_float(&run) - (float)updates_made(&run)) < 1e-3f);
    end(&run);
}

static void a_stop_ends_the_run_between_updates(void **state) {
    (void)state;
    each_case(stops);
}

/* The last one fails as soon as it has been at the store once; it may have got no item, when others were quicker. */
static int fail_at_once(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (s->seat->rank == s->spec->n_seats - 1) break;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    if (s->seat->rank == s->spec->n_seats - 1) return shmt_fail(&s->error, SHMTRAIN_E_DATA, "on purpose");
    return rc;
}

static void ends_all_when_one_fails(const struct kase *k) {
    struct run run;
    struct shmt_error e = {0};
    struct shmt_spec spec = spec_of(k, 64 * 1000, 1, 1);
    spec.epochs = 100;
    begin(&run, k, spec);
    assert_int_equal(go(&run, fail_at_once, &e), SHMTRAIN_E_DATA);
    assert_string_equal(e.text, "on purpose");
    end(&run);
}

static void one_workers_failure_ends_the_others_and_is_told(void **state) {
    (void)state;
    each_case(ends_all_when_one_fails);
}

/* ---- misuse ---- */

#define REFUSED(call)                                                                                                          \
    do {                                                                                                                       \
        if ((call) != SHMTRAIN_E_USAGE || s->error.text[0] == '\0') return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%s", #call); \
        shmt_error_clear(&s->error);                                                                                           \
    } while (0)

static int misuse(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    float x[8] = {0}, *lent;
    const uint32_t beyond = 6;
    const uint64_t start[2] = {0, 1};
    const uint32_t id[1] = {0};
    const struct shmtrain_csr csr = {.size = sizeof(struct shmtrain_csr), .n = 1, .start = start, .id = id};
    int rc;
    (void)run;
    REFUSED(shmtrain_clock(s, NULL));
    REFUSED(shmtrain_push(s, 0, 0, 1, x));
    REFUSED(shmtrain_report(s, 1));
    if ((rc = shmtrain_next(s, &w)) == 1) { /* another may have taken all the work */
        REFUSED(shmtrain_next(s, &w));
        REFUSED(shmtrain_pull(s, 1, 0, 1, x));
        REFUSED(shmtrain_pull(s, -1, 0, 1, x));
        REFUSED(shmtrain_pull(s, 0, 6, 1, x));
        REFUSED(shmtrain_pull(s, 0, UINT64_MAX, 2, x));
        REFUSED(shmtrain_push_rows(s, 0, &beyond, 1, x));
        REFUSED(shmtrain_dot(s, 0, &csr, x)); /* width 2 */
        if ((rc = shmtrain_lend(s, 0, &lent)) < 0) return rc;
        REFUSED(shmtrain_push(s, 0, 0, 1, x));
        REFUSED(shmtrain_clock(s, NULL));
        memset(lent, 0, 12 * sizeof *lent);
        if ((rc = shmtrain_push(s, 0, 0, 6, lent)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    while (rc >= 0 && (rc = shmtrain_next(s, &w)) == 1) rc = shmtrain_clock(s, NULL);
    return rc;
}

#define REFUSED_FOR_LENT(call)                                                                                \
    do {                                                                                                      \
        if ((call) != SHMTRAIN_E_USAGE || (!strstr(s->error.text, "lent") && !strstr(s->error.text, "once"))) \
            return shmt_fail(&s->error, SHMTRAIN_E_DATA, "%s: \"%.80s\"", #call, s->error.text);              \
        shmt_error_clear(&s->error);                                                                          \
    } while (0)

static void slope_of_one(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg;
    (void)first;
    (void)dot;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = 1;
}

/* The lent gradient is 0, whatever else is tried is not: what is refused, but done all the same, shows in the parameters. */
static int misuse_lent(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    float one[6] = {1, 1, 1, 1, 1, 1}, *lent, *again;
    const uint64_t start[2] = {0, 1};
    const uint32_t id[1] = {0};
    const struct shmtrain_csr csr = {.size = sizeof(struct shmtrain_csr), .n = 1, .start = start, .id = id};
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_lend(s, 0, &lent)) < 0) return rc;
        memset(lent, 0, 6 * sizeof *lent);
        REFUSED_FOR_LENT(shmtrain_lend(s, 0, &again));
        REFUSED_FOR_LENT(shmtrain_push(s, 0, 0, 6, one));
        REFUSED_FOR_LENT(shmtrain_push(s, 0, 0, 3, lent));
        REFUSED_FOR_LENT(shmtrain_push_sparse(s, 0, &csr, one));
        REFUSED_FOR_LENT(shmtrain_each(s, 0, &csr, 1, slope_of_one, NULL));
        REFUSED_FOR_LENT(shmtrain_push_rows(s, 0, id, 1, one));
        REFUSED_FOR_LENT(shmtrain_clock(s, NULL));
        if ((rc = shmtrain_push(s, 0, 0, 6, lent)) < 0) return rc;
        REFUSED_FOR_LENT(shmtrain_push(s, 0, 0, 6, lent));
        REFUSED_FOR_LENT(shmtrain_push(s, 0, 0, 6, one));
        REFUSED_FOR_LENT(shmtrain_push_rows(s, 0, id, 1, one));
        REFUSED_FOR_LENT(shmtrain_push_sparse(s, 0, &csr, one));
        REFUSED_FOR_LENT(shmtrain_each(s, 0, &csr, 1, slope_of_one, NULL));
        REFUSED_FOR_LENT(shmtrain_lend(s, 0, &again));
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void refuses_misuse_of_lent_buffers(const struct kase *k) {
    float x[6];
    struct run run;
    begin(&run, k, spec_of(k, 1000, 6, 1));
    go_well(&run, misuse_lent);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, 6, x), 0);
    for (int i = 0; i < 6; i++) assert_true(x[i] == 0);
    end(&run);
}

static void a_lent_buffer_is_pushed_once_whole_and_alone(void **state) {
    (void)state;
    each_case(refuses_misuse_of_lent_buffers);
}

static void refuses_misuse(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 1000, 6, 2));
    go_well(&run, misuse);
    end(&run);
}

static void calls_out_of_order_are_refused_with_a_sentence(void **state) {
    (void)state;
    each_case(refuses_misuse);
}

static void refuses_impossible_specs(const struct kase *k) {
    struct shmt_need need;
    struct shmt_error e = {0};
    struct shmt_spec spec = spec_of(k, 10, 1, 1);
    spec.n_examples = 0;
    assert_int_equal(k->backend->plan(&spec, &need, &e), SHMTRAIN_E_USAGE);
    spec = spec_of(k, 10, UINT64_MAX / 4, 1000);
    assert_true(k->backend->plan(&spec, &need, NULL) < 0);
    spec = spec_of(k, 10, 1, 1);
    spec.n_tables = 0;
    assert_int_equal(k->backend->plan(&spec, &need, NULL), SHMTRAIN_E_USAGE);
    spec = spec_of(k, 10, 1, 1);
    spec.policy.quorum = k->n_seats + 1;
    assert_int_equal(k->backend->plan(&spec, &need, NULL), SHMTRAIN_E_USAGE);
}

static void impossible_specs_are_refused_before_memory_is_made(void **state) {
    (void)state;
    each_case(refuses_impossible_specs);
}

static struct shmt_array array_of(const struct run *run, enum shmt_array_name name, int t, uint32_t plane) {
    const struct shmt_array array = run->k->backend->store->array(run->store, name, t, plane);
    assert_true((array.at != NULL) == (array.n > 0));
    uint64_t set = 0;
    for (uint64_t i = 0; i < array.n * array.each; i++) set += ((const unsigned char *)array.at)[i] != 0;
    assert_int_equal(set, 0);
    return array;
}

/* What the spec asks for, and no more; all apart, and the parameters where they are read and written. */
static void finds_arrays(const struct kase *k) {
    const float row[2] = {3, 4};
    struct shmt_spec spec = spec_of(k, 1000, 6, 2);
    struct run run;
    spec.n_tables = 2;
    spec.table[1] = (struct shmt_table_spec){.name = "u", .rows = 5, .width = 1};
    spec.l2_rows[1] = 5;
    spec.head_bytes = 100;
    spec.row_places = true;
    begin(&run, k, spec);
    const struct shmt_array weight = array_of(&run, SHMT_ARRAY_WEIGHT, 0, 0), second = array_of(&run, SHMT_ARRAY_WEIGHT, 1, 0);
    assert_true(weight.n == 12 && second.n == 5 && weight.each == sizeof(float));
    assert_true((float *)second.at >= (float *)weight.at + 12 || (float *)weight.at >= (float *)second.at + 5);
    assert_int_equal(array_of(&run, SHMT_ARRAY_HEAD, 0, 0).n, 100);
    assert_int_equal(array_of(&run, SHMT_ARRAY_BOARD, 0, 0).n, spec.board_bytes);
    assert_int_equal(array_of(&run, SHMT_ARRAY_ROW_PLACE, 0, 0).n, 6);
    assert_int_equal(array_of(&run, SHMT_ARRAY_ROW_PLACE, 1, 0).n, 0);
    assert_int_equal(array_of(&run, SHMT_ARRAY_L2_SHARE, 0, 0).n, 0);
    assert_int_equal(array_of(&run, SHMT_ARRAY_STATE, 0, shmt_flat_planes(&spec)).n, 0);
    assert_true((array_of(&run, SHMT_ARRAY_CURVATURE, 0, 0).n > 0) == spec.curvatures);
    assert_int_equal(k->backend->store->write(run.store, 0, 2, 1, row), 0);
    assert_memory_equal((float *)weight.at + 4, row, sizeof row);
    end(&run);
}

static void arrays_are_found_by_name_with_their_sizes(void **state) {
    (void)state;
    each_case(finds_arrays);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_example_is_handed_out_exactly_once_per_epoch),
        cmocka_unit_test(the_tally_of_an_epoch_counts_every_example),
        cmocka_unit_test(parameters_do_not_move_at_the_end_of_an_epoch),
        cmocka_unit_test(a_run_does_exactly_as_many_steps_as_it_may),
        cmocka_unit_test(a_stop_ends_the_run_between_updates),
        cmocka_unit_test(one_workers_failure_ends_the_others_and_is_told),
        cmocka_unit_test(calls_out_of_order_are_refused_with_a_sentence),
        cmocka_unit_test(a_lent_buffer_is_pushed_once_whole_and_alone),
        cmocka_unit_test(impossible_specs_are_refused_before_memory_is_made),
        cmocka_unit_test(arrays_are_found_by_name_with_their_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
