/* Lines of text as a source: see text.h.
 *
 * Called through source.h. What to read, and where to stop, is decided here and in flow.c; reading lines and making rows of them
 * is text_rows.c's. A plain file is read by pread, whose position belongs to the call: readers do not disturb one another. */
#include "data/ids.h"
#include "data/text_priv.h"
#include "files/lines.h"
#include "files/names.h"
#include "files/unpack.h"

#include "base/checked.h"
#include "base/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED   2 /* of several files, in sentences */
#define NOTHING 2 /* of looking into a file: neither well, nor in need of more */

static int text_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out) {
    const struct text *text = shmt_text_of(source);
    const uint64_t bytes = text->file[0].file.bytes;
    const struct shmt_text_piece piece = {.begin = shmt_part_begin(bytes, part, n_parts),
                                          .end = shmt_part_begin(bytes, part + 1, n_parts)};
    return shmt_text_count(text, &piece, columns, buffer, out);
}

static int text_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                     uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e) {
    const struct text *text = shmt_text_of(source);
    const uint64_t bytes = text->file[0].file.bytes;
    const struct shmt_text_piece piece = {.begin = shmt_part_begin(bytes, part, n_parts),
                                          .end = shmt_part_begin(bytes, part + 1, n_parts)};
    return shmt_text_fill(text, &piece, counted, first, first_nonzero, into, e);
}

/* Of packed files as if they were text: they are larger when they are unpacked, nobody knows how much. */
static uint64_t all_bytes(const struct text *text) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < text->n_files; i++) bytes += text->file[i].file.bytes;
    return bytes;
}

static uint64_t text_guess_bytes(const struct shmt_source *source, bool dense) {
    const struct text *text = shmt_text_of(source);
    const double bytes = (double)all_bytes(text);
    const uint64_t found = text->guess.columns_found;
    const uint64_t nonzeros = (uint64_t)(text->guess.nonzeros_per_byte * bytes);
    const double lines = text->guess.lines_per_byte * bytes;
    const bool listed = shmt_ids_are_far_apart(found, nonzeros) || shmt_ids_may_be_few(found, (uint64_t)lines, nonzeros);
    if (dense) return shmt_dense_bytes(lines, listed ? 1 : found);
    return (uint64_t)(text->guess.bytes_per_byte * bytes);
}

static void text_place(const struct shmt_source *source, uint64_t at, char *out, uint64_t bytes) {
    const struct shmt_text_file *file = &shmt_text_of(source)->file[at >> SHMT_TEXT_PLACE_BITS];
    const uint64_t where = at & (((uint64_t)1 << SHMT_TEXT_PLACE_BITS) - 1);
    const uint64_t line = file->kind == SHMT_TEXT_PLAIN ? shmt_lines_number(file->file.fd, where) : where;
    if (line > 0) {
        snprintf(out, bytes, "%s:%llu", file->file.name, (unsigned long long)line);
    } else {
        snprintf(out, bytes, "%s, byte %llu", file->file.name, (unsigned long long)where + 1);
    }
}

static const char *text_note(const struct shmt_source *source) {
    const struct text *text = shmt_text_of(source);
    return text->format->note ? text->format->note(text->arg) : NULL;
}

static const char *text_remark(const struct shmt_source *source) {
    const struct text *text = shmt_text_of(source);
    return text->format->remark ? text->format->remark(text->arg) : NULL;
}

static bool text_reads(const struct shmt_source *source, const struct stat *file) {
    const struct text *text = shmt_text_of(source);
    for (uint32_t i = 0; i < text->n_files; i++)
        if (text->file[i].dev == file->st_dev && text->file[i].ino == file->st_ino) return true;
    return false;
}

static const char *text_title(const struct shmt_source *source) {
    const struct text *text = shmt_text_of(source);
    return text->n_files > 1 || strcmp(text->file[0].path, "-") == 0 ? source->name : NULL;
}

/* One plain file is cut into parts; all else comes as it comes. */
static bool text_flows(const struct shmt_source *source) {
    const struct text *text = shmt_text_of(source);
    return text->n_files > 1 || text->file[0].kind != SHMT_TEXT_PLAIN;
}

static bool text_is_once(const struct shmt_source *source) {
    const struct text *text = shmt_text_of(source);
    bool once = false;
    for (uint32_t i = 0; i < text->n_files; i++) once |= text->file[i].kind == SHMT_TEXT_PIPE;
    return once;
}

static bool is_same_pipe(const struct shmt_text_file *a, const struct shmt_text_file *b) {
    return a->kind == SHMT_TEXT_PIPE && b->kind == SHMT_TEXT_PIPE && a->dev == b->dev && a->ino == b->ino;
}

static bool text_share_pipe(const struct shmt_source *a, const struct shmt_source *b) {
    const struct text *x = shmt_text_of(a), *y = shmt_text_of(b);
    for (uint32_t i = 0; i < x->n_files; i++)
        for (uint32_t j = 0; j < y->n_files; j++)
            if (is_same_pipe(&x->file[i], &y->file[j])) return true;
    return false;
}

/* Parts come in the order of their files, and one that is not empty has one. */
static uint32_t text_empty_files(const struct shmt_source *source, const struct shmt_part *parts, uint32_t n_parts,
                                 const char **first_out) {
    const struct text *text = shmt_text_of(source);
    uint32_t n = 0, part = 0;
    if (text->n_files == 1) return 0; /* refused */
    for (uint32_t i = 0; i < text->n_files; i++) {
        if (part == n_parts || parts[part].file > i) {
            if (n++ == 0) *first_out = text->file[i].file.name;
        }
        while (part < n_parts && parts[part].file == i) part++;
    }
    return n;
}

static void text_close(struct shmt_source *source) {
    struct text *text = (struct text *)source;
    if (text->c_locale) freelocale(text->c_locale);
    if (text->format->free_arg) text->format->free_arg(text->arg);
    for (uint32_t i = 0; i < text->n_files; i++) shmt_text_file_close(&text->file[i]);
    free(text->file);
    free(text);
}

static const struct shmt_source_ops OPS = {
    .fills_buffers = true,
    .has_any_ids = true,
    .count = text_count,
    .fill = text_fill,
    .reads = text_reads,
    .empty_files = text_empty_files,
    .note = text_note,
    .remark = text_remark,
    .guess_bytes = text_guess_bytes,
    .title = text_title,
    .flows = text_flows,
    .is_once = text_is_once,
    .share_pipe = text_share_pipe,
    .place = text_place,
    .close = text_close,
};

/* ---- opening ---- */

/* Up to so many bytes of a file's beginning. */
static int64_t read_sample(const struct shmt_text_file *file, char *sample, uint64_t bytes, struct shmt_error *e) {
    struct shmt_unpack *stream;
    if (file->kind == SHMT_TEXT_PLAIN) {
        const int64_t n = shmt_io_read(file->file.fd, sample, bytes, 0);
        return n < 0 ? shmt_fail_errno(e, "cannot read %s", file->file.name) : n;
    }
    const int rc = shmt_unpack_open(&file->file, &stream, e);
    if (rc < 0) return rc;
    const int64_t n = shmt_unpack_read(stream, sample, bytes, e);
    shmt_unpack_close(stream);
    return n;
}

int shmt_text_plan(const struct text *text, const char *name, char *sample, uint64_t n, bool all, struct shmt_error *e) {
    if (all && n > 0 && sample[n - 1] != '\n') sample[n++] = '\n';
    return text->format->plan(text->arg, name, sample, n, all, e);
}

/* Shows the format as much of the file as it needs, and lets it guess. NOTHING: what was packed is empty. */
static int look_into(struct text *text, const struct shmt_text_file *file, struct shmt_error *e) {
    int rc = 1;
    for (uint64_t bytes = SHMT_TEXT_SAMPLE; rc == 1; bytes *= 4) {
        char *sample = malloc(bytes + 1);
        if (!sample) return shmt_no_memory(e, "for the first part of %s", file->file.name);
        const int64_t n = read_sample(file, sample, bytes, e);
        const bool all = n < (int64_t)bytes || bytes > SHMT_LINE_BYTES_MAX;
        if (n <= 0)
            rc = n < 0 ? (int)n : NOTHING;
        else
            rc = text->format->plan ? shmt_text_plan(text, file->file.name, sample, (uint64_t)n, all, e) : 0;
        if (rc == 0) text->format->guess(text->arg, sample, (uint64_t)n, &text->guess);
        free(sample);
    }
    return rc;
}

/* Readers begin anywhere in a plain file, and each must know whether it is at the beginning yet. */
static int find_rows(struct text *text, struct shmt_error *e) {
    const struct shmt_file *file = &text->file[0].file;
    struct shmt_lines lines;
    char *line;
    uint64_t bytes;
    if (text->n_files > 1 || text->file[0].kind != SHMT_TEXT_PLAIN || !text->format->skips) return 0;
    int rc = shmt_lines_open(&lines, file->fd, file->name, file->bytes, 0, 1, e);
    while (rc >= 0 && (rc = shmt_lines_next(&lines, &line, &bytes, &text->rows_at, e)) > 0) {
        const int what = text->format->skips(text->arg, file->name, line, bytes, e);
        if (what == SHMT_TEXT_HEADER) text->rows_at++; /* it starts before, and what follows it does not */
        if (what < 0) rc = what;
        if (what != SHMT_TEXT_NOTHING) break;
    }
    if (rc == 0) text->rows_at = file->bytes;
    shmt_lines_close(&lines);
    return rc < 0 ? rc : 0;
}

/* The first of the files that can be looked into: nothing is taken from a pipe before its time. */
static int look_at_beginning(struct text *text, struct shmt_error *e) {
    int rc = NOTHING;
    for (uint32_t i = 0; i < text->n_files && rc == NOTHING; i++)
        if (text->file[i].kind == SHMT_TEXT_PLAIN || text->file[i].kind == SHMT_TEXT_PACKED)
            rc = look_into(text, &text->file[i], e);
    if (rc != NOTHING) return rc;
    if (text->n_files == 1 && text->file[0].kind == SHMT_TEXT_PACKED)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s is empty", text->file[0].file.name);
    text->plans_later = text->format->plan != NULL;
    return 0;
}

static int check_pipes(const struct text *text, struct shmt_error *e) {
    for (uint32_t i = 1; i < text->n_files; i++)
        for (uint32_t j = 0; j < i; j++)
            if (is_same_pipe(&text->file[i], &text->file[j]))
                return shmt_refuse(e, "%s is named twice, but can be read only once", text->file[i].file.name);
    return 0;
}

/* "3 files (a.svm, b.svm.gz, ...)" */
static void name_all(struct text *text) {
    int n = snprintf(text->shown, sizeof text->shown, "%u files (%s", text->n_files, text->file[0].file.name);
    const uint32_t named = (uint32_t)shmt_min_u64(text->n_files, NAMED);
    for (uint32_t i = 1; i < named; i++)
        n += snprintf(text->shown + n, sizeof text->shown - (size_t)n, ", %s", text->file[i].file.name);
    snprintf(text->shown + n, sizeof text->shown - (size_t)n, named < text->n_files ? ", ...)" : ")");
}

static int open_files(struct text *text, const char *names, struct shmt_error *e) {
    const uint32_t n_files = shmt_names_count(names);
    text->file = calloc(n_files, sizeof *text->file);
    if (!text->file) return shmt_no_memory(e, "to open %u files", n_files);
    int rc = 0;
    for (uint32_t i = 0; i < n_files && rc == 0; i++) {
        char *path = shmt_names_at(names, i);
        text->file[i].file.fd = -1;
        text->n_files++;
        rc = path ? shmt_text_file_open(path, n_files == 1, &text->file[i], e) : shmt_no_memory(e, "to open %u files", n_files);
        free(path);
    }
    if (rc < 0) return rc;
    text->source.name = text->file[0].file.name;
    if (n_files == 1) return 0;
    name_all(text);
    text->source.name = text->shown;
    return check_pipes(text, e);
}

int shmt_text_open(const struct shmt_source_wish *wish, const struct shmt_text_format *format, void *arg,
                   struct shmt_source **out, struct shmt_error *e) {
    struct text *text = calloc(1, sizeof *text);
    if (!text) {
        if (format->free_arg) format->free_arg(arg);
        return shmt_no_memory(e, "to open a file");
    }
    text->source = (struct shmt_source){.ops = &OPS};
    text->format = format;
    text->arg = arg;
    text->skips_bad_lines = wish->skip_bad_lines;
    int status = open_files(text, wish->name, e);
    if (status == 0) status = look_at_beginning(text, e);
    if (status == 0) status = find_rows(text, e);
    if (status == 0) {
        text->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (!text->c_locale) status = shmt_fail_errno(e, "cannot make the C locale");
    }
    if (status != 0) {
        text_close(&text->source);
        return status;
    }
    *out = &text->source;
    return 0;
}
