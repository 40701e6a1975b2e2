/* Gradient buffers of `aggregate`, between the push kernels and the update: adding two of them, clearing one, and applying one to the
 * weights. Called by backends, each buffer by one worker at a time; see kernels.h. */
#include <string.h>

#include "base/checked.h"
#include "store/kernels.h"

/* The floats of line `line` are from .. *to_out - 1. */
static uint64_t line_of(uint64_t line, uint64_t n, uint64_t *to_out) {
    const uint64_t from = line * SHMT_TOUCH_FLOATS;
    *to_out = shmt_min_u64(from + SHMT_TOUCH_FLOATS, n);
    return from;
}

static void add_and_clear(float *restrict a, float *restrict b, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        a[i] += b[i];
        b[i] = 0;
    }
}

void shmt_fold(float *a, uint8_t *a_touched, float *b, uint8_t *b_touched, uint64_t n) {
    if (!b_touched) {
        add_and_clear(a, b, n);
        return;
    }
    const uint64_t n_lines = shmt_ceil_div(n, SHMT_TOUCH_FLOATS);
    for (uint64_t line = 0; line < n_lines; line++) {
        if (!b_touched[line]) continue;
        uint64_t to, from = line_of(line, n, &to);
        /* Also where a holds zeros: 0 + b and not b, so that the sign of a zero does not depend on whether there are maps. */
        add_and_clear(a + from, b + from, to - from);
        a_touched[line] = 1;
        b_touched[line] = 0;
    }
}

void shmt_clear(float *a, uint8_t *touched, uint64_t n) {
    if (!touched) {
        memset(a, 0, n * sizeof *a);
        return;
    }
    const uint64_t n_lines = shmt_ceil_div(n, SHMT_TOUCH_FLOATS);
    for (uint64_t line = 0; line < n_lines; line++) {
        if (!touched[line]) continue;
        uint64_t to, from = line_of(line, n, &to);
        memset(a + from, 0, (to - from) * sizeof *a);
        touched[line] = 0;
    }
}

void shmt_sgd_apply(float *w, const float *grad, uint64_t n, float scale, float rate, float l2) {
    const float d = rate * l2;
    if (!grad)
        for (uint64_t i = 0; i < n; i++) w[i] -= (0.0f + d * w[i]) / (1 + d);
    else if (d == 0)
        for (uint64_t i = 0; i < n; i++) w[i] -= rate * (grad[i] * scale);
    else
        for (uint64_t i = 0; i < n; i++) w[i] -= (rate * (grad[i] * scale) + d * w[i]) / (1 + d);
}
