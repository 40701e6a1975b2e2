/* Merging copies of the parameters: what becomes of each word (a weight, or a word of the rule's state) when replicas are
 * brought together with the master copy. Works on any memory; called by backends that have replicas.
 *
 * m is the master's word, r a replica's, b its base (what stood there after its last merge), R the number of replicas. A word
 * is changed when its bits are not those of the base. Replicas merge in one of two ways:
 *
 *     together  everybody rests; all replicas equalled the master after the last merge, so it is their base:
 *       mean      m' = mean of r over the replicas that have changed it                         r' = m'
 *       sum       m' = m + sum (r - m)                                                          r' = m'
 *       elastic   m' = m + a sum (r - m)                 r' = r - a (r - m), a = 0.9 / R         (EASGD)
 *     alone     one replica with the master, the others go on:
 *       mean      m' = m + (r - b) / R                                                          r' = b' = m'
 *       sum       m' = m + (r - b)                                                              r' = b' = m'
 *       elastic   m' = m + a (r - m)                     r' = r - a (r - m)             (asynchronous EASGD)
 *
 *       damped    m' = m + share (r - b)                                                        r' = b' = m'
 *
 * Mean over those that have changed it, because a mean over all would take a rare feature back to where those have it who have
 * not seen it; of words that all have changed it is parameter averaging (McMahan et al. 2017). A replica alone does not know
 * who else has: its changes count 1 / R. What one replica alone has changed since, it changes in the master bit by bit, so
 * that with one replica mean, sum and damped are what they would be without any.
 *
 * Damped: R workers that trained one after the other would move a weight by 1 - e^(-R a) of its way to where the loss is least,
 * and each of them alone moves its copy by 1 - e^-a, where a = rate * h * T: the rate at which the parameter moves, the
 * curvature h of the mean loss along it, and the examples T that the replica has trained on since it merged it. So that the
 * replicas' changes together come to what one worker would have done, the master takes of each
 *
 *     share = q(R a) / (R q(a))     q(x) = 1 - e^-x, nearly: 1 - 1 / (1 + x + x^2 / 2)     a = rate * h * T
 *
 * which is 1, a sum, where a is small (rare features), and 1 / R, a mean, where it is large (frequent ones). Parameters
 * are not independent of one another: where many move as one, h must say how the loss bends along all of them.
 *
 * State follows its rule:
 *
 *     word                                  mean        sum         elastic      damped
 *     weights of all rules but ftrl         mean        sum         elastic      share of the change
 *     adagrad: sum of squares               mean        sum         own          the same share
 *     momentum, nesterov: velocity          average     average     own          average
 *     adam, adamw: averages, corrections    average     average     own          average
 *     rmsprop, adadelta: mean squares       average     average     own          average
 *     ftrl: z, n                            mean        sum         (refused)    the same share of both
 *     ftrl: weights                         what z and n say        (refused)    what z and n say
 *     running statistics (whatever rule)    average     average     elastic      (none: of models with one table)
 *
 * Running statistics (role SHMTRAIN_STATISTIC) have no state. They are never added up: each copy moves a statistic towards the same
 * thing, and the sum of these moves would swing to and fro ever further.
 *
 * average: as mean together; alone m' = m + (r - m) / R where r has changed. A mean always, because the sum of averages that
 * decay grows with R, and never below 0 where no r is: a second moment must not be. own: each replica keeps its state; the
 * master's becomes the mean when an epoch is over, for whoever goes on with it. Elastic ftrl is refused: its weights follow
 * from state. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "update/redo.h"
#include "update/rule.h"

enum shmt_merging_kind {
    SHMT_MERGING_MEAN,
    SHMT_MERGING_SUM,
    SHMT_MERGING_AVERAGE,
    SHMT_MERGING_ELASTIC,
    SHMT_MERGING_OWN,
    SHMT_MERGING_FOLLOWS /* shmt_merge_follow, when state has been merged */
};

/* What is done to one word. */
struct shmt_merging {
    enum shmt_merging_kind kind;
    float share;   /* what the master takes of a replica's change: 1, 1 / R, or a */
    bool positive; /* never below 0 */
};

/* Of word 0 (weights) or 1 + plane (state), with n_replicas that take part. Damped: sums, of which shmt_merge_damped takes a
 * share. */
struct shmt_merging shmt_merging_of(enum shmt_merge merge, enum shmt_rule_kind rule, uint32_t word, uint32_t n_replicas);

/* Of a running statistic. */
struct shmt_merging shmt_merging_statistic(enum shmt_merge merge, uint32_t n_replicas);

/* Refuses a way to merge that the rule cannot bear. Errors: _USAGE. */
int shmt_merge_check(const struct shmt_rule *rule, const struct shmt_policy *policy, struct shmt_error *e);

/* redo, in all that follow: what a step brings out is kept there first (redo.h); NULL: it is not. Elastic steps need none: one
 * that was cut off draws the copies a little more, or less.
 *
 * Together: n floats of the master and of each replica; nobody else writes them. True: something has changed. */
bool shmt_merge_all(struct shmt_merging how, float *master, float *const *replica, uint32_t n_replicas, uint64_t n,
                    const struct shmt_redo *redo);

/* Alone: nobody else writes these n floats of master, replica and base (elastic: NULL). True: something has changed. */
bool shmt_merge_one(struct shmt_merging how, float *master, float *replica, float *base, uint64_t n,
                    const struct shmt_redo *redo);

/* The same while others push to the replica, by the kernels of write racy, or, with `atomic`, of write atomic. */
bool shmt_merge_shared(struct shmt_merging how, bool atomic, float *master, float *replica, float *base, uint64_t n,
                       const struct shmt_redo *redo);

/* Whether that would change something, as far as a look can tell while others push; the next look may find more. */
bool shmt_merge_looks_due(struct shmt_merging how, const float *master, const float *replica, const float *base, uint64_t n);

/* What the shares of a damped merge are worked out from. */
struct shmt_damping {
    struct shmt_update u;   /* that the replica's last piece was made with */
    double examples;        /* T */
    uint32_t n_replicas;    /* R, that take part */
    const float *curvature; /* (n) h of each float */
};

/* All words of some floats; word 0 are the weights. */
struct shmt_merge_words {
    uint32_t n;
    struct shmt_merging how[1 + SHMT_MAX_PLANES]; /* of SHMT_MERGE_DAMPED */
    float *master[1 + SHMT_MAX_PLANES], *replica[1 + SHMT_MAX_PLANES], *base[1 + SHMT_MAX_PLANES];
    const struct shmt_redo *redo; /* of word 0, and of the floats as they are counted here; its `word` is of no account */
};

/* Who pushes to the replica meanwhile. */
enum shmt_merge_beside { SHMT_MERGE_NOBODY, SHMT_MERGE_RACY, SHMT_MERGE_ATOMIC };

/* The share of each of n floats, below n <= SHMT_MERGE_STEP, into share_out. state[p]: word p of the replica's state. */
#define SHMT_MERGE_STEP 128
void shmt_merge_shares(enum shmt_rule_kind rule, const struct shmt_damping *d, const float *const *state, uint64_t n,
                       float *share_out);

/* Alone, damped: as shmt_merge_one or shmt_merge_shared, for all words of the floats at .. at + n - 1, at being counted from
 * where the addresses point to. Asks for lines of the master ahead of itself: others have had them. */
bool shmt_merge_damped(enum shmt_rule_kind rule, const struct shmt_damping *d, enum shmt_merge_beside beside,
                       const struct shmt_merge_words *words, uint64_t at, uint64_t n);

/* Asks for the first lines of n floats that are soon merged, to be written. */
void shmt_merge_prefetch(const float *master, uint64_t n);

/* The master's words, of which each replica has its own: their mean. */
void shmt_merge_collect(float *master, float *const *replica, uint32_t n_replicas, uint64_t n);

/* The weights (n) that follow from state (in planes, as in rule.h); nothing for rules whose weights do not. Others may push to
 * them (racy). u: that of the tables' part; its rate. */
void shmt_merge_follow(enum shmt_rule_kind rule, float *weight, const float *state, uint64_t plane, uint64_t n,
                       const struct shmt_update *u);
