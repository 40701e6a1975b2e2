/* Sums of doubles whose bits do not depend on who adds what.
 *
 * Floating-point addition is not associative, so an order has to be fixed: x[0 .. n) are the leaves of the complete binary
 * tree whose left subtree holds the largest power of two below n. A subtree of 2^k leaves that starts at a multiple of 2^k
 * is summed by itself, by whoever has its leaves, and the result is a leaf of the tree above it. Printed losses and the
 * partial gradients of `sync` are added in this order. */
#pragma once

#include <stdint.h>

/* The sum of x[0 .. n) in tree order; 0 for n = 0. */
double shmt_tree_sum(const double *x, uint64_t n);
