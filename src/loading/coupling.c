/* The direction in which weights come fastest together, by power iteration on a sample: see coupling.h. */
#include "loading/coupling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/random.h"

#define ELEMENTS (UINT64_C(1) << 17) /* of the sample, about, at most */
#define FEWEST   (UINT64_C(1) << 15) /* of it where there are as many: small data is trained on in milliseconds */
#define PART     16                  /* of the data, between the two; they are gone through some 18 times */
#define STEPS    8                   /* what is left of directions that are half as strong: 1 / 256 */
#define TOGETHER 2                   /* replicas move on while one merges, which steep directions bear least */
#define PURPOSE  0x636f75706c65      /* "couple" */

/* Rows of the sample alone, numbered as they come. */
struct sample {
    uint64_t n_examples, n_elements, n_rows;
    uint64_t *start;       /* (n_examples + 1) */
    uint32_t *id;          /* (n_elements) below n_rows */
    float *value, *weight; /* (n_elements), (n_examples) */
    uint64_t *row;         /* (n_rows) which it is of those that are held */
    double *along, *next;  /* (n_rows) a direction, and what M makes of it */
};

static void free_sample(struct sample *s) {
    free(s->start);
    free(s->id);
    free(s->value);
    free(s->weight);
    free(s->row);
    free(s->along);
    free(s->next);
}

static uint64_t example_at(const struct shmt_rows_of *of, uint64_t k) { return of->example ? of->example[k] : k; }

static uint64_t stride_of(const struct shmt_rows_of *of) {
    const double share = (double)of->spec->n_examples / (double)shmt_max_u64(1, of->data->n_examples);
    const double n = (double)of->data->n_nonzeros * share, wanted = fmin(fmax(n / PART, (double)FEWEST), (double)ELEMENTS);
    return shmt_max_u64(1, (uint64_t)(n / wanted));
}

static void count(const struct shmt_rows_of *of, uint64_t stride, struct sample *s) {
    for (uint64_t k = 0; k < of->spec->n_examples; k += stride) {
        const uint64_t i = example_at(of, k);
        s->n_elements += of->data->start[i + 1] - of->data->start[i];
        s->n_examples++;
    }
}

static bool make_room(struct sample *s) {
    const size_t elements = s->n_elements + 1, examples = s->n_examples + 1;
    s->start = calloc(examples, sizeof *s->start);
    s->id = calloc(elements, sizeof *s->id);
    s->value = calloc(elements, sizeof *s->value);
    s->weight = calloc(examples, sizeof *s->weight);
    s->row = calloc(elements, sizeof *s->row);
    s->along = calloc(elements, sizeof *s->along);
    s->next = calloc(elements, sizeof *s->next);
    return s->start && s->id && s->value && s->weight && s->row && s->along && s->next;
}

/* number (cover->n): 1 + the number that a held row has in the sample; 0 at first. */
static void take(const struct shmt_rows_of *of, const struct shmt_cover *cover, uint64_t stride, uint32_t *number,
                 struct sample *s) {
    const struct shmtrain_data *data = of->data;
    uint64_t n = 0, at = 0;
    for (uint64_t k = 0; k < of->spec->n_examples; k += stride, n++) {
        const uint64_t i = example_at(of, k);
        s->weight[n] = data->weight ? data->weight[i] : 1;
        for (uint64_t j = data->start[i]; j < data->start[i + 1]; j++) {
            const uint64_t held = shmt_cover_of(cover, data->id[j]);
            if (held == UINT64_MAX) continue;
            if (number[held] == 0) {
                s->row[s->n_rows] = held;
                number[held] = (uint32_t)++s->n_rows;
            }
            s->id[at] = number[held] - 1;
            s->value[at++] = data->value ? data->value[j] : 1;
        }
        s->start[n + 1] = at;
    }
}

/* ---- the leading direction ---- */

static double score(const struct sample *s, uint64_t i) {
    double sum = 0;
    for (uint64_t j = s->start[i]; j < s->start[i + 1]; j++) sum += s->along[s->id[j]] * (double)s->value[j];
    return sum;
}

static void multiply(struct sample *s) {
    for (uint64_t r = 0; r < s->n_rows; r++) s->next[r] = 0;
    for (uint64_t i = 0; i < s->n_examples; i++) {
        const double weighted = score(s, i) * (double)s->weight[i] / (double)s->n_examples;
        for (uint64_t j = s->start[i]; j < s->start[i + 1]; j++) s->next[s->id[j]] += weighted * (double)s->value[j];
    }
}

static double length(const double *v, uint64_t n) {
    double sum = 0;
    for (uint64_t r = 0; r < n; r++) sum += v[r] * v[r];
    return sqrt(sum);
}

/* From about where positive columns lead, but from no direction that somebody has thought out. `along` comes to be u, of
 * length 1; returns L. */
static double iterate(struct sample *s) {
    double value = 0;
    for (uint64_t r = 0; r < s->n_rows; r++) s->along[r] = 0.5 + shmt_unit(shmt_hash64(PURPOSE, s->row[r], 0, 0));
    for (int step = 0; step <= STEPS; step++) {
        const double by = step == 0 ? length(s->along, s->n_rows) : value;
        if (!(by > 0 && isfinite(by))) return 0;
        if (step > 0) memcpy(s->along, s->next, s->n_rows * sizeof *s->along);
        for (uint64_t r = 0; r < s->n_rows; r++) s->along[r] /= by;
        multiply(s);
        value = length(s->next, s->n_rows);
    }
    return value;
}

/* The bias goes where the features take it: u of a column of ones is (M u) / L there. */
static double bias_along(const struct sample *s, double value) {
    double sum = 0;
    for (uint64_t i = 0; i < s->n_examples; i++) sum += score(s, i) * (double)s->weight[i];
    return sum / (double)s->n_examples / value;
}

static void add(struct sample *s, uint64_t bias, float *h) {
    const double value = iterate(s);
    double most = 0;
    if (!(value > 0 && isfinite(value))) return;
    const double of_bias = bias == UINT64_MAX ? 0 : bias_along(s, value);
    for (uint64_t r = 0; r < s->n_rows; r++) most = fmax(most, s->along[r] * s->along[r]);
    most = fmax(most, of_bias * of_bias);
    for (uint64_t r = 0; r < s->n_rows; r++) h[s->row[r]] += (float)(TOGETHER * value * s->along[r] * s->along[r] / most);
    if (bias != UINT64_MAX) h[bias] += (float)(TOGETHER * value * of_bias * of_bias / most);
}

/* ---- the call ---- */

uint64_t shmt_coupling_work_bytes(uint64_t n) {
    const uint64_t of_element = sizeof(uint32_t) + sizeof(float) + sizeof(uint64_t) + 2 * sizeof(double);
    return n * sizeof(uint32_t) + 2 * ELEMENTS * of_element;
}

int shmt_coupling_add(const struct shmt_rows_of *of, const struct shmt_cover *cover, uint64_t bias, float *h,
                      struct shmt_error *e) {
    const uint64_t stride = stride_of(of);
    struct sample s = {0};
    count(of, stride, &s);
    uint32_t *number = calloc(cover->n, sizeof *number);
    const bool made = number && make_room(&s);
    if (made) {
        take(of, cover, stride, number, &s);
        add(&s, bias, h);
    }
    free(number);
    free_sample(&s);
    return made ? 0 : shmt_no_memory(e, "to see which features move together");
}
