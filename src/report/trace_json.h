/* A trace in the Trace Event Format of Chrome's tools, which Perfetto (ui.perfetto.dev) and chrome://tracing open: an object
 * with "traceEvents" and, for people, "otherData". Called by whoever has the events (watching/trace.c); written as it comes,
 * because there may be millions. Times are nanoseconds here and microseconds, with three places, in the file; no number
 * depends on the locale.
 *
 * Numbers of processes and threads begin at 1: tools take 0 for a processor that rests. Threads have numbers of their own
 * among all, and the first one of a process has the process's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes to `out`, whose errors are its owner's to look at (ferror). */
struct shmt_trace_json {
    FILE *out;
    bool any; /* something stands in the list */
};

/* What a tool shows with an event, or with the whole trace. */
struct shmt_trace_arg {
    const char *key;
    const char *text; /* any bytes; NULL: `number` is the value */
    uint64_t number;
};

/* One "complete event": the thread did `name` from begin_ns, for ns. */
struct shmt_trace_line {
    const char *name, *category;
    uint32_t pid, tid;
    uint64_t begin_ns, ns;
    const struct shmt_trace_arg *arg;
    uint32_t n_args;
};

void shmt_trace_json_begin(struct shmt_trace_json *json, FILE *out);
/* What a process or thread is called; tools show those with a smaller `place` first. */
void shmt_trace_json_process(struct shmt_trace_json *json, uint32_t pid, const char *name, uint32_t place);
void shmt_trace_json_thread(struct shmt_trace_json *json, uint32_t pid, uint32_t tid, const char *name, uint32_t place);
void shmt_trace_json_event(struct shmt_trace_json *json, const struct shmt_trace_line *line);
/* Numbers that hold from then on, until the next ones of the same name. */
void shmt_trace_json_counter(struct shmt_trace_json *json, const char *name, uint32_t pid, uint64_t at_ns,
                             const struct shmt_trace_arg *arg, uint32_t n_args);
void shmt_trace_json_end(struct shmt_trace_json *json, const struct shmt_trace_arg *other, uint32_t n_others);
