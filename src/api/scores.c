/* Scoring data with a trained model: see scores.h.
 *
 * The parameters are copied into a backend of their own with a seat for each thread, so that what the application has (the
 * parameters of a run that it may go on with) stays as it is, and a stop may simply kill the workers. */
#include "api/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/arrays.h"
#include "api/cache.h"
#include "api/load_place.h"
#include "api/table.h"
#include "base/cpu.h"
#include "data/csv_plan.h"
#include "math/tree.h"
#include "segment/budget.h"

/* ---- what to score with, and what ---- */

static int find_model(struct shmt_scores *s) {
    struct shmtrain_store *store = s->store;
    const char *name = store->trained.model;
    s->model = name ? shmt_store_model_named(store, name) : NULL;
    if (!name && store->trained.foreign[0])
        return shmt_fail(&store->error, SHMTRAIN_E_DATA,
                         "%s: it does not name the model of its tensors (shmtrain.model in __metadata__): use a file that "
                         "shmtrain has saved",
                         store->trained.foreign);
    if (!s->model)
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                         name ? "the model \"%s\" no longer exists" : "there is no model: train one, or load one%s",
                         name ? name : "");
    const int known = shmt_trained_check_ids(&store->trained, &store->error);
    if (known < 0) return known;
    s->job = (struct shmt_job){.model = s->model};
    shmt_trained_settings(&store->trained, &s->like, &s->job.settings);
    s->n_outputs = shmtrain_model_outputs(s->model, &s->job.settings);
    return 0;
}

static int make_crew(struct shmt_scores *s) {
    struct shmtrain_store *store = s->store;
    const struct shmt_backend_ops *ops = shmt_backend_find(store->config.backend);
    s->job.ops = ops;
    const int rc = shmt_crew_make(store, ops, shmt_seating_of(s->model), &s->crew);
    s->job.settings.threads = s->crew.n_threads;
    return rc;
}

void shmt_scores_note_columns(const struct shmt_scores *s, const char *name, uint64_t min_id, uint64_t max_id) {
    const struct shmt_trained *m = &s->store->trained;
    const uint64_t first = m->features.first, last = first + m->n_features - 1;
    if (m->features.kind == SHMT_IDS_HASHED || m->features.kind == SHMT_IDS_LISTED) return;
    if (min_id > max_id || (min_id >= first && max_id <= last)) return;
    if (m->table && max_id >= SHMT_CSV_MARK_ID) { /* ids of our own making say nothing to anybody */
        shmt_log(
            &s->store->log,
            "%s: numbers are missing in columns where none was in training, or all were: the model has no feature that says so",
            name);
        return;
    }
    shmt_log(&s->store->log, "%s has features %llu to %llu, the model has %llu to %llu: the others are left out", name,
             (unsigned long long)min_id, (unsigned long long)max_id, (unsigned long long)first, (unsigned long long)last);
}

/* Where the model knows a list of ids: how many elements have others. */
static void note_unknown(const struct shmt_scores *s) {
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->load.n_parts; i++) all += s->load.part[i].staged_nonzeros;
    if (!s->load.staged || all <= s->load.totals.n_nonzeros) return;
    shmt_log(&s->store->log, "%s: %llu of %llu nonzeros have ids that the model does not know: they are left out", s->load.name,
             (unsigned long long)(all - s->load.totals.n_nonzeros), (unsigned long long)all);
}

/* Features that the model has no parameters for are left out, as in validation; and ids that the model does not know from its
 * training may mean other features. A word about it may save a search. `base` is the model's. */
static void note_columns(const struct shmt_scores *s, uint32_t base) {
    const struct shmt_totals *t = &s->load.totals;
    const struct shmt_trained *m = &s->store->trained;
    const struct shmt_log *log = &s->store->log;
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
    return shmt_fail(&s->store->error, SHMTRAIN_E_USAGE,
                     "%s has %llu examples: there is room for %llu predictions (n_examples)", s->load.name,
                     (unsigned long long)s->n, (unsigned long long)most);
}

static int count_data(struct shmt_scores *s, const char *data, bool labelled) {
    struct shmtrain_store *store = s->store;
    const uint32_t n_readers = (uint32_t)shmt_min_u64(s->crew.n_workers, shmt_topo_cpus(s->crew.topo));
    const struct shmt_columns model = shmt_trained_columns(&store->trained);
    const unsigned how = SHMT_SOURCE_SCORED | (labelled ? 0 : SHMT_SOURCE_UNLABELLED);
    int rc =
        shmt_cache_load_open(&s->load, store, &s->crew, data, how, store->trained.table, n_readers, shmt_rows_for(s->model));
    struct shmt_columns columns;
    if (rc == 0 && !store->trained.table) rc = shmt_table_check_unmarked(store, &s->load);
    if (rc == 0) rc = shmt_table_check_cache(store, &s->load, store->trained.table, labelled);
    if (rc == 0) rc = shmt_load_columns(&s->load, &model, &columns, &store->error);
    if (rc == 0) rc = shmt_cache_load_count(&s->load, store, &s->crew, &columns);
    if (rc < 0) return rc;
    if (!store->trained.table) shmt_table_log(store, &s->load);
    if (!s->load.table) shmt_table_note_far(store, store->trained.table, data);
    if (labelled && s->load.table) shmt_table_log_words(store);
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
    const struct shmt_trained *t = &s->store->trained;
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

static int check_labels(struct shmt_scores *s, bool must_fit) {
    const struct shmt_labels *labels = &s->load.totals.labels;
    const struct shmtrain_settings *with = &s->job.settings;
    char place[300] = "";
    if (!must_fit || !shmt_scores_are_of_classes(s)) return 0;
    for (uint32_t i = 0; i < labels->n; i++) {
        if (has_class(with, labels->label[i])) continue;
        shmt_source_place(s->load.source, labels->at[i], place, sizeof place);
        return shmt_fail(&s->store->error, SHMTRAIN_E_DATA,
                         "%s: label %g is not one of the model's labels, which are %s%g %s %g", place, (double)labels->label[i],
                         with->n_classes > 2 ? "from " : "", (double)with->classes[0], with->n_classes > 2 ? "to" : "and",
                         (double)with->classes[with->n_classes - 1]);
    }
    return 0;
}

/* ---- memory ---- */

static void make_spec(struct shmt_scores *s) {
    enum shmt_cpu cpu = SHMT_CPU_PORTABLE;
    (void)shmt_cpu_parse("--cpu", s->store->config.cpu, &cpu, NULL); /* checked when it was set */
    s->spec = (struct shmt_spec){.n_seats = s->crew.n_seats,
                                 .n_workers = s->crew.n_workers,
                                 .n_examples = s->n,
                                 .epochs = 1,
                                 .max_steps = SHMT_NO_LIMIT,
                                 .policy = {.write = SHMT_WRITE_RACY, .staleness = SHMT_STALENESS_INF},
                                 .cpu = cpu,
                                 .batch = 1,
                                 .n_chunks = 1,
                                 .item = (uint32_t)shmt_min_u64(s->n, 1 << 24),
                                 .order = {.n_examples = s->n},
                                 .rate = {.base = 1, .kind = SHMT_RATE_CONSTANT, .epochs = 1},
                                 .rule = {.kind = SHMT_RULE_SGD},
                                 .n_tables = s->store->n_tables};
    for (uint32_t t = 0; t < s->store->n_tables; t++) s->spec.table[t] = s->store->table[t].table;
    shmt_board_plan(1, s->n, s->n_outputs, &s->job.board);
    s->spec.board_bytes = s->job.board.bytes;
}

static int check_memory(struct shmt_scores *s) {
    struct shmt_need need;
    struct shmt_budget budget;
    uint64_t bytes;
    const int rc = s->job.ops->plan(&s->spec, &need, &s->store->error);
    if (rc < 0) return rc;
    const uint64_t data_bytes = s->load.in_place ? 2 * s->n * sizeof(float) : s->load.bytes;
    if (!shmt_add_u64(need.total_bytes, data_bytes, &bytes) || !shmt_add_u64(bytes, s->n * sizeof(float), &bytes))
        bytes = UINT64_MAX;
    shmt_budget_read("", &budget);
    return shmt_budget_check(&budget, bytes, "scoring the data", NULL, "free some, or use a part of the data",
                             &s->store->error);
}

/* In pieces, so that no further copy is needed. */
static int copy_table(struct shmt_scores *s, int t) {
    const struct shmt_table_spec *table = &s->spec.table[t];
    const uint64_t at_once = shmt_max_u64(1, shmt_min_u64(table->rows, (1 << 16) / table->width));
    float *rows = malloc(at_once * table->width * sizeof *rows);
    if (!rows) return shmt_fail(&s->store->error, SHMTRAIN_E_MEMORY, "not enough memory to copy table \"%s\"", table->name);
    int rc = 0;
    for (uint64_t row = 0; row < table->rows && rc == 0; row += at_once) {
        const uint64_t n = shmt_min_u64(at_once, table->rows - row);
        rc = shmtrain_store_read(s->store, t, row, n, rows);
        if (rc == 0) rc = s->job.ops->write(s->made, t, row, n, rows);
    }
    free(rows);
    return rc;
}

static int make_backend(struct shmt_scores *s) {
    int rc = s->job.ops->create(&s->spec, NULL, &s->made, &s->store->error);
    for (uint32_t t = 0; t < s->spec.n_tables && rc == 0; t++) rc = copy_table(s, (int)t);
    s->job.store = s->made;
    s->job.spec = &s->spec;
    return rc;
}

static float *make_labels(const struct shmt_scores *s) {
    float *label = calloc(s->n, sizeof *label);
    if (!label) shmt_fail(&s->store->error, SHMTRAIN_E_MEMORY, "not enough memory for %llu labels", (unsigned long long)s->n);
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
    int rc = shmt_load_fill(&s->load, s->store, &s->crew, &all);
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
    int rc = shmt_session_enter(&session, s->job.ops, s->made, &s->spec, rank, 0, e);
    if (rc < 0) return rc;
    rc = shmt_job_score(&session, &s->job, rank, s->spec.n_seats);
    if (rc < 0) *e = session.error;
    shmt_session_leave(&session);
    return rc;
}

static int score(struct shmt_scores *s) {
    s->job.train = &s->like;
    s->job.valid = &s->load.data;
    s->job.valid_label = s->load.data.label;
    const struct shmt_team_spec team = {.kind = s->crew.kind,
                                        .n = s->spec.n_seats,
                                        .body = body,
                                        .arg = s,
                                        .grace_ms = SHMT_GRACE_MS,
                                        .what = "scoring the data"};
    return shmt_drive(s->store, &team, &(struct shmt_driver){0});
}

int shmt_scores_make(struct shmtrain_store *store, const char *data, bool must_fit, uint64_t most, struct shmt_scores *out) {
    *out = (struct shmt_scores){.store = store};
    int rc = data[0] == '\0' ? shmt_fail(&store->error, SHMTRAIN_E_USAGE, "name a file: the data has no name") : 0;
    if (rc == 0) rc = find_model(out);
    if (rc == 0) rc = shmt_table_check_options(store);
    if (rc == 0) rc = make_crew(out);
    if (rc == 0) rc = count_data(out, data, must_fit);
    if (rc == 0) rc = check_room(out, most);
    if (rc == 0) rc = check_labels(out, must_fit);
    if (rc < 0) return rc;
    make_spec(out);
    shmt_arrays_decide(&out->load, store, &out->spec, false);
    rc = check_memory(out);
    if (rc == 0) rc = make_backend(out);
    if (rc == 0) rc = fill_data(out, must_fit);
    return rc == 0 ? score(out) : rc;
}

int shmt_scores_alone(struct shmtrain_store *store, struct shmt_scores *out) {
    *out = (struct shmt_scores){.store = store, .n = SHMTRAIN_MODEL_GROUP};
    int rc = find_model(out);
    if (rc == 0) rc = shmt_table_check_options(store);
    if (rc < 0) return rc;
    out->crew.n_seats = out->crew.n_workers = 1;
    out->job.ops = shmt_backend_find("plain");
    make_spec(out);
    rc = check_memory(out);
    return rc == 0 ? make_backend(out) : rc;
}

void shmt_scores_free(struct shmt_scores *s) {
    if (s->made) s->job.ops->destroy(s->made);
    free(s->label);
    free(s->stand_in);
    shmt_load_close(&s->load);
    shmt_crew_free(&s->crew);
    *s = (struct shmt_scores){0};
}

const float *shmt_scores_at(const struct shmt_scores *s) {
    return shmt_board_scores(s->job.ops->board(s->made), &s->job.board);
}

double shmt_scores_loss(const struct shmt_scores *s) {
    return shmt_tree_sum(shmt_board_losses(s->job.ops->board(s->made), &s->job.board), s->job.board.n_chunks);
}
