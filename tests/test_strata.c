/* Tests of what lies where, by arithmetic: strata of the data and the order of examples within them (ps/strata.h), shards of
 * the tables (ps/shards.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "consistency/chunks.h"
#include "ps/shards.h"
#include "ps/strata.h"

struct dice {
    uint64_t seed, drawn;
};
static uint64_t roll(struct dice *d, uint64_t below) { return shmt_below(shmt_hash64(d->seed, d->drawn++, 0, 0), below); }

enum { MOST = 3000 };

/* A run of any shape: seats on up to 4 nodes (some without a seat), guests, batches, chunks, items. */
static struct shmt_spec *any_spec(struct dice *d, bool live) {
    static struct shmt_spec spec;
    const uint64_t n = 1 + roll(d, MOST);
    const uint32_t batch = 1 + (uint32_t)roll(d, 200);
    memset(&spec, 0, sizeof spec);
    spec.n_seats = 1 + (uint32_t)roll(d, 9);
    spec.n_guests = (uint32_t)roll(d, spec.n_seats);
    spec.n_examples = n;
    spec.policy = live ? (struct shmt_policy){.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF}
                       : (struct shmt_policy){.write = SHMT_WRITE_AGGREGATE, .staleness = 0};
    spec.batch = batch;
    spec.n_chunks = shmt_chunks_of_batch(batch);
    spec.item = 1 + (uint32_t)roll(d, 100);
    spec.order = (struct shmt_order){.seed = roll(d, 1000), .n_examples = n, .shuffle = true};
    spec.placement.n_nodes = (uint32_t)roll(d, 5);
    for (uint32_t seat = 0; seat < spec.n_seats && spec.placement.n_nodes > 0; seat++)
        spec.placement.seat_node[seat] = (uint8_t)roll(d, spec.placement.n_nodes);
    return &spec;
}

/* The whole epoch, in requests of any length: (n_examples) */
static void order_of(const struct shmt_spec *spec, uint32_t epoch, struct dice *d, uint32_t *out) {
    for (uint64_t at = 0, n; at < spec->n_examples; at += n) {
        n = 1 + roll(d, 150);
        if (n > spec->n_examples - at) n = spec->n_examples - at;
        shmt_strata_order(spec, epoch, at, n, out + at);
    }
}

static void every_example_once(const uint32_t *order, uint64_t n) {
    static uint8_t seen[MOST];
    memset(seen, 0, sizeof seen);
    for (uint64_t i = 0; i < n; i++) {
        assert_true(order[i] < n);
        assert_int_equal(seen[order[i]]++, 0);
    }
}

static void strata_cover_the_data(const struct shmt_spec *spec) {
    struct shmt_stratum s;
    uint64_t next = 0;
    for (uint32_t i = 0; i < shmt_strata_count(spec); i++) {
        shmt_strata_at(spec, i, &s);
        assert_int_equal(s.first, next);
        assert_true(s.node < (spec->placement.n_nodes ? spec->placement.n_nodes : 1));
        next += s.n;
    }
    assert_int_equal(next, spec->n_examples);
}

static void an_epoch_has_every_example_once_in_every_mode(void **state) {
    (void)state;
    static uint32_t first[MOST], again[MOST], other[MOST];
    struct dice d = {.seed = 31};
    uint64_t different = 0, all = 0;
    for (int round = 0; round < 400; round++) {
        struct shmt_spec *spec = any_spec(&d, round % 2);
        strata_cover_the_data(spec);
        order_of(spec, 0, &d, first);
        order_of(spec, 0, &d, again);
        order_of(spec, 1, &d, other);
        every_example_once(first, spec->n_examples);
        every_example_once(other, spec->n_examples);
        assert_memory_equal(first, again, spec->n_examples * sizeof *first); /* however it is asked for */
        for (uint64_t i = 0; i < spec->n_examples; i++) different += first[i] != other[i];
        all += spec->n_examples;
        spec->order.shuffle = false;
        order_of(spec, 0, &d, first);
        for (uint64_t i = 0; i < spec->n_examples; i++) assert_int_equal(first[i], i);
    }
    assert_true(different > all / 10 * 9);
}

/* ---- live modes ---- */

/* Where the ledger's region of a seat begins, in places. */
static uint64_t region_place(const struct shmt_spec *spec, uint32_t region) {
    const uint64_t place = shmt_spec_pieces(spec) * region / spec->n_seats * spec->item;
    return place < spec->n_examples ? place : spec->n_examples;
}

static void live_seats_begin_in_the_stratum_of_their_node(void **state) {
    (void)state;
    static uint32_t order[MOST];
    struct dice d = {.seed = 32};
    for (int round = 0; round < 300; round++) {
        const struct shmt_spec *spec = any_spec(&d, true);
        uint32_t taken = 0, node_before = 0;
        uint8_t node_of_region[16];
        assert_int_equal(shmt_strata_count(spec), spec->placement.n_nodes ? spec->placement.n_nodes : 1);
        order_of(spec, 2, &d, order);
        for (uint32_t seat = 0; seat < spec->n_seats; seat++) {
            const uint32_t region = shmt_strata_region(spec, seat);
            struct shmt_stratum s;
            assert_true(region < spec->n_seats && !(taken >> region & 1));
            taken |= 1u << region;
            node_of_region[region] = spec->placement.seat_node[seat];
            shmt_strata_at(spec, spec->placement.seat_node[seat], &s);
            for (uint64_t at = region_place(spec, region); at < region_place(spec, region + 1); at++)
                assert_true(order[at] >= s.first && order[at] < s.first + s.n);
        }
        for (uint32_t region = 0; region < spec->n_seats; region++) { /* seats of a node are neighbours */
            assert_true(node_of_region[region] >= node_before);
            node_before = node_of_region[region];
        }
    }
}

/* ---- aggregate ---- */

static void chunks_take_their_examples_from_their_stratum(void **state) {
    (void)state;
    static uint32_t order[MOST];
    struct dice d = {.seed = 33};
    for (int round = 0; round < 300; round++) {
        const struct shmt_spec *spec = any_spec(&d, false);
        assert_int_equal(shmt_strata_count(spec), spec->n_chunks);
        order_of(spec, 1, &d, order);
        for (uint64_t step = 0; step < shmt_spec_steps(spec); step++)
            for (uint32_t chunk = 0; chunk < spec->n_chunks; chunk++) {
                struct shmt_stratum s;
                uint64_t from, to;
                shmt_strata_at(spec, chunk, &s);
                shmt_chunk_examples(spec->batch, spec->n_chunks, chunk, shmt_spec_examples_of_step(spec, step), &from, &to);
                for (uint64_t i = step * spec->batch + from; i < step * spec->batch + to; i++)
                    assert_true(order[i] >= s.first && order[i] < s.first + s.n);
            }
    }
}

/* The bits of `sync` must not depend on the machine. */
static void the_order_of_batches_depends_on_the_configuration_alone(void **state) {
    (void)state;
    static uint32_t here[MOST], there[MOST];
    struct dice d = {.seed = 34};
    for (int round = 0; round < 100; round++) {
        struct shmt_spec *spec = any_spec(&d, false);
        order_of(spec, 1, &d, here);
        spec->n_seats = 1 + (uint32_t)roll(&d, 9);
        spec->n_guests = 0;
        spec->placement.n_nodes = 1 + (uint32_t)roll(&d, 4);
        for (uint32_t seat = 0; seat < spec->n_seats; seat++)
            spec->placement.seat_node[seat] = (uint8_t)roll(&d, spec->placement.n_nodes);
        order_of(spec, 1, &d, there);
        assert_memory_equal(here, there, spec->n_examples * sizeof *here);
    }
}

static void a_stratum_lies_with_the_seat_that_computes_its_chunk(void **state) {
    (void)state;
    struct dice d = {.seed = 35};
    for (int round = 0; round < 300; round++) {
        const struct shmt_spec *spec = any_spec(&d, false);
        const uint32_t own = spec->n_seats - spec->n_guests; /* guests are not there yet */
        for (uint32_t seat = 0; seat < own; seat++) {
            uint32_t from, to;
            shmt_chunk_share(spec->n_chunks, seat, own, &from, &to);
            for (uint32_t chunk = from; chunk < to; chunk++) {
                struct shmt_stratum s;
                shmt_strata_at(spec, chunk, &s);
                assert_int_equal(s.node, spec->placement.seat_node[seat]);
            }
        }
    }
}

/* ---- shards ---- */

/* Tables of these numbers of pages (and a row more), on so many nodes. */
static struct shmt_spec *tables_of(const uint32_t *pages, uint32_t n, uint32_t parts, uint32_t nodes, uint32_t page_bytes) {
    static struct shmt_spec spec;
    memset(&spec, 0, sizeof spec);
    spec.n_seats = spec.n_workers = 1;
    spec.n_tables = n;
    for (uint32_t t = 0; t < n; t++)
        spec.table[t] = (struct shmt_table_spec){.rows = (uint64_t)pages[t] * (page_bytes / 4) - 5, .width = 1, .name = "t"};
    spec.placement =
        (struct shmt_placement){.policy = SHMT_PLACE_BIND, .parts = parts, .n_nodes = nodes, .page_bytes = page_bytes};
    return &spec;
}

static uint64_t plan_shards(const struct shmt_spec *spec, struct shmt_flat *flat, struct shmt_shard *out, uint64_t room) {
    assert_true(shmt_shards_most(spec) <= room);
    shmt_flat_plan(spec, flat);
    const uint64_t n = shmt_shards_plan(spec, flat, out);
    assert_true(n <= shmt_shards_most(spec));
    return n;
}

static void shards_cover_the_tables_in_whole_pages(void **state) {
    (void)state;
    struct dice d = {.seed = 36};
    for (int round = 0; round < 500; round++) {
        const uint32_t page_bytes = roll(&d, 2) ? 4096 : 2 << 20, n_tables = 1 + (uint32_t)roll(&d, 4);
        uint32_t pages[4];
        for (uint32_t t = 0; t < n_tables; t++) pages[t] = 1 + (uint32_t)roll(&d, 40);
        struct shmt_spec *spec = tables_of(pages, n_tables, (uint32_t)roll(&d, 12), (uint32_t)roll(&d, 5), page_bytes);
        spec->placement.strategy = roll(&d, 2) ? SHMT_SHARDS_GREEDY : SHMT_SHARDS_ROUND_ROBIN;
        const uint64_t parts = spec->placement.parts ? spec->placement.parts : 1;
        const uint64_t page = spec->placement.n_nodes < 2 ? 32 : page_bytes / 4; /* what tables begin on */
        struct shmt_shard shard[64];
        struct shmt_flat flat;
        const uint64_t n = plan_shards(spec, &flat, shard, 64);
        uint64_t next = 0, least[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, most[4] = {0}, count[4] = {0};
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t pages_of = (shard[i].to - shard[i].from + page_bytes / 4 - 1) / (page_bytes / 4);
            const uint32_t t = shard[i].table;
            assert_int_equal(shard[i].from, next);
            assert_true(shard[i].to > shard[i].from && shard[i].from % page == 0);
            assert_true(shard[i].node < (spec->placement.n_nodes ? spec->placement.n_nodes : 1));
            if (count[t]++ == 0) assert_int_equal(shard[i].from, flat.start[t]);
            least[t] = pages_of < least[t] ? pages_of : least[t];
            most[t] = pages_of > most[t] ? pages_of : most[t];
            next = shard[i].to;
        }
        assert_int_equal(next, flat.n);
        for (uint32_t t = 0; t < n_tables; t++) { /* as even as pages allow, and fewer shards where there are fewer pages */
            assert_true(most[t] - least[t] <= 1);
            assert_int_equal(count[t], parts < pages[t] ? parts : pages[t]);
        }
    }
}

static void shards_go_round_robin_or_to_the_node_with_the_fewest_bytes(void **state) {
    (void)state;
    static const uint32_t pages[] = {10, 1, 1, 2, 1};
    static const uint32_t turns[] = {0, 1, 0, 1, 0}, greedy[] = {0, 1, 1, 1, 1};
    struct shmt_spec *spec = tables_of(pages, 5, 1, 2, 4096);
    struct shmt_shard shard[8];
    struct shmt_flat flat;
    assert_int_equal(plan_shards(spec, &flat, shard, 8), 5);
    for (int i = 0; i < 5; i++) assert_int_equal(shard[i].node, turns[i]);
    spec->placement.strategy = SHMT_SHARDS_GREEDY;
    assert_int_equal(plan_shards(spec, &flat, shard, 8), 5);
    for (int i = 0; i < 5; i++) assert_int_equal(shard[i].node, greedy[i]);
}

static void greedy_shards_differ_by_no_more_than_one_shard(void **state) {
    (void)state;
    struct dice d = {.seed = 37};
    for (int round = 0; round < 200; round++) {
        uint32_t pages[4];
        for (uint32_t t = 0; t < 4; t++) pages[t] = 1 + (uint32_t)roll(&d, 100);
        struct shmt_spec *spec = tables_of(pages, 4, 1 + (uint32_t)roll(&d, 8), 1 + (uint32_t)roll(&d, 4), 4096);
        struct shmt_shard shard[32];
        struct shmt_flat flat;
        uint64_t load[4] = {0}, largest = 0, low = UINT64_MAX, high = 0;
        spec->placement.strategy = SHMT_SHARDS_GREEDY;
        const uint64_t n = plan_shards(spec, &flat, shard, 32);
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t floats = shard[i].to - shard[i].from;
            load[shard[i].node] += floats;
            largest = floats > largest ? floats : largest;
        }
        for (uint32_t node = 0; node < spec->placement.n_nodes; node++) {
            low = load[node] < low ? load[node] : low;
            high = load[node] > high ? load[node] : high;
        }
        assert_true(high - low <= largest);
    }
}

/* So that who goes on from another run's checkpoint knows whether its places are the same. */
static void the_order_follows_the_seats_only_where_that_is_said(void **state) {
    struct dice d = {.seed = 77};
    uint32_t follow = 0, moved = 0;
    (void)state;
    for (int i = 0; i < 300; i++) {
        static uint32_t before[MOST], after[MOST];
        struct shmt_spec *spec = any_spec(&d, i % 3 > 0);
        spec->order.shuffle = i % 5 > 0;
        order_of(spec, 1, &d, before);
        const bool follows = shmt_strata_follow_seats(spec);
        spec->n_seats++;
        order_of(spec, 1, &d, after);
        const bool same = memcmp(before, after, spec->n_examples * sizeof *before) == 0;
        assert_true(same || follows);
        follow += follows;
        moved += !same;
    }
    assert_true(follow > 50 && moved > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_epoch_has_every_example_once_in_every_mode),
        cmocka_unit_test(live_seats_begin_in_the_stratum_of_their_node),
        cmocka_unit_test(chunks_take_their_examples_from_their_stratum),
        cmocka_unit_test(the_order_of_batches_depends_on_the_configuration_alone),
        cmocka_unit_test(the_order_follows_the_seats_only_where_that_is_said),
        cmocka_unit_test(a_stratum_lies_with_the_seat_that_computes_its_chunk),
        cmocka_unit_test(shards_cover_the_tables_in_whole_pages),
        cmocka_unit_test(shards_go_round_robin_or_to_the_node_with_the_fewest_bytes),
        cmocka_unit_test(greedy_shards_differ_by_no_more_than_one_shard),
    };
    return cmocka_run_group_tests_name("strata", tests, NULL, NULL);
}
