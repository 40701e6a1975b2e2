/* Several sets of ids as one, in ascending order, by any number of threads.
 *
 * Called by whoever has let readers gather a set each. Phases: sort, cut, merge, close, number. Of sort, merge and number each
 * part is done once, by any thread, and one phase is over before the next begins; cut and close are for one thread. What comes
 * out does not depend on the number of parts. */
#pragma once

#include "data/ids.h"

/* Begins with the first five set. */
struct shmt_ids_join {
    struct shmt_ids *set; /* (n_sets), which are used up: nothing can be found in them any more */
    uint32_t n_sets;
    uint32_t n_parts;              /* of merge and number */
    const char *name;              /* of the data, for sentences */
    const _Atomic uint32_t *stop;  /* other than 0 ends a phase; relaxed: it tells nothing but itself. NULL: nothing does */
    uint64_t *id;                  /* room for all of them */
    struct shmt_ids_stretch *part; /* (n_parts) */
    struct shmt_ids out;
};

/* Sorts set s of n_sets. Errors, of all phases: _MEMORY, _STOPPED, _DATA (too many ids). */
int shmt_ids_join_sort(struct shmt_ids_join *join, uint32_t s, struct shmt_error *e);

/* Cuts what there is into parts. */
int shmt_ids_join_cut(struct shmt_ids_join *join, struct shmt_error *e);

/* Merges part p of n_parts. */
int shmt_ids_join_merge(struct shmt_ids_join *join, uint32_t p, struct shmt_error *e);

/* Closes the gaps between the parts, and makes room for looking ids up. */
int shmt_ids_join_close(struct shmt_ids_join *join, struct shmt_error *e);

/* Lets the ids of part p of n_parts be found. When all are done, join->out is the caller's. */
int shmt_ids_join_number(struct shmt_ids_join *join, uint32_t p, struct shmt_error *e);

/* Gives back what the phases have taken, but for join->out. */
void shmt_ids_join_end(struct shmt_ids_join *join);

/* All of it by one thread. */
int shmt_ids_join(struct shmt_ids *sets, uint32_t n_sets, const char *name, struct shmt_ids *out, struct shmt_error *e);
