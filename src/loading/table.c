/* Tables as text in runs: see table.h. */
#include "loading/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loading/arrays.h"
#include "base/show.h"
#include "data/cache.h"
#include "files/csv_plan.h"
#include "files/model_read.h"
#include "files/show.h"
#include "keeping/checkpoint.h"
#include "keeping/parameters.h"
#include "keeping/save.h"

_Static_assert(SHMTRAIN_INFO_NAME == SHMT_WORD_SHOWN, "names are shown as words are");

#define SHOWN 3 /* names of columns and labels that are listed */

/* Of a checkpoint that a run goes on from, or a model that it begins with; what is wrong with one is for its reader to say. */
void shmt_table_begin(struct shmt_loading *loading, const struct shmt_checkpoint_in *from) {
    const char *init = loading->config->init_from;
    struct shmt_model_in *model = NULL;
    const char *note = from ? shmt_checkpoint_model_note(from, SHMT_NOTE_TABLE) : NULL;
    if (!from && init[0] != '\0' && shmt_model_open_header(init, &model, NULL) == 0)
        note = shmt_model_note(model, SHMT_NOTE_TABLE);
    shmt_table_end(loading);
    loading->table_before = note ? strdup(note) : NULL;
    loading->is_before_unmarked = model && !note;
    shmt_model_close(model);
}

void shmt_table_end(struct shmt_loading *loading) {
    free(loading->table_before);
    loading->table_before = NULL;
    loading->is_before_unmarked = false;
}

void shmt_table_wish(struct shmt_loading *loading, const char *name, unsigned how, const char *table,
                     struct shmt_table_wish *out) {
    const struct shmt_config *c = loading->config;
    const bool is_of_model =
        table && (how & SHMT_SOURCE_SCORED) == 0; /* validation data: the label was said of the other table */
    const bool is_of_other = !table && (how & (SHMT_SOURCE_SCORED | SHMT_SOURCE_UNMARKED)) != 0;
    *out = (struct shmt_table_wish){.source = {.name = name,
                                               .seed = c->seed,
                                               .how = how,
                                               .skip_bad_lines = c->skip_bad_lines != 0,
                                               .format = c->input_format,
                                               .given = shmt_arrays_find(loading, name),
                                               .stop = {shmt_call_is_stopped, loading->call}},
                                    .csv = {.label = is_of_model ? NULL : c->label,
                                            .delimiter = c->delimiter,
                                            .header = c->header,
                                            .categorical = c->categorical,
                                            .ignore = c->ignore,
                                            .plan = table,
                                            .as_they_are = c->bias == 0,
                                            .before = is_of_other ? NULL : loading->table_before,
                                            .unmarked = is_of_other || loading->is_before_unmarked}};
    out->source.csv = &out->csv;
}

/* ---- what the model knows better ---- */

static bool is_of_kind(const struct shmt_csv_plan *plan, const char *name, size_t n, uint32_t kind) {
    const uint32_t at = shmt_csv_plan_find(plan, name, n);
    return at != SHMT_CSV_NONE && plan->column[at].kind == kind;
}

/* The first column of a list, as options name them, that the plan does not have as one of this kind; a label of words has
 * categories, too. */
static bool find_other(const char *list, const struct shmt_csv_plan *plan, uint32_t kind, char shown[SHMT_WORD_SHOWN]) {
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if (n > 0) shmt_show_word(at, n, shown);
        const bool label = kind == SHMT_CSV_CATEGORY && plan->has_words && is_of_kind(plan, at, n, SHMT_CSV_LABEL);
        if (n > 0 && !label && !is_of_kind(plan, at, n, kind)) return true;
        at += n + (at[n] == ',');
    }
    return false;
}

static int check_columns(struct shmt_call *call, const struct shmt_config *config, struct shmt_parameters *params) {
    const struct shmt_csv_plan *plan = &params->trained.plan;
    char shown[SHMT_WORD_SHOWN];
    if (find_other(config->categorical, plan, SHMT_CSV_CATEGORY, shown))
        return shmt_refuse(&call->error, "--categorical %s: the model has no categories in this column; leave the option out",
                           shown);
    if (find_other(config->ignore, plan, SHMT_CSV_IGNORED, shown))
        return shmt_refuse(&call->error, "--ignore %s: the model was not trained without this column; leave the option out",
                           shown);
    return 0;
}

int shmt_table_check_options(struct shmt_call *call, const struct shmt_config *config, struct shmt_parameters *params) {
    return params->trained.table ? check_columns(call, config, params) : 0;
}

/* ---- what a cache knows better ---- */

/* One that the caller named: what is kept beside a table is made again when options read that otherwise. */
static bool is_cache(const struct shmt_load *load) { return load->source && shmt_cache_of(load->source) && !load->kept; }

static uint32_t next_feature(const struct shmt_csv_plan *plan, uint32_t i) {
    while (i < plan->n_columns && plan->column[i].feature == 0) i++;
    return i;
}

static bool have_same_features(const struct shmt_csv_plan *a, const struct shmt_csv_plan *b) {
    const bool named = a->has_header && b->has_header;
    uint32_t i = next_feature(a, 0), j = next_feature(b, 0);
    for (; i < a->n_columns && j < b->n_columns; i = next_feature(a, i + 1), j = next_feature(b, j + 1))
        if (a->column[i].kind != b->column[j].kind || (named && strcasecmp(a->name[i], b->name[j]) != 0)) return false;
    return i == a->n_columns && j == b->n_columns;
}

static bool have_same_words(const struct shmt_csv_plan *a, const struct shmt_csv_plan *b) {
    if (a->has_words != b->has_words || a->n_words != b->n_words) return false;
    for (uint32_t i = 0; i < a->n_words; i++)
        if (strcmp(a->word[i], b->word[i]) != 0) return false;
    return true;
}

/* In ascending order. */
static bool has_marks(const struct shmt_cache *cache) {
    uint32_t feature;
    for (uint32_t i = 0; cache->listed && i < cache->n_columns; i++)
        if (shmt_csv_is_mark(cache->listed[i], &feature)) return true;
    return false;
}

/* A column with more missing numbers than others marks those that are there, so that one without any number has no mark. */
static bool marks_what_is_there(const struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (plan->column[i].feature != 0 && isnan(plan->column[i].missing)) return true;
    return false;
}

/* What a missing number counts as does not matter where none is missing, which only a cache with marks can tell. */
static bool have_same_missing(const struct shmt_csv_plan *plan, const struct shmt_cache *cache,
                              const struct shmt_csv_plan *model) {
    bool same = plan->marks == model->marks;
    if (plan->marks && !has_marks(cache) && !marks_what_is_there(plan)) return true;
    uint32_t i = next_feature(plan, 0), j = next_feature(model, 0);
    for (; same && i < plan->n_columns && j < model->n_columns; i = next_feature(plan, i + 1), j = next_feature(model, j + 1)) {
        const float ours = plan->column[i].missing, theirs = model->column[j].missing;
        same = ours == theirs || (isnan(ours) && isnan(theirs));
    }
    return same;
}

static bool have_same_zeros(const struct shmt_csv_plan *plan, const struct shmt_csv_plan *model) {
    uint32_t i = next_feature(plan, 0), j = next_feature(model, 0);
    for (; i < plan->n_columns && j < model->n_columns; i = next_feature(plan, i + 1), j = next_feature(model, j + 1))
        if (plan->column[i].from != model->column[j].from) return false;
    return true;
}

static int check_as_of_model(struct shmt_call *call, const char *name, const struct shmt_csv_plan *plan,
                             const struct shmt_cache *cache, const char *model, bool labelled) {
    struct shmt_csv_plan other;
    const char *differs = NULL;
    int rc = shmt_csv_plan_parse(model, &other, &call->error);
    if (rc < 0) return rc;
    if (!have_same_features(plan, &other))
        differs = "features";
    else if (labelled && !have_same_words(plan, &other))
        differs = "labels";
    else if (!have_same_zeros(plan, &other))
        differs = "zero points of columns";
    else if (!have_same_missing(plan, cache, &other))
        differs = "values for missing numbers";
    shmt_csv_plan_fini(&other);
    if (!differs) return 0;
    return shmt_fail(&call->error, SHMTRAIN_E_DATA,
                     "%s is the cache of a table with other %s than the model's table: use the table itself", name, differs);
}

/* Without a bias nothing is taken off numbers, since nothing could make up for it. */
static int check_zeros_of_bias(struct shmt_call *call, const struct shmt_config *config, const char *name,
                               const struct shmt_csv_plan *plan) {
    char shown[SHMT_CSV_COLUMN_SHOWN];
    uint32_t i = 0;
    while (i < plan->n_columns && plan->column[i].from == 0) i++;
    if (config->bias != 0 || i == plan->n_columns) return 0;
    shmt_csv_column_show(plan, i, shown);
    return shmt_refuse(&call->error, "--bias 0: %s is the cache of a table whose %s is counted from %.0f: %s", name, shown,
                       plan->column[i].from, "use the table itself, or learn a bias");
}

/* A run that goes on from a model counts as that does; what else differs is for others to refuse. */
static int check_as_before(struct shmt_loading *loading, const char *name, const struct shmt_csv_plan *plan,
                           const struct shmt_cache *cache) {
    struct shmt_csv_plan before;
    const char *differs = NULL;
    if (!loading->table_before || shmt_csv_plan_parse(loading->table_before, &before, NULL) < 0) return 0;
    if (have_same_features(plan, &before) && !have_same_zeros(plan, &before))
        differs = "zero points of columns";
    else if (have_same_features(plan, &before) && !have_same_missing(plan, cache, &before))
        differs = "values for missing numbers";
    shmt_csv_plan_fini(&before);
    if (!differs) return 0;
    return shmt_fail(&loading->call->error, SHMTRAIN_E_DATA,
                     "%s is the cache of a table with other %s than the model that training begins with: use the table itself",
                     name, differs);
}

static int check_as_said(struct shmt_call *call, const struct shmt_config *config, const char *name,
                         const struct shmt_csv_plan *plan) {
    const char *label = config->label;
    char column[SHMT_CSV_COLUMN_SHOWN] = "nowhere", shown[SHMT_WORD_SHOWN];
    if (find_other(config->ignore, plan, SHMT_CSV_IGNORED, shown))
        return shmt_refuse(
            &call->error,
            "--ignore %s: %s is the cache of a table that was read without this option: convert the table again with it", shown,
            name);
    if (find_other(config->categorical, plan, SHMT_CSV_CATEGORY, shown))
        return shmt_refuse(
            &call->error,
            "--categorical %s: %s is the cache of a table that was read without this option: convert the table again with it",
            shown, name);
    if (label[0] == '\0' || shmt_csv_plan_find(plan, label, strlen(label)) == plan->label) return 0;
    if (plan->label != SHMT_CSV_NONE) shmt_csv_column_show(plan, plan->label, column);
    shmt_show_word(label, strlen(label), shown);
    return shmt_refuse(&call->error,
                       "--label %s: %s is the cache of a table whose label is %s: convert the table with --label again", shown,
                       name, column);
}

int shmt_table_check_cache(struct shmt_loading *loading, const struct shmt_load *load, const char *model, bool labelled) {
    struct shmt_csv_plan plan;
    char shown[SHMT_NAME_SHOWN];
    if (!load->table || !is_cache(load)) return 0;
    int rc = shmt_csv_plan_parse(load->table, &plan, &loading->call->error);
    if (rc < 0) return rc;
    shmt_show_name(load->name, shown);
    rc = model ? check_as_of_model(loading->call, shown, &plan, shmt_cache_of(load->source), model, labelled)
               : check_as_said(loading->call, loading->config, shown, &plan);
    if (rc == 0 && !model) rc = check_zeros_of_bias(loading->call, loading->config, shown, &plan);
    if (rc == 0 && !model && loading->is_before_unmarked) rc = shmt_table_check_unmarked(loading->call, load);
    if (rc == 0 && !model) rc = check_as_before(loading, shown, &plan, shmt_cache_of(load->source));
    shmt_csv_plan_fini(&plan);
    return rc;
}

static bool counts_from_elsewhere(const struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (plan->column[i].from != 0) return true;
    return false;
}

int shmt_table_check_unmarked(struct shmt_call *call, const struct shmt_load *load) {
    struct shmt_csv_plan plan;
    char shown[SHMT_NAME_SHOWN];
    if (!load->table) return 0;
    const int rc = shmt_csv_plan_parse(load->table, &plan, &call->error);
    if (rc < 0) return rc;
    const struct shmt_cache *cache = shmt_cache_of(load->source);
    const bool is_far = counts_from_elsewhere(&plan);
    const bool marks = plan.marks && (!cache || has_marks(cache) || marks_what_is_there(&plan));
    shmt_csv_plan_fini(&plan);
    if (!is_far && !marks) return 0;
    shmt_show_name(load->name, shown);
    if (!cache)
        return shmt_fail(&call->error, SHMTRAIN_E_DATA,
                         "%s is read before it is known that the training data is no table: save it to a file first", shown);
    return shmt_fail(&call->error, SHMTRAIN_E_DATA,
                     "%s is the cache of a table with %s, but the model is of data without columns: use the table itself",
                     shown, is_far ? "zero points of columns" : "missing numbers");
}

void shmt_table_note_far(const struct shmt_call *call, const char *table, const char *name) {
    struct shmt_csv_plan plan;
    char column[SHMT_CSV_COLUMN_SHOWN], shown[SHMT_NAME_SHOWN];
    uint32_t i = 0;
    if (!table || shmt_csv_plan_parse(table, &plan, NULL) < 0) return;
    while (i < plan.n_columns && plan.column[i].from == 0) i++;
    if (i < plan.n_columns) {
        shmt_csv_column_show(&plan, i, column);
        shmt_show_name(name, shown);
        shmt_log(&call->log,
                 "%s is no table, but %s is counted from %.0f in the model's: feature %u must be counted from there", shown,
                 column, plan.column[i].from, plan.column[i].feature);
    }
    shmt_csv_plan_fini(&plan);
}

bool shmt_table_is_expected(const struct shmt_config *config, const struct shmt_parameters *params) {
    const char *format = config->input_format;
    if (strcmp(format, "auto") == 0) return params->trained.table != NULL;
    return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
}

/* ---- the line ---- */

/* What has no room is cut off. */
struct text {
    char out[700];
    size_t n;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text->out + text->n, sizeof text->out - text->n, format, args);
    va_end(args);
    text->n = n < 0 || (size_t)n >= sizeof text->out - text->n ? sizeof text->out - 1 : text->n + (size_t)n;
}

static void add_kind(struct text *text, const struct shmt_csv_plan *plan, uint32_t kind, const char *word) {
    char name[SHMT_CSV_COLUMN_SHOWN];
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) n += plan->column[i].kind == kind;
    if (n == 0) return;
    add(text, ", %u %s", n, word);
    if (kind == SHMT_CSV_NUMBER) return;
    for (uint32_t i = 0, shown = 0; i < plan->n_columns && shown <= SHOWN; i++) {
        if (plan->column[i].kind != kind) continue;
        shmt_csv_column_show(plan, i, name);
        add(text, "%s%s", shown == 0 ? " (" : ", ", shown == SHOWN ? "..." : name);
        shown++;
    }
    add(text, ")");
}

static bool has_one_number(const struct shmt_csv_plan *plan) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) n += plan->column[i].kind == SHMT_CSV_NUMBER;
    return n == 1;
}

static void add_words(struct text *text, const struct shmt_csv_plan *plan) {
    if (!plan->has_words) return;
    add(text, "; labels");
    for (uint32_t i = 0; i < plan->n_words && i < SHOWN; i++) {
        char word[SHMT_WORD_SHOWN];
        shmt_show_word(plan->word[i], strlen(plan->word[i]), word);
        add(text, "%s %s", i > 0 ? "," : "", word);
    }
    add(text, plan->n_words > SHOWN ? ", ... are numbered from 0" : " are numbered from 0");
}

/* Columns that are counted from other numbers than 0. */
static void add_far(struct text *text, const struct shmt_csv_plan *plan) {
    char name[SHMT_CSV_COLUMN_SHOWN];
    uint32_t n = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        if (plan->column[i].from == 0 || n++ >= SHOWN) continue;
        shmt_csv_column_show(plan, i, name);
        add(text, "%s %s is counted from %.0f", n == 1 ? ";" : ",", name, plan->column[i].from);
    }
    if (n > SHOWN) add(text, ", and %u more from other numbers", n - SHOWN);
}

void shmt_table_log_words(const struct shmt_call *call, const struct shmt_parameters *params) {
    struct text text = {.n = 0};
    add_words(&text, &params->trained.plan);
    if (text.n > 2) shmt_log(&call->log, "%s", text.out + 2);
}

void shmt_table_log(const struct shmt_call *call, const struct shmt_config *config, const struct shmt_load *load) {
    struct shmt_csv_plan plan;
    struct text text = {.n = 0};
    char label[SHMT_CSV_COLUMN_SHOWN], shown[SHMT_NAME_SHOWN];
    if (!load->table || shmt_csv_plan_parse(load->table, &plan, NULL) < 0) return;
    shmt_show_name(load->name, shown);
    if (plan.label != SHMT_CSV_NONE) shmt_csv_column_show(&plan, plan.label, label);
    add(&text, "%s: the label is %s", shown, plan.label != SHMT_CSV_NONE ? label : "nowhere");
    if (config->label[0] == '\0' && !is_cache(load)) add(&text, " (use --label to choose another)");
    add_kind(&text, &plan, SHMT_CSV_NUMBER, has_one_number(&plan) ? "column of numbers" : "columns of numbers");
    add_kind(&text, &plan, SHMT_CSV_CATEGORY, "of categories");
    add_kind(&text, &plan, SHMT_CSV_IGNORED, "left out");
    add_far(&text, &plan);
    add_words(&text, &plan);
    shmt_log(&call->log, "%s", text.out);
    shmt_csv_plan_fini(&plan);
}

/* Of a feature; there is one. */
static uint32_t column_of(const struct shmt_csv_plan *plan, uint32_t feature) {
    uint32_t i = 0;
    while (i < plan->n_columns && plan->column[i].feature != feature) i++;
    return i;
}

void shmt_table_log_marks(const struct shmt_call *call, const struct shmt_load *load) {
    const struct shmt_ids *ids = load->columns.ids;
    struct shmt_csv_plan plan;
    struct text text = {.n = 0};
    char name[SHMT_CSV_COLUMN_SHOWN], shown[SHMT_NAME_SHOWN];
    uint32_t n = 0, feature;
    if (!load->table || !ids || shmt_csv_plan_parse(load->table, &plan, NULL) < 0) return;
    for (uint32_t i = 0; i < ids->n; i++) {
        if (!shmt_csv_is_mark(ids->id[i], &feature)) continue;
        if (n++ >= SHOWN) continue; /* looked up only if shown: there may be a mark for each of many columns */
        const uint32_t column = column_of(&plan, feature);
        if (column == plan.n_columns) continue;
        shmt_csv_column_show(&plan, column, name);
        add(&text, "%s%s", n > 1 ? ", " : "", name);
    }
    shmt_show_name(load->name, shown);
    if (n > 0)
        shmt_log(&call->log, "%s: numbers are missing in %u column%s (%s%s): %s a feature that says where", shown, n,
                 n == 1 ? "" : "s", text.out, n > SHOWN ? ", ..." : "", n == 1 ? "it has" : "each has");
    shmt_csv_plan_fini(&plan);
}

/* ---- columns ---- */

void shmt_table_columns(const char *table, struct shmtrain_data_info *out) {
    static const uint32_t KINDS[SHMT_CSV_KINDS] = {[SHMT_CSV_IGNORED] = SHMTRAIN_COLUMN_IGNORED,
                                                   [SHMT_CSV_LABEL] = SHMTRAIN_COLUMN_LABEL,
                                                   [SHMT_CSV_NUMBER] = SHMTRAIN_COLUMN_NUMBERS,
                                                   [SHMT_CSV_CATEGORY] = SHMTRAIN_COLUMN_CATEGORIES};
    struct shmt_csv_plan plan;
    out->n_columns = 0;
    if (!table || shmt_csv_plan_parse(table, &plan, NULL) < 0) return;
    out->n_columns = plan.n_columns;
    for (uint32_t i = 0; i < plan.n_columns && i < SHMTRAIN_INFO_COLUMNS; i++) {
        const char *name = plan.name[i] ? plan.name[i] : "";
        out->column[i].kind = KINDS[plan.column[i].kind];
        out->column[i].feature = plan.column[i].feature;
        out->counted_from[i] = plan.column[i].from;
        shmt_show_word(name, strlen(name), out->column[i].name);
    }
    shmt_csv_plan_fini(&plan);
}

void shmt_table_missing(const char *table, const uint32_t marked[SHMTRAIN_INFO_COLUMNS], struct shmtrain_data_info *out) {
    struct shmt_csv_plan plan;
    if (!table || shmt_csv_plan_parse(table, &plan, NULL) < 0) return;
    for (uint32_t i = 0; plan.marks && i < plan.n_columns && i < SHMTRAIN_INFO_COLUMNS; i++) {
        if (plan.column[i].kind != SHMT_CSV_NUMBER) continue;
        out->marks_there[i] = (uint8_t)isnan(plan.column[i].missing);
        out->column[i].missing = out->marks_there[i] ? (uint32_t)out->examples - marked[i] : marked[i];
    }
    shmt_csv_plan_fini(&plan);
}
