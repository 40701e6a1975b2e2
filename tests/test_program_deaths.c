/* The real program from outside: signals, and the deaths of its processes in each mode. Nothing may hang, and nothing may be
 * left: program_finish and program_assert_gone_within fail when a process of the run outlives it. */
#include "run_program.h"
#include "refuse.h"

#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>

/* Long enough for any test: some 100,000 epochs of a few milliseconds. Every test waits for the line of the first one. */
#define DATA    "builtin:sparse:examples=20000,valid=100,features=2000,nonzeros=20"
#define ENDLESS "-e", "100000"
/* A second or more of loading on any machine; what is tested with it ends before. */
#define LONG_TO_LOAD "builtin:sparse:examples=4000000,valid=100,nonzeros=20"

#define MOST_SECONDS 10 /* "within seconds": 2 are given to workers that do not notice, the rest to busy machines */

static struct program *start_training(const char *mode, const char *output) {
    struct program *p = START("-w", "3", "--mode", mode, ENDLESS, "-o", output, DATA);
    program_wait_for_epoch(p);
    return p;
}

static void send_to(pid_t pid, int number) { assert_int_equal(kill(pid, number), 0); }

static void wait_for_state(pid_t pid, char wanted) {
    for (int i = 0; i < 10000 && program_state(pid) != wanted; i++) usleep(1000);
    assert_int_equal(program_state(pid), wanted);
}

/* ---- signals that end it well ---- */

static void assert_ended_well(struct program *p, int status, const char *output) {
    struct stat there;
    program_finish(p);
    program_assert_status(p, status);
    assert_non_null(strstr(p->text[OUT], "\nstopped: "));
    assert_non_null(strstr(p->text[OUT], "parameters  xxh64 "));
    assert_int_equal(stat(output, &there), 0);
    assert_true(there.st_size > 2001 * 4);
    assert_string_equal(p->text[ERR], "shmtrain: stopping at the next consistent point; Ctrl-C again stops at once\n");
}

static void sigint_and_sigterm_end_it_at_a_consistent_point_in_each_mode(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        struct program *p = start_training(modes[m], "int.model");
        send_to(p->pid, SIGINT);
        assert_ended_well(p, 130, "int.model");
        p = start_training(modes[m], "term.model");
        send_to(p->pid, SIGTERM);
        assert_ended_well(p, 143, "term.model");
        assert_int_equal(unlink("int.model") | unlink("term.model"), 0);
    }
}

static void ctrl_c_reaches_every_process_and_ends_it_just_the_same(void **state) {
    (void)state;
    struct program *p = start_training("sync", "ctrl-c.model");
    send_to(-p->pid, SIGINT);
    assert_ended_well(p, 130, "ctrl-c.model");
}

/* The kernel and the shell may both say it, so the second one does not end it at once. */
static void a_closed_terminal_ends_it_just_the_same(void **state) {
    (void)state;
    struct program *p = start_training("sync", "closed.model");
    send_to(-p->pid, SIGHUP);
    send_to(-p->pid, SIGHUP);
    assert_ended_well(p, 129, "closed.model");
}

static int ignore_hangups(void) { return signal(SIGHUP, SIG_IGN) == SIG_ERR; }

static void under_nohup_a_closed_terminal_is_nothing(void **state) {
    (void)state;
    struct program *p = START_IN(ignore_hangups, "-w", "2", ENDLESS, "-o", "nohup.model", DATA);
    program_wait_for_epoch(p);
    send_to(-p->pid, SIGHUP);
    program_wait_for(p, OUT, "\n    3 ");
    send_to(p->pid, SIGTERM);
    assert_ended_well(p, 143, "nohup.model");
}

/* Of so many bytes at least. */
static bool has_temporary(off_t bytes) {
    const struct dirent *entry;
    struct stat s;
    bool has = false;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        has = has || (strstr(entry->d_name, ".tmp") && stat(entry->d_name, &s) == 0 && s.st_size >= bytes);
    closedir(folder);
    return has;
}

static int have_no_nameless_files(void) { return !refuse_nameless_files(); }

/* As predictions are written, which is seen by the file that is not complete. It is held there, so that it cannot end. */
static struct program *start_predicting(void) {
    program_assert_status(RUN("-w", "2", "-q", "-e", "1", "-o", "cut.model", DATA), 0);
    struct program *p = START_IN(have_no_nameless_files, "predict", "--scores", "-w", "1", "-o", "cut.txt", "cut.model",
                                 "builtin:sparse:examples=1000000,features=2000,nonzeros=2");
    while (!has_temporary(1) && program_state(p->pid) != 'Z') {}
    send_to(p->pid, SIGSTOP);
    return p;
}

static void a_closed_terminal_leaves_no_half_of_the_predictions(void **state) {
    (void)state;
    struct program *p = start_predicting();
    send_to(p->pid, SIGHUP);
    send_to(p->pid, SIGCONT);
    program_finish(p);
    program_assert_status(p, 129);
    assert_false(has_temporary(0));
    assert_int_not_equal(access("cut.txt", F_OK), 0);
}

static void with_workers_as_threads_a_signal_ends_it_well(void **state) {
    (void)state;
    struct program *p = START("-w", "2", "--spawn", "threads", ENDLESS, "-o", "threads.model", DATA);
    program_wait_for_epoch(p);
    send_to(p->pid, SIGINT);
    assert_ended_well(p, 130, "threads.model");
}

static void a_stopped_run_still_reports_in_json(void **state) {
    (void)state;
    struct program *p = START("-w", "2", "--json", ENDLESS, DATA);
    program_wait_for(p, ERR, "\n    1 ");
    send_to(p->pid, SIGTERM);
    program_finish(p);
    program_assert_status(p, 143);
    json_t *o = program_json(p);
    assert_true(json_is_true(json_object_get(o, "stopped")));
    assert_true(json_array_size(json_object_get(o, "epochs")) >= 1);
    json_decref(o);
}

/* Whenever it comes: killed by it, before the program answers signals, or ended well. A signal that is lost lets it run on,
 * beyond the time that a test has. */
static void a_signal_is_not_lost_at_any_moment_of_the_start(void **state) {
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        struct program *p = START("-w", "2", "-q", ENDLESS, "builtin:sparse:examples=500,valid=100,features=50,nonzeros=5");
        usleep(i * 250);
        send_to(p->pid, SIGINT);
        program_finish(p);
        if (p->status != 130 && p->status != -SIGINT) fail_msg("after %u us: %d, %s", i * 250, p->status, p->text[ERR]);
        program_end_all(NULL);
    }
}

/* In sync mode all wait for the worker that is held, so the first signal cannot end the run. */
static void a_second_signal_ends_it_at_once(void **state) {
    (void)state;
    struct program *p = start_training("sync", "second.model");
    send_to(program_worker(p, 1), SIGSTOP);
    send_to(p->pid, SIGINT);
    program_wait_for(p, ERR, "Ctrl-C again stops at once");
    usleep(1000000); /* a user's impatience */
    send_to(p->pid, SIGINT);
    program_assert_gone_within(p, MOST_SECONDS);
    assert_int_equal(p->status, 130);
    assert_null(strstr(p->text[OUT], "stopped: "));
    assert_int_not_equal(access("second.model", F_OK), 0);
    assert_non_null(strstr(p->text[ERR], "\nshmtrain: stopped at once: second.model is not saved\n"));
}

static void a_hard_stop_names_all_files_that_are_not_saved(void **state) {
    (void)state;
    struct program *p =
        START("-w", "2", "--mode", "sync", ENDLESS, "-o", "hard.model", "--trace", "hard.json", "--slow", "1:+1ms", DATA);
    program_wait_for_epoch(p);
    send_to(program_worker(p, 1), SIGSTOP);
    send_to(p->pid, SIGTERM);
    program_wait_for(p, ERR, "Ctrl-C again stops at once");
    usleep(1000000);
    send_to(p->pid, SIGTERM);
    program_assert_gone_within(p, MOST_SECONDS);
    assert_int_equal(p->status, 143);
    assert_non_null(strstr(p->text[ERR], "\nshmtrain: stopped at once: hard.model and hard.json are not saved\n"));
}

/* As timeout(1) does: the child, then its group. A worker that is held for so long makes sure that the run is not over before
 * the second one comes. */
static void two_signals_right_after_another_are_one(void **state) {
    (void)state;
    struct program *p = start_training("sync", "twice.model");
    const pid_t held = program_worker(p, 1);
    send_to(held, SIGSTOP);
    send_to(p->pid, SIGINT);
    usleep(10000);
    send_to(-p->pid, SIGINT);
    program_wait_for(p, ERR, "Ctrl-C again stops at once");
    send_to(held, SIGCONT);
    assert_ended_well(p, 130, "twice.model");
}

static struct program *start_loading(void) {
    struct program *p = START("-w", "2", "-o", "loading.model", LONG_TO_LOAD);
    program_wait_for_readers(p);
    return p;
}

static void a_signal_during_loading_ends_it_with_nothing_saved(void **state) {
    (void)state;
    const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct program *p = start_loading();
        send_to(p->pid, signals[i]);
        program_assert_gone_within(p, MOST_SECONDS);
        assert_int_equal(p->status, 128 + signals[i]);
        assert_string_equal(p->text[OUT], "");
        assert_int_not_equal(access("loading.model", F_OK), 0);
    }
}

/* ---- a worker dies ---- */

static void assert_death_told(struct program *p, unsigned rank, pid_t pid, const char *what) {
    char sentence[128];
    assert_int_equal(p->status, 1);
    snprintf(sentence, sizeof sentence, "shmtrain: worker %u (process %d) was killed by signal 9 (Killed) while %s", rank, pid,
             what);
    assert_int_equal(strncmp(p->text[ERR], sentence, strlen(sentence)), 0);
    assert_ptr_equal(strchr(p->text[ERR], '\n'), p->text[ERR] + p->bytes[ERR] - 1); /* one line */
}

/* Of a worker, for good. */
static struct program *start_mortal(const char *mode, const char *threads) {
    struct program *p =
        START("-w", "3", "-t", threads, "--mode", mode, "--on-death", "abort", ENDLESS, "-o", "death.model", DATA);
    program_wait_for_epoch(p);
    return p;
}

static void a_killed_worker_ends_the_run_in_each_mode_and_is_named(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++)
        for (unsigned rank = 0; rank < 3; rank++) {
            struct program *p = start_mortal(modes[m], "1");
            const pid_t worker = program_worker(p, rank);
            send_to(worker, SIGKILL);
            program_assert_gone_within(p, MOST_SECONDS);
            assert_death_told(p, rank, worker, "training");
            assert_int_not_equal(access("death.model", F_OK), 0);
        }
}

static void a_killed_worker_with_threads_ends_the_run(void **state) {
    (void)state;
    struct program *p = start_mortal("sync", "2");
    const pid_t worker = program_worker(p, 1);
    send_to(worker, SIGKILL);
    program_assert_gone_within(p, MOST_SECONDS);
    assert_death_told(p, 1, worker, "training");
}

static void a_worker_that_hangs_does_not_hold_up_the_news_of_another_ones_death(void **state) {
    (void)state;
    struct program *p = start_mortal("sync", "1");
    const pid_t worker = program_worker(p, 2);
    send_to(program_worker(p, 0), SIGSTOP);
    send_to(worker, SIGKILL);
    program_assert_gone_within(p, MOST_SECONDS);
    assert_death_told(p, 2, worker, "training");
}

static void signals_that_the_program_answers_do_not_end_a_worker(void **state) {
    (void)state;
    struct program *p = start_training("async", "ignores.model");
    send_to(program_worker(p, 0), SIGINT);
    send_to(program_worker(p, 1), SIGTERM);
    send_to(program_supervisor(p), SIGTERM);
    program_wait_for(p, OUT, "\n   50 "); /* it goes on */
    send_to(p->pid, SIGINT);
    assert_ended_well(p, 130, "ignores.model");
}

/* ---- the others die ---- */

static void a_killed_supervisor_takes_the_workers_with_it_and_is_told(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        struct program *p = start_training(modes[m], "supervisor.model");
        send_to(program_supervisor(p), SIGKILL);
        program_assert_gone_within(p, MOST_SECONDS);
        assert_int_equal(p->status, 1);
        assert_non_null(strstr(p->text[ERR], "supervisor was killed by signal 9 (Killed) while training"));
    }
}

static void a_killed_parent_leaves_no_process_in_any_mode(void **state) {
    (void)state;
    const char *const modes[] = {"async", "sync"};
    for (int m = 0; m < 2; m++) {
        struct program *p = start_training(modes[m], "parent.model");
        send_to(p->pid, SIGKILL);
        program_assert_gone_within(p, MOST_SECONDS);
        assert_int_equal(p->status, -SIGKILL);
    }
}

static void a_killed_parent_leaves_no_process_while_loading(void **state) {
    (void)state;
    struct program *p = start_loading();
    send_to(p->pid, SIGKILL);
    program_assert_gone_within(p, MOST_SECONDS);
}

/* ---- what is left ---- */

/* Names in /dev/shm, of ours: other programs of the machine come and go meanwhile, and so do stores that have a name
 * (shmtrain-USER-NAME), which these runs have not. */
static int count_in_dev_shm(void) {
    DIR *dir = opendir("/dev/shm");
    int n = 0;
    if (!dir) return 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        int user, at = 0;
        const int is_named = sscanf(entry->d_name, "shmtrain-%d-%n", &user, &at) == 1 && at > 0 && entry->d_name[at] != '\0';
        n += strstr(entry->d_name, "shmt") != NULL && !is_named;
    }
    closedir(dir);
    return n;
}

/* Memory that a process shares has no name in any file system, so there is nothing that could stay behind. */
static void assert_shares_only_nameless_memory(pid_t pid) {
    char path[64], line[4096];
    int n_segments = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        char permissions[8] = "", name[4096] = "";
        if (sscanf(line, "%*s %7s %*s %*s %*s %4095s", permissions, name) < 1 || permissions[3] != 's') continue;
        const int is_segment = strncmp(name, "/memfd:shmtrain", 15) == 0;
        n_segments += is_segment;
        if (!is_segment && strcmp(name, "/dev/zero") != 0) fail_msg("shares %s", line); /* /dev/zero: anonymous */
    }
    fclose(f);
    assert_true(n_segments >= 2); /* data and parameters */
}

static void killing_all_at_once_leaves_no_process_and_nothing_in_dev_shm(void **state) {
    (void)state;
    const int before = count_in_dev_shm();
    struct program *p = start_training("async", "all.model");
    assert_shares_only_nameless_memory(p->pid);
    assert_shares_only_nameless_memory(program_worker(p, 2));
    send_to(-p->pid, SIGKILL);
    program_assert_gone_within(p, MOST_SECONDS);
    assert_int_equal(count_in_dev_shm(), before);
    assert_int_not_equal(access("all.model", F_OK), 0);
}

/* ---- standing still ---- */

static void a_parent_that_is_held_for_a_while_changes_nothing(void **state) {
    (void)state;
    char reference[17], hash[40];
#define RUN_OF_40 "--mode", "sync", "-w", "2", "-e", "40", DATA
    HASH(reference, RUN_OF_40);
    struct program *p = START(RUN_OF_40);
    program_wait_for_epoch(p);
    send_to(p->pid, SIGSTOP);
    wait_for_state(p->pid, 'T');
    usleep(300000); /* the workers go on meanwhile, perhaps to their end */
    send_to(p->pid, SIGCONT);
    program_finish(p);
    program_assert_status(p, 0);
    assert_non_null(strstr(p->text[OUT], "\n   40 "));
    snprintf(hash, sizeof hash, "xxh64 %s", reference);
    assert_non_null(strstr(p->text[OUT], hash));
}

static void lines_go_into_a_file_as_they_come(void **state) {
    (void)state;
    const char *const command[] = {"sh", "-c", "exec \"$TEST_BUILDDIR\"/shmtrain -w 2 -e 100000 " DATA " > lines", NULL};
    struct program *p = program_start(NULL, command);
    char text[4096] = "";
    for (int i = 0; i < 12000 && !strstr(text, "\n    2 "); i++) {
        FILE *f = fopen("lines", "r");
        if (f) {
            text[fread(text, 1, sizeof text - 1, f)] = '\0';
            fclose(f);
        }
        usleep(10000);
    }
    assert_non_null(strstr(text, "\n    2 ")); /* and it runs on */
    assert_null(strchr(text, '\r'));
    assert_null(strchr(text, '\033'));
    send_to(p->pid, SIGTERM);
    program_finish(p);
    program_assert_status(p, 143);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(sigint_and_sigterm_end_it_at_a_consistent_point_in_each_mode),
        PROGRAM_TEST(ctrl_c_reaches_every_process_and_ends_it_just_the_same),
        PROGRAM_TEST(a_closed_terminal_ends_it_just_the_same),
        PROGRAM_TEST(under_nohup_a_closed_terminal_is_nothing),
        PROGRAM_TEST(a_closed_terminal_leaves_no_half_of_the_predictions),
        PROGRAM_TEST(with_workers_as_threads_a_signal_ends_it_well),
        PROGRAM_TEST(a_stopped_run_still_reports_in_json),
        PROGRAM_TEST(a_signal_is_not_lost_at_any_moment_of_the_start),
        PROGRAM_TEST(a_second_signal_ends_it_at_once),
        PROGRAM_TEST(a_hard_stop_names_all_files_that_are_not_saved),
        PROGRAM_TEST(two_signals_right_after_another_are_one),
        PROGRAM_TEST(a_signal_during_loading_ends_it_with_nothing_saved),
        PROGRAM_TEST(a_killed_worker_ends_the_run_in_each_mode_and_is_named),
        PROGRAM_TEST(a_killed_worker_with_threads_ends_the_run),
        PROGRAM_TEST(a_worker_that_hangs_does_not_hold_up_the_news_of_another_ones_death),
        PROGRAM_TEST(signals_that_the_program_answers_do_not_end_a_worker),
        PROGRAM_TEST(a_killed_supervisor_takes_the_workers_with_it_and_is_told),
        PROGRAM_TEST(a_killed_parent_leaves_no_process_in_any_mode),
        PROGRAM_TEST(a_killed_parent_leaves_no_process_while_loading),
        PROGRAM_TEST(killing_all_at_once_leaves_no_process_and_nothing_in_dev_shm),
        PROGRAM_TEST(a_parent_that_is_held_for_a_while_changes_nothing),
        PROGRAM_TEST(lines_go_into_a_file_as_they_come),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
