/* Setting examples aside: see split.h. */
#include "loading/split.h"

#include <stdlib.h>

#include "base/random.h"

#define PURPOSE 0x73706c6974 /* "split" */

static int is_valid(uint64_t seed, uint64_t example, double share) {
    return shmt_unit(shmt_hash64(seed, PURPOSE, example, 0)) < share;
}

int shmt_split_make(struct shmt_split *split, uint64_t seed, uint64_t n_examples, double share, struct shmt_error *e) {
    uint64_t n_valid = 0;
    for (uint64_t i = 0; i < n_examples; i++) n_valid += (uint64_t)is_valid(seed, i, share);
    if (n_valid == 0 || n_valid == n_examples)
        return shmt_fail(e, SHMTRAIN_E_DATA, "valid %g of %llu examples leaves one side empty: use another share", share,
                         (unsigned long long)n_examples);
    *split = (struct shmt_split){.n_train = n_examples - n_valid, .n_valid = n_valid};
    split->train_example = malloc(split->n_train * sizeof *split->train_example);
    split->valid_example = malloc(n_valid * sizeof *split->valid_example);
    if (!split->train_example || !split->valid_example) return shmt_no_memory(e, "to set examples aside");
    uint64_t train = 0, valid = 0;
    for (uint64_t i = 0; i < n_examples; i++) {
        if (is_valid(seed, i, share))
            split->valid_example[valid++] = (uint32_t)i;
        else
            split->train_example[train++] = (uint32_t)i;
    }
    return 0;
}

int shmt_split_labels(struct shmt_split *split, const struct shmtrain_data *data, struct shmt_error *e) {
    split->valid_label = malloc(split->n_valid * sizeof *split->valid_label);
    if (!split->valid_label) return shmt_no_memory(e, "for validation labels");
    for (uint64_t i = 0; i < split->n_valid; i++) split->valid_label[i] = data->label[split->valid_example[i]];
    return 0;
}

static uint64_t nonzeros_of(const struct shmtrain_data *data, uint32_t example) {
    if (!data->dense) return data->start[example + (uint64_t)1] - data->start[example];
    const float *row = data->dense + (uint64_t)example * data->n_features;
    uint64_t n = 0;
    for (uint32_t j = 0; j < data->n_features; j++) n += row[j] != 0;
    return n;
}

void shmt_split_nonzeros(const struct shmt_split *split, const struct shmtrain_data *data, uint64_t *train_out,
                         uint64_t *valid_out) {
    uint64_t valid = 0;
    for (uint64_t i = 0; i < split->n_valid; i++) valid += nonzeros_of(data, split->valid_example[i]);
    *valid_out = valid;
    *train_out = data->n_nonzeros - valid;
}

void shmt_split_free(struct shmt_split *split) {
    free(split->train_example);
    free(split->valid_example);
    free(split->valid_label);
    *split = (struct shmt_split){0};
}
