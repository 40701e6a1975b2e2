/* Files in /dev/shm by name (segment/named.h): who may open them, and who is alive. */
#include "segment/named.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char NAME[SHMT_NAME_BYTES]; /* a name that only this test program uses */

static char *path_of(const char *suffix) {
    static char path[160];
    snprintf(path, sizeof path, "/dev/shm/shmtrain-%ju-%s%s", (uintmax_t)geteuid(), NAME, suffix);
    return path;
}

static int remove_all(void **state) {
    (void)state;
    for (int part = 0; part < SHMT_NAMED_PARTS; part++) (void)shmt_named_unlink(NAME, (enum shmt_named_part)part, NULL);
    return 0;
}

static int make(enum shmt_named_part part) {
    struct shmt_error e = {0};
    int fd = -1;
    if (shmt_named_create(NAME, part, &fd, &e) != 1) fail_msg("%s", e.text);
    return fd;
}

static int open_as(enum shmt_named_how how) {
    struct shmt_error e = {0};
    int fd = -1;
    if (shmt_named_open(NAME, SHMT_NAMED_STORE, how, &fd, &e) != 0) fail_msg("%s", e.text);
    return fd;
}

static bool in_use(void) {
    const int fd = open_as(SHMT_NAMED_LOOK);
    const bool used = shmt_named_in_use(fd);
    close(fd);
    return used;
}

static void assert_refused(const char *words) {
    for (int how = SHMT_NAMED_LOOK; how <= SHMT_NAMED_WRITE; how++) {
        struct shmt_error e = {0};
        int fd = -1;
        assert_true(shmt_named_open(NAME, SHMT_NAMED_STORE, (enum shmt_named_how)how, &fd, &e) < 0);
        assert_int_equal(fd, -1);
        assert_non_null(strstr(e.text, words));
        assert_non_null(strstr(e.text, NAME));
    }
}

/* A child that does `body` and then waits to be killed. */
static pid_t child(void (*body)(int fd), int fd) {
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        alarm(60);
        close(ready[0]);
        if (body) body(fd);
        if (write(ready[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void kill_child(pid_t pid) {
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- names ---- */

static void test_names_that_cannot_be_are_refused(void **state) {
    static const char *const BAD[] = {".",    "..",  "-x",       "-",         ".hidden",       "",    "a/b",
                                      "../x", "a b", "lab.data", "lab.valid", "m\xc3\xbcller", "a\nb"};
    struct shmt_error e = {0};
    char name[80];
    int fd;
    (void)state;
    memset(name, 'a', sizeof name);
    name[63] = '\0';
    assert_int_equal(shmt_named_check(name, &e), 0);
    name[63] = 'a';
    name[64] = '\0';
    assert_int_equal(shmt_named_check(name, &e), SHMTRAIN_E_USAGE);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        shmt_error_clear(&e);
        assert_int_equal(shmt_named_check(BAD[i], &e), SHMTRAIN_E_USAGE);
        assert_non_null(strstr(e.text, "the store's name"));
        assert_int_equal(shmt_named_create(BAD[i], SHMT_NAMED_STORE, &fd, NULL), SHMTRAIN_E_USAGE);
        assert_int_equal(shmt_named_open(BAD[i], SHMT_NAMED_STORE, SHMT_NAMED_READ, &fd, NULL), SHMTRAIN_E_USAGE);
        assert_int_equal(shmt_named_remove(BAD[i], true, NULL), SHMTRAIN_E_USAGE);
    }
}

static void test_a_file_is_made_once_and_for_this_user_alone(void **state) {
    static const mode_t UMASKS[] = {0, 022, 0777};
    (void)state;
    for (size_t i = 0; i < sizeof UMASKS / sizeof *UMASKS; i++) {
        const mode_t before = umask(UMASKS[i]);
        const int fd = make(SHMT_NAMED_STORE);
        umask(before);
        struct stat file;
        int second = -1;
        assert_int_equal(stat(path_of(""), &file), 0);
        assert_int_equal(file.st_mode & 07777, 0600);
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        assert_int_equal(shmt_named_create(NAME, SHMT_NAMED_STORE, &second, NULL), 0);
        assert_int_equal(second, -1);
        close(fd);
        assert_int_equal(shmt_named_remove(NAME, false, NULL), 0);
    }
}

static void test_the_list_has_names_of_stores_in_order(void **state) {
    static const char *const ENDS[] = {"-c", "-a", "-b"};
    char(*names)[SHMT_NAME_BYTES], full[3][SHMT_NAME_BYTES + 8];
    int found = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        int fd;
        snprintf(full[i], sizeof full[i], "%s%s", NAME, ENDS[i]);
        assert_int_equal(shmt_named_create(full[i], SHMT_NAMED_STORE, &fd, NULL), 1);
        close(fd);
        assert_int_equal(shmt_named_create(full[i], SHMT_NAMED_DATA, &fd, NULL), 1);
        close(fd);
    }
    const int n = shmt_named_list(&names, NULL);
    for (int i = 0; i < n; i++) {
        if (i > 0) assert_true(strcmp(names[i - 1], names[i]) < 0);
        found += strncmp(names[i], NAME, strlen(NAME)) == 0;
    }
    free(names);
    for (int i = 0; i < 3; i++) assert_int_equal(shmt_named_remove(full[i], false, NULL), 0);
    assert_int_equal(found, 3);
}

/* ---- what is refused ---- */

static void test_what_is_not_there_is_said_not_to_be_there(void **state) {
    struct shmt_error e = {0};
    int fd;
    (void)state;
    assert_refused("there is no store");
    assert_int_equal(shmt_named_remove(NAME, true, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "there is no store"));
    shmt_error_clear(&e);
    assert_int_equal(shmt_named_open(NAME, SHMT_NAMED_DATA, SHMT_NAMED_READ, &fd, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "has no shared data"));
}

static void test_files_that_others_could_use_are_refused(void **state) {
    char second[170];
    (void)state;
    close(make(SHMT_NAMED_STORE));
    assert_int_equal(chmod(path_of(""), 0640), 0);
    assert_refused("is open to other users");
    assert_int_equal(chmod(path_of(""), 0602), 0);
    assert_refused("is open to other users");
    assert_int_equal(chmod(path_of(""), 0600), 0);
    close(open_as(SHMT_NAMED_READ));
    snprintf(second, sizeof second, "%s.second", path_of(""));
    assert_int_equal(link(path_of(""), second), 0);
    assert_refused("has several names");
    assert_int_equal(unlink(second), 0);
    close(open_as(SHMT_NAMED_WRITE));
}

static void test_another_users_file_is_refused(void **state) {
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can make another user's file\n");
        skip();
    }
    close(make(SHMT_NAMED_STORE));
    assert_int_equal(chown(path_of(""), 12345, (gid_t)-1), 0);
    assert_refused("belongs to another user");
}

static void test_what_is_no_file_is_refused_and_removed(void **state) {
    int fd;
    (void)state;
    assert_int_equal(mkfifo(path_of(""), 0600), 0);
    assert_true(shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_READ, &fd, NULL) < 0);
    assert_true(shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_WRITE, &fd, NULL) < 0);
    assert_int_equal(shmt_named_create(NAME, SHMT_NAMED_STORE, &fd, NULL), 0);
    assert_int_equal(shmt_named_remove(NAME, false, NULL), 0);
    assert_int_equal(symlink("/etc/passwd", path_of("")), 0);
    assert_true(shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_READ, &fd, NULL) < 0);
    assert_int_equal(shmt_named_create(NAME, SHMT_NAMED_STORE, &fd, NULL), 0);
    assert_int_equal(shmt_named_remove(NAME, false, NULL), 0);
    assert_int_equal(access(path_of(""), F_OK), -1);
}

/* ---- the living and the dead ---- */

static void open_to_read(int fd) {
    (void)fd;
    if (shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_READ, &fd, NULL) != 0) _exit(1);
}

static void test_in_use_is_who_lives_not_who_has_left(void **state) {
    (void)state;
    const int fd = make(SHMT_NAMED_STORE);
    assert_true(in_use());
    assert_true(in_use()); /* looking changes nothing */
    const pid_t reader = child(open_to_read, -1);
    close(fd);
    assert_true(in_use());
    kill_child(reader);
    assert_false(in_use());
}

static void test_a_forked_child_keeps_it_in_use(void **state) {
    (void)state;
    const int fd = make(SHMT_NAMED_STORE);
    const pid_t pid = child(NULL, fd);
    close(fd);
    assert_true(in_use());
    kill_child(pid);
    assert_false(in_use());
}

static void test_a_store_in_use_is_removed_by_force_only_with_all_its_parts(void **state) {
    struct shmt_error e = {0};
    int again;
    (void)state;
    const int fd = make(SHMT_NAMED_STORE), data = make(SHMT_NAMED_DATA), valid = make(SHMT_NAMED_VALID);
    assert_int_equal(shmt_named_remove(NAME, false, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "is in use"));
    assert_int_equal(access(path_of(""), F_OK), 0);
    assert_int_equal(access(path_of(".data"), F_OK), 0);
    assert_true(shmt_named_is(NAME, SHMT_NAMED_STORE, fd));
    assert_int_equal(shmt_named_remove(NAME, true, NULL), 0);
    assert_int_equal(access(path_of(""), F_OK), -1);
    assert_int_equal(access(path_of(".data"), F_OK), -1);
    assert_int_equal(access(path_of(".valid"), F_OK), -1);
    assert_false(shmt_named_is(NAME, SHMT_NAMED_STORE, fd));
    assert_int_equal(ftruncate(fd, 4096), 0); /* who has it open keeps it */
    again = make(SHMT_NAMED_STORE);
    assert_false(shmt_named_is(NAME, SHMT_NAMED_STORE, fd));
    assert_true(shmt_named_is(NAME, SHMT_NAMED_STORE, again));
    close(again);
    close(valid);
    close(data);
    close(fd);
}

/* Of a maker that has ended, and a child of it that has the store open: nobody gets the lock of who removes it. */
static int leave_store(pid_t *child_out) {
    int fd = -1, status;
    const pid_t maker = fork();
    if (maker == 0) {
        (void)make(SHMT_NAMED_STORE);
        _exit(0);
    }
    assert_int_equal(waitpid(maker, &status, 0), maker);
    fd = open_as(SHMT_NAMED_WRITE);
    *child_out = child(NULL, fd);
    return fd;
}

/* It has looked at the old one, and removes nothing that has got the name since. */
static void test_the_slower_of_two_who_remove_a_store_leaves_the_next_one_alone(void **state) {
    const struct timespec moment = {.tv_nsec = 200000000};
    pid_t heir;
    int status;
    (void)state;
    const int fd = leave_store(&heir);
    assert_int_equal(shmt_mark_hold(fd, SHMT_MARK_REMOVAL, NULL), 1); /* by the faster one */
    const pid_t slower = fork();
    if (slower == 0) _exit(shmt_named_remove(NAME, false, NULL) == 0 ? 0 : 1);
    (void)nanosleep(&moment, NULL);
    assert_true(shmt_named_is(NAME, SHMT_NAMED_STORE, fd)); /* it waits */
    assert_int_equal(shmt_named_unlink(NAME, SHMT_NAMED_STORE, NULL), 0);
    const int next = make(SHMT_NAMED_STORE), data = make(SHMT_NAMED_DATA);
    shmt_mark_drop(fd, SHMT_MARK_REMOVAL);
    assert_int_equal(waitpid(slower, &status, 0), slower);
    assert_int_equal(status, 0);
    assert_true(shmt_named_is(NAME, SHMT_NAMED_STORE, next));
    assert_true(shmt_named_is(NAME, SHMT_NAMED_DATA, data));
    kill_child(heir);
    close(data);
    close(next);
    close(fd);
}

static void test_data_in_use_without_a_store_is_removed_by_force_only(void **state) {
    struct shmt_error e = {0};
    (void)state;
    const int data = make(SHMT_NAMED_DATA);
    assert_true(shmt_named_data_in_use(NAME));
    assert_false(shmt_named_exists(NAME, SHMT_NAMED_STORE));
    assert_int_equal(shmt_named_remove(NAME, false, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "is in use: remove it with --force"));
    assert_int_equal(shmt_named_remove(NAME, true, NULL), 0);
    assert_false(shmt_named_exists(NAME, SHMT_NAMED_DATA));
    assert_false(shmt_named_data_in_use(NAME));
    close(data);
}

/* Takes the lock that a remover takes; and removes the name a moment later. */
static void remove_slowly(int fd) {
    if (fork() != 0) _exit(0);
    const struct timespec moment = {.tv_nsec = 50000000};
    (void)nanosleep(&moment, NULL);
    if (unlink(path_of("")) != 0) _exit(1);
    close(fd);
    _exit(0);
}

static void test_who_opens_waits_for_who_removes(void **state) {
    struct shmt_error e = {0};
    int fd;
    (void)state;
    close(make(SHMT_NAMED_STORE));
    const int lock = open(path_of(""), O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    const pid_t pid = fork();
    if (pid == 0) remove_slowly(lock);
    close(lock); /* the lock is the grandchild's now */
    assert_int_equal(shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_READ, &fd, &e), SHMTRAIN_E_USAGE);
    assert_non_null(strstr(e.text, "there is no store"));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- marks ---- */

static void hold_mark_7(int fd) {
    if (shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_WRITE, &fd, NULL) != 0) _exit(1);
    if (shmt_mark_hold(fd, 7, NULL) != 1) _exit(1);
}

static void test_a_mark_has_one_holder_and_ends_with_it(void **state) {
    (void)state;
    const int fd = make(SHMT_NAMED_STORE), observer = open_as(SHMT_NAMED_READ);
    assert_false(shmt_mark_is_held(fd, 7));
    const pid_t pid = child(hold_mark_7, -1);
    assert_true(shmt_mark_is_held(fd, 7));
    assert_true(shmt_mark_is_held(observer, 7));
    assert_false(shmt_mark_is_held(fd, 6));
    assert_false(shmt_mark_is_held(fd, 8));
    assert_int_equal(shmt_mark_hold(fd, 7, NULL), 0);
    assert_int_equal(shmt_mark_hold(fd, 8, NULL), 1);
    assert_true(shmt_mark_is_held(observer, 8));
    assert_false(shmt_mark_is_held(fd, 8)); /* mine: nobody else's */
    kill_child(pid);
    assert_false(shmt_mark_is_held(fd, 7));
    assert_int_equal(shmt_mark_hold(fd, 7, NULL), 1);
    shmt_mark_drop(fd, 8);
    assert_false(shmt_mark_is_held(observer, 8));
    assert_true(shmt_mark_is_held(observer, 7));
    close(observer);
    close(fd);
}

static void test_a_mark_lasts_until_the_last_fork_of_its_holder_has_ended(void **state) {
    (void)state;
    const int fd = make(SHMT_NAMED_STORE), other = open_as(SHMT_NAMED_WRITE);
    assert_int_equal(shmt_mark_hold(fd, 7, NULL), 1);
    const pid_t pid = child(NULL, fd);
    close(fd);
    assert_true(shmt_mark_is_held(other, 7));
    kill_child(pid);
    assert_false(shmt_mark_is_held(other, 7));
    close(other);
}

/* Ends with 1 as soon as it has found a store whose run is not there and whose name is. */
static void look_for_a_store_without_a_run(int ready) {
    for (uint32_t looks = 0;; looks++) {
        int fd;
        struct stat file;
        if (looks == 100 && write(ready, "", 1) != 1) _exit(2);
        if (shmt_named_open(NAME, SHMT_NAMED_STORE, SHMT_NAMED_LOOK, &fd, NULL) != 0) continue;
        if (!shmt_named_runs(fd) && fstat(fd, &file) == 0 && file.st_nlink > 0) _exit(1);
        close(fd);
    }
}

static bool has_unnamed_files(void) {
    const int fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Who looked between the making and the mark would take the maker for dead. */
static void test_nobody_sees_a_store_whose_maker_has_not_marked_it_yet(void **state) {
    int ready[2], status;
    char byte;
    (void)state;
    if (!has_unnamed_files()) {
        print_message("skipped: /dev/shm makes no files without a name (O_TMPFILE)\n");
        skip();
    }
    assert_int_equal(pipe(ready), 0);
    const pid_t pid = fork();
    if (pid == 0) look_for_a_store_without_a_run(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    for (int i = 0; i < 5000; i++) {
        const int fd = make(SHMT_NAMED_STORE);
        assert_int_equal(shmt_named_unlink(NAME, SHMT_NAMED_STORE, NULL), 0);
        close(fd);
    }
    assert_int_equal(waitpid(pid, &status, WNOHANG), 0); /* it still looks */
    kill_child(pid);
    close(ready[0]);
    close(ready[1]);
}

static void test_the_room_of_the_file_system_is_known(void **state) {
    uint64_t left, size;
    (void)state;
    shmt_named_room(&left, &size);
    assert_true(left <= size);
    assert_true(size > 0);
}

int main(void) {
    snprintf(NAME, sizeof NAME, "test_named-%d", (int)getpid());
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_cannot_be_are_refused),
        cmocka_unit_test_teardown(test_a_file_is_made_once_and_for_this_user_alone, remove_all),
        cmocka_unit_test(test_the_list_has_names_of_stores_in_order),
        cmocka_unit_test(test_what_is_not_there_is_said_not_to_be_there),
        cmocka_unit_test_teardown(test_files_that_others_could_use_are_refused, remove_all),
        cmocka_unit_test_teardown(test_another_users_file_is_refused, remove_all),
        cmocka_unit_test_teardown(test_what_is_no_file_is_refused_and_removed, remove_all),
        cmocka_unit_test_teardown(test_in_use_is_who_lives_not_who_has_left, remove_all),
        cmocka_unit_test_teardown(test_a_forked_child_keeps_it_in_use, remove_all),
        cmocka_unit_test_teardown(test_a_store_in_use_is_removed_by_force_only_with_all_its_parts, remove_all),
        cmocka_unit_test_teardown(test_who_opens_waits_for_who_removes, remove_all),
        cmocka_unit_test_teardown(test_the_slower_of_two_who_remove_a_store_leaves_the_next_one_alone, remove_all),
        cmocka_unit_test_teardown(test_data_in_use_without_a_store_is_removed_by_force_only, remove_all),
        cmocka_unit_test_teardown(test_a_mark_has_one_holder_and_ends_with_it, remove_all),
        cmocka_unit_test_teardown(test_a_mark_lasts_until_the_last_fork_of_its_holder_has_ended, remove_all),
        cmocka_unit_test_teardown(test_nobody_sees_a_store_whose_maker_has_not_marked_it_yet, remove_all),
        cmocka_unit_test(test_the_room_of_the_file_system_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
