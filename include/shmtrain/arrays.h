/* Data that the application has in memory: rows in compressed form or dense rows, labels and weights.
 *
 * The application gives arrays a name, and then passes "arrays:NAME" wherever a call takes data: shmtrain_store_train,
 * _start_training, _evaluate, _predict, _predict_into, _data_info, _plan and _convert, and option `valid`. Everything else
 * is as with files: checkpoints, names that guests join, all options. In `sync` parameters have the same bits as from the same
 * data in LIBSVM text, and so has the model's file, but for two cases: of dense rows it says that features have no ids, and
 * with n_features above the largest id it has rows for features that do not occur, too. */
#ifndef SHMTRAIN_ARRAYS_H
#define SHMTRAIN_ARRAYS_H

#include <shmtrain/status.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct shmtrain_store;

/* One set of examples, in one of two layouts. Examples, entries and array elements are counted from 0, here and in messages.
 *
 * Sparse (`start` is set): example i owns the entries start[i] .. start[i + 1] - 1, each an id and a value. Ids ascend
 * within an example, and none occurs twice. With `n_features` above 0 the features are the ids 0 .. n_features - 1. With 0
 * the ids are read as those of a file: they begin at 1 where none is 0, those that occur are numbered where they are large
 * or far apart, and option hash-bits hashes them.
 *
 * Dense (`dense` is set): example i is dense[i * stride .. i * stride + n_features - 1].
 *
 * Arrays are no table (CSV): their values are taken as they are. A run counts every column from 0 and knows no missing numbers,
 * and a NaN is refused. A model that was trained on a table, or a run that begins with one, wants what it makes of a table's
 * numbers: ids as <shmtrain/data.h> has them (shmtrain_store_feature_id names each); as value the number less what its column
 * is counted from (counted_from of struct shmtrain_data_info: mostly 0, and the line of a note where it is not); for a number
 * that is missing the column's mean in training, and 1 for its mark, if the model has one. To pass the table in a file is
 * simpler.
 *
 * Labels, values and weights are finite, and weights not negative. Weights are factors of an example's loss and gradient in
 * training, and of its loss and squared error in shmtrain_store_evaluate, whose other figures count examples; validation
 * during a run does not weight. Option class-weight multiplies them, option weights does not go with them, and
 * shmtrain_store_convert refuses them: a cache holds none.
 *
 * What is not used is 0. `size` says which fields the caller's program knows: those of a later version count as 0. */
struct shmtrain_arrays {
    uint32_t size;     /* sizeof(struct shmtrain_arrays) */
    uint32_t borrowed; /* 1: the arrays are used where they are; 0: they are copied by shmtrain_store_arrays */
    uint64_t n_examples;
    uint64_t n_features;              /* dense: values of a row; sparse: see above */
    uint64_t n_entries;               /* sparse: length of `id` and `value` */
    const uint64_t *start;            /* (n_examples + 1) ascending, none above n_entries */
    const uint32_t *id;               /* (n_entries) this or `wide_id` */
    const uint64_t *wide_id;          /* (n_entries) */
    const float *value;               /* (n_entries); NULL: every value is 1 */
    const float *dense;               /* (n_examples, stride) */
    uint64_t stride;                  /* floats from one row to the next, at least n_features; 0: n_features */
    const float *label;               /* (n_examples); NULL: there are none, for predictions only */
    const float *weight;              /* (n_examples); NULL: all 1 */
    uint32_t channels, height, width; /* the shape of an example (<shmtrain/data.h>): the product is n_features; all 0: none */
};

/* Names arrays, in place of what had the name before; `arrays` NULL: takes the name back. `name`: 1 to 40 letters, digits,
 * '_', '-' and '.'. The struct itself is copied.
 *
 * Copied arrays may be freed when this call has returned. Borrowed ones stay the caller's: they must be there, unchanged,
 * while a call uses them (a run in the background: until shmtrain_store_step has returned 0 or less), and need not be there
 * otherwise. Workers train on borrowed arrays without a copy, as processes and as threads, where the model wants their
 * layout (dense rows without gaps for a dense model; for others `start` from 0, `id`, n_features above 0, no value that is
 * 0), the run has no name, its memory is not placed on several NUMA nodes and columns keep their numbers (option columns:
 * `given` makes sure). Otherwise they are copied once more while the run lasts, and a note says why. Validation data,
 * evaluations and predictions likewise.
 *
 * Pointers and sizes are checked here. What is in the arrays is checked by the first call that uses them, by all workers
 * at once, and refused with _DATA, example and entry. What cannot be checked: that the arrays are as long as they are said
 * to be. Errors: _USAGE (the name; sizes; a pointer that is missing, too much or not aligned; a shape of another product
 * than n_features; a run is going on), _DATA (start[0] of arrays that are to be copied is above n_entries), _MEMORY. */
SHMTRAIN_API int shmtrain_store_arrays(struct shmtrain_store *store, const char *name, const struct shmtrain_arrays *arrays);

/* Where predictions go. */
struct shmtrain_predictions {
    uint32_t size;          /* sizeof(struct shmtrain_predictions) */
    uint32_t probabilities; /* 1: outputs are probabilities; 0: scores */
    uint64_t n_examples;    /* room for so many examples */
    float *label;           /* (n_examples) what each is predicted to be, see shmtrain_predicted; NULL: not wanted */
    float *output;          /* (n_examples, outputs) row-major; outputs: shmtrain_store_outputs; NULL: not wanted */
};

/* Outputs that the model (after _train or _load) has for each example: 1 for two classes or a regression, else one for each
 * class. Errors: _USAGE (there is no model; a run is going on). */
SHMTRAIN_API int shmtrain_store_outputs(struct shmtrain_store *store);

/* As shmtrain_store_predict, of any data, but into arrays: element i is of example i, and elements beyond the last example are
 * not written. Errors: as there; _USAGE (`into`; no room for all examples: nothing has been written, but for text that is
 * read line by line, because memory has no room for it, the examples that there was room for). */
SHMTRAIN_API int shmtrain_store_predict_into(struct shmtrain_store *store, const char *data,
                                             const struct shmtrain_predictions *into);

#ifdef __cplusplus
}
#endif
#endif
