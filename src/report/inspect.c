/* What is in a saved model or a checkpoint: lines for people, and one JSON object. */
#include <shmtrain/inspect.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "report/fields.h"
#include "report/json_priv.h"
#include "report/words_priv.h"

#define MOST_CLASSES 8 /* more are told as a range */

static const char *const KINDS[] = {[SHMTRAIN_FILE_MODEL] = "model",
                                    [SHMTRAIN_FILE_CHECKPOINT] = "checkpoint",
                                    [SHMTRAIN_FILE_LIBLINEAR] = "liblinear model",
                                    [SHMTRAIN_FILE_RECORD] = "record"};

static bool is_sync(const struct shmtrain_checkpoint_info *c) { return strcmp(c->mode, "sync") == 0; }

/* ---- lines ---- */

static void add_model(FILE *f, const struct shmtrain_file_info *d) {
    char a[16];
    if (d->kind == SHMTRAIN_FILE_RECORD) {
        fprintf(f, "model       none: decisions of a run, which --replay repeats\n");
        return;
    }
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
    fprintf(f, "%s\n", d->n_layers > 0 ? "" : d->bias ? "; a bias" : "; no bias");
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

static void put_lines(FILE *f, const char *name, const void *info) {
    const struct shmtrain_file_info *d = info;
    char a[16];
    const size_t length = strlen(name);
    fprintf(f, "file        %s%s\n", length > 68 ? "..." : "", length > 68 ? name + length - 65 : name);
    fprintf(f, "kind        %s, %s bytes\n", KINDS[d->kind], shmt_grouped_number((double)d->bytes, a));
    add_model(f, d);
    if (d->kind == SHMTRAIN_FILE_CHECKPOINT) {
        add_position(f, &d->checkpoint);
        add_run(f, &d->checkpoint);
    }
    shmt_put_layers(f, d->layer, d->n_layers < SHMTRAIN_MODEL_LAYERS ? d->n_layers : SHMTRAIN_MODEL_LAYERS);
    add_tensors(f, d);
}

/* ---- JSON ---- */

static json_t *shape_of(const void *tensor) {
    const struct shmtrain_tensor_info *t = tensor;
    const json_int_t rows = (json_int_t)t->rows, width = (json_int_t)t->width;
    return width == 1 ? json_pack("[I]", rows) : json_pack("[I,I]", rows, width);
}

static json_t *classes_of(const void *info) {
    const struct shmtrain_file_info *d = info;
    json_t *list = json_array();
    for (uint32_t i = 0; i < d->n_classes; i++) json_array_append_new(list, shmt_json_number((double)d->classes[i]));
    return list;
}

static bool is_fit(const void *checkpoint) { return ((const struct shmtrain_checkpoint_info *)checkpoint)->is_fit; }
static bool has_model(const void *info) { return ((const struct shmtrain_file_info *)info)->model[0] != '\0'; }

/* Those of layers are the layers' own. */
static bool may_have_bias(const void *info) {
    return has_model(info) && ((const struct shmtrain_file_info *)info)->n_layers == 0;
}
static bool is_checkpoint(const void *info) {
    return ((const struct shmtrain_file_info *)info)->kind == SHMTRAIN_FILE_CHECKPOINT;
}
static const char *kind_word(uint32_t kind) { return kind == SHMTRAIN_FILE_LIBLINEAR ? "liblinear" : KINDS[kind]; }

/* clang-format off */
static const struct shmt_field TENSOR[] = {
    FIELD(tensor_info, name), KEYED_AS(SHMT_FLAG32, tensor_info, "table", is_table), FIELD(tensor_info, dtype),
    MADE(NULL, "shape", shape_of), FIELD(tensor_info, bytes), KEYED(tensor_info, "min", least), KEYED(tensor_info, "max", most),
    FIELD(tensor_info, mean), FIELD(tensor_info, nonzero), FIELD(tensor_info, not_finite),
    {0}};

#define OF_RUN(member) FIELD(checkpoint_info, member)
static const struct shmt_field CHECKPOINT[] = {
    OF_RUN(epoch), OF_RUN(epochs), OF_RUN(step), OF_RUN(steps), OF_RUN(workers), OF_RUN(batch), OF_RUN(chunks), OF_RUN(item),
    OF_RUN(seed), OF_RUN(examples), OF_RUN(features), OF_RUN(nonzeros), OF_RUN(trained_examples),
    KEYED(checkpoint_info, "clocks", n_clocks), KEYED(checkpoint_info, "clock_min", clock_least),
    KEYED(checkpoint_info, "clock_max", clock_most), FLAG(checkpoint_info, shuffle), SOME(checkpoint_info, ended_by),
    OF_RUN(mode), OF_RUN(write), OF_RUN(replicas), OF_RUN(optimizer), OF_RUN(schedule), OF_RUN(rate), OF_RUN(l1), OF_RUN(l2),
    WHEN(is_fit, checkpoint_info, tolerance), WHEN(is_fit, checkpoint_info, objective), WHEN(is_fit, checkpoint_info, gap),
    OF_RUN(seconds), OF_RUN(train_loss), OF_RUN(valid_loss),
    {0}};

static const struct shmt_field FILE_INFO[] = {
    WORD(file_info, kind, kind_word), FIELD(file_info, bytes), SOME(file_info, model), SOME(file_info, task),
    WHEN(has_model, file_info, features), SOME(file_info, feature_ids), WHEN(has_model, file_info, first_feature),
    {SHMT_ROW(file_info, "bias", bias, SHMT_FLAG32), .when = may_have_bias}, MADE(NULL, "classes", classes_of),
    OBJECT(is_checkpoint, "checkpoint", offsetof(struct shmtrain_file_info, checkpoint), CHECKPOINT),
    ARRAY(file_info, "layers", layer, n_layers, SHMT_LAYER), ARRAY(file_info, "tensors", tensor, n_tensors, TENSOR),
    {0}};
/* clang-format on */

char *shmtrain_file_info_text(const char *name, const struct shmtrain_file_info *info) {
    return shmt_text_by(put_lines, name, info, sizeof *info);
}

char *shmtrain_file_info_json(const char *name, const struct shmtrain_file_info *info) {
    return shmt_named_line("file", name, FILE_INFO, info, sizeof *info);
}
