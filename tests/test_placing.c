/* Tests of placing segments on NUMA nodes, in huge pages and in files with a name. The machine is HWLOC_SYNTHETIC's with four
 * nodes and figures below a folder that stands for /; what is bound and where pages came to lie is recorded and invented by the
 * wrapped calls below. tests/numa shows the same on real nodes. */
#include "segment/pages.h"
#include "segment/segment.h"

#include "fake_root.h"
#include "segment_help.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "base/checked.h"

#define NODES 4
#define HUGE  SHMT_HUGE_BYTES

struct bound {
    const unsigned char *at;
    uint64_t bytes;
    enum shmt_memory_policy policy;
    uint32_t n_nodes, node[NODES];
};

static struct {
    struct bound bound[64];
    uint32_t n_bound;
    uint32_t placed_before; /* how many ranges were bound when pages were first placed */
    int refuse_bind;
    int looks;
    int full_node, goes_to; /* half of a range bound to full_node lies on goes_to; -1: everything is where it should be */
    int huge_refused;       /* errno of memfd_create with MFD_HUGETLB */
    int advised;            /* madvise was called with this advice */
    struct statfs room;     /* with f_blocks: what fstatfs says */
    int fallocate;          /* what posix_fallocate returns from its second call on */
    int fallocate_calls;
    char notes[2048];
} sys;

int __wrap_shmt_topo_is_this_machine(const struct shmt_topo *topo);
int __wrap_shmt_topo_is_this_machine(const struct shmt_topo *topo) {
    (void)topo;
    return 1;
}

int __wrap_shmt_topo_bind_memory(const struct shmt_topo *topo, void *at, uint64_t bytes, enum shmt_memory_policy policy,
                                 const uint32_t *node, uint32_t n_nodes, struct shmt_error *e);
int __wrap_shmt_topo_bind_memory(const struct shmt_topo *topo, void *at, uint64_t bytes, enum shmt_memory_policy policy,
                                 const uint32_t *node, uint32_t n_nodes, struct shmt_error *e) {
    (void)topo;
    if (sys.refuse_bind) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "no binding today");
    assert_true(sys.n_bound < 64);
    struct bound *b = &sys.bound[sys.n_bound++];
    *b = (struct bound){.at = at, .bytes = bytes, .policy = policy, .n_nodes = n_nodes};
    for (uint32_t i = 0; i < n_nodes; i++) b->node[i] = node[i];
    return 0;
}

/* As the policies say, but for the node that is full. */
int __wrap_shmt_topo_where(const struct shmt_topo *topo, const void *at, uint64_t bytes, uint64_t page_bytes, uint64_t *on,
                           struct shmt_error *e);
int __wrap_shmt_topo_where(const struct shmt_topo *topo, const void *at, uint64_t bytes, uint64_t page_bytes, uint64_t *on,
                           struct shmt_error *e) {
    (void)topo, (void)page_bytes, (void)e;
    sys.looks++;
    memset(on, 0, NODES * sizeof *on);
    for (uint32_t i = 0; i < sys.n_bound; i++) {
        const struct bound *b = &sys.bound[i];
        if ((const unsigned char *)at < b->at || (const unsigned char *)at >= b->at + b->bytes) continue;
        memset(on, 0, NODES * sizeof *on); /* the last one counts */
        for (uint32_t k = 0; k < b->n_nodes; k++) on[b->node[k]] = bytes / b->n_nodes;
    }
    if (sys.full_node < 0) return 0;
    on[sys.goes_to] += on[sys.full_node] / 2;
    on[sys.full_node] -= on[sys.full_node] / 2;
    return 0;
}

int __real_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_memfd_create(const char *name, unsigned flags) {
    if (!(flags & 4u)) return __real_memfd_create(name, flags); /* MFD_HUGETLB */
    errno = sys.huge_refused;
    return sys.huge_refused ? -1 : __real_memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); /* in ordinary pages */
}

int __real_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice);
int __wrap_madvise(void *at, size_t bytes, int advice) {
    if (advice == MADV_HUGEPAGE) {
        sys.advised = 1;
        return 0;
    }
    return __real_madvise(at, bytes, advice);
}

int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out) {
    const int rc = __real_fstatfs(fd, out);
    if (sys.room.f_blocks) {
        out->f_bsize = sys.room.f_bsize;
        out->f_blocks = sys.room.f_blocks;
        out->f_bavail = sys.room.f_bavail;
    }
    return rc;
}

int __real_posix_fallocate(int fd, off_t off, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t off, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t off, off_t bytes) {
    if (sys.fallocate_calls++ == 0) sys.placed_before = sys.n_bound;
    if (sys.fallocate && sys.fallocate_calls > 1) return sys.fallocate;
    return __real_posix_fallocate(fd, off, bytes);
}

static void note(void *arg, const char *line) {
    (void)arg;
    const size_t used = strlen(sys.notes);
    snprintf(sys.notes + used, sizeof sys.notes - used, "%s\n", line);
}

static const struct shmt_log LOG = {.line = note};

/* ---- helpers ---- */

static struct shmt_topo *topo;
static struct fake_root *root;

static void put_huge(unsigned node, const char *n) {
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/node/node%u/hugepages/hugepages-2048kB/free_hugepages", node);
    fake_root_put(root, path, n);
}

static int setup(void **state) {
    struct shmt_error e = {0};
    memset(&sys, 0, sizeof sys);
    sys.full_node = -1;
    if (fake_root_setup(state) != 0) return -1;
    root = *state;
    setenv("HWLOC_SYNTHETIC", "numa:4(memory=1GiB) core:4 pu:1", 1);
    const int rc = shmt_topo_open_at(root->path, &topo, &e);
    unsetenv("HWLOC_SYNTHETIC");
    return rc;
}

static int teardown(void **state) {
    shmt_topo_close(topo);
    return fake_root_teardown(state);
}

static struct shmt_memory_range on_node(uint64_t off, uint64_t bytes, uint32_t node) {
    return (struct shmt_memory_range){.off = off, .bytes = bytes, .policy = SHMT_MEMORY_BIND, .n_nodes = 1, .node = {node}};
}

static struct shmt_memory_range on_all(uint64_t off, uint64_t bytes) {
    return (struct shmt_memory_range){
        .off = off, .bytes = bytes, .policy = SHMT_MEMORY_INTERLEAVE, .n_nodes = NODES, .node = {0, 1, 2, 3}};
}

static struct shmt_segment_wish wish_for(uint64_t bytes, const struct shmt_memory_range *range, uint32_t n) {
    return (struct shmt_segment_wish){.name = "store",
                                      .fd = -1,
                                      .bytes = bytes,
                                      .fingerprint = FINGERPRINT,
                                      .n_ranges = n,
                                      .range = range,
                                      .topo = topo,
                                      .log = &LOG};
}

static struct shmt_segment made(const struct shmt_segment_wish *wish) {
    struct shmt_segment segment;
    struct shmt_error e = {0};
    if (shmt_segment_create(wish, &segment, &e) != 0) fail_msg("%s", e.text);
    return segment;
}

/* ---- ranges ---- */

static void ranges_are_bound_in_whole_pages_before_any_page_is_placed(void **state) {
    (void)state;
    const struct shmt_memory_range range[] = {
        on_node(5000, 100000, 2), on_all(1 * MIB, 1 * MIB), {.off = 3 * MIB, .bytes = MIB}};
    const struct shmt_segment_wish wish = wish_for(4 * MIB, range, 3);
    struct shmt_segment segment = made(&wish);
    assert_int_equal(sys.n_bound, 2); /* a range without a policy is left alone */
    assert_int_equal(sys.placed_before, 2);
    assert_int_equal(sys.bound[0].policy, SHMT_MEMORY_BIND);
    assert_int_equal(sys.bound[0].node[0], 2);
    const uint64_t from = SHMT_SEGMENT_HEADER_BYTES + 5000, to = from + 100000;
    assert_ptr_equal(sys.bound[0].at, segment.base + from / PAGE * PAGE);
    assert_int_equal(sys.bound[0].bytes, shmt_ceil_div(to, PAGE) * PAGE - from / PAGE * PAGE);
    assert_int_equal(sys.bound[1].policy, SHMT_MEMORY_INTERLEAVE);
    assert_int_equal(sys.bound[1].n_nodes, NODES);
    assert_string_equal(sys.notes, "");
    assert_int_equal(segment.page_bytes, PAGE);
    shmt_segment_detach(&segment);
}

static void ranges_that_are_not_inside_are_not_bound(void **state) {
    (void)state;
    const struct shmt_memory_range range[] = {on_node(4 * MIB, MIB, 1), on_node(0, UINT64_MAX, 1), on_node(0, 0, 1)};
    const struct shmt_segment_wish wish = wish_for(4 * MIB, range, 3);
    struct shmt_segment segment = made(&wish);
    assert_int_equal(sys.n_bound, 0);
    shmt_segment_detach(&segment);
}

static void without_a_topology_ranges_do_not_count(void **state) {
    (void)state;
    const struct shmt_memory_range range = on_node(0, MIB, 1);
    struct shmt_segment_wish wish = wish_for(4 * MIB, &range, 1);
    wish.topo = NULL;
    struct shmt_segment segment = made(&wish);
    assert_int_equal(sys.n_bound + (uint32_t)sys.looks, 0);
    shmt_segment_detach(&segment);
}

static void a_refusal_is_told_once_and_done_without(void **state) {
    (void)state;
    const struct shmt_memory_range range[] = {on_node(0, MIB, 1), on_node(MIB, MIB, 2)};
    const struct shmt_segment_wish wish = wish_for(4 * MIB, range, 2);
    sys.refuse_bind = 1;
    struct shmt_segment segment = made(&wish);
    assert_string_equal(sys.notes, "no binding today: the system decides where the store is placed\n");
    assert_int_equal(sys.looks, 0); /* what was not asked for is not missed */
    shmt_segment_detach(&segment);
}

static void a_full_node_is_told_with_figures(void **state) {
    (void)state;
    const struct shmt_memory_range range[] = {on_node(MIB - SHMT_SEGMENT_HEADER_BYTES, 64 * MIB, 1),
                                              on_node(65 * MIB - SHMT_SEGMENT_HEADER_BYTES, 64 * MIB, 0)};
    const struct shmt_segment_wish wish = wish_for(130 * MIB, range, 2);
    sys.full_node = 1;
    sys.goes_to = 3;
    struct shmt_segment segment = made(&wish);
    assert_string_equal(sys.notes, "32.0 MiB of 64.0 MiB of the store did not fit on node 1 and are on node 3\n");
    shmt_segment_detach(&segment);
}

static void interleaved_pages_are_told_where_a_node_is_full_only(void **state) {
    (void)state;
    const struct shmt_memory_range range = on_all(MIB - SHMT_SEGMENT_HEADER_BYTES, 64 * MIB);
    const struct shmt_segment_wish wish = wish_for(65 * MIB, &range, 1);
    struct shmt_segment segment = made(&wish);
    assert_int_equal(sys.looks, 1);
    assert_string_equal(sys.notes, "");
    shmt_segment_detach(&segment);
    sys.full_node = 2;
    sys.goes_to = 0;
    sys.n_bound = 0;
    segment = made(&wish);
    assert_string_equal(sys.notes, "8.0 MiB of 16.0 MiB of the store did not fit on node 2 and are on node 0\n");
    shmt_segment_detach(&segment);
}

/* ---- huge pages ---- */

static void huge_pages_that_a_node_lacks_are_told_before_any_is_touched(void **state) {
    (void)state;
    const struct shmt_memory_range range[] = {on_node(HUGE - SHMT_SEGMENT_HEADER_BYTES, 2 * HUGE, 1),
                                              on_node(3 * HUGE - SHMT_SEGMENT_HEADER_BYTES, 3 * HUGE, 2)};
    struct shmt_segment_wish wish = wish_for(6 * HUGE - SHMT_SEGMENT_HEADER_BYTES, range, 2);
    wish.page_bytes = HUGE;
    put_huge(0, "9\n");
    put_huge(1, "2\n");
    put_huge(2, "2\n");
    struct shmt_segment segment = made(&wish);
    assert_string_equal(sys.notes,
                        "node 2 has 2 free huge pages of 2 MiB and the store would take 3 there: it gets ordinary pages\n");
    assert_int_equal(segment.page_bytes, PAGE);
    assert_int_equal(segment.bytes, 6 * HUGE);
    shmt_segment_detach(&segment);
    /* Enough where they are bound, too few in all. */
    sys.notes[0] = '\0';
    put_huge(0, "0\n");
    put_huge(2, "3\n");
    segment = made(&wish);
    assert_string_equal(sys.notes,
                        "the machine has 5 free huge pages of 2 MiB and the store would take 6: it gets ordinary pages "
                        "(vm.nr_hugepages reserves huge ones)\n");
    shmt_segment_detach(&segment);
}

static void with_enough_of_them_a_segment_is_in_huge_pages(void **state) {
    (void)state;
    const struct shmt_memory_range range = on_all(HUGE - SHMT_SEGMENT_HEADER_BYTES, 4 * HUGE);
    struct shmt_segment_wish wish = wish_for(4 * HUGE + 5000, &range, 1);
    wish.page_bytes = HUGE;
    for (unsigned i = 0; i < NODES; i++) put_huge(i, "2\n");
    struct shmt_segment segment = made(&wish); /* the file's pages are ordinary ones here: see memfd_create above */
    assert_string_equal(sys.notes, "");
    assert_int_equal(segment.page_bytes, HUGE);
    assert_int_equal(segment.bytes, 5 * HUGE); /* whole ones */
    assert_int_equal((uintptr_t)(sys.bound[0].at - segment.base) % HUGE, 0);
    assert_int_equal(sys.bound[0].bytes, 4 * HUGE);
    assert_true(placed_bytes(&segment) >= 5 * PAGE);
    shmt_segment_detach(&segment);
}

static void a_system_without_huge_pages_is_told(void **state) {
    (void)state;
    struct shmt_segment_wish wish = wish_for(HUGE, NULL, 0);
    wish.page_bytes = HUGE;
    put_huge(0, "9\n");
    sys.huge_refused = ENOSYS;
    struct shmt_segment segment = made(&wish);
    assert_non_null(strstr(sys.notes, "no huge pages for the store: it gets ordinary pages: cannot create a memory file"));
    assert_int_equal(segment.page_bytes, PAGE);
    shmt_segment_detach(&segment);
}

static void transparent_ones_are_asked_for_and_every_page_is_placed(void **state) {
    (void)state;
    struct shmt_segment_wish wish = wish_for(8 * MIB, NULL, 0);
    wish.transparent = 1;
    struct shmt_segment segment = made(&wish);
    assert_int_equal(sys.advised, 1);
    assert_int_equal(segment.transparent, 1);
    assert_int_equal(segment.page_bytes, PAGE);
    assert_true(placed_bytes(&segment) >= segment.bytes);
    shmt_segment_detach(&segment);
}

/* ---- files with a name ---- */

static int empty_file(void) {
    const int fd = __real_memfd_create("named", MFD_CLOEXEC); /* any file of memory that somebody else has made */
    assert_true(fd >= 0);
    return fd;
}

static void a_given_file_becomes_the_segment_and_has_no_seals(void **state) {
    (void)state;
    struct shmt_segment_wish wish = wish_for(MIB, NULL, 0);
    wish.fd = empty_file();
    struct shmt_segment segment = made(&wish), other;
    assert_int_equal(segment.fd, wish.fd);
    struct shmt_error e = {0};
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, 0, &other, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "is not sealed"));
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, SHMT_ATTACH_NAMED, &other, NULL), 0);
    *(uint32_t *)shmt_segment_at(&other, 0, 4) = 7;
    assert_int_equal(*(uint32_t *)shmt_segment_at(&segment, 0, 4), 7);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
    assert_int_equal(fcntl(wish.fd, F_GETFD), -1); /* it was the segment's */
}

static int writes(void *arg) {
    *(volatile uint32_t *)shmt_segment_at(arg, 0, 4) = 1;
    return 0;
}

static void what_is_attached_for_reading_cannot_be_written(void **state) {
    (void)state;
    struct shmt_segment_wish wish = wish_for(MIB, NULL, 0);
    wish.fd = empty_file();
    struct shmt_segment segment = made(&wish), other;
    assert_int_equal(shmt_segment_attach(segment.fd, FINGERPRINT, SHMT_ATTACH_NAMED | SHMT_ATTACH_READ, &other, NULL), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would report it */
        _exit(writes(&other));
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    assert_int_equal(*(uint32_t *)shmt_segment_at(&segment, 0, 4), 0);
    shmt_segment_detach(&other);
    shmt_segment_detach(&segment);
}

static void expect_refused_file(uint64_t bytes, const char *words) {
    struct shmt_segment_wish wish = wish_for(bytes, NULL, 0);
    struct shmt_segment segment = {.fd = 77};
    struct shmt_error e = {0};
    wish.fd = empty_file();
    assert_int_equal(shmt_segment_create(&wish, &segment, &e), SHMTRAIN_E_MEMORY);
    if (!strstr(e.text, words)) fail_msg("\"%s\" is not in \"%s\"", words, e.text);
    assert_int_equal(segment.fd, 77);
    assert_true(fcntl(wish.fd, F_GETFD) >= 0); /* still the caller's */
    close(wish.fd);
}

static void a_small_dev_shm_is_told_before_anything_is_placed(void **state) {
    (void)state;
    sys.room = (struct statfs){.f_bsize = 4096, .f_blocks = 64 * MIB / 4096, .f_bavail = 60 * MIB / 4096};
    expect_refused_file(130 * MIB - SHMT_SEGMENT_HEADER_BYTES,
                        "/dev/shm has 64.0 MiB, 60.0 MiB free, and a named store needs 130 MiB: enlarge it (mount -o "
                        "remount,size=... /dev/shm, docker --shm-size), or train without --name");
    assert_int_equal(sys.fallocate_calls, 0);
}

static void room_that_ends_midway_is_told_the_same_way(void **state) {
    (void)state;
    sys.room = (struct statfs){.f_bsize = 4096, .f_blocks = 200 * MIB / 4096, .f_bavail = 160 * MIB / 4096};
    sys.fallocate = ENOSPC;
    expect_refused_file(130 * MIB - SHMT_SEGMENT_HEADER_BYTES, "/dev/shm has 200 MiB, ");
    assert_int_equal(sys.fallocate_calls, 2);
}

static void huge_pages_of_a_named_store_are_told_to_be_none(void **state) {
    (void)state;
    struct shmt_segment_wish wish = wish_for(MIB, NULL, 0);
    wish.fd = empty_file();
    wish.page_bytes = HUGE;
    struct shmt_segment segment = made(&wish);
    assert_string_equal(sys.notes, "files in /dev/shm cannot use reserved huge pages: the store gets ordinary pages\n");
    shmt_segment_detach(&segment);
}

#define FRESH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        FRESH(ranges_are_bound_in_whole_pages_before_any_page_is_placed),
        FRESH(ranges_that_are_not_inside_are_not_bound),
        FRESH(without_a_topology_ranges_do_not_count),
        FRESH(a_refusal_is_told_once_and_done_without),
        FRESH(a_full_node_is_told_with_figures),
        FRESH(interleaved_pages_are_told_where_a_node_is_full_only),
        FRESH(huge_pages_that_a_node_lacks_are_told_before_any_is_touched),
        FRESH(with_enough_of_them_a_segment_is_in_huge_pages),
        FRESH(a_system_without_huge_pages_is_told),
        FRESH(transparent_ones_are_asked_for_and_every_page_is_placed),
        FRESH(a_given_file_becomes_the_segment_and_has_no_seals),
        FRESH(what_is_attached_for_reading_cannot_be_written),
        FRESH(a_small_dev_shm_is_told_before_anything_is_placed),
        FRESH(room_that_ends_midway_is_told_the_same_way),
        FRESH(huge_pages_of_a_named_store_are_told_to_be_none),
    };
    alarm(120);
    return cmocka_run_group_tests_name("placing", tests, NULL, NULL);
}
