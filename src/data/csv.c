/* A table as text (CSV, TSV) as a source: the plan is made of the file's beginning, its lines are csv_line.c's, and all
 * else is text.c's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/csv.h"
#include "data/text.h"
#include "base/checked.h"
#include "files/csv_line.h"
#include "files/csv_sample.h"
#include "files/input.h"
#include "files/lines.h"
#include "files/names.h"
#include "files/unpack.h"

#define PIECE ((uint64_t)1 << 20) /* bytes between two looks at a stop; of a packed file, what is unpacked at one time */

struct csv {
    struct shmt_source_wish wish; /* until the plan is made; what it points to is the caller's, who keeps it that long */
    struct shmt_csv_wish csv;
    char *given; /* csv.plan; NULL: none */
    struct shmt_csv_plan plan;
    char first[SHMT_NAME_SHOWN]; /* the file that the plan was made of */
    const char *remark;          /* of how it differs from that table; NULL: nothing */
    char own_remark[SHMT_CSV_REMARK];
    char *note; /* the plan as text: that of the table that the model was trained on, if there is one */
};

/* ---- the first lines ---- */

static bool is_name(const struct shmt_csv_plan *plan, const char *name) {
    for (uint32_t i = 0; name[0] != '\0' && i < plan->n_columns; i++)
        if (strcasecmp(plan->name[i], name) == 0) return true;
    return false;
}

/* The first line of a file, held against the header: the same names, some of them, or none. A number where numbers belong is
 * none of a header's names. */
static int compare_header(const struct shmt_csv_plan *plan, const char *p, bool *same_out, bool *known_out) {
    struct shmt_csv_field field;
    *same_out = true;
    *known_out = false;
    for (uint32_t i = 0;; i++, p = field.end + 1) {
        const bool fine = shmt_csv_field_take(p, plan->delimiter, &field) == SHMT_CSV_FINE;
        char *name = fine ? shmt_csv_field_name(&field) : NULL;
        if (fine && !name) return -1;
        const bool there = fine && i < plan->n_columns, same = there && strcasecmp(plan->name[i], name) == 0;
        const bool known = same || (fine && is_name(plan, name));
        const bool is_number =
            there && plan->column[i].kind == SHMT_CSV_NUMBER && field.n > 0 && name[strspn(name, "0123456789+-.eE")] == '\0';
        *same_out = *same_out && same;
        *known_out = *known_out || known;
        free(name);
        if (!fine || (!known && is_number)) {
            *same_out = false;
            *known_out = false;
            return 0;
        }
        if (*field.end != plan->delimiter) {
            *same_out = *same_out && i + 1 == plan->n_columns;
            return 0;
        }
    }
}

static int skip_header(const struct csv *csv, const char *name, const char *line, struct shmt_error *e) {
    bool same, known;
    if (compare_header(&csv->plan, line, &same, &known) < 0) return shmt_no_memory(e, "for the header of %s", name);
    if (same) return SHMT_TEXT_HEADER;
    if (!known) return SHMT_TEXT_ROW;
    return shmt_fail(e, SHMTRAIN_E_DATA,
                     "the header of %s differs from that of %s: all files of a table need the same columns in the same order",
                     name, csv->first);
}

static int skips(const void *arg, const char *name, const char *line, uint64_t bytes, struct shmt_error *e) {
    const struct csv *csv = arg;
    if (bytes >= 3) line = shmt_csv_skip_mark(line);
    if (strncmp(line, "sep=", 4) == 0 && shmt_csv_may_delimit(line[4]) && shmt_csv_at_end(line + 5)) return SHMT_TEXT_NOTHING;
    const char *end = line;
    while (*end == ' ' || *end == '\t') end++;
    if (shmt_csv_at_end(end)) return SHMT_TEXT_NOTHING;
    return csv->plan.has_header ? skip_header(csv, name, line, e) : SHMT_TEXT_ROW;
}

/* ---- labels that are words ---- */

static int look_at_stop(const struct csv *csv, struct shmt_error *e) {
    const struct shmt_source_stop *stop = &csv->wish.stop;
    if (!stop->asked || !stop->asked(stop->arg)) return 0;
    return shmt_fail(e, SHMTRAIN_E_STOPPED, "stopped while looking for labels");
}

static int learn_line(struct shmt_csv_plan *plan, const char *p, struct shmt_error *e) {
    struct shmt_csv_field field;
    for (uint32_t i = 0;; i++) {
        if (shmt_csv_field_take(p, plan->delimiter, &field) != SHMT_CSV_FINE) return 0; /* the parser will refuse it */
        if (i == plan->label) break;
        if (*field.end != plan->delimiter) return 0;
        p = field.end + 1;
    }
    return shmt_csv_is_missing_word(&field) ? 0 : shmt_csv_plan_add_word(plan, &field, e);
}

static int learn_text(struct shmt_csv_plan *plan, const char *p, const char *end, struct shmt_error *e) {
    const char *stop;
    int rc = 0;
    for (; rc == 0 && p < end && (stop = memchr(p, '\n', (size_t)(end - p))); p = stop + 1) rc = learn_line(plan, p, e);
    return rc;
}

static int learn_lines(struct csv *csv, const char *name, struct shmt_lines *lines, struct shmt_error *e) {
    char *line;
    uint64_t bytes, at, look = 0;
    bool begins = true;
    int rc;
    while ((rc = shmt_lines_next(lines, &line, &bytes, &at, e)) > 0) {
        if (at >= look && look_at_stop(csv, e) < 0) return SHMTRAIN_E_STOPPED;
        if (at >= look) look = at + PIECE;
        rc = begins ? skips(csv, name, line, bytes, e) : SHMT_TEXT_ROW;
        begins = begins && rc == SHMT_TEXT_NOTHING;
        if (rc == SHMT_TEXT_ROW) rc = learn_line(&csv->plan, line, e);
        if (rc < 0) break;
    }
    return rc;
}

/* The whole lines of a text; returns their bytes. */
static int64_t learn_piece(struct csv *csv, const char *name, const char *text, uint64_t n, bool *begins,
                           struct shmt_error *e) {
    const char *p = text, *stop;
    while (n > 0 && (stop = memchr(p, '\n', n - (uint64_t)(p - text)))) {
        int rc = *begins ? skips(csv, name, p, (uint64_t)(stop - p) + 1, e) : SHMT_TEXT_ROW;
        *begins = *begins && rc == SHMT_TEXT_NOTHING;
        if (rc == SHMT_TEXT_ROW) rc = learn_line(&csv->plan, p, e);
        if (rc < 0) return rc;
        p = stop + 1;
    }
    return p - text;
}

static int learn_packed(struct csv *csv, const char *name, struct shmt_unpack *stream, struct shmt_error *e) {
    uint64_t room = PIECE, have = 0;
    char *text = malloc(room + 1);
    bool begins = true, all = false;
    int64_t n = 0;
    while (text && n >= 0 && !all) {
        n = look_at_stop(csv, e);
        if (n < 0) break;
        const int64_t more = shmt_unpack_read(stream, text + have, room - have, NULL);
        all = more < (int64_t)(room - have);
        have += more > 0 ? (uint64_t)more : 0;
        if (all) text[have++] = '\n';
        n = learn_piece(csv, name, text, have, &begins, e);
        if (n < 0) break;
        have -= (uint64_t)n;
        memmove(text, text + n, have);
        if (have < room) continue;
        char *larger = realloc(text, 2 * room + 1);
        if (!larger) free(text);
        text = larger;
        room *= 2;
    }
    if (!text) return shmt_no_memory(e, "to read %s", name);
    free(text);
    return n < 0 ? (int)n : 0;
}

static int learn_plain(struct csv *csv, const struct shmt_file *file, struct shmt_error *e) {
    struct shmt_lines lines;
    int rc = shmt_lines_open(&lines, file->fd, file->name, file->bytes, 0, 1, e);
    if (rc == 0) rc = learn_lines(csv, file->name, &lines, e);
    shmt_lines_close(&lines);
    return rc;
}

/* A file can be read more than once. What is wrong with it is for others to find. A pipe is not even opened: its writer would
 * lose its reader. */
static int learn_file(struct csv *csv, const char *path, struct shmt_error *e) {
    struct shmt_text_file file;
    struct shmt_unpack *stream;
    int rc = 0;
    if (shmt_text_file_open(path, true, &file, NULL) < 0) {
        shmt_text_file_close(&file);
        return 0;
    }
    if (file.kind == SHMT_TEXT_PIPE) {
        csv->plan.has_more = true;
    } else if (file.kind == SHMT_TEXT_PLAIN) {
        rc = learn_plain(csv, &file.file, e);
    } else if (shmt_unpack_open(&file.file, &stream, NULL) == 0) {
        rc = learn_packed(csv, file.file.name, stream, e);
        shmt_unpack_close(stream);
    }
    shmt_text_file_close(&file);
    return rc;
}

/* Words must be known before parts of the text are read at one time. Of pipes the beginning has to do. */
static int learn(struct csv *csv, const struct shmt_csv_sample *sample, const char *rows, bool all, struct shmt_error *e) {
    const char *names = csv->wish.name;
    const uint32_t n = shmt_names_count(names);
    int rc = learn_text(&csv->plan, rows, sample->end, e);
    for (uint32_t i = 0; rc == 0 && i < n && !(all && n == 1); i++) {
        char *path = shmt_names_at(names, i);
        rc = path ? learn_file(csv, path, e) : shmt_no_memory(e, "to open %u files", n);
        free(path);
    }
    return rc;
}

/* ---- the plan ---- */

static char delimiter_by_name(const struct shmt_source_wish *wish, const char *name, const struct shmt_csv_plan *model) {
    const char *format = wish->format;
    if ((format && strcmp(format, "tsv") == 0) || shmt_csv_is_name(name) == '\t') return '\t';
    return model && !strchr(",\t;|", model->delimiter) ? model->delimiter : '\0';
}

static int make_plan(struct csv *csv, const struct shmt_csv_sample *sample, const struct shmt_csv_plan *model,
                     const char **rows, struct shmt_error *e) {
    const bool labelled = (csv->wish.how & SHMT_SOURCE_UNLABELLED) == 0;
    shmt_csv_plan_fini(&csv->plan);
    if (model) {
        const int rc = shmt_csv_match(sample, model, labelled, &csv->plan, rows, e);
        if (rc == 0) csv->remark = shmt_csv_match_remark(model, &csv->plan);
        return rc;
    }
    const int rc = shmt_csv_guess(sample, &csv->plan, rows, e);
    if (rc == 0) shmt_csv_guess_remark(sample, &csv->plan, csv->own_remark);
    if (rc == 0 && csv->own_remark[0] != '\0') csv->remark = csv->own_remark;
    if (rc < 0 || csv->plan.label != SHMT_CSV_NONE || !labelled) return rc;
    return shmt_refuse(e, "--label none: labels are needed here, too, so name the label's column of %s", sample->name);
}

static int set_note(struct csv *csv, struct shmt_error *e) {
    const char *given = csv->csv.plan;
    csv->note = given ? strdup(given) : shmt_csv_plan_text(&csv->plan);
    return csv->note ? 0 : shmt_no_memory(e, "for the plan of a table");
}

static int plan_text(struct csv *csv, const char *name, const char *text, uint64_t n, bool all,
                     const struct shmt_csv_plan *model, struct shmt_error *e) {
    struct shmt_csv_sample sample;
    const char *rows = NULL;
    int rc = shmt_csv_sample_open(&sample, &csv->csv, name, delimiter_by_name(&csv->wish, name, model), text, n, all, e);
    if (rc == 0) rc = make_plan(csv, &sample, model, &rows, e);
    snprintf(csv->first, sizeof csv->first, "%s", name);
    if (rc == 0 && csv->plan.has_words && !model) rc = learn(csv, &sample, rows, all, e);
    if (rc == 0) rc = set_note(csv, e);
    shmt_csv_sample_close(&sample);
    return rc;
}

static int plan(void *arg, const char *name, const char *text, uint64_t n, bool all, struct shmt_error *e) {
    struct csv *csv = arg;
    const char *given = csv->csv.plan;
    struct shmt_csv_plan model;
    if (!given) return plan_text(csv, name, text, n, all, NULL, e);
    int rc = shmt_csv_plan_parse(given, &model, e);
    if (rc == 0) {
        rc = plan_text(csv, name, text, n, all, &model, e);
        shmt_csv_plan_fini(&model);
    }
    return rc;
}

/* ---- lines ---- */

static int parse(const void *arg, const char *line, locale_t c_locale, struct shmt_row *row_out,
                 struct shmt_line_fault *fault_out) {
    return shmt_csv_parse(&((const struct csv *)arg)->plan, line, c_locale, row_out, fault_out);
}

static uint64_t row_max(const void *arg, uint64_t line_bytes) {
    return shmt_csv_row_max(&((const struct csv *)arg)->plan, line_bytes);
}

/* By reading what there is. */
static void guess(const void *arg, const char *sample, uint64_t n, struct shmt_text_guess *out) {
    const struct csv *csv = arg;
    const uint64_t room = shmt_csv_row_max(&csv->plan, n);
    struct shmt_row row = {.id = malloc(room * sizeof *row.id), .value = malloc(room * sizeof *row.value)};
    struct shmt_line_fault fault;
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const char *p = sample, *stop;
    uint64_t rows = 0, nonzeros = 0;
    int what = SHMT_TEXT_NOTHING;
    bool begins = true;
    while (row.id && row.value && c_locale && (stop = memchr(p, '\n', n - (uint64_t)(p - sample)))) {
        what = begins ? skips(arg, csv->first, p, (uint64_t)(stop - p) + 1, NULL) : SHMT_TEXT_ROW;
        begins = what == SHMT_TEXT_NOTHING;
        if (what == SHMT_TEXT_ROW && shmt_csv_parse(&csv->plan, p, c_locale, &row, &fault) == 0 && !row.blank) {
            rows++;
            nonzeros += row.n;
        }
        p = stop + 1;
    }
    if (c_locale) freelocale(c_locale);
    free(row.id);
    free(row.value);
    const double bytes = (double)shmt_max_u64(n, 1);
    out->lines_per_byte = (double)(rows + 1) / bytes;
    out->bytes_per_byte =
        (double)(nonzeros * (sizeof(uint32_t) + sizeof(float)) + (rows + 1) * (sizeof(uint64_t) + sizeof(float))) / bytes;
    out->nonzeros_per_byte = (double)nonzeros / bytes;
    out->columns_found = csv->plan.n_features;
}

static const char *note(const void *arg) { return ((const struct csv *)arg)->note; }

static const char *remark(const void *arg) { return ((const struct csv *)arg)->remark; }

static void free_csv(void *arg) {
    struct csv *csv = arg;
    shmt_csv_plan_fini(&csv->plan);
    free(csv->note);
    free(csv->given);
    free(csv);
}

int shmt_csv_open(const struct shmt_source_wish *wish, struct shmt_source **out, struct shmt_error *e) {
    static const struct shmt_text_format CSV = {.plan = plan,
                                                .skips = skips,
                                                .parse = parse,
                                                .row_max = row_max,
                                                .guess = guess,
                                                .note = note,
                                                .remark = remark,
                                                .free_arg = free_csv};
    struct csv *csv = calloc(1, sizeof *csv);
    if (!csv) return shmt_no_memory(e, "to open a file");
    csv->wish = *wish;
    if (wish->csv) csv->csv = *wish->csv;
    if (csv->csv.plan && !(csv->csv.plan = csv->given = strdup(csv->csv.plan))) { /* pipes are looked at much later */
        free(csv);
        return shmt_no_memory(e, "for the plan of a table");
    }
    const int rc = shmt_text_open(wish, &CSV, csv, out, e);
    if (rc == 0) csv->wish.stop.asked = NULL; /* of the caller of open, and of no reader's thread */
    return rc;
}

/* ---- lines as they come ---- */

static int begin(struct csv *csv, const char *name, const char *line, uint64_t bytes, const struct shmt_csv_plan *model,
                 struct shmt_error *e) {
    struct shmt_csv_sample sample;
    const char *rows = NULL;
    int rc = shmt_csv_sample_open(&sample, &csv->csv, name, delimiter_by_name(&csv->wish, name, model), line, bytes, true, e);
    if (rc == 0) rc = make_plan(csv, &sample, model, &rows, e);
    if (rc == 0) rc = rows == sample.rows;
    shmt_csv_sample_close(&sample);
    return rc;
}

int shmt_csv_begin(const struct shmt_source_wish *wish, const char *name, const char *line, uint64_t bytes,
                   struct shmt_csv_plan *out, struct shmt_error *e) {
    struct csv csv = {.wish = *wish};
    struct shmt_csv_plan model = {0};
    char said[2] = {out->delimiter, '\0'}; /* by a line before this one */
    if (wish->csv) csv.csv = *wish->csv;
    if (said[0] && (!csv.csv.delimiter || csv.csv.delimiter[0] == '\0' || strcmp(csv.csv.delimiter, "auto") == 0))
        csv.csv.delimiter = said;
    if (skips(&csv, name, line, bytes, e) == SHMT_TEXT_NOTHING) {
        if (bytes >= 3) line = shmt_csv_skip_mark(line);
        if (line[0] == 's') out->delimiter = line[4]; /* of "sep=;" */
        return 1;
    }
    *out = csv.plan;
    int rc = csv.csv.plan ? shmt_csv_plan_parse(csv.csv.plan, &model, e) : 0;
    if (rc == 0) rc = begin(&csv, name, line, bytes, csv.csv.plan ? &model : NULL, e);
    shmt_csv_plan_fini(&model);
    if (rc < 0)
        shmt_csv_plan_fini(&csv.plan);
    else
        *out = csv.plan;
    return rc;
}

/* ---- names ---- */

static bool ends_with(const char *name, size_t n, const char *end) {
    const size_t m = strlen(end);
    return n > m && strncasecmp(name + n - m, end, m) == 0;
}

char shmt_csv_is_name(const char *name) {
    static const char *const PACKED[] = {".gz", ".bz2", ".xz", ".zst"};
    size_t n = strlen(name);
    for (uint32_t i = 0; i < sizeof PACKED / sizeof *PACKED; i++) {
        if (!ends_with(name, n, PACKED[i])) continue;
        n -= strlen(PACKED[i]);
        break;
    }
    if (ends_with(name, n, ".csv")) return ',';
    return ends_with(name, n, ".tsv") || ends_with(name, n, ".tab") ? '\t' : '\0';
}
