/* `allreduce` as applications see it: the parameters of `sync`, bit for bit, whoever computes what; how a report tells of it; deaths of
 * processes. Orders of events that are rare among processes: test_seeds_deaths.c. */
#include "api_help.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/atomic.h"

struct training {
    const char *data, *options[6][2];
};

#define LISTED "builtin:sparse:examples=3000,features=5000,nonzeros=10" /* gradients are lists of terms */
#define SPARSE "builtin:sparse:examples=3000,features=200,nonzeros=10"
#define DENSE  "builtin:dense:examples=1000"
#define NET \
    {"model", "net"}, { "net", "fc:16 batchnorm relu fc:10" }

static const struct training TRAININGS[] = {
    {SPARSE, {{"batch", "256"}}},
    {LISTED, {{"batch", "128"}, {"optimizer", "ftrl"}}},
    {LISTED, {{"batch", "128"}, {"clip-norm", "0.01"}, {"optimizer", "adagrad"}}},
    {DENSE, {{"model", "softmax"}}},
    {DENSE, {NET, {"chunks", "8"}}},
    {DENSE, {NET, {"optimizer", "lamb"}}},
    {DENSE, {NET, {"optimizer", "adamw"}, {"clip-norm", "0.5"}}},
};
#define N_TRAININGS (sizeof TRAININGS / sizeof *TRAININGS)

static struct shmtrain_store *begin(const struct training *t, const char *mode, const char *spawn, const char *workers,
                                    const char *threads) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "threads", threads));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    for (size_t i = 0; i < sizeof t->options / sizeof *t->options && t->options[i][0]; i++)
        WELL(store, shmtrain_store_set(store, t->options[i][0], t->options[i][1]));
    return store;
}

static uint64_t bits_of(const struct training *t, const char *mode, const char *spawn, const char *workers,
                        const char *threads) {
    struct shmtrain_store *store = begin(t, mode, spawn, workers, threads);
    WELL(store, shmtrain_store_train(store, t->data));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->mode, mode);
    const uint64_t bits = r->parameters_xxh64;
    shmtrain_store_destroy(store);
    return bits;
}

static void the_parameters_are_those_of_sync_for_all_numbers_of_workers(void **state) {
    static const char *const AS[][3] = {{"processes", "1", "1"}, {"processes", "2", "1"}, {"threads", "3", "1"},
                                        {"processes", "2", "2"}, {"fibers", "5", "1"},    {"processes", "6", "1"}};
    (void)state;
    for (size_t i = 0; i < N_TRAININGS; i++) {
        const uint64_t sync = bits_of(&TRAININGS[i], "sync", "processes", "1", "1");
        for (size_t k = 0; k < sizeof AS / sizeof *AS; k++)
            if (bits_of(&TRAININGS[i], "allreduce", AS[k][0], AS[k][1], AS[k][2]) != sync)
                fail_msg("training %zu with %s workers, which are %s of %s threads", i, AS[k][1], AS[k][0], AS[k][2]);
    }
}

static void a_report_counts_the_copies_and_no_delay(void **state) {
    struct shmtrain_store *store = begin(&TRAININGS[0], "allreduce", "processes", "3", "1");
    (void)state;
    WELL(store, shmtrain_store_train(store, TRAININGS[0].data));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->replicas, "equal");
    assert_string_equal(r->merge, "");
    assert_int_equal(r->n_replicas, 3);
    assert_int_equal(r->delay.max, 0);
    assert_int_equal(r->updates, 3 * 12); /* of 3,000 examples, 256 at a time */
    shmtrain_store_destroy(store);
}

/* ---- deaths ---- */

enum { EXAMPLES = 64 * 30, ROWS = 40, WIDTH = 2 };

/* Of all processes. */
static _Atomic uint64_t *g_deaths;

/* As a network does it. Worker 1 dies when others may have read what it has pushed, so often as `left` says. */
static int push_lent(shmtrain_session *s, void *left) {
    struct shmtrain_work w;
    float *grad;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if ((rc = shmtrain_lend(s, 0, &grad)) < 0) return rc;
        for (uint32_t i = 0; i < ROWS * WIDTH; i++) grad[i] = 1 / (float)(w.first + i + 3);
        if ((rc = shmtrain_push(s, 0, 0, ROWS, grad)) < 0) return rc;
        const bool dies = shmtrain_rank(s) == 1 && w.step % 7 == 3;
        if (dies && take_relaxed(g_deaths, 1) < *(uint64_t *)left) (void)raise(SIGKILL); /* relaxed: a count */
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void run_with_deaths(uint64_t deaths, float *out) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    store_relaxed(g_deaths, 0);
    WELL(store, shmtrain_store_set(store, "mode", "allreduce"));
    WELL(store, shmtrain_store_set(store, "workers", "3"));
    WELL(store, shmtrain_store_set(store, "batch", "64"));
    WELL(store, shmtrain_store_set(store, "epochs", "2"));
    WELL(store, shmtrain_store_set(store, "optimizer", "adam"));
    WELL(store, shmtrain_store_set(store, "max-respawns", "100"));
    assert_int_equal(shmtrain_store_table(store, "layer", ROWS, WIDTH), 0);
    WELL(store, shmtrain_store_examples(store, EXAMPLES));
    WELL(store, shmtrain_store_run(store, push_lent, &deaths));
    assert_int_equal(shmtrain_store_report(store)->respawns, deaths);
    WELL(store, shmtrain_store_read(store, 0, 0, ROWS, out));
    shmtrain_store_destroy(store);
}

static void who_dies_behind_a_push_changes_no_bit(void **state) {
    float calm[ROWS * WIDTH], out[ROWS * WIDTH];
    (void)state;
    g_deaths = mmap(NULL, sizeof *g_deaths, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(g_deaths != MAP_FAILED);
    run_with_deaths(0, calm);
    run_with_deaths(6, out);
    assert_memory_equal(out, calm, sizeof out);
    assert_int_equal(munmap(g_deaths, sizeof *g_deaths), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_parameters_are_those_of_sync_for_all_numbers_of_workers, deadline),
        cmocka_unit_test_setup(a_report_counts_the_copies_and_no_delay, deadline),
        cmocka_unit_test_setup(who_dies_behind_a_push_changes_no_bit, deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
