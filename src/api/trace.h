/* Option `trace`: what each worker did when, as a file for Perfetto, written when the run's workers have ended, however they
 * did. What seats note is in ps/trace.h, the format in report/trace_json.h. */
#ifndef SHMT_API_TRACE_H
#define SHMT_API_TRACE_H

#include <stdint.h>

struct shmtrain_store;

/* When reader i of a pass over the data has read: ns from begin_ns on. */
struct shmt_reading {
    uint64_t begin_ns, ns;
};

/* A pass over one of the sets. */
struct shmt_trace_pass {
    char *name;       /* as the data was named; ours */
    const char *what; /* "count", ... */
    uint32_t n;
    struct shmt_reading *reading; /* (n) */
};

/* Of loading, until the trace is written. Part of the store; {0} is none. */
struct shmt_trace_passes {
    struct shmt_trace_pass *pass;
    uint32_t n;
    uint64_t trained_ns; /* when the workers began */
};

/* Before anything is loaded: whether the file can be written, and is none that the run reads (`data`, NULL: none) or writes.
 * Errors: _USAGE, _SYSTEM. Without the option: 0. */
int shmt_trace_check(struct shmtrain_store *store, const char *data);

/* A pass of loading has ended: reader i has read as reading[i] says; (n). Without the option, or without memory, nothing is
 * kept. */
void shmt_trace_loaded(struct shmtrain_store *store, const char *name, const char *what, const struct shmt_reading *reading,
                       uint32_t n);

/* The workers begin; and have ended. A file that cannot be written is a note and a word in the report, no failure of
 * the run. */
void shmt_trace_starts(struct shmtrain_store *store);
void shmt_trace_write(struct shmtrain_store *store);

/* The run is over: its passes are forgotten. */
void shmt_trace_forget(struct shmtrain_store *store);

#endif
