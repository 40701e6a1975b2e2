/* How a table is read: see csv_plan.h. */
#include "files/csv_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/csv_field.h"
#include "files/show.h"

int shmt_csv_plan_init(struct shmt_csv_plan *plan, uint32_t n_columns, struct shmt_error *e) {
    *plan = (struct shmt_csv_plan){.n_columns = n_columns, .label = SHMT_CSV_NONE};
    plan->column = calloc((size_t)n_columns + 1, sizeof *plan->column);
    plan->name = calloc((size_t)n_columns + 1, sizeof *plan->name);
    if (plan->column && plan->name) return 0;
    shmt_csv_plan_fini(plan);
    return shmt_no_memory(e, "for %u columns", n_columns);
}

void shmt_csv_plan_fini(struct shmt_csv_plan *plan) {
    for (uint32_t i = 0; plan->name && i < plan->n_columns; i++) free(plan->name[i]);
    for (uint32_t i = 0; plan->word && i < plan->n_words; i++) free(plan->word[i]);
    free(plan->column);
    free(plan->name);
    free(plan->word);
    *plan = (struct shmt_csv_plan){0};
}

void shmt_csv_plan_number(struct shmt_csv_plan *plan) {
    plan->n_features = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        struct shmt_csv_column *c = &plan->column[i];
        c->feature = c->kind == SHMT_CSV_NUMBER || c->kind == SHMT_CSV_CATEGORY ? ++plan->n_features : 0;
    }
}

void shmt_csv_plan_finish(struct shmt_csv_plan *plan) {
    uint32_t last = 0;
    plan->sorted = true;
    plan->label = SHMT_CSV_NONE;
    for (uint32_t i = 0; i < plan->n_columns; i++) {
        const struct shmt_csv_column *c = &plan->column[i];
        if (c->kind == SHMT_CSV_LABEL) plan->label = i;
        if (c->kind == SHMT_CSV_CATEGORY) plan->sorted = false;
        if (c->kind != SHMT_CSV_NUMBER) continue;
        plan->sorted = plan->sorted && c->feature > last;
        last = c->feature;
    }
}

/* The first word that is not below the value. */
static uint32_t search(const struct shmt_csv_plan *plan, const struct shmt_csv_field *field) {
    uint32_t low = 0, high = plan->n_words;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (shmt_csv_field_compare(field, plan->word[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t shmt_csv_plan_word(const struct shmt_csv_plan *plan, const struct shmt_csv_field *field) {
    const uint32_t i = search(plan, field);
    return i < plan->n_words && shmt_csv_field_compare(field, plan->word[i]) == 0 ? i : SHMT_CSV_NONE;
}

bool shmt_csv_may_be_word(const struct shmt_csv_field *field) {
    for (uint64_t i = 0; i < field->n; i++)
        if ((unsigned char)field->text[i] < 0x20 || field->text[i] == 0x7f) return false;
    char *word = strndup(field->text, field->n);
    const bool is = word && shmt_csv_is_utf8(word);
    free(word);
    return is;
}

int shmt_csv_plan_add_word(struct shmt_csv_plan *plan, const struct shmt_csv_field *field, struct shmt_error *e) {
    const uint32_t at = search(plan, field), n = plan->n_words;
    if (at < n && shmt_csv_field_compare(field, plan->word[at]) == 0) return 0;
    if (!shmt_csv_may_be_word(field)) return 0;
    if (n == SHMTRAIN_MAX_CLASSES)
        return shmt_fail(e, SHMTRAIN_E_DATA, "more than %d different words are labels; is --label the right column?",
                         SHMTRAIN_MAX_CLASSES);
    char **larger = realloc(plan->word, (n + 1) * sizeof *larger), *word = malloc(field->n + 1);
    if (larger) plan->word = larger;
    if (!larger || !word) {
        free(word);
        return shmt_no_memory(e, "for the labels");
    }
    word[shmt_csv_field_copy(field, word, field->n)] = '\0';
    memmove(larger + at + 1, larger + at, (n - at) * sizeof *larger);
    larger[at] = word;
    plan->n_words = n + 1;
    return 0;
}

void shmt_csv_column_show(const struct shmt_csv_plan *plan, uint32_t column, char out[SHMT_CSV_COLUMN_SHOWN]) {
    char name[SHMT_WORD_SHOWN];
    if (!plan->name[column] || plan->name[column][0] == '\0') {
        snprintf(out, SHMT_CSV_COLUMN_SHOWN, "column %u", column + 1);
        return;
    }
    shmt_show_word(plan->name[column], strlen(plan->name[column]), name);
    snprintf(out, SHMT_CSV_COLUMN_SHOWN, "column \"%s\"", name);
}
