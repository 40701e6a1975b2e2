/* From ids to columns: see columns.h. */
#include "data/columns.h"

#include <float.h>

#include "data/ids.h"
#include "base/random.h"

#define SMALL_TABLE ((uint64_t)1 << 20) /* rows of 4 bytes: not worth a search for each id */
#define SMALL_ROW   ((uint64_t)1 << 10) /* a dense row: likewise */

bool shmt_ids_are_far_apart(uint64_t n_ids, uint64_t n_nonzeros) {
    return n_ids >= UINT32_MAX || (n_ids > SMALL_TABLE && n_ids / 4 > n_nonzeros);
}

bool shmt_ids_may_be_few(uint64_t n_ids, uint64_t n_examples, uint64_t n_nonzeros) {
    return n_ids > SMALL_ROW && (unsigned __int128)n_ids * n_examples / 4 > n_nonzeros;
}

bool shmt_ids_are_few(uint64_t n_listed, uint64_t n_ids) { return n_listed > 0 && n_listed < n_ids / 4; }

uint32_t shmt_column_of_id(const struct shmt_columns *columns, uint64_t id) {
    if (columns->hash_bits > 0) return (uint32_t)(shmt_mix64(id) >> (64 - columns->hash_bits));
    if (columns->ids) return shmt_ids_find(columns->ids, id);
    const uint64_t column = id - columns->base; /* an id below the base wraps around to a large one */
    return column < columns->n_features ? (uint32_t)column : UINT32_MAX;
}

static uint64_t place_some(const struct shmt_columns *columns, const uint64_t *id, uint64_t n, uint32_t *column_out,
                           float *value_inout) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t column = shmt_column_of_id(columns, id[i]);
        if (column == UINT32_MAX) continue;
        column_out[kept] = column;
        value_inout[kept++] = value_inout[i];
    }
    return kept;
}

/* ---- hashed ids ---- */

/* By shell sort: rows are short, and mostly out of order. */
static void sort(uint32_t *column, float *value, uint64_t n) {
    uint64_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (uint64_t i = gap; i < n; i++) {
            const uint32_t c = column[i];
            const float v = value[i];
            uint64_t j = i;
            for (; j >= gap && column[j - gap] > c; j -= gap) {
                column[j] = column[j - gap];
                value[j] = value[j - gap];
            }
            column[j] = c;
            value[j] = v;
        }
    }
}

static float within(float x) { return x > FLT_MAX ? FLT_MAX : x < -FLT_MAX ? -FLT_MAX : x; }

/* Adds what has the same column; a sum of 0 is no nonzero. */
static uint64_t merge(uint32_t *column, float *value, uint64_t n) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n;) {
        const uint32_t c = column[i];
        float sum = value[i++];
        for (; i < n && column[i] == c; i++) sum = within(sum + value[i]);
        if (sum == 0) continue;
        column[kept] = c;
        value[kept++] = sum;
    }
    return kept;
}

uint64_t shmt_columns_place(const struct shmt_columns *columns, const uint64_t *id, uint64_t n, uint32_t *column_out,
                            float *value_inout) {
    if (columns->hash_bits > 0) {
        const uint64_t kept = place_some(columns, id, n, column_out, value_inout);
        sort(column_out, value_inout, kept);
        return merge(column_out, value_inout, kept);
    }
    if (columns->ids) return place_some(columns, id, n, column_out, value_inout);
    const uint64_t base = columns->base, n_features = columns->n_features;
    uint64_t others = 0;
    for (uint64_t i = 0; i < n; i++) {
        others |= id[i] - base >= n_features;
        column_out[i] = (uint32_t)(id[i] - base);
    }
    return others == 0 ? n : place_some(columns, id, n, column_out, value_inout);
}
