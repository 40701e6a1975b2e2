/* Winograd's transforms for kernels of 3x3 and tiles of 4x4 outputs, F(4x4, 3x3) (Lavin, Gray 2016, "Fast algorithms for convolutional
 * neural networks"), for LANES channels at once:
 *
 *     Y = A^T [(G g G^T) * (B^T d B)] A        d (6, 6) inputs, g (3, 3) a filter, Y (4, 4) outputs, * number by number
 *
 * The product is linear in g and in d, so that with E = A dY A^T the derivatives are its transposes:
 *
 *     dg = G^T [E * (B^T d B)] G        dd = B [E * (G g G^T)] B^T
 *
 * Functions without _2 transform a line of the square, at `from` and to `to` with a stride in vectors. */
#pragma once

#include "layers/lanes_priv.h"

enum { SHMT_TILE = 4, SHMT_SEEN = 6, SHMT_POINTS = 36 };

/* B^T x: 6 -> 6. */
static inline void shmt_inputs_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = x[4 * s] - 4 * x[2 * s], b = x[3 * s] - 4 * x[s], c = x[4 * s] - x[2 * s], d = 2 * (x[3 * s] - x[s]);
    y[0] = 4 * x[0] - 5 * x[2 * s] + x[4 * s];
    y[t] = a + b;
    y[2 * t] = a - b;
    y[3 * t] = c + d;
    y[4 * t] = c - d;
    y[5 * t] = 4 * x[s] - 5 * x[3 * s] + x[5 * s];
}

/* B x: 6 -> 6, its transpose. */
static inline void shmt_inputs_back_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = x[s] + x[2 * s], b = x[s] - x[2 * s], c = x[3 * s] + x[4 * s], d = x[3 * s] - x[4 * s];
    y[0] = 4 * x[0];
    y[t] = 4 * (x[5 * s] - b) - 2 * d;
    y[2 * t] = -5 * x[0] - 4 * a - c;
    y[3 * t] = b + 2 * d - 5 * x[5 * s];
    y[4 * t] = x[0] + a + c;
    y[5 * t] = x[5 * s];
}

/* A^T x: 6 -> 4. */
static inline void shmt_outputs_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = x[s] + x[2 * s], b = x[s] - x[2 * s], c = x[3 * s] + x[4 * s], d = x[3 * s] - x[4 * s];
    y[0] = x[0] + a + c;
    y[t] = b + 2 * d;
    y[2 * t] = a + 4 * c;
    y[3 * t] = b + 8 * d + x[5 * s];
}

/* A x: 4 -> 6. */
static inline void shmt_outputs_back_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = x[0] + x[2 * s], b = x[s] + x[3 * s], c = x[0] + 4 * x[2 * s], d = 2 * x[s] + 8 * x[3 * s];
    y[0] = x[0];
    y[t] = a + b;
    y[2 * t] = a - b;
    y[3 * t] = c + d;
    y[4 * t] = c - d;
    y[5 * t] = x[3 * s];
}

/* G x: 3 -> 6. */
static inline void shmt_filter_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = (x[0] + x[2 * s]) * (-1 / 6.0f), b = x[s] * (-1 / 6.0f),
                     c = x[0] * (1 / 24.0f) + x[2 * s] * (1 / 6.0f), d = x[s] * (1 / 12.0f);
    y[0] = x[0] * 0.25f;
    y[t] = a + b;
    y[2 * t] = a - b;
    y[3 * t] = c + d;
    y[4 * t] = c - d;
    y[5 * t] = x[2 * s];
}

/* G^T x: 6 -> 3. */
static inline void shmt_filter_back_line(const shmt_lanes *x, uint32_t s, shmt_lanes *y, uint32_t t) {
    const shmt_lanes a = (x[s] + x[2 * s]) * (-1 / 6.0f), b = x[2 * s] - x[s], c = x[3 * s] + x[4 * s], d = x[3 * s] - x[4 * s];
    y[0] = x[0] * 0.25f + a + c * (1 / 24.0f);
    y[t] = b * (1 / 6.0f) + d * (1 / 12.0f);
    y[2 * t] = a + c * (1 / 6.0f) + x[5 * s];
}
