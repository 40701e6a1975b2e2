/* What is known of the rows of table 0: see rows.h. */
#include "loading/rows.h"

#include <stdlib.h>

#include "loading/coupling.h"
#include "base/checked.h"
#include "ps/replicas.h"

#define SAMPLED (UINT64_C(1) << 21) /* elements: some milliseconds */

void shmt_rows_free(struct shmt_rows *rows) {
    free(rows->place);
    free(rows->l2_share);
    free(rows->curvature);
    *rows = (struct shmt_rows){0};
}

/* Of which rows it is known: those that replicas hold. Rows are floats: table 0 is the only one, or all are held. */
static struct shmt_cover rows_with_curvature(const struct shmt_spec *spec) {
    const struct shmt_flat flat = {.n = spec->table[0].rows};
    struct shmt_cover cover;
    shmt_replicas_cover(spec, &flat, &cover);
    return cover;
}

uint64_t shmt_rows_work_bytes(const struct shmt_spec *spec) {
    const uint64_t shares = spec->l2_shares ? 2 * spec->table[0].rows : 0; /* with their counts */
    const uint64_t held = spec->curvatures ? rows_with_curvature(spec).n : 0;
    return (shares + held) * sizeof(float) + (spec->curvatures ? shmt_coupling_work_bytes(held) : 0);
}

static uint64_t example_at(const struct shmt_rows_of *of, uint64_t k) { return of->example ? of->example[k] : k; }

/* ---- shares ---- */

/* How many training examples each column occurs in. */
static void count_columns(const struct shmt_rows_of *of, uint32_t *count) {
    const struct shmtrain_data *data = of->data;
    for (uint64_t k = 0; k < of->spec->n_examples; k++) {
        const uint64_t i = example_at(of, k);
        for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) count[data->id[j]]++;
    }
}

int shmt_rows_share(struct shmt_rows *rows, const struct shmt_rows_of *of, struct shmt_error *e) {
    const uint64_t n_rows = of->spec->table[0].rows, ruled = of->spec->l2_rows[0], n = of->spec->n_examples;
    if (!of->spec->l2_shares) return 0;
    uint32_t *count = calloc(n_rows, sizeof *count);
    rows->l2_share = calloc(n_rows, sizeof *rows->l2_share);
    if (!count || !rows->l2_share) {
        free(count);
        return shmt_no_memory(e, "for the L2 shares of %llu features", (unsigned long long)n_rows);
    }
    count_columns(of, count);
    for (uint64_t row = 0; row < ruled; row++) rows->l2_share[row] = count[row] ? (float)n / (float)count[row] : 0;
    free(count);
    return 0;
}

/* ---- curvatures ---- */

static uint64_t stride_of(const struct shmt_rows_of *of) {
    const double share = (double)of->spec->n_examples / (double)shmt_max_u64(1, of->data->n_examples);
    return shmt_max_u64(1, (uint64_t)((double)of->data->n_nonzeros * share / (double)SAMPLED));
}

static void add_example(const struct shmtrain_data *data, uint64_t i, float weight, const struct shmt_cover *cover,
                        float *out) {
    for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) {
        const float x = data->value ? data->value[j] : 1;
        const uint64_t held = shmt_cover_of(cover, data->id[j]);
        if (held != UINT64_MAX) out[held] += weight * x * x;
    }
}

#define AHEAD 4 /* examples of the sample, which lie far from one another: no processor sees what comes next */

/* Asks memory for an example. */
static void ask_for(const struct shmtrain_data *data, uint64_t i) {
    enum { LINE = 64 / sizeof(uint32_t) };
    for (uint64_t j = data->start[i]; j < data->start[i + 1]; j += LINE) {
        __builtin_prefetch(&data->id[j]);
        if (data->value) __builtin_prefetch(&data->value[j]);
    }
}

int shmt_rows_curve(struct shmt_rows *rows, const struct shmt_rows_of *of, struct shmt_error *e) {
    const struct shmtrain_data *data = of->data;
    const struct shmt_cover cover = rows_with_curvature(of->spec);
    const uint64_t bias = shmt_cover_of(&cover, of->spec->l2_rows[0]), stride = stride_of(of);
    const double most = (double)of->model->traits.curvature; /* above 0, or nobody asks (spec.curvatures) */
    double weights = 0, n = 0;
    if (!of->spec->curvatures) return 0;
    float *const h = rows->curvature = calloc(cover.n, sizeof *h);
    if (!h) return shmt_no_memory(e, "for the curvatures of %llu features", (unsigned long long)cover.n);
    for (uint64_t k = 0; k < of->spec->n_examples; k += stride) {
        const uint64_t i = example_at(of, k);
        const float weight = data->weight ? data->weight[i] : 1;
        if (k + AHEAD * stride < of->spec->n_examples) ask_for(data, example_at(of, k + AHEAD * stride));
        add_example(data, i, weight, &cover, h);
        weights += (double)weight;
        n++;
    }
    rows->n_curvatures = cover.n;
    for (uint64_t held = 0; held < cover.n; held++) h[held] = (float)((double)h[held] / n);
    if (bias != UINT64_MAX) h[bias] = (float)(weights / n); /* a column of ones */
    const int rc = shmt_coupling_add(of, &cover, bias, h, e);
    for (uint64_t held = 0; held < cover.n; held++) h[held] = (float)((double)h[held] * most);
    return rc;
}
