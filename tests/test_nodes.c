/* Tests of topo's nodes and memory, and of plans for workers of several threads: machines that we do not have by
 * HWLOC_SYNTHETIC, their memory in folders that stand for /, and what a kernel with one node can show. Placement on real
 * nodes is shown by tests/numa. */
#include "topo/topo.h"

#include "fake_root.h"

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FOUR_NODES "group:4 [numa] core:16 pu:2"
#define KIB        ((uint64_t)1 << 10)
#define MIB        ((uint64_t)1 << 20)
#define GIB        ((uint64_t)1 << 30)

/* Calls that the test makes fail with this errno; 0: the real ones. */
static struct {
    int syscall;
    uint32_t turns;  /* move_pages tells of pages that were dealt out to so many nodes in turn ... */
    uint64_t filled; /* ... up to this address; the rest are on node 0. 0: the real call */
} sys;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
    va_list args;
    long a[6];
    va_start(args, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(args, long);
    va_end(args);
    if (sys.syscall) {
        errno = sys.syscall;
        return -1;
    }
    if (sys.filled) {
        for (long i = 0; i < a[1]; i++) {
            const uint64_t page = ((uint64_t *)a[2])[i] / 4096;                        /* NOLINT(performance-no-int-to-ptr) */
            ((int *)a[4])[i] = page < sys.filled / 4096 ? (int)(page % sys.turns) : 0; /* NOLINT(performance-no-int-to-ptr) */
        }
        return 0;
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static struct shmt_topo *open_topo(const char *synthetic, const char *root) {
    struct shmt_topo *topo = NULL;
    struct shmt_error e = {0};
    if (synthetic) setenv("HWLOC_SYNTHETIC", synthetic, 1);
    const int rc = root ? shmt_topo_open_at(root, &topo, &e) : shmt_topo_open(&topo, &e);
    unsetenv("HWLOC_SYNTHETIC");
    if (rc != 0) fail_msg("%s", e.text);
    return topo;
}

static struct shmt_node node_of(const struct shmt_topo *topo, uint32_t i) {
    struct shmt_node node;
    shmt_topo_node(topo, i, &node);
    return node;
}

/* ---- nodes ---- */

static void a_synthetic_machine_is_all_free(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo("numa:4(memory=8GiB) core:16 pu:2", NULL);
    assert_int_equal(shmt_topo_all_nodes(topo), 4);
    assert_int_equal(shmt_topo_is_this_machine(topo), 0);
    assert_int_equal(shmt_topo_transparent(topo), 0);
    for (uint32_t i = 0; i < 4; i++) {
        const struct shmt_node node = node_of(topo, i);
        assert_int_equal(node.node, i);
        assert_int_equal(node.usable, 1);
        assert_int_equal(node.cores, 16);
        assert_int_equal(node.cpus, 32);
        assert_int_equal(node.memory_bytes, 8 * GIB);
        assert_int_equal(node.free_bytes, 8 * GIB);
        assert_int_equal(node.huge_free, 0);
    }
    shmt_topo_close(topo);
}

static void put_node(const struct fake_root *root, unsigned node, unsigned long long total_kib, unsigned long long free_kib,
                     unsigned long long file_kib, const char *huge) {
    char path[128], text[512];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/meminfo", node);
    snprintf(text, sizeof text,
             "Node %u MemTotal:       %llu kB\nNode %u MemFree:        %llu kB\nNode %u Active(file):   %llu kB\n"
             "Node %u Inactive(file): %llu kB\nNode %u Shmem:          77 kB\n",
             node, total_kib, node, free_kib, node, file_kib, node, file_kib, node);
    fake_root_put(root, path, text);
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepages", node);
    if (huge) fake_root_put(root, path, huge);
}

static void memory_is_what_the_nodes_say_at_the_moment(void **state) {
    const struct fake_root *root = *state;
    for (unsigned i = 0; i < 4; i++) put_node(root, i, 1024 * (i + 1), 100 + i, 10 * i, i == 2 ? "37\n" : NULL);
    struct shmt_topo *topo = open_topo(FOUR_NODES, root->path);
    for (uint32_t i = 0; i < 4; i++) {
        const struct shmt_node node = node_of(topo, i);
        assert_int_equal(node.memory_bytes, (i + 1) * MIB);
        assert_int_equal(node.free_bytes, (100 + i + 20 * i) * KIB); /* page cache counts as free */
        assert_int_equal(node.huge_free, i == 2 ? 37 : 0);
    }
    put_node(root, 1, 2048, 7, 0, "3\n");
    assert_int_equal(node_of(topo, 1).free_bytes, 7 * KIB);
    assert_int_equal(node_of(topo, 1).huge_free, 3);
    put_node(root, 1, 2048, 9999999, 0, "nonsense\n"); /* figures that cannot be */
    assert_int_equal(node_of(topo, 1).free_bytes, 2 * MIB);
    assert_int_equal(node_of(topo, 1).huge_free, 0);
    shmt_topo_close(topo);
}

static void a_single_node_has_the_figures_of_the_machine(void **state) {
    const struct fake_root *root = *state;
    put_node(root, 0, 1024, 100, 0, NULL);
    fake_root_put(root, "/proc/meminfo", "MemTotal:  4096 kB\nMemFree:  1 kB\nMemAvailable:  3072 kB\n");
    struct shmt_topo *topo = open_topo("numa:1 core:2 pu:1", root->path);
    assert_int_equal(node_of(topo, 0).memory_bytes, 4 * MIB);
    assert_int_equal(node_of(topo, 0).free_bytes, 3 * MIB);
    shmt_topo_close(topo);
    topo = open_topo(FOUR_NODES, root->path); /* several have their own */
    assert_int_equal(node_of(topo, 0).memory_bytes, 1 * MIB);
    shmt_topo_close(topo);
}

static void nodes_that_the_kernel_forbids_are_shown_and_not_usable(void **state) {
    const struct fake_root *root = *state;
    for (unsigned i = 0; i < 4; i++) put_node(root, i, 1024, 0, 0, NULL);
    fake_root_put(root, "/proc/self/status", "Name:\tx\nMems_allowed:\t0000000b\nMems_allowed_list:\t0-1,3\n");
    struct shmt_topo *topo = open_topo(FOUR_NODES, root->path);
    assert_int_equal(shmt_topo_all_nodes(topo), 4);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(node_of(topo, i).usable, i != 2);
    shmt_topo_close(topo);
    fake_root_put(root, "/proc/self/status", "Mems_allowed_list:\tnonsense\n");
    topo = open_topo(FOUR_NODES, root->path);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(node_of(topo, i).usable, 1);
    shmt_topo_close(topo);
}

static void a_node_without_memory_is_not_usable(void **state) {
    const struct fake_root *root = *state;
    for (unsigned i = 0; i < 4; i++) put_node(root, i, i == 1 ? 0 : 1024, 0, 0, NULL);
    struct shmt_topo *topo = open_topo(FOUR_NODES, root->path);
    for (uint32_t i = 0; i < 4; i++) assert_int_equal(node_of(topo, i).usable, i != 1);
    assert_int_equal(node_of(topo, 1).cores, 16); /* its processors are */
    shmt_topo_close(topo);
}

static void this_machine_has_a_node_with_all_that_one_may_use(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(NULL, NULL);
    uint32_t cpus = 0, usable = 0;
    uint64_t memory = 0;
    assert_int_equal(shmt_topo_is_this_machine(topo), 1);
    for (uint32_t i = 0; i < shmt_topo_all_nodes(topo); i++) {
        const struct shmt_node node = node_of(topo, i);
        cpus += node.cpus;
        usable += node.usable;
        memory += node.memory_bytes;
        assert_true(node.free_bytes <= node.memory_bytes);
    }
    assert_int_equal(cpus, shmt_topo_cpus(topo));
    assert_true(usable >= 1);
    assert_true(memory > 64 * MIB);
    shmt_topo_close(topo);
}

static void transparent_pages_are_there_when_the_system_makes_them_for_shared_memory(void **state) {
    const struct fake_root *root = *state;
    static const char *const FILE_NAME = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
    const struct {
        const char *text;
        int answer;
    } cases[] = {{"[always] within_size advise never deny force\n", 1}, {"always [within_size] advise never deny force\n", 1},
                 {"always within_size [advise] never deny force\n", 1}, {"always within_size advise [never] deny force\n", 0},
                 {"always within_size advise never [deny] force\n", 0}, {"", 0}};
    struct shmt_topo *topo = open_topo(FOUR_NODES, root->path);
    assert_int_equal(shmt_topo_transparent(topo), 0); /* no such file */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_root_put(root, FILE_NAME, cases[i].text);
        assert_int_equal(shmt_topo_transparent(topo), cases[i].answer);
    }
    shmt_topo_close(topo);
}

static void transparent_pages_are_there_when_the_system_makes_them_for_private_memory(void **state) {
    const struct fake_root *root = *state;
    static const char *const FILE_NAME = "/sys/kernel/mm/transparent_hugepage/enabled";
    const struct {
        const char *text;
        int answer;
    } cases[] = {{"[always] madvise never\n", 1}, {"always [madvise] never\n", 1}, {"always madvise [never]\n", 0}, {"", 0}};
    struct shmt_topo *topo = open_topo(FOUR_NODES, root->path);
    assert_int_equal(shmt_topo_transparent_private(topo), 0); /* no such file */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake_root_put(root, FILE_NAME, cases[i].text);
        assert_int_equal(shmt_topo_transparent_private(topo), cases[i].answer);
    }
    fake_root_put(root, FILE_NAME, "[always] madvise never\n");
    fake_root_put(root, "/proc/sys/vm/overcommit_memory", "2\n"); /* each worker's would be counted */
    assert_int_equal(shmt_topo_transparent_private(topo), 0);
    fake_root_put(root, "/proc/sys/vm/overcommit_memory", "0\n");
    assert_int_equal(shmt_topo_transparent_private(topo), 1);
    shmt_topo_close(topo);
}

/* ---- groups of threads ---- */

static void groups_of_one_are_the_plan_of_single_workers(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(FOUR_NODES, NULL);
    struct shmt_place single[130], group[130];
    shmt_topo_plan(topo, 130, single);
    assert_int_equal(shmt_topo_plan_groups(topo, 130, 1, group, NULL), 0);
    assert_memory_equal(single, group, sizeof single);
    shmt_topo_close(topo);
}

static void threads_of_a_group_stay_on_a_node_and_groups_take_the_nodes_in_turn(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(FOUR_NODES, NULL);
    struct shmt_place place[64];
    assert_int_equal(shmt_topo_plan_groups(topo, 16, 4, place, NULL), 0); /* as many threads as cores */
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(place[i].node, i / 4 % 4);
        assert_int_equal(place[i].shared, 0);
        for (uint32_t k = 0; k < i; k++) assert_int_not_equal(place[i].core, place[k].core);
    }
    shmt_topo_close(topo);
}

static void a_group_takes_second_threads_rather_than_part(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo("group:2 [numa] core:3 pu:2", NULL); /* 3 cores of 2 threads on each of 2 nodes */
    struct shmt_place place[12];
    assert_int_equal(shmt_topo_plan_groups(topo, 3, 4, place, NULL), 0);
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(place[i].node, i / 4); /* 4 of 6 processors */
    uint32_t on[2] = {0, 0};
    for (uint32_t i = 8; i < 12; i++) on[place[i].node]++; /* no node has 4 left: the rest of both */
    assert_int_equal(on[0], 2);
    assert_int_equal(on[1], 2);
    for (uint32_t i = 0; i < 12; i++) {
        assert_int_equal(place[i].shared, 0);
        for (uint32_t k = 0; k < i; k++) assert_int_not_equal(place[i].cpu, place[k].cpu);
    }
    shmt_topo_close(topo);
}

static void more_threads_than_processors_share_them_evenly(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo("group:2 [numa] core:2 pu:1", NULL);
    struct shmt_place place[12];
    uint32_t uses[4] = {0};
    assert_int_equal(shmt_topo_plan_groups(topo, 6, 2, place, NULL), 0);
    for (uint32_t i = 0; i < 12; i++) {
        uses[place[i].cpu]++;
        assert_int_equal(place[i].shared, 1);
        assert_int_equal(place[i].node, place[i - i % 2].node);
    }
    for (uint32_t cpu = 0; cpu < 4; cpu++) assert_int_equal(uses[cpu], 3);
    assert_int_equal(shmt_topo_plan_groups(topo, 1, 9, place, NULL), 0); /* one group larger than the machine */
    for (uint32_t i = 0; i < 9; i++) assert_true(place[i].cpu < 4);
    shmt_topo_close(topo);
}

/* ---- binding ---- */

static int binds_to_groups_and_nodes(void) {
    struct shmt_topo *topo;
    struct shmt_error e = {0};
    cpu_set_t all, set;
    if (sched_getaffinity(0, sizeof all, &all) != 0 || shmt_topo_open(&topo, &e) != 0) return 1;
    const uint32_t n = shmt_topo_cpus(topo) < 2 ? 1 : 2;
    struct shmt_place place[2];
    shmt_topo_plan(topo, 2, place);
    if (shmt_topo_may_bind(topo, &e) != 0) return 2;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || !CPU_EQUAL(&all, &set)) return 3; /* asking changes nothing */
    if (shmt_topo_bind_group(topo, place, n, &e) != 0) return 4;
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != (int)n || !CPU_ISSET(place[0].cpu, &set)) return 5;
    if (shmt_topo_bind_node(topo, place, &e) != 0) return 6;
    struct shmt_node node;
    uint32_t i = 0;
    do shmt_topo_node(topo, i++, &node);
    while (node.node != place[0].node);
    if (sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) != (int)node.cpus) return 7;
    const struct shmt_place nowhere = {.node = 1000000};
    if (shmt_topo_bind_node(topo, &nowhere, &e) >= 0 || !strstr(e.text, "node 1000000")) return 8;
    shmt_topo_close(topo);
    return 0;
}

static void a_thread_is_bound_to_its_group_or_node(void **state) {
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(binds_to_groups_and_nodes());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* ---- memory ---- */

static void memory_lies_where_the_kernel_says(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(NULL, NULL);
    const uint64_t bytes = 3 * MIB;
    unsigned char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    struct shmt_error e = {0};
    uint64_t *on = calloc(shmt_topo_all_nodes(topo), sizeof *on), sum = 0;
    const struct shmt_node first = node_of(topo, 0);
    if (shmt_topo_bind_memory(topo, at, bytes, SHMT_MEMORY_BIND, &first.node, 1, &e) != 0) {
        print_message("skipped: %s\n", e.text);
        free(on);
        skip();
        return;
    }
    assert_int_equal(shmt_topo_bind_memory(topo, at, bytes, SHMT_MEMORY_INTERLEAVE, &first.node, 1, &e), 0);
    assert_int_equal(shmt_topo_bind_memory(topo, at, bytes, SHMT_MEMORY_DEFAULT, NULL, 0, &e), 0);
    assert_int_equal(shmt_topo_may_place(topo, &first.node, 1, &e), 0);
    if (shmt_topo_where(topo, at, bytes, 4096, on, &e) != 0) fail_msg("%s", e.text); /* pages that nobody has touched */
    for (uint32_t i = 0; i < shmt_topo_all_nodes(topo); i++) sum += on[i];
    assert_int_equal(sum, bytes);
    for (uint64_t i = 0; i < bytes; i++) assert_int_equal(at[i], 0);
    munmap(at, bytes);
    free(on);
    shmt_topo_close(topo);
}

static void a_large_range_is_estimated_from_samples(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(NULL, NULL);
    const uint64_t bytes = 64 * MIB + 12345;
    unsigned char *at = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uint64_t *on = calloc(shmt_topo_all_nodes(topo), sizeof *on), sum = 0;
    struct shmt_error e = {0};
    assert_true(at != MAP_FAILED);
    /* Reading private memory enters the page of zeros, which is on no node: what is not known is not counted. */
    assert_int_equal(shmt_topo_where(topo, at, bytes, 4096, on, &e), 0);
    munmap(at, bytes);
    at = mmap(NULL, bytes, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(shmt_topo_where(topo, at + 5, bytes - 5, 4096, on, &e), 0);
    for (uint32_t i = 0; i < shmt_topo_all_nodes(topo); i++) sum += on[i];
    assert_int_equal(sum, bytes - 5);
    munmap(at, bytes);
    free(on);
    shmt_topo_close(topo);
}

/* Of 256 MiB that were interleaved over `nodes` nodes until all but node 0 were full, from `share` hundredths on. */
static void expect_estimate(const struct shmt_topo *topo, const unsigned char *at, uint32_t nodes, uint64_t share) {
    const uint64_t bytes = 256 * MIB, dealt = bytes / 100 * share;
    uint64_t on[8];
    struct shmt_error e = {0};
    sys.turns = nodes;
    sys.filled = (uint64_t)(uintptr_t)at + dealt;
    assert_int_equal(shmt_topo_where(topo, at, bytes, 4096, on, &e), 0);
    sys.filled = 0;
    for (uint32_t i = 0; i < 8; i++) {
        const uint64_t truth = (i < nodes ? dealt / nodes : 0) + (i == 0 ? bytes - dealt : 0);
        assert_true(on[i] <= truth + bytes / 40 / nodes && on[i] + bytes / 40 / nodes >= truth);
    }
}

static void estimates_are_right_for_pages_that_take_turns(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo("numa:8 core:1 pu:1", NULL);
    unsigned char *at = mmap(NULL, 256 * MIB, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(at != MAP_FAILED);
    for (uint32_t nodes = 1; nodes <= 8; nodes++) {
        expect_estimate(topo, at, nodes, 100);
        expect_estimate(topo, at, nodes, 61);
    }
    munmap(at, 256 * MIB);
    shmt_topo_close(topo);
}

static void refusals_of_the_kernel_are_told(void **state) {
    (void)state;
    struct shmt_topo *topo = open_topo(NULL, NULL);
    struct shmt_error e = {0};
    const uint32_t missing = 999;
    uint64_t *on = calloc(shmt_topo_all_nodes(topo), sizeof *on);
    unsigned char *at = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    assert_int_equal(shmt_topo_bind_memory(topo, at, MIB, SHMT_MEMORY_BIND, &missing, 1, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "the system refuses to place memory on NUMA nodes (mbind)"));
    shmt_error_clear(&e);
    assert_int_equal(shmt_topo_may_place(topo, &missing, 1, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, ": the system decides where it is placed"));
    shmt_error_clear(&e);
    sys.syscall = EPERM;
    assert_int_equal(shmt_topo_where(topo, at, MIB, 4096, on, &e), SHMTRAIN_E_SYSTEM);
    sys.syscall = 0;
    assert_non_null(strstr(e.text, "(move_pages): Operation not permitted"));
    munmap(at, MIB);
    free(on);
    shmt_topo_close(topo);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_setup, fake_root_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synthetic_machine_is_all_free),
        WITH_ROOT(memory_is_what_the_nodes_say_at_the_moment),
        WITH_ROOT(a_single_node_has_the_figures_of_the_machine),
        WITH_ROOT(nodes_that_the_kernel_forbids_are_shown_and_not_usable),
        WITH_ROOT(a_node_without_memory_is_not_usable),
        cmocka_unit_test(this_machine_has_a_node_with_all_that_one_may_use),
        WITH_ROOT(transparent_pages_are_there_when_the_system_makes_them_for_shared_memory),
        WITH_ROOT(transparent_pages_are_there_when_the_system_makes_them_for_private_memory),
        cmocka_unit_test(groups_of_one_are_the_plan_of_single_workers),
        cmocka_unit_test(threads_of_a_group_stay_on_a_node_and_groups_take_the_nodes_in_turn),
        cmocka_unit_test(a_group_takes_second_threads_rather_than_part),
        cmocka_unit_test(more_threads_than_processors_share_them_evenly),
        cmocka_unit_test(a_thread_is_bound_to_its_group_or_node),
        cmocka_unit_test(memory_lies_where_the_kernel_says),
        cmocka_unit_test(a_large_range_is_estimated_from_samples),
        cmocka_unit_test(estimates_are_right_for_pages_that_take_turns),
        cmocka_unit_test(refusals_of_the_kernel_are_told),
    };
    alarm(120);
    return cmocka_run_group_tests_name("nodes", tests, NULL, NULL);
}
