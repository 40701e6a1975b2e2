/* What a run has cost, as the part of its report's JSON object: merging, delays, late gradients, and each worker. */
#include "report/json_priv.h"

static json_t *histogram_of(const struct shmtrain_delay *d) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_buckets; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "from", shmt_json_whole(d->bucket[i].from));
        json_object_set_new(o, "to", shmt_json_whole(d->bucket[i].to));
        json_object_set_new(o, "samples", shmt_json_whole(d->bucket[i].samples));
        json_array_append_new(list, o);
    }
    return list;
}

/* The numbers of a run in which nothing was measured mean nothing, whatever they are. */
static json_t *delay_number(const struct shmtrain_delay *d, double x) {
    return d->samples > 0 ? shmt_json_number(x) : json_null();
}

static json_t *delay_of(const struct shmtrain_delay *d) {
    json_t *o = json_object();
    json_object_set_new(o, "mean", delay_number(d, d->mean));
    json_object_set_new(o, "p50", delay_number(d, d->p50));
    json_object_set_new(o, "p99", delay_number(d, d->p99));
    json_object_set_new(o, "max", delay_number(d, d->max));
    json_object_set_new(o, "clocks", delay_number(d, d->clocks));
    json_object_set_new(o, "unit", json_string("updates"));
    json_object_set_new(o, "samples", shmt_json_whole(d->samples));
    json_object_set_new(o, "histogram", histogram_of(d));
    return o;
}

static json_t *waited_for_of(const struct shmtrain_worker_report *w) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < w->n_waited_for; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "worker", shmt_json_whole(w->waited_for[i].worker));
        json_object_set_new(o, "seconds", shmt_json_number(w->waited_for[i].seconds));
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *worker_of(uint32_t i, const struct shmtrain_worker_report *w) {
    json_t *o = json_object();
    json_object_set_new(o, "worker", shmt_json_whole(i));
    json_object_set_new(o, "joined", json_boolean(w->joined));
    json_object_set_new(o, "examples", shmt_json_whole(w->examples));
    json_object_set_new(o, "dropped", shmt_json_whole(w->dropped));
    json_object_set_new(o, "folded", shmt_json_whole(w->folded));
    json_object_set_new(o, "compute_seconds", shmt_json_number(w->compute_seconds));
    json_object_set_new(o, "wait_seconds", shmt_json_number(w->wait_seconds));
    json_object_set_new(o, "wait_epoch_seconds", shmt_json_number(w->wait_epoch_seconds));
    json_object_set_new(o, "merge_seconds", shmt_json_number(w->merge_seconds));
    json_object_set_new(o, "evaluate_seconds", shmt_json_number(w->evaluate_seconds));
    json_object_set_new(o, "checkpoint_seconds", shmt_json_number(w->checkpoint_seconds));
    json_object_set_new(o, "load_seconds", shmt_json_number(w->load_seconds));
    json_object_set_new(o, "delay", shmt_json_number(w->delay));
    json_object_set_new(o, "waited_for", waited_for_of(w));
    return o;
}

static json_t *workers_of(const struct shmtrain_report *r) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < r->n_workers; i++) json_array_append_new(list, worker_of(i, &r->worker[i]));
    return list;
}

void shmt_json_add_costs(json_t *o, const struct shmtrain_report *r) {
    json_object_set_new(o, "merge_fraction", shmt_json_number(r->merge_fraction));
    json_object_set_new(o, "merges", shmt_json_whole(r->merges));
    json_object_set_new(o, "dropped", shmt_json_whole(r->dropped));
    json_object_set_new(o, "folded", shmt_json_whole(r->folded));
    json_object_set_new(o, "delay", delay_of(&r->delay));
    json_object_set_new(o, "per_worker", workers_of(r));
}
