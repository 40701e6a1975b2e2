/* The apply phase of `aggregate`: update rules over blocks of parameters, each float by itself. Called by ps/flat.c; the
 * formulas are in rule.h, their arithmetic, four or eight floats at a time, in rule_priv.h. Compiled for each CPU path.
 *
 * Zeros as gradients (grad NULL) are added like any others, so that a block without gradient has the same bits as one whose
 * gradient is all zeros. */
#ifdef __AVX2__
#    define SHMT_WIDTH 8
#endif

#include "store/rule_priv.h"

/* Floats from[0 .. n), n being SHMT_WIDTH or 1; a constant. */
SHMT_INLINE shmt_lanes take(const float *from, uint32_t n) {
    shmt_lanes all = {from[0]};
    if (n == SHMT_WIDTH) memcpy(&all, from, sizeof all);
    return all;
}

SHMT_INLINE void put(float *to, shmt_lanes x, uint32_t n) {
    if (n == SHMT_WIDTH)
        memcpy(to, &x, sizeof x);
    else
        *to = x[0];
}

/* RACE(look): one worker alone updates a weight here, but the application may read it meanwhile (shmtrain_store_read in a
 * listener), and where updates come in rounds the other workers; they get it as it was before or after. Plain stores,
 * because vector code stores aligned floats whole as well; ThreadSanitizer is told that the race is meant, as in live.h. */
SHMT_INLINE void put_weight(float *to, shmt_lanes x, uint32_t n) {
#ifdef SHMT_LIVE_ATOMIC
    for (uint32_t i = 0; i < n; i++) shmt_live_store(to + i, x[i]);
#else
    put(to, x, n);
#endif
}

/* What apply knows when it is compiled. */
struct batch {
    struct shmt_how how;
    uint32_t planes; /* of state: shmt_rule_planes */
};

SHMT_INLINE struct shmt_cells updated(struct shmt_cells c, shmt_lanes g, const struct shmt_step *s, struct shmt_how how) {
    if (how.rule != SHMT_RULE_ADAM)
        return shmt_rule_step(c, how.rule == SHMT_RULE_SGD ? s->u.rate * g : g, shmt_all(1), s, how);
    c = shmt_adam_averages(c, g, s);
    c.word2 = shmt_all(s->u.correct1);
    c.word3 = shmt_all(s->u.correct2);
    return shmt_adam_weight(c, shmt_all(1), s, how);
}

SHMT_INLINE void update(float *w, float *state, uint64_t plane, shmt_lanes g, uint32_t n, const struct shmt_step *s,
                        struct batch b) {
    struct shmt_cells c = {.w = take(w, n)};
    if (b.planes > 0) c.word0 = take(state, n);
    if (b.planes > 1) c.word1 = take(state + plane, n);
    c = updated(c, g, s, b.how);
    if (b.planes > 0) put(state, c.word0, n);
    if (b.planes > 1) put(state + plane, c.word1, n);
    put_weight(w, c.w, n);
}

SHMT_INLINE void update_all(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, const struct shmt_update *u,
                            struct batch b) {
    const struct shmt_step s = shmt_step_of(0, u, b.how);
    uint64_t i = 0;
    for (; i + SHMT_WIDTH <= n; i += SHMT_WIDTH)
        update(w + i, state + i, plane, grad ? take(grad + i, SHMT_WIDTH) * s.u.scale : shmt_all(0), SHMT_WIDTH, &s, b);
    for (; i < n; i++) update(w + i, state + i, plane, grad ? take(grad + i, 1) * s.u.scale : shmt_all(0), 1, &s, b);
}

/* Compiled for gradients and without, regularised and not. */
SHMT_INLINE void apply(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, const struct shmt_update *u,
                       enum shmt_rule_kind rule, uint32_t planes) {
    const struct batch plain = {{SHMT_WRITE_AGGREGATE, rule, true, false, false, false}, planes};
    const struct batch regularised = {{SHMT_WRITE_AGGREGATE, rule, true, true, false, false}, planes};
    if (u->l1 > 0 || u->l2 > 0)
        update_all(w, state, plane, grad, n, u, regularised);
    else
        update_all(w, state, plane, grad, n, u, plain);
}

void shmt_rule_apply(enum shmt_rule_kind kind, float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                     const struct shmt_update *u) {
    switch (kind) {
        case SHMT_RULE_MOMENTUM:
            apply(w, state, plane, grad, n, u, SHMT_RULE_MOMENTUM, 1);
            return;
        case SHMT_RULE_ADAGRAD:
            apply(w, state, plane, grad, n, u, SHMT_RULE_ADAGRAD, 1);
            return;
        case SHMT_RULE_ADAM:
            apply(w, state, plane, grad, n, u, SHMT_RULE_ADAM, 2);
            return;
        case SHMT_RULE_FTRL:
            apply(w, state, plane, grad, n, u, SHMT_RULE_FTRL, 2);
            return;
        default:
            apply(w, w, 0, grad, n, u, SHMT_RULE_SGD, 0); /* no state */
            return;
    }
}
