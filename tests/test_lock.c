/* Waiting for a row lock (update/lock.h): a waiter spins, offers the processor, and then sleeps, so that a stopped holder costs it
 * no processor. A host counts the naps and the offers; they take no time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "update/lock.h"
#include "sync/host.h"

#define HOLDER 7
#define ME     9

static _Atomic uint32_t g_word, g_abort;
static uint32_t g_naps, g_yields, g_release_at, g_abort_at;
static uint64_t g_longest_ns, g_slept_ns;
static int g_take_turns; /* during each nap another one gets the lock */

static uint64_t now_ns(void) { return g_slept_ns; }

static void sleep_until(uint64_t at_ns) {
    const uint64_t ns = at_ns - g_slept_ns;
    if (ns > g_longest_ns) g_longest_ns = ns;
    g_slept_ns += ns;
    g_naps++;
    if (g_naps == g_release_at) store_release(&g_word, 0); /* pairs with the waiter's compare-and-swap */
    if (g_naps == g_abort_at) store_relaxed(&g_abort, 1);
    if (g_take_turns && g_naps != g_release_at) store_relaxed(&g_word, HOLDER + g_naps % 2);
}

/* A waiter that never sleeps would be here for ever. */
static void yield(void) {
    if (++g_yields == 100000) store_relaxed(&g_abort, 1);
}

static const struct shmt_host_ops HOST = {.now_ns = now_ns, .sleep_until = sleep_until, .yield = yield};

static int begin(void **state) {
    (void)state;
    store_relaxed(&g_word, HOLDER);
    store_relaxed(&g_abort, 0);
    g_naps = g_yields = g_release_at = g_abort_at = 0;
    g_longest_ns = g_slept_ns = 0;
    g_take_turns = 0;
    return 0;
}

static const struct shmt_locks LOCKS = {.word = &g_word, .owner = ME, .abort = &g_abort};

static void a_waiter_sleeps_until_the_lock_is_released(void **state) {
    (void)state;
    g_release_at = 30;
    assert_ptr_equal(shmt_unit_acquire(&LOCKS, 0), &g_word);
    assert_int_equal(load_relaxed(&g_word), ME);
    assert_int_equal(g_naps, 30);
    assert_true(g_yields > 0 && g_yields < 1000);
}

static void it_looks_at_the_abort_word_ten_times_a_second(void **state) {
    (void)state;
    g_abort_at = 50;
    assert_null(shmt_unit_acquire(&LOCKS, 0));
    assert_int_equal(load_relaxed(&g_word), HOLDER);
    assert_int_equal(g_naps, 50);
    assert_true(g_longest_ns <= 100000000u);
}

/* Of 10 s, in which a processor could look a thousand million times. */
static void a_stopped_holder_costs_it_few_looks(void **state) {
    (void)state;
    g_release_at = 210;
    assert_non_null(shmt_unit_acquire(&LOCKS, 0));
    assert_true(g_slept_ns >= UINT64_C(10000000000));
}

/* Nobody is stopped then: who sleeps longer each time would come too late each time. */
static void a_waiter_does_not_sleep_longer_while_others_take_turns(void **state) {
    (void)state;
    g_take_turns = 1;
    g_release_at = 200;
    assert_ptr_equal(shmt_unit_acquire(&LOCKS, 0), &g_word);
    assert_int_equal(g_naps, 200);
    assert_true(g_longest_ns <= 100000u);
    assert_true(g_yields > 10 * g_naps); /* it looks in between */
}

static void a_free_lock_is_taken_without_a_call_of_the_system(void **state) {
    (void)state;
    store_relaxed(&g_word, 0);
    assert_ptr_equal(shmt_unit_acquire(&LOCKS, 0), &g_word);
    shmt_unit_release(&g_word);
    assert_int_equal(load_relaxed(&g_word), 0);
    assert_int_equal(g_naps + g_yields, 0);
}

int main(void) {
    shmt_host_use(&HOST);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_waiter_sleeps_until_the_lock_is_released, begin),
        cmocka_unit_test_setup(it_looks_at_the_abort_word_ten_times_a_second, begin),
        cmocka_unit_test_setup(a_stopped_holder_costs_it_few_looks, begin),
        cmocka_unit_test_setup(a_waiter_does_not_sleep_longer_while_others_take_turns, begin),
        cmocka_unit_test_setup(a_free_lock_is_taken_without_a_call_of_the_system, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
