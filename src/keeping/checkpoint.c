/* Writing checkpoints: their names in a folder, their files, and which are kept. See checkpoint.h. */
#include "keeping/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "keeping/checkpoint_priv.h"
#include "base/show.h"
#include "files/model_read.h"

#define PREFIX     "checkpoint-"
#define SUFFIX     ".safetensors"
#define DIGITS     12 /* of a step, at least */
#define ALL_DIGITS 19

/* ---- folders ---- */

int shmt_checkpoint_cannot(const char *folder, const char *remedy, struct shmt_error *e) {
    const int code = errno;
    char shown[SHMT_NAME_SHOWN];
    shmt_show_name(folder, shown);
    return shmt_fail(e, SHMTRAIN_E_SYSTEM, "cannot write checkpoints to %s: %s; %s", shown, strerror(code), remedy);
}

int shmt_checkpoint_path(const char *folder, uint64_t step, char *out, struct shmt_error *e) {
    const size_t n = strlen(folder);
    const char *slash = n > 0 && folder[n - 1] == '/' ? "" : "/";
    const int used = snprintf(out, PATH_MAX, "%s%s" PREFIX "%0*llu" SUFFIX, folder, slash, DIGITS, (unsigned long long)step);
    if (used > 0 && used < PATH_MAX) return 0;
    errno = ENAMETOOLONG;
    return shmt_checkpoint_cannot(folder, "name a folder with a shorter name", e);
}

/* The step of a name that is one of ours. */
static bool parse_name(const char *name, uint64_t *step_out) {
    const size_t prefix = sizeof PREFIX - 1;
    if (strncmp(name, PREFIX, prefix) != 0) return false;
    const size_t digits = strspn(name + prefix, "0123456789");
    if (digits < DIGITS || digits > ALL_DIGITS || strcmp(name + prefix + digits, SUFFIX) != 0) return false;
    if (digits > DIGITS && name[prefix] == '0') return false; /* another name of the same step */
    *step_out = strtoull(name + prefix, NULL, 10);
    return true;
}

static int later_first(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

static int read_names(DIR *dir, struct shmt_checkpoint_list *out, struct shmt_error *e) {
    size_t room = 0;
    const struct dirent *entry;
    uint64_t step;
    while ((entry = readdir(dir))) {
        if (!parse_name(entry->d_name, &step)) continue;
        if (out->n == room) {
            uint64_t *more = realloc(out->step, (room = 2 * room + 16) * sizeof *more);
            if (!more) return shmt_no_memory(e, "for the names of checkpoints");
            out->step = more;
        }
        out->step[out->n++] = step;
    }
    if (out->n > 0) qsort(out->step, out->n, sizeof *out->step, later_first);
    return 0;
}

int shmt_checkpoint_list(const char *folder, struct shmt_checkpoint_list *out, struct shmt_error *e) {
    char shown[SHMT_NAME_SHOWN];
    *out = (struct shmt_checkpoint_list){0};
    DIR *dir = opendir(folder);
    if (!dir && errno == ENOENT) return 0;
    if (!dir) {
        const int code = errno;
        shmt_show_name(folder, shown);
        errno = code;
        return shmt_fail_errno(e, "cannot search for checkpoints in %s", shown);
    }
    const int rc = read_names(dir, out, e);
    closedir(dir);
    if (rc == 0) return 0;
    free(out->step);
    *out = (struct shmt_checkpoint_list){0};
    return rc;
}

int shmt_checkpoint_last(const char *folder, char *path_out, struct shmt_error *e) {
    struct shmt_checkpoint_list list;
    int rc = shmt_checkpoint_list(folder, &list, e);
    if (rc < 0) return rc;
    const bool found = list.n > 0;
    if (found) rc = shmt_checkpoint_path(folder, list.step[0], path_out, e);
    free(list.step);
    return rc < 0 ? rc : found;
}

/* ---- which are kept ---- */

uint64_t shmt_checkpoint_step(const struct shmt_checkpoint *c) { return c->at.epoch * shmt_spec_steps(&c->spec) + c->at.step; }

/* Whether a file is complete, by its header and its length, and of the step in its name: a look at each of them is cheap, and
 * one that is damaged besides is found when it is needed. */
static bool is_whole(const char *path, uint64_t step) {
    struct shmt_model_in *in = NULL;
    struct shmt_checkpoint is = {.n_tables = 0};
    const char *note = shmt_model_open_header(path, &in, NULL) == 0 ? shmt_model_note(in, SHMT_MODEL_CHECKPOINT) : NULL;
    const bool whole = note && shmt_checkpoint_take_note(path, note, &is, NULL) == 0 && shmt_checkpoint_step(&is) == step;
    shmt_model_close(in);
    return whole;
}

/* Whether a run can go on from it. Reads all of it. */
static bool is_good(const char *path, uint64_t step) {
    struct shmt_checkpoint_in *in = NULL;
    const bool good = shmt_checkpoint_open(path, &in, NULL) == 0 && shmt_checkpoint_step(shmt_checkpoint_of(in)) == step;
    shmt_checkpoint_close(in);
    return good;
}

/* Of those of steps before `end`, removes the oldest whole ones but `keep`, of which `may_stay` says what they must be; later
 * ones are none that the run has gone on from. What cannot be removed stays: the next time, perhaps. Returns how many went. */
static uint32_t remove_old(const char *folder, uint64_t end, uint32_t keep, bool (*may_stay)(const char *path, uint64_t step)) {
    struct shmt_checkpoint_list list;
    char path[PATH_MAX];
    uint32_t kept = 0, removed = 0;
    if (shmt_checkpoint_list(folder, &list, NULL) < 0) return 0;
    for (size_t i = 0; i < list.n; i++) {
        if (list.step[i] >= end || shmt_checkpoint_path(folder, list.step[i], path, NULL) < 0) continue;
        if (kept < keep)
            kept += may_stay(path, list.step[i]);
        else if (is_whole(path, list.step[i]))
            removed += unlink(path) == 0;
    }
    free(list.step);
    return removed;
}

/* Where the disk is full: the one to be written is one of those to be kept, but the newest one that a run can go on from stays,
 * as the new one is not there yet. */
static bool make_room(const char *folder, uint64_t step, uint32_t keep) {
    return keep > 0 && remove_old(folder, step, keep > 1 ? keep - 1 : 1, is_good) > 0;
}

/* ---- the file ---- */

/* What is made for one file. */
struct draft {
    struct shmt_tensor tensor[SHMT_CHECKPOINT_MOST_TENSORS];
    uint32_t n_tensors;
    char state_name[SHMT_MAX_TABLES][SHMT_MAX_PLANES][64];
    struct shmt_note *note; /* (n_notes) the model's, and ours */
    uint32_t n_notes;
    char *text; /* of ours */
    char *fit;  /* ... and of a fit */
    double *epochs, *proofs;
};

static void add(struct draft *d, const char *name, enum shmt_dtype dtype, uint64_t rows, uint64_t width, const void *data) {
    d->tensor[d->n_tensors++] = (struct shmt_tensor){.name = name, .rows = rows, .width = width, .data = data, .dtype = dtype};
}

static void add_table(struct draft *d, const struct shmt_checkpoint *c, uint32_t t, int plane) {
    const struct shmt_checkpoint_table *table = &c->table[t];
    const char *name = plane < 0 ? table->table.name : d->state_name[t][plane];
    add(d, name, SHMT_DTYPE_F32, table->table.rows, table->table.width, plane < 0 ? table->value : table->state[plane]);
    d->tensor[d->n_tensors - 1].place = table->place;
}

static void add_fit(struct draft *d, const struct shmt_checkpoint *c) {
    const struct shmt_checkpoint_fit *fit = &c->fit;
    add(d, SHMT_CHECKPOINT_POINT, SHMT_DTYPE_F64, fit->rows, fit->width, fit->point);
    d->tensor[d->n_tensors - 1].place = fit->place;
    if (fit->n_dual > 0) add(d, SHMT_CHECKPOINT_DUAL, SHMT_DTYPE_F64, fit->n_dual, 1, fit->dual);
    if (fit->n_inner > 0) add(d, SHMT_CHECKPOINT_INNER, SHMT_DTYPE_F64, fit->n_inner, 2, fit->stands);
    if (c->at.n_records > 0) add(d, SHMT_CHECKPOINT_PROOFS, SHMT_DTYPE_F64, c->at.n_records, SHMT_PROOF_COLUMNS, d->proofs);
}

static void add_tensors(struct draft *d, const struct shmt_checkpoint *c) {
    for (uint32_t t = 0; t < c->n_tables; t++) add_table(d, c, t, -1);
    for (uint32_t t = 0; t < c->n_tables; t++)
        for (uint32_t p = 0; p < c->n_planes; p++) {
            snprintf(d->state_name[t][p], sizeof d->state_name[t][p], SHMT_CHECKPOINT_STATE, c->table[t].table.name, p);
            add_table(d, c, t, (int)p);
        }
    if (c->n_ids > 0) add(d, SHMT_MODEL_IDS, SHMT_DTYPE_U64, c->n_ids, 1, c->id);
    if (c->at.n_clocks > 0) add(d, SHMT_CHECKPOINT_CLOCKS, SHMT_DTYPE_U64, c->at.n_clocks, 1, c->at.clock);
    if (c->at.n_records > 0) add(d, SHMT_CHECKPOINT_EPOCHS, SHMT_DTYPE_F64, c->at.n_records, SHMT_EPOCH_COLUMNS, d->epochs);
    if (c->fit.is) add_fit(d, c);
    if (c->at.n_pieces == 0) return;
    add(d, SHMT_CHECKPOINT_LOSS, SHMT_DTYPE_F64, c->at.n_pieces, 1, c->at.loss);
    add(d, SHMT_CHECKPOINT_DONE, SHMT_DTYPE_U32, c->at.n_pieces, 1, c->at.done);
}

static int make_draft(struct draft *d, const struct shmt_checkpoint *c, struct shmt_error *e) {
    d->note = calloc((size_t)c->n_notes + 2, sizeof *d->note);
    d->text = shmt_checkpoint_make_note(c);
    d->epochs = calloc((size_t)c->at.n_records + 1, SHMT_EPOCH_COLUMNS * sizeof *d->epochs);
    d->proofs = calloc((size_t)c->at.n_records + 1, SHMT_PROOF_COLUMNS * sizeof *d->proofs);
    d->fit = c->fit.is ? shmt_checkpoint_make_fit_note(&c->fit) : NULL;
    if (!d->note || !d->text || !d->epochs || !d->proofs || (c->fit.is && !d->fit))
        return shmt_no_memory(e, "to write a checkpoint");
    for (uint32_t i = 0; i < c->n_notes; i++) d->note[i] = c->note[i];
    d->note[c->n_notes] = (struct shmt_note){SHMT_MODEL_CHECKPOINT, d->text};
    d->n_notes = c->n_notes + 1;
    if (d->fit) d->note[d->n_notes++] = (struct shmt_note){SHMT_MODEL_FIT, d->fit};
    for (uint32_t i = 0; i < c->at.n_records; i++)
        shmt_checkpoint_put_epoch(&c->at.record[i], d->epochs + (size_t)i * SHMT_EPOCH_COLUMNS);
    for (uint32_t i = 0; i < c->at.n_records; i++)
        shmt_checkpoint_put_proof(&c->at.record[i], d->proofs + (size_t)i * SHMT_PROOF_COLUMNS);
    add_tensors(d, c);
    return 0;
}

int shmt_checkpoint_name(const char *folder, const struct shmt_checkpoint *checkpoint, char *out, struct shmt_error *e) {
    return shmt_checkpoint_path(folder, shmt_checkpoint_step(checkpoint), out, e);
}

static int write_draft(const struct draft *d, const char *path, struct shmt_error *e) {
    return shmt_model_file_write_own(path, "the checkpoint", d->tensor, d->n_tensors, d->note, d->n_notes, e);
}

int shmt_checkpoint_write(const char *folder, const struct shmt_checkpoint *checkpoint, uint32_t keep, char *path_out,
                          struct shmt_error *e) {
    const uint64_t step = shmt_checkpoint_step(checkpoint);
    struct draft *d = calloc(1, sizeof *d);
    int rc = d ? 0 : shmt_no_memory(e, "to write a checkpoint");
    struct shmt_error why = {0};
    path_out[0] = '\0';
    if (rc == 0) rc = shmt_checkpoint_name(folder, checkpoint, path_out, e);
    if (rc == 0) rc = make_draft(d, checkpoint, e);
    if (rc == 0) rc = write_draft(d, path_out, &why);
    if ((why.code == ENOSPC || why.code == EDQUOT) && make_room(folder, step, keep)) {
        shmt_error_clear(&why);
        rc = write_draft(d, path_out, &why);
    }
    if (why.status < 0) shmt_fail(e, why.status, "%s", why.text);
    if (rc == 0 && keep > 0) (void)remove_old(folder, step, keep - 1, is_whole);
    if (d) {
        free(d->note);
        free(d->text);
        free(d->fit);
        free(d->epochs);
        free(d->proofs);
    }
    free(d);
    return rc;
}

/* ---- what it is of ---- */

/* Rows as they stand in memory have the lengths and labels of the file's, however their columns are numbered. */
void shmt_data_print_make(const struct shmtrain_data *data, struct shmt_data_print *out) {
    enum { AT_ONCE = 512 };
    const uint64_t n = data->n_examples;
    uint32_t length[AT_ONCE];
    uint64_t hash = XXH64(data->label, n * sizeof *data->label, 0);
    if (data->weight) hash = XXH64(data->weight, n * sizeof *data->weight, hash);
    for (uint64_t i = 0; i < n && data->start; i += AT_ONCE) {
        const uint64_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        for (uint64_t k = 0; k < some; k++) length[k] = (uint32_t)(data->start[i + k + 1] - data->start[i + k]);
        hash = XXH64(length, some * sizeof *length, hash);
    }
    *out = (struct shmt_data_print){.examples = n, .features = data->n_features, .nonzeros = data->n_nonzeros, .xxh64 = hash};
}
