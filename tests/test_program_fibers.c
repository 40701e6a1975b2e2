/* Workers as fibers, from outside: the same seed gives the same run, sync the bits of processes, and times are virtual. */
#include "run_program.h"

#include <math.h>

#define DATA "builtin:sparse:examples=6000,features=300,nonzeros=9"

#define MISHAPS "death=2@150us,pause=3@100us:500us,death=5@220us"

struct run {
    char parameters[24];
    double seconds, delay, waiting;
    double lost; /* the share of updates; below 0: not counted */
};

static struct run run_of(struct program *p) {
    struct run r;
    program_assert_status(p, 0);
    json_t *run = program_json(p);
    snprintf(r.parameters, sizeof r.parameters, "%s", json_string_value(json_object_get(run, "parameters_xxh64")));
    r.seconds = json_number_value(json_object_get(run, "train_seconds"));
    r.waiting = json_number_value(json_object_get(run, "wait_fraction"));
    const json_t *lost = json_object_get(run, "lost_updates");
    r.lost = json_is_number(lost) ? json_number_value(lost) : -1;
    r.delay = json_number_value(json_object_get(json_object_get(run, "delay"), "mean"));
    json_decref(run);
    return r;
}
#define RUN_OF(...) run_of(RUN("-q", "--json", "-e", "3", "--spawn", __VA_ARGS__, DATA))

static bool are_alike(const struct run *a, const struct run *b) {
    return strcmp(a->parameters, b->parameters) == 0 && a->seconds == b->seconds && a->delay == b->delay &&
           a->waiting == b->waiting && a->lost == b->lost;
}

static void the_same_seed_gives_the_same_run_in_every_mode(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "sync", "ssp:2", "backup:6", "local:8"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        const struct run one = RUN_OF("fibers:5", "-w", "8", "--item", "64", "--mode", MODES[i]);
        const struct run again = RUN_OF("fibers:5", "-w", "8", "--item", "64", "--mode", MODES[i], "--bind", "none");
        const struct run other = RUN_OF("fibers:6", "-w", "8", "--item", "64", "--mode", MODES[i]);
        if (!are_alike(&one, &again))
            fail_msg("%s: %s in %.9f s, %s in %.9f s", MODES[i], one.parameters, one.seconds, again.parameters, again.seconds);
        assert_true(other.seconds != one.seconds);
        assert_int_equal(strcmp(other.parameters, one.parameters) == 0, strcmp(MODES[i], "sync") == 0);
    }
}

static void sync_has_the_bits_of_processes(void **state) {
    (void)state;
    const struct run processes = RUN_OF("processes", "-w", "3", "--mode", "sync"),
                     fibers = RUN_OF("fibers", "-w", "40", "--mode", "sync");
    assert_string_equal(processes.parameters, fibers.parameters);
}

/* Items take 1 ms, 64 of 6000 examples each, by 4 workers: 94 items an epoch, three epochs. */
static void time_passes_as_the_costs_say(void **state) {
    (void)state;
    const struct run even =
        RUN_OF("fibers", "-w", "4", "--mode", "hogwild", "--item", "64", "--sim", "compute=1ms,pull=0s,push=0s");
    assert_true(even.seconds > 3 * 0.0234 && even.seconds < 3 * 0.0242);
    assert_true(even.delay > 100 && even.delay < 64 * 4); /* in updates: the others' within an item */
    const struct run slow = RUN_OF("fibers", "-w", "4", "--mode", "sync", "--sim", "compute=1ms,straggler=2:5x");
    assert_true(slow.waiting > 0.5); /* three of four wait for it for most of the time */
}

#define MEMORY "line=80ns,bandwidth=20GB/s,cache=64KiB,nodes=2,far=1.7x,race=exponential:50ns"

static void memory_takes_the_same_time_each_time(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "sync", "ssp:2", "backup:6", "local:8"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        const struct run one = RUN_OF("fibers:5", "-w", "8", "--item", "64", "--mode", MODES[i], "--sim", MEMORY);
        const struct run again = RUN_OF("fibers:5", "-w", "8", "--item", "64", "--mode", MODES[i], "--sim", MEMORY);
        const struct run without = RUN_OF("fibers:5", "-w", "8", "--item", "64", "--mode", MODES[i]);
        if (!are_alike(&one, &again))
            fail_msg("%s: %s in %.9f s, %s in %.9f s", MODES[i], one.parameters, one.seconds, again.parameters, again.seconds);
        assert_true(one.seconds > without.seconds);
        assert_int_equal(strcmp(without.parameters, one.parameters) == 0, strcmp(MODES[i], "sync") == 0);
    }
}

/* Six thousand examples with one of so many features, by so many workers, a microsecond each but for memory. */
static struct run hogwild(const char *workers, const char *features, const char *memory) {
    char data[80], sim[80];
    snprintf(data, sizeof data, "builtin:sparse:examples=6000,features=%s,nonzeros=1", features);
    snprintf(sim, sizeof sim, "compute=64us,push=0s,pull=0s,look=10ns%s", memory);
    return run_of(RUN("-q", "--json", "-e", "3", "--spawn", "fibers:3", "-w", workers, "--mode", "hogwild", "--item", "64",
                      "--sim", sim, data));
}

static void lines_make_hogwild_slower_where_workers_meet(void **state) {
    (void)state;
    const struct run few = hogwild("16", "4", ",line=80ns"), many = hogwild("16", "100000", ",line=80ns"),
                     more = hogwild("64", "4", ",line=80ns"), alone = hogwild("1", "4", ",line=80ns");
    const struct run free_few = hogwild("16", "4", ""), free_many = hogwild("16", "100000", ""),
                     free_alone = hogwild("1", "4", "");
    assert_true(few.seconds > 2 * free_few.seconds);
    assert_true(few.seconds / free_few.seconds > 1.3 * many.seconds / free_many.seconds);
    assert_true(more.seconds > 0.9 * few.seconds); /* the line comes to one at a time */
    assert_true(alone.seconds == free_alone.seconds);
}

static void hogwild_loses_updates_where_workers_meet(void **state) {
    (void)state;
    const struct run few = hogwild("8", "4", ",line=80ns"), many = hogwild("8", "100000", ",line=80ns"),
                     alone = hogwild("1", "4", ",line=80ns"), without = hogwild("8", "4", ""),
                     raced = hogwild("8", "4", ",race=1us");
    assert_true(few.lost > 0.1 && few.lost < 0.9);
    assert_true(many.lost > 0 && many.lost < 0.8 * few.lost);
    assert_true(alone.lost == 0);
    assert_true(without.lost < 0); /* nothing opens the race, and nobody counts */
    assert_true(raced.lost > few.lost && raced.lost < 1);
}

static void a_thousand_workers_train(void **state) {
    (void)state;
    const struct run many = RUN_OF("fibers", "-w", "1000", "--mode", "hogwild", "--item", "1", "--rate", "0.01");
    assert_true(isfinite(many.seconds) && many.seconds > 0);
}

/* The least stack that may be asked for holds what built-in models need. */
static void the_smallest_stack_is_enough(void **state) {
    (void)state;
    static const char *const LEAST[][5] = {
        {"--mode", "hogwild", "--optimizer", "adam", DATA},
        {"--mode", "local", "-M", "softmax", "builtin:dense:examples=500,features=30,classes=4"},
        {"--mode", "sync", "-M", "cnn", "builtin:digits:examples=200"},
        {"--tolerance", "1e-4", "--C", "1", DATA}};
    for (size_t i = 0; i < sizeof LEAST / sizeof *LEAST; i++)
        program_assert_status(RUN("-q", "-w", "3", "-e", "1", "--spawn", "fibers", "--fiber-stack", "64", LEAST[i][0],
                                  LEAST[i][1], LEAST[i][2], LEAST[i][3], LEAST[i][4]),
                              0);
}

/* What follows from a death is what --on-death says, as among processes, and the same each time. */
static void the_dead_are_restarted_or_left_out_or_end_the_run(void **state) {
    static const char *const MODES[] = {"ssp:4", "async", "backup:6", "local:8"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        const bool can = strcmp(MODES[i], "local:8") != 0 && strcmp(MODES[i], "async") != 0; /* one copy, or a quorum */
        const char *how = can ? "continue" : "respawn";
        const struct run one =
            RUN_OF("fibers:5", "-w", "8", "--item", "16", "--mode", MODES[i], "--on-death", how, "--sim", MISHAPS);
        const struct run again =
            RUN_OF("fibers:5", "-w", "8", "--item", "16", "--mode", MODES[i], "--on-death", how, "--sim", MISHAPS);
        if (!are_alike(&one, &again)) fail_msg("%s: %s and %s", MODES[i], one.parameters, again.parameters);
    }
    struct program *p = RUN("--spawn", "fibers", "-w", "8", "--item", "16", "-e", "3", "--sim", MISHAPS, DATA);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "worker 2 was killed: it is restarted (1 of 3)\n"));
    p = RUN("--spawn", "fibers", "-w", "8", "--item", "16", "-e", "3", "--mode", "ssp:4", "--on-death", "continue", "--sim",
            MISHAPS, DATA);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[ERR], "worker 2 was killed: the others continue without it\n"));
    p = RUN("--spawn", "fibers", "-w", "8", "--item", "16", "-e", "3", "--on-death", "abort", "--sim", MISHAPS, DATA);
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[ERR], "worker 2 was killed while training "));
    p = RUN("--spawn", "fibers", "-w", "8", "--item", "16", "-e", "3", "--max-respawns", "1", "--sim",
            "death=2@100us,death=2@200us", DATA);
    program_assert_status(p, 1);
    assert_non_null(strstr(p->text[ERR], "; it had been restarted 1 time before"));
}

static void sync_has_the_same_bits_whoever_dies(void **state) {
    (void)state;
    const struct run none = RUN_OF("fibers", "-w", "8", "--mode", "sync"),
                     some = RUN_OF("fibers", "-w", "8", "--mode", "sync", "--sim", MISHAPS ",death=0@300us,death=0@500us");
    assert_string_equal(none.parameters, some.parameters);
    assert_true(some.seconds > none.seconds);
}

static void opening_lines_say_that_times_are_virtual(void **state) {
    (void)state;
    struct program *p = RUN("--spawn", "fibers", "-w", "8", "-e", "1", DATA);
    program_assert_status(p, 0);
    assert_non_null(
        strstr(p->text[OUT], "workers     8, shm backend\n            fibers: all times and speeds of training are virtual\n"));
}

static void what_fibers_cannot_do_is_refused_in_one_line(void **state) {
    (void)state;
    program_assert_refused(RUN("--spawn", "fibres", DATA), 2,
                           "--spawn fibres: expected processes, threads or fibers, or fibers and a seed, as fibers:7");
    program_assert_refused(RUN("--spawn", "fibers:x", DATA), 2, "--spawn fibers:x: expected");
    program_assert_refused(RUN("--spawn", "threads:1", DATA), 2, "--spawn threads:1: expected");
    program_assert_refused(RUN("--spawn", "fibers", "-t", "2", DATA), 2,
                           "--spawn fibers: each worker has one thread: use --threads 1");
    program_assert_refused(RUN("--spawn", "fibers", "--name", "shmtrain-fibers", DATA), 2,
                           "nobody can join workers in virtual time: leave out --name");
    program_assert_refused(RUN("--sim", "compute=1ms", DATA), 2,
                           "--sim is for workers in virtual time: use --spawn fibers, or leave it out");
    program_assert_refused(RUN("--fiber-stack", "64", DATA), 2,
                           "--fiber-stack is for workers in virtual time: use --spawn fibers");
    program_assert_refused(RUN("--spawn", "fibers", "--fiber-stack", "16", DATA), 2, "expected a whole number from 64 to");
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "compute=1", DATA), 2,
                           "--sim \"compute=1\": expected a time with its unit");
    program_assert_refused(RUN("--spawn", "fibers", "-w", "2", "--sim", "straggler=2:5x", DATA), 2,
                           "--sim straggler=2: workers are 0 to 1");
    program_assert_refused(RUN("--spawn", "fibers", "--sim", "line=80", DATA), 2,
                           "--sim \"line=80\": expected a time of at most 1ms with its unit, as 80ns");
    program_assert_refused(RUN("--spawn", "fibers", "-w", "2", "--sim", "line=80ns,nodes=3", DATA), 2,
                           "--sim nodes=3: each node needs a worker, and there are 2");
    program_assert_refused(RUN("--spawn", "fibers", "-w", "2", "--sim", "death=2@1s", DATA), 2,
                           "--sim death=2: workers are 0 to 1");
    program_assert_refused(RUN("--spawn", "fibers", "-w", "2", "--sim", "pause=1@1s", DATA), 2,
                           "--sim \"pause=1@1s\": expected a worker, when and for how long it stops, as pause=7@2s:1s");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(the_same_seed_gives_the_same_run_in_every_mode),
        PROGRAM_TEST(sync_has_the_bits_of_processes),
        PROGRAM_TEST(time_passes_as_the_costs_say),
        PROGRAM_TEST(memory_takes_the_same_time_each_time),
        PROGRAM_TEST(lines_make_hogwild_slower_where_workers_meet),
        PROGRAM_TEST(hogwild_loses_updates_where_workers_meet),
        PROGRAM_TEST(a_thousand_workers_train),
        PROGRAM_TEST(the_smallest_stack_is_enough),
        PROGRAM_TEST(the_dead_are_restarted_or_left_out_or_end_the_run),
        PROGRAM_TEST(sync_has_the_same_bits_whoever_dies),
        PROGRAM_TEST(opening_lines_say_that_times_are_virtual),
        PROGRAM_TEST(what_fibers_cannot_do_is_refused_in_one_line),
    };
    return cmocka_run_group_tests_name("fibers", tests, program_make_folder, program_remove_folder);
}
