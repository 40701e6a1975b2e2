/* Model files: what is in them, and that a path holds a whole file or the one from before, whatever fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/leftovers.h"
#include "files/model_file.h"

/* ---- a system that fails when it is told to ---- */

static struct {
    long room;    /* bytes that the disk takes; < 0: any number */
    long at_once; /* bytes that one write takes; 0: all */
    int interrupted, fsync_code, rename_code, close_code;
} g_system = {.room = -1};

ssize_t __real_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n);
ssize_t __wrap_write(int fd, const void *from, size_t n) {
    if (g_system.interrupted > 0) {
        g_system.interrupted--;
        errno = EINTR;
        return -1;
    }
    if (g_system.at_once > 0 && n > (size_t)g_system.at_once) n = (size_t)g_system.at_once;
    if (g_system.room == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (g_system.room > 0 && n > (size_t)g_system.room) n = (size_t)g_system.room;
    const ssize_t written = __real_write(fd, from, n);
    if (g_system.room > 0 && written > 0) g_system.room -= written;
    return written;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) {
    if (g_system.fsync_code == 0) return __real_fsync(fd);
    errno = g_system.fsync_code;
    return -1;
}

int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (g_system.rename_code == 0) return __real_renameat(from_folder, from, to_folder, to);
    errno = g_system.rename_code;
    return -1;
}

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    const int rc = __real_close(fd);
    if (g_system.close_code == 0) return rc;
    errno = g_system.close_code;
    return -1;
}

static void well_again(void) {
    memset(&g_system, 0, sizeof g_system);
    g_system.room = -1;
}

/* ---- a folder of the test's own ---- */

static char g_folder[4000];

static int make_folder(void **state) {
    const char *base = getenv("TMPDIR");
    (void)state;
    alarm(60);
    well_again();
    snprintf(g_folder, sizeof g_folder, "%s/shmtrain-model-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(g_folder)) g_folder[0] = '\0';
    return g_folder[0] && chdir(g_folder) == 0 ? 0 : -1;
}

/* Or the one above; files whose names begin with a dot do count. */
static bool is_folder_itself(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
}

static int remove_folder(void **state) {
    struct dirent *entry;
    (void)state;
    well_again();
    if (!g_folder[0] || chdir(g_folder) != 0) return -1; /* what is removed is in there and nowhere else */
    DIR *dir = opendir(".");
    while (dir && (entry = readdir(dir)))
        if (!is_folder_itself(entry)) unlink(entry->d_name);
    if (dir) closedir(dir);
    return chdir("/") == 0 && rmdir(g_folder) == 0 ? 0 : -1;
}

static int files_here(void) {
    int n = 0;
    DIR *dir = opendir(".");
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) n += !is_folder_itself(entry);
    closedir(dir);
    return n;
}

static size_t contents(const char *path, unsigned char *out, size_t most) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(out, 1, most, f);
    assert_true(feof(f));
    fclose(f);
    return n;
}

/* ---- a model ---- */

static const float WEIGHT[3] = {1, -2, 0.5f}, FACTORS[4] = {3, 4, 5, 6};
static const struct shmt_tensor TENSORS[] = {{.name = "weight", .rows = 3, .width = 1, .data = WEIGHT},
                                             {.name = "factors", .rows = 2, .width = 2, .data = FACTORS}};
static const struct shmt_note NOTES[] = {{"shmtrain.model", "logistic"}, {"quoted", "\"caf\xc3\xa9\""}};

static int save(const char *path, struct shmt_error *e) { return shmt_model_file_write(path, TENSORS, 2, NOTES, 2, e); }

static void save_well(const char *path) {
    struct shmt_error e = {0};
    if (save(path, &e) != 0) fail_msg("%s", e.text);
}

/* The format: https://github.com/huggingface/safetensors. The header is padded to a multiple of 8; of the seal, the digits are what
 * xxh64 of examples/seal.py finds in the file from byte 8 on with zeros in their place. */
static const char HEADER[] =
    "{\"__metadata__\":{\"shmtrain.model\":\"logistic\",\"quoted\":\"\\\"caf\xc3\xa9\\\"\","
    "\"shmtrain.format\":\"2\",\"shmtrain.xxh64\":\"13f1fb7b95e13ab7\"},"
    "\"weight\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,12]},"
    "\"factors\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[12,28]}}";

static void a_file_has_these_bytes(void **state) {
    unsigned char bytes[1000], expected[1000];
    const size_t n = strlen(HEADER), padded = (n + 7) / 8 * 8;
    (void)state;
    memset(expected, 0, 8);
    expected[0] = (unsigned char)padded;
    memset(expected + 8, ' ', padded);
    memcpy(expected + 8, HEADER, n);
    memcpy(expected + 8 + padded, WEIGHT, sizeof WEIGHT);
    memcpy(expected + 8 + padded + sizeof WEIGHT, FACTORS, sizeof FACTORS);
    save_well("model");
    assert_true(padded < 256);
    assert_int_equal(contents("model", bytes, sizeof bytes), 8 + padded + 28);
    assert_memory_equal(bytes, expected, 8 + padded + 28);
    assert_int_equal(files_here(), 1);
}

/* For models of any shape: the header is JSON, its tensors lie one behind the other, and the last one ends with the file. */
static void tensors_fill_the_data_without_gaps(void **state) {
    static unsigned char bytes[200000];
    static float value[40000];
    (void)state;
    for (uint32_t n_tensors = 1; n_tensors <= 8; n_tensors++) {
        struct shmt_tensor tensor[8];
        char name[8][32];
        uint64_t header_bytes, at = 0;
        for (uint32_t i = 0; i < n_tensors; i++) {
            snprintf(name[i], sizeof name[i], "t%.*u", (int)(1 + 3 * i), i); /* headers of all lengths modulo 8 */
            tensor[i] = (struct shmt_tensor){.name = name[i], .rows = 1 + 37 * i, .width = 1 + i % 3, .data = value};
        }
        assert_int_equal(shmt_model_file_write("model", tensor, n_tensors, NULL, 0, NULL), 0);
        const size_t size = contents("model", bytes, sizeof bytes);
        memcpy(&header_bytes, bytes, 8);
        assert_int_equal(header_bytes % 8, 0);
        json_t *root = json_loadb((char *)bytes + 8, header_bytes, 0, NULL);
        assert_non_null(root);
        assert_int_equal(json_object_size(root), n_tensors + 1);
        for (uint32_t i = 0; i < n_tensors; i++) {
            const json_t *offsets = json_object_get(json_object_get(root, name[i]), "data_offsets");
            assert_int_equal(json_integer_value(json_array_get(offsets, 0)), at);
            at += tensor[i].rows * tensor[i].width * 4;
            assert_int_equal(json_integer_value(json_array_get(offsets, 1)), at);
        }
        assert_int_equal(8 + header_bytes + at, size);
        json_decref(root);
    }
}

static void interrupted_and_short_writes_are_gone_on_with(void **state) {
    unsigned char whole[1000], bytes[1000];
    (void)state;
    save_well("whole");
    const size_t n = contents("whole", whole, sizeof whole);
    g_system.at_once = 7;
    g_system.interrupted = 3;
    save_well("model");
    assert_int_equal(contents("model", bytes, sizeof bytes), n);
    assert_memory_equal(bytes, whole, n);
}

/* ---- failures ---- */

static void fails_and_leaves_the_old_file(const char *words) {
    char text[64];
    struct shmt_error e = {0};
    assert_int_equal(save("model", &e), SHMTRAIN_E_SYSTEM);
    well_again();
    if (!strstr(e.text, words) || !strstr(e.text, "model")) fail_msg("\"%s\" does not say \"%s\"", e.text, words);
    assert_int_equal(contents("model", (unsigned char *)text, sizeof text), 8);
    assert_memory_equal(text, "old file", 8);
    assert_int_equal(files_here(), 1);
}

static void write_old_file(const char *path) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("old file", f);
    assert_int_equal(fclose(f), 0);
}

static void a_full_disk_leaves_the_old_file_whole(void **state) {
    unsigned char bytes[1000];
    (void)state;
    save_well("other");
    const long size = (long)contents("other", bytes, sizeof bytes);
    unlink("other");
    write_old_file("model");
    for (long room = 0; room < size; room++) { /* full after each byte of it */
        g_system.room = room;
        fails_and_leaves_the_old_file("No space left");
    }
    g_system.room = size;
    save_well("model");
}

static void a_failing_sync_rename_or_close_leaves_the_old_file_whole(void **state) {
    (void)state;
    write_old_file("model");
    g_system.fsync_code = EIO;
    fails_and_leaves_the_old_file("Input/output error");
    g_system.rename_code = EXDEV;
    fails_and_leaves_the_old_file("cross-device");
    g_system.close_code = EDQUOT;
    fails_and_leaves_the_old_file("Disk quota exceeded");
}

static void places_where_no_file_can_be_are_named(void **state) {
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(save("no/such/folder/model", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to no/such/folder/model: No such file or directory");
    shmt_error_clear(&e);
    assert_int_equal(mkdir("folder", 0777), 0);
    assert_int_equal(save("folder", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to folder: it is a folder; name a file in it");
    assert_int_equal(rmdir("folder"), 0);
    assert_int_equal(files_here(), 0);
}

static void names_stand_in_sentences_on_one_line_and_of_bounded_length(void **state) {
    char deep[1000];
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(save("no\nsuch\033[31m/model", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to no?such?[31m/model: No such file or directory");
    shmt_error_clear(&e);
    assert_int_equal(mkdir("fol\nder", 0777), 0);
    assert_int_equal(save("fol\nder", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to fol?der: it is a folder; name a file in it");
    assert_int_equal(rmdir("fol\nder"), 0);
    shmt_error_clear(&e);
    g_system.rename_code = EXDEV;
    assert_int_equal(save("mo\rdel", &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "cannot write the model to mo?del: "));
    well_again();
    shmt_error_clear(&e);
    for (size_t i = 0; i < sizeof deep - 1; i++) deep[i] = i % 100 == 99 ? '/' : 'x';
    memcpy(deep + sizeof deep - sizeof "/model", "/model", sizeof "/model");
    assert_int_equal(save(deep, &e), SHMTRAIN_E_SYSTEM);
    assert_non_null(strstr(e.text, "xxx/model: No such file or directory"));
    assert_true(strlen(e.text) < 300);
    assert_int_equal(files_here(), 0);
}

/* ---- what is kept ---- */

/* Somebody's who writes still. */
static void a_temporary_file_of_the_same_name_is_not_touched(void **state) {
    char name[64];
    (void)state;
    snprintf(name, sizeof name, ".shmtrain-%ld-0.tmp", (long)getpid());
    write_old_file(name);
    const int held = open(name, O_RDWR | O_CLOEXEC);
    assert_true(held >= 0 && shmt_leftover_keep(held));
    save_well("model");
    close(held);
    assert_int_equal(files_here(), 2);
    unsigned char text[64];
    assert_int_equal(contents(name, text, sizeof text), 8);
}

static mode_t mode_of(const char *path) {
    struct stat file;
    assert_int_equal(lstat(path, &file), 0);
    return file.st_mode;
}

static void permissions_stay_or_follow_the_umask(void **state) {
    (void)state;
    const mode_t before = umask(027);
    save_well("model");
    assert_int_equal(mode_of("model") & 07777, 0640);
    assert_int_equal(chmod("model", 0604), 0);
    save_well("model");
    assert_int_equal(mode_of("model") & 07777, 0604);
    umask(before);
}

static void a_symbolic_link_stays_one(void **state) {
    unsigned char bytes[1000];
    (void)state;
    write_old_file("model");
    assert_int_equal(symlink("model", "link"), 0);
    assert_int_equal(symlink("link", "link-to-link"), 0);
    save_well("link-to-link");
    assert_true(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("link-to-link")) && S_ISREG(mode_of("model")));
    assert_true(contents("model", bytes, sizeof bytes) > 200);
    assert_int_equal(files_here(), 3);
}

/* "runs/latest.model" may be made before the first run has ended. */
static void a_symbolic_link_to_nothing_stays_one_and_gets_its_file(void **state) {
    unsigned char bytes[1000];
    struct shmt_error e = {0};
    (void)state;
    assert_int_equal(mkdir("runs", 0777), 0);
    assert_int_equal(symlink("second", "runs/first"), 0); /* seen from its own folder */
    assert_int_equal(symlink("runs/first", "link"), 0);
    save_well("link");
    assert_true(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("runs/first")) && S_ISREG(mode_of("runs/second")));
    assert_true(contents("runs/second", bytes, sizeof bytes) > 200);
    assert_int_equal(files_here(), 2);
    assert_int_equal(unlink("runs/second") | unlink("runs/first") | rmdir("runs"), 0);
    assert_int_equal(save("link", &e), SHMTRAIN_E_SYSTEM); /* its folder is gone */
    assert_string_equal(e.text, "cannot write the model to runs/first: No such file or directory");
    shmt_error_clear(&e);
    assert_int_equal(symlink("circle", "circle"), 0);
    assert_int_equal(save("circle", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to circle: Too many levels of symbolic links");
    assert_true(S_ISLNK(mode_of("link")) && S_ISLNK(mode_of("circle")));
    assert_int_equal(files_here(), 2);
}

static void a_name_as_long_as_names_may_be_is_written(void **state) {
    char name[NAME_MAX + 1];
    unsigned char bytes[1000];
    (void)state;
    memset(name, 'm', NAME_MAX);
    name[NAME_MAX] = '\0';
    save_well(name);
    assert_true(contents(name, bytes, sizeof bytes) > 200);
    assert_int_equal(files_here(), 1);
}

static void *read_fifo(void *arg) {
    static unsigned char bytes[1000];
    *(size_t *)arg = contents("fifo", bytes, sizeof bytes);
    return bytes;
}

static void pipes_and_devices_are_written_to_as_they_are(void **state) {
    struct shmt_error e = {0};
    unsigned char whole[1000];
    pthread_t reader;
    void *got;
    size_t n = 0;
    (void)state;
    save_well("model");
    const size_t size = contents("model", whole, sizeof whole);
    assert_int_equal(mkfifo("fifo", 0600), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_fifo, &n), 0);
    save_well("fifo");
    pthread_join(reader, &got);
    assert_int_equal(n, size);
    assert_memory_equal(got, whole, size);
    assert_true(S_ISFIFO(mode_of("fifo")));
    save_well("/dev/null");
    assert_true(S_ISCHR(mode_of("/dev/null")));
    assert_int_equal(save("/dev/full", &e), SHMTRAIN_E_SYSTEM);
    assert_string_equal(e.text, "cannot write the model to /dev/full: No space left on device");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
    const struct CMUnitTest tests[] = {
        TEST(a_file_has_these_bytes),
        TEST(tensors_fill_the_data_without_gaps),
        TEST(interrupted_and_short_writes_are_gone_on_with),
        TEST(a_full_disk_leaves_the_old_file_whole),
        TEST(a_failing_sync_rename_or_close_leaves_the_old_file_whole),
        TEST(places_where_no_file_can_be_are_named),
        TEST(names_stand_in_sentences_on_one_line_and_of_bounded_length),
        TEST(a_temporary_file_of_the_same_name_is_not_touched),
        TEST(permissions_stay_or_follow_the_umask),
        TEST(a_symbolic_link_stays_one),
        TEST(a_symbolic_link_to_nothing_stays_one_and_gets_its_file),
        TEST(a_name_as_long_as_names_may_be_is_written),
        TEST(pipes_and_devices_are_written_to_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
