/* A piece of text, row by row: counted, or filled in. See text_priv.h.
 *
 * Counting parses each line and hands its row to a buffer, where there is one; filling, which parses it again, is for when the
 * buffers had no room (row_buffer.h). Both run the same code, so that every error comes while counting, before any memory for the data
 * is made. Between the passes a file may change; fill holds every row against what was counted before it writes. */
#include "data/row_buffer.h"
#include "data/text_priv.h"
#include "files/lines.h"

#include "base/checked.h"

#include <stdlib.h>

/* One line after the other as rows, in memory of its own. */
struct rows {
    const struct text *text;
    const struct shmt_text_piece *piece;
    struct shmt_lines lines;
    struct shmt_row row;
    bool begins;                    /* nothing that the format does not skip has come since the file's beginning */
    uint64_t line;                  /* the row's, of text in memory */
    uint64_t at;                    /* the row's position */
    uint64_t n_skipped, skipped_at; /* bad lines; the first */
    struct shmt_line_fault skipped;
    uint64_t room;
    uint32_t *column; /* (room) of the row, when it has been placed: n_columns of them, with the first values of the row */
    uint64_t n_columns;
};

static const struct shmt_file *file_of(const struct rows *rows) { return &rows->text->file[rows->piece->file].file; }

/* Where the ranges are cut must not matter: what is skipped may be longer than one of them. */
static bool is_beginning(const struct text *text, const struct shmt_text_piece *piece) {
    return piece->memory ? piece->line == 1 : piece->begin == 0 || piece->begin < text->rows_at;
}

static int rows_open(struct rows *rows, const struct text *text, const struct shmt_text_piece *piece, struct shmt_error *e) {
    *rows = (struct rows){.text = text, .piece = piece, .begins = is_beginning(text, piece)};
    if (piece->memory) {
        rows->line = piece->line - 1;
        shmt_lines_open_text(&rows->lines, piece->memory, piece->bytes);
        return 0;
    }
    const struct shmt_file *file = file_of(rows);
    return shmt_lines_open_range(&rows->lines, file->fd, file->name, file->bytes, piece->begin, piece->end, e);
}

static void free_room(struct rows *rows) {
    free(rows->row.id);
    free(rows->row.value);
    free(rows->column);
}

static void rows_close(struct rows *rows) {
    free_room(rows);
    shmt_lines_close(&rows->lines);
}

/* Makes room for the row of a line of so many bytes. */
static int make_room(struct rows *rows, uint64_t line_bytes, struct shmt_error *e) {
    const struct shmt_text_format *format = rows->text->format;
    const uint64_t need = format->row_max ? format->row_max(rows->text->arg, line_bytes) : SHMT_ROW_MAX(line_bytes);
    if (need <= rows->room) return 0;
    rows->room = shmt_max_u64(2 * need, 1024);
    free_room(rows);
    rows->row.id = malloc(rows->room * sizeof *rows->row.id);
    rows->row.value = malloc(rows->room * sizeof *rows->row.value);
    rows->column = malloc(rows->room * sizeof *rows->column);
    if (rows->row.id && rows->row.value && rows->column) return 0;
    return shmt_no_memory(e, "for a line of %s", file_of(rows)->name);
}

/* The next line and its position. */
static int next_line(struct rows *rows, char **line_out, uint64_t *bytes_out, struct shmt_error *e) {
    uint64_t offset;
    const int status = shmt_lines_next(&rows->lines, line_out, bytes_out, &offset, e);
    if (status <= 0) return status;
    rows->line++;
    rows->at = (uint64_t)rows->piece->file << SHMT_TEXT_PLACE_BITS | (rows->piece->memory ? rows->line : offset);
    return 1;
}

static int refuse_line(const struct rows *rows, const struct shmt_line_fault *fault, struct shmt_error *e) {
    char place[SHMT_NAME_SHOWN + 32];
    shmt_source_place(&rows->text->source, rows->at, place, sizeof place);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: %s", place, (unsigned long long)fault->column, fault->text);
}

static void skip_line(struct rows *rows, const struct shmt_line_fault *fault) {
    if (rows->n_skipped++ > 0) return;
    rows->skipped_at = rows->at;
    rows->skipped = *fault;
}

/* What is no row at the beginning of a file: see text.h. */
static int look_at_beginning(struct rows *rows, const char *line, uint64_t bytes, struct shmt_error *e) {
    const struct text *text = rows->text;
    int rc = SHMT_TEXT_ROW;
    if (text->format->skips) rc = text->format->skips(text->arg, file_of(rows)->name, line, bytes, e);
    rows->begins = rc == SHMT_TEXT_NOTHING;
    return rc;
}

/* 1: rows->row is the next row. 0: there are no more. */
static int rows_next(struct rows *rows, struct shmt_error *e) {
    const struct text *text = rows->text;
    for (;;) {
        char *line;
        uint64_t bytes;
        int status = next_line(rows, &line, &bytes, e);
        if (status <= 0) return status;
        status = rows->begins ? look_at_beginning(rows, line, bytes, e) : SHMT_TEXT_ROW;
        if (status < 0) return status;
        if (status != SHMT_TEXT_ROW) continue;
        status = make_room(rows, bytes, e);
        if (status != 0) return status;
        struct shmt_line_fault fault;
        status = text->format->parse(text->arg, line, text->c_locale, &rows->row, &fault);
        if (status == 0) {
            if (!rows->row.blank) return 1;
            continue;
        }
        if (!text->skips_bad_lines || status == SHMTRAIN_E_USAGE) return refuse_line(rows, &fault, e);
        skip_line(rows, &fault);
    }
}

/* The row's columns; its values move with them. */
static void place_row(struct rows *rows, const struct shmt_columns *columns) {
    struct shmt_row *row = &rows->row;
    rows->n_columns = shmt_columns_place(columns, row->id, row->n, rows->column, row->value);
}

static void count_row(const struct rows *rows, struct shmt_part *out) {
    const struct shmt_row *row = &rows->row;
    double square = 0;
    uint32_t all_ones = out->all_ones;
    for (uint64_t i = 0; i < rows->n_columns; i++) {
        square += (double)row->value[i] * row->value[i];
        all_ones &= row->value[i] == 1;
    }
    out->all_ones = all_ones;
    shmt_sum_add(&out->square, square);
    out->n_nonzeros += rows->n_columns;
    out->min_id = shmt_min_u64(out->min_id, row->min_id);
    out->max_id = shmt_max_u64(out->max_id, row->max_id);
    shmt_part_add_label(out, row->label, rows->at);
}

int shmt_text_count(const struct text *text, const struct shmt_text_piece *piece, const struct shmt_columns *columns,
                    struct shmt_row_buffer *buffer, struct shmt_part *out) {
    struct rows rows;
    int status = rows_open(&rows, text, piece, &out->error);
    if (status != 0) return status;
    while ((status = rows_next(&rows, &out->error)) > 0) {
        if (buffer) shmt_row_buffer_add(buffer, rows.row.label, rows.row.id, rows.row.value, rows.row.n);
        place_row(&rows, columns);
        count_row(&rows, out);
    }
    out->n_skipped = rows.n_skipped;
    out->skipped_at = rows.skipped_at;
    out->skipped = rows.skipped;
    rows_close(&rows);
    return status;
}

static bool all_ones(const float *value, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        if (value[i] != 1) return false;
    }
    return true;
}

/* A label that was not counted would be no class. */
static bool is_counted(const struct shmt_part *counted, float label) {
    return counted->labels.n == SHMT_LABELS_KEPT || shmt_labels_have(&counted->labels, label);
}

int shmt_text_fill(const struct text *text, const struct shmt_text_piece *piece, const struct shmt_part *counted,
                   uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    struct rows rows;
    int status = rows_open(&rows, text, piece, e);
    if (status != 0) return status;
    const float *value;
    uint64_t example = first, nonzero = first_nonzero;
    const uint64_t end = first + counted->n_examples, end_nonzero = first_nonzero + counted->n_nonzeros;
    bool same = true;
    while (same && (status = rows_next(&rows, e)) > 0) {
        place_row(&rows, &into->columns);
        value = rows.row.value;
        same = example < end && rows.n_columns <= end_nonzero - nonzero &&
               (into->value || into->dense || all_ones(value, rows.n_columns)) && is_counted(counted, rows.row.label);
        if (!same) break;
        shmt_arrays_put(into, example, nonzero, rows.column, value, rows.n_columns);
        into->label[example++] = rows.row.label;
        nonzero += rows.n_columns;
    }
    rows_close(&rows);
    if (status < 0) return status;
    if (same && example == end && nonzero == end_nonzero) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s changed while it was being read", file_of(&rows)->name);
}
