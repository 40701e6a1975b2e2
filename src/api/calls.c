/* The application's calls: whether it is their turn, and which part of the handle is asked. What they do is their subject's. */
#include <errno.h>
#include <shmtrain/hosts.h>
#include <stdlib.h>
#include <unistd.h>

#include "api/measured.h"
#include "api/store_priv.h"
#include "base/sized.h"
#include "configuration/model_options.h"
#include "configuration/output.h"
#include "configuration/role.h"
#include "keeping/inspect.h"
#include "keeping/model_load.h"
#include "keeping/parameters.h"
#include "keeping/save.h"
#include "loading/arrays.h"
#include "loading/convert.h"
#include "loading/read.h"
#include "naming/join.h"
#include "running/running.h"
#include "scoring/stream.h"
#include "watching/progress.h"
#include "watching/validation.h"

/* ---- configuration ---- */

int shmtrain_store_set(struct shmtrain_store *store, const char *name, const char *value) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, name, "the name of an option");
    if (rc == 0) rc = shmt_call_check_given(&store->call, value, "an option's value");
    return rc < 0 ? rc : shmt_option_set(&store->config, &store->offered, name, value, &store->call.error);
}

int shmtrain_store_set_from_environment(struct shmtrain_store *store) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_options_from_environment(&store->config, &store->offered, &store->call.error);
}

int shmtrain_store_takes_part(struct shmtrain_store *store) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_role_check(&store->config, &store->call.error);
    return rc < 0 ? rc : shmt_role_has_part(&store->config);
}

int shmtrain_store_check_format(struct shmtrain_store *store, const char *format) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_save_check_format(&store->call, &store->config, format);
}

int shmtrain_store_will_save_as(struct shmtrain_store *store, const char *format) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_save_will_be(&store->call, &store->config, &store->params, format);
}

int shmtrain_store_check_output(struct shmtrain_store *store, const char *data, const char *path) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_output_check_new(&store->call, &store->config, data, path);
}

/* ---- what a run is to have ---- */

int shmtrain_store_listen(struct shmtrain_store *store, const struct shmtrain_listener *listener) {
    struct shmtrain_listener whole = {0};
    const int rc = listener
                       ? shmt_sized_take(&whole, sizeof whole, listener, SHMT_FIRST_SIZE(struct shmtrain_listener, checkpoint),
                                         "listener", store->busy || store->background ? &store->aside : &store->call.error)
                       : 0;
    if (rc < 0) return rc;
    if (store->background) {
        shmt_background_listen(store->background, &whole);
        return 0;
    }
    store->run.listener = whole;
    store->call.log = (struct shmt_log){.line = whole.note, .arg = whole.arg};
    return 0;
}

/* In a worker: its process has the store as of the fork, with the same descriptor. The word comes first: the next meeting sees
 * it, whenever the application does. A guest's stop is its own. */
static void stop_from_hook(void *arg) {
    struct shmtrain_store *store = arg;
    if (!store->run.job.guest) set_bits_relaxed(store->run.backend->store->stop_word(store->run.job.store), SHMT_STOP_ASKED);
    shmtrain_store_stop(store);
}

int shmtrain_store_hooks(struct shmtrain_store *store, const struct shmtrain_hooks *hooks) {
    struct shmt_hooks taken = {.ask_stop = stop_from_hook, .stop_arg = store};
    int rc = shmt_call_idle(store);
    if (rc == 0 && hooks)
        rc = shmt_sized_take(&taken.of, sizeof taken.of, hooks, SHMT_FIRST_SIZE(struct shmtrain_hooks, after_epoch), "hooks",
                             &store->call.error);
    if (rc < 0) return rc;
    store->run.hooks = hooks ? taken : (struct shmt_hooks){0};
    return 0;
}

int shmtrain_store_table(struct shmtrain_store *store, const char *name, uint64_t rows, uint64_t width) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_parameters_add(&store->params, name, rows, width, &store->call.error);
}

int shmtrain_store_examples(struct shmtrain_store *store, uint64_t n) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (n == 0 || n > UINT32_MAX) return shmt_refuse(&store->call.error, "an epoch has 1 to 4294967295 examples");
    store->run.n_examples = n;
    return 0;
}

int shmtrain_store_lend(struct shmtrain_store *store, uint64_t bytes) {
    const int rc = shmt_call_idle(store);
    if (rc < 0) return rc;
    if (bytes > INT64_MAX / SHMTRAIN_COLLECTIVE_WORKERS)
        return shmt_refuse(&store->call.error, "%llu bytes to lend are beyond all memory", (unsigned long long)bytes);
    store->run.lend_bytes = bytes;
    return 0;
}

int shmtrain_store_validate(struct shmtrain_store *store, const struct shmtrain_validation *validation) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_validation_take(&store->run, validation);
}

int shmtrain_store_arrays(struct shmtrain_store *store, const char *name, const struct shmtrain_arrays *arrays) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_arrays_give(&store->loading, name, arrays);
}

const struct shmtrain_model *shmtrain_store_model_at(const struct shmtrain_store *store, size_t i) {
    return shmt_offered_at(&store->offered, i);
}

int shmtrain_store_offer(struct shmtrain_store *store, const struct shmtrain_model *model) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, model, "a model");
    return rc < 0 ? rc : shmt_offered_add(&store->offered, model, &store->call.error);
}

int shmtrain_store_offer_layer(struct shmtrain_store *store, const struct shmtrain_layer_kind *kind) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, kind, "a layer");
    return rc < 0 ? rc : shmt_offered_add_layer(&store->offered, kind, &store->call.error);
}

/* ---- runs ---- */

int shmtrain_store_run(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_run_function(&store->run, worker, arg);
    shmt_snapshots_close(&store->snapshots, rc);
    return shmt_call_leave(store, rc);
}

int shmtrain_store_train(struct shmtrain_store *store, const char *data) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_measured_train(store, data);
    shmt_snapshots_close(&store->snapshots, rc);
    return shmt_call_leave(store, rc);
}

int shmtrain_store_join(struct shmtrain_store *store, const char *name, shmtrain_worker *worker, void *arg) {
    const int rc = shmt_call_enter(store);
    return rc < 0 ? rc : shmt_call_leave(store, shmt_join(&store->run, name ? name : "", worker, arg));
}

int shmtrain_store_observe(struct shmtrain_store *store, const char *name) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_visit_begin(&store->run, name ? name : "", false);
}

int shmtrain_store_plan(struct shmtrain_store *store, const char *data, const struct shmtrain_plan **out) {
    struct shmt_plan_kept *plan = NULL;
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    struct shmtrain_store *own = shmt_handle_copy(store);
    if (own) {
        rc = shmt_plan_make(&own->run, data, &plan);
        store->call.error = own->call.error;
    } else {
        rc = shmt_no_memory(&store->call.error, "for a plan of the machine");
    }
    shmt_handle_free_copy(own);
    if (shmt_call_leave(store, rc) < 0) return rc;
    shmt_plan_free(store->plan);
    store->plan = plan;
    *out = shmt_plan_of(plan);
    return 0;
}

void shmtrain_store_stop(struct shmtrain_store *store) {
    const uint64_t one = 1;
    const int code = errno; /* a signal handler leaves errno as it was */
    const ssize_t written = write(store->call.stop_fd, &one, sizeof one);
    (void)written; /* fails when it was asked 2^64 - 2 times already, and not heard yet */
    errno = code;
}

const struct shmtrain_report *shmtrain_store_report(const struct shmtrain_store *store) {
    return store->background ? shmt_background_report(store->background) : &store->run.report;
}

int shmtrain_store_look(struct shmtrain_store *store, const struct shmtrain_progress **out) {
    struct shmt_error *e = shmt_call_error(store);
    struct shmt_run *run = &store->run;
    int state = store->busy; /* a listener asks */
    if (store->background) {
        *out = shmt_background_look(store->background);
        return 1;
    }
    if (!store->params.has_run || !store->params.held.store) return shmt_refuse(e, "there is no run to look at");
    if (store->visit.open) {
        state = shmt_visit_state(run, e);
        shmt_visit_refresh(run); /* afterwards: of a run that is over, everything */
        if (state < 0) return state;
    }
    const struct shmtrain_progress *now = shmt_progress_look(run, state == 0);
    if (!now) return shmt_no_memory(e, "to show %u workers", run->spec.n_workers);
    *out = now;
    return state;
}

/* ---- runs in the background ---- */

static int start(struct shmtrain_store *store, shmtrain_worker *worker, void *arg, const char *data) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_background_start(store, &store->run, worker, arg, data, &store->background);
    return rc < 0 ? shmt_call_leave(store, rc) : 0;
}

int shmtrain_store_start(struct shmtrain_store *store, shmtrain_worker *worker, void *arg) {
    return start(store, worker, arg, NULL);
}

int shmtrain_store_start_training(struct shmtrain_store *store, const char *data) {
    return start(store, NULL, NULL, data ? data : "");
}

int shmtrain_store_fd(const struct shmtrain_store *store) {
    return store->background ? shmt_background_fd(store->background) : -1;
}

int shmtrain_store_step(struct shmtrain_store *store) {
    int status;
    if (!store->background) return 0;
    if (shmt_background_step(store->background, &status)) return 1;
    store->background = NULL;
    return shmt_call_leave(store, status);
}

/* ---- parameters ---- */

int shmtrain_store_read(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, float *out) {
    return shmt_parameters_read(&store->params, t, row, n, out, shmt_call_error(store));
}

int shmtrain_store_write(struct shmtrain_store *store, int t, uint64_t row, uint64_t n, const float *in) {
    int rc = shmt_call_idle(store); /* from here on the store is this thread's */
    if (rc == 0 && n > 0) rc = shmt_call_check_given(&store->call, in, "values");
    return rc < 0 ? rc : shmt_parameters_write(&store->params, t, row, n, in, &store->call.error);
}

int shmtrain_store_table_at(const struct shmtrain_store *store, int t, const char **name, uint64_t *rows, uint64_t *width) {
    pthread_mutex_t *lock = (pthread_mutex_t *)&store->params.lock; /* a lock is no part of what stays the same */
    pthread_mutex_lock(lock);
    const struct shmt_declared *d = t >= 0 && (uint32_t)t < store->params.n_tables ? &store->params.table[t] : NULL;
    if (d && name) *name = d->table.name;
    if (d && rows) *rows = d->table.rows;
    if (d && width) *width = d->table.width;
    pthread_mutex_unlock(lock);
    return d ? 0 : SHMTRAIN_E_USAGE;
}

int shmtrain_store_feature_id(struct shmtrain_store *store, uint64_t feature, uint64_t *id_out) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_trained_id(&store->params.trained, feature, id_out, &store->call.error);
}

const char *shmtrain_store_label_name(const struct shmtrain_store *store, float label) {
    return store->background ? NULL : shmt_trained_label_name(&store->params.trained, label);
}

/* Parameters from elsewhere are in the store now. */
static void end_visit(struct shmtrain_store *store) {
    shmt_visit_end(&store->run);
    shmt_snapshots_close(&store->snapshots, 0);
}

int shmtrain_store_load(struct shmtrain_store *store, const char *path) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, path, "the path of a model");
    if (rc == 0) rc = shmt_model_load(&store->call, &store->params, &store->offered, path);
    if (rc == 0) end_visit(store);
    return rc;
}

int shmtrain_store_save_as(struct shmtrain_store *store, const char *path, const char *format) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, path, "a path");
    if (rc == 0) rc = shmt_call_check_given(&store->call, format, "a format");
    return rc < 0 ? rc : shmt_save_as(&store->call, &store->params, &store->offered, path, format);
}

int shmtrain_store_save(struct shmtrain_store *store, const char *path) {
    return shmtrain_store_save_as(store, path, "safetensors");
}

int shmtrain_store_inspect_sized(struct shmtrain_store *store, const char *path, struct shmtrain_file_info *out,
                                 uint64_t out_bytes) {
    int rc = shmt_call_idle(store);
    if (rc == 0) rc = shmt_call_check_given(&store->call, path, "the path of a model");
    return rc < 0 ? rc : shmt_inspect(&store->call, &store->offered, path, out, out_bytes);
}

/* ---- snapshots ---- */

int shmtrain_store_will_snapshot(struct shmtrain_store *store, int on) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_snapshots_enable(&store->run, on != 0);
}

static int check_snapshot(const struct shmtrain_store *store, const struct shmtrain_store *into, double seconds,
                          struct shmt_error *e) {
    if (!into || into == store) return shmt_refuse(e, "a snapshot goes into another store");
    if (into->busy) return shmt_refuse(e, "a run of the store for the snapshot is in progress");
    if (!(seconds >= 0)) return shmt_refuse(e, "a snapshot is waited for 0 seconds or longer, not %g", seconds);
    if (!store->background && store->visit.open)
        return shmt_refuse(e, "store %s belongs to another program: only that program can take snapshots", store->visit.name);
    if (store->busy && !store->background)
        return shmt_refuse(e,
                           "a blocking call is in progress and cannot take snapshots: start the run with shmtrain_store_start "
                           "or _start_training");
    if (store->background && !shmt_background_is_here(store->background))
        return shmt_refuse(e, "the run belongs to the process that has started it");
    if (store->busy && !store->run.wants_snapshots)
        return shmt_refuse(e, "the run has no room for snapshots: call shmtrain_store_will_snapshot before it");
    return 0;
}

/* The model has to be known where it is used. One of the same name that does something else would be given tables that are not
 * its own. */
static int offer_model(const struct shmt_offered *ours, const char *name, struct shmt_offered *into, struct shmt_error *e) {
    const struct shmtrain_model *model = name ? shmt_model_named(ours, name) : NULL;
    const struct shmtrain_model *theirs = model ? shmt_model_named(into, name) : NULL;
    if (!model) return 0;
    if (theirs && theirs->tables == model->tables && theirs->score == model->score) return 0;
    if (theirs) return shmt_refuse(e, "the store for the snapshot offers a different model named \"%s\"", name);
    if (into->n == SHMT_MAX_OFFERED)
        return shmt_refuse(e, "the store for the snapshot offers %u models already, and has no room for \"%s\"", into->n, name);
    into->model[into->n++] = *model;
    return 0;
}

/* Likewise the layers that it may be made of. */
static int offer_layers(const struct shmt_offered *ours, struct shmt_offered *into, struct shmt_error *e) {
    int rc = 0;
    for (uint32_t i = 0; i < ours->n_layers && rc == 0; i++) {
        const struct shmtrain_layer_kind *kind = ours->layer[i], *theirs = shmt_offered_layer(into, kind->name);
        if (!theirs)
            rc = shmt_offered_add_layer(into, kind, e);
        else if (theirs->plan != kind->plan || theirs->forward != kind->forward)
            rc = shmt_refuse(e, "the store for the snapshot offers a different layer named \"%s\"", kind->name);
    }
    return rc;
}

int shmtrain_store_snapshot(struct shmtrain_store *store, struct shmtrain_store *into, double seconds, uint64_t *step_out) {
    struct shmt_error *e = shmt_call_error(store);
    struct shmt_taken *taken = NULL;
    int rc = check_snapshot(store, into, seconds, e);
    if (rc < 0) return rc;
    rc = shmt_snapshots_fetch(&store->snapshots, &store->params, &store->run, seconds, store->busy, &taken, e);
    if (rc == 0) rc = offer_model(&store->offered, taken->trained.model, &into->offered, e);
    if (rc == 0 && taken->trained.model) rc = offer_layers(&store->offered, &into->offered, e);
    if (rc == 0) { /* its texts are the application's */
        shmt_parameters_move_in(&into->params, taken->table, taken->n_tables, &taken->trained);
        end_visit(into);
    }
    if (rc == 0 && step_out) *step_out = taken->step;
    shmt_taken_free(taken);
    return rc;
}

/* ---- data, and what a model says of it ---- */

int shmtrain_store_convert(struct shmtrain_store *store, const char *data, const char *path) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_call_check_given(&store->call, data, "the name of data");
    if (rc == 0) rc = shmt_call_check_given(&store->call, path, "a path");
    if (rc == 0) rc = shmt_convert_file(&store->loading, data, path);
    return shmt_call_leave(store, rc);
}

int shmtrain_store_data_info_sized(struct shmtrain_store *store, const char *data, struct shmtrain_data_info *out,
                                   uint64_t out_bytes) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    struct shmtrain_data_info *whole = calloc(1, sizeof *whole);
    rc = whole ? shmt_data_info(&store->loading, data, whole) : shmt_no_memory(&store->call.error, "to look at data");
    if (rc == 0) shmt_sized_give(out, out_bytes, whole, sizeof *whole);
    free(whole);
    return shmt_call_leave(store, rc);
}

int shmtrain_store_read_data(struct shmtrain_store *store, const char *data, enum shmtrain_rows rows,
                             const struct shmtrain_data *like, const struct shmtrain_data **out) {
    const int rc = shmt_call_enter(store);
    return rc < 0 ? rc : shmt_call_leave(store, shmt_read_data(&store->loading, data, rows, like, out));
}

int shmtrain_store_evaluate(struct shmtrain_store *store, const char *data, const struct shmtrain_evaluation **out) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_call_leave(store, shmt_evaluate(&store->scoring, data));
    if (rc == 0 && out) *out = &store->scoring.evaluation;
    return rc;
}

int shmtrain_store_predict(struct shmtrain_store *store, const char *data, int probabilities, shmtrain_predicted *each,
                           void *arg) {
    const int rc = shmt_call_enter(store);
    return rc < 0 ? rc : shmt_call_leave(store, shmt_predict(&store->scoring, data, probabilities, each, arg));
}

int shmtrain_store_predict_images(struct shmtrain_store *store, const char *data, shmtrain_shown *each, void *arg) {
    const int rc = shmt_call_enter(store);
    return rc < 0 ? rc : shmt_call_leave(store, shmt_predict_images(&store->scoring, data, each, arg));
}

int shmtrain_store_predict_into(struct shmtrain_store *store, const char *data, const struct shmtrain_predictions *into) {
    const int rc = shmt_call_enter(store);
    return rc < 0 ? rc : shmt_call_leave(store, shmt_predict_into(&store->scoring, data, into));
}

int shmtrain_store_predict_stream(struct shmtrain_store *store, const struct shmtrain_stream *stream, int probabilities,
                                  shmtrain_predicted *each, void *arg) {
    struct shmtrain_stream whole;
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_call_check_given(&store->call, stream, "a stream");
    if (rc == 0) rc = shmt_call_check_given(&store->call, (const void *)(uintptr_t)each, "a function that hears predictions");
    if (rc == 0)
        rc = shmt_sized_take(&whole, sizeof whole, stream, SHMT_FIRST_SIZE(struct shmtrain_stream, pause), "stream",
                             &store->call.error);
    if (rc == 0 && !whole.name) whole.name = "the stream";
    if (rc == 0) rc = shmt_stream_check_lines(&store->call, &store->config);
    if (rc == 0) rc = shmt_stream_predict(&store->scoring, &whole, probabilities, each, arg);
    return shmt_call_leave(store, rc);
}

int shmtrain_store_outputs(struct shmtrain_store *store) {
    const int rc = shmt_call_idle(store);
    return rc < 0 ? rc : shmt_outputs(&store->call, &store->params, &store->offered);
}
