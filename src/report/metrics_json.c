/* Lines about a run that goes on, one JSON object each: the lines of option `metrics`, and of applications that write their
 * own. Fields that nobody computed are null. */
#include "report/metrics_json.h"

#include "base/plain.h"
#include "report/json_priv.h"

static json_t *event(const char *what, double at) {
    json_t *o = json_object();
    json_object_set_new(o, "event", json_string(what));
    json_object_set_new(o, "at", shmt_json_number(at));
    return o;
}

char *shmt_begin_json(const struct shmtrain_report *r) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = event("begin", 0);
    shmt_json_add_choices(o, r);
    json_object_set_new(o, "load_seconds", shmt_json_number(r->load_seconds));
    return shmt_json_line(o);
}

static json_t *worker_of(uint32_t i, const struct shmtrain_worker_progress *w) {
    json_t *o = json_object();
    json_object_set_new(o, "worker", shmt_json_whole(i));
    json_object_set_new(o, "joined", json_boolean(w->joined));
    json_object_set_new(o, "examples", shmt_json_whole(w->examples));
    json_object_set_new(o, "examples_per_second", shmt_json_number(w->examples_per_second));
    json_object_set_new(o, "compute_fraction", shmt_json_number(w->compute_fraction));
    json_object_set_new(o, "wait_fraction", shmt_json_number(w->wait_fraction));
    json_object_set_new(o, "merge_fraction", shmt_json_number(w->merge_fraction));
    json_object_set_new(o, "dropped", shmt_json_whole(w->dropped));
    json_object_set_new(o, "folded", shmt_json_whole(w->folded));
    json_object_set_new(o, "delay", shmt_json_number(w->delay));
    json_object_set_new(o, "stalled", json_boolean(w->stalled));
    return o;
}

/* Those who are there. */
static json_t *workers_of(const struct shmtrain_progress *now) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < now->n_workers; i++)
        if (now->worker[i].here) json_array_append_new(list, worker_of(i, &now->worker[i]));
    return list;
}

char *shmtrain_progress_json(const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = event("progress", now->seconds);
    json_object_set_new(o, "mode", json_string(so_far->mode));
    json_object_set_new(o, "epoch", shmt_json_whole(now->epoch));
    json_object_set_new(o, "epochs", shmt_json_whole(now->epochs));
    json_object_set_new(o, "examples", shmt_json_whole(now->examples));
    json_object_set_new(o, "all_examples", shmt_json_whole(now->all_examples));
    json_object_set_new(o, "examples_per_second", shmt_json_number(now->examples_per_second));
    json_object_set_new(o, "loss", shmt_json_number(now->loss));
    json_object_set_new(o, "seconds_left", shmt_json_number(now->seconds_left));
    json_object_set_new(o, "delay", shmt_json_number(now->delay));
    json_object_set_new(o, "dropped", shmt_json_whole(now->dropped));
    json_object_set_new(o, "folded", shmt_json_whole(now->folded));
    json_object_set_new(o, "per_worker", workers_of(now));
    return shmt_json_line(o);
}

char *shmtrain_steps_json(const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = event("steps", steps->seconds);
    json_object_set_new(o, "mode", json_string(so_far->mode));
    json_object_set_new(o, "step", shmt_json_whole(steps->step));
    json_object_set_new(o, "epoch", shmt_json_whole(steps->epoch));
    json_object_set_new(o, "epochs", shmt_json_whole(steps->epochs));
    json_object_set_new(o, "examples", shmt_json_whole(steps->examples));
    json_object_set_new(o, "loss", shmt_json_number(steps->loss));
    json_object_set_new(o, "examples_per_second", shmt_json_number(steps->examples_per_second));
    return shmt_json_line(o);
}

char *shmtrain_epoch_json(const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch, double at) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = event("epoch", at);
    json_object_set_new(o, "mode", json_string(so_far->mode));
    shmt_json_add_epoch(o, epoch);
    return shmt_json_line(o);
}

char *shmt_end_json(const struct shmtrain_report *r, double at, const char *error) {
    SHMT_PLAIN_NUMBERS;
    json_t *o = event("end", at);
    json_object_set_new(o, "error", error ? shmt_json_text(error) : json_null());
    shmt_json_add_choices(o, r);
    shmt_json_add_results(o, r);
    return shmt_json_line(o);
}
