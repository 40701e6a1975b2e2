/* Reductions of arrays, element by element: what collectives compute. */
#pragma once

#include <shmtrain/collective.h>
#include <stdint.h>

struct shmt_coll_fold {
    uint32_t type, op;
    shmtrain_combine *combine; /* SHMTRAIN_OWN */
    void *arg;
};

uint32_t shmt_coll_type_bytes(uint32_t type); /* 0: there is no such type */

/* into[i] = a[i] op b[i], n elements; `into` may be `a` or `b` (of an own operator: not b). */
void shmt_coll_fold(const struct shmt_coll_fold *how, void *into, const void *a, const void *b, uint64_t n);

/* into[i] = ((x[0][i] op x[1][i]) op x[2][i]) ..., m arrays, n elements; `into` may be any of them. */
void shmt_coll_fold_all(const struct shmt_coll_fold *how, void *into, const void *const *x, uint32_t m, uint64_t n);
