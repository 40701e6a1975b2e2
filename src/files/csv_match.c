/* A plan for a table that is to be read as the one that a model was trained on: by the header's names where both have one, and
 * else by position. Where somebody names the label's column, that is said of this table. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "files/csv_sample.h"

/* A name in the first line. */
struct name {
    const char *text;
    uint32_t at;
};

struct match {
    const struct shmt_csv_sample *s;
    const struct shmt_csv_plan *model;
    struct shmt_csv_plan *out;
    bool labelled;     /* labels are needed */
    bool known;        /* a name of the model's is in the header */
    uint32_t label;    /* the column that somebody named; SHMT_CSV_NONE: nobody did */
    struct name *name; /* (out->n_columns) in the order of their letters, whatever the case */
    bool *taken;       /* (out->n_columns) */
};

/* ---- names ---- */

static int by_letters(const void *a, const void *b) {
    const struct name *x = a, *y = b;
    const int order = strcasecmp(x->text, y->text);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

static int take_names(struct match *m, struct shmt_error *e) {
    struct shmt_csv_plan *out = m->out;
    m->name = calloc((size_t)out->n_columns + 1, sizeof *m->name);
    m->taken = calloc((size_t)out->n_columns + 1, sizeof *m->taken);
    bool well = m->name && m->taken;
    for (uint32_t i = 0; well && i < out->n_columns; i++) {
        out->name[i] = shmt_csv_sample_header(m->s, i);
        m->name[i] = (struct name){out->name[i], i};
        well = out->name[i] != NULL;
    }
    if (!well) return shmt_no_memory(e, "for the columns of %s", m->s->name);
    qsort(m->name, out->n_columns, sizeof *m->name, by_letters);
    return 0;
}

static void drop_names(struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        free(plan->name[i]);
        plan->name[i] = NULL;
    }
}

/* The first of this name that is not taken, however it is written or exactly so; SHMT_CSV_NONE. */
static uint32_t find_name(const struct match *m, const char *name, bool exactly) {
    uint32_t low = 0, high = m->out->n_columns;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (strcasecmp(m->name[middle].text, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < m->out->n_columns && strcasecmp(m->name[low].text, name) == 0; low++)
        if (!m->taken[m->name[low].at] && (!exactly || strcmp(m->name[low].text, name) == 0)) return m->name[low].at;
    return SHMT_CSV_NONE;
}

/* ---- the header ---- */

static bool has_name_of_model(const struct match *m) {
    for (uint32_t i = 0; m->model->has_header && i < m->model->n_columns; i++)
        if (m->model->name[i][0] != '\0' && find_name(m, m->model->name[i], false) != SHMT_CSV_NONE) return true;
    return false;
}

/* Somebody names a column by what stands in the first line. */
static bool has_name_of_label(const struct match *m) {
    const char *label = m->s->wish->label;
    if (label && !m->labelled && strcmp(label, "none") == 0) return false;
    return label && label[strspn(label, "0123456789")] != '\0' && find_name(m, label, true) != SHMT_CSV_NONE;
}

/* Where the label is, by position; SHMT_CSV_NONE where the table lacks it, and nobody needs it. false: there are too few
 * columns, or too many. */
static bool find_place_of_label(const struct match *m, uint32_t *out) {
    const uint32_t n = m->s->n_fields;
    *out = SHMT_CSV_NONE;
    if (n + 1 == m->model->n_columns) return !m->labelled && m->model->label != SHMT_CSV_NONE && m->label == SHMT_CSV_NONE;
    if (m->model->label != SHMT_CSV_NONE) *out = m->label != SHMT_CSV_NONE ? m->label : m->model->label;
    return n == m->model->n_columns;
}

/* Which of the model's columns each of this table's is, by position; to be freed. NULL: no memory. */
static uint32_t *places_of(const struct match *m, uint32_t label) {
    uint32_t *place = malloc(((size_t)m->s->n_fields + 1) * sizeof *place);
    for (uint32_t at = 0, i = 0; place && at < m->s->n_fields; at++) {
        i += at != label && i == m->model->label;
        place[at] = at == label ? m->model->label : i++;
    }
    return place;
}

/* Where numbers belong, by position, are words, and no number: a row has one word too many at most. */
static int look_for_words(const struct match *m, bool *out, struct shmt_error *e) {
    uint32_t label;
    float value;
    *out = false;
    if (!find_place_of_label(m, &label)) return 0;
    uint32_t *place = places_of(m, label);
    if (!place) return shmt_no_memory(e, "for the columns of %s", m->s->name);
    for (uint32_t at = 0; at < m->s->n_fields; at++) {
        const struct shmt_csv_field *field = &m->s->field[at];
        if (m->model->column[place[at]].kind != SHMT_CSV_NUMBER || shmt_csv_is_missing(field)) continue;
        *out = !shmt_csv_is_number(field, m->s->c_locale, &value);
        if (!*out) break;
    }
    free(place);
    return 0;
}

static int decide_header(struct match *m, struct shmt_error *e) {
    const char *said = m->s->wish->header;
    const bool yes = said && strcmp(said, "yes") == 0, no = said && strcmp(said, "no") == 0;
    int rc = take_names(m, e);
    if (rc < 0) return rc;
    m->known = !no && has_name_of_model(m);
    m->out->has_header = yes || m->known || (!no && has_name_of_label(m));
    if (!m->out->has_header && !no) rc = look_for_words(m, &m->out->has_header, e);
    if (!m->out->has_header) drop_names(m->out);
    return rc;
}

/* ---- the label ---- */

/* Where nobody needs labels, it may be where the model's is, there or not. */
static int find_label(struct match *m, struct shmt_error *e) {
    const char *said = m->s->wish->label;
    if (!said || said[0] == '\0') return 0;
    const bool none = strcmp(said, "none") == 0;
    const uint32_t of_model = shmt_csv_plan_find(m->model, said, strlen(said));
    if (!m->labelled && (none || (of_model != SHMT_CSV_NONE && of_model == m->model->label))) return 0;
    m->label = shmt_csv_plan_find(m->out, said, strlen(said));
    if (m->label != SHMT_CSV_NONE) return 0;
    if (none) return shmt_refuse(e, "--label none: labels are needed here, too, so name the label's column of %s", m->s->name);
    return shmt_csv_refuse_column(m->s, m->out, "--label", said, strlen(said), e);
}

/* ---- columns ---- */

static int refuse_missing(const struct match *m, uint32_t column, struct shmt_error *e) {
    char shown[SHMT_CSV_COLUMN_SHOWN];
    const char *hint = m->known ? "" : "; without a header (--header no) columns are matched by position";
    const bool is_label = m->model->column[column].kind == SHMT_CSV_LABEL;
    shmt_csv_column_show(m->model, column, shown);
    if (m->known && is_label) hint = "; --label names another";
    if (m->label != SHMT_CSV_NONE && strcasecmp(m->out->name[m->label], m->model->name[column]) == 0)
        return shmt_refuse(e, "--label names %s of %s, which is a feature of the model", shown, m->s->name);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has no %s, which is %s of the model%s", m->s->name, shown,
                     is_label ? "the label" : "a feature", hint);
}

static bool is_wanted(const struct match *m, uint32_t column) {
    const uint32_t kind = m->model->column[column].kind;
    return kind == SHMT_CSV_LABEL ? m->labelled : kind != SHMT_CSV_IGNORED;
}

/* Names as they are written go first: those of another table may differ in nothing but capital letters. */
static int match_names(struct match *m, struct shmt_error *e) {
    const struct shmt_csv_plan *model = m->model;
    const bool has_label = m->label != SHMT_CSV_NONE;
    bool *found = calloc((size_t)model->n_columns + 1, sizeof *found);
    int rc = found ? 0 : shmt_no_memory(e, "for the columns of %s", m->s->name);
    if (has_label) m->taken[m->label] = true;
    if (has_label) m->out->column[m->label].kind = SHMT_CSV_LABEL;
    if (found && has_label && model->label != SHMT_CSV_NONE) found[model->label] = true;
    for (uint32_t pass = 0; rc == 0 && pass < 2; pass++) {
        for (uint32_t i = 0; rc == 0 && i < model->n_columns; i++) {
            if (found[i]) continue;
            const uint32_t at = find_name(m, model->name[i], pass == 0);
            found[i] = at != SHMT_CSV_NONE;
            if (found[i]) m->taken[at] = true;
            if (found[i]) m->out->column[at] = model->column[i];
            if (!found[i] && pass == 1 && is_wanted(m, i)) rc = refuse_missing(m, i, e);
        }
    }
    free(found);
    return rc;
}

static int match_places(const struct match *m, struct shmt_error *e) {
    uint32_t label;
    if (!find_place_of_label(m, &label))
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s has %u columns, but the model's data had %u; add a header that names them",
                         m->s->name, m->s->n_fields, m->model->n_columns);
    uint32_t *place = places_of(m, label);
    if (!place) return shmt_no_memory(e, "for the columns of %s", m->s->name);
    for (uint32_t at = 0; at < m->s->n_fields; at++) m->out->column[at] = m->model->column[place[at]];
    free(place);
    return 0;
}

/* ---- the plan ---- */

static int take_words(const struct shmt_csv_plan *model, struct shmt_csv_plan *out, struct shmt_error *e) {
    out->has_words = model->has_words;
    out->word = calloc((size_t)model->n_words + 1, sizeof *out->word);
    if (!out->word) return shmt_no_memory(e, "for the labels");
    for (uint32_t i = 0; i < model->n_words; i++) {
        out->word[i] = strdup(model->word[i]);
        if (!out->word[i]) return shmt_no_memory(e, "for the labels");
        out->n_words = i + 1;
    }
    return 0;
}

/* Where nobody needs labels, theirs is a column like any other. */
static void leave_label(struct shmt_csv_plan *out) {
    for (uint32_t i = 0; i < out->n_columns; i++)
        if (out->column[i].kind == SHMT_CSV_LABEL) out->column[i].kind = SHMT_CSV_IGNORED;
}

int shmt_csv_match(const struct shmt_csv_sample *sample, const struct shmt_csv_plan *model, bool labelled,
                   struct shmt_csv_plan *out, const char **rows_out, struct shmt_error *e) {
    struct match m = {.s = sample, .model = model, .out = out, .labelled = labelled, .label = SHMT_CSV_NONE};
    int rc = shmt_csv_plan_init(out, sample->n_fields, e);
    if (rc < 0) return rc;
    out->delimiter = sample->delimiter;
    out->n_features = model->n_features;
    out->of_model = true;
    out->marks = model->marks;
    rc = decide_header(&m, e);
    if (rc == 0) rc = find_label(&m, e);
    if (rc == 0) rc = model->has_header && out->has_header ? match_names(&m, e) : match_places(&m, e);
    if (rc == 0) rc = take_words(model, out, e);
    free(m.name);
    free(m.taken);
    if (rc < 0) {
        shmt_csv_plan_fini(out);
        return rc;
    }
    if (!labelled) leave_label(out);
    shmt_csv_plan_finish(out);
    *rows_out = out->has_header ? sample->rows : sample->first;
    return 0;
}

const char *shmt_csv_match_remark(const struct shmt_csv_plan *model, const struct shmt_csv_plan *plan) {
    if (model->has_header == plan->has_header) return NULL;
    return plan->has_header
               ? "its first line is taken as a header; the model's table had none, so columns are matched by position"
               : "its first line does not look like a header, so columns are matched by position (--header yes if it is one)";
}
