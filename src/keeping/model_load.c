/* Loading a saved model: its parameters become the store's, and what the file notes of the run that made them is what
 * prediction goes by. A file without such notes (of own worker functions, or of other programs) gives tables and parameters
 * only.
 *
 * Relies on files/model_read.c for the file itself. Here its notes are checked, and that its tables are those of the model
 * that it names. A file that is refused leaves the store as it was. */
#include "keeping/model_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeping/parameters.h"
#include "keeping/save.h"
#include "base/checked.h"
#include "base/plain.h"
#include "configuration/call.h"
#include "configuration/offered.h"
#include "files/model_read.h"
#include "math/finite.h"
#include "segment/budget.h"
#include "train/opened.h"

/* A model on its way into the store. */
struct arrival {
    struct shmt_call *call;
    const struct shmt_offered *offered;
    const char *path;
    struct shmt_model_in *file;
    const struct shmtrain_model *model; /* NULL: the file names none */
    struct shmt_trained trained;
    uint32_t n_tables;
    struct shmt_declared table[SHMT_MAX_TABLES];
    struct shmt_model_texts texts;
    uint32_t tensor[SHMT_MAX_TABLES]; /* which of the file's each table is */
};

static int refuse(const struct arrival *a, const char *key, const char *why) {
    return shmt_fail(&a->call->error, SHMTRAIN_E_DATA, "%s: key \"%s\": %s", a->path, key, why);
}

/* ---- notes ---- */

static int note_count(const struct arrival *a, const char *key, uint64_t most, uint64_t *out) {
    const char *text = shmt_model_note(a->file, key);
    if (!text) return refuse(a, key, "is missing in __metadata__");
    return shmt_plain_count(text, out) && *out <= most ? 0 : refuse(a, key, "expected a whole number in range");
}

/* One label at *at, which moves behind it. */
static int parse_label(const char **at, float *out) {
    char *end = NULL;
    *out = strtof(*at, &end);
    if (end == *at || !isfinite(*out)) return -1;
    *at = end;
    return 0;
}

static int note_label(const struct arrival *a, const char *key, float *out) {
    const char *text = shmt_model_note(a->file, key);
    if (!text) return refuse(a, key, "is missing in __metadata__");
    return parse_label(&text, out) < 0 || *text != '\0' ? refuse(a, key, "expected a number") : 0;
}

/* The ids of the features, one for each. */
static int read_ids(struct arrival *a) {
    struct shmt_trained *t = &a->trained;
    struct shmt_error why = {0};
    uint64_t n = 0;
    if (!shmt_model_has_ids(a->file, &n) || n != t->n_features)
        return refuse(a, SHMT_MODEL_IDS, "expected a tensor of U64 with an id for each feature");
    int rc = shmt_budget_need(3 * n * sizeof(uint64_t), "the ids of the model", NULL, "free some", &a->call->error);
    if (rc < 0) return rc;
    uint64_t *id = malloc((n + 1) * sizeof *id);
    if (!id) return shmt_no_memory(&a->call->error, "for the ids of %s", a->path);
    rc = shmt_model_read_ids(a->file, id, &a->call->error);
    if (rc == 0 && (rc = shmt_ids_take(id, n, &t->ids, &why)) < 0)
        rc = rc == SHMTRAIN_E_DATA ? refuse(a, SHMT_MODEL_IDS, why.text) : shmt_fail(&a->call->error, rc, "%s", why.text);
    free(id);
    return rc;
}

/* Files of the first version have no list of classes: there are the two labels. */
static int note_classes(struct arrival *a) {
    static const char KEY[] = "shmtrain.classes";
    struct shmt_trained *t = &a->trained;
    const char *at = shmt_model_note(a->file, KEY);
    if (a->model->task == SHMTRAIN_REGRESSION) return 0;
    if (!at) {
        if (t->label_low >= t->label_high) return refuse(a, KEY, "is missing in __metadata__");
        t->n_classes = 2;
        t->classes[0] = t->label_low;
        t->classes[1] = t->label_high;
        return 0;
    }
    for (uint32_t n = 0; n < SHMTRAIN_MAX_CLASSES; n++) {
        if (parse_label(&at, &t->classes[n]) < 0 || (n > 0 && t->classes[n] <= t->classes[n - 1])) break;
        t->n_classes = n + 1;
        if (*at == '\0') return 0;
        if (*at++ != ',') break;
    }
    return refuse(a, KEY, "expected labels in ascending order, with commas between them");
}

/* The classes in the order in which they are taken where outputs are equal: each of them once. */
static int note_ties(struct arrival *a) {
    static const char KEY[] = "shmtrain.ties";
    struct shmt_trained *t = &a->trained;
    const char *at = shmt_model_note(a->file, KEY);
    if (!at || t->n_classes == 0) return 0;
    memset(t->tie, 0xff, sizeof t->tie);
    for (uint32_t i = 0; i < t->n_classes; i++) {
        float label;
        uint32_t c = 0;
        if (parse_label(&at, &label) < 0 || *at != (i + 1 < t->n_classes ? ',' : '\0'))
            return refuse(a, KEY, "expected all labels");
        while (c < t->n_classes && t->classes[c] != label) c++;
        if (c == t->n_classes || t->tie[c] != UINT16_MAX) return refuse(a, KEY, "expected each label of shmtrain.classes once");
        t->tie[c] = (uint16_t)i;
        at++;
    }
    t->has_ties = 1;
    return 0;
}

/* Who evaluates trusts them: a class for each output, the outermost ones being the labels. */
static int check_classes(const struct arrival *a) {
    const struct shmt_trained *t = &a->trained;
    const uint32_t n = t->n_classes;
    if (n == 0) return 0;
    if (a->model->task == SHMTRAIN_BINARY && !isnan(a->model->threshold) && n > 2)
        return refuse(a, "shmtrain.classes", "its model is for two labels, but here are more");
    if (t->label_low != t->classes[0]) return refuse(a, "shmtrain.label_low", "it is not the first of shmtrain.classes");
    if (t->label_high != t->classes[n - 1]) return refuse(a, "shmtrain.label_high", "it is not the last of shmtrain.classes");
    return 0;
}

/* Of models with options of their own; files that have none are of a version in which the defaults were all there was. */
static int note_options(struct arrival *a) {
    const char *joined = shmt_model_note(a->file, SHMT_NOTE_OPTIONS);
    struct shmt_error why = {0};
    if (shmt_model_texts_of_joined(joined ? joined : "", a->model, &a->texts, &why) < 0)
        return refuse(a, SHMT_NOTE_OPTIONS, why.text);
    snprintf(a->trained.options, sizeof a->trained.options, "%s", a->texts.joined);
    return 0;
}

static int find_model(struct arrival *a) {
    const char *name = shmt_model_note(a->file, "shmtrain.model"), *task = shmt_model_note(a->file, "shmtrain.task");
    char shown[48];
    if (!name) return 0;
    a->model = shmt_model_named(a->offered, name);
    if (!a->model)
        return shmt_refuse(
            &a->call->error,
            "%s: its model, \"%s\", is not built in: only the program that has it can use it (see shmtrain_store_offer)",
            a->path, shmt_model_show(name, shown));
    const int rc = note_options(a);
    if (rc < 0) return rc;
    a->model = shmt_model_adapt(a->model, &a->texts);
    if (task && strcmp(task, shmt_task_name(a->model->task)) != 0)
        return refuse(a, "shmtrain.task", "the model of this name does something else");
    return 0;
}

/* How data names the features; files of the first versions do not say it, and have a range of ids. */
static int note_ids(struct arrival *a) {
    static const char KEY[] = "shmtrain.feature_ids";
    struct shmt_feature_ids *f = &a->trained.features;
    const char *kind = shmt_model_note(a->file, KEY);
    uint64_t bits = 0;
    if (!kind) return 0;
    f->kind = SHMT_IDS_HASHED + 1;
    for (uint32_t k = SHMT_IDS_RANGE; k <= SHMT_IDS_HASHED; k++)
        if (strcmp(kind, shmt_ids_kind_name(k)) == 0) f->kind = k;
    if (f->kind > SHMT_IDS_HASHED) return refuse(a, KEY, "expected none, listed or hashed");
    if (f->kind == SHMT_IDS_RANGE || f->kind == SHMT_IDS_NONE) return 0;
    if (f->first != 0) return refuse(a, "shmtrain.first_feature", "expected 0, because the ids are not a range");
    if (f->kind == SHMT_IDS_LISTED) return read_ids(a);
    const int rc = note_count(a, "shmtrain.hash_bits", SHMT_HASH_BITS_MAX, &bits);
    if (rc < 0) return rc;
    f->hash_bits = (uint32_t)bits;
    return bits > 0 && a->trained.n_features == UINT64_C(1) << bits
               ? 0
               : refuse(a, "shmtrain.hash_bits", "it does not match shmtrain.features");
}

/* Of models that were trained on a table: how it was read. */
static int note_table(struct arrival *a) {
    static const char KEY[] = SHMT_NOTE_TABLE;
    const char *text = shmt_model_note(a->file, KEY);
    struct shmt_error why = {0};
    if (!text) return 0;
    char *copy = strdup(text);
    if (!copy) return shmt_no_memory(&a->call->error, "to load %s", a->path);
    return shmt_trained_take_table(&a->trained, copy, &why) < 0 ? refuse(a, KEY, why.text) : 0;
}

/* "1x28x28"; files of data without a shape have none. */
static int note_shape(struct arrival *a) {
    const char *text = shmt_model_note(a->file, SHMT_NOTE_SHAPE);
    struct shmt_trained *t = &a->trained;
    uint64_t part[3] = {0}, all = 1;
    if (!text) return 0;
    for (int i = 0; i < 3; i++) {
        char *end;
        part[i] = *text >= '1' && *text <= '9' ? strtoull(text, &end, 10) : 0;
        if (part[i] == 0 || part[i] > UINT32_MAX || *end != (i < 2 ? 'x' : '\0') || !shmt_mul_u64(all, part[i], &all))
            return refuse(a, SHMT_NOTE_SHAPE, "expected channels, height and width, such as 1x28x28");
        text = end + 1;
    }
    if (all != t->n_features) return refuse(a, SHMT_NOTE_SHAPE, "it does not match shmtrain.features");
    t->channels = (uint32_t)part[0];
    t->height = (uint32_t)part[1];
    t->width = (uint32_t)part[2];
    return 0;
}

static int read_notes(struct arrival *a) {
    struct shmt_trained *t = &a->trained;
    uint64_t bias = 0, first = 0;
    t->model = a->model->name;
    int rc = note_count(a, "shmtrain.features", UINT32_MAX - 1, &t->n_features);
    if (rc == 0) rc = note_count(a, "shmtrain.first_feature", 1, &first);
    if (rc == 0) rc = note_count(a, "shmtrain.bias", 1, &bias);
    if (rc == 0) rc = note_label(a, "shmtrain.label_low", &t->label_low);
    if (rc == 0) rc = note_label(a, "shmtrain.label_high", &t->label_high);
    t->features.first = (uint32_t)first;
    t->bias = (uint32_t)bias;
    if (rc == 0) rc = note_ids(a);
    if (rc == 0) rc = note_table(a);
    if (rc == 0) rc = note_shape(a);
    if (rc == 0) rc = note_classes(a);
    if (rc == 0) rc = note_ties(a);
    return rc == 0 ? check_classes(a) : rc;
}

static int take_notes(struct arrival *a) {
    const int rc = find_model(a);
    if (rc == 0 && !a->model) snprintf(a->trained.foreign, sizeof a->trained.foreign, "%s", a->path);
    if (rc < 0 || !a->model) return rc;
    SHMT_PLAIN_NUMBERS;
    return read_notes(a);
}

/* ---- tables ---- */

static int declare(struct arrival *a, uint32_t i) {
    const struct shmt_tensor *tensor = shmt_model_tensor(a->file, i);
    char shown[48];
    if (a->n_tables == SHMT_MAX_TABLES)
        return shmt_fail(&a->call->error, SHMTRAIN_E_DATA, "%s: more than %d tensors: not a model of shmtrain", a->path,
                         SHMT_MAX_TABLES);
    struct shmt_declared *d = &a->table[a->n_tables];
    if (strlen(tensor->name) >= sizeof d->table.name || tensor->width > UINT32_MAX)
        return refuse(a, shmt_model_show(tensor->name, shown), "no table of shmtrain can have this name or shape");
    *d = (struct shmt_declared){.l2_rows = tensor->rows};
    memcpy(d->table.name, tensor->name, strlen(tensor->name));
    d->table.rows = tensor->rows;
    d->table.width = (uint32_t)tensor->width;
    if (shmt_table_check(&d->table, NULL) < 0)
        return refuse(a, shmt_model_show(tensor->name, shown), "no table of shmtrain can have this name or shape");
    a->tensor[a->n_tables++] = i;
    return 0;
}

/* The table that the model asks for, as the file has it. */
static int declare_shape(struct arrival *a, const struct shmtrain_shape *shape) {
    for (uint32_t i = 0; i < shmt_model_n_tensors(a->file); i++) {
        const struct shmt_tensor *tensor = shmt_model_tensor(a->file, i);
        if (strcmp(tensor->name, shape->name) != 0) continue;
        if (tensor->rows != shape->rows || tensor->width != shape->width)
            return shmt_fail(&a->call->error, SHMTRAIN_E_DATA,
                             "%s: key \"%s\": its shape is (%llu, %llu), but model %s with %llu features has (%llu, %llu)",
                             a->path, shape->name, (unsigned long long)tensor->rows, (unsigned long long)tensor->width,
                             a->model->name, (unsigned long long)a->trained.n_features, (unsigned long long)shape->rows,
                             (unsigned long long)shape->width);
        const int rc = declare(a, i);
        if (rc == 0) shmt_opened_tune(shape, &a->table[a->n_tables - 1].l2_rows, &a->table[a->n_tables - 1].tuning);
        return rc;
    }
    return refuse(a, shape->name, "this tensor is missing");
}

/* Those of the model, which must be those of the file. */
static int declare_shapes(struct arrival *a, const struct shmt_opened *opened, const struct shmtrain_data *data,
                          const struct shmtrain_settings *settings) {
    struct shmtrain_shape shape[SHMTRAIN_MODEL_TABLES];
    const uint32_t n_tensors = shmt_model_n_tensors(a->file);
    const uint32_t n = shmt_opened_tables(opened, data, settings, shape);
    int rc = 0;
    if (n != n_tensors)
        return shmt_fail(&a->call->error, SHMTRAIN_E_DATA, "%s: it has %u tensors, but model %s has %u", a->path, n_tensors,
                         a->model->name, n);
    for (uint32_t t = 0; t < n && rc == 0; t++) rc = declare_shape(a, &shape[t]);
    return rc;
}

/* The model of the file in use, to be ended. */
static int open_model(struct arrival *a, struct shmtrain_data *data, struct shmtrain_settings *settings,
                      struct shmt_opened *out) {
    struct shmt_error why = {0};
    shmt_trained_settings(&a->trained, data, settings);
    settings->option = a->texts.option;
    shmt_offered_tell(a->offered, settings);
    const int rc = shmt_opened_begin(a->model, data, settings, out, &why);
    return rc < 0 ? shmt_fail(&a->call->error, rc, "%s: %s", a->path, why.text) : 0;
}

static int take_tables(struct arrival *a) {
    const uint32_t n_tensors = shmt_model_n_tensors(a->file);
    int rc = 0;
    if (shmt_model_note(a->file, SHMT_MODEL_RECORD))
        return shmt_fail(&a->call->error, SHMTRAIN_E_DATA, "%s is the record of a run, and no model: --replay repeats the run",
                         a->path);
    if (n_tensors == 0) return shmt_fail(&a->call->error, SHMTRAIN_E_DATA, "%s: it has no tensors", a->path);
    if (!a->model) {
        for (uint32_t i = 0; i < n_tensors && rc == 0; i++) rc = declare(a, i);
        return rc;
    }
    struct shmtrain_data data;
    struct shmtrain_settings settings;
    struct shmt_opened opened;
    rc = open_model(a, &data, &settings, &opened);
    if (rc < 0) return rc;
    rc = declare_shapes(a, &opened, &data, &settings); /* whose names end with it */
    shmt_opened_end(&opened);
    return rc;
}

static int read_values(struct arrival *a) {
    struct shmt_error *e = &a->call->error;
    uint64_t bytes = 0; /* no more than the file has */
    for (uint32_t t = 0; t < a->n_tables; t++) bytes += shmt_table_floats(&a->table[t].table) * sizeof(float);
    int rc = shmt_budget_need(bytes, "the model", NULL, "free some", e);
    for (uint32_t t = 0; t < a->n_tables && rc == 0; t++) {
        struct shmt_declared *d = &a->table[t];
        const uint64_t n = shmt_table_floats(&d->table);
        d->value = malloc(n * sizeof *d->value);
        if (!d->value) return shmt_no_memory(e, "for table \"%s\"", d->table.name);
        rc = shmt_model_read_tensor(a->file, a->tensor[t], d->value, e);
        if (rc == 0 && a->model && !shmt_all_finite(d->value, n))
            rc = refuse(a, d->table.name, "some of its parameters are not finite numbers");
    }
    return rc;
}

/* ---- the store ---- */

int shmt_model_load(struct shmt_call *call, struct shmt_parameters *params, const struct shmt_offered *offered,
                    const char *path) {
    struct arrival *a = calloc(1, sizeof *a);
    if (!a) return shmt_no_memory(&call->error, "to load %s", path);
    a->call = call;
    a->offered = offered;
    a->path = path;
    int rc = shmt_model_open(path, &a->file, &call->error);
    if (rc == 0) rc = take_notes(a);
    if (rc == 0) rc = take_tables(a);
    if (rc == 0) rc = read_values(a);
    if (rc == 0) shmt_model_tell_seal(a->file, &call->log);
    if (rc == 0) shmt_parameters_move_in(params, a->table, a->n_tables, &a->trained);
    for (uint32_t t = 0; t < a->n_tables; t++) free(a->table[t].value);
    shmt_trained_clear(&a->trained);
    shmt_model_close(a->file);
    free(a);
    return rc;
}

static uint32_t describe(struct arrival *a, struct shmtrain_model_layer *layer_out) {
    struct shmtrain_data data;
    struct shmtrain_settings settings;
    struct shmt_opened opened;
    if (find_model(a) < 0 || !a->model || !a->model->describe) return 0;
    SHMT_PLAIN_NUMBERS;
    if (read_notes(a) < 0 || open_model(a, &data, &settings, &opened) < 0) return 0;
    const uint32_t n = shmt_opened_layers(&opened, &data, &settings, layer_out);
    shmt_opened_end(&opened);
    return n;
}

uint32_t shmt_model_describe(struct shmt_call *call, const struct shmt_offered *offered, const char *path,
                             struct shmt_model_in *in, struct shmtrain_model_layer *layer_out, struct shmt_error *why) {
    struct shmt_call own = {.stop_fd = call->stop_fd}; /* what it finds wrong is no failure of the call's */
    struct arrival *a = calloc(1, sizeof *a);
    if (!a) return 0;
    a->call = &own;
    a->offered = offered;
    a->path = path;
    a->file = in;
    const uint32_t n = describe(a, layer_out);
    if (a->model && own.error.status < 0) *why = own.error;
    shmt_trained_clear(&a->trained);
    free(a);
    return n;
}
