/* Examples for benches: see examples.h. */
#include "examples.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/source.h"

#define SEED 1

void bench_make_examples(uint64_t bytes, uint64_t features, uint64_t nonzeros, struct shmtrain_data *out) {
    char name[128];
    struct shmt_source *source;
    struct shmt_error e = {0};
    struct shmt_totals totals;
    struct shmt_part *part = calloc(1, sizeof *part);
    snprintf(name, sizeof name, "builtin:sparse:examples=%llu,features=%llu,nonzeros=%llu",
             (unsigned long long)(bytes / (8 * nonzeros) + 1), (unsigned long long)features, (unsigned long long)nonzeros);
    if (!part || shmt_source_open(name, SEED, false, &source, &e) < 0) bench_fail("%s", e.text);
    if (shmt_source_count(source, &SHMT_ALL_COLUMNS, 0, 1, part) < 0 || shmt_parts_total(source, part, 1, &totals, &e) < 0)
        bench_fail("%s", part->error.text);
    const struct shmt_arrays into = {.start = bench_shared((totals.n_examples + 1) * sizeof(uint64_t)),
                                     .id = bench_shared(totals.n_nonzeros * sizeof(uint32_t)),
                                     .value = bench_shared(totals.n_nonzeros * sizeof(float)),
                                     .label = bench_shared(totals.n_examples * sizeof(float)),
                                     .columns = SHMT_ALL_COLUMNS};
    float *classes = bench_shared(totals.labels.n * sizeof *classes);
    if (shmt_source_fill(source, 0, 1, part, &into, &e) < 0) bench_fail("%s", e.text);
    shmt_labels_ascending(&totals.labels, classes);
    *out = (struct shmtrain_data){.n_examples = totals.n_examples,
                                  .n_nonzeros = totals.n_nonzeros,
                                  .n_features = (uint32_t)totals.max_id + 1,
                                  .n_labels = totals.labels.n,
                                  .start = into.start,
                                  .id = into.id,
                                  .value = into.value,
                                  .label = into.label,
                                  .classes = classes,
                                  .label_low = totals.label_low,
                                  .label_high = totals.label_high,
                                  .mean_square = totals.mean_square,
                                  .best_loss = shmt_parts_best_loss(part, 1)};
    shmt_source_close(source);
    free(part);
}

struct shmtrain_data bench_part_of_examples(const struct shmtrain_data *data, uint64_t first, uint64_t n) {
    struct shmtrain_data part = *data; /* start[] holds positions in id[] and value[], which stay whole */
    part.n_examples = n;
    part.n_nonzeros = data->start[first + n] - data->start[first];
    part.start += first;
    part.label += first;
    return part;
}

struct bench_bytes bench_bytes_of_examples(const struct shmtrain_data *data) {
    const uint64_t from = data->start[0];
    return (struct bench_bytes){.at = {data->id + from, data->value + from},
                                .bytes = {data->n_nonzeros * sizeof(uint32_t), data->n_nonzeros * sizeof(float)}};
}
