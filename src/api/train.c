/* Training a model on data: load with all workers, make the model's tables, run, and keep what a model file needs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/arrays.h"
#include "api/best.h"
#include "api/cache.h"
#include "api/defaults.h"
#include "api/fit.h"
#include "api/init_from.h"
#include "api/places.h"
#include "api/penalty.h"
#include "api/plan.h"
#include "api/probe.h"
#include "api/rows.h"
#include "api/split.h"
#include "api/train_priv.h"
#include "api/table.h"
#include "api/weights.h"
#include "base/clock.h"
#include "base/plain.h"
#include "data/cache.h"
#include "ps/replicas.h"
#include "segment/budget.h"
#include "train/auto_rate.h"

#define DENSE_ITEM 64 /* examples of an update of a dense model in the live modes */

static int find_model(struct shmt_training *s) {
    const char *name = s->store->config.model;
    char names[256] = "";
    for (size_t i = 0; (s->model = shmtrain_store_model_at(s->store, i)); i++) {
        if (strcmp(s->model->name, name) == 0) return 0;
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", s->model->name);
    }
    return shmt_fail(&s->store->error, SHMTRAIN_E_USAGE, "unknown model \"%.60s\": use one of %s", name, names);
}

static int find_libraries(struct shmt_training *s) { return shmt_probe_libraries(s->store, s->model, &s->crew); }

static int make_tables(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES] = {0};
    const uint32_t n = s->model->tables(&s->train.data, &store->job.settings, shape);
    static const struct shmtrain_shape NONE = {0};
    shmt_store_forget_tables(store);
    for (uint32_t t = 0; t < n; t++) {
        if (memcmp(shape[t].reserved, NONE.reserved, sizeof NONE.reserved) != 0)
            return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                             "model \"%s\" sets a reserved member of a table's shape, which a later libshmtrain may know",
                             s->model->name);
        const int rc = shmt_store_add_table(store, shape[t].name, shape[t].rows, shape[t].width);
        if (rc < 0) return rc;
        store->table[t].l2_rows = shape[t].l2_rows;
    }
    return 0;
}

/* ---- the model's file ---- */

static struct shmt_feature_ids ids_of(const struct shmt_training *s) {
    const struct shmt_columns *columns = &s->train.columns;
    return (struct shmt_feature_ids){.first = columns->base,
                                     .kind = !s->train.has_ids        ? SHMT_IDS_NONE
                                             : columns->ids           ? SHMT_IDS_LISTED
                                             : columns->hash_bits > 0 ? SHMT_IDS_HASHED
                                                                      : SHMT_IDS_RANGE,
                                     .hash_bits = columns->hash_bits};
}

/* The model as it will have been trained; ids and table are the data's, still, and not to be freed. */
static void describe(const struct shmt_training *s, struct shmt_trained *out) {
    const struct shmt_feature_ids features = ids_of(s);
    shmt_trained_make(s->model, &s->train.data, s->store->job.settings.bias, &features, out);
    if (s->train.columns.ids) out->ids = *s->train.columns.ids;
    out->table = s->train.table;
}

/* What is learned for hours is to fit into the file that somebody wants of it. */
static int check_format(struct shmt_training *s) {
    struct shmt_trained like = {0};
    describe(s, &like);
    return shmt_save_check(s->store, &like);
}

/* ---- the run ---- */

/* The mean of several copies takes one step for one of each of them: so these are of a part of the examples each. */
static uint64_t dense_item(const struct shmt_training *s) {
    const struct shmt_spec *spec = &s->store->spec;
    const uint64_t most = s->store->config.batch > 0 ? DENSE_ITEM : s->store->batch; /* a typed one means sync's */
    return shmt_max_u64(1, most / shmt_replicas_averaged(spec));
}

/* What the options leave to us: for dense models, whose items are one update each, smaller items, as batches are, and the slower
 * decay of these. */
static void settle_items(struct shmt_training *s) {
    const struct shmt_config *c = &s->store->config;
    struct shmt_spec *spec = &s->store->spec;
    if (!s->model->dense || s->store->fits) return;
    if (c->item == 0 && !shmt_policy_has_rounds(&spec->policy)) spec->item = (uint32_t)shmt_min_u64(spec->item, dense_item(s));
    shmt_rate_settle(c, false, &spec->rate);
}

/* Standard deviation of the labels that are trained on. */
static double spread_of_labels(const struct shmt_training *s) {
    const uint64_t n = s->store->spec.n_examples;
    const uint32_t *example = s->split.train_example;
    const float *label = s->train.data.label;
    double mean = 0, squares = 0; /* Welford 1962: labels may be far from 0 */
    for (uint64_t i = 0; i < n; i++) {
        const double y = (double)label[example ? example[i] : i], off = y - mean;
        mean += off / (double)(i + 1);
        squares += off * (y - mean);
    }
    return n > 0 ? sqrt(squares / (double)n) : 0;
}

/* The rate by the data, when its weights are there. */
static int settle_rate(struct shmt_training *s) {
    struct shmt_spec *spec = &s->store->spec;
    const struct shmt_weights_of trained = {s->split.train_example, spec->n_examples};
    const struct shmt_rate_wish wish = {.model = s->model,
                                        .with = &s->store->job.settings,
                                        .data = &s->train.data,
                                        .rule = &spec->rule,
                                        .mean_weight = shmt_weights_mean(&s->train.data, &trained),
                                        .label_spread = s->model->task == SHMTRAIN_REGRESSION ? spread_of_labels(s) : 0,
                                        .ends_at_0 = spec->rate.kind == SHMT_RATE_COSINE,
                                        .live = shmt_policy_is_live(&spec->policy)};
    if (s->store->fits) return 0;                                              /* Newton's steps have no rate */
    if (!isnan(s->store->config.rate) || s->store->checkpoints.from) return 0; /* named, or that of the run before */
    spec->rate.base = shmt_auto_rate(&wish) / (float)shmt_replicas_summed(spec);
    return 0;
}

/* A feature as the data counts it. */
static void name_feature(const struct shmt_training *s, uint32_t column, char *out, size_t bytes) {
    const struct shmt_columns *columns = &s->train.columns;
    uint32_t at = column;
    for (uint32_t j = 0; s->rows.place && j < s->train.data.n_features; j++)
        if (s->rows.place[j] == column) at = j;
    const uint64_t id = columns->ids ? columns->ids->id[at] : at + UINT64_C(0) + columns->base;
    snprintf(out, bytes, "%sfeature %llu", columns->hash_bits > 0 ? "hashed " : "", (unsigned long long)id);
}

static void note_mistakes(const struct shmt_training *s, const struct shmt_standard *standard) {
    char feature[48], others[64] = "";
    if (standard->n_mistakes == 0) return;
    SHMT_PLAIN_NUMBERS;
    name_feature(s, standard->mistake_column, feature, sizeof feature);
    if (standard->n_mistakes > 1)
        snprintf(others, sizeof others, " (%u other features have such a one)", standard->n_mistakes - 1);
    shmt_log(&s->store->log, "%s: %s has a value of %.6g in example %llu, and no other one beyond %.6g%s: %s", s->train.name,
             feature, standard->mistake, (unsigned long long)standard->mistake_example + 1, standard->usual, others,
             s->store->scales ? "it counts as the mean here, but not when the model scores: correct it, or leave it out"
                              : "is it a mistake?");
}

/* Features stay as they are, but the user may want to know. */
static int look_for_mistakes(struct shmt_training *s, const struct shmt_standard_wish *wish) {
    struct shmt_standard found = {0};
    if (s->store->is_generated) return 0;
    const int rc = shmt_standard_look(wish, &found, &s->store->error);
    if (rc == 0) note_mistakes(s, &found);
    shmt_standard_free(&found);
    return rc;
}

static int scale_features(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    const struct shmt_standard_wish wish = {.train = &s->train,
                                            .valid = s->has_valid ? &s->valid : NULL,
                                            .example = s->split.train_example,
                                            .n = store->spec.n_examples,
                                            .bias = store->job.settings.bias != 0,
                                            .may_grow = !store->spec.row_places,
                                            .by_place = store->spec.row_places};
    s->nonzeros[0] = s->train.totals.n_nonzeros;
    if (s->share > 0) shmt_split_nonzeros(&s->split, &s->train.data, &s->nonzeros[0], &s->nonzeros[1]);
    shmt_standard_free(&store->standard);
    if (!store->scales) return look_for_mistakes(s, &wish);
    const int rc = shmt_standard_make(&wish, &store->standard, &store->error);
    if (rc == 0) note_mistakes(s, &store->standard);
    return rc;
}

static int choose_penalty(struct shmt_training *s) {
    return shmt_penalty_choose(s->store, s->model, &s->train.data, s->split.train_example);
}

static int settle_checkpoints(struct shmt_training *s) { return shmt_checkpoints_settle(s->store, s->model); }
static int init_parameters(struct shmt_training *s) {
    struct shmt_trained ours = {0};
    if (s->store->checkpoints.from) return 0; /* that is further */
    describe(s, &ours);
    return shmt_init_from(s->store, &ours);
}

static int restore_parameters(struct shmt_training *s) { return shmt_checkpoints_restore(s->store); }

static int meet_data(struct shmt_training *s) {
    struct shmt_data_print print;
    if (s->store->config.checkpoint[0] == '\0') return 0;
    shmt_data_print_make(&s->train.data, &print);
    return shmt_checkpoints_meet(s->store, &print, s->train.columns.ids);
}

/* Parameters that do not begin at 0. The tables were made for this run, so nothing is in them yet. */
static int begin_parameters(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    const struct shmtrain_batch all = {.size = sizeof(struct shmtrain_batch),
                                       .data = &s->train.data,
                                       .example = s->split.train_example,
                                       .n = (uint32_t)store->spec.n_examples};
    for (uint32_t t = 0; t < store->n_tables && s->model->begin; t++) {
        struct shmt_declared *d = &store->table[t];
        d->value = calloc(shmt_table_floats(&d->table), sizeof *d->value);
        if (!d->value)
            return shmt_fail(&store->error, SHMTRAIN_E_MEMORY, "not enough memory for the first values of table \"%s\"",
                             d->table.name);
        s->model->begin(&all, &store->job.settings, t, d->value);
    }
    return 0;
}

/* From here on the ids of the data are places (places.h). */
static int renumber_columns(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    if (!store->spec.row_places) return 0;
    const uint64_t rows = store->table[0].table.rows;
    int rc = s->train.in_place ? shmt_cache_places(&s->train, rows, &s->rows.place, &store->error)
                               : shmt_places_make(&s->train.data, rows, &s->rows.place, &store->error);
    if (rc == 0 && !s->train.in_place) rc = shmt_load_renumber(&s->train, store, s->rows.place);
    if (rc == 0 && s->has_valid) rc = shmt_load_renumber(&s->valid, store, s->rows.place);
    return rc;
}

/* Columns are places by now. */
static int know_rows(struct shmt_training *s) {
    const struct shmt_rows_of of = {
        .model = s->model, .data = &s->train.data, .example = s->split.train_example, .spec = &s->store->spec};
    const int rc = shmt_rows_share(&s->rows, &of, &s->store->error);
    return rc < 0 ? rc : shmt_rows_curve(&s->rows, &of, &s->store->error);
}

static int draw_sample(struct shmt_training *s) { return shmt_fit_sample(s->store, &s->train.data, s->split.train_example); }

/* Numbers of the data's columns, row by row, where the model has a table for that. */
static void ask_for_columns(struct shmt_training *s) {
    struct shmt_spec *spec = &s->store->spec;
    const bool by_columns = spec->table[0].width == 1 && spec->table[0].rows >= s->train.data.n_features && !s->model->dense;
    spec->l2_shares = shmt_rule_regularises(&spec->rule) && spec->rule.kind != SHMT_RULE_FTRL &&
                      shmt_policy_is_live(&spec->policy) && by_columns;
    spec->curvatures = shmt_policy_is_damped(&spec->policy) && by_columns && spec->n_tables == 1;
    spec->row_places = s->store->rows_by_frequency;
}

/* Whether rows will stand by frequency, before there is a spec: how many copies of them there are depends on it. */
static bool orders_rows(const struct shmt_training *s) {
    const struct shmtrain_store *store = s->store;
    struct shmt_spec spec = {.epochs = (uint32_t)shmt_defaults_epochs(store, s->model, s->train.totals.n_examples)};
    if (strcmp(store->config.columns, "auto") != 0 || store->n_tables == 0) return false;
    spec.table[0] = store->table[0].table;
    spec.l2_rows[0] = store->table[0].l2_rows;
    if (shmt_cache_is_ordered(&s->train)) return shmt_places_suit(s->model, &s->train.data, &spec);
    return shmt_places_pay(s->model, &s->train.data, &spec);
}

static int make_spec(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    const uint64_t n_valid = s->has_valid ? s->valid.totals.n_examples : s->split.n_valid;
    const uint64_t n_train = s->share > 0 ? s->split.n_train : s->train.totals.n_examples;
    store->rows_by_frequency = orders_rows(s);
    store->example_nonzeros = (double)s->train.totals.n_nonzeros / (double)shmt_max_u64(1, s->train.totals.n_examples);
    int rc = shmt_spec_of_config(store, &s->crew, s->model, n_train, &store->spec);
    if (rc < 0) return rc;
    shmt_board_plan(store->spec.epochs, n_valid, shmtrain_model_outputs(s->model, &store->job.settings), &store->job.board);
    store->spec.board_bytes = store->job.board.bytes;
    rc = shmt_fit_plan(store, s->model, &s->train);
    if (rc == 0) rc = shmt_best_plan(store, n_valid > 0);
    if (rc < 0) return rc;
    store->job.settings.group = shmt_policy_is_live(&store->spec.policy) ? (uint32_t)store->config.group : SHMTRAIN_MODEL_GROUP;
    store->job.settings.threads = s->crew.n_threads;
    settle_items(s);
    ask_for_columns(s);
    return 0;
}

/* What validation is called: its file, "0.1 of FILE", or "". To be freed. */
static char *name_validation(const struct shmt_training *s) {
    char *name;
    SHMT_PLAIN_NUMBERS;
    if (s->share > 0) return asprintf(&name, "%g of %s", s->share, s->train.name) < 0 ? NULL : name;
    return strdup(s->has_valid ? s->valid.name : "");
}

/* Generators know the log loss of their model on the examples that they keep for validation. It says nothing about other
 * losses, nor about a model that was trained on other data. */
static bool has_best_loss(const struct shmt_training *s) {
    return s->store->config.valid[0] == '\0' && strcmp(s->model->loss, "log loss") == 0;
}

static void name_data(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    const struct shmtrain_data *t = &s->train.data, *v = &s->valid.data;
    free(store->dataset_name);
    free(store->valid_name);
    store->dataset_name = strdup(s->train.name);
    store->valid_name = name_validation(s);
    struct shmtrain_report *r = &store->report;
    r->dataset.name = store->dataset_name ? store->dataset_name : "";
    r->dataset.examples = store->spec.n_examples;
    r->dataset.features = t->n_features;
    r->dataset.nonzeros = s->nonzeros[0];
    r->dataset.skipped = s->train.totals.n_skipped;
    r->valid.skipped = s->has_valid ? s->valid.totals.n_skipped : 0;
    r->valid.name = store->valid_name ? store->valid_name : "";
    r->valid.examples = store->job.board.n_valid;
    r->valid.features = t->n_features;
    r->valid.nonzeros = s->has_valid ? s->valid.totals.n_nonzeros : s->nonzeros[1];
    r->best_loss = s->has_valid && has_best_loss(s) ? v->best_loss : NAN;
}

static int make_split(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    if (s->share == 0) return 0;
    return shmt_split_make(&s->split, store->config.seed, s->train.totals.n_examples, s->share, &store->error);
}

static int choose_memory(struct shmt_training *s) {
    struct shmt_machine *machine = &s->crew.machine;
    const int rc = shmt_machine_settle(machine, s->store->ops, &s->store->spec, &s->store->error);
    if (rc < 0) return rc;
    shmt_cache_decide(&s->train, s->store, s->model, true);
    if (s->has_valid) shmt_cache_decide(&s->valid, s->store, s->model, false);
    shmt_arrays_decide(&s->train, s->store, &s->store->spec, true);
    if (s->has_valid) shmt_arrays_decide(&s->valid, s->store, &s->store->spec, true);
    if (!s->train.in_place) s->train.pages = shmt_machine_pages(machine, s->train.bytes, "data");
    if (s->has_valid && !s->valid.in_place) s->valid.pages = shmt_machine_pages(machine, s->valid.bytes, "validation data");
    s->train.shared = SHMT_NAMED_DATA;
    s->valid.shared = SHMT_NAMED_VALID;
    return shmt_lease_decide(s->store, s->train.bytes, s->has_valid ? s->valid.bytes : 0);
}

/* Beside the segments. */
static uint64_t work_bytes(const struct shmt_training *s) {
    const struct shmtrain_store *store = s->store;
    uint64_t floats = 0;
    for (uint32_t t = 0; t < store->n_tables && s->model->begin; t++) floats += shmt_table_floats(&store->table[t].table);
    const uint64_t id_bytes = s->train.ids.n * (sizeof(uint64_t) + 2 * sizeof(uint32_t));
    const uint64_t scaled = store->scales ? shmt_standard_work_bytes(&s->train) + shmt_standard_work_bytes(&s->valid) : 0;
    return scaled + floats * sizeof(float) + id_bytes + shmt_rows_work_bytes(&store->spec) +
           shmt_places_work_bytes(&s->train.data, &store->spec);
}

/* What a set will take of the free memory, of which reserved huge pages are no part. */
static uint64_t free_bytes_for(const struct shmt_load *load) {
    return load->pages == SHMT_PAGES_2M && !load->in_place ? 0 : shmt_load_own_bytes(load);
}

static int check_need(struct shmt_training *s) {
    uint64_t bytes = work_bytes(s);
    if (!shmt_add_u64(bytes, free_bytes_for(&s->train), &bytes)) bytes = UINT64_MAX;
    if (!shmt_add_u64(bytes, free_bytes_for(&s->valid), &bytes)) bytes = UINT64_MAX;
    return shmt_check_memory(s->store, s->store->ops, &s->store->spec, bytes);
}

/* What is kept of the data until it has its place is no reason to refuse a run: it can be read again. */
static int check_memory_unstaged(struct shmt_training *s) {
    const int rc = check_need(s);
    if (rc != SHMTRAIN_E_MEMORY) return rc;
    const bool train = shmt_load_unstage(&s->train), valid = shmt_load_unstage(&s->valid);
    return train || valid ? check_need(s) : rc;
}

/* Nor is a fit that nobody has asked for: steps of SGD take less. */
static int check_memory(struct shmt_training *s) {
    int rc = check_memory_unstaged(s);
    if (rc != SHMTRAIN_E_MEMORY || !shmt_fit_give_up(s->store, s->model)) return rc;
    rc = make_spec(s);
    if (rc == 0) rc = choose_memory(s);
    return rc == 0 ? check_need(s) : rc;
}

static int fill_data(struct shmt_training *s) {
    const struct shmt_placement *placement = &s->store->spec.placement;
    const struct shmt_readers trainers = {placement, &s->store->spec, s->split.train_example}, all = {.placement = placement};
    int rc = shmt_load_fill(&s->train, s->store, &s->crew, &trainers);
    if (rc == 0 && s->has_valid) rc = shmt_load_fill(&s->valid, s->store, &s->crew, &all);
    if (rc == 0 && s->share > 0) rc = shmt_split_labels(&s->split, &s->train.data, &s->store->error);
    if (rc < 0 || !s->train.weighted) return rc;
    const struct shmt_weights_of trained = {s->split.train_example, s->store->spec.n_examples};
    const struct shmt_weights_wish wish = {&s->store->config, &trained, s->train.has_weights};
    return shmt_weights_fill(&wish, &s->train.data, s->train.weight, &s->store->error);
}

/* How long each worker has read. */
static int note_loading(struct shmt_training *s) {
    shmt_costs_loaded(s->store, s->train.took_ns, s->train.n_readers);
    if (s->has_valid) shmt_costs_loaded(s->store, s->valid.took_ns, s->valid.n_readers);
    return 0;
}

/* All that comes before the workers, or, to plan only, all but what checks memory and fills it; a stop that is asked for
 * meanwhile is seen between two of these. */
static int prepare(struct shmt_training *s, bool plan_only) {
    static const struct {
        int (*run)(struct shmt_training *);
        bool of_plan;
    } STAGES[] = {{find_libraries, false},
                  {shmt_train_open_data, true},
                  {shmt_train_check_guess, false},
                  {shmt_train_count_data, true},
                  {shmt_train_check_model, true},
                  {check_format, false},
                  {make_tables, true},
                  {make_split, true},
                  {make_spec, true},
                  {settle_checkpoints, false},
                  {choose_memory, true},
                  {check_memory, false},
                  {fill_data, false},
                  {meet_data, false},
                  {begin_parameters, false},
                  {init_parameters, false},
                  {restore_parameters, false},
                  {renumber_columns, false},
                  {scale_features, false},
                  {choose_penalty, false},
                  {settle_rate, false},
                  {note_loading, false},
                  {know_rows, false},
                  {draw_sample, false}};
    s->store->job =
        (struct shmt_job){.settings = {.size = sizeof(struct shmtrain_settings), .bias = (uint32_t)s->store->config.bias}};
    for (size_t i = 0; i < sizeof STAGES / sizeof *STAGES; i++) {
        if (plan_only && !STAGES[i].of_plan) continue;
        const int rc = STAGES[i].run(s);
        if (rc < 0) return rc;
        if (shmt_stop_asked(s->store)) return shmt_fail(&s->store->error, SHMTRAIN_E_STOPPED, "stopped before training began");
    }
    return 0;
}

/* Of arrays that are those of a cache's file. */
static struct shmt_guarded guard_of(const struct shmt_load *load) {
    return load->in_place ? shmt_cache_guard(load->source) : (struct shmt_guarded){NULL, -1};
}

static int train(struct shmt_training *s) {
    struct shmtrain_store *store = s->store;
    store->job.model = s->model;
    store->job.is_offered = shmt_store_has_offered(store, s->model);
    store->job.train = &s->train.data;
    store->job.train_guard = guard_of(&s->train);
    store->job.train_example = s->split.train_example;
    if (s->share > 0) {
        s->unweighted = s->train.data;
        s->unweighted.weight = NULL;
        store->job.valid = &s->unweighted;
        store->job.valid_example = s->split.valid_example;
        store->job.valid_label = s->split.valid_label;
        store->job.valid_guard = store->job.train_guard;
    } else if (s->has_valid) {
        store->job.valid = &s->valid.data;
        store->job.valid_label = s->valid.data.label;
        store->job.valid_guard = guard_of(&s->valid);
    }
    store->job.goal.validated = store->job.valid != NULL;
    name_data(s);
    store->lease.train = &s->train.segment;
    store->lease.valid = s->has_valid ? &s->valid.segment : NULL;
    store->lease.share = s->share;
    store->lease.features = ids_of(s);
    struct shmt_trained like = {0}; /* what belongs to others in it is theirs */
    describe(s, &like);
    store->checkpoints.as = &like;
    const int rc = shmt_run_job(store, &s->crew, &s->rows);
    store->checkpoints.as = NULL;
    shmt_trained_make(s->model, &s->train.data, store->job.settings.bias, &store->lease.features, &store->trained);
    (void)shmt_trained_take_table(&store->trained, s->train.table, NULL); /* without memory, it was none */
    s->train.table = NULL;
    store->trained.ids = s->train.ids; /* nobody asks the data for its columns any more */
    store->trained.ids.from = NULL;
    s->train.ids = (struct shmt_ids){0};
    return rc;
}

/* A run knows what it goes on from before it is known what it is; a plan is of a new one. */
static int begin(struct shmt_training *s, bool plan_only) {
    struct shmtrain_store *store = s->store;
    int rc = shmt_run_begin(store);
    if (rc < 0) return rc;
    if (!s->source || s->source[0] == '\0')
        return shmt_fail(&store->error, SHMTRAIN_E_USAGE, "name a file, or builtin:sparse: the data has no name");
    rc = find_model(s);
    if (rc == 0 && !plan_only) rc = shmt_checkpoints_begin(store);
    if (rc == 0 && plan_only && store->config.resume)
        shmt_log(&store->log,
                 "the plan is of a new run: one that --resume goes on with keeps to its kind, steps of SGD or a fit");
    if (rc == 0) rc = shmt_fit_check(store, s->model, s->source);
    if (rc == 0) rc = shmt_run_make_epochs(store, s->model);
    if (rc < 0) return rc;
    return shmt_crew_make(store, store->ops, s->store->fits ? SHMT_SEAT_OF_THREAD : shmt_seating_of(s->model), &s->crew);
}

static void end(struct shmt_training *s) {
    shmt_table_end(s->store);
    shmt_standard_free(&s->store->standard); /* what the store does next is on features as they are */
    shmt_rows_free(&s->rows);
    shmt_split_free(&s->split);
    shmt_load_close(&s->valid);
    shmt_load_close(&s->train);
    shmt_crew_free(&s->crew);
}

int shmt_store_train(struct shmtrain_store *store, const char *data) {
    struct shmt_training s = {.store = store, .source = data};
    int rc = begin(&s, false);
    if (rc == 0) rc = shmt_trace_check(store, data);
    if (rc == 0) rc = shmt_metrics_open(store, data);
    if (rc == 0) rc = shmt_lease_begin(store);
    if (rc == 0) shmt_table_begin(store);
    if (rc == 0) rc = prepare(&s, false);
    if (rc == 0) rc = train(&s);
    shmt_checkpoints_close(store);
    rc = shmt_metrics_end(store, shmt_lease_end(store, rc));
    end(&s);
    return rc;
}

int shmt_train_prepare(struct shmtrain_store *store, const char *data,
                       int (*use)(struct shmtrain_store *store, const struct shmt_prepared *prepared, void *arg), void *arg) {
    struct shmt_training s = {.store = store, .source = data};
    int rc = begin(&s, true);
    if (rc == 0) shmt_table_begin(store);
    if (rc == 0) rc = prepare(&s, true);
    const struct shmt_prepared prepared = {.crew = &s.crew,
                                           .train = &s.train,
                                           .valid = s.has_valid ? &s.valid : NULL,
                                           .train_example = s.split.train_example,
                                           .work_bytes = rc == 0 ? work_bytes(&s) : 0};
    if (rc == 0) rc = use(store, &prepared, arg);
    end(&s);
    return rc;
}

int shmtrain_store_train(struct shmtrain_store *store, const char *data) {
    int rc = shmt_call_enter(store);
    if (rc < 0) return rc;
    rc = shmt_store_train(store, data);
    shmt_snapshots_close(store, rc);
    shmt_call_leave(store);
    return rc;
}
