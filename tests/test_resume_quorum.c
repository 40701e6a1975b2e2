/* A run with a quorum goes on within an epoch, and its chief dies before it has recorded anything: the next life takes the items that
 * were done before the run from the store, and not from a record, which nobody has written. They say how far the epoch is, and so with
 * which rate updates are made.
 *
 * The arithmetic: each example has a row of its own and a gradient of -1 there, so a row that has moved tells the rate of its update,
 * divided by the update's examples. */
#include "pause_help.h"

#include <signal.h>

#include "sanitized.h"

enum { ITEM = 24, ITEMS = 60, DONE = 40, N = ITEM * ITEMS };

/* In the board, so that processes share it. */
struct seen {
    _Atomic uint32_t deaths;
};

static void die_before_the_first_record(const struct run *run, const shmtrain_session *s) {
    struct seen *seen = run->board;
    if (s->seat->rank > 0 || s->seat->life > 0) return;
    store_relaxed(&seen->deaths, load_relaxed(&seen->deaths) + 1);
    (void)raise(SIGKILL);
}

static int work(struct run *run, shmtrain_session *s) {
    uint32_t row[ITEM];
    float grad[ITEM];
    struct shmtrain_work w;
    int rc;
    for (uint32_t i = 0; i < ITEM; i++) grad[i] = -1;
    if (run->spec.may_die) die_before_the_first_record(run, s);
    while ((rc = shmtrain_next(s, &w)) == 1) {
        for (uint32_t i = 0; i < w.n; i++) row[i] = (uint32_t)(w.first + i);
        if ((rc = shmtrain_push_rows(s, 0, row, (uint32_t)w.n, grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* The first DONE items of the first epoch are done, and left the parameters as they were. */
static struct kept within_the_epoch(void) {
    static float floats[N];
    static uint32_t done[ITEMS];
    static double loss[ITEMS];
    for (uint32_t i = 0; i < DONE; i++) done[i] = ITEM;
    return (struct kept){.at = {.step = DONE}, .n_floats = N, .n_pieces = ITEMS, .floats = floats, .done = done, .loss = loss};
}

/* Of one epoch, with a rate that falls by steps: 1 / (1 + steps done). */
static struct shmt_spec falling(const struct kase *k) {
    struct shmt_spec spec = spec_of(k, N, N, 1);
    spec.epochs = 1;
    spec.order.shuffle = false;
    spec.item = ITEM;
    spec.rate = (struct shmt_rate){.base = 1, .kind = SHMT_RATE_INVERSE, .power = 1, .every = 1.0 / ITEMS, .epochs = 1};
    spec.pauses.allowed = 1;
    spec.board_bytes = sizeof(struct seen);
    return spec;
}

/* No update of what was left is made with the rate of what was done, and each item is in one of them, but for those that were
 * dropped. */
static void check_rows(const struct run *run, bool drops) {
    const float most = 1.0f / (1 + DONE) / ITEM;
    uint32_t moved = 0;
    for (uint32_t i = 0; i < N; i++) {
        float row;
        assert_int_equal(run->k->backend->store->read(run->store, 0, i, 1, &row), 0);
        moved += row > 0;
        if (i < DONE * ITEM && row != 0) fail_msg("example %u was done before, and is done again", i);
        if (row < 0 || row > most * 1.0001f) /* rates are rounded a few times */
            fail_msg("example %u was learned with %g, and not with %g at most", i, (double)row, (double)most);
    }
    if (moved > N - DONE * ITEM || moved == 0 || (!drops && moved < N - DONE * ITEM))
        fail_msg("%u examples were learned", moved);
}

static void go_on(enum shmt_late late, bool dies) {
    const struct shmt_policy policy = {.write = SHMT_WRITE_AGGREGATE, .quorum = 2, .late = late};
    const struct kase k = {shmt_backend_at(0), policy, 3, &SHMT_TEAM_PROCESSES};
    const struct kept from = within_the_epoch();
    struct shmt_spec spec = falling(&k);
    struct run run;
    spec.may_die = dies;
    begin_from(&run, &k, spec, &from);
    go_well(&run, work);
    assert_int_equal(load_relaxed(&((struct seen *)run.board)->deaths), dies ? 1 : 0);
    check_rows(&run, late == SHMT_LATE_DROP);
    end(&run);
}

static void rates_follow_what_was_done_before_the_run(void **state) {
    (void)state;
    go_on(SHMT_LATE_DROP, false);
    go_on(SHMT_LATE_FOLD, false);
}

static void a_chief_that_dies_before_its_first_record_changes_no_rate(void **state) {
    (void)state;
    if (WATCHES_RACES) SKIP("ThreadSanitizer sees nothing of other processes");
    for (int i = 0; i < 10; i++) {
        go_on(SHMT_LATE_DROP, true);
        go_on(SHMT_LATE_FOLD, true);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_follow_what_was_done_before_the_run),
        cmocka_unit_test(a_chief_that_dies_before_its_first_record_changes_no_rate),
    };
    return cmocka_run_group_tests_name("a quorum within an epoch", tests, NULL, NULL);
}
