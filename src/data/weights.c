/* Weights of examples from a file: see weights.h. */
#include "data/weights.h"

#include "base/io.h"
#include "files/file.h"
#include "files/lines.h"
#include "files/number.h"
#include "files/show.h"

#include <locale.h>
#include <math.h>

struct reader {
    const struct shmt_file *file;
    struct shmt_lines lines;
    locale_t c_locale;
};

static const char *skip_blanks(const char *p) {
    while (*p == ' ' || *p == '\t') p++;
    return p;
}

static bool at_end(const char *p) { return *p == '\n' || *p == '#' || (*p == '\r' && p[1] == '\n'); }

static int refuse(const struct reader *r, uint64_t line_at, const char *line, const char *word, const char *expected,
                  struct shmt_error *e) {
    char found[SHMT_WORD_SHOWN];
    const char *end = word;
    while (!at_end(end) && *end != ' ' && *end != '\t') end++;
    shmt_show_word(word, (uint64_t)(end - word), found);
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu:%llu: expected %s, found \"%s\"", r->file->name,
                     (unsigned long long)shmt_lines_number(r->file->fd, line_at), (unsigned long long)(word - line) + 1,
                     expected, found);
}

/* 1: the weight of a line. 0: the line has none. */
static int parse(const struct reader *r, uint64_t line_at, const char *line, float *out, struct shmt_error *e) {
    const char *word = skip_blanks(line);
    if (at_end(word)) return 0;
    const char *end = shmt_number_read(word, r->c_locale, out);
    if (!end || !(*end == ' ' || *end == '\t' || at_end(end)) || !(*out >= 0))
        return refuse(r, line_at, line, word, "a weight (a number of at least 0)", e);
    if (!isfinite(*out)) return refuse(r, line_at, line, word, "a weight of at most 3.4e38", e);
    end = skip_blanks(end);
    if (!at_end(end)) return refuse(r, line_at, line, end, "one weight in each line", e);
    *out += 0.0f; /* -0 becomes 0 */
    return 1;
}

static int read_all(struct reader *r, uint64_t n_examples, float *out, struct shmt_error *e) {
    uint64_t n = 0, bytes, at;
    char *line;
    int status;
    while ((status = shmt_lines_next(&r->lines, &line, &bytes, &at, e)) > 0) {
        float weight;
        status = parse(r, at, line, &weight, e);
        if (status < 0) return status;
        if (status > 0 && n < n_examples && out) out[n] = weight;
        n += (uint64_t)status;
    }
    if (status < 0 || n == n_examples) return status;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s has %llu weights, but the data has %llu examples: each example needs one weight",
                     r->file->name, (unsigned long long)n, (unsigned long long)n_examples);
}

int shmt_weights_read(const char *path, uint64_t n_examples, float *out, struct shmt_error *e) {
    struct shmt_file file;
    struct reader r = {.file = &file};
    char magic[8];
    int status = shmt_file_open(path, &file, e);
    if (status != 0) return status;
    const int64_t n = shmt_io_read(file.fd, magic, sizeof magic, 0);
    const char *tool = n > 0 ? shmt_file_unpacker(magic, (uint64_t)n) : NULL;
    if (tool) status = shmt_fail(e, SHMTRAIN_E_DATA, "%s is compressed; unpack it with %s first", file.name, tool);
    r.c_locale = status == 0 ? newlocale(LC_ALL_MASK, "C", (locale_t)0) : NULL;
    if (status == 0 && !r.c_locale) status = shmt_fail_errno(e, "cannot make the C locale");
    if (status == 0) status = shmt_lines_open(&r.lines, file.fd, file.name, file.bytes, 0, 1, e);
    if (status == 0) {
        status = read_all(&r, n_examples, out, e);
        shmt_lines_close(&r.lines);
    }
    if (r.c_locale) freelocale(r.c_locale);
    shmt_file_close(&file);
    return status;
}
