/* The manifest of a named store: all that those who join need to know, in the head of its segment (the first thing in the file
 * behind the segment's header, so that it is found without knowing the layout).
 *
 * Written once by who makes the store, before it says that its run goes on; fixed-width words and offsets only. Whoever joins
 * copies it to private memory, checks the copy against everything that the code below relies on, and uses only the copy:
 * neither a damaged file, nor a foreign or an older one, nor one that changes meanwhile can do harm. */
#pragma once

#include <shmtrain/data.h>

#include "base/atomic.h"
#include "base/line.h"
#include "keeping/trained.h"
#include "ps/spec_fields.h"
#include "train/board.h"

#define SHMT_MANIFEST_VERSION 13
#define SHMT_NOWHERE          UINT64_MAX /* the offset of an array that there is not */

/* What `state` says. */
enum { SHMT_STATE_MAKING, SHMT_STATE_RUNS, SHMT_STATE_OVER, SHMT_STATE_FAILED };

struct shmt_manifest_table {
    char name[32];
    uint64_t rows, l2_rows;
    uint32_t width, reserved;
    struct shmt_tuning tuning;
};

/* A set of examples, as reports name it; and, where guests may have it, where its arrays stand in the contents of its file. */
struct shmt_manifest_data {
    char name[256];
    uint64_t examples, features, nonzeros; /* as reported */
    uint64_t n_examples, n_nonzeros, bytes;
    uint64_t start_off, id_off, value_off, dense_off, label_off, weight_off;
    double mean_square, best_loss;
    float label_low, label_high;
    uint32_t n_features, n_labels;
    uint32_t shared; /* 1: in a file of its own, whose contents have `bytes` */
    uint32_t shape;  /* of an example: channels, then 20 bits of rows, from which its columns follow; 0: nobody knows */
};

struct shmt_manifest {
    uint64_t magic;
    uint32_t version, bytes;
    uint64_t check;    /* of all the rest */
    int64_t made_at;   /* seconds since 1970 */
    uint64_t began_ns; /* monotonic: of the call that made it */
    uint32_t uid;
    int32_t pid;

    unsigned char spec[SHMT_SPEC_PACKED]; /* ps/spec_fields.h; of the spec are also nodes, tables, `deaths` and `cpu` */
    uint32_t place_node[SHMT_MAX_NODES];
    uint8_t place_seat_node[SHMT_MAX_SEATS];
    uint32_t n_tables, n_threads;
    struct shmt_manifest_table table[SHMT_MAX_TABLES];

    /* what is learned */
    char model[64]; /* "": the application's own worker function */
    char model_options[SHMT_MODEL_TEXTS];
    uint64_t n_valid;
    uint32_t n_outputs, bias, group, n_classes;
    struct shmt_feature_ids features;
    uint32_t deaths;                  /* of the spec: 1: workers may die; 2: may be missing then */
    uint32_t with_accuracy, with_auc; /* as reported; observers need not have the model */
    double share;                     /* > 0: validation is this share of the training data */
    float classes[SHMTRAIN_MAX_CLASSES];
    struct shmt_manifest_data train, valid;

    /* an exact fit; fit_tolerance 0: the run is none, and all of this is 0 */
    double fit_tolerance, fit_l1, fit_l2;
    uint64_t fit_note_off;         /* of struct shmt_solve_note, from the board's beginning */
    uint64_t choice_examples;      /* that L2 is chosen from; 0: it is not */
    uint32_t fit_live, fit_scaled; /* enum shmt_solve_live */
    uint32_t choice_parts, choice_held, choice_most_fits, reserved;

    /* what the report says of the machine */
    double load_seconds;
    uint64_t page_bytes;
    uint32_t numa_nodes, cpu; /* cpu: of the spec */
    char blas[64];
};

/* How the run ended, by who made the store. */
struct shmt_outcome {
    double seconds, train_seconds, first_step_seconds, examples_per_second, wait_fraction, lost_updates, lost_lowest,
        lost_highest;
    uint64_t examples, updates, parameter_bytes, parameters_xxh64;
    int32_t status;
    uint32_t stopped;
    struct shmt_error error; /* the sentence, when it failed */
};

struct shmt_head {
    _Atomic uint32_t state; /* released by who makes the store, after what it says has been written */
    uint32_t reserved[SHMT_LINE / 4 - 1];
    struct shmt_manifest manifest; /* from SHMT_STATE_RUNS on */
    struct shmt_outcome outcome;   /* from SHMT_STATE_OVER or _FAILED on */
};

/* The part that follows from the spec; the rest is the caller's. */
void shmt_manifest_of_spec(const struct shmt_spec *spec, struct shmt_manifest *out);

/* The word that says the shape of the data's examples (0 also where there is no room for it: 4,096 channels, or 2^20 rows), and the
 * shape in `data`, whose n_features is set, that a word says. */
uint32_t shmt_manifest_shape(const struct shmtrain_data *data);
void shmt_manifest_take_shape(uint32_t shape, struct shmtrain_data *data);

/* The last thing to be written: magic, version, size and the sum over all. */
void shmt_manifest_seal(struct shmt_manifest *manifest);

/* The board of such a run of so many epochs. Of a manifest whose numbers were checked. */
void shmt_manifest_board(const struct shmt_manifest *manifest, uint32_t epochs, struct shmt_board_plan *out);

/* The spec, complete. NULL: each of its fields is within its bounds, as in a manifest that was checked; else the first that is
 * not. */
const struct shmt_spec_field *shmt_manifest_spec(const struct shmt_manifest *manifest, struct shmt_spec *out);

/* Reads the manifest of store `name` from its file into private memory, and checks everything: of this version; made by this
 * user; numbers in their ranges, texts with an end, a spec that a backend would take, and a file as large as its layout. Errors:
 * _USAGE, in one sentence that names the store; _AGAIN (there is none yet: its run is being prepared), _DIED (and never will be);
 * _SYSTEM, _MEMORY. */
int shmt_manifest_read(int fd, const char *name, struct shmt_manifest *out, struct shmt_spec *spec_out, struct shmt_error *e);

/* What stands in the data's arrays, which models trust: where rows begin, columns below n_features, labels that are finite. */
int shmt_manifest_check_data(const char *name, const struct shmtrain_data *data, struct shmt_error *e);
