/* A quorum of the real program on several hosts: workers of all hosts count, whatever their numbers; a slow one holds up nobody, and one
 * that dies changes nothing of it. That each update is of exactly a round's members, the same on all hosts: test_hosts_quorums.c. */
#include "program_hosts_help.h"

#include <signal.h>

#define SPARSE "builtin:sparse:examples=6000,valid=500,features=3000,nonzeros=12"
#define DENSE  "builtin:digits:examples=600,valid=100"

static const char *const RANK[] = {"0", "1"};

static double of_both(struct program *p[2], const char *field) {
    double sum = 0;
    for (int rank = 0; rank < 2; rank++) {
        json_t *report = program_json(p[rank]);
        sum += program_number(report, field);
        json_decref(report);
    }
    return sum;
}

/* Both end well, with the same parameters and losses. */
static void end_alike(struct program *p[2]) {
    char hash[2][17];
    double loss[2];
    for (int rank = 0; rank < 2; rank++) {
        hash_of(p[rank], hash[rank]);
        json_t *report = program_json(p[rank]);
        const json_t *epochs = json_object_get(report, "epochs");
        loss[rank] = program_number(json_array_get(epochs, json_array_size(epochs) - 1), "train_loss");
        json_decref(report);
    }
    assert_string_equal(hash[0], hash[1]);
    assert_true(loss[0] == loss[1]);
}

/* Two of three gradients make an update, and the batch is cut for three. Then hosts have other numbers of workers, and one goes on
 * alone. */
static void workers_of_all_hosts_are_counted_also_by_who_goes_on(void **state) {
    static const char *const FOLDER[] = {"ck0", "ck1"}, *const WORKERS[][2] = {{"2", "1"}, {"1", "3"}},
                             *const EPOCHS[] = {"2", "3"};
    char hash[17];
    struct program *p[2];
    (void)state;
    for (int again = 0; again < 2; again++) {
        choose_ports(2);
        for (int rank = 1; rank >= 0; rank--)
            p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", WORKERS[again][rank], "--mode", "backup:2", "--batch", "60",
                                 "-e", EPOCHS[again], "-M", "mlp", "--optimizer", "adam", "--checkpoint", FOLDER[rank],
                                 again ? "--resume" : "-q", DENSE);
        end_alike(p);
        json_t *report = program_json(p[1]);
        assert_true(program_number(report, "quorum") == 2 && program_number(report, "item") == 20);
        assert_true(program_number(report, "all_workers") == (again ? 4 : 3));
        assert_true(program_number(report, "batch") == (again ? 80 : 60));
        json_decref(report);
    }
    HASH(hash, "-w", "3", "--mode", "backup:2", "--batch", "60", "-e", "4", "-M", "mlp", "--optimizer", "adam", "--checkpoint",
         "ck1", "--resume", DENSE);
    assert_int_equal(system("rm -rf ck0 ck1"), 0);
}

static void end_with_a_slow_host(const char *late, struct program *p[2]) {
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "1", "--mode", "backup:2", "--late", late, "--slow", "0:+20ms", "-e", "3",
                      "-M", "mlp", DENSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "2", "--mode", "backup:2", "--late", late, "-e", "3", "-M", "mlp", DENSE);
    end_alike(p);
}

/* Two workers of the other host make many updates while its only one is at an item. */
static void gradients_of_a_slow_host_come_too_late_and_are_dropped_or_folded(void **state) {
    struct program *p[2];
    (void)state;
    end_with_a_slow_host("drop", p);
    assert_true(of_both(p, "dropped") > 0 && of_both(p, "folded") == 0 && of_both(p, "examples") == 2 * 3 * 600);
    end_with_a_slow_host("fold", p);
    assert_true(of_both(p, "folded") > 0 && of_both(p, "dropped") == 0 && of_both(p, "examples") == 2 * 3 * 600);
}

/* All workers but one make an update where no number is given; what is late is a part of what its own host has computed. */
static void the_report_of_a_host_says_what_part_of_its_own_examples_was_late(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-w", "1", "--mode", "backup", "--slow", "0:+20ms", "-e", "2", "-M", "mlp", DENSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "2", "--mode", "backup", "-e", "2", "-M", "mlp", DENSE);
    for (int rank = 0; rank < 2; rank++) end_with(p[rank], 0, NULL);
    assert_non_null(strstr(p[1]->text[OUT], ", quorum 2 of 3, late drop\n"));
    assert_non_null(strstr(p[1]->text[OUT], " % of this host's examples came too late\n"));
    json_t *report = program_json(p[0]);
    assert_true(program_number(report, "quorum") == 2 && program_number(report, "all_workers") == 3);
    json_decref(report);
}

static void a_worker_that_dies_goes_on(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "2", "--mode", "backup:2", "-e", "20", SPARSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "1", "--mode", "backup:2", "-e", "20", SPARSE);
    assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    end_alike(p);
    assert_true(of_both(p, "respawns") == 1);
}

static void a_stop_ends_both_and_it_is_known_whose_it_was(void **state) {
    char hash[2][17];
    struct program *p[2];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "--json", "-w", "1", "--mode", "backup:1", "-e", "100000", SPARSE);
    (void)program_worker(p[1], 0); /* it is there */
    assert_int_equal(kill(p[1]->pid, SIGINT), 0);
    end_with(p[1], 130, NULL);
    end_with(p[0], 0, ") has ended the run");
    for (int rank = 0; rank < 2; rank++) {
        json_t *report = program_json(p[rank]);
        snprintf(hash[rank], sizeof hash[rank], "%s", json_string_value(json_object_get(report, "parameters_xxh64")));
        json_decref(report);
    }
    assert_string_equal(hash[0], hash[1]);
}

/* What cannot be of all hosts' workers is said before anybody trains; a quorum of all of them is sync. */
static void a_quorum_is_of_no_more_workers_than_there_are(void **state) {
    char quorum[17], sync[17];
    struct program *p[2];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--) p[rank] = START_HOST(RANK[rank], "-w", "2", "--mode", "backup:5", SPARSE);
    for (int rank = 0; rank < 2; rank++) end_with(p[rank], 2, "an update cannot wait for 5 of 4 workers");
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "-w", "2", "--mode", rank ? "backup:2" : "sync", SPARSE);
    for (int rank = 0; rank < 2; rank++) end_with(p[rank], 2, "differ in quorum of all hosts' workers: ");
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", "1", "--mode", "backup:2", "-e", "2", SPARSE);
    hash_of(p[1], quorum);
    end_with(p[0], 0, NULL);
    HASH(sync, "-w", "1", "--mode", "sync", "-e", "2", SPARSE);
    assert_string_equal(quorum, sync);
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(workers_of_all_hosts_are_counted_also_by_who_goes_on),
                                       PROGRAM_TEST(gradients_of_a_slow_host_come_too_late_and_are_dropped_or_folded),
                                       PROGRAM_TEST(the_report_of_a_host_says_what_part_of_its_own_examples_was_late),
                                       PROGRAM_TEST(a_worker_that_dies_goes_on),
                                       PROGRAM_TEST(a_stop_ends_both_and_it_is_known_whose_it_was),
                                       PROGRAM_TEST(a_quorum_is_of_no_more_workers_than_there_are)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
