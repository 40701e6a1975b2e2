/* Update rules (users say optimizers): what a gradient does to a parameter, and the state that stands beside it.
 *
 * One parameter w with gradient g (its sum over examples times `scale`; no larger than clip, where there is one), rate r. All rules but
 * ftrl end in the same proximal step for L1 and L2 (Duchi & Singer 2009, FOBOS), with t = r1 * l1 and d = r1 * l2:
 *
 *     w' = soft(w - a, t) / (1 + d)                 soft(x, t) = sign(x) max(|x| - t, 0)
 *
 * r1 is what each step takes of a gradient that stays the same, a = r1 g in the end, so that w rests where g + l2 w +
 * l1 sign(w) is 0: all of these rules minimise mean loss + l1 |w| + l2 / 2 |w|^2, whatever their rates.
 *
 *     sgd       a = r g                             r1 = r
 *     momentum  v' = m v + g;  a = r v'             r1 = r / (1 - m)    Polyak 1964, as in PyTorch; m = `momentum`
 *     nesterov  v' = m v + g;  a = r (g + m v')     r1 = r / (1 - m)    Sutskever et al. 2013, as in PyTorch
 *     adagrad   n' = n + g^2;  a = r1 g             r1 = r / (sqrt(n') + epsilon)       Duchi et al. 2011
 *     rmsprop   v' = v + (1 - rho)(g^2 - v);  a = r1 g                                  Hinton 2012, as in PyTorch
 *                                                   r1 = r / (sqrt(v') + epsilon)
 *     adadelta  v' = v + (1 - rho)(g^2 - v);  a = r1 g                                  Zeiler 2012, as in PyTorch
 *               q = sqrt(u + epsilon) / sqrt(v' + epsilon);  r1 = r q
 *               u' = u + (1 - rho)((q g)^2 - u)     the mean square of its steps, before the rate
 *     adam      m' = m + (1 - b1)(g - m);  v' = v + (1 - b2)(g^2 - v)                   Kingma & Ba 2015
 *               a = r1 m' / c1                       r1 = r / (sqrt(v' / c2) + epsilon)
 *     adamw     w is first (1 - min(1, r weight_decay)) w, then as adam                 Loshchilov & Hutter 2019
 *     lamb      as adamw, with r min(|w| / |u|, 10) in place of r,                      You et al. 2020, Algorithm 2
 *               u = m' / c1 / (sqrt(v' / c2) + epsilon) + weight_decay w
 *     ftrl      n' = n + g^2;  z' = z + g - (sqrt(n') - sqrt(n)) / r w                  McMahan et al. 2013
 *               w' = 0 when |z'| <= l1, else -(z' - sign(z') l1) / ((beta + sqrt(n')) / r + l2)
 *
 * All averages: those that have come below FLT_MIN are 0, because arithmetic with such numbers is slow.
 * lamb: the norms are those of one table, over its rows that L1, L2 and weight decay are for; where one of the two is 0 or no finite
 * number, r stays, as it does for the other rows (biases, scales and shifts). L1 and L2 are steps of their own and no part of u. The paper
 * bounds |w|; here it is the ratio, because u of a table that has no gradients any more falls to weight_decay w, or to 0: its weights
 * would shrink by r at each update, or move without bound.
 * adagrad, rmsprop, adadelta, adam: a parameter whose n' or v' is 0 has no rate of its own yet, and rests (r1 = 0): L2 would else wipe out
 * weights that were set from outside before their first gradient.
 * ftrl: where beta and l2 are both 0 (rows without L2: the bias) a parameter whose n' is 0 rests; its first gradient moves it
 * by r against the gradient's sign. l1 and l2 stand against the sum of all gradients so far, as in the paper, and not
 * against their mean: after k updates they weigh what l1 / k and l2 / k do in the other rules.
 *
 * c1 = 1 - b1^k and c2 = 1 - b2^k correct adam's bias, k being the number of updates: in `aggregate` the step of the run,
 * which is every parameter's; in the live modes each parameter's own count, which is kept as c1 and c2 in two further words
 * of state (c' = b c + (1 - b)).
 *
 * State words of a parameter stand in planes: word p of the float at place i is state[p * plane + i]. Zeros are the state of
 * a parameter that was never updated, but for ftrl, whose z must fit a weight other than zero (shmt_rule_begin).
 *
 * In the live modes only parameters that a push touches change; L1, L2 and weight decay of a row that one example in `share` touches
 * count `share` times as much then (span.h). In `aggregate`, averages, L1, L2 and weight decay move every parameter at every update. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/line.h"
#include "consistency/policy.h"

/* Their numbers stand in named stores: new ones come last. */
enum shmt_rule_kind {
    SHMT_RULE_SGD,
    SHMT_RULE_MOMENTUM,
    SHMT_RULE_ADAGRAD,
    SHMT_RULE_ADAM,
    SHMT_RULE_FTRL,
    SHMT_RULE_NESTEROV,
    SHMT_RULE_RMSPROP,
    SHMT_RULE_ADADELTA,
    SHMT_RULE_ADAMW,
    SHMT_RULE_LAMB,
    SHMT_N_RULES
};

#define SHMT_MAX_PLANES 4
#define SHMT_MOST_TRUST 10 /* lamb: of |w| / |u| */

/* What a run's rule is; plain words, constant. */
struct shmt_rule {
    uint32_t kind;      /* enum shmt_rule_kind */
    float l1, l2;       /* >= 0 */
    float momentum;     /* 0 .. 1: momentum's and nesterov's m, b1 of adam, adamw and lamb */
    float beta2;        /* b2 of adam, adamw and lamb */
    float epsilon;      /* all that divide by a root: > 0 */
    float beta;         /* ftrl: >= 0 */
    float rho;          /* rmsprop, adadelta: 0 .. 1; else 0 */
    float weight_decay; /* adamw, lamb: >= 0; else 0 */
    float clip;         /* of each element of a gradient; 0: none */
    float clip_norm;    /* of the mean gradient of all tables; live modes: of each push; 0: none */
};

/* What one push or one update is made with. */
struct shmt_update {
    float rate;
    float scale;                /* factor of the gradient: 1 / examples that it is a sum over */
    float l1, l2, weight_decay; /* 0 for rows that are not regularised */
    float momentum, beta2, epsilon, beta, rho;
    float clip;               /* 0: none; of all rows */
    float clip_factor;        /* `aggregate`, by clip-norm: of `scale` in tables that are trained, 0 to 1; 1: none */
    float correct1, correct2; /* adam, adamw, lamb in `aggregate`: c1, c2; not looked at in the live modes */
    const float *trust;       /* lamb: factor of the rate of table t, in rows that are regularised; NULL: 1 */
};

const char *shmt_rule_name(enum shmt_rule_kind kind);
int shmt_rule_parse(const char *name, enum shmt_rule_kind *out, struct shmt_error *e);

/* Refuses constants that cannot be, and rules that cannot bear the write mode: under `atomic` each word of a parameter
 * changes by itself, so ftrl (z takes w into account, which must be that of the same z and n), adam and adamw (m / sqrt(v) of
 * different moments has no bound) are refused; the others say above what each word means, and lose nothing. lamb and clip-norm, which
 * need norms before anything is changed, are refused in the live modes. */
int shmt_rule_check(const struct shmt_rule *rule, enum shmt_write write, struct shmt_error *e);

/* Refuses likewise, and lamb with a quorum or staleness: its norms are of all weights as they were before the update, and in rounds
 * some parts have had it while others have not. */
int shmt_rule_check_policy(const struct shmt_rule *rule, const struct shmt_policy *policy, struct shmt_error *e);

/* State words of each parameter, 0 .. SHMT_MAX_PLANES. */
uint32_t shmt_rule_planes(const struct shmt_rule *rule, bool live);

/* Whether it divides gradients by a root of squares that it forgets, so that the rate says how far a step goes. */
static inline bool shmt_rule_scales(enum shmt_rule_kind kind) {
    return kind == SHMT_RULE_ADAM || kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB || kind == SHMT_RULE_RMSPROP ||
           kind == SHMT_RULE_ADADELTA;
}

/* Whether its averages are corrected by how many there were. */
static inline bool shmt_rule_corrects(enum shmt_rule_kind kind) {
    return kind == SHMT_RULE_ADAM || kind == SHMT_RULE_ADAMW || kind == SHMT_RULE_LAMB;
}

/* Whether its step needs norms of whole tables: then there is a meeting before anything is changed (ps/norm.h). */
static inline bool shmt_rule_needs_norms(enum shmt_rule_kind kind) { return kind == SHMT_RULE_LAMB; }

/* Whether L1, L2 or weight decay is on. */
static inline bool shmt_rule_regularises(const struct shmt_rule *rule) {
    return rule->l1 > 0 || rule->l2 > 0 || rule->weight_decay > 0;
}

/* Whether that, or clipping: then the kernels that are asked for are those `regularised` (kernels.h). */
static inline bool shmt_rule_restrains(const struct shmt_rule *rule) { return shmt_rule_regularises(rule) || rule->clip > 0; }

/* Makes `u` that of rows that are not regularised. */
static inline void shmt_update_unrule(struct shmt_update *u) { u->l1 = u->l2 = u->weight_decay = 0; }

/* Whether an update in `aggregate` moves parameters whose gradient is zero. */
bool shmt_rule_moves_all(const struct shmt_rule *rule);

/* The update with this rate; `step`: of the run, from 0. Same bits everywhere. */
void shmt_update_make(const struct shmt_rule *rule, float rate, uint64_t step, struct shmt_update *out);

/* State that fits weights w (n) that were set from outside, without any update; ftrl's w is rounded to what its z says. */
void shmt_rule_begin(enum shmt_rule_kind kind, const struct shmt_update *u, float *w, float *state, uint64_t plane, uint64_t n);

/* The apply phase of `aggregate`: n floats, their gradient sums in grad (NULL: zeros). Element by element, so the bits do not
 * depend on how a table is cut into blocks. */
void shmt_rule_apply(enum shmt_rule_kind kind, float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                     const struct shmt_update *u);

#define SHMT_NORM_FLOATS (SHMT_LINE / sizeof(float)) /* whose squares are one sum */

/* Of a line of floats: in four sums, as additions take longer than their turn. */
static inline double shmt_squares_of_line(const float *x) {
    typedef double fours __attribute__((vector_size(32)));
    typedef float four __attribute__((vector_size(16)));
    fours sum = {0};
    for (uint32_t i = 0; i < SHMT_NORM_FLOATS; i += 4) {
        four part;
        memcpy(&part, x + i, sizeof part);
        const fours wide = __builtin_convertvector(part, fours);
        sum += wide * wide;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* lamb: the sums of squares of n weights, and of their u as the next update has it, with gradient sums in grad (NULL: zeros); one for
 * each line of floats (base/line.h), of which the last may be shorter. Changes nothing else. */
void shmt_rule_squares(const float *w, const float *state, uint64_t plane, const float *grad, uint64_t n,
                       const struct shmt_update *u, double *weights_out, double *steps_out);
