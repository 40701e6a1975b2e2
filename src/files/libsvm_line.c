/* One line of LIBSVM text to one row: see libsvm_line.h. */
#include "files/libsvm_line.h"

#include "files/number_in_line.h"
#include "files/show.h"
#include "base/error.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_THAT_FIT 19 /* of any number of so many digits in 64 bits */

static inline const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

static inline bool at_end(const char *p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

static inline bool at_word_end(const char *p) { return *p == ' ' || *p == '\t' || at_end(p); }

/* Reports that the word at `word` is not what `expected` says. */
static int __attribute__((cold, format(printf, 4, 5)))
fault(struct shmt_line_fault *out, const char *line, const char *word, const char *expected, ...) {
    va_list args;
    va_start(args, expected);
    int n = vsnprintf(out->text, sizeof out->text, expected, args);
    va_end(args);
    const char *end = word;
    while (!at_word_end(end)) end++;
    char found[SHMT_WORD_SHOWN];
    shmt_show_word(word, (uint64_t)(end - word), found);
    if (end == word) {
        snprintf(out->text + n, sizeof out->text - (size_t)n, ", found nothing");
    } else {
        snprintf(out->text + n, sizeof out->text - (size_t)n, ", found \"%s\"", found);
    }
    out->column = (uint64_t)(word - line) + 1;
    return SHMTRAIN_E_DATA;
}

/* The label at p and, where there is one, the query id behind it. *p_inout moves to the first feature. */
static int parse_label(const char *line, const char **p_inout, locale_t c_locale, float *out, struct shmt_line_fault *f) {
    const char *p = *p_inout, *end = shmt_number_read(p, c_locale, out);
    if (!end || !at_word_end(end)) return fault(f, line, p, "expected a label (a number)");
    if (!isfinite(*out)) return fault(f, line, p, "expected a label between -3.4e38 and 3.4e38");
    p = skip_blanks(end);
    if (strncmp(p, "qid:", 4) == 0) {
        const char *digits = p + 4;
        for (end = digits; shmt_is_digit(*end); end++) {}
        if (end == digits || !at_word_end(end)) return fault(f, line, digits, "expected a whole number after \"qid:\"");
        p = skip_blanks(end);
    }
    *p_inout = p;
    return 0;
}

/* The digits of an id at p. Returns what is behind them; NULL: they take more than 64 bits. One by one: ids ascend within a
 * line, so that the number of their digits is nearly always foreseen. */
static inline const char *parse_id(const char *p, uint64_t *out) {
    const char *const start = p;
    uint64_t id = 0;
    for (; shmt_is_digit(*p); p++) {
        const uint64_t digit = (uint64_t)(*p - '0');
        if (p - start >= DIGITS_THAT_FIT && id > (UINT64_MAX - digit) / 10) return NULL;
        id = 10 * id + digit;
    }
    *out = id;
    return p;
}

/* What is wrong with the word at p, which has no id. */
static int __attribute__((cold)) refuse_id(const char *line, const char *p, struct shmt_line_fault *f) {
    const char *end = p;
    while (shmt_is_digit(*end)) end++;
    if (end == p || *end != ':') return fault(f, line, p, "expected \"index:value\"");
    return fault(f, line, p, "expected an index of at most 18446744073709551615");
}

/* One "index:value". *p_inout moves behind it. */
static inline int parse_feature(const char *line, const char **p_inout, locale_t c_locale, uint64_t *id_out, float *value_out,
                                struct shmt_line_fault *f) {
    const char *const start = *p_inout, *p = parse_id(start, id_out);
    if (!p || p == start || *p != ':') return refuse_id(line, start, f);
    const char *const value = p + 1;
    if (*value == '1' && at_word_end(value + 1)) { /* most values of most sparse files */
        *value_out = 1;
        p = value + 1;
    } else {
        p = shmt_number_read_in_line(value, c_locale, value_out);
        if (!p || !at_word_end(p))
            return fault(f, line, value, "expected a number after \"%llu:\"", (unsigned long long)*id_out);
        if (!isfinite(*value_out)) return fault(f, line, value, "expected a value between -3.4e38 and 3.4e38");
    }
    *p_inout = p;
    return 0;
}

int shmt_libsvm_parse(const char *line, locale_t c_locale, struct shmt_row *row_out, struct shmt_line_fault *fault_out) {
    const char *p = skip_blanks(line);
    row_out->n = 0;
    row_out->min_id = UINT64_MAX;
    row_out->max_id = 0;
    row_out->blank = at_end(p);
    if (row_out->blank) return 0;
    int status = parse_label(line, &p, c_locale, &row_out->label, fault_out);
    uint64_t *const id_out = row_out->id;
    float *const value_out = row_out->value;
    uint64_t n = 0, last = 0;
    bool first = true;
    while (status == 0 && !at_end(p)) {
        const char *const start = p;
        uint64_t id = 0;
        float value = 0;
        status = parse_feature(line, &p, c_locale, &id, &value, fault_out);
        if (status != 0) break;
        if (first)
            row_out->min_id = id;
        else if (id <= last)
            return fault(fault_out, line, start, "expected an index above %llu (indices ascend within a line)",
                         (unsigned long long)last);
        first = false;
        last = id;
        id_out[n] = id;
        value_out[n] = value;
        n += value != 0;
        p = skip_blanks(p);
    }
    row_out->n = n;
    row_out->max_id = last;
    return status;
}
