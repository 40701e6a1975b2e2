/* Tests of budgets: what folders that stand for / tell, the sentences of a refusal, and a real memory limit where we may set
 * one. */
#include "segment/budget.h"
#include "segment/segment.h"
#include "topo/cgroup.h"

#include "fake_root.h"
#include "real_group.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct shmt_budget budget_of(const struct fake_root *root) {
    struct shmt_budget budget;
    memset(&budget, 0xee, sizeof budget);
    shmt_budget_read(root->path, &budget);
    return budget;
}

static void expect_budget(const struct fake_root *root, uint64_t available, uint64_t limit, const char *what) {
    const struct shmt_budget budget = budget_of(root);
    assert_string_equal(budget.limit, what);
    assert_int_equal(budget.available_bytes, available);
    assert_int_equal(budget.limit_bytes, limit);
}

/* 16 GiB, of which 8 GiB are available. */
static void put_machine(const struct fake_root *root) {
    fake_root_put(root, "/proc/meminfo",
                  "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\nBuffers: 1 kB\n");
}

static void put_v2(const struct fake_root *root) {
    put_machine(root);
    fake_root_put(root, "/proc/self/cgroup", "0::/user.slice/job\n");
    fake_root_put(root, "/proc/self/mountinfo", "31 1 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/memory.max", "max\n");
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/memory.high", "max\n");
    fake_root_put(root, "/sys/fs/cgroup/user.slice/job/memory.current", "1073741824\n");
}

static void put_v1(const struct fake_root *root) {
    put_machine(root);
    fake_root_put(root, "/proc/self/cgroup", "4:memory:/job\n1:name=systemd:/\n0::/\n");
    fake_root_put(root, "/proc/self/mountinfo",
                  "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                  "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fake_root_put(root, "/sys/fs/cgroup/unified/cgroup.procs", "1\n");
    fake_root_put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_root_put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "5368709120\n");
    fake_root_put(root, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
    fake_root_put(root, "/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "536870912\n");
}

/* ---- reading ---- */

static void where_nothing_can_be_read_nothing_limits(void **state) {
    expect_budget(*state, UINT64_MAX, UINT64_MAX, "");
    const struct shmt_budget budget = budget_of(*state);
    assert_int_equal(shmt_budget_check(&budget, UINT64_MAX, "training", NULL, "pray", NULL), 0);
}

static void without_groups_the_machine_limits(void **state) {
    put_machine(*state);
    expect_budget(*state, 8 * GIB, 16 * GIB, "memory of the machine");
}

static void unlimited_groups_leave_the_machine(void **state) {
    put_v2(*state);
    expect_budget(*state, 8 * GIB, 16 * GIB, "memory of the machine");
}

static void a_v2_limit_leaves_what_is_not_used(void **state) {
    put_v2(*state);
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n");
    expect_budget(*state, 3 * GIB, 4 * GIB, "memory limit of control group /sys/fs/cgroup/user.slice/job");
}

static void a_parents_limit_counts_with_the_parents_use(void **state) {
    put_v2(*state);
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n");
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/memory.max", "6442450944\n");
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/memory.current", "5368709120\n");
    expect_budget(*state, 1 * GIB, 6 * GIB, "memory limit of control group /sys/fs/cgroup/user.slice");
}

static void the_v2_limit_beyond_which_everything_stands_still_counts_too(void **state) {
    put_v2(*state);
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.max", "4294967296\n");
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.high", "2147483648\n");
    expect_budget(*state, 1 * GIB, 2 * GIB, "memory limit of control group /sys/fs/cgroup/user.slice/job");
}

static void a_groups_page_cache_of_files_is_free_and_shared_memory_is_not(void **state) {
    put_v2(*state);
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.max", "2147483648\n");
    fake_root_put(
        *state, "/sys/fs/cgroup/user.slice/job/memory.stat",
        "anon 1000\nfile 900000000\nshmem 300000000\ninactive_anon 7\ninactive_file 402653184\nactive_file 134217728\n");
    expect_budget(*state, 1 * GIB + 512 * MIB, 2 * GIB, "memory limit of control group /sys/fs/cgroup/user.slice/job");
}

static void a_group_that_uses_more_than_its_limit_leaves_nothing(void **state) {
    put_v2(*state);
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.max", "536870912\n");
    expect_budget(*state, 0, 512 * MIB, "memory limit of control group /sys/fs/cgroup/user.slice/job");
    /* Figures of one moment need not fit together. */
    fake_root_put(*state, "/sys/fs/cgroup/user.slice/job/memory.stat", "inactive_file 9000000000\nactive_file 9000000000\n");
    expect_budget(*state, 512 * MIB, 512 * MIB, "memory limit of control group /sys/fs/cgroup/user.slice/job");
}

static void a_v1_limit_is_found_beside_v2(void **state) {
    put_v1(*state);
    expect_budget(*state, GIB + 512 * MIB, 2 * GIB, "memory limit of control group /sys/fs/cgroup/memory/job");
}

static void a_v1_groups_cache_is_counted_with_all_below_it(void **state) {
    put_v1(*state);
    fake_root_put(*state, "/sys/fs/cgroup/memory/job/memory.stat",
                  "cache 1\ninactive_file 1\nactive_file 1\ntotal_inactive_file 134217728\ntotal_active_file 134217728\n");
    expect_budget(*state, GIB + 768 * MIB, 2 * GIB, "memory limit of control group /sys/fs/cgroup/memory/job");
}

static void in_a_hybrid_system_the_tighter_hierarchy_counts(void **state) {
    put_v1(*state);
    fake_root_put(*state, "/sys/fs/cgroup/unified/memory.max", "1073741824\n");
    fake_root_put(*state, "/sys/fs/cgroup/unified/memory.current", "0\n");
    expect_budget(*state, GIB, GIB, "memory limit of control group /sys/fs/cgroup/unified");
}

static void a_container_finds_its_limit_at_its_mount_point(void **state) {
    put_machine(*state);
    fake_root_put(*state, "/proc/self/cgroup", "4:memory:/docker/0123456789abcdef\n");
    fake_root_put(*state, "/proc/self/mountinfo",
                  "35 31 0:32 /docker/0123456789abcdef /mnt/groups ro - cgroup cgroup rw,memory\n");
    fake_root_put(*state, "/mnt/groups/memory.limit_in_bytes", "1073741824\n");
    fake_root_put(*state, "/mnt/groups/memory.usage_in_bytes", "0\n");
    expect_budget(*state, GIB, GIB, "memory limit of control group /mnt/groups");
}

static void the_end_of_a_long_group_name_is_kept(void **state) {
    put_machine(*state);
    char name[301] = {0}, line[400], path[400];
    memset(name, 'a', 200);
    fake_root_put(*state, "/proc/self/mountinfo", "31 1 0:26 / /cg rw - cgroup2 cgroup2 rw\n");
    snprintf(line, sizeof line, "0::/%s/the-job\n", name);
    fake_root_put(*state, "/proc/self/cgroup", line);
    snprintf(path, sizeof path, "/cg/%s/the-job/memory.max", name);
    fake_root_put(*state, path, "1073741824\n");
    const struct shmt_budget budget = budget_of(*state);
    assert_int_equal(budget.available_bytes, GIB);
    assert_ptr_equal(strstr(budget.limit, "memory limit of control group ...a"), budget.limit);
    assert_string_equal(budget.limit + strlen(budget.limit) - 9, "a/the-job");
}

/* ---- refusing ---- */

static const struct shmt_budget TWO_OF_FOUR = {
    .available_bytes = 2 * GIB, .limit_bytes = 4 * GIB, .limit = "memory limit of control group /cg/job"};

static void a_need_that_does_not_fit_is_refused_with_all_figures(void **state) {
    (void)state;
    struct shmt_error e = {0};
    assert_int_equal(shmt_budget_check(&TWO_OF_FOUR, 3 * GIB + 205 * MIB, "training", "parameters 1.0 GiB, data 2.2 GiB",
                                       "raise the limit or use fewer workers", &e),
                     SHMTRAIN_E_MEMORY);
    assert_string_equal(
        e.text,
        "training needs 3.2 GiB (parameters 1.0 GiB, data 2.2 GiB) but the memory limit of control group /cg/job "
        "leaves 1.9 GiB of 4.0 GiB: raise the limit or use fewer workers");
}

static void without_parts_there_are_no_parentheses(void **state) {
    (void)state;
    const char *const none[] = {NULL, ""};
    for (int i = 0; i < 2; i++) {
        struct shmt_error e = {0};
        shmt_budget_check(&TWO_OF_FOUR, 3 * GIB, "reading x.svm", none[i], "add memory", &e);
        assert_string_equal(
            e.text,
            "reading x.svm needs 3.0 GiB but the memory limit of control group /cg/job leaves 1.9 GiB of 4.0 GiB: "
            "add memory");
    }
}

static void a_reserve_is_left(void **state) {
    (void)state;
    assert_int_equal(shmt_budget_check(&TWO_OF_FOUR, 2 * GIB - 64 * MIB, "x", NULL, "y", NULL), 0);
    assert_int_equal(shmt_budget_check(&TWO_OF_FOUR, 2 * GIB - 64 * MIB + 1, "x", NULL, "y", NULL), SHMTRAIN_E_MEMORY);
    const struct shmt_budget small = {.available_bytes = 32 * MIB, .limit_bytes = 32 * MIB, .limit = "memory of the machine"};
    assert_int_equal(shmt_budget_check(&small, 31 * MIB, "x", NULL, "y", NULL), 0);
    assert_int_equal(shmt_budget_check(&small, 31 * MIB + 1, "x", NULL, "y", NULL), SHMTRAIN_E_MEMORY);
    const struct shmt_budget empty = {.available_bytes = 0, .limit_bytes = 32 * MIB, .limit = "memory of the machine"};
    assert_int_equal(shmt_budget_check(&empty, 0, "x", NULL, "y", NULL), 0);
    assert_int_equal(shmt_budget_check(&empty, 1, "x", NULL, "y", NULL), SHMTRAIN_E_MEMORY);
}

static void figures_that_would_look_the_same_are_given_exactly(void **state) {
    (void)state;
    struct shmt_error e = {0};
    shmt_budget_check(&TWO_OF_FOUR, 2 * GIB - 64 * MIB + 1, "x", NULL, "y", &e);
    assert_string_equal(e.text,
                        "x needs 2080374785 B but the memory limit of control group /cg/job leaves 2080374784 B of 4.0 GiB: y");
}

static void bytes_are_written_for_people(void **state) {
    (void)state;
    const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"},
        {12, "12 B"},
        {1023, "1023 B"},
        {1024, "1.0 KiB"},
        {1536, "1.5 KiB"},
        {870 * 1024, "870 KiB"},
        {99 * 1024 + 900, "99.9 KiB"},
        {99 * 1024 + 1000, "100 KiB"},
        {MIB - 1, "1.0 MiB"},
        {MIB, "1.0 MiB"},
        {3 * GIB + 205 * MIB, "3.2 GiB"},
        {1023 * GIB, "1023 GiB"},
        {1024 * GIB, "1.0 TiB"},
        {UINT64_MAX, "16.0 EiB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[32];
        shmt_bytes_text(cases[i].bytes, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* ---- a real limit ---- */

/* In the limited group: 0 when all is as it should be. A kill by the kernel is seen by the parent. */
static int lives_within(const struct real_group *real) {
    struct shmt_budget budget;
    struct shmt_segment segment;
    struct shmt_error e = {0};
    shmt_budget_read("", &budget);
    if (budget.limit_bytes != 64 * MIB || budget.available_bytes > 64 * MIB) return 11;
    if (!strstr(budget.limit, strrchr(real->group.dir, '/'))) return 12;
    const struct shmt_segment_wish large = {.name = "large", .fd = -1, .bytes = 256 * MIB};
    const struct shmt_segment_wish small = {.name = "small", .fd = -1, .bytes = 32 * MIB};
    if (shmt_segment_create(&large, &segment, &e) != SHMTRAIN_E_MEMORY) return 13;
    if (!strstr(e.text, "a shared memory segment needs 256 MiB but the memory limit of control group ")) return 14;
    shmt_error_clear(&e);
    if (shmt_segment_create(&small, &segment, &e) != 0) return 15;
    const uint64_t before = budget.available_bytes;
    shmt_budget_read("", &budget);
    if (budget.available_bytes + 30 * MIB > before) return 16; /* shared memory is no cache that could be dropped */
    memset(shmt_segment_at(&segment, 0, 32 * MIB), 1, 32 * MIB);
    shmt_segment_detach(&segment);
    return 0;
}

static void a_real_v1_limit_refuses_instead_of_killing(void **state) {
    (void)state;
    in_real_group(1, 64 * MIB, lives_within);
}

static void a_real_v2_limit_refuses_instead_of_killing(void **state) {
    (void)state;
    in_real_group(2, 64 * MIB, lives_within);
}

static void this_machine_has_a_budget(void **state) {
    (void)state;
    struct shmt_budget budget;
    shmt_budget_read("", &budget);
    assert_true(budget.available_bytes > 0 && budget.available_bytes != UINT64_MAX);
    assert_true(budget.available_bytes <= budget.limit_bytes);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_setup, fake_root_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_ROOT(where_nothing_can_be_read_nothing_limits),
        WITH_ROOT(without_groups_the_machine_limits),
        WITH_ROOT(unlimited_groups_leave_the_machine),
        WITH_ROOT(a_v2_limit_leaves_what_is_not_used),
        WITH_ROOT(a_parents_limit_counts_with_the_parents_use),
        WITH_ROOT(the_v2_limit_beyond_which_everything_stands_still_counts_too),
        WITH_ROOT(a_groups_page_cache_of_files_is_free_and_shared_memory_is_not),
        WITH_ROOT(a_group_that_uses_more_than_its_limit_leaves_nothing),
        WITH_ROOT(a_v1_limit_is_found_beside_v2),
        WITH_ROOT(a_v1_groups_cache_is_counted_with_all_below_it),
        WITH_ROOT(in_a_hybrid_system_the_tighter_hierarchy_counts),
        WITH_ROOT(a_container_finds_its_limit_at_its_mount_point),
        WITH_ROOT(the_end_of_a_long_group_name_is_kept),
        cmocka_unit_test(a_need_that_does_not_fit_is_refused_with_all_figures),
        cmocka_unit_test(without_parts_there_are_no_parentheses),
        cmocka_unit_test(a_reserve_is_left),
        cmocka_unit_test(figures_that_would_look_the_same_are_given_exactly),
        cmocka_unit_test(bytes_are_written_for_people),
        cmocka_unit_test(this_machine_has_a_budget),
        cmocka_unit_test(a_real_v1_limit_refuses_instead_of_killing),
        cmocka_unit_test(a_real_v2_limit_refuses_instead_of_killing),
    };
    alarm(180);
    return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
