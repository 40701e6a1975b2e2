/* What replicas.c (when to merge), merging.c (merging) and tiers.c (merging damped) share. */
#pragma once

#include "backends/shm/shm_priv.h"
#include "update/merge.h"

#define SHMT_SHM_TIERS 3 /* hot, middle, rest: see tiers.c */

/* Floats that replicas hold, within a block. */
struct shmt_shm_run {
    uint64_t from, to;
    uint64_t merged; /* examples that I had trained on when I merged it last */
};

struct shmt_shm_tier {
    struct shmt_shm_run *run; /* (n) */
    uint64_t n;
    uint64_t examples; /* that I had trained on when it was due last */
};

/* What a seat knows of replicas; private to it. */
struct shmt_shm_merging {
    uint32_t *of_seat; /* (n_seats) whose replica is whose */
    uint32_t mine;
    uint32_t *present; /* (n_present) replicas that have seats in this epoch */
    uint32_t *n_seats; /* (n_replicas) how many each has in this epoch */
    uint32_t n_present;
    uint32_t index, n_sharers; /* I am number `index` of the present seats that share my replica */
    struct shmt_merging how_trained[1 + SHMT_MAX_PLANES], how_statistic[1 + SHMT_MAX_PLANES]; /* tables, by their role */
    bool has_statistics;
    float **copy;          /* (n_replicas) room for the addresses of one word in all of them */
    uint64_t completed;    /* clocks of mine in all */
    uint64_t idle_at;      /* `completed` when I was out of items last */
    uint64_t examples;     /* that I have trained on in all */
    uint64_t turns;        /* of mine to merge, in all */
    bool begun;            /* all replicas are made */
    struct shmt_redo redo; /* of the step that is merged; open NULL: nothing is kept */
    bool training;         /* between the first claim of an epoch and its last merge */
    bool unsure; /* an earlier life may have merged state whose weights do not follow it yet (ftrl), or that other copies have
                     not got; until my next merge, which takes all for changed */
    /* damped */
    struct shmt_shm_tier tier[SHMT_SHM_TIERS];
    struct shmt_damping damping;               /* of the merge that goes on */
    struct shmt_merge_words words, tail_words; /* of what replicas hold: below cover.hot, and from there on */
    struct shmt_window window; /* replicas that hold a part: the parameters and state planes as I train on them */
};

/* Word 0 (weights) or 1 + plane of the float at place 0: the master's, a replica's, its base's. */
float *shmt_shm_master(const struct shmt_store *store, uint32_t word);
float *shmt_shm_replica(const struct shmt_store *store, uint32_t replica, uint32_t word);
float *shmt_shm_base(const struct shmt_store *store, uint32_t replica, uint32_t word); /* NULL: none is kept */

/* Floats of replicas are counted as replicas hold them, without gaps (struct shmt_cover), here and below. The replica becomes
 * what the master is, over the floats from .. to - 1; nobody writes either. */
void shmt_shm_replica_begin(const struct shmt_store *store, uint32_t replica, uint64_t from, uint64_t to);

/* My slice of all replicas; between two meetings. `last`: of the epoch. */
void shmt_shm_merge_together(struct shmt_shm_seat *p, bool last);

/* My replica with the master, while everybody goes on. */
void shmt_shm_merge_alone(struct shmt_shm_seat *p);

/* The floats from .. to - 1, which lie within one block, under its lock. Damped: as merging->damping says. False:
 * nothing was done, because another is at it and `may_skip`, or because the run is given up. */
bool shmt_shm_merge_range(struct shmt_shm_seat *p, uint64_t from, uint64_t to, bool may_skip);

/* The lock of a block of SHMT_MERGE_FLOATS floats, under which its copies and the master are merged; to be given to
 * shmt_unit_release. NULL: another holds it and `may_skip`, or the run is given up. */
_Atomic uint32_t *shmt_shm_lock_block(const struct shmt_shm_seat *p, uint64_t block, bool may_skip);

/* windows.c. My window, where replicas hold a part; errors: of shmt_segment_open_window, in the seat. */
int shmt_shm_window_make(struct shmt_shm_seat *p);

/* tiers.c. Lists of what belongs to which tier; errors: _MEMORY, in the seat. Whether one is due at my turn number
 * merging->turns. Merging those that are, or all. */
int shmt_shm_tiers_make(struct shmt_shm_seat *p);
void shmt_shm_tiers_free(struct shmt_shm_merging *m);
bool shmt_shm_tier_is_due(const struct shmt_shm_seat *p, uint32_t tier);
void shmt_shm_merge_tiers(struct shmt_shm_seat *p, bool all);
