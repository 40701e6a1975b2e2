/* Recording runs, and replaying them: the same parameters, losses and counts come out, by whatever the run was made; what is damaged or
 * of another run is refused; and whatever decisions a file names, a replay of it ends. */
#include "api_help.h"
#include "folder_help.h"
#include "sanitized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "recording/record_file.h"

#define DATA "builtin:sparse:examples=3000,valid=200,features=3000,nonzeros=12"

/* How a run is to be, besides its mode. */
struct play {
    const char *mode, *late, *staleness, *quorum;
};

static const struct play PLAYS[] = {{"sync", NULL, NULL, NULL},       {"backup:2", "drop", NULL, NULL},
                                    {"backup:2", "fold", NULL, NULL}, {"backup:3", NULL, NULL, NULL},
                                    {"sync", NULL, "2", NULL},        {"sync", NULL, "1", NULL},
                                    {"sync", "fold", NULL, "1"}};
#define N_PLAYS (sizeof PLAYS / sizeof *PLAYS)

static void set(struct shmtrain_store *store, const char *option, const char *value) {
    if (value) WELL(store, shmtrain_store_set(store, option, value));
}

static struct shmtrain_store *make_store(const struct play *play, unsigned seed) {
    struct shmtrain_store *store;
    char text[16];
    assert_int_equal(shmtrain_store_create(&store), 0);
    snprintf(text, sizeof text, "%u", seed);
    set(store, "workers", "4");
    set(store, "epochs", "3");
    set(store, "batch", "32");
    set(store, "mode", play->mode);
    set(store, "late", play->late);
    set(store, "staleness", play->staleness);
    set(store, "quorum", play->quorum);
    set(store, "seed", text);
    return store;
}

/* What came out of a run. */
struct outcome {
    uint64_t xxh64, dropped, folded, updates;
    double loss[3];
};

static struct outcome outcome_of(const struct shmtrain_store *store) {
    const struct shmtrain_report *r = shmtrain_store_report(store);
    struct outcome out = {.xxh64 = r->parameters_xxh64, .dropped = r->dropped, .folded = r->folded, .updates = r->updates};
    for (uint32_t i = 0; i < r->n_epochs && i < 3; i++) out.loss[i] = r->epoch[i].train_loss;
    return out;
}

static struct outcome record(const struct play *play, const char *spawn, unsigned seed) {
    struct shmtrain_store *store = make_store(play, seed);
    set(store, "spawn", spawn);
    set(store, "slow", "random:0.1:4x");
    set(store, "record", "run.record");
    WELL(store, shmtrain_store_train(store, DATA));
    assert_string_equal(shmtrain_store_report(store)->unwritten, "");
    const struct outcome out = outcome_of(store);
    shmtrain_store_destroy(store);
    return out;
}

static void replays_to(const struct play *play, unsigned seed, const struct outcome *was) {
    struct shmtrain_store *store = make_store(play, seed);
    set(store, "replay", "run.record");
    WELL(store, shmtrain_store_train(store, DATA));
    const struct outcome is = outcome_of(store);
    assert_string_equal(shmtrain_store_report(store)->spawn, "fibers");
    assert_true(is.xxh64 == was->xxh64);
    assert_true(is.dropped == was->dropped && is.folded == was->folded && is.updates == was->updates);
    for (int i = 0; i < 3; i++) assert_memory_equal(&is.loss[i], &was->loss[i], sizeof is.loss[i]);
    shmtrain_store_destroy(store);
}

static void each_mode_replays_what_processes_and_threads_did(void **state) {
    (void)state;
    uint64_t dropped = 0, folded = 0;
    for (size_t i = 0; i < N_PLAYS; i++)
        for (unsigned seed = 1; seed <= (WATCHES_RACES ? 2 : 4); seed++) {
            const struct outcome was = record(&PLAYS[i], WATCHES_RACES ? "threads" : SPAWNS[seed % 2], seed);
            replays_to(&PLAYS[i], seed, &was);
            dropped += was.dropped;
            folded += was.folded;
        }
    assert_true(dropped > 0 && folded > 0); /* else it has shown nothing */
}

/* The times of a replay are its own: they decide nothing. */
static void a_replay_has_other_times_and_the_same_parameters(void **state) {
    (void)state;
    const char *const sims[] = {"straggler=0:20x", "straggler=3:9x,compute=exponential:1ms", "pause=1@1ms:50ms"};
    const struct play *play = &PLAYS[2];
    const struct outcome was = record(play, "fibers:5", 1);
    for (size_t i = 0; i < sizeof sims / sizeof *sims; i++) {
        struct shmtrain_store *store = make_store(play, 1);
        set(store, "spawn", "fibers:9");
        set(store, "sim", sims[i]);
        set(store, "replay", "run.record");
        WELL(store, shmtrain_store_train(store, DATA));
        assert_true(outcome_of(store).xxh64 == was.xxh64);
        shmtrain_store_destroy(store);
    }
}

/* Its rate and its momentum are not those of a constant one: what is recorded of where the rate stood counts. */
static void other_optimizers_and_delays_replay(void **state) {
    (void)state;
    const char *const with[][2] = {
        {"optimizer", "adam"}, {"staleness-aware", "1"}, {"clip-norm", "0.05"}, {"schedule", "cosine"}};
    const size_t plays[] = {2, 4};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++)
        for (size_t k = 0; k < 2; k++) {
            struct outcome out[2];
            for (int replay = 0; replay < 2; replay++) {
                struct shmtrain_store *store = make_store(&PLAYS[plays[k]], 3);
                set(store, with[i][0], with[i][1]);
                set(store, "spawn", replay ? "fibers" : "threads");
                set(store, replay ? "replay" : "record", "run.record");
                WELL(store, shmtrain_store_train(store, DATA));
                out[replay] = outcome_of(store);
                shmtrain_store_destroy(store);
            }
            assert_true(out[0].xxh64 == out[1].xxh64);
        }
}

static void a_run_that_its_goal_ends_is_replayed_to_that_end(void **state) {
    (void)state;
    const struct play *play = &PLAYS[1];
    struct outcome out[2];
    for (int replay = 0; replay < 2; replay++) {
        struct shmtrain_store *store = make_store(play, 2);
        set(store, "spawn", replay ? "fibers" : "threads");
        set(store, "target-loss", "0.69");
        set(store, replay ? "replay" : "record", "run.record");
        WELL(store, shmtrain_store_train(store, DATA));
        assert_string_equal(shmtrain_store_report(store)->stopped_by, "target-loss");
        assert_string_equal(shmtrain_store_report(store)->unwritten, "");
        out[replay] = outcome_of(store);
        shmtrain_store_destroy(store);
    }
    assert_true(out[0].xxh64 == out[1].xxh64);
}

/* ---- refusals ---- */

static void what_is_another_run_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *option, *value, *words;
    } other[] = {{"seed", "2", "--seed is 2 here, but 1 in the run of run.record"},
                 {"workers", "3", "--workers is 3 here, but 4"},
                 {"epochs", "4", "--epochs is 4 here, but 3"},
                 {"batch", "64", "--batch is 64 here, but 32"},
                 {"late", "fold", "--late is fold here, but drop"},
                 {"rate", "0.25", "--rate is 0.25 here, but "},
                 {"optimizer", "adam", "--optimizer is adam here, but "},
                 {"model", "svm", "--model is svm here, but logistic"},
                 {"steps", "20", "--steps is 20 here, but"},
                 {"mode", "sync", "--quorum is 0 here, but 2"},
                 {"spawn", "threads", "--replay is for workers in virtual time: use --spawn fibers"},
                 {"sim", "death=1@1ms", "--replay: nobody dies in it: leave out death= of --sim"},
                 {"record", "other.record", "--record and --replay are for two runs"},
                 {"replay", "missing.record", "missing.record"}};
    const struct play *play = &PLAYS[1];
    (void)record(play, "threads", 1);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct shmtrain_store *store = make_store(play, 1);
        set(store, "replay", "run.record");
        if (strcmp(other[i].value, "sync") == 0) set(store, "late", "");
        set(store, other[i].option, other[i].value);
        const int rc = shmtrain_store_train(store, DATA);
        refused(store, rc, rc, other[i].words);
        assert_true(rc < 0);
        shmtrain_store_destroy(store);
    }
    struct shmtrain_store *store = make_store(play, 1);
    set(store, "replay", "run.record");
    refused(store, shmtrain_store_train(store, "builtin:sparse:examples=3000,valid=200,features=3000,nonzeros=11"),
            SHMTRAIN_E_USAGE, "--replay: the data's number of nonzeros is ");
    shmtrain_store_destroy(store);
}

static void what_cannot_be_recorded_is_refused(void **state) {
    (void)state;
    static const char *const other[][3] = {{"mode", "async", "--record is for modes that aggregate"},
                                           {"mode", "local:4", "--record is for modes that aggregate"},
                                           {"threads", "2", "--record: each worker has one thread"},
                                           {"checkpoint", "folder", "--record: pauses for checkpoints are not recorded"},
                                           {"metrics", "new.record", "--record and --metrics would write to the same file"},
                                           {"record", "none/new.record", "none/new.record"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        struct shmtrain_store *store = make_store(&PLAYS[0], 1);
        set(store, "record", "new.record");
        set(store, other[i][0], other[i][1]);
        const int rc = shmtrain_store_train(store, DATA);
        assert_true(rc < 0);
        refused(store, rc, rc, other[i][2]);
        shmtrain_store_destroy(store);
    }
    assert_int_not_equal(access("new.record", F_OK), 0);
}

static void a_run_in_which_a_worker_dies_is_not_recorded(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store(&PLAYS[1], 1);
    set(store, "spawn", "fibers:1");
    set(store, "sim", "death=1@200us");
    set(store, "record", "dead.record");
    WELL(store, shmtrain_store_train(store, DATA));
    assert_non_null(strstr(shmtrain_store_report(store)->unwritten, "the record dead.record is not written: a worker died"));
    assert_int_not_equal(access("dead.record", F_OK), 0);
    shmtrain_store_destroy(store);
}

/* ---- damage ---- */

static unsigned char *read_file(size_t *n_out) {
    FILE *f = fopen("run.record", "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    *n_out = (size_t)ftell(f);
    rewind(f);
    unsigned char *bytes = malloc(*n_out);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *n_out, f), *n_out);
    fclose(f);
    return bytes;
}

static void assert_unreadable(const unsigned char *bytes, size_t n) {
    struct shmt_record *record;
    struct shmt_error e = {0};
    write_bytes("damaged.record", bytes, n);
    assert_true(shmt_record_read("damaged.record", &record, &e) < 0);
    assert_true(strlen(e.text) > 0 && !strchr(e.text, '\n'));
}

static void damage_at_any_byte_is_refused(void **state) {
    (void)state;
    size_t n;
    (void)record(&PLAYS[2], "threads", 1);
    unsigned char *bytes = read_file(&n);
    const size_t stride = n / 500 + 1;
    for (size_t at = 0; at < n; at += at < 64 ? 1 : stride) {
        const unsigned char good = bytes[at];
        bytes[at] ^= (unsigned char)(1u << shmt_hash64(7, at, 0, 0) % 8);
        assert_unreadable(bytes, n);
        bytes[at] = good;
    }
    for (size_t cut = 0; cut < n; cut += stride * 5) assert_unreadable(bytes, cut);
    free(bytes);
}

/* One decision of the record is another one, or two are exchanged. */
static void change(struct shmt_record *record, uint64_t drawn) {
    static const uint64_t values[] = {0, 1, 5, 50, UINT64_MAX - 1, UINT64_MAX};
    uint64_t *word = (uint64_t *)record->gradient;
    const uint64_t words = record->total * SHMT_TAPED_WORDS, at = shmt_hash64(drawn, 1, 0, 0) % words;
    const uint64_t how = shmt_hash64(drawn, 2, 0, 0) % 5, other = (at + SHMT_TAPED_WORDS * (1 + how)) % words, kept = word[at];
    if (how == 0) word[at] = values[shmt_hash64(drawn, 3, 0, 0) % 6];
    if (how == 1) word[at]++;
    if (how == 2) word[at]--;
    if (how < 3) return;
    word[at] = word[other];
    word[other] = kept;
}

/* A seal says only who has written a file. Whatever it names, a replay of it ends: refused, or with other parameters and one line that
 * says so, or with the same ones. Replays are one thread, which has no races. */
static void decisions_that_somebody_has_changed_end(void **state) {
    (void)state;
    const size_t plays[] = {1, 2, 4};
    const uint64_t changes = WATCHES_RACES ? 5 : 150; /* of each */
    int refusals = 0, others = 0;
    for (size_t k = 0; k < 3; k++) {
        const struct play *play = &PLAYS[plays[k]];
        const struct outcome was = record(play, "threads", 1);
        for (uint64_t drawn = 0; drawn < changes; drawn++) {
            struct shmt_record *changed;
            struct shmt_error e = {0};
            assert_int_equal(shmt_record_read("run.record", &changed, &e), 0);
            change(changed, drawn + 1000 * k);
            assert_int_equal(shmt_record_write("changed.record", changed, &e), 0);
            shmt_record_free(changed);
            struct shmtrain_store *store = make_store(play, 1);
            set(store, "replay", "changed.record");
            const int rc = shmtrain_store_train(store, DATA);
            if (rc == 0) assert_true(outcome_of(store).xxh64 == was.xxh64);
            if (rc != 0) assert_int_equal(rc, SHMTRAIN_E_DATA);
            refusals += rc != 0;
            others += rc != 0 && strstr(shmtrain_store_message(store), "are not those of the run") != NULL;
            shmtrain_store_destroy(store);
        }
    }
    assert_true(WATCHES_RACES || (refusals > 300 && others > 0));
}

static void what_is_no_record_is_refused(void **state) {
    (void)state;
    struct shmtrain_store *store = make_store(&PLAYS[0], 1);
    WELL(store, shmtrain_store_train(store, DATA));
    WELL(store, shmtrain_store_save(store, "a.model"));
    set(store, "replay", "a.model");
    refused(store, shmtrain_store_train(store, DATA), SHMTRAIN_E_DATA, "a.model is no record: --record FILE writes one");
    set(store, "replay", "");
    (void)record(&PLAYS[1], "threads", 1);
    assert_true(shmtrain_store_load(store, "run.record") < 0);
    shmtrain_store_destroy(store);
}

/* ---- own worker functions ---- */

static int push_ones(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        float x, grad;
        if ((rc = shmtrain_pull(s, 0, 0, 1, &x)) < 0) return rc;
        grad = (float)w.n * (x - (float)w.step);
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

static void worker_functions_replay(void **state) {
    (void)state;
    for (int fold = 0; fold < 2; fold++) {
        uint64_t hash[2];
        for (int replay = 0; replay < 2; replay++) {
            struct shmtrain_store *store = make("processes", "4", "3", 1000);
            set(store, "mode", fold ? "backup:2" : "sync");
            if (fold) set(store, "late", "fold");
            if (!fold) set(store, "staleness", "3");
            set(store, "rate", "0.1");
            if (replay) set(store, "spawn", "fibers");
            set(store, replay ? "replay" : "record", "run.record");
            WELL(store, shmtrain_store_run(store, push_ones, NULL));
            hash[replay] = shmtrain_store_report(store)->parameters_xxh64;
            shmtrain_store_destroy(store);
        }
        assert_true(hash[0] == hash[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_mode_replays_what_processes_and_threads_did),
        cmocka_unit_test(a_replay_has_other_times_and_the_same_parameters),
        cmocka_unit_test(other_optimizers_and_delays_replay),
        cmocka_unit_test(a_run_that_its_goal_ends_is_replayed_to_that_end),
        cmocka_unit_test(what_is_another_run_is_refused),
        cmocka_unit_test(what_cannot_be_recorded_is_refused),
        cmocka_unit_test(a_run_in_which_a_worker_dies_is_not_recorded),
        cmocka_unit_test(damage_at_any_byte_is_refused),
        cmocka_unit_test(decisions_that_somebody_has_changed_end),
        cmocka_unit_test(what_is_no_record_is_refused),
        cmocka_unit_test(worker_functions_replay),
    };
    (void)deadline(NULL);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
