/* Libraries that are loaded when they are first needed, because of what they do when they are loaded: start threads, read the
 * environment, bring a dozen others. Loaded before workers are forked, the first kind would have threads in the wrong process. Called by
 * blas.c and parallel.c of math, by files/archive.c and by carriers/zmq_library.c. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* An environment variable that stands at `value` while a library is loaded; `always`: even where the user has set it. */
struct shmt_library_setting {
    const char *variable, *value;
    bool always;
};

/* Loads `file` for good, its symbols seen by nobody else; NULL: dlerror says why. The environment is changed, and restored,
 * only where this process has one thread, as a forked worker has: no other thread can be reading it then. */
void *shmt_library_load(const char *file, const struct shmt_library_setting *setting);

/* Whether this process has the library already, whoever loaded it. */
bool shmt_library_is_loaded(const char *file);

/* *function_out, a pointer to a function: what `name` is in the library; NULL where it is not there. */
void shmt_library_find(void *library, const char *name, void *function_out);

/* A function of a library, and where its pointer goes in a struct of pointers to functions. */
struct shmt_library_call {
    const char *name;
    size_t at;
};

/* Loads `file` for good, and fills the struct. false: it is not there, or lacks a function; *why_out says why, until the next call of
 * the dynamic loader on this thread. */
bool shmt_library_calls(const char *file, const struct shmt_library_call *call, size_t n, void *out, const char **why_out);
