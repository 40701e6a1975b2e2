/* Tests of sync: waiting for an answer, and what waiters tell, with threads. Waiting for members' words: test_sync.c. */
#include "sync_help.h"

#include "sync/host.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

/* ---- waiting for an answer ---- */

/* Enough members have reached the phase, or somebody has said so. */
struct question {
    struct group *group;
    uint32_t n, needed;
    uint64_t phase;
};

static int enough_have_come(void *p, uint32_t *for_whom_out) {
    const struct question *q = p;
    uint32_t come = 0;
    if (load_acquire(&q->group->closed) >= q->phase) return 1;
    for (uint32_t i = 0; i < q->n; i++) {
        if (load_acquire(&q->group->gate[i].clock) >= q->phase)
            come++;
        else
            *for_whom_out = i;
    }
    return come >= q->needed;
}

/* Whoever is the last of `target` members says so to the others. Nobody waits for the rest. */
static void *come_and_ask(void *p) {
    struct member_arg *arg = p;
    struct group *group = arg->group;
    const struct shmt_gates gates = gates_of(group, arg->n, arg->self, arg->spin_ns);
    for (uint64_t phase = 1; phase <= arg->phases; phase++) {
        struct question q = {.group = group, .n = arg->n, .needed = (uint32_t)arg->target, .phase = phase};
        uint64_t found = load_relaxed(&group->closed);
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, phase);
        arg->result |= shmt_gates_wait_until(&gates, enough_have_come, &q);
        while (found < phase && !lock_release(&group->closed, &found, phase)) continue;
        if (found < phase) shmt_gates_notify(&gates);
    }
    return NULL;
}

static void come_with_threads(uint32_t n, uint32_t needed, uint64_t phases, uint32_t spin_ns) {
    struct group *group = group_create(n);
    pthread_t thread[N_MAX];
    struct member_arg arg[N_MAX];
    for (uint32_t i = 0; i < n; i++) {
        arg[i] = (struct member_arg){.group = group, .n = n, .self = i, .spin_ns = spin_ns, .phases = phases, .target = needed};
        assert_int_equal(pthread_create(&thread[i], NULL, come_and_ask, &arg[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(arg[i].result, 0);
    }
    assert_int_equal(group->closed, phases);
    group_destroy(group);
}

static void the_last_to_come_gets_the_answer_and_nobody_sleeps_through_it(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    store_relaxed(&fake.jitter, 1);
    come_with_threads(2, 2, 20000, 0);
    come_with_threads(5, 5, 3000, 0);
    come_with_threads(5, 3, 3000, 0);
    come_with_threads(N_MAX, 15, 300, 0);
    fakes_off();
    come_with_threads(2, 2, 10000, 100000);
}

struct asker {
    struct group *group;
    uint32_t spin_ns, begun, ended, for_whom;
    int result;
};

static int member_1_has_come(void *p, uint32_t *for_whom_out) {
    const struct asker *asker = p;
    *for_whom_out = 1;
    return load_acquire(&asker->group->closed) != 0;
}

static void told(void *p, int waits, uint32_t for_whom) {
    struct asker *asker = p;
    asker->begun += waits == 1;
    asker->ended += waits == 0;
    asker->for_whom = for_whom;
}

static void *ask(void *p) {
    struct asker *asker = p;
    struct shmt_gates gates = gates_of(asker->group, 2, 0, asker->spin_ns);
    gates.tell = told;
    gates.tell_arg = asker;
    asker->result = shmt_gates_wait_until(&gates, member_1_has_come, asker);
    return NULL;
}

static void who_asks_is_ended_by_the_abort_word_and_says_for_whom_it_waited(void **state) {
    (void)state;
    store_relaxed(&fake.endless, 1);
    for (int spins = 0; spins < 2; spins++) {
        struct group *group = group_create(2);
        struct asker asker = {.group = group, .spin_ns = spins ? LONG_NS : 0};
        const struct shmt_gates gates = gates_of(group, 2, 1, 0);
        const uint64_t begun_ns = shmt_now_ns();
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
        if (!spins) until_asleep(group, 0);
        if (spins) sleep_ms(20);
        shmt_gate_reach(&gates, SHMT_GATE_CLOCK, 1); /* is no answer, and wakes nobody */
        store_release(&group->abort, 2);
        shmt_gates_wake(&gates);
        pthread_join(thread, NULL);
        assert_int_equal(asker.result, 1);
        assert_int_equal(asker.begun, 1);
        assert_int_equal(asker.ended, 1);
        assert_int_equal(asker.for_whom, 1);
        assert_true(shmt_now_ns() - begun_ns < LONG_NS);
        group_destroy(group);
    }
    fakes_off();
}

static void who_asks_for_long_sleeps_although_it_spins_first(void **state) {
    (void)state;
    struct group *group = group_create(2);
    struct asker asker = {.group = group, .spin_ns = 10000, .result = -1};
    const struct shmt_gates gates = gates_of(group, 2, 1, 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, ask, &asker), 0);
    until_asleep(group, 0);
    store_release(&group->closed, 1);
    shmt_gates_notify(&gates);
    pthread_join(thread, NULL);
    assert_int_equal(asker.result, 0);
    group_destroy(group);
}

static void what_is_ready_at_once_is_told_even_after_abort_and_is_no_wait(void **state) {
    (void)state;
    struct group *group = group_create(2);
    struct asker asker = {.group = group, .result = 1};
    store_release(&group->abort, 1);
    store_release(&group->closed, 1);
    ask(&asker);
    assert_int_equal(asker.result, 0);
    assert_int_equal(asker.begun, 0);
    assert_int_equal(asker.ended, 0);
    group_destroy(group);
}

/* No, and yes when it is asked for the second time. */
static int the_second_time(void *p, uint32_t *for_whom_out) {
    uint32_t *n = p;
    *for_whom_out = 1;
    return ++*n >= 2;
}

/* Reading a clock takes as long as an answer that is about to come. */
static void an_answer_that_comes_at_once_is_no_wait_where_waiters_spin(void **state) {
    (void)state;
    for (uint32_t spins = 0; spins < 2; spins++) {
        struct group *group = group_create(2);
        struct asker asker = {.group = group};
        struct shmt_gates gates = gates_of(group, 2, 0, spins ? LONG_NS : 0);
        uint32_t n = 0;
        gates.tell = told;
        gates.tell_arg = &asker;
        assert_int_equal(shmt_gates_wait_until(&gates, the_second_time, &n), 0);
        assert_int_equal(asker.begun, !spins);
        assert_int_equal(asker.ended, !spins);
        group_destroy(group);
    }
}

/* ---- what is told ---- */

static void told_aloud(void *p, int waits, uint32_t for_whom) {
    const struct asker *asker = p;
    told(p, waits, for_whom);
    store_release(&asker->group->done[0], 1);
}

static void *wait_and_tell(void *p) {
    struct asker *asker = p;
    struct shmt_gates gates = gates_of(asker->group, 2, 0, asker->spin_ns);
    gates.tell = told_aloud;
    gates.tell_arg = asker;
    asker->result = shmt_gates_wait(&gates, SHMT_GATE_CLOCK, 1, NULL);
    return NULL;
}

/* Who looks a few times before it says that it waits must not forget to say so. */
static void a_wait_for_one_who_is_late_is_told_once_and_none_where_nobody_is(void **state) {
    (void)state;
    for (int spins = 0; spins < 2; spins++) {
        struct group *group = group_create(2);
        struct asker asker = {.group = group, .spin_ns = spins ? LONG_NS : 0};
        const struct shmt_gates mine = gates_of(group, 2, 0, 0), late = gates_of(group, 2, 1, 0);
        pthread_t thread;
        shmt_gate_reach(&mine, SHMT_GATE_CLOCK, 1);
        assert_int_equal(pthread_create(&thread, NULL, wait_and_tell, &asker), 0);
        while (load_acquire(&group->done[0]) == 0) sleep_ms(1);
        shmt_gate_reach(&late, SHMT_GATE_CLOCK, 1);
        pthread_join(thread, NULL);
        assert_int_equal(asker.result, 0);
        assert_int_equal(asker.begun, 1);
        assert_int_equal(asker.ended, 1);
        assert_int_equal(asker.for_whom, 1);
        wait_and_tell(&asker); /* all are there */
        assert_int_equal(asker.begun, 1);
        assert_int_equal(asker.ended, 1);
        group_destroy(group);
    }
}

/* What was told of two waits. */
struct telling {
    struct group *group;
    uint32_t n;
    int waits[8];
    uint32_t for_whom[8];
};

static void tell_in_order(void *p, int waits, uint32_t for_whom) {
    struct telling *t = p;
    t->waits[t->n] = waits;
    t->for_whom[t->n] = for_whom;
    t->n++;
    store_release(&t->group->done[0], t->n);
}

static void *wait_for_a_latecomer(void *p) {
    struct telling *t = p;
    struct shmt_gates gates = gates_of(t->group, 3, 0, 0);
    gates.latecomer = true;
    gates.tell = tell_in_order;
    gates.tell_arg = t;
    (void)shmt_gates_wait(&gates, SHMT_GATE_CLOCK, 1, NULL);
    return NULL;
}

/* So that it is not said to be late while others are, whose time is theirs. */
static void a_latecomer_is_waited_for_in_a_wait_of_its_own(void **state) {
    static const struct {
        int waits;
        uint32_t for_whom;
    } TOLD[] = {{1, 1}, {0, 1}, {1, 2}, {0, 2}};
    struct group *group = group_create(3);
    struct telling t = {.group = group};
    pthread_t thread;
    (void)state;
    const struct shmt_gates mine = gates_of(group, 3, 0, 0);
    shmt_gate_reach(&mine, SHMT_GATE_CLOCK, 1);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a_latecomer, &t), 0);
    for (uint32_t i = 1; i < 3; i++) {
        const struct shmt_gates late = gates_of(group, 3, i, 0);
        while (load_acquire(&group->done[0]) < 2 * i - 1) sleep_ms(1);
        shmt_gate_reach(&late, SHMT_GATE_CLOCK, 1);
    }
    pthread_join(thread, NULL);
    assert_int_equal(t.n, 4);
    for (uint32_t i = 0; i < 4; i++) assert_true(t.waits[i] == TOLD[i].waits && t.for_whom[i] == TOLD[i].for_whom);
    group_destroy(group);
}

int main(void) {
    alarm(120); /* a wake-up that is lost must fail, not hang */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_to_come_gets_the_answer_and_nobody_sleeps_through_it),
        cmocka_unit_test(who_asks_is_ended_by_the_abort_word_and_says_for_whom_it_waited),
        cmocka_unit_test(who_asks_for_long_sleeps_although_it_spins_first),
        cmocka_unit_test(what_is_ready_at_once_is_told_even_after_abort_and_is_no_wait),
        cmocka_unit_test(an_answer_that_comes_at_once_is_no_wait_where_waiters_spin),
        cmocka_unit_test(a_latecomer_is_waited_for_in_a_wait_of_its_own),
        cmocka_unit_test(a_wait_for_one_who_is_late_is_told_once_and_none_where_nobody_is),
    };
    return cmocka_run_group_tests(tests, use_fakes, NULL);
}
