/* The options of a store: every one of them is set, read back, refused and taken from the environment. An option that is not in
 * the table below fails the first test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/options.h"

enum kind { COUNT, REAL, TEXT };

/* Values that are taken and as what, and values that are refused: each list ends with NULL. */
static const struct {
    const char *name;
    enum kind kind;
    size_t offset;
    const char *good[6], *bad[12];
    const char *expected; /* words of the refusal */
} OPTIONS[] = {
#define AT(field) offsetof(struct shmt_config, field)
    {"workers",
     COUNT,
     AT(workers),
     {"1", "4096"},
     {"0", "4097", "-1", "+1", "1.5", "", "x", " 2", "2 ", "0x2"},
     "a whole number from 1 to 4096, or cores"},
    {"threads", COUNT, AT(threads), {"1", "256"}, {"0", "257", "many"}, "a whole number from 1 to 256"},
    {"epochs", COUNT, AT(epochs), {"1", "1000000"}, {"0", "1000001", "1e3"}, "a whole number from 1 to 1e+06"},
    {"steps",
     COUNT,
     AT(steps),
     {"1", "1000000000000000000"},
     {"0", "2000000000000000000", "99999999999999999999", "none"},
     "or all"},
    {"mode", TEXT, AT(mode), {"async", "sync"}, {"", "a", "asyn", "async|sync", "SYNC", "|"}, "one of async|sync"},
    {"write", TEXT, AT(write), {"racy", "aggregate", ""}, {"atomic", "rac"}, "one of racy|aggregate"},
    {"staleness", TEXT, AT(staleness), {"0", "inf", ""}, {"1", "-1", "in"}, "one of 0|inf"},
    {"batch", COUNT, AT(batch), {"1", "1073741824"}, {"0", "1073741825"}, "a whole number from 1 to"},
    {"chunks", COUNT, AT(chunks), {"1", "1024"}, {"0", "1025"}, "a whole number from 1 to 1024, or auto"},
    {"item", COUNT, AT(item), {"1", "16777216"}, {"0", "16777217"}, "a whole number from 1 to"},
    {"group", COUNT, AT(group), {"1", "64"}, {"0", "65"}, "a whole number from 1 to 64"},
    {"model", TEXT, AT(model), {"logistic", "my own"}, {NULL}, NULL}, /* known when a run begins */
    {"rate",
     REAL,
     AT(rate),
     {"0.25", "1e-12", "1e12"},
     {"0", "-1", "nan", "inf", "1e13", "1e999", "", "0.1x", " 1", "+1"},
     "a number from 1e-12 to 1e+12, or auto"},
    {"schedule", TEXT, AT(schedule), {"constant", "inverse"}, {"", "cosine"}, "one of constant|inverse"},
    {"power", REAL, AT(power), {"0", "0.5", "8"}, {"-0.1", "8.1", "nan"}, "a number from 0 to 8"},
    {"l2", REAL, AT(l2), {"0", "1e-4", "1000000"}, {"-1e-9", "1000001", "inf"}, "a number from 0 to 1e+06"},
    {"bias", COUNT, AT(bias), {"0", "1"}, {"2", "yes", "", "01"}, "1 or 0"},
    {"valid", TEXT, AT(valid), {"", "none", "0.1", "a/file"}, {NULL}, NULL},
    {"seed",
     COUNT,
     AT(seed),
     {"0", "9000000000000000000"},
     {"-1", "9300000000000000000", "18446744073709551616"},
     "a whole number from 0 to"},
    {"shuffle", COUNT, AT(shuffle), {"0", "1"}, {"2", "true"}, "1 or 0"},
    {"backend", TEXT, AT(backend), {"shm", "plain", "copy"}, {"", "socket"}, "one of shm|plain|copy"},
    {"spawn", TEXT, AT(spawn), {"processes", "threads"}, {"", "fibers"}, "one of processes|threads"},
    {"bind", TEXT, AT(bind), {"core", "none"}, {"", "socket"}, "one of core|none"},
};
enum { N_OPTIONS = sizeof OPTIONS / sizeof *OPTIONS };

static struct shmt_config g_config;

static int begin(void **state) {
    (void)state;
    alarm(60);
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct shmtrain_option *option = shmtrain_option_at(i);
        if (option) unsetenv(option->environment);
    }
    return shmt_config_init(&g_config, NULL);
}

static int end(void **state) {
    (void)state;
    shmt_config_fini(&g_config);
    shmt_config_fini(&g_config); /* once more is harmless */
    return 0;
}

static const void *field(size_t i) { return (const unsigned char *)&g_config + OPTIONS[i].offset; }

static void assert_is(size_t i, const char *value) {
    if (OPTIONS[i].kind == COUNT)
        assert_int_equal(*(const uint64_t *)field(i), strtoull(value, NULL, 10));
    else if (OPTIONS[i].kind == REAL)
        assert_true(*(const double *)field(i) == strtod(value, NULL));
    else
        assert_string_equal(*(char *const *)field(i), value);
}

/* ---- the table ---- */

static void the_table_describes_every_option_once(void **state) {
    size_t n = 0;
    const struct shmtrain_option *option;
    (void)state;
    for (; (option = shmtrain_option_at(n)); n++) {
        assert_true(n < N_OPTIONS);
        assert_string_equal(option->name, OPTIONS[n].name);
        char variable[64] = "SHMTRAIN_";
        for (size_t k = 0; option->name[k]; k++) variable[9 + k] = (char)toupper(option->name[k]);
        assert_string_equal(option->environment, variable);
        assert_true(option->argument && option->group[0] && option->help[0] && !strchr(option->help, '\n'));
        for (size_t i = 0; i < n; i++) {
            const struct shmtrain_option *other = shmtrain_option_at(i);
            assert_string_not_equal(other->name, option->name);
            assert_true(option->letter == 0 || option->letter != other->letter);
        }
    }
    assert_int_equal(n, N_OPTIONS);
    assert_null(shmtrain_option_at(n + 1));
    assert_null(shmtrain_option_at(SIZE_MAX));
}

static void every_default_may_be_typed(void **state) {
    const struct shmt_config fresh = g_config;
    (void)state;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        struct shmt_error e = {0};
        const char *standard = shmtrain_option_at(i)->standard;
        if (shmt_config_set(&g_config, OPTIONS[i].name, "x", standard, &e) != 0) fail_msg("%s", e.text);
        if (OPTIONS[i].kind == TEXT)
            assert_is(i, standard);
        else
            assert_memory_equal(field(i), (const unsigned char *)&fresh + OPTIONS[i].offset, 8);
    }
    assert_true(isnan(g_config.rate) && g_config.workers == 0); /* to be resolved when a run begins */
    assert_int_equal(g_config.epochs, 10);
}

/* ---- setting ---- */

static void what_is_set_is_what_is_there(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OPTIONS; i++)
        for (size_t k = 0; OPTIONS[i].good[k]; k++) {
            struct shmt_error e = {0};
            if (shmt_config_set(&g_config, OPTIONS[i].name, "x", OPTIONS[i].good[k], &e) != 0) fail_msg("%s", e.text);
            assert_is(i, OPTIONS[i].good[k]);
        }
}

static void what_is_refused_is_told_with_what_is_expected_and_changes_nothing(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *name = OPTIONS[i].name, *before = OPTIONS[i].good[0];
        assert_int_equal(shmt_config_set(&g_config, name, name, before, NULL), 0);
        for (size_t k = 0; OPTIONS[i].bad[k]; k++) {
            char begins[128];
            struct shmt_error e = {0};
            const char *value = OPTIONS[i].bad[k];
            if (shmt_config_set(&g_config, name, "--given", value, &e) != SHMTRAIN_E_USAGE)
                fail_msg("%s takes %s", name, value);
            snprintf(begins, sizeof begins, "--given %s: expected ", value[0] ? value : "\"\"");
            if (strncmp(e.text, begins, strlen(begins)) != 0 || !strstr(e.text, OPTIONS[i].expected)) fail_msg("%s", e.text);
            assert_is(i, before);
        }
    }
}

static void a_long_value_is_cut_in_the_sentence(void **state) {
    char value[2000];
    struct shmt_error e = {0};
    (void)state;
    memset(value, '9', sizeof value);
    value[sizeof value - 1] = '\0';
    assert_int_equal(shmt_config_set(&g_config, "workers", "--workers", value, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "expected a whole number"));
    shmt_error_clear(&e);
    assert_int_equal(shmt_config_set(&g_config, value, value, "1", &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "shmtrain --help"));
}

/* ---- the environment ---- */

static void the_environment_sets_every_option(void **state) {
    (void)state;
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *good = OPTIONS[i].good[1] && OPTIONS[i].good[1][0] ? OPTIONS[i].good[1] : OPTIONS[i].good[0];
        setenv(shmtrain_option_at(i)->environment, good, 1);
        assert_int_equal(shmt_config_set_from_environment(&g_config, NULL), 0);
        assert_is(i, good);
        unsetenv(shmtrain_option_at(i)->environment);
    }
}

static void an_empty_variable_is_none(void **state) {
    (void)state;
    setenv("SHMTRAIN_MODE", "", 1);
    setenv("SHMTRAIN_WORKERS", "", 1);
    assert_int_equal(shmt_config_set_from_environment(&g_config, NULL), 0);
    assert_string_equal(g_config.mode, "async");
}

static void a_bad_variable_is_named(void **state) {
    struct shmtrain_store *store;
    (void)state;
    setenv("SHMTRAIN_EPOCHS", "ten", 1);
    assert_int_equal(shmtrain_store_create(&store), 0); /* which does not look at the environment */
    assert_int_equal(shmtrain_store_set_from_environment(store), SHMTRAIN_E_USAGE);
    assert_string_equal(shmtrain_store_message(store), "SHMTRAIN_EPOCHS ten: expected a whole number from 1 to 1e+06");
    assert_int_equal(shmtrain_store_set(store, "epochs", "10"), 0);
    assert_string_equal(shmtrain_store_message(store), ""); /* of the last call */
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_table_describes_every_option_once),
        TEST(every_default_may_be_typed),
        TEST(what_is_set_is_what_is_there),
        TEST(what_is_refused_is_told_with_what_is_expected_and_changes_nothing),
        TEST(a_long_value_is_cut_in_the_sentence),
        TEST(the_environment_sets_every_option),
        TEST(an_empty_variable_is_none),
        TEST(a_bad_variable_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
