/* Tests of topo: plans for machines that we do not have (HWLOC_SYNTHETIC), what taskset and quotas leave, binding, and control
 * groups in folders that stand for /. */
#include "topo/cgroup.h"
#include "topo/topo.h"

#include "fake_root.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#define FOUR_NODES "group:4 [numa] core:16 pu:2"

static struct shmt_topo *open_synthetic(const char *description) {
    struct shmt_topo *topo = NULL;
    struct shmt_error e = {0};
    setenv("HWLOC_SYNTHETIC", description, 1);
    int rc = shmt_topo_open(&topo, &e);
    unsetenv("HWLOC_SYNTHETIC");
    if (rc != 0) fail_msg("%s", e.text);
    return topo;
}

static struct shmt_topo *open_here(void) {
    struct shmt_topo *topo = NULL;
    struct shmt_error e = {0};
    if (shmt_topo_open(&topo, &e) != 0) fail_msg("%s", e.text);
    return topo;
}

static int holds(const struct shmt_place *places, uint32_t n, uint32_t cpu) {
    for (uint32_t i = 0; i < n; i++)
        if (places[i].cpu == cpu) return 1;
    return 0;
}

static int holds_core(const struct shmt_place *places, uint32_t n, uint32_t core) {
    for (uint32_t i = 0; i < n; i++)
        if (places[i].core == core) return 1;
    return 0;
}

/* ---- plans ---- */

static void a_synthetic_machine_is_counted_whole(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic(FOUR_NODES);
    assert_int_equal(shmt_topo_cpus(topo), 128);
    assert_int_equal(shmt_topo_cores(topo), 64);
    assert_int_equal(shmt_topo_nodes(topo), 4);
    shmt_topo_close(topo);
}

static void workers_get_distinct_cores_before_second_threads(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic(FOUR_NODES);
    struct shmt_place places[128];
    shmt_topo_plan(topo, 128, places);
    for (uint32_t i = 0; i < 64; i++) assert_false(holds_core(places, i, places[i].core));
    for (uint32_t i = 64; i < 128; i++) assert_int_equal(places[i].core, places[i - 64].core);
    for (uint32_t i = 0; i < 128; i++) {
        assert_false(holds(places, i, places[i].cpu));
        assert_int_equal(places[i].shared, 0);
    }
    shmt_topo_close(topo);
}

static void workers_are_spread_over_the_nodes_in_turn(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic(FOUR_NODES);
    struct shmt_place places[128];
    shmt_topo_plan(topo, 128, places);
    for (uint32_t i = 0; i < 128; i++) {
        assert_int_equal(places[i].node, i % 4);
        assert_int_equal(places[i].cpu / 32, places[i].node);
    }
    shmt_topo_close(topo);
}

static void more_workers_than_processors_share_from_the_start_again(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic(FOUR_NODES);
    struct shmt_place places[300];
    shmt_topo_plan(topo, 130, places);
    for (uint32_t i = 0; i < 130; i++) {
        assert_int_equal(places[i].shared, i < 2 || i >= 128);
        if (i >= 128) assert_int_equal(places[i].cpu, places[i - 128].cpu);
    }
    shmt_topo_plan(topo, 300, places);
    for (uint32_t i = 0; i < 300; i++) assert_int_equal(places[i].shared, 1);
    shmt_topo_close(topo);
}

static void a_longer_plan_begins_like_a_shorter_one(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic(FOUR_NODES);
    struct shmt_place shorter[7], longer[100];
    shmt_topo_plan(topo, 7, shorter);
    shmt_topo_plan(topo, 100, longer);
    assert_memory_equal(shorter, longer, sizeof shorter);
    shmt_topo_close(topo);
}

static void numbers_are_those_of_the_operating_system(void **state) {
    (void)state;
    /* Numbered as Linux does: first every core's first thread, then every core's second one. */
    struct shmt_topo *topo = open_synthetic("group:2 [numa] core:2 pu:2(indexes=0,4,1,5,2,6,3,7)");
    const uint32_t cpus[] = {0, 2, 1, 3, 4, 6, 5, 7}, cores[] = {0, 2, 1, 3, 0, 2, 1, 3};
    struct shmt_place places[8];
    shmt_topo_plan(topo, 8, places);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(places[i].cpu, cpus[i]);
        assert_int_equal(places[i].core, cores[i]);
    }
    shmt_topo_close(topo);
}

static void a_machine_without_core_objects_has_a_core_per_processor(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic("group:2 [numa] pu:3");
    struct shmt_place places[6];
    assert_int_equal(shmt_topo_cpus(topo), 6);
    assert_int_equal(shmt_topo_cores(topo), 6);
    shmt_topo_plan(topo, 6, places);
    for (uint32_t i = 0; i < 6; i++) assert_false(holds_core(places, i, places[i].core));
    shmt_topo_close(topo);
}

static void caches_are_those_of_the_first_processor(void **state) {
    (void)state;
    struct shmt_topo *topo = open_synthetic("[numa] l3:2(size=33554432) l2:4(size=1048576) l1d:1(size=49152) core:1 pu:2");
    assert_int_equal(shmt_topo_cache_bytes(topo, 1), 49152);
    assert_int_equal(shmt_topo_cache_bytes(topo, 2), 1048576);
    assert_int_equal(shmt_topo_cache_bytes(topo, 3), 33554432);
    assert_int_equal(shmt_topo_cache_bytes(topo, 4), 0);
    assert_int_equal(shmt_topo_cache_bytes(topo, 0), 0);
    shmt_topo_close(topo);
}

/* ---- shares of caches ---- */

/* Of n workers of `each` threads. */
static struct shmt_cache_share share_on(const char *description, uint32_t n, uint32_t each, enum shmt_bound_to bind) {
    struct shmt_topo *topo = open_synthetic(description);
    struct shmt_cache_share share;
    struct shmt_place places[256];
    struct shmt_error e = {0};
    if (shmt_topo_plan_groups(topo, n, each, places, &e) != 0) fail_msg("%s", e.text);
    shmt_topo_share_cache(topo, 2, places, n, each, bind, &share);
    shmt_topo_close(topo);
    return share;
}

#define CLUSTERS "l2:2(size=4194304) core:4 pu:1" /* as some small cores have them */
#define THREADS  "l2:4(size=1048576) core:1 pu:2"
#define NODES    "[numa] group:2 [numa] l2:2(size=1048576) core:2 pu:1"

static void workers_share_a_cache_with_those_that_run_beside_them(void **state) {
    static const struct {
        const char *machine;
        uint32_t n, each;
        enum shmt_bound_to bind;
        uint32_t sharers;
    } CASES[] = {
        {CLUSTERS, 1, 1, SHMT_BIND_CORE, 1},
        {CLUSTERS, 2, 1, SHMT_BIND_CORE, 2}, /* neighbours */
        {CLUSTERS, 5, 1, SHMT_BIND_CORE, 4}, /* one has the other cache alone: the least part counts */
        {CLUSTERS, 8, 1, SHMT_BIND_CORE, 4},
        {CLUSTERS, 2, 1, SHMT_BIND_NONE, 1}, /* the scheduler spreads them */
        {CLUSTERS, 3, 1, SHMT_BIND_NONE, 2},
        {CLUSTERS, 8, 1, SHMT_BIND_NONE, 4},
        {CLUSTERS, 2, 4, SHMT_BIND_CORE, 1}, /* threads of one worker share its copy, too */
        {CLUSTERS, 4, 2, SHMT_BIND_CORE, 2},
        {CLUSTERS, 2, 4, SHMT_BIND_NONE, 2}, /* threads of both may meet */
        {THREADS, 4, 1, SHMT_BIND_CORE, 1},
        {THREADS, 4, 1, SHMT_BIND_NONE, 1},
        {THREADS, 8, 1, SHMT_BIND_NONE, 2}, /* hardware threads of one core */
        {NODES, 4, 1, SHMT_BIND_NODE, 1},
        {NODES, 6, 1, SHMT_BIND_NODE, 2},
        {NODES, 6, 1, SHMT_BIND_NONE, 2},
        {"core:4 pu:2", 4, 1, SHMT_BIND_CORE, 1}, /* nothing is known of caches: as if each core had one */
        {"core:4 pu:2", 5, 1, SHMT_BIND_NONE, 2},
        {"pu:4", 4, 1, SHMT_BIND_NONE, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct shmt_cache_share share = share_on(CASES[i].machine, CASES[i].n, CASES[i].each, CASES[i].bind);
        if (share.n_workers != CASES[i].sharers) fail_msg("case %zu: %u workers", i, share.n_workers);
    }
    assert_int_equal(share_on(CLUSTERS, 2, 1, SHMT_BIND_CORE).bytes, 4194304);
    assert_int_equal(share_on("core:4 pu:2", 2, 1, SHMT_BIND_CORE).bytes, 0);
}

/* A turn lasts for milliseconds, and what one has lost meanwhile is back in the cache after some 50 us. */
static void workers_that_take_turns_on_a_processor_do_not_share_its_cache(void **state) {
    (void)state;
    assert_int_equal(share_on("l2:2(size=1048576) core:1 pu:1", 8, 1, SHMT_BIND_NONE).n_workers, 1);
    assert_int_equal(share_on(THREADS, 100, 1, SHMT_BIND_NONE).n_workers, 2);
    assert_int_equal(share_on(CLUSTERS, 100, 2, SHMT_BIND_NONE).n_workers, 4);
}

/* ---- what this process may use ---- */

/* Runs `body` in a forked process bound to one processor that it is allowed, and returns its exit status. */
static int bound_to_one_cpu(int (*body)(int cpu)) {
    const pid_t pid = fork();
    if (pid == 0) {
        cpu_set_t set;
        int cpu = 0;
        alarm(60);
        if (sched_getaffinity(0, sizeof set, &set) != 0) _exit(100);
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set)) cpu = i; /* the last one, which is not the default one */
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        if (sched_setaffinity(0, sizeof set, &set) != 0) _exit(101);
        _exit(body(cpu));
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int sees_only_its_cpu(int cpu) {
    struct shmt_topo *topo = NULL;
    struct shmt_place places[3];
    if (shmt_topo_open(&topo, NULL) != 0) return 1;
    shmt_topo_plan(topo, 3, places);
    const int wrong = shmt_topo_cpus(topo) != 1 || shmt_topo_cores(topo) != 1 || shmt_topo_nodes(topo) != 1 ||
                      places[0].cpu != (uint32_t)cpu || places[2].cpu != (uint32_t)cpu || !places[0].shared;
    shmt_topo_close(topo);
    return wrong ? 2 : 0;
}

static int sees_a_synthetic_machine_whole(int cpu) {
    (void)cpu;
    struct shmt_topo *topo = NULL;
    setenv("HWLOC_SYNTHETIC", FOUR_NODES, 1);
    if (shmt_topo_open(&topo, NULL) != 0) return 1;
    const int wrong = shmt_topo_cpus(topo) != 128 || shmt_topo_cores(topo) != 64;
    shmt_topo_close(topo);
    return wrong ? 2 : 0;
}

static void taskset_narrows_the_plan(void **state) {
    (void)state;
    assert_int_equal(bound_to_one_cpu(sees_only_its_cpu), 0);
}

static void taskset_does_not_narrow_a_synthetic_machine(void **state) {
    (void)state;
    assert_int_equal(bound_to_one_cpu(sees_a_synthetic_machine_whole), 0);
}

static void the_plan_uses_exactly_the_allowed_processors(void **state) {
    (void)state;
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    struct shmt_topo *topo = open_here();
    const uint32_t n = shmt_topo_cpus(topo);
    struct shmt_place *places = calloc(n, sizeof *places);
    assert_int_equal(n, CPU_COUNT(&set));
    shmt_topo_plan(topo, n, places);
    for (uint32_t i = 0; i < n; i++) assert_true(CPU_ISSET(places[i].cpu, &set));
    free(places);
    shmt_topo_close(topo);
}

static int binds_to_each_place(void) {
    struct shmt_topo *topo = NULL;
    struct shmt_place places[4];
    struct shmt_error e = {0};
    if (shmt_topo_open(&topo, &e) != 0) return 1;
    shmt_topo_plan(topo, 4, places);
    for (int i = 0; i < 4; i++) {
        cpu_set_t set;
        if (shmt_topo_bind_group(topo, &places[i], 1, &e) != 0) return 2;
        if (sched_getaffinity(0, sizeof set, &set) != 0) return 3;
        if (CPU_COUNT(&set) != 1 || !CPU_ISSET(places[i].cpu, &set)) return 4;
        if (sched_getcpu() != (int)places[i].cpu) return 5;
    }
    const struct shmt_place nowhere = {.cpu = 1000000};
    if (shmt_topo_bind_group(topo, &nowhere, 1, &e) >= 0 || !strstr(e.text, "processor 1000000")) return 6;
    shmt_topo_close(topo);
    return 0;
}

static void a_worker_runs_where_it_is_bound_and_is_told_where_it_cannot(void **state) {
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        _exit(binds_to_each_place());
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void opening_leaves_the_binding_and_starts_no_thread(void **state) {
    (void)state;
    cpu_set_t before, after;
    struct stat tasks_before, tasks_after;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_int_equal(stat("/proc/self/task", &tasks_before), 0);
    struct shmt_topo *topo = open_here();
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_int_equal(stat("/proc/self/task", &tasks_after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    assert_int_equal(tasks_before.st_nlink, tasks_after.st_nlink); /* 2 and one for each thread */
    shmt_topo_close(topo);
}

/* hwloc passes over what it cannot read, and tells of this machine. */
static void descriptions_that_are_none_are_refused(void **state) {
    static const char *const DESCRIPTION[][2] = {{"HWLOC_SYNTHETIC", "nonsense"}, {"HWLOC_XMLFILE", "/no/such/file"}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmt_topo *topo;
        struct shmt_error e = {0};
        setenv(DESCRIPTION[i][0], DESCRIPTION[i][1], 1);
        assert_string_equal(shmt_topo_variable(), DESCRIPTION[i][0]);
        const int rc = shmt_topo_open(&topo, &e);
        setenv(DESCRIPTION[i][0], "", 1);
        assert_null(shmt_topo_variable());
        shmt_topo_close(open_here());
        unsetenv(DESCRIPTION[i][0]);
        assert_int_equal(rc, SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, DESCRIPTION[i][0]));
        assert_non_null(strstr(e.text, DESCRIPTION[i][1]));
    }
}

/* hwloc would take hours, or all memory. */
static void machines_without_end_are_refused_before_they_are_made(void **state) {
    static const char *const TOO_LARGE[] = {"node:999 core:99 pu:9", "node:2 core:8192", "4096 2 2",
                                            "[numa(memory=1GB)] pack:2 l3:64(size=32MB) core:64 pu:2",
                                            "node:99999999999 core:99999999999 pu:99999999999"};
    static const char *const GOOD[] = {"pack:2 [numa(memory=1000000000000)] l2:2(size=4194304) core:2 pu:2(indexes=0*8:8*2)",
                                       "2 4 2"};
    (void)state;
    for (size_t i = 0; i < sizeof TOO_LARGE / sizeof *TOO_LARGE; i++) {
        struct shmt_topo *topo;
        struct shmt_error e = {0};
        setenv("HWLOC_SYNTHETIC", TOO_LARGE[i], 1);
        const int rc = shmt_topo_open(&topo, &e);
        unsetenv("HWLOC_SYNTHETIC");
        assert_int_equal(rc, SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, TOO_LARGE[i]));
        assert_non_null(strstr(e.text, " processors: describe 8192 at most"));
    }
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        struct shmt_topo *topo = open_synthetic(GOOD[i]);
        assert_int_equal(shmt_topo_cpus(topo), 16);
        shmt_topo_close(topo);
    }
}

static void closing_nothing_is_harmless(void **state) {
    (void)state;
    shmt_topo_close(NULL);
}

/* ---- CPU quotas ---- */

static uint32_t cores_under(const struct fake_root *root) {
    struct shmt_topo *topo = NULL;
    struct shmt_error e = {0};
    setenv("HWLOC_SYNTHETIC", FOUR_NODES, 1);
    int rc = shmt_topo_open_at(root->path, &topo, &e);
    unsetenv("HWLOC_SYNTHETIC");
    if (rc != 0) fail_msg("%s", e.text);
    const uint32_t cores = shmt_topo_cores(topo);
    assert_int_equal(shmt_topo_cpus(topo), 128);
    shmt_topo_close(topo);
    return cores;
}

static void put_v2(const struct fake_root *root) {
    fake_root_put(root, "/proc/self/cgroup", "0::/user.slice/job\n");
    fake_root_put(root, "/proc/self/mountinfo",
                  "22 1 0:20 / /proc rw,nosuid - proc proc rw\n"
                  "31 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
}

static void a_v2_quota_limits_the_cores_rounded_up(void **state) {
    const struct fake_root *root = *state;
    put_v2(root);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "250000 100000\n");
    assert_int_equal(shmt_cgroup_cpu_millis(root->path), 2500);
    assert_int_equal(cores_under(root), 3);
}

static void the_tightest_group_on_the_way_up_counts(void **state) {
    const struct fake_root *root = *state;
    put_v2(root);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    fake_root_put(root, "/sys/fs/cgroup/user.slice/cpu.max", "400000 100000\n");
    assert_int_equal(cores_under(root), 4);
    fake_root_put(root, "/sys/fs/cgroup/cpu.max", "20000 10000\n");
    assert_int_equal(cores_under(root), 2);
}

static void a_quota_below_one_processor_leaves_one_core(void **state) {
    const struct fake_root *root = *state;
    put_v2(root);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "1000 1000000\n");
    assert_int_equal(cores_under(root), 1);
}

static void a_quota_above_the_machine_and_none_limit_nothing(void **state) {
    const struct fake_root *root = *state;
    assert_int_equal(cores_under(root), 64); /* no /proc at all */
    put_v2(root);
    assert_int_equal(cores_under(root), 64); /* no cpu.max */
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    assert_int_equal(cores_under(root), 64);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "100000000 100000\n");
    assert_int_equal(cores_under(root), 64);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cpu.max", "nonsense\n");
    assert_int_equal(cores_under(root), 64);
}

static void a_v1_quota_counts_also_beside_v2(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "5:cpuset:/elsewhere\n3:cpu,cpuacct:/job\n0::/init.scope\n");
    fake_root_put(root, "/proc/self/mountinfo",
                  "30 1 0:30 / /cg/cpuset rw - cgroup cgroup rw,cpuset\n"
                  "31 1 0:31 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                  "32 1 0:32 / /cg/unified rw - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/cg/unified/init.scope/cgroup.procs", "1\n");
    fake_root_put(root, "/cg/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
    fake_root_put(root, "/cg/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cores_under(root), 64);
    fake_root_put(root, "/cg/cpu,cpuacct/job/cpu.cfs_quota_us", "150000\n");
    assert_int_equal(cores_under(root), 2);
    fake_root_put(root, "/cg/unified/init.scope/cpu.max", "90000 100000\n");
    assert_int_equal(cores_under(root), 1);
}

/* ---- finding groups ---- */

static void expect_group(const struct fake_root *root, uint32_t version, const char *controller, const char *name) {
    struct shmt_cgroup group;
    assert_int_equal(shmt_cgroup_find(root->path, version, controller, &group), 1);
    assert_string_equal(shmt_cgroup_name(&group), name);
}

static void a_container_that_sees_its_host_path_finds_its_group(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "4:memory:/docker/abc/sub\n");
    fake_root_put(root, "/proc/self/mountinfo", "31 1 0:31 /docker/abc /cg rw master:1 - cgroup cgroup rw,memory\n");
    fake_root_put(root, "/cg/sub/memory.limit_in_bytes", "1\n");
    expect_group(root, 1, "memory", "/cg/sub");
    /* /docker/abcd is not below /docker/abc: then the mount point is what can be known. */
    fake_root_put(root, "/proc/self/cgroup", "4:memory:/docker/abcd/sub\n");
    expect_group(root, 1, "memory", "/cg");
}

static void a_group_outside_of_the_namespace_is_taken_as_the_mount_point(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "0::/../other\n");
    fake_root_put(root, "/proc/self/mountinfo", "31 1 0:31 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/cg/cgroup.procs", "1\n");
    fake_root_put(root, "/other/cgroup.procs", "1\n");
    expect_group(root, 2, "memory", "/cg");
}

static void a_group_whose_folder_is_not_there_is_taken_as_the_nearest_above(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "0::/a/b/c\n");
    fake_root_put(root, "/proc/self/mountinfo", "31 1 0:31 / /cg rw - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/cg/a/cgroup.procs", "1\n");
    expect_group(root, 2, "memory", "/cg/a");
}

static void of_several_mounts_the_one_that_shows_most_is_used(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "0::/a/b\n");
    fake_root_put(root, "/proc/self/mountinfo",
                  "30 1 0:31 /a/b /part rw - cgroup2 cgroup2 rw\n"
                  "31 1 0:31 / /whole rw - cgroup2 cgroup2 rw\n"
                  "32 1 0:31 /a /half rw - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/part/cgroup.procs", "1\n");
    fake_root_put(root, "/whole/a/b/cgroup.procs", "1\n");
    fake_root_put(root, "/half/b/cgroup.procs", "1\n");
    expect_group(root, 2, "cpu", "/whole/a/b");
}

static void blanks_and_colons_in_paths_are_understood(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/self/cgroup", "7:memory:/my job:1\n");
    fake_root_put(root, "/proc/self/mountinfo", "31 1 0:31 / /control\\040groups rw - cgroup cgroup rw,memory\n");
    fake_root_put(root, "/control groups/my job:1/tasks", "1\n");
    expect_group(root, 1, "memory", "/control groups/my job:1");
}

static void going_up_ends_at_the_mount_point(void **state) {
    const struct fake_root *root = *state;
    put_v2(root);
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/cgroup.procs", "1\n");
    struct shmt_cgroup group;
    assert_int_equal(shmt_cgroup_find(root->path, 2, "cpu", &group), 1);
    assert_string_equal(shmt_cgroup_name(&group), "/sys/fs/cgroup/user.slice/job");
    assert_int_equal(shmt_cgroup_to_parent(&group), 1);
    assert_string_equal(shmt_cgroup_name(&group), "/sys/fs/cgroup/user.slice");
    assert_int_equal(shmt_cgroup_to_parent(&group), 1);
    assert_string_equal(shmt_cgroup_name(&group), "/sys/fs/cgroup");
    assert_int_equal(shmt_cgroup_to_parent(&group), 0);
    assert_string_equal(shmt_cgroup_name(&group), "/sys/fs/cgroup");
}

static void other_controllers_and_broken_lines_are_no_group(void **state) {
    const struct fake_root *root = *state;
    struct shmt_cgroup group;
    assert_int_equal(shmt_cgroup_find(root->path, 1, "cpu", &group), 0);
    fake_root_put(root, "/proc/self/cgroup", "2:cpuset:/\n3:cpuacct:/\nnonsense\n4:\n\n");
    fake_root_put(root, "/proc/self/mountinfo",
                  "nonsense\n\n - \n1 2 3\n1 2 0:1 / /cg - cgroup\n9 1 0:9 / /cg rw - cgroup cgroup rw,cpuset,cpuacct\n");
    fake_root_put(root, "/cg/tasks", "1\n");
    assert_int_equal(shmt_cgroup_find(root->path, 1, "cpu", &group), 0);
    assert_int_equal(shmt_cgroup_find(root->path, 2, "cpu", &group), 0);
    assert_int_equal(shmt_cgroup_find(root->path, 1, "cpuacct", &group), 1);
}

static void only_whole_numbers_count(void **state) {
    const struct fake_root *root = *state;
    put_v2(root);
    const struct {
        const char *text;
        int is_number;
        uint64_t value;
    } cases[] = {{"0\n", 1, 0},   {"18446744073709551615\n", 1, UINT64_MAX},
                 {"max\n", 0, 0}, {"-1\n", 0, 0},
                 {"12x\n", 0, 0}, {"", 0, 0},
                 {"\n", 0, 0},    {" 5\n", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shmt_cgroup group;
        uint64_t value = 77;
        fake_root_put(root, "/sys/fs/cgroup/user.slice/job/number", cases[i].text);
        assert_int_equal(shmt_cgroup_find(root->path, 2, "cpu", &group), 1);
        assert_int_equal(shmt_cgroup_number(&group, "number", &value), cases[i].is_number);
        assert_int_equal(value, cases[i].is_number ? cases[i].value : 77);
        assert_int_equal(shmt_cgroup_number(&group, "no such file", &value), 0);
    }
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_setup, fake_root_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_synthetic_machine_is_counted_whole),
        cmocka_unit_test(workers_get_distinct_cores_before_second_threads),
        cmocka_unit_test(workers_are_spread_over_the_nodes_in_turn),
        cmocka_unit_test(more_workers_than_processors_share_from_the_start_again),
        cmocka_unit_test(a_longer_plan_begins_like_a_shorter_one),
        cmocka_unit_test(numbers_are_those_of_the_operating_system),
        cmocka_unit_test(a_machine_without_core_objects_has_a_core_per_processor),
        cmocka_unit_test(caches_are_those_of_the_first_processor),
        cmocka_unit_test(workers_share_a_cache_with_those_that_run_beside_them),
        cmocka_unit_test(workers_that_take_turns_on_a_processor_do_not_share_its_cache),
        cmocka_unit_test(taskset_narrows_the_plan),
        cmocka_unit_test(taskset_does_not_narrow_a_synthetic_machine),
        cmocka_unit_test(the_plan_uses_exactly_the_allowed_processors),
        cmocka_unit_test(a_worker_runs_where_it_is_bound_and_is_told_where_it_cannot),
        cmocka_unit_test(opening_leaves_the_binding_and_starts_no_thread),
        cmocka_unit_test(machines_without_end_are_refused_before_they_are_made),
        cmocka_unit_test(closing_nothing_is_harmless),
        cmocka_unit_test(descriptions_that_are_none_are_refused),
        WITH_ROOT(a_v2_quota_limits_the_cores_rounded_up),
        WITH_ROOT(the_tightest_group_on_the_way_up_counts),
        WITH_ROOT(a_quota_below_one_processor_leaves_one_core),
        WITH_ROOT(a_quota_above_the_machine_and_none_limit_nothing),
        WITH_ROOT(a_v1_quota_counts_also_beside_v2),
        WITH_ROOT(a_container_that_sees_its_host_path_finds_its_group),
        WITH_ROOT(a_group_outside_of_the_namespace_is_taken_as_the_mount_point),
        WITH_ROOT(a_group_whose_folder_is_not_there_is_taken_as_the_nearest_above),
        WITH_ROOT(of_several_mounts_the_one_that_shows_most_is_used),
        WITH_ROOT(blanks_and_colons_in_paths_are_understood),
        WITH_ROOT(going_up_ends_at_the_mount_point),
        WITH_ROOT(other_controllers_and_broken_lines_are_no_group),
        WITH_ROOT(only_whole_numbers_count),
    };
    alarm(120);
    return cmocka_run_group_tests_name("topo", tests, NULL, NULL);
}
