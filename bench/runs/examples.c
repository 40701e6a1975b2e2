/* Examples for benches: see examples.h. */
#include "bench/runs/examples.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/floors/helpers.h"
#include "data/source.h"

#define SEED 1

/* Counts what `name` names, and gives it arrays: `dense` or sparse. */
static void make(const char *name, bool dense, struct shmtrain_data *out) {
    struct shmt_source *source;
    struct shmt_error e = {0};
    struct shmt_totals totals;
    struct shmt_part *part = calloc(1, sizeof *part);
    if (!part || shmt_source_open(name, SEED, 0, &source, &e) < 0) shmt_measure_fail("%s", e.text);
    if (shmt_source_count(source, &SHMT_ALL_COLUMNS, 0, 1, NULL, part) < 0 ||
        shmt_parts_total(source, part, 1, &totals, &e) < 0)
        shmt_measure_fail("%s", part->error.text);
    const uint32_t features = (uint32_t)totals.max_id + 1;
    struct shmt_arrays into = {.label = shmt_measure_shared(totals.n_examples * sizeof(float)), .columns = SHMT_ALL_COLUMNS};
    if (dense) {
        into.dense = shmt_measure_shared(totals.n_examples * features * sizeof(float));
        into.columns.n_features = features;
    } else {
        into.start = shmt_measure_shared((totals.n_examples + 1) * sizeof(uint64_t));
        into.id = shmt_measure_shared(totals.n_nonzeros * sizeof(uint32_t));
        into.value = shmt_measure_shared(totals.n_nonzeros * sizeof(float));
    }
    float *classes = shmt_measure_shared(totals.labels.n * sizeof *classes);
    if (shmt_source_fill(source, 0, 1, part, &into, &e) < 0) shmt_measure_fail("%s", e.text);
    shmt_labels_ascending(&totals.labels, classes);
    *out = (struct shmtrain_data){.size = sizeof(struct shmtrain_data),
                                  .n_examples = totals.n_examples,
                                  .n_nonzeros = totals.n_nonzeros,
                                  .n_features = features,
                                  .n_labels = totals.labels.n,
                                  .start = into.start,
                                  .id = into.id,
                                  .value = into.value,
                                  .dense = into.dense,
                                  .label = into.label,
                                  .classes = classes,
                                  .label_low = totals.label_low,
                                  .label_high = totals.label_high,
                                  .mean_square = totals.mean_square,
                                  .best_loss = shmt_parts_best_loss(part, 1)};
    shmt_source_close(source);
    free(part);
}

void shmt_make_examples(uint64_t bytes, uint64_t features, uint64_t nonzeros, struct shmtrain_data *out) {
    char name[128];
    snprintf(name, sizeof name, "builtin:sparse:examples=%llu,features=%llu,nonzeros=%llu",
             (unsigned long long)(bytes / (8 * nonzeros) + 1), (unsigned long long)features, (unsigned long long)nonzeros);
    make(name, false, out);
}

void shmt_make_dense(uint64_t bytes, uint64_t features, struct shmtrain_data *out) {
    char name[128];
    snprintf(name, sizeof name, "builtin:dense:examples=%llu,features=%llu",
             (unsigned long long)(bytes / (sizeof(float) * features) + 1), (unsigned long long)features);
    make(name, true, out);
}

struct shmtrain_data shmt_part_of_examples(const struct shmtrain_data *data, uint64_t first, uint64_t n) {
    struct shmtrain_data part = *data; /* start[] holds positions in id[] and value[], which stay whole */
    part.n_examples = n;
    part.n_nonzeros = data->dense ? n * data->n_features : data->start[first + n] - data->start[first];
    if (data->dense)
        part.dense += first * data->n_features;
    else
        part.start += first;
    part.label += first;
    return part;
}

struct shmt_ranges shmt_ranges_of_examples(const struct shmtrain_data *data) {
    const uint64_t from = data->start[0];
    return (struct shmt_ranges){.at = {data->id + from, data->value + from},
                                .bytes = {data->n_nonzeros * sizeof(uint32_t), data->n_nonzeros * sizeof(float)}};
}
