/* A run at one moment: what listeners hear, and what shmtrain_store_look says. Workers stand still at a known place until it
 * has been seen, so the numbers are exact. */
#include "api_help.h"

#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { N = 64, ITEM = 8, EPOCHS = 3, STOP_AT = 3 }; /* items of an epoch that one worker does before it stands still */

/* Shared with the workers. */
struct scene {
    _Atomic int go_on;
    double loss_of_one; /* 0: nothing is reported */
};

/* What was heard. */
struct ear {
    struct shmtrain_store *store;
    struct scene *scene;
    int calls;
    bool looked;
    struct shmtrain_progress seen; /* when the workers stood still */
    struct shmtrain_worker_progress worker[4];
};

static struct scene *make_scene(double loss_of_one) {
    struct scene *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    s->loss_of_one = loss_of_one;
    return s;
}

/* In the second epoch it stands still in its item number STOP_AT. */
static int work(shmtrain_session *s, void *arg) {
    struct scene *scene = arg;
    struct shmtrain_work w;
    int rc, items = 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch == 1 && shmtrain_rank(s) == 0 && items++ == STOP_AT)
            while (!scene->go_on) usleep(1000);
        if (scene->loss_of_one != 0 && (rc = shmtrain_report(s, scene->loss_of_one * (double)w.n * (w.epoch + 1))) < 0) break;
        if ((rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

static void assert_plausible(const struct shmtrain_progress *now) {
    assert_int_equal(now->epochs, EPOCHS);
    assert_int_equal(now->all_examples, N);
    assert_true(now->epoch <= EPOCHS && now->examples <= N);
    assert_true(now->seconds >= 0 && now->examples_per_second >= 0);
    for (uint32_t i = 0; i < now->n_workers; i++) {
        const struct shmtrain_worker_progress *w = &now->worker[i];
        assert_true(w->compute_fraction >= 0 && w->wait_fraction >= 0 && w->compute_fraction + w->wait_fraction <= 1 + 1e-9);
    }
}

static void hear(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    struct ear *ear = arg;
    const struct shmtrain_progress *same;
    ear->calls++;
    assert_plausible(now);
    assert_true(so_far->n_epochs <= EPOCHS);
    if (ear->scene->go_on || now->epoch != 2 || now->examples < STOP_AT * ITEM) return;
    ear->seen = *now;
    memcpy(ear->worker, now->worker, now->n_workers * sizeof *now->worker);
    assert_int_equal(shmtrain_store_look(ear->store, &same), 1);
    assert_int_equal(same->examples, now->examples);
    assert_plausible(same);
    ear->looked = true;
    ear->scene->go_on = 1;
}

static struct shmtrain_store *make_run(const char *spawn, const char *workers, const char *mode) {
    struct shmtrain_store *store = make(spawn, workers, "3", N);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "item", "8"));
    WELL(store, shmtrain_store_set(store, "batch", "8"));
    return store;
}

static void a_listener_hears_how_far_the_run_is(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_run(SPAWNS[i], "1", "async");
        struct ear ear = {.store = store, .scene = make_scene(0.25)};
        const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = &ear, .progress = hear};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_run(store, work, ear.scene));
        assert_true(ear.looked && ear.calls >= 1);
        assert_int_equal(ear.seen.epoch, 2);
        assert_int_equal(ear.seen.examples, STOP_AT * ITEM);
        assert_true(fabs(ear.seen.loss - 0.5) < 1e-12); /* of the second epoch alone */
        assert_true(ear.seen.seconds_left > 0);
        assert_int_equal(ear.seen.n_workers, 1);
        assert_int_equal(ear.worker[0].examples, N + STOP_AT * ITEM);
        assert_true(ear.worker[0].here && !ear.worker[0].joined);
        munmap(ear.scene, sizeof *ear.scene);
        shmtrain_store_destroy(store);
    }
}

/* The first of several stands still, the others do the rest (live), or wait for it (aggregate); nobody's examples get lost. */
static void several_workers_are_counted_one_by_one(void **state) {
    static const char *const MODES[] = {"async", "sync"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_run("threads", "3", MODES[i]);
        struct ear ear = {.store = store, .scene = make_scene(0.25)};
        const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = &ear, .progress = hear};
        const struct shmtrain_progress *end;
        shmtrain_store_listen(store, &listener);
        ear.scene->go_on = 1; /* nobody stands still here */
        WELL(store, shmtrain_store_run(store, work, ear.scene));
        assert_int_equal(shmtrain_store_look(store, &end), 0);
        assert_int_equal(end->n_workers, 3);
        uint64_t sum = 0;
        for (int w = 0; w < 3; w++) sum += end->worker[w].examples;
        assert_int_equal(sum, EPOCHS * N);
        munmap(ear.scene, sizeof *ear.scene);
        shmtrain_store_destroy(store);
    }
}

/* Whoever has the second epoch's first item stands still in it: that goes on, and so does the others' waiting for it. */
static int stand_still(shmtrain_session *s, void *arg) {
    struct scene *scene = arg;
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        while (w.epoch == 1 && w.first == 0 && !scene->go_on) usleep(1000);
        if ((rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

struct watcher {
    struct scene *scene;
    int looks;
    bool seen;
};

static void hear_of_standing_still(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    struct watcher *w = arg;
    (void)so_far;
    assert_plausible(now);
    if (w->scene->go_on || now->epoch != 2) return;
    uint32_t working = 0, waiting = 0;
    for (uint32_t i = 0; i < now->n_workers; i++) {
        working += now->worker[i].compute_fraction > 1 - 1e-6;
        waiting += now->worker[i].wait_fraction > 1 - 1e-6;
    }
    w->seen |= working == 1 && waiting == now->n_workers - 1;
    w->scene->go_on = w->seen || ++w->looks > 200; /* a busy machine may take a while to bring all there */
}

static void what_goes_on_counts_before_it_is_over(void **state) {
    static const char *const MODES[] = {"async", "sync"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct shmtrain_store *store = make_run(SPAWNS[i / 2], "3", MODES[i % 2]);
        struct watcher watcher = {.scene = make_scene(0.25)};
        const struct shmtrain_listener listener = {
            .size = sizeof(struct shmtrain_listener), .arg = &watcher, .progress = hear_of_standing_still};
        shmtrain_store_listen(store, &listener);
        WELL(store, shmtrain_store_run(store, stand_still, watcher.scene));
        assert_true(watcher.seen);
        munmap(watcher.scene, sizeof *watcher.scene);
        shmtrain_store_destroy(store);
    }
}

static void a_run_that_is_over_shows_how_it_ended(void **state) {
    struct shmtrain_store *store = make_run("threads", "2", "sync");
    struct scene *scene = make_scene(0.25);
    const struct shmtrain_progress *end;
    (void)state;
    scene->go_on = 1;
    for (int run = 0; run < 2; run++) {
        WELL(store, shmtrain_store_run(store, work, scene));
        assert_int_equal(shmtrain_store_look(store, &end), 0);
        assert_int_equal(end->epoch, EPOCHS);
        assert_int_equal(end->examples, N);
        assert_true(end->seconds_left == 0);
        assert_true(fabs(end->loss - 0.75) < 1e-12);
        assert_true(end->examples_per_second == shmtrain_store_report(store)->examples_per_second);
    }
    munmap(scene, sizeof *scene);
    shmtrain_store_destroy(store);
}

static void without_reports_the_loss_is_unknown(void **state) {
    struct shmtrain_store *store = make_run("processes", "1", "async");
    struct ear ear = {.store = store, .scene = make_scene(0)};
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = &ear, .progress = hear};
    (void)state;
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_run(store, work, ear.scene));
    assert_true(ear.looked && isnan(ear.seen.loss));
    munmap(ear.scene, sizeof *ear.scene);
    shmtrain_store_destroy(store);
}

static void without_a_run_there_is_nothing_to_see(void **state) {
    struct shmtrain_store *store = make_run("threads", "1", "async");
    const struct shmtrain_progress *now;
    (void)state;
    refused(store, shmtrain_store_look(store, &now), SHMTRAIN_E_USAGE, "there is no run to look at");
    shmtrain_store_destroy(store);
}

/* Steps stop a run, too: the time that is left is that of the steps. */
static void a_limit_of_steps_is_the_end_that_is_looked_forward_to(void **state) {
    struct shmtrain_store *store = make_run("processes", "1", "async");
    struct ear ear = {.store = store, .scene = make_scene(1)};
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = &ear, .progress = hear};
    const struct shmtrain_progress *end;
    (void)state;
    WELL(store, shmtrain_store_set(store, "steps", "12")); /* 8 are an epoch */
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_run(store, work, ear.scene));
    /* 11 items were done when it stood still, one was left */
    assert_true(fabs(ear.seen.seconds_left - ear.seen.seconds / 11) < 1e-9 + ear.seen.seconds * 1e-6);
    assert_int_equal(shmtrain_store_look(store, &end), 0);
    assert_int_equal(end->epoch, 2);
    assert_int_equal(end->examples, 4 * ITEM);
    munmap(ear.scene, sizeof *ear.scene);
    shmtrain_store_destroy(store);
}

/* How long whoever drives workers would sleep. */
static struct { int calls, shortest_ms; } g_polls;

int __real_poll(struct pollfd *fd, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fd, nfds_t n, int ms);

int __wrap_poll(struct pollfd *fd, nfds_t n, int ms) {
    g_polls.calls++;
    if (ms < g_polls.shortest_ms) g_polls.shortest_ms = ms;
    return __real_poll(fd, n, ms);
}

static void count_calls(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    (void)so_far;
    (void)now;
    ++*(int *)arg;
}

/* The listener was told of the run, is not told of loading and scoring, and so is never late there. */
static void nobody_hurries_to_tell_a_listener_when_nothing_trains(void **state) {
    int told = 0;
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = &told, .progress = count_calls};
    const struct shmtrain_evaluation *evaluation;
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "5"));
    shmtrain_store_listen(store, &listener);
    /* A run that is over before anybody has looked is told of by its report alone. */
    for (int run = 0; run < 100 && told == 0; run++)
        WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=300"));
    assert_true(told > 0);
    usleep(200000); /* it would be due again */
    g_polls.calls = 0;
    g_polls.shortest_ms = 1000000;
    WELL(store, shmtrain_store_evaluate(store, "builtin:sparse:examples=20000,features=300", &evaluation));
    assert_true(g_polls.calls > 0);
    assert_true(g_polls.shortest_ms > 1);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_listener_hears_how_far_the_run_is, deadline),
        cmocka_unit_test_setup(several_workers_are_counted_one_by_one, deadline),
        cmocka_unit_test_setup(what_goes_on_counts_before_it_is_over, deadline),
        cmocka_unit_test_setup(a_run_that_is_over_shows_how_it_ended, deadline),
        cmocka_unit_test_setup(without_reports_the_loss_is_unknown, deadline),
        cmocka_unit_test_setup(without_a_run_there_is_nothing_to_see, deadline),
        cmocka_unit_test_setup(a_limit_of_steps_is_the_end_that_is_looked_forward_to, deadline),
        cmocka_unit_test_setup(nobody_hurries_to_tell_a_listener_when_nothing_trains, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
