/* Rows turned into columns: the same entries, so that a column's sum is taken by one worker, in the order of the rows, whatever
 * the number of workers. In three phases, each of which a part may do again. */
#pragma once

#include "solve/passes.h"

/* Counts the entries of each column, slab by slab. */
void shmt_turn_count(const struct shmt_pass *pass);

/* Where each column begins, and each slab within it; by one part. */
void shmt_turn_place(const struct shmt_pass *pass);

/* Entries to their columns. 0, or -1: no memory for the places of a slab. */
int shmt_turn_fill(const struct shmt_pass *pass);
