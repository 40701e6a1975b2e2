/* What models of classes ask of an example: where it is, and which class it has. */
#pragma once

#include <shmtrain/model.h>

/* Example k of the batch, an index into its data. */
static inline uint64_t shmt_example_at(const struct shmtrain_batch *batch, uint32_t k) {
    return batch->example ? batch->example[k] : batch->first + k;
}

/* The number of a label among the classes, which ascend. Errors: _DATA, left with the session: there is none such. */
static inline int shmt_class_of_label(shmtrain_session *s, const struct shmtrain_settings *with, float label, uint32_t *out) {
    uint32_t from = 0, to = with->n_classes;
    while (to - from > 1) {
        const uint32_t middle = from + (to - from) / 2;
        if (with->classes[middle] <= label)
            from = middle;
        else
            to = middle;
    }
    *out = from;
    if (with->classes[from] == label) return 0;
    return shmtrain_fail(s, SHMTRAIN_E_DATA, "label %g is not one of the %u labels of the training data", (double)label,
                         with->n_classes);
}
