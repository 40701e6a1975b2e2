/* Stores with a name, the real program from outside, where it gets rough: programs that are killed, a /dev/shm that is too
 * small, and sums that must not depend on who was there. Plain use of the commands is in test_program_shared.c. */
#include "run_program.h"

#include <errno.h>
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/mount.h>

/* Epochs long enough for whoever prints and reads a line about each, spent in sleep. */
#define DATA        "builtin:sparse:examples=100000,valid=500,features=400,nonzeros=12"
#define LITTLE_DATA "builtin:sparse:examples=20000,valid=500,features=400,nonzeros=12"

static char g_name[64]; /* of the test that runs */

static int make_name(void **state) {
    static int n;
    (void)state;
    snprintf(g_name, sizeof g_name, "test_program_named-%d-%d", getpid(), n++);
    return 0;
}

static int end_all(void **state) {
    RUN("rm", "--force", g_name); /* whatever the test has left */
    return program_end_all(state);
}

/* In sync, a wait for each chunk would be too much. */
static const char *slow_in(const char *mode) { return strcmp(mode, "sync") == 0 ? "0:1x" : "0:+300us,1:+300us"; }

static void send(struct program *p, int number) { assert_int_equal(kill(p->pid, number), 0); }

static struct program *start_run(const char *mode, const char *data) {
    struct program *run =
        START("--mode", mode, "-w", "2", "-e", "1000000", "--guests", "2", "--slow", slow_in(mode), "--name", g_name, data);
    program_wait_for_epoch(run);
    return run;
}

/* Until it has shown an epoch that it was there for: its validation is behind a percentage. */
static void wait_for_work(struct program *guest) { program_wait_for(guest, OUT, " %  0."); }

static void end_run(struct program *run) {
    send(run, SIGTERM);
    program_finish(run);
    program_assert_status(run, 143);
}

static void assert_error(const struct program *p, const char *words) {
    if (!strstr(p->text[ERR], words)) fail_msg("\"%s\" is not in:\n%s", words, p->text[ERR]);
}

/* The files of this store, and of no other, as one text. */
static const char *files(void) {
    static char text[512];
    char prefix[128];
    const struct dirent *entry;
    DIR *folder = opendir("/dev/shm");
    assert_non_null(folder);
    snprintf(prefix, sizeof prefix, "shmtrain-%ju-%s", (uintmax_t)geteuid(), g_name);
    text[0] = '\0';
    for (int part = 0; part < 3; part++) {
        static const char *const SUFFIX[] = {"", ".data", ".valid"};
        rewinddir(folder);
        while ((entry = readdir(folder))) {
            const size_t n = strlen(prefix);
            if (strncmp(entry->d_name, prefix, n) != 0 || strcmp(entry->d_name + n, SUFFIX[part]) != 0) continue;
            strcat(text, part ? SUFFIX[part] : "store");
            strcat(text, " ");
        }
    }
    closedir(folder);
    return text;
}

/* ---- deaths ---- */

static void a_killed_run_leaves_what_rm_removes_and_ends_who_joined(void **state) {
    static const char *const MODES[] = {"async", "sync"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct program *run = start_run(MODES[i], DATA);
        assert_string_equal(files(), "store .data .valid ");
        struct program *guest = START("join", "-w", "2", g_name), *watch = START("watch", g_name);
        wait_for_work(guest);
        program_wait_for_epoch(watch);
        send(run, SIGKILL);
        program_finish(run);
        program_finish(guest);
        program_finish(watch);
        program_assert_status(guest, 1);
        program_assert_status(watch, 1);
        assert_error(guest, "has died: process ");
        assert_error(watch, "has died: process ");
        assert_string_equal(files(), "store .data .valid ");
        program_assert_refused(RUN("join", "-w", "1", g_name), 1, "has died");
        program_assert_refused(RUN("--name", g_name, DATA), 2,
                               "already exists, from a run that has ended: remove it with shmtrain rm ");
        struct program *list = RUN("ls");
        program_assert_status(list, 0);
        assert_non_null(strstr(list->text[OUT], " died\n"));
        program_assert_status(RUN("rm", g_name), 0);
        assert_string_equal(files(), "");
    }
}

/* Advice that helps: rm would refuse a store in use, and cannot remove what is no file. */
static void a_name_that_is_taken_is_refused_with_what_helps(void **state) {
    (void)state;
    struct program *run = start_run("async", DATA);
    struct program *other = RUN("--name", g_name, DATA);
    program_assert_refused(other, 2, "in use, created by process ");
    assert_null(strstr(other->text[ERR], "shmtrain rm"));
    end_run(run);
    program_assert_status(RUN("rm", g_name), 0);
    char path[160];
    snprintf(path, sizeof path, "/dev/shm/shmtrain-%ju-%s", (uintmax_t)geteuid(), g_name);
    assert_int_equal(mkdir(path, 0700), 0);
    other = RUN("--name", g_name, DATA);
    assert_int_equal(rmdir(path), 0);
    program_assert_refused(other, 2, "is not a regular file: use another name");
}

static void a_killed_guest_costs_a_live_run_a_word_and_a_sync_run_its_life(void **state) {
    (void)state;
    struct program *run = start_run("async", DATA), *guest = START("join", "-w", "2", g_name);
    wait_for_work(guest);
    send(guest, SIGKILL);
    program_finish(guest);
    program_wait_for(run, ERR, "joined by name) died");
    end_run(run);
    assert_string_equal(files(), "store ");
    program_assert_status(RUN("rm", g_name), 0);

    run = start_run("sync", DATA);
    guest = START("join", "-w", "1", g_name);
    wait_for_work(guest);
    send(guest, SIGKILL);
    program_finish(guest);
    program_finish(run);
    program_assert_status(run, 1);
    assert_error(run, "joined by name) died or gave up while training");
    assert_string_equal(files(), "store ");
}

static void a_killed_worker_ends_the_run_and_its_guests_with_the_same_sentence(void **state) {
    (void)state;
    struct program *run = START("--mode", "async", "-w", "2", "-e", "1000000", "--guests", "2", "--on-death", "abort", "--slow",
                                slow_in("async"), "--name", g_name, DATA);
    program_wait_for_epoch(run);
    struct program *guest = START("join", "-w", "1", g_name);
    wait_for_work(guest);
    assert_int_equal(kill(program_worker(run, 1), SIGKILL), 0);
    program_finish(run);
    program_finish(guest);
    program_assert_status(run, 1);
    program_assert_status(guest, 1);
    assert_error(run, "worker 1 (process ");
    assert_error(guest, "failed: worker 1 (process ");
    assert_string_equal(files(), "store ");
}

static void a_killed_worker_of_a_guest_ends_that_guest_alone(void **state) {
    (void)state;
    struct program *run = start_run("async", DATA), *guest = START("join", "-w", "2", g_name);
    wait_for_work(guest);
    assert_int_equal(kill(program_worker(guest, 1), SIGKILL), 0);
    program_finish(guest);
    program_assert_status(guest, 1);
    assert_error(guest, "worker 3 (process "); /* the run has two of its own */
    program_wait_for(run, ERR, "joined by name) died");
    struct program *next = START("join", "-w", "2", g_name); /* the places are free again */
    wait_for_work(next);
    end_run(run);
    program_finish(next);
    program_assert_status(next, 0);
}

/* Who cuts its file off ends the run, and who has joined, with a sentence. */
static void a_store_that_is_cut_off_ends_all_who_use_it_with_a_sentence(void **state) {
    (void)state;
    char path[200];
    struct program *run = start_run("async", DATA), *guest = START("join", "-w", "1", g_name), *watch = START("watch", g_name);
    program_wait_for_epoch(run);
    wait_for_work(guest);
    program_wait_for(watch, OUT, " %  0.");
    snprintf(path, sizeof path, "/dev/shm/shmtrain-%u-%s", (unsigned)getuid(), g_name);
    assert_int_equal(truncate(path, 4096), 0);
    struct program *all[] = {run, guest, watch};
    for (size_t i = 0; i < 3; i++) {
        program_finish(all[i]);
        assert_true(all[i]->status > 0); /* no signal */
        assert_non_null(strstr(all[i]->text[ERR], "shared memory of a named store became shorter while it was in use"));
    }
    program_finish(START("rm", g_name));
}

static const char *path_of(const char *suffix) {
    static char path[160];
    snprintf(path, sizeof path, "/dev/shm/shmtrain-%ju-%s%s", (uintmax_t)geteuid(), g_name, suffix);
    return path;
}

static void kill_run(void) {
    struct program *run = start_run("async", DATA);
    send(run, SIGKILL);
    program_finish(run);
    assert_string_equal(files(), "store .data .valid ");
}

/* Of a run that has died, and whose store was cut short: it can say nothing any more, and its name is free for another one. */
static void what_is_left_of_a_store_that_was_cut_short_makes_room(void **state) {
    static const off_t LENGTHS[] = {0, 100, 4096, 100000};
    (void)state;
    for (size_t i = 0; i < sizeof LENGTHS / sizeof *LENGTHS; i++) {
        kill_run();
        assert_int_equal(truncate(path_of(""), LENGTHS[i]), 0);
        struct program *run = RUN("-q", "-w", "1", "-e", "1", "--name", g_name, LITTLE_DATA);
        program_assert_status(run, 0);
        assert_error(run, "which was cut short");
        assert_string_equal(files(), "store ");
        program_assert_status(RUN("rm", g_name), 0);
    }
}

/* A living one is never that. */
static void a_store_in_use_stays_though_it_was_cut_short(void **state) {
    (void)state;
    FILE *store = fopen(path_of(""), "w");
    assert_non_null(store);
    assert_int_equal(fchmod(fileno(store), 0600) + flock(fileno(store), LOCK_SH), 0);
    program_assert_refused(RUN("--name", g_name, LITTLE_DATA), 2, "already exists and is in use");
    assert_string_equal(files(), "store ");
    fclose(store);
    program_assert_status(RUN("rm", g_name), 0);
}

/* Somebody has removed the store by hand. */
static void data_without_a_store_are_listed_and_removed(void **state) {
    (void)state;
    kill_run();
    assert_int_equal(unlink(path_of("")), 0);
    struct program *list = RUN("ls");
    program_assert_status(list, 0);
    const char *line = strstr(list->text[OUT], g_name);
    assert_non_null(line);
    assert_non_null(strstr(line, " died\n"));
    assert_null(strstr(line + 1, g_name)); /* once, though it has two files */
    program_assert_status(RUN("rm", g_name), 0);
    assert_string_equal(files(), "");
    program_assert_refused(RUN("rm", g_name), 2, "there is no store ");
}

static void nothing_stays_of_a_run_that_does_not_begin(void **state) {
    (void)state;
    program_assert_refused(RUN("--name", g_name, "no-such-file"), 1, "no-such-file");
    assert_string_equal(files(), "");
    program_assert_refused(RUN("--name", "a/b", DATA), 2, "the store's name");
    program_assert_refused(RUN("--name", g_name, "--backend", "plain", "-w", "1", DATA), 2, "workers cannot join");
    assert_string_equal(files(), "");
}

/* ---- the same bits ---- */

static void sync_gives_the_same_bits_with_and_without_guests(void **state) {
    char alone[17];
    (void)state;
    HASH(alone, "--mode", "sync", "-w", "2", "-e", "100", LITTLE_DATA);
    struct program *run = START("--json", "-q", "--mode", "sync", "-w", "1", "-e", "100", "--name", g_name, LITTLE_DATA);
    struct program *guest = NULL;
    do guest = RUN("join", "-w", "2", "-t", "2", g_name); /* until its data is loaded */
    while (guest->status == 2 && !strstr(guest->text[ERR], "has ended"));
    program_assert_status(guest, 0);
    program_finish(run);
    program_assert_status(run, 0);
    json_t *o = program_json(run);
    assert_string_equal(json_string_value(json_object_get(o, "parameters_xxh64")), alone);
    json_decref(o);
}

/* ---- a small /dev/shm ---- */

/* From here on, this test and its programs see a /dev/shm of their own. False: not allowed. */
static bool shrink(const char *size) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, size) != 0) {
        print_message("skipped: no right to mount a small /dev/shm (%s)\n", strerror(errno));
        return false;
    }
    return true;
}

static void a_small_dev_shm_is_said_and_done_with(void **state) {
    (void)state;
    if (!shrink("size=8m")) skip();
    /* room for the store, not for 20,000 * 12 numbers beside it */
    struct program *run = START("-w", "1", "-e", "20000", "--valid", "none", "--name", g_name,
                                "builtin:sparse:examples=100000,features=400,nonzeros=12");
    program_wait_for_epoch(run);
    assert_error(run, "does not fit into /dev/shm (");
    assert_error(run, "workers cannot join; observers can");
    assert_string_equal(files(), "store ");
    program_assert_refused(RUN("join", "-w", "1", g_name), 2, "keeps its data private");
    struct program *watch = START("watch", g_name);
    program_wait_for_epoch(watch);
    end_run(run);
    program_finish(watch);
    program_assert_status(watch, 0);
    program_assert_status(RUN("rm", g_name), 0);
    /* no room for the store itself */
    run = RUN("-w", "1", "-e", "1", "--name", g_name, "builtin:sparse:examples=1000,features=4000000");
    program_assert_status(run, 1);
    assert_error(run, "/dev/shm has 8.0 MiB");
    assert_error(run, "train without --name");
    assert_string_equal(files(), "");
    assert_int_equal(umount("/dev/shm"), 0);
}

static struct program *start_run_with(const char *mode, const char *option, const char *value, const char *more,
                                      const char *what) {
    struct program *run = START("--mode", mode, "-w", "2", "-e", "1000000", "--guests", "2", "--slow", slow_in(mode), "--name",
                                g_name, option, value, more, what, DATA);
    program_wait_for_epoch(run);
    return run;
}

static const char *stall_of(pid_t pid) {
    static char words[96];
    snprintf(words, sizeof words, "worker 2 (process %d, joined by name) has made no progress for ", pid);
    return words;
}

/* The worker itself, not the program that has joined, which goes on. */
static void a_stopped_worker_of_a_guest_is_told_of(void **state) {
    const char *const modes[] = {"hogwild", "sync"};
    char words[96];
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        struct program *run = start_run_with(modes[m], "--stall-timeout", "500ms", "--on-stall", "report");
        struct program *guest = START("join", "-w", "1", g_name);
        wait_for_work(guest);
        const pid_t pid = program_worker(guest, 0);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        program_wait_for(run, ERR, stall_of(pid));
        snprintf(words, sizeof words, "stopped by a signal (state T); 2 others wait: kill -CONT %d lets it continue\n", pid);
        program_wait_for(run, ERR, words);
        assert_int_equal(kill(pid, SIGCONT), 0);
        snprintf(words, sizeof words, "worker 2 (process %d, joined by name) continues after ", pid);
        program_wait_for(run, ERR, words);
        end_run(run);
        program_finish(guest);
        program_assert_status(guest, 0);
        program_finish(START("rm", g_name));
    }
}

/* Also where all of the guest is stopped, as Ctrl-Z does it: nobody is left there who could say that the worker has died. */
static void and_killed_where_that_is_asked_for(void **state) {
    (void)state;
    for (int all = 0; all <= 1; all++) {
        struct program *run = start_run_with("hogwild", "--stall-timeout", "500ms", "--on-stall", "kill");
        struct program *guest = START("join", "-w", "1", g_name);
        wait_for_work(guest);
        const pid_t pid = program_worker(guest, 0);
        assert_int_equal(kill(all ? -guest->pid : pid, SIGSTOP), 0);
        program_wait_for(run, ERR, stall_of(pid));
        program_wait_for(run, ERR, ": it is killed (--on-stall kill)\n");
        program_wait_for(run, ERR, "joined by name) died or gave up: the others continue without it\n");
        assert_int_equal(kill(-guest->pid, SIGCONT), 0);
        program_finish(guest);
        assert_error(guest, "was killed by signal 9");
        end_run(run);
        program_finish(START("rm", g_name));
    }
}

/* The guests have fewer threads than the run's own worker, and places of their own all the same. */
static void and_no_other_one_of_the_same_guest(void **state) {
    (void)state;
    struct program *run = START("--mode", "hogwild", "-w", "1", "-t", "2", "-e", "1000000", "--guests", "2", "--slow",
                                "0:+300us", "--name", g_name, "--stall-timeout", "500ms", "--on-stall", "kill", DATA);
    program_wait_for_epoch(run);
    program_assert_refused(RUN("join", "-w", "3", "-t", "1", g_name), 2, "has free places for 2 workers, not for 3: use -w 2");
    struct program *guest = START("join", "-w", "2", "-t", "1", g_name);
    wait_for_work(guest);
    program_assert_refused(RUN("join", "-w", "1", "-t", "1", g_name), 2, "has no free place: guests have taken all of them");
    const pid_t pid = program_worker(guest, 1);
    assert_int_equal(kill(pid, SIGSTOP), 0);
    program_wait_for(run, ERR, stall_of(pid));
    program_wait_for(run, ERR, ": it is killed (--on-stall kill)\n");
    program_finish(guest);
    assert_error(guest, "was killed by signal 9");
    end_run(run);
}

/* A place is a worker's, however many threads that has. */
static void places_are_counted_by_workers(void **state) {
    (void)state;
    struct program *run = START("--mode", "hogwild", "-w", "1", "-t", "2", "-e", "1000000", "--guests", "1", "--slow",
                                "0:+300us", "--name", g_name, DATA);
    program_wait_for(run, OUT, "places for 1 guest");
    program_wait_for_epoch(run);
    struct program *ls = RUN("ls", "--json");
    program_assert_status(ls, 0);
    assert_non_null(strstr(ls->text[OUT], "\"guests\":1"));
    program_assert_refused(RUN("join", "-w", "1", "-t", "4", g_name), 2, "a worker of 4 threads needs 2 places, but store ");
    end_run(run);
}

/* A guest's only worker is stopped while it works: its process. 0: the run's time was over before. */
static pid_t stop_a_guests_worker(struct program *guest) {
    const pid_t pid = program_says(guest, OUT, " %  0.") ? program_worker_unless_over(guest, 0) : 0;
    return pid && kill(pid, SIGSTOP) == 0 ? pid : 0;
}

/* How long a guest needs to join, nobody knows: a run that was over by then is tried again with more time. */
static void and_a_time_limit_ends_the_run_all_the_same(void **state) {
    (void)state;
    for (int seconds = 6;; seconds *= 2) {
        char limit[12];
        snprintf(limit, sizeof limit, "%d", seconds);
        struct program *run = start_run_with("sync", "--stall-timeout", "none", "--time-limit", limit);
        struct program *guest = START("join", "-w", "1", g_name);
        const pid_t pid = stop_a_guests_worker(guest);
        program_finish(run);
        program_finish(guest); /* its own supervisor kills what does not leave */
        if (run->status == 0 && seconds < 100) {
            program_assert_status(RUN("rm", g_name), 0);
            continue;
        }
        program_assert_status(run, 1);
        assert_error(run, stall_of(pid));
        assert_error(run, ": the time limit has passed, so the run ends (--time-limit)\n");
        return;
    }
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_name, end_all)
    const struct CMUnitTest tests[] = {
        TEST(a_killed_run_leaves_what_rm_removes_and_ends_who_joined),
        TEST(a_name_that_is_taken_is_refused_with_what_helps),
        TEST(a_killed_guest_costs_a_live_run_a_word_and_a_sync_run_its_life),
        TEST(a_killed_worker_ends_the_run_and_its_guests_with_the_same_sentence),
        TEST(a_killed_worker_of_a_guest_ends_that_guest_alone),
        TEST(a_stopped_worker_of_a_guest_is_told_of),
        TEST(and_killed_where_that_is_asked_for),
        TEST(and_no_other_one_of_the_same_guest),
        TEST(places_are_counted_by_workers),
        TEST(and_a_time_limit_ends_the_run_all_the_same),
        TEST(a_store_that_is_cut_off_ends_all_who_use_it_with_a_sentence),
        TEST(what_is_left_of_a_store_that_was_cut_short_makes_room),
        TEST(a_store_in_use_stays_though_it_was_cut_short),
        TEST(data_without_a_store_are_listed_and_removed),
        TEST(nothing_stays_of_a_run_that_does_not_begin),
        TEST(sync_gives_the_same_bits_with_and_without_guests),
        TEST(a_small_dev_shm_is_said_and_done_with),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
