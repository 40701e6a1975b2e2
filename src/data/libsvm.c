/* LIBSVM text in a regular file as a source: opening it, and the two passes over its lines.
 *
 * Called through source.h. Both passes run the same code on each line (libsvm_line.c), so that every error comes while
 * counting, before any memory for the data is made. The file is read by pread, whose position belongs to the call: processes
 * that inherited the descriptor do not disturb one another. Between the passes the file may change; fill holds every row
 * against what was counted before it writes. */
#include "data/file.h"
#include "data/lines.h"
#include "data/libsvm_line.h"
#include "data/number.h"
#include "data/source_priv.h"

#include "base/checked.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_BYTES (1 << 16) /* of the file's beginning, to guess from */

struct libsvm {
    struct shmt_source source;
    struct shmt_file file;
    double bytes_per_byte;  /* of sparse arrays per byte of text, in the sample */
    double lines_per_byte;  /* whole lines, in the sample */
    uint64_t columns_found; /* the least number of columns that the ids in the sample need */
    locale_t c_locale;
};

static const struct libsvm *libsvm_of(const struct shmt_source *source) { return (const struct libsvm *)source; }

/* One line after the other as rows, in memory of its own. */
struct rows {
    const struct libsvm *svm;
    const struct shmt_columns *columns;
    struct shmt_lines lines;
    struct shmt_libsvm_row row;
    uint64_t at; /* the offset of the row's line */
    uint64_t room;
};

static int rows_open(struct rows *rows, const struct libsvm *svm, const struct shmt_columns *columns, uint32_t part,
                     uint32_t n_parts, struct shmt_error *e) {
    *rows = (struct rows){.svm = svm, .columns = columns};
    return shmt_lines_open(&rows->lines, svm->file.fd, svm->file.name, svm->file.bytes, part, n_parts, e);
}

static void rows_close(struct rows *rows) {
    free(rows->row.id);
    free(rows->row.value);
    shmt_lines_close(&rows->lines);
}

/* Makes room for the row of a line of so many bytes. */
static int make_room(struct rows *rows, uint64_t line_bytes, struct shmt_error *e) {
    const uint64_t need = SHMT_LIBSVM_MAX_NONZEROS(line_bytes);
    if (need <= rows->room) return 0;
    rows->room = shmt_max_u64(2 * need, 1024);
    free(rows->row.id);
    free(rows->row.value);
    rows->row.id = malloc(rows->room * sizeof *rows->row.id);
    rows->row.value = malloc(rows->room * sizeof *rows->row.value);
    if (rows->row.id && rows->row.value) return 0;
    return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for a line of %s", rows->svm->file.name);
}

/* 1: rows->row is the next row. 0: there are no more. */
static int rows_next(struct rows *rows, struct shmt_error *e) {
    for (;;) {
        char *line;
        uint64_t bytes;
        int status = shmt_lines_next(&rows->lines, &line, &bytes, &rows->at, e);
        if (status <= 0) return status;
        status = make_room(rows, bytes, e);
        if (status != 0) return status;
        struct shmt_libsvm_fault fault;
        status = shmt_libsvm_parse(line, rows->columns, rows->svm->c_locale, &rows->row, &fault);
        if (status != 0) {
            return shmt_fail(e, status, "%s:%llu:%llu: %s", rows->svm->file.name,
                             (unsigned long long)shmt_lines_number(rows->svm->file.fd, rows->at),
                             (unsigned long long)fault.column, fault.text);
        }
        if (!rows->row.blank) return 1;
    }
}

static void count_row(const struct rows *rows, struct shmt_part *out) {
    const struct shmt_libsvm_row *row = &rows->row;
    double square = 0;
    uint32_t all_ones = out->all_ones;
    for (uint64_t i = 0; i < row->n_nonzeros; i++) {
        square += (double)row->value[i] * row->value[i];
        all_ones &= row->value[i] == 1;
    }
    out->all_ones = all_ones;
    shmt_sum_add(&out->square, square);
    out->n_nonzeros += row->n_nonzeros;
    out->min_id = shmt_min_u64(out->min_id, row->min_id);
    out->max_id = shmt_max_u64(out->max_id, row->max_id);
    shmt_part_add_label(out, row->label, rows->at);
}

static int libsvm_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                        struct shmt_part *out) {
    struct rows rows;
    int status = rows_open(&rows, libsvm_of(source), columns, part, n_parts, &out->error);
    if (status != 0) return status;
    while ((status = rows_next(&rows, &out->error)) > 0) count_row(&rows, out);
    rows_close(&rows);
    return status;
}

static bool all_ones(const struct shmt_libsvm_row *row) {
    for (uint64_t i = 0; i < row->n_nonzeros; i++) {
        if (row->value[i] != 1) return false;
    }
    return true;
}

/* A label that was not counted would be no class. */
static bool is_counted(const struct shmt_part *counted, float label) {
    return counted->labels.n == SHMT_LABELS_KEPT || shmt_labels_have(&counted->labels, label);
}

static int libsvm_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                       uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    struct rows rows;
    int status = rows_open(&rows, libsvm_of(source), &into->columns, part, n_parts, e);
    if (status != 0) return status;
    const struct shmt_libsvm_row *row = &rows.row;
    uint64_t example = first, nonzero = first_nonzero;
    const uint64_t end = first + counted->n_examples, end_nonzero = first_nonzero + counted->n_nonzeros;
    bool same = true;
    while (same && (status = rows_next(&rows, e)) > 0) {
        same = example < end && row->n_nonzeros <= end_nonzero - nonzero && (into->value || into->dense || all_ones(row)) &&
               is_counted(counted, row->label);
        if (!same) break;
        shmt_arrays_put(into, example, nonzero, row->id, row->value, row->n_nonzeros);
        into->label[example++] = row->label;
        nonzero += row->n_nonzeros;
    }
    rows_close(&rows);
    if (status < 0) return status;
    if (same && example == end && nonzero == end_nonzero) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", libsvm_of(source)->file.name);
}

static uint64_t libsvm_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct libsvm *svm = libsvm_of(source);
    if (dense) return shmt_dense_bytes(svm->lines_per_byte * (double)svm->file.bytes, svm->columns_found);
    return (uint64_t)(svm->bytes_per_byte * (double)svm->file.bytes);
}

static void libsvm_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    const struct libsvm *svm = libsvm_of(source);
    const uint64_t line = shmt_lines_number(svm->file.fd, at);
    if (line > 0) {
        snprintf(out, bytes, "%s:%llu", svm->file.name, (unsigned long long)line);
    } else {
        snprintf(out, bytes, "%s, byte %llu", svm->file.name, (unsigned long long)at + 1);
    }
}

static bool libsvm_reads(const struct shmt_source *source, const struct stat *file) {
    return shmt_file_is(&libsvm_of(source)->file, file);
}

static void libsvm_close(struct shmt_source *source) {
    struct libsvm *svm = (struct libsvm *)source;
    if (svm->c_locale) freelocale(svm->c_locale);
    shmt_file_close(&svm->file);
    free(svm);
}

static const struct shmt_source_ops OPS = {
    .is_generator = false,
    .count = libsvm_count,
    .fill = libsvm_fill,
    .reads = libsvm_reads,
    .guess_bytes = libsvm_guess_bytes,
    .place = libsvm_place,
    .close = libsvm_close,
};

/* The least number of columns that the ids in text of n bytes need: what looks like an id, outside comments. */
static uint64_t find_columns(const char *text, int64_t n) {
    uint64_t id = 0, largest = 0, from_zero = 0;
    bool digits = false, comment = false;
    for (int64_t i = 0; i < n; i++) {
        comment = (comment || text[i] == '#') && text[i] != '\n';
        if (text[i] == ':' && digits && !comment && id < UINT32_MAX) {
            largest = shmt_max_u64(largest, id);
            from_zero |= id == 0;
        }
        const bool goes_on = shmt_is_digit(text[i]);
        id = !goes_on ? 0 : id < UINT32_MAX ? 10 * id + (uint64_t)(text[i] - '0') : id;
        digits = goes_on;
    }
    return largest + from_zero;
}

static int look_at_beginning(struct libsvm *svm, struct shmt_error *e) {
    char sample[SAMPLE_BYTES];
    const int64_t n = shmt_lines_read(svm->file.fd, sample, sizeof sample, 0);
    if (n < 0) return shmt_fail_errno(e, "cannot read %s", svm->file.name);
    const char *tool = shmt_file_unpacker(sample, (uint64_t)n);
    if (tool) return shmt_fail(e, SHMTRAIN_E_DATA, "%s is compressed; unpack it with %s first", svm->file.name, tool);
    uint64_t colons = 0, breaks = 0;
    for (int64_t i = 0; i < n; i++) {
        colons += sample[i] == ':';
        breaks += sample[i] == '\n';
    }
    const uint64_t bytes = colons * (sizeof(uint32_t) + sizeof(float)) + (breaks + 1) * (sizeof(uint64_t) + sizeof(float));
    svm->bytes_per_byte = (double)bytes / (double)shmt_max_u64((uint64_t)n, 1);
    svm->lines_per_byte = (double)breaks / (double)shmt_max_u64((uint64_t)n, 1);
    svm->columns_found = find_columns(sample, n);
    return 0;
}

int shmt_libsvm_open(const char *path, struct shmt_source **out, struct shmt_error *e) {
    if (strcmp(path, "-") == 0) {
        return shmt_fail(e, SHMTRAIN_E_USAGE,
                         "data cannot come from standard input; save it to a file first, for it is read twice");
    }
    struct libsvm *svm = calloc(1, sizeof *svm);
    if (!svm) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory to open a file");
    svm->source = (struct shmt_source){&OPS, svm->file.name};
    int status = shmt_file_open(path, &svm->file, e);
    if (status == 0) status = look_at_beginning(svm, e);
    if (status == 0) {
        svm->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!svm->c_locale) status = shmt_fail_errno(e, "cannot make the C locale");
    }
    if (status != 0) {
        libsvm_close(&svm->source);
        return status;
    }
    *out = &svm->source;
    return 0;
}
