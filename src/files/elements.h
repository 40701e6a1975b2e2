/* Numbers of examples as they lie in an array: their type, and where each example begins. Only for sources whose files are arrays. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "files/example_shape.h"

enum shmt_element_kind { SHMT_ELEMENT_UNSIGNED, SHMT_ELEMENT_SIGNED, SHMT_ELEMENT_FLOAT };

struct shmt_elements {
    uint32_t kind;  /* enum shmt_element_kind */
    uint32_t bytes; /* of one: 1, 2, 4 or 8; a float's 4 or 8. 0: there are none */
    bool big_endian;
    bool channels_last;              /* the channels of a pixel lie together; what is read has channel by channel */
    struct shmt_example_shape shape; /* all 0: they have none */
    uint64_t n_each;                 /* elements of an example */
    uint64_t first, stride;          /* bytes: where example 0 begins, and how far the next one is */
};

/* Example i of the array at `memory`: (n_each) into out, columns in the order of shmtrain_data. `unit`: unsigned bytes become 0 .. 1. */
void shmt_elements_read(const struct shmt_elements *elements, const unsigned char *memory, uint64_t i, bool unit, float *out);

/* The byte, from 0, at which value j of example i begins. */
uint64_t shmt_elements_at(const struct shmt_elements *elements, uint64_t i, uint64_t j);
