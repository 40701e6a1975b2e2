/* One line of LIBSVM text to one row: see libsvm_line.h. */
#include "data/libsvm_line.h"

#include "data/number.h"
#include "data/show.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static inline const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

static inline bool at_end(const char *p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

static inline bool at_word_end(const char *p) { return *p == ' ' || *p == '\t' || at_end(p); }

/* Reports that the word at `word` is not what `expected` says. */
static int __attribute__((cold, format(printf, 4, 5)))
fault(struct shmt_libsvm_fault *out, const char *line, const char *word, const char *expected, ...) {
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
static int parse_label(const char *line, const char **p_inout, locale_t c_locale, float *out, struct shmt_libsvm_fault *f) {
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

/* One "index:value". *p_inout moves behind it; the id must be at least `low`. */
static inline int parse_feature(const char *line, const char **p_inout, uint64_t low, locale_t c_locale, uint64_t *id_out,
                                float *value_out, struct shmt_libsvm_fault *f) {
    const char *start = *p_inout, *p = start;
    uint64_t id = 0;
    for (; shmt_is_digit(*p); p++) {
        if (id < UINT32_MAX) id = 10 * id + (uint64_t)(*p - '0');
    }
    if (*p != ':' || p == start) return fault(f, line, start, "expected \"index:value\"");
    if (id >= UINT32_MAX) return fault(f, line, start, "expected an index of at most 4294967294");
    if (id < low) {
        return fault(f, line, start, "expected an index above %llu (indices ascend within a line)",
                     (unsigned long long)low - 1);
    }
    const char *value = p + 1;
    if (*value == '1' && at_word_end(value + 1)) { /* most values of most sparse files */
        *value_out = 1;
        p = value + 1;
    } else {
        p = shmt_number_read(value, c_locale, value_out);
        if (!p || !at_word_end(p)) return fault(f, line, value, "expected a number after \"%u:\"", (unsigned)id);
        if (!isfinite(*value_out)) return fault(f, line, value, "expected a value between -3.4e38 and 3.4e38");
    }
    *id_out = id;
    *p_inout = p;
    return 0;
}

int shmt_libsvm_parse(const char *line, const struct shmt_columns *columns, locale_t c_locale, struct shmt_libsvm_row *row_out,
                      struct shmt_libsvm_fault *fault_out) {
    const char *p = skip_blanks(line);
    row_out->n_nonzeros = 0;
    row_out->min_id = UINT64_MAX;
    row_out->max_id = 0;
    row_out->blank = at_end(p);
    if (row_out->blank) return 0;
    int status = parse_label(line, &p, c_locale, &row_out->label, fault_out);
    uint64_t n = 0, low = 0;
    while (status == 0 && !at_end(p)) {
        uint64_t id = 0;
        float value = 0;
        status = parse_feature(line, &p, low, c_locale, &id, &value, fault_out);
        if (status != 0) break;
        if (low == 0) row_out->min_id = id;
        row_out->max_id = id;
        low = id + 1;
        /* An id below the base wraps around to a large column, so one comparison leaves out both kinds. */
        const uint32_t column = (uint32_t)id - columns->base;
        if (value != 0 && column < columns->n_features) {
            row_out->id[n] = column;
            row_out->value[n++] = value;
        }
        p = skip_blanks(p);
    }
    row_out->n_nonzeros = n;
    return status;
}
