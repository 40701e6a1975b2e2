/* Options that were given, and do nothing in a run. */
#pragma once

#include "workers/run.h"

/* A line of the log for each: "--momentum has no effect with --optimizer sgd". The run's spec and job are complete. */
void shmt_note_effects(const struct shmt_run *run);
