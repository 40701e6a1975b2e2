/* How a table as text is read: what each of its columns is.
 *
 * Made when the file is opened, of its beginning (csv_guess.c) or of a model's plan (csv_match.c), and read-only from then
 * on. Features are numbered from 1 in the order of the columns, numbers and categories alike, the label's column left out. A
 * number's id is that of its feature; a category's the hash of feature and value, with the highest bit set, and its value 1.
 *
 * A category that is missing is absent. A number that is missing counts as what its column says, the mean of the first rows,
 * and a feature of its own, a mark, is 1 there: so a model learns what missing itself says, however far from 0 the numbers
 * are. Of a column in which most are missing, those that are there are marked instead, and the others are absent, so that
 * sparse tables stay sparse; with a bias both say the same. Plans of before there were marks have none: what is missing is
 * absent. No plan lists the marks that occur: they have ids of their own, which are columns where the data has them.
 *
 * Numbers that are all far from 0, as times in seconds are, would lose in a float what tells them apart: such a column is counted
 * from a whole number among them, which is taken off in double precision. What they and the missing ones count as is meant so. */
#pragma once

#include <shmtrain/data.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SHMT_CSV_NONE    UINT32_MAX
#define SHMT_CSV_COLUMNS ((uint32_t)1 << 24) /* the most */

#define SHMT_CSV_FROM        4.6e18               /* the farthest a column is counted from: a whole number of 64 bits */
#define SHMT_CSV_CATEGORY_ID SHMTRAIN_ID_CATEGORY /* in the ids of categories */
#define SHMT_CSV_MARK_ID     SHMTRAIN_ID_MARK     /* and of marks, without the other; below it stands the feature */

enum shmt_csv_kind { SHMT_CSV_IGNORED, SHMT_CSV_LABEL, SHMT_CSV_NUMBER, SHMT_CSV_CATEGORY, SHMT_CSV_KINDS };

struct shmt_csv_column {
    uint32_t kind;    /* enum shmt_csv_kind */
    uint32_t feature; /* from 1 on; 0: it is none */
    float missing;    /* what a missing number counts as; NAN: those that are there are marked. Only with `marks` */
    double from;      /* a whole number that numbers are counted from; 0: as they are. Only with `marks` */
};

struct shmt_csv_plan {
    char delimiter;
    bool sorted; /* there are numbers only, and their ids ascend from field to field */
    bool has_header;
    bool marks;    /* whether numbers are missing is marked */
    bool of_model; /* made by a model's: what the columns are is not for options to say */
    uint32_t n_columns, n_features;
    uint32_t label;                 /* the column; SHMT_CSV_NONE: none, and labels are 0 */
    struct shmt_csv_column *column; /* (n_columns) */
    char **name;                    /* (n_columns) NULL: no header said them */
    bool has_words;                 /* labels are words: word i is label i */
    bool has_more;                  /* nobody could look for all of them before the lines are read */
    uint32_t n_words;
    char **word; /* (n_words) ascending, distinct */
};

/* Room for so many columns and names. SHMTRAIN_E_MEMORY. */
int shmt_csv_plan_init(struct shmt_csv_plan *plan, uint32_t n_columns, struct shmt_error *e);
void shmt_csv_plan_fini(struct shmt_csv_plan *plan); /* {0} is fine */

/* Whether an id is a mark; of which feature. */
static inline bool shmt_csv_is_mark(uint64_t id, uint32_t *feature_out) {
    *feature_out = (uint32_t)id;
    return (id & (SHMT_CSV_CATEGORY_ID | SHMT_CSV_MARK_ID)) == SHMT_CSV_MARK_ID && (id ^ SHMT_CSV_MARK_ID) <= SHMT_CSV_COLUMNS;
}

/* Numbers the features and sets what follows from the columns. */
void shmt_csv_plan_number(struct shmt_csv_plan *plan);
void shmt_csv_plan_finish(struct shmt_csv_plan *plan);

struct shmt_csv_field;

/* Whether a label's word can stand in a model and in a line of its own: UTF-8, and nothing that steers a terminal. */
bool shmt_csv_may_be_word(const struct shmt_csv_field *field);

/* Adds a label's word where it belongs, if it is new and may be one; which it may not is for the parser to refuse. Errors:
 * _DATA (too many), _MEMORY. */
int shmt_csv_plan_add_word(struct shmt_csv_plan *plan, const struct shmt_csv_field *field, struct shmt_error *e);

/* The number of a label's word; SHMT_CSV_NONE. */
uint32_t shmt_csv_plan_word(const struct shmt_csv_plan *plan, const struct shmt_csv_field *field);

/* A column by name, else by number from 1 on, whose text has n bytes; SHMT_CSV_NONE. */
uint32_t shmt_csv_plan_find(const struct shmt_csv_plan *plan, const char *text, uint64_t n);

/* A column as sentences name it: column "age", or column 3. Numbered from 0 here and from 1 there. */
#define SHMT_CSV_COLUMN_SHOWN 80
void shmt_csv_column_show(const struct shmt_csv_plan *plan, uint32_t column, char out[SHMT_CSV_COLUMN_SHOWN]);

/* Whether a word can stand in a plan as text. */
bool shmt_csv_is_utf8(const char *text);

/* As text for a model file: JSON, to be freed; NULL: no memory. And back, where the text is somebody's: SHMTRAIN_E_DATA. */
char *shmt_csv_plan_text(const struct shmt_csv_plan *plan);
int shmt_csv_plan_parse(const char *text, struct shmt_csv_plan *out, struct shmt_error *e);

/* What somebody should know of a table that was matched with a model's, to follow its name: that only one of both has a header.
 * NULL: nothing. */
const char *shmt_csv_match_remark(const struct shmt_csv_plan *model, const struct shmt_csv_plan *plan);
