/* Tests of choosing pages: for each option, by what the nodes of a machine have (folders that stand for /). */
#include "segment/pages.h"

#include "fake_root.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static const uint32_t BOTH[] = {0, 1};
static char notes[1024];

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(notes);
    snprintf(notes + used, sizeof notes - used, "%s\n", line);
}

static const struct shmt_log LOG = {.line = note};

/* Two nodes with so many free huge pages. */
static struct shmt_topo *machine(const struct fake_root *root, const char *huge0, const char *huge1, int transparent) {
    struct shmt_topo *topo = NULL;
    struct shmt_error e = {0};
    fake_root_put(root, "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/free_hugepages", huge0);
    fake_root_put(root, "/sys/devices/system/node/node1/hugepages/hugepages-2048kB/free_hugepages", huge1);
    fake_root_put(root, "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                  transparent ? "always within_size [advise] never\n" : "always within_size advise [never]\n");
    setenv("HWLOC_SYNTHETIC", "numa:2(memory=1GiB) core:2 pu:1", 1);
    if (shmt_topo_open_at(root->path, &topo, &e) != 0) fail_msg("%s", e.text);
    unsetenv("HWLOC_SYNTHETIC");
    notes[0] = '\0';
    return topo;
}

static enum shmt_pages choose(const struct shmt_topo *topo, const char *option, uint64_t bytes, uint32_t n_nodes) {
    return shmt_pages_choose(option, topo, bytes, BOTH, n_nodes, "store", &LOG);
}

static void off_is_off(void **state) {
    struct shmt_topo *topo = machine(*state, "999\n", "999\n", 1);
    assert_int_equal(choose(topo, "off", 64 * MIB, 2), SHMT_PAGES_ORDINARY);
    assert_int_equal(choose(topo, "off", 64 * MIB, 0), SHMT_PAGES_ORDINARY);
    assert_string_equal(notes, "");
    shmt_topo_close(topo);
}

static void reserved_ones_are_taken_when_each_node_has_enough(void **state) {
    struct shmt_topo *topo = machine(*state, "17\n", "17\n", 1);
    assert_int_equal(choose(topo, "2M", 64 * MIB, 2), SHMT_PAGES_2M);
    assert_int_equal(choose(topo, "auto", 64 * MIB, 2), SHMT_PAGES_2M);
    assert_int_equal(choose(topo, "2M", 100, 2), SHMT_PAGES_2M);
    assert_int_equal(choose(topo, "auto", 16 * MIB - 1, 2), SHMT_PAGES_TRANSPARENT); /* too little to be worth it */
    assert_string_equal(notes, "");
    shmt_topo_close(topo);
}

static void a_node_without_enough_is_named_if_one_insists(void **state) {
    struct shmt_topo *topo = machine(*state, "99\n", "16\n", 0);
    assert_int_equal(choose(topo, "auto", 64 * MIB, 2), SHMT_PAGES_ORDINARY);
    assert_string_equal(notes, "");
    assert_int_equal(choose(topo, "2M", 64 * MIB, 2), SHMT_PAGES_ORDINARY);
    assert_string_equal(notes,
                        "node 1 has 16 free huge pages of 2 MiB and the store would take 17 there: it gets ordinary pages\n");
    assert_int_equal(choose(topo, "2M", 64 * MIB, 1), SHMT_PAGES_2M); /* on node 0 alone */
    assert_int_equal(choose(topo, "2M", 64 * MIB, 0), SHMT_PAGES_2M); /* anywhere */
    shmt_topo_close(topo);
}

static void a_machine_without_enough_says_how_to_get_them(void **state) {
    struct shmt_topo *topo = machine(*state, "2\n", "1\n", 0);
    assert_int_equal(choose(topo, "2M", 64 * MIB, 0), SHMT_PAGES_ORDINARY);
    assert_string_equal(notes,
                        "the machine has 3 free huge pages of 2 MiB and the store would take 32: it gets ordinary pages "
                        "(vm.nr_hugepages reserves huge ones)\n");
    assert_int_equal(choose(topo, "2M", UINT64_MAX, 2), SHMT_PAGES_ORDINARY);
    shmt_topo_close(topo);
}

static void transparent_ones_are_taken_where_the_system_makes_them(void **state) {
    struct shmt_topo *topo = machine(*state, "0\n", "0\n", 1);
    assert_int_equal(choose(topo, "auto", 64 * MIB, 2), SHMT_PAGES_TRANSPARENT);
    assert_int_equal(choose(topo, "auto", 2 * MIB - 1, 2), SHMT_PAGES_ORDINARY); /* not one of them */
    assert_string_equal(notes, "");
    assert_int_equal(choose(topo, "2M", 64 * MIB, 2), SHMT_PAGES_TRANSPARENT);
    assert_non_null(strstr(notes, "node 0 has 0 free huge pages"));
    shmt_topo_close(topo);
}

static void pages_have_names_and_sizes(void **state) {
    (void)state;
    assert_string_equal(shmt_pages_name(SHMT_PAGES_ORDINARY), "off");
    assert_string_equal(shmt_pages_name(SHMT_PAGES_TRANSPARENT), "transparent");
    assert_string_equal(shmt_pages_name(SHMT_PAGES_2M), "2M");
    assert_int_equal(shmt_pages_bytes(SHMT_PAGES_ORDINARY), 4096);
    assert_int_equal(shmt_pages_bytes(SHMT_PAGES_TRANSPARENT), 4096);
    assert_int_equal(shmt_pages_bytes(SHMT_PAGES_2M), 2 * MIB);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, fake_root_setup, fake_root_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        WITH_ROOT(off_is_off),
        WITH_ROOT(reserved_ones_are_taken_when_each_node_has_enough),
        WITH_ROOT(a_node_without_enough_is_named_if_one_insists),
        WITH_ROOT(a_machine_without_enough_says_how_to_get_them),
        WITH_ROOT(transparent_ones_are_taken_where_the_system_makes_them),
        WITH_ROOT(pages_have_names_and_sizes),
    };
    alarm(60);
    return cmocka_run_group_tests_name("pages", tests, NULL, NULL);
}
