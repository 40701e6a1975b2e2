/* Reading checkpoints: see checkpoint.h. The file itself is model_read.c's; here its notes and what is no table are checked. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keeping/checkpoint_priv.h"
#include "base/show.h"
#include "files/model_read.h"
#include "ps/flat.h"

struct shmt_checkpoint_in {
    char name[SHMT_NAME_SHOWN]; /* for sentences */
    struct shmt_model_in *file;
    struct shmt_checkpoint is;
    uint32_t tensor[SHMT_MAX_TABLES][1 + SHMT_MAX_PLANES]; /* which of the file's the tables and their planes are */
    uint32_t *done;
    double *loss;
    uint64_t *clock, *id;
    struct shmtrain_epoch *record;
    double *point, *dual; /* of a fit */
    struct shmt_interior *stands;
};

static int refuse(const struct shmt_checkpoint_in *in, const char *key, const char *why, struct shmt_error *e) {
    char shown[48];
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: key \"%s\": %s", in->name, shmt_model_show(key, shown), why);
}

/* ---- tensors ---- */

/* One that may be missing: *n_out is 0 then. Its rows go into memory of their own, to be freed. */
static int read_rows(struct shmt_checkpoint_in *in, const char *key, enum shmt_dtype dtype, uint64_t width, uint64_t most,
                     void *rows_out, uint64_t *n_out, struct shmt_error *e) {
    uint32_t i;
    void *rows;
    *n_out = 0;
    if (!shmt_model_find(in->file, key, &i)) return 0;
    const struct shmt_tensor *tensor = shmt_model_tensor(in->file, i);
    if (tensor->dtype != dtype || tensor->width != width) return refuse(in, key, "its \"dtype\" or \"shape\" is wrong", e);
    if (tensor->rows == 0 || tensor->rows > most) return refuse(in, key, "its number of rows is not possible", e);
    rows = calloc(tensor->rows, width * shmt_dtype_bytes(dtype)); /* no more than the file has */
    if (!rows) return shmt_no_memory(e, "to read %s", in->name);
    memcpy(rows_out, &rows, sizeof rows);
    *n_out = tensor->rows;
    return shmt_model_read_tensor(in->file, i, rows, e);
}

static int take_state(struct shmt_checkpoint_in *in, uint32_t t, uint32_t plane, struct shmt_error *e) {
    const struct shmt_table_spec *table = &in->is.table[t].table;
    char key[64];
    uint32_t *i = &in->tensor[t][1 + plane];
    snprintf(key, sizeof key, SHMT_CHECKPOINT_STATE, table->name, plane);
    if (!shmt_model_find(in->file, key, i)) return refuse(in, key, "this tensor is missing", e);
    const struct shmt_tensor *tensor = shmt_model_tensor(in->file, *i);
    if (tensor->dtype == SHMT_DTYPE_F32 && tensor->rows == table->rows && tensor->width == table->width) return 0;
    return refuse(in, key, "its \"dtype\" or \"shape\" differs from its table's", e);
}

static int take_table(struct shmt_checkpoint_in *in, uint32_t t, struct shmt_error *e) {
    const struct shmt_tensor *tensor = shmt_model_tensor(in->file, t);
    struct shmt_table_spec *table = &in->is.table[t].table;
    int rc = 0;
    in->tensor[t][0] = t;
    table->rows = tensor->rows;
    table->width = (uint32_t)tensor->width;
    if (strlen(tensor->name) < sizeof table->name) memcpy(table->name, tensor->name, strlen(tensor->name));
    if (tensor->width > UINT32_MAX || shmt_table_check(table, NULL) < 0)
        return refuse(in, tensor->name, "no table of shmtrain can have this name or shape", e);
    for (uint32_t p = 0; p < in->is.n_planes && rc == 0; p++) rc = take_state(in, t, p, e);
    return rc;
}

static int take_tables(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    struct shmt_checkpoint *c = &in->is;
    int rc = 0;
    c->n_tables = shmt_model_n_tensors(in->file);
    c->n_planes = shmt_flat_planes(&c->spec);
    if (c->n_tables > SHMT_MAX_TABLES)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: more than %d tables: not a checkpoint of shmtrain", in->name,
                         SHMT_MAX_TABLES);
    for (uint32_t t = 0; t < c->n_tables && rc == 0; t++) rc = take_table(in, t, e);
    return rc;
}

static int take_ids(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    uint64_t n = 0;
    const int rc = read_rows(in, SHMT_MODEL_IDS, SHMT_DTYPE_U64, 1, UINT32_MAX, &in->id, &n, e);
    in->is.id = in->id;
    in->is.n_ids = n;
    return rc;
}

/* ---- the position ---- */

static int take_clocks(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    uint64_t n = 0;
    const int rc = read_rows(in, SHMT_CHECKPOINT_CLOCKS, SHMT_DTYPE_U64, 1, SHMT_MAX_SEATS, &in->clock, &n, e);
    in->is.at.clock = in->clock;
    in->is.at.n_clocks = (uint32_t)n;
    return rc;
}

static int take_records(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    struct shmt_moment *at = &in->is.at;
    double *row = NULL;
    uint64_t n = 0;
    int rc = read_rows(in, SHMT_CHECKPOINT_EPOCHS, SHMT_DTYPE_F64, SHMT_EPOCH_COLUMNS, at->epoch, &row, &n, e);
    if (rc == 0 && n != at->epoch) rc = refuse(in, SHMT_CHECKPOINT_EPOCHS, "it does not have a row for each finished epoch", e);
    in->record = rc == 0 ? calloc(n + 1, sizeof *in->record) : NULL;
    if (rc == 0 && !in->record) rc = shmt_no_memory(e, "to read %s", in->name);
    for (uint64_t i = 0; i < n && rc == 0; i++)
        if (!shmt_checkpoint_take_epoch(row + i * SHMT_EPOCH_COLUMNS, &in->record[i]) || in->record[i].epoch != i + 1)
            rc = refuse(in, SHMT_CHECKPOINT_EPOCHS, "its rows are not those of epochs 1, 2, ...", e);
    free(row);
    at->record = in->record;
    at->n_records = (uint32_t)n;
    return rc;
}

/* What the ledger says is what the step says: in sync pieces of the first so many batches are done, else so many anywhere. */
static bool ledger_fits(const struct shmt_spec *spec, const struct shmt_moment *at) {
    const bool batched = shmt_policy_is_batched(&spec->policy);
    const uint64_t largest = shmt_spec_largest_piece(spec), n_first = at->step * spec->n_chunks;
    uint64_t n_done = 0;
    for (uint64_t i = 0; i < at->n_pieces; i++) {
        if (at->done[i] > largest || (batched && at->done[i] > 0 && i >= n_first)) return false;
        n_done += at->done[i] > 0;
    }
    return batched || n_done == at->step;
}

static int take_ledger(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    const struct shmt_spec *spec = &in->is.spec;
    struct shmt_moment *at = &in->is.at;
    const uint64_t pieces = shmt_spec_pieces(spec);
    uint64_t n_losses = 0;
    int rc = read_rows(in, SHMT_CHECKPOINT_DONE, SHMT_DTYPE_U32, 1, pieces, &in->done, &at->n_pieces, e);
    if (rc == 0) rc = read_rows(in, SHMT_CHECKPOINT_LOSS, SHMT_DTYPE_F64, 1, pieces, &in->loss, &n_losses, e);
    at->done = in->done;
    at->loss = in->loss;
    if (rc < 0) return rc;
    if (n_losses != at->n_pieces || (at->n_pieces != 0 && at->n_pieces != pieces))
        return refuse(in, SHMT_CHECKPOINT_DONE, "it does not have a number for each piece of an epoch", e);
    if (at->epoch > spec->epochs || at->step > shmt_spec_steps(spec) || (at->epoch == spec->epochs && at->step > 0))
        return refuse(in, SHMT_MODEL_CHECKPOINT, "its epoch and step are beyond the end of its run", e);
    if (at->n_pieces == 0 && at->step > 0) return refuse(in, SHMT_CHECKPOINT_DONE, "this tensor is missing", e);
    return ledger_fits(spec, at) ? 0 : refuse(in, SHMT_CHECKPOINT_DONE, "it does not match the step", e);
}

/* ---- a fit ---- */

static int take_proofs(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    double *row = NULL;
    uint64_t n = 0;
    int rc = read_rows(in, SHMT_CHECKPOINT_PROOFS, SHMT_DTYPE_F64, SHMT_PROOF_COLUMNS, in->is.at.epoch, &row, &n, e);
    if (rc == 0 && n != in->is.at.epoch)
        rc = refuse(in, SHMT_CHECKPOINT_PROOFS, "it does not have a row for each finished epoch", e);
    for (uint64_t i = 0; i < n && rc == 0; i++) shmt_checkpoint_take_proof(row + i * SHMT_PROOF_COLUMNS, &in->record[i]);
    free(row);
    return rc;
}

static int take_point(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    struct shmt_checkpoint_fit *fit = &in->is.fit;
    uint32_t i;
    if (!shmt_model_find(in->file, SHMT_CHECKPOINT_POINT, &i))
        return refuse(in, SHMT_CHECKPOINT_POINT, "this tensor is missing", e);
    const uint64_t width = shmt_model_tensor(in->file, i)->width;
    if (width == 0 || width > SHMTRAIN_MAX_CLASSES) return refuse(in, SHMT_CHECKPOINT_POINT, "its \"shape\" is wrong", e);
    fit->width = (uint32_t)width;
    const int rc = read_rows(in, SHMT_CHECKPOINT_POINT, SHMT_DTYPE_F64, width, UINT32_MAX, &in->point, &fit->rows, e);
    fit->point = in->point;
    if (rc < 0 || shmt_checkpoint_are_finite(in->point, fit->rows * width)) return rc;
    return refuse(in, SHMT_CHECKPOINT_POINT, "it has numbers that are not finite", e);
}

/* Of each example, if the method has such. */
static int take_examples(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    struct shmt_checkpoint_fit *fit = &in->is.fit;
    const uint64_t n = in->is.spec.n_examples;
    int rc = read_rows(in, SHMT_CHECKPOINT_DUAL, SHMT_DTYPE_F64, 1, n, &in->dual, &fit->n_dual, e);
    if (rc == 0) rc = read_rows(in, SHMT_CHECKPOINT_INNER, SHMT_DTYPE_F64, 2, n, &in->stands, &fit->n_inner, e);
    if (rc < 0) return rc;
    fit->dual = in->dual;
    fit->stands = in->stands;
    if ((fit->n_dual != 0 && fit->n_dual != n) || (fit->n_dual > 0 && !shmt_checkpoint_are_finite(in->dual, n)))
        return refuse(in, SHMT_CHECKPOINT_DUAL, "it does not have a finite number for each example", e);
    if (fit->n_inner != (fit->kept.interior ? n : 0) || (fit->n_inner > 0 && fit->n_dual > 0) ||
        (fit->n_inner > 0 && !shmt_checkpoint_are_finite(&in->stands[0].dual, 2 * n)))
        return refuse(in, SHMT_CHECKPOINT_INNER, "it does not have finite numbers for each example, where there are to be some",
                      e);
    return 0;
}

static int take_fit(struct shmt_checkpoint_in *in, struct shmt_error *e) {
    const char *note = shmt_model_note(in->file, SHMT_MODEL_FIT);
    if (!note != (in->is.format < SHMT_CHECKPOINT_FORMAT))
        return refuse(in, SHMT_MODEL_FIT, note ? "checkpoints of format 1 have none" : "is missing", e);
    if (!note) return 0;
    if (in->is.at.epoch == 0 || in->is.at.step > 0 || shmt_spec_steps(&in->is.spec) != 1)
        return refuse(in, SHMT_MODEL_CHECKPOINT, "an exact fit stands at the end of an epoch, which has one step", e);
    int rc = shmt_checkpoint_take_fit_note(in->name, note, &in->is.fit, e);
    if (rc == 0) rc = take_proofs(in, e);
    if (rc == 0) rc = take_point(in, e);
    return rc == 0 ? take_examples(in, e) : rc;
}

/* ---- files ---- */

/* Copies with another name would be the newest ones for ever, or the oldest. */
int shmt_checkpoint_check_step(const struct shmt_checkpoint_in *in, uint64_t step, struct shmt_error *e) {
    if (shmt_checkpoint_step(&in->is) == step) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s: it is of step %llu, but its name says %llu", in->name,
                     (unsigned long long)shmt_checkpoint_step(&in->is), (unsigned long long)step);
}

static int take_file(struct shmt_checkpoint_in *in, const char *path, struct shmt_error *e) {
    int rc = shmt_model_open(path, &in->file, e);
    if (rc < 0) return rc;
    const char *note = shmt_model_note(in->file, SHMT_MODEL_CHECKPOINT);
    if (!note) return shmt_fail(e, SHMTRAIN_E_DATA, "%s is a model, not a checkpoint of a run", in->name);
    rc = shmt_checkpoint_take_note(in->name, note, &in->is, e);
    if (rc == 0) rc = take_tables(in, e);
    if (rc == 0) rc = take_ids(in, e);
    if (rc == 0) rc = take_clocks(in, e);
    if (rc == 0) rc = take_records(in, e);
    if (rc == 0) rc = take_ledger(in, e);
    return rc == 0 ? take_fit(in, e) : rc;
}

int shmt_checkpoint_open(const char *path, struct shmt_checkpoint_in **out, struct shmt_error *e) {
    struct shmt_checkpoint_in *in = calloc(1, sizeof *in);
    if (!in) return shmt_no_memory(e, "to read a checkpoint");
    shmt_show_name(path, in->name);
    const int rc = take_file(in, path, e);
    if (rc < 0)
        shmt_checkpoint_close(in);
    else
        *out = in;
    return rc;
}

void shmt_checkpoint_close(struct shmt_checkpoint_in *in) {
    if (!in) return;
    shmt_model_close(in->file);
    free(in->done);
    free(in->loss);
    free(in->clock);
    free(in->id);
    free(in->record);
    free(in->point);
    free(in->dual);
    free(in->stands);
    free(in);
}

const struct shmt_checkpoint *shmt_checkpoint_of(const struct shmt_checkpoint_in *in) { return &in->is; }

const char *shmt_checkpoint_model_note(const struct shmt_checkpoint_in *in, const char *key) {
    return shmt_model_note(in->file, key);
}

int shmt_checkpoint_read(const struct shmt_checkpoint_in *in, uint32_t t, int plane, float *out, struct shmt_error *e) {
    return shmt_model_read_tensor(in->file, in->tensor[t][1 + plane], out, e);
}

int shmt_checkpoint_newest(const char *folder, void (*skipped)(void *arg, const char *why), void *arg,
                           struct shmt_checkpoint_in **out, char *path_out, struct shmt_error *e) {
    struct shmt_checkpoint_list list;
    char shown[SHMT_NAME_SHOWN];
    int rc = shmt_checkpoint_list(folder, &list, e);
    if (rc < 0) return rc;
    bool found = false;
    for (size_t i = 0; i < list.n && !found && rc == 0; i++) {
        struct shmt_checkpoint_in *in = NULL;
        struct shmt_error why = {0};
        rc = shmt_checkpoint_path(folder, list.step[i], path_out, e);
        if (rc < 0) break;
        int opened = shmt_checkpoint_open(path_out, &in, &why);
        if (opened == 0) opened = shmt_checkpoint_check_step(in, list.step[i], &why);
        found = opened == 0;
        if (found)
            *out = in;
        else
            shmt_checkpoint_close(in);
        if (opened == SHMTRAIN_E_MEMORY)
            rc = shmt_fail(e, opened, "%s", why.text); /* not the file's fault */
        else if (!found && skipped)
            skipped(arg, why.text);
    }
    const size_t n = list.n;
    free(list.step);
    if (found || rc < 0 || n == 0) return rc < 0 ? rc : found;
    shmt_show_name(folder, shown);
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "no checkpoint in %s is valid (of %zu): remove them to start a new run, or name another folder", shown, n);
}
