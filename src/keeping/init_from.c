/* Option init-from: the parameters of a saved model, or of a checkpoint, as those that a run begins with. Optimizer state is
 * not taken. Called by running when the tables are declared and nothing is in them yet.
 *
 * A model's parameters go by what they are of: those of a feature to the feature with the same id in the data, whatever its
 * number is in either, those of a class to the same class. Features that only one of the two has begin as without the option,
 * or are left out; a line says how many. A model made of layers has parameters in which features are mixed, and scales that stand by
 * number: its file has to be of the same features, in images of the same shape, and of the same options but for those of training. */
#include "keeping/init_from.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeping/model_load.h"
#include "keeping/parameters.h"
#include "base/show.h"
#include "configuration/call.h"

/* The file as parameters of its own, which have been read and checked. */
struct origin {
    struct shmt_call *call;
    const struct shmt_offered *offered;
    struct shmt_parameters *params, from;
    const struct shmt_trained *ours; /* what is trained; NULL: own worker functions */
    const char *path;
    char shown[SHMT_NAME_SHOWN];
    uint32_t *column; /* (features of the file) which of ours each is; UINT32_MAX: none */
    uint64_t n_shared;
};

static int refuse(const struct origin *o, const char *what, const char *ours, const char *theirs) {
    return shmt_refuse(&o->call->error, "--init-from %s: its %s %.80s, but here it is %.80s: name another file", o->shown, what,
                       theirs, ours);
}

/* ---- whether they fit ---- */

static int check_classes(const struct origin *o) {
    const struct shmt_trained *a = o->ours, *b = &o->from.trained;
    char text[2][64];
    if (a->n_classes == b->n_classes && memcmp(a->classes, b->classes, a->n_classes * sizeof *a->classes) == 0) return 0;
    for (int i = 0; i < 2; i++) {
        const struct shmt_trained *t = i == 0 ? a : b;
        if (t->n_classes == 0)
            snprintf(text[i], sizeof text[i], "none");
        else
            snprintf(text[i], sizeof text[i], "%u labels from %g to %g", t->n_classes, (double)t->classes[0],
                     (double)t->classes[t->n_classes - 1]);
    }
    return refuse(o, "label set is", text[0], text[1]);
}

static int check_model(const struct origin *o) {
    const struct shmt_trained *a = o->ours, *b = &o->from.trained;
    char bits[2][32];
    if (strcmp(a->model, b->model) != 0) return refuse(o, "model is", a->model, b->model);
    if (a->bias != b->bias) return refuse(o, "bias is", a->bias ? "learned" : "left out", b->bias ? "learned" : "left out");
    snprintf(bits[0], sizeof bits[0], "%u", a->features.hash_bits);
    snprintf(bits[1], sizeof bits[1], "%u", b->features.hash_bits);
    if (a->features.hash_bits != b->features.hash_bits)
        return refuse(o, "number of --hash-bits is", a->features.hash_bits ? bits[0] : "none",
                      b->features.hash_bits ? bits[1] : "none");
    return check_classes(o);
}

/* ---- models made of layers ---- */

static bool has_layers(const struct origin *o) {
    const struct shmtrain_model *model = shmt_model_named(o->offered, o->ours->model);
    return model && model->describe;
}

/* "auto" is whatever the tables show, and changes of training examples are this run's affair. */
static bool may_differ(const char *name, const char *a, const char *b) {
    return strcmp(a, b) == 0 || strcmp(a, "auto") == 0 || strcmp(b, "auto") == 0 || strcmp(name, "augment") == 0;
}

static int check_options(const struct origin *o) {
    const struct shmtrain_model *model = shmt_model_named(o->offered, o->ours->model);
    struct shmt_model_texts ours, theirs;
    char what[80];
    int rc = shmt_model_texts_of_joined(o->ours->options, model, &ours, &o->call->error);
    if (rc == 0) rc = shmt_model_texts_of_joined(o->from.trained.options, model, &theirs, &o->call->error);
    for (uint32_t i = 0; rc == 0 && i < model->n_options; i++) {
        if (may_differ(model->options[i].name, ours.option[i], theirs.option[i])) continue;
        snprintf(what, sizeof what, "--%.60s is", model->options[i].name);
        return refuse(o, what, ours.option[i], theirs.option[i]);
    }
    return rc;
}

/* Of examples whose shape nobody knows, only the number of features counts. */
static int check_shape(const struct origin *o) {
    const struct shmt_trained *a = o->ours, *b = &o->from.trained;
    char text[2][48];
    if (a->channels == 0 || b->channels == 0) return 0;
    if (a->channels == b->channels && a->height == b->height && a->width == b->width) return 0;
    for (int i = 0; i < 2; i++) {
        const struct shmt_trained *t = i == 0 ? a : b;
        snprintf(text[i], sizeof text[i], "%ux%ux%u", t->channels, t->height, t->width);
    }
    return refuse(o, "images' shape is", text[0], text[1]);
}

/* ---- features ---- */

static uint64_t id_of(const struct shmt_trained *t, uint64_t feature) {
    return t->features.kind == SHMT_IDS_LISTED ? t->ids.id[feature] : t->features.first + feature;
}

/* Ids of a list ascend. UINT32_MAX: none of them. */
static uint32_t find_feature(const struct shmt_trained *t, uint64_t id) {
    uint64_t from = 0, to = t->n_features;
    if (t->features.kind != SHMT_IDS_LISTED)
        return id >= t->features.first && id - t->features.first < to ? (uint32_t)(id - t->features.first) : UINT32_MAX;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (t->ids.id[middle] == id) return (uint32_t)middle;
        if (t->ids.id[middle] < id)
            from = middle + 1;
        else
            to = middle;
    }
    return UINT32_MAX;
}

/* Whether each feature of the file has the same number here, and there are no others. */
static bool are_in_place(const struct origin *o) {
    const uint64_t n = o->from.trained.n_features;
    uint64_t j = 0;
    while (j < n && o->column[j] == j) j++;
    return j == n && n == o->ours->n_features;
}

static void say_features(const struct shmt_trained *t, char *out, size_t bytes) {
    if (t->n_features == 0)
        snprintf(out, bytes, "none");
    else
        snprintf(out, bytes, "%llu from id %llu to %llu", (unsigned long long)t->n_features, (unsigned long long)id_of(t, 0),
                 (unsigned long long)id_of(t, t->n_features - 1));
}

static int check_places(const struct origin *o) {
    char ours[96], theirs[96];
    if (!has_layers(o) || are_in_place(o)) return 0;
    say_features(o->ours, ours, sizeof ours);
    say_features(&o->from.trained, theirs, sizeof theirs);
    return shmt_refuse(
        &o->call->error,
        "--init-from %s: its features (%s) are not those of the data (%s), and a network can begin only with the "
        "same ones: name another file",
        o->shown, theirs, ours);
}

static int match_features(struct origin *o) {
    const struct shmt_trained *b = &o->from.trained;
    o->column = malloc((b->n_features + 1) * sizeof *o->column);
    if (!o->column) return shmt_no_memory(&o->call->error, "to start from %s", o->shown);
    for (uint64_t j = 0; j < b->n_features; j++) {
        o->column[j] = b->features.kind == SHMT_IDS_HASHED ? (uint32_t)j : find_feature(o->ours, id_of(b, j));
        o->n_shared += o->column[j] != UINT32_MAX;
    }
    const uint64_t left_out = b->n_features - o->n_shared;
    if (o->n_shared == 0 && b->n_features > 0 && o->ours->n_features > 0)
        return shmt_refuse(&o->call->error, "--init-from %s: none of its %llu features occurs in the data: name another file",
                           o->shown, (unsigned long long)b->n_features);
    const int placed = check_places(o);
    if (placed < 0) return placed;
    char more[64] = "";
    if (left_out > 0) snprintf(more, sizeof more, ", and %llu others, which are left out", (unsigned long long)left_out);
    if (left_out > 0 || o->n_shared < o->ours->n_features)
        shmt_log(&o->call->log, "starts from %s, which has %llu of the data's %llu features%s", o->shown,
                 (unsigned long long)o->n_shared, (unsigned long long)o->ours->n_features, more);
    return 0;
}

/* ---- parameters ---- */

/* Memory for a table's parameters, if it has none yet: what it is begun with without the option. */
static float *open_table(struct shmt_call *call, struct shmt_parameters *params, uint32_t t) {
    struct shmt_declared *d = &params->table[t];
    if (!d->value) d->value = calloc(shmt_table_floats(&d->table), sizeof *d->value);
    if (!d->value) shmt_no_memory(&call->error, "for table \"%s\"", d->table.name);
    return d->value;
}

/* Of (features and perhaps a bias, width). */
static void move_rows(const struct origin *o, uint64_t width, const float *from, float *to) {
    const uint64_t n_from = o->from.trained.n_features, n_to = o->ours->n_features;
    for (uint64_t j = 0; j < n_from; j++)
        if (o->column[j] != UINT32_MAX) memcpy(to + o->column[j] * width, from + j * width, width * sizeof *to);
    if (o->ours->bias) memcpy(to + n_to * width, from + n_from * width, width * sizeof *to);
}

/* Of (classes, features). */
static void move_columns(const struct origin *o, uint64_t rows, const float *from, float *to) {
    const uint64_t n_from = o->from.trained.n_features, n_to = o->ours->n_features;
    for (uint64_t row = 0; row < rows; row++)
        for (uint64_t j = 0; j < n_from; j++)
            if (o->column[j] != UINT32_MAX) to[row * n_to + o->column[j]] = from[row * n_from + j];
}

static int refuse_table(const struct origin *o, const struct shmt_table_spec *ours, const struct shmt_table_spec *theirs) {
    char text[2][80] = {"none of that name", "none of that name"};
    for (int i = 0; i < 2; i++) {
        const struct shmt_table_spec *t = i == 0 ? ours : theirs;
        if (t) snprintf(text[i], sizeof text[i], "\"%s\" of (%llu, %u)", t->name, (unsigned long long)t->rows, t->width);
    }
    return refuse(o, "table is", text[0], text[1]);
}

/* The file's table that is what our table t is. Of the first one rows or columns are features; others are not of features. */
static int move_table(const struct origin *o, uint32_t t) {
    const struct shmt_table_spec *ours = &o->params->table[t].table, *theirs = NULL;
    const float *from = NULL;
    for (uint32_t i = 0; i < o->from.n_tables; i++) {
        if (strcmp(o->from.table[i].table.name, ours->name) != 0) continue;
        theirs = &o->from.table[i].table;
        from = o->from.table[i].value;
    }
    if (!theirs || !from) return refuse_table(o, ours, theirs);
    const bool same = theirs->rows == ours->rows && theirs->width == ours->width;
    const uint64_t n_ours = o->ours ? o->ours->n_features : 0, n_theirs = o->from.trained.n_features;
    const uint64_t bias = o->ours ? o->ours->bias : 0;
    const bool by_row =
        o->ours && ours->width == theirs->width && ours->rows == n_ours + bias && theirs->rows == n_theirs + bias;
    const bool by_column =
        o->ours && t == 0 && ours->rows == theirs->rows && ours->width == n_ours && theirs->width == n_theirs;
    if (!by_column && !(by_row && t == 0) && !same) return refuse_table(o, ours, theirs);
    float *to = open_table(o->call, o->params, t);
    if (!to) return SHMTRAIN_E_MEMORY;
    if (by_column)
        move_columns(o, ours->rows, from, to);
    else if (by_row && t == 0)
        move_rows(o, ours->width, from, to);
    else
        memcpy(to, from, shmt_table_floats(ours) * sizeof *to);
    return 0;
}

/* Nothing of a model is left out without a word. */
static int check_taken(const struct origin *o) {
    for (uint32_t i = 0; i < o->from.n_tables; i++) {
        uint32_t t = 0;
        while (t < o->params->n_tables && strcmp(o->params->table[t].table.name, o->from.table[i].table.name) != 0) t++;
        if (t == o->params->n_tables) return refuse_table(o, NULL, &o->from.table[i].table);
    }
    return 0;
}

/* ---- the file ---- */

static int move_all(struct origin *o) {
    const bool named = o->from.trained.model != NULL;
    int rc = 0;
    if (o->ours && named) rc = check_model(o);
    if (o->ours && !named) return refuse(o, "model is", o->ours->model, "not named");
    if (rc == 0 && o->ours && has_layers(o)) rc = check_options(o);
    if (rc == 0 && o->ours && has_layers(o)) rc = check_shape(o);
    if (rc == 0 && o->ours) rc = check_taken(o);
    if (rc == 0 && o->ours) rc = match_features(o);
    for (uint32_t t = 0; t < o->params->n_tables && rc == 0; t++) rc = move_table(o, t);
    return rc;
}

static int open_origin(struct origin *o) {
    struct shmt_call call = {.log = o->call->log};
    const int rc = shmt_model_load(&call, &o->from, o->offered, o->path);
    return rc < 0 ? shmt_fail(&o->call->error, rc, "--init-from: %s", call.error.text) : 0;
}

int shmt_init_from(struct shmt_call *call, const char *path, const struct shmt_offered *offered, struct shmt_parameters *params,
                   const struct shmt_trained *ours) {
    struct origin o = {.call = call, .offered = offered, .params = params, .ours = ours, .path = path};
    if (o.path[0] == '\0') return 0;
    shmt_show_name(o.path, o.shown);
    shmt_parameters_init(&o.from);
    int rc = open_origin(&o);
    if (rc == 0) rc = move_all(&o);
    free(o.column);
    shmt_parameters_fini(&o.from);
    return rc;
}
