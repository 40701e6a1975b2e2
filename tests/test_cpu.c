/* Tests of CPU paths as an application sees them: which there are, which a run takes, and that results do not depend on it. The
 * loops themselves are compared in test_store.c. */
#include "api_help.h"

#include <stdio.h>

#include "base/cpu.h"

static void names_and_auto_are_understood(void **state) {
    (void)state;
    struct shmt_error e = {0};
    enum shmt_cpu cpu = SHMT_N_CPUS;
    assert_int_equal(shmt_cpu_parse("--cpu", "auto", &cpu, &e), 0);
    assert_int_equal(cpu, shmt_cpu_best());
    assert_true(shmt_cpu_has(cpu) && shmt_cpu_has(SHMT_CPU_PORTABLE));
    assert_false(shmt_cpu_has(SHMT_N_CPUS));
    for (uint32_t i = 0; i < SHMT_N_CPUS; i++)
        if (shmt_cpu_has(i)) {
            assert_int_equal(shmt_cpu_parse("--cpu", shmt_cpu_name(i), &cpu, &e), 0);
            assert_int_equal(cpu, i);
        }
}

/* Each machine lacks at least one: NEON and AVX do not come together. */
static void paths_that_are_not_there_are_refused_with_those_that_are(void **state) {
    (void)state;
    uint32_t refusals = 0;
    for (uint32_t i = 0; i < SHMT_N_CPUS; i++) {
        struct shmt_error e = {0};
        enum shmt_cpu cpu = SHMT_N_CPUS;
        if (shmt_cpu_has(i)) continue;
        assert_int_equal(shmt_cpu_parse("SHMTRAIN_CPU", shmt_cpu_name(i), &cpu, &e), SHMTRAIN_E_USAGE);
        assert_int_equal(cpu, SHMT_N_CPUS);
        assert_non_null(strstr(e.text, "SHMTRAIN_CPU "));
        assert_non_null(strstr(e.text, "does not have this path; use auto"));
        assert_non_null(strstr(e.text, shmt_cpu_name(shmt_cpu_best())));
        refusals++;
    }
    assert_true(refusals > 0);
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    refused(store, shmtrain_store_set(store, "cpu", "sse9"), SHMTRAIN_E_USAGE, "sse9: expected auto, portable");
    refused(store, shmtrain_store_set(store, "cpu", ""), SHMTRAIN_E_USAGE, "\"\": expected auto, portable");
    shmtrain_store_destroy(store);
}

static void the_environment_counts_and_is_refused_likewise(void **state) {
    (void)state;
    struct shmtrain_store *store;
    assert_int_equal(setenv("SHMTRAIN_CPU", "sse9", 1), 0);
    assert_int_equal(shmtrain_store_create(&store), 0);
    const int rc = shmtrain_store_set_from_environment(store);
    unsetenv("SHMTRAIN_CPU");
    refused(store, rc, SHMTRAIN_E_USAGE, "SHMTRAIN_CPU sse9: expected");
    shmtrain_store_destroy(store);
}

static uint64_t train(const char *cpu, const char *mode, const char *workers, const char *optimizer) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "cpu", cpu));
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "optimizer", optimizer));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=3000,features=500,nonzeros=19"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->cpu, cpu);
    const uint64_t sum = r->parameters_xxh64;
    shmtrain_store_destroy(store);
    return sum;
}

static void results_do_not_depend_on_the_path(void **state) {
    (void)state;
    static const char *const RULES[] = {"sgd",      "momentum", "adagrad",  "adam",  "ftrl",
                                        "nesterov", "rmsprop",  "adadelta", "adamw", "lamb"};
    for (size_t rule = 0; rule < sizeof RULES / sizeof *RULES; rule++) {
        const uint64_t sync = train("portable", "sync", "1", RULES[rule]);
        const bool is_live = strcmp(RULES[rule], "lamb") != 0;
        const uint64_t async = is_live ? train("portable", "async", "1", RULES[rule]) : 0;
        assert_true(sync != async);
        for (uint32_t i = SHMT_CPU_PORTABLE + 1; i < SHMT_N_CPUS; i++) {
            if (!shmt_cpu_has(i)) continue;
            assert_int_equal(train(shmt_cpu_name(i), "sync", "2", RULES[rule]), sync);
            if (is_live) assert_int_equal(train(shmt_cpu_name(i), "async", "1", RULES[rule]), async);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_auto_are_understood),
        cmocka_unit_test(paths_that_are_not_there_are_refused_with_those_that_are),
        cmocka_unit_test(the_environment_counts_and_is_refused_likewise),
        cmocka_unit_test_setup(results_do_not_depend_on_the_path, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
