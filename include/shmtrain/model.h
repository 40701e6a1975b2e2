/* Models: what is learned, as a few functions that run on any backend in any mode.
 *
 * The built-in models see of the library this header and <shmtrain/session.h> alone (tests/check_layers sees to that), so yours can do
 * what they do. Beside them they use arithmetic of ours, which is not public: logarithms, products of matrices by a BLAS, loops
 * that threads share. Functions are called in workers, on several threads and processes at once: they keep no state of their
 * own. */
#ifndef SHMTRAIN_MODEL_H
#define SHMTRAIN_MODEL_H

#include <shmtrain/data.h>
#include <shmtrain/option.h>
#include <shmtrain/session.h>
#include <shmtrain/table.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_layer_kind; /* <shmtrain/layer.h> */

/* Settings of a run that concern models. */
struct shmtrain_settings {
    uint32_t size;        /* as the library knows it: SHMTRAIN_HAS */
    uint32_t bias;        /* 1: learn a bias */
    uint32_t group;       /* live modes: examples whose dot products are taken at once (see shmtrain_each); aggregate: 64 */
    uint32_t threads;     /* traits.loops: threads that a worker's loops may use (-t); else 1 */
    uint32_t n_classes;   /* distinct labels of the training data, as in shmtrain_data.n_labels */
    const float *classes; /* (n_classes) ascending; NULL where there are more than SHMTRAIN_MAX_CLASSES. Validation and other
                             data may lack some of them, so models take classes from here */
    uint64_t seed;        /* option seed; 0 where a model is loaded or scored */
    const char *const *option; /* texts of the model's own options, in their order; NULL: it has none */

    /* (n_layers) layers that the application has offered (shmtrain_store_offer_layer). They stay while the model is open. */
    const struct shmtrain_layer_kind *const *layers;
    uint32_t n_layers;
};

/* A parameter table. `width` 1: sparse calls work on it, if it is trained. Rows from l2_rows on (a bias) are not regularised. */
struct shmtrain_shape {
    const char *name; /* at most 31 characters; may lie in the state */
    uint64_t rows, width, l2_rows;
    enum shmtrain_role role;
    enum shmtrain_start start;
    float rate;  /* times the rate of the run; 0 counts as 1. SHMTRAIN_STATISTIC: the share itself, up to 1; 0: 0.1 */
    float decay; /* times the L1, L2 and weight decay of the run; 0 counts as 1 */
    uint64_t fan_in, fan_out; /* for SHMTRAIN_HE and _GLOROT: above 0 */
    uint64_t reserved[4];     /* 0 */
};

/* n examples of `data`: example[0 .. n), or first .. first + n - 1 where `example` is NULL. */
struct shmtrain_batch {
    uint32_t size; /* as the library knows it: SHMTRAIN_HAS */
    uint32_t n;
    const struct shmtrain_data *data;
    const uint32_t *example;
    uint64_t first;
};

/* What every call in a worker works with. */
struct shmtrain_pass {
    uint32_t size;     /* as the library knows it: SHMTRAIN_HAS */
    uint32_t training; /* 1: `step` is called; 0: `score` */
    uint32_t epoch;    /* from 0; of the item, or of the epoch that ends; 0 where a model is scored by itself */
    const struct shmtrain_settings *with;
    const void *state; /* as `open` has made it; NULL without `open` */
    void *workspace; /* the seat's own, of as many bytes as `workspace` says, on a line of 64 bytes; NULL: it wants none. What a
                          call leaves in it, the seat's next one finds; at first it is zeros */
};

/* A part of a model, such as a layer of a network, for people: a line of shmtrain inspect and topo. */
struct shmtrain_model_layer {
    char text[48];                    /* as it is written, 0-terminated: "conv:32:3" */
    uint32_t channels, height, width; /* the shape of its outputs for one example; N numbers without a shape: N, 1, 1 */
    uint32_t reserved;                /* 0 */
    uint64_t parameters;              /* elements of its tables */
    uint64_t multiplications;         /* for one example's outputs */
    uint64_t bytes;                   /* that one example's outputs, and what is kept of them for its gradient, take */
    uint64_t reserved_too[4];         /* 0 */
};

#define SHMTRAIN_MODEL_LAYERS  96
#define SHMTRAIN_MODEL_TABLES  64
#define SHMTRAIN_MODEL_OPTIONS 8
#define SHMTRAIN_MODEL_GROUP   64 /* the largest batch that `score` is given */

/* What a model's scores mean. */
enum shmtrain_task {
    SHMTRAIN_BINARY,     /* one output: above `threshold` it means the larger of two labels */
    SHMTRAIN_REGRESSION, /* one output: the predicted label */
    SHMTRAIN_CLASSES     /* one output per class, in the order of settings.classes: the largest one is the prediction */
};

/* How a model takes the rows of examples. */
enum shmtrain_rows {
    SHMTRAIN_ROWS_SPARSE, /* nonzeros: data.start, id, value */
    SHMTRAIN_ROWS_DENSE,  /* all numbers: data.dense */
    SHMTRAIN_ROWS_EITHER  /* whichever is less work; it looks at data.dense */
};

/* What the work of a model is like: runs choose by it what the options leave open. All zeros suit a model that takes nonzeros, and
 * pushes for each example the rows that this touches. */
struct shmtrain_traits {
    uint32_t rows; /* enum shmtrain_rows */

    /* 1: an item ends in one push of whole tables, and its gradient costs more than waiting for others: mode sync suits it, in live
     * modes an item is one update by a mean, as small as a batch, and the rate is one of means. 0: each example updates what it
     * touches, for about what it costs to read it; mode async suits that. */
    uint32_t pushes_tables;

    uint32_t loops; /* 1: a worker's threads (-t) share the loops of an item; 0: each thread has a seat, and items of its own */
    uint32_t blas;  /* 1: it multiplies matrices by the library's BLAS, which is then found before there are workers */

    /* 1: one column is to it as another, so that they may be numbered by how often they occur, which is faster (option
     * columns). Then a column is nothing but a row of table 0, which has one for each of them, in their order, and at most
     * others (a bias) behind; within an example columns do not ascend. `begin`, and whoever reads and writes parameters, see
     * the numbers of the data. 0: columns are always those of the data. */
    uint32_t columns_alike;

    /* The largest second derivative of the loss by a score: the automatic rate and the shares of damped merging follow from it, and
     * one that is too small lets them go too far. 0: nobody knows. Then the automatic rate is `rate`, and merging is not damped. */
    float curvature;
    float
        rate; /* where curvature is 0: the rate that suits it with sgd; with momentum m (nesterov, too) it becomes rate * (1 - m) */
    float adaptive_rate;   /* likewise, with adam; adagrad takes 10 and ftrl 30 times that; 0, of either: one must be named */
    const char *optimizer; /* a name of option optimizer that suits it in every mode; NULL: sgd */
    uint32_t item;         /* live modes: examples of an item that suit it; 0: as the other traits say */
    uint32_t batch;        /* aggregate: examples of an update that suit it; 0: as for all */

    /* `sync`: parts of a batch of 128 that suit it, a power of two; larger batches have more, of up to twice as many examples each.
     * 0: as for all. */
    uint32_t chunks;

    /* The largest norm of a table's mean gradient that suits it with sgd, momentum and nesterov, for users who say nothing of clip-norm:
     * live modes clip every shmtrain_push at it (each row of a shmtrain_push_rows; sparse pushes are not clipped), aggregate the gradient
     * of all tables at twice that; times the mean weight of examples. 0: none. */
    float clip_norm;
    uint64_t reserved[4]; /* 0 */
};

struct shmtrain_model {
    uint32_t size; /* sizeof(struct shmtrain_model) */
    enum shmtrain_task task;
    const char *name, *about; /* about: may be NULL */

    /* What its loss is called: "log loss", "hinge loss", "squared loss", or another name. "log loss" is -log of the probability
     * of the right label, and is held against that of the model behind generated data; "squared loss" is half the squared
     * error, (prediction - label)^2 / 2. NULL: "loss". */
    const char *loss;
    float threshold; /* SHMTRAIN_BINARY only */
    struct shmtrain_traits traits;

    /* Options of its own (n_options <= SHMTRAIN_MODEL_OPTIONS), which shmtrain_store_set, and for built-in models the command line, know
     * by their names; no option of the library has such a name, nor a letter. A model that is saved keeps their texts.
     * A text is one line: line breaks and tabs become blanks where it is set, other control characters are refused.
     * check_option: whether text is one for option i: 0; or -1, with what is wrong in why_out (bytes). Any thread. NULL: all are. */
    const struct shmtrain_option *options;
    uint32_t n_options;
    int (*check_option)(uint32_t i, const char *text, char *why_out, uint64_t bytes);

    /* Can this data be learned from? NULL: yes; else what is wrong with it, as an end to "the data has ...". May be NULL. */
    const char *(*check)(const struct shmtrain_data *data);

    /* Makes what the model needs to know of the data's numbers and its settings, into *state_out: every process that trains or
     * scores has one, made before its workers are, who only read it. Of `data`, only the numbers count. 0; or a negative status,
     * with a sentence in why_out (bytes), and nothing made. with->group and _threads are not known yet. `close` frees it; both are
     * NULL, or neither. */
    int (*open)(const struct shmtrain_data *data, const struct shmtrain_settings *with, void **state_out, char *why_out,
                uint64_t bytes);
    void (*close)(void *state);

    /* The tables to make: (n <= SHMTRAIN_MODEL_TABLES) into `out`, which is all 0 before; returns n. Pure. Of `data`, only the
     * numbers count. */
    uint32_t (*tables)(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                       struct shmtrain_shape *out);

    /* Bytes of the workspace that every seat gets, for calls with at most n examples (n >= SHMTRAIN_MODEL_GROUP) of data like this:
     * its numbers count, and whether `dense` is set. Pure. NULL: it wants none. */
    uint64_t (*workspace)(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state,
                          uint32_t n);

    /* What table t begins with: `value` (rows, width) is as the shape's `start` says, and may be changed. `train`: all examples
     * that are trained on, at once. Called once, in the application's process, before there are workers. NULL: that is right
     * for all tables. */
    void (*begin)(const struct shmtrain_batch *train, const struct shmtrain_settings *with, const void *state, uint32_t t,
                  float *value);

    /* `step` and `score` return 0, or a negative status, which ends the run; so does a session call of theirs that has failed, and
     * shmtrain_fail, whatever they return. They call nothing that takes, ends or reports work: not shmtrain_next, _clock, _report.
     *
     * One work item: compute gradients of the examples and push them. *loss_out: their loss before the update, summed. Where
     * data->weight is not NULL, an example's gradient and loss are times its weight, here and in `score`: means are then of
     * weights. */
    int (*step)(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, double *loss_out);

    /* At most SHMTRAIN_MODEL_GROUP examples: their outputs, row-major (n, outputs; see shmtrain_model_outputs), into
     * score_out, and the sum of their losses (times their weights, see `step`). Only reads: calls nothing that
     * lends or pushes. */
    int (*score)(shmtrain_session *s, const struct shmtrain_pass *pass, const struct shmtrain_batch *batch, float *score_out,
                 double *loss_out);

    /* Turns outputs into probabilities of the larger label (binary) or of each class, (n, outputs), in place; NULL: the model
     * has none. */
    void (*probabilities)(uint32_t n, uint32_t outputs, float *score);

    /* Part i of the model, from 0 up to SHMTRAIN_MODEL_LAYERS - 1, into *out, which is all 0 before: 1; behind the last one 0. Pure.
     * Of `data`, only the numbers count. NULL: there is nothing to show. */
    int (*describe)(const struct shmtrain_data *data, const struct shmtrain_settings *with, const void *state, uint32_t i,
                    struct shmtrain_model_layer *out);

    /* What the texts of its options, in their order, make of the model: of *model, a copy of it, `task`, `loss`, `threshold`, the
     * two rates of `traits`, `check`, `begin` and `probabilities` may be changed; nothing else of it counts. Pure. NULL: it is the
     * same with all of them. */
    void (*adapt)(const char *const *option, struct shmtrain_model *model);
};

/* Outputs for each example: the number of classes, or 1. */
static inline uint32_t shmtrain_model_outputs(const struct shmtrain_model *model, const struct shmtrain_settings *with) {
    return model->task == SHMTRAIN_CLASSES ? with->n_classes : 1;
}

#ifdef __cplusplus
}
#endif
#endif
