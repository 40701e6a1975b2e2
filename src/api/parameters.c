/* Parameters and the optimizer's state as the application sees them: in the backend of the last run as long as that is there,
 * else in memory of the handle. Between two runs they are taken out of one backend and given to the next. Rows are features
 * here; in which order a backend has them is the affair of places.h.
 *
 * State is kept with its parameters when the next run's optimizer can go on with it: the same rule with the same words for each
 * parameter (adam has others in the live modes than in `aggregate`); for ftrl, whose weights are a function of its state, also
 * with the same constants. Otherwise it begins anew, from the parameters as they are. */
#include <stdlib.h>
#include <string.h>

#include "api/places.h"
#include "api/store_priv.h"
#include "ps/flat.h"

/* Locked, as all that changes what the application's thread may be reading while this one runs in the background. */
static void destroy_backend(struct shmtrain_store *store) {
    struct shmt_store *live = load_relaxed(&store->live); /* this thread alone sets it */
    store_relaxed(&store->live, NULL);
    if (live) store->ops->destroy(live);
    shmt_visit_end(store);
}

static void forget_state(struct shmt_declared *d) {
    free(d->state);
    d->state = NULL;
}

void shmt_store_forget_tables(struct shmtrain_store *store) {
    pthread_mutex_lock(&store->lock);
    destroy_backend(store);
    for (uint32_t t = 0; t < store->n_tables; t++) {
        free(store->table[t].value);
        forget_state(&store->table[t]);
    }
    memset(store->table, 0, sizeof store->table);
    store->n_tables = 0;
    pthread_mutex_unlock(&store->lock);
    store->kept = (struct shmt_kept){0};
    store->has_run = store->is_of_run = false;
}

void shmt_store_move_in(struct shmtrain_store *store, struct shmt_declared *table, uint32_t n_tables,
                        struct shmt_trained *trained) {
    shmt_store_forget_tables(store);
    memcpy(store->table, table, n_tables * sizeof *table);
    store->n_tables = n_tables;
    store->has_run = true; /* there is something to save, and no table can be added to it */
    shmt_trained_clear(&store->trained);
    store->trained = *trained;
    memset(table, 0, n_tables * sizeof *table);
    *trained = (struct shmt_trained){0};
    shmt_snapshots_close(store, 0);
}

/* ---- between two runs ---- */

static int refuse_table(struct shmtrain_store *store, const struct shmt_declared *d) {
    return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory to keep table \"%s\" for the next run",
                     d->table.name);
}

static int take_table(struct shmtrain_store *store, struct shmt_store *live, int t, uint32_t planes) {
    struct shmt_declared *d = &store->table[t];
    const uint64_t floats = shmt_table_floats(&d->table);
    if (!d->value) d->value = malloc(floats * sizeof *d->value);
    if (!d->value) return refuse_table(store, d);
    int rc = shmt_places_read(store, live, t, 0, d->table.rows, d->value, &store->error);
    forget_state(d);
    if (rc < 0 || planes == 0) return rc;
    d->state = malloc(planes * floats * sizeof *d->state);
    if (!d->state) return refuse_table(store, d);
    for (uint32_t p = 0; p < planes && rc == 0; p++)
        rc = shmt_places_take_state(store, live, t, p, d->state + p * floats, &store->error);
    return rc;
}

/* Batches that were applied; in the live modes nobody asks. */
static uint64_t steps_of(const struct shmtrain_store *store, struct shmt_store *live) {
    uint64_t steps = store->spec.steps_before;
    /* relaxed: the workers have ended, and been waited for */
    for (uint32_t seat = 0; seat < store->spec.n_seats; seat++)
        steps += load_relaxed(&store->ops->counters(live, seat)->updates);
    return steps;
}

int shmt_store_take_parameters(struct shmtrain_store *store) {
    struct shmt_store *live = load_relaxed(&store->live); /* this thread alone sets it */
    if (!live) return 0;
    const uint32_t planes = shmt_flat_planes(&store->spec);
    for (uint32_t t = 0; t < store->n_tables; t++) {
        const int rc = take_table(store, live, (int)t, planes);
        if (rc < 0) return rc;
    }
    store->kept = (struct shmt_kept){
        .rule = store->spec.rule, .rate = store->spec.rate.base, .planes = planes, .steps = steps_of(store, live)};
    pthread_mutex_lock(&store->lock);
    destroy_backend(store);
    pthread_mutex_unlock(&store->lock);
    return 0;
}

bool shmt_store_has_state_for(const struct shmtrain_store *store, const struct shmt_spec *spec) {
    const struct shmt_rule *kept = &store->kept.rule, *rule = &spec->rule;
    if (store->kept.planes == 0 || kept->kind != rule->kind || store->kept.planes != shmt_flat_planes(spec)) return false;
    return kept->kind != SHMT_RULE_FTRL ||
           (kept->l1 == rule->l1 && kept->l2 == rule->l2 && kept->beta == rule->beta && store->kept.rate == spec->rate.base);
}

static int give_table(struct shmtrain_store *store, struct shmt_store *made, int t, bool with_state) {
    const struct shmt_declared *d = &store->table[t];
    const uint64_t floats = shmt_table_floats(&d->table);
    if (!d->value) return 0;
    with_state = with_state && d->state;
    int rc = shmt_places_give(store, made, t, d->value, with_state, &store->error);
    for (uint32_t p = 0; p < store->kept.planes && with_state && rc == 0; p++)
        rc = shmt_places_give_state(store, made, t, p, d->state + p * floats, &store->error);
    return rc;
}

int shmt_store_give_parameters(struct shmtrain_store *store, struct shmt_store *made) {
    const bool with_state = shmt_store_has_state_for(store, &store->spec);
    int rc = 0;
    pthread_mutex_lock(&store->lock);
    for (uint32_t t = 0; t < store->n_tables; t++) {
        struct shmt_declared *d = &store->table[t];
        if (rc == 0) rc = give_table(store, made, (int)t, with_state);
        free(d->value);
        d->value = NULL;
        forget_state(d);
    }
    store->kept = (struct shmt_kept){0};
    store_relaxed(&store->live, made); /* the lock publishes it */
    pthread_mutex_unlock(&store->lock);
    return rc;
}

/* ---- reading and writing ---- */

static int find_rows(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, struct shmt_declared **out,
                     struct shmt_error *e) {
    if (t < 0 || (uint32_t)t >= store->n_tables) return shmt_fail(e, SHMTRAIN_E_USAGE, "there is no table %d", t);
    const uint64_t rows = store->table[t].table.rows;
    if (n > rows || row > rows - n)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%s\" has %llu rows", store->table[t].table.name,
                         (unsigned long long)rows);
    *out = &store->table[t];
    return 0;
}

static int read_rows(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e) {
    struct shmt_declared *d = NULL;
    const int rc = find_rows(store, t, row, n, &d, e);
    if (rc < 0) return rc;
    struct shmt_store *live = load_relaxed(&store->live); /* the lock has it */
    if (live) return shmt_places_read(store, live, t, row, n, out, e);
    const uint64_t width = d->table.width;
    if (d->value)
        memcpy(out, d->value + row * width, n * width * sizeof *out);
    else
        memset(out, 0, n * width * sizeof *out);
    return 0;
}

int shmtrain_store_read(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, float *out) {
    struct shmt_error *e = shmt_call_error(store);
    pthread_mutex_lock(&store->lock);
    const int rc = read_rows(store, t, row, n, out, e);
    pthread_mutex_unlock(&store->lock);
    return rc;
}

int shmtrain_store_table_at(const struct shmtrain_store *store, int t, const char **name, uint64_t *rows, uint64_t *width) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&store->lock; /* a lock is no part of what stays the same */
    pthread_mutex_lock(lock);
    const struct shmt_declared *d = t >= 0 && (uint32_t)t < store->n_tables ? &store->table[t] : NULL;
    if (d && name) *name = d->table.name;
    if (d && rows) *rows = d->table.rows;
    if (d && width) *width = d->table.width;
    pthread_mutex_unlock(lock);
    return d ? 0 : SHMTRAIN_E_USAGE;
}

int shmtrain_store_write(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, const float *in) {
    struct shmt_declared *d = NULL;
    int rc = shmt_call_idle(store); /* from here on the store is this thread's */
    if (rc == 0 && n > 0) rc = shmt_call_given(store, in, "values");
    if (rc < 0) return rc;
    rc = find_rows(store, t, row, n, &d, &store->error);
    if (rc < 0) return rc;
    struct shmt_store *live = load_relaxed(&store->live);
    if (store->visit.open)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         "store %s belongs to another program: its parameters can be read, but not set", store->visit.name);
    if (live) return shmt_places_write(store, live, t, row, n, in, &store->error);
    const uint64_t width = d->table.width;
    if (!d->value) d->value = calloc(d->table.rows * width, sizeof *d->value);
    if (!d->value) return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for table \"%s\"", d->table.name);
    memcpy(d->value + row * width, in, n * width * sizeof *in);
    if (store->kept.rule.kind == SHMT_RULE_FTRL) forget_state(d); /* it says what the weights are, and they are others now */
    return 0;
}

int shmtrain_store_feature_id(struct shmtrain_store *store, uint64_t feature, uint64_t *id_out) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_trained_id(&store->trained, feature, id_out, &store->error);
}
