/* Passes over the data while it is loaded: who read when, as a trace tells it (watching/trace.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* When reader i of a pass over the data has read: ns from begin_ns on. */
struct shmt_reading {
    uint64_t begin_ns, ns;
};

/* A pass over one of the sets. */
struct shmt_read_pass {
    char *name;       /* as the data was named; ours */
    const char *what; /* "count", ... */
    uint32_t n;
    struct shmt_reading *reading; /* (n) */
};

/* Of loading, until the trace is written; {0} is none. */
struct shmt_readings {
    bool kept; /* by a run that is traced */
    struct shmt_read_pass *pass;
    uint32_t n;
};

/* One has ended: reader i has read as reading[i] says; (n). Nothing, unless it is to be `kept`, or without memory. */
void shmt_readings_add(struct shmt_readings *passes, const char *name, const char *what, const struct shmt_reading *reading,
                       uint32_t n);

void shmt_readings_forget(struct shmt_readings *passes); /* {0} is fine */
