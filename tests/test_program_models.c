/* The real program from outside: the model that -o saves. */
#include "run_program.h"
#include "skip.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <xxhash.h>

#define DATA "builtin:sparse:examples=3000,valid=500,features=400,nonzeros=12"

/* ---- reading safetensors: a length, a JSON header of that length, the tensors' bytes ---- */

struct model {
    json_t *header;
    float *value;
    size_t n_values;
};

static struct model read_model(const char *path) {
    struct model m;
    json_error_t error;
    uint64_t header_bytes;
    struct stat there;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &there), 0);
    assert_int_equal(fread(&header_bytes, sizeof header_bytes, 1, f), 1);
    assert_int_equal(header_bytes % 8, 0); /* so that the tensors are aligned in a mapping */
    assert_in_range(header_bytes, 2, (uint64_t)there.st_size - 8);
    char *text = malloc(header_bytes);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, header_bytes, f), header_bytes);
    m.header = json_loadb(text, header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!m.header) fail_msg("header of %s: %s", path, error.text);
    free(text);
    m.n_values = ((size_t)there.st_size - 8 - header_bytes) / sizeof(float);
    assert_int_equal(8 + header_bytes + m.n_values * sizeof(float), there.st_size);
    m.value = malloc(m.n_values * sizeof(float));
    assert_non_null(m.value);
    assert_int_equal(fread(m.value, sizeof(float), m.n_values, f), m.n_values);
    fclose(f);
    return m;
}

static void free_model(struct model *m) {
    json_decref(m->header);
    free(m->value);
}

/* Tensors lie one behind the other, without a gap, and end where the file does. */
static void assert_well_formed(const struct model *m) {
    const char *name, *key;
    json_t *entry;
    size_t end = 0;
    json_object_foreach(m->header, name, entry) {
        size_t n = 1, i;
        json_t *extent, *offsets = json_object_get(entry, "data_offsets");
        if (strcmp(name, "__metadata__") == 0) {
            json_object_foreach(entry, key, extent) assert_true(json_is_string(extent)); /* the format asks for that */
            continue;
        }
        assert_string_equal(json_string_value(json_object_get(entry, "dtype")), "F32");
        json_array_foreach(json_object_get(entry, "shape"), i, extent) n *= (size_t)json_integer_value(extent);
        assert_int_equal(json_array_size(offsets), 2);
        assert_int_equal(json_integer_value(json_array_get(offsets, 0)), end);
        end += n * sizeof(float);
        assert_int_equal(json_integer_value(json_array_get(offsets, 1)), end);
    }
    assert_int_equal(end, m->n_values * sizeof(float));
    for (size_t i = 0; i < m->n_values; i++) assert_true(isfinite(m->value[i]));
}

static void assert_saved(struct program *p, const char *path) {
    program_assert_status(p, 0);
    struct model m = read_model(path);
    assert_well_formed(&m);
    free_model(&m);
}

/* ---- what is in it ---- */

static void the_saved_model_is_what_was_trained(void **state) {
    (void)state;
    struct program *p = RUN("-w", "2", "--json", "-q", "-e", "3", "-o", "a.model", DATA);
    program_assert_status(p, 0);
    struct model m = read_model("a.model");
    assert_well_formed(&m);
    assert_int_equal(m.n_values, 400 + 1); /* and the bias */
    json_t *o = program_json(p), *metadata = json_object_get(m.header, "__metadata__");
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)XXH64(m.value, m.n_values * sizeof(float), 0));
    assert_string_equal(hash, json_string_value(json_object_get(o, "parameters_xxh64")));
    assert_string_equal(json_string_value(json_object_get(metadata, "shmtrain.model")), "logistic");
    assert_string_equal(json_string_value(json_object_get(metadata, "shmtrain.features")), "400");
    json_decref(o);
    free_model(&m);
}

static void two_features_and_their_labels_are_told_apart_by_the_saved_weights(void **state) {
    (void)state;
    FILE *f = fopen("two", "w");
    assert_non_null(f);
    for (int i = 0; i < 200; i++) fprintf(f, i % 2 ? "7 3:1\n" : "4 1:1\n");
    assert_int_equal(fclose(f), 0);
    assert_saved(RUN("-w", "2", "-q", "--bias", "0", "-o", "two.model", "two"), "two.model");
    struct model m = read_model("two.model");
    json_t *metadata = json_object_get(m.header, "__metadata__");
    assert_string_equal(json_string_value(json_object_get(metadata, "shmtrain.label_low")), "4");
    assert_string_equal(json_string_value(json_object_get(metadata, "shmtrain.label_high")), "7");
    assert_true(m.n_values >= 3);
    assert_true(m.value[0] < -1 && m.value[1] == 0 && m.value[2] > 1);
    free_model(&m);
}

/* examples/predict.py, which knows the format and nothing else. */
static struct program *run_example(const char *model, const char *data) {
    const char *source = getenv("TEST_SRCDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/examples/predict.py", source ? source : ".");
    struct program *p = program_run(NULL, (const char *const[]){"python3", path, model, data, NULL});
    if (p->status == 127) {
        print_message("skipped: there is no python3\n");
        skip();
    }
    return p;
}

static void another_language_reads_it(void **state) {
    (void)state;
    program_write_file("two", "7 3:1\n4 1:1\n");
    static const char *const MODELS[] = {"logistic", "svm", "linear"};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        program_assert_status(RUN("-q", "-w", "1", "-r", "0.1", "-M", MODELS[i], "-o", "any.model", "two"), 0);
        struct program *p = run_example("any.model", "two");
        if (i < 2) {
            program_assert_status(p, 0);
            assert_string_equal(p->text[OUT], "2 of 2 right: 100.00 %\n");
        } else {
            program_assert_status(p, 1); /* not the figures of something else */
            assert_string_equal(p->text[OUT], "");
            assert_string_equal(p->text[ERR],
                                "predict.py: any.model is a linear model, and this is made for logistic and svm\n");
        }
    }
}

static void another_language_says_what_it_cannot_read(void **state) {
    static const char *const HEADERS[] = {"{\"mine\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
                                          "{\"weight\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
                                          "\"__metadata__\":{}}"};
    static const float parameter = 1;
    (void)state;
    program_write_file("one", "1 1:1\n");
    for (size_t i = 0; i < sizeof HEADERS / sizeof *HEADERS; i++) {
        const uint64_t n = strlen(HEADERS[i]);
        FILE *f = fopen("own.model", "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(&n, sizeof n, 1, f), 1);
        assert_int_equal(fwrite(HEADERS[i], 1, n, f), n);
        assert_int_equal(fwrite(&parameter, sizeof parameter, 1, f), 1);
        assert_int_equal(fclose(f), 0);
        struct program *p = run_example("own.model", "one");
        program_assert_status(p, 1);
        assert_string_equal(p->text[ERR], "predict.py: own.model names no model, and this is made for logistic and svm\n");
    }
}

/* ---- how it gets there ---- */

static void a_file_is_replaced_as_a_whole_and_keeps_its_permissions(void **state) {
    (void)state;
    struct stat before, after;
    program_write_file("old.model", "what was there before");
    assert_int_equal(chmod("old.model", 0640), 0);
    assert_int_equal(stat("old.model", &before), 0);
    const int old = open("old.model", O_RDONLY | O_CLOEXEC);
    assert_saved(RUN("-w", "2", "-q", "-e", "1", "-o", "old.model", DATA), "old.model");
    assert_int_equal(stat("old.model", &after), 0);
    assert_int_equal(after.st_mode & 07777, 0640);
    char text[32] = "";
    assert_int_equal(read(old, text, sizeof text - 1), 21); /* who has the old file open still reads all of it */
    assert_string_equal(text, "what was there before");
    close(old);
    assert_int_not_equal(after.st_ino, before.st_ino);
}

static void a_new_file_has_the_permissions_of_any_new_file(void **state) {
    (void)state;
    struct stat there;
    const mode_t before = umask(027);
    struct program *p = RUN("-w", "1", "-q", "-e", "1", "-o", "new.model", DATA);
    umask(before);
    assert_saved(p, "new.model");
    assert_int_equal(stat("new.model", &there), 0);
    assert_int_equal(there.st_mode & 07777, 0640);
}

static void a_link_stays_a_link(void **state) {
    (void)state;
    struct stat there;
    program_write_file("target.model", "old");
    assert_int_equal(symlink("target.model", "link.model"), 0);
    assert_saved(RUN("-w", "1", "-q", "-e", "1", "-o", "link.model", DATA), "target.model");
    assert_int_equal(lstat("link.model", &there), 0);
    assert_true(S_ISLNK(there.st_mode));
    assert_int_equal(symlink("later.model", "early.model"), 0);
    assert_saved(RUN("-w", "1", "-q", "-e", "1", "-o", "early.model", DATA), "later.model");
    assert_int_equal(lstat("early.model", &there), 0);
    assert_true(S_ISLNK(there.st_mode));
}

static void nothing_but_the_model_is_left_in_its_folder(void **state) {
    (void)state;
    assert_int_equal(mkdir("alone", 0777), 0);
    assert_saved(RUN("-w", "2", "-q", "-e", "1", "-o", "alone/m", DATA), "alone/m");
    assert_int_equal(unlink("alone/m"), 0);
    assert_int_equal(rmdir("alone"), 0); /* fails when there is anything more */
}

static void a_device_is_written_to_and_stays_one(void **state) {
    (void)state;
    struct stat there;
    program_assert_status(RUN("-w", "1", "-q", "-e", "1", "-o", "/dev/null", DATA), 0);
    assert_int_equal(stat("/dev/null", &there), 0);
    assert_true(S_ISCHR(there.st_mode));
    struct program *p = RUN("-w", "1", "-q", "-e", "1", "-o", "/dev/full", DATA);
    program_assert_refused(p, 1, "cannot write the model to /dev/full: No space left on device");
}

static struct program *shell(program_prepare *prepare, const char *script) {
    return program_run(prepare, (const char *const[]){"sh", "-c", script, NULL});
}
#define TRAIN "\"$TEST_BUILDDIR\"/shmtrain -w 1 -e 1 -o "

/* What is open is written to as it is, whatever its file is called; lines for people go where the model does not. */
static void an_open_descriptor_is_written_to(void **state) {
    (void)state;
    struct program *p = shell(NULL, "echo hello > said; " TRAIN "/dev/stdout " DATA
                                    " >> said && head -n 1 said && ls | grep -c tmp;"
                                    " tail -c +7 said > said.model");
    assert_int_equal(p->status, 0);
    assert_string_equal(p->text[OUT], "hello\n0\n");
    assert_non_null(strstr(p->text[ERR], "saved       /dev/stdout\n"));
    struct model m = read_model("said.model");
    assert_well_formed(&m);
    free_model(&m);
    p = shell(NULL, "exec 4> gone; rm gone; " TRAIN "/dev/fd/4 -q " DATA " && ls | grep -c gone;" TRAIN "/dev/stdout " DATA
                    " 2> lines | cat > piped.model");
    assert_string_equal(p->text[OUT], "0\n");
    m = read_model("piped.model");
    assert_well_formed(&m);
    free_model(&m);
}

static void a_closed_descriptor_is_refused_before_training(void **state) {
    (void)state;
    program_assert_refused(shell(NULL, TRAIN "/dev/stdout no-data >&-"), 1,
                           "cannot write the model to /dev/stdout: this descriptor is not open for writing");
    program_assert_refused(shell(NULL, TRAIN "/dev/fd/77 no-data"), 1,
                           "cannot write the model to /dev/fd/77: this descriptor is not open for writing");
    program_assert_refused(shell(NULL, TRAIN "- no-data"), 2, "--output -: name a file");
    program_assert_refused(shell(NULL, TRAIN "/dev/stdout --json no-data"), 2, "--json would both go to standard output");
}

/* ---- what cannot be written ---- */

static int mount_one_file(void) {
    program_write_file("single", "before");
    program_write_file("source", "before");
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    return mount("source", "single", NULL, MS_BIND, NULL) != 0 ? errno : 0;
}

static void a_file_mounted_by_itself_is_refused_before_training(void **state) {
    (void)state;
    struct statx root;
    if (statx(AT_FDCWD, "/", 0, 0, &root) != 0 || !(root.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        SKIP("the kernel does not say what is mounted");
    struct program *p = RUN_IN(mount_one_file, "-o", "single", "no-data");
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to mount a file\n");
        skip();
    }
    program_assert_refused(
        p, 1, "cannot write the model to single: this file is a mount point, so it cannot be replaced; name a file");
    program_write_file("two", "1 1:1\n0 2:1\n");
    program_assert_refused(RUN_IN(mount_one_file, "-q", "-e", "1", "--trace", "single", "two"), 1, "this file is a mount");
}

/* Refused before training: the data, which would be refused, too, was not looked at. */
static void where_nothing_can_be_written_is_refused_before_training(void **state) {
    (void)state;
    assert_int_equal(mkdir("folder", 0777), 0);
    program_write_file("file", "");
    program_assert_refused(RUN("-o", "folder", "no-data"), 1,
                           "cannot write the model to folder: it is a folder; name a file in it");
    program_assert_refused(RUN("-o", "new/", "no-data"), 1, "cannot write the model to new/: ");
    assert_int_equal(symlink("missing/m", "dangling"), 0);
    program_assert_refused(RUN("-o", "dangling", "no-data"), 1, "No such file or directory");
    program_assert_refused(RUN("-o", "missing/m", "no-data"), 1,
                           "cannot write the model to missing/m: No such file or directory");
    program_assert_refused(RUN("-o", "file/m", "no-data"), 1, "cannot write the model to file/m: Not a directory");
}

/* The tests may run as root, whom permissions do not stop; a folder on a read-only mount stops everybody. */
static int make_closed_read_only(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    return mount("none", "closed", "tmpfs", MS_RDONLY, "size=16k") != 0 ? errno : 0;
}

static void a_folder_without_permission_is_refused_before_training(void **state) {
    (void)state;
    assert_int_equal(mkdir("closed", 0555), 0);
    if (geteuid() != 0) {
        program_assert_refused(RUN("-o", "closed/m", "no-data"), 1,
                               "cannot write the model to closed/m: Permission denied; name a file in a folder");
        return;
    }
    struct program *p = RUN_IN(make_closed_read_only, "-o", "closed/m", "no-data");
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: root is stopped by no permission, and may not mount here\n");
        skip();
    }
    program_assert_refused(p, 1, "cannot write the model to closed/m: Read-only file system; name a file in a folder");
}

static int mount_small_folder(void) {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return errno;
    if (mount("none", "small", "tmpfs", 0, "size=16k") != 0) return errno;
    program_write_file("small/m", "before");
    return 0;
}

static void a_full_disk_leaves_the_old_model_as_it_was(void **state) {
    (void)state;
    assert_int_equal(mkdir("small", 0777), 0);
    /* The mount ends with the program, so the shell looks into it: 20,001 parameters do not fit into 16 KiB. */
    const char *const script[] = {
        "sh", "-c",
        "\"$TEST_BUILDDIR\"/shmtrain -w 1 -q -e 1 -o small/m builtin:sparse:examples=100,valid=10,features=20000,nonzeros=5;"
        " echo $? $(ls small) $(cat small/m)",
        NULL};
    struct program *p = program_run(mount_small_folder, script);
    if (p->status == PREPARE_FAILED) {
        print_message("skipped: no right to mount a small folder\n");
        skip();
    }
    assert_string_equal(p->text[OUT], "1 m before\n"); /* no half model, no temporary file */
    assert_non_null(strstr(p->text[ERR], "cannot write the model to "));
    assert_non_null(strstr(p->text[ERR], "No space left on device"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROGRAM_TEST(the_saved_model_is_what_was_trained),
        PROGRAM_TEST(two_features_and_their_labels_are_told_apart_by_the_saved_weights),
        PROGRAM_TEST(another_language_reads_it),
        PROGRAM_TEST(another_language_says_what_it_cannot_read),
        PROGRAM_TEST(a_file_is_replaced_as_a_whole_and_keeps_its_permissions),
        PROGRAM_TEST(a_new_file_has_the_permissions_of_any_new_file),
        PROGRAM_TEST(a_link_stays_a_link),
        PROGRAM_TEST(nothing_but_the_model_is_left_in_its_folder),
        PROGRAM_TEST(a_device_is_written_to_and_stays_one),
        PROGRAM_TEST(an_open_descriptor_is_written_to),
        PROGRAM_TEST(a_closed_descriptor_is_refused_before_training),
        PROGRAM_TEST(a_file_mounted_by_itself_is_refused_before_training),
        PROGRAM_TEST(where_nothing_can_be_written_is_refused_before_training),
        PROGRAM_TEST(a_folder_without_permission_is_refused_before_training),
        PROGRAM_TEST(a_full_disk_leaves_the_old_model_as_it_was),
    };
    return cmocka_run_group_tests(tests, program_make_folder, program_remove_folder);
}
