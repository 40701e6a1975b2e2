/* The plan of a table as JSON, which a model file keeps:
 *
 *     {"version": 2, "delimiter": ",", "header": true, "labels": ["no", "yes"],
 *      "columns": [["age", "number", 38.25], ["color", "category"], ["bought", "label"], ["id", "ignored"]]}
 *
 * Without a header names are null, and so are labels that are numbers. With a number stands what it counts as where it is
 * missing, or null where those that are there are marked, and behind that the whole number that the column is counted from, if it is
 * not 0: ["time", "number", -12.5, 1700000000]. Version 1 has neither, and no marks. A text that is read back is
 * somebody's: every word of it is checked. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "files/csv_field.h"
#include "files/csv_plan.h"
#include "files/csv_wish.h"

enum { UNMARKED = 1, MARKED };

#define FLOAT_DIGITS 9 /* that tell all floats apart */

static const char *const KINDS[SHMT_CSV_KINDS] = {"ignored", "label", "number", "category"};

bool shmt_csv_is_utf8(const char *text) {
    json_t *string = json_string(text);
    if (string) json_decref(string);
    return string != NULL;
}

/* ---- writing ---- */

static json_t *text_of(const char *text) {
    if (!text) return json_null();
    json_t *valid = json_string(text); /* NULL when it is no UTF-8 */
    return valid ? valid : json_string_nocheck("");
}

static bool has_missing(const struct shmt_csv_plan *plan, uint32_t i) {
    return plan->marks && plan->column[i].kind == SHMT_CSV_NUMBER;
}

static void append_number(json_t *list, const struct shmt_csv_column *column) {
    json_array_append_new(list, isnan(column->missing) ? json_null() : json_real((double)column->missing));
    if (column->from != 0) json_array_append_new(list, json_integer((json_int_t)column->from));
}

/* A plan without numbers has nothing to mark. */
static int version_of(const struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (has_missing(plan, i)) return MARKED;
    return UNMARKED;
}

static json_t *columns_of(const struct shmt_csv_plan *plan) {
    json_t *columns = json_array();
    for (uint32_t i = 0; columns && i < plan->n_columns; i++) {
        json_t *column = json_array();
        json_array_append_new(column, text_of(plan->name[i]));
        json_array_append_new(column, json_string(KINDS[plan->column[i].kind]));
        if (has_missing(plan, i)) append_number(column, &plan->column[i]);
        json_array_append_new(columns, column);
    }
    return columns;
}

char *shmt_csv_plan_text(const struct shmt_csv_plan *plan) {
    const char delimiter[2] = {plan->delimiter, '\0'};
    json_t *labels = plan->has_words ? json_array() : json_null();
    for (uint32_t i = 0; i < plan->n_words; i++) json_array_append_new(labels, json_string(plan->word[i]));
    json_t *root = json_pack("{s:i,s:s,s:b,s:o,s:o}", "version", version_of(plan), "delimiter", delimiter, "header",
                             plan->has_header, "labels", labels, "columns", columns_of(plan));
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(FLOAT_DIGITS));
    json_decref(root);
    return text;
}

/* ---- reading ---- */

static int refuse(const char *why, struct shmt_error *e) {
    return shmt_fail(e, SHMTRAIN_E_DATA, "its table's description is invalid: %s", why);
}

static int kind_of(const json_t *column, uint32_t *out) {
    const char *word = json_string_value(json_array_get(column, 1));
    for (*out = 0; word && *out < SHMT_CSV_KINDS; ++*out)
        if (strcmp(KINDS[*out], word) == 0) return 0;
    return -1;
}

/* Copies a string without a zero inside. */
static int copy(const json_t *string, char **out, struct shmt_error *e) {
    const char *text = json_string_value(string);
    if (!text || strlen(text) != json_string_length(string)) return refuse("expected words", e);
    *out = strdup(text);
    return *out ? 0 : shmt_no_memory(e, "for the plan of a table");
}

static int read_from(const json_t *from, double *out) {
    *out = (double)json_integer_value(from);
    return json_is_integer(from) && *out != 0 && fabs(*out) <= SHMT_CSV_FROM ? 0 : -1;
}

/* What stands behind a column's kind. */
static int read_number(const json_t *column, const struct shmt_csv_plan *plan, uint32_t i) {
    const json_t *missing = json_array_get(column, 2);
    struct shmt_csv_column *out = &plan->column[i];
    const size_t n = json_array_size(column);
    if (!has_missing(plan, i)) return n == 2 ? 0 : -1;
    if (n != 3 && n != 4) return -1;
    out->missing = json_is_null(missing) ? NAN : (float)json_number_value(missing);
    if (!json_is_null(missing) && !(json_is_number(missing) && isfinite(out->missing))) return -1;
    return n == 4 ? read_from(json_array_get(column, 3), &out->from) : 0;
}

static int read_columns(const json_t *columns, struct shmt_csv_plan *plan, struct shmt_error *e) {
    uint32_t n_labels = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        const json_t *column = json_array_get(columns, i), *name = json_array_get(column, 0);
        if (kind_of(column, &plan->column[i].kind) < 0 || read_number(column, plan, i) < 0)
            return refuse(plan->marks ? "expected columns as [name, kind], and numbers as [name, kind, number, whole number]"
                                      : "expected columns as [name, kind]",
                          e);
        n_labels += plan->column[i].kind == SHMT_CSV_LABEL;
        if (plan->has_header != json_is_string(name)) return refuse("expected names if and only if there is a header", e);
        const int rc = plan->has_header ? copy(name, &plan->name[i], e) : 0;
        if (rc < 0) return rc;
    }
    return n_labels <= 1 ? 0 : refuse("expected one column for the label", e);
}

static int read_labels(const json_t *labels, struct shmt_csv_plan *plan, struct shmt_error *e) {
    const size_t n = json_array_size(labels);
    if (json_is_null(labels)) return 0;
    if (!json_is_array(labels) || n > SHMTRAIN_MAX_CLASSES) return refuse("expected labels", e);
    plan->has_words = true;
    plan->word = calloc(n + 1, sizeof *plan->word);
    if (!plan->word) return shmt_no_memory(e, "for the plan of a table");
    for (uint32_t i = 0; i < n; i++) {
        const int rc = copy(json_array_get(labels, i), &plan->word[i], e);
        if (rc < 0) return rc;
        plan->n_words = i + 1;
        const struct shmt_csv_field word = {.text = plan->word[i], .n = strlen(plan->word[i])};
        if (!shmt_csv_may_be_word(&word)) return refuse("expected printable labels", e);
        if (i > 0 && strcmp(plan->word[i - 1], plan->word[i]) >= 0) return refuse("expected labels in ascending order", e);
    }
    return 0;
}

static int read_root(const json_t *root, struct shmt_csv_plan *out, struct shmt_error *e) {
    const json_t *columns = json_object_get(root, "columns"), *header = json_object_get(root, "header");
    const char *delimiter = json_string_value(json_object_get(root, "delimiter"));
    const size_t n = json_array_size(columns);
    const json_int_t version = json_integer_value(json_object_get(root, "version"));
    if (version != UNMARKED && version != MARKED) return refuse("it has another version", e);
    if (!delimiter || strlen(delimiter) != 1 || !shmt_csv_may_delimit(delimiter[0])) return refuse("expected a delimiter", e);
    if (!json_is_boolean(header)) return refuse("expected a header, true or false", e);
    if (n == 0 || n > SHMT_CSV_COLUMNS) return refuse("expected columns", e);
    int rc = shmt_csv_plan_init(out, (uint32_t)n, e);
    if (rc < 0) return rc;
    out->delimiter = delimiter[0];
    out->has_header = json_is_true(header);
    out->marks = version == MARKED;
    rc = read_columns(columns, out, e);
    if (rc == 0) rc = read_labels(json_object_get(root, "labels"), out, e);
    if (rc < 0) {
        shmt_csv_plan_fini(out);
        return rc;
    }
    shmt_csv_plan_number(out);
    shmt_csv_plan_finish(out);
    return 0;
}

int shmt_csv_plan_parse(const char *text, struct shmt_csv_plan *out, struct shmt_error *e) {
    json_t *root = json_loads(text, 0, NULL);
    *out = (struct shmt_csv_plan){0};
    const int rc = root ? read_root(root, out, e) : refuse("it is not JSON", e);
    if (root) json_decref(root);
    return rc;
}
