/* consistency: policies are points of a space, and a batch's chunks add up along one tree, whoever computes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/random.h"
#include "consistency/chunks.h"
#include "consistency/dealing.h"
#include "consistency/passing.h"
#include "consistency/shares.h"
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

/* ---- shares of hosts ---- */

/* Whatever shares there are, each item is one host's, and nobody else's. */
static void assert_each_item_is_somebodys(const struct shmt_shares *shares, uint64_t items) {
    uint8_t had[1000] = {0};
    assert_true(items <= sizeof had);
    for (uint32_t host = 0; host < shares->n_hosts; host++) {
        struct shmt_share share;
        shmt_share_of(shares, host, &share);
        assert_true(share.n_own > 0);
        for (uint64_t i = 0, n = shmt_share_items(&share, items); i < n; i++) {
            const uint64_t item = shmt_share_item(&share, i);
            assert_true(item < items && !had[item]);
            had[item] = 1;
        }
    }
    for (uint64_t i = 0; i < items; i++) assert_int_equal(had[i], 1);
}

static void each_item_is_one_hosts_whatever_the_shares(void **state) {
    static const uint64_t ITEMS[] = {0, 1, 2, 63, 255, 256, 257, 999};
    (void)state;
    for (uint32_t n = 1; n <= 64; n++) {
        struct shmt_shares shares;
        uint64_t busy[64], done[64];
        shmt_shares_equal(n, &shares);
        for (uint32_t round = 0; round < 6; round++) {
            for (size_t k = 0; k < sizeof ITEMS / sizeof *ITEMS; k++) assert_each_item_is_somebodys(&shares, ITEMS[k]);
            for (uint32_t host = 0; host < n; host++) { /* also what cannot be */
                busy[host] = 1 + shmt_hash64(n, round, host, 0) % (round % 2 ? 100 : UINT64_MAX - 1);
                done[host] = 8 + shmt_hash64(n, round, host, 1) % (round % 3 ? 1000 : UINT64_MAX / 2);
            }
            const struct shmt_shares last = shares;
            shmt_shares_by_speed(&last, done, busy, &shares);
        }
    }
}

/* Hosts of speeds that stay take the same time after some epochs, to a few percent. */
static void shares_follow_speeds(void **state) {
    static const uint64_t PACE[3] = {1000, 1300, 4000}; /* ns for an item */
    struct shmt_shares shares, next;
    uint64_t busy[3], done[3], least = 0, most = 0;
    (void)state;
    shmt_shares_equal(3, &shares);
    for (uint32_t epoch = 0; epoch < 8; epoch++) {
        least = UINT64_MAX, most = 0;
        for (uint32_t host = 0; host < 3; host++) {
            struct shmt_share share;
            shmt_share_of(&shares, host, &share);
            done[host] = shmt_share_items(&share, 100000);
            busy[host] = done[host] * PACE[host];
            least = busy[host] < least ? busy[host] : least;
            most = busy[host] > most ? busy[host] : most;
        }
        if (epoch == 0) assert_true(most > 3 * least);
        shmt_shares_by_speed(&shares, done, busy, &next);
        shares = next;
    }
    assert_true((double)most < 1.07 * (double)least);
}

static void what_differs_little_or_was_not_measured_changes_no_share(void **state) {
    static const uint64_t BUSY[][2] = {{1000, 1000}, {1000, 1040}, {0, 1000}, {0, 0}}, DONE[] = {50000, 50000}, FEW[] = {8, 7};
    struct shmt_shares equal, next;
    (void)state;
    shmt_shares_equal(2, &equal);
    for (size_t i = 0; i < sizeof BUSY / sizeof *BUSY; i++) {
        shmt_shares_by_speed(&equal, DONE, BUSY[i], &next);
        assert_memory_equal(&next, &equal, sizeof equal);
    }
    shmt_shares_by_speed(&equal, FEW, (const uint64_t[]){1, 1000}, &next);
    assert_memory_equal(&next, &equal, sizeof equal);
}

/* Some of the items were passed on, so that all were done at the same time: their speeds still tell. */
static void who_did_the_items_of_others_gets_more_of_its_own(void **state) {
    static const uint64_t DONE[] = {75000, 25000}, BUSY[] = {1000000, 1000000};
    struct shmt_shares equal, next;
    struct shmt_share share;
    (void)state;
    shmt_shares_equal(2, &equal);
    shmt_shares_by_speed(&equal, DONE, BUSY, &next);
    shmt_share_of(&next, 0, &share);
    assert_int_equal(share.n_own, 160); /* of 256: half of the way from 128 to 192 */
}

/* ---- passing items on ---- */

#define MS 1000000

static uint64_t all_of(const uint64_t *n, uint32_t n_hosts) {
    uint64_t sum = 0;
    for (uint32_t host = 0; host < n_hosts; host++) sum += n[host];
    return sum;
}

static void hosts_that_are_behind_pass_items_on(void **state) {
    static const struct shmt_headway HALF[] = {{100, MS, MS, false}, {0, MS, MS, true}},
                                     SLOW[] = {{300, 3 * MS, MS, false}, {300, MS, MS, false}},
                                     MANY[] = {{10, MS, 0, false}, {90, MS, 0, false}, {0, MS, 0, true}, {60, MS, 0, false}},
                                     NEW[] = {{100, MS, MS, false}, {0, 0, MS, true}};
    uint64_t n[4];
    (void)state;
    shmt_passing_plan(HALF, 2, 0, n);
    assert_true(n[0] == 0 && n[1] == 50);
    shmt_passing_plan(HALF, 2, 1, n);
    assert_int_equal(all_of(n, 2), 0);
    shmt_passing_plan(SLOW, 2, 0, n); /* then each has 450 ms to go */
    assert_int_equal(n[1], 150);
    shmt_passing_plan(MANY, 4, 1, n); /* 40 each */
    assert_true(n[0] == 30 && n[2] == 20 && n[3] == 0);
    shmt_passing_plan(MANY, 4, 3, n);
    assert_true(n[0] == 0 && n[2] == 20);
    shmt_passing_plan(NEW, 2, 0, n); /* who had no item at all is as fast as the others */
    assert_int_equal(n[1], 50);
}

static void what_brings_the_end_hardly_nearer_is_not_passed_on(void **state) {
    static const struct shmt_headway NEAR[] = {{100, MS, MS, false}, {90, MS, MS, false}}, /* 5 % */
        FAR_AWAY[] = {{100, MS, 30 * MS, false}, {0, MS, MS, true}},                       /* it would come too late */
        UNKNOWN[] = {{100, 0, 0, false}, {100, MS, 0, false}, {0, MS, 0, true}},           /* one cannot tell */
        NONE[] = {{0, MS, 0, true}, {0, MS, 0, true}};
    const struct shmt_headway *const CASES[] = {NEAR, FAR_AWAY, UNKNOWN, NONE};
    uint64_t n[2];
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (uint32_t self = 0; self < 2; self++) {
            shmt_passing_plan(CASES[i], 2, self, n);
            assert_int_equal(all_of(n, 2), 0);
        }
}

/* Also of numbers that cannot be: nobody gives more than it has, nor gets more than brings it to what it should have. */
static void plans_of_all_hosts_fit_together(void **state) {
    struct shmt_headway of[64];
    uint64_t n[64], to[64];
    (void)state;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const uint32_t n_hosts = 1 + (uint32_t)(shmt_hash64(seed, 0, 0, 0) % 64);
        uint64_t left = 0;
        for (uint32_t host = 0; host < n_hosts; host++) {
            const uint64_t most = seed % 4 ? 1000 : UINT32_MAX, r = shmt_hash64(seed, host, 1, 0);
            of[host] = (struct shmt_headway){.left = r % 3 ? r % most : 0,
                                             .each_ns = r % 7 ? r % (seed % 5 ? 10 * MS : UINT64_MAX) : 0};
            left += of[host].left;
        }
        memset(to, 0, sizeof to);
        for (uint32_t self = 0; self < n_hosts; self++) {
            shmt_passing_plan(of, n_hosts, self, n);
            assert_true(all_of(n, n_hosts) <= of[self].left && n[self] == 0);
            for (uint32_t host = 0; host < n_hosts; host++) to[host] += n[host];
        }
        for (uint32_t host = 0; host < n_hosts; host++) assert_true(to[host] == 0 || to[host] + of[host].left <= left);
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
        cmocka_unit_test(each_item_is_one_hosts_whatever_the_shares),
        cmocka_unit_test(shares_follow_speeds),
        cmocka_unit_test(what_differs_little_or_was_not_measured_changes_no_share),
        cmocka_unit_test(who_did_the_items_of_others_gets_more_of_its_own),
        cmocka_unit_test(hosts_that_are_behind_pass_items_on),
        cmocka_unit_test(what_brings_the_end_hardly_nearer_is_not_passed_on),
        cmocka_unit_test(plans_of_all_hosts_fit_together),
        cmocka_unit_test(a_round_is_closed_when_enough_are_there_of_those_who_can_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
