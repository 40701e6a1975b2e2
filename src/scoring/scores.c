/* Scoring data with a trained model: see scores.h.
 *
 * The parameters are copied into a backend of their own with a seat for each thread, so that what the application has (the
 * parameters of a run that it may go on with) stays as it is, and a stop may simply kill the workers. */
#include "scoring/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "files/csv_plan.h"
#include "loading/arrays.h"
#include "loading/cache.h"
#include "loading/load_place.h"
#include "loading/table.h"
#include "math/tree.h"
#include "segment/budget.h"
#include "workers/drive.h"

/* ---- what to score with, and what ---- */

static int find_model(struct shmt_scores *s) {
    struct shmt_scoring *scoring = s->scoring;
    const char *name = scoring->params->trained.model;
    s->model = name ? shmt_model_named(scoring->offered, name) : NULL;
    if (!name && scoring->params->trained.foreign[0])
        return shmt_fail(&scoring->call->error, SHMTRAIN_E_DATA,
                         "%s: it does not name the model of its tensors (shmtrain.model in __metadata__): use a file that "
                         "shmtrain has saved",
                         scoring->params->trained.foreign);
    if (!s->model)
        return shmt_refuse(&scoring->call->error,
                           name ? "the model \"%s\" no longer exists" : "there is no model: train one, or load one%s",
                           name ? name : "");
    const int known = shmt_trained_check_ids(&scoring->params->trained, &scoring->call->error);
    if (known < 0) return known;
    const int texts = shmt_model_texts_of_joined(scoring->params->trained.options, s->model, &s->texts, &scoring->call->error);
    if (texts < 0) return texts;
    s->model = shmt_model_adapt(s->model, &s->texts);
    s->job = (struct shmt_job){.model = s->model};
    shmt_trained_settings(&scoring->params->trained, &s->like, &s->job.settings);
    s->job.settings.option = s->texts.option;
    shmt_offered_tell(scoring->offered, &s->job.settings);
    s->n_outputs = shmtrain_model_outputs(s->model, &s->job.settings);
    s->job.train = &s->like;
    return shmt_opened_begin(s->model, &s->like, &s->job.settings, &s->job.opened, &scoring->call->error);
}

static int make_crew(struct shmt_scores *s) {
    struct shmt_scoring *scoring = s->scoring;
    const struct shmt_backend *backend = shmt_backend_at(scoring->config->backend);
    s->job.backend = backend;
    const int rc = shmt_crew_make(scoring->call, scoring->config, backend, shmt_seating_of(s->model), &s->crew);
    s->job.settings.threads = s->crew.n_threads;
    return rc;
}

void shmt_scores_note_columns(const struct shmt_scores *s, const char *name, uint64_t min_id, uint64_t max_id) {
    const struct shmt_trained *m = &s->scoring->params->trained;
    const uint64_t first = m->features.first, last = first + m->n_features - 1;
    if (m->features.kind == SHMT_IDS_HASHED || m->features.kind == SHMT_IDS_LISTED) return;
    if (min_id > max_id || (min_id >= first && max_id <= last)) return;
    if (m->table && max_id >= SHMT_CSV_MARK_ID) { /* ids of our own making say nothing to anybody */
        shmt_log(
            &s->scoring->call->log,
            "%s: numbers are missing in columns where none was in training, or all were: the model has no feature that says so",
            name);
        return;
    }
    shmt_log(&s->scoring->call->log, "%s has features %llu to %llu, the model has %llu to %llu: the others are left out", name,
             (unsigned long long)min_id, (unsigned long long)max_id, (unsigned long long)first, (unsigned long long)last);
}

/* Where the model knows a list of ids: how many elements have others. */
static void note_unknown(const struct shmt_scores *s) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->load.n_parts; i++) all += s->load.part[i].buffered_nonzeros;
    if (!s->load.buffered || all <= s->load.totals.n_nonzeros) return;
    shmt_log(&s->scoring->call->log, "%s: %llu of %llu nonzeros have ids that the model does not know: they are left out",
             s->load.name, (unsigned long long)(all - s->load.totals.n_nonzeros), (unsigned long long)all);
}

/* Features that the model has no parameters for are left out, as in validation; and ids that the model does not know from its
 * training may mean other features. A word about it may save a search. `base` is the model's. */
static void note_columns(const struct shmt_scores *s, uint32_t base) {
    const struct shmt_totals *t = &s->load.totals;
    const struct shmt_trained *m = &s->scoring->params->trained;
    const struct shmt_log *log = &s->scoring->call->log;
    const uint64_t shift = base - s->load.columns.base, first = base, last = first + m->n_features - 1;
    const uint64_t min_id = t->min_id + shift, max_id = t->max_id + shift;
    const bool counted = m->features.kind == SHMT_IDS_NONE;
    const char *left_out = min_id < first || max_id > last ? ": the others are left out" : "";
    if (t->min_id > t->max_id) return;
    if (m->features.kind == SHMT_IDS_LISTED) {
        note_unknown(s);
        return;
    }
    if (!s->load.has_ids && !counted && base > 0)
        shmt_log(log, "%s has elements without ids: they count as features %llu to %llu, the model has %llu to %llu%s",
                 s->load.name, (unsigned long long)min_id, (unsigned long long)max_id, (unsigned long long)first,
                 (unsigned long long)last, left_out);
    else if (s->load.has_ids && counted && min_id > 0)
        shmt_log(log,
                 "%s has features %llu to %llu, the model has elements %llu to %llu%s: if the data's ids start at 1, each is "
                 "one too large",
                 s->load.name, (unsigned long long)min_id, (unsigned long long)max_id, (unsigned long long)first,
                 (unsigned long long)last, left_out[0] ? " (others are left out)" : "");
    else
        shmt_scores_note_columns(s, s->load.name, min_id, max_id);
}

static int check_room(const struct shmt_scores *s, uint64_t most) {
    if (s->n <= most) return 0;
    return shmt_refuse(&s->scoring->call->error, "%s has %llu examples: there is room for %llu predictions (n_examples)",
                       s->load.name, (unsigned long long)s->n, (unsigned long long)most);
}

static int check_shape(const struct shmt_scores *s, uint32_t channels) {
    if (channels > 0) return 0;
    return shmt_fail(&s->scoring->call->error, SHMTRAIN_E_DATA,
                     "%s: the data are no images whose shape is known, which shmtrain help images has", s->load.name);
}

/* Images of another shape may have as many numbers, or fewer, which would be filled up. */
static int check_images(const struct shmt_scores *s) {
    const struct shmt_trained *model = &s->scoring->params->trained;
    const struct shmt_example_shape ours = {model->channels, model->height, model->width}, *its = &s->load.shape;
    if (!shmt_example_shapes_differ(&ours, its)) return 0;
    return shmt_fail(&s->scoring->call->error, SHMTRAIN_E_DATA,
                     "%s has images of %ux%ux%u, but the model was trained on images of %ux%ux%u: use images of that shape",
                     s->load.name, its->channels, its->height, its->width, ours.channels, ours.height, ours.width);
}

static int count_data(struct shmt_scores *s, const struct shmt_scores_wish *wish) {
    struct shmt_scoring *scoring = s->scoring;
    const uint32_t n_readers = (uint32_t)shmt_min_u64(s->crew.n_workers, shmt_topo_cpus(s->crew.topo));
    const struct shmt_columns model = shmt_trained_columns(&scoring->params->trained);
    static const unsigned HOW[] = {[SHMT_LABELS_LEFT] = SHMT_SOURCE_UNLABELLED, [SHMT_LABELS_ANY] = SHMT_SOURCE_ANY_LABELS};
    const bool labelled = wish->labels != SHMT_LABELS_LEFT;
    const unsigned how = SHMT_SOURCE_SCORED | (wish->labels == SHMT_LABELS_FIT ? 0 : HOW[wish->labels]);
    int rc = shmt_cache_load_open(&s->load, scoring->loading, &s->crew, wish->data, how, scoring->params->trained.table,
                                  n_readers, shmt_rows_for(s->model));
    struct shmt_columns columns;
    if (rc == 0 && wish->images) rc = check_shape(s, s->load.shape.channels);
    if (rc == 0) rc = check_images(s);
    if (rc == 0 && !scoring->params->trained.table) rc = shmt_table_check_unmarked(scoring->call, &s->load);
    if (rc == 0) rc = shmt_table_check_cache(scoring->loading, &s->load, scoring->params->trained.table, labelled);
    if (rc == 0) rc = shmt_load_columns(&s->load, &model, &columns, &scoring->call->error);
    if (rc == 0) rc = shmt_cache_load_count(&s->load, scoring->loading, &s->crew, &columns);
    if (rc < 0) return rc;
    if (!scoring->params->trained.table) shmt_table_log(scoring->call, scoring->config, &s->load);
    if (!s->load.table) shmt_table_note_far(scoring->call, scoring->params->trained.table, wish->data);
    if (labelled && s->load.table) shmt_table_log_words(scoring->call, scoring->params);
    s->load.weighted = shmt_source_weights(s->load.source) != NULL;
    shmt_load_plan(&s->load, &columns);
    note_columns(s, model.base);
    s->n = s->load.totals.n_examples;
    return 0;
}

bool shmt_scores_are_of_classes(const struct shmt_scores *s) {
    const bool two = s->model->task == SHMTRAIN_BINARY && !isnan(s->model->threshold);
    return s->job.settings.n_classes > 0 && (two || s->model->task == SHMTRAIN_CLASSES);
}

static bool wins_tie(const struct shmt_trained *t, uint32_t c, uint32_t against) {
    return t->has_ties && t->tie[c] < t->tie[against];
}

uint32_t shmt_scores_class(const struct shmt_scores *s, const float *output) {
    const struct shmt_trained *t = &s->scoring->params->trained;
    const uint32_t last = s->job.settings.n_classes - 1;
    uint32_t best = 0;
    if (s->model->task == SHMTRAIN_BINARY) {
        const float threshold = s->model->threshold;
        return output[0] > threshold || (output[0] == threshold && wins_tie(t, last, 0)) ? last : 0;
    }
    for (uint32_t c = 1; c < s->n_outputs; c++)
        if (output[c] > output[best] || (output[c] == output[best] && wins_tie(t, c, best))) best = c;
    return best;
}

static bool has_class(const struct shmtrain_settings *with, float label) {
    for (uint32_t c = 0; c < with->n_classes; c++)
        if (with->classes[c] == label) return true;
    return false;
}

static int check_labels(struct shmt_scores *s) {
    const struct shmt_labels *labels = &s->load.totals.labels;
    const struct shmtrain_settings *with = &s->job.settings;
    char place[300] = "";
    if (!shmt_scores_are_of_classes(s)) return 0;
    for (uint32_t i = 0; i < labels->n; i++) {
        if (has_class(with, labels->label[i])) continue;
        shmt_source_place(s->load.source, labels->at[i], place, sizeof place);
        return shmt_fail(&s->scoring->call->error, SHMTRAIN_E_DATA,
                         "%s: label %g is not one of the model's labels, which are %s%g %s %g", place, (double)labels->label[i],
                         with->n_classes > 2 ? "from " : "", (double)with->classes[0], with->n_classes > 2 ? "to" : "and",
                         (double)with->classes[with->n_classes - 1]);
    }
    return 0;
}

/* ---- memory ---- */

/* No more seats than there are groups of examples, which are what seats take: more would only be started, and have a workspace. */
static void seat(const struct shmt_scores *s, uint32_t *n_workers, uint32_t *n_seats) {
    const uint64_t groups = shmt_max_u64(1, shmt_ceil_div(s->n, SHMTRAIN_MODEL_GROUP));
    const uint64_t of_worker = s->crew.n_seats / s->crew.n_workers;
    const uint64_t workers = shmt_min_u64(s->crew.n_workers, groups);
    *n_workers = (uint32_t)workers;
    *n_seats = (uint32_t)(workers * shmt_min_u64(of_worker, shmt_ceil_div(groups, workers)));
}

static void make_spec(struct shmt_scores *s) {
    uint32_t n_workers, n_seats;
    seat(s, &n_workers, &n_seats);
    s->spec = (struct shmt_spec){.n_seats = n_seats,
                                 .n_workers = n_workers,
                                 .n_examples = s->n,
                                 .epochs = 1,
                                 .max_steps = SHMT_NO_LIMIT,
                                 .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
                                 .cpu = s->scoring->config->parsed.cpu,
                                 .batch = 1,
                                 .n_chunks = 1,
                                 .item = (uint32_t)shmt_min_u64(s->n, 1 << 24),
                                 .order = {.n_examples = s->n},
                                 .rate = {.base = 1, .kind = SHMT_RATE_CONSTANT, .epochs = 1},
                                 .rule = {.kind = SHMT_RULE_SGD},
                                 .n_tables = s->scoring->params->n_tables};
    for (uint32_t t = 0; t < s->scoring->params->n_tables; t++) s->spec.table[t] = s->scoring->params->table[t].table;
    shmt_board_plan(1, s->n, s->n_outputs, &s->job.board);
    s->spec.board_bytes = s->job.board.bytes;
}

/* Of all seats. UINT64_MAX: more than any memory. */
static uint64_t workspaces_bytes(const struct shmt_scores *s) {
    static const float SOMEWHERE[1];
    struct shmtrain_data like = s->like;
    if (s->load.dense || shmt_rows_for(s->model) == SHMT_ROWS_DENSE) like.dense = SOMEWHERE; /* it will be there */
    const uint64_t each = shmt_opened_workspace_bytes(&s->job.opened, &like, &s->job.settings, SHMTRAIN_MODEL_GROUP);
    uint64_t all;
    return shmt_mul_u64(each, s->spec.n_seats, &all) ? all : UINT64_MAX;
}

static int check_memory(struct shmt_scores *s) {
    struct shmt_need need;
    uint64_t bytes;
    const int rc = s->job.backend->plan(&s->spec, &need, &s->scoring->call->error);
    if (rc < 0) return rc;
    const uint64_t data_bytes = s->load.in_place ? 2 * s->n * sizeof(float) : s->load.bytes;
    if (!shmt_add_u64(need.total_bytes, data_bytes, &bytes) || !shmt_add_u64(bytes, s->n * sizeof(float), &bytes) ||
        !shmt_add_u64(bytes, workspaces_bytes(s), &bytes))
        bytes = UINT64_MAX;
    return shmt_budget_need(bytes, "scoring the data", NULL, "free some, or use a part of the data", &s->scoring->call->error);
}

/* In pieces, so that no further copy is needed. */
static int copy_table(struct shmt_scores *s, int t) {
    const struct shmt_table_spec *table = &s->spec.table[t];
    const uint64_t at_once = shmt_max_u64(1, shmt_min_u64(table->rows, (1 << 16) / table->width));
    float *rows = malloc(at_once * table->width * sizeof *rows);
    if (!rows) return shmt_no_memory(&s->scoring->call->error, "to copy table \"%s\"", table->name);
    int rc = 0;
    for (uint64_t row = 0; row < table->rows && rc == 0; row += at_once) {
        const uint64_t n = shmt_min_u64(at_once, table->rows - row);
        rc = shmt_parameters_read(s->scoring->params, t, row, n, rows, &s->scoring->call->error);
        if (rc == 0) rc = s->job.backend->store->write(s->made, t, row, n, rows);
    }
    free(rows);
    return rc;
}

static int make_backend(struct shmt_scores *s) {
    int rc = s->job.backend->create(&s->spec, NULL, &s->made, &s->scoring->call->error);
    for (uint32_t t = 0; t < s->spec.n_tables && rc == 0; t++) rc = copy_table(s, (int)t);
    s->job.store = s->made;
    s->job.spec = &s->spec;
    return rc;
}

static float *make_labels(const struct shmt_scores *s) {
    float *label = calloc(s->n, sizeof *label);
    if (!label) shmt_no_memory(&s->scoring->call->error, "for %llu labels", (unsigned long long)s->n);
    return label;
}

/* Labels that may be written: those of the application's arrays, which perhaps are not there, may not. */
static float *labels_to_replace(struct shmt_scores *s) {
    if (!s->load.in_place) return shmt_segment_at(&s->load.segment, s->load.label_off, s->n * sizeof(float));
    s->stand_in = make_labels(s);
    s->load.data.label = s->stand_in;
    return s->stand_in;
}

/* Labels that need not fit are kept aside, and any class put in their place: models look labels up in their classes. */
static int fill_data(struct shmt_scores *s, bool must_fit) {
    const struct shmt_readers all = {.placement = &s->spec.placement};
    int rc = shmt_load_fill(&s->load, s->scoring->loading, &s->crew, &all);
    if (rc < 0) return rc;
    s->label = make_labels(s);
    if (!s->label) return SHMTRAIN_E_MEMORY;
    if (s->load.data.label) memcpy(s->label, s->load.data.label, s->n * sizeof *s->label);
    if (must_fit) return 0;
    float *label = labels_to_replace(s);
    if (!label) return SHMTRAIN_E_MEMORY;
    for (uint64_t i = 0; i < s->n && s->job.settings.n_classes > 0; i++) label[i] = s->job.settings.classes[0];
    return 0;
}

/* ---- the workers ---- */

static int body(void *arg, uint32_t rank, struct shmt_team *team, struct shmt_error *e) {
    const struct shmt_scores *s = arg;
    struct shmtrain_session session;
    (void)team;
    shmt_machine_bind(&s->crew.machine, rank);
    int rc = shmt_session_enter(&session, s->job.backend, s->made, &s->spec, rank, 0, e);
    if (rc < 0) return rc;
    rc = shmt_job_make_workspace(&session, &s->job, s->job.valid, SHMTRAIN_MODEL_GROUP);
    if (rc == 0) rc = shmt_job_score(&session, &s->job, rank, s->spec.n_seats);
    if (rc < 0) *e = session.error;
    shmt_own_free(session.workspace);
    shmt_session_leave(&session);
    return rc;
}

static int score(struct shmt_scores *s) {
    s->job.valid = &s->load.data;
    s->job.valid_label = s->load.data.label;
    const struct shmt_team_spec team = {.kind = s->crew.kind,
                                        .n = s->spec.n_seats,
                                        .body = body,
                                        .arg = s,
                                        .grace_ms = SHMT_GRACE_MS,
                                        .what = "scoring the data"};
    return shmt_drive(s->scoring->call, &team, &(struct shmt_driver){0});
}

int shmt_scores_make(struct shmt_scoring *scoring, const struct shmt_scores_wish *wish, struct shmt_scores *out) {
    const bool must_fit = wish->labels == SHMT_LABELS_FIT;
    *out = (struct shmt_scores){.scoring = scoring};
    int rc = wish->data[0] == '\0' ? shmt_refuse(&scoring->call->error, "name a file: the data has no name") : 0;
    if (rc == 0) rc = find_model(out);
    if (rc == 0) rc = shmt_table_check_options(scoring->call, scoring->config, scoring->params);
    if (rc == 0) rc = make_crew(out);
    if (rc == 0) rc = count_data(out, wish);
    if (rc == 0) rc = check_room(out, wish->most);
    if (rc == 0 && wish->images) rc = check_shape(out, out->load.data.channels);
    if (rc == 0 && must_fit) rc = check_labels(out);
    if (rc < 0) return rc;
    make_spec(out);
    shmt_arrays_decide(&out->load, scoring->call, scoring->config, &out->spec, false);
    rc = check_memory(out);
    if (rc == 0) rc = make_backend(out);
    if (rc == 0) rc = fill_data(out, must_fit);
    return rc == 0 ? score(out) : rc;
}

int shmt_scores_alone(struct shmt_scoring *scoring, struct shmt_scores *out) {
    *out = (struct shmt_scores){.scoring = scoring, .n = SHMTRAIN_MODEL_GROUP};
    int rc = find_model(out);
    if (rc == 0) rc = shmt_table_check_options(scoring->call, scoring->config, scoring->params);
    if (rc < 0) return rc;
    out->crew.n_seats = out->crew.n_workers = 1;
    out->job.backend = shmt_backend_find("plain");
    make_spec(out);
    rc = check_memory(out);
    return rc == 0 ? make_backend(out) : rc;
}

void shmt_scores_free(struct shmt_scores *s) {
    if (s->made) s->job.backend->store->destroy(s->made);
    free(s->label);
    free(s->stand_in);
    shmt_load_close(&s->load);
    shmt_crew_free(&s->crew);
    shmt_opened_end(&s->job.opened);
    *s = (struct shmt_scores){0};
}

const float *shmt_scores_at(const struct shmt_scores *s) {
    return shmt_board_scores(shmt_array_at(s->job.backend, s->made, SHMT_ARRAY_BOARD), &s->job.board);
}

double shmt_scores_loss(const struct shmt_scores *s) {
    return shmt_tree_sum(shmt_board_losses(shmt_array_at(s->job.backend, s->made, SHMT_ARRAY_BOARD), &s->job.board),
                         s->job.board.n_chunks);
}
