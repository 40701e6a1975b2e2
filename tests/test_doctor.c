/* Tests of shmtrain doctor's judgement, on machines that nobody has, and of what it reads below a folder that stands for /. */
#include "doctor/vitals.h"

#include "fake_root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <jansson.h>

#define GIB ((uint64_t)1 << 30)

static struct shmt_vitals v;
static struct shmtrain_checkup checkup;

/* A machine with nothing to complain about: two nodes of four cores. */
static void make_healthy(void) {
    v = (struct shmt_vitals){.cores = 8,
                             .cpus = 16,
                             .online_cpus = 16,
                             .n_nodes = 2,
                             .node = {{.node = 0, .usable = 1, .memory_bytes = 64 * GIB, .free_bytes = 50 * GIB},
                                      {.node = 1, .usable = 1, .memory_bytes = 64 * GIB, .free_bytes = 60 * GIB}},
                             .driver = "intel_pstate",
                             .governor = "powersave",
                             .clock = "tsc",
                             .clocks = "tsc hpet acpi_pm",
                             .numa_balancing = "0",
                             .best = SHMT_CPU_AVX2,
                             .has_path = {[SHMT_CPU_PORTABLE] = true, [SHMT_CPU_AVX2] = true},
                             .budget = {110 * GIB, 128 * GIB, "memory of the machine"},
                             .total_bytes = 128 * GIB,
                             .overcommit = "0",
                             .shared_huge = "advise",
                             .shared_huge_on = true,
                             .private_huge = "madvise",
                             .has_shm = true,
                             .may_write_shm = true,
                             .shm_bytes = 64 * GIB,
                             .shm_free = 64 * GIB,
                             .limit = {.file_bytes = SHMT_NO_LIMIT,
                                       .address_bytes = SHMT_NO_LIMIT,
                                       .files = 1024,
                                       .processes = 4096,
                                       .cpu_seconds = SHMT_NO_LIMIT,
                                       .group_processes = SHMT_NO_LIMIT},
                             .kernel = "Linux 6.1",
                             .call = {true, true, true, true, true, true, true, ""},
                             .blas = "OpenBLAS 0.3.21 Zen",
                             .blas_shared = true,
                             .openmp = true};
}

static int setup(void **state) {
    static const char *const VARIABLE[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_CORETYPE",
                                           "OMP_THREAD_LIMIT",     "OMP_PROC_BIND",   "GOMP_CPU_AFFINITY",
                                           "OMP_DYNAMIC",          "OMP_WAIT_POLICY", "SHMTRAIN_BLAS"};
    for (size_t i = 0; i < sizeof VARIABLE / sizeof *VARIABLE; i++) unsetenv(VARIABLE[i]);
    (void)state;
    make_healthy();
    return 0;
}

static void judge(void) {
    checkup = (struct shmtrain_checkup){0};
    shmt_judge(&v, &checkup);
}

/* The machine, sick in one respect, has exactly one finding that is not OK: this one. Then it is healthy again. */
static void assert_only(enum shmtrain_verdict verdict, const char *subject, const char *seen, const char *remedy) {
    judge();
    const struct shmtrain_finding *bad = NULL;
    for (uint32_t i = 0; i < checkup.n; i++) {
        const struct shmtrain_finding *f = &checkup.finding[i];
        if (f->verdict == SHMTRAIN_FINE) continue;
        if (bad) fail_msg("both \"%s\" and \"%s\"", bad->seen, f->seen);
        bad = f;
    }
    if (!bad) fail_msg("no finding about %s", subject);
    assert_int_equal(bad->verdict, verdict);
    assert_string_equal(bad->subject, subject);
    if (!strstr(bad->seen, seen)) fail_msg("\"%s\" is not in: %s", seen, bad->seen);
    if (!strstr(bad->remedy, remedy)) fail_msg("\"%s\" is not in: %s", remedy, bad->remedy);
    assert_int_equal(checkup.n_stops, verdict == SHMTRAIN_STOPS);
    assert_int_equal(checkup.n_slow, verdict == SHMTRAIN_SLOWS);
    make_healthy();
}
#define SLOWS(...) assert_only(SHMTRAIN_SLOWS, __VA_ARGS__)
#define STOPS(...) assert_only(SHMTRAIN_STOPS, __VA_ARGS__)

/* ---- judgement ---- */

static void a_healthy_machine_has_no_finding_with_a_remedy(void **state) {
    (void)state;
    judge();
    assert_true(checkup.n > 15);
    assert_int_equal(checkup.n_slow + checkup.n_stops, 0);
    for (uint32_t i = 0; i < checkup.n; i++) assert_string_equal(checkup.finding[i].remedy, "");
}

static void processors_that_are_kept_from_us_are_found(void **state) {
    (void)state;
    snprintf(v.described, sizeof v.described, "HWLOC_SYNTHETIC");
    STOPS("machine", "HWLOC_SYNTHETIC describes another machine", "unset HWLOC_SYNTHETIC");
    v.cpus = 4;
    SLOWS("affinity", "4 of the machine's 16", "taskset -c 0-15");
    v.call.may_bind = false;
    SLOWS("binding", "sched_setaffinity", "docker run");
    v.quota_millis = 1500;
    v.periods = 100;
    v.throttled = 7;
    SLOWS("CPU quota", "1.5 of 16 processors and pauses all workers beyond that (so far in 7 of 100", "docker update --cpus");
    v.others = 1.04;
    SLOWS("others", "use 1.0 of the processors", "ps -eo pcpu");
    v.steal = 0.05;
    SLOWS("hypervisor", "5.0 %", "dedicated");
}

static void slow_clocks_and_paths_are_found(void **state) {
    (void)state;
    snprintf(v.driver, sizeof v.driver, "acpi-cpufreq");
    SLOWS("clock speed", "powersave", "cpupower");
    snprintf(v.clock, sizeof v.clock, "hpet");
    SLOWS("clock", "hpet", "echo tsc");
    snprintf(v.clock, sizeof v.clock, "acpi_pm");
    snprintf(v.clocks, sizeof v.clocks, "acpi_pm");
    SLOWS("clock", "acpi_pm", "boot with");
    snprintf(v.forced, sizeof v.forced, "portable");
    SLOWS("CPU path", "forces portable; avx2 is faster (available: portable, avx2)", "unset SHMTRAIN_CPU");
    v.best = SHMT_CPU_PORTABLE;
    SLOWS("CPU path", "cannot use wide vectors", "AVX2");
}

static void nodes_that_are_full_or_closed_are_found(void **state) {
    (void)state;
    v.node[1].free_bytes = GIB;
    SLOWS("NUMA", "node 1 has 1.0 GiB free, another one 50.0 GiB", "shmtrain topo");
    v.node[0].usable = 0;
    SLOWS("NUMA", "1 of the 2 nodes'", "cpuset-mems");
    v.numa_balancing[0] = '1';
    SLOWS("NUMA balancing", "moves pages", "kernel.numa_balancing=0");
    v.call.may_place = false;
    SLOWS("placing", "mbind", "SYS_NICE");
    v.call.tells_nodes = false;
    SLOWS("placing", "move_pages", "SYS_NICE");
}

static void refused_placing_does_not_matter_with_one_node(void **state) {
    (void)state;
    v.n_nodes = 1;
    v.call.may_place = v.call.tells_nodes = false;
    v.numa_balancing[0] = '1';
    judge();
    assert_int_equal(checkup.n_slow + checkup.n_stops, 0);
}

static void lack_of_huge_pages_is_found(void **state) {
    (void)state;
    v.shared_huge_on = false;
    snprintf(v.shared_huge, sizeof v.shared_huge, "never");
    SLOWS("huge pages", "none are reserved, and shmem_enabled is never", "transparent_hugepage/shmem_enabled");
    v.shared_huge_on = false;
    v.shared_huge[0] = '\0';
    SLOWS("huge pages", "shmem_enabled is not there", "vm.nr_hugepages");
    snprintf(v.private_huge, sizeof v.private_huge, "never");
    SLOWS("private pages", "never", "transparent_hugepage/enabled");
    v.shared_huge_on = false;
    v.huge_all = v.huge_free = 512;
    judge();
    assert_int_equal(checkup.n_slow, 0);
}

static void lack_of_room_for_named_stores_is_found(void **state) {
    (void)state;
    v.has_shm = false;
    STOPS("/dev/shm", "there is no /dev/shm", "mount -t tmpfs");
    v.may_write_shm = false;
    STOPS("/dev/shm", "cannot be written", "mode=1777");
    v.shm_free = 1 << 20;
    STOPS("/dev/shm", "1.0 MiB free of 64.0 GiB", "remount,size");
    v.shm_free = 64 << 20;
    SLOWS("/dev/shm", "64.0 MiB free of 64.0 GiB", "--shm-size");
    v.left = (struct shmt_leftovers){.n_dead = 2, .dead_bytes = 3 * GIB, .dead = "night"};
    SLOWS("leftovers", "2 dead or damaged named stores hold 3.0 GiB", "shmtrain rm night");
    v.left = (struct shmt_leftovers){.n_over = 1, .over_bytes = GIB};
    judge();
    assert_int_equal(checkup.n_slow, 0); /* whoever keeps one wants it */
}

static void lack_of_memory_is_found(void **state) {
    (void)state;
    v.budget.available_bytes = 32 << 20;
    v.shm_free = 16 * GIB;
    STOPS("memory", "32.0 MiB left of 128 GiB", "ps -eo rss");
    v.budget.available_bytes = 10 * GIB;
    SLOWS("memory", "10.0 GiB left of 128 GiB", "ps -eo rss");
    v.budget = (struct shmt_budget){4 * GIB, 5 * GIB, "memory limit of control group /g"};
    SLOWS("memory", "4.0 GiB left of 5.0 GiB (memory limit of control group /g)", "MemoryMax");
    v.swap_bytes = v.swap_used = 20 * GIB;
    SLOWS("swap", "20.0 GiB of 20.0 GiB", "swappiness");
    v.overcommit[0] = '2';
    v.commit_limit = 60 * GIB;
    v.committed = 40 * GIB;
    SLOWS("overcommit", "leaves 20.0 GiB", "vm.overcommit_memory=0");
    v.overcommit[0] = '2';
    STOPS("overcommit", "segments are refused", "vm.overcommit_memory=0");
}

static void limits_are_found(void **state) {
    (void)state;
    v.limit.file_bytes = GIB;
    SLOWS("limits", "1.0 GiB (ulimit -f)", "ulimit -f unlimited");
    v.limit.address_bytes = 64 << 20;
    STOPS("limits", "64.0 MiB (ulimit -v)", "ulimit -v unlimited");
    v.limit.cpu_seconds = 3600;
    SLOWS("limits", "3600 s of computing (ulimit -t)", "ulimit -t unlimited");
    v.limit.processes = 5;
    SLOWS("limits", "5 processes (ulimit -u)", "ulimit -u");
    v.limit.files = 32;
    SLOWS("limits", "32 open files", "ulimit -n");
    v.limit.group_processes = 10;
    v.limit.group_used = 9;
    STOPS("limits", "allows 10 processes and already has 9", "--pids-limit");
    v.limit.processes = 5;
    v.limit.is_root = true;
    judge();
    assert_int_equal(checkup.n_slow, 0);
}

static void what_the_system_lacks_is_found(void **state) {
    (void)state;
    v.call.memfd = false;
    snprintf(v.call.memfd_refused, sizeof v.call.memfd_refused, "not today");
    STOPS("kernel", "not today", "free");
    v.call.ofd_locks = false;
    STOPS("kernel", "F_OFD_SETLK", "3.15");
    v.call.pidfd = false;
    SLOWS("kernel", "pidfd_open", "5.3");
    v.call.populate = false;
    SLOWS("kernel", "MADV_POPULATE_WRITE", "5.14");
    v.blas[0] = '\0';
    snprintf(v.blas_refused, sizeof v.blas_refused, "install it");
    STOPS("BLAS", "softmax cannot run, everything else can: install it", "libopenblas0");
    v.blas_shared = false;
    SLOWS("BLAS", "serial variant", "libopenblas0-pthread");
    v.openmp = false;
    SLOWS("OpenMP", "--threads has no effect", "libgomp1");
}

static void variables_that_slow_are_found_and_others_are_not(void **state) {
    (void)state;
    setenv("OPENBLAS_NUM_THREADS", "8", 1);
    judge();
    assert_int_equal(checkup.n_slow, 0);
    setenv("OMP_WAIT_POLICY", "ACTIVE", 1);
    SLOWS("BLAS threads", "OMP_WAIT_POLICY is active", "unset OMP_WAIT_POLICY");
    unsetenv("OMP_WAIT_POLICY");
    setenv("OMP_PROC_BIND", "false", 1);
    judge();
    assert_int_equal(checkup.n_slow, 0);
    setenv("OMP_PROC_BIND", "close", 1);
    SLOWS("BLAS threads", "OMP_PROC_BIND is close", "unset OMP_PROC_BIND");
}

/* ---- reading ---- */

static void figures_are_read_below_a_root(void **state) {
    const struct fake_root *root = *state;
    fake_root_put(root, "/proc/cpuinfo", "processor : 0\nflags\t\t: fpu hypervisor avx2\n");
    fake_root_put(root, "/proc/stat", "cpu  100 0 100 700 0 0 0 100 0 0\n");
    fake_root_put(root, "/proc/meminfo",
                  "MemTotal: 4096 kB\nMemAvailable: 2048 kB\nSwapTotal: 100 kB\nSwapFree: 40 kB\nCommitLimit: 7 kB\n"
                  "Committed_AS: 3 kB\n");
    fake_root_put(root, "/proc/self/status", "Name: x\nSeccomp:\t2\n");
    fake_root_put(root, "/proc/self/cgroup", "0::/g\n");
    fake_root_put(root, "/proc/self/mountinfo", "1 0 0:1 / /sys/fs/cgroup rw - cgroup2 none rw\n");
    fake_root_put(root, "/sys/fs/cgroup/g/cpu.max", "150000 100000\n");
    fake_root_put(root, "/sys/fs/cgroup/g/cpu.stat", "nr_periods 10\nnr_throttled 4\n");
    fake_root_put(root, "/sys/fs/cgroup/g/pids.max", "30\n");
    fake_root_put(root, "/sys/fs/cgroup/g/pids.current", "12\n");
    fake_root_put(root, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    fake_root_put(root, "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never\n");
    fake_root_put(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "9\n");
    fake_root_put(root, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5\n");
    fake_root_put(root, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
    fake_root_put(root, "/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n");
    fake_root_put(root, "/proc/sys/vm/overcommit_memory", "2\n");
    v = (struct shmt_vitals){0};
    shmt_vitals_read(root->path, &v);
    assert_true(v.is_virtual);
    assert_true(v.filtered);
    assert_true(v.steal > 0.0999 && v.steal < 0.1001);
    assert_int_equal(v.quota_millis, 1500);
    assert_int_equal(v.periods, 10);
    assert_int_equal(v.throttled, 4);
    assert_int_equal(v.limit.group_processes, 30);
    assert_int_equal(v.limit.group_used, 12);
    assert_int_equal(v.total_bytes, 4 << 20);
    assert_int_equal(v.swap_used, 60 << 10);
    assert_int_equal(v.commit_limit, 7 << 10);
    assert_int_equal(v.committed, 3 << 10);
    assert_string_equal(v.overcommit, "2");
    assert_string_equal(v.private_huge, "never");
    assert_string_equal(v.shared_huge, "advise");
    assert_int_equal(v.huge_all, 9);
    assert_int_equal(v.huge_free, 5);
    assert_string_equal(v.governor, "powersave");
    assert_string_equal(v.clocks, "tsc hpet");
}

static void nothing_to_read_is_no_finding(void **state) {
    const struct fake_root *root = *state;
    make_healthy();
    shmt_vitals_read(root->path, &v);
    v.limit.group_processes = SHMT_NO_LIMIT;
    v.shared_huge_on = true;
    v.shm_free = UINT64_MAX;
    v.best = SHMT_CPU_AVX2;
    v.forced[0] = '\0';
    judge();
    assert_int_equal(checkup.n_slow + checkup.n_stops, 0);
}

/* ---- texts ---- */

static void lines_are_at_most_80_columns_wide_and_printable(void **state) {
    (void)state;
    v.call.memfd = false;
    memset(v.call.memfd_refused, 'x', sizeof v.call.memfd_refused - 1);
    v.call.memfd_refused[3] = '\033';
    snprintf(v.left.dead, sizeof v.left.dead, "%063d", 1);
    v.left.n_dead = 1;
    v.quota_millis = 1;
    v.shared_huge_on = false;
    judge();
    char *text = shmtrain_checkup_text(&checkup);
    assert_non_null(text);
    assert_null(strchr(text, '\033'));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strcspn(line, "\n") > 80) fail_msg("%.*s", (int)strcspn(line, "\n"), line);
    assert_non_null(strstr(text, "\n   -> echo advise | sudo tee"));
    assert_non_null(strstr(text, "\n1 finding will stop a run, 3 will slow it.\n"));
    free(text);
}

static void json_has_every_finding(void **state) {
    (void)state;
    v.has_shm = false;
    judge();
    char *text = shmtrain_checkup_json(&checkup);
    json_t *o = json_loads(text, 0, NULL), *list = json_object_get(o, "findings");
    assert_int_equal(json_integer_value(json_object_get(o, "stops")), 1);
    assert_int_equal(json_integer_value(json_object_get(o, "slow")), 0);
    assert_int_equal(json_array_size(list), checkup.n);
    size_t n_stops = 0;
    for (uint32_t i = 0; i < checkup.n; i++) {
        const json_t *f = json_array_get(list, i);
        const bool stops = strcmp(json_string_value(json_object_get(f, "verdict")), "stops") == 0;
        n_stops += stops;
        assert_true(stops == json_is_string(json_object_get(f, "remedy")));
        assert_string_equal(json_string_value(json_object_get(f, "seen")), checkup.finding[i].seen);
    }
    assert_int_equal(n_stops, 1);
    json_decref(o);
    free(text);
}

static void this_machine_can_be_looked_at(void **state) {
    (void)state;
    struct shmtrain_checkup *c;
    char message[256] = "";
    assert_int_equal(shmtrain_doctor(&c, message, sizeof message), 0);
    assert_true(c->n > 15);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_healthy_machine_has_no_finding_with_a_remedy, setup),
        cmocka_unit_test_setup(processors_that_are_kept_from_us_are_found, setup),
        cmocka_unit_test_setup(slow_clocks_and_paths_are_found, setup),
        cmocka_unit_test_setup(nodes_that_are_full_or_closed_are_found, setup),
        cmocka_unit_test_setup(refused_placing_does_not_matter_with_one_node, setup),
        cmocka_unit_test_setup(lack_of_huge_pages_is_found, setup),
        cmocka_unit_test_setup(lack_of_room_for_named_stores_is_found, setup),
        cmocka_unit_test_setup(lack_of_memory_is_found, setup),
        cmocka_unit_test_setup(limits_are_found, setup),
        cmocka_unit_test_setup(what_the_system_lacks_is_found, setup),
        cmocka_unit_test_setup(variables_that_slow_are_found_and_others_are_not, setup),
        cmocka_unit_test_setup_teardown(figures_are_read_below_a_root, fake_root_setup, fake_root_teardown),
        cmocka_unit_test_setup(lines_are_at_most_80_columns_wide_and_printable, setup),
        cmocka_unit_test_setup(json_has_every_finding, setup),
        cmocka_unit_test_setup(this_machine_can_be_looked_at, setup),
        cmocka_unit_test_setup_teardown(nothing_to_read_is_no_finding, fake_root_setup, fake_root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
