/* What is in a saved model or a checkpoint. */
#ifndef SHMTRAIN_INSPECT_H
#define SHMTRAIN_INSPECT_H

#include <shmtrain/data.h>
#include <shmtrain/model.h>
#include <shmtrain/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMTRAIN_FILE_TENSORS 384 /* that a file has at most */
#define SHMTRAIN_FILE_NAME    64  /* bytes of a name, with the final 0; longer ones are cut off */

enum shmtrain_file_kind { SHMTRAIN_FILE_MODEL, SHMTRAIN_FILE_CHECKPOINT, SHMTRAIN_FILE_LIBLINEAR, SHMTRAIN_FILE_RECORD };

/* A tensor (rows, width), or (rows) where width is 1. Figures are of its finite elements; NaN: there are none. */
struct shmtrain_tensor_info {
    char name[SHMTRAIN_FILE_NAME]; /* printable */
    char dtype[4];                 /* "F32", "F64", "U32" or "U64" */
    uint32_t is_table;             /* 1: of the model's parameters; 0: state, a ledger, ids */
    uint64_t rows, width, bytes;
    uint64_t not_finite;      /* elements that are infinite, or not a number */
    double least, most, mean; /* elements */
    double nonzero;           /* share of the elements that are not 0; NaN: there are no elements */
    uint64_t reserved[4];
};

/* Where the run of a checkpoint stood, and what it was. Texts are names as in struct shmtrain_report. */
struct shmtrain_checkpoint_info {
    uint32_t epoch, epochs; /* so many are done, of how many */
    uint64_t step, steps;   /* so many steps of the next epoch are done, of how many */
    double seconds;         /* since the run began */
    char ended_by[16];      /* what had ended it, as in struct shmtrain_report; "": it went on */
    char mode[64], write[16], replicas[16];
    uint32_t workers;
    uint32_t batch, chunks, item; /* which of these count says the mode */
    uint64_t seed;
    uint32_t shuffle;
    char optimizer[16], schedule[16];
    double rate, l1, l2;
    uint64_t examples, features, nonzeros; /* of the training data; 0: own worker functions, of which nobody knows */
    uint64_t trained_examples;             /* examples of a pass that the run trains on */
    uint32_t n_clocks;                     /* seats whose clocks are known */
    uint64_t clock_least, clock_most;      /* of them */
    double train_loss, valid_loss;         /* of the last epoch that was done; NaN: none */
    uint32_t is_fit;                       /* 1: an exact fit; the three that follow are of that */
    double objective, gap, tolerance; /* as in struct shmtrain_epoch, behind the last epoch; gap, NaN: nothing is proved yet */
    uint64_t reserved[12];
};

struct shmtrain_file_info {
    uint32_t size;                                            /* of what was filled */
    uint32_t kind;                                            /* enum shmtrain_file_kind */
    uint64_t bytes;                                           /* of the file */
    char model[SHMTRAIN_FILE_NAME], task[SHMTRAIN_FILE_NAME]; /* "": parameters of own worker functions, or of others */
    uint64_t features;
    char feature_ids[SHMTRAIN_FILE_NAME]; /* what they are called in data: "range", "none", "listed", "hashed" */
    uint64_t first_feature;               /* of a range */
    uint32_t bias;                        /* 1: it has one */
    uint32_t n_classes;                   /* 0: a regression, or unknown */
    float classes[SHMTRAIN_MAX_CLASSES];  /* (n_classes) */
    uint32_t n_tensors;
    struct shmtrain_tensor_info tensor[SHMTRAIN_FILE_TENSORS];
    struct shmtrain_checkpoint_info checkpoint; /* meaningless unless it is one */

    /* (n_layers) what the model is made of; 0: it has nothing to show, or this program does not have the model. */
    uint32_t n_layers;
    struct shmtrain_model_layer layer[SHMTRAIN_MODEL_LAYERS];
};

/* As lines of text, and as one line of JSON; `name` is what the file is called. To be freed; NULL: no memory. */
SHMTRAIN_API char *shmtrain_file_info_text(const char *name, const struct shmtrain_file_info *info);
SHMTRAIN_API char *shmtrain_file_info_json(const char *name, const struct shmtrain_file_info *info);

#ifdef __cplusplus
}
#endif
#endif
