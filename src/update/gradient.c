/* Gradient buffers of `aggregate`, between the push kernels and the update (apply.c): adding two of them, and clearing one.
 * Called by backends, each buffer by one worker at a time; see kernels.h. The same for all CPU paths: with wider vectors
 * adding two buffers of sparse gradients took a third more time. */
#include <string.h>

#include "base/checked.h"
#include "update/kernels.h"

/* A line has a fixed number of floats, so that compilers make straight vector code of these two. */
static inline void add_line(float *restrict a, float *restrict b) {
    for (int i = 0; i < SHMT_TOUCH_FLOATS; i++) {
        a[i] += b[i];
        b[i] = 0;
    }
}

static inline void clear_line(float *a) { memset(a, 0, SHMT_TOUCH_FLOATS * sizeof *a); }

/* The next touched line at or after `line`, or n_lines. Most lines of a sparse gradient are untouched: eight are passed at a
 * time. */
static inline uint64_t next_touched(const uint8_t *touched, uint64_t line, uint64_t n_lines) {
    uint64_t eight;
    while (line + sizeof eight <= n_lines) {
        memcpy(&eight, touched + line, sizeof eight);
        if (eight) break;
        line += sizeof eight;
    }
    while (line < n_lines && !touched[line]) line++;
    return line;
}

/* The last line of a buffer may be short. */
static void add_rest(float *restrict a, float *restrict b, uint64_t n) {
    for (uint64_t i = 0; i < n; i++) {
        a[i] += b[i];
        b[i] = 0;
    }
}

void shmt_fold(float *a, uint8_t *a_touched, float *b, uint8_t *b_touched, uint64_t n) {
    const uint64_t whole = n / SHMT_TOUCH_FLOATS, rest = n % SHMT_TOUCH_FLOATS, last = whole * SHMT_TOUCH_FLOATS;
    /* Lines that a has not touched are added to, not copied over, so that the sign of a zero does not depend on the maps. */
    for (uint64_t line = 0; line < whole; line++) {
        if (b_touched) {
            line = next_touched(b_touched, line, whole);
            if (line == whole) break;
            a_touched[line] = 1;
            b_touched[line] = 0;
        }
        add_line(a + line * SHMT_TOUCH_FLOATS, b + line * SHMT_TOUCH_FLOATS);
    }
    if (rest == 0 || (b_touched && !b_touched[whole])) return;
    add_rest(a + last, b + last, rest);
    if (!b_touched) return;
    a_touched[whole] = 1;
    b_touched[whole] = 0;
}

void shmt_fetch(const float *a, const uint8_t *touched, uint64_t from, uint64_t to) {
    const uint64_t end = shmt_ceil_div(to, SHMT_TOUCH_FLOATS);
    for (uint64_t line = from / SHMT_TOUCH_FLOATS; line < end; line++) {
        if (touched && (line = next_touched(touched, line, end)) == end) break;
        (void)*(const volatile float *)(a + line * SHMT_TOUCH_FLOATS);
    }
}

void shmt_clear(float *a, uint8_t *touched, uint64_t n) {
    const uint64_t whole = n / SHMT_TOUCH_FLOATS, n_lines = shmt_ceil_div(n, SHMT_TOUCH_FLOATS);
    if (!touched) {
        memset(a, 0, n * sizeof *a);
        return;
    }
    for (uint64_t line = next_touched(touched, 0, whole); line < whole; line = next_touched(touched, line + 1, whole)) {
        clear_line(a + line * SHMT_TOUCH_FLOATS);
        touched[line] = 0;
    }
    if (n_lines == whole || !touched[whole]) return;
    memset(a + whole * SHMT_TOUCH_FLOATS, 0, (n % SHMT_TOUCH_FLOATS) * sizeof *a);
    touched[whole] = 0;
}
