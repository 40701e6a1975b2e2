/* Parameters and the optimizer's state as the application sees them: in the backend of the last run as long as that is there,
 * else here. Between two runs they are taken out of one backend and given to the next. Rows are features here; in which order a
 * backend has them is the affair of places.h.
 *
 * State is kept with its parameters when the next run's optimizer can go on with it: the same rule with the same words for each
 * parameter (adam has others in the live modes than in `aggregate`); for ftrl, whose weights are a function of its state, also
 * with the same constants. Otherwise it begins anew, from the parameters as they are. */
#pragma once

#include <pthread.h>

#include "keeping/places.h"
#include "keeping/trained.h"

/* A table as the application declared it, and its parameters while no backend holds them. */
struct shmt_declared {
    struct shmt_table_spec table;
    uint64_t l2_rows;
    struct shmt_tuning tuning;
    float *value; /* (rows, width), or NULL: zero */
    float *state; /* (kept.planes, rows, width), or NULL: to begin anew */
};

/* What the optimizer's state in `state` belongs to. */
struct shmt_kept {
    struct shmt_rule rule;
    float rate;      /* base */
    uint32_t planes; /* 0: no state is kept */
    uint64_t steps;  /* batches that went into it (aggregate) */
};

/* `lock` protects tables and `held`, which the application's thread may read while a run goes on in the background; the run's
 * thread alone changes them. */
struct shmt_parameters {
    pthread_mutex_t lock;
    struct shmt_declared table[SHMT_MAX_TABLES];
    uint32_t n_tables;
    struct shmt_held held; /* by the backend of the last run, or of the one that goes on; no store: they are in `table` */
    struct shmt_kept kept;
    int save_as; /* the format that models are to be saved in (save.c); 0: one that holds all */
    bool has_run;
    bool is_of_run;              /* they are what a run of this store has left */
    struct shmt_trained trained; /* what they are a model of; it outlives later runs that fail before they begin */
};

void shmt_parameters_init(struct shmt_parameters *params); /* {0} */
void shmt_parameters_fini(struct shmt_parameters *params);

/* Declares a table: its number, or a status. */
int shmt_parameters_add(struct shmt_parameters *params, const char *name, uint64_t rows, uint64_t width, struct shmt_error *e);

/* There are none any more: neither tables nor the backend that held them. */
void shmt_parameters_forget(struct shmt_parameters *params);

/* In their place tables, and what they were trained with, as after a run. Both are empty behind it. */
void shmt_parameters_move_in(struct shmt_parameters *params, struct shmt_declared *table, uint32_t n_tables,
                             struct shmt_trained *trained);

/* Takes parameters and state out of the backend that holds them, and destroys it. */
int shmt_parameters_take(struct shmt_parameters *params, struct shmt_error *e);

/* Whether the spec's optimizer can go on with the state that was taken. Then steps_before is to be set. */
bool shmt_parameters_have_state(const struct shmt_parameters *params, const struct shmt_spec *spec);

/* Puts them into a backend that was just made, which holds them from now on. */
int shmt_parameters_give(struct shmt_parameters *params, const struct shmt_held *to, struct shmt_error *e);

/* Rows of a table, as shmtrain_store_read and _write. Reading may be done while a run goes on. */
int shmt_parameters_read(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, float *out, struct shmt_error *e);
int shmt_parameters_write(struct shmt_parameters *params, int t, uint64_t row, uint64_t n, const float *in,
                          struct shmt_error *e);

/* The hash that reports have of them all, XXH64 with seed 0: tables in order, rows in order, little-endian f32. On the way `see`, unless
 * it is NULL, is shown n rows of a table at a time, from `row` on. For the run's thread, while a backend holds them. Errors: _MEMORY,
 * and those of shmt_places_read. */
typedef void shmt_parameters_see(void *arg, const struct shmt_table_spec *table, uint64_t row, uint64_t n, const float *rows);
int shmt_parameters_hash(const struct shmt_parameters *params, shmt_parameters_see *see, void *arg, uint64_t *out,
                         struct shmt_error *e);
