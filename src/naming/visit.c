/* Visiting a store with a name: see visit.h. */
#include "naming/visit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/shm/shm.h"
#include "base/show.h"
#include "configuration/model_options.h"
#include "fitting/penalty.h"
#include "keeping/parameters.h"
#include "keeping/places.h"
#include "watching/report.h"
#include "workers/costs.h"
#include "workers/run.h"

static struct shmt_head *head_of(const struct shmt_run *run) {
    return shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_HEAD);
}

int shmt_visit_file(const struct shmt_run *run) { return shmt_shm_fd(run->job.store); }

/* ---- taking it in ---- */

/* What is found of a store, before the handle is touched. */
struct found {
    struct shmt_manifest *manifest;
    struct shmt_spec spec;
    struct shmt_store *store;
    struct shmtrain_epoch *epochs;
    char *names[2]; /* of training and validation data */
};

static void drop(struct found *f) {
    if (f->store) SHMT_BACKEND_SHM.store->destroy(f->store);
    free(f->manifest);
    free(f->epochs);
    free(f->names[0]);
    free(f->names[1]);
}

/* Every size is the checked manifest's; what the segment says is held against it once more. */
static int find(const char *name, bool as_guest, struct found *out, struct shmt_error *e) {
    struct shmt_error why = {0};
    int fd;
    out->manifest = malloc(sizeof *out->manifest);
    if (!out->manifest) return shmt_no_memory(e, "to join store %s", name);
    int rc = shmt_named_open(name, SHMT_NAMED_STORE, as_guest ? SHMT_NAMED_WRITE : SHMT_NAMED_READ, &fd, e);
    if (rc < 0) return rc;
    rc = shmt_manifest_read(fd, name, out->manifest, &out->spec, e);
    if (rc == 0) {
        const int flags = SHMT_ATTACH_NAMED | (as_guest ? 0 : SHMT_ATTACH_READ);
        rc = shmt_shm_attach(&out->spec, fd, flags, &out->store, &why);
        if (rc < 0) shmt_fail(e, rc, "store %s is refused: %s; shmtrain rm %s removes it", name, why.text, name);
    }
    close(fd); /* the backend has its own, of the same open file, with its lock */
    if (rc == 0) rc = shmt_places_check(name, &SHMT_BACKEND_SHM, out->store, &out->spec, e);
    if (rc < 0) return rc;
    out->epochs = calloc(out->spec.epochs, sizeof *out->epochs);
    out->names[0] = strdup(out->manifest->train.name);
    out->names[1] = strdup(out->manifest->valid.name);
    if (!out->epochs || !out->names[0] || !out->names[1]) return shmt_no_memory(e, "for the figures of store %s", name);
    return 0;
}

static void take_tables(struct shmt_run *run) {
    for (uint32_t t = 0; t < run->spec.n_tables; t++)
        run->params->table[t] =
            (struct shmt_declared){.table = run->spec.table[t], .l2_rows = run->spec.l2_rows[t], .tuning = run->spec.tuning[t]};
    run->params->n_tables = run->spec.n_tables;
    run->n_examples = run->spec.n_examples;
}

/* The data without its arrays: for settings, and for what prediction needs. */
static struct shmtrain_data data_of(const struct shmt_manifest *m) {
    const struct shmt_manifest_data *d = &m->train;
    struct shmtrain_data out = {.size = sizeof(struct shmtrain_data),
                                .n_examples = d->n_examples,
                                .n_nonzeros = d->n_nonzeros,
                                .n_features = d->n_features,
                                .n_labels = d->n_labels,
                                .classes = m->n_classes <= SHMTRAIN_MAX_CLASSES ? m->classes : NULL,
                                .label_low = d->label_low,
                                .label_high = d->label_high,
                                .mean_square = d->mean_square,
                                .best_loss = NAN};
    shmt_manifest_take_shape(d->shape, &out);
    return out;
}

/* Whether the tables are the model's for such data, so that it may read them: it trusts their shapes. */
static bool has_tables_of(const struct shmt_run *run, const struct shmtrain_model *model, const struct shmtrain_data *data) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    struct shmt_error ignored = {0};
    struct shmt_opened opened;
    if (shmt_opened_begin(model, data, &run->job.settings, &opened, &ignored) < 0) return false;
    const uint32_t n = shmt_opened_tables(&opened, data, &run->job.settings, shape);
    bool same = n == run->spec.n_tables;
    for (uint32_t t = 0; same && t < n; t++)
        same = strcmp(shape[t].name, run->spec.table[t].name) == 0 && shape[t].rows == run->spec.table[t].rows &&
               shape[t].width == run->spec.table[t].width;
    shmt_opened_end(&opened); /* names of tables may lie in its state */
    return same;
}

static void take_job(struct shmt_run *run) {
    const struct shmt_manifest *m = run->visit->manifest;
    const struct shmtrain_data data = data_of(m);
    struct shmt_job *job = &run->job;
    *job = (struct shmt_job){.backend = run->backend, .store = run->params->held.store, .spec = &run->spec};
    shmt_manifest_board(m, run->spec.epochs, &job->board);
    job->model = m->model[0] ? shmt_model_named(run->offered, m->model) : NULL; /* observers need not have it */
    struct shmt_error ignored = {0};
    if (job->model && shmt_model_texts_of_joined(m->model_options, job->model, &run->texts, &ignored) < 0) job->model = NULL;
    if (job->model) job->model = shmt_model_adapt(job->model, &run->texts);
    job->settings = (struct shmtrain_settings){.size = sizeof(struct shmtrain_settings),
                                               .bias = m->bias,
                                               .seed = run->spec.order.seed,
                                               .option = run->texts.option,
                                               .group = m->group,
                                               .threads = 1,
                                               .n_classes = m->n_classes,
                                               .classes = data.classes};
    shmt_offered_tell(run->offered, &job->settings);
    run->blas[0] = '\0';
    shmt_trained_clear(&run->params->trained);
    if (!job->model || !has_tables_of(run, job->model, &data)) return;
    shmt_trained_make(job->model, run->texts.joined, &data, m->bias, &m->features, &run->params->trained);
}

/* As shmt_fit_describe. */
static void take_fit(const struct shmt_manifest *m, struct shmtrain_report *r) {
    if (m->fit_tolerance == 0) return;
    r->optimizer = "exact";
    r->schedule = "none";
    if (m->fit_live != SHMT_LIVE_NO) {
        r->mode = m->fit_live == SHMT_LIVE_RACY ? "hogwild" : "async";
        r->write = shmt_write_name(m->fit_live == SHMT_LIVE_RACY ? SHMT_WRITE_RACY : SHMT_WRITE_ATOMIC);
    }
    r->tolerance = m->fit_tolerance;
    r->l1 = m->fit_l1;
    r->l2 = m->fit_l2;
    r->scaled = m->fit_scaled;
    r->choice_examples = m->choice_examples;
    r->choice_parts = m->choice_parts;
    r->choice_held = m->choice_held;
    r->choice_most_fits = m->choice_most_fits;
}

static void take_report(struct shmt_run *run) {
    const struct shmt_manifest *m = run->visit->manifest;
    struct shmtrain_report *r = &run->report;
    *r = SHMT_NO_REPORT;
    r->epoch = run->epochs;
    r->page_bytes = m->page_bytes;
    shmt_report_describe(run, m->n_threads);
    r->model = m->model;
    take_fit(m, r);
    r->with_accuracy = m->with_accuracy;
    r->with_auc = m->with_auc;
    r->dataset.name = run->dataset_name;
    r->dataset.examples = m->train.examples;
    r->dataset.features = m->train.features;
    r->dataset.nonzeros = m->train.nonzeros;
    r->valid.name = run->valid_name;
    r->valid.examples = m->valid.examples;
    r->valid.features = m->valid.features;
    r->valid.nonzeros = m->valid.nonzeros;
    r->best_loss = m->valid.best_loss;
    r->numa_nodes = m->numa_nodes;
    r->blas = m->blas; /* the run's, whatever this program has */
    r->load_seconds = m->load_seconds;
}

int shmt_visit_begin(struct shmt_run *run, const char *name, bool as_guest) {
    struct found found = {0};
    const int rc = find(name, as_guest, &found, &run->call->error);
    if (rc < 0) {
        drop(&found);
        return rc;
    }
    shmt_parameters_forget(run->params);
    shmt_visit_end(run); /* an earlier one */
    shmt_costs_forget(run);
    run->costs->of_others = true;
    free(run->epochs);
    free(run->dataset_name);
    free(run->valid_name);
    run->epochs = found.epochs;
    run->dataset_name = found.names[0];
    run->valid_name = found.names[1];
    run->backend = &SHMT_BACKEND_SHM;
    run->spec = found.spec;
    run->fits = run->scales = false; /* an earlier run of its own may have been one, with reasons and a choice of its own */
    run->mode_taken = run->mode_reason = NULL;
    run->copies_reason[0] = '\0';
    shmt_penalty_forget(run);
    *run->visit = (struct shmt_visit){.open = true, .as_guest = as_guest, .manifest = found.manifest};
    memcpy(run->visit->name, name, strlen(name) + 1);
    run->began_ns = found.manifest->began_ns;
    run->params->held =
        (struct shmt_held){.backend = run->backend, .spec = &run->spec, .store = found.store, .owner = run->visit->name};
    run->params->has_run = true;
    take_tables(run);
    take_job(run);
    take_report(run);
    shmt_visit_refresh(run);
    return 0;
}

void shmt_visit_end(struct shmt_run *run) {
    if (!run->visit->open) return;
    run->report = SHMT_NO_REPORT; /* its names are the manifest's */
    free(run->visit->manifest);
    free(run->visit->seat);
    *run->visit = (struct shmt_visit){0};
}

/* ---- how it goes ---- */

static int fail_failed(const struct shmt_run *run, struct shmt_error *e) {
    const struct shmt_error *why = &head_of(run)->outcome.error; /* somebody else's memory: to its end at most */
    char text[SHMT_ERROR_TEXT];
    memcpy(text, why->text, sizeof text);
    text[sizeof text - 1] = '\0';
    shmt_show_plainly(text);
    return shmt_fail(e, SHMTRAIN_E_DIED, "the run of store %s failed: %s", run->visit->name, text);
}

int shmt_visit_state(struct shmt_run *run, struct shmt_error *e) {
    const struct shmt_manifest *m = run->visit->manifest;
    /* Looked at twice: who ends its run says so first, and drops the mark then. acquire: pairs with the release of who made
     * it. */
    for (int look = 0; look < 2; look++) {
        const uint32_t state = load_acquire(&head_of(run)->state);
        if (state == SHMT_STATE_OVER) return 0;
        if (state == SHMT_STATE_FAILED) return fail_failed(run, e);
        if (shmt_named_runs(shmt_visit_file(run))) return 1;
    }
    return shmt_fail(e, SHMTRAIN_E_DIED, "the run of store %s has died: process %d, which made it, has ended", run->visit->name,
                     m->pid);
}

static void take_outcome(struct shmt_run *run) {
    const struct shmt_outcome *o = &head_of(run)->outcome;
    struct shmtrain_report *r = &run->report;
    r->seconds = o->seconds;
    r->train_seconds = o->train_seconds;
    shmt_costs_take(run, run->began_ns + (o->seconds > 0 && o->seconds < 1e9 ? (uint64_t)(o->seconds * 1e9) : 0));
    r->first_step_seconds = o->first_step_seconds;
    r->examples_per_second = o->examples_per_second;
    r->wait_fraction = o->wait_fraction;
    r->lost_updates = o->lost_updates;
    r->lost_lowest = o->lost_lowest;
    r->lost_highest = o->lost_highest;
    r->examples = o->examples;
    r->updates = o->updates;
    r->parameter_bytes = o->parameter_bytes;
    r->parameters_xxh64 = o->parameters_xxh64;
    r->stopped = o->stopped != 0;
    run->visit->ended = true;
}

/* As shmt_fit_report; numbers that somebody else has written, to be shown. */
static void take_choice(const struct shmt_run *run, struct shmtrain_report *r) {
    const struct shmt_manifest *m = run->visit->manifest;
    if (m->choice_examples == 0) return;
    const unsigned char *board = shmt_array_at(run->backend, run->job.store, SHMT_ARRAY_BOARD);
    const struct shmt_solve_note *note = (const struct shmt_solve_note *)(const void *)(board + m->fit_note_off);
    r->choice_fits = load_relaxed(&note->fits); /* for display */
    if (r->n_epochs == 0) return;
    r->l2 = note->l2;
    r->scaled = note->scaled != 0;
    r->choice_loss = note->loss < INFINITY ? note->loss : NAN;
}

void shmt_visit_refresh(struct shmt_run *run) {
    /* acquire: pairs with the release of who made it: all epochs are pinned up, and the outcome is written */
    const uint32_t state = load_acquire(&head_of(run)->state);
    while (shmt_report_take_epoch(run)) continue;
    take_choice(run, &run->report);
    if (!run->visit->ended && (state == SHMT_STATE_OVER || state == SHMT_STATE_FAILED)) take_outcome(run);
}
