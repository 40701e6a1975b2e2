/* What every backend must do with values: apply each gradient once, and show what the contract says. Work is in
 * test_conformance.c, update rules in test_conformance_rules.c. */
#include "conformance.h"

#include <math.h>
#include <string.h>

/* In rounds an update may be of any number of examples, and their mean is rounded. */
static bool is_about(double x, double y) { return fabs(x - y) < 1e-4 * (1 + fabs(y)); }

/* ---- updates ---- */

static void loses_nothing(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 5, 2, 1);
    float value[2];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, count_examples);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, 2, value), 0);
    if (shmt_policy_is_live(&k->policy)) { /* each item adds 1; racy may lose some, none is doubled */
        assert_true(value[0] >= 1 && value[0] <= 3 * 14);
        if (k->n_seats == 1 || k->policy.write != SHMT_WRITE_RACY) assert_true(value[0] == 3 * 14);
    } else if (shmt_policy_has_rounds(&k->policy)) {
        assert_true(is_about((double)value[0], (double)updates_made(&run)));
        assert_true(updates_made(&run) >= 3 * 14 / k->n_seats && updates_made(&run) <= 3 * 14);
    } else {
        assert_true(value[0] == 3 * 5);
        assert_true(value[1] == 3 * (float)(319.0 / 320 * 320 / 64)); /* sum of i % 3 over 0..319 is 319, each over 64 */
    }
    end(&run);
}

static void gradients_are_applied_once_each(void **state) {
    (void)state;
    each_case(loses_nothing);
}

/* ---- views ---- */

static int look(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    const float *at;
    uint64_t stride;
    float before[3], after[3], minus_one[3] = {-1, -1, -1};
    int rc, live;
    const struct shmt_policy *policy = &run->k->policy;
    const bool is_live = shmt_policy_is_live(policy), moves = !shmt_policy_is_batched(policy);
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (shmtrain_pull(s, 0, 1, 1, before) != 0 || shmtrain_view(s, 0, 1, 1, &at, &stride, &live) != 0)
            return SHMTRAIN_E_USAGE;
        if (stride != 3 || live != moves || shmtrain_push(s, 0, 1, 1, minus_one) != 0) return SHMTRAIN_E_USAGE;
        if (shmtrain_pull(s, 0, 1, 1, after) != 0) return SHMTRAIN_E_USAGE;
        /* one's own push shows at once in live modes (with one seat: exactly), and not before the clock in aggregate; in rounds
         * others' updates may show meanwhile */
        if (!is_live && (!moves || run->k->n_seats == 1) &&
            (memcmp(before, after, sizeof after) != 0 || memcmp(at, before, sizeof before) != 0))
            return SHMTRAIN_E_DATA;
        if (is_live && run->k->n_seats == 1 && !(after[0] > before[0] && at[0] == after[0])) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
        if (shmtrain_pull(s, 0, 1, 1, after) != 0) return SHMTRAIN_E_USAGE;
        if (run->k->n_seats == 1 && is_live && !(after[0] > before[0])) return SHMTRAIN_E_DATA;
    }
    return rc;
}

static void shows_what_the_contract_says(const struct kase *k) {
    struct run run;
    begin(&run, k, spec_of(k, 500, 5, 3));
    go_well(&run, look);
    end(&run);
}

static void views_are_live_or_steady_as_they_say(void **state) {
    (void)state;
    each_case(shows_what_the_contract_says);
}

static int push_lent(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    float *grad;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_lend(s, 0, &grad)) < 0) return rc;
        for (int i = 0; i < 6; i++) grad[i] = -(float)w.n * (float)i;
        if ((rc = shmtrain_push(s, 0, 0, 2, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void takes_lent_gradients(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 4, 2, 3);
    float value[6];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, push_lent);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, 2, value), 0);
    const float updates = value[1]; /* each adds i to element i */
    for (int i = 0; i < 6; i++)
        if (k->policy.write != SHMT_WRITE_RACY || k->n_seats == 1)
            assert_true(shmt_policy_has_rounds(&k->policy) ? is_about((double)value[i], (double)updates * i)
                                                           : value[i] == (float)i * updates);
    if (shmt_policy_is_batched(&k->policy)) assert_true(updates == 3 * 4);
    end(&run);
}

static void a_lent_buffer_is_taken_as_the_gradient(void **state) {
    (void)state;
    each_case(takes_lent_gradients);
}

/* ---- rows ---- */

enum { WHOLE = 1024 }; /* floats of a row that is one lock unit */

/* Every push adds the same to all floats of the row: who sees them differ sees a push in the middle. */
static int pull_while_others_push(struct run *run, shmtrain_session *s) {
    const uint32_t first = 0;
    float grad[WHOLE], row[WHOLE], again[WHOLE];
    struct shmtrain_work w;
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        for (int i = 0; i < WHOLE; i++) grad[i] = -1;
        if ((rc = shmtrain_push(s, 0, 0, 1, grad)) < 0) return rc;
        for (int k = 0; k < 3; k++) {
            if (shmtrain_pull(s, 0, 0, 1, row) != 0 || shmtrain_rows(s, 0, &first, 1, again) != 0) return SHMTRAIN_E_USAGE;
            for (int i = 1; i < WHOLE; i++)
                if (row[i] != row[0] || again[i] != again[0])
                    return shmt_fail(&s->error, SHMTRAIN_E_DATA, "a push was seen in the middle");
        }
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void pulls_whole_rows(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 800, 1, WHOLE);
    if (k->policy.write != SHMT_WRITE_LOCKED && !shmt_policy_is_batched(&k->policy)) return;
    spec.item = 4;
    spec.epochs = 1;
    begin(&run, k, spec);
    go_well(&run, pull_while_others_push);
    end(&run);
}

static void rows_are_pulled_whole_where_the_write_mode_says_so(void **state) {
    (void)state;
    each_case(pulls_whole_rows);
}

/* Each example's own gradient, of two rows, one of them twice. */
static int push_some_rows(struct run *run, shmtrain_session *s) {
    struct shmtrain_work w;
    static const uint32_t id[3] = {4, 1, 4};
    static const float grad[6] = {-1, -1, -2, -2, -3, -3};
    float row[4];
    int rc;
    (void)run;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.n > shmtrain_item_max(s)) return SHMTRAIN_E_DATA;
        for (uint64_t i = 0; i < w.n; i++)
            if ((rc = shmtrain_push_rows(s, 0, id, 3, grad)) < 0) return rc;
        if ((rc = shmtrain_rows(s, 0, id, 2, row)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void pushes_rows(const struct kase *k) {
    struct run run;
    struct shmt_spec spec = spec_of(k, 64 * 4, 6, 2);
    float value[12];
    spec.rate.base = 1;
    begin(&run, k, spec);
    go_well(&run, push_some_rows);
    assert_int_equal(k->backend->store->read(run.store, 0, 0, 6, value), 0);
    for (int row = 0; row < 6; row++)
        if (row != 1 && row != 4) assert_true(value[2 * row] == 0 && value[2 * row + 1] == 0);
    if (shmt_policy_is_batched(&k->policy))
        assert_true(value[2] == 2 * 12 && value[3] == 2 * 12 && value[8] == 4 * 12 && value[9] == 4 * 12);
    assert_true(value[2] > 0 && value[8] > 0);
    if (shmt_policy_has_rounds(&k->policy))
        assert_true(is_about((double)value[8], 2 * (double)value[2]) && value[9] == value[8]);
    /* Live modes: whatever an item's size, each row of each push is an update of its own, divided by nothing. */
    if (shmt_policy_is_live(&k->policy) && !shmt_policy_merges_replicas(&k->policy) &&
        (k->n_seats == 1 || k->policy.write != SHMT_WRITE_RACY))
        assert_true(value[2] == 2 * 3 * 256 && value[8] == 4 * 3 * 256);
    if (k->policy.write != SHMT_WRITE_RACY && !shmt_policy_has_rounds(&k->policy))
        assert_true(value[8] == 2 * value[2] && value[9] == value[8]);
    end(&run);
}

static void pushed_rows_may_repeat(void **state) {
    (void)state;
    each_case(pushes_rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_applied_once_each),
        cmocka_unit_test(views_are_live_or_steady_as_they_say),
        cmocka_unit_test(a_lent_buffer_is_taken_as_the_gradient),
        cmocka_unit_test(rows_are_pulled_whole_where_the_write_mode_says_so),
        cmocka_unit_test(pushed_rows_may_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
