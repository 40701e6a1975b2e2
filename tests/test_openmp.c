/* Applications that use OpenMP themselves: libgomp's threads are not there in a forked child, which would hang in its first
 * region of more than one thread. Only what <shmtrain/shmtrain.h> says is used; and libgomp, called as gcc's code for `#pragma
 * omp parallel` calls it, so that no compiler needs to know OpenMP. The order of the tests counts: the first one runs before
 * this process has used it. */
#include "api_help.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

/* Loops long enough for threads: 256 examples, 40,000 weights. */
#define DATA "builtin:dense:examples=1024,valid=256,features=1000,classes=40"

static char g_notes[1000];

static void keep_note(void *arg, const char *line) {
    (void)arg;
    strncat(g_notes, line, sizeof g_notes - strlen(g_notes) - 1);
}

/* ---- the application's own OpenMP ---- */

static atomic_uint g_came;
static void count_one(void *arg) {
    (void)arg;
    g_came++;
}

static void use_openmp(void) {
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    void *const library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_GLOBAL), *found;
    if (!library || !(found = dlsym(library, "GOMP_parallel"))) {
        print_message("skipped: %s\n", dlerror());
        skip();
    }
    memcpy(&parallel, &found, sizeof parallel);
    g_came = 0;
    parallel(count_one, NULL, 4, 0);
    assert_int_equal(g_came, 4);
}

/* ---- training ---- */

static struct shmtrain_store *make_dense(const char *spawn, const char *threads) {
    static const struct shmtrain_listener LISTENER = {.size = sizeof(struct shmtrain_listener), .note = keep_note};
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "model", "softmax"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "batch", "512"));
    WELL(store, shmtrain_store_set(store, "chunks", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "threads", threads));
    shmtrain_store_listen(store, &LISTENER);
    g_notes[0] = '\0';
    return store;
}

/* Trains, and returns the hash of the parameters; *threads_out: that each worker had. */
static uint64_t train(const char *spawn, const char *threads, uint32_t *threads_out) {
    struct shmtrain_store *store = make_dense(spawn, threads);
    const int rc = shmtrain_store_train(store, DATA);
    if (rc < 0 && strstr(shmtrain_store_message(store), "need OpenBLAS")) {
        print_message("skipped: %s\n", shmtrain_store_message(store));
        shmtrain_store_destroy(store);
        skip();
    }
    WELL(store, rc);
    const struct shmtrain_report *report = shmtrain_store_report(store);
    const uint64_t hash = report->parameters_xxh64;
    *threads_out = report->threads;
    const struct shmtrain_evaluation *evaluation; /* by workers that are forked once more */
    WELL(store, shmtrain_store_evaluate(store, DATA, &evaluation));
    assert_true(evaluation->accuracy > 0.2); /* of 40 classes */
    shmtrain_store_destroy(store);
    return hash;
}

static uint64_t g_hash;

static void forked_workers_have_threads_while_the_application_has_none(void **state) {
    uint32_t threads;
    (void)state;
    g_hash = train("processes", "2", &threads);
    if (!dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD)) assert_true(threads == 2 || strstr(g_notes, "install libgomp1"));
}

static void forked_workers_of_one_thread_do_not_hang_after_openmp_was_used(void **state) {
    uint32_t threads;
    (void)state;
    use_openmp();
    assert_true(train("processes", "1", &threads) == g_hash);
    assert_int_equal(threads, 1);
    assert_string_equal(g_notes, "");
}

static void forked_workers_get_one_thread_instead_of_hanging(void **state) {
    uint32_t threads;
    (void)state;
    use_openmp();
    assert_true(train("processes", "2", &threads) == g_hash);
    assert_int_equal(threads, 1);
    assert_non_null(strstr(g_notes, "each worker has 1 of 2 threads, because this process uses OpenMP"));
}

/* And the application's own regions go on working between runs. */
static void threads_of_the_application_may_share_loops(void **state) {
    uint32_t threads;
    (void)state;
    for (int i = 0; i < 3; i++) {
        use_openmp();
        assert_true(train("threads", "2", &threads) == g_hash);
        assert_int_equal(threads, 2);
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup(f, deadline)
    const struct CMUnitTest tests[] = {
        TEST(forked_workers_have_threads_while_the_application_has_none),
        TEST(forked_workers_of_one_thread_do_not_hang_after_openmp_was_used),
        TEST(forked_workers_get_one_thread_instead_of_hanging),
        TEST(threads_of_the_application_may_share_loops),
    };
    unsetenv("OMP_NUM_THREADS");
    unsetenv("SHMTRAIN_BLAS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
