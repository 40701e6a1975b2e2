/* Tests of shmtrain_store_plan: plans for machines that we do not have (HWLOC_SYNTHETIC: 4 nodes, 16 cores, 2 threads), as an
 * application gets them; their texts are in test_plan_text.c. That a run does what its plan says is shown by tests/numa. */
#include "plan_help.h"

#include <sched.h>
#include <sys/wait.h>

/* ---- workers ---- */

static void workers_are_spread_over_nodes_and_cores(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, NULL);
    assert_string_equal(plan->machine, "HWLOC_SYNTHETIC");
    assert_string_equal(plan->numa, "interleave");
    assert_string_equal(plan->bind, "core");
    assert_string_equal(plan->data, "");
    assert_int_equal(plan->n_places, 8);
    assert_int_equal(plan->n_shards + plan->n_parts, 0);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(plan->place[i].worker, i);
        assert_int_equal(plan->place[i].node, i % 4);
        assert_int_equal(plan->place[i].core, 16 * (i % 4) + i / 4);
        assert_int_equal(plan->place[i].cpu, 2 * plan->place[i].core); /* as HWLOC_SYNTHETIC counts */
        assert_int_equal(plan->place[i].shared, 0);
    }
    assert_int_equal(plan->n_nodes, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(plan->node[i].cores, 16);
        assert_int_equal(plan->node[i].cpus, 32);
        assert_int_equal(plan->node[i].memory_bytes, 4 * GIB);
        assert_int_equal(plan->node[i].usable, 1);
        assert_int_equal(plan->node[i].need_bytes, 0);
    }
    shmtrain_store_destroy(store);
}

static void by_default_there_is_a_worker_for_each_core(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("bind", "core"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, NULL);
    assert_int_equal(plan->n_workers, 64);
    for (uint32_t i = 0; i < 64; i++)
        for (uint32_t k = 0; k < i; k++) assert_int_not_equal(plan->place[i].core, plan->place[k].core);
    shmtrain_store_destroy(store);
}

static void threads_of_a_worker_stay_on_its_node(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "6", "threads", "8"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, NULL);
    assert_int_equal(plan->n_places, 48);
    for (uint32_t i = 0; i < 48; i++) {
        assert_int_equal(plan->place[i].worker, i / 8);
        assert_int_equal(plan->place[i].thread, i % 8);
        assert_int_equal(plan->place[i].node, i / 8 % 4);
    }
    assert_string_equal(plan->bind, "core");
    shmtrain_store_destroy(store);
}

static void more_workers_than_cores_are_bound_to_nodes(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "80"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, NULL);
    assert_string_equal(plan->bind, "node");
    for (uint32_t i = 0; i < 80; i++) assert_int_equal(plan->place[i].node, i % 4);
    shmtrain_store_destroy(store);
    store = store_with(OPTIONS("workers", "80"));
    plan = plan_on(store, "numa:1 core:16 pu:2", NULL); /* one node: there is nothing to bind to */
    assert_string_equal(plan->bind, "none");
    shmtrain_store_destroy(store);
    store = store_with(OPTIONS("workers", "130"));
    plan = plan_on(store, BIG, NULL);
    for (uint32_t i = 0; i < 130; i++) assert_int_equal(plan->place[i].shared, i < 2 || i >= 128);
    shmtrain_store_destroy(store);
}

static void one_may_ask_for_nodes_or_for_nothing(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "4", "bind", "node"));
    assert_string_equal(plan_on(store, BIG, NULL)->bind, "node");
    WELL(store, shmtrain_store_set(store, "bind", "none"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    assert_string_equal(plan->bind, "none");
    assert_string_equal(plan->numa, "interleave");
    assert_int_equal(plan->n_parts, 1); /* threads that wander have no node for their data */
    assert_int_equal(plan->part[0].node, -1);
    shmtrain_store_destroy(store);
}

/* 100,001 floats twice: 781 KiB, of half of a cache of 2 MiB, and of less where several run on it. */
static void copies_are_for_the_part_of_the_cache_that_a_worker_has(void **state) {
    static const struct {
        const char *machine, *workers, *threads, *reason;
    } CASES[] = {
        {"l2:4(size=2097152) core:1 pu:2", "4", "1", "fit in the second-level cache"},
        {"l2:4(size=2097152) core:1 pu:2", "8", "1",
         "half of a worker's part of the second-level cache (2.0 MiB for 2 workers)"},
        {"l2:2(size=2097152) core:4 pu:1", "2", "1", "(2.0 MiB for 2 workers)"},
        {"l2:2(size=2097152) core:4 pu:1", "2", "4", "second-level cache; the 4 threads of a worker share its copy, -w 8 -t 1"},
        {"l2:2(size=2097152) core:4 pu:1", "1", "8", "one copy: the 8 threads of the worker share it, -w 8 -t 1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct shmtrain_store *store = store_with(OPTIONS("workers", CASES[i].workers, "threads", CASES[i].threads));
        const struct shmtrain_plan *plan = plan_on(store, CASES[i].machine, SPARSE);
        if (!strstr(plan->copies_reason, CASES[i].reason)) fail_msg("case %zu: %s", i, plan->copies_reason);
        shmtrain_store_destroy(store);
    }
}

/* ---- policies ---- */

static void what_all_use_is_interleaved_and_data_is_with_its_readers(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    uint64_t examples = 0, rows = 0;
    assert_string_equal(plan->numa, "interleave");
    assert_string_equal(plan->data, SPARSE);
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        assert_int_equal(plan->shard[i].node, -1);
        assert_string_equal(plan->shard[i].table, "weight");
        assert_int_equal(plan->shard[i].first, rows);
        rows += plan->shard[i].n;
    }
    assert_int_equal(rows, 100001); /* and a bias */
    assert_int_equal(plan->n_parts, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(plan->part[i].node, i);
        assert_int_equal(plan->part[i].first, examples);
        assert_true(plan->part[i].n > 1500 && plan->part[i].n < 2500); /* in whole items */
        examples += plan->part[i].n;
    }
    assert_int_equal(examples, 8000);
    shmtrain_store_destroy(store);
}

static void off_and_one_node_leave_everything_to_the_system(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8", "numa", "off"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    assert_string_equal(plan->numa, "off");
    assert_int_equal(plan->n_parts, 1);
    assert_int_equal(plan->part[0].node, SHMTRAIN_PLAN_ANYWHERE);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(plan->node[i].need_bytes, 0); /* nobody knows */
    WELL(store, shmtrain_store_set(store, "numa", "bind"));
    plan = plan_on(store, "numa:1 core:16 pu:1", SPARSE);
    assert_string_equal(plan->numa, "off");
    assert_int_equal(plan->node[0].need_bytes, plan->total_bytes);
    shmtrain_store_destroy(store);
}

static void one_worker_has_everything_on_its_node(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "1"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    assert_string_equal(plan->numa, "bind"); /* wherever the application itself may be */
    assert_int_equal(plan->n_shards, 1);
    assert_int_equal(plan->shard[0].node, 0);
    assert_int_equal(plan->part[0].node, 0);
    assert_int_equal(plan->node[0].need_bytes, plan->total_bytes);
    for (uint32_t i = 1; i < 4; i++) assert_int_equal(plan->node[i].need_bytes, 0);
    shmtrain_store_destroy(store);
}

static void interleave_spreads_data_too(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8", "numa", "interleave", "mode", "sync"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    assert_int_equal(plan->n_parts, 1);
    assert_int_equal(plan->part[0].node, -1);
    for (uint32_t i = 1; i < 4; i++) {
        const uint64_t a = plan->node[0].need_bytes, b = plan->node[i].need_bytes;
        assert_true(a - b < 64 || b - a < 64);
    }
    shmtrain_store_destroy(store);
}

static void what_nodes_give_adds_up_to_what_is_needed(void **state) {
    (void)state;
    static const char *const NUMA[] = {"auto", "interleave", "bind"}, *const MODE[] = {"async", "sync", "local", "node"};
    for (size_t i = 0; i < 12; i++) {
        struct shmtrain_store *store =
            store_with(OPTIONS("workers", "6", "numa", NUMA[i % 3], "mode", MODE[i / 3], "optimizer", "adagrad"));
        const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
        uint64_t sum = 0;
        for (uint32_t k = 0; k < 4; k++) sum += plan->node[k].need_bytes;
        assert_true(sum <= plan->total_bytes && sum + 64 > plan->total_bytes);
        assert_int_equal(plan->total_bytes, plan->parameter_bytes + plan->state_bytes + plan->gradient_bytes +
                                                plan->other_bytes + plan->data_bytes);
        assert_int_equal(plan->state_bytes >= plan->parameter_bytes, i / 3 != 0); /* beside these: curvatures, of async */
        assert_int_equal(plan->gradient_bytes > 0, i / 3 == 1);
        assert_int_equal(plan->parameter_bytes > 1000000, i / 3 != 1); /* of 100,001 parameters: copies */
        assert_int_equal(plan->available_bytes, 16 * GIB);
        assert_string_equal(plan->limit, "memory of the machine");
        shmtrain_store_destroy(store);
    }
}

/* ---- shards ---- */

static void shards_take_the_nodes_in_turn(void **state) {
    (void)state;
    struct shmtrain_store *store =
        store_with(OPTIONS("workers", "8", "numa", "bind", "shards", "6", "optimizer", "adagrad", "replicas", "one"));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    uint64_t rows = 0, bytes = 0;
    assert_int_equal(plan->n_shards, 6);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(plan->shard[i].node, i % 4);
        assert_int_equal(plan->shard[i].first, rows);
        assert_int_equal(plan->shard[i].first * sizeof(float) % 4096, 0); /* whole pages */
        rows += plan->shard[i].n;
        bytes += plan->shard[i].bytes;
    }
    assert_int_equal(rows, 100001);
    assert_int_equal(bytes, plan->parameter_bytes + plan->state_bytes);
    shmtrain_store_destroy(store);
}

static uint64_t most_on_a_node(const struct shmtrain_plan *plan) {
    uint64_t on[4] = {0}, most = 0;
    for (uint32_t i = 0; i < plan->n_shards; i++) on[plan->shard[i].node] += plan->shard[i].bytes;
    for (uint32_t k = 0; k < 4; k++) most = on[k] > most ? on[k] : most;
    return most;
}

/* A model with tables of uneven size: in turn, the large ones meet on the same node. */
static uint32_t uneven_tables(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                              struct shmtrain_shape *out) {
    (void)state;
    static const uint64_t ROWS[] = {900000, 1000, 1000, 1000, 500000, 400000};
    static const char *const NAME[] = {"a", "b", "c", "d", "e", "f"};
    (void)data, (void)with;
    for (uint32_t t = 0; t < 6; t++)
        out[t] = (struct shmtrain_shape){.name = NAME[t], .rows = ROWS[t], .width = 1, .l2_rows = ROWS[t]};
    return 6;
}

/* A plan runs no step. */
static int no_step(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch,
                   double *loss_out) {
    (void)s, (void)batch, (void)pass->with, (void)loss_out;
    return SHMTRAIN_E_USAGE;
}

static int no_score(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                    double *loss_out) {
    (void)score_out;
    return no_step(s, pass, batch, loss_out);
}

static const struct shmtrain_model UNEVEN = {.size = sizeof(struct shmtrain_model),
                                             .name = "uneven",
                                             .about = "tables of uneven size",
                                             .task = SHMTRAIN_BINARY,
                                             .loss = "nothing",
                                             .tables = uneven_tables,
                                             .step = no_step,
                                             .score = no_score};

static void greedy_shards_go_where_the_fewest_bytes_are(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8", "numa", "bind", "shards", "1", "model", "uneven"));
    WELL(store, shmtrain_store_offer(store, &UNEVEN));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    const int32_t in_turn[] = {0, 1, 2, 3, 0, 1}, greedy[] = {0, 1, 2, 3, 1, 2};
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(plan->shard[i].node, in_turn[i]);
    assert_true(most_on_a_node(plan) >= 1400000 * sizeof(float));
    WELL(store, shmtrain_store_set(store, "placement", "greedy"));
    plan = plan_on(store, BIG, SPARSE);
    for (uint32_t i = 0; i < 6; i++) assert_int_equal(plan->shard[i].node, greedy[i]);
    assert_true(most_on_a_node(plan) < 910000 * sizeof(float));
    shmtrain_store_destroy(store);
}

static void tables_are_cut_into_even_parts_of_whole_pages(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "8", "numa", "bind", "shards", "3", "model", "uneven"));
    WELL(store, shmtrain_store_offer(store, &UNEVEN));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    uint32_t of_a = 0;
    for (uint32_t i = 0; i < plan->n_shards; i++) {
        if (strcmp(plan->shard[i].table, "a") != 0) continue;
        of_a++;
        assert_true(plan->shard[i].n >= 298900 && plan->shard[i].n <= 301100);
    }
    assert_int_equal(of_a, 3);
    assert_int_equal(plan->n_shards, 3 * 3 + 3); /* a table of one page is not cut */
    shmtrain_store_destroy(store);
}

/* ---- this machine ---- */

static int plans_on_one_processor(void) {
    const struct shmtrain_plan *plan;
    struct shmtrain_store *store;
    cpu_set_t set;
    int cpu = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    while (!CPU_ISSET(cpu, &set)) cpu++;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0 || shmtrain_store_create(&store) != 0) return 2;
    if (shmtrain_store_plan(store, NULL, &plan) != 0) return 3;
    if (plan->n_workers != 1 || plan->place[0].cpu != (uint32_t)cpu || plan->place[0].shared) return 4;
    if (shmtrain_store_set(store, "workers", "2") != 0 || shmtrain_store_plan(store, NULL, &plan) != 0) return 5;
    for (uint32_t i = 0; i < 2; i++)
        if (plan->place[i].cpu != (uint32_t)cpu || !plan->place[i].shared) return 6;
    shmtrain_store_destroy(store);
    return 0;
}

static void taskset_narrows_the_plan(void **state) {
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(plans_on_one_processor());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void the_plan_of_this_machine_has_its_limit(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "1"));
    const struct shmtrain_plan *plan = plan_on(store, NULL, SPARSE);
    assert_string_equal(plan->machine, "this machine");
    assert_true(plan->available_bytes > plan->total_bytes);
    assert_true(strstr(plan->limit, "memory") != NULL);
    shmtrain_store_destroy(store);
}

/* ---- what a plan leaves alone, and what it refuses ---- */

static void a_plan_changes_nothing_of_the_store(void **state) {
    (void)state;
    struct shmtrain_store *store = make("threads", "2", "2", 256);
    WELL(store, shmtrain_store_set(store, "valid", "none"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    const float before = read_one(store, 0);
    const uint64_t examples = shmtrain_store_report(store)->examples;
    const struct shmtrain_plan *first = plan_on(store, BIG, SPARSE);
    assert_int_equal(first->n_nodes, 4);
    assert_true(read_one(store, 0) == before);
    assert_int_equal(shmtrain_store_report(store)->examples, examples);
    assert_int_equal(plan_on(store, NULL, NULL)->n_shards, 0); /* the one before is gone */
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_true(read_one(store, 0) == 2 * before);
    shmtrain_store_destroy(store);
}

static void what_cannot_be_trained_cannot_be_planned(void **state) {
    (void)state;
    const struct shmtrain_plan *plan = NULL;
    struct shmtrain_store *store = store_with(OPTIONS("model", "nothing"));
    refused(store, shmtrain_store_plan(store, SPARSE, &plan), SHMTRAIN_E_USAGE, "unknown model \"nothing\"");
    WELL(store, shmtrain_store_set(store, "model", "logistic"));
    refused(store, shmtrain_store_plan(store, "/no/such/file", &plan), SHMTRAIN_E_SYSTEM, "/no/such/file");
    refused(store, shmtrain_store_plan(store, "", &plan), SHMTRAIN_E_USAGE, "the data has no name");
    assert_null(plan);
    shmtrain_store_destroy(store);
}

static void a_run_that_cannot_fit_is_planned_all_the_same(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "4", "mode", "sync", "numa", "bind"));
    const struct shmtrain_plan *plan =
        plan_on(store, "numa:4(memory=4MiB) core:2 pu:1", "builtin:sparse:examples=1000,features=3000000,nonzeros=5");
    assert_true(plan->total_bytes > plan->available_bytes);
    assert_int_equal(plan->available_bytes, 16 << 20);
    char *text = shmtrain_plan_text(plan);
    assert_non_null(strstr(text, "which is too little: this run would be refused"));
    assert_non_null(strstr(text, "too much\n"));
    free(text);
    shmtrain_store_destroy(store);
}

static uint64_t huge_workspace(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                               uint32_t n) {
    (void)data;
    (void)with;
    (void)state;
    (void)n;
    return UINT64_MAX - 1000;
}

/* Sums that no number holds are as large as numbers are. */
static void a_run_that_needs_more_than_any_memory_is_no_small_one(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "1", "mode", "sync", "model", "huge", "rate", "1"));
    const struct shmtrain_model *own = NULL;
    for (size_t i = 0; (own = shmtrain_store_model_at(store, i)) && strcmp(own->name, "logistic") != 0;) i++;
    assert_non_null(own);
    struct shmtrain_model huge = *own;
    huge.name = "huge";
    huge.workspace = huge_workspace;
    WELL(store, shmtrain_store_offer(store, &huge));
    const struct shmtrain_plan *plan = plan_on(store, BIG, SPARSE);
    assert_true(plan->total_bytes == UINT64_MAX && plan->other_bytes == UINT64_MAX);
    uint64_t nodes = 0;
    for (uint32_t i = 0; i < plan->n_nodes; i++) nodes += plan->node[i].need_bytes / 4;
    assert_true(nodes > UINT64_MAX / 8);
    shmtrain_store_destroy(store);
}

static void nothing_runs_on_a_machine_that_is_not_there(void **state) {
    (void)state;
    struct shmtrain_store *store = store_with(OPTIONS("workers", "1"));
    setenv("HWLOC_SYNTHETIC", BIG, 1);
    const int rc = shmtrain_store_train(store, SPARSE);
    unsetenv("HWLOC_SYNTHETIC");
    refused(store, rc, SHMTRAIN_E_USAGE, "HWLOC_SYNTHETIC describes another machine, which only shmtrain topo can use");
    plan_on(store, BIG, SPARSE);
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_train(store, SPARSE));
    shmtrain_store_destroy(store);
}

#define TEST(test) cmocka_unit_test_setup(test, deadline)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(workers_are_spread_over_nodes_and_cores),
        TEST(by_default_there_is_a_worker_for_each_core),
        TEST(threads_of_a_worker_stay_on_its_node),
        TEST(more_workers_than_cores_are_bound_to_nodes),
        TEST(one_may_ask_for_nodes_or_for_nothing),
        TEST(copies_are_for_the_part_of_the_cache_that_a_worker_has),
        TEST(what_all_use_is_interleaved_and_data_is_with_its_readers),
        TEST(off_and_one_node_leave_everything_to_the_system),
        TEST(one_worker_has_everything_on_its_node),
        TEST(interleave_spreads_data_too),
        TEST(what_nodes_give_adds_up_to_what_is_needed),
        TEST(shards_take_the_nodes_in_turn),
        TEST(greedy_shards_go_where_the_fewest_bytes_are),
        TEST(tables_are_cut_into_even_parts_of_whole_pages),
        TEST(taskset_narrows_the_plan),
        TEST(the_plan_of_this_machine_has_its_limit),
        TEST(a_plan_changes_nothing_of_the_store),
        TEST(what_cannot_be_trained_cannot_be_planned),
        TEST(a_run_that_cannot_fit_is_planned_all_the_same),
        TEST(a_run_that_needs_more_than_any_memory_is_no_small_one),
        TEST(nothing_runs_on_a_machine_that_is_not_there),
    };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
