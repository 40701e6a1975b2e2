/* For tests of the library as an application uses it: a small store, and a worker function that counts. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shmtrain/shmtrain.h>

#include "deadline.h"

static const char *const SPAWNS[] = {"threads", "processes"};

#define WELL(store, call)                                                         \
    do {                                                                          \
        if ((call) < 0) fail_msg("%s: %s", #call, shmtrain_store_message(store)); \
    } while (0)

static inline void refused(struct shmtrain_store *store, int rc, int status, const char *words) {
    const char *message = shmtrain_store_message(store);
    if (rc != status || !strstr(message, words))
        fail_msg("%s: \"%s\" does not say \"%s\"", shmtrain_status_name(rc), message, words);
}

/* One table "count" (2, 1), sync with batches of 64. */
static inline struct shmtrain_store *make(const char *spawn, const char *workers, const char *epochs, uint64_t examples) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "spawn", spawn));
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "epochs", epochs));
    WELL(store, shmtrain_store_set(store, "mode", "sync"));
    WELL(store, shmtrain_store_set(store, "batch", "64"));
    WELL(store, shmtrain_store_set(store, "schedule", "constant"));
    assert_int_equal(shmtrain_store_table(store, "count", 2, 1), 0);
    WELL(store, shmtrain_store_examples(store, examples));
    return store;
}

/* Of a run that was started. */
static inline int wait_for_end(struct shmtrain_store *store) {
    int rc;
    do {
        struct pollfd readable = {.fd = shmtrain_store_fd(store), .events = POLLIN};
        (void)poll(&readable, 1, -1);
    } while ((rc = shmtrain_store_step(store)) == 1);
    return rc;
}

static inline float read_one(struct shmtrain_store *store, uint64_t row) {
    float x;
    WELL(store, shmtrain_store_read(store, 0, row, 1, &x));
    return x;
}

/* Each batch adds 1 to row 0, exactly. */
static inline int count(shmtrain_session *s, void *arg) {
    struct shmtrain_work w;
    int rc;
    (void)arg;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const float grad = -(float)w.n;
        if ((rc = shmtrain_push(s, 0, 0, 1, &grad)) < 0 || (rc = shmtrain_report(s, (double)w.n)) < 0) return rc;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* A store that trains models for three epochs. */
static inline struct shmtrain_store *open_training(const char *workers, const char *mode, const char *valid) {
    struct shmtrain_store *store;
    assert_int_equal(shmtrain_store_create(&store), 0);
    WELL(store, shmtrain_store_set(store, "workers", workers));
    WELL(store, shmtrain_store_set(store, "mode", mode));
    WELL(store, shmtrain_store_set(store, "valid", valid));
    WELL(store, shmtrain_store_set(store, "epochs", "3"));
    return store;
}
