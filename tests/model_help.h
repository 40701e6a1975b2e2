/* For tests of models: runs a model on the plain backend, in ordinary memory, from parameters that are handed in. */
#pragma once

#include <shmtrain/model.h>
#include <stdlib.h>
#include <string.h>

#include "backends/plain.h"
#include "base/own.h"
#include "consistency/chunks.h"
#include "ps/session.h"
#include "train/opened.h"

struct training {
    const struct shmtrain_model *model;
    const struct shmtrain_data *data;
    enum shmt_write write;
    struct shmtrain_settings with; /* classes as in the data, unless set */
    uint32_t batch, epochs;        /* batch: also the item of the live modes */
    struct shmt_rate rate;
    float l2;
    const uint32_t *example; /* the examples at the places; NULL: as they stand */
    double loss;             /* out: the reported losses of the last epoch, summed */
};

/* An epoch of sync in one batch of all examples, at a constant rate: one step down the objective's own gradient. */
static struct training full_batches(const struct shmtrain_model *model, const struct shmtrain_data *data, uint32_t bias,
                                    float rate, float l2) {
    return (struct training){.model = model,
                             .data = data,
                             .write = SHMT_WRITE_AGGREGATE,
                             .with = {.bias = bias, .group = 64},
                             .batch = (uint32_t)data->n_examples,
                             .epochs = 1,
                             .rate = {.base = rate, .kind = SHMT_RATE_CONSTANT},
                             .l2 = l2};
}

static struct shmtrain_settings settings_of(const struct training *t) {
    struct shmtrain_settings with = t->with;
    if (!with.classes) {
        with.n_classes = t->data->n_labels;
        with.classes = t->data->classes;
    }
    return with;
}

static void spec_of(const struct training *t, struct shmt_spec *spec) {
    const struct shmtrain_settings with = settings_of(t);
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    *spec = (struct shmt_spec){.n_seats = 1,
                               .n_workers = 1,
                               .n_examples = t->data->n_examples,
                               .epochs = t->epochs,
                               .max_steps = SHMT_NO_LIMIT,
                               .policy = {.write = t->write, .staleness = t->write == SHMT_WRITE_RACY ? SHMT_STALENESS_INF : 0},
                               .batch = t->batch,
                               .n_chunks = shmt_chunks_of_batch(t->batch),
                               .item = t->batch,
                               .order = {.n_examples = t->data->n_examples},
                               .rate = t->rate,
                               .rule = {.l2 = t->l2}};
    spec->n_tables = t->model->tables(t->data, &with, NULL, shape);
    for (uint32_t i = 0; i < spec->n_tables; i++) {
        memcpy(spec->table[i].name, shape[i].name, strlen(shape[i].name) + 1);
        spec->table[i].rows = shape[i].rows;
        spec->table[i].width = (uint32_t)shape[i].width;
        spec->l2_rows[i] = shape[i].l2_rows;
    }
}

/* For calls with at most n examples. */
static struct shmtrain_pass pass_of(const struct training *t, const struct shmtrain_settings *with, uint32_t n) {
    const struct shmt_opened opened = {.model = t->model};
    struct shmtrain_pass pass = {.size = sizeof(struct shmtrain_pass), .with = with};
    if (shmt_opened_make_workspace(&opened, t->data, with, n, &pass.workspace, NULL) < 0) fail_msg("no memory");
    return pass;
}

static int train_items(shmtrain_session *s, struct training *t, const struct shmtrain_pass *pass) {
    struct shmtrain_work w;
    int rc;
    while ((rc = shmtrain_next(s, &w)) == 1) {
        const struct shmtrain_batch batch = {.size = sizeof(struct shmtrain_batch),
                                             .data = t->data,
                                             .example = t->example ? t->example + w.first : NULL,
                                             .first = w.first,
                                             .n = (uint32_t)w.n};
        double loss = -1;
        if ((rc = t->model->step(s, pass, &batch, &loss)) < 0) return rc;
        if (w.epoch + 1 == t->epochs) t->loss += loss;
        if ((rc = shmtrain_clock(s, NULL)) < 0) return rc;
    }
    return rc;
}

/* Moves all tables, one behind the other, from w into the store or back. */
static void move_tables(const struct shmt_spec *spec, struct shmt_store *store, float *w, int back) {
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        const uint64_t rows = spec->table[t].rows;
        if (back)
            SHMT_BACKEND_PLAIN.store->read(store, (int)t, 0, rows, w);
        else
            SHMT_BACKEND_PLAIN.store->write(store, (int)t, 0, rows, w);
        w += rows * spec->table[t].width;
    }
}

/* One worker from the parameters in w, which it changes. Returns what the last session call did; its sentence in *e. */
static int try_to_train(struct training *t, float *w, struct shmt_error *e) {
    struct shmt_spec spec;
    struct shmt_store *store;
    shmtrain_session s;
    spec_of(t, &spec);
    if (SHMT_BACKEND_PLAIN.create(&spec, NULL, &store, e) != 0) return e->status;
    move_tables(&spec, store, w, 0);
    int rc = shmt_session_enter(&s, &SHMT_BACKEND_PLAIN, store, &spec, 0, 0, e);
    t->loss = 0;
    const struct shmtrain_settings with = settings_of(t);
    const struct shmtrain_pass pass = pass_of(t, &with, t->batch);
    if (rc == 0) rc = train_items(&s, t, &pass);
    shmt_own_free(pass.workspace);
    if (rc < 0) *e = s.error;
    shmt_session_leave(&s);
    move_tables(&spec, store, w, 1);
    SHMT_BACKEND_PLAIN.store->destroy(store);
    return rc;
}

static void train(struct training *t, float *w) {
    struct shmt_error e = {0};
    if (try_to_train(t, w, &e) < 0) fail_msg("%s", e.text);
}

/* The outputs and summed loss of the first n examples (or of t->example) at the parameters in w, in groups of at most `group`
 * examples. */
static void score_all(struct training *t, float *w, uint32_t n, uint32_t group, float *score, double *loss_out) {
    const struct shmtrain_settings with = settings_of(t);
    const struct shmtrain_pass pass = pass_of(t, &with, group);
    const uint32_t outputs = shmtrain_model_outputs(t->model, &with);
    struct shmt_spec spec;
    struct shmt_store *store;
    shmtrain_session s;
    spec_of(t, &spec);
    *loss_out = 0;
    assert_int_equal(SHMT_BACKEND_PLAIN.create(&spec, NULL, &store, NULL), 0);
    move_tables(&spec, store, w, 0);
    assert_int_equal(shmt_session_enter(&s, &SHMT_BACKEND_PLAIN, store, &spec, 0, 0, NULL), 0);
    for (uint32_t first = 0; first < n; first += group) {
        const struct shmtrain_batch batch = {.size = sizeof(struct shmtrain_batch),
                                             .data = t->data,
                                             .example = t->example ? t->example + first : NULL,
                                             .first = first,
                                             .n = n - first < group ? n - first : group};
        double loss = 0;
        assert_int_equal(t->model->score(&s, &pass, &batch, score + (uint64_t)first * outputs, &loss), 0);
        *loss_out += loss;
    }
    shmt_own_free(pass.workspace);
    shmt_session_leave(&s);
    move_tables(&spec, store, w, 1); /* scoring pushes nothing: the caller may compare */
    SHMT_BACKEND_PLAIN.store->destroy(store);
}
