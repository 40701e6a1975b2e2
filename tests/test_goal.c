/* Tests of ending a run early: what a goal is (train/goal.h), and runs that reach theirs. */
#include "api_help.h"

#include <math.h>

#include "train/goal.h"

#define EPOCHS(...) ((const struct shmtrain_epoch[]){__VA_ARGS__})
#define LOSS(train, valid) \
    { .train_loss = (train), .valid_loss = (valid) }

static const struct shmt_goal NO_GOAL = {.target_loss = NAN};

static void without_a_goal_nothing_is_reached(void **state) {
    (void)state;
    assert_int_equal(shmt_goal_reached(&NO_GOAL, EPOCHS(LOSS(0, 0), LOSS(1, 1), LOSS(2, 2)), 3), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&(struct shmt_goal){.target_loss = 1, .patience = 1}, NULL, 0), SHMT_END_NOT);
}

static void a_target_is_reached_by_the_last_epoch_and_the_loss_that_counts(void **state) {
    (void)state;
    struct shmt_goal goal = {.target_loss = 0.5};
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0.4, 0.6), LOSS(0.6, 0.4)), 2), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0.6, 0.6), LOSS(0.5, 0.6)), 2), SHMT_END_TARGET_LOSS);
    goal.validated = true;
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0.4, 0.6), LOSS(0.4, 0.6)), 2), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0.6, 0.6), LOSS(0.6, 0.5)), 2), SHMT_END_TARGET_LOSS);
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0.1, NAN)), 1), SHMT_END_NOT);
}

static void patience_ends_after_so_many_epochs_that_are_no_better(void **state) {
    (void)state;
    const struct shmt_goal goal = {.target_loss = NAN, .patience = 2, .validated = true};
    const struct shmtrain_epoch *falls = EPOCHS(LOSS(0, 5), LOSS(0, 4), LOSS(0, 4.5), LOSS(0, 3), LOSS(0, 3), LOSS(0, 3.1));
    for (uint32_t n = 1; n <= 5; n++) assert_int_equal(shmt_goal_reached(&goal, falls, n), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&goal, falls, 6), SHMT_END_PATIENCE);
    /* what is no number is no better, and never the best */
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0, NAN), LOSS(0, 4)), 2), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0, 4), LOSS(0, NAN), LOSS(0, NAN)), 3), SHMT_END_PATIENCE);
    assert_int_equal(shmt_goal_reached(&goal, EPOCHS(LOSS(0, NAN), LOSS(0, NAN)), 2), SHMT_END_PATIENCE);
}

#define FITTED(valid, of) \
    { .valid_loss = (valid), .objective = (of) }

/* Epochs of a fit that have found no better point say nothing about what is learned. */
static void epochs_that_left_the_parameters_as_they_were_do_not_count(void **state) {
    (void)state;
    const struct shmt_goal goal = {.target_loss = NAN, .patience = 2, .validated = true};
    const struct shmtrain_epoch *silent =
        EPOCHS(FITTED(4, 3), FITTED(4, 3), FITTED(4, 3), FITTED(4, 2.9), FITTED(4, 2.9), FITTED(4.1, 2.8));
    for (uint32_t n = 1; n <= 5; n++) assert_int_equal(shmt_goal_reached(&goal, silent, n), SHMT_END_NOT);
    assert_int_equal(shmt_goal_reached(&goal, silent, 6), SHMT_END_PATIENCE);
    const struct shmtrain_epoch *steps = EPOCHS(FITTED(4, NAN), FITTED(4, NAN), FITTED(4, NAN)); /* of SGD */
    assert_int_equal(shmt_goal_reached(&goal, steps, 3), SHMT_END_PATIENCE);
}

static void what_is_no_end_has_no_name(void **state) {
    (void)state;
    assert_string_equal(shmt_end_name(SHMT_END_TARGET_LOSS), "target-loss");
    assert_string_equal(shmt_end_name(SHMT_END_NOT), "");
    assert_string_equal(shmt_end_name(SHMT_N_ENDS), "");
    assert_string_equal(shmt_end_name(UINT32_MAX), "");
}

/* ---- runs ---- */

static struct shmtrain_store *trainer(const char *spawn, const char *workers, const char *mode) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "epochs", "100"));
    WELL(store, shmtrain_store_set(store, "valid", "0.1"));
    return store;
}

#define DATA "builtin:sparse:examples=3000,features=300,nonzeros=10"

/* In sync the losses have the same bits for every number of workers, and so has the end of the run. */
static void sync_ends_in_the_same_epoch_with_any_number_of_workers(void **state) {
    (void)state;
    static const char *const GOALS[][2] = {{"target-loss", "0.4"}, {"patience", "2"}};
    for (size_t g = 0; g < 2; g++) {
        uint32_t n_epochs = 0;
        uint64_t hash = 0;
        static const char *const WORKERS[] = {"1", "2", "5"};
        for (size_t i = 0; i < 3; i++) {
            struct shmtrain_store *store = trainer(SPAWNS[i % 2], WORKERS[i], "sync");
            WELL(store, shmtrain_store_set(store, "rate", g == 0 ? "auto" : "10")); /* too large: it does not settle */
            WELL(store, shmtrain_store_set(store, GOALS[g][0], GOALS[g][1]));
            WELL(store, shmtrain_store_train(store, DATA));
            const struct shmtrain_report *r = shmtrain_store_report(store);
            assert_string_equal(r->stopped_by, GOALS[g][0]);
            assert_true(r->stopped && r->n_epochs > 1 && r->n_epochs < 100 && !r->epoch[r->n_epochs - 1].partial);
            if (i == 0) n_epochs = r->n_epochs, hash = r->parameters_xxh64;
            assert_int_equal(r->n_epochs, n_epochs);
            assert_true(r->parameters_xxh64 == hash);
            shmtrain_store_destroy(store);
        }
    }
}

static void a_target_ends_runs_of_every_mode_in_the_epoch_that_reaches_it(void **state) {
    (void)state;
    static const char *const MODES[] = {"async", "hogwild", "ssp:2", "backup:1", "local:2", "sync"};
    for (size_t i = 0; i < 6; i++) {
        struct shmtrain_store *store = trainer(SPAWNS[i % 2], "2", MODES[i]);
        WELL(store, shmtrain_store_set(store, "target-loss", "0.36"));
        WELL(store, shmtrain_store_train(store, DATA));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_string_equal(r->stopped_by, "target-loss");
        assert_true(r->epoch[r->n_epochs - 1].valid_loss <= 0.36);
        for (uint32_t e = 0; e + 1 < r->n_epochs; e++) assert_true(r->epoch[e].valid_loss > 0.36);
        shmtrain_store_destroy(store);
    }
}

static void who_reaches_it_in_the_last_epoch_was_not_stopped(void **state) {
    (void)state;
    struct shmtrain_store *store = trainer("threads", "1", "sync");
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "target-loss", "1000"));
    WELL(store, shmtrain_store_train(store, DATA));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->n_epochs == 1 && !r->stopped);
    assert_string_equal(r->stopped_by, "");
    shmtrain_store_destroy(store);
}

static void worker_functions_are_judged_by_the_losses_that_they_report(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "100", 640);
        WELL(store, shmtrain_store_set(store, "patience", "3")); /* `count` reports 1 for each example: never better */
        WELL(store, shmtrain_store_run(store, count, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_string_equal(r->stopped_by, "patience");
        assert_true(r->n_epochs == 4 && read_one(store, 0) == 40);
        shmtrain_store_destroy(store);
    }
}

static void a_limit_of_time_ends_a_run_and_not_the_next_one(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400);
        WELL(store, shmtrain_store_set(store, "time-limit", "0.05"));
        WELL(store, shmtrain_store_run(store, count, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_string_equal(r->stopped_by, "time-limit");
        assert_true(r->stopped && read_one(store, 0) == (float)r->updates);
        WELL(store, shmtrain_store_set(store, "time-limit", "none"));
        WELL(store, shmtrain_store_set(store, "epochs", "2"));
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(r->n_epochs == 2 && !r->stopped);
        shmtrain_store_destroy(store);
    }
}

/* Ten steps are an epoch, and no epoch is better than the first: the second one is cut off before patience has an end. */
static void an_epoch_that_was_cut_off_reaches_no_goal(void **state) {
    (void)state;
    struct shmtrain_store *store = make("threads", "2", "100", 640);
    WELL(store, shmtrain_store_set(store, "steps", "14"));
    WELL(store, shmtrain_store_set(store, "patience", "1"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->n_epochs == 2 && r->epoch[1].partial);
    assert_string_equal(r->stopped_by, "steps");
    shmtrain_store_destroy(store);
}

static void stop_it(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    (void)r;
    (void)epoch;
    shmtrain_store_stop(arg);
}

static void who_is_asked_to_stop_says_so(void **state) {
    (void)state;
    struct shmtrain_store *store = make("threads", "2", "1000000", 6400);
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = store, .epoch = stop_it};
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_string_equal(shmtrain_store_report(store)->stopped_by, "request");
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(without_a_goal_nothing_is_reached),
        TEST(a_target_is_reached_by_the_last_epoch_and_the_loss_that_counts),
        TEST(patience_ends_after_so_many_epochs_that_are_no_better),
        TEST(epochs_that_left_the_parameters_as_they_were_do_not_count),
        TEST(what_is_no_end_has_no_name),
        TEST(sync_ends_in_the_same_epoch_with_any_number_of_workers),
        TEST(a_target_ends_runs_of_every_mode_in_the_epoch_that_reaches_it),
        TEST(who_reaches_it_in_the_last_epoch_was_not_stopped),
        TEST(worker_functions_are_judged_by_the_losses_that_they_report),
        TEST(a_limit_of_time_ends_a_run_and_not_the_next_one),
        TEST(an_epoch_that_was_cut_off_reaches_no_goal),
        TEST(who_is_asked_to_stop_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
