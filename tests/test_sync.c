/* Tests of sync: gates on the heap with threads (which race detectors see) and in a shared mapping with processes. Waiting for
 * an answer, and what waiters tell: test_answers.c. */
#include "deadline.h"
#include "sync_help.h"

#include "sync/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* One member's life: write something plain, reach, wait, look at what the others wrote. Two meetings a phase, one of each kind: nobody
 * writes while others still look. */
static void *meet(void *p) {
    struct member_arg *arg = p;
    struct group *group = arg->group;
    struct shmt_gates gates = gates_of(group, arg->n, arg->self, arg->spin_ns);
    if (arg->shares) gates.met = &group->met;
    for (uint64_t phase = 1; phase <= arg->phases; phase++) {
        group->written[arg->self] = phase;
        shmt_gate_reach(&gates, SHMT_GATE_PHASE, 2 * phase - 1);
        arg->result |= shmt_gates_wait(&gates, SHMT_GATE_PHASE, 2 * phase - 1, NULL);
        for (uint32_t i = 0; i < arg->n; i++)
            if (group->written[i] != phase) atomic_fetch_add(&group->early, 1);
        arg->result |= shmt_gates_meet(&gates, SHMT_GATE_PHASE, 2 * phase);
    }
    return NULL;
}

static void meet_with_threads(uint32_t n, uint64_t phases, uint32_t spin_ns, bool shares) {
    struct group *group = group_create(n);
    pthread_t thread[N_MAX];
    struct member_arg arg[N_MAX];
    for (uint32_t i = 0; i < n; i++) {
        arg[i] = (struct member_arg){.group = group, .n = n, .self = i, .spin_ns = spin_ns, .phases = phases, .shares = shares};
        assert_int_equal(pthread_create(&thread[i], NULL, meet, &arg[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(arg[i].result, 0);
    }
    assert_int_equal(group->early, 0);
    group_destroy(group);
}

static void nobody_passes_a_meeting_early_when_spinning(void **state) {
    (void)state;
    meet_with_threads(2, 20000, 100000, false);
    meet_with_threads(2, 20000, 100000, true);
}

static void nobody_passes_a_meeting_early_with_more_workers_than_processors(void **state) {
    (void)state;
    meet_with_threads(N_MAX, 2000, 0, false);
    meet_with_threads(N_MAX, 2000, 0, true);
}

static void no_wake_up_is_lost(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    store_relaxed(&fake.jitter, 1);
    for (int shares = 0; shares < 2; shares++) {
        meet_with_threads(2, 20000, 0, shares);
        meet_with_threads(5, 2000, 0, shares);
    }
    fakes_off();
}

/* In groups of many: nobody has come here, but for what another one is said to have seen. */
static void what_another_one_has_seen_is_not_looked_at_again(void **state) {
    (void)state;
    struct group *group = group_create(4);
    struct shmt_gates gates = gates_of(group, 4, 0, 0);
    uint32_t for_whom;
    gates.met = &group->met;
    store_relaxed(&group->abort, 1); /* who misses somebody gives up */
    shmt_gate_reach(&gates, SHMT_GATE_PHASE, 7);
    store_relaxed(&group->met, 7 << 16 | 2); /* the last two were seen */
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 7, &for_whom), 1);
    assert_int_equal(for_whom, 1);
    store_relaxed(&group->met, 7 << 16 | 3);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 7, &for_whom), 0);
    assert_int_equal(load_relaxed(&group->met), 7 << 16 | 4); /* and I am there */
    shmt_gate_reach(&gates, SHMT_GATE_PHASE, 8);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 8, &for_whom), 1); /* what was seen was another meeting */
    assert_int_equal(for_whom, 3);
    store_relaxed(&group->met, 9 << 16 | 1); /* somebody has come to the next one */
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 8, &for_whom), 0);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_CLOCK, 1, &for_whom), 1); /* clocks are everybody's own */
    group_destroy(group);
}

/* Whatever order they come in: everybody misses the latecomer when all others are there, and not before. */
static void a_latecomer_is_missed_behind_all_others(void **state) {
    static const uint32_t ORDER[][4] = {{3, 2, 1, 0}, {0, 1, 2, 3}, {3, 1, 0, 2}, {2, 0, 3, 1}};
    (void)state;
    for (uint32_t i = 0; i < 4 * 4 * 2; i++) {
        struct group *group = group_create(4);
        struct shmt_gates gates = gates_of(group, 4, i % 4, 0);
        const uint32_t *order = ORDER[i / 4 % 4];
        uint32_t for_whom;
        gates.latecomer = true;
        gates.met = i < 16 ? NULL : &group->met;
        store_relaxed(&group->abort, 1); /* who misses somebody gives up */
        for (uint32_t k = 0, come = 0; k < 4; k++) {
            const int rc = shmt_gates_wait(&gates, SHMT_GATE_PHASE, 1, &for_whom);
            assert_int_equal(rc, 1);
            assert_int_equal(for_whom == 3, (come & 7) == 7);
            assert_int_equal(come >> for_whom & 1, 0);
            const struct shmt_gates late = gates_of(group, 4, order[k], 0);
            shmt_gate_reach(&late, SHMT_GATE_PHASE, 1);
            come |= 1u << order[k];
        }
        assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 1, NULL), 0);
        group_destroy(group);
    }
}

static void a_lone_member_waits_for_nobody(void **state) {
    (void)state;
    struct group *group = group_create(1);
    const struct shmt_gates gates = gates_of(group, 1, 0, 0);
    uint32_t for_whom = 0;
    shmt_gate_reach(&gates, SHMT_GATE_CLOCK, 7);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_CLOCK, 7, &for_whom), 0);
    assert_int_equal(for_whom, UINT32_MAX);
    group_destroy(group);
}

static void the_least_clock_is_that_of_the_members_that_count(void **state) {
    (void)state;
    struct group *group = group_create(3);
    for (uint32_t i = 0; i < 3; i++) {
        const struct shmt_gates gates = gates_of(group, 3, i, 0);
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, 10 + i);
        shmt_gate_reach(&gates, SHMT_GATE_PHASE, 5 - i);
    }
    const struct shmt_gates gates = gates_of(group, 3, 2, 0);
    assert_int_equal(shmt_gates_min(&gates, SHMT_GATE_CLOCK), 10);
    assert_int_equal(shmt_gates_min(&gates, SHMT_GATE_PHASE), 3);
    group->member[0] = 0;
    assert_int_equal(shmt_gates_min(&gates, SHMT_GATE_CLOCK), 11);
    group->member[STRIDE] = group->member[2 * STRIDE] = 0;
    assert_true(shmt_gates_min(&gates, SHMT_GATE_CLOCK) == UINT64_MAX);
    group_destroy(group);
}

static void *wait_once(void *p) {
    struct member_arg *arg = p;
    const struct shmt_gates gates = gates_of(arg->group, arg->n, arg->self, arg->spin_ns);
    const uint64_t begun_ns = shmt_now_ns();
    arg->result = shmt_gates_wait(&gates, arg->word, arg->target, &arg->for_whom);
    arg->waited_ns = shmt_now_ns() - begun_ns;
    store_release(&arg->group->done[arg->self], 1);
    return NULL;
}

/* Member 0 waits for clock 3 of member 1, and member 2 has reached it. */
static pthread_t one_waiter(struct group *group, struct member_arg *arg, uint32_t spin_ns) {
    for (uint32_t i = 0; i < 3; i += 2) {
        const struct shmt_gates gates = gates_of(group, 3, i, 0);
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, 3);
    }
    *arg = (struct member_arg){.group = group, .n = 3, .self = 0, .spin_ns = spin_ns, .target = 3, .result = -1};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, wait_once, arg), 0);
    return thread;
}

/* It sleeps in the end, although it spins first: who spins takes a processor from whom it may be waiting for. */
static void a_waiter_sleeps_and_says_for_whom(void **state) {
    (void)state;
    for (uint32_t spin_ns = 0; spin_ns <= 10000; spin_ns += 10000) {
        struct group *group = group_create(3);
        struct member_arg arg;
        pthread_t thread = one_waiter(group, &arg, spin_ns);
        until_asleep(group, 0);
        const struct shmt_gates late = gates_of(group, 3, 1, 0);
        shmt_gate_reach(&late, SHMT_GATE_CLOCK, 3);
        pthread_join(thread, NULL);
        assert_int_equal(arg.result, 0);
        assert_int_equal(arg.for_whom, 1);
        group_destroy(group);
    }
}

/* Workers come in the order of their ranks: whoever slept for the next one would be woken by each. */
static void who_waits_for_many_sleeps_for_the_last(void **state) {
    (void)state;
    struct group *group = group_create(4);
    struct member_arg arg = {.group = group, .n = 4, .self = 0, .target = 3, .result = -1};
    const struct shmt_gates mine = gates_of(group, 4, 0, 0);
    pthread_t thread;
    shmt_gate_reach(&mine, SHMT_GATE_CLOCK, 3);
    assert_int_equal(pthread_create(&thread, NULL, wait_once, &arg), 0);
    for (uint32_t i = 1; i < 4; i++) {
        const struct shmt_gates late = gates_of(group, 4, i, 0);
        until_asleep(group, 0);
        const uint32_t code = load_seq_cst(&group->gate[0].asleep);
        assert_true(code == 0 || code == 4 << 2); /* 0: it looks up ten times a second */
        shmt_gate_reach(&late, SHMT_GATE_CLOCK, 3);
    }
    pthread_join(thread, NULL);
    assert_int_equal(arg.result, 0);
    assert_int_equal(arg.for_whom, 3);
    group_destroy(group);
}

static void who_sets_a_word_wakes_when_it_calls(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    for (enum shmt_gate_word word = 0; word < SHMT_GATE_WORDS; word++) {
        struct group *group = group_create(2);
        struct member_arg arg = {.group = group, .n = 2, .self = 0, .word = word, .target = 3, .result = -1};
        const struct shmt_gates mine = gates_of(group, 2, 0, 0), late = gates_of(group, 2, 1, 0);
        pthread_t thread;
        store_relaxed(&fake.naps, 0);
        shmt_gate_reach(&mine, word, 3);
        assert_int_equal(pthread_create(&thread, NULL, wait_once, &arg), 0);
        until_asleep(group, 0);
        shmt_gate_set(&late, (word + 1) % SHMT_GATE_WORDS, 3);
        shmt_gate_call(&late); /* another word than it sleeps for */
        shmt_gate_set(&late, word, 3);
        assert_int_not_equal(load_seq_cst(&group->gate[0].asleep), 0);
        shmt_gate_call(&late);
        pthread_join(thread, NULL);
        assert_int_equal(arg.result, 0);
        assert_true(load_relaxed(&fake.naps) <= 1); /* it was woken once */
        assert_int_equal(load_acquire(shmt_gate_word(&group->gate[1], word)), 3);
        group_destroy(group);
    }
    fakes_off();
}

static void progress_that_is_not_enough_does_not_wake(void **state) {
    (void)state;
    struct group *group = group_create(3);
    struct member_arg arg;
    pthread_t thread = one_waiter(group, &arg, 0);
    until_asleep(group, 0);
    const struct shmt_gates late = gates_of(group, 3, 1, 0);
    /* A publisher that woke would have cleared the announcement. The sleeper itself clears it for a moment every 100 ms, hence
     * several tries. */
    bool left_asleep = false;
    for (int k = 0; k < 50 && !left_asleep; k++) {
        const uint32_t before = load_seq_cst(&group->gate[0].asleep);
        shmt_gate_reach(&late, SHMT_GATE_PHASE, 100 + (uint64_t)k);
        shmt_gate_reach(&late, SHMT_GATE_CLOCK, 2);
        left_asleep = before != 0 && load_seq_cst(&group->gate[0].asleep) == before;
    }
    assert_true(left_asleep);
    assert_int_equal(load_acquire(&group->done[0]), 0);
    shmt_gate_reach(&late, SHMT_GATE_CLOCK, 3);
    pthread_join(thread, NULL);
    assert_int_equal(arg.result, 0);
    group_destroy(group);
}

static void a_member_that_leaves_releases_those_who_wait_for_it(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    for (int spins = 0; spins < 2; spins++) {
        struct group *group = group_create(3);
        struct member_arg arg;
        pthread_t thread = one_waiter(group, &arg, spins ? LONG_NS : 0);
        if (!spins) until_asleep(group, 0);
        if (spins) sleep_ms(20);
        assert_int_equal(load_acquire(&group->done[0]), 0);
        store_release(&group->member[STRIDE], 0);
        const struct shmt_gates gates = gates_of(group, 3, 1, 0);
        shmt_gates_wake(&gates);
        pthread_join(thread, NULL);
        assert_int_equal(arg.result, 0);
        if (spins) assert_true(arg.waited_ns < LONG_NS); /* it did not spin to the end */
        group_destroy(group);
    }
    fakes_off();
}

static void abort_releases_sleepers_and_spinners(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    for (int spins = 0; spins < 2; spins++) {
        struct group *group = group_create(3);
        struct member_arg arg;
        pthread_t thread = one_waiter(group, &arg, spins ? LONG_NS : 0);
        if (!spins) until_asleep(group, 0);
        if (spins) sleep_ms(20);
        store_release(&group->abort, 2);
        const struct shmt_gates gates = gates_of(group, 3, 2, 0);
        shmt_gates_wake(&gates);
        pthread_join(thread, NULL);
        assert_int_equal(arg.result, 1);
        assert_int_equal(arg.for_whom, 1);
        if (spins) assert_true(arg.waited_ns < LONG_NS); /* it did not spin to the end */
        group_destroy(group);
    }
    fakes_off();
}

/* The one who died had reached the target, and had emptied the sleeper's word, but not called the kernel yet. */
static void who_dies_while_it_wakes_another_leaves_nobody_asleep(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    struct group *group = group_create(3);
    struct member_arg arg;
    pthread_t thread = one_waiter(group, &arg, 0);
    until_asleep(group, 0);
    sleep_ms(20); /* in the kernel, too */
    store_seq_cst(&group->gate[1].clock, 3);
    store_release(&group->gate[0].asleep, 0);
    const struct shmt_gates gates = gates_of(group, 3, 2, 0);
    shmt_gates_wake_after_death(&gates);
    pthread_join(thread, NULL);
    assert_int_equal(arg.result, 0);
    fakes_off();
    group_destroy(group);
}

static void abort_releases_sleepers_even_if_nobody_wakes_them(void **state) {
    (void)state;
    fakes_off();
    struct group *group = group_create(3);
    struct member_arg arg;
    pthread_t thread = one_waiter(group, &arg, 0);
    until_asleep(group, 0);
    store_release(&group->abort, 2);
    pthread_join(thread, NULL);
    assert_int_equal(arg.result, 1);
    assert_true(load_relaxed(&fake.longest_ms) <= 100);
    fakes_off();
    group_destroy(group);
}

static void a_target_that_is_reached_is_told_even_after_abort(void **state) {
    (void)state;
    struct group *group = group_create(2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct shmt_gates gates = gates_of(group, 2, i, 0);
        shmt_gate_reach(&gates, SHMT_GATE_PHASE, 1);
    }
    store_release(&group->abort, 1);
    const struct shmt_gates gates = gates_of(group, 2, 0, 0);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 1, NULL), 0);
    assert_int_equal(shmt_gates_wait(&gates, SHMT_GATE_PHASE, 2, NULL), 1);
    group_destroy(group);
}

static void one_member_is_waited_for_whoever_else_is_missing(void **state) {
    (void)state;
    struct group *group = group_create(3);
    const struct shmt_gates gates = gates_of(group, 3, 0, 0), second = gates_of(group, 3, 1, 0);
    shmt_gate_reach(&second, SHMT_GATE_CLOCK, 4);
    assert_int_equal(shmt_gates_wait_for(&gates, SHMT_GATE_CLOCK, 4, 1), 0); /* members 0 and 2 have not come */
    store_release(&group->member[1 * STRIDE], 0);
    assert_int_equal(shmt_gates_wait_for(&gates, SHMT_GATE_CLOCK, 5, 1), 0); /* it does not count any more */
    store_release(&group->abort, 1);
    assert_int_equal(shmt_gates_wait_for(&gates, SHMT_GATE_CLOCK, 1, 2), 1);
    group_destroy(group);
}

/* Every member leaves after another number of phases; the rest goes on without it. */
static void *leave_in_turn(void *p) {
    struct member_arg *arg = p;
    const struct shmt_gates gates = gates_of(arg->group, arg->n, arg->self, arg->spin_ns);
    for (uint64_t phase = 1; phase <= arg->phases; phase++) {
        shmt_gate_reach(&gates, SHMT_GATE_PHASE, phase);
        arg->result |= shmt_gates_wait(&gates, SHMT_GATE_PHASE, phase, NULL);
    }
    store_release(&arg->group->member[arg->self * STRIDE], 0);
    shmt_gates_wake(&gates);
    return NULL;
}

static void members_leave_while_others_meet(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    store_relaxed(&fake.jitter, 1);
    for (int round = 0; round < 1500; round++) {
        struct group *group = group_create(4);
        pthread_t thread[4];
        struct member_arg arg[4];
        for (uint32_t i = 0; i < 4; i++) {
            arg[i] = (struct member_arg){.group = group, .n = 4, .self = i, .spin_ns = 0, .phases = 1 + i};
            assert_int_equal(pthread_create(&thread[i], NULL, leave_in_turn, &arg[i]), 0);
        }
        for (uint32_t i = 0; i < 4; i++) {
            pthread_join(thread[i], NULL);
            assert_int_equal(arg[i].result, 0);
        }
        group_destroy(group);
    }
    fakes_off();
}

/* ---- processes ---- */

/* Each process maps the same memory again, so that no two see it at the same address. */
static void processes_meet_on_memory_mapped_at_different_addresses(void **state) {
    (void)state;
    enum { N = 3, PHASES = 2000 };
    const int fd = memfd_create("gates", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(struct group)), 0);
    struct group *group = mmap(NULL, sizeof *group, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(group != MAP_FAILED);
    for (uint32_t i = 0; i < N; i++) group->member[i * STRIDE] = 1;
    pid_t pid[N];
    for (uint32_t i = 0; i < N; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] > 0) continue;
        alarm(600);
        /* A gap of another size in each process. */
        if (mmap(NULL, (i + 1) * sizeof *group, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) _exit(2);
        struct group *elsewhere = mmap(NULL, sizeof *group, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (elsewhere == MAP_FAILED || elsewhere == group) _exit(2);
        if (munmap(group, sizeof *group)) _exit(2);
        struct member_arg arg = {.group = elsewhere, .n = N, .self = i, .spin_ns = i, .phases = PHASES};
        meet(&arg);
        _exit(arg.result);
    }
    for (uint32_t i = 0; i < N; i++) {
        int status = -1;
        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(group->early, 0);
    group_destroy(group);
    close(fd);
}

/* What a death leaves in `asleep` must not disturb those who live, and its owner's successor must be able to wait. */
static void a_sleeper_that_is_killed_leaves_nothing_that_hangs(void **state) {
    (void)state;
    struct group *group = group_create(2);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct member_arg arg = {.group = group, .n = 2, .self = 0, .target = 1};
        const struct shmt_gates gates = gates_of(group, 2, 0, 0);
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, 1);
        wait_once(&arg);
        _exit(0);
    }
    until_asleep(group, 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    const struct shmt_gates late = gates_of(group, 2, 1, 0), successor = gates_of(group, 2, 0, 0);
    shmt_gate_reach(&late, SHMT_GATE_CLOCK, 1);
    assert_int_equal(shmt_gates_wait(&late, SHMT_GATE_CLOCK, 1, NULL), 0);
    assert_int_equal(shmt_gates_wait(&successor, SHMT_GATE_CLOCK, 1, NULL), 0);
    group_destroy(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_latecomer_is_missed_behind_all_others, deadline),
        cmocka_unit_test_setup(a_lone_member_waits_for_nobody, deadline),
        cmocka_unit_test_setup(the_least_clock_is_that_of_the_members_that_count, deadline),
        cmocka_unit_test_setup(nobody_passes_a_meeting_early_when_spinning, deadline),
        cmocka_unit_test_setup(nobody_passes_a_meeting_early_with_more_workers_than_processors, deadline),
        cmocka_unit_test_setup(no_wake_up_is_lost, deadline),
        cmocka_unit_test_setup(what_another_one_has_seen_is_not_looked_at_again, deadline),
        cmocka_unit_test_setup(a_waiter_sleeps_and_says_for_whom, deadline),
        cmocka_unit_test_setup(who_waits_for_many_sleeps_for_the_last, deadline),
        cmocka_unit_test_setup(who_sets_a_word_wakes_when_it_calls, deadline),
        cmocka_unit_test_setup(progress_that_is_not_enough_does_not_wake, deadline),
        cmocka_unit_test_setup(a_member_that_leaves_releases_those_who_wait_for_it, deadline),
        cmocka_unit_test_setup(abort_releases_sleepers_and_spinners, deadline),
        cmocka_unit_test_setup(who_dies_while_it_wakes_another_leaves_nobody_asleep, deadline),
        cmocka_unit_test_setup(abort_releases_sleepers_even_if_nobody_wakes_them, deadline),
        cmocka_unit_test_setup(a_target_that_is_reached_is_told_even_after_abort, deadline),
        cmocka_unit_test_setup(one_member_is_waited_for_whoever_else_is_missing, deadline),
        cmocka_unit_test_setup(members_leave_while_others_meet, deadline),
        cmocka_unit_test_setup(processes_meet_on_memory_mapped_at_different_addresses, deadline),
        cmocka_unit_test_setup(a_sleeper_that_is_killed_leaves_nothing_that_hangs, deadline),
    };
    return cmocka_run_group_tests(tests, use_fakes, NULL);
}
