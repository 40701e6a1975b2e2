/* The real program from outside: what is shared with other programs by name, and the plan of the machine. */
#include "run_program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

#define LARGE_DATA "builtin:sparse:examples=100000,valid=500,features=400,nonzeros=12"
#define DATA       "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

static char g_name[64]; /* of the test that runs */

static int make_name(void **state) {
    static int n;
    (void)state;
    snprintf(g_name, sizeof g_name, "test_program_shared-%d-%d", getpid(), n++);
    return 0;
}

static int end_all(void **state) {
    RUN("rm", "--force", g_name); /* whatever the test has left */
    return program_end_all(state);
}

static void assert_says(const struct program *p, const char *text) {
    if (!strstr(p->text[OUT], text)) fail_msg("\"%s\" is not in:\n%s", text, p->text[OUT]);
}

/* The store's line of `ls`, or NULL. */
static char *listed(void) {
    struct program *p = RUN("ls");
    program_assert_status(p, 0);
    char *line = strstr(p->text[OUT], g_name);
    if (line) line[strcspn(line, "\n")] = '\0';
    return line;
}

static void send(struct program *p, int number) { assert_int_equal(kill(p->pid, number), 0); }

/* ---- stores that are over ---- */

static void a_named_store_stays_until_it_is_removed(void **state) {
    (void)state;
    struct program *run = RUN("-w", "2", "-e", "3", "--name", g_name, DATA);
    program_assert_status(run, 0);
    const char *line = listed();
    assert_non_null(line);
    assert_non_null(strstr(line, " logistic "));
    assert_non_null(strstr(line, " over"));
    struct program *p = RUN("watch", g_name);
    program_assert_status(p, 0);
    const char *table = strstr(run->text[OUT], "epoch  train loss"), *seconds = strstr(run->text[OUT], "\ndone: ");
    char lines[2000];
    assert_true(table && seconds && seconds > table);
    snprintf(lines, sizeof lines, "%.*s", (int)(seconds - table), table);
    assert_says(p, lines); /* the same lines, to the last digit */
    assert_says(p, strstr(run->text[OUT], "parameters  xxh64 "));
    p = RUN("rm", g_name);
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    assert_null(listed());
    program_assert_refused(RUN("rm", g_name), 2, "there is no store ");
    program_assert_refused(RUN("watch", g_name), 2, "there is no store ");
    program_assert_refused(RUN("join", g_name), 2, "there is no store ");
}

static void ls_says_all_in_json(void **state) {
    (void)state;
    program_assert_status(RUN("-q", "-w", "2", "-e", "1", "--guests", "3", "--name", g_name, DATA), 0);
    struct program *p = RUN("ls", "--json");
    program_assert_status(p, 0);
    json_t *o = program_json(p), *store, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(o, "stores"), i, store) {
        if (strcmp(json_string_value(json_object_get(store, "name")), g_name) == 0) found = store;
    }
    assert_non_null(found);
    assert_string_equal(json_string_value(json_object_get(found, "model")), "logistic");
    assert_true(json_is_false(json_object_get(found, "in_use")) && json_is_true(json_object_get(found, "intact")));
    assert_int_equal(json_integer_value(json_object_get(found, "workers")), 2);
    assert_int_equal(json_integer_value(json_object_get(found, "guests")), 3);
    assert_true(json_integer_value(json_object_get(found, "bytes")) > 400 * 4);
    assert_true(json_integer_value(json_object_get(found, "made_at")) > 1600000000);
    json_decref(o);
    program_assert_refused(RUN("-q", "-w", "2", "-e", "1", "--name", g_name, DATA), 2, g_name); /* the name is taken */
}

/* ---- runs that go on ---- */

/* Its epochs are long enough for its lines not to fill the pipe while the test listens to somebody else. */
#define LONG_DATA "builtin:sparse:examples=100000,valid=500,features=400,nonzeros=12"

static struct program *start_run(void) {
    struct program *run = START("-w", "1", "-e", "1000000", "--guests", "2", "--name", g_name, LONG_DATA);
    program_wait_for_epoch(run);
    return run;
}

static void end_run(struct program *run) {
    send(run, SIGTERM);
    program_finish(run);
    program_assert_status(run, 143);
}

static void a_store_in_use_is_removed_only_by_force(void **state) {
    (void)state;
    struct program *run = start_run();
    assert_non_null(strstr(listed(), " in use"));
    program_assert_refused(RUN("rm", g_name), 2, "is in use");
    program_assert_refused(RUN("rm", g_name), 2, "use --force to remove it anyway");
    program_assert_status(RUN("rm", "--force", g_name), 0);
    assert_null(listed());
    end_run(run); /* it has noticed nothing */
}

static void who_watches_may_go_at_any_time(void **state) {
    (void)state;
    struct program *run = start_run(), *watch = START("watch", g_name);
    program_wait_for_epoch(watch);
    assert_says(watch, "model       logistic");
    send(watch, SIGINT);
    program_finish(watch);
    program_assert_status(watch, 130);
    assert_string_equal(watch->text[ERR], "");
    end_run(run);
}

static void who_watches_sees_the_end(void **state) {
    (void)state;
    struct program *run = start_run(), *watch = START("watch", "--json", g_name);
    program_wait_for(watch, ERR, "\n    1 ");
    end_run(run);
    program_finish(watch);
    program_assert_status(watch, 0);
    json_t *o = program_json(watch);
    assert_true(json_is_true(json_object_get(o, "stopped")));
    const char *hash = json_string_value(json_object_get(o, "parameters_xxh64"));
    assert_int_equal(strlen(hash), 16);
    assert_says(run, hash);
    json_decref(o);
}

static void who_joins_works_until_the_end_or_leaves(void **state) {
    (void)state;
    struct program *run = start_run();
    struct program *stays = START("join", "-w", "1", g_name), *leaves = START("join", "-w", "1", g_name);
    program_wait_for(stays, OUT, " %  0.9"); /* accuracy and AUC of an epoch that it was there for */
    program_wait_for(leaves, OUT, " %  0.9");
    program_assert_refused(RUN("join", "-w", "1", g_name), 2, "has no free place");
    send(leaves, SIGINT);
    program_finish(leaves);
    program_assert_status(leaves, 130);
    assert_says(leaves, ": its run goes on\n");
    end_run(run);
    program_finish(stays);
    program_assert_status(stays, 0);
    const char *hash = strstr(run->text[OUT], "parameters  xxh64 ");
    assert_non_null(hash);
    assert_says(stays, hash);
}

static void who_is_early_waits_until_the_run_is_prepared(void **state) {
    (void)state;
    struct program *run = START("-w", "1", "-e", "1000000", "--guests", "1", "--name", g_name, LARGE_DATA);
    while (!listed()) continue; /* the name is there before the data is */
    struct program *watch = START("watch", g_name), *join = START("join", "-w", "1", g_name);
    program_wait_for(watch, OUT, "\nepoch");
    program_wait_for(join, OUT, "\nepoch");
    end_run(run);
    program_finish(watch);
    program_finish(join);
    program_assert_status(watch, 0);
    program_assert_status(join, 0);
}

static void who_waits_can_be_interrupted_and_sees_a_run_that_never_begins(void **state) {
    char file[128];
    (void)state;
    snprintf(file, sizeof file, "/shmtrain-%ju-%s", (uintmax_t)geteuid(), g_name);
    const int fd = shm_open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct flock mark = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)1 << 40, .l_len = 1}; /* as its maker does */
    assert_true(fd >= 0 && fcntl(fd, F_OFD_SETLK, &mark) == 0);
    struct program *watch = START("watch", g_name), *join = START("join", g_name);
    program_wait_for(watch, ERR, "is still being prepared\n");
    program_wait_for(join, ERR, "is still being prepared\n");
    send(join, SIGINT);
    program_finish(join);
    program_assert_status(join, 130);
    close(fd); /* its maker has died */
    program_finish(watch);
    program_assert_status(watch, 1);
    assert_non_null(strstr(watch->text[ERR], "died before it started"));
    assert_non_null(strstr(listed(), " died"));
}

/* ---- the plan ---- */

static int be_large(void) { return setenv("HWLOC_SYNTHETIC", "numa:4 core:16 pu:2", 1); }

static void topo_plans_for_machines_that_one_does_not_have(void **state) {
    (void)state;
    struct program *p = RUN_IN(be_large, "topo", "-w", "8", DATA);
    program_assert_status(p, 0);
    assert_says(p, "4 nodes");
    for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n"))
        if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
    p = RUN_IN(be_large, "topo", "-w", "8", "--json");
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    assert_true(json_object_size(o) > 3);
    json_decref(o);
    program_assert_refused(RUN("topo", "missing"), 1, "cannot open missing: No such file");
    program_assert_refused(RUN("topo", "-o", "x"), 2, "topo does not use --output");
}

/* Places in the run stay free: it is refused before it takes one. */
static void nobody_joins_on_a_machine_that_is_only_described(void **state) {
    (void)state;
    struct program *run = start_run();
    program_assert_refused(RUN_IN(be_large, "join", "-w", "1", g_name), 2,
                           "HWLOC_SYNTHETIC describes another machine, which only shmtrain topo can use");
    struct program *watch = START_IN(be_large, "watch", g_name); /* looks on, and runs nothing */
    program_wait_for_epoch(watch);
    end_run(run);
    program_finish(watch);
    program_assert_status(watch, 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_name, end_all)
    const struct CMUnitTest tests[] = {
        TEST(a_named_store_stays_until_it_is_removed),
        TEST(ls_says_all_in_json),
        TEST(a_store_in_use_is_removed_only_by_force),
        TEST(who_watches_may_go_at_any_time),
        TEST(who_watches_sees_the_end),
        TEST(who_joins_works_until_the_end_or_leaves),
        TEST(who_is_early_waits_until_the_run_is_prepared),
        TEST(who_waits_can_be_interrupted_and_sees_a_run_that_never_begins),
        TEST(topo_plans_for_machines_that_one_does_not_have),
        TEST(nobody_joins_on_a_machine_that_is_only_described),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
