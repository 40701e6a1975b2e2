/* Runs over several hosts as an application has them (options hosts, rank): two stores of one process are two hosts, each in a thread of
 * its own, with a worker function. */
#include "api_help.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include <shmtrain/collective.h>

#include "ports_help.h"

#define EXAMPLES 640

struct host {
    struct shmtrain_store *store;
    int rc;
};

/* Row 0 counts examples, row 1 those of host 1. */
static int work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    if (shmtrain_hosts(s) != 2 || shmtrain_host(s) > 1) return shmtrain_fail(s, SHMTRAIN_E_USAGE, "this is another run");
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float up[2] = {-(float)w.n, shmtrain_host(s) == 1 ? -(float)w.n : 0};
        rc = shmtrain_push(s, 0, 0, 2, up);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

static void *run(void *host) {
    struct host *h = host;
    h->rc = shmtrain_store_run(h->store, work, NULL);
    return NULL;
}

static void make_two(struct host h[2], const char *epochs) {
    static const char *const RANK[] = {"0", "1"};
    choose_ports(2);
    for (int i = 0; i < 2; i++) {
        h[i].store = make("processes", i ? "1" : "2", epochs, EXAMPLES);
        WELL(h[i].store, shmtrain_store_set(h[i].store, "rate", "1"));
        WELL(h[i].store, shmtrain_store_set(h[i].store, "hosts", g_list));
        WELL(h[i].store, shmtrain_store_set(h[i].store, "rank", RANK[i]));
    }
}

static void run_both(struct host h[2], void *(*run_one)(void *)) {
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_one, &h[i]), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(thread[i], NULL), 0);
}

/* A worker function runs unchanged: each example is somebody's, and all hosts have what all have pushed. And again. */
static void two_stores_of_one_process_are_two_hosts(void **state) {
    struct host h[2];
    (void)state;
    make_two(h, "2");
    for (int again = 0; again < 3; again++) {
        run_both(h, run);
        for (int i = 0; i < 2; i++) WELL(h[i].store, h[i].rc);
        const float batches = (float)(again + 1) * 2 * EXAMPLES / 64; /* each update is a mean over the batch */
        for (int i = 0; i < 2; i++) {
            assert_true(read_one(h[i].store, 0) == batches); /* of n examples each chunk pushes -n */
            assert_true(read_one(h[i].store, 1) == batches / 2);
            assert_int_equal(shmtrain_store_report(h[i].store)->hosts, 2);
            assert_int_equal(shmtrain_store_report(h[i].store)->host, i);
        }
    }
    for (int i = 0; i < 2; i++) { /* and alone again */
        WELL(h[i].store, shmtrain_store_set(h[i].store, "hosts", ""));
        WELL(h[i].store, shmtrain_store_set(h[i].store, "rank", "none"));
    }
    for (int i = 0; i < 2; i++) shmtrain_store_destroy(h[i].store);
}

/* Behind an epoch, where all have the same: a whole number of epochs' batches. Another host need not ask. */
static void a_host_takes_snapshots_behind_epochs(void **state) {
    struct host h[2];
    struct shmtrain_store *copy = make("processes", "1", "1", EXAMPLES);
    uint64_t steps = 0;
    pthread_t other;
    (void)state;
    make_two(h, "2000");
    WELL(h[0].store, shmtrain_store_will_snapshot(h[0].store, 1));
    assert_int_equal(pthread_create(&other, NULL, run, &h[1]), 0);
    WELL(h[0].store, shmtrain_store_start(h[0].store, work, NULL));
    for (int again = 0; again < 3; again++) {
        const uint64_t before = steps;
        WELL(h[0].store, shmtrain_store_snapshot(h[0].store, copy, 60, &steps));
        assert_true(steps > before && steps % (EXAMPLES / 64) == 0);
        assert_true(read_one(copy, 0) == (float)steps && read_one(copy, 1) == (float)steps / 2);
    }
    shmtrain_store_stop(h[0].store);
    struct pollfd readable = {.fd = shmtrain_store_fd(h[0].store), .events = POLLIN};
    int rc;
    while ((rc = shmtrain_store_step(h[0].store)) == 1) poll(&readable, 1, 1000);
    WELL(h[0].store, rc);
    assert_int_equal(pthread_join(other, NULL), 0);
    WELL(h[1].store, h[1].rc);
    shmtrain_store_destroy(copy);
    for (int i = 0; i < 2; i++) shmtrain_store_destroy(h[i].store);
}

/* Ranks are this host's: host 0 has two workers, host 1 one. */
static int meet_here(shmtrain_session *s, void *arg) {
    const float mine = (float)(1 + shmtrain_rank(s));
    struct shmtrain_collective how = {.size = sizeof how};
    float sum = 0;
    int rc = shmtrain_group_of_range(s, 0, shmtrain_workers(s), 1, &how.group);
    if (rc == 0) rc = shmtrain_all_reduce(s, &how, &mine, &sum, 1);
    if (rc == 0) rc = shmtrain_barrier(s, how.group);
    if (rc == 0 && sum != (shmtrain_host(s) == 0 ? 3 : 1)) return shmtrain_fail(s, SHMTRAIN_E_DATA, "a sum of others");
    return rc == 0 ? work(s, arg) : rc;
}

static int meet_all(shmtrain_session *s, void *arg) {
    const float mine = 1;
    float sum;
    (void)arg;
    return shmtrain_all_reduce(s, NULL, &mine, &sum, 1);
}

static int (*g_work)(shmtrain_session *s, void *arg);

static void *run_work(void *host) {
    struct host *h = host;
    h->rc = shmtrain_store_run(h->store, g_work, NULL);
    return NULL;
}

static void collectives_name_a_group_which_is_of_one_host(void **state) {
    struct host h[2];
    (void)state;
    make_two(h, "1");
    g_work = meet_here;
    run_both(h, run_work);
    for (int i = 0; i < 2; i++) WELL(h[i].store, h[i].rc);
    g_work = meet_all;
    run_both(h, run_work);
    int refusals = 0;
    for (int i = 0; i < 2; i++) {
        const char *why = shmtrain_store_message(h[i].store);
        assert_true(h[i].rc < 0);
        if (strstr(why, "all-reduce: the run has 2 hosts, and collectives are among the workers of one"))
            refusals++;
        else
            assert_non_null(strstr(why, "has left the run"));
    }
    assert_true(refusals > 0);
    for (int i = 0; i < 2; i++) shmtrain_store_destroy(h[i].store);
}

static void tables_that_differ_are_named(void **state) {
    struct host h[2];
    (void)state;
    make_two(h, "1");
    assert_int_equal(shmtrain_store_table(h[1].store, "more", 3, 1), 1);
    run_both(h, run);
    for (int i = 0; i < 2; i++) refused(h[i].store, h[i].rc, SHMTRAIN_E_USAGE, "differ in table more");
    for (int i = 0; i < 2; i++) shmtrain_store_destroy(h[i].store);
}

/* A program that TensorFlow's launch scripts start as a ps ends before it makes anything; a run says why there is none. */
static void a_ps_task_has_no_part(void **state) {
    struct shmtrain_store *store = make("processes", "1", "1", EXAMPLES);
    (void)state;
    assert_int_equal(shmtrain_store_takes_part(store), 1);
    WELL(store, shmtrain_store_set(store, "role", "ps"));
    refused(store, shmtrain_store_takes_part(store), SHMTRAIN_E_USAGE, "--role ps needs --worker-hosts");
    WELL(store, shmtrain_store_set(store, "worker-hosts", "127.0.0.1:1,127.0.0.1:2"));
    WELL(store, shmtrain_store_set(store, "ps-hosts", "127.0.0.1:3"));
    assert_int_equal(shmtrain_store_takes_part(store), 0);
    refused(store, shmtrain_store_run(store, work, NULL), SHMTRAIN_E_USAGE, "this task has nothing to run");
    WELL(store, shmtrain_store_set(store, "role", "worker"));
    refused(store, shmtrain_store_run(store, work, NULL), SHMTRAIN_E_USAGE, "say with --task-index");
    WELL(store, shmtrain_store_set(store, "task-index", "1"));
    assert_int_equal(shmtrain_store_takes_part(store), 1);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(two_stores_of_one_process_are_two_hosts, deadline),
                                       cmocka_unit_test_setup(a_host_takes_snapshots_behind_epochs, deadline),
                                       cmocka_unit_test_setup(collectives_name_a_group_which_is_of_one_host, deadline),
                                       cmocka_unit_test_setup(tables_that_differ_are_named, deadline),
                                       cmocka_unit_test_setup(a_ps_task_has_no_part, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
