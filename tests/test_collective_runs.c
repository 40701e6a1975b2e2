/* Collectives as worker functions call them, in runs of processes, of threads and of one worker: results, groups, what is lent, what is
 * started, what is refused, and deaths. */
#include <shmtrain/shmtrain.h>
#include "api_help.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/atomic.h"
#include "sync/host.h"

enum { WORKERS = 4, LARGE = 300000 };

static struct shared {
    _Atomic uint32_t good[WORKERS], told[WORKERS], back;
    int status[WORKERS];
    char text[WORKERS][256];
} * shared;

static int set_up(void **state) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : deadline(state);
}

static int tear_down(void **state) {
    (void)state;
    return munmap(shared, sizeof *shared);
}

/* What is left of the run, so that it ends as it should. */
static int drain(shmtrain_session *s) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1)
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    return rc;
}

#define CHECK(condition) \
    if (!(condition))    \
    return shmtrain_fail(s, SHMTRAIN_E_DATA, "line %d: %s; %s", __LINE__, #condition, shmtrain_session_message(s))
#define CALL(call) CHECK((call) == 0)

struct kind_of_run {
    const char *workers, *spawn, *backend;
};
static const struct kind_of_run RUNS[] = {{"4", "processes", "shm"}, {"4", "threads", "shm"},   {"2", "processes", "shm"},
                                          {"1", "processes", "shm"}, {"1", "threads", "plain"}, {"4", "fibers:3", "shm"}};
enum { N_RUNS = sizeof RUNS / sizeof *RUNS };

static struct shmtrain_store *store_of(const struct kind_of_run *kind) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", kind->workers));
    WELL(store, shmtrain_store_set(store, "spawn", kind->spawn));
    WELL(store, shmtrain_store_set(store, "backend", kind->backend));
    WELL(store, shmtrain_store_set(store, "mode", "hogwild"));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_examples(store, 64));
    WELL(store, shmtrain_store_table(store, "t", 4, 1));
    WELL(store, shmtrain_store_lend(store, 2 * LARGE * sizeof(float) + 4096));
    return store;
}

static void run_in_all(shmtrain_worker *work) {
    for (int i = 0; i < N_RUNS; i++) {
        struct shmtrain_store *store = store_of(&RUNS[i]);
        memset(shared, 0, sizeof *shared);
        WELL(store, shmtrain_store_run(store, work, NULL));
        for (uint32_t k = 0; k < (uint32_t)atoi(RUNS[i].workers); k++) assert_int_equal(shared->good[k], 1);
        shmtrain_store_destroy(store);
    }
}

/* ---- every kind ---- */

static int call_every_kind(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s), m = shmtrain_workers(s), root = m - 1;
    const struct shmtrain_collective ints = {.size = sizeof ints, .type = SHMTRAIN_INT32, .op = SHMTRAIN_SUM};
    int32_t in[WORKERS * 2], out[WORKERS * 2], sum = 0;
    (void)arg;
    for (uint32_t i = 0; i < WORKERS * 2; i++) in[i] = (int32_t)(100 * me + i);
    for (uint32_t i = 0; i < m; i++) sum += (int32_t)(100 * i);
    CALL(shmtrain_barrier(s, NULL));
    CALL(shmtrain_broadcast(s, &ints, root, in, me == root ? NULL : out, 2));
    CHECK(me == root || (out[0] == (int32_t)(100 * root) && out[1] == (int32_t)(100 * root + 1)));
    CALL(shmtrain_scatter(s, &ints, root, in, out, 2));
    CHECK(out[0] == (int32_t)(100 * root + 2 * me) && out[1] == (int32_t)(100 * root + 2 * me + 1));
    CALL(shmtrain_gather(s, &ints, root, in, me == root ? out : NULL, 2));
    for (uint32_t i = 0; i < m && me == root; i++)
        CHECK(out[2 * i] == (int32_t)(100 * i) && out[2 * i + 1] == (int32_t)(100 * i + 1));
    CALL(shmtrain_all_gather(s, &ints, in, out, 2));
    for (uint32_t i = 0; i < m; i++) CHECK(out[2 * i] == (int32_t)(100 * i) && out[2 * i + 1] == (int32_t)(100 * i + 1));
    CALL(shmtrain_reduce(s, &ints, root, in, out, 2));
    CHECK(me != root || (out[0] == sum && out[1] == sum + (int32_t)m));
    CALL(shmtrain_all_reduce(s, &ints, in, out, 2));
    CHECK(out[0] == sum && out[1] == sum + (int32_t)m);
    CALL(shmtrain_reduce_scatter(s, &ints, in, out, 2));
    CHECK(out[0] == sum + (int32_t)(2 * m * me) && out[1] == sum + (int32_t)(m * (2 * me + 1)));
    CALL(shmtrain_all_to_all(s, &ints, in, out, 2));
    for (uint32_t i = 0; i < m; i++)
        CHECK(out[2 * i] == (int32_t)(100 * i + 2 * me) && out[2 * i + 1] == (int32_t)(100 * i + 2 * me + 1));
    shared->good[me] = 1;
    return drain(s);
}

static void every_kind_is_called_by_every_kind_of_worker_and_by_one_alone(void **state) {
    (void)state;
    run_in_all(call_every_kind);
}

/* ---- large, private and lent: the same bits ---- */

static int reduce_large(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s), m = shmtrain_workers(s);
    float *in = malloc(LARGE * sizeof *in), *out = malloc(LARGE * sizeof *out);
    void *lent_in, *lent_out;
    (void)arg;
    CHECK(in && out);
    CALL(shmtrain_collective_lend(s, LARGE * sizeof(float), &lent_in));
    CALL(shmtrain_collective_lend(s, LARGE * sizeof(float), &lent_out));
    for (uint32_t i = 0; i < LARGE; i++) in[i] = (float)(me + 1) / (float)(i + 3);
    memcpy(lent_in, in, LARGE * sizeof *in);
    CALL(shmtrain_all_reduce(s, NULL, in, out, LARGE));
    for (uint32_t i = 0; i < LARGE; i++) {
        float sum = 1.0f / (float)(i + 3);
        for (uint32_t j = 1; j < m; j++) sum += (float)(j + 1) / (float)(i + 3);
        CHECK(out[i] == sum);
    }
    CALL(shmtrain_all_reduce(s, NULL, lent_in, lent_out, LARGE));
    CHECK(memcmp(lent_out, out, LARGE * sizeof *out) == 0);
    CALL(shmtrain_all_reduce(s, NULL, lent_in, lent_in, LARGE));
    CHECK(memcmp(lent_in, out, LARGE * sizeof *out) == 0);
    CALL(shmtrain_all_reduce(s, NULL, in, in, LARGE));
    CHECK(memcmp(in, out, LARGE * sizeof *out) == 0);
    free(in);
    free(out);
    shared->good[me] = 1;
    return drain(s);
}

static void buffers_that_are_lent_give_the_bits_of_private_ones(void **state) {
    (void)state;
    run_in_all(reduce_large);
}

/* ---- started ---- */

static int start_some(shmtrain_session *s, void *arg) {
    enum { N = 20 };
    const struct shmtrain_collective longs = {.size = sizeof longs, .type = SHMTRAIN_INT64, .op = SHMTRAIN_MAX};
    const uint32_t me = shmtrain_rank(s);
    int64_t in[N], out[N];
    uint64_t ticket[N], more;
    (void)arg;
    for (int i = 0; i < N; i++) in[i] = 10 * (int64_t)me + i;
    for (int i = 0; i < N; i++)
        CALL(shmtrain_collective_start(s, SHMTRAIN_ALL_REDUCE, &longs, 0, &in[i], &out[i], 1, &ticket[i]));
    CALL(shmtrain_collective_wait(s, ticket[N / 2]));
    for (int i = 0; i <= N / 2; i++) CHECK(out[i] == 10 * (int64_t)(shmtrain_workers(s) - 1) + i);
    CALL(shmtrain_barrier(s, NULL)); /* completes all that were started before */
    CHECK(shmtrain_collective_test(s, ticket[N - 1]) == 1);
    for (int i = 0; i < N; i++) CHECK(out[i] == 10 * (int64_t)(shmtrain_workers(s) - 1) + i);
    CALL(shmtrain_collective_start(s, SHMTRAIN_BARRIER, NULL, 0, NULL, NULL, 0, &more));
    int rc;
    while ((rc = shmtrain_collective_test(s, more)) == 0) continue;
    CHECK(rc == 1);
    shared->good[me] = 1;
    return drain(s);
}

static void what_is_started_completes_in_its_order(void **state) {
    (void)state;
    run_in_all(start_some);
}

/* Worker 0 starts two, and waits for the first: the others begin the second one when it has come back. */
static int wait_for_the_first(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s);
    uint64_t first, second;
    (void)arg;
    CALL(shmtrain_collective_start(s, SHMTRAIN_BARRIER, NULL, 0, NULL, NULL, 0, &first));
    if (me == 0) CALL(shmtrain_collective_start(s, SHMTRAIN_BARRIER, NULL, 0, NULL, NULL, 0, &second));
    CALL(shmtrain_collective_wait(s, first));
    if (me == 0) store_release(&shared->back, 1); /* pairs with the acquire below */
    while (load_acquire(&shared->back) == 0) shmt_sleep_ns(1000);
    if (me > 0) CALL(shmtrain_collective_start(s, SHMTRAIN_BARRIER, NULL, 0, NULL, NULL, 0, &second));
    CALL(shmtrain_collective_wait(s, second));
    shared->good[me] = 1;
    return drain(s);
}

static void who_waits_for_one_does_not_wait_for_the_next(void **state) {
    (void)state;
    run_in_all(wait_for_the_first);
}

/* ---- groups ---- */

static int sum_over(shmtrain_session *s, struct shmtrain_group *g, int64_t *out) {
    const struct shmtrain_collective how = {.size = sizeof how, .type = SHMTRAIN_INT64, .op = SHMTRAIN_SUM, .group = g};
    const int64_t mine = INT64_C(1) << (4 * shmtrain_rank(s)); /* a digit for each worker */
    *out = 0;
    return shmtrain_group_rank(g) == UINT32_MAX ? 0 : shmtrain_all_reduce(s, &how, &mine, out, 1);
}

static int make_groups(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s), list[] = {2, 0, 1};
    struct shmtrain_group *of_list, *of_range, *of_colour, *both, *shared_by, *rest;
    int64_t sum;
    (void)arg;
    if (shmtrain_workers(s) < 4) {
        shared->good[me] = 1;
        return drain(s);
    }
    CALL(shmtrain_group_of_list(s, list, 3, &of_list));
    CHECK(shmtrain_group_size(of_list) == 3 && shmtrain_group_member(of_list, 0) == 2 &&
          shmtrain_group_member(of_list, 3) == UINT32_MAX);
    CHECK(shmtrain_group_rank(of_list) == (me == 3 ? UINT32_MAX : (me + 1) % 3));
    CALL(shmtrain_group_of_range(s, 1, 4, 2, &of_range));
    CALL(shmtrain_group_of_colour(s, me / 2, &of_colour));
    CALL(shmtrain_group_union(s, of_range, of_list, &both));
    CALL(shmtrain_group_intersection(s, of_list, of_range, &shared_by));
    CALL(shmtrain_group_difference(s, of_list, of_range, &rest));
    CALL(sum_over(s, of_list, &sum));
    CHECK(sum == (me == 3 ? 0 : 0x111));
    CALL(sum_over(s, of_range, &sum));
    CHECK(sum == (me % 2 ? 0x1010 : 0));
    CALL(sum_over(s, of_colour, &sum));
    CHECK(sum == (me < 2 ? 0x11 : 0x1100));
    CALL(sum_over(s, both, &sum));
    CHECK(sum == 0x1111 && shmtrain_group_member(both, 0) == 1 && shmtrain_group_member(both, 2) == 2);
    CALL(sum_over(s, shared_by, &sum));
    CHECK(sum == (me == 1 ? 0x10 : 0));
    CALL(sum_over(s, rest, &sum));
    CHECK(sum == (me == 0 || me == 2 ? 0x101 : 0));
    CALL(shmtrain_group_destroy(s, of_list));
    CALL(shmtrain_group_destroy(s, of_colour));
    CALL(shmtrain_group_destroy(s, NULL));
    shared->good[me] = 1;
    return drain(s);
}

static void groups_are_made_by_lists_ranges_colours_and_of_one_another(void **state) {
    (void)state;
    run_in_all(make_groups);
}

/* ---- what is refused ---- */

static int refused_call(shmtrain_session *s, void *arg) {
    const int which = *(const int *)arg;
    const struct shmtrain_collective own = {.size = sizeof own, .op = SHMTRAIN_OWN}, type = {.size = sizeof type, .type = 9};
    float x[2] = {0}, y[2];
    struct shmtrain_group *g;
    switch (which) {
        case 0:
            return shmtrain_all_reduce(s, &own, x, y, 2);
        case 1:
            return shmtrain_all_reduce(s, &type, x, y, 2);
        case 2:
            return shmtrain_all_reduce(s, NULL, x, NULL, 2);
        case 3:
            return shmtrain_broadcast(s, NULL, 77, x, y, 2);
        case 4:
            return shmtrain_all_reduce(s, NULL, (char *)x + 1, y, 1);
        case 5:
            return shmtrain_all_reduce(s, NULL, x, y, UINT64_MAX / 2);
        case 6:
            return shmtrain_collective_wait(s, 1);
        case 7:
            return shmtrain_collective_start(s, 99, NULL, 0, x, y, 1, NULL);
        default:
            return shmtrain_group_of_range(s, 0, 99, 1, &g);
    }
}

static void calls_that_cannot_be_are_refused_with_a_sentence(void **state) {
    static const char *const WHY[] = {"all-reduce: an own operator needs its function",
                                      "all-reduce: there is no such type",
                                      "all-reduce: a buffer is missing",
                                      "broadcast: there is no such root",
                                      "all-reduce: a buffer is not aligned",
                                      "all-reduce: n is beyond all memory",
                                      "no collective was started with ticket 1",
                                      "there is no such kind",
                                      "ranks 0 to 99 in steps of 1: the run has 2 workers"};
    (void)state;
    for (int i = 0; i < (int)(sizeof WHY / sizeof *WHY); i++) {
        struct shmtrain_store *store = store_of(&RUNS[2]);
        refused(store, shmtrain_store_run(store, refused_call, &i), SHMTRAIN_E_USAGE, WHY[i]);
        shmtrain_store_destroy(store);
    }
}

static void runs_with_a_name_have_none(void **state) {
    char name[64], why[256];
    (void)state;
    snprintf(name, sizeof name, "collective-%d", (int)getpid());
    struct shmtrain_store *store = store_of(&RUNS[2]);
    WELL(store, shmtrain_store_set(store, "name", name));
    refused(store, shmtrain_store_run(store, call_every_kind, NULL), SHMTRAIN_E_USAGE, "barrier: this run has no collectives");
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_named_remove(name, 0, why, sizeof why), 0);
}

/* ---- deaths ---- */

static int die_in_the_middle(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s);
    const int when = *(const int *)arg;
    float *x = calloc(LARGE, sizeof *x);
    int rc = x ? 0 : SHMTRAIN_E_MEMORY;
    for (int i = 0; i < 1000 && rc == 0; i++) {
        if (me == 2 && i == when) raise(SIGKILL);
        rc = i % 2 ? shmtrain_barrier(s, NULL) : shmtrain_all_reduce(s, NULL, x, x, LARGE);
    }
    shared->status[me] = rc;
    snprintf(shared->text[me], sizeof shared->text[me], "%s", shmtrain_session_message(s));
    free(x);
    return rc < 0 ? rc : drain(s);
}

static void a_worker_that_is_killed_ends_the_run_and_is_named(void **state) {
    static const char *const ON_DEATH[] = {"abort", "respawn", "continue"};
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int when = 1; when < 8; when += 3) {
            struct shmtrain_store *store = store_of(&RUNS[0]);
            memset(shared, 0, sizeof *shared);
            WELL(store, shmtrain_store_set(store, "on-death", ON_DEATH[i]));
            assert_int_equal(shmtrain_store_run(store, die_in_the_middle, &when), SHMTRAIN_E_DIED);
            assert_non_null(strstr(shmtrain_store_message(store), "worker 2"));
            for (int k = 0; k < WORKERS; k++)
                if (k != 2) assert_true(shared->status[k] == SHMTRAIN_E_DIED || shared->status[k] == SHMTRAIN_E_STOPPED);
            shmtrain_store_destroy(store);
        }
}

/* It dies before it has taken part in anything: its next life takes part. */
static int die_first(shmtrain_session *s, void *arg) {
    const uint32_t me = shmtrain_rank(s);
    (void)arg;
    if (me == 2 && atomic_exchange(&shared->told[2], 1) == 0) raise(SIGKILL);
    return call_every_kind(s, NULL);
}

static void a_worker_that_dies_before_its_first_call_is_started_again(void **state) {
    (void)state;
    struct shmtrain_store *store = store_of(&RUNS[0]);
    WELL(store, shmtrain_store_run(store, die_first, NULL));
    for (int k = 0; k < WORKERS; k++) assert_int_equal(shared->good[k], 1);
    shmtrain_store_destroy(store);
}

static int die_first_of_all(shmtrain_session *s, void *arg) {
    (void)arg;
    if (shmtrain_rank(s) == 2) raise(SIGKILL);
    return shmtrain_barrier(s, NULL);
}

static void a_worker_that_dies_before_its_first_call_and_does_not_come_back_is_named(void **state) {
    (void)state;
    struct shmtrain_store *store = store_of(&RUNS[0]);
    WELL(store, shmtrain_store_set(store, "on-death", "continue"));
    assert_int_equal(shmtrain_store_run(store, die_first_of_all, NULL), SHMTRAIN_E_DIED);
    assert_non_null(strstr(shmtrain_store_message(store), "worker 2"));
    shmtrain_store_destroy(store);
}

static int fail_alone(shmtrain_session *s, void *arg) {
    (void)arg;
    if (shmtrain_rank(s) == 1) return shmtrain_fail(s, SHMTRAIN_E_DATA, "one has had enough");
    return shmtrain_barrier(s, NULL);
}

static void a_worker_that_fails_ends_the_wait_of_the_others(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = store_of(&RUNS[i]);
        refused(store, shmtrain_store_run(store, fail_alone, NULL), SHMTRAIN_E_DATA, "one has had enough");
        shmtrain_store_destroy(store);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(every_kind_is_called_by_every_kind_of_worker_and_by_one_alone),
        TEST(buffers_that_are_lent_give_the_bits_of_private_ones),
        TEST(what_is_started_completes_in_its_order),
        TEST(who_waits_for_one_does_not_wait_for_the_next),
        TEST(groups_are_made_by_lists_ranges_colours_and_of_one_another),
        TEST(calls_that_cannot_be_are_refused_with_a_sentence),
        TEST(runs_with_a_name_have_none),
        TEST(a_worker_that_is_killed_ends_the_run_and_is_named),
        TEST(a_worker_that_dies_before_its_first_call_is_started_again),
        TEST(a_worker_that_dies_before_its_first_call_and_does_not_come_back_is_named),
        TEST(a_worker_that_fails_ends_the_wait_of_the_others),
    };
    return cmocka_run_group_tests_name("collectives in runs", tests, NULL, NULL);
}
