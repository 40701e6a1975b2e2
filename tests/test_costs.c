/* What a run has cost, as its report says: workers do what the tests direct, and are told apart by counts and by who is first,
 * never by times. */
#include "api_help.h"

#include <jansson.h>
#include <math.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

enum { N = 64, ITEM = 8, SLOW = 1 };

static struct shmtrain_store *make_run(const char *spawn, const char *workers, const char *mode) {
    struct shmtrain_store *store = make(spawn, workers, "2", N);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "item", "8"));
    WELL(store, shmtrain_store_set(store, "batch", "16"));
    return store;
}

/* The report as anybody gets it. */
static json_t *json_of(struct shmtrain_store *store) {
    char *text = shmtrain_report_json(shmtrain_store_report(store));
    assert_non_null(text);
    json_t *o = json_loads(text, 0, NULL);
    assert_non_null(o);
    free(text);
    return o;
}

/* What is said of all together is what is said of each. */
static void check_shares(const struct shmtrain_report *r) {
    double waited = 0, at_ends = 0, all = 0;
    for (uint32_t i = 0; i < r->n_workers; i++) {
        const struct shmtrain_worker_report *w = &r->worker[i];
        waited += w->wait_seconds;
        at_ends += w->wait_epoch_seconds;
        all += w->compute_seconds + w->merge_seconds + w->wait_seconds + w->wait_epoch_seconds;
    }
    assert_true(all > 0);
    assert_true(fabs(r->wait_fraction - waited / all) < 1e-9);
    assert_true(fabs(r->wait_epoch_fraction - at_ends / all) < 1e-9);
}

/* ---- waiting ---- */

/* Who has rank SLOW takes its time for each item: far more than anything else that may happen to the others. */
static int work_slowly(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -1;
        if (shmtrain_rank(s) == SLOW) usleep(20000);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

static void the_slow_worker_is_whom_the_others_wait_for(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_run(SPAWNS[i], "3", "sync");
        WELL(store, shmtrain_store_run(store, work_slowly, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_int_equal(r->n_workers, 3);
        for (uint32_t w = 0; w < 3; w++) {
            const struct shmtrain_worker_report *worker = &r->worker[w];
            assert_false(worker->joined);
            for (uint32_t k = 1; k < worker->n_waited_for; k++)
                assert_true(worker->waited_for[k - 1].seconds >= worker->waited_for[k].seconds);
            if (w == SLOW) continue;
            assert_in_range(worker->n_waited_for, 1, SHMTRAIN_WAITED_FOR);
            assert_int_equal(worker->waited_for[0].worker, SLOW);
        }
        check_shares(r);
        char text[4096];
        shmtrain_report_summary(r, text, sizeof text);
        if (!strstr(text, "% of the workers' time, mostly for worker 1")) fail_msg("%s", text);
        assert_int_equal(r->waits_mostly_for, SLOW);
        json_t *o = json_of(store), *of_first = json_array_get(json_object_get(o, "per_worker"), 0);
        json_t *longest = json_array_get(json_object_get(of_first, "waited_for"), 0);
        assert_int_equal(json_integer_value(json_object_get(longest, "worker")), SLOW);
        assert_int_equal(json_integer_value(json_object_get(o, "waits_mostly_for")), SLOW);
        json_decref(o);
        shmtrain_store_destroy(store);
    }
}

/* There all wait in every mode: whom for says nothing of the one that was chosen. */
static void nobody_is_named_for_waits_at_the_ends_of_epochs(void **state) {
    struct shmtrain_store *store = make_run("threads", "3", "async");
    char text[4096];
    (void)state;
    WELL(store, shmtrain_store_run(store, work_slowly, NULL));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->wait_epoch_fraction > 0 && r->wait_fraction == 0);
    for (uint32_t w = 0; w < 3; w++) assert_int_equal(r->worker[w].n_waited_for, 0);
    assert_true(r->waits_mostly_for == UINT32_MAX);
    shmtrain_report_summary(r, text, sizeof text);
    assert_null(strstr(text, "waits for"));
    assert_null(strstr(text, "mostly for"));
    json_t *o = json_of(store);
    assert_true(json_is_null(json_object_get(o, "waits_mostly_for")));
    json_decref(o);
    shmtrain_store_destroy(store);
}

/* Threads of a worker have a seat each; they are one worker in the report. */
static void threads_of_a_worker_are_added_up(void **state) {
    struct shmtrain_store *store;
    uint64_t sum = 0;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "threads", "3"));
    WELL(store, shmtrain_store_set(store, "epochs", "4"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=300"));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_int_equal(r->n_workers, 2);
    for (uint32_t w = 0; w < 2; w++) {
        const struct shmtrain_worker_report *worker = &r->worker[w];
        sum += worker->examples;
        assert_true(worker->examples > 0 && worker->compute_seconds > 0);
        assert_true(worker->load_seconds >= 0);
        for (uint32_t k = 0; k < worker->n_waited_for; k++) assert_true(worker->waited_for[k].worker < 2);
    }
    assert_int_equal(sum, 8000);
    assert_true(r->worker[0].load_seconds > 0); /* somebody read the data */
    shmtrain_store_destroy(store);
}

/* ---- delay ---- */

/* Of 8 items, one push each: worker 0 has its only one in hand while worker 1 does five; the last two worker 1 does while
 * worker 0 does nothing. */
struct scene {
    _Atomic uint32_t done_by_1, held_by_0, done_by_0;
};

static void wait_until(const _Atomic uint32_t *word, uint32_t n) {
    while (atomic_load(word) < n) usleep(200);
}

static int work_as_directed(shmtrain_session *s, void *arg) {
    struct scene *scene = arg;
    struct shmtrain_work w;
    const float grad = -1;
    int rc;
    const bool is_first = shmtrain_rank(s) == 0;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (is_first) atomic_store(&scene->held_by_0, 1);
        wait_until(is_first ? &scene->done_by_1 : &scene->held_by_0, is_first ? 5 : 1);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) break;
        if (is_first) {
            atomic_store(&scene->done_by_0, 1);
            wait_until(&scene->done_by_1, 7);
        } else if (atomic_fetch_add(&scene->done_by_1, 1) + 1 == 5) {
            wait_until(&scene->done_by_0, 1);
        }
    }
    return rc;
}

static void a_delay_is_what_others_have_pushed_meanwhile(void **state) {
    struct shmtrain_store *store = make_run("threads", "2", "async");
    struct scene scene = {0};
    (void)state;
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_run(store, work_as_directed, &scene));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const struct shmtrain_delay *d = &r->delay;
    assert_int_equal(d->samples, 8);
    assert_true(d->max == 5 && d->p99 == 5 && d->p50 == 0);
    assert_true(fabs(d->mean - 5.0 / 8) < 1e-12);
    assert_true(fabs(d->clocks - 5.0 / 8) < 1e-12); /* an item makes one update */
    assert_int_equal(d->n_buckets, 2);
    assert_true(d->bucket[0].from == 0 && d->bucket[0].to == 0 && d->bucket[0].samples == 7);
    assert_true(d->bucket[1].from == 5 && d->bucket[1].to == 5 && d->bucket[1].samples == 1);
    assert_true(r->worker[0].delay == 5 && r->worker[1].delay == 0);
    shmtrain_store_destroy(store);
}

static void in_sync_nobody_misses_an_update(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "5", "40", 320);
        char text[4096];
        WELL(store, shmtrain_store_run(store, count, NULL));
        const struct shmtrain_delay *d = &shmtrain_store_report(store)->delay;
        assert_true(d->samples > 0);
        assert_true(d->max == 0 && d->mean == 0 && d->clocks == 0);
        shmtrain_report_summary(shmtrain_store_report(store), text, sizeof text);
        assert_non_null(strstr(text, "\ndelay       none\n"));
        shmtrain_store_destroy(store);
    }
}

static void examples_are_updates_of_a_sparse_model(void **state) {
    struct shmtrain_store *store;
    (void)state;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "item", "50"));
    WELL(store, shmtrain_store_set(store, "mode", "async"));
    WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=300"));
    const struct shmtrain_delay *d = &shmtrain_store_report(store)->delay;
    assert_int_equal(d->samples, 10 * 2000 / 50); /* each item */
    assert_true(fabs(d->clocks * 50 - d->mean) <= 1e-9 * d->mean);
    shmtrain_store_destroy(store);
}

/* Beside what shows how a run goes, which is there anyway. */
static void who_asks_for_no_measuring_gets_none(void **state) {
    struct shmtrain_store *store = make_run("threads", "3", "sync");
    (void)state;
    WELL(store, shmtrain_store_set(store, "measure", "0"));
    WELL(store, shmtrain_store_run(store, work_slowly, NULL));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_true(r->delay.samples == 0 && r->delay.n_buckets == 0 && isnan(r->delay.mean) && isnan(r->delay.max));
    assert_int_equal(r->n_workers, 3);
    assert_true(r->waits_mostly_for == UINT32_MAX);
    for (uint32_t w = 0; w < 3; w++) {
        assert_int_equal(r->worker[w].n_waited_for, 0);
        assert_true(isnan(r->worker[w].delay) && r->worker[w].examples > 0);
    }
    json_t *o = json_of(store), *delay = json_object_get(o, "delay");
    assert_true(json_is_null(json_object_get(delay, "mean")) && json_is_null(json_object_get(delay, "clocks")));
    assert_int_equal(json_array_size(json_object_get(delay, "histogram")), 0);
    json_decref(o);
    shmtrain_store_destroy(store);
}

/* ---- others' runs ---- */

static void who_looks_on_by_name_sees_the_same(void **state) {
    struct shmtrain_store *store = make_run("threads", "2", "async"), *visitor;
    struct scene scene = {0};
    char name[64], message[256];
    const struct shmtrain_progress *now;
    (void)state;
    snprintf(name, sizeof name, "test_costs-%d", (int)getpid());
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "name", name));
    WELL(store, shmtrain_store_run(store, work_as_directed, &scene));
    assert_int_equal(shmtrain_store_create(&visitor), 0);
    WELL(visitor, shmtrain_store_observe(visitor, name));
    assert_int_equal(shmtrain_store_look(visitor, &now), 0);
    const struct shmtrain_report *mine = shmtrain_store_report(store), *theirs = shmtrain_store_report(visitor);
    assert_int_equal(theirs->n_workers, 2); /* no places that nobody has taken */
    assert_true(theirs->delay.max == 5 && theirs->delay.samples == 8 && theirs->delay.n_buckets == 2);
    for (uint32_t w = 0; w < 2; w++) {
        assert_int_equal(theirs->worker[w].examples, mine->worker[w].examples);
        assert_true(theirs->worker[w].compute_seconds == mine->worker[w].compute_seconds);
        assert_true(isnan(theirs->worker[w].load_seconds));
    }
    assert_true(theirs->wait_fraction == mine->wait_fraction && theirs->updates == mine->updates);
    shmtrain_store_destroy(visitor);
    shmtrain_store_destroy(store);
    assert_int_equal(shmtrain_named_remove(name, 1, message, sizeof message), 0);
}

/* The lists are the last run's. */
static void a_further_run_begins_anew(void **state) {
    struct shmtrain_store *store = make_run("threads", "3", "sync");
    (void)state;
    for (int i = 0; i < 2; i++) {
        WELL(store, shmtrain_store_run(store, count, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        uint64_t sum = 0;
        for (uint32_t w = 0; w < r->n_workers; w++) sum += r->worker[w].examples;
        assert_int_equal(sum, 2 * N);
        WELL(store, shmtrain_store_set(store, "workers", "2"));
    }
    assert_int_equal(shmtrain_store_report(store)->n_workers, 2);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_slow_worker_is_whom_the_others_wait_for, deadline),
        cmocka_unit_test_setup(nobody_is_named_for_waits_at_the_ends_of_epochs, deadline),
        cmocka_unit_test_setup(threads_of_a_worker_are_added_up, deadline),
        cmocka_unit_test_setup(a_delay_is_what_others_have_pushed_meanwhile, deadline),
        cmocka_unit_test_setup(in_sync_nobody_misses_an_update, deadline),
        cmocka_unit_test_setup(examples_are_updates_of_a_sparse_model, deadline),
        cmocka_unit_test_setup(who_asks_for_no_measuring_gets_none, deadline),
        cmocka_unit_test_setup(who_looks_on_by_name_sees_the_same, deadline),
        cmocka_unit_test_setup(a_further_run_begins_anew, deadline),
    };
    return cmocka_run_group_tests_name("costs", tests, NULL, NULL);
}
