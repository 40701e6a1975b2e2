/* A comparison as one JSON object: each run's report as the library writes it (of several seeds, that of the seed whose final loss
 * is the median), medians, and the figures of every seed. No key that is added here is one of the report's; docs/modes.md says what
 * each of them is. See compare.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/compare/page.h"

json_t *compare_number(double x) { return isfinite(x) ? json_real(x) : json_null(); }

json_t *compare_text(const char *text) {
    json_t *string = json_string(text);
    char *ascii = string ? NULL : strdup(text);
    for (char *at = ascii; at && *at; at++) *at = *at & 0x80 ? '?' : *at;
    if (ascii) string = json_string(ascii);
    free(ascii);
    return string;
}

static json_t *seed_of(const struct compare_seed *seed) {
    const struct shmtrain_report *r = seed->kept ? &seed->kept->report : NULL;
    json_t *o = json_object();
    json_object_set_new(o, "seed", json_integer((json_int_t)seed->seed));
    json_object_set_new(o, "time_to_target", compare_number(seed->to_target_s));
    json_object_set_new(o, "epochs_to_target", compare_number(seed->to_target_epochs));
    json_object_set_new(o, "final_loss", compare_number(seed->final_loss));
    json_object_set_new(o, "lowest_loss", compare_number(seed->lowest_loss));
    json_object_set_new(o, "train_seconds", compare_number(r ? r->train_seconds : NAN));
    json_object_set_new(o, "examples_per_second", compare_number(seed->speed));
    json_object_set_new(o, "seconds_per_epoch", compare_number(seed->epoch_s));
    json_object_set_new(o, "speed_up", compare_number(seed->speed_up));
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
    json_object_set_new(o, "asked_for", compare_text(run->mode));
    json_object_set_new(o, "time_to_target", compare_number(run->to_target_s));
    json_object_set_new(o, "epochs_to_target", compare_number(run->to_target_epochs));
    json_object_set_new(o, "final_loss", compare_number(run->final_loss));
    json_object_set_new(o, "lowest_loss", compare_number(run->lowest_loss));
    json_object_set_new(o, "seconds_per_epoch", compare_number(run->epoch_s));
    if (c->n_workers > 0) {
        json_object_set_new(o, "workers_asked_for", json_integer(run->workers));
        json_object_set_new(o, "speed_up", compare_number(run->speed_up));
    }
    json_object_set_new(o, "seeds", seeds_of(run));
    json_object_set_new(o, "rates_tried", json_integer(c->rates > 1 ? c->rates : 1));
    if (run->kept) return o;
    json_object_set_new(o, "status", run->tried ? json_string(shmtrain_status_name(run->status)) : json_null());
    json_object_set_new(o, run->status == SHMTRAIN_E_USAGE ? "refused" : "failed",
                        compare_text(run->tried ? run->why : "not run"));
    return o;
}

json_t *compare_json(const struct comparison *c) {
    json_t *o = json_object(), *runs = json_array();
    int rc = o && runs ? 0 : -1;
    json_object_set_new(o, "target", compare_number(c->target));
    json_object_set_new(o, "target_of", json_string(c->validates ? "valid_loss" : "train_loss"));
    json_object_set_new(o, "data", compare_text(c->title));
    for (unsigned i = 0; i < c->n && rc == 0; i++) rc = json_array_append_new(runs, run_of(c, &c->run[i]));
    if (json_object_set_new(o, "runs", runs) < 0) rc = -1;
    if (rc == 0) return o;
    json_decref(o);
    return NULL;
}

int compare_put_json(const struct comparison *c, FILE *out) {
    json_t *o = compare_json(c);
    int rc = o ? 0 : -1;
    if (rc == 0 && json_dumpf(o, out, JSON_COMPACT | JSON_REAL_PRECISION(12)) < 0 && !ferror(out)) rc = -1;
    if (rc == 0) fputc('\n', out);
    json_decref(o);
    return rc;
}
