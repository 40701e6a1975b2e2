/* What --on-death, --max-respawns and --in-flight come to in a run: what is taken, what is refused because the others cannot go
 * on, and what is said to have no effect. */
#include "api_help.h"

#include <stdio.h>

#include "api/store_priv.h"

#define SPARSE "builtin:sparse:examples=500,valid=50,features=50,nonzeros=4"

static char notes[2048];

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

/* Pairs "option", "value", ..., NULL. */
static int train_with(struct shmtrain_store *store, const char *const *option) {
    static const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .note = note};
    notes[0] = '\0';
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    for (; *option; option += 2) WELL(store, shmtrain_store_set(store, option[0], option[1]));
    return shmtrain_store_train(store, SPARSE);
}

static struct shmt_deaths settled_with(const char *const *option) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, train_with(store, option));
    const struct shmt_deaths deaths = store->deaths;
    shmtrain_store_destroy(store);
    return deaths;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SETTLED(...) settled_with(OPTIONS(__VA_ARGS__))

static void assert_are(struct shmt_deaths deaths, enum shmt_on_death on_death, uint32_t max_respawns, bool skips) {
    assert_int_equal(deaths.on_death, on_death);
    assert_int_equal(deaths.max_respawns, max_respawns);
    assert_int_equal(deaths.skips, skips);
    assert_string_equal(notes, "");
}

static void workers_are_respawned_unless_somebody_says_otherwise(void **state) {
    (void)state;
    assert_are(SETTLED("mode", "hogwild"), SHMT_DEATH_RESPAWNS, 3, false);
    assert_are(SETTLED("mode", "sync", "max-respawns", "7"), SHMT_DEATH_RESPAWNS, 7, false);
    assert_are(SETTLED("mode", "hogwild", "in-flight", "skip"), SHMT_DEATH_RESPAWNS, 3, true);
    assert_are(SETTLED("mode", "hogwild", "on-death", "abort"), SHMT_DEATH_ABORTS, 0, false);
}

static void no_respawns_are_an_end(void **state) {
    (void)state;
    assert_are(SETTLED("mode", "hogwild", "max-respawns", "0"), SHMT_DEATH_ABORTS, 0, false);
}

static void the_others_go_on_where_nothing_of_the_dead_is_missing(void **state) {
    (void)state;
    assert_are(SETTLED("mode", "hogwild", "on-death", "continue"), SHMT_DEATH_CONTINUES, 3, false);
    assert_are(SETTLED("mode", "ssp:4", "on-death", "continue", "in-flight", "skip"), SHMT_DEATH_CONTINUES, 3, true);
    assert_are(SETTLED("workers", "3", "mode", "backup:2", "batch", "66", "on-death", "continue"), SHMT_DEATH_CONTINUES, 3,
               false);
    assert_are(SETTLED("mode", "async", "on-death", "continue", "max-respawns", "1"), SHMT_DEATH_CONTINUES, 1,
               false); /* it takes one copy */
}

static void elsewhere_they_cannot_and_that_is_refused(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    int rc = train_with(store, OPTIONS("on-death", "continue", "mode", "sync"));
    refused(store, rc, SHMTRAIN_E_USAGE,
            "--on-death continue with --mode sync: a gradient of the dead worker would be missing; use --on-death respawn, or "
            "--mode async, ssp:S or backup:K");
    rc = train_with(store, OPTIONS("mode", "backup:2")); /* a quorum of all is none */
    refused(store, rc, SHMTRAIN_E_USAGE, "--on-death continue with --mode backup:2: a gradient");
    rc = train_with(store, OPTIONS("mode", "local"));
    refused(store, rc, SHMTRAIN_E_USAGE,
            "--on-death continue with --mode local: the copy of the dead worker would be missing; use --on-death respawn, or "
            "--replicas one");
    shmtrain_store_destroy(store);
}

static void threads_end_the_run_and_who_asked_for_more_is_told(void **state) {
    (void)state;
    assert_are(SETTLED("spawn", "threads"), SHMT_DEATH_ABORTS, 0, false);
    assert_are(SETTLED("spawn", "threads", "on-death", "abort"), SHMT_DEATH_ABORTS, 0, false);
    assert_int_equal(SETTLED("spawn", "threads", "on-death", "respawn").on_death, SHMT_DEATH_ABORTS);
    assert_string_equal(notes,
                        "workers are threads here, so a crash ends the whole program: --on-death respawn has no effect\n");
}

static void options_without_an_effect_are_said(void **state) {
    (void)state;
    (void)SETTLED("mode", "hogwild", "on-death", "continue", "max-respawns", "2"); /* of the first worker */
    assert_string_equal(notes, "");
    (void)SETTLED("mode", "hogwild", "on-death", "abort", "max-respawns", "2", "in-flight", "skip");
    assert_string_equal(notes,
                        "--max-respawns has no effect with --on-death abort\n"
                        "--in-flight has no effect with --on-death abort\n");
    (void)SETTLED("mode", "sync", "in-flight", "skip");
    assert_string_equal(notes, "--in-flight has no effect with --mode sync\n");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(workers_are_respawned_unless_somebody_says_otherwise),  TEST(no_respawns_are_an_end),
        TEST(the_others_go_on_where_nothing_of_the_dead_is_missing), TEST(elsewhere_they_cannot_and_that_is_refused),
        TEST(threads_end_the_run_and_who_asked_for_more_is_told),    TEST(options_without_an_effect_are_said),
    };
    return cmocka_run_group_tests_name("on death", tests, NULL, NULL);
}
