/* Copies of the application's arrays, in the form that runs can take without another one: see given.h. Called when arrays are
 * given, before anybody has looked into them: what is read here is bounded by sizes alone. */
#include "data/given.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* Where each array begins in a copy. */
struct copy {
    uint64_t start, id, value, dense, label, weight, bytes;
    bool narrow; /* ids get 32 bits */
};

/* All arrays are multiples of 4 bytes, and those of 8 come first. */
static uint64_t place(uint64_t *bytes, const void *array, uint64_t n, uint64_t each) {
    const uint64_t at = *bytes;
    uint64_t more;
    if (!array) return at;
    if (!shmt_mul_u64(n, each, &more) || !shmt_add_u64(at, more, bytes)) *bytes = UINT64_MAX;
    return at;
}

static struct copy lay_out(const struct shmtrain_arrays *a, bool narrow) {
    const void *ids = a->id ? (const void *)a->id : (const void *)a->wide_id;
    struct copy c = {.narrow = narrow};
    c.start = place(&c.bytes, a->start, a->n_examples + 1, sizeof(uint64_t));
    c.id = place(&c.bytes, ids, a->n_entries, narrow ? sizeof(uint32_t) : sizeof(uint64_t));
    c.value = place(&c.bytes, a->value, a->n_entries, sizeof(float));
    c.dense = place(&c.bytes, a->dense, a->n_examples, a->n_features * sizeof(float));
    c.label = place(&c.bytes, a->label, a->n_examples, sizeof(float));
    c.weight = place(&c.bytes, a->weight, a->n_examples, sizeof(float));
    return c;
}

uint64_t shmt_given_copy_bytes(const struct shmt_given *given) { return lay_out(&given->of, given->of.wide_id == NULL).bytes; }

static bool are_narrow(const struct shmtrain_arrays *a) {
    uint64_t all = 0;
    for (uint64_t j = 0; a->wide_id && j < a->n_entries; j++) all |= a->wide_id[j];
    return all <= UINT32_MAX;
}

/* Entries from the first used one on; those that do not ascend are refused when they are counted. */
static void copy_sparse(const struct shmtrain_arrays *a, const struct copy *c, unsigned char *to) {
    const uint64_t first = a->start[0], n = a->n_entries - first;
    uint64_t *start = (uint64_t *)(void *)(to + c->start);
    uint32_t *id = (uint32_t *)(void *)(to + c->id);
    for (uint64_t i = 0; i <= a->n_examples; i++) start[i] = a->start[i] - first;
    if (n > 0 && a->id) memcpy(id, a->id + first, n * sizeof *id);
    for (uint64_t j = 0; a->wide_id && c->narrow && j < n; j++) id[j] = (uint32_t)a->wide_id[first + j];
    if (n > 0 && a->wide_id && !c->narrow) memcpy(to + c->id, a->wide_id + first, n * sizeof *a->wide_id);
    if (n > 0 && a->value) memcpy(to + c->value, a->value + first, n * sizeof *a->value);
}

static void copy_dense(const struct shmtrain_arrays *a, float *to) {
    for (uint64_t i = 0; i < a->n_examples; i++, to += a->n_features)
        memcpy(to, a->dense + i * a->stride, a->n_features * sizeof *to);
}

static void point_to(struct shmt_given *given, const struct copy *c, unsigned char *own) {
    struct shmtrain_arrays *a = &given->of;
    const bool has_ids = a->id || a->wide_id;
    if (a->start) given->first = a->start[0];
    a->n_entries -= given->first;
    if (a->start) a->start = (const uint64_t *)(const void *)(own + c->start);
    a->id = has_ids && c->narrow ? (const uint32_t *)(const void *)(own + c->id) : NULL;
    a->wide_id = has_ids && !c->narrow ? (const uint64_t *)(const void *)(own + c->id) : NULL;
    if (a->value) a->value = (const float *)(const void *)(own + c->value);
    if (a->dense) a->dense = (const float *)(const void *)(own + c->dense);
    if (a->dense) a->stride = a->n_features;
    if (a->label) a->label = (const float *)(const void *)(own + c->label);
    if (a->weight) a->weight = (const float *)(const void *)(own + c->weight);
    given->own = own;
}

int shmt_given_copy(struct shmt_given *given, struct shmt_error *e) {
    const struct shmtrain_arrays *a = &given->of;
    if (a->start && a->start[0] > a->n_entries)
        return shmt_fail(e, SHMTRAIN_E_DATA, "%s: example 0: start[0] is %" PRIu64 ", beyond the %" PRIu64 " entries",
                         given->name, a->start[0], a->n_entries);
    const struct copy c = lay_out(a, are_narrow(a));
    unsigned char *own = c.bytes > 0 && c.bytes < UINT64_MAX ? malloc(c.bytes) : NULL;
    if (!own)
        return shmt_fail(e, SHMTRAIN_E_MEMORY, "%s: not enough memory for a copy of %" PRIu64 " MiB", given->name,
                         c.bytes >> 20);
    if (a->start) copy_sparse(a, &c, own);
    if (a->dense) copy_dense(a, (float *)(void *)(own + c.dense));
    if (a->label) memcpy(own + c.label, a->label, a->n_examples * sizeof(float));
    if (a->weight) memcpy(own + c.weight, a->weight, a->n_examples * sizeof(float));
    point_to(given, &c, own);
    return 0;
}

void shmt_given_free(struct shmt_given *given) {
    free(given->own);
    given->own = NULL;
}
