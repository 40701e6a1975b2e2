/* Tables as text: files whose plan is guessed, by what somebody says about them or by nothing; then once more by the plan that came
 * of it, as a model that was trained on them keeps it; and by plans that are made up.
 *
 * An input: what is said (bits), then words up to a 0 byte each (a label's column, categorical columns, a plan), where the bits say
 * so, then the file. */
#include <stdlib.h>
#include <string.h>

#include "data/csv.h"
#include "files/csv_wish.h"
#include "fuzz.h"
#include "sources.h"

enum { LABEL = 1, CATEGORICAL = 2, PLAN = 4, TSV = 8, UNLABELLED = 16, HEADER = 32 };

static char *take_word(struct fuzz_input *in) {
    const uint8_t *end = in->left > 0 ? memchr(in->at, '\0', in->left) : NULL;
    struct fuzz_input word = {in->at, end ? (size_t)(end - in->at) : in->left};
    in->at += word.left + (end != NULL);
    in->left -= word.left + (end != NULL);
    return fuzz_text(&word);
}

/* The plan that the table was read by, to be freed; NULL: it was refused. */
static char *read_table(const struct shmt_source_wish *wish, uint8_t how) {
    struct shmt_source *source;
    struct shmt_error e = {0};
    const int status = shmt_source_open_as(wish, &source, &e);
    if (status != 0) {
        fuzz_check_error(status, &e);
        return NULL;
    }
    const char *note = shmt_source_note(source);
    char *plan = note ? strdup(note) : NULL;
    FUZZ_CHECK(plan);
    fuzz_read_source(source, 1 + (how >> 7), how & 0x40 ? FUZZ_COLUMNS_HASHED : FUZZ_COLUMNS_FOUND, 4, false);
    return plan;
}

/* A plan says what it says in one way only. */
static void check_plan(const char *text, bool ours) {
    struct shmt_csv_plan plan, again;
    struct shmt_error e = {0};
    const int status = shmt_csv_plan_parse(text, &plan, &e);
    if (status != 0) {
        FUZZ_CHECK(!ours);
        fuzz_check_error(status, &e);
        return;
    }
    char *first = shmt_csv_plan_text(&plan);
    FUZZ_CHECK(first && shmt_csv_plan_parse(first, &again, NULL) == 0);
    char *second = shmt_csv_plan_text(&again);
    FUZZ_CHECK(second && strcmp(first, second) == 0);
    free(first);
    free(second);
    shmt_csv_plan_fini(&plan);
    shmt_csv_plan_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    static const char *const HEADERS[] = {"yes", "no"};
    static struct fuzz_file file;
    struct fuzz_input in = {bytes, n};
    const uint8_t how = fuzz_u8(&in);
    char *label = how & LABEL ? take_word(&in) : NULL, *categorical = how & CATEGORICAL ? take_word(&in) : NULL;
    char *plan = how & PLAN ? take_word(&in) : NULL;
    struct shmt_csv_wish said = {
        .label = label, .categorical = categorical, .plan = plan, .header = how & HEADER ? HEADERS[how >> 7] : NULL};
    const struct shmt_source_wish wish = {.name = file.path,
                                          .how = how & UNLABELLED ? SHMT_SOURCE_UNLABELLED : 0,
                                          .format = how & TSV ? "tsv" : "csv",
                                          .csv = &said};
    if (plan) check_plan(plan, false);
    fuzz_file_write(&file, in.at, in.left);
    char *found = read_table(&wish, how);
    if (found) {
        check_plan(found, !plan);
        said = (struct shmt_csv_wish){.plan = found};
        free(read_table(&wish, how));
    }
    free(found);
    free(label);
    free(categorical);
    free(plan);
    return 0;
}
