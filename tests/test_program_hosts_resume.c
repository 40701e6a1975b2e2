/* Checkpoints of the real program on several hosts, and going on from them: each host keeps its own, and all go on from the newest. */
#include "program_hosts_help.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

static const char *const RANK[] = {"0", "1", "2"}, *const FOLDER[] = {"ck0", "ck1", "ck2"};

static void remove_folders(void) { assert_int_equal(system("rm -rf ck0 ck1 ck2"), 0); }

#define START_KEEPING(rank, ...)                                                                                           \
    START_HOST(RANK[rank], "--checkpoint", FOLDER[rank], "--checkpoint-every", "1 epoch", "--keep", "all", "-q", "--json", \
               __VA_ARGS__)

/* n hosts, to the end; all with the same parameters. Of those in sync all but the first have the equal copies of allreduce. */
static void run_all(int n, const char *mode, const char *epochs, const char *resume, char hash[17], struct program *p[3]) {
    char other[17];
    choose_ports(n);
    for (int rank = 0; rank < n; rank++)
        p[rank] =
            START_KEEPING(rank, "-w", rank ? "1" : "2", "--mode", rank > 0 && strcmp(mode, "sync") == 0 ? "allreduce" : mode,
                          "--optimizer", "momentum", "-e", epochs, resume, SPARSE);
    hash_of(p[0], hash);
    for (int rank = 1; rank < n; rank++) {
        hash_of(p[rank], other);
        assert_string_equal(other, hash);
    }
}

static int count_files(const char *folder) {
    int n = 0;
    const struct dirent *entry;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while ((entry = readdir(dir))) n += strstr(entry->d_name, ".safetensors") != NULL;
    closedir(dir);
    return n;
}

/* ---- sync: the bits of a run that was never interrupted ---- */

static void two_runs_are_one_whatever_the_number_of_hosts(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "--optimizer", "momentum", "-e", "5", SPARSE);
    run_all(2, "sync", "3", "-q", many, p);
    assert_string_not_equal(many, one);
    assert_in_range(count_files("ck1"), 1,
                    3); /* behind the last epoch, and behind 1 and 2 where the file before was written by then */
    run_all(3, "sync", "4", "--resume", many, p);
    assert_says(p[2], "host 0 (127.0.0.1:");
    assert_says(p[2], ") has the newest checkpoint: copying it (");
    HASH(many, "-w", "2", "--mode", "sync", "--optimizer", "momentum", "-e", "5", "--checkpoint", "ck2", "--resume", SPARSE);
    assert_string_equal(many, one); /* and one host goes on alone */
    remove_folders();
}

static void a_host_that_has_lost_its_folder_gets_the_newest_checkpoint(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "--optimizer", "momentum", "-e", "4", SPARSE);
    run_all(2, "sync", "2", "-q", many, p);
    assert_int_equal(system("rm -rf ck0"), 0);
    run_all(2, "sync", "4", "--resume", many, p);
    assert_string_equal(many, one);
    assert_says(p[0], "host 1 (127.0.0.1:");
    assert_null(strstr(p[1]->text[ERR], "copying"));
    remove_folders();
}

static void where_no_host_has_one_the_run_begins(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "--optimizer", "momentum", "-e", "2", SPARSE);
    run_all(2, "sync", "2", "--resume", many, p);
    assert_string_equal(many, one);
    for (int rank = 0; rank < 2; rank++) assert_says(p[rank], "yet, nor on other hosts: the run starts from the beginning");
    remove_folders();
}

/* Nothing is left to do: all say so, and end well. */
static void a_run_that_is_complete_ends_at_once(void **state) {
    static const char *const GOALS[][2] = {{"-q", "-q"}, {"--target-loss", "0.66"}, {"--steps", "100"}};
    char hash[17], again[17];
    (void)state;
    for (size_t i = 0; i < sizeof GOALS / sizeof *GOALS; i++)
        for (int n = 2; n <= 3; n++) {
            struct program *p[3];
            for (int resumes = 0; resumes < 2; resumes++) {
                choose_ports(n);
                for (int rank = 0; rank < n; rank++)
                    p[rank] = START_KEEPING(rank, "-w", "1", "--mode", "sync", "-e", "2", GOALS[i][0], GOALS[i][1],
                                            resumes ? "--resume" : "-q", SPARSE);
                for (int rank = 0; rank < n; rank++) hash_of(p[rank], resumes ? again : hash);
            }
            assert_string_equal(again, hash);
            for (int rank = 0; rank < n; rank++) assert_says(p[rank], i == 1 ? "nothing is left to do" : "its run is complete");
            remove_folders();
        }
}

static void damage(const char *folder) {
    char command[200];
    snprintf(command, sizeof command,
             "for f in %s/*.safetensors; do printf xxxx | dd of=$f bs=1 seek=3000 conv=notrunc 2> /dev/null; done", folder);
    assert_int_equal(system(command), 0);
}

static void damaged_checkpoints_are_as_good_as_none_while_another_host_has_one(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "--optimizer", "momentum", "-e", "4", SPARSE);
    run_all(2, "sync", "2", "-q", many, p);
    damage("ck1");
    run_all(2, "sync", "4", "--resume", many, p);
    assert_string_equal(many, one);
    assert_says(p[1], "checkpoint skipped: ");
    assert_says(p[1], ") has the newest checkpoint: copying it (");
    damage("ck0");
    damage("ck1");
    choose_ports(2);
    for (int rank = 0; rank < 2; rank++) p[rank] = START_KEEPING(rank, "-w", "1", "-e", "4", "--resume", SPARSE);
    for (int rank = 0; rank < 2; rank++) end_with(p[rank], 1, "no host has a valid checkpoint, and host 0 (127.0.0.1:");
    remove_folders();
}

/* Live runs that were never one: files of one step, and of other parameters. */
static void of_two_histories_the_first_hosts_is_taken(void **state) {
    char hash[17];
    struct program *p[3];
    (void)state;
    run_all(2, "async", "2", "-q", hash, p);
    assert_int_equal(system("rm -rf ck0 && mv ck1 ck2"), 0);
    run_all(2, "async", "2", "-q", hash, p);
    assert_int_equal(system("rm -rf ck1 && mv ck2 ck1"), 0);
    run_all(2, "async", "3", "--resume", hash, p);
    assert_says(p[1], ") has another checkpoint: copying it (");
    remove_folders();
}

/* ---- what is lost with a host ---- */

/* From whichever checkpoint was whole when the host died. */
static void a_run_that_has_lost_a_host_goes_on_where_a_checkpoint_was(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "--checkpoint", FOLDER[rank], "--checkpoint-every", "1 epoch", "-w", "1", "-e",
                             "100000", LONG);
    program_wait_for(p[0], OUT, "\n    3 ");
    assert_int_equal(kill(p[1]->pid, SIGKILL), 0);
    end_with(p[0], 1, ") has left the run");
    program_assert_gone_within(p[1], 10);
    choose_ports(2);
    for (int rank = 0; rank < 2; rank++)
        p[rank] = START_HOST(RANK[rank], "--checkpoint", FOLDER[rank], "-q", "--json", "-w", "1", "-e", "100000", "--resume",
                             "--steps", "12000", LONG);
    hash_of(p[0], many);
    assert_says(p[0], "resuming from ck0/checkpoint-");
    HASH(one, "-w", "1", "--mode", "sync", "-e", "100000", "--steps", "12000", LONG);
    assert_string_equal(many, one);
    hash_of(p[1], many);
    assert_string_equal(many, one);
    remove_folders();
}

/* Behind any batch. */
static void a_run_that_was_stopped_goes_on_within_its_epoch(void **state) {
    char one[17], many[17];
    struct program *p[3];
    (void)state;
    choose_ports(2);
    for (int rank = 1; rank >= 0; rank--)
        p[rank] = START_HOST(RANK[rank], "--checkpoint", FOLDER[rank], "-w", "1", "-e", "4", "--batch", "4", LONG);
    program_wait_for_epoch(p[0]);
    assert_int_equal(kill(p[1]->pid, SIGINT), 0);
    end_with(p[1], 130, NULL);
    end_with(p[0], 0, "has ended the run");
    choose_ports(2);
    for (int rank = 0; rank < 2; rank++)
        p[rank] = START_HOST(RANK[rank], "--checkpoint", FOLDER[rank], "-q", "--json", "-w", "1", "-e", "4", "--batch", "4",
                             "--resume", LONG);
    HASH(one, "-w", "2", "--mode", "sync", "-e", "4", "--batch", "4", LONG);
    for (int rank = 0; rank < 2; rank++) {
        hash_of(p[rank], many);
        assert_string_equal(many, one);
    }
    remove_folders();
}

/* ---- launch ---- */

/* A child of a launch, by what is in its command line. */
static pid_t host_of(const struct program *launch, const char *words) {
    char command[160];
    int pid = 0;
    snprintf(command, sizeof command,
             "for p in $(cat /proc/%d/task/*/children); do tr '\\0' ' ' < /proc/$p/cmdline | grep -q -e '%s' && echo $p; done",
             (int)launch->pid, words);
    FILE *f = popen(command, "r");
    assert_true(f && fscanf(f, "%d", &pid) == 1 && pid > 1);
    pclose(f);
    return pid;
}

static void launch_resumes_a_run_that_has_lost_a_host(void **state) {
    char one[17];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "100000", "--steps", "12000", LONG);
    struct program *run = START("launch", "--local", "2", "--restarts", "1", "--", "-w", "1", "-e", "100000", "--steps",
                                "12000", "--checkpoint", "ck%r", "--checkpoint-every", "1 epoch", LONG);
    program_wait_for(run, OUT, "\n    3 ");
    assert_int_equal(kill(host_of(run, "--rank 1"), SIGKILL), 0);
    end_with(run, 0, "it is resumed from its newest checkpoint (restart 1 of 1)");
    assert_says(run, "resuming from ck0/checkpoint-");
    assert_non_null(strstr(run->text[OUT], one));
    remove_folders();
}

/* The remote shell says, as ssh does (255), that there is no connection; what it had started has ended with it. */
static void launch_goes_on_without_a_host_that_cannot_be_reached(void **state) {
    static const char SHELL[] =
        "#!/bin/sh\nrank=$1; shift\n[ $rank = 127.0.0.2 ] || exec sh -c \"$*\"\n"
        "exec 3<&0\nsh -c \"$*\" <&3 &\np=$!\n"
        "until ls ck1/*.safetensors > /dev/null 2>&1; do kill -0 $p || exit 1; sleep 0.1; done\n"
        "kill -9 $(cat /proc/$p/task/*/children) $p; exit 255\n";
    char one[17], list[64];
    (void)state;
    HASH(one, "-w", "1", "--mode", "sync", "-e", "100000", "--steps", "12000", LONG);
    program_write_file("shell", SHELL);
    assert_int_equal(chmod("shell", 0755), 0);
    choose_ports(2);
    snprintf(list, sizeof list, "%s,127.0.0.2%s", g_hosts[0], strchr(g_hosts[1], ':'));
    struct program *run = RUN("launch", "--hosts", list, "--remote-shell", "./shell", "--restarts", "2", "--", "-w", "1", "-e",
                              "100000", "--steps", "12000", "--checkpoint", "ck%r", "--checkpoint-every", "1 epoch", LONG);
    program_assert_status(run, 0);
    assert_says(run, "host 1 (127.0.0.2:");
    assert_says(run, ") cannot be reached: the run goes on without it");
    assert_says(run, "(restart 1 of 2)");
    assert_non_null(strstr(run->text[OUT], one));
    remove_folders();
}

static void launch_does_not_restart_what_was_refused_or_stopped(void **state) {
    (void)state;
    struct program *refused =
        RUN("launch", "--local", "2", "--restarts", "3", "--", "--checkpoint", "ck%r", "--rate", "x", SPARSE);
    program_assert_status(refused, 2);
    assert_null(strstr(refused->text[ERR], "restart 1"));
    program_write_file("shell", "#!/bin/sh\nexit 255\n");
    assert_int_equal(chmod("shell", 0755), 0);
    struct program *nowhere = RUN("launch", "--hosts", "a,b", "--remote-shell", "./shell", "--restarts", "3", "--",
                                  "--checkpoint", "ck", SPARSE); /* no host has begun anything */
    program_assert_status(nowhere, 255);
    assert_null(strstr(nowhere->text[ERR], "restart 1"));
    struct program *stopped =
        START("launch", "--local", "2", "--restarts", "3", "--", "--checkpoint", "ck%r", "-w", "1", "-e", "100000", LONG);
    program_wait_for_epoch(stopped);
    assert_int_equal(kill(stopped->pid, SIGINT), 0);
    end_with(stopped, 130, NULL);
    assert_null(strstr(stopped->text[ERR], "restart 1"));
    remove_folders();
}

/* ---- live modes ---- */

static void live_modes_go_on_with_the_same_parameters_on_all_hosts(void **state) {
    static const char *const MODES[] = {"async", "ssp:2", "node", "local:8"};
    (void)state;
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        char first[17], then[17];
        struct program *p[3];
        run_all(2, MODES[i], "3", "-q", first, p);
        run_all(2, MODES[i], "6", "--resume", then, p);
        assert_string_not_equal(first, then);
        json_t *report = program_json(p[0]);
        assert_int_equal(json_array_size(json_object_get(report, "epochs")), 6);
        json_decref(report);
        remove_folders();
    }
}

/* ---- refusals ---- */

static void all_hosts_resume_or_none(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[0] = START_KEEPING(0, "-w", "1", "--resume", SPARSE);
    p[1] = START_KEEPING(1, "-w", "1", SPARSE);
    end_with(p[0], 2, "host 1 (127.0.0.1:");
    assert_says(p[0], ") does not resume, and this one, 0, does");
    end_with(p[1], 2, "differ in resume: \"yes\" there, \"no\" here");
    remove_folders();
}

static void one_folder_for_two_hosts_is_refused_with_the_remedy(void **state) {
    struct program *p[2];
    (void)state;
    choose_ports(2);
    p[0] = START_HOST("0", "--checkpoint", "ck0", "-w", "1", SPARSE);
    program_wait_for(p[0], ERR, "waiting for host 1");
    p[1] = START_HOST("1", "--checkpoint", "ck0", "-w", "1", SPARSE);
    end_with(p[1], 2, "another run (process ");
    assert_says(p[1], "each host keeps its checkpoints in a folder of its own");
    assert_int_equal(kill(p[0]->pid, SIGINT), 0);
    end_with(p[0], 130, NULL);
    remove_folders();
}

static void checkpoints_within_epochs_and_restarts_without_any_are_refused(void **state) {
    static const struct refusal WRONG[] = {
        {2,
         "over several hosts checkpoints are written behind epochs",
         {"--hosts=127.0.0.1:7001,127.0.0.1:7002", "--rank=0", "--checkpoint=ck0", "--checkpoint-every=100", SPARSE}},
        {2,
         "--restarts resumes from checkpoints: add --checkpoint DIR behind --",
         {"launch", "--local=2", "--restarts=1", "--", SPARSE}},
        {2,
         "--restarts many: expected a number, up to 1000",
         {"launch", "--local=2", "--restarts=many", "--", "--checkpoint=ck0", SPARSE}}};
    (void)state;
    ASSERT_ALL_REFUSED(WRONG);
}

int main(void) {
    const struct CMUnitTest tests[] = {PROGRAM_TEST(two_runs_are_one_whatever_the_number_of_hosts),
                                       PROGRAM_TEST(a_host_that_has_lost_its_folder_gets_the_newest_checkpoint),
                                       PROGRAM_TEST(where_no_host_has_one_the_run_begins),
                                       PROGRAM_TEST(a_run_that_is_complete_ends_at_once),
                                       PROGRAM_TEST(damaged_checkpoints_are_as_good_as_none_while_another_host_has_one),
                                       PROGRAM_TEST(of_two_histories_the_first_hosts_is_taken),
                                       PROGRAM_TEST(a_run_that_has_lost_a_host_goes_on_where_a_checkpoint_was),
                                       PROGRAM_TEST(a_run_that_was_stopped_goes_on_within_its_epoch),
                                       PROGRAM_TEST(launch_resumes_a_run_that_has_lost_a_host),
                                       PROGRAM_TEST(launch_goes_on_without_a_host_that_cannot_be_reached),
                                       PROGRAM_TEST(launch_does_not_restart_what_was_refused_or_stopped),
                                       PROGRAM_TEST(live_modes_go_on_with_the_same_parameters_on_all_hosts),
                                       PROGRAM_TEST(all_hosts_resume_or_none),
                                       PROGRAM_TEST(one_folder_for_two_hosts_is_refused_with_the_remedy),
                                       PROGRAM_TEST(checkpoints_within_epochs_and_restarts_without_any_are_refused)};
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
