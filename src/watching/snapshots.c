/* Snapshots for the application: see snapshots.h. */
#include "watching/snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "watching/log_every.h"
#include "base/clock.h" /* MACHINE: the application waits for its condition variable */
#include "segment/budget.h"
#include "sync/host.h"
#include "workers/run.h"

#define LOOK_MS      1   /* until a pause has come, which may be any moment */
#define MOST_SECONDS 1e9 /* longer is for ever */

/* ---- the copy ---- */

/* What is copied: of a snapshot, or of the parameters as they are. */
struct origin {
    struct shmt_parameters *params;
    const struct shmt_snapshot *snapshot; /* NULL: as they are */
    const struct shmt_trained *trained;   /* what they are a model of */
};

/* Rows by feature, whatever place they have. Places are words of the segment: each is checked. */
static int copy_rows(const struct origin *from, uint32_t t, float *out, struct shmt_error *e) {
    const struct shmt_held *held = &from->params->held;
    const struct shmt_table_spec *table = &from->params->table[t].table;
    const float *rows = from->snapshot->weight + from->snapshot->start[t];
    const uint32_t *place = held->backend->store->array(held->store, SHMT_ARRAY_ROW_PLACE, (int)t, 0).at;
    if (!place) {
        memcpy(out, rows, shmt_table_floats(table) * sizeof *out);
        return 0;
    }
    for (uint64_t row = 0; row < table->rows; row++) {
        const uint32_t at = place[row];
        if (at >= table->rows) return shmt_fail(e, SHMTRAIN_E_SYSTEM, "row %llu has no place", (unsigned long long)row);
        memcpy(out + row * table->width, rows + (uint64_t)at * table->width, table->width * sizeof *out);
    }
    return 0;
}

static int copy_table(const struct origin *from, uint32_t t, struct shmt_declared *out, struct shmt_error *e) {
    const struct shmt_declared *d = &from->params->table[t];
    *out = (struct shmt_declared){.table = d->table, .l2_rows = d->l2_rows, .tuning = d->tuning};
    out->value = malloc(shmt_table_floats(&d->table) * sizeof *out->value);
    if (!out->value) return shmt_no_memory(e, "for a copy of table \"%s\"", d->table.name);
    if (from->snapshot) return copy_rows(from, t, out->value, e);
    const int rc = shmt_parameters_read(from->params, (int)t, 0, d->table.rows, out->value, e);
    return rc < 0 ? shmt_fail(e, rc, "table \"%s\" cannot be read", d->table.name) : 0;
}

static int check_memory(const struct shmt_parameters *params, struct shmt_error *e) {
    uint64_t bytes = 0; /* no more than the run has */
    for (uint32_t t = 0; t < params->n_tables; t++) bytes += shmt_table_floats(&params->table[t].table) * sizeof(float);
    return shmt_budget_need(bytes, "a snapshot", NULL, "free some", e);
}

void shmt_taken_free(struct shmt_taken *taken) {
    if (!taken) return;
    for (uint32_t t = 0; t < SHMT_MAX_TABLES; t++) free(taken->table[t].value);
    shmt_trained_clear(&taken->trained);
    free(taken);
}

static int fill(const struct origin *from, struct shmt_taken *out, struct shmt_error *e) {
    int rc = check_memory(from->params, e);
    out->n_tables = from->params->n_tables;
    for (uint32_t t = 0; t < out->n_tables && rc == 0; t++) rc = copy_table(from, t, &out->table[t], e);
    if (rc == 0 && from->trained) rc = shmt_trained_copy(from->trained, &out->trained, e);
    return rc;
}

/* *out: to be freed, or NULL with an error. */
static int take(const struct origin *from, uint64_t step, struct shmt_taken **out, struct shmt_error *e) {
    struct shmt_taken *taken = *out = calloc(1, sizeof *taken);
    if (!taken) return shmt_no_memory(e, "for a snapshot");
    taken->step = step;
    const int rc = fill(from, taken, e);
    if (rc == 0) return 0;
    shmt_taken_free(taken);
    *out = NULL;
    return rc;
}

/* ---- the driver's thread ---- */

void shmt_snapshots_init(struct shmt_snapshots *s) {
    pthread_condattr_t attr;
    s->wake_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* that of shmt_machine_ns */
    pthread_cond_init(&s->answered, &attr);
    pthread_condattr_destroy(&attr);
}

void shmt_snapshots_fini(struct shmt_snapshots *s) {
    if (s->wake_fd >= 0) close(s->wake_fd);
    shmt_taken_free(s->taken);
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
}

/* With the lock. Whoever waits, and whoever polls, hears of it. */
static void answer(struct shmt_snapshots *s, int status, struct shmt_taken *taken) {
    s->status = status;
    s->taken = taken;
    s->request = SHMT_REQUEST_ANSWERED;
    pthread_cond_signal(&s->answered);
    if (s->ring) s->ring(s->ring_arg);
}

static bool is_requested(struct shmt_snapshots *s) {
    pthread_mutex_lock(&s->lock);
    const bool is = s->request == SHMT_REQUEST_ASKED;
    pthread_mutex_unlock(&s->lock);
    return is;
}

static void refuse_backend(struct shmt_snapshots *s, const char *name) {
    shmt_error_clear(&s->error);
    pthread_mutex_lock(&s->lock);
    answer(s, shmt_refuse(&s->error, "backend %s cannot take snapshots: use shm", name), NULL);
    pthread_mutex_unlock(&s->lock);
}

void shmt_snapshots_tick(struct shmt_snapshots *s, const struct shmt_held *held) {
    if (s->asked || !is_requested(s)) return;
    if (!held->spec->pauses.allowed) {
        refuse_backend(s, held->backend->name);
        return;
    }
    held->backend->store->request_snapshot(held->store);
    s->asked = true;
    s->asked_ns = shmt_now_ns();
}

static uint64_t step_of(const struct shmt_spec *spec, const struct shmt_snapshot *snapshot) {
    return snapshot->at.epoch * shmt_spec_steps(spec) + snapshot->at.step;
}

/* The lock is not held while the copy is made: the application's thread may look meanwhile. */
void shmt_snapshots_serve(struct shmt_snapshots *s, struct shmt_parameters *params, const struct shmt_snapshot *snapshot,
                          const struct shmt_trained *as) {
    const struct origin from = {params, snapshot, as};
    struct shmt_taken *taken;
    s->asked = false;
    if (!is_requested(s)) return;
    shmt_error_clear(&s->error);
    const int rc = take(&from, step_of(params->held.spec, snapshot), &taken, &s->error);
    pthread_mutex_lock(&s->lock);
    answer(s, rc, taken);
    pthread_mutex_unlock(&s->lock);
}

/* Often at first, and the more rarely the longer it takes: a worker may be stopped. */
int shmt_snapshots_due_ms(const struct shmt_snapshots *s, int most) {
    if (!s->asked) return most;
    const uint64_t look_ms = LOOK_MS + (shmt_now_ns() - s->asked_ns) / 8000000;
    return look_ms < (uint64_t)most ? (int)look_ms : most;
}

/* With the lock. */
static void forget_request(struct shmt_snapshots *s) {
    shmt_taken_free(s->taken);
    s->taken = NULL;
    s->request = SHMT_REQUEST_NONE;
}

void shmt_snapshots_open(struct shmt_snapshots *s, bool wants, void (*ring)(const void *arg), const void *ring_arg) {
    pthread_mutex_lock(&s->lock);
    s->ring = ring;
    s->ring_arg = ring_arg;
    s->asked = false;
    s->open = wants;
    pthread_mutex_unlock(&s->lock);
}

void shmt_snapshots_close(struct shmt_snapshots *s, int status) {
    pthread_mutex_lock(&s->lock);
    s->ring = NULL;
    s->asked = s->open = false;
    s->ended_with = status;
    forget_request(s);
    pthread_cond_signal(&s->answered);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the application's thread ---- */

int shmt_snapshots_enable(struct shmt_run *run, bool on) {
    struct shmt_snapshots *s = run->snapshots;
    if (on && s->wake_fd < 0) s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (on && s->wake_fd < 0) return shmt_fail_errno(&run->call->error, "cannot create a descriptor for snapshots");
    run->wants_snapshots = on;
    return 0;
}

static void wake(const struct shmt_snapshots *s) {
    const uint64_t one = 1;
    if (write(s->wake_fd, &one, sizeof one) < 0) return; /* full: readable it is */
}

/* With the lock. False: the time is over. */
static bool wait_for_answer(struct shmt_snapshots *s, double seconds) {
    struct timespec until;
    int code = 0;
    if (seconds > MOST_SECONDS) seconds = MOST_SECONDS;
    const uint64_t until_ns = shmt_machine_ns() + (uint64_t)(seconds * 1e9);
    until = (struct timespec){.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
    while (s->open && s->request == SHMT_REQUEST_ASKED && code == 0)
        code = seconds > 0 ? pthread_cond_timedwait(&s->answered, &s->lock, &until) : ETIMEDOUT;
    return !s->open || s->request != SHMT_REQUEST_ASKED;
}

/* With the lock, of a run that goes on. 1: it has ended meanwhile. */
static int request(struct shmt_snapshots *s, double seconds, struct shmt_taken **out, struct shmt_error *e) {
    if (s->request == SHMT_REQUEST_NONE) {
        s->request = SHMT_REQUEST_ASKED;
        wake(s);
    }
    if (!wait_for_answer(s, seconds))
        return shmt_fail(e, SHMTRAIN_E_AGAIN,
                         "there is no snapshot yet: the workers have not all come to a point between two steps");
    if (!s->open) return 1;
    *out = s->taken;
    s->taken = NULL;
    s->request = SHMT_REQUEST_NONE;
    return s->status < 0 ? shmt_fail(e, s->status, "%s", s->error.text) : 0;
}

/* Of parameters that nobody changes any more. */
static int take_final(const struct shmt_snapshots *s, struct shmt_parameters *params, const struct shmt_run *run, bool is_busy,
                      struct shmt_taken **out, struct shmt_error *e) {
    const struct origin from = {params, NULL, params->trained.model ? &params->trained : NULL};
    if (s->ended_with < 0)
        return shmt_fail(e, s->ended_with, "the run has failed%s",
                         is_busy ? ": shmtrain_store_step says why" : ", and left nothing to take a snapshot of");
    if (params->n_tables == 0) return shmt_refuse(e, "there is nothing to take a snapshot of: no run has trained yet");
    return take(&from, params->is_of_run ? shmt_steps_told(run) : 0, out, e);
}

int shmt_snapshots_fetch(struct shmt_snapshots *s, struct shmt_parameters *params, const struct shmt_run *run, double seconds,
                         bool is_busy, struct shmt_taken **out, struct shmt_error *e) {
    *out = NULL;
    pthread_mutex_lock(&s->lock);
    int rc = s->open ? request(s, seconds, out, e) : 1;
    if (rc == 1) rc = take_final(s, params, run, is_busy, out, e);
    pthread_mutex_unlock(&s->lock);
    return rc;
}
