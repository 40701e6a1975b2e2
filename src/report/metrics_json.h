/* The first and the last line of a run's metrics (option `metrics`); those between are public. Each is one JSON object in one
 * line with its end, to be freed; NULL: no memory. */
#pragma once

#include <shmtrain/report.h>

/* {"event":"begin","at":0,...}: what is about to run. */
char *shmt_begin_json(const struct shmtrain_report *report);

/* {"event":"end","at":seconds,"error":...}: the whole report, as shmtrain_report_json has it. `error`: the sentence of a run
 * that has failed, or NULL. */
char *shmt_end_json(const struct shmtrain_report *report, double at, const char *error);
