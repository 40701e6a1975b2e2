/* What is in a saved model or a checkpoint: see <shmtrain/inspect.h>. Reads all of it, some elements at a time, and takes
 * nothing of it into the store. */
#include "keeping/inspect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeping/checkpoint.h"
#include "keeping/model_load.h"
#include "keeping/trained.h"
#include "base/plain.h"
#include "base/show.h"
#include "base/sized.h"
#include "configuration/call.h"
#include "files/model_read.h"
#include "segment/budget.h"
#include "solve/choose.h"
#include "train/goal.h"

#define AT_ONCE 65536 /* elements */

static void copy_plainly(char *out, size_t bytes, const char *text) {
    snprintf(out, bytes, "%s", text ? text : "");
    shmt_show_plainly(out);
}

/* ---- tensors ---- */

struct figures {
    uint64_t finite, nonzero, others;
    double sum, least, most;
};

static void add_element(struct figures *f, double x) {
    f->nonzero += x != 0; /* what is no number is not 0 */
    if (!isfinite(x)) {
        f->others++;
        return;
    }
    if (f->finite == 0 || x < f->least) f->least = x;
    if (f->finite == 0 || x > f->most) f->most = x;
    f->sum += x;
    f->finite++;
}

static void add_elements(struct figures *f, enum shmt_dtype dtype, const void *from, uint64_t n) {
    switch (dtype) {
        case SHMT_DTYPE_F32:
            for (uint64_t i = 0; i < n; i++) add_element(f, (double)((const float *)from)[i]);
            return;
        case SHMT_DTYPE_F64:
            for (uint64_t i = 0; i < n; i++) add_element(f, ((const double *)from)[i]);
            return;
        case SHMT_DTYPE_U32:
            for (uint64_t i = 0; i < n; i++) add_element(f, ((const uint32_t *)from)[i]);
            return;
        case SHMT_DTYPE_U64:
            for (uint64_t i = 0; i < n; i++) add_element(f, (double)((const uint64_t *)from)[i]);
            return;
        case SHMT_N_DTYPES:
            return;
    }
}

/* Text can only be read whole. */
static int look_at_elements(struct shmt_call *call, const struct shmt_model_in *in, uint32_t i, struct figures *out) {
    const struct shmt_tensor *tensor = shmt_model_tensor(in, i);
    const uint64_t n = tensor->rows * tensor->width, each = shmt_dtype_bytes(tensor->dtype);
    const bool whole = shmt_model_is_liblinear(in);
    const uint64_t at_once = whole ? n : AT_ONCE;
    int rc = shmt_budget_need(at_once * each, "the model", NULL, "free some", &call->error);
    if (rc < 0) return rc;
    double *elements = malloc(at_once * each + 1); /* as aligned as any type of them */
    if (!elements) return shmt_no_memory(&call->error, "to inspect a model");
    for (uint64_t from = 0; from < n && rc == 0; from += at_once) {
        const uint64_t some = n - from < at_once ? n - from : at_once;
        rc = whole ? shmt_model_read_tensor(in, i, elements, &call->error)
                   : shmt_model_read_part(in, i, from, some, elements, &call->error);
        if (rc == 0) add_elements(out, tensor->dtype, elements, some);
    }
    free(elements);
    return rc;
}

static int look_at_tensor(struct shmt_call *call, const struct shmt_model_in *in, uint32_t i,
                          struct shmtrain_tensor_info *out) {
    const struct shmt_tensor *tensor = shmt_model_tensor(in, i);
    struct figures f = {.sum = 0};
    const int rc = look_at_elements(call, in, i, &f);
    const uint64_t n = tensor->rows * tensor->width;
    const bool some = f.finite > 0, is_table = i < shmt_model_n_tensors(in);
    *out = (struct shmtrain_tensor_info){.is_table = is_table,
                                         .rows = tensor->rows,
                                         .width = tensor->width,
                                         .bytes = n * shmt_dtype_bytes(tensor->dtype),
                                         .not_finite = f.others,
                                         .least = some ? f.least : NAN,
                                         .most = some ? f.most : NAN,
                                         .mean = some ? f.sum / (double)f.finite : NAN,
                                         .nonzero = n > 0 ? (double)f.nonzero / (double)n : NAN};
    copy_plainly(out->name, sizeof out->name, tensor->name);
    snprintf(out->dtype, sizeof out->dtype, "%s", shmt_dtype_name(tensor->dtype));
    return rc;
}

/* ---- the model ---- */

static uint64_t note_count(const struct shmt_model_in *in, const char *key) {
    const char *text = shmt_model_note(in, key);
    return text && text[0] >= '0' && text[0] <= '9' ? strtoull(text, NULL, 10) : 0;
}

/* Files of the first version have two labels in place of a list. */
static void take_classes(const struct shmt_model_in *in, struct shmtrain_file_info *out) {
    const char *at = shmt_model_note(in, "shmtrain.classes"), *low = shmt_model_note(in, "shmtrain.label_low");
    const char *high = shmt_model_note(in, "shmtrain.label_high");
    char *end;
    while (at && out->n_classes < SHMTRAIN_MAX_CLASSES) {
        out->classes[out->n_classes] = strtof(at, &end);
        if (end == at) break;
        out->n_classes++;
        at = *end == ',' ? end + 1 : NULL;
    }
    if (out->n_classes > 0 || !low || !high || strcmp(out->task, "binary") != 0) return;
    out->classes[out->n_classes++] = strtof(low, NULL);
    out->classes[out->n_classes++] = strtof(high, NULL);
}

static void take_notes(const struct shmt_model_in *in, struct shmtrain_file_info *out) {
    const char *kind = shmt_model_note(in, "shmtrain.feature_ids");
    copy_plainly(out->model, sizeof out->model, shmt_model_note(in, "shmtrain.model"));
    copy_plainly(out->task, sizeof out->task, shmt_model_note(in, "shmtrain.task"));
    if (out->model[0] == '\0') return;
    out->features = note_count(in, "shmtrain.features");
    out->first_feature = note_count(in, "shmtrain.first_feature");
    out->bias = note_count(in, "shmtrain.bias") == 1;
    copy_plainly(out->feature_ids, sizeof out->feature_ids, kind ? kind : shmt_ids_kind_name(SHMT_IDS_RANGE));
    take_classes(in, out);
}

/* ---- the run ---- */

static void take_clocks(const struct shmt_moment *at, struct shmtrain_checkpoint_info *out) {
    out->n_clocks = at->n_clocks;
    for (uint32_t i = 0; i < at->n_clocks; i++) {
        if (i == 0 || at->clock[i] < out->clock_least) out->clock_least = at->clock[i];
        if (at->clock[i] > out->clock_most) out->clock_most = at->clock[i];
    }
}

static void take_fit(const struct shmt_checkpoint_fit *fit, struct shmtrain_checkpoint_info *out) {
    out->objective = out->gap = out->tolerance = NAN;
    if (!fit->is) return;
    out->is_fit = 1;
    out->objective = fit->kept.published;
    const double gap = shmt_keep_gap(&fit->kept);
    out->gap = isfinite(gap) ? gap : NAN;
    out->tolerance = fit->tolerance;
    out->l1 = fit->l1;
    out->l2 = fit->kept.chosen ? shmt_choice_l2(fit->kept.strength, out->trained_examples) : fit->l2;
    out->rate = NAN;
    snprintf(out->optimizer, sizeof out->optimizer, "exact");
    snprintf(out->schedule, sizeof out->schedule, "none");
    if (fit->live == SHMT_LIVE_NO) return;
    snprintf(out->mode, sizeof out->mode, "%s", fit->live == SHMT_LIVE_RACY ? "hogwild" : "async");
    snprintf(out->write, sizeof out->write, "%s",
             shmt_write_name(fit->live == SHMT_LIVE_RACY ? SHMT_WRITE_RACY : SHMT_WRITE_ATOMIC));
}

static void take_run(const struct shmt_checkpoint *c, struct shmtrain_checkpoint_info *out) {
    const struct shmt_spec *spec = &c->spec;
    const struct shmtrain_epoch *last = c->at.n_records > 0 ? &c->at.record[c->at.n_records - 1] : NULL;
    *out = (struct shmtrain_checkpoint_info){.epoch = c->at.epoch,
                                             .epochs = spec->epochs,
                                             .step = c->at.step,
                                             .steps = shmt_spec_steps(spec),
                                             .seconds = c->at.seconds,
                                             .workers = spec->n_workers,
                                             .batch = spec->batch,
                                             .chunks = spec->n_chunks,
                                             .item = spec->item,
                                             .seed = spec->order.seed,
                                             .shuffle = spec->order.shuffle,
                                             .rate = (double)spec->rate.base,
                                             .l1 = (double)spec->rule.l1,
                                             .l2 = (double)spec->rule.l2,
                                             .examples = c->data.examples,
                                             .features = c->data.features,
                                             .nonzeros = c->data.nonzeros,
                                             .trained_examples = spec->n_examples,
                                             .train_loss = last ? last->train_loss : NAN,
                                             .valid_loss = last ? last->valid_loss : NAN};
    copy_plainly(out->mode, sizeof out->mode, c->mode);
    snprintf(out->ended_by, sizeof out->ended_by, "%s", shmt_end_name(c->ended_by));
    snprintf(out->write, sizeof out->write, "%s", shmt_write_name(spec->policy.write));
    snprintf(out->replicas, sizeof out->replicas, "%s", shmt_replicas_name(spec->policy.replicas));
    snprintf(out->optimizer, sizeof out->optimizer, "%s", shmt_rule_name((enum shmt_rule_kind)spec->rule.kind));
    snprintf(out->schedule, sizeof out->schedule, "%s", shmt_rate_name(&spec->rate));
    take_clocks(&c->at, out);
    take_fit(&c->fit, out);
}

static int look_at_checkpoint(struct shmt_call *call, const char *path, struct shmtrain_file_info *out) {
    struct shmt_checkpoint_in *in = NULL;
    const int rc = shmt_checkpoint_open(path, &in, &call->error);
    if (rc < 0) return rc;
    take_run(shmt_checkpoint_of(in), &out->checkpoint);
    shmt_checkpoint_close(in);
    return 0;
}

/* ---- the file ---- */

static int look_at_file(struct shmt_call *call, const char *path, const struct shmt_model_in *in,
                        struct shmtrain_file_info *out) {
    int rc = 0;
    out->bytes = shmt_model_bytes(in);
    out->kind = shmt_model_is_liblinear(in)                          ? SHMTRAIN_FILE_LIBLINEAR
                : shmt_model_note(in, SHMT_MODEL_CHECKPOINT) != NULL ? SHMTRAIN_FILE_CHECKPOINT
                : shmt_model_note(in, SHMT_MODEL_RECORD) != NULL     ? SHMTRAIN_FILE_RECORD
                                                                     : SHMTRAIN_FILE_MODEL;
    if (out->kind == SHMTRAIN_FILE_CHECKPOINT) rc = look_at_checkpoint(call, path, out);
    take_notes(in, out);
    out->n_tensors = shmt_model_n_all(in);
    for (uint32_t i = 0; i < out->n_tensors && rc == 0; i++) rc = look_at_tensor(call, in, i, &out->tensor[i]);
    return rc;
}

_Static_assert(SHMTRAIN_FILE_TENSORS >= SHMT_MODEL_MOST_TENSORS, "room for all that a file has");

/* What a program lacks of the model is no reason to show nothing. */
static void look_at_layers(struct shmt_call *call, const struct shmt_offered *offered, const char *path,
                           struct shmt_model_in *in, struct shmtrain_file_info *out) {
    struct shmt_error why = {0};
    out->n_layers = shmt_model_describe(call, offered, path, in, out->layer, &why);
    if (why.status < 0) shmt_log(&call->log, "its layers are not shown: %s", why.text);
}

int shmt_inspect(struct shmt_call *call, const struct shmt_offered *offered, const char *path, struct shmtrain_file_info *out,
                 uint64_t out_bytes) {
    struct shmt_model_in *in = NULL;
    struct shmtrain_file_info *info = calloc(1, sizeof *info);
    if (!info) return shmt_no_memory(&call->error, "to inspect a model");
    SHMT_PLAIN_NUMBERS;
    int rc = shmt_model_open(path, &in, &call->error);
    if (rc == 0) rc = look_at_file(call, path, in, info);
    if (rc == 0) look_at_layers(call, offered, path, in, info);
    if (rc == 0) shmt_model_tell_seal(in, &call->log);
    if (rc == 0) shmt_sized_give(out, out_bytes, info, sizeof *info);
    shmt_model_close(in);
    free(info);
    return rc;
}
