/* Examples and labels that lie in memory as arrays of numbers (files/elements.h) once their files were unpacked: what the sources of
 * array files (array_source.c) and of CIFAR-10 (cifar.c) share.
 *
 * All is unpacked whole into one anonymous mapping, which is set aside when the files are opened, takes memory when they are unpacked,
 * and goes when the source is closed: from there any part is read at once, and files that change cannot disturb. Every file is treated
 * so, packed or not; it is a quarter of what its floats will take. Values of unsigned bytes become 0 .. 1. */
#pragma once

#include "data/source_priv.h"
#include "files/elements.h"

struct shmt_matrix {
    struct shmt_source source;         /* first */
    uint64_t n;                        /* examples */
    struct shmt_elements value, label; /* both from `memory` on; label.bytes 0: labels were not asked for */
    unsigned char *memory;
    uint64_t memory_bytes;
    /* "FILE, byte N" of a value (or a label) that is no finite number. */
    void (*where)(const struct shmt_matrix *of, bool is_label, uint64_t example, uint64_t j, char *out, uint64_t bytes);
};

/* Sets memory_bytes aside; 0 or _MEMORY. */
int shmt_matrix_make_room(struct shmt_matrix *matrix, struct shmt_error *e);
void shmt_matrix_free_room(struct shmt_matrix *matrix);

/* Operations of source_priv.h, of a source that begins with a struct shmt_matrix. */
int shmt_matrix_count(const struct shmt_source *source, const struct shmt_columns *columns, uint32_t part, uint32_t n_parts,
                      struct shmt_row_buffer *buffer, struct shmt_part *out);
int shmt_matrix_fill(const struct shmt_source *source, uint32_t part, uint32_t n_parts, struct shmt_part *counted,
                     uint64_t first, uint64_t first_nonzero, const struct shmt_arrays *into, struct shmt_error *e);
uint64_t shmt_matrix_guess_bytes(const struct shmt_source *source, bool dense);
struct shmt_example_shape shmt_matrix_shape(const struct shmt_source *source);
