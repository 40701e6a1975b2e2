/* For tests of stores with a name that somebody has damaged. A run is made in a process of its own, and its files are copied
 * while it goes on; then the copies are damaged, and used as observers and guests would. */
#pragma once

#include "api_help.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "naming/guest_data.h"
#include "naming/manifest.h"
#include "api/store_priv.h"

static char MADE[64], COPY[64];

enum { STORE, DATA, VALID, N_FILES };
static const char *const SUFFIX[N_FILES] = {"", ".data", ".valid"};

/* The copies as they were. */
static unsigned char *content[N_FILES];
static size_t length[N_FILES];
static struct shmt_manifest manifest;

static inline void path_of(const char *name, int file, char *out, size_t bytes) {
    snprintf(out, bytes, "/dev/shm/shmtrain-%ju-%s%s", (uintmax_t)geteuid(), name, SUFFIX[file]);
}

/* ---- making one ---- */

static struct shmtrain_store *maker;
static inline void stop(int signal) {
    (void)signal;
    shmtrain_store_stop(maker);
}

/* The runs that are copied. */
static const struct {
    const char *model, *valid, *data;
    const char *option[2][2]; /* and further ones */
} RUNS[] = {{"logistic", "", "builtin:sparse:examples=500,features=300,valid=200", {{NULL}}},
            {"logistic", "0.3", "builtin:sparse:examples=500,features=300", {{NULL}}},
            {"linear", "none", "builtin:line:examples=300", {{NULL}}},
            {"svm", "none", "builtin:sparse:examples=300,features=4200", {{NULL}}}, /* its rows have places */
            {"softmax", "", "builtin:dense:examples=200,features=7,classes=3", {{NULL}}},
            {"logistic", "none", "builtin:sparse:examples=500,features=300", {{"merge", "damped"}}},
            {"logistic", "none", "builtin:sparse:examples=500,features=300", {{"write", "aggregate"}, {"staleness", "2"}}},
            /* which takes no guests */
            {"logistic", "none", "builtin:sparse:examples=20000,features=300", {{"tolerance", "1e-12"}, {"guests", "0"}}}};
enum { WITH_PLACES = 3, DAMPED = 5, IN_ROUNDS = 6, FIT = 7, N_RUNS = 7 /* those that take guests */ };

static inline void make_run(int run) {
    assert_int_equal(shmtrain_store_create(&maker), 0);
    signal(SIGTERM, stop);
    WELL(maker, shmtrain_store_set(maker, "name", MADE));
    WELL(maker, shmtrain_store_set(maker, "workers", "1"));
    WELL(maker, shmtrain_store_set(maker, "guests", "2"));
    WELL(maker, shmtrain_store_set(maker, "epochs", "100000"));
    WELL(maker, shmtrain_store_set(maker, "valid", RUNS[run].valid));
    WELL(maker, shmtrain_store_set(maker, "model", RUNS[run].model));
    for (int i = 0; i < 2 && RUNS[run].option[i][0]; i++)
        WELL(maker, shmtrain_store_set(maker, RUNS[run].option[i][0], RUNS[run].option[i][1]));
    const int rc = shmtrain_store_train(maker, RUNS[run].data);
    if (rc < 0) print_message("  %s\n", shmtrain_store_message(maker));
    shmtrain_store_destroy(maker);
    _exit(-rc);
}

static inline void keep(int file) {
    char path[160];
    struct stat s;
    path_of(MADE, file, path, sizeof path);
    free(content[file]);
    content[file] = NULL;
    length[file] = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    assert_int_equal(fstat(fd, &s), 0);
    length[file] = (size_t)s.st_size;
    content[file] = malloc(length[file]);
    assert_non_null(content[file]);
    assert_true(pread(fd, content[file], length[file], 0) == s.st_size);
    close(fd);
}

/* False: this machine has not what the model needs. */
static inline bool make_copy(int run) {
    struct shmtrain_store *store;
    char message[512];
    const pid_t pid = fork();
    if (pid == 0) make_run(run);
    assert_int_equal(shmtrain_store_create(&store), 0);
    while (shmtrain_store_observe(store, MADE) < 0) {
        usleep(2000);
        if (waitpid(pid, NULL, WNOHANG) == 0) continue;
        assert_string_equal(RUNS[run].model, "softmax"); /* without OpenBLAS */
        shmtrain_store_destroy(store);
        return false;
    }
    shmtrain_store_destroy(store);
    for (int file = 0; file < N_FILES; file++) keep(file);
    memcpy(&manifest, content[STORE] + SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, manifest), sizeof manifest);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(shmtrain_named_remove(MADE, 1, message, sizeof message), 0);
    return true;
}

/* ---- a damaged copy ---- */

/* Files as they were, but for the caller's damage; fd (N_FILES), to be closed. */
static inline void put(int *fd) {
    for (int file = 0; file < N_FILES; file++) {
        char path[160];
        fd[file] = -1;
        if (!content[file]) continue;
        path_of(COPY, file, path, sizeof path);
        fd[file] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        assert_true(fd[file] >= 0);
        assert_true(pwrite(fd[file], content[file], length[file], 0) == (ssize_t)length[file]);
    }
    assert_int_equal(shmt_mark_hold(fd[STORE], SHMT_MARK_RUN, NULL), 1); /* somebody seems to run it, */
    shmt_named_sign(fd[STORE]);                                          /* and that is us */
}

static inline void take_away(int *fd) {
    for (int file = 0; file < N_FILES; file++) {
        char path[160];
        path_of(COPY, file, path, sizeof path);
        (void)unlink(path);
        if (fd[file] >= 0) close(fd[file]);
    }
}

static inline void put_manifest(int fd, struct shmt_manifest *m, bool seal) {
    if (seal) shmt_manifest_seal(m);
    const off_t at = (off_t)(SHMT_SEGMENT_HEADER_BYTES + offsetof(struct shmt_head, manifest));
    assert_true(pwrite(fd, m, sizeof *m, at) == (ssize_t)sizeof *m);
}

/* The low 32 bits of a field of the spec, by its key. */
static inline void set_spec(struct shmt_manifest *m, const char *key, uint32_t value) {
    const struct shmt_spec_field *field;
    size_t i = 0;
    while ((field = shmt_spec_field_at(i)) && strcmp(field->is.key, key) != 0) i++;
    assert_non_null(field);
    memcpy(m->spec + field->packed, &value, sizeof value);
}

static inline void check_sentence(struct shmtrain_store *store) {
    const char *message = shmtrain_store_message(store);
    if (message[0] == '\0' || strchr(message, '\n') || !strstr(message, COPY)) fail_msg("a bad sentence: \"%s\"", message);
}

/* All that an observer can see. */
static inline void read_all(struct shmtrain_store *store) {
    const struct shmtrain_progress *now;
    char line[256];
    uint64_t rows, width;
    (void)shmtrain_store_look(store, &now);
    const struct shmtrain_report *r = shmtrain_store_report(store);
    free(shmtrain_report_json(r));
    shmtrain_report_opening(r, line, sizeof line);
    shmtrain_report_summary(r, line, sizeof line);
    for (uint32_t i = 0; i < r->n_epochs; i++) shmtrain_report_line(r, &r->epoch[i], line, sizeof line);
    for (int t = 0; shmtrain_store_table_at(store, t, NULL, &rows, &width) == 0; t++) {
        float *values = malloc(rows * width * sizeof *values);
        assert_non_null(values);
        WELL(store, shmtrain_store_read(store, t, 0, rows, values));
        free(values);
    }
}

/* What a worker would read of the data. */
static inline double sum_of(const struct shmtrain_data *d) {
    double sum = 0;
    for (uint64_t i = 0; i < d->n_examples; i++) {
        sum += (double)d->label[i] + (d->weight ? (double)d->weight[i] : 1);
        for (uint64_t k = d->start ? d->start[i] : 0; d->start && k < d->start[i + 1]; k++)
            sum += (double)d->id[k] + (d->value ? (double)d->value[k] : 1);
        for (uint32_t j = 0; d->dense && j < d->n_features; j++) sum += (double)d->dense[i * d->n_features + j];
    }
    return sum;
}

static inline bool use_as_guest(struct shmtrain_store *store) {
    struct shmt_guest_data data = {0};
    int rc = shmt_visit_begin(&store->run, COPY, true);
    if (rc == 0) rc = shmt_guest_data_open(&data, &store->run);
    if (rc == 0) {
        volatile double sum = sum_of(&data.train) + (data.valid.label ? sum_of(&data.valid) : 0);
        (void)sum;
    }
    shmt_guest_data_close(&data);
    if (rc < 0) check_sentence(store);
    return rc == 0;
}

/* True when both an observer and a guest take it. */
static inline bool use(void) {
    struct shmtrain_named *all;
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    const int rc = shmtrain_store_observe(store, COPY);
    if (rc == 0)
        read_all(store);
    else
        check_sentence(store);
    const bool taken = use_as_guest(store) && rc == 0;
    shmtrain_store_destroy(store);
    assert_true(shmtrain_named_list(&all) >= 0);
    free(all);
    return taken;
}

static inline void name_copies(const char *program) {
    snprintf(MADE, sizeof MADE, "%s-%d", program, (int)getpid());
    snprintf(COPY, sizeof COPY, "%s-%d-copy", program, (int)getpid());
}

static inline int deadline_and_clean(void **state) {
    (void)state;
    alarm(300);
    return 0;
}

static inline int forget_copies(void **state) {
    (void)state;
    for (int file = 0; file < N_FILES; file++) free(content[file]);
    return 0;
}
