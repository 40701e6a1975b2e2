/* Saving the trained model: parameters, and the few words that prediction needs; or, in formats of other programs, what these
 * have room for. */
#include "keeping/save.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeping/parameters.h"
#include "base/plain.h"
#include "configuration/call.h"
#include "configuration/model_options.h"
#include "configuration/options.h"
#include "files/model_text.h"

static char *add_note(struct shmt_notes *notes, const char *key) {
    char *text = notes->text[notes->n];
    notes->note[notes->n++] = (struct shmt_note){key, text};
    return text;
}

static void add_classes(struct shmt_notes *notes, const struct shmt_trained *trained) {
    size_t used = 0;
    for (uint32_t i = 0; i < trained->n_classes; i++)
        used += (size_t)snprintf(notes->classes + used, sizeof notes->classes - used, "%s%.9g", i > 0 ? "," : "",
                                 (double)trained->classes[i]);
    if (trained->n_classes > 0) notes->note[notes->n++] = (struct shmt_note){"shmtrain.classes", notes->classes};
}

/* In the order in which equal outputs go. */
static void add_ties(struct shmt_notes *notes, const struct shmt_trained *trained) {
    uint16_t class_at[SHMTRAIN_MAX_CLASSES];
    size_t used = 0;
    if (!trained->has_ties) return;
    for (uint32_t c = 0; c < trained->n_classes; c++) class_at[trained->tie[c]] = (uint16_t)c;
    for (uint32_t i = 0; i < trained->n_classes; i++)
        used += (size_t)snprintf(notes->ties + used, sizeof notes->ties - used, "%s%.9g", i > 0 ? "," : "",
                                 (double)trained->classes[class_at[i]]);
    notes->note[notes->n++] = (struct shmt_note){"shmtrain.ties", notes->ties};
}

void shmt_notes_make(const struct shmt_trained *t, const struct shmtrain_model *model, struct shmt_notes *notes) {
    notes->n = 0;
    if (!model) return;
    SHMT_PLAIN_NUMBERS;
    notes->note[notes->n++] = (struct shmt_note){"shmtrain.model", model->name};
    notes->note[notes->n++] = (struct shmt_note){"shmtrain.task", shmt_task_name(model->task)};
    snprintf(add_note(notes, "shmtrain.label_low"), 32, "%.9g", (double)t->label_low);
    snprintf(add_note(notes, "shmtrain.label_high"), 32, "%.9g", (double)t->label_high);
    snprintf(add_note(notes, "shmtrain.features"), 32, "%llu", (unsigned long long)t->n_features);
    snprintf(add_note(notes, "shmtrain.bias"), 32, "%u", t->bias);
    snprintf(add_note(notes, "shmtrain.first_feature"), 32, "%u", t->features.first);
    if (t->features.kind != SHMT_IDS_RANGE)
        notes->note[notes->n++] = (struct shmt_note){"shmtrain.feature_ids", shmt_ids_kind_name(t->features.kind)};
    if (t->features.kind == SHMT_IDS_HASHED) snprintf(add_note(notes, "shmtrain.hash_bits"), 32, "%u", t->features.hash_bits);
    if (t->table) notes->note[notes->n++] = (struct shmt_note){SHMT_NOTE_TABLE, t->table};
    if (t->channels > 0) snprintf(add_note(notes, SHMT_NOTE_SHAPE), 32, "%ux%ux%u", t->channels, t->height, t->width);
    if (t->options[0]) notes->note[notes->n++] = (struct shmt_note){SHMT_NOTE_OPTIONS, t->options};
    add_classes(notes, t);
    add_ties(notes, t);
}

static int read_tables(struct shmt_call *call, struct shmt_parameters *params, struct shmt_tensor *tensor, float **value) {
    for (uint32_t t = 0; t < params->n_tables; t++) {
        const struct shmt_table_spec *table = &params->table[t].table;
        value[t] = malloc(shmt_table_floats(table) * sizeof(float));
        if (!value[t]) return shmt_no_memory(&call->error, "to save table \"%s\"", table->name);
        const int rc = shmt_parameters_read(params, (int)t, 0, table->rows, value[t], &call->error);
        if (rc < 0) return rc;
        tensor[t] = (struct shmt_tensor){.name = table->name, .rows = table->rows, .width = table->width, .data = value[t]};
    }
    return 0;
}

/* Behind the tables, the ids of their rows. Returns how many tensors there are. */
static uint32_t add_ids(const struct shmt_parameters *params, struct shmt_tensor *tensor) {
    const struct shmt_trained *t = &params->trained;
    if (!t->model || t->features.kind != SHMT_IDS_LISTED) return params->n_tables;
    tensor[params->n_tables] =
        (struct shmt_tensor){.name = SHMT_MODEL_IDS, .rows = t->ids.n, .width = 1, .data = t->ids.id, .dtype = SHMT_DTYPE_U64};
    return params->n_tables + 1;
}

/* ---- formats ---- */

enum format { SAFETENSORS, LIBLINEAR, CSV, N_FORMATS };
static const char *const FORMATS[N_FORMATS] = {"safetensors", "liblinear", "csv"};

static int find_format(struct shmt_call *call, const char *name, enum format *out) {
    for (int i = 0; i < N_FORMATS; i++) {
        *out = (enum format)i;
        if (strcmp(FORMATS[i], name) == 0) return 0;
    }
    return shmt_refuse(&call->error, "format %.40s: expected safetensors, liblinear or csv", name);
}

/* The built-in models, as LIBLINEAR calls those that score alike. Of softmax with two classes the difference of the scores is
 * what logistic regression has. With more of them no solver of LIBLINEAR has its probabilities: MCSVM_CS has the same scores
 * and labels, and liblinear-predict refuses to make probabilities of them, where it would make wrong ones for L2R_LR. */
static const char *solver_of(const char *model, uint32_t n_classes) {
    if (strcmp(model, "logistic") == 0) return "L2R_LR";
    if (strcmp(model, "svm") == 0) return "L2R_L1LOSS_SVC_DUAL";
    if (strcmp(model, "linear") == 0) return "L2R_L2LOSS_SVR";
    if (strcmp(model, "softmax") == 0) return n_classes == 2 ? "L2R_LR" : "MCSVM_CS";
    return NULL;
}

static int check_model(struct shmt_call *call, enum format format, const char *model) {
    if (format == SAFETENSORS || (model && solver_of(model, 2))) return 0;
    return shmt_refuse(&call->error,
                       "format %s is for the models logistic, svm, linear and softmax, not for %s: use safetensors",
                       FORMATS[format], model ? model : "an application's own parameters");
}

int shmt_save_check_format(struct shmt_call *call, const struct shmt_config *config, const char *format) {
    enum format found = SAFETENSORS;
    const int rc = find_format(call, format, &found);
    return rc == 0 ? check_model(call, found, config->model) : rc;
}

int shmt_save_will_be(struct shmt_call *call, const struct shmt_config *config, struct shmt_parameters *params,
                      const char *format) {
    enum format found = SAFETENSORS;
    const int rc = shmt_save_check_format(call, config, format);
    if (rc < 0) return rc;
    (void)find_format(call, format, &found);
    params->save_as = (int)found;
    return 0;
}

/* All but the weights. */
static struct shmt_linear describe(const struct shmt_trained *t) {
    const bool is_softmax = strcmp(t->model, "softmax") == 0;
    return (struct shmt_linear){.solver = solver_of(t->model, t->n_classes),
                                .n_features = t->n_features,
                                .first_feature = t->features.kind == SHMT_IDS_NONE ? 1 : t->features.first,
                                .id = t->features.kind == SHMT_IDS_LISTED ? t->ids.id : NULL,
                                .is_hashed = t->features.kind == SHMT_IDS_HASHED,
                                .by_feature = 1,
                                .n_outputs = is_softmax ? t->n_classes : 1,
                                .is_softmax = is_softmax,
                                .n_labels = t->n_classes,
                                .label = t->classes};
}

/* The parameters as what they mean: tables of sparse models are a column whose last row is the bias, those of softmax have a
 * row for each class. */
static struct shmt_linear describe_whole(const struct shmt_trained *t, const struct shmt_tensor *tensor) {
    struct shmt_linear m = describe(t);
    m.weight = tensor[0].data;
    m.by_output = tensor[0].width;
    if (t->bias) m.bias = m.is_softmax ? (const float *)tensor[1].data : m.weight + t->n_features;
    return m;
}

static int compare_ids(const void *a, const void *b) {
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Whether a column of numbers has a mark of its own among these features, whose ids ascend. */
static bool is_marked(const struct shmt_trained *like, uint32_t feature) {
    const uint64_t mark = SHMT_CSV_MARK_ID | feature;
    return like->features.kind == SHMT_IDS_LISTED && like->ids.n > 0 &&
           bsearch(&mark, like->ids.id, like->ids.n, sizeof mark, compare_ids);
}

/* What a column has that LIBLINEAR's models have no room for; `out` is empty where there is nothing. */
static void describe_column(const struct shmt_csv_plan *plan, uint32_t i, const struct shmt_trained *like, char out[160]) {
    const struct shmt_csv_column *c = &plan->column[i];
    char shown[SHMT_CSV_COLUMN_SHOWN];
    out[0] = '\0';
    shmt_csv_column_show(plan, i, shown);
    if (c->from != 0)
        snprintf(out, 160, "%s is counted from %.0f", shown, c->from);
    else if (c->kind == SHMT_CSV_CATEGORY)
        snprintf(out, 160, "%s has categories", shown);
    else if (c->kind == SHMT_CSV_NUMBER && is_marked(like, c->feature))
        snprintf(out, 160, "numbers are missing in %s", shown);
}

/* LIBLINEAR's models are for features as they are, which are numbered one after the other. */
static int check_columns(struct shmt_call *call, enum format format, const struct shmt_trained *like) {
    struct shmt_csv_plan plan;
    char what[160];
    int rc = 0;
    if (format != LIBLINEAR || !like->table || shmt_csv_plan_parse(like->table, &plan, NULL) < 0) return 0;
    for (uint32_t i = 0; i < plan.n_columns && rc == 0; i++) {
        describe_column(&plan, i, like, what);
        if (what[0] != '\0')
            rc = shmt_refuse(&call->error,
                             "format liblinear: %s, which LIBLINEAR's models have no room for: use csv or safetensors", what);
    }
    shmt_csv_plan_fini(&plan);
    return rc;
}

/* Of a text in JSON, at most: control characters and what is not ASCII may become \u and four digits. */
static uint64_t bytes_in_json(const char *text) {
    uint64_t n = 0;
    for (; *text; text++) n += *text == '"' || *text == '\\' ? 2 : *text >= ' ' && *text <= '~' ? 1 : 6;
    return n;
}

/* Checkpoints are model files, too: so this is for runs that only save those, or nothing. */
static int check_header(struct shmt_call *call, const char *table) {
    const uint64_t others = 1 << 20; /* all other notes, with classes and ties, and the tensors */
    const uint64_t bytes = table ? bytes_in_json(table) : 0;
    if (bytes <= SHMT_MODEL_MOST_HEADER - others) return 0;
    return shmt_fail(
        &call->error, SHMTRAIN_E_DATA,
        "the table's columns and labels take %llu MiB, but a model file has room for %llu: give columns shorter names, "
        "or use LIBSVM text",
        (unsigned long long)(bytes >> 20) + 1, (unsigned long long)((SHMT_MODEL_MOST_HEADER - others) >> 20));
}

int shmt_save_check(struct shmt_call *call, const struct shmt_parameters *params, const struct shmt_trained *like) {
    struct shmt_error why = {0};
    int rc = check_model(call, (enum format)params->save_as, like->model);
    if (rc == 0) rc = check_header(call, like->table);
    if (rc == 0) rc = check_columns(call, (enum format)params->save_as, like);
    if (rc < 0 || params->save_as == SAFETENSORS) return rc;
    const struct shmt_linear model = describe(like);
    rc = params->save_as == CSV ? shmt_csv_check(&model, &why) : shmt_liblinear_check(&model, &why);
    return rc < 0 ? shmt_fail(&call->error, rc, "format %s: %s", FORMATS[params->save_as], why.text) : 0;
}

/* The columns of numbers, and their marks, by their names; of categories only the hashes are known. */
static int write_csv(struct shmt_call *call, struct shmt_parameters *params, const char *path, struct shmt_linear *model) {
    const struct shmt_csv_plan *plan = &params->trained.plan;
    const char **name = calloc(2 * ((size_t)plan->n_features + 1), sizeof *name), **mark = name + plan->n_features + 1;
    double *from = calloc((size_t)plan->n_features + 1, sizeof *from);
    if (!name || !from) {
        free(name);
        free(from);
        return shmt_no_memory(&call->error, "to save a model");
    }
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        const struct shmt_csv_column *c = &plan->column[i];
        if (c->kind != SHMT_CSV_NUMBER) continue;
        if (plan->name[i] && plan->name[i][0] != '\0') name[c->feature - 1] = plan->name[i];
        from[c->feature - 1] = c->from;
        mark[c->feature - 1] = isnan(c->missing) ? "is there" : "is missing";
    }
    model->name = name;
    model->mark = mark;
    model->from = from;
    model->n_names = plan->n_features;
    const int rc = shmt_csv_write(path, model, &call->error);
    free(name);
    free(from);
    return rc;
}

static int write_as(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered,
                    const char *path, enum format format, const struct shmt_tensor *tensor, uint32_t n_tensors) {
    struct shmt_notes notes;
    if (format == SAFETENSORS) {
        const struct shmt_trained *t = &params->trained;
        struct shmt_model_texts room;
        shmt_notes_make(t, shmt_model_of_joined(offered, t->model, t->options, &room), &notes);
        return shmt_model_file_write(path, tensor, n_tensors, notes.note, notes.n, &call->error);
    }
    struct shmt_linear model = describe_whole(&params->trained, tensor);
    if (format == CSV) return write_csv(call, params, path, &model);
    return shmt_liblinear_write(path, &model, &call->error);
}

int shmt_save_as(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered, const char *path,
                 const char *format) {
    struct shmt_tensor tensor[SHMT_MAX_TABLES + 1] = {0};
    uint32_t n_tensors = 0;
    float *value[SHMT_MAX_TABLES] = {0};
    enum format found = SAFETENSORS;
    int rc = find_format(call, format, &found);
    if (rc < 0) return rc;
    if (!params->has_run) return shmt_refuse(&call->error, "there is nothing to save: no run has trained yet");
    rc = check_model(call, found, params->trained.model);
    if (rc == 0) rc = check_columns(call, found, &params->trained);
    if (rc == 0) rc = shmt_trained_check_ids(&params->trained, &call->error);
    if (rc == 0) rc = read_tables(call, params, tensor, value);
    if (rc == 0) n_tensors = add_ids(params, tensor);
    if (rc == 0) rc = write_as(call, params, offered, path, found, tensor, n_tensors);
    for (uint32_t t = 0; t < params->n_tables; t++) free(value[t]);
    return rc;
}
