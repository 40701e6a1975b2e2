/* A plan for a table that is to be read as the one that a model was trained on: by the header's names where both have one, and
 * else by position. */
#include <stdlib.h>
#include <string.h>

#include "data/csv_sample.h"

/* ---- the header ---- */

static bool is_name_of(const struct shmt_csv_plan *model, const char *name) {
    for (uint32_t i = 0; i < model->n_columns; i++)
        if (model->name[i] && model->name[i][0] != '\0' && strcmp(model->name[i], name) == 0) return true;
    return false;
}

/* The model's columns by position: the label may be left out where nobody needs it. False: there are too few, or too many. */
static bool has_places(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, bool labelled, bool *without_out) {
    *without_out = !labelled && model->label != SHMT_CSV_NONE && s->n_fields + 1 == model->n_columns;
    return s->n_fields == model->n_columns || *without_out;
}

/* Where numbers belong, by position, are words, and no number: a row has one word too many at most. */
static bool has_words_for_numbers(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, bool labelled) {
    bool without, words = false;
    if (!has_places(s, model, labelled, &without)) return false;
    for (uint32_t i = 0, at = 0; i < model->n_columns; i++) {
        float value;
        if (without && i == model->label) continue;
        const struct shmt_csv_field *field = &s->field[at++];
        if (model->column[i].kind != SHMT_CSV_NUMBER || shmt_csv_is_missing(field)) continue;
        if (shmt_csv_is_number(field, s->c_locale, &value)) return false;
        words = true;
    }
    return words;
}

/* *known_out: it has a name that the model knows. */
static int look_for_header(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, bool labelled,
                           struct shmt_csv_plan *out, bool *known_out, struct shmt_error *e) {
    const char *said = s->wish->header;
    *known_out = false;
    for (uint32_t i = 0; i < s->n_fields; i++) {
        out->name[i] = shmt_csv_sample_header(s, i);
        if (!out->name[i]) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for the columns of %s", s->name);
        *known_out |= model->has_header && is_name_of(model, out->name[i]);
    }
    const bool yes = said && strcmp(said, "yes") == 0, no = said && strcmp(said, "no") == 0;
    *known_out = *known_out && !no;
    out->has_header = yes || (!no && (*known_out || has_words_for_numbers(s, model, labelled)));
    return 0;
}

/* ---- columns ---- */

static int refuse_missing(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, uint32_t column, bool known,
                          struct shmt_error *e) {
    char shown[SHMT_CSV_COLUMN_SHOWN];
    shmt_csv_column_show(model, column, shown);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has no %s, which is %s of the model%s", s->name, shown,
                     model->column[column].kind == SHMT_CSV_LABEL ? "the label" : "a feature",
                     known ? "" : "; without a header (--header no) columns are taken by position");
}

/* Of columns with the same name the first one that is not taken. */
static uint32_t find_name(const struct shmt_csv_plan *plan, const char *name, const bool *taken) {
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (!taken[i] && strcmp(plan->name[i], name) == 0) return i;
    return SHMT_CSV_NONE;
}

static int match_names(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, bool labelled, bool known,
                       struct shmt_csv_plan *out, bool *taken, struct shmt_error *e) {
    for (uint32_t i = 0; i < model->n_columns; i++) {
        const struct shmt_csv_column *c = &model->column[i];
        const uint32_t at = find_name(out, model->name[i], taken);
        if (at != SHMT_CSV_NONE) {
            taken[at] = true;
            out->column[at] = *c;
        } else if (c->kind != SHMT_CSV_IGNORED && (c->kind != SHMT_CSV_LABEL || labelled)) {
            return refuse_missing(s, model, i, known, e);
        }
    }
    return 0;
}

static int match_places(const struct shmt_csv_sample *s, const struct shmt_csv_plan *model, bool labelled,
                        struct shmt_csv_plan *out, struct shmt_error *e) {
    bool without;
    if (!has_places(s, model, labelled, &without))
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s has %u columns, and the model's data had %u; a header would say which is which", s->name,
                         s->n_fields, model->n_columns);
    for (uint32_t i = 0, at = 0; i < model->n_columns; i++)
        if (!without || i != model->label) out->column[at++] = model->column[i];
    return 0;
}

static int take_words(const struct shmt_csv_plan *model, struct shmt_csv_plan *out, struct shmt_error *e) {
    out->has_words = model->has_words;
    out->word = calloc((size_t)model->n_words + 1, sizeof *out->word);
    if (!out->word) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for the labels");
    for (uint32_t i = 0; i < model->n_words; i++) {
        out->word[i] = strdup(model->word[i]);
        if (!out->word[i]) return shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for the labels");
        out->n_words = i + 1;
    }
    return 0;
}

/* Where nobody needs labels, theirs is a column like any other. */
static void leave_label(struct shmt_csv_plan *out) {
    for (uint32_t i = 0; i < out->n_columns; i++)
        if (out->column[i].kind == SHMT_CSV_LABEL) out->column[i].kind = SHMT_CSV_IGNORED;
}

static void drop_names(struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        free(plan->name[i]);
        plan->name[i] = NULL;
    }
}

int shmt_csv_match(const struct shmt_csv_sample *sample, const struct shmt_csv_plan *model, bool labelled,
                   struct shmt_csv_plan *out, const char **rows_out, struct shmt_error *e) {
    bool known = false, *taken = NULL;
    int rc = shmt_csv_plan_init(out, sample->n_fields, e);
    if (rc < 0) return rc;
    out->delimiter = sample->delimiter;
    out->n_features = model->n_features;
    rc = look_for_header(sample, model, labelled, out, &known, e);
    if (rc == 0) taken = calloc(sample->n_fields, sizeof *taken);
    if (rc == 0 && !taken) rc = shmt_fail(e, SHMTRAIN_E_MEMORY, "no memory for the columns of %s", sample->name);
    const bool by_name = model->has_header && out->has_header;
    if (rc == 0)
        rc = by_name ? match_names(sample, model, labelled, known, out, taken, e)
                     : match_places(sample, model, labelled, out, e);
    if (rc == 0) rc = take_words(model, out, e);
    free(taken);
    if (rc < 0) {
        shmt_csv_plan_fini(out);
        return rc;
    }
    if (!out->has_header) drop_names(out);
    if (!labelled) leave_label(out);
    shmt_csv_plan_finish(out);
    *rows_out = out->has_header ? sample->rows : sample->first;
    return 0;
}
