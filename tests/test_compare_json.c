/* cli: the JSON of a comparison: what it has, that it leaves the reports as they are, and that each of its keys is documented. */
#include "compare_help.h"

#include <jansson.h>

static void put_json(const struct comparison *c, FILE *out) { assert_int_equal(compare_put_json(c, out), 0); }

static json_t *json_of(const struct comparison *c) {
    char *text = text_of(put_json, c);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    free(text);
    return o;
}

static void json_has_each_report_and_when_it_came_to_the_target(void **state) {
    (void)state;
    struct comparison *c = make_comparison();
    char *text = text_of(put_json, c);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    NEAR(json_real_value(json_object_get(o, "target")), 0.3232);
    assert_string_equal(json_string_value(json_object_get(o, "target_of")), "valid_loss");
    assert_string_equal(json_string_value(json_object_get(o, "data")), "/data/a9a");
    json_t *runs = json_object_get(o, "runs"), *sync = json_array_get(runs, 1), *ssp = json_array_get(runs, 3);
    assert_int_equal(json_array_size(runs), 4);
    assert_string_equal(json_string_value(json_object_get(sync, "asked_for")), "sync");
    assert_int_equal(json_array_size(json_object_get(sync, "epochs")), MADE_EPOCHS);
    assert_true(fabs(json_real_value(json_object_get(sync, "epochs_to_target")) - c->run[1].to_target_epochs) < 1e-9);
    assert_true(fabs(json_real_value(json_object_get(sync, "time_to_target")) - c->run[1].to_target_s) < 1e-9);
    assert_true(json_is_null(json_object_get(json_array_get(runs, 0), "time_to_target")));
    assert_string_equal(json_string_value(json_object_get(ssp, "status")), "SHMTRAIN_E_USAGE");
    assert_non_null(strstr(json_string_value(json_object_get(ssp, "refused")), "adam cannot be written atomically"));
    json_decref(o);
    free(text);
    destroy_comparison(c);
}

static void json_has_every_seed(void **state) {
    (void)state;
    struct comparison *c = make_seeds(3, 0);
    char *text = text_of(put_json, c);
    json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(o);
    json_t *run = json_array_get(json_object_get(o, "runs"), 1), *seeds = json_object_get(run, "seeds");
    assert_int_equal(json_array_size(seeds), 3);
    NEAR(json_real_value(json_object_get(run, "final_loss")), c->run[1].final_loss);
    for (unsigned k = 0; k < 3; k++) {
        json_t *seed = json_array_get(seeds, k);
        assert_int_equal(json_integer_value(json_object_get(seed, "seed")), k + 1);
        assert_true(fabs(json_real_value(json_object_get(seed, "final_loss")) - 0.33 * (1 + 0.001 * k)) < 1e-9);
        assert_true(fabs(json_real_value(json_object_get(seed, "seconds_per_epoch")) - 2 * (1 + 0.1 * k)) < 1e-9);
    }
    json_decref(o);
    free(text);
    destroy_comparison(c);
}

/* Of two numbers of workers, one of which was refused. */
static struct comparison *make_two_numbers(void) {
    struct comparison *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->arguments = &MADE_ARGUMENTS;
    c->target = NAN;
    c->seeds = 1;
    c->n_workers = 2;
    memcpy(c->workers, (uint32_t[]){1, 2}, 2 * sizeof *c->workers);
    add_workers(c, &MADE_QUICK, 1, 1);
    add_workers(c, &MADE_QUICK, 2, 0.5);
    add_refused(c, "backup:2", SHMTRAIN_E_USAGE, "quorum 2: there is 1 worker");
    c->run[2].workers = 1;
    add_refused(c, "local:2", SHMTRAIN_E_NUMBERS, "the loss is not a number");
    compare_letter(c);
    compare_work_out(c);
    return c;
}

/* The report of a run may have fewer or more workers than were asked for. */
static void every_key_of_the_report_is_left_as_it_is(void **state) {
    (void)state;
    struct comparison *c = make_two_numbers();
    json_t *o = json_of(c), *runs = json_object_get(o, "runs"), *value;
    const char *key;
    for (size_t i = 0; i < 2; i++) {
        json_t *report = json_loads(c->run[i].kept->json, 0, NULL), *run = json_array_get(runs, i);
        json_object_foreach(report, key, value) {
            if (!json_equal(value, json_object_get(run, key))) fail_msg("%s is not the report's", key);
        }
        assert_int_equal(json_integer_value(json_object_get(run, "workers")), MADE_WORKERS);
        assert_int_equal(json_integer_value(json_object_get(run, "workers_asked_for")), i + 1);
        json_decref(report);
    }
    assert_int_equal(json_integer_value(json_object_get(json_array_get(runs, 2), "workers_asked_for")), 1);
    json_decref(o);
    destroy_comparison(c);
}

/* ---- documentation ---- */

static char *page(const char *path) {
    char *text = calloc(1, 1 << 19), name[4096];
    const char *source = getenv("TEST_SRCDIR");
    snprintf(name, sizeof name, "%s/%s", source ? source : ".", path);
    FILE *file = fopen(name, "r");
    if (!text || !file || fread(text, 1, (1 << 19) - 1, file) == 0) fail_msg("cannot read %s", name);
    fclose(file);
    return text;
}

/* The guide shows a report's keys; what compare adds stands in a table of docs/modes.md. */
static void assert_documented(const char *key, const char *guide, const char *modes) {
    char shown[64], listed[64];
    snprintf(shown, sizeof shown, "\"%s\":", key);
    snprintf(listed, sizeof listed, "`%s`", key);
    if (!strstr(guide, shown) && !strstr(modes, listed)) fail_msg("\"%s\" is documented nowhere", key);
}

static void find_keys(json_t *o, const char *guide, const char *modes) {
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_array(o)) json_array_foreach(o, i, value) find_keys(value, guide, modes);
    if (!json_is_object(o)) return;
    json_object_foreach(o, key, value) {
        assert_documented(key, guide, modes);
        find_keys(value, guide, modes);
    }
}

static void every_key_is_documented(void **state) {
    (void)state;
    char *guide = page("docs/guide.md"), *modes = page("docs/modes.md");
    struct comparison *made[] = {make_comparison(), make_seeds(3, 0), make_two_numbers()};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        json_t *o = json_of(made[i]);
        find_keys(o, guide, modes);
        json_decref(o);
        destroy_comparison(made[i]);
    }
    free(guide);
    free(modes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_has_each_report_and_when_it_came_to_the_target),
        cmocka_unit_test(json_has_every_seed),
        cmocka_unit_test(every_key_of_the_report_is_left_as_it_is),
        cmocka_unit_test(every_key_is_documented),
    };
    return cmocka_run_group_tests_name("compare_json", tests, NULL, NULL);
}
