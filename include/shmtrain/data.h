/* Training data as models see it: examples in compressed sparse rows. */
#ifndef SHMTRAIN_DATA_H
#define SHMTRAIN_DATA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* n_examples rows over n_features columns. Example i owns the nonzeros start[i] .. start[i + 1] - 1; their columns ascend.
 * All arrays are read-only and shared by all workers. */
struct shmtrain_data {
    uint64_t n_examples, n_nonzeros;
    uint32_t n_features;         /* columns are below this */
    uint32_t n_labels;           /* distinct labels: 1, 2, or 3 for "more than two" */
    const uint64_t *start;       /* (n_examples + 1) */
    const uint32_t *id;          /* (n_nonzeros) column */
    const float *value;          /* (n_nonzeros); NULL when every value is 1 */
    const float *label;          /* (n_examples) as in the source */
    float label_low, label_high; /* the smallest and the largest label */
    double mean_square;          /* mean over the examples of the sum of squared values */
    double best_loss;            /* mean logistic loss of the model that made the data; NaN where nobody knows */
};

#ifdef __cplusplus
}
#endif
#endif
