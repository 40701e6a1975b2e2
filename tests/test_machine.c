/* Tests of api's decisions about the machine, and of where loaded data shall lie: for machines of HWLOC_SYNTHETIC with
 * figures in folders that stand for /. What the kernel would refuse is refused by the wrapped calls below. Plans as users
 * see them are in test_plan.c. */
#include "loading/load_place.h"
#include "workers/machine.h"
#include "backends/plain.h"
#include "backends/shm/shm.h"
#include "consistency/mode.h"

#include "fake_root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static struct {
    int no_threads, no_memory; /* binding of these is refused */
    char notes[2048];
} sys;

int __real_shmt_topo_may_bind(const struct shmt_topo *topo, struct shmt_error *e);
int __wrap_shmt_topo_may_bind(const struct shmt_topo *topo, struct shmt_error *e);
int __wrap_shmt_topo_may_bind(const struct shmt_topo *topo, struct shmt_error *e) {
    return sys.no_threads ? shmt_fail(e, SHMTRAIN_E_SYSTEM, "no threads today") : __real_shmt_topo_may_bind(topo, e);
}

int __real_shmt_topo_may_place(const struct shmt_topo *topo, const uint32_t *node, uint32_t n_nodes, struct shmt_error *e);
int __wrap_shmt_topo_may_place(const struct shmt_topo *topo, const uint32_t *node, uint32_t n_nodes, struct shmt_error *e);
int __wrap_shmt_topo_may_place(const struct shmt_topo *topo, const uint32_t *node, uint32_t n_nodes, struct shmt_error *e) {
    return sys.no_memory ? shmt_fail(e, SHMTRAIN_E_SYSTEM, "no memory today")
                         : __real_shmt_topo_may_place(topo, node, n_nodes, e);
}

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(sys.notes);
    snprintf(sys.notes + used, sizeof sys.notes - used, "%s\n", line);
}

static const struct shmt_log LOG = {.line = note};
static struct shmt_config config;
static struct shmt_topo *topo;
static struct shmt_machine machine;

static void put_huge(const struct fake_root *root, unsigned node, unsigned n) {
    char path[128], text[32];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepages", node);
    snprintf(text, sizeof text, "%u\n", n);
    fake_root_put(root, path, text);
}

static int setup(void **state) {
    memset(&sys, 0, sizeof sys);
    topo = NULL;
    memset(&machine, 0, sizeof machine);
    return fake_root_setup(state) != 0 || shmt_config_init(&config, NULL) != 0;
}

static int teardown(void **state) {
    shmt_machine_free(&machine);
    shmt_topo_close(topo);
    shmt_config_fini(&config);
    return fake_root_teardown(state);
}

static void set(const char *name, const char *value) {
    struct shmt_error e = {0};
    if (shmt_config_set(&config, name, name, value, &e) != 0) fail_msg("%s", e.text);
}

/* Two nodes of four cores. */
static void decide(const struct fake_root *root, uint32_t workers, uint32_t threads, uint32_t seats) {
    struct shmt_error e = {0};
    shmt_machine_free(&machine);
    shmt_topo_close(topo);
    setenv("HWLOC_SYNTHETIC", "numa:2(memory=1GiB) core:4 pu:1", 1);
    int rc = shmt_topo_open_at(root->path, &topo, &e);
    unsetenv("HWLOC_SYNTHETIC");
    if (rc == 0) rc = shmt_machine_make(&config, topo, workers, 0, threads, seats, &LOG, &machine, &e);
    if (rc != 0) fail_msg("%s", e.text);
}

/* A spec of one table, in `aggregate` or live. */
static struct shmt_spec spec_of(uint64_t rows, uint32_t seats, bool live) {
    struct shmt_spec spec = {.n_seats = seats,
                             .n_workers = seats,
                             .n_examples = 10000,
                             .epochs = 1,
                             .max_steps = SHMT_NO_LIMIT,
                             .batch = 64,
                             .n_chunks = 8,
                             .item = 100,
                             .order = {.seed = 1, .n_examples = 10000, .shuffle = true},
                             .rate = {.base = 1},
                             .n_tables = 1,
                             .table = {{.name = "w", .rows = rows, .width = 1}},
                             .l2_rows = {rows},
                             .board_bytes = 4096};
    struct shmt_error e = {0};
    if (shmt_mode_parse("mode", live ? "async" : "sync", &spec.policy, &e) != 0) fail_msg("%s", e.text);
    return spec;
}

static void settle(const struct shmt_backend *backend, struct shmt_spec *spec) {
    struct shmt_error e = {0};
    if (shmt_machine_settle(&machine, backend, spec, &e) != 0) fail_msg("%s", e.text);
}

/* ---- decisions ---- */

static void seats_know_their_nodes_also_with_several_threads(void **state) {
    decide(*state, 4, 2, 8); /* a seat for each thread */
    for (uint32_t seat = 0; seat < 8; seat++) assert_int_equal(machine.placement.seat_node[seat], seat / 2 % 2);
    assert_int_equal(machine.threads_per_seat, 1);
    decide(*state, 4, 2, 4); /* one for each worker */
    for (uint32_t seat = 0; seat < 4; seat++) assert_int_equal(machine.placement.seat_node[seat], seat % 2);
    assert_int_equal(machine.threads_per_seat, 2);
}

static void a_refusal_of_memory_is_told_and_nothing_is_placed(void **state) {
    sys.no_memory = 1;
    set("numa", "bind");
    decide(*state, 4, 1, 4);
    assert_int_equal(machine.placement.policy, SHMT_PLACE_OFF);
    assert_int_equal(machine.placement.n_nodes, 1);
    assert_int_equal(machine.bind, SHMT_BIND_CORE); /* threads are another matter */
    for (uint32_t seat = 0; seat < 4; seat++) assert_int_equal(machine.placement.seat_node[seat], 0);
    assert_string_equal(sys.notes, "no memory today\n");
    set("numa", "off"); /* who does not want it is not asked */
    sys.notes[0] = '\0';
    decide(*state, 4, 1, 4);
    assert_string_equal(sys.notes, "");
}

static void a_refusal_of_threads_leaves_nobody_at_home(void **state) {
    sys.no_threads = 1;
    decide(*state, 4, 1, 4);
    assert_int_equal(machine.bind, SHMT_BIND_NONE);
    assert_int_equal(machine.placement.policy, SHMT_PLACE_INTERLEAVE);
    assert_int_equal(machine.placement.private_local, 0);
    assert_string_equal(sys.notes, "no threads today\n");
    set("bind", "none");
    sys.notes[0] = '\0';
    decide(*state, 4, 1, 4);
    assert_string_equal(sys.notes, "");
}

static void processors_whose_memory_is_forbidden_use_another_nodes(void **state) {
    fake_root_put(*state, "/proc/self/status", "Mems_allowed_list:\t1\n");
    decide(*state, 4, 1, 4); /* workers on both nodes */
    assert_int_equal(machine.placement.n_nodes, 1);
    assert_int_equal(machine.placement.node[0], 1);
    assert_int_equal(machine.placement.policy, SHMT_PLACE_BIND);
    for (uint32_t seat = 0; seat < 4; seat++) assert_int_equal(machine.placement.seat_node[seat], 0);
    decide(*state, 1, 1, 1); /* and on the forbidden one only */
    assert_int_equal(machine.place[0].node, 0);
    assert_int_equal(machine.placement.node[0], 1);
}

static void memory_of_one_process_is_not_placed(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 1, true);
    settle(&SHMT_BACKEND_PLAIN, &spec);
    assert_int_equal(spec.placement.policy, SHMT_PLACE_OFF);
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.policy, SHMT_PLACE_INTERLEAVE);
}

/* ---- pages ---- */

static void huge_pages_are_given_once(void **state) {
    put_huge(*state, 0, 20);
    put_huge(*state, 1, 20);
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(4 * MIB, 2, true); /* 16 MiB and a little */
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.page_bytes, SHMT_HUGE_BYTES);
    assert_int_equal(spec.placement.transparent, 0);
    assert_int_equal(shmt_machine_pages(&machine, 40 * MIB, "data"), SHMT_PAGES_2M);
    assert_int_equal(shmt_machine_pages(&machine, 40 * MIB, "data"), SHMT_PAGES_ORDINARY);
    assert_string_equal(sys.notes, "");
}

static void a_lack_of_them_is_told_once(void **state) {
    set("hugepages", "2M");
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(4 * MIB, 2, true);
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.page_bytes, 4096);
    assert_int_equal(shmt_machine_pages(&machine, 40 * MIB, "data"), SHMT_PAGES_ORDINARY);
    assert_non_null(strstr(sys.notes, "node 0 has 0 free huge pages of 2 MiB and the store would take "));
    assert_ptr_equal(strchr(sys.notes, '\n') + 1, sys.notes + strlen(sys.notes));
}

static void many_small_parts_are_not_worth_huge_pages(void **state) {
    put_huge(*state, 0, 2000);
    put_huge(*state, 1, 2000);
    decide(*state, 8, 1, 8);
    struct shmt_spec spec = spec_of(100000, 8, false); /* a gradient of 400 KB for each seat */
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.page_bytes, 4096);
    set("hugepages", "2M"); /* but who wants them has them */
    decide(*state, 8, 1, 8);
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.page_bytes, SHMT_HUGE_BYTES);
}

static void transparent_ones_align_the_store_and_are_not_reserved(void **state) {
    fake_root_put(*state, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always within_size [advise] never\n");
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(16 * MIB, 2, true);
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(spec.placement.page_bytes, SHMT_HUGE_BYTES);
    assert_int_equal(spec.placement.transparent, 1);
    assert_int_equal(machine.huge_bytes, 0);
}

/* ---- data ---- */

/* 10000 examples in two parts: the first 4000 with 10 nonzeros each, the others with 1. */
static struct shmt_part parts[2];
static struct shmt_load load_of(bool dense) {
    parts[0] = (struct shmt_part){.n_examples = 4000, .n_nonzeros = 40000};
    parts[1] = (struct shmt_part){.n_examples = 6000, .n_nonzeros = 6000};
    struct shmt_load load = {.dense = dense, .part = parts, .n_parts = 2};
    load.totals.n_examples = 10000;
    load.totals.n_nonzeros = 46000;
    load.columns.n_features = 7;
    load.start_off = 0;
    load.id_off = 1 * MIB;
    load.value_off = 2 * MIB;
    load.dense_off = 3 * MIB;
    load.label_off = 4 * MIB;
    return load;
}

static uint32_t ranges_of(const struct shmt_load *load, const struct shmt_readers *readers, struct shmt_memory_range **out) {
    struct shmt_error e = {0};
    uint32_t n = 0;
    if (shmt_load_ranges(load, readers, out, &n, &e) != 0) fail_msg("%s", e.text);
    return n;
}

static void data_lies_with_its_readers(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 2, true);
    settle(&SHMT_BACKEND_SHM, &spec);
    const struct shmt_load load = load_of(false);
    const struct shmt_readers readers = {&spec.placement, &spec, NULL};
    struct shmt_memory_range *range;
    assert_int_equal(ranges_of(&load, &readers, &range), 8); /* two nodes, four arrays */
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(range[i].policy, SHMT_MEMORY_BIND);
        assert_int_equal(range[i].node[0], i % 2);
    }
    /* Node 0 reads examples 0 .. 4999: 40000 nonzeros of the first part, and 1000 of the second. */
    assert_int_equal(range[0].off, load.start_off);
    assert_int_equal(range[0].bytes, 5000 * sizeof(uint64_t));
    assert_int_equal(range[1].off, load.start_off + range[0].bytes);
    assert_int_equal(range[2].off, load.id_off);
    assert_int_equal(range[2].bytes, 41000 * sizeof(uint32_t));
    assert_int_equal(range[3].off + range[3].bytes, load.id_off + 46000 * sizeof(uint32_t));
    assert_int_equal(range[4].off, load.value_off);
    assert_int_equal(range[6].bytes, 5000 * sizeof(float));
    assert_int_equal(range[7].off + range[7].bytes, load.label_off + 10000 * sizeof(float));
    free(range);
}

static void dense_rows_lie_with_their_readers(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 2, true);
    settle(&SHMT_BACKEND_SHM, &spec);
    const struct shmt_load load = load_of(true);
    const struct shmt_readers readers = {&spec.placement, &spec, NULL};
    struct shmt_memory_range *range;
    assert_int_equal(ranges_of(&load, &readers, &range), 4);
    assert_int_equal(range[0].off, load.dense_off);
    assert_int_equal(range[0].bytes, 5000 * 7 * sizeof(float));
    assert_int_equal(range[1].node[0], 1);
    free(range);
}

static void of_a_share_of_the_data_the_places_are_those_in_the_file(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 2, true);
    spec.n_examples = spec.order.n_examples = 5000;
    settle(&SHMT_BACKEND_SHM, &spec);
    static uint32_t every_second[5000];
    for (uint32_t i = 0; i < 5000; i++) every_second[i] = 2 * i + 1;
    const struct shmt_load load = load_of(false);
    const struct shmt_readers readers = {&spec.placement, &spec, every_second};
    struct shmt_stretch *stretch;
    uint32_t n;
    assert_int_equal(shmt_load_stretches(&load, &readers, &stretch, &n, NULL), 0);
    assert_int_equal(n, 2);
    assert_int_equal(stretch[0].from, 0);
    assert_int_equal(stretch[0].to, 2 * 2500 + 1); /* where the second stratum's first example stands */
    assert_int_equal(stretch[1].from, stretch[0].to);
    assert_int_equal(stretch[1].to, 10000);
    assert_int_equal(shmt_load_stretch_bytes(&load, &stretch[0]) + shmt_load_stretch_bytes(&load, &stretch[1]),
                     10000 * (sizeof(uint64_t) + sizeof(float)) + 46000 * (sizeof(uint32_t) + sizeof(float)));
    free(stretch);
}

static void chunks_of_batches_make_stretches_of_their_seats_nodes(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 2, false); /* 8 chunks: seat 0 has four of them, seat 1 the others */
    settle(&SHMT_BACKEND_SHM, &spec);
    const struct shmt_load load = load_of(false);
    const struct shmt_readers readers = {&spec.placement, &spec, NULL};
    struct shmt_stretch *stretch;
    uint32_t n;
    assert_int_equal(shmt_load_stretches(&load, &readers, &stretch, &n, NULL), 0);
    assert_int_equal(n, 2); /* neighbours of one node are one */
    assert_int_equal(stretch[0].node, 0);
    assert_true(stretch[0].to > 4990 && stretch[0].to < 5010);
    free(stretch);
    spec.order.shuffle = false; /* then batches are consecutive examples, and everybody reads all over the data */
    assert_int_equal(shmt_load_stretches(&load, &readers, &stretch, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(stretch[0].node, -1);
    free(stretch);
}

static void data_that_all_read_is_spread_and_off_leaves_it_alone(void **state) {
    decide(*state, 2, 1, 2);
    struct shmt_spec spec = spec_of(1000, 2, true);
    settle(&SHMT_BACKEND_SHM, &spec);
    struct shmt_load load = load_of(false);
    load.totals.all_ones = true; /* no values */
    const struct shmt_readers all = {.placement = &spec.placement};
    struct shmt_memory_range *range;
    assert_int_equal(ranges_of(&load, &all, &range), 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(range[i].policy, SHMT_MEMORY_INTERLEAVE);
        assert_int_equal(range[i].n_nodes, 2);
    }
    free(range);
    set("numa", "off");
    decide(*state, 2, 1, 2);
    settle(&SHMT_BACKEND_SHM, &spec);
    assert_int_equal(ranges_of(&load, &all, &range), 0);
    assert_null(range);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_ROOT(seats_know_their_nodes_also_with_several_threads),
        WITH_ROOT(a_refusal_of_memory_is_told_and_nothing_is_placed),
        WITH_ROOT(a_refusal_of_threads_leaves_nobody_at_home),
        WITH_ROOT(processors_whose_memory_is_forbidden_use_another_nodes),
        WITH_ROOT(memory_of_one_process_is_not_placed),
        WITH_ROOT(huge_pages_are_given_once),
        WITH_ROOT(a_lack_of_them_is_told_once),
        WITH_ROOT(many_small_parts_are_not_worth_huge_pages),
        WITH_ROOT(transparent_ones_align_the_store_and_are_not_reserved),
        WITH_ROOT(data_lies_with_its_readers),
        WITH_ROOT(dense_rows_lie_with_their_readers),
        WITH_ROOT(of_a_share_of_the_data_the_places_are_those_in_the_file),
        WITH_ROOT(chunks_of_batches_make_stretches_of_their_seats_nodes),
        WITH_ROOT(data_that_all_read_is_spread_and_off_leaves_it_alone),
    };
    alarm(60);
    return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
