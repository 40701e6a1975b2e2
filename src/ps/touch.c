/* What a worker touches: see touch.h. */
#include "ps/touch.h"

#include "sync/host.h"

void shmt_touch_planes(const float *weight, const float *state, uint64_t plane, uint32_t planes, uint64_t n, bool writes) {
    if (!shmt_host_touches()) return;
    shmt_touch(weight, n * sizeof *weight, writes);
    for (uint32_t i = 0; i < planes; i++) shmt_touch(state + i * plane, n * sizeof *state, writes);
}

void shmt_touch_floats(const struct shmt_span *span, uint64_t at, uint64_t n, uint32_t planes, bool writes) {
    const float *const weight = writes ? span->sink : span->weight;
    if (n > 0) shmt_touch_planes(weight + at, planes > 0 ? span->state + at : NULL, span->plane, planes, n, writes);
}

/* A parameter of an example. Pushes to it that nobody else disturbs wait for it before they go on to the next one; reads do not. */
static void touch_one(const struct shmt_span *span, uint64_t row, uint32_t planes, bool writes) {
    shmt_touch_floats(span, row, 1, planes, writes);
    if (writes) shmt_spend(SHMT_SPENT_TOUCHING, 1);
}

void shmt_pay_for_examples(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t planes, bool writes) {
    if (!shmt_host_touches()) return;
    for (uint32_t k = 0; k < x->n; k++) {
        const uint64_t i = x->order ? x->order[k] : k;
        for (uint64_t at = x->start[i]; at < x->start[i + 1]; at++) touch_one(span, x->id[at], planes, writes);
        if (x->bias) touch_one(span, span->rows - 1, planes, writes);
    }
    shmt_spend(SHMT_SPENT_TOUCHING, 1);
}
