/* Collectives on memory that is given: every kind, algorithm, type, operator and shape of group, against a reference that is computed one
 * after the other; orders of calls; what is started; members that are gone. */
#include "collective_draw.h"

#include <time.h>

static uint64_t seed_of_test;

static void play_seeds(bool processes, uint32_t seeds) {
    for (uint32_t i = 0; i < seeds; i++) {
        struct hall *hall = build(1 + i % MOST, seed_of_test + i, i % 3 ? 256 : 4096, 2 * ROOM + 256, play_all);
        perform(hall, processes);
        tear_down(hall);
    }
}

static void every_operation_is_as_the_reference_with_threads(void **state) {
    (void)state;
    play_seeds(false, 90);
}

static void every_operation_is_as_the_reference_with_processes(void **state) {
    (void)state;
    play_seeds(true, 45);
}

/* ---- each algorithm of each kind, by its name ---- */

static void play_named(struct hall *hall, struct shmt_coll *c) {
    struct buffers b = {.in = malloc(ROOM), .out = malloc(ROOM)};
    uint64_t number = 0;
    bool good = b.in && b.out;
    for (uint32_t kind = SHMTRAIN_BARRIER; kind <= SHMTRAIN_ALL_TO_ALL; kind++)
        for (uint32_t algorithm = SHMTRAIN_AUTO; algorithm <= SHMTRAIN_PAIRWISE; algorithm++)
            for (uint32_t size = 0; size < 3 && good; size++, number++) {
                const uint64_t n = size == 0 ? 1 : size == 1 ? 50 : 1000;
                struct draw d = {.number = number, .type = SHMTRAIN_FLOAT};
                d.op = (struct shmt_coll_op){.kind = kind,
                                             .algorithm = algorithm,
                                             .group = c->all,
                                             .root = is_rooted(kind) ? hall->n - 1 : 0,
                                             .each = 4};
                d.op.fold = (struct shmt_coll_fold){.type = SHMTRAIN_FLOAT, .op = SHMTRAIN_SUM};
                d.op.n = kind == SHMTRAIN_BARRIER ? 0 : n;
                if (!has_algorithm(kind, algorithm, hall->n)) continue;
                good = run_one(hall, c, &d, &b);
            }
    free(b.in);
    free(b.out);
}

static void every_algorithm_that_a_kind_has_gives_the_bits_of_its_order(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= MOST; n++) {
        struct hall *hall = build(n, seed_of_test, 512, 0, play_named);
        perform(hall, false);
        tear_down(hall);
    }
}

/* ---- a barrier, and a root that runs ahead ---- */

static _Atomic uint32_t come;

static void play_barrier(struct hall *hall, struct shmt_coll *c) {
    for (uint32_t i = 1; i <= 300; i++) {
        const struct shmt_coll_op op = {
            .kind = SHMTRAIN_BARRIER, .algorithm = i % 3 ? SHMTRAIN_FLAT : SHMTRAIN_BRUCK, .group = c->all, .each = 1};
        uint64_t ticket;
        atomic_fetch_add(&come, 1);
        if (shmt_coll_start(c, &op, &ticket) < 0 || shmt_coll_wait_for(c, ticket) < 0) return;
        if (load_relaxed(&come) < i * hall->n) complain(hall, "barrier %u was left before all had come", i);
    }
}

static void nobody_leaves_a_barrier_before_all_have_come(void **state) {
    (void)state;
    for (uint32_t n = 2; n <= MOST; n += n < 4 ? 1 : 5) {
        struct hall *hall = build(n, 0, 256, 0, play_barrier);
        store_relaxed(&come, 0);
        perform(hall, false);
        tear_down(hall);
    }
}

/* A root that never waits for the others must not write over what they have not read. */
static void play_ahead(struct hall *hall, struct shmt_coll *c) {
    for (uint32_t i = 0; i < 200; i++) {
        int32_t x[100], y[100];
        const uint64_t n = i % 2 ? 3 : 100;
        uint64_t ticket;
        for (int k = 0; k < 100; k++) x[k] = (int32_t)i * 1000 + k;
        const struct shmt_coll_op op = {.kind = SHMTRAIN_BROADCAST,
                                        .algorithm = SHMTRAIN_FLAT,
                                        .fold = {.type = SHMTRAIN_INT32},
                                        .group = c->all,
                                        .each = 4,
                                        .in = (unsigned char *)x,
                                        .out = (unsigned char *)y,
                                        .n = n};
        if (c->place.self == hall->n - 1 && i % 50 == 0) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        if (shmt_coll_start(c, &op, &ticket) < 0 || shmt_coll_wait_for(c, ticket) < 0) return;
        if (memcmp(x, y, n * 4) != 0) complain(hall, "broadcast %u was written over", i);
    }
}

static void a_root_that_runs_ahead_writes_over_nothing(void **state) {
    (void)state;
    for (uint32_t n = 2; n <= 4; n++) {
        struct hall *hall = build(n, 0, 256, 0, play_ahead);
        perform(hall, false);
        tear_down(hall);
    }
}

/* ---- members that differ, or are gone ---- */

static int seen[MOST];

static void play_differing(struct hall *hall, struct shmt_coll *c) {
    float x[8] = {0}, y[8];
    struct shmt_coll_op op = {.kind = SHMTRAIN_ALL_REDUCE,
                              .algorithm = SHMTRAIN_FLAT,
                              .fold = {.type = SHMTRAIN_FLOAT},
                              .group = c->all,
                              .each = 4,
                              .in = (unsigned char *)x,
                              .out = (unsigned char *)y,
                              .n = c->place.self == 1 ? 7 : 8};
    uint64_t ticket;
    (void)hall;
    if (shmt_coll_start(c, &op, &ticket) == 0) (void)shmt_coll_wait_for(c, ticket);
    seen[c->place.self] = c->error->status;
    assert_non_null(strstr(c->error->text, "makes another call"));
    shmt_error_clear(c->error);
}

static void members_that_call_different_things_are_told(void **state) {
    (void)state;
    struct hall *hall = build(2, 0, 256, 0, play_differing);
    perform(hall, false);
    for (int i = 0; i < 2; i++) assert_int_equal(seen[i], SHMTRAIN_E_USAGE);
    tear_down(hall);
}

static void play_without_last(struct hall *hall, struct shmt_coll *c) {
    const struct shmt_coll_op op = {.kind = SHMTRAIN_BARRIER, .algorithm = SHMTRAIN_FLAT, .group = c->all, .each = 1};
    uint64_t ticket;
    const bool last = c->place.self == hall->n - 1;
    for (int i = 0; i < (last ? 3 : 4); i++)
        if (shmt_coll_start(c, &op, &ticket) < 0 || shmt_coll_wait_for(c, ticket) < 0) break;
    if (last) shmt_coll_leave(hall->words, hall->n, c->place.self, true); /* as whoever collects a dead process does */
    seen[c->place.self] = c->error->status;
    if (!last) assert_non_null(strstr(c->error->text, "worker "));
    shmt_error_clear(c->error);
    if (!last) shmt_coll_leave(hall->words, hall->n, c->place.self, false);
}

static void a_member_that_dies_leaves_nobody_waiting(void **state) {
    (void)state;
    for (uint32_t n = 2; n <= 5; n++) {
        struct hall *hall = build(n, 0, 256, 0, play_without_last);
        perform(hall, false);
        for (uint32_t i = 0; i + 1 < n; i++) assert_int_equal(seen[i], SHMTRAIN_E_DIED);
        tear_down(hall);
    }
}

/* ---- what is refused ---- */

static void play_refused(struct hall *hall, struct shmt_coll *c) {
    static const struct {
        uint32_t kind, algorithm;
        const char *why;
    } CASES[] = {{SHMTRAIN_BARRIER, SHMTRAIN_RING, "barrier has no algorithm ring"},
                 {SHMTRAIN_GATHER, SHMTRAIN_SLICED, "gather has no algorithm sliced"},
                 {SHMTRAIN_ALL_REDUCE, SHMTRAIN_DOUBLING, "needs a power of two of members, and the group has 3"},
                 {SHMTRAIN_ALL_REDUCE, 99, "there is no algorithm 99"}};
    uint64_t ticket;
    void *at;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        const struct shmt_coll_op op = {.kind = CASES[i].kind, .algorithm = CASES[i].algorithm, .group = c->all, .each = 4};
        if (shmt_coll_start(c, &op, &ticket) != SHMTRAIN_E_USAGE || !strstr(c->error->text, CASES[i].why))
            complain(hall, "case %zu: %s", i, c->error->text);
        shmt_error_clear(c->error);
    }
    if (shmt_coll_lend(c, 300, &at) != SHMTRAIN_E_MEMORY) complain(hall, "more was lent than there is");
    shmt_error_clear(c->error);
    if (shmt_coll_lend(c, 100, &at) != 0 || shmt_coll_lend(c, 100, &at) != 0) complain(hall, "%s", c->error->text);
    if ((uintptr_t)at % SHMT_LINE) complain(hall, "what is lent has no line of its own");
    const uint32_t twice[] = {1, 1}, none[] = {3};
    struct shmtrain_group *g;
    if (shmt_coll_group_join(c, twice, 2, &g) != SHMTRAIN_E_USAGE) complain(hall, "a member was twice in a group");
    shmt_error_clear(c->error);
    if (shmt_coll_group_join(c, none, 1, &g) != SHMTRAIN_E_USAGE) complain(hall, "a member was not there");
    shmt_error_clear(c->error);
}

static void what_cannot_be_is_refused(void **state) {
    (void)state;
    struct hall *hall = build(3, 0, 256, 256, play_refused);
    perform(hall, false);
    tear_down(hall);
}

/* Groups that cross: each worker may be in fifteen, and slots are found again after they were given back. */
static void play_many_groups(struct hall *hall, struct shmt_coll *c) {
    struct shmtrain_group *g[SHMTRAIN_COLLECTIVE_GROUPS];
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < SHMTRAIN_COLLECTIVE_GROUPS; i++) {
            const uint32_t pair[] = {i % hall->n, (i + 1) % hall->n};
            const uint32_t all[] = {0, 1, 2};
            if (shmt_coll_group_join(c, i % 2 ? pair : all, i % 2 ? 2 : 3, &g[i]) < 0) return;
        }
        for (uint32_t i = 0; i < SHMTRAIN_COLLECTIVE_GROUPS; i++) {
            int64_t x = c->place.self + 1, y = 0, sum = 0;
            const struct shmt_coll_op op = {.kind = SHMTRAIN_ALL_REDUCE,
                                            .algorithm = SHMTRAIN_AUTO,
                                            .fold = {.type = SHMTRAIN_INT64},
                                            .group = g[i],
                                            .each = 8,
                                            .in = (unsigned char *)&x,
                                            .out = (unsigned char *)&y,
                                            .n = 1};
            uint64_t ticket;
            for (uint32_t k = 0; k < g[i]->n; k++) sum += g[i]->rank[k] + 1;
            if (g[i]->me != UINT32_MAX && (shmt_coll_start(c, &op, &ticket) < 0 || shmt_coll_wait_for(c, ticket) < 0)) return;
            if (g[i]->me != UINT32_MAX && y != sum) complain(hall, "group %u: %d", i, (int)y);
        }
        for (uint32_t i = 0; i < SHMTRAIN_COLLECTIVE_GROUPS; i++)
            if (shmt_coll_group_leave(c, g[i]) < 0) return;
    }
}

static void slots_of_groups_are_used_again(void **state) {
    (void)state;
    struct hall *hall = build(3, 0, 256, 0, play_many_groups);
    perform(hall, false);
    tear_down(hall);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_algorithm_that_a_kind_has_gives_the_bits_of_its_order),
        cmocka_unit_test(every_operation_is_as_the_reference_with_threads),
        cmocka_unit_test(every_operation_is_as_the_reference_with_processes),
        cmocka_unit_test(nobody_leaves_a_barrier_before_all_have_come),
        cmocka_unit_test(a_root_that_runs_ahead_writes_over_nothing),
        cmocka_unit_test(members_that_call_different_things_are_told),
        cmocka_unit_test(a_member_that_dies_leaves_nobody_waiting),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(slots_of_groups_are_used_again),
    };
    const char *given = getenv("TEST_SEED");
    seed_of_test = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("TEST_SEED=%llu\n", (unsigned long long)seed_of_test);
    alarm(300); /* a wait that nobody ends must fail, not hang */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
