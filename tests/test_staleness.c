/* The staleness bound, as an application sees it (Ho et al. 2013): who begins clock c sees what everybody who still has work
 * has pushed in the clocks up to c - s - 1, and nobody is held back more than that. */
#include "api_help.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#define WORKERS  4
#define ITEM     4
#define EXAMPLES 1600 /* 400 items of one epoch */
#define LOGGED   100000

/* What the workers tell the test, in memory that processes share too; each writes what is its own. */
struct told {
    uint64_t staleness;
    uint32_t items[WORKERS]; /* in all */
    uint64_t most_ahead[WORKERS];
    struct {
        uint32_t n, behind[LOGGED], value[LOGGED]; /* who was seen farther behind than the bound allows, and where */
    } log[WORKERS];
};

static void pause_ns(long ns) {
    const struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

static int look(shmtrain_session *s, struct told *told, uint32_t me, uint32_t clock) {
    for (uint32_t j = 0; j < WORKERS; j++) {
        float pushed;
        const int rc = shmtrain_pull(s, 0, j, 1, &pushed);
        if (rc < 0) return rc;
        const uint32_t value = (uint32_t)pushed;
        if (j == me) continue;
        if (clock > value && clock - value > told->most_ahead[me]) told->most_ahead[me] = clock - value;
        if (value + told->staleness >= clock || told->log[me].n == LOGGED) continue;
        told->log[me].behind[told->log[me].n] = j;
        told->log[me].value[told->log[me].n++] = value;
    }
    return 0;
}

/* Worker 0 is slow. Everybody counts its clocks in its own row. */
static int count_clocks(shmtrain_session *s, void *arg) {
    struct told *told = arg;
    const uint32_t me = shmtrain_rank(s);
    struct shmtrain_work w;
    uint32_t clock = 0;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if ((rc = look(s, told, me, clock)) < 0) return rc;
        if (me == 0) pause_ns(told->staleness < UINT64_MAX ? 300000 : 5000000); /* whom nobody waits for may be slower */
        if ((rc = shmtrain_push(s, 0, me, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
        clock++;
    }
    told->items[me] = clock;
    return rc;
}

/* Whoever was seen too far behind must have been at its end: it had no more work, and nobody has to wait for it. */
static void check_bound(const struct told *told) {
    for (uint32_t me = 0; me < WORKERS; me++)
        for (uint32_t i = 0; i < told->log[me].n; i++)
            assert_int_equal(told->log[me].value[i], told->items[told->log[me].behind[i]]);
}

static void run(const char *spawn, const char *write, uint64_t staleness, struct told *told) {
    struct shmtrain_store *store;
    char s[24] = "inf", item[8];
    uint32_t items = 0;
    memset(told, 0, sizeof *told);
    told->staleness = staleness;
    if (staleness < UINT64_MAX) snprintf(s, sizeof s, "%llu", (unsigned long long)staleness);
    snprintf(item, sizeof item, "%d", ITEM);
    assert_int_equal(shmtrain_store_create(&store), 0);
    const char *const options[][2] = {{"spawn", spawn},  {"workers", "4"}, {"epochs", "1"},
                                      {"mode", "async"}, {"write", write}, {"staleness", s},
                                      {"item", item},    {"rate", "1"},    {"schedule", "constant"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    assert_int_equal(shmtrain_store_table(store, "clocks", WORKERS, 1), 0);
    WELL(store, shmtrain_store_examples(store, EXAMPLES));
    WELL(store, shmtrain_store_run(store, count_clocks, told));
    for (uint32_t j = 0; j < WORKERS; j++) {
        assert_true(read_one(store, j) == (float)told->items[j]);
        items += told->items[j];
    }
    assert_int_equal(items, EXAMPLES / ITEM);
    shmtrain_store_destroy(store);
}

static struct told *shared(void) {
    void *memory = mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void nobody_begins_a_clock_before_the_bound_allows(void **state) {
    static const uint64_t BOUNDS[] = {0, 1, 4};
    static const char *const WRITES[] = {"racy", "atomic", "locked"};
    struct told *told = shared();
    (void)state;
    for (int spawn = 0; spawn < 2; spawn++)
        for (size_t i = 0; i < 9; i++) {
            run(SPAWNS[spawn], WRITES[i % 3], BOUNDS[i / 3], told);
            check_bound(told);
        }
    munmap(told, sizeof *told);
}

/* The bound is reached, not only kept: the others run ahead of a slow worker as far as they may. */
static void a_bound_lets_the_fast_run_ahead_as_far_as_it_says(void **state) {
    struct told *told = shared();
    (void)state;
    for (uint64_t bound = 1; bound <= 8; bound *= 2) {
        uint64_t most = 0;
        run("threads", "atomic", bound, told);
        for (uint32_t me = 1; me < WORKERS; me++) most = told->most_ahead[me] > most ? told->most_ahead[me] : most;
        assert_true(most >= bound);
    }
    munmap(told, sizeof *told);
}

static void without_a_bound_a_slow_worker_does_less_and_nobody_waits(void **state) {
    struct told *told = shared();
    (void)state;
    run("threads", "racy", UINT64_MAX, told);
    assert_true(told->items[0] < EXAMPLES / ITEM / WORKERS); /* else the others had no processor for half a second */
    munmap(told, sizeof *told);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nobody_begins_a_clock_before_the_bound_allows, deadline),
        cmocka_unit_test_setup(a_bound_lets_the_fast_run_ahead_as_far_as_it_says, deadline),
        cmocka_unit_test_setup(without_a_bound_a_slow_worker_does_less_and_nobody_waits, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
