/* The configuration of a store, and the one table that describes it: names, letters, defaults, environment, help and
 * parsing. */
#ifndef SHMT_API_OPTIONS_H
#define SHMT_API_OPTIONS_H

#include <shmtrain/store.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SHMT_KEEP_BEST UINT64_MAX

enum { SHMT_MOST_OPTIONS = 128 }; /* rows of the table */

/* As set; "automatic" values (0, NaN or "") are resolved when a run begins. */
struct shmt_config {
    uint64_t workers; /* 0: the cores that one may use */
    uint64_t threads, epochs, batch, group, seed;
    uint64_t item;                  /* 0: by the model */
    uint64_t steps;                 /* 0: no limit */
    double time_limit, target_loss; /* seconds; NaN: none */
    uint64_t patience;              /* epochs; 0: any number */
    uint64_t max_respawns;          /* of each worker */
    char *checkpoint, *checkpoint_every, *init_from;
    uint64_t keep; /* checkpoints; 0: all; SHMT_KEEP_BEST: none, but the best epoch's parameters */
    uint64_t resume;
    char *on_death, *in_flight;
    char *stall_timeout, *on_stall; /* a time, or "none" */
    uint64_t chunks;                /* 0: by the size of the batch */
    double rate;                    /* NaN: from the data and the mode */
    double power;                   /* NaN: by the mode */
    double l1, l2;
    double tolerance, c;                   /* NaN: none */
    double momentum, beta2, epsilon, beta; /* constants of the optimizers */
    double warmup, decay_every, decay_by;  /* epochs, epochs, factor: of the schedule */
    uint64_t count_lost;
    uint64_t shards; /* of each table; 0: one for each node */
    uint64_t bias, shuffle, cache, skip_bad_lines;
    uint64_t hash_bits;                                /* 0: ids are not hashed */
    uint64_t guests;                                   /* places for workers that join; counts with a name only */
    char *columns;                                     /* "auto": renumbered where that pays; "given" */
    char *name;                                        /* of the store; "": none */
    char *mode;                                        /* "auto": by the model's cost */
    char *write, *staleness, *late, *replicas, *merge; /* "": as the mode says */
    uint64_t quorum, merge_every;                      /* 0: as the mode says */
    uint64_t measure;
    uint64_t log_every;                                                     /* steps; 0: none */
    char *cpu;                                                              /* "auto", or a path that there is */
    char *slow, *race_window, *metrics, *trace;                             /* "": nobody, nowhere */
    char *input_format, *label, *delimiter, *header, *categorical, *ignore; /* of tables as text */
    bool given[SHMT_MOST_OPTIONS]; /* [i]: row i was set, to what is not "automatic" or off */
    char *model, *optimizer, *schedule, *scale, *valid, *weights, *class_weight, *backend, *spawn, *bind, *numa, *hugepages,
        *placement;
};

/* How an option's value is parsed, and where it goes. */
enum shmt_option_kind { SHMT_OPTION_COUNT, SHMT_OPTION_REAL, SHMT_OPTION_SWITCH, SHMT_OPTION_CHOICE, SHMT_OPTION_TEXT };

struct shmt_option_row {
    struct shmtrain_option option;
    enum shmt_option_kind kind;
    size_t offset;       /* of its field in struct shmt_config: uint64_t (COUNT, SWITCH), double (REAL), char * */
    double least, most;  /* COUNT, REAL */
    const char *choices; /* CHOICE: "a|b"; COUNT, REAL: the word for "automatic" (0, NaN), or NULL */
};

/* Row i of the table, from 0; NULL behind the last. */
const struct shmt_option_row *shmt_option_row_at(size_t i);

/* Every option at its default. Errors: _MEMORY. */
int shmt_config_init(struct shmt_config *config, struct shmt_error *e);
void shmt_config_fini(struct shmt_config *config);

/* Parses and sets one option. Errors: _USAGE; nothing changes then. `given_as` is how the user wrote it ("--rate",
 * "SHMTRAIN_RATE"). */
int shmt_config_set(struct shmt_config *config, const char *name, const char *given_as, const char *value,
                    struct shmt_error *e);

/* Whether an option was set, by whatever way, to anything but "automatic" or off. */
bool shmt_config_is_given(const struct shmt_config *config, const char *name);

/* The first of `options` (up to a NULL) that is; NULL: none. */
const char *shmt_config_any_given(const struct shmt_config *config, const char *const *options);

/* "4" or "inf" (SHMT_STALENESS_INF); false: neither. */
bool shmt_config_staleness(const char *value, uint64_t *out);

int shmt_config_set_from_environment(struct shmt_config *config, struct shmt_error *e);

#endif
