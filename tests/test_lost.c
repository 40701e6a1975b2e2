/* Updates that a race loses, by a counting experiment: every update takes exactly 1 from a parameter, and whole numbers below 2^24
 * are exact in f32. So the updates that were made, less those that the parameters show, are lost, whatever the library counts;
 * and option count-lost must say the same number. With option race-window there is something to count on any machine. */
#include "api_help.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "configuration/race.h"
#include "base/random.h"

enum { ROWS = 600, NONZEROS = 10, EXAMPLES = 4000, ITEM = 250 };

/* ---- the experiment ---- */

struct play {
    const char *spawn, *workers, *window, *epochs;
    uint32_t group;
    float begins_at; /* of each parameter */
    bool dense;      /* rows of a table of width 3 are pushed, not examples */
};

static void always_one(void *arg, uint32_t first, uint32_t n, const float *dot, float *slope_out) {
    (void)arg, (void)first, (void)dot;
    for (uint32_t k = 0; k < n; k++) slope_out[k] = 1;
}

/* Low rows are frequent: they are in nearly every example. */
static uint32_t row_of(uint64_t example, uint32_t j) {
    const double u = shmt_unit(shmt_hash64(1, 2, example, j));
    return j * (ROWS / NONZEROS) + (uint32_t)(u * u * u * (ROWS / NONZEROS));
}

static int push_examples(shmtrain_session *s, const struct play *play, const struct shmtrain_work *work) {
    uint64_t start[ITEM + 1];
    uint32_t id[ITEM * NONZEROS];
    const struct shmtrain_csr x = {.size = sizeof x, .n = (uint32_t)work->n, .start = start, .id = id};
    for (uint32_t k = 0; k <= work->n; k++) start[k] = (uint64_t)k * NONZEROS;
    for (uint32_t i = 0; i < x.n * NONZEROS; i++) id[i] = row_of(work->first + i / NONZEROS, i % NONZEROS);
    return shmtrain_each(s, 0, &x, play->group, always_one, NULL);
}

/* A row of three for each nonzero. */
static int push_rows(shmtrain_session *s, const struct shmtrain_work *work) {
    static const float ones[3] = {1, 1, 1};
    int rc = 0;
    for (uint32_t i = 0; i < work->n * NONZEROS && rc == 0; i++) {
        const uint32_t row = row_of(work->first + i / NONZEROS, i % NONZEROS);
        rc = shmtrain_push_rows(s, 0, &row, 1, ones);
    }
    return rc;
}

static int count_down(shmtrain_session *s, void *arg) {
    const struct play *play = arg;
    struct shmtrain_work work;
    int rc;
    while ((rc = shmtrain_next(s, &work)) == 1) {
        rc = play->dense ? push_rows(s, &work) : push_examples(s, play, &work);
        if (rc == 0) rc = shmtrain_clock(s, NULL);
        if (rc < 0) break;
    }
    return rc;
}

static struct shmtrain_store *store_of(const struct play *play) {
    struct shmtrain_store *store;
    static float value[ROWS * 3];
    const char *const options[][2] = {{"spawn", play->spawn},
                                      {"workers", play->workers},
                                      {"mode", "hogwild"},
                                      {"epochs", play->epochs},
                                      {"rate", "1"},
                                      {"schedule", "constant"},
                                      {"item", "250"},
                                      {"count-lost", "1"},
                                      {"race-window", play->window}};
    assert_int_equal(shmtrain_store_create(&store), 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    for (size_t i = 0; i < ROWS * 3; i++) value[i] = play->begins_at;
    WELL(store, shmtrain_store_table(store, "counters", ROWS, play->dense ? 3 : 1));
    WELL(store, shmtrain_store_examples(store, EXAMPLES));
    WELL(store, shmtrain_store_write(store, 0, 0, ROWS, value));
    return store;
}

/* The share that the parameters show to be lost. */
static double lost_by_parameters(struct shmtrain_store *store, const struct play *play) {
    static float value[ROWS * 3];
    const uint32_t floats = play->dense ? ROWS * 3 : ROWS;
    const double made = (double)EXAMPLES * NONZEROS * (play->dense ? 3 : 1) * atoi(play->epochs);
    double kept = 0;
    WELL(store, shmtrain_store_read(store, 0, 0, ROWS, value));
    for (uint32_t i = 0; i < floats; i++) kept += (double)play->begins_at - (double)value[i];
    return 1 - kept / made;
}

/* Returns the share; what is reported is that, and within the spread of the epochs. */
static double reports_what_is_lost(const struct play *play) {
    struct shmtrain_store *store = store_of(play);
    WELL(store, shmtrain_store_run(store, count_down, (void *)play));
    const struct shmtrain_report *r = shmtrain_store_report(store);
    const double lost = lost_by_parameters(store, play);
    if (!(fabs(r->lost_updates - lost) < 1e-9)) fail_msg("%.9f is reported, %.9f is lost", r->lost_updates, lost);
    if (atoi(play->epochs) > 1)
        assert_true(r->lost_lowest <= r->lost_updates + 1e-12 && r->lost_updates <= r->lost_highest + 1e-12);
    else
        assert_true(isnan(r->lost_lowest) && isnan(r->lost_highest));
    shmtrain_store_destroy(store);
    return lost;
}

/* ---- tests ---- */

static void what_is_reported_is_what_the_parameters_show(void **state) {
    (void)state;
    static const struct play PLAYS[] = {
        {.workers = "2", .window = "", .epochs = "3", .group = 4},
        {.workers = "8", .window = "", .epochs = "3", .group = 1, .begins_at = 100},
        {.workers = "4", .window = "", .epochs = "1", .group = 64, .begins_at = -7},
        {.workers = "4", .window = "", .epochs = "3", .group = 4, .dense = true},
        {.workers = "4", .window = "0.01:100us", .epochs = "2", .group = 4, .dense = true},
        {.workers = "4", .window = "0.02:100us", .epochs = "3", .group = 4},
    };
    for (size_t i = 0; i < sizeof PLAYS / sizeof *PLAYS; i++)
        for (int k = 0; k < 2; k++) {
            struct play play = PLAYS[i];
            play.spawn = SPAWNS[k];
            (void)reports_what_is_lost(&play);
        }
}

/* Asleep between loading and storing, four workers are there at one time on any number of cores. */
static void a_wide_race_loses_many_updates(void **state) {
    (void)state;
    const struct play play = {.spawn = "threads", .workers = "4", .window = "0.1:100us", .epochs = "1", .group = 4};
    assert_true(reports_what_is_lost(&play) > 0.05);
}

static void one_worker_loses_nothing_however_long_it_waits(void **state) {
    (void)state;
    const struct play play = {.spawn = "processes", .workers = "1", .window = "0.5:1us", .epochs = "2", .group = 4};
    assert_true(reports_what_is_lost(&play) == 0);
}

/* Whatever the optimizer: who waits computes what it would have computed at once. */
static uint64_t bits_of(const char *optimizer, const char *model, const char *data, const char *window) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const char *const options[][2] = {
        {"workers", "1"}, {"mode", "hogwild"},     {"optimizer", optimizer}, {"epochs", "2"},
        {"model", model}, {"race-window", window}, {"l2", "0.001"},          {"count-lost", window[0] ? "1" : "0"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
    WELL(store, shmtrain_store_train(store, data));
    const uint64_t bits = shmtrain_store_report(store)->parameters_xxh64;
    shmtrain_store_destroy(store);
    return bits;
}

static void waiting_and_counting_change_no_bit_of_one_worker(void **state) {
    (void)state;
    static const char *const OPTIMIZERS[] = {"sgd",      "momentum", "adagrad",  "adam", "ftrl",
                                             "nesterov", "rmsprop",  "adadelta", "adamw"};
    const char *sparse = "builtin:sparse:examples=500", *dense = "builtin:dense:examples=200";
    for (size_t i = 0; i < sizeof OPTIMIZERS / sizeof *OPTIMIZERS; i++) {
        const uint64_t bits = bits_of(OPTIMIZERS[i], "logistic", sparse, "");
        assert_int_equal(bits_of(OPTIMIZERS[i], "logistic", sparse, "0.01:1us"), bits);
        assert_int_equal(bits_of(OPTIMIZERS[i], "softmax", dense, "0.01:1us"), bits_of(OPTIMIZERS[i], "softmax", dense, ""));
    }
}

/* Its parameters come last, behind those that the counts belong to. */
static void the_best_epoch_is_kept_where_updates_are_counted(void **state) {
    (void)state;
    uint64_t bits[2];
    for (int k = 0; k < 2; k++) {
        struct shmtrain_store *store;
        const char *const options[][2] = {{"workers", "1"}, {"mode", "hogwild"},          {"rate", "30"},
                                          {"epochs", "3"},  {"schedule", "constant"},     {"keep", "best"},
                                          {"seed", "2"},    {"count-lost", k ? "1" : "0"}};
        assert_int_equal(shmtrain_store_create(&store), 0);
        for (size_t i = 0; i < sizeof options / sizeof *options; i++)
            WELL(store, shmtrain_store_set(store, options[i][0], options[i][1]));
        WELL(store, shmtrain_store_train(store, "builtin:sparse:examples=500"));
        assert_in_range(shmtrain_store_report(store)->kept_epoch, 1, 2);
        bits[k] = shmtrain_store_report(store)->parameters_xxh64;
        shmtrain_store_destroy(store);
    }
    assert_int_equal(bits[0], bits[1]);
}

static void windows_are_times_with_or_without_a_share(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
        double share;
    } TAKEN[] = {{"", 0, 1},
                 {"1ns", 1, 1},
                 {"2us", 2000, 1},
                 {"1.5ms", 1500000, 1},
                 {"1s", 1000000000, 1},
                 {"0.01:200us", 200000, 0.01},
                 {"1:5ns", 5, 1},
                 {"0:5ns", 5, 0}};
    static const char *const REFUSED[] = {"2",    "us",   "0us",   "2s",    "1.1s",     "-1us",    "1us ",    "2:1us",
                                          ":1us", "0.1:", "0.1:2", "x:1us", "0.1x:1us", "nan:1us", "1e400us", "none"};
    uint64_t ns;
    double share;
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++) {
        struct shmt_error e = {0};
        if (shmt_race_parse("--race-window", TAKEN[i].text, &ns, &share, &e) != 0) fail_msg("%s", e.text);
        assert_int_equal(ns, TAKEN[i].ns);
        assert_true(share == TAKEN[i].share);
    }
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        struct shmt_error e = {0};
        assert_int_equal(shmt_race_parse("--race-window", REFUSED[i], &ns, &share, &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, "expected a time from 1ns to 1s"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_reported_is_what_the_parameters_show, deadline),
        cmocka_unit_test_setup(a_wide_race_loses_many_updates, deadline),
        cmocka_unit_test_setup(one_worker_loses_nothing_however_long_it_waits, deadline),
        cmocka_unit_test_setup(waiting_and_counting_change_no_bit_of_one_worker, deadline),
        cmocka_unit_test_setup(the_best_epoch_is_kept_where_updates_are_counted, deadline),
        cmocka_unit_test(windows_are_times_with_or_without_a_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
