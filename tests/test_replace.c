/* base: files that are replaced as a whole: what a writer leaves that is killed, whose the new file is, who may replace it. */
#include "base/error.h"
#include "base/replace.h"
#include "base/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "refuse.h"
#include "skip.h"

static int files_in(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir))) n += entry->d_name[0] != '.' || strncmp(entry->d_name, ".shmtrain-", 10) == 0;
    closedir(dir);
    return n;
}

static bool has_nameless_files(const char *folder) {
    const int fd = open(folder, O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0) close(fd);
    return fd >= 0;
}

/* Whoever writes may be killed at any time. */
static void what_is_not_complete_is_gone_with_its_writer(void **state) {
    char folder[] = "/tmp/shmtrain-base-XXXXXX", path[64];
    struct shmt_error e = {0};
    struct shmt_replacement r;
    int status = -1;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    if (!has_nameless_files(folder)) {
        print_message("skipped: the file system has no files without names\n");
        rmdir(folder);
        skip();
    }
    const pid_t writer = fork();
    if (writer == 0) {
        if (shmt_replace_open(&r, path, "the file", &e) < 0 || write(r.fd, "half", 4) != 4) _exit(1);
        _exit(files_in(folder) == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
    assert_int_equal(files_in(folder), 0);
    assert_int_equal(shmt_replace_open(&r, path, "the file", &e), 0);
    assert_int_equal(write(r.fd, "whole", 5), 5);
    assert_int_equal(shmt_replace_close(&r, 0, &e), 0);
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Without linkat, as some sandboxes have it, it gets its name by being copied. */
static void what_may_not_be_named_is_copied(void **state) {
    char folder[] = "/tmp/shmtrain-base-XXXXXX", path[64], text[8] = "";
    struct shmt_error e = {0};
    struct shmt_replacement r;
    struct stat there;
    int status = -1;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && fchmod(fd, 0640) == 0 && close(fd) == 0);
    const pid_t writer = fork();
    if (writer == 0) {
        if (!refuse_one(SYS_linkat)) _exit(77);
        if (shmt_replace_open(&r, path, "the file", &e) < 0 || write(r.fd, "whole", 5) != 5) _exit(1);
        _exit(shmt_replace_close(&r, 0, &e) == 0 ? 0 : 2);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    fd = open(path, O_RDONLY);
    if (status == 0) {
        assert_int_equal(read(fd, text, sizeof text), 5);
        assert_string_equal(text, "whole");
        assert_int_equal(fstat(fd, &there), 0);
        assert_int_equal(there.st_mode & 07777, 0640);
    }
    close(fd);
    assert_int_equal(files_in(folder), 1);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("no right to become another user, or no filters for system calls");
    assert_int_equal(status, 0);
}

/* Its bits are meant for its group, and not for the writer's. */
static void a_group_that_cannot_be_kept_gets_no_more_than_everybody(void **state) {
    enum { NOBODY = 65534, OTHERS = 100 };
    char folder[] = "/tmp/shmtrain-base-XXXXXX", path[64];
    struct shmt_error e = {0};
    struct shmt_replacement r;
    struct stat there;
    int status = -1;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: files of others are for root to make\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    for (int writer_is_root = 0; writer_is_root < 2; writer_is_root++) {
        const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0 && fchown(fd, NOBODY, OTHERS) == 0 && fchmod(fd, 0664) == 0 && close(fd) == 0);
        assert_int_equal(chown(folder, NOBODY, NOBODY), 0);
        const pid_t writer = fork();
        if (writer == 0) {
            if (!writer_is_root && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) _exit(77);
            if (shmt_replace_open(&r, path, "the file", &e) < 0) _exit(1);
            _exit(shmt_replace_close(&r, 0, &e) == 0 ? 0 : 2);
        }
        assert_int_equal(waitpid(writer, &status, 0), writer);
        assert_int_equal(status, 0);
        assert_int_equal(stat(path, &there), 0);
        assert_int_equal(there.st_uid, NOBODY);
        assert_int_equal(there.st_gid, writer_is_root ? OTHERS : NOBODY);
        assert_int_equal(there.st_mode & 07777, writer_is_root ? 0664 : 0644);
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* Also of a file that is not at its end yet; but a child of the writer leaves it alone. */
static void who_ends_at_once_takes_away_what_has_a_name(void **state) {
    char folder[] = "/tmp/shmtrain-base-XXXXXX", path[2][64];
    struct shmt_error e = {0};
    struct shmt_replacement r[2];
    int status = -1;
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < 2; i++) snprintf(path[i], sizeof path[i], "%s/file%d", folder, i);
    const pid_t writer = fork();
    if (writer == 0) {
        if (!refuse_nameless_files()) _exit(77);
        for (int i = 0; i < 2; i++)
            if (shmt_replace_open(&r[i], path[i], "the file", &e) < 0 || write(r[i].fd, "half", 4) != 4) _exit(1);
        const pid_t child = fork();
        if (child == 0) {
            shmt_unfinished_remove();
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || files_in(folder) != 2) _exit(2);
        if (shmt_replace_close(&r[1], 0, &e) < 0) _exit(3);
        shmt_unfinished_remove();
        _exit(0);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    const int left = files_in(folder);
    (void)unlink(path[1]);
    assert_int_equal(rmdir(folder), 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) SKIP("no right to become another user, or no filters for system calls");
    assert_int_equal(status, 0);
    assert_int_equal(left, 1);
}

/* Others may write to it, but not replace it: that is known before anything is written. */
static void a_file_of_another_user_in_a_sticky_folder_is_refused_at_once(void **state) {
    enum { NOBODY = 65534 };
    char folder[] = "/tmp/shmtrain-base-XXXXXX", path[64];
    struct shmt_error e = {0};
    struct shmt_replacement r;
    int status = -1;
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: files of others are for root to make\n");
        skip();
    }
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chmod(folder, 01777), 0);
    snprintf(path, sizeof path, "%s/file", folder);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && fchmod(fd, 0666) == 0 && close(fd) == 0);
    assert_int_equal(shmt_replace_check(path, "the file", &e), 0);
    const pid_t writer = fork();
    if (writer == 0) {
        if (setuid(NOBODY) != 0) _exit(77);
        if (shmt_replace_check(path, "the file", &e) == 0 || !strstr(e.text, "Operation not permitted; name a file")) _exit(1);
        shmt_error_clear(&e);
        _exit(shmt_replace_open(&r, path, "the file", &e) == SHMTRAIN_E_SYSTEM ? 0 : 2);
    }
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(status, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_complete_is_gone_with_its_writer),
        cmocka_unit_test(what_may_not_be_named_is_copied),
        cmocka_unit_test(a_group_that_cannot_be_kept_gets_no_more_than_everybody),
        cmocka_unit_test(who_ends_at_once_takes_away_what_has_a_name),
        cmocka_unit_test(a_file_of_another_user_in_a_sticky_folder_is_refused_at_once),
    };
    return cmocka_run_group_tests_name("replacing files", tests, NULL, NULL);
}
