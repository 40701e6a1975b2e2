/* The real program as root, where another user has put links into a folder like /tmp: it writes nothing elsewhere, whatever the
 * system's own protection is set to. And leftovers of runs that were killed. */
#include "run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#define OTHER 12345

static void need_root(void) {
    if (geteuid() == 0) return;
    print_message("skipped: links of another user are for root to make\n");
    skip();
}

static void plant(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "shared/%s", name);
    (void)unlink(path);
    assert_int_equal(symlink("../victim", path), 0);
    assert_int_equal(lchown(path, OTHER, OTHER), 0);
}

static int make_files(void **state) {
    if (program_make_folder(state) != 0 || mkdir("shared", 0700) < 0 || chmod("shared", 01777) < 0) return -1;
    FILE *f = fopen("shared/d.svm", "w");
    if (!f) return -1;
    for (int i = 0; i < 60; i++) fprintf(f, "%d %d:1\n", i % 2 * 2 - 1, i % 7 + 1);
    return fclose(f);
}

static int remove_files(void **state) {
    program_drop_folder("shared");
    return program_remove_folder(state);
}

static void a_planted_link_leads_no_file_of_ours_away(void **state) {
    (void)state;
    static const struct {
        const char *name, *argv[10];
    } WAYS[] = {
        {"d.svm.shmcache", {"shmtrain", "-q", "-w", "1", "--cache", "shared/d.svm"}},
        {"out", {"shmtrain", "-q", "-w", "1", "-o", "shared/out", "shared/d.svm"}},
        {"out", {"shmtrain", "-q", "-w", "1", "--trace", "shared/out", "shared/d.svm"}},
        {"out", {"shmtrain", "-q", "-w", "1", "--metrics", "shared/out", "shared/d.svm"}},
        {"out", {"shmtrain", "-q", "-w", "1", "--checkpoint", "shared/out", "shared/d.svm"}},
        {"out", {"shmtrain", "data", "convert", "shared/d.svm", "-o", "shared/out"}},
        {"out", {"shmtrain", "predict", "model", "shared/d.svm", "-o", "shared/out"}},
        {"out", {"shmtrain", "model", "convert", "model", "-o", "shared/out"}},
        {"out", {"shmtrain", "compare", "-q", "-e", "1", "--html", "shared/out", "shared/d.svm"}},
    };
    need_root();
    program_assert_status(RUN("-q", "-w", "1", "-o", "model", "shared/d.svm"), 0);
    for (size_t i = 0; i < sizeof WAYS / sizeof *WAYS; i++) {
        program_write_file("victim", "victim\n");
        plant(WAYS[i].name);
        struct program *p = program_run(NULL, WAYS[i].argv);
        if (p->status != 1 && p->status != 2) fail_msg("way %zu ended with %d: %s", i, p->status, p->text[ERR]);
        if (!strstr(p->text[ERR], "another user's link")) fail_msg("way %zu: %s", i, p->text[ERR]);
        char text[32] = "";
        FILE *f = fopen("victim", "r");
        assert_non_null(f);
        assert_non_null(fgets(text, sizeof text, f));
        fclose(f);
        assert_string_equal(text, "victim\n");
        program_end_all(state);
        unlink("shared/out");
        unlink("shared/d.svm.shmcache");
    }
}

/* Folders of checkpoints, too. */
static void a_link_to_a_folder_is_refused_as_well(void **state) {
    struct stat before, after;
    (void)state;
    need_root();
    assert_int_equal(mkdir("ours", 0755), 0);
    assert_int_equal(symlink("../ours", "shared/folder") + lchown("shared/folder", OTHER, OTHER), 0);
    program_assert_refused(RUN("-q", "-w", "1", "--checkpoint", "shared/folder", "shared/d.svm"), 1, "another user's link");
    program_assert_refused(RUN("-q", "-w", "1", "-o", "shared/folder/m", "shared/d.svm"), 1, "another user's link");
    assert_int_equal(stat("ours", &before), 0);
    program_assert_refused(RUN("-q", "-w", "1", "--checkpoint", "shared/folder/new", "shared/d.svm"), 1, "another user's link");
    assert_int_equal(stat("ours", &after), 0);
    assert_memory_equal(&after.st_mtim, &before.st_mtim, sizeof after.st_mtim); /* nor was anything, for a moment */
    assert_int_equal(rmdir("ours"), 0);                                         /* nothing is in it */
    unlink("shared/folder");
}

/* Nor is what another user has put there as if it were ours: what it says of the data and the weights is theirs to say. */
static void what_another_user_has_made_for_us_is_not_read(void **state) {
    (void)state;
    need_root();
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "--cache", "shared/d.svm"), 0);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "--checkpoint", "shared/theirs", "shared/d.svm"), 0);
    program_assert_status(
        RUN("-q", "-w", "1", "-e", "2", "--cache", "--checkpoint", "shared/theirs", "--resume", "shared/d.svm"), 0);
    assert_int_equal(chown("shared/d.svm.shmcache", OTHER, OTHER), 0);
    program_assert_refused(RUN("-q", "-w", "1", "--cache", "shared/d.svm"), 1,
                           "d.svm.shmcache cannot be used: it is another user's");
    unlink("shared/d.svm.shmcache");
    assert_int_equal(chown("shared/theirs", OTHER, OTHER), 0);
    program_assert_refused(RUN("-q", "-w", "1", "--checkpoint", "shared/theirs", "--resume", "shared/d.svm"), 1,
                           "checkpoints cannot be kept in shared/theirs: it is another user's");
    program_drop_folder("shared/theirs");
}

/* What a killed writer of a checkpoint left goes when the folder is used again. */
static void the_next_run_removes_what_a_killed_one_left(void **state) {
    (void)state;
    static const char LEFT[] = "saved/.shmtrain-4000000-0.tmp";
    assert_int_equal(mkdir("saved", 0755), 0);
    program_write_file(LEFT, "half");
    const struct timespec old = {.tv_sec = 1000000000}; /* on any file system */
    assert_int_equal(utimensat(AT_FDCWD, LEFT, (const struct timespec[]){old, old}, 0), 0);
    program_assert_status(RUN("-q", "-w", "1", "-e", "1", "--checkpoint", "saved", "shared/d.svm"), 0);
    assert_int_equal(access(LEFT, F_OK), -1);
    program_drop_folder("saved");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(a_planted_link_leads_no_file_of_ours_away),
        PROGRAM_TEST(a_link_to_a_folder_is_refused_as_well),
        PROGRAM_TEST(what_another_user_has_made_for_us_is_not_read),
        PROGRAM_TEST(the_next_run_removes_what_a_killed_one_left),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
