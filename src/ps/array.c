/* The arrays of a store, by name: see array.h. */
#include "ps/array.h"

#include <stddef.h>

#include "ps/replicas.h"

struct shmt_array shmt_array_of(const struct shmt_spec *spec, const struct shmt_flat *flat, void *const base[SHMT_ARRAYS],
                                enum shmt_array_name name, int t, uint32_t plane) {
    const uint64_t rows = spec->table[t].rows, floats = shmt_table_floats(&spec->table[t]);
    struct shmt_cover held;
    shmt_replicas_cover(spec, flat, &held);
    const struct shmt_array of_spec[SHMT_ARRAYS] = {
        [SHMT_ARRAY_HEAD] = {NULL, spec->head_bytes, 1},
        [SHMT_ARRAY_BOARD] = {NULL, spec->board_bytes, 1},
        [SHMT_ARRAY_WEIGHT] = {NULL, floats, sizeof(float)},
        [SHMT_ARRAY_STATE] = {NULL, plane < shmt_flat_planes(spec) ? floats : 0, sizeof(float)},
        [SHMT_ARRAY_L2_SHARE] = {NULL, spec->l2_shares ? rows : 0, sizeof(float)},
        [SHMT_ARRAY_CURVATURE] = {NULL, spec->curvatures && t == 0 ? held.n : 0, sizeof(float)},
        [SHMT_ARRAY_ROW_PLACE] = {NULL, spec->row_places && t == 0 ? rows : 0, sizeof(uint32_t)},
    };
    struct shmt_array array = of_spec[name];
    if (array.n > 0) array.at = (unsigned char *)base[name] + (plane * flat->n + flat->start[t]) * array.each;
    return array;
}
