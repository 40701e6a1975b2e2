/* The folder of a run's checkpoints: old ones go, the newest good one is found, and only one run at a time writes there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint_files_help.h"
#include "folder_help.h"

/* Epochs of 6 steps: written at the beginning of epoch `epoch`. */
static struct shmt_checkpoint sample_at(uint32_t epoch) {
    static const struct shmtrain_epoch RECORDS[5] = {{.epoch = 1}, {.epoch = 2}, {.epoch = 3}, {.epoch = 4}, {.epoch = 5}};
    struct shmt_checkpoint c = sample();
    c.spec.epochs = 5;
    c.at.epoch = epoch;
    c.at.step = 0;
    c.at.n_pieces = 0;
    c.at.n_records = epoch;
    c.at.record = RECORDS;
    return c;
}

static void write_at(uint32_t epoch, uint32_t keep, char *path) {
    const struct shmt_checkpoint c = sample_at(epoch);
    write_sample(&c, keep, path);
}

static bool is_there(const char *name) { return access(name, F_OK) == 0; }

#define STEP_00 "checkpoint-000000000000.safetensors"
#define STEP_06 "checkpoint-000000000006.safetensors"
#define STEP_12 "checkpoint-000000000012.safetensors"
#define STEP_18 "checkpoint-000000000018.safetensors"
#define LATE    "checkpoint-999999999999.safetensors"
#define STEP_24 "checkpoint-000000000024.safetensors"

static void the_oldest_whole_ones_go(void **state) {
    (void)state;
    char path[PATH_MAX];
    write_text("checkpoint-1.safetensors", "not ours");
    write_text("checkpoint-000000000001.safetensors.bak", "not ours");
    write_text("model.safetensors", "not ours");
    for (uint32_t epoch = 0; epoch < 3; epoch++) write_at(epoch, 2, path);
    assert_false(is_there(STEP_00));
    assert_true(is_there(STEP_06) && is_there(STEP_12));
    assert_int_equal(truncate(STEP_12, 3000), 0); /* cut short: it neither counts nor goes */
    write_at(3, 2, path);
    assert_true(is_there(STEP_06) && is_there(STEP_12) && is_there(STEP_18));
    write_at(4, 2, path);
    assert_false(is_there(STEP_06));
    assert_true(is_there(STEP_12) && is_there(STEP_18) && is_there(STEP_24));
    assert_true(is_there("checkpoint-1.safetensors") && is_there("model.safetensors"));
    assert_true(is_there("checkpoint-000000000001.safetensors.bak"));
}

struct heard {
    unsigned n;
    char text[4][512];
};

static void hear(void *arg, const char *why) {
    struct heard *heard = arg;
    assert_true(heard->n < 4);
    snprintf(heard->text[heard->n++], sizeof heard->text[0], "%s", why);
}

/* Copies under other names, and what is left of a run that went on from an older one, are neither the newest nor take the place
 * of one that is. */
static void what_is_not_of_its_step_does_not_count(void **state) {
    (void)state;
    char path[PATH_MAX], words[200];
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    struct heard heard = {0};
    write_at(1, 9, path);
    assert_int_equal(rename(STEP_06, LATE), 0);
    write_at(1, 1, path);
    write_at(3, 1, path);
    assert_int_equal(truncate(STEP_18, 3000), 0);
    write_at(2, 1, path);
    assert_true(is_there(LATE) && is_there(STEP_18) && is_there(STEP_12));
    assert_false(is_there(STEP_06));
    assert_int_equal(shmt_checkpoint_newest(".", hear, &heard, &in, path, &e), 1);
    assert_string_equal(path, "./" STEP_12);
    assert_int_equal(heard.n, 2);
    snprintf(words, sizeof words, "./" LATE ": it is of step 6, but its name says 999999999999");
    assert_string_equal(heard.text[0], words);
    shmt_checkpoint_close(in);
}

/* None of them is what somebody asked to be written to. An alarm ends a test that waits for a reader of the pipe. */
static void whatever_has_its_name_is_replaced_but_a_folder(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct stat st;
    const struct shmt_checkpoint last = sample_at(3);
    struct shmt_error e = {0};
    alarm(60);
    assert_int_equal(mkfifo(STEP_00, 0600), 0);
    write_text("elsewhere", "mine");
    assert_int_equal(symlink("elsewhere", STEP_06), 0);
    assert_int_equal(symlink("/dev/full", STEP_12), 0);
    assert_int_equal(mkdir(STEP_18, 0700), 0);
    for (uint32_t epoch = 0; epoch < 3; epoch++) {
        write_at(epoch, 9, path);
        assert_int_equal(lstat(path, &st), 0);
        assert_true(S_ISREG(st.st_mode));
        shmt_checkpoint_close(open_good(path));
    }
    assert_int_equal(stat("elsewhere", &st), 0);
    assert_int_equal(st.st_size, 4);
    assert_int_equal(shmt_checkpoint_write(".", &last, 9, path, &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the checkpoint to ./" STEP_18 ": it is a folder");
    assert_int_equal(rmdir(STEP_18), 0);
    alarm(0);
}

static void the_newest_good_one_is_found(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct shmt_checkpoint_in *in = NULL;
    struct shmt_error e = {0};
    struct heard heard = {0};
    assert_int_equal(shmt_checkpoint_newest(".", hear, &heard, &in, path, &e), 0);
    assert_int_equal(shmt_checkpoint_newest("./none", hear, &heard, &in, path, &e), 0);
    for (uint32_t epoch = 0; epoch < 4; epoch++) write_at(epoch, 9, path);
    assert_int_equal(shmt_checkpoint_newest(".", hear, &heard, &in, path, &e), 1);
    assert_string_equal(path, "./" STEP_18);
    assert_int_equal(heard.n, 0);
    shmt_checkpoint_close(in);
    assert_int_equal(truncate(STEP_18, 100), 0);
    write_text(STEP_12, "-1 1:0.5 3:1\n");
    assert_int_equal(shmt_checkpoint_newest(".", hear, &heard, &in, path, &e), 1);
    assert_string_equal(path, "./" STEP_06);
    assert_int_equal(shmt_checkpoint_of(in)->at.epoch, 1);
    assert_int_equal(heard.n, 2);
    assert_non_null(strstr(heard.text[0], STEP_18));
    assert_non_null(strstr(heard.text[1], STEP_12));
    shmt_checkpoint_close(in);
    assert_int_equal(truncate(STEP_06, 0), 0);
    assert_int_equal(truncate(STEP_00, 8), 0);
    assert_int_equal(shmt_checkpoint_newest(".", NULL, NULL, &in, path, &e), SHMTRAIN_E_DATA);
    assert_non_null(strstr(e.text, "no checkpoint in . is valid (of 4)"));
}

static void assert_unclaimable(const char *folder, int status, const char *words) {
    struct shmt_checkpoint_claim claim;
    struct shmt_error e = {0};
    assert_int_equal(shmt_checkpoint_claim(folder, &claim, &e), status);
    if (!strstr(e.text, words)) fail_msg("expected \"%s\" in: %s", words, e.text);
    shmt_checkpoint_unclaim(&claim);
}

static void claim_folder(const char *folder, struct shmt_checkpoint_claim *claim) {
    struct shmt_error e = {0};
    if (shmt_checkpoint_claim(folder, claim, &e) != 0) fail_msg("%s", e.text);
}

static void a_folder_is_made_or_refused(void **state) {
    (void)state;
    struct shmt_checkpoint_claim claim;
    struct stat st;
    claim_folder("new", &claim);
    assert_int_equal(stat("new", &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    shmt_checkpoint_unclaim(&claim);
    shmt_checkpoint_unclaim(&claim);
    assert_false(is_there("new")); /* it was made for nothing */
    assert_int_equal(mkdir("new", 0700), 0);
    claim_folder("new/", &claim);
    shmt_checkpoint_unclaim(&claim);
    assert_int_equal(rmdir("new"), 0); /* it was not, and nothing is left in it */
    claim_folder("new", &claim);
    write_text("new/more", "");
    shmt_checkpoint_unclaim(&claim);
    assert_int_equal(unlink("new/more"), 0);
    assert_int_equal(rmdir("new"), 0);
    assert_unclaimable("none/new", SHMTRAIN_E_SYSTEM,
                       "cannot write checkpoints to none/new: No such file or directory; create its parent folder first");
    write_text("file", "");
    assert_unclaimable("file", SHMTRAIN_E_SYSTEM, "cannot write checkpoints to file: it is a file; name a folder");
    assert_unclaimable("/proc/self", SHMTRAIN_E_SYSTEM, "/proc/self"); /* nobody can make files there */
    assert_unclaimable("", SHMTRAIN_E_SYSTEM, "");
    if (geteuid() == 0) return; /* who may write everywhere */
    assert_int_equal(mkdir("read-only", 0500), 0);
    assert_unclaimable("read-only", SHMTRAIN_E_SYSTEM, "name a folder that you may read and write");
    assert_int_equal(rmdir("read-only"), 0);
}

/* Ends with status 0 when it has claimed the folder. */
static int status_of_another_process(void) {
    int status;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct shmt_checkpoint_claim claim;
        struct shmt_error e = {0};
        char words[40];
        snprintf(words, sizeof words, "another run (process %d) keeps", (int)getppid());
        const int rc = shmt_checkpoint_claim("ck", &claim, &e);
        if (rc == 0) shmt_checkpoint_unclaim(&claim);
        _exit(rc == 0 ? 0 : rc == SHMTRAIN_E_USAGE && strstr(e.text, words) ? 1 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_folder_is_of_one_run_at_a_time(void **state) {
    (void)state;
    struct shmt_checkpoint_claim first, other;
    assert_int_equal(mkdir("ck", 0700), 0);
    assert_int_equal(mkdir("other", 0700), 0);
    claim_folder("ck", &first);
    claim_folder("other", &other);
    assert_int_equal(status_of_another_process(), 1);
    assert_unclaimable("./ck/", SHMTRAIN_E_USAGE,
                       "--checkpoint ./ck/: another run of this process keeps its checkpoints there");
    assert_int_equal(status_of_another_process(), 1); /* who was refused has not taken it away */
    shmt_checkpoint_unclaim(&first);
    assert_int_equal(status_of_another_process(), 0);
    claim_folder("ck", &first);
    shmt_checkpoint_unclaim(&first);
    shmt_checkpoint_unclaim(&other);
    assert_int_equal(rmdir("ck"), 0);
    assert_int_equal(rmdir("other"), 0);
}

/* As the supervisor and the workers do, for a moment. */
static void children_of_a_killed_process_do_not_keep_its_claim(void **state) {
    (void)state;
    struct shmt_checkpoint_claim claim;
    int ready[2], end[2], status;
    char byte;
    assert_int_equal(mkdir("ck", 0700), 0);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(end), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(end[1]);
        claim_folder("ck", &claim);
        if (fork() == 0) { /* until the test ends */
            if (write(ready[1], "r", 1) < 0 || read(end[0], &byte, 1) < 0) _exit(1);
            _exit(0);
        }
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_unclaimable("ck", SHMTRAIN_E_USAGE, "another run (process ");
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    claim_folder("ck", &claim);
    shmt_checkpoint_unclaim(&claim);
    assert_int_equal(rmdir("ck"), 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(end[i]);
    }
}

static void a_full_disk_leaves_the_older_ones(void **state) {
    (void)state;
    char path[PATH_MAX];
    struct shmt_checkpoint c = sample();
    struct shmt_error e = {0};
    struct rlimit before, tight;
    write_at(0, 1, path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 1000;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const int rc = shmt_checkpoint_write(".", &c, 1, path, &e);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "cannot write the checkpoint to ./checkpoint-000000000015.safetensors (the previous file"));
    assert_non_null(strstr(e.text, "File too large"));
    assert_false(is_there(path));
    shmt_checkpoint_close(open_good(STEP_00));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_oldest_whole_ones_go, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_is_not_of_its_step_does_not_count, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(whatever_has_its_name_is_replaced_but_a_folder, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_newest_good_one_is_found, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_is_made_or_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_folder_is_of_one_run_at_a_time, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(children_of_a_killed_process_do_not_keep_its_claim, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_full_disk_leaves_the_older_ones, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
