/* The apply phase of `aggregate`: update rules over blocks of parameters, each float by itself. Called by ps/flat.c; the
 * formulas are in rule.h, their arithmetic, four or eight floats at a time, in rule_priv.h. Compiled for each CPU path.
 *
 * Zeros as gradients (grad NULL) are added like any others, so that a block without gradient has the same bits as one whose
 * gradient is all zeros.
 *
 * Divisions and roots take longest, and while they wait for memory the processor sees only a few iterations ahead: so what is a block
 * further on is asked for early, and what divides by 1 or adds 0 is left out (the same bits). bench/bench_updates measures it. */
#ifdef __AVX2__
#    define SHMT_WIDTH 8
#endif

#include "base/line.h"
#include "update/rule_priv.h"

#define AHEAD       512 /* floats: 256 and 1,024 are alike */
#define LINE_FLOATS 16

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
#if SHMT_UNDER_TSAN
    for (uint32_t i = 0; i < n; i++) shmt_live_store(to + i, x[i]);
#else
    put(to, x, n);
#endif
}

/* What apply knows when it is compiled. */
struct batch {
    struct shmt_how how;
    uint32_t planes; /* of state: shmt_rule_planes */
    bool has_grad;   /* or zeros */
    bool decays;     /* by weight decay, and nothing else regularises */
    bool divides;    /* by the first correction, which is 1 from some hundred updates on */
};

SHMT_INLINE struct shmt_cells averaged(struct shmt_cells c, shmt_lanes g, const struct shmt_step *s, struct batch b) {
    struct shmt_how decays = b.how;
    decays.regularised = true;
    c = shmt_adam_averages(c, shmt_clipped(g, s, b.how), s);
    c.word2 = b.divides ? shmt_all(s->u.correct1) : shmt_all(1);
    c.word3 = shmt_all(s->u.correct2);
    if (b.decays) c.w = shmt_decayed(c.w, shmt_all(1), s, decays);
    return shmt_adam_weight(c, shmt_all(1), s, b.how);
}

SHMT_INLINE void update(float *w, float *state, uint64_t plane, const float *grad, uint32_t n, const struct shmt_step *s,
                        struct batch b) {
    const shmt_lanes g = b.has_grad ? take(grad, n) * s->u.scale : shmt_all(0);
    struct shmt_cells c = {.w = take(w, n)};
    if (b.planes > 0) c.word0 = take(state, n);
    if (b.planes > 1) c.word1 = take(state + plane, n);
    if (shmt_rule_corrects(b.how.rule))
        c = averaged(c, g, s, b);
    else
        c = shmt_rule_step(c, b.how.rule == SHMT_RULE_SGD ? s->u.rate * g : g, shmt_all(1), s, b.how);
    if (b.planes > 0) put(state, c.word0, n);
    if (b.planes > 1) put(state + plane, c.word1, n);
    put_weight(w, c.w, n);
}

/* Asking for what is not there does no harm. */
SHMT_INLINE void ask(const float *w, const float *state, uint64_t plane, const float *grad, struct batch b) {
    __builtin_prefetch(w + AHEAD, 1);
    if (b.has_grad) __builtin_prefetch(grad + AHEAD);
    if (b.planes > 0) __builtin_prefetch(state + AHEAD, 1);
    if (b.planes > 1) __builtin_prefetch(state + plane + AHEAD, 1);
}

SHMT_INLINE void update_all(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, const struct shmt_update *u,
                            struct batch b) {
    const struct shmt_step s = shmt_step_of(0, u, b.how);
    uint64_t i = 0;
    for (; i + LINE_FLOATS <= n; i += LINE_FLOATS) {
        ask(w + i, state + i, plane, grad + i, b);
        for (uint64_t k = i; k < i + LINE_FLOATS; k += SHMT_WIDTH) update(w + k, state + k, plane, grad + k, SHMT_WIDTH, &s, b);
    }
    for (; i < n; i++) update(w + i, state + i, plane, grad + i, 1, &s, b);
}

/* Compiled for gradients and without, */
SHMT_INLINE void apply_with(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, const struct shmt_update *u,
                            struct batch b) {
    b.has_grad = true;
    if (grad) {
        update_all(w, state, plane, grad, n, u, b);
        return;
    }
    b.has_grad = false;
    update_all(w, state, plane, w, n, u, b);
}

/* where averages are corrected, for the beginning of a run and later, */
SHMT_INLINE void apply_corrected(float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                                 const struct shmt_update *u, struct batch b) {
    b.divides = true;
    if (!shmt_rule_corrects(b.how.rule) || u->correct1 < 1) {
        apply_with(w, state, plane, grad, n, u, b);
        return;
    }
    b.divides = false;
    apply_with(w, state, plane, grad, n, u, b);
}

/* regularised, with weight decay alone, and not. */
SHMT_INLINE void apply(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, const struct shmt_update *u,
                       enum shmt_rule_kind rule, uint32_t planes) {
    struct batch b = {.how = {.write = SHMT_WRITE_AGGREGATE, .rule = rule, .values = true}, .planes = planes};
    if (planes == 0) state = w; /* there is none */
    if (u->l1 > 0 || u->l2 > 0 || u->clip > 0) {
        b.how.regularised = b.how.clips = b.divides = true;
        apply_with(w, state, plane, grad, n, u, b);
    } else if (shmt_rule_corrects(b.how.rule) && u->weight_decay > 0) {
        b.decays = true;
        apply_corrected(w, state, plane, grad, n, u, b);
    } else {
        apply_corrected(w, state, plane, grad, n, u, b);
    }
}

/* clang-format off */
/* The rules, and their planes of state here (shmt_rule_planes). */
#define RULES(RULE)                                                                                   \
    RULE(SGD, 0) RULE(MOMENTUM, 1) RULE(NESTEROV, 1) RULE(ADAGRAD, 1) RULE(RMSPROP, 1)                \
    RULE(ADADELTA, 2) RULE(ADAM, 2) RULE(ADAMW, 2) RULE(LAMB, 2) RULE(FTRL, 2)
/* clang-format on */

#define FUNCTION(RULE, PLANES)                                                                      \
    static void apply_##RULE(float *w, float *state, uint64_t plane, const float *grad, uint64_t n, \
                             const struct shmt_update *u) {                                         \
        apply(w, state, plane, grad, n, u, SHMT_RULE_##RULE, PLANES);                               \
    }
RULES(FUNCTION)

void shmt_rule_apply(enum shmt_rule_kind kind, float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                     const struct shmt_update *u) {
#define ROW(RULE, PLANES) [SHMT_RULE_##RULE] = apply_##RULE,
    static void (*const OF[SHMT_N_RULES])(float *, float *, uint64_t, const float *, uint64_t,
                                          const struct shmt_update *) = {RULES(ROW)};
    OF[kind](w, state, plane, grad, n, u);
}

/* ---- lamb's norms ---- */

static const struct shmt_how OF_LAMB = {
    .write = SHMT_WRITE_AGGREGATE, .rule = SHMT_RULE_LAMB, .values = true, .regularised = true, .clips = true};

/* The step of one update before its rate, as `averaged` makes it: averages as they will be, and weight decay. */
SHMT_INLINE void step_of(const float *w, const float *state, uint64_t plane, const float *grad, uint32_t n,
                         const struct shmt_step *s, struct batch b, float *out) {
    const shmt_lanes g = b.has_grad ? take(grad, n) * s->u.scale : shmt_all(0);
    struct shmt_cells c = {.word0 = take(state, n), .word1 = take(state + plane, n)};
    c = shmt_adam_averages(c, shmt_clipped(g, s, b.how), s);
    const shmt_lanes first = b.divides ? c.word0 / s->u.correct1 : c.word0;
    const shmt_lanes own = first / (shmt_roots(c.word1 / s->u.correct2) + s->u.epsilon);
    const shmt_lanes step = (shmt_lanes)((shmt_masks)own & (shmt_masks)(c.word1 != 0));
    put(out, step + s->u.weight_decay * take(w, n), n);
}

/* A line of n floats, of which the last may be shorter. */
SHMT_INLINE void square_line(const float *w, const float *state, uint64_t plane, const float *grad, uint64_t n,
                             const struct shmt_step *s, struct batch b, double *weights_out, double *steps_out) {
    float steps[SHMT_NORM_FLOATS], weights[SHMT_NORM_FLOATS];
    if (n == SHMT_NORM_FLOATS) {
        for (uint64_t k = 0; k < SHMT_NORM_FLOATS; k += LINE_FLOATS) ask(w + k, state + k, plane, grad + k, b);
        for (uint64_t k = 0; k < SHMT_NORM_FLOATS; k += SHMT_WIDTH)
            step_of(w + k, state + k, plane, grad + k, SHMT_WIDTH, s, b, steps + k);
        *weights_out = shmt_squares_of_line(w);
        *steps_out = shmt_squares_of_line(steps);
        return;
    }
    memset(steps, 0, sizeof steps);
    memset(weights, 0, sizeof weights);
    memcpy(weights, w, n * sizeof *w);
    for (uint64_t k = 0; k < n; k++) step_of(w + k, state + k, plane, grad + k, 1, s, b, steps + k);
    *weights_out = shmt_squares_of_line(weights);
    *steps_out = shmt_squares_of_line(steps);
}

SHMT_INLINE void squares_with(const float *w, const float *state, uint64_t plane, const float *grad, uint64_t n,
                              const struct shmt_step *s, struct batch b, double *weights_out, double *steps_out) {
    uint64_t i = 0;
    for (; i + SHMT_NORM_FLOATS <= n; i += SHMT_NORM_FLOATS)
        square_line(w + i, state + i, plane, grad + i, SHMT_NORM_FLOATS, s, b, weights_out++, steps_out++);
    if (i < n) square_line(w + i, state + i, plane, grad + i, n - i, s, b, weights_out, steps_out);
}

void shmt_rule_squares(const float *w, const float *state, uint64_t plane, const float *grad, uint64_t n,
                       const struct shmt_update *u, double *weights_out, double *steps_out) {
    const struct shmt_step s = shmt_step_of(0, u, OF_LAMB);
    struct batch b = {.how = OF_LAMB, .planes = 2, .has_grad = true, .divides = u->correct1 < 1};
    if (!grad) {
        b.has_grad = false;
        squares_with(w, state, plane, w, n, &s, b, weights_out, steps_out);
    } else if (u->correct1 < 1) {
        b.divides = true;
        squares_with(w, state, plane, grad, n, &s, b, weights_out, steps_out);
    } else {
        b.divides = false;
        squares_with(w, state, plane, grad, n, &s, b, weights_out, steps_out);
    }
}
