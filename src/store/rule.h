/* Update rules (users say optimizers): what a gradient does to a parameter, and the state that stands beside it.
 *
 * One parameter w with gradient g (its sum over examples times `scale`), rate r. All rules but ftrl end in the same proximal
 * step for L1 and L2 (Duchi & Singer 2009, FOBOS), with t = r1 * l1 and d = r1 * l2:
 *
 *     w' = soft(w - a, t) / (1 + d)                 soft(x, t) = sign(x) max(|x| - t, 0)
 *
 * r1 is what each step takes of a gradient that stays the same, a = r1 g in the end, so that w rests where g + l2 w +
 * l1 sign(w) is 0: all of these rules minimise mean loss + l1 |w| + l2 / 2 |w|^2, whatever their rates.
 *
 *     sgd       a = r g                             r1 = r
 *     momentum  v' = m v + g;  a = r v'             r1 = r / (1 - m)    Polyak 1964, as in PyTorch; m = `momentum`
 *     adagrad   n' = n + g^2;  a = r1 g             r1 = r / (sqrt(n') + epsilon)       Duchi et al. 2011
 *     adam      m' = m + (1 - b1)(g - m);  v' = v + (1 - b2)(g^2 - v)                   Kingma & Ba 2015
 *               a = r1 m' / c1                       r1 = r / (sqrt(v' / c2) + epsilon)
 *     ftrl      n' = n + g^2;  z' = z + g - (sqrt(n') - sqrt(n)) / r w                  McMahan et al. 2013
 *               w' = 0 when |z'| <= l1, else -(z' - sign(z') l1) / ((beta + sqrt(n')) / r + l2)
 *
 * momentum and adam: averages that have come below FLT_MIN are 0, because arithmetic with such numbers is slow.
 * adagrad, adam: a parameter whose n' or v' is 0 has no rate of its own yet, and rests (r1 = 0): L2 would else wipe out
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
 * In the live modes only parameters that a push touches change; L1 and L2 of a row that one example in `share` touches count
 * `share` times as much then (span.h). In `aggregate`, momentum, adam, L1 and L2 move every parameter at every update. */
#ifndef SHMT_STORE_RULE_H
#define SHMT_STORE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "consistency/policy.h"

enum shmt_rule_kind { SHMT_RULE_SGD, SHMT_RULE_MOMENTUM, SHMT_RULE_ADAGRAD, SHMT_RULE_ADAM, SHMT_RULE_FTRL, SHMT_N_RULES };

#define SHMT_MAX_PLANES 4

/* What a run's rule is; plain words, constant. */
struct shmt_rule {
    uint32_t kind;  /* enum shmt_rule_kind */
    float l1, l2;   /* >= 0 */
    float momentum; /* 0 .. 1: momentum's m, adam's b1 */
    float beta2;    /* adam's b2 */
    float epsilon;  /* adagrad, adam: > 0 */
    float beta;     /* ftrl: >= 0 */
};

/* What one push or one update is made with. */
struct shmt_update {
    float rate;
    float scale;  /* factor of the gradient: 1 / examples that it is a sum over */
    float l1, l2; /* 0 for rows that are not regularised */
    float momentum, beta2, epsilon, beta;
    float correct1, correct2; /* adam in `aggregate`: c1, c2; not looked at in the live modes */
};

const char *shmt_rule_name(enum shmt_rule_kind kind);
int shmt_rule_parse(const char *name, enum shmt_rule_kind *out, struct shmt_error *e);

/* Refuses constants that cannot be, and rules that cannot bear the write mode: under `atomic` each word of a parameter
 * changes by itself, so ftrl (z takes w into account, which must be that of the same z and n) and adam (m / sqrt(v) of
 * different moments has no bound) are refused; the others say above what each word means, and lose nothing. */
int shmt_rule_check(const struct shmt_rule *rule, enum shmt_write write, struct shmt_error *e);

/* State words of each parameter, 0 .. SHMT_MAX_PLANES. */
uint32_t shmt_rule_planes(const struct shmt_rule *rule, bool live);

/* Whether L1 or L2 is on. */
static inline bool shmt_rule_regularises(const struct shmt_rule *rule) { return rule->l1 > 0 || rule->l2 > 0; }

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

#endif
