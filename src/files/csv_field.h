/* The fields of one line of a table as text, by RFC 4180: values between delimiters, some of them in quotes.
 *
 *     a value,"a ""quoted"" value, with a delimiter",3.5
 *
 * Blanks around a value are no part of it, unless they stand inside quotes. Called by the parser of lines (csv_line.c) for what
 * is not simply a number, and where a plan is made (csv_guess.c, csv_match.c). Pure; never looks behind the line break with
 * which the line must end. */
#pragma once

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>

struct shmt_csv_field {
    const char *text; /* (n) without the quotes around it */
    uint64_t n;
    bool doubled;    /* quotes stand doubled in `text` */
    const char *end; /* the delimiter or the end of the line behind it */
};

/* Where fields end: at the delimiter, and where the line does. */
static inline bool shmt_csv_at_end(const char *p) { return *p == '\n' || (*p == '\r' && p[1] == '\n'); }

enum shmt_csv_trouble { SHMT_CSV_FINE, SHMT_CSV_UNCLOSED, SHMT_CSV_BEHIND_QUOTE };

/* The field that begins at `p`. Not fine: out->text is the place that is wrong. */
enum shmt_csv_trouble shmt_csv_field_take(const char *p, char delimiter, struct shmt_csv_field *out);

/* Whether nothing stands there: an empty field, or, in any case, what R (NA), pandas (NaN, <NA>, None and others), spreadsheets
 * (#N/A) and databases (NULL, \N) write; or ?. */
bool shmt_csv_is_missing(const struct shmt_csv_field *field);

/* The same where words are expected, of which "none" may be one: an empty field, or ?. */
static inline bool shmt_csv_is_missing_word(const struct shmt_csv_field *field) {
    return field->n == 0 || (field->n == 1 && field->text[0] == '?');
}

/* Whether the whole field is a number; infinite when it is beyond the range of float. */
bool shmt_csv_is_number(const struct shmt_csv_field *field, locale_t c_locale, float *out);

/* A field that is a number, in double precision. */
double shmt_csv_number(const struct shmt_csv_field *field, locale_t c_locale);

/* The value's bytes, at most `room` of them, with doubled quotes as one. Returns how many there are in all. */
uint64_t shmt_csv_field_copy(const struct shmt_csv_field *field, char *out, uint64_t room);

/* As a column's name, to be freed; what is no UTF-8 is taken for Latin-1. NULL: no memory. */
char *shmt_csv_field_name(const struct shmt_csv_field *field);

/* Of a value, with a seed; the same however it was quoted. */
uint64_t shmt_csv_field_hash(const struct shmt_csv_field *field, uint64_t seed);

/* As strcmp: the value against a word. */
int shmt_csv_field_compare(const struct shmt_csv_field *field, const char *word);

/* Behind the byte order mark with which Excel begins a file in UTF-8. */
static inline const char *shmt_csv_skip_mark(const char *line) {
    const unsigned char *p = (const unsigned char *)line;
    return p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf ? line + 3 : line;
}
