/* Option `metrics`: lines of JSON about a run while it goes on, in a file. Written by the thread that drives the run, whether
 * anybody listens or not. Runs that are joined or observed have none here: their maker writes them. */
#pragma once

#include <shmtrain/report.h>
#include <stdbool.h>

struct shmt_run;

/* Known here alone; {0} is none. */
struct shmt_metrics {
    int fd; /* -1: the file is made when the run begins */
    bool open, begun;
    bool goes_on; /* behind what is there: a descriptor that was named */
};

/* Before anything is loaded: opens the file, which stays as it was until the run begins; where there is none, only whether it
 * can be made. `data` as in training; NULL: none. Errors: _USAGE (no regular file, "-", a file that the run reads), _SYSTEM.
 * Without the option: 0. */
int shmt_metrics_open(struct shmt_run *run, const char *data);

/* What has happened. A file that takes no more is given up, with a note and a word in the report: the run goes on. */
void shmt_metrics_begin(struct shmt_run *run);
void shmt_metrics_progress(struct shmt_run *run, const struct shmtrain_progress *now);
void shmt_metrics_steps(struct shmt_run *run, const struct shmtrain_steps *steps);
void shmt_metrics_epoch(struct shmt_run *run, const struct shmtrain_epoch *epoch);

/* The last line, when the run had begun; closes the file. `rc` is how the run ended; returned. */
int shmt_metrics_end(struct shmt_run *run, int rc);
