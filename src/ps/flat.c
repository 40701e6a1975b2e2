/* The flat array of parameters: see flat.h. */
#include "ps/flat.h"

#include <stddef.h>

#include "base/line.h"
#include "store/kernels.h"

void shmt_flat_plan(const struct shmt_spec *spec, struct shmt_flat *out) {
    const uint64_t line = SHMT_LINE / sizeof(float);
    uint64_t at = 0;
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        out->start[t] = at;
        at += shmt_ceil_div(shmt_table_floats(&spec->table[t]), line) * line;
    }
    out->n = at;
}

void shmt_flat_apply(const struct shmt_spec *spec, const struct shmt_flat *flat, float *weight, const float *grad,
                     uint64_t from, uint64_t to, float scale, float rate) {
    for (uint32_t t = 0; t < spec->n_tables; t++) {
        const uint64_t start = flat->start[t], width = spec->table[t].width;
        /* two parts: the rows that L2 draws to zero, and those (a bias) that it leaves alone */
        const uint64_t cut[3] = {start, start + spec->l2_rows[t] * width, start + spec->table[t].rows * width};
        const float l2[2] = {spec->l2, 0};
        for (int part = 0; part < 2; part++) {
            const uint64_t a = shmt_max_u64(from, cut[part]), b = shmt_min_u64(to, cut[part + 1]);
            if (a < b) shmt_sgd_apply(weight + a, grad ? grad + (a - from) : NULL, b - a, scale, rate, l2[part]);
        }
    }
}
