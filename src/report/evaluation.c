/* What a model is worth on some data: lines for people, and one JSON object. */
#include <shmtrain/report.h>

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/fields.h"
#include "report/words_priv.h"

#define NAME_COLUMNS   11 /* of what a line is about */
#define MOST_OF_MATRIX 10 /* classes: more do not fit 80 columns */
#define MOST_MISTAKES  10 /* kinds of them that are listed instead */

/* ---- lines ---- */

/* A count in 6 columns, exact as long as it fits. */
static const char *count_text(uint64_t n, char out[16]) {
    if (n > 999999) return shmt_short_number((double)n, out);
    snprintf(out, 16, "%" PRIu64, n);
    return out;
}

/* A label in so many columns, 6 to 12: a whole number in full where it fits, so that large ones can be told from one another. */
static const char *label_text(float label, size_t columns, char out[16]) {
    const bool is_whole = label == truncf(label) && fabsf(label) < 1e10f;
    if (is_whole) snprintf(out, 16, "%lld", (long long)label);
    if (is_whole && strlen(out) <= columns) return out;
    for (int digits = 6; digits > 0; digits--) {
        snprintf(out, 16, "%.*g", digits, (double)label);
        if (strlen(out) <= columns) break;
    }
    return out;
}

static void add_matrix(FILE *f, const struct shmtrain_evaluation *e) {
    char text[16];
    fprintf(f, "confusion   rows: true class; columns: predicted class\n%8s", "");
    for (uint32_t c = 0; c < e->n_classes; c++) fprintf(f, " %6s", label_text(e->classes[c], 6, text));
    fprintf(f, "\n");
    for (uint32_t row = 0; row < e->n_classes; row++) {
        fprintf(f, "%8s", label_text(e->classes[row], 8, text));
        for (uint32_t c = 0; c < e->n_classes; c++) fprintf(f, " %6s", count_text(e->confusion[row * e->n_classes + c], text));
        fprintf(f, "\n");
    }
}

/* The most frequent mistake below `limit`, or at it but behind `from`; false: there is none. */
static int next_mistake(const struct shmtrain_evaluation *e, uint64_t limit, uint64_t from, uint64_t *at_out) {
    const uint64_t n = e->n_classes;
    uint64_t best = 0;
    for (uint64_t i = 0; i < n * n; i++) {
        const uint64_t count = e->confusion[i];
        if (i / n == i % n || count <= best || count > limit || (count == limit && i <= from)) continue;
        best = count;
        *at_out = i;
    }
    return best > 0;
}

static void add_mistakes(FILE *f, const struct shmtrain_evaluation *e) {
    uint64_t limit = UINT64_MAX, at = 0;
    char text[3][16];
    fprintf(f, "confusion   %" PRIu32 " classes; the most frequent mistakes:\n", e->n_classes);
    for (int i = 0; i < MOST_MISTAKES && next_mistake(e, limit, at, &at); i++) {
        limit = e->confusion[at];
        fprintf(f, "            %6s taken for %6s: %6s\n", label_text(e->classes[at / e->n_classes], 11, text[0]),
                label_text(e->classes[at % e->n_classes], 11, text[1]), count_text(limit, text[2]));
    }
    if (limit == UINT64_MAX) fprintf(f, "            none\n");
}

/* A share in 6 columns; "-" for what has no value. */
static const char *share_text(double x, char out[16]) {
    snprintf(out, 16, isnan(x) ? "-" : "%.4f", x);
    return out;
}

static void add_class_line(FILE *f, const char *name, double precision, double recall, double f1) {
    char text[3][16];
    fprintf(f, "%8s    %9s %9s %9s", name, share_text(precision, text[0]), share_text(recall, text[1]),
            share_text(f1, text[2]));
}

static void add_classes(FILE *f, const struct shmtrain_evaluation *e) {
    char text[3][16];
    if (e->n_classes < 3 || e->n_classes > MOST_OF_MATRIX) {
        fprintf(f, "precision   %s", share_text(e->precision, text[0]));
        fprintf(f, ", recall %s, F1 %s", share_text(e->recall, text[0]), share_text(e->f1, text[1]));
        if (e->n_classes > 2)
            fprintf(f, ": means over the classes\n");
        else
            fprintf(f, ", of label %s\n", label_text(e->classes[e->n_classes - 1], 11, text[2]));
        return;
    }
    fprintf(f, "classes     %9s %9s %9s %9s\n", "precision", "recall", "F1", "examples");
    for (uint32_t c = 0; c < e->n_classes; c++) {
        const struct shmtrain_class_score *of = &e->class_score[c];
        add_class_line(f, label_text(e->classes[c], 8, text[0]), of->precision, of->recall, of->f1);
        fprintf(f, " %9s\n", count_text(of->examples, text[1]));
    }
    add_class_line(f, "mean", e->precision, e->recall, e->f1);
    fprintf(f, "\n");
}

static void add_calibration(FILE *f, const struct shmtrain_evaluation *e) {
    char text[3][16];
    fprintf(f, "Brier       %.4f\n", e->brier);
    fprintf(f, "calibration error %.4f, of the probabilities of %s:\n", e->calibration_error,
            e->n_classes > 2 ? "predicted classes" : "the larger label");
    fprintf(f, "%8s    %9s %9s %9s\n", "", "predicted", "observed", "examples");
    for (int b = 0; b < SHMTRAIN_CALIBRATION_BINS; b++) {
        const struct shmtrain_calibration_bin *bin = &e->bin[b];
        if (bin->examples == 0) continue;
        fprintf(f, " %.1f-%.1f    %9s %9s %9s\n", b / 10., (b + 1) / 10., share_text(bin->predicted, text[0]),
                share_text(bin->observed, text[1]), count_text(bin->examples, text[2]));
    }
}

static void put_lines(FILE *f, const char *name, const void *evaluation) {
    const struct shmtrain_evaluation *e = evaluation;
    char count[16];
    (void)name;
    fprintf(f, "model       %.40s, %s examples\n", e->model, count_text(e->examples, count));
    if (strlen(e->loss_name) <= NAME_COLUMNS)
        fprintf(f, "%-*s %.5f\n", NAME_COLUMNS, e->loss_name, e->loss);
    else
        fprintf(f, "%-*s %.5f (%.24s)\n", NAME_COLUMNS, "loss", e->loss, e->loss_name);
    if (!isnan(e->accuracy)) fprintf(f, "accuracy    %.2f %%\n", 100 * e->accuracy);
    if (!isnan(e->auc)) fprintf(f, "AUC         %.4f\n", e->auc);
    if (!isnan(e->root_mean_square_error)) fprintf(f, "RMSE        %.5g\n", e->root_mean_square_error);
    if (e->n_classes > 0) add_classes(f, e);
    if (e->bin) add_calibration(f, e);
    if (e->n_classes > MOST_OF_MATRIX)
        add_mistakes(f, e);
    else if (e->n_classes > 0)
        add_matrix(f, e);
}

char *shmtrain_evaluation_text(const struct shmtrain_evaluation *e) { return shmt_text_by(put_lines, NULL, e, 0); }

/* ---- JSON ---- */

/* Classes as short as they were written: the shortest of 6 to 9 digits that is the same float. */
static json_t *label_of(float label) {
    char text[32] = "";
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)label);
        if (strtof(text, NULL) == label) break;
    }
    return label == floorf(label) && fabsf(label) < 1e15f ? json_integer((json_int_t)label) : json_real(strtod(text, NULL));
}

static json_t *classes_of(const void *evaluation) {
    const struct shmtrain_evaluation *e = evaluation;
    json_t *list = json_array();
    for (uint32_t c = 0; c < e->n_classes; c++) json_array_append_new(list, label_of(e->classes[c]));
    return list;
}

static json_t *confusion_of(const void *evaluation) {
    const struct shmtrain_evaluation *e = evaluation;
    json_t *rows = json_array();
    for (uint32_t r = 0; r < e->n_classes; r++) {
        json_t *row = json_array();
        for (uint32_t c = 0; c < e->n_classes; c++)
            json_array_append_new(row, json_integer((json_int_t)e->confusion[r * e->n_classes + c]));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* clang-format off */
static const struct shmt_field CLASS[] = {
    FIELD(class_score, examples), FIELD(class_score, predicted), FIELD(class_score, precision), FIELD(class_score, recall),
    FIELD(class_score, f1),
    {0}};

static const struct shmt_field BIN[] = {
    FIELD(calibration_bin, examples), FIELD(calibration_bin, predicted), FIELD(calibration_bin, observed),
    {0}};
/* clang-format on */

static json_t *class_scores_of(const void *evaluation) {
    const struct shmtrain_evaluation *e = evaluation;
    json_t *list = json_array();
    for (uint32_t c = 0; c < e->n_classes; c++) {
        json_t *o = json_pack("{s:o}", "label", label_of(e->classes[c]));
        shmt_fields_add(o, CLASS, &e->class_score[c]);
        json_array_append_new(list, o);
    }
    return list;
}

static json_t *calibration_of(const void *evaluation) {
    const struct shmtrain_evaluation *e = evaluation;
    json_t *list = json_array();
    for (int b = 0; b < SHMTRAIN_CALIBRATION_BINS; b++) {
        json_t *o = json_pack("{s:f,s:f}", "from", b / 10., "to", (b + 1) / 10.);
        shmt_fields_add(o, BIN, &e->bin[b]);
        json_array_append_new(list, o);
    }
    return list;
}

static bool has_classes(const void *evaluation) { return ((const struct shmtrain_evaluation *)evaluation)->n_classes > 0; }
static bool has_bins(const void *evaluation) { return ((const struct shmtrain_evaluation *)evaluation)->bin; }

/* clang-format off */
static const struct shmt_field EVALUATION[] = {
    FIELD(evaluation, model), FIELD(evaluation, examples), KEYED(evaluation, "skipped_lines", skipped),
    FIELD(evaluation, loss_name), FIELD(evaluation, loss), FIELD(evaluation, accuracy), FIELD(evaluation, auc),
    FIELD(evaluation, root_mean_square_error),
    MADE(has_classes, "classes", classes_of), MADE(has_classes, "confusion", confusion_of),
    FIELD(evaluation, precision), FIELD(evaluation, recall), FIELD(evaluation, f1),
    MADE(has_classes, "per_class", class_scores_of),
    FIELD(evaluation, brier), FIELD(evaluation, calibration_error), MADE(has_bins, "calibration", calibration_of),
    {0}};
/* clang-format on */

char *shmtrain_evaluation_json(const struct shmtrain_evaluation *e) { return shmt_fields_line(EVALUATION, e); }
