/* The real program on several hosts, which wait for one another: ports and keys, deaths, and stops. */
#include "program_hosts_help.h"

#include <signal.h>

/* Two hosts in the middle of a run that does not end by itself. */
static void start_two(struct program *p[2], const char *mode) {
    choose_ports(2);
    p[1] = START_HOST("1", "-w", "1", "--mode", mode, "-e", "1000000", LONG);
    p[0] = START_HOST("0", "-w", "2", "--mode", mode, "-e", "1000000", LONG);
    program_wait_for_epoch(p[0]);
    program_wait_for_epoch(p[1]);
}
/* ---- ports and keys ---- */

static void a_port_that_is_taken_is_named(void **state) {
    (void)state;
    choose_ports(2);
    struct program *first = START_HOST("0", SPARSE);
    program_wait_for(first, ERR, "waiting for host 1");
    struct program *second = START_HOST("0", SPARSE);
    end_with(second, 1, "Address already in use: another program has this port");
    assert_int_equal(kill(first->pid, SIGINT), 0);
    end_with(first, 130, "stopped while waiting for other hosts");
}
/* The file of --peers for hosts with these public keys. */
static void write_peers(const char *path, const char *first, const char *second) {
    const char *const from[] = {first, second};
    char line[64];
    FILE *peers = fopen(path, "w");
    for (int i = 0; i < 2; i++) {
        FILE *public = fopen(from[i], "r");
        assert_non_null(fgets(line, sizeof line, public));
        fputs(line, peers);
        fclose(public);
    }
    fclose(peers);
}

static void hosts_with_keys_meet_and_others_hear_why_they_do_not(void **state) {
    char one[17], many[17], list[4][64], both[64];
    (void)state;
    for (int i = 0; i < 2; i++) program_assert_status(RUN("keygen", i ? "b.key" : "a.key"), 0);
    write_peers("peers", "a.key.pub", "b.key.pub");
    program_assert_refused(RUN("keygen", "a.key"), 2, "a.key is there already");
    HASH(one, "-w", "1", "--mode", "sync", "-e", "1", SPARSE);
    choose_ports(6);
    snprintf(both, sizeof both, "%s,%s", g_hosts[0], g_hosts[1]);
    struct program *a = START("--hosts", both, "--rank", "0", "--key", "a.key", "--peers", "peers", "-q", "--json", "-w", "1",
                              "-e", "1", SPARSE);
    program_assert_status(RUN("keygen", "c.key"), 0);
    program_assert_status(RUN("keygen", "d.key"), 0);
    write_peers("of_c", "a.key.pub", "c.key.pub");
    write_peers("of_b", "d.key.pub", "b.key.pub");
    for (int i = 0; i < 4; i++) /* each on a port of its own; the last one knows no name of host 0 */
        snprintf(list[i], sizeof list[i], "%s,%s", i == 3 ? "a..b:7001" : g_hosts[0], g_hosts[2 + i]);
    struct program *const vain[] = {
        START("--hosts", list[0], "--rank", "1", "-w", "1", SPARSE), /* without a key */
        START("--hosts", list[1], "--rank", "1", "--key", "c.key", "--peers", "of_c", "-w", "1", SPARSE),
        START("--hosts", list[2], "--rank", "1", "--key", "b.key", "--peers", "of_b", "-w", "1", SPARSE),
        START("--hosts", list[3], "--rank", "1", "--key", "b.key", "--peers", "peers", "-w", "1", SPARSE)};
    static const char *const WHY[] = {"): it has keys, and this host has none", "): it refuses this host's key",
                                      "): its key is not the one in --peers", "): no name server knows \"a..b\""};
    program_wait_for(a, ERR, "waiting for host 1");
    program_wait_for(a, ERR, "somebody (127.0.0.1) with a key that is not in --peers was refused");
    for (int i = 0; i < 4; i++) {
        program_wait_for(vain[i], ERR, "waiting for host 0 (");
        program_wait_for(vain[i], ERR, WHY[i]);
        assert_int_equal(kill(vain[i]->pid, SIGINT), 0);
        end_with(vain[i], 130, NULL);
    }
    struct program *b = START("--hosts", both, "--rank", "1", "--key", "b.key", "--peers", "peers", "-q", "--json", "-w", "1",
                              "-e", "1", SPARSE);
    hash_of(a, many);
    assert_string_equal(many, one);
    hash_of(b, many);
    assert_string_equal(many, one);
    assert_says(a, "all 2 hosts are there");
}
/* ---- deaths and stops ---- */

static void a_host_that_dies_ends_the_others_which_name_it(void **state) {
    struct program *p[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(p[1]->pid, SIGKILL), 0);
    end_with(p[0], 1, "host 1 (127.0.0.1:");
    assert_says(p[0], ") has left the run");
    program_assert_gone_within(p[1], 10);
}

static void a_link_that_dies_ends_its_host(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[1] = START_HOST("1", "-w", "1", "-e", "1000000", "--host-timeout", "2s", LONG);
    p[0] = START_HOST("0", "-w", "1", "-e", "1000000", "--host-timeout", "2s", LONG);
    program_wait_for_epoch(p[0]);
    assert_int_equal(kill(program_link(p[1]), SIGKILL), 0);
    end_with(p[1], 1, "the link to other hosts (process ");
    assert_says(p[1], "was killed by signal 9");
    end_with(p[0], 1, ") is lost");
}

static void a_stop_on_one_host_ends_all_with_the_same_parameters(void **state) {
    struct program *p[2];
    const char *hash[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(p[1]->pid, SIGINT), 0);
    end_with(p[1], 130, NULL);
    end_with(p[0], 0, "has ended the run");
    assert_non_null(strstr(p[0]->text[OUT], "ended by another host"));
    for (int i = 0; i < 2; i++) assert_non_null(hash[i] = strstr(p[i]->text[OUT], "xxh64 "));
    assert_int_equal(strncmp(hash[0], hash[1], 22), 0);
}

/* Though all want to end behind the round in which they have heard of it. */
static void in_live_modes_too_it_is_known_who_has_ended_the_run(void **state) {
    static const char *const MODES[] = {"ssp:4", "local:4"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        struct program *p[2];
        start_two(p, MODES[i]);
        assert_int_equal(kill(p[1]->pid, SIGINT), 0);
        end_with(p[1], 130, NULL);
        end_with(p[0], 0, "host 1 (127.0.0.1:");
        assert_says(p[0], ") has ended the run");
        assert_null(strstr(p[1]->text[ERR], "has ended the run"));
    }
}

static void a_worker_that_dies_changes_no_bit(void **state) {
    char one[17], many[17];
    struct program *p[2];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "40", SPARSE);
    choose_ports(2);
    p[1] = START_HOST("1", "-q", "--json", "-w", "2", "-e", "40", SPARSE);
    p[0] = START_HOST("0", "-q", "--json", "-w", "1", "-e", "40", SPARSE);
    assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    hash_of(p[0], many);
    assert_string_equal(many, one);
    hash_of(p[1], many);
    assert_string_equal(many, one);
    json_t *report = program_json(p[1]);
    assert_true(program_number(report, "respawns") == 1);
    json_decref(report);
}

/* Local SGD: the copies of all workers of both hosts, with their state, are merged; one that dies is waited for. */
static void copies_of_all_hosts_are_merged_and_a_worker_may_die(void **state) {
    static const char *const RANK[] = {"0", "1"}, *const WORKERS[] = {"1", "2"};
    char hash[2][17];
    struct program *p[2];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "-q", "--json", "-w", WORKERS[rank], "--mode", "local:8", "--optimizer", "adam", "-e",
                             "20", SPARSE);
    assert_int_equal(kill(program_worker(p[1], 1), SIGKILL), 0);
    for (int rank = 0; rank < 2; rank++) {
        hash_of(p[rank], hash[rank]);
        json_t *report = program_json(p[rank]);
        const json_t *epochs = json_object_get(report, "epochs"), *last = json_array_get(epochs, json_array_size(epochs) - 1);
        assert_true(program_number(report, "respawns") == rank && program_number(report, "n_replicas") == rank + 1);
        assert_true(json_array_size(epochs) == 20 && program_number(last, "examples") == 6000);
        assert_true(program_number(last, "train_loss") < 0.6); /* log 2 is what nothing learned would be */
        json_decref(report);
    }
    assert_string_equal(hash[0], hash[1]);
}

/* `node`, which may have bfloat16; and a quorum of most, which is known when all are there. Both go on to wait for the other host. */
static void what_hosts_can_exchange_is_not_refused_before_they_meet(void **state) {
    static const char *const WORDS[][2] = {{"--replicas=node", "--wire=bf16"}, {"--mode=backup", "--batch=512"}};
    (void)state;
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        choose_ports(2);
        struct program *p = START_HOST("0", WORDS[i][0], WORDS[i][1], SPARSE);
        program_wait_for(p, ERR, "waiting for host 1");
        assert_int_equal(kill(p->pid, SIGINT), 0);
        end_with(p, 130, "stopped while waiting for other hosts");
    }
}

/* Nobody is left to tell the link; it hears that its run has failed, and tells the others. */
static void a_supervisor_that_dies_ends_all_hosts(void **state) {
    struct program *p[2];
    (void)state;
    start_two(p, "sync");
    assert_int_equal(kill(program_supervisor(p[1]), SIGKILL), 0);
    end_with(p[1], 1, "was killed by signal 9");
    end_with(p[0], 1, ") has left the run");
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(a_port_that_is_taken_is_named),
                                       PROGRAM_TEST(hosts_with_keys_meet_and_others_hear_why_they_do_not),
                                       PROGRAM_TEST(a_host_that_dies_ends_the_others_which_name_it),
                                       PROGRAM_TEST(a_link_that_dies_ends_its_host),
                                       PROGRAM_TEST(a_stop_on_one_host_ends_all_with_the_same_parameters),
                                       PROGRAM_TEST(in_live_modes_too_it_is_known_who_has_ended_the_run),
                                       PROGRAM_TEST(a_worker_that_dies_changes_no_bit),
                                       PROGRAM_TEST(copies_of_all_hosts_are_merged_and_a_worker_may_die),
                                       PROGRAM_TEST(what_hosts_can_exchange_is_not_refused_before_they_meet),
                                       PROGRAM_TEST(a_supervisor_that_dies_ends_all_hosts)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
