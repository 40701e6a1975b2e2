/* The application's handle: making it, configuring it, stopping. Parameters are in parameters.c, runs in run.c (own worker
 * functions) and train.c (models on data). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/plan.h"
#include "api/store_priv.h"
#include "models/models.h"
#include "train/model_file.h"

int shmtrain_store_create(struct shmtrain_store **out) {
    struct shmtrain_store *store = calloc(1, sizeof *store);
    if (!store) return SHMTRAIN_E_MEMORY;
    store->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int rc = store->stop_fd < 0 ? SHMTRAIN_E_SYSTEM : shmt_config_init(&store->config, &store->error);
    if (rc < 0) {
        if (store->stop_fd >= 0) close(store->stop_fd);
        free(store);
        return rc;
    }
    *out = store;
    return 0;
}

void shmtrain_store_destroy(struct shmtrain_store *store) {
    if (!store) return;
    shmt_store_forget_tables(store);
    shmt_lease_close(store);
    shmt_config_fini(&store->config);
    shmt_plan_free(store->plan);
    close(store->stop_fd);
    free(store->epochs);
    free(store->dataset_name);
    free(store->valid_name);
    free(store->confusion);
    free(store);
}

const char *shmtrain_store_message(const struct shmtrain_store *store) {
    return store ? store->error.text : "no memory for a store, or no file descriptor is left (ulimit -n)";
}

/* ---- configuration ---- */

int shmtrain_store_set(struct shmtrain_store *store, const char *name, const char *value) {
    shmt_error_clear(&store->error);
    return shmt_config_set(&store->config, name, name, value, &store->error);
}

int shmtrain_store_set_from_environment(struct shmtrain_store *store) {
    shmt_error_clear(&store->error);
    return shmt_config_set_from_environment(&store->config, &store->error);
}

void shmtrain_store_listen(struct shmtrain_store *store, const struct shmtrain_listener *listener) {
    store->listener = listener ? *listener : (struct shmtrain_listener){0};
    store->log = (struct shmt_log){.line = store->listener.note, .arg = store->listener.arg};
}

/* ---- tables and models ---- */

static bool find_table(const struct shmtrain_store *store, const char *name) {
    for (uint32_t t = 0; t < store->n_tables; t++)
        if (strcmp(store->table[t].table.name, name) == 0) return true;
    return false;
}

int shmtrain_store_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width) {
    struct shmt_error *e = &store->error;
    shmt_error_clear(e);
    if (store->has_run) return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\": declare tables before the first run", name);
    if (store->n_tables == SHMT_MAX_TABLES)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\": at most %d tables", name, SHMT_MAX_TABLES);
    if (find_table(store, name)) return shmt_fail(e, SHMTRAIN_E_USAGE, "there is a table \"%.31s\" already", name);
    if (strcmp(name, "__metadata__") == 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "a table cannot be called \"%s\": the name means something else in model files",
                         name);
    if (width > UINT32_MAX)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\": width %llu is too large", name, (unsigned long long)width);
    struct shmt_declared *d = &store->table[store->n_tables];
    *d = (struct shmt_declared){.l2_rows = rows};
    if (strlen(name) >= sizeof d->table.name)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s...\": a name has at most 31 characters", name);
    memcpy(d->table.name, name, strlen(name));
    d->table.rows = rows;
    d->table.width = (uint32_t)width;
    const int rc = shmt_table_check(&d->table, e);
    return rc < 0 ? rc : (int)store->n_tables++;
}

int shmtrain_store_examples(struct shmtrain_store *store, uint64_t n) {
    shmt_error_clear(&store->error);
    if (n == 0 || n > UINT32_MAX) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "an epoch deals 1 to 4294967295 examples");
    store->n_examples = n;
    return 0;
}

const struct shmtrain_model *shmtrain_store_model_at(const struct shmtrain_store *store, size_t i) {
    size_t n_built_in = 0;
    while (shmt_model_at(n_built_in)) n_built_in++;
    if (i < n_built_in) return shmt_model_at(i);
    return i - n_built_in < store->n_offered ? store->offered[i - n_built_in] : NULL;
}

int shmtrain_store_offer(struct shmtrain_store *store, const struct shmtrain_model *model) {
    struct shmt_error *e = &store->error;
    const struct shmtrain_model *other;
    shmt_error_clear(e);
    if (!model->name || !model->name[0] || !model->tables || !model->step || !model->score)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "a model needs a name, tables, step and score");
    for (size_t i = 0; (other = shmtrain_store_model_at(store, i)); i++)
        if (strcmp(other->name, model->name) == 0)
            return shmt_fail(e, SHMTRAIN_E_USAGE, "there is a model \"%s\" already", model->name);
    if (store->n_offered == SHMT_MAX_OFFERED) return shmt_fail(e, SHMTRAIN_E_USAGE, "at most %d own models", SHMT_MAX_OFFERED);
    store->offered[store->n_offered++] = model;
    return 0;
}

const struct shmtrain_report *shmtrain_store_report(const struct shmtrain_store *store) { return &store->report; }

void shmtrain_store_stop(struct shmtrain_store *store) {
    const uint64_t one = 1;
    const int code = errno; /* a signal handler leaves errno as it was */
    const ssize_t written = write(store->stop_fd, &one, sizeof one);
    (void)written; /* fails when it was asked 2^64 - 2 times already, and not heard yet */
    errno = code;
}
