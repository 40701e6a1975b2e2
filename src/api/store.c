/* The application's handle: making it, and whose turn it is. What it is asked to do is in calls.c. */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/store_priv.h"
#include "keeping/parameters.h"
#include "loading/arrays.h"
#include "scoring/quality.h"
#include "watching/progress.h"
#include "watching/report.h"
#include "watching/trace.h"
#include "watching/validation.h"

/* Each part knows those that it needs. `config`: its own, or that of the store that it plans for. */
static void join_parts(struct shmtrain_store *s, const struct shmt_config *config) {
    s->loading = (struct shmt_loading){.call = &s->call, .config = config};
    s->scoring = (struct shmt_scoring){
        .call = &s->call, .config = config, .params = &s->params, .loading = &s->loading, .offered = &s->offered};
    s->run = (struct shmt_run){.call = &s->call,
                               .config = config,
                               .params = &s->params,
                               .loading = &s->loading,
                               .offered = &s->offered,
                               .report = SHMT_NO_REPORT,
                               .checkpoints = &s->checkpoints,
                               .costs = &s->costs,
                               .deaths = &s->deaths,
                               .fit = &s->fit,
                               .hosts = &s->hosts,
                               .lease = &s->lease,
                               .metrics = &s->metrics,
                               .penalty = &s->penalty,
                               .recording = &s->recording,
                               .snapshots = &s->snapshots,
                               .stalls = &s->stalls,
                               .standard = &s->standard,
                               .steps = &s->steps,
                               .visit = &s->visit};
    shmt_parameters_init(&s->params);
    shmt_snapshots_init(&s->snapshots);
}

int shmtrain_store_create(struct shmtrain_store **out) {
    struct shmtrain_store *store = calloc(1, sizeof *store);
    if (!store) return SHMTRAIN_E_MEMORY;
    store->call.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    const int rc = store->call.stop_fd < 0 ? SHMTRAIN_E_SYSTEM : shmt_config_init(&store->config, &store->call.error);
    if (rc < 0) {
        if (store->call.stop_fd >= 0) close(store->call.stop_fd);
        free(store);
        return rc;
    }
    join_parts(store, &store->config);
    *out = store;
    return 0;
}

static void free_run(struct shmt_run *run) {
    shmt_lease_close(run);
    shmt_visit_end(run);
    shmt_validation_forget(run);
    shmt_fit_free(run->fit);
    shmt_standard_free(run->standard);
    shmt_snapshots_fini(run->snapshots);
    shmt_progress_forget(run);
    shmt_costs_forget(run);
    shmt_readings_forget(&run->loading->passes);
    free(run->epochs);
    free(run->dataset_name);
    free(run->slow_text);
    free(run->valid_name);
}

void shmtrain_store_destroy(struct shmtrain_store *store) {
    if (!store) return;
    if (store->background) {
        /* In a process that the application has forked meanwhile there is no such thread, and nobody knows the store's state. */
        if (!shmt_background_is_here(store->background)) return;
        shmtrain_store_stop(store);
        shmt_background_end(store->background);
    }
    shmt_hosts_reap(&store->hosts);
    shmt_parameters_fini(&store->params);
    free_run(&store->run);
    shmt_config_fini(&store->config);
    shmt_plan_free(store->plan);
    shmt_arrays_forget(&store->loading);
    shmt_quality_forget(&store->scoring);
    shmt_offered_free(&store->offered);
    close(store->call.stop_fd);
    free(store);
}

struct shmtrain_store *shmt_handle_copy(const struct shmtrain_store *store) {
    struct shmtrain_store *own = calloc(1, sizeof *own);
    if (!own) return NULL;
    own->call = (struct shmt_call){.log = store->call.log, .stop_fd = store->call.stop_fd, .plans_only = true};
    own->offered = store->offered; /* its layers stay the store's */
    join_parts(own, &store->config);
    own->loading.arrays = store->loading.arrays;
    own->run.wants_snapshots = store->run.wants_snapshots;
    own->run.lend_bytes = store->run.lend_bytes;
    own->run.hooks = store->run.hooks;
    return own;
}

void shmt_handle_free_copy(struct shmtrain_store *own) {
    if (!own) return;
    shmt_parameters_fini(&own->params);
    free_run(&own->run);
    shmt_config_fini(&own->config);
    free(own);
}

const char *shmtrain_store_message(const struct shmtrain_store *store) {
    if (!store) return "not enough memory for a store, or no file descriptor left (ulimit -n)";
    return store->busy ? store->aside.text : store->call.error.text;
}

/* ---- calls beside a run ---- */

struct shmt_error *shmt_call_error(struct shmtrain_store *store) {
    struct shmt_error *e = store->busy ? &store->aside : &store->call.error;
    shmt_error_clear(e);
    return e;
}

int shmt_call_idle(struct shmtrain_store *store) {
    struct shmt_error *e = shmt_call_error(store);
    if (!store->busy) return 0;
    return shmt_refuse(e, "a run is in progress: wait for its end before this call");
}

int shmt_call_enter(struct shmtrain_store *store) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    shmt_stop_forget(&store->call);
    shmt_error_clear(&store->aside);
    store->busy = true;
    return 0;
}

int shmt_call_leave(struct shmtrain_store *store, int rc) {
    store->busy = false;
    return rc;
}
