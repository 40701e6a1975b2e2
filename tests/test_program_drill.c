/* shmtrain drill from outside: a few rounds, and what it refuses. */
#include "run_program.h"
#include "sanitized.h"

#include <unistd.h>

/* A round each of the last modes, or of some of them. */
#define ROUNDS   (SANITIZED ? "4" : "16")
#define N_ROUNDS (SANITIZED ? 4 : 16)

/* One round in each of the last modes: threads, workers that stay away, guests, checkpoints, hosts. */
static void runs_end_as_they_must_whoever_dies(void **state) {
    (void)state;
    struct program *p = RUN("drill", "--rounds", ROUNDS, "--seed", "62", "--json");
    json_t *json = program_json(p);
    long long deaths = 0, respawns = 0;
    const json_t *mode, *failures = json_object_get(json, "failures");
    size_t i;
    for (i = 0; i < json_array_size(failures); i++)
        print_error("%s\n", json_string_value(json_object_get(json_array_get(failures, i), "why")));
    program_assert_status(p, 0);
    assert_int_equal(json_integer_value(json_object_get(json, "rounds")), N_ROUNDS);
    assert_int_equal(json_integer_value(json_object_get(json, "failed")), 0);
    const json_t *modes = json_object_get(json, "modes");
    assert_int_equal(json_array_size(modes), N_ROUNDS);
    for (i = 0; i < json_array_size(modes); i++) {
        mode = json_array_get(modes, i);
        assert_int_equal(json_integer_value(json_object_get(mode, "runs")), 1);
        deaths += json_integer_value(json_object_get(mode, "deaths"));
        respawns += json_integer_value(json_object_get(mode, "respawns"));
    }
    assert_true(deaths > 0);
    assert_true(respawns > 0);
    if (N_ROUNDS == 16)
        assert_string_equal(json_string_value(json_object_get(json_array_get(modes, 15), "name")), "sync, 2 hosts, resumed");
    json_decref(json);
}

static void one_round_has_a_line_of_its_mode(void **state) {
    (void)state;
    struct program *p = RUN("drill", "--rounds", "1", "--seed", "0");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "\nsync   "));
    assert_non_null(strstr(p->text[OUT], "all ended as expected"));
    assert_int_equal(p->bytes[ERR], 0);
}

/* A shell may have started children before the program took its place. */
static int begets_a_child(void) {
    if (fork() > 0) return 0;
    for (int fd = 0; fd < 3; fd++) close(fd); /* the test waits for the ends of these */
    sleep(5);
    _exit(3);
}

static void children_of_before_are_no_fault(void **state) {
    (void)state;
    struct program *p = RUN_IN(begets_a_child, "drill", "--rounds", "1", "--seed", "0");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "all ended as expected"));
}

static void what_is_no_number_of_rounds_is_refused(void **state) {
    (void)state;
    const char *const bad[] = {"0", "-1", "many", "1x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        program_assert_refused(RUN("drill", "--rounds", bad[i]), 2, "a number of rounds is needed");
    program_assert_refused(RUN("drill", "a9a"), 2, "a9a");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(runs_end_as_they_must_whoever_dies),
        PROGRAM_TEST(one_round_has_a_line_of_its_mode),
        PROGRAM_TEST(children_of_before_are_no_fault),
        PROGRAM_TEST(what_is_no_number_of_rounds_is_refused),
    };
    return cmocka_run_group_tests_name("drills", tests, program_make_folder, program_remove_folder);
}
