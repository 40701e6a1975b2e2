/* The logistic loss in doubles, of many margins at once, with the same bits on every machine: for exact fits (solve/), whose proofs need
 * digits, and which would spend a fifth of their time in libm otherwise.
 *
 * As in logistic.h everything is made of additions, multiplications, divisions and moves of bits, without branches, so that loops become
 * vector code. Errors (tests/test_math.c measures them): some 4 units in the last place. Margins beyond 708 count as 708, where e^-m is
 * 3e-308. NaN gives NaN. */
#pragma once

#include <stdint.h>

/* For n margins: losses log(1 + e^-m); falls 1 / (1 + e^m), minus the derivatives; bends, the second derivatives. (n) each, which may
 * not overlap. */
void shmt_logistic_doubles(uint32_t n, const double *restrict margin, double *restrict loss_out, double *restrict fall_out,
                           double *restrict bend_out);

/* For n shares q within 0 .. 1: q log q + (1 - q) log(1 - q), at most 0. (n) each, which may not overlap. */
void shmt_entropy_doubles(uint32_t n, const double *restrict q, double *restrict out);
