/* cli and <shmtrain/output.h>: a file that is written is whole or as it was before, also on a full disk and when a signal
 * ends the program. */
#include "folder_help.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli/output.h"

/* ---- what is seen from below ---- */

int __real_openat(int folder, const char *path, int flags, ...);
int __wrap_openat(int folder, const char *path, int flags, ...);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

static int g_raised; /* right behind each open that makes a file; 0: none */
static ino_t g_synced_folder;
static bool g_has_nameless = true; /* false: a file system without O_TMPFILE */

int __wrap_openat(int folder, const char *path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
    va_end(args);
    if ((flags & O_TMPFILE) == O_TMPFILE && !g_has_nameless) {
        errno = EOPNOTSUPP;
        return -1;
    }
    const int fd = __real_openat(folder, path, flags, mode);
    if (fd >= 0 && (flags & O_CREAT) && g_raised) raise(g_raised);
    return fd;
}

int __wrap_fsync(int fd) {
    struct stat s;
    if (fstat(fd, &s) == 0 && S_ISDIR(s.st_mode)) g_synced_folder = s.st_ino;
    return __real_fsync(fd);
}

static void assert_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(found, 1, sizeof found - 1, f) > 0 || text[0] == '\0');
    fclose(f);
    assert_string_equal(found, text);
}

/* Nothing of ours beside the files that the test made. */
static void assert_nothing_is_left(void) {
    const struct dirent *entry;
    DIR *folder = opendir(".");
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        if (strstr(entry->d_name, ".tmp")) fail_msg("%s is left", entry->d_name);
    closedir(folder);
}

static const struct output_wish *wish_for(const char *path) {
    static struct output_wish wish;
    wish = (struct output_wish){"--output", path, "the predictions"};
    return &wish;
}

static void what_is_complete_takes_the_place(void **state) {
    struct output out;
    struct stat there;
    (void)state;
    write_text("out", "before");
    assert_int_equal(chmod("out", 0640), 0);
    assert_int_equal(symlink("out", "link"), 0);
    assert_int_equal(output_open(&out, wish_for("link")), 0);
    fputs("after", out.file);
    assert_int_equal(fflush(out.file), 0);
    assert_holds("out", "before");
    assert_int_equal(output_close(&out, 0), 0);
    assert_holds("out", "after");
    assert_true(lstat("link", &there) == 0 && S_ISLNK(there.st_mode));
    assert_true(stat("out", &there) == 0 && (there.st_mode & 0777) == 0640);
    assert_int_equal(output_open(&out, wish_for("new")), 0);
    assert_int_equal(output_close(&out, 0), 0);
    assert_holds("new", "");
    assert_nothing_is_left();
}

static void what_is_not_complete_leaves_nothing(void **state) {
    struct output out;
    (void)state;
    write_text("out", "before");
    assert_int_equal(output_open(&out, wish_for("out")), 0);
    fputs("half", out.file);
    output_discard(&out);
    assert_holds("out", "before");
    assert_nothing_is_left();
    assert_int_equal(output_open(&out, wish_for("none/out")), 1);
    assert_null(out.file);
    output_discard(&out); /* of nothing */
}

/* A limit on the size of files is as good as a full disk. */
static void a_full_disk_leaves_the_file_as_it_was(void **state) {
    struct output out;
    struct rlimit before, small;
    (void)state;
    write_text("out", "before");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){4000, before.rlim_max};
    assert_int_equal(output_open(&out, wish_for("out")), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 1000; i++) fputs("many words ", out.file);
    assert_int_equal(fflush(out.file), EOF);
    assert_int_equal(errno, EFBIG);
    const int rc = output_close(&out, EFBIG);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, 1);
    assert_holds("out", "before");
    assert_nothing_is_left();
}

static void a_handler_takes_away_what_is_not_complete(void **state) {
    struct output out;
    int status;
    (void)state;
    write_text("out", "before");
    shmtrain_output_discard_all(); /* nothing is there: harmless */
    g_has_nameless = false;
    const pid_t pid = fork();
    if (pid == 0) {
        if (output_open(&out, wish_for("out")) != 0) _exit(1);
        fputs("half", out.file);
        shmtrain_output_discard_all();
        _exit(fflush(out.file) == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    g_has_nameless = true;
    assert_int_equal(status, 0);
    assert_holds("out", "before");
    assert_nothing_is_left();
}

/* ---- signals and folders, seen from below ---- */

static void end_with_discarding(int number) {
    shmtrain_output_discard_all();
    _exit(number);
}

static void a_signal_right_behind_the_first_moment_leaves_nothing(void **state) {
    struct output out;
    int status;
    (void)state;
    const pid_t pid = fork();
    if (pid == 0) {
        g_has_nameless = false;
        signal(SIGTERM, end_with_discarding);
        g_raised = SIGTERM;
        (void)output_open(&out, wish_for("early"));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == SIGTERM);
    assert_nothing_is_left();
}

static void the_folder_is_synced_behind_the_rename(void **state) {
    struct output out;
    struct stat folder;
    (void)state;
    assert_int_equal(mkdir("folder", 0700), 0);
    assert_int_equal(stat("folder", &folder), 0);
    const char *const paths[] = {"folder/out", "here"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(output_open(&out, wish_for(paths[i])), 0);
        g_synced_folder = 0;
        assert_int_equal(output_close(&out, 0), 0);
        assert_int_equal(stat(i == 0 ? "folder" : ".", &folder), 0);
        assert_int_equal(g_synced_folder, folder.st_ino);
        assert_int_equal(unlink(paths[i]), 0);
    }
    assert_int_equal(rmdir("folder"), 0);
}

static void a_device_is_written_to_as_it_is(void **state) {
    struct output out;
    struct stat there;
    (void)state;
    assert_int_equal(output_open(&out, wish_for("/dev/null")), 0);
    fputs("anything", out.file);
    assert_int_equal(output_close(&out, 0), 0);
    assert_true(stat("/dev/null", &there) == 0 && S_ISCHR(there.st_mode));
    assert_int_equal(output_open(&out, wish_for("/dev/full")), 0);
    fputs("anything", out.file);
    assert_int_equal(output_close(&out, 0), 1);
}

/* Whatever is behind it, and whatever that file is called. */
static void an_open_descriptor_is_written_to(void **state) {
    struct output out;
    char name[32];
    (void)state;
    write_text("said", "hello ");
    const int fd = open("said", O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    assert_int_equal(symlink(name, "to-fd"), 0);
    assert_int_equal(output_open(&out, wish_for("to-fd")), 0);
    fputs("world", out.file);
    assert_int_equal(output_close(&out, 0), 0);
    assert_holds("said", "hello world");
    assert_int_equal(close(fd), 0);
    assert_int_equal(output_open(&out, wish_for(name)), 1);
    assert_nothing_is_left();
}

static void the_group_stays(void **state) {
    struct output out;
    struct stat there;
    (void)state;
    write_text("of-others", "before");
    if (chown("of-others", (uid_t)-1, 100) != 0) SKIP("files cannot be given to another group");
    assert_int_equal(output_open(&out, wish_for("of-others")), 0);
    assert_int_equal(output_close(&out, 0), 0);
    assert_true(stat("of-others", &there) == 0 && there.st_gid == 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_complete_takes_the_place),
        cmocka_unit_test(what_is_not_complete_leaves_nothing),
        cmocka_unit_test(a_full_disk_leaves_the_file_as_it_was),
        cmocka_unit_test(a_handler_takes_away_what_is_not_complete),
        cmocka_unit_test(a_signal_right_behind_the_first_moment_leaves_nothing),
        cmocka_unit_test(the_folder_is_synced_behind_the_rename),
        cmocka_unit_test(a_device_is_written_to_as_it_is),
        cmocka_unit_test(an_open_descriptor_is_written_to),
        cmocka_unit_test(the_group_stays),
    };
    alarm(60);
    return cmocka_run_group_tests_name("output", tests, make_folder, remove_folder);
}
