/* Where names lead, when other users have put links, pipes and files in the way: in folders like /tmp, whatever the system's own
 * protection is set to. And what killed writers leave. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "base/replace.h"
#include "base/target.h"

enum { ROOT = 0, OTHER = 12345, NOBODY = 65534 };

static char g_folder[64]; /* its own, closed to nobody; "shared" in it is like /tmp */

static int make_folder(void **state) {
    (void)state;
    alarm(60);
    snprintf(g_folder, sizeof g_folder, "/tmp/shmtrain-target-XXXXXX");
    if (!mkdtemp(g_folder) || chmod(g_folder, 0755) < 0 || chdir(g_folder) < 0) return -1;
    return mkdir("shared", 0700) < 0 || chmod("shared", 01777) < 0 ? -1 : 0;
}

static int remove_folder(void **state) {
    char command[128];
    (void)state;
    if (chdir("/") < 0) return -1;
    snprintf(command, sizeof command, "rm -rf %s", g_folder);
    return system(command);
}

static void need_root(void) {
    if (geteuid() == 0) return;
    print_message("skipped: files of several users are for root to make\n");
    skip();
}

static void write_text(const char *path, const char *text) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static void has_text(const char *path, const char *text) {
    char found[64] = "";
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("there is no %s", path);
    const size_t n = fread(found, 1, sizeof found - 1, f);
    found[n] = '\0';
    fclose(f);
    assert_string_equal(found, text);
}

static void link_of(uid_t owner, const char *target, const char *path) {
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(lchown(path, owner, owner), 0);
}

/* ---- writing as a user ---- */

/* 0, or 1 where writing was refused with these words by both calls. Prints what else was said. */
static int write_there(const char *path, const char *words) {
    struct shmt_replacement r;
    struct shmt_error e = {0}, check = {0};
    const int checked = shmt_replace_check(path, "the file", &check);
    if (shmt_replace_open(&r, path, "the file", &e) < 0) {
        if (checked == 0 || !strstr(e.text, words) || !strstr(check.text, words)) printf("said: %s | %s\n", e.text, check.text);
        return checked < 0 && strstr(e.text, words) && strstr(check.text, words) ? 1 : 2;
    }
    if (checked < 0 || write(r.fd, "new", 3) != 3) return 3;
    return shmt_replace_close(&r, 0, &e) < 0 ? 4 : 0;
}

static int as(uid_t user, const char *path, const char *words) {
    int status = -1;
    const pid_t writer = fork();
    if (writer == 0) {
        if (user != ROOT && (setgroups(0, NULL) != 0 || setgid(user) != 0 || setuid(user) != 0)) _exit(77);
        const int rc = write_there(path, words);
        fflush(stdout);
        _exit(rc);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define WRITES(user, path)         assert_int_equal(as(user, path, ""), 0)
#define REFUSED(user, path, words) assert_int_equal(as(user, path, words), 1)

static void links_of_others_in_a_shared_folder_are_refused(void **state) {
    (void)state;
    need_root();
    static const uid_t FOLLOWERS[] = {ROOT, NOBODY};
    for (size_t i = 0; i < 2; i++) {
        const uid_t us = FOLLOWERS[i];
        write_text("victim", "old");
        assert_int_equal(chown(".", us, us) + chown("victim", us, us), 0);
        link_of(OTHER, "../victim", "shared/link");
        REFUSED(us, "shared/link", "it is another user's link, in a folder that every user may write to");
        has_text("victim", "old");
        link_of(us, "shared/link", "mine"); /* a link of ours that leads to it */
        REFUSED(us, "mine", "another user's link");
        link_of(OTHER, "../nothing", "shared/dangling");
        REFUSED(us, "shared/dangling", "another user's link");
        assert_int_equal(access("nothing", F_OK), -1);
        link_of(OTHER, "..", "shared/up"); /* on the way */
        REFUSED(us, "shared/up/victim", "another user's link");
        REFUSED(us, "shared/up/shared/../victim", "another user's link");
        link_of(OTHER, "/dev/null", "shared/null");
        REFUSED(us, "shared/null", "another user's link");
        link_of(OTHER, "/dev/fd/1", "shared/fd");
        REFUSED(us, "shared/fd", "another user's link");
        has_text("victim", "old");
        static const char *const MADE[] = {"victim",    "mine",        "shared/link", "shared/dangling",
                                           "shared/up", "shared/null", "shared/fd"};
        for (size_t k = 0; k < sizeof MADE / sizeof *MADE; k++) assert_int_equal(unlink(MADE[k]), 0);
    }
}

static void links_of_ours_and_of_the_folder_are_followed(void **state) {
    (void)state;
    need_root();
    write_text("victim", "old");
    assert_int_equal(chown(".", NOBODY, NOBODY) + chown("victim", NOBODY, NOBODY), 0);
    link_of(NOBODY, "../victim", "shared/ours");
    WRITES(NOBODY, "shared/ours");
    has_text("victim", "new");
    link_of(ROOT, "../second", "shared/folders"); /* "shared" is root's */
    WRITES(NOBODY, "shared/folders");
    has_text("second", "new");
    assert_int_equal(mkdir("plain", 0777), 0); /* where not everybody may write, and where everybody may remove */
    link_of(OTHER, "../third", "plain/link");
    WRITES(NOBODY, "plain/link");
    has_text("third", "new");
    assert_int_equal(chmod("plain", 0777), 0);
    WRITES(NOBODY, "plain/link");
    struct stat s;
    assert_int_equal(lstat("plain/link", &s), 0);
    assert_true(S_ISLNK(s.st_mode)); /* links stay */
}

static void pipes_of_others_in_a_shared_folder_are_refused(void **state) {
    (void)state;
    need_root();
    assert_int_equal(mkfifo("shared/pipe", 0666), 0);
    assert_int_equal(chmod("shared/pipe", 0666) + chown("shared/pipe", OTHER, OTHER), 0);
    REFUSED(ROOT, "shared/pipe", "it is another user's");
    REFUSED(NOBODY, "shared/pipe", "it is another user's");
}

/* Root may replace another user's file there; whose it was says nothing of whose the new one is. */
static void a_planted_file_gives_its_owner_nothing(void **state) {
    (void)state;
    need_root();
    struct stat s;
    write_text("shared/file", "old");
    assert_int_equal(chmod("shared/file", 0666) + chown("shared/file", OTHER, OTHER), 0);
    umask(022);
    WRITES(ROOT, "shared/file");
    assert_int_equal(stat("shared/file", &s), 0);
    assert_int_equal(s.st_uid, ROOT);
    assert_int_equal(s.st_mode & 07777, 0644);
}

static void what_is_written_in_place_has_no_further_names_there(void **state) {
    (void)state;
    struct shmt_target t;
    write_text("victim", "old");
    assert_int_equal(link("victim", "shared/name"), 0);
    assert_int_equal(shmt_target_find("shared/name", &t), 0);
    assert_int_equal(shmt_target_open(&t, O_WRONLY | O_TRUNC, 0600), -1);
    assert_non_null(strstr(shmt_target_why(&t, errno), "several names"));
    shmt_target_close(&t);
    has_text("victim", "old");
    assert_int_equal(shmt_target_find("victim", &t), 0); /* elsewhere they are somebody's own business */
    const int fd = shmt_target_open(&t, O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    shmt_target_close(&t);
}

/* What was looked at is what is opened. */
static void what_changes_meanwhile_is_not_opened(void **state) {
    (void)state;
    struct shmt_target t;
    write_text("file", "old");
    assert_int_equal(shmt_target_find("file", &t), 0);
    assert_int_equal(rename("file", "elsewhere") + symlink("elsewhere", "file"), 0);
    assert_int_equal(shmt_target_open(&t, O_WRONLY, 0600), -1);
    shmt_target_close(&t);
    assert_int_equal(shmt_target_find("later", &t), 0);
    assert_false(t.exists);
    assert_int_equal(symlink("elsewhere", "later"), 0);
    assert_int_equal(shmt_target_open(&t, O_WRONLY, 0600), -1);
    shmt_target_close(&t);
    has_text("elsewhere", "old");
    /* The folder itself makes way for a link. */
    assert_int_equal(mkdir("folder", 0777) + mkdir("trap", 0777), 0);
    struct shmt_replacement r;
    assert_int_equal(shmt_replace_open(&r, "folder/file", "the file", NULL), 0);
    assert_int_equal(write(r.fd, "new", 3), 3);
    assert_int_equal(rename("folder", "moved") + symlink("trap", "folder"), 0);
    assert_int_equal(shmt_replace_close(&r, 0, NULL), 0);
    has_text("moved/file", "new");
    assert_int_equal(access("trap/file", F_OK), -1);
}

/* Only ENOENT says that nothing is there. */
static void what_cannot_be_looked_at_is_an_error(void **state) {
    (void)state;
    struct shmt_error e = {0};
    struct shmt_replacement r;
    assert_int_equal(symlink("circle", "circle"), 0);
    write_text("file", "old");
    assert_int_equal(shmt_replace_open(&r, "circle", "it", &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "Too many levels"));
    shmt_error_clear(&e);
    assert_int_equal(shmt_replace_open(&r, "file/below", "it", &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "Not a directory"));
    shmt_error_clear(&e);
    assert_int_equal(shmt_replace_open(&r, "none/below", "it", &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "No such file"));
    need_root();
    assert_int_equal(mkdir("closed", 0700), 0);
    write_text("closed/file", "old");
    REFUSED(NOBODY, "closed/file", "Permission denied");
    link_of(NOBODY, "closed/file", "link");
    REFUSED(NOBODY, "link", "Permission denied");
}

static void names_of_all_kinds_lead_where_the_system_would_go(void **state) {
    (void)state;
    char absolute[128];
    assert_int_equal(mkdir("a", 0777) + mkdir("a/b", 0777) + symlink("a", "to-a") + symlink("to-a/b", "to-b"), 0);
    snprintf(absolute, sizeof absolute, "%s/to-b", g_folder);
    assert_int_equal(symlink(absolute, "a/b/round"), 0);
    static const char *const NAMES[] = {
        "a/b/1", "to-b/2", "./to-a//b/./3", "a/b/../b/4", "to-b/round/round/5", "/proc/self/cwd/to-b/6"};
    char path[160];
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        assert_int_equal(write_there(NAMES[i], ""), 0);
        snprintf(path, sizeof path, "a/b/%zu", i + 1);
        has_text(path, "new");
    }
    snprintf(path, sizeof path, "%s/to-b/1", g_folder);
    assert_int_equal(write_there(path, ""), 0);
    struct shmt_target t;
    assert_int_equal(shmt_target_find("to-b/", &t), 0);
    assert_true(t.exists && S_ISDIR(t.there.st_mode));
    shmt_target_close(&t);
    assert_int_equal(shmt_target_find("", &t), -1);
    shmt_target_close(&t);
}

/* ---- leftovers ---- */

static uint32_t file_system = TMPFS_MAGIC; /* that the tests' folder is said to be on */

int __real_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out);
int __wrap_fstatfs(int fd, struct statfs *out) {
    const int rc = __real_fstatfs(fd, out);
    if (rc == 0 && out->f_type != PROC_SUPER_MAGIC) out->f_type = file_system;
    return rc;
}

static int files_in(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void what_killed_writers_left_is_removed(void **state) {
    (void)state;
    static const char *const LEFT[] = {"folder/.shmtrain-4000000-0.tmp", "folder/.shmtrain-1-99.tmp"};
    static const char *const KEPT[] = {"folder/.shmtrain-1.tmp", "folder/.shmtrain-1-x.tmp", "folder/.shmtrain-1-2.tmp.old",
                                       "folder/shmtrain-1-2.tmp"};
    assert_int_equal(mkdir("folder", 0777), 0);
    for (size_t i = 0; i < 2; i++) write_text(LEFT[i], "half");
    for (size_t i = 0; i < 4; i++) write_text(KEPT[i], "somebody's");
    assert_int_equal(mkfifo("folder/.shmtrain-5-5.tmp", 0600) + symlink("../victim", "folder/.shmtrain-6-6.tmp"), 0);
    write_text("victim", "old");
    assert_int_equal(write_there("folder/file", ""), 0);
    assert_int_equal(files_in("folder"), 4 + 2 + 1);
    has_text("victim", "old");
    for (size_t i = 0; i < 4; i++) has_text(KEPT[i], "somebody's");
    if (geteuid() != 0) return;
    write_text(LEFT[0], "half");
    assert_int_equal(chown(LEFT[0], OTHER, OTHER), 0);
    assert_int_equal(write_there("folder/file", ""), 0);
    assert_int_equal(access(LEFT[0], F_OK), 0);
}

/* Locks may be known on this machine alone: another one's writer would lose its file. */
static void where_locks_may_be_of_this_machine_alone_what_is_fresh_stays(void **state) {
    static const uint32_t OTHERS[] = {NFS_SUPER_MAGIC, FUSE_SUPER_MAGIC};
    static const char LEFT[] = "folder/.shmtrain-4000000-0.tmp";
    (void)state;
    assert_int_equal(mkdir("folder", 0777), 0);
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        write_text(LEFT, "half");
        file_system = OTHERS[i];
        assert_int_equal(write_there("folder/file", ""), 0);
        assert_int_equal(access(LEFT, F_OK), 0);
        const struct timespec old = {.tv_sec = time(NULL) - 3 * 24 * 60 * 60};
        assert_int_equal(utimensat(AT_FDCWD, LEFT, (const struct timespec[]){old, old}, 0), 0);
        assert_int_equal(write_there("folder/file", ""), 0);
        assert_int_equal(access(LEFT, F_OK), -1);
    }
    file_system = TMPFS_MAGIC;
}

/* A writer with a name: of another process, and of this one. */
static void what_a_living_writer_has_stays(void **state) {
    (void)state;
    int ready[2], status = -1;
    char byte;
    assert_int_equal(mkdir("folder", 0777) + pipe(ready), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        const int fd = open("folder/.shmtrain-1-1.tmp", O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || !shmt_leftover_keep(fd) || write(ready[1], "", 1) != 1) _exit(1);
        pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    const int mine = open("folder/.shmtrain-2-2.tmp", O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(mine >= 0 && shmt_leftover_keep(mine));
    assert_int_equal(write_there("folder/file", ""), 0);
    assert_int_equal(files_in("folder"), 3);
    assert_int_equal(kill(writer, SIGKILL), 0);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(write_there("folder/file", ""), 0);
    assert_int_equal(files_in("folder"), 2);
    close(mine);
    assert_int_equal(write_there("folder/file", ""), 0);
    assert_int_equal(files_in("folder"), 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(links_of_others_in_a_shared_folder_are_refused),
        TEST(links_of_ours_and_of_the_folder_are_followed),
        TEST(pipes_of_others_in_a_shared_folder_are_refused),
        TEST(a_planted_file_gives_its_owner_nothing),
        TEST(what_is_written_in_place_has_no_further_names_there),
        TEST(what_changes_meanwhile_is_not_opened),
        TEST(what_cannot_be_looked_at_is_an_error),
        TEST(names_of_all_kinds_lead_where_the_system_would_go),
        TEST(what_killed_writers_left_is_removed),
        TEST(where_locks_may_be_of_this_machine_alone_what_is_fresh_stays),
        TEST(what_a_living_writer_has_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
