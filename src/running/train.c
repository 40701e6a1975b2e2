/* Training a model on data: load with all workers, make the model's tables, run, and keep what a model file needs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "running/plan.h"
#include "running/run_priv.h"
#include "running/running.h"
#include "running/spec_priv.h"
#include "running/train_priv.h"
#include "base/plain.h"
#include "checkpoints/best.h"
#include "checkpoints/checkpoints.h"
#include "configuration/model_options.h"
#include "configuration/offered.h"
#include "data/cache.h"
#include "fitting/defaults.h"
#include "fitting/fit.h"
#include "fitting/penalty.h"
#include "hosts/hosts.h"
#include "hosts/newest.h"
#include "keeping/init_from.h"
#include "keeping/parameters.h"
#include "keeping/places.h"
#include "loading/cache.h"
#include "loading/rows.h"
#include "loading/split.h"
#include "loading/standard.h"
#include "loading/table.h"
#include "loading/weights.h"
#include "math/starts.h"
#include "naming/lease.h"
#include "recording/recording.h"
#include "ps/replicas.h"
#include "train/auto_rate.h"
#include "watching/metrics.h"
#include "watching/trace.h"
#include "workers/costs.h"
#include "workers/probe.h"

#define TABLES_ITEM 64 /* examples of an update in the live modes, of a model that pushes whole tables */

static int find_model(struct shmt_training *s) {
    const char *name = s->run->config->model;
    char names[256] = "";
    for (size_t i = 0; (s->model = shmt_offered_at(s->run->offered, i)); i++) {
        if (strcmp(s->model->name, name) == 0) {
            const int rc = shmt_model_texts_of_config(s->run->config, s->model, &s->run->texts, &s->run->call->error);
            if (rc == 0) s->model = shmt_model_adapt(s->model, &s->run->texts);
            return rc;
        }
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", s->model->name);
    }
    return shmt_refuse(&s->run->call->error, "unknown model \"%.60s\": use one of %s", name, names);
}

static int find_libraries(struct shmt_training *s) { return shmt_probe_libraries(s->run, s->model, &s->crew); }

static int make_table(struct shmt_training *s, const struct shmtrain_shape *shape) {
    struct shmt_error *e = &s->run->call->error;
    const int t = shmt_parameters_add(s->run->params, shape->name, shape->rows, shape->width, e);
    if (t < 0) return t;
    struct shmt_declared *d = &s->run->params->table[t];
    shmt_opened_tune(shape, &d->l2_rows, &d->tuning);
    return shmt_opened_check_shape(shape, e);
}

static int make_tables(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    const int opened = shmt_opened_begin(s->model, &s->train.data, &run->job.settings, &run->job.opened, &run->call->error);
    if (opened < 0) return opened;
    const uint32_t n = shmt_opened_tables(&run->job.opened, &s->train.data, &run->job.settings, shape);
    static const struct shmtrain_shape NONE = {0};
    shmt_parameters_forget(run->params);
    for (uint32_t t = 0; t < n; t++) {
        if (memcmp(shape[t].reserved, NONE.reserved, sizeof NONE.reserved) != 0)
            return shmt_refuse(&run->call->error,
                               "model \"%s\" sets a reserved member of a table's shape, which a later libshmtrain may know",
                               s->model->name);
        const int rc = make_table(s, &shape[t]);
        if (rc < 0) return rc;
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
    shmt_trained_make(s->model, s->run->texts.joined, &s->train.data, s->run->job.settings.bias, &features, out);
    if (s->train.columns.ids) out->ids = *s->train.columns.ids;
    out->table = s->train.table;
}

/* What is learned for hours is to fit into the file that somebody wants of it. */
static int check_format(struct shmt_training *s) {
    struct shmt_trained like = {0};
    describe(s, &like);
    return shmt_save_check(s->run->call, s->run->params, &like);
}

/* ---- the run ---- */

/* The mean of several copies takes one step for one of each of them: so these are of a part of the examples each. */
static uint64_t item_of_tables(const struct shmt_training *s) {
    const struct shmt_spec *spec = &s->run->spec;
    const uint64_t own = s->model->traits.item;
    const uint64_t most = own > 0                     ? own
                          : s->run->config->batch > 0 ? TABLES_ITEM
                                                      : s->run->batch; /* a typed one means sync's */
    return shmt_max_u64(1, most / shmt_replicas_averaged(spec));
}

/* What the options leave to us: for models whose items are one update each, smaller items, as batches are, and the slower decay
 * of these. */
static void settle_items(struct shmt_training *s) {
    const struct shmt_config *c = s->run->config;
    struct shmt_spec *spec = &s->run->spec;
    if (!s->model->traits.pushes_tables || s->run->fits) return;
    if (c->item == 0 && !shmt_policy_has_rounds(&spec->policy))
        spec->item = (uint32_t)shmt_min_u64(spec->item, item_of_tables(s));
    shmt_rate_settle(c, false, &spec->rate);
}

/* Standard deviation of the labels that are trained on. */
static double spread_of_labels(const struct shmt_training *s) {
    const uint64_t n = s->run->spec.n_examples;
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

static bool has_velocity(const struct shmt_rule *rule) {
    return rule->kind == SHMT_RULE_MOMENTUM || rule->kind == SHMT_RULE_NESTEROV;
}

/* Momentum, clipping, warm-up and rate by the data, when its weights are there. */
static int settle_rate(struct shmt_training *s) {
    struct shmt_spec *spec = &s->run->spec;
    const struct shmt_config *c = s->run->config;
    const struct shmt_weights_of trained = {s->split.train_example, spec->n_examples};
    const struct shmt_rate_wish wish = {.model = s->model,
                                        .with = &s->run->job.settings,
                                        .data = &s->train.data,
                                        .rule = &spec->rule,
                                        .mean_weight = shmt_weights_mean(&s->train.data, &trained),
                                        .label_spread = s->model->task == SHMTRAIN_REGRESSION ? spread_of_labels(s) : 0,
                                        .ends_at_0 = shmt_rate_goes_by_the_run(&spec->rate),
                                        .live = shmt_policy_is_live(&spec->policy),
                                        .n_trained = spec->n_examples,
                                        .item = spec->item,
                                        .sharers = shmt_policy_merges_replicas(&spec->policy)
                                                       ? spec->n_workers / (uint32_t)shmt_max_u64(1, shmt_replicas_count(spec))
                                                       : spec->n_workers};
    if (s->run->fits || s->run->from) return 0; /* Newton's steps have no rate, or it is that of the run before */
    if (has_velocity(&spec->rule) && isnan(c->momentum)) spec->rule.momentum = shmt_auto_momentum(&wish, spec->rule.momentum);
    if (isnan(c->warmup)) spec->rate.warmup = shmt_auto_warmup(&wish, &spec->rate);
    if (isnan(c->clip_norm)) spec->rule.clip_norm = shmt_auto_clip_norm(&wish);
    if (!isnan(c->rate)) return 0;
    spec->rate.base = shmt_auto_rate(&wish) / (float)shmt_replicas_summed(spec);
    if (spec->rate.base > 0) return 0;
    return shmt_refuse(&s->run->call->error, "model \"%s\" does not say which rate suits it: use --rate", s->model->name);
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
    shmt_log(&s->run->call->log, "%s: %s has a value of %.6g in example %llu, and no other one beyond %.6g%s: %s",
             s->train.name, feature, standard->mistake, (unsigned long long)standard->mistake_example + 1, standard->usual,
             others,
             s->run->scales ? "it counts as the mean here, but not when the model scores: correct it, or leave it out"
                            : "is it a mistake?");
}

/* Features stay as they are, but the user may want to know. */
static int look_for_mistakes(struct shmt_training *s, const struct shmt_standard_wish *wish) {
    struct shmt_standard found = {0};
    if (s->run->is_generated) return 0;
    const int rc = shmt_standard_look(wish, &found, &s->run->call->error);
    if (rc == 0) note_mistakes(s, &found);
    shmt_standard_free(&found);
    return rc;
}

static int scale_features(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    const struct shmt_standard_wish wish = {.train = &s->train,
                                            .valid = s->has_valid ? &s->valid : NULL,
                                            .example = s->split.train_example,
                                            .n = run->spec.n_examples,
                                            .bias = run->job.settings.bias != 0,
                                            .may_grow = !run->spec.row_places,
                                            .by_place = run->spec.row_places};
    s->nonzeros[0] = s->train.totals.n_nonzeros;
    if (s->share > 0) shmt_split_nonzeros(&s->split, &s->train.data, &s->nonzeros[0], &s->nonzeros[1]);
    shmt_standard_free(run->standard);
    if (!run->scales) return look_for_mistakes(s, &wish);
    const int rc = shmt_standard_make(&wish, run->standard, &run->call->error);
    if (rc == 0) note_mistakes(s, run->standard);
    return rc;
}

static int choose_penalty(struct shmt_training *s) {
    return shmt_penalty_choose(s->run, s->model, &s->train.data, s->split.train_example);
}

static int settle_checkpoints(struct shmt_training *s) { return shmt_checkpoints_settle(s->run, s->model); }
static int init_parameters(struct shmt_training *s) {
    struct shmt_trained ours = {0};
    if (s->run->from) return 0; /* that is further */
    describe(s, &ours);
    return shmt_init_from(s->run->call, s->run->config->init_from, s->run->offered, s->run->params, &ours);
}

static int restore_parameters(struct shmt_training *s) { return shmt_checkpoints_restore(s->run); }

static int check_data(struct shmt_training *s) {
    struct shmt_data_print print;
    shmt_recording_take_data(s->run, &s->train.data);
    if (s->run->config->checkpoint[0] == '\0') return 0;
    shmt_data_print_make(&s->train.data, &print);
    return shmt_checkpoints_check_data(s->run, &print, s->train.columns.ids);
}

/* Parameters that do not begin at 0. The tables were made for this run, so nothing is in them yet. */
static int begin_parameters(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    const struct shmtrain_batch all = {.size = sizeof(struct shmtrain_batch),
                                       .data = &s->train.data,
                                       .example = s->split.train_example,
                                       .n = (uint32_t)run->spec.n_examples};
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    (void)shmt_opened_tables(&run->job.opened, &s->train.data, &run->job.settings, shape);
    for (uint32_t t = 0; t < run->params->n_tables; t++) {
        struct shmt_declared *d = &run->params->table[t];
        if (!s->model->begin && shape[t].start == SHMTRAIN_ZEROS) continue;
        d->value = calloc(shmt_table_floats(&d->table), sizeof *d->value);
        if (!d->value) return shmt_no_memory(&run->call->error, "for the first values of table \"%s\"", d->table.name);
        shmt_start_fill(shape[t].start, shape[t].fan_in, shape[t].fan_out, run->job.settings.seed, t, d->value,
                        shmt_table_floats(&d->table));
        if (s->model->begin) s->model->begin(&all, &run->job.settings, run->job.opened.state, t, d->value);
    }
    return 0;
}

/* From here on the ids of the data are places (places.h). */
static int renumber_columns(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    if (!run->spec.row_places) return 0;
    const uint64_t rows = run->params->table[0].table.rows;
    int rc = s->train.in_place ? shmt_cache_places(&s->train, rows, &s->rows.place, &run->call->error)
                               : shmt_places_make(&s->train.data, rows, &s->rows.place, &run->call->error);
    if (rc == 0 && !s->train.in_place) rc = shmt_load_renumber(&s->train, run->loading, s->rows.place);
    if (rc == 0 && s->has_valid) rc = shmt_load_renumber(&s->valid, run->loading, s->rows.place);
    return rc;
}

/* Columns are places by now. */
static int measure_rows(struct shmt_training *s) {
    const struct shmt_rows_of of = {
        .model = s->model, .data = &s->train.data, .example = s->split.train_example, .spec = &s->run->spec};
    const int rc = shmt_rows_share(&s->rows, &of, &s->run->call->error);
    return rc < 0 ? rc : shmt_rows_curve(&s->rows, &of, &s->run->call->error);
}

static int draw_sample(struct shmt_training *s) { return shmt_fit_sample(s->run, &s->train.data, s->split.train_example); }

/* Numbers of the data's columns, row by row, where the model has a table for that. */
static void ask_for_columns(struct shmt_training *s) {
    struct shmt_spec *spec = &s->run->spec;
    const bool by_columns =
        spec->table[0].width == 1 && spec->table[0].rows >= s->train.data.n_features && !s->model->traits.pushes_tables;
    spec->l2_shares = shmt_rule_regularises(&spec->rule) && spec->rule.kind != SHMT_RULE_FTRL &&
                      shmt_policy_is_live(&spec->policy) && by_columns;
    spec->curvatures = (shmt_policy_is_damped(&spec->policy) || shmt_spec_has_rounds_of_hosts(spec)) && by_columns &&
                       spec->n_tables == 1 && s->model->traits.curvature > 0;
    spec->row_places = s->run->rows_by_frequency;
}

/* Whether rows will stand by frequency, before there is a spec: how many copies of them there are depends on it. */
static bool orders_rows(const struct shmt_training *s) {
    const struct shmt_run *run = s->run;
    struct shmt_spec spec = {.epochs = (uint32_t)shmt_defaults_epochs(run, s->model, s->train.totals.n_examples)};
    if (run->config->columns != SHMT_COLUMNS_AUTO || run->params->n_tables == 0) return false;
    spec.table[0] = run->params->table[0].table;
    spec.l2_rows[0] = run->params->table[0].l2_rows;
    if (shmt_cache_is_ordered(&s->train)) return shmt_places_may_be_used(s->model, &s->train.data, &spec);
    return shmt_places_are_worthwhile(s->model, &s->train.data, &spec);
}

static int make_spec(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    const uint64_t n_valid = s->has_valid ? s->valid.totals.n_examples : s->split.n_valid;
    const uint64_t n_train = s->share > 0 ? s->split.n_train : s->train.totals.n_examples;
    run->rows_by_frequency = orders_rows(s);
    run->example_nonzeros = (double)s->train.totals.n_nonzeros / (double)shmt_max_u64(1, s->train.totals.n_examples);
    int rc = shmt_spec_of_config(run, &s->crew, s->model, n_train, &run->spec);
    if (rc < 0) return rc;
    shmt_board_plan(run->spec.epochs, n_valid, shmtrain_model_outputs(s->model, &run->job.settings), &run->job.board);
    run->spec.board_bytes = run->job.board.bytes;
    rc = shmt_fit_plan(run, s->model, &s->train);
    if (rc == 0) rc = shmt_best_plan(run, n_valid > 0);
    if (rc < 0) return rc;
    run->job.settings.group = shmt_policy_is_live(&run->spec.policy) ? (uint32_t)run->config->group : SHMTRAIN_MODEL_GROUP;
    run->job.settings.threads = s->crew.n_threads;
    settle_items(s);
    ask_for_columns(s);
    return shmt_recording_plan(run, s->crew.n_threads);
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
    return s->run->config->valid[0] == '\0' && strcmp(s->model->loss, "log loss") == 0;
}

static void name_data(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    const struct shmtrain_data *t = &s->train.data, *v = &s->valid.data;
    free(run->dataset_name);
    free(run->valid_name);
    run->dataset_name = strdup(s->train.name);
    run->valid_name = name_validation(s);
    struct shmtrain_report *r = &run->report;
    r->dataset.name = run->dataset_name ? run->dataset_name : "";
    r->dataset.examples = run->spec.n_examples;
    r->dataset.features = t->n_features;
    r->dataset.nonzeros = s->nonzeros[0];
    r->dataset.skipped = s->train.totals.n_skipped;
    r->valid.skipped = s->has_valid ? s->valid.totals.n_skipped : 0;
    r->valid.name = run->valid_name ? run->valid_name : "";
    r->valid.examples = run->job.board.n_valid;
    r->valid.features = t->n_features;
    r->valid.nonzeros = s->has_valid ? s->valid.totals.n_nonzeros : s->nonzeros[1];
    r->best_loss = s->has_valid && has_best_loss(s) ? v->best_loss : NAN;
}

static int make_split(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    if (s->share == 0) return 0;
    return shmt_split_make(&s->split, run->config->seed, s->train.totals.n_examples, s->share, &run->call->error);
}

/* A fit that nobody has asked for is no reason to refuse a run: steps of SGD take less. */
static int check_memory(struct shmt_training *s) {
    int rc = shmt_train_check_memory(s);
    if (rc != SHMTRAIN_E_MEMORY || !shmt_fit_give_up(s->run, s->model)) return rc;
    rc = make_spec(s);
    if (rc == 0) rc = shmt_train_choose_memory(s);
    return rc == 0 ? shmt_train_check_need(s) : rc;
}

static int fill_data(struct shmt_training *s) {
    const struct shmt_placement *placement = &s->run->spec.placement;
    const struct shmt_readers trainers = {placement, &s->run->spec, s->split.train_example}, all = {.placement = placement};
    int rc = shmt_load_fill(&s->train, s->run->loading, &s->crew, &trainers);
    if (rc == 0 && s->has_valid) rc = shmt_load_fill(&s->valid, s->run->loading, &s->crew, &all);
    if (rc == 0 && s->share > 0) rc = shmt_split_labels(&s->split, &s->train.data, &s->run->call->error);
    if (rc < 0 || !s->train.weighted) return rc;
    const struct shmt_weights_of trained = {s->split.train_example, s->run->spec.n_examples};
    const struct shmt_weights_wish wish = {s->run->config, &trained, s->train.has_weights};
    return shmt_weights_fill(&wish, &s->train.data, s->train.weight, &s->run->call->error);
}

/* How long each worker has read. */
static int note_loading(struct shmt_training *s) {
    shmt_costs_loaded(s->run, s->train.took_ns, s->train.n_readers);
    if (s->has_valid) shmt_costs_loaded(s->run, s->valid.took_ns, s->valid.n_readers);
    return 0;
}

static int agree_with_hosts(struct shmt_training *s) {
    const struct shmt_agreed what = {
        .model = s->model, .train = &s->train.data, .valid = s->has_valid ? &s->valid.data : NULL, .valid_share = s->share};
    return shmt_hosts_agree(s->run, &what);
}

/* All that comes before the workers, or, to plan only, all but what checks memory and fills it; a stop that is asked for
 * meanwhile is seen between two of these. */
static int prepare(struct shmt_training *s, bool plan_only) {
    static const struct {
        int (*run)(struct shmt_training *);
        bool of_plan;
    } PREPARATIONS[] = {{find_libraries, false},
                        {shmt_train_open_data, true},
                        {shmt_train_check_guess, false},
                        {shmt_train_count_data, true},
                        {shmt_train_check_model, true},
                        {check_format, false},
                        {make_tables, true},
                        {make_split, true},
                        {make_spec, true},
                        {settle_checkpoints, false},
                        {shmt_train_choose_memory, true},
                        {check_memory, false},
                        {fill_data, false},
                        {check_data, false},
                        {begin_parameters, false},
                        {init_parameters, false},
                        {restore_parameters, false},
                        {renumber_columns, false},
                        {scale_features, false},
                        {choose_penalty, false},
                        {settle_rate, false},
                        {note_loading, false},
                        {measure_rows, false},
                        {draw_sample, false},
                        {agree_with_hosts, false}};
    s->run->job = (struct shmt_job){.settings = {.size = sizeof(struct shmtrain_settings),
                                                 .bias = (uint32_t)s->run->config->bias,
                                                 .seed = s->run->config->seed,
                                                 .option = s->run->texts.option}};
    shmt_offered_tell(s->run->offered, &s->run->job.settings);
    for (size_t i = 0; i < sizeof PREPARATIONS / sizeof *PREPARATIONS; i++) {
        if (plan_only && !PREPARATIONS[i].of_plan) continue;
        const int rc = PREPARATIONS[i].run(s);
        if (rc < 0) return rc;
        if (shmt_stop_asked(s->run->call))
            return shmt_fail(&s->run->call->error, SHMTRAIN_E_STOPPED, "stopped before training began");
    }
    return 0;
}

/* Of arrays that are those of a cache's file. */
static struct shmt_guarded guard_of(const struct shmt_load *load) {
    return load->in_place ? shmt_cache_guard(load->source) : (struct shmt_guarded){NULL, -1};
}

static int train(struct shmt_training *s) {
    struct shmt_run *run = s->run;
    run->job.model = s->model;
    run->job.is_offered = shmt_offered_has(run->offered, s->model);
    run->job.train = &s->train.data;
    run->job.train_guard = guard_of(&s->train);
    run->job.train_example = s->split.train_example;
    if (s->share > 0) {
        s->unweighted = s->train.data;
        s->unweighted.weight = NULL;
        run->job.valid = &s->unweighted;
        run->job.valid_example = s->split.valid_example;
        run->job.valid_label = s->split.valid_label;
        run->job.valid_guard = run->job.train_guard;
    } else if (s->has_valid) {
        run->job.valid = &s->valid.data;
        run->job.valid_label = s->valid.data.label;
        run->job.valid_guard = guard_of(&s->valid);
    }
    run->job.goal.validated = run->job.valid != NULL;
    name_data(s);
    run->lease->train = &s->train.segment;
    run->lease->valid = s->has_valid ? &s->valid.segment : NULL;
    run->lease->share = s->share;
    run->lease->features = ids_of(s);
    struct shmt_trained like = {0}; /* what belongs to others in it is theirs */
    describe(s, &like);
    run->checkpoints->as = &like;
    const int rc = shmt_run_job(run, &s->crew, &s->rows);
    run->checkpoints->as = NULL;
    shmt_trained_make(s->model, s->run->texts.joined, &s->train.data, run->job.settings.bias, &run->lease->features,
                      &run->params->trained);
    (void)shmt_trained_take_table(&run->params->trained, s->train.table, NULL); /* without memory, it was none */
    s->train.table = NULL;
    run->params->trained.ids = s->train.ids; /* nobody asks the data for its columns any more */
    run->params->trained.ids.from = NULL;
    s->train.ids = (struct shmt_ids){0};
    return rc;
}

/* A run knows what it goes on from before it is known what it is; a plan is of a new one. */
static int begin(struct shmt_training *s, bool plan_only) {
    struct shmt_run *run = s->run;
    int rc = shmt_run_begin(run);
    if (rc < 0) return rc;
    if (!s->source || s->source[0] == '\0')
        return shmt_refuse(&run->call->error, "name a file, or builtin:sparse: the data has no name");
    rc = find_model(s);
    if (rc == 0 && !plan_only) rc = shmt_checkpoints_begin(run);
    if (rc == 0 && plan_only && run->config->resume)
        shmt_log(&run->call->log,
                 "the plan is of a new run: one that --resume goes on with keeps to its kind, steps of SGD or a fit");
    if (rc == 0) rc = shmt_fit_check(run, s->model, s->source);
    if (rc == 0) rc = shmt_run_make_epochs(run, s->model);
    if (rc < 0) return rc;
    return shmt_crew_make(run->call, run->config, run->backend, s->run->fits ? SHMT_SEAT_OF_FIT : shmt_seating_of(s->model),
                          &s->crew);
}

static void end(struct shmt_training *s) {
    shmt_opened_end(&s->run->job.opened);
    shmt_readings_forget(&s->run->loading->passes);
    shmt_table_end(s->run->loading);
    shmt_standard_free(s->run->standard); /* what the store does next is on features as they are */
    shmt_rows_free(&s->rows);
    shmt_split_free(&s->split);
    shmt_load_close(&s->valid);
    shmt_load_close(&s->train);
    shmt_crew_free(&s->crew);
}

int shmt_run_training(struct shmt_run *run, const char *data) {
    struct shmt_training s = {.run = run, .source = data};
    int rc = begin(&s, false);
    if (rc == 0) rc = shmt_trace_check(run->call, run->config, data);
    if (rc == 0) rc = shmt_recording_begin(run, data);
    if (rc == 0) rc = shmt_metrics_open(run, data);
    if (rc == 0) rc = shmt_hosts_begin(run);
    if (rc == 0) rc = shmt_hosts_settle_newest(run, run->checkpoints->from_path);
    if (rc == 0) rc = shmt_lease_begin(run);
    if (rc == 0) shmt_table_begin(run->loading, run->from);
    if (rc == 0) rc = prepare(&s, false);
    if (rc == 0) rc = train(&s);
    shmt_hosts_close(run);
    shmt_checkpoints_close(run);
    shmt_recording_close(run);
    rc = shmt_metrics_end(run, shmt_lease_end(run, rc));
    end(&s);
    return rc;
}

int shmt_train_prepare(struct shmt_run *run, const char *data,
                       int (*use)(struct shmt_run *run, const struct shmt_prepared *prepared, void *arg), void *arg) {
    struct shmt_training s = {.run = run, .source = data};
    int rc = begin(&s, true);
    if (rc == 0) shmt_table_begin(run->loading, run->from);
    if (rc == 0) rc = prepare(&s, true);
    const struct shmt_prepared prepared = {.crew = &s.crew,
                                           .train = &s.train,
                                           .valid = s.has_valid ? &s.valid : NULL,
                                           .train_example = s.split.train_example,
                                           .work_bytes = rc == 0 ? shmt_train_work_bytes(&s) : 0};
    if (rc == 0) rc = use(run, &prepared, arg);
    end(&s);
    return rc;
}
