/* The real program from outside: what it says about this machine (doctor), and how it measures it (bench). */
#include "run_program.h"
#include "sanitized.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int on_another_machine(void) { return setenv("HWLOC_SYNTHETIC", "numa:4 core:4 pu:2", 1); }

static int with_small_files(void) {
    const struct rlimit limit = {1 << 20, 1 << 20};
    return setrlimit(RLIMIT_FSIZE, &limit);
}

static int on_one_processor(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return -1;
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && n++ > 0) CPU_CLR(cpu, &set);
    return sched_setaffinity(0, sizeof set, &set);
}

static void assert_narrow(const char *text) {
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("wider than 80 columns: %.*s", (int)strcspn(line, "\n"), line);
}

static void doctor_ends_with_1_where_something_stops_a_run(void **state) {
    (void)state;
    struct program *p = RUN_IN(on_another_machine, "doctor");
    program_assert_status(p, 1);
    assert_narrow(p->text[OUT]);
    assert_non_null(strstr(p->text[OUT], "stops machine "));
    assert_non_null(strstr(p->text[OUT], "\n   -> unset HWLOC_SYNTHETIC\n"));
    p = RUN_IN(with_small_files, "doctor");
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[OUT], "\n   -> ulimit -f unlimited\n"));
}

/* What stops a run here is this machine's matter: the status says the same as the figures do. */
static void doctor_in_json_says_what_its_status_says(void **state) {
    (void)state;
    struct program *p = RUN("doctor", "--json");
    assert_true(p->status == 0 || p->status == 1);
    assert_string_equal(p->text[ERR], "");
    json_t *o = program_json(p);
    assert_int_equal(p->status, json_integer_value(json_object_get(o, "stops")) > 0);
    assert_true(json_array_size(json_object_get(o, "findings")) > 15);
    json_decref(o);
}

static void doctor_sees_the_processors_that_it_may_use(void **state) {
    (void)state;
    struct program *p = RUN_IN(on_one_processor, "doctor");
    assert_non_null(strstr(p->text[OUT], "1 core for workers, 1 hardware thread\n"));
    assert_narrow(p->text[OUT]);
}

/* ---- bench ---- */

static void assert_has_share(const json_t *operation) {
    const json_t *share = json_object_get(operation, "share");
    if (!(json_number_value(json_object_get(share, "median")) > 0))
        fail_msg("no share of %s", json_string_value(json_object_get(operation, "name")));
}

static void bench_gives_each_operation_a_share_of_its_floor(void **state) {
    (void)state;
    if (SANITIZED) SKIP("a benchmark with sanitizers says nothing");
    struct program *p = RUN("bench", "--quick", "--json");
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    json_t *o = program_json(p), *list = json_object_get(o, "operations");
    const bool two = json_integer_value(json_object_get(o, "cores")) >= 2;
    assert_true(json_array_size(list) >= (two ? 7 : 3)); /* one less of each where there is no OpenBLAS */
    for (size_t i = 0; i < json_array_size(list); i++) assert_has_share(json_array_get(list, i));
    assert_true(json_array_size(json_object_get(o, "floors")) >= (two ? 12 : 5));
    assert_int_equal(json_integer_value(json_object_get(o, "rounds")), 3);
    json_decref(o);
}

static void bench_on_one_processor_says_nothing_about_two(void **state) {
    (void)state;
    struct program *p = RUN_IN(on_one_processor, "bench", "--quick");
    program_assert_status(p, 0);
    assert_narrow(p->text[OUT]);
    assert_non_null(strstr(p->text[OUT], "\nsparse epoch, 1 worker "));
    assert_non_null(strstr(p->text[OUT], "\nOne core: figures for two cores are missing.\n"));
    assert_null(strstr(p->text[OUT], "meeting of 2"));
}

static void bench_that_is_interrupted_leaves_nothing_behind(void **state) {
    (void)state;
    struct program *p = START("bench", "--quick");
    (void)program_supervisor(p);
    usleep(300000); /* in the midst of something; whatever it is */
    kill(p->pid, SIGTERM);
    program_finish(p);
    assert_int_equal(p->status, -SIGTERM);
}

static void what_they_do_not_take_is_refused(void **state) {
    (void)state;
    const struct refusal list[] = {
        {2, "what is \"a9a\"?", {"doctor", "a9a"}},
        {2, "doctor does not use --workers", {"doctor", "-w", "2"}},
        {2, "what is \"a9a\"?", {"bench", "a9a"}},
        {2, "train does not use --quick", {"--quick"}},
    };
    ASSERT_ALL_REFUSED(list);
    program_assert_refused(RUN_IN(on_another_machine, "bench"), 2, "HWLOC_SYNTHETIC describes another machine");
}

static int without_end(void) { return setenv("HWLOC_SYNTHETIC", "node:999 core:99 pu:9", 1); }

static void a_machine_without_end_is_refused(void **state) {
    (void)state;
    program_assert_refused(RUN_IN(without_end, "topo"), 2,
                           "HWLOC_SYNTHETIC=node:999 core:99 pu:9 describes 890109 processors: describe 8192 at most");
    program_assert_refused(RUN_IN(without_end, "-w", "1", "-e", "1", "builtin:sparse:examples=100"), 2, "890109 processors");
}

/* hwloc waits for somebody to write the pipe. */
static int from_a_pipe(void) { return setenv("HWLOC_XMLFILE", "machine.xml", 1); }

static void the_first_signal_ends_a_look_at_the_machine(void **state) {
    static const int SIGNALS[] = {SIGTERM, SIGINT};
    (void)state;
    assert_int_equal(mkfifo("machine.xml", 0600), 0);
    for (size_t i = 0; i < 2; i++) {
        struct program *p = START_IN(from_a_pipe, "topo");
        const int pipe = open("machine.xml", O_WRONLY); /* waits until hwloc reads */
        assert_true(pipe >= 0);
        assert_int_equal(kill(p->pid, SIGNALS[i]), 0);
        program_finish(p);
        close(pipe);
        assert_int_equal(p->status, -SIGNALS[i]);
    }
    unlink("machine.xml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_machine_without_end_is_refused),
        PROGRAM_TEST(the_first_signal_ends_a_look_at_the_machine),
        PROGRAM_TEST(doctor_ends_with_1_where_something_stops_a_run),
        PROGRAM_TEST(doctor_in_json_says_what_its_status_says),
        PROGRAM_TEST(doctor_sees_the_processors_that_it_may_use),
        PROGRAM_TEST(bench_gives_each_operation_a_share_of_its_floor),
        PROGRAM_TEST(bench_on_one_processor_says_nothing_about_two),
        PROGRAM_TEST(bench_that_is_interrupted_leaves_nothing_behind),
        PROGRAM_TEST(what_they_do_not_take_is_refused),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
