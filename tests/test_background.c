/* Runs for event loops: start, a descriptor, a step that never blocks. Called as an application would. Applications with
 * several runs, threads and children are in test_embed.c. */
#include "api_help.h"

#include <dirent.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

/* What a listener has been told, as letters: b(egin), e(poch), n(ote). */
struct heard {
    struct shmtrain_store *store;
    pthread_t thread;
    char letters[64];
    uint32_t n_epochs;
    uint64_t examples, progress;
    char note[256];
};

static void hear(struct heard *h, char letter) {
    const size_t n = strlen(h->letters);
    assert_true(pthread_equal(h->thread, pthread_self()));
    if (n + 1 < sizeof h->letters) h->letters[n] = letter;
}

static void hear_begin(void *arg, const struct shmtrain_report *r) {
    hear(arg, 'b');
    assert_true(r->n_epochs == 0 && r->examples == 0);
    assert_ptr_equal(shmtrain_store_report(((struct heard *)arg)->store), r);
}

static void hear_epoch(void *arg, const struct shmtrain_report *r, const struct shmtrain_epoch *epoch) {
    struct heard *h = arg;
    hear(h, 'e');
    assert_int_equal(epoch->epoch, ++h->n_epochs);
    assert_int_equal(r->n_epochs, h->n_epochs);
    assert_ptr_equal(epoch, &r->epoch[h->n_epochs - 1]);
    h->examples += epoch->examples;
    assert_int_equal(r->examples, h->examples);
    assert_int_equal(shmtrain_store_step(h->store), 1); /* it is in there already */
}

static void hear_note(void *arg, const char *line) {
    hear(arg, 'n');
    snprintf(((struct heard *)arg)->note, sizeof((struct heard *)arg)->note, "%s", line);
}

static void listen_with(struct heard *h, struct shmtrain_store *store) {
    const struct shmtrain_listener listener = {
        .size = sizeof(struct shmtrain_listener), .arg = h, .begin = hear_begin, .epoch = hear_epoch, .note = hear_note};
    *h = (struct heard){.store = store, .thread = pthread_self()};
    shmtrain_store_listen(store, &listener);
}

static int wait_until_ended(struct shmtrain_store *store) {
    const int rc = wait_for_end(store);
    assert_int_equal(shmtrain_store_fd(store), -1);
    return rc;
}

/* Until row 0 is at least `least`. */
static void wait_for_value(struct shmtrain_store *store, float least) {
    while (read_one(store, 0) < least) usleep(1000);
}

static void a_run_in_the_background_is_the_run_that_blocks(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct heard h;
        struct shmtrain_store *blocks = make(SPAWNS[i], "3", "5", 640), *store = make(SPAWNS[i], "3", "5", 640);
        WELL(blocks, shmtrain_store_run(blocks, count, NULL));
        listen_with(&h, store);
        assert_int_equal(shmtrain_store_fd(store), -1);
        assert_int_equal(shmtrain_store_step(store), 0); /* nothing runs */
        WELL(store, shmtrain_store_start(store, count, NULL));
        WELL(store, wait_until_ended(store));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_string_equal(h.letters, "beeeee");
        assert_true(r->parameters_xxh64 == shmtrain_store_report(blocks)->parameters_xxh64);
        assert_true(r->n_epochs == 5 && r->examples == 3200 && r->updates == 50 && !r->stopped);
        assert_true(read_one(store, 0) == 50);
        shmtrain_store_listen(store, NULL);
        WELL(store, shmtrain_store_start(store, count, NULL)); /* once more, then the other way */
        WELL(store, wait_until_ended(store));
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_true(read_one(store, 0) == 150);
        shmtrain_store_destroy(store);
        shmtrain_store_destroy(blocks);
    }
}

static void a_run_goes_on_while_nobody_steps_and_loses_no_event(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct heard h;
        struct shmtrain_store *store = make(SPAWNS[i], "3", "6", 640);
        WELL(store, shmtrain_store_set(store, "chunks", "2")); /* which deserves a note: two of three have work */
        listen_with(&h, store);
        WELL(store, shmtrain_store_start(store, count, NULL));
        wait_for_value(store, 60);
        assert_string_equal(h.letters, "");
        assert_string_equal(shmtrain_store_report(store)->mode, ""); /* as of the last step */
        WELL(store, wait_until_ended(store));
        assert_string_equal(h.letters, "nbeeeeee");
        assert_non_null(strstr(h.note, "--chunks"));
        assert_string_equal(shmtrain_store_report(store)->mode, "sync");
        shmtrain_store_destroy(store);
    }
}

static void parameters_are_read_while_they_are_trained(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "1000000", 6400);
        float before = 0, x[2];
        WELL(store, shmtrain_store_start(store, count, NULL));
        for (int k = 0; k < 5; k++) {
            wait_for_value(store, before + 1);
            const float now = read_one(store, 0);
            assert_true(now >= before + 1 && now == (float)(int)now);
            before = now;
            assert_int_equal(shmtrain_store_step(store), 1);
        }
        refused(store, shmtrain_store_read(store, 0, 1, 2, x), SHMTRAIN_E_USAGE, "has 2 rows");
        shmtrain_store_stop(store);
        WELL(store, wait_until_ended(store));
        assert_string_equal(shmtrain_store_message(store), ""); /* the run's, which has none */
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_true(r->stopped && read_one(store, 0) == (float)(r->examples / 64));
        shmtrain_store_destroy(store);
    }
}

static void what_would_disturb_a_run_is_refused(void **state) {
    const struct shmtrain_model model = {.size = sizeof(struct shmtrain_model), .name = "m"};
    struct shmtrain_store *store = make("processes", "2", "1000000", 6400);
    const float x[2] = {0, 0};
    (void)state;
    WELL(store, shmtrain_store_start(store, count, NULL));
    refused(store, shmtrain_store_start(store, count, NULL), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_start_training(store, "x"), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_train(store, "x"), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_set(store, "epochs", "1"), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_set_from_environment(store), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_table(store, "t", 1, 1), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_examples(store, 1), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_write(store, 0, 0, 2, x), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_save(store, "/dev/null"), SHMTRAIN_E_USAGE, "a run is in progress");
    refused(store, shmtrain_store_offer(store, &model), SHMTRAIN_E_USAGE, "a run is in progress");
    shmtrain_store_stop(store);
    WELL(store, wait_until_ended(store));
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    shmtrain_store_destroy(store);
}

static int fail_in_rank_1(shmtrain_session *s, void *arg) {
    float x;
    return shmtrain_rank(s) == 1 ? shmtrain_pull(s, 9, 0, 1, &x) : count(s, arg);
}
static int die_in_rank_1(shmtrain_session *s, void *arg) {
    if (shmtrain_rank(s) == 1) raise(SIGKILL);
    return count(s, arg);
}

static void a_run_that_fails_says_so_at_its_last_step(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "3", "1000", 6400);
        WELL(store, shmtrain_store_start(store, fail_in_rank_1, NULL));
        refused(store, wait_until_ended(store), SHMTRAIN_E_USAGE, "shmtrain_pull: there is no table ");
        if (i == 1) {
            WELL(store, shmtrain_store_start(store, die_in_rank_1, NULL));
            refused(store, wait_until_ended(store), SHMTRAIN_E_DIED, "killed by signal 9");
        }
        WELL(store, shmtrain_store_start(store, NULL, NULL));
        refused(store, wait_until_ended(store), SHMTRAIN_E_USAGE, "needs a worker function");
        WELL(store, shmtrain_store_start_training(store, ""));
        refused(store, wait_until_ended(store), SHMTRAIN_E_USAGE, "the data has no name");
        WELL(store, shmtrain_store_start_training(store, NULL));
        refused(store, wait_until_ended(store), SHMTRAIN_E_USAGE, "the data has no name");
        WELL(store, shmtrain_store_start_training(store, "/no/such/file"));
        refused(store, wait_until_ended(store), SHMTRAIN_E_SYSTEM, "/no/such/file");
        shmtrain_store_destroy(store);
    }
}

static void hear_progress(void *arg, const struct shmtrain_report *r, const struct shmtrain_progress *now) {
    struct heard *h = arg;
    const struct shmtrain_progress *looked;
    uint64_t examples = 0;
    assert_true(pthread_equal(h->thread, pthread_self()));
    assert_ptr_equal(shmtrain_store_report(h->store), r);
    assert_true(h->letters[0] == 'b' && now->epochs == 1000000 && now->n_workers == 3);
    for (uint32_t i = 0; i < now->n_workers; i++) examples += now->worker[i].examples;
    assert_true(examples >= h->examples); /* grows */
    h->examples = examples;
    h->progress++;
    assert_int_equal(shmtrain_store_look(h->store, &looked), 1);
    assert_int_equal(looked->n_workers, 3);
}

static void progress_is_told_now_and_then_and_asked_for_at_any_time(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct shmtrain_progress *now;
        struct heard h = {.thread = pthread_self()};
        struct shmtrain_store *store = h.store = make(SPAWNS[i], "3", "1000000", 6400);
        const struct shmtrain_listener listener = {
            .size = sizeof(struct shmtrain_listener), .arg = &h, .begin = hear_begin, .progress = hear_progress};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_start(store, count, NULL));
        WELL(store, shmtrain_store_look(store, &now)); /* nothing may be known yet: then it says so */
        assert_true(now->n_workers == 3 || (now->n_workers == 0 && now->epoch == 0 && isnan(now->loss)));
        while (h.progress < 3) {
            struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
            (void)poll(&readable, 1, -1);
            assert_int_equal(shmtrain_store_step(store), 1);
        }
        assert_true(h.examples > 0);
        shmtrain_store_stop(store);
        WELL(store, wait_until_ended(store));
        assert_int_equal(shmtrain_store_look(store, &now), 0); /* it is over */
        assert_int_equal(now->n_workers, 3);
        shmtrain_store_destroy(store);
    }
}

/* ---- training on data ---- */

static void data_is_loaded_and_trained_on_in_the_background(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct heard h;
        float weight;
        static const char DATA[] = "builtin:sparse:examples=3000,features=500";
        struct shmtrain_store *store = make(SPAWNS[i], "2", "3", 64), *blocks = make(SPAWNS[i], "3", "3", 64);
        WELL(blocks, shmtrain_store_train(blocks, DATA));
        listen_with(&h, store);
        WELL(store, shmtrain_store_start_training(store, DATA));
        while (shmtrain_store_read(store, 0, 500, 1, &weight) < 0) { /* ours has 2 rows, the model's 501 */
            const char *message = shmtrain_store_message(store);
            assert_true(strstr(message, "there is no table 0") || strstr(message, "has 2 rows"));
        }
        WELL(store, wait_until_ended(store));
        assert_string_equal(h.letters, "beee");
        assert_string_equal(shmtrain_store_report(store)->model, "logistic");
        assert_true(shmtrain_store_report(store)->parameters_xxh64 == shmtrain_store_report(blocks)->parameters_xxh64);
        shmtrain_store_destroy(blocks);
        shmtrain_store_destroy(store);
    }
}

/* ---- stopping ---- */

static struct shmtrain_store *g_store;
static volatile sig_atomic_t g_on_main_thread;
static pthread_t g_main;

static void stop_in_handler(int number) {
    (void)number;
    g_on_main_thread = pthread_equal(g_main, pthread_self()) != 0;
    shmtrain_store_stop(g_store);
}

/* The library's thread has all signals blocked, so the application's gets them, and its poll returns. */
static void signals_are_the_applications(void **state) {
    struct sigaction action = {.sa_handler = stop_in_handler}, before;
    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    for (int i = 0; i < 2; i++) {
        g_store = make(SPAWNS[i], "2", "1000000", 6400);
        g_main = pthread_self();
        g_on_main_thread = 0;
        WELL(g_store, shmtrain_store_start(g_store, count, NULL));
        wait_for_value(g_store, 1);
        assert_int_equal(kill(getpid(), SIGUSR1), 0);
        WELL(g_store, wait_until_ended(g_store));
        assert_true(g_on_main_thread && shmtrain_store_report(g_store)->stopped);
        shmtrain_store_destroy(g_store);
    }
    sigaction(SIGUSR1, &before, NULL);
}

static void a_stop_right_after_start_counts(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct shmtrain_store *store = make(SPAWNS[i & 1], "2", "1000000", 6400);
        WELL(store, shmtrain_store_start(store, count, NULL));
        usleep(i < 10 ? 0 : 100 * (unsigned)i);
        shmtrain_store_stop(store);
        WELL(store, wait_until_ended(store));
        assert_int_equal(shmtrain_store_report(store)->stopped, 1);
        shmtrain_store_destroy(store);
    }
}

static void a_stop_while_data_is_loaded_ends_the_loading(void **state) {
    struct shmtrain_store *store = make("processes", "2", "1000", 64);
    (void)state;
    WELL(store, shmtrain_store_start_training(store, "builtin:sparse:examples=3000000"));
    usleep(20000);
    shmtrain_store_stop(store);
    const int rc = wait_until_ended(store);
    if (rc == 0)
        assert_int_equal(shmtrain_store_report(store)->stopped, 1); /* it was so fast that it had begun to train */
    else
        refused(store, rc, SHMTRAIN_E_STOPPED, "stopped");
    shmtrain_store_destroy(store);
}

static void a_store_may_be_destroyed_in_the_middle_of_a_run(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct heard h;
        struct shmtrain_store *store = make(SPAWNS[i & 1], "2", "1000000", 6400);
        listen_with(&h, store);
        if (i % 4 < 2)
            WELL(store, shmtrain_store_start(store, count, NULL));
        else
            WELL(store, shmtrain_store_start_training(store, "builtin:sparse:examples=20000"));
        usleep(1000 * (unsigned)i);
        shmtrain_store_destroy(store);
        assert_string_equal(h.letters, "");
    }
}

/* ---- what is left, and to whom ---- */

static int count_entries(const char *folder) {
    int n = 0;
    DIR *d = opendir(folder);
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

static void nothing_is_left_when_runs_have_ended(void **state) {
    const int files = count_entries("/proc/self/fd"), threads = count_entries("/proc/self/task");
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct shmtrain_store *store = make(SPAWNS[i & 1], "2", "2", 640);
        WELL(store, shmtrain_store_start(store, i % 3 == 2 ? fail_in_rank_1 : count, NULL));
        (void)wait_until_ended(store);
        shmtrain_store_destroy(store);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(count_entries("/proc/self/fd"), files);
    assert_int_equal(count_entries("/proc/self/task"), threads);
}

/* The application forks for reasons of its own; the child has no part in the run. */
static void a_forked_child_may_destroy_its_copy(void **state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        struct shmtrain_store *store = make(SPAWNS[i & 1], "2", "1000000", 6400);
        int status = -1;
        WELL(store, shmtrain_store_start(store, count, NULL));
        if (i >= 2) wait_for_value(store, (float)i);
        const pid_t child = fork();
        if (child == 0) {
            shmtrain_store_destroy(store);
            _exit(7);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        wait_for_value(store, read_one(store, 0) + 10); /* the run goes on */
        assert_int_equal(shmtrain_store_step(store), 1);
        shmtrain_store_stop(store);
        WELL(store, wait_until_ended(store));
        shmtrain_store_destroy(store);
    }
}

static void another_listener_may_take_over(void **state) {
    struct heard first, second;
    struct shmtrain_store *store = make("threads", "2", "4", 640);
    (void)state;
    listen_with(&first, store);
    WELL(store, shmtrain_store_start(store, count, NULL));
    listen_with(&second, store);
    WELL(store, wait_until_ended(store));
    assert_string_equal(first.letters, "");
    assert_string_equal(second.letters, "beeee");
    listen_with(&first, store);
    WELL(store, shmtrain_store_start(store, count, NULL));
    shmtrain_store_listen(store, NULL);
    WELL(store, wait_until_ended(store));
    assert_string_equal(first.letters, "");
    shmtrain_store_destroy(store);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(a_run_in_the_background_is_the_run_that_blocks),
        TEST(a_run_goes_on_while_nobody_steps_and_loses_no_event),
        TEST(parameters_are_read_while_they_are_trained),
        TEST(what_would_disturb_a_run_is_refused),
        TEST(a_run_that_fails_says_so_at_its_last_step),
        TEST(progress_is_told_now_and_then_and_asked_for_at_any_time),
        TEST(data_is_loaded_and_trained_on_in_the_background),
        TEST(signals_are_the_applications),
        TEST(a_stop_right_after_start_counts),
        TEST(a_stop_while_data_is_loaded_ends_the_loading),
        TEST(a_store_may_be_destroyed_in_the_middle_of_a_run),
        TEST(nothing_is_left_when_runs_have_ended),
        TEST(a_forked_child_may_destroy_its_copy),
        TEST(another_listener_may_take_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
