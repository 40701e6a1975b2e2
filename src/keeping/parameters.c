/* Parameters between runs and beside them: see parameters.h. */
#include "keeping/parameters.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "files/model_file.h"
#include "ps/flat.h"

/* ---- tables ---- */

static bool find_table(const struct shmt_parameters *params, const char *name) {
    for (uint32_t t = 0; t < params->n_tables; t++)
        if (strcmp(params->table[t].table.name, name) == 0) return true;
    return false;
}

int shmt_parameters_add(struct shmt_parameters *params, const char *name, uint64_t rows, uint64_t width, struct shmt_error *e) {
    if (params->has_run) return shmt_refuse(e, "table \"%.31s\": declare tables before the first run", name);
    if (params->n_tables == SHMT_MAX_TABLES) return shmt_refuse(e, "table \"%.31s\": at most %d tables", name, SHMT_MAX_TABLES);
    if (find_table(params, name)) return shmt_refuse(e, "table \"%.31s\" exists already", name);
    if (strcmp(name, "__metadata__") == 0 || strcmp(name, SHMT_MODEL_IDS) == 0)
        return shmt_refuse(e, "a table cannot be named \"%s\": the name has another meaning in model files", name);
    if (width > UINT32_MAX) return shmt_refuse(e, "table \"%.31s\": width %llu is too large", name, (unsigned long long)width);
    struct shmt_declared *d = &params->table[params->n_tables];
    *d = (struct shmt_declared){.l2_rows = rows};
    if (strlen(name) >= sizeof d->table.name)
        return shmt_refuse(e, "table \"%.31s...\": a name has at most 31 characters", name);
    memcpy(d->table.name, name, strlen(name));
    d->table.rows = rows;
    d->table.width = (uint32_t)width;
    const int rc = shmt_table_check(&d->table, e);
    if (rc < 0) return rc;
    pthread_mutex_lock(&params->lock); /* the application may be reading, in the background */
    const int t = (int)params->n_tables++;
    pthread_mutex_unlock(&params->lock);
    return t;
}

/* Locked, as all that changes what the application's thread may be reading while this one runs in the background. */
static void destroy_backend(struct shmt_parameters *params) {
    const struct shmt_held was = params->held;
    params->held = (struct shmt_held){0};
    if (was.store) was.backend->store->destroy(was.store);
}

static void forget_state(struct shmt_declared *d) {
    free(d->state);
    d->state = NULL;
}

void shmt_parameters_forget(struct shmt_parameters *params) {
    pthread_mutex_lock(&params->lock);
    destroy_backend(params);
    for (uint32_t t = 0; t < params->n_tables; t++) {
        free(params->table[t].value);
        forget_state(&params->table[t]);
    }
    memset(params->table, 0, sizeof params->table);
    params->n_tables = 0;
    pthread_mutex_unlock(&params->lock);
    params->kept = (struct shmt_kept){0};
    params->has_run = params->is_of_run = false;
}

void shmt_parameters_move_in(struct shmt_parameters *params, struct shmt_declared *table, uint32_t n_tables,
                             struct shmt_trained *trained) {
    shmt_parameters_forget(params);
    memcpy(params->table, table, n_tables * sizeof *table);
    params->n_tables = n_tables;
    params->has_run = true; /* there is something to save, and no table can be added to it */
    shmt_trained_clear(&params->trained);
    params->trained = *trained;
    memset(table, 0, n_tables * sizeof *table);
    *trained = (struct shmt_trained){0};
}

void shmt_parameters_init(struct shmt_parameters *params) { pthread_mutex_init(&params->lock, NULL); }

void shmt_parameters_fini(struct shmt_parameters *params) {
    shmt_parameters_forget(params);
    shmt_trained_clear(&params->trained);
    pthread_mutex_destroy(&params->lock);
}

/* ---- between two runs ---- */

static int refuse_table(const struct shmt_declared *d, struct shmt_error *e) {
    return shmt_no_memory(e, "to keep table \"%s\" for the next run", d->table.name);
}

static int take_table(struct shmt_parameters *params, int t, uint32_t planes, struct shmt_error *e) {
    struct shmt_declared *d = &params->table[t];
    const uint64_t floats = shmt_table_floats(&d->table);
    if (!d->value) d->value = malloc(floats * sizeof *d->value);
    if (!d->value) return refuse_table(d, e);
    int rc = shmt_places_read(&params->held, t, 0, d->table.rows, d->value, e);
    forget_state(d);
    if (rc < 0 || planes == 0) return rc;
    d->state = malloc(planes * floats * sizeof *d->state);
    if (!d->state) return refuse_table(d, e);
    for (uint32_t p = 0; p < planes && rc == 0; p++) rc = shmt_places_take_state(&params->held, t, p, d->state + p * floats, e);
    return rc;
}

/* Batches that were applied; in the live modes nobody asks. */
static uint64_t steps_of(const struct shmt_held *held) {
    uint64_t steps = held->spec->steps_before;
    /* relaxed: the workers have ended, and been waited for */
    for (uint32_t seat = 0; seat < held->spec->n_seats; seat++)
        steps += load_relaxed(&held->backend->store->counters(held->store, seat)->updates);
    return steps;
}

int shmt_parameters_take(struct shmt_parameters *params, struct shmt_error *e) {
    const struct shmt_spec *spec = params->held.spec;
    if (!params->held.store) return 0;
    const uint32_t planes = shmt_flat_planes(spec);
    for (uint32_t t = 0; t < params->n_tables; t++) {
        const int rc = take_table(params, (int)t, planes, e);
        if (rc < 0) return rc;
    }
    params->kept =
        (struct shmt_kept){.rule = spec->rule, .rate = spec->rate.base, .planes = planes, .steps = steps_of(&params->held)};
    pthread_mutex_lock(&params->lock);
    destroy_backend(params);
    pthread_mutex_unlock(&params->lock);
    return 0;
}

bool shmt_parameters_have_state(const struct shmt_parameters *params, const struct shmt_spec *spec) {
    const struct shmt_rule *kept = &params->kept.rule, *rule = &spec->rule;
    if (params->kept.planes == 0 || kept->kind != rule->kind || params->kept.planes != shmt_flat_planes(spec)) return false;
    return kept->kind != SHMT_RULE_FTRL ||
           (kept->l1 == rule->l1 && kept->l2 == rule->l2 && kept->beta == rule->beta && params->kept.rate == spec->rate.base);
}

static int give_table(struct shmt_parameters *params, const struct shmt_held *to, int t, bool with_state,
                      struct shmt_error *e) {
    const struct shmt_declared *d = &params->table[t];
    const uint64_t floats = shmt_table_floats(&d->table);
    if (!d->value) return 0;
    with_state = with_state && d->state;
    int rc = shmt_places_give(to, t, d->value, with_state, e);
    for (uint32_t p = 0; p < params->kept.planes && with_state && rc == 0; p++)
        rc = shmt_places_give_state(to, t, p, d->state + p * floats, e);
    return rc;
}

int shmt_parameters_give(struct shmt_parameters *params, const struct shmt_held *to, struct shmt_error *e) {
    const bool with_state = shmt_parameters_have_state(params, to->spec);
    int rc = 0;
    pthread_mutex_lock(&params->lock);
    for (uint32_t t = 0; t < params->n_tables; t++) {
        struct shmt_declared *d = &params->table[t];
        if (rc == 0) rc = give_table(params, to, (int)t, with_state, e);
        free(d->value);
        d->value = NULL;
        forget_state(d);
    }
    params->kept = (struct shmt_kept){0};
    params->held = *to;
    pthread_mutex_unlock(&params->lock);
    return rc;
}

/* ---- reading and writing ---- */

static int find_rows(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, struct shmt_declared **out,
                     struct shmt_error *e) {
    if (t < 0 || (uint32_t)t >= params->n_tables) return shmt_refuse(e, "there is no table %d", t);
    const uint64_t rows = params->table[t].table.rows;
    if (n > rows || row > rows - n)
        return shmt_refuse(e, "table \"%s\" has %llu rows", params->table[t].table.name, (unsigned long long)rows);
    *out = &params->table[t];
    return 0;
}

static int read_rows(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e) {
    struct shmt_declared *d = NULL;
    const int rc = find_rows(params, t, row, n, &d, e);
    if (rc < 0) return rc;
    if (params->held.store) return shmt_places_read(&params->held, t, row, n, out, e);
    const uint64_t width = d->table.width;
    if (d->value)
        memcpy(out, d->value + row * width, n * width * sizeof *out);
    else
        memset(out, 0, n * width * sizeof *out);
    return 0;
}

int shmt_parameters_read(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e) {
    pthread_mutex_lock(&params->lock);
    const int rc = read_rows(params, t, row, n, out, e);
    pthread_mutex_unlock(&params->lock);
    return rc;
}

int shmt_parameters_write(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, const float *in,
                          struct shmt_error *e) {
    struct shmt_declared *d = NULL;
    const int rc = find_rows(params, t, row, n, &d, e);
    if (rc < 0) return rc;
    if (params->held.owner)
        return shmt_refuse(e, "store %s belongs to another program: its parameters can be read, but not set",
                           params->held.owner);
    if (params->held.store) return shmt_places_write(&params->held, t, row, n, in, e);
    const uint64_t width = d->table.width;
    if (!d->value) d->value = calloc(d->table.rows * width, sizeof *d->value);
    if (!d->value) return shmt_no_memory(e, "for table \"%s\"", d->table.name);
    memcpy(d->value + row * width, in, n * width * sizeof *in);
    if (params->kept.rule.kind == SHMT_RULE_FTRL) forget_state(d); /* it says what the weights are, and they are others now */
    return 0;
}

/* ---- their hash ---- */

static int hash_table(const struct shmt_parameters *params, uint32_t t, XXH64_state_t *state, shmt_parameters_see *see,
                      void *arg, struct shmt_error *e) {
    enum { AT_ONCE = 1 << 16 }; /* floats, but a row at least */
    const struct shmt_table_spec *table = &params->table[t].table;
    const uint64_t step = shmt_max_u64(1, AT_ONCE / table->width);
    float *rows = malloc(step * table->width * sizeof *rows);
    int rc = rows ? 0 : shmt_no_memory(e, "to hash the parameters");
    for (uint64_t row = 0; rc == 0 && row < table->rows; row += step) {
        const uint64_t n = shmt_min_u64(step, table->rows - row);
        rc = shmt_places_read(&params->held, (int)t, row, n, rows, e);
        if (rc < 0) break;
        XXH64_update(state, rows, n * table->width * sizeof *rows);
        if (see) see(arg, table, row, n, rows);
    }
    free(rows);
    return rc;
}

int shmt_parameters_hash(const struct shmt_parameters *params, shmt_parameters_see *see, void *arg, uint64_t *out,
                         struct shmt_error *e) {
    XXH64_state_t *state = XXH64_createState();
    if (!state) return shmt_no_memory(e, "to hash the parameters");
    int rc = 0;
    XXH64_reset(state, 0);
    for (uint32_t t = 0; rc == 0 && t < params->n_tables; t++) rc = hash_table(params, t, state, see, arg, e);
    if (rc == 0) *out = XXH64_digest(state);
    XXH64_freeState(state);
    return rc;
}
