/* The options of a store. What every option has to do follows from its row of the table, so that a new row is tested without a
 * word here: its limits and words are taken and found again, what lies beyond them is refused in a sentence, and so on. What
 * the table must say of options that people type every day stands below as it is. */
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

#include "workers/crew.h"
#include "configuration/options.h"
#include "consistency/mode.h"
#include "runtime/team.h"

static struct shmt_config g_config;

static const struct shmt_option_row *next_row(size_t *i) { return shmt_option_row_at((*i)++); }
#define EACH(row) (size_t i_ = 0; (row = next_row(&i_));)

static int begin(void **state) {
    const struct shmt_option_row *row;
    (void)state;
    alarm(60);
    for
        EACH(row) unsetenv(row->option.environment);
    return shmt_config_init(&g_config, NULL);
}

static int end(void **state) {
    (void)state;
    shmt_config_fini(&g_config);
    shmt_config_fini(&g_config); /* once more is harmless */
    return 0;
}

static const void *field(const struct shmt_option_row *row) { return (const unsigned char *)&g_config + row->offset; }

static bool is_word(const struct shmt_option_row *row, const char *value) {
    return row->kind < SHMT_OPTION_CHOICE && row->choices && strcmp(value, row->choices) == 0;
}

/* In the list of choices; "" is none of them. */
static uint64_t place_of(const struct shmt_option_row *row, const char *value) {
    char words[128];
    uint64_t at = 0;
    snprintf(words, sizeof words, "%s", row->choices);
    for (char *word = strtok(words, "|"); word; word = strtok(NULL, "|"), at++)
        if (strcmp(word, value) == 0) return at;
    return SHMT_UNSAID;
}

/* The field holds what `value` says. */
static void assert_is(const struct shmt_option_row *row, const char *value) {
    bool same = false;
    switch (row->kind) {
        case SHMT_OPTION_COUNT:
        case SHMT_OPTION_SWITCH:
            same = *(const uint64_t *)field(row) == (is_word(row, value) ? 0 : strtoull(value, NULL, 10));
            break;
        case SHMT_OPTION_REAL:
            same =
                is_word(row, value) ? isnan(*(const double *)field(row)) : *(const double *)field(row) == strtod(value, NULL);
            break;
        case SHMT_OPTION_CHOICE:
            same = *(const uint64_t *)field(row) == place_of(row, value);
            break;
        case SHMT_OPTION_WORD:
        case SHMT_OPTION_TEXT:
            same = strcmp(*(char *const *)field(row), value) == 0;
            break;
    }
    if (!same) fail_msg("--%s is not what \"%s\" says", row->option.name, value);
}

static void take(const struct shmt_option_row *row, const char *value) {
    struct shmt_error e = {0};
    if (shmt_config_set(&g_config, row->option.name, "--given", value, &e) != 0) fail_msg("--%s: %s", row->option.name, e.text);
    assert_is(row, value);
}

/* One sentence: what was given, and what is expected. */
static void refuse(const struct shmt_option_row *row, const char *value) {
    char begins[128];
    struct shmt_error e = {0};
    if (shmt_config_set(&g_config, row->option.name, "--given", value, &e) != SHMTRAIN_E_USAGE)
        fail_msg("--%s takes \"%s\"", row->option.name, value);
    snprintf(begins, sizeof begins, "--given %.60s: expected ", value[0] ? value : "\"\"");
    if (strncmp(e.text, begins, strlen(begins)) != 0) fail_msg("--%s: %s", row->option.name, e.text);
    if (row->choices && !strstr(e.text, row->choices)) fail_msg("--%s: %s", row->option.name, e.text);
}

/* Texts that are checked when they are set have some of their own. */
static const char *good_text(const char *option, size_t i) {
    static const struct {
        const char *option, *good[2];
    } CHECKED[] = {{"mode", {"ssp:4", "sync"}},
                   {"staleness", {"4", "inf"}},
                   {"slow", {"3:5x,0:+2ms", "random:0.1:10x"}},
                   {"cpu", {"portable", "auto"}},
                   {"race-window", {"2us", "0.01:200us"}},
                   {"stall-timeout", {"500ms", "none"}},
                   {"spawn", {"fibers:7", "threads"}},
                   {"sim", {"compute=10ms,straggler=3:5x,pause=7@2s:1s", "measured,death=2@5s"}},
                   {"checkpoint-every", {"5m", "2 epochs"}},
                   {"hosts", {"a:5000,b:5000", "127.0.0.1:1,[::1]:2"}},
                   {"ps-hosts", {"a:2222", "b:2222,c:2222"}},
                   {"worker-hosts", {"a:2222,b:2222", "c:1"}},
                   {"host-timeout", {"30s", "2m"}}};
    static const char *const ANY[] = {"a text", "another, with 1 and = in it"};
    for (size_t k = 0; k < sizeof CHECKED / sizeof *CHECKED; k++)
        if (strcmp(CHECKED[k].option, option) == 0) return i < 2 ? CHECKED[k].good[i] : NULL;
    return i < 2 ? ANY[i] : NULL;
}

/* Values that the row lets through, from 0; NULL behind the last. */
static const char *good_value(const struct shmt_option_row *row, size_t i) {
    static char text[256];
    const char *at = row->choices ? row->choices : "";
    switch (row->kind) {
        case SHMT_OPTION_COUNT:
        case SHMT_OPTION_REAL:
            snprintf(text, sizeof text, row->kind == SHMT_OPTION_REAL ? "%.17g" : "%.0f", i == 0 ? row->least : row->most);
            return i < 2 ? text : i == 2 ? row->choices : NULL;
        case SHMT_OPTION_SWITCH:
            return i < 2 ? i == 0 ? "0" : "1" : NULL;
        case SHMT_OPTION_CHOICE:
        case SHMT_OPTION_WORD:
            for (; i > 0 && at; i--, at = at ? at + 1 : NULL) at = strchr(at, '|');
            if (!at) return NULL;
            snprintf(text, sizeof text, "%.*s", (int)strcspn(at, "|"), at);
            return text;
        case SHMT_OPTION_TEXT:
            return good_text(row->option.name, i);
    }
    return NULL;
}

/* ---- the table ---- */

static void the_table_describes_every_option_once(void **state) {
    const struct shmt_option_row *row, *other;
    size_t n = 0;
    (void)state;
    for (; (row = shmt_option_row_at(n)); n++) {
        const struct shmtrain_option *o = &row->option;
        char variable[64] = "SHMTRAIN_";
        assert_ptr_equal(shmtrain_option_at(n), o);
        for (size_t k = 0; o->name[k]; k++) variable[9 + k] = (char)(o->name[k] == '-' ? '_' : toupper(o->name[k]));
        assert_string_equal(o->environment, variable);
        assert_true((o->argument || row->kind == SHMT_OPTION_SWITCH) && o->group[0] && o->help[0] && !strchr(o->help, '\n'));
        assert_true(row->offset + 8 <= sizeof g_config);
        assert_true(row->kind >= SHMT_OPTION_CHOICE || row->least < row->most);
        for (size_t i = 0; i < n && (other = shmt_option_row_at(i)); i++) {
            assert_string_not_equal(other->option.name, o->name);
            assert_true(o->letter == 0 || o->letter != other->option.letter);
            assert_true(other->offset + 8 <= row->offset || row->offset + 8 <= other->offset);
        }
    }
    assert_true(n > 20);
    while (shmtrain_option_at(n)) n++; /* those of built-in models */
    assert_null(shmtrain_option_at(n + 1));
    assert_null(shmtrain_option_at(SIZE_MAX));
    assert_null(shmt_option_row_at(SIZE_MAX));
}

/* A field that no row describes would never be set. */
static void every_field_of_the_configuration_has_a_row(void **state) {
    const struct shmt_option_row *row;
    size_t covered = 0;
    (void)state;
    for
        EACH(row) covered += 8;
    const size_t others =
        sizeof g_config.given + sizeof g_config.parsed + sizeof g_config.own + 8; /* about rows and models' own */
    assert_int_equal(covered + others, sizeof g_config);
}

static void every_default_may_be_typed(void **state) {
    const struct shmt_option_row *row;
    const struct shmt_config fresh = g_config;
    (void)state;
    for
        EACH(row) {
            const char *second = good_value(row, 1);
            struct shmt_error e = {0};
            const bool is_text = row->kind >= SHMT_OPTION_CHOICE;
            if (is_text) assert_is(row, row->option.standard);
            if (second) take(row, second);
            if (shmt_config_set(&g_config, row->option.name, "x", row->option.standard, &e) != 0) fail_msg("%s", e.text);
            if (is_text)
                assert_is(row, row->option.standard);
            else
                assert_memory_equal(field(row), (const unsigned char *)&fresh + row->offset, 8);
        }
}

/* What the guide and the manual tell. */
static void defaults_are_what_they_are_said_to_be(void **state) {
    (void)state;
    assert_true(g_config.workers == 0 && isnan(g_config.rate)); /* to be resolved when a run begins */
    assert_int_equal(g_config.threads, 1);
    assert_true(g_config.epochs == 0 && g_config.batch == 0);
    assert_int_equal(g_config.seed, 1);
    assert_string_equal(g_config.mode, "auto");
    assert_int_equal(g_config.optimizer, SHMT_RULE_SGD);
    assert_ptr_equal(shmt_backend_at(g_config.backend), shmt_backend_find("shm"));
    assert_string_equal(g_config.spawn, "processes");
}

/* ---- modes, as applications see them ---- */

/* One option of a mode's axes, on the policy. */
static void put_axis(struct shmt_policy *p, const char *option, const char *value) {
    struct shmt_error e = {0};
    const struct shmt_config *c = &g_config;
    if (shmt_config_set(&g_config, option + 2, option, value, &e) != 0) fail_msg("%s", e.text);
    if (strcmp(option, "--write") == 0)
        p->write = (enum shmt_write)c->axes.write;
    else if (strcmp(option, "--staleness") == 0)
        p->staleness = c->parsed.staleness;
    else if (strcmp(option, "--quorum") == 0)
        p->quorum = (uint32_t)c->axes.quorum;
    else if (strcmp(option, "--late") == 0)
        p->late = (enum shmt_late)c->axes.late;
    else if (strcmp(option, "--replicas") == 0)
        p->replicas = (enum shmt_replicas)c->axes.replicas;
    else if (strcmp(option, "--merge-every") == 0)
        p->merge_every = (uint32_t)c->axes.merge_every;
    else if (strcmp(option, "--merge") == 0)
        p->merge = (enum shmt_merge)c->axes.merge;
    else
        fail_msg("\"%s\" is no axis", option);
}

/* With the number 3 for the letter, whatever it means. */
static void a_mode_is_what_its_axes_say(void **state) {
    const struct shmtrain_mode *m;
    size_t i = 0;
    (void)state;
    for (; (m = shmtrain_mode_at(i)); i++) {
        struct shmt_policy mode, axes = {0};
        struct shmt_error e = {0};
        char form[32], text[256];
        const size_t n = strcspn(m->form, ":");
        const char *letter = m->form[n] ? m->form + n + 1 : "";
        assert_true(strncmp(m->form, m->name, n) == 0 && m->name[n] == '\0');
        assert_true((letter[0] != '\0') == (m->number[0] != '\0') && (letter[0] != '\0') == (m->standard[0] != '\0'));
        assert_true(m->about[0] && m->known_as[0]);
        snprintf(form, sizeof form, letter[0] ? "%s:3" : "%s", m->name);
        assert_int_equal(shmt_mode_parse("mode", form, &mode, &e), 0);
        snprintf(text, sizeof text, "%s", m->axes);
        for (char *option = strtok(text, " "); option; option = strtok(NULL, " ")) {
            const char *value = strtok(NULL, " ");
            assert_non_null(value);
            const bool is_number = letter[0] && strcmp(value, letter) == 0;
            if (is_number) assert_string_equal(option + 2, m->number);
            put_axis(&axes, option, is_number ? "3" : value);
        }
        if (!shmt_policy_equal(&mode, &axes)) fail_msg("mode %s is not %s", m->name, m->axes);
        assert_ptr_equal(shmtrain_mode_at(i), m);
    }
    assert_true(i >= 6);
    assert_null(shmtrain_mode_at(SIZE_MAX));
}

/* ---- setting ---- */

static void what_is_set_is_what_is_there(void **state) {
    const struct shmt_option_row *row;
    const char *value;
    (void)state;
    for
        EACH(row)
    for (size_t i = 0; (value = good_value(row, i)); i++) take(row, value);
}

/* Neighbours of the limits, and what is no number at all. */
static void refuse_numbers(const struct shmt_option_row *row) {
    static const char *const BAD[] = {"",    "x",   "-1e9", "+1",    " 2",   "2 ", "0x2",
                                      "1,5", "nan", "inf",  "1e999", "-nan", "--", "2;"};
    char text[64];
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) refuse(row, BAD[i]);
    if (row->kind == SHMT_OPTION_REAL) {
        snprintf(text, sizeof text, "%.17g", nextafter(row->least, -HUGE_VAL));
        refuse(row, text);
        snprintf(text, sizeof text, "%.17g", nextafter(row->most, HUGE_VAL));
        refuse(row, text);
        return;
    }
    refuse(row, "1.5");
    refuse(row, "1e3");
    refuse(row, "18446744073709551616"); /* 2^64 */
    snprintf(text, sizeof text, "%.0f", row->least - 1);
    refuse(row, text);
    snprintf(text, sizeof text, "%.0f", fmax(row->most + 1, nextafter(row->most, HUGE_VAL)));
    refuse(row, text);
}

static void refuse_words(const struct shmt_option_row *row) {
    char text[64];
    refuse(row, "no such word");
    refuse(row, "|");
    if (strchr(row->choices, '|')) refuse(row, row->choices);
    if (row->option.standard[0]) refuse(row, ""); /* without a default of its own it may be set back to "" */
    snprintf(text, sizeof text, "%.*s", (int)strcspn(row->choices, "|") - 1, row->choices);
    if (text[0]) refuse(row, text);
    snprintf(text, sizeof text, "%.*sx", (int)strcspn(row->choices, "|"), row->choices);
    refuse(row, text);
}

static void what_is_refused_is_told_with_what_is_expected_and_changes_nothing(void **state) {
    static const char *const NO_SWITCH[] = {"", "2", "yes", "true", "01", "on", "-1", " 1"};
    const struct shmt_option_row *row;
    (void)state;
    for
        EACH(row) {
            const char *kept = good_value(row, 0);
            char before[256];
            snprintf(before, sizeof before, "%s", kept);
            take(row, before);
            if (row->kind == SHMT_OPTION_COUNT || row->kind == SHMT_OPTION_REAL) refuse_numbers(row);
            if (row->kind == SHMT_OPTION_CHOICE || row->kind == SHMT_OPTION_WORD) refuse_words(row);
            for (size_t i = 0; row->kind == SHMT_OPTION_SWITCH && i < sizeof NO_SWITCH / sizeof *NO_SWITCH; i++)
                refuse(row, NO_SWITCH[i]);
            assert_is(row, before);
        }
}

/* Word for word, for some: the table could be wrong where the tests above believe it. */
static void refusals_read_well(void **state) {
    static const struct {
        const char *name, *value, *sentence;
    } SAID[] = {
        {"workers", "0", "--workers 0: expected a whole number from 1 to 4096, or cores"},
        {"threads", "many", "--threads many: expected a whole number from 1 to 256"},
        {"epochs", "1e3", "--epochs 1e3: expected a whole number from 1 to 1000000, or auto"},
        {"batch", "0", "--batch 0: expected a whole number from 1 to 1073741824, or auto"},
        {"item", "x", "--item x: expected a whole number from 1 to 16777216, or auto"},
        {"steps", "none", "--steps none: expected a whole number from 1 on, or all"},
        {"steps", "0", "--steps 0: expected a whole number from 1 on, or all"},
        {"steps", "2000000000000000000",
         "--steps 2000000000000000000: expected a whole number from 1 to 1000000000000000000, or all"},
        {"seed", "-1", "--seed -1: expected a whole number from 0 on"},
        {"seed", "99999999999999999999", "--seed 99999999999999999999: expected a whole number from 0 to 9200000000000000000"},
        {"mode", "SYNC", "--mode \"SYNC\" is not one of async, hogwild, sync, allreduce, ssp, backup, local and node"},
        {"mode", "", "--mode \"\" is not one of async, hogwild, sync, allreduce, ssp, backup, local and node"},
        {"mode", "async:2", "--mode async takes no number: \"2\""},
        {"mode", "ssp:", "--mode ssp:: the number is a staleness bound, in clocks, as in ssp:4"},
        {"mode", "backup:0", "--mode backup:0: the number of gradients an update waits for must be at least 1, as in backup:6"},
        {"write", "rac", "--write rac: expected one of racy|atomic|locked|aggregate"},
        {"staleness", "-1", "--staleness -1: expected a whole number of clocks, or inf"},
        {"rate", "", "--rate \"\": expected a number from 1e-12 to 1e+12, or auto"},
        {"l2", "-1e-9", "--l2 -1e-9: expected a number from 0 to 1000000"},
        {"bias", "yes", "--bias yes: expected 1 or 0"},
        {"spawn", "fibres", "--spawn fibres: expected processes, threads or fibers, or fibers and a seed, as fibers:7"},
        {"no-such", "1", "there is no option \"no-such\"; shmtrain help train lists them"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof SAID / sizeof *SAID; i++) {
        char given_as[64];
        struct shmt_error e = {0};
        snprintf(given_as, sizeof given_as, "--%s", SAID[i].name);
        assert_int_equal(shmt_config_set(&g_config, SAID[i].name, given_as, SAID[i].value, &e), SHMTRAIN_E_USAGE);
        assert_string_equal(e.text, SAID[i].sentence);
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
    assert_non_null(strstr(e.text, "shmtrain help train"));
}

/* ---- the environment ---- */

/* "ssp:S" is typed with a number. A path of another processor is a word of option cpu all the same. */
static void take_word(const struct shmt_option_row *row, const char *word) {
    char typed[64];
    struct shmt_error e = {.text = ""};
    snprintf(typed, sizeof typed, "%s", word);
    if (strchr(typed, ':')) strcpy(strchr(typed, ':'), ":2");
    const int rc = shmt_config_set(&g_config, row->option.name, row->option.name, typed, &e);
    if (rc != 0 && strcmp(row->option.name, "cpu") != 0) fail_msg("%s %s: %s", row->option.name, typed, e.text);
}

static void every_word_of_an_option_is_taken(void **state) {
    const struct shmt_option_row *row;
    size_t n_words = 0;
    (void)state;
    for
        EACH(row) {
            char words[256], *rest = NULL;
            shmtrain_option_words(&row->option, words, sizeof words);
            assert_true(strlen(words) + 1 < sizeof words);
            assert_true((row->kind != SHMT_OPTION_CHOICE && row->kind != SHMT_OPTION_WORD) || strcmp(words, row->choices) == 0);
            for (char *word = strtok_r(words, "|", &rest); word; word = strtok_r(NULL, "|", &rest), n_words++)
                take_word(row, word);
        }
    assert_true(n_words > 50);
}

static const char *words_of(const char *option, char *out, size_t bytes) {
    const struct shmtrain_option named = {.name = option};
    memset(out, '?', bytes);
    shmtrain_option_words(&named, out, bytes);
    return out;
}

static void words_of_an_option_are_told(void **state) {
    char out[256];
    (void)state;
    assert_string_equal(words_of("write", out, sizeof out), "racy|atomic|locked|aggregate");
    assert_string_equal(words_of("model", out, sizeof out), "logistic|svm|linear|softmax|mlp|cnn|net");
    assert_string_equal(words_of("mode", out, sizeof out), "auto|async|hogwild|sync|allreduce|ssp:S|backup:K|local:H|node:H");
    assert_string_equal(words_of("cpu", out, sizeof out), "auto|portable|avx2|avx512|neon");
    assert_string_equal(words_of("workers", out, sizeof out), "cores");
    assert_string_equal(words_of("bias", out, sizeof out), "0|1");
    assert_string_equal(words_of("seed", out, sizeof out), "");
    assert_string_equal(words_of("no such option", out, sizeof out), "");
}

static void every_word_of_spawn_is_a_kind_of_worker(void **state) {
    char words[64], *rest = NULL;
    (void)state;
    assert_string_equal(words_of("spawn", words, sizeof words), "processes|threads|fibers");
    for (char *word = strtok_r(words, "|", &rest); word; word = strtok_r(NULL, "|", &rest))
        assert_string_equal(shmt_team_kind_find(word)->name, word);
    assert_null(shmt_team_kind_find("thread"));
}

static void words_that_do_not_fit_are_cut_off(void **state) {
    static const char WHOLE[] = "auto|async|hogwild|sync|allreduce|ssp:S|backup:K|local:H|node:H";
    char out[256];
    (void)state;
    for (size_t bytes = 1; bytes < sizeof WHOLE + 4; bytes++) {
        words_of("mode", out, bytes);
        assert_int_equal(strlen(out), bytes < sizeof WHOLE ? bytes - 1 : sizeof WHOLE - 1);
        assert_int_equal(strncmp(out, WHOLE, strlen(out)), 0);
    }
    out[0] = '!';
    shmtrain_option_words(shmtrain_option_at(0), out, 0);
    assert_int_equal(out[0], '!');
}

static void the_environment_sets_every_option(void **state) {
    const struct shmt_option_row *row;
    (void)state;
    for
        EACH(row)
    for (size_t i = 0; i < 2; i++) {
        const char *value = good_value(row, i);
        if (!value) continue;
        setenv(row->option.environment, value, 1);
        assert_int_equal(shmt_config_set_from_environment(&g_config, NULL), 0);
        assert_is(row, value);
        unsetenv(row->option.environment);
    }
}

static void an_empty_variable_is_none(void **state) {
    (void)state;
    setenv("SHMTRAIN_MODE", "", 1);
    setenv("SHMTRAIN_WORKERS", "", 1);
    assert_int_equal(shmt_config_set_from_environment(&g_config, NULL), 0);
    assert_string_equal(g_config.mode, "auto");
}

static void a_bad_variable_is_named(void **state) {
    struct shmtrain_store *store;
    (void)state;
    setenv("SHMTRAIN_EPOCHS", "ten", 1);
    assert_int_equal(shmtrain_store_create(&store), 0); /* which does not look at the environment */
    assert_int_equal(shmtrain_store_set_from_environment(store), SHMTRAIN_E_USAGE);
    assert_string_equal(shmtrain_store_message(store),
                        "SHMTRAIN_EPOCHS ten: expected a whole number from 1 to 1000000, or auto");
    assert_int_equal(shmtrain_store_set(store, "epochs", "10"), 0);
    assert_string_equal(shmtrain_store_message(store), ""); /* of the last call */
    unsetenv("SHMTRAIN_EPOCHS");
    setenv("SHMTRAIN_MODE", "bsp", 1);
    assert_int_equal(shmtrain_store_set_from_environment(store), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(shmtrain_store_message(store), "SHMTRAIN_MODE \"bsp\" is not one of async, "));
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(the_table_describes_every_option_once),
        TEST(every_field_of_the_configuration_has_a_row),
        TEST(every_default_may_be_typed),
        TEST(defaults_are_what_they_are_said_to_be),
        TEST(a_mode_is_what_its_axes_say),
        TEST(what_is_set_is_what_is_there),
        TEST(what_is_refused_is_told_with_what_is_expected_and_changes_nothing),
        TEST(refusals_read_well),
        TEST(a_long_value_is_cut_in_the_sentence),
        TEST(every_word_of_an_option_is_taken),
        TEST(words_of_an_option_are_told),
        TEST(every_word_of_spawn_is_a_kind_of_worker),
        TEST(words_that_do_not_fit_are_cut_off),
        TEST(the_environment_sets_every_option),
        TEST(an_empty_variable_is_none),
        TEST(a_bad_variable_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
