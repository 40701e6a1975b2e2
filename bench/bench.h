/* What all benches share beside floors/ and runs/: options, rounds, and figures as lines. Benches are programs of one thread;
 * what goes wrong ends them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench/floors/figure.h"
#include "bench/floors/helpers.h"
#include "bench/floors/stream.h"

/* From the command line: --quick (tiny sizes, 2 rounds: shows that the bench works, the figures mean nothing), --rounds N. */
struct bench_options {
    bool quick;
    uint32_t rounds;
};
struct bench_options bench_options_read(int argc, char **argv, uint32_t rounds);

/* Prints a sentence to stderr and ends this process with status 1. */
#define bench_fail shmt_measure_fail

/* Four times the last-level cache (32 MiB where it is not known), or 1 MiB when quick. */
uint64_t bench_far_bytes(const struct bench_options *o);

/* Starts a group of lines. */
void bench_head(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As many rounds as the options say, each of which counts if others left the processors alone (floors/figure.h; when quick, all
 * do). `round` measures one value for each of n figures. */
typedef void bench_round(void *arg, double *x_out);
void bench_rounds(const struct bench_options *o, struct shmt_figure *figure, uint32_t n, bench_round *round, void *arg);

/* A line for each: name, median, unit, first and third quartile, number of rounds. */
void bench_show(const struct shmt_figure *figure, uint32_t n);

/* How many rounds were thrown away, as a line; nothing when there were none. */
void bench_show_noise(void);
