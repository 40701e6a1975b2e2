/* Mapping the data of a run that was joined: see guest_data.h. */
#include "naming/guest_data.h"

#include <string.h>
#include <unistd.h>

#include "naming/visit.h"
#include "loading/load.h"

/* ---- one set ---- */

static const void *array_at(const struct shmt_segment *segment, uint64_t off, uint64_t n, uint64_t each) {
    return off == SHMT_NOWHERE ? NULL : shmt_segment_at(segment, off, n * each); /* both were checked with the manifest */
}

static void locate(const struct shmt_manifest *m, const struct shmt_manifest_data *d, const struct shmt_segment *segment,
                   struct shmtrain_data *out) {
    *out = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                  .n_examples = d->n_examples,
                                  .n_nonzeros = d->n_nonzeros,
                                  .n_features = d->n_features,
                                  .n_labels = d->n_labels,
                                  .label_low = d->label_low,
                                  .label_high = d->label_high,
                                  .mean_square = d->mean_square,
                                  .best_loss = d->best_loss};
    shmt_manifest_take_shape(d->shape, out);
    /* The classes are the training data's; settings have them, where models look for them. */
    out->classes = d == &m->train && m->n_classes <= SHMTRAIN_MAX_CLASSES ? m->classes : NULL;
    out->start = array_at(segment, d->start_off, d->n_examples + 1, sizeof *out->start);
    out->id = array_at(segment, d->id_off, d->n_nonzeros, sizeof *out->id);
    out->value = array_at(segment, d->value_off, d->n_nonzeros, sizeof *out->value);
    out->dense = array_at(segment, d->dense_off, d->n_examples * d->n_features, sizeof *out->dense);
    out->label = array_at(segment, d->label_off, d->n_examples, sizeof *out->label);
    out->weight = array_at(segment, d->weight_off, d->n_examples, sizeof *out->weight);
}

static int open_set(struct shmt_run *run, enum shmt_named_part part, const struct shmt_manifest_data *d,
                    struct shmt_segment *segment, struct shmtrain_data *out) {
    const char *name = run->visit->name;
    struct shmt_error why = {0};
    int fd;
    int rc = shmt_named_open(name, part, SHMT_NAMED_READ, &fd, &run->call->error);
    if (rc < 0) return rc;
    rc = shmt_segment_attach(fd, 0, SHMT_ATTACH_NAMED | SHMT_ATTACH_READ, segment, &why);
    close(fd); /* the segment has its own */
    if (rc < 0) return shmt_fail(&run->call->error, rc, "the data of store %s is refused: %s", name, why.text);
    if (segment->bytes - SHMT_SEGMENT_HEADER_BYTES != d->bytes)
        return shmt_refuse(&run->call->error, "the data of store %s is refused: it has %llu bytes, not %llu", name,
                           (unsigned long long)(segment->bytes - SHMT_SEGMENT_HEADER_BYTES), (unsigned long long)d->bytes);
    locate(run->visit->manifest, d, segment, out);
    return shmt_manifest_check_data(name, out, &run->call->error);
}

/* ---- the model ---- */

static bool has_wanted_rows(const struct shmtrain_model *model, const struct shmtrain_data *data) {
    const enum shmt_row_layout wanted = shmt_rows_for(model);
    return wanted == SHMT_ROWS_EITHER || (wanted == SHMT_ROWS_DENSE) == (data->dense != NULL);
}

/* The model has the tables that the store has: a program may offer another one under the same name. */
static int check_tables(struct shmt_run *run, const struct shmtrain_model *model, const struct shmtrain_data *data) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    const struct shmt_spec *spec = &run->spec;
    const int rc = shmt_opened_begin(model, data, &run->job.settings, &run->job.opened, &run->call->error);
    if (rc < 0) return rc;
    const uint32_t n = shmt_opened_tables(&run->job.opened, data, &run->job.settings, shape);
    bool same = n == spec->n_tables && has_wanted_rows(model, data);
    for (uint32_t t = 0; same && t < n; t++)
        same = strcmp(shape[t].name, spec->table[t].name) == 0 && shape[t].rows == spec->table[t].rows &&
               shape[t].width == spec->table[t].width && shape[t].l2_rows == spec->l2_rows[t] &&
               shape[t].role == spec->tuning[t].role;
    if (same) return 0;
    return shmt_refuse(&run->call->error, "store %s trains a different \"%s\" than this program's", run->visit->name,
                       model->name);
}

static int check_model(struct shmt_run *run, const struct shmtrain_data *data) {
    const struct shmt_manifest *m = run->visit->manifest;
    const struct shmtrain_model *model = run->job.model;
    if (!model)
        return shmt_refuse(&run->call->error,
                           "store %s trains \"%s\", a model that this program does not have: offer it (shmtrain_store_offer)",
                           run->visit->name, m->model);
    const bool classes = model->task != SHMTRAIN_CLASSES || m->n_classes <= SHMTRAIN_MAX_CLASSES;
    if (!classes || m->n_outputs != shmtrain_model_outputs(model, &run->job.settings) || (model->check && model->check(data)))
        return shmt_refuse(&run->call->error, "store %s is refused: \"%s\" cannot be trained on its data", run->visit->name,
                           m->model);
    return check_tables(run, model, data);
}

/* ---- all ---- */

static int split(struct shmt_guest_data *data, struct shmt_run *run) {
    const struct shmt_manifest *m = run->visit->manifest;
    struct shmt_error why = {0};
    int rc = shmt_split_make(&data->split, run->spec.order.seed, data->train.n_examples, m->share, &why);
    if (rc == 0) rc = shmt_split_labels(&data->split, &data->train, &why);
    if (rc == SHMTRAIN_E_MEMORY) return shmt_fail(&run->call->error, rc, "store %s: %s", run->visit->name, why.text);
    if (rc < 0 || data->split.n_train != run->spec.n_examples)
        return shmt_refuse(&run->call->error, "store %s is refused: it sets different examples aside for validation",
                           run->visit->name);
    return 0;
}

/* Examples that are set aside are the training data's, and count alike, as in the maker's program. */
static void point_job(struct shmt_guest_data *data, struct shmt_run *run) {
    struct shmt_job *job = &run->job;
    job->train = &data->train;
    job->train_example = data->split.train_example;
    job->valid_example = data->split.valid_example;
    if (data->split.valid_label) {
        data->valid = data->train;
        data->valid.weight = NULL;
        job->valid = &data->valid;
        job->valid_label = data->split.valid_label;
    } else if (data->valid.label) {
        job->valid = &data->valid;
        job->valid_label = data->valid.label;
    }
}

int shmt_guest_data_open(struct shmt_guest_data *data, struct shmt_run *run) {
    const struct shmt_manifest *m = run->visit->manifest;
    if (!m->train.shared)
        return shmt_refuse(&run->call->error, "store %s keeps its data private, so workers cannot join it; it can be observed",
                           run->visit->name);
    int rc = open_set(run, SHMT_NAMED_DATA, &m->train, &data->segment[0], &data->train);
    if (rc == 0 && m->valid.shared) rc = open_set(run, SHMT_NAMED_VALID, &m->valid, &data->segment[1], &data->valid);
    if (rc == 0 && m->share > 0) rc = split(data, run);
    if (rc == 0) rc = check_model(run, &data->train);
    if (rc < 0) return rc;
    point_job(data, run);
    return 0;
}

void shmt_guest_data_close(struct shmt_guest_data *data) {
    shmt_split_free(&data->split);
    shmt_segment_detach(&data->segment[0]);
    shmt_segment_detach(&data->segment[1]);
    *data = (struct shmt_guest_data){0};
}
