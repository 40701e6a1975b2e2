/* What somebody says about a table as text; whatever is not said is found out from its beginning. */
#pragma once

#include <stdbool.h>

/* Each text may be NULL or "". */
struct shmt_csv_wish {
    const char *label;       /* a column's name or number, from 1 on; "none": there is none, and nobody needs one */
    const char *delimiter;   /* one character, or "tab" */
    const char *header;      /* "yes", "no", "auto" */
    const char *categorical; /* columns' names or numbers, with commas between them */
    const char *ignore;      /* likewise, columns that are left out */
    const char *plan;        /* of the table that the model was trained on (csv_plan.h): this one is read alike */
    const char *before; /* of the table that the parameters come from with which a run begins: numbers count as in that one */
    bool as_they_are;   /* numbers are not counted from others than 0: for a model without a bias */
    bool unmarked;      /* for a model that knows no marks of missing numbers: they are 0. `plan` says it, where it is */
};

/* Letters, digits, blanks, quotes and what numbers are made of are no delimiters. */
static inline bool shmt_csv_may_delimit(char c) {
    return c == '\t' || c == ',' || c == ';' || c == '|' || c == ':' || c == '^' || c == '~' || c == '!' || c == '&';
}
