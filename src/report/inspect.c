/* What is in a saved model or a checkpoint: lines for people, and one JSON object. */
#include <shmtrain/inspect.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"
#include "base/sized.h"
#include "report/json_priv.h"
#include "report/words_priv.h"

#define MOST_CLASSES 8 /* more are told as a range */

static const char *const KINDS[] = {
    [SHMTRAIN_FILE_MODEL] = "model", [SHMTRAIN_FILE_CHECKPOINT] = "checkpoint", [SHMTRAIN_FILE_LIBLINEAR] = "liblinear model"};

static bool is_sync(const struct shmtrain_checkpoint_info *c) { return strcmp(c->mode, "sync") == 0; }

/* ---- lines ---- */

static void add_model(FILE *f, const struct shmtrain_file_info *d) {
    char a[16];
    if (d->model[0] == '\0') {
        fprintf(f, "model       not named: parameters of an application's own worker functions\n");
        return;
    }
    fprintf(f, "model       %s%s%s%s\n", d->model, d->task[0] ? " (" : "", d->task, d->task[0] ? ")" : "");
    fprintf(f, "features    %s, ", shmt_grouped_number((double)d->features, a));
    if (strcmp(d->feature_ids, "range") == 0 && d->features > 0)
        fprintf(f, "ids %" PRIu64 " to %" PRIu64, d->first_feature, d->first_feature + d->features - 1);
    else
        fprintf(f, "ids: %s", d->feature_ids);
    fprintf(f, "; %s bias\n", d->bias ? "a" : "no");
    if (d->n_classes == 0) return;
    fprintf(f, "classes     %" PRIu32 ": ", d->n_classes);
    if (d->n_classes > MOST_CLASSES)
        fprintf(f, "%g to %g", (double)d->classes[0], (double)d->classes[d->n_classes - 1]);
    else
        for (uint32_t i = 0; i < d->n_classes; i++) fprintf(f, "%s%g", i > 0 ? ", " : "", (double)d->classes[i]);
    fprintf(f, "\n");
}

static void add_fit_position(FILE *f, const struct shmtrain_checkpoint_info *c) {
    fprintf(f, "position    epoch %" PRIu32 " of an exact fit is done, ", c->epoch);
    if (isnan(c->gap))
        fprintf(f, "nothing is proved yet");
    else
        fprintf(f, "proved within %.1e of the optimum", c->gap);
}

static void add_position(FILE *f, const struct shmtrain_checkpoint_info *c) {
    char a[16], b[16];
    if (c->is_fit)
        add_fit_position(f, c);
    else if (c->epoch >= c->epochs)
        fprintf(f, "position    all %" PRIu32 " epochs are done", c->epochs);
    else
        fprintf(f, "position    epoch %" PRIu32 " of %" PRIu32 ", %s of %s %s done", c->epoch + 1, c->epochs,
                shmt_grouped_number((double)c->step, a), shmt_grouped_number((double)c->steps, b),
                is_sync(c) ? "batches" : "items");
    fprintf(f, "; after %.4g s\n", c->seconds);
    if (c->ended_by[0]) fprintf(f, "ended by    %s\n", c->ended_by);
    if (!isnan(c->train_loss)) fprintf(f, "losses      of epoch %" PRIu32 ": training %.5f", c->epoch, c->train_loss);
    if (!isnan(c->train_loss) && !isnan(c->valid_loss)) fprintf(f, ", validation %.5f", c->valid_loss);
    if (!isnan(c->train_loss)) fprintf(f, "\n");
}

static void add_run(FILE *f, const struct shmtrain_checkpoint_info *c) {
    char a[16], b[16], n[16];
    fprintf(f, "mode        %s; %" PRIu32 " worker%s; ", c->mode, c->workers, shmt_plural(c->workers));
    if (c->is_fit)
        fprintf(f, "passes over all examples\n");
    else if (is_sync(c))
        fprintf(f, "batches of %" PRIu32 " in %" PRIu32 " chunks\n", c->batch, c->chunks);
    else
        fprintf(f, "items of %" PRIu32 "\n", c->item);
    if (c->is_fit)
        fprintf(f, "optimizer   exact, until it is within %.3g; objective %.8g, l1 %g, l2 %g\n", c->tolerance, c->objective,
                c->l1, c->l2);
    else
        fprintf(f, "optimizer   %s, rate %.6g, %s; l1 %g, l2 %g\n", c->optimizer, c->rate, c->schedule, c->l1, c->l2);
    fprintf(f, "seed        %" PRIu64 "%s\n", c->seed, c->shuffle ? "" : ", not shuffled");
    if (c->n_clocks > 0)
        fprintf(f, "clocks      %" PRIu32 " of seats, from %" PRIu64 " to %" PRIu64 "\n", c->n_clocks, c->clock_least,
                c->clock_most);
    if (c->examples > 0)
        fprintf(f, "data        %s examples, %s features, %s nonzeros\n", shmt_grouped_number((double)c->examples, a),
                shmt_grouped_number((double)c->features, b), shmt_grouped_number((double)c->nonzeros, n));
}

static void add_figure(FILE *f, double x) {
    if (isnan(x))
        fprintf(f, " %9s", "-");
    else
        fprintf(f, " %9.3g", x);
}

/* A name that is too long for its column has a line of its own. */
static void add_tensor(FILE *f, const struct shmtrain_tensor_info *t) {
    char shape[48], a[16];
    snprintf(shape, sizeof shape, t->width == 1 ? "%" PRIu64 : "%" PRIu64 " x %" PRIu64, t->rows, t->width);
    fprintf(f, strlen(t->name) > 16 ? "%s\n%-16s" : "%-16s", t->name, "");
    fprintf(f, " %-4s %13s %7s", t->dtype, shape, shmt_short_number((double)t->bytes, a));
    add_figure(f, t->least);
    add_figure(f, t->most);
    add_figure(f, t->mean);
    if (isnan(t->nonzero))
        fprintf(f, "     -");
    else
        fprintf(f, " %4.0f%%", 100 * t->nonzero);
    /* Figures of epochs that nobody computed are not numbers, and nothing is wrong with that. */
    if (t->not_finite > 0 && strcmp(t->dtype, "F64") != 0)
        fprintf(f, "\n%17s%" PRIu64 " of them are infinite or not numbers", "", t->not_finite);
    fprintf(f, "\n");
}

static void add_tensors(FILE *f, const struct shmtrain_file_info *d) {
    fprintf(f, "\n%-16s %-4s %13s %7s %9s %9s %9s %5s\n", "tensor", "type", "shape", "bytes", "least", "most", "mean", "not 0");
    for (uint32_t i = 0; i < d->n_tensors && i < SHMTRAIN_FILE_TENSORS; i++) add_tensor(f, &d->tensor[i]);
}

static char *text_of(const char *name, const struct shmtrain_file_info *d) {
    SHMT_PLAIN_NUMBERS;
    char *text = NULL, a[16];
    size_t bytes;
    const size_t length = strlen(name);
    FILE *f = open_memstream(&text, &bytes);
    if (!f) return NULL;
    fprintf(f, "file        %s%s\n", length > 68 ? "..." : "", length > 68 ? name + length - 65 : name);
    fprintf(f, "kind        %s, %s bytes\n", KINDS[d->kind], shmt_grouped_number((double)d->bytes, a));
    add_model(f, d);
    if (d->kind == SHMTRAIN_FILE_CHECKPOINT) {
        add_position(f, &d->checkpoint);
        add_run(f, &d->checkpoint);
    }
    add_tensors(f, d);
    const int failed = ferror(f);
    if (fclose(f) == 0 && !failed) return text;
    free(text);
    return NULL;
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *text) { return text[0] ? shmt_json_text(text) : json_null(); }

static json_t *tensor_object(const struct shmtrain_tensor_info *t) {
    json_t *o = json_object();
    json_object_set_new(o, "name", shmt_json_text(t->name));
    json_object_set_new(o, "table", json_boolean(t->is_table));
    json_object_set_new(o, "dtype", json_string(t->dtype));
    json_object_set_new(
        o, "shape",
        t->width == 1 ? json_pack("[I]", (json_int_t)t->rows) : json_pack("[I,I]", (json_int_t)t->rows, (json_int_t)t->width));
    json_object_set_new(o, "bytes", shmt_json_whole(t->bytes));
    json_object_set_new(o, "min", shmt_json_number(t->least));
    json_object_set_new(o, "max", shmt_json_number(t->most));
    json_object_set_new(o, "mean", shmt_json_number(t->mean));
    json_object_set_new(o, "nonzero", shmt_json_number(t->nonzero));
    json_object_set_new(o, "not_finite", shmt_json_whole(t->not_finite));
    return o;
}

static void add_counts(json_t *o, const struct shmtrain_checkpoint_info *c) {
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {{"epoch", c->epoch},
                  {"epochs", c->epochs},
                  {"step", c->step},
                  {"steps", c->steps},
                  {"workers", c->workers},
                  {"batch", c->batch},
                  {"chunks", c->chunks},
                  {"item", c->item},
                  {"seed", c->seed},
                  {"examples", c->examples},
                  {"features", c->features},
                  {"nonzeros", c->nonzeros},
                  {"trained_examples", c->trained_examples},
                  {"clocks", c->n_clocks},
                  {"clock_min", c->clock_least},
                  {"clock_max", c->clock_most}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        json_object_set_new(o, counts[i].key, shmt_json_whole(counts[i].n));
}

static json_t *run_object(const struct shmtrain_checkpoint_info *c) {
    json_t *o = json_object();
    add_counts(o, c);
    json_object_set_new(o, "shuffle", json_boolean(c->shuffle));
    json_object_set_new(o, "ended_by", text_or_null(c->ended_by));
    json_object_set_new(o, "mode", shmt_json_text(c->mode));
    json_object_set_new(o, "write", json_string(c->write));
    json_object_set_new(o, "replicas", json_string(c->replicas));
    json_object_set_new(o, "optimizer", json_string(c->optimizer));
    json_object_set_new(o, "schedule", json_string(c->schedule));
    json_object_set_new(o, "rate", shmt_json_number(c->rate));
    json_object_set_new(o, "l1", shmt_json_number(c->l1));
    json_object_set_new(o, "l2", shmt_json_number(c->l2));
    json_object_set_new(o, "tolerance", shmt_json_number(c->is_fit ? c->tolerance : NAN));
    json_object_set_new(o, "objective", shmt_json_number(c->is_fit ? c->objective : NAN));
    json_object_set_new(o, "gap", shmt_json_number(c->is_fit ? c->gap : NAN));
    json_object_set_new(o, "seconds", shmt_json_number(c->seconds));
    json_object_set_new(o, "train_loss", shmt_json_number(c->train_loss));
    json_object_set_new(o, "valid_loss", shmt_json_number(c->valid_loss));
    return o;
}

static char *json_of(const char *name, const struct shmtrain_file_info *d) {
    static const char *const WORDS[] = {"model", "checkpoint", "liblinear"};
    json_t *o = json_object(), *classes = json_array(), *tensors = json_array();
    for (uint32_t i = 0; i < d->n_classes; i++) json_array_append_new(classes, shmt_json_number((double)d->classes[i]));
    for (uint32_t i = 0; i < d->n_tensors; i++) json_array_append_new(tensors, tensor_object(&d->tensor[i]));
    json_object_set_new(o, "file", shmt_json_text(name));
    json_object_set_new(o, "kind", json_string(WORDS[d->kind]));
    json_object_set_new(o, "bytes", shmt_json_whole(d->bytes));
    json_object_set_new(o, "model", text_or_null(d->model));
    json_object_set_new(o, "task", text_or_null(d->task));
    json_object_set_new(o, "features", d->model[0] ? shmt_json_whole(d->features) : json_null());
    json_object_set_new(o, "feature_ids", text_or_null(d->feature_ids));
    json_object_set_new(o, "first_feature", d->model[0] ? shmt_json_whole(d->first_feature) : json_null());
    json_object_set_new(o, "bias", d->model[0] ? json_boolean(d->bias) : json_null());
    json_object_set_new(o, "classes", classes);
    json_object_set_new(o, "checkpoint", d->kind == SHMTRAIN_FILE_CHECKPOINT ? run_object(&d->checkpoint) : json_null());
    json_object_set_new(o, "tensors", tensors);
    return shmt_json_line(o);
}

char *shmtrain_file_info_text(const char *name, const struct shmtrain_file_info *info) {
    struct shmtrain_file_info *room = malloc(sizeof *room);
    char *text = room ? text_of(name, shmt_sized_whole(info, room, sizeof *room)) : NULL;
    free(room);
    return text;
}

char *shmtrain_file_info_json(const char *name, const struct shmtrain_file_info *info) {
    struct shmtrain_file_info *room = malloc(sizeof *room);
    char *json = room ? json_of(name, shmt_sized_whole(info, room, sizeof *room)) : NULL;
    free(room);
    return json;
}
