/* Runs of the library in benches: see training.h. */
#include "bench/runs/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/floors/stream.h"
#include "bench/runs/examples.h"
#include "bench/runs/options.h"
#include "sync/host.h"

#define LINE 64 /* of a workspace */

/* ---- in the worker ---- */

struct lap {
    uint64_t began_ns, own_ns; /* by the clock; of the thread */
    double floor_ns;
    uint32_t epoch;
};

static void end_lap(struct shmt_timed *run, const struct lap *lap) {
    const double ns = (double)(shmt_now_ns() - lap->began_ns), own_ns = (double)(shmt_thread_ns() - lap->own_ns);
    if (lap->epoch == 0) return;
    run->epoch_ns = fmin(run->epoch_ns, ns);
    run->own_ns = fmin(run->own_ns, own_ns);
    run->floor_ns = fmin(run->floor_ns, lap->floor_ns);
}

static void begin_lap(struct shmt_timed *run, uint32_t epoch, struct lap *lap) {
    *lap = (struct lap){.epoch = epoch};
    if (run->with_floor) {
        const struct shmt_ranges bytes = shmt_ranges_of_examples(&run->data);
        lap->floor_ns = shmt_stream_ns(&bytes);
    }
    if (run->meeting) shmt_meet(run->meeting, run->half);
    lap->began_ns = shmt_now_ns();
    lap->own_ns = shmt_thread_ns();
}

/* What the library's own driver does with a model: order, step, report, clock. */
static int train(shmtrain_session *s, struct shmt_timed *run, const struct shmtrain_pass *pass, uint32_t *example) {
    struct shmtrain_work work;
    struct lap lap = {.epoch = UINT32_MAX};
    const bool chief = shmtrain_rank(s) == 0;
    int rc;
    while ((rc = shmtrain_next(s, &work)) == 1) {
        const struct shmtrain_batch batch = {
            .size = sizeof(struct shmtrain_batch), .data = &run->data, .example = example, .n = (uint32_t)work.n};
        double loss = 0;
        if (chief && work.epoch != lap.epoch) {
            if (lap.epoch != UINT32_MAX) end_lap(run, &lap);
            begin_lap(run, work.epoch, &lap);
        }
        if ((rc = shmtrain_order(s, &work, example)) < 0) return rc;
        if ((rc = run->model->step(s, pass, &batch, &loss)) < 0) return rc;
        if ((rc = shmtrain_report(s, loss)) < 0 || (rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    if (chief && rc == 0) end_lap(run, &lap);
    return rc;
}

/* Of models without a state. */
static uint64_t workspace_bytes(const shmtrain_session *s, const struct shmt_timed *run) {
    const uint32_t n = (uint32_t)shmtrain_item_max(s);
    const uint64_t bytes = run->model->workspace ? run->model->workspace(&run->data, &run->settings, NULL, n) : 0;
    return (bytes + LINE - 1) / LINE * LINE;
}

static int worker(shmtrain_session *s, void *arg) {
    struct shmt_timed *run = arg;
    uint32_t *example = malloc(run->data.n_examples * sizeof *example);
    const uint64_t bytes = workspace_bytes(s, run);
    const struct shmtrain_pass pass = {.size = sizeof(struct shmtrain_pass),
                                       .training = 1,
                                       .with = &run->settings,
                                       .workspace = bytes > 0 ? aligned_alloc(LINE, bytes) : NULL};
    const bool well = example && (bytes == 0 || pass.workspace);
    const int rc = well ? train(s, run, &pass, example) : SHMTRAIN_E_MEMORY;
    free(pass.workspace);
    free(example);
    return rc;
}

/* ---- a run ---- */

static const struct shmtrain_model *find_model(const struct shmtrain_store *store, const char *name) {
    const struct shmtrain_model *model = shmtrain_store_model_at(store, 0);
    for (uint32_t m = 0; name && model && strcmp(model->name, name) != 0; m++) model = shmtrain_store_model_at(store, m + 1);
    if (!model) shmt_measure_fail("unknown model %s", name);
    return model;
}

static void make_tables(struct shmtrain_store *store, struct shmt_timed *run) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES] = {0};
    const uint32_t n = run->model->tables(&run->data, &run->settings, NULL, shape);
    for (uint32_t t = 0; t < n; t++)
        shmt_handle_must(store, shmtrain_store_table(store, shape[t].name, shape[t].rows, shape[t].width));
}

void shmt_timed_train(struct shmt_timed *run, const struct shmt_timed_how *how) {
    struct shmtrain_store *store = shmt_handle_with("workers=%s mode=%s epochs=%u rate=0.5%s%s", how->workers, how->mode,
                                                    how->epochs, how->batch ? " batch=" : "", how->batch ? how->batch : "");
    run->model = find_model(store, how->model);
    run->settings = (struct shmtrain_settings){.size = sizeof(struct shmtrain_settings),
                                               .bias = 1,
                                               .group = how->group,
                                               .threads = 1,
                                               .n_classes = run->data.n_labels,
                                               .classes = run->data.classes};
    run->epoch_ns = run->own_ns = run->floor_ns = INFINITY;
    shmt_handle_must(store, shmtrain_store_examples(store, run->data.n_examples));
    make_tables(store, run);
    shmt_handle_must(store, shmtrain_store_run(store, worker, run));
    shmtrain_store_destroy(store);
}

struct shmt_timed *shmt_timed_make(const struct shmtrain_data *data) {
    struct shmt_timed *run = shmt_measure_shared(sizeof *run);
    run->data = *data;
    return run;
}

/* ---- two that share nothing ---- */

struct shmt_independent *shmt_independent_make(const struct shmtrain_data *data) {
    struct shmt_independent *i = shmt_measure_shared(sizeof *i);
    for (uint32_t h = 0; h < 2; h++) {
        const uint64_t n = data->n_examples / 2;
        const struct shmtrain_data half = shmt_part_of_examples(data, h * n, n);
        i->half[h] = shmt_timed_make(&half);
        i->half[h]->meeting = &i->meeting;
        i->half[h]->half = h;
    }
    return i;
}

static void independent_body(void *arg, uint32_t rank) {
    struct shmt_independent *i = arg;
    shmt_timed_train(i->half[rank], i->how);
}

void shmt_independent_train(struct shmt_independent *i, const struct shmt_timed_how *how) {
    i->meeting = (struct shmt_meeting){0};
    i->how = how;
    shmt_helpers_run(2, independent_body, i);
}
