/* Plain loops: see kernels_reference.h. */
#include "store/kernels_reference.h"

static uint64_t example_at(const struct shmtrain_csr *x, uint32_t k) { return x->order ? x->order[k] : k; }

static void need(const struct shmt_span *span, const struct shmtrain_csr *x) { (void)span, (void)x; }

static float dot_of(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k) {
    const uint64_t i = example_at(x, k), from = x->start[i], n = x->start[i + 1] - from;
    float lane[8] = {0};
    for (uint64_t j = 0; j < n; j++) {
        const float product = span->weight[x->id[from + j]] * (x->value ? x->value[from + j] : 1.0f);
        lane[j % 8] += product;
    }
    const float sum = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    return x->bias ? sum + span->weight[span->rows - 1] : sum;
}

static void dot(const struct shmt_span *span, const struct shmtrain_csr *x, float *dot_out) {
    for (uint32_t k = 0; k < x->n; k++) dot_out[k] = dot_of(span, x, k);
}

static void touch(const struct shmt_span *span, uint64_t at) {
    if (span->touched) span->touched[at / SHMT_TOUCH_FLOATS] = 1;
}

static void update(float *w, float a, float d, bool l2) { *w = l2 ? *w - (a + d * *w) / (1 + d) : *w - a; }

static void update_row(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, float slope,
                       const struct shmt_update *u, bool has_l2) {
    const uint64_t i = example_at(x, k);
    for (uint64_t j = x->start[i]; j < x->start[i + 1]; j++) {
        const uint64_t row = x->id[j];
        const float value = x->value ? x->value[j] : 1.0f, share = span->l2_share ? span->l2_share[row] : 1.0f;
        update(&span->sink[row], (u->rate * slope) * value, (u->rate * u->l2) * share, has_l2);
    }
    if (x->bias) update(&span->sink[span->rows - 1], u->rate * slope, 0, false);
}

static void add_row(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t k, float slope) {
    const uint64_t i = example_at(x, k);
    for (uint64_t j = x->start[i]; j < x->start[i + 1]; j++) {
        const float product = slope * (x->value ? x->value[j] : 1.0f);
        span->sink[x->id[j]] += product;
        touch(span, x->id[j]);
    }
    if (x->bias) {
        span->sink[span->rows - 1] += slope;
        touch(span, span->rows - 1);
    }
}

static void push_plain(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                       const struct shmt_update *u) {
    for (uint32_t k = 0; k < x->n; k++) update_row(span, x, k, slope[k], u, false);
}

static void push_l2(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                    const struct shmt_update *u) {
    for (uint32_t k = 0; k < x->n; k++) update_row(span, x, k, slope[k], u, true);
}

static void push_sums(const struct shmt_span *span, const struct shmtrain_csr *x, const float *slope,
                      const struct shmt_update *u) {
    (void)u;
    for (uint32_t k = 0; k < x->n; k++) add_row(span, x, k, slope[k]);
}

typedef void push_sparse(const struct shmt_span *, const struct shmtrain_csr *, const float *, const struct shmt_update *);

/* A group is a csr of its own: examples first .. first + n - 1, named by their numbers. */
static void each(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope, void *arg,
                 const struct shmt_update *u, push_sparse *push) {
    for (uint32_t first = 0; first < x->n; first += group) {
        uint32_t order[SHMT_MAX_GROUP];
        float dots[SHMT_MAX_GROUP], slopes[SHMT_MAX_GROUP];
        struct shmtrain_csr part = *x;
        part.n = x->n - first < group ? x->n - first : group;
        part.order = order;
        for (uint32_t k = 0; k < part.n; k++) order[k] = (uint32_t)example_at(x, first + k);
        dot(span, &part, dots);
        slope(arg, first, part.n, dots, slopes);
        push(span, &part, slopes, u);
    }
}

static void each_plain(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope,
                       void *arg, const struct shmt_update *u) {
    each(span, x, group, slope, arg, u, push_plain);
}

static void each_l2(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope,
                    void *arg, const struct shmt_update *u) {
    each(span, x, group, slope, arg, u, push_l2);
}

static void each_sums(const struct shmt_span *span, const struct shmtrain_csr *x, uint32_t group, shmtrain_slope *slope,
                      void *arg, const struct shmt_update *u) {
    each(span, x, group, slope, arg, u, push_sums);
}

static void dense_plain(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u) {
    for (uint64_t i = 0; i < n; i++) update(&span->sink[at + i], u->rate * (grad[i] * u->scale), 0, false);
}

static void dense_l2(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u) {
    for (uint64_t i = 0; i < n; i++) update(&span->sink[at + i], u->rate * (grad[i] * u->scale), u->rate * u->l2, true);
}

static void dense_sums(const struct shmt_span *span, uint64_t at, uint64_t n, const float *grad, const struct shmt_update *u) {
    (void)u;
    for (uint64_t i = 0; i < n; i++) {
        span->sink[at + i] += grad[i];
        touch(span, at + i);
    }
}

const struct shmt_kernels *shmt_kernels_reference(enum shmt_write write, enum shmt_rule_kind rule, bool values,
                                                  bool regularised) {
    static const struct shmt_kernels plain = {"reference", need, dot, push_plain, each_plain, dense_plain},
                                     with_l2 = {"reference_l2", need, dot, push_l2, each_l2, dense_l2},
                                     sums = {"reference_aggregate", need, dot, push_sums, each_sums, dense_sums};
    (void)values; /* asked of the csr itself */
    (void)rule;
    return write == SHMT_WRITE_AGGREGATE ? &sums : regularised ? &with_l2 : &plain;
}
