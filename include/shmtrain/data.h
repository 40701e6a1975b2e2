/* Training data as models see it: examples in compressed sparse rows, or as rows of a dense matrix. */
#ifndef SHMTRAIN_DATA_H
#define SHMTRAIN_DATA_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_MAX_CLASSES 1024 /* distinct labels that are kept track of */

/* Ids of a table's features. A column of numbers has its number among the columns that are features, from 1 on; its mark, which is 1
 * where a number is missing (or there, see struct shmtrain_data_info), has SHMTRAIN_ID_MARK and that number. A value of a
 * category has SHMTRAIN_ID_CATEGORY and 63 bits of a hash. */
#define SHMTRAIN_ID_MARK     ((uint64_t)1 << 62)
#define SHMTRAIN_ID_CATEGORY ((uint64_t)1 << 63)

/* n_examples rows over n_features columns, in one of two layouts, as the model asks for (struct shmtrain_traits, `rows`).
 * Sparse: example i owns the nonzeros start[i] .. start[i + 1] - 1; their columns ascend, unless the model says that numbers of
 * columns do not matter (columns_alike). Dense: example i is the row dense[i * n_features ..], and start, id and value are
 * NULL. All arrays are read-only and shared by all workers.
 *
 * Examples that are images (IDX and NumPy files of them, CIFAR-10, builtin:digits, arrays of an application that says so) have a shape:
 * column (c * height + y) * width + x is channel c of the pixel in row y and column x. With a shape columns stand in this order,
 * and all of them are there: channels * height * width is n_features. Where columns have been renumbered, or their meaning is not
 * known, all three are 0. */
struct shmtrain_data {
    uint32_t size;                    /* as the library knows it: SHMTRAIN_HAS */
    uint64_t n_examples, n_nonzeros;  /* n_nonzeros: values other than 0, in either layout */
    uint32_t n_features;              /* columns are below this */
    uint32_t n_labels;                /* distinct labels; SHMTRAIN_MAX_CLASSES + 1 for more than SHMTRAIN_MAX_CLASSES */
    const uint64_t *start;            /* (n_examples + 1) */
    const uint32_t *id;               /* (n_nonzeros) column */
    const float *value;               /* (n_nonzeros); NULL when every value is 1 */
    const float *dense;               /* (n_examples, n_features); NULL: the layout is sparse */
    const float *label;               /* (n_examples) as in the source */
    const float *weight;              /* (n_examples) factor of the example's loss and gradient; NULL: all 1 */
    const float *classes;             /* (n_labels) the distinct labels, ascending; NULL for more than SHMTRAIN_MAX_CLASSES */
    float label_low, label_high;      /* the smallest and the largest label */
    double mean_square;               /* mean over the examples of the sum of squared values */
    double best_loss;                 /* mean loss of the model that made the data; NaN where nobody knows */
    uint32_t channels, height, width; /* of an example; all 0: nobody knows */
};

#ifdef __cplusplus
}
#endif
#endif
