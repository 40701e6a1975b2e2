/* consistency: policies are points of a space, and a batch's chunks add up along one tree, whoever computes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "consistency/chunks.h"
#include "consistency/policy.h"

static void modes_are_names_for_points(void **state) {
    struct shmt_policy p;
    (void)state;
    assert_int_equal(shmt_policy_preset("async", &p, NULL), 0);
    assert_true(p.write == SHMT_WRITE_RACY && p.staleness == SHMT_STALENESS_INF && shmt_policy_is_live(&p));
    assert_string_equal(shmt_policy_name(&p), "async");
    assert_int_equal(shmt_policy_preset("sync", &p, NULL), 0);
    assert_true(p.write == SHMT_WRITE_AGGREGATE && p.staleness == 0 && !shmt_policy_is_live(&p));
    assert_string_equal(shmt_policy_name(&p), "sync");
}

static void an_unknown_mode_is_refused_with_the_ones_there_are(void **state) {
    struct shmt_policy p;
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_policy_preset("fast", &p, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "async"));
    assert_non_null(strstr(e.text, "sync"));
}

static void a_live_mode_with_a_barrier_is_no_bsp(void **state) {
    const struct shmt_policy p = {SHMT_WRITE_RACY, 0};
    (void)state;
    assert_int_equal(shmt_policy_check(&p, NULL), 0);
    assert_string_equal(shmt_policy_name(&p), "racy, staleness 0");
}

static void write_modes_have_names(void **state) {
    static const char *const NAMES[] = {"racy", "atomic", "locked", "aggregate"};
    struct shmt_error e = {0};
    enum shmt_write write;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        assert_string_equal(shmt_write_name(i), NAMES[i]);
        assert_int_equal(shmt_write_parse(NAMES[i], &write, NULL), 0);
        assert_int_equal(write, i);
    }
    assert_int_equal(shmt_write_parse("fast", &write, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "take racy, atomic, locked or aggregate"));
}

static void every_legal_point_has_a_name_that_tells_it_from_the_others(void **state) {
    struct shmt_policy p[8];
    uint32_t n = 0;
    (void)state;
    for (uint32_t i = 0; i < 8; i++) {
        p[n] = (struct shmt_policy){i / 2, i % 2 ? SHMT_STALENESS_INF : 0};
        if (shmt_policy_check(&p[n], NULL) == 0) n++;
    }
    assert_int_equal(n, 7); /* all but aggregate without a bound */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++) assert_string_not_equal(shmt_policy_name(&p[i]), shmt_policy_name(&p[j]));
    for (uint32_t i = 0; i < n; i++) assert_int_equal(shmt_policy_is_live(&p[i]), p[i].write != SHMT_WRITE_AGGREGATE);
    p[0].staleness = 3;
    assert_int_equal(shmt_policy_check(&p[0], NULL), SHMTRAIN_E_USAGE);
}

static void aggregate_without_a_bound_is_refused(void **state) {
    const struct shmt_policy p = {SHMT_WRITE_AGGREGATE, SHMT_STALENESS_INF};
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(shmt_policy_check(&p, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "--staleness 0"));
}

static void the_bound_says_how_far_one_may_run_ahead(void **state) {
    const struct shmt_policy barrier = {SHMT_WRITE_RACY, 0}, free_running = {SHMT_WRITE_RACY, SHMT_STALENESS_INF};
    (void)state;
    for (uint64_t clock = 0; clock < 5; clock++) {
        assert_int_equal(shmt_policy_wait_for(&barrier, clock), clock);
        assert_int_equal(shmt_policy_wait_for(&free_running, clock), 0);
        assert_true(shmt_policy_may_go(&barrier, clock, clock));
        assert_false(shmt_policy_may_go(&barrier, clock + 1, clock));
        assert_true(shmt_policy_may_go(&free_running, clock + 1000, clock));
    }
}

static void chunks_are_a_power_of_two_and_no_smaller_than_they_must_be(void **state) {
    (void)state;
    assert_int_equal(shmt_chunks_of_batch(1), 1);
    assert_int_equal(shmt_chunks_of_batch(2), 2);
    assert_int_equal(shmt_chunks_of_batch(7), 4);
    assert_int_equal(shmt_chunks_of_batch(64), 8);
    assert_int_equal(shmt_chunks_of_batch(2047), 8);
    assert_int_equal(shmt_chunks_of_batch(2048), 16);
    assert_int_equal(shmt_chunks_of_batch(8000), 32);
    assert_int_equal(shmt_chunks_of_batch(UINT32_MAX), SHMT_MAX_CHUNKS);
    for (uint32_t batch = 1; batch < 5000; batch++) {
        const uint32_t c = shmt_chunks_of_batch(batch);
        assert_true(c <= batch && (c & (c - 1)) == 0);
    }
}

static void every_example_of_a_batch_is_in_one_chunk(void **state) {
    (void)state;
    for (uint32_t batch = 1; batch < 300; batch++)
        for (uint64_t n = 1; n <= batch; n += 1 + batch / 7) {
            const uint32_t chunks = shmt_chunks_of_batch(batch);
            uint64_t next = 0, from, to;
            for (uint32_t c = 0; c < chunks; c++) {
                shmt_chunk_examples(batch, chunks, c, n, &from, &to);
                assert_int_equal(from, next);
                assert_true(to >= from);
                next = to;
            }
            assert_int_equal(next, n);
        }
}

static void every_chunk_has_one_worker(void **state) {
    (void)state;
    for (uint32_t chunks = 1; chunks <= 64; chunks *= 2)
        for (uint32_t seats = 1; seats <= 70; seats++) {
            uint32_t next = 0, from, to;
            for (uint32_t seat = 0; seat < seats; seat++) {
                shmt_chunk_share(chunks, seat, seats, &from, &to);
                assert_int_equal(from, next);
                next = to;
            }
            assert_int_equal(next, chunks);
        }
}

/* Each worker's stack must hold complete, aligned subtrees that cover its range exactly, in at most log2 C + 1 buffers for a
 * share that begins at 0, and twice that for any. */
static void a_stack_covers_its_range_with_complete_subtrees(void **state) {
    (void)state;
    for (uint32_t from = 0; from <= 64; from++)
        for (uint32_t to = from; to <= 64; to++) {
            struct shmt_stack stack;
            uint32_t height, next = from;
            shmt_stack_after(from, to, &stack, &height);
            for (uint32_t i = 0; i < stack.n; i++) {
                assert_int_equal(stack.at[i].first, next);
                assert_int_equal(stack.at[i].first % (1u << stack.at[i].level), 0);
                next += 1u << stack.at[i].level;
            }
            assert_int_equal(next, to);
            assert_true(height >= stack.n && height <= (from == 0 ? 7 : 13));
            assert_false(shmt_stack_may_merge(&stack));
        }
}

static void the_largest_stack_fits(void **state) {
    struct shmt_stack stack;
    uint32_t height, highest = 0;
    (void)state;
    for (uint32_t from = 0; from < SHMT_MAX_CHUNKS; from++) {
        shmt_stack_after(from, SHMT_MAX_CHUNKS - 1, &stack, &height);
        if (height > highest) highest = height;
    }
    assert_true(highest <= SHMT_MAX_STACK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_names_for_points),
        cmocka_unit_test(an_unknown_mode_is_refused_with_the_ones_there_are),
        cmocka_unit_test(a_live_mode_with_a_barrier_is_no_bsp),
        cmocka_unit_test(write_modes_have_names),
        cmocka_unit_test(every_legal_point_has_a_name_that_tells_it_from_the_others),
        cmocka_unit_test(aggregate_without_a_bound_is_refused),
        cmocka_unit_test(the_bound_says_how_far_one_may_run_ahead),
        cmocka_unit_test(chunks_are_a_power_of_two_and_no_smaller_than_they_must_be),
        cmocka_unit_test(every_example_of_a_batch_is_in_one_chunk),
        cmocka_unit_test(every_chunk_has_one_worker),
        cmocka_unit_test(a_stack_covers_its_range_with_complete_subtrees),
        cmocka_unit_test(the_largest_stack_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
