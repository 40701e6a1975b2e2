/* Lines about a run that goes on, one JSON object each: the lines of option `metrics`, and of applications that write their
 * own. Fields that nobody computed are null. */
#include "report/metrics_json.h"

#include "report/json_priv.h"

static bool is_here(const void *worker) { return ((const struct shmtrain_worker_progress *)worker)->here; }

static bool has_hosts(const void *progress) { return ((const struct shmtrain_progress *)progress)->hosts > 1; }

/* clang-format off */
static const struct shmt_field WORKER[] = {
    PLACE("worker"), FLAG(worker_progress, joined), FIELD(worker_progress, examples), FIELD(worker_progress, examples_per_second),
    FIELD(worker_progress, compute_fraction), FIELD(worker_progress, wait_fraction), FIELD(worker_progress, merge_fraction),
    FIELD(worker_progress, dropped), FIELD(worker_progress, folded), FIELD(worker_progress, delay), FLAG(worker_progress, stalled),
    {0}};

static const struct shmt_field TRAFFIC[] = {
    FIELD(progress, sent_bytes), FIELD(progress, received_bytes), FIELD(progress, exchanges),
    FIELD(progress, sent_bytes_per_second), FIELD(progress, received_bytes_per_second),
    {0}};

static const struct shmt_field PROGRESS[] = {
    FIELD(progress, epoch), FIELD(progress, epochs), FIELD(progress, examples), FIELD(progress, all_examples),
    FIELD(progress, examples_per_second), FIELD(progress, loss), FIELD(progress, seconds_left), FIELD(progress, delay),
    FIELD(progress, dropped), FIELD(progress, folded), GROUP(has_hosts, TRAFFIC),
    LIST_IF(is_here, progress, "per_worker", worker, n_workers, WORKER),
    {0}};

static const struct shmt_field STEPS[] = {
    FIELD(steps, step), FIELD(steps, epoch), FIELD(steps, epochs), FIELD(steps, examples), FIELD(steps, loss),
    FIELD(steps, examples_per_second),
    {0}};

static const struct shmt_field LOADED[] = {GROUP(NULL, SHMT_CHOICES), FIELD(report, load_seconds), {0}};
static const struct shmt_field ENDED[] = {GROUP(NULL, SHMT_CHOICES), GROUP(NULL, SHMT_RESULTS), {0}};
/* clang-format on */

/* With the mode, where a report is given. */
static json_t *event(const char *what, double at, const struct shmtrain_report *r) {
    json_t *o = json_object();
    json_object_set_new(o, "event", json_string(what));
    json_object_set_new(o, "at", shmt_json_number(at));
    if (r) json_object_set_new(o, "mode", shmt_json_text(r->mode));
    return o;
}

static char *line_of(json_t *event, const struct shmt_field *table, const void *whole) {
    shmt_fields_add(event, table, whole);
    return shmt_json_line(event);
}

char *shmt_begin_json(const struct shmtrain_report *r) { return line_of(event("begin", 0, NULL), LOADED, r); }

char *shmtrain_progress_json(const struct shmtrain_report *so_far, const struct shmtrain_progress *now) {
    return line_of(event("progress", now->seconds, so_far), PROGRESS, now);
}

char *shmtrain_steps_json(const struct shmtrain_report *so_far, const struct shmtrain_steps *steps) {
    return line_of(event("steps", steps->seconds, so_far), STEPS, steps);
}

char *shmtrain_epoch_json(const struct shmtrain_report *so_far, const struct shmtrain_epoch *epoch, double at) {
    return line_of(event("epoch", at, so_far), SHMT_EPOCH, epoch);
}

char *shmt_end_json(const struct shmtrain_report *r, double at, const char *error) {
    json_t *o = event("end", at, NULL);
    json_object_set_new(o, "error", shmt_json_text(error));
    return line_of(o, ENDED, r);
}
