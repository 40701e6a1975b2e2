/* Ending runs early: from other threads, signal handlers and workers, at any moment. Called as an application would. */
#include "api_help.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

static struct shmtrain_store *g_running;
static atomic_int g_begun, g_over;

static void note_begin(void *arg, const struct shmtrain_report *r) {
    (void)arg;
    (void)r;
    atomic_store(&g_begun, 1);
}

static void *stop_soon(void *arg) {
    while (!atomic_load(&g_begun)) usleep(1000);
    usleep(20000);
    if (arg)
        pthread_kill(*(pthread_t *)arg, SIGUSR1);
    else
        shmtrain_store_stop(g_running);
    return NULL;
}

static void stop_in_handler(int number) {
    (void)number;
    shmtrain_store_stop(g_running);
}

static void run_until_stopped(const char *spawn, pthread_t *by_signal) {
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .begin = note_begin};
    pthread_t thread;
    g_running = make(spawn, "3", "1000000", 6400);
    shmtrain_store_listen(g_running, &listener);
    shmtrain_store_stop(g_running); /* nothing runs: it does nothing */
    atomic_store(&g_begun, 0);
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, by_signal), 0);
    WELL(g_running, shmtrain_store_run(g_running, count, NULL));
    pthread_join(thread, NULL);
    const struct shmtrain_report *r = shmtrain_store_report(g_running);
    assert_int_equal(r->stopped, 1);
    assert_true(r->examples > 0 && r->examples % 64 == 0);
    assert_true(read_one(g_running, 0) == (float)(r->examples / 64)); /* batches are whole, and counted right */
    shmtrain_store_stop(g_running);
    WELL(g_running, shmtrain_store_set(g_running, "epochs", "2"));
    WELL(g_running, shmtrain_store_run(g_running, count, NULL)); /* a stop is for one run */
    assert_int_equal(shmtrain_store_report(g_running)->stopped, 0);
    shmtrain_store_destroy(g_running);
}

static void another_thread_may_stop_a_run(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) run_until_stopped(SPAWNS[i], NULL);
}

static void a_signal_handler_may_stop_a_run(void **state) {
    struct sigaction action = {.sa_handler = stop_in_handler}, before;
    pthread_t self = pthread_self();
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int i = 0; i < 2; i++) run_until_stopped(SPAWNS[i], &self);
    sigaction(SIGUSR1, &before, NULL);
}

static void *stop_all_the_time(void *arg) {
    for (unsigned i = 0; !atomic_load(&g_over); i++) {
        shmtrain_store_stop(arg);
        if (i % 4 == 0) usleep(i % 2000);
    }
    return NULL;
}

/* A stop meets runs at every point of their lives; it ends those that it meets, and harms nothing. */
static void a_stop_may_come_at_any_moment_of_runs_that_follow_each_other(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        uint64_t examples = 0;
        struct shmtrain_store *store = make(SPAWNS[i], "2", "2", 640);
        WELL(store, shmtrain_store_set(store, "rate", "1"));
        atomic_store(&g_over, 0);
        assert_int_equal(pthread_create(&thread, NULL, stop_all_the_time, store), 0);
        for (int k = 0; k < 20; k++) {
            WELL(store, shmtrain_store_run(store, count, NULL));
            examples += shmtrain_store_report(store)->examples;
        }
        atomic_store(&g_over, 1);
        pthread_join(thread, NULL);
        assert_true(examples % 64 == 0 && read_one(store, 0) == (float)(examples / 64));
        WELL(store, shmtrain_store_run(store, count, NULL)); /* what was asked before a run does not count */
        assert_int_equal(shmtrain_store_report(store)->examples, 1280);
        shmtrain_store_destroy(store);
    }
}

static int count_then_stop(shmtrain_session *s, void *arg) {
    if (shmtrain_rank(s) == 1) shmtrain_store_stop(arg);
    return count(s, NULL);
}

static void a_worker_may_stop_the_run(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400);
        WELL(store, shmtrain_store_run(store, count_then_stop, store));
        assert_int_equal(shmtrain_store_report(store)->stopped, 1);
        shmtrain_store_destroy(store);
    }
}

static void stop_at_once(void *arg, const struct shmtrain_report *r) {
    (void)r;
    shmtrain_store_stop(arg);
}

static void a_stop_in_begin_lets_nobody_begin(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400);
        const struct shmtrain_listener listener = {
            .size = sizeof(struct shmtrain_listener), .arg = store, .begin = stop_at_once};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(shmtrain_store_report(store)->stopped == 1 && shmtrain_store_report(store)->updates <= 1);
        shmtrain_store_destroy(store);
    }
}

static void a_limit_of_steps_ends_a_run_early(void **state) {
    struct shmtrain_store *store = make("threads", "2", "3", 640);
    (void)state;
    WELL(store, shmtrain_store_set(store, "steps", "14"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(read_one(store, 0) == 14 && r->stopped == 1 && r->n_epochs == 2 && r->epoch[1].partial == 1);
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(another_thread_may_stop_a_run),
        TEST(a_signal_handler_may_stop_a_run),
        TEST(a_stop_may_come_at_any_moment_of_runs_that_follow_each_other),
        TEST(a_worker_may_stop_the_run),
        TEST(a_stop_in_begin_lets_nobody_begin),
        TEST(a_limit_of_steps_ends_a_run_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
