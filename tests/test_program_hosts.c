/* The real program on several hosts (--hosts, launch): processes on the loopback of one machine, each a host of its own. What is
 * refused: test_program_hosts_refusals.c; who waits for whom, deaths and stops: test_program_hosts_waiting.c. Protocols on networks that
 * lose and reorder: test_lanes.c, test_hosts.c. */
#include "program_hosts_help.h"

#include <math.h>
#include <signal.h>
#include <sys/stat.h>

/* ---- the same bits ---- */

/* How many the others have was not asked: nobody guesses. */
static void assert_knows_its_own_workers(struct program *p, const char *n) {
    json_t *report = program_json(p);
    assert_true(json_is_null(json_object_get(report, "all_workers")));
    assert_true(program_number(report, "quorum") == atoi(n) && program_number(report, "workers") == atoi(n));
    json_decref(report);
}

static void parameters_are_those_of_one_host(void **state) {
    static const char *const RUNS[][6] = {{"logistic", "sgd", SPARSE, "64", "sync", "sync"},
                                          {"logistic", "adam", SPARSE, "500", "allreduce", "sync"},
                                          {"logistic", "sgd", WIDE, "64", "sync", "allreduce"},
                                          {"mlp", "momentum", DENSE, "64", "allreduce", "allreduce"}};
    (void)state;
    for (size_t i = 0; i < sizeof RUNS / sizeof *RUNS; i++) {
        const char *model = RUNS[i][0], *rule = RUNS[i][1], *data = RUNS[i][2], *batch = RUNS[i][3];
        char one[17], many[17];
        HASH(one, "-w", "1", "--mode", "sync", "-e", "2", "-M", model, "--optimizer", rule, "--batch", batch, data);
        for (int n = 2; n <= 3; n++) {
            static const char *const RANK[] = {"0", "1", "2"}, *const WORKERS[] = {"1", "2", "1"};
            struct program *p[3];
            choose_ports(n);
            for (int rank = 0; rank < n; rank++)
                p[rank] =
                    START_HOST(RANK[rank], "-q", "--json", "-w", WORKERS[rank], "--mode", rank < 2 ? RUNS[i][4] : RUNS[i][5],
                               "-e", "2", "-M", model, "--optimizer", rule, "--batch", batch, data);
            for (int rank = 0; rank < n; rank++) {
                hash_of(p[rank], many);
                assert_string_equal(many, one);
                assert_knows_its_own_workers(p[rank], WORKERS[rank]);
            }
        }
    }
}

/* Of each epoch what is its own: they are alike. */
static void assert_traffic_of_epochs(const json_t *epochs) {
    size_t i;
    json_t *epoch;
    assert_int_equal(json_array_size(epochs), 2);
    json_array_foreach(epochs, i, epoch) {
        assert_true(program_number(epoch, "exchanges") == 94); /* 6000 / 64 */
        assert_true(program_number(epoch, "sent_bytes") > 94 * 64 && program_number(epoch, "received_bytes") > 94 * 64);
    }
    const double first = program_number(json_array_get(epochs, 0), "sent_bytes");
    assert_true(program_number(json_array_get(epochs, 1), "sent_bytes") < 1.5 * first);
}

/* The link has a row, and a curve of bytes; each of its turns is there. */
static void assert_link_is_traced(const char *path) {
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *event;
    unsigned exchanges = 0, waits = 0, counters = 0, named = 0;
    size_t i;
    assert_non_null(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        if (program_number(event, "pid") != 2) continue;
        const char *name = json_string_value(json_object_get(event, "name"));
        const json_t *args = json_object_get(event, "args");
        if (strcmp(name, "process_name") == 0)
            named += strcmp(json_string_value(json_object_get(args, "name")), "link to other hosts") == 0;
        if (strcmp(name, "exchange") == 0) {
            exchanges++;
            assert_true(program_number(args, "sent_bytes") > 0 && program_number(args, "batch") < 2 * 94);
        }
        waits += strcmp(name, "wait for hosts") == 0;
        if (strcmp(name, "network") != 0) continue;
        counters++;
        assert_string_equal(json_string_value(json_object_get(event, "ph")), "C");
        assert_true(program_number(args, "sent B/s") > 0);
    }
    json_decref(trace);
    assert_true(named == 1 && exchanges == 2 * 94 && counters == exchanges);
    assert_true(waits > 0 && waits <= exchanges);
}

/* A short run may have no line of progress. */
static void assert_metrics_have_traffic(const char *path) {
    static char line[1 << 16];
    unsigned epochs = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        json_t *o = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(o, "event"));
        const bool goes_on = strcmp(event, "progress") == 0;
        epochs += strcmp(event, "epoch") == 0;
        if (goes_on || strcmp(event, "epoch") == 0)
            assert_true(program_number(o, "exchanges") >= 0 && program_number(o, "received_bytes") >= 0);
        if (goes_on) assert_true(program_number(o, "sent_bytes_per_second") >= 0);
        json_decref(o);
    }
    fclose(f);
    assert_int_equal(epochs, 2);
}

static void a_report_says_which_host_it_is_and_what_was_sent(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "1", "-e", "2", "--trace", "t.json", SPARSE);
    p[0] = START_HOST("0", "-w", "1", "-e", "2", "--metrics", "m.jsonl", SPARSE);
    program_finish(p[1]);
    program_assert_status(p[1], 0);
    json_t *report = program_json(p[1]);
    assert_traffic_of_epochs(json_object_get(report, "epochs"));
    assert_link_is_traced("t.json");
    assert_true(program_number(report, "hosts") == 2 && program_number(report, "host") == 1);
    const double waited = program_number(report, "wait_hosts_fraction");
    assert_true(waited > 0 && waited <= program_number(report, "wait_fraction"));
    assert_true(program_number(report, "sent_bytes") > 1000 && program_number(report, "received_bytes") > 1000);
    assert_string_equal(json_string_value(json_object_get(report, "write")), "aggregate"); /* nobody has named a mode */
    json_decref(report);
    end_with(p[0], 0, NULL);
    assert_non_null(strstr(p[0]->text[OUT], "on host 0; there are 2 hosts"));
    assert_non_null(strstr(p[0]->text[OUT], "\nnetwork     "));
    assert_non_null(strstr(p[0]->text[OUT], " received, waited for "));
    for (const char *line = p[0]->text[OUT]; *line; line = strchr(line, '\n') + 1) assert_true(strcspn(line, "\n") <= 80);
    assert_metrics_have_traffic("m.jsonl");
}

/* Each turn of the link is a merge, and what it does in one is told apart. */
static void assert_merges_are_traced(const char *path) {
    json_t *trace = json_load_file(path, JSON_REJECT_DUPLICATES, NULL), *event;
    unsigned exchanges = 0, merges = 0, rests = 0;
    size_t i;
    assert_non_null(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *name = json_string_value(json_object_get(event, "name")),
                   *kind = json_string_value(json_object_get(event, "ph"));
        if (program_number(event, "pid") != 2 || strcmp(kind, "X") != 0) continue;
        assert_non_null(json_object_get(json_object_get(event, "args"), "merge"));
        exchanges += strcmp(name, "exchange") == 0;
        merges += strcmp(name, "merge") == 0;
        rests += strcmp(name, "wait for workers") == 0;
    }
    json_decref(trace);
    assert_true(exchanges > 0 && merges == exchanges && rests >= exchanges);
}

/* Other hosts are waited for when all of one's own workers are there: host 1 does so, host 0 waits for its worker. */
static void a_slow_worker_is_no_slow_network(void **state) {
    static const char *const MODES[] = {"sync", "local:1"}, *const data = "builtin:sparse:examples=1000,valid=100";
    (void)state;
    for (int m = 0; m < 2; m++) {
        struct program *p[2];
        choose_ports(2);
        p[1] = START_HOST("1", "-q", "--json", "-w", "2", "-e", "1", "--mode", MODES[m], "--rate", "0.1", data);
        p[0] = START_HOST("0", "-q", "--json", "-w", "2", "-e", "1", "--mode", MODES[m], "--rate", "0.1", "--slow", "1:+20ms",
                          "--trace", "t.json", data);
        for (int host = 0; host < 2; host++) {
            program_finish(p[host]);
            program_assert_status(p[host], 0);
            json_t *report = program_json(p[host]);
            const double waited = program_number(report, "wait_fraction"),
                         for_hosts = program_number(report, "wait_hosts_fraction");
            if (host == 0 ? for_hosts >= waited / 2 : for_hosts <= waited / 2)
                fail_msg("--mode %s: host %d waited %g of its time, %g for hosts", MODES[m], host, waited, for_hosts);
            if (host == 0) assert_true(program_number(report, "waits_mostly_for") == 1);
            json_decref(report);
        }
    }
    assert_merges_are_traced("t.json");
}

/* Adam has at least two planes of state, which are merged with the weights: parts of 256 floats, each with a number. */
static void a_plan_says_what_hosts_exchange_in_a_turn(void **state) {
    static const char *const TURNS[][2] = {{"sync", "batch"}, {"async", "round"}, {"local:8", "merge"}};
    const double blocks = 12, part = 8 + 256 * 4 + 256; /* 3000 floats, and a bias */
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct program *plan = RUN("topo", "--json", "--hosts", "a:1,b:2", "--rank", "0", "-w", "2", "--mode", TURNS[i][0],
                                   "--optimizer", "adam", SPARSE);
        json_t *o = program_json(plan);
        const double most = program_number(json_array_get(json_object_get(o, "hosts"), 1), "most_bytes");
        assert_string_equal(json_string_value(json_object_get(o, "exchange")), TURNS[i][1]);
        if (i == 2 ? fmod(most, blocks * part) > 0 || most < 3 * blocks * part : most > 4 * 3100)
            fail_msg("%s: %g bytes", TURNS[i][0], most);
        json_decref(o);
    }
    assert_non_null(
        strstr(RUN("topo", "--hosts", "a:1,b:2", "--rank", "0", "--mode", "local:8", SPARSE)->text[OUT], " a merge"));
}

/* What all find at the end of an epoch ends them there; nobody begins another batch. */
static void a_goal_ends_all_hosts_with_the_same_epoch(void **state) {
    char one[17], many[17];
    struct program *p[2];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "9", "--target-loss", "0.64", SPARSE);
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "1", "-e", "9", "--target-loss", "0.64", SPARSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "1", "-e", "9", "--target-loss", "0.64", SPARSE);
    for (int rank = 0; rank < 2; rank++) {
        program_finish(p[rank]);
        program_assert_status(p[rank], 0);
        json_t *report = program_json(p[rank]);
        snprintf(many, sizeof many, "%s", json_string_value(json_object_get(report, "parameters_xxh64")));
        assert_string_equal(json_string_value(json_object_get(report, "stopped_by")), "target-loss");
        assert_string_equal(many, one);
        json_decref(report);
    }
}

/* Workers wait for nobody, and yet all have the same at the end, which is about as good as on one host. */
static void live_modes_end_with_the_same_bits_on_all_hosts(void **state) {
    static const char *const MODES[] = {"async", "hogwild", "ssp:2", "node"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        char first[17];
        struct program *p[3];
        choose_ports(3);
        static const char *const RANK[] = {"0", "1", "2"};
        for (int rank = 0; rank < 3; rank++)
            p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", "2", "--mode", MODES[i], "-e", "8", SPARSE);
        for (int rank = 0; rank < 3; rank++) {
            program_finish(p[rank]);
            program_assert_status(p[rank], 0);
            json_t *report = program_json(p[rank]);
            const char *hash = json_string_value(json_object_get(report, "parameters_xxh64"));
            const json_t *epochs = json_object_get(report, "epochs"),
                         *last = json_array_get(epochs, json_array_size(epochs) - 1);
            if (rank == 0) snprintf(first, sizeof first, "%s", hash);
            assert_string_equal(hash, first);
            assert_true(program_number(last, "examples") == 6000);
            assert_true(program_number(last, "train_loss") < 0.66); /* log 2 is what nothing learned would be */
            json_decref(report);
        }
    }
}
/* ---- launch ---- */

static void launch_runs_hosts_on_this_machine(void **state) {
    char one[17];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    unlink("m.st");
    struct program *run = RUN("launch", "--local", "3", "--", "-e", "1", "-o", "m.st", "--trace", "t%r.json", SPARSE);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], one));
    assert_says(run, "on host 2: --output is for host 0");
    assert_int_equal(access("m.st", F_OK), 0);
    for (int i = 0; i < 3; i++) assert_int_equal(access(i == 0 ? "t0.json" : i == 1 ? "t1.json" : "t2.json", F_OK), 0);
    struct program *failed = RUN("launch", "--local", "2", "--", "-e", "1", "nowhere.svm");
    assert_int_not_equal(failed->status, 0);
    assert_says(failed, "nowhere.svm");
    program_write_file("d0.svm", "+1 1:1\n-1 2:1\n");
    struct program *half = RUN("launch", "--local", "2", "--", "-e", "1", "d%r.svm"); /* host 0 would wait for ten minutes */
    assert_int_not_equal(half->status, 0);
    assert_says(half, "on host 1: ");
}

static void launch_stops_all_hosts_at_one_point(void **state) {
    (void)state;
    struct program *run = START("launch", "--local", "2", "--", "-w", "1", "-e", "1000000", LONG);
    program_wait_for_epoch(run);
    assert_int_equal(kill(run->pid, SIGTERM), 0);
    program_finish(run);
    program_assert_status(run, 143);
    assert_non_null(strstr(run->text[OUT], "\nstopped: "));
}

/* A remote shell that stays here: it drops the host's name. Words come through it as they are. */
static void launch_by_a_remote_shell_brings_keys_and_words(void **state) {
    char one[17], command[128];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    program_write_file("shell", "#!/bin/sh\necho \"$1\" >> hosts.txt\nshift\nexec sh -c \"$*\"\n");
    assert_int_equal(chmod("shell", 0755), 0);
    choose_ports(2);
    unlink("hosts.txt");
    struct program *run =
        RUN("launch", "--hosts", g_list, "--remote-shell", "./shell", "--", "-e", "1", "-o", "it's a \"model\".st", SPARSE);
    program_assert_status(run, 0);
    assert_non_null(strstr(run->text[OUT], one));
    assert_int_equal(access("it's a \"model\".st", F_OK), 0);
    snprintf(command, sizeof command, "test \"$(sort -u hosts.txt)\" = 127.0.0.1 ");
    assert_int_equal(system(command), 0);
    for (int i = 0; i < 2; i++) { /* words of the option that are none, or are no command */
        struct program *none =
            RUN("launch", "--hosts", g_list, "--remote-shell", i ? " ./nothing" : " ", "--", "-e", "1", SPARSE);
        assert_int_not_equal(none->status, 0);
    }
    choose_ports(2);
    struct program *stopped =
        START("launch", "--hosts", g_list, "--remote-shell", "./shell", "--", "-w", "1", "-e", "1000000", LONG);
    program_wait_for_epoch(stopped);
    assert_int_equal(kill(stopped->pid, SIGINT), 0);
    program_finish(stopped);
    assert_int_not_equal(stopped->status, 0);
    assert_non_null(strstr(stopped->text[OUT], "\nstopped: "));
}

/* examples/two_hosts.sh, as it stands. */
static void the_example_ends_with_the_same_parameters_on_both_hosts(void **state) {
    const char *source = getenv("TEST_SRCDIR"), *build = getenv("TEST_BUILDDIR");
    char command[4096], text[4096] = "";
    (void)state;
    choose_ports(1);
    snprintf(command, sizeof command, "PORT=%s %s/examples/two_hosts.sh %s/shmtrain 2>&1", strchr(g_hosts[0], ':') + 1,
             source ? source : ".", build ? build : ".");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    const char *first = strstr(text, "host 0: parameters  xxh64 "), *second = strstr(text, "host 1: parameters  xxh64 ");
    if (pclose(f) != 0 || !first || !second) fail_msg("%s", text);
    assert_int_equal(strncmp(first + 8, second + 8, 34), 0);
}
int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(parameters_are_those_of_one_host),
                                       PROGRAM_TEST(a_report_says_which_host_it_is_and_what_was_sent),
                                       PROGRAM_TEST(a_slow_worker_is_no_slow_network),
                                       PROGRAM_TEST(a_plan_says_what_hosts_exchange_in_a_turn),
                                       PROGRAM_TEST(a_goal_ends_all_hosts_with_the_same_epoch),
                                       PROGRAM_TEST(live_modes_end_with_the_same_bits_on_all_hosts),
                                       PROGRAM_TEST(launch_runs_hosts_on_this_machine),
                                       PROGRAM_TEST(launch_stops_all_hosts_at_one_point),
                                       PROGRAM_TEST(launch_by_a_remote_shell_brings_keys_and_words),
                                       PROGRAM_TEST(the_example_ends_with_the_same_parameters_on_both_hosts)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
