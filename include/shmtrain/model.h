/* Models: what is learned, as a few functions that run on any backend in any mode.
 *
 * The built-in models are written against this header and <shmtrain/session.h> alone; so can yours be. Functions are called in
 * workers, on several threads and processes at once: they keep no state of their own. */
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
    uint32_t bias;  /* 1: learn a bias */
    uint32_t group; /* live modes: examples whose dot products are taken at once (see shmtrain_each); aggregate: 64 */
};

/* A parameter table. `width` 1: sparse calls work on it. Rows from l2_rows on (a bias) are not regularised. */
struct shmtrain_shape {
    const char *name; /* at most 31 characters */
    uint64_t rows, width, l2_rows;
};

/* n examples of `data`: example[0 .. n), or first .. first + n - 1 where `example` is NULL. */
struct shmtrain_batch {
    const struct shmtrain_data *data;
    const uint32_t *example;
    uint64_t first;
    uint32_t n;
};

#define SHMTRAIN_MODEL_TABLES 8
#define SHMTRAIN_MODEL_GROUP  64 /* the largest batch that `score` is given */

struct shmtrain_model {
    const char *name, *about;

    /* Can this data be learned from? NULL: yes; else what is wrong with it, as an end to "the data has ...". May be NULL. */
    const char *(*check)(const struct shmtrain_data *data);

    /* The tables to make: (n <= SHMTRAIN_MODEL_TABLES) into `out`; returns n. Pure. */
    uint32_t (*tables)(const struct shmtrain_data *data, const struct shmtrain_settings *with, struct shmtrain_shape *out);

    /* One work item: compute gradients of the examples and push them. *loss_out: their loss before the update, summed. */
    int (*step)(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                double *loss_out);

    /* At most SHMTRAIN_MODEL_GROUP examples: a score each (higher: more likely the larger label; a regression's prediction),
     * into score_out, and the sum of their losses. Pushes nothing. */
    int (*score)(shmtrain_session *s, const struct shmtrain_batch *batch, const struct shmtrain_settings *with,
                 float *score_out, double *loss_out);

    /* A classifier's score above this means the larger label; NaN for models that do not classify. */
    float threshold;
};

#ifdef __cplusplus
}
#endif
#endif
