/* Tests of what shmtrain_store_plan's plans look like, as lines and as JSON. */
#include "plan_help.h"

#include <jansson.h>

static void lines_are_at_most_80_columns_wide(void **state) {
    (void)state;
    static const char *const MACHINE[] = {BIG, NULL, "numa:64(memory=1024GiB) core:8 pu:2"}, *const NUMA[] = {"auto", "off",
                                                                                                              "bind"};
    for (size_t i = 0; i < 3; i++) {
        struct shmtrain_store *store = store_with(OPTIONS("workers", "300", "bind", "node", "numa", NUMA[i]));
        char *text = shmtrain_plan_text(plan_on(store, MACHINE[i], SPARSE));
        assert_non_null(text);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
        assert_non_null(strstr(text, "and 268 more threads"));
        free(text);
        shmtrain_store_destroy(store);
    }
}

static void names_cannot_command_a_terminal(void **state) {
    (void)state;
    const struct shmtrain_plan plan = {.size = sizeof(struct shmtrain_plan),
                                       .machine = "this machine",
                                       .numa = "off",
                                       .bind = "none",
                                       .hugepages = "off",
                                       .limit = "memory of the machine",
                                       .data = "\033[2J/a/very/long/path/that/goes/on/and/on/and/on/and/on/and/on/da\nta"};
    char *text = shmtrain_plan_text(&plan);
    assert_non_null(text);
    assert_null(strchr(text, '\033'));
    assert_non_null(strstr(text, "/on/da?ta\n"));
    free(text);
}

static void json_has_all_of_the_plan(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "40", "numa", "bind", "threads", "2"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    char *text = shmtrain_plan_json(plan);
    assert_non_null(text);
    assert_int_equal(strcspn(text, "\n"), strlen(text) - 1); /* one line */
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    assert_int_equal(json_integer_value(json_object_get(o, "workers")), 40);
    assert_int_equal(json_integer_value(json_object_get(o, "total_bytes")), plan->total_bytes);
    assert_string_equal(json_string_value(json_object_get(o, "numa")), "bind");
    assert_int_equal(json_array_size(json_object_get(o, "places")), 80);
    const json_t *place = json_array_get(json_object_get(o, "places"), 79);
    assert_int_equal(json_integer_value(json_object_get(place, "worker")), 39);
    assert_int_equal(json_integer_value(json_object_get(place, "cpu")), plan->place[79].cpu);
    assert_int_equal(json_array_size(json_object_get(o, "nodes")), 4);
    assert_int_equal(json_array_size(json_object_get(o, "shards")), plan->n_shards);
    assert_int_equal(json_array_size(json_object_get(o, "parts")), plan->n_parts);
    json_decref(o);
    free(text);
    WELL(store, shmtrain_store_set(store, "numa", "auto"));
    WELL(store, shmtrain_store_set(store, "replicas", "one")); /* so that how many does not depend on the caches of BIG */
    text = shmtrain_plan_json(plan_on(store, BIG, SPARSE));
    assert_non_null(strstr(text, "\"node\":\"all\",\"table\":\"weight\""));
    assert_non_null(strstr(text, "\"data_local\":true"));
    assert_non_null(strstr(text, "\"replicas\":\"one\",\"copies_reason\":null"));
    free(text);
    WELL(store, shmtrain_store_set(store, "numa", "off"));
    text = shmtrain_plan_json(plan_on(store, BIG, SPARSE));
    assert_non_null(strstr(text, "\"node\":null,\"table\":\"weight\""));
    free(text);
    shmtrain_store_destroy(store);
}

/* What the text of a plan with these options says, or not. To be freed. */
static char *text_on(const char *machine, const char *data, const char *const *option) {
    struct shmtrain_store *store = store_with(option);
    char *text = shmtrain_plan_text(plan_on(store, machine, data));
    assert_non_null(text);
    shmtrain_store_destroy(store);
    return text;
}

static void the_text_shows_only_what_will_be(void **state) {
    (void)state;
    char *text = text_on(BIG, SPARSE, OPTIONS("workers", "8"));
    assert_non_null(strstr(text, "over all nodes, data and gradients near their workers\n"));
    assert_non_null(strstr(text, "worker  thread  node  core  processor\n"));
    free(text);
    text = text_on(BIG, SPARSE, OPTIONS("workers", "8", "numa", "interleave"));
    assert_non_null(strstr(text, "over all nodes, data and gradients too\n"));
    free(text);
    text = text_on(BIG, SPARSE, OPTIONS("workers", "80")); /* to nodes: no core is a thread's own */
    assert_non_null(strstr(text, "worker  thread  node\n"));
    free(text);
    text = text_on("core:2 pu:1", SPARSE, OPTIONS("workers", "8"));
    assert_non_null(strstr(text, "not bound: the system places them\n"));
    assert_null(strstr(text, "worker  thread"));
    free(text);
    text = text_on(BIG, NULL, OPTIONS("workers", "8"));
    assert_null(strstr(text, "this run"));
    assert_non_null(strstr(text, "shmtrain topo DATA"));
    free(text);
    text = text_on(BIG, SPARSE, OPTIONS("backend", "plain"));
    assert_non_null(strstr(text, "? the system decides where this run's memory is placed\n"));
    free(text);
}

#define TEST(test) cmocka_unit_test_setup(test, deadline)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(lines_are_at_most_80_columns_wide),
        TEST(names_cannot_command_a_terminal),
        TEST(json_has_all_of_the_plan),
        TEST(the_text_shows_only_what_will_be),
    };
    return cmocka_run_group_tests_name("texts of plans", tests, NULL, NULL);
}
