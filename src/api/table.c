/* Tables as text in runs: see table.h. */
#include "api/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "data/csv_plan.h"
#include "data/show.h"

_Static_assert(SHMTRAIN_INFO_NAME == SHMT_WORD_SHOWN, "names are shown as words are");

#define SHOWN 3 /* names of columns and labels that are listed */

static bool is_stopped(void *store) { return shmt_stop_asked(store); }

void shmt_table_wish(struct shmtrain_store *store, const char *name, unsigned how, const char *table,
                     struct shmt_table_wish *out) {
    const struct shmt_config *c = &store->config;
    const bool is_of_model =
        table && (how & SHMT_SOURCE_SCORED) == 0; /* validation data: the label was said of the other table */
    *out = (struct shmt_table_wish){.source = {.name = name,
                                               .seed = c->seed,
                                               .how = how,
                                               .skip_bad_lines = c->skip_bad_lines != 0,
                                               .format = c->input_format,
                                               .stop = {is_stopped, store}},
                                    .csv = {.label = is_of_model ? NULL : c->label,
                                            .delimiter = c->delimiter,
                                            .header = c->header,
                                            .categorical = c->categorical,
                                            .plan = table}};
    out->source.csv = &out->csv;
}

/* ---- what the model knows better ---- */

static bool is_of_kind(const struct shmt_csv_plan *plan, const char *name, size_t n, uint32_t kind) {
    const uint32_t at = shmt_csv_plan_find(plan, name, n);
    return at != SHMT_CSV_NONE && plan->column[at].kind == kind;
}

static int check_categories(struct shmtrain_store *store) {
    char shown[SHMT_WORD_SHOWN];
    for (const char *at = store->config.categorical; *at;) {
        const size_t n = strcspn(at, ",");
        if (n > 0 && !is_of_kind(&store->trained.plan, at, n, SHMT_CSV_CATEGORY)) {
            shmt_show_word(at, n, shown);
            return shmt_fail(&store->error, SHMTRAIN_E_USAGE,
                             "--categorical %s: the model knows its columns, and has no such categories; leave the option out",
                             shown);
        }
        at += n + (at[n] == ',');
    }
    return 0;
}

int shmt_table_check_options(struct shmtrain_store *store) { return store->trained.table ? check_categories(store) : 0; }

bool shmt_table_is_expected(const struct shmtrain_store *store) {
    const char *format = store->config.input_format;
    if (strcmp(format, "auto") == 0) return store->trained.table != NULL;
    return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
}

const char *shmtrain_store_label_name(const struct shmtrain_store *store, float label) {
    const struct shmt_csv_plan *plan = &store->trained.plan;
    if (!(label >= 0 && label < (float)plan->n_words) || (float)(uint32_t)label != label) return NULL;
    return plan->word[(uint32_t)label];
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
    add(text, plan->n_words > SHOWN ? ", ... count from 0" : " count from 0");
}

void shmt_table_log_words(const struct shmtrain_store *store) {
    struct text text = {.n = 0};
    add_words(&text, &store->trained.plan);
    if (text.n > 2) shmt_log(&store->log, "%s", text.out + 2);
}

void shmt_table_log(const struct shmtrain_store *store, const char *name, const char *table) {
    struct shmt_csv_plan plan;
    struct text text = {.n = 0};
    char label[SHMT_CSV_COLUMN_SHOWN], shown[SHMT_NAME_SHOWN];
    if (!table || shmt_csv_plan_parse(table, &plan, NULL) < 0) return;
    shmt_show_name(name, shown);
    if (plan.label != SHMT_CSV_NONE) shmt_csv_column_show(&plan, plan.label, label);
    add(&text, "%s: the label is %s", shown, plan.label != SHMT_CSV_NONE ? label : "nowhere");
    if (store->config.label[0] == '\0') add(&text, " (--label names another)");
    add_kind(&text, &plan, SHMT_CSV_NUMBER, has_one_number(&plan) ? "column of numbers" : "columns of numbers");
    add_kind(&text, &plan, SHMT_CSV_CATEGORY, "of categories");
    add_kind(&text, &plan, SHMT_CSV_IGNORED, "left out");
    add_words(&text, &plan);
    shmt_log(&store->log, "%s", text.out);
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
        shmt_show_word(name, strlen(name), out->column[i].name);
    }
    shmt_csv_plan_fini(&plan);
}
