/* The real program from outside: runs that go well, and what they report. */
#include "run_program.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <sys/mount.h>

#include <shmtrain/store.h>

#define DATA  "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"
#define OTHER "builtin:sparse:examples=3000,valid=500,features=401,nonzeros=12"

static json_t *run_json(const char *const *argv) {
    struct program *p = program_run(NULL, argv);
    program_assert_status(p, 0);
    return program_json(p);
}
#define JSON(...) run_json((const char *const[]){"shmtrain", "--json", "--quiet", __VA_ARGS__, NULL})

static int64_t whole(json_t *o, const char *name) {
    json_t *value = json_object_get(o, name);
    if (!json_is_integer(value)) fail_msg("\"%s\" is no whole number", name);
    return json_integer_value(value);
}

static double number(json_t *o, const char *name) {
    json_t *value = json_object_get(o, name);
    if (!json_is_number(value)) fail_msg("\"%s\" is no number", name);
    return json_number_value(value);
}

static const char *string(json_t *o, const char *name) {
    const char *value = json_string_value(json_object_get(o, name));
    if (!value) fail_msg("\"%s\" is no string", name);
    return value;
}

static json_t *epoch_of(json_t *o, size_t i) {
    json_t *epoch = json_array_get(json_object_get(o, "epochs"), i);
    if (!epoch) fail_msg("there is no record of epoch %zu", i + 1);
    return epoch;
}

/* ---- the report ---- */

static void json_is_one_object_with_all_that_was_promised(void **state) {
    (void)state;
    json_t *o = JSON("-w", "2", "-t", "2", "-e", "3", "--mode", "sync", "-b", "100", DATA);
    assert_string_equal(string(o, "mode"), "sync");
    assert_string_equal(string(o, "write"), "aggregate");
    assert_int_equal(whole(o, "staleness"), 0);
    assert_int_equal(whole(o, "quorum"), 2);
    assert_string_equal(string(o, "replicas"), "one");
    assert_int_equal(whole(o, "workers"), 2);
    assert_int_equal(whole(o, "threads"), 2);
    assert_string_equal(string(o, "model"), "logistic");
    assert_string_equal(string(o, "optimizer"), "sgd");
    json_t *dataset = json_object_get(o, "dataset");
    assert_string_equal(string(dataset, "name"), DATA);
    assert_int_equal(whole(dataset, "examples"), 3000);
    assert_int_equal(whole(dataset, "features"), 400);
    assert_in_range(whole(dataset, "nonzeros"), 3000, 3000 * 400);
    assert_true(number(o, "seconds") > 0);
    assert_true(number(o, "examples_per_second") > 0);
    assert_int_equal(whole(o, "updates"), 3 * 3000 / 100);
    assert_true(number(o, "wait_fraction") >= 0 && number(o, "wait_fraction") <= 1);
    assert_int_equal(strlen(string(o, "parameters_xxh64")), 16);
    json_decref(o);
}

static void json_has_a_record_for_each_epoch(void **state) {
    (void)state;
    json_t *o = JSON("-w", "2", "-e", "4", DATA);
    assert_string_equal(string(o, "mode"), "async");
    assert_string_equal(string(o, "write"), "racy");
    assert_string_equal(string(o, "staleness"), "inf");
    assert_int_equal(json_array_size(json_object_get(o, "epochs")), 4);
    for (size_t i = 0; i < 4; i++) {
        json_t *epoch = epoch_of(o, i);
        assert_int_equal(whole(epoch, "epoch"), i + 1);
        assert_true(number(epoch, "seconds") > 0);
        assert_true(number(epoch, "train_loss") > 0);
        assert_true(number(epoch, "valid_loss") > 0);
        assert_true(number(epoch, "valid_accuracy") > 0.5 && number(epoch, "valid_accuracy") <= 1);
        assert_true(number(epoch, "valid_auc") > 0.5 && number(epoch, "valid_auc") <= 1);
    }
    assert_true(number(epoch_of(o, 3), "train_loss") < number(epoch_of(o, 0), "train_loss"));
    json_decref(o);
}

static void json_leaves_the_lines_for_people_to_stderr(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "-e", "2", "--json", DATA);
    program_assert_status(p, 0);
    json_decref(program_json(p));
    assert_non_null(strstr(p->text[ERR], "\n    2 "));
}

static void without_data_it_trains_on_the_default_data(void **state) {
    (void)state;
    json_t *o = JSON("-e", "1");
    assert_string_equal(string(json_object_get(o, "dataset"), "name"), "builtin:sparse");
    const double best = number(o, "best_loss"), loss = number(epoch_of(o, 0), "valid_loss");
    assert_true(best > 0 && loss > best && loss < log(2)); /* better than guessing, worse than who made the data */
    json_decref(o);
}

static void the_best_loss_is_that_of_the_training_datas_own_validation(void **state) {
    (void)state;
    json_t *o = JSON("-e", "1", DATA);
    assert_true(json_is_real(json_object_get(o, "best_loss")));
    json_decref(o);
    o = JSON("-e", "1", "-M", "svm", DATA); /* another loss */
    assert_true(json_is_null(json_object_get(o, "best_loss")));
    json_decref(o);
    o = JSON("-e", "1", "--valid", OTHER, DATA); /* other data */
    assert_true(json_is_null(json_object_get(o, "best_loss")));
    json_decref(o);
}

/* ---- how many, in which mode ---- */

static void every_number_of_workers_trains_in_each_mode(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"}, *const workers[] = {"1", "2", "3", "8"};
    for (int m = 0; m < 2; m++)
        for (int w = 0; w < 4; w++) {
            json_t *o = JSON("-w", workers[w], "--mode", modes[m], "-e", "3", DATA);
            assert_string_equal(string(o, "mode"), modes[m]);
            assert_int_equal(whole(o, "workers"), strtol(workers[w], NULL, 10));
            assert_int_equal(whole(o, "examples"), 3 * 3000); /* every example, once per epoch */
            assert_int_equal(whole(epoch_of(o, 2), "examples"), 3000);
            assert_true(number(epoch_of(o, 2), "valid_auc") > 0.8); /* 0.5 is guessing, 0.93 and more are seen */
            json_decref(o);
        }
}

/* In `sync` with batches of one example, one worker of eight has all the work, and it need not be the one that is asked. */
static void workers_without_work_train_nothing_and_take_no_figures_away(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        json_t *o = JSON("--mode", "sync", "-b", "1", "-w", "8", "-e", "1", "--steps", "20", DATA);
        assert_true(number(o, "first_step_seconds") > 0);
        json_decref(o);
    }
    program_write_file("two", "1 1:1\n-1 2:1\n");
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        json_t *o = JSON("-w", "300", "--mode", modes[m], "-e", "3", "two");
        assert_int_equal(whole(o, "examples"), 3 * 2);
        json_decref(o);
    }
}

static void sync_gives_the_same_bits_however_it_is_run(void **state) {
    (void)state;
    char reference[17], hash[17];
#define ROW(...) \
    { "shmtrain", "--json", "--quiet", "--mode", "sync", "-e", "3", DATA, __VA_ARGS__, NULL }
    const char *const runs[][16] = {ROW("-w", "1"),
                                    ROW("-w", "1"),
                                    ROW("-w", "2"),
                                    ROW("-w", "3"),
                                    ROW("-w", "8"),
                                    ROW("-w", "1", "-t", "2"),
                                    ROW("-w", "2", "-t", "2"),
                                    ROW("-w", "3", "-t", "3"),
                                    ROW("-w", "2", "--spawn", "threads"),
                                    ROW("-w", "2", "-t", "2", "--spawn", "threads"),
                                    ROW("-w", "3", "--spawn", "processes"),
                                    ROW("-w", "2", "--bind", "none"),
                                    ROW("-w", "1", "--backend", "plain")};
#undef ROW
    program_hash(reference, runs[0]);
    for (size_t i = 1; i < sizeof runs / sizeof *runs; i++) {
        program_hash(hash, runs[i]);
        if (strcmp(hash, reference) != 0) fail_msg("run %zu ends with %s, not with %s", i, hash, reference);
    }
}

static void whatever_changes_the_training_changes_the_bits(void **state) {
    (void)state;
    char reference[17], hash[17];
#define SYNC "-w", "2", "--mode", "sync", "-e", "2"
    HASH(reference, SYNC, DATA);
    HASH(hash, SYNC, "--seed", "2", DATA);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, "--batch", "100", DATA);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, OTHER);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, "--l2", "0.01", DATA);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, "--bias", "0", DATA);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, "--shuffle", "0", DATA);
    assert_string_not_equal(hash, reference);
    HASH(hash, SYNC, "--rate", "0.01", DATA);
    assert_string_not_equal(hash, reference);
}

static void async_with_one_worker_is_repeatable_and_equals_the_plain_backend(void **state) {
    (void)state;
    char reference[17], hash[17];
    HASH(reference, "-w", "1", "-e", "2", DATA);
    HASH(hash, "-w", "1", "-e", "2", DATA);
    assert_string_equal(hash, reference);
    HASH(hash, "-w", "1", "-e", "2", "--backend", "plain", DATA);
    assert_string_equal(hash, reference);
    HASH(hash, "-w", "1", "-e", "2", "--seed", "7", DATA);
    assert_string_not_equal(hash, reference);
}

static void steps_are_exact(void **state) {
    (void)state;
    json_t *o = JSON("-w", "3", "--mode", "sync", "-b", "100", "--steps", "37", DATA); /* 30 steps are an epoch */
    assert_int_equal(whole(o, "updates"), 37);
    assert_int_equal(whole(o, "examples"), 3700);
    assert_int_equal(json_array_size(json_object_get(o, "epochs")), 2);
    json_decref(o);
    o = JSON("-w", "3", "--item", "50", "--steps", "7", DATA);
    assert_int_equal(whole(o, "item"), 50);
    assert_int_equal(whole(o, "examples"), 350);
    json_decref(o);
}

/* ---- validation ---- */

static void write_toy_data(void) {
    FILE *f = fopen("toy", "w"), *g = fopen("toy.t", "w");
    assert_non_null(f);
    assert_non_null(g);
    for (int i = 0; i < 400; i++)
        fprintf(i < 300 ? f : g, "%+d 1:0.5 %d:1 # %d\n", i % 2 ? 1 : -1, i % 2 ? 2 + i % 5 : 8 + i % 7, i);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(fclose(g), 0);
}

static void validation_is_a_file_a_share_or_nothing(void **state) {
    (void)state;
    write_toy_data();
    json_t *o = JSON("-w", "2", "-e", "10", "toy", "--valid", "toy.t"), *valid = json_object_get(o, "valid");
    assert_string_equal(string(valid, "name"), "toy.t");
    assert_int_equal(whole(valid, "examples"), 100);
    assert_int_equal(whole(json_object_get(o, "dataset"), "examples"), 300);
    assert_true(number(epoch_of(o, 9), "valid_accuracy") > 0.99); /* it is separable */
    json_decref(o);

    o = JSON("-w", "2", "-e", "10", "toy", "--valid", "0.25");
    const int64_t n_valid = whole(json_object_get(o, "valid"), "examples");
    assert_in_range(n_valid, 45, 105); /* 75 on average, and four standard deviations of 7.5 */
    assert_int_equal(whole(json_object_get(o, "dataset"), "examples"), 300 - n_valid);
    assert_int_equal(whole(o, "examples"), 10 * (300 - n_valid));
    json_decref(o);

    o = JSON("-w", "2", "toy");
    assert_true(json_is_null(json_object_get(o, "valid")));
    assert_true(json_is_null(json_object_get(epoch_of(o, 0), "valid_loss")));
    json_decref(o);
    o = JSON("-w", "2", DATA, "--valid", "none");
    assert_true(json_is_null(json_object_get(o, "valid")));
    json_decref(o);
}

/* ---- what one sees ---- */

static void quiet_says_nothing_when_all_is_well(void **state) {
    (void)state;
    struct program *p = RUN("--quiet", "-w", "2", "-e", "1", "-o", "quiet.model", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[OUT], "");
    assert_string_equal(p->text[ERR], "");
    assert_int_equal(access("quiet.model", F_OK), 0);
}

static void each_epoch_has_its_plain_line_of_at_most_80_columns(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "-e", "3", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "");
    for (int epoch = 1; epoch <= 3; epoch++) {
        char begin[16];
        snprintf(begin, sizeof begin, "\n%5d ", epoch);
        assert_non_null(strstr(p->text[OUT], begin));
    }
    assert_null(strstr(p->text[OUT], "\n    4 "));
    assert_non_null(strstr(p->text[OUT], "train loss"));
    assert_non_null(strstr(p->text[OUT], "examples/s"));
    for (char *line = strtok(p->text[OUT], "\n"); line; line = strtok(NULL, "\n")) {
        if (strlen(line) > 80) fail_msg("wider than 80 columns: %s", line);
        for (const char *c = line; *c; c++) assert_in_range((unsigned char)*c, ' ', '~'); /* no colours, no carriage returns */
    }
}

/* Lines that go on below one another become one. */
static void join_lines(char *text) {
    for (char *at = text; (at = strstr(at, "\n          "));) {
        const size_t n = strspn(at + 1, " ");
        memmove(at, at + n, strlen(at + n) + 1); /* leaves one blank */
        *at = ' ';
    }
}

static void help_states_the_default_of_every_option_that_has_one(void **state) {
    (void)state;
    const struct shmtrain_option *o;
    struct program *p = RUN("help", "train");
    program_assert_status(p, 0);
    join_lines(p->text[OUT]);
    for (size_t i = 0; (o = shmtrain_option_at(i)); i++) {
        char begin[64], end[64];
        snprintf(begin, sizeof begin, "%s--%s ", o->letter ? ", " : "\n      ", o->name);
        snprintf(end, sizeof end, " [%s]", o->standard);
        const char *line = strstr(p->text[OUT], begin);
        if (!line++) fail_msg("does not list %s", begin);
        const char *stated = strstr(line, end);
        if (o->argument && o->standard[0] && (!stated || memchr(line, '\n', (size_t)(stated - line))))
            fail_msg("does not state its default %s: %.*s", end, (int)strcspn(line, "\n"), line);
    }
}

static void version_is_one_line(void **state) {
    (void)state;
    struct program *p = RUN("--version");
    program_assert_status(p, 0);
    assert_int_equal(strncmp(p->text[OUT], "shmtrain ", 9), 0);
    assert_ptr_equal(strchr(p->text[OUT], '\n'), p->text[OUT] + p->bytes[OUT] - 1);
}

/* ---- where options come from ---- */

static int set_variables(void) { return setenv("SHMTRAIN_WORKERS", "3", 1) || setenv("SHMTRAIN_MODE", "sync", 1); }

static void variables_are_options_and_the_command_line_has_the_last_word(void **state) {
    (void)state;
    struct program *p = RUN_IN(set_variables, "--json", "-q", "-e", "1", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    assert_int_equal(whole(o, "workers"), 3);
    assert_string_equal(string(o, "mode"), "sync");
    json_decref(o);
    p = RUN_IN(set_variables, "--json", "-q", "-e", "1", "-w", "2", DATA);
    program_assert_status(p, 0);
    o = program_json(p);
    assert_int_equal(whole(o, "workers"), 2);
    json_decref(o);
}

static void the_word_train_may_stand_in_front_of_the_data(void **state) {
    (void)state;
    json_t *o = JSON("train", "-w", "1", "-e", "1", DATA);
    assert_string_equal(string(json_object_get(o, "dataset"), "name"), DATA);
    json_decref(o);
}

/* ---- where it runs ---- */

/* As taskset does it. */
static int take_one_processor(void) {
    cpu_set_t mine, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) return errno;
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mine)) CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one);
}

static void on_one_processor_there_is_one_worker_and_eight_work_when_asked(void **state) {
    (void)state;
    struct program *p = RUN_IN(take_one_processor, "--json", "-q", "-e", "1", DATA);
    program_assert_status(p, 0);
    json_t *o = program_json(p);
    assert_int_equal(whole(o, "workers"), 1);
    json_decref(o);
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        p = RUN_IN(take_one_processor, "--json", "-q", "-w", "8", "-e", "2", "--mode", modes[m], DATA);
        program_assert_status(p, 0);
        o = program_json(p);
        assert_int_equal(whole(o, "workers"), 8);
        assert_int_equal(whole(o, "examples"), 6000);
        json_decref(o);
    }
}

static int make_dev_shm_tiny(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    return mount("none", "/dev/shm", "tmpfs", 0, "size=16k") != 0 ? errno : 0;
}

static void a_tiny_dev_shm_does_not_matter(void **state) {
    (void)state;
    struct program *p = RUN_IN(make_dev_shm_tiny, "-w", "2", "-e", "1", "-q", DATA);
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to mount a small /dev/shm\n");
        skip();
    }
    program_assert_status(p, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(json_is_one_object_with_all_that_was_promised),
        PROGRAM_TEST(json_has_a_record_for_each_epoch),
        PROGRAM_TEST(json_leaves_the_lines_for_people_to_stderr),
        PROGRAM_TEST(without_data_it_trains_on_the_default_data),
        PROGRAM_TEST(the_best_loss_is_that_of_the_training_datas_own_validation),
        PROGRAM_TEST(every_number_of_workers_trains_in_each_mode),
        PROGRAM_TEST(workers_without_work_train_nothing_and_take_no_figures_away),
        PROGRAM_TEST(sync_gives_the_same_bits_however_it_is_run),
        PROGRAM_TEST(whatever_changes_the_training_changes_the_bits),
        PROGRAM_TEST(async_with_one_worker_is_repeatable_and_equals_the_plain_backend),
        PROGRAM_TEST(steps_are_exact),
        PROGRAM_TEST(validation_is_a_file_a_share_or_nothing),
        PROGRAM_TEST(quiet_says_nothing_when_all_is_well),
        PROGRAM_TEST(each_epoch_has_its_plain_line_of_at_most_80_columns),
        PROGRAM_TEST(help_states_the_default_of_every_option_that_has_one),
        PROGRAM_TEST(version_is_one_line),
        PROGRAM_TEST(variables_are_options_and_the_command_line_has_the_last_word),
        PROGRAM_TEST(the_word_train_may_stand_in_front_of_the_data),
        PROGRAM_TEST(on_one_processor_there_is_one_worker_and_eight_work_when_asked),
        PROGRAM_TEST(a_tiny_dev_shm_does_not_matter),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
