/* Options `record` and `replay`: a run's decisions into a file, and out of it. Called by running/run.c and train.c, by the thread that
 * drives the run. Without the options every function returns 0 and does nothing. */
#pragma once

#include "recording/record_file.h"

struct shmt_run;

struct shmt_recording {
    struct shmt_record *record; /* that is replayed, or to be written; NULL: neither */
    struct shmt_data_print data;
    bool has_data;
};

/* Before anything is loaded: checks the name of the file that is to be written, or reads the one to replay. `data`: as in
 * shmt_trace_check. Errors: _USAGE, _SYSTEM, _DATA, _MEMORY. */
int shmt_recording_begin(struct shmt_run *run, const char *data);

/* Pieces and policy are settled, rates need not be: sets spec.tape, or refuses what cannot be kept. Errors: _USAGE, with what to do. */
int shmt_recording_plan(struct shmt_run *run, uint32_t n_threads);

/* What is trained on. */
void shmt_recording_take_data(struct shmt_run *run, const struct shmtrain_data *data);

/* The store is made and has its parameters, workers do not exist: refuses to replay what is another run. Errors: _USAGE, _MEMORY. */
int shmt_recording_start(struct shmt_run *run);

/* The workers have ended, with `rc`, and the report is complete: writes the file, or compares the parameters. A file that cannot be
 * written is a note and a word in the report, as of a trace. Returns rc; or _DATA, where parameters differ. */
int shmt_recording_end(struct shmt_run *run, int rc);

/* Whatever has happened. */
void shmt_recording_close(struct shmt_run *run);
