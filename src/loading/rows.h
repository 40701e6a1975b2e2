/* What a run knows of the rows of table 0 before it begins, one number for each column of the data: called by running/train.c when the
 * data is there, filled into the backend's store by run.c. */
#pragma once

#include <shmtrain/model.h>
#include <stdint.h>

#include "ps/spec.h"

/* NULL: not asked for. */
struct shmt_rows {
    uint32_t *place;  /* (rows) by feature (places.h); all else is by place */
    float *l2_share;  /* (rows) */
    float *curvature; /* (n_curvatures) of those rows that replicas hold (ps/replicas.h) */
    uint64_t n_curvatures;
};
void shmt_rows_free(struct shmt_rows *rows); /* what it points to; {0} is fine */

/* The examples of `data` that are trained on: example[0 .. spec.n_examples), or all where it is NULL. */
struct shmt_rows_of {
    const struct shmtrain_model *model; /* of sparse rows */
    const struct shmtrain_data *data;
    const uint32_t *example;
    const struct shmt_spec *spec;
};

/* Bytes that making these takes, and keeping them. */
uint64_t shmt_rows_work_bytes(const struct shmt_spec *spec);

/* Live modes with L2: the share of a row is how many examples there are for each one that touches it (span.h); 0 of rows that
 * are not regularised. Nothing where the spec asks for none. Errors: _MEMORY. */
int shmt_rows_share(struct shmt_rows *rows, const struct shmt_rows_of *of, struct shmt_error *e);

/* Merging damped: how strongly the mean loss bends along each row (update/merge.h), the model's curvature times the mean over
 * the examples of weight * x^2. From a sample, every k-th example so that about two million elements are looked at; a column
 * that does not occur in it has 0, and is rare. Nothing where the spec asks for none. Errors: _MEMORY. */
int shmt_rows_curve(struct shmt_rows *rows, const struct shmt_rows_of *of, struct shmt_error *e);
