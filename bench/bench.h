/* What all benches share beside the room measure (src/measure: helpers, figures, floors): options, and figures as lines. Benches
 * are programs of one thread; what goes wrong ends them. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "measure/figure.h"
#include "measure/helpers.h"
#include "measure/stream.h"

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

/* One line: name, median, unit, first and third quartile, number of rounds. */
void bench_show(const struct shmt_figure *f);
/* Starts a group of lines. */
void bench_head(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Begins a round; ends it, and says whether it counts (measure/figure.h; when quick, all do). */
void bench_round_begin(void);
bool bench_round_end(const struct bench_options *o);

/* How many rounds were thrown away, as a line; nothing when there were none. */
void bench_show_noise(void);

#endif
