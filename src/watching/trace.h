/* Option `trace`: what each worker did when, as a file for Perfetto, written when the run's workers have ended, however they
 * did. What seats note is in ps/trace.h, the format in report/trace_json.h. */
#pragma once

struct shmt_call;
struct shmt_config;
struct shmt_run;

/* Before anything is loaded: whether the file can be written, and is none that the run reads (`data`, NULL: none) or writes.
 * Errors: _USAGE, _SYSTEM. Without the option: 0. */
int shmt_trace_check(struct shmt_call *call, const struct shmt_config *config, const char *data);

/* The workers begin; and have ended. A file that cannot be written is a note and a word in the report, no failure of
 * the run. */
void shmt_trace_starts(struct shmt_run *run);
void shmt_trace_write(struct shmt_run *run);
