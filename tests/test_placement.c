/* Which range of a segment is asked to lie on which NUMA node. That memory does lie there is shown where there are nodes: see
 * tests/numa. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "backends/shm/shm_priv.h"
#include "ps/shards.h"

enum { SEATS = 4, FIRST = 5, SECOND = 3, MOST_SHARDS = 64 }; /* nodes by the system's numbers, which need not be in order */

/* Seats 0 and 2 are on the first node, 1 and 3 on the second. */
static struct shmt_spec spec_of(enum shmt_placing policy, bool private_local) {
    struct shmt_spec spec = {.n_seats = SEATS,
                             .n_workers = SEATS,
                             .n_examples = 6400,
                             .epochs = 1,
                             .max_steps = SHMT_NO_LIMIT,
                             .policy = {.write = SHMT_WRITE_AGGREGATE},
                             .batch = 64,
                             .n_chunks = 8,
                             .item = 16,
                             .order = {.n_examples = 6400},
                             .rate = {.base = 1},
                             .n_tables = 2,
                             .board_bytes = 4096};
    spec.table[0] = (struct shmt_table_spec){.name = "a", .rows = 50000, .width = 1};
    spec.table[1] = (struct shmt_table_spec){.name = "b", .rows = 3000, .width = 4};
    spec.l2_rows[0] = 50000;
    spec.l2_rows[1] = 3000;
    spec.placement = (struct shmt_placement){
        .policy = policy, .private_local = private_local, .parts = 3, .n_nodes = 2, .node = {FIRST, SECOND}};
    for (uint32_t seat = 0; seat < SEATS; seat++) spec.placement.seat_node[seat] = seat % 2;
    return spec;
}

static struct shmt_spec replicas_of(bool private_local) {
    struct shmt_spec spec = spec_of(SHMT_PLACE_INTERLEAVE, private_local);
    spec.policy = (struct shmt_policy){.write = SHMT_WRITE_RACY,
                                       .staleness = SHMT_STALENESS_INF,
                                       .replicas = SHMT_REPLICAS_WORKER,
                                       .merge_every = 1,
                                       .merge = SHMT_MERGE_MEAN};
    return spec;
}

struct plan {
    struct shmt_shm_layout layout;
    struct shmt_memory_range *range;
    uint32_t n;
};

static void make_plan(struct plan *p, const struct shmt_spec *spec) {
    struct shmt_error e = {0};
    if (shmt_shm_layout_plan(spec, &p->layout, &e) != 0 || shmt_shm_ranges_make(spec, &p->layout, &p->range, &p->n, &e) != 0)
        fail_msg("%s", e.text);
    for (uint32_t i = 0; i < p->n; i++) {
        assert_true(p->range[i].bytes > 0 && p->range[i].off + p->range[i].bytes <= p->layout.bytes);
        for (uint32_t k = 0; k < i; k++)
            assert_true(p->range[k].off + p->range[k].bytes <= p->range[i].off ||
                        p->range[i].off + p->range[i].bytes <= p->range[k].off);
    }
}

/* The one that this byte is in, or NULL. */
static const struct shmt_memory_range *range_at(const struct plan *p, uint64_t off) {
    for (uint32_t i = 0; i < p->n; i++)
        if (off - p->range[i].off < p->range[i].bytes) return &p->range[i];
    return NULL;
}

static void assert_on(const struct plan *p, uint64_t off, uint64_t bytes, uint32_t node) {
    for (uint64_t at = off; at < off + bytes;) {
        const struct shmt_memory_range *range = range_at(p, at);
        assert_non_null(range);
        assert_int_equal(range->policy, SHMT_MEMORY_BIND);
        assert_int_equal(range->n_nodes, 1);
        assert_int_equal(range->node[0], node);
        at = range->off + range->bytes;
    }
}

static void assert_on_all(const struct plan *p, uint64_t off, uint64_t bytes) {
    const struct shmt_memory_range *range = range_at(p, off);
    assert_non_null(range);
    assert_true(range->off <= off && range->off + range->bytes >= off + bytes);
    assert_int_equal(range->policy, SHMT_MEMORY_INTERLEAVE);
    assert_int_equal(range->n_nodes, 2);
    assert_int_equal(range->node[0], FIRST);
    assert_int_equal(range->node[1], SECOND);
}

static void each_shard_lies_on_its_node(void **state) {
    static const uint32_t NODES[] = {FIRST, SECOND};
    const struct shmt_spec spec = spec_of(SHMT_PLACE_BIND, true);
    struct shmt_shard shard[MOST_SHARDS];
    uint32_t on[2] = {0, 0};
    struct plan p;
    (void)state;
    make_plan(&p, &spec);
    assert_true(shmt_shards_most(&spec) <= MOST_SHARDS);
    const uint64_t n = shmt_shards_plan(&spec, &p.layout.flat, shard);
    assert_int_equal(n, 6);
    for (uint64_t i = 0; i < n; i++) {
        assert_on(&p, p.layout.weight.off + shard[i].from * sizeof(float), (shard[i].to - shard[i].from) * sizeof(float),
                  NODES[shard[i].node]);
        on[shard[i].node]++;
    }
    assert_true(on[0] == 3 && on[1] == 3);
    free(p.range);
}

static void what_one_seat_writes_lies_on_its_node(void **state) {
    const struct shmt_spec spec = spec_of(SHMT_PLACE_INTERLEAVE, true);
    struct plan p;
    (void)state;
    make_plan(&p, &spec);
    const struct shmt_shm_layout *l = &p.layout;
    assert_on_all(&p, l->weight.off, l->flat.n * sizeof(float));
    for (uint32_t seat = 0; seat < SEATS; seat++) {
        const uint32_t node = seat % 2 ? SECOND : FIRST;
        assert_on(&p, l->grad.off + seat * l->grad.each, l->grad.each, node);
        assert_on(&p, l->map.off + seat * l->map.each, l->map.each, node);
    }
    free(p.range);
}

static void it_lies_on_all_nodes_where_that_is_asked_for(void **state) {
    struct shmt_spec spec = spec_of(SHMT_PLACE_INTERLEAVE, false);
    struct plan p;
    (void)state;
    make_plan(&p, &spec);
    assert_on_all(&p, p.layout.grad.off, SEATS * p.layout.grad.each);
    free(p.range);
    spec = replicas_of(false);
    make_plan(&p, &spec);
    assert_on_all(&p, p.layout.replica.off, SEATS * p.layout.replica.each);
    free(p.range);
}

static void a_replica_lies_with_its_seats(void **state) {
    const struct shmt_spec spec = replicas_of(true);
    struct plan p;
    (void)state;
    make_plan(&p, &spec);
    assert_int_equal(p.layout.n_replicas, SEATS);
    for (uint32_t i = 0; i < SEATS; i++)
        assert_on(&p, p.layout.replica.off + i * p.layout.replica.each, p.layout.replica.each, i % 2 ? SECOND : FIRST);
    free(p.range);
}

static void nothing_is_asked_for_where_there_is_nothing_to_choose(void **state) {
    struct shmt_spec off = spec_of(SHMT_PLACE_OFF, true), one = spec_of(SHMT_PLACE_BIND, true);
    struct plan p;
    (void)state;
    make_plan(&p, &off);
    assert_int_equal(p.n, 0);
    assert_null(p.range);
    one.placement.n_nodes = 0;
    make_plan(&p, &one);
    assert_int_equal(p.n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_shard_lies_on_its_node),
        cmocka_unit_test(what_one_seat_writes_lies_on_its_node),
        cmocka_unit_test(it_lies_on_all_nodes_where_that_is_asked_for),
        cmocka_unit_test(a_replica_lies_with_its_seats),
        cmocka_unit_test(nothing_is_asked_for_where_there_is_nothing_to_choose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
