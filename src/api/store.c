/* The application's handle: making it, configuring it, stopping. Parameters are in parameters.c, runs in run.c (own worker
 * functions) and train.c (models on data). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/arrays.h"
#include "api/fit.h"
#include "api/plan.h"
#include "api/store_priv.h"
#include "api/validation.h"
#include "base/sized.h"
#include "models/models.h"
#include "train/model_file.h"

int shmtrain_store_create(struct shmtrain_store **out) {
    struct shmtrain_store *store = calloc(1, sizeof *store);
    if (!store) return SHMTRAIN_E_MEMORY;
    store->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int rc = store->stop_fd < 0 ? SHMTRAIN_E_SYSTEM : shmt_config_init(&store->config, &store->error);
    store->report = SHMT_NO_REPORT;
    if (rc < 0) {
        if (store->stop_fd >= 0) close(store->stop_fd);
        free(store);
        return rc;
    }
    pthread_mutex_init(&store->lock, NULL);
    shmt_snapshots_init(&store->snapshots);
    *out = store;
    return 0;
}

void shmtrain_store_destroy(struct shmtrain_store *store) {
    if (!store || (store->background && !shmt_background_end(store->background))) return;
    shmt_store_forget_tables(store);
    shmt_lease_close(store);
    shmt_config_fini(&store->config);
    shmt_plan_free(store->plan);
    shmt_arrays_forget(store);
    shmt_validation_forget(store);
    shmt_trained_clear(&store->trained);
    shmt_fit_free(&store->fit);
    shmt_standard_free(&store->standard);
    close(store->stop_fd);
    pthread_mutex_destroy(&store->lock);
    shmt_snapshots_fini(&store->snapshots);
    free(store->epochs);
    free(store->dataset_name);
    free(store->slow_text);
    free(store->valid_name);
    free(store->confusion);
    shmt_progress_forget(store);
    shmt_costs_forget(store);
    shmt_trace_forget(store);
    free(store);
}

const char *shmtrain_store_message(const struct shmtrain_store *store) {
    if (!store) return "not enough memory for a store, or no file descriptor left (ulimit -n)";
    return store->busy ? store->aside.text : store->error.text;
}

/* ---- calls beside a run ---- */

struct shmt_error *shmt_call_error(struct shmtrain_store *store) {
    struct shmt_error *e = store->busy ? &store->aside : &store->error;
    shmt_error_clear(e);
    return e;
}

int shmt_call_idle(struct shmtrain_store *store) {
    struct shmt_error *e = shmt_call_error(store);
    if (!store->busy) return 0;
    return shmt_fail(e, SHMTRAIN_E_USAGE, "a run is in progress: wait for its end before this call");
}

int shmt_call_given(struct shmtrain_store *store, const void *given, const char *what) {
    return given ? 0 : shmt_fail(&store->error, SHMTRAIN_E_USAGE, "this call needs %s, and was given NULL", what);
}

int shmt_call_enter(struct shmtrain_store *store) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    shmt_stop_forget(store);
    shmt_error_clear(&store->aside);
    store->busy = true;
    return 0;
}

void shmt_call_leave(struct shmtrain_store *store) { store->busy = false; }

/* ---- configuration ---- */

int shmtrain_store_set(struct shmtrain_store *store, const char *name, const char *value) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_given(store, name, "the name of an option");
    if (rc == 0) rc = shmt_call_given(store, value, "an option's value");
    if (rc < 0) return rc;
    return shmt_config_set(&store->config, name, name, value, &store->error);
}

int shmtrain_store_set_from_environment(struct shmtrain_store *store) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    return shmt_config_set_from_environment(&store->config, &store->error);
}

int shmtrain_store_listen(struct shmtrain_store *store, const struct shmtrain_listener *listener) {
    struct shmtrain_listener whole = {0};
    const int rc = listener
                       ? shmt_sized_take(&whole, sizeof whole, listener, SHMT_FIRST_SIZE(struct shmtrain_listener, checkpoint),
                                         "listener", store->busy || store->background ? &store->aside : &store->error)
                       : 0;
    if (rc < 0) return rc;
    if (store->background) {
        shmt_background_listen(store->background, &whole);
        return 0;
    }
    store->listener = whole;
    store->log = (struct shmt_log){.line = store->listener.note, .arg = store->listener.arg};
    return 0;
}

/* In a worker: its process has the store as of the fork, with the same descriptor. The word comes first: the next meeting sees
 * it, whenever the application does. A guest's stop is its own. */
static void stop_from_hook(void *arg) {
    struct shmtrain_store *store = arg;
    if (!store->job.guest) store->ops->stop(store->job.store);
    shmtrain_store_stop(store);
}

int shmtrain_store_hooks(struct shmtrain_store *store, const struct shmtrain_hooks *hooks) {
    struct shmt_hooks taken = {.ask_stop = stop_from_hook, .stop_arg = store};
    int rc = shmt_call_idle(store);
    if (rc == 0 && hooks)
        rc = shmt_sized_take(&taken.of, sizeof taken.of, hooks, SHMT_FIRST_SIZE(struct shmtrain_hooks, after_epoch), "hooks",
                             &store->error);
    if (rc < 0) return rc;
    store->hooks = hooks ? taken : (struct shmt_hooks){0};
    return 0;
}

/* ---- tables and models ---- */

static bool find_table(const struct shmtrain_store *store, const char *name) {
    for (uint32_t t = 0; t < store->n_tables; t++)
        if (strcmp(store->table[t].table.name, name) == 0) return true;
    return false;
}

int shmt_store_add_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width) {
    struct shmt_error *e = &store->error;
    if (store->has_run) return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\": declare tables before the first run", name);
    if (store->n_tables == SHMT_MAX_TABLES)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\": at most %d tables", name, SHMT_MAX_TABLES);
    if (find_table(store, name)) return shmt_fail(e, SHMTRAIN_E_USAGE, "table \"%.31s\" exists already", name);
    if (strcmp(name, "__metadata__") == 0 || strcmp(name, SHMT_MODEL_IDS) == 0)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "a table cannot be named \"%s\": the name has another meaning in model files",
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
    if (rc < 0) return rc;
    pthread_mutex_lock(&store->lock); /* the application may be reading, in the background */
    const int t = (int)store->n_tables++;
    pthread_mutex_unlock(&store->lock);
    return t;
}

int shmtrain_store_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_store_add_table(store, name, rows, width);
}

int shmtrain_store_examples(struct shmtrain_store *store, uint64_t n) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (n == 0 || n > UINT32_MAX) return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "an epoch has 1 to 4294967295 examples");
    store->n_examples = n;
    return 0;
}

const struct shmtrain_model *shmtrain_store_model_at(const struct shmtrain_store *store, size_t i) {
    size_t n_built_in = 0;
    while (shmt_model_at(n_built_in)) n_built_in++;
    if (i < n_built_in) return shmt_model_at(i);
    return i - n_built_in < store->n_offered ? &store->offered[i - n_built_in] : NULL;
}

bool shmt_store_has_offered(const struct shmtrain_store *store, const struct shmtrain_model *model) {
    for (uint32_t i = 0; i < store->n_offered; i++)
        if (model == &store->offered[i]) return true;
    return false;
}

int shmtrain_store_offer(struct shmtrain_store *store, const struct shmtrain_model *model) {
    struct shmt_error *e = &store->error;
    const struct shmtrain_model *other;
    struct shmtrain_model whole;
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_given(store, model, "a model");
    if (rc == 0)
        rc = shmt_sized_take(&whole, sizeof whole, model, SHMT_FIRST_SIZE(struct shmtrain_model, probabilities), "model", e);
    if (rc < 0) return rc;
    if (!whole.name || !whole.name[0] || !whole.tables || !whole.step || !whole.score)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "a model needs a name, tables, step and score");
    if (whole.task < SHMTRAIN_BINARY || whole.task > SHMTRAIN_CLASSES)
        return shmt_fail(e, SHMTRAIN_E_USAGE, "model \"%s\" has the task %d, which is none", whole.name, (int)whole.task);
    if (!whole.loss) whole.loss = "loss";
    if (!whole.about) whole.about = "";
    for (size_t i = 0; (other = shmtrain_store_model_at(store, i)); i++)
        if (strcmp(other->name, whole.name) == 0)
            return shmt_fail(e, SHMTRAIN_E_USAGE, "model \"%s\" exists already", whole.name);
    if (store->n_offered == SHMT_MAX_OFFERED) return shmt_fail(e, SHMTRAIN_E_USAGE, "at most %d own models", SHMT_MAX_OFFERED);
    store->offered[store->n_offered++] = whole;
    return 0;
}

const struct shmtrain_report *shmtrain_store_report(const struct shmtrain_store *store) {
    return store->background ? shmt_background_report(store->background) : &store->report;
}

void shmtrain_store_stop(struct shmtrain_store *store) {
    const uint64_t one = 1;
    const int code = errno; /* a signal handler leaves errno as it was */
    const ssize_t written = write(store->stop_fd, &one, sizeof one);
    (void)written; /* fails when it was asked 2^64 - 2 times already, and not heard yet */
    errno = code;
}
