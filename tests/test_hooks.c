/* Hooks: each is called where and as often as it should be, sees what it may see, ends a run well or badly, and costs nothing
 * else. In processes and in threads, of models and of own worker functions. */
#include "api_help.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#define SPARSE     "builtin:sparse:examples=2000,valid=100,features=50,nonzeros=4"
#define WORKERS    3
#define EPOCHS     4
#define NEVER      UINT32_MAX
#define TABLE_ROWS 2

enum hook { BEFORE_STEP, AFTER_STEP, BEFORE_EPOCH, AFTER_EPOCH, N_HOOKS };

/* Shared by all workers and the test. */
struct seen {
    _Atomic uint64_t calls[N_HOOKS][WORKERS], examples[2]; /* before and after */
    _Atomic uint64_t applied;
    _Atomic uint32_t mistakes;                        /* what no assertion can say in another process */
    _Atomic uint32_t open[WORKERS];                   /* 1: in a step */
    _Atomic uint32_t epoch[WORKERS];                  /* that before_epoch said, plus 1 */
    _Atomic uint32_t value[EPOCHS];                   /* the bits of a float that after_epoch saw first */
    uint32_t returns_in, returns;                     /* which hook returns something in epoch 1, */
    int what;                                         /* namely this, */
    uint32_t only;                                    /* in this worker; NEVER: in all */
    bool looks, pushes_late, asks_wrong, ends, takes; /* see below */
};
static struct seen *g_seen;

static void check(bool well) { atomic_fetch_add(&g_seen->mistakes, !well); }

static int verdict(shmtrain_session *s, enum hook hook, uint32_t epoch) {
    const struct seen *seen = g_seen;
    const uint32_t rank = shmtrain_rank(s);
    atomic_fetch_add(&g_seen->calls[hook][rank], 1);
    const bool mine = seen->only == NEVER || seen->only == rank;
    return mine && seen->returns_in == (uint32_t)hook + 1 && epoch == seen->returns ? seen->what : 0;
}

static int before_step(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    struct seen *seen = arg;
    const uint32_t rank = shmtrain_rank(s);
    float x[TABLE_ROWS];
    check(atomic_exchange(&seen->open[rank], 1) == 0);
    check(atomic_load(&seen->epoch[rank]) == work->epoch + 1);
    atomic_fetch_add(&seen->examples[0], work->n);
    if (seen->looks) check(shmtrain_pull(s, 0, 0, TABLE_ROWS, x) == 0);
    if (seen->ends) return shmtrain_clock(s, NULL);
    if (seen->asks_wrong && shmtrain_pull(s, 7, 0, 1, x) < 0) return SHMTRAIN_E_USAGE;
    return verdict(s, BEFORE_STEP, work->epoch);
}

static int after_step(void *arg, shmtrain_session *s, const struct shmtrain_work *work, const struct shmtrain_fate *fate) {
    struct seen *seen = arg;
    const float one[TABLE_ROWS] = {1, 1};
    check(atomic_exchange(&seen->open[shmtrain_rank(s)], 0) == 1);
    atomic_fetch_add(&seen->examples[1], work->n);
    atomic_fetch_add(&seen->applied, fate->applied);
    if (seen->takes) return shmtrain_next(s, &(struct shmtrain_work){.size = 0});
    if (seen->pushes_late) return shmtrain_push(s, 0, 0, TABLE_ROWS, one);
    return verdict(s, AFTER_STEP, work->epoch);
}

static int before_epoch(void *arg, shmtrain_session *s, uint32_t epoch) {
    struct seen *seen = arg;
    const uint32_t rank = shmtrain_rank(s);
    check(atomic_load(&seen->epoch[rank]) == epoch);
    atomic_store(&seen->epoch[rank], epoch + 1);
    return verdict(s, BEFORE_EPOCH, epoch);
}

/* All see the same parameters, which rest. */
static int after_epoch(void *arg, shmtrain_session *s, uint32_t epoch) {
    struct seen *seen = arg;
    float x;
    uint32_t bits, none = 0;
    check(atomic_load(&seen->epoch[shmtrain_rank(s)]) == epoch + 1);
    check(shmtrain_pull(s, 0, 0, 1, &x) == 0);
    memcpy(&bits, &x, sizeof bits);
    if (!atomic_compare_exchange_strong(&seen->value[epoch], &none, bits)) check(none == bits);
    return verdict(s, AFTER_EPOCH, epoch);
}

static struct shmtrain_hooks all_hooks(void) {
    return (struct shmtrain_hooks){.size = sizeof(struct shmtrain_hooks),
                                   .arg = g_seen,
                                   .before_step = before_step,
                                   .after_step = after_step,
                                   .before_epoch = before_epoch,
                                   .after_epoch = after_epoch};
}

static struct shmtrain_store *make_store(const char *spawn, const char *mode, const struct shmtrain_hooks *hooks) {
    struct shmtrain_store *store = make(spawn, "3", "4", 640);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "rate", "0.01"));
    WELL(store, shmtrain_store_hooks(store, hooks));
    return store;
}

static int begin(void **state) {
    (void)state;
    alarm(120);
    memset(g_seen, 0, sizeof *g_seen);
    g_seen->only = NEVER;
    return 0;
}

static uint64_t calls_of(enum hook hook) {
    uint64_t n = 0;
    for (int i = 0; i < WORKERS; i++) n += atomic_load(&g_seen->calls[hook][i]);
    return n;
}

/* ---- what is called ---- */

static void each_hook_is_called_as_often_as_it_should_be(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "sync", "ssp:2", "backup:2", "local:2"};
    (void)state;
    for (size_t m = 0; m < sizeof MODES / sizeof *MODES; m++)
        for (size_t k = 0; k < 4; k++) {
            const bool model = k & 2;
            begin(NULL);
            g_seen->looks = true;
            const struct shmtrain_hooks hooks = all_hooks();
            struct shmtrain_store *store = make_store(SPAWNS[k & 1], MODES[m], &hooks);
            const uint64_t examples = EPOCHS * (model ? 2000 : 640);
            WELL(store, model ? shmtrain_store_train(store, SPARSE) : shmtrain_store_run(store, count, NULL));
            assert_int_equal(atomic_load(&g_seen->mistakes), 0);
            assert_int_equal(atomic_load(&g_seen->examples[0]), examples);
            assert_int_equal(atomic_load(&g_seen->examples[1]), examples);
            assert_int_equal(calls_of(BEFORE_STEP), calls_of(AFTER_STEP));
            assert_int_equal(calls_of(BEFORE_EPOCH), EPOCHS * WORKERS);
            assert_int_equal(calls_of(AFTER_EPOCH), EPOCHS * WORKERS);
            assert_int_equal(shmtrain_store_report(store)->n_epochs, EPOCHS);
            shmtrain_store_destroy(store);
        }
}

static void they_change_no_bit_of_a_sync_run(void **state) {
    uint64_t hash[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct shmtrain_hooks hooks = all_hooks();
        struct shmtrain_store *store = make_store("processes", "sync", i == 0 ? NULL : &hooks);
        g_seen->looks = true;
        WELL(store, shmtrain_store_train(store, SPARSE));
        hash[i] = shmtrain_store_report(store)->parameters_xxh64;
        shmtrain_store_destroy(store);
    }
    assert_int_equal(hash[0], hash[1]);
    assert_true(calls_of(AFTER_STEP) > 0);
}

static void some_of_them_are_enough_and_none_may_be_set_again(void **state) {
    const struct shmtrain_hooks one = {.size = sizeof(struct shmtrain_hooks), .arg = g_seen, .before_epoch = before_epoch};
    (void)state;
    struct shmtrain_store *store = make_store("threads", "sync", &one);
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_int_equal(calls_of(BEFORE_EPOCH), EPOCHS * WORKERS);
    WELL(store, shmtrain_store_hooks(store, NULL));
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_int_equal(calls_of(BEFORE_EPOCH), EPOCHS * WORKERS);
    shmtrain_store_destroy(store);
}

/* Rows may be pushed to between before_step and the end of the item: here by a hook, which adds what the worker does not. */
static int push_more(void *arg, shmtrain_session *s, const struct shmtrain_work *work) {
    float grad[1024]; /* of a row of any of the tables here: softmax's is as wide as its 400 features and a bias */
    (void)arg;
    for (int k = 0; k < 1024; k++) grad[k] = -(float)work->n;
    return shmtrain_push(s, 0, 1, 1, grad);
}

static void a_hook_before_a_step_may_push(void **state) {
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .before_step = push_more};
    (void)state;
    struct shmtrain_store *store = make_store("processes", "sync", &hooks);
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    WELL(store, shmtrain_store_run(store, count, NULL));
    assert_true(read_one(store, 0) == 10 * EPOCHS);
    assert_true(read_one(store, 1) == 10 * EPOCHS);
    shmtrain_store_destroy(store);
}

static void backends_of_one_worker_call_them_too(void **state) {
    static const char *const BACKENDS[] = {"plain", "copy"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        begin(NULL);
        g_seen->looks = true;
        const struct shmtrain_hooks hooks = all_hooks();
        struct shmtrain_store *store = make_store("threads", "sync", &hooks);
        WELL(store, shmtrain_store_set(store, "backend", BACKENDS[k]));
        WELL(store, shmtrain_store_set(store, "workers", "1"));
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_int_equal(atomic_load(&g_seen->mistakes), 0);
        assert_int_equal(atomic_load(&g_seen->examples[1]), EPOCHS * 640);
        assert_int_equal(calls_of(AFTER_EPOCH), EPOCHS);
        g_seen->returns_in = AFTER_EPOCH + 1;
        g_seen->returns = 1;
        g_seen->what = 1;
        for (uint32_t i = 0; i < EPOCHS; i++) atomic_store(&g_seen->value[i], 0);
        atomic_store(&g_seen->epoch[0], 0);
        WELL(store, shmtrain_store_run(store, count, NULL));
        assert_int_equal(shmtrain_store_report(store)->n_epochs, 2);
        shmtrain_store_destroy(store);
    }
}

/* ---- what they return ---- */

static void any_of_them_ends_a_run_well(void **state) {
    static const int ENDS[] = {1, 77, SHMTRAIN_E_STOPPED};
    (void)state;
    for (int hook = 0; hook < N_HOOKS; hook++)
        for (size_t k = 0; k < 6; k++) {
            begin(NULL);
            g_seen->returns_in = (uint32_t)hook + 1;
            g_seen->returns = 1;
            g_seen->what = ENDS[k % 3];
            const struct shmtrain_hooks hooks = all_hooks();
            struct shmtrain_store *store = make_store(SPAWNS[k & 1], k < 3 ? "sync" : "hogwild", &hooks);
            WELL(store, shmtrain_store_run(store, count, NULL));
            const struct shmtrain_report *r = shmtrain_store_report(store);
            assert_int_equal(r->stopped, 1);
            assert_string_equal(r->stopped_by, "request");
            assert_in_range(r->n_epochs, 2, 3);
            assert_int_equal(atomic_load(&g_seen->mistakes), 0);
            shmtrain_store_destroy(store);
        }
}

static void from_the_first_worker_the_end_of_an_epoch_is_the_end_of_the_run(void **state) {
    static const char *const MODES[] = {"sync", "hogwild", "backup:2", "local:2"};
    (void)state;
    for (size_t m = 0; m < 8; m++) {
        begin(NULL);
        g_seen->returns_in = AFTER_EPOCH + 1;
        g_seen->returns = 1;
        g_seen->what = 1;
        g_seen->only = 0;
        const struct shmtrain_hooks hooks = all_hooks();
        struct shmtrain_store *store = make_store(SPAWNS[m & 1], MODES[m / 2], &hooks);
        WELL(store, shmtrain_store_run(store, count, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_int_equal(r->n_epochs, 2);
        assert_int_equal(r->epoch[1].partial, 0);
        assert_int_equal(r->examples, 2 * 640);
        assert_int_equal(calls_of(BEFORE_EPOCH), 2 * WORKERS);
        shmtrain_store_destroy(store);
    }
}

static void a_status_fails_the_run_with_its_name(void **state) {
    static const char *const NAMES[N_HOOKS] = {"before_step", "after_step", "before_epoch", "after_epoch"};
    (void)state;
    for (int hook = 0; hook < N_HOOKS; hook++)
        for (size_t k = 0; k < 2; k++) {
            char words[96];
            begin(NULL);
            g_seen->returns_in = (uint32_t)hook + 1;
            g_seen->returns = 1;
            g_seen->what = SHMTRAIN_E_DATA;
            g_seen->only = 1;
            const struct shmtrain_hooks hooks = all_hooks();
            struct shmtrain_store *store = make_store(SPAWNS[k], "sync", &hooks);
            snprintf(words, sizeof words, "the hook %s returned SHMTRAIN_E_DATA in epoch 2", NAMES[hook]);
            refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_DATA, words);
            shmtrain_store_destroy(store);
        }
}

static void a_session_call_that_failed_in_a_hook_keeps_its_sentence(void **state) {
    (void)state;
    g_seen->asks_wrong = true;
    const struct shmtrain_hooks hooks = all_hooks();
    struct shmtrain_store *store = make_store("processes", "sync", &hooks);
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE, "there is no table ");
    shmtrain_store_destroy(store);
    begin(NULL);
    g_seen->pushes_late = true;
    store = make_store("threads", "hogwild", &hooks);
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE,
            "shmtrain_push may not be called in the hook after_step");
    shmtrain_store_destroy(store);
}

static int fail_in_silence(void *arg, shmtrain_session *s, uint32_t epoch) {
    (void)arg;
    (void)shmtrain_fail(s, SHMTRAIN_E_DATA, "epoch %u is no good", epoch);
    return 0;
}

/* Behind the last epoch no session call follows that would return it. */
static void a_sentence_ends_the_run_also_where_the_hook_returns_0(void **state) {
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .after_epoch = fail_in_silence};
    (void)state;
    struct shmtrain_store *store = make_store("processes", "sync", &hooks);
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_DATA, "epoch 0 is no good");
    shmtrain_store_destroy(store);
}

/* softmax borrows the gradients of both its tables. */
static void a_hook_does_not_push_where_the_model_borrows(void **state) {
    static const char *const MODES[] = {"sync", "hogwild"};
    const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .before_step = push_more};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_store("threads", MODES[i], &hooks);
        WELL(store, shmtrain_store_set(store, "model", "logistic"));
        WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=2000,features=400"));
        WELL(store, shmtrain_store_set(store, "model", "softmax"));
        refused(store, shmtrain_store_train(store, "builtin:dense:examples=2000,features=400"), SHMTRAIN_E_USAGE,
                "the hook before_step has pushed to table \"");
        shmtrain_store_destroy(store);
    }
}

static void they_take_no_work_and_end_none(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin(NULL);
        g_seen->ends = i == 0;
        g_seen->takes = i == 1;
        if (i == 2) g_seen->returns_in = AFTER_EPOCH + 1, g_seen->returns = 0, g_seen->what = SHMTRAIN_E_AGAIN;
        const struct shmtrain_hooks hooks = all_hooks();
        struct shmtrain_store *store = make_store(SPAWNS[i % 2], "async", &hooks);
        refused(store, shmtrain_store_run(store, count, NULL), SHMTRAIN_E_USAGE,
                i == 0   ? "shmtrain_clock may not be called in the hook before_step"
                : i == 1 ? "shmtrain_next may not be called in the hook after_step"
                         : "a hook returned SHMTRAIN_E_AGAIN");
        shmtrain_store_destroy(store);
    }
}

static void while_a_run_goes_on_they_cannot_be_set(void **state) {
    const struct shmtrain_hooks none = {.size = sizeof none};
    (void)state;
    struct shmtrain_store *store = make_store("processes", "sync", NULL);
    WELL(store, shmtrain_store_start(store, count, NULL));
    refused(store, shmtrain_store_hooks(store, &none), SHMTRAIN_E_USAGE, "");
    while (shmtrain_store_step(store) == 1) usleep(1000);
    WELL(store, shmtrain_store_hooks(store, &none));
    shmtrain_store_destroy(store);
}

static int share(void **state) {
    (void)state;
    g_seen = mmap(NULL, sizeof *g_seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return g_seen == MAP_FAILED ? -1 : 0;
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, begin)
    const struct CMUnitTest tests[] = {
        TEST(each_hook_is_called_as_often_as_it_should_be),
        TEST(they_change_no_bit_of_a_sync_run),
        TEST(some_of_them_are_enough_and_none_may_be_set_again),
        TEST(a_hook_before_a_step_may_push),
        TEST(backends_of_one_worker_call_them_too),
        TEST(any_of_them_ends_a_run_well),
        TEST(from_the_first_worker_the_end_of_an_epoch_is_the_end_of_the_run),
        TEST(a_status_fails_the_run_with_its_name),
        TEST(a_session_call_that_failed_in_a_hook_keeps_its_sentence),
        TEST(a_sentence_ends_the_run_also_where_the_hook_returns_0),
        TEST(a_hook_does_not_push_where_the_model_borrows),
        TEST(they_take_no_work_and_end_none),
        TEST(while_a_run_goes_on_they_cannot_be_set),
    };
    return cmocka_run_group_tests_name("hooks", tests, share, NULL);
}
