/* Records: the decisions of a run in a file.
 *
 * A record is a sealed file of tensors (files/model_file.h: a length, a JSON header, data; XXH64 over all of it) with the note
 * "shmtrain.record", which says what the run was (docs/simulator.md lists it), and two tensors of U64, where updates came in rounds:
 *
 *     record/n          (seats, 1)   gradients of each worker
 *     record/gradients  (sum of n, 5) one worker's behind the other's, each in its order: struct shmt_taped (ps/tape.h)
 *
 * Nothing in a file is believed: who reads one has decisions that can be replayed to their end. */
#pragma once

#include "base/show.h"
#include "configuration/model_options.h"
#include "keeping/checkpoint.h"
#include "ps/tape.h"

#define SHMT_RECORD_FORMAT 1

struct shmt_record {
    char name[SHMT_NAME_SHOWN]; /* of the file, in sentences */
    struct shmt_spec spec;      /* what its table says of notes, max_steps and steps_before */
    char model[40];             /* "": own worker functions */
    char model_options[SHMT_MODEL_TEXTS];
    char data_name[200]; /* for display */
    uint32_t bias;
    struct shmt_data_print data;
    uint64_t begin_xxh64, end_xxh64; /* of the parameters, as in reports: before and behind the run */
    uint64_t *n;                     /* (n_seats); NULL: decisions make no difference (`sync`) */
    struct shmt_taped *gradient;     /* (total) */
    uint64_t total;
    uint32_t epochs; /* whole ones that the gradients are of */
};

/* Errors: as shmt_model_file_write. */
int shmt_record_write(const char *path, const struct shmt_record *record, struct shmt_error *e);

/* What is read is to be freed by shmt_record_free. Errors: _SYSTEM, _DATA (not a record, damaged, or of no run that can have been),
 * _MEMORY. */
int shmt_record_read(const char *path, struct shmt_record **out, struct shmt_error *e);
void shmt_record_free(struct shmt_record *record); /* NULL is fine */
