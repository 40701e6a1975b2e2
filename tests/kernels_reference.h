/* The kernels as plain loops: what kernels.h promises, one element at a time, without regard to speed.
 *
 * The oracle of the tests, which compare the fast kernels with these bit by bit, and the text to read first. For one thread
 * at a time, so that the live write modes, which differ in what happens between threads, are one here. */
#pragma once

#include "update/kernels.h"

/* The same interface and results as those of shmt_kernels_find, with values or not, regularised or not; `need` does nothing. */
const struct shmt_kernels *shmt_kernels_reference(enum shmt_write write, enum shmt_rule_kind rule);
