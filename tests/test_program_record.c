/* The real program: --record keeps a run, --replay repeats it, and says in one line what it cannot repeat. */
#include "run_program.h"

#define DATA   "builtin:sparse:examples=3000,valid=200,features=3000,nonzeros=12"
#define RUN_AS "-w", "4", "-e", "3", "-b", "32"

/* Of both: the parameters, and what came too late. */
static void assert_replays(const char *const *how) {
    const char *record[24] = {"shmtrain",      "--json",   "--quiet",    RUN_AS, "--slow",
                              "random:0.1:4x", "--record", "run.record", DATA};
    const char *replay[24] = {"shmtrain", "--json", "--quiet", RUN_AS, "--replay", "run.record", DATA};
    size_t n = 0, m = 0;
    while (record[n]) n++;
    while (replay[m]) m++;
    for (size_t i = 0; how[i]; i++) record[n + i] = replay[m + i] = how[i];
    json_t *was = program_report(record), *is = program_report(replay);
    assert_string_equal(json_string_value(json_object_get(was, "spawn")), "processes");
    assert_string_equal(json_string_value(json_object_get(is, "spawn")), "fibers");
    assert_string_equal(json_string_value(json_object_get(was, "parameters_xxh64")),
                        json_string_value(json_object_get(is, "parameters_xxh64")));
    assert_true(program_number(was, "dropped") == program_number(is, "dropped"));
    assert_true(program_number(was, "folded") == program_number(is, "folded"));
    json_decref(was);
    json_decref(is);
}

static void a_run_of_processes_is_replayed_by_fibers(void **state) {
    (void)state;
    assert_replays((const char *const[]){"--mode", "backup:2", NULL});
    assert_replays((const char *const[]){"--mode", "backup:2", "--late", "fold", NULL});
    assert_replays((const char *const[]){"--mode", "sync", "--staleness", "2", NULL});
    assert_replays((const char *const[]){"--mode", "sync", NULL});
}

static void both_say_in_a_line_what_they_did(void **state) {
    (void)state;
    struct program *p = RUN(RUN_AS, "--mode", "backup:2", "--record", "said.record", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "shmtrain: recorded 1125 gradients in said.record\n");
    p = RUN(RUN_AS, "--mode", "backup:2", "--replay", "said.record", DATA);
    program_assert_status(p, 0);
    assert_string_equal(p->text[ERR], "shmtrain: replayed 1125 gradients of said.record\n");
}

static void what_differs_is_named(void **state) {
    (void)state;
    static const struct refusal refusals[] = {
        {2, "--seed is 7 here, but 1 in the run of said.record", {"--mode", "sync", "--seed=7", "--replay=said.record", DATA}},
        {2, "this run is in async, and that of said.record was in a mode that aggregates", {"--replay", "said.record", DATA}},
        {2, "--mode sync or backup, or --write aggregate", {"--mode", "async", "--record", "new.record", DATA}},
        {2, "is read as the record to replay", {"--replay", "said.record", "--trace", "said.record", DATA}},
        {1, "cannot open the record none.record: No such file", {"--replay", "none.record", DATA}},
    };
    struct program *p = RUN(RUN_AS, "--mode", "sync", "--record", "said.record", DATA);
    program_assert_status(p, 0);
    ASSERT_ALL_REFUSED(refusals);
    p = RUN(RUN_AS, "--mode", "sync", "--steps", "20", "--replay", "said.record", DATA);
    program_assert_refused(p, 2, "--steps is 20 here, but without a limit in the run of said.record");
}

static void a_damaged_record_is_refused(void **state) {
    (void)state;
    struct program *p = RUN(RUN_AS, "--mode", "backup:2", "--record", "damaged.record", DATA);
    program_assert_status(p, 0);
    FILE *f = fopen("damaged.record", "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, -77, SEEK_END), 0);
    const int byte = fgetc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    assert_int_equal(fputc(byte ^ 4, f), byte ^ 4);
    fclose(f);
    p = RUN(RUN_AS, "--mode", "backup:2", "--replay", "damaged.record", DATA);
    program_assert_refused(p, 1, "damaged.record is damaged: its checksum does not match its contents");
}

static void a_record_is_no_model(void **state) {
    (void)state;
    struct program *p = RUN(RUN_AS, "--mode", "backup:2", "--record", "no.model", DATA);
    program_assert_status(p, 0);
    p = RUN("inspect", "no.model");
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "kind        record, "));
    p = RUN("predict", "no.model", DATA);
    program_assert_refused(p, 1, "no.model is the record of a run, and no model: --replay repeats the run");
}

/* Gradients are computed on copies then; the parameters are looked at as they are. The order is the same, by the fibers' seed. */
static void validation_is_of_the_parameters_with_a_record_and_without(void **state) {
    (void)state;
#define ON_FIBERS                                                                                                 \
    "shmtrain", "--json", "-q", "-w", "4", "-e", "2", "-M", "softmax", "--mode", "backup:2", "--spawn", "fibers", \
        "builtin:dense:examples=1000"
    static const char *const HOW[][24] = {
        {ON_FIBERS}, {ON_FIBERS, "--record", "v.record"}, {ON_FIBERS, "--replay", "v.record"}};
    double loss[3];
    char hash[3][17];
    for (int i = 0; i < 3; i++) {
        json_t *report = program_report(HOW[i]);
        const json_t *last = json_array_get(json_object_get(report, "epochs"), 1);
        loss[i] = json_real_value(json_object_get(last, "valid_loss"));
        snprintf(hash[i], sizeof hash[i], "%s", json_string_value(json_object_get(report, "parameters_xxh64")));
        json_decref(report);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_string_equal(hash[0], hash[2]);
    assert_true(loss[0] > 0 && loss[0] == loss[1] && loss[0] == loss[2]);
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(a_run_of_processes_is_replayed_by_fibers),
                                       PROGRAM_TEST(both_say_in_a_line_what_they_did),
                                       PROGRAM_TEST(what_differs_is_named),
                                       PROGRAM_TEST(a_damaged_record_is_refused),
                                       PROGRAM_TEST(a_record_is_no_model),
                                       PROGRAM_TEST(validation_is_of_the_parameters_with_a_record_and_without)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
