/* Snapshots for the application: see snapshots.h. */
#include "api/snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "api/places.h"
#include "api/store_priv.h"
#include "segment/budget.h"

#define LOOK_MS 1 /* until a pause has come, which may be any moment */

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

static void move_in(struct shmtrain_store *into, const struct origin *from, const struct shmt_declared *table,
                    const struct shmt_trained *trained) {
    shmt_store_forget_tables(into);
    memcpy(into->table, table, sizeof into->table);
    into->n_tables = from->store->n_tables;
    into->has_run = true; /* there is something to save, and no table can be added to it */
    shmt_trained_clear(&into->trained);
    into->trained = *trained;
    memcpy(into->offered, from->store->offered, sizeof into->offered); /* models are found by their names */
    into->n_offered = from->store->n_offered;
}

/* *into as it was, or all new. */
static int copy(const struct origin *from, struct shmtrain_store *into, struct shmt_error *e) {
    struct shmt_declared table[SHMT_MAX_TABLES] = {0};
    struct shmt_trained *trained = calloc(1, sizeof *trained); /* too large for a thread's stack */
    int rc = trained ? check_memory(from->store, e) : shmt_fail(e, SHMTRAIN_E_MEMORY, "not enough memory for a snapshot");
    for (uint32_t t = 0; t < from->store->n_tables && rc == 0; t++) rc = copy_table(from, t, &table[t], e);
    if (rc == 0 && from->trained) rc = shmt_trained_copy(from->trained, trained, e);
    if (rc == 0) move_in(into, from, table, trained);
    for (uint32_t t = 0; t < SHMT_MAX_TABLES && rc < 0; t++) free(table[t].value);
    if (rc < 0 && trained) shmt_trained_clear(trained);
    free(trained);
    return rc;
}

/* ---- the driver's thread ---- */

void shmt_snapshots_init(struct shmt_snapshots *s) {
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->answered, NULL);
}

void shmt_snapshots_fini(struct shmt_snapshots *s) {
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
}

/* With the lock. */
static void answer(struct shmt_snapshots *s, int status) {
    s->status = status;
    s->into = NULL;
    pthread_cond_signal(&s->answered);
}

static uint64_t step_of(const struct shmt_spec *spec, const struct shmt_snapshot *snapshot) {
    return snapshot->at.epoch * shmt_spec_steps(spec) + snapshot->at.step;
}

/* With the lock. A checkpoint may be written of the same snapshot: then it is not ours to release. */
static void serve(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    struct shmt_snapshot snapshot;
    if (!store->spec.pauses.allowed) {
        answer(s, shmt_fail(&s->error, SHMTRAIN_E_USAGE, "backend %s cannot take snapshots: use shm", store->ops->name));
        return;
    }
    if (!store->ops->snapshot(store->job.store, &snapshot)) {
        if (!s->asked) store->ops->ask(store->job.store);
        s->asked = true;
        return;
    }
    const struct origin from = {store, &snapshot, store->checkpoints.as};
    s->asked = false;
    s->step = step_of(&store->spec, &snapshot);
    answer(s, copy(&from, s->into, &s->error));
    if (store->config.checkpoint[0] == '\0') store->ops->release(store->job.store);
}

void shmt_snapshots_tick(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    if (!s->wanted) return;
    pthread_mutex_lock(&s->lock);
    if (s->into) serve(store);
    pthread_mutex_unlock(&s->lock);
}

int shmt_snapshots_due_ms(const struct shmtrain_store *store, int most) {
    return store->snapshots.asked && most > LOOK_MS ? LOOK_MS : most;
}

void shmt_snapshots_open(struct shmtrain_store *store) {
    struct shmt_snapshots *s = &store->snapshots;
    pthread_mutex_lock(&s->lock);
    s->asked = false;
    s->open = s->wanted;
    pthread_mutex_unlock(&s->lock);
}

/* Of parameters that nobody changes any more. */
static int copy_final(struct shmtrain_store *store, struct shmtrain_store *into, uint64_t *step_out, struct shmt_error *e) {
    const struct origin from = {store, NULL, store->trained.model ? &store->trained : NULL};
    const int rc = copy(&from, into, e);
    if (rc == 0) *step_out = store->spec.n_examples > 0 ? shmt_steps_told(store) : 0;
    return rc;
}

static int refuse_failed(int status, struct shmt_error *e) {
    return shmt_fail(e, status, "the run has failed: shmtrain_store_step says why");
}

void shmt_snapshots_close(struct shmtrain_store *store, int status) {
    struct shmt_snapshots *s = &store->snapshots;
    pthread_mutex_lock(&s->lock);
    s->asked = s->open = false;
    s->ended_with = status;
    if (s->into) answer(s, status < 0 ? refuse_failed(status, &s->error) : copy_final(store, s->into, &s->step, &s->error));
    pthread_mutex_unlock(&s->lock);
}

/* ---- the application's thread ---- */

int shmtrain_store_will_snapshot(struct shmtrain_store *store, int on) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    store->snapshots.wanted = on != 0;
    return 0;
}

static int check(struct shmtrain_store *store, const struct shmtrain_store *into, struct shmt_error *e) {
    if (!into || into == store) return shmt_fail(e, SHMTRAIN_E_USAGE, "a snapshot goes into another store");
    if (into->busy) return shmt_fail(e, SHMTRAIN_E_USAGE, "a run of the store for the snapshot is in progress");
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

/* With the lock. */
static int request(struct shmt_snapshots *s, struct shmtrain_store *into, uint64_t *step_out, struct shmt_error *e) {
    shmt_error_clear(&s->error);
    s->into = into;
    while (s->into) pthread_cond_wait(&s->answered, &s->lock);
    if (s->status < 0) return shmt_fail(e, s->status, "%s", s->error.text);
    *step_out = s->step;
    return 0;
}

int shmtrain_store_snapshot(struct shmtrain_store *store, struct shmtrain_store *into, uint64_t *step_out) {
    struct shmt_snapshots *s = &store->snapshots;
    struct shmt_error *e = shmt_call_error(store);
    uint64_t step = 0;
    int rc = check(store, into, e);
    if (rc < 0) return rc;
    pthread_mutex_lock(&s->lock);
    if (s->open)
        rc = request(s, into, &step, e);
    else if (store->busy && s->ended_with < 0)
        rc = refuse_failed(s->ended_with, e);
    else
        rc = copy_final(store, into, &step, e);
    pthread_mutex_unlock(&s->lock);
    if (rc == 0 && step_out) *step_out = step;
    return rc;
}
