/* The library inside of applications that do other things, too: an event loop with timers and several runs, threads, children
 * that are collected in every way, closed descriptors, limits, and an exit in the middle of a run. Called as an application
 * would. */
#include "api_help.h"
#include "sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* ---- an event loop ---- */

static void watch(int epoll, int fd, uint32_t number) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = number}};
    assert_true(fd >= 0);
    assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

static int open_timer(long period_ns) {
    const int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    const struct itimerspec each = {.it_interval = {.tv_nsec = period_ns}, .it_value = {.tv_nsec = period_ns}};
    assert_int_equal(timerfd_settime(fd, 0, &each, NULL), 0);
    return fd;
}

enum { N_STORES = 4, TIMER = 100 };

/* Of runs that go on side by side. ThreadSanitizer's allocator does not keep its locks across a fork: a child that is forked while a
 * thread of another run allocates hangs when it allocates itself. It sees nothing of processes anyway. */
static const char *spawn_beside_others(int i) { return WATCHES_RACES ? "threads" : SPAWNS[i & 1]; }

static void one_loop_drives_several_runs_and_a_timer(void **state) {
    struct shmtrain_store *store[N_STORES];
    const int epoll = epoll_create1(EPOLL_CLOEXEC), timer = open_timer(1000000);
    uint32_t n_running = N_STORES;
    uint64_t n_ticks = 0, ticks;
    (void)state;
    watch(epoll, timer, TIMER);
    for (uint32_t i = 0; i < N_STORES; i++) {
        store[i] = make(spawn_beside_others((int)i), "2", "40", 640 * (uint64_t)(i + 1));
        WELL(store[i], shmtrain_store_start(store[i], count, NULL));
        watch(epoll, shmtrain_store_fd(store[i]), i);
    }
    while (n_running > 0 || n_ticks == 0) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) != 1) continue;
        if (event.data.u32 == TIMER) {
            if (read(timer, &ticks, sizeof ticks) > 0) n_ticks += ticks;
            continue;
        }
        const int rc = shmtrain_store_step(store[event.data.u32]); /* closes its descriptor at the end: epoll forgets it */
        if (rc < 0) fail_msg("%s", shmtrain_store_message(store[event.data.u32]));
        n_running -= rc == 0;
    }
    for (uint32_t i = 0; i < N_STORES; i++) {
        assert_true(read_one(store[i], 0) == (float)(400 * (i + 1)));
        assert_int_equal(shmtrain_store_report(store[i])->stopped, 0);
        shmtrain_store_destroy(store[i]);
    }
    close(timer);
    close(epoll);
}

/* SIGINT arrives as a descriptor, as in programs that block it. */
static void a_signalfd_ends_the_run(void **state) {
    sigset_t set, before;
    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &before), 0);
    const int signals = signalfd(-1, &set, SFD_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400);
        struct signalfd_siginfo info;
        int rc = 1;
        WELL(store, shmtrain_store_start(store, count, NULL));
        assert_int_equal(kill(getpid(), SIGINT), 0);
        while (rc == 1) {
            struct pollfd polled[2] = {{.fd = signals, .events = POLLIN}, {.fd = shmtrain_store_fd(store), .events = POLLIN}};
            (void)poll(polled, 2, -1);
            if (polled[0].revents && read(signals, &info, sizeof info) == sizeof info) shmtrain_store_stop(store);
            rc = shmtrain_store_step(store);
        }
        WELL(store, rc);
        assert_int_equal(shmtrain_store_report(store)->stopped, 1);
        shmtrain_store_destroy(store);
    }
    close(signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Two handles of one process: one trains under a name, the other one looks on. */
static void a_process_may_observe_its_own_run(void **state) {
    char name[64];
    float x = 0;
    (void)state;
    snprintf(name, sizeof name, "test_embed-%ld", (long)getpid());
    for (int i = 0; i < 2; i++) {
        const struct shmtrain_progress *now;
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400), *observer;
        char message[600];
        int rc;
        WELL(store, shmtrain_store_set(store, "name", name));
        WELL(store, shmtrain_store_start(store, count, NULL));
        assert_int_equal(shmtrain_store_create(&observer), 0);
        while (shmtrain_store_observe(observer, name) < 0) { /* until it is there */
            if ((rc = shmtrain_store_step(store)) != 1) fail_msg("%d: %s", rc, shmtrain_store_message(store));
            usleep(1000);
        }
        while (x < 5 * (float)(i + 1)) WELL(observer, shmtrain_store_read(observer, 0, 0, 1, &x));
        assert_int_equal(shmtrain_store_look(observer, &now), 1);
        shmtrain_store_stop(store);
        WELL(store, wait_for_end(store));
        while ((rc = shmtrain_store_look(observer, &now)) == 1) usleep(1000);
        WELL(observer, rc);
        assert_true(read_one(observer, 0) == read_one(store, 0));
        assert_int_equal(shmtrain_store_report(observer)->examples, shmtrain_store_report(store)->examples);
        shmtrain_store_destroy(observer);
        shmtrain_store_destroy(store);
        if (shmtrain_named_remove(name, 0, message, sizeof message) < 0) fail_msg("%s", message);
        x = 0;
    }
}

/* ---- threads ---- */

static void *run_blocking(void *arg) {
    struct shmtrain_store *store = arg;
    return (void *)(intptr_t)shmtrain_store_run(store, count, NULL);
}

static void a_run_that_blocks_a_thread_goes_beside_one_in_the_background(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct shmtrain_store *a = make(spawn_beside_others(i), "2", "30", 640);
        struct shmtrain_store *b = make(spawn_beside_others(i / 2), "2", "30", 1280);
        pthread_t thread;
        void *rc = NULL;
        assert_int_equal(pthread_create(&thread, NULL, run_blocking, b), 0);
        WELL(a, shmtrain_store_start(a, count, NULL));
        WELL(a, wait_for_end(a));
        pthread_join(thread, &rc);
        WELL(b, (int)(intptr_t)rc);
        assert_true(read_one(a, 0) == 300 && read_one(b, 0) == 600);
        shmtrain_store_destroy(a);
        shmtrain_store_destroy(b);
    }
}

/* A store may move from one thread to another, as long as one has it at a time. */
static void *step_to_the_end(void *arg) { return (void *)(intptr_t)wait_for_end(arg); }

static void a_store_may_be_handed_to_another_thread(void **state) {
    struct shmtrain_store *store = make("processes", "2", "30", 640);
    pthread_t thread;
    void *rc = NULL;
    (void)state;
    WELL(store, shmtrain_store_start(store, count, NULL));
    assert_int_equal(pthread_create(&thread, NULL, step_to_the_end, store), 0);
    pthread_join(thread, &rc);
    WELL(store, (int)(intptr_t)rc);
    assert_true(read_one(store, 0) == 300);
    shmtrain_store_destroy(store);
}

/* ---- children ---- */

static int die_in_rank_1(shmtrain_session *s, void *arg) {
    if (shmtrain_rank(s) == 1) raise(SIGKILL);
    return count(s, arg);
}

/* A run each way, and one that fails: as if the application had no opinion on children. */
static void run_each_way(void) {
    for (int background = 0; background < 2; background++) {
        struct shmtrain_store *store = make("processes", "3", "5", 640);
        if (background) {
            WELL(store, shmtrain_store_start(store, count, NULL));
            WELL(store, wait_for_end(store));
            WELL(store, shmtrain_store_start(store, die_in_rank_1, NULL));
            refused(store, wait_for_end(store), SHMTRAIN_E_DIED, "worker 1");
        } else {
            WELL(store, shmtrain_store_run(store, count, NULL));
            refused(store, shmtrain_store_run(store, die_in_rank_1, NULL), SHMTRAIN_E_DIED, "worker 1");
        }
        assert_non_null(strstr(shmtrain_store_message(store), "killed by signal 9"));
        assert_true(read_one(store, 0) >= 50);
        shmtrain_store_destroy(store);
    }
}

static void an_application_may_ignore_its_children(void **state) {
    struct sigaction action = {.sa_handler = SIG_IGN}, before;
    (void)state;
    assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
    run_each_way();
    sigaction(SIGCHLD, &before, NULL);
}

static void collect_all(int number) {
    const int code = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    errno = code;
}

static void an_application_may_collect_all_children_in_its_handler(void **state) {
    struct sigaction action = {.sa_handler = collect_all}, before;
    (void)state;
    assert_int_equal(sigaction(SIGCHLD, &action, &before), 0);
    run_each_way();
    sigaction(SIGCHLD, &before, NULL);
}

static atomic_int g_over;

static void *collect_all_the_time(void *arg) {
    while (!atomic_load(&g_over))
        if (waitpid(-1, NULL, 0) < 0) usleep(100);
    return arg;
}

static void an_application_may_collect_all_children_on_a_thread(void **state) {
    pthread_t thread;
    (void)state;
    atomic_store(&g_over, 0);
    assert_int_equal(pthread_create(&thread, NULL, collect_all_the_time, NULL), 0);
    run_each_way();
    atomic_store(&g_over, 1);
    pthread_join(thread, NULL);
}

/* The application's own children keep their statuses: the library waits for nobody else's. */
static void children_of_the_application_stay_its_own(void **state) {
    pid_t child[8];
    (void)state;
    struct shmtrain_store *store = make("processes", "2", "1000000", 6400);
    WELL(store, shmtrain_store_start(store, count, NULL));
    for (int i = 0; i < 8; i++) {
        child[i] = fork();
        if (child[i] == 0) _exit(40 + i);
        assert_true(child[i] > 0);
    }
    usleep(20000);
    shmtrain_store_stop(store);
    WELL(store, wait_for_end(store));
    for (int i = 0; i < 8; i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 40 + i);
    }
    shmtrain_store_destroy(store);
}

/* ---- the process itself ---- */

/* In a process of its own, which says with its exit status how far it came; asserts are the parent's. */
static int status_of(void (*body)(void)) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        body();
        _exit(99);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void run_without_standard_descriptors(void) {
    for (int fd = 0; fd <= 2; fd++) close(fd);
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store;
        if (shmtrain_store_create(&store) < 0) _exit(1);
        shmtrain_store_set(store, "spawn", SPAWNS[i]);
        shmtrain_store_set(store, "workers", "2");
        shmtrain_store_table(store, "count", 2, 1);
        shmtrain_store_examples(store, 640);
        if (shmtrain_store_run(store, count, NULL) < 0) _exit(2);
        if (shmtrain_store_start(store, count, NULL) < 0) _exit(3);
        if (wait_for_end(store) < 0) _exit(4);
        shmtrain_store_destroy(store);
    }
    _exit(0);
}

static void closed_standard_descriptors_do_no_harm(void **state) {
    (void)state;
    assert_int_equal(status_of(run_without_standard_descriptors), 0);
}

static void allow_files(rlim_t n) {
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = n;
    setrlimit(RLIMIT_NOFILE, &files);
}

static void run_without_files(void) {
    struct shmtrain_store *store = make("threads", "2", "1", 640), *other;
    const int next = dup(0);
    close(next);
    allow_files((rlim_t)next); /* not one more */
    if (shmtrain_store_create(&other) != SHMTRAIN_E_SYSTEM) _exit(1);
    if (shmtrain_store_start(store, count, NULL) != SHMTRAIN_E_SYSTEM) _exit(2);
    if (!strstr(shmtrain_store_message(store), "Too many open files")) _exit(3);
    if (shmtrain_store_fd(store) != -1 || shmtrain_store_step(store) != 0) _exit(4);
    if (shmtrain_store_run(store, count, NULL) != SHMTRAIN_E_SYSTEM) _exit(5);
    allow_files(256);
    if (shmtrain_store_start(store, count, NULL) < 0 || wait_for_end(store) < 0) _exit(6);
    shmtrain_store_destroy(store);
    _exit(0);
}

static void a_lack_of_descriptors_is_told_and_passes(void **state) {
    (void)state;
    assert_int_equal(status_of(run_without_files), 0);
}

static void exit_in_the_middle(void) {
    struct shmtrain_store *store = make("processes", "3", "1000000", 6400);
    if (shmtrain_store_start(store, count, NULL) < 0) _exit(1);
    while (read_one(store, 0) < 5) usleep(1000);
    exit(0);
}

/* Orphans become this process's children, so that it sees when the last one has gone. */
static void an_exit_in_the_middle_of_a_run_leaves_no_process(void **state) {
    (void)state;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    assert_int_equal(status_of(exit_in_the_middle), 0);
    while (waitpid(-1, NULL, 0) > 0) continue; /* or the deadline comes */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(one_loop_drives_several_runs_and_a_timer),
        TEST(a_signalfd_ends_the_run),
        TEST(a_process_may_observe_its_own_run),
        TEST(a_run_that_blocks_a_thread_goes_beside_one_in_the_background),
        TEST(a_store_may_be_handed_to_another_thread),
        TEST(an_application_may_ignore_its_children),
        TEST(an_application_may_collect_all_children_in_its_handler),
        TEST(an_application_may_collect_all_children_on_a_thread),
        TEST(children_of_the_application_stay_its_own),
        TEST(closed_standard_descriptors_do_no_harm),
        TEST(a_lack_of_descriptors_is_told_and_passes),
        TEST(an_exit_in_the_middle_of_a_run_leaves_no_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
