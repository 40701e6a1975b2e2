/* Stores with a name: who observes one, and who joins as a worker; what they do leaves sums and bits as they are. Deaths and
 * refusals: test_join_deaths.c. */
#include "join_help.h"

#include <stdbool.h>

#include "api/store_priv.h"

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
    refused(store, shmtrain_store_write(store, 0, 0, 1, &before), SHMTRAIN_E_USAGE, "belongs to another program");
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

/* ---- working ---- */

/* Stops after so many epochs that it has seen; *arg counts down. */
static void count_down(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    int *left = arg;
    (void)so_far;
    (void)epoch;
    if (--*left == 0) shmtrain_store_stop(the_store);
}

/* Joins for some epochs, and leaves. */
static void join_for(const char *spawn, const char *workers, int epochs, shmtrain_worker *worker) {
    int left = epochs;
    struct shmtrain_store *store = make_guest(spawn, workers);
    the_store = store;
    shmtrain_store_listen(
        store, &(const struct shmtrain_listener){.size = sizeof(struct shmtrain_listener), .arg = &left, .epoch = count_down});
    WELL(store, shmtrain_store_join(store, NAME, worker, NULL));
    shmtrain_store_destroy(store);
}

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

static int note_first_epoch(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    _Atomic uint32_t *first = arg;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (*first == 0) *first = w.epoch + 1;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Stops when it has been told of some; the first of them in *arg. */
static void note_first_told(void *arg, const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch) {
    uint32_t *first = arg;
    (void)epoch;
    if (*first == 0) *first = so_far->n_epochs;
    if (so_far->n_epochs >= *first + 2) shmtrain_store_stop(the_store);
}

/* Epochs are so short that some end while the guest's worker is being started. In sync it has work in each that it takes part in. */
static void a_guest_is_told_of_epochs_from_the_first_that_it_works_in(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint32_t told = 0;
        const pid_t maker = start_maker(&(struct how){"sync", "processes", "1", "1", FOREVER, NULL, 0});
        the_store = make_guest(SPAWNS[i], "1");
        shmtrain_store_listen(the_store, &(const struct shmtrain_listener){
                                             .size = sizeof(struct shmtrain_listener), .arg = &told, .epoch = note_first_told});
        WELL(the_store, shmtrain_store_join(the_store, NAME, note_first_epoch, &tally->first_epoch));
        assert_true(tally->first_epoch > 0);
        assert_int_equal(told, tally->first_epoch);
        shmtrain_store_destroy(the_store);
        assert_int_equal(stop_maker(maker), 0);
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

/* After so many epochs of its own it has seen enough. */
static int leave_after(void *arg, shmtrain_session *s, uint32_t epoch) {
    int *left = arg;
    (void)s;
    (void)epoch;
    return --*left == 0;
}

static void a_guests_hook_ends_its_own_part_only(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        int left = 3;
        const struct shmtrain_hooks hooks = {.size = sizeof(struct shmtrain_hooks), .arg = &left, .after_epoch = leave_after};
        const pid_t maker = start_maker(&(struct how){"hogwild", "processes", "2", "1", FOREVER, NULL, 100});
        struct shmtrain_store *store = make_guest(SPAWNS[i], "1");
        WELL(store, shmtrain_store_hooks(store, &hooks));
        WELL(store, shmtrain_store_join(store, NAME, work, NULL)); /* returns, though the run goes on for ever */
        assert_true(tally->examples[2] > 0);
        shmtrain_store_destroy(store);
        const uint64_t so_far = tally->examples[0];
        while (tally->examples[0] < so_far + EXAMPLES) nap(1000); /* it does */
        assert_int_equal(stop_maker(maker), 0);
        end(NULL);
        begin(NULL);
    }
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
        shmtrain_store_listen(store, &(const struct shmtrain_listener){
                                         .size = sizeof(struct shmtrain_listener), .arg = &left, .epoch = count_down});
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
        print_message("skipped: %s\n", tally->said);
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

/* Some of the training examples, which all have there, are those that are validated on. */
static void guests_validate_on_a_share_of_the_training_data(void **state) {
    (void)state;
    validates_on = "0.25";
    show_that_guests_change_no_bit("builtin:sparse:examples=4000");
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

/* An IDX file: a type of unsigned bytes, the sizes, big-endian, and the bytes. */
static void write_idx(const char *path, uint32_t n_sizes, const unsigned char *sizes, const unsigned char *bytes, size_t n) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    const unsigned char magic[4] = {0, 0, 8, (unsigned char)n_sizes};
    assert_int_equal(fwrite(magic, 1, 4, f), 4);
    for (uint32_t i = 0; i < n_sizes; i++) assert_int_equal(fwrite((const unsigned char[]){0, 0, 0, sizes[i]}, 1, 4, f), 4);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void what_is_saved_of_data_without_ids_says_so_whoever_saves_it(void **state) {
    enum { IMAGES = 100, PIXELS = 4 };
    const char *tmp = getenv("TMPDIR");
    char folder[400], images[512], labels[512];
    unsigned char pixel[IMAGES * PIXELS], label[IMAGES];
    struct shmtrain_store *store;
    (void)state;
    snprintf(folder, sizeof folder, "%s/test_join.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(images, sizeof images, "%s/train-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/train-labels-idx1-ubyte", folder);
    for (int i = 0; i < IMAGES; i++) {
        label[i] = i % 3 == 0;
        for (int j = 0; j < PIXELS; j++) pixel[i * PIXELS + j] = (unsigned char)(label[i] ? 200 + i % 7 : 10 * j + i % 5);
    }
    write_idx(images, 3, (const unsigned char[]){IMAGES, 2, 2}, pixel, sizeof pixel);
    write_idx(labels, 1, (const unsigned char[]){IMAGES}, label, sizeof label);
    const pid_t maker = start_maker(&(struct how){"async", "processes", "1", "1", "3", images, 0});
    assert_int_equal(wait_for(maker), 0);
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_observe(store, NAME));
    assert_int_equal(store->params.trained.features.kind, SHMT_IDS_NONE);
    shmtrain_store_destroy(store);
    unlink(images);
    unlink(labels);
    rmdir(folder);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_observer_sees_the_run_and_what_it_leaves),
        TEST(guests_work_and_leave_and_the_sums_stay_exact),
        TEST(a_guest_is_told_of_epochs_from_the_first_that_it_works_in),
        TEST(in_live_modes_every_example_is_dealt_once_whoever_is_there),
        TEST(a_guests_hook_ends_its_own_part_only),
        TEST(a_guest_stays_until_the_run_is_over),
        TEST(training_a_model_with_guests_gives_the_same_bits),
        TEST(softmax_with_guests_gives_the_same_bits),
        TEST(guests_validate_on_a_share_of_the_training_data),
        TEST(what_is_observed_can_be_saved_and_evaluated),
        TEST(what_is_saved_of_data_without_ids_says_so_whoever_saves_it),
    };
    return cmocka_run_group_tests(tests, share_tally, NULL);
}
