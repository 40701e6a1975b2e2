/* The configuration of a store, and the one table that describes it: names, letters, defaults, environment, help and
 * parsing. */
#pragma once

#include <shmtrain/store.h>
#include <stdbool.h>
#include <stddef.h>

#include "configuration/cluster.h"
#include "configuration/every.h"
#include "base/cpu.h"
#include "base/error.h"
#include "consistency/mode.h"
#include "ps/slow.h"
#include "configuration/spawn.h"
#include "fibers/sim.h"

#define SHMT_KEEP_BEST UINT64_MAX

enum { SHMT_MOST_OPTIONS = 128 }; /* rows of the table */

/* Choices that no other header has, as their rows list them. */
enum { SHMT_FLIGHT_REDO, SHMT_FLIGHT_SKIP };
enum { SHMT_STALL_REPORT, SHMT_STALL_KILL, SHMT_STALL_ABORT };
enum { SHMT_ROLE_WORKER, SHMT_ROLE_PS, SHMT_ROLE_CHIEF, SHMT_ROLE_MASTER }; /* or SHMT_UNSAID */
enum { SHMT_SCALING_AUTO, SHMT_SCALING_YES, SHMT_SCALING_NO };
enum { SHMT_COLUMNS_AUTO, SHMT_COLUMNS_GIVEN };
enum { SHMT_BINDING_CORE, SHMT_BINDING_NODE, SHMT_BINDING_NONE };
enum { SHMT_NUMA_AUTO, SHMT_NUMA_INTERLEAVE, SHMT_NUMA_BIND, SHMT_NUMA_OFF };
enum { SHMT_OPTIMIZER_AUTO, SHMT_OPTIMIZER_FIRST }; /* SHMT_RULE_SGD, and so on */
enum { SHMT_SCHEDULE_AUTO, SHMT_SCHEDULE_FIRST };   /* SHMT_RATE_CONSTANT, and so on */

/* What texts say, as they were parsed when they were set. */
struct shmt_config_parsed {
    struct shmt_policy mode; /* not of "auto" */
    uint64_t staleness;      /* not of "" */
    struct shmt_slow_plan slow;
    uint64_t race_ns; /* 0: none */
    double race_share;
    enum shmt_cpu cpu;
    uint64_t stall_timeout_ns; /* 0: none */
    struct shmt_every checkpoint_every;
    struct shmt_spawn spawn;
    struct shmt_sim sim;
    struct shmt_cluster hosts;               /* of a run: those of hosts or of worker-hosts (role.h) */
    struct shmt_cluster listed, workers, ps; /* options hosts, worker-hosts, ps-hosts */
    uint64_t host_timeout_ns;
};

#define SHMT_MOST_OWN 32

struct shmt_own_option {
    char *name, *text;
    bool of_environment; /* not set by the caller: models that do not have it leave it alone */
};

/* As set; "automatic" values (0, NaN or "") are resolved when a run begins. */
struct shmt_config {
    uint64_t workers; /* 0: the cores that one may use */
    uint64_t threads, epochs, batch, group, seed;
    uint64_t fiber_stack;                            /* KiB */
    uint64_t item;                                   /* 0: by the model */
    uint64_t steps;                                  /* 0: no limit */
    double time_limit, target_loss;                  /* seconds; NaN: none */
    uint64_t patience;                               /* epochs; 0: any number */
    uint64_t max_respawns;                           /* of each worker */
    char *checkpoint, *checkpoint_every, *init_from; /* a time, steps or epochs */
    uint64_t keep; /* checkpoints; 0: all; SHMT_KEEP_BEST: none, but the best epoch's parameters */
    uint64_t resume;
    uint64_t on_death, in_flight, on_stall; /* enum shmt_on_death, ... */
    char *stall_timeout;                    /* a time, or "none" */
    uint64_t chunks;                        /* 0: by the size of the batch */
    double rate;                            /* NaN: from the data and the mode */
    double power;                           /* NaN: by the mode */
    double l1, l2;
    double tolerance, c;          /* NaN: none */
    double momentum, beta2, beta; /* constants of the optimizers */
    double epsilon, rho;          /* NaN: by the optimizer */
    double weight_decay;          /* NaN: by the mode */
    double clip_value;            /* 0, NaN: none */
    double clip_norm;             /* 0: none; NaN: by the model */
    uint64_t staleness_aware;
    uint64_t cache_pulls;         /* clocks; 0: pulls are not cached */
    double warmup;                /* epochs; NaN: by the model and the mode */
    double decay_every, decay_by; /* epochs, factor: of the schedule */
    uint64_t count_lost;
    uint64_t shards; /* of each table; 0: one for each node */
    uint64_t bias, shuffle, cache, skip_bad_lines;
    uint64_t hash_bits; /* 0: ids are not hashed */
    uint64_t guests;    /* places for workers that join; counts with a name only */
    uint64_t columns;   /* auto: renumbered where that pays; given */
    char *name;         /* of the store; "": none */
    char *hosts;        /* "": this one alone */
    uint64_t rank;      /* of this host; counts with hosts only */
    uint64_t role;      /* SHMT_UNSAID, SHMT_ROLE_WORKER, ... */
    uint64_t task_index;
    char *ps_hosts, *worker_hosts;
    char *key, *peers; /* files; "": none */
    uint64_t insecure;
    char *host_timeout; /* a time */
    uint64_t wire;      /* enum shmt_wire */
    double top_k;       /* 1: everything */
    char *mode;         /* "auto": by the model's cost */
    char *staleness;    /* "": as the mode says */
    struct shmt_axes axes;
    uint64_t measure;
    uint64_t log_every;                                                     /* steps; 0: none */
    char *cpu;                                                              /* "auto", or a path that there is */
    char *slow, *race_window, *metrics, *trace, *record, *replay;           /* "": nobody, nowhere */
    char *input_format, *label, *delimiter, *header, *categorical, *ignore; /* of tables as text */
    struct shmt_own_option own[SHMT_MOST_OWN]; /* what was set of models' own options (model_options.h) */
    uint32_t n_own;
    bool given[SHMT_MOST_OPTIONS]; /* [i]: row i was set, to what is not "automatic" or off */
    struct shmt_config_parsed parsed;
    char *model, *valid, *weights, *class_weight, *hugepages, *spawn, *sim;
    uint64_t optimizer, schedule, scale, backend, bind, numa, placement; /* enum shmt_rule_kind, ... */
};

/* How an option's value is parsed, and where it goes. */
enum shmt_option_kind {
    SHMT_OPTION_COUNT,
    SHMT_OPTION_REAL,
    SHMT_OPTION_SWITCH,
    SHMT_OPTION_CHOICE, /* the place of a word in a list */
    SHMT_OPTION_WORD,   /* the word itself */
    SHMT_OPTION_TEXT    /* some are parsed, too: struct shmt_config_parsed */
};

struct shmt_option_row {
    struct shmtrain_option option;
    enum shmt_option_kind kind;
    size_t offset;       /* of its field in struct shmt_config: uint64_t (COUNT, SWITCH, CHOICE), double (REAL), char * */
    double least, most;  /* COUNT, REAL */
    const char *choices; /* CHOICE, WORD: "a|b"; COUNT, REAL: the word for "automatic" (0, NaN), or NULL */
};

/* Row i of the table, from 0; NULL behind the last. */
const struct shmt_option_row *shmt_option_row_at(size_t i);

/* Every option at its default. Errors: _MEMORY. */
int shmt_config_init(struct shmt_config *config, struct shmt_error *e);
void shmt_config_fini(struct shmt_config *config);

/* A configuration of its own, for shmt_config_fini. Errors: _MEMORY. */
int shmt_config_copy(const struct shmt_config *from, struct shmt_config *out, struct shmt_error *e);

/* An option of the table is as if nobody had set it. Errors: _MEMORY. */
int shmt_config_reset(struct shmt_config *config, const char *name, struct shmt_error *e);

/* Parses and sets one option. Errors: _USAGE; nothing changes then. `given_as` is how the user wrote it ("--rate",
 * "SHMTRAIN_RATE"). */
int shmt_config_set(struct shmt_config *config, const char *name, const char *given_as, const char *value,
                    struct shmt_error *e);

/* Whether the table has an option of this name. */
bool shmt_config_has(const char *name);

/* Whether an option was set, by whatever way, to anything but "automatic" or off. */
bool shmt_config_is_given(const struct shmt_config *config, const char *name);

/* Where nobody names a mode, but an axis that only some modes have: the mode that is known for it. NULL: none is called for. */
const char *shmt_config_mode_of_axes(const struct shmt_config *config);

/* The rank of this host, of those of a run; 0 where it is alone. However that was said: role.h. */
uint32_t shmt_config_host(const struct shmt_config *config);

/* The first of `options` (up to a NULL) that is; NULL: none. */
const char *shmt_config_any_given(const struct shmt_config *config, const char *const *options);

/* Whether a size was, that means something else with other features: a rate, or a penalty. */
bool shmt_config_names_size(const struct shmt_config *config);

/* "4" or "inf" (SHMT_STALENESS_INF); false: neither. */
bool shmt_config_staleness(const char *value, uint64_t *out);

/* Whether option `valid` means a share of the data, which is what reads as a number; other texts name a file, or nothing. */
bool shmt_valid_share(const char *valid, double *share_out);

int shmt_config_set_from_environment(struct shmt_config *config, struct shmt_error *e);
