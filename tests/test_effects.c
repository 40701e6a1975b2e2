/* Options that do nothing in a run are said, each in one line, and the run goes on. Options that do something, or that nobody
 * has set, are not. */
#include "api_help.h"

#include <stdbool.h>
#include <stdio.h>

#include "configuration/options.h"

#define SPARSE "builtin:sparse:examples=500,valid=50,features=50,nonzeros=4"

static char notes[2048];

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

static struct shmtrain_store *make_store(void) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_set(store, "spawn", "threads"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    return store;
}

/* What a run says with pairs "option", "value", ..., NULL. */
static const char *said_with(const char *const *option) {
    struct shmtrain_store *store = make_store();
    for (; *option; option += 2) WELL(store, shmtrain_store_set(store, option[0], option[1]));
    notes[0] = '\0';
    WELL(store, shmtrain_store_train(store, SPARSE));
    shmtrain_store_destroy(store);
    return notes;
}

#define SAID_WITH(...) said_with((const char *const[]){__VA_ARGS__, NULL})

static void options_that_do_nothing_are_said(void **state) {
    (void)state;
    assert_string_equal(SAID_WITH("momentum", "0.9", "beta2", "0.9", "epsilon", "1", "beta", "2"),
                        "--momentum has no effect with --optimizer sgd\n"
                        "--beta2 has no effect with --optimizer sgd\n"
                        "--epsilon has no effect with --optimizer sgd\n"
                        "--beta has no effect with --optimizer sgd\n");
    assert_string_equal(SAID_WITH("optimizer", "nesterov", "rho", "0.5", "weight-decay", "0.1", "momentum", "0.5"),
                        "--rho has no effect with --optimizer nesterov\n"
                        "--weight-decay has no effect with --optimizer nesterov\n");
    assert_string_equal(SAID_WITH("power", "1", "decay-every", "2", "decay-by", "0.5", "schedule", "cosine"),
                        "--power has no effect with --schedule cosine\n"
                        "--decay-every has no effect with --schedule cosine\n"
                        "--decay-by has no effect with --schedule cosine\n");
    assert_string_equal(SAID_WITH("optimizer", "adagrad", "power", "1"), "--power has no effect with --schedule constant\n");
    assert_string_equal(SAID_WITH("batch", "64", "chunks", "2"),
                        "--batch has no effect with --mode async\n"
                        "--chunks has no effect with --mode async\n");
    assert_string_equal(SAID_WITH("mode", "ssp:4", "batch", "64"), "--batch has no effect with --mode ssp:4\n");
    assert_string_equal(SAID_WITH("mode", "sync", "write", "racy", "staleness", "inf", "batch", "10"),
                        "--batch has no effect with --write racy\n");
    assert_string_equal(SAID_WITH("mode", "sync", "group", "2", "item", "100"),
                        "--item has no effect with --mode sync\n"
                        "--group has no effect with --mode sync\n");
    assert_string_equal(SAID_WITH("late", "fold", "merge", "sum", "merge-every", "2"),
                        "--late has no effect without a quorum\n"
                        "--merge-every has no effect with one copy of the parameters\n"
                        "--merge has no effect with one copy of the parameters\n");
    assert_string_equal(SAID_WITH("mode", "local", "replicas", "one", "merge", "mean"),
                        "--merge has no effect with one copy of the parameters\n");
    assert_string_equal(SAID_WITH("write", "aggregate", "staleness", "2", "item", "10", "chunks", "2"),
                        "--chunks has no effect with --staleness 2\n"
                        "--item has no effect with --write aggregate\n");
    assert_string_equal(SAID_WITH("workers", "2", "quorum", "1", "chunks", "2"), "--chunks has no effect with --quorum 1\n");
    assert_string_equal(SAID_WITH("workers", "2", "mode", "backup:1", "chunks", "2"),
                        "--chunks has no effect with --mode backup:1\n");
    assert_string_equal(SAID_WITH("write", "aggregate", "item", "10"), "--item has no effect with --write aggregate\n");
    assert_string_equal(SAID_WITH("guests", "2"), "--guests has no effect without --name\n");
}

static void options_that_do_something_or_are_not_set_are_not(void **state) {
    (void)state;
    assert_string_equal(SAID_WITH("optimizer", "adam", "momentum", "0.8", "beta2", "0.9", "epsilon", "1"), "");
    assert_string_equal(SAID_WITH("optimizer", "lamb", "mode", "sync", "momentum", "0.8", "beta2", "0.9", "weight-decay", "1"),
                        "");
    assert_string_equal(SAID_WITH("optimizer", "adamw", "momentum", "0.8", "beta2", "0.9", "weight-decay", "1"), "");
    assert_string_equal(SAID_WITH("optimizer", "adadelta", "rho", "0.8", "epsilon", "0.9", "clip-value", "1"), "");
    assert_string_equal(SAID_WITH("decay-every", "2", "power", "1"), "");
    assert_string_equal(SAID_WITH("schedule", "step", "decay-every", "2", "decay-by", "0.5"), "");
    assert_string_equal(SAID_WITH("mode", "sync", "batch", "8", "chunks", "4"), "");
    assert_string_equal(SAID_WITH("group", "2", "item", "100", "count-lost", "1"), "");
    assert_string_equal(SAID_WITH("workers", "2", "quorum", "1", "late", "fold", "batch", "8"), "");
    assert_string_equal(SAID_WITH("write", "aggregate", "staleness", "1", "batch", "8"), "");
    assert_string_equal(SAID_WITH("mode", "local", "merge", "sum", "merge-every", "2", "item", "10"), "");
    assert_string_equal(SAID_WITH("chunks", "2", "chunks", "auto"), ""); /* taken back */
}

static void a_quorum_of_all_and_another_batch_are_said(void **state) {
    (void)state;
    const char *none = "a quorum of all 2 workers has no effect: an update waits for all gradients, as in sync\n";
    assert_string_equal(SAID_WITH("workers", "2", "mode", "backup:2"), none);
    assert_string_equal(SAID_WITH("workers", "2", "quorum", "2"), none);
    assert_string_equal(SAID_WITH("workers", "2", "mode", "sync"), "");
    assert_string_equal(SAID_WITH("workers", "3", "mode", "backup", "batch", "64"),
                        "a batch of 64 for 3 workers is rounded up to 66\n");
    assert_string_equal(SAID_WITH("workers", "2", "mode", "backup", "batch", "64"), "");
}

static void the_environment_sets_them_too(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store();
    setenv("SHMTRAIN_BETA", "2", 1);
    WELL(store, shmtrain_store_set_from_environment(store));
    unsetenv("SHMTRAIN_BETA");
    notes[0] = '\0';
    WELL(store, shmtrain_store_train(store, SPARSE));
    assert_string_equal(notes, "--beta has no effect with --optimizer sgd\n");
    shmtrain_store_destroy(store);
}

static void what_is_refused_is_not_given(void **state) {
    struct shmt_config config;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_config_init(&config, &e), 0);
    for (size_t i = 0; i < SHMT_MOST_OPTIONS; i++) assert_false(config.given[i]);
    assert_int_equal(shmt_config_set(&config, "beta", "beta", "-1", &e), SHMTRAIN_E_USAGE);
    assert_false(shmt_config_is_given(&config, "beta"));
    assert_int_equal(shmt_config_set(&config, "beta", "beta", "1", &e), 0);
    assert_true(shmt_config_is_given(&config, "beta"));
    assert_false(shmt_config_is_given(&config, "beta2"));
    assert_false(shmt_config_is_given(&config, "no option"));
    shmt_config_fini(&config);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(options_that_do_nothing_are_said),
        TEST(options_that_do_something_or_are_not_set_are_not),
        TEST(a_quorum_of_all_and_another_batch_are_said),
        TEST(the_environment_sets_them_too),
        TEST(what_is_refused_is_not_given),
    };
    return cmocka_run_group_tests_name("effects", tests, NULL, NULL);
}
