/* One worker's view of collectives: the groups that it is in, staging memory, what is started. Private to its process and thread. */
#pragma once

#include <shmtrain/collective.h>
#include <stdbool.h>

#include "base/error.h"
#include "coll/memory.h"
#include "coll/operation.h"

#define SHMT_COLL_ALL UINT32_MAX /* in place of a member: all of them */

struct shmtrain_group {
    struct shmt_coll *of;
    uint32_t slot, n;
    uint32_t me;                /* my place; UINT32_MAX: I am no member */
    uint32_t busy;              /* operations of mine that are not complete */
    bool owes;                  /* words of mine were set, and nobody was called since */
    uint64_t tick;              /* that all operations so far have come to */
    uint64_t begun, operations; /* the clock of who has begun the last of them; how many there were */
    struct shmt_gates gates;
    uint32_t *rank;                  /* (n) */
    uint64_t *seen[SHMT_GATE_WORDS]; /* (n) of each enum shmt_gate_word: what I have seen the members at */
    struct shmtrain_group *next;
};

/* For whom an operation waits: member `i` of a group is to reach `target`. */
struct shmt_coll_wait {
    struct shmtrain_group *group;
    enum shmt_gate_word word;
    uint32_t i;
    uint64_t target;
};

/* Who may still be reading a half of my staging memory: one member, or all, until its `read` is `target`. */
struct shmt_coll_half {
    struct shmtrain_group *group; /* NULL: nobody */
    uint32_t reader;
    uint64_t target, end; /* end: the clock with which its operation ends; UINT64_MAX: that is not asked for */
};

struct shmt_coll {
    struct shmt_coll_place place;
    struct shmt_error *error;
    struct shmtrain_group *all, *groups; /* all: one of the list */
    uint32_t slots;                      /* a bit for each that I use */
    uint64_t lent_bytes;
    unsigned char *own; /* what a group of one may lend; NULL: none was wanted */
    struct shmt_coll_half half[2];
    struct shmt_coll_wait wait;
    uint64_t started, done;
    struct shmt_coll_op op[SHMTRAIN_COLLECTIVE_STARTED]; /* number i at place i mod that many */
};

/* place->n == 1 needs no memory. Errors: _MEMORY. */
int shmt_coll_open(const struct shmt_coll_place *place, struct shmt_error *e, struct shmt_coll **out);
void shmt_coll_close(struct shmt_coll *c); /* NULL is fine */

/* ---- run.c ---- */

/* Starts an operation of those fields that are above `begun`, checked but for whether members can do it. 0, or _USAGE. */
int shmt_coll_start(struct shmt_coll *c, const struct shmt_coll_op *op, uint64_t *ticket_out);
int shmt_coll_test(struct shmt_coll *c, uint64_t ticket); /* 1, 0 or a status */
int shmt_coll_wait_for(struct shmt_coll *c, uint64_t ticket);
const char *shmt_coll_kind_name(uint32_t kind);

/* NULL: all lies elsewhere; else the bytes at `at` are of what I lend: where, from 1 on. */
uint64_t shmt_coll_lent_at(const struct shmt_coll *c, const void *at, uint64_t bytes);

/* The next `bytes` of what I may lend. Errors: _MEMORY. */
int shmt_coll_lend(struct shmt_coll *c, uint64_t bytes, void **out);

/* ---- groups.c: see <shmtrain/collective.h> ---- */

/* Memory for a group of these members, which is in no slot yet. */
int shmt_coll_group_make(struct shmt_coll *c, const uint32_t *rank, uint32_t n, struct shmtrain_group **out);
int shmt_coll_group_join(struct shmt_coll *c, const uint32_t *rank, uint32_t n, struct shmtrain_group **out);
int shmt_coll_group_of_colour(struct shmt_coll *c, uint32_t colour, struct shmtrain_group **out);
int shmt_coll_group_leave(struct shmt_coll *c, struct shmtrain_group *group);

/* ---- member.c: for the algorithms ---- */

/* Whether member i has come to `target`; if not, it is what c->wait says. What it did before is visible then. */
bool shmt_coll_reached(struct shmt_coll *c, struct shmtrain_group *g, enum shmt_gate_word word, uint32_t i, uint64_t target);
bool shmt_coll_all_reached(struct shmt_coll *c, struct shmtrain_group *g, enum shmt_gate_word word, uint64_t target);

/* A few looks for what c->wait says: true when it is there. */
bool shmt_coll_comes_at_once(const struct shmt_coll *c);

/* Waits for what c->wait says. 0; _STOPPED; _DIED: it will never come, which names it. `look`: only looks whether that is so. */
int shmt_coll_block(struct shmt_coll *c, bool look);

/* My half for tick `tick` is free: nobody reads it any more. Then it is taken: `reader` will have read it when its `read` is
 * `target`, and its operation ends at clock `end`. */
bool shmt_coll_half_is_free(struct shmt_coll *c, uint64_t turn);
void shmt_coll_half_take(struct shmt_coll *c, struct shmtrain_group *g, uint64_t turn, uint32_t reader, uint64_t target,
                         uint64_t end);
unsigned char *shmt_coll_half_of(const struct shmt_coll *c, uint32_t rank, uint64_t turn);

/* Others see these; who sleeps for them is called later (shmt_coll_call). */
void shmt_coll_lay(struct shmt_coll_op *op, uint64_t ticks);       /* I have laid out so many ticks of the operation */
void shmt_coll_note_read(struct shmt_coll_op *op, uint64_t ticks); /* I have read so many */
void shmt_coll_note_reduced(struct shmt_coll_op *op);              /* my slice is in the buffers of all */

/* Wakes those who sleep for what was set since: before I copy or fold, and when I can go on no further (run.c). */
void shmt_coll_call(struct shmt_coll_op *op);

struct shmt_coll_note *shmt_coll_note_of(const struct shmt_coll_op *op, uint32_t i);

/* Member i does the same as I. _USAGE: it does not. */
int shmt_coll_check(struct shmt_coll *c, const struct shmt_coll_op *op, uint32_t i);

/* What member i has lent, at + 1 as in its note: `bytes` from there; NULL, with a sentence: it has not so much. */
unsigned char *shmt_coll_lent_of(struct shmt_coll *c, const struct shmt_coll_op *op, uint32_t i, uint64_t at, uint64_t bytes);

/* ---- the algorithms: 1: complete, 0: c->wait says why not, or a status ---- */
int shmt_coll_pull(struct shmt_coll *c, struct shmt_coll_op *op);     /* pull.c */
int shmt_coll_slices(struct shmt_coll *c, struct shmt_coll_op *op);   /* slices.c */
int shmt_coll_messages(struct shmt_coll *c, struct shmt_coll_op *op); /* messages.c */

/* How blocks are cut into pieces of each kind, before an operation begins; and whether its data are inline. */
void shmt_coll_pull_plan(const struct shmt_coll *c, struct shmt_coll_op *op);
bool shmt_coll_pull_is_inline(const struct shmt_coll_op *op);
void shmt_coll_slices_plan(const struct shmt_coll *c, struct shmt_coll_op *op);
bool shmt_coll_messages_can(uint32_t kind, uint32_t algorithm, uint32_t members);
bool shmt_coll_messages_has(uint32_t kind, uint32_t algorithm);
