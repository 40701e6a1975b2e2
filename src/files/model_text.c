/* Models as text: see model_text.h. */
#include "files/model_text.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/csv_plan.h"
#include "base/pipe.h"
#include "base/plain.h"
#include "base/replace.h"

/* ---- what both formats do ---- */

/* As short as it can be written without becoming another number; whole ones as labels are written, 1000000 and not 1e+06. */
static const char *number_text(float x, char out[32]) {
    if (x == truncf(x) && fabsf(x) < 1e9f) {
        snprintf(out, 32, "%ld", (long)x);
        return out;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(out, 32, "%.*g", digits, (double)x);
        if (strtof(out, NULL) == x) break;
    }
    return out;
}

typedef void shmt_write_text(FILE *f, const struct shmt_linear *model);

static int write_text(const char *path, const struct shmt_linear *model, shmt_write_text *text, struct shmt_error *e) {
    struct shmt_replacement file;
    int rc = shmt_replace_open(&file, path, "the model", e);
    if (rc < 0) return rc;
    const int copy = dup(file.fd); /* the stream closes its own */
    FILE *f = copy < 0 ? NULL : fdopen(copy, "w");
    int written = f ? 0 : -1, why = errno;
    if (f) {
        SHMT_PLAIN_NUMBERS;
        struct shmt_quiet_pipe quiet;
        shmt_quiet_pipe_begin(&quiet);
        errno = 0;
        text(f, model);
        if (ferror(f)) written = -1;
        why = errno;
        if (fclose(f) != 0 && written == 0) {
            written = -1;
            why = errno;
        }
        shmt_quiet_pipe_end(&quiet);
    } else if (copy >= 0)
        close(copy);
    errno = why;
    return shmt_replace_close(&file, written, e);
}

/* ---- LIBLINEAR ---- */

static bool is_whole(float x) { return x == floorf(x) && fabsf(x) < 2147483648.0f; }

static uint64_t id_of(const struct shmt_linear *m, uint64_t j) { return m->id ? m->id[j] : m->first_feature + j; }

int shmt_liblinear_check(const struct shmt_linear *m, struct shmt_error *e) {
    char text[32];
    const uint64_t last = m->n_features > 0 ? id_of(m, m->n_features - 1) : m->first_feature;
    SHMT_PLAIN_NUMBERS;
    for (uint32_t i = 0; i < m->n_labels; i++)
        if (!is_whole(m->label[i]))
            return shmt_refuse(
                e, "label %s is not a whole number, but LIBLINEAR's models allow only those: use csv or safetensors",
                number_text(m->label[i], text));
    if (m->is_hashed)
        return shmt_refuse(e, "the features are hashed, so their ids cannot be written for LIBLINEAR: use safetensors");
    if (m->n_features > 0 && id_of(m, 0) == 0)
        return shmt_refuse(
            e, "the data has a feature 0, but LIBLINEAR counts from 1: use csv or safetensors, or renumber the features");
    if (last >= INT_MAX)
        return shmt_refuse(e,
                           "LIBLINEAR's models have a line for every id up to the largest, at most %d, but here that is %llu: "
                           "use csv or safetensors",
                           INT_MAX - 1, (unsigned long long)last);
    return 0;
}

static void add_labels(FILE *f, const struct shmt_linear *m) {
    const bool two = m->n_labels == 2;
    if (m->n_labels == 0) return;
    fprintf(f, "label");
    for (uint32_t i = 0; i < m->n_labels; i++) fprintf(f, " %d", (int)m->label[two ? 1 - i : i]);
    fprintf(f, "\n");
}

/* One feature's line. */
static void add_weights(FILE *f, const struct shmt_linear *m, const float *at, uint64_t by_output) {
    const bool apart = m->is_softmax && m->n_outputs == 2;
    char text[32];
    if (apart)
        fprintf(f, "%.17g ", (double)at[by_output] - (double)at[0]);
    else
        for (uint32_t k = 0; k < m->n_outputs; k++) fprintf(f, "%s ", number_text(at[k * by_output], text));
    fprintf(f, "\n");
}

/* An id that is no feature. */
static void add_zeros(FILE *f, const struct shmt_linear *m) {
    const bool apart = m->is_softmax && m->n_outputs == 2;
    for (uint32_t k = 0; k < (apart ? 1 : m->n_outputs); k++) fputs("0 ", f);
    fputc('\n', f);
}

static void add_liblinear(FILE *f, const struct shmt_linear *m) {
    fprintf(f, "solver_type %s\nnr_class %u\n", m->solver, m->n_labels > 0 ? m->n_labels : 2);
    add_labels(f, m);
    const uint64_t last = m->n_features > 0 ? id_of(m, m->n_features - 1) : 0;
    fprintf(f, "nr_feature %llu\nbias %d\nw\n", (unsigned long long)last, m->bias ? 1 : -1);
    uint64_t id = m->first_feature > 0 ? m->first_feature : 1;
    for (uint64_t j = 0; j < m->n_features && !ferror(f); j++) {
        for (; id < id_of(m, j); id++) add_zeros(f, m);
        add_weights(f, m, m->weight + j * m->by_feature, m->by_output);
        id++;
    }
    if (m->bias) add_weights(f, m, m->bias, 1);
}

int shmt_liblinear_write(const char *path, const struct shmt_linear *model, struct shmt_error *e) {
    const int rc = shmt_liblinear_check(model, e);
    return rc == 0 ? write_text(path, model, add_liblinear, e) : rc;
}

/* ---- CSV ---- */

static void add_row(FILE *f, const struct shmt_linear *m, const char *feature, const float *at, uint64_t by_output) {
    char weight[32], label[32];
    for (uint32_t k = 0; k < m->n_outputs; k++) {
        fprintf(f, "%s,%s", feature, number_text(at[k * by_output], weight));
        if (m->n_outputs > 1) fprintf(f, ",%s", number_text(m->label[k], label));
        fputc('\n', f);
    }
}

#define NAME_BYTES   512 /* instead of longer ones stands the id */
#define QUOTED_BYTES (2 * NAME_BYTES + 2)

/* What is taken off a feature: " - 1700000000". */
static void take_from(double from, char out[32]) {
    out[0] = '\0';
    if (from != 0) snprintf(out, 32, " %c %.0f", from > 0 ? '-' : '+', fabs(from));
}

/* Of a feature: its name or else its id, and what is taken off it; and of a mark what it says of its feature. */
static void take_name(const struct shmt_linear *m, uint64_t id, char out[NAME_BYTES]) {
    uint32_t feature;
    const bool is_mark = shmt_csv_is_mark(id, &feature) && feature >= 1 && feature <= m->n_names && m->mark[feature - 1];
    const uint64_t of = is_mark ? feature : id;
    const char *name = of >= 1 && of <= m->n_names ? m->name[of - 1] : NULL;
    char number[24], behind[32] = "";
    snprintf(number, sizeof number, "%llu", (unsigned long long)of);
    if (is_mark)
        snprintf(behind, sizeof behind, " %s", m->mark[of - 1]);
    else if (of >= 1 && of <= m->n_names)
        take_from(m->from[of - 1], behind);
    const int n = snprintf(out, NAME_BYTES, "%s%s", name ? name : number, behind);
    if (n >= NAME_BYTES) snprintf(out, NAME_BYTES, "%llu", (unsigned long long)id);
}

/* As it is, or in quotes where it has something that CSV is made of. */
static const char *quoted(const char *name, char room[QUOTED_BYTES]) {
    if (!strpbrk(name, ",\"\r\n")) return name;
    char *at = room;
    *at++ = '"';
    for (; *name; name++) {
        if (*name == '"') *at++ = '"';
        *at++ = *name;
    }
    *at++ = '"';
    *at = '\0';
    return room;
}

static void add_csv(FILE *f, const struct shmt_linear *m) {
    char name[NAME_BYTES], room[QUOTED_BYTES];
    fprintf(f, m->n_outputs > 1 ? "feature,weight,class\n" : "feature,weight\n");
    for (uint64_t j = 0; j < m->n_features && !ferror(f); j++) {
        take_name(m, id_of(m, j), name);
        add_row(f, m, quoted(name, room), m->weight + j * m->by_feature, m->by_output);
    }
    if (m->bias) add_row(f, m, "bias", m->bias, 1);
}

int shmt_csv_check(const struct shmt_linear *model, struct shmt_error *e) {
    if (!model->is_hashed) return 0;
    return shmt_refuse(e, "the features are hashed, and a table of hashes has no meaning: use safetensors");
}

int shmt_csv_write(const char *path, const struct shmt_linear *model, struct shmt_error *e) {
    const int rc = shmt_csv_check(model, e);
    return rc == 0 ? write_text(path, model, add_csv, e) : rc;
}
