/* The real program from outside: what each mode costs and gives is what theory says, in the report's own figures. Counts and
 * bounds, no times: workers are slowed down on purpose where one must be slow. docs/consistency.md tells the same to people. */
#include "run_program.h"
#include "sanitized.h"

#include <math.h>

#include "base/random.h"

#define DATA    "builtin:sparse:examples=12000,valid=2000,features=2000,nonzeros=20"
#define WORKERS 8
#define ITEM    32

#define REPORT_OF_ITEMS(...) REPORT("-w", "8", "--item", "32", __VA_ARGS__, DATA)

static double delay(const json_t *report, const char *key) { return program_number(json_object_get(report, "delay"), key); }
static const char *text(const json_t *o, const char *key) { return json_string_value(json_object_get(o, key)); }
static json_t *worker(const json_t *report, size_t i) { return json_array_get(json_object_get(report, "per_worker"), i); }

static double final_loss(const json_t *report) {
    const json_t *epochs = json_object_get(report, "epochs");
    return program_number(json_array_get(epochs, json_array_size(epochs) - 1), "valid_loss");
}

/* What a mode usually comes to: the median of three runs, two more of them only where the first, which it frees, is above the limit.
 * A machine that takes a processor away from one worker for a whole epoch may spoil one run, and says nothing of the mode. */
static double usual_loss(json_t *first, const char *const *argv, double limit) {
    double loss[3] = {final_loss(first)};
    json_decref(first);
    if (loss[0] <= limit) return loss[0];
    for (int i = 1; i < 3; i++) {
        json_t *r = program_report(argv);
        loss[i] = final_loss(r);
        json_decref(r);
    }
    print_message("  once more, and once more: %.5f, then %.5f and %.5f\n", loss[0], loss[1], loss[2]);
    return fmax(fmin(loss[0], loss[1]), fmin(fmax(loss[0], loss[1]), loss[2]));
}

/* A worker's items lie one behind the other, so all that the others do falls into one of them at most: on average n - 1
 * items' worth. */
static void async_has_a_delay_of_up_to_n_minus_1_clocks_and_drops_nothing(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "async", "--replicas", "one", "-e", "1", "--slow",
                                "random:1:+2ms"); /* so that all are at work at a time */
    (void)state;
    assert_true(delay(r, "samples") > 0);
    assert_true(delay(r, "clocks") > 2 && delay(r, "clocks") <= WORKERS - 1);
    assert_true(program_number(r, "dropped") == 0 && program_number(r, "folded") == 0 && program_number(r, "merges") == 0);
    for (size_t i = 0; i < WORKERS; i++) assert_true(program_number(worker(r, i), "wait_seconds") == 0); /* within an epoch */
    json_decref(r);
}

static void sync_has_no_delay_and_waits(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "sync", "-e", "2");
    double waited = 0;
    (void)state;
    assert_true(delay(r, "samples") > 0 && delay(r, "max") == 0 && delay(r, "mean") == 0);
    for (size_t i = 0; i < WORKERS; i++) waited += program_number(worker(r, i), "wait_seconds");
    assert_true(waited > 0);
    json_decref(r);
}

static void in_sync_all_wait_for_the_slow_one(void **state) {
    json_t *r =
        REPORT_OF_ITEMS("--mode", "sync", "-e", "1", "--steps", "20", "--slow", "3:+40ms"); /* more than a busy machine takes */
    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        const json_t *first = json_array_get(json_object_get(worker(r, i), "waited_for"), 0);
        if (i != 3) assert_true(program_number(first, "worker") == 3);
    }
    json_decref(r);
}

/* While one is at an item, each of the others goes from at most s behind it to at most s + 1 ahead. */
static void ssp_bounds_the_delay_that_async_does_not(void **state) {
    const double bound = (WORKERS - 1) * (2 * 2 + 2) * ITEM;
    json_t *ssp = REPORT_OF_ITEMS("--mode", "ssp:2", "-e", "1", "--slow", "random:1:+1ms,3:+10ms"); /* so that all get items */
    json_t *async = REPORT_OF_ITEMS("--mode", "async", "-e", "1", "--slow", "random:1:+1ms,3:+10ms");
    (void)state;
    assert_true(delay(ssp, "max") <= bound);
    assert_true(delay(async, "max") > bound);
    assert_true(program_number(worker(ssp, 0), "wait_seconds") > 0);
    json_decref(ssp);
    json_decref(async);
}

static void backup_drops_what_a_slow_worker_brings_too_late(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "backup:6", "-e", "2", "--slow", "random:1:+1ms,3:+40ms"); /* as above */
    double dropped = 0;
    (void)state;
    for (size_t i = 0; i < WORKERS; i++) dropped += program_number(worker(r, i), "dropped");
    assert_true(dropped > 0 && dropped == program_number(r, "dropped"));
    const json_t *slow = worker(r, 3);
    assert_true(program_number(slow, "dropped") > 0.5 * program_number(slow, "examples"));
    assert_true(program_number(worker(r, 0), "examples") > 2 * program_number(slow, "examples")); /* the others went on */
    json_decref(r);
}

/* Where several are missing none of them is to blame more than the others. */
static void in_backup_equal_workers_are_blamed_alike(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "backup:4", "-e", "2", "--slow", "random:1:+1ms");
    size_t blamed[WORKERS] = {0};
    (void)state;
    for (size_t i = 0; i < WORKERS; i++) {
        const json_t *first = json_array_get(json_object_get(worker(r, i), "waited_for"), 0);
        if (first) blamed[(size_t)program_number(first, "worker")]++;
    }
    for (size_t i = 0; i < WORKERS; i++) assert_true(blamed[i] < WORKERS - 1);
    assert_true(json_is_null(json_object_get(r, "waits_mostly_for")));
    json_decref(r);
}

static void late_gradients_may_be_folded_into_a_later_update(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "backup:6", "--late", "fold", "-e", "2", "--slow", "random:1:+1ms,3:+10ms");
    (void)state;
    assert_true(program_number(r, "folded") > 0);
    assert_true(program_number(r, "dropped") == 0);
    assert_true(program_number(worker(r, 3), "folded") > 0.5 * program_number(worker(r, 3), "examples"));
    json_decref(r);
}

/* Nobody has seen what the others have done since the last merge, and that is at most H items of each. */
static void local_hides_what_others_do_until_the_next_merge(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "local:4", "-e", "2");
    (void)state;
    assert_true(program_number(r, "n_replicas") == WORKERS && program_number(r, "merges") > 0);
    assert_true(delay(r, "max") > 0 && delay(r, "max") <= (WORKERS - 1) * 4 * ITEM);
    json_decref(r);
}

static void the_cost_of_an_example_chooses_the_mode_that_nobody_names(void **state) {
    json_t *sparse = REPORT_OF_ITEMS("-e", "1", "-M", "logistic"), *dense = REPORT_OF_ITEMS("-e", "1", "-M", "softmax"),
           *named = REPORT_OF_ITEMS("-e", "1", "--mode", "async");
    (void)state;
    assert_string_equal(text(sparse, "mode"), "async");
    assert_string_equal(text(dense, "mode"), "sync");
    assert_non_null(strstr(text(sparse, "mode_reason"), "cost less than waiting"));
    assert_non_null(strstr(text(dense, "mode_reason"), "cost more than waiting"));
    assert_true(!text(named, "mode_reason") || text(named, "mode_reason")[0] == '\0');
    json_decref(sparse);
    json_decref(dense);
    json_decref(named);
}

/* Two workers and eight with a copy each, merged damped, come to what one comes to without any. */
static void copies_that_merge_damped_learn_as_one_worker_does(void **state) {
    static const char *const RULES[] = {"sgd", "momentum", "adagrad", "adam", "ftrl"};
    static const char DATA_OF_COPIES[] = "builtin:sparse:examples=60000,valid=5000,features=5000";
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        json_t *one = program_report((const char *const[]){"shmtrain", "--json", "--quiet", "-w", "1", "--mode", "async",
                                                           "--optimizer", RULES[i], DATA_OF_COPIES, NULL});
        for (int eight = 0; eight < 2; eight++) {
            const char *const argv[] = {"shmtrain",    "--json", "--quiet", "-w",     eight ? "8" : "2", "--mode", "async",
                                        "--optimizer", RULES[i], "--merge", "damped", DATA_OF_COPIES,    NULL};
            const double limit = 1.01 * final_loss(one); /* with sums it is far off, with means a tenth */
            json_t *r = program_report(argv);
            assert_string_equal(text(r, "merge"), "damped");
            const double loss = usual_loss(r, argv, limit);
            print_message("  %s: %.5f of one worker, %.5f of %s\n", RULES[i], final_loss(one), loss, eight ? "8" : "2");
            assert_true(loss <= limit);
        }
        json_decref(one);
    }
}

/* Forty columns with one factor behind them: whatever a weight does by itself, together they come to where they should be within
 * ten examples, in each of eight copies. */
static void write_columns_that_move_together(const char *path) {
    FILE *f = fopen(path, "w");
    uint64_t state = 1;
    assert_non_null(f);
    for (int i = 0; i < 16000; i++) {
        const double z = 3 * (shmt_unit(state = shmt_mix64(state)) - 0.5);
        double x[40], score = 0;
        for (int j = 0; j < 40; j++) {
            x[j] = (j % 3 == 0 ? -z : z) + 1.5 * (shmt_unit(state = shmt_mix64(state)) - 0.5);
            score += (j % 2 == 0 ? 0.4 : -0.4) * x[j];
        }
        fprintf(f, "%d", shmt_unit(state = shmt_mix64(state)) < 1 / (1 + exp(-score)) ? 1 : -1);
        for (int j = 0; j < 40; j++) fprintf(f, " %d:%.3f", j + 1, x[j]);
        fprintf(f, "\n");
    }
    assert_int_equal(fclose(f), 0);
}

static double worst_loss(const json_t *report) {
    const json_t *epochs = json_object_get(report, "epochs");
    double worst = 0;
    for (size_t i = 0; i < json_array_size(epochs); i++)
        worst = fmax(worst, program_number(json_array_get(epochs, i), "valid_loss"));
    return worst;
}

/* All at work at a time: as on as many cores, every merge finds what seven others have done. */
static void copies_of_columns_that_move_together_do_not_overshoot(void **state) {
    static const char FILE_NAME[] = "together.svm";
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    write_columns_that_move_together(FILE_NAME);
    json_t *one = program_report((const char *const[]){"shmtrain", "--json", "--quiet", "-w", "1", "--mode", "async", FILE_NAME,
                                                       "--valid", FILE_NAME, NULL});
    const char *const eight[] = {"shmtrain", "--json",        "--quiet", "-w",      "8",       "--mode", "async",
                                 "--slow",   "random:1:+1ms", FILE_NAME, "--valid", FILE_NAME, NULL};
    json_t *r = program_report(eight);
    print_message("  at worst %.4f of eight, %.4f of one\n", worst_loss(r), worst_loss(one));
    assert_string_equal(text(r, "merge"), "damped");
    assert_true(worst_loss(r) <= 1.25 * worst_loss(one)); /* shares that do not see it: three times as much and more */
    assert_true(usual_loss(r, eight, 1.01 * final_loss(one)) <= 1.01 * final_loss(one));
    json_decref(one);
}

static void async_says_how_many_copies_it_takes_and_why(void **state) {
    json_t *r = REPORT_OF_ITEMS("--mode", "async", "-e", "1"),
           *one = REPORT_OF_ITEMS("--mode", "async", "--replicas", "one", "-e", "1");
    (void)state;
    assert_string_equal(text(r, "mode"), "async");
    assert_string_equal(text(r, "merge"), "damped");
    assert_true(program_number(r, "n_replicas") == WORKERS && program_number(r, "merges") > 0 &&
                program_number(r, "merge_all_every") >= 1);
    assert_non_null(strstr(text(r, "copies_reason"), "fit in the second-level cache"));
    assert_string_equal(text(one, "replicas"), "one");
    assert_true(!text(one, "copies_reason") && program_number(one, "merges") == 0);
    json_decref(r);
    json_decref(one);
}

/* Within a percent of what sync comes to in ten epochs. How many gradients come late in backup is up to the machine: a quarter
 * where workers are equal, more where others take processors away. They are dropped, or make an update larger that would have
 * been two; where updates are delayed, how much is up to the machine, too. So these have half as many epochs again. */
static void every_mode_learns_as_much_as_sync(void **state) {
    static const char *const MODES[][8] = {{"--mode", "async"},
                                           {"--mode", "ssp:4"},
                                           {"--mode", "backup:6", "-e", "15"},
                                           {"--mode", "backup:6", "-e", "15", "--late", "fold"},
                                           {"--mode", "local"},
                                           {"--mode", "node"},
                                           {"--write", "aggregate", "--staleness", "2", "-e", "15"},
                                           {"--write", "locked", "--staleness", "0"}};
    (void)state;
    SKIP_LEARNING_IF_SANITIZED();
    json_t *sync = REPORT_OF_ITEMS("--mode", "sync", "-e", "10");
    const double best = final_loss(sync);
    json_decref(sync);
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        const char *argv[20] = {"shmtrain", "--json", "--quiet", "-w", "8", "-e", "10"};
        size_t n = 7;
        for (size_t k = 0; k < 8 && MODES[i][k]; k++) argv[n++] = MODES[i][k];
        argv[n++] = DATA;
        const double loss = usual_loss(program_report(argv), argv, 1.01 * best);
        print_message("  %s %s: %.5f (sync %.5f)\n", MODES[i][0], MODES[i][1], loss, best);
        assert_true(loss <= 1.01 * best);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(async_has_a_delay_of_up_to_n_minus_1_clocks_and_drops_nothing),
        PROGRAM_TEST(sync_has_no_delay_and_waits),
        PROGRAM_TEST(in_sync_all_wait_for_the_slow_one),
        PROGRAM_TEST(ssp_bounds_the_delay_that_async_does_not),
        PROGRAM_TEST(backup_drops_what_a_slow_worker_brings_too_late),
        PROGRAM_TEST(in_backup_equal_workers_are_blamed_alike),
        PROGRAM_TEST(late_gradients_may_be_folded_into_a_later_update),
        PROGRAM_TEST(local_hides_what_others_do_until_the_next_merge),
        PROGRAM_TEST(the_cost_of_an_example_chooses_the_mode_that_nobody_names),
        PROGRAM_TEST(copies_that_merge_damped_learn_as_one_worker_does),
        PROGRAM_TEST(copies_of_columns_that_move_together_do_not_overshoot),
        PROGRAM_TEST(async_says_how_many_copies_it_takes_and_why),
        PROGRAM_TEST(every_mode_learns_as_much_as_sync),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
