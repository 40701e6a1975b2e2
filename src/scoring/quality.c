/* Classes told apart, and calibration: see quality.h. */
#include "scoring/quality.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes ---- */

/* The class of a label that is one of them, as check_labels of scores.c has made sure. */
static uint32_t class_of(const struct shmtrain_settings *with, float label) {
    uint32_t low = 0, high = with->n_classes - 1;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (with->classes[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t count_right(const struct shmt_scores *s, uint64_t *confusion) {
    const uint32_t n = s->job.settings.n_classes;
    const float *output = shmt_scores_at(s);
    uint64_t right = 0;
    for (uint64_t i = 0; i < s->n; i++)
        confusion[class_of(&s->job.settings, s->label[i]) * n + shmt_scores_class(s, output + i * s->n_outputs)]++;
    for (uint32_t c = 0; c < n; c++) right += confusion[c * n + c];
    return right;
}

static double share(uint64_t part, uint64_t of) { return of > 0 ? (double)part / (double)of : NAN; }

/* f1 from the counts: so it is 0 where nothing is right, also where precision or recall have no value. */
static void score_classes(const uint64_t *confusion, uint32_t n, struct shmtrain_class_score *out) {
    for (uint32_t c = 0; c < n; c++) {
        const uint64_t right = confusion[c * n + c];
        for (uint32_t k = 0; k < n; k++) {
            out[c].examples += confusion[c * n + k];
            out[c].predicted += confusion[k * n + c];
        }
        out[c].precision = share(right, out[c].predicted);
        out[c].recall = share(right, out[c].examples);
        out[c].f1 = share(2 * right, out[c].examples + out[c].predicted);
    }
}

static double or_zero(double x) { return isnan(x) ? 0 : x; }

static void average_classes(struct shmtrain_evaluation *out) {
    uint32_t n = 0;
    double precision = 0, recall = 0, f1 = 0;
    for (uint32_t c = 0; c < out->n_classes; c++) {
        const struct shmtrain_class_score *of = &out->class_score[c];
        if (isnan(of->f1)) continue;
        n++;
        precision += or_zero(of->precision);
        recall += or_zero(of->recall);
        f1 += of->f1;
    }
    out->precision = precision / n;
    out->recall = recall / n;
    out->f1 = f1 / n;
}

/* What the evaluation points to, in one block that begins with the confusion. */
static int count_confusion(const struct shmt_scores *s, struct shmtrain_evaluation *out,
                           struct shmtrain_calibration_bin **bin_out) {
    const uint32_t n = s->job.settings.n_classes;
    struct shmtrain_class_score *score;
    struct shmtrain_calibration_bin *bin;
    const size_t counts = (size_t)n * n * sizeof *s->scoring->confusion, scores = n * sizeof *score;
    unsigned char *block = calloc(1, counts + scores + SHMTRAIN_CALIBRATION_BINS * sizeof *bin);
    if (!block) return shmt_no_memory(&s->scoring->call->error, "for the confusion of %u classes", n);
    s->scoring->confusion = (uint64_t *)(void *)block;
    score = (struct shmtrain_class_score *)(void *)(block + counts);
    bin = (struct shmtrain_calibration_bin *)(void *)(block + counts + scores);
    out->n_classes = n;
    out->classes = s->scoring->params->trained.classes;
    out->confusion = s->scoring->confusion;
    out->class_score = score;
    *bin_out = bin;
    out->accuracy = share(count_right(s, s->scoring->confusion), s->n);
    score_classes(out->confusion, n, score);
    return 0;
}

static void summarise(const struct shmt_scores *s, struct shmtrain_evaluation *out) {
    const struct shmtrain_class_score *larger = &out->class_score[out->n_classes - 1];
    if (s->model->task != SHMTRAIN_BINARY) {
        average_classes(out);
        return;
    }
    out->precision = larger->precision;
    out->recall = larger->recall;
    out->f1 = larger->f1;
}

/* ---- calibration ---- */

/* What one example adds to the Brier score; its probability that counts, and whether it came true. */
static double judge_one(const struct shmt_scores *s, uint64_t i, const float *probability, double *p_out, bool *true_out) {
    const struct shmtrain_settings *with = &s->job.settings;
    const uint32_t label = class_of(with, s->label[i]);
    double sum = 0;
    if (s->model->task == SHMTRAIN_BINARY) {
        *p_out = (double)probability[0];
        *true_out = with->n_classes > 1 && label == with->n_classes - 1;
        return (*p_out - *true_out) * (*p_out - *true_out);
    }
    const uint32_t predicted = shmt_scores_class(s, shmt_scores_at(s) + i * s->n_outputs);
    *p_out = (double)probability[predicted];
    *true_out = predicted == label;
    for (uint32_t c = 0; c < s->n_outputs; c++) {
        const double miss = (double)probability[c] - (c == label);
        sum += miss * miss;
    }
    return sum;
}

/* Probabilities are kept by tenths; 1 is in the last one. `predicted` and `observed` are sums until the end. */
static int calibrate(const struct shmt_scores *s, struct shmtrain_calibration_bin *bin, struct shmtrain_evaluation *out) {
    double brier = 0, error = 0;
    float *probability = malloc(s->n_outputs * sizeof *probability);
    if (!probability) return shmt_no_memory(&s->scoring->call->error, "for probabilities");
    for (uint64_t i = 0; i < s->n; i++) {
        double p;
        bool is_true;
        memcpy(probability, shmt_scores_at(s) + i * s->n_outputs, s->n_outputs * sizeof *probability);
        s->model->probabilities(1, s->n_outputs, probability);
        brier += judge_one(s, i, probability, &p, &is_true);
        const int at = p >= 1 ? SHMTRAIN_CALIBRATION_BINS - 1 : p > 0 ? (int)(p * SHMTRAIN_CALIBRATION_BINS) : 0;
        bin[at].examples++;
        bin[at].predicted += p;
        bin[at].observed += is_true;
    }
    free(probability);
    for (int b = 0; b < SHMTRAIN_CALIBRATION_BINS; b++) {
        error += fabs(bin[b].predicted - bin[b].observed);
        bin[b].predicted = bin[b].examples > 0 ? bin[b].predicted / (double)bin[b].examples : NAN;
        bin[b].observed = bin[b].examples > 0 ? bin[b].observed / (double)bin[b].examples : NAN;
    }
    out->brier = brier / (double)s->n;
    out->calibration_error = error / (double)s->n;
    out->bin = bin;
    return 0;
}

int shmt_quality_measure(const struct shmt_scores *s, struct shmtrain_evaluation *out) {
    struct shmtrain_calibration_bin *bin = NULL;
    const int rc = count_confusion(s, out, &bin);
    if (rc < 0) return rc;
    summarise(s, out);
    return s->model->probabilities ? calibrate(s, bin, out) : 0;
}

void shmt_quality_forget(struct shmt_scoring *scoring) {
    free(scoring->confusion);
    scoring->confusion = NULL;
}
