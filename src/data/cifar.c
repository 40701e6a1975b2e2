/* CIFAR-10 in its binary form as a source: files of records, each a label from 0 to 9 and 32 x 32 pixels of three channels,
 *
 *     label | red, row by row | green | blue         1 + 3 * 1024 bytes
 *
 * without any header (https://www.cs.toronto.edu/~kriz/cifar.html). Several files are read as one. Called through source.h; what is
 * done with records when they are in memory is in matrix.c.
 *
 * A file is one of these when it is of whole records, and what stands where labels are is below 10. */
#include "data/matrix.h"
#include "files/array_file.h"
#include "files/file.h"
#include "files/names.h"

#include "base/checked.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHANNELS = 3, SIDE = 32, PIXELS = CHANNELS * SIDE * SIDE, RECORD = 1 + PIXELS, LABELS = 10, LOOKED_AT = 256 };

struct cifar {
    struct shmt_matrix matrix; /* first */
    uint32_t n_files;
    struct shmt_file *file;          /* (n_files) */
    char title[2 * SHMT_NAME_SHOWN]; /* of several */
};

static const struct cifar *cifar_of(const struct shmt_source *source) { return (const struct cifar *)source; }

/* ---- which files ---- */

/* Text has no such bytes; a record of text would be a picture in 96 greys. */
static bool is_binary(const unsigned char *bytes, uint64_t n) {
    for (uint64_t i = 0; i < n; i++)
        if (bytes[i] < '\t' || (bytes[i] > '\r' && bytes[i] < ' ')) return true;
    return false;
}

/* Whether its first record has a label, and is no text. */
static bool begins_as_record(const struct shmt_file *file) {
    unsigned char record[RECORD];
    const int64_t n = shmt_io_read(file->fd, record, sizeof record, 0);
    return n > 0 && record[0] < LABELS && is_binary(record, (uint64_t)n);
}

/* Of some records, over the whole file. */
static bool has_labels(const struct shmt_file *file) {
    const uint64_t records = file->bytes / RECORD, n = shmt_min_u64(records, LOOKED_AT);
    for (uint64_t i = 0; i < n; i++) {
        unsigned char label;
        if (shmt_io_read(file->fd, &label, 1, records * i / n * RECORD) != 1 || label >= LABELS) return false;
    }
    return true;
}

static bool ends_in_bin(const char *path) {
    const size_t n = strlen(path), ending = strlen(".bin");
    return n > ending && strcmp(path + n - ending, ".bin") == 0;
}

/* An array in a file may be as long by chance, and begins with the zeros of a label and a dark pixel. */
static bool is_array(const char *path) {
    struct shmt_array_file array;
    if (shmt_array_file_open(path, &array, NULL) <= 0) return false;
    shmt_array_file_close(&array);
    return true;
}

/* 1: it is open; 0: it is none, and *e is not set. */
static int open_file(const char *path, struct shmt_file *out, struct shmt_error *e) {
    struct stat s;
    out->fd = -1;
    if (stat(path, &s) != 0 || !S_ISREG(s.st_mode)) return 0; /* to open a pipe takes what it has */
    if (shmt_file_open(path, out, NULL) != 0) return 0;
    const bool whole = out->bytes % RECORD == 0;
    int found = 0;
    if (begins_as_record(out) && !is_array(path)) {
        if (whole && has_labels(out)) return 1;
        if (!whole && ends_in_bin(path))
            found = shmt_fail(e, SHMTRAIN_E_DATA,
                              "%s has %llu bytes, which are no whole records of CIFAR-10 (%d bytes each): get it again%s",
                              out->name, (unsigned long long)out->bytes, RECORD,
                              out->bytes % (RECORD + 1) == 0 ? "; or is it CIFAR-100, which is not read?" : "");
    }
    shmt_file_close(out);
    return found;
}

bool shmt_cifar_is(const char *path) {
    struct shmt_file file;
    if (open_file(path, &file, NULL) <= 0) return false;
    shmt_file_close(&file);
    return true;
}

/* ---- operations ---- */

static int check_labels(const struct shmt_file *file, const unsigned char *records, struct shmt_error *e) {
    for (uint64_t at = 0; at < file->bytes; at += RECORD)
        if (records[at] >= LABELS)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s, byte %llu: expected a label of CIFAR-10, from 0 to 9, found %u",
                             file->name, (unsigned long long)at + 1, records[at]);
    return 0;
}

static int cifar_unpack(const struct shmt_source *source, struct shmt_error *e) {
    const struct cifar *c = cifar_of(source);
    unsigned char *to = c->matrix.memory;
    for (uint32_t f = 0; f < c->n_files; f++) {
        const struct shmt_file *file = &c->file[f];
        const int64_t n = shmt_io_read(file->fd, to, file->bytes, 0);
        if (n < 0) return shmt_fail_errno(e, "cannot read %s", file->name);
        if ((uint64_t)n < file->bytes) return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", file->name);
        const int rc = check_labels(file, to, e);
        if (rc < 0) return rc;
        to += file->bytes;
    }
    return 0;
}

/* The file that has an example, and the example's number in it. */
static const struct shmt_file *file_of(const struct cifar *c, uint64_t *example) {
    uint32_t f = 0;
    while (f + 1 < c->n_files && *example >= c->file[f].bytes / RECORD) *example -= c->file[f++].bytes / RECORD;
    return &c->file[f];
}

static void where(const struct shmt_matrix *matrix, bool is_label, uint64_t example, uint64_t j, char *out, uint64_t bytes) {
    const struct shmt_file *file = file_of(cifar_of(&matrix->source), &example);
    snprintf(out, bytes, "%s, byte %llu", file->name, (unsigned long long)(example * RECORD + (is_label ? 0 : 1 + j) + 1));
}

static void cifar_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    const struct shmt_file *file = file_of(cifar_of(source), &at);
    snprintf(out, bytes, "%s example %llu", file->name, (unsigned long long)at + 1);
}

static const char *cifar_title(const struct shmt_source *source) {
    return cifar_of(source)->n_files > 1 ? cifar_of(source)->title : NULL;
}

static bool cifar_reads(const struct shmt_source *source, const struct stat *file) {
    const struct cifar *c = cifar_of(source);
    bool does = false;
    for (uint32_t f = 0; f < c->n_files; f++) does |= shmt_file_is(&c->file[f], file);
    return does;
}

static void cifar_close(struct shmt_source *source) {
    struct cifar *c = (struct cifar *)source;
    shmt_matrix_free_room(&c->matrix);
    for (uint32_t f = 0; f < c->n_files; f++) shmt_file_close(&c->file[f]);
    free(c->file);
    free(c);
}

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .lacks_ids = true,
    .count = shmt_matrix_count,
    .fill = shmt_matrix_fill,
    .title = cifar_title,
    .reads = cifar_reads,
    .guess_bytes = shmt_matrix_guess_bytes,
    .unpack = cifar_unpack,
    .shape = shmt_matrix_shape,
    .place = cifar_place,
    .close = cifar_close,
};

/* ---- opening ---- */

/* 1: all are open. 0: one is no such file. */
static int open_files(struct cifar *c, const char *names, uint32_t n, struct shmt_error *e) {
    int found = 1;
    for (uint32_t f = 0; f < n && found == 1; f++) {
        char *path = shmt_names_at(names, f);
        if (!path) return shmt_no_memory(e, "to open %u files", n);
        found = open_file(path, &c->file[f], e);
        c->n_files += found == 1;
        free(path);
    }
    return found;
}

static int measure(struct cifar *c, struct shmt_error *e) {
    struct shmt_matrix *m = &c->matrix;
    for (uint32_t f = 0; f < c->n_files; f++)
        if (!shmt_add_u64(m->memory_bytes, c->file[f].bytes, &m->memory_bytes)) m->memory_bytes = UINT64_MAX;
    m->n = m->memory_bytes / RECORD;
    m->value =
        (struct shmt_elements){.bytes = 1, .shape = {CHANNELS, SIDE, SIDE}, .n_each = PIXELS, .first = 1, .stride = RECORD};
    m->label = (struct shmt_elements){.bytes = 1, .n_each = 1, .stride = RECORD};
    return shmt_matrix_make_room(m, e);
}

int shmt_cifar_open(const char *name, struct shmt_source **out, struct shmt_error *e) {
    const uint32_t n = shmt_names_count(name);
    struct cifar *c = calloc(1, sizeof *c);
    if (c) c->file = calloc(n, sizeof *c->file);
    if (!c || !c->file) {
        free(c);
        return shmt_no_memory(e, "to open a file");
    }
    c->matrix.source = (struct shmt_source){&OPS, n > 1 ? c->title : c->file[0].name};
    c->matrix.where = where;
    const int found = open_files(c, name, n, e);
    if (n > 1) snprintf(c->title, sizeof c->title, "%s and %u other%s", c->file[0].name, n - 1, n == 2 ? "" : "s");
    int status = found > 0 ? 0 : found == 0 ? 1 : found;
    if (status == 0) status = measure(c, e);
    if (status != 0) {
        cifar_close(&c->matrix.source);
        return status;
    }
    *out = &c->matrix.source;
    return 0;
}
