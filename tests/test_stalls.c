/* Who stands still, and what is done (workers/stalls.h), with a backend of counters alone, and a clock, processes and kills that are
 * the test's. What the program says of real workers: test_program_stalls.c. */
#include "workers/stalls.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "workers/crew.h"
#include "workers/run.h"
#include "sync/host.h"

enum { OWN = 2, GUESTS = 2, SEATS = OWN + GUESTS, PROGRAM = 500 };

#define SECOND UINT64_C(1000000000)
#define BEGAN  (1000 * SECOND)

static struct play {
    struct shmt_call call;
    struct shmt_config config;
    struct shmt_stalls stalls;
    struct shmt_run run;
    struct shmt_counters counters[SEATS];
    _Atomic uint32_t abort;
    struct shmt_board board;
    uint64_t now_ns;
    pid_t own[OWN]; /* of our workers; 0: none */
    enum shmt_occupant
        who[GUESTS]; /* on guests' seats; process number PROGRAM + worker, or PROGRAM of a thread of the program */
    bool thread[GUESTS], unseen[GUESTS];
    char state[2000]; /* by process */
    int kill_rc;      /* of the supervisor, or of the system */
    int kill_errno;
    uint32_t n_kills;
    pid_t killed;
    char log[4000];
} play;

/* ---- the system ---- */

static uint64_t now_ns(void) { return play.now_ns; }

static const struct shmt_host_ops HOST = {.now_ns = now_ns};

pid_t __wrap_shmt_team_pid(const struct shmt_team *team, uint32_t rank);
pid_t __wrap_shmt_team_pid(const struct shmt_team *team, uint32_t rank) {
    (void)team;
    return play.own[rank];
}

bool __wrap_shmt_team_goes_on_without(const struct shmt_team *team, uint32_t rank);
bool __wrap_shmt_team_goes_on_without(const struct shmt_team *team, uint32_t rank) {
    (void)team;
    assert_true(rank < OWN); /* guests are none of the team */
    return false;
}

uint32_t __wrap_shmt_team_life(const struct shmt_team *team, uint32_t rank);
uint32_t __wrap_shmt_team_life(const struct shmt_team *team, uint32_t rank) {
    (void)team, (void)rank;
    return 0;
}

static int kill_it(pid_t pid) {
    play.n_kills++;
    play.killed = pid;
    errno = play.kill_errno;
    return play.kill_rc;
}

int __wrap_shmt_team_kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid);
int __wrap_shmt_team_kill_worker(const struct shmt_team *team, uint32_t rank, pid_t pid) {
    (void)team;
    assert_int_equal(pid, play.own[rank]);
    return kill_it(pid);
}

pid_t __wrap_shmt_life_pid(const struct shmt_life *life);
pid_t __wrap_shmt_life_pid(const struct shmt_life *life) { return life->space ? (pid_t)life->process : 0; }

int __wrap_shmt_life_kill(const struct shmt_life *life);
int __wrap_shmt_life_kill(const struct shmt_life *life) { return kill_it((pid_t)life->process); }

char __wrap_shmt_process_state(pid_t pid);
char __wrap_shmt_process_state(pid_t pid) { return play.state[pid]; }

/* ---- the backend ---- */

static const struct shmt_counters *counters(struct shmt_store *store, uint32_t rank) {
    (void)store;
    return &play.counters[rank];
}

static _Atomic uint32_t *abort_word(struct shmt_store *store) {
    (void)store;
    return &play.abort;
}

static struct shmt_array array(struct shmt_store *store, enum shmt_array_name name, int t, uint32_t plane) {
    (void)store;
    (void)t;
    (void)plane;
    assert_int_equal(name, SHMT_ARRAY_BOARD);
    return (struct shmt_array){.at = &play.board, .n = sizeof play.board, .each = 1};
}

static void wake(struct shmt_store *store) { (void)store; }

static uint32_t occupied(struct shmt_store *store, uint32_t rank) {
    (void)store;
    return rank >= OWN && play.who[rank - OWN] != SHMT_OCCUPANT_NONE ? PROGRAM : 0;
}

static enum shmt_occupant occupant(struct shmt_store *store, uint32_t rank, struct shmt_life *out) {
    (void)store;
    const uint32_t guest = rank - OWN;
    *out = (struct shmt_life){play.thread[guest] ? PROGRAM : PROGRAM + rank, !play.unseen[guest]};
    return play.who[guest];
}

static const struct shmt_store_ops STORE = {.counters = counters, .abort_word = abort_word, .array = array, .wake = wake};
static const struct shmt_guest_ops GUEST_OPS = {.occupied = occupied, .occupant = occupant};
static const struct shmt_backend BACKEND = {.store = &STORE, .guests = &GUEST_OPS};

/* ---- a run ---- */

static void keep(void *arg, const char *line) {
    (void)arg;
    strncat(play.log, line, sizeof play.log - strlen(play.log) - 1);
    strncat(play.log, "\n", sizeof play.log - strlen(play.log) - 1);
}

static void begin(uint64_t on_stall, double time_limit, const struct shmt_team_kind *kind, uint32_t n_guests) {
    play = (struct play){.now_ns = BEGAN};
    play.call.log.line = keep;
    play.config.parsed.stall_timeout_ns = 5 * SECOND;
    play.config.on_stall = on_stall;
    play.config.time_limit = time_limit;
    play.run = (struct shmt_run){.call = &play.call,
                                 .config = &play.config,
                                 .backend = &BACKEND,
                                 .job = {.backend = &BACKEND},
                                 .spec = {.n_seats = OWN + n_guests, .n_guests = n_guests, .n_workers = OWN},
                                 .stalls = &play.stalls};
    for (uint32_t i = 0; i < OWN; i++) play.own[i] = kind->shares_process ? 0 : (pid_t)(100 + i);
    memset(play.state, 'S', sizeof play.state);
    shmt_stalls_begin(&play.run, &(const struct shmt_crew){.kind = kind});
}

static int end(void **state) {
    (void)state;
    (void)shmt_stalls_end(&play.run, 0);
    return 0;
}

static void work(uint32_t seat) { store_relaxed(&play.counters[seat].busy_ns, -play.now_ns); }
static void wait_for_others(uint32_t seat) { store_relaxed(&play.counters[seat].wait_epoch_ns, -play.now_ns); }

/* Time passes, and all look up as often as they do. Those of `busy` seats make progress. The last status. */
static int pass(unsigned seconds, uint32_t busy) {
    int rc = 0;
    for (unsigned i = 0; i < 10 * seconds && rc == 0; i++) {
        play.now_ns += SECOND / 10;
        for (uint32_t seat = 0; seat < SEATS; seat++)
            if (busy & 1u << seat) bump_relaxed(&play.counters[seat].examples, 1);
        rc = shmt_stalls_tick(&play.run, NULL);
    }
    return rc;
}

static void time_is_over(void) {
    play.run.timed_out = true;
    play.run.timed_out_ns = play.now_ns;
}

static bool says(const char *words) { return strstr(play.log, words) != NULL; }

/* ---- who is killed ---- */

static void a_workers_process_is_killed_once(void **state) {
    (void)state;
    begin(SHMT_STALL_KILL, NAN, &SHMT_TEAM_PROCESSES, GUESTS);
    for (uint32_t seat = 0; seat < OWN; seat++) work(seat);
    assert_int_equal(pass(20, 1), 0);
    assert_int_equal(play.n_kills, 1);
    assert_int_equal(play.killed, 101);
    assert_true(says("worker 1 (process 101) has made no progress for 5") && says(": it is killed (--on-stall kill)\n"));
    assert_int_equal(play.run.report.stalls, 1);
}

/* Nor is "it is killed" said of it. It is tried again. */
static void who_cannot_be_killed_at_once_is_killed_at_a_later_look(void **state) {
    (void)state;
    begin(SHMT_STALL_KILL, NAN, &SHMT_TEAM_PROCESSES, 0);
    play.kill_rc = -1;
    play.kill_errno = EAGAIN;
    for (uint32_t seat = 0; seat < OWN; seat++) work(seat);
    assert_int_equal(pass(10, 1), 0);
    assert_true(play.n_kills > 1);
    assert_true(says("cannot be told to kill it") && !says("it is killed"));
    assert_false(shmt_stalls_is(&play.run, 1));
    assert_int_equal(play.run.report.stalls, 0);
    const uint32_t before = play.n_kills;
    play.kill_rc = 0;
    assert_int_equal(pass(10, 1), 0);
    assert_int_equal(play.n_kills, before + 1);
    assert_true(says("it is killed"));
    assert_int_equal(play.run.report.stalls, 1);
}

static void a_guests_process_is_killed_and_a_thread_of_an_application_is_not(void **state) {
    (void)state;
    for (int thread = 0; thread < 2; thread++)
        for (int unseen = 0; unseen < 2; unseen++) {
            begin(SHMT_STALL_KILL, NAN, &SHMT_TEAM_PROCESSES, GUESTS);
            play.who[0] = SHMT_OCCUPANT_WORKS;
            play.thread[0] = thread;
            play.unseen[0] = unseen;
            play.kill_rc = unseen ? -1 : 0;
            play.kill_errno = ESRCH;
            work(OWN);
            const int rc = pass(10, 3);
            assert_non_null(strstr(rc == 0 ? play.log : play.stalls.lost.text, "worker 2 ("));
            assert_int_equal(rc, !thread && unseen ? SHMTRAIN_E_DIED : 0); /* cannot be killed, and may go on at any moment */
            assert_int_equal(play.n_kills, !thread ? 1 : 0);
            assert_int_equal(says("use a longer --stall-timeout"), thread);
            assert_int_equal(says("it is killed"), !thread && !unseen);
            end(NULL);
        }
    begin(SHMT_STALL_REPORT, NAN, &SHMT_TEAM_PROCESSES, 0); /* for the teardown */
}

static void who_has_ended_meanwhile_is_not_said_to_be_killed(void **state) {
    (void)state;
    begin(SHMT_STALL_KILL, NAN, &SHMT_TEAM_PROCESSES, GUESTS);
    play.who[0] = SHMT_OCCUPANT_WORKS;
    play.kill_rc = -1;
    play.kill_errno = ESRCH;
    work(OWN);
    assert_int_equal(pass(10, 3), 0);
    assert_true(says("it has just ended by itself") && !says("it is killed"));
}

static void killing_has_no_effect_where_all_are_threads(void **state) {
    (void)state;
    for (uint32_t guests = 0; guests <= GUESTS; guests += GUESTS) {
        begin(SHMT_STALL_KILL, NAN, &SHMT_TEAM_THREADS, guests);
        assert_int_equal(says("--on-stall kill has no effect"), guests == 0);
        for (uint32_t seat = 0; seat < OWN; seat++) work(seat);
        assert_int_equal(pass(10, 1), 0);
        assert_true(says("worker 1 has made no progress"));
        assert_int_equal(play.n_kills, 0);
        if (guests == 0) end(NULL);
    }
}

/* ---- who is there ---- */

static void nobody_stands_still_on_a_seat_that_the_others_go_on_without(void **state) {
    (void)state;
    begin(SHMT_STALL_ABORT, 1, &SHMT_TEAM_PROCESSES, GUESTS);
    play.who[0] = SHMT_OCCUPANT_WORKS;
    for (uint32_t seat = 0; seat < SEATS; seat++) work(seat);
    assert_int_equal(pass(2, 7), 0);
    play.own[1] = 0; /* died at work */
    play.who[0] = SHMT_OCCUPANT_NONE;
    assert_int_equal(pass(20, 1), 0);
    assert_string_equal(play.log, "");
    time_is_over();
    assert_int_equal(pass(20, 1), 0);
    assert_string_equal(play.log, "");
}

static void nor_on_one_whose_owner_has_not_come_yet(void **state) {
    (void)state;
    begin(SHMT_STALL_ABORT, NAN, &SHMT_TEAM_PROCESSES, GUESTS);
    play.who[0] = SHMT_OCCUPANT_COMES;
    play.thread[0] = true;
    play.state[PROGRAM] = 'T';
    assert_int_equal(pass(20, 3), 0);
    assert_string_equal(play.log, "");
}

static void who_has_died_does_not_wait(void **state) {
    (void)state;
    begin(SHMT_STALL_REPORT, NAN, &SHMT_TEAM_PROCESSES, GUESTS);
    wait_for_others(0);
    wait_for_others(OWN);
    work(1);
    assert_int_equal(pass(10, 0), 0);
    assert_true(says("; 1 other waits: "));
}

/* ---- time limits ---- */

static void a_time_limit_waits_for_who_is_at_work(void **state) {
    (void)state;
    begin(SHMT_STALL_REPORT, 1, &SHMT_TEAM_PROCESSES, 0);
    work(0);
    wait_for_others(1);
    play.state[100] = 'R';
    time_is_over();
    assert_int_equal(pass(60, 0), 0);
    assert_true(says("worker 0 (process 100) has made no progress")); /* and that is all */
}

static void and_ends_a_run_in_which_one_is_stopped(void **state) {
    (void)state;
    begin(SHMT_STALL_REPORT, 1, &SHMT_TEAM_PROCESSES, 0);
    work(0);
    wait_for_others(1);
    play.state[100] = 'T';
    time_is_over();
    assert_int_equal(pass(60, 0), SHMTRAIN_E_DIED);
    assert_non_null(strstr(play.stalls.lost.text, "the time limit has passed"));
}

static void or_one_that_cannot_be_seen_for_which_all_wait(void **state) {
    (void)state;
    begin(SHMT_STALL_REPORT, 1, &SHMT_TEAM_PROCESSES, GUESTS);
    play.who[0] = SHMT_OCCUPANT_WORKS;
    play.unseen[0] = true;
    for (uint32_t seat = 0; seat < SEATS - 1; seat++) wait_for_others(seat);
    work(SEATS - 1); /* has died there */
    time_is_over();
    assert_int_equal(pass(60, 0), SHMTRAIN_E_DIED);
    assert_non_null(strstr(play.stalls.lost.text, "worker 2 (joined by name)"));
}

static void but_not_while_one_scores_or_copies(void **state) {
    (void)state;
    for (int copies = 0; copies < 2; copies++) {
        begin(SHMT_STALL_REPORT, 1, &SHMT_TEAM_PROCESSES, GUESTS);
        play.who[0] = SHMT_OCCUPANT_WORKS;
        play.unseen[0] = true;
        for (uint32_t seat = 1; seat < SEATS - 1; seat++) wait_for_others(seat);
        store_relaxed(copies ? &play.counters[0].pause_ns : &play.counters[0].evaluate_ns, -play.now_ns);
        time_is_over();
        assert_int_equal(pass(60, 0), 0);
        if (!copies) end(NULL);
    }
}

int main(void) {
    shmt_host_use(&HOST);
#define TEST(f) cmocka_unit_test_teardown(f, end)
    const struct CMUnitTest tests[] = {
        TEST(a_workers_process_is_killed_once),
        TEST(who_cannot_be_killed_at_once_is_killed_at_a_later_look),
        TEST(a_guests_process_is_killed_and_a_thread_of_an_application_is_not),
        TEST(who_has_ended_meanwhile_is_not_said_to_be_killed),
        TEST(killing_has_no_effect_where_all_are_threads),
        TEST(nobody_stands_still_on_a_seat_that_the_others_go_on_without),
        TEST(nor_on_one_whose_owner_has_not_come_yet),
        TEST(who_has_died_does_not_wait),
        TEST(a_time_limit_waits_for_who_is_at_work),
        TEST(and_ends_a_run_in_which_one_is_stopped),
        TEST(or_one_that_cannot_be_seen_for_which_all_wait),
        TEST(but_not_while_one_scores_or_copies),
    };
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
