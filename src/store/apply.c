/* The apply phase of `aggregate`: update rules over blocks of parameters, each float by itself. Called by ps/flat.c; the
 * formulas are in rule.h.
 *
 * Zeros as gradients (grad NULL) are added like any others, so that a block without gradient has the same bits as one whose
 * gradient is all zeros. */
#include <math.h>

#include "store/live.h"
#include "store/rule.h"

/* RACE(look): one worker alone updates a float here, but the application may read it meanwhile (shmtrain_store_read in a
 * listener) and gets it as it was before or after. Plain stores, because vector code stores aligned floats whole as well;
 * ThreadSanitizer is told that the race is meant, as in live.h. */
static inline void put(float *at, float value) {
#ifdef SHMT_LIVE_ATOMIC
    shmt_live_store(at, value);
#else
    *at = value;
#endif
}

/* The proximal step: see rule.h. Without L1 the form loses nothing where d is so small that 1 + d is 1. What is no number stays
 * none, so that guards find it. */
static inline float proximal(float w, float a, float t, float d) {
    if (t > 0) {
        const float moved = w - a, size = fabsf(moved) - t;
        return size <= 0 ? 0 : copysignf(size, moved) / (1 + d);
    }
    return d > 0 ? w - (a + d * w) / (1 + d) : w - a;
}

static inline float gradient_at(const float *grad, uint64_t i, float scale) { return grad ? grad[i] * scale : 0; }

static void apply_sgd(float *w, const float *grad, uint64_t n, const struct shmt_update *u) {
    const float t = u->rate * u->l1, d = u->rate * u->l2;
    if (t == 0 && d == 0 && grad)
        for (uint64_t i = 0; i < n; i++) put(w + i, w[i] - u->rate * (grad[i] * u->scale));
    else
        for (uint64_t i = 0; i < n; i++) put(w + i, proximal(w[i], u->rate * gradient_at(grad, i, u->scale), t, d));
}

static void apply_momentum(float *w, float *velocity, const float *grad, uint64_t n, const struct shmt_update *u) {
    const float t = u->rate * u->l1, d = u->rate * u->l2;
    for (uint64_t i = 0; i < n; i++) {
        velocity[i] = u->momentum * velocity[i] + gradient_at(grad, i, u->scale);
        put(w + i, proximal(w[i], u->rate * velocity[i], t, d));
    }
}

static void apply_adagrad(float *w, float *squares, const float *grad, uint64_t n, const struct shmt_update *u) {
    for (uint64_t i = 0; i < n; i++) {
        const float g = gradient_at(grad, i, u->scale);
        squares[i] += g * g;
        const float rate = squares[i] != 0 ? u->rate / (sqrtf(squares[i]) + u->epsilon) : 0;
        put(w + i, proximal(w[i], rate * g, rate * u->l1, rate * u->l2));
    }
}

static void apply_adam(float *w, float *mean, float *square, const float *grad, uint64_t n, const struct shmt_update *u) {
    const float t = u->rate * u->l1, d = u->rate * u->l2;
    for (uint64_t i = 0; i < n; i++) {
        const float g = gradient_at(grad, i, u->scale);
        mean[i] += (1 - u->momentum) * (g - mean[i]);
        square[i] += (1 - u->beta2) * (g * g - square[i]);
        const float a = u->rate * (mean[i] / u->correct1) / (sqrtf(square[i] / u->correct2) + u->epsilon);
        put(w + i, proximal(w[i], a, t, d));
    }
}

static inline float ftrl_weight(float z, float squares, const struct shmt_update *u) {
    const float size = fabsf(z) - u->l1;
    return size <= 0 ? 0 : -copysignf(size, z) / ((u->beta + sqrtf(squares)) / u->rate + u->l2);
}

static void apply_ftrl(float *w, float *z, float *squares, const float *grad, uint64_t n, const struct shmt_update *u) {
    for (uint64_t i = 0; i < n; i++) {
        const float g = gradient_at(grad, i, u->scale), before = squares[i], after = before + g * g;
        squares[i] = after;
        z[i] += g - (sqrtf(after) - sqrtf(before)) / u->rate * w[i];
        put(w + i, ftrl_weight(z[i], after, u));
    }
}

void shmt_rule_apply(enum shmt_rule_kind kind, float *w, float *state, uint64_t plane, const float *grad, uint64_t n,
                     const struct shmt_update *u) {
    switch (kind) {
        case SHMT_RULE_MOMENTUM:
            apply_momentum(w, state, grad, n, u);
            return;
        case SHMT_RULE_ADAGRAD:
            apply_adagrad(w, state, grad, n, u);
            return;
        case SHMT_RULE_ADAM:
            apply_adam(w, state, state + plane, grad, n, u);
            return;
        case SHMT_RULE_FTRL:
            apply_ftrl(w, state, state + plane, grad, n, u);
            return;
        default:
            apply_sgd(w, grad, n, u);
            return;
    }
}

/* ftrl with n = 0: w = -(z - sign(z) l1) / (beta / r + l2), solved for z. */
void shmt_rule_begin(enum shmt_rule_kind kind, const struct shmt_update *u, float *w, float *state, uint64_t plane,
                     uint64_t n) {
    if (kind != SHMT_RULE_FTRL) return;
    for (uint64_t i = 0; i < n; i++) {
        state[i] = w[i] == 0 ? 0 : -w[i] * (u->beta / u->rate + u->l2) - copysignf(u->l1, w[i]);
        state[plane + i] = 0;
        w[i] = ftrl_weight(state[i], 0, u);
    }
}
