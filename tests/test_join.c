/* Stores with a name: who observes one, who joins as a worker, and what happens when somebody dies. Makers run in processes of
 * their own; what all of them count together stands in memory that they share with the test. */
#include "api_help.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#define EXAMPLES 640
#define BATCH    64
#define FOREVER  "1000000"

static char NAME[64];

/* Shared by all processes of a test. */
struct tally {
    _Atomic uint64_t examples[64];     /* done, by rank */
    _Atomic uint32_t times[EXAMPLES];  /* how often each example was dealt */
    _Atomic uint32_t fail_rank, holds; /* rank + 1 that fails next; how long an item takes, in microseconds */
    char said[512];                    /* by the maker, at its end */
    double examples_of_last_epoch;
    uint64_t xxh64;
    uint32_t n_epochs, n_notes;
    char note[256];
};
static struct tally *tally;

static int begin(void **state) {
    (void)state;
    alarm(120);
    memset(tally, 0, sizeof *tally);
    return 0;
}

static int end(void **state) {
    char message[512];
    (void)state;
    (void)shmtrain_named_remove(NAME, 1, message, sizeof message);
    while (waitpid(-1, NULL, WNOHANG) > 0) continue;
    return 0;
}

static void nap(long us) {
    const struct timespec pause = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    (void)nanosleep(&pause, NULL);
}

/* Each batch (sync) adds 1 to row 0, exactly; each item counts its examples. */
static int work(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    uint32_t order[EXAMPLES];
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        nap((long)tally->holds);
        if (tally->fail_rank == shmtrain_rank(s) + 1) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_order(s, &w, order)) < 0) return rc;
        for (uint64_t i = 0; i < w.n; i++) atomic_fetch_add(&tally->times[order[i]], 1);
        atomic_fetch_add(&tally->examples[shmtrain_rank(s)], w.n);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_report(s, (double)w.n)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* ---- the maker, in a process of its own ---- */

static struct shmtrain_store *the_store;
static void stop(int signal) {
    (void)signal;
    shmtrain_store_stop(the_store);
}

static void keep_note(void *arg, const char *line) {
    (void)arg;
    snprintf(tally->note, sizeof tally->note, "%s", line);
    tally->n_notes++;
}

struct how {
    const char *mode, *spawn, *workers, *guests, *epochs, *data; /* data NULL: own worker function */
    uint32_t holds;
};

static struct shmtrain_store *make_store(const struct how *how) {
    struct shmtrain_store *store = make(how->spawn, how->workers, how->epochs, EXAMPLES);
    WELL(store, shmtrain_store_set(store, "mode", how->mode));
    WELL(store, shmtrain_store_set(store, "item", "16"));
    WELL(store, shmtrain_store_set(store, "guests", how->guests));
    WELL(store, shmtrain_store_set(store, "name", NAME));
    if (how->data && strstr(how->data, "dense")) WELL(store, shmtrain_store_set(store, "model", "softmax"));
    return store;
}

static void run_as_maker(const struct how *how) {
    the_store = make_store(how);
    shmtrain_store_listen(the_store, &(const struct shmtrain_listener){.note = keep_note});
    signal(SIGTERM, stop);
    const int rc = how->data ? shmtrain_store_train(the_store, how->data) : shmtrain_store_run(the_store, work, NULL);
    const struct shmtrain_report *r = shmtrain_store_report(the_store);
    snprintf(tally->said, sizeof tally->said, "%s", shmtrain_store_message(the_store));
    tally->xxh64 = r->parameters_xxh64;
    tally->n_epochs = r->n_epochs;
    if (r->n_epochs) tally->examples_of_last_epoch = (double)r->epoch[r->n_epochs - 1].examples;
    shmtrain_store_destroy(the_store);
    _exit(-rc);
}

/* Returns when its run goes on. */
static pid_t start_maker(const struct how *how) {
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    const pid_t pid = fork();
    tally->holds = how->holds;
    if (pid == 0) run_as_maker(how);
    assert_int_equal(shmtrain_store_create(&store), 0);
    while (shmtrain_store_observe(store, NAME) < 0 || shmtrain_store_look(store, &now) == 1) {
        const struct shmtrain_report *r = shmtrain_store_report(store);
        if (r->mode[0] && r->n_epochs > 0) break;
        nap(2000);
    }
    shmtrain_store_destroy(store);
    return pid;
}

static int wait_for(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -1000 - WTERMSIG(status);
}

static int stop_maker(pid_t pid) {
    assert_int_equal(kill(pid, SIGTERM), 0);
    return wait_for(pid);
}

/* ---- guests ---- */

/* Stops after so many epochs that it has seen; *arg counts down. */
static void count_down(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    int *left = arg;
    (void)so_far;
    (void)epoch;
    if (--*left == 0) shmtrain_store_stop(the_store);
}

static struct shmtrain_store *make_guest(const char *spawn, const char *workers) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    return store;
}

/* Joins for some epochs, and leaves. */
static void join_for(const char *spawn, const char *workers, int epochs, shmtrain_worker *worker) {
    int left = epochs;
    struct shmtrain_store *store = make_guest(spawn, workers);
    the_store = store;
    shmtrain_store_listen(store, &(const struct shmtrain_listener){.arg = &left, .epoch = count_down});
    WELL(store, shmtrain_store_join(store, NAME, worker, NULL));
    shmtrain_store_destroy(store);
}

static pid_t start_guest(const char *spawn, const char *workers) {
    const pid_t pid = fork();
    if (pid > 0) return pid;
    struct shmtrain_store *store = make_guest(spawn, workers);
    const int rc = shmtrain_store_join(store, NAME, work, NULL);
    if (rc < 0) snprintf(tally->said, sizeof tally->said, "%s", shmtrain_store_message(store));
    shmtrain_store_destroy(store);
    _exit(-rc);
}

static void wait_for_work_of(uint32_t rank) {
    const uint64_t before = tally->examples[rank];
    while (tally->examples[rank] == before) nap(1000);
}

/* ---- observing ---- */

static void an_observer_sees_the_run_and_what_it_leaves(void **state) {
    const char *name;
    uint64_t rows, width;
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "1", FOREVER, NULL, 100});
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    WELL(store, shmtrain_store_table_at(store, 0, &name, &rows, &width));
    assert_string_equal(name, "count");
    assert_true(rows == 2 && width == 1);
    assert_int_equal(shmtrain_store_table_at(store, 1, NULL, NULL, NULL), SHMTRAIN_E_USAGE);
    assert_int_equal(shmtrain_store_look(store, &now), 1);
    assert_int_equal(now->n_workers, 3);
    assert_true(now->worker[2].joined && !now->worker[2].here);
    const float before = read_one(store, 0);
    assert_true(before > 0);
    while (read_one(store, 0) == before) nap(1000);
    refused(store, shmtrain_store_write(store, 0, 0, 1, &before), SHMTRAIN_E_USAGE, "somebody else's");
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(shmtrain_store_look(store, &now), 0);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    assert_string_equal(r->mode, "sync");
    assert_true(r->workers == 2 && r->guests == 1 && r->stopped && r->n_epochs == tally->n_epochs);
    assert_true(r->parameters_xxh64 == tally->xxh64 && tally->xxh64 != 0);
    const float final = read_one(store, 0);
    assert_true(final == (float)r->updates);
    shmtrain_store_destroy(store);

    assert_int_equal(shmtrain_store_create(&store), 0); /* the store stays, with all of that */
    WELL(store, shmtrain_store_observe(store, NAME));
    assert_int_equal(shmtrain_store_look(store, &now), 0);
    assert_true(read_one(store, 0) == final);
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == tally->xxh64);
    WELL(store, shmtrain_store_set(store, "epochs", "1"));
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "rate", "1"));
    WELL(store, shmtrain_store_set(store, "schedule", "constant"));
    WELL(store, shmtrain_store_run(store, work, NULL)); /* goes on from there, for itself */
    assert_true(read_one(store, 0) == final + EXAMPLES / BATCH);
    shmtrain_store_destroy(store);
}

static void named(struct shmtrain_named *out) {
    struct shmtrain_named *all;
    const int n = shmtrain_named_list(&all);
    int found = 0;
    for (int i = 0; i < n; i++) {
        if (strcmp(all[i].name, NAME) != 0) continue;
        *out = all[i];
        found++;
    }
    free(all);
    assert_int_equal(found, 1);
}

static void a_killed_maker_leaves_a_store_that_is_not_in_use(void **state) {
    char message[512] = "";
    struct shmtrain_named found;
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "3", FOREVER, NULL, 100});
    named(&found);
    assert_true(found.in_use && found.intact && found.workers == 2 && found.guests == 3 && found.pid == maker);
    assert_true(found.bytes > 4096 && found.made_at > 1700000000 && found.model[0] == '\0');
    assert_int_equal(shmtrain_named_remove(NAME, 0, message, sizeof message), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(message, "is in use"));
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    assert_int_equal(kill(maker, SIGKILL), 0);
    wait_for(maker);
    int rc;
    while ((rc = shmtrain_store_look(store, &now)) == 1) nap(1000);
    refused(store, rc, SHMTRAIN_E_DIED, "has died");
    assert_true(read_one(store, 0) > 0);
    shmtrain_store_destroy(store);
    named(&found);
    assert_true(!found.in_use && found.intact);
    assert_int_equal(shmtrain_named_remove(NAME, 0, message, sizeof message), 0);
    assert_int_equal(shmtrain_store_create(&store), 0);
    refused(store, shmtrain_store_observe(store, NAME), SHMTRAIN_E_USAGE, "there is no store");
    shmtrain_store_destroy(store);
}

static void a_name_that_is_taken_is_refused_and_renewed_by_its_own_store(void **state) {
    struct shmtrain_named found;
    (void)state;
    tally->holds = 0;
    struct shmtrain_store *first = make_store(&(struct how){"sync", "processes", "1", "1", "1", NULL, 0});
    struct shmtrain_store *second = make_store(&(struct how){"sync", "processes", "1", "1", "1", NULL, 0});
    WELL(first, shmtrain_store_run(first, work, NULL));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "is there already, in use, made by process");
    WELL(first, shmtrain_store_run(first, work, NULL));
    assert_true(read_one(first, 0) == 2.0f * EXAMPLES / BATCH);
    shmtrain_store_destroy(first);
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "of a run that has ended");
    WELL(second, shmtrain_store_set(second, "name", "a/b"));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "no letter, digit");
    WELL(second, shmtrain_store_set(second, "name", NAME));
    WELL(second, shmtrain_store_set(second, "backend", "plain"));
    refused(second, shmtrain_store_run(second, work, NULL), SHMTRAIN_E_USAGE, "backend plain");
    shmtrain_store_destroy(second);
    named(&found);
    assert_true(!found.in_use && found.intact);
}

/* ---- working ---- */

static void guests_work_and_leave_and_the_sums_stay_exact(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const pid_t maker = start_maker(&(struct how){"sync", SPAWNS[i], "2", "3", FOREVER, NULL, 100});
        struct shmtrain_store *store;
        join_for(SPAWNS[i], "2", 5, work);
        assert_true(tally->examples[2] > 0 && tally->examples[3] > 0 && tally->examples[4] == 0);
        join_for(SPAWNS[i], "3", 3, work);
        assert_true(tally->examples[4] > 0);
        assert_int_equal(stop_maker(maker), 0);
        assert_int_equal(shmtrain_store_create(&store), 0);
        WELL(store, shmtrain_store_observe(store, NAME));
        const struct shmtrain_report *r = shmtrain_store_report(store);
        uint64_t examples = 0;
        for (int rank = 0; rank < 5; rank++) examples += tally->examples[rank];
        assert_true(r->examples == examples);
        assert_true(read_one(store, 0) == (float)r->updates && r->updates * BATCH == examples);
        shmtrain_store_destroy(store);
        end(NULL);
        begin(NULL);
    }
}

static void in_live_modes_every_example_is_dealt_once_whoever_is_there(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "2", FOREVER, NULL, 100});
    join_for("processes", "2", 4, work);
    join_for("threads", "1", 4, work);
    assert_int_equal(stop_maker(maker), 0);
    assert_true(tally->examples[2] > 0 && tally->examples[3] > 0);
    uint32_t least = UINT32_MAX, most = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        least = tally->times[i] < least ? tally->times[i] : least;
        most = tally->times[i] > most ? tally->times[i] : most;
    }
    assert_true(most - least <= 1); /* the last epoch was stopped */
}

static void a_guest_stays_until_the_run_is_over(void **state) {
    int status;
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "1", "1", "40", NULL, 200});
    const pid_t guest = start_guest("processes", "1");
    assert_int_equal(wait_for(maker), 0);
    assert_int_equal(waitpid(guest, &status, 0), guest);
    assert_int_equal(status, 0);
    assert_true(tally->examples[1] > 0);
    assert_int_equal(tally->n_epochs, 40);
}

/* Whether guests have trained in the run that is over. */
static bool guests_have_worked(void) {
    struct shmtrain_store *store;
    const struct shmtrain_progress *now;
    uint64_t examples = 0;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    assert_int_equal(shmtrain_store_look(store, &now), 0);
    for (uint32_t i = 0; i < now->n_workers; i++)
        if (now->worker[i].joined) examples += now->worker[i].examples;
    shmtrain_store_destroy(store);
    return examples > 0;
}

/* Two guests, one after the other, for some epochs each: unless the run is over before. */
static void visit_twice(void) {
    for (int i = 0; i < 2; i++) {
        int left = 3;
        struct shmtrain_store *store = make_guest(SPAWNS[i], i ? "2" : "1");
        the_store = store;
        shmtrain_store_listen(store, &(const struct shmtrain_listener){.arg = &left, .epoch = count_down});
        WELL(store, shmtrain_store_set(store, "threads", "2"));
        int rc;
        do rc = shmtrain_store_join(store, NAME, NULL, NULL);
        while (rc == SHMTRAIN_E_AGAIN ||
               (rc == SHMTRAIN_E_USAGE && strstr(shmtrain_store_message(store), "there is no store")));
        if (rc < 0 && rc != SHMTRAIN_E_USAGE) fail_msg("%s", shmtrain_store_message(store));
        shmtrain_store_destroy(store);
    }
}

/* What the parameters are after a run with guests or without. */
static uint64_t train_with(bool guests, const struct how *how) {
    const pid_t maker = fork();
    if (maker == 0) run_as_maker(how);
    if (guests) visit_twice();
    const int rc = wait_for(maker);
    if (rc == SHMTRAIN_E_SYSTEM && strstr(tally->said, "OpenBLAS")) {
        print_message("  %s: skipped\n", tally->said);
        skip();
    }
    assert_int_equal(rc, 0);
    return tally->xxh64;
}

/* Nobody knows how many epochs a machine makes until the guests are there: as many as it takes. */
static void show_that_guests_change_no_bit(const char *data) {
    bool worked = false;
    for (int n = 60; !worked; n *= 4) {
        char epochs[16];
        snprintf(epochs, sizeof epochs, "%d", n);
        const struct how how = {"sync", "processes", "2", "3", epochs, data, 0};
        const uint64_t alone = train_with(false, &how);
        end(NULL);
        const uint64_t together = train_with(true, &how);
        assert_true(together == alone);
        worked = guests_have_worked();
        end(NULL);
    }
}

static void training_a_model_with_guests_gives_the_same_bits(void **state) {
    (void)state;
    show_that_guests_change_no_bit("builtin:sparse:examples=4000,valid=1500");
}

static void softmax_with_guests_gives_the_same_bits(void **state) {
    (void)state;
    show_that_guests_change_no_bit("builtin:dense:examples=2000,features=30,classes=5");
}

static void what_is_observed_can_be_saved_and_evaluated(void **state) {
    static const char DATA[] = "builtin:sparse:examples=3000,valid=500,features=300";
    char path[] = "/tmp/test_join.XXXXXX";
    const struct shmtrain_evaluation *there, *here;
    const struct shmtrain_progress *now;
    struct shmtrain_store *store;
    (void)state;
    const char *folder = getenv("TMPDIR");
    char *file = path;
    char other[512];
    if (folder) {
        snprintf(other, sizeof other, "%s/test_join.XXXXXX", folder);
        file = other;
    }
    const int fd = mkstemp(file);
    assert_true(fd >= 0);
    close(fd);
    const pid_t maker = start_maker(&(struct how){"async", "processes", "1", "1", "5", DATA, 0});
    assert_int_equal(wait_for(maker), 0);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    WELL(store, shmtrain_store_evaluate(store, DATA, &there));
    const double loss = there->loss;
    assert_true(loss > 0 && there->accuracy > 0.5);
    WELL(store, shmtrain_store_save(store, file));
    assert_int_equal(shmtrain_store_look(store, &now), 0); /* as before */
    assert_true(shmtrain_store_report(store)->parameters_xxh64 == tally->xxh64);
    WELL(store, shmtrain_store_load(store, file));
    WELL(store, shmtrain_store_evaluate(store, DATA, &here));
    assert_true(here->loss == loss);
    shmtrain_store_destroy(store);
    unlink(file);
}

/* ---- deaths and failures ---- */

static void in_live_modes_a_killed_guest_is_mourned_and_the_run_goes_on(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"async", "processes", "2", "2", FOREVER, NULL, 500});
    for (int i = 0; i < 2; i++) {
        const pid_t guest = start_guest("processes", "2");
        wait_for_work_of(2);
        wait_for_work_of(3);
        assert_int_equal(kill(guest, SIGKILL), 0);
        wait_for(guest);
        wait_for_work_of(0);
        while (tally->n_notes < 2 * (uint32_t)(i + 1)) nap(1000);
        assert_non_null(strstr(tally->note, "joined by name) died"));
    }
    wait_for_work_of(0);
    wait_for_work_of(1);
    assert_int_equal(stop_maker(maker), 0);
    assert_true(tally->n_epochs > 2);
}

static void in_sync_a_killed_guest_ends_the_run_with_a_sentence(void **state) {
    char process[80];
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("processes", "1");
    wait_for_work_of(2);
    assert_int_equal(kill(guest, SIGKILL), 0);
    wait_for(guest);
    assert_int_equal(wait_for(maker), SHMTRAIN_E_DIED);
    snprintf(process, sizeof process, "worker 2 (process %d, joined by name)", guest);
    assert_non_null(strstr(tally->said, process));
}

static void a_killed_maker_ends_its_guests_with_a_sentence(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        const pid_t maker = start_maker(&(struct how){i ? "sync" : "async", "processes", "2", "2", FOREVER, NULL, 500});
        const pid_t guest = start_guest(SPAWNS[i], "2");
        wait_for_work_of(2);
        assert_int_equal(kill(maker, SIGKILL), 0);
        wait_for(maker);
        assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
        assert_non_null(strstr(tally->said, "has died"));
        end(NULL);
        begin(NULL);
    }
}

static void a_failed_run_ends_its_guests_with_its_sentence(void **state) {
    (void)state;
    const pid_t maker = start_maker(&(struct how){"sync", "processes", "2", "2", FOREVER, NULL, 500});
    const pid_t guest = start_guest("threads", "1");
    wait_for_work_of(2);
    tally->fail_rank = 1;
    assert_int_equal(wait_for(maker), SHMTRAIN_E_DATA);
    assert_int_equal(wait_for(guest), SHMTRAIN_E_DIED);
    assert_non_null(strstr(tally->said, "has failed: "));
}

static void a_guest_that_fails_ends_with_its_own_status(void **state) {
    (void)state;
    for (int sync = 0; sync <= 1; sync++)
        for (int i = 0; i < 2; i++) {
            const pid_t maker = start_maker(&(struct how){sync ? "sync" : "async", "processes", "2", "2", FOREVER, NULL, 500});
            const pid_t guest = start_guest(SPAWNS[i], "2");
            wait_for_work_of(2);
            wait_for_work_of(3);
            tally->fail_rank = 4;
            assert_int_equal(wait_for(guest), SHMTRAIN_E_DATA);
            if (sync) {
                assert_int_equal(wait_for(maker), SHMTRAIN_E_DIED);
            } else {
                wait_for_work_of(0);
                wait_for_work_of(1);
                assert_int_equal(stop_maker(maker), 0);
            }
            end(NULL);
            begin(NULL);
        }
}

/* ---- refusals ---- */

static void what_cannot_be_joined_is_refused(void **state) {
    struct shmtrain_store *store = make_guest("processes", "3");
    (void)state;
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "there is no store");
    pid_t maker = start_maker(&(struct how){"async", "processes", "1", "2", FOREVER, NULL, 200});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE,
            "places for 2 workers, not for 3: take -w 2");
    WELL(store, shmtrain_store_set(store, "workers", "1"));
    refused(store, shmtrain_store_join(store, NAME, NULL, NULL), SHMTRAIN_E_USAGE, "own functions");
    const pid_t guest = start_guest("processes", "2");
    wait_for_work_of(2);
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "no free place");
    assert_int_equal(stop_maker(maker), 0);
    assert_int_equal(wait_for(guest), 0);
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "is over");
    end(NULL);
    maker = start_maker(&(struct how){"async", "processes", "1", "0", FOREVER, NULL, 200});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "--guests");
    assert_int_equal(stop_maker(maker), 0);
    end(NULL);
    maker = start_maker(&(struct how){"async", "processes", "1", "1", FOREVER, "builtin:sparse:examples=4000", 0});
    refused(store, shmtrain_store_join(store, NAME, work, NULL), SHMTRAIN_E_USAGE, "without a worker function");
    assert_int_equal(stop_maker(maker), 0);
    shmtrain_store_destroy(store);
}

int main(void) {
    snprintf(NAME, sizeof NAME, "test_join-%d", (int)getpid());
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(tally != MAP_FAILED);
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_observer_sees_the_run_and_what_it_leaves),
        TEST(a_killed_maker_leaves_a_store_that_is_not_in_use),
        TEST(a_name_that_is_taken_is_refused_and_renewed_by_its_own_store),
        TEST(guests_work_and_leave_and_the_sums_stay_exact),
        TEST(in_live_modes_every_example_is_dealt_once_whoever_is_there),
        TEST(a_guest_stays_until_the_run_is_over),
        TEST(training_a_model_with_guests_gives_the_same_bits),
        TEST(softmax_with_guests_gives_the_same_bits),
        TEST(what_is_observed_can_be_saved_and_evaluated),
        TEST(in_live_modes_a_killed_guest_is_mourned_and_the_run_goes_on),
        TEST(in_sync_a_killed_guest_ends_the_run_with_a_sentence),
        TEST(a_killed_maker_ends_its_guests_with_a_sentence),
        TEST(a_failed_run_ends_its_guests_with_its_sentence),
        TEST(a_guest_that_fails_ends_with_its_own_status),
        TEST(what_cannot_be_joined_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
