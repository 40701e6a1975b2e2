/* Models: what is learned, as a few functions that run on any backend in any mode.
 *
 * The built-in models see of the library this header and <shmtrain/session.h> alone (tests/check_layers sees to that), so yours can do
 * what they do. Beside them they use arithmetic of ours, which is not public: logarithms, products of matrices by a BLAS, loops
 * that threads share. Functions are called in workers, on several threads and processes at once: they keep no state of their
 * own. */
#ifndef SHMTRAIN_MODEL_H
#define SHMTRAIN_MODEL_H

#include <shmtrain/data.h>
#include <shmtrain/session.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Settings of a run that concern models. */
struct shmtrain_settings {
    uint32_t size;        /* as the library knows it: SHMTRAIN_HAS */
    uint32_t bias;        /* 1: learn a bias */
    uint32_t group;       /* live modes: examples whose dot products are taken at once (see shmtrain_each); aggregate: 64 */
    uint32_t threads;     /* dense models: threads that a worker's loops may use (-t) */
    uint32_t n_classes;   /* distinct labels of the training data, as in shmtrain_data.n_labels */
    const float *classes; /* (n_classes) ascending; NULL where there are more than SHMTRAIN_MAX_CLASSES. Validation and other
                             data may lack some of them, so models take classes from here */
};

/* A parameter table. `width` 1: sparse calls work on it. Rows from l2_rows on (a bias) are not regularised. */
struct shmtrain_shape {
    const char *name; /* at most 31 characters */
    uint64_t rows, width, l2_rows;
    uint64_t reserved[4]; /* 0 */
};

/* n examples of `data`: example[0 .. n), or first .. first + n - 1 where `example` is NULL. */
struct shmtrain_batch {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint32_t n;
    const struct shmtrain_data *data;
    const uint32_t *example;
    uint64_t first;
};

#define SHMTRAIN_MODEL_TABLES 8
#define SHMTRAIN_MODEL_GROUP  64 /* the largest batch that `score` is given */

/* What a model's scores mean. */
enum shmtrain_task {
    SHMTRAIN_BINARY,     /* one output: above `threshold` it means the larger of two labels */
    SHMTRAIN_REGRESSION, /* one output: the predicted label */
    SHMTRAIN_CLASSES     /* one output per class, in the order of settings.classes: the largest one is the prediction */
};

struct shmtrain_model {
    uint32_t size; /* sizeof(struct shmtrain_model) */
    enum shmtrain_task task;
    const char *name, *about; /* about: may be NULL */
    uint32_t dense;           /* 1: wants data in the dense layout; 0: in sparse rows */

    /* 1: one column is to it as another, so that they may be numbered by how often they occur, which is faster (option
     * columns). Then a column is nothing but a row of table 0, which has one for each of them, in their order, and at most
     * others (a bias) behind; within an example columns do not ascend. `begin`, and whoever reads and writes parameters, see
     * the numbers of the data. 0: columns are always those of the data. */
    uint32_t columns_alike;

    /* What its loss is called: "log loss", "hinge loss", "squared loss", or another name. "log loss" is -log of the probability
     * of the right label, and is held against that of the model behind generated data; "squared loss" is half the squared
     * error, (prediction - label)^2 / 2. NULL: "loss". */
    const char *loss;
    float curvature; /* the largest second derivative of the loss by a score; 0: 0.25, as logistic's. The automatic rate and the
                        shares of damped merging follow from it: one that is too small lets them go too far */
    float threshold; /* SHMTRAIN_BINARY only */

    /* Can this data be learned from? NULL: yes; else what is wrong with it, as an end to "the data has ...". May be NULL. */
    const char *(*check)(const struct shmtrain_data *data);

    /* The tables to make: (n <= SHMTRAIN_MODEL_TABLES) into `out`, which is all 0 before; returns n. Pure. Of `data`, only the
     * numbers count. */
    uint32_t (*tables)(const struct shmtrain_data *data, const struct shmtrain_settings *with, struct shmtrain_shape *out);

    /* What table t begins with: `value` (rows, width) is zeros, and may be changed. `train`: all examples that are trained on,
     * at once. Called once, in the application's process, before there are workers. NULL: zeros are right for all tables. */
    void (*begin)(const struct shmtrain_batch *train, const struct shmtrain_settings *with, uint32_t t, float *value);

    /* `step` and `score` return 0, or a negative status, which ends the run; so does a session call of theirs that has failed, and
     * shmtrain_fail, whatever they return. They call nothing that takes, ends or reports work: not shmtrain_next, _clock, _report.
     *
     * One work item: compute gradients of the examples and push them. *loss_out: their loss before the update, summed. Where
     * data->weight is not NULL, an example's gradient and loss are times its weight, here and in `score`: means are then of
     * weights. */
    int (*step)(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                double *loss_out);

    /* At most SHMTRAIN_MODEL_GROUP examples: their outputs, row-major (n, outputs; see shmtrain_model_outputs), into
     * score_out, and the sum of their losses (times their weights, see `step`). Only reads: calls nothing that
     * lends or pushes. */
    int (*score)(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                 float *score_out, double *loss_out);

    /* Turns outputs into probabilities of the larger label (binary) or of each class, (n, outputs), in place; NULL: the model
     * has none. */
    void (*probabilities)(uint32_t n, uint32_t outputs, float *score);
};

/* Outputs for each example: the number of classes, or 1. */
static inline uint32_t shmtrain_model_outputs(const struct shmtrain_model *model, const struct shmtrain_settings *with) {
    return model->task == SHMTRAIN_CLASSES ? with->n_classes : 1;
}

#ifdef __cplusplus
}
#endif
#endif
