/* consistency: policies are points of a space, and a batch's chunks add up along one tree, whoever computes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "consistency/chunks.h"
#include "consistency/dealing.h"
#include "consistency/mode.h"
#include "consistency/quorum.h"
#include "consistency/stages.h"

static void name_of(const struct shmt_policy *p, char out[64]) { shmt_mode_name(p, NULL, out, 64); }

static void modes_are_names_for_points(void **state) {
    const struct shmt_mode *mode;
    char name[64];
    (void)state;
    for (size_t i = 0; (mode = shmt_mode_at(i)); i++) {
        struct shmt_policy p;
        assert_int_equal(shmt_mode_parse("mode", mode->name, &p, NULL), 0);
        assert_true(shmt_policy_equal(&p, &mode->policy));
        shmt_mode_name(&p, mode->name, name, sizeof name);
        assert_string_equal(name, mode->name);
        assert_int_equal(shmt_policy_settle(&p, 8, NULL), 0);
        shmt_mode_name(&p, mode->name, name, sizeof name);
        assert_string_equal(name, mode->name);
        assert_true(strlen(mode->about) <= 50);
    }
}

static void a_point_of_two_modes_has_the_name_that_was_asked_for(void **state) {
    struct shmt_policy p;
    char name[64];
    (void)state;
    assert_int_equal(shmt_mode_parse("mode", "hogwild", &p, NULL), 0);
    name_of(&p, name);
    assert_string_equal(name, "async");
    shmt_mode_name(&p, "hogwild", name, sizeof name);
    assert_string_equal(name, "hogwild");
    shmt_mode_name(&p, "async", name, sizeof name);
    assert_string_equal(name, "async");
    shmt_mode_name(&p, "node:8", name, sizeof name); /* it has turned out to have one copy */
    assert_string_equal(name, "hogwild");
    p.write = SHMT_WRITE_LOCKED;
    shmt_mode_name(&p, "hogwild", name, sizeof name);
    assert_string_equal(name, "locked, staleness inf");
}

static void the_number_behind_a_name_is_the_one_that_the_mode_is_about(void **state) {
    struct shmt_policy p;
    char name[64];
    (void)state;
    assert_int_equal(shmt_mode_parse("mode", "ssp:3", &p, NULL), 0);
    assert_true(p.write == SHMT_WRITE_ATOMIC && p.staleness == 3);
    assert_int_equal(shmt_mode_parse("mode", "backup:6", &p, NULL), 0);
    assert_true(p.write == SHMT_WRITE_AGGREGATE && p.staleness == 0 && p.quorum == 6);
    assert_int_equal(shmt_mode_parse("mode", "local:16", &p, NULL), 0);
    assert_true(p.replicas == SHMT_REPLICAS_WORKER && p.merge_every == 16 && p.staleness == 0);
    name_of(&p, name);
    assert_string_equal(name, "local");
    assert_int_equal(shmt_mode_parse("mode", "node:2", &p, NULL), 0);
    assert_true(p.replicas == SHMT_REPLICAS_NODE && p.merge_every == 2 && p.staleness == SHMT_STALENESS_INF);
    assert_int_equal(shmt_mode_parse("mode", "ssp:inf", &p, NULL), 0);
    name_of(&p, name);
    assert_string_equal(name, "atomic, staleness inf");
}

static void a_mode_that_is_none_is_refused_with_the_ones_there_are(void **state) {
    static const struct {
        const char *mode, *says;
    } CASES[] = {{"fast", "mode \"fast\" is not one of async, hogwild, sync, allreduce, ssp, backup, local and node"},
                 {"", "is not one of async"},
                 {"asyn", "is not one of async"},
                 {"async:1", "mode async takes no number"},
                 {"ssp:", "in clocks, as in ssp:4"},
                 {"ssp:-1", "in clocks, as in ssp:4"},
                 {"ssp:18446744073709551615", "in clocks, as in ssp:4"},
                 {"ssp:4x", "in clocks, as in ssp:4"},
                 {"backup:0", "at least 1, as in backup:6"},
                 {"backup:4294967296", "at least 1, as in backup:6"},
                 {"local:0", "the number of clocks between two merges"}};
    struct shmt_policy p = {.staleness = 77};
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmt_error e = {0};
        assert_int_equal(shmt_mode_parse("mode", CASES[i].mode, &p, &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, CASES[i].says));
        assert_int_equal(p.staleness, 77);
    }
}

static void a_live_mode_with_a_barrier_is_no_bsp(void **state) {
    const struct shmt_policy p = {.write = SHMT_WRITE_RACY, .staleness = 0};
    char name[64];
    (void)state;
    assert_int_equal(shmt_policy_check(&p, 8, NULL), 0);
    name_of(&p, name);
    assert_string_equal(name, "racy, staleness 0");
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
    assert_non_null(strstr(e.text, "use racy, atomic, locked or aggregate"));
}

/* Point i of a grid over the whole space; false behind the last. */
static bool point(uint32_t i, struct shmt_policy *out) {
    static const uint64_t STALENESS[] = {0, 1, 4, SHMT_STALENESS_INF};
    static const uint32_t QUORUM[] = {SHMT_QUORUM_ALL, 3, 8};
    *out = (struct shmt_policy){.write = i % 4,
                                .staleness = STALENESS[i / 4 % 4],
                                .quorum = QUORUM[i / 16 % 3],
                                .late = i / 48 % 2,
                                .replicas = i / 96 % 3,
                                .merge_every = i / 288 % 2 * 4,
                                .merge = i / 576 % 3};
    return i < 1728;
}

/* The rules of legality once more, in other words. */
static bool is_legal(const struct shmt_policy *p) {
    if (p->write == SHMT_WRITE_AGGREGATE)
        return p->staleness != SHMT_STALENESS_INF && p->replicas == SHMT_REPLICAS_ONE &&
               (p->quorum == SHMT_QUORUM_ALL || p->staleness == 0);
    return p->quorum == SHMT_QUORUM_ALL && (p->replicas == SHMT_REPLICAS_ONE || p->merge_every > 0);
}

static void every_point_is_legal_or_refused_in_one_sentence_that_says_why(void **state) {
    struct shmt_policy p;
    uint32_t legal = 0;
    (void)state;
    for (uint32_t i = 0; point(i, &p); i++) {
        struct shmt_error e = {0};
        const int rc = shmt_policy_check(&p, 8, &e);
        assert_int_equal(rc, is_legal(&p) ? 0 : SHMTRAIN_E_USAGE);
        if (rc < 0) assert_true(strlen(e.text) > 20 && !strchr(e.text, '\n'));
        legal += rc == 0;
    }
    assert_true(legal > 100);
}

static void points_that_differ_in_write_or_wait_have_names_that_do(void **state) {
    struct shmt_policy p, q;
    char a[64], b[64];
    (void)state;
    for (uint32_t i = 0; i < 16; i++)
        for (uint32_t j = 0; j < i; j++) {
            (void)point(i, &p);
            (void)point(j, &q);
            if (!is_legal(&p) || !is_legal(&q)) continue;
            if (p.write == SHMT_WRITE_ATOMIC && q.write == p.write && p.staleness % 4 < 2 && q.staleness % 4 < 2) continue;
            name_of(&p, a);
            name_of(&q, b);
            if (strcmp(a, "ssp") != 0) assert_string_not_equal(a, b); /* ssp is one name for several bounds */
        }
}

static void a_policy_is_live_or_batched_or_has_rounds(void **state) {
    struct shmt_policy p;
    (void)state;
    for (uint32_t i = 0; point(i, &p); i++)
        assert_int_equal(shmt_policy_is_live(&p) + shmt_policy_is_batched(&p) + shmt_policy_has_rounds(&p), 1);
    (void)shmt_mode_parse("mode", "backup:6", &p, NULL);
    assert_true(shmt_policy_has_rounds(&p));
    (void)shmt_mode_parse("mode", "sync", &p, NULL);
    assert_true(shmt_policy_is_batched(&p));
}

static void a_quorum_of_all_is_no_quorum_and_one_of_more_is_refused(void **state) {
    static const uint32_t MOST[][2] = {{1, 0}, {2, 1}, {7, 6}, {8, 7}, {9, 7}, {64, 56}};
    struct shmt_policy p;
    struct shmt_error e = {0};
    (void)state;
    (void)shmt_mode_parse("mode", "backup:8", &p, NULL);
    assert_int_equal(shmt_policy_settle(&p, 8, NULL), 0);
    assert_true(shmt_policy_is_batched(&p));
    (void)shmt_mode_parse("mode", "backup:9", &p, NULL);
    assert_int_equal(shmt_policy_settle(&p, 8, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "9 of 8 workers: use a --quorum of at most 8, or -w 9 or more"));
    for (size_t i = 0; i < sizeof MOST / sizeof *MOST; i++) {
        (void)shmt_mode_parse("mode", "backup", &p, NULL);
        assert_int_equal(shmt_policy_settle(&p, MOST[i][0], NULL), 0);
        assert_int_equal(p.quorum, MOST[i][1]);
    }
}

/* TensorFlow's sync training hung for ever when 27 of 64 workers ran out of data while 60 gradients were required. */
static void no_more_gradients_are_needed_than_there_are_members(void **state) {
    (void)state;
    assert_int_equal(shmt_policy_needed(60, 64), 60);
    assert_int_equal(shmt_policy_needed(60, 64 - 27), 37);
    assert_int_equal(shmt_policy_needed(60, 0), 0);
    assert_int_equal(shmt_policy_needed(SHMT_QUORUM_ALL, 64), 64);
}

static void merges_are_due_every_so_many_clocks(void **state) {
    struct shmt_policy p;
    (void)state;
    (void)shmt_mode_parse("mode", "local:3", &p, NULL);
    for (uint64_t clock = 1; clock < 10; clock++) assert_int_equal(shmt_policy_merge_due(&p, clock), clock % 3 == 0);
    assert_true(shmt_policy_merges_together(&p));
    (void)shmt_mode_parse("mode", "node:3", &p, NULL);
    assert_false(shmt_policy_merges_together(&p));
    (void)shmt_mode_parse("mode", "async", &p, NULL);
    assert_false(shmt_policy_merge_due(&p, 3));
}

static void aggregate_keeps_a_bounded_number_of_buffers(void **state) {
    const struct shmt_policy p = {.write = SHMT_WRITE_AGGREGATE, .staleness = SHMT_STALENESS_INF},
                             q = {.write = SHMT_WRITE_AGGREGATE, .staleness = 1000};
    struct shmt_error e = {0}, f = {0};
    (void)state;
    assert_int_equal(shmt_policy_check(&p, 8, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "--staleness 0"));
    assert_int_equal(shmt_policy_check(&q, 8, &f), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(f.text, "the most is staleness 64"));
}

static void the_bound_says_how_far_one_may_run_ahead(void **state) {
    const struct shmt_policy barrier = {.write = SHMT_WRITE_RACY, .staleness = 0},
                             free_running = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
                             bounded = {.write = SHMT_WRITE_ATOMIC, .staleness = 3};
    (void)state;
    for (uint64_t clock = 0; clock < 8; clock++) {
        assert_int_equal(shmt_policy_wait_for(&barrier, clock), clock);
        assert_int_equal(shmt_policy_wait_for(&free_running, clock), 0);
        assert_int_equal(shmt_policy_wait_for(&bounded, clock), clock > 3 ? clock - 3 : 0);
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
 * share that begins at 0, and twice that for any; late sums take no more. */
static void a_stack_covers_its_range_with_complete_subtrees(void **state) {
    (void)state;
    for (uint32_t from = 0; from <= 64; from++)
        for (uint32_t to = from; to <= 64; to++) {
            struct shmt_stack stack, late;
            uint32_t height, late_height, next = from;
            shmt_stack_after(from, to, false, &stack, &height);
            shmt_stack_after(from, to, true, &late, &late_height);
            assert_int_equal(late_height, height);
            for (uint32_t i = 0; i < stack.n; i++) {
                assert_int_equal(stack.at[i].first, next);
                assert_int_equal(stack.at[i].first % (1u << stack.at[i].level), 0);
                next += 1u << stack.at[i].level;
            }
            assert_int_equal(next, to);
            assert_true(height >= stack.n && height <= (from == 0 ? 7 : 13));
            assert_false(shmt_stack_may_merge(&stack));
            while (shmt_stack_may_merge(&late)) shmt_stack_merge(&late);
            assert_int_equal(late.n, stack.n);
            assert_memory_equal(late.at, stack.at, stack.n * sizeof *stack.at);
        }
}

static void the_largest_stack_fits(void **state) {
    struct shmt_stack stack;
    uint32_t height, highest = 0;
    (void)state;
    for (uint32_t from = 0; from < SHMT_MAX_CHUNKS; from++) {
        for (int late = 0; late < 2; late++) {
            shmt_stack_after(from, SHMT_MAX_CHUNKS - 1, late, &stack, &height);
            if (height > highest) highest = height;
        }
    }
    assert_true(highest <= SHMT_MAX_STACK);
}

/* ---- stages ---- */

/* One way through a run: stages in their order, in each round those of `rows`, and which of them end in a meeting. */
struct way {
    enum shmt_run_stage stage[8];
    bool meets[8];
    uint32_t n, work[8], meetings;
};

/* A life that begins at the first stage, with the record of another that has died at stage `died_at`; it dies behind the work
 * of stage `ends_at`. */
static void live(struct way *way, uint32_t died_at, bool met, uint32_t ends_at, bool meets_then) {
    for (uint32_t i = 0; i <= ends_at && i < way->n; i++) {
        const enum shmt_task task = shmt_stage_task(way->stage[i], way->stage[died_at], met);
        if (task == SHMT_TASK_ALL) way->work[i]++;
        if (way->meets[i] && task == SHMT_TASK_ALL && (i < ends_at || meets_then)) way->meetings++;
    }
}

static void a_next_life_does_what_was_not_done_and_comes_to_each_meeting_once(void **state) {
    static const struct way WAYS[] = {
        {.n = 5,
         .stage = {SHMT_STAGE_BEGIN, SHMT_STAGE_WORK, SHMT_STAGE_APPLY, SHMT_STAGE_END, SHMT_STAGE_TURN},
         .meets = {false, true, true, true, true}},
        {.n = 4,
         .stage = {SHMT_STAGE_WORK, SHMT_STAGE_OFFER, SHMT_STAGE_FINISH, SHMT_STAGE_TURN},
         .meets = {false, false, true, true}},
        {.n = 6,
         .stage = {SHMT_STAGE_MAKE, SHMT_STAGE_WORK, SHMT_STAGE_COME, SHMT_STAGE_MERGE, SHMT_STAGE_END, SHMT_STAGE_TURN},
         .meets = {true, false, true, true, true, true}}};
    (void)state;
    for (size_t w = 0; w < sizeof WAYS / sizeof *WAYS; w++)
        for (uint32_t dies = 0; dies < WAYS[w].n; dies++)
            for (int met = 0; met <= (WAYS[w].meets[dies] ? 1 : 0); met++) {
                struct way way = WAYS[w];
                uint32_t meetings = 0;
                live(&way, 0, false, dies, met); /* the first life */
                live(&way, dies, met, way.n, true);
                for (uint32_t i = 0; i < way.n; i++) {
                    meetings += way.meets[i];
                    assert_int_equal(way.work[i], i == dies && !met ? 2 : 1);
                }
                assert_int_equal(way.meetings, meetings);
            }
}

/* ---- dealing ---- */

static void every_piece_is_asked_for_once_first_those_of_the_own_region(void **state) {
    static const uint64_t SIZES[] = {1, 2, 7, 8, 9, 100, 1000};
    (void)state;
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++)
        for (uint32_t seats = 1; seats <= 16; seats++)
            for (uint32_t region = 0; region < seats; region++) {
                const uint64_t n = SIZES[k], from = n * region / seats, to = n * (region + 1) / seats;
                uint8_t asked[1000] = {0};
                struct shmt_claims claims;
                uint64_t piece, i = 0;
                shmt_claims_begin(&claims, n, NULL, 0, region, seats);
                for (; shmt_claims_next(&claims, &piece); i++) {
                    assert_true(piece < n && !asked[piece]);
                    asked[piece] = 1;
                    if (i < to - from) assert_int_equal(piece, from + i);
                }
                assert_int_equal(i, n);
                assert_false(shmt_claims_next(&claims, &piece));
            }
}

/* Each share costs what is fair, but for a bin at either end. */
static void cuts_are_even_to_a_bin(void **state) {
    uint32_t terms[200];
    uint64_t out[33];
    (void)state;
    for (uint32_t seed = 0; seed < 20; seed++)
        for (uint32_t shares = 1; shares <= 32; shares++) {
            uint64_t all = 0, most = 0;
            for (uint32_t i = 0; i < 200; i++) {
                terms[i] = (uint32_t)(shmt_hash64(seed, i, 0, 0) % (i % 17 == 0 ? 1000 : 10));
                all += 48 + 3 * (uint64_t)terms[i];
                most = most > 48 + 3 * (uint64_t)terms[i] ? most : 48 + 3 * (uint64_t)terms[i];
            }
            shmt_cut_evenly(terms, 200, 48, 3, shares, out);
            out[shares] = 200;
            assert_int_equal(out[0], 0);
            for (uint32_t share = 0; share < shares; share++) {
                uint64_t cost = 0;
                assert_true(out[share] <= out[share + 1]);
                for (uint64_t i = out[share]; i < out[share + 1]; i++) cost += 48 + 3 * (uint64_t)terms[i];
                assert_true(cost <= all / shares + most + 1);
            }
        }
}

/* ---- rounds ---- */

/* Of all ways in which up to five seats can be at a round. */
static void a_round_is_closed_when_enough_are_there_of_those_who_can_come(void **state) {
    (void)state;
    for (uint32_t asked = 0; asked <= 6; asked++)
        for (uint32_t ways = 0; ways < 6 * 6 * 6 * 6 * 6; ways++) {
            struct shmt_attendance all = {0};
            uint32_t there = 0, late = 0, coming = 0, way = ways;
            for (uint32_t seat = 0; seat < 5; seat++, way /= 6) {
                const bool works = way % 6 % 2, arrived = way % 6 / 2 > 0, is_late = way % 6 / 2 == 2;
                shmt_attendance_count(&all, works, arrived, is_late);
                there += arrived && !is_late;
                late += is_late;
                coming += works && !arrived;
            }
            const bool enough = shmt_attendance_is_enough(&all, asked);
            const bool all_are = coming == 0; /* nobody else will come */
            assert_int_equal(enough, there + late > 0 && (all_are || (asked != SHMT_QUORUM_ALL && there >= asked)));
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modes_are_names_for_points),
        cmocka_unit_test(a_point_of_two_modes_has_the_name_that_was_asked_for),
        cmocka_unit_test(the_number_behind_a_name_is_the_one_that_the_mode_is_about),
        cmocka_unit_test(a_mode_that_is_none_is_refused_with_the_ones_there_are),
        cmocka_unit_test(a_live_mode_with_a_barrier_is_no_bsp),
        cmocka_unit_test(write_modes_have_names),
        cmocka_unit_test(every_point_is_legal_or_refused_in_one_sentence_that_says_why),
        cmocka_unit_test(points_that_differ_in_write_or_wait_have_names_that_do),
        cmocka_unit_test(a_policy_is_live_or_batched_or_has_rounds),
        cmocka_unit_test(a_quorum_of_all_is_no_quorum_and_one_of_more_is_refused),
        cmocka_unit_test(no_more_gradients_are_needed_than_there_are_members),
        cmocka_unit_test(merges_are_due_every_so_many_clocks),
        cmocka_unit_test(aggregate_keeps_a_bounded_number_of_buffers),
        cmocka_unit_test(the_bound_says_how_far_one_may_run_ahead),
        cmocka_unit_test(chunks_are_a_power_of_two_and_no_smaller_than_they_must_be),
        cmocka_unit_test(every_example_of_a_batch_is_in_one_chunk),
        cmocka_unit_test(every_chunk_has_one_worker),
        cmocka_unit_test(a_stack_covers_its_range_with_complete_subtrees),
        cmocka_unit_test(the_largest_stack_fits),
        cmocka_unit_test(a_next_life_does_what_was_not_done_and_comes_to_each_meeting_once),
        cmocka_unit_test(every_piece_is_asked_for_once_first_those_of_the_own_region),
        cmocka_unit_test(cuts_are_even_to_a_bin),
        cmocka_unit_test(a_round_is_closed_when_enough_are_there_of_those_who_can_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
