/* The report of a run (<shmtrain/report.h>): begun from its configuration, grown from the board while it goes on, completed at its
 * end. By the thread that drives the run. */
#pragma once

#include "workers/run.h"

/* A report of nothing yet: no name is NULL. */
extern const struct shmtrain_report SHMT_NO_REPORT;

void shmt_report_begin(struct shmt_run *run, const struct shmt_crew *crew);
void shmt_report_describe(struct shmt_run *run, uint32_t n_threads); /* what follows from job and spec */
bool shmt_report_take_epoch(struct shmt_run *run); /* copies the next new epoch from the board; false: there is none */
void shmt_report_progress(struct shmt_run *run);   /* copies new epochs from the board and tells the listener */
/* What --count-lost has counted, when the workers have ended; brings the parameters up to it. */
void shmt_report_lost(struct shmt_run *run);
int shmt_report_finish(struct shmt_run *run);
/* A file that the run was to write cannot be: a note, and report.unwritten unless another one was first. */
void shmt_report_unwritten(struct shmt_run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
