/* Validation of own worker functions: each example is scored once an epoch, the mean has the same bits for every number of
 * workers and with guests, and runs end by it. */
#include "api_help.h"
#include "folder_help.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { EXAMPLES = 640, MOST = 5000, EPOCHS = 6 };

/* Shared by all processes of a test. */
static struct shared {
    _Atomic uint32_t scored[MOST];  /* how often each example was */
    _Atomic uint32_t ranks, joined; /* set of those that scored; a guest has worked */
    _Atomic uint32_t calls;         /* of the function that scores */
    uint32_t n_epochs;
    double loss[EPOCHS];
    char said[512];
} * g_shared;

static int begin(void **state) {
    g_shared = mmap(NULL, sizeof *g_shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return g_shared == MAP_FAILED ? -1 : make_folder(state);
}

/* Sums of these depend on their order. */
static double target(uint64_t i) { return sin((double)i) * pow(10, (double)(i % 7)); }

static int score(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss_out, uint64_t *right_out) {
    float w;
    const int rc = shmtrain_pull(s, 0, 0, 1, &w);
    (void)arg;
    if (rc < 0) return rc;
    if (*loss_out != 0 || *right_out != 0) return SHMTRAIN_E_USAGE;
    atomic_fetch_or(&g_shared->ranks, 1U << shmtrain_rank(s));
    g_shared->calls++;
    for (uint64_t i = first; i < first + n; i++) {
        const double miss = (double)w - target(i);
        atomic_fetch_add(&g_shared->scored[i], 1);
        *loss_out += miss * miss;
        *right_out += target(i) > 0;
    }
    return 0;
}

/* Each batch moves row 0 by the rate. */
static int work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if (shmtrain_rank(s) > 0) g_shared->joined = 1;
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_report(s, (double)w.n)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static struct shmtrain_validation validation_of(uint64_t n) {
    return (struct shmtrain_validation){
        .size = sizeof(struct shmtrain_validation), .classifies = 1, .n_examples = n, .score = score, .name = "mine"};
}

static struct shmtrain_store *open_validating(const char *spawn, const char *workers, uint64_t n) {
    struct shmtrain_store *store = make(spawn, workers, "6", EXAMPLES);
    const struct shmtrain_validation v = validation_of(n);
    WELL(store, shmtrain_store_set(store, "rate", "0.125"));
    WELL(store, shmtrain_store_validate(store, &v));
    memset(g_shared, 0, sizeof *g_shared);
    return store;
}

static void losses_have_the_same_bits_for_every_number_of_workers(void **state) {
    static const char *const WORKERS[] = {"1", "2", "3", "7"};
    static const uint64_t N[] = {1, 5, 1000, MOST};
    (void)state;
    for (size_t n = 0; n < 4; n++) {
        double loss[EPOCHS] = {0};
        uint64_t right = 0;
        for (uint64_t i = 0; i < N[n]; i++) right += target(i) > 0;
        for (size_t w = 0; w < 4; w++) {
            struct shmtrain_store *store = open_validating(SPAWNS[w & 1], WORKERS[w], N[n]);
            WELL(store, shmtrain_store_run(store, work, NULL));
            const struct shmtrain_report *r = shmtrain_store_report(store);
            assert_true(r->n_epochs == EPOCHS && r->valid.examples == N[n] && r->with_accuracy && !r->with_auc);
            assert_string_equal(r->valid.name, "mine");
            for (uint32_t e = 0; e < EPOCHS; e++) {
                if (w == 0) loss[e] = r->epoch[e].valid_loss;
                assert_true(r->epoch[e].valid_loss == loss[e]);
                assert_true(r->epoch[e].valid_accuracy == (double)right / (double)N[n] && isnan(r->epoch[e].valid_auc));
            }
            for (uint64_t i = 0; i < N[n]; i++) assert_int_equal(g_shared->scored[i], EPOCHS);
            assert_true(g_shared->calls <= 256 * EPOCHS); /* as the header says */
            if (N[n] == MOST) assert_int_equal(g_shared->ranks, (1U << atoi(WORKERS[w])) - 1);
            shmtrain_store_destroy(store);
        }
        double sum = 0; /* w is 0.125 x batches, exactly: the first epoch's mean, but for its last bits */
        for (uint64_t i = 0; i < N[n]; i++) sum += pow(1.25 - target(i), 2);
        assert_true(fabs(loss[0] - sum / (double)N[n]) <= 1e-9 * fabs(loss[0]));
    }
}

/* (w - 2)^2: least where w is 2. */
static int score_bowl(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss_out, uint64_t *right_out) {
    float w;
    const int rc = shmtrain_pull(s, 0, 0, 1, &w);
    (void)arg;
    (void)first;
    (void)right_out;
    *loss_out = (double)n * ((double)w - 2) * ((double)w - 2);
    return rc;
}

static void runs_end_by_what_it_finds(void **state) {
    static const char *const HOW[][3] = {{"patience", "2", "patience"}, {"target-loss", "0.6", "target-loss"}};
    static const uint32_t ENDS[] = {4, 1}; /* w is 1.25, 2.5, 3.75, 5: the losses are 0.5625, 0.25, 3.06, 9 */
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct shmtrain_store *store = make(SPAWNS[i], "2", "6", EXAMPLES);
        const struct shmtrain_validation v = {.size = sizeof v, .n_examples = 10, .score = score_bowl};
        WELL(store, shmtrain_store_set(store, "rate", "0.125"));
        WELL(store, shmtrain_store_set(store, HOW[i][0], HOW[i][1]));
        WELL(store, shmtrain_store_validate(store, &v));
        WELL(store, shmtrain_store_run(store, work, NULL));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        assert_int_equal(r->n_epochs, ENDS[i]);
        assert_string_equal(r->stopped_by, HOW[i][2]);
        assert_string_equal(r->valid.name, "validation");
        assert_true(r->epoch[0].valid_loss == 0.5625 && isnan(r->epoch[0].valid_accuracy) && !r->with_accuracy);
        WELL(store, shmtrain_store_validate(store, NULL));
        WELL(store, shmtrain_store_set(store, HOW[i][0], "none"));
        WELL(store, shmtrain_store_run(store, work, NULL));
        assert_true(isnan(shmtrain_store_report(store)->epoch[0].valid_loss));
        shmtrain_store_destroy(store);
    }
}

/* ---- failures ---- */

static int go_wrong(shmtrain_session *s, void *arg, uint64_t first, uint64_t n, double *loss_out, uint64_t *right_out) {
    float w[3];
    if (strcmp(arg, "status") == 0) return SHMTRAIN_E_DATA;
    if (strcmp(arg, "row") == 0) return shmtrain_pull(s, 0, 0, 3, w);
    if (strcmp(arg, "positive") == 0) return 3;
    if (strcmp(arg, "stopped") == 0) return shmtrain_rank(s) == 1 ? SHMTRAIN_E_STOPPED : 0;
    if (strcmp(arg, "again") == 0) return SHMTRAIN_E_AGAIN;
    if (strcmp(arg, "next") == 0) return shmtrain_next(s, &(struct shmtrain_work){.size = 0});
    if (first + n > 6 && strcmp(arg, "nan") == 0) *loss_out = NAN;
    if (first + n > 6 && strcmp(arg, "infinite") == 0) *loss_out = -INFINITY;
    if (isnan(*loss_out) || isinf(*loss_out)) return 0;
    if (strcmp(arg, "right") == 0) *right_out = n + 1;
    return 0;
}

static void a_function_that_fails_ends_the_run(void **state) {
    static const struct {
        const char *how;
        int status;
        const char *words;
    } WAYS[] = {{"status", SHMTRAIN_E_DATA, "the validation function ended with SHMTRAIN_E_DATA"},
                {"row", SHMTRAIN_E_USAGE, "row"},
                {"positive", SHMTRAIN_E_USAGE, "returned 3"},
                {"stopped", SHMTRAIN_E_USAGE, "the validation function returned SHMTRAIN_E_STOPPED, but no session call had"},
                {"again", SHMTRAIN_E_USAGE, "the validation function returned SHMTRAIN_E_AGAIN"},
                {"next", SHMTRAIN_E_USAGE, "shmtrain_next may not be called in the validation function"},
                {"right", SHMTRAIN_E_USAGE, "says that 2 of 1 predictions are right"},
                {"nan", SHMTRAIN_E_NUMBERS, "the validation function's loss of examples 6 to 6 is not a number"},
                {"infinite", SHMTRAIN_E_NUMBERS, "the validation function's loss of examples 6 to 6 is infinite"}};
    (void)state;
    for (int i = 0; i < 9; i++) {
        struct shmtrain_store *store = make(SPAWNS[i & 1], "2", "2", EXAMPLES);
        const struct shmtrain_validation v = {
            .size = sizeof v, .n_examples = i < 7 ? 10 : 7, .score = go_wrong, .arg = (void *)(uintptr_t)WAYS[i].how};
        WELL(store, shmtrain_store_validate(store, &v));
        refused(store, shmtrain_store_run(store, work, NULL), WAYS[i].status, WAYS[i].words);
        shmtrain_store_destroy(store);
    }
}

static void what_cannot_be_is_refused(void **state) {
    struct shmtrain_store *store = make("threads", "1", "1", EXAMPLES);
    struct shmtrain_validation v = validation_of(10);
    (void)state;
    v.size = 8;
    refused(store, shmtrain_store_validate(store, &v), SHMTRAIN_E_USAGE, "size is 8");
    v = validation_of(0);
    refused(store, shmtrain_store_validate(store, &v), SHMTRAIN_E_USAGE, "1 to 4294967295");
    v = validation_of(UINT64_MAX);
    refused(store, shmtrain_store_validate(store, &v), SHMTRAIN_E_USAGE, "1 to 4294967295");
    v = validation_of(10);
    v.score = NULL;
    refused(store, shmtrain_store_validate(store, &v), SHMTRAIN_E_USAGE, "a function");
    v = validation_of(10);
    v.classifies = 2;
    refused(store, shmtrain_store_validate(store, &v), SHMTRAIN_E_USAGE, "classifies");
    shmtrain_store_destroy(store);
}

/* ---- guests ---- */

static void nap(void) { nanosleep(&(const struct timespec){.tv_nsec = 2000000}, NULL); }

static struct shmtrain_store *g_maker;

static void keep_epoch(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    (void)arg;
    (void)so_far;
    if (epoch->epoch <= EPOCHS) g_shared->loss[epoch->epoch - 1] = epoch->valid_loss;
    g_shared->n_epochs = epoch->epoch;
    if (g_shared->joined && epoch->epoch >= EPOCHS) shmtrain_store_stop(g_maker);
}

static void run_maker(const char *name) {
    struct shmtrain_store *store = g_maker = open_validating("processes", "1", MOST);
    WELL(store, shmtrain_store_set(store, "name", name));
    WELL(store, shmtrain_store_set(store, "guests", "1"));
    WELL(store, shmtrain_store_set(store, "epochs", "1000000"));
    shmtrain_store_listen(store,
                          &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .epoch = keep_epoch});
    const int rc = shmtrain_store_run(store, work, NULL);
    snprintf(g_shared->said, sizeof g_shared->said, "%d %s", rc, shmtrain_store_message(store));
    _exit(rc == 0 ? 0 : 1);
}

/* A guest waits while the others score. */
static void guests_take_part_in_a_run_that_is_validated(void **state) {
    char name[64], message[256];
    (void)state;
    snprintf(name, sizeof name, "test_validation-%d", (int)getpid());
    memset(g_shared, 0, sizeof *g_shared);
    const pid_t maker = fork();
    if (maker == 0) run_maker(name);
    struct shmtrain_store *guest;
    int rc, status;
    do {
        nap();
        assert_int_equal(shmtrain_store_create(&guest), 0);
        WELL(guest, shmtrain_store_set(guest, "workers", "1"));
        rc = shmtrain_store_join(guest, name, work, NULL);
        if (rc == 0) break;
        if (waitpid(maker, &status, WNOHANG) != 0) fail_msg("%s; %s", g_shared->said, shmtrain_store_message(guest));
        shmtrain_store_destroy(guest);
    } while (rc < 0);
    const struct shmtrain_report *r = shmtrain_store_report(guest);
    assert_string_equal(r->valid.name, "mine");
    assert_true(r->valid.examples == MOST && r->with_accuracy);
    assert_int_equal(waitpid(maker, &status, 0), maker);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) fail_msg("%s", g_shared->said);
    assert_int_equal(g_shared->ranks, 1);
    const uint32_t n = g_shared->n_epochs;
    for (uint64_t i = 0; i < MOST; i++) assert_in_range(g_shared->scored[i], n, n + 1); /* the last one may have been cut off */
    double loss[EPOCHS];
    memcpy(loss, g_shared->loss, sizeof loss);
    shmtrain_store_destroy(guest);
    (void)shmtrain_named_remove(name, 1, message, sizeof message);

    struct shmtrain_store *store = open_validating("threads", "2", MOST);
    WELL(store, shmtrain_store_run(store, work, NULL));
    for (uint32_t e = 0; e < EPOCHS; e++) assert_true(shmtrain_store_report(store)->epoch[e].valid_loss == loss[e]);
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(losses_have_the_same_bits_for_every_number_of_workers, deadline),
        cmocka_unit_test_setup(runs_end_by_what_it_finds, deadline),
        cmocka_unit_test_setup(a_function_that_fails_ends_the_run, deadline),
        cmocka_unit_test_setup(what_cannot_be_is_refused, deadline),
        cmocka_unit_test_setup(guests_take_part_in_a_run_that_is_validated, deadline),
    };
    return cmocka_run_group_tests(tests, begin, remove_folder);
}
