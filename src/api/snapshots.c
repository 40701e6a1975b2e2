/* Snapshots for the application: see snapshots.h. */
#include "api/snapshots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "api/places.h"
#include "api/store_priv.h"
#include "base/clock.h"
#include "segment/budget.h"

#define LOOK_MS      1   /* until a pause has come, which may be any moment */
#define MOST_SECONDS 1e9 /* longer is for ever */

/* ---- the copy ---- */

/* What is copied: of a snapshot, or of the parameters as they are. */
struct origin {
    struct shmtrain_store *store;
    const struct shmt_snapshot *snapshot; /* NULL: as they are */
    const struct shmt_trained *trained;   /* what they are a model of */
};

/* Rows by feature, whatever place they have. Places are words of the segment: each is checked. */
static int copy_rows(const struct origin *from, uint32_t t, float *out, struct shmt_error *e) {
    const struct shmtrain_store *store = from->store;
    const struct shmt_table_spec *table = &store->table[t].table;
    const float *rows = from->snapshot->weight + from->snapshot->start[t];
    const uint32_t *place = t == 0 && store->spec.row_places ? store->ops->row_place(store->job.store) : NULL;
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
    const struct shmt_declared *d = &from->store->table[t];
    *out = (struct shmt_declared){.table = d->table, .l2_rows = d->l2_rows};
    out->value = malloc(shmt_table_floats(&d->table) * sizeof *out->value);
    if (!out->value) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a copy of table \"%s\"", d->table.name);
    if (from->snapshot) return copy_rows(from, t, out->value, e);
    const int rc = shmtrain_store_read(from->store, (int)t, 0, d->table.rows, out->value);
    return rc < 0 ? shmt_fail(e, rc, "table \"%s\" cannot be read", d->table.name) : 0;
}

static int check_memory(const struct shmtrain_store *store, struct shmt_error *e) {
    struct shmt_budget budget;
    uint64_t bytes = 0; /* no more than the run has */
    for (uint32_t t = 0; t < store->n_tables; t++) bytes += shmt_table_floats(&store->table[t].table) * sizeof(float);
    shmt_budget_read("", &budget);
    return shmt_budget_check(&budget, bytes, "a snapshot", NULL, "free some", e);
}

/* A model of a moment, made on one thread and handed over on another. */
struct shmt_taken {
    struct shmt_declared table[SHMT_MAX_TABLES];
    uint32_t n_tables;
    struct shmt_trained trained;
    uint64_t step;
};

static void free_taken(struct shmt_taken *taken) {
    if (!taken) return;
    for (uint32_t t = 0; t < SHMT_MAX_TABLES; t++) free(taken->table[t].value);
    shmt_trained_clear(&taken->trained);
    free(taken);
}

static int fill(const struct origin *from, struct shmt_taken *out, struct shmt_error *e) {
    int rc = check_memory(from->store, e);
    out->n_tables = from->store->n_tables;
    for (uint32_t t = 0; t < out->n_tables && rc == 0; t++) rc = copy_table(from, t, &out->table[t], e);
    if (rc == 0 && from->trained) rc = shmt_trained_copy(from->trained, &out->trained, e);
    return rc;
}

/* *out: to be freed, or NULL with an error. */
static int take(const struct origin *from, uint64_t step, struct shmt_taken **out, struct shmt_error *e) {
    struct shmt_taken *taken = *out = calloc(1, sizeof *taken);
    if (!taken) return shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a snapshot");
    taken->step = step;
    const int rc = fill(from, taken, e);
    if (rc == 0) return 0;
    free_taken(taken);
    *out = NULL;
    return rc;
}

/* ---- the driver's thread ---- */

void shmt_snapshots_init(struct shmt_snapshots *s) {
    pthread_condattr_t attr;
    s->wake_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* that of shmt_now_ns */
    pthread_cond_init(&s->answered, &attr);
    pthread_condattr_destroy(&attr);
}

void shmt_snapshots_fini(struct shmt_snapshots *s) {
    if (s->wake_fd >= 0) close(s->wake_fd);
    free_taken(s->taken);
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
}

int shmt_snapshots_fd(const struct shmtrain_store *store) { return store->snapshots.wake_fd; }

void shmt_snapshots_hear(const struct shmtrain_store *store) {
    uint64_t pokes;
    if (read(store->snapshots.wake_fd, &pokes, sizeof pokes) < 0) return; /* another look has heard it */
}

/* With the lock. Whoever waits, and whoever polls, hears of it. */
static void answer(struct shmtrain_store *store, int status, struct shmt_taken *taken) {
    struct shmt_snapshots *s = &store->snapshots;
    s->status = status;
    s->taken = taken;
    s->request = SHMT_REQUEST_ANSWERED;
    pthread_cond_signal(&s->answered);
    if (store->background) shmt_background_poke(store->background);
}

static bool is_requested(struct shmt_snapshots *s) {
    pthread_mutex_lock(&s->lock);
    const bool is = s->request == SHMT_REQUEST_ASKED;
    pthread_mutex_unlock(&s->lock);
    return is;
}

static void refuse_backend(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    shmt_error_clear(&s->error);
    pthread_mutex_lock(&s->lock);
    answer(store, shmt_fail(&s->error, SHMTRAIN_E_USAGE, "backend %s cannot take snapshots: use shm", store->ops->name), NULL);
    pthread_mutex_unlock(&s->lock);
}

void shmt_snapshots_tick(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    if (!s->wanted || s->asked || !is_requested(s)) return;
    if (!store->spec.pauses.allowed) {
        refuse_backend(store);
        return;
    }
    store->ops->ask(store->job.store);
    s->asked = true;
    s->asked_ns = shmt_now_ns();
}

static uint64_t step_of(const struct shmt_spec *spec, const struct shmt_snapshot *snapshot) {
    return snapshot->at.epoch * shmt_spec_steps(spec) + snapshot->at.step;
}

/* The lock is not held while the copy is made: the application's thread may look meanwhile. */
void shmt_snapshots_serve(struct shmtrain_store *store, const struct shmt_snapshot *snapshot) {
    struct shmt_snapshots *s = &store->snapshots;
    const struct origin from = {store, snapshot, store->checkpoints.as};
    struct shmt_taken *taken;
    s->asked = false;
    if (!s->wanted || !is_requested(s)) return;
    shmt_error_clear(&s->error);
    const int rc = take(&from, step_of(&store->spec, snapshot), &taken, &s->error);
    pthread_mutex_lock(&s->lock);
    answer(store, rc, taken);
    pthread_mutex_unlock(&s->lock);
}

/* Often at first, and the more rarely the longer it takes: a worker may be stopped. */
int shmt_snapshots_due_ms(const struct shmtrain_store *store, int most) {
    const struct shmt_snapshots *s = &store->snapshots;
    if (!s->asked) return most;
    const uint64_t look_ms = LOOK_MS + (shmt_now_ns() - s->asked_ns) / 8000000;
    return look_ms < (uint64_t)most ? (int)look_ms : most;
}

/* With the lock. */
static void forget_request(struct shmt_snapshots *s) {
    free_taken(s->taken);
    s->taken = NULL;
    s->request = SHMT_REQUEST_NONE;
}

void shmt_snapshots_open(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    pthread_mutex_lock(&s->lock);
    s->asked = false;
    s->open = s->wanted;
    pthread_mutex_unlock(&s->lock);
}

void shmt_snapshots_close(struct shmtrain_store *store, int status) {
    struct shmt_snapshots *s = &store->snapshots;
    pthread_mutex_lock(&s->lock);
    s->asked = s->open = false;
    s->ended_with = status;
    forget_request(s);
    pthread_cond_signal(&s->answered);
    pthread_mutex_unlock(&s->lock);
}

/* ---- the application's thread ---- */

int shmtrain_store_will_snapshot(struct shmtrain_store *store, int on) {
    struct shmt_snapshots *s = &store->snapshots;
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (on && s->wake_fd < 0) s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (on && s->wake_fd < 0) return shmt_fail_errno(&store->error, "cannot create a descriptor for snapshots");
    s->wanted = on != 0;
    return 0;
}

static int check(struct shmtrain_store *store, const struct shmtrain_store *into, double seconds, struct shmt_error *e) {
    if (!into || into == store) return shmt_fail(e, SHMTRAIN_E_USAGE, "a snapshot goes into another store");
    if (into->busy) return shmt_fail(e, SHMTRAIN_E_USAGE, "a run of the store for the snapshot is in progress");
    if (!(seconds >= 0)) return shmt_fail(e, SHMTRAIN_E_USAGE, "a snapshot is waited for 0 seconds or longer, not %g", seconds);
    if (store->visit.open)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "store %s belongs to another program: only that program can take snapshots",
                         store->visit.name);
    if (store->busy && !store->background)
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "a blocking call is in progress and cannot take snapshots: start the run with shmtrain_store_start or "
                         "_start_training");
    if (store->background && !shmt_background_is_here(store->background))
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the run belongs to the process that has started it");
    if (store->busy && !store->snapshots.wanted)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the run has no room for snapshots: call shmtrain_store_will_snapshot before it");
    return 0;
}

/* The model has to be known where it is used. One of the same name that does something else would be given tables that are not
 * its own. */
static int offer_model(const struct shmtrain_store *store, const char *name, struct shmtrain_store *into,
                       struct shmt_error *e) {
    const struct shmtrain_model *model = name ? shmt_store_model_named(store, name) : NULL;
    const struct shmtrain_model *theirs = model ? shmt_store_model_named(into, name) : NULL;
    if (!model) return 0;
    if (theirs && theirs->tables == model->tables && theirs->score == model->score) return 0;
    if (theirs) return shmt_fail(e, SHMTRAIN_E_USAGE, "the store for the snapshot offers a different model named \"%s\"", name);
    if (into->n_offered == SHMT_MAX_OFFERED)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "the store for the snapshot offers %u models already, and has no room for \"%s\"",
                         into->n_offered, name);
    into->offered[into->n_offered++] = *model;
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
    const uint64_t until_ns = shmt_now_ns() + (uint64_t)(seconds * 1e9);
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
static int take_final(struct shmtrain_store *store, struct shmt_taken **out, struct shmt_error *e) {
    const struct origin from = {store, NULL, store->trained.model ? &store->trained : NULL};
    if (store->snapshots.ended_with < 0)
        return shmt_fail(e, store->snapshots.ended_with, "the run has failed%s",
                         store->busy ? ": shmtrain_store_step says why" : ", and left nothing to take a snapshot of");
    if (store->n_tables == 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "there is nothing to take a snapshot of: no run has trained yet");
    return take(&from, store->is_of_run ? shmt_steps_told(store) : 0, out, e);
}

int shmtrain_store_snapshot(struct shmtrain_store *store, struct shmtrain_store *into, double seconds, uint64_t *step_out) {
    struct shmt_snapshots *s = &store->snapshots;
    struct shmt_error *e = shmt_call_error(store);
    struct shmt_taken *taken = NULL;
    int rc = check(store, into, seconds, e);
    if (rc < 0) return rc;
    pthread_mutex_lock(&s->lock);
    rc = s->open ? request(s, seconds, &taken, e) : 1;
    if (rc == 1) rc = take_final(store, &taken, e);
    pthread_mutex_unlock(&s->lock);
    if (rc == 0) rc = offer_model(store, taken->trained.model, into, e);
    if (rc == 0) shmt_store_move_in(into, taken->table, taken->n_tables, &taken->trained); /* its texts are the application's */
    if (rc == 0 && step_out) *step_out = taken->step;
    free_taken(taken);
    return rc;
}
