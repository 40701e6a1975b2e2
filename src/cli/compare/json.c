/* A comparison as one JSON object: each run's report as the library writes it (of several seeds, that of the seed whose final loss
 * is the median), medians, and the figures of every seed. No key that is added here is one of the report's; docs/modes.md says what
 * each of them is. See compare.h. */
#include <jansson.h>
#include <math.h>

#include "cli/compare/compare.h"

static json_t *number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

/* A name may be no UTF-8. */
static json_t *text(const char *words) {
    json_t *t = json_string(words);
    return t ? t : json_string("?");
}

static json_t *seed_of(const struct compare_seed *seed) {
    const struct shmtrain_report *r = seed->kept ? &seed->kept->report : NULL;
    json_t *o = json_object();
    json_object_set_new(o, "seed", json_integer((json_int_t)seed->seed));
    json_object_set_new(o, "time_to_target", number(seed->to_target_s));
    json_object_set_new(o, "epochs_to_target", number(seed->to_target_epochs));
    json_object_set_new(o, "final_loss", number(seed->final_loss));
    json_object_set_new(o, "lowest_loss", number(seed->lowest_loss));
    json_object_set_new(o, "train_seconds", number(r ? r->train_seconds : NAN));
    json_object_set_new(o, "examples_per_second", number(seed->speed));
    json_object_set_new(o, "seconds_per_epoch", number(seed->epoch_s));
    json_object_set_new(o, "speed_up", number(seed->speed_up));
    json_object_set_new(o, "status", json_string(shmtrain_status_name(seed->status)));
    return o;
}

static json_t *seeds_of(const struct compare_run *run) {
    json_t *list = json_array();
    for (unsigned k = 0; k < run->n_seeds; k++) json_array_append_new(list, seed_of(&run->seed[k]));
    return list;
}

static json_t *run_of(const struct comparison *c, const struct compare_run *run) {
    json_t *o = run->kept ? json_loads(run->kept->json, 0, NULL) : json_object();
    if (!o) return NULL;
    json_object_set_new(o, "asked_for", text(run->mode));
    json_object_set_new(o, "time_to_target", number(run->to_target_s));
    json_object_set_new(o, "epochs_to_target", number(run->to_target_epochs));
    json_object_set_new(o, "final_loss", number(run->final_loss));
    json_object_set_new(o, "lowest_loss", number(run->lowest_loss));
    json_object_set_new(o, "seconds_per_epoch", number(run->epoch_s));
    if (c->n_workers > 0) {
        json_object_set_new(o, "workers_asked_for", json_integer(run->workers));
        json_object_set_new(o, "speed_up", number(run->speed_up));
    }
    json_object_set_new(o, "seeds", seeds_of(run));
    json_object_set_new(o, "rates_tried", json_integer(c->rates > 1 ? c->rates : 1));
    if (run->kept) return o;
    json_object_set_new(o, "status", run->tried ? json_string(shmtrain_status_name(run->status)) : json_null());
    json_object_set_new(o, run->status == SHMTRAIN_E_USAGE ? "refused" : "failed", text(run->tried ? run->why : "not run"));
    return o;
}

int compare_put_json(const struct comparison *c, FILE *out) {
    json_t *o = json_object(), *runs = json_array();
    int rc = o && runs ? 0 : -1;
    json_object_set_new(o, "target", number(c->target));
    json_object_set_new(o, "target_of", json_string(c->validates ? "valid_loss" : "train_loss"));
    json_object_set_new(o, "data", text(c->title));
    for (unsigned i = 0; i < c->n && rc == 0; i++) rc = json_array_append_new(runs, run_of(c, &c->run[i]));
    if (json_object_set_new(o, "runs", runs) < 0) rc = -1;
    if (rc == 0 && json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0 && !ferror(out)) rc = -1;
    if (rc == 0) fputc('\n', out);
    json_decref(o);
    return rc;
}
