/* The beginning of a table as text: its first line, its delimiter, and what its columns look like. Only for csv_guess.c,
 * csv_match.c and csv.c. */
#pragma once

#include "files/csv_field.h"
#include "files/csv_plan.h"
#include "files/csv_wish.h"
#include "base/error.h"

/* Of the fields of a column below the first line. */
struct shmt_csv_looks {
    uint32_t n_numbers, n_words; /* what is missing is neither */
    uint32_t n_missing, n_here;  /* of the first rows: what is missing, and numbers */
    double one, sum, squares;    /* one of these numbers, and sums of the distances from it, which lose nothing far from 0 */
    uint32_t n_commas;           /* of the words: numbers with commas */
    bool again;                  /* the first line's field is there again */
    bool twice;                  /* one of the first words is there again; or nobody could look */
    bool is_said;                /* by an option: its values are categories */
    bool is_left_out;            /* though nobody said so */
    uint32_t n_kept;
    uint32_t *kept; /* (n_kept) hashes of the first words */
};

#define SHMT_CSV_REMARK 240

struct shmt_csv_sample {
    const char *name; /* of the file, for sentences */
    const struct shmt_csv_wish *wish;
    const char *first, *rows, *end; /* the first line that is one, the lines behind it, and where whole lines end */
    const char *start;              /* of the file: line 1 */
    char delimiter;
    locale_t c_locale;
    uint32_t n_rows; /* behind the first line */
    uint32_t n_fields;
    struct shmt_csv_field *field; /* (n_fields) of the first line */
    struct shmt_csv_looks *looks; /* (n_fields) */
};

/* Looks at the n bytes with which a file begins; `all`: there are no more, and it ends with a line break. `delimiter`: where
 * neither the wish nor the text says it, 0: none. 1: too few lines to judge by. The sample points into `text`. Errors:
 * _USAGE (a wish), _DATA, _MEMORY. Closed in any case. */
int shmt_csv_sample_open(struct shmt_csv_sample *sample, const struct shmt_csv_wish *wish, const char *name, char delimiter,
                         const char *text, uint64_t n, bool all, struct shmt_error *e);
void shmt_csv_sample_close(struct shmt_csv_sample *sample);

/* Looks at the first line as at those below it: where it is no header. */
void shmt_csv_sample_add_first(const struct shmt_csv_sample *sample);

/* A header's name of a column, to be freed; what is no UTF-8 is taken for Latin-1. NULL: no memory. */
char *shmt_csv_sample_header(const struct shmt_csv_sample *sample, uint32_t column);

/* An option (--label) names a column, by n bytes of text, that is not there: _USAGE. */
int shmt_csv_refuse_column(const struct shmt_csv_sample *s, const struct shmt_csv_plan *plan, const char *option,
                           const char *text, uint64_t n, struct shmt_error *e);

/* A plan for a table of which nothing is known. *rows_out: the line of the first example. */
int shmt_csv_guess(const struct shmt_csv_sample *sample, struct shmt_csv_plan *out, const char **rows_out,
                   struct shmt_error *e);

/* What somebody should know of a table that was read so: that a category is none, for no word of many is there twice. "":
 * nothing. */
void shmt_csv_guess_remark(const struct shmt_csv_sample *sample, const struct shmt_csv_plan *plan, char out[SHMT_CSV_REMARK]);

/* A plan for a table that is to be read as one of `model` was; `labelled`: its labels are needed. */
int shmt_csv_match(const struct shmt_csv_sample *sample, const struct shmt_csv_plan *model, bool labelled,
                   struct shmt_csv_plan *out, const char **rows_out, struct shmt_error *e);
