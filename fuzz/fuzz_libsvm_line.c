/* data/libsvm_line: one line of LIBSVM text, in memory of exactly the sizes that the reader promises to keep to, against a reader
 * that takes its time. */
#include <math.h>
#include <string.h>

#include "files/libsvm_line.h"
#include "fuzz.h"

/* ---- the same by the plainest means ---- */

static bool ends(const char *p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }
static bool ends_word(const char *p) { return *p == ' ' || *p == '\t' || ends(p); }
static const char *skip(const char *p) { return p + strspn(p, " \t"); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A finite number that is a word; NULL: it is none. */
static const char *take_number(const char *p, float *out) {
    const size_t n = fuzz_number_length(p);
    if (n == 0 || !ends_word(p + n)) return NULL;
    *out = fuzz_float(p, n);
    return isfinite(*out) ? p + n : NULL;
}

static const char *take_id(const char *p, uint64_t *out) {
    const char *start = p;
    unsigned __int128 id = 0;
    for (; is_digit(*p); p++)
        if (id <= UINT64_MAX) id = 10 * id + (unsigned)(*p - '0');
    *out = (uint64_t)id;
    return p > start && *p == ':' && id <= UINT64_MAX ? p + 1 : NULL;
}

static const char *take_label(const char *p, float *out) {
    p = take_number(p, out);
    if (!p) return NULL;
    p = skip(p);
    if (strncmp(p, "qid:", 4) != 0) return p;
    const char *digits = p + 4;
    for (p = digits; is_digit(*p);) p++;
    return p > digits && ends_word(p) ? skip(p) : NULL;
}

/* False: the line is none. Rows go where shmt_libsvm_parse puts them. */
static bool parse_slowly(const char *line, struct shmt_row *row) {
    const char *p = skip(line);
    uint64_t id, last = 0;
    float value;
    bool any = false;
    row->n = 0;
    row->min_id = UINT64_MAX;
    row->max_id = 0;
    row->blank = ends(p);
    if (row->blank) return true;
    if (!(p = take_label(p, &row->label))) return false;
    for (; !ends(p); p = skip(p)) {
        if (!(p = take_id(p, &id)) || (any && id <= last) || !(p = take_number(p, &value))) return false;
        if (!any) row->min_id = id;
        any = true;
        row->max_id = last = id;
        if (value == 0) continue;
        row->id[row->n] = id;
        row->value[row->n++] = value;
    }
    return true;
}

/* ---- both ---- */

static struct shmt_row make_row(uint32_t first, size_t line_bytes) {
    const size_t room = SHMT_ROW_MAX(line_bytes);
    struct shmt_row row = {0};
    row.id = fuzz_edge(first, room * sizeof *row.id);
    row.value = fuzz_edge(first + 1, room * sizeof *row.value);
    return row;
}

static void check_same(const struct shmt_row *row, const struct shmt_row *expected) {
    FUZZ_CHECK(row->blank == expected->blank);
    if (row->blank) return;
    FUZZ_CHECK(fuzz_same(&row->label, &expected->label, sizeof row->label));
    FUZZ_CHECK(row->n == expected->n);
    FUZZ_CHECK(row->min_id == expected->min_id && row->max_id == expected->max_id);
    FUZZ_CHECK(fuzz_same(row->id, expected->id, row->n * sizeof *row->id));
    FUZZ_CHECK(fuzz_same(row->value, expected->value, row->n * sizeof *row->value));
}

static void check_line(const char *line, size_t bytes) {
    static locale_t c_locale;
    struct shmt_row row = make_row(0, bytes), expected = make_row(2, bytes);
    struct shmt_line_fault fault = {0};
    if (!c_locale) c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const int status = shmt_libsvm_parse(line, c_locale, &row, &fault);
    FUZZ_CHECK((status == 0) == parse_slowly(line, &expected));
    if (status == 0) {
        check_same(&row, &expected);
    } else {
        FUZZ_CHECK(status == SHMTRAIN_E_DATA && fault.column >= 1 && fault.column <= bytes);
        fuzz_check_sentence(fault.text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    struct fuzz_input in = {bytes, n};
    size_t line_bytes;
    char *line;
    while ((line = fuzz_line(&in, &line_bytes))) {
        check_line(line, line_bytes);
    }
    return 0;
}
