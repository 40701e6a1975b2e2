/* The host (sync/host.h): what the machine answers, and that gates ask the table for everything: on a host whose threads take turns
 * and whose clock is a number, the same seed gives the same course, and nothing is asked of the machine. */
#include "turns_help.h"

#include "deadline.h"
#include "sync/gate.h"

#define MS     UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

/* ---- the machine ---- */

static void the_machine_answers_unless_another_host_was_chosen(void **state) {
    (void)state;
    struct timespec t;
    const uint64_t before_ns = shmt_now_ns();
    clock_gettime(CLOCK_MONOTONIC, &t);
    const uint64_t now_ns = (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
    assert_true(before_ns <= now_ns && now_ns <= shmt_now_ns());
}

static void the_machine_sleeps_until_a_time_and_not_for_one_that_is_over(void **state) {
    (void)state;
    const uint64_t from_ns = shmt_now_ns();
    shmt_host()->sleep_until(from_ns - 1);
    shmt_sleep_ns(2 * MS);
    assert_true(shmt_now_ns() >= from_ns + 2 * MS);
}

static void the_machine_waits_while_the_word_is_as_expected_and_until_the_time_is_over(void **state) {
    (void)state;
    _Atomic uint32_t word = 1;
    const uint64_t from_ns = shmt_now_ns();
    shmt_host()->wait(&word, 2, 3600 * SECOND);
    shmt_host()->wait(&word, 1, 2 * MS);
    assert_true(shmt_now_ns() >= from_ns + 2 * MS);
    shmt_host()->wake(&word);
}

/* ---- gates on a host of turns ---- */

enum { SPIN_NS = 4000, N = 8, MEETINGS = 20, AHEAD = 2 };

static struct play {
    struct shmt_gate gate[N];
    _Atomic uint32_t abort, member[N];
    uint32_t spin_ns;
    uint64_t late_ns;   /* member 3 sleeps for so long before each meeting */
    uint64_t come[N];   /* meetings reached; plain: the gates order it */
    uint32_t early;     /* passed too early */
    uint64_t waited_ns; /* by member 0 */
} play;

static int last_is_here(void *arg, uint32_t *for_whom_out) {
    (void)arg;
    *for_whom_out = N - 1;
    return load_acquire(&play.gate[N - 1].clock) == MEETINGS;
}

/* Meetings of all, then clocks with a bound, then a question. */
static void *member(void *arg) {
    const uint32_t self = (uint32_t)(uintptr_t)arg;
    const struct shmt_gates gates = {.gate = play.gate,
                                     .stride_bytes = sizeof play.gate[0],
                                     .n = N,
                                     .self = self,
                                     .watch = {&play.abort, play.member, 1, play.spin_ns}};
    turns_begin(self);
    for (uint64_t m = 1; m <= MEETINGS; m++) {
        if (self == 3 && play.late_ns > 0) shmt_sleep_ns(play.late_ns);
        play.come[self] = m;
        shmt_gate_reach(&gates, SHMT_GATE_PHASE, m);
        const uint64_t from_ns = shmt_now_ns();
        play.early += shmt_gates_wait(&gates, SHMT_GATE_PHASE, m, NULL) != 0;
        if (self == 0) play.waited_ns += shmt_now_ns() - from_ns;
        for (uint32_t i = 0; i < N; i++) play.early += play.come[i] < m;
    }
    for (uint64_t c = 1; c <= MEETINGS; c++) {
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, c);
        if (c == MEETINGS) shmt_gates_notify(&gates);
        if (c > AHEAD) play.early += shmt_gates_wait(&gates, SHMT_GATE_CLOCK, c - AHEAD, NULL) != 0;
        play.early += c > AHEAD && shmt_gates_min(&gates, SHMT_GATE_CLOCK) < c - AHEAD;
    }
    play.early += shmt_gates_wait_until(&gates, last_is_here, NULL) != 0;
    turns_end();
    return NULL;
}

/* Returns the course. */
static uint64_t meet(uint64_t seed, uint32_t spin_ns, uint64_t late_ns) {
    pthread_t thread[N];
    play = (struct play){.spin_ns = spin_ns, .late_ns = late_ns};
    for (uint32_t i = 0; i < N; i++) play.member[i] = 1;
    turns_use(N, seed);
    for (uint32_t i = 0; i < N; i++) assert_int_equal(pthread_create(&thread[i], NULL, member, (void *)(uintptr_t)i), 0);
    for (uint32_t i = 0; i < N; i++) pthread_join(thread[i], NULL);
    turns_over();
    assert_int_equal(play.early, 0);
    return turns.history;
}

static void gates_ask_nothing_of_the_machine_and_no_sleeper_is_forgotten(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 10; seed++) {
        meet(seed, seed % 2 ? SPIN_NS : 0, 0);
        assert_int_equal(turns.n_overslept, 0); /* a wake-up that is lost shows as one */
    }
}

static void the_same_seed_gives_the_same_course(void **state) {
    (void)state;
    for (uint32_t spin_ns = 0; spin_ns <= SPIN_NS; spin_ns += SPIN_NS) {
        const uint64_t course = meet(7, spin_ns, 0);
        assert_int_equal(meet(7, spin_ns, 0), course);
        assert_int_not_equal(meet(8, spin_ns, 0), course);
    }
}

/* Ten minutes, in which the others look up ten times a second. */
static void a_wait_takes_the_hosts_time(void **state) {
    (void)state;
    meet(3, 0, 30 * SECOND);
    assert_true(play.waited_ns > MEETINGS * 30 * SECOND - SECOND / 100);
    assert_true(play.waited_ns < MEETINGS * 30 * SECOND + SECOND);
    assert_true(turns.n_overslept > MEETINGS * 290);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_machine_answers_unless_another_host_was_chosen, deadline),
        cmocka_unit_test_setup(the_machine_sleeps_until_a_time_and_not_for_one_that_is_over, deadline),
        cmocka_unit_test_setup(the_machine_waits_while_the_word_is_as_expected_and_until_the_time_is_over, deadline),
        cmocka_unit_test_setup(gates_ask_nothing_of_the_machine_and_no_sleeper_is_forgotten, deadline),
        cmocka_unit_test_setup(the_same_seed_gives_the_same_course, deadline),
        cmocka_unit_test_setup(a_wait_takes_the_hosts_time, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
