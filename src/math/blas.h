/* OpenBLAS: products of dense matrices, each by one thread.
 *
 * Called by dense models, in workers. The library is loaded by the first process that needs it, and not linked: its usual
 * variants start a pool of threads when they are loaded, and no library may have a thread when workers are forked. It is
 * process-wide by nature: once loaded it stays. A worker, which is alone in its process, loads it without a pool.
 *
 * Tried are, in this order: the file that SHMTRAIN_BLAS names, and nothing else when it is set; the variants with threads, of
 * which one is used; the serial variant. That one comes last because it has no locks: Debian's gives wrong products when two
 * threads multiply at a time (tests/test_blas.c sees it), so they take turns.
 *
 * Bits: those of a product depend on its shape and on OpenBLAS's kernel for the CPU (shmt_blas_name), and on nothing else; so
 * callers that promise the same bits for every number of threads cut matrices into tiles of fixed sizes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Loads the library, once per process; threads may call it at the same time. Must have succeeded in this process before any
 * product. Errors: _SYSTEM, with what to install; the same at each further call. */
int shmt_blas_open(struct shmt_error *e);

/* "OpenBLAS 0.3.21 Zen"; another library goes by its file's name. "" before it was loaded. */
const char *shmt_blas_name(void);

/* Whether threads may multiply side by side, without taking turns. */
bool shmt_blas_is_shared(void);

/* Matrices are row-major: element (i, j) is at[i * stride + j]. No number of rows, columns or stride is above 2^31 - 1. */
struct shmt_matrix {
    float *at;
    uint32_t rows, cols;
    uint64_t stride;
};

/* A factor of a product as it stands in memory, and whether its transpose is meant. */
struct shmt_factor {
    const float *at;
    uint64_t stride;
    bool transposed;
};

/* c = a b + beta c, with a (c.rows, k), b (k, c.cols) after transposing, k >= 1. With beta 0 the old c does not count, NaN
 * included. c overlaps neither factor. Any thread. */
void shmt_sgemm(struct shmt_factor a, struct shmt_factor b, uint32_t k, float beta, struct shmt_matrix c);
