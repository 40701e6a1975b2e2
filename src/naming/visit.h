/* A store with a name, as those see it who have not made it: observers, who map it for reading only, and guests. Called by
 * calls.c, join.c, run.c and store.c; the maker's side is lease.h.
 *
 * A visit makes the handle look as if it had made the run itself: spec, tables, job and report are those of the store that it
 * visits, so that reading parameters and reports works as ever. It ends when the handle is used for something else. */
#pragma once

#include <shmtrain/store.h>
#include <stdbool.h>

#include "naming/manifest.h"
#include "base/error.h"
#include "segment/named.h"

struct shmt_run;

struct shmt_visit {
    bool open;
    bool as_guest; /* mapped for writing, too */
    bool ended;    /* the outcome stands in the report */
    char name[SHMT_NAME_BYTES];
    struct shmt_manifest *manifest; /* a private copy, checked */
    uint32_t *seat, n_seats;        /* those that this guest has */
};

/* Visits store `name`: what the handle had before is gone then; after an error it is all as it was. Errors: see
 * shmtrain_store_observe. */
int shmt_visit_begin(struct shmt_run *run, const char *name, bool as_guest);

/* 1: its run goes on; 0: it is over; _DIED: it has failed, or its maker has died. The sentence goes into `e`. */
int shmt_visit_state(struct shmt_run *run, struct shmt_error *e);

/* Brings the report up to date: epochs, and at the end how it ended. Tells nobody. */
void shmt_visit_refresh(struct shmt_run *run);

/* The descriptor of its file, which the backend has. */
int shmt_visit_file(const struct shmt_run *run);

/* Frees what belongs to the visit, but for the backend. {0} is fine. */
void shmt_visit_end(struct shmt_run *run);
