/* The arrays of a store, by name, for those who fill or read them whole: the application, and what runs between epochs. Where they
 * lie is the backend's matter, what they hold the spec's. */
#pragma once

#include "ps/flat.h"

enum shmt_array_name {
    SHMT_ARRAY_HEAD,   /* bytes (spec.head_bytes): zeros at first, shared; before all else in the segment */
    SHMT_ARRAY_BOARD,  /* bytes (spec.board_bytes): likewise; aligned to a page */
    SHMT_ARRAY_WEIGHT, /* floats (rows * width) of a table: the parameters, while nobody trains; set together with their state */
    SHMT_ARRAY_STATE,  /* floats (rows * width) of a table and a plane: the rule's state, while nobody trains */
    SHMT_ARRAY_L2_SHARE, /* floats (rows) of a table (spec.l2_shares), to be filled before workers enter */
    SHMT_ARRAY_CURVATURE, /* floats (what replicas hold of table 0, struct shmt_cover) of the mean loss (spec.curvatures), likewise */
    SHMT_ARRAY_ROW_PLACE, /* uint32_t (rows of table 0): the row of each feature (spec.row_places), likewise */
    SHMT_ARRAYS
};

struct shmt_array {
    void *at;         /* NULL: the spec does not ask for it */
    uint64_t n, each; /* elements, bytes of one */
};

/* Of table t (0 where it is not of a table) and plane `plane` (0 where there are none). base[name]: where the array begins that all
 * tables and planes of it are parts of. */
struct shmt_array shmt_array_of(const struct shmt_spec *spec, const struct shmt_flat *flat, void *const base[SHMT_ARRAYS],
                                enum shmt_array_name name, int t, uint32_t plane);
