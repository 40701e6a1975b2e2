/* cli: what the live display makes of a run's progress before it is drawn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <unistd.h>

#include "cli/follow.h"

static int deadline(void **state) {
    (void)state;
    alarm(60);
    return 0;
}

static void assert_near(double x, double expected, double tolerance) {
    if (!(fabs(x - expected) <= tolerance)) fail_msg("%.17g is not %.17g", x, expected);
}

static const struct shmtrain_epoch TWO_EPOCHS[] = {{.epoch = 1, .train_loss = 0.5}, {.epoch = 2, .train_loss = 0.25}};

static int look(struct follow *f, double seconds, double rate, const struct shmtrain_worker_progress *worker, uint32_t n) {
    const struct shmtrain_report report = {.size = sizeof(struct shmtrain_report), .epoch = TWO_EPOCHS, .n_epochs = 2};
    const struct shmtrain_progress now = {.size = sizeof(struct shmtrain_progress),
                                          .epoch = 3,
                                          .epochs = 9,
                                          .examples = 250,
                                          .all_examples = 1000,
                                          .seconds = seconds,
                                          .examples_per_second = rate,
                                          .loss = 0.125,
                                          .seconds_left = NAN,
                                          .n_workers = n,
                                          .worker = worker};
    return follow_update(f, &report, &now, false);
}

static void speeds_are_smoothed(void **state) {
    (void)state;
    struct follow f;
    follow_init(&f);
    assert_int_equal(look(&f, 0.1, 1000, NULL, 0), 0);
    assert_near(f.state.examples_per_second, 1000, 0); /* the first one counts as it is */
    assert_int_equal(look(&f, 0.2, 2000, NULL, 0), 0);
    assert_true(f.state.examples_per_second > 1000 && f.state.examples_per_second < 1200);
    for (int i = 3; i < 100; i++) assert_int_equal(look(&f, 0.1 * i, 2000, NULL, 0), 0);
    assert_near(f.state.examples_per_second, 2000, 1);
    follow_fini(&f);
}

static void traffic_is_smoothed_and_exchanges_are_not(void **state) {
    (void)state;
    struct follow f;
    struct shmtrain_progress now = {.size = sizeof now, .epoch = 1, .epochs = 2, .hosts = 1};
    const struct shmtrain_report report = {.size = sizeof report};
    follow_init(&f);
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_false(f.state.has_network);
    now.hosts = 2;
    for (int i = 1; i <= 2; i++) {
        now.seconds = 0.1 * i;
        now.exchanges = 10 * (uint64_t)i;
        now.sent_bytes_per_second = 1000 * i;
        now.received_bytes_per_second = 500;
        assert_int_equal(follow_update(&f, &report, &now, false), 0);
        assert_true(f.state.has_network);
        assert_int_equal(f.state.exchanges, 10 * i);
        assert_near(f.state.received, 500, 0);
        if (i == 1) assert_near(f.state.sent, 1000, 0);
    }
    assert_true(f.state.sent > 1000 && f.state.sent < 1200);
    follow_fini(&f);
}

static void epochs_and_losses_are_taken_over(void **state) {
    (void)state;
    struct follow f;
    follow_init(&f);
    assert_int_equal(look(&f, 0.1, 1000, NULL, 0), 0);
    assert_int_equal(f.state.epoch, 3);
    assert_int_equal(f.state.epochs, 9);
    assert_near(f.state.share, 0.25, 0);
    assert_near(f.state.loss, 0.125, 0);
    assert_int_equal(f.state.n_before, 2);
    assert_near(f.state.losses_before[1], 0.25, 0);
    assert_true(isnan(f.state.seconds_left));
    follow_fini(&f);
}

static void places_that_nobody_has_are_not_shown(void **state) {
    (void)state;
    struct follow f;
    struct shmtrain_worker_progress worker[3] = {{.here = 1, .examples_per_second = 10},
                                                 {.here = 0},
                                                 {.here = 1, .joined = 1, .examples_per_second = 20, .compute_fraction = 0.5}};
    follow_init(&f);
    assert_int_equal(look(&f, 1, 1000, worker, 3), 0);
    assert_int_equal(f.state.n_workers, 2);
    assert_int_equal(f.state.worker[1].rank, 2);
    assert_true(f.state.worker[1].joined);
    assert_near(f.state.worker[1].compute, 0.5, 0);
    worker[2].here = 0;
    assert_int_equal(look(&f, 2, 1000, worker, 3), 0);
    assert_int_equal(f.state.n_workers, 1);
    /* somebody else in the same place begins anew, and does not go on from the one before */
    worker[2].here = 1;
    worker[2].compute_fraction = 1;
    assert_int_equal(look(&f, 3, 1000, worker, 3), 0);
    assert_near(f.state.worker[1].compute, 1, 0);
    follow_fini(&f);
}

static void a_pause_leaves_speeds_as_they_were(void **state) {
    (void)state;
    struct follow f;
    const struct shmtrain_report report = {0};
    struct shmtrain_worker_progress worker = {.here = 1, .examples_per_second = 500, .compute_fraction = 1};
    struct shmtrain_progress now = {
        .size = sizeof(struct shmtrain_progress), .seconds = 1, .examples_per_second = 500, .n_workers = 1, .worker = &worker};
    follow_init(&f);
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    now.seconds = 1000; /* stopped for long */
    now.examples_per_second = worker.examples_per_second = 0.01;
    worker.compute_fraction = 0;
    assert_int_equal(follow_update(&f, &report, &now, true), 0);
    assert_near(f.state.examples_per_second, 500, 0);
    assert_near(f.state.worker[0].examples_per_second, 500, 0);
    assert_near(f.state.worker[0].compute, 1, 0);
    now.seconds = 1000.1;
    now.examples_per_second = 500;
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_near(f.state.examples_per_second, 500, 0);
    follow_fini(&f);
}

/* With short epochs many are over between two looks: what lives below their lines is never older than these. */
static void an_epoch_that_is_over_is_not_shown_any_more(void **state) {
    (void)state;
    struct follow f;
    struct shmtrain_epoch epochs[9];
    struct shmtrain_report report = {.size = sizeof(struct shmtrain_report), .epoch = epochs};
    for (uint32_t i = 0; i < 9; i++) epochs[i] = (struct shmtrain_epoch){.epoch = i + 1, .train_loss = 1.0 / (i + 1)};
    follow_init(&f);
    assert_int_equal(follow_epoch(&f, &report, &epochs[0]), 0);
    assert_int_equal(f.state.epochs, 0); /* no look yet, no state */
    assert_int_equal(look(&f, 0.1, 1000, NULL, 0), 0);
    report.n_epochs = 2;
    assert_int_equal(follow_epoch(&f, &report, &epochs[1]), 0);
    assert_int_equal(f.state.epoch, 3); /* the look was later */
    assert_near(f.state.share, 0.25, 0);
    report.n_epochs = 6;
    assert_int_equal(follow_epoch(&f, &report, &epochs[5]), 0);
    assert_int_equal(f.state.epoch, 7);
    assert_near(f.state.share, 0, 0);
    assert_near(f.state.loss, 1.0 / 6, 0);
    assert_int_equal(f.state.n_before, 6);
    report.n_epochs = 9;
    assert_int_equal(follow_epoch(&f, &report, &epochs[8]), 0);
    assert_int_equal(f.state.epoch, 9); /* the last one stays, and is complete */
    assert_near(f.state.share, 1, 0);
    assert_near(f.state.seconds_left, 0, 0);
    assert_int_equal(f.state.n_before, 8);
    follow_fini(&f);
    /* a run that was stopped has no further epoch */
    assert_int_equal(look(&f, 0.1, 1000, NULL, 0), 0);
    epochs[2].partial = 1;
    report.n_epochs = 3;
    assert_int_equal(follow_epoch(&f, &report, &epochs[2]), 0);
    assert_int_equal(f.state.epoch, 3);
    assert_near(f.state.share, 0.25, 0);
    follow_fini(&f);
}

static void evaluation_is_spoken_of_where_there_is_some(void **state) {
    (void)state;
    struct follow f;
    struct shmtrain_report report = {.size = sizeof(struct shmtrain_report), .valid = {.name = ""}};
    const struct shmtrain_progress now = {.size = sizeof(struct shmtrain_progress), .seconds = 1};
    follow_init(&f);
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_false(f.state.evaluates);
    report.valid.name = "a9a.t";
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_true(f.state.evaluates);
    follow_fini(&f);
}

static void what_asynchrony_costs_is_of_the_whole_run(void **state) {
    (void)state;
    struct follow f;
    struct shmtrain_report report = {.size = sizeof(struct shmtrain_report), .merge = "mean"};
    const struct shmtrain_worker_progress worker[2] = {{.here = 1, .examples = 300, .merge_fraction = 0.25},
                                                       {.here = 0, .examples = 100}}; /* it has left */
    struct shmtrain_progress now = {.size = sizeof(struct shmtrain_progress),
                                    .seconds = 1,
                                    .n_workers = 2,
                                    .worker = worker,
                                    .delay = 7,
                                    .dropped = 100,
                                    .folded = 40};
    follow_init(&f);
    assert_true(isnan(f.state.delay));
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_true(f.state.merges);
    assert_near(f.state.worker[0].merge, 0.25, 0);
    assert_near(f.state.delay, 7, 0);
    assert_near(f.state.dropped, 0.25, 0);
    assert_near(f.state.folded, 0.1, 0);
    report.merge = ""; /* one copy */
    now.delay = NAN;   /* nobody measures it */
    assert_int_equal(follow_update(&f, &report, &now, false), 0);
    assert_false(f.state.merges);
    assert_true(isnan(f.state.delay));
    follow_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_smoothed),
        cmocka_unit_test(traffic_is_smoothed_and_exchanges_are_not),
        cmocka_unit_test(epochs_and_losses_are_taken_over),
        cmocka_unit_test(places_that_nobody_has_are_not_shown),
        cmocka_unit_test(a_pause_leaves_speeds_as_they_were),
        cmocka_unit_test(an_epoch_that_is_over_is_not_shown_any_more),
        cmocka_unit_test(evaluation_is_spoken_of_where_there_is_some),
        cmocka_unit_test(what_asynchrony_costs_is_of_the_whole_run),
    };
    return cmocka_run_group_tests_name("follow", tests, deadline, NULL);
}
