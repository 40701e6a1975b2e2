/* One line of a table as text to one row: see csv_line.h. */
#include "files/csv_line.h"

#include "files/csv_field.h"
#include "files/number.h"
#include "files/show.h"
#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A line on its way to a row. */
struct work {
    const struct shmt_csv_plan *plan;
    const char *line;
    locale_t c_locale;
    struct shmt_row *row;
    struct shmt_line_fault *fault;
};

/* ---- what is wrong ---- */

static int __attribute__((cold, format(printf, 3, 4))) fault(const struct work *w, const char *at, const char *expected, ...) {
    va_list args;
    va_start(args, expected);
    vsnprintf(w->fault->text, sizeof w->fault->text, expected, args);
    va_end(args);
    w->fault->column = (uint64_t)(at - w->line) + 1;
    return SHMTRAIN_E_DATA;
}

static int __attribute__((cold)) refuse_quotes(const struct work *w, enum shmt_csv_trouble trouble, const char *at) {
    if (trouble == SHMT_CSV_BEHIND_QUOTE)
        return fault(w, at, "expected the end of the value after its closing quote; write quotes inside a value twice: \"\"");
    return fault(w, at,
                 "this quote is not closed on its line: write values without line breaks, as a table is read line by line");
}

/* A column's name, what was expected of it and what was found; the remedy behind it. */
static int __attribute__((cold))
refuse(const struct work *w, uint32_t column, const struct shmt_csv_field *field, const char *expected, const char *remedy) {
    char named[SHMT_CSV_COLUMN_SHOWN], found[SHMT_WORD_SHOWN];
    shmt_csv_column_show(w->plan, column, named);
    shmt_show_word(field->text, field->n, found);
    if (field->n == 0) return fault(w, field->text, "%s: expected %s, found nothing%s", named, expected, remedy);
    return fault(w, field->text, "%s: expected %s, found \"%s\"%s", named, expected, found, remedy);
}

static int __attribute__((cold)) refuse_number(const struct work *w, uint32_t column, const struct shmt_csv_field *field) {
    return refuse(
        w, column, field, "a number",
        w->plan->of_model ? ", as in the table that the model was trained on" : "; name it in --categorical if it has words");
}

static int __attribute__((cold)) refuse_count(const struct work *w, uint32_t found, const char *at) {
    const char *const place = at;
    while (found > w->plan->n_columns) {
        struct shmt_csv_field field;
        if (shmt_csv_field_take(at, w->plan->delimiter, &field) != SHMT_CSV_FINE || *field.end != w->plan->delimiter) break;
        at = field.end + 1;
        found++;
    }
    return fault(w, place, "expected %u fields, found %u", w->plan->n_columns, found);
}

/* ---- fields ---- */

static inline void put(struct shmt_row *row, uint64_t id, float value) {
    row->id[row->n] = id;
    row->value[row->n] = value;
    row->n += value != 0;
    row->min_id = id < row->min_id ? id : row->min_id;
    row->max_id = id > row->max_id ? id : row->max_id;
}

static int take(const struct work *w, const char *p, struct shmt_csv_field *field) {
    const enum shmt_csv_trouble trouble = shmt_csv_field_take(p, w->plan->delimiter, field);
    return trouble == SHMT_CSV_FINE ? 0 : refuse_quotes(w, trouble, field->text);
}

static inline void put_number(struct shmt_row *row, const struct shmt_csv_column *c, float value) {
    put(row, c->feature, value);
    if (isnan(c->missing)) put(row, c->feature | SHMT_CSV_MARK_ID, 1);
}

static void put_missing(const struct work *w, const struct shmt_csv_column *c) {
    if (!w->plan->marks || isnan(c->missing)) return;
    put(w->row, c->feature, c->missing);
    put(w->row, c->feature | SHMT_CSV_MARK_ID, 1);
}

/* A number that is not simply one: missing, in quotes, between blanks, far from 0. */
static int __attribute__((noinline)) take_number(const struct work *w, uint32_t column, const struct shmt_csv_field *field) {
    const struct shmt_csv_column *c = &w->plan->column[column];
    float value;
    if (shmt_csv_is_missing(field)) {
        put_missing(w, c);
        return 0;
    }
    if (!shmt_csv_is_number(field, w->c_locale, &value)) return refuse_number(w, column, field);
    if (c->from != 0) value = (float)(shmt_csv_number(field, w->c_locale) - c->from);
    if (!isfinite(value)) return refuse(w, column, field, "a number between -3.4e38 and 3.4e38", "");
    put_number(w->row, c, value);
    return 0;
}

/* Labels that are known, as many as there is room for. */
static int __attribute__((cold)) refuse_word(const struct work *w, uint32_t column, const struct shmt_csv_field *field) {
    if (!shmt_csv_may_be_word(field))
        return refuse(w, column, field, "a printable label in UTF-8", "; convert the file, as by iconv -f latin1 -t utf-8");
    if (w->plan->has_more) {
        (void)refuse(w, column, field, "a known label",
                     "; labels of a pipe are collected from its first part only: save it to a file");
        return SHMTRAIN_E_USAGE;
    }
    char known[100] = "one of the labels", *at = known + strlen(known);
    for (uint32_t i = 0; i < w->plan->n_words && i < 3; i++) {
        char word[SHMT_WORD_SHOWN];
        shmt_show_word(w->plan->word[i], strlen(w->plan->word[i]), word);
        at += snprintf(at, sizeof known - (size_t)(at - known), "%s %.20s", i > 0 ? "," : "", word);
    }
    if (w->plan->n_words > 3) snprintf(at, sizeof known - (size_t)(at - known), ", ...");
    return refuse(w, column, field, known, "");
}

static int take_label(const struct work *w, uint32_t column, const struct shmt_csv_field *field) {
    const bool words = w->plan->has_words;
    if (words ? shmt_csv_is_missing_word(field) : shmt_csv_is_missing(field))
        return refuse(w, column, field, "a label", "; --skip-bad-lines leaves such lines out");
    if (words) {
        const uint32_t word = shmt_csv_plan_word(w->plan, field);
        if (word == SHMT_CSV_NONE) return refuse_word(w, column, field);
        w->row->label = (float)word;
        return 0;
    }
    if (!shmt_csv_is_number(field, w->c_locale, &w->row->label))
        return refuse(w, column, field, "a label that is a number, like those before",
                      w->plan->of_model ? "" : "; name its column in --categorical if labels are words");
    return isfinite(w->row->label) ? 0 : refuse(w, column, field, "a label between -3.4e38 and 3.4e38", "");
}

/* A field of any kind. Returns where it ends in *end_out. */
static int take_field(const struct work *w, uint32_t column, const char *p, const char **end_out) {
    const struct shmt_csv_column *c = &w->plan->column[column];
    struct shmt_csv_field field;
    const int status = take(w, p, &field);
    if (status != 0) return status;
    *end_out = field.end;
    if (c->kind == SHMT_CSV_NUMBER) return take_number(w, column, &field);
    if (c->kind == SHMT_CSV_LABEL) return take_label(w, column, &field);
    if (c->kind == SHMT_CSV_CATEGORY && !shmt_csv_is_missing(&field))
        put(w->row, shmt_csv_field_hash(&field, c->feature) | SHMT_CSV_CATEGORY_ID, 1);
    return 0;
}

/* ---- rows ---- */

/* By shell sort: rows are short, and often in order but for the categories. */
static void sort(uint64_t *id, float *value, uint64_t n) {
    uint64_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (uint64_t i = gap; i < n; i++) {
            const uint64_t x = id[i];
            const float v = value[i];
            uint64_t j = i;
            for (; j >= gap && id[j - gap] > x; j -= gap) {
                id[j] = id[j - gap];
                value[j] = value[j - gap];
            }
            id[j] = x;
            value[j] = v;
        }
    }
}

/* Two categories may have one hash: then they are one. */
static void put_in_order(struct shmt_row *row) {
    uint64_t kept = 0;
    sort(row->id, row->value, row->n);
    for (uint64_t i = 0; i < row->n; i++) {
        if (i > 0 && row->id[i] == row->id[kept - 1]) continue;
        row->id[kept] = row->id[i];
        row->value[kept++] = row->value[i];
    }
    row->n = kept;
}

static bool is_blank(const char *p) {
    while (*p == ' ') p++;
    return shmt_csv_at_end(p);
}

int shmt_csv_parse(const struct shmt_csv_plan *plan, const char *line, locale_t c_locale, struct shmt_row *row_out,
                   struct shmt_line_fault *fault_out) {
    const struct work w = {plan, line, c_locale, row_out, fault_out};
    const char *p = shmt_csv_skip_mark(line);
    row_out->n = 0;
    row_out->min_id = UINT64_MAX;
    row_out->max_id = 0;
    row_out->label = 0;
    row_out->blank = is_blank(p);
    if (row_out->blank) return 0;
    for (uint32_t i = 0;;) {
        const struct shmt_csv_column *c = &plan->column[i];
        const char *end = NULL;
        float value;
        if (c->kind == SHMT_CSV_NUMBER && c->from == 0) end = shmt_number_read(p, c_locale, &value);
        if (end && (*end == plan->delimiter || shmt_csv_at_end(end)) && isfinite(value)) {
            put_number(row_out, c, value);
        } else {
            const int status = take_field(&w, i, p, &end);
            if (status != 0) return status;
        }
        i++;
        if (*end != plan->delimiter) {
            if (i < plan->n_columns) return refuse_count(&w, i, end);
            break;
        }
        p = end + 1;
        if (i == plan->n_columns) return refuse_count(&w, i + 1, p);
    }
    if (!plan->sorted || row_out->max_id >= SHMT_CSV_MARK_ID) put_in_order(row_out);
    return 0;
}
