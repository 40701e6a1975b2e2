/* LIBLINEAR's model files: see liblinear_read.h. */
#include "files/liblinear_read.h"

#include <errno.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/number.h"
#include "files/show.h"
#include "base/io.h"
#include "base/plain.h"

#define MOST_LINE (1 << 16) /* bytes: the weights of 1,024 classes take less */

/* ---- lines ---- */

struct lines {
    int fd;
    const char *name;
    uint64_t at, number; /* of buffer[0] in the file; of the line that was read last, from 1 */
    uint64_t next, filled;
    char buffer[2 * MOST_LINE + 1];
};

static int refuse(const struct lines *in, const char *word, const char *expected, struct shmt_error *e) {
    char found[SHMT_WORD_SHOWN];
    const uint64_t n = strcspn(word, " \t\r\n");
    shmt_show_word(word, n, found);
    return shmt_fail(e, SHMTRAIN_E_DATA, n > 0 ? "%s:%llu: expected %s, found \"%s\"" : "%s:%llu: expected %s, found nothing%s",
                     in->name, (unsigned long long)in->number, expected, n > 0 ? found : "");
}

static int refill(struct lines *in, struct shmt_error *e) {
    memmove(in->buffer, in->buffer + in->next, in->filled - in->next);
    in->at += in->next;
    in->filled -= in->next;
    in->next = 0;
    const int64_t n = shmt_io_read(in->fd, in->buffer + in->filled, 2 * MOST_LINE - in->filled, in->at + in->filled);
    if (n < 0) return shmt_fail_errno(e, "cannot read the model %s", in->name);
    in->filled += (uint64_t)n;
    return n > 0;
}

/* 1: the next line, without its end and 0-terminated; 0: there are no more. */
static int next_line(struct lines *in, char **out, struct shmt_error *e) {
    for (;;) {
        char *line = in->buffer + in->next, *end = memchr(line, '\n', in->filled - in->next);
        if (!end && in->filled - in->next < MOST_LINE) {
            const int more = refill(in, e);
            if (more < 0) return more;
            if (more) continue;
            line = in->buffer + in->next;
            end = line + (in->filled - in->next); /* the last line has no end: there is room for one */
            if (end == line) return 0;
        }
        in->number++;
        in->buffer[in->filled] = '\0'; /* there is room for it; what is refused may have no end */
        if (!end || end - line >= MOST_LINE) return refuse(in, line, "a shorter line of a model", e);
        in->next = (uint64_t)(end - in->buffer) < in->filled ? (uint64_t)(end - in->buffer) + 1 : in->filled;
        if (memchr(line, '\0', (uint64_t)(end - line))) return refuse(in, "\\0", "text", e);
        *end = '\0';
        *out = line;
        return 1;
    }
}

/* ---- the header ---- */

static const struct solver {
    const char *name, *binary, *several; /* ours for two labels, and for more */
} SOLVERS[] = {
    {"L2R_LR", "logistic", "one-vs-rest"},    {"L2R_LR_DUAL", "logistic", "one-vs-rest"},
    {"L1R_LR", "logistic", "one-vs-rest"},    {"L2R_L2LOSS_SVC_DUAL", "svm", "svm-classes"},
    {"L2R_L2LOSS_SVC", "svm", "svm-classes"}, {"L2R_L1LOSS_SVC_DUAL", "svm", "svm-classes"},
    {"L1R_L2LOSS_SVC", "svm", "svm-classes"}, {"MCSVM_CS", "svm", "svm-classes"},
    {"L2R_L2LOSS_SVR", "linear", NULL},       {"L2R_L2LOSS_SVR_DUAL", "linear", NULL},
    {"L2R_L1LOSS_SVR_DUAL", "linear", NULL},
};
#define N_SOLVERS (sizeof SOLVERS / sizeof *SOLVERS)

/* What was read so far. */
struct header {
    struct lines *in;
    struct shmt_liblinear *out;
    const struct solver *solver;
    uint64_t n_classes, n_features; /* 0: not there yet */
    bool has_bias;                  /* the line, which may say that there is none */
};

static char *skip_blanks(char *at) { return at + strspn(at, " \t\r"); }

/* A whole number and nothing behind it. */
static int read_count(const struct header *h, char *at, uint64_t most, uint64_t *out, struct shmt_error *e) {
    char *end = at;
    errno = 0;
    *out = strtoull(at, &end, 10);
    if (!shmt_is_digit(*at) || errno != 0 || *skip_blanks(end) != '\0' || *out < 1 || *out > most)
        return refuse(h->in, at, "a whole number of at least 1 and within the format's limit", e);
    return 0;
}

static int read_solver(struct header *h, const char *at, struct shmt_error *e) {
    const size_t n = strcspn(at, " \t\r");
    for (size_t i = 0; i < N_SOLVERS; i++)
        if (strlen(SOLVERS[i].name) == n && strncmp(SOLVERS[i].name, at, n) == 0) h->solver = &SOLVERS[i];
    if (h->solver) return 0;
    return refuse(h->in, at, "a solver_type of a logistic regression, SVC or SVR of LIBLINEAR", e);
}

static int read_labels(struct header *h, char *at, struct shmt_error *e) {
    struct shmt_liblinear *out = h->out;
    for (out->n_labels = 0; *at != '\0'; at = skip_blanks(at)) {
        char *end = at;
        errno = 0;
        const long label = strtol(at, &end, 10);
        if (end == at || errno != 0 || label < INT_MIN || label > INT_MAX || (*end != '\0' && !strchr(" \t\r", *end)))
            return refuse(h->in, at, "labels that are whole numbers", e);
        if (out->n_labels == SHMTRAIN_MAX_CLASSES) return refuse(h->in, at, "at most 1024 labels", e);
        out->label[out->n_labels++] = (int32_t)label;
        at = end;
    }
    return 0;
}

static int read_bias(struct header *h, char *at, struct shmt_error *e) {
    char *end = at;
    h->out->bias = strtod(at, &end);
    if (end == at || *skip_blanks(end) != '\0' || !isfinite(h->out->bias)) return refuse(h->in, at, "a number", e);
    h->out->has_bias = h->out->bias >= 0;
    h->has_bias = true;
    return 0;
}

static int read_line(struct header *h, char *line, struct shmt_error *e) {
    const size_t n = strcspn(line, " \t\r");
    char *value = skip_blanks(line + n);
    if (n == 11 && strncmp(line, "solver_type", n) == 0) return read_solver(h, value, e);
    if (n == 8 && strncmp(line, "nr_class", n) == 0) return read_count(h, value, SHMTRAIN_MAX_CLASSES, &h->n_classes, e);
    if (n == 10 && strncmp(line, "nr_feature", n) == 0) return read_count(h, value, INT_MAX - 1, &h->n_features, e);
    if (n == 5 && strncmp(line, "label", n) == 0) return read_labels(h, value, e);
    if (n == 4 && strncmp(line, "bias", n) == 0) return read_bias(h, value, e);
    return refuse(h->in, line, "solver_type, nr_class, label, nr_feature, bias or w", e);
}

/* Where each label stands when they ascend. As floats, which labels of data are, they must differ, too. */
static int place_labels(const struct header *h, struct shmt_error *e) {
    struct shmt_liblinear *out = h->out;
    for (uint32_t i = 0; i < out->n_labels; i++) {
        out->place[i] = 0;
        for (uint32_t k = 0; k < out->n_labels; k++) {
            if (k != i && (float)out->label[k] == (float)out->label[i])
                return shmt_fail(e, SHMTRAIN_E_DATA, "%s: label %d occurs twice, or is too close to another label for a float",
                                 h->in->name, (int)out->label[i]);
            out->place[i] = (uint16_t)(out->place[i] + (out->label[k] < out->label[i]));
        }
    }
    return 0;
}

static int check_header(const struct header *h, uint64_t file_bytes, struct shmt_error *e) {
    struct shmt_liblinear *out = h->out;
    const char *missing = !h->solver           ? "solver_type"
                          : h->n_classes == 0  ? "nr_class"
                          : h->n_features == 0 ? "nr_feature"
                                               : NULL;
    if (!missing && !h->has_bias) missing = "bias";
    if (missing)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: \"w\" comes before \"%s\"", h->in->name,
                         (unsigned long long)h->in->number, missing);
    const bool regression = !h->solver->several;
    if (regression) out->n_labels = 0;
    if (!regression && h->n_classes < 2)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: nr_class is 1, but a model needs at least two classes", h->in->name);
    if (!regression && out->n_labels != h->n_classes)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: nr_class is %llu, but there are %u labels", h->in->name,
                         (unsigned long long)h->n_classes, out->n_labels);
    out->model = regression || h->n_classes == 2 ? h->solver->binary : h->solver->several;
    out->n_outputs = strcmp(out->model, "one-vs-rest") == 0 || strcmp(out->model, "svm-classes") == 0 ? out->n_labels : 1;
    out->n_columns = strcmp(h->solver->name, "MCSVM_CS") == 0 ? out->n_labels : out->n_outputs;
    out->n_features = h->n_features;
    if (out->body_off > file_bytes || (out->n_features + out->has_bias) * out->n_columns > (file_bytes - out->body_off) / 2 + 1)
        return shmt_fail(e, SHMTRAIN_E_DATA,
                         "%s:%llu: nr_feature is %llu, but only %llu bytes follow this line: is the file cut short?",
                         h->in->name, (unsigned long long)h->in->number, (unsigned long long)out->n_features,
                         (unsigned long long)(file_bytes - out->body_off));
    return place_labels(h, e);
}

static int read_header(struct header *h, uint64_t file_bytes, struct shmt_error *e) {
    char *line;
    int rc;
    SHMT_PLAIN_NUMBERS;
    while ((rc = next_line(h->in, &line, e)) == 1) {
        if (line[0] == 'w' && *skip_blanks(line + 1) == '\0') {
            h->out->body_off = h->in->at + h->in->next;
            h->out->body_line = h->in->number;
            return check_header(h, file_bytes, e);
        }
        rc = read_line(h, line, e);
        if (rc < 0) return rc;
    }
    if (rc < 0) return rc;
    return shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: the file ends before \"w\": is it cut short?", h->in->name,
                     (unsigned long long)h->in->number);
}

static struct lines *begin_lines(int fd, const char *name, uint64_t at, uint64_t number, struct shmt_error *e) {
    struct lines *in = malloc(sizeof *in);
    if (!in)
        shmt_no_memory(e, "to read the model %s", name);
    else
        in->fd = fd, in->name = name, in->at = at, in->number = number, in->next = in->filled = 0;
    return in;
}

bool shmt_liblinear_begins(const char *bytes, uint64_t n) {
    static const char *const KEYS[] = {"solver_type ", "nr_class ", "nr_feature ", "label ", "bias "};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (n >= strlen(KEYS[i]) && memcmp(bytes, KEYS[i], strlen(KEYS[i])) == 0) return true;
    return false;
}

int shmt_liblinear_open(int fd, uint64_t file_bytes, const char *name, struct shmt_liblinear *out, struct shmt_error *e) {
    struct header h = {.in = begin_lines(fd, name, 0, 0, e), .out = out};
    if (!h.in) return SHMTRAIN_E_MEMORY;
    *out = (struct shmt_liblinear){.name = name};
    const int rc = read_header(&h, file_bytes, e);
    free(h.in);
    return rc;
}

/* ---- the weights ---- */

/* One line: a weight for each output, put where ours has it. */
static int read_weights(const struct shmt_liblinear *l, const struct lines *in, const char *line, double factor,
                        locale_t c_locale, float *out, struct shmt_error *e) {
    const bool turned = l->n_outputs == 1 && l->n_labels == 2 && l->label[0] < l->label[1];
    for (uint32_t k = 0; k < l->n_columns; k++) {
        float weight;
        line += strspn(line, " \t\r");
        const char *end = shmt_number_read(line, c_locale, &weight);
        weight = (float)(weight * factor);
        if (!end || (*end != '\0' && !strchr(" \t\r", *end)) || !isfinite(weight))
            return refuse(in, line, l->n_columns > 1 ? "a weight for each label" : "a weight", e);
        if (l->n_outputs > 1)
            out[l->place[k]] = weight;
        else if (k == 0) /* of two labels, LIBLINEAR predicts by the first one's alone */
            out[0] = turned ? -weight : weight;
        line = end;
    }
    line += strspn(line, " \t\r");
    return *line == '\0' ? 0 : refuse(in, line, "no more weights in this line", e);
}

static int read_body(const struct shmt_liblinear *l, struct lines *in, locale_t c_locale, float *out, struct shmt_error *e) {
    const uint64_t n = l->n_features + l->has_bias;
    char *line = NULL;
    int rc;
    for (uint64_t row = 0; row < n; row++) {
        rc = next_line(in, &line, e);
        if (rc == 0)
            rc = shmt_fail(e, SHMTRAIN_E_DATA, "%s:%llu: the file ends after %llu of %llu lines of weights", in->name,
                           (unsigned long long)in->number, (unsigned long long)row, (unsigned long long)n);
        if (rc > 0) rc = read_weights(l, in, line, row < l->n_features ? 1 : l->bias, c_locale, out + row * l->n_outputs, e);
        if (rc < 0) return rc;
    }
    while ((rc = next_line(in, &line, e)) == 1)
        if (*skip_blanks(line) != '\0') return refuse(in, line, "the end of the file after the last weights", e);
    return rc;
}

int shmt_liblinear_weights(const struct shmt_liblinear *l, int fd, float *out, struct shmt_error *e) {
    struct lines *in = begin_lines(fd, l->name, l->body_off, l->body_line, e);
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int rc = in ? 0 : SHMTRAIN_E_MEMORY;
    if (in && !c_locale) rc = shmt_fail_errno(e, "cannot make the C locale");
    if (rc == 0) rc = read_body(l, in, c_locale, out, e);
    if (c_locale) freelocale(c_locale);
    free(in);
    return rc;
}
