/* The beginning of a table: see csv_sample.h. */
#include "files/csv_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/show.h"

#define FEW_ROWS  20 /* more are asked for, but for */
#define MUCH_TEXT ((uint64_t)16 << 20)

#define FIRST_WORDS 256
#define FIRST_ROWS  256 /* the same ones, if a table is cut into files behind them */

/* ---- the delimiter ---- */

static int wished_delimiter(const struct shmt_csv_wish *wish, char *out, struct shmt_error *e) {
    const char *text = wish->delimiter;
    *out = '\0';
    if (!text || text[0] == '\0' || strcmp(text, "auto") == 0) return 0;
    *out = strcmp(text, "tab") == 0 || strcmp(text, "\\t") == 0 ? '\t' : text[0];
    if ((*out == '\t' || text[1] == '\0') && shmt_csv_may_delimit(*out)) return 0;
    return shmt_refuse(e, "--delimiter %.20s: expected tab, or one of , ; | : ^ ~ ! &", text);
}

/* Of those of which a line has most, outside quotes: a comma stands inside numbers more often than the others. */
static char frequent_delimiter(const char *line) {
    static const char DELIMITERS[] = ";\t|,";
    uint32_t count[sizeof DELIMITERS] = {0}, best = 0;
    bool quoted = false;
    for (; *line != '\n'; line++) {
        const char *found = *line ? strchr(DELIMITERS, *line) : NULL;
        quoted ^= *line == '"';
        if (found && !quoted) count[found - DELIMITERS]++;
    }
    for (uint32_t i = 1; DELIMITERS[i]; i++)
        if (count[i] > count[best]) best = i;
    return count[best] > 0 ? DELIMITERS[best] : ',';
}

/* "1,5" or "12,345". */
static bool has_commas(const struct shmt_csv_field *field) {
    uint64_t digits = 0, commas = 0;
    for (uint64_t i = 0; i < field->n; i++) {
        const char c = field->text[i];
        digits += c >= '0' && c <= '9';
        commas += c == ',';
    }
    const bool is_negative = field->n > 0 && field->text[0] == '-';
    return commas > 0 && digits > commas && digits + commas + is_negative == field->n;
}

/* "0,5;1,25": what is left between the delimiters is numbers, some with commas. */
static bool has_comma_numbers(const char *p, char delimiter, locale_t c_locale) {
    struct shmt_csv_field field;
    bool commas = false, several = false;
    for (;; p = field.end + 1) {
        float value;
        if (shmt_csv_field_take(p, delimiter, &field) != SHMT_CSV_FINE) return false;
        const bool has = has_commas(&field);
        if (!has && !shmt_csv_is_missing(&field) && !shmt_csv_is_number(&field, c_locale, &value)) return false;
        commas |= has;
        if (*field.end != delimiter) return commas && several;
        several = true;
    }
}

static char guess_delimiter(const char *line, locale_t c_locale) {
    static const char OTHERS[] = ";\t|";
    for (uint32_t i = 0; OTHERS[i]; i++)
        if (has_comma_numbers(line, OTHERS[i], c_locale)) return OTHERS[i];
    return frequent_delimiter(line);
}

/* ---- lines ---- */

static const char *line_end(const char *p, const char *end) {
    const char *stop = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
    return stop ? stop + 1 : NULL;
}

static bool is_blank(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return shmt_csv_at_end(p);
}

/* Behind what Excel may write first: a mark of byte order, and a line "sep=;". */
static int find_first(struct shmt_csv_sample *s, const char *text, uint64_t n, bool all, struct shmt_error *e) {
    const char *p = text, *next;
    s->end = text + n;
    while (s->end > text && s->end[-1] != '\n') s->end--;
    if (s->end - p >= 3) p = shmt_csv_skip_mark(p);
    while ((next = line_end(p, s->end)) && is_blank(p)) p = next;
    if (next && next - p > 5 && strncmp(p, "sep=", 4) == 0 && shmt_csv_may_delimit(p[4]) && shmt_csv_at_end(p + 5)) {
        if (!s->delimiter) s->delimiter = p[4];
        p = next;
        while ((next = line_end(p, s->end)) && is_blank(p)) p = next;
    }
    s->first = p;
    s->rows = next;
    if (next) return 0;
    return all ? shmt_fail(e, SHMTRAIN_E_DATA, "%s has no examples, only blank lines", s->name) : 1;
}

/* "Unicode text" of Excel. */
static int refuse_utf16(const char *name, const char *text, uint64_t n, struct shmt_error *e) {
    if (n < 2 || (memcmp(text, "\xff\xfe", 2) != 0 && memcmp(text, "\xfe\xff", 2) != 0)) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s is UTF-16: convert the file first: iconv -f utf-16 -t utf-8", name);
}

/* As old Macs wrote them, and spreadsheets still offer to: the whole file is one line. */
static int refuse_returns(const struct shmt_csv_sample *s, struct shmt_error *e) {
    const char *p = s->first;
    while (*p != '\n' && *p != '\r') p++;
    if (shmt_csv_at_end(p)) return 0;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has lines that end with CR alone: convert the file first: tr '\\r' '\\n'",
                     s->name);
}

static int refuse_first(const struct shmt_csv_sample *s, enum shmt_csv_trouble trouble, const char *at, struct shmt_error *e) {
    uint32_t line = 1;
    for (const char *p = s->start; p < s->first; p++) line += *p == '\n';
    return shmt_fail(
        e, SHMTRAIN_E_DATA, "%s:%u:%llu: %s", s->name, line, (unsigned long long)(at - s->first) + 1,
        trouble == SHMT_CSV_UNCLOSED
            ? "this quote is not closed on its line: write names without line breaks, as a table is read line by line"
            : "expected the end of the value after its closing quote");
}

static int split_first(struct shmt_csv_sample *s, struct shmt_error *e) {
    const char *p = s->first;
    uint32_t room = 0;
    for (;; p = s->field[s->n_fields++].end + 1) {
        if (s->n_fields > 0 && p[-1] != s->delimiter) return 0;
        if (s->n_fields == SHMT_CSV_COLUMNS)
            return shmt_fail(e, SHMTRAIN_E_DATA, "%s has more than %u columns", s->name, SHMT_CSV_COLUMNS);
        if (s->n_fields == room) {
            room = room > 0 ? 2 * room : 64;
            struct shmt_csv_field *larger = realloc(s->field, room * sizeof *larger);
            if (!larger) return shmt_no_memory(e, "for the columns of %s", s->name);
            s->field = larger;
        }
        const enum shmt_csv_trouble trouble = shmt_csv_field_take(p, s->delimiter, &s->field[s->n_fields]);
        if (trouble != SHMT_CSV_FINE) return refuse_first(s, trouble, s->field[s->n_fields].text, e);
    }
}

/* ---- looks ---- */

static bool same_text(const struct shmt_csv_field *a, const struct shmt_csv_field *b) {
    return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
}

/* Among the first words only, so that looking is quick: whether one is there twice. */
static void look_for_twice(struct shmt_csv_looks *looks, const struct shmt_csv_field *word) {
    const uint32_t hash = (uint32_t)shmt_csv_field_hash(word, 0), n = looks->n_kept;
    if (looks->twice || n == FIRST_WORDS) return;
    for (uint32_t i = 0; i < n; i++) looks->twice |= looks->kept[i] == hash;
    if ((n & (n - 1)) == 0) {
        uint32_t *larger = realloc(looks->kept, (n > 0 ? 2 * (size_t)n : 1) * sizeof *larger);
        looks->twice |= !larger;
        if (!larger) return;
        looks->kept = larger;
    }
    looks->kept[looks->n_kept++] = hash;
}

static void add_number(struct shmt_csv_looks *looks, double value) {
    if (looks->n_here++ == 0) looks->one = value;
    looks->sum += value - looks->one;
    looks->squares += (value - looks->one) * (value - looks->one);
}

/* `is_first`: of the rows by which it is decided what numbers are counted from. */
static void look_at(const struct shmt_csv_sample *s, uint32_t column, const struct shmt_csv_field *field, bool is_first) {
    struct shmt_csv_looks *looks = &s->looks[column];
    float value;
    if (shmt_csv_is_missing(field)) {
        looks->n_missing += is_first;
        return;
    }
    looks->again |= same_text(field, &s->field[column]);
    if (shmt_csv_is_number(field, s->c_locale, &value)) {
        looks->n_numbers++;
        if (is_first && isfinite(value)) add_number(looks, shmt_csv_number(field, s->c_locale));
    } else {
        looks->n_words++;
        look_for_twice(looks, field);
        looks->n_commas += has_commas(field);
    }
}

/* A line that is not as it should be is for the parser to refuse. */
static void look_at_row(struct shmt_csv_sample *s, const char *p) {
    for (uint32_t i = 0; i < s->n_fields; i++) {
        struct shmt_csv_field field;
        if (shmt_csv_field_take(p, s->delimiter, &field) != SHMT_CSV_FINE) return;
        look_at(s, i, &field, s->n_rows < FIRST_ROWS);
        if (*field.end != s->delimiter) return;
        p = field.end + 1;
    }
}

static int look_at_rows(struct shmt_csv_sample *s, struct shmt_error *e) {
    s->looks = calloc((size_t)s->n_fields + 1, sizeof *s->looks);
    if (!s->looks) return shmt_no_memory(e, "for the columns of %s", s->name);
    const char *next;
    for (const char *p = s->rows; (next = line_end(p, s->end)); p = next)
        if (!is_blank(p)) {
            look_at_row(s, p);
            s->n_rows++;
        }
    return 0;
}

void shmt_csv_sample_add_first(const struct shmt_csv_sample *sample) {
    for (uint32_t i = 0; i < sample->n_fields; i++) look_at(sample, i, &sample->field[i], true);
}

int shmt_csv_sample_open(struct shmt_csv_sample *sample, const struct shmt_csv_wish *wish, const char *name, char delimiter,
                         const char *text, uint64_t n, bool all, struct shmt_error *e) {
    *sample = (struct shmt_csv_sample){.name = name, .wish = wish, .start = text};
    sample->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!sample->c_locale) return shmt_fail_errno(e, "cannot make the C locale");
    int status = refuse_utf16(name, text, n, e);
    if (status == 0) status = wished_delimiter(wish, &sample->delimiter, e);
    if (status == 0) status = find_first(sample, text, n, all, e);
    if (status != 0) return status;
    if (!sample->delimiter) sample->delimiter = delimiter;
    if (!sample->delimiter) sample->delimiter = guess_delimiter(sample->first, sample->c_locale);
    if (all && !line_end(sample->rows, sample->end)) status = refuse_returns(sample, e);
    if (status == 0) status = split_first(sample, e);
    if (status == 0) status = look_at_rows(sample, e);
    if (status != 0 || all) return status;
    return sample->n_rows == 0 || (sample->n_rows < FEW_ROWS && n < MUCH_TEXT);
}

void shmt_csv_sample_close(struct shmt_csv_sample *sample) {
    if (sample->c_locale) freelocale(sample->c_locale);
    for (uint32_t i = 0; sample->looks && i < sample->n_fields; i++) free(sample->looks[i].kept);
    free(sample->field);
    free(sample->looks);
}

/* ---- names ---- */

char *shmt_csv_sample_header(const struct shmt_csv_sample *sample, uint32_t column) {
    return shmt_csv_field_name(&sample->field[column]);
}

uint32_t shmt_csv_plan_find(const struct shmt_csv_plan *plan, const char *text, uint64_t n) {
    uint64_t number = 0;
    for (uint32_t i = 0; i < plan->n_columns; i++)
        if (plan->name[i] && strlen(plan->name[i]) == n && memcmp(plan->name[i], text, n) == 0) return i;
    for (uint64_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9' || number > SHMT_CSV_COLUMNS) return SHMT_CSV_NONE;
        number = 10 * number + (uint64_t)(text[i] - '0');
    }
    return number >= 1 && number <= plan->n_columns ? (uint32_t)number - 1 : SHMT_CSV_NONE;
}

int shmt_csv_refuse_column(const struct shmt_csv_sample *s, const struct shmt_csv_plan *plan, const char *option,
                           const char *text, uint64_t n, struct shmt_error *e) {
    char shown[SHMT_WORD_SHOWN], first[SHMT_CSV_COLUMN_SHOWN], last[SHMT_CSV_COLUMN_SHOWN];
    shmt_show_word(text, n, shown);
    shmt_csv_column_show(plan, 0, first);
    shmt_csv_column_show(plan, plan->n_columns - 1, last);
    if (plan->n_columns == 1)
        return shmt_refuse(e, "%s %s: %s has only one column, %s; does --delimiter name the character between its columns?",
                           option, shown, s->name, first);
    return shmt_refuse(e, "%s %s: %s has no such column; it has %u columns, from %s to %s", option, shown, s->name,
                       plan->n_columns, first, last);
}
