/* Option metrics: lines of JSON about a run while it goes on. */
#include "api_help.h"

#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>

#include "folder_help.h"

#define DATA "builtin:sparse:examples=2000,features=300"
#define MOST 10000

static json_t *g_lines[MOST];
static int g_n_lines;

/* All lines of a file, each of which must be an object by itself. */
static void read_lines(const char *path) {
    static char line[1 << 20];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    g_n_lines = 0;
    while (fgets(line, sizeof line, f)) {
        assert_true(g_n_lines < MOST && line[strlen(line) - 1] == '\n');
        json_t *o = json_loads(line, 0, NULL);
        if (!json_is_object(o)) fail_msg("no object: %s", line);
        g_lines[g_n_lines++] = o;
    }
    fclose(f);
}

static void forget_lines(void) {
    while (g_n_lines > 0) json_decref(g_lines[--g_n_lines]);
}

static const char *event_of(const json_t *line) { return json_string_value(json_object_get(line, "event")); }

static int count_events(const char *event) {
    int n = 0;
    for (int i = 0; i < g_n_lines; i++) n += strcmp(event_of(g_lines[i]), event) == 0;
    return n;
}

/* Begin, what happened meanwhile in its order, the end. */
static void assert_whole(int epochs) {
    double at = 0;
    int epoch = 0;
    assert_true(g_n_lines >= 2 + epochs);
    assert_string_equal(event_of(g_lines[0]), "begin");
    assert_string_equal(event_of(g_lines[g_n_lines - 1]), "end");
    for (int i = 0; i < g_n_lines; i++) {
        const json_t *at_line = json_object_get(g_lines[i], "at");
        assert_true(json_is_number(at_line) && json_number_value(at_line) >= at);
        at = json_number_value(at_line);
        assert_non_null(json_string_value(json_object_get(g_lines[i], "mode")));
        if (strcmp(event_of(g_lines[i]), "epoch") == 0)
            assert_int_equal(json_integer_value(json_object_get(g_lines[i], "epoch")), ++epoch);
    }
    assert_int_equal(epoch, epochs);
    assert_int_equal(count_events("begin") + count_events("end"), 2);
    assert_int_equal(count_events("progress"), g_n_lines - 2 - epochs); /* of a short run perhaps none */
}

static struct shmtrain_store *make_training(const char *spawn, const char *path) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", "2"));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    WELL(store, shmtrain_store_set(store, "metrics", path));
    return store;
}

/* ---- what is written ---- */

static void a_run_that_nobody_listens_to_writes_them(void **state) {
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct shmtrain_store *store = make_training(SPAWNS[i], "metrics.json");
        write_text("metrics.json", "an older file, which is longer than nothing\n");
        WELL(store, shmtrain_store_train(store, DATA));
        read_lines("metrics.json");
        assert_whole(3);
        const json_t *first = g_lines[0], *last = g_lines[g_n_lines - 1];
        assert_int_equal(json_integer_value(json_object_get(first, "workers")), 2);
        assert_non_null(json_object_get(first, "dataset"));
        assert_true(json_is_null(json_object_get(last, "error")));
        assert_int_equal(json_integer_value(json_object_get(last, "examples")), 6000);
        assert_int_equal(json_array_size(json_object_get(last, "per_worker")), 2);
        assert_int_equal(json_array_size(json_object_get(last, "epochs")), 3);
        forget_lines();
        shmtrain_store_destroy(store);
    }
}

/* So that there are several looks at it: an epoch of 64 examples takes longer than a tenth of a second. */
static int work_slowly(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        usleep(150000);
        if ((rc = shmtrain_report(s, (double)w.n)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

static void progress_is_written_while_an_epoch_goes_on(void **state) {
    struct shmtrain_store *store = make("threads", "2", "2", 128);
    uint64_t most = 0;
    (void)state;
    WELL(store, shmtrain_store_set(store, "metrics", "metrics.json"));
    WELL(store, shmtrain_store_run(store, work_slowly, NULL));
    read_lines("metrics.json");
    assert_whole(2);
    for (int i = 0; i < g_n_lines; i++) {
        if (strcmp(event_of(g_lines[i]), "progress") != 0) continue;
        const json_t *workers = json_object_get(g_lines[i], "per_worker");
        assert_int_equal(json_array_size(workers), 2);
        const json_t *second = json_array_get(workers, 1);
        assert_int_equal(json_integer_value(json_object_get(second, "worker")), 1);
        const uint64_t examples = (uint64_t)json_integer_value(json_object_get(second, "examples"));
        assert_true(examples >= most);
        most = examples;
    }
    assert_true(count_events("progress") >= 4);
    forget_lines();
    shmtrain_store_destroy(store);
}

static void a_run_in_the_background_writes_them_too(void **state) {
    struct shmtrain_store *store = make_training("processes", "metrics.json");
    int rc;
    (void)state;
    WELL(store, shmtrain_store_start_training(store, DATA));
    while ((rc = shmtrain_store_step(store)) == 1) {
        struct pollfd pollfd = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&pollfd, 1, -1);
    }
    assert_int_equal(rc, 0);
    read_lines("metrics.json");
    assert_whole(3);
    forget_lines();
    shmtrain_store_destroy(store);
}

static int work_and_fail(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        if (w.epoch == 1) return SHMTRAIN_E_DATA;
        if ((rc = shmtrain_clock(s, NULL)) < 0) break;
    }
    return rc;
}

static void a_run_that_fails_says_why(void **state) {
    struct shmtrain_store *store = make("threads", "2", "3", 128);
    (void)state;
    WELL(store, shmtrain_store_set(store, "metrics", "metrics.json"));
    assert_int_equal(shmtrain_store_run(store, work_and_fail, NULL), SHMTRAIN_E_DATA);
    read_lines("metrics.json");
    assert_string_equal(event_of(g_lines[g_n_lines - 1]), "end");
    assert_string_equal(json_string_value(json_object_get(g_lines[g_n_lines - 1], "error")), shmtrain_store_message(store));
    forget_lines();
    shmtrain_store_destroy(store);
}

/* ---- where ---- */

static void what_cannot_take_them_is_refused_before_anything_is_read(void **state) {
    static const struct {
        const char *path, *words;
        int status;
    } BAD[] = {{"-", "--metrics -: standard output is in use: name a file", SHMTRAIN_E_USAGE},
               {".", "--metrics .: this is a folder: name a file", SHMTRAIN_E_USAGE},
               {"pipe", "--metrics pipe: this is not a regular file: name a file", SHMTRAIN_E_USAGE},
               {"data", "--metrics data is read as the data (data) and would be replaced", SHMTRAIN_E_USAGE},
               {"same", "--metrics same is read as the data (data) and would be replaced", SHMTRAIN_E_USAGE},
               {"valid", "--metrics valid is read as validation data (valid) and would be replaced", SHMTRAIN_E_USAGE},
               {"nowhere/metrics", "cannot write metrics to nowhere/metrics: No such file", SHMTRAIN_E_SYSTEM}};
    (void)state;
    write_text("data", "1 1:1\n-1 2:1\nbad\n");
    write_text("valid", "1 1:1\n-1 2:1\n");
    assert_int_equal(symlink("data", "same"), 0);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct shmtrain_store *store = make_training("threads", BAD[i].path);
        WELL(store, shmtrain_store_set(store, "valid", "valid"));
        refused(store, shmtrain_store_train(store, "data"), BAD[i].status, BAD[i].words);
        shmtrain_store_destroy(store);
    }
    struct stat s;
    assert_true(stat("data", &s) == 0 && s.st_size == 17);
    assert_true(stat("valid", &s) == 0 && s.st_size > 0);
}

/* Nothing is lost by a run that never begins. */
static void the_file_stays_as_it_was_until_the_run_begins(void **state) {
    struct shmtrain_store *store = make_training("threads", "metrics.json");
    struct stat s;
    (void)state;
    write_text("data", "bad\n");
    write_text("metrics.json", "{}\n");
    assert_int_equal(shmtrain_store_train(store, "data"), SHMTRAIN_E_DATA);
    assert_true(stat("metrics.json", &s) == 0 && s.st_size == 3);
    shmtrain_store_destroy(store);
}

static void a_run_that_never_begins_makes_no_file(void **state) {
    struct shmtrain_store *store = make_training("threads", "none.json");
    (void)state;
    write_text("data", "bad\n");
    assert_int_equal(shmtrain_store_train(store, "data"), SHMTRAIN_E_DATA);
    assert_int_not_equal(access("none.json", F_OK), 0);
    WELL(store, shmtrain_store_train(store, DATA));
    read_lines("none.json");
    assert_whole(3);
    forget_lines();
    shmtrain_store_destroy(store);
}

/* Behind what is there, as a shell's >> means it; and a pipe, which is read when all has been written. */
static void an_open_descriptor_that_is_named_is_written_to(void **state) {
    char name[32], line[64] = "";
    int ends[2];
    (void)state;
    write_text("log", "first\n");
    const int fd = open("log", O_WRONLY | O_APPEND);
    assert_true(fd >= 0 && pipe(ends) == 0);
    const int to[] = {fd, ends[1]};
    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "/dev/fd/%d", to[i]);
        struct shmtrain_store *store = make_training("threads", name);
        WELL(store, shmtrain_store_train(store, DATA));
        assert_string_equal(shmtrain_store_report(store)->unwritten, "");
        shmtrain_store_destroy(store);
        assert_int_equal(close(to[i]), 0);
    }
    FILE *log = fopen("log", "r"), *read_end = fdopen(ends[0], "r");
    assert_true(log && read_end);
    assert_true(fgets(line, sizeof line, log) && strcmp(line, "first\n") == 0);
    assert_true(fgets(line, sizeof line, log) && strncmp(line, "{\"event\":\"begin\"", 16) == 0);
    assert_true(fgets(line, sizeof line, read_end) && strncmp(line, "{\"event\":\"begin\"", 16) == 0);
    fclose(log);
    fclose(read_end);
}

/* No signal: SIGPIPE would end this program. */
static void a_reader_that_has_left_is_a_note_and_the_run_goes_on(void **state) {
    char name[32];
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(close(ends[0]), 0);
    snprintf(name, sizeof name, "/dev/fd/%d", ends[1]);
    struct shmtrain_store *store = make_training("threads", name);
    WELL(store, shmtrain_store_train(store, DATA));
    assert_non_null(strstr(shmtrain_store_report(store)->unwritten, ": Broken pipe"));
    shmtrain_store_destroy(store);
    assert_int_equal(close(ends[1]), 0);
}

static void keep_note(void *arg, const char *line) {
    char *note = arg;
    if (!strstr(line, "metrics")) return;
    assert_int_equal(note[0], '\0'); /* one is enough */
    snprintf(note, 256, "%s", line);
}

static void a_full_disk_is_a_note_and_the_run_goes_on(void **state) {
    struct shmtrain_store *store = make_training("processes", "/dev/full");
    char note[256] = "";
    const struct shmtrain_listener listener = {.size = sizeof(struct shmtrain_listener), .arg = note, .note = keep_note};
    (void)state;
    shmtrain_store_listen(store, &listener);
    WELL(store, shmtrain_store_train(store, DATA));
    assert_string_equal(note, "the run continues without metrics: cannot write to /dev/full: No space left on device");
    assert_int_equal(shmtrain_store_report(store)->n_epochs, 3);
    assert_string_equal(shmtrain_store_report(store)->unwritten, note);
    WELL(store, shmtrain_store_set(store, "metrics", ""));
    WELL(store, shmtrain_store_train(store, DATA));
    assert_string_equal(shmtrain_store_report(store)->unwritten, ""); /* of another run */
    shmtrain_store_destroy(store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run_that_nobody_listens_to_writes_them, deadline),
        cmocka_unit_test_setup(progress_is_written_while_an_epoch_goes_on, deadline),
        cmocka_unit_test_setup(a_run_in_the_background_writes_them_too, deadline),
        cmocka_unit_test_setup(a_run_that_fails_says_why, deadline),
        cmocka_unit_test_setup(what_cannot_take_them_is_refused_before_anything_is_read, deadline),
        cmocka_unit_test_setup(the_file_stays_as_it_was_until_the_run_begins, deadline),
        cmocka_unit_test_setup(a_run_that_never_begins_makes_no_file, deadline),
        cmocka_unit_test_setup(an_open_descriptor_that_is_named_is_written_to, deadline),
        cmocka_unit_test_setup(a_reader_that_has_left_is_a_note_and_the_run_goes_on, deadline),
        cmocka_unit_test_setup(a_full_disk_is_a_note_and_the_run_goes_on, deadline),
    };
    return cmocka_run_group_tests_name("metrics", tests, make_folder, remove_folder);
}
