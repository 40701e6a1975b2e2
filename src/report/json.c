/* A report as one JSON object. Fields that nobody computed are null; names are those of <shmtrain/report.h>. */
#include <shmtrain/report.h>

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

/* 12 significant digits: more than any of these numbers has, and short to read. */
#define FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(12))

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t *whole(uint64_t n) { return json_integer((json_int_t)n); }

/* A path is bytes, JSON is UTF-8: what is not becomes question marks, so that the name is never missing. */
static json_t *text_of(const char *name) {
    json_t *text = json_string(name);
    if (text) return text;
    char *copy = strdup(name);
    if (!copy) return json_null();
    for (char *at = copy; *at; at++)
        if (*at & 0x80) *at = '?';
    text = json_string(copy);
    free(copy);
    return text;
}

static json_t *dataset_of(const char *name, uint64_t examples, uint64_t features, uint64_t nonzeros) {
    if (name[0] == '\0') return json_null();
    json_t *o = json_object();
    json_object_set_new(o, "name", text_of(name));
    json_object_set_new(o, "examples", whole(examples));
    json_object_set_new(o, "features", whole(features));
    json_object_set_new(o, "nonzeros", whole(nonzeros));
    return o;
}

static json_t *epoch_of(const struct shmtrain_epoch *epoch) {
    json_t *o = json_object();
    json_object_set_new(o, "epoch", whole(epoch->epoch));
    json_object_set_new(o, "partial", json_boolean(epoch->partial));
    json_object_set_new(o, "examples", whole(epoch->examples));
    json_object_set_new(o, "seconds", number(epoch->seconds));
    json_object_set_new(o, "train_loss", number(epoch->train_loss));
    json_object_set_new(o, "valid_loss", number(epoch->valid_loss));
    json_object_set_new(o, "valid_accuracy", number(epoch->valid_accuracy));
    json_object_set_new(o, "valid_auc", number(epoch->valid_auc));
    return o;
}

static json_t *epochs_of(const struct shmtrain_report *r) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->n_epochs; i++) json_array_append_new(list, epoch_of(&r->epoch[i]));
    return list;
}

static void add_choices(json_t *o, const struct shmtrain_report *r) {
    json_object_set_new(o, "mode", json_string(r->mode));
    json_object_set_new(o, "write", json_string(r->write));
    json_object_set_new(o, "staleness", r->staleness == UINT64_MAX ? json_string("inf") : whole(r->staleness));
    json_object_set_new(o, "quorum", whole(r->quorum));
    json_object_set_new(o, "replicas", json_string(r->replicas));
    json_object_set_new(o, "backend", json_string(r->backend));
    json_object_set_new(o, "workers", whole(r->workers));
    json_object_set_new(o, "threads", whole(r->threads));
    json_object_set_new(o, "model", text_of(r->model));
    json_object_set_new(o, "optimizer", json_string(r->optimizer));
    json_object_set_new(o, "rate", number(r->rate));
    json_object_set_new(o, "schedule", json_string(r->schedule));
    json_object_set_new(o, "l1", number(r->l1));
    json_object_set_new(o, "l2", number(r->l2));
    json_object_set_new(o, "batch", whole(r->batch));
    json_object_set_new(o, "item", whole(r->item));
    json_object_set_new(o, "seed", whole(r->seed));
    json_object_set_new(o, "guests", whole(r->guests));
    json_object_set_new(o, "numa", r->numa ? json_string(r->numa) : json_null());
    json_object_set_new(o, "numa_nodes", whole(r->numa_nodes));
    json_object_set_new(o, "page_bytes", whole(r->page_bytes));
    json_object_set_new(o, "blas", r->blas && r->blas[0] ? text_of(r->blas) : json_null());
}

static void add_results(json_t *o, const struct shmtrain_report *r) {
    char hash[17];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)r->parameters_xxh64);
    json_object_set_new(o, "best_loss", number(r->best_loss));
    json_object_set_new(o, "epochs", epochs_of(r));
    json_object_set_new(o, "stopped", json_boolean(r->stopped));
    json_object_set_new(o, "seconds", number(r->seconds));
    json_object_set_new(o, "load_seconds", number(r->load_seconds));
    json_object_set_new(o, "first_step_seconds", number(r->first_step_seconds));
    json_object_set_new(o, "train_seconds", number(r->train_seconds));
    json_object_set_new(o, "examples", whole(r->examples));
    json_object_set_new(o, "updates", whole(r->updates));
    json_object_set_new(o, "examples_per_second", number(r->examples_per_second));
    json_object_set_new(o, "wait_fraction", number(r->wait_fraction));
    json_object_set_new(o, "lost_updates", number(r->lost_updates));
    json_object_set_new(o, "parameter_bytes", whole(r->parameter_bytes));
    json_object_set_new(o, "parameters_xxh64", json_string(hash));
}

char *shmtrain_report_json(const struct shmtrain_report *r) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = json_object();
    add_choices(o, r);
    json_object_set_new(o, "dataset",
                        dataset_of(r->dataset.name, r->dataset.examples, r->dataset.features, r->dataset.nonzeros));
    json_object_set_new(o, "valid", dataset_of(r->valid.name, r->valid.examples, r->valid.features, r->valid.nonzeros));
    add_results(o, r);
    char *text = json_dumps(o, FLAGS);
    json_decref(o);
    if (!text) return NULL;
    const size_t n = strlen(text);
    char *line = realloc(text, n + 2);
    if (!line) {
        free(text);
        return NULL;
    }
    memcpy(line + n, "\n", 2);
    return line;
}
