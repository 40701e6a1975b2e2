/* What the files of the engine of rounds share. The protocol is told here; rounds.c is the engine, quorum.c closes rounds,
 * slices.c brings closed ones to the parameters.
 *
 * A worker's gradient of clock c is offered for update c. What an update consists of is fixed before anybody applies it, and
 * everybody finds the same:
 *
 *     staleness s > 0   of all who completed clock u before they ran out of work. It is complete when nobody who has work is at
 *                       a clock <= u; whoever has no work has its last clock. So the clocks themselves say it.
 *     quorum            of those whose gradients are in when the round is closed. control->round holds how many rounds are
 *                       closed, t of them while t is the open one, and who closed the last. A seat has arrived at round t when
 *                       its clock is t + 1. One that has arrived and sees enough others writes the list into its own offer,
 *                       then takes the word from (t, whoever) to (t + 1, itself); one of those who try succeeds.
 *
 * An update that is fixed is applied slice by slice, by whoever needs it: a slice's lock word says how many updates it has
 * had, and who is at the next one. Nobody waits for the owner of anything, only for who is at a slice at the moment.
 *
 * Why nothing is read that changes meanwhile:
 *
 * - Buffers. With staleness the gradient of clock c stands in buffer c mod (s + 1), which its owner clears when it begins
 *   clock c + s + 1, and it begins that when all slices have had update c. With a quorum a member goes on when all slices
 *   have had its update; a gradient that is in no list is nobody's but its owner's.
 * - Lists. Each seat has two, for updates of even and odd numbers. List t is written over when round t + 2 is closed, by who
 *   has arrived at it, and so has seen that update t + 1 (before it t) is applied everywhere. So while one slice has not had
 *   update t, its list rests, and so do the buffers that it names: whoever has taken the slice at t may read both.
 * - Whether my own gradient got in I may ask much later, when the list is gone: others may have closed rounds while I slept.
 *   So every list carries on a bit for each seat that turns with each of its gradients that got in (`turned`). An offer of
 *   mine gets in once at most, in the round that my clock names, so the bit of any later list tells. Who reads it looks at
 *   the round's word before and after; words of lists are stored with release and loaded with acquire, so that who has read a
 *   word of a list that is being written over finds the round's word changed.
 *
 * Late. Whose gradient has missed its round drops it, or (fold) offers it once more for the round that is open, as late: a
 * late offer is taken into the list, and counts towards no quorum. Its owner computes nothing until that round is closed, so it
 * gets in sooner or later.
 *
 * Needed are min(quorum, seats that have work and are not there with a late offer) gradients. A seat that has work arrives, or
 * runs out of it and says so (shmt_gates_wake), so each round is closed in the end. Who arrives looks after having arrived: the last one
 * that is needed sees all (gate.c), and notifies.
 *
 * Many hosts. There the link alone closes rounds, of which one of all links decides: see far_rounds.c. To the seats that is as if somebody
 * else of them were always faster. */
#pragma once

#include "backends/shm/shm_priv.h"
#include "ps/tape.h"

#define SHMT_RANK_BITS 16 /* of lock words that count in the bits above: rank + 1, 0: nobody */

/* What an update is made of, as one seat has found it. */
struct shmt_shm_recipe {
    uint64_t update; /* UINT64_MAX: none yet */
    uint64_t step;   /* of the epoch, for the rate and for traces */
    uint32_t slot;   /* which of their buffers */
    uint32_t n;
    uint32_t *seat; /* (n) in the order of ranks */
    float *share;   /* (n) of each gradient in the sum: 1, or with staleness_aware 1 / its delay */
    bool clipped;   /* clip-norm: how.clip_factor is of this gradient */
    struct shmt_update how;
};

/* Private to its owner. */
struct shmt_shm_rounds {
    uint64_t items;   /* of the epoch, that were done before */
    uint64_t applied; /* all slices have had so many, when I last looked */
    bool late;        /* quorum: my offer has missed its round, and is for a later one */
    uint64_t turned;  /* quorum: my bit of the lists, 0 or 1: how often my gradients got in */
    struct shmt_shm_recipe recipe;
    struct shmt_taped taped; /* recorded, or replayed: my gradient in hand */
    uint64_t begun;          /* replayed: gradients of my tape that I have begun */
    uint64_t forgotten;      /* the link: so many floats of the sum of all hosts are cleared again for the next round */
    bool on_copy;            /* recorded, or replayed: a gradient is being computed, on the weights that were copied for it */
};

static inline bool shmt_shm_has_quorum(const struct shmt_store *store) { return store->spec.policy.quorum != SHMT_QUORUM_ALL; }

static inline bool shmt_shm_records(const struct shmt_shm_seat *p) { return p->store->spec.tape.use == SHMT_TAPE_RECORD; }

static inline bool shmt_shm_has_link(const struct shmt_store *store) { return store->layout.links > 0; }

/* Recorded, or replayed: the weights that a seat's gradient is computed on, in the shape of the flat array. */
static inline float *shmt_shm_pulled(const struct shmt_store *store, uint32_t seat) {
    return store->pulled + seat * (store->layout.pulled.each / sizeof *store->pulled);
}

/* rounds.c */

/* With a quorum: I go on with the round that is open when all before it are applied everywhere. 0 or a status. */
int shmt_shm_catch_up(struct shmt_shm_seat *p);

/* Finds what update `u` is made of: p->rounds->recipe. The caller has seen that it is fixed. False: all slices have had it by
 * now, or the store is damaged. */
bool shmt_shm_find_recipe(struct shmt_shm_seat *p, uint64_t u);

/* What the gradient in that buffer of a member of update u counts for: its delay is the number of updates that its weights lacked. */
float shmt_shm_share_of(const struct shmt_store *store, uint32_t seat, uint32_t slot, uint64_t u);

/* I have run out of work: waits until all have, and until all that is closed is applied. 0 or a status. */
int shmt_shm_finish_rounds(struct shmt_shm_seat *p);

/* slices.c */

/* The sum of the gradients of the recipe's members over the floats at .. at + n - 1, at most a block, in the order of ranks: in a buffer,
 * or in scratch[0]. NULL: it is zero. */
const float *shmt_shm_sum_of_members(const struct shmt_shm_seat *p, uint64_t at, uint64_t n, float (*scratch)[SHMT_SHM_BLOCK]);

/* As shmt_shm_apply_until, and waits for nobody: 1; 0: somebody is at a slice, or it has done enough for a call: about
 * SHMT_SHM_FREE_FLOATS, or one slice. */
#define SHMT_SHM_FREE_FLOATS (UINT64_C(1) << 20)
int shmt_shm_apply_free(struct shmt_shm_seat *p, uint64_t need);

/* Returns when all slices have had the updates below `need`, which are fixed; applies what is missing where nobody else is at
 * it, and waits for those who are. 0; _STOPPED; _USAGE with a sentence in the seat: the store is damaged. */
int shmt_shm_apply_until(struct shmt_shm_seat *p, uint64_t need);

/* Brings my share of the slices to `most`, the number of updates that are fixed, where nobody is at them. Waits for nobody.
 * Returns as shmt_shm_apply_until. */
int shmt_shm_apply_share(struct shmt_shm_seat *p, uint64_t most);

/* Copies the weights to where my gradient is computed, when all slices have had exactly `had` updates: 1. 0: one has had more; it has
 * stopped there. _STOPPED. All have had as many. */
int shmt_shm_copy_weights(struct shmt_shm_seat *p, uint64_t had);

/* Updates that the first slice has had. */
uint64_t shmt_shm_updates(const struct shmt_store *store);

/* Updates that all slices have had. Looks at each. */
uint64_t shmt_shm_updates_of_all(const struct shmt_store *store);

/* quorum.c */

/* The number of rounds that are closed; what their lists say is visible. */
uint64_t shmt_shm_rounds_closed(const struct shmt_store *store);

/* I have arrived at `round`: waits until it is closed, and closes it if it is I who can. 0 or _STOPPED. */
int shmt_shm_wait_for_round(struct shmt_shm_seat *p, uint64_t round);

/* All have met, without work, and all that is closed is applied: a gradient of somebody who has died behind its offer, and does not
 * come again, gets in now. So no clock is ahead of the rounds that are closed when clocks are aligned. */
void shmt_shm_close_for_the_dead(struct shmt_shm_seat *p);

/* The link: closes a round of which all hosts know what it is made of. */
void shmt_shm_close_as_decided(struct shmt_shm_seat *p, const struct shmt_far_round *of);

/* My bit of the lists: it has turned since my last offer if that got in. That offer's round is closed. */
uint64_t shmt_shm_turned(const struct shmt_shm_seat *p);

/* shmt_shm_find_recipe with a quorum. */
bool shmt_shm_read_list(struct shmt_shm_seat *p, uint64_t u);

/* far_rounds.c: the sum of all hosts' gradients of the round that was closed last, as above */
const float *shmt_shm_far_total(const struct shmt_store *store, uint64_t at, uint64_t n);

/* taping.c: of rounds that are recorded or replayed */

/* Before a gradient is begun: waits until it can be computed on the weights that it is to see, and copies them. 0 or a status. */
int shmt_shm_tape_pull(struct shmt_shm_seat *p);

/* Recorded: my gradient is settled. */
void shmt_shm_tape_keep(struct shmt_shm_seat *p);

/* Replayed: the run is to stop; the sentence of that, and its status. */
bool shmt_shm_tape_is_stopped(const struct shmt_shm_seat *p);
int shmt_shm_tape_stop(struct shmt_shm_seat *p);

/* Replayed: waits until so many updates are decided and may be applied, and applies them. 0 or a status. */
int shmt_shm_tape_wait(struct shmt_shm_seat *p, uint64_t updates);

/* Replayed: all gradients that were begun without this update are begun: it may be closed, and applied. */
bool shmt_shm_tape_allows(const struct shmt_store *store, uint64_t update);

/* Replayed: it was I who closed that round, with as many gradients as have arrived, and it may be closed. */
bool shmt_shm_tape_closes(const struct shmt_shm_seat *p, uint64_t round, uint32_t n_arrived);

/* Whether an offer got in, or a status: replayed, it has to. */
int shmt_shm_tape_check_in(struct shmt_shm_seat *p, int in);
